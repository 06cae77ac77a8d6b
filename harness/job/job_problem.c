/* job_problem.c -- makes the problem of a job: buffers, workspaces and their bound. See job.h. */
#include "graphs/problem/bounds/bounds.h"
#include "harness/job/job.h"
#include "runtime/exec.h"

typedef enum algorithms { FASTEST, LEAST, PEAK } algorithms;

/* Parses --algorithms; *limit: of PEAK. [byte] */
static mpl_status parse_algorithms(mpl_ctx *ctx, const mpl_options *options, algorithms *which,
                                   uint64_t *limit)
{
    static const char peak[] = "peak:";
    const char *text = options->algorithms;

    *which = strcmp(text, "fastest") == 0 ? FASTEST : strcmp(text, "least") == 0 ? LEAST : PEAK;
    if (*which == FASTEST)
        return MPL_OK;
    if (*which == PEAK && strncmp(text, peak, sizeof peak - 1) != 0)
        return MPL_REFUSE(ctx, "--algorithms: '%s' is none of fastest, least, peak:BYTES", text);
    if (*which == PEAK)
        MPL_PASS(mpl_parse_bytes(ctx, "--algorithms peak", text + sizeof peak - 1, limit));
    if (options->workspaces != MPL_workspaces_plan)
        return MPL_REFUSE(
            ctx,
            "--algorithms %s: workspaces count only where they are planned; add --workspaces plan",
            text);
    if (options->changed != NULL)
        return MPL_REFUSE(ctx,
                          "--algorithms %s: does not go with --changed, whose second evaluation is "
                          "compared with one of another graph",
                          text);
    return MPL_OK;
}

mpl_status mpl_algorithms_check(mpl_ctx *ctx, const mpl_options *options)
{
    algorithms which;
    uint64_t limit;

    return parse_algorithms(ctx, options, &which, &limit);
}

mpl_status mpl_job_problem_options(mpl_ctx *ctx, const mpl_options *options,
                                   const mpl_backend *backend, const mpl_job *job,
                                   mpl_problem_options *po)
{
    *po = mpl_asked_problem(options);
    po->parallel = job->safety.kind == MPL_safety_parallel;
    if (job->streams != NULL)
        mpl_streams_ask(job->streams, po);
    po->plan_workspaces = options->workspaces == MPL_workspaces_plan;
    if (backend != NULL)
        po->align = (uint32_t)mpl_max_u64(po->align, backend->align);
    po->held = job->held;
    po->boxes = backend == NULL || backend->strided;
    if (po->plan_workspaces && backend == NULL)
        return MPL_REFUSE(ctx, "--workspaces plan needs --backend: workspaces are a backend's");
    return MPL_OK;
}

static mpl_status simulate(mpl_ctx *ctx, mpl_job *job)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = job->source.graph;
    uint64_t *cost_ns = NULL;

    MPL_TRY(mpl_new(ctx, cost_ns, g->n_ops));
    mpl_streams_estimate(g, cost_ns);
    MPL_TRY(mpl_streams_simulate(ctx, g, job->order, job->streams->op_stream, cost_ns, NULL,
                                 &job->simulated_ns));
out:
    mpl_free(ctx, cost_ns);
    return st;
}

mpl_status mpl_job_streams(mpl_ctx *ctx, mpl_job *job)
{
    if (job->safety.kind != MPL_safety_streams || job->source.graph == NULL)
        return MPL_OK;
    if (job->streams == NULL)
        MPL_PASS(mpl_streams_new(ctx, job->source.graph, job->order, job->safety.n_streams,
                                 job->safety.rule, NULL, &job->streams));
    MPL_PASS(simulate(ctx, job));
    return job->given != NULL ? mpl_job_streams(ctx, job->given) : MPL_OK;
}

static mpl_status graph_problem(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_problem_options po;
    uint8_t *shared = NULL;

    MPL_TRY(mpl_job_streams(ctx, job));
    MPL_TRY(mpl_job_problem_options(ctx, options, job->backend, job, &po));
    po.op_workspace_bytes = job->workspace_bytes;
    po.concat_shared = job->choices.shared;
    po.split_copied = job->choices.copied;
    if (po.concat_shared == NULL && po.concat == MPL_CONCAT_AUTO) {
        MPL_TRY(mpl_new(ctx, shared, job->source.graph->n_ops));
        MPL_TRY(mpl_concat_decide(ctx, job->source.graph, job->order, &po, shared, &job->concats));
        po.concat_shared = shared;
    }
    MPL_TRY(mpl_problem_from_graph(ctx, job->source.graph, job->order, &po, &job->own_problem,
                                   &job->map));
    job->problem = job->own_problem;
out:
    mpl_free(ctx, shared);
    return st;
}

