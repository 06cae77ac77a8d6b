/* Safety streams: which buffers conflict, which may be overwritten and which plans are accepted,
 * against every interleaving of the streams with their events. Faults: a wait that is forgotten or
 * invented, a reader elsewhere that has not ended, a relation of another order. */
#include "graphs/orders/op_streams.h"
#include "graphs/problem/before.h"
#include "graphs/problem/bounds/bounds.h"
#include "planners/verify/verify.h"
#include "tests/support/random_control.h"
#include "tests/support/random_graph.h"

enum { MOST_OPS = 8, MOST_BUFFERS = 64 };

typedef struct bench {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_op *order;
    uint32_t stream[MOST_OPS];
    mpl_problem_options options;
    mpl_problem *p;
    mpl_value_map *map;
    uint8_t needs[MOST_OPS];     /* operations that must end before it starts */
    uint8_t touch[MOST_BUFFERS]; /* operations that touch a buffer */
    uint8_t idle;                /* operations that have nothing to do */
    bool given[MOST_BUFFERS], held[MOST_BUFFERS];
    uint64_t conflicts[MOST_BUFFERS]; /* result: buffers in use at the same time as this one */
    uint64_t touching[MOST_BUFFERS];  /* result: the same, from first touch to last */
    uint8_t beside[MOST_OPS];         /* result: operations that may run while it does */
    uint8_t after[MOST_OPS];          /* result: that need not have ended when it starts */
} bench;

static void note_value(bench *b, mpl_op op, mpl_value v)
{
    uint32_t n = v != MPL_NONE && b->map->value_buffers != NULL ? b->map->value_buffers[v] : 1;

    for (uint32_t k = 0; v != MPL_NONE && b->map->value_buffer[v] != MPL_NONE && k < n; k++)
        b->touch[b->map->value_buffer[v] + k] |= (uint8_t)(1u << op);
}

/* Lists what each operation touches and what it waits for. */
static void look_at(bench *b)
{
    const mpl_graph *g = b->g;
    uint32_t last[MOST_OPS];

    assert_true(g->n_ops <= MOST_OPS && b->p->n <= MOST_BUFFERS);
    memset(last, 0xff, sizeof last);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        mpl_op op = b->order[i];

        if (last[b->stream[op]] != MPL_NONE)
            b->needs[op] |= (uint8_t)(1u << last[b->stream[op]]);
        last[b->stream[op]] = op;
        for (uint32_t k = g->op_in_begin[op]; k < g->op_in_begin[op + 1]; k++)
            if (g->op_in[k] != MPL_NONE && g->value_op[g->op_in[k]] != MPL_NONE)
                b->needs[op] |= (uint8_t)(1u << g->value_op[g->op_in[k]]);
        /* what has nothing to do touches nothing where storage is split, else what it names */
        if (b->map->op_nothing != NULL && b->map->op_nothing[op])
            b->idle |= (uint8_t)(1u << op);
        if ((b->idle >> op & 1) != 0 && b->p->inside != NULL)
            continue;
        for (uint32_t k = g->op_in_begin[op]; k < g->op_in_begin[op + 1]; k++)
            note_value(b, op, g->op_in[k]);
        for (uint32_t k = g->op_out_begin[op]; k < g->op_out_begin[op + 1]; k++)
            note_value(b, op, g->op_out[k]);
        if (b->map->op_workspace[op] != MPL_NONE)
            b->touch[b->map->op_workspace[op]] |= (uint8_t)(1u << op);
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (b->map->value_buffer[v] != MPL_NONE && g->value_op[v] == MPL_NONE)
            b->given[b->map->value_buffer[v]] = true;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (b->map->value_buffer[g->output[i]] != MPL_NONE)
            b->held[b->map->value_buffer[g->output[i]]] = true;
}

