/* verify_graph.c -- the verifier of parallel safety and of streams, by its own reachability on the
 * graph. See verify.h.
 *
 * Cost     O(ops * edges / 64) for reachability, then a few bit tests for each pair of buffers that
 *          overlap in memory; ops^2 / 8 bytes. */
#include "planners/verify/verify.h"

#include <stdlib.h>

typedef struct checker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_value_map *map;
    const mpl_problem *p;
    const mpl_plan *plan;
    uint32_t n_words;
    uint64_t *later;       /* [n_ops * n_words] operations that can only run after this one */
    uint32_t *touch_begin; /* [n + 1] into touch: operations that read or write the buffer */
    mpl_op *touch;
} checker;

/* An operation whose results lie where it would put them runs nothing and touches nothing. */
static bool runs(const checker *self, mpl_op op)
{
    return self->map->op_nothing == NULL || self->map->op_nothing[op] == 0;
}

/* `late`, whose own set is complete, runs after `op`. */
static void add_later(checker *self, mpl_op op, mpl_op late)
{
    self->later[(size_t)op * self->n_words + late / 64] |= UINT64_C(1) << (late % 64);
    for (uint32_t w = 0; w < self->n_words; w++)
        self->later[(size_t)op * self->n_words + w] |=
            self->later[(size_t)late * self->n_words + w];
}

/* Goes through the operations from the last to the first, in the plan's order under streams. In
 * that order an operation's readers and the next one of its stream come after it. */
static mpl_status mark_later(checker *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    const uint32_t *stream = self->map->op_stream;
    mpl_op *at = NULL, *next = NULL; /* by step; of each stream, the next in it */

    MPL_TRY(mpl_new_each(self->ctx, g->n_ops, at, next));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t step = stream != NULL ? self->map->step_of[op] : op;

        if (step >= g->n_ops || (stream != NULL && stream[op] >= g->n_ops))
            MPL_FAIL(self->ctx, MPL_EINVALID, "operation '%.80s' has no step, or no stream",
                     g->op_name[op]);
        at[step] = op;
        next[op] = MPL_NONE;
    }
    for (uint32_t step = g->n_ops; step-- > 0;) {
        mpl_op op = at[step];

        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            for (uint32_t k = g->op_out[i] != MPL_NONE ? g->value_use_begin[g->op_out[i]] : 0;
                 g->op_out[i] != MPL_NONE && k < g->value_use_begin[g->op_out[i] + 1]; k++)
                add_later(self, op, g->value_use[k]);
        if (stream == NULL)
            continue;
        if (next[stream[op]] != MPL_NONE)
            add_later(self, op, next[stream[op]]);
        next[stream[op]] = op;
    }
out:
    mpl_free_each(self->ctx, at, next);
    return st;
}

static bool is_later(const checker *self, mpl_op early, mpl_op late)
{
    return (self->later[(size_t)early * self->n_words + late / 64] >> (late % 64) & 1) != 0;
}

/* The number of buffers of a value, counted from its first. */
static uint32_t n_buffers(const checker *self, mpl_value v)
{
    return self->map->value_buffers != NULL ? self->map->value_buffers[v] : 1;
}

/* Visits all (buffer, operation) that touch: counts into begin[b + 2], or fills at begin[b + 1]. */
static void visit_touches(checker *self, bool fill)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t n_in = mpl_n_read(g, op);
        uint32_t n_out = mpl_op_n_out(g, op);

        for (uint32_t i = 0; i <= n_in + n_out && runs(self, op); i++) {
            mpl_buffer b = self->map->op_workspace != NULL ? self->map->op_workspace[op] : MPL_NONE;
            uint32_t n = 1;

            if (i < n_in + n_out) {
                mpl_value v =
                    i < n_in ? mpl_op_input(g, op, i) : g->op_out[g->op_out_begin[op] + i - n_in];

                b = v != MPL_NONE ? self->map->value_buffer[v] : MPL_NONE;
                n = v != MPL_NONE ? n_buffers(self, v) : 0;
            }
            for (; b != MPL_NONE && n > 0; b++, n--)
                if (fill)
                    self->touch[self->touch_begin[b + 1]++] = op;
                else
                    self->touch_begin[b + 2]++;
        }
    }
}

static mpl_status list_touches(checker *self)
{
    MPL_PASS(mpl_new(self->ctx, self->touch_begin, (size_t)self->p->n + 2));
    visit_touches(self, false);
    for (uint32_t b = 0; b < self->p->n; b++)
        self->touch_begin[b + 2] += self->touch_begin[b + 1];
    MPL_PASS(mpl_new(self->ctx, self->touch, self->touch_begin[self->p->n + 1]));
    visit_touches(self, true);
    return MPL_OK;
}

/* Whether all that touches a must run before all that touches b. *from, *to: two that need not. */
static bool all_before(const checker *self, mpl_buffer a, mpl_buffer b, mpl_op *from, mpl_op *to)
{
    for (uint32_t i = self->touch_begin[a]; i < self->touch_begin[a + 1]; i++)
        for (uint32_t k = self->touch_begin[b]; k < self->touch_begin[b + 1]; k++)
            if (!is_later(self, self->touch[i], self->touch[k])) {
                *from = self->touch[i];
                *to = self->touch[k];
                return false;
            }
    return true;
}

