/* file.h -- reads and writes whole files. */
#pragma once

#include "graphs/core/base.h"

/* Reads all of `path` and appends a zero byte. Caller frees *data (mpl_free). MPL_EINPUT: the file
 * cannot be opened or read, is a folder, or is a device without an end. */
mpl_status mpl_file_read(mpl_ctx *ctx, const char *path, char **data, size_t *size);

/* Folder for temporary files: TMPDIR if it is a writable absolute path of at most 200 plain
 * characters (it is used in scripts and shell commands), else the system's. Do not free. */
const char *mpl_temporary_folder(void);

/* A file that appears whole or not at all. Data goes to a temporary file beside `path`;
 * mpl_file_commit renames it once every byte is on disk. Terminals, pipes and other special files
 * are written directly. */
typedef struct mpl_new_file {
    FILE *stream;
    char *path;
    char *temporary; /* NULL: written directly */
} mpl_new_file;

/* MPL_EINPUT: cannot be created. */
mpl_status mpl_file_begin(mpl_ctx *ctx, const char *path, mpl_new_file *file);
/* MPL_EINPUT: the disk is full or renaming failed; mpl_file_end is still required. */
mpl_status mpl_file_commit(mpl_ctx *ctx, mpl_new_file *file);
/* Frees; removes the temporary file unless committed. Accepts a zeroed struct. */
void mpl_file_end(mpl_ctx *ctx, mpl_new_file *file);
