/* spans.c -- sorted lists of byte ranges, none of which touch. See placement.h. */
#include "planners/place/placement.h"

uint32_t mpl_spans_find(const mpl_spans *spans, uint64_t at)
{
    uint32_t low = 0, high = spans->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (spans->item[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces item[first..last) by n of new[]. */
static mpl_status splice(mpl_ctx *ctx, mpl_spans *spans, uint32_t first, uint32_t last,
                         const mpl_span *new, uint32_t n)
{
    uint32_t want = spans->n - (last - first) + n;

    if (want > spans->room) {
        uint32_t room = spans->room > 0 ? 2 * spans->room : 2;

        MPL_PASS(
            mpl_realloc_bytes(ctx, (void **)&spans->item, spans->n, room, sizeof *spans->item));
        spans->room = room;
    }
    if (n != last - first)
        memmove(spans->item + first + n, spans->item + last,
                (spans->n - last) * sizeof *spans->item);
    for (uint32_t i = 0; i < n; i++)
        spans->item[first + i] = new[i];
    spans->n = want;
    return MPL_OK;
}

mpl_status mpl_spans_add(mpl_ctx *ctx, mpl_spans *spans, mpl_span span)
{
    uint32_t first, last;

    if (span.begin == span.end)
        return MPL_OK;
    /* a range that ends at span.begin touches it */
    first = span.begin > 0 ? mpl_spans_find(spans, span.begin - 1) : 0;
    for (last = first; last < spans->n && spans->item[last].begin <= span.end; last++) {
        span.begin = mpl_min_u64(span.begin, spans->item[last].begin);
        span.end = mpl_max_u64(span.end, spans->item[last].end);
    }
    return splice(ctx, spans, first, last, &span, 1);
}

mpl_status mpl_spans_remove(mpl_ctx *ctx, mpl_spans *spans, mpl_span span)
{
    uint32_t at = mpl_spans_find(spans, span.begin), n = 0;
    mpl_span whole = spans->item[at], rest[2];

    mpl_assert(at < spans->n && whole.begin <= span.begin && span.end <= whole.end);
    if (whole.begin < span.begin)
        rest[n++] = (mpl_span){whole.begin, span.begin};
    if (span.end < whole.end)
        rest[n++] = (mpl_span){span.end, whole.end};
    return splice(ctx, spans, at, at + 1, rest, n);
}
