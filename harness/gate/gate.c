/* gate.c -- finds optima of problems, and opens plans of other allocators as jobs. See gate.h. */
#include "harness/gate/gate.h"

static const uint64_t QUICK_TICKS = 20000000;

/* Asks a planner for its best plan and bound, and updates *out. No answer within the budget, or a
 * problem that the planner cannot take, is no failure. */
static mpl_status ask(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                      const char *name, uint64_t ticks, mpl_optimum *out)
{
    const char *key = "minimise", *value = "1";
    mpl_params params = {.key = {1, 1, &key}, .value = {1, 1, &value}};
    const mpl_planner *planner = mpl_planner_find(name);
    mpl_plan *plan = NULL;
    mpl_status st;
    mpl_run run;

    mpl_asked_run(ctx, options, &params, &run);
    run.budget_ticks = ticks;
    run.watch = NULL;
    st = mpl_planner_run(planner, &run, job->problem, &plan);
    if (st == MPL_ELIMIT || st == MPL_EUNAVAIL)
        st = MPL_OK;
    if (st != MPL_OK || plan == NULL)
        goto out;
    out->by_clock = run.stopped_by_clock;
    if (plan->bound_bytes > out->bound_bytes) {
        out->bound_bytes = plan->bound_bytes;
        out->bound_kind = "search";
    }
    if (plan->claim != MPL_OPTIMAL && plan->claim != MPL_FEASIBLE)
        goto out;
    if (plan->peak_bytes < out->best_bytes) {
        out->best_bytes = plan->peak_bytes;
        out->by = planner->name;
    }
    if (plan->claim == MPL_OPTIMAL && plan->peak_bytes == out->best_bytes)
        out->proved = true; /* the best plan meets the bound */
out:
    mpl_plan_free(ctx, plan);
    return st;
}

mpl_status mpl_optimum_find(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                            mpl_optimum *out)
{
    uint64_t budget = options->given[MPL_OPT_budget] ? options->budget : MPL_GATE_TICKS;

    *out = (mpl_optimum){
        .bound_bytes = job->bound_bytes, .bound_kind = job->bound_kind, .best_bytes = UINT64_MAX};
    MPL_PASS(ask(ctx, options, job, "portfolio", mpl_min_u64(budget, QUICK_TICKS), out));
    if (!out->proved)
        MPL_PASS(ask(ctx, options, job, "exact", budget, out));
    return MPL_OK;
}

/* ---- plans as jobs ---- */

/* "../x/densenet121.tensors.csv" to "densenet121"; of XLA's own names, which begin with a number of
 * the run, "module_0008.jit_f.cpu_after_optimizations-.." to "module_0008.jit_f". */
static void name_of(const char *path, char *name)
{
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    size_t n = strcspn(base, ".");
    const char *ending = strstr(base, "-buffer-assignment.txt");

    if (ending != NULL && ending > base && strstr(base, "after_optimizations") == NULL)
        n = (size_t)(ending - base);
    else if (ending != NULL && strncmp(base, "module_", strlen("module_")) == 0 && base[n] == '.')
        n += 1 + strcspn(base + n + 1, ".");
    snprintf(name, 200, "%.*s", n > 0 && n < 199 ? (int)n : 199, base);
}

/* Opens the problem in the file alone, without GRAPH. */
static mpl_status open_alone(mpl_ctx *ctx, const mpl_options *options, mpl_import *import,
                             mpl_job *out)
{
    mpl_status st = MPL_OK;
    mpl_job job = {.text = out->text};

    job.source.problem = import->problem;
    import->problem = NULL;
    job.safety = mpl_list_safety(job.source.problem);
    job.graph_hash = mpl_problem_hash(job.source.problem);
    MPL_TRY(mpl_machine_get(ctx, &job.machine));
    MPL_TRY(mpl_job_problem(ctx, options, NULL, NULL, &job));
    *out = job;
    memset(&job, 0, sizeof job);
out:
    mpl_job_fini(ctx, &job);
    return st;
}

