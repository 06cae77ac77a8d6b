/* problem.c -- making, checking and freeing a problem; the conflict relation. See problem.h. */
#include "graphs/problem/before.h"

mpl_status mpl_problem_new(mpl_ctx *ctx, const char *name, uint32_t n, mpl_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;

    MPL_TRY(mpl_new(ctx, p, 1));
    MPL_TRY(mpl_copy_text(ctx, p->name, name));
    p->n = n;
    MPL_TRY(mpl_new_each(ctx, n, p->bytes, p->align, p->pool, p->birth, p->death));
    MPL_TRY(mpl_new(ctx, p->pool_name, 1));
    p->n_pools = 1;
    MPL_TRY(mpl_copy_text(ctx, p->pool_name[0], "value"));
    MPL_TRY(mpl_new(ctx, p->pool_capacity, 1));
    p->pool_capacity[0] = MPL_NO_CAPACITY;
    for (mpl_buffer b = 0; b < n; b++)
        p->align[b] = 1;
    *out = p, p = NULL;
out:
    mpl_problem_free(ctx, p);
    return st;
}

mpl_status mpl_problem_add_pool(mpl_ctx *ctx, mpl_problem *p, const char *name)
{
    uint32_t n = p->n_pools;

    MPL_PASS(mpl_realloc_bytes(ctx, (void **)&p->pool_name, n, n + 1, sizeof *p->pool_name));
    MPL_PASS(
        mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, n, n + 1, sizeof *p->pool_capacity));
    MPL_PASS(mpl_copy_text(ctx, p->pool_name[n], name));
    p->pool_capacity[n] = MPL_NO_CAPACITY;
    p->n_pools++;
    return MPL_OK;
}

void mpl_access_free(mpl_ctx *ctx, mpl_access *access)
{
    if (access == NULL)
        return;
    void *arrays[] = {access->edge_begin,
                      access->edge_item,
                      access->first_begin,
                      access->first_item,
                      access->last_begin,
                      access->last_item,
                      access};
    MPL_FREE_ALL(ctx, arrays);
}

void mpl_problem_free(mpl_ctx *ctx, mpl_problem *p)
{
    if (p == NULL)
        return;
    for (mpl_buffer b = 0; p->buffer_name != NULL && b < p->n; b++)
        mpl_free(ctx, p->buffer_name[b]);
    for (uint32_t i = 0; p->pool_name != NULL && i < p->n_pools; i++)
        mpl_free(ctx, p->pool_name[i]);
    mpl_before_free(ctx, (mpl_before *)p->before); /* const for readers only */
    mpl_access_free(ctx, (mpl_access *)p->access);
    mpl_constraints_free(ctx, p->constraints);
#define FREE(field) mpl_free(ctx, p->field);
    MPL_BUFFER_FIELDS(FREE)
#undef FREE
    void *arrays[] = {p->name,
                      p->buffer_name,
                      p->gap_begin,
                      p->gap_from,
                      p->gap_to,
                      p->pool_name,
                      p->pool_capacity,
                      p->in_place_in,
                      p->in_place_out,
                      p->in_place_step,
                      p};
    MPL_FREE_ALL(ctx, arrays);
}

/* Position in the steps at which a buffer is needed. */
typedef struct cursor {
    mpl_buffer b;
    uint32_t at;  /* a step that needs it; >= death: none is left [step] */
    uint32_t gap; /* first gap that ends after `at` */
} cursor;

static void seek(const mpl_problem *p, cursor *c, uint32_t at)
{
    c->at = at > p->birth[c->b] ? at : p->birth[c->b];
    for (; c->gap < p->gap_begin[c->b + 1] && p->gap_from[c->gap] <= c->at; c->gap++)
        if (c->at < p->gap_to[c->gap])
            c->at = p->gap_to[c->gap];
}