/* Whether `out`, which some operation touches, may overwrite `in`: one operation makes the first
 * value of `out` from a value in `in`, its operator allows that for equal types and dims, and
 * everything else that touches `in` must run before it. */
static bool may_overwrite(const checker *self, mpl_buffer in, mpl_buffer out)
{
    const mpl_graph *g = self->g;
    mpl_op maker = self->touch[self->touch_begin[out]]; /* lists ascend: the first one */
    mpl_value made = mpl_op_output(g, maker, 0);
    /* offset of the buffer in its storage */
    uint64_t at = self->p->inside != NULL ? self->p->inside_at[in] : 0;
    bool reads = false;

    if (made == MPL_NONE || self->map->value_buffer[made] != out || n_buffers(self, made) != 1 ||
        mpl_value_strided(self->map, made))
        return false;
    for (uint32_t i = g->op_in_begin[maker]; i < g->op_in_begin[maker + 1]; i++) {
        mpl_value v = g->op_in[i];
        bool allowed = mpl_op_overwrites(g, maker, i - g->op_in_begin[maker]);

        reads |= v != MPL_NONE && self->map->value_buffer[v] == in && n_buffers(self, v) == 1 &&
                 !mpl_value_strided(self->map, v) && self->map->value_offset[v] == at && allowed &&
                 g->value_type[v] == g->value_type[made] &&
                 g->value_bytes[v] == g->value_bytes[made];
    }
    for (uint32_t i = self->touch_begin[out]; reads && i < self->touch_begin[out + 1]; i++)
        reads = self->touch[i] == maker || is_later(self, maker, self->touch[i]);
    for (uint32_t i = self->touch_begin[in]; reads && i < self->touch_begin[in + 1]; i++)
        reads = self->touch[i] == maker || is_later(self, self->touch[i], maker);
    return reads && self->p->bytes[out] <= self->p->bytes[in];
}

static mpl_status check_pair(const checker *self, mpl_buffer a, mpl_buffer b)
{
    mpl_op from, to;
    char one[24], other[24];

    if (all_before(self, a, b, &from, &to) || all_before(self, b, a, &from, &to))
        return MPL_OK;
    if (self->plan->offset[a] == self->plan->offset[b] &&
        (may_overwrite(self, a, b) || may_overwrite(self, b, a)))
        return MPL_OK;
    return MPL_ERROR(self->ctx, MPL_EINVALID,
                     "buffers '%.80s' [%" PRIu64 ", %" PRIu64 ") and '%.80s' [%" PRIu64 ", %" PRIu64
                     ") overlap, but operation "
                     "'%.60s' need not run before '%.60s'",
                     mpl_buffer_label(self->p, a, one), self->plan->offset[a],
                     self->plan->offset[a] + self->p->bytes[a], mpl_buffer_label(self->p, b, other),
                     self->plan->offset[b], self->plan->offset[b] + self->p->bytes[b],
                     self->g->op_name[from], self->g->op_name[to]);
}

typedef struct placed {
    uint64_t begin, end;
    uint32_t pool;
    mpl_buffer b;
} placed;

static int by_place(const void *left, const void *right)
{
    const placed *x = left, *y = right;

    if (x->pool != y->pool)
        return x->pool < y->pool ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* Checks every pair that overlaps: by offset, each against later ones that begin before its end. */
static mpl_status check_overlaps(const checker *self)
{
    mpl_status st = MPL_OK;
    placed *list = NULL;

    MPL_TRY(mpl_new(self->ctx, list, self->p->n));
    for (mpl_buffer b = 0; b < self->p->n; b++)
        list[b] = (placed){self->plan->offset[b], self->plan->offset[b] + self->p->bytes[b],
                           mpl_plan_arena(self->p, self->plan, b), b};
    qsort(list, self->p->n, sizeof *list, by_place);
    for (uint32_t i = 0; i < self->p->n; i++)
        for (uint32_t k = i + 1;
             k < self->p->n && list[k].pool == list[i].pool && list[k].begin < list[i].end; k++)
            MPL_TRY(check_pair(self, list[i].b, list[k].b));
out:
    mpl_free(self->ctx, list);
    return st;
}

mpl_status mpl_verify_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                            const mpl_problem *p, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    checker c = {.ctx = ctx, .g = g, .map = map, .p = p, .plan = plan};

    c.n_words = g->n_ops / 64 + (g->n_ops % 64 != 0);
    MPL_TRY(mpl_new(ctx, c.later, (size_t)g->n_ops * c.n_words));
    MPL_TRY(mark_later(&c));
    MPL_TRY(list_touches(&c));
    MPL_TRY(check_overlaps(&c));
out:
    mpl_free_each(ctx, c.later, c.touch_begin, c.touch);
    return st;
}
