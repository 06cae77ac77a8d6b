/* scratch.h -- temporary folders of one call. The parent removes those of killed processes. */
#pragma once

#include "graphs/core/base.h"

#define MPL_SCRATCH_ROOM 280 /* of a path [byte] */

/* In a worker: keeps the path of this process's folder, one at a time, in told[MPL_SCRATCH_ROOM],
 * which the parent shares (mpl_share). */
void mpl_scratch_tell(char *told);
/* Makes a new folder; its path goes into folder[MPL_SCRATCH_ROOM]. MPL_EINPUT: cannot be made. */
mpl_status mpl_scratch_new(mpl_ctx *ctx, char *folder);
/* Removes the folder and its contents, if there is one; folder becomes "". */
void mpl_scratch_remove(char *folder);
