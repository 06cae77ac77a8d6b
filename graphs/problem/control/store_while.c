/* store_while.c -- places the carried values of a while, round by round. See storage.h.
 *
 * Each parameter belongs to a chain: it receives a value of the previous round, which may be
 * another parameter, and so on back to a value that the body makes (the source), to a value from
 * outside, or around a ring. The instance of the source that round r makes is read in round r + age
 * by the parameter of that age. With n cells, instance i lies in cell i mod n; n is the least
 * number for which no step needs two instances in one cell. In the first rounds a parameter reads
 * the chain's initial values. If possible these already lie in the cells; else the parameter points
 * at them; else they are copied once, on entry.
 *
 * A pair that cannot be placed so is copied at the end of each round, and the attempt restarts. */
#include "graphs/problem/control/store_while_priv.h"
#include "graphs/problem/liveness.h"

/* ---- rows ---- */

static void row_or(const mpl_store *s, uint64_t *to, const uint64_t *from)
{
    for (uint32_t w = 0; w < s->words; w++)
        to[w] |= from[w];
}

/* ORs the rows of all items in the cell of an item. */
static void cell_row(mpl_store *s, uint32_t item, uint64_t *to)
{
    uint32_t at = item;

    do {
        row_or(s, to, mpl_row(s, at));
        at = s->next[at];
    } while (at != item);
}

/* Steps at which instances of that age are needed. */
static void age_row(mpl_loop *loop, uint32_t head, uint32_t age, uint64_t *to)
{
    memset(to, 0, loop->store->words * sizeof *to);
    if (age == 0)
        cell_row(loop->store, loop->pair[head].source, to);
    for (uint32_t i = 0; i < loop->n && age > 0; i++)
        if (loop->pair[i].chain == head && loop->pair[i].age == age && loop->pair[i].wanted &&
            !loop->pair[i].copied)
            cell_row(loop->store, loop->pair[i].param, to);
}

/* ---- number of cells of a chain ---- */

static bool is_single(const mpl_store *s, uint32_t item)
{
    return s->next[item] == item;
}

/* Whether the source may overwrite the only parameter of age `age`, at the one step that needs
 * both. */
static bool may_overwrite(const mpl_loop *loop, uint32_t head, uint32_t age)
{
    const mpl_store *s = loop->store;
    mpl_value source = loop->pair[head].source, param = MPL_NONE;
    mpl_op op = loop->g->value_op[source];
    uint32_t step;

    if (op == MPL_NONE)
        return false;
    step = s->program->op_step[op];
    for (uint32_t i = 0; i < loop->n; i++)
        if (loop->pair[i].chain == head && loop->pair[i].age == age && loop->pair[i].wanted &&
            !loop->pair[i].copied) {
            if (param != MPL_NONE)
                return false;
            param = loop->pair[i].param;
        }
    if (param == MPL_NONE || !is_single(s, param) || !is_single(s, source) ||
        !s->spec->options->in_place || mpl_op_output(loop->g, op, 0) != source)
        return false;
    if (!mpl_rows_meet_at(s, loop->row, loop->other, step))
        return false;
    for (uint32_t i = loop->g->op_in_begin[op]; i < loop->g->op_in_begin[op + 1]; i++)
        if (loop->g->op_in[i] != MPL_NONE && s->spec->root[loop->g->op_in[i]] == param &&
            mpl_in_place_operand(loop->g, s->spec->root, NULL, op, i - loop->g->op_in_begin[op]))
            return true;
    return false;
}

/* Whether instances whose ages differ by a multiple of n can share a cell. */
static bool cells_suffice(mpl_loop *loop, uint32_t head, uint32_t oldest, uint32_t n)
{
    for (uint32_t a = 0; a <= oldest; a++)
        for (uint32_t b = a + n; b <= oldest; b += n) {
            age_row(loop, head, a, loop->row);
            age_row(loop, head, b, loop->other);
            if (mpl_rows_meet(loop->store, loop->row, loop->other) &&
                (a > 0 || !may_overwrite(loop, head, b)))
                return false;
        }
    return true;
}

/* Whether parameters that already share a cell, with each other or with the source, have ages equal
 * modulo n. */
