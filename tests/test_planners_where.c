/* Random places of random graphs with loops and branches, against all that control may have done: where they may be, whether two are
 * the same, and whether operations that may run at the same time keep apart. The judge evaluates a place for one way of control at a
 * time, and tries every one. MPL_JUDGED=N: that many sets of places. */
#include "tests/random_control.h"

#include "graphs/analysis/before.h"
#include "graphs/problem.h"
#include "planners/verify_flow_priv.h"

enum { N_BUFFERS = 24, N_PLACES = 24, MOST_ITEMS = 4, MOST_SPOTS = 256, UNKNOWN = -1 };

typedef struct made {
    mpl_ctx *ctx;
    mpl_rng rng;
    mpl_graph *g;
    mpl_problem *p;
    mpl_plan *plan;
    mpl_value_map map;
    mpl_places places;
    mpl_place place[N_PLACES];
    uint32_t item[N_PLACES * MOST_ITEMS], n_items;
    mpl_flow_map m;
    int64_t *went; /* [n_ops] what each loop and case did: rounds, or the branch; UNKNOWN */
} made;

/* Where something lies for one way of control: slices of slices, in the end of memory; or an operation to ask first. */
typedef struct found {
    bool nowhere;
    mpl_op ask;
    bool asked; /* before the first slice was known */
    uint32_t n_slices, block[N_PLACES], round[N_PLACES], arena;
    uint64_t bytes[N_PLACES], offset, begin;
    mpl_buffer of;
    bool reversed[N_PLACES];
} found;

static uint32_t below(made *d, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&d->rng, n);
}

static bool chance(made *d, uint32_t n)
{
    return below(d, n) == 0;
}

/* ---- random places -------------------------------------------------------------------------------------------------- */

/* A loop or case of the graph, drawn at random; MPL_NONE: there is none. */
static mpl_op draw_op(made *d, mpl_op_kind kind)
{
    mpl_op drawn = MPL_NONE;
    uint32_t n = 0;

    for (mpl_op op = 0; op < d->g->n_ops; op++)
        if (d->g->op_kind[op] == kind && chance(d, ++n))
            drawn = op;
    return drawn;
}

static uint32_t body_of(const made *d, mpl_op op)
{
    return d->g->op_body[d->g->op_body_begin[op]];
}

static mpl_place draw_place(made *d, uint32_t id)
{
    const mpl_graph *g = d->g;
    mpl_place p = {.kind = MPL_PLACE_BUFFER, .of = below(d, N_BUFFERS)};
    mpl_op loop = draw_op(d, MPL_OP_while), branches = draw_op(d, MPL_OP_case);
    uint32_t how = id < 3 ? 0 : below(d, 6);

    if (how == 1)
        p = (mpl_place){.kind = MPL_PLACE_PINNED, .of = below(d, g->n_values)};
    else if (how == 2 && loop != MPL_NONE) {
        p = (mpl_place){.kind = MPL_PLACE_CYCLE, .of = body_of(d, loop), .n = 1 + below(d, 4)};
        p.n_first = below(d, p.n);
    } else if (how == 3 && loop != MPL_NONE)
        p = (mpl_place){.kind = MPL_PLACE_FINAL, .of = loop, .n = 2};
    else if (how == 4 && branches != MPL_NONE)
        p = (mpl_place){.kind = MPL_PLACE_BRANCH,
                        .of = branches,
                        .n = g->op_body_begin[branches + 1] - g->op_body_begin[branches] + 1};
    else if (how == 5 && loop != MPL_NONE && mpl_while_most_rounds(g, loop) >= 0)
        p = (mpl_place){.kind = MPL_PLACE_SLICE,
                        .of = body_of(d, loop),
                        .n = 1,
                        .bytes = 16 << below(d, 2),
                        .reversed = (uint8_t)below(d, 2)};
    p.begin = d->n_items;
    for (uint32_t i = 0; i < p.n; i++)
        d->item[d->n_items++] = below(d, id);
    return p;
}

static void draw_values(made *d)
{
    const mpl_graph *g = d->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value other = below(d, v + 1);

        d->map.value_root[v] = v;
        d->map.value_buffer[v] = chance(d, 2) ? below(d, N_BUFFERS) : MPL_NONE;
        d->places.value_place[v] = chance(d, 3) ? below(d, N_PLACES) : MPL_NONE;
        if (chance(d, 6) && d->map.value_root[other] == other) {
            d->map.value_root[v] = other;
            d->map.value_offset[v] = 8 * below(d, 4);
            if (!chance(d, 4))
                d->map.value_buffer[v] = d->map.value_buffer[other];
        }
    }
}

