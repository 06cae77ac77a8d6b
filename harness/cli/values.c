/* values.c -- parses values of options and parameters. See values.h. */
#include "harness/cli/values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "graphs/core/size.h"

mpl_status mpl_strings_add(mpl_ctx *ctx, mpl_strings *list, const char *item)
{
    MPL_PASS(mpl_reserve(ctx, list->item, list->cap, (size_t)list->n + 1));
    list->item[list->n++] = item;
    return MPL_OK;
}

mpl_status mpl_strings_split(mpl_ctx *ctx, const char *text, const char *what, char **store,
                             mpl_strings *out)
{
    char *copy = mpl_strdup(ctx, text);

    if (copy == NULL)
        return MPL_EMEM;
    *store = copy;
    for (char *at = copy, *end; at != NULL; at = end) {
        end = strchr(at, ',');
        if (end != NULL)
            *end++ = '\0';
        if (*at == '\0')
            return MPL_REFUSE(ctx, "%s: an empty name in '%s'", what, text);
        MPL_PASS(mpl_strings_add(ctx, out, at));
    }
    return MPL_OK;
}

mpl_status mpl_parse_count(mpl_ctx *ctx, const char *what, const char *text, uint64_t min,
                           uint64_t max, uint64_t *out)
{
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value < min ||
        value > max)
        return MPL_REFUSE(ctx, "%s: '%s' is no whole number from %" PRIu64 " to %" PRIu64, what,
                          text, min, max);
    *out = value;
    return MPL_OK;
}

mpl_status mpl_parse_bytes(mpl_ctx *ctx, const char *what, const char *text, uint64_t *out)
{
    const char *end;
    uint64_t bytes;

    if (!mpl_size_read(text, &end, &bytes) || *end != '\0')
        return MPL_REFUSE(
            ctx, "%s: '%.100s' is no number of bytes (digits, then nothing, KiB, MiB or GiB)", what,
            text);
    *out = bytes;
    return MPL_OK;
}

mpl_status mpl_parse_percent(mpl_ctx *ctx, const char *what, const char *text, uint64_t *parts)
{
    char *end = NULL;
    double percent;

    *parts = 0;
    if (text == NULL)
        return MPL_OK;
    percent = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !isfinite(percent) || percent < 0 || percent > 1000)
        return MPL_REFUSE(
            ctx, "%s: '%s' is no percentage from 0%% to 1000%% with its sign, such as 0.5%%", what,
            text);
    *parts = (uint64_t)(percent * 10000 + 0.5);
    return MPL_OK;
}

mpl_status mpl_parse_dim(mpl_ctx *ctx, const char *text, size_t *name_bytes, uint64_t *value)
{
    *name_bytes = strcspn(text, "=");
    if (*name_bytes == 0 || text[*name_bytes] == '\0')
        return MPL_REFUSE(ctx, "--dim: '%.100s' is no NAME=N", text);
    return mpl_parse_count(ctx, "--dim", text + *name_bytes + 1, 1, INT32_MAX, value);
}

mpl_status mpl_params_parse(mpl_ctx *ctx, const char *what, const char *takes, const char *text,
                            mpl_params *out)
{
    mpl_status st = MPL_OK;
    mpl_params params = {0};
    mpl_strings parts = {0};

    takes = takes != NULL ? takes : "none";
    if (text != NULL && text[0] == '\0')
        MPL_FAIL(ctx, MPL_EINPUT, "%s: nothing follows the ':'; it takes: %s", what, takes);
    if (text != NULL)
        MPL_TRY(mpl_strings_split(ctx, text, what, &params.store, &parts));
    for (uint32_t i = 0; i < parts.n; i++) {
        char *part = params.store + (parts.item[i] - params.store), *cut = strchr(part, '=');

        if (cut == NULL || cut == part)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: '%s' is no key=value; it takes: %s", what, part, takes);
        *cut = '\0';
        MPL_TRY(mpl_strings_add(ctx, &params.key, part));
        MPL_TRY(mpl_strings_add(ctx, &params.value, cut + 1));
    }
    *out = params, params = (mpl_params){0};
out:
    mpl_free(ctx, parts.item);
    mpl_params_fini(ctx, &params);
    return st;
}

void mpl_params_fini(mpl_ctx *ctx, mpl_params *params)
{
    mpl_free_each(ctx, params->store, params->key.item, params->value.item);
    *params = (mpl_params){0};
}

int64_t mpl_seconds_ns(double seconds)
{
    return (int64_t)((seconds < 3e7 ? seconds : 3e7) * 1e9);
}

enum { MOST_STREAMS = 65536 };

mpl_status mpl_parse_safety(mpl_ctx *ctx, const char *what, const char *text, mpl_safety *out)
{
    static const mpl_safety plain[] = {MPL_SAFETY(serial), MPL_SAFETY(parallel)};
    static const char streams[] = "streams:";
    mpl_safety safety = {.kind = MPL_safety_streams};
    char number[sizeof safety.text];
    const char *rule;
    uint64_t n;

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(text, plain[i].text) == 0) {
            *out = plain[i];
            return MPL_OK;
        }
    if (strncmp(text, streams, sizeof streams - 1) != 0 || strlen(text) >= sizeof safety.text)
        return MPL_REFUSE(ctx, "%s is one of serial, parallel, streams:K[:RULE], not '%.100s'",
                          what, text);
    memcpy(safety.text, text, strlen(text));
    snprintf(number, sizeof number, "%s", text + sizeof streams - 1);
    number[strcspn(number, ":")] = '\0';
    rule = strchr(text + sizeof streams - 1, ':');
    if (rule != NULL && !mpl_stream_rule_find(rule + 1, &safety.rule))
        return MPL_REFUSE(ctx, "%s: no rule '%s' for streams; there are %s", what, rule + 1,
                          mpl_stream_rule_names());
    if (number[0] == '0')
        return MPL_REFUSE(ctx, "%s: '%s' is no number of streams, from 1 to %d", what, number,
                          MOST_STREAMS);
    MPL_PASS(mpl_parse_count(ctx, what, number, 1, MOST_STREAMS, &n));
    safety.n_streams = (uint32_t)n;
    *out = safety;
    return MPL_OK;
}
