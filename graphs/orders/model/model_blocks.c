/* model_blocks.c -- the memory models of blocks. See model_blocks.h.
 *
 * Idea     A value that a loop's body reads from outside, or that is needed after the loop, stays
 *          alive while the loop runs. Carried values lie in cells of their own, so initial values
 *          may end when the loop begins. In the model of its block a loop is therefore one
 *          operation: it makes its outputs, needs the bytes of its body where these are more, and
 *          saves the initial values that end with it. A branch may hold the last use of a value
 *          from outside.
 * Source   this project; storage: LOOPS.md
 * Limits   Counts contents, not cells: if an order needs two cells for a carried value, both count
 *          only while both contents are needed. Values that pass through unchanged do not count. */
#include "graphs/orders/model/model_blocks.h"

#include "graphs/orders/model/model_priv.h"
#include "graphs/problem/liveness.h"

static const uint64_t MOST = INT64_MAX / 4; /* as in model_storage.c */

enum { READ = 1, KEPT = 2 };       /* of a value in a block */
enum { ON_ENTRY = 1, WITHIN = 2 }; /* how an operation reads a value: its blocks do not, or do */

typedef struct maker {
    mpl_ctx *ctx;
    const mpl_block_models *f;
    const mpl_graph *g;
    uint32_t block;
    mpl_order_model *m;
    uint32_t *id;     /* [n_values] buffer of a root; MPL_NONE: none */
    uint8_t *how;     /* [n_values] READ, KEPT */
    uint8_t *touched; /* [n_values] by the operation at hand */
    mpl_value *touch; /* [n_touch] roots */
    uint32_t n_touch;
    mpl_order_arcs arcs;
} maker;

static uint64_t slots(const mpl_block_models *f, uint64_t bytes)
{
    return (bytes + f->options.align - 1) & ~(uint64_t)(f->options.align - 1);
}

/* ---- facts of all blocks ---- */

static bool is_body(const mpl_graph *g, uint32_t b)
{
    return b != 0 && g->op_kind[g->block_owner[b]] == MPL_OP_while;
}

static bool owns(const mpl_graph *g, mpl_op op)
{
    return g->op_body_begin[op] < g->op_body_begin[op + 1];
}

/* The root that holds the value's contents, if it has planned storage of its own. */
static mpl_value lies(const mpl_block_models *f, mpl_value v)
{
    return v != MPL_NONE ? f->facts.lies[v] : MPL_NONE;
}

static mpl_value result_root(const mpl_block_models *f, uint32_t b, uint32_t i)
{
    mpl_value v = mpl_result(f->g, b, i);

    return v != MPL_NONE ? f->alias.root[v] : MPL_NONE;
}

/* Whether result `i` also provides another live output of the block's owner. */
static bool is_twice(const mpl_block_models *f, uint32_t b, uint32_t i)
{
    const mpl_graph *g = f->g;
    mpl_op op = g->block_owner[b];
    uint32_t first = is_body(g, b), n = first ? mpl_n_carried(g, op) : mpl_op_n_out(g, op);

    for (uint32_t k = first; k < n + first; k++) {
        mpl_value out = mpl_op_output(g, op, k - first);

        if (k != i && out != MPL_NONE && f->facts.out_live[out] &&
            result_root(f, b, k) == result_root(f, b, i))
            return true;
    }
    return false;
}

static bool has_storage(const mpl_block_models *f, mpl_value v);

/* Whether an operation of block b makes its result i, and only one output takes it. */
static bool makes_result(const mpl_block_models *f, uint32_t b, uint32_t i)
{
    mpl_value v = result_root(f, b, i);

    return v != MPL_NONE && f->g->value_op[v] != MPL_NONE && f->g->value_block[v] == b &&
           has_storage(f, v) && !is_twice(f, b, i);
}

/* Whether no other value can be in the place of root v while v is needed. An output of a loop or
 * branch has a place of its own only if a block makes it there. */
