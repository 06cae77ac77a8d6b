/* store_while.c -- where the carried values of a while lie, round by round. See storage.h.
 *
 * Behind each parameter stands a chain: the value that the round before handed it, which may be
 * another parameter, and so on back to a value that the body makes (its source), to one from
 * outside, or round in a ring. The instance of the source that round r makes is parameter number
 * `age` of the chain in round r + age. With n cells, instance i lies in cell i mod n: the least n
 * for which no step needs two instances in one cell. In the first rounds a parameter reads the
 * initial values of its chain: where they may, they lie in the cells already; else the parameter
 * points at them; else they are copied once.
 *
 * What cannot be placed so is copied at the end of each round, pair by pair: the attempt starts
 * again without it. */
#include "graphs/problem/liveness.h"
#include "graphs/problem/control/storage_priv.h"

typedef struct pair {
    mpl_value param, init, source, out; /* roots; out MPL_NONE: nobody reads it */
    uint32_t in, result;                /* indices into op_in and block_result */
    uint32_t up;    /* the pair whose parameter is its source; MPL_NONE: the source is none */
    uint32_t age;   /* hops to the source; in a ring or leading to one: to the ring's entry */
    uint32_t chain; /* the pair at the chain's head: whose source is no parameter, or the lowest of
                       the ring */
    uint32_t first; /* the item that stands for its initial value */
    uint32_t cell;  /* of a head: its first cell's item; the others follow */
    uint32_t n_cells;     /* of a head: 0: the source is not of the body */
    uint32_t dep, n_deps; /* items in deps: what may hold its initial value, then, of a copied one,
                             its source */
    bool wanted, ring, shared, copied; /* shared: others may start in the same place */
} pair;

typedef struct loop {
    mpl_store *s;
    const mpl_graph *g;
    mpl_op op;
    uint32_t body, n;
    uint32_t begin, end, behind; /* steps: BEGIN, END, the operation's own */
    int64_t rounds;              /* if that is known; else -1 */
    pair *pair;                  /* [n] */
    uint64_t *row, *other;       /* scratch */
} loop;

/* ---- looking at the pairs ---- */

/* How many rounds there are, when nothing else can end the loop; -1: not known before. */
static int64_t known_rounds(const loop *l)
{
    const mpl_graph *g = l->g;
    const mpl_value *in = g->op_in + g->op_in_begin[l->op];
    int64_t most = mpl_while_most_rounds(g, l->op), trips;

    if (in[1] != MPL_NONE || mpl_result(g, l->body, 0) != MPL_NONE)
        return -1;
    for (mpl_op op = g->block_op_begin[l->body]; op < g->block_op_end[l->body]; op++)
        if (g->op_kind[op] == MPL_OP_exit_unless && g->op_block[op] == l->body)
            return -1;
    if (in[0] == MPL_NONE)
        return most;
    if (g->value_role[in[0]] != MPL_WEIGHT || g->value_data[in[0]] == NULL)
        return -1;
    trips = *(const int64_t *)g->value_data[in[0]];
    trips = trips < 0 ? 0 : trips;
    return most >= 0 && most < trips ? most : trips;
}

/* The item that always lies where `item` does, and stays there: itself, or one that a loop inside
 * left where it was. MPL_NONE: that depends on control flow. */
static uint32_t same_place(mpl_store *s, uint32_t item)
{
    while (item != MPL_NONE) {
        bool cell = item >= s->g->n_values || s->how[item] == MPL_HOW_CELL;
        const mpl_turn *turn = cell && s->turn[mpl_cell(s, item)] != MPL_NONE
                                   ? &s->turns[s->turn[mpl_cell(s, item)]]
                                   : NULL;

        if (turn != NULL)
            item = turn->n_first == 0 && turn->n_cycle == 1 ? s->refs[turn->begin] : MPL_NONE;
        else if (cell || s->how[item] == MPL_HOW_PINNED)
            break;
        else
            item = s->how[item] == MPL_HOW_FINAL ? s->same[item] : MPL_NONE;
    }
    return item;
}

/* What a round hands on is often what it took over, through a loop inside. */
static mpl_value source_of(mpl_store *s, mpl_value result)
{
    uint32_t item = s->how[result] == MPL_HOW_FINAL ? same_place(s, result) : MPL_NONE;

    return item < s->g->n_values ? item : result;
}