/* Notes all that holds while exactly these operations have started, and have ended. */
static void look(bench *b, uint32_t started, uint32_t ended)
{
    uint64_t alive = 0, touched = 0;

    for (mpl_buffer x = 0; x < b->p->n; x++)
        if ((b->given[x] || (b->touch[x] & started) != 0) &&
            (b->held[x] || (b->touch[x] & ~ended) != 0 || started == 0))
            alive |= UINT64_C(1) << x;
    for (mpl_buffer x = 0; x < b->p->n; x++)
        if ((b->touch[x] & ~b->idle & started) != 0 && (b->touch[x] & ~b->idle & ~ended) != 0)
            touched |= UINT64_C(1) << x;
    for (mpl_buffer x = 0; x < b->p->n; x++)
        b->touching[x] |= touched >> x & 1 ? touched : 0;
    for (mpl_buffer x = 0; x < b->p->n; x++)
        b->conflicts[x] |= alive >> x & 1 ? alive : 0;
    for (mpl_op op = 0; op < b->g->n_ops; op++)
        if ((started & ~ended) >> op & 1)
            b->beside[op] |= (uint8_t)(started & ~ended), b->after[op] |= (uint8_t)~ended;
}

static void every_interleaving(bench *b)
{
    static uint8_t seen[1 << (2 * MOST_OPS)];
    static uint32_t stack[1 << (2 * MOST_OPS)];
    uint32_t n = 0;

    memset(seen, 0, sizeof seen);
    seen[0] = 1;
    stack[n++] = 0;
    while (n > 0) {
        uint32_t state = stack[--n], started = state >> MOST_OPS,
                 ended = state & ((1u << MOST_OPS) - 1);

        look(b, started, ended);
        for (mpl_op op = 0; op < b->g->n_ops; op++) {
            uint32_t bit = 1u << op, next = state;

            if ((started & bit) == 0 && (b->needs[op] & ~ended) == 0)
                next |= bit << MOST_OPS;
            else if ((started & bit) != 0)
                next |= bit;
            if (!seen[next])
                seen[next] = 1, stack[n++] = next;
        }
    }
}

/* Draws a graph of at most 8 operations, an order, streams and options. */
static void draw(mpl_ctx *ctx, uint64_t seed, bench *b)
{
    mpl_rng rng;
    uint32_t n_streams;

    *b = (bench){.ctx = ctx, .g = random_graph(ctx, seed, 2 + (uint32_t)(seed % 7), 4)};
    rng = mpl_rng_of(seed);
    n_streams = 1 + (uint32_t)mpl_rng_below(&rng, b->g->n_ops);
    assert_ok(ctx, mpl_new(ctx, b->order, b->g->n_ops));
    assert_ok(ctx, mpl_order_random(ctx, b->g, seed, b->order));
    for (mpl_op op = 0; op < b->g->n_ops; op++)
        b->stream[op] = (uint32_t)mpl_rng_below(&rng, n_streams);
    b->options = random_options(seed);
    b->options.pin_weights = true; /* one that nobody reads takes a step where there are steps */
    b->options.concat = (mpl_concat)mpl_rng_below(&rng, 3);
    b->options.parallel = true;
    b->options.op_stream = b->stream;
    assert_ok(ctx, mpl_problem_from_graph(ctx, b->g, b->order, &b->options, &b->p, &b->map));
    look_at(b);
    every_interleaving(b);
}

static void forget(bench *b)
{
    mpl_value_map_free(b->ctx, b->map);
    mpl_problem_free(b->ctx, b->p);
    mpl_free(b->ctx, b->order);
    mpl_graph_free(b->ctx, b->g);
}

/* How many random graphs: MPL_STREAMS, else few. */
static uint64_t n_graphs(void)
{
    return number_asked("MPL_STREAMS", 400);
}

/* Whether one operation makes `out` of `in`, and all else that touches `in` has ended by then. */
static bool may_overwrite(const bench *b, mpl_buffer in, mpl_buffer out)
{
    mpl_op maker = 0;

    while ((b->touch[out] >> maker & 1) == 0)
        maker++;
    return (b->touch[in] >> maker & 1) != 0 &&
           (b->touch[in] & b->after[maker] & ~(1u << maker)) == 0;
}

