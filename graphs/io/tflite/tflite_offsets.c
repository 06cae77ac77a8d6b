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

mpl_status tfl_offsets(tfl_model *m, int64_t **offset)
{
    flat_vector graphs = tfl_list(&m->root, TFL_Model_subgraphs);
    const uint8_t *data;
    uint64_t bytes;

    MPL_PASS(tfl_metadata(m, "OfflineMemoryAllocation", &data, &bytes));
    if (bytes == 0)
        return MPL_OK;
    if (bytes < 4 * HEAD || bytes % 4 != 0 || (uint32_t)word(data, 0) > 1 ||
        (uint32_t)word(data, 1) > (graphs.n == 1 ? 1 : 0) ||
        (uint64_t)word(data, 2) != m->n_tensors || bytes / 4 - HEAD < m->n_tensors)
        return MPL_REFUSE(m->ctx,
                          "%.200s: its OfflineMemoryAllocation should hold version 0 or 1, "
                          "subgraph 0, and an offset for each of %u tensors",
                          m->path, m->n_tensors);
    MPL_PASS(mpl_new(m->ctx, *offset, m->n_tensors));
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (((*offset)[i] = word(data, HEAD + i)) < -1)
            return MPL_REFUSE(
                m->ctx, "%.200s: the offset of tensor %u is %" PRId64 "; -1 or more is possible",
                m->path, i, (*offset)[i]);
    return MPL_OK;
}

bool tfl_is_planned(const tfl_tensor *t)
{
    return t->data == NULL && !t->variable && t->bytes > 0 &&
           (t->birth != MPL_NONE || t->last != MPL_NONE || t->is_input);
}

void tfl_set_life(const tfl_model *m, const tfl_tensor *t, mpl_tflite_tensor *out)
{
    uint32_t end = out->birth = t->birth != MPL_NONE ? t->birth + 1 : t->is_input ? 0 : t->last + 1;

    if (t->is_output)
        end = m->n_operators;
    else if (t->last != MPL_NONE)
        end = t->last + 1;
    out->death = (end > out->birth ? end : out->birth) + 1;
}

/* Whether operator `op` works in scratch memory, and the file puts the tensor inside it: its place
 * is then the operator's own. Two of one size lie in each other; the first counts. */
static bool is_part_of(const tfl_model *m, uint32_t op, uint32_t id)
{
    const tfl_tensor *part = &m->tensor[id];
    const tfl_operator *o = op != MPL_NONE ? &m->op[op] : NULL;

    for (uint32_t k = 0; o != NULL && k < o->n_in && k < TFL_SCRATCH_INPUTS; k++) {
        uint32_t other = o->in[k];
        const tfl_tensor *t = &m->tensor[other != MPL_NONE ? other : id];
        int64_t at = m->offset[other != MPL_NONE ? other : id];

        if (t != part && tfl_is_planned(t) && t->birth == MPL_NONE && !t->is_input && at >= 0 &&
            (part->bytes < t->bytes || (part->bytes == t->bytes && other < id)) &&
            m->offset[id] >= at && (uint64_t)(m->offset[id] - at) + part->bytes <= t->bytes)
            return true;
    }
    return false;
}

bool tfl_is_part(const tfl_model *m, uint32_t id)
{
    return is_part_of(m, m->tensor[id].birth, id) || is_part_of(m, m->tensor[id].last, id);
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
        mpl_tflite_tensor *t = &plan.tensor[plan.n];

        if (!tfl_is_planned(&m.tensor[i]))
            continue;
        if (m.offset[i] < 0 || tfl_is_part(&m, i)) {
            plan.n_open += m.offset[i] < 0;
            plan.n_inside += m.offset[i] >= 0;
            continue;
        }
        t->name = m.tensor[i].name;
        m.tensor[i].name = NULL;
        t->bytes = m.tensor[i].bytes;
        t->offset = (uint64_t)m.offset[i];
        tfl_set_life(&m, &m.tensor[i], t);
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
