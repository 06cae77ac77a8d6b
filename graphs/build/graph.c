/* graph.c -- builds, checks and frees a graph. See graph.h. */
#include "graphs/build/graph_priv.h"

#include "graphs/build/views.h"

mpl_status mpl_graph_new(mpl_ctx *ctx, const char *name, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = NULL;

    MPL_TRY(mpl_new_each(ctx, 1, g, g->caps));
    MPL_TRY(mpl_copy_text(ctx, g->name, name));
    g->caps->n_slots = 16;
    MPL_TRY(mpl_new(ctx, g->caps->slot, g->caps->n_slots));
    memset(g->caps->slot, 0xff, g->caps->n_slots * sizeof *g->caps->slot);
    MPL_TRY(mpl_reserve(ctx, g->op_in_begin, g->caps->op_in_begin, 1));
    MPL_TRY(mpl_reserve(ctx, g->op_out_begin, g->caps->op_out_begin, 1));
    MPL_TRY(mpl_reserve(ctx, g->op_attr_begin, g->caps->op_attr_begin, 1));
    MPL_TRY(mpl_reserve(ctx, g->op_body_begin, g->caps->op_body_begin, 1));
    MPL_TRY(mpl_graph_new_top(ctx, g));
    *out = g, g = NULL;
out:
    mpl_graph_free(ctx, g);
    return st;
}

void mpl_graph_free(mpl_ctx *ctx, mpl_graph *g)
{
    if (g == NULL)
        return;
    for (uint32_t i = 0; i < g->n_ops; i++)
        mpl_free(ctx, g->op_name[i]);
    for (uint32_t i = 0; i < g->n_values; i++)
        mpl_free_each(ctx, g->value_name[i], g->value_data[i]);
    for (uint32_t i = 0; i < g->n_bound; i++)
        mpl_free(ctx, g->bound_input[i]);
    for (uint32_t i = 0; i < g->n_blocks; i++)
        mpl_free(ctx, g->block_name[i]);
    mpl_free_each(ctx, g->op_kind, g->op_name, g->op_in_begin, g->op_out_begin, g->op_attr_begin,
                  g->op_in, g->op_out, g->attr_key, g->attr_begin, g->attr_n, g->attr_int,
                  g->attr_float, g->attr_text, g->value_name, g->value_type, g->value_role,
                  g->value_shape, g->value_bytes, g->value_op, g->value_data, g->value_splat,
                  g->input, g->output, g->value_use_begin, g->value_use, g->bound_input, g->name,
                  g->caps != NULL ? g->caps->slot : NULL, g->caps, g->block_name, g->block_parent,
                  g->block_owner, g->block_param_begin, g->block_n_params, g->block_result_begin,
                  g->block_n_results, g->block_op_begin, g->block_op_end, g->block_value_begin,
                  g->block_value_end, g->block_param, g->block_result, g->op_block, g->value_block,
                  g->op_body_begin, g->op_body, g);
}

bool mpl_op_lone_output(const mpl_graph *g, mpl_op op)
{
    for (uint32_t i = g->op_out_begin[op] + 1; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE)
            return false;
    return true;
}

bool mpl_is_bound(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->n_bound; i++)
        if (strcmp(g->bound_input[i], g->value_name[v]) == 0)
            return true;
    return false;
}

bool mpl_same_form(const mpl_graph *g, mpl_value a, mpl_value b)
{
    return g->value_type[a] == g->value_type[b] &&
           mpl_shape_equal(&g->value_shape[a], &g->value_shape[b]);
}

mpl_status mpl_graph_add_value(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_role role,
                               mpl_type type, const mpl_shape *shape, mpl_value *out)
{
    const mpl_shape dims = *shape; /* may lie in the graph's arrays, which move */
    char *copy = NULL;
    uint64_t bytes;

    mpl_assert(role == MPL_INPUT || role == MPL_WEIGHT);
    MPL_PASS(mpl_graph_check_new_name(ctx, g, name));
    MPL_PASS(mpl_graph_bytes_of(ctx, name, type, shape, &bytes));
    MPL_PASS(mpl_graph_reserve_values(ctx, g, 1));
    if (role == MPL_INPUT)
        MPL_PASS(mpl_reserve(ctx, g->input, g->caps->input, (size_t)g->n_inputs + 1));
    MPL_PASS(mpl_copy_text(ctx, copy, name));
    *out = mpl_graph_push_value(g, copy, role, type, &dims, bytes, MPL_NONE, 0);
    if (role == MPL_INPUT)
        g->input[g->n_inputs++] = *out;
    return MPL_OK;
}

