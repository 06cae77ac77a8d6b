/* store_live.c -- liveness of a program with loops and branches. See storage.h.
 *
 * Data flow goes over the steps, and over extra nodes between two steps: entry to a loop (ENTER,
 * then FIRST for the first round or SKIP for none), an exit test (EXIT), the choice of a case
 * (DISPATCH), or no branch (BYPASS). */
#include "graphs/problem/liveness.h"
#include "graphs/problem/control/storage_priv.h"

/* Pairs (node, variable) or (node, node), later turned into lists of lists. */
typedef struct pairs {
    uint32_t *node, *item;
    size_t n, node_cap, item_cap;
} pairs;

/* SUCC, USE, DEF: successors, reads and writes of each node. SKIP: of each loop, its node SKIP and
 * its body. LATE: of each bypass value, the step at which its case takes it over. */
enum { SUCC, USE, DEF, SKIP, LATE, N_LISTS };

typedef struct builder {
    mpl_store *s;
    pairs list[N_LISTS];
    uint32_t n_nodes;
} builder;

static mpl_status add(builder *b, int which, uint32_t node, uint32_t item)
{
    pairs *list = &b->list[which];

    MPL_PASS(mpl_reserve(b->s->ctx, list->node, list->node_cap, list->n + 1));
    MPL_PASS(mpl_reserve(b->s->ctx, list->item, list->item_cap, list->n + 1));
    list->node[list->n] = node;
    list->item[list->n++] = item;
    return MPL_OK;
}

/* Skips pinned values, which need no liveness. */
static mpl_status add_use(builder *b, uint32_t node, mpl_value v)
{
    if (v == MPL_NONE || b->s->how[b->s->hold[v]] == MPL_HOW_PINNED)
        return MPL_OK;
    return add(b, USE, node, b->s->hold[v]);
}

static mpl_status add_def(builder *b, uint32_t node, mpl_value v)
{
    if (v == MPL_NONE || b->s->hold[v] != v || b->s->how[v] == MPL_HOW_PINNED)
        return MPL_OK;
    return add(b, DEF, node, v);
}

/* Whether v comes from outside. Such a value is put into its place before its first possible
 * read. */
static bool is_given(const builder *b, mpl_value v)
{
    uint8_t role = v != MPL_NONE ? b->s->g->value_role[b->s->spec->root[v]] : MPL_TEMPORARY;

    return role == MPL_INPUT || role == MPL_WEIGHT;
}

static bool is_body(const mpl_graph *g, uint32_t b)
{
    return g->op_kind[g->block_owner[b]] == MPL_OP_while;
}

/* ---- nodes between steps ---- */

static mpl_status add_loop_entry(builder *b, mpl_op op, uint32_t enter)
{
    const mpl_graph *g = b->s->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t body = mpl_op_first_body(g, op), first = enter + 1, skip = enter + 2;
    uint32_t n_carried = mpl_n_carried(g, op);

    MPL_PASS(add(b, SUCC, enter, first));
    MPL_PASS(add(b, SUCC, enter, skip));
    MPL_PASS(add(b, SUCC, first, b->s->program->begin_step[body]));
    MPL_PASS(add(b, SUCC, skip, b->s->program->op_step[op]));
    MPL_PASS(add(b, SKIP, skip, body));
    MPL_PASS(add_use(b, enter, in[0]));
    MPL_PASS(add_use(b, enter, in[1]));
    for (uint32_t i = 0; i < n_carried; i++) {
        mpl_value out = mpl_op_output(g, op, i);

        if (b->s->wanted[mpl_param(g, body, 1 + i)] || is_given(b, in[2 + i]))
            MPL_PASS(add_use(b, first, in[2 + i]));
        if (out != MPL_NONE && b->s->out_live[out])
            MPL_PASS(add_use(b, skip, in[2 + i]));
    }
    for (uint32_t i = g->op_out_begin[op] + n_carried; i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(add_def(b, enter, g->op_out[i])); /* rows are written into it each round */
    return MPL_OK;
}

static mpl_status add_dispatch(builder *b, mpl_op op, uint32_t dispatch)
{
    const mpl_graph *g = b->s->g;
    uint32_t bypass = dispatch + 1;

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        MPL_PASS(add(b, SUCC, dispatch, b->s->program->begin_step[g->op_body[k]]));
    MPL_PASS(add(b, SUCC, dispatch, bypass)); /* needs of later steps hold in branches, too */
    MPL_PASS(add_use(b, dispatch, mpl_op_input(g, op, 0)));
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        MPL_PASS(add_use(b, bypass, g->op_in[i]));
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE && b->s->how[b->s->hold[g->op_in[i]]] != MPL_HOW_PINNED)
            MPL_PASS(add(b, LATE, b->s->program->op_step[op], b->s->hold[g->op_in[i]]));
    return MPL_OK;
}

