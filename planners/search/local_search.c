/* local_search.c -- repairs plans that are too high: a buffer that does not fit displaces the least
 * weight.
 *
 * Idea     Take the best plan and lower the ceiling a little; the buffers above it are removed.
 *          Each in turn goes back into a gap, or else to the offset where the buffers in its way
 *          weigh least; those are removed. A buffer without a gap becomes heavier, so hard buffers
 *          are displaced less often. Buffers with room are moved about, so that gaps change. When
 *          all are placed, the plan is better and the ceiling sinks again. When that takes too
 *          long, it restarts from the best plan with a smaller step.
 * Source   this project; displacement by learnt weights is Y. Nagata and O. Braysy's for fleets of
 *          vehicles, "A powerful route minimization heuristic for the vehicle routing problem with
 *          time windows", 2009.
 * Start    The best of the placements by size, area, conflicts and live range.
 * Families As in hill_climb: a rival may forbid several intervals of a family's start.
 * Cost     O(rivals of the buffer, times their logarithm at first) a step; 16 bytes a conflict.
 * Limits   No bound on the distance to the optimum. Without budget and deadline it ends after
 *          DEFAULT_TICKS. */
#include "graphs/core/rng.h"
#include "planners/place/packing.h"

#define DEFAULT_TICKS UINT64_C(300000000) /* about a second */
#define PATIENCE      400 /* steps per buffer before the ceiling counts as too low */
#define SHAKES        4   /* buffers moved about after a displacement */

/* Interval (low, high) of starts of the current buffer that a placed rival forbids. */
typedef struct wall {
    int64_t low, high; /* [byte] */
    uint64_t weight;
    uint32_t index; /* of the rival */
} wall;

typedef struct repair {
    mpl_packing *packing;
    uint64_t ceiling; /* [byte] */
    uint8_t *in;      /* [n] placed */
    uint32_t *out;    /* [n] stack of removed members */
    uint32_t n_out;
    uint64_t *weight; /* [n] */
    uint32_t *by_end; /* as q->rival, but sorted by end */
    int64_t *high;    /* of each rival, as q->wall; NULL without families */
    wall *wall;       /* [most rivals] of placed rivals, by lower end */
    int64_t *end;     /* upper ends, ascending */
    uint64_t *below;  /* prefix sums of weight by upper end */
    uint64_t *before; /* prefix sums of weight by lower end */
    mpl_rng rng;
} repair;

static uint64_t end_of(const mpl_packing *packing, uint32_t a)
{
    return packing->offset[a] + packing->bytes[a];
}

/* ---- gaps ---- */

/* Finds a free offset for b: any gap with equal probability, at its lower or upper end. */
static bool find_gap(repair *self, uint32_t b, uint64_t *offset)
{
    mpl_packing *packing = self->packing;
    uint64_t bytes = packing->bytes[b], align = packing->align[b], at;
    int64_t low = 0;
    uint32_t n_gaps = 0;
    bool upper = mpl_rng_below(&self->rng, 4) == 0;

    mpl_packing_sort(packing, b);
    for (uint32_t i = packing->begin[b]; i <= packing->begin[b + 1]; i++) {
        bool last = i == packing->begin[b + 1];
        int64_t top, end;

        if (!last && !self->in[packing->rival[i]])
            continue;
        top = last ? (int64_t)(self->ceiling - bytes) : mpl_packing_low(packing, b, i);
        if (low <= top && mpl_rng_below(&self->rng, ++n_gaps) == 0)
            *offset = (uint64_t)(upper ? top : low) & ~(align - 1);
        end = last ? 0 : mpl_packing_high(packing, i);
        if (end > low)
            low = (int64_t)mpl_align_up((uint64_t)end, align);
    }
    for (uint32_t i = packing->pair_begin != NULL ? packing->pair_begin[b] : 0;
         packing->pair_begin != NULL && i < packing->pair_begin[b + 1]; i++)
        if (self->in[packing->pair[i]] && mpl_packing_on_partner(packing, b, i, &at) &&
            at + bytes <= self->ceiling && mpl_packing_joins(packing, b, at, self->in) &&
            mpl_rng_below(&self->rng, ++n_gaps) == 0)
            *offset = at;
    return n_gaps > 0;
}

