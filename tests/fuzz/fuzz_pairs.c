/* fuzz_pairs.c -- partial orders with in-place pairs from the bytes: whatever passes the problem
 * check is folded to an order, bounded and planned, and the plans verify. The first byte is the
 * number of buffers, two bytes each give a buffer, and the others in twos an arc or a pair. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/fuzz/fuzz.h"

#include "graphs/problem/before.h"
#include "graphs/problem/fold_pairs.h"
#include "planners/planner.h"
#include "planners/verify/verify.h"

enum { MOST = 12, ROOM = 128 };

typedef struct bytes {
    const uint8_t *at;
    size_t n;
} bytes;

static uint32_t draw(bytes *from, uint32_t n)
{
    if (from->n == 0)
        return 0;
    from->n--;
    return *from->at++ % n;
}

static mpl_status read_relations(mpl_ctx *ctx, bytes *from, mpl_problem *p)
{
    uint32_t arc_from[ROOM], arc_to[ROOM], n_arcs = 0, step = 0;
    mpl_before *before = NULL;

    MPL_PASS(mpl_new_each(ctx, ROOM, p->in_place_in, p->in_place_out, p->in_place_step));
    while (from->n >= 2 && n_arcs < ROOM && p->n_in_place < ROOM) {
        uint32_t a = draw(from, 2 * p->n), b = draw(from, p->n);

        if (a < p->n) {
            arc_from[n_arcs] = a, arc_to[n_arcs++] = b;
        } else {
            p->in_place_in[p->n_in_place] = a - p->n;
            p->in_place_out[p->n_in_place] = b;
            p->in_place_step[p->n_in_place++] = step++;
        }
    }
    MPL_PASS(mpl_before_from_arcs(ctx, p->n, n_arcs, arc_from, arc_to, &before));
    p->before = before;
    return MPL_OK;
}

static mpl_status read_problem(mpl_ctx *ctx, bytes *from, mpl_problem **out)
{
    MPL_PASS(mpl_problem_new(ctx, "fuzz", 1 + draw(from, MOST), out));
    for (mpl_buffer b = 0; b < (*out)->n; b++) {
        (*out)->bytes[b] = 1 + draw(from, 64);
        (*out)->align[b] = 1u << draw(from, 4);
    }
    MPL_PASS(read_relations(ctx, from, *out));
    return mpl_problem_check(ctx, *out);
}

static void try_planner(mpl_ctx *ctx, const mpl_problem *p, const char *name)
{
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);

    run.budget_ticks = 20000;
    must(mpl_planner_run(mpl_planner_find(name), &run, p, &plan) == MPL_OK, ctx);
    must(mpl_verify(ctx, p, plan) == MPL_OK, ctx);
    must(plan->bound_bytes <= plan->peak_bytes, ctx);
    mpl_plan_free(ctx, plan);
}

static void try_problem(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_problem *folded = NULL;
    uint32_t into[MOST];
    uint64_t bound;

    must(mpl_problem_fold(ctx, p, &folded, into) == MPL_OK, ctx);
    must(mpl_problem_check(ctx, folded) == MPL_OK, ctx);
    mpl_problem_free(ctx, folded);
    must(mpl_lower_bound(ctx, p, 0, &bound, NULL) == MPL_OK, ctx);
    try_planner(ctx, p, "nnc_2019");
    try_planner(ctx, p, "nnc_arena");
    try_planner(ctx, p, "exact");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    bytes from = {data, size};
    mpl_problem *p = NULL;

    if (read_problem(&ctx, &from, &p) == MPL_OK)
        try_problem(&ctx, p);
    mpl_problem_free(&ctx, p);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