/* Whether some step needs both, of two buffers whose lifetimes overlap. */
static bool meet_outside_gaps(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    cursor x = {.b = a, .gap = p->gap_begin[a]}, y = {.b = b, .gap = p->gap_begin[b]};

    do {
        seek(p, &x, y.at);
        seek(p, &y, x.at);
    } while (x.at != y.at && x.at < p->death[a] && y.at < p->death[b]);
    return x.at == y.at && x.at < p->death[a] && y.at < p->death[b];
}

bool mpl_conflict(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    if (a == b || p->pool[a] != p->pool[b])
        return false;
    if (p->before != NULL)
        return !mpl_is_before(p->before, a, b) && !mpl_is_before(p->before, b, a);
    if (p->birth[a] >= p->death[b] || p->birth[b] >= p->death[a])
        return false;
    return p->gap_begin == NULL || meet_outside_gaps(p, a, b);
}

static mpl_status check_buffer(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer b)
{
    char text[24];
    const char *label = mpl_buffer_label(p, b, text);

    if (p->bytes[b] == 0 || p->bytes[b] > INT64_MAX)
        return MPL_REFUSE(ctx, "buffer '%.100s' has %" PRIu64 " bytes; 1 to 2^63 - 1 are possible",
                          label, p->bytes[b]);
    if (p->align[b] == 0 || (p->align[b] & (p->align[b] - 1)) != 0)
        return MPL_REFUSE(ctx, "buffer '%.100s' is aligned to %u bytes; a power of two is needed",
                          label, p->align[b]);
    if (p->pool[b] >= p->n_pools)
        return MPL_REFUSE(ctx, "buffer '%.100s' is in pool %u; there are %u", label, p->pool[b],
                          p->n_pools);
    if (p->before == NULL && p->birth[b] >= p->death[b])
        return MPL_REFUSE(ctx,
                          "buffer '%.100s' lives in [%u, %u); it must live for at least one step",
                          label, p->birth[b], p->death[b]);
    if (p->before == NULL && p->death[b] > p->n_steps)
        return MPL_REFUSE(ctx, "buffer '%.100s' lives until step %u; the last step ends at %u",
                          label, p->death[b], p->n_steps);
    if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED && p->fixed[b] % p->align[b] != 0)
        return MPL_REFUSE(ctx,
                          "buffer '%.100s' is fixed at %" PRIu64 ", which is not a multiple of %u",
                          label, p->fixed[b], p->align[b]);
    return MPL_OK;
}

static mpl_status check_gaps(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer b)
{
    uint32_t last = p->birth[b];
    char text[24];

    if (p->gap_begin[b] > p->gap_begin[b + 1])
        return MPL_REFUSE(ctx, "the gaps of buffer %u end before they begin", b);
    for (uint32_t i = p->gap_begin[b]; i < p->gap_begin[b + 1]; i++) {
        if (p->gap_from[i] <= last || p->gap_to[i] <= p->gap_from[i] || p->gap_to[i] >= p->death[b])
            return MPL_REFUSE(
                ctx,
                "buffer '%.100s' lives in [%u, %u), and not in [%u, %u): gaps ascend, apart "
                "from each "
                "other and "
                "from both ends",
                mpl_buffer_label(p, b, text), p->birth[b], p->death[b], p->gap_from[i],
                p->gap_to[i]);
        last = p->gap_to[i];
    }
    return MPL_OK;
}

static mpl_status check_pair(mpl_ctx *ctx, const mpl_problem *p, uint32_t i)
{
    mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];
    uint32_t step = p->in_place_step[i];

    if (in >= p->n || out >= p->n || in == out)
        return MPL_REFUSE(ctx, "in-place pair %u joins buffers %u and %u; there are %u", i, in, out,
                          p->n);
    if (p->pool[in] != p->pool[out])
        return MPL_REFUSE(ctx, "in-place pair %u joins buffers of different pools", i);
    if (p->bytes[out] > p->bytes[in])
        return MPL_REFUSE(ctx,
                          "in-place pair %u: buffer %u has %" PRIu64
                          " bytes, more than the %" PRIu64 " of buffer %u that it would overwrite",
                          i, out, p->bytes[out], p->bytes[in], in);
    if (p->before == NULL &&
        (p->birth[out] != step || p->death[in] - 1 != step || p->birth[in] >= step))
        return MPL_REFUSE(
            ctx,
            "in-place pair %u at step %u: buffer %u lives from step %u, and buffer %u in [%u, %u), "
            "which does not "
            "end there",
            i, step, out, p->birth[out], in, p->birth[in], p->death[in]);
    if (i > 0) {
        uint64_t last = (uint64_t)p->in_place_step[i - 1] << 32 | p->in_place_out[i - 1];
        uint64_t key = (uint64_t)step << 32 | out;

        if (last > key || (last == key && p->in_place_in[i - 1] >= in))
            return MPL_REFUSE(ctx,
                              "in-place pair %u stands out of order; (step, out, in) must rise", i);
    }
    return MPL_OK;
}

