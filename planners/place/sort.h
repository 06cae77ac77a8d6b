/* sort.h -- stable sorting of ids by 64-bit keys, for planners. Private to planners/. */
#ifndef MPL_SORT_H
#define MPL_SORT_H

#include "graphs/core/base.h"

/* Sorts id[n] so that key[id[i]] rises; ids with equal keys keep their places. Several keys: call
 * it once for each, the least important first. Starting from ascending ids, every tie therefore
 * ends in the id. O(n) for each byte in which keys differ, 32 n bytes of scratch. */
mpl_status mpl_sort_ids(mpl_ctx *ctx, uint32_t n, uint32_t *id, const uint64_t *key);

/* id[i] = i. */
void mpl_ids_ascending(uint32_t n, uint32_t *id);

#endif
