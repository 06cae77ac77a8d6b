/* csv.c -- buffer lists in MiniMalloc's format: a header that names the columns, one buffer a row.
 *
 * Source   MiniMalloc (github.com/google/minimalloc), README and converter: id, lower, upper, size,
 *          alignment, offset, and the older names buffer or buffer_id, start or begin, end.
 *          Lifetimes are half-open here.
 * Differs  Unknown columns are skipped. So is `gaps`, the times within a lifetime in which a buffer
 *          is not needed: the plan stays right, but may be larger. Times may reach 2^63. If the
 *          last one is far beyond the number of rows, times become their ranks, which keeps arrays
 *          over steps small and relations of lifetimes intact.
 * Traces   A header with events is that of an allocation trace (trace_csv.c).
 * Cost     O(file size + n log n). */
#include "graphs/core/file.h"
#include "graphs/core/text.h"
#include "graphs/io/lists/csv_priv.h"

#include <strings.h>

enum { LISTS, TRACES, N_KINDS };

static const char *const col_words[N_COLS][N_KINDS] = {
#define COLUMN(name, lists, traces) {lists, traces},
#include "graphs/io/lists/columns.def"
};

/* The field that a column of the header names, in lists or in traces; N_COLS: unknown. */
static int column_of(mpl_csv_field name, int kind)
{
    for (int c = 0; c < N_COLS; c++)
        for (const char *word = col_words[c][kind]; *word != '\0'; word += strspn(word, " ")) {
            size_t n = strcspn(word, " ");

            if (n == name.n && strncasecmp(word, name.text, n) == 0)
                return c;
            word += n;
        }
    return N_COLS;
}

static bool names(mpl_csv_field header, int kind, int col)
{
    for (mpl_csv_field name; mpl_csv_next_field(&header, &name);)
        if (column_of(name, kind) == col)
            return true;
    return false;
}

/* A header with events and no lifetimes is that of a trace. */
static mpl_status read_header(mpl_csv_reader *in, bool *is_trace)
{
    static const int needed[2][4] = {{COL_id, COL_lower, COL_upper, COL_size},
                                     {COL_time, COL_event, COL_id, COL_size}};
    mpl_csv_field line, name;

    if (!mpl_csv_next_line(in, &line))
        return MPL_REFUSE(in->ctx, "%s:1: empty; a header id,lower,upper,size is needed", in->path);
    *is_trace = names(line, TRACES, COL_event) && !names(line, LISTS, COL_lower);
    for (; mpl_csv_next_field(&line, &name); in->n_fields++) {
        int c = column_of(name, *is_trace ? TRACES : LISTS);

        if (c == N_COLS)
            continue;
        if (in->where[c] != MPL_NONE)
            return MPL_REFUSE(in->ctx, "%s:%u: two columns give the %s", in->path, in->line,
                              mpl_csv_label[c]);
        in->where[c] = in->n_fields;
    }
    for (int i = 0; i < 4; i++)
        if (in->where[needed[*is_trace][i]] == MPL_NONE)
            return MPL_REFUSE(in->ctx, "%s:%u: no column '%s'; the header must name %s", in->path,
                              in->line, mpl_csv_label[needed[*is_trace][i]],
                              *is_trace ? "time,event,id,size" : "id,lower,upper,size");
    return mpl_new(in->ctx, in->row, in->n_fields);
}

static mpl_status read_row(mpl_csv_reader *in, mpl_csv_field line)
{
    uint32_t b = in->n;

    MPL_PASS(mpl_csv_split(in, line));
    MPL_PASS(mpl_csv_grow(in));
    MPL_PASS(mpl_csv_number(in, COL_lower, &in->lower[b]));
    MPL_PASS(mpl_csv_number(in, COL_upper, &in->upper[b]));
    MPL_PASS(mpl_csv_number(in, COL_size, &in->size[b]));
    if (in->where[COL_offset] != MPL_NONE)
        MPL_PASS(mpl_csv_number(in, COL_offset, &in->offset[b]));
    if (in->lower[b] >= in->upper[b])
        return MPL_REFUSE(in->ctx,
                          "%s:%u: lower %" PRIu64 " is not below upper %" PRIu64
                          "; lifetimes are half-open",
                          in->path, in->line, in->lower[b], in->upper[b]);
    if (in->size[b] == 0)
        return MPL_REFUSE(in->ctx, "%s:%u: size is 0; at least 1 byte is needed", in->path,
                          in->line);
    MPL_PASS(mpl_csv_align(in));
    MPL_PASS(mpl_csv_name(in, b, mpl_csv_at(in, COL_id)));
    in->n++;
    return MPL_OK;
}

