/* tagged_rules.c -- what the verifier of control flow refuses although it may be correct:
 * graphs/problem/control/LOOPS.md, "Where the verifier is strict". A value may be lost by a rule
 * although its bytes are intact. */
#include "tests/tagged/tagged_priv.h"

enum { MOST_RANGES = 512 };

typedef struct range {
    uint32_t slab;
    uint64_t begin, end;
    mpl_buffer of; /* MPL_NONE: the value's own memory */
} range;

typedef struct ranges {
    uint32_t n;
    range at[MOST_RANGES];
} ranges;

/* ---- all paths ---- */

static bool is_in_round(const machine *m, uint32_t block)
{
    return m->counted[block] && !m->done[m->g->block_owner[block]];
}

/* The items that a place may be. It is a single one for a loop that is ending, is in a round, or
 * whose rounds the graph gives. */
static void all_items(const machine *m, const mpl_place *p, uint32_t *begin, uint32_t *end)
{
    mpl_op op = p->kind == MPL_PLACE_CYCLE ? m->g->block_owner[p->of] : p->of;
    bool known = m->settling == op;
    uint32_t body = m->g->op_body[m->g->op_body_begin[op]];
    uint64_t rounds;

    *begin = 0, *end = p->n;
    if (p->kind == MPL_PLACE_BRANCH) {
        if (known)
            *begin = m->taken[op] == NO_BRANCH ? p->n - 1 : (uint32_t)m->taken[op],
            *end = *begin + 1;
        return;
    }
    rounds = known ? m->round[body] : m->fixed_rounds[op] >= 0 ? (uint64_t)m->fixed_rounds[op] : 0;
    if (p->kind == MPL_PLACE_FINAL) {
        if (known || m->fixed_rounds[op] >= 0 || m->most[op] == 0)
            *begin = rounds > 0, *end = *begin + 1;
        return;
    }
    if (is_in_round(m, p->of) || known) {
        uint64_t round = is_in_round(m, p->of) ? m->round[p->of] : rounds > 0 ? rounds - 1 : 0;

        *begin = round < p->n_first
                     ? (uint32_t)round
                     : p->n_first + (uint32_t)((round - p->n_first) % (p->n - p->n_first));
        *end = *begin + 1;
    } else if ((uint64_t)m->most[op] < p->n) {
        *end = m->most[op] > 0 ? (uint32_t)m->most[op] : 1;
    }
}

static void add_range(ranges *r, range new)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->at[i].slab == new.slab && r->at[i].begin == new.begin && r->at[i].end == new.end &&
            r->at[i].of == new.of)
            return;
    assert_true(r->n < MOST_RANGES);
    r->at[r->n++] = new;
}

/* Number of rounds of loop `op`, or branch taken by case `op`, if known; -1: any of 0 to *most. */
static int64_t known_way(const machine *m, const mpl_place *p, mpl_op op, int64_t *most)
{
    bool branch = p->kind == MPL_PLACE_BRANCH;

    *most = branch ? (int64_t)p->n - 1 : m->most[op];
    if (m->assumed[op] >= 0)
        return m->assumed[op];
    if (m->settling == op)
        return !branch ? (int64_t)m->round[m->g->op_body[m->g->op_body_begin[op]]]
               : m->taken[op] == NO_BRANCH ? *most
                                           : m->taken[op];
    if (p->kind == MPL_PLACE_CYCLE && is_in_round(m, p->of)) /* the current round is the last */
        return (int64_t)m->round[p->of] + 1;
    return p->kind == MPL_PLACE_FINAL ? m->fixed_rounds[op] : -1;
}

static uint32_t item_after(const mpl_place *p, int64_t went)
{
    uint64_t round = went > 0 ? (uint64_t)went - 1 : 0;

    if (p->kind == MPL_PLACE_BRANCH)
        return (uint32_t)went;
    if (p->kind == MPL_PLACE_FINAL)
        return went > 0;
    return round < p->n_first ? (uint32_t)round
                              : p->n_first + (uint32_t)((round - p->n_first) % (p->n - p->n_first));
}

