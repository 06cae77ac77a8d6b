/* measure.c -- one execution of a job. See measure.h. */
#include "harness/job/measure.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t INPUT_SEED = 1, OUTPUT_ALIGN = 64;

static mpl_status no_such_input(mpl_ctx *ctx, const mpl_job *job, const mpl_binding *binding)
{
    const mpl_graph *g = job->source.graph;

    if (binding->index == MPL_NONE)
        return MPL_REFUSE(ctx, "--input: %s has no input '%s'; its first is '%s'", job->text,
                          binding->name, g->n_inputs > 0 ? g->value_name[g->input[0]] : "none");
    return MPL_REFUSE(ctx, "--input: %s has %" PRIu32 " inputs, there is no index %" PRIu32,
                      job->text, g->n_inputs, binding->index);
}

static bool names_bound(const mpl_graph *g, const mpl_binding *binding)
{
    for (uint32_t i = 0; i < g->n_bound; i++)
        if (binding->name != NULL && strcmp(binding->name, g->bound_input[i]) == 0)
            return true;
    return false;
}

static uint32_t input_number(const mpl_graph *g, mpl_value v)
{
    uint32_t i = 0;

    while (i < g->n_inputs && g->input[i] != v)
        i++;
    return i;
}

/* The input named by a binding; n_inputs: it was folded away. An index counts the file's inputs; a
 * name that exists wins over it. */
static mpl_status find_input(mpl_ctx *ctx, const mpl_job *job, const mpl_binding *binding,
                             uint32_t *out)
{
    const mpl_graph *g = job->source.graph;
    mpl_value v = binding->name != NULL ? mpl_graph_find(g, binding->name) : MPL_NONE;

    *out = input_number(g, v);
    if (*out < g->n_inputs || (v != MPL_NONE && names_bound(g, binding)))
        return MPL_OK;
    v = binding->index != MPL_NONE ? mpl_graph_file_input(g, binding->index) : MPL_NONE;
    *out = input_number(g, v);
    return v != MPL_NONE ? MPL_OK : no_such_input(ctx, job, binding);
}

static mpl_status set_input(mpl_ctx *ctx, const mpl_job *job, const mpl_binding *binding,
                            mpl_inputs *inputs, bool *given)
{
    const mpl_graph *g = job->source.graph;
    char want[200], got[200];
    uint32_t i = 0;
    mpl_value v;

    MPL_PASS(find_input(ctx, job, binding, &i));
    if (i == g->n_inputs)
        return MPL_OK;
    v = g->input[i];
    if (given[i])
        return MPL_REFUSE(ctx, "--input: '%s' (index %" PRIu32 ") is given twice", g->value_name[v],
                          i);
    given[i] = true;
    if (binding->ramp) {
        MPL_PASS(mpl_exec_make_input(ctx, g, i, 0, inputs->data[i]));
        return MPL_OK;
    }
    if (binding->tensor.type != g->value_type[v] ||
        !mpl_shape_equal(&binding->tensor.shape, &g->value_shape[v]))
        return MPL_REFUSE(ctx, "--input: '%s' is %s%s; the file has %s%s", g->value_name[v],
                          mpl_type_name(g->value_type[v]), mpl_shape_text(&g->value_shape[v], want),
                          mpl_type_name(binding->tensor.type),
                          mpl_shape_text(&binding->tensor.shape, got));
    memcpy(inputs->data[i], binding->tensor.data, g->value_bytes[v]);
    return MPL_OK;
}

mpl_status mpl_inputs_make(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                           mpl_inputs *out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = job->source.graph;
    mpl_inputs inputs = {.n = g->n_inputs};
    bool *given = NULL;

    MPL_TRY(mpl_graph_check_computed(ctx, g));
    MPL_TRY(mpl_job_check_claims(ctx, options, job));
    MPL_TRY(mpl_new_each(ctx, g->n_inputs, inputs.data, given));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        if ((inputs.data[i] = mpl_alloc(ctx, g->value_bytes[g->input[i]], 1)) == NULL)
            MPL_TRY(MPL_EMEM);
        MPL_TRY(mpl_exec_make_input(ctx, g, i, INPUT_SEED, inputs.data[i]));
    }
    for (uint32_t k = 0; k < job->inputs.n; k++)
        MPL_TRY(set_input(ctx, job, &job->inputs.item[k], &inputs, given));
    *out = inputs;
    memset(&inputs, 0, sizeof inputs);
