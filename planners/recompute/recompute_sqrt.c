/* recompute_sqrt.c -- segments that are kept, or dropped and run again. See recompute_priv.h.
 *
 * Idea     A cut is the set of values that cross between two forward operations. A dropped segment
 *          costs the values of the cut after it until the backward part begins, then everything
 *          that the backward part reads of it, and its work once more. A kept segment costs its own
 *          bytes. Dynamic programming over the cuts gives the least work within a limit on those
 *          bytes. Several limits are tried; the peak of each result's graph decides.
 * Source   T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost",
 *          2016, algorithms 2 and 3.
 * Differs  Segments end where few bytes cross, may be kept, and are chosen by dynamic programming.
 * Cost     O(cuts^2 * POINTS) for each limit, at most CUTS cuts; then O(size) of the graph. */
#include "planners/recompute/recompute_priv.h"

#include "graphs/orders/work.h"

enum {
    CUTS = 400,  /* possible ends of segments */
    POINTS = 64, /* ways kept to reach a cut */
    LIMITS = 24, /* limits tried between the least and the most */
    HALVINGS = 8,
    SMALL = 16, /* a result this many times smaller than another of its operation is kept */
};

typedef struct point { /* a way to reach a cut */
    uint64_t kept, work;
    uint32_t from, from_point; /* previous cut, and point there */
    bool dropped;              /* the segment in between */
} point;

typedef struct reach {
    uint32_t n;
    point point[POINTS];
} reach;

typedef struct segments {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    uint32_t halvings;
    uint32_t n;   /* forward operations without views */
    mpl_op *op;   /* [n] */
    uint32_t *at; /* [n_ops] index into op[]; MPL_NONE */
    mpl_run_list roots;
    const mpl_value *root; /* [n_values] the value it is a view of, or itself */
    uint32_t *last;  /* [n_values] of a root: index of its last forward reader, else of its maker */
    uint8_t *back;   /* [n_values] the backward part reads the root */
    uint8_t *small;  /* [n_values] always kept */
    uint64_t *bytes; /* [n_values] of a root made forward; 0: pinned */
    uint32_t n_cuts, *cut; /* [n_cuts] a segment may end before this operation */
    reach *reach;          /* [n_cuts] */
    point slot[POINTS];    /* of the current cut */
    uint32_t n_ends, *end; /* [n_ends] one past the last operation of each segment */
    uint8_t *dropped;      /* [n_ends] */
} segments;

/* ---- the forward part ---- */

static void note_reads(segments *self, const uint8_t *forward)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = self->roots.reads.begin[op]; i < self->roots.reads.begin[op + 1]; i++) {
            mpl_value v = self->root[self->roots.reads.value[i]];

            if (g->value_op[v] == MPL_NONE || mpl_shows_input(g, self->options, op))
                continue;
            if (!forward[op])
                self->back[v] = 1;
            else if (self->at[op] > self->last[v])
                self->last[v] = self->at[op];
        }
}

/* Slot bytes of an operation's results. Keeps small ones and those that cannot be made again. */
static void weigh(segments *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    uint64_t most = 0;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        most = mpl_max_u64(most, g->op_out[i] != MPL_NONE ? g->value_bytes[g->op_out[i]] : 0);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        if (v == MPL_NONE)
            continue;
        self->last[v] = self->at[op];
        self->small[v] = g->value_bytes[v] <= most / SMALL || !mpl_may_repeat(g, op) ||
                         !mpl_repeat_makes(g, op, i - g->op_out_begin[op]);
        if (g->value_role[v] != MPL_OUTPUT || !self->options->pin_outputs)
            self->bytes[v] = (g->value_bytes[v] + self->options->align - 1) &
                             ~((uint64_t)self->options->align - 1);
    }
}

/* Bytes that cross the border before operation i, for i of [0, n]. */
static mpl_status crossing(segments *self, uint64_t **out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint64_t *bytes = NULL;

    MPL_TRY(mpl_new(self->ctx, bytes, (size_t)self->n + 2));
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] != MPL_NONE && self->at[g->value_op[v]] != MPL_NONE &&
            self->root[v] == v) {
            bytes[self->at[g->value_op[v]] + 1] += self->bytes[v];
            bytes[self->last[v] + 1] -= self->bytes[v];
        }
    for (uint32_t i = 1; i <= self->n; i++)
        bytes[i] += bytes[i - 1];
    *out = bytes, bytes = NULL;
out:
    mpl_free(self->ctx, bytes);
    return st;
}

