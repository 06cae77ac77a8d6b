/* job.c -- GRAPH opened, ordered and made a problem. See job.h. */
#include "harness/job/job.h"

#include "graphs/problem/before.h"
#include "graphs/orders/work.h"
#include "graphs/problem/bounds/bounds.h"
#include "harness/job/measure.h"
#include "planners/plan/plan_bindings.h"
#include "planners/search/joint.h"
#include "harness/job/program.h"
#include "runtime/exec.h"

enum { N_NAMES = 3 }; /* that --pin, and --pools, may list */

static const char *const pin_names[N_NAMES] = {"weights", "inputs", "outputs"};
static const char *const pool_names[N_NAMES] = {"weights", "gradients", "state"};

/* Bit i: names[i] is listed. */
static mpl_status parse_names(mpl_ctx *ctx, const char *option, const char *text,
                              const char *const *names, unsigned *bits)
{
    mpl_status st = MPL_OK;
    mpl_strings parts = {0};
    char *store = NULL;

    *bits = 0;
    if (strcmp(text, "none") == 0)
        goto out;
    MPL_TRY(mpl_strings_split(ctx, text, option, &store, &parts));
    for (uint32_t i = 0; i < parts.n; i++) {
        unsigned k = 0;

        while (k < N_NAMES && strcmp(parts.item[i], names[k]) != 0)
            k++;
        if (strcmp(parts.item[i], "none") == 0)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: 'none' stands alone, not in '%s'", option, text);
        if (k == N_NAMES)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: '%s' is none of %s, %s, %s, none", option, parts.item[i],
                     names[0], names[1], names[2]);
        *bits |= 1u << k;
    }
out:
    mpl_free(ctx, parts.item);
    mpl_free(ctx, store);
    return st;
}