/* Adds the path from `node` to step `next`, with the nodes between. node MPL_NONE: program
 * start. */
static mpl_status add_next(builder *b, uint32_t node, uint32_t next)
{
    const mpl_program *p = b->s->program;
    uint32_t to = next;

    if (next < p->n_steps && p->kind[next] == MPL_STEP_BEGIN) {
        mpl_op op = b->s->g->block_owner[p->of[next]];

        to = b->n_nodes;
        b->n_nodes += is_body(b->s->g, p->of[next]) ? 3 : 2;
        MPL_PASS(is_body(b->s->g, p->of[next]) ? add_loop_entry(b, op, to)
                                               : add_dispatch(b, op, to));
    }
    if (node != MPL_NONE)
        MPL_PASS(add(b, SUCC, node, to));
    return MPL_OK;
}

/* ---- steps ---- */

static mpl_status add_begin(builder *b, uint32_t step, uint32_t block)
{
    const mpl_graph *g = b->s->g;

    MPL_PASS(add_next(b, step, step + 1));
    for (uint32_t i = 0; i < g->block_n_params[block]; i++)
        if (b->s->wanted[mpl_param(g, block, i)])
            MPL_PASS(add_def(b, step, mpl_param(g, block, i)));
    return MPL_OK;
}

bool mpl_result_read(const mpl_store *s, uint32_t block, uint32_t i)
{
    const mpl_graph *g = s->g;
    mpl_op op = g->block_owner[block];
    bool body = is_body(g, block);
    mpl_value out = body && i == 0 ? MPL_NONE : g->op_out[g->op_out_begin[op] + i - body];

    if (body && i == 0)
        return true;
    if (body && i <= mpl_n_carried(g, op))
        return s->wanted[mpl_param(g, block, i)] || (out != MPL_NONE && s->out_live[out]);
    return out != MPL_NONE && (body || s->out_live[out]);
}

static mpl_status add_end(builder *b, uint32_t step, uint32_t block)
{
    const mpl_graph *g = b->s->g;
    mpl_op op = g->block_owner[block];

    MPL_PASS(add(b, SUCC, step, b->s->program->op_step[op]));
    for (uint32_t i = 0; i < g->block_n_results[block]; i++)
        if (mpl_result_read(b->s, block, i) || is_given(b, mpl_result(g, block, i)))
            MPL_PASS(add_use(b, step, mpl_result(g, block, i)));
    if (!is_body(g, block))
        return MPL_OK;
    MPL_PASS(add(b, SUCC, step, b->s->program->begin_step[block]));
    for (uint32_t i = g->op_out_begin[op] + mpl_n_carried(g, op); i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(add_use(b, step, g->op_out[i])); /* rows written so far must stay */
    for (uint32_t i = g->op_in_begin[op] + 2 + mpl_n_carried(g, op); i < g->op_in_begin[op + 1];
         i++)
        MPL_PASS(add_use(b, step, g->op_in[i])); /* a further slice may be read */
    return MPL_OK;
}

static mpl_status add_exit(builder *b, uint32_t step, mpl_op test)
{
    const mpl_graph *g = b->s->g;
    uint32_t body = g->op_block[test], exit = b->n_nodes++;
    mpl_op op = g->block_owner[body];

    MPL_PASS(add(b, SUCC, step, exit));
    MPL_PASS(add(b, SUCC, exit, b->s->program->op_step[op]));
    for (uint32_t i = 0; i < mpl_n_carried(g, op); i++) {
        mpl_value out = mpl_op_output(g, op, i);

        if (out != MPL_NONE && b->s->out_live[out])
            MPL_PASS(add_use(b, exit, mpl_param(g, body, 1 + i)));
    }
    return MPL_OK;
}

static mpl_status add_op(builder *b, uint32_t step, mpl_op op)
{
    const mpl_graph *g = b->s->g;
    bool owner = g->op_body_begin[op] < g->op_body_begin[op + 1];

    MPL_PASS(add_next(b, step, step + 1));
    if (g->op_kind[op] == MPL_OP_exit_unless)
        MPL_PASS(add_exit(b, step, op));
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op) && !owner; i++)
        MPL_PASS(add_use(b, step, g->op_in[i]));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        bool stacked =
            g->op_kind[op] == MPL_OP_while && i - g->op_out_begin[op] >= mpl_n_carried(g, op);

        MPL_PASS(stacked ? add_use(b, step, g->op_out[i]) : add_def(b, step, g->op_out[i]));
    }
    return MPL_OK;
}

