/* random_places.c -- see random_places.h. */
#include "tests/support/random_places.h"

/* ---- random places ---- */

/* A random loop or case of the graph; MPL_NONE if there is none. */
static mpl_op draw_op(made *d, mpl_op_kind kind)
{
    mpl_op drawn = MPL_NONE;
    uint32_t n = 0;

    for (mpl_op op = 0; op < d->g->n_ops; op++)
        if (d->g->op_kind[op] == kind && chance(d, ++n))
            drawn = op;
    return drawn;
}

static mpl_place draw_place(made *d, uint32_t id)
{
    const mpl_graph *g = d->g;
    mpl_place p = {.kind = MPL_PLACE_BUFFER, .of = N_BUFFERS - 1 - id};
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

/* Random locations of values, some without bytes. */
static void draw_values(made *d)
{
    const mpl_graph *g = d->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value other = below(d, v + 1);

        g->value_bytes[v] = chance(d, 12) ? 0 : g->value_bytes[v];
        d->map.value_root[v] = v;
        d->map.value_buffer[v] = chance(d, 2) ? v % N_BUFFERS : MPL_NONE;
        d->places.value_place[v] = chance(d, 4) ? below(d, N_PLACES) : MPL_NONE;
        if (chance(d, 6) && d->map.value_root[other] == other) {
            d->map.value_root[v] = other;
            d->map.value_offset[v] = 8 * below(d, 4);
            if (!chance(d, 4))
                d->map.value_buffer[v] = d->map.value_buffer[other];
        }
    }
}

/* Draws what is copied, put aside, or skipped. */
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

void draw_offsets(made *d, mpl_buffer a, mpl_buffer b)
{
    for (mpl_buffer x = 0; x < N_BUFFERS; x++) {
        d->plan->offset[x] = 4096 * (uint64_t)x;
        d->plan->spread.memory[x] = below(d, 2);
    }
    if (a != MPL_NONE && b != MPL_NONE) {
        d->plan->offset[a] = d->plan->offset[b] + 32 * below(d, 3);
        d->plan->spread.memory[a] = d->plan->spread.memory[b];
    }
}

static void draw_plan(made *d)
{
    assert_ok(d->ctx, mpl_problem_new(d->ctx, "places", N_BUFFERS, &d->p));
    assert_ok(d->ctx, mpl_plan_new(d->ctx, d->p, &d->plan));
    assert_ok(d->ctx, mpl_plan_spread(d->ctx, d->plan, 2));
    for (mpl_buffer b = 0; b < N_BUFFERS; b++)
        d->p->bytes[b] = 8 + 8 * below(d, 8);
    draw_offsets(d, below(d, N_BUFFERS), below(d, N_BUFFERS));
}

void make_places(made *d, mpl_ctx *ctx, uint64_t seed, uint32_t most_ops)
{
    const mpl_graph *g;
    uint32_t n_results = 0;

    *d = (made){.ctx = ctx};
    d->rng = mpl_rng_of(seed);
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

void unmake_places(made *d)
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

/* ---- one path of control ---- */

/* Upper bound on a loop's rounds if the graph gives one; else UNKNOWN. */
int64_t most_rounds_of(const made *d, mpl_op op)
{
    mpl_value trips = d->g->op_in[d->g->op_in_begin[op]];
    int64_t most = mpl_while_most_rounds(d->g, op), n = UNKNOWN;

    if (trips != MPL_NONE && d->g->value_role[trips] == MPL_WEIGHT)
        n = *(const int64_t *)d->g->value_data[trips];
    return n == UNKNOWN || (most >= 0 && most < n) ? most : n;
}

/* Exact number of rounds if the graph gives it; else UNKNOWN. */
int64_t rounds_of(const made *d, mpl_op op)
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

/* Number of possible outcomes of `op`. */
int64_t n_ways(const made *d, mpl_op op)
{
    int64_t n;

    if (d->g->op_kind[op] == MPL_OP_case)
        return d->g->op_body_begin[op + 1] - d->g->op_body_begin[op] + 1;
    n = mpl_flow_classes(&d->m, body_of(d, op));
    return 1 +
           (most_rounds_of(d, op) >= 0 && most_rounds_of(d, op) < n ? most_rounds_of(d, op) : n);
}

/* The round of a loop that w refers to: its own, the current, or the last. */
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

/* Takes one step along a place: index of the next item; UNKNOWN if an operation's outcome is needed
 * first. */
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

found find_place(const made *d, mpl_where w)
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

/* Whether `out` is rows of its loop; fills *row. */
bool rows_of(const made *d, mpl_value out, mpl_flow_row_info *row)
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

/* ---- all paths ---- */

bool one_spot(const mpl_flow_spot *a, const mpl_flow_spot *b)
{
    return a->arena == b->arena && a->begin == b->begin && a->end == b->end && a->of == b->of;
}

/* Includes every range that a slice is part of. */
static mpl_flow_spot spot_of(const made *d, const found *f, uint64_t bytes)
{
    uint64_t offset = f->n_slices > 0 ? 0 : f->offset;

    for (uint32_t k = 0; k < f->n_slices; k++)
        bytes = mpl_max_u64(bytes,
                            (uint64_t)mpl_while_most_rounds(d->g, d->g->block_owner[f->block[k]]) *
                                f->bytes[k]);
    return (mpl_flow_spot){f->arena, f->begin + offset, f->begin + offset + bytes, f->of};
}

void all_spots(const made *d, mpl_where w, uint64_t bytes, spots *s)
{
    found f = find_place(d, w);
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
