/* tflm_greedy.c -- TensorFlow Lite Micro's greedy planner: the largest buffer first, each at the
 * lowest gap between those alive with it.
 *
 * Idea     As greedy_size; small enough for a microcontroller, which plans when it starts.
 * Source   tensorflow/tflite-micro, memory_planner/greedy_memory_planner.cc: a stable sort by size,
 *          descending, of ids that were put down from the last to the first, so that of equal sizes
 *          the last id goes first; offline-planned buffers keep their offsets and go before all.
 * Differs  From greedy_size: ties go by id, not by lifetime, and in-place pairs are not taken (its
 *          allocation builder decides those beforehand). TFLM rounds sizes up to 16 bytes before it
 *          plans; here the problem's alignment decides.
 * Cost     O(n log n) and the occupied ranges met; TFLM's own walks a list, O(n^2).
 * Limits   Never moves a placed buffer; no bound on the distance to the optimum. */
#include "planners/production/production.h"

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_new(run->ctx, order, p->n));
    MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_larger, mpl_key_later, order));
    MPL_TRY(mpl_production_place(run, p, order, MPL_FIT_LOWEST, out));
out:
    mpl_free(run->ctx, order);
    return st;
}

const mpl_planner mpl_planner_tflm_greedy = {
    .name = "tflm_greedy",
    .about = "TFLite Micro's greedy planner: largest first, lowest gap, of equals the last",
    .source = "tensorflow/tflite-micro greedy_memory_planner",
    .traits = MPL_SERIAL_ONLY | MPL_PRODUCTION,
    .plan = plan,
};
