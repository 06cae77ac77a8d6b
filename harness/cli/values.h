/* values.h -- parses values of options and parameters: lists, numbers, "key=value,..". */
#pragma once

#include "graphs/orders/op_streams.h"

typedef struct mpl_strings {
    uint32_t n;
    size_t cap;
    const char **item;
} mpl_strings;

mpl_status mpl_strings_add(mpl_ctx *ctx, mpl_strings *list, const char *item);
/* Cuts "a,b,c" at commas, in a copy that `store` owns. MPL_EINPUT: an empty part. */
mpl_status mpl_strings_split(mpl_ctx *ctx, const char *text, const char *what, char **store,
                             mpl_strings *out);

/* "key=value,.." of a planner or an order. */
typedef struct mpl_params {
    char *store; /* owned: the strings point into it */
    mpl_strings key, value;
} mpl_params;

/* Parses the text after the ':' of `what` ("planner pool"); NULL: none. MPL_EINPUT: an empty text
 * or a part without '='; the message names what it takes (NULL: nothing). */
mpl_status mpl_params_parse(mpl_ctx *ctx, const char *what, const char *takes, const char *text,
                            mpl_params *out);
void mpl_params_fini(mpl_ctx *ctx, mpl_params *params);

/* A whole number in [min, max] that takes up all of `text`. Messages of MPL_EINPUT name `what`,
 * here and below. */
mpl_status mpl_parse_count(mpl_ctx *ctx, const char *what, const char *text, uint64_t min,
                           uint64_t max, uint64_t *out);
/* A whole number of bytes, optionally followed by KiB, MiB or GiB. */
mpl_status mpl_parse_bytes(mpl_ctx *ctx, const char *what, const char *text, uint64_t *out);
/* "0.5%" in millionths, at most 10^7; NULL: none. */
mpl_status mpl_parse_percent(mpl_ctx *ctx, const char *what, const char *text, uint64_t *parts);
/* "NAME=N"; *name_bytes is the length of NAME. */
mpl_status mpl_parse_dim(mpl_ctx *ctx, const char *text, size_t *name_bytes, uint64_t *value);

/* Nanoseconds, at most a year, so that sums of clocks cannot overflow. */
int64_t mpl_seconds_ns(double seconds);

/* A safety: serial, parallel or streams:K[:RULE]. */
typedef enum mpl_safety_kind {
    MPL_safety_serial,
    MPL_safety_streams,
    MPL_safety_parallel
} mpl_safety_kind;
typedef struct mpl_safety {
    char text[40]; /* as given, zero behind it */
    mpl_safety_kind kind;
    uint32_t n_streams;
    mpl_stream_rule rule;
} mpl_safety;
#define MPL_SAFETY(word)                                                                           \
    {                                                                                              \
        .text = #word, .kind = MPL_safety_##word                                                   \
    }

/* MPL_EINPUT: none of these, no such rule, or K is not from 1 to 65536. */
mpl_status mpl_parse_safety(mpl_ctx *ctx, const char *what, const char *text, mpl_safety *out);
