/* malloced.h -- a run as programs without a plan do it: one call for memory for each buffer when it
 * is born, one to give it back when it is dead. What a planned arena's time is compared with. */
#ifndef MPL_MALLOCED_H
#define MPL_MALLOCED_H

#include "runtime/exec.h"

typedef struct mpl_malloced mpl_malloced;

/* For an executor of a plan, which must outlive it and lies still meanwhile. The same operations,
 * prepared once, with the same copies; only the buffers of pool 0 (families, whose parts lie in one
 * another, as one) come from posix_memalign, aligned as the backend asks. Weights, pinned values
 * and workspaces of their own pool stay. MPL_EUNAVAIL: control flow, --checked, inputs in the
 * arena, or a backend with allocators of its own (mpl_backend.replay). O(n^2) in the plan's
 * buffers. */
mpl_status mpl_malloced_new(mpl_ctx *ctx, mpl_exec *exec, mpl_malloced **out);
void mpl_malloced_free(mpl_ctx *ctx, mpl_malloced *m); /* NULL is allowed */

/* One run; *ns as by mpl_exec_run, the calls for memory in it. Everything is given back, and the
 * executor as it was. MPL_EMEM. */
mpl_status mpl_malloced_run(mpl_malloced *m, int64_t *ns);

/* Calls for memory in one run, and the most that is asked for at once. [byte] */
void mpl_malloced_facts(const mpl_malloced *m, uint32_t *n_calls, uint64_t *peak_bytes);

#endif
