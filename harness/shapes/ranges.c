/* ranges.c -- reads ranges and relations, and finds shapes within them. See ranges.h. */
#include "harness/shapes/ranges.h"

#include <stdlib.h>

#include "graphs/source.h"

/* ---- reading ---- */

static bool is_relation(const char *text)
{
    return strpbrk(text, "<>") != NULL;
}

/* Start of the parameters of a network of the zoo; NULL: it has none, or is a file. */
static const char *parameters(const char *graph)
{
    size_t n = strcspn(graph, ":");

    return graph[n] == ':' && mpl_zoo_find(graph, n) != NULL ? graph + n + 1 : NULL;
}

bool mpl_ranges_asked(const mpl_options *options, const char *graph)
{
    const char *more = parameters(graph);

    for (uint32_t i = 0; i < options->dim.n; i++)
        if (is_relation(options->dim.item[i]) || mpl_is_range(options->dim.item[i]))
            return true;
    return more != NULL && strstr(more, "..") != NULL;
}

/* All texts with commas between, without blanks. */
static mpl_status join(mpl_ctx *ctx, const mpl_strings *texts, char **out)
{
    size_t room = 1;
    char *at;

    for (uint32_t i = 0; i < texts->n; i++)
        room += strlen(texts->item[i]) + 1;
    MPL_PASS(mpl_new(ctx, *out, room));
    at = *out;
    for (uint32_t i = 0; i < texts->n; i++) {
        if (i > 0)
            *at++ = ',';
        for (const char *c = texts->item[i]; *c != '\0'; c++)
            if (*c != ' ')
                *at++ = *c;
    }
    return MPL_OK;
}

/* Whether "NAME=.." is a range or relation, or with `exprs` a size or range of one of its symbols.
 */
static bool is_asked(const mpl_exprs *exprs, const char *text)
{
    char name[80];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    return exprs == NULL ? is_relation(text) || mpl_is_range(text)
                         : mpl_exprs_find(exprs, name) != MPL_NONE;
}

/* Sorts the parameters of GRAPH and --dim into what is asked for and the rest. */
static mpl_status split(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                        const mpl_exprs *exprs, mpl_ranges *r)
{
    mpl_status st = MPL_OK;
    const char *more = parameters(graph);
    mpl_strings parts = {0};

    memset(r, 0, sizeof *r);
    r->options = *options;
    memset(&r->options.dim, 0, sizeof r->options.dim);
    MPL_TRY(mpl_copy_text(ctx, r->graph, graph));
    if (more != NULL) {
        MPL_TRY(mpl_strings_split(ctx, more, graph, &r->store, &parts));
        r->graph[more - graph - 1] = '\0';
    }
    for (uint32_t i = 0; i < parts.n; i++)
        if (is_asked(exprs, parts.item[i]))
            MPL_TRY(mpl_strings_add(ctx, &r->asked, parts.item[i]));
        else
            sprintf(r->graph + strlen(r->graph), "%c%s", strchr(r->graph, ':') == NULL ? ':' : ',',
                    parts.item[i]);
    for (uint32_t i = 0; i < options->dim.n; i++)
        MPL_TRY(mpl_strings_add(ctx,
                                is_asked(exprs, options->dim.item[i]) ? &r->asked : &r->options.dim,
                                options->dim.item[i]));
out:
    mpl_free(ctx, parts.item);
    return st;
}

mpl_status mpl_ranges_read(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                           mpl_ranges *ranges)
{
    MPL_PASS(split(ctx, options, graph, NULL, ranges));
    MPL_PASS(mpl_symbols_read(ctx, ranges->asked.n, ranges->asked.item, &ranges->exprs));
    return join(ctx, &ranges->asked, &ranges->text);
}

/* The symbol's range as text: what is asked of it last, else all. */
static void range_within(const mpl_symbol *symbol, const mpl_strings *asked, char *text,
                         size_t room)
{
    size_t n = strlen(symbol->name);

    snprintf(text, room, "%s=%" PRId64 "..%" PRId64 ":%" PRId64, symbol->name, symbol->first,
             symbol->last, symbol->step);
    for (uint32_t i = 0; i < asked->n; i++) {
        const char *one = asked->item[i];

        if (strncmp(one, symbol->name, n) == 0 && one[n] == '=')
            snprintf(text, room, mpl_is_range(one) ? "%.150s" : "%.150s..%s", one, one + n + 1);
    }
}

mpl_status mpl_ranges_within(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                             const mpl_exprs *exprs, mpl_ranges *ranges)
{
    mpl_status st = MPL_OK;
    mpl_strings texts = {0};
    uint32_t n = mpl_exprs_n_symbols(exprs);

    MPL_TRY(split(ctx, options, graph, exprs, ranges));
    for (uint32_t i = 0; i < n + mpl_exprs_n_relations(exprs); i++) {
        char *text = NULL, *relation = NULL;
        size_t room = 200;

        if (i >= n)
            MPL_TRY(mpl_expr_write(ctx, exprs, mpl_exprs_relation_at(exprs, i - n), &relation));
        room += relation != NULL ? strlen(relation) : 0;
        if ((text = mpl_alloc(ctx, room, 1)) != NULL && i >= n)
            snprintf(text, room, "%s <= 0", relation);
        else if (text != NULL)
            range_within(mpl_exprs_symbol(exprs, i), &ranges->asked, text, room);
        mpl_free(ctx, relation);
        MPL_TRY(text != NULL ? mpl_strings_add(ctx, &texts, text) : MPL_EMEM);
    }
    MPL_TRY(mpl_symbols_read(ctx, texts.n, texts.item, &ranges->exprs));
out:
    for (uint32_t i = 0; i < texts.n; i++)
        mpl_free(ctx, (char *)(uintptr_t)texts.item[i]);
    mpl_free(ctx, texts.item);
    return st;
}

void mpl_ranges_fini(mpl_ctx *ctx, mpl_ranges *r)
{
    mpl_exprs_free(ctx, r->exprs);
    mpl_free_each(ctx, r->graph, r->text, r->store, r->asked.item, r->options.dim.item);
    memset(r, 0, sizeof *r);
}

/* ---- shapes ---- */

mpl_status mpl_ranges_middle(mpl_ctx *ctx, const mpl_exprs *exprs, int64_t *value)
{
    mpl_rng rng;

    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);

        value[i] =
            symbol->first + ((symbol->last - symbol->first) / symbol->step + 1) / 2 * symbol->step;
    }
    mpl_rng_init(&rng, 1);
    return mpl_point_allowed(exprs, value) ? MPL_OK : mpl_point_draw(ctx, exprs, &rng, value);
}

mpl_status mpl_ranges_shape(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                            const mpl_exprs *exprs, const int64_t *value, mpl_one_shape *out)
{
    const char *name[MPL_MAX_SYMBOLS];
    uint32_t n = mpl_exprs_n_symbols(exprs);

    for (uint32_t i = 0; i < n; i++)
        name[i] = mpl_exprs_symbol(exprs, i)->name;
    return mpl_one_shape_make(ctx, options, graph, n, name, value, out);
}