/* What is copied, put aside, or not run at all. */
static void draw_flags(made *d)
{
    const mpl_graph *g = d->g;

    for (uint32_t i = 0; i < g->op_in_begin[g->n_ops]; i++)
        d->places.in_copied[i] = chance(d, 3);
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        d->places.staging[b] = chance(d, 3) ? below(d, N_BUFFERS) : MPL_NONE;
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            d->places.result_copied[g->block_result_begin[b] + i] = chance(d, 3);
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool view = (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0;

        d->map.op_workspace[op] = chance(d, 6) ? below(d, N_BUFFERS) : MPL_NONE;
        d->map.op_nothing[op] = (view || g->op_kind[op] == MPL_OP_concat) && chance(d, 2);
    }
    if (chance(d, 3))
        mpl_free(d->ctx, d->map.op_nothing), d->map.op_nothing = NULL;
    if (chance(d, 3))
        mpl_free(d->ctx, d->map.op_workspace), d->map.op_workspace = NULL;
}

/* Buffers far from each other, or not: of few places or many. */
static void draw_plan(made *d)
{
    uint32_t apart = 1u << below(d, 13);

    assert_ok(d->ctx, mpl_problem_new(d->ctx, "places", N_BUFFERS, &d->p));
    assert_ok(d->ctx, mpl_plan_new(d->ctx, d->p, &d->plan));
    assert_ok(d->ctx, mpl_plan_spread(d->ctx, d->plan, 2));
    for (mpl_buffer b = 0; b < N_BUFFERS; b++) {
        d->p->bytes[b] = 8 + 8 * below(d, 8);
        d->plan->offset[b] = 32 * (uint64_t)below(d, apart);
        d->plan->spread.memory[b] = below(d, 2);
    }
}

static void make(made *d, mpl_ctx *ctx, uint64_t seed, uint32_t most_ops)
{
    const mpl_graph *g;
    uint32_t n_results = 0;

    *d = (made){.ctx = ctx};
    mpl_rng_init(&d->rng, seed);
    d->g = random_control_of(ctx, seed, most_ops);
    g = d->g;
    for (uint32_t b = 0; b < g->n_blocks; b++)
        n_results += g->block_n_results[b];
    d->map = (mpl_value_map){.n_values = g->n_values, .places = &d->places};
    d->places.n = N_PLACES, d->places.place = d->place, d->places.item = d->item;
    assert_ok(ctx, mpl_new(ctx, d->map.value_buffer, g->n_values));
    assert_ok(ctx, mpl_new(ctx, d->map.value_root, g->n_values));
    assert_ok(ctx, mpl_new(ctx, d->map.value_offset, g->n_values));
    assert_ok(ctx, mpl_new(ctx, d->map.op_nothing, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, d->map.op_workspace, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, d->places.value_place, g->n_values));
    assert_ok(ctx, mpl_new(ctx, d->places.in_copied, g->op_in_begin[g->n_ops]));
    assert_ok(ctx, mpl_new(ctx, d->places.result_copied, n_results));
    assert_ok(ctx, mpl_new(ctx, d->places.staging, g->n_blocks));
    assert_ok(ctx, mpl_new(ctx, d->went, g->n_ops));
    for (uint32_t i = 0; i < N_PLACES; i++)
        d->place[i] = draw_place(d, i);
    draw_values(d);
    draw_flags(d);
    draw_plan(d);
    d->m = (mpl_flow_map){.ctx = ctx, .g = g, .map = &d->map, .p = d->p, .plan = d->plan};
}

static void unmake(made *d)
{
    void *arrays[] = {d->map.value_buffer,     d->map.value_root,
                      d->map.value_offset,     d->map.op_nothing,
                      d->map.op_workspace,     d->places.value_place,
                      d->places.in_copied,     d->places.staging,
                      d->places.result_copied, d->went};

    MPL_FREE_ALL(d->ctx, arrays);
    mpl_flow_map_fini(&d->m);
    mpl_plan_free(d->ctx, d->plan);
    mpl_problem_free(d->ctx, d->p);
    mpl_graph_free(d->ctx, d->g);
}

/* ---- one way of control --------------------------------------------------------------------------------------------- */

/* How often a loop runs at most, if the graph says so; else UNKNOWN. */
static int64_t most_rounds_of(const made *d, mpl_op op)
{
    mpl_value trips = d->g->op_in[d->g->op_in_begin[op]];
    int64_t most = mpl_while_most_rounds(d->g, op), n = UNKNOWN;

    if (trips != MPL_NONE && d->g->value_role[trips] == MPL_WEIGHT)
        n = *(const int64_t *)d->g->value_data[trips];
    return n == UNKNOWN || (most >= 0 && most < n) ? most : n;
}

