/* idealloc.c -- boxing: small buffers go into boxes of one height, boxes into larger boxes, until
 * all heights are equal and colouring packs them; then a best fit in the order of the boxes.
 *
 * Idea     Intervals of one height are packed optimally by colouring, so make all heights one.
 * Source   Lamprakos, Panagopoulos, Xydis, Soudris, "idealloc: fast boxing-based dynamic storage
 *          allocation"; its program, cappadokes/idealloc, coreba/src/algo and analyze.rs: how the
 *          parameters are chosen (an epsilon for which the heights end nearest to each other, a
 *          dummy job of 2216.54 least heights where there is none), what is done with the boxes,
 *          and the start, largest first. Buffers of one size are only coloured. Buchsbaum, Karloff,
 *          Kenyon, Reingold, Thorup, "OPT versus LOAD in dynamic storage allocation", SIAM J.
 *          Comput. 33, 2004: Lemma 1, Theorems 2 and 16, Corollary 15.
 * Differs  Lives are half-open; sizes are rounded up to the pool's largest alignment before they
 *          are boxed, those of all pools together. A fixed number of tries (lives=N) that did not
 *          help ends it, as there, or the budget; the random critical points come from memplan's
 *          generator, and beyond 64 levels of Theorem 2 what is left is coloured. Never worse than
 *          its start.
 * Cost     A try: O(n log n) for each epsilon, and n times rows for the colouring.
 * Limits   No bound on the distance to the optimum for the heights of real lists. */
#include <math.h>
#include <stdlib.h>

#include "graphs/core/rng.h"
#include "planners/production/production.h"

enum { LEVELS = 64 };

/* A buffer, the dummy, or a box of jobs. */
typedef struct job {
    uint64_t bytes;
    uint32_t birth, death;
    uint32_t child, next; /* of a box: its first job; the next job of the same box */
    mpl_buffer buffer;    /* MPL_NONE: none */
} job;

typedef struct jobs { /* a set, by index */
    uint32_t *id;
    uint32_t n;
    size_t cap;
} jobs;

typedef struct boxer {
    mpl_run *run;
    const mpl_problem *p;
    mpl_rng rng;
    job *job;
    uint32_t n, n_first; /* n_first: buffers and the dummy; boxes follow */
    size_t cap;
    mpl_buffer *order; /* of buffers, by rising symbolic offset, then as they are met */
    uint64_t *symbolic;
    uint32_t n_ordered;
    bool equal; /* all buffers have one size */
} boxer;

/* ---- sets ---- */

static mpl_status add(boxer *self, jobs *set, uint32_t id)
{
    MPL_PASS(mpl_reserve(self->run->ctx, set->id, set->cap, (size_t)set->n + 1));
    set->id[set->n++] = id;
    return MPL_OK;
}

typedef enum key { BY_BIRTH, BY_DEATH_LAST, BY_BYTES } key;

typedef struct ranked {
    uint64_t rank;
    uint32_t id;
} ranked;

MPL_ORDER_BY(by_rank, ranked, MPL_RISING(rank) MPL_RISING(id))

static mpl_status sort(boxer *self, uint32_t *id, uint32_t n, key by)
{
    mpl_status st = MPL_OK;
    ranked *all = NULL;

    MPL_TRY(mpl_new(self->run->ctx, all, (size_t)n + 1));
    for (uint32_t i = 0; i < n; i++) {
        const job *j = &self->job[id[i]];

        all[i].id = id[i];
        all[i].rank = by == BY_BIRTH ? j->birth : by == BY_BYTES ? j->bytes : MPL_NONE - j->death;
    }
    qsort(all, n, sizeof *all, by_rank);
    for (uint32_t i = 0; i < n; i++)
        id[i] = all[i].id;
    self->run->ticks += n;
out:
    mpl_free(self->run->ctx, all);
    return st;
}

