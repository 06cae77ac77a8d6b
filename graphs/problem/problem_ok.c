/* problem_ok.c -- invariants of a problem that our own code made. See mpl_problem_ok in
 * problem.h. */
#include "graphs/problem/before.h"

/* Whether the rows are the closure of the reduction: b reaches its successors and what they
 * reach. */
static bool closure_ok(const mpl_before *before)
{
    for (uint32_t w = 0; w < before->n_words; w++)
        for (uint32_t a = 0; a < before->n; a++) {
            uint64_t reached = 0;

            for (uint32_t i = before->red_begin[a]; i < before->red_begin[a + 1]; i++) {
                uint32_t b = before->red_item[i];

                reached |= before->row[(size_t)b * before->n_words + w];
                reached |= b / 64 == w ? UINT64_C(1) << (b % 64) : 0;
            }
            if (reached != before->row[(size_t)a * before->n_words + w])
                return mpl_broken("what buffer %u is before is not what its successors say", a);
        }
    return true;
}

/* Whether the lists of n buffers hold events in range, ascending. */
static bool events_ok(const char *what, uint32_t n, const uint32_t *begin, const uint32_t *item,
                      uint32_t n_events)
{
    for (uint32_t b = 0; b < n; b++) {
        if (begin[b] > begin[b + 1])
            return mpl_broken("the %s events of buffer %u end before they begin", what, b);
        for (uint32_t i = begin[b]; i < begin[b + 1]; i++)
            if (item[i] >= n_events || (i > begin[b] && item[i] <= item[i - 1]))
                return mpl_broken("buffer %u has %s event %u of %u, or out of order", b, what,
                                  item[i], n_events);
    }
    return true;
}

static bool access_ok(const mpl_access *access, uint32_t n)
{
    for (uint32_t e = 0; e < access->n_events; e++)
        for (uint32_t i = access->edge_begin[e]; i < access->edge_begin[e + 1]; i++)
            if (access->edge_item[i] <= e || access->edge_item[i] >= access->n_events)
                return mpl_broken("event %u comes before event %u of %u", e, access->edge_item[i],
                                  access->n_events);
    for (uint32_t b = 0; b < n; b++)
        if ((access->first_begin[b] == access->first_begin[b + 1]) !=
            (access->last_begin[b] == access->last_begin[b + 1]))
            return mpl_broken("buffer %u has first events and no last ones, or last alone", b);
    return events_ok("first", n, access->first_begin, access->first_item, access->n_events) &&
           events_ok("last", n, access->last_begin, access->last_item, access->n_events);
}

/* Slow: a conflict by definition, step by step, or along the reduction of the order. */
static bool conflict_by_definition(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    const mpl_before *before = p->before;
    bool conflict = before != NULL;

    for (uint32_t step = p->birth[a]; before == NULL && step < p->death[a]; step++)
        conflict = conflict || (mpl_needed_at(p, a, step) && mpl_needed_at(p, b, step));
    for (uint32_t way = 0; before != NULL && way < 2; way++) {
        mpl_buffer from = way == 0 ? a : b, to = way == 0 ? b : a;
        uint64_t reached = UINT64_C(1) << from, last = 0; /* at most 64 buffers */

        while (reached != last) {
            last = reached;
            for (mpl_buffer c = 0; c < p->n; c++)
                for (uint32_t i = before->red_begin[c]; i < before->red_begin[c + 1]; i++)
                    if ((reached >> c & 1) != 0)
                        reached |= UINT64_C(1) << before->red_item[i];
        }
        conflict = conflict && (reached >> to & 1) == 0;
    }
    return conflict && a != b && p->pool[a] == p->pool[b];
}

static bool conflicts_ok(const mpl_problem *p)
{
    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < p->n; b++)
            if (mpl_conflict(p, a, b) != conflict_by_definition(p, a, b))
                return mpl_broken("whether buffers %u and %u conflict is not what the definition "
                                  "says",
                                  a, b);
    return true;
}

bool mpl_problem_ok(const mpl_problem *p)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_status st = mpl_problem_check(&ctx, p);

    if (st != MPL_OK && st != MPL_EMEM)
        return mpl_broken("%s", ctx.message);
    return (p->before == NULL || closure_ok(p->before)) &&
           (p->access == NULL || access_ok(p->access, p->n)) &&
           (MPL_CHECK < 3 || p->n > MPL_CHECK_SMALL || conflicts_ok(p));
}
