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
    uint32_t *n_runs;       /* [n_ops] copies so far */
    uint8_t *updated;       /* [n_values] of weights */
    bool waiting;           /* there are repeats: updates wait for every reader */
    uint32_t *waits; /* [n_values] of a weight: its last reader so far, into wait[]; or MPL_NONE */
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
    const mpl_op_info *info = &mpl_op_table[g->op_kind[op]];

    if (g->op_kind[op] == MPL_OP_batch_norm_train)
        return norm_repeats(g, op);
    return (info->traits & (MPL_CONTROL | MPL_PROGRAM | MPL_MUTATES)) == 0 &&
           mpl_n_updates((mpl_op_kind)g->op_kind[op]) == 0;
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

const char *mpl_repeat_name(const mpl_graph *g, const mpl_graph *to, const char *base,
                            const char *suffix, uint32_t *number, char *text)
{
    uint32_t from = 1, *k = number != NULL ? number : &from;

    do {
        if (*k <= 1)
            snprintf(text, MPL_REPEAT_NAME, "%.200s%.16s", base, suffix);
        else
            snprintf(text, MPL_REPEAT_NAME, "%.200s%.16s%u", base, suffix, *k);
        ++*k;
    } while (mpl_graph_find(to, text) != MPL_NONE || mpl_graph_find(g, text) != MPL_NONE ||
             mpl_graph_find_block(to, text) != MPL_NONE ||
             mpl_graph_find_block(g, text) != MPL_NONE);
    return text;
}

static bool updates(const mpl_graph *g, mpl_op op, mpl_value weight)
{
    for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++)
        if (mpl_updated(g, op, i) == weight)
            return true;
    return false;
}

/* The update of a weight waits for every copy that reads it. */
static mpl_status note_readers(replay *r, mpl_op op, uint32_t k, mpl_value made)
{
    uint32_t n = k > 0 ? mpl_n_repeat_reads(r->g, op) : mpl_n_read(r->g, op);

    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = mpl_op_input(r->g, op, i), weight = v != MPL_NONE ? r->shows[v] : MPL_NONE;

        if (weight == MPL_NONE || (k == 0 && updates(r->g, op, weight)))
            continue;
        if (r->updated[weight])
            return MPL_REFUSE(r->ctx,
                              "operation '%.100s' cannot run again: '%.100s' is updated before",
                              r->g->op_name[op], r->g->value_name[weight]);
        MPL_PASS(mpl_reserve(r->ctx, r->wait, r->wait_cap, (size_t)r->n_waits + 1));
        r->wait[r->n_waits] = (wait){made, r->waits[weight]};
        r->waits[weight] = r->n_waits++;
    }
    return MPL_OK;
}

/* The inputs in[] of the k-th copy: of the first or of a repeat. */
static mpl_status gather_in(replay *r, mpl_op op, uint32_t k, mpl_value *in, uint32_t *n_in)
{
    const mpl_graph *g = r->g;
    uint32_t n = k == 0 ? mpl_op_n_in(g, op) : mpl_n_repeat_reads(g, op);

    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = mpl_op_input(g, op, i);

        in[i] = v == MPL_NONE ? MPL_NONE : i < mpl_n_read(g, op) ? r->now[v] : r->first[v];
        if (v != MPL_NONE && in[i] == MPL_NONE)
            return MPL_REFUSE(r->ctx, "operation '%.100s' would run before '%.100s' is there",
                              g->op_name[op], g->value_name[v]);
    }
    if (k > 0 && g->op_kind[op] == MPL_OP_dropout_train)
        in[n++] = r->first[mpl_op_output(g, op, 1)];
    *n_in = n;
    return MPL_OK;
}

static uint32_t count_waits(const replay *r, mpl_op op)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < mpl_op_n_out(r->g, op); i++) {
        mpl_value weight = mpl_updated(r->g, op, i);

        for (uint32_t w = weight != MPL_NONE ? r->waits[weight] : MPL_NONE; w != MPL_NONE;
             w = r->wait[w].next)
            n++;
    }
    return n;
}

