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
    mpl_packing *q;
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

static uint64_t end_of(const mpl_packing *q, uint32_t a)
{
    return q->offset[a] + q->bytes[a];
}

/* ---- gaps ---- */

/* Finds a free offset for b: any gap with equal probability, at its lower or upper end. */
static bool find_gap(repair *s, uint32_t b, uint64_t *offset)
{
    mpl_packing *q = s->q;
    uint64_t bytes = q->bytes[b], align = q->align[b], at;
    int64_t low = 0;
    uint32_t n_gaps = 0;
    bool upper = mpl_rng_below(&s->rng, 4) == 0;

    mpl_packing_sort(q, b);
    for (uint32_t i = q->begin[b]; i <= q->begin[b + 1]; i++) {
        bool last = i == q->begin[b + 1];
        int64_t top, end;

        if (!last && !s->in[q->rival[i]])
            continue;
        top = last ? (int64_t)(s->ceiling - bytes) : mpl_packing_low(q, b, i);
        if (low <= top && mpl_rng_below(&s->rng, ++n_gaps) == 0)
            *offset = (uint64_t)(upper ? top : low) & ~(align - 1);
        end = last ? 0 : mpl_packing_high(q, i);
        if (end > low)
            low = (int64_t)mpl_align_up((uint64_t)end, align);
    }
    for (uint32_t i = q->pair_begin != NULL ? q->pair_begin[b] : 0;
         q->pair_begin != NULL && i < q->pair_begin[b + 1]; i++)
        if (s->in[q->pair[i]] && mpl_packing_on_partner(q, b, i, &at) && at + bytes <= s->ceiling &&
            mpl_packing_joins(q, b, at, s->in) && mpl_rng_below(&s->rng, ++n_gaps) == 0)
            *offset = at;
    return n_gaps > 0;
}

/* ---- displacing ---- */

/* Upper end of the interval that rival i of by_end forbids. */
static int64_t high_of(const repair *s, uint32_t i)
{
    uint32_t c = s->by_end[i];

    return (int64_t)s->q->offset[c] + (s->high != NULL ? s->high[i] : (int64_t)s->q->bytes[c]);
}

static void sort_far(repair *s, uint32_t member)
{
    mpl_packing *q = s->q;
    uint32_t begin = q->begin[member], n = q->begin[member + 1] - begin;

    for (uint32_t k = 0; k < n; k++) {
        q->entry[k].key = high_of(s, begin + k);
        q->entry[k].rival = s->by_end[begin + k];
        q->entry[k].wall.high = s->high != NULL ? s->high[begin + k] : 0;
    }
    mpl_packing_merge(q, n);
    for (uint32_t k = 0; k < n; k++) {
        s->by_end[begin + k] = q->entry[k].rival;
        if (s->high != NULL)
            s->high[begin + k] = q->entry[k].wall.high;
    }
}

static void sort_by_end(repair *s, uint32_t member)
{
    mpl_packing *q = s->q;
    uint32_t begin = q->begin[member], end = q->begin[member + 1];
    uint64_t far = MPL_PACKING_FAR * (uint64_t)(end - begin), moved = 0;

    for (uint32_t i = begin + 1; i < end; i++) {
        int64_t high = high_of(s, i), shift = s->high != NULL ? s->high[i] : 0;
        uint32_t c = s->by_end[i], j = i;

        for (; j > begin && high_of(s, j - 1) > high; j--) {
            s->by_end[j] = s->by_end[j - 1];
            if (s->high != NULL)
                s->high[j] = s->high[j - 1];
        }
        s->by_end[j] = c;
        if (s->high != NULL)
            s->high[j] = shift;
        q->ticks += i - j;
        moved += i - j;
        if (moved > far) {
            sort_far(s, member);
            return;
        }
    }
    q->ticks += end - begin;
}

static uint64_t weight_of(const repair *s, uint32_t c)
{
    return s->q->fixed[c] != MPL_UNFIXED ? UINT32_MAX : s->weight[c];
}

/* Collects the forbidden intervals of b's placed rivals and the prefix sums of their weights by
 * lower and by upper end; returns their number. */