/* Frees what the job and its given order do not share; the order stays. */
static void problem_fini(mpl_ctx *ctx, mpl_job *job)
{
    mpl_problem_free(ctx, job->own_problem);
    mpl_value_map_free(ctx, job->map);
    mpl_free(ctx, job->workspace_bytes);
    job->own_problem = NULL;
    job->map = NULL;
    job->workspace_bytes = NULL;
}

mpl_status mpl_job_problem(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                           const uint64_t *workspace_bytes, mpl_job *job)
{
    uint64_t peak;

    problem_fini(ctx, job);
    job->backend = backend;
    if (job->source.graph == NULL) {
        mpl_asked_limits(options, job->source.problem);
        job->problem = job->source.problem;
    } else {
        if (workspace_bytes != NULL) {
            MPL_PASS(mpl_new(ctx, job->workspace_bytes, job->source.graph->n_ops));
            memcpy(job->workspace_bytes, workspace_bytes,
                   job->source.graph->n_ops * sizeof *workspace_bytes);
        }
        MPL_PASS(graph_problem(ctx, options, job));
    }
    MPL_PASS(mpl_asked_constraints(
        ctx, options, job->own_problem != NULL ? job->own_problem : job->source.problem));
    MPL_PASS(mpl_naive_bytes(ctx, job->problem, 0, &job->naive_bytes));
    MPL_PASS(mpl_lower_bound(ctx, job->problem, 0, &job->bound_bytes, NULL));
    if (job->problem->before == NULL)
        MPL_PASS(mpl_peak_live(ctx, job->problem, 0, &peak, NULL, &job->peak_step));
    job->bound_kind = job->problem->before != NULL ? "antichain" : "peak_live";
    if (job->given != NULL) {
        job->given->text = job->text;
        MPL_PASS(mpl_job_problem(ctx, options, backend, workspace_bytes, job->given));
    }
    return MPL_OK;
}

void mpl_job_take_given(mpl_job *job)
{
    mpl_job searched = *job, *given = job->given;

    *job = *given;
    job->given = given;
    *given = searched;
    given->given = NULL;
}

mpl_status mpl_job_borrow(mpl_ctx *ctx, const mpl_job *from, const mpl_op *order, mpl_job *out)
{
    uint32_t n = from->source.graph->n_ops;

    *out = *from;
    out->borrows = true;
    out->given = NULL, out->own_problem = NULL, out->map = NULL, out->workspace_bytes = NULL;
    out->order = NULL;
    out->choices = (mpl_plan_choices){0};
    MPL_PASS(mpl_new_each(ctx, n, out->choices.order, out->choices.shared, out->choices.copied));
    memcpy(out->choices.order, order, n * sizeof *order);
    out->order = out->choices.order;
    return MPL_OK;
}

void mpl_job_fini(mpl_ctx *ctx, mpl_job *job)
{
    if (job->given != NULL) {
        problem_fini(ctx, job->given);
        mpl_streams_free(ctx, job->given->streams);
        mpl_free_each(ctx, job->given->order, job->given);
    }
    problem_fini(ctx, job);
    if (job->order != job->choices.order)
        mpl_free(ctx, job->order);
    mpl_plan_choices_fini(ctx, &job->choices);
    if (!job->borrows) {
        mpl_streams_free(ctx, job->streams);
        mpl_source_fini(ctx, &job->source);
        mpl_bindings_fini(ctx, &job->inputs);
    }
    memset(job, 0, sizeof *job);
}

mpl_status mpl_backend_by_option(mpl_ctx *ctx, const char *name, const mpl_backend **out)
{
    *out = NULL;
    if (name == NULL)
        return MPL_OK;
    if ((*out = mpl_backend_find(name)) == NULL)
        return MPL_REFUSE(ctx, "no backend '%s'; see memplan list backends", name);
    if (mpl_backend_absent(*out) != NULL)
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "backend %s is not available: %s", name,
                         mpl_backend_absent(*out));
    return MPL_OK;
}

