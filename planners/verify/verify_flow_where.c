/* verify_flow_where.c -- evaluates places at a point of a run, for every path that control may have
 * taken to it. See verify_flow_priv.h. */
#include "planners/verify/verify_flow_priv.h"

#define MOST_ASKED   (UINT64_C(1) << 30) /* places evaluated in one check */
#define MOST_CLASSES 4096u               /* of rounds of one loop */

/* ---- classes of rounds ---- */

static const mpl_place *place_of(const mpl_flow_map *m, uint32_t id)
{
    return &m->map->places->place[id];
}

static uint32_t item_of(const mpl_flow_map *m, const mpl_place *place, uint32_t i)
{
    return m->map->places->item[place->begin + i];
}

static bool is_loop(const mpl_graph *g, uint32_t block)
{
    return block < g->n_blocks && g->block_owner[block] != MPL_NONE &&
           g->op_kind[g->block_owner[block]] == MPL_OP_while;
}

static bool place_ok(const mpl_flow_map *m, uint32_t id)
{
    const mpl_graph *g = m->g;
    const mpl_place *p = place_of(m, id);

    for (uint32_t i = 0; i < p->n; i++)
        if (item_of(m, p, i) >= id)
            return false;
    switch ((mpl_place_kind)p->kind) {
    case MPL_PLACE_BUFFER:
        return p->of < m->p->n;
    case MPL_PLACE_PINNED:
        return p->of < g->n_values;
    case MPL_PLACE_CYCLE:
        return is_loop(g, p->of) && p->n_first < p->n;
    case MPL_PLACE_SLICE:
        return is_loop(g, p->of) && p->n == 1 &&
               mpl_while_most_rounds(g, g->block_owner[p->of]) >= 0;
    case MPL_PLACE_FINAL:
        return p->of < g->n_ops && g->op_kind[p->of] == MPL_OP_while && p->n == 2;
    case MPL_PLACE_BRANCH:
        return p->of < g->n_ops && g->op_kind[p->of] == MPL_OP_case &&
               p->n == g->op_body_begin[p->of + 1] - g->op_body_begin[p->of] + 1;
    }
    return false;
}

static uint32_t greatest_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b, b = rest;
    }
    return a;
}

static mpl_status classify_rounds(mpl_flow_map *m)
{
    uint32_t *at = NULL;

    MPL_PASS(mpl_new_each(m->ctx, m->g->n_blocks, m->n_first, m->period));
    for (uint32_t b = 0; b < m->g->n_blocks; b++)
        m->n_first[b] = 2, m->period[b] = 1;
    for (uint32_t i = 0; i < m->map->places->n; i++) {
        const mpl_place *p = place_of(m, i);
        uint32_t length = p->n - p->n_first;

        if (p->kind != MPL_PLACE_CYCLE)
            continue;
        at = &m->period[p->of];
        if (p->n > MOST_CLASSES || *at / greatest_divisor(*at, length) > MOST_CLASSES / length)
            return MPL_REFUSE(m->ctx, "block '%.100s' has more than %u kinds of rounds",
                              m->g->block_name[p->of], MOST_CLASSES);
        *at = *at / greatest_divisor(*at, length) * length;
        if (m->n_first[p->of] < p->n_first + 2)
            m->n_first[p->of] = p->n_first + 2;
    }
    return MPL_OK;
}

uint32_t mpl_flow_class(const mpl_flow_map *m, uint32_t block, uint64_t round)
{
    uint32_t first = m->n_first[block];

    return round < first ? (uint32_t)round : first + (uint32_t)((round - first) % m->period[block]);
}

/* How many rounds constants of the graph allow a loop, and whether nothing else ends it. */
static void count_rounds(mpl_flow_map *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t body = mpl_op_first_body(g, op);
    int64_t most = mpl_while_most_rounds(g, op), trips;
    bool open = in[1] != MPL_NONE || g->block_result[g->block_result_begin[body]] != MPL_NONE;

    for (mpl_op test = g->block_op_begin[body]; test < g->block_op_end[body]; test++)
        open = open || (g->op_block[test] == body && g->op_kind[test] == MPL_OP_exit_unless);
    if (in[0] != MPL_NONE && g->value_role[in[0]] == MPL_WEIGHT && g->value_data[in[0]] != NULL) {
        memcpy(&trips, g->value_data[in[0]], sizeof trips);
        trips = trips < 0 ? 0 : trips;
        most = most >= 0 && most < trips ? most : trips;
    } else {
        open = open || in[0] != MPL_NONE;
    }
    m->most[op] = most;
    m->rounds[op] = open ? -1 : most;
}

