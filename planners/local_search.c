/* local_search.c -- plans that are too high are repaired: what does not fit is put where it pushes out the least.
 *
 * Idea     Take the best plan and lower the ceiling a little. The buffers above it are out. One after the other comes back: into
 *          a gap if there is one, else to the place where the buffers in the way weigh the least; those are then out
 *          themselves. A buffer that found no gap grows heavier, so that what is hard to place is no longer pushed out, and
 *          buffers that have room are moved about, so that gaps change. When none is out, the plan is better, and the
 *          ceiling sinks again; by less, from the best plan, when that takes too long.
 * Source   this project; pushing out by learnt weights is Y. Nagata and O. Braysy's for fleets of vehicles, "A powerful route
 *          minimization heuristic for the vehicle routing problem with time windows", 2009.
 * Start    The best of the placements by size, area, conflicts and lifetime.
 * Cost     O(rivals of the buffer, times their logarithm at first) a step; 16 bytes a conflict.
 * Limits   No bound on the distance to the optimum. Without budget and deadline it ends after DEFAULT_TICKS. */
#include "graphs/base/rng.h"
#include "planners/packing.h"

#define DEFAULT_TICKS UINT64_C(300000000) /* about a second */
#define PATIENCE      400                 /* steps a buffer, before the ceiling is taken for too low */
#define SHAKES        4                   /* buffers moved about after a push */

typedef struct wall {
    uint64_t begin, end; /* [byte] */
    uint64_t weight;
    uint32_t member;
} wall;

typedef struct repair {
    mpl_packing *q;
    uint64_t ceiling; /* [byte] */
    uint8_t *in;      /* [n] placed */
    uint32_t *out;    /* [n] stack of those that are not */
    uint32_t n_out;
    uint64_t *weight; /* [n] */
    uint32_t *by_end; /* as q->rival, but by end */
    wall *wall;       /* [n] the rivals that are in, by offset */
    uint64_t *end;    /* [n] their ends, ascending */
    uint64_t *below;  /* [n + 1] weight of the first of them, by end */
    uint64_t *before; /* [n + 1] likewise by offset */
    mpl_rng rng;
} repair;

static uint64_t align_up(uint64_t at, uint64_t align)
{
    return (at + align - 1) & ~(align - 1);
}

static uint64_t end_of(const mpl_packing *q, uint32_t a)
{
    return q->offset[a] + q->bytes[a];
}

/* ---- gaps ------------------------------------------------------------------------------------------------------ */

/* A free offset for b: any gap with the same probability, at its lower or at its upper end; false: there is none. */
static bool find_gap(repair *s, uint32_t b, uint64_t *offset)
{
    mpl_packing *q = s->q;
    uint64_t low = 0, bytes = q->bytes[b], align = q->align[b];
    uint32_t n_gaps = 0;
    bool upper = mpl_rng_below(&s->rng, 4) == 0;

    mpl_packing_sort(q, b);
    for (uint32_t i = q->begin[b]; i <= q->begin[b + 1]; i++) {
        bool last = i == q->begin[b + 1];
        uint32_t c = last ? 0 : q->rival[i];
        uint64_t top = last ? s->ceiling : q->offset[c];

        if (!last && !s->in[c])
            continue;
        if (low + bytes <= top && mpl_rng_below(&s->rng, ++n_gaps) == 0)
            *offset = upper ? (top - bytes) & ~(align - 1) : low;
        if (!last)
            low = mpl_max_u64(low, align_up(end_of(q, c), align));
    }
    for (uint32_t i = q->pair_begin != NULL ? q->pair_begin[b] : 0;
         q->pair_begin != NULL && i < q->pair_begin[b + 1]; i++) {
        uint64_t at = q->offset[q->pair[i]];

        if (s->in[q->pair[i]] && at % align == 0 && at + bytes <= s->ceiling &&
            mpl_packing_joins(q, b, at, s->in) && mpl_rng_below(&s->rng, ++n_gaps) == 0)
            *offset = at;
    }
    return n_gaps > 0;
}

/* ---- pushing out ----------------------------------------------------------------------------------------------- */

static void sort_by_end(repair *s, uint32_t member)
{
    mpl_packing *q = s->q;
    uint32_t *list = s->by_end + q->begin[member], n = q->begin[member + 1] - q->begin[member];

    for (uint32_t i = 1; i < n; i++) {
        uint32_t c = list[i], j = i;
        uint64_t end = end_of(q, c);

        for (; j > 0 && end_of(q, list[j - 1]) > end; j--)
            list[j] = list[j - 1];
        list[j] = c;
        q->ticks += i - j;
    }
    q->ticks += n;
}

