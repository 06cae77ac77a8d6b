/* freedoms.c -- the freedoms of --free, and what each asks of the options. See least_job.h. */
#include "harness/least/least_job.h"

#include <stdlib.h>

static mpl_status ask_optimise(mpl_ctx *ctx, const mpl_freedom *freedom, const char *graph,
                               int64_t deadline_ns, mpl_options *options, char *text, char *why)
{
    (void)ctx, (void)freedom, (void)graph, (void)deadline_ns, (void)text, (void)why;
    options->optimise = "all";
    return MPL_OK;
}

static mpl_status ask_layout(mpl_ctx *ctx, const mpl_freedom *freedom, const char *graph,
                             int64_t deadline_ns, mpl_options *options, char *text, char *why)
{
    (void)ctx, (void)freedom, (void)graph, (void)deadline_ns, (void)text, (void)why;
    options->layout = MPL_layout_auto;
    return MPL_OK;
}

/* ---- recomputation ---- */

/* Budgets are tried down to NEAR percent of the peak. */
enum { LEAST_PERCENT = 4, NEAR = 2 };

/* Whether the task's run adds little enough work. */
static mpl_status fits(const char *method, mpl_recompute_task *task, double most_extra, bool *ok)
{
    mpl_status st = MPL_OK;
    mpl_graph *made = NULL;

    st = mpl_recompute(mpl_recompute_find(method), task, &made);
    *ok = st == MPL_OK &&
          (double)task->found.facts.extra_work <= most_extra * (double)task->found.facts.all_work;
    if (st == MPL_EINVALID || st == MPL_ELIMIT) /* nothing is within the budget, or was found */
        st = MPL_OK;
    mpl_graph_free(task->ctx, made);
    return st;
}

/* The fewest states for each loop to keep at which the extra work is allowed. 0: none, or none that
 * lowers the peak. */
static mpl_status least_slots(mpl_ctx *ctx, const mpl_freedom *freedom, const mpl_graph *g,
                              const mpl_options *options, int64_t deadline_ns, uint32_t *slots)
{
    mpl_problem_options asked = mpl_asked_problem(options);
    mpl_run clock = {.watch = options->watch, .deadline_ns = deadline_ns};
    mpl_recompute_task task = {
        .ctx = ctx, .g = g, .options = &asked, .budget = MPL_LEAST_PEAK, .slots = 1};
    uint32_t low = 0, high = 1;
    bool ok = false;

    *slots = 0;
    while (!ok && high < MPL_MOST_FORWARD && !mpl_run_late(&clock)) {
        task.slots = high *= 2;
        MPL_PASS(fits("revolve", &task, freedom->most_extra, &ok));
    }
    while (ok && high - low > 1 && !mpl_run_late(&clock)) {
        bool enough;

        task.slots = low + (high - low) / 2;
        MPL_PASS(fits("revolve", &task, freedom->most_extra, &enough));
        *(enough ? &high : &low) = task.slots;
    }
    task.slots = high;
    MPL_PASS(fits("revolve", &task, freedom->most_extra, &ok));
    *slots = ok && task.found.n_loops > 0 ? high : 0;
    return MPL_OK;
}

/* The least part of the peak at which the extra work is allowed, by bisection. 100: none. */
static mpl_status least_percent(mpl_ctx *ctx, const mpl_freedom *freedom, const mpl_graph *g,
                                const mpl_options *options, int64_t deadline_ns, uint32_t *percent)
{
    mpl_problem_options asked = mpl_asked_problem(options);
    mpl_run clock = {.watch = options->watch, .deadline_ns = deadline_ns};
    uint32_t low = LEAST_PERCENT;
    uint64_t peak;

    *percent = 100;
    MPL_PASS(mpl_given_peak(ctx, g, &asked, &peak));
    while (*percent - low > NEAR && !mpl_run_late(&clock)) {
        uint32_t middle = (low + *percent) / 2;
        mpl_recompute_task task = {
            .ctx = ctx, .g = g, .options = &asked, .budget = peak / 100 * middle};
        bool ok;

        MPL_PASS(fits("round", &task, freedom->most_extra, &ok));
        *(ok ? percent : &low) = middle;
    }
    return MPL_OK;
}

static mpl_status ask_recompute(mpl_ctx *ctx, const mpl_freedom *freedom, const char *graph,
                                int64_t deadline_ns, mpl_options *options, char *text, char *why)
{
    mpl_status st = MPL_OK;
    mpl_options before = *options;
    mpl_job job = {0};
    uint32_t least;
    bool loops;

    before.layout = MPL_layout_plain; /* changes of layout come last */
    MPL_TRY(mpl_job_read(ctx, &before, graph, &job));
    MPL_TRY(mpl_job_passes(ctx, &before, &job));
    loops = job.source.graph->n_blocks > 1;
    st = (loops ? least_slots : least_percent)(ctx, freedom, job.source.graph, options, deadline_ns,
                                               &least);
    if (st == MPL_EINPUT || st == MPL_EUNAVAIL) { /* no training graph; no GLPK */
        snprintf(why, 200, "%.199s", ctx->message);
        st = MPL_OK;
    } else if (st == MPL_OK && least == (loops ? 0 : 100)) {
        snprintf(why, 200, "no run with that little extra work was found below the peak");
    }
    MPL_TRY(st);
    snprintf(text, 40, loops ? "revolve:%" PRIu32 : "round:%" PRIu32 "%%", least);
    options->recompute = text;
out:
    mpl_job_fini(ctx, &job);
    return st;
}