mpl_status mpl_flow_map_init(mpl_flow_map *m)
{
    const mpl_places *places = m->map->places;

    m->n_arenas = mpl_plan_n_arenas(m->plan);
    for (uint32_t i = 0; i < places->n; i++)
        if (!place_ok(m, i))
            return MPL_ERROR(m->ctx, MPL_EINVALID, "place %u of the values of '%.100s' is none", i,
                             m->g->name);
    for (mpl_value v = 0; v < m->g->n_values; v++)
        if (places->value_place[v] != MPL_NONE && places->value_place[v] >= places->n)
            return MPL_ERROR(m->ctx, MPL_EINVALID, "value '%.100s' is at place %u of %u",
                             m->g->value_name[v], places->value_place[v], places->n);
    MPL_PASS(classify_rounds(m));
    MPL_PASS(mpl_new_each(m->ctx, m->g->n_ops, m->rounds, m->most));
    for (mpl_op op = 0; op < m->g->n_ops; op++)
        if (m->g->op_kind[op] == MPL_OP_while)
            count_rounds(m, op);
    MPL_PASS(mpl_new(m->ctx, m->round, m->g->n_blocks));
    MPL_PASS(mpl_new(m->ctx, m->taken, m->g->n_ops));
    memset(m->round, 0xff, m->g->n_blocks * sizeof *m->round);
    return MPL_OK;
}

void mpl_flow_map_fini(mpl_flow_map *m)
{
    mpl_free_each(m->ctx, m->n_first, m->period, m->rounds, m->most, m->round, m->taken);
}

/* ---- values ---- */

/* A view whose output 0 lies where its input does. These bytes are never written again, even if the
 * view has another output. */
static bool passes(const mpl_flow_map *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    mpl_value in, out;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
        return false;
    in = mpl_op_input(g, op, 0), out = mpl_op_output(g, op, 0);
    return in != MPL_NONE && out != MPL_NONE && m->map->value_root[in] == m->map->value_root[out] &&
           m->map->value_buffer[in] == m->map->value_buffer[out];
}

bool mpl_flow_idle(const mpl_flow_map *m, mpl_op op)
{
    if (m->map->op_nothing != NULL)
        return m->map->op_nothing[op] != 0;
    return passes(m, op);
}

mpl_value mpl_flow_holder(const mpl_flow_map *m, mpl_value v)
{
    for (;;) {
        mpl_op op = m->g->value_op[v];

        if (op == MPL_NONE || m->g->op_kind[op] == MPL_OP_concat ||
            (!mpl_flow_idle(m, op) && (v != mpl_op_output(m->g, op, 0) || !passes(m, op))))
            return v;
        v = mpl_op_input(m->g, op, 0);
    }
}

/* The value whose storage v lies in. */
static mpl_value root_of(const mpl_flow_map *m, mpl_value v)
{
    mpl_value root = m->map->value_root[v];

    return m->map->value_buffer[root] == m->map->value_buffer[v] ? root : v;
}

/* The value that parameter v of a body, which has no memory, takes its location from; MPL_NONE: v
 * is no such parameter. */
static mpl_value taken_over(const mpl_flow_map *m, mpl_value v, bool first)
{
    const mpl_graph *g = m->g;
    uint32_t block = g->value_block[v];
    mpl_op owner = block > 0 ? g->block_owner[block] : MPL_NONE;
    uint32_t n;

    if (g->value_role[v] != MPL_PARAMETER || owner == MPL_NONE)
        return MPL_NONE;
    n = mpl_n_carried(g, owner);
    for (uint32_t i = 1; i <= n; i++)
        if (mpl_param(g, block, i) == v)
            return first ? g->op_in[g->op_in_begin[owner] + 1 + i] : mpl_result(g, block, i);
    return MPL_NONE;
}