/* ---- displacing ---- */

/* Upper end of the interval that rival i of by_end forbids. */
static int64_t high_of(const repair *self, uint32_t i)
{
    uint32_t c = self->by_end[i];

    return (int64_t)self->packing->offset[c] +
           (self->high != NULL ? self->high[i] : (int64_t)self->packing->bytes[c]);
}

static void sort_far(repair *self, uint32_t member)
{
    mpl_packing *packing = self->packing;
    uint32_t begin = packing->begin[member], n = packing->begin[member + 1] - begin;

    for (uint32_t k = 0; k < n; k++) {
        packing->entry[k].key = high_of(self, begin + k);
        packing->entry[k].rival = self->by_end[begin + k];
        packing->entry[k].wall.high = self->high != NULL ? self->high[begin + k] : 0;
    }
    mpl_packing_merge(packing, n);
    for (uint32_t k = 0; k < n; k++) {
        self->by_end[begin + k] = packing->entry[k].rival;
        if (self->high != NULL)
            self->high[begin + k] = packing->entry[k].wall.high;
    }
}

static void sort_by_end(repair *self, uint32_t member)
{
    mpl_packing *packing = self->packing;
    uint32_t begin = packing->begin[member], end = packing->begin[member + 1];
    uint64_t far = MPL_PACKING_FAR * (uint64_t)(end - begin), moved = 0;

    for (uint32_t i = begin + 1; i < end; i++) {
        int64_t high = high_of(self, i), shift = self->high != NULL ? self->high[i] : 0;
        uint32_t c = self->by_end[i], j = i;

        for (; j > begin && high_of(self, j - 1) > high; j--) {
            self->by_end[j] = self->by_end[j - 1];
            if (self->high != NULL)
                self->high[j] = self->high[j - 1];
        }
        self->by_end[j] = c;
        if (self->high != NULL)
            self->high[j] = shift;
        packing->ticks += i - j;
        moved += i - j;
        if (moved > far) {
            sort_far(self, member);
            return;
        }
    }
    packing->ticks += end - begin;
}

static uint64_t weight_of(const repair *self, uint32_t c)
{
    return self->packing->fixed[c] != MPL_UNFIXED ? UINT32_MAX : self->weight[c];
}

/* Collects the forbidden intervals of b's placed rivals and the prefix sums of their weights by
 * lower and by upper end; returns their number. */
static uint32_t raise_walls(repair *self, uint32_t b)
{
    mpl_packing *packing = self->packing;
    uint32_t n = 0, k = 0;

    mpl_packing_sort(packing, b);
    sort_by_end(self, b);
    for (uint32_t i = packing->begin[b]; i < packing->begin[b + 1]; i++) {
        uint32_t c = packing->rival[i], e = self->by_end[i];

        if (self->in[c]) {
            uint64_t weight = weight_of(self, c);

            self->wall[n] =
                (wall){mpl_packing_low(packing, b, i), mpl_packing_high(packing, i), weight, i};
            self->before[n + 1] = self->before[n] + weight;
            n++;
        }
        if (self->in[e]) {
            self->end[k] = high_of(self, i);
            self->below[k + 1] = self->below[k] + weight_of(self, e);
            k++;
        }
    }
    packing->ticks += n;
    return n;
}

typedef struct place {
    uint64_t offset, weight;
    uint32_t n_equal;
} place;

/* Weighs one offset. *i: intervals that begin below it, *k: that end at or below it; both rise. */
static void weigh(repair *self, uint64_t offset, uint32_t n, uint32_t *i, uint32_t *k, place *best)
{
    uint64_t weight;

    while (*i < n && self->wall[*i].low < (int64_t)offset)
        ++*i;
    while (*k < n && self->end[*k] <= (int64_t)offset)
        ++*k;
    weight = self->before[*i] - self->below[*k];
    if (weight < best->weight)
        *best = (place){offset, weight, 0};
    if (weight == best->weight && mpl_rng_below(&self->rng, ++best->n_equal) == 0)
        best->offset = offset;
}

