/* hull.c -- families: their parts as lists, and each as one buffer for planners that know none. See
 * problem.h. */
#include "graphs/problem/before.h"

typedef struct hull {
    mpl_ctx *ctx;
    const mpl_problem *p;
    mpl_families family;
    uint32_t n;         /* buffers of the result */
    mpl_buffer *lowest; /* [n] of each */
    uint32_t *into;     /* [p->n] */
    mpl_problem *h;
} hull;

static uint32_t n_parts(const hull *x, uint32_t i)
{
    return x->family.begin[x->lowest[i] + 1] - x->family.begin[x->lowest[i]];
}

static mpl_status fill_buffers(hull *x)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = x->p;
    mpl_problem *h = x->h;

    MPL_TRY(mpl_new(x->ctx, h->buffer_name, x->n));
    for (uint32_t i = 0; i < x->n; i++) {
        mpl_buffer first = x->lowest[i];

        h->align[i] = p->align[first];
        h->pool[i] = p->pool[first];
        h->birth[i] = p->birth[first];
        h->death[i] = p->death[first];
        for (uint32_t k = x->family.begin[first]; k < x->family.begin[first + 1]; k++) {
            mpl_buffer b = x->family.item[k];

            h->bytes[i] = mpl_max_u64(h->bytes[i], p->inside_at[b] + p->bytes[b]);
            h->birth[i] = p->birth[b] < h->birth[i] ? p->birth[b] : h->birth[i];
            h->death[i] = p->death[b] > h->death[i] ? p->death[b] : h->death[i];
        }
        if (p->buffer_name != NULL && p->buffer_name[first] != NULL)
            MPL_TRY((h->buffer_name[i] = mpl_strdup(x->ctx, p->buffer_name[first])) != NULL
                        ? MPL_OK
                        : MPL_EMEM);
    }
out:
    return st;
}

/* One number a buffer, of its lowest part; nothing where there is none. */
static mpl_status fill_ids(const hull *x, const uint32_t *from, uint32_t **to)
{
    mpl_status st = MPL_OK;

    if (from == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(x->ctx, *to, x->n));
    for (uint32_t i = 0; i < x->n; i++)
        (*to)[i] = from[x->lowest[i]];
out:
    return st;
}

static mpl_status fill_optional(hull *x)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = x->p;
    mpl_problem *h = x->h;

    MPL_TRY(fill_ids(x, p->type_id, &h->type_id));
    MPL_TRY(fill_ids(x, p->shape_id, &h->shape_id));
    if (p->no_reuse != NULL)
        MPL_TRY(mpl_new(x->ctx, h->no_reuse, x->n));
    if (p->fixed != NULL)
        MPL_TRY(mpl_new(x->ctx, h->fixed, x->n));
    for (uint32_t i = 0; i < x->n; i++) {
        if (p->no_reuse != NULL)
            h->no_reuse[i] = p->no_reuse[x->lowest[i]];
        if (p->fixed != NULL)
            h->fixed[i] = p->fixed[x->lowest[i]];
    }
out:
    return st;
}

/* Gaps of those that are alone. */
static mpl_status fill_gaps(hull *x)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = x->p;
    mpl_problem *h = x->h;
    uint32_t n = 0;

    if (p->gap_begin == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(x->ctx, h->gap_begin, (size_t)x->n + 1));
    MPL_TRY(mpl_new(x->ctx, h->gap_from, p->gap_begin[p->n]));
    MPL_TRY(mpl_new(x->ctx, h->gap_to, p->gap_begin[p->n]));
    for (uint32_t i = 0; i < x->n; i++) {
        mpl_buffer b = x->lowest[i];

        for (uint32_t k = p->gap_begin[b]; n_parts(x, i) == 1 && k < p->gap_begin[b + 1]; k++) {
            h->gap_from[n] = p->gap_from[k];
            h->gap_to[n++] = p->gap_to[k];
        }
        h->gap_begin[i + 1] = n;
    }
out:
    return st;
}

static mpl_status fill_pairs(hull *x)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = x->p;
    mpl_problem *h = x->h;

    MPL_TRY(mpl_new(x->ctx, h->in_place_in, p->n_in_place));
    MPL_TRY(mpl_new(x->ctx, h->in_place_out, p->n_in_place));
    MPL_TRY(mpl_new(x->ctx, h->in_place_step, p->n_in_place));
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        uint32_t in = x->into[p->in_place_in[i]], out = x->into[p->in_place_out[i]];

        if (n_parts(x, in) != 1 || n_parts(x, out) != 1)
            continue;
        h->in_place_in[h->n_in_place] = in;
        h->in_place_out[h->n_in_place] = out;
        h->in_place_step[h->n_in_place++] = p->in_place_step[i];
    }
out:
    return st;
}

static mpl_status fill_before(hull *x)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = x->p;
    uint32_t n_words = x->n / 64 + (x->n % 64 != 0);
    uint64_t *rows = NULL;
    mpl_before *before = NULL;

    if (p->before == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(x->ctx, rows, (size_t)x->n * n_words));
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t j = 0; j < x->n; j++)
            if (i != j)
                mpl_bit_add(rows + (size_t)i * n_words, j);
    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < p->n; b++)
            if (!mpl_is_before(p->before, a, b))
                rows[(size_t)x->into[a] * n_words + x->into[b] / 64] &=
                    ~(UINT64_C(1) << (x->into[b] % 64));
    MPL_TRY(mpl_before_from_rows_take(x->ctx, x->n, &rows, &before));
    x->h->before = before;
out:
    mpl_free(x->ctx, rows);
    return st;
}

static mpl_status fill_pools(hull *x)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = x->p;
    mpl_problem *h = x->h;
    uint32_t n = p->n_pools;

    MPL_TRY(mpl_realloc_bytes(x->ctx, (void **)&h->pool_name, 1, n, sizeof *h->pool_name));
    MPL_TRY(mpl_realloc_bytes(x->ctx, (void **)&h->pool_capacity, 1, n, sizeof *h->pool_capacity));
    mpl_free(x->ctx, h->pool_name[0]);
    h->pool_name[0] = NULL;
    h->n_pools = n;
    for (uint32_t i = 0; i < n; i++) {
        h->pool_capacity[i] = p->pool_capacity[i];
        MPL_TRY((h->pool_name[i] = mpl_strdup(x->ctx, p->pool_name[i])) != NULL ? MPL_OK
                                                                                : MPL_EMEM);
    }
out:
    return st;
}

mpl_status mpl_problem_hull(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into)
{
    mpl_status st = MPL_OK;
    hull x = {.ctx = ctx, .p = p, .into = into};

    MPL_TRY(mpl_families_new(ctx, p, &x.family));
    MPL_TRY(mpl_new(ctx, x.lowest, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->inside[b] == b) {
            x.lowest[x.n] = b;
            into[b] = x.n++;
        }
    for (mpl_buffer b = 0; b < p->n; b++)
        into[b] = into[p->inside[b]];
    MPL_TRY(mpl_problem_new(ctx, p->name, x.n, &x.h));
    x.h->n_steps = p->n_steps;
    MPL_TRY(fill_pools(&x));
    MPL_TRY(fill_buffers(&x));
    MPL_TRY(fill_optional(&x));
    MPL_TRY(fill_gaps(&x));
    MPL_TRY(fill_pairs(&x));
    MPL_TRY(fill_before(&x));
    *out = x.h, x.h = NULL;
out:
    mpl_families_free(ctx, &x.family);
    mpl_free(ctx, x.lowest);
    mpl_problem_free(ctx, x.h);
    return st;
}