static mpl_status copy_data(mpl_ctx *ctx, mpl_graph *g, mpl_value v, const void *data, bool splat)
{
    uint64_t bytes = splat ? mpl_type_bytes((mpl_type)g->value_type[v]) : g->value_bytes[v];
    void *copy = NULL;

    MPL_PASS((copy = mpl_alloc(ctx, bytes, 1)) != NULL ? MPL_OK : MPL_EMEM);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    mpl_free(ctx, g->value_data[v]);
    g->value_data[v] = copy;
    g->value_splat[v] = splat;
    return MPL_OK;
}

mpl_status mpl_graph_add_const(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_type type,
                               const mpl_shape *shape, const void *data, bool splat, mpl_value *out)
{
    MPL_PASS(mpl_graph_add_value(ctx, g, name, MPL_WEIGHT, type, shape, out));
    return copy_data(ctx, g, *out, data, splat);
}

mpl_status mpl_graph_bind_input(mpl_ctx *ctx, mpl_graph *g, mpl_value v, const void *data)
{
    mpl_status st = MPL_OK;
    char *name = NULL;
    uint32_t at = 0;

    mpl_assert(g->value_role[v] == MPL_INPUT);
    MPL_TRY(mpl_reserve(ctx, g->bound_input, g->caps->bound_input, (size_t)g->n_bound + 1));
    MPL_TRY(mpl_copy_text(ctx, name, g->value_name[v]));
    MPL_TRY(copy_data(ctx, g, v, data, false));
    g->bound_input[g->n_bound++] = name, name = NULL;
    g->value_role[v] = MPL_WEIGHT;
    while (g->input[at] != v)
        at++;
    memmove(g->input + at, g->input + at + 1, (g->n_inputs - at - 1) * sizeof *g->input);
    g->n_inputs--;
out:
    mpl_free(ctx, name);
    return st;
}

mpl_value mpl_graph_file_input(const mpl_graph *g, uint32_t index)
{
    mpl_value last = MPL_NONE, next;

    for (uint32_t i = 0; i <= index; i++, last = next) {
        next = MPL_NONE;
        for (uint32_t j = 0; j < g->n_inputs + g->n_bound; j++) {
            mpl_value v =
                j < g->n_inputs ? g->input[j] : mpl_graph_find(g, g->bound_input[j - g->n_inputs]);

            if ((last == MPL_NONE || v > last) && v < next)
                next = v;
        }
        if (next == MPL_NONE)
            return MPL_NONE;
    }
    return last;
}

static mpl_status reserve_op(mpl_ctx *ctx, mpl_graph *g, uint32_t n_in, uint32_t n_out,
                             uint32_t n_bodies)
{
    struct mpl_graph_caps *caps = g->caps;
    size_t n = (size_t)g->n_ops + 1;

    MPL_PASS(mpl_reserve(ctx, g->op_kind, caps->op_kind, n));
    MPL_PASS(mpl_reserve(ctx, g->op_name, caps->op_name, n));
    MPL_PASS(mpl_reserve(ctx, g->op_in_begin, caps->op_in_begin, n + 1));
    MPL_PASS(mpl_reserve(ctx, g->op_out_begin, caps->op_out_begin, n + 1));
    MPL_PASS(mpl_reserve(ctx, g->op_attr_begin, caps->op_attr_begin, n + 1));
    /* One more than there are: `op_in + op_in_begin[op]` is no address if the array is null. */
    MPL_PASS(mpl_reserve(ctx, g->op_in, caps->op_in, (size_t)g->op_in_begin[g->n_ops] + n_in + 1));
    MPL_PASS(
        mpl_reserve(ctx, g->op_out, caps->op_out, (size_t)g->op_out_begin[g->n_ops] + n_out + 1));
    MPL_PASS(mpl_reserve(ctx, g->op_block, caps->op_block, n));
    MPL_PASS(mpl_reserve(ctx, g->op_body_begin, caps->op_body_begin, n + 1));
    return mpl_reserve(ctx, g->op_body, caps->op_body,
                       (size_t)g->op_body_begin[g->n_ops] + n_bodies + 1);
}

