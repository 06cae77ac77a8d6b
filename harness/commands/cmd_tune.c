/* cmd_tune.c -- memplan tune: times each operation of graphs in each layout and implementation, for
 * --layout tuned.
 *
 * Operations are timed inside whole runs, where caches hold what they hold in use: once with all
 * images plain, once with all channels last, once with all in blocks, and so again with each
 * further implementation that the backend has. Where it has reference loops alone for an operation
 * that others compute plain, that operation stays plain there: such loops may take a thousand times
 * as long, and are never chosen. Reorders are timed apart, since which of them a choice needs is
 * not known before. All of it is done again, as often as a few seconds allow: of a machine that
 * others slow at times, the least time of moments that lie apart is the operation's own. At last
 * the graph as chosen takes turns with what --layout auto makes of it, in whole runs. */
#include <unistd.h>

#include "graphs/passes/passes.h"
#include "harness/cli/command.h"
#include "harness/job/measure.h"
#include "harness/tune/tuned.h"
#include "runtime/exec.h"

static const uint64_t RUNS_NS = 100000000, ROUNDS_NS = 6000000000; /* of a variant, of a graph */
enum { LEAST_RUNS = 2, LEAST_TURNS = 4, MOST_RUNS = 12, MOST_ROUNDS = 4 };

typedef struct tuner {
    mpl_ctx *ctx;
    const mpl_options *options;
    const mpl_backend *backend;
    mpl_device *dev;
    mpl_op_times times;
    const char *graph;
    mpl_laid *laid;    /* [n_ops] of the variant that is timed */
    char (*how)[64];   /* [n_ops] what computed an operation in the variant before */
    uint8_t *slow;     /* [n_ops] reference loops compute it even plain */
    uint64_t whole_ns; /* of the last variant */
    uint32_t n_ops;
    uint32_t round;
} tuner;

/* The graph laid in one way, and what runs it. */
typedef struct variant {
    mpl_options options;
    mpl_job job;
    mpl_exec *exec;
} variant;

/* The graph without a layout of its own. */
static mpl_status open_plain(const tuner *self, mpl_options *options, mpl_job *job)
{
    *options = *self->options;
    options->layout = MPL_layout_plain;
    options->given[MPL_OPT_op_times] = false; /* of what is measured, not of how this is laid */
    MPL_PASS(mpl_job_read(self->ctx, options, self->graph, job));
    MPL_PASS(mpl_job_passes(self->ctx, options, job));
    if (job->source.graph == NULL)
        return MPL_REFUSE(self->ctx, "tune: %s is a list of buffers; it has no operations",
                          self->graph);
    if (!mpl_layouts_open(job->source.graph))
        return MPL_REFUSE(self->ctx,
                          "tune: %s has updates or reorders; layouts are chosen of graphs without "
                          "them",
                          self->graph);
    return MPL_OK;
}

/* So many runs that quick graphs are timed well and slow ones do not take minutes. */
static uint32_t n_runs(int64_t run_ns)
{
    uint64_t fit = RUNS_NS / (uint64_t)(run_ns > 0 ? run_ns : 1);

    return (uint32_t)(fit < LEAST_RUNS ? LEAST_RUNS : fit > MOST_RUNS ? MOST_RUNS : fit);
}

/* Runs it once, with its inputs; *n: how often it should be timed. */
static mpl_status warm_up(const tuner *self, const mpl_job *job, mpl_exec *exec, uint32_t *n)
{
    mpl_status st = MPL_OK;
    mpl_inputs inputs = {0};
    int64_t run_ns;

    MPL_TRY(mpl_inputs_make(self->ctx, self->options, job, &inputs));
    for (uint32_t i = 0; i < inputs.n; i++)
        MPL_TRY(mpl_exec_set_input(exec, i, inputs.data[i]));
    MPL_TRY(mpl_exec_run(exec, &run_ns));
    *n = n_runs(run_ns);
out:
    mpl_inputs_fini(self->ctx, &inputs);
    return st;
}

