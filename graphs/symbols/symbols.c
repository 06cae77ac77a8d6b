/* symbols.c -- ranges and relations as text, points of a range, graphs at a point. See symbols.h.
 */
#include "graphs/symbols/symbols.h"

#include "graphs/core/text.h"

#include <errno.h>
#include <stdlib.h>

/* ---- text ---- */

bool mpl_is_range(const char *text)
{
    const char *cut = strchr(text, '=');

    return cut != NULL && strstr(cut, "..") != NULL;
}

static bool read_number(const char **at, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoll(*at, &end, 10);
    if (end == *at || errno != 0)
        return false;
    *at = end;
    return true;
}

/* Adds the dimension of "NAME=FIRST..LAST[:DIVISOR]": the multiples of DIVISOR in the range
 * (without one: all integers). MPL_EINPUT: malformed, empty, or not above 0. */
static mpl_status read_range(mpl_ctx *ctx, mpl_exprs *exprs, const char *text)
{
    mpl_status st = MPL_OK;
    const char *at = strchr(text, '=');
    int64_t first, last, step = 1;
    char *name = NULL;
    mpl_expr e;

    if (at == NULL || at == text)
        return MPL_REFUSE(ctx, "'%s': a range is NAME=FIRST..LAST[:DIVISOR]", mpl_shown(text));
    MPL_TRY(mpl_copy_text(ctx, name, text));
    name[at++ - text] = '\0';
    if (!read_number(&at, &first) || strncmp(at, "..", 2) != 0 ||
        (at += 2, !read_number(&at, &last)) || (*at == ':' && (at++, !read_number(&at, &step))) ||
        *at != '\0' || step < 1)
        MPL_FAIL(ctx, MPL_EINPUT, "'%s': a range is NAME=FIRST..LAST[:DIVISOR]", mpl_shown(text));
    if (first < 1)
        MPL_FAIL(ctx, MPL_EINPUT, "'%s': a dimension begins at 1 or above", mpl_shown(text));
    if (last < first || last / step * step < first)
        MPL_FAIL(ctx, MPL_EINPUT, "'%s': the range is empty", mpl_shown(text));
    first += (step - first % step) % step;
    MPL_TRY(mpl_expr_symbol(ctx, exprs, name, first, last, step, &e));
out:
    mpl_free(ctx, name);
    return st;
}

/* Adds the relation "A <= B" (or >=, <, >), both expressions. After all ranges. */
static mpl_status read_relation(mpl_ctx *ctx, mpl_exprs *exprs, const char *text)
{
    mpl_status st = MPL_OK;
    size_t cut = strcspn(text, "<>");
    bool less = text[cut] == '<', equal = text[cut] != '\0' && text[cut + 1] == '=';
    char *left = NULL;
    mpl_expr a, b, one;

    if (text[cut] == '\0')
        return MPL_REFUSE(ctx, "'%s': a relation is EXPRESSION <= EXPRESSION", mpl_shown(text));
    MPL_TRY(mpl_copy_text(ctx, left, text));
    left[cut] = '\0';
    MPL_TRY(mpl_expr_read(ctx, exprs, left, &a));
    MPL_TRY(mpl_expr_read(ctx, exprs, text + cut + 1 + equal, &b));
    MPL_TRY(mpl_expr_sub(ctx, exprs, less ? a : b, less ? b : a, &a));
    if (!equal) { /* a < b is a + 1 <= b */
        MPL_TRY(mpl_expr_const(ctx, exprs, 1, &one));
        MPL_TRY(mpl_expr_add(ctx, exprs, a, one, &a));
    }
    MPL_TRY(mpl_exprs_relation(ctx, exprs, a));
out:
    mpl_free(ctx, left);
    return st;
}

