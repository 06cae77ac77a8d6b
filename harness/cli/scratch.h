/* scratch.h -- folders for the files of one call: they go even where the process that made them is
 * killed, by its parent. */
#ifndef MPL_SCRATCH_H
#define MPL_SCRATCH_H

#include "graphs/core/base.h"

#define MPL_SCRATCH_ROOM 280 /* of a path [byte] */

/* In a worker: from now on the folder that this process uses, one at a time, stands in
 * told[MPL_SCRATCH_ROOM], which its parent shares (mpl_share). */
void mpl_scratch_tell(char *told);
/* A new folder, its path into folder[MPL_SCRATCH_ROOM]. MPL_EINPUT: it cannot be made. */
mpl_status mpl_scratch_new(mpl_ctx *ctx, char *folder);
/* Removes it with all that is in it, if there is one; folder becomes "". */
void mpl_scratch_remove(char *folder);

#endif
