/* rerun.c -- the graph of a run. See rerun.h. */
#include "planners/recompute/rerun.h"
#include "graphs/problem/bounds/bounds.h"

#include "graphs/problem/liveness.h"
#include "graphs/orders/work.h"
#include "graphs/passes/copy.h"

typedef struct wait {
    mpl_value value; /* of the new graph */
    uint32_t next;   /* index into wait[]; MPL_NONE */
} wait;

typedef struct replay {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_graph *to;
    bool bare;
    mpl_value *now, *first; /* [n_values] latest and first copy; MPL_NONE: not made yet */
    mpl_value *shows;       /* [n_values] the weight it is or is a view of */
    uint32_t *block;        /* [n_blocks] */
    mpl_unit_reads reads;
    uint32_t *n_runs; /* [n_ops] copies so far */
    uint8_t *updated; /* [n_values] of weights */
    bool waiting;     /* there are repeats: updates wait for every reader */
    uint32_t *waits;  /* [n_values] of a weight: its last reader so far, into wait[]; or MPL_NONE */
    wait *wait;
    uint32_t n_waits;
    size_t wait_cap;
} replay;

/* ---- what may run again ---- */

/* The repeat takes the types of the moments from the scale. */
static bool norm_repeats(const mpl_graph *g, mpl_op op)
{
    for (uint32_t i = 1; i < 3; i++)
        if (mpl_op_output(g, op, i) != MPL_NONE &&
            g->value_type[mpl_op_output(g, op, i)] != g->value_type[mpl_op_input(g, op, 1)])
            return false;
    return true;
}

bool mpl_may_repeat(const mpl_graph *g, mpl_op op)
{
    if (g->op_kind[op] == MPL_OP_batch_norm_train)
        return norm_repeats(g, op);
    for (mpl_op o = mpl_unit_begin(g, op); o <= op; o++)
        if ((mpl_op_table[g->op_kind[o]].traits & (MPL_PROGRAM | MPL_MUTATES)) != 0 ||
            mpl_n_updates((mpl_op_kind)g->op_kind[o]) > 0 ||
            (o != op && g->op_kind[o] == MPL_OP_dropout_train))
            return false;
    return true;
}

bool mpl_repeat_makes(const mpl_graph *g, mpl_op op, uint32_t i)
{
    switch (g->op_kind[op]) {
    case MPL_OP_batch_norm_train:
        return i < 3;
    case MPL_OP_dropout_train:
        return i < 1;
    default:
        return true;
    }
}

uint32_t mpl_n_repeat_reads(const mpl_graph *g, mpl_op op)
{
    return g->op_kind[op] == MPL_OP_batch_norm_train ? 3
           : g->op_kind[op] == MPL_OP_dropout_train  ? 1
                                                     : mpl_op_n_in(g, op);
}

/* ---- one operation of a run ---- */

/* The update of a weight waits for every copy that reads it. */
static mpl_status note_readers(replay *self, mpl_op op, uint32_t k, mpl_value made)
{
    bool some = k > 0 && mpl_n_repeat_reads(self->g, op) < mpl_op_n_in(self->g, op);
    uint32_t begin = self->reads.begin[op],
             end = some ? begin + mpl_n_repeat_reads(self->g, op) : self->reads.begin[op + 1];

    for (uint32_t i = begin; i < end; i++) {
        mpl_value weight = self->shows[self->reads.value[i]];

        if (weight == MPL_NONE || (k == 0 && mpl_unit_updates(self->g, op, weight)))
            continue;
        if (self->updated[weight])
            return MPL_REFUSE(self->ctx,
                              "operation '%.100s' cannot run again: '%.100s' is updated before",
                              self->g->op_name[op], self->g->value_name[weight]);
        MPL_PASS(mpl_reserve(self->ctx, self->wait, self->wait_cap, (size_t)self->n_waits + 1));
        self->wait[self->n_waits] = (wait){made, self->waits[weight]};
        self->waits[weight] = self->n_waits++;
    }
    return MPL_OK;
}

static mpl_status too_early(const replay *self, mpl_op op, mpl_value v)
{
    return MPL_REFUSE(self->ctx, "operation '%.100s' would run before '%.100s' is there",
                      self->g->op_name[op], self->g->value_name[v]);
}