static void add_ways(machine *m, uint32_t id, uint64_t offset, uint64_t bytes, ranges *r)
{
    const mpl_place *p = place_of(m, id);
    mpl_op op = p->kind == MPL_PLACE_CYCLE ? m->g->block_owner[p->of] : p->of;
    int64_t known, most, was;

    if (p->kind == MPL_PLACE_BUFFER || p->kind == MPL_PLACE_PINNED) {
        bool buffer = p->kind == MPL_PLACE_BUFFER;
        uint64_t at = (buffer ? m->plan->offset[p->of] : 0) + offset;

        add_range(r, (range){buffer ? mpl_plan_arena(m->p, m->plan, p->of) : m->n_arenas + p->of,
                             at, at + bytes, buffer ? p->of : MPL_NONE});
        return;
    }
    if (p->kind == MPL_PLACE_SLICE) { /* all ranges that it is part of */
        uint64_t whole = (uint64_t)mpl_while_most_rounds(m->g, m->g->block_owner[p->of]) * p->bytes;

        add_ways(m, item_of(m, id, 0), 0, whole > bytes ? whole : bytes, r);
        return;
    }
    known = known_way(m, p, op, &most);
    was = m->assumed[op];
    for (int64_t went = known >= 0 ? known : 0; went <= (known >= 0 ? known : most); went++) {
        m->assumed[op] = p->kind == MPL_PLACE_CYCLE && is_in_round(m, p->of) ? was : went;
        add_ways(m, item_of(m, id, item_after(p, went)), offset, bytes, r);
    }
    m->assumed[op] = was;
}

static void ways_of(machine *m, mpl_value v, ranges *r)
{
    mpl_value root = m->map->value_root[v];
    uint32_t place = m->map->places->value_place[root];
    spot s = m->bound[v];

    r->n = 0;
    if (bytes_of(m, v) == 0)
        return;
    if (place != MPL_NONE) {
        add_ways(m, place, m->map->value_offset != NULL ? m->map->value_offset[v] : 0,
                 bytes_of(m, v), r);
    } else if (m->map->value_buffer[v] != MPL_NONE) {
        tagged_where(m, v, &s);
        r->at[r->n++] = (range){s.slab, s.at, s.at + bytes_of(m, v), m->map->value_buffer[v]};
    } else if (s.slab != MPL_NONE) {
        r->at[r->n++] = (range){s.slab, s.at, s.at + bytes_of(m, v), MPL_NONE};
    }
}

static bool ranges_meet(const range *a, const range *b)
{
    return a->slab == b->slab && a->begin < b->end && b->begin < a->end;
}

static bool any_meet(const ranges *a, const ranges *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++)
            if (ranges_meet(&a->at[i], &b->at[k]))
                return true;
    return false;
}

/* ---- permuted carried values ---- */

typedef struct carried {
    ranges from, to; /* from: empty once put aside */
    uint64_t bytes;
    bool pending, aside;
} carried;

/* Whether, on some path, a's copy overwrites the source of b's pending copy; a copy of a value onto
 * itself overwrites nothing. */
static bool waits_in_some_way(const carried *a, const carried *b)
{
    for (uint32_t i = 0; b->pending && i < b->from.n; i++) {
        bool stays = false;

        for (uint32_t k = 0; a == b && k < a->to.n; k++)
            stays = stays || (a->to.at[k].slab == b->from.at[i].slab &&
                              a->to.at[k].begin == b->from.at[i].begin);
        for (uint32_t k = 0; !stays && k < a->to.n; k++)
            if (ranges_meet(&a->to.at[k], &b->from.at[i]))
                return true;
    }
    return false;
}

static bool waits_for_any(const carried *c, uint32_t n, uint32_t a)
{
    for (uint32_t b = 0; b < n; b++)
        if (waits_in_some_way(&c[a], &c[b]))
            return true;
    return false;
}

/* The first copy that another one waits for; n: none. */
static uint32_t first_awaited(const carried *c, uint32_t n)
{
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t a = 0; a < n; a++)
            if (c[a].pending && waits_in_some_way(&c[a], &c[b]))
                return b;
    return n;
}

/* Performs all copies that wait for nothing; returns whether there were any. *aside: whether
 * something is still put aside. */
static bool copy_those_that_can(carried *c, uint32_t n, bool *aside)
{
    bool moved = false;

    *aside = false;
    for (uint32_t a = 0; a < n; a++) {
        bool goes = c[a].pending && !waits_for_any(c, n, a);

        moved = moved || goes;
        c[a].pending = c[a].pending && !goes;
    }
    for (uint32_t a = 0; a < n; a++)
        *aside = *aside || (c[a].pending && c[a].aside);
    return moved;
}

