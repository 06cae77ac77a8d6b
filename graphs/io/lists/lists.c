/* lists.c -- a list of any format. See lists.h. */
#include "graphs/io/lists/csv_priv.h"

static const struct {
    bool (*is)(const mpl_list_in *in);
    mpl_status (*read)(mpl_ctx *ctx, const mpl_list_in *in, mpl_problem **out, uint64_t **offset);
} formats[] = {
#define LIST(name) {mpl_list_is_##name, mpl_list_read_##name},
#include "graphs/io/lists/lists.def"
#undef LIST
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static size_t format_of(const mpl_list_in *in)
{
    size_t i = 0;

    while (i < N_FORMATS && !formats[i].is(in))
        i++;
    return i;
}

bool mpl_list_is(const mpl_list_in *in)
{
    return format_of(in) < N_FORMATS;
}

mpl_status mpl_list_read(mpl_ctx *ctx, const mpl_list_in *in, mpl_problem **out, uint64_t **offset)
{
    size_t i = format_of(in);

    if (i == N_FORMATS)
        return MPL_REFUSE(ctx, "%s: is no list of buffers", in->path);
    return formats[i].read(ctx, in, out, offset);
}