out:
    mpl_free(ctx, given);
    mpl_inputs_fini(ctx, &inputs);
    return st;
}

void mpl_inputs_fini(mpl_ctx *ctx, mpl_inputs *inputs)
{
    for (uint32_t i = 0; inputs->data != NULL && i < inputs->n; i++)
        mpl_free(ctx, inputs->data[i]);
    mpl_free(ctx, inputs->data);
    memset(inputs, 0, sizeof *inputs);
}

/* LD_PRELOAD, then variables that glibc's malloc reads, with their names in malloc_by. */
static const struct {
    const char *variable, *name;
} malloc_settings[] = {
    {"LD_PRELOAD", ""},
    {"MALLOC_MMAP_THRESHOLD_", "mmap_threshold="},
    {"MALLOC_TRIM_THRESHOLD_", "trim_threshold="},
    {"GLIBC_TUNABLES", ""},
};

const char *mpl_malloc_by(char *text, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < sizeof malloc_settings / sizeof *malloc_settings; i++) {
        const char *value = getenv(malloc_settings[i].variable);

        if (value != NULL && *value != '\0' && n < size)
            n += (size_t)snprintf(text + n, size - n, "%s%s%s", n > 0 ? " " : "",
                                  malloc_settings[i].name, value);
    }
    return n > 0 ? text : NULL;
}

/* Checks that preloaded libraries are loaded. The loader ignores absent ones, and a row would name
 * an allocator that did not run. */
static mpl_status check_preloaded(mpl_ctx *ctx)
{
    const char *list = getenv("LD_PRELOAD");

    for (size_t n; list != NULL && *(list += strspn(list, " :")) != '\0'; list += n) {
        char library[300];
        void *handle;

        n = strcspn(list, " :");
        snprintf(library, sizeof library, "%.*s", (int)(n < 299 ? n : 299), list);
        if ((handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD)) == NULL)
            return MPL_ERROR(ctx, MPL_EUNAVAIL,
                             "--compare malloc: LD_PRELOAD names '%.200s', which is not loaded",
                             library);
        dlclose(handle);
    }
    return MPL_OK;
}

mpl_status mpl_measure_options(mpl_ctx *ctx, const mpl_options *options, mpl_exec_options *out)
{
    static const char prefix[] = "random:";
    mpl_pass_set passes;

    *out = (mpl_exec_options){
        .checked = options->checked, .weight_seed = 1, .n_workers = (uint32_t)options->workers};
    if (options->compare == MPL_compare_malloc)
        MPL_PASS(check_preloaded(ctx));
    if (options->weights == NULL)
        return MPL_OK;
    if (strncmp(options->weights, prefix, sizeof prefix - 1) != 0)
        return MPL_REFUSE(ctx, "--weights: '%s' is not random:SEED", options->weights);
    MPL_PASS(mpl_pass_set_parse(ctx, options->optimise, &passes));
    out->random_weights = !mpl_pass_set_reads_weights(&passes);
    return mpl_parse_count(ctx, "--weights", options->weights + sizeof prefix - 1, 0, INT64_MAX,
                           &out->weight_seed);
}

mpl_status mpl_measure_new(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                           const mpl_exec_options *options, const mpl_inputs *inputs,
                           mpl_device *dev, mpl_exec **out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = job->source.graph;
    mpl_exec_options within = *options;
    mpl_exec *exec = NULL;

    within.n_workers = plan != NULL ? options->n_workers : 0;
    within.work_limit = job->work_limit;
    within.op_workspace_limit = job->workspace_bytes; /* only the planned algorithms */
    MPL_TRY(mpl_exec_new(ctx, job->backend, dev, g, job->order, plan != NULL ? job->problem : NULL,
                         plan != NULL ? job->map : NULL, plan, &within, &exec));
    if (plan != NULL && job->residency != NULL)
        MPL_TRY(mpl_exec_reside(exec, job->problem, job->map, job->residency->p,
                                job->residency->plan, job->residency->of_buffer));
    for (uint32_t i = 0; i < g->n_inputs; i++)
        MPL_TRY(mpl_exec_set_input(exec, i, inputs->data[i]));
    *out = exec, exec = NULL;
out:
    mpl_exec_free(ctx, exec);
    return st;
}