/* Batch norm cannot wait for repeats; no other operation reads its statistics. */
static mpl_status add_waits(replay *r, mpl_op op, mpl_value *in, uint32_t *n_in)
{
    uint32_t n_read = *n_in;

    for (uint32_t i = 0; i < mpl_op_n_out(r->g, op); i++) {
        mpl_value weight = mpl_updated(r->g, op, i);

        for (uint32_t w = weight != MPL_NONE ? r->waits[weight] : MPL_NONE; w != MPL_NONE;
             w = r->wait[w].next)
            in[(*n_in)++] = r->wait[w].value;
        if (weight != MPL_NONE)
            r->updated[weight] = 1;
    }
    if (*n_in > n_read && mpl_op_table[r->g->op_kind[op]].max_in < 255)
        return MPL_REFUSE(r->ctx, "operation '%.100s' cannot wait for what runs again",
                          r->g->op_name[op]);
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
static uint32_t name_outputs(const replay *r, mpl_op op, uint32_t k, const char **name,
                             char (*text)[MPL_REPEAT_NAME])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < mpl_op_n_out(r->g, op); i++) {
        mpl_value v = mpl_op_output(r->g, op, i);

        if (k > 0 && !mpl_repeat_makes(r->g, op, i))
            continue;
        name[n++] = v == MPL_NONE ? NULL
                    : k == 0      ? r->g->value_name[v]
                                  : mpl_repeat_name(r->g, r->to, r->g->value_name[v], ".again",
                                                    &(uint32_t){k}, text[i]);
    }
    return n;
}

static void note_outputs(replay *r, mpl_op op, uint32_t k, const mpl_value *out)
{
    for (uint32_t i = 0, at = 0; i < mpl_op_n_out(r->g, op); i++) {
        mpl_value v = mpl_op_output(r->g, op, i);

        if (k > 0 && !mpl_repeat_makes(r->g, op, i))
            continue;
        if (v != MPL_NONE) {
            r->now[v] = out[at];
            r->first[v] = k == 0 ? out[at] : r->first[v];
        }
        at++;
    }
}

static mpl_status add_copy(replay *r, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = r->g;
    uint32_t k = r->n_runs[op]++, n_out = mpl_op_n_out(g, op), n_in = 0, n_names, n_attr, any = 0;
    mpl_value *in = NULL, *out = NULL;
    const char **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL;
    mpl_attr *attr = NULL;

    if (k > 0 && !mpl_may_repeat(g, op))
        MPL_FAIL(r->ctx, MPL_EINPUT, "operation '%.100s' (%s) must not run again", g->op_name[op],
                 mpl_op_table[g->op_kind[op]].name);
    MPL_TRY(mpl_new(r->ctx, in, (size_t)mpl_op_n_in(g, op) + 1 + count_waits(r, op)));
    MPL_TRY(mpl_new_each(r->ctx, n_out, out, name));
    MPL_TRY(mpl_new(r->ctx, text, k > 0 ? n_out : 0));
    MPL_TRY(mpl_copy_attrs(r->ctx, g, op, &n_attr, &attr));
    MPL_TRY(gather_in(r, op, k, in, &n_in));
    MPL_TRY(add_waits(r, op, in, &n_in));
    n_names = name_outputs(r, op, k, name, text);
    MPL_TRY(mpl_graph_add_op(r->ctx, r->to, kind_of(g, op, k), g->op_name[op], n_in, in, n_attr,
                             attr, n_names, name, out));
    while (any + 1 < n_names && out[any] == MPL_NONE)
        any++;
    if (r->waiting && any < n_names)
        MPL_TRY(note_readers(r, op, k, out[any]));
    note_outputs(r, op, k, out);
out:
    mpl_free_each(r->ctx, in, out, name, text, attr);
    return st;
}

/* ---- the graph ---- */

mpl_status mpl_repeat_source(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, bool bare,
                             mpl_graph *to, mpl_value *made)
{
    bool bound = g->value_role[v] == MPL_WEIGHT && mpl_is_bound(g, v);
    mpl_type type = (mpl_type)g->value_type[v];
    const mpl_shape *shape = &g->value_shape[v];

    if (g->value_data[v] != NULL && !bound && !bare)
        MPL_PASS(mpl_graph_add_const(ctx, to, g->value_name[v], type, shape, g->value_data[v],
                                     g->value_splat[v], made));
    else
        MPL_PASS(mpl_graph_add_value(ctx, to, g->value_name[v],
                                     bound ? MPL_INPUT : (mpl_role)g->value_role[v], type, shape,
                                     made));
    return bound ? mpl_graph_bind_input(ctx, to, *made, g->value_data[v]) : MPL_OK;
}

static mpl_status copy_value(replay *r, mpl_value v)
{
    MPL_PASS(mpl_repeat_source(r->ctx, r->g, v, r->bare, r->to, &r->now[v]));
    r->first[v] = r->now[v];
    r->shows[v] = r->g->value_role[v] == MPL_WEIGHT ? v : MPL_NONE;
    return MPL_OK;
}

static mpl_status allocate(replay *r)
{
    const mpl_graph *g = r->g;

    MPL_PASS(mpl_new_each(r->ctx, g->n_values, r->now, r->first, r->shows));
    MPL_PASS(mpl_new(r->ctx, r->n_runs, g->n_ops));
    MPL_PASS(mpl_new_each(r->ctx, g->n_values, r->updated, r->waits));
    memset(r->now, 0xff, g->n_values * sizeof *r->now);
    memset(r->first, 0xff, g->n_values * sizeof *r->first);
    memset(r->shows, 0xff, g->n_values * sizeof *r->shows);
    memset(r->waits, 0xff, g->n_values * sizeof *r->waits);
    return MPL_OK;
}

