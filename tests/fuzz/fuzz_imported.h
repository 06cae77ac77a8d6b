/* fuzz_imported.h -- what holds of a plan that a reader took: its problem is valid, and it can be
 * verified safely. */
#pragma once

#include "graphs/problem/bounds/bounds.h"
#include "planners/import/import.h"
#include "planners/verify/verify.h"
#include "tests/fuzz/fuzz.h"

static inline void must_be_plan(mpl_ctx *ctx, const mpl_problem *p, const mpl_import *got)
{
    uint64_t live = 0, packed = 0;
    bool adds_up = mpl_lower_bound(ctx, p, 0, &live, NULL) == MPL_OK;

    must(mpl_problem_check(ctx, p) == MPL_OK, ctx);
    must(got->plan->n == p->n && strchr(got->note, '\n') == NULL, ctx);
    if (mpl_verify(ctx, p, got->plan) != MPL_OK)
        return;
    must(!adds_up || got->plan->peak_bytes >= live, ctx);
    must(mpl_plan_packed(ctx, p, got->plan, &packed) == MPL_OK, ctx);
}
