/* test_runtime_concat_choices.c -- which operands share the storage of a concat: the best choice,
 * limits, relations of parts, orders that count them, the zoo. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_rows.h"

#include "graphs/passes/passes.h"
#include "planners/search/concat.h"
#include "planners/verify/verify.h"
#include "runtime/exec/exec_priv.h"

/* ---- which concats share ---- */

/* The least bytes of one choice by `exact`, whose own tests compare it with brute force. */
static uint64_t least_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                         const mpl_problem_options *options, const uint8_t *shared)
{
    mpl_problem_options o = *options;
    owned_map *map = NULL;
    owned_problem *p = NULL;
    owned_plan *plan = NULL;
    uint64_t bytes;

    o.concat_shared = shared;
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
    plan = planned_by(ctx, "exact", p);
    assert_int_equal(plan->claim, MPL_OPTIMAL);
    bytes = plan->pool_bytes[0];
    return bytes;
}

/* Plans every set of the concats that can share: the best by bytes, then by bytes not copied, then
 * the lowest set. */
static uint32_t best_of_all(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                            const mpl_problem_options *o, const mpl_op *op, uint32_t n,
                            uint64_t *bytes)
{
    uint32_t best = 0;
    uint64_t least = UINT64_MAX, most = 0;

    for (uint32_t set = 0; set < 1u << n; set++) {
        uint8_t shared[64] = {0};
        uint64_t got, saved = 0;

        for (uint32_t i = 0; i < n; i++)
            if (set >> i & 1) {
                shared[op[i]] = 1;
                saved += g->value_bytes[g->op_out[g->op_out_begin[op[i]]]];
            }
        got = least_of(ctx, g, order, o, shared);
        if (got < least || (got == least && saved > most)) {
            least = got;
            most = saved;
            best = set;
        }
    }
    *bytes = least;
    return best;
}

/* Choosing by exact plans finds the best choice, under either safety; choosing by bounds alone may
 * not. */
TEST(choices_are_the_best)
{
    uint32_t n_graphs = 0, n_choices = 0, n_other = 0, n_lower = 0, n_undecided = 0;

    for (uint64_t seed = 0; seed < draws(400); seed++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = random_rows(ctx, seed);
        mpl_concats *concats = NULL;
        mpl_concat_found found;
        uint8_t shared[64];
        uint64_t least;
        uint32_t best;
        mpl_op order[64];

        o.in_place = seed % 4 != 3;
        o.pin_outputs = seed % 3 != 0;
        o.parallel = seed % 5 == 4;
        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_ok(ctx, mpl_concats_new(ctx, g, order, &o, &concats));
        assert_ok(ctx, mpl_concat_decide(ctx, g, order, &o, shared, &found));
        assert_int_equal(found.n, concats->n);
        n_undecided += concats->n > 0 && concats->n <= 4 && found.by != MPL_CONCAT_BY_EXACT;
        if (concats->n > 0 && concats->n <= 4 && found.by == MPL_CONCAT_BY_EXACT) {
            bool other = memcmp(shared, concats->shared, g->n_ops) != 0;

            best = best_of_all(ctx, g, order, &o, concats->op, concats->n, &least);
            for (uint32_t i = 0; i < concats->n; i++)
                if (shared[concats->op[i]] != (best >> i & 1))
                    fail_msg("seed %" PRIu64 ": concat %u shares: %u; the best choice is %x of %u",
                             seed, i, shared[concats->op[i]], best, concats->n);
            n_graphs++;
            n_choices += concats->n_choices;
            n_other += other;
            n_lower += other && least_of(ctx, g, order, &o, concats->shared) > least;
        }
        mpl_concats_free(ctx, concats);
    }
    print_message("%u graphs, %u choices: exact plans choose otherwise than bounds in %u, lower in "
                  "%u; %u are left to bounds\n",
                  n_graphs, n_choices, n_other, n_lower, n_undecided);
    assert_true(often(n_graphs > 150 && n_choices > 400 && n_lower > 3 && n_undecided < 5));
}

/* Concats, more than can be enumerated. In each, an operand waits beside something wide, where
 * the whole result would be larger, so none shares. */