/* Whether the immediate successors of `out`, and the n buffers that may overwrite it, come after
 * `in`. */
static bool comes_first(const mpl_before *before, mpl_buffer in, mpl_buffer out, uint32_t n,
                        const mpl_buffer *next)
{
    bool first = true;

    for (uint32_t k = before->red_begin[out]; k < before->red_begin[out + 1] && first; k++)
        first = mpl_is_before(before, in, before->red_item[k]);
    for (uint32_t k = 0; k < n && first; k++)
        first = mpl_is_before(before, in, next[k]);
    return first;
}

/* Whether, for each `in`, its immediate predecessors come before all n buffers that may overwrite
 * it; so do earlier ones then. *pair: a violation. */
static bool comes_last(const mpl_problem *p, const uint32_t *begin, const uint32_t *item,
                       uint32_t *pair)
{
    const mpl_before *before = p->before;

    for (mpl_buffer c = 0; c < p->n; c++)
        for (uint32_t k = before->red_begin[c]; k < before->red_begin[c + 1]; k++)
            for (uint32_t i = begin[before->red_item[k]]; i < begin[before->red_item[k] + 1]; i++)
                if (!mpl_is_before(before, c, p->in_place_out[ *pair = item[i]]))
                    return false;
    return true;
}

/* Checks the rule at in_place_in (problem.h). It lets a chain of pairs be one buffer, ordered by
 * its first and last member (fold_pairs.h). It also keeps the relation an order when every pair is
 * added as "in before out" (mpl_antichain). */
static mpl_status check_ordered_pairs(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_status st = MPL_OK;
    uint32_t *begin = NULL, *item = NULL, *next = NULL, pair = 0;

    MPL_TRY(mpl_lists_new(ctx, p->n, p->n_in_place, p->in_place_in, NULL, &begin, &item));
    MPL_TRY(mpl_new(ctx, next, p->n_in_place));
    for (uint32_t i = 0; i < p->n_in_place; i++)
        next[i] = p->in_place_out[item[i]];
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];

        if (!mpl_conflict(p, in, out))
            MPL_FAIL(ctx, MPL_EINPUT,
                     "in-place pair %u: one of buffers %u and %u is before the other; a pair is "
                     "read last and "
                     "written first at one operation",
                     i, in, out);
        if (!comes_first(p->before, in, out, begin[out + 1] - begin[out], next + begin[out]))
            MPL_FAIL(ctx, MPL_EINPUT,
                     "in-place pair %u: what follows or overwrites buffer %u must come after "
                     "buffer %u, which "
                     "it overwrites",
                     i, out, in);
    }
    if (!comes_last(p, begin, item, &pair))
        MPL_FAIL(ctx, MPL_EINPUT,
                 "in-place pair %u: what is before buffer %u must be before buffer %u, which "
                 "overwrites it",
                 pair, p->in_place_in[pair], p->in_place_out[pair]);
out:
    mpl_free_each(ctx, begin, item, next);
    return st;
}

