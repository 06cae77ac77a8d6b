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
    const mpl_block_models *models;
    const mpl_graph *g;
    uint32_t block;
    mpl_order_model *model;
    uint32_t *id;     /* [n_values] buffer of a root; MPL_NONE: none */
    uint8_t *how;     /* [n_values] READ, KEPT */
    uint8_t *touched; /* [n_values] by the operation at hand */
    mpl_value *touch; /* [n_touch] roots */
    uint32_t n_touch;
    mpl_order_arcs arcs;
} maker;

static uint64_t slots(const mpl_block_models *models, uint64_t bytes)
{
    return (bytes + models->options.align - 1) & ~(uint64_t)(models->options.align - 1);
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
static mpl_value lies(const mpl_block_models *models, mpl_value v)
{
    return v != MPL_NONE ? models->facts.lies[v] : MPL_NONE;
}

static mpl_value result_root(const mpl_block_models *models, uint32_t b, uint32_t i)
{
    mpl_value v = mpl_result(models->g, b, i);

    return v != MPL_NONE ? models->alias.root[v] : MPL_NONE;
}

/* Whether result `i` also provides another live output of the block's owner. */
static bool is_twice(const mpl_block_models *models, uint32_t b, uint32_t i)
{
    const mpl_graph *g = models->g;
    mpl_op op = g->block_owner[b];
    uint32_t first = is_body(g, b), n = first ? mpl_n_carried(g, op) : mpl_op_n_out(g, op);

    for (uint32_t k = first; k < n + first; k++) {
        mpl_value out = mpl_op_output(g, op, k - first);

        if (k != i && out != MPL_NONE && models->facts.out_live[out] &&
            result_root(models, b, k) == result_root(models, b, i))
            return true;
    }
    return false;
}

static bool has_storage(const mpl_block_models *models, mpl_value v);

/* Whether an operation of block b makes its result i, and only one output takes it. */
static bool makes_result(const mpl_block_models *models, uint32_t b, uint32_t i)
{
    mpl_value v = result_root(models, b, i);

    return v != MPL_NONE && models->g->value_op[v] != MPL_NONE && models->g->value_block[v] == b &&
           has_storage(models, v) && !is_twice(models, b, i);
}

/* Whether no other value can be in the place of root v while v is needed. An output of a loop or
 * branch has a place of its own only if a block makes it there. */
static bool has_storage(const mpl_block_models *models, mpl_value v)
{
    const mpl_graph *g = models->g;
    mpl_op op = g->value_op[v];

    if (lies(models, v) != v)
        return false;
    if (!mpl_is_chosen(g, v))
        return true;
    for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++)
        for (uint32_t k = g->op_body_begin[op];
             mpl_op_output(g, op, i) == v && k < g->op_body_begin[op + 1]; k++)
            if (makes_result(models, g->op_body[k], i + is_body(g, g->op_body[k])))
                return true;
    return false;
}

/* The value made in a loop's body that carried value i receives *age rounds later. MPL_NONE: it
 * comes from outside, circulates among carried values only, or shares its place with another
 * value. */
static mpl_value source_of(const mpl_block_models *models, uint32_t b, uint32_t i, uint32_t *age)
{
    const mpl_graph *g = models->g;
    uint32_t n = mpl_n_carried(g, g->block_owner[b]);

    for (*age = 1; *age <= n; ++*age) {
        mpl_value v = result_root(models, b, 1 + i);
        uint32_t k = 0;

        while (k < n && mpl_param(g, b, 1 + k) != v)
            k++;
        if (k == n)
            return g->value_block[v] == b && has_storage(models, v) ? v : MPL_NONE;
        i = k;
    }
    return MPL_NONE;
}

/* Whether loops or branches inside block b use v as an operand or a result. */
static bool is_taken_over(const mpl_block_models *models, uint32_t b, mpl_value v)
{
    const mpl_graph *g = models->g;

    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        for (uint32_t i = g->op_in_begin[op]; owns(g, op) && i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && models->alias.root[g->op_in[i]] == v)
                return true;
    for (uint32_t k = b + 1; k < g->n_blocks && mpl_block_within(g, k, b); k++)
        for (uint32_t i = 0; i < g->block_n_results[k]; i++)
            if (result_root(models, k, i) == v)
                return true;
    return false;
}

/* Whether a loop's body that makes v needs the cells of v when a round begins: a parameter still
 * holds v from an earlier round, without a copy. */