/* How often it runs for certain; else UNKNOWN. */
static int64_t rounds_of(const made *d, mpl_op op)
{
    const mpl_graph *g = d->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t body = body_of(d, op);

    for (mpl_op test = 0; test < g->n_ops; test++)
        if (g->op_kind[test] == MPL_OP_exit_unless && g->op_block[test] == body)
            return UNKNOWN;
    if (in[1] != MPL_NONE || g->block_result[g->block_result_begin[body]] != MPL_NONE ||
        (in[0] != MPL_NONE && g->value_role[in[0]] != MPL_WEIGHT))
        return UNKNOWN;
    return most_rounds_of(d, op);
}

/* Of what `op` can have done, the number of choices. */
static int64_t n_ways(const made *d, mpl_op op)
{
    int64_t n;

    if (d->g->op_kind[op] == MPL_OP_case)
        return d->g->op_body_begin[op + 1] - d->g->op_body_begin[op] + 1;
    n = mpl_flow_classes(&d->m, body_of(d, op));
    return 1 + (most_rounds_of(d, op) >= 0 && most_rounds_of(d, op) < n ? most_rounds_of(d, op) : n);
}

/* The round of a loop that w lies in: its own, that at hand, or the last. */
static bool round_in(const made *d, const mpl_where *w, uint32_t block, uint32_t *round, found *f)
{
    mpl_op owner = d->g->block_owner[block];

    *round = d->m.round[block];
    for (uint32_t i = 0; i < w->n_rounds; i++)
        *round = w->block[i] == block ? w->round[i] : *round;
    if (*round == MPL_NONE && d->went[owner] == UNKNOWN) {
        f->ask = owner;
        return false;
    }
    if (*round == MPL_NONE)
        *round = d->went[owner] > 0 ? (uint32_t)d->went[owner] - 1 : 0;
    return true;
}

static void enter_slice(const made *d, const mpl_place *p, mpl_where *w, found *f)
{
    uint32_t k = f->n_slices++;

    f->block[k] = p->of;
    f->bytes[k] = p->bytes;
    f->reversed[k] = p->reversed != 0;
    f->round[k] = d->m.round[p->of];
    for (uint32_t i = 0; i < w->n_rounds; i++)
        f->round[k] = w->block[i] == p->of ? w->round[i] : f->round[k];
}

/* One step along a place: the number of the item to go on with; UNKNOWN: ask first. */
static int64_t next_item(const made *d, const mpl_place *p, mpl_where *w, found *f)
{
    uint32_t round;
    int64_t rounds;

    if (p->kind == MPL_PLACE_SLICE)
        return enter_slice(d, p, w, f), 0;
    if (p->kind == MPL_PLACE_CYCLE) {
        if (!round_in(d, w, p->of, &round, f))
            return UNKNOWN;
        while (round >= p->n)
            round -= p->n - p->n_first;
        return round;
    }
    rounds = p->kind == MPL_PLACE_FINAL ? rounds_of(d, p->of) : UNKNOWN;
    rounds = rounds == UNKNOWN ? d->went[p->of] : rounds;
    if (rounds == UNKNOWN)
        f->ask = p->of;
    if (p->kind == MPL_PLACE_BRANCH || rounds <= 0)
        return rounds;
    w->block[w->n_rounds] = body_of(d, p->of);
    w->round[w->n_rounds++] = mpl_flow_class(&d->m, body_of(d, p->of), (uint64_t)rounds - 1);
    return 1;
}

static found find(const made *d, mpl_where w)
{
    found f = {.ask = MPL_NONE, .offset = w.offset, .nowhere = w.kind == MPL_WHERE_NOWHERE};

    while (w.kind == MPL_WHERE_PLACE) {
        const mpl_place *p = &d->place[w.id];

        if (p->kind == MPL_PLACE_BUFFER || p->kind == MPL_PLACE_PINNED) {
            w.kind = p->kind == MPL_PLACE_BUFFER ? MPL_WHERE_BUFFER : MPL_WHERE_PINNED;
            w.id = p->of;
        } else {
            int64_t i = next_item(d, p, &w, &f);

            if (i == UNKNOWN)
                return f;
            w.id = d->item[p->begin + i];
        }
    }
    f.of = w.kind == MPL_WHERE_BUFFER ? w.id : MPL_NONE;
    if (w.kind == MPL_WHERE_BUFFER)
        f.arena = d->plan->spread.memory[w.id], f.begin = d->plan->offset[w.id];
    else
        f.arena = mpl_plan_n_arenas(d->plan) + w.id;
    return f;
}