/* In each stretch of operations, the place where the fewest bytes cross. */
static mpl_status choose_cuts(segments *self)
{
    mpl_status st = MPL_OK;
    uint64_t *bytes = NULL;
    uint32_t n_stretches = self->n < CUTS ? self->n : CUTS;

    MPL_TRY(crossing(self, &bytes));
    MPL_TRY(mpl_new(self->ctx, self->cut, (size_t)n_stretches + 1));
    self->cut[self->n_cuts++] = 0;
    for (uint32_t k = 0; k + 1 < n_stretches; k++) {
        uint32_t from = (uint32_t)((uint64_t)(self->n - 1) * k / (n_stretches - 1)) + 1;
        uint32_t to = (uint32_t)((uint64_t)(self->n - 1) * (k + 1) / (n_stretches - 1)) + 1,
                 best = from;

        for (uint32_t i = from; i < to; i++)
            best = bytes[i] < bytes[best] ? i : best;
        self->cut[self->n_cuts++] = best;
    }
    self->cut[self->n_cuts++] = self->n;
out:
    mpl_free(self->ctx, bytes);
    return st;
}

static mpl_status open_segments(segments *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint8_t *forward = NULL;

    MPL_TRY(mpl_new(self->ctx, forward, g->n_ops));
    MPL_TRY(mpl_find_forward(self->ctx, g, forward));
    MPL_TRY(mpl_new_each(self->ctx, g->n_ops, self->op, self->at));
    MPL_TRY(mpl_new_each(self->ctx, g->n_values, self->last, self->back, self->small, self->bytes));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        self->at[op] = forward[op] && g->op_block[op] == 0 && !mpl_shows_input(g, self->options, op)
                           ? self->n
                           : MPL_NONE;
        if (self->at[op] != MPL_NONE) {
            weigh(self, op);
            self->op[self->n++] = op;
        }
    }
    MPL_TRY(mpl_run_list_init(self->ctx, g, self->options, &self->roots));
    self->root = self->roots.root;
    note_reads(self, forward);
    MPL_TRY(choose_cuts(self));
    MPL_TRY(mpl_new_each(self->ctx, self->n_cuts, self->reach, self->end, self->dropped));
out:
    mpl_free(self->ctx, forward);
    return st;
}

static void close_segments(segments *self)
{
    mpl_run_list_fini(&self->roots);
    mpl_free_each(self->ctx, self->op, self->at, self->last, self->back, self->small, self->bytes,
                  self->cut, self->reach, self->end, self->dropped);
}

/* ---- the best segments within a limit ---- */

/* A segment with a fixed end, while its front is extended [byte]. */
typedef struct segment {
    uint64_t inside; /* read by the backward part and not held by a kept value */
    uint64_t behind; /* kept of it if it is dropped */
    uint64_t whole;  /* kept of it if it is kept */
    uint64_t work;   /* of running it again */
} segment;

static void grow(const segments *self, uint32_t i, uint32_t end, segment *x)
{
    const mpl_graph *g = self->g;
    mpl_op op = self->op[i];
    bool again = false;

    for (uint32_t k = g->op_out_begin[op]; k < g->op_out_begin[op + 1]; k++) {
        mpl_value v = g->op_out[k];
        bool crosses = v != MPL_NONE && self->last[v] >= end;

        if (v == MPL_NONE || self->bytes[v] == 0)
            continue;
        if (self->back[v] || crosses)
            x->whole += self->bytes[v];
        if (crosses || (self->small[v] && self->back[v]))
            x->behind += self->bytes[v];
        else if (self->back[v])
            x->inside += self->bytes[v];
        again = again || (!crosses && !self->small[v]);
    }
    if (again)
        x->work = mpl_add_work(x->work, mpl_unit_work(g, op));
}

/* Puts a point of less work into the slot of its kept bytes; slot 0 takes the least bytes. */
static void offer(segments *self, point p, uint64_t limit)
{
    uint32_t k = 1 + (uint32_t)((double)p.kept / ((double)limit + 1) * (POINTS - 1));
    point *at = &self->slot[k], *least = &self->slot[0];

    if (p.work < at->work || (p.work == at->work && p.kept < at->kept))
        *at = p;
    if (p.kept < least->kept || (p.kept == least->kept && p.work < least->work))
        *least = p;
}

static void clear_slots(segments *self)
{
    for (uint32_t k = 0; k < POINTS; k++)
        self->slot[k] = (point){.kept = UINT64_MAX, .work = UINT64_MAX};
}