/* The inputs in[] of the k-th copy: of the first or of a repeat. */
static mpl_status gather_in(replay *self, mpl_op op, uint32_t k, mpl_value *in, uint32_t *n_in)
{
    const mpl_graph *g = self->g;
    uint32_t n = k == 0 ? mpl_op_n_in(g, op) : mpl_n_repeat_reads(g, op);

    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = mpl_op_input(g, op, i);

        in[i] = v == MPL_NONE ? MPL_NONE : i < mpl_n_read(g, op) ? self->now[v] : self->first[v];
        if (v != MPL_NONE && in[i] == MPL_NONE)
            return too_early(self, op, v);
    }
    if (k > 0 && g->op_kind[op] == MPL_OP_dropout_train)
        in[n++] = self->first[mpl_op_output(g, op, 1)];
    *n_in = n;
    return MPL_OK;
}

static uint32_t count_waits(const replay *self, mpl_op op)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < mpl_op_n_out(self->g, op); i++) {
        mpl_value weight = mpl_updated(self->g, op, i);

        for (uint32_t w = weight != MPL_NONE ? self->waits[weight] : MPL_NONE; w != MPL_NONE;
             w = self->wait[w].next)
            n++;
    }
    return n;
}

/* Batch norm cannot wait for repeats; no other operation reads its statistics. */
static mpl_status add_waits(replay *self, mpl_op op, mpl_value *in, uint32_t *n_in)
{
    uint32_t n_read = *n_in;

    for (uint32_t i = 0; i < mpl_op_n_out(self->g, op); i++) {
        mpl_value weight = mpl_updated(self->g, op, i);

        for (uint32_t w = weight != MPL_NONE ? self->waits[weight] : MPL_NONE; w != MPL_NONE;
             w = self->wait[w].next)
            in[(*n_in)++] = self->wait[w].value;
        if (weight != MPL_NONE)
            self->updated[weight] = 1;
    }
    if (*n_in > n_read && mpl_op_table[self->g->op_kind[op]].max_in < 255)
        return MPL_REFUSE(self->ctx, "operation '%.100s' cannot wait for what runs again",
                          self->g->op_name[op]);
    return MPL_OK;
}

static mpl_op_kind kind_of(const mpl_graph *g, mpl_op op, uint32_t k)
{
    if (k > 0 && g->op_kind[op] == MPL_OP_batch_norm_train)
        return MPL_OP_batch_norm_again;
    if (k > 0 && g->op_kind[op] == MPL_OP_dropout_train)
        return MPL_OP_dropout_grad; /* the same, applied to the mask */
    return (mpl_op_kind)g->op_kind[op];
}

/* Names of the outputs of the k-th copy. Skips those that a repeat does not make. */
static uint32_t name_outputs(const replay *self, mpl_op op, uint32_t k, const char **name,
                             char (*text)[MPL_REPEAT_NAME])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < mpl_op_n_out(self->g, op); i++) {
        mpl_value v = mpl_op_output(self->g, op, i);

        if (k > 0 && !mpl_repeat_makes(self->g, op, i))
            continue;
        name[n++] = v == MPL_NONE ? NULL
                    : k == 0      ? self->g->value_name[v]
                             : mpl_repeat_name(self->g, self->to, self->g->value_name[v], ".again",
                                               &(uint32_t){k}, text[i]);
    }
    return n;
}

static void note_outputs(replay *self, mpl_op op, uint32_t k, const mpl_value *out)
{
    for (uint32_t i = 0, at = 0; i < mpl_op_n_out(self->g, op); i++) {
        mpl_value v = mpl_op_output(self->g, op, i);

        if (k > 0 && !mpl_repeat_makes(self->g, op, i))
            continue;
        if (v != MPL_NONE) {
            self->now[v] = out[at];
            self->first[v] = k == 0 ? out[at] : self->first[v];
        }
        at++;
    }
}

/* The value on which operations that depend on this one wait: its first result; else MPL_NONE. */
static mpl_value first_result(const replay *self, mpl_op op)
{
    mpl_value out = MPL_NONE;

    for (uint32_t i = 0; i < mpl_op_n_out(self->g, op) && out == MPL_NONE; i++)
        if (mpl_op_output(self->g, op, i) != MPL_NONE)
            out = self->now[mpl_op_output(self->g, op, i)];
    return out;
}