/* ---- all ways --------------------------------------------------------------------------------------------------------- */

typedef struct spots {
    uint32_t n;
    mpl_flow_spot at[MOST_SPOTS];
} spots;

static bool one_spot(const mpl_flow_spot *a, const mpl_flow_spot *b)
{
    return a->arena == b->arena && a->begin == b->begin && a->end == b->end && a->of == b->of;
}

/* All that a slice is a slice of. */
static mpl_flow_spot spot_of(const made *d, const found *f, uint64_t bytes)
{
    uint64_t offset = f->n_slices > 0 ? 0 : f->offset;

    for (uint32_t k = 0; k < f->n_slices; k++)
        bytes = mpl_max_u64(bytes, (uint64_t)mpl_while_most_rounds(d->g, d->g->block_owner[f->block[k]]) *
                                       f->bytes[k]);
    return (mpl_flow_spot){f->arena, f->begin + offset, f->begin + offset + bytes, f->of};
}

static void all_spots(const made *d, mpl_where w, uint64_t bytes, spots *s)
{
    found f = find(d, w);
    mpl_flow_spot spot;

    if (f.nowhere)
        return;
    for (int64_t k = 0; f.ask != MPL_NONE && k < n_ways(d, f.ask); k++) {
        d->went[f.ask] = k;
        all_spots(d, w, bytes, s);
        d->went[f.ask] = UNKNOWN;
    }
    if (f.ask != MPL_NONE)
        return;
    spot = spot_of(d, &f, bytes);
    for (uint32_t i = 0; i < s->n; i++)
        if (one_spot(&s->at[i], &spot))
            return;
    assert_true(s->n < MOST_SPOTS);
    s->at[s->n++] = spot;
}

/* Without its first slices. */
static void drop_slices(found *f, uint32_t n)
{
    f->n_slices -= n;
    for (uint32_t k = 0; k < f->n_slices; k++) {
        f->block[k] = f->block[k + n], f->round[k] = f->round[k + n];
        f->bytes[k] = f->bytes[k + n], f->reversed[k] = f->reversed[k + n];
    }
}

static bool one_place(const found *a, const found *b)
{
    if (a->n_slices != b->n_slices || (a->n_slices > 0 && a->offset != b->offset))
        return false;
    for (uint32_t k = 0; k < a->n_slices; k++)
        if (a->block[k] != b->block[k] || a->bytes[k] != b->bytes[k] || a->round[k] != b->round[k] ||
            a->reversed[k] != b->reversed[k])
            return false;
    return a->arena == b->arena && a->begin + a->offset == b->begin + b->offset;
}

/* Whether what a, without its first slices, lies in is always where b is. */
static bool always_same(const made *d, mpl_where a, uint32_t n_slices, mpl_where b)
{
    found x = find(d, a), y = find(d, b);
    mpl_op ask = x.ask != MPL_NONE ? x.ask : y.ask;
    bool same = !x.nowhere && !y.nowhere;

    if (!same || ask == MPL_NONE)
        return same && (drop_slices(&x, n_slices), one_place(&x, &y));
    for (int64_t k = 0; k < n_ways(d, ask); k++) {
        d->went[ask] = k;
        same = same && always_same(d, a, n_slices, b);
        d->went[ask] = UNKNOWN;
    }
    return same;
}

/* ---- places ----------------------------------------------------------------------------------------------------------- */

/* A point of a run: in some loops, each in a block of the one before it; behind one of the others, or a case, at times. */
static void draw_point(made *d)
{
    const mpl_graph *g = d->g;
    uint32_t block = below(d, g->n_blocks);
    mpl_op left = below(d, g->n_ops);

    for (uint32_t b = block; b != 0; b = g->block_parent[b])
        if (g->op_kind[g->block_owner[b]] == MPL_OP_while)
            d->m.round[b] = below(d, mpl_flow_classes(&d->m, b));
    if (chance(d, 3) && (mpl_op_table[g->op_kind[left]].traits & MPL_CONTROL) != 0 &&
        g->op_kind[left] != MPL_OP_exit_unless) {
        d->went[left] = below(d, (uint32_t)n_ways(d, left));
        d->m.taken[left] = (uint32_t)d->went[left] + 1;
    }
}