static void give_up_all(mpl_ctx *ctx, int many)
{
    mpl_problem_options o = mpl_problem_options_default();
    mpl_concats *concats = NULL;
    mpl_value_map *map = NULL;
    mpl_problem *p = NULL;
    owned_graph *g = NULL;
    uint64_t bound[2];
    uint32_t n_shared = 0;
    uint8_t *all = malloc(8 * (size_t)many);
    mpl_op *order = malloc(8 * (size_t)many * sizeof *order);
    size_t size = 200 * (size_t)many;
    char *text = malloc(size);
    int n = snprintf(text, size, "graph g\ninput x f32 [2,16]\n");

    for (int k = 0; k < many; k++)
        n += snprintf(text + n, size - (size_t)n,
                      "a%d = tanh(x)\nm%d = concat(x, x, x, x, x, x) axis=1\n"
                      "s%d = reduce_sum(m%d) axes=[1] keepdims=1\nb%d = add(a%d, s%d)\n"
                      "c%d = concat(a%d, b%d) axis=1\ny%d = reduce_sum(c%d) axes=[1]\noutput y%d\n",
                      k, k, k, k, k, k, k, k, k, k, k, k, k);
    assert_ok(ctx, mpl_text_read_memory(ctx, "many", text, (size_t)n, &g));
    assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
    assert_ok(ctx, mpl_concats_new(ctx, g, order, &o, &concats));
    assert_true(concats->n == (uint32_t)many && concats->by == MPL_CONCAT_BY_GREEDY);
    for (mpl_op op = 0; op < g->n_ops; op++)
        assert_int_equal(concats->shared[op], 0);
    for (int copy = 0; copy < 2; copy++) {
        o.concat = copy ? MPL_CONCAT_COPY : MPL_CONCAT_AUTO;
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &bound[copy], NULL));
        mpl_value_map_free(ctx, map), map = NULL;
        mpl_problem_free(ctx, p), p = NULL;
    }
    assert_int_equal(bound[0], bound[1]);
    mpl_concats_free(ctx, concats), concats = NULL;
    memset(all, 1, 8 * (size_t)many); /* all that can share; those of an input cannot */
    o.concat = MPL_CONCAT_AUTO;
    o.concat_shared = all;
    assert_ok(ctx, mpl_concats_new(ctx, g, order, &o, &concats));
    for (mpl_op op = 0; op < g->n_ops; op++)
        n_shared += concats->shared[op];
    assert_int_equal(n_shared, many);
    mpl_concats_free(ctx, concats);
    free(all), free(order), free(text);
}

TEST(many_are_given_up)
{
    give_up_all(ctx, 14);
}

/* So many that the work of giving them up one by one is cut short: none may stay that raises the
 * peak. */
TEST(what_is_undecided_copies)
{
    give_up_all(ctx, 400);
}

/* Moves the family of buffer x so that x lies `by` bytes after c; false if it cannot. */
static bool move_onto(const mpl_problem *p, mpl_plan *plan, mpl_buffer x, mpl_buffer c, uint64_t by)
{
    uint64_t at = p->inside_at[x], to = plan->offset[c] + by;

    if (to < at)
        return false;
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->inside[b] == p->inside[x])
            plan->offset[b] = to - at + p->inside_at[b];
    return true;
}

/* Nothing shared, except one family (or buffer) moved onto another: the relation between parts
 * refuses exactly what the graph does; at one offset, in place, the graph may allow more than is
 * offered. */
TEST(relations_of_parts_are_the_graphs)
{
    uint32_t n_families = 0, n_refused = 0, n_allowed = 0, n_pairs = 0;

    for (uint64_t seed = 0; seed < draws(300); seed++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = random_rows(ctx, seed);
        owned_map *map = NULL;
        owned_problem *p = NULL;
        owned_plan *plan = NULL;
        uint64_t home[128];
        mpl_op order[64];

        o.parallel = true;
        o.concat = MPL_CONCAT_SHARE;
        o.align = 4; /* all sizes are multiples of 32: 4 further no other begins */
        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        plan = planned_by(ctx, "none", p);
        plan->claim = MPL_FEASIBLE;
        plan->bound_bytes = plan->n_witness = 0;
        memcpy(home, plan->offset, p->n * sizeof *home);
        for (mpl_buffer x = 0; p->inside != NULL && x < p->n; x++)
            for (uint32_t i = 0; i < 2 * p->n; i++) {
                mpl_buffer c = i / 2;
                mpl_status by_relation, by_graph;

                n_families += p->inside[x] != x && i == 0;
                if (p->inside[x] == p->inside[c] || !move_onto(p, plan, x, c, i % 2 * 4))
                    continue;
                by_relation = mpl_verify(ctx, p, plan);
                by_graph = mpl_verify_graph(ctx, g, map, p, plan);
                if (by_relation != by_graph && (by_graph != MPL_OK || i % 2 == 1))
                    fail_msg("seed %" PRIu64
                             ": buffer %u onto %u: the graph says '%s', the relation '%s': %s",
                             seed, x, c, mpl_status_name(by_graph), mpl_status_name(by_relation),
                             ctx->message);
                n_refused += by_graph != MPL_OK;
                n_allowed += by_relation == MPL_OK;
                memcpy(plan->offset, home, p->n * sizeof *home);
            }
        for (uint32_t i = 0; p->inside != NULL && i < p->n_in_place; i++)
            n_pairs += p->inside_at[p->in_place_in[i]] > 0 || p->inside_at[p->in_place_out[i]] > 0;
    }
    print_message("%u parts in families; %u moves refused, %u allowed; %u pairs of parts\n",
                  n_families, n_refused, n_allowed, n_pairs);
    assert_true(often(n_families > 250 && n_refused > 10000 && n_allowed > 500 && n_pairs > 20));
}

