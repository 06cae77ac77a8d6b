/* residency_place.c -- offsets of pieces, and the moves between them. See residency_priv.h.
 *
 * A piece is a buffer's stay in one memory. In fast memory it lasts from a use to the last one that
 * it is kept for; what leaves before a step makes room for what comes before it. In slow memory
 * each buffer has one place, from its first bytes there to the last ones read. */
#include "planners/residency/residency_priv.h"

#define PLACE_TICKS UINT64_C(2000000) /* of the exact planner */

/* A problem of n pieces in one pool. */
static mpl_status pieces_new(mpl_residency *residency, uint32_t n, uint64_t capacity,
                             mpl_problem **out)
{
    MPL_PASS(mpl_problem_new(residency->run->ctx, residency->p->name, n, out));
    (*out)->n_steps = residency->p->n_steps;
    (*out)->pool_capacity[0] = capacity;
    for (uint32_t k = 0; k < n; k++)
        (*out)->align[k] = residency->p->align;
    return MPL_OK;
}

static uint32_t count_pieces(const mpl_residency *residency, const uint8_t *fast,
                             const uint8_t *kept)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < residency->n_uses; i++)
        n += fast[i] && !kept[i];
    return n;
}

/* Fills in the pieces of fast memory; piece_of[] of uses. */
static void fill_pieces(const mpl_residency *residency, const uint8_t *fast, const uint8_t *kept,
                        mpl_problem *q, uint32_t *piece_of)
{
    uint32_t n = 0;
    bool open = false;

    for (uint32_t i = 0; i < residency->n_uses; i++) {
        if (!fast[i])
            continue;
        if (!open)
            q->birth[n] = residency->p->at[i];
        q->bytes[n] = residency->p->bytes[residency->owner[i]];
        q->death[n] = residency->p->at[i] + 1;
        piece_of[i] = n;
        open = kept[i] != 0;
        n += !open;
    }
}

/* Runs one planner; *done: it has a plan, or a proof that there is none. */
static mpl_status run_planner(mpl_residency *residency, const char *name, uint64_t ticks,
                              const mpl_problem *q, mpl_plan **plan, bool *done)
{
    mpl_run run = mpl_run_default(residency->run->ctx);
    mpl_status st;

    run.budget_ticks = ticks;
    st = mpl_planner_run(mpl_planner_find(name), &run, q, plan);
    *done = st == MPL_OK;
    return st == MPL_ELIMIT ? MPL_OK : st;
}

/* What may be under way holds its place. */
static void lengthen(uint32_t n_moves, const mpl_timed *move, const uint32_t *piece_of,
                     mpl_problem *q)
{
    for (uint32_t k = 0; k < n_moves; k++) {
        uint32_t piece = piece_of[move[k].use];

        if (move[k].to_fast && move[k].from < q->birth[piece])
            q->birth[piece] = move[k].from;
        if (!move[k].to_fast && move[k].until > q->death[piece])
            q->death[piece] = move[k].until;
    }
}

mpl_status mpl_residency_place(mpl_residency *residency, const uint8_t *fast, const uint8_t *kept,
                               uint32_t n_moves, const mpl_timed *move, uint64_t *place,
                               mpl_placed *placed)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = residency->run->ctx;
    mpl_problem *q = NULL;
    mpl_plan *plan = NULL;
    uint32_t *piece_of = NULL, n = count_pieces(residency, fast, kept);
    bool done = false;

    *placed = (mpl_placed){.fits = n == 0};
    if (n == 0)
        goto out;
    MPL_TRY(pieces_new(residency, n, MPL_NO_CAPACITY, &q));
    MPL_TRY(mpl_new(ctx, piece_of, residency->n_uses));
    fill_pieces(residency, fast, kept, q, piece_of);
    lengthen(n_moves, move, piece_of, q);
    MPL_TRY(run_planner(residency, "greedy_size", UINT64_MAX, q, &plan, &done));
    placed->least = plan->peak_bytes;
    if (plan->peak_bytes > residency->p->capacity) {
        mpl_plan_free(ctx, plan);
        plan = NULL;
        q->pool_capacity[0] = residency->p->capacity;
        MPL_TRY(run_planner(residency, "exact", PLACE_TICKS, q, &plan, &done));
    }
    placed->never = done && plan->claim == MPL_INFEASIBLE;
    placed->fits = done && !placed->never;
    for (uint32_t i = 0; placed->fits && i < residency->n_uses; i++)
        if (fast[i])
            place[i] = plan->offset[piece_of[i]];