/* Keeps the points that do less work than all points with fewer bytes. */
static void take_slots(segments *self, reach *r)
{
    uint64_t work = UINT64_MAX;

    r->n = 0;
    for (uint32_t k = 0; k < POINTS; k++)
        if (self->slot[k].work < work) {
            work = self->slot[k].work;
            r->point[r->n++] = self->slot[k];
        }
}

/* Extends every way to reach cut i by a segment up to the current cut. */
static void extend(segments *self, uint32_t i, const segment *x, uint64_t limit)
{
    const reach *from = &self->reach[i];

    for (uint32_t k = 0; k < from->n; k++) {
        const point *p = &from->point[k];

        if (p->kept + x->behind + x->inside <= limit)
            offer(self, (point){p->kept + x->behind, mpl_add_work(p->work, x->work), i, k, true},
                  limit);
        if (p->kept + x->whole <= limit)
            offer(self, (point){p->kept + x->whole, p->work, i, k, false}, limit);
    }
}

/* The segments of least work within the limit, into end[] and dropped[]; false: none. */
static bool solve(segments *self, uint64_t limit)
{
    uint32_t at = self->n_cuts - 1, k;

    self->reach[0].n = 1;
    self->reach[0].point[0] = (point){0, 0, 0, 0, false};
    for (uint32_t j = 1; j < self->n_cuts; j++) {
        segment x = {0};

        clear_slots(self);
        for (uint32_t i = j; i-- > 0 && x.inside + x.behind <= limit;) {
            for (uint32_t o = self->cut[i + 1]; o-- > self->cut[i];)
                grow(self, o, self->cut[j], &x);
            extend(self, i, &x, limit);
        }
        take_slots(self, &self->reach[j]);
    }
    if (self->reach[at].n == 0)
        return false;
    self->n_ends = 0;
    for (k = self->reach[at].n - 1; at > 0;) { /* from the last segment back to the first */
        const point *p = &self->reach[at].point[k];

        self->end[self->n_ends] = self->cut[at];
        self->dropped[self->n_ends++] = p->dropped;
        at = p->from;
        k = p->from_point;
    }
    return true;
}

/* ---- segments as a run ---- */

typedef struct writer {
    segments *s;
    mpl_run_list list;
    uint32_t *segment_of; /* [n] index into end[] */
    uint8_t *written;     /* [n_ops] its repeats are already in the list */
} writer;

/* Whether the value outlives its segment. */
static bool is_kept(const writer *out, mpl_value v)
{
    const segments *s = out->s;

    return s->small[v] || s->bytes[v] == 0 ||
           s->last[v] >= s->end[out->segment_of[s->at[s->g->value_op[v]]]];
}

static mpl_status write_segment(writer *out, uint32_t k)
{
    const segments *s = out->s;
    const mpl_graph *g = s->g;

    out->written[k] = 1;
    for (uint32_t i = k + 1 < s->n_ends ? s->end[k + 1] : 0; i < s->end[k]; i++) {
        mpl_op op = s->op[i];
        bool again = false;

        for (uint32_t o = g->op_out_begin[op]; o < g->op_out_begin[op + 1]; o++)
            again = again || (g->op_out[o] != MPL_NONE && !is_kept(out, g->op_out[o]));
        if (again && out->list.ran[op])
            MPL_PASS(mpl_run_list_add(&out->list, op));
    }
    return MPL_OK;
}

/* Writes what the backward operation reads, unless it is in memory. */
static mpl_status write_needed(writer *out, mpl_op op)
{
    const segments *s = out->s;
    const mpl_graph *g = s->g;

    for (uint32_t i = s->roots.reads.begin[op]; i < s->roots.reads.begin[op + 1]; i++) {
        mpl_value v = s->root[s->roots.reads.value[i]];
        uint32_t at = g->value_op[v] != MPL_NONE ? s->at[g->value_op[v]] : MPL_NONE;

        if (at != MPL_NONE && s->dropped[out->segment_of[at]] &&
            !out->written[out->segment_of[at]] && !is_kept(out, v))
            MPL_PASS(write_segment(out, out->segment_of[at]));
    }
    return MPL_OK;
}