/* By the rules, copies wait for each other if their places may overlap on any path, and each cycle
 * of waiting copies needs staging room. The current round is the next one. */
way tagged_keep_room(machine *m, const loop *l, const bool *copied)
{
    mpl_buffer b = m->map->places->staging[l->body];
    uint64_t room = b != MPL_NONE ? m->p->bytes[b] : 0, used = 0;
    carried *c = calloc(l->n_carried + 1, sizeof *c);
    bool aside = false;
    way w = GO;

    for (uint32_t i = 0; m->strict && i < l->n_carried; i++) {
        c[i].pending = copied[i];
        c[i].bytes = bytes_of(m, l->param[1 + i]);
        ways_of(m, l->param[1 + i], &c[i].to);
        m->round[l->body]--;
        ways_of(m, l->result[1 + i], &c[i].from);
        m->round[l->body]++;
    }
    for (uint32_t at = 0; m->strict && at < l->n_carried && w == GO;) {
        if (copy_those_that_can(c, l->n_carried, &aside))
            continue;
        used = aside ? used : 0;
        at = first_awaited(c, l->n_carried);
        if (at == l->n_carried)
            break;
        used += c[at].bytes;
        if (used > room)
            w = tagged_wrong(m, "no room to carry crosswise in some way", m->g->op_name[l->op],
                             name_of(m, l->param[1 + at]));
        c[at].from.n = 0;
        c[at].aside = true;
    }
    free(c);
    return w;
}

/* ---- lost values ---- */

mpl_value tagged_holder(const machine *m, mpl_value v)
{
    while (m->g->value_op[v] != MPL_NONE && m->g->op_kind[m->g->value_op[v]] != MPL_OP_concat &&
           tagged_is_idle(m, m->g->value_op[v]))
        v = m->g->op_in[m->g->op_in_begin[m->g->value_op[v]]];
    return v;
}

bool tagged_is_lost(const machine *m, mpl_value v)
{
    return m->strict && m->lost[tagged_holder(m, v)] != 0;
}

/* Whether `writer` lies in the row of stacked output v that this round writes. */
static bool is_row_of(const machine *m, mpl_value writer, mpl_value v)
{
    mpl_op op = m->g->value_op[v];
    uint32_t id =
        writer != MPL_NONE ? m->map->places->value_place[m->map->value_root[writer]] : MPL_NONE;
    uint32_t k = 0, n_flags = 0;
    const int64_t *flag;
    spot whole;
    loop l;

    if (id == MPL_NONE || op == MPL_NONE || m->g->op_kind[op] != MPL_OP_while)
        return false;
    l = tagged_loop_of(m, op);
    while (l.out[k] != v)
        k++;
    if (k < l.n_carried || !is_in_round(m, l.body))
        return false;
    flag = mpl_attr_ints(m->g, op, MPL_ATTR_scan_reverse, &n_flags);
    k += l.n_scans - l.n_carried;
    for (;;) {
        const mpl_place *p = place_of(m, id);
        uint32_t begin, end;

        if (p->kind == MPL_PLACE_BUFFER || p->kind == MPL_PLACE_PINNED)
            return false;
        if (p->kind == MPL_PLACE_SLICE && p->of == l.body &&
            (p->reversed != 0) == (k < n_flags && flag[k] != 0) &&
            p->bytes == bytes_of(m, l.result[1 + l.n_carried + k - l.n_scans]) &&
            bytes_of(m, writer) <= p->bytes && tagged_evaluate(m, item_of(m, id, 0), &whole) &&
            same_spot(whole, m->bound[v]))
            return true;
        begin = 0, end = 1;
        if (p->kind != MPL_PLACE_SLICE)
            all_items(m, p, &begin, &end);
        if (end != begin + 1)
            return false;
        id = item_of(m, id, begin);
    }
}

/* Whether w may overlap only because it overwrites the input that arrives now. */
static bool took_over(const ranges *come, const ranges *w)
{
    for (uint32_t k = 0; k < w->n; k++)
        if (ranges_meet(&come->at[0], &w->at[k]) && come->at[0].of != w->at[k].of)
            return false;
    return w->n > 1;
}

