/* valleys.c -- legs through the closed sets of a part of a model. See valleys.h.
 *
 * Idea     Start at the empty set and go to the nearest lower valley: of the sets with fewer live
 *          bytes, the one reached with the lowest peak, and of several the one with the fewest
 *          bytes. Repeat until no set has fewer bytes. Do the same backwards from the full set.
 *          Take any order of the whole graph in which the part is ready throughout and shares no
 *          buffer with the other operations that run meanwhile. When the part's cost in it first
 *          reaches a leg's hill, run that whole leg; after the part is above a hill for the last
 *          time, do so backwards. At every moment the part then has at most as many live bytes as
 *          before, and no leg costs more than the order did at that moment. So some best order runs
 *          the legs.
 *          This needs that the next valley is as cheap to reach from the last one as from the
 *          start, and that the highest hill is the least peak of the part. Both are checked for the
 *          sets at hand, so the result does not rely on costs being submodular.
 * Source   hills and valleys: J. Liu, "An application of generalized tree pebbling to sparse matrix
 *          factorization", 1987; series-parallel graphs: E. Kayaaslan, T. Lambert, L. Marchal, B.
 *          Ucar, 2018; from the end backwards, and sets instead of chains: as there, this project.
 * Cost     O(moves) for each leg. */
#include "graphs/orders/model/valleys.h"

/* ---- closed sets ---- */

void mpl_sets_fini(mpl_ctx *ctx, mpl_sets *s)
{
    mpl_free_each(ctx, s->live, s->moves);
    memset(s, 0, sizeof *s);
}

static mpl_status add_move(mpl_ctx *ctx, mpl_sets *sets, mpl_move move)
{
    MPL_PASS(mpl_reserve(ctx, sets->moves, sets->move_cap, sets->n_moves + 1));
    sets->moves[sets->n_moves++] = move;
    return MPL_OK;
}

mpl_status mpl_sets_along(mpl_ctx *ctx, const mpl_order_model *model, mpl_sets *sets)
{
    mpl_status st = MPL_OK;
    mpl_order_walk walk = {0};

    *sets = (mpl_sets){.n = model->n + 1};
    MPL_TRY(mpl_order_walk_init(ctx, model, &walk));
    MPL_TRY(mpl_new(ctx, sets->live, (size_t)model->n + 1));
    for (uint32_t v = 0; v < model->n; v++) {
        sets->live[v] = walk.live - model->base;
        MPL_TRY(add_move(ctx, sets,
                         (mpl_move){v, v + 1, v, mpl_order_walk_cost(&walk, v) - model->base}));
        mpl_order_walk_run(&walk, v);
    }
    sets->live[model->n] = walk.live - model->base;
out:
    mpl_order_walk_fini(ctx, &walk);
    return st;
}

/* A table of sets under construction. */
typedef struct table {
    mpl_ctx *ctx;
    const mpl_order_model *model;
    uint32_t n_words, size; /* size: of slot, a power of two */
    uint64_t *words;        /* [s->n * n_words] */
    size_t word_cap;
    uint32_t *slot; /* [size] a set, or MPL_NONE */
} table;

static uint64_t *words_of(const table *self, uint32_t set)
{
    return self->words + (size_t)set * self->n_words;
}

