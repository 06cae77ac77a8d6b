/* tflite_metadata.c -- the plan inside a .tflite model: its metadata OfflineMemoryAllocation.
 *
 * Source   graphs/io/tflite/tflite_offsets.c: format, and when a tensor lives.
 * Tensors  With a GRAPH the offsets go to its buffers by name, and all of these must have one; else
 *          the model's own tensors are the problem.
 * Limits   What is left to the run (-1), and what lies inside the scratch memory of a compiled
 *          operator, is counted in the note. */
#include "planners/import/base/import_priv.h"

#include "graphs/source.h"

bool mpl_import_is_tflite_metadata(const mpl_import_in *in)
{
    return in->size >= 8 && memcmp(in->text + 4, "TFL3", 4) == 0;
}

static mpl_status list_tensors(mpl_ctx *ctx, const mpl_import_in *in, const mpl_tflite_plan *plan,
                               mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_import_list list = {0};

    for (uint32_t i = 0; i < plan->n; i++) {
        const mpl_tflite_tensor *tensor = &plan->tensor[i];
        const mpl_import_buffer b = {.bytes = tensor->bytes,
                                     .offset = tensor->offset,
                                     .birth = tensor->birth,
                                     .death = tensor->death,
                                     .block = MPL_NONE};

        MPL_TRY(mpl_import_add(ctx, &list, &b, tensor->name, strlen(tensor->name)));
    }
    MPL_TRY(mpl_import_make(ctx, in, &list, out));
out:
    mpl_import_list_fini(ctx, &list);
    return st;
}

static mpl_status place(mpl_ctx *ctx, const mpl_import_in *in, const mpl_tflite_plan *plan,
                        mpl_import *out)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = in->beside;
    mpl_names names = {0};
    uint64_t old;

    for (uint32_t i = 0; i < plan->n; i++)
        MPL_TRY(mpl_names_add(ctx, &names, plan->tensor[i].name, strlen(plan->tensor[i].name),
                              plan->tensor[i].offset, &old));
    MPL_TRY(mpl_plan_new(ctx, p, &out->plan));
    for (mpl_buffer b = 0; b < p->n; b++) {
        const char *name = p->buffer_name != NULL ? p->buffer_name[b] : "";
        uint64_t offset = mpl_names_get(&names, name, strlen(name));

        if (offset == UINT64_MAX)
            MPL_FAIL(ctx, MPL_EINPUT, "%.200s: it gives no offset to '%.100s' of %.100s", in->path,
                     name, p->name);
        out->plan->offset[b] = offset;
    }
    out->plan->claim = MPL_FEASIBLE;
out:
    mpl_free(ctx, names.slot);
    return st;
}

mpl_status mpl_import_read_tflite_metadata(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_tflite_plan plan = {0};

    MPL_TRY(mpl_tflite_offsets(ctx, in->path, in->text, in->size, &plan));
    MPL_TRY(in->beside != NULL ? place(ctx, in, &plan, out) : list_tensors(ctx, in, &plan, out));
    if (plan.n_open + plan.n_inside > 0)
        snprintf(out->note, sizeof out->note,
                 "%u tensors are left to the run, %u lie inside the scratch memory of their "
                 "operator",
                 plan.n_open, plan.n_inside);
out:
    mpl_tflite_plan_fini(ctx, &plan);
    return st;
}
