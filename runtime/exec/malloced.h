/* malloced.h -- a run without a plan: each buffer is allocated at its birth and freed at its death.
 * The baseline for the time of a planned arena. */
#pragma once

#include "runtime/exec.h"

typedef struct mpl_malloced mpl_malloced;

/* Made from an executor of a plan, which must outlive it and must not run meanwhile. It runs the
 * same prepared operations and copies. Only the buffers of pool 0 come from posix_memalign, aligned
 * as the backend asks; a family is one allocation. Weights, pinned values and workspaces in a pool
 * of their own stay. MPL_EUNAVAIL: control flow, --checked, inputs in the arena, or a backend with
 * allocators of its own (mpl_backend.replay). O(n^2) in the plan's buffers. */
mpl_status mpl_malloced_new(mpl_ctx *ctx, mpl_exec *exec, mpl_malloced **out);
void mpl_malloced_free(mpl_ctx *ctx, mpl_malloced *malloced); /* NULL is allowed */

/* One run. *ns is as in mpl_exec_run and includes the allocation calls. Afterwards all memory is
 * freed and the executor is as before. MPL_EMEM. */
mpl_status mpl_malloced_run(mpl_malloced *malloced, int64_t *ns);

/* Allocations and frees in one run, and the peak of bytes requested at once [byte]. */
void mpl_malloced_facts(const mpl_malloced *malloced, uint32_t *n_calls, uint64_t *peak_bytes);