static mpl_where draw_where(made *d)
{
    mpl_where w = {.kind = (mpl_where_kind)below(d, 8)};

    if (w.kind > MPL_WHERE_PINNED)
        w.kind = MPL_WHERE_PLACE;
    w.id = below(d, w.kind == MPL_WHERE_PLACE    ? N_PLACES
                    : w.kind == MPL_WHERE_BUFFER ? N_BUFFERS
                                                 : d->g->n_values);
    w.offset = chance(d, 4) ? 8 * below(d, 3) : 0;
    for (uint32_t b = 1; b < d->g->n_blocks && w.n_rounds < 4; b++)
        if (d->g->op_kind[d->g->block_owner[b]] == MPL_OP_while && chance(d, 6))
            assert_ok(d->ctx, mpl_where_in_round(&d->m, &w, b, below(d, mpl_flow_classes(&d->m, b))));
    return w;
}

static void check_spots(made *d, mpl_where w)
{
    mpl_flow_spots got = {0};
    spots want = {0};
    uint64_t bytes = 1 + below(d, 100);

    all_spots(d, w, bytes, &want);
    assert_ok(d->ctx, mpl_where_spots(&d->m, w, bytes, &got));
    assert_int_equal(got.n, want.n);
    for (size_t i = 0; i < got.n; i++) {
        bool there = false;

        for (uint32_t k = 0; k < want.n; k++)
            there = there || one_spot(&got.at[i], &want.at[k]);
        assert_true(there);
    }
    mpl_free(d->ctx, got.at);
}

/* Whether slice k of those that w is in for certain is that of the round at hand. */
static bool is_at_hand(const made *d, const found *f, uint32_t k, uint32_t block, uint64_t bytes,
                       bool reversed)
{
    return k < f->n_slices && f->block[k] == block && f->bytes[k] == bytes && f->reversed[k] == reversed &&
           f->round[k] == d->m.round[block];
}

/* Slices as they are, or as they are not; of what they are slices of, or of anything. */
static void check_slice(made *d, uint32_t *n_slices)
{
    mpl_where a = draw_where(d), b = draw_where(d);
    const mpl_place *p = &d->place[a.kind == MPL_WHERE_PLACE ? a.id : 0];
    uint32_t block = chance(d, 4) || p->kind != MPL_PLACE_SLICE ? below(d, d->g->n_blocks) : p->of;
    uint64_t bytes = chance(d, 6) ? 16 : p->bytes;
    bool reversed = chance(d, 6) ? chance(d, 2) : p->reversed, is;
    found f;

    if (p->kind == MPL_PLACE_SLICE && !chance(d, 4)) {
        b = a;
        b.id = d->item[p->begin];
    }
    f = find(d, a);
    assert_ok(d->ctx, mpl_where_slice(&d->m, a, b, block, bytes, reversed, &is));
    assert_int_equal(is, is_at_hand(d, &f, 0, block, bytes, reversed) && always_same(d, a, 1, b));
    *n_slices += is;
}

/* Whether `out` is rows of its loop; which. */
static bool row_of(const made *d, mpl_value out, mpl_flow_row_info *row)
{
    const mpl_graph *g = d->g;
    mpl_op op = g->value_op[out];
    uint32_t n, n_scans, n_flags, i = 0;
    const int64_t *flag;

    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_while)
        return false;
    n = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
    n_scans = g->block_n_params[body_of(d, op)] - 1 - n;
    flag = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);
    while (g->op_out[g->op_out_begin[op] + i] != out)
        i++;
    row->block = body_of(d, op);
    row->result = i < n ? MPL_NONE : g->block_result[g->block_result_begin[row->block] + 1 + i];
    row->bytes = i < n ? 0 : g->value_bytes[row->result];
    row->reversed = i >= n && n_scans + i - n < n_flags && flag[n_scans + i - n] != 0;
    return i >= n;
}

/* A value, of loops around the point rather an output. */
static mpl_value draw_output(made *d)
{
    const mpl_graph *g = d->g;
    mpl_value v = below(d, g->n_values);
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_kind[op] == MPL_OP_while && d->m.round[body_of(d, op)] != MPL_NONE &&
                g->op_out[i] != MPL_NONE && chance(d, ++n))
                v = g->op_out[i];
    return v;
}