/* The rivals of b that are in, and their weights summed up by offset and by end; how many. */
static uint32_t raise_walls(repair *s, uint32_t b)
{
    mpl_packing *q = s->q;
    uint32_t n = 0, k = 0;

    mpl_packing_sort(q, b);
    sort_by_end(s, b);
    for (uint32_t i = q->begin[b]; i < q->begin[b + 1]; i++) {
        uint32_t c = q->rival[i], e = s->by_end[i];
        uint64_t weight = q->fixed[c] != MPL_UNFIXED ? UINT32_MAX : s->weight[c];

        if (s->in[c]) {
            s->wall[n] = (wall){q->offset[c], end_of(q, c), weight, c};
            s->before[n + 1] = s->before[n] + weight;
            n++;
        }
        weight = q->fixed[e] != MPL_UNFIXED ? UINT32_MAX : s->weight[e];
        if (s->in[e]) {
            s->end[k] = end_of(q, e);
            s->below[k + 1] = s->below[k] + weight;
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

/* Weighs one offset. *i: walls that begin below its end; *k: those that end at or below it; both only rise. */
static void weigh(repair *s, uint64_t offset, uint64_t bytes, uint32_t n, uint32_t *i, uint32_t *k,
                  place *best)
{
    uint64_t weight;

    while (*i < n && s->wall[*i].begin < offset + bytes)
        ++*i;
    while (*k < n && s->end[*k] <= offset)
        ++*k;
    weight = s->before[*i] - s->below[*k];
    if (weight < best->weight)
        *best = (place){offset, weight, 0};
    if (weight == best->weight && mpl_rng_below(&s->rng, ++best->n_equal) == 0)
        best->offset = offset;
}

/* The offset below the ceiling where the least weight is in b's way: on the ground or a wall, or under the ceiling or a wall. */
static uint64_t lightest(repair *s, uint32_t b, uint32_t n)
{
    mpl_packing *q = s->q;
    uint64_t bytes = q->bytes[b], align = q->align[b];
    place best = {0, UINT64_MAX, 0};
    uint32_t i = 0, k = 0;

    weigh(s, 0, bytes, n, &i, &k, &best);
    for (uint32_t c = 0; c < n && align_up(s->end[c], align) + bytes <= s->ceiling; c++)
        weigh(s, align_up(s->end[c], align), bytes, n, &i, &k, &best);
    i = k = 0;
    for (uint32_t c = 0; c < n && s->wall[c].begin <= s->ceiling; c++)
        if (s->wall[c].begin >= bytes)
            weigh(s, (s->wall[c].begin - bytes) & ~(align - 1), bytes, n, &i, &k, &best);
    weigh(s, (s->ceiling - bytes) & ~(align - 1), bytes, n, &i, &k, &best);
    q->ticks += 4 * (uint64_t)n;
    return best.offset;
}

static void put_in(repair *s, uint32_t b, uint64_t offset)
{
    s->q->offset[b] = offset;
    s->in[b] = 1;
}

/* Puts b in; whatever is in the way is out. False: only something fixed would be. */
static bool push_in(repair *s, uint32_t b)
{
    mpl_packing *q = s->q;
    uint32_t n = raise_walls(s, b);
    uint64_t offset = lightest(s, b, n);

    for (uint32_t i = 0; i < n && s->wall[i].begin < offset + q->bytes[b]; i++) {
        uint32_t c = s->wall[i].member;

        if (s->wall[i].end <= offset)
            continue;
        if (q->fixed[c] != MPL_UNFIXED)
            return false;
        if (q->offset[c] == offset && q->pair_begin != NULL && mpl_packing_partners(q, b, c))
            continue;
        s->in[c] = 0;
        s->out[s->n_out++] = c;
    }
    put_in(s, b, offset);
    return true;
}

/* ---- repairing ------------------------------------------------------------------------------------------------- */

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

/* The best plan, with all that ends above the ceiling out; false: something fixed does, or is too large. */
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

/* Until all are in: true. */
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

/* The ceiling sinks by a part of the way to the goal that halves with each failure and doubles with each success. */
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
    mpl_status st = MPL_OK;
    mpl_packing *q = s->q;
    uint64_t height;

    for (int key = 0; key < MPL_KEYS && !mpl_packing_done(q); key++) {
        MPL_TRY(mpl_packing_order(q, key, s->out));
        if (mpl_packing_place(q, s->out, 0, q->best, &height))
            mpl_packing_offer(q, height);
    }
out:
    return st;
}

static mpl_status search(mpl_packing *q)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = q->run->ctx;
    repair s = {.q = q};

    mpl_rng_init(&s.rng, q->run->seed);
    MPL_TRY(mpl_new(ctx, s.in, q->n));
    MPL_TRY(mpl_new(ctx, s.out, q->n));
    MPL_TRY(mpl_new(ctx, s.weight, q->n));
    MPL_TRY(mpl_new(ctx, s.wall, q->n));
    MPL_TRY(mpl_new(ctx, s.end, q->n));
    MPL_TRY(mpl_new(ctx, s.below, (size_t)q->n + 1));
    MPL_TRY(mpl_new(ctx, s.before, (size_t)q->n + 1));
    MPL_TRY(mpl_new(ctx, s.by_end, q->begin[q->n]));
    memcpy(s.by_end, q->rival, q->begin[q->n] * sizeof *s.by_end);
    for (uint32_t a = 0; a < q->n; a++)
        s.weight[a] = 1;
    MPL_TRY(try_orders(&s));
    descend(&s);
out:;
    void *arrays[] = {s.in, s.out, s.weight, s.wall, s.end, s.below, s.before, s.by_end};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        mpl_free(ctx, arrays[i]);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    return mpl_packing_run(run, p, DEFAULT_TICKS, search, out);
}

const mpl_planner mpl_planner_local_search = {
    .name = "local_search",
    .about = "what does not fit under a lower ceiling pushes out what weighs least",
    .source = "this project",
    .params = "minimise=0|1",
    .traits = MPL_RANDOM | MPL_USES_IN_PLACE | MPL_USES_GAPS,
    .plan = plan,
};
