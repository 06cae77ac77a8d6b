/* ort_pattern.c -- ONNX Runtime's memory pattern: best fit in the order of execution, offline.
 *
 * Idea     One run is traced; later runs take one block and place each tensor where the trace had
 *          it.
 * Source   microsoft/onnxruntime, core/framework/mem_pattern_planner.h: TraceAllocation takes the
 *          gap with the fewest bytes to spare, the lowest of equals, what is free below the highest
 *          end so far counted among them; TraceFree opens a gap.
 * Differs  It is the online allocator best_fit, played. ONNX Runtime rounds sizes up to 256 bytes;
 *          here the problem's alignment decides. In-place reuse is decided before it, and is not
 *          here. A step allocates by id.
 * Cost     O(n log n + n * holes).
 * Limits   As every allocator without a future: late large tensors meet a fragmented arena. */
#include "planners/production/production.h"

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_production_play(run, p, mpl_allocator_find("best_fit"), false, out);
}

const mpl_planner mpl_planner_ort_pattern = {
    .name = "ort_pattern",
    .about = "ONNX Runtime's memory pattern: best fit in the order of execution, one arena",
    .source = "microsoft/onnxruntime mem_pattern_planner",
    .traits = MPL_SERIAL_ONLY | MPL_UNFIXED_ONLY | MPL_PRODUCTION,
    .plan = plan,
};