/* Whether control flow decides where v lies: an output of a case, or a carried one of a while. A
 * value without memory is never read. */
static bool is_chosen(const mpl_graph *g, mpl_value v)
{
    mpl_op op = g->value_op[v];
    mpl_flow_row_info row;

    return op != MPL_NONE && (g->op_kind[op] == MPL_OP_case || g->op_kind[op] == MPL_OP_while) &&
           !mpl_flow_row(g, v, &row);
}

static mpl_where plain_where(const mpl_flow_map *m, mpl_value v)
{
    mpl_where w = {.kind = MPL_WHERE_NOWHERE};
    mpl_value part = v;

    if (m->g->value_bytes[v] == 0)
        return w;
    v = root_of(m, v);
    if (v != part && m->map->value_offset != NULL)
        w.offset = m->map->value_offset[part];
    if (m->map->places->value_place[v] != MPL_NONE) {
        w.kind = MPL_WHERE_PLACE;
        w.id = m->map->places->value_place[v];
    } else if (m->map->value_buffer[v] != MPL_NONE) {
        w.kind = MPL_WHERE_BUFFER;
        w.id = m->map->value_buffer[v];
    } else if (m->g->value_role[v] != MPL_PARAMETER && !is_chosen(m->g, v)) {
        w.kind = MPL_WHERE_PINNED;
        w.id = v;
    }
    return w;
}

static uint32_t round_of(const mpl_flow_map *m, const mpl_where *w, uint32_t block)
{
    for (uint32_t i = w->n_rounds; i-- > 0;)
        if (w->block[i] == block)
            return w->round[i];
    return m->round[block];
}

mpl_where mpl_flow_where(const mpl_flow_map *m, mpl_value v)
{
    mpl_where w = plain_where(m, v), source;
    mpl_value root = root_of(m, v), from;
    uint32_t block = m->g->value_block[root];

    if (w.kind != MPL_WHERE_NOWHERE || m->g->value_bytes[v] == 0 || block == 0 ||
        m->round[block] == MPL_NONE)
        return w;
    from = taken_over(m, root, m->round[block] == 0);
    if (from == MPL_NONE)
        return w;
    source = plain_where(m, from);
    source.offset += w.offset;
    if (m->round[block] > 0 && source.kind != MPL_WHERE_NOWHERE)
        source.n_rounds = 1, source.block[0] = block, source.round[0] = m->round[block] - 1;
    return source;
}

mpl_status mpl_where_in_round(const mpl_flow_map *m, mpl_where *w, uint32_t block, uint32_t round)
{
    if (w->n_rounds == MPL_FLOW_DEEPEST)
        return MPL_REFUSE(m->ctx, "places of '%.100s' nest deeper than %u loops", m->g->name,
                          MPL_FLOW_DEEPEST);
    w->block[w->n_rounds] = block;
    w->round[w->n_rounds++] = round;
    return MPL_OK;
}

/* ---- following a place ---- */

/* An open question about w: what operation `op` did, one of 1 .. n; op MPL_NONE: none. */
typedef struct question {
    mpl_op op;
    uint32_t n;
} question;

static uint32_t cycle_item(const mpl_place *p, uint32_t round)
{
    return round < p->n_first ? round : p->n_first + (round - p->n_first) % (p->n - p->n_first);
}

static uint32_t body_of(const mpl_graph *g, mpl_op op)
{
    return mpl_op_first_body(g, op);
}

/* In how many ways a loop may have ended, by the class of its last round; no round is one way. */
static uint32_t ways_to_run(const mpl_flow_map *m, mpl_op op)
{
    uint32_t n = mpl_flow_classes(m, body_of(m->g, op));

    return 1 + (m->most[op] >= 0 && (uint64_t)m->most[op] < n ? (uint32_t)m->most[op] : n);
}

/* The class of the last round of loop `op`; MPL_NONE: no round. False: not known. */
static bool last_round(const mpl_flow_map *m, mpl_op op, uint32_t *round)
{
    *round = MPL_NONE;
    if (m->rounds[op] > 0)
        *round = mpl_flow_class(m, body_of(m->g, op), (uint64_t)m->rounds[op] - 1);
    else if (m->rounds[op] < 0 && m->taken[op] > 1)
        *round = m->taken[op] - 2;
    return m->rounds[op] >= 0 || m->taken[op] > 0;
}