/* A box of the n jobs, added to `into`. */
static mpl_status box(boxer *self, const uint32_t *id, uint32_t n, uint64_t bytes, jobs *into)
{
    job b = {
        .bytes = bytes, .birth = MPL_NONE, .child = MPL_NONE, .next = MPL_NONE, .buffer = MPL_NONE};

    MPL_PASS(mpl_reserve(self->run->ctx, self->job, self->cap, (size_t)self->n + 1));
    for (uint32_t i = n; i-- > 0;) {
        job *j = &self->job[id[i]];

        j->next = b.child;
        b.child = id[i];
        b.birth = j->birth < b.birth ? j->birth : b.birth;
        b.death = j->death > b.death ? j->death : b.death;
    }
    self->job[self->n] = b;
    return add(self, into, self->n++);
}

/* Boxes of `per` jobs each, as they stand. */
static mpl_status box_each(boxer *self, const uint32_t *id, uint32_t n, uint64_t per,
                           uint64_t bytes, jobs *into)
{
    for (uint32_t i = 0, k; i < n; i += k) {
        k = per < n - i ? (uint32_t)per : n - i;
        MPL_PASS(box(self, id + i, k, bytes, into));
    }
    return MPL_OK;
}

/* Colours the jobs as intervals, in rows none of whose jobs overlap: sorts them by row, then birth;
 * row[i] is that of id[i]. */
static mpl_status colour(boxer *self, uint32_t *id, uint32_t n, uint32_t *row)
{
    mpl_status st = MPL_OK;
    uint32_t *free_at = NULL, n_rows = 0;
    ranked *all = NULL;

    MPL_TRY(mpl_new_each(self->run->ctx, (size_t)n + 1, free_at, all));
    MPL_TRY(sort(self, id, n, BY_BIRTH));
    for (uint32_t i = 0, r; i < n; i++) {
        for (r = 0; r < n_rows && free_at[r] > self->job[id[i]].birth;)
            r++;
        self->run->ticks += r;
        n_rows += r == n_rows;
        free_at[r] = self->job[id[i]].death;
        all[i] = (ranked){(uint64_t)r << 32 | i, id[i]};
    }
    qsort(all, n, sizeof *all, by_rank);
    for (uint32_t i = 0; i < n; i++) {
        id[i] = all[i].id;
        row[i] = (uint32_t)(all[i].rank >> 32);
    }
out:
    mpl_free_each(self->run->ctx, free_at, all);
    return st;
}

/* ---- Lemma 1: jobs that all live at one step ---- */

/* Boxes strips cut alternately from the left and from the right; two thick outer strips, and small
 * sets, are left over. */
static mpl_status lemma_1(boxer *self, uint32_t *id, uint32_t n, uint64_t per, uint64_t bytes,
                          double epsilon, jobs *boxes, jobs *left)
{
    double outer = (double)per * ceil(1 / (epsilon * epsilon)),
           inner = (double)per * ceil(1 / epsilon);
    uint32_t at = 0, took = 0;

    for (int side = 0; side < 2; side++) {
        took = outer < n - at ? (uint32_t)outer : n - at;
        MPL_PASS(sort(self, id + at, n - at, side == 0 ? BY_BIRTH : BY_DEATH_LAST));
        for (uint32_t i = 0; i < took; i++)
            MPL_PASS(add(self, left, id[at + i]));
        at += took;
    }
    for (int side = 0; at < n; side = !side, at += took) {
        took = inner < n - at ? (uint32_t)inner : n - at;
        MPL_PASS(sort(self, id + at, n - at, side == 0 ? BY_BIRTH : BY_DEATH_LAST));
        MPL_PASS(sort(self, id + at, took, side == 0 ? BY_DEATH_LAST : BY_BIRTH));
        MPL_PASS(box_each(self, id + at, took, per, bytes, boxes));
    }
    return MPL_OK;
}

/* ---- Theorem 2: jobs of about one height into boxes that hold `per` of them ---- */

typedef struct theorem_2 {
    uint64_t per, bytes;
    double epsilon;
    jobs *boxes;
} theorem_2;