/* Appends a copy of one attribute; the caller updates op_attr_begin. */
static mpl_status push_attr(mpl_ctx *ctx, mpl_graph *g, const mpl_attr *attr)
{
    struct mpl_graph_caps *caps = g->caps;
    mpl_attr_kind kind = mpl_attr_kind_of(attr->key);
    bool is_int = kind == MPL_ATTR_INT || kind == MPL_ATTR_INTS;
    bool is_float = kind == MPL_ATTR_FLOAT || kind == MPL_ATTR_FLOATS;
    uint32_t begin = is_int ? caps->n_ints : is_float ? caps->n_floats : caps->n_text;

    mpl_assert(is_int     ? attr->ints != NULL || attr->n == 0
               : is_float ? attr->floats != NULL || attr->n == 0
                          : attr->text != NULL);
    MPL_PASS(mpl_reserve(ctx, g->attr_key, caps->attr_key, (size_t)caps->n_attrs + 1));
    MPL_PASS(mpl_reserve(ctx, g->attr_begin, caps->attr_begin, (size_t)caps->n_attrs + 1));
    MPL_PASS(mpl_reserve(ctx, g->attr_n, caps->attr_n, (size_t)caps->n_attrs + 1));
    if (is_int) {
        MPL_PASS(mpl_reserve(ctx, g->attr_int, caps->attr_int, (size_t)begin + attr->n + 1));
        if (attr->n > 0)
            memcpy(g->attr_int + begin, attr->ints, attr->n * sizeof *attr->ints);
        caps->n_ints += attr->n;
    } else if (is_float) {
        MPL_PASS(mpl_reserve(ctx, g->attr_float, caps->attr_float, (size_t)begin + attr->n + 1));
        if (attr->n > 0)
            memcpy(g->attr_float + begin, attr->floats, attr->n * sizeof *attr->floats);
        caps->n_floats += attr->n;
    } else {
        MPL_PASS(mpl_reserve(ctx, g->attr_text, caps->attr_text, (size_t)begin + attr->n + 1));
        memcpy(g->attr_text + begin, attr->text, attr->n);
        g->attr_text[begin + attr->n] = '\0';
        caps->n_text += attr->n + 1;
    }
    g->attr_key[caps->n_attrs] = (uint16_t)attr->key;
    g->attr_begin[caps->n_attrs] = begin;
    g->attr_n[caps->n_attrs] = attr->n;
    caps->n_attrs++;
    return MPL_OK;
}

static mpl_status check_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op_kind kind, const char *name,
                           uint32_t n_in, const mpl_value *in, uint32_t n_out,
                           const char *const *out_name)
{
    const mpl_op_info *info = &mpl_op_table[kind];

    if ((info->traits & MPL_PROGRAM) != 0 && !g->program)
        return MPL_REFUSE(
            ctx,
            "operation '%s': %s stands in a program ('program NAME'), not in a graph, whose values "
            "never change",
            name, info->name);
    if (!mpl_count_fits(n_in, info->min_in, info->max_in) ||
        !mpl_count_fits(n_out, info->min_out, info->max_out))
        return MPL_REFUSE(
            ctx, "operation '%s' (%s) has %u inputs and %u outputs; it takes %u to %u and %u to %u",
            name, info->name, n_in, n_out, info->min_in, info->max_in, info->min_out,
            info->max_out);
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] == MPL_NONE ? i < info->min_in : in[i] >= g->n_values)
            return MPL_REFUSE(ctx, "operation '%s' (%s): input %u is missing", name, info->name, i);
        else if (in[i] != MPL_NONE)
            MPL_PASS(mpl_graph_check_seen(ctx, g, in[i], g->caps->open, name));
    for (uint32_t i = 0; i < n_out; i++) {
        if (out_name[i] == NULL && i < info->min_out)
            return MPL_REFUSE(ctx, "operation '%s' (%s): output %u has no name", name, info->name,
                              i);
        if (out_name[i] != NULL)
            MPL_PASS(mpl_graph_check_new_name(ctx, g, out_name[i]));
        for (uint32_t j = 0; j < i && out_name[i] != NULL; j++)
            if (out_name[j] != NULL && strcmp(out_name[i], out_name[j]) == 0)
                return MPL_REFUSE(ctx, "value '%s' is made twice; names must be unique",
                                  out_name[i]);
    }
    return MPL_OK;
}