TEST(conflicts_are_those_of_some_interleaving)
{
    uint64_t n_conflicts = 0, n_pairs = 0, n_dropped = 0;

    for (uint64_t seed = 1; seed <= n_graphs(); seed++) {
        bench b;
        owned_problem *serial = NULL;
        owned_map *map = NULL;

        draw(ctx, seed, &b);
        for (mpl_buffer x = 0; x < b.p->n; x++)
            for (mpl_buffer y = 0; y < b.p->n; y++)
                if (x != y && b.p->pool[x] == b.p->pool[y]) {
                    bool both = (b.conflicts[x] >> y & 1) != 0;

                    if (mpl_conflict(b.p, x, y) != both)
                        fail_msg("seed %" PRIu64 ": %" PRIu32 " and %" PRIu32 " %s", seed, x, y,
                                 both ? "are in use at once" : "never meet");
                    n_conflicts += both;
                }
        for (uint32_t i = 0; i < b.p->n_in_place; i++)
            assert_true(may_overwrite(&b, b.p->in_place_in[i], b.p->in_place_out[i]));
        /* Of the pairs of one order, all that streams leave are kept. */
        b.options.parallel = false;
        b.options.concat = MPL_CONCAT_COPY;
        assert_ok(ctx, mpl_problem_from_graph(ctx, b.g, b.order, &b.options, &serial, &map));
        for (uint32_t i = 0; i < serial->n_in_place && serial->n == b.p->n; i++) {
            bool kept = false;

            for (uint32_t k = 0; k < b.p->n_in_place; k++)
                kept = kept || (b.p->in_place_in[k] == serial->in_place_in[i] &&
                                b.p->in_place_out[k] == serial->in_place_out[i]);
            if (b.p->inside == NULL)
                assert_int_equal(
                    kept, may_overwrite(&b, serial->in_place_in[i], serial->in_place_out[i]));
            n_pairs += kept, n_dropped += !kept;
        }
        forget(&b);
    }
    print_message("%" PRIu64 " conflicts, %" PRIu64 " pairs, %" PRIu64 " pairs that streams drop\n",
                  n_conflicts, n_pairs, n_dropped);
    assert_true(n_conflicts > 0 && n_pairs > 0 && n_dropped > 0);
}

/* Whether some two buffers that `meet` overlap; *apart: not at one offset. */
static bool overlap(const bench *b, const uint64_t *meet, const uint64_t *offset, bool *apart)
{
    bool any = false;

    for (mpl_buffer x = 0; x < b->p->n; x++)
        for (mpl_buffer y = 0; y < x; y++)
            if (b->p->pool[x] == b->p->pool[y] && (meet[x] >> y & 1) != 0 &&
                offset[x] < offset[y] + b->p->bytes[y] && offset[y] < offset[x] + b->p->bytes[x]) {
                any = true;
                *apart = *apart || offset[x] != offset[y];
            }
    return any;
}

/* Both verifiers say of random placements what the interleavings say, whatever relation the problem
 * has: one that knows the graph alone is asked where the problem is that of the order. */
