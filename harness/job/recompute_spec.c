/* recompute_spec.c -- --recompute as text, and what it makes of a graph. See job.h. */
#include <math.h>
#include <stdlib.h>

#include "harness/job/job.h"

static mpl_status parse_budget(mpl_ctx *ctx, const char *text, mpl_recompute_spec *spec)
{
    mpl_status st = MPL_OK;
    size_t n = strlen(text);
    char *end = NULL;

    if (n == 0 || text[n - 1] != '%') {
        MPL_TRY(mpl_parse_bytes(ctx, "--recompute", text, &spec->budget));
        goto out;
    }
    spec->part = strtod(text, &end) / 100;
    if (strspn(text, "0123456789.") + 1 != n || end != text + n - 1 ||
        !(spec->part > 0 && spec->part <= 1))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "--recompute: '%.40s' is no part of the peak, above 0%% and up to 100%%", text);
out:
    return st;
}

/* "BUDGET", "without=A+B", or both with a comma between. */
static mpl_status parse_rest(mpl_ctx *ctx, const char *text, mpl_recompute_spec *spec)
{
    mpl_status st = MPL_OK;
    const char *without = strstr(text, "without=");
    char budget[64];
    size_t n = without == NULL ? strlen(text) : without == text ? 0 : (size_t)(without - text) - 1;

    snprintf(budget, sizeof budget, "%.*s", (int)(n < sizeof budget ? n : sizeof budget - 1), text);
    if (without != NULL)
        MPL_TRY(mpl_recompute_without(ctx, without + strlen("without="), &spec->without));
    if (without == NULL || n > 0)
        MPL_TRY(parse_budget(ctx, budget, spec));
out:
    return st;
}

mpl_status mpl_recompute_spec_parse(mpl_ctx *ctx, const char *text, mpl_recompute_spec *out)
{
    mpl_status st = MPL_OK;
    mpl_recompute_spec spec = {.budget = MPL_LEAST_PEAK};
    char name[32];
    size_t n = strcspn(text, ":");

    if (strcmp(text, "none") == 0)
        goto done;
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    spec.method = n < sizeof name ? mpl_recompute_find(name) : NULL;
    if (spec.method == NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "--recompute: no method '%.40s'; there are sqrt, budget, round, pebble, none",
                 text);
    if (text[n] == ':')
        MPL_TRY(parse_rest(ctx, text + n + 1, &spec));
    if (spec.method->needs_budget && spec.budget == MPL_LEAST_PEAK && spec.part <= 0)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "--recompute: %s needs a budget: %s:512MiB, or %s:50%% of the peak without it",
                 name, name, name);
done:
    *out = spec;
out:
    return st;
}

mpl_status mpl_recompute_graph(mpl_ctx *ctx, const mpl_problem_options *options,
                               const mpl_recompute_spec *spec, mpl_graph **g,
                               mpl_recompute_found *found, int64_t *ns)
{
    mpl_status st = MPL_OK;
    mpl_graph *made = NULL;
    mpl_recompute_task task = {
        .ctx = ctx, .g = *g, .options = options, .budget = spec->budget, .without = spec->without};
    uint64_t before;
    int64_t begin = mpl_clock_ns();

    *ns = 0;
    if (spec->method == NULL)
        return MPL_OK;
    if (spec->part > 0) {
        MPL_TRY(mpl_recompute_before(ctx, *g, options, &before));
        task.budget = (uint64_t)floor((double)before * spec->part);
    }
    MPL_TRY(mpl_recompute(spec->method, &task, &made));
    *found = task.found;
    mpl_graph_free(ctx, *g);
    *g = made;
    *ns = mpl_clock_ns() - begin + 1;
out:
    return st;
}
