/* file.h -- whole files in, whole files out. */
#ifndef MPL_FILE_H
#define MPL_FILE_H

#include "graphs/core/base.h"

/* Reads all of `path`; a zero byte stands behind the contents. *data is the caller's (mpl_free).
 * MPL_EINPUT: cannot be opened or read, is a folder, or a device that does not end. */
mpl_status mpl_file_read(mpl_ctx *ctx, const char *path, char **data, size_t *size);

/* Where temporary files go: TMPDIR where it is an absolute path of at most 200 plain characters (it
 * stands in scripts and in commands of the shell) of a folder that can be written, else the
 * system's own folder. Not to be freed. */
const char *mpl_temporary_folder(void);

/* A file that appears whole or not at all: what is written goes to a temporary file beside `path`,
 * and mpl_file_commit renames it once every byte is on the disk. What is no regular file (a
 * terminal, a pipe) is written directly. */
typedef struct mpl_new_file {
    FILE *stream;
    char *path;
    char *temporary; /* NULL: written directly */
} mpl_new_file;

/* MPL_EINPUT: cannot be created. */
mpl_status mpl_file_begin(mpl_ctx *ctx, const char *path, mpl_new_file *file);
/* MPL_EINPUT: the disk is full, or renaming failed; mpl_file_end is still needed. */
mpl_status mpl_file_commit(mpl_ctx *ctx, mpl_new_file *file);
/* Frees; removes the temporary file if nothing was committed. A zeroed struct is allowed. */
void mpl_file_end(mpl_ctx *ctx, mpl_new_file *file);

#endif