static void find_pairs(loop *l)
{
    mpl_store *s = l->s;
    const mpl_graph *g = l->g;

    for (uint32_t i = 0; i < l->n; i++) {
        pair *p = &l->pair[i];
        mpl_value out = mpl_op_output(g, l->op, i);

        p->param = mpl_param(g, l->body, 1 + i);
        p->in = g->op_in_begin[l->op] + 2 + i;
        p->result = g->block_result_begin[l->body] + 1 + i;
        p->init = s->spec->root[g->op_in[p->in]];
        p->source = source_of(s, s->spec->root[g->block_result[p->result]]);
        p->out =
            out != MPL_NONE && s->out_live[out] && s->how[out] == MPL_HOW_CELL ? out : MPL_NONE;
        p->wanted = s->how[p->param] == MPL_HOW_CELL;
        p->first = p->init;
        p->copied = s->spec->options->loop_copy;
    }
}

/* The round number, and a slice that is copied, are made anew as each round begins. */
static bool is_given_anew(const loop *l, mpl_value v)
{
    for (uint32_t i = 0; i < l->g->block_n_params[l->body]; i++)
        if (mpl_param(l->g, l->body, i) == v)
            return i == 0 || i > l->n;
    return false;
}

/* Whether the source of a pair is made in the body and has a cell to be in; cells of blocks inside
 * are settled. */
static bool is_made_here(const loop *l, mpl_value v)
{
    return l->s->how[v] == MPL_HOW_CELL && l->g->value_block[v] == l->body &&
           (l->g->value_op[v] != MPL_NONE || is_given_anew(l, v));
}

static bool is_outside(const loop *l, mpl_value v)
{
    return l->g->value_block[v] != l->body;
}

/* Follows the chains. Pairs whose source has no address of its own from round to round are copied,
 * and with them those that wait for their parameters. */
static void link_pairs(loop *l)
{
    bool changed = true;

    for (uint32_t i = 0; i < l->n; i++) {
        pair *p = &l->pair[i];

        p->up = MPL_NONE;
        for (uint32_t k = 0; k < l->n; k++)
            if (l->pair[k].param == p->source)
                p->up = k;
        if (p->up == MPL_NONE && !is_made_here(l, p->source) && !is_outside(l, p->source))
            p->copied = true;
    }
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < l->n; i++)
            if (!l->pair[i].copied && l->pair[i].up != MPL_NONE && l->pair[l->pair[i].up].copied)
                l->pair[i].copied = changed = true;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        pair *p = &l->pair[i];
        uint32_t at = i, least = i;

        for (p->age = 1; l->pair[at].up != MPL_NONE && p->age <= l->n; p->age++)
            at = l->pair[at].up;
        p->ring = l->pair[at].up != MPL_NONE;
        if (p->ring) { /* `at` is in the ring: its lowest member stands for it */
            least = at;
            for (uint32_t k = l->pair[at].up; k != at; k = l->pair[k].up)
                least = k < least ? k : least;
            at = least;
            p->age = 0;
        }
        for (uint32_t k = 0; k < at && !p->ring; k++) /* pairs of one source are one chain */
            if (l->pair[k].up == MPL_NONE && l->pair[k].source == l->pair[at].source)
                at = k;
        p->chain = at;
    }
}

/* Whether two lists of items have one of the same cell. */
static bool lists_meet(mpl_store *s, const uint32_t *a, uint32_t n_a, const uint32_t *b,
                       uint32_t n_b)
{
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b; k++)
            if (mpl_cell(s, a[i]) == mpl_cell(s, b[k]))
                return true;
    return false;
}

/* Pairs that start with the same value, or with values that control flow may have left in one
 * place. */
static mpl_status find_shared(loop *l)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    uint32_t n_deps = s->n_deps;

    for (uint32_t i = 0; i < l->n; i++) {
        l->pair[i].dep = s->n_deps;
        MPL_TRY(mpl_add_deps(s, s->hold[l->pair[i].init]));
        l->pair[i].n_deps = s->n_deps - l->pair[i].dep;
    }
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t k = 0; k < l->n; k++)
            if (k != i && (l->pair[k].wanted || l->pair[k].out != MPL_NONE) &&
                lists_meet(s, s->deps + l->pair[i].dep, l->pair[i].n_deps, s->deps + l->pair[k].dep,
                           l->pair[k].n_deps))
                l->pair[i].shared = true;