/* Times every operation outside of blocks: the least of several runs. */
static mpl_status time_ops(const tuner *self, const mpl_job *job, mpl_exec *exec, uint64_t *ns)
{
    uint32_t n;

    MPL_PASS(warm_up(self, job, exec, &n));
    return mpl_exec_op_times(exec, n, ns);
}

/* laid NULL: as --layout auto has it. */
static mpl_status open_variant(const tuner *self, const mpl_laid *laid, variant *v)
{
    mpl_exec_options how = {.weight_seed = 1};

    MPL_PASS(open_plain(self, &v->options, &v->job));
    MPL_PASS(laid != NULL ? mpl_graph_lay(self->ctx, &v->job.source.graph, laid)
                          : mpl_graph_channels_last(self->ctx, &v->job.source.graph));
    MPL_PASS(mpl_job_order(self->ctx, &v->options, &v->job));
    how.work_limit = v->job.work_limit;
    return mpl_exec_new(self->ctx, self->backend, self->dev, v->job.source.graph, v->job.order,
                        NULL, NULL, NULL, &how, &v->exec);
}

static void close_variant(const tuner *self, variant *v)
{
    mpl_exec_free(self->ctx, v->exec);
    mpl_job_fini(self->ctx, &v->job);
    *v = (variant){0};
}

/* Lays plain, or with the preferred implementation, what reference loops would compute otherwise.
 * False: there is no such operation. */
static bool avoid_loops(tuner *self, const variant *v)
{
    const mpl_graph *laid = v->job.source.graph;
    bool any = false;
    mpl_op from = 0;

    for (mpl_op op = 0; op < laid->n_ops; op++) {
        bool loops = strncmp(mpl_exec_how(v->exec, op), "ref", 3) == 0;
        mpl_laid *as;

        if (laid->op_kind[op] == MPL_OP_reorder)
            continue;
        as = &self->laid[from];
        if (as->layout == MPL_PLAIN && as->way == 0)
            self->slow[from] = loops;
        else if (loops && !self->slow[from])
            any = true, *as = (mpl_laid){as->way > 0 ? as->layout : MPL_PLAIN, 0};
        from++;
    }
    return any;
}

/* Operations of the laid graph that are not reorders are those of the plain one, in its order. */
static mpl_status record(tuner *self, const mpl_graph *laid, const mpl_graph *plain,
                         const uint64_t *ns, const uint8_t *changed)
{
    mpl_op from = 0;

    self->whole_ns = 0;
    for (mpl_op op = 0; op < laid->n_ops; op++) {
        self->whole_ns += ns[op];
        if (laid->op_kind[op] == MPL_OP_reorder)
            continue;
        if (changed[from]) {
            mpl_op_time time = mpl_op_time_of(plain, from, self->laid[from]);

            time.ns = ns[op];
            MPL_PASS(mpl_op_times_put(self->ctx, &self->times, &time));
        }
        from++;
    }
    return MPL_OK;
}

/* Marks operations whose implementation differs from that of the variant before. */
static uint32_t note_changes(tuner *self, const mpl_graph *laid, mpl_exec *exec, uint8_t way,
                             uint8_t *changed)
{
    uint32_t n = 0;
    mpl_op from = 0;

    for (mpl_op op = 0; op < laid->n_ops; op++) {
        const char *how;

        if (laid->op_kind[op] == MPL_OP_reorder)
            continue;
        how = mpl_exec_how(exec, op);
        changed[from] = laid->op_block[op] == 0 &&
                        (way == 0 || strncmp(how, self->how[from], sizeof *self->how - 1) != 0);
        n += changed[from];
        snprintf(self->how[from++], sizeof *self->how, "%s", how);
    }
    return n;
}

