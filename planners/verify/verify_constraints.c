/* verify_constraints.c -- checks a plan against reserved ranges, chunks, apart and together. */
#include "planners/verify/verify_priv.h"

typedef struct placed {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const uint64_t *offset;
} placed;

static uint64_t end_of(const placed *s, mpl_buffer b)
{
    return s->offset[b] + s->p->bytes[b];
}

static mpl_status check_reserved(const placed *s, const mpl_reserved *r, mpl_buffer b)
{
    const mpl_problem *p = s->p;
    bool needed = p->before != NULL;
    char text[24];

    if (p->pool[b] != 0 || s->offset[b] >= r->to || end_of(s, b) <= r->from)
        return MPL_OK;
    for (uint32_t step = r->birth; !needed && step < r->death && step < p->n_steps; step++)
        needed = mpl_verify_needed(p, b, step);
    if (!needed)
        return MPL_OK;
    return MPL_ERROR(s->ctx, MPL_EINVALID,
                     "buffer '%.100s' at [%" PRIu64 ", %" PRIu64 ") uses bytes of [%" PRIu64
                     ", %" PRIu64 "), which are reserved",
                     mpl_buffer_label(p, b, text), s->offset[b], end_of(s, b), r->from, r->to);
}

static mpl_status check_apart(const placed *s, const mpl_buffer two[2])
{
    char one[24], other[24];

    if (s->offset[two[0]] >= end_of(s, two[1]) || s->offset[two[1]] >= end_of(s, two[0]))
        return MPL_OK;
    return MPL_ERROR(s->ctx, MPL_EINVALID,
                     "buffers '%.100s' and '%.100s' must lie apart, and share bytes",
                     mpl_buffer_label(s->p, two[0], one), mpl_buffer_label(s->p, two[1], other));
}

/* Whether two addresses lie in one chunk. */
static bool one_chunk(const mpl_constraints *c, uint64_t from, uint64_t to)
{
    return c->chunk_bytes == 0 || from / c->chunk_bytes == to / c->chunk_bytes;
}

static mpl_status check_together(const placed *s, const mpl_buffer two[2])
{
    uint64_t align = s->p->align[two[1]], end = end_of(s, two[0]);
    char one[24], other[24];

    if (s->offset[two[1]] != (end + align - 1) / align * align ||
        (s->p->pool[two[0]] == 0 &&
         !one_chunk(s->p->constraints, s->offset[two[0]], end_of(s, two[1]) - 1)))
        return MPL_ERROR(s->ctx, MPL_EINVALID,
                         "buffer '%.100s' must lie right behind '%.100s', which ends at %" PRIu64
                         ", and lies at %" PRIu64,
                         mpl_buffer_label(s->p, two[1], one), mpl_buffer_label(s->p, two[0], other),
                         end, s->offset[two[1]]);
    return MPL_OK;
}

static mpl_status check_chunk(const placed *s, mpl_buffer b)
{
    const mpl_problem *p = s->p;
    mpl_buffer root = p->inside != NULL ? p->inside[b] : b;
    char text[24];

    if (p->pool[b] != 0 || one_chunk(p->constraints, s->offset[root], end_of(s, b) - 1))
        return MPL_OK;
    return MPL_ERROR(s->ctx, MPL_EINVALID,
                     "buffer '%.100s' at [%" PRIu64 ", %" PRIu64
                     ") crosses the end of a chunk of %" PRIu64 " bytes",
                     mpl_buffer_label(p, b, text), s->offset[root], end_of(s, b),
                     p->constraints->chunk_bytes);
}

mpl_status mpl_verify_constraints(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                                  uint64_t *height)
{
    const mpl_constraints *c = p->constraints;
    placed s = {ctx, p, plan->offset};

    if (plan->spread.n > 0)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "a plan over several memories keeps no constraints on addresses");
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_PASS(check_chunk(&s, b));
        for (uint32_t i = 0; i < c->n_reserved; i++)
            MPL_PASS(check_reserved(&s, &c->reserved[i], b));
    }
    for (uint32_t i = 0; i < c->n_apart; i++)
        MPL_PASS(check_apart(&s, c->apart[i]));
    for (uint32_t i = 0; i < c->n_together; i++)
        MPL_PASS(check_together(&s, c->together[i]));
    for (uint32_t i = 0; i < c->n_reserved; i++)
        *height = c->reserved[i].to > *height ? c->reserved[i].to : *height;
    return MPL_OK;
}