/* Follows w as far as is known: to memory, or to a slice. */
static mpl_status follow(mpl_flow_map *m, mpl_where *w, question *open)
{
    *open = (question){MPL_NONE, 0};
    while (w->kind == MPL_WHERE_PLACE) {
        const mpl_place *p = place_of(m, w->id);
        uint32_t i = 0, round;

        if (++m->n_asked > MOST_ASKED)
            return MPL_REFUSE(m->ctx, "the places of '%.100s' are too many to check", m->g->name);
        if (p->kind == MPL_PLACE_SLICE)
            return MPL_OK;
        if (p->kind == MPL_PLACE_BUFFER || p->kind == MPL_PLACE_PINNED) {
            w->kind = p->kind == MPL_PLACE_BUFFER ? MPL_WHERE_BUFFER : MPL_WHERE_PINNED;
            w->id = p->of;
            return MPL_OK;
        }
        if (p->kind == MPL_PLACE_CYCLE) {
            mpl_op owner = m->g->block_owner[p->of];

            round = round_of(m, w, p->of);
            if (round == MPL_NONE && m->taken[owner] == 0) {
                *open = (question){owner, ways_to_run(m, owner)};
                return MPL_OK;
            }
            if (round == MPL_NONE)
                round = m->taken[owner] > 1 ? m->taken[owner] - 2 : 0;
            i = cycle_item(p, round);
        } else if (p->kind == MPL_PLACE_BRANCH && m->taken[p->of] > 0) {
            i = m->taken[p->of] - 1;
        } else if (p->kind == MPL_PLACE_BRANCH || !last_round(m, p->of, &round)) {
            *open = (question){p->of, p->kind == MPL_PLACE_BRANCH ? p->n : ways_to_run(m, p->of)};
            return MPL_OK;
        } else if (round != MPL_NONE) {
            i = 1;
            MPL_PASS(mpl_where_in_round(m, w, body_of(m->g, p->of), round));
        }
        w->id = item_of(m, p, i);
    }
    return MPL_OK;
}

static void address_of(const mpl_flow_map *m, const mpl_where *w, mpl_flow_spot *spot)
{
    if (w->kind == MPL_WHERE_PINNED)
        *spot = (mpl_flow_spot){m->n_arenas + w->id, w->offset, 0, MPL_NONE};
    else
        *spot = (mpl_flow_spot){mpl_plan_arena(m->p, m->plan, w->id),
                                m->plan->offset[w->id] + w->offset, 0, w->id};
}

static mpl_status same_slices(mpl_flow_map *m, mpl_where a, mpl_where b, bool *same)
{
    const mpl_place *p = place_of(m, a.id), *q = place_of(m, b.id);

    *same = p->of == q->of && p->bytes == q->bytes && p->reversed == q->reversed &&
            round_of(m, &a, p->of) == round_of(m, &b, p->of) && a.offset == b.offset;
    if (!*same)
        return MPL_OK;
    a.id = item_of(m, p, 0);
    b.id = item_of(m, q, 0);
    return mpl_where_same(m, a, b, same);
}

mpl_status mpl_where_same(mpl_flow_map *m, mpl_where a, mpl_where b, bool *same)
{
    mpl_status st = MPL_OK;
    question open;
    mpl_flow_spot x, y;

    *same = false;
    if (a.kind == MPL_WHERE_NOWHERE || b.kind == MPL_WHERE_NOWHERE)
        return MPL_OK;
    MPL_TRY(follow(m, &a, &open));
    if (open.op == MPL_NONE)
        MPL_TRY(follow(m, &b, &open));
    if (open.op != MPL_NONE) {
        *same = true;
        for (uint32_t k = 1; k <= open.n && *same; k++) {
            m->taken[open.op] = k;
            st = mpl_where_same(m, a, b, same);
            m->taken[open.op] = 0;
            MPL_TRY(st);
        }
        goto out;
    }
    if (a.kind == MPL_WHERE_PLACE || b.kind == MPL_WHERE_PLACE) {
        if (a.kind == b.kind)
            st = same_slices(m, a, b, same);
        goto out;
    }
    address_of(m, &a, &x);
    address_of(m, &b, &y);
    *same = x.arena == y.arena && x.begin == y.begin;
out:
    return st;
}