mpl_status mpl_symbols_read(mpl_ctx *ctx, uint32_t n, const char *const *text, mpl_exprs **out)
{
    mpl_status st = MPL_OK;
    mpl_exprs *exprs = NULL;
    int64_t value[MPL_MAX_SYMBOLS];

    MPL_TRY(mpl_exprs_new(ctx, &exprs));
    for (uint32_t i = 0; i < n; i++)
        if (strpbrk(text[i], "<>") == NULL)
            MPL_TRY(read_range(ctx, exprs, text[i]));
    for (uint32_t i = 0; i < n; i++)
        if (strpbrk(text[i], "<>") != NULL)
            MPL_TRY(read_relation(ctx, exprs, text[i]));
    MPL_TRY(mpl_point_corner(ctx, exprs, 0, value));
    *out = exprs, exprs = NULL;
out:
    mpl_exprs_free(ctx, exprs);
    return st;
}

/* ---- points ---- */

typedef struct seeker {
    const mpl_exprs *exprs;
    mpl_rng *rng;  /* NULL: towards the corner `high` */
    uint64_t high; /* bit i: large values of symbol i first */
    int boxes;     /* left */
    int64_t *value;
} seeker;

static int64_t value_at(const mpl_symbol *symbol, int64_t count)
{
    return symbol->first + count * symbol->step;
}

static void point_in(const seeker *self, const mpl_box *box)
{
    for (uint32_t i = 0; i < box->n; i++) {
        uint64_t width = (uint64_t)(box->high[i] - box->low[i]) + 1;
        int64_t count = self->rng != NULL ? box->low[i] + (int64_t)mpl_rng_below(self->rng, width)
                        : self->high >> i & 1 ? box->high[i]
                                              : box->low[i];

        self->value[i] = value_at(mpl_exprs_symbol(self->exprs, i), count);
    }
}

/* Halves the box until all of it keeps the relations, the wanted half first. */
static bool seek(seeker *self, const mpl_box *box)
{
    int64_t low[MPL_MAX_SYMBOLS], high[MPL_MAX_SYMBOLS], least, most, middle;
    mpl_box half = {box->n, low, high};
    uint32_t widest = 0;
    bool all = true, upper;

    for (uint32_t i = 0; i < mpl_exprs_n_relations(self->exprs); i++) {
        if (!mpl_expr_bounds(self->exprs, mpl_exprs_relation_at(self->exprs, i), box, &least,
                             &most))
            return false;
        if (least > 0)
            return false;
        all = all && most <= 0;
    }
    if (all) {
        point_in(self, box);
        return true;
    }
    for (uint32_t i = 1; i < box->n; i++)
        if (box->high[i] - box->low[i] > box->high[widest] - box->low[widest])
            widest = i;
    if (box->n == 0 || box->high[widest] == box->low[widest] || self->boxes-- <= 0)
        return false;
    middle = box->low[widest] + (box->high[widest] - box->low[widest]) / 2;
    upper = self->rng != NULL ? mpl_rng_below(self->rng, 2) != 0 : (self->high >> widest & 1) != 0;
    for (uint32_t side = 0; side < 2; side++, upper = !upper) {
        memcpy(low, box->low, box->n * sizeof *low);
        memcpy(high, box->high, box->n * sizeof *high);
        *(upper ? &low[widest] : &high[widest]) = upper ? middle + 1 : middle;
        if (seek(self, &half))
            return true;
    }
    return false;
}

static mpl_status find(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_rng *rng, uint64_t high,
                       int64_t *value)
{
    mpl_status st = MPL_OK;
    mpl_box box = {0};
    seeker k = {exprs, rng, high, 100000, value};

    MPL_TRY(mpl_box_new(ctx, exprs, &box));
    if (!seek(&k, &box))
        MPL_FAIL(ctx, MPL_EINPUT,
                 k.boxes > 0 ? "no point of the ranges keeps the relations between them"
                             : "no point that keeps the relations was found");
out:
    mpl_box_free(ctx, &box);
    return st;
}

mpl_status mpl_point_corner(mpl_ctx *ctx, const mpl_exprs *exprs, uint64_t high, int64_t *value)
{
    return find(ctx, exprs, NULL, high, value);
}