mpl_status mpl_measure_malloced(mpl_ctx *ctx, const mpl_options *options, mpl_exec *exec,
                                mpl_malloced **out, uint64_t *malloc_bytes)
{
    mpl_status st = MPL_OK;
    mpl_malloced *malloced = NULL;
    uint32_t n_calls;

    if (options->compare == MPL_compare_none)
        goto out;
    MPL_TRY(mpl_malloced_new(ctx, exec, &malloced));
    MPL_TRY(mpl_malloced_run(malloced, NULL));
    mpl_malloced_facts(malloced, &n_calls, malloc_bytes);
    *out = malloced, malloced = NULL;
out:
    mpl_malloced_free(ctx, malloced);
    return st;
}

mpl_status mpl_measure_pair(mpl_exec *exec, mpl_malloced *malloced, uint64_t turn, int64_t *ns,
                            int64_t *malloc_ns)
{
    if (malloced != NULL && turn % 2 == 1)
        MPL_PASS(mpl_malloced_run(malloced, malloc_ns));
    MPL_PASS(mpl_exec_run(exec, ns));
    if (malloced != NULL && turn % 2 == 0)
        MPL_PASS(mpl_malloced_run(malloced, malloc_ns));
    if (malloced == NULL)
        *malloc_ns = mpl_exec_concurrent_ns(exec);
    return MPL_OK;
}

/* ---- outputs ---- */

static uint64_t slot(const mpl_graph *g, uint32_t i)
{
    return (g->value_bytes[g->output[i]] + OUTPUT_ALIGN - 1) / OUTPUT_ALIGN * OUTPUT_ALIGN;
}

uint64_t mpl_outputs_bytes(const mpl_graph *g)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < g->n_outputs; i++)
        sum += slot(g, i);
    return sum;
}

const void *mpl_outputs_at(const mpl_graph *g, const void *outputs, uint32_t i)
{
    const char *at = outputs;

    for (uint32_t k = 0; k < i; k++)
        at += slot(g, k);
    return at;
}

mpl_status mpl_outputs_get(mpl_exec *exec, const mpl_graph *g, void *to)
{
    char *at = to;

    for (uint32_t i = 0; i < g->n_outputs; at += slot(g, i), i++)
        MPL_PASS(mpl_exec_output(exec, i, at));
    return MPL_OK;
}

double mpl_outputs_error(const mpl_graph *g, const void *got, const void *want)
{
    double worst = 0;

    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const void *a = mpl_outputs_at(g, got, i), *b = mpl_outputs_at(g, want, i);
        mpl_value v = g->output[i];
        uint64_t n = 0;
        double error;

        if (memcmp(a, b, g->value_bytes[v]) == 0 || !mpl_shape_count(&g->value_shape[v], &n))
            continue;
        error = mpl_compare(g->value_type[v], n, a, b);
        /* equal numbers with unequal bits (-0 and 0) count as unequal */
        worst = error > worst ? error : worst > 0 ? worst : 5e-324;
    }
    return worst;
}

const char *mpl_outputs_word(double error)
{
    return error == 0 ? "equal" : error <= MPL_REL_TOLERANCE ? "within 1e-4" : "differ";
}

/* ---- devices ---- */