static bool is_needed_before(const mpl_block_models *models, uint32_t b, mpl_value v)
{
    const mpl_graph *g = models->g;
    uint32_t age;
    bool found = false;

    if (!is_body(g, b) || models->options.loop_copy || is_taken_over(models, b, v))
        return false;
    for (uint32_t i = 0; i < mpl_n_carried(g, g->block_owner[b]); i++) {
        mpl_value p = mpl_param(g, b, 1 + i);

        if (source_of(models, b, i, &age) != v)
            continue;
        if (is_taken_over(models, b, p))
            return false;
        found = found || lies(models, p) == p;
    }
    return found;
}

/* Whether `out` may overwrite the operand `in` in block b. The place of a carried value is needed
 * throughout the round, so only the value that it receives next may lie there. */
static bool may_pair(const mpl_block_models *models, uint32_t b, mpl_value in, mpl_value out)
{
    const mpl_graph *g = models->g;
    uint32_t i = 0, age, n = is_body(g, b) ? mpl_n_carried(g, g->block_owner[b]) : 0;

    while (i < n && mpl_param(g, b, 1 + i) != in)
        i++;
    return i < n ? source_of(models, b, i, &age) == out : !is_needed_before(models, b, out);
}

static mpl_status find_facts(mpl_block_models *models)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = models->ctx;
    const mpl_graph *g = models->g;
    const mpl_problem_options *options = &models->options;
    mpl_program *program = NULL;
    mpl_op *order = NULL;
    uint8_t *pinned = NULL, *kept = NULL;

    MPL_TRY(mpl_new(ctx, order, g->n_ops));
    MPL_TRY(mpl_new_each(ctx, g->n_values, pinned, kept));
    for (mpl_op op = 0; op < g->n_ops; op++)
        order[op] = op;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        kept[models->alias.root[g->output[i]]] = 1;
    for (mpl_value v = 0; v < g->n_values; v++) {
        pinned[v] = (kept[v] && options->pin_outputs && !mpl_is_chosen(g, v)) ||
                    (g->value_role[v] == MPL_INPUT && options->pin_inputs) ||
                    (g->value_role[v] == MPL_WEIGHT && options->pin_weights);
        kept[v] = kept[v] || g->value_role[v] == MPL_WEIGHT;
    }
    MPL_TRY(mpl_program_new(ctx, g, order, &program));
    MPL_TRY(mpl_storage_facts_new(
        ctx, &(mpl_storage_spec){g, program, options, models->alias.root, pinned, kept},
        &models->facts));
out:
    mpl_program_free(ctx, program);
    mpl_free_each(ctx, order, pinned, kept);
    return st;
}

static mpl_status check_sizes(const mpl_block_models *models)
{
    const mpl_graph *g = models->g;
    const uint64_t *extra = models->options.op_workspace_bytes;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < g->n_values + g->n_ops; i++) {
        uint64_t bytes = i < g->n_values ? g->value_bytes[i]
                         : extra != NULL ? extra[i - g->n_values]
                                         : 0;

        if (bytes > MOST || !mpl_add_bytes(sum, slots(models, bytes), &sum) || sum > MOST)
            return MPL_REFUSE(models->ctx, "the values of '%.100s' together pass 2^61 bytes",
                              g->name);
    }
    return MPL_OK;
}

mpl_status mpl_block_models_new(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, mpl_block_models **out)
{
    mpl_status st = MPL_OK;
    mpl_block_models *models = NULL;

    MPL_TRY(mpl_new(ctx, models, 1));
    models->ctx = ctx, models->g = g;
    models->options = options != NULL ? *options : mpl_problem_options_default();
    models->options.parallel = false;
    MPL_TRY(check_sizes(models));
    MPL_TRY(mpl_new(ctx, models->need, g->n_blocks));
    MPL_TRY(mpl_alias_new(
        ctx, g,
        &(mpl_alias_options){.views = models->options.views, .align = models->options.align},
        &models->alias));
    MPL_TRY(find_facts(models));
    *out = models, models = NULL;
out:
    mpl_block_models_free(models);
    return st;
}

void mpl_block_models_free(mpl_block_models *models)
{
    if (models == NULL)
        return;
    mpl_alias_free(models->ctx, &models->alias);
    mpl_storage_facts_free(models->ctx, &models->facts);
    mpl_free(models->ctx, models->need);
    mpl_free(models->ctx, models);
}

/* ---- what an operation reads ---- */

static void touch(maker *self, mpl_value v, uint8_t how)
{
    mpl_value root = lies(self->models, v);

    if (root == MPL_NONE)
        return;
    if (self->touched[root] == 0)
        self->touch[self->n_touch++] = root;
    self->touched[root] |= how;
}

/* Operands of a loop or case. An initial value counts as read if the loop's body or a later
 * operation reads it. */
