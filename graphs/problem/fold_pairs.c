/* fold_pairs.c -- in-place folding of a problem. See fold_pairs.h.
 *
 * Source   NNC's in-place pass: outputs fold onto inputs greedily, in topological order. Which
 *          pairs are legal at all was decided when the problem was made, by the operator table.
 * Cost     O(n + pairs), and n^2 / 64 for the rows of a partial order. */
#include "graphs/problem/fold_pairs.h"

#include "graphs/problem/before.h"

/* Members of each group as a list in time order: next[] from the first on; MPL_NONE ends it. */
typedef struct groups {
    mpl_buffer *first; /* [n] first member of the buffer's group */
    mpl_buffer *next;  /* [n] who overwrites it */
    mpl_buffer *last;  /* [n] by first member */
} groups;

static bool is_fixed(const mpl_problem *p, mpl_buffer b)
{
    return p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
}

/* Whether others lie at a distance from it that is decided. */
static mpl_status mark_families(mpl_ctx *ctx, const mpl_problem *p, uint8_t **in_family)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_new(ctx, *in_family, p->n));
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        if (p->inside[b] != b)
            (*in_family)[b] = (*in_family)[p->inside[b]] = 1;
out:
    return st;
}

static mpl_status group(mpl_ctx *ctx, const mpl_problem *p, groups *g)
{
    mpl_status st = MPL_OK;
    uint8_t *in_family = NULL;

    MPL_TRY(mark_families(ctx, p, &in_family));
    MPL_TRY(mpl_new(ctx, g->first, p->n));
    MPL_TRY(mpl_new(ctx, g->next, p->n));
    MPL_TRY(mpl_new(ctx, g->last, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        g->first[b] = g->last[b] = b;
        g->next[b] = MPL_NONE;
    }
    /* Pairs stand in step order, so an input's group is whole up to that input when its output
     * comes. A partial order has pairs of incomparable steps in any order: then a group may gain
     * members in front, hence the relabelling. */
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];

        if (g->next[in] != MPL_NONE || g->first[out] != out || g->first[in] == out ||
            is_fixed(p, in) || is_fixed(p, out) || in_family[in] || in_family[out])
            continue;
        g->next[in] = out;
        for (mpl_buffer b = out; b != MPL_NONE; b = g->next[b])
            g->first[b] = g->first[in];
        g->last[g->first[in]] = g->last[out];
    }
out:
    mpl_free(ctx, in_family);
    return st;
}

static void groups_fini(mpl_ctx *ctx, groups *g)
{
    mpl_free(ctx, g->first);
    mpl_free(ctx, g->next);
    mpl_free(ctx, g->last);
}

/* Lists first_begin/item or last_begin/item of the folded access: each new buffer's from its
 * representative. */
static mpl_status fold_lists(mpl_ctx *ctx, uint32_t n, const mpl_buffer *of, const uint32_t *begin,
                             const uint32_t *item, uint32_t **new_begin, uint32_t **new_item)
{
    mpl_status st = MPL_OK;
    uint32_t total = 0;

    for (uint32_t i = 0; i < n; i++)
        total += begin[of[i] + 1] - begin[of[i]];
    MPL_TRY(mpl_new(ctx, *new_begin, (size_t)n + 1));
    MPL_TRY(mpl_new(ctx, *new_item, total));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = begin[of[i] + 1] - begin[of[i]];

        memcpy(*new_item + (*new_begin)[i], item + begin[of[i]], count * sizeof *item);
        (*new_begin)[i + 1] = (*new_begin)[i] + count;
    }
out:
    return st;
}

