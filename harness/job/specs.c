/* specs.c -- parses options with parameters: planners, orders and recomputations. Checks options
 * before anything is planned. See job.h. */
#include <math.h>
#include <stdlib.h>

#include "graphs/orders/work.h"
#include "harness/foreign/foreign.h"
#include "harness/job/job.h"
#include "planners/search/joint.h"
#include "runtime/exec.h"

/* ---- planners ---- */

static mpl_status no_such_planner(mpl_ctx *ctx, const char *name)
{
    char names[400] = "";
    size_t n = 0;

    for (const mpl_planner *const *p = mpl_planners; *p != NULL && n < sizeof names; p++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? ", " : "", (*p)->name);
    return MPL_REFUSE(ctx, "no planner '%.60s'; there are: %s, so:FILE, exec:COMMAND", name, names);
}

mpl_status mpl_planner_spec_parse(mpl_ctx *ctx, const char *text, mpl_planner_spec *out)
{
    mpl_status st = MPL_OK;
    mpl_planner_spec spec = {0};
    const char *params = strchr(text, ':');
    char name[64], what[100];

    if (mpl_foreign_named(text)) {
        MPL_TRY(mpl_foreign_new(ctx, text, &spec.foreign, &params));
        spec.planner = &spec.foreign->planner;
    } else {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
        if ((spec.planner = mpl_planner_find(name)) == NULL)
            MPL_TRY(no_such_planner(ctx, name));
        params = params != NULL ? params + 1 : NULL;
    }
    snprintf(what, sizeof what, "planner %s", spec.planner->name);
    MPL_TRY(mpl_params_parse(ctx, what, spec.planner->params, params, &spec.params));
    for (uint32_t i = 0; spec.foreign != NULL && i < spec.params.key.n; i++)
        if (strcmp(spec.params.key.item[i], spec.foreign->kind) == 0)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: '%s' names the library; no parameter can", what,
                     spec.foreign->kind);
    *out = spec;
    memset(&spec, 0, sizeof spec);
out:
    mpl_planner_spec_fini(ctx, &spec);
    return st;
}

mpl_status mpl_planner_list(mpl_ctx *ctx, const char *text, mpl_planner_take *take, void *arg)
{
    mpl_status st = MPL_OK;
    const char *exec = strncmp(text, "exec:", 5) == 0 ? text : strstr(text, ",exec:");
    mpl_strings parts = {0};
    char *list = NULL, *store = NULL, one[4400];

    MPL_TRY(mpl_new(ctx, list, strlen(text) + 1));
    memcpy(list, text, exec != NULL ? (size_t)(exec - text) : strlen(text));
    if (exec != text)
        MPL_TRY(mpl_strings_split(ctx, list, "--planners", &store, &parts));
    for (uint32_t i = 0; i < parts.n;) {
        int length = snprintf(one, sizeof one, "%s", parts.item[i++]);

        while (i < parts.n && strchr(parts.item[i], '=') != NULL &&
               strchr(parts.item[i], ':') == NULL && length < (int)sizeof one)
            length += snprintf(one + length, sizeof one - (size_t)length, ",%s", parts.item[i++]);
        MPL_TRY(take(arg, one));
    }
    if (exec != NULL)
        MPL_TRY(take(arg, exec + (exec[0] == ',')));
out:
    mpl_free_each(ctx, parts.item, store, list);
    return st;
}

mpl_status mpl_planner_spec_peer(mpl_ctx *ctx, const char *text, mpl_planner_spec *out)
{
    mpl_planner_spec spec = {.peer = true};

    MPL_PASS(mpl_foreign_peer(ctx, text, &spec.foreign));
    spec.planner = &spec.foreign->planner;
    *out = spec;
    return MPL_OK;
}

void mpl_planner_spec_fini(mpl_ctx *ctx, mpl_planner_spec *spec)
{
    mpl_foreign_free(ctx, spec->foreign);
    mpl_params_fini(ctx, &spec->params);
    memset(spec, 0, sizeof *spec);
}

/* ---- orders ---- */