out:
    s->n_deps = n_deps;
    return st;
}

/* ---- rows ---- */

static void row_or(const mpl_store *s, uint64_t *to, const uint64_t *from)
{
    for (uint32_t w = 0; w < s->words; w++)
        to[w] |= from[w];
}

/* Steps at which something in the cell of an item is needed. */
static void cell_row(mpl_store *s, uint32_t item, uint64_t *to)
{
    uint32_t at = item;

    do {
        row_or(s, to, mpl_row(s, at));
        at = s->next[at];
    } while (at != item);
}

/* Steps at which instances of that age are needed. */
static void age_row(loop *l, uint32_t head, uint32_t age, uint64_t *to)
{
    memset(to, 0, l->s->words * sizeof *to);
    if (age == 0)
        cell_row(l->s, l->pair[head].source, to);
    for (uint32_t i = 0; i < l->n && age > 0; i++)
        if (l->pair[i].chain == head && l->pair[i].age == age && l->pair[i].wanted &&
            !l->pair[i].copied)
            cell_row(l->s, l->pair[i].param, to);
}

/* ---- how many cells a chain goes round ---- */

static bool is_single(const mpl_store *s, uint32_t item)
{
    return s->next[item] == item;
}

/* Whether the source may be written over the only parameter of age `age`, at the one step that
 * needs both. */
static bool may_overwrite(const loop *l, uint32_t head, uint32_t age)
{
    const mpl_store *s = l->s;
    mpl_value source = l->pair[head].source, param = MPL_NONE;
    mpl_op op = l->g->value_op[source];
    uint32_t step;

    if (op == MPL_NONE)
        return false;
    step = s->program->op_step[op];
    for (uint32_t i = 0; i < l->n; i++)
        if (l->pair[i].chain == head && l->pair[i].age == age && l->pair[i].wanted &&
            !l->pair[i].copied) {
            if (param != MPL_NONE)
                return false;
            param = l->pair[i].param;
        }
    if (param == MPL_NONE || !is_single(s, param) || !is_single(s, source) ||
        !s->spec->options->in_place || mpl_op_output(l->g, op, 0) != source)
        return false;
    if (!mpl_rows_meet_at(s, l->row, l->other, step))
        return false;
    for (uint32_t i = l->g->op_in_begin[op]; i < l->g->op_in_begin[op + 1]; i++)
        if (l->g->op_in[i] != MPL_NONE && s->spec->root[l->g->op_in[i]] == param &&
            mpl_in_place_operand(l->g, s->spec->root, NULL, op, i - l->g->op_in_begin[op]))
            return true;
    return false;
}

/* Whether instances whose ages differ by a multiple of n can share a cell. */
static bool cells_suffice(loop *l, uint32_t head, uint32_t oldest, uint32_t n)
{
    for (uint32_t a = 0; a <= oldest; a++)
        for (uint32_t b = a + n; b <= oldest; b += n) {
            age_row(l, head, a, l->row);
            age_row(l, head, b, l->other);
            if (mpl_rows_meet(l->s, l->row, l->other) && (a > 0 || !may_overwrite(l, head, b)))
                return false;
        }
    return true;
}

/* Whether two parameters, or one and the source, lie in one cell already though their ages put them
 * n apart. */
static bool ages_agree(loop *l, uint32_t head, uint32_t n)
{
    uint32_t source = mpl_cell(l->s, l->pair[head].source);

    for (uint32_t i = 0; i < l->n; i++) {
        const pair *p = &l->pair[i];

        if (p->chain != head || !p->wanted || p->copied)
            continue;
        if (mpl_cell(l->s, p->param) == source && p->age % n != 0)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (l->pair[k].chain == head && l->pair[k].wanted && !l->pair[k].copied &&
                mpl_cell(l->s, l->pair[k].param) == mpl_cell(l->s, p->param) &&
                l->pair[k].age % n != p->age % n)
                return false;
    }
    return true;
}

/* ---- cells and turns ---- */

