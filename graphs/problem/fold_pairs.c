/* fold_pairs.c -- in-place folding of a problem. See fold_pairs.h.
 *
 * Source   NNC's in-place pass: folds outputs onto inputs greedily, in topological order. The
 *          operator table decided which pairs are legal when the problem was made.
 * Cost     O(n + pairs), and n^2 / 64 for the rows of a partial order. */
#include "graphs/problem/fold_pairs.h"

#include "graphs/problem/subset.h"

/* Members of each group as a list in time order: next[] from the first on; MPL_NONE ends it. */
typedef struct groups {
    mpl_buffer *first; /* [n] first member of the buffer's group */
    mpl_buffer *next;  /* [n] the buffer that overwrites it */
} groups;

static bool is_fixed(const mpl_problem *p, mpl_buffer b)
{
    return p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
}

/* Marks buffers that are in a family with others. */
static mpl_status mark_families(mpl_ctx *ctx, const mpl_problem *p, uint8_t **in_family)
{
    MPL_PASS(mpl_new(ctx, *in_family, p->n));
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        if (p->inside[b] != b)
            (*in_family)[b] = (*in_family)[p->inside[b]] = 1;
    return MPL_OK;
}

static mpl_status group(mpl_ctx *ctx, const mpl_problem *p, groups *g)
{
    mpl_status st = MPL_OK;
    uint8_t *in_family = NULL;

    MPL_TRY(mark_families(ctx, p, &in_family));
    MPL_TRY(mpl_new_each(ctx, p->n, g->first, g->next));
    for (mpl_buffer b = 0; b < p->n; b++) {
        g->first[b] = b;
        g->next[b] = MPL_NONE;
    }
    /* Pairs are sorted by step, so an input's group is complete up to that input when its output
     * comes. In a partial order, pairs of incomparable steps come in any order. A group may then
     * gain members in front, hence the relabelling. */
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];

        if (g->next[in] != MPL_NONE || g->first[out] != out || g->first[in] == out ||
            is_fixed(p, in) || is_fixed(p, out) || in_family[in] || in_family[out])
            continue;
        g->next[in] = out;
        for (mpl_buffer b = out; b != MPL_NONE; b = g->next[b])
            g->first[b] = g->first[in];
    }
out:
    mpl_free(ctx, in_family);
    return st;
}

mpl_status mpl_problem_fold(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into)
{
    mpl_status st = MPL_OK;
    groups g = {0};
    uint32_t *begin = NULL, n = 0, n_members = 0;
    mpl_buffer *item = NULL;

    MPL_TRY(group(ctx, p, &g));
    MPL_TRY(mpl_new(ctx, begin, (size_t)p->n + 1));
    MPL_TRY(mpl_new(ctx, item, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (g.first[b] == b) {
            for (mpl_buffer m = b; m != MPL_NONE; m = g.next[m])
                item[n_members++] = m;
            begin[++n] = n_members;
        }
    MPL_TRY(mpl_problem_subset(
        ctx, p, &(mpl_members){n, begin, item},
        MPL_KEEP_POOLS | MPL_KEEP_ORDER | MPL_KEEP_FAMILIES | MPL_KEEP_ACCESS, into, out));
out:
    mpl_free_each(ctx, g.first, g.next, begin, item);
    return st;
}