/* Times the graph laid as self->laid; *n: operations with an implementation that is new. */
static mpl_status time_variant(tuner *self, const mpl_graph *plain, uint8_t way, uint32_t *n)
{
    mpl_status st = MPL_OK;
    variant v = {0};
    uint64_t *ns = NULL;
    uint8_t *changed = NULL;

    MPL_TRY(open_variant(self, self->laid, &v));
    while (avoid_loops(self, &v)) {
        close_variant(self, &v);
        MPL_TRY(open_variant(self, self->laid, &v));
    }
    MPL_TRY(mpl_new(self->ctx, changed, self->n_ops));
    *n = note_changes(self, v.job.source.graph, v.exec, way, changed);
    if (*n == 0)
        goto out;
    MPL_TRY(mpl_new(self->ctx, ns, v.job.source.graph->n_ops));
    MPL_TRY(time_ops(self, &v.job, v.exec, ns));
    MPL_TRY(record(self, v.job.source.graph, plain, ns, changed));
out:
    close_variant(self, &v);
    mpl_free_each(self->ctx, ns, changed);
    return st;
}

/* All ways of one layout, in turn, until none is new. */
static mpl_status time_layout(tuner *self, const mpl_graph *g, mpl_layout layout)
{
    static const char *const where[MPL_N_LAYOUTS] = {"first", "last", "in blocks"};

    for (uint8_t way = 0; way < MPL_N_WAYS; way++) {
        uint32_t n;

        for (mpl_op op = 0; op < g->n_ops; op++) {
            mpl_laid *as = &self->laid[op];

            if (way == 0)
                as->layout = mpl_op_may_be(g, op, layout) ? (uint8_t)layout : MPL_PLAIN;
            as->way = as->layout == (uint8_t)layout && g->op_block[op] == 0 ? way : 0;
        }
        MPL_PASS(time_variant(self, g, way, &n));
        if (n == 0)
            break;
        if (!self->options->quiet && self->round == 0)
            printf("%s: channels %s, implementation %u: %" PRIu32 " operations timed, %.3f ms a "
                   "run\n",
                   self->graph, where[layout], way, n, (double)self->whole_ns / 1e6);
        fflush(stdout);
    }
    return MPL_OK;
}

/* ---- reorders ---- */

static bool is_listed(mpl_shape *const *shape, uint32_t n, const mpl_shape *s)
{
    for (uint32_t i = 0; i < n; i++)
        if (mpl_shape_equal(shape[i], s))
            return true;
    return false;
}

/* A graph that turns one image of each shape, and back; *out stays NULL where there is no image. */
static mpl_status turning_graph(mpl_ctx *ctx, const mpl_graph *g, mpl_graph **out)
{
    static const mpl_layout turn[] = {MPL_LAST, MPL_PLAIN, MPL_BLOCKED, MPL_PLAIN};
    mpl_status st = MPL_OK;
    mpl_graph *to = NULL;
    mpl_shape **shape = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, shape, g->n_values));
    MPL_TRY(mpl_graph_new(ctx, "reorders", &to));
    for (mpl_value v = 0; v < g->n_values; v++) {
        char text[32];
        const char *name = text;
        mpl_value made;

        if (g->value_type[v] != MPL_TYPE_f32 || g->value_shape[v].rank != 4 ||
            g->value_bytes[v] == 0 || is_listed(shape, n, &g->value_shape[v]))
            continue;
        snprintf(text, sizeof text, "image%" PRIu32, n);
        MPL_TRY(
            mpl_graph_add_value(ctx, to, text, MPL_INPUT, MPL_TYPE_f32, &g->value_shape[v], &made));
        shape[n++] = &g->value_shape[v];
        for (uint32_t k = 0; k < (mpl_layout_takes(MPL_BLOCKED, &g->value_shape[v]) ? 4 : 2); k++) {
            mpl_attr attr = MPL_TEXT(mode, mpl_layout_name(turn[k]));

            snprintf(text, sizeof text, "image%" PRIu32 ".%u", n - 1, k);
            MPL_TRY(mpl_graph_add_op(ctx, to, MPL_OP_reorder, name, 1, &made, 1, &attr, 1, &name,
                                     &made));
        }
        MPL_TRY(mpl_graph_add_output(ctx, to, made));
    }
    if (n == 0)
        goto out;
    MPL_TRY(mpl_graph_finish(ctx, to));
    *out = to, to = NULL;