/* The k-th copy of an operation with blocks, which reads the latest copies. */
static mpl_status add_control(replay *self, mpl_op op, uint32_t k)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = self->reads.begin[op]; i < self->reads.begin[op + 1]; i++)
        if (self->now[self->reads.value[i]] == MPL_NONE)
            return too_early(self, op, self->reads.value[i]);
    if (self->waiting && mpl_unit_updates(g, op, MPL_NONE))
        return MPL_REFUSE(self->ctx,
                          "operation '%.100s' updates a weight in its block, which cannot "
                          "wait for what runs again",
                          g->op_name[op]);
    MPL_PASS(k == 0 ? mpl_copy_unit(self->ctx, g, op, self->to, self->now, self->block)
                    : mpl_repeat_op(self->ctx, g, op, self->to, self->now, self->block));
    for (uint32_t i = 0; k == 0 && i < mpl_op_n_out(g, op); i++)
        if (mpl_op_output(g, op, i) != MPL_NONE)
            self->first[mpl_op_output(g, op, i)] = self->now[mpl_op_output(g, op, i)];
    return MPL_OK;
}

/* The k-th copy of an operation without blocks. */
static mpl_status add_plain(replay *self, mpl_op op, uint32_t k)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t n_out = mpl_op_n_out(g, op), n_in = 0, n_names, n_attr;
    mpl_value *in = NULL, *out = NULL;
    const char **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL;
    mpl_attr *attr = NULL;

    MPL_TRY(mpl_new(self->ctx, in, (size_t)mpl_op_n_in(g, op) + 1 + count_waits(self, op)));
    MPL_TRY(mpl_new_each(self->ctx, n_out, out, name));
    MPL_TRY(mpl_new(self->ctx, text, k > 0 ? n_out : 0));
    MPL_TRY(mpl_copy_attrs(self->ctx, g, op, &n_attr, &attr));
    MPL_TRY(gather_in(self, op, k, in, &n_in));
    MPL_TRY(add_waits(self, op, in, &n_in));
    n_names = name_outputs(self, op, k, name, text);
    MPL_TRY(mpl_graph_add_op(self->ctx, self->to, kind_of(g, op, k), g->op_name[op], n_in, in,
                             n_attr, attr, n_names, name, out));
    note_outputs(self, op, k, out);
out:
    mpl_free_each(self->ctx, in, out, name, text, attr);
    return st;
}

static mpl_status add_copy(replay *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    uint32_t k = self->n_runs[op]++;

    if (g->op_block[op] != 0)
        return MPL_REFUSE(self->ctx, "operation '%.100s' runs with the loop or branch around it",
                          g->op_name[op]);
    if (k > 0 && !mpl_may_repeat(g, op))
        return MPL_REFUSE(self->ctx, "operation '%.100s' (%s) must not run again", g->op_name[op],
                          mpl_op_table[g->op_kind[op]].name);
    if (g->op_body_begin[op] < g->op_body_begin[op + 1])
        MPL_PASS(add_control(self, op, k));
    else
        MPL_PASS(add_plain(self, op, k));
    return self->waiting && first_result(self, op) != MPL_NONE
               ? note_readers(self, op, k, first_result(self, op))
               : MPL_OK;
}

/* ---- the graph ---- */

enum { KNOWN = 64 }; /* bytes of a constant that a loop may take its rounds from */

mpl_status mpl_repeat_source(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, bool bare,
                             mpl_graph *to, mpl_value *made)
{
    bool bound = g->value_role[v] == MPL_WEIGHT && mpl_is_bound(g, v);
    mpl_type type = (mpl_type)g->value_type[v];
    const mpl_shape *shape = &g->value_shape[v];

    if (g->value_data[v] != NULL && !bound && (!bare || g->value_bytes[v] <= KNOWN))
        MPL_PASS(mpl_graph_add_const(ctx, to, g->value_name[v], type, shape, g->value_data[v],
                                     g->value_splat[v], made));
    else
        MPL_PASS(mpl_graph_add_value(ctx, to, g->value_name[v],
                                     bound ? MPL_INPUT : (mpl_role)g->value_role[v], type, shape,
                                     made));
    return bound ? mpl_graph_bind_input(ctx, to, *made, g->value_data[v]) : MPL_OK;
}

static mpl_status copy_value(replay *self, mpl_value v)
{
    MPL_PASS(mpl_repeat_source(self->ctx, self->g, v, self->bare, self->to, &self->now[v]));
    self->first[v] = self->now[v];
    self->shows[v] = self->g->value_role[v] == MPL_WEIGHT ? v : MPL_NONE;
    return MPL_OK;
}