mpl_status mpl_point_draw(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_rng *rng, int64_t *value)
{
    for (uint32_t attempt = 0; attempt < 64; attempt++) {
        for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++) {
            const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);
            uint64_t n = (uint64_t)((symbol->last - symbol->first) / symbol->step) + 1;

            value[i] = value_at(symbol, (int64_t)mpl_rng_below(rng, n));
        }
        if (mpl_point_allowed(exprs, value))
            return MPL_OK;
    }
    return find(ctx, exprs, rng, 0, value);
}

/* "batch=3, seq=17" after `head`; with another separator it is a request to the zoo. */
static mpl_status name_point(mpl_ctx *ctx, const mpl_exprs *exprs, const int64_t *value,
                             const char *head, const char *separator, char **text)
{
    size_t room = strlen(head) + 1, n;

    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++)
        room += strlen(mpl_exprs_symbol(exprs, i)->name) + 24;
    MPL_PASS(mpl_new(ctx, *text, room));
    n = (size_t)snprintf(*text, room, "%s", head);
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++)
        n += (size_t)snprintf(*text + n, room - n, "%s%s=%" PRId64, i > 0 ? separator : "",
                              mpl_exprs_symbol(exprs, i)->name, value[i]);
    return MPL_OK;
}

mpl_status mpl_point_text(mpl_ctx *ctx, const mpl_exprs *exprs, const int64_t *value, char **text)
{
    return name_point(ctx, exprs, value, "", ", ", text);
}

/* ---- graphs ---- */

static mpl_status open_graph(mpl_ctx *ctx, const char *text, const mpl_read_options *options,
                             mpl_graph **out)
{
    mpl_source source = {0};

    MPL_PASS(mpl_source_open(ctx, text, options, &source));
    if (source.graph == NULL) {
        mpl_source_fini(ctx, &source);
        return MPL_REFUSE(ctx, "%s is a list of buffers, which has no dimensions", mpl_shown(text));
    }
    *out = source.graph, source.graph = NULL;
    mpl_source_fini(ctx, &source);
    return MPL_OK;
}

static mpl_status open_file(mpl_ctx *ctx, const mpl_sym_source *source, const mpl_exprs *exprs,
                            const int64_t *value, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_read_options options = source->options != NULL ? *source->options : (mpl_read_options){0};
    uint32_t n = options.n_dims + mpl_exprs_n_symbols(exprs);
    const char **name = NULL;
    int64_t *size = NULL;

    MPL_TRY(mpl_new(ctx, name, n));
    MPL_TRY(mpl_new(ctx, size, n));
    for (uint32_t i = 0; i < options.n_dims; i++)
        name[i] = options.dim_name[i], size[i] = options.dim_value[i];
    for (uint32_t i = options.n_dims; i < n; i++) {
        name[i] = mpl_exprs_symbol(exprs, i - options.n_dims)->name;
        size[i] = value[i - options.n_dims];
    }
    options.n_dims = n, options.dim_name = name, options.dim_value = size;
    MPL_TRY(open_graph(ctx, source->text, &options, out));
out:
    mpl_free_each(ctx, name, size);
    return st;
}

mpl_status mpl_sym_open(mpl_ctx *ctx, void *arg, const mpl_exprs *exprs, const int64_t *value,
                        mpl_graph **out)
{
    mpl_status st = MPL_OK;
    const mpl_sym_source *source = arg;
    size_t n = strcspn(source->text, ":");
    char *head = NULL, *spec = NULL;

    if (mpl_zoo_find(source->text, n) == NULL)
        return open_file(ctx, source, exprs, value, out);
    MPL_TRY(mpl_new(ctx, head, strlen(source->text) + 2));
    sprintf(head, "%s%s", source->text, source->text[n] == '\0' ? ":" : ",");
    MPL_TRY(name_point(ctx, exprs, value, head, ",", &spec));
    MPL_TRY(open_graph(ctx, spec, NULL, out));
out:
    mpl_free_each(ctx, head, spec);
    return st;
}