out:
    mpl_graph_free(ctx, to);
    mpl_free(ctx, shape);
    return st;
}

static mpl_status time_reorders(tuner *self, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    mpl_job job = {.text = "reorders"};
    mpl_exec_options how = {.weight_seed = 1};
    mpl_exec *exec = NULL;
    uint64_t *ns = NULL;

    MPL_TRY(turning_graph(self->ctx, g, &job.source.graph));
    if (job.source.graph == NULL)
        goto out;
    MPL_TRY(mpl_new(self->ctx, job.order, job.source.graph->n_ops));
    MPL_TRY(mpl_order_of(self->ctx, job.source.graph, mpl_order_find("given"), job.order));
    MPL_TRY(mpl_new(self->ctx, ns, job.source.graph->n_ops));
    MPL_TRY(mpl_exec_new(self->ctx, self->backend, self->dev, job.source.graph, job.order, NULL,
                         NULL, NULL, &how, &exec));
    MPL_TRY(time_ops(self, &job, exec, ns));
    for (mpl_op op = 0; op < job.source.graph->n_ops; op++) {
        mpl_value made = mpl_op_output(job.source.graph, op, 0);
        mpl_op_time time = mpl_reorder_time_of(&job.source.graph->value_shape[made],
                                               mpl_layout_of(job.source.graph, made));

        time.ns = ns[op];
        MPL_TRY(mpl_op_times_put(self->ctx, &self->times, &time));
    }
out:
    mpl_exec_free(self->ctx, exec);
    mpl_free(self->ctx, ns);
    mpl_job_fini(self->ctx, &job);
    return st;
}

/* ---- the choice ---- */

/* Times whole runs of the graph as chosen and as --layout auto has it, by turns: the least of each.
 */
static mpl_status time_whole(tuner *self, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    variant v[2] = {0};
    mpl_op_time whole[2];
    uint32_t n = 0;

    for (uint32_t k = 0; k < 2; k++) {
        whole[k] = mpl_whole_time_of(g, k == 0 ? self->laid : NULL);
        whole[k].ns = INT64_MAX;
        MPL_TRY(open_variant(self, k == 0 ? self->laid : NULL, &v[k]));
        MPL_TRY(warm_up(self, &v[k].job, v[k].exec, &n));
    }
    n = n < LEAST_TURNS ? LEAST_TURNS : n;
    for (uint32_t i = 0; i < 4 * n; i++) {
        int64_t ns;

        MPL_TRY(mpl_exec_run(v[i % 2].exec, &ns));
        whole[i % 2].ns = mpl_min_u64(whole[i % 2].ns, (uint64_t)ns);
    }
    for (uint32_t k = 0; k < 2; k++)
        MPL_TRY(mpl_op_times_put(self->ctx, &self->times, &whole[k]));
out:
    for (uint32_t k = 0; k < 2; k++)
        close_variant(self, &v[k]);
    return st;
}

/* What --layout tuned will make of the times, checked in whole runs. */
static mpl_status choose(tuner *self, const mpl_graph *g)
{
    mpl_chosen chosen;

    MPL_PASS(mpl_op_times_write(self->ctx, self->options->op_times, &self->times));
    MPL_PASS(
        mpl_tuned_choose(self->ctx, g, &self->times, self->options->op_times, self->laid, &chosen));
    if (self->backend->lays_channels_last)
        MPL_PASS(time_whole(self, g));
    MPL_PASS(mpl_op_times_write(self->ctx, self->options->op_times, &self->times));
    MPL_PASS(
        mpl_tuned_choose(self->ctx, g, &self->times, self->options->op_times, self->laid, &chosen));
    if (self->options->quiet)
        return MPL_OK;
    printf("%s: tuned, %.3f ms, reorders counted; no choice takes less than %.3f ms of these "
           "times\n",
           self->graph, (double)chosen.ns / 1e6, (double)chosen.bound_ns / 1e6);
    if (chosen.whole_ns > 0)
        printf("%s: whole runs as chosen %.3f ms, as --layout auto has it %.3f ms%s\n", self->graph,
               (double)chosen.whole_ns / 1e6, (double)chosen.auto_ns / 1e6,
               chosen.as_auto ? ": --layout tuned will be auto" : "");
    return MPL_OK;
}