/* Checks one part of a family. */
static mpl_status check_part(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer b)
{
    mpl_buffer of = p->inside[b];
    uint64_t end;
    char text[24];
    const char *label = mpl_buffer_label(p, b, text);

    if (of >= p->n || p->inside[of] != of || p->inside_at[of] != 0)
        return MPL_REFUSE(
            ctx, "buffer '%.100s' lies inside buffer %u, which is not the lowest of its family",
            label, of);
    if (p->pool[of] != p->pool[b] || !mpl_add_bytes(p->inside_at[b], p->bytes[b], &end) ||
        end > INT64_MAX)
        return MPL_REFUSE(
            ctx, "buffer '%.100s' lies inside one of another pool, or beyond 2^63 - 1 bytes",
            label);
    if (p->inside_at[b] % p->align[b] != 0 || p->align[of] < p->align[b])
        return MPL_REFUSE(ctx,
                          "buffer '%.100s', %" PRIu64
                          " bytes behind another, is aligned to %u bytes, and that one to "
                          "%u",
                          label, p->inside_at[b], p->align[b], p->align[of]);
    if (of != b && p->fixed != NULL && (p->fixed[b] != MPL_UNFIXED || p->fixed[of] != MPL_UNFIXED))
        return MPL_REFUSE(ctx, "buffer '%.100s' is a part of a family that is fixed", label);
    return MPL_OK;
}

static mpl_status check_families(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_status st = MPL_OK;
    mpl_families f = {NULL, NULL};
    char one[24], other[24];

    for (mpl_buffer b = 0; b < p->n; b++)
        MPL_TRY(check_part(ctx, p, b));
    MPL_TRY(mpl_families_new(ctx, p, &f));
    for (mpl_buffer first = 0; first < p->n; first++)
        for (uint32_t i = f.begin[first]; i < f.begin[first + 1]; i++)
            for (uint32_t k = f.begin[first]; k < i; k++) {
                mpl_buffer a = f.item[k], b = f.item[i];

                if (p->inside_at[a] < p->inside_at[b] + p->bytes[b] &&
                    p->inside_at[b] < p->inside_at[a] + p->bytes[a] && mpl_conflict(p, a, b))
                    MPL_FAIL(ctx, MPL_EINPUT, "buffers '%.100s' and '%.100s' of one family overlap",
                             mpl_buffer_label(p, a, one), mpl_buffer_label(p, b, other));
            }
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (p->inside[p->in_place_in[i]] == p->inside[p->in_place_out[i]])
            MPL_FAIL(ctx, MPL_EINPUT, "in-place pair %u joins two parts of one family", i);
out:
    mpl_families_free(ctx, &f);
    return st;
}

static mpl_status check_before(mpl_ctx *ctx, const mpl_problem *p)
{
    const mpl_before *before = p->before;

    if (before->n != p->n || before->n_words != (p->n + UINT64_C(63)) / 64)
        return MPL_REFUSE(ctx, "the partial order has %u buffers, the problem %u", before->n, p->n);
    for (mpl_buffer a = 0; a < p->n; a++) {
        if (mpl_is_before(before, a, a))
            return MPL_REFUSE(ctx, "buffer %u is before itself: the partial order has a cycle", a);
        if (before->red_begin[a] > before->red_begin[a + 1])
            return MPL_REFUSE(ctx, "the reduction of the partial order is broken at buffer %u", a);
        for (uint32_t i = before->red_begin[a]; i < before->red_begin[a + 1]; i++)
            if (before->red_item[i] >= p->n || !mpl_is_before(before, a, before->red_item[i]))
                return MPL_REFUSE(ctx, "the partial order and its reduction differ at buffer %u",
                                  a);
    }
    return MPL_OK;
}