/* The slot of the set stored last, or of an equal earlier set. */
static uint32_t *find(const table *self, uint32_t last)
{
    uint64_t h = MPL_HASH_SEED;
    uint32_t at;

    for (uint32_t i = 0; i < self->n_words; i++) {
        h = (h ^ words_of(self, last)[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    at = (uint32_t)h & (self->size - 1);
    while (self->slot[at] != MPL_NONE &&
           memcmp(words_of(self, self->slot[at]), words_of(self, last),
                  self->n_words * sizeof *self->words) != 0)
        at = (at + 1) & (self->size - 1);
    return &self->slot[at];
}

/* Adds the moves that leave set `from`. The walk has run exactly its operations. */
static mpl_status expand(table *self, mpl_sets *sets, uint32_t from, const mpl_order_walk *walk)
{
    for (uint32_t v = 0; v < self->model->n; v++) {
        uint32_t *slot;

        if (walk->done[v] || walk->waits[v] > 0)
            continue;
        MPL_PASS(mpl_reserve(self->ctx, self->words, self->word_cap,
                             (size_t)(sets->n + 1) * self->n_words));
        memcpy(words_of(self, sets->n), words_of(self, from), self->n_words * sizeof *self->words);
        words_of(self, sets->n)[v / 64] |= UINT64_C(1) << v % 64;
        slot = find(self, sets->n);
        if (*slot == MPL_NONE)
            *slot = sets->n++;
        MPL_PASS(
            add_move(self->ctx, sets,
                     (mpl_move){from, *slot, v, mpl_order_walk_cost(walk, v) - self->model->base}));
    }
    return MPL_OK;
}

mpl_status mpl_sets_of(mpl_ctx *ctx, const mpl_order_model *model, uint32_t most, uint64_t *ticks,
                       mpl_sets *sets, bool *whole)
{
    mpl_status st = MPL_OK;
    table t = {.ctx = ctx, .model = model, .n_words = (model->n + 63) / 64, .size = 64};
    mpl_order_walk walk = {0};
    uint32_t from = 0;

    *sets = (mpl_sets){.n = 1};
    while (t.size < 2 * (most + model->n))
        t.size *= 2;
    MPL_TRY(mpl_order_walk_init(ctx, model, &walk));
    MPL_TRY(mpl_new(ctx, t.slot, t.size));
    memset(t.slot, 0xff, t.size * sizeof *t.slot);
    MPL_TRY(mpl_reserve(ctx, t.words, t.word_cap, t.n_words));
    memset(t.words, 0, t.n_words * sizeof *t.words);
    *find(&t, 0) = 0;
    for (; from < sets->n && sets->n <= most; from++) {
        MPL_TRY(mpl_reserve(ctx, sets->live, sets->live_cap, (size_t)from + 1));
        mpl_order_walk_reset(&walk);
        for (uint32_t v = 0; v < model->n; v++)
            if (mpl_bit_has(words_of(&t, from), v))
                mpl_order_walk_run(&walk, v); /* ids are a valid order */
        sets->live[from] = walk.live - model->base;
        MPL_TRY(expand(&t, sets, from, &walk));
        *ticks += model->n / 4 + 1;
    }
    *whole = from == sets->n;
out:
    mpl_order_walk_fini(ctx, &walk);
    mpl_free_each(ctx, t.words, t.slot);
    return st;
}

/* ---- legs ---- */

typedef struct finder {
    const mpl_sets *sets;
    uint64_t *from_start; /* [sets->n] the lowest peak of a way from the empty set */
    uint64_t *peak;       /* [sets->n] of a way from the set asked for last, or to it */
    size_t *via;          /* [sets->n] its last (first) move */
    size_t *begin;        /* [sets->n + 1] into moves */
    mpl_leg *legs;
    uint32_t *ops, n_ops, n_legs;
    bool exact;
} finder;

static void reach_from(finder *self, uint32_t start)
{
    const mpl_sets *sets = self->sets;

    memset(self->peak, 0xff, sets->n * sizeof *self->peak);
    self->peak[start] = 0;
    for (size_t i = self->begin[start]; i < sets->n_moves; i++) {
        const mpl_move *move = &sets->moves[i];
        uint64_t peak = mpl_max_u64(self->peak[move->from], move->cost);

        if (peak < self->peak[move->to]) {
            self->peak[move->to] = peak;
            self->via[move->to] = i;
        }
    }
}

static void reach_to(finder *self, uint32_t end)
{
    const mpl_sets *sets = self->sets;

    memset(self->peak, 0xff, sets->n * sizeof *self->peak);
    self->peak[end] = 0;
    for (size_t i = self->begin[end]; i-- > 0;) {
        const mpl_move *move = &sets->moves[i];
        uint64_t peak = mpl_max_u64(self->peak[move->to], move->cost);

        if (peak < self->peak[move->from]) {
            self->peak[move->from] = peak;
            self->via[move->from] = i;
        }
    }
}

/* The nearest set with fewer live bytes than `than`, or MPL_NONE. */
static uint32_t nearest_lower(const finder *self, const uint64_t *peak, uint64_t than)
{
    uint32_t best = MPL_NONE;

    for (uint32_t i = 0; i < self->sets->n; i++) {
        if (self->sets->live[i] >= than || peak[i] == UINT64_MAX)
            continue;
        if (best == MPL_NONE || peak[i] < peak[best] ||
            (peak[i] == peak[best] && self->sets->live[i] < self->sets->live[best]))
            best = i;
    }
    return best;
}

/* Appends the operations on the way that reach_from(from) found. */
static void add_leg(finder *self, uint32_t from, uint32_t to)
{
    mpl_leg *leg = &self->legs[self->n_legs++];
    uint32_t n = 0;

    for (uint32_t at = to; at != from; at = self->sets->moves[self->via[at]].from)
        n++;
    *leg = (mpl_leg){self->peak[to], self->sets->live[to], self->n_ops, n};
    self->n_ops += n;
    for (uint32_t at = to, k = self->n_ops; at != from; at = self->sets->moves[self->via[at]].from)
        self->ops[--k] = self->sets->moves[self->via[at]].op;
}

/* Goes from valley to lower valley, starting at the empty set; returns the last one. */
static uint32_t go_down(finder *self)
{
    uint32_t at = 0;

    for (;;) {
        uint64_t live = self->sets->live[at];
        uint32_t from_start = nearest_lower(self, self->from_start, live), next;

        if (from_start == MPL_NONE)
            return at;
        reach_from(self, at);
        next = nearest_lower(self, self->peak, live);
        if (next == MPL_NONE)
            return at;
        self->exact = self->exact && self->peak[next] == self->from_start[from_start];
        add_leg(self, at, next);
        at = next;
    }
}

/* Goes backwards in time from the full set to ever lower valleys. Writes them, the lowest first;
 * returns their number. */
static uint32_t go_back(finder *self, const uint64_t *to_end, uint32_t *valleys, uint32_t most)
{
    uint32_t at = self->sets->n - 1, n = 0;

    valleys[most - ++n] = at;
    while (n < most) {
        uint64_t live = self->sets->live[at];
        uint32_t from_end = nearest_lower(self, to_end, live), next;

        if (from_end == MPL_NONE)
            break;
        reach_to(self, at);
        next = nearest_lower(self, self->peak, live);
        if (next == MPL_NONE)
            break;
        self->exact = self->exact && self->peak[next] == to_end[from_end];
        valleys[most - ++n] = at = next;
    }
    memmove(valleys, valleys + most - n, n * sizeof *valleys);
    return n;
}

static mpl_status finder_init(mpl_ctx *ctx, finder *f)
{
    uint32_t n = f->sets->n;

    MPL_PASS(mpl_new_each(ctx, n, f->from_start, f->peak, f->via));
    MPL_PASS(mpl_new(ctx, f->begin, (size_t)n + 1));
    for (size_t i = 0; i < f->sets->n_moves; i++)
        f->begin[f->sets->moves[i].from + 1] = i + 1;
    for (uint32_t i = 0; i < n; i++) /* the full set has no moves */
        f->begin[i + 1] = f->begin[i + 1] > f->begin[i] ? f->begin[i + 1] : f->begin[i];
    reach_from(f, 0);
    memcpy(f->from_start, f->peak, n * sizeof *f->peak);
    return MPL_OK;
}

mpl_status mpl_valleys(mpl_ctx *ctx, const mpl_sets *sets, uint32_t n_ops, mpl_leg *legs,
                       uint32_t *ops, uint32_t *n_legs, bool *exact)
{
    mpl_status st = MPL_OK;
    finder f = {.sets = sets, .legs = legs, .ops = ops, .exact = true};
    uint64_t *to_end = NULL, hill = 0, lowest = UINT64_MAX;
    uint32_t *valleys = NULL, n_valleys, at;

    MPL_TRY(finder_init(ctx, &f));
    MPL_TRY(mpl_new(ctx, to_end, sets->n));
    MPL_TRY(mpl_new(ctx, valleys, (size_t)n_ops + 1));
    reach_to(&f, sets->n - 1);
    memcpy(to_end, f.peak, sets->n * sizeof *to_end);
    n_valleys = go_back(&f, to_end, valleys, n_ops + 1);
    at = go_down(&f);
    for (uint32_t i = 0; i < sets->n; i++)
        lowest = mpl_min_u64(lowest, sets->live[i]);
    f.exact = f.exact && sets->live[at] == lowest && sets->live[valleys[0]] == lowest;
    for (uint32_t i = 0; i < n_valleys && f.exact; at = valleys[i++]) {
        reach_from(&f, at);
        f.exact = f.peak[valleys[i]] < UINT64_MAX;
        if (f.exact && valleys[i] != at)
            add_leg(&f, at, valleys[i]);
    }
    for (uint32_t i = 0; i < f.n_legs; i++)
        hill = mpl_max_u64(hill, legs[i].hill);
    *exact = f.exact && f.n_ops == n_ops && hill == f.from_start[sets->n - 1];
    *n_legs = f.n_legs;
out:;
    void *const arrays[] = {f.from_start, f.peak, f.via, f.begin, to_end, valleys};

    MPL_FREE_ALL(ctx, arrays);
    return st;
}