/* Places in slices of what rows are stacked in: as they are stacked, or not. */
static void check_rows(made *d, uint32_t *n_rows)
{
    mpl_value v = draw_output(d);
    mpl_flow_row_info row, got;
    mpl_where w = {.kind = MPL_WHERE_PLACE, .id = below(d, N_PLACES)};
    mpl_place *p = &d->place[w.id];
    uint64_t bytes = 8 << below(d, 5);
    bool rows = row_of(d, v, &row), is, want = false;
    found f;

    assert_int_equal(mpl_flow_row(d->g, v, &got), rows);
    if (rows)
        assert_true(row.block == got.block && row.result == got.result && row.bytes == got.bytes &&
                    row.reversed == got.reversed);
    if (rows && p->kind == MPL_PLACE_SLICE) {
        p->of =
            chance(d, 8) || mpl_while_most_rounds(d->g, d->g->block_owner[row.block]) < 0 ? p->of : row.block;
        p->bytes = chance(d, 8) ? p->bytes : row.bytes;
        p->reversed = chance(d, 8) ? p->reversed : row.reversed;
        d->places.value_place[v] = chance(d, 8) ? MPL_NONE : d->item[p->begin];
        d->map.value_root[v] = v;
    }
    f = find(d, w);
    for (uint32_t k = 0; rows && d->m.round[row.block] != MPL_NONE && k < f.n_slices; k++)
        want = want || (bytes <= row.bytes && is_at_hand(d, &f, k, row.block, row.bytes, row.reversed) &&
                        always_same(d, w, k + 1, mpl_flow_where(&d->m, v)));
    assert_ok(d->ctx, mpl_where_is_row(&d->m, w, bytes, v, &is));
    assert_int_equal(is, want);
    *n_rows += is;
}

static bool reaches(const made *d, uint32_t id, mpl_op op)
{
    const mpl_place *p = &d->place[id];
    bool of_block = p->kind == MPL_PLACE_CYCLE || p->kind == MPL_PLACE_SLICE;
    bool here = p->kind > MPL_PLACE_PINNED && (of_block ? d->g->block_owner[p->of] : p->of) == op;

    for (uint32_t i = 0; i < p->n; i++)
        here = here || reaches(d, d->item[p->begin + i], op);
    return here;
}

static void check_places(made *d, uint32_t *n_same)
{
    mpl_where a = draw_where(d), b = chance(d, 2) ? a : draw_where(d);
    mpl_op op = below(d, d->g->n_ops);
    bool same;

    if (b.kind == a.kind && chance(d, 4))
        b.id = a.id;
    if (chance(d, 8))
        b.offset += 8;
    check_spots(d, a);
    assert_ok(d->ctx, mpl_where_same(&d->m, a, b, &same));
    assert_int_equal(same, always_same(d, a, 0, b));
    assert_int_equal(mpl_where_depends(&d->m, a, op), a.kind == MPL_WHERE_PLACE && reaches(d, a.id, op));
    *n_same += same;
}

/* Rounds of one class have every cell in common. */
static void check_classes(const made *d)
{
    for (uint32_t b = 1; b < d->g->n_blocks; b++) {
        uint32_t first = 2, period = 1;

        for (uint32_t i = 0; i < N_PLACES; i++)
            if (d->place[i].kind == MPL_PLACE_CYCLE && d->place[i].of == b) {
                uint32_t length = d->place[i].n - d->place[i].n_first, most = period;

                first = first > d->place[i].n_first + 2 ? first : d->place[i].n_first + 2;
                while (most % length != 0)
                    most += period;
                period = most;
            }
        assert_int_equal(d->m.n_first[b], first);
        assert_int_equal(d->m.period[b], period);
        for (uint32_t round = 0; round < 40; round++) {
            uint32_t lowest = round;

            while (lowest >= first + period)
                lowest -= period;
            assert_int_equal(mpl_flow_class(&d->m, b, round), lowest);
        }
    }
}

static uint32_t asked(uint32_t otherwise)
{
    const char *text = getenv("MPL_JUDGED");

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static void places_of_points(void **state)
{
    uint32_t n_same = 0, n_slices = 0, n_rows = 0, n = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 1; seed <= asked(300); seed++) {
        made d;

        make(&d, &ctx, seed, 24);
        assert_ok(&ctx, mpl_flow_map_init(&d.m));
        check_classes(&d);
        for (mpl_op op = 0; op < d.g->n_ops; op++) {
            d.went[op] = UNKNOWN;
            if (d.g->op_kind[op] == MPL_OP_while) {
                assert_int_equal(d.m.rounds[op], rounds_of(&d, op));
                assert_int_equal(d.m.most[op], most_rounds_of(&d, op));
            }
        }
        draw_point(&d);
        for (uint32_t i = 0; i < 60; i++, n++) {
            check_places(&d, &n_same);
            check_slice(&d, &n_slices);
            check_rows(&d, &n_rows);
        }
        unmake(&d);
    }
    print_message("%u pairs of places: %u the same, %u a slice, %u a row\n", n, n_same, n_slices, n_rows);
    assert_true(n_same > n / 32 && n_slices > n / 64 && n_rows > n / 256);
    assert_int_equal(ctx.n_live, 0);
}