static mpl_status parse_safety(mpl_ctx *ctx, const char *text, mpl_safety *safety)
{
    mpl_status st = MPL_OK;

    if (strcmp(text, "serial") != 0 && strcmp(text, "parallel") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--safety: '%s' is neither serial nor parallel", text);
    *safety = strcmp(text, "serial") == 0 ? MPL_SERIAL : MPL_PARALLEL;
out:
    return st;
}

typedef enum algorithms { FASTEST, LEAST, PEAK } algorithms;

/* --algorithms; *limit: of PEAK. [byte] */
static mpl_status parse_algorithms(mpl_ctx *ctx, const mpl_options *options, algorithms *which,
                                   uint64_t *limit)
{
    static const char peak[] = "peak:";
    mpl_status st = MPL_OK;
    const char *text = options->algorithms;

    *which = strcmp(text, "fastest") == 0 ? FASTEST : strcmp(text, "least") == 0 ? LEAST : PEAK;
    if (*which == FASTEST)
        return MPL_OK;
    if (*which == PEAK && strncmp(text, peak, sizeof peak - 1) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--algorithms: '%s' is none of fastest, least, peak:BYTES", text);
    if (*which == PEAK)
        MPL_TRY(mpl_parse_bytes(ctx, "--algorithms peak", text + sizeof peak - 1, limit));
    if (strcmp(options->workspaces, "plan") != 0)
        MPL_FAIL(
            ctx, MPL_EINPUT,
            "--algorithms %s: workspaces count only where they are planned; add --workspaces plan",
            text);
    if (options->changed != NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "--algorithms %s: does not go with --changed, whose second evaluation is "
                 "compared with one of another graph",
                 text);
out:
    return st;
}

/* --device is of the backend that is named; a bench's backends look at it themselves. */
static mpl_status check_device(mpl_ctx *ctx, const mpl_options *options)
{
    mpl_status st = MPL_OK;
    const mpl_backend *backend =
        options->backend != NULL ? mpl_backend_find(options->backend) : NULL;

    if (options->device != NULL && backend != NULL && !backend->takes_params)
        MPL_FAIL(ctx, MPL_EINPUT, "--device: backend %s takes none", backend->name);
    if (options->device != NULL && options->backend == NULL && options->backends == NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "--device: of which backend? name one that takes it, such as cuda");
out:
    return st;
}

/* "NAME=N"; *name_bytes: of NAME. */
static mpl_status parse_dim(mpl_ctx *ctx, const char *text, size_t *name_bytes, uint64_t *value)
{
    mpl_status st = MPL_OK;

    *name_bytes = strcspn(text, "=");
    if (*name_bytes == 0 || text[*name_bytes] == '\0')
        MPL_FAIL(ctx, MPL_EINPUT, "--dim: '%.100s' is no NAME=N", text);
    MPL_TRY(mpl_parse_count(ctx, "--dim", text + *name_bytes + 1, 1, INT32_MAX, value));
out:
    return st;
}

mpl_status mpl_job_check_options(mpl_ctx *ctx, const mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_order_spec order = {0};
    mpl_safety safety;
    mpl_ssa_level level;
    mpl_pass_set passes;
    mpl_recompute_spec recompute;
    algorithms which;
    uint64_t limit, size;
    size_t name_bytes;
    unsigned bits;

    if (options->safety != NULL)
        MPL_TRY(parse_safety(ctx, options->safety, &safety));
    for (uint32_t i = 0; i < options->dim.n; i++)
        MPL_TRY(parse_dim(ctx, options->dim.item[i], &name_bytes, &size));
    MPL_TRY(mpl_order_spec_parse(ctx, options->order, &order));
    if (strcmp(options->concat, "auto") != 0 && strcmp(options->concat, "share") != 0 &&
        strcmp(options->concat, "copy") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--concat: '%s' is none of auto, share, copy", options->concat);
    if (!options->views && strcmp(options->concat, "share") == 0)
        MPL_FAIL(
            ctx, MPL_EINPUT,
            "--concat share: operands that lie inside the result are views; --views off has none");
    if (strcmp(options->loop, "view") != 0 && strcmp(options->loop, "copy") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--loop: '%s' is neither view nor copy", options->loop);
    if (strcmp(options->workspaces, "pool") != 0 && strcmp(options->workspaces, "plan") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--workspaces: '%s' is neither pool nor plan",
                 options->workspaces);
    MPL_TRY(parse_algorithms(ctx, options, &which, &limit));
    if (strcmp(options->rnn, "while") != 0 && strcmp(options->rnn, "unroll") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--rnn: '%s' is neither while nor unroll", options->rnn);
    if (strcmp(options->layout, "plain") != 0 && strcmp(options->layout, "auto") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "--layout: '%s' is neither plain nor auto", options->layout);
    MPL_TRY(mpl_parse_percent(ctx, "--gap", options->gap, &limit));
    if (options->threads > 1024)
        MPL_FAIL(ctx, MPL_EINPUT, "--threads: %" PRIu64 " is more than 1024", options->threads);
    if (options->repeat < 1 || options->repeat > 10000)
        MPL_FAIL(ctx, MPL_EINPUT, "--repeat: %" PRIu64 " is not from 1 to 10000", options->repeat);
    MPL_TRY(mpl_ssa_by_option(ctx, options->ssa, &level));
    MPL_TRY(parse_names(ctx, "--pin", options->pin, pin_names, &bits));
    MPL_TRY(parse_names(ctx, "--pools", options->pools, pool_names, &bits));
    MPL_TRY(mpl_pass_set_parse(ctx, options->optimise, &passes));
    MPL_TRY(mpl_recompute_spec_parse(ctx, options->recompute, &recompute));
    MPL_TRY(check_device(ctx, options));
out:
    mpl_order_spec_fini(ctx, &order);
    return st;
}

/* --dim and --input as the readers take them. */
typedef struct read_store {
    mpl_read_options options;
    uint32_t n_stored;
    char **dim_store;
    const char **dim_name, **input_name;
    int64_t *dim_value;
    uint32_t *input_index;
    mpl_tensor *input_tensor;
} read_store;

static mpl_status fill_read_options(mpl_ctx *ctx, const mpl_options *options,
                                    const mpl_bindings *inputs, read_store *s)
{
    mpl_status st = MPL_OK;
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, s->dim_store, options->dim.n));
    MPL_TRY(mpl_new(ctx, s->dim_name, options->dim.n));
    MPL_TRY(mpl_new(ctx, s->dim_value, options->dim.n));
    MPL_TRY(mpl_new(ctx, s->input_name, inputs->n));
    MPL_TRY(mpl_new(ctx, s->input_index, inputs->n));
    MPL_TRY(mpl_new(ctx, s->input_tensor, inputs->n));
    for (uint32_t i = 0; i < options->dim.n; i++) {
        char *name = s->dim_store[i] = mpl_strdup(ctx, options->dim.item[i]);
        size_t name_bytes;
        uint64_t value;

        if (name == NULL)
            MPL_TRY(MPL_EMEM);
        s->n_stored++;
        MPL_TRY(parse_dim(ctx, name, &name_bytes, &value));
        name[name_bytes] = '\0';
        s->dim_name[i] = name;
        s->dim_value[i] = (int64_t)value;
    }
    for (uint32_t i = 0; i < inputs->n; i++) {
        if (inputs->item[i].ramp)
            continue;
        s->input_name[n] = inputs->item[i].name;
        s->input_index[n] = inputs->item[i].index;
        s->input_tensor[n++] = inputs->item[i].tensor;
    }
    s->options = (mpl_read_options){.n_dims = options->dim.n,
                                    .dim_name = s->dim_name,
                                    .dim_value = s->dim_value,
                                    .n_inputs = n,
                                    .input_name = s->input_name,
                                    .input_index = s->input_index,
                                    .input_tensor = s->input_tensor,
                                    .rnn = strcmp(options->rnn, "unroll") == 0 ? MPL_RNN_UNROLL
                                                                               : MPL_RNN_WHILE};
out:
    return st;
}

static void read_store_fini(mpl_ctx *ctx, read_store *s)
{
    for (uint32_t i = 0; i < s->n_stored; i++)
        mpl_free(ctx, s->dim_store[i]);
    mpl_free(ctx, s->dim_store);
    mpl_free(ctx, s->dim_name);
    mpl_free(ctx, s->dim_value);
    mpl_free(ctx, s->input_name);
    mpl_free(ctx, s->input_index);
    mpl_free(ctx, s->input_tensor);
}

/* A list with a partial order is parallel; one without is read as interval precedence where
 * parallel is asked for. */
static mpl_status list_safety(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;

    if (job->source.problem->before != NULL) {
        if (options->safety != NULL && job->safety == MPL_SERIAL)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%s has a partial order and no steps: --safety serial cannot be", job->text);
        job->safety = MPL_PARALLEL;
    } else if (job->safety == MPL_PARALLEL) {
        MPL_TRY(mpl_problem_as_parallel(ctx, job->source.problem));
    }
out:
    return st;
}

const char *mpl_job_concat(const mpl_options *options)
{
    return options->views ? options->concat : "copy";
}

/* Options of the problem that do not depend on a backend. */
mpl_status mpl_job_problem_options(mpl_ctx *ctx, const mpl_options *options,
                                   mpl_problem_options *po)
{
    mpl_status st = MPL_OK;
    const char *concat = mpl_job_concat(options);
    unsigned pin, pools;

    *po = mpl_problem_options_default();
    MPL_TRY(parse_names(ctx, "--pin", options->pin, pin_names, &pin));
    MPL_TRY(parse_names(ctx, "--pools", options->pools, pool_names, &pools));
    po->in_place = options->in_place;
    po->views = options->views;
    po->concat = strcmp(concat, "copy") == 0    ? MPL_CONCAT_COPY
                 : strcmp(concat, "share") == 0 ? MPL_CONCAT_SHARE
                                                : MPL_CONCAT_AUTO;
    po->loop_copy = strcmp(options->loop, "copy") == 0;
    po->pin_weights = pin & 1;
    po->pin_inputs = pin & 2;
    po->pin_outputs = pin & 4;
    po->own_pools = pools << MPL_PART_WEIGHT; /* weights, gradients, state: as mpl_part has them */
    po->capacity = options->given[MPL_OPT_capacity] ? options->capacity : MPL_NO_CAPACITY;
out:
    return st;
}

/* The job once more in the order that its graph has. */
static mpl_status keep_given(mpl_ctx *ctx, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_job *given = NULL;

    MPL_TRY(mpl_new(ctx, given, 1));
    *given = *job;
    given->order = NULL;
    job->given = given;
    MPL_TRY(mpl_new(ctx, given->order, job->source.graph->n_ops));
    MPL_TRY(mpl_order_of(ctx, job->source.graph, mpl_order_find("given"), given->order));
out:
    return st;
}

/* The order of the graph. What is searched for depends on no backend and on no clock, so that a
 * plan file can name it. */
static mpl_status make_order(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_order_spec spec = {0};
    mpl_problem_options po;
    mpl_order_run run;
    int64_t begin;

    MPL_TRY(mpl_new(ctx, job->order, job->source.graph->n_ops));
    MPL_TRY(mpl_order_spec_parse(ctx, options->order, &spec));
    MPL_TRY(mpl_job_problem_options(ctx, options, &po));
    mpl_order_run_init(&run, ctx);
    run.options = &po;
    run.seed = options->seed;
    run.n_params = spec.key.n;
    run.param_key = spec.key.item;
    run.param_value = spec.value.item;
    begin = mpl_clock_ns();
    MPL_TRY(mpl_order_make(&run, spec.kind, job->source.graph, job->order));
    if (run.live_bytes > 0) /* nothing is known of the plain orders, nor of graphs with control flow
                             */
        job->order_found = (mpl_order_found){run.live_bytes, run.bound_bytes, run.ticks, run.method,
                                             mpl_clock_ns() - begin};
    if (spec.kind->search != NULL)
        MPL_TRY(keep_given(ctx, job));
out:
    mpl_order_spec_fini(ctx, &spec);
    return st;
}

/* Contents of weights as they are when the graph is run. */
static mpl_status fill_weight(void *arg, const mpl_graph *g, mpl_value v, void *data)
{
    mpl_exec_make_weight(g, arg, v, data);
    return MPL_OK;
}

/* Under --weights, what the file has is replaced when the graph is read, so that a pass computes
 * with what will run. */
static mpl_status make_weights(mpl_ctx *ctx, mpl_graph *g, mpl_exec_options *run)
{
    mpl_status st = MPL_OK;
    void *data = NULL;

    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_role[v] != MPL_WEIGHT || g->value_data[v] == NULL ||
            !mpl_exec_is_random(g, run, v))
            continue;
        if ((data = mpl_alloc(ctx, g->value_bytes[v], 1)) == NULL)
            MPL_TRY(MPL_EMEM);
        mpl_exec_make_weight(g, run, v, data);
        mpl_free(ctx, g->value_data[v]);
        g->value_data[v] = data, data = NULL;
        g->value_splat[v] = 0;
    }
out:
    mpl_free(ctx, data);
    return st;
}

static mpl_status optimise(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_exec_options run;
    mpl_pass_set set;

    if (strcmp(options->optimise, "none") == 0)
        goto out;
    MPL_TRY(mpl_pass_set_parse(ctx, options->optimise, &set));
    MPL_TRY(mpl_measure_options(ctx, options, &run));
    job->n_ops_before = job->source.graph->n_ops;
    if (mpl_pass_set_reads_weights(&set) && options->weights != NULL) {
        run.random_weights = true;
        MPL_TRY(make_weights(ctx, job->source.graph, &run));
    }
    MPL_TRY(mpl_graph_optimise(ctx, &job->source.graph, &set,
                               &(mpl_weight_source){fill_weight, &run}, job->passes));
out:
    return st;
}

static mpl_status evaluate_twice(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_strings names = {0};
    char *store = NULL;

    if (options->changed == NULL)
        goto out;
    MPL_TRY(mpl_strings_split(ctx, options->changed, "--changed", &store, &names));
    MPL_TRY(mpl_graph_incremental(ctx, &job->source.graph, names.n, names.item, &job->twice));
out:
    mpl_free(ctx, names.item);
    mpl_free(ctx, store);
    return st;
}

/* ---- what a file may claim ---- */

/* A run of a graph from a file may do so much, and so much for each byte that it was given: what is
 * small says little, though it may claim anything. */
static const uint64_t WORK_FREE = UINT64_C(1) << 28, WORK_A_BYTE = UINT64_C(1) << 18,
                      MOST_INPUT_BYTES = UINT64_C(1) << 24; /* of inputs, that count for it */

/* Bytes of inputs and weights, by whether a file brings them along. */
static void outside_bytes(const mpl_graph *g, uint64_t *inputs, uint64_t *brought,
                          uint64_t *claimed)
{
    *inputs = *brought = *claimed = 0;
    for (mpl_value v = 0; v < g->n_values; v++) {
        bool input = g->value_role[v] == MPL_INPUT, weight = g->value_role[v] == MPL_WEIGHT;
        bool here = weight && g->value_data[v] != NULL && !g->value_splat[v];

        if (input)
            *inputs = mpl_add_work(*inputs, g->value_bytes[v]);
        if (input || weight)
            *(here ? brought : claimed) =
                mpl_add_work(*(here ? brought : claimed), g->value_bytes[v]);
    }
}

static uint64_t work_limit(const mpl_options *options, const mpl_source *source)
{
    uint64_t inputs, brought, claimed;

    if (options->given[MPL_OPT_work_limit] || source->file_bytes == 0)
        return options->work_limit;
    outside_bytes(source->graph, &inputs, &brought, &claimed);
    brought = mpl_add_work(mpl_add_work(brought, source->file_bytes),
                           mpl_min_u64(inputs, MOST_INPUT_BYTES));
    return brought < MPL_MOST_WORK / WORK_A_BYTE ? mpl_add_work(WORK_FREE, brought * WORK_A_BYTE)
                                                 : MPL_MOST_WORK;
}

mpl_status mpl_job_check_claims(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job)
{
    mpl_status st = MPL_OK;
    uint64_t limit = options->given[MPL_OPT_work_limit] ? options->work_limit : MPL_CLAIMED_BYTES;
    uint64_t inputs, brought, claimed;

    if (limit == 0 || (job->source.file_bytes == 0 && !options->given[MPL_OPT_work_limit]))
        goto out;
    outside_bytes(job->source.graph, &inputs, &brought, &claimed);
    if (claimed > limit)
        MPL_FAIL(ctx, MPL_ELIMIT,
                 "%s: inputs and weights that it has no data of come to %" PRIu64
                 " bytes; the limit is %" PRIu64 " (--work-limit N lifts it, 0: none)",
                 job->text, claimed, limit);
out:
    return st;
}

mpl_status mpl_job_open(mpl_ctx *ctx, const mpl_options *options, const char *graph, mpl_job *out)
{
    mpl_status st = MPL_OK;
    mpl_job job = {.text = graph, .safety = MPL_SERIAL};
    read_store store = {0};
    char *program = NULL;
    mpl_recompute_spec recompute;
    mpl_problem_options asked;

    MPL_TRY(mpl_job_check_options(ctx, options));
    MPL_TRY(mpl_recompute_spec_parse(ctx, options->recompute, &recompute));
    if (options->safety != NULL)
        MPL_TRY(parse_safety(ctx, options->safety, &job.safety));
    MPL_TRY(mpl_machine_get(ctx, &job.machine));
    MPL_TRY(mpl_bindings_read(ctx, "--input", &options->input, &job.inputs));
    MPL_TRY(fill_read_options(ctx, options, &job.inputs, &store));
    MPL_TRY(mpl_program_text(ctx, options, &graph, &program));
    MPL_TRY(mpl_source_open(ctx, graph, &store.options, &job.source));
    MPL_TRY(mpl_program_to_ssa(ctx, options, &job.source, &job.is_program, &job.ssa));
    if (job.source.graph != NULL) {
        MPL_TRY(optimise(ctx, options, &job));
        MPL_TRY(evaluate_twice(ctx, options, &job));
        MPL_TRY(mpl_job_problem_options(ctx, options, &asked));
        MPL_TRY(mpl_recompute_graph(ctx, &asked, &recompute, &job.source.graph, &job.recomputed,
                                    &job.recompute_ns));
        if (strcmp(options->layout, "plain") != 0)
            MPL_TRY(mpl_graph_channels_last(ctx, &job.source.graph));
        job.work_limit = work_limit(options, &job.source);
        job.graph_hash = mpl_graph_hash(job.source.graph);
        MPL_TRY(make_order(ctx, options, &job));
    } else {
        if (options->changed != NULL)
            MPL_FAIL(ctx, MPL_EINPUT, "--changed: %s is a list of buffers; it has no inputs",
                     graph);
        job.graph_hash = mpl_problem_hash(job.source.problem);
        MPL_TRY(list_safety(ctx, options, &job));
    }
    *out = job;
    memset(&job, 0, sizeof job);
out:
    mpl_free(ctx, program);
    read_store_fini(ctx, &store);
    mpl_job_fini(ctx, &job);
    return st;
}

/* What the job's problem is made by, but for the workspaces' bytes. */
static mpl_status whole_options(mpl_ctx *ctx, const mpl_options *options,
                                const mpl_backend *backend, const mpl_job *job,
                                mpl_problem_options *po)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_job_problem_options(ctx, options, po));
    po->parallel = job->safety == MPL_PARALLEL;
    po->plan_workspaces = strcmp(options->workspaces, "plan") == 0;
    if (backend != NULL)
        po->align = (uint32_t)mpl_max_u64(po->align, backend->align);
    po->boxes = backend == NULL || backend->strided;
    if (po->plan_workspaces && backend == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "--workspaces plan needs --backend: workspaces are a backend's");