static uint32_t oldest_of(const loop *l, uint32_t head)
{
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->pair[i].chain == head && l->pair[i].wanted && !l->pair[i].copied &&
            l->pair[i].age > oldest)
            oldest = l->pair[i].age;
    return oldest;
}

/* The cell of an instance that was made `age` rounds before round 0, or round -age. */
static uint32_t cell_of(const pair *head, int64_t instance)
{
    int64_t n = head->n_cells;

    return head->cell + (uint32_t)((instance % n + n) % n);
}

/* Gives a chain of the body its cells; false when no number will do. */
static bool make_cells(loop *l, uint32_t at)
{
    pair *head = &l->pair[at];
    uint32_t oldest = oldest_of(l, at), n = 1;

    while (n <= oldest && !(ages_agree(l, at, n) && cells_suffice(l, at, oldest, n)))
        n++;
    if (!ages_agree(l, at, n))
        return false;
    head->n_cells = n;
    head->cell = l->s->n_items;
    for (uint32_t k = 0; k < n; k++)
        mpl_item_new(l->s, head->source, l->g->value_bytes[head->source], k);
    for (uint32_t age = 0; age <= oldest; age++) {
        age_row(l, at, age, l->row);
        for (uint32_t k = 0; k < n; k++)
            row_or(l->s, mpl_row(l->s, head->cell + k), l->row);
    }
    return true;
}

static mpl_status push_ref(mpl_store *s, uint32_t item)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_reserve(s->ctx, s->refs, s->refs_cap, (size_t)s->n_refs + 1));
    s->refs[s->n_refs++] = item;
out:
    return st;
}

/* Whether two turns give the same address in every round. */
static bool turns_equal(const mpl_store *s, const mpl_turn *a, const mpl_turn *b)
{
    if (a->n_first != b->n_first || a->n_cycle != b->n_cycle)
        return false;
    for (uint32_t i = 0; i < a->n_first + a->n_cycle; i++)
        if (s->refs[a->begin + i] != s->refs[b->begin + i])
            return false;
    return true;
}

/* Whether the parameter of a copied pair lies in the cell of `item`: that stays where it is. */
static bool holds_copied(const loop *l, uint32_t item)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->pair[i].copied && l->s->how[l->pair[i].param] == MPL_HOW_CELL &&
            mpl_cell(l->s, l->pair[i].param) == mpl_cell(l->s, item))
            return true;
    return false;
}

/* The cell of `item` goes round, by the refs from `begin` on. First ones that the cycle would give
 * as well become part of it. *good: false when what else lies in the cell does not go with it. */
static mpl_status push_turn(loop *l, uint32_t item, uint32_t begin, uint32_t n_first, bool *good)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    uint32_t cell = mpl_cell(s, item);
    mpl_turn t = {.block = l->body,
                  .begin = begin,
                  .n_first = n_first,
                  .n_cycle = s->n_refs - begin - n_first};

    while (t.n_first > 0 && s->refs[begin + t.n_first - 1] == s->refs[s->n_refs - 1]) {
        t.n_first--;
        s->n_refs--; /* the cycle begins one earlier, with what was its last */
    }
    *good = !holds_copied(l, item) &&
            (s->turn[cell] == MPL_NONE || turns_equal(s, &s->turns[s->turn[cell]], &t));
    MPL_TRY(mpl_reserve(s->ctx, s->turns, s->turns_cap, (size_t)s->n_turns + 1));
    s->turn[cell] = s->n_turns;
    s->turns[s->n_turns++] = t;
out:
    return st;
}

static bool same_age(const loop *l, uint32_t i)
{
    for (uint32_t k = 0; k < l->n; k++)
        if (k != i && !l->pair[k].copied && l->pair[k].chain == l->pair[i].chain &&
            l->pair[k].age == l->pair[i].age && (l->pair[k].wanted || l->pair[k].out != MPL_NONE))
            return true;
    return false;
}

/* Initial values move into the cells that their instances would have, where nothing else needs
 * either. */
static void settle_firsts(loop *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        pair *p = &l->pair[i], *head = &l->pair[p->chain];
        uint32_t cell;

        if (p->copied || p->ring || head->n_cells == 0 || (!p->wanted && p->out == MPL_NONE))
            continue;
        cell = cell_of(head, -(int64_t)p->age);
        if (!p->shared && l->s->how[p->init] == MPL_HOW_CELL && mpl_cells_join(l->s, p->init, cell))
            p->first = cell;
    }
}

