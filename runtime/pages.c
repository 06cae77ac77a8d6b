/* pages.c -- pages of memory. See machine.h. libmemplan has this file without machine.c: its pages
 * are bound to no node. */
#include "runtime/machine.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma weak mpl_pages_bind

mpl_status mpl_pages_new(mpl_ctx *ctx, uint64_t bytes, void **base)
{
    mpl_status st;
    void *pages;

    if (bytes > SIZE_MAX - (uint64_t)sysconf(_SC_PAGESIZE))
        return MPL_ERROR(ctx, MPL_EMEM, "out of memory: %" PRIu64 " bytes of pages", bytes);
    pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return MPL_ERROR(ctx, MPL_EMEM, "out of memory: %" PRIu64 " bytes of pages: %s", bytes,
                         strerror(errno));
    if (mpl_pages_bind != NULL && (st = mpl_pages_bind(ctx, pages, bytes)) != MPL_OK) {
        munmap(pages, bytes);
        return st;
    }
    /* A huge page would make untouched neighbours resident. May fail: not all kernels have them. */
    (void)madvise(pages, bytes, MADV_NOHUGEPAGE);
    *base = pages;
    return MPL_OK;
}

void mpl_pages_free(void *base, uint64_t bytes)
{
    if (base != NULL)
        munmap(base, bytes);
}

mpl_status mpl_pages_resident(mpl_ctx *ctx, const void *base, uint64_t bytes, uint64_t *resident)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = 0;
    uintptr_t at = (uintptr_t)base & ~(uintptr_t)(page - 1), end = (uintptr_t)base + bytes;
    unsigned char in_core[4096];

    while (at < end) {
        size_t pages = (size_t)mpl_min_u64((end - at + page - 1) / page, sizeof in_core);

        if (mincore((void *)at, pages * page, in_core) != 0)
            return MPL_ERROR(ctx, MPL_EUNAVAIL, "the system does not tell resident pages: %s",
                             strerror(errno));
        for (size_t i = 0; i < pages; i++)
            n += in_core[i] & 1;
        at += pages * page;
    }
    *resident = n * page;
    return MPL_OK;
}
