/* Two networks from Owl's layers against a simulation of Owl's rule: operations, bytes of all
 * outputs, planned bytes, blocks. */
#include "tests/support/test.h"

/* Batch 1. "With fma": the product and sum of a batch norm are one operation. The planned bytes are
 * those of Owl's code; the paper's rule (always in place) takes more: rule=paper, within these
 * bytes. */
static const struct {
    const char *spec;
    uint32_t n_ops, n_blocks; /* n_ops: with fma */
    double sum, sum_with_fma; /* of all outputs [10^6 byte] */
    double planned;           /* [10^6 byte] */
    uint64_t paper_bytes;     /* measured here, not simulated */
} figures[] = {
    {"resnet50:form=owl", 447, 6, 314.2, 271.8, 8.03, 9637800},
    {"inception_v3:form=owl", 789, 9, 272.8, 236.9, 10.18, 11544104},
};

/* Whether a product's only reader is a sum. */
static bool joins(const mpl_graph *g, mpl_op op)
{
    mpl_value out = g->op_out[g->op_out_begin[op]];
    uint32_t first = g->value_use_begin[out];

    return g->op_kind[op] == MPL_OP_mul && g->value_use_begin[out + 1] == first + 1 &&
           g->op_kind[g->value_use[first]] == MPL_OP_add;
}

static void assert_sums(const mpl_graph *g, size_t i)
{
    uint32_t n_joined = 0;
    double sum = 0, joined = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        double mega = (double)g->value_bytes[g->op_out[g->op_out_begin[op]]] * 1e-6;

        sum += mega;
        if (joins(g, op)) {
            n_joined++;
            joined += mega;
        }
    }
    assert_int_equal(g->n_ops - n_joined, figures[i].n_ops);
    assert_float_equal(sum, figures[i].sum, 0.05);
    assert_float_equal(sum - joined, figures[i].sum_with_fma, 0.05);
}

/* Bytes as in Owl: no alignment; a reshape has its own memory, and so has the pinned graph output,
 * in an unshared block. */
static uint64_t planned_bytes(mpl_ctx *ctx, const mpl_graph *g, const char *rule,
                              uint32_t *n_blocks)
{
    mpl_problem_options options = mpl_problem_options_default();
    owned_problem *p = NULL;
    owned_map *map = NULL;
    owned_plan *plan = NULL;
    owned_memory mpl_op *order = NULL;
    mpl_run run;
    uint64_t bytes;

    options.views = false;
    options.align = 1;
    order = order_by(ctx, g, "dfs");
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
    run = mpl_run_default(ctx);
    run.n_params = 1;
    run.param_key = (const char *const[]){"rule"};
    run.param_value = (const char *const[]){rule};
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("owl"), &run, p, &plan));
    *n_blocks = 1;
    for (mpl_buffer b = 0; b < p->n; b++)
        if (plan->block[b] + 2 > *n_blocks)
            *n_blocks = plan->block[b] + 2;
    bytes = plan->peak_bytes + g->value_bytes[g->output[0]];
    return bytes;
}

TEST(test_figures)
{
    uint32_t n_blocks;

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        owned_graph *g = zoo_graph(ctx, figures[i].spec);

        assert_sums(g, i);
        assert_float_equal((double)planned_bytes(ctx, g, "code", &n_blocks) * 1e-6,
                           figures[i].planned, 0.005);
        assert_int_equal(n_blocks, figures[i].n_blocks);
        assert_int_equal(planned_bytes(ctx, g, "paper", &n_blocks), figures[i].paper_bytes);
    }
}

TESTS(test_figures)
