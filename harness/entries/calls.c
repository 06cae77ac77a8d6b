/* calls.c -- runs a sequence of calls in the planned arena, and each alone. See entries.h. */
#include "harness/entries/entries.h"

#include <math.h>

enum { MOST_CALLS = 1000000 };

/* The calls of one entry: in the arena, and with memory of its own. */
typedef struct pair {
    mpl_exec *planned, *alone;
} pair;

typedef struct caller {
    mpl_ctx *ctx;
    const mpl_options *options;
    const mpl_job *job; /* of all entries */
    const mpl_plan *plan;
    const mpl_entries *entries;
    mpl_entries alone; /* as given */
    mpl_device *dev;
    void *arena;
    pair *pair;        /* [n] */
    char **state;      /* [n_states] of the calls alone, in host memory */
    char *one, *other; /* room for the largest value or state, twice */
    double error;
} caller;

/* Parses "A,B*100"; NULL: each entry once. *calls: ids of entries, the caller frees it. */
static mpl_status parse_calls(mpl_ctx *ctx, const mpl_entries *e, const char *text,
                              uint32_t **calls, uint32_t *n)
{
    mpl_status st = MPL_OK;
    uint32_t *list = NULL;
    size_t cap = 0;
    char item[200], names[400] = "";

    *n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ", " : "",
                 e->entry[i].name);
    for (uint32_t i = 0; text == NULL && i < e->n; i++) {
        MPL_TRY(mpl_reserve(ctx, list, cap, (size_t)*n + 1));
        list[(*n)++] = i;
    }
    for (const char *at = text; at != NULL;) {
        size_t length = strcspn(at, ","), star = strcspn(at, "*,");
        uint64_t times = 1;
        uint32_t i = 0;

        snprintf(item, sizeof item, "%.*s", (int)mpl_min_u64(length, 150), at);
        if (star < length)
            MPL_TRY(mpl_parse_count(ctx, "--calls", item + star + 1, 1, MOST_CALLS - *n, &times));
        item[star < sizeof item ? star : 0] = '\0';
        while (i < e->n && strcmp(e->entry[i].name, item) != 0)
            i++;
        if (i == e->n)
            MPL_FAIL(ctx, MPL_EINPUT, "--calls: no entry '%s'; there are %s", item, names);
        MPL_TRY(mpl_reserve(ctx, list, cap, *n + times));
        while (times-- > 0)
            list[(*n)++] = i;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    *calls = list, list = NULL;
out:
    mpl_free(ctx, list);
    return st;
}

/* ---- binding ---- */

static mpl_status bind_entry(caller *c, uint32_t i, mpl_exec_options *run)
{
    mpl_status st = MPL_OK;
    const mpl_entry *x = &c->entries->entry[i], *alone = &c->alone.entry[i];
    mpl_plan *slice = NULL;
    uint64_t *held_at = NULL;
    mpl_exec_memory within = {c->arena, c->plan->peak_bytes, NULL};

    run->work_limit = x->job.work_limit;
    MPL_TRY(mpl_entries_slice(c->ctx, c->entries, i, c->plan, &slice));
    MPL_TRY(mpl_entries_places(c->ctx, c->entries, i, c->plan, &held_at));
    within.held_at = held_at;
    run->within = &within;
    run->op_workspace_limit = x->job.workspace_bytes;
    MPL_TRY(mpl_exec_new(c->ctx, c->job->backend, c->dev, x->job.source.graph, x->job.order,
                         x->job.problem, x->job.map, slice, run, &c->pair[i].planned));
    run->within = NULL;
    run->op_workspace_limit = NULL;
    MPL_TRY(mpl_exec_new(c->ctx, c->job->backend, c->dev, alone->job.source.graph, alone->job.order,
                         NULL, NULL, NULL, run, &c->pair[i].alone));
out:
    mpl_plan_free(c->ctx, slice);
    mpl_free(c->ctx, held_at);
    return st;
}

