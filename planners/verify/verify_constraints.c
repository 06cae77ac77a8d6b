/* verify_constraints.c -- checks a plan against reserved ranges, chunks, apart and together. */
#include "planners/verify/verify_priv.h"

typedef struct placed {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const uint64_t *offset;
} placed;

static uint64_t end_of(const placed *self, mpl_buffer b)
{
    return self->offset[b] + self->p->bytes[b];
}

static mpl_status check_reserved(const placed *self, const mpl_reserved *reserved, mpl_buffer b)
{
    const mpl_problem *p = self->p;
    bool needed = p->before != NULL;
    char text[24];

    if (p->pool[b] != 0 || self->offset[b] >= reserved->to || end_of(self, b) <= reserved->from)
        return MPL_OK;
    for (uint32_t step = reserved->birth; !needed && step < reserved->death && step < p->n_steps;
         step++)
        needed = mpl_verify_needed(p, b, step);
    if (!needed)
        return MPL_OK;
    return MPL_ERROR(self->ctx, MPL_EINVALID,
                     "buffer '%.100s' at [%" PRIu64 ", %" PRIu64 ") uses bytes of [%" PRIu64
                     ", %" PRIu64 "), which are reserved",
                     mpl_buffer_label(p, b, text), self->offset[b], end_of(self, b), reserved->from,
                     reserved->to);
}

static mpl_status check_apart(const placed *self, const mpl_buffer two[2])
{
    char one[24], other[24];

    if (self->offset[two[0]] >= end_of(self, two[1]) ||
        self->offset[two[1]] >= end_of(self, two[0]))
        return MPL_OK;
    return MPL_ERROR(
        self->ctx, MPL_EINVALID, "buffers '%.100s' and '%.100s' must lie apart, and share bytes",
        mpl_buffer_label(self->p, two[0], one), mpl_buffer_label(self->p, two[1], other));
}

/* Whether two addresses lie in one chunk. */
static bool one_chunk(const mpl_constraints *constraints, uint64_t from, uint64_t to)
{
    return constraints->chunk_bytes == 0 ||
           from / constraints->chunk_bytes == to / constraints->chunk_bytes;
}

static mpl_status check_together(const placed *self, const mpl_buffer two[2])
{
    uint64_t align = self->p->align[two[1]], end = end_of(self, two[0]);
    char one[24], other[24];

    if (self->offset[two[1]] != (end + align - 1) / align * align ||
        (self->p->pool[two[0]] == 0 &&
         !one_chunk(self->p->constraints, self->offset[two[0]], end_of(self, two[1]) - 1)))
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "buffer '%.100s' must lie right behind '%.100s', which ends at %" PRIu64
                         ", and lies at %" PRIu64,
                         mpl_buffer_label(self->p, two[1], one),
                         mpl_buffer_label(self->p, two[0], other), end, self->offset[two[1]]);
    return MPL_OK;
}

static mpl_status check_chunk(const placed *self, mpl_buffer b)
{
    const mpl_problem *p = self->p;
    mpl_buffer root = p->inside != NULL ? p->inside[b] : b;
    char text[24];

    if (p->pool[b] != 0 || one_chunk(p->constraints, self->offset[root], end_of(self, b) - 1))
        return MPL_OK;
    return MPL_ERROR(self->ctx, MPL_EINVALID,
                     "buffer '%.100s' at [%" PRIu64 ", %" PRIu64
                     ") crosses the end of a chunk of %" PRIu64 " bytes",
                     mpl_buffer_label(p, b, text), self->offset[root], end_of(self, b),
                     p->constraints->chunk_bytes);
}

mpl_status mpl_verify_constraints(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                                  uint64_t *height)
{
    const mpl_constraints *constraints = p->constraints;
    placed s = {ctx, p, plan->offset};

    if (plan->spread.n > 0)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "a plan over several memories keeps no constraints on addresses");
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_PASS(check_chunk(&s, b));
        for (uint32_t i = 0; i < constraints->n_reserved; i++)
            MPL_PASS(check_reserved(&s, &constraints->reserved[i], b));
    }
    for (uint32_t i = 0; i < constraints->n_apart; i++)
        MPL_PASS(check_apart(&s, constraints->apart[i]));
    for (uint32_t i = 0; i < constraints->n_together; i++)
        MPL_PASS(check_together(&s, constraints->together[i]));
    for (uint32_t i = 0; i < constraints->n_reserved; i++)
        *height = constraints->reserved[i].to > *height ? constraints->reserved[i].to : *height;
    return MPL_OK;
}