static mpl_status write_run(segments *self, uint32_t *n, mpl_op **run)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    writer w = {.s = self};

    MPL_TRY(mpl_run_list_init(self->ctx, g, self->options, &w.list));
    MPL_TRY(mpl_new(self->ctx, w.segment_of, self->n));
    MPL_TRY(mpl_new(self->ctx, w.written, self->n_ends));
    for (uint32_t k = 0; k < self->n_ends; k++)
        for (uint32_t i = k + 1 < self->n_ends ? self->end[k + 1] : 0; i < self->end[k]; i++)
            w.segment_of[i] = k;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (g->op_block[op] != 0)
            continue;
        if (self->at[op] == MPL_NONE && !mpl_shows_input(g, self->options, op))
            MPL_TRY(write_needed(&w, op));
        MPL_TRY(mpl_run_list_add(&w.list, op));
    }
    MPL_TRY(mpl_rerun_trim(self->ctx, g, &w.list.n, w.list.run));
    *n = w.list.n;
    *run = w.list.run, w.list.run = NULL;
out:
    mpl_run_list_fini(&w.list);
    mpl_free_each(self->ctx, w.segment_of, w.written);
    return st;
}

/* ---- limits ---- */

typedef struct best {
    uint64_t budget; /* UINT64_MAX: minimise the peak */
    uint64_t peak;   /* of run; UINT64_MAX: none */
    uint64_t work;
    uint32_t n;
    mpl_op *run; /* owned */
} best;

static bool is_better(const best *self, uint64_t peak, uint64_t work)
{
    if (self->budget == UINT64_MAX)
        return peak < self->peak || (peak == self->peak && work < self->work);
    if (peak > self->budget)
        return false;
    return self->peak == UINT64_MAX || work < self->work ||
           (work == self->work && peak < self->peak);
}

/* Makes the graph of a limit; *fits: within the budget. */
static mpl_status try_limit(segments *self, uint64_t limit, best *b, bool *fits)
{
    mpl_status st = MPL_OK;
    mpl_rerun_facts facts;
    uint64_t peak;
    mpl_op *run = NULL;
    uint32_t n = 0;

    *fits = false;
    if (!solve(self, limit))
        return MPL_OK;
    MPL_TRY(write_run(self, &n, &run));
    MPL_TRY(mpl_rerun_peak(self->ctx, self->g, n, run, self->options, &peak, &facts));
    *fits = peak <= b->budget;
    if (!is_better(b, peak, facts.extra_work))
        goto out;
    mpl_free(self->ctx, b->run);
    b->run = run, run = NULL;
    b->n = n;
    b->peak = peak;
    b->work = facts.extra_work;
out:
    mpl_free(self->ctx, run);
    return st;
}

/* A limit between `low` (too little, or the least) and `high`. */
static uint64_t between(uint64_t low, uint64_t high, uint32_t i, uint32_t n)
{
    return low + (uint64_t)((double)(high - low) * i / n);
}

static mpl_status search(segments *self, best *b)
{
    uint64_t most = 0, least, too_little = 0, high;
    bool fits;

    for (mpl_value v = 0; v < self->g->n_values; v++)
        most += self->bytes[v];
    for (least = most; least - too_little > most / 256 + 1;) {
        uint64_t middle = between(too_little, least, 1, 2);

        if (solve(self, middle))
            least = middle;
        else
            too_little = middle;
    }
    for (uint32_t i = 0; i <= LIMITS; i++) {
        /* limits are denser at the low end */
        uint64_t limit = between(least, most, i * i, LIMITS * LIMITS);

        MPL_PASS(try_limit(self, limit, b, &fits));
        if (fits)
            too_little = limit;
    }
    high = most;
    for (uint32_t i = 0; i < self->halvings && b->budget != UINT64_MAX && b->peak != UINT64_MAX;
         i++) {
        uint64_t middle = between(too_little, high, 1, 2);

        MPL_PASS(try_limit(self, middle, b, &fits));
        if (fits)
            too_little = middle;
        else
            high = middle;
    }
    return MPL_OK;
}

mpl_status mpl_recompute_sqrt(mpl_recompute_task *task)
{
    mpl_status st = MPL_OK;
    segments s = {
        .ctx = task->ctx,
        .g = task->g,
        .options = task->options,
        .halvings = mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_halvings) ? HALVINGS : 0};
    best b = {.budget = task->budget, .peak = UINT64_MAX};

    MPL_TRY(open_segments(&s));
    MPL_TRY(search(&s, &b));
    if (b.run == NULL)
        MPL_FAIL(task->ctx, MPL_ELIMIT,
                 "graph '%s': no segments were found that need at most %" PRIu64 " bytes",
                 task->g->name, task->budget);
    task->run = b.run, b.run = NULL;
    task->n = b.n;
out:
    mpl_free(task->ctx, b.run);
    close_segments(&s);
    return st;
}
