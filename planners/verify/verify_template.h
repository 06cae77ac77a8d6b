/* verify_template.h -- checks templates without any planner. */
#pragma once

#include "planners/plan/template.h"

/* Checks that the template's offsets are right for every shape of its range. The boxes of its cells
 * are disjoint and hold every point. In each cell, buffers that conflict lie one below the other by
 * a chain of relations (of a constant plan: by their largest sizes, within its arenas), are parts
 * of one family at distances that are proved, or are an in-place pair at one offset whose output is
 * proved to be no larger; relations have no circle. The loads conflict pairwise. No shape exceeds a
 * stated regret, proved by halving the box; the stated shape attains it. MPL_EINVALID: one line
 * that names the cell and two buffers. MPL_ELIMIT: the regret was neither proved nor refuted within
 * `most_boxes` boxes. O(buffers^2 * cells + boxes). */
mpl_status mpl_verify_template(mpl_ctx *ctx, const mpl_template *tmpl, uint32_t most_boxes);
