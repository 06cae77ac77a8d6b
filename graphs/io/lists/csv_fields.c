/* csv_fields.c -- lines and fields of buffer lists and allocation traces. See csv_priv.h. */
#include "graphs/core/text.h"
#include "graphs/io/lists/csv_priv.h"

const char *const mpl_csv_label[N_COLS] = {"id",        "lower",  "upper", "size",
                                           "alignment", "offset", "time",  "event"};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

bool mpl_csv_next_line(mpl_csv_reader *r, mpl_csv_field *line)
{
    while (r->at < r->end) {
        const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *from = r->at;

        r->line++;
        r->at = stop != NULL ? stop + 1 : r->end;
        stop = stop != NULL ? stop : r->end;
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

mpl_status mpl_csv_number(mpl_csv_reader *r, int col, uint64_t *out)
{
    mpl_csv_field f = r->row[r->where[col]];
    uint64_t value = 0;

    if (f.n > 1 && f.text[0] == '-' && f.text[1] >= '0' && f.text[1] <= '9')
        return MPL_REFUSE(r->ctx, "%s:%u: %s is negative: '%.*s'", r->path, r->line,
                          mpl_csv_label[col], mpl_csv_shown(f), f.text);
    if (f.n == 0)
        return MPL_REFUSE(r->ctx, "%s:%u: %s is missing", r->path, r->line, mpl_csv_label[col]);
    for (uint32_t i = 0; i < f.n; i++) {
        if (f.text[i] < '0' || f.text[i] > '9')
            return MPL_REFUSE(r->ctx, "%s:%u: %s is no whole number: '%.*s'", r->path, r->line,
                              mpl_csv_label[col], mpl_csv_shown(f), f.text);
        if (!mpl_mul_bytes(value, 10, &value) ||
            !mpl_add_bytes(value, (uint64_t)(f.text[i] - '0'), &value) || value > INT64_MAX)
            return MPL_REFUSE(r->ctx, "%s:%u: %s passes 2^63 - 1: '%.*s'", r->path, r->line,
                              mpl_csv_label[col], mpl_csv_shown(f), f.text);
    }
    *out = value;
    return MPL_OK;
}

mpl_status mpl_csv_grow(mpl_csv_reader *r)
{
    size_t n = (size_t)r->n + 1;

    if (n >= MPL_NONE / 4)
        return MPL_REFUSE(r->ctx, "%s:%u: more than 2^30 buffers", r->path, r->line);
    MPL_PASS(mpl_reserve(r->ctx, r->name, r->name_cap, n));
    MPL_PASS(mpl_reserve(r->ctx, r->lower, r->lower_cap, n));
    MPL_PASS(mpl_reserve(r->ctx, r->upper, r->upper_cap, n));
    MPL_PASS(mpl_reserve(r->ctx, r->size, r->size_cap, n));
    MPL_PASS(mpl_reserve(r->ctx, r->offset, r->offset_cap, n));
    MPL_PASS(mpl_reserve(r->ctx, r->align, r->align_cap, n));
    return mpl_reserve(r->ctx, r->row_line, r->row_line_cap, n);
}

mpl_status mpl_csv_align(mpl_csv_reader *r)
{
    uint64_t align = 1;

    if (r->where[COL_ALIGN] != MPL_NONE)
        MPL_PASS(mpl_csv_number(r, COL_ALIGN, &align));
    if (align == 0 || (align & (align - 1)) != 0 || align > UINT32_C(1) << 31)
        return MPL_REFUSE(r->ctx, "%s:%u: alignment %" PRIu64 " is no power of two up to 2^31",
                          r->path, r->line, align);
    r->align[r->n] = (uint32_t)align;
    r->row_line[r->n] = r->line;
    return MPL_OK;
}

mpl_status mpl_csv_name(mpl_csv_reader *r, uint32_t b, mpl_csv_field text)
{
    MPL_PASS(mpl_new(r->ctx, r->name[b], text.n + (size_t)1));
    memcpy(r->name[b], text.text, text.n);
    return MPL_OK;
}

mpl_status mpl_csv_split(mpl_csv_reader *r, mpl_csv_field line)
{
    uint32_t n = 0;
    mpl_csv_field f;

    for (; mpl_csv_next_field(&line, &f); n++)
        if (n < r->n_fields)
            r->row[n] = f;
    if (n != r->n_fields)
        return MPL_REFUSE(r->ctx, "%s:%u: %u fields; the header names %u", r->path, r->line, n,
                          r->n_fields);
    if (r->row[r->where[COL_ID]].n == 0)
        return MPL_REFUSE(r->ctx, "%s:%u: id is missing", r->path, r->line);
    return MPL_OK;
}
