/* tflite_offsets.c -- the offsets that the producer of a model gave its tensors.
 *
 * Source   tflite-micro, docs/memory_management.md: the metadata "OfflineMemoryAllocation" is a
 *          list of 32-bit integers: version, subgraph, n, then n offsets, -1 for "at run time".
 *          Vela writes the number of subgraphs in the place of the subgraph, so 1 is taken for the
 *          first where there is no second.
 * Lives    As tflite-micro has them (micro_allocation_info.cc): inputs come at step 0, operator i
 *          runs at step i + 1; from the operator that makes a tensor to the last that reads it,
 *          outputs to the last one. An input that no operator reads is there at step 0 alone. */
#include "graphs/io/tflite/tflite_priv.h"

enum { HEAD = 3 };

static int32_t word(const uint8_t *data, uint64_t i)
{
    int32_t x;

    memcpy(&x, data + 4 * i, 4);
    return x;
}

mpl_status tfl_offsets(tfl_model *model, int64_t **offset)
{
    flat_vector graphs = tfl_list(&model->root, TFL_Model_subgraphs);
    const uint8_t *data;
    uint64_t bytes;

    MPL_PASS(tfl_metadata(model, "OfflineMemoryAllocation", &data, &bytes));
    if (bytes == 0)
        return MPL_OK;
    if (bytes < 4 * HEAD || bytes % 4 != 0 || (uint32_t)word(data, 0) > 1 ||
        (uint32_t)word(data, 1) > (graphs.n == 1 ? 1 : 0) ||
        (uint64_t)word(data, 2) != model->n_tensors || bytes / 4 - HEAD < model->n_tensors)
        return MPL_REFUSE(model->ctx,
                          "%.200s: its OfflineMemoryAllocation should hold version 0 or 1, "
                          "subgraph 0, and an offset for each of %u tensors",
                          model->path, model->n_tensors);
    MPL_PASS(mpl_new(model->ctx, *offset, model->n_tensors));
    for (uint32_t i = 0; i < model->n_tensors; i++)
        if (((*offset)[i] = word(data, HEAD + i)) < -1)
            return MPL_REFUSE(model->ctx,
                              "%.200s: the offset of tensor %u is %" PRId64
                              "; -1 or more is possible",
                              model->path, i, (*offset)[i]);
    return MPL_OK;
}

bool tfl_is_planned(const tfl_tensor *tensor)
{
    return tensor->data == NULL && !tensor->variable && tensor->bytes > 0 &&
           (tensor->birth != MPL_NONE || tensor->last != MPL_NONE || tensor->is_input);
}

void tfl_set_life(const tfl_model *model, const tfl_tensor *tensor, mpl_tflite_tensor *out)
{
    uint32_t end = out->birth = tensor->birth != MPL_NONE ? tensor->birth + 1
                                : tensor->is_input        ? 0
                                                          : tensor->last + 1;

    if (tensor->is_output)
        end = model->n_operators;
    else if (tensor->last != MPL_NONE)
        end = tensor->last + 1;
    out->death = (end > out->birth ? end : out->birth) + 1;
}

/* Whether operator `op` works in scratch memory, and the file puts the tensor inside it: its place
 * is then the operator's own. Two of one size lie in each other; the first counts. */
static bool is_part_of(const tfl_model *model, uint32_t op, uint32_t id)
{
    const tfl_tensor *part = &model->tensor[id];
    const tfl_operator *o = op != MPL_NONE ? &model->op[op] : NULL;

    for (uint32_t k = 0; o != NULL && k < o->n_in && k < TFL_SCRATCH_INPUTS; k++) {
        uint32_t other = o->in[k];
        const tfl_tensor *tensor = &model->tensor[other != MPL_NONE ? other : id];
        int64_t at = model->offset[other != MPL_NONE ? other : id];

        if (tensor != part && tfl_is_planned(tensor) && tensor->birth == MPL_NONE &&
            !tensor->is_input && at >= 0 &&
            (part->bytes < tensor->bytes || (part->bytes == tensor->bytes && other < id)) &&
            model->offset[id] >= at &&
            (uint64_t)(model->offset[id] - at) + part->bytes <= tensor->bytes)
            return true;
    }
    return false;
}

bool tfl_is_part(const tfl_model *model, uint32_t id)
{
    return is_part_of(model, model->tensor[id].birth, id) ||
           is_part_of(model, model->tensor[id].last, id);
}

mpl_status mpl_tflite_offsets(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                              mpl_tflite_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_tflite_plan plan = {0};
    tfl_model m;

    MPL_TRY(tfl_open(ctx, path, data, size, &m));
    MPL_TRY(tfl_offsets(&m, &m.offset));
    if (m.offset == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: it has no metadata OfflineMemoryAllocation, so no plan",
                 path);
    MPL_TRY(mpl_new(ctx, plan.tensor, m.n_tensors));
    for (uint32_t i = 0; i < m.n_tensors; i++) {
        mpl_tflite_tensor *tensor = &plan.tensor[plan.n];

        if (!tfl_is_planned(&m.tensor[i]))
            continue;
        if (m.offset[i] < 0 || tfl_is_part(&m, i)) {
            plan.n_open += m.offset[i] < 0;
            plan.n_inside += m.offset[i] >= 0;
            continue;
        }
        tensor->name = m.tensor[i].name;
        m.tensor[i].name = NULL;
        tensor->bytes = m.tensor[i].bytes;
        tensor->offset = (uint64_t)m.offset[i];
        tfl_set_life(&m, &m.tensor[i], tensor);
        plan.n++;
    }
    *out = plan;
    memset(&plan, 0, sizeof plan);
out:
    mpl_tflite_plan_fini(ctx, &plan);
    tfl_close(&m);
    return st;
}

void mpl_tflite_plan_fini(mpl_ctx *ctx, mpl_tflite_plan *plan)
{
    for (uint32_t i = 0; i < plan->n; i++)
        mpl_free(ctx, plan->tensor[i].name);
    mpl_free(ctx, plan->tensor);
    memset(plan, 0, sizeof *plan);
}