static mpl_status build(replay *r, uint32_t n, const mpl_op *run)
{
    const mpl_graph *g = r->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] == MPL_NONE)
            MPL_PASS(copy_value(r, v));
    for (mpl_op op = 0; op < g->n_ops; op++) /* views come after what they show */
        for (uint32_t i = 0; mpl_may_be_view(g, op) && i < mpl_op_n_out(g, op); i++)
            if (mpl_op_output(g, op, i) != MPL_NONE)
                r->shows[mpl_op_output(g, op, i)] = r->shows[mpl_op_input(g, op, 0)];
    r->waiting = n > g->n_ops;
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(add_copy(r, run[i]));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (r->n_runs[op] == 0)
            return MPL_REFUSE(r->ctx, "operation '%.100s' never runs", g->op_name[op]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_PASS(mpl_graph_add_output(r->ctx, r->to, r->first[g->output[i]]));
    MPL_PASS(mpl_graph_finish(r->ctx, r->to));
    return mpl_graph_check_updates(r->ctx, r->to);
}

/* Counts the operations that a loss needs; all operations if there is no loss. */
static mpl_status count_work(const replay *r, mpl_rerun_facts *facts)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = r->g;
    uint8_t *forward = NULL;

    *facts = (mpl_rerun_facts){0};
    MPL_TRY(mpl_new(r->ctx, forward, g->n_ops));
    if (mpl_find_forward(r->ctx, g, forward) == MPL_EINPUT)
        memset(forward, 1, g->n_ops);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint64_t work = mpl_op_work(g, op);

        facts->all_work = mpl_add_work(facts->all_work, work);
        facts->forward_work = mpl_add_work(facts->forward_work, forward[op] ? work : 0);
        for (uint32_t k = 1; k < r->n_runs[op]; k++)
            facts->extra_work = mpl_add_work(facts->extra_work, work);
        if ((mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
            facts->n_again += r->n_runs[op] - 1;
    }
out:
    mpl_free(r->ctx, forward);
    return st;
}

static mpl_status replay_run(replay *r, uint32_t n, const mpl_op *run, mpl_graph **out,
                             mpl_rerun_facts *facts)
{
    mpl_status st = MPL_OK;

    if (r->g->n_blocks > 1 || r->g->program)
        MPL_FAIL(r->ctx, MPL_EINPUT, "graph '%s' %s: nothing of it can run again", r->g->name,
                 r->g->program ? "is a program" : "has control flow");
    MPL_TRY(allocate(r));
    MPL_TRY(mpl_graph_new(r->ctx, r->g->name, &r->to));
    MPL_TRY(build(r, n, run));
    if (facts != NULL)
        MPL_TRY(count_work(r, facts));
    *out = r->to, r->to = NULL;
out:
    mpl_graph_free(r->ctx, r->to);
    mpl_free_each(r->ctx, r->now, r->first, r->shows, r->n_runs, r->updated, r->waits, r->wait);
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
    uint32_t left = 0;

    MPL_TRY(mpl_new(ctx, needed, g->n_values));
    MPL_TRY(mpl_new(ctx, vain, *n));
    MPL_TRY(mpl_new(ctx, seen, g->n_ops));
    for (uint32_t i = 0; i < *n; i++) { /* at first: marks repeats */
        vain[i] = seen[run[i]];
        seen[run[i]] = 1;
    }
    for (uint32_t i = *n; i-- > 0;) {
        mpl_op op = run[i];
        bool repeat = vain[i];
        uint32_t n_read = repeat ? mpl_n_repeat_reads(g, op) : mpl_n_read(g, op);

        for (uint32_t k = 0; k < mpl_op_n_out(g, op); k++) {
            mpl_value v = mpl_op_output(g, op, k);

            if (v == MPL_NONE || (repeat && !mpl_repeat_makes(g, op, k)))
                continue;
            vain[i] = vain[i] && !needed[v];
            needed[v] = 0;
        }
        for (uint32_t k = 0; k < n_read && !vain[i]; k++)
            if (mpl_op_input(g, op, k) != MPL_NONE)
                needed[mpl_op_input(g, op, k)] = 1;
    }
    for (uint32_t i = 0; i < *n; i++)
        if (!vain[i])
            run[left++] = run[i];
    *n = left;
out:
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

mpl_status mpl_given_peak(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                          uint64_t *peak)
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
    MPL_TRY(mpl_peak_live(ctx, p, 0, peak, NULL, NULL));
out:
    mpl_free(ctx, order);
    mpl_problem_free(ctx, p);
    mpl_value_map_free(ctx, map);
    return st;
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