static void lose(machine *m, mpl_value writer, const ranges *r, bool comes)
{
    static ranges other;

    for (mpl_value v = 0; v < m->g->n_values; v++) {
        if (!m->made[v] || m->lost[v] || v == writer || m->awaited[v] || tagged_holder(m, v) != v)
            continue;
        ways_of(m, v, &other);
        if (any_meet(r, &other) && !(comes && took_over(r, &other)) && !is_row_of(m, writer, v))
            m->lost[v] = 1;
    }
}

void tagged_claim(machine *m, mpl_value writer, bool comes)
{
    static ranges r;

    if (!m->strict)
        return;
    ways_of(m, writer, &r);
    lose(m, writer, &r, comes);
}

void tagged_claim_buffer(machine *m, mpl_buffer b)
{
    static ranges r;
    spot s = tagged_buffer_spot(m, b);

    if (!m->strict)
        return;
    r.n = 1;
    r.at[0] = (range){s.slab, s.at, s.at + m->p->bytes[b], b};
    lose(m, MPL_NONE, &r, false);
}

/* ---- repeated decisions ---- */

static bool depends(const machine *m, uint32_t id, mpl_op op)
{
    const mpl_place *p = place_of(m, id);
    bool of_block = p->kind == MPL_PLACE_CYCLE || p->kind == MPL_PLACE_SLICE;

    if ((of_block && m->g->block_owner[p->of] == op) ||
        ((p->kind == MPL_PLACE_FINAL || p->kind == MPL_PLACE_BRANCH) && p->of == op))
        return true;
    for (uint32_t i = 0; i < p->n; i++)
        if (depends(m, item_of(m, id, i), op))
            return true;
    return false;
}

/* Control reaches `op` again: its results, and values whose location it decides, are lost. */
void tagged_forget(machine *m, mpl_op op)
{
    for (mpl_value v = 0; m->strict && v < m->g->n_values; v++) {
        uint32_t place = m->map->places->value_place[m->map->value_root[v]];

        if (m->g->value_op[v] == op || (place != MPL_NONE && depends(m, place, op)))
            m->lost[v] = 1;
    }
    m->ran[op] = 0;
}

static bool is_settled(const machine *m, uint32_t id)
{
    const mpl_place *p = place_of(m, id);
    bool of_block = p->kind == MPL_PLACE_CYCLE || p->kind == MPL_PLACE_SLICE;
    uint32_t begin = 0, end = p->n;
    mpl_op op;

    if (p->kind == MPL_PLACE_BUFFER || p->kind == MPL_PLACE_PINNED)
        return true;
    op = of_block ? m->g->block_owner[p->of] : p->of;
    if (!(of_block && is_in_round(m, p->of)) && m->settling != op && !m->ran[op])
        return false;
    if (!of_block && (m->settling == op || p->kind == MPL_PLACE_FINAL))
        all_items(m, p, &begin, &end);
    if (p->kind == MPL_PLACE_FINAL)
        end = begin == 0 && (m->settling == op || m->fixed_rounds[op] <= 0) ? 1 : begin;
    if (p->kind == MPL_PLACE_BRANCH && m->settling != op)
        end = begin;
    for (uint32_t i = begin; i < end; i++)
        if (!is_settled(m, item_of(m, id, i)))
            return false;
    return true;
}

/* Whether every operation that decides where v lies has run. */
way tagged_settled(machine *m, uint32_t place, const char *who)
{
    return !m->strict || place == MPL_NONE || is_settled(m, place)
               ? GO
               : tagged_wrong(m, "where it lies need not be decided", who, "");
}

/* Whether result `out` overwrites operand `in` in another way than the allowed one. */
bool tagged_may_meet(machine *m, mpl_value in, mpl_value out, bool allowed)
{
    static ranges a, b;
    bool begins = true;

    ways_of(m, in, &a);
    ways_of(m, out, &b);
    for (uint32_t i = 0; i < a.n; i++)
        for (uint32_t k = 0; k < b.n; k++)
            if (ranges_meet(&a.at[i], &b.at[k]))
                begins = begins && a.at[i].begin == b.at[k].begin && a.at[i].end == b.at[k].end;
    return any_meet(&a, &b) && !(allowed && (begins || same_spot(m->bound[in], m->bound[out])));
}

/* ---- concurrent operations ---- */

enum { MOST_TOUCHES = 8192 };

typedef struct touches {
    uint32_t n;
    range at[MOST_TOUCHES];
    mpl_op unit[MOST_TOUCHES];
    bool writes[MOST_TOUCHES];
} touches;

