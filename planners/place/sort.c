/* sort.c -- least-significant-byte radix sort of ids. See sort.h. */
#include "planners/place/sort.h"

typedef struct entry {
    uint64_t key;
    uint32_t id;
} entry;

void mpl_ids_ascending(uint32_t n, uint32_t *id)
{
    for (uint32_t i = 0; i < n; i++)
        id[i] = i;
}

/* One pass by the byte at `shift`, from `a` to `b`. */
static void pass(uint32_t n, const entry *a, entry *b, unsigned shift)
{
    uint32_t begin[256] = {0}, at = 0;

    for (uint32_t i = 0; i < n; i++)
        begin[a[i].key >> shift & 255]++;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t count = begin[byte];

        begin[byte] = at;
        at += count;
    }
    for (uint32_t i = 0; i < n; i++)
        b[begin[a[i].key >> shift & 255]++] = a[i];
}

mpl_status mpl_sort_ids(mpl_ctx *ctx, uint32_t n, uint32_t *id, const uint64_t *key)
{
    mpl_status st = MPL_OK;
    entry *a = NULL, *b = NULL;
    uint64_t differ = 0;

    MPL_TRY(mpl_new_each(ctx, n, a, b));
    for (uint32_t i = 0; i < n; i++) {
        a[i] = (entry){.key = key[id[i]], .id = id[i]};
        differ |= a[i].key ^ a[0].key;
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        entry *sorted = b;

        if ((differ >> shift & 255) == 0)
            continue;
        pass(n, a, b, shift);
        b = a;
        a = sorted;
    }
    for (uint32_t i = 0; i < n; i++)
        id[i] = a[i].id;
out:
    mpl_free_each(ctx, a, b);
    return st;
}