static bool has_storage(const mpl_block_models *f, mpl_value v)
{
    const mpl_graph *g = f->g;
    mpl_op op = g->value_op[v];

    if (lies(f, v) != v)
        return false;
    if (!mpl_is_chosen(g, v))
        return true;
    for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++)
        for (uint32_t k = g->op_body_begin[op];
             mpl_op_output(g, op, i) == v && k < g->op_body_begin[op + 1]; k++)
            if (makes_result(f, g->op_body[k], i + is_body(g, g->op_body[k])))
                return true;
    return false;
}

/* The value made in a loop's body that carried value i receives *age rounds later. MPL_NONE: it
 * comes from outside, circulates among carried values only, or shares its place with another
 * value. */
static mpl_value source_of(const mpl_block_models *f, uint32_t b, uint32_t i, uint32_t *age)
{
    const mpl_graph *g = f->g;
    uint32_t n = mpl_n_carried(g, g->block_owner[b]);

    for (*age = 1; *age <= n; ++*age) {
        mpl_value v = result_root(f, b, 1 + i);
        uint32_t k = 0;

        while (k < n && mpl_param(g, b, 1 + k) != v)
            k++;
        if (k == n)
            return g->value_block[v] == b && has_storage(f, v) ? v : MPL_NONE;
        i = k;
    }
    return MPL_NONE;
}

/* Whether loops or branches inside block b use v as an operand or a result. */
static bool is_taken_over(const mpl_block_models *f, uint32_t b, mpl_value v)
{
    const mpl_graph *g = f->g;

    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        for (uint32_t i = g->op_in_begin[op]; owns(g, op) && i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && f->alias.root[g->op_in[i]] == v)
                return true;
    for (uint32_t k = b + 1; k < g->n_blocks && mpl_block_within(g, k, b); k++)
        for (uint32_t i = 0; i < g->block_n_results[k]; i++)
            if (result_root(f, k, i) == v)
                return true;
    return false;
}

/* Whether a loop's body that makes v needs the cells of v when a round begins: a parameter still
 * holds v from an earlier round, without a copy. */
static bool is_needed_before(const mpl_block_models *f, uint32_t b, mpl_value v)
{
    const mpl_graph *g = f->g;
    uint32_t age;
    bool found = false;

    if (!is_body(g, b) || f->options.loop_copy || is_taken_over(f, b, v))
        return false;
    for (uint32_t i = 0; i < mpl_n_carried(g, g->block_owner[b]); i++) {
        mpl_value p = mpl_param(g, b, 1 + i);

        if (source_of(f, b, i, &age) != v)
            continue;
        if (is_taken_over(f, b, p))
            return false;
        found = found || lies(f, p) == p;
    }
    return found;
}

/* Whether `out` may overwrite the operand `in` in block b. The place of a carried value is needed
 * throughout the round, so only the value that it receives next may lie there. */
static bool may_pair(const mpl_block_models *f, uint32_t b, mpl_value in, mpl_value out)
{
    const mpl_graph *g = f->g;
    uint32_t i = 0, age, n = is_body(g, b) ? mpl_n_carried(g, g->block_owner[b]) : 0;

    while (i < n && mpl_param(g, b, 1 + i) != in)
        i++;
    return i < n ? source_of(f, b, i, &age) == out : !is_needed_before(f, b, out);
}

static mpl_status find_facts(mpl_block_models *f)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = f->ctx;
    const mpl_graph *g = f->g;
    const mpl_problem_options *o = &f->options;
    mpl_program *program = NULL;
    mpl_op *order = NULL;
    uint8_t *pinned = NULL, *kept = NULL;

    MPL_TRY(mpl_new(ctx, order, g->n_ops));
    MPL_TRY(mpl_new_each(ctx, g->n_values, pinned, kept));
    for (mpl_op op = 0; op < g->n_ops; op++)
        order[op] = op;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        kept[f->alias.root[g->output[i]]] = 1;
    for (mpl_value v = 0; v < g->n_values; v++) {
        pinned[v] = (kept[v] && o->pin_outputs && !mpl_is_chosen(g, v)) ||
                    (g->value_role[v] == MPL_INPUT && o->pin_inputs) ||
                    (g->value_role[v] == MPL_WEIGHT && o->pin_weights);
        kept[v] = kept[v] || g->value_role[v] == MPL_WEIGHT;
    }
    MPL_TRY(mpl_program_new(ctx, g, order, &program));
    MPL_TRY(mpl_storage_facts_new(
        ctx, &(mpl_storage_spec){g, program, o, f->alias.root, pinned, kept}, &f->facts));
