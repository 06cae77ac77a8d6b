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
    mpl_store *store;
    pairs list[N_LISTS];
    uint32_t n_nodes;
} builder;

static mpl_status add(builder *self, int which, uint32_t node, uint32_t item)
{
    pairs *list = &self->list[which];

    MPL_PASS(mpl_reserve(self->store->ctx, list->node, list->node_cap, list->n + 1));
    MPL_PASS(mpl_reserve(self->store->ctx, list->item, list->item_cap, list->n + 1));
    list->node[list->n] = node;
    list->item[list->n++] = item;
    return MPL_OK;
}

/* Skips pinned values, which need no liveness. */
static mpl_status add_use(builder *self, uint32_t node, mpl_value v)
{
    if (v == MPL_NONE || self->store->how[self->store->hold[v]] == MPL_HOW_PINNED)
        return MPL_OK;
    return add(self, USE, node, self->store->hold[v]);
}

static mpl_status add_def(builder *self, uint32_t node, mpl_value v)
{
    if (v == MPL_NONE || self->store->hold[v] != v || self->store->how[v] == MPL_HOW_PINNED)
        return MPL_OK;
    return add(self, DEF, node, v);
}

/* Whether v comes from outside. Such a value is put into its place before its first possible
 * read. */
static bool is_given(const builder *self, mpl_value v)
{
    uint8_t role =
        v != MPL_NONE ? self->store->g->value_role[self->store->spec->root[v]] : MPL_TEMPORARY;

    return role == MPL_INPUT || role == MPL_WEIGHT;
}

static bool is_body(const mpl_graph *g, uint32_t b)
{
    return g->op_kind[g->block_owner[b]] == MPL_OP_while;
}

/* ---- nodes between steps ---- */

static mpl_status add_loop_entry(builder *self, mpl_op op, uint32_t enter)
{
    const mpl_graph *g = self->store->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t body = mpl_op_first_body(g, op), first = enter + 1, skip = enter + 2;
    uint32_t n_carried = mpl_n_carried(g, op);

    MPL_PASS(add(self, SUCC, enter, first));
    MPL_PASS(add(self, SUCC, enter, skip));
    MPL_PASS(add(self, SUCC, first, self->store->program->begin_step[body]));
    MPL_PASS(add(self, SUCC, skip, self->store->program->op_step[op]));
    MPL_PASS(add(self, SKIP, skip, body));
    MPL_PASS(add_use(self, enter, in[0]));
    MPL_PASS(add_use(self, enter, in[1]));
    for (uint32_t i = 0; i < n_carried; i++) {
        mpl_value out = mpl_op_output(g, op, i);

        if (self->store->wanted[mpl_param(g, body, 1 + i)] || is_given(self, in[2 + i]))
            MPL_PASS(add_use(self, first, in[2 + i]));
        if (out != MPL_NONE && self->store->out_live[out])
            MPL_PASS(add_use(self, skip, in[2 + i]));
    }
    for (uint32_t i = g->op_out_begin[op] + n_carried; i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(add_def(self, enter, g->op_out[i])); /* rows are written into it each round */
    return MPL_OK;
}

static mpl_status add_dispatch(builder *self, mpl_op op, uint32_t dispatch)
{
    const mpl_graph *g = self->store->g;
    uint32_t bypass = dispatch + 1;

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        MPL_PASS(add(self, SUCC, dispatch, self->store->program->begin_step[g->op_body[k]]));
    MPL_PASS(add(self, SUCC, dispatch, bypass)); /* needs of later steps hold in branches, too */
    MPL_PASS(add_use(self, dispatch, mpl_op_input(g, op, 0)));
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        MPL_PASS(add_use(self, bypass, g->op_in[i]));
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE &&
            self->store->how[self->store->hold[g->op_in[i]]] != MPL_HOW_PINNED)
            MPL_PASS(
                add(self, LATE, self->store->program->op_step[op], self->store->hold[g->op_in[i]]));
    return MPL_OK;
}

/* Adds the path from `node` to step `next`, with the nodes between. node MPL_NONE: program
 * start. */
static mpl_status add_next(builder *self, uint32_t node, uint32_t next)
{
    const mpl_program *program = self->store->program;
    uint32_t to = next;

    if (next < program->n_steps && program->kind[next] == MPL_STEP_BEGIN) {
        mpl_op op = self->store->g->block_owner[program->of[next]];

        to = self->n_nodes;
        self->n_nodes += is_body(self->store->g, program->of[next]) ? 3 : 2;
        MPL_PASS(is_body(self->store->g, program->of[next]) ? add_loop_entry(self, op, to)
                                                            : add_dispatch(self, op, to));
    }
    if (node != MPL_NONE)
        MPL_PASS(add(self, SUCC, node, to));
    return MPL_OK;
}