/* Opens GRAPH first; the file must be of its problem. */
static mpl_status open_with_graph(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                                  const char *path, mpl_import *import, mpl_job *job)
{
    MPL_PASS(mpl_job_open(ctx, options, graph, job));
    MPL_PASS(mpl_job_problem_here(ctx, options, job));
    MPL_PASS(mpl_plan_import(ctx, path, job->problem, import));
    if (import->problem != NULL &&
        mpl_problem_hash(import->problem) != mpl_problem_hash(job->problem))
        return MPL_REFUSE(
            ctx,
            "%.150s: a plan for another problem than %.150s: %u buffers, hash %016" PRIx64
            "; it has %u, "
            "%016" PRIx64,
            path, graph, import->problem->n, mpl_problem_hash(import->problem), job->problem->n,
            mpl_problem_hash(job->problem));
    return MPL_OK;
}

/* Opens memplan's own file. Options come from it; GRAPH is optional. */
static mpl_status open_own(mpl_ctx *ctx, mpl_options *options, const char *graph, const char *path,
                           char *name, mpl_import *import, mpl_record **row, mpl_job *job)
{
    mpl_status st = MPL_OK;
    const char *text;

    if (graph != NULL) {
        mpl_plan_file file = {0};

        st = mpl_job_open_plan(ctx, options, graph, path, &file, row, job);
        *import = (mpl_import){.format = "memplan", .problem = file.problem, .plan = file.plan};
        mpl_free(ctx, file.fields_json);
        goto out;
    }
    MPL_TRY(mpl_plan_import(ctx, path, NULL, import));
    if (import->fields_json != NULL)
        MPL_TRY(mpl_record_read(ctx, path, import->fields_json, strlen(import->fields_json), row));
    else
        MPL_TRY(mpl_record_new(ctx, row));
    if ((text = mpl_record_get_text(*row, MPL_FIELD_graph)) != NULL)
        snprintf(name, 200, "%s", text);
    MPL_TRY(open_alone(ctx, options, import, job));
out:
    return st;
}

mpl_status mpl_gate_open_plan(mpl_ctx *ctx, mpl_options *options, const char *graph,
                              const char *path, char *name, mpl_import *import, mpl_record **row,
                              mpl_job *job)
{
    const mpl_import_format *format = mpl_plan_format(ctx, path);
    char hash[17];

    if (options->given[MPL_OPT_align] && options->align != 0 &&
        (options->align > UINT32_C(1) << 31 || (options->align & (options->align - 1)) != 0))
        return MPL_REFUSE(ctx, "--align: %" PRIu64 " is no power of two up to 2^31",
                          options->align);

    name_of(path, name);
    job->text = name;
    if (format != NULL && strcmp(format->name, "memplan") == 0) {
        MPL_PASS(open_own(ctx, options, graph, path, name, import, row, job));
    } else {
        if (graph != NULL) {
            MPL_PASS(open_with_graph(ctx, options, graph, path, import, job));
        } else {
            MPL_PASS(mpl_plan_import(ctx, path, NULL, import));
            for (mpl_buffer b = 0; options->align > 0 && b < import->problem->n; b++)
                import->problem->align[b] = (uint32_t)options->align;
            if (options->align > 0)
                import->granule = (uint32_t)options->align;
            MPL_PASS(open_alone(ctx, options, import, job));
        }
        MPL_PASS(mpl_job_row(ctx, options, job, NULL, row));
        mpl_record_null(*row, MPL_FIELD_seed);
    }
    if (mpl_record_is_null(*row, MPL_FIELD_planner))
        mpl_record_text(*row, MPL_FIELD_planner, import->format);
    mpl_record_text(*row, MPL_FIELD_graph, job->text);
    mpl_record_text(*row, MPL_FIELD_safety, job->safety.text);
    snprintf(hash, sizeof hash, "%016" PRIx64, mpl_problem_hash(job->problem));
    mpl_record_text(*row, MPL_FIELD_problem_hash, hash);
    mpl_record_text(*row, MPL_FIELD_status, "ok");
    mpl_record_null(*row, MPL_FIELD_reason);
    return MPL_OK;
}

uint64_t mpl_gate_bytes(const mpl_import *import, const mpl_plan *plan)
{
    return import->arena_bytes > 0 ? import->arena_bytes : plan->peak_bytes;
}