static void note(const machine *m, touches *t, mpl_op op, const ranges *r, bool writes)
{
    while (m->g->op_block[op] != 0)
        op = m->g->block_owner[m->g->op_block[op]];
    for (uint32_t i = 0; i < r->n; i++, t->n++) {
        assert_true(t->n < MOST_TOUCHES);
        t->at[t->n] = r->at[i], t->unit[t->n] = op, t->writes[t->n] = writes;
    }
}

static void note_value(machine *m, touches *t, mpl_op op, mpl_value v, bool writes)
{
    static ranges r;

    if (v == MPL_NONE)
        return;
    ways_of(m, v, &r);
    note(m, t, op, &r, writes);
}

static void note_buffer(const machine *m, touches *t, mpl_op op, mpl_buffer b)
{
    static ranges r;
    spot s;

    if (b == MPL_NONE)
        return;
    s = tagged_buffer_spot(m, b);
    r.n = 1;
    r.at[0] = (range){s.slab, s.at, s.at + m->p->bytes[b], b};
    note(m, t, op, &r, true);
}

static void note_loop(machine *m, touches *t, mpl_op op)
{
    loop l = tagged_loop_of(m, op);

    note_value(m, t, op, l.param[0], true);
    for (uint32_t i = 1; i < 1 + l.n_carried + l.n_scans; i++) {
        bool again = i <= l.n_carried && l.result_copied[i], once = i <= l.n_carried && !again;

        if (!again && !l.in_copied[1 + i])
            continue;
        m->counted[l.body] = once, m->round[l.body] = 0; /* its first place */
        note_value(m, t, op, l.param[i], true);
        m->counted[l.body] = 0;
    }
    for (uint32_t i = l.n_carried; i < l.n_carried + l.n_rows; i++)
        note_value(m, t, op, l.out[i], true);
    note_buffer(m, t, op, m->map->places->staging[l.body]);
}

static void note_case(machine *m, touches *t, mpl_op op)
{
    const mpl_graph *g = m->g;
    const mpl_places *places = m->map->places;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op];

    m->settling = op;
    for (uint32_t k = 0; k <= n; k++)
        for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
            uint32_t in = g->op_in_begin[op] + 1 + i;
            uint32_t result =
                k < n ? g->block_result_begin[g->op_body[g->op_body_begin[op] + k]] + i : 0;

            m->taken[op] = k < n ? (int32_t)k : NO_BRANCH;
            if (k < n ? places->result_copied[result]
                      : in < g->op_in_begin[op + 1] && places->in_copied[in])
                note_value(m, t, op, g->op_out[g->op_out_begin[op] + i], true);
        }
    m->taken[op] = UNDECIDED;
    m->settling = MPL_NONE;
}

static void note_all(machine *m, touches *t)
{
    const mpl_graph *g = m->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool control = (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0;

        if (!control && tagged_is_idle(m, op))
            continue;
        for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
            note_value(m, t, op, g->op_in[g->op_in_begin[op] + i], false);
        for (uint32_t i = g->op_out_begin[op]; !control && i < g->op_out_begin[op + 1]; i++)
            note_value(m, t, op, g->op_out[i], true);
        if (m->map->op_workspace != NULL)
            note_buffer(m, t, op, m->map->op_workspace[op]);
        if (g->op_kind[op] == MPL_OP_while)
            note_loop(m, t, op);
        else if (g->op_kind[op] == MPL_OP_case)
            note_case(m, t, op);
    }
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            note_value(m, t, g->block_owner[b], g->block_result[g->block_result_begin[b] + i],
                       false);
}

/* By the rules, an outermost operation touches everything that any operation in its blocks touches
 * on any path. Nothing has begun yet. */
way tagged_keep_all_apart(machine *m)
{
    static touches t;

    t.n = 0;
    note_all(m, &t);
    for (uint32_t i = 0; i < t.n; i++)
        for (uint32_t k = 0; t.writes[i] && k < t.n; k++)
            if (t.unit[i] != t.unit[k] && ranges_meet(&t.at[i], &t.at[k]) &&
                (m->later[t.unit[i]] >> t.unit[k] & 1) == 0 &&
                (m->later[t.unit[k]] >> t.unit[i] & 1) == 0)
                return tagged_wrong(m, "both may run at once, and may touch the same bytes",
                                    m->g->op_name[t.unit[i]], m->g->op_name[t.unit[k]]);
    return GO;
}
