/* recompute_round.c -- rounds the relaxation over groups of operations, or takes segments if they
 * do less work. Groups of a large graph: segments of the forward part; after it, the operations
 * between the first reads of one segment and of an earlier one. The relaxation gets ever smaller
 * budgets until a rounding fits.
 *
 * Source   P. Jain and others, "Checkmate", 2020, section 5, for rounding; the rest: this
 *          project. */
#include "planners/recompute/recompute_priv.h"

enum {
    FEW_GROUPS = 40, /* operations of a graph that is rounded ungrouped */
    SEGMENTS = 16,   /* of the forward part of a larger graph */
    SHRINKS = 5,     /* budgets tried for the relaxation, each a part smaller */
};

/* ---- groups ---- */

/* Bytes of an operation's results. */
static uint64_t made(const mpl_graph *g, mpl_op op)
{
    uint64_t bytes = 0;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        bytes += g->op_out[i] != MPL_NONE ? g->value_bytes[g->op_out[i]] : 0;
    return bytes;
}

/* crossing[i]: bytes made by forward operations up to i and read by later ones. */
static mpl_status find_crossing(mpl_ctx *ctx, const mpl_graph *g, const mpl_unit_reads *reads,
                                const uint8_t *forward, uint64_t *crossing)
{
    mpl_status st = MPL_OK;
    mpl_op *last = NULL;

    MPL_TRY(mpl_new(ctx, last, g->n_values));
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = reads->begin[op]; forward[op] && i < reads->begin[op + 1]; i++)
            last[reads->value[i]] = op;
    for (mpl_value v = 0; v < g->n_values; v++)
        for (mpl_op op = g->value_op[v]; op != MPL_NONE && op < last[v]; op++)
            crossing[op] += g->value_bytes[v];
out:
    mpl_free(ctx, last);
    return st;
}

/* Ends a segment where the fewest bytes cross, between half and one and a half times its share of
 * all bytes. segment[n_ops]: of a forward operation. */
static mpl_status cut_forward(mpl_ctx *ctx, const mpl_graph *g, const mpl_unit_reads *reads,
                              const uint8_t *forward, uint32_t *segment)
{
    mpl_status st = MPL_OK;
    uint64_t *crossing = NULL, all = 0, now = 0, behind = 0;
    mpl_op best = MPL_NONE, begin = 0;
    uint32_t at = 0;

    MPL_TRY(mpl_new(ctx, crossing, g->n_ops));
    MPL_TRY(find_crossing(ctx, g, reads, forward, crossing));
    for (mpl_op op = 0; op < g->n_ops; op++)
        all += forward[op] && g->op_block[op] == 0 ? made(g, op) : 0;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (!forward[op] || g->op_block[op] != 0)
            continue;
        now += made(g, op), behind += made(g, op);
        segment[op] = at;
        if (now >= all / SEGMENTS / 2 && (best == MPL_NONE || crossing[op] < crossing[best]))
            best = op, behind = 0;
        if (now < all / SEGMENTS + all / SEGMENTS / 2)
            continue;
        for (begin = best + 1, at++; begin <= op; begin++)
            segment[begin] = at;
        now = behind;
        best = MPL_NONE;
    }
out:
    mpl_free(ctx, crossing);
    return st;
}

/* Groups of a training graph: see the head of this file. */
static mpl_status find_groups(mpl_ctx *ctx, const mpl_graph *g, const uint8_t *forward,
                              uint8_t *begins)
{
    mpl_status st = MPL_OK;
    mpl_unit_reads reads = {NULL, NULL};
    uint32_t *segment = NULL, now = MPL_NONE;
    bool was_forward = true;

    MPL_TRY(mpl_new(ctx, segment, g->n_ops));
    MPL_TRY(mpl_unit_reads_new(ctx, g, &reads));
    MPL_TRY(cut_forward(ctx, g, &reads, forward, segment));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t from = now;

        if (g->op_block[op] != 0)
            continue;
        for (uint32_t i = reads.begin[op]; !forward[op] && i < reads.begin[op + 1]; i++) {
            mpl_op maker = g->value_op[reads.value[i]];

            if (maker != MPL_NONE && forward[maker] && segment[maker] < from)
                from = segment[maker];
        }
        from = forward[op] ? segment[op] : from;
        begins[op] = op == 0 || forward[op] != was_forward || from != now;
        now = from;
        was_forward = forward[op];
    }
