/* NNC: production's recorded problems and plans, its ratios on lists, invariants on random
 * problems. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/test.h"

#include "graphs/problem/before.h"
#include "graphs/core/rng.h"
#include "planners/verify/verify.h"

/* Planned bytes of one planner on a problem, verified by the entry check. */
static uint64_t planned(mpl_ctx *ctx, const char *name, const mpl_problem *p, mpl_plan **keep)
{
    mpl_run run = mpl_run_default(ctx);
    mpl_plan *plan = NULL;
    uint64_t bytes;

    assert_non_null(mpl_planner_find(name));
    assert_ok(ctx, mpl_planner_run(mpl_planner_find(name), &run, p, &plan));
    bytes = plan->peak_bytes;
    if (keep != NULL)
        *keep = plan;
    else
        mpl_plan_free(ctx, plan);
    return bytes;
}

static const struct {
    const char *name;
    double bound_mib;      /* as recorded, two decimals */
    double production_mib; /* libnnc's arena */
} records[] = {
    {"resnet50_1_infer", 13.02, 13.02},      {"densenet121_1_infer", 6.89, 8.42},
    {"inceptionv3_1_infer", 10.55, 13.19},   {"lstm_32_infer", 8.25, 8.25},
    {"resnet50_16_train", 1225.20, 1225.20}, {"vgg16_16_train", 931.00, 931.00},
};

/* The recorded plan with its blocks laid end to end. */
static mpl_plan *production_plan(mpl_ctx *ctx, const mpl_problem *p, const mpl_nnc_record *record)
{
    mpl_plan *plan = NULL;
    uint64_t base = 0;

    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    plan->claim = MPL_FEASIBLE;
    for (uint64_t block = 0; block < 4096; block++) {
        uint64_t end = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (record->block[b] == block) {
                plan->offset[b] = base + record->offset[b];
                end = mpl_max_u64(end, record->offset[b] + p->bytes[b]);
            }
        base += (end + 63) / 64 * 64;
    }
    return plan;
}

TEST(production_is_reproduced)
{
    skip_without(MPL_SHARED "/libnnc");
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        char path[200];
        owned_problem *p = NULL;
        mpl_nnc_record record = {0};
        owned_plan *plan;
        uint64_t bound, mine;

        snprintf(path, sizeof path, MPL_SHARED "/libnnc/%s.tensors.csv", records[i].name);
        assert_ok(ctx, mpl_nnc_read(ctx, path, &p, &record));
        assert_true(record.has_plan);
        assert_ok(ctx, mpl_antichain(ctx, p, 0, &bound, NULL));
        assert_true(bound / 1048576.0 > records[i].bound_mib - 0.005 &&
                    bound / 1048576.0 < records[i].bound_mib + 0.005);
        plan = production_plan(ctx, p, &record);
        assert_ok(ctx, mpl_verify(ctx, p, plan));
        assert_true(plan->peak_bytes / 1048576.0 > records[i].production_mib - 0.005 &&
                    plan->peak_bytes / 1048576.0 < records[i].production_mib + 0.005);
        mine = planned(ctx, "nnc_2019", p, NULL);
        assert_true(mine * 1000 >= plan->peak_bytes * 999 &&
                    mine * 1000 <= plan->peak_bytes * 1001);
        assert_int_equal(planned(ctx, "nnc_arena", p, NULL), bound);
        assert_true(planned(ctx, "nnc_2018", p, NULL) >= bound);
        mpl_nnc_record_fini(ctx, &record);
    }
}

/* Production's plan with any one tensor moved by an alignment step onto one that it interferes
 * with. */
TEST(moved_tensors_are_refused)
{
    uint32_t n_refused = 0;

    skip_without(MPL_SHARED "/libnnc");
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        char path[200];
        owned_problem *p = NULL;
        mpl_nnc_record record = {0};
        owned_plan *plan;

        snprintf(path, sizeof path, MPL_SHARED "/libnnc/%s.tensors.csv", records[i].name);
        assert_ok(ctx, mpl_nnc_read(ctx, path, &p, &record));
        plan = production_plan(ctx, p, &record);
        for (mpl_buffer a = 0; a < p->n; a++) {
            mpl_buffer b = 0;

            plan->offset[a] += 64;
            while (b < p->n &&
                   !(mpl_conflict(p, a, b) && plan->offset[a] < plan->offset[b] + p->bytes[b] &&
                     plan->offset[b] < plan->offset[a] + p->bytes[a]))
                b++;
            if (b < p->n) { /* now overlaps an interfering one */
                assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
                n_refused++;
            } else {
                assert_ok(ctx, mpl_verify(ctx, p, plan));
            }
            plan->offset[a] -= 64;
        }
        mpl_nnc_record_fini(ctx, &record);
    }
    assert_true(n_refused > 100);
}