static void touch_operands(maker *self, mpl_op op, uint8_t on_entry)
{
    const mpl_graph *g = self->g;
    bool loop = g->op_kind[op] == MPL_OP_while;
    uint32_t n = mpl_op_n_in(g, op), carried = loop ? mpl_n_carried(g, op) : 0;

    for (uint32_t i = 0; i < n; i++) {
        mpl_value in = mpl_op_input(g, op, i), out = MPL_NONE, param = MPL_NONE;

        if (loop && i >= 2 && i < 2 + carried) {
            out = mpl_op_output(g, op, i - 2);
            param = mpl_param(g, mpl_op_first_body(g, op), i - 1);
            if (lies(self->models, param) != param &&
                (out == MPL_NONE || !self->models->facts.out_live[out]))
                continue;
        }
        touch(self, in, loop && i >= 2 + carried ? WITHIN : on_entry);
    }
}

/* Values that the blocks of `owner` read; their steps directly precede its own. */
static void touch_within(maker *self, mpl_op owner)
{
    const mpl_graph *g = self->g;
    uint32_t first = g->op_body[g->op_body_begin[owner]];

    for (mpl_op op = g->block_op_begin[first]; op < owner; op++)
        if (owns(g, op))
            touch_operands(self, op, WITHIN);
        else
            for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
                touch(self, mpl_op_input(g, op, i), WITHIN);
    for (uint32_t b = first;
         b < g->n_blocks && g->block_op_begin[b] <= owner && g->block_owner[b] <= owner; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            if (self->models->facts.result_read[g->block_result_begin[b] + i])
                touch(self, mpl_result(g, b, i), WITHIN);
}

/* Lists in touch[n_touch], with touched[] for each, the values that `op` reads. An exit test reads
 * the values that the loop would return. */
static void list_reads(maker *self, mpl_op op)
{
    const mpl_graph *g = self->g;

    while (self->n_touch > 0)
        self->touched[self->touch[--self->n_touch]] = 0;
    if (owns(g, op)) {
        touch_operands(self, op, ON_ENTRY);
        touch_within(self, op);
        return;
    }
    for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
        touch(self, mpl_op_input(g, op, i), ON_ENTRY);
    if (g->op_kind[op] == MPL_OP_exit_unless) {
        mpl_op owner = g->block_owner[self->block];

        for (uint32_t i = 0; i < mpl_n_carried(g, owner); i++) {
            mpl_value out = mpl_op_output(g, owner, i);

            if (out != MPL_NONE && self->models->facts.out_live[out])
                touch(self, mpl_param(g, self->block, 1 + i), ON_ENTRY);
        }
    }
}

/* ---- buffers ---- */

/* Whether a parameter of a loop's body has a buffer there. */
static bool param_counts(const mpl_block_models *models, mpl_value v)
{
    const mpl_graph *g = models->g;
    uint32_t b = g->value_block[v], i = 0, age;

    while (mpl_param(g, b, i) != v)
        i++;
    return !is_body(g, b) || i == 0 || i > mpl_n_carried(g, g->block_owner[b]) ||
           source_of(models, b, i - 1, &age) != MPL_NONE;
}

/* Whether v, of a block around self->block, may be needed for the last time in self->block: no loop
 * lies between the two. */
static bool may_end(const maker *self, mpl_value v)
{
    const mpl_graph *g = self->g;
    uint32_t b = self->block;

    if (g->value_role[v] == MPL_PARAMETER && !param_counts(self->models, v))
        return false;

    while (b != g->value_block[v] && !is_body(g, b) && b != 0)
        b = g->block_parent[b];
    return b == g->value_block[v] && has_storage(self->models, v);
}

/* Marks the values that the block's operations read and those that its results keep. */
static void mark_values(maker *self)
{
    const mpl_graph *g = self->g;
    uint32_t b = self->block, n = b == 0 ? g->n_outputs : g->block_n_results[b];

    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b) {
            list_reads(self, op);
            for (uint32_t i = 0; i < self->n_touch; i++)
                self->how[self->touch[i]] |= READ;
        }
    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = lies(self->models, b == 0 ? g->output[i] : mpl_result(g, b, i));

        if (v != MPL_NONE &&
            (b == 0 || self->models->facts.result_read[g->block_result_begin[b] + i]))
            self->how[v] |= KEPT;
    }
}

static void add_buffer(maker *self, mpl_value v, bool from_start)
{
    mpl_order_model *model = self->model;

    self->id[v] = model->n_buffers;
    model->bytes[model->n_buffers] = slots(self->models, self->g->value_bytes[v]);
    model->kept[model->n_buffers] = (self->how[v] & KEPT) != 0;
    model->from_start[model->n_buffers++] = from_start;
}

