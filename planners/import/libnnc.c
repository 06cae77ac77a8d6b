/* libnnc.c -- recorded plans of libnnc's allocator, read by graphs/io/lists/nnc_csv.c. Its buffers
 * stand end to end; each extends to the furthest end of its tensors, rounded up to 64 bytes. */
#include "graphs/io/lists/lists.h"
#include "planners/import/base/import_priv.h"

enum { ALIGN = 64 };

bool mpl_import_is_libnnc(const mpl_import_in *in)
{
    static const char ending[] = ".tensors.csv", header[] = "id,bytes,buffer,offset";
    size_t n = strlen(in->path), m = sizeof ending - 1;

    return n >= m && strcmp(in->path + n - m, ending) == 0 && in->size >= sizeof header - 1 &&
           memcmp(in->text, header, sizeof header - 1) == 0;
}

/* Numbers blocks densely in the order of their first tensors, and finds their begins. */
static mpl_status place_blocks(mpl_ctx *ctx, const mpl_import_in *in, const mpl_nnc_record *record,
                               const mpl_problem *p, mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    uint64_t *end = NULL, *base = NULL, old;
    mpl_names names = {0};
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, end, p->n));
    MPL_TRY(mpl_new(ctx, base, p->n + (size_t)1));
    MPL_TRY(mpl_new(ctx, plan->block, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t stop;

        MPL_TRY(mpl_names_add(ctx, &names, (const char *)&record->block[b], sizeof *record->block,
                              n, &old));
        plan->block[b] = old == UINT64_MAX ? n++ : (uint32_t)old;
        if (!mpl_add_bytes(record->offset[b], p->bytes[b], &stop) ||
            !mpl_align_bytes(stop, ALIGN, &stop) || stop > INT64_MAX)
            MPL_FAIL(ctx, MPL_EINPUT, "%.200s: tensor %u ends beyond 2^63", in->path, b);
        end[plan->block[b]] = mpl_max_u64(end[plan->block[b]], stop);
    }
    for (uint32_t k = 0; k < n; k++)
        if (!mpl_add_bytes(base[k], end[k], &base[k + 1]) || base[k + 1] > INT64_MAX)
            MPL_FAIL(ctx, MPL_EINPUT, "%.200s: the buffers end beyond 2^63", in->path);
    for (mpl_buffer b = 0; b < p->n; b++)
        plan->offset[b] = base[plan->block[b]] + record->offset[b];
out:
    mpl_free_each(ctx, end, base, names.slot);
    return st;
}

mpl_status mpl_import_read_libnnc(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_nnc_record record = {0};

    MPL_TRY(mpl_nnc_read(ctx, in->path, &out->problem, &record));
    MPL_TRY(mpl_plan_new(ctx, out->problem, &out->plan));
    out->plan->claim = MPL_FEASIBLE;
    MPL_TRY(place_blocks(ctx, in, &record, out->problem, out->plan));
out:
    mpl_nnc_record_fini(ctx, &record);
    return st;
}