/* ---- what may run at the same time ------------------------------------------------------------------------------------ */

enum { MOST_TOUCHES = 4096 };

typedef struct touches {
    const made *d;
    uint32_t n;
    mpl_op unit[MOST_TOUCHES];
    mpl_flow_spot at[MOST_TOUCHES];
    bool writes[MOST_TOUCHES];
    uint8_t *before; /* [n_ops][n_ops] of units */
} touches;

static mpl_op unit_of(const made *d, mpl_op op)
{
    while (d->g->op_block[op] != 0)
        op = d->g->block_owner[d->g->op_block[op]];
    return op;
}

static bool passes_on(const made *d, mpl_op op)
{
    const mpl_graph *g = d->g;
    mpl_value in, out;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
        return false;
    in = g->op_in[g->op_in_begin[op]], out = g->op_out[g->op_out_begin[op]];
    return out != MPL_NONE && d->map.value_root[in] == d->map.value_root[out] &&
           d->map.value_buffer[in] == d->map.value_buffer[out];
}

/* Where v lies before the program begins. */
static mpl_where place_of(const made *d, mpl_value v)
{
    const mpl_graph *g = d->g;
    mpl_value root = d->map.value_root[v];
    mpl_flow_row_info row;
    mpl_op op;

    if (d->map.value_buffer[root] != d->map.value_buffer[v])
        root = v;
    op = g->value_op[root];
    if (d->places.value_place[root] != MPL_NONE)
        return (mpl_where){.kind = MPL_WHERE_PLACE,
                           .id = d->places.value_place[root],
                           .offset = root != v ? d->map.value_offset[v] : 0};
    if (d->map.value_buffer[root] != MPL_NONE)
        return (mpl_where){.kind = MPL_WHERE_BUFFER,
                           .id = d->map.value_buffer[root],
                           .offset = root != v ? d->map.value_offset[v] : 0};
    if (g->value_role[root] == MPL_PARAMETER || (op != MPL_NONE && g->op_kind[op] == MPL_OP_case) ||
        (op != MPL_NONE && g->op_kind[op] == MPL_OP_while && !row_of(d, root, &row)))
        return (mpl_where){.kind = MPL_WHERE_NOWHERE};
    return (mpl_where){
        .kind = MPL_WHERE_PINNED, .id = root, .offset = root != v ? d->map.value_offset[v] : 0};
}

static void touch(touches *t, mpl_op op, mpl_where w, uint64_t bytes, bool writes)
{
    spots s = {0};

    if (bytes == 0)
        return;
    all_spots(t->d, w, bytes, &s);
    for (uint32_t i = 0; i < s.n; i++) {
        assert_true(t->n < MOST_TOUCHES);
        t->unit[t->n] = unit_of(t->d, op);
        t->at[t->n] = s.at[i];
        t->writes[t->n++] = writes;
    }
}

static void touch_value(touches *t, mpl_op op, mpl_value v, bool writes)
{
    if (v != MPL_NONE)
        touch(t, op, place_of(t->d, v), t->d->g->value_bytes[v], writes);
}

static void touch_buffer(touches *t, mpl_op op, mpl_buffer b)
{
    if (b != MPL_NONE)
        touch(t, op, (mpl_where){.kind = MPL_WHERE_BUFFER, .id = b}, t->d->p->bytes[b], true);
}

/* What the loop moves: as each round begins or ends, or once on entry. */
static void touch_loop(touches *t, mpl_op op)
{
    const made *d = t->d;
    const mpl_graph *g = d->g;
    uint32_t body = body_of(d, op), n = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
    const mpl_value *param = g->block_param + g->block_param_begin[body];

    touch_value(t, op, param[0], true);
    for (uint32_t i = 0; i + 1 < g->block_n_params[body]; i++) {
        mpl_where first = place_of(d, param[1 + i]);

        first.n_rounds = 1, first.block[0] = body, first.round[0] = 0;
        if (i < n && d->places.result_copied[g->block_result_begin[body] + 1 + i])
            touch_value(t, op, param[1 + i], true);
        if (i >= n && d->places.in_copied[g->op_in_begin[op] + 2 + i])
            touch_value(t, op, param[1 + i], true);
        if (i < n && d->places.in_copied[g->op_in_begin[op] + 2 + i])
            touch(t, op, first, g->value_bytes[param[1 + i]], true);
    }
    for (uint32_t i = n; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        touch_value(t, op, g->op_out[g->op_out_begin[op] + i], true);
    touch_buffer(t, op, d->places.staging[body]);
}

static void touch_case(touches *t, mpl_op op)
{
    const made *d = t->d;
    const mpl_graph *g = d->g;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op];

    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        for (uint32_t k = 0; k <= n; k++) {
            uint32_t in = g->op_in_begin[op] + 1 + i,
                     body = g->op_body[g->op_body_begin[op] + (k < n ? k : 0)];

            if (k < n ? !d->places.result_copied[g->block_result_begin[body] + i]
                      : in >= g->op_in_begin[op + 1] || !d->places.in_copied[in])
                continue;
            d->went[op] = k;
            touch_value(t, op, g->op_out[g->op_out_begin[op] + i], true);
            d->went[op] = UNKNOWN;
        }
}