/* ---- steps ---- */

static mpl_status add_begin(builder *self, uint32_t step, uint32_t block)
{
    const mpl_graph *g = self->store->g;

    MPL_PASS(add_next(self, step, step + 1));
    for (uint32_t i = 0; i < g->block_n_params[block]; i++)
        if (self->store->wanted[mpl_param(g, block, i)])
            MPL_PASS(add_def(self, step, mpl_param(g, block, i)));
    return MPL_OK;
}

bool mpl_result_read(const mpl_store *store, uint32_t block, uint32_t i)
{
    const mpl_graph *g = store->g;
    mpl_op op = g->block_owner[block];
    bool body = is_body(g, block);
    mpl_value out = body && i == 0 ? MPL_NONE : g->op_out[g->op_out_begin[op] + i - body];

    if (body && i == 0)
        return true;
    if (body && i <= mpl_n_carried(g, op))
        return store->wanted[mpl_param(g, block, i)] || (out != MPL_NONE && store->out_live[out]);
    return out != MPL_NONE && (body || store->out_live[out]);
}

static mpl_status add_end(builder *self, uint32_t step, uint32_t block)
{
    const mpl_graph *g = self->store->g;
    mpl_op op = g->block_owner[block];

    MPL_PASS(add(self, SUCC, step, self->store->program->op_step[op]));
    for (uint32_t i = 0; i < g->block_n_results[block]; i++)
        if (mpl_result_read(self->store, block, i) || is_given(self, mpl_result(g, block, i)))
            MPL_PASS(add_use(self, step, mpl_result(g, block, i)));
    if (!is_body(g, block))
        return MPL_OK;
    MPL_PASS(add(self, SUCC, step, self->store->program->begin_step[block]));
    for (uint32_t i = g->op_out_begin[op] + mpl_n_carried(g, op); i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(add_use(self, step, g->op_out[i])); /* rows written so far must stay */
    for (uint32_t i = g->op_in_begin[op] + 2 + mpl_n_carried(g, op); i < g->op_in_begin[op + 1];
         i++)
        MPL_PASS(add_use(self, step, g->op_in[i])); /* a further slice may be read */
    return MPL_OK;
}

static mpl_status add_exit(builder *self, uint32_t step, mpl_op test)
{
    const mpl_graph *g = self->store->g;
    uint32_t body = g->op_block[test], exit = self->n_nodes++;
    mpl_op op = g->block_owner[body];

    MPL_PASS(add(self, SUCC, step, exit));
    MPL_PASS(add(self, SUCC, exit, self->store->program->op_step[op]));
    for (uint32_t i = 0; i < mpl_n_carried(g, op); i++) {
        mpl_value out = mpl_op_output(g, op, i);

        if (out != MPL_NONE && self->store->out_live[out])
            MPL_PASS(add_use(self, exit, mpl_param(g, body, 1 + i)));
    }
    return MPL_OK;
}

static mpl_status add_op(builder *self, uint32_t step, mpl_op op)
{
    const mpl_graph *g = self->store->g;
    bool owner = g->op_body_begin[op] < g->op_body_begin[op + 1];

    MPL_PASS(add_next(self, step, step + 1));
    if (g->op_kind[op] == MPL_OP_exit_unless)
        MPL_PASS(add_exit(self, step, op));
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op) && !owner; i++)
        MPL_PASS(add_use(self, step, g->op_in[i]));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        bool stacked =
            g->op_kind[op] == MPL_OP_while && i - g->op_out_begin[op] >= mpl_n_carried(g, op);

        MPL_PASS(stacked ? add_use(self, step, g->op_out[i]) : add_def(self, step, g->op_out[i]));
    }
    return MPL_OK;
}

static mpl_status add_steps(builder *self)
{
    const mpl_program *program = self->store->program;

    self->n_nodes = program->n_steps + 1; /* the last is the end, which reads kept values */
    MPL_PASS(add_next(self, MPL_NONE, 0));
    for (uint32_t step = 0; step < program->n_steps; step++)
        MPL_PASS(program->kind[step] == MPL_STEP_BEGIN ? add_begin(self, step, program->of[step])
                 : program->kind[step] == MPL_STEP_END ? add_end(self, step, program->of[step])
                                                       : add_op(self, step, program->of[step]));
    for (mpl_value v = 0; v < self->store->g->n_values; v++)
        if (self->store->spec->root[v] == v && self->store->spec->kept[v])
            MPL_PASS(add_use(self, program->n_steps, v));
    return MPL_OK;
}

