/* test_planners_near.c -- plans near an older one: nothing moves without need, and of small
 * problems no fewer buffers can move, by all offsets tried. Fault: a buffer moved that could stay,
 * an old offset kept within which something new lies. */
#include "graphs/io/lists/lists.h"
#include "tests/support/folder.h"
#include "tests/support/random_problem.h"

static uint64_t *near_offsets(mpl_ctx *ctx, const mpl_problem *p, const char *old, const char *most,
                              const char *complete, mpl_plan **out)
{
    const char *keys[] = {"old", "most", "complete"}, *values[] = {old, most, complete};
    mpl_run run;

    mpl_run_init(&run, ctx);
    run.n_params = 3;
    run.param_key = keys;
    run.param_value = values;
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("near"), &run, p, out));
    return (*out)->offset;
}

static const char *old_file(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan)
{
    static char path[400];

    snprintf(path, sizeof path, "%s/old.json", folder);
    assert_ok(ctx, mpl_plan_write(ctx, path, p, plan, NULL));
    return path;
}

static uint32_t moved(const mpl_problem *p, const uint64_t *old, const uint64_t *now)
{
    uint32_t n = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        n += old[b] != now[b];
    return n;
}

/* Least number of moved buffers over all offsets up to the limit: buffers one by one. */
static void try_all(const mpl_problem *p, const uint64_t *old, uint64_t limit, uint64_t *at,
                    mpl_buffer b, uint32_t n, uint32_t *least)
{
    if (n >= *least)
        return;
    if (b == p->n) {
        *least = n;
        return;
    }
    for (at[b] = 0; at[b] + p->bytes[b] <= limit; at[b]++) {
        bool apart = true;

        for (mpl_buffer a = 0; a < b && apart; a++)
            apart = !mpl_conflict(p, a, b) || at[a] + p->bytes[a] <= at[b] ||
                    at[b] + p->bytes[b] <= at[a];
        if (apart)
            try_all(p, old, limit, at, b + 1, n + (at[b] != old[b]), least);
    }
}

static mpl_problem *draw(mpl_ctx *ctx, mpl_rng *rng, uint32_t n)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "near", n, &p));
    p->n_steps = 8;
    for (mpl_buffer b = 0; b < n; b++) {
        p->birth[b] = (uint32_t)mpl_rng_below(rng, 6);
        p->death[b] = p->birth[b] + 1 + (uint32_t)mpl_rng_below(rng, 8 - p->birth[b]);
        p->bytes[b] = 1 + mpl_rng_below(rng, 4);
    }
    return p;
}

TEST(no_fewer_can_move)
{
    mpl_rng rng;
    uint32_t needed = 0, more = 0;

    mpl_rng_init(&rng, 5);
    for (uint32_t round = 0; round < draws(300); round++) {
        owned_problem *p = draw(ctx, &rng, 2 + (uint32_t)mpl_rng_below(&rng, 5));
        owned_plan *before = planned_by(ctx, "greedy_size", p), *least = NULL, *quick = NULL,
                   *scratch;
        const char *path = old_file(ctx, p, before);
        uint64_t at[8], limit;
        uint32_t fewest = UINT32_MAX, changed = (uint32_t)mpl_rng_below(&rng, p->n);

        p->bytes[changed] = 1 + mpl_rng_below(&rng, 6);
        scratch = planned_by(ctx, "greedy_size", p);
        limit = scratch->peak_bytes + scratch->peak_bytes / 4;
        try_all(p, before->offset, limit, at, 0, 0, &fewest);
        near_offsets(ctx, p, path, "2500", "1", &least);
        assert_true(least->peak_bytes <= limit);
        assert_int_equal(moved(p, before->offset, least->offset), fewest);
        near_offsets(ctx, p, path, "2500", "0", &quick);
        assert_true(quick->peak_bytes <= limit);
        assert_true(moved(p, before->offset, quick->offset) >= fewest);
        more += moved(p, before->offset, quick->offset) > fewest;
        needed += fewest > 0;
    }
    assert_true(needed > draws(300) / 20);
    assert_true(more <= draws(300) / 10); /* the quick way is rarely worse */
}

/* Of three buffers that are alive at once the last one's old place is beyond the limit: it takes a
 * gap that is just as large, the lowest of those that are, and the others stay. */
TEST(gaps_are_filled)
{
    static const struct {
        uint64_t old[3], now;
        const char *most;
    } rows[] = ROW({{0, 128, 192}, 64, "0"}, {{192, 64, 256}, 0, "5000"},
                   {{64, 192, 256}, 0, "5000"}, {{0, 192, 256}, 64, "5000"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_problem *p = NULL;
        owned_plan *before, *after = NULL;

        assert_ok(ctx, mpl_problem_new(ctx, "gaps", 3, &p));
        p->n_steps = 1;
        for (mpl_buffer b = 0; b < 3; b++)
            p->birth[b] = 0, p->death[b] = 1, p->bytes[b] = 64;
        before = planned_by(ctx, "greedy_size", p);
        memcpy(before->offset, rows[i].old, sizeof rows[i].old);
        before->peak_bytes = before->pool_bytes[0] = mpl_pool_height(p, 0, before->offset);
        near_offsets(ctx, p, old_file(ctx, p, before), rows[i].most, "0", &after);
        assert_int_equal(after->offset[2], rows[i].now);
        assert_int_equal(moved(p, before->offset, after->offset), 1);
    }
}

/* A thousand buffers, one of which grows: the rest stays but for what is in its way. */
TEST(one_change_of_a_thousand)
{
    owned_problem *p = NULL;
    owned_plan *before, *after = NULL, *same = NULL;
    const char *path;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 1000, 100, 3, &p));
    before = planned_by(ctx, "portfolio", p);
    path = old_file(ctx, p, before);
    near_offsets(ctx, p, path, "100", "0", &same);
    assert_int_equal(moved(p, before->offset, same->offset), 0);
    p->bytes[500] += 64;
    near_offsets(ctx, p, path, "100", "0", &after);
    assert_true(moved(p, before->offset, after->offset) <= 10);
}

static int begin(void)
{
    return folder_make("near");
}

TESTS_WITHIN(begin, folder_remove, no_fewer_can_move, gaps_are_filled, one_change_of_a_thousand)