static uint32_t raise_walls(repair *s, uint32_t b)
{
    mpl_packing *q = s->q;
    uint32_t n = 0, k = 0;

    mpl_packing_sort(q, b);
    sort_by_end(s, b);
    for (uint32_t i = q->begin[b]; i < q->begin[b + 1]; i++) {
        uint32_t c = q->rival[i], e = s->by_end[i];

        if (s->in[c]) {
            uint64_t weight = weight_of(s, c);

            s->wall[n] = (wall){mpl_packing_low(q, b, i), mpl_packing_high(q, i), weight, i};
            s->before[n + 1] = s->before[n] + weight;
            n++;
        }
        if (s->in[e]) {
            s->end[k] = high_of(s, i);
            s->below[k + 1] = s->below[k] + weight_of(s, e);
            k++;
        }
    }
    q->ticks += n;
    return n;
}

typedef struct place {
    uint64_t offset, weight;
    uint32_t n_equal;
} place;

/* Weighs one offset. *i: intervals that begin below it, *k: that end at or below it; both rise. */
static void weigh(repair *s, uint64_t offset, uint32_t n, uint32_t *i, uint32_t *k, place *best)
{
    uint64_t weight;

    while (*i < n && s->wall[*i].low < (int64_t)offset)
        ++*i;
    while (*k < n && s->end[*k] <= (int64_t)offset)
        ++*k;
    weight = s->before[*i] - s->below[*k];
    if (weight < best->weight)
        *best = (place){offset, weight, 0};
    if (weight == best->weight && mpl_rng_below(&s->rng, ++best->n_equal) == 0)
        best->offset = offset;
}

/* The offset below the ceiling with the least weight in b's way. Candidates touch the ground, the
 * ceiling or an end of an interval. */
static uint64_t lightest(repair *s, uint32_t b, uint32_t n)
{
    mpl_packing *q = s->q;
    uint64_t bytes = q->bytes[b], align = q->align[b], top = s->ceiling - bytes;
    place best = {0, UINT64_MAX, 0};
    uint32_t i = 0, k = 0;

    weigh(s, 0, n, &i, &k, &best);
    for (uint32_t c = 0; c < n; c++) {
        uint64_t at = s->end[c] > 0 ? mpl_align_up((uint64_t)s->end[c], align) : 0;

        if (at > top)
            break;
        if (s->end[c] > 0)
            weigh(s, at, n, &i, &k, &best);
    }
    i = k = 0;
    for (uint32_t c = 0; c < n && s->wall[c].low <= (int64_t)top; c++)
        if (s->wall[c].low >= 0)
            weigh(s, (uint64_t)s->wall[c].low & ~(align - 1), n, &i, &k, &best);
    weigh(s, top & ~(align - 1), n, &i, &k, &best);
    q->ticks += 4 * (uint64_t)n;
    return best.offset;
}

static void put_in(repair *s, uint32_t b, uint64_t offset)
{
    s->q->offset[b] = offset;
    s->in[b] = 1;
}

/* Places b and removes all rivals in its way. False: a fixed member is in the way. */
static bool push_in(repair *s, uint32_t b)
{
    mpl_packing *q = s->q;
    uint32_t n = raise_walls(s, b);
    uint64_t offset = lightest(s, b, n);

    for (uint32_t i = 0; i < n && s->wall[i].low < (int64_t)offset; i++) {
        uint32_t c = q->rival[s->wall[i].index];

        if (s->wall[i].high <= (int64_t)offset || !s->in[c])
            continue;
        if (q->fixed[c] != MPL_UNFIXED)
            return false;
        if (mpl_packing_shares(q, b, s->wall[i].index, offset))
            continue;
        s->in[c] = 0;
        s->out[s->n_out++] = c;
    }
    put_in(s, b, offset);
    return true;
}

/* ---- repairing ---- */

static void shake(repair *s)
{
    mpl_packing *q = s->q;

    for (int i = 0; i < SHAKES; i++) {
        uint32_t b = (uint32_t)mpl_rng_below(&s->rng, q->n);
        uint64_t offset;

        if (!s->in[b] || q->fixed[b] != MPL_UNFIXED)
            continue;
        s->in[b] = 0;
        put_in(s, b, find_gap(s, b, &offset) ? offset : q->offset[b]);
    }
}