out:
    mpl_program_free(ctx, program);
    mpl_free_each(ctx, order, pinned, kept);
    return st;
}

static mpl_status check_sizes(const mpl_block_models *f)
{
    const mpl_graph *g = f->g;
    const uint64_t *extra = f->options.op_workspace_bytes;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < g->n_values + g->n_ops; i++) {
        uint64_t bytes = i < g->n_values ? g->value_bytes[i]
                         : extra != NULL ? extra[i - g->n_values]
                                         : 0;

        if (bytes > MOST || !mpl_add_bytes(sum, slots(f, bytes), &sum) || sum > MOST)
            return MPL_REFUSE(f->ctx, "the values of '%.100s' together pass 2^61 bytes", g->name);
    }
    return MPL_OK;
}

mpl_status mpl_block_models_new(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, mpl_block_models **out)
{
    mpl_status st = MPL_OK;
    mpl_block_models *f = NULL;

    MPL_TRY(mpl_new(ctx, f, 1));
    f->ctx = ctx, f->g = g;
    f->options = options != NULL ? *options : mpl_problem_options_default();
    f->options.parallel = false;
    MPL_TRY(check_sizes(f));
    MPL_TRY(mpl_new(ctx, f->need, g->n_blocks));
    MPL_TRY(mpl_alias_new(
        ctx, g, &(mpl_alias_options){.views = f->options.views, .align = f->options.align},
        &f->alias));
    MPL_TRY(find_facts(f));
    *out = f, f = NULL;
out:
    mpl_block_models_free(f);
    return st;
}

void mpl_block_models_free(mpl_block_models *f)
{
    if (f == NULL)
        return;
    mpl_alias_free(f->ctx, &f->alias);
    mpl_storage_facts_free(f->ctx, &f->facts);
    mpl_free(f->ctx, f->need);
    mpl_free(f->ctx, f);
}

/* ---- what an operation reads ---- */

static void touch(maker *x, mpl_value v, uint8_t how)
{
    mpl_value root = lies(x->f, v);

    if (root == MPL_NONE)
        return;
    if (x->touched[root] == 0)
        x->touch[x->n_touch++] = root;
    x->touched[root] |= how;
}

/* Operands of a loop or case. An initial value counts as read if the loop's body or a later
 * operation reads it. */
static void touch_operands(maker *x, mpl_op op, uint8_t on_entry)
{
    const mpl_graph *g = x->g;
    bool loop = g->op_kind[op] == MPL_OP_while;
    uint32_t n = mpl_op_n_in(g, op), carried = loop ? mpl_n_carried(g, op) : 0;

    for (uint32_t i = 0; i < n; i++) {
        mpl_value in = mpl_op_input(g, op, i), out = MPL_NONE, param = MPL_NONE;

        if (loop && i >= 2 && i < 2 + carried) {
            out = mpl_op_output(g, op, i - 2);
            param = mpl_param(g, mpl_op_first_body(g, op), i - 1);
            if (lies(x->f, param) != param && (out == MPL_NONE || !x->f->facts.out_live[out]))
                continue;
        }
        touch(x, in, loop && i >= 2 + carried ? WITHIN : on_entry);
    }
}

