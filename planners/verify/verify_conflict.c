/* verify_conflict.c -- the verifier's own conflict relation, from the lifetimes or the partial
 * order alone. See verify.h. */
#include "planners/verify/verify_priv.h"

uint32_t mpl_verify_gaps(const mpl_problem *p, mpl_buffer b)
{
    return p->gap_begin != NULL ? p->gap_begin[b + 1] - p->gap_begin[b] : 0;
}

/* Whether b is needed at `step`: it is not in the first gap that ends after `step`. */
bool mpl_verify_needed(const mpl_problem *p, mpl_buffer b, uint32_t step)
{
    uint32_t low = p->gap_begin != NULL ? p->gap_begin[b] : 0, high = low + mpl_verify_gaps(p, b),
             end = high;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (p->gap_to[mid] <= step)
            low = mid + 1;
        else
            high = mid;
    }
    return p->birth[b] <= step && step < p->death[b] && (low == end || step < p->gap_from[low]);
}

bool mpl_verify_before(const mpl_before *before, mpl_buffer a, mpl_buffer b)
{
    return before->row[(size_t)a * before->n_words + b / 64] >> (b % 64) & 1;
}

/* Whether some step needs both: then one is born there, or needed again there after a gap. */
static bool needed_at_once(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    if (mpl_verify_needed(p, b, p->birth[a]) || mpl_verify_needed(p, a, p->birth[b]))
        return true;
    for (uint32_t i = 0; i < mpl_verify_gaps(p, a); i++)
        if (mpl_verify_needed(p, b, p->gap_to[p->gap_begin[a] + i]))
            return true;
    for (uint32_t i = 0; i < mpl_verify_gaps(p, b); i++)
        if (mpl_verify_needed(p, a, p->gap_to[p->gap_begin[b] + i]))
            return true;
    return false;
}

bool mpl_verify_conflict(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    if (a == b || p->pool[a] != p->pool[b])
        return false;
    if (p->before != NULL)
        return !mpl_verify_before(p->before, a, b) && !mpl_verify_before(p->before, b, a);
    return needed_at_once(p, a, b);
}
