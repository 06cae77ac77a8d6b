/* recompute_thin.c -- removes repeats while memory allows. See rerun.h.
 *
 * Idea     Without a repeat, its readers read the previous copy, which lives longer; repeats that
 *          served only this one go too. Repeats are tried from the most work to the least until
 *          none can go. The sum of the copies' lives estimates the peak. The graph of the result
 *          has to be within the budget; otherwise half of the removed repeats come back, and so on.
 * Cost     O(size of the run) for each repeat and round. */
#include <stdlib.h>

#include "planners/recompute/rerun.h"

enum { ROUNDS = 4 };

typedef struct thinner {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    const mpl_value *root; /* [n_values] */
    const mpl_unit_reads *reads;
    uint64_t *bytes;       /* [n_values] of a root that an operation makes; 0: pinned */
    uint32_t *made, *last; /* [n_values] where the latest copy was made, and last read */
    uint32_t room;         /* longest run */
    uint64_t *live;        /* [room + 1] */
    uint8_t *slid;         /* [room] its result overwrites an operand */
    uint8_t *ran;          /* [n_ops] */
} thinner;

static bool lies_over(const thinner *self, mpl_op op, mpl_value v)
{
    const mpl_graph *g = self->g;
    mpl_value out =
        g->op_out_begin[op] < g->op_out_begin[op + 1] ? g->op_out[g->op_out_begin[op]] : MPL_NONE;

    if (!self->options->in_place || out == MPL_NONE || g->value_type[v] != g->value_type[out] ||
        !mpl_shape_equal(&g->value_shape[v], &g->value_shape[out]))
        return false;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
        if (g->op_in[i] == v && mpl_op_overwrites(g, op, i - g->op_in_begin[op]))
            return true;
    return false;
}

/* Ends the life of the latest copy of v. */
static void close_copy(thinner *self, const mpl_op *run, mpl_value v)
{
    uint32_t end = self->last[v] + 1;

    if (self->made[v] == MPL_NONE || self->bytes[v] == 0)
        return;
    if (self->last[v] > self->made[v] && !self->slid[self->last[v]] &&
        lies_over(self, run[self->last[v]], v)) {
        self->slid[self->last[v]] = 1;
        end--;
    }
    self->live[self->made[v]] += self->bytes[v];
    self->live[end] -= self->bytes[v];
}

static uint64_t peak_of(thinner *self, uint32_t n, const mpl_op *run)
{
    const mpl_graph *g = self->g;
    uint64_t peak = 0, now = 0;

    memset(self->made, 0xff, g->n_values * sizeof *self->made);
    memset(self->live, 0, ((size_t)n + 1) * sizeof *self->live);
    memset(self->slid, 0, n);
    memset(self->ran, 0, g->n_ops);
    for (uint32_t i = 0; i < n; i++) {
        mpl_op op = run[i];
        bool some = self->ran[op] && mpl_n_repeat_reads(g, op) < mpl_op_n_in(g, op);
        uint32_t begin = self->reads->begin[op];
        uint32_t end = some ? begin + mpl_n_repeat_reads(g, op) : self->reads->begin[op + 1];

        for (uint32_t k = begin; k < end; k++)
            self->last[self->root[self->reads->value[k]]] = i;
        for (uint32_t k = 0; k < g->op_out_begin[op + 1] - g->op_out_begin[op]; k++) {
            mpl_value v = g->op_out[g->op_out_begin[op] + k];

            if (v == MPL_NONE || self->root[v] != v ||
                (self->ran[op] && !mpl_repeat_makes(g, op, k)))
                continue;
            close_copy(self, run, v);
            self->made[v] = self->last[v] = i;
        }
        self->ran[op] = 1;
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        close_copy(self, run, v);
    for (uint32_t i = 0; i < n; i++) {
        now += self->live[i];
        peak = mpl_max_u64(peak, now);
    }
    return peak;
}

static mpl_status open_thinner(thinner *self, const mpl_run_list *roots, uint32_t room)
{
    const mpl_graph *g = self->g;
    uint64_t rest = self->options->align - 1;

    self->root = roots->root;
    self->reads = &roots->reads;
    self->room = room;
    MPL_PASS(mpl_new_each(self->ctx, g->n_values, self->bytes, self->made, self->last));
    MPL_PASS(mpl_new(self->ctx, self->live, (size_t)room + 1));
    MPL_PASS(mpl_new(self->ctx, self->slid, room));
    MPL_PASS(mpl_new(self->ctx, self->ran, g->n_ops));
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] != MPL_NONE && g->op_block[g->value_op[v]] == 0 && self->root[v] == v &&
            (g->value_role[v] != MPL_OUTPUT || !self->options->pin_outputs))
            self->bytes[v] = (g->value_bytes[v] + rest) & ~rest;
    return MPL_OK;
}