/* Adds the parameters of a loop's body. Those that hold the same value in the same round are one
 * buffer. */
static void add_params(maker *self)
{
    const mpl_graph *g = self->g;
    uint32_t b = self->block, n = mpl_n_carried(g, g->block_owner[b]);

    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value p = mpl_param(g, b, i), source = p;
        uint32_t age = 0, other;

        if (lies(self->models, p) != p || self->how[p] == 0)
            continue;
        if (i > 0 && i <= n)
            source = source_of(self->models, b, i - 1, &age);
        if (source == MPL_NONE)
            continue;
        for (uint32_t k = 1; k < i && age > 0; k++)
            if (self->id[mpl_param(g, b, k)] != MPL_NONE &&
                source_of(self->models, b, k - 1, &other) == source && other == age) {
                self->id[p] = self->id[mpl_param(g, b, k)];
                self->model->kept[self->id[p]] |= (self->how[p] & KEPT) != 0;
                break;
            }
        if (self->id[p] == MPL_NONE)
            add_buffer(self, p, true);
    }
}

static void add_buffers(maker *self)
{
    const mpl_graph *g = self->g;
    uint32_t b = self->block;

    if (is_body(g, b))
        add_params(self);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_op op = g->value_op[v];

        if (lies(self->models, v) != v ||
            (g->value_role[v] == MPL_PARAMETER && g->value_block[v] == b))
            continue;
        if (g->value_role[v] == MPL_WEIGHT)
            self->model->base += b == 0 ? slots(self->models, g->value_bytes[v]) : 0;
        else if (self->how[v] != 0 && g->value_block[v] != b)
            may_end(self, v) ? add_buffer(self, v, true) : (void)0;
        else if (self->how[v] != 0 && op == MPL_NONE && b == 0)
            add_buffer(self, v, true);
        else if (self->how[v] != 0 && op != MPL_NONE && g->op_block[op] == b &&
                 has_storage(self->models, v))
            add_buffer(self, v, false);
    }
}

/* ---- operations ---- */

/* Adds `op` as a maker, with the bytes needed at its step alone: its workspace and unread
 * outputs. */
static mpl_status add_outputs(maker *self, mpl_op op, uint32_t mine, uint64_t *carried)
{
    const mpl_graph *g = self->g;
    const uint64_t *extra = self->models->options.op_workspace_bytes;

    if (self->models->options.plan_workspaces && extra != NULL && !owns(g, op))
        self->model->extra[mine] = slots(self->models, extra[op]);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        if (v == MPL_NONE || lies(self->models, v) != v)
            continue;
        if (self->id[v] != MPL_NONE)
            MPL_PASS(mpl_order_add(self->ctx, &self->arcs.makers, self->id[v], mine));
        if (self->id[v] != MPL_NONE && mpl_is_chosen(g, v))
            *carried += slots(self->models, g->value_bytes[v]);
        else if (self->how[v] == 0 && !mpl_is_chosen(g, v))
            self->model->extra[mine] += slots(self->models, g->value_bytes[v]);
    }
    return MPL_OK;
}

/* Adds the arc from the operation of this block that makes v, itself or in its blocks, to
 * `mine`. */
static mpl_status add_before(maker *self, uint32_t mine, mpl_value v, const uint32_t *local)
{
    mpl_op op = v != MPL_NONE ? self->g->value_op[v] : MPL_NONE;

    if (op == MPL_NONE || self->g->op_block[op] != self->block)
        return MPL_OK;
    return mpl_order_add(self->ctx, &self->arcs.before, mine, local[op]);
}

static mpl_status add_all_before(maker *self, mpl_op op, uint32_t mine, const uint32_t *local)
{
    const mpl_graph *g = self->g;
    uint32_t first = owns(g, op) ? g->op_body[g->op_body_begin[op]] : MPL_NONE;
    mpl_op from = first != MPL_NONE ? g->block_op_begin[first] : op;

    for (mpl_op at = from; at <= op; at++)
        for (uint32_t i = g->op_in_begin[at]; i < g->op_in_begin[at + 1]; i++)
            MPL_PASS(add_before(self, mine, g->op_in[i], local));
    for (uint32_t b = first;
         b < g->n_blocks && g->block_op_begin[b] <= op && g->block_owner[b] <= op; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            MPL_PASS(add_before(self, mine, mpl_result(g, b, i), local));
    return MPL_OK;
}

/* Adds the ways of an operation without blocks to write output 0 over an operand. */
static mpl_status add_ways(maker *self, mpl_op op, uint32_t mine)
{
    const mpl_graph *g = self->g;
    mpl_value out = mpl_op_n_out(g, op) > 0 ? mpl_op_output(g, op, 0) : MPL_NONE;

    if (!self->models->options.in_place || lies(self->models, out) != out || out == MPL_NONE)
        return MPL_OK;
    self->model->saves[mine] = slots(self->models, g->value_bytes[out]);
    for (uint32_t i = 0; i < mpl_n_read(g, op); i++) {
        mpl_value in = lies(self->models, mpl_op_input(g, op, i));

        if (in == MPL_NONE || self->id[in] == MPL_NONE || self->model->kept[self->id[in]] ||
            !may_pair(self->models, self->block, in, out) ||
            !mpl_in_place_operand(g, self->models->alias.root, NULL, op, i))
            continue;
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.under, self->model->n_ways, self->id[in]));
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.ways, mine, self->model->n_ways++));
    }
    return MPL_OK;
}