mpl_status mpl_allocators_play(mpl_ctx *ctx, const mpl_problem *p, const mpl_backend *backend,
                               mpl_device *dev, mpl_unplanned *out)
{
    mpl_status st = MPL_OK;
    mpl_request *request = NULL;
    uint32_t n = 0;

    *out = (mpl_unplanned){0};
    MPL_TRY(mpl_requests_make(ctx, p, 0, &request, &n));
    MPL_TRY(mpl_requests_play(ctx, request, n, mpl_allocator_find("caching"), UINT64_MAX,
                              &out->model, NULL));
    if (dev == NULL || backend->replay == NULL)
        goto out;
    for (int mode = MPL_REPLAY_PLAIN; mode <= MPL_REPLAY_POOL; mode++) {
        st = backend->replay(dev, request, n, (mpl_replay_mode)mode, &out->own[mode]);
        out->on_device = st == MPL_OK;
        if (st != MPL_OK)
            break;
    }
    if (st == MPL_EMEM) /* too little memory without a plan is no failure of the plan */
        st = MPL_OK;
out:
    mpl_free(ctx, request);
    return st;
}

mpl_status mpl_measure_check(mpl_ctx *ctx, const mpl_measured *measured)
{
    const mpl_exec_facts *facts = &measured->facts;
    uint64_t apart = facts->device_taken > facts->device_asked
                         ? facts->device_taken - facts->device_asked
                         : facts->device_asked - facts->device_taken;

    if (apart > facts->device_slack)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "the device's memory in use grew by %" PRIu64 " bytes for %" PRIu64
                         " planned, pinned and of workspaces; they may be %" PRIu64 " apart",
                         facts->device_taken, facts->device_asked, facts->device_slack);
    if (facts->device_allocations > 0)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%" PRIu64 " calls took memory of the device inside of runs; none may",
                         facts->device_allocations);
    if (facts->device_after > facts->device_before)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "the device's memory in use grew by %" PRIu64
                         " bytes in the last run, or by another process",
                         facts->device_after - facts->device_before);
    return MPL_OK;
}