static void close_thinner(thinner *self)
{
    mpl_free_each(self->ctx, self->bytes, self->made, self->last, self->live, self->slid,
                  self->ran);
}

/* ---- removing repeats one by one ---- */

typedef struct heavy {
    uint64_t work;
    mpl_op op;
} heavy;

MPL_ORDER_BY(by_work, heavy, MPL_FALLING(work) MPL_RISING(op))

/* The run without the last repeat of op, and without the repeats that nothing then reads. *without:
 * its length; n if op has no repeat. */
static mpl_status leave_out(const thinner *self, uint32_t n, const mpl_op *run, mpl_op op,
                            mpl_op *to, uint32_t *without)
{
    uint32_t times = 0, at = 0;

    for (uint32_t i = 0; i < n; i++)
        if (run[i] == op)
            times++, at = i;
    *without = n;
    if (times < 2)
        return MPL_OK;
    memcpy(to, run, at * sizeof *to);
    memcpy(to + at, run + at + 1, (n - at - 1) * sizeof *to);
    *without = n - 1;
    return mpl_rerun_trim(self->ctx, self->g, without, to);
}

/* Removes up to `most` repeats while live bytes stay within limit; *n_out: how many. */
static mpl_status thin(thinner *self, uint64_t limit, uint32_t most, uint32_t *n, mpl_op *run,
                       uint32_t *n_out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    heavy *list = NULL;
    mpl_op *other = NULL;
    bool changed = true;

    *n_out = 0;
    MPL_TRY(mpl_new(self->ctx, list, g->n_ops));
    MPL_TRY(mpl_new(self->ctx, other, *n));
    for (mpl_op op = 0; op < g->n_ops; op++)
        list[op] = (heavy){g->op_block[op] == 0 ? mpl_unit_work(g, op) : 0, op};
    qsort(list, g->n_ops, sizeof *list, by_work);
    for (uint32_t round = 0; round < ROUNDS && changed; round++) {
        changed = false;
        for (uint32_t i = 0; i < g->n_ops && *n_out < most; i++) {
            uint32_t without;

            MPL_TRY(leave_out(self, *n, run, list[i].op, other, &without));
            if (without == *n || peak_of(self, without, other) > limit)
                continue;
            memcpy(run, other, without * sizeof *run);
            *n = without;
            ++*n_out;
            changed = true;
        }
    }
out:
    mpl_free_each(self->ctx, list, other);
    return st;
}

mpl_status mpl_rerun_thin(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          uint64_t budget, uint32_t *n, mpl_op *run)
{
    mpl_status st = MPL_OK;
    thinner t = {.ctx = ctx, .g = g, .options = options};
    mpl_run_list roots = {0};
    mpl_op *other = NULL;
    uint64_t first, now, limit;
    uint32_t most = UINT32_MAX, n_out, left;

    MPL_TRY(mpl_run_list_init(ctx, g, options, &roots));
    MPL_TRY(open_thinner(&t, &roots, *n));
    MPL_TRY(mpl_new(ctx, other, *n));
    MPL_TRY(mpl_rerun_peak(ctx, g, *n, run, options, &first, NULL));
    if (first > budget)
        goto out;
    limit = peak_of(&t, *n, run) + (budget - first);
    do {
        left = *n;
        memcpy(other, run, left * sizeof *other);
        MPL_TRY(thin(&t, limit, most, &left, other, &n_out));
        MPL_TRY(mpl_rerun_peak(ctx, g, left, other, options, &now, NULL));
        most = n_out / 2;
    } while (now > budget && n_out > 0);
    memcpy(run, other, left * sizeof *run);
    *n = left;
out:
    close_thinner(&t);
    mpl_run_list_fini(&roots);
    mpl_free(ctx, other);
    return st;
}