/* Hops from pair x up to pair i; MPL_NONE when i is not above x, or the source comes before. */
static uint32_t hops_to(const loop *l, uint32_t x, uint32_t i)
{
    uint32_t n = 0;

    while (x != i) {
        x = l->pair[x].up;
        if (x == MPL_NONE || ++n > l->n)
            return MPL_NONE;
    }
    return n;
}

/* Steps at which the initial value of pair i is read, by parameters that point at it; *fits: each
 * of them alone is at its address, so that nothing is written there. */
static void first_row(loop *l, uint32_t i, uint64_t *row, bool *fits)
{
    memset(row, 0, l->s->words * sizeof *row);
    *fits = true;
    for (uint32_t x = 0; x < l->n; x++) {
        uint32_t hops = l->pair[x].wanted && !l->pair[x].copied ? hops_to(l, x, i) : MPL_NONE;

        if (hops == MPL_NONE)
            continue;
        *fits = *fits && is_single(l->s, l->pair[x].param);
        cell_row(l->s, l->pair[x].param, row); /* all of a round, where it is handed on */
    }
}

/* Keeps a value at the step at which it is copied away. */
static bool hold_at(loop *l, mpl_value v, uint32_t step)
{
    memset(l->other, 0, l->s->words * sizeof *l->other);
    mpl_row_set(l->s, l->other, step);
    return mpl_hold(l->s, v, l->other);
}

/* Where the initial value of pair i is read in the first rounds, if it did not settle: where it is,
 * or a copy. False when it cannot even be kept for the copy. */
static bool place_first(loop *l, uint32_t i)
{
    pair *p = &l->pair[i], *head = &l->pair[p->chain];
    bool fits;

    if (p->first != p->init)
        return true;
    first_row(l, i, l->row, &fits);
    if (fits && mpl_hold(l->s, p->init, l->row))
        return true;
    if (!hold_at(l, p->init, l->begin))
        return false;
    l->s->in_copied[p->in] = 1;
    if (!p->ring && head->n_cells > 0 && !same_age(l, i)) {
        p->first = cell_of(head, -(int64_t)p->age);
        return true;
    }
    p->first = mpl_item_new(l->s, p->param, l->g->value_bytes[p->param], 0);
    memcpy(mpl_row(l->s, p->first), l->row, l->s->words * sizeof *l->row);
    mpl_row_set(l->s, mpl_row(l->s, p->first), l->begin);
    return true;
}

static bool in_ring(const loop *l, uint32_t i)
{
    uint32_t at = i;

    for (uint32_t k = 0; k <= l->n; k++) {
        at = l->pair[at].up;
        if (at == i || at == MPL_NONE)
            break;
    }
    return at == i;
}

/* Whether a parameter that lies in one cell with other values may have the address that turn_param
 * gives it: what those write must not fall on what others still read. */
static bool turn_is_safe(loop *l, uint32_t i)
{
    const pair *p = &l->pair[i], *head = &l->pair[p->chain];

    if (is_single(l->s, p->param))
        return true;
    if (p->ring || head->n_cells == 0)
        return false;
    for (uint32_t at = i; at != MPL_NONE; at = l->pair[at].up) {
        uint32_t first = l->pair[at].first;
        bool own = first >= head->cell && first < head->cell + head->n_cells;

        if (!own &&
            (first < l->g->n_values || mpl_cell(l->s, p->param) == mpl_cell(l->s, head->source)))
            return false;
    }
    return true;
}

/* ---- one attempt ---- */

/* What a parameter's address is, round by round. */
static mpl_status turn_param(loop *l, uint32_t i, bool *good)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    const pair *p = &l->pair[i], *head = &l->pair[p->chain];
    uint32_t begin = s->n_refs, at = i, n_first = p->age;

    if (p->ring) /* up to where the ring begins */
        for (n_first = 0; !in_ring(l, at); at = l->pair[at].up, n_first++)
            MPL_TRY(push_ref(s, l->pair[at].first));
    for (uint32_t r = 0; r < n_first && !p->ring; r++, at = l->pair[at].up)
        MPL_TRY(push_ref(s, l->pair[at].first));
    if (p->ring) {
        uint32_t from = at;

        do {
            MPL_TRY(push_ref(s, l->pair[at].first));
            at = l->pair[at].up;
        } while (at != from);
    } else if (head->n_cells == 0) {
        MPL_TRY(push_ref(s, head->source));
    }
    for (uint32_t k = 0; k < head->n_cells && !p->ring; k++)
        MPL_TRY(push_ref(s, head->cell + k));
    MPL_TRY(push_turn(l, p->param, begin, n_first, good));