static mpl_status box_rows(boxer *self, const theorem_2 *t, jobs *left, jobs *points)
{
    mpl_status st = MPL_OK;
    uint32_t *row = NULL;

    MPL_TRY(mpl_new(self->run->ctx, row, (size_t)left->n + 1));
    MPL_TRY(colour(self, left->id, left->n, row));
    for (uint32_t i = 0, k; i < left->n; i = k) {
        for (k = i; k < left->n && row[k] / t->per == row[i] / t->per; k++) {
            const job *j = &self->job[left->id[k]];
            bool first = k == 0 || row[k] != row[k - 1];

            if (first || self->job[left->id[k - 1]].death < j->birth) { /* a gap ends here */
                MPL_TRY(add(self, points, j->birth));
                if (!first)
                    MPL_TRY(add(self, points, self->job[left->id[k - 1]].death));
            }
        }
        MPL_TRY(box(self, left->id + i, k - i, t->bytes, t->boxes));
    }
out:
    mpl_free(self->run->ctx, row);
    return st;
}

static int by_step(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static mpl_status theorem(boxer *self, const theorem_2 *t, uint32_t *id, uint32_t n, jobs *points,
                          int level);

/* Buffers alive at a critical point go to `live`, sorted by point. The others live between two
 * points and are boxed separately, with the points in between. */
static mpl_status split(boxer *self, const theorem_2 *t, uint32_t *id, uint32_t n,
                        const jobs *points, jobs *left, jobs *between)
{
    mpl_status st = MPL_OK;
    jobs live = {0};
    uint32_t done = 0;

    MPL_TRY(sort(self, id, n, BY_BIRTH));
    for (uint32_t q = 0; q < points->n && done < n; q++) {
        live.n = 0;
        for (; done < n && self->job[id[done]].birth <= points->id[q]; done++)
            MPL_TRY(
                add(self, self->job[id[done]].death > points->id[q] ? &live : between, id[done]));
        if (live.n > 0)
            MPL_TRY(lemma_1(self, live.id, live.n, t->per, t->bytes, t->epsilon, t->boxes, left));
    }
    for (; done < n; done++)
        MPL_TRY(add(self, between, id[done]));
out:
    mpl_free(self->run->ctx, live.id);
    return st;
}

/* Each set of `between` that lies between two neighbouring points, with the new points there. */
static mpl_status recurse(boxer *self, const theorem_2 *t, jobs *between, const jobs *points,
                          jobs *found, int level)
{
    mpl_status st = MPL_OK;
    jobs inner = {0};
    uint32_t q = 0, f = 0;

    MPL_TRY(sort(self, between->id, between->n, BY_BIRTH));
    if (found->n > 1)
        qsort(found->id, found->n, sizeof *found->id, by_step);
    for (uint32_t i = 0, k; i < between->n; i = k) {
        uint32_t end, chosen = i;

        while (q < points->n && points->id[q] < self->job[between->id[i]].birth)
            q++;
        end = q < points->n ? points->id[q] : MPL_NONE;
        for (k = i; k < between->n && self->job[between->id[k]].birth < end;)
            k++;
        k += k == i;
        inner.n = 0;
        for (; f < found->n && found->id[f] < end; f++)
            if (found->id[f] >= self->job[between->id[i]].birth)
                MPL_TRY(add(self, &inner, found->id[f]));
        chosen += (uint32_t)mpl_rng_below(&self->rng, k - i);
        MPL_TRY(add(self, &inner, self->job[between->id[chosen]].birth)); /* at least one job lives
                                                                           */
        MPL_TRY(theorem(self, t, between->id + i, k - i, &inner, level + 1));
    }
out:
    mpl_free(self->run->ctx, inner.id);
    return st;
}

static mpl_status theorem(boxer *self, const theorem_2 *t, uint32_t *id, uint32_t n, jobs *points,
                          int level)
{
    mpl_status st = MPL_OK;
    jobs left = {0}, between = {0}, found = {0};

    qsort(points->id, points->n, sizeof *points->id, by_step);
    if (level < LEVELS)
        MPL_TRY(split(self, t, id, n, points, &left, &between));
    else
        for (uint32_t i = 0; i < n; i++)
            MPL_TRY(add(self, &left, id[i]));
    MPL_TRY(box_rows(self, t, &left, &found));
    MPL_TRY(recurse(self, t, &between, points, &found, level));
out:
    mpl_free_each(self->run->ctx, left.id, between.id, found.id);
    return st;
}

/* ---- Corollary 15: jobs of any height up to `bytes` ---- */

/* Buckets of heights that grow by 1 + epsilon, each boxed by itself. Empties `set`. */
static mpl_status corollary(boxer *self, jobs *set, double bytes, double epsilon, jobs *boxes)
{
    mpl_status st = MPL_OK;
    jobs points = {0};
    double height = 1;

    MPL_TRY(sort(self, set->id, set->n, BY_BYTES));
    for (uint32_t i = 0, k; i < set->n; i = k) {
        theorem_2 t = {.bytes = (uint64_t)bytes, .epsilon = epsilon, .boxes = boxes};

        epsilon = fmax(epsilon, 1e-4); /* heights rise in a bounded number of steps */
        while (floor(height) < (double)self->job[set->id[i]].bytes)
            height *= 1 + epsilon;
        for (k = i; k < set->n && (double)self->job[set->id[k]].bytes <= floor(height);)
            k++;
        t.per = mpl_max_u64(1, (uint64_t)(bytes / floor(height)));
        t.bytes = mpl_max_u64(t.bytes, self->job[set->id[k - 1]].bytes);
        points.n = 0;
        MPL_TRY(add(self, &points,
                    self->job[set->id[i + (uint32_t)mpl_rng_below(&self->rng, k - i)]].birth));
        MPL_TRY(theorem(self, &t, set->id + i, k - i, &points, 0));
    }
    set->n = 0;
out:
    mpl_free(self->run->ctx, points.id);
    return st;
}

/* ---- Theorem 16, until its invariants end ---- */

typedef struct heights {
    double ratio, mu, box; /* most over least; epsilon / lg^2 ratio; the height of boxes */
    double least, most, lg2;
    bool safe;
} heights;

static const double golden = 0.6180339887498949; /* (sqrt 5 - 1) / 2: mu stays below */

static heights look(const boxer *self, const jobs *set, double epsilon)
{
    heights h = {.least = (double)self->job[set->id[0]].bytes,
                 .most = (double)self->job[set->id[0]].bytes};

    for (uint32_t i = 1; i < set->n; i++) {
        h.least = fmin(h.least, (double)self->job[set->id[i]].bytes);
        h.most = fmax(h.most, (double)self->job[set->id[i]].bytes);
    }
    h.ratio = h.most / h.least;
    h.lg2 = log2(h.ratio) * log2(h.ratio);
    h.mu = h.lg2 > 0 ? epsilon / h.lg2 : golden;
    h.box = ceil(h.lg2 > 0 ? pow(h.mu, 5) * h.most / h.lg2 : h.most);
    h.safe = h.lg2 > 0 && h.mu < golden && floor(h.mu * h.box) >= h.least;
    return h;
}

/* Boxes what is small, again and again; `set` starts with all buffers. */
static mpl_status rogue(boxer *self, double epsilon, jobs *set)
{
    mpl_status st = MPL_OK;
    jobs small = {0};

    self->n = self->n_first;
    set->n = 0;
    for (uint32_t i = 0; i < self->n_first; i++)
        MPL_TRY(add(self, set, i));
    for (heights h = look(self, set, epsilon); h.safe && !mpl_run_late(self->run);
         h = look(self, set, epsilon)) {
        uint32_t kept = 0;

        for (uint32_t i = 0; i < set->n; i++)
            if ((double)self->job[set->id[i]].bytes <= floor(h.mu * h.box))
                MPL_TRY(add(self, &small, set->id[i]));
            else
                set->id[kept++] = set->id[i];
        set->n = kept;
        MPL_TRY(corollary(self, &small, h.box, h.mu, set));
    }
out:
    mpl_free(self->run->ctx, small.id);
    return st;
}

/* The epsilon whose heights end nearest to each other. */
static mpl_status choose(boxer *self, jobs *set, double *best)
{
    heights all;
    double least = INFINITY, e, end;

    MPL_PASS(rogue(self, 0, set));
    all = look(self, set, 0);
    end = golden * all.lg2;
    *best = e = pow(pow(all.lg2, 7) / all.ratio, 1.0 / 6);
    for (int tries = 3; tries > 0 && e < end; e += (end - e) * 0.01) {
        double ratio;

        MPL_PASS(rogue(self, e, set));
        ratio = look(self, set, e).ratio;
        tries = ratio < least ? 3 : tries - 1;
        if (ratio < least)
            *best = e, least = ratio;
        if (self->run->ticks > self->run->budget_ticks || mpl_run_late(self->run))
            break;
    }
    return MPL_OK;
}

/* ---- from boxes to offsets ---- */

/* Gives the buffers among n jobs symbolic offsets from `at` up: jobs of a height in rows, the
 * highest first. */
static mpl_status unbox(boxer *self, uint32_t *id, uint32_t n, uint64_t at)
{
    mpl_status st = MPL_OK;
    uint32_t *row = NULL;
    jobs inside = {0};

    MPL_TRY(mpl_new(self->run->ctx, row, (size_t)n + 1));
    MPL_TRY(sort(self, id, n, BY_BYTES));
    for (uint32_t end = n, i; end > 0; end = i) {
        uint64_t bytes = self->job[id[end - 1]].bytes;

        for (i = end; i > 0 && self->job[id[i - 1]].bytes == bytes;)
            i--;
        MPL_TRY(colour(self, id + i, end - i, row));
        for (uint32_t k = i; k < end; k++) {
            const job *j = &self->job[id[k]];

            if (j->buffer != MPL_NONE) {
                self->symbolic[self->n_ordered] = at + row[k - i] * bytes;
                self->order[self->n_ordered++] = j->buffer;
            }
            inside.n = 0;
            for (uint32_t c = j->child; c != MPL_NONE; c = self->job[c].next)
                MPL_TRY(add(self, &inside, c));
            if (inside.n > 0)
                MPL_TRY(unbox(self, inside.id, inside.n, at + row[k - i] * bytes));
        }
        at += (row[end - i - 1] + (uint64_t)1) * bytes;
    }
out:
    mpl_free_each(self->run->ctx, row, inside.id);
    return st;
}

/* Sorts the buffers by their symbolic offsets, then as they were met. */
static mpl_status sort_order(boxer *self)
{
    mpl_status st = MPL_OK;
    ranked *all = NULL;
    mpl_buffer *met = NULL;

    MPL_TRY(mpl_new_each(self->run->ctx, (size_t)self->n_ordered + 1, all, met));
    for (uint32_t i = 0; i < self->n_ordered; i++) {
        all[i] = (ranked){self->symbolic[i], i};
        met[i] = self->order[i];
    }
    qsort(all, self->n_ordered, sizeof *all, by_rank);
    for (uint32_t i = 0; i < self->n_ordered; i++)
        self->order[i] = met[all[i].id];
out:
    mpl_free_each(self->run->ctx, all, met);
    return st;
}

/* ---- the planner ---- */

/* The buffers as jobs, and the dummy if their heights are too near to each other. */
static mpl_status begin(boxer *self, const uint64_t *unit)
{
    const mpl_problem *p = self->p;
    uint64_t least = UINT64_MAX, most = 0;
    uint32_t end = 0;
    double lg2, ratio;

    MPL_PASS(mpl_reserve(self->run->ctx, self->job, self->cap, (size_t)p->n + 1));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t bytes = mpl_align_up(p->bytes[b], unit[p->pool[b]]);

        self->job[self->n++] = (job){bytes, p->birth[b], p->death[b], MPL_NONE, MPL_NONE, b};
        least = mpl_min_u64(least, bytes);
        most = mpl_max_u64(most, bytes);
        end = p->death[b] > end ? p->death[b] : end;
    }
    ratio = (double)most / (double)least;
    lg2 = log2(ratio) * log2(ratio);
    self->equal = least == most;
    if (!self->equal && pow(pow(lg2, 7) / ratio, 1.0 / 6) >= golden * lg2)
        self->job[self->n++] =
            (job){(uint64_t)ceil(2216.54 * (double)least), 0, end, MPL_NONE, MPL_NONE, MPL_NONE};
    self->n_first = self->n;
    return MPL_OK;
}