/* Ratios to peak live of libnnc's allocator on the lists; ties differ, so within 5 %. */
static const struct {
    const char *name;
    double ratio;
} lists[] = {
    {"A", 1.27}, {"C", 1.40}, {"D", 1.30}, {"E", 1.45},
    {"G", 1.47}, {"I", 1.67}, {"J", 1.24}, {"K", 1.44},
};

TEST(lists_are_near_production)
{
    skip_without(MPL_SHARED "/minimalloc");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char path[200];
        owned_problem *p = NULL;
        uint64_t peak, mine;

        snprintf(path, sizeof path, MPL_SHARED "/minimalloc/%s.1048576.csv", lists[i].name);
        assert_ok(ctx, mpl_csv_read(ctx, path, &p, NULL));
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
        mine = planned(ctx, "nnc_2019", p, NULL);
        assert_true((double)mine / (double)peak > lists[i].ratio * 0.95);
        assert_true((double)mine / (double)peak < lists[i].ratio * 1.05);
        assert_true(planned(ctx, "nnc_arena", p, NULL) <= mine);
    }
}

static mpl_problem *random_problem(mpl_ctx *ctx, mpl_rng *rng)
{
    uint32_t n = 1 + (uint32_t)mpl_rng_below(rng, 30), odds = 2 + (uint32_t)mpl_rng_below(rng, 12);
    uint32_t from[30 * 30], to[30 * 30];
    size_t n_arcs = 0;
    mpl_problem *p = NULL;
    mpl_before *o = NULL;

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++)
            if (mpl_rng_below(rng, odds) == 0) {
                from[n_arcs] = n - 1 - a; /* descending ids: code must not rely on ascending ones */
                to[n_arcs++] = n - 1 - b;
            }
    assert_ok(ctx, mpl_before_from_arcs(ctx, n, n_arcs, from, to, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "random", n, &p));
    p->before = o;
    for (uint32_t b = 0; b < n; b++) {
        p->bytes[b] = 1 + mpl_rng_below(rng, 20);
        p->align[b] = 1u << mpl_rng_below(rng, 4);
    }
    return p;
}

TEST(random_problems)
{
    static const char *const names[] = {"nnc_2018", "nnc_2019", "nnc_arena"};
    mpl_rng rng = mpl_rng_of(7);

    for (uint32_t round = 0; round < draws(300); round++) {
        owned_problem *p = random_problem(ctx, &rng);
        uint64_t bound, got[3];

        assert_ok(ctx, mpl_antichain(ctx, p, 0, &bound, NULL));
        for (int k = 0; k < 3; k++) {
            owned_plan *one = NULL, *other = NULL;
            mpl_run run = mpl_run_default(ctx);

            run.budget_ticks = 20000;
            assert_ok(ctx, mpl_planner_run(mpl_planner_find(names[k]), &run, p, &one));
            run = mpl_run_default(ctx);
            run.budget_ticks = 20000;
            assert_ok(ctx, mpl_planner_run(mpl_planner_find(names[k]), &run, p, &other));
            assert_memory_equal(one->offset, other->offset, p->n * sizeof *one->offset);
            got[k] = one->peak_bytes;
        }
        assert_true(got[0] >= bound && got[1] >= bound && got[2] >= bound);
        assert_true(got[2] <= got[1]);
    }
}

/* Size first, then edge count, then the tightest edge, by hand: 0 (8) before 1 (4) before 2 (8): 0
 * and 2 share a block; 1 lies at its front. */
TEST(worked_by_hand)
{
    owned_problem *p = NULL;
    mpl_before *o = NULL;
    owned_plan *plan;

    assert_ok(ctx, mpl_before_from_arcs(ctx, 4, 2, (uint32_t[]){0, 1}, (uint32_t[]){1, 2}, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "hand", 4, &p));
    p->before = o;
    memcpy(p->bytes, (uint64_t[]){8, 4, 8, 2}, 4 * sizeof *p->bytes);
    assert_int_equal(planned(ctx, "nnc_2019", p, &plan), 10);
    assert_int_equal(plan->block[0], plan->block[2]);
    assert_int_equal(plan->block[0], plan->block[1]);
    assert_int_not_equal(plan->block[0], plan->block[3]);
    assert_int_equal(plan->offset[1], plan->offset[0]);
}