mpl_status mpl_where_slice(mpl_flow_map *m, mpl_where a, mpl_where b, uint32_t block,
                           uint64_t bytes, bool reversed, bool *is)
{
    question open;

    *is = false;
    if (a.kind == MPL_WHERE_NOWHERE)
        return MPL_OK;
    MPL_PASS(follow(m, &a, &open));
    if (open.op == MPL_NONE && a.kind == MPL_WHERE_PLACE) {
        const mpl_place *p = place_of(m, a.id);

        *is = p->of == block && p->bytes == bytes && (p->reversed != 0) == reversed &&
              round_of(m, &a, block) == m->round[block];
        if (*is) {
            a.id = item_of(m, p, 0);
            MPL_PASS(mpl_where_same(m, a, b, is));
        }
    }
    return MPL_OK;
}

/* A slice adds the range of the whole value. */
static mpl_status add_spots(mpl_flow_map *m, mpl_where w, uint64_t bytes, mpl_flow_spots *spots)
{
    mpl_status st = MPL_OK;
    question open = {MPL_NONE, 0};
    mpl_flow_spot spot;

    if (w.kind == MPL_WHERE_NOWHERE)
        goto out;
    MPL_TRY(follow(m, &w, &open));
    if (open.op != MPL_NONE) {
        for (uint32_t k = 1; k <= open.n; k++) {
            m->taken[open.op] = k;
            st = add_spots(m, w, bytes, spots);
            m->taken[open.op] = 0;
            MPL_TRY(st);
        }
        goto out;
    }
    if (w.kind == MPL_WHERE_PLACE) {
        const mpl_place *p = place_of(m, w.id);
        uint64_t most = (uint64_t)mpl_while_most_rounds(m->g, m->g->block_owner[p->of]), whole;

        if (!mpl_mul_bytes(most, p->bytes, &whole))
            MPL_FAIL(m->ctx, MPL_EINVALID, "slices of %" PRIu64 " bytes pass 2^64", p->bytes);
        w.id = item_of(m, p, 0);
        w.offset = 0;
        st = add_spots(m, w, mpl_max_u64(whole, bytes), spots);
        goto out;
    }
    address_of(m, &w, &spot);
    if (!mpl_add_bytes(spot.begin, bytes, &spot.end))
        MPL_FAIL(m->ctx, MPL_EINVALID, "a value of '%.100s' ends beyond 2^64", m->g->name);
    for (size_t i = 0; i < spots->n; i++)
        if (spots->at[i].arena == spot.arena && spots->at[i].begin == spot.begin &&
            spots->at[i].end == spot.end && spots->at[i].of == spot.of)
            goto out;
    MPL_TRY(mpl_reserve(m->ctx, spots->at, spots->room, spots->n + 1));
    spots->at[spots->n++] = spot;
out:
    return st;
}

mpl_status mpl_where_spots(mpl_flow_map *m, mpl_where w, uint64_t bytes, mpl_flow_spots *spots)
{
    return add_spots(m, w, bytes, spots);
}

static bool place_depends(const mpl_flow_map *m, uint32_t id, mpl_op op)
{
    const mpl_place *p = place_of(m, id);
    bool of_block = p->kind == MPL_PLACE_CYCLE || p->kind == MPL_PLACE_SLICE;
    bool of_op = p->kind == MPL_PLACE_FINAL || p->kind == MPL_PLACE_BRANCH;

    if ((of_block && m->g->block_owner[p->of] == op) || (of_op && p->of == op))
        return true;
    for (uint32_t i = 0; i < p->n; i++)
        if (place_depends(m, item_of(m, p, i), op))
            return true;
    return false;
}

bool mpl_where_depends(const mpl_flow_map *m, mpl_where w, mpl_op op)
{
    return w.kind == MPL_WHERE_PLACE && place_depends(m, w.id, op);
}

/* ---- what has run ---- */

typedef struct past {
    const mpl_flow_map *m;
    const mpl_where *w;
    const uint64_t *ran;
    uint32_t first;
} past;

