/* The block planners on examples worked out by hand from their descriptions: the block of each
 * buffer and the block sizes. */
#include "tests/support/test.h"

enum { MAX = 8 };

typedef struct example {
    const char *what, *planner, *key, *value; /* key NULL: no parameter */
    uint32_t n;
    uint64_t bytes[MAX];
    uint32_t birth[MAX], death[MAX];
    uint32_t pair[3][3]; /* in, out, step */
    uint32_t n_pairs;
    uint32_t type[MAX], shape[MAX];
    uint8_t alone[MAX];
    uint32_t block[MAX]; /* wanted: block of each buffer */
    uint64_t total;      /* wanted: sum of the blocks */
} example;

/* One operation per step: 0 makes a, 1 reads a, 2 reads b, 3 reads c. a = 10, b = 4, c = 6, d = 12
 * bytes. */
#define CHAIN                                                                                      \
    4, {10, 4, 6, 12}, {0, 1, 2, 3},                                                               \
    {                                                                                              \
        2, 3, 4, 5                                                                                 \
    }
/* When c = 3 is made, a's 4 bytes are free and b = 10 may be overwritten; then d = 10 is made from
 * c. */
#define CHOICE                                                                                     \
    4, {4, 10, 3, 10}, {0, 1, 2, 3},                                                               \
    {                                                                                              \
        2, 3, 4, 5                                                                                 \
    }
/* Blocks of 8 and then 4 bytes are free when 3 bytes, and one step later 8, are requested; all live
 * on. */
#define SHELF                                                                                      \
    4, {8, 4, 3, 8}, {0, 1, 4, 5},                                                                 \
    {                                                                                              \
        2, 3, 9, 9                                                                                 \
    }
/* a = 5 is free when one operation makes 3 and 5 bytes. */
#define TWO                                                                                        \
    3, {5, 3, 5}, {0, 2, 2},                                                                       \
    {                                                                                              \
        1, 4, 4                                                                                    \
    }
/* Two equal blocks, a's freed before b's without a read of a. Then c takes one and d the other. */
#define EQUAL                                                                                      \
    4, {8, 8, 8, 8}, {0, 0, 3, 4},                                                                 \
    {                                                                                              \
        1, 2, 9, 9                                                                                 \
    }