/* Plans `other` through boxes; buffers of one size are those boxes. */
static mpl_status try_once(boxer *self, double epsilon, jobs *set, jobs *boxes, mpl_plan *other)
{
    heights h;

    MPL_PASS(rogue(self, epsilon, set));
    h = look(self, set, epsilon);
    h.mu = h.mu >= golden ? 0.99 * golden : h.mu;
    boxes->n = self->n_ordered = 0;
    if (!self->equal)
        MPL_PASS(corollary(self, set, fmin(h.most / h.mu, 0x1p60), h.mu, boxes));
    MPL_PASS(unbox(self, self->equal ? set->id : boxes->id, self->equal ? set->n : boxes->n, 0));
    MPL_PASS(sort_order(self));
    return mpl_production_place(self->run, self->p, self->order, MPL_FIT_BEST, other);
}

static uint64_t highest(const mpl_problem *p, const uint64_t *offset)
{
    uint64_t most = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        most = mpl_max_u64(most, offset[b] + p->bytes[b]);
    return most;
}

/* Tries until `lives` in a row were no better. */
static mpl_status improve(boxer *self, int64_t lives, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_plan *other = NULL;
    jobs set = {0}, boxes = {0};
    double epsilon = 0;

    MPL_TRY(mpl_plan_new(self->run->ctx, self->p, &other));
    if (!self->equal)
        MPL_TRY(choose(self, &set, &epsilon));
    for (int64_t left = lives; left > 0; left--) {
        uint64_t before = highest(self->p, out->offset);

        if (self->run->ticks > self->run->budget_ticks || mpl_run_late(self->run))
            break;
        MPL_TRY(try_once(self, epsilon, &set, &boxes, other));
        mpl_place_take_lower(self->p, other->offset, out->offset);
        if (highest(self->p, out->offset) < before)
            left = lives + 1;
    }
out:
    mpl_plan_free(self->run->ctx, other);
    mpl_free_each(self->run->ctx, set.id, boxes.id);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    boxer x = {.run = run, .p = p, .rng = mpl_rng_of(run->seed)};
    uint64_t *unit = NULL;
    int64_t lives;

    MPL_TRY(mpl_run_param_int(run, "lives", 0, 1000000, 5, &lives));
    MPL_TRY(mpl_new_each(run->ctx, (size_t)p->n + 1, x.order, x.symbolic));
    MPL_TRY(mpl_new(run->ctx, unit, p->n_pools));
    MPL_TRY(mpl_production_units(run->ctx, p, unit));
    MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_larger, mpl_key_longer, x.order));
    MPL_TRY(mpl_production_place(run, p, x.order, MPL_FIT_LOWEST, out));
    if (p->n > 1) {
        MPL_TRY(begin(&x, unit));
        MPL_TRY(improve(&x, lives, out));
    }
out:
    mpl_free_each(run->ctx, x.job, x.order, x.symbolic, unit);
    return st;
}

const mpl_planner mpl_planner_idealloc = {
    .name = "idealloc",
    .about = "idealloc: small buffers boxed to one height, coloured, then best fit in that order",
    .source = "cappadokes/idealloc; Buchsbaum et al. 2004",
    .params = "lives=N",
    .traits = MPL_SERIAL_ONLY | MPL_PRODUCTION | MPL_RANDOM,
    .plan = plan,
};