static bool ages_agree(mpl_loop *loop, uint32_t head, uint32_t n)
{
    uint32_t source = mpl_cell(loop->store, loop->pair[head].source);

    for (uint32_t i = 0; i < loop->n; i++) {
        const mpl_pair *pair = &loop->pair[i];

        if (pair->chain != head || !pair->wanted || pair->copied)
            continue;
        if (mpl_cell(loop->store, pair->param) == source && pair->age % n != 0)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (loop->pair[k].chain == head && loop->pair[k].wanted && !loop->pair[k].copied &&
                mpl_cell(loop->store, loop->pair[k].param) == mpl_cell(loop->store, pair->param) &&
                loop->pair[k].age % n != pair->age % n)
                return false;
    }
    return true;
}

/* ---- cells and turns ---- */

static uint32_t oldest_of(const mpl_loop *loop, uint32_t head)
{
    uint32_t oldest = 0;

    for (uint32_t i = 0; i < loop->n; i++)
        if (loop->pair[i].chain == head && loop->pair[i].wanted && !loop->pair[i].copied &&
            loop->pair[i].age > oldest)
            oldest = loop->pair[i].age;
    return oldest;
}

/* Cell of an instance; instance -age is the one made `age` rounds before round 0. */
static uint32_t cell_of(const mpl_pair *head, int64_t instance)
{
    int64_t n = head->n_cells;

    return head->cell + (uint32_t)((instance % n + n) % n);
}

/* Gives a chain of the body its cells. False when no number of cells works. */
static bool make_cells(mpl_loop *loop, uint32_t at)
{
    mpl_pair *head = &loop->pair[at];
    uint32_t oldest = oldest_of(loop, at), n = 1;

    while (n <= oldest && !(ages_agree(loop, at, n) && cells_suffice(loop, at, oldest, n)))
        n++;
    if (!ages_agree(loop, at, n))
        return false;
    head->n_cells = n;
    head->cell = loop->store->n_items;
    for (uint32_t k = 0; k < n; k++)
        mpl_item_new(loop->store, head->source, loop->g->value_bytes[head->source], k);
    for (uint32_t age = 0; age <= oldest; age++) {
        age_row(loop, at, age, loop->row);
        for (uint32_t k = 0; k < n; k++)
            row_or(loop->store, mpl_row(loop->store, head->cell + k), loop->row);
    }
    return true;
}