TEST(the_verifier_agrees)
{
    uint64_t n_good = 0, n_bad = 0;

    for (uint64_t seed = 1; seed <= n_graphs(); seed++) {
        bench b;
        mpl_rng rng;
        mpl_plan *plan = NULL;

        draw(ctx, seed, &b);
        rng = mpl_rng_of(seed);
        plan = planned_by(ctx, "greedy_size", b.p);
        assert_ok(ctx, mpl_verify(ctx, b.p, plan));
        assert_ok(ctx, mpl_verify_graph(ctx, b.g, b.map, b.p, plan));
        for (int round = 0; round < 8 && b.p->n > 1 && b.p->inside == NULL; round++) {
            mpl_buffer x = (mpl_buffer)mpl_rng_below(&rng, b.p->n);
            uint64_t was = plan->offset[x], step = b.options.align;
            bool any, apart = false;
            mpl_status st;

            plan->offset[x] = step * mpl_rng_below(&rng, 1 + plan->peak_bytes / step);
            plan->claim = MPL_FEASIBLE;
            plan->bound_bytes = 0;
            if (overlap(&b, b.conflicts, plan->offset, &apart) && apart)
                assert_status(ctx, mpl_verify(ctx, b.p, plan), MPL_EINVALID);
            apart = false;
            any = overlap(&b, b.touching, plan->offset, &apart);
            st = mpl_verify_graph(ctx, b.g, b.map, b.p, plan);
            if (!any && st != MPL_OK)
                fail_msg("seed %" PRIu64 ": %s", seed, ctx->message);
            if (apart)
                assert_status(ctx, st, MPL_EINVALID);
            n_good += !any, n_bad += any;
            plan->offset[x] = was;
        }
        mpl_plan_free(ctx, plan);
        forget(&b);
    }
    assert_true(n_good > 100 && n_bad > 100);
}

/* A chain of two on each of two streams: serial, the four share one place; here two do not. */
TEST(a_plan_of_the_order_is_refused)
{
    owned_graph *g = text_graph(
        ctx, "graph g\ninput i f32 [64]\na = sin(i)\nb = sin(a)\nc = sin(b)\nd = cos(i)\n"
             "e = cos(d)\nf = add(c, e)\noutput f\n");
    owned_memory mpl_op *order = order_by(ctx, g, "given");
    mpl_problem_options o = mpl_problem_options_default();
    owned_problem *serial = NULL, *p = NULL;
    owned_map *serial_map = NULL, *map = NULL;
    owned_plan *plan = NULL;
    mpl_before *right;

    o.in_place = false;
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &serial, &serial_map));
    plan = planned_by(ctx, "portfolio", serial);
    assert_ok(ctx, mpl_verify(ctx, serial, plan));
    o.parallel = true;
    o.op_stream = (uint32_t[]){0, 0, 0, 1, 1, 0};
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
    assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
    /* with the relation of the order in the problem, only the graph can tell */
    assert_ok(ctx, mpl_problem_as_parallel(ctx, serial));
    right = (mpl_before *)p->before, p->before = serial->before;
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    assert_status(ctx, mpl_verify_graph(ctx, g, map, p, plan), MPL_EINVALID);
    map->op_stream[3] = map->op_stream[4] = 0; /* on one stream it is right */
    assert_ok(ctx, mpl_verify_graph(ctx, g, map, p, plan));
    p->before = right;
}

/* ---- between serial and parallel ---- */

static uint64_t bound_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                         const mpl_problem_options *o, uint64_t *hash)
{
    owned_problem *p = NULL;
    owned_map *map = NULL;
    uint64_t bytes;

    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, o, &p, &map));
    assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &bytes, NULL));
    *hash = mpl_problem_hash(p);
    return bytes;
}

static void check_between(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed)
{
    owned_memory mpl_op *order = NULL;
    mpl_problem_options o = random_options(seed);
    uint64_t serial, parallel, bytes, hash[3];
    mpl_rng rng = mpl_rng_of(seed);

    o.pin_inputs = o.pin_weights = true;
    o.concat = (mpl_concat)(seed / 2 % 3);
    o.align = seed % 2 == 0 ? 1 : 64;
    o.in_place = o.in_place && g->n_blocks == 1;
    assert_ok(ctx, mpl_new(ctx, order, g->n_ops + 1));
    assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
    serial = bound_of(ctx, g, order, &o, &hash[0]);
    o.parallel = true;
    parallel = bound_of(ctx, g, order, &o, &hash[1]);
    for (uint32_t n = 1; n <= g->n_ops + 1; n += 1 + (uint32_t)mpl_rng_below(&rng, 3)) {
        mpl_streams *s = NULL;

        assert_ok(ctx, mpl_streams_new(ctx, g, order, n,
                                       (mpl_stream_rule)mpl_rng_below(&rng, MPL_N_STREAM_RULES),
                                       NULL, &s));
        mpl_streams_ask(s, &o);
        bytes = bound_of(ctx, g, order, &o, &hash[2]);
        /* a bound may be less than one slot below what its buffers take */
        if (bytes + o.align <= serial || bytes >= parallel + o.align)
            fail_msg("seed %" PRIu64 ", %" PRIu32 " streams: %" PRIu64 " is not from %" PRIu64
                     " to %" PRIu64,
                     seed, n, bytes, serial, parallel);
        assert_true(n > 1 || hash[2] == hash[0]);
        assert_true(n < s->n_units || n == 1 || hash[2] == hash[1]);
        mpl_streams_free(ctx, s);
    }
}