/* A loop or case needs the bytes that its blocks need. Values read only on entry may end there;
 * values that a case reads may end at its own step. carried: bytes of results that lie in places of
 * their own. */
static mpl_status add_need(maker *self, mpl_op op, uint32_t mine, uint64_t carried)
{
    const mpl_graph *g = self->g;
    uint64_t need = 0, within = 0;
    uint32_t way = self->model->n_ways;
    bool at_end;

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        need = mpl_max_u64(need, self->models->need[g->op_body[k]]);
    for (uint32_t i = 0; i < self->n_touch && g->op_kind[op] != MPL_OP_while; i++)
        if ((self->touched[self->touch[i]] & WITHIN) != 0 && self->id[self->touch[i]] != MPL_NONE)
            within += self->model->bytes[self->id[self->touch[i]]];
    at_end = need < within + carried;
    self->model->extra[mine] += at_end ? 0 : need - within - carried;
    for (uint32_t i = 0; i < self->n_touch; i++) {
        uint32_t b = self->id[self->touch[i]];

        if (b == MPL_NONE || self->model->kept[b] ||
            (self->touched[self->touch[i]] != ON_ENTRY && !at_end))
            continue;
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.under, way, b));
        self->model->saves[mine] += self->model->bytes[b];
        self->model->n_ways = way + 1;
    }
    if (self->model->n_ways > way)
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.ways, mine, way));
    return MPL_OK;
}

static mpl_status add_op(maker *self, mpl_op op, uint32_t mine, const uint32_t *local)
{
    uint64_t carried = 0;

    self->model->op[mine] = op;
    list_reads(self, op);
    MPL_PASS(add_all_before(self, op, mine, local));
    MPL_PASS(add_outputs(self, op, mine, &carried));
    for (uint32_t i = 0; i < self->n_touch; i++)
        if (self->id[self->touch[i]] != MPL_NONE)
            MPL_PASS(mpl_order_add(self->ctx, &self->arcs.users, self->id[self->touch[i]], mine));
    return owns(self->g, op) ? add_need(self, op, mine, carried) : add_ways(self, op, mine);
}

static mpl_status fill(maker *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t n = 0, b = self->block, *local = NULL;

    MPL_TRY(mpl_new(self->ctx, local, g->n_ops));
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b)
            local[op] = n++;
    MPL_TRY(mpl_order_model_alloc(self->ctx, n, g->n_values, &self->model));
    self->model->n_buffers = 0;
    mark_values(self);
    add_buffers(self);
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b)
            MPL_TRY(add_op(self, op, local[op], local));
    MPL_TRY(mpl_order_model_finish(self->ctx, self->model, &self->arcs));
out:
    mpl_free(self->ctx, local);
    return st;
}

mpl_status mpl_block_model_new(const mpl_block_models *models, uint32_t b, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    maker x = {.ctx = models->ctx, .models = models, .g = models->g, .block = b};

    MPL_TRY(mpl_new_each(x.ctx, x.g->n_values, x.id, x.how, x.touched, x.touch));
    memset(x.id, 0xff, x.g->n_values * sizeof *x.id);
    MPL_TRY(fill(&x));
    *out = x.model, x.model = NULL;
out:
    mpl_order_model_free(x.ctx, x.model);
    mpl_order_arcs_fini(x.ctx, &x.arcs);
    mpl_free_each(x.ctx, x.id, x.how, x.touched, x.touch);
    return st;
}

uint64_t mpl_order_model_start(const mpl_order_model *model)
{
    uint64_t bytes = model->base;

    for (uint32_t b = 0; b < model->n_buffers; b++)
        bytes += model->from_start[b] ? model->bytes[b] : 0;
    return bytes;
}