/* Runs the shape rule for the operation being added. */
static mpl_status infer(mpl_ctx *ctx, const mpl_graph *g, const char *name, uint32_t n_in,
                        const mpl_value *in, uint32_t n_bodies, const uint32_t *body,
                        uint32_t n_out, mpl_shape *out_shape, mpl_type *out_type)
{
    mpl_status st = MPL_OK;
    const mpl_shape **in_shape = NULL;
    mpl_type *in_type = NULL;

    MPL_TRY(mpl_new_each(ctx, n_in, in_shape, in_type));
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] != MPL_NONE) {
            in_shape[i] = &g->value_shape[in[i]];
            in_type[i] = (mpl_type)g->value_type[in[i]];
        }
    st = mpl_shape_of(ctx, &(mpl_shape_call){g, g->n_ops, n_in, n_out, in_shape, in_type, n_bodies,
                                             body, out_shape, out_type, 0});
    if (st == MPL_EINPUT)
        MPL_FAIL(ctx, st, "operation '%.100s' (%s): %s", name,
                 mpl_op_table[g->op_kind[g->n_ops]].name, ctx->message);
out:
    mpl_free_each(ctx, in_shape, in_type);
    return st;
}

mpl_status mpl_graph_add_control(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                                 uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                                 const mpl_attr *attr, uint32_t n_bodies, const uint32_t *body,
                                 uint32_t n_out, const char *const *out_name, mpl_value *out)
{
    mpl_status st = MPL_OK;
    struct mpl_graph_caps before = *g->caps;
    char *op_name = NULL, **names = NULL;
    mpl_shape *out_shape = NULL;
    mpl_type *out_type = NULL;
    uint64_t *bytes = NULL;
    mpl_op op = g->n_ops;

    MPL_TRY(check_op(ctx, g, kind, name, n_in, in, n_out, out_name));
    MPL_TRY(mpl_graph_check_bodies(ctx, g, kind, name, n_bodies, body));
    MPL_TRY(reserve_op(ctx, g, n_in, n_out, n_bodies));
    MPL_TRY(mpl_graph_reserve_values(ctx, g, n_out));
    MPL_TRY(mpl_new_each(ctx, n_out, out_shape, out_type, bytes, names));
    MPL_TRY(mpl_copy_text(ctx, op_name, name));
    for (uint32_t i = 0; i < n_attr; i++)
        MPL_TRY(push_attr(ctx, g, &attr[i]));
    g->op_kind[op] = (uint16_t)kind;
    g->op_attr_begin[op + 1] = g->caps->n_attrs;
    MPL_TRY(infer(ctx, g, name, n_in, in, n_bodies, body, n_out, out_shape, out_type));
    for (uint32_t i = 0; i < n_out; i++)
        if (out_name[i] != NULL) {
            MPL_TRY(mpl_graph_bytes_of(ctx, out_name[i], out_type[i], &out_shape[i], &bytes[i]));
            MPL_TRY(mpl_copy_text(ctx, names[i], out_name[i]));
        }

    /* Nothing from here on can fail. */
    g->op_name[op] = op_name, op_name = NULL;
    g->op_in_begin[op + 1] = g->op_in_begin[op] + n_in;
    g->op_out_begin[op + 1] = g->op_out_begin[op] + n_out;
    if (n_in > 0)
        memcpy(g->op_in + g->op_in_begin[op], in, n_in * sizeof *in);
    g->op_block[op] = g->caps->open;
    g->op_body_begin[op + 1] = g->op_body_begin[op] + n_bodies;
    for (uint32_t i = 0; i < n_bodies; i++) {
        g->op_body[g->op_body_begin[op] + i] = body[i];
        g->block_owner[body[i]] = op;
    }
    for (uint32_t i = 0; i < n_out; i++) {
        mpl_value v = MPL_NONE;

        if (names[i] != NULL)
            v = mpl_graph_push_value(g, names[i], MPL_TEMPORARY, out_type[i], &out_shape[i],
                                     bytes[i], op, g->caps->open),
            names[i] = NULL;
        g->op_out[g->op_out_begin[op] + i] = v;
        if (out != NULL)
            out[i] = v;
    }
    g->n_ops++;
out:
    if (st != MPL_OK) { /* undo the attributes of the failed operation */
        g->caps->n_attrs = before.n_attrs;
        g->caps->n_ints = before.n_ints;
        g->caps->n_floats = before.n_floats;
        g->caps->n_text = before.n_text;
    }
    for (uint32_t i = 0; i < n_out && names != NULL; i++)
        mpl_free(ctx, names[i]);
    mpl_free_each(ctx, op_name, names, out_shape, out_type, bytes);
    return st;
}

mpl_status mpl_graph_add_op(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                            uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                            const mpl_attr *attr, uint32_t n_out, const char *const *out_name,
                            mpl_value *out)
{
    return mpl_graph_add_control(ctx, g, kind, name, n_in, in, n_attr, attr, 0, NULL, n_out,
                                 out_name, out);
}

