/* import_priv.h -- helpers of the readers: lines, numbers, names, lists of buffers as plans. */
#ifndef MPL_IMPORT_PRIV_H
#define MPL_IMPORT_PRIV_H

#include "planners/import/import.h"

#define IMPORT(name, about)                                                                        \
    bool mpl_import_is_##name(const mpl_import_in *in);                                            \
    mpl_status mpl_import_read_##name(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out);
#include "planners/import/imports.def"
#undef IMPORT

/* A cursor over the lines of a text, without blanks at both ends of a line. */
typedef struct mpl_lines {
    const char *at, *end;
    uint32_t number; /* of the line, from 1 */
    const char *text;
    size_t n;
} mpl_lines;

mpl_lines mpl_lines_of(const char *text, size_t size);
bool mpl_lines_next(mpl_lines *lines);
/* The position after the first `key` of the line; NULL: no such key. */
const char *mpl_lines_find(const mpl_lines *lines, const char *key);
/* Reads a number in [at, end). Returns the position after it; NULL: no digit, or 2^63 or more. */
const char *mpl_digits(const char *at, const char *end, uint64_t *out);
/* Reads the number after `key` and blanks. MPL_EINPUT names path, line and key. */
mpl_status mpl_lines_value(mpl_ctx *ctx, const char *path, const mpl_lines *lines, const char *key,
                           uint64_t *out);
bool mpl_text_has(const char *text, size_t size, const char *what);
/* The first character that is no blank; zero if there is none. */
char mpl_text_first(const char *text, size_t size);

/* A map from keys to numbers; keys point into the text being read. */
typedef struct mpl_names {
    size_t n, n_slots;
    struct {
        const char *text;
        size_t n;
        uint64_t value;
    } * slot;
} mpl_names;

/* *old: UINT64_MAX if the key is new, else its value, which it keeps. */
mpl_status mpl_names_add(mpl_ctx *ctx, mpl_names *names, const char *key, size_t n, uint64_t value,
                         uint64_t *old);
/* UINT64_MAX: not found. */
uint64_t mpl_names_get(const mpl_names *names, const char *key, size_t n);

/* A buffer as read. Times may be sparse; blocks are dense ids, or all MPL_NONE: one arena. Offsets
 * count from the base of the buffer's pool. */
typedef struct mpl_import_buffer {
    char *name;
    uint64_t bytes, offset, birth, death;
    uint32_t block;
    uint32_t align; /* 0: 1 byte */
    uint32_t pool;  /* of mpl_import_pool; 0 where a format has one memory */
} mpl_import_buffer;

enum { MPL_IMPORT_POOLS = 64 };
typedef struct mpl_import_list {
    uint32_t n;
    bool may_be_empty; /* a plan of nothing is a plan */
    size_t cap;
    mpl_import_buffer *item;
    uint32_t n_pools;
    uint64_t pool_label[MPL_IMPORT_POOLS]; /* the producer's number of each memory */
} mpl_import_list;

/* The pool of the producer's memory `label`; each new label adds one. MPL_EINPUT: too many. */
mpl_status mpl_import_pool(mpl_ctx *ctx, const char *path, mpl_import_list *list, uint64_t label,
                           uint32_t *pool);
/* The largest power of two up to `most` that divides all offsets: what an allocator that rounds
 * them must have kept to at least. */
uint32_t mpl_import_alignment(const mpl_import_list *list, uint32_t most);

/* Copies the n characters of the name; control characters become '?'. */
mpl_status mpl_import_add(mpl_ctx *ctx, mpl_import_list *list, const mpl_import_buffer *buffer,
                          const char *name, size_t n);
/* Turns the list into out->problem (sparse times become their ranks) and out->plan. MPL_EINPUT: no
 * buffer. */
mpl_status mpl_import_make(mpl_ctx *ctx, const mpl_import_in *in, const mpl_import_list *list,
                           mpl_import *out);
void mpl_import_list_fini(mpl_ctx *ctx, mpl_import_list *list);

#endif