/* Finds equal ids by a hash table with open addressing. */
static mpl_status check_ids(mpl_csv_reader *in)
{
    mpl_status st = MPL_OK;
    uint32_t *slot = NULL;
    size_t mask = 15;

    while (mask <= 2 * (size_t)in->n)
        mask = 2 * mask + 1;
    MPL_TRY(mpl_new(in->ctx, slot, mask + 1));
    for (uint32_t b = 0; b < in->n; b++) {
        size_t at = mpl_table_hash(0, in->name[b], strlen(in->name[b])) & mask;

        for (; slot[at] != 0; at = (at + 1) & mask)
            if (strcmp(in->name[slot[at] - 1], in->name[b]) == 0)
                MPL_FAIL(in->ctx, MPL_EINPUT, "%s:%u: id '%.60s' stands in line %u already",
                         in->path, in->row_line[b], in->name[b], in->row_line[slot[at] - 1]);
        slot[at] = b + 1;
    }
out:
    mpl_free(in->ctx, slot);
    return st;
}

mpl_status mpl_csv_problem(mpl_csv_reader *in, mpl_problem **out, uint64_t **offset)
{
    mpl_status st = MPL_OK;
    const char *slash = strrchr(in->path, '/');
    mpl_problem *p = NULL;
    uint64_t *copy = NULL;

    if (in->n == 0)
        MPL_FAIL(in->ctx, MPL_EINPUT, "%s:%u: no buffer stands in the list", in->path, in->line);
    MPL_TRY(check_ids(in));
    MPL_TRY(mpl_problem_new(in->ctx, slash != NULL ? slash + 1 : in->path, in->n, &p));
    MPL_TRY(mpl_problem_set_times(in->ctx, in->lower, in->upper, p));
    memcpy(p->bytes, in->size, in->n * sizeof *p->bytes);
    memcpy(p->align, in->align, in->n * sizeof *p->align);
    if (offset != NULL && in->where[COL_offset] != MPL_NONE) {
        MPL_TRY(mpl_new(in->ctx, copy, in->n));
        memcpy(copy, in->offset, in->n * sizeof *copy);
    }
    MPL_TRY(mpl_new(in->ctx, p->buffer_name, in->n));
    memcpy(p->buffer_name, in->name, in->n * sizeof *in->name);
    in->n = 0; /* names have moved */
    mpl_assert_ok(mpl_problem_ok(p));
    *out = p, p = NULL;
    if (offset != NULL)
        *offset = copy, copy = NULL;
out:
    mpl_problem_free(in->ctx, p);
    mpl_free(in->ctx, copy);
    return st;
}

mpl_status mpl_csv_begin(mpl_csv_reader *in, mpl_ctx *ctx, const mpl_list_in *file)
{
    *in = (mpl_csv_reader){
        .ctx = ctx, .path = file->path, .at = file->text, .end = file->text + file->size};
    for (int c = 0; c < N_COLS; c++)
        in->where[c] = MPL_NONE;
    if (file->size > INT32_MAX)
        return MPL_REFUSE(ctx, "%s:1: %zu bytes; a buffer list may have 2^31 - 1", file->path,
                          file->size);
    if (memchr(file->text, '\0', file->size) != NULL)
        return MPL_REFUSE(ctx, "%s:1: holds a zero byte; this is no text file", file->path);
    if (file->size >= 3 && memcmp(file->text, "\xef\xbb\xbf", 3) == 0)
        return MPL_REFUSE(ctx, "%s:1: begins with a UTF-8 byte-order mark; save it without one",
                          file->path);
    return MPL_OK;
}

void mpl_csv_fini(mpl_csv_reader *in)
{
    for (uint32_t b = 0; b < in->n; b++)
        mpl_free(in->ctx, in->name[b]);
#define NUMBERS(name, lists, traces) mpl_free(in->ctx, in->name);
#include "graphs/io/lists/columns.def"
    mpl_free_each(in->ctx, in->name, in->align, in->row_line, in->row);
}