static mpl_status allocate(replay *self)
{
    const mpl_graph *g = self->g;

    MPL_PASS(mpl_new_each(self->ctx, g->n_values, self->now, self->first, self->shows));
    MPL_PASS(mpl_new(self->ctx, self->block, g->n_blocks));
    MPL_PASS(mpl_unit_reads_new(self->ctx, g, &self->reads));
    MPL_PASS(mpl_new(self->ctx, self->n_runs, g->n_ops));
    MPL_PASS(mpl_new_each(self->ctx, g->n_values, self->updated, self->waits));
    memset(self->now, 0xff, g->n_values * sizeof *self->now);
    memset(self->first, 0xff, g->n_values * sizeof *self->first);
    memset(self->shows, 0xff, g->n_values * sizeof *self->shows);
    memset(self->waits, 0xff, g->n_values * sizeof *self->waits);
    return MPL_OK;
}

static mpl_status build(replay *self, uint32_t n, const mpl_op *run)
{
    const mpl_graph *g = self->g;
    uint32_t n_units = 0;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] == MPL_NONE && g->value_role[v] != MPL_PARAMETER)
            MPL_PASS(copy_value(self, v));
    for (mpl_op op = 0; op < g->n_ops; op++) /* views come after what they show */
        for (uint32_t i = 0; mpl_may_be_view(g, op) && i < mpl_op_n_out(g, op); i++)
            if (mpl_op_output(g, op, i) != MPL_NONE)
                self->shows[mpl_op_output(g, op, i)] = self->shows[mpl_op_input(g, op, 0)];
    for (mpl_op op = 0; op < g->n_ops; op++)
        n_units += g->op_block[op] == 0;
    self->waiting = n > n_units;
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(add_copy(self, run[i]));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_block[op] == 0 && self->n_runs[op] == 0)
            return MPL_REFUSE(self->ctx, "operation '%.100s' never runs", g->op_name[op]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->first[g->output[i]]));
    MPL_PASS(mpl_graph_finish(self->ctx, self->to));
    return mpl_graph_check_updates(self->ctx, self->to);
}

/* Counts the operations that a loss needs; all operations if there is no loss. */
static mpl_status count_work(const replay *self, mpl_rerun_facts *facts)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint8_t *forward = NULL;

    *facts = (mpl_rerun_facts){0};
    MPL_TRY(mpl_new(self->ctx, forward, g->n_ops));
    if (mpl_find_forward(self->ctx, g, forward) == MPL_EINPUT)
        memset(forward, 1, g->n_ops);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint64_t work = g->op_block[op] == 0 ? mpl_unit_work(g, op) : 0;

        facts->all_work = mpl_add_work(facts->all_work, work);
        facts->forward_work = mpl_add_work(facts->forward_work, forward[op] ? work : 0);
        for (uint32_t k = 1; k < self->n_runs[op]; k++)
            facts->extra_work = mpl_add_work(facts->extra_work, work);
        if (g->op_block[op] == 0 && (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
            facts->n_again += self->n_runs[op] - 1;
    }
out:
    mpl_free(self->ctx, forward);
    return st;
}

static mpl_status replay_run(replay *self, uint32_t n, const mpl_op *run, mpl_graph **out,
                             mpl_rerun_facts *facts)
{
    mpl_status st = MPL_OK;

    if (self->g->program)
        MPL_FAIL(self->ctx, MPL_EINPUT, "graph '%s' is a program: nothing of it can run again",
                 self->g->name);
    MPL_TRY(allocate(self));
    MPL_TRY(mpl_graph_new(self->ctx, self->g->name, &self->to));
    MPL_TRY(build(self, n, run));
    if (facts != NULL)
        MPL_TRY(count_work(self, facts));
    *out = self->to, self->to = NULL;
out:
    mpl_graph_free(self->ctx, self->to);
    mpl_unit_reads_fini(self->ctx, &self->reads);
    mpl_free_each(self->ctx, self->now, self->first, self->shows, self->block, self->n_runs,
                  self->updated, self->waits, self->wait);
    return st;
}

mpl_status mpl_rerun(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_op *run,
                     mpl_graph **out, mpl_rerun_facts *facts)
{
    return replay_run(&(replay){.ctx = ctx, .g = g}, n, run, out, facts);
}

/* ---- useless repeats ---- */

/* Scans from the end. needed[v]: the current copy of v is read later. Removes a repeat that makes
 * no needed value. Its removal changes no other read: a read in between would have made it
 * needed. */
