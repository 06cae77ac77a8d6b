/* rows.c -- files of rows. See rows.h. */
#include "harness/rows/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

mpl_status mpl_rows_take(mpl_ctx *ctx, mpl_rows *rows, mpl_record **row)
{
    MPL_PASS(mpl_reserve(ctx, rows->row, rows->cap, (size_t)rows->n + 1));
    rows->row[rows->n++] = *row;
    *row = NULL;
    return MPL_OK;
}

void mpl_rows_fini(mpl_ctx *ctx, mpl_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++)
        mpl_record_free(ctx, rows->row[i]);
    mpl_free(ctx, rows->row);
    memset(rows, 0, sizeof *rows);
}

static mpl_status check_schema(mpl_ctx *ctx, const char *where, const mpl_record *row)
{
    uint64_t schema;

    if (mpl_record_get_int(row, MPL_FIELD_schema, &schema) && schema > MPL_ROW_SCHEMA)
        return MPL_REFUSE(ctx,
                          "%s: a row of schema %" PRIu64
                          "; this memplan reads up to %d: a newer one is needed",
                          where, schema, MPL_ROW_SCHEMA);
    return MPL_OK;
}

mpl_status mpl_rows_each(mpl_ctx *ctx, const char *path, mpl_row_take *take, void *arg)
{
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    char *line = NULL, where[300];
    size_t cap = 0;
    ssize_t n;
    uint32_t number = 0;
    FILE *f = fopen(path, "r");

    if (f == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s", path, strerror(errno));
    while ((n = getline(&line, &cap, f)) > 0) {
        number++;
        if (strspn(line, " \t\r\n") == (size_t)n)
            continue;
        snprintf(where, sizeof where, "%s:%" PRIu32, path, number);
        MPL_TRY(mpl_record_read(ctx, where, line, (size_t)n, &row));
        MPL_TRY(check_schema(ctx, where, row));
        MPL_TRY(take(arg, number, &row));
        mpl_record_free(ctx, row);
        row = NULL;
    }
    if (ferror(f))
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s", path, strerror(errno));
out:
    mpl_record_free(ctx, row);
    free(line);
    if (f != NULL)
        fclose(f);
    return st;
}

typedef struct collection {
    mpl_ctx *ctx;
    mpl_rows *rows;
} collection;

static mpl_status collect(void *arg, uint32_t line, mpl_record **row)
{
    collection *c = arg;

    (void)line;
    return mpl_rows_take(c->ctx, c->rows, row);
}

mpl_status mpl_rows_read(mpl_ctx *ctx, const char *path, mpl_rows *rows)
{
    collection c = {ctx, rows};

    return mpl_rows_each(ctx, path, collect, &c);
}

mpl_status mpl_folders_make(mpl_ctx *ctx, const char *path)
{
    mpl_status st = MPL_OK;
    char *copy = mpl_strdup(ctx, path);

    if (copy == NULL)
        return MPL_EMEM;
    for (char *c = copy + 1; copy[0] != '\0' && *c != '\0'; c++) {
        if (*c != '/')
            continue;
        *c = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: cannot make the folder: %s", copy, strerror(errno));
        *c = '/';
    }
out:
    mpl_free(ctx, copy);
    return st;
}

/* Cuts off everything after the last newline. */
static mpl_status repair(mpl_ctx *ctx, mpl_row_file *file)
{
    off_t size = lseek(file->fd, 0, SEEK_END), keep = size;
    char last = '\n';

    while (keep > 0 && pread(file->fd, &last, 1, keep - 1) == 1 && last != '\n')
        keep--;
    if (size <= 0 || keep == size)
        return MPL_OK;
    if (ftruncate(file->fd, keep) != 0)
        return MPL_REFUSE(ctx, "%s: a torn last line cannot be cut off: %s", file->path,
                          strerror(errno));
    file->dropped_bytes = (uint64_t)(size - keep);
    return MPL_OK;
}

/* Locks the file, waiting up to 2 s: workers of a killed bench hold the lock for a moment. */
static bool locked(int fd)
{
    for (int tries = 0; tries < 200; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true; /* where files cannot be locked, go on without */
        usleep(10000);
    }
    return false;
}

mpl_status mpl_row_file_open(mpl_ctx *ctx, const char *path, mpl_row_file *file)
{
    mpl_status st = MPL_OK;

    *file = (mpl_row_file){.fd = -1, .path = path};
    MPL_TRY(mpl_folders_make(ctx, path));
    if ((file->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) < 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: cannot be written: %s", path, strerror(errno));
    if (!locked(file->fd))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: another memplan bench writes to it; name another file with -o", path);
    MPL_TRY(repair(ctx, file));
out:
    if (st != MPL_OK)
        mpl_row_file_close(file);
    return st;
}

mpl_status mpl_row_file_append(mpl_ctx *ctx, mpl_row_file *file, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    char *text = NULL, *line = NULL;
    size_t n = 0;
    ssize_t written;
    off_t before = lseek(file->fd, 0, SEEK_END);

    MPL_TRY(mpl_record_write(ctx, row, &text));
    n = strlen(text);
    MPL_TRY(mpl_new(ctx, line, n + 2));
    memcpy(line, text, n);
    line[n] = '\n';
    errno = 0;
    written = write(file->fd, line, n + 1);
    if (written != (ssize_t)n + 1 || (fsync(file->fd) != 0 && errno != EINVAL && errno != EROFS)) {
        int why = errno != 0 ? errno : ENOSPC; /* a short write sets no errno */

        /* keeps the rows before whole; a device cannot be cut, so failing here does not matter */
        if (before >= 0 && ftruncate(file->fd, before) != 0)
            why = why != 0 ? why : errno;
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: the row could not be written: %s; the rows before it are whole, --resume "
                 "goes on from them",
                 file->path, strerror(why));
    }
out:
    mpl_free_each(ctx, line, text);
    return st;
}

void mpl_row_file_close(mpl_row_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

typedef struct indexed_key {
    char *key;
    uint32_t row;
} indexed_key;

static int by_key(const void *a, const void *b)
{
    const indexed_key *key = a, *y = b;
    int order = strcmp(key->key, y->key);

    return order != 0 ? order : (key->row > y->row) - (key->row < y->row);
}

mpl_status mpl_rows_last(mpl_ctx *ctx, mpl_rows *rows)
{
    mpl_status st = MPL_OK;
    indexed_key *keys = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, keys, rows->n));
    for (uint32_t i = 0; i < rows->n; i++) {
        keys[i].row = i;
        MPL_TRY(mpl_record_key(ctx, rows->row[i], &keys[i].key));
    }
    qsort(keys, rows->n, sizeof *keys, by_key);
    for (uint32_t i = 0; i < rows->n;) {
        uint32_t first = i, last;
        mpl_record *keep;

        while (i + 1 < rows->n && strcmp(keys[i + 1].key, keys[first].key) == 0)
            i++;
        last = keys[i++].row;
        keep = rows->row[last];
        rows->row[last] = NULL;
        for (uint32_t k = first; k < i; k++) {
            mpl_record_free(ctx, rows->row[keys[k].row]);
            rows->row[keys[k].row] = NULL;
        }
        rows->row[keys[first].row] = keep;
    }
    for (uint32_t i = 0; i < rows->n; i++)
        if (rows->row[i] != NULL)
            rows->row[n++] = rows->row[i];
out:
    for (uint32_t i = 0; keys != NULL && i < rows->n; i++)
        mpl_free(ctx, keys[i].key);
    mpl_free(ctx, keys);
    if (st == MPL_OK)
        rows->n = n;
    return st;
}