mpl_status mpl_order_spec_parse(mpl_ctx *ctx, const char *text, const mpl_order_kind **kind,
                                mpl_params *params)
{
    const char *colon = strchr(text, ':');
    char name[64], what[100];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    if ((*kind = mpl_any_order_find(name)) == NULL)
        return MPL_REFUSE(ctx, "no order '%s'; see memplan list orders", name);
    snprintf(what, sizeof what, "order %s", name);
    return mpl_params_parse(ctx, what, (*kind)->params, colon != NULL ? colon + 1 : NULL, params);
}

const char *mpl_order_proof(const mpl_job *job)
{
    static const char *const method[] = {"cut", "search", "orders"};
    static const char *const text[][2] = {{"bound by cut", "proved by cut"},
                                          {"bound by search", "proved by search"},
                                          {"bound by listing orders", "proved by listing orders"}};
    const mpl_order_found *found = &job->order_found;
    bool proved = found->live_bytes == found->bound_bytes;

    for (size_t i = 0; found->method != NULL && i < sizeof method / sizeof *method; i++)
        if (strcmp(found->method, method[i]) == 0)
            return text[i][proved];
    mpl_assert(found->method == NULL);
    return proved ? "proved" : "no bound";
}

/* ---- recomputation ---- */

static mpl_status parse_budget(mpl_ctx *ctx, const char *text, mpl_recompute_spec *spec)
{
    size_t n = strlen(text);
    char *end = NULL;

    if (n == 0 || text[n - 1] != '%') {
        MPL_PASS(mpl_parse_bytes(ctx, "--recompute", text, &spec->budget));
        return MPL_OK;
    }
    spec->part = strtod(text, &end) / 100;
    if (strspn(text, "0123456789.") + 1 != n || end != text + n - 1 ||
        !(spec->part > 0 && spec->part <= 1))
        return MPL_REFUSE(
            ctx, "--recompute: '%.40s' is no part of the peak, above 0%% and up to 100%%", text);
    return MPL_OK;
}

/* The states that revolve keeps of each loop. */
static mpl_status parse_slots(mpl_ctx *ctx, const char *text, mpl_recompute_spec *spec)
{
    uint64_t slots = 0;

    if (strlen(text) == strspn(text, "0123456789") && strlen(text) <= 9)
        slots = strtoull(text, NULL, 10);
    if (slots == 0)
        return MPL_REFUSE(
            ctx, "--recompute: revolve:%.40s: how many states does a loop keep? as in revolve:10",
            text);
    spec->slots = (uint32_t)slots;
    return MPL_OK;
}

/* "revolve", "revolve:SLOTS" or "sqrt". */
static mpl_status parse_loops(mpl_ctx *ctx, const char *text, mpl_recompute_spec *spec)
{
    char name[32];
    size_t n = strcspn(text, ":");

    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    spec->loops = mpl_recompute_find(name);
    if (spec->loops == NULL || spec->loops->loops == NULL ||
        (text[n] != '\0' && spec->loops->loops != mpl_schedule_revolve))
        return MPL_REFUSE(ctx, "--recompute: loops=%.40s is not revolve, revolve:SLOTS or sqrt",
                          text);
    return text[n] == ':' ? parse_slots(ctx, text + n + 1, spec) : MPL_OK;
}

/* "BUDGET", "without=A+B" and "loops=M", with commas between. */
static mpl_status parse_rest(mpl_ctx *ctx, const char *text, mpl_recompute_spec *spec)
{
    char part[64];

    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");

        snprintf(part, sizeof part, "%.*s", (int)(n < sizeof part ? n : sizeof part - 1), at);
        if (strncmp(part, "without=", 8) == 0)
            MPL_PASS(mpl_recompute_without(ctx, part + 8, &spec->without));
        else if (strncmp(part, "loops=", 6) == 0)
            MPL_PASS(parse_loops(ctx, part + 6, spec));
        else
            MPL_PASS(parse_budget(ctx, part, spec));
        at += n;
        if (*at == '\0')
            return MPL_OK;
    }
}