/* Searched orders count, part by part, what planners get; and no order needs less than the proven
 * bound. */
TEST(orders_count_parts)
{
    uint32_t n_families = 0, n_proved = 0;

    for (uint64_t seed = 0; seed < draws(200); seed++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = random_rows(ctx, seed);
        mpl_value_map *map = NULL;
        mpl_problem *p = NULL;
        mpl_order_run found;
        mpl_op order[64];
        uint64_t peak;

        o.concat = MPL_CONCAT_COPY;
        o.in_place = seed % 2 == 0;
        o.pin_outputs = seed % 3 != 0;
        found = mpl_order_run_default(ctx);
        found.options = &o;
        assert_ok(ctx, mpl_order_make(&found, mpl_order_find("least_peak"), g, order));
        for (uint64_t other = 0; other < 5; other++) {
            assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
            assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
            if (other == 0)
                assert_int_equal(found.live_bytes, peak);
            assert_true(found.bound_bytes <= peak);
            n_families += p->inside != NULL;
            mpl_value_map_free(ctx, map), map = NULL;
            mpl_problem_free(ctx, p), p = NULL;
            assert_ok(ctx, mpl_order_random(ctx, g, other, order));
        }
        n_proved += found.bound_bytes == found.live_bytes;
    }
    assert_true(often(n_families > 100 && n_proved > 100));
}

/* ---- the zoo ---- */

/* Bytes that concats copy, and the bound, for a zoo network. */
static void look(mpl_ctx *ctx, const char *name, mpl_concat concat, uint64_t *copied,
                 uint64_t *bound)
{
    mpl_problem_options o = mpl_problem_options_default();
    owned_graph *g = NULL;
    owned_problem *p = NULL;
    owned_map *map = NULL;
    owned_memory mpl_op *order = NULL;

    o.concat = concat;
    assert_ok(ctx, mpl_zoo_build(ctx, name, &g));
    order = order_by(ctx, g, "given");
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
    assert_ok(ctx, mpl_lower_bound(ctx, p, 0, bound, NULL));
    *copied = 0;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_concat && !map->op_nothing[op])
            *copied += g->value_bytes[g->op_out[g->op_out_begin[op]]];
}

/* In networks built of concats hardly one needs to copy, and the peak stays that of copying. */
TEST(zoo_copies_little)
{
    static const char *const names[] = {"densenet121", "densenet201", "inception_v3",
                                        "inception_v4"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t copied[3], bound[3];

        for (int c = MPL_CONCAT_AUTO; c <= MPL_CONCAT_COPY; c++)
            look(ctx, names[i], (mpl_concat)c, &copied[c], &bound[c]);
        if (bound[MPL_CONCAT_AUTO] > bound[MPL_CONCAT_COPY] || copied[MPL_CONCAT_SHARE] != 0 ||
            bound[MPL_CONCAT_SHARE] > bound[MPL_CONCAT_COPY] || /* operands exist part by part */
            copied[MPL_CONCAT_AUTO] * 100 > copied[MPL_CONCAT_COPY] * 15)
            fail_msg("%s: auto copies %" PRIu64 " of %" PRIu64 " bytes, bound %" PRIu64
                     " of %" PRIu64,
                     names[i], copied[MPL_CONCAT_AUTO], copied[MPL_CONCAT_COPY],
                     bound[MPL_CONCAT_AUTO], bound[MPL_CONCAT_COPY]);
    }
}

TESTS(choices_are_the_best, many_are_given_up, what_is_undecided_copies,
      relations_of_parts_are_the_graphs, orders_count_parts, zoo_copies_little)