TEST(between_serial_and_parallel)
{
    for (uint64_t seed = 1; seed <= n_graphs() / 2; seed++) {
        owned_graph *g = random_graph(ctx, seed, 2 + (uint32_t)seed % 14, 4);

        check_between(ctx, g, seed);
    }
}

TEST(between_with_control_flow)
{
    for (uint64_t seed = 1; seed <= n_graphs() / 2; seed++) {
        owned_graph *g = random_control_of(ctx, seed, 6 + (uint32_t)seed % 20);

        check_between(ctx, g, seed);
    }
}

/* ---- control flow ---- */

/* The verifier's own order of the units is that of the streams: it accepts their plans, and not all
 * of them where every unit has a stream of its own. */
TEST(units_of_streams)
{
    uint32_t n_plans = 0, n_refused = 0, n_moved = 0;

    for (uint64_t seed = 1; seed <= n_graphs() / 4; seed++) {
        owned_graph *g = random_control_of(ctx, seed, 8 + (uint32_t)seed % 20);
        owned_memory mpl_op *order = order_by(ctx, g, "given");
        mpl_problem_options o = mpl_problem_options_default();
        owned_problem *p = NULL;
        owned_map *map = NULL;
        owned_plan *plan = NULL;
        mpl_streams *s = NULL;

        assert_ok(ctx, mpl_streams_new(ctx, g, order, 2 + (uint32_t)seed % 2,
                                       MPL_STREAMS_critical_path, NULL, &s));
        mpl_streams_ask(s, &o);
        o.in_place = seed % 2 == 0;
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        plan = planned_by(ctx, "greedy_size", p);
        assert_ok(ctx, mpl_verify(ctx, p, plan));
        if (g->n_blocks > 1 && map->op_stream != NULL) {
            assert_ok(ctx, mpl_verify_places(ctx, g, map, p, plan));
            for (mpl_op op = 0; op < g->n_ops; op++) /* other streams: some plans are for these
                                                        alone */
                map->op_stream[op] = map->step_of[mpl_op_outermost(g, op)] % g->n_ops;
            n_moved += mpl_verify_places(ctx, g, map, p, plan) == MPL_EINVALID;
            mpl_free(ctx, map->op_stream), map->op_stream = NULL;
            n_refused += mpl_verify_places(ctx, g, map, p, plan) == MPL_EINVALID;
            n_plans++;
        }
        mpl_streams_free(ctx, s);
    }
    assert_true(n_plans > 50 && n_refused > 10 && n_refused < n_plans && n_moved > 10);
}

TEST(lose_memory)
{
    for (uint64_t seed = 3; seed <= 6; seed++) {
        bench b;

        draw(ctx, seed, &b);
        EACH_ALLOCATION_FAILS (ctx, st) {
            mpl_problem *p = NULL;
            mpl_value_map *map = NULL;

            st = mpl_problem_from_graph(ctx, b.g, b.order, &b.options, &p, &map);
            mpl_problem_free(ctx, p);
            mpl_value_map_free(ctx, map);
        }
        forget(&b);
    }
}

TESTS(conflicts_are_those_of_some_interleaving, the_verifier_agrees, a_plan_of_the_order_is_refused,
      between_serial_and_parallel, between_with_control_flow, units_of_streams, lose_memory)
