/* subset.c -- a problem made of some buffers of another, perhaps several merged into one. See
 * subset.h.
 *
 * Cost     O(n + pairs + gaps), and O(n^2) for a partial order. */
#include "graphs/problem/subset.h"

#include "graphs/problem/before.h"

typedef struct subset {
    mpl_ctx *ctx;
    const mpl_problem *from;
    const mpl_members *members;
    uint32_t *into; /* [from->n] new buffer of each, or MPL_NONE */
    mpl_problem *made;
} subset;

static mpl_buffer first_of(const subset *s, uint32_t i)
{
    return s->members->item[s->members->begin[i]];
}

static mpl_buffer last_of(const subset *s, uint32_t i)
{
    return s->members->item[s->members->begin[i + 1] - 1];
}

/* Whether new buffer i is a whole family: several buffers at different offsets. */
static bool is_family(const subset *s, uint32_t i)
{
    const uint32_t *inside = s->from->inside;

    return inside != NULL && first_of(s, i) != last_of(s, i) &&
           inside[first_of(s, i)] == inside[last_of(s, i)];
}

/* Copies the per-buffer fields of the first member. */
static mpl_status copy_fields(subset *s)
{
    const mpl_problem *from = s->from;
    mpl_problem *made = s->made;

#define COPY(field)                                                                                \
    if (from->field != NULL && made->field == NULL)                                                \
        MPL_PASS(mpl_new(s->ctx, made->field, made->n));                                           \
    for (uint32_t i = 0; from->field != NULL && i < made->n; i++)                                  \
        made->field[i] = from->field[first_of(s, i)];
    MPL_BUFFER_FIELDS(COPY)
#undef COPY
    return MPL_OK;
}

/* Merges several members: widest alignment, all their bytes and steps. */
static void merge_members(subset *s)
{
    const mpl_problem *from = s->from;
    mpl_problem *made = s->made;
    bool any_fixed = false;

    for (uint32_t i = 0; i < made->n; i++)
        for (uint32_t k = s->members->begin[i]; k < s->members->begin[i + 1]; k++) {
            mpl_buffer b = s->members->item[k];
            uint64_t at = is_family(s, i) ? from->inside_at[b] : 0;

            made->bytes[i] = mpl_max_u64(made->bytes[i], at + from->bytes[b]);
            made->align[i] = from->align[b] > made->align[i] ? from->align[b] : made->align[i];
            made->birth[i] = from->birth[b] < made->birth[i] ? from->birth[b] : made->birth[i];
            made->death[i] = from->death[b] > made->death[i] ? from->death[b] : made->death[i];
            if (from->fixed != NULL && from->fixed[b] != MPL_UNFIXED) {
                made->fixed[i] = from->fixed[b];
                any_fixed = true;
            }
        }
    if (!any_fixed) {
        mpl_free(s->ctx, made->fixed);
        made->fixed = NULL;
    }
}

/* Consecutive members share only one step, which both need, so all their gaps stay. A whole family
 * counts as live from its first birth to its last death. */
static mpl_status keep_gaps(subset *s)
{
    const mpl_problem *from = s->from;
    mpl_problem *made = s->made;
    uint32_t n = 0;

    if (from->gap_begin == NULL)
        return MPL_OK;
    MPL_PASS(mpl_new(s->ctx, made->gap_begin, (size_t)made->n + 1));
    MPL_PASS(mpl_new_each(s->ctx, from->gap_begin[from->n], made->gap_from, made->gap_to));
    for (uint32_t i = 0; i < made->n; i++) {
        for (uint32_t k = s->members->begin[i]; !is_family(s, i) && k < s->members->begin[i + 1];
             k++) {
            mpl_buffer b = s->members->item[k];

            for (uint32_t gap = from->gap_begin[b]; gap < from->gap_begin[b + 1]; gap++) {
                made->gap_from[n] = from->gap_from[gap];
                made->gap_to[n++] = from->gap_to[gap];
            }
        }
        made->gap_begin[i + 1] = n;
    }
    return MPL_OK;
}

/* Whether the new buffers are the old ones. */
static bool keeps_all(const subset *s)
{
    bool same = s->made->n == s->from->n;

    for (uint32_t i = 0; same && i < s->made->n; i++)
        same = first_of(s, i) == i && last_of(s, i) == i;
    return same;
}

/* Row of new buffer i: the new buffers all of whose members come after all members of i. Leaves
 * `met` zero. */