/* ---- a graph, and all ---- */

static mpl_status time_all(tuner *self, const mpl_graph *g)
{
    MPL_PASS(time_layout(self, g, MPL_PLAIN));
    if (!self->backend->lays_channels_last)
        return MPL_OK;
    MPL_PASS(time_layout(self, g, MPL_LAST));
    MPL_PASS(time_layout(self, g, MPL_BLOCKED));
    return time_reorders(self, g);
}

static mpl_status tune_graph(tuner *self)
{
    mpl_status st = MPL_OK;
    uint64_t begin = (uint64_t)mpl_clock_ns(), ns = 0;
    mpl_job plain = {0};
    mpl_options options;

    MPL_TRY(open_plain(self, &options, &plain));
    self->n_ops = plain.source.graph->n_ops;
    MPL_TRY(mpl_new_each(self->ctx, self->n_ops, self->laid, self->how, self->slow));
    for (self->round = 0; self->round < MOST_ROUNDS && ns < ROUNDS_NS; self->round++) {
        MPL_TRY(time_all(self, plain.source.graph));
        ns = (uint64_t)mpl_clock_ns() - begin;
        ns += ns / (self->round + 1); /* as it would be after one more */
    }
    MPL_TRY(choose(self, plain.source.graph));
out:
    mpl_free_each(self->ctx, self->laid, self->how, self->slow);
    self->laid = NULL, self->how = NULL, self->slow = NULL;
    mpl_job_fini(self->ctx, &plain);
    return st;
}

/* Reads the file if it is there; its times must be of this machine. */
static mpl_status begin(tuner *self, const mpl_machine *machine, uint32_t n_threads)
{
    char origin[sizeof self->times.origin];

    snprintf(origin, sizeof origin, "%s; %s; %s; %" PRIu32 " threads", machine->cpu, machine->isa,
             self->backend->about, n_threads > 0 ? n_threads : machine->n_cores);
    if (access(self->options->op_times, F_OK) == 0) {
        MPL_PASS(mpl_op_times_read(self->ctx, self->options->op_times, &self->times));
        if (strcmp(origin, self->times.origin) != 0)
            return MPL_REFUSE(self->ctx,
                              "%s: its times are of '%s', this is '%s'; name another file",
                              self->options->op_times, self->times.origin, origin);
    }
    memcpy(self->times.origin, origin, sizeof origin);
    return MPL_OK;
}

mpl_status mpl_cmd_tune(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    tuner t = {.ctx = ctx, .options = options};
    mpl_device_options device = {.params = options->device};
    mpl_machine machine;

    if (options->op_times == NULL)
        return MPL_REFUSE(ctx, "tune: add --op-times FILE, which the times are added to");
    MPL_TRY(mpl_machine_get(ctx, &machine));
    MPL_TRY(mpl_backend_by_option(ctx, options->backend != NULL ? options->backend : "cpu",
                                  &t.backend));
    device.n_threads = mpl_job_threads(options, &machine);
    MPL_TRY(begin(&t, &machine, device.n_threads));
    MPL_TRY(t.backend->open(ctx, &device, &t.dev));
    for (uint32_t i = 0; i < options->args.n; i++) {
        t.graph = options->args.item[i];
        MPL_TRY(tune_graph(&t));
    }
out:
    if (t.dev != NULL)
        t.backend->close(t.dev);
    mpl_op_times_free(ctx, &t.times);
    return st;
}
