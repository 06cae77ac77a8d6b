/* csv_fields.c -- lines and fields of buffer lists and allocation traces. See csv_priv.h. */
#include "graphs/core/text.h"
#include "graphs/io/lists/csv_priv.h"

const char *const mpl_csv_label[N_COLS] = {
#define COLUMN(name, lists, traces) #name,
#include "graphs/io/lists/columns.def"
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool mpl_csv_next_line(mpl_csv_reader *in, mpl_csv_field *line)
{
    while (in->at < in->end) {
        const char *stop = memchr(in->at, '\n', (size_t)(in->end - in->at));
        const char *from = in->at;

        in->line++;
        in->at = stop != NULL ? stop + 1 : in->end;
        stop = stop != NULL ? stop : in->end;
        while (from < stop && is_blank(*from))
            from++;
        while (stop > from && is_blank(stop[-1]))
            stop--;
        if (from < stop)
            return *line = (mpl_csv_field){from, (uint32_t)(stop - from)}, true;
    }
    return false;
}

/* Cuts the first field off `line`; false: none is left. */
bool mpl_csv_next_field(mpl_csv_field *line, mpl_csv_field *out)
{
    const char *comma, *stop;

    if (line->text == NULL)
        return false;
    comma = memchr(line->text, ',', line->n);
    stop = comma != NULL ? comma : line->text + line->n;
    *out = (mpl_csv_field){line->text, (uint32_t)(stop - line->text)};
    if (comma != NULL)
        *line = (mpl_csv_field){comma + 1, line->n - out->n - 1};
    else
        line->text = NULL;
    while (out->n > 0 && is_blank(out->text[0]))
        out->text++, out->n--;
    while (out->n > 0 && is_blank(out->text[out->n - 1]))
        out->n--;
    return true;
}

int mpl_csv_shown(mpl_csv_field f)
{
    return f.n < 60 ? (int)f.n : 60;
}

mpl_status mpl_csv_number(mpl_csv_reader *in, int col, uint64_t *out)
{
    mpl_csv_field f = in->row[in->where[col]];
    uint64_t value = 0;

    if (f.n > 1 && f.text[0] == '-' && f.text[1] >= '0' && f.text[1] <= '9')
        return MPL_REFUSE(in->ctx, "%s:%u: %s is negative: '%.*s'", in->path, in->line,
                          mpl_csv_label[col], mpl_csv_shown(f), f.text);
    if (f.n == 0)
        return MPL_REFUSE(in->ctx, "%s:%u: %s is missing", in->path, in->line, mpl_csv_label[col]);
    for (uint32_t i = 0; i < f.n; i++) {
        if (f.text[i] < '0' || f.text[i] > '9')
            return MPL_REFUSE(in->ctx, "%s:%u: %s is no whole number: '%.*s'", in->path, in->line,
                              mpl_csv_label[col], mpl_csv_shown(f), f.text);
        if (!mpl_mul_bytes(value, 10, &value) ||
            !mpl_add_bytes(value, (uint64_t)(f.text[i] - '0'), &value) || value > INT64_MAX)
            return MPL_REFUSE(in->ctx, "%s:%u: %s passes 2^63 - 1: '%.*s'", in->path, in->line,
                              mpl_csv_label[col], mpl_csv_shown(f), f.text);
    }
    *out = value;
    return MPL_OK;
}

mpl_status mpl_csv_grow(mpl_csv_reader *in)
{
    size_t n = (size_t)in->n + 1;

    if (n >= MPL_NONE / 4)
        return MPL_REFUSE(in->ctx, "%s:%u: more than 2^30 buffers", in->path, in->line);
    MPL_PASS(mpl_reserve(in->ctx, in->name, in->name_cap, n));
#define NUMBERS(name, lists, traces) MPL_PASS(mpl_reserve(in->ctx, in->name, in->name##_cap, n));
#include "graphs/io/lists/columns.def"
    MPL_PASS(mpl_reserve(in->ctx, in->align, in->align_cap, n));
    return mpl_reserve(in->ctx, in->row_line, in->row_line_cap, n);
}

mpl_status mpl_csv_align(mpl_csv_reader *in)
{
    uint64_t align = 1;

    if (in->where[COL_alignment] != MPL_NONE)
        MPL_PASS(mpl_csv_number(in, COL_alignment, &align));
    if (align == 0 || (align & (align - 1)) != 0 || align > UINT32_C(1) << 31)
        return MPL_REFUSE(in->ctx, "%s:%u: alignment %" PRIu64 " is no power of two up to 2^31",
                          in->path, in->line, align);
    in->align[in->n] = (uint32_t)align;
    in->row_line[in->n] = in->line;
    return MPL_OK;
}

mpl_status mpl_csv_name(mpl_csv_reader *in, uint32_t b, mpl_csv_field text)
{
    MPL_PASS(mpl_new(in->ctx, in->name[b], text.n + (size_t)1));
    memcpy(in->name[b], text.text, text.n);
    return MPL_OK;
}

mpl_status mpl_csv_split(mpl_csv_reader *in, mpl_csv_field line)
{
    uint32_t n = 0;
    mpl_csv_field f;

    for (; mpl_csv_next_field(&line, &f); n++)
        if (n < in->n_fields)
            in->row[n] = f;
    if (n != in->n_fields)
        return MPL_REFUSE(in->ctx, "%s:%u: %u fields; the header names %u", in->path, in->line, n,
                          in->n_fields);
    if (in->row[in->where[COL_id]].n == 0)
        return MPL_REFUSE(in->ctx, "%s:%u: id is missing", in->path, in->line);
    return MPL_OK;
}
