/* requests.c -- requests from lifetimes, lifetimes from requests, and an allocator that gets them.
 * See requests.h. */
#include "planners/online/requests.h"

#include <stdlib.h>

typedef struct moment {
    uint32_t step;
    mpl_request request;
} moment;

/* By step; in a step requests before releases; then by id. */
MPL_ORDER_BY(compare, moment,
             MPL_RISING(step) MPL_RISING(request.gives_back) MPL_RISING(request.id))

mpl_status mpl_requests_make(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_request **out,
                             uint32_t *n)
{
    mpl_status st = MPL_OK;
    moment *all = NULL;
    mpl_request *request = NULL;
    uint32_t n_moments = 0;

    if (p->before != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "buffers under a partial order have no order of requests");
    MPL_TRY(mpl_new(ctx, all, (size_t)p->n * 2));
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->pool[b] != pool || p->bytes[b] == 0)
            continue;
        all[n_moments++] = (moment){p->birth[b], {b, p->bytes[b], false, p->align[b]}};
        /* its last step still needs it */
        all[n_moments++] = (moment){p->death[b] - 1, {b, p->bytes[b], true, p->align[b]}};
    }
    qsort(all, n_moments, sizeof *all, compare);
    MPL_TRY(mpl_new(ctx, request, n_moments));
    for (uint32_t i = 0; i < n_moments; i++)
        request[i] = all[i].request;
    *out = request, request = NULL;
    *n = n_moments;
out:
    mpl_free_each(ctx, all, request);
    return st;
}

static uint32_t most_ids(const mpl_request *request, uint32_t n)
{
    uint32_t n_ids = 0;

    for (uint32_t i = 0; i < n; i++)
        n_ids = request[i].id >= n_ids ? request[i].id + 1 : n_ids;
    return n_ids;
}

mpl_status mpl_requests_problem(mpl_ctx *ctx, const mpl_request *request, uint32_t n,
                                mpl_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    uint64_t *birth = NULL, *death = NULL;
    mpl_buffer *of = NULL, b = 0;
    uint32_t n_buffers = 0;

    for (uint32_t i = 0; i < n; i++)
        n_buffers += !request[i].gives_back;
    MPL_TRY(mpl_new_each(ctx, n_buffers, birth, death));
    MPL_TRY(mpl_new(ctx, of, most_ids(request, n)));
    MPL_TRY(mpl_problem_new(ctx, "requests", n_buffers, &p));
    for (uint32_t i = 0; i < n; i++) {
        if (request[i].gives_back) {
            death[of[request[i].id]] = i;
            continue;
        }
        p->bytes[b] = mpl_max_u64(request[i].bytes, 1);
        p->align[b] = request[i].align;
        birth[b] = i, death[b] = n;
        of[request[i].id] = b++;
    }
    MPL_TRY(mpl_problem_set_times(ctx, birth, death, p));
    MPL_TRY(mpl_problem_check(ctx, p));
    *out = p, p = NULL;
out:
    mpl_problem_free(ctx, p);
    mpl_free_each(ctx, birth, death, of);
    return st;
}

static mpl_status play(mpl_ctx *ctx, mpl_online *online, const mpl_request *request,
                       uint32_t *block)
{
    uint64_t offset;

    if (request->gives_back != (*block != MPL_NONE))
        return MPL_ERROR(ctx, MPL_EINVALID, "buffer %u is %s", request->id,
                         request->gives_back ? "given back and was not asked for"
                                             : "asked for twice");
    if (!request->gives_back)
        return mpl_online_take(online, request->bytes, request->align, block, &offset);
    MPL_PASS(mpl_online_give_back(online, *block));
    *block = MPL_NONE;
    return MPL_OK;
}

mpl_status mpl_requests_play(mpl_ctx *ctx, const mpl_request *request, uint32_t n,
                             const mpl_allocator *kind, uint64_t capacity, mpl_online_facts *facts,
                             int64_t *ns)
{
    mpl_status st = MPL_OK;
    mpl_online *online = NULL;
    uint32_t *block = NULL, n_ids = most_ids(request, n);
    int64_t begin;

    MPL_TRY(mpl_new(ctx, block, n_ids));
    for (uint32_t i = 0; i < n_ids; i++)
        block[i] = MPL_NONE;
    MPL_TRY(mpl_online_new(ctx, kind, capacity, &online));
    begin = mpl_clock_ns();
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(play(ctx, online, &request[i], &block[request[i].id]));
    if (ns != NULL)
        *ns = mpl_clock_ns() - begin;
    *facts = mpl_online_facts_of(online);
out:
    mpl_online_free(ctx, online);
    mpl_free(ctx, block);
    return st;
}
