/* constraints.c -- reserved ranges, chunks, buffers apart and together. See problem.h. */
#include "graphs/problem/problem.h"

void mpl_constraints_free(mpl_ctx *ctx, mpl_constraints *constraints)
{
    if (constraints != NULL)
        mpl_free_each(ctx, constraints->reserved, constraints->apart, constraints->together,
                      constraints);
}

uint64_t mpl_constraints_hash(uint64_t h, const mpl_constraints *constraints)
{
    h = mpl_hash(h, &constraints->chunk_bytes, sizeof constraints->chunk_bytes);
    h = mpl_hash(h, &constraints->n_reserved, sizeof constraints->n_reserved);
    h = mpl_hash(h, constraints->reserved, constraints->n_reserved * sizeof *constraints->reserved);
    h = mpl_hash(h, &constraints->n_apart, sizeof constraints->n_apart);
    h = mpl_hash(h, constraints->apart, constraints->n_apart * sizeof *constraints->apart);
    h = mpl_hash(h, &constraints->n_together, sizeof constraints->n_together);
    return mpl_hash(h, constraints->together,
                    constraints->n_together * sizeof *constraints->together);
}

static mpl_status check_reserved(mpl_ctx *ctx, const mpl_problem *p)
{
    const mpl_constraints *constraints = p->constraints;

    for (uint32_t i = 0; i < constraints->n_reserved; i++) {
        const mpl_reserved *reserved = &constraints->reserved[i];

        if (reserved->from >= reserved->to || reserved->to > INT64_MAX ||
            reserved->birth >= reserved->death)
            return MPL_REFUSE(ctx,
                              "reserved bytes [%" PRIu64 ", %" PRIu64
                              ") in steps [%u, %u): each must begin before it ends",
                              reserved->from, reserved->to, reserved->birth, reserved->death);
        if (p->before != NULL && (reserved->birth > 0 || reserved->death != UINT32_MAX))
            return MPL_REFUSE(ctx, "bytes reserved for some steps: a partial order has no steps");
        if (p->before == NULL && reserved->birth >= p->n_steps)
            return MPL_REFUSE(ctx, "bytes reserved from step %u on: the last step is %u",
                              reserved->birth, p->n_steps - 1);
        for (uint32_t k = 0; k < i; k++)
            if (constraints->reserved[k].from < reserved->to &&
                reserved->from < constraints->reserved[k].to &&
                constraints->reserved[k].birth < reserved->death &&
                reserved->birth < constraints->reserved[k].death)
                return MPL_REFUSE(ctx,
                                  "reserved bytes [%" PRIu64 ", %" PRIu64 ") and [%" PRIu64
                                  ", %" PRIu64 ") overlap; one range would do",
                                  constraints->reserved[k].from, constraints->reserved[k].to,
                                  reserved->from, reserved->to);
    }
    return MPL_OK;
}

/* Checks two buffers of `apart` or `together`. */
static mpl_status check_two(mpl_ctx *ctx, const mpl_problem *p, const char *how,
                            const mpl_buffer two[2])
{
    char one[24], other[24];

    if (two[0] >= p->n || two[1] >= p->n)
        return MPL_REFUSE(ctx, "buffers %u and %u are to be %s; there are %u", two[0], two[1], how,
                          p->n);
    if (two[0] == two[1] || p->pool[two[0]] != p->pool[two[1]])
        return MPL_REFUSE(ctx, "buffers '%.100s' and '%.100s' cannot be %s: two of one pool can",
                          mpl_buffer_label(p, two[0], one), mpl_buffer_label(p, two[1], other),
                          how);
    return MPL_OK;
}

static bool has_family(const mpl_problem *p, mpl_buffer b)
{
    bool has = false;

    for (mpl_buffer a = 0; p->inside != NULL && a < p->n; a++)
        has |= a != b && p->inside[a] == p->inside[b];
    return has;
}

