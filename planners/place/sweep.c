/* sweep.c -- the free bytes at the current step, for buffers in order of birth.
 *
 * All placed buffers were born earlier, so a buffer conflicts exactly with those alive at its
 * birth. The gaps at its birth stay free for its whole live range. O(log n + gaps) a buffer. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

struct mpl_space {
    mpl_spans hole;     /* the last one is unbounded */
    uint32_t *by_death; /* [n_members] slots by (death, position in the order) */
    uint32_t n_dead;
    mpl_span *held; /* [n_members] by slot: range that its death frees, less joined buffers */
};

static void sweep_close(mpl_placement *placement)
{
    mpl_ctx *ctx = placement->run->ctx;

    if (placement->space == NULL)
        return;
    mpl_free_each(ctx, placement->space->hole.item, placement->space->by_death,
                  placement->space->held, placement->space);
    placement->space = NULL;
}

static mpl_status sweep_open(mpl_placement *placement)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = placement->run->ctx;
    const mpl_problem *p = placement->p;
    uint64_t *death = NULL;

    MPL_TRY(mpl_new(ctx, placement->space, 1));
    MPL_TRY(mpl_new_each(ctx, placement->n_members, placement->space->by_death,
                         placement->space->held, death));
    mpl_ids_ascending(placement->n_members, placement->space->by_death);
    for (uint32_t i = 0; i < placement->n_members; i++)
        death[i] = p->death[placement->member[i]];
    MPL_TRY(mpl_sort_ids(ctx, placement->n_members, placement->space->by_death, death));
    MPL_TRY(mpl_spans_add(ctx, &placement->space->hole, (mpl_span){0, UINT64_MAX}));
out:
    mpl_free(ctx, death);
    return st;
}

static mpl_status sweep_find(mpl_placement *placement, mpl_buffer b, mpl_gap *gap)
{
    mpl_space *space = placement->space;
    const mpl_problem *p = placement->p;

    for (; p->death[placement->member[space->by_death[space->n_dead]]] <= p->birth[b];
         space->n_dead++)
        MPL_PASS(mpl_spans_add(placement->run->ctx, &space->hole,
                               space->held[space->by_death[space->n_dead]]));
    for (uint32_t i = 0; i < space->hole.n; i++) {
        mpl_span hole = space->hole.item[i];
        uint64_t at = mpl_align_up(hole.begin, p->align[b]);

        placement->run->ticks++;
        if (at > hole.end || hole.end - at < p->bytes[b])
            continue;
        if (mpl_placement_offer(placement, (mpl_gap){at, hole.end - at - p->bytes[b]}, gap))
            break;
    }
    return MPL_OK;
}

/* An input born at the same step may have joined a buffer that conflicts with b. */
static bool sweep_may_join(mpl_placement *placement, mpl_buffer b, mpl_buffer partner)
{
    return placement->p->birth[partner] < placement->p->birth[b] &&
           placement->space->held[placement->slot[partner]].begin == placement->offset[partner];
}

static mpl_status sweep_insert(mpl_placement *placement, mpl_buffer b, mpl_buffer partner)
{
    mpl_span *held = &placement->space->held[placement->slot[b]];

    *held = (mpl_span){placement->offset[b], mpl_placement_end(placement, b, placement->offset[b])};
    if (partner == MPL_NONE)
        return mpl_spans_remove(placement->run->ctx, &placement->space->hole, *held);
    placement->space->held[placement->slot[partner]].begin = held->end;
    return MPL_OK;
}

const mpl_space_kind mpl_space_sweep = {
    .open = sweep_open,
    .close = sweep_close,
    .find = sweep_find,
    .may_join = sweep_may_join,
    .insert = sweep_insert,
};
