/* minimalloc.c -- MiniMalloc's lists of buffers with offsets, read by graphs/io/lists/csv.c. */
#include "graphs/io/lists/lists.h"
#include "planners/import/base/import_priv.h"

/* Whether the header line names the column. */
static bool has_column(const mpl_import_in *in, const char *name)
{
    mpl_lines lines = mpl_lines_of(in->text, in->size);
    size_t n = strlen(name);

    if (!mpl_lines_next(&lines))
        return false;
    for (const char *at = lines.text;
         (at = memmem(at, (size_t)(lines.text + lines.n - at), name, n)) != NULL; at++) {
        bool begins = at == lines.text || strchr(", \t", at[-1]) != NULL;
        bool ends = at + n == lines.text + lines.n || strchr(", \t", at[n]) != NULL;

        if (begins && ends)
            return true;
    }
    return false;
}

bool mpl_import_is_minimalloc(const mpl_import_in *in)
{
    return has_column(in, "size") && has_column(in, "offset");
}

mpl_status mpl_import_read_minimalloc(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    uint64_t *offset = NULL;

    MPL_TRY(mpl_csv_read(ctx, in->path, &out->problem, &offset));
    MPL_TRY(mpl_plan_new(ctx, out->problem, &out->plan));
    if (offset == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s:1: no column 'offset'", in->path);
    memcpy(out->plan->offset, offset, out->problem->n * sizeof *offset);
    out->plan->claim = MPL_FEASIBLE;
out:
    mpl_free(ctx, offset);
    return st;
}
