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
static mpl_status parse_calls(mpl_ctx *ctx, const mpl_entries *entries, const char *text,
                              uint32_t **calls, uint32_t *n)
{
    mpl_status st = MPL_OK;
    uint32_t *list = NULL;
    size_t cap = 0;
    char item[200], names[400] = "";

    *n = 0;
    for (uint32_t i = 0; i < entries->n; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ", " : "",
                 entries->entry[i].name);
    for (uint32_t i = 0; text == NULL && i < entries->n; i++) {
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
        while (i < entries->n && strcmp(entries->entry[i].name, item) != 0)
            i++;
        if (i == entries->n)
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

static mpl_status bind_entry(caller *self, uint32_t i, mpl_exec_options *run)
{
    mpl_status st = MPL_OK;
    const mpl_entry *entry = &self->entries->entry[i], *alone = &self->alone.entry[i];
    mpl_plan *slice = NULL;
    uint64_t *held_at = NULL;
    mpl_exec_memory within = {self->arena, self->plan->peak_bytes, NULL};

    run->work_limit = entry->job.work_limit;
    MPL_TRY(mpl_entries_slice(self->ctx, self->entries, i, self->plan, &slice));
    MPL_TRY(mpl_entries_places(self->ctx, self->entries, i, self->plan, &held_at));
    within.held_at = held_at;
    run->within = &within;
    run->op_workspace_limit = entry->job.workspace_bytes;
    MPL_TRY(mpl_exec_new(self->ctx, self->job->backend, self->dev, entry->job.source.graph,
                         entry->job.order, entry->job.problem, entry->job.map, slice, run,
                         &self->pair[i].planned));
    run->within = NULL;
    run->op_workspace_limit = NULL;
    MPL_TRY(mpl_exec_new(self->ctx, self->job->backend, self->dev, alone->job.source.graph,
                         alone->job.order, NULL, NULL, NULL, run, &self->pair[i].alone));
out:
    mpl_plan_free(self->ctx, slice);
    mpl_free(self->ctx, held_at);
    return st;
}

static uint64_t largest(const caller *self)
{
    uint64_t most = 1;

    for (uint32_t s = 0; s < self->entries->n_states; s++)
        most = mpl_max_u64(most, self->entries->state_bytes[s]);
    for (uint32_t i = 0; i < self->alone.n; i++) {
        const mpl_graph *g = self->alone.entry[i].job.source.graph;

        for (mpl_value v = 0; v < g->n_values; v++)
            most = mpl_max_u64(most, g->value_bytes[v]);
    }
    return most;
}

static mpl_status bind_all(caller *self)
{
    mpl_options given = *self->options;
    mpl_device_options device = {.n_threads = mpl_job_threads(self->options, &self->job->machine),
                                 .params = self->options->device};
    mpl_exec_options run;
    uint32_t n = self->entries->n_states;

    given.order = "given";
    self->alone.graph = self->entries->graph;
    self->alone.n_graphs = self->entries->n_graphs;
    self->alone.is_text = self->entries->is_text;
    MPL_PASS(mpl_entries_read(self->ctx, &given, &self->alone));
    for (uint32_t i = 0; i < self->alone.n; i++) {
        given.opener = NULL;
        MPL_PASS(mpl_job_check_claims(self->ctx, &given, &self->alone.entry[i].job));
        MPL_PASS(mpl_job_order(self->ctx, &given, &self->alone.entry[i].job));
    }
    MPL_PASS(mpl_measure_options(self->ctx, self->options, &run));
    MPL_PASS(self->job->backend->open(self->ctx, &device, &self->dev));
    MPL_PASS(self->job->backend->arena_new(self->dev, self->plan->peak_bytes, &self->arena));
    MPL_PASS(mpl_new(self->ctx, self->state, n));
    for (uint32_t s = 0; s < n; s++) {
        MPL_PASS(mpl_new(self->ctx, self->state[s], self->entries->state_bytes[s]));
        MPL_PASS(self->job->backend->fill(self->dev, (char *)self->arena + self->plan->offset[s], 0,
                                          self->entries->state_bytes[s]));
    }
    MPL_PASS(mpl_new_each(self->ctx, largest(self), self->one, self->other));
    MPL_PASS(mpl_new(self->ctx, self->pair, self->entries->n));
    for (uint32_t i = 0; i < self->entries->n; i++)
        MPL_PASS(bind_entry(self, i, &run));
    return MPL_OK;
}

static void unbind_all(caller *self)
{
    for (uint32_t i = 0; self->pair != NULL && i < self->entries->n; i++) {
        mpl_exec_free(self->ctx, self->pair[i].planned);
        mpl_exec_free(self->ctx, self->pair[i].alone);
    }
    for (uint32_t s = 0; self->state != NULL && s < self->entries->n_states; s++)
        mpl_free(self->ctx, self->state[s]);
    mpl_free_each(self->ctx, self->pair, self->state, self->one, self->other);
    if (self->arena != NULL)
        self->job->backend->arena_free(self->dev, self->arena, self->plan->peak_bytes);
    if (self->dev != NULL)
        self->job->backend->close(self->dev);
    mpl_entries_fini(self->ctx, &self->alone);
}

/* ---- one call ---- */

/* Copies the first rows of the state to the value, or back: a value's dims are at most the state's
 * along one axis. */
static void copy_rows(const caller *self, uint32_t s, const mpl_shape *rows, char *value, bool back)
{
    const mpl_shape *whole = &self->entries->state_shape[s];
    uint32_t axis = 0;
    uint64_t n, part, size, bytes = self->entries->state_bytes[s];

    if (mpl_shape_equal(whole, rows)) {
        memcpy(back ? self->state[s] : value, back ? value : self->state[s], bytes);
        return;
    }
    while (axis + 1 < whole->rank && rows->dim[axis] == whole->dim[axis])
        axis++;
    n = (uint64_t)mpl_count_dims(whole, 0, axis);
    size = bytes / n;
    part = size / (uint64_t)whole->dim[axis] * (uint64_t)rows->dim[axis];
    for (uint64_t i = 0; i < n; i++)
        memcpy(back ? self->state[s] + i * size : value + i * part,
               back ? value + i * part : self->state[s] + i * size, part);
}

static uint32_t state_with(const mpl_entry *entry, uint32_t n, mpl_value v, bool output)
{
    uint32_t s = 0;

    while (s < n && (output ? entry->state[s].after : entry->state[s].before) != v)
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
static mpl_status make_input(const caller *self, const mpl_graph *g, uint32_t i, uint64_t seed)
{
    mpl_value v = g->input[i];

    for (uint32_t k = 0; k < self->job->inputs.n; k++) {
        const mpl_binding *binding = &self->job->inputs.item[k];

        if (binding->name == NULL || strcmp(binding->name, g->value_name[v]) != 0)
            continue;
        if (binding->ramp)
            return mpl_exec_make_input(self->ctx, g, i, 0, self->one);
        if (binding->tensor.type != g->value_type[v] ||
            !mpl_shape_equal(&binding->tensor.shape, &g->value_shape[v]))
            return MPL_REFUSE(self->ctx,
                              "--input: '%s' has another type or other dims in graph '%s'",
                              binding->name, g->name);
        memcpy(self->one, binding->tensor.data, g->value_bytes[v]);
        return MPL_OK;
    }
    return mpl_exec_make_input(self->ctx, g, i, seed, self->one);
}

static mpl_status set_inputs(const caller *self, uint32_t e, uint64_t seed)
{
    const mpl_entry *alone = &self->alone.entry[e];
    const mpl_graph *g = alone->job.source.graph, *to = self->entries->entry[e].job.source.graph;

    for (uint32_t i = 0; i < g->n_inputs; i++) {
        uint32_t s = state_with(alone, self->entries->n_states, g->input[i], false), k;

        if (s < self->entries->n_states) {
            copy_rows(self, s, &g->value_shape[g->input[i]], self->one, false);
        } else {
            MPL_PASS(make_input(self, g, i, seed));
            k = index_of(to->n_inputs, to->input, mpl_graph_find(to, g->value_name[g->input[i]]));
            MPL_PASS(mpl_exec_set_input(self->pair[e].planned, k, self->one));
        }
        MPL_PASS(mpl_exec_set_input(self->pair[e].alone, i, self->one));
    }
    return MPL_OK;
}

static void compare(caller *self, mpl_type type, const mpl_shape *shape, uint64_t bytes,
                    const char *got, const char *want)
{
    uint64_t n = 0;
    double error;

    if (memcmp(got, want, bytes) == 0 || !mpl_shape_count(shape, &n))
        return;
    error = mpl_compare(type, n, got, want);
    /* equal numbers with unequal bits count as unequal */
    self->error = fmax(self->error, error > 0 ? error : 5e-324);
}

/* Compares what the arena holds as state s with the states of the calls alone. */
static mpl_status compare_state(caller *self, uint32_t s)
{
    MPL_PASS(self->job->backend->download(self->dev, self->one,
                                          (char *)self->arena + self->plan->offset[s],
                                          self->entries->state_bytes[s]));
    compare(self, self->entries->state_type[s], &self->entries->state_shape[s],
            self->entries->state_bytes[s], self->one, self->state[s]);
    return MPL_OK;
}

static mpl_status take_outputs(caller *self, uint32_t e)
{
    const mpl_entry *alone = &self->alone.entry[e];
    const mpl_graph *g = alone->job.source.graph, *to = self->entries->entry[e].job.source.graph;

    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        uint32_t k = index_of(to->n_outputs, to->output, mpl_graph_find(to, g->value_name[v]));

        MPL_PASS(mpl_exec_output(self->pair[e].alone, i, self->other));
        for (uint32_t s = 0; s < self->entries->n_states; s++)
            if (alone->state[s].after == v)
                copy_rows(self, s, &g->value_shape[v], self->other, true);
        if (k == to->n_outputs)
            continue; /* what lies in the state instead is compared */
        MPL_PASS(mpl_exec_output(self->pair[e].planned, k, self->one));
        compare(self, g->value_type[v], &g->value_shape[v], g->value_bytes[v], self->one,
                self->other);
    }
    for (uint32_t s = 0; s < self->entries->n_states; s++)
        if (alone->state[s].after != MPL_NONE)
            MPL_PASS(compare_state(self, s));
    return MPL_OK;
}

/* ---- all calls ---- */

static mpl_status check_inputs(const caller *self)
{
    for (uint32_t k = 0; k < self->job->inputs.n; k++) {
        const char *name = self->job->inputs.item[k].name;
        bool found = false;

        for (uint32_t e = 0; name != NULL && e < self->alone.n; e++) {
            const mpl_graph *g = self->alone.entry[e].job.source.graph;
            mpl_value v = mpl_graph_find(g, name);

            found = found || (v != MPL_NONE && index_of(g->n_inputs, g->input, v) < g->n_inputs &&
                              state_with(&self->alone.entry[e], self->entries->n_states, v,
                                         false) == self->entries->n_states);
        }
        if (!found)
            return MPL_REFUSE(self->ctx, "--input: no graph has an input '%s' that is no state",
                              name != NULL ? name : "without a name");
    }
    return MPL_OK;
}

static mpl_status sum_facts(const caller *self, uint32_t n, const uint32_t *calls,
                            mpl_exec_facts *sum)
{
    for (uint32_t e = 0; e < self->entries->n; e++) {
        mpl_exec_facts facts;

        MPL_PASS(mpl_exec_facts_get(self->pair[e].planned, &facts));
        sum->workspace_bytes += facts.workspace_bytes;
        sum->weight_bytes += facts.weight_bytes;
        sum->packed_bytes += facts.packed_bytes;
        sum->pinned_bytes += facts.pinned_bytes;
        sum->n_kernels += facts.n_kernels;
        for (uint32_t k = 0; k < n; k++)
            sum->copied_bytes += calls[k] == e ? facts.copied_bytes : 0;
    }
    sum->arena_bytes = self->plan->peak_bytes;
    return self->job->backend->resident(self->dev, self->arena, self->plan->peak_bytes,
                                        &sum->measured_bytes);
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