mpl_status mpl_graph_add_output(mpl_ctx *ctx, mpl_graph *g, mpl_value v)
{
    MPL_PASS(mpl_graph_check_seen(ctx, g, v, 0, "the graph's output"));
    MPL_PASS(mpl_reserve(ctx, g->output, g->caps->output, (size_t)g->n_outputs + 1));
    g->output[g->n_outputs++] = v;
    if (g->value_role[v] == MPL_TEMPORARY)
        g->value_role[v] = MPL_OUTPUT;
    return MPL_OK;
}

/* Item i of what `op` reads, including block results: *v, MPL_NONE if omitted; false at the end. */
static bool next_read(const mpl_graph *g, mpl_op op, uint32_t i, mpl_value *v)
{
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];

    if (i < n_in)
        return *v = g->op_in[g->op_in_begin[op] + i], true;
    i -= n_in;
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        uint32_t b = g->op_body[k];

        if (i < g->block_n_results[b])
            return *v = g->block_result[g->block_result_begin[b] + i], true;
        i -= g->block_n_results[b];
    }
    return false;
}

mpl_status mpl_graph_index_uses(mpl_ctx *ctx, mpl_graph *g)
{
    mpl_status st = MPL_OK;
    uint32_t *begin = NULL;
    size_t n_reads = 0;
    mpl_op *use = NULL;
    mpl_value v;

    MPL_TRY(mpl_new(ctx, begin, (size_t)g->n_values + 1));
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; next_read(g, op, i, &v); i++, n_reads++)
            if (v != MPL_NONE)
                begin[v + 1]++;
    MPL_TRY(mpl_new(ctx, use, n_reads));
    for (v = 0; v < g->n_values; v++)
        begin[v + 1] += begin[v];
    /* Filling moves each begin to the next one's; shift back afterwards. */
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; next_read(g, op, i, &v); i++)
            if (v != MPL_NONE)
                use[begin[v]++] = op;
    memmove(begin + 1, begin, g->n_values * sizeof *begin);
    begin[0] = 0;
    mpl_free_each(ctx, g->value_use_begin, g->value_use);
    g->value_use_begin = begin, begin = NULL;
    g->value_use = use, use = NULL;
out:
    mpl_free_each(ctx, begin, use);
    return st;
}

mpl_status mpl_graph_check_ssa(mpl_ctx *ctx, const mpl_graph *g)
{
    if (!g->program)
        return MPL_OK;
    return MPL_REFUSE(
        ctx, "'%.200s' is a program, which changes its values: the pass tensor_ssa must come first",
        g->name);
}

/* Checks that views stay within their roots, and that written views have distinct elements. */
static mpl_status check_program(mpl_ctx *ctx, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    mpl_views *views = NULL;

    MPL_TRY(mpl_views_new(ctx, g, &views));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if ((mpl_op_table[g->op_kind[op]].traits & MPL_MUTATES) != 0 &&
            !mpl_strided_distinct(&views->of_root[g->op_in[g->op_in_begin[op]]]))
            MPL_FAIL(ctx, MPL_EINPUT,
                     "operation '%s' (%s) writes through a view that has an element twice",
                     g->op_name[op], mpl_op_table[g->op_kind[op]].name);
out:
    mpl_views_free(ctx, views);
    return st;
}

mpl_status mpl_graph_finish(mpl_ctx *ctx, mpl_graph *g)
{
    if (g->n_outputs == 0)
        return MPL_REFUSE(ctx, "graph '%s' has no output; name at least one", g->name);
    MPL_PASS(mpl_graph_check_blocks(ctx, g));
    if (g->program)
        MPL_PASS(check_program(ctx, g));
    g->block_op_end[0] = g->n_ops;
    g->block_value_end[0] = g->n_values;
    MPL_PASS(mpl_graph_index_uses(ctx, g));
    MPL_PASS(mpl_graph_check_updates(ctx, g));
    mpl_assert_ok(mpl_graph_ok(g));
    return MPL_OK;
}

static uint64_t hash_kind(uint64_t h, const mpl_graph *g, mpl_value v)
{
    const char *type = mpl_type_name((mpl_type)g->value_type[v]);

    h = mpl_hash(h, type, strlen(type) + 1);
    h = mpl_hash(h, &g->value_role[v], sizeof g->value_role[v]);
    h = mpl_hash(h, &g->value_shape[v].rank, sizeof g->value_shape[v].rank);
    return mpl_hash(h, g->value_shape[v].dim,
                    g->value_shape[v].rank * sizeof *g->value_shape[v].dim);
}