/* ---- patches ---- */

static mpl_status ask_tile(mpl_ctx *ctx, const mpl_freedom *freedom, const char *graph,
                           int64_t deadline_ns, mpl_options *options, char *text, char *why)
{
    mpl_status st = MPL_OK;
    mpl_options with = *options;
    mpl_job job = {0};

    (void)deadline_ns;
    snprintf(text, 40, "work:%.10gx", 1 + freedom->most_extra);
    with.layout = MPL_layout_plain; /* changes of layout come last */
    with.tile = text;
    MPL_TRY(mpl_job_read(ctx, &with, graph, &job));
    st = mpl_job_passes(ctx, &with, &job);
    if (st == MPL_EINPUT || st == MPL_EINVALID) { /* loops; nothing to choose */
        snprintf(why, 200, "%.199s", ctx->message);
        st = MPL_OK;
    } else if (st == MPL_OK && job.tiled.facts.n_regions == 0) {
        snprintf(why, 200, "no patches with that little extra work lower the peak");
    }
    options->tile = text;
out:
    mpl_job_fini(ctx, &job);
    return st;
}

/* ---- texts ---- */

static const mpl_freedom_kind kinds[] = {
    {"optimise", false, MPL_OPT_optimise, ask_optimise},
    {"layout", false, MPL_OPT_layout, ask_layout},
    {"recompute", true, MPL_OPT_recompute, ask_recompute},
    {"tile", true, MPL_OPT_tile, ask_tile},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* "1.2x" after the ':' of a freedom. */
static mpl_status parse_factor(mpl_ctx *ctx, const char *text, mpl_freedom *out)
{
    size_t n = strlen(text);
    char *end = NULL;
    double factor = strtod(text, &end);

    if (n < 2 || n > 10 || strspn(text, "0123456789.") != n - 1 || end != text + n - 1 ||
        *end != 'x' || !(factor >= 1))
        return MPL_REFUSE(
            ctx,
            "--free: '+%s:%.40s' does not say how much work there may be in all, such as +%s:1.2x",
            out->kind->name, text, out->kind->name);
    out->most_extra = factor - 1;
    return MPL_OK;
}

static mpl_status parse_one(mpl_ctx *ctx, const mpl_options *options, const char *text,
                            mpl_freedom *out)
{
    size_t n = strcspn(text, ":");
    uint32_t k = 0;

    while (k < N_KINDS && !(text[0] == '+' && strlen(kinds[k].name) == n - 1 &&
                            strncmp(text + 1, kinds[k].name, n - 1) == 0 &&
                            (text[n] == ':') == kinds[k].takes_factor))
        k++;
    if (k == N_KINDS)
        return MPL_REFUSE(ctx,
                          "--free: '%.40s' is none of +optimise, +layout, +recompute:FACTORx, "
                          "+tile:FACTORx",
                          text);
    *out = (mpl_freedom){.kind = &kinds[k]};
    if (options->given[kinds[k].option])
        return MPL_REFUSE(ctx, "--free +%s: --%s is given, which decides it; leave one of them out",
                          kinds[k].name, kinds[k].name);
    if (kinds[k].takes_factor)
        MPL_PASS(parse_factor(ctx, text + n + 1, out));
    snprintf(out->text, sizeof out->text, "%s", text);
    return MPL_OK;
}

mpl_status mpl_freedoms_parse(mpl_ctx *ctx, const mpl_options *options,
                              mpl_freedom list[MPL_MOST_FREEDOMS], uint32_t *n)
{
    mpl_status st = MPL_OK;
    mpl_strings words = {0};
    char *store = NULL;

    *n = 0;
    if (options->free == NULL)
        goto out;
    MPL_TRY(mpl_strings_split(ctx, options->free, "--free", &store, &words));
    for (uint32_t i = 0; i < words.n; i++) {
        mpl_freedom one;

        MPL_TRY(parse_one(ctx, options, words.item[i], &one));
        for (uint32_t k = 0; k < *n; k++)
            if (list[k].kind == one.kind)
                MPL_FAIL(ctx, MPL_EINPUT, "--free: +%s stands there twice", one.kind->name);
        list[(*n)++] = one;
    }
out:
    mpl_free_each(ctx, words.item, store);
    return st;
}