static mpl_status add_steps(builder *b)
{
    const mpl_program *p = b->s->program;

    b->n_nodes = p->n_steps + 1; /* the last is the end, which reads kept values */
    MPL_PASS(add_next(b, MPL_NONE, 0));
    for (uint32_t step = 0; step < p->n_steps; step++)
        MPL_PASS(p->kind[step] == MPL_STEP_BEGIN ? add_begin(b, step, p->of[step])
                 : p->kind[step] == MPL_STEP_END ? add_end(b, step, p->of[step])
                                                 : add_op(b, step, p->of[step]));
    for (mpl_value v = 0; v < b->s->g->n_values; v++)
        if (b->s->spec->root[v] == v && b->s->spec->kept[v])
            MPL_PASS(add_use(b, p->n_steps, v));
    return MPL_OK;
}

/* ---- values whose contents are read ---- */

/* Marks what operations, tests and block ends read; mark_carried handles carried values. */
static void mark_read(mpl_store *s)
{
    const mpl_graph *g = s->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE)
                s->wanted[s->spec->root[g->op_in[i]]] = 1;
    for (mpl_value v = 0; v < g->n_values; v++)
        s->out_live[v] =
            g->value_use_begin[v] < g->value_use_begin[v + 1] || s->spec->kept[s->spec->root[v]];
}

/* One pass over the results; returns whether it marked anything. */
static bool mark_results(mpl_store *s)
{
    const mpl_graph *g = s->g;
    bool marked = false;

    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++) {
            mpl_value v = mpl_result(g, b, i);

            if (v == MPL_NONE || s->wanted[s->spec->root[v]] || !mpl_result_read(s, b, i))
                continue;
            s->wanted[s->spec->root[v]] = 1;
            marked = true;
        }
    return marked;
}

/* Marks parameters of live outputs of loops that can end within a round. */
static void mark_exits(mpl_store *s)
{
    const mpl_graph *g = s->g;

    for (mpl_op test = 0; test < g->n_ops; test++) {
        uint32_t body = g->op_block[test];

        if (g->op_kind[test] != MPL_OP_exit_unless)
            continue;
        for (uint32_t i = 0; i < mpl_n_carried(g, g->block_owner[body]); i++) {
            mpl_value out = mpl_op_output(g, g->block_owner[body], i);

            if (out != MPL_NONE && s->out_live[out])
                s->wanted[mpl_param(g, body, 1 + i)] = 1;
        }
    }
}

/* ---- rows ---- */

static mpl_status solve(builder *b)
{
    mpl_status st = MPL_OK;
    mpl_store *s = b->s;
    uint32_t *lists[6] = {NULL};
    const pairs *skip = &b->list[SKIP], *late = &b->list[LATE];
    uint64_t *in = NULL, *out = NULL;
    mpl_flow flow = {.n_nodes = b->n_nodes, .n_vars = s->g->n_values};
    uint32_t words = mpl_flow_words(&flow);

    for (int k = SUCC; k <= DEF; k++) /* items of each node, in insertion order */
        MPL_TRY(mpl_lists_new(s->ctx, b->n_nodes, b->list[k].n, b->list[k].node, b->list[k].item,
                              &lists[2 * k], &lists[2 * k + 1]));
    flow.succ_begin = lists[0], flow.succ_item = lists[1];
    flow.use_begin = lists[2], flow.use_item = lists[3];
    flow.def_begin = lists[4], flow.def_item = lists[5];
    MPL_TRY(mpl_new_each(s->ctx, (size_t)b->n_nodes * words, in, out));
    MPL_TRY(mpl_flow_live(s->ctx, &flow, in, out));
    for (uint32_t step = 0; step <= s->program->n_steps; step++) { /* the last: kept values */
        for (uint32_t i = flow.def_begin[step]; i < flow.def_begin[step + 1]; i++)
            mpl_bit_add(mpl_row(s, flow.def_item[i]), step);
        for (mpl_value v = 0; v < s->g->n_values; v++)
            if (mpl_bit_has(in + (size_t)step * words, v))
                mpl_bit_add(mpl_row(s, v), step);
    }
    for (size_t i = 0; i < late->n; i++)
        mpl_bit_add(mpl_row(s, late->item[i]), late->node[i]);
    MPL_TRY(mpl_new(s->ctx, s->skipped, (size_t)s->g->n_blocks * words));
    for (size_t i = 0; i < skip->n; i++)
        memcpy(s->skipped + (size_t)skip->item[i] * words, in + (size_t)skip->node[i] * words,
               words * sizeof *in);
out:
    for (int i = 0; i < 6; i++)
        mpl_free(s->ctx, lists[i]);
    mpl_free_each(s->ctx, in, out);
    return st;
}

void mpl_store_wanted(mpl_store *s)
{
    mark_read(s);
    mark_exits(s);
    while (mark_results(s)) {
    }
}

mpl_status mpl_store_live(mpl_store *s)
{
    mpl_status st = MPL_OK;
    builder b = {.s = s};

    MPL_TRY(add_steps(&b));
    MPL_TRY(solve(&b));
out:
    for (int k = 0; k < N_LISTS; k++) {
        mpl_free_each(s->ctx, b.list[k].node, b.list[k].item);
    }
    return st;
}