static mpl_status fold_access(mpl_ctx *ctx, const mpl_access *access, uint32_t n,
                              const mpl_buffer *first, const mpl_buffer *last, mpl_access **out)
{
    mpl_status st = MPL_OK;
    mpl_access *a = NULL;
    uint32_t n_edges = access->edge_begin[access->n_events];

    MPL_TRY(mpl_new(ctx, a, 1));
    a->n_events = access->n_events;
    MPL_TRY(mpl_new(ctx, a->edge_begin, (size_t)a->n_events + 1));
    MPL_TRY(mpl_new(ctx, a->edge_item, n_edges));
    memcpy(a->edge_begin, access->edge_begin, ((size_t)a->n_events + 1) * sizeof *a->edge_begin);
    memcpy(a->edge_item, access->edge_item, n_edges * sizeof *a->edge_item);
    MPL_TRY(fold_lists(ctx, n, first, access->first_begin, access->first_item, &a->first_begin,
                       &a->first_item));
    MPL_TRY(fold_lists(ctx, n, last, access->last_begin, access->last_item, &a->last_begin,
                       &a->last_item));
    *out = a, a = NULL;
out:
    mpl_access_free(ctx, a);
    return st;
}

/* The order of the groups: a's last member before b's first. */
static mpl_status fold_before(mpl_ctx *ctx, const mpl_problem *p, uint32_t n,
                              const mpl_buffer *first, const mpl_buffer *last, mpl_before **out)
{
    mpl_status st = MPL_OK;
    uint32_t n_words = n / 64 + (n % 64 != 0);
    uint64_t *rows = NULL;

    MPL_TRY(mpl_new(ctx, rows, (size_t)n * n_words));
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            if (mpl_is_before(p->before, last[a], first[b]))
                mpl_bit_add(rows + (size_t)a * n_words, b);
    MPL_TRY(mpl_before_from_rows_take(ctx, n, &rows, out));
out:
    mpl_free(ctx, rows);
    return st;
}

/* Copies of the optional arrays of one field per buffer, by each group's first member. */
static mpl_status fold_ids(mpl_ctx *ctx, uint32_t n, const mpl_buffer *first, const uint32_t *old,
                           uint32_t **fresh)
{
    mpl_status st = MPL_OK;

    if (old == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, *fresh, n));
    for (uint32_t i = 0; i < n; i++)
        (*fresh)[i] = old[first[i]];
out:
    return st;
}

/* Families stay as they are: none of their parts is folded. */
static mpl_status fold_families(mpl_ctx *ctx, const mpl_problem *p, uint32_t n,
                                const mpl_buffer *first, const uint32_t *into, mpl_problem *f)
{
    mpl_status st = MPL_OK;

    if (p->inside == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, f->inside, n));
    MPL_TRY(mpl_new(ctx, f->inside_at, n));
    for (uint32_t i = 0; i < n; i++) {
        f->inside[i] = into[p->inside[first[i]]];
        f->inside_at[i] = p->inside_at[first[i]];
    }
out:
    return st;
}

static mpl_status fold_optional(mpl_ctx *ctx, const mpl_problem *p, uint32_t n,
                                const mpl_buffer *first, mpl_problem *f)
{
    mpl_status st = MPL_OK;

    MPL_TRY(fold_ids(ctx, n, first, p->type_id, &f->type_id));
    MPL_TRY(fold_ids(ctx, n, first, p->shape_id, &f->shape_id));
    if (p->buffer_name != NULL) {
        MPL_TRY(mpl_new(ctx, f->buffer_name, n));
        for (uint32_t i = 0; i < n; i++)
            if (p->buffer_name[first[i]] != NULL)
                MPL_TRY((f->buffer_name[i] = mpl_strdup(ctx, p->buffer_name[first[i]])) != NULL
                            ? MPL_OK
                            : MPL_EMEM);
    }
    if (p->no_reuse != NULL) {
        MPL_TRY(mpl_new(ctx, f->no_reuse, n));
        for (uint32_t i = 0; i < n; i++)
            f->no_reuse[i] = p->no_reuse[first[i]];
    }
    if (p->fixed != NULL) {
        MPL_TRY(mpl_new(ctx, f->fixed, n));
        for (uint32_t i = 0; i < n; i++)
            f->fixed[i] = p->fixed[first[i]];
    }
out:
    return st;
}

/* A group has the gaps of its members, which meet at one step only, and need each other's bytes
 * there. */