out:
    return st;
}

/* The source's address: its cells in turn. */
static mpl_status turn_source(loop *l, const pair *head, bool *good)
{
    mpl_status st = MPL_OK;
    uint32_t begin = l->s->n_refs;

    for (uint32_t k = 0; k < head->n_cells; k++)
        MPL_TRY(push_ref(l->s, head->cell + k));
    MPL_TRY(push_turn(l, head->source, begin, 0, good));
out:
    return st;
}

/* The cell that certainly holds the output of pair i behind the loop; MPL_NONE when that depends on
 * the rounds. */
static uint32_t last_cell(const loop *l, const pair *p)
{
    const pair *head = &l->pair[p->chain];
    int64_t instance = l->rounds - p->age; /* of the source: that of the last round, less the hops
                                              in between */

    if (p->ring || head->n_cells == 0)
        return MPL_NONE;
    if (l->rounds >= p->age)
        return cell_of(head, instance);
    return l->rounds < 0 && head->n_cells == 1 && p->first == head->cell ? head->cell : MPL_NONE;
}

/* The output of a pair that is not copied. False when it cannot be kept. */
static mpl_status place_out(loop *l, uint32_t i, bool *good)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    const pair *p = &l->pair[i];
    uint32_t cell = last_cell(l, p), first_dep = s->n_deps;

    *good = true;
    if (p->out == MPL_NONE || (cell != MPL_NONE && mpl_cells_join(s, p->out, cell)))
        return MPL_OK;
    MPL_TRY(mpl_add_deps(s, p->source));
    if (l->rounds <= 0)
        MPL_TRY(mpl_add_item_deps(s, p->first));
    s->how[p->out] = MPL_HOW_FINAL;
    s->of[p->out] = l->op;
    s->ref0[p->out] = l->rounds <= 0 ? p->first : p->source;
    s->ref1[p->out] = p->source;
    s->same[p->out] = same_place(s, s->ref0[p->out]);
    if (same_place(s, p->source) != s->same[p->out])
        s->same[p->out] = MPL_NONE;
    s->dep_begin[p->out] = first_dep;
    s->dep_n[p->out] = s->n_deps - first_dep;
    *good = mpl_hold(s, p->out, mpl_row(s, p->out));
    memset(mpl_row(s, p->out), 0, s->words * sizeof *s->row);
out:
    return st;
}

/* A pair whose value is copied from round to round: the parameter has a cell that nothing else of
 * the loop uses. */
static mpl_status place_copied(loop *l, uint32_t i)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    pair *p = &l->pair[i];

    if (!p->wanted && p->out == MPL_NONE)
        return MPL_OK;
    s->how[p->param] = MPL_HOW_CELL;
    mpl_row_set(s, mpl_row(s, p->param), l->begin);
    mpl_row_set(s, mpl_row(s, p->param), l->end);
    s->result_copied[p->result] = 1;
    if (p->out != MPL_NONE && !mpl_cells_join(s, p->out, p->param))
        MPL_FAIL(s->ctx, MPL_EINPUT, "the output '%.100s' of a loop cannot be placed",
                 l->g->value_name[p->out]);
    if (!p->shared && s->how[p->init] == MPL_HOW_CELL && mpl_cells_join(s, p->init, p->param))
        return MPL_OK;
    s->in_copied[p->in] = 1;
    if (!hold_at(l, p->init, l->begin))
        MPL_FAIL(s->ctx, MPL_EINPUT, "the initial value '%.100s' of a loop cannot be kept",
                 l->g->value_name[p->init]);
out:
    return st;
}

/* Whether pair i cannot be copied before pair k is: what k copies may lie where the parameter of i
 * does. */
static bool waits_for(const loop *l, uint32_t i, uint32_t k)
{
    const pair *from = &l->pair[k];

    for (uint32_t n = 0; i != k && n < from->n_deps; n++)
        if (mpl_cell(l->s, l->s->deps[from->dep + n]) == mpl_cell(l->s, l->pair[i].param))
            return true;
    return false;
}

