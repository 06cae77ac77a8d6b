/* registry.c -- the list of networks, and building one from "name:key=value,..". */
#include "graphs/zoo/zoo_priv.h"

#define ZOO(name) extern const mpl_zoo_entry mpl_zoo_##name;
#include "graphs/zoo/zoo.def"
#undef ZOO

const mpl_zoo_entry *const mpl_zoo[] = {
#define ZOO(name) &mpl_zoo_##name,
#include "graphs/zoo/zoo.def"
#undef ZOO
    NULL,
};

const mpl_zoo_entry *mpl_zoo_find(const char *name, size_t n)
{
    for (size_t i = 0; mpl_zoo[i] != NULL; i++)
        if (strlen(mpl_zoo[i]->name) == n && memcmp(mpl_zoo[i]->name, name, n) == 0)
            return mpl_zoo[i];
    return NULL;
}

/* "batch, image, classes" into text[size], cut where it ends. */
static const char *list_params(const mpl_zoo_entry *entry, char *text, size_t size)
{
    size_t at = 0;

    for (const mpl_zoo_param *p = entry->params; p->key != NULL && at < size; p++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", p == entry->params ? "" : ", ", p->key);
    return text;
}

/* A decimal number of n characters, with a minus or without. */
static bool parse_number(const char *text, size_t n, int64_t *out)
{
    bool minus = n > 0 && text[0] == '-';
    int64_t number = 0;

    if (n == (size_t)minus || n > 18u + minus)
        return false;
    for (size_t i = minus; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = 10 * number + (text[i] - '0');
    }
    *out = minus ? -number : number;
    return true;
}

static mpl_status parse_value(mpl_ctx *ctx, const mpl_zoo_entry *entry, const mpl_zoo_param *p,
                              const char *text, size_t n, int64_t *out)
{
    mpl_status st = MPL_OK;

    if (p->choices != NULL) {
        for (int64_t i = 0; i <= p->max; i++)
            if (strlen(p->choices[i]) == n && memcmp(p->choices[i], text, n) == 0)
                return *out = i, MPL_OK;
        MPL_FAIL(ctx, MPL_EINPUT, "%s: '%.*s' is none of the words for '%s'; the default is '%s'",
                 entry->name, (int)(n < 64 ? n : 64), text, p->key, p->choices[p->otherwise]);
    }
    if (!parse_number(text, n, out) || *out < p->min || *out > p->max)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s=%.*s is no number from %" PRId64 " to %" PRId64, entry->name,
                 p->key, (int)(n < 64 ? n : 64), text, p->min, p->max);
out:
    return st;
}

/* One "key=value" of n characters. */
static mpl_status parse_param(mpl_ctx *ctx, const char *text, size_t n, mpl_zoo_args *args, bool *seen)
{
    mpl_status st = MPL_OK;
    const mpl_zoo_param *params = args->entry->params;
    const char *mark = memchr(text, '=', n);
    size_t n_key = mark != NULL ? (size_t)(mark - text) : n;
    char list[200];
    uint32_t i = 0;

    while (params[i].key != NULL &&
           (strlen(params[i].key) != n_key || memcmp(params[i].key, text, n_key) != 0))
        i++;
    if (mark == NULL || params[i].key == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: '%.*s' is no parameter; write key=value with one of %s",
                 args->entry->name, (int)(n < 64 ? n : 64), text,
                 list_params(args->entry, list, sizeof list));
    if (seen[i])
        MPL_FAIL(ctx, MPL_EINPUT, "%s: parameter '%s' is given twice", args->entry->name, params[i].key);
    seen[i] = true;
    MPL_TRY(parse_value(ctx, args->entry, &params[i], mark + 1, n - n_key - 1, &args->value[i]));
out:
    return st;
}

mpl_status mpl_zoo_build(mpl_ctx *ctx, const char *spec, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    size_t n = strcspn(spec, ":");
    mpl_zoo_args args = {.entry = mpl_zoo_find(spec, n)};
    bool seen[MPL_ZOO_MAX_PARAMS] = {false};
    const char *at = spec + n;

    if (args.entry == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "no network '%.*s' in the zoo; 'memplan list graphs' shows those there are",
                 (int)(n < 100 ? n : 100), spec);
    for (uint32_t i = 0; args.entry->params[i].key != NULL; i++)
        args.value[i] = args.entry->params[i].otherwise;
    while (*at != '\0') { /* at a colon or a comma */
        n = strcspn(at + 1, ",");
        MPL_TRY(parse_param(ctx, at + 1, n, &args, seen));
        at += 1 + n;
    }
    MPL_TRY(args.entry->build(ctx, &args, out));
out:
    return st;
}
