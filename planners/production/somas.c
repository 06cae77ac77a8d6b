/* somas.c -- MindSpore's SOMAS: largest first into shared objects, or into one, by best or lowest
 * fit; the best of the four.
 *
 * Idea     Several cheap heuristics, of which none is always ahead, and the conflicts of the graph
 *          (of streams, too) in place of lifetimes.
 * Source   mindspore-ai/mindspore, backend/common/somas: somas_solver_alg.cc, somas_solver_core.cc:
 *          a new object ("footprint") is as large as its first tensor, and a tensor goes to the
 *          first object with a gap, the smallest one (fit=best) or the lowest (fit=lowest); or one
 *          object without end (objects=one). Sorted by size, descending, then by index.
 * Differs  Nothing is marked as living for ever, contiguous, or a graph's output, which MindSpore
 *          places apart. Sizes are rounded up to the pool's largest alignment (512 there). A budget
 *          of ticks leaves out the shared objects, as far as the one object gives a plan.
 * Cost     One object: as greedy_size. Shared ones: O(n^2), 60 n bytes of scratch.
 * Limits   Never moves a placed buffer; no bound on the distance to the optimum. */
#include <stdlib.h>

#include "planners/production/production.h"

static int compare_spans(const void *a, const void *b)
{
    const mpl_span *span = a, *y = b;

    if (span->begin != y->begin)
        return span->begin < y->begin ? -1 : 1;
    return (span->end > y->end) - (span->end < y->end); /* equal spans are interchangeable */
}

/* What b may not touch in an object, sorted; their number. */
static uint32_t collect(mpl_run *run, const mpl_objects *objects, mpl_buffer b, uint32_t object,
                        const uint64_t *offset)
{
    uint32_t n = 0;

    for (mpl_buffer c = objects->newest[object]; c != MPL_NONE; c = objects->older[c]) {
        run->ticks++;
        if (mpl_conflict(objects->p, b, c))
            objects->taken[n++] = (mpl_span){offset[c], offset[c] + objects->bytes[c]};
    }
    if (n > 1)
        qsort(objects->taken, n, sizeof *objects->taken, compare_spans);
    return n;
}

/* A gap of the object for b, or false. */
static bool find_gap(mpl_run *run, const mpl_objects *objects, mpl_buffer b, uint32_t object,
                     mpl_fit fit, const uint64_t *offset, uint64_t *at)
{
    uint32_t n = collect(run, objects, b, object, offset);
    uint64_t from = objects->begin[object], least = UINT64_MAX;

    for (uint32_t i = 0; i <= n; i++) {
        uint64_t to = i < n ? objects->taken[i].begin : objects->end[object];

        if (to > from && to - from >= objects->bytes[b] && to - from < least) {
            *at = from;
            least = to - from;
            if (fit == MPL_FIT_LOWEST)
                return true;
        }
        if (i < n)
            from = mpl_max_u64(from, objects->taken[i].end);
    }
    return least < UINT64_MAX;
}

/* False: the budget ended. */
static bool share(mpl_run *run, mpl_objects *objects, const mpl_buffer *order, mpl_fit fit,
                  uint64_t *offset)
{
    for (uint32_t i = 0; i < objects->p->n; i++) {
        mpl_buffer b = order[i];
        uint32_t object = 0;
        uint64_t at = 0;

        if (run->ticks > run->budget_ticks || mpl_run_late(run))
            return false;
        while (object < objects->n && (objects->pool[object] != objects->p->pool[b] ||
                                       !find_gap(run, objects, b, object, fit, offset, &at)))
            object++;
        if (object == objects->n) {
            object = mpl_objects_open(objects, b);
            at = objects->begin[object];
        }
        mpl_objects_put(objects, b, object, at, offset);
    }
    return true;
}

/* Takes over the pools that shared objects plan lower. */
static mpl_status try_shared(mpl_run *run, const mpl_problem *p, const mpl_buffer *order,
                             mpl_fit fit, bool first, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_objects o = {0};
    uint64_t *offset = NULL;

    MPL_TRY(mpl_new(run->ctx, offset, p->n));
    MPL_TRY(mpl_objects_new(run->ctx, p, &o));
    if (!share(run, &o, order, fit, offset)) {
        if (first)
            MPL_FAIL(run->ctx, MPL_ELIMIT, "somas: no plan of shared objects within the budget");
    } else if (first) {
        memcpy(out->offset, offset, p->n * sizeof *offset);
        out->claim = MPL_FEASIBLE;
    } else {
        mpl_place_take_lower(p, offset, out->offset);
    }
out:
    mpl_objects_fini(run->ctx, &o);
    mpl_free(run->ctx, offset);
    return st;
}

static mpl_status try_one(mpl_run *run, const mpl_problem *p, const mpl_buffer *order, mpl_fit fit,
                          bool first, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_problem rounded = *p; /* a shallow copy: it owns nothing of its own but bytes */
    mpl_plan *other = NULL;
    mpl_objects o = {0};

    MPL_TRY(mpl_objects_new(run->ctx, p, &o));
    MPL_TRY(mpl_plan_new(run->ctx, p, &other));
    rounded.bytes = o.bytes;
    MPL_TRY(mpl_production_place(run, &rounded, order, fit, other));
    if (first) {
        memcpy(out->offset, other->offset, p->n * sizeof *out->offset);
        out->claim = MPL_FEASIBLE;
    } else {
        mpl_place_take_lower(p, other->offset, out->offset);
    }
out:
    mpl_objects_fini(run->ctx, &o);
    mpl_plan_free(run->ctx, other);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    const char *objects = mpl_run_param(run, "objects"), *fit = mpl_run_param(run, "fit");
    mpl_buffer *order = NULL;
    bool first = true;

    MPL_TRY(mpl_new(run->ctx, order, p->n));
    MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_larger, mpl_key_larger, order));
    for (int i = 0; i < 4; i++) {
        bool one = i < 2, best = i % 2 == 0;

        if ((objects != NULL && one != (strcmp(objects, "one") == 0)) ||
            (fit != NULL && best != (strcmp(fit, "best") == 0)))
            continue;
        MPL_TRY((one ? try_one : try_shared)(run, p, order, best ? MPL_FIT_BEST : MPL_FIT_LOWEST,
                                             first, out));
        first = false;
    }
out:
    mpl_free(run->ctx, order);
    return st;
}

const mpl_planner mpl_planner_somas = {
    .name = "somas",
    .about = "MindSpore's SOMAS: shared objects or one, best or lowest fit, the best of the four",
    .source = "mindspore-ai/mindspore somas",
    .params = "objects=one|shared,fit=best|lowest",
    .traits = MPL_UNFIXED_ONLY | MPL_PRODUCTION,
    .plan = plan,
};
