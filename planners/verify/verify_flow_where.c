/* verify_flow_where.c -- evaluates places at a point of a run, for every path that control may have
 * taken to it. See verify_flow_priv.h. */
#include "planners/verify/verify_flow_priv.h"

#define MOST_ASKED   (UINT64_C(1) << 30) /* places evaluated in one check */
#define MOST_CLASSES 4096u               /* of rounds of one loop */

/* ---- classes of rounds ---- */

static const mpl_place *place_of(const mpl_flow_map *map, uint32_t id)
{
    return &map->map->places->place[id];
}

static uint32_t item_of(const mpl_flow_map *map, const mpl_place *place, uint32_t i)
{
    return map->map->places->item[place->begin + i];
}

static bool is_loop(const mpl_graph *g, uint32_t block)
{
    return block < g->n_blocks && g->block_owner[block] != MPL_NONE &&
           g->op_kind[g->block_owner[block]] == MPL_OP_while;
}

static bool place_ok(const mpl_flow_map *map, uint32_t id)
{
    const mpl_graph *g = map->g;
    const mpl_place *place = place_of(map, id);

    for (uint32_t i = 0; i < place->n; i++)
        if (item_of(map, place, i) >= id)
            return false;
    switch ((mpl_place_kind)place->kind) {
    case MPL_PLACE_BUFFER:
        return place->of < map->p->n;
    case MPL_PLACE_PINNED:
        return place->of < g->n_values;
    case MPL_PLACE_CYCLE:
        return is_loop(g, place->of) && place->n_first < place->n;
    case MPL_PLACE_SLICE:
        return is_loop(g, place->of) && place->n == 1 &&
               mpl_while_most_rounds(g, g->block_owner[place->of]) >= 0;
    case MPL_PLACE_FINAL:
        return place->of < g->n_ops && g->op_kind[place->of] == MPL_OP_while && place->n == 2;
    case MPL_PLACE_BRANCH:
        return place->of < g->n_ops && g->op_kind[place->of] == MPL_OP_case &&
               place->n == g->op_body_begin[place->of + 1] - g->op_body_begin[place->of] + 1;
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

static mpl_status classify_rounds(mpl_flow_map *map)
{
    uint32_t *at = NULL;

    MPL_PASS(mpl_new_each(map->ctx, map->g->n_blocks, map->n_first, map->period));
    for (uint32_t b = 0; b < map->g->n_blocks; b++)
        map->n_first[b] = 2, map->period[b] = 1;
    for (uint32_t i = 0; i < map->map->places->n; i++) {
        const mpl_place *place = place_of(map, i);
        uint32_t length = place->n - place->n_first;

        if (place->kind != MPL_PLACE_CYCLE)
            continue;
        at = &map->period[place->of];
        if (place->n > MOST_CLASSES || *at / greatest_divisor(*at, length) > MOST_CLASSES / length)
            return MPL_REFUSE(map->ctx, "block '%.100s' has more than %u kinds of rounds",
                              map->g->block_name[place->of], MOST_CLASSES);
        *at = *at / greatest_divisor(*at, length) * length;
        if (map->n_first[place->of] < place->n_first + 2)
            map->n_first[place->of] = place->n_first + 2;
    }
    return MPL_OK;
}

uint32_t mpl_flow_class(const mpl_flow_map *map, uint32_t block, uint64_t round)
{
    uint32_t first = map->n_first[block];

    return round < first ? (uint32_t)round
                         : first + (uint32_t)((round - first) % map->period[block]);
}

/* How many rounds constants of the graph allow a loop, and whether nothing else ends it. */
static void count_rounds(mpl_flow_map *map, mpl_op op)
{
    const mpl_graph *g = map->g;
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
    map->most[op] = most;
    map->rounds[op] = open ? -1 : most;
}

mpl_status mpl_flow_map_init(mpl_flow_map *map)
{
    const mpl_places *places = map->map->places;

    map->n_arenas = mpl_plan_n_arenas(map->plan);
    for (uint32_t i = 0; i < places->n; i++)
        if (!place_ok(map, i))
            return MPL_ERROR(map->ctx, MPL_EINVALID, "place %u of the values of '%.100s' is none",
                             i, map->g->name);
    for (mpl_value v = 0; v < map->g->n_values; v++)
        if (places->value_place[v] != MPL_NONE && places->value_place[v] >= places->n)
            return MPL_ERROR(map->ctx, MPL_EINVALID, "value '%.100s' is at place %u of %u",
                             map->g->value_name[v], places->value_place[v], places->n);
    MPL_PASS(classify_rounds(map));
    MPL_PASS(mpl_new_each(map->ctx, map->g->n_ops, map->rounds, map->most));
    for (mpl_op op = 0; op < map->g->n_ops; op++)
        if (map->g->op_kind[op] == MPL_OP_while)
            count_rounds(map, op);
    MPL_PASS(mpl_new(map->ctx, map->round, map->g->n_blocks));
    MPL_PASS(mpl_new(map->ctx, map->taken, map->g->n_ops));
    memset(map->round, 0xff, map->g->n_blocks * sizeof *map->round);
    return MPL_OK;
}

void mpl_flow_map_fini(mpl_flow_map *map)
{
    mpl_free_each(map->ctx, map->n_first, map->period, map->rounds, map->most, map->round,
                  map->taken);
}

/* ---- values ---- */

/* A view whose output 0 lies where its input does. These bytes are never written again, even if the
 * view has another output. */
static bool passes(const mpl_flow_map *map, mpl_op op)
{
    const mpl_graph *g = map->g;
    mpl_value in, out;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
        return false;
    in = mpl_op_input(g, op, 0), out = mpl_op_output(g, op, 0);
    return in != MPL_NONE && out != MPL_NONE &&
           map->map->value_root[in] == map->map->value_root[out] &&
           map->map->value_buffer[in] == map->map->value_buffer[out];
}

bool mpl_flow_idle(const mpl_flow_map *map, mpl_op op)
{
    if (map->map->op_nothing != NULL)
        return map->map->op_nothing[op] != 0;
    return passes(map, op);
}

mpl_value mpl_flow_holder(const mpl_flow_map *map, mpl_value v)
{
    for (;;) {
        mpl_op op = map->g->value_op[v];

        if (op == MPL_NONE || map->g->op_kind[op] == MPL_OP_concat ||
            (!mpl_flow_idle(map, op) && (v != mpl_op_output(map->g, op, 0) || !passes(map, op))))
            return v;
        v = mpl_op_input(map->g, op, 0);
    }
}

/* The value whose storage v lies in. */
static mpl_value root_of(const mpl_flow_map *map, mpl_value v)
{
    mpl_value root = map->map->value_root[v];

    return map->map->value_buffer[root] == map->map->value_buffer[v] ? root : v;
}

/* The value that parameter v of a body, which has no memory, takes its location from; MPL_NONE: v
 * is no such parameter. */
static mpl_value taken_over(const mpl_flow_map *map, mpl_value v, bool first)
{
    const mpl_graph *g = map->g;
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

static mpl_where plain_where(const mpl_flow_map *map, mpl_value v)
{
    mpl_where w = {.kind = MPL_WHERE_NOWHERE};
    mpl_value part = v;

    if (map->g->value_bytes[v] == 0)
        return w;
    v = root_of(map, v);
    if (v != part && map->map->value_offset != NULL)
        w.offset = map->map->value_offset[part];
    if (map->map->places->value_place[v] != MPL_NONE) {
        w.kind = MPL_WHERE_PLACE;
        w.id = map->map->places->value_place[v];
    } else if (map->map->value_buffer[v] != MPL_NONE) {
        w.kind = MPL_WHERE_BUFFER;
        w.id = map->map->value_buffer[v];
    } else if (map->g->value_role[v] != MPL_PARAMETER && !is_chosen(map->g, v)) {
        w.kind = MPL_WHERE_PINNED;
        w.id = v;
    }
    return w;
}

static uint32_t round_of(const mpl_flow_map *map, const mpl_where *where, uint32_t block)
{
    for (uint32_t i = where->n_rounds; i-- > 0;)
        if (where->block[i] == block)
            return where->round[i];
    return map->round[block];
}

mpl_where mpl_flow_where(const mpl_flow_map *map, mpl_value v)
{
    mpl_where w = plain_where(map, v), source;
    mpl_value root = root_of(map, v), from;
    uint32_t block = map->g->value_block[root];

    if (w.kind != MPL_WHERE_NOWHERE || map->g->value_bytes[v] == 0 || block == 0 ||
        map->round[block] == MPL_NONE)
        return w;
    from = taken_over(map, root, map->round[block] == 0);
    if (from == MPL_NONE)
        return w;
    source = plain_where(map, from);
    source.offset += w.offset;
    if (map->round[block] > 0 && source.kind != MPL_WHERE_NOWHERE)
        source.n_rounds = 1, source.block[0] = block, source.round[0] = map->round[block] - 1;
    return source;
}

mpl_status mpl_where_in_round(const mpl_flow_map *map, mpl_where *where, uint32_t block,
                              uint32_t round)
{
    if (where->n_rounds == MPL_FLOW_DEEPEST)
        return MPL_REFUSE(map->ctx, "places of '%.100s' nest deeper than %u loops", map->g->name,
                          MPL_FLOW_DEEPEST);
    where->block[where->n_rounds] = block;
    where->round[where->n_rounds++] = round;
    return MPL_OK;
}

/* ---- following a place ---- */

/* An open question about w: what operation `op` did, one of 1 .. n; op MPL_NONE: none. */
typedef struct question {
    mpl_op op;
    uint32_t n;
} question;

static uint32_t cycle_item(const mpl_place *place, uint32_t round)
{
    return round < place->n_first
               ? round
               : place->n_first + (round - place->n_first) % (place->n - place->n_first);
}

static uint32_t body_of(const mpl_graph *g, mpl_op op)
{
    return mpl_op_first_body(g, op);
}

/* In how many ways a loop may have ended, by the class of its last round; no round is one way. */
static uint32_t ways_to_run(const mpl_flow_map *map, mpl_op op)
{
    uint32_t n = mpl_flow_classes(map, body_of(map->g, op));

    return 1 + (map->most[op] >= 0 && (uint64_t)map->most[op] < n ? (uint32_t)map->most[op] : n);
}

/* The class of the last round of loop `op`; MPL_NONE: no round. False: not known. */
static bool last_round(const mpl_flow_map *map, mpl_op op, uint32_t *round)
{
    *round = MPL_NONE;
    if (map->rounds[op] > 0)
        *round = mpl_flow_class(map, body_of(map->g, op), (uint64_t)map->rounds[op] - 1);
    else if (map->rounds[op] < 0 && map->taken[op] > 1)
        *round = map->taken[op] - 2;
    return map->rounds[op] >= 0 || map->taken[op] > 0;
}

/* Follows where as far as is known: to memory, or to a slice. */
static mpl_status follow(mpl_flow_map *map, mpl_where *where, question *open)
{
    *open = (question){MPL_NONE, 0};
    while (where->kind == MPL_WHERE_PLACE) {
        const mpl_place *place = place_of(map, where->id);
        uint32_t i = 0, round;

        if (++map->n_asked > MOST_ASKED)
            return MPL_REFUSE(map->ctx, "the places of '%.100s' are too many to check",
                              map->g->name);
        if (place->kind == MPL_PLACE_SLICE)
            return MPL_OK;
        if (place->kind == MPL_PLACE_BUFFER || place->kind == MPL_PLACE_PINNED) {
            where->kind = place->kind == MPL_PLACE_BUFFER ? MPL_WHERE_BUFFER : MPL_WHERE_PINNED;
            where->id = place->of;
            return MPL_OK;
        }
        if (place->kind == MPL_PLACE_CYCLE) {
            mpl_op owner = map->g->block_owner[place->of];

            round = round_of(map, where, place->of);
            if (round == MPL_NONE && map->taken[owner] == 0) {
                *open = (question){owner, ways_to_run(map, owner)};
                return MPL_OK;
            }
            if (round == MPL_NONE)
                round = map->taken[owner] > 1 ? map->taken[owner] - 2 : 0;
            i = cycle_item(place, round);
        } else if (place->kind == MPL_PLACE_BRANCH && map->taken[place->of] > 0) {
            i = map->taken[place->of] - 1;
        } else if (place->kind == MPL_PLACE_BRANCH || !last_round(map, place->of, &round)) {
            *open = (question){place->of, place->kind == MPL_PLACE_BRANCH
                                              ? place->n
                                              : ways_to_run(map, place->of)};
            return MPL_OK;
        } else if (round != MPL_NONE) {
            i = 1;
            MPL_PASS(mpl_where_in_round(map, where, body_of(map->g, place->of), round));
        }
        where->id = item_of(map, place, i);
    }
    return MPL_OK;
}

static void address_of(const mpl_flow_map *map, const mpl_where *where, mpl_flow_spot *spot)
{
    if (where->kind == MPL_WHERE_PINNED)
        *spot = (mpl_flow_spot){map->n_arenas + where->id, where->offset, 0, MPL_NONE};
    else
        *spot = (mpl_flow_spot){mpl_plan_arena(map->p, map->plan, where->id),
                                map->plan->offset[where->id] + where->offset, 0, where->id};
}

static mpl_status same_slices(mpl_flow_map *map, mpl_where a, mpl_where b, bool *same)
{
    const mpl_place *place = place_of(map, a.id), *q = place_of(map, b.id);

    *same = place->of == q->of && place->bytes == q->bytes && place->reversed == q->reversed &&
            round_of(map, &a, place->of) == round_of(map, &b, place->of) && a.offset == b.offset;
    if (!*same)
        return MPL_OK;
    a.id = item_of(map, place, 0);
    b.id = item_of(map, q, 0);
    return mpl_where_same(map, a, b, same);
}

mpl_status mpl_where_same(mpl_flow_map *map, mpl_where a, mpl_where b, bool *same)
{
    mpl_status st = MPL_OK;
    question open;
    mpl_flow_spot x, y;

    *same = false;
    if (a.kind == MPL_WHERE_NOWHERE || b.kind == MPL_WHERE_NOWHERE)
        return MPL_OK;
    MPL_TRY(follow(map, &a, &open));
    if (open.op == MPL_NONE)
        MPL_TRY(follow(map, &b, &open));
    if (open.op != MPL_NONE) {
        *same = true;
        for (uint32_t k = 1; k <= open.n && *same; k++) {
            map->taken[open.op] = k;
            st = mpl_where_same(map, a, b, same);
            map->taken[open.op] = 0;
            MPL_TRY(st);
        }
        goto out;
    }
    if (a.kind == MPL_WHERE_PLACE || b.kind == MPL_WHERE_PLACE) {
        if (a.kind == b.kind)
            st = same_slices(map, a, b, same);
        goto out;
    }
    address_of(map, &a, &x);
    address_of(map, &b, &y);
    *same = x.arena == y.arena && x.begin == y.begin;
out:
    return st;
}

mpl_status mpl_where_slice(mpl_flow_map *map, mpl_where a, mpl_where b, uint32_t block,
                           uint64_t bytes, bool reversed, bool *is)
{
    question open;

    *is = false;
    if (a.kind == MPL_WHERE_NOWHERE)
        return MPL_OK;
    MPL_PASS(follow(map, &a, &open));
    if (open.op == MPL_NONE && a.kind == MPL_WHERE_PLACE) {
        const mpl_place *place = place_of(map, a.id);

        *is = place->of == block && place->bytes == bytes && (place->reversed != 0) == reversed &&
              round_of(map, &a, block) == map->round[block];
        if (*is) {
            a.id = item_of(map, place, 0);
            MPL_PASS(mpl_where_same(map, a, b, is));
        }
    }
    return MPL_OK;
}

/* A slice adds the range of the whole value. */
static mpl_status add_spots(mpl_flow_map *map, mpl_where w, uint64_t bytes, mpl_flow_spots *spots)
{
    mpl_status st = MPL_OK;
    question open = {MPL_NONE, 0};
    mpl_flow_spot spot;

    if (w.kind == MPL_WHERE_NOWHERE)
        goto out;
    MPL_TRY(follow(map, &w, &open));
    if (open.op != MPL_NONE) {
        for (uint32_t k = 1; k <= open.n; k++) {
            map->taken[open.op] = k;
            st = add_spots(map, w, bytes, spots);
            map->taken[open.op] = 0;
            MPL_TRY(st);
        }
        goto out;
    }
    if (w.kind == MPL_WHERE_PLACE) {
        const mpl_place *place = place_of(map, w.id);
        uint64_t most = (uint64_t)mpl_while_most_rounds(map->g, map->g->block_owner[place->of]),
                 whole;

        if (!mpl_mul_bytes(most, place->bytes, &whole))
            MPL_FAIL(map->ctx, MPL_EINVALID, "slices of %" PRIu64 " bytes pass 2^64", place->bytes);
        w.id = item_of(map, place, 0);
        w.offset = 0;
        st = add_spots(map, w, mpl_max_u64(whole, bytes), spots);
        goto out;
    }
    address_of(map, &w, &spot);
    if (!mpl_add_bytes(spot.begin, bytes, &spot.end))
        MPL_FAIL(map->ctx, MPL_EINVALID, "a value of '%.100s' ends beyond 2^64", map->g->name);
    for (size_t i = 0; i < spots->n; i++)
        if (spots->at[i].arena == spot.arena && spots->at[i].begin == spot.begin &&
            spots->at[i].end == spot.end && spots->at[i].of == spot.of)
            goto out;
    MPL_TRY(mpl_reserve(map->ctx, spots->at, spots->room, spots->n + 1));
    spots->at[spots->n++] = spot;
out:
    return st;
}

mpl_status mpl_where_spots(mpl_flow_map *map, mpl_where w, uint64_t bytes, mpl_flow_spots *spots)
{
    return add_spots(map, w, bytes, spots);
}

static bool place_depends(const mpl_flow_map *map, uint32_t id, mpl_op op)
{
    const mpl_place *place = place_of(map, id);
    bool of_block = place->kind == MPL_PLACE_CYCLE || place->kind == MPL_PLACE_SLICE;
    bool of_op = place->kind == MPL_PLACE_FINAL || place->kind == MPL_PLACE_BRANCH;

    if ((of_block && map->g->block_owner[place->of] == op) || (of_op && place->of == op))
        return true;
    for (uint32_t i = 0; i < place->n; i++)
        if (place_depends(map, item_of(map, place, i), op))
            return true;
    return false;
}

bool mpl_where_depends(const mpl_flow_map *map, mpl_where w, mpl_op op)
{
    return w.kind == MPL_WHERE_PLACE && place_depends(map, w.id, op);
}

/* ---- what has run ---- */

typedef struct past {
    const mpl_flow_map *map;
    const mpl_where *where;
    const uint64_t *ran;
    uint32_t first;
} past;

static bool has_run(const past *self, mpl_op op)
{
    uint32_t bit = self->first + op;

    return self->map->taken[op] != 0 || (self->ran[bit / 64] >> (bit % 64) & 1) != 0;
}

static mpl_op unsettled(const past *self, uint32_t id)
{
    const mpl_flow_map *map = self->map;
    const mpl_place *place = place_of(map, id);
    uint32_t begin = 0, end = place->n, last;
    bool inside = false;
    mpl_op op = place->of, found = MPL_NONE;

    if (place->kind == MPL_PLACE_BUFFER || place->kind == MPL_PLACE_PINNED)
        return MPL_NONE;
    if (place->kind == MPL_PLACE_CYCLE || place->kind == MPL_PLACE_SLICE) {
        inside = round_of(map, self->where, place->of) != MPL_NONE;
        op = map->g->block_owner[place->of];
    } else if (place->kind == MPL_PLACE_FINAL) { /* item 1 was checked as each round ended */
        (void)last_round(map, op, &last);
        end = last == MPL_NONE ? 1 : 0;
    } else { /* what a branch left was checked as it ended */
        begin = map->taken[op] != 0 ? map->taken[op] - 1 : 0;
        end = map->taken[op] != 0 ? begin + 1 : 0;
    }
    if (!inside && !has_run(self, op))
        return op;
    for (uint32_t i = begin; i < end && found == MPL_NONE; i++)
        found = unsettled(self, item_of(map, place, i));
    return found;
}

mpl_op mpl_where_unsettled(const mpl_flow_map *map, mpl_where w, const uint64_t *ran,
                           uint32_t first)
{
    past p = {map, &w, ran, first};

    return w.kind == MPL_WHERE_PLACE ? unsettled(&p, w.id) : MPL_NONE;
}

mpl_op mpl_flow_finals_unsettled(const mpl_flow_map *map, mpl_op op, const uint64_t *ran,
                                 uint32_t first)
{
    mpl_where here = {.kind = MPL_WHERE_PLACE};
    past p = {map, &here, ran, first};
    mpl_op found = MPL_NONE;

    for (uint32_t i = 0; i < map->map->places->n && found == MPL_NONE; i++)
        if (place_of(map, i)->kind == MPL_PLACE_FINAL && place_of(map, i)->of == op)
            found = unsettled(&p, item_of(map, place_of(map, i), 1));
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

mpl_status mpl_where_is_row(mpl_flow_map *map, mpl_where w, uint64_t bytes, mpl_value v, bool *is)
{
    mpl_flow_row_info row;
    question open = {MPL_NONE, 0};

    *is = false;
    if (!mpl_flow_row(map->g, v, &row) || w.kind == MPL_WHERE_NOWHERE ||
        map->round[row.block] == MPL_NONE)
        return MPL_OK;
    MPL_PASS(follow(map, &w, &open));
    while (open.op == MPL_NONE && w.kind == MPL_WHERE_PLACE && !*is) {
        const mpl_place *place = place_of(map, w.id);
        mpl_where whole = w;

        whole.id = item_of(map, place, 0);
        if (place->of == row.block && place->bytes == row.bytes &&
            (place->reversed != 0) == row.reversed && bytes <= row.bytes &&
            round_of(map, &w, place->of) == map->round[place->of])
            MPL_PASS(mpl_where_same(map, whole, mpl_flow_where(map, v), is));
        w = whole;
        MPL_PASS(follow(map, &w, &open));
    }
    return MPL_OK;
}