static bool has_run(const past *p, mpl_op op)
{
    uint32_t bit = p->first + op;

    return p->m->taken[op] != 0 || (p->ran[bit / 64] >> (bit % 64) & 1) != 0;
}

static mpl_op unsettled(const past *p, uint32_t id)
{
    const mpl_flow_map *m = p->m;
    const mpl_place *place = place_of(m, id);
    uint32_t begin = 0, end = place->n, last;
    bool inside = false;
    mpl_op op = place->of, found = MPL_NONE;

    if (place->kind == MPL_PLACE_BUFFER || place->kind == MPL_PLACE_PINNED)
        return MPL_NONE;
    if (place->kind == MPL_PLACE_CYCLE || place->kind == MPL_PLACE_SLICE) {
        inside = round_of(m, p->w, place->of) != MPL_NONE;
        op = m->g->block_owner[place->of];
    } else if (place->kind == MPL_PLACE_FINAL) { /* item 1 was checked as each round ended */
        (void)last_round(m, op, &last);
        end = last == MPL_NONE ? 1 : 0;
    } else { /* what a branch left was checked as it ended */
        begin = m->taken[op] != 0 ? m->taken[op] - 1 : 0;
        end = m->taken[op] != 0 ? begin + 1 : 0;
    }
    if (!inside && !has_run(p, op))
        return op;
    for (uint32_t i = begin; i < end && found == MPL_NONE; i++)
        found = unsettled(p, item_of(m, place, i));
    return found;
}

mpl_op mpl_where_unsettled(const mpl_flow_map *m, mpl_where w, const uint64_t *ran, uint32_t first)
{
    past p = {m, &w, ran, first};

    return w.kind == MPL_WHERE_PLACE ? unsettled(&p, w.id) : MPL_NONE;
}

mpl_op mpl_flow_finals_unsettled(const mpl_flow_map *m, mpl_op op, const uint64_t *ran,
                                 uint32_t first)
{
    mpl_where here = {.kind = MPL_WHERE_PLACE};
    past p = {m, &here, ran, first};
    mpl_op found = MPL_NONE;

    for (uint32_t i = 0; i < m->map->places->n && found == MPL_NONE; i++)
        if (place_of(m, i)->kind == MPL_PLACE_FINAL && place_of(m, i)->of == op)
            found = unsettled(&p, item_of(m, place_of(m, i), 1));
    return found;
}

bool mpl_flow_row(const mpl_graph *g, mpl_value out, mpl_flow_row_info *row)
{
    mpl_op op = g->value_op[out];
    uint32_t n, n_scans, n_flags, k = 0;
    const int64_t *flag;

    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_while)
        return false;
    n = mpl_n_carried(g, op);
    n_scans = mpl_op_n_in(g, op) - 2 - n;
    flag = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);
    while (mpl_op_output(g, op, k) != out)
        k++;
    if (k < n)
        return false;
    row->block = body_of(g, op);
    row->result = g->block_result[g->block_result_begin[row->block] + 1 + k];
    row->bytes = g->value_bytes[row->result];
    row->reversed = n_scans + k - n < n_flags && flag[n_scans + k - n] != 0;
    return true;
}

mpl_status mpl_where_is_row(mpl_flow_map *m, mpl_where w, uint64_t bytes, mpl_value v, bool *is)
{
    mpl_flow_row_info row;
    question open = {MPL_NONE, 0};

    *is = false;
    if (!mpl_flow_row(m->g, v, &row) || w.kind == MPL_WHERE_NOWHERE ||
        m->round[row.block] == MPL_NONE)
        return MPL_OK;
    MPL_PASS(follow(m, &w, &open));
    while (open.op == MPL_NONE && w.kind == MPL_WHERE_PLACE && !*is) {
        const mpl_place *p = place_of(m, w.id);
        mpl_where whole = w;

        whole.id = item_of(m, p, 0);
        if (p->of == row.block && p->bytes == row.bytes && (p->reversed != 0) == row.reversed &&
            bytes <= row.bytes && round_of(m, &w, p->of) == m->round[p->of])
            MPL_PASS(mpl_where_same(m, whole, mpl_flow_where(m, v), is));
        w = whole;
        MPL_PASS(follow(m, &w, &open));
    }
    return MPL_OK;
}