/* Makes all copies that wait for nobody; whether there were any. */
static bool copy_what_can(const loop *l, uint8_t *left)
{
    bool moved = false;

    for (uint32_t i = 0; i < l->n; i++) {
        bool waits = false;

        for (uint32_t k = 0; k < l->n && left[i] && !waits; k++)
            waits = left[k] && waits_for(l, i, k);
        moved = moved || (left[i] && !waits);
        left[i] = left[i] && waits;
    }
    return moved;
}

/* Bytes that are staged when pairs are copied one after the other, each as soon as it waits for
 * nobody; where all wait, the first that another waits for is staged. Whoever copies, and sees
 * which places really are the same, does likewise: then it stages some of these, and no others.
 * `left` has a 1 for each copied pair. */
static uint64_t staged_bytes(const loop *l, uint8_t *left)
{
    uint64_t bytes = 0;
    uint32_t stuck;

    do {
        while (copy_what_can(l, left)) {
        }
        stuck = MPL_NONE;
        for (uint32_t k = 0; k < l->n && stuck == MPL_NONE; k++)
            for (uint32_t i = 0; i < l->n && left[k] && stuck == MPL_NONE; i++)
                stuck = left[i] && waits_for(l, i, k) ? k : MPL_NONE;
        if (stuck != MPL_NONE) {
            bytes += l->g->value_bytes[l->pair[stuck].param];
            l->pair[stuck].n_deps = 0; /* nobody waits for it any more */
        }
    } while (stuck != MPL_NONE);
    return bytes;
}

/* Room for values that are copied crosswise, one into the place of the other. */
static mpl_status add_staging(loop *l)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    uint32_t n_deps = s->n_deps;
    uint64_t bytes;
    uint8_t *left = NULL;

    MPL_TRY(mpl_new(s->ctx, left, l->n));
    for (uint32_t i = 0; i < l->n; i++) {
        pair *p = &l->pair[i];

        left[i] = p->copied && s->result_copied[p->result];
        if (!left[i])
            continue;
        p->dep = s->n_deps;
        MPL_TRY(mpl_add_deps(s, p->source));
        p->n_deps = s->n_deps - p->dep;
    }
    bytes = staged_bytes(l, left);
    if (bytes > 0) {
        s->staging[l->body] = mpl_item_new(s, MPL_NONE, bytes, 0);
        mpl_row_set(s, mpl_row(s, s->staging[l->body]), l->end);
    }
out:
    s->n_deps = n_deps;
    mpl_free(s->ctx, left);
    return st;
}

/* Places all pairs; *bad: the first that has to be copied instead, MPL_NONE: none. What it did up
 * to there is not undone. */
static mpl_status attempt(loop *l, uint32_t *bad)
{
    mpl_status st = MPL_OK;
    bool good = true;

    *bad = MPL_NONE;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->pair[i].copied)
            MPL_TRY(place_copied(l, i));
    for (uint32_t i = 0; i < l->n; i++) {
        pair *p = &l->pair[i];
        bool used = !p->copied && (p->wanted || p->out != MPL_NONE);

        if (!used || p->ring || !is_made_here(l, p->source) || l->pair[p->chain].n_cells > 0)
            continue;
        if (!make_cells(l, p->chain))
            return *bad = i, MPL_OK;
    }
    settle_firsts(l);
    for (uint32_t i = 0; i < l->n; i++)
        if (!l->pair[i].copied &&
            (!place_first(l, i) || (l->pair[i].wanted && !turn_is_safe(l, i))))
            return *bad = i, MPL_OK;
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->pair[i].wanted && !l->pair[i].copied)
            MPL_TRY(turn_param(l, i, &good));
        if (!good)
            return *bad = i, MPL_OK;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->pair[i].n_cells > 0)
            MPL_TRY(turn_source(l, &l->pair[i], &good));
        if (!good)
            return *bad = i, MPL_OK;
    }
    for (uint32_t i = 0; i < l->n && good; i++)
        if (!l->pair[i].copied) {
            MPL_TRY(place_out(l, i, &good));
            *bad = good ? MPL_NONE : i;
        }
    if (good)
        MPL_TRY(add_staging(l));