/* clang-format off */
static const example examples[] = {
    /* c fits into a's block; d fits nowhere: Owl enlarges b's, the largest free one */
    {"owl grows the largest", "owl", NULL, NULL, CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 0, 1}, 22},
    {"the pool opens a third block", "pool", NULL, NULL, CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 0,
        2}, 26},
    {"level 1 too", "pool", "level", "1", CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 0, 2}, 26},
    {"level 0 wants the same shape", "pool", "level", "0", CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 2,
        3}, 32},
    {"mxnet grows within its range", "mxnet", NULL, NULL, CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 0,
        1}, 22},
    {"range 4 reaches", "mxnet", "range", "4", CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 0, 1}, 22},
    {"range 2: 4 is too small for 12", "mxnet", "range", "2", CHAIN, {{0}}, 0, {0}, {0}, {0},
     {0, 1, 0, 2}, 26},
    {"range 1: equal sizes alone", "mxnet", "range", "1", CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 2,
        3}, 32},
    {"range 0: nothing", "mxnet", "range", "0", CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 2, 3}, 32},
    {"auto finds the least", "mxnet", "range", "auto", CHAIN, {{0}}, 0, {0}, {0}, {0}, {0, 1, 0, 1},
        22},

    /* the paper works in place although a smaller block would do, and then lacks b's */
    {"paper: in place first", "owl", "rule", "paper", CHOICE, {{1, 2, 2}}, 1, {0}, {0}, {0},
     {0, 1, 1, 0}, 20},
    {"code: the better fit", "owl", "rule", "code", CHOICE, {{1, 2, 2}}, 1, {0}, {0}, {0}, {0, 1, 0,
        1}, 14},
    {"the pool takes the better fit", "pool", NULL, NULL, CHOICE, {{1, 2, 2}}, 1, {0}, {0}, {0},
     {0, 1, 0, 1}, 14},
    {"pool levels do not work in place", "pool", "level", "1", 2, {8, 8}, {0, 1}, {2, 3}, {{0, 1,
        1}}, 1,
     {0}, {0}, {0},
     {0, 1}, 16},
    {"among equals the parent's block", "owl", "rule", "code", 3, {8, 8, 8}, {0, 1, 2}, {2, 3, 4},
     {{1, 2, 2}}, 1, {0}, {0},
     {0}, {0, 1, 1}, 16},
    {"in the pool too: it came last", "pool", NULL, NULL, 3, {8, 8, 8}, {0, 1, 2}, {2, 3, 4},
     {{1, 2, 2}}, 1, {0}, {0}, {0},
     {0, 1, 1}, 16},
    {"the paper's parent: the smallest block", "owl", NULL, NULL, 3, {9, 8, 7}, {0, 0, 1}, {2, 2,
        3},
     {{0, 2, 1}, {1, 2, 1}}, 2, {0}, {0}, {0}, {0, 1, 1}, 17},

    {"the pool takes the smallest that is large enough", "pool", NULL, NULL, SHELF, {{0}}, 0, {0},
        {0},
     {0}, {0, 1, 1, 0}, 12},
    {"level 1 takes the first that is large enough", "pool", "level", "1", SHELF, {{0}}, 0, {0},
        {0}, {0},
     {0, 1, 0, 2}, 20},
    {"owl takes the smallest too", "owl", NULL, NULL, SHELF, {{0}}, 0, {0}, {0}, {0}, {0, 1, 1, 0},
        12},

    {"mxnet serves the larger output first", "mxnet", NULL, NULL, TWO, {{0}}, 0, {0}, {0}, {0}, {0,
        1, 0}, 8},
    {"owl the first", "owl", NULL, NULL, TWO, {{0}}, 0, {0}, {0}, {0}, {0, 0, 1}, 10},

    {"mxnet takes the block released first", "mxnet", NULL, NULL, EQUAL, {{0}}, 0, {0}, {0}, {0},
     {0, 1, 0, 1}, 16},
    {"owl the one released last", "owl", NULL, NULL, EQUAL, {{0}}, 0, {0}, {0}, {0}, {0, 1, 1, 0},
        16},
    {"level 1: dead outputs never return", "pool", "level", "1", EQUAL, {{0}}, 0, {0}, {0}, {0},
     {0, 1, 1, 2}, 24},

    {"types do not mix in the code", "pool", "level", "1", 2, {8, 8}, {0, 2}, {2, 3}, {{0}}, 0, {0,
        1},
     {0}, {0}, {0, 1}, 16},
    {"they do in the document", "pool", NULL, NULL, 2, {8, 8}, {0, 2}, {2, 3}, {{0}}, 0, {0, 1},
        {0}, {0},
     {0, 0}, 8},
    {"equal bytes, other shape", "pool", "level", "0", 2, {8, 8}, {0, 2}, {2, 3}, {{0}}, 0, {0}, {0,
        1},
     {0}, {0, 1}, 16},
    {"equal shape", "pool", "level", "0", 2, {8, 8}, {0, 2}, {2, 3}, {{0}}, 0, {0}, {1, 1}, {0}, {0,
        0}, 8},
    {"mxnet in place: equal types", "mxnet", NULL, NULL, 2, {8, 8}, {0, 1}, {2, 3}, {{0, 1, 1}}, 1,
     {1, 1}, {0}, {0}, {0, 0}, 8},
    {"not with other types", "mxnet", NULL, NULL, 2, {8, 8}, {0, 1}, {2, 3}, {{0, 1, 1}}, 1, {0, 1},
        {0},
     {0}, {0, 1}, 16},

    {"owl: scalars have their own", "owl", NULL, NULL, 3, {4, 4, 4}, {0, 1, 2}, {1, 2, 3}, {{0}}, 0,
        {0},
     {0}, {1, 0, 0},
     {0, 1, 1}, 8},
    {"also where they could overwrite", "owl", NULL, NULL, 2, {4, 4}, {0, 1}, {2, 3}, {{0, 1, 1}},
        1, {0},
     {0}, {0, 1},
     {0, 1}, 8},
    {"and be overwritten", "owl", NULL, NULL, 2, {4, 4}, {0, 1}, {2, 3}, {{0, 1, 1}}, 1, {0}, {0},
        {1, 0},
     {0, 1}, 8},
    {"one input serves one output", "owl", NULL, NULL, 3, {4, 4, 4}, {0, 1, 1}, {2, 3, 3}, {{0, 1,
        1},
     {0, 2, 1}}, 2, {0}, {0},
     {0}, {0, 0, 1}, 8},
};
/* clang-format on */

static mpl_problem *make(mpl_ctx *ctx, const example *e)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, e->what, e->n, &p));
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 3));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 3));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 3));
    assert_ok(ctx, mpl_new(ctx, p->type_id, e->n));
    assert_ok(ctx, mpl_new(ctx, p->no_reuse, e->n));
    p->n_in_place = e->n_pairs;
    for (uint32_t i = 0; i < e->n_pairs; i++) {
        p->in_place_in[i] = e->pair[i][0];
        p->in_place_out[i] = e->pair[i][1];
        p->in_place_step[i] = e->pair[i][2];
    }
    if (e->shape[1] != 0)
        assert_ok(ctx, mpl_new(ctx, p->shape_id, e->n));
    for (mpl_buffer b = 0; b < e->n; b++) {
        p->bytes[b] = e->bytes[b];
        p->birth[b] = e->birth[b];
        p->death[b] = e->death[b];
        p->n_steps = e->death[b] > p->n_steps ? e->death[b] : p->n_steps;
        p->type_id[b] = e->type[b];
        p->no_reuse[b] = e->alone[b];
        if (p->shape_id != NULL)
            p->shape_id[b] = e->shape[b];
    }
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

TEST(examples_get_their_blocks)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const example *e = &examples[i];
        owned_problem *p = make(ctx, e);
        owned_plan *plan = NULL;

        assert_ok(ctx, plan_with(ctx, e->planner, e->key, e->value, 0, p, &plan));
        assert_non_null(plan->block);
        for (mpl_buffer b = 0; b < e->n; b++)
            if (plan->block[b] != e->block[b])
                fail_msg("%s: buffer %u lies in block %u, not %u", e->what, b, plan->block[b],
                         e->block[b]);
        if (plan->peak_bytes != e->total)
            fail_msg("%s: %" PRIu64 " bytes, not %" PRIu64, e->what, plan->peak_bytes, e->total);
    }
}

TESTS(examples_get_their_blocks)