static uint64_t largest(const caller *c)
{
    uint64_t most = 1;

    for (uint32_t s = 0; s < c->entries->n_states; s++)
        most = mpl_max_u64(most, c->entries->state_bytes[s]);
    for (uint32_t i = 0; i < c->alone.n; i++) {
        const mpl_graph *g = c->alone.entry[i].job.source.graph;

        for (mpl_value v = 0; v < g->n_values; v++)
            most = mpl_max_u64(most, g->value_bytes[v]);
    }
    return most;
}

static mpl_status bind_all(caller *c)
{
    mpl_options given = *c->options;
    mpl_device_options device = {.n_threads = mpl_job_threads(c->options, &c->job->machine),
                                 .params = c->options->device};
    mpl_exec_options run;
    uint32_t n = c->entries->n_states;

    given.order = "given";
    c->alone.graph = c->entries->graph;
    c->alone.n_graphs = c->entries->n_graphs;
    c->alone.is_text = c->entries->is_text;
    MPL_PASS(mpl_entries_read(c->ctx, &given, &c->alone));
    for (uint32_t i = 0; i < c->alone.n; i++) {
        given.opener = NULL;
        MPL_PASS(mpl_job_check_claims(c->ctx, &given, &c->alone.entry[i].job));
        MPL_PASS(mpl_job_order(c->ctx, &given, &c->alone.entry[i].job));
    }
    MPL_PASS(mpl_measure_options(c->ctx, c->options, &run));
    MPL_PASS(c->job->backend->open(c->ctx, &device, &c->dev));
    MPL_PASS(c->job->backend->arena_new(c->dev, c->plan->peak_bytes, &c->arena));
    MPL_PASS(mpl_new(c->ctx, c->state, n));
    for (uint32_t s = 0; s < n; s++) {
        MPL_PASS(mpl_new(c->ctx, c->state[s], c->entries->state_bytes[s]));
        MPL_PASS(c->job->backend->fill(c->dev, (char *)c->arena + c->plan->offset[s], 0,
                                       c->entries->state_bytes[s]));
    }
    MPL_PASS(mpl_new_each(c->ctx, largest(c), c->one, c->other));
    MPL_PASS(mpl_new(c->ctx, c->pair, c->entries->n));
    for (uint32_t i = 0; i < c->entries->n; i++)
        MPL_PASS(bind_entry(c, i, &run));
    return MPL_OK;
}

static void unbind_all(caller *c)
{
    for (uint32_t i = 0; c->pair != NULL && i < c->entries->n; i++) {
        mpl_exec_free(c->ctx, c->pair[i].planned);
        mpl_exec_free(c->ctx, c->pair[i].alone);
    }
    for (uint32_t s = 0; c->state != NULL && s < c->entries->n_states; s++)
        mpl_free(c->ctx, c->state[s]);
    mpl_free_each(c->ctx, c->pair, c->state, c->one, c->other);
    if (c->arena != NULL)
        c->job->backend->arena_free(c->dev, c->arena, c->plan->peak_bytes);
    if (c->dev != NULL)
        c->job->backend->close(c->dev);
    mpl_entries_fini(c->ctx, &c->alone);
}

/* ---- one call ---- */

/* Copies the first rows of the state to the value, or back: a value's dims are at most the state's
 * along one axis. */
static void copy_rows(const caller *c, uint32_t s, const mpl_shape *rows, char *value, bool back)
{
    const mpl_shape *whole = &c->entries->state_shape[s];
    uint32_t axis = 0;
    uint64_t n, part, size, bytes = c->entries->state_bytes[s];

    if (mpl_shape_equal(whole, rows)) {
        memcpy(back ? c->state[s] : value, back ? value : c->state[s], bytes);
        return;
    }
    while (axis + 1 < whole->rank && rows->dim[axis] == whole->dim[axis])
        axis++;
    n = (uint64_t)mpl_count_dims(whole, 0, axis);
    size = bytes / n;
    part = size / (uint64_t)whole->dim[axis] * (uint64_t)rows->dim[axis];
    for (uint64_t i = 0; i < n; i++)
        memcpy(back ? c->state[s] + i * size : value + i * part,
               back ? value + i * part : c->state[s] + i * size, part);
}

static uint32_t state_with(const mpl_entry *x, uint32_t n, mpl_value v, bool output)
{
    uint32_t s = 0;

    while (s < n && (output ? x->state[s].after : x->state[s].before) != v)
        s++;
    return s;
}

