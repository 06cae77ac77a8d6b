/* import_priv.h -- what readers of plans share: lines, numbers in them, names, and lists of buffers
 * that become a plan. */
#ifndef MPL_IMPORT_PRIV_H
#define MPL_IMPORT_PRIV_H

#include "planners/import/import.h"

#define IMPORT(name, about)                                                                        \
    bool mpl_import_is_##name(const mpl_import_in *in);                                            \
    mpl_status mpl_import_read_##name(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out);
#include "planners/import/imports.def"
#undef IMPORT

/* A cursor over the lines of a text; blanks at both ends of a line are cut off. */
typedef struct mpl_lines {
    const char *at, *end;
    uint32_t number; /* of the line, from 1 */
    const char *text;
    size_t n;
} mpl_lines;

mpl_lines mpl_lines_of(const char *text, size_t size);
bool mpl_lines_next(mpl_lines *lines);
/* Just behind the first `key` of the line; NULL: it has none. */
const char *mpl_lines_find(const mpl_lines *lines, const char *key);
/* Digits from `at` up to `end` as a number; behind them, or NULL: no digit there, or 2^63 and
 * more. */
const char *mpl_digits(const char *at, const char *end, uint64_t *out);
/* The number that stands behind `key` in the line, blanks between. MPL_EINPUT naming path, line and
 * key. */
mpl_status mpl_lines_value(mpl_ctx *ctx, const char *path, const mpl_lines *lines, const char *key,
                           uint64_t *out);
bool mpl_text_has(const char *text, size_t size, const char *what);
/* The first character that is no blank, zero where there is none. */
char mpl_text_first(const char *text, size_t size);

/* Keys to numbers; keys point into the text that is read. */
typedef struct mpl_names {
    size_t n, n_slots;
    struct {
        const char *text;
        size_t n;
        uint64_t value;
    } * slot;
} mpl_names;

/* *old is UINT64_MAX where the key is new, else the value that it had, and keeps. */
mpl_status mpl_names_add(mpl_ctx *ctx, mpl_names *names, const char *key, size_t n, uint64_t value,
                         uint64_t *old);
/* UINT64_MAX: it is not there. */
uint64_t mpl_names_get(const mpl_names *names, const char *key, size_t n);

/* Buffers as they are read. Times may be sparse; blocks are dense ids, or all MPL_NONE: one
 * arena. */
typedef struct mpl_import_buffer {
    char *name;
    uint64_t bytes, offset, birth, death;
    uint32_t block;
} mpl_import_buffer;

typedef struct mpl_import_list {
    uint32_t n;
    size_t cap;
    mpl_import_buffer *item;
} mpl_import_list;

/* Takes a copy of the n characters of the name; control characters become '?'. */
mpl_status mpl_import_add(mpl_ctx *ctx, mpl_import_list *list, const mpl_import_buffer *buffer,
                          const char *name, size_t n);
/* The list as out->problem (alignment 1, times renumbered to their ranks where they are far apart)
 * and out->plan. MPL_EINPUT: no buffer. */
mpl_status mpl_import_make(mpl_ctx *ctx, const mpl_import_in *in, const mpl_import_list *list,
                           mpl_import *out);
void mpl_import_list_fini(mpl_ctx *ctx, mpl_import_list *list);

#endif