out:
    mpl_problem_free(ctx, q);
    mpl_plan_free(ctx, plan);
    mpl_free(ctx, piece_of);
    return st;
}

/* ---- slow memory and moves ---- */

/* When each buffer is in slow memory: from its first bytes there to the last use or return. */
static void lives_in_slow(const mpl_residency *residency, const mpl_residency_plan *plan,
                          uint32_t n, const mpl_timed *move, uint32_t *birth, uint32_t *death)
{
    memset(birth, 0xff, residency->p->n * sizeof *birth);
    for (uint32_t i = 0; i < residency->n_uses; i++) {
        mpl_buffer b = residency->owner[i];

        if (plan->fast[i])
            continue;
        birth[b] = birth[b] < residency->p->at[i] ? birth[b] : residency->p->at[i];
        death[b] = residency->p->at[i] + 1;
    }
    for (uint32_t k = 0; k < n; k++) {
        mpl_buffer b = residency->owner[move[k].use];
        uint32_t last = residency->p->at[move[k].use] + 1;

        if (!move[k].to_fast)
            birth[b] = birth[b] < move[k].from ? birth[b] : move[k].from;
        else
            death[b] = death[b] > last ? death[b] : last;
    }
}

/* Offsets in slow memory of the buffers that are ever there. */
static mpl_status place_slow(mpl_residency *residency, uint32_t n, const uint32_t *birth,
                             const uint32_t *death, uint64_t *at, mpl_residency_plan *plan)
{
    mpl_status st = MPL_OK;
    mpl_problem *q = NULL;
    mpl_plan *slow = NULL;
    bool done;
    uint32_t k = 0;

    if (n == 0)
        return MPL_OK;
    MPL_TRY(pieces_new(residency, n, MPL_NO_CAPACITY, &q));
    for (mpl_buffer b = 0; b < residency->p->n; b++)
        if (birth[b] != MPL_NONE) {
            q->birth[k] = birth[b];
            q->death[k] = death[b];
            q->bytes[k++] = residency->p->bytes[b];
        }
    MPL_TRY(run_planner(residency, "greedy_size", UINT64_MAX, q, &slow, &done));
    plan->slow_arena = slow->peak_bytes;
    for (mpl_buffer b = residency->p->n; b-- > 0;)
        if (birth[b] != MPL_NONE)
            at[b] = slow->offset[--k];
out:
    mpl_problem_free(residency->run->ctx, q);
    mpl_plan_free(residency->run->ctx, slow);
    return st;
}

mpl_status mpl_residency_finish(mpl_residency *residency, uint32_t n, const mpl_timed *move,
                                mpl_residency_plan *plan)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = residency->p;
    uint32_t *birth = NULL, *death = NULL, n_slow = 0;
    uint64_t *at = NULL;

    plan->moved_bytes = plan->slow_bytes = plan->cost = 0;
    plan->n_moves = n;
    MPL_TRY(mpl_new(residency->run->ctx, plan->move, n));
    MPL_TRY(mpl_new_each(residency->run->ctx, p->n, birth, death));
    MPL_TRY(mpl_new(residency->run->ctx, at, p->n));
    lives_in_slow(residency, plan, n, move, birth, death);
    for (mpl_buffer b = 0; b < p->n; b++) {
        plan->cost +=
            mpl_residency_cost(p, b, plan->fast, plan->kept, &plan->moved_bytes, &plan->slow_bytes);
        n_slow += birth[b] != MPL_NONE;
    }
    MPL_TRY(place_slow(residency, n_slow, birth, death, at, plan));
    for (uint32_t k = 0; k < n; k++)
        plan->move[k] = (mpl_move){.from = move[k].from,
                                   .step = move[k].until,
                                   .start_ns = move[k].start_ns,
                                   .buffer = residency->owner[move[k].use],
                                   .to_fast = move[k].to_fast,
                                   .fast_at = plan->place[move[k].use],
                                   .slow_at = at[residency->owner[move[k].use]]};
    for (uint32_t i = 0; i < residency->n_uses; i++) {
        uint64_t end = plan->place[i] + p->bytes[residency->owner[i]];

        if (plan->fast[i])
            plan->fast_bytes = mpl_max_u64(plan->fast_bytes, end);
        else
            plan->place[i] = at[residency->owner[i]];
    }
out:
    mpl_free_each(residency->run->ctx, birth, death, at);
    return st;
}