mpl_status mpl_recompute_spec_parse(mpl_ctx *ctx, const char *text, mpl_recompute_spec *out)
{
    mpl_recompute_spec spec = {.budget = MPL_LEAST_PEAK};
    char name[32];
    size_t n = strcspn(text, ":");

    if (strcmp(text, "none") == 0)
        goto done;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    spec.method = n < sizeof name ? mpl_recompute_find(name) : NULL;
    if (spec.method == NULL)
        return MPL_REFUSE(
            ctx,
            "--recompute: no method '%.40s'; there are sqrt, budget, round, pebble, revolve, none",
            text);
    if (text[n] == ':' && spec.method->loops == mpl_schedule_revolve)
        MPL_PASS(parse_slots(ctx, text + n + 1, &spec));
    else if (text[n] == ':')
        MPL_PASS(parse_rest(ctx, text + n + 1, &spec));
    if (spec.method->needs_budget && spec.budget == MPL_LEAST_PEAK && spec.part <= 0)
        return MPL_REFUSE(
            ctx, "--recompute: %s needs a budget: %s:512MiB, or %s:50%% of the peak without it",
            name, name, name);
done:
    *out = spec;
    return MPL_OK;
}

mpl_status mpl_recompute_graph(mpl_ctx *ctx, const mpl_problem_options *options,
                               const mpl_recompute_spec *spec, mpl_graph **g,
                               mpl_recompute_found *found, int64_t *ns)
{
    mpl_graph *made = NULL;
    mpl_recompute_task task = {.ctx = ctx,
                               .g = *g,
                               .options = options,
                               .budget = spec->budget,
                               .without = spec->without,
                               .slots = spec->slots,
                               .loops = spec->loops};
    uint64_t before;
    int64_t begin = mpl_clock_ns();

    *ns = 0;
    if (spec->method == NULL)
        return MPL_OK;
    if (spec->part > 0) {
        MPL_PASS(mpl_given_peak(ctx, *g, options, &before));
        task.budget = (uint64_t)floor((double)before * spec->part);
    }
    MPL_PASS(mpl_recompute(spec->method, &task, &made));
    *found = task.found;
    mpl_graph_free(ctx, *g);
    *g = made;
    *ns = mpl_clock_ns() - begin + 1;
    return MPL_OK;
}

/* ---- what can be checked without a graph ---- */

/* Checks --device against the named backend; the backends of a bench check it themselves. */
static mpl_status check_device(mpl_ctx *ctx, const mpl_options *options)
{
    const mpl_backend *backend =
        options->backend != NULL ? mpl_backend_find(options->backend) : NULL;

    if (options->device != NULL && backend != NULL && !backend->takes_params)
        return MPL_REFUSE(ctx, "--device: backend %s takes none", backend->name);
    if (options->device != NULL && options->backend == NULL && options->backends == NULL)
        return MPL_REFUSE(ctx, "--device: of which backend? name one that takes it, such as cuda");
    return MPL_OK;
}

static mpl_status check_workers(mpl_ctx *ctx, const mpl_options *options)
{
    uint64_t n = options->workers;

    if (n < 1 || n > MPL_MOST_WORKERS)
        return MPL_REFUSE(ctx, "--workers: %" PRIu64 " is not from 1 to %d", n, MPL_MOST_WORKERS);
    if (n == 1)
        return MPL_OK;
    if (options->given[MPL_OPT_safety] && options->safety.kind == MPL_safety_serial)
        return MPL_REFUSE(ctx,
                          "--workers %" PRIu64
                          ": a plan of safety serial is for one operation after the other; "
                          "--safety streams:%" PRIu64 " is for several",
                          n, n);
    if (options->given[MPL_OPT_safety] && options->safety.kind == MPL_safety_streams &&
        options->safety.n_streams < n)
        return MPL_REFUSE(ctx, "--workers %" PRIu64 ": more than the streams of --safety %s", n,
                          options->safety.text);
    if (options->compare != MPL_compare_none)
        return MPL_REFUSE(
            ctx, "--workers %" PRIu64 ": --compare is of runs of one operation after the other", n);
    if (options->threads > 0 && options->threads < n)
        return MPL_REFUSE(ctx, "--threads %" PRIu64 ": each of %" PRIu64 " workers needs one",
                          options->threads, n);
    return MPL_OK;
}

