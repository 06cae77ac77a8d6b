/* order_spec.c -- "O:key=value,.." as an order and its parameters. See job.h. */
#include "harness/job/job.h"

#include "planners/search/joint.h"

mpl_status mpl_order_spec_parse(mpl_ctx *ctx, const char *text, mpl_order_spec *out)
{
    mpl_status st = MPL_OK;
    mpl_order_spec spec = {0};
    mpl_strings parts = {0};
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    if ((spec.kind = mpl_any_order_find(name)) == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no order '%s'; see memplan list orders", name);
    if (strchr(text, ':') != NULL)
        MPL_TRY(mpl_strings_split(ctx, strchr(text, ':') + 1, "--order", &spec.store, &parts));
    for (uint32_t i = 0; i < parts.n; i++) {
        char *part = spec.store + (parts.item[i] - spec.store), *cut = strchr(part, '=');

        if (cut == NULL || cut == part)
            MPL_FAIL(ctx, MPL_EINPUT, "order %s: '%s' is no key=value; it takes: %s", name, part,
                     spec.kind->params != NULL ? spec.kind->params : "none");
        *cut = '\0';
        MPL_TRY(mpl_strings_add(ctx, &spec.key, part));
        MPL_TRY(mpl_strings_add(ctx, &spec.value, cut + 1));
    }
    *out = spec;
    memset(&spec, 0, sizeof spec);
out:
    mpl_free(ctx, parts.item);
    mpl_order_spec_fini(ctx, &spec);
    return st;
}

void mpl_order_spec_fini(mpl_ctx *ctx, mpl_order_spec *spec)
{
    mpl_free(ctx, spec->store);
    mpl_free(ctx, spec->key.item);
    mpl_free(ctx, spec->value.item);
    memset(spec, 0, sizeof *spec);
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

const char *mpl_order_scope(const mpl_job *job)
{
    const mpl_graph *g = job->source.graph;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_concat)
            return "all orders with concats copied";
    return "all orders";
}