mpl_status mpl_rerun_trim(mpl_ctx *ctx, const mpl_graph *g, uint32_t *n, mpl_op *run)
{
    mpl_status st = MPL_OK;
    uint8_t *needed = NULL, *vain = NULL, *seen = NULL;
    mpl_unit_reads reads = {NULL, NULL};
    uint32_t left = 0;

    MPL_TRY(mpl_unit_reads_new(ctx, g, &reads));
    MPL_TRY(mpl_new(ctx, needed, g->n_values));
    MPL_TRY(mpl_new(ctx, vain, *n));
    MPL_TRY(mpl_new(ctx, seen, g->n_ops));
    for (uint32_t i = 0; i < *n; i++) { /* at first: marks repeats */
        vain[i] = seen[run[i]];
        seen[run[i]] = 1;
    }
    for (uint32_t i = *n; i-- > 0;) {
        mpl_op op = run[i];
        bool repeat = vain[i], some = repeat && mpl_n_repeat_reads(g, op) < mpl_op_n_in(g, op);
        uint32_t end = some ? reads.begin[op] + mpl_n_repeat_reads(g, op) : reads.begin[op + 1];

        for (uint32_t k = 0; k < mpl_op_n_out(g, op); k++) {
            mpl_value v = mpl_op_output(g, op, k);

            if (v == MPL_NONE || (repeat && !mpl_repeat_makes(g, op, k)))
                continue;
            vain[i] = vain[i] && !needed[v];
            needed[v] = 0;
        }
        for (uint32_t k = reads.begin[op]; k < end && !vain[i]; k++)
            needed[reads.value[k]] = 1;
    }
    for (uint32_t i = 0; i < *n; i++)
        if (!vain[i])
            run[left++] = run[i];
    *n = left;
out:
    mpl_unit_reads_fini(ctx, &reads);
    mpl_free_each(ctx, needed, vain, seen);
    return st;
}

/* ---- questions ---- */

mpl_status mpl_find_forward(mpl_ctx *ctx, const mpl_graph *g, uint8_t *is_forward)
{
    bool loss = false, more = false;

    memset(is_forward, 0, g->n_ops);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_softmax_cross_entropy)
            is_forward[mpl_op_outermost(g, op)] = 1, loss = true;
    for (mpl_op op = g->n_ops; op-- > 0;) {
        is_forward[op] |= is_forward[mpl_op_outermost(g, op)];
        if (is_forward[op])
            mpl_mark_makers(g, op, is_forward);
        more = more || !is_forward[op];
    }
    if (!loss || !more)
        return MPL_REFUSE(ctx, "graph '%s' has no %s: recomputation is for training (mode=train)",
                          g->name, loss ? "backward part" : "loss");
    return MPL_OK;
}

/* program and live may be NULL. */
static mpl_status given(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                        uint64_t *peak, mpl_program **program, uint64_t **live)
{
    mpl_status st = MPL_OK;
    mpl_problem_options serial = *options;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_op *order = NULL;

    serial.parallel = false;
    serial.plan_workspaces = false;
    serial.op_workspace_bytes = NULL;
    MPL_TRY(mpl_new(ctx, order, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        order[op] = op;
    MPL_TRY(mpl_problem_from_graph(ctx, g, order, &serial, &p, &map));
    if (live != NULL)
        MPL_TRY(mpl_new(ctx, *live, p->n_steps));
    MPL_TRY(mpl_peak_live(ctx, p, 0, peak, live != NULL ? *live : NULL, NULL));
    if (program != NULL)
        MPL_TRY(mpl_program_new(ctx, g, order, program));
out:
    mpl_free(ctx, order);
    mpl_problem_free(ctx, p);
    mpl_value_map_free(ctx, map);
    return st;
}

mpl_status mpl_given_peak(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          uint64_t *peak)
{
    return given(ctx, g, options, peak, NULL, NULL);
}

mpl_status mpl_given_live(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          mpl_program **program, uint64_t **live)
{
    uint64_t peak;

    return given(ctx, g, options, &peak, program, live);
}

mpl_status mpl_rerun_peak(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_op *run,
                          const mpl_problem_options *options, uint64_t *peak,
                          mpl_rerun_facts *facts)
{
    mpl_status st = MPL_OK;
    mpl_graph *made = NULL;

    MPL_TRY(replay_run(&(replay){.ctx = ctx, .g = g, .bare = true}, n, run, &made, facts));
    MPL_TRY(mpl_given_peak(ctx, made, options, peak));
out:
    mpl_graph_free(ctx, made);
    return st;
}