out:
    mpl_unit_reads_fini(ctx, &reads);
    mpl_free(ctx, segment);
    return st;
}

/* ---- candidates ---- */

typedef struct candidate {
    uint32_t n;
    mpl_op *run;   /* NULL: none */
    uint64_t work; /* of repeats */
} candidate;

/* From the relaxation; only forward operations repeat. c->run NULL: none found. */
static mpl_status by_groups(mpl_recompute_task *task, candidate *c)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = task->ctx;
    const mpl_graph *g = task->g;
    mpl_stage_model m = {0};
    mpl_rounding r = {
        .model = &m, .without = task->without, .budget = task->budget, .work = UINT64_MAX};
    uint8_t *begins = NULL, *forward = NULL;
    bool goes_on = true;

    MPL_TRY(mpl_new_each(ctx, g->n_ops, begins, forward));
    MPL_TRY(mpl_find_forward(ctx, g, forward));
    if (g->n_ops <= FEW_GROUPS)
        memset(begins, 1, g->n_ops);
    else
        MPL_TRY(find_groups(ctx, g, forward, begins));
    MPL_TRY(mpl_stage_model_new(ctx, g, task->options, begins, forward, &m));
    task->found.n_groups = m.n;
    MPL_TRY(mpl_stages_new(&m, &r.now));
    MPL_TRY(mpl_stages_new(&m, &r.best));
    for (int i = 0; i < SHRINKS && goes_on && (i == 0 || r.work == UINT64_MAX); i++)
        MPL_TRY(mpl_stages_round(&r, task->budget - (uint64_t)((double)task->budget * 0.05 * i),
                                 &goes_on));
    task->found.ticks += r.ticks;
    if (r.work != UINT64_MAX)
        MPL_TRY(mpl_stages_run(&m, &r.best, &c->n, &c->run));
out:
    mpl_stages_fini(&m, &r.now);
    mpl_stages_fini(&m, &r.best);
    mpl_stage_model_fini(&m);
    mpl_free_each(ctx, begins, forward);
    return st;
}

static mpl_status by_segments(const mpl_recompute_task *task, candidate *c)
{
    mpl_recompute_task segments = *task;
    mpl_status st = mpl_recompute_sqrt(&segments);

    c->n = segments.n;
    c->run = segments.run;
    return st == MPL_ELIMIT ? MPL_OK : st;
}

/* Removes repeats; drops a run beyond the budget or with a repeat after an update of its weight. */
static mpl_status improve(const mpl_recompute_task *task, candidate *c)
{
    mpl_status st = MPL_OK;
    mpl_rerun_facts facts = {0};
    uint64_t peak = UINT64_MAX;

    if (c->run == NULL)
        return MPL_OK;
    if (mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_thin))
        st = mpl_rerun_thin(task->ctx, task->g, task->options, task->budget, &c->n, c->run);
    if (st == MPL_OK)
        st = mpl_rerun_peak(task->ctx, task->g, c->n, c->run, task->options, &peak, &facts);
    MPL_TRY(st == MPL_EINPUT ? MPL_OK : st);
    c->work = facts.extra_work;
    if (peak > task->budget) {
        mpl_free(task->ctx, c->run);
        c->run = NULL;
    }
out:
    return st;
}

mpl_status mpl_recompute_round(mpl_recompute_task *task)
{
    mpl_status st = MPL_OK;
    mpl_recompute_found *found = &task->found;
    candidate rounded = {0}, cut = {0}, *best;
    bool fits;

    MPL_TRY(mpl_recompute_bound(task, &fits));
    if (!fits)
        MPL_TRY(mpl_recompute_refuse(task, task->budget, true));
    if (mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_groups))
        MPL_TRY(by_groups(task, &rounded));
    MPL_TRY(improve(task, &rounded));
    if (mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_segments))
        MPL_TRY(by_segments(task, &cut));
    MPL_TRY(improve(task, &cut));
    best = cut.run == NULL || (rounded.run != NULL && rounded.work < cut.work) ? &rounded : &cut;
    if (best->run == NULL)
        MPL_TRY(mpl_recompute_refuse(task, task->budget, false));
    if (found->has_bound && best->work <= found->bound_work)
        found->claim = MPL_RECOMPUTE_OPTIMAL;
    task->n = best->n;
    task->run = best->run, best->run = NULL;
out:
    mpl_free_each(task->ctx, rounded.run, cut.run);
    return st;
}
