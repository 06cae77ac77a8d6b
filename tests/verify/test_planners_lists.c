/* Planners on other projects' buffer lists: greedy_size's exact results; every plan valid and not
 * below peak live. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/test.h"

#include "planners/import/import.h"
#include "planners/verify/verify.h"

#define LISTS MPL_SHARED "/minimalloc/"

/* Known results of largest-first first-fit (ties: longer lifetime, then file row), and peak live
 * bytes. */
static const struct {
    const char *path;
    uint64_t planned, live;
} lists[] = {
    {LISTS "A.1048576.csv", 1352704, 1048576},
    {LISTS "C.1048576.csv", 1417216, 1039360},
    {LISTS "D.1048576.csv", 1291264, 986112},
    {LISTS "E.1048576.csv", 1435648, 1048576},
    {LISTS "G.1048576.csv", 1428480, 1048576},
    {LISTS "I.1048576.csv", 1478656, 1048576},
    {LISTS "J.1048576.csv", 1298432, 989184},
    {LISTS "K.1048576.csv", 1339392, 1048576},
    {MPL_SHARED "/idealloc/somas_resnet50.csv", 0, 1515472556}, /* + 0.643 % */
    {MPL_SHARED "/idealloc/G_1.csv", 0, 3030937746},            /* + 0.275 % */
    {MPL_SHARED "/idealloc/S_1.csv", 0, 1498635932},            /* + 2.931 % */
};

/* If only a percentage is known: thousandths of a percent above peak live, rounded. */
static const uint64_t above[] = {0, 0, 0, 0, 0, 0, 0, 0, 643, 275, 2931};

TEST(greedy_size_gives_the_known_bytes)
{
    skip_without(lists[0].path);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        owned_problem *p = NULL;
        owned_plan *plan = NULL;
        uint64_t live;

        assert_ok(ctx, mpl_csv_read(ctx, lists[i].path, &p, NULL));
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &live, NULL, NULL));
        assert_int_equal(live, lists[i].live);
        plan = planned_by(ctx, "greedy_size", p);
        if (lists[i].planned != 0 && plan->peak_bytes != lists[i].planned)
            fail_msg("%s: %" PRIu64 " bytes, not %" PRIu64, lists[i].path, plan->peak_bytes,
                     lists[i].planned);
        if (lists[i].planned == 0)
            assert_int_equal(((plan->peak_bytes - live) * 100000 + live / 2) / live, above[i]);
    }
}

TEST(every_planner_is_valid_on_every_list)
{
    skip_without(lists[0].path);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        owned_problem *p = NULL;

        assert_ok(ctx, mpl_csv_read(ctx, lists[i].path, &p, NULL));
        for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++) {
            owned_plan *plan = NULL;
            mpl_run run;

            /* a partial order of lifetimes takes n^2 bits */
            if (left_out(i + (size_t)(planner - mpl_planners)) || (*planner)->plan == NULL ||
                ((*planner)->traits & (MPL_PARALLEL_ONLY | MPL_SPREADS)) != 0)
                continue;
            run = mpl_run_default(ctx);
            run.budget_ticks = 1000000;
            assert_ok(ctx, mpl_planner_run(*planner, &run, p, &plan));
            assert_true(plan->peak_bytes >= lists[i].live);
        }
    }
}

/* The packings that the appendix mentions: each at its list's peak live bytes, so none is lower.
 * Shifted by one row of the list they are refused. */
TEST(packings_are_what_they_are_said_to_be)
{
    static const struct {
        const char *list, *packing;
        uint64_t height;
    } known[] = ROW({LISTS "D.1048576.csv", "results/packings/D.986112.json", 986112},
                    {LISTS "J.1048576.csv", "results/packings/J.989184.json", 989184});

    skip_without(known[0].list);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        owned_problem *p = NULL;
        mpl_import import = {0};
        uint64_t live, first;

        assert_ok(ctx, mpl_csv_read(ctx, known[i].list, &p, NULL));
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &live, NULL, NULL));
        assert_int_equal(live, known[i].height);
        assert_ok(ctx, mpl_plan_import(ctx, known[i].packing, p, &import));
        assert_ok(ctx, mpl_verify(ctx, p, import.plan));
        assert_int_equal(import.plan->peak_bytes, known[i].height);
        first = import.plan->offset[0];
        memmove(import.plan->offset, import.plan->offset + 1, (p->n - 1) * sizeof first);
        import.plan->offset[p->n - 1] = first;
        assert_status(ctx, mpl_verify(ctx, p, import.plan), MPL_EINVALID);
        mpl_import_fini(ctx, &import);
    }
}

TESTS(greedy_size_gives_the_known_bytes, every_planner_is_valid_on_every_list,
      packings_are_what_they_are_said_to_be)
