/* job.c -- mpl_make: all steps of memplan for one GRAPH. See job.h. */
#include "harness/job/job.h"

#include "harness/job/execute.h"

/* Takes the plan of --plan, for GRAPH. */
static mpl_status take_plan_file(mpl_ctx *ctx, mpl_options *options, const char *graph,
                                 mpl_made *made)
{
    mpl_status st = MPL_OK;
    mpl_plan_file file = {0};

    MPL_TRY(mpl_job_open_plan(ctx, options, graph, options->plan, &file, &made->row, &made->job));
    MPL_TRY(mpl_job_verify_file(ctx, &made->job, file.plan));
    MPL_TRY(mpl_job_plan_fields(ctx, &made->job, file.plan, made->row));
    mpl_row_build(&made->job.machine, made->row);
    made->plan = file.plan, file.plan = NULL;
out:
    mpl_plan_file_fini(ctx, &file);
    return st;
}

/* --near FILE[:P%] as the planner near with its parameters. */
static mpl_status near_planner(mpl_ctx *ctx, const char *text, mpl_planner_spec *out)
{
    const char *colon = strrchr(text, ':');
    bool percent = colon != NULL && text[strlen(text) - 1] == '%';
    int length = percent ? (int)(colon - text) : (int)strlen(text);
    uint64_t parts = 10000;
    char spec[1200];

    if (percent)
        MPL_PASS(mpl_parse_percent(ctx, "--near", colon + 1, &parts));
    if (length > 1000 || strchr(text, ',') != NULL)
        return MPL_REFUSE(ctx, "--near %.100s: a path of at most 1000 bytes without ',' is needed",
                          text);
    if (parts > 1000000)
        return MPL_REFUSE(ctx, "--near %.100s: at most 100%% can be added", text);
    snprintf(spec, sizeof spec, "near:old=%.*s,most=%" PRIu64, length, text, parts / 100);
    return mpl_planner_spec_parse(ctx, spec, out);
}

mpl_status mpl_make(mpl_ctx *ctx, mpl_options *options, const char *graph, mpl_stage last,
                    mpl_made *made)
{
    mpl_status st = MPL_OK;
    mpl_planner_spec planner = {0};
    mpl_job *job = &made->job;

    if (options->planner != NULL && options->plan != NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "one of --planner P and --plan FILE is needed, not both");
    if (options->near != NULL && (options->planner != NULL || options->plan != NULL))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "--near keeps an older plan's offsets by the planner near: give "
                 "neither --planner nor --plan with it");
    if (options->plan != NULL && mpl_asks_constraints(options))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "a plan of --plan keeps what it was planned with: --fix, --reserve, "
                 "--chunk, --apart and --together go with --planner");
    if (options->plan != NULL) {
        MPL_TRY(take_plan_file(ctx, options, graph, made));
    } else {
        MPL_TRY(
            options->near != NULL
                ? near_planner(ctx, options->near, &planner)
                : mpl_planner_spec_parse(
                      ctx, options->planner != NULL ? options->planner : "portfolio", &planner));
        MPL_TRY(mpl_job_read(ctx, options, graph, job)); /* FILE or NAME -> graph */
        if (last == MPL_TO_RUN && job->source.graph != NULL)
            MPL_TRY(mpl_graph_check_computed(ctx, job->source.graph));
        MPL_TRY(mpl_job_passes(ctx, options, job));       /* graph -> graph */
        MPL_TRY(mpl_job_order(ctx, options, job));        /* graph -> order */
        MPL_TRY(mpl_job_problem_here(ctx, options, job)); /* order -> problem, its bound */
        MPL_TRY(
            mpl_job_row(ctx, options, job, last == MPL_TO_PROBLEM ? NULL : &planner, &made->row));
        if (last == MPL_TO_PROBLEM)
            goto out;
        MPL_TRY(mpl_job_plan_best(ctx, options, job, &planner, /* problem -> plan, verified */
                                  &made->row, &made->plan));
    }
    if (last == MPL_TO_RUN) {
        MPL_TRY(mpl_new(ctx, made->executed, 1));
        MPL_TRY(mpl_execute(ctx, options, job, made->plan, /* plan -> outputs, compared; times */
                            made->executed));
        mpl_executed_fields(ctx, made->executed, made->row); /* all results -> row */
    }
out:
    mpl_planner_spec_fini(ctx, &planner);
    return st;
}

void mpl_made_fini(mpl_ctx *ctx, mpl_made *made)
{
    if (made->executed != NULL)
        mpl_executed_fini(ctx, made->executed);
    mpl_free(ctx, made->executed);
    mpl_plan_free(ctx, made->plan);
    mpl_record_free(ctx, made->row);
    mpl_job_fini(ctx, &made->job);
    *made = (mpl_made){0};
}
