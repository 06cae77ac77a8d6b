/* executorch.c -- ExecuTorch's greedy planner: whole shared objects, in which smaller tensors may
 * stand on top of one another.
 *
 * Idea     Largest first; a tensor goes to the first object not in use at its time, else on
 *          top of those in use, if the object is large enough; else it opens an object.
 * Source   pytorch/executorch, exir/memory_planning.py: greedy, pick_shared_obj (1.0); specs are
 *          sorted by size through bisect.insort and reversed, so the later of equals is first.
 *          overlap=0: allow_overlapping_allocations=False, as the Vulkan backend runs it.
 * Differs  Its sort comes before the sizes are rounded up to the alignment; here, too. Ties go by
 *          id, descending; its specs come out of a Python set, whose order is of one process.
 * Cost     O(n^2) time in the worst case, 60 n bytes of scratch.
 * Limits   Objects never touch: what two of them leave free side by side is lost. */
#include "planners/production/production.h"

/* The end of the highest buffer of an object that is alive with b, from its begin; 0: none. */
static uint64_t highest(const mpl_objects *objects, mpl_buffer b, uint32_t object,
                        const uint64_t *offset)
{
    const mpl_problem *p = objects->p;
    uint64_t end = 0;

    for (mpl_buffer c = objects->newest[object]; c != MPL_NONE; c = objects->older[c])
        if (p->birth[b] < p->death[c] && p->birth[c] < p->death[b])
            end = mpl_max_u64(end, offset[c] + objects->bytes[c] - objects->begin[object]);
    return end;
}

static void pick(mpl_objects *objects, mpl_buffer b, bool overlap, uint64_t *offset)
{
    uint32_t fits = MPL_NONE;
    uint64_t at = 0;

    for (uint32_t i = 0; i < objects->n; i++) {
        uint64_t end;

        if (objects->pool[i] != objects->p->pool[b])
            continue;
        end = highest(objects, b, i, offset);
        if (end == 0) {
            mpl_objects_put(objects, b, i, objects->begin[i], offset);
            return;
        }
        if (overlap && fits == MPL_NONE &&
            objects->bytes[b] <= objects->end[i] - objects->begin[i] - end) {
            fits = i;
            at = objects->begin[i] + end;
        }
    }
    if (fits == MPL_NONE) {
        fits = mpl_objects_open(objects, b);
        at = objects->begin[fits];
    }
    mpl_objects_put(objects, b, fits, at, offset);
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    int64_t overlap;
    mpl_objects o = {0};
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_run_param_int(run, "overlap", 0, 1, 1, &overlap));
    MPL_TRY(mpl_new_each(run->ctx, p->n, out->block, order));
    MPL_TRY(mpl_objects_new(run->ctx, p, &o));
    MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_larger, mpl_key_later, order));
    for (uint32_t i = 0; i < p->n; i++) {
        pick(&o, order[i], overlap != 0, out->offset);
        out->block[order[i]] = o.object[order[i]];
    }
    run->ticks += p->n;
    out->claim = MPL_FEASIBLE;
out:
    mpl_objects_fini(run->ctx, &o);
    mpl_free(run->ctx, order);
    return st;
}

const mpl_planner mpl_planner_executorch = {
    .name = "executorch",
    .about = "ExecuTorch's greedy: shared objects, largest first, stacked where they have room",
    .source = "pytorch/executorch memory_planning.py",
    .params = "overlap=0|1",
    .traits = MPL_BLOCKS | MPL_SERIAL_ONLY | MPL_PRODUCTION,
    .plan = plan,
};