mpl_status mpl_unroll_parse(mpl_ctx *ctx, const char *text, uint64_t *copies)
{
    *copies = strcmp(text, "none") == 0 ? 1 : 0;
    if (*copies == 1 || strcmp(text, "auto") == 0)
        return MPL_OK;
    if (text[0] < '0' || text[0] > '9')
        return MPL_REFUSE(ctx, "--unroll: '%.40s' is none of auto, K, none", text);
    return mpl_parse_count(ctx, "--unroll", text, 2, MPL_MOST_BODIES, copies);
}

mpl_status mpl_job_default_safety(mpl_ctx *ctx, mpl_command_id command, mpl_options *options)
{
    char text[sizeof options->safety.text];

    snprintf(text, sizeof text, "streams:%" PRIu64, options->workers);
    return options->workers > 1 ? mpl_options_default(ctx, command, "safety", text, options)
                                : MPL_OK;
}

mpl_status mpl_job_check_options(mpl_ctx *ctx, const mpl_options *options)
{
    mpl_status st = MPL_OK;
    const mpl_order_kind *order;
    const mpl_backend *backend;
    mpl_params params = {0};
    mpl_pass_set passes;
    mpl_recompute_spec recompute;
    mpl_tile_ask tile;
    bool tiled;
    uint64_t size;
    size_t name_bytes;

    for (uint32_t i = 0; i < options->dim.n; i++)
        MPL_TRY(mpl_parse_dim(ctx, options->dim.item[i], &name_bytes, &size));
    MPL_TRY(mpl_order_spec_parse(ctx, options->order, &order, &params));
    if (!options->views && options->concat == MPL_concat_share)
        MPL_FAIL(
            ctx, MPL_EINPUT,
            "--concat share: operands that lie inside the result are views; --views off has none");
    if (options->given[MPL_OPT_op_times] && options->layout != MPL_layout_tuned &&
        !options->residency && options->memories == NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "--op-times: only --layout tuned and --residency read them; add one");
    MPL_TRY(mpl_algorithms_check(ctx, options));
    MPL_TRY(mpl_parse_percent(ctx, "--gap", options->gap, &size));
    if (options->threads > 1024)
        MPL_FAIL(ctx, MPL_EINPUT, "--threads: %" PRIu64 " is more than 1024", options->threads);
    if (options->repeat < 1 || options->repeat > 10000)
        MPL_FAIL(ctx, MPL_EINPUT, "--repeat: %" PRIu64 " is not from 1 to 10000", options->repeat);
    MPL_TRY(check_workers(ctx, options));
    MPL_TRY(mpl_pass_set_parse(ctx, options->optimise, &passes));
    MPL_TRY(mpl_recompute_spec_parse(ctx, options->recompute, &recompute));
    MPL_TRY(mpl_tile_parse(ctx, options->tile, &tiled, &tile));
    MPL_TRY(mpl_unroll_parse(ctx, options->unroll, &size));
    MPL_TRY(check_device(ctx, options));
    MPL_TRY(mpl_backend_by_option(ctx, options->backend, &backend));
out:
    mpl_params_fini(ctx, &params);
    return st;
}

/* ---- what a file may claim ---- */

/* Work allowed for a run of a graph from a file: a fixed amount, and more for each byte given. So a
 * small file cannot demand much work. */
static const uint64_t WORK_FREE = UINT64_C(1) << 28, WORK_A_BYTE = UINT64_C(1) << 18,
                      MOST_INPUT_BYTES = UINT64_C(1) << 24; /* of inputs, counted at most */

/* Sums the bytes of inputs, and of inputs and weights with and without contents in the file. */
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

uint64_t mpl_job_work_limit(const mpl_options *options, const mpl_source *source)
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
    uint64_t limit = options->given[MPL_OPT_work_limit] ? options->work_limit : MPL_CLAIMED_BYTES;
    uint64_t inputs, brought, claimed;

    if (limit == 0 || (job->source.file_bytes == 0 && !options->given[MPL_OPT_work_limit]))
        return MPL_OK;
    outside_bytes(job->source.graph, &inputs, &brought, &claimed);
    if (claimed > limit)
        return MPL_ERROR(ctx, MPL_ELIMIT,
                         "%s: inputs and weights that it has no data of come to %" PRIu64
                         " bytes; the limit is %" PRIu64 " (--work-limit N lifts it, 0: none)",
                         job->text, claimed, limit);
    return MPL_OK;
}
