/* carried.h -- files of results/ built into the program, for installations without the project. */
#pragma once

#include "graphs/core/base.h"

/* Whether the program carries that file, such as "results/published.tsv". */
bool mpl_is_carried(const char *path);
/* Like mpl_file_read. An absent file is read from the copy carried by the program, if any. */
mpl_status mpl_carried_read(mpl_ctx *ctx, const char *path, char **data, size_t *size);
