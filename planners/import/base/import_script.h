/* import_script.h -- programs as text that say where their tensors lie: which statement needs which
 * buffer is read off the names in it. */
#ifndef MPL_IMPORT_SCRIPT_H
#define MPL_IMPORT_SCRIPT_H

#include "planners/import/base/import_priv.h"

typedef struct mpl_script {
    mpl_ctx *ctx;
    const char *path;
    mpl_lines lines;
    uint64_t step; /* of the current statement */
    mpl_names names;
    mpl_names tuples; /* names of several things: characters from where they stand to lines.end */
    mpl_import_list list; /* a buffer that nothing has needed yet has birth UINT64_MAX */
    /* Pools, each a block of its size. */
    mpl_names pools;
    uint32_t n_blocks;
    size_t block_cap;
    uint64_t *block_bytes; /* [n_blocks] */
} mpl_script;

/* The name that the current line gives to what stands behind the first '=', which *rest receives;
 * NULL: it is no such line. */
const char *mpl_script_assigned(const mpl_script *script, size_t *n, const char **rest);
/* Text behind `key` in [at, end); NULL: not there. */
const char *mpl_script_after(const char *at, const char *end, const char *key);
/* Bytes of a tensor: the numbers between the first brackets `open` and `close` behind `at` are its
 * dims, the first word in quotes or behind "torch." its type (float32: 4 bytes). MPL_EINPUT: a dim
 * is no number. */
mpl_status mpl_script_tensor_bytes(const mpl_script *script, const char *at, char open, char close,
                                   uint64_t *bytes);
/* Adds a pool. */
mpl_status mpl_script_pool(mpl_script *script, const char *name, size_t n, uint64_t bytes);
/* Adds a buffer at an offset of a pool; the name is its own. */
mpl_status mpl_script_buffer(mpl_script *script, const char *name, size_t n, uint32_t block,
                             uint64_t offset, uint64_t bytes);
/* Lets `name` stand for what `of` does; of other things nothing is kept. */
mpl_status mpl_script_alias(mpl_script *script, const char *name, size_t n, uint64_t buffer);
/* Lets `name` stand for the tuple whose items' names stand in the line from `items` on. */
mpl_status mpl_script_tuple(mpl_script *script, const char *name, size_t n, const char *items);
/* Item k of a tuple, as mpl_script_first; UINT64_MAX too where there is no such tuple. */
uint64_t mpl_script_item(const mpl_script *script, const char *tuple, size_t n, uint64_t k);
/* The buffer that the first name in [at, end) stands for; UINT64_MAX: none. */
uint64_t mpl_script_first(const mpl_script *script, const char *at, const char *end);
/* The current statement needs every buffer that is named in [at, end), items of tuples among them.
 */
void mpl_script_needs(mpl_script *script, const char *at, const char *end);
/* Puts the pools end to end at multiples of `align`, and makes the problem and the plan. */
mpl_status mpl_script_make(mpl_script *script, const mpl_import_in *in, uint32_t align,
                           mpl_import *out);
void mpl_script_fini(mpl_script *script);

#endif
