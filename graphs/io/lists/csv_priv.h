/* csv_priv.h -- what readers of buffer lists and of allocation traces share: lines, columns,
 * buffers, and the problem made of them. */
#pragma once

#include "graphs/io/lists/lists.h"

/* `is` looks at the name and the first line; `read` is as mpl_list_read. */
#define LIST(name)                                                                                 \
    bool mpl_list_is_##name(const mpl_list_in *in);                                                \
    mpl_status mpl_list_read_##name(mpl_ctx *ctx, const mpl_list_in *in, mpl_problem **out,        \
                                    uint64_t **offset);
#include "graphs/io/lists/lists.def"
#undef LIST

enum {
#define COLUMN(name, lists, traces) COL_##name,
#include "graphs/io/lists/columns.def"
    N_COLS
};

typedef struct mpl_csv_field {
    const char *text;
    uint32_t n;
} mpl_csv_field;

typedef struct mpl_csv_reader {
    mpl_ctx *ctx;
    const char *path;
    const char *at, *end;   /* unread rest of the file */
    uint32_t line;          /* of the last row read */
    uint32_t n_fields;      /* columns of the header */
    uint32_t where[N_COLS]; /* column of each field; MPL_NONE: absent */
    mpl_csv_field *row;     /* [n_fields] */

    uint32_t n; /* buffers so far; their arrays follow */
    char **name;
#define NUMBERS(name, lists, traces)                                                               \
    uint64_t *name;                                                                                \
    size_t name##_cap;
#include "graphs/io/lists/columns.def"
    uint32_t *align, *row_line;
    size_t name_cap, align_cap, row_line_cap;
} mpl_csv_reader;

extern const char *const mpl_csv_label[N_COLS]; /* names in messages */

/* Begins to read; no column is there yet. MPL_EINPUT: a zero byte or a byte-order mark, or 2^31
 * bytes or more. mpl_csv_fini is required in any case. */
mpl_status mpl_csv_begin(mpl_csv_reader *in, mpl_ctx *ctx, const mpl_list_in *file);
void mpl_csv_fini(mpl_csv_reader *in);
/* The next line that is not blank, without its newline; false: end of file. */
bool mpl_csv_next_line(mpl_csv_reader *in, mpl_csv_field *line);
/* Splits the next field off a line, without the blanks around it; false: none is left. */
bool mpl_csv_next_field(mpl_csv_field *line, mpl_csv_field *out);
/* Fills row[]. MPL_EINPUT: another number of fields than the header has, or no id. */
mpl_status mpl_csv_split(mpl_csv_reader *in, mpl_csv_field line);
static inline mpl_csv_field mpl_csv_at(const mpl_csv_reader *in, int col)
{
    return in->row[in->where[col]];
}
/* A whole number from 0 to 2^63 - 1. */
mpl_status mpl_csv_number(mpl_csv_reader *in, int col, uint64_t *out);
/* Length of a field as shown in a message. */
int mpl_csv_shown(mpl_csv_field f);

/* Makes room for one more buffer, at index n. */
mpl_status mpl_csv_grow(mpl_csv_reader *in);
/* Reads its alignment, 1 without the column, and notes its line. */
mpl_status mpl_csv_align(mpl_csv_reader *in);
/* Copies text as the name of buffer b. */
mpl_status mpl_csv_name(mpl_csv_reader *in, uint32_t b, mpl_csv_field text);

/* Makes the problem of the buffers read, whose names move to it. *offset: as of mpl_csv_read.
 * MPL_EINPUT: no buffer, or an id that is used twice. */
mpl_status mpl_csv_problem(mpl_csv_reader *in, mpl_problem **out, uint64_t **offset);

/* trace_csv.c: the rows of an allocation trace, as buffers. */
mpl_status mpl_csv_trace(mpl_csv_reader *in);