/* Identifies parameters and results of blocks by id. */
static uint64_t hash_blocks(const mpl_graph *g, uint64_t h)
{
    for (mpl_value v = 0; v < g->n_values; v++)
        h = hash_kind(h, g, v);
    h = mpl_hash(h, g->op_block, g->n_ops * sizeof *g->op_block);
    h = mpl_hash(h, g->value_block, g->n_values * sizeof *g->value_block);
    h = mpl_hash(h, g->op_body_begin, (g->n_ops + 1) * sizeof *g->op_body_begin);
    h = mpl_hash(h, g->op_body, g->op_body_begin[g->n_ops] * sizeof *g->op_body);
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        h = mpl_hash(h, g->block_param + g->block_param_begin[b],
                     g->block_n_params[b] * sizeof *g->block_param);
        h = mpl_hash(h, g->block_result + g->block_result_begin[b],
                     g->block_n_results[b] * sizeof *g->block_result);
    }
    return h;
}

static uint64_t hash_attr(uint64_t h, mpl_attr attr)
{
    const char *key = mpl_attr_name(attr.key);

    h = mpl_hash(h, key, strlen(key) + 1);
    h = mpl_hash(h, &attr.n, sizeof attr.n);
    if (attr.ints != NULL)
        h = mpl_hash(h, attr.ints, attr.n * sizeof *attr.ints);
    for (uint32_t i = 0; i < attr.n && attr.floats != NULL; i++) {
        float x = (float)attr.floats[i];

        h = mpl_hash(h, &x, sizeof x);
    }
    return attr.text != NULL ? mpl_hash(h, attr.text, attr.n) : h;
}

/* Index of v in list[0 .. n), or n. */
static uint32_t place_of(mpl_value v, const mpl_value *list, uint32_t n)
{
    uint32_t i = 0;

    while (i < n && list[i] != v)
        i++;
    return i;
}

/* Hashes a value by its place, not its id: output of an operation, input of the graph, or operand
 * of its first reader. */
static uint64_t hash_value(uint64_t h, const mpl_graph *g, mpl_value v)
{
    uint32_t name[2] = {MPL_NONE, MPL_NONE}; /* number, operation */

    if (v == MPL_NONE)
        return mpl_hash(h, name, sizeof name);
    if (g->value_op[v] != MPL_NONE) {
        name[1] = g->value_op[v];
        name[0] = place_of(v, g->op_out + g->op_out_begin[name[1]],
                           g->op_out_begin[name[1] + 1] - g->op_out_begin[name[1]]);
    } else if (g->value_role[v] == MPL_INPUT) {
        name[0] = place_of(v, g->input, g->n_inputs);
    } else if (g->value_use_begin[v] < g->value_use_begin[v + 1]) {
        name[1] = g->value_use[g->value_use_begin[v]];
        name[0] = place_of(v, g->op_in + g->op_in_begin[name[1]],
                           g->op_in_begin[name[1] + 1] - g->op_in_begin[name[1]]);
    }
    return hash_kind(mpl_hash(h, name, sizeof name), g, v);
}

static uint64_t hash_values(uint64_t h, const mpl_graph *g, const mpl_value *list, uint32_t n)
{
    h = mpl_hash(h, &n, sizeof n);
    for (uint32_t i = 0; i < n; i++)
        h = hash_value(h, g, list[i]);
    return h;
}

uint64_t mpl_graph_hash(const mpl_graph *g)
{
    uint64_t h = mpl_hash(MPL_HASH_SEED, &g->n_ops, sizeof g->n_ops);

    if (g->program)
        h = mpl_hash(h, "program", 7);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        const char *kind = mpl_op_table[g->op_kind[op]].name;

        h = mpl_hash(h, kind, strlen(kind) + 1);
        for (uint32_t i = g->op_attr_begin[op]; i < g->op_attr_begin[op + 1]; i++)
            h = hash_attr(h, mpl_attr_at(g, i));
        h = hash_values(h, g, g->op_in + g->op_in_begin[op],
                        g->op_in_begin[op + 1] - g->op_in_begin[op]);
        h = hash_values(h, g, g->op_out + g->op_out_begin[op],
                        g->op_out_begin[op + 1] - g->op_out_begin[op]);
    }
    if (g->n_blocks > 1)
        h = hash_blocks(g, h);
    h = hash_values(h, g, g->input, g->n_inputs);
    return hash_values(h, g, g->output, g->n_outputs);
}
