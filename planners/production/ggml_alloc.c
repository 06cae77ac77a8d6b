/* ggml_alloc.c -- ggml's graph allocator, of llama.cpp and whisper.cpp.
 *
 * Idea     Best fit in the order of execution; an operation that may work in place takes over its
 *          dying operand's block, and the end of the arena is used last.
 * Source   ggml-org/llama.cpp, ggml/src/ggml-alloc.c: ggml_dyn_tallocr_alloc, ggml_gallocr, as
 *          planners/online/online_ggml.c has it.
 * Differs  Operands are tried by id, not in the operator's order; ggml asks for the same layout,
 *          here for the same bytes. One backend buffer: ggml splits what exceeds one.
 * Cost     O(n log n + n * holes).
 * Limits   As every allocator without a future: late large tensors meet a fragmented arena. */
#include "planners/production/production.h"

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_production_play(run, p, mpl_allocator_find("ggml"), true, out);
}

const mpl_planner mpl_planner_ggml_alloc = {
    .name = "ggml_alloc",
    .about = "ggml's graph allocator: in place, else best fit, the end of the arena last",
    .source = "ggml-org/llama.cpp ggml-alloc.c",
    .traits = MPL_SERIAL_ONLY | MPL_UNFIXED_ONLY | MPL_USES_IN_PLACE | MPL_PRODUCTION,
    .plan = plan,
};
