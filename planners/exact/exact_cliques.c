/* exact_cliques.c -- cliques of a conflict relation. See exact_general.h.
 *
 * Idea     An interval-like relation has few maximal cliques; all are listed. Otherwise each member
 *          gets the heaviest cliques that greedy growth finds.
 * Ticks    Words and rivals examined. Listing uses only a share of the remaining ticks.
 * Source   C. Bron, J. Kerbosch, "Algorithm 457: finding all cliques of an undirected graph", 1973,
 *          with the pivot of E. Tomita, A. Tanaka, H. Takahashi, 2006. */
#include "planners/exact/exact_general.h"

#include "graphs/core/rng.h"
#include "planners/place/sort.h"

/* maximal cliques that are listed before greedy growth takes over */
#define MAX_LISTED(n) (8 * (uint64_t)(n) + 256)
#define STEPS_EACH    30 /* nodes of the listing for each clique */
#define SHARE         8  /* listing may use 1 / SHARE of the ticks left */

typedef struct lister {
    mpl_ctx *ctx;
    const mpl_bodies *b;
    uint32_t n, n_words;
    mpl_exact_effort *effort;
    uint64_t tick_limit; /* of listing */
    uint64_t *row;       /* stack of candidates and excluded members, two rows a level */
    uint32_t *chosen;
    uint32_t n_chosen;
    uint64_t limit, steps;
    bool too_many;
    mpl_cliques *q;
    uint64_t *hash; /* [q->n] */
    size_t room_begin, room_member, room_hash;
    uint32_t *by_size; /* [n] largest first */
} lister;

static bool is_late(lister *l)
{
    mpl_exact_effort *e = l->effort;

    e->by_clock = e->by_clock || mpl_exact_late(e->deadline_ns, e->watch);
    return e->by_clock || e->ticks >= l->tick_limit;
}

/* Adds chosen[] as a clique unless it is known. */
static mpl_status add(lister *l)
{
    mpl_cliques *q = l->q;
    uint64_t hash = l->n_chosen;
    uint32_t end = q->n > 0 ? q->begin[q->n] : 0;

    for (uint32_t i = 0; i < l->n_chosen; i++)
        hash += mpl_rng_mix(mpl_rng_mix(l->chosen[i]) + l->n_chosen);
    l->effort->ticks += q->n / 4;
    for (uint32_t k = 0; k < q->n; k++)
        if (l->hash[k] == hash && q->begin[k + 1] - q->begin[k] == l->n_chosen)
            return MPL_OK;
    MPL_PASS(mpl_reserve(l->ctx, q->begin, l->room_begin, (size_t)q->n + 2));
    MPL_PASS(mpl_reserve(l->ctx, l->hash, l->room_hash, (size_t)q->n + 1));
    MPL_PASS(mpl_reserve(l->ctx, q->member, l->room_member, (size_t)end + l->n_chosen));
    memcpy(q->member + end, l->chosen, l->n_chosen * sizeof *l->chosen);
    l->hash[q->n] = hash;
    q->begin[++q->n] = end + l->n_chosen;
    return MPL_OK;
}

static const uint64_t *rivals_of(const lister *l, uint32_t m)
{
    return l->b->member_rival + (size_t)m * l->n_words;
}

static uint32_t n_common(const uint64_t *a, const uint64_t *b, uint32_t n_words)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < n_words; w++)
        n += (uint32_t)__builtin_popcountll(a[w] & b[w]);
    return n;
}

/* The candidate or excluded member with the most rivals among the candidates. */
static uint32_t find_pivot(const lister *l, const uint64_t *candidate, const uint64_t *excluded)
{
    uint32_t pivot = MPL_NONE, most = 0;

    for (uint32_t w = 0; w < l->n_words; w++)
        for (uint64_t bits = candidate[w] | excluded[w]; bits != 0; bits &= bits - 1) {
            uint32_t m = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint32_t n = n_common(candidate, rivals_of(l, m), l->n_words);

            l->effort->ticks += l->n_words;
            if (pivot == MPL_NONE || n > most)
                pivot = m, most = n;
        }
    return pivot;
}

/* Lists the maximal cliques that contain chosen[] and some candidates of `level`. */
static mpl_status list(lister *l, uint32_t level)
{
    uint64_t *candidate = l->row + 2 * (size_t)level * l->n_words,
             *excluded = candidate + l->n_words;
    uint64_t *next = excluded + l->n_words;
    uint32_t pivot = find_pivot(l, candidate, excluded);

    if (pivot == MPL_NONE)
        return add(l);
    for (uint32_t w = 0; w < l->n_words && !l->too_many; w++)
        for (uint64_t bits = candidate[w] & ~rivals_of(l, pivot)[w]; bits != 0; bits &= bits - 1) {
            uint32_t m = w * 64 + (uint32_t)__builtin_ctzll(bits);

            if (l->q->n >= l->limit || ++l->steps > STEPS_EACH * l->limit || is_late(l)) {
                l->too_many = true;
                break;
            }
            for (uint32_t k = 0; k < l->n_words; k++) {
                next[k] = candidate[k] & rivals_of(l, m)[k];
                next[l->n_words + k] = excluded[k] & rivals_of(l, m)[k];
            }
            l->chosen[l->n_chosen++] = m;
            MPL_PASS(list(l, level + 1));
            l->n_chosen--;
            candidate[w] &= ~(UINT64_C(1) << (m % 64));
            mpl_bit_add(excluded, m);
        }
    return MPL_OK;
}