/* The offset below the ceiling with the least weight in b's way. Candidates touch the ground, the
 * ceiling or an end of an interval. */
static uint64_t lightest(repair *self, uint32_t b, uint32_t n)
{
    mpl_packing *packing = self->packing;
    uint64_t bytes = packing->bytes[b], align = packing->align[b], top = self->ceiling - bytes;
    place best = {0, UINT64_MAX, 0};
    uint32_t i = 0, k = 0;

    weigh(self, 0, n, &i, &k, &best);
    for (uint32_t c = 0; c < n; c++) {
        uint64_t at = self->end[c] > 0 ? mpl_align_up((uint64_t)self->end[c], align) : 0;

        if (at > top)
            break;
        if (self->end[c] > 0)
            weigh(self, at, n, &i, &k, &best);
    }
    i = k = 0;
    for (uint32_t c = 0; c < n && self->wall[c].low <= (int64_t)top; c++)
        if (self->wall[c].low >= 0)
            weigh(self, (uint64_t)self->wall[c].low & ~(align - 1), n, &i, &k, &best);
    weigh(self, top & ~(align - 1), n, &i, &k, &best);
    packing->ticks += 4 * (uint64_t)n;
    return best.offset;
}

static void put_in(repair *self, uint32_t b, uint64_t offset)
{
    self->packing->offset[b] = offset;
    self->in[b] = 1;
}

/* Places b and removes all rivals in its way. False: a fixed member is in the way. */
static bool push_in(repair *self, uint32_t b)
{
    mpl_packing *packing = self->packing;
    uint32_t n = raise_walls(self, b);
    uint64_t offset = lightest(self, b, n);

    for (uint32_t i = 0; i < n && self->wall[i].low < (int64_t)offset; i++) {
        uint32_t c = packing->rival[self->wall[i].index];

        if (self->wall[i].high <= (int64_t)offset || !self->in[c])
            continue;
        if (packing->fixed[c] != MPL_UNFIXED)
            return false;
        if (mpl_packing_shares(packing, b, self->wall[i].index, offset))
            continue;
        self->in[c] = 0;
        self->out[self->n_out++] = c;
    }
    put_in(self, b, offset);
    return true;
}

/* ---- repairing ---- */

static void shake(repair *self)
{
    mpl_packing *packing = self->packing;

    for (int i = 0; i < SHAKES; i++) {
        uint32_t b = (uint32_t)mpl_rng_below(&self->rng, packing->n);
        uint64_t offset;

        if (!self->in[b] || packing->fixed[b] != MPL_UNFIXED)
            continue;
        self->in[b] = 0;
        put_in(self, b, find_gap(self, b, &offset) ? offset : packing->offset[b]);
    }
}

/* Loads the best plan without members above the ceiling; false: one is fixed or too large. */
static bool lower_ceiling(repair *self, uint64_t ceiling)
{
    mpl_packing *packing = self->packing;

    self->ceiling = ceiling;
    self->n_out = 0;
    packing->ticks += packing->n;
    memcpy(packing->offset, packing->best_offset, packing->n * sizeof *packing->offset);
    for (uint32_t a = 0; a < packing->n; a++) {
        self->in[a] = end_of(packing, a) <= ceiling;
        if (!self->in[a])
            self->out[self->n_out++] = a;
        if (!self->in[a] && (packing->fixed[a] != MPL_UNFIXED || packing->bytes[a] > ceiling))
            return false;
    }
    return true;
}

/* Runs until all members are placed: true. */
static bool bring_in(repair *self, uint64_t steps)
{
    mpl_packing *packing = self->packing;

    while (self->n_out > 0) {
        uint32_t b = self->out[--self->n_out];
        uint64_t offset;

        if (steps-- == 0 || mpl_packing_done(packing))
            return false;
        if (find_gap(self, b, &offset)) {
            put_in(self, b, offset);
            continue;
        }
        self->weight[b]++;
        if (!push_in(self, b))
            return false;
        shake(self);
    }
    return true;
}