mpl_status mpl_problem_check(mpl_ctx *ctx, const mpl_problem *p)
{
    if (p->n_pools == 0)
        return MPL_REFUSE(ctx, "problem '%.100s' has no pool", p->name);
    for (mpl_buffer b = 0; b < p->n; b++)
        MPL_PASS(check_buffer(ctx, p, b));
    if (p->gap_begin != NULL && (p->before != NULL || p->gap_begin[0] != 0))
        return MPL_REFUSE(ctx, "problem '%.100s': %s", p->name,
                          p->before != NULL ? "lifetimes under a partial order have no gaps"
                                            : "its gaps do not begin at 0");
    for (mpl_buffer b = 0; p->gap_begin != NULL && b < p->n; b++)
        MPL_PASS(check_gaps(ctx, p, b));
    for (uint32_t i = 0; i < p->n_in_place; i++)
        MPL_PASS(check_pair(ctx, p, i));
    if (p->before != NULL)
        MPL_PASS(check_before(ctx, p));
    if (p->before != NULL && p->n_in_place > 0)
        MPL_PASS(check_ordered_pairs(ctx, p));
    if (p->inside != NULL)
        MPL_PASS(check_families(ctx, p));
    return p->constraints != NULL ? mpl_constraints_check(ctx, p) : MPL_OK;
}

static bool has_families(const mpl_problem *p)
{
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        if (p->inside[b] != b)
            return true;
    return false;
}

/* Hashes an optional array; absent and present must differ. */
static uint64_t hash_optional(uint64_t h, const void *data, size_t n)
{
    uint8_t there = data != NULL;

    h = mpl_hash(h, &there, 1);
    return there ? mpl_hash(h, data, n) : h;
}

uint64_t mpl_problem_hash(const mpl_problem *p)
{
    uint64_t h = mpl_hash(MPL_HASH_SEED, &p->n, sizeof p->n);
    const mpl_before *before = p->before;

    h = mpl_hash(h, p->bytes, p->n * sizeof *p->bytes);
    h = mpl_hash(h, p->align, p->n * sizeof *p->align);
    h = mpl_hash(h, p->pool, p->n * sizeof *p->pool);
    h = hash_optional(h, before != NULL ? before->red_begin : NULL,
                      (p->n + (size_t)1) * sizeof *before->red_begin);
    if (before != NULL) {
        h = mpl_hash(h, before->red_item, before->red_begin[p->n] * sizeof *before->red_item);
    } else {
        h = mpl_hash(h, &p->n_steps, sizeof p->n_steps);
        h = mpl_hash(h, p->birth, p->n * sizeof *p->birth);
        h = mpl_hash(h, p->death, p->n * sizeof *p->death);
    }
    if (p->gap_begin != NULL && p->gap_begin[p->n] > 0) { /* no gaps: same hash as before gaps */
        h = mpl_hash(h, p->gap_begin, (p->n + (size_t)1) * sizeof *p->gap_begin);
        h = mpl_hash(h, p->gap_from, p->gap_begin[p->n] * sizeof *p->gap_from);
        h = mpl_hash(h, p->gap_to, p->gap_begin[p->n] * sizeof *p->gap_to);
    }
    if (has_families(p)) {
        h = mpl_hash(h, p->inside, p->n * sizeof *p->inside);
        h = mpl_hash(h, p->inside_at, p->n * sizeof *p->inside_at);
    }
    if (p->constraints != NULL)
        h = mpl_constraints_hash(h, p->constraints);
    h = mpl_hash(h, &p->n_pools, sizeof p->n_pools);
    h = mpl_hash(h, p->pool_capacity, p->n_pools * sizeof *p->pool_capacity);
    h = mpl_hash(h, &p->n_in_place, sizeof p->n_in_place);
    h = mpl_hash(h, p->in_place_in, p->n_in_place * sizeof *p->in_place_in);
    h = mpl_hash(h, p->in_place_out, p->n_in_place * sizeof *p->in_place_out);
    h = mpl_hash(h, p->in_place_step, p->n_in_place * sizeof *p->in_place_step);
    return hash_optional(h, p->fixed, p->n * sizeof *p->fixed);
}

mpl_status mpl_families_new(mpl_ctx *ctx, const mpl_problem *p, mpl_families *out)
{
    return mpl_lists_new(ctx, p->n, p->n, p->inside, NULL, &out->begin, &out->item);
}

void mpl_families_free(mpl_ctx *ctx, mpl_families *families)
{
    mpl_free_each(ctx, families->begin, families->item);
    *families = (mpl_families){NULL, NULL};
}
