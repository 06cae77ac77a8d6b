/* sort.h -- stable sorting of ids by 64-bit keys, for planners. Private to planners/. */
#pragma once

#include "graphs/core/base.h"

/* Sorts id[n] by key[id[i]], ascending and stable. For several keys, call it for each, the least
 * important first. From ascending ids, every tie ends in the id. O(n) for each byte in which keys
 * differ, 32 n bytes of scratch. */
mpl_status mpl_sort_ids(mpl_ctx *ctx, uint32_t n, uint32_t *id, const uint64_t *key);

/* Sets id[i] = i. */
void mpl_ids_ascending(uint32_t n, uint32_t *id);
