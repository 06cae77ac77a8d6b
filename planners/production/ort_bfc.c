/* ort_bfc.c -- ONNX Runtime's BFC arena, which serves what its memory pattern does not know.
 *
 * Idea     Best fit with coalescing in regions that grow: a run without a plan.
 * Source   microsoft/onnxruntime, core/framework/bfc_arena.cc, as planners/online/online_bfc.c has
 *          it; TensorFlow's BFC allocator is its origin.
 * Differs  The plan ends with the last buffer; the arena holds its last region to the end, as
 *          `memplan replay --allocator bfc` counts it. A step allocates by id.
 * Cost     O(n log n + n * chunks).
 * Limits   Blocks are multiples of 256 bytes, and regions never join. */
#include "planners/production/production.h"

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_production_play(run, p, mpl_allocator_find("bfc"), false, out);
}

const mpl_planner mpl_planner_ort_bfc = {
    .name = "ort_bfc",
    .about = "ONNX Runtime's BFC arena: best fit with coalescing in regions that double",
    .source = "microsoft/onnxruntime bfc_arena",
    .traits = MPL_SERIAL_ONLY | MPL_UNFIXED_ONLY | MPL_PRODUCTION,
    .plan = plan,
};
