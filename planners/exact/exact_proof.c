/* exact_proof.c -- repeats the search and writes a refutation. See exact_priv.h and
 * CERTIFICATES.md.
 *
 * Idea     One member at a time, without noise, refutes again what the portfolio refuted, in steps
 *          that a checker can follow. The choice of cells alone decides the size of a tree without
 *          solutions, so the members differ in it. Each gets a few nodes, then all get more. A
 *          state that failed before is referred to while its refutation is in the text; the text of
 *          a component with a solution is removed.
 * Source   this project */
#include "planners/exact/exact_priv.h"

#define FIRST_NODES 256

static const struct member {
    uint8_t pick, mirrored;
} members[] = {
    {MPL_PICK_SCORE_LOW, 0},   {MPL_PICK_SCORE_LOW, 1},  {MPL_PICK_SCORE_TIGHT, 0},
    {MPL_PICK_SCORE_TIGHT, 1}, {MPL_PICK_SCORE_HIGH, 0}, {MPL_PICK_TIGHT, 0},
    {MPL_PICK_LOW, 0},         {MPL_PICK_TIGHT, 1},
};

static mpl_status try_member(const mpl_exact_part *part, const struct member *member, uint64_t cap,
                             uint64_t node_limit, mpl_exact_effort *effort, mpl_proof *proof,
                             mpl_exact_verdict *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = part->ctx;
    mpl_exact_case *exact_case = NULL;
    mpl_exact_state *state = NULL;
    mpl_exact_search q = {0};
    uint32_t *rank = NULL, *id = NULL, *set = NULL;
    size_t mark = proof->n;

    MPL_TRY(mpl_exact_case_new(ctx, part->item, part->n, member->mirrored != 0, &exact_case));
    mpl_exact_case_limit(exact_case, part->item, part->unit, cap);
    MPL_TRY(mpl_exact_state_new(ctx, exact_case, &state));
    MPL_TRY(mpl_exact_search_init(&q, state));
    MPL_TRY(mpl_new_each(ctx, part->n, rank, id));
    MPL_TRY(mpl_new(ctx, set, (size_t)exact_case->n_sections));
    for (uint32_t i = 0; i < part->n; i++)
        id[i] = part->buffer[exact_case->item[i]];
    q.rank = rank;
    q.pick = (mpl_exact_pick)member->pick;
    q.node_limit = node_limit;
    q.tick_limit = effort->tick_limit - effort->ticks;
    q.deadline_ns = effort->deadline_ns;
    q.watch = effort->watch;
    mpl_exact_state_reset(state);
    mpl_exact_search_prove(&q, part->unit, id, set, proof);
    *out = mpl_exact_search_run(&q);
    effort->ticks += state->ticks;
    effort->by_clock = effort->by_clock || q.by_clock;
    if (state->no_memory || (proof->failed && !proof->full))
        st = MPL_EMEM;
    if (*out != MPL_EXACT_FAILED)
        proof->n = mark;
out:
    mpl_exact_search_fini(&q);
    mpl_exact_state_free(ctx, state);
    mpl_exact_case_free(ctx, exact_case);
    mpl_free_each(ctx, rank, id, set);
    return st;
}

mpl_status mpl_exact_part_prove(const mpl_exact_part *part, uint64_t cap, mpl_exact_effort *effort,
                                mpl_proof *proof, mpl_exact_verdict *verdict)
{
    *verdict = MPL_EXACT_STOPPED;
    for (uint64_t nodes = FIRST_NODES; nodes < MPL_PROOF_MOST; nodes *= 4)
        for (size_t k = 0; k < sizeof members / sizeof *members && *verdict == MPL_EXACT_STOPPED;
             k++) {
            if (effort->by_clock || effort->ticks >= effort->tick_limit || proof->full)
                return MPL_OK;
            MPL_PASS(try_member(part, &members[k], cap, nodes, effort, proof, verdict));
        }
    return MPL_OK;
}
