/* carried.h -- files of results/ that the program carries, as it does the suites: where it is
 * installed there is no project around. */
#ifndef MPL_CARRIED_H
#define MPL_CARRIED_H

#include "graphs/core/base.h"

/* "results/published.tsv": whether the program carries that file. */
bool mpl_is_carried(const char *path);
/* As mpl_file_read; what is not there and is carried is read as it was when the program was
 * built. */
mpl_status mpl_carried_read(mpl_ctx *ctx, const char *path, char **data, size_t *size);

#endif