static mpl_plan *plan_of_pairs(mpl_ctx *ctx, const mpl_problem *p, const char *key,
                               const char *value, const char *pairs)
{
    const char *keys[] = {key, "pairs"}, *values[] = {value, pairs};
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);

    run.n_params = 2;
    run.param_key = keys;
    run.param_value = values;
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("nnc_2018"), &run, p, &plan));
    return plan;
}

static uint64_t planned_with(mpl_ctx *ctx, const mpl_problem *p, const char *key, const char *value,
                             const char *pairs)
{
    owned_plan *plan = plan_of_pairs(ctx, p, key, value, pairs);

    return plan->peak_bytes;
}

/* Eight buffers, one after the other: 0 1 3 2 4 5 6 7. By the text a block of 8 is opened by 0, and
 * another by the pair of 1 and 2, between which 3 finds room; the rest touches source or sink. */
TEST(text_and_code_by_hand)
{
    owned_problem *p = NULL;
    mpl_before *o = NULL;

    assert_ok(ctx, mpl_before_from_arcs(ctx, 8, 7, (uint32_t[]){0, 1, 3, 2, 4, 5, 6},
                                        (uint32_t[]){1, 3, 2, 4, 5, 6, 7}, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "hand", 8, &p));
    p->before = o;
    memcpy(p->bytes, (uint64_t[]){8, 4, 8, 1, 1, 1, 1, 1}, 8 * sizeof *p->bytes);
    assert_int_equal(planned_with(ctx, p, "rule", "code", "on"), 8);
    assert_int_equal(planned_with(ctx, p, "rule", "text", "on"), 8 + 8 + 4);
    assert_int_equal(planned_with(ctx, p, "rule", "text", "off"), 8 + 4 + 8 + 5);
    assert_int_equal(planned_with(ctx, p, "ties", "reversed", "on"), 8);
}

/* Equal keys: what a tie rule chooses is valid, and the same at every call. */
TEST(ties)
{
    static const char *const rules[] = {"id", "reversed", "shuffled"};
    mpl_rng rng = mpl_rng_of(11);
    uint32_t differ = 0;

    for (int round = 0; round < 100; round++) {
        owned_problem *p = random_problem(ctx, &rng);
        uint64_t got[3];

        for (int k = 0; k < 3; k++) {
            got[k] = planned_with(ctx, p, "ties", rules[k], "on");
            assert_int_equal(planned_with(ctx, p, "ties", rules[k], "on"), got[k]);
        }
        differ += got[0] != got[1] || got[0] != got[2];
    }
    assert_true(differ > 10);
}

/* Six buffers: 0 before 1 and 2, 3 4 5 one after the other, 5 before 1, 4 before 2. Of these 0 has
 * the most interferences, three, and may bring 1, of 4 bytes and one interference, or 2, of 2 bytes
 * and two. Which of them shares its block says which key comes first. */
TEST(keys_by_hand)
{
    static const struct {
        const char *keys;
        mpl_buffer with;
    } rows[] = {{"size+edges", 1}, {"size", 1}, {"edges+size", 2}, {"edges", 2}};
    owned_problem *p = NULL;
    mpl_before *o = NULL;

    assert_ok(ctx, mpl_before_from_arcs(ctx, 6, 6, (uint32_t[]){0, 0, 3, 4, 4, 5},
                                        (uint32_t[]){1, 2, 4, 5, 2, 1}, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "hand", 6, &p));
    p->before = o;
    memcpy(p->bytes, (uint64_t[]){1, 4, 2, 1, 1, 1}, 6 * sizeof *p->bytes);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_plan *plan = plan_of_pairs(ctx, p, "keys", rows[i].keys, "on");

        assert_int_equal(plan->block[0], plan->block[rows[i].with]);
        assert_int_not_equal(plan->block[0], plan->block[3 - rows[i].with]);
        assert_int_equal(plan->offset[0], plan->offset[rows[i].with]);
    }
}

TESTS(production_is_reproduced, moved_tensors_are_refused, lists_are_near_production,
      random_problems, worked_by_hand, text_and_code_by_hand, keys_by_hand, ties)