static uint32_t index_of(uint32_t n, const mpl_value *list, mpl_value v)
{
    uint32_t i = 0;

    while (i < n && list[i] != v)
        i++;
    return i;
}

/* Contents of input i: of --input by name, else from a seed. */
static mpl_status make_input(const caller *c, const mpl_graph *g, uint32_t i, uint64_t seed)
{
    mpl_value v = g->input[i];

    for (uint32_t k = 0; k < c->job->inputs.n; k++) {
        const mpl_binding *b = &c->job->inputs.item[k];

        if (b->name == NULL || strcmp(b->name, g->value_name[v]) != 0)
            continue;
        if (b->ramp)
            return mpl_exec_make_input(c->ctx, g, i, 0, c->one);
        if (b->tensor.type != g->value_type[v] ||
            !mpl_shape_equal(&b->tensor.shape, &g->value_shape[v]))
            return MPL_REFUSE(c->ctx, "--input: '%s' has another type or other dims in graph '%s'",
                              b->name, g->name);
        memcpy(c->one, b->tensor.data, g->value_bytes[v]);
        return MPL_OK;
    }
    return mpl_exec_make_input(c->ctx, g, i, seed, c->one);
}

static mpl_status set_inputs(const caller *c, uint32_t e, uint64_t seed)
{
    const mpl_entry *alone = &c->alone.entry[e];
    const mpl_graph *g = alone->job.source.graph, *to = c->entries->entry[e].job.source.graph;

    for (uint32_t i = 0; i < g->n_inputs; i++) {
        uint32_t s = state_with(alone, c->entries->n_states, g->input[i], false), k;

        if (s < c->entries->n_states) {
            copy_rows(c, s, &g->value_shape[g->input[i]], c->one, false);
        } else {
            MPL_PASS(make_input(c, g, i, seed));
            k = index_of(to->n_inputs, to->input, mpl_graph_find(to, g->value_name[g->input[i]]));
            MPL_PASS(mpl_exec_set_input(c->pair[e].planned, k, c->one));
        }
        MPL_PASS(mpl_exec_set_input(c->pair[e].alone, i, c->one));
    }
    return MPL_OK;
}

static void compare(caller *c, mpl_type type, const mpl_shape *shape, uint64_t bytes,
                    const char *got, const char *want)
{
    uint64_t n = 0;
    double error;

    if (memcmp(got, want, bytes) == 0 || !mpl_shape_count(shape, &n))
        return;
    error = mpl_compare(type, n, got, want);
    /* equal numbers with unequal bits count as unequal */
    c->error = fmax(c->error, error > 0 ? error : 5e-324);
}

/* Compares what the arena holds as state s with the states of the calls alone. */
static mpl_status compare_state(caller *c, uint32_t s)
{
    MPL_PASS(c->job->backend->download(c->dev, c->one, (char *)c->arena + c->plan->offset[s],
                                       c->entries->state_bytes[s]));
    compare(c, c->entries->state_type[s], &c->entries->state_shape[s], c->entries->state_bytes[s],
            c->one, c->state[s]);
    return MPL_OK;
}

static mpl_status take_outputs(caller *c, uint32_t e)
{
    const mpl_entry *alone = &c->alone.entry[e];
    const mpl_graph *g = alone->job.source.graph, *to = c->entries->entry[e].job.source.graph;

    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        uint32_t k = index_of(to->n_outputs, to->output, mpl_graph_find(to, g->value_name[v]));

        MPL_PASS(mpl_exec_output(c->pair[e].alone, i, c->other));
        for (uint32_t s = 0; s < c->entries->n_states; s++)
            if (alone->state[s].after == v)
                copy_rows(c, s, &g->value_shape[v], c->other, true);
        if (k == to->n_outputs)
            continue; /* what lies in the state instead is compared */
        MPL_PASS(mpl_exec_output(c->pair[e].planned, k, c->one));
        compare(c, g->value_type[v], &g->value_shape[v], g->value_bytes[v], c->one, c->other);
    }
    for (uint32_t s = 0; s < c->entries->n_states; s++)
        if (alone->state[s].after != MPL_NONE)
            MPL_PASS(compare_state(c, s));
    return MPL_OK;
}

