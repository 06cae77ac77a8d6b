/* height.c -- what forces the height of pool 0's arena: buffers that prove it, or a chain of
 * buffers that lie on one another. See explain.h. */
#include "graphs/problem/bounds/bounds.h"
#include "harness/explain/explain.h"

const char *const mpl_height_name[] = {"conflicts", "search", "chain"};

static void add(const mpl_problem *p, mpl_buffer b, mpl_height *to)
{
    to->buffer[to->n++] = b;
    to->bytes += p->bytes[b];
}

/* The witness of the bound; without one, what is alive at the highest point. */
static mpl_status find_conflicts(mpl_ctx *ctx, const mpl_problem *p, const mpl_highest *highest,
                                 mpl_height *out)
{
    mpl_status st = MPL_OK;
    uint8_t *member = NULL;
    uint64_t bound;

    MPL_TRY(mpl_new(ctx, member, p->n));
    MPL_TRY(mpl_lower_bound(ctx, p, 0, &bound, member));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (member[b])
            add(p, b, out);
    for (uint32_t i = 0; i < highest->n && out->n == 0; i++)
        if (highest->portion[i].kind < MPL_PORTION_alignment)
            member[highest->portion[i].buffer] = 2;
    for (mpl_buffer b = 0; b < p->n; b++)
        if (member[b] == 2)
            add(p, b, out);
out:
    mpl_free(ctx, member);
    return st;
}

/* The highest buffer below b that conflicts with it; ties by id. MPL_NONE: none. */
static mpl_buffer below(const mpl_problem *p, const mpl_plan *plan, mpl_buffer b)
{
    mpl_buffer best = MPL_NONE;
    uint64_t most = 0;

    for (mpl_buffer c = 0; c < p->n; c++) {
        uint64_t end = plan->offset[c] + p->bytes[c];

        if (c != b && p->pool[c] == 0 && end <= plan->offset[b] && end > most &&
            mpl_conflict(p, b, c)) {
            best = c;
            most = end;
        }
    }
    return best;
}

static void find_chain(const mpl_problem *p, const mpl_plan *plan, const mpl_highest *highest,
                       mpl_height *out)
{
    mpl_buffer b = highest->portion[highest->n - 1].buffer;

    for (; b != MPL_NONE; b = below(p, plan, b))
        add(p, b, out);
}

mpl_status mpl_height_find(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                           const mpl_highest *highest, mpl_height *out)
{
    const mpl_problem *p = job->problem;

    *out = (mpl_height){.by = MPL_HEIGHT_CHAIN};
    if (plan->spread.n > 0 || plan->peak_bytes == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, out->buffer, p->n));
    if (plan->peak_bytes == job->bound_bytes) {
        out->by = MPL_HEIGHT_CONFLICTS;
        MPL_PASS(find_conflicts(ctx, p, highest, out));
    } else {
        out->by = plan->claim == MPL_OPTIMAL ? MPL_HEIGHT_SEARCH : MPL_HEIGHT_CHAIN;
        find_chain(p, plan, highest, out);
    }
    return MPL_OK;
}
