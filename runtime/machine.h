/* machine.h -- facts of the machine (hwloc), memory bound to a NUMA node, resident pages. */
#pragma once

#include "graphs/core/base.h"

typedef struct mpl_machine {
    char host[128]; /* hash of the host's name: rows can be compared, the name is not published */
    char cpu[128];  /* model */
    char isa[32];   /* widest vector set: "avx512", "avx2", .. */
    char os[64];
    uint32_t n_cores, n_threads, n_nodes; /* usable cores, hardware threads, NUMA nodes */
    uint64_t memory_bytes;
    uint32_t page_bytes;
    bool binds_memory; /* pages can be bound to a node */
} mpl_machine;

/* MPL_EUNAVAIL: the system does not report them. */
mpl_status mpl_machine_get(mpl_ctx *ctx, mpl_machine *out);

/* Binds this process to the index-th of n shares of the usable cores; n is at most their number.
 * Does nothing where the system forbids binding. */
void mpl_bind_cores(uint32_t index, uint32_t n);

/* The same for the calling thread and the cores that it may run on; if n is above their number,
 * some have the same one. */
void mpl_bind_share(uint32_t index, uint32_t n);
/* Cores that the calling thread may run on. */
uint32_t mpl_cores_here(void);

/* Binds the calling thread to the index-th usable core. Does nothing if there is no such core or
 * the system forbids binding. */
void mpl_bind_thread(uint32_t index);

/* Binds untouched pages to the node of the calling thread, where the system can. MPL_EUNAVAIL: the
 * machine is not known. */
mpl_status mpl_pages_bind(mpl_ctx *ctx, void *base, uint64_t bytes);
/* Binds them to the next other node, where there is one. */
mpl_status mpl_pages_bind_far(mpl_ctx *ctx, void *base, uint64_t bytes);
/* Zeroed pages on the node of the calling thread: page-aligned, not resident yet, never huge. bytes
 * > 0. */
mpl_status mpl_pages_new(mpl_ctx *ctx, uint64_t bytes, void **base);
void mpl_pages_free(void *base, uint64_t bytes);
/* Bytes of resident pages in [base, base + bytes). */
mpl_status mpl_pages_resident(mpl_ctx *ctx, const void *base, uint64_t bytes, uint64_t *resident);
/* Peak resident set of this process so far [byte]. */
uint64_t mpl_rss_peak(void);