static mpl_status fold_gaps(mpl_ctx *ctx, const mpl_problem *p, const groups *g,
                            const mpl_buffer *first, mpl_problem *f)
{
    mpl_status st = MPL_OK;
    uint32_t n = 0;

    if (p->gap_begin == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, f->gap_begin, (size_t)f->n + 1));
    MPL_TRY(mpl_new(ctx, f->gap_from, p->gap_begin[p->n]));
    MPL_TRY(mpl_new(ctx, f->gap_to, p->gap_begin[p->n]));
    for (uint32_t i = 0; i < f->n; i++) {
        for (mpl_buffer m = first[i]; m != MPL_NONE; m = g->next[m])
            for (uint32_t k = p->gap_begin[m]; k < p->gap_begin[m + 1]; k++) {
                f->gap_from[n] = p->gap_from[k];
                f->gap_to[n++] = p->gap_to[k];
            }
        f->gap_begin[i + 1] = n;
    }
out:
    return st;
}

static mpl_status fold_pools(mpl_ctx *ctx, const mpl_problem *p, mpl_problem *f)
{
    mpl_status st = MPL_OK;

    for (uint32_t i = 0; i < f->n_pools; i++)
        mpl_free(ctx, f->pool_name[i]);
    mpl_free(ctx, f->pool_name);
    mpl_free(ctx, f->pool_capacity);
    f->n_pools = 0;
    f->pool_name = NULL;
    f->pool_capacity = NULL;
    MPL_TRY(mpl_new(ctx, f->pool_name, p->n_pools));
    MPL_TRY(mpl_new(ctx, f->pool_capacity, p->n_pools));
    f->n_pools = p->n_pools;
    for (uint32_t i = 0; i < p->n_pools; i++) {
        f->pool_capacity[i] = p->pool_capacity[i];
        MPL_TRY((f->pool_name[i] = mpl_strdup(ctx, p->pool_name[i])) != NULL ? MPL_OK : MPL_EMEM);
    }
out:
    return st;
}

mpl_status mpl_problem_fold(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into)
{
    mpl_status st = MPL_OK;
    groups g = {0};
    mpl_buffer *first = NULL, *last = NULL;
    mpl_problem *f = NULL;
    mpl_before *before = NULL;
    mpl_access *access = NULL;
    uint32_t n = 0;

    MPL_TRY(group(ctx, p, &g));
    MPL_TRY(mpl_new(ctx, first, p->n));
    MPL_TRY(mpl_new(ctx, last, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (g.first[b] == b) {
            first[n] = b;
            last[n] = g.last[b];
            for (mpl_buffer m = b; m != MPL_NONE; m = g.next[m])
                into[m] = n;
            n++;
        }
    MPL_TRY(mpl_problem_new(ctx, p->name, n, &f));
    f->n_steps = p->n_steps;
    MPL_TRY(fold_pools(ctx, p, f));
    for (uint32_t i = 0; i < n; i++) {
        f->bytes[i] = p->bytes[first[i]];
        f->pool[i] = p->pool[first[i]];
        f->birth[i] = p->birth[first[i]];
        f->death[i] = p->death[last[i]];
        for (mpl_buffer m = first[i]; m != MPL_NONE; m = g.next[m])
            if (p->align[m] > f->align[i])
                f->align[i] = p->align[m];
    }
    MPL_TRY(fold_optional(ctx, p, n, first, f));
    MPL_TRY(fold_gaps(ctx, p, &g, first, f));
    MPL_TRY(fold_families(ctx, p, n, first, into, f));
    if (p->access != NULL) {
        MPL_TRY(fold_access(ctx, p->access, n, first, last, &access));
        f->access = access;
    }
    if (p->before != NULL) {
        MPL_TRY(fold_before(ctx, p, n, first, last, &before));
        f->before = before;
    }
    *out = f, f = NULL;
out:
    groups_fini(ctx, &g);
    mpl_free(ctx, first);
    mpl_free(ctx, last);
    mpl_problem_free(ctx, f);
    return st;
}