/* Values that the blocks of `owner` read; their steps directly precede its own. */
static void touch_within(maker *x, mpl_op owner)
{
    const mpl_graph *g = x->g;
    uint32_t first = g->op_body[g->op_body_begin[owner]];

    for (mpl_op op = g->block_op_begin[first]; op < owner; op++)
        if (owns(g, op))
            touch_operands(x, op, WITHIN);
        else
            for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
                touch(x, mpl_op_input(g, op, i), WITHIN);
    for (uint32_t b = first;
         b < g->n_blocks && g->block_op_begin[b] <= owner && g->block_owner[b] <= owner; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            if (x->f->facts.result_read[g->block_result_begin[b] + i])
                touch(x, mpl_result(g, b, i), WITHIN);
}

/* Lists in touch[n_touch], with touched[] for each, the values that `op` reads. An exit test reads
 * the values that the loop would return. */
static void list_reads(maker *x, mpl_op op)
{
    const mpl_graph *g = x->g;

    while (x->n_touch > 0)
        x->touched[x->touch[--x->n_touch]] = 0;
    if (owns(g, op)) {
        touch_operands(x, op, ON_ENTRY);
        touch_within(x, op);
        return;
    }
    for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
        touch(x, mpl_op_input(g, op, i), ON_ENTRY);
    if (g->op_kind[op] == MPL_OP_exit_unless) {
        mpl_op owner = g->block_owner[x->block];

        for (uint32_t i = 0; i < mpl_n_carried(g, owner); i++) {
            mpl_value out = mpl_op_output(g, owner, i);

            if (out != MPL_NONE && x->f->facts.out_live[out])
                touch(x, mpl_param(g, x->block, 1 + i), ON_ENTRY);
        }
    }
}

/* ---- buffers ---- */

/* Whether a parameter of a loop's body has a buffer there. */
static bool param_counts(const mpl_block_models *f, mpl_value v)
{
    const mpl_graph *g = f->g;
    uint32_t b = g->value_block[v], i = 0, age;

    while (mpl_param(g, b, i) != v)
        i++;
    return !is_body(g, b) || i == 0 || i > mpl_n_carried(g, g->block_owner[b]) ||
           source_of(f, b, i - 1, &age) != MPL_NONE;
}

/* Whether v, of a block around x->block, may be needed for the last time in x->block: no loop lies
 * between the two. */
static bool may_end(const maker *x, mpl_value v)
{
    const mpl_graph *g = x->g;
    uint32_t b = x->block;

    if (g->value_role[v] == MPL_PARAMETER && !param_counts(x->f, v))
        return false;

    while (b != g->value_block[v] && !is_body(g, b) && b != 0)
        b = g->block_parent[b];
    return b == g->value_block[v] && has_storage(x->f, v);
}

/* Marks the values that the block's operations read and those that its results keep. */
static void mark_values(maker *x)
{
    const mpl_graph *g = x->g;
    uint32_t b = x->block, n = b == 0 ? g->n_outputs : g->block_n_results[b];

    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b) {
            list_reads(x, op);
            for (uint32_t i = 0; i < x->n_touch; i++)
                x->how[x->touch[i]] |= READ;
        }
    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = lies(x->f, b == 0 ? g->output[i] : mpl_result(g, b, i));

        if (v != MPL_NONE && (b == 0 || x->f->facts.result_read[g->block_result_begin[b] + i]))
            x->how[v] |= KEPT;
    }
}

static void add_buffer(maker *x, mpl_value v, bool from_start)
{
    mpl_order_model *m = x->m;

    x->id[v] = m->n_buffers;
    m->bytes[m->n_buffers] = slots(x->f, x->g->value_bytes[v]);
    m->kept[m->n_buffers] = (x->how[v] & KEPT) != 0;
    m->from_start[m->n_buffers++] = from_start;
}

/* Adds the parameters of a loop's body. Those that hold the same value in the same round are one
 * buffer. */
static void add_params(maker *x)
{
    const mpl_graph *g = x->g;
    uint32_t b = x->block, n = mpl_n_carried(g, g->block_owner[b]);

    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value p = mpl_param(g, b, i), source = p;
        uint32_t age = 0, other;

        if (lies(x->f, p) != p || x->how[p] == 0)
            continue;
        if (i > 0 && i <= n)
            source = source_of(x->f, b, i - 1, &age);
        if (source == MPL_NONE)
            continue;
        for (uint32_t k = 1; k < i && age > 0; k++)
            if (x->id[mpl_param(g, b, k)] != MPL_NONE &&
                source_of(x->f, b, k - 1, &other) == source && other == age) {
                x->id[p] = x->id[mpl_param(g, b, k)];
                x->m->kept[x->id[p]] |= (x->how[p] & KEPT) != 0;
                break;
            }
        if (x->id[p] == MPL_NONE)
            add_buffer(x, p, true);
    }
}