static void fill_row(const subset *s, uint32_t i, uint64_t *common, uint32_t *met, uint64_t *row)
{
    const mpl_before *old = s->from->before;
    const mpl_members *members = s->members;
    mpl_buffer b;

    memset(common, 0xff, old->n_words * sizeof *common);
    for (uint32_t k = members->begin[i]; k < members->begin[i + 1]; k++)
        for (uint32_t w = 0; w < old->n_words; w++)
            common[w] &= old->row[(size_t)members->item[k] * old->n_words + w];
    for (uint32_t w = 0; w < old->n_words; w++)
        for (uint64_t bits = common[w]; bits != 0; bits &= bits - 1) {
            b = w * 64 + (uint32_t)__builtin_ctzll(bits);
            if (s->into[b] != MPL_NONE)
                met[s->into[b]]++;
        }
    for (uint32_t j = 0; j < s->made->n; j++) {
        row[j / 64] |= (uint64_t)(met[j] == members->begin[j + 1] - members->begin[j]) << (j % 64);
        met[j] = 0;
    }
}

/* A new buffer is before another when each of its members is before each member of the other. */
static mpl_status keep_before(subset *s)
{
    mpl_status st = MPL_OK;
    const mpl_before *old = s->from->before;
    mpl_before *before = NULL;
    uint32_t n = s->made->n, n_words = n / 64 + (n % 64 != 0), *met = NULL;
    uint64_t *rows = NULL, *common = NULL;

    if (old == NULL)
        return MPL_OK;
    if (keeps_all(s)) {
        MPL_TRY(mpl_before_copy(s->ctx, old, &before));
    } else {
        MPL_TRY(mpl_new(s->ctx, rows, (size_t)n * n_words));
        MPL_TRY(mpl_new(s->ctx, common, old->n_words));
        MPL_TRY(mpl_new(s->ctx, met, n));
        for (uint32_t i = 0; i < n; i++)
            fill_row(s, i, common, met, rows + (size_t)i * n_words);
        MPL_TRY(mpl_before_from_rows_take(s->ctx, n, &rows, &before));
    }
    s->made->before = before;
out:
    mpl_free_each(s->ctx, rows, common, met);
    return st;
}

/* Keeps pairs between new buffers of one member each. */
static mpl_status keep_pairs(subset *s)
{
    const mpl_problem *from = s->from;
    mpl_problem *made = s->made;

    MPL_PASS(mpl_new_each(s->ctx, from->n_in_place, made->in_place_in, made->in_place_out,
                          made->in_place_step));
    for (uint32_t i = 0; i < from->n_in_place; i++) {
        uint32_t in = s->into[from->in_place_in[i]], out = s->into[from->in_place_out[i]];

        if (in == MPL_NONE || out == MPL_NONE || first_of(s, in) != last_of(s, in) ||
            first_of(s, out) != last_of(s, out))
            continue;
        made->in_place_in[made->n_in_place] = in;
        made->in_place_out[made->n_in_place] = out;
        made->in_place_step[made->n_in_place++] = from->in_place_step[i];
    }
    return MPL_OK;
}

/* Copies the events of one member each: of the first, or of the last. */
static mpl_status copy_events(const subset *s, bool last, const uint32_t *begin,
                              const uint32_t *item, uint32_t **new_begin, uint32_t **new_item)
{
    uint32_t n = s->made->n, total = 0;

    MPL_PASS(mpl_new(s->ctx, *new_begin, (size_t)n + 1));
    for (uint32_t i = 0; i < n; i++) {
        mpl_buffer b = last ? last_of(s, i) : first_of(s, i);

        total += begin[b + 1] - begin[b];
        (*new_begin)[i + 1] = total;
    }
    MPL_PASS(mpl_new(s->ctx, *new_item, total));
    for (uint32_t i = 0; i < n; i++)
        memcpy(*new_item + (*new_begin)[i], item + begin[last ? last_of(s, i) : first_of(s, i)],
               ((*new_begin)[i + 1] - (*new_begin)[i]) * sizeof *item);
    return MPL_OK;
}

