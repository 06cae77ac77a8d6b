/* The gate from inside: whose plan and whose bound make an optimum, rows of plans from files, out
 * of memory. */
#include "tests/support/folder.h"

#include "harness/gate/gate.h"
#include "planners/verify/verify.h"

#define DATA "tests/data/import/"

static int begin(void)
{
    return folder_make("gate") != 0;
}

/* An opened plan file. */
typedef struct opened {
    mpl_options options;
    mpl_import import;
    mpl_record *row;
    mpl_job job;
    char name[200];
} opened;

static mpl_status open_file(mpl_ctx *ctx, const char *graph, const char *path, opened *o)
{
    *o = (opened){.row = NULL};
    mpl_options_init(&o->options);
    return mpl_gate_open_plan(ctx, &o->options, graph, path, o->name, &o->import, &o->row, &o->job);
}

static void shut(mpl_ctx *ctx, opened *o)
{
    mpl_job_fini(ctx, &o->job);
    mpl_record_free(ctx, o->row);
    mpl_import_fini(ctx, &o->import);
    mpl_options_fini(ctx, &o->options);
}

static const char *raised(char path[400])
{
    folder_put_text("raised.offsets.csv",
                    "id,lower,upper,size,offset\na,3,5,13,0\nb,2,4,30,100\nc,4,7,41,200\n"
                    "d,5,7,42,400\ne,1,2,40,400\nf,3,4,8,500\ng,2,5,15,600\nh,1,3,32,700\n");
    snprintf(path, 400, "%s/raised.offsets.csv", folder);
    return path;
}

/* A list whose optimum, 87, is above its bound of 83. With little effort the quick planners find
 * better plans than `exact`; with more effort `exact` does; with enough both prove the optimum, and
 * the first to do so is named. */
TEST(the_best_of_both_counts)
{
    char path[400];
    bool by_quick = false, by_exact = false, proved = false, between = false;
    opened o;

    assert_ok(ctx, open_file(ctx, NULL, raised(path), &o));
    assert_int_equal(o.job.bound_bytes, 83);
    o.options.given[MPL_OPT_budget] = true;
    for (o.options.budget = 20; o.options.budget < 20000; o.options.budget *= 2) {
        mpl_optimum best;

        assert_ok(ctx, mpl_optimum_find(ctx, &o.options, &o.job, &best));
        assert_true(best.best_bytes >= 87 && best.bound_bytes >= 83 && best.bound_bytes <= 87);
        assert_true(best.proved == (best.best_bytes == best.bound_bytes) && best.proved >= proved);
        assert_string_equal(best.bound_kind, best.bound_bytes > 83 ? "search" : o.job.bound_kind);
        assert_false(best.by_clock);
        proved = best.proved;
        between = between || (best.bound_bytes > 83 && !proved);
        by_quick = by_quick || (!proved && strcmp(best.by, "portfolio") == 0);
        by_exact = by_exact || strcmp(best.by, "exact") == 0;
    }
    assert_true(proved && between && by_quick && by_exact);
    shut(ctx, &o);
}

TEST(backends_are_looked_for)
{
    opened o = {.row = NULL};

    mpl_options_init(&o.options);
    o.options.backend = "nope";
    assert_status(ctx,
                  mpl_gate_open_plan(ctx, &o.options, DATA "tensors.csv", DATA "small.offline.bin",
                                     o.name, &o.import, &o.row, &o.job),
                  MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "nope"));
    shut(ctx, &o);
}

TEST(rows_say_where_plans_come_from)
{
    static const struct {
        const char *graph, *file, *name, *planner, *safety;
        uint64_t bytes;
    } rows[] = ROW({NULL, DATA "small.offsets.csv", "small", "minimalloc", "serial", 224},
                   {NULL, DATA "small.xla.txt", "small", "xla", "serial", 640},
                   {NULL, DATA "small.tensors.csv", "small", "libnnc", "parallel", 168},
                   {NULL, DATA "small.pytorch.json", "small", "pytorch", "serial", 6144},
                   {DATA "tensors.csv", DATA "small.offline.bin", DATA "tensors.csv", "offline",
                    "serial", 160},
                   {NULL, "tests/data/serial.plan.json", NULL, NULL, "serial", 0});

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char hash[17];
        uint64_t seed;
        opened o;

        assert_ok(ctx, open_file(ctx, rows[k].graph, rows[k].file, &o));
        if (rows[k].name != NULL) {
            assert_string_equal(mpl_record_get_text(o.row, MPL_FIELD_graph), rows[k].name);
            assert_string_equal(mpl_record_get_text(o.row, MPL_FIELD_planner), rows[k].planner);
            assert_false(mpl_record_get_int(o.row, MPL_FIELD_seed, &seed));
            assert_ok(ctx, mpl_verify(ctx, o.job.problem, o.import.plan));
            assert_int_equal(mpl_gate_bytes(&o.import, o.import.plan), rows[k].bytes);
        }
        assert_string_equal(o.job.text, mpl_record_get_text(o.row, MPL_FIELD_graph));
        assert_string_equal(mpl_record_get_text(o.row, MPL_FIELD_safety), rows[k].safety);
        snprintf(hash, sizeof hash, "%016" PRIx64, mpl_problem_hash(o.job.problem));
        assert_string_equal(mpl_record_get_text(o.row, MPL_FIELD_problem_hash), hash);
        assert_string_equal(mpl_record_get_text(o.row, MPL_FIELD_status), "ok");
        assert_true(mpl_record_is_null(o.row, MPL_FIELD_reason));
        shut(ctx, &o);
    }
}

/* Any failed allocation is reported and everything is freed; no search is skipped silently. */
TEST(memory_runs_out)
{
    static const char *const files[][2] =
        ROW({NULL, DATA "small.offsets.csv"}, {DATA "tensors.csv", DATA "small.offline.bin"},
            {NULL, "tests/data/serial.plan.json"}, {NULL, NULL});
    char path[400];

    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        const char *file = files[k][1] != NULL ? files[k][1] : raised(path);

        EACH_ALLOCATION_FAILS (ctx, st) {
            opened o;

            st = open_file(ctx, files[k][0], file, &o);
            shut(ctx, &o);
        }
    }
}

TEST(searches_without_memory_fail)
{
    char path[400];
    int64_t n_failed = 0, n_allocs;
    mpl_optimum best;
    opened o;

    assert_ok(ctx, open_file(ctx, NULL, raised(path), &o));
    o.options.given[MPL_OPT_budget] = true;
    o.options.budget = 300;
    n_allocs = ctx->n_allocs;
    assert_ok(ctx, mpl_optimum_find(ctx, &o.options, &o.job, &best));
    n_allocs = ctx->n_allocs - n_allocs;
    for (int64_t n = 0; n < n_allocs; n++) {
        int64_t live = ctx->n_live;

        ctx->fail_after = ctx->n_allocs + n;
        n_failed += mpl_optimum_find(ctx, &o.options, &o.job, &best) == MPL_EMEM;
        ctx->fail_after = -1;
        assert_int_equal(ctx->n_live, live);
    }
    assert_true(2 * n_failed > n_allocs); /* the others belong to a proof, which may be given up */
    shut(ctx, &o);
}

TESTS_WITHIN(begin, folder_remove, the_best_of_both_counts, backends_are_looked_for,
             rows_say_where_plans_come_from, memory_runs_out, searches_without_memory_fail)