static void add_buffers(maker *x)
{
    const mpl_graph *g = x->g;
    uint32_t b = x->block;

    if (is_body(g, b))
        add_params(x);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_op op = g->value_op[v];

        if (lies(x->f, v) != v || (g->value_role[v] == MPL_PARAMETER && g->value_block[v] == b))
            continue;
        if (g->value_role[v] == MPL_WEIGHT)
            x->m->base += b == 0 ? slots(x->f, g->value_bytes[v]) : 0;
        else if (x->how[v] != 0 && g->value_block[v] != b)
            may_end(x, v) ? add_buffer(x, v, true) : (void)0;
        else if (x->how[v] != 0 && op == MPL_NONE && b == 0)
            add_buffer(x, v, true);
        else if (x->how[v] != 0 && op != MPL_NONE && g->op_block[op] == b && has_storage(x->f, v))
            add_buffer(x, v, false);
    }
}

/* ---- operations ---- */

/* Adds `op` as a maker, with the bytes needed at its step alone: its workspace and unread
 * outputs. */
static mpl_status add_outputs(maker *x, mpl_op op, uint32_t mine, uint64_t *carried)
{
    const mpl_graph *g = x->g;
    const uint64_t *extra = x->f->options.op_workspace_bytes;

    if (x->f->options.plan_workspaces && extra != NULL && !owns(g, op))
        x->m->extra[mine] = slots(x->f, extra[op]);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        if (v == MPL_NONE || lies(x->f, v) != v)
            continue;
        if (x->id[v] != MPL_NONE)
            MPL_PASS(mpl_order_add(x->ctx, &x->arcs.makers, x->id[v], mine));
        if (x->id[v] != MPL_NONE && mpl_is_chosen(g, v))
            *carried += slots(x->f, g->value_bytes[v]);
        else if (x->how[v] == 0 && !mpl_is_chosen(g, v))
            x->m->extra[mine] += slots(x->f, g->value_bytes[v]);
    }
    return MPL_OK;
}

/* Adds the arc from the operation of this block that makes v, itself or in its blocks, to
 * `mine`. */
static mpl_status add_before(maker *x, uint32_t mine, mpl_value v, const uint32_t *local)
{
    mpl_op op = v != MPL_NONE ? x->g->value_op[v] : MPL_NONE;

    if (op == MPL_NONE || x->g->op_block[op] != x->block)
        return MPL_OK;
    return mpl_order_add(x->ctx, &x->arcs.before, mine, local[op]);
}