static mpl_status keep_access(subset *s)
{
    const mpl_access *old = s->from->access;
    mpl_access *access = NULL;
    uint32_t n_edges;

    if (old == NULL)
        return MPL_OK;
    n_edges = old->edge_begin[old->n_events];
    MPL_PASS(mpl_new(s->ctx, access, 1));
    s->made->access = access;
    access->n_events = old->n_events;
    MPL_PASS(mpl_new(s->ctx, access->edge_begin, (size_t)old->n_events + 1));
    MPL_PASS(mpl_new(s->ctx, access->edge_item, n_edges));
    memcpy(access->edge_begin, old->edge_begin,
           ((size_t)old->n_events + 1) * sizeof *old->edge_begin);
    memcpy(access->edge_item, old->edge_item, n_edges * sizeof *old->edge_item);
    MPL_PASS(copy_events(s, false, old->first_begin, old->first_item, &access->first_begin,
                         &access->first_item));
    return copy_events(s, true, old->last_begin, old->last_item, &access->last_begin,
                       &access->last_item);
}

/* Maps inside[] to new ids. The lowest part of each family must be kept, as a buffer of its own. */
static void keep_families(subset *s)
{
    for (uint32_t i = 0; s->made->inside != NULL && i < s->made->n; i++) {
        s->made->inside[i] = s->into[s->from->inside[first_of(s, i)]];
        mpl_assert(s->made->inside[i] < s->made->n);
    }
}

static void drop_families(subset *s)
{
    mpl_free_each(s->ctx, s->made->inside, s->made->inside_at);
    s->made->inside = NULL;
    s->made->inside_at = NULL;
}

static mpl_status keep_pools(subset *s)
{
    const mpl_problem *from = s->from;
    mpl_problem *made = s->made;

    mpl_free(s->ctx, made->pool_name[0]);
    made->pool_name[0] = NULL;
    MPL_PASS(mpl_realloc_bytes(s->ctx, (void **)&made->pool_name, 1, from->n_pools,
                               sizeof *made->pool_name));
    MPL_PASS(mpl_realloc_bytes(s->ctx, (void **)&made->pool_capacity, 1, from->n_pools,
                               sizeof *made->pool_capacity));
    made->n_pools = from->n_pools;
    for (uint32_t i = 0; i < from->n_pools; i++) {
        made->pool_capacity[i] = from->pool_capacity[i];
        MPL_PASS(mpl_copy_text(s->ctx, made->pool_name[i], from->pool_name[i]));
    }
    if (from->buffer_name != NULL)
        MPL_PASS(mpl_new(s->ctx, made->buffer_name, made->n));
    for (uint32_t i = 0; from->buffer_name != NULL && i < made->n; i++)
        if (from->buffer_name[first_of(s, i)] != NULL)
            MPL_PASS(
                mpl_copy_text(s->ctx, made->buffer_name[i], from->buffer_name[first_of(s, i)]));
    return MPL_OK;
}

mpl_status mpl_problem_subset(mpl_ctx *ctx, const mpl_problem *p, const mpl_members *members,
                              unsigned keep, uint32_t *into, mpl_problem **out)
{
    mpl_status st = MPL_OK;
    uint32_t *own = NULL;
    subset s = {.ctx = ctx, .from = p, .members = members};

    MPL_TRY(mpl_new(ctx, own, p->n));
    s.into = into != NULL ? into : own;
    for (mpl_buffer b = 0; b < p->n; b++)
        s.into[b] = MPL_NONE;
    for (uint32_t i = 0; i < members->n; i++)
        for (uint32_t k = members->begin[i]; k < members->begin[i + 1]; k++)
            s.into[members->item[k]] = i;
    MPL_TRY(mpl_problem_new(ctx, p->name, members->n, &s.made));
    s.made->n_steps = p->n_steps;
    MPL_TRY(copy_fields(&s));
    merge_members(&s);
    if ((keep & MPL_KEEP_POOLS) != 0)
        MPL_TRY(keep_pools(&s));
    else
        memset(s.made->pool, 0, members->n * sizeof *s.made->pool);
    if ((keep & MPL_KEEP_ORDER) != 0) {
        MPL_TRY(keep_gaps(&s));
        MPL_TRY(keep_before(&s));
    }
    if ((keep & MPL_KEEP_FAMILIES) != 0)
        keep_families(&s);
    else
        drop_families(&s);
    if ((keep & MPL_KEEP_PAIRS) != 0)
        MPL_TRY(keep_pairs(&s));
    if ((keep & MPL_KEEP_ACCESS) != 0)
        MPL_TRY(keep_access(&s));
    *out = s.made, s.made = NULL;
out:
    mpl_free(ctx, own);
    mpl_problem_free(ctx, s.made);
    return st;
}