mpl_status mpl_measure_times(mpl_ctx *ctx, const mpl_job *job, mpl_exec *exec,
                             mpl_measured *measured)
{
    enum { N_RUNS = 3 };
    mpl_status st = MPL_OK;
    const mpl_graph *g = job->source.graph;
    uint64_t *ns = NULL;

    if (job->streams == NULL)
        goto out;
    MPL_TRY(mpl_new(ctx, ns, g->n_ops));
    st = mpl_exec_op_times(exec, N_RUNS, ns);
    if (st == MPL_EUNAVAIL) { /* of a device that runs graphs as a whole, work stands for them */
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    MPL_TRY(mpl_streams_simulate(ctx, g, job->order, job->streams->op_stream, ns, NULL,
                                 &measured->simulated_ns));
    for (mpl_op op = 0; op < g->n_ops; op++)
        measured->ops_ns += ns[op];
out:
    mpl_free(ctx, ns);
    return st;
}

/* ---- the row ---- */

static void device_fields(const mpl_exec_facts *facts, mpl_record *row)
{
    const mpl_device_clocks *clocks = &facts->clocks;

    mpl_record_text(row, MPL_FIELD_device, facts->device);
    mpl_record_null(row, MPL_FIELD_device_memory);
    mpl_record_member_int(row, MPL_FIELD_device_memory, "allocations", facts->device_allocations);
    mpl_record_member_int(row, MPL_FIELD_device_memory, "before", facts->device_before);
    mpl_record_member_int(row, MPL_FIELD_device_memory, "after", facts->device_after);
    mpl_record_member_int(row, MPL_FIELD_device_memory, "asked", facts->device_asked);
    mpl_record_member_int(row, MPL_FIELD_device_memory, "taken", facts->device_taken);
    mpl_record_member_int(row, MPL_FIELD_device_memory, "slack", facts->device_slack);
    mpl_record_text(row, MPL_FIELD_math, facts->math);
    mpl_record_real(row, MPL_FIELD_tolerance, facts->tolerance);
    mpl_record_null(row, MPL_FIELD_implementations);
    for (uint32_t i = 0; i < facts->n_hows; i++)
        mpl_record_member_int(row, MPL_FIELD_implementations, facts->how[i].name, facts->how[i].n);
    mpl_record_null(row, MPL_FIELD_clocks);
    if (!clocks->known)
        return;
    mpl_record_member_int(row, MPL_FIELD_clocks, "core_mhz", clocks->core_mhz);
    mpl_record_member_int(row, MPL_FIELD_clocks, "core_most_mhz", clocks->core_most_mhz);
    mpl_record_member_int(row, MPL_FIELD_clocks, "memory_mhz", clocks->memory_mhz);
    mpl_record_member_int(row, MPL_FIELD_clocks, "memory_most_mhz", clocks->memory_most_mhz);
    mpl_record_member_int(row, MPL_FIELD_clocks, "state", clocks->state);
    mpl_record_member_int(row, MPL_FIELD_clocks, "power_mw", clocks->power_mw);
    mpl_record_member_int(row, MPL_FIELD_clocks, "power_most_mw", clocks->power_most_mw);
    mpl_record_member_int(row, MPL_FIELD_clocks, "celsius", clocks->celsius);
    mpl_record_member_int(row, MPL_FIELD_clocks, "throttled", clocks->throttled);
}

static void allocator_fields(const mpl_unplanned *unplanned, mpl_record *row)
{
    const mpl_replay_facts *plain = &unplanned->own[MPL_REPLAY_PLAIN],
                           *pool = &unplanned->own[MPL_REPLAY_POOL];

    mpl_record_null(row, MPL_FIELD_allocators);
    mpl_record_member_int(row, MPL_FIELD_allocators, "requested", unplanned->model.live_peak_bytes);
    mpl_record_member_int(row, MPL_FIELD_allocators, "malloc", plain->peak_bytes);
    mpl_record_member_int(row, MPL_FIELD_allocators, "malloc_ns", (uint64_t)plain->ns);
    mpl_record_member_int(row, MPL_FIELD_allocators, "pool", pool->peak_bytes);
    mpl_record_member_int(row, MPL_FIELD_allocators, "pool_ns", (uint64_t)pool->ns);
    mpl_record_member_int(row, MPL_FIELD_allocators, "allocated", unplanned->model.allocated_bytes);
    mpl_record_member_int(row, MPL_FIELD_allocators, "reserved", unplanned->model.reserved_bytes);
}

void mpl_measure_fields(const mpl_measured *measured, mpl_record *row)
{
    mpl_record_text(row, MPL_FIELD_executed, measured->workers > 1 ? "at once" : "in order");
    if (measured->simulated_ns > 0) {
        mpl_record_int(row, MPL_FIELD_simulated_ns, measured->simulated_ns);
        mpl_record_text(row, MPL_FIELD_simulated_by, "times");
        mpl_record_int(row, MPL_FIELD_ops_ns, measured->ops_ns);
    }
    mpl_record_int(row, MPL_FIELD_measured_bytes, measured->facts.measured_bytes);
    mpl_record_int(row, MPL_FIELD_rss_bytes, measured->rss_bytes);
    if (measured->malloc_bytes > 0)
        mpl_record_int(row, MPL_FIELD_malloc_bytes, measured->malloc_bytes);
    mpl_record_null(row, MPL_FIELD_holds);
    mpl_record_member_int(row, MPL_FIELD_holds, "weights", measured->facts.weight_bytes);
    mpl_record_member_int(row, MPL_FIELD_holds, "packed", measured->facts.packed_bytes);
    mpl_record_member_int(row, MPL_FIELD_holds, "pinned", measured->facts.pinned_bytes);
    mpl_record_member_int(row, MPL_FIELD_holds, "before", measured->before_bytes);
    mpl_record_int(row, MPL_FIELD_workspace_bytes, measured->facts.workspace_bytes);
    if (measured->facts.device[0] != '\0')
        device_fields(&measured->facts, row);
    if (measured->allocators.on_device)
        allocator_fields(&measured->allocators, row);
    mpl_record_int(row, MPL_FIELD_copied_bytes, measured->facts.copied_bytes);
    mpl_record_int(row, MPL_FIELD_kernels, measured->facts.n_kernels);
    mpl_record_int(row, MPL_FIELD_reordered_bytes, measured->facts.reordered_bytes);
    mpl_record_int(row, MPL_FIELD_loop_carry_bytes, measured->facts.loop_carry_bytes);
}

uint64_t mpl_rss_now(void)
{
    unsigned long long pages = 0, size;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL)
        return 0;
    if (fscanf(f, "%llu %llu", &size, &pages) != 2)
        pages = 0;
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