/* ---- values whose contents are read ---- */

/* Marks what operations, tests and block ends read; mark_carried handles carried values. */
static void mark_read(mpl_store *store)
{
    const mpl_graph *g = store->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE)
                store->wanted[store->spec->root[g->op_in[i]]] = 1;
    for (mpl_value v = 0; v < g->n_values; v++)
        store->out_live[v] = g->value_use_begin[v] < g->value_use_begin[v + 1] ||
                             store->spec->kept[store->spec->root[v]];
}

/* One pass over the results; returns whether it marked anything. */
static bool mark_results(mpl_store *store)
{
    const mpl_graph *g = store->g;
    bool marked = false;

    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++) {
            mpl_value v = mpl_result(g, b, i);

            if (v == MPL_NONE || store->wanted[store->spec->root[v]] ||
                !mpl_result_read(store, b, i))
                continue;
            store->wanted[store->spec->root[v]] = 1;
            marked = true;
        }
    return marked;
}

/* Marks parameters of live outputs of loops that can end within a round. */
static void mark_exits(mpl_store *store)
{
    const mpl_graph *g = store->g;

    for (mpl_op test = 0; test < g->n_ops; test++) {
        uint32_t body = g->op_block[test];

        if (g->op_kind[test] != MPL_OP_exit_unless)
            continue;
        for (uint32_t i = 0; i < mpl_n_carried(g, g->block_owner[body]); i++) {
            mpl_value out = mpl_op_output(g, g->block_owner[body], i);

            if (out != MPL_NONE && store->out_live[out])
                store->wanted[mpl_param(g, body, 1 + i)] = 1;
        }
    }
}

/* ---- rows ---- */

static mpl_status solve(builder *self)
{
    mpl_status st = MPL_OK;
    mpl_store *store = self->store;
    uint32_t *lists[6] = {NULL};
    const pairs *skip = &self->list[SKIP], *late = &self->list[LATE];
    uint64_t *in = NULL, *out = NULL;
    mpl_flow flow = {.n_nodes = self->n_nodes, .n_vars = store->g->n_values};
    uint32_t words = mpl_flow_words(&flow);

    for (int k = SUCC; k <= DEF; k++) /* items of each node, in insertion order */
        MPL_TRY(mpl_lists_new(store->ctx, self->n_nodes, self->list[k].n, self->list[k].node,
                              self->list[k].item, &lists[2 * k], &lists[2 * k + 1]));
    flow.succ_begin = lists[0], flow.succ_item = lists[1];
    flow.use_begin = lists[2], flow.use_item = lists[3];
    flow.def_begin = lists[4], flow.def_item = lists[5];
    MPL_TRY(mpl_new_each(store->ctx, (size_t)self->n_nodes * words, in, out));
    MPL_TRY(mpl_flow_live(store->ctx, &flow, in, out));
    for (uint32_t step = 0; step <= store->program->n_steps; step++) { /* the last: kept values */
        for (uint32_t i = flow.def_begin[step]; i < flow.def_begin[step + 1]; i++)
            mpl_bit_add(mpl_row(store, flow.def_item[i]), step);
        for (mpl_value v = 0; v < store->g->n_values; v++)
            if (mpl_bit_has(in + (size_t)step * words, v))
                mpl_bit_add(mpl_row(store, v), step);
    }
    for (size_t i = 0; i < late->n; i++)
        mpl_bit_add(mpl_row(store, late->item[i]), late->node[i]);
    MPL_TRY(mpl_new(store->ctx, store->skipped, (size_t)store->g->n_blocks * words));
    for (size_t i = 0; i < skip->n; i++)
        memcpy(store->skipped + (size_t)skip->item[i] * words, in + (size_t)skip->node[i] * words,
               words * sizeof *in);
out:
    for (int i = 0; i < 6; i++)
        mpl_free(store->ctx, lists[i]);
    mpl_free_each(store->ctx, in, out);
    return st;
}

void mpl_store_wanted(mpl_store *store)
{
    mark_read(store);
    mark_exits(store);
    while (mark_results(store)) {
    }
}

mpl_status mpl_store_live(mpl_store *store)
{
    mpl_status st = MPL_OK;
    builder b = {.store = store};

    MPL_TRY(add_steps(&b));
    MPL_TRY(solve(&b));
out:
    for (int k = 0; k < N_LISTS; k++) {
        mpl_free_each(store->ctx, b.list[k].node, b.list[k].item);
    }
    return st;
}
