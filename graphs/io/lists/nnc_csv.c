/* nnc_csv.c -- problems with a partial order, as recorded from libnnc. See lists.h.
 *
 * tensors: header `id,bytes[,buffer,offset]`, ids 0, 1, 2, .. in order; buffer and offset are a
 * block plan. before: header `a,b`; "a is before b", arcs whose closure is the relation. */
#include "graphs/io/lists/csv_priv.h"

#include "graphs/problem/before.h"

#include <errno.h>
#include <stdlib.h>

typedef struct table {
    const char *path;
    FILE *file;
    char *line;
    size_t cap;
    uint32_t row; /* line number, from 1 */
} table;

static mpl_status open_table(mpl_ctx *ctx, const char *path, table *t)
{
    t->path = path;
    t->file = fopen(path, "r");
    if (t->file == NULL)
        return MPL_REFUSE(ctx, "%s: %s", path, strerror(errno));
    return MPL_OK;
}

static void close_table(table *self)
{
    if (self->file != NULL)
        fclose(self->file);
    free(self->line); /* allocated by getline */
}

/* The next line without its newline; false: end of file. */
static bool next_line(table *self)
{
    ssize_t n = getline(&self->line, &self->cap, self->file);

    if (n < 0)
        return false;
    self->row++;
    while (n > 0 && (self->line[n - 1] == '\n' || self->line[n - 1] == '\r'))
        self->line[--n] = '\0';
    return true;
}

/* Parses the line as exactly n decimal numbers below 2^63. */
static mpl_status read_numbers(mpl_ctx *ctx, const table *t, uint32_t n, uint64_t *number)
{
    const char *at = t->line;

    for (uint32_t i = 0; i < n; i++) {
        char *end;

        errno = 0;
        number[i] = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || errno != 0 || number[i] > INT64_MAX ||
            *end != (i + 1 < n ? ',' : '\0'))
            return MPL_REFUSE(ctx, "%s:%u: '%.60s' should be %u whole numbers with commas between",
                              t->path, t->row, t->line, n);
        at = end + 1;
    }
    return MPL_OK;
}

typedef struct tensors {
    uint32_t n;
    bool has_plan;
    size_t cap_bytes, cap_block, cap_offset;
    uint64_t *bytes, *block, *offset;
} tensors;

