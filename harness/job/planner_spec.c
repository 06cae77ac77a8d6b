/* planner_spec.c -- "P:key=value,..", "so:FILE:key=value,..", "exec:COMMAND" as a planner and its
 * parameters. See job.h. */
#include "harness/foreign/foreign.h"
#include "harness/job/job.h"

static mpl_status no_such_planner(mpl_ctx *ctx, const char *name)
{
    char names[400] = "";
    size_t n = 0;

    for (const mpl_planner *const *p = mpl_planners; *p != NULL && n < sizeof names; p++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? ", " : "", (*p)->name);
    return mpl_fail(ctx, MPL_EINPUT, __FILE__, __LINE__,
                    "no planner '%.60s'; there are: %s, so:FILE, exec:COMMAND", name, names);
}

/* "key=value,.." behind the planner's name. */
static mpl_status parse_params(mpl_ctx *ctx, const char *text, const char *params,
                               mpl_planner_spec *spec)
{
    mpl_status st = MPL_OK;
    mpl_strings parts = {0};

    if (params == NULL)
        goto out;
    if (params[0] == '\0')
        MPL_FAIL(ctx, MPL_EINPUT, "planner %s: nothing behind the ':'; it takes: %s",
                 spec->planner->name,
                 spec->planner->params != NULL ? spec->planner->params : "none");
    MPL_TRY(mpl_strings_split(ctx, params, text, &spec->store, &parts));
    for (uint32_t i = 0; i < parts.n; i++) {
        char *part = spec->store + (parts.item[i] - spec->store), *cut = strchr(part, '=');

        if (cut == NULL || cut == part)
            MPL_FAIL(ctx, MPL_EINPUT, "planner %s: '%s' is no key=value; it takes: %s",
                     spec->planner->name, part,
                     spec->planner->params != NULL ? spec->planner->params : "none");
        *cut = '\0';
        if (spec->foreign != NULL && strcmp(part, spec->foreign->kind) == 0)
            MPL_FAIL(ctx, MPL_EINPUT, "planner %s: '%s' names the library; no parameter can",
                     spec->planner->name, part);
        MPL_TRY(mpl_strings_add(ctx, &spec->key, part));
        MPL_TRY(mpl_strings_add(ctx, &spec->value, cut + 1));
    }
out:
    mpl_free(ctx, parts.item);
    return st;
}

mpl_status mpl_planner_spec_parse(mpl_ctx *ctx, const char *text, mpl_planner_spec *out)
{
    mpl_status st = MPL_OK;
    mpl_planner_spec spec = {0};
    const char *params = strchr(text, ':');
    char name[64];

    if (mpl_foreign_named(text)) {
        MPL_TRY(mpl_foreign_new(ctx, text, &spec.foreign, &params));
        spec.planner = &spec.foreign->planner;
    } else {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
        if ((spec.planner = mpl_planner_find(name)) == NULL)
            MPL_TRY(no_such_planner(ctx, name));
        params = params != NULL ? params + 1 : NULL;
    }
    MPL_TRY(parse_params(ctx, text, params, &spec));
    *out = spec;
    memset(&spec, 0, sizeof spec);
out:
    mpl_planner_spec_fini(ctx, &spec);
    return st;
}

mpl_status mpl_planner_spec_peer(mpl_ctx *ctx, const char *text, mpl_planner_spec *out)
{
    mpl_status st = MPL_OK;
    mpl_planner_spec spec = {.peer = true};

    MPL_TRY(mpl_foreign_peer(ctx, text, &spec.foreign));
    spec.planner = &spec.foreign->planner;
    *out = spec;
out:
    return st;
}

void mpl_planner_spec_fini(mpl_ctx *ctx, mpl_planner_spec *spec)
{
    mpl_foreign_free(ctx, spec->foreign);
    mpl_free(ctx, spec->store);
    mpl_free(ctx, spec->key.item);
    mpl_free(ctx, spec->value.item);
    memset(spec, 0, sizeof *spec);
}