/* Loads the best plan without members above the ceiling; false: one is fixed or too large. */
static bool lower_ceiling(repair *s, uint64_t ceiling)
{
    mpl_packing *q = s->q;

    s->ceiling = ceiling;
    s->n_out = 0;
    q->ticks += q->n;
    memcpy(q->offset, q->best_offset, q->n * sizeof *q->offset);
    for (uint32_t a = 0; a < q->n; a++) {
        s->in[a] = end_of(q, a) <= ceiling;
        if (!s->in[a])
            s->out[s->n_out++] = a;
        if (!s->in[a] && (q->fixed[a] != MPL_UNFIXED || q->bytes[a] > ceiling))
            return false;
    }
    return true;
}

/* Runs until all members are placed: true. */
static bool bring_in(repair *s, uint64_t steps)
{
    mpl_packing *q = s->q;

    while (s->n_out > 0) {
        uint32_t b = s->out[--s->n_out];
        uint64_t offset;

        if (steps-- == 0 || mpl_packing_done(q))
            return false;
        if (find_gap(s, b, &offset)) {
            put_in(s, b, offset);
            continue;
        }
        s->weight[b]++;
        if (!push_in(s, b))
            return false;
        shake(s);
    }
    return true;
}

static uint64_t height_of(const mpl_packing *q)
{
    uint64_t height = 0;

    for (uint32_t a = 0; a < q->n; a++)
        height = mpl_max_u64(height, end_of(q, a));
    return height;
}

/* Lowers the ceiling by a part of the gap to the goal. The part halves with each failure and
 * doubles with each success. */
static void descend(repair *s)
{
    mpl_packing *q = s->q;
    uint64_t steps = PATIENCE;
    uint32_t part = 8;

    while (!mpl_packing_done(q)) {
        uint64_t gap = q->best - q->goal, sink = mpl_max_u64(gap / part, 1);

        bool possible = lower_ceiling(s, q->best - sink);

        if (!possible && sink == 1)
            return;
        if (possible && bring_in(s, steps * q->n)) {
            mpl_packing_offer(q, height_of(q));
            part = part > 2 ? part / 2 : 2;
        } else if (part < 256 && sink > 1) {
            part *= 2;
        } else {
            part = 8;
            steps = steps < UINT32_MAX / 2 ? 2 * steps : steps;
            for (uint32_t a = 0; a < q->n; a++)
                s->weight[a] = 1;
        }
    }
}

static mpl_status try_orders(repair *s)
{
    mpl_packing *q = s->q;
    uint64_t height;

    for (int key = 0; key < MPL_KEYS && !mpl_packing_done(q); key++) {
        MPL_PASS(mpl_packing_order(q, key, s->out));
        if (mpl_packing_place(q, s->out, 0, q->best, &height))
            mpl_packing_offer(q, height);
    }
    return MPL_OK;
}

static mpl_status repair_alloc(repair *s)
{
    mpl_packing *q = s->q;
    mpl_ctx *ctx = q->run->ctx;
    uint32_t n_entries = q->begin[q->n], most = 0;

    for (uint32_t a = 0; a < q->n; a++)
        most = q->begin[a + 1] - q->begin[a] > most ? q->begin[a + 1] - q->begin[a] : most;
    MPL_PASS(mpl_new_each(ctx, q->n, s->in, s->out, s->weight));
    MPL_PASS(mpl_new_each(ctx, most, s->wall, s->end));
    MPL_PASS(mpl_new_each(ctx, (size_t)most + 1, s->below, s->before));
    MPL_PASS(mpl_new(ctx, s->by_end, n_entries));
    if (q->wall != NULL)
        MPL_PASS(mpl_new(ctx, s->high, n_entries));
    memcpy(s->by_end, q->rival, n_entries * sizeof *s->by_end);
    for (uint32_t i = 0; q->wall != NULL && i < n_entries; i++)
        s->high[i] = q->wall[i].high;
    for (uint32_t a = 0; a < q->n; a++)
        s->weight[a] = 1;
    return MPL_OK;
}

static mpl_status search(mpl_packing *q)
{
    mpl_status st = MPL_OK;
    repair s = {.q = q};

    s.rng = mpl_rng_of(q->run->seed);
    MPL_TRY(repair_alloc(&s));
    MPL_TRY(try_orders(&s));
    descend(&s);
out:
    mpl_free_each(q->run->ctx, s.in, s.out, s.weight, s.wall, s.end, s.below, s.before, s.by_end,
                  s.high);
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
