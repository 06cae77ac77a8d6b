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
    const mpl_bodies *bodies;
    uint32_t n, n_words;
    mpl_exact_effort *effort;
    uint64_t tick_limit; /* of listing */
    uint64_t *row;       /* stack of candidates and excluded members, two rows a level */
    uint32_t *chosen;
    uint32_t n_chosen;
    uint64_t limit, steps;
    bool too_many;
    mpl_cliques *cliques;
    uint64_t *hash; /* [q->n] */
    size_t room_begin, room_member, room_hash;
    uint32_t *by_size; /* [n] largest first */
} lister;

static bool is_late(lister *self)
{
    mpl_exact_effort *effort = self->effort;

    effort->by_clock = effort->by_clock || mpl_exact_late(effort->deadline_ns, effort->watch);
    return effort->by_clock || effort->ticks >= self->tick_limit;
}

/* Adds chosen[] as a clique unless it is known. */
static mpl_status add(lister *self)
{
    mpl_cliques *cliques = self->cliques;
    uint64_t hash = self->n_chosen;
    uint32_t end = cliques->n > 0 ? cliques->begin[cliques->n] : 0;

    for (uint32_t i = 0; i < self->n_chosen; i++)
        hash += mpl_rng_mix(mpl_rng_mix(self->chosen[i]) + self->n_chosen);
    self->effort->ticks += cliques->n / 4;
    for (uint32_t k = 0; k < cliques->n; k++)
        if (self->hash[k] == hash && cliques->begin[k + 1] - cliques->begin[k] == self->n_chosen)
            return MPL_OK;
    MPL_PASS(mpl_reserve(self->ctx, cliques->begin, self->room_begin, (size_t)cliques->n + 2));
    MPL_PASS(mpl_reserve(self->ctx, self->hash, self->room_hash, (size_t)cliques->n + 1));
    MPL_PASS(
        mpl_reserve(self->ctx, cliques->member, self->room_member, (size_t)end + self->n_chosen));
    memcpy(cliques->member + end, self->chosen, self->n_chosen * sizeof *self->chosen);
    self->hash[cliques->n] = hash;
    cliques->begin[++cliques->n] = end + self->n_chosen;
    return MPL_OK;
}

static const uint64_t *rivals_of(const lister *self, uint32_t m)
{
    return self->bodies->member_rival + (size_t)m * self->n_words;
}

static uint32_t n_common(const uint64_t *a, const uint64_t *b, uint32_t n_words)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < n_words; w++)
        n += (uint32_t)__builtin_popcountll(a[w] & b[w]);
    return n;
}

/* The candidate or excluded member with the most rivals among the candidates. */
static uint32_t find_pivot(const lister *self, const uint64_t *candidate, const uint64_t *excluded)
{
    uint32_t pivot = MPL_NONE, most = 0;

    for (uint32_t w = 0; w < self->n_words; w++)
        for (uint64_t bits = candidate[w] | excluded[w]; bits != 0; bits &= bits - 1) {
            uint32_t m = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint32_t n = n_common(candidate, rivals_of(self, m), self->n_words);

            self->effort->ticks += self->n_words;
            if (pivot == MPL_NONE || n > most)
                pivot = m, most = n;
        }
    return pivot;
}

/* Lists the maximal cliques that contain chosen[] and some candidates of `level`. */
static mpl_status list(lister *self, uint32_t level)
{
    uint64_t *candidate = self->row + 2 * (size_t)level * self->n_words,
             *excluded = candidate + self->n_words;
    uint64_t *next = excluded + self->n_words;
    uint32_t pivot = find_pivot(self, candidate, excluded);

    if (pivot == MPL_NONE)
        return add(self);
    for (uint32_t w = 0; w < self->n_words && !self->too_many; w++)
        for (uint64_t bits = candidate[w] & ~rivals_of(self, pivot)[w]; bits != 0;
             bits &= bits - 1) {
            uint32_t m = w * 64 + (uint32_t)__builtin_ctzll(bits);

            if (self->cliques->n >= self->limit || ++self->steps > STEPS_EACH * self->limit ||
                is_late(self)) {
                self->too_many = true;
                break;
            }
            for (uint32_t k = 0; k < self->n_words; k++) {
                next[k] = candidate[k] & rivals_of(self, m)[k];
                next[self->n_words + k] = excluded[k] & rivals_of(self, m)[k];
            }
            self->chosen[self->n_chosen++] = m;
            MPL_PASS(list(self, level + 1));
            self->n_chosen--;
            candidate[w] &= ~(UINT64_C(1) << (m % 64));
            mpl_bit_add(excluded, m);
        }
    return MPL_OK;
}

static void clear_chosen(lister *self, uint32_t m)
{
    self->chosen[0] = m;
    self->n_chosen = 1;
    memcpy(self->row, rivals_of(self, m), self->n_words * sizeof *self->row);
}