static uint64_t height_of(const mpl_packing *packing)
{
    uint64_t height = 0;

    for (uint32_t a = 0; a < packing->n; a++)
        height = mpl_max_u64(height, end_of(packing, a));
    return height;
}

/* Lowers the ceiling by a part of the gap to the goal. The part halves with each failure and
 * doubles with each success. */
static void descend(repair *self)
{
    mpl_packing *packing = self->packing;
    uint64_t steps = PATIENCE;
    uint32_t part = 8;

    while (!mpl_packing_done(packing)) {
        uint64_t gap = packing->best - packing->goal, sink = mpl_max_u64(gap / part, 1);

        bool possible = lower_ceiling(self, packing->best - sink);

        if (!possible && sink == 1)
            return;
        if (possible && bring_in(self, steps * packing->n)) {
            mpl_packing_offer(packing, height_of(packing));
            part = part > 2 ? part / 2 : 2;
        } else if (part < 256 && sink > 1) {
            part *= 2;
        } else {
            part = 8;
            steps = steps < UINT32_MAX / 2 ? 2 * steps : steps;
            for (uint32_t a = 0; a < packing->n; a++)
                self->weight[a] = 1;
        }
    }
}

static mpl_status try_orders(repair *self)
{
    mpl_packing *packing = self->packing;
    uint64_t height;

    for (int key = 0; key < MPL_KEYS && !mpl_packing_done(packing); key++) {
        MPL_PASS(mpl_packing_order(packing, key, self->out));
        if (mpl_packing_place(packing, self->out, 0, packing->best, &height))
            mpl_packing_offer(packing, height);
    }
    return MPL_OK;
}

static mpl_status repair_alloc(repair *self)
{
    mpl_packing *packing = self->packing;
    mpl_ctx *ctx = packing->run->ctx;
    uint32_t n_entries = packing->begin[packing->n], most = 0;

    for (uint32_t a = 0; a < packing->n; a++)
        most = packing->begin[a + 1] - packing->begin[a] > most
                   ? packing->begin[a + 1] - packing->begin[a]
                   : most;
    MPL_PASS(mpl_new_each(ctx, packing->n, self->in, self->out, self->weight));
    MPL_PASS(mpl_new_each(ctx, most, self->wall, self->end));
    MPL_PASS(mpl_new_each(ctx, (size_t)most + 1, self->below, self->before));
    MPL_PASS(mpl_new(ctx, self->by_end, n_entries));
    if (packing->wall != NULL)
        MPL_PASS(mpl_new(ctx, self->high, n_entries));
    memcpy(self->by_end, packing->rival, n_entries * sizeof *self->by_end);
    for (uint32_t i = 0; packing->wall != NULL && i < n_entries; i++)
        self->high[i] = packing->wall[i].high;
    for (uint32_t a = 0; a < packing->n; a++)
        self->weight[a] = 1;
    return MPL_OK;
}

static mpl_status search(mpl_packing *packing)
{
    mpl_status st = MPL_OK;
    repair s = {.packing = packing};

    s.rng = mpl_rng_of(packing->run->seed);
    MPL_TRY(repair_alloc(&s));
    MPL_TRY(try_orders(&s));
    descend(&s);
out:
    mpl_free_each(packing->run->ctx, s.in, s.out, s.weight, s.wall, s.end, s.below, s.before,
                  s.by_end, s.high);
    return st;
}

extern const mpl_planner mpl_planner_greedy_size;

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_packing_run(run, p, &mpl_planner_greedy_size, DEFAULT_TICKS, search, out);
}

const mpl_planner mpl_planner_local_search = {
    .name = "local_search",
    .about = "what does not fit under a lower ceiling pushes out what weighs least",
    .source = "this project",
    .params = "minimise=0|1",
    .traits = MPL_RANDOM | MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