static mpl_status check_together(mpl_ctx *ctx, const mpl_problem *p, uint32_t i)
{
    const mpl_constraints *constraints = p->constraints;
    mpl_buffer last = constraints->together[i][1];
    char text[24];

    MPL_PASS(check_two(ctx, p, "together", constraints->together[i]));
    if (p->align[constraints->together[i][0]] != p->align[last])
        return MPL_REFUSE(ctx,
                          "buffer '%.100s' is aligned to %u bytes, and the one before it to %u: "
                          "together lies what has one alignment",
                          mpl_buffer_label(p, last, text), p->align[last],
                          p->align[constraints->together[i][0]]);
    for (int side = 0; side < 2; side++) {
        mpl_buffer b = constraints->together[i][side];

        if (has_family(p, b))
            return MPL_REFUSE(ctx, "buffer '%.100s' lies in another already, not beside one",
                              mpl_buffer_label(p, b, text));
        for (uint32_t k = 0; k < i; k++)
            if (constraints->together[k][side] == b)
                return MPL_REFUSE(ctx, "buffer '%.100s' is to lie %s two others",
                                  mpl_buffer_label(p, b, text), side == 0 ? "before" : "behind");
    }
    for (uint32_t turn = 0; turn < i; turn++)
        for (uint32_t k = 0; k < i; k++)
            last = constraints->together[k][0] == last ? constraints->together[k][1] : last;
    if (last == constraints->together[i][0])
        return MPL_REFUSE(ctx, "buffer '%.100s' is to lie behind itself, through others",
                          mpl_buffer_label(p, last, text));
    return MPL_OK;
}

static mpl_status check_chunk(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer b)
{
    uint64_t chunk = p->constraints->chunk_bytes;
    char text[24];
    const char *label = mpl_buffer_label(p, b, text);

    if (chunk == 0 || p->pool[b] != 0)
        return MPL_OK;
    if (chunk % p->align[b] != 0)
        return MPL_REFUSE(ctx,
                          "chunks of %" PRIu64 " bytes: buffer '%.100s' is aligned to %u, of which "
                          "they must be a multiple",
                          chunk, label, p->align[b]);
    if (p->bytes[b] > chunk)
        return MPL_REFUSE(ctx, "buffer '%.100s' has %" PRIu64 " bytes, a chunk only %" PRIu64,
                          label, p->bytes[b], chunk);
    if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED && p->fixed[b] % chunk + p->bytes[b] > chunk)
        return MPL_REFUSE(ctx,
                          "buffer '%.100s', fixed at %" PRIu64 ", crosses the end of a chunk of "
                          "%" PRIu64 " bytes",
                          label, p->fixed[b], chunk);
    return MPL_OK;
}

static bool meets_reserved(const mpl_problem *p, mpl_buffer b, const mpl_reserved *reserved)
{
    bool needed = p->before != NULL;

    if (p->fixed == NULL || p->fixed[b] == MPL_UNFIXED || p->pool[b] != 0 ||
        p->fixed[b] >= reserved->to || reserved->from >= p->fixed[b] + p->bytes[b])
        return false;
    for (uint32_t step = p->before == NULL ? p->birth[b] : 0;
         p->before == NULL && !needed && step < p->death[b]; step++)
        needed = step >= reserved->birth && step < reserved->death && mpl_needed_at(p, b, step);
    return needed;
}

mpl_status mpl_constraints_check(mpl_ctx *ctx, const mpl_problem *p)
{
    const mpl_constraints *constraints = p->constraints;
    char text[24];

    MPL_PASS(check_reserved(ctx, p));
    for (uint32_t i = 0; i < constraints->n_apart; i++) {
        MPL_PASS(check_two(ctx, p, "apart", constraints->apart[i]));
        if (p->before != NULL)
            return MPL_REFUSE(ctx, "buffers can be kept apart only in an order of steps, not "
                                   "under parallel");
    }
    for (uint32_t i = 0; i < constraints->n_together; i++)
        MPL_PASS(check_together(ctx, p, i));
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_PASS(check_chunk(ctx, p, b));
        for (uint32_t i = 0; i < constraints->n_reserved; i++)
            if (meets_reserved(p, b, &constraints->reserved[i]))
                return MPL_REFUSE(ctx,
                                  "buffer '%.100s' is fixed at %" PRIu64 ", in bytes [%" PRIu64
                                  ", %" PRIu64 ") that are reserved",
                                  mpl_buffer_label(p, b, text), p->fixed[b],
                                  constraints->reserved[i].from, constraints->reserved[i].to);
    }
    return MPL_OK;
}