static mpl_status add_chosen(lister *self)
{
    mpl_sort_u32(self->chosen, self->n_chosen);
    return add(self);
}

/* Grows one clique around m, always by the largest common rival. */
static mpl_status grow_by_size(lister *self, uint32_t m)
{
    clear_chosen(self, m);
    for (uint32_t k = 0; k < self->n; k++) {
        uint32_t i = self->by_size[k];

        if (!mpl_bit_has(self->row, i))
            continue;
        self->chosen[self->n_chosen++] = i;
        for (uint32_t w = 0; w < self->n_words; w++)
            self->row[w] &= rivals_of(self, i)[w];
        self->effort->ticks += self->n_words;
    }
    self->effort->ticks += self->n;
    return add_chosen(self);
}

/* Grows cliques around each member, so that each is in one. */
static mpl_status grow_all(lister *self)
{
    mpl_status st = MPL_OK;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new_each(self->ctx, self->n, key, self->by_size));
    for (uint32_t m = 0; m < self->n; m++)
        key[m] = UINT64_MAX - self->bodies->member_size[m];
    mpl_ids_ascending(self->n, self->by_size);
    MPL_TRY(mpl_sort_ids(self->ctx, self->n, self->by_size, key));
    for (uint32_t m = 0; m < self->n; m++)
        MPL_TRY(grow_by_size(self, m));
out:
    mpl_free(self->ctx, key);
    return st;
}

/* Lists the cliques of each body. */
static mpl_status index_bodies(mpl_ctx *ctx, const mpl_bodies *bodies, mpl_cliques *cliques)
{
    mpl_status st = MPL_OK;
    uint32_t *body = NULL;

    MPL_TRY(mpl_new(ctx, body, cliques->begin[cliques->n]));
    for (uint32_t i = 0; i < cliques->begin[cliques->n]; i++)
        body[i] = bodies->body[cliques->member[i]];
    MPL_TRY(mpl_lists_turn(ctx, bodies->n, cliques->n, cliques->begin, body, &cliques->of_begin,
                           &cliques->of_item));
out:
    mpl_free(ctx, body);
    return st;
}

mpl_status mpl_cliques_new(mpl_ctx *ctx, const mpl_bodies *bodies, mpl_exact_effort *effort,
                           mpl_cliques **out)
{
    mpl_status st = MPL_OK;
    lister l = {.ctx = ctx,
                .bodies = bodies,
                .n = bodies->n_members,
                .n_words = bodies->n_member_words,
                .effort = effort,
                .limit = MAX_LISTED(bodies->n)};

    MPL_TRY(mpl_new(ctx, l.cliques, 1));
    MPL_TRY(mpl_new(ctx, l.row, 2 * ((size_t)l.n + 2) * l.n_words));
    MPL_TRY(mpl_new(ctx, l.chosen, (size_t)l.n + 1));
    MPL_TRY(mpl_reserve(ctx, l.cliques->begin, l.room_begin, 1));
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
    for (uint32_t c = 0; c < l.cliques->n; c++)
        mpl_sort_u32(l.cliques->member + l.cliques->begin[c],
                     l.cliques->begin[c + 1] - l.cliques->begin[c]);
    MPL_TRY(index_bodies(ctx, bodies, l.cliques));
    *out = l.cliques, l.cliques = NULL;
out:
    mpl_cliques_free(ctx, l.cliques);
    mpl_free_each(ctx, l.row, l.chosen, l.hash, l.by_size);
    return st;
}

void mpl_cliques_free(mpl_ctx *ctx, mpl_cliques *cliques)
{
    if (cliques == NULL)
        return;
    mpl_free_each(ctx, cliques->begin, cliques->member, cliques->of_begin, cliques->of_item,
                  cliques);
}

uint64_t mpl_cliques_bound(const mpl_bodies *bodies, const mpl_cliques *cliques)
{
    uint64_t bound = 0;

    for (uint32_t c = 0; c < cliques->n; c++) {
        uint64_t sum = 0, rest = 0; /* of the topmost member's last slot */

        for (uint32_t i = cliques->begin[c]; i < cliques->begin[c + 1]; i++) {
            sum += bodies->member_size[cliques->member[i]];
            rest = mpl_max_u64(rest, bodies->member_size[cliques->member[i]] -
                                         bodies->member_bytes[cliques->member[i]]);
        }
        bound = mpl_max_u64(bound, sum - rest);
    }
    for (uint32_t i = 0; i < bodies->n; i++)
        bound = mpl_max_u64(
            bound,
            (bodies->fixed != NULL && bodies->fixed[i] != MPL_UNFIXED ? bodies->fixed[i] : 0) +
                bodies->bytes[i]);
    return bound;
}