/* The planner whose plans --algorithms must keep within the limit. It is fast and seldom far above
 * the bound. Other planners get the resulting problem. */
#define JUDGE "greedy_size"

mpl_status mpl_job_choose_ways(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                               const mpl_job *job, const mpl_ways *ways, uint32_t *way)
{
    mpl_problem_options po;
    mpl_ways_task task = {
        .g = job->source.graph, .order = job->order, .options = &po, .ways = ways};
    mpl_ways_point found;
    algorithms which;
    uint64_t limit = 0;

    MPL_PASS(parse_algorithms(ctx, options, &which, &limit));
    memset(way, 0, ways->n_ops * sizeof *way);
    if (which == FASTEST)
        return MPL_OK;
    if (backend->limit_workspace == NULL)
        return MPL_REFUSE(ctx, "--algorithms %s: backend %s computes each operation in one way",
                          options->algorithms, backend->name);
    MPL_PASS(mpl_job_problem_options(ctx, options, backend, job, &po));
    task.planner = mpl_planner_find(JUDGE);
    return which == LEAST ? mpl_ways_least(ctx, &task, way, &found)
                          : mpl_ways_choose(ctx, &task, limit, way, &found);
}

/* Workspace bytes of the algorithms that --algorithms chooses. */
static mpl_status chosen_bytes(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                               mpl_device *dev, const mpl_job *job, uint64_t *bytes)
{
    mpl_status st = MPL_OK;
    mpl_ways *ways = NULL;
    uint32_t *way = NULL;

    MPL_TRY(mpl_exec_ways(ctx, backend, dev, job->source.graph, &ways));
    MPL_TRY(mpl_new(ctx, way, ways->n_ops));
    MPL_TRY(mpl_job_choose_ways(ctx, options, backend, job, ways, way));
    for (mpl_op op = 0; op < ways->n_ops; op++)
        bytes[op] = ways->bytes[ways->begin[op] + way[op]];
out:
    mpl_free(ctx, way);
    mpl_ways_free(ctx, ways);
    return st;
}

uint32_t mpl_job_threads(const mpl_options *options, const mpl_machine *machine)
{
    uint64_t all = options->threads > 0 ? options->threads : machine->n_cores;

    return options->workers > 1 ? (uint32_t)mpl_max_u64(all / options->workers, 1)
                                : (uint32_t)options->threads;
}

mpl_status mpl_job_ask_workspaces(mpl_ctx *ctx, const mpl_options *options,
                                  const mpl_backend *backend, const mpl_job *job,
                                  uint64_t **workspace_bytes)
{
    mpl_status st = MPL_OK;
    mpl_device_options device_options = {.n_threads = mpl_job_threads(options, &job->machine),
                                         .params = options->device};
    mpl_device *dev = NULL;
    uint64_t *bytes = NULL;

    *workspace_bytes = NULL;
    if (backend == NULL || job->source.graph == NULL)
        goto out;
    MPL_TRY(backend->open(ctx, &device_options, &dev));
    MPL_TRY(mpl_new(ctx, bytes, job->source.graph->n_ops));
    if (strcmp(options->algorithms, "fastest") == 0)
        MPL_TRY(mpl_exec_workspaces(ctx, backend, dev, job->source.graph, bytes));
    else
        MPL_TRY(chosen_bytes(ctx, options, backend, dev, job, bytes));
    *workspace_bytes = bytes, bytes = NULL;
out:
    mpl_free(ctx, bytes);
    if (dev != NULL)
        backend->close(dev);
    return st;
}

mpl_status mpl_job_problem_here(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    const mpl_backend *backend;
    uint64_t *workspaces = NULL;

    MPL_TRY(mpl_backend_by_option(ctx, options->backend, &backend));
    MPL_TRY(mpl_job_streams(ctx, job));
    MPL_TRY(mpl_job_ask_workspaces(ctx, options, backend, job, &workspaces));
    MPL_TRY(mpl_job_problem(ctx, options, backend, workspaces, job));
out:
    mpl_free(ctx, workspaces);
    return st;
}