static mpl_status push_ref(mpl_store *s, uint32_t item)
{
    MPL_PASS(mpl_reserve(s->ctx, s->refs, s->refs_cap, (size_t)s->n_refs + 1));
    s->refs[s->n_refs++] = item;
    return MPL_OK;
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

/* Whether a copied pair's parameter lies in the cell of `item`; that cell must not move. */
static bool holds_copied(const mpl_loop *loop, uint32_t item)
{
    for (uint32_t i = 0; i < loop->n; i++)
        if (loop->pair[i].copied && loop->store->how[loop->pair[i].param] == MPL_HOW_CELL &&
            mpl_cell(loop->store, loop->pair[i].param) == mpl_cell(loop->store, item))
            return true;
    return false;
}

/* Makes the cell of `item` follow the refs from `begin` on. Shortens the first part where the cycle
 * gives the same. *good: false when other values in the cell have another address. */
static mpl_status push_turn(mpl_loop *loop, uint32_t item, uint32_t begin, uint32_t n_first,
                            bool *good)
{
    mpl_store *s = loop->store;
    uint32_t cell = mpl_cell(s, item);
    mpl_turn t = {.block = loop->body,
                  .begin = begin,
                  .n_first = n_first,
                  .n_cycle = s->n_refs - begin - n_first};

    while (t.n_first > 0 && s->refs[begin + t.n_first - 1] == s->refs[s->n_refs - 1]) {
        t.n_first--;
        s->n_refs--; /* rotate the cycle back by one */
    }
    *good = !holds_copied(loop, item) &&
            (s->turn[cell] == MPL_NONE || turns_equal(s, &s->turns[s->turn[cell]], &t));
    MPL_PASS(mpl_reserve(s->ctx, s->turns, s->turns_cap, (size_t)s->n_turns + 1));
    s->turn[cell] = s->n_turns;
    s->turns[s->n_turns++] = t;
    return MPL_OK;
}

static bool same_age(const mpl_loop *loop, uint32_t i)
{
    for (uint32_t k = 0; k < loop->n; k++)
        if (k != i && !loop->pair[k].copied && loop->pair[k].chain == loop->pair[i].chain &&
            loop->pair[k].age == loop->pair[i].age &&
            (loop->pair[k].wanted || loop->pair[k].out != MPL_NONE))
            return true;
    return false;
}

/* Merges initial values with the cells that their instances would have, where they do not
 * conflict. */
static void settle_firsts(mpl_loop *loop)
{
    for (uint32_t i = 0; i < loop->n; i++) {
        mpl_pair *pair = &loop->pair[i], *head = &loop->pair[pair->chain];
        uint32_t cell;

        if (pair->copied || pair->ring || head->n_cells == 0 ||
            (!pair->wanted && pair->out == MPL_NONE))
            continue;
        cell = cell_of(head, -(int64_t)pair->age);
        if (!pair->shared && loop->store->how[pair->init] == MPL_HOW_CELL &&
            mpl_cells_join(loop->store, pair->init, cell))
            pair->first = cell;
    }
}

/* Hops from pair x up to pair i; MPL_NONE when i is not above x. */
static uint32_t hops_to(const mpl_loop *loop, uint32_t x, uint32_t i)
{
    uint32_t n = 0;

    while (x != i) {
        x = loop->pair[x].up;
        if (x == MPL_NONE || ++n > loop->n)
            return MPL_NONE;
    }
    return n;
}

/* Steps at which parameters that point at the initial value of pair i read it. *fits: each of them
 * is alone in its cell, so nothing else is written there. */
static void first_row(mpl_loop *loop, uint32_t i, uint64_t *row, bool *fits)
{
    memset(row, 0, loop->store->words * sizeof *row);
    *fits = true;
    for (uint32_t x = 0; x < loop->n; x++) {
        uint32_t hops =
            loop->pair[x].wanted && !loop->pair[x].copied ? hops_to(loop, x, i) : MPL_NONE;

        if (hops == MPL_NONE)
            continue;
        *fits = *fits && is_single(loop->store, loop->pair[x].param);
        cell_row(loop->store, loop->pair[x].param, row); /* all steps of a round that passes it on
                                                          */
    }
}

/* Places an initial value that did not settle: it stays where it is, or is copied on entry. False
 * when it cannot even be kept until the copy. */
static bool place_first(mpl_loop *loop, uint32_t i)
{
    mpl_pair *pair = &loop->pair[i], *head = &loop->pair[pair->chain];
    bool fits;

    if (pair->first != pair->init)
        return true;
    first_row(loop, i, loop->row, &fits);
    if (fits && mpl_hold(loop->store, pair->init, loop->row))
        return true;
    if (!mpl_loop_hold_at(loop, pair->init, loop->begin))
        return false;
    loop->store->in_copied[pair->in] = 1;
    if (!pair->ring && head->n_cells > 0 && !same_age(loop, i)) {
        pair->first = cell_of(head, -(int64_t)pair->age);
        return true;
    }
    pair->first = mpl_item_new(loop->store, pair->param, loop->g->value_bytes[pair->param], 0);
    memcpy(mpl_row(loop->store, pair->first), loop->row, loop->store->words * sizeof *loop->row);
    mpl_row_set(loop->store, mpl_row(loop->store, pair->first), loop->begin);
    return true;
}

static bool in_ring(const mpl_loop *loop, uint32_t i)
{
    uint32_t at = i;

    for (uint32_t k = 0; k <= loop->n; k++) {
        at = loop->pair[at].up;
        if (at == i || at == MPL_NONE)
            break;
    }
    return at == i;
}

/* Whether another value in the cell of parameter i is needed while another parameter with the same
 * instance still reads it. */
static bool hides_instance(mpl_loop *loop, uint32_t i)
{
    mpl_store *s = loop->store;
    const mpl_pair *pair = &loop->pair[i];

    for (uint32_t k = 0; k < loop->n; k++) {
        const mpl_pair *other = &loop->pair[k];

        if (k == i || other->copied || !other->wanted || other->chain != pair->chain ||
            other->age != pair->age || mpl_cell(s, other->param) == mpl_cell(s, pair->param))
            continue;
        memset(loop->row, 0, s->words * sizeof *loop->row);
        cell_row(s, other->param, loop->row);
        for (uint32_t at = s->next[pair->param]; at != pair->param; at = s->next[at])
            if (mpl_rows_meet(s, mpl_row(s, at), loop->row))
                return true;
    }
    return false;
}

/* Whether a parameter that shares a cell can take the address that turn_param gives it: writes of
 * the other values must not destroy what is still read. */
static bool turn_is_safe(mpl_loop *loop, uint32_t i)
{
    const mpl_pair *pair = &loop->pair[i], *head = &loop->pair[pair->chain];

    if (is_single(loop->store, pair->param))
        return true;
    if (pair->ring || head->n_cells == 0 || hides_instance(loop, i))
        return false;
    for (uint32_t at = i; at != MPL_NONE; at = loop->pair[at].up) {
        uint32_t first = loop->pair[at].first;
        bool own = first >= head->cell && first < head->cell + head->n_cells;

        if (!own && (first < loop->g->n_values ||
                     mpl_cell(loop->store, pair->param) == mpl_cell(loop->store, head->source)))
            return false;
    }
    return true;
}

/* ---- one attempt ---- */

/* Sets the address of a parameter in each round. */
static mpl_status turn_param(mpl_loop *loop, uint32_t i, bool *good)
{
    mpl_store *s = loop->store;
    const mpl_pair *pair = &loop->pair[i], *head = &loop->pair[pair->chain];
    uint32_t begin = s->n_refs, at = i, n_first = pair->age;

    if (pair->ring) /* up to the ring's entry */
        for (n_first = 0; !in_ring(loop, at); at = loop->pair[at].up, n_first++)
            MPL_PASS(push_ref(s, loop->pair[at].first));
    for (uint32_t r = 0; r < n_first && !pair->ring; r++, at = loop->pair[at].up)
        MPL_PASS(push_ref(s, loop->pair[at].first));
    if (pair->ring) {
        uint32_t from = at;

        do {
            MPL_PASS(push_ref(s, loop->pair[at].first));
            at = loop->pair[at].up;
        } while (at != from);
    } else if (head->n_cells == 0) {
        MPL_PASS(push_ref(s, head->source));
    }
    for (uint32_t k = 0; k < head->n_cells && !pair->ring; k++)
        MPL_PASS(push_ref(s, head->cell + k));
    return push_turn(loop, pair->param, begin, n_first, good);
}

/* Sets the address of the source: its cells in turn. */
static mpl_status turn_source(mpl_loop *loop, const mpl_pair *head, bool *good)
{
    uint32_t begin = loop->store->n_refs;

    for (uint32_t k = 0; k < head->n_cells; k++)
        MPL_PASS(push_ref(loop->store, head->cell + k));
    return push_turn(loop, head->source, begin, 0, good);
}

/* The cell that certainly holds the output of pair i after the loop; MPL_NONE when it depends on
 * the number of rounds. */
static uint32_t last_cell(const mpl_loop *loop, const mpl_pair *pair)
{
    const mpl_pair *head = &loop->pair[pair->chain];
    int64_t instance = loop->rounds - pair->age; /* last round's instance of the source, less the
                                                    hops */

    if (pair->ring || head->n_cells == 0)
        return MPL_NONE;
    if (loop->rounds >= pair->age)
        return cell_of(head, instance);
    return loop->rounds < 0 && head->n_cells == 1 && pair->first == head->cell ? head->cell
                                                                               : MPL_NONE;
}

/* Places the output of a pair that is not copied. False when it cannot be kept. */
static mpl_status place_out(mpl_loop *loop, uint32_t i, bool *good)
{
    mpl_store *s = loop->store;
    const mpl_pair *pair = &loop->pair[i];
    uint32_t cell = last_cell(loop, pair), first_dep = s->n_deps;

    *good = true;
    if (pair->out == MPL_NONE || (cell != MPL_NONE && mpl_cells_join(s, pair->out, cell)))
        return MPL_OK;
    MPL_PASS(mpl_add_deps(s, pair->source));
    if (loop->rounds <= 0)
        MPL_PASS(mpl_add_item_deps(s, pair->first));
    s->how[pair->out] = MPL_HOW_FINAL;
    s->of[pair->out] = loop->op;
    s->ref0[pair->out] = loop->rounds <= 0 ? pair->first : pair->source;
    s->ref1[pair->out] = pair->source;
    s->same[pair->out] = mpl_loop_same_place(s, s->ref0[pair->out]);
    if (mpl_loop_same_place(s, pair->source) != s->same[pair->out])
        s->same[pair->out] = MPL_NONE;
    s->dep_begin[pair->out] = first_dep;
    s->dep_n[pair->out] = s->n_deps - first_dep;
    *good = mpl_hold(s, pair->out, mpl_row(s, pair->out));
    memset(mpl_row(s, pair->out), 0, s->words * sizeof *s->row);
    return MPL_OK;
}

/* A pair of the chain that is not copied yet; a chain with cells has one. */
static uint32_t uncopied(const mpl_loop *loop, uint32_t head)
{
    uint32_t i = 0;

    while (loop->pair[i].copied || loop->pair[i].chain != head)
        i++;
    return i;
}

/* Places all pairs. *bad: the first that must be copied instead; MPL_NONE: none. A failed attempt
 * is not undone here. */
static mpl_status attempt(mpl_loop *loop, uint32_t *bad)
{
    bool good = true;

    *bad = MPL_NONE;
    for (uint32_t i = 0; i < loop->n; i++)
        if (loop->pair[i].copied)
            MPL_PASS(mpl_loop_place_copied(loop, i));
    for (uint32_t i = 0; i < loop->n; i++) {
        mpl_pair *pair = &loop->pair[i];
        bool used = !pair->copied && (pair->wanted || pair->out != MPL_NONE);

        if (!used || pair->ring || !mpl_loop_is_made_here(loop, pair->source) ||
            loop->pair[pair->chain].n_cells > 0)
            continue;
        if (!make_cells(loop, pair->chain))
            return *bad = i, MPL_OK;
    }
    settle_firsts(loop);
    for (uint32_t i = 0; i < loop->n; i++)
        if (!loop->pair[i].copied &&
            (!place_first(loop, i) || (loop->pair[i].wanted && !turn_is_safe(loop, i))))
            return *bad = i, MPL_OK;
    for (uint32_t i = 0; i < loop->n; i++) {
        if (loop->pair[i].wanted && !loop->pair[i].copied)
            MPL_PASS(turn_param(loop, i, &good));
        if (!good)
            return *bad = i, MPL_OK;
    }
    for (uint32_t i = 0; i < loop->n; i++) {
        if (loop->pair[i].n_cells > 0)
            MPL_PASS(turn_source(loop, &loop->pair[i], &good));
        if (!good)
            return *bad = uncopied(loop, i), MPL_OK;
    }
    for (uint32_t i = 0; i < loop->n && good; i++)
        if (!loop->pair[i].copied) {
            MPL_PASS(place_out(loop, i, &good));
            *bad = good ? MPL_NONE : i;
        }
    if (good)
        MPL_PASS(mpl_loop_add_staging(loop));
    return MPL_OK;
}

/* ---- attempts ---- */

/* State that an attempt changes. Excludes result_copied: a pair that one attempt copies stays
 * copied. */
typedef struct snapshot {
    void *part[13];
    uint32_t n_items, n_turns, n_refs, n_deps;
} snapshot;

/* Lists the arrays that an attempt changes in place, with their sizes [byte]. */
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
    void *at[13];
    size_t size[13];
    uint32_t n = list_parts(s, at, size);

    snap->n_items = s->n_items, snap->n_turns = s->n_turns, snap->n_refs = s->n_refs,
    snap->n_deps = s->n_deps;
    for (uint32_t k = 0; k < n; k++) {
        MPL_PASS((snap->part[k] = mpl_alloc(s->ctx, size[k], 1)) != NULL ? MPL_OK : MPL_EMEM);
        memcpy(snap->part[k], at[k], size[k]);
    }
    return MPL_OK;
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
    mpl_loop l = {.store = s, .g = g, .op = op, .body = body, .n = mpl_n_carried(g, op)};
    snapshot snap = {{NULL}, 0, 0, 0, 0};
    bool *copied = NULL;

    l.begin = s->program->begin_step[body];
    l.end = s->program->end_step[body];
    l.rounds = mpl_loop_known_rounds(&l);
    MPL_TRY(mpl_new_each(s->ctx, l.n, l.pair, copied));
    MPL_TRY(mpl_new_each(s->ctx, s->words, l.row, l.other));
    MPL_TRY(snapshot_take(s, &snap));
    for (;;) {
        memset(l.pair, 0, l.n * sizeof *l.pair);
        mpl_loop_find_pairs(&l);
        for (uint32_t i = 0; i < l.n; i++)
            l.pair[i].copied = l.pair[i].copied || copied[i];
        mpl_loop_link_pairs(&l);
        MPL_TRY(mpl_loop_find_shared(&l));
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
    mpl_free_each(s->ctx, l.pair, copied, l.row, l.other);
    return st;
}