/* ---- all calls ---- */

static mpl_status check_inputs(const caller *c)
{
    for (uint32_t k = 0; k < c->job->inputs.n; k++) {
        const char *name = c->job->inputs.item[k].name;
        bool found = false;

        for (uint32_t e = 0; name != NULL && e < c->alone.n; e++) {
            const mpl_graph *g = c->alone.entry[e].job.source.graph;
            mpl_value v = mpl_graph_find(g, name);

            found = found || (v != MPL_NONE && index_of(g->n_inputs, g->input, v) < g->n_inputs &&
                              state_with(&c->alone.entry[e], c->entries->n_states, v, false) ==
                                  c->entries->n_states);
        }
        if (!found)
            return MPL_REFUSE(c->ctx, "--input: no graph has an input '%s' that is no state",
                              name != NULL ? name : "without a name");
    }
    return MPL_OK;
}

static mpl_status sum_facts(const caller *c, uint32_t n, const uint32_t *calls, mpl_exec_facts *sum)
{
    for (uint32_t e = 0; e < c->entries->n; e++) {
        mpl_exec_facts facts;

        MPL_PASS(mpl_exec_facts_get(c->pair[e].planned, &facts));
        sum->workspace_bytes += facts.workspace_bytes;
        sum->weight_bytes += facts.weight_bytes;
        sum->packed_bytes += facts.packed_bytes;
        sum->pinned_bytes += facts.pinned_bytes;
        sum->n_kernels += facts.n_kernels;
        for (uint32_t k = 0; k < n; k++)
            sum->copied_bytes += calls[k] == e ? facts.copied_bytes : 0;
    }
    sum->arena_bytes = c->plan->peak_bytes;
    return c->job->backend->resident(c->dev, c->arena, c->plan->peak_bytes, &sum->measured_bytes);
}

mpl_status mpl_calls_run(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                         const mpl_entries *entries, const mpl_plan *plan, const uint32_t *calls,
                         uint32_t n, mpl_executed *out)
{
    mpl_status st = MPL_OK;
    caller c = {.ctx = ctx, .options = options, .job = job, .plan = plan, .entries = entries};

    if (job->backend == NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "run: the plan names no backend; plan with --backend B, or name one here");
    if (job->backend->copy == NULL || job->backend->sequence_new != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "run: graphs over one memory are executed on ref and cpu");
    MPL_TRY(bind_all(&c));
    MPL_TRY(check_inputs(&c));
    out->repeat = n;
    MPL_TRY(mpl_new_each(ctx, n, out->run_ns, out->other_ns));
    for (uint32_t k = 0; k < n; k++) {
        MPL_TRY(set_inputs(&c, calls[k], 1 + (uint64_t)k));
        MPL_TRY(mpl_exec_run(c.pair[calls[k]].planned, &out->run_ns[k]));
        MPL_TRY(mpl_exec_run(c.pair[calls[k]].alone, NULL));
        MPL_TRY(take_outputs(&c, calls[k]));
    }
    for (uint32_t s = 0; s < entries->n_states; s++)
        MPL_TRY(compare_state(&c, s));
    MPL_TRY(sum_facts(&c, n, calls, &out->measured.facts));
    out->measured.rss_bytes = mpl_rss_peak();
    out->error = c.error;
out:
    unbind_all(&c);
    return st;
}

mpl_status mpl_calls_make(mpl_ctx *ctx, const mpl_options *options, const mpl_entries *entries,
                          mpl_made *made)
{
    mpl_status st = MPL_OK;
    uint32_t *calls = NULL, n;

    MPL_TRY(parse_calls(ctx, entries, options->calls, &calls, &n));
    MPL_TRY(mpl_new(ctx, made->executed, 1));
    MPL_TRY(mpl_calls_run(ctx, options, &made->job, entries, made->plan, calls, n, made->executed));
    mpl_executed_fields(ctx, made->executed, made->row);
    mpl_record_text(made->row, MPL_FIELD_calls, options->calls);
out:
    mpl_free(ctx, calls);
    return st;
}