static void touch_all(touches *t)
{
    const made *d = t->d;
    const mpl_graph *g = d->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool control = (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0;

        if (!control && (d->map.op_nothing != NULL ? d->map.op_nothing[op] != 0 : passes_on(d, op)))
            continue;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            touch_value(t, op, g->op_in[i], false);
        for (uint32_t i = g->op_out_begin[op]; !control && i < g->op_out_begin[op + 1]; i++)
            touch_value(t, op, g->op_out[i], i > g->op_out_begin[op] || !passes_on(d, op));
        if (d->map.op_workspace != NULL)
            touch_buffer(t, op, d->map.op_workspace[op]);
        if (g->op_kind[op] == MPL_OP_while)
            touch_loop(t, op);
        if (g->op_kind[op] == MPL_OP_case)
            touch_case(t, op);
    }
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            touch_value(t, g->block_owner[b], g->block_result[g->block_result_begin[b] + i], false);
}

static void note_before(touches *t, mpl_value v, mpl_op reader)
{
    mpl_op maker = v != MPL_NONE ? t->d->g->value_op[v] : MPL_NONE;

    if (maker != MPL_NONE && unit_of(t->d, maker) != unit_of(t->d, reader))
        t->before[unit_of(t->d, maker) * t->d->g->n_ops + unit_of(t->d, reader)] = 1;
}

static void order_all(touches *t)
{
    const mpl_graph *g = t->d->g;
    uint32_t n = g->n_ops;

    for (mpl_op op = 0; op < n; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            note_before(t, g->op_in[i], op);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            note_before(t, g->block_result[g->block_result_begin[b] + i], g->block_owner[b]);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; t->before[a * n + k] != 0 && b < n; b++)
                t->before[a * n + b] |= t->before[k * n + b];
}

static bool all_apart(const touches *t)
{
    uint32_t n = t->d->g->n_ops;

    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (t->unit[i] != t->unit[k] && (t->writes[i] || t->writes[k]) &&
                !t->before[t->unit[i] * n + t->unit[k]] && !t->before[t->unit[k] * n + t->unit[i]] &&
                t->at[i].arena == t->at[k].arena && t->at[i].begin < t->at[k].end &&
                t->at[k].begin < t->at[i].end)
                return false;
    return true;
}

static void units_of_graphs(void **state)
{
    static touches t;
    uint32_t n_apart = 0, n = asked(1500);
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 1; seed <= n; seed++) {
        made d;
        mpl_status st;

        make(&d, &ctx, seed, seed % 8 == 0 ? 90 : 4 + seed % 13);
        assert_ok(&ctx, mpl_flow_map_init(&d.m));
        for (mpl_op op = 0; op < d.g->n_ops; op++)
            d.went[op] = UNKNOWN;
        t = (touches){.d = &d};
        assert_ok(&ctx, mpl_new(&ctx, t.before, (size_t)d.g->n_ops * d.g->n_ops));
        touch_all(&t);
        order_all(&t);
        st = mpl_flow_units_apart(&d.m);
        if ((st == MPL_OK) != all_apart(&t))
            fail_msg("seed %" PRIu64 ": %s (%s); all ways: %s", seed, mpl_status_name(st), ctx.message,
                     all_apart(&t) ? "apart" : "not apart");
        n_apart += st == MPL_OK;
        mpl_free(&ctx, t.before);
        unmake(&d);
    }
    print_message("%u sets of places: %u let operations run at the same time\n", n, n_apart);
    assert_true(n_apart > n / 8 && n_apart < n - n / 8);
    assert_int_equal(ctx.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_points),
        cmocka_unit_test(units_of_graphs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