static mpl_status add_all_before(maker *x, mpl_op op, uint32_t mine, const uint32_t *local)
{
    const mpl_graph *g = x->g;
    uint32_t first = owns(g, op) ? g->op_body[g->op_body_begin[op]] : MPL_NONE;
    mpl_op from = first != MPL_NONE ? g->block_op_begin[first] : op;

    for (mpl_op at = from; at <= op; at++)
        for (uint32_t i = g->op_in_begin[at]; i < g->op_in_begin[at + 1]; i++)
            MPL_PASS(add_before(x, mine, g->op_in[i], local));
    for (uint32_t b = first;
         b < g->n_blocks && g->block_op_begin[b] <= op && g->block_owner[b] <= op; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            MPL_PASS(add_before(x, mine, mpl_result(g, b, i), local));
    return MPL_OK;
}

/* Adds the ways of an operation without blocks to write output 0 over an operand. */
static mpl_status add_ways(maker *x, mpl_op op, uint32_t mine)
{
    const mpl_graph *g = x->g;
    mpl_value out = mpl_op_n_out(g, op) > 0 ? mpl_op_output(g, op, 0) : MPL_NONE;

    if (!x->f->options.in_place || lies(x->f, out) != out || out == MPL_NONE)
        return MPL_OK;
    x->m->saves[mine] = slots(x->f, g->value_bytes[out]);
    for (uint32_t i = 0; i < mpl_n_read(g, op); i++) {
        mpl_value in = lies(x->f, mpl_op_input(g, op, i));

        if (in == MPL_NONE || x->id[in] == MPL_NONE || x->m->kept[x->id[in]] ||
            !may_pair(x->f, x->block, in, out) ||
            !mpl_in_place_operand(g, x->f->alias.root, NULL, op, i))
            continue;
        MPL_PASS(mpl_order_add(x->ctx, &x->arcs.under, x->m->n_ways, x->id[in]));
        MPL_PASS(mpl_order_add(x->ctx, &x->arcs.ways, mine, x->m->n_ways++));
    }
    return MPL_OK;
}

/* A loop or case needs the bytes that its blocks need. Values read only on entry may end there;
 * values that a case reads may end at its own step. carried: bytes of results that lie in places of
 * their own. */
static mpl_status add_need(maker *x, mpl_op op, uint32_t mine, uint64_t carried)
{
    const mpl_graph *g = x->g;
    uint64_t need = 0, within = 0;
    uint32_t way = x->m->n_ways;
    bool at_end;

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        need = mpl_max_u64(need, x->f->need[g->op_body[k]]);
    for (uint32_t i = 0; i < x->n_touch && g->op_kind[op] != MPL_OP_while; i++)
        if ((x->touched[x->touch[i]] & WITHIN) != 0 && x->id[x->touch[i]] != MPL_NONE)
            within += x->m->bytes[x->id[x->touch[i]]];
    at_end = need < within + carried;
    x->m->extra[mine] += at_end ? 0 : need - within - carried;
    for (uint32_t i = 0; i < x->n_touch; i++) {
        uint32_t b = x->id[x->touch[i]];

        if (b == MPL_NONE || x->m->kept[b] || (x->touched[x->touch[i]] != ON_ENTRY && !at_end))
            continue;
        MPL_PASS(mpl_order_add(x->ctx, &x->arcs.under, way, b));
        x->m->saves[mine] += x->m->bytes[b];
        x->m->n_ways = way + 1;
    }
    if (x->m->n_ways > way)
        MPL_PASS(mpl_order_add(x->ctx, &x->arcs.ways, mine, way));
    return MPL_OK;
}

static mpl_status add_op(maker *x, mpl_op op, uint32_t mine, const uint32_t *local)
{
    uint64_t carried = 0;

    x->m->op[mine] = op;
    list_reads(x, op);
    MPL_PASS(add_all_before(x, op, mine, local));
    MPL_PASS(add_outputs(x, op, mine, &carried));
    for (uint32_t i = 0; i < x->n_touch; i++)
        if (x->id[x->touch[i]] != MPL_NONE)
            MPL_PASS(mpl_order_add(x->ctx, &x->arcs.users, x->id[x->touch[i]], mine));
    return owns(x->g, op) ? add_need(x, op, mine, carried) : add_ways(x, op, mine);
}

static mpl_status fill(maker *x)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = x->g;
    uint32_t n = 0, b = x->block, *local = NULL;

    MPL_TRY(mpl_new(x->ctx, local, g->n_ops));
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b)
            local[op] = n++;
    MPL_TRY(mpl_order_model_alloc(x->ctx, n, g->n_values, &x->m));
    x->m->n_buffers = 0;
    mark_values(x);
    add_buffers(x);
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b)
            MPL_TRY(add_op(x, op, local[op], local));
    MPL_TRY(mpl_order_model_finish(x->ctx, x->m, &x->arcs));
out:
    mpl_free(x->ctx, local);
    return st;
}

mpl_status mpl_block_model_new(const mpl_block_models *f, uint32_t b, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    maker x = {.ctx = f->ctx, .f = f, .g = f->g, .block = b};

    MPL_TRY(mpl_new_each(x.ctx, x.g->n_values, x.id, x.how, x.touched, x.touch));
    memset(x.id, 0xff, x.g->n_values * sizeof *x.id);
    MPL_TRY(fill(&x));
    *out = x.m, x.m = NULL;
out:
    mpl_order_model_free(x.ctx, x.m);
    mpl_order_arcs_fini(x.ctx, &x.arcs);
    mpl_free_each(x.ctx, x.id, x.how, x.touched, x.touch);
    return st;
}

uint64_t mpl_order_model_start(const mpl_order_model *m)
{
    uint64_t bytes = m->base;

    for (uint32_t b = 0; b < m->n_buffers; b++)
        bytes += m->from_start[b] ? m->bytes[b] : 0;
    return bytes;
}