static void clear_chosen(lister *l, uint32_t m)
{
    l->chosen[0] = m;
    l->n_chosen = 1;
    memcpy(l->row, rivals_of(l, m), l->n_words * sizeof *l->row);
}

static mpl_status add_chosen(lister *l)
{
    mpl_sort_u32(l->chosen, l->n_chosen);
    return add(l);
}

/* Grows one clique around m, always by the largest common rival. */
static mpl_status grow_by_size(lister *l, uint32_t m)
{
    clear_chosen(l, m);
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t i = l->by_size[k];

        if (!mpl_bit_has(l->row, i))
            continue;
        l->chosen[l->n_chosen++] = i;
        for (uint32_t w = 0; w < l->n_words; w++)
            l->row[w] &= rivals_of(l, i)[w];
        l->effort->ticks += l->n_words;
    }
    l->effort->ticks += l->n;
    return add_chosen(l);
}

/* Grows cliques around each member, so that each is in one. */
static mpl_status grow_all(lister *l)
{
    mpl_status st = MPL_OK;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new_each(l->ctx, l->n, key, l->by_size));
    for (uint32_t m = 0; m < l->n; m++)
        key[m] = UINT64_MAX - l->b->member_size[m];
    mpl_ids_ascending(l->n, l->by_size);
    MPL_TRY(mpl_sort_ids(l->ctx, l->n, l->by_size, key));
    for (uint32_t m = 0; m < l->n; m++)
        MPL_TRY(grow_by_size(l, m));
out:
    mpl_free(l->ctx, key);
    return st;
}

/* Lists the cliques of each body. */
static mpl_status index_bodies(mpl_ctx *ctx, const mpl_bodies *b, mpl_cliques *q)
{
    mpl_status st = MPL_OK;
    uint32_t *body = NULL;

    MPL_TRY(mpl_new(ctx, body, q->begin[q->n]));
    for (uint32_t i = 0; i < q->begin[q->n]; i++)
        body[i] = b->body[q->member[i]];
    MPL_TRY(mpl_lists_turn(ctx, b->n, q->n, q->begin, body, &q->of_begin, &q->of_item));
out:
    mpl_free(ctx, body);
    return st;
}

mpl_status mpl_cliques_new(mpl_ctx *ctx, const mpl_bodies *b, mpl_exact_effort *effort,
                           mpl_cliques **out)
{
    mpl_status st = MPL_OK;
    lister l = {.ctx = ctx,
                .b = b,
                .n = b->n_members,
                .n_words = b->n_member_words,
                .effort = effort,
                .limit = MAX_LISTED(b->n)};

    MPL_TRY(mpl_new(ctx, l.q, 1));
    MPL_TRY(mpl_new(ctx, l.row, 2 * ((size_t)l.n + 2) * l.n_words));
    MPL_TRY(mpl_new(ctx, l.chosen, (size_t)l.n + 1));
    MPL_TRY(mpl_reserve(ctx, l.q->begin, l.room_begin, 1));
    for (uint32_t m = 0; m < l.n; m++)
        mpl_bit_add(l.row, m);
    l.tick_limit = effort->tick_limit;
    if (effort->ticks < effort->tick_limit)
        l.tick_limit = effort->ticks + (effort->tick_limit - effort->ticks) / SHARE;
    l.too_many = !mpl_exact_uses(effort->without, MPL_RULE_cliques);
    if (!l.too_many)
        MPL_TRY(list(&l, 0));
    if (l.too_many)
        MPL_TRY(grow_all(&l));
    for (uint32_t c = 0; c < l.q->n; c++)
        mpl_sort_u32(l.q->member + l.q->begin[c], l.q->begin[c + 1] - l.q->begin[c]);
    MPL_TRY(index_bodies(ctx, b, l.q));
    *out = l.q, l.q = NULL;
out:
    mpl_cliques_free(ctx, l.q);
    mpl_free_each(ctx, l.row, l.chosen, l.hash, l.by_size);
    return st;
}

void mpl_cliques_free(mpl_ctx *ctx, mpl_cliques *q)
{
    if (q == NULL)
        return;
    mpl_free_each(ctx, q->begin, q->member, q->of_begin, q->of_item, q);
}

uint64_t mpl_cliques_bound(const mpl_bodies *b, const mpl_cliques *q)
{
    uint64_t bound = 0;

    for (uint32_t c = 0; c < q->n; c++) {
        uint64_t sum = 0, rest = 0; /* of the topmost member's last slot */

        for (uint32_t i = q->begin[c]; i < q->begin[c + 1]; i++) {
            sum += b->member_size[q->member[i]];
            rest = mpl_max_u64(rest, b->member_size[q->member[i]] - b->member_bytes[q->member[i]]);
        }
        bound = mpl_max_u64(bound, sum - rest);
    }
    for (uint32_t i = 0; i < b->n; i++)
        bound =
            mpl_max_u64(bound, (b->fixed != NULL && b->fixed[i] != MPL_UNFIXED ? b->fixed[i] : 0) +
                                   b->bytes[i]);
    return bound;
}