static mpl_status read_tensors(mpl_ctx *ctx, const char *path, tensors *out)
{
    mpl_status st = MPL_OK;
    table t = {0};
    uint64_t number[4] = {0};

    MPL_TRY(open_table(ctx, path, &t));
    if (!next_line(&t) ||
        (strcmp(t.line, "id,bytes") != 0 && strcmp(t.line, "id,bytes,buffer,offset") != 0))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s:1: the first line should be 'id,bytes' or 'id,bytes,buffer,offset'", path);
    out->has_plan = strcmp(t.line, "id,bytes") != 0;
    while (next_line(&t)) {
        MPL_TRY(read_numbers(ctx, &t, out->has_plan ? 4 : 2, number));
        if (number[0] != out->n)
            MPL_FAIL(ctx, MPL_EINPUT, "%s:%u: id %" PRIu64 " where %u was expected", path, t.row,
                     number[0], out->n);
        if (number[1] == 0 || number[2] >= MPL_NONE || out->n >= MPL_NONE / 4)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%s:%u: a tensor needs 1 byte or more, and a buffer below 2^32", path, t.row);
        MPL_TRY(mpl_reserve(ctx, out->bytes, out->cap_bytes, (size_t)out->n + 1));
        MPL_TRY(mpl_reserve(ctx, out->block, out->cap_block, (size_t)out->n + 1));
        MPL_TRY(mpl_reserve(ctx, out->offset, out->cap_offset, (size_t)out->n + 1));
        out->bytes[out->n] = number[1];
        out->block[out->n] = number[2];
        out->offset[out->n++] = number[3];
    }
    if (out->n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: no tensors", path);
out:
    close_table(&t);
    return st;
}

static mpl_status read_before(mpl_ctx *ctx, const char *path, uint32_t n, mpl_before **out)
{
    mpl_status st = MPL_OK;
    table t = {0};
    uint32_t *from = NULL, *to = NULL;
    size_t n_arcs = 0, cap_from = 0, cap_to = 0;
    uint64_t number[2];

    MPL_TRY(open_table(ctx, path, &t));
    if (!next_line(&t) || strcmp(t.line, "a,b") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%s:1: the first line should be 'a,b'", path);
    while (next_line(&t)) {
        MPL_TRY(read_numbers(ctx, &t, 2, number));
        if (number[0] >= n || number[1] >= n)
            MPL_FAIL(ctx, MPL_EINPUT, "%s:%u: the ids of tensors go from 0 to %u", path, t.row,
                     n - 1);
        MPL_TRY(mpl_reserve(ctx, from, cap_from, n_arcs + 1));
        MPL_TRY(mpl_reserve(ctx, to, cap_to, n_arcs + 1));
        from[n_arcs] = (uint32_t)number[0];
        to[n_arcs++] = (uint32_t)number[1];
    }
    MPL_TRY(mpl_before_from_arcs(ctx, n, n_arcs, from, to, out));
out:
    close_table(&t);
    mpl_free_each(ctx, from, to);
    return st;
}

static const char ending[] = ".tensors.csv";

static bool has_ending(const char *path)
{
    size_t n = strlen(path), cut = sizeof ending - 1;

    return n >= cut && strcmp(path + n - cut, ending) == 0;
}

/* "NAME.tensors.csv" to "NAME.before.csv". */
static mpl_status path_beside(mpl_ctx *ctx, const char *path, char **out)
{
    size_t n = strlen(path), cut = sizeof ending - 1;

    if (!has_ending(path))
        return MPL_REFUSE(ctx, "%s: the name should end in %s", path, ending);
    *out = mpl_alloc(ctx, n + 1, 1);
    if (*out == NULL)
        return MPL_EMEM;
    memcpy(*out, path, n - cut);
    memcpy(*out + n - cut, ".before.csv", sizeof ".before.csv");
    return MPL_OK;
}

mpl_status mpl_nnc_read(mpl_ctx *ctx, const char *path, mpl_problem **out, mpl_nnc_record *record)
{
    mpl_status st = MPL_OK;
    tensors t = {0};
    char *beside = NULL;
    mpl_problem *p = NULL;
    mpl_before *before = NULL;

    MPL_TRY(path_beside(ctx, path, &beside));
    MPL_TRY(read_tensors(ctx, path, &t));
    MPL_TRY(read_before(ctx, beside, t.n, &before));
    MPL_TRY(mpl_problem_new(ctx, path, t.n, &p));
    p->before = before, before = NULL;
    memcpy(p->bytes, t.bytes, t.n * sizeof *t.bytes);
    for (uint32_t i = 0; i < t.n; i++)
        p->align[i] = 64; /* libnnc's alignment on CPU */
    MPL_TRY(mpl_problem_check(ctx, p));
    if (record != NULL) {
        *record = (mpl_nnc_record){.has_plan = t.has_plan, .block = t.block, .offset = t.offset};
        t.block = t.offset = NULL;
    }
    *out = p, p = NULL;
out:
    mpl_free_each(ctx, t.bytes, t.block, t.offset, beside);
    mpl_before_free(ctx, before);
    mpl_problem_free(ctx, p);
    return st;
}

void mpl_nnc_record_fini(mpl_ctx *ctx, mpl_nnc_record *record)
{
    mpl_free_each(ctx, record->block, record->offset);
}

bool mpl_list_is_nnc(const mpl_list_in *in)
{
    return has_ending(in->path) && mpl_list_is_csv(in);
}

/* A record is two files, so it is read by name. It has no offsets in one arena. */
mpl_status mpl_list_read_nnc(mpl_ctx *ctx, const mpl_list_in *in, mpl_problem **out,
                             uint64_t **offset)
{
    if (offset != NULL)
        *offset = NULL;
    return mpl_nnc_read(ctx, in->path, out, NULL);
}