out:
    return st;
}

/* The problem of a graph under the options. */
static mpl_status graph_problem(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_problem_options po;
    uint8_t *shared = NULL;

    MPL_TRY(whole_options(ctx, options, job->backend, job, &po));
    po.op_workspace_bytes = job->workspace_bytes;
    if (po.concat == MPL_CONCAT_AUTO) {
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

/* A list's own problem, which the job may change: it is nobody else's. */
static void list_problem(const mpl_options *options, mpl_job *job)
{
    mpl_problem *p = job->source.problem;

    if (!options->in_place)
        p->n_in_place = 0;
    for (uint32_t k = 0; options->given[MPL_OPT_capacity] && k < p->n_pools; k++)
        p->pool_capacity[k] = k == 0 ? options->capacity : p->pool_capacity[k];
    job->problem = p;
}

/* What is the job's alone, given's too; its order stays. */
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
    mpl_status st = MPL_OK;
    uint64_t peak;

    problem_fini(ctx, job);
    job->backend = backend;
    if (job->source.graph == NULL) {
        list_problem(options, job);
    } else {
        if (workspace_bytes != NULL) {
            MPL_TRY(mpl_new(ctx, job->workspace_bytes, job->source.graph->n_ops));
            memcpy(job->workspace_bytes, workspace_bytes,
                   job->source.graph->n_ops * sizeof *workspace_bytes);
        }
        MPL_TRY(graph_problem(ctx, options, job));
    }
    MPL_TRY(mpl_naive_bytes(ctx, job->problem, 0, &job->naive_bytes));
    MPL_TRY(mpl_lower_bound(ctx, job->problem, 0, &job->bound_bytes, NULL));
    if (job->problem->before == NULL)
        MPL_TRY(mpl_peak_live(ctx, job->problem, 0, &peak, NULL, &job->peak_step));
    job->bound_kind = job->problem->before != NULL ? "antichain" : "peak_live";
    if (job->given != NULL) {
        job->given->text = job->text;
        MPL_TRY(mpl_job_problem(ctx, options, backend, workspace_bytes, job->given));
    }
out:
    return st;
}

void mpl_job_take_given(mpl_job *job)
{
    mpl_job searched = *job, *given = job->given;

    *job = *given;
    job->given = given;
    *given = searched;
    given->given = NULL;
}

void mpl_job_fini(mpl_ctx *ctx, mpl_job *job)
{
    if (job->given != NULL) {
        problem_fini(ctx, job->given);
        mpl_free(ctx, job->given->order);
        mpl_free(ctx, job->given);
    }
    problem_fini(ctx, job);
    mpl_free(ctx, job->order);
    mpl_source_fini(ctx, &job->source);
    mpl_bindings_fini(ctx, &job->inputs);
    memset(job, 0, sizeof *job);
}

mpl_status mpl_backend_by_option(mpl_ctx *ctx, const char *name, const mpl_backend **out)
{
    mpl_status st = MPL_OK;

    *out = NULL;
    if (name == NULL)
        goto out;
    if ((*out = mpl_backend_find(name)) == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no backend '%s'; see memplan list backends", name);
    if (mpl_backend_absent(*out) != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "backend %s is not available: %s", name,
                 mpl_backend_absent(*out));
out:
    return st;
}

/* Whose plans have to keep --algorithms: fast, and seldom far above the bound; other planners see
 * the problem that comes of it. */
#define JUDGE "greedy_size"

mpl_status mpl_job_choose_ways(mpl_ctx *ctx, const mpl_options *options, const mpl_backend *backend,
                               const mpl_job *job, const mpl_ways *ways, uint32_t *way)
{
    mpl_status st = MPL_OK;
    mpl_problem_options po;
    mpl_ways_task task = {
        .g = job->source.graph, .order = job->order, .options = &po, .ways = ways};
    mpl_ways_point found;
    algorithms which;
    uint64_t limit = 0;

    MPL_TRY(parse_algorithms(ctx, options, &which, &limit));
    memset(way, 0, ways->n_ops * sizeof *way);
    if (which == FASTEST)
        goto out;
    if (backend->limit_workspace == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "--algorithms %s: backend %s computes each operation in one way",
                 options->algorithms, backend->name);
    MPL_TRY(whole_options(ctx, options, backend, job, &po));
    task.planner = mpl_planner_find(JUDGE);
    MPL_TRY(which == LEAST ? mpl_ways_least(ctx, &task, way, &found)
                           : mpl_ways_choose(ctx, &task, limit, way, &found));
out:
    return st;
}

/* The bytes that --algorithms lead to. */
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

mpl_status mpl_job_ask_workspaces(mpl_ctx *ctx, const mpl_options *options,
                                  const mpl_backend *backend, const mpl_job *job,
                                  uint64_t **workspace_bytes)
{
    mpl_status st = MPL_OK;
    mpl_device_options device_options = {.n_threads = (uint32_t)options->threads,
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

/* ---- plan files ---- */

/* The text of --pin or --pools that names what a row lists. */
static const char *names_text(const mpl_record *row, mpl_field field, const char *const *names,
                              const char *const text[1 << N_NAMES])
{
    unsigned bits = 0;

    for (unsigned k = 0; k < N_NAMES; k++)
        bits |= mpl_record_has_item(row, field, names[k]) ? 1u << k : 0;
    return text[bits];
}

static const char *const pin_text[1 << N_NAMES] = {
    "none",    "weights",         "inputs",         "weights,inputs",
    "outputs", "weights,outputs", "inputs,outputs", "weights,inputs,outputs"};
static const char *const pool_text[1 << N_NAMES] = {
    "none",  "weights",       "gradients",       "weights,gradients",
    "state", "weights,state", "gradients,state", "weights,gradients,state"};

/* Options that the command line leaves open are the plan's own; texts point into the row. */
static void adopt(mpl_options *o, const mpl_plan_file *file, const mpl_record *row)
{
    const char *text;

#define ADOPT_TEXT(id, field)                                                                      \
    if (!o->given[MPL_OPT_##id] && (text = mpl_record_get_text(row, MPL_FIELD_##field)) != NULL)   \
    o->id = text
    ADOPT_TEXT(safety, safety);
    ADOPT_TEXT(order, order);
    if (!o->given[MPL_OPT_order] && mpl_record_is(row, MPL_FIELD_order_kept, "given"))
        o->order = "given"; /* what was searched for is not what the plan is of */
    ADOPT_TEXT(concat, concat);
    ADOPT_TEXT(loop, loop);
    ADOPT_TEXT(ssa, ssa);
    ADOPT_TEXT(optimise, optimise);
    ADOPT_TEXT(changed, changed);
    ADOPT_TEXT(recompute, recompute);
    ADOPT_TEXT(layout, layout);
    ADOPT_TEXT(workspaces, workspaces);
    ADOPT_TEXT(algorithms, algorithms);
    ADOPT_TEXT(backend, backend);
#undef ADOPT_TEXT
    if (!o->given[MPL_OPT_in_place])
        o->in_place = file->problem->n_in_place > 0; /* the file's member of that name lists the
                                                        pairs */
    if (!o->given[MPL_OPT_seed])                     /* of an order that is random */
        mpl_record_get_int(row, MPL_FIELD_seed, &o->seed);
    if (!o->given[MPL_OPT_views])
        mpl_record_get_bool(row, MPL_FIELD_views, &o->views);
    if (!o->given[MPL_OPT_capacity])
        o->given[MPL_OPT_capacity] = mpl_record_get_int(row, MPL_FIELD_capacity, &o->capacity);
    if (!o->given[MPL_OPT_pin])
        o->pin = names_text(row, MPL_FIELD_pinned, pin_names, pin_text);
    if (!o->given[MPL_OPT_pools])
        o->pools = names_text(row, MPL_FIELD_own_pools, pool_names, pool_text);
}

/* The graph's problem under the options, on the backend that they name. */
static mpl_status open_problem(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                               mpl_job *job)
{
    mpl_status st = MPL_OK;
    const mpl_backend *backend;
    uint64_t *workspaces = NULL;

    mpl_job_fini(ctx, job);
    MPL_TRY(mpl_job_open(ctx, options, graph, job));
    MPL_TRY(mpl_backend_by_option(ctx, options->backend, &backend));
    MPL_TRY(mpl_job_ask_workspaces(ctx, options, backend, job, &workspaces));
    MPL_TRY(mpl_job_problem(ctx, options, backend, workspaces, job));
out:
    mpl_free(ctx, workspaces);
    return st;
}

mpl_status mpl_job_open_plan(mpl_ctx *ctx, mpl_options *options, const char *graph,
                             const char *path, mpl_plan_file *file, mpl_record **row, mpl_job *job)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_plan_read(ctx, path, file));
    if (file->fields_json == NULL)
        MPL_TRY(mpl_record_new(ctx, row));
    else
        MPL_TRY(mpl_record_read(ctx, path, file->fields_json, strlen(file->fields_json), row));
    if (file->fields_json != NULL)
        adopt(options, file, *row);
    MPL_TRY(open_problem(ctx, options, graph, job));
    if (!options->in_place && !options->given[MPL_OPT_in_place] &&
        mpl_problem_hash(job->problem) != mpl_problem_hash(file->problem)) {
        options->in_place = true; /* no pair is left in the file where each was decided, or none
                                     could be had */
        MPL_TRY(open_problem(ctx, options, graph, job));
    }
    if (mpl_problem_hash(job->problem) != mpl_problem_hash(file->problem))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: a plan for another problem: %" PRIu32 " buffers, hash %016" PRIx64
                 "; %s has %" PRIu32 ", %016" PRIx64,
                 path, file->problem->n, mpl_problem_hash(file->problem), graph, job->problem->n,
                 mpl_problem_hash(job->problem));
    MPL_TRY(mpl_plan_check_bindings(ctx, path, file->fields_json, job->source.graph, job->map));
out:
    return st;
}