bool mpl_list_is_csv(const mpl_list_in *in)
{
    return in->line_size > 0 && memchr(in->line, ',', in->line_size) != NULL;
}

mpl_status mpl_list_read_csv(mpl_ctx *ctx, const mpl_list_in *in, mpl_problem **out,
                             uint64_t **offset)
{
    mpl_status st = MPL_OK;
    mpl_csv_reader r;
    mpl_csv_field line;
    bool is_trace = false;

    MPL_TRY(mpl_csv_begin(&r, ctx, in));
    MPL_TRY(read_header(&r, &is_trace));
    if (is_trace)
        MPL_TRY(mpl_csv_trace(&r));
    while (!is_trace && mpl_csv_next_line(&r, &line))
        MPL_TRY(read_row(&r, line));
    MPL_TRY(mpl_csv_problem(&r, out, offset));
out:
    mpl_csv_fini(&r);
    return st;
}

mpl_status mpl_csv_read(mpl_ctx *ctx, const char *path, mpl_problem **out, uint64_t **offset)
{
    mpl_status st = MPL_OK;
    mpl_list_in in = {.path = path};
    char *text = NULL;

    MPL_TRY(mpl_file_read(ctx, path, &text, &in.size));
    in.text = text;
    MPL_TRY(mpl_list_read_csv(ctx, &in, out, offset));
out:
    mpl_free(ctx, text);
    return st;
}

/* Whether every buffer of pool 0 has a name that fits in a cell and is not a formula. */
static bool names_fit(const mpl_problem *p)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        const char *name = p->buffer_name != NULL ? p->buffer_name[b] : NULL;

        if (p->pool[b] == 0 && (name == NULL || name[0] == '\0' || strpbrk(name, ", \"") != NULL ||
                                strchr("=+-@", name[0]) != NULL || !mpl_text_is_seen(name)))
            return false;
    }
    return true;
}

uint32_t mpl_csv_write_rows(FILE *f, const mpl_problem *p, uint32_t pool, bool named,
                            const uint64_t *offset)
{
    bool aligned = false;
    uint32_t n = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        aligned |= p->pool[b] == pool && p->align[b] != 1;
    fprintf(f, "id,lower,upper,size%s%s\n", aligned ? ",alignment" : "",
            offset != NULL ? ",offset" : "");
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->pool[b] != pool)
            continue;
        if (named)
            fputs(p->buffer_name[b], f);
        else
            fprintf(f, "%u", b);
        fprintf(f, ",%u,%u,%" PRIu64, p->birth[b], p->death[b], p->bytes[b]);
        if (aligned)
            fprintf(f, ",%u", p->align[b]);
        if (offset != NULL)
            fprintf(f, ",%" PRIu64, offset[b]);
        fputc('\n', f);
        n++;
    }
    return n;
}

/* Families become single buffers, since the format has no families. */
static mpl_status write_hull(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                             const uint64_t *offset)
{
    mpl_status st = MPL_OK;
    mpl_problem *hull = NULL;
    uint32_t *into = NULL;
    uint64_t *at = NULL;

    MPL_TRY(mpl_new(ctx, into, p->n));
    MPL_TRY(mpl_problem_hull(ctx, p, &hull, into));
    if (offset != NULL)
        MPL_TRY(mpl_new(ctx, at, p->n));
    for (mpl_buffer b = 0; offset != NULL && b < p->n; b++)
        at[into[b]] = offset[b] - p->inside_at[b];
    MPL_TRY(mpl_csv_write(ctx, path, hull, at));
out:
    mpl_problem_free(ctx, hull);
    mpl_free_each(ctx, into, at);
    return st;
}

mpl_status mpl_csv_write(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                         const uint64_t *offset)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    bool any = false;

    if (p->inside != NULL)
        return write_hull(ctx, path, p, offset);
    if (p->before != NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: a problem with a partial order has no lifetimes to write",
                 path);
    for (mpl_buffer b = 0; b < p->n; b++)
        any = any || p->pool[b] == 0;
    if (!any) /* an empty list is unreadable */
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: there is no buffer to write; inputs and outputs are buffers with --pin none",
                 path);
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    mpl_csv_write_rows(file.stream, p, 0, names_fit(p), offset);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}