out:
    return st;
}

/* ---- attempts ---- */

/* All of the store that an attempt changes, but for result_copied: what one copies all that follow
 * do. */
typedef struct snapshot {
    void *part[13];
    uint32_t n_items, n_turns, n_refs, n_deps;
} snapshot;

/* The arrays that an attempt changes in place, with their sizes in bytes. */
static uint32_t list_parts(mpl_store *s, void **at, size_t *size)
{
    const mpl_graph *g = s->g;
    size_t n = s->n_items;
    uint32_t k = 0;

#define PART(array, count) (at[k] = s->array, size[k++] = (count) * sizeof *s->array)
    PART(row, n * s->words);
    PART(parent, n);
    PART(next, n);
    PART(turn, n);
    PART(bytes, n);
    PART(how, (size_t)g->n_values);
    PART(of, (size_t)g->n_values);
    PART(ref0, (size_t)g->n_values);
    PART(ref1, (size_t)g->n_values);
    PART(dep_begin, (size_t)g->n_values);
    PART(dep_n, (size_t)g->n_values);
    PART(in_copied, (size_t)g->op_in_begin[g->n_ops]);
    PART(staging, (size_t)g->n_blocks);
#undef PART
    return k;
}

static mpl_status snapshot_take(mpl_store *s, snapshot *snap)
{
    mpl_status st = MPL_OK;
    void *at[13];
    size_t size[13];
    uint32_t n = list_parts(s, at, size);

    snap->n_items = s->n_items, snap->n_turns = s->n_turns, snap->n_refs = s->n_refs,
    snap->n_deps = s->n_deps;
    for (uint32_t k = 0; k < n; k++) {
        MPL_TRY((snap->part[k] = mpl_alloc(s->ctx, size[k], 1)) != NULL ? MPL_OK : MPL_EMEM);
        memcpy(snap->part[k], at[k], size[k]);
    }
out:
    return st;
}

static void snapshot_restore(mpl_store *s, const snapshot *snap)
{
    void *at[13];
    size_t size[13];
    uint32_t n;

    memset(mpl_row(s, snap->n_items), 0,
           (size_t)(s->n_items - snap->n_items) * s->words * sizeof *s->row);
    s->n_items = snap->n_items, s->n_turns = snap->n_turns, s->n_refs = snap->n_refs,
    s->n_deps = snap->n_deps;
    n = list_parts(s, at, size);
    for (uint32_t k = 0; k < n; k++)
        memcpy(at[k], snap->part[k], size[k]);
}

mpl_status mpl_store_while(mpl_store *s, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    uint32_t body = mpl_op_first_body(g, op), bad;
    loop l = {.s = s, .g = g, .op = op, .body = body, .n = mpl_n_carried(g, op)};
    snapshot snap = {{NULL}, 0, 0, 0, 0};
    bool *copied = NULL;

    l.begin = s->program->begin_step[body];
    l.end = s->program->end_step[body];
    l.rounds = known_rounds(&l);
    MPL_TRY(mpl_new(s->ctx, l.pair, l.n));
    MPL_TRY(mpl_new(s->ctx, copied, l.n));
    MPL_TRY(mpl_new(s->ctx, l.row, s->words));
    MPL_TRY(mpl_new(s->ctx, l.other, s->words));
    MPL_TRY(snapshot_take(s, &snap));
    for (;;) {
        memset(l.pair, 0, l.n * sizeof *l.pair);
        find_pairs(&l);
        for (uint32_t i = 0; i < l.n; i++)
            l.pair[i].copied = l.pair[i].copied || copied[i];
        link_pairs(&l);
        MPL_TRY(find_shared(&l));
        MPL_TRY(attempt(&l, &bad));
        if (bad == MPL_NONE)
            break;
        mpl_assert(!copied[bad]);
        copied[bad] = true;
        snapshot_restore(s, &snap);
    }
out:
    for (size_t k = 0; k < sizeof snap.part / sizeof *snap.part; k++)
        mpl_free(s->ctx, snap.part[k]);
    mpl_free(s->ctx, l.pair);
    mpl_free(s->ctx, copied);
    mpl_free(s->ctx, l.row);
    mpl_free(s->ctx, l.other);
    return st;
}
