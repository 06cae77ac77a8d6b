/* values.h -- what texts of options and parameters say: lists, numbers, "key=value,..". */
#ifndef MPL_VALUES_H
#define MPL_VALUES_H

#include "graphs/core/base.h"

typedef struct mpl_strings {
    uint32_t n;
    size_t cap;
    const char **item;
} mpl_strings;

mpl_status mpl_strings_add(mpl_ctx *ctx, mpl_strings *list, const char *item);
/* "a,b,c" cut at commas, in a copy that `store` owns; empty parts are MPL_EINPUT. */
mpl_status mpl_strings_split(mpl_ctx *ctx, const char *text, const char *what, char **store,
                             mpl_strings *out);

/* "key=value,..", of a planner or an order. */
typedef struct mpl_params {
    char *store; /* owned: what the strings point into */
    mpl_strings key, value;
} mpl_params;

/* The text of `what` ("planner pool") after its ':'; NULL: there is none. MPL_EINPUT: an empty text
 * or a part without '='; the message says what it takes (NULL: nothing). */
mpl_status mpl_params_parse(mpl_ctx *ctx, const char *what, const char *takes, const char *text,
                            mpl_params *out);
void mpl_params_fini(mpl_ctx *ctx, mpl_params *params);

/* A whole number in [min, max], all of `text`. MPL_EINPUT names `what`, here and below. */
mpl_status mpl_parse_count(mpl_ctx *ctx, const char *what, const char *text, uint64_t min,
                           uint64_t max, uint64_t *out);
/* A whole number of bytes; KiB, MiB or GiB may follow. */
mpl_status mpl_parse_bytes(mpl_ctx *ctx, const char *what, const char *text, uint64_t *out);
/* "0.5%" as parts of a million, at most 10^7; NULL: none. */
mpl_status mpl_parse_percent(mpl_ctx *ctx, const char *what, const char *text, uint64_t *parts);
/* "NAME=N": NAME has *name_bytes. */
mpl_status mpl_parse_dim(mpl_ctx *ctx, const char *text, size_t *name_bytes, uint64_t *value);

/* Nanoseconds, of at most a year: later clocks cannot overflow. */
int64_t mpl_seconds_ns(double seconds);

#endif
