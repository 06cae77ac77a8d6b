/* onnx_write_control.c -- writes `while` as Loop or Scan, `case` as If, and fused operations as
 * several nodes.
 *
 * A `while` that only scans and does not read the round's number becomes a Scan. Any other becomes
 * a Loop, whose body slices the scans itself. If fewer rounds may run than rows have room for,
 * zeros are appended after the Loop. An exit test becomes part of the condition. A round that it
 * ends counts as never begun: it carries the previous values and stacks zeros. A `case` becomes an
 * If, or nested Ifs in else branches; the last branch also covers any larger index.
 *
 * Source   ONNX, docs/Operators.md: Loop, Scan, If. */
#include "graphs/io/onnx/write/onnx_write_priv.h"
#include "graphs/ops/matrix/conv.h"

static mpl_status add_node(writer *out, onnx_nodes *to, Onnx__NodeProto *node)
{
    Onnx__NodeProto **item;

    if (to->n == to->cap) {
        MPL_PASS(part_new(out, item, 2 * to->cap + 8));
        if (to->n > 0)
            memcpy(item, to->item, to->n * sizeof *item);
        to->item = item;
        to->cap = 2 * to->cap + 8;
    }
    to->item[to->n++] = node;
    return MPL_OK;
}

/* A unique new name. */
static mpl_status new_name(writer *w, const char *base, const char *suffix, char **out)
{
    size_t size = strlen(base) + strlen(suffix) + 16;

    MPL_PASS(part_new(w, *out, size));
    do
        snprintf(*out, size, "%s/%s~%u", base, suffix, w->n_names++);
    while (mpl_graph_find(w->g, *out) != MPL_NONE);
    return MPL_OK;
}

/* A node with these inputs and outputs, without a name, since node names are unique. */
static mpl_status new_node(writer *w, onnx_nodes *to, const char *type, size_t n_in,
                           char *const *in, size_t n_out, char *const *out, Onnx__NodeProto **made)
{
    Onnx__NodeProto *node;
    enum { MOST_ATTRS = 8 };

    MPL_PASS(part_new(w, node, 1));
    onnx__node_proto__init(node);
    MPL_PASS(part_new(w, node->input, n_in));
    MPL_PASS(part_new(w, node->output, n_out));
    MPL_PASS(part_new(w, node->attribute, MOST_ATTRS));
    node->op_type = (char *)type;
    node->n_input = n_in, node->n_output = n_out;
    for (size_t i = 0; i < n_in; i++)
        node->input[i] = in[i];
    for (size_t i = 0; i < n_out; i++)
        node->output[i] = out[i];
    MPL_PASS(add_node(w, to, node));
    if (made != NULL)
        *made = node;
    return MPL_OK;
}

static mpl_status int_attr(writer *out, Onnx__NodeProto *node, const char *name, int64_t x)
{
    return onnx_add_attr(out, node, name, strlen(name), &MPL_INT(axis, x));
}

static mpl_status ints_attr(writer *out, Onnx__NodeProto *node, const char *name, uint32_t n,
                            const int64_t *ints)
{
    return onnx_add_attr(out, node, name, strlen(name), &MPL_INTS(axes, n, ints));
}

static mpl_status new_attr(writer *w, Onnx__NodeProto *node, const char *name,
                           Onnx__AttributeProto__AttributeType type, Onnx__AttributeProto **out)
{
    MPL_PASS(int_attr(w, node, name, 0));
    *out = node->attribute[node->n_attribute - 1];
    (*out)->has_i = false;
    (*out)->type = type;
    return MPL_OK;
}

static mpl_status graph_attr(writer *out, Onnx__NodeProto *node, const char *name,
                             Onnx__GraphProto *graph)
{
    Onnx__AttributeProto *a;

    MPL_PASS(new_attr(out, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH, &a));
    a->g = graph;
    return MPL_OK;
}

/* A node with one newly named output; *out may be one of the inputs. */
static mpl_status step(writer *w, onnx_nodes *to, const char *type, const char *base, size_t n_in,
                       char *const *in, char **out)
{
    char *name;

    MPL_PASS(new_name(w, base, type, &name));
    MPL_PASS(new_node(w, to, type, n_in, in, 1, &name, NULL));
    *out = name;
    return MPL_OK;
}

/* A constant: one whole number, or a list of n >= 1. */
static mpl_status whole(writer *w, onnx_nodes *to, const char *base, int64_t x, char **out)
{
    MPL_PASS(step(w, to, "Constant", base, 0, NULL, out));
    return int_attr(w, to->item[to->n - 1], "value_int", x);
}

static mpl_status wholes(writer *w, onnx_nodes *to, const char *base, uint32_t n, const int64_t *x,
                         char **out)
{
    MPL_PASS(step(w, to, "Constant", base, 0, NULL, out));
    return ints_attr(w, to->item[to->n - 1], "value_ints", n, x);
}

/* ---- nested graphs ---- */

mpl_status onnx_describe(writer *w, const char *name, mpl_type type, const mpl_shape *shape,
                         Onnx__ValueInfoProto **out)
{
    Onnx__ValueInfoProto *info;
    Onnx__TypeProto__Tensor *tensor;
    Onnx__TensorShapeProto__Dimension *dim;

    MPL_PASS(part_new(w, info, 1));
    onnx__value_info_proto__init(info);
    info->name = (char *)name;
    MPL_PASS(part_new(w, info->type, 1));
    onnx__type_proto__init(info->type);
    MPL_PASS(part_new(w, tensor, 1));
    onnx__type_proto__tensor__init(tensor);
    info->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    info->type->tensor_type = tensor;
    tensor->has_elem_type = true;
    tensor->elem_type = onnx_type_number(type);
    MPL_PASS(part_new(w, tensor->shape, 1));
    onnx__tensor_shape_proto__init(tensor->shape);
    MPL_PASS(part_new(w, tensor->shape->dim, shape->rank));
    tensor->shape->n_dim = shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++) {
        MPL_PASS(part_new(w, dim, 1));
        onnx__tensor_shape_proto__dimension__init(dim);
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        dim->dim_value = shape->dim[i];
        tensor->shape->dim[i] = dim;
    }
    *out = info;
    return MPL_OK;
}

static mpl_status describe_value(writer *w, const char *name, mpl_value v,
                                 Onnx__ValueInfoProto **out)
{
    return onnx_describe(w, name, (mpl_type)w->g->value_type[v], &w->g->value_shape[v], out);
}

static mpl_status new_graph(writer *w, const char *name, size_t n_in, size_t n_out,
                            Onnx__GraphProto **out)
{
    MPL_PASS(part_new(w, *out, 1));
    onnx__graph_proto__init(*out);
    (*out)->name = (char *)name;
    MPL_PASS(part_new(w, (*out)->input, n_in));
    return part_new(w, (*out)->output, n_out);
}

static void set_nodes(Onnx__GraphProto *graph, const onnx_nodes *nodes)
{
    graph->n_node = nodes->n;
    graph->node = nodes->item;
}

static mpl_status add_input(writer *out, Onnx__GraphProto *graph, mpl_value v)
{
    return describe_value(out, out->g->value_name[v], v, &graph->input[graph->n_input++]);
}

/* Adds `text` as the next output of a graph. ONNX requires that the graph makes it, and that it is
 * listed once; otherwise an Identity is added, which the reader skips. */
static mpl_status add_output(writer *out, Onnx__GraphProto *graph, onnx_nodes *nodes,
                             const char *base, char *text, bool made_here, mpl_type type,
                             const mpl_shape *shape)
{
    for (size_t i = 0; i < graph->n_output; i++)
        made_here = made_here && strcmp(graph->output[i]->name, text) != 0;
    if (!made_here) {
        MPL_PASS(step(out, nodes, "Identity", base, 1, &text, &text));
        nodes->item[nodes->n - 1]->doc_string = (char *)ONNX_SAME_VALUE;
    }
    MPL_PASS(onnx_describe(out, text, type, shape, &graph->output[graph->n_output]));
    graph->n_output++;
    return MPL_OK;
}

/* Adds value v of this block or of an outer one. */
static mpl_status add_result(writer *out, Onnx__GraphProto *graph, onnx_nodes *nodes,
                             const char *base, uint32_t block, mpl_value v)
{
    const mpl_graph *g = out->g;

    return add_output(out, graph, nodes, base, g->value_name[v],
                      g->value_block[v] == block && g->value_op[v] != MPL_NONE,
                      (mpl_type)g->value_type[v], &g->value_shape[v]);
}

static mpl_status add_block(writer *out, uint32_t block, onnx_nodes *nodes)
{
    const mpl_graph *g = out->g;

    for (mpl_op op = g->block_op_begin[block]; op < g->block_op_end[block]; op++)
        if (g->op_block[op] == block)
            MPL_PASS(onnx_add_nodes(out, op, nodes));
    return MPL_OK;
}

/* ---- case ---- */

/* Adds the values v[n] as outputs of a graph. */
static mpl_status add_results(writer *out, Onnx__GraphProto *graph, onnx_nodes *nodes,
                              const char *base, uint32_t block, uint32_t n, const mpl_value *v)
{
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(add_result(out, graph, nodes, base, block, v[i]));
    return MPL_OK;
}

static mpl_status add_choice(writer *w, mpl_op op, char *index, uint32_t from, onnx_nodes *to,
                             char *const *out);

/* A graph of branch `from`, of all branches from there on, or of the bypass. */
typedef enum part_kind { BRANCH, REST, BYPASS } part_kind;

static mpl_status make_part(writer *w, mpl_op op, char *index, uint32_t from, part_kind kind,
                            Onnx__GraphProto **out)
{
    const mpl_graph *g = w->g;
    uint32_t b = g->op_body[g->op_body_begin[op] + from], n = g->block_n_results[b];
    const char *base = g->block_name[b];
    const mpl_value *result = g->block_result + g->block_result_begin[b];
    onnx_nodes nodes = {0};
    char **name, *graph_name = g->block_name[b];

    if (kind != BRANCH)
        MPL_PASS(new_name(w, base, "graph", &graph_name));
    MPL_PASS(new_graph(w, graph_name, 0, n, out));
    if (kind == BRANCH) {
        MPL_PASS(add_block(w, b, &nodes));
        MPL_PASS(add_results(w, *out, &nodes, base, b, n, result));
    } else if (kind == BYPASS)
        MPL_PASS(add_results(w, *out, &nodes, base, b, n, g->op_in + g->op_in_begin[op] + 1));
    else {
        MPL_PASS(part_new(w, name, n));
        for (uint32_t i = 0; i < n; i++)
            MPL_PASS(new_name(w, base, "choice", &name[i]));
        MPL_PASS(add_choice(w, op, index, from, &nodes, name));
        for (uint32_t i = 0; i < n; i++) {
            MPL_PASS(describe_value(w, name[i], result[i], &(*out)->output[i]));
            (*out)->n_output++;
        }
    }
    set_nodes(*out, &nodes);
    return MPL_OK;
}

static mpl_status add_if(writer *w, char *condition, Onnx__GraphProto *on, Onnx__GraphProto *off,
                         onnx_nodes *to, char *const *out)
{
    Onnx__NodeProto *node;

    MPL_PASS(new_node(w, to, "If", 1, &condition, on->n_output, out, &node));
    MPL_PASS(graph_attr(w, node, "then_branch", on));
    return graph_attr(w, node, "else_branch", off);
}

/* Branches from `from` on: an If between the first and the rest; the last one needs no test. */
static mpl_status add_choice(writer *w, mpl_op op, char *index, uint32_t from, onnx_nodes *to,
                             char *const *out)
{
    const mpl_graph *g = w->g;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op],
             b = g->op_body[g->op_body_begin[op] + from];
    Onnx__GraphProto *on, *off;
    char *number, *test;

    if (from + 1 == n) {
        MPL_PASS(add_block(w, b, to));
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            MPL_PASS(new_node(w, to, "Identity", 1,
                              &g->value_name[g->block_result[g->block_result_begin[b] + i]], 1,
                              &out[i], NULL));
        return MPL_OK;
    }
    MPL_PASS(whole(w, to, g->op_name[op], from, &number));
    MPL_PASS(step(w, to, "Equal", g->op_name[op], 2, (char *[]){index, number}, &test));
    MPL_PASS(make_part(w, op, index, from, BRANCH, &on));
    MPL_PASS(make_part(w, op, index, from + 1, from + 2 == n ? BRANCH : REST, &off));
    return add_if(w, test, on, off, to, out);
}

/* The names of n outputs; unused ones get new names. */
static mpl_status name_outputs(writer *w, const char *base, uint32_t n, const mpl_value *made,
                               char ***out)
{
    MPL_PASS(part_new(w, *out, n));
    for (uint32_t i = 0; i < n; i++)
        if (made[i] != MPL_NONE)
            (*out)[i] = w->g->value_name[made[i]];
        else
            MPL_PASS(new_name(w, base, "unused", &(*out)[i]));
    return MPL_OK;
}

static mpl_status add_case(writer *w, mpl_op op, onnx_nodes *to)
{
    const mpl_graph *g = w->g;
    const char *base = g->op_name[op];
    mpl_value v = g->op_in[g->op_in_begin[op]];
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    bool bypass = g->op_in_begin[op + 1] - g->op_in_begin[op] > 1;
    Onnx__GraphProto *on, *off;
    char *index = g->value_name[v], *zero, *test, **out;

    MPL_PASS(name_outputs(w, base, n_out, g->op_out + g->op_out_begin[op], &out));
    if (g->value_type[v] == MPL_TYPE_bool && n == 2) {
        MPL_PASS(make_part(w, op, index, 1, BRANCH, &on));
        MPL_PASS(make_part(w, op, index, 0, BRANCH, &off));
        return add_if(w, index, on, off, to, out);
    }
    if (g->value_type[v] != MPL_TYPE_i64) {
        MPL_PASS(step(w, to, "Cast", base, 1, &index, &index));
        MPL_PASS(int_attr(w, to->item[to->n - 1], "to", onnx_type_number(MPL_TYPE_i64)));
    }
    if (!bypass)
        return add_choice(w, op, index, 0, to, out);
    MPL_PASS(whole(w, to, base, 0, &zero));
    MPL_PASS(step(w, to, "Less", base, 2, (char *[]){index, zero}, &test));
    MPL_PASS(make_part(w, op, index, 0, BYPASS, &on));
    MPL_PASS(make_part(w, op, index, 0, n == 1 ? BRANCH : REST, &off));
    return add_if(w, test, on, off, to, out);
}

/* ---- while ---- */

typedef struct loop {
    mpl_op op;
    const char *base;
    uint32_t block, n_carried, n_scans, n_rows;
    const mpl_value *in, *made, *param, *result;
    const int64_t *reverse; /* [n_scans + n_rows], or NULL */
    int64_t most;           /* rounds */
    uint32_t n_exits;
} loop;

static loop loop_of(const mpl_graph *g, mpl_op op)
{
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op], n_flags;
    loop l = {.op = op, .base = g->op_name[op], .block = g->op_body[g->op_body_begin[op]]};

    l.n_carried = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
    l.n_scans = n_in - 2 - l.n_carried;
    l.n_rows = g->block_n_results[l.block] - 1 - l.n_carried;
    l.in = g->op_in + g->op_in_begin[op];
    l.made = g->op_out + g->op_out_begin[op];
    l.param = g->block_param + g->block_param_begin[l.block];
    l.result = g->block_result + g->block_result_begin[l.block];
    l.reverse = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);
    l.most = mpl_while_most_rounds(g, op);
    for (mpl_op exit = g->block_op_begin[l.block]; exit < g->block_op_end[l.block]; exit++)
        l.n_exits += g->op_block[exit] == l.block && g->op_kind[exit] == MPL_OP_exit_unless;
    return l;
}

static bool is_reversed(const loop *self, uint32_t flag)
{
    return self->reverse != NULL && self->reverse[flag] != 0;
}

/* Whether fewer rounds may run than rows have room for. */
static bool may_end_early(const loop *self)
{
    return self->in[0] != MPL_NONE || self->in[1] != MPL_NONE || self->result[0] != MPL_NONE ||
           self->n_exits > 0;
}

static bool only_scans(const mpl_graph *g, const loop *l)
{
    return l->n_scans > 0 && !may_end_early(l) &&
           g->value_use_begin[l->param[0]] == g->value_use_begin[l->param[0] + 1];
}

static mpl_status add_scan(writer *w, const loop *l, onnx_nodes *to)
{
    const mpl_graph *g = w->g;
    uint32_t n_in = l->n_carried + l->n_scans, n_out = l->n_carried + l->n_rows;
    Onnx__GraphProto *body;
    Onnx__NodeProto *node;
    onnx_nodes nodes = {0};
    char **in, **out;

    MPL_PASS(part_new(w, in, n_in));
    MPL_PASS(new_graph(w, g->block_name[l->block], n_in, n_out, &body));
    for (uint32_t i = 0; i < n_in; i++) {
        in[i] = g->value_name[l->in[2 + i]];
        MPL_PASS(add_input(w, body, l->param[1 + i]));
    }
    MPL_PASS(add_block(w, l->block, &nodes));
    MPL_PASS(add_results(w, body, &nodes, l->base, l->block, n_out, l->result + 1));
    set_nodes(body, &nodes);
    MPL_PASS(name_outputs(w, l->base, n_out, l->made, &out));
    MPL_PASS(new_node(w, to, "Scan", n_in, in, n_out, out, &node));
    onnx_name_node(w, l->op, node);
    MPL_PASS(graph_attr(w, node, "body", body));
    MPL_PASS(int_attr(w, node, "num_scan_inputs", l->n_scans));
    if (l->reverse != NULL)
        MPL_PASS(ints_attr(w, node, "scan_input_directions", l->n_scans, l->reverse));
    if (l->reverse != NULL && l->n_rows > 0)
        MPL_PASS(ints_attr(w, node, "scan_output_directions", l->n_rows, l->reverse + l->n_scans));
    return MPL_OK;
}

/* The round's slice of scan i, under the name of the body's parameter. */
static mpl_status add_slice(writer *out, const loop *l, uint32_t i, onnx_nodes *nodes)
{
    const mpl_graph *g = out->g;
    char *round = g->value_name[l->param[0]], *last,
         *scan = g->value_name[l->in[2 + l->n_carried + i]];

    if (is_reversed(l, i)) {
        MPL_PASS(whole(out, nodes, l->base, l->most - 1, &last));
        MPL_PASS(step(out, nodes, "Sub", l->base, 2, (char *[]){last, round}, &round));
    }
    return new_node(out, nodes, "Gather", 2, (char *[]){scan, round}, 1,
                    &g->value_name[l->param[1 + l->n_carried + i]], NULL);
}

/* All exit tests combined as a scalar truth value; NULL: there is none. */
static mpl_status join_exits(writer *w, const loop *l, onnx_nodes *nodes, char **out)
{
    const mpl_graph *g = w->g;

    *out = NULL;
    for (mpl_op op = g->block_op_begin[l->block]; op < g->block_op_end[l->block]; op++) {
        mpl_value v = g->op_in[g->op_in_begin[op]];
        char *test = v != MPL_NONE ? g->value_name[v] : NULL;

        if (g->op_block[op] != l->block || g->op_kind[op] != MPL_OP_exit_unless)
            continue;
        if (g->value_shape[v].rank > 0)
            MPL_PASS(step(w, nodes, "Squeeze", l->base, 1, &test, &test));
        if (*out != NULL)
            MPL_PASS(step(w, nodes, "And", l->base, 2, (char *[]){*out, test}, &test));
        *out = test;
    }
    return MPL_OK;
}

static mpl_status zero_of(writer *w, onnx_nodes *to, const char *base, mpl_type type, char **out)
{
    Onnx__AttributeProto *a;

    MPL_PASS(step(w, to, "Constant", base, 0, NULL, out));
    MPL_PASS(new_attr(w, to->item[to->n - 1], "value",
                      ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, &a));
    MPL_PASS(part_new(w, a->t, 1));
    onnx__tensor_proto__init(a->t);
    a->t->has_data_type = true;
    a->t->data_type = onnx_type_number(type);
    a->t->has_raw_data = true;
    a->t->raw_data.len = mpl_type_bytes(type);
    return part_new(w, a->t->raw_data.data, a->t->raw_data.len);
}

/* The condition, then the carried values, then the rows. If stay is false, the round counts as
 * never begun: the values carried into it, and zeros. */
static mpl_status add_loop_results(writer *out, const loop *l, Onnx__GraphProto *body,
                                   onnx_nodes *nodes, char *condition)
{
    const mpl_graph *g = out->g;
    mpl_value test = l->result[0];
    char *stay, *go = test != MPL_NONE ? g->value_name[test] : condition, *name, *other;
    bool made_here =
        test != MPL_NONE && g->value_block[test] == l->block && g->value_op[test] != MPL_NONE;

    MPL_PASS(join_exits(out, l, nodes, &stay));
    if (test != MPL_NONE && g->value_shape[test].rank > 0) {
        MPL_PASS(step(out, nodes, "Squeeze", l->base, 1, &go, &go));
        made_here = true;
    }
    if (stay != NULL)
        MPL_PASS(step(out, nodes, "And", l->base, 2, (char *[]){go, stay}, &go));
    MPL_PASS(add_output(out, body, nodes, l->base, go, made_here || stay != NULL, MPL_TYPE_bool,
                        &(mpl_shape){.rank = 0}));
    for (uint32_t i = 0; i < l->n_carried + l->n_rows; i++) {
        mpl_value v = l->result[1 + i];

        name = g->value_name[v];
        other = i < l->n_carried ? g->value_name[l->param[1 + i]] : NULL;
        if (stay == NULL) {
            MPL_PASS(add_result(out, body, nodes, l->base, l->block, v));
            continue;
        }
        if (other == NULL)
            MPL_PASS(zero_of(out, nodes, l->base, (mpl_type)g->value_type[v], &other));
        MPL_PASS(step(out, nodes, "Where", l->base, 3, (char *[]){stay, name, other}, &name));
        MPL_PASS(add_output(out, body, nodes, l->base, name, true, (mpl_type)g->value_type[v],
                            &g->value_shape[v]));
    }
    return MPL_OK;
}

static mpl_status make_loop_body(writer *w, const loop *l, Onnx__GraphProto **out)
{
    onnx_nodes nodes = {0};
    char *condition;

    MPL_PASS(new_graph(w, w->g->block_name[l->block], 2 + l->n_carried,
                       1 + l->n_carried + l->n_rows, out));
    MPL_PASS(add_input(w, *out, l->param[0]));
    MPL_PASS(new_name(w, l->base, "condition", &condition));
    MPL_PASS(
        onnx_describe(w, condition, MPL_TYPE_bool, &(mpl_shape){.rank = 0}, &(*out)->input[1]));
    (*out)->n_input++;
    for (uint32_t i = 0; i < l->n_carried; i++)
        MPL_PASS(add_input(w, *out, l->param[1 + i]));
    for (uint32_t i = 0; i < l->n_scans; i++)
        MPL_PASS(add_slice(w, l, i, &nodes));
    MPL_PASS(add_block(w, l->block, &nodes));
    MPL_PASS(add_loop_results(w, l, *out, &nodes, condition));
    set_nodes(*out, &nodes);
    return MPL_OK;
}

/* The trip count: a value, a number, or the smaller of both. */
static mpl_status add_trips(writer *w, const loop *l, onnx_nodes *to, char **out)
{
    char *both[2];

    *out = l->in[0] != MPL_NONE ? w->g->value_name[l->in[0]] : (char *)"";
    if (l->most < 0)
        return MPL_OK;
    both[0] = *out;
    MPL_PASS(whole(w, to, l->base, l->most, out));
    both[1] = *out;
    if (l->in[0] != MPL_NONE)
        MPL_PASS(step(w, to, "Min", l->base, 2, both, out));
    return MPL_OK;
}

/* The rows of a `while` from those of rounds that ran: reversed if needed, filled with zeros. */
static mpl_status finish_rows(writer *out, const loop *l, uint32_t i, onnx_nodes *to, char *rows)
{
    bool reverse = is_reversed(l, l->n_scans + i);
    mpl_value v = l->made[l->n_carried + i];
    uint32_t rank = out->g->value_shape[v].rank;
    const int64_t zero[2 * MPL_MAX_RANK] = {0}, slice[] = {-1, INT64_MIN + 1, 0, -1};
    char *number[5] = {rows}, *pads[3], *lacking[2];
    Onnx__NodeProto *pad;

    if (reverse) {
        for (int k = 0; k < 4; k++) /* starts, ends, axes, steps */
            MPL_PASS(wholes(out, to, l->base, 1, &slice[k], &number[1 + k]));
        MPL_PASS(step(out, to, "Slice", l->base, 5, number, &rows));
    }
    if (!may_end_early(l))
        return new_node(out, to, "Identity", 1, &rows, 1, &out->g->value_name[v], NULL);
    MPL_PASS(wholes(out, to, l->base, 1, &l->most, &lacking[0]));
    MPL_PASS(step(out, to, "Shape", l->base, 1, &rows, &lacking[1]));
    MPL_PASS(int_attr(out, to->item[to->n - 1], "end", 1));
    MPL_PASS(step(out, to, "Sub", l->base, 2, lacking, &lacking[0]));
    if (reverse) {
        pads[0] = lacking[0];
        MPL_PASS(wholes(out, to, l->base, 2 * rank - 1, zero, &pads[1]));
    } else {
        MPL_PASS(wholes(out, to, l->base, rank, zero, &pads[0]));
        pads[1] = lacking[0];
        if (rank > 1)
            MPL_PASS(wholes(out, to, l->base, rank - 1, zero, &pads[2]));
    }
    MPL_PASS(step(out, to, "Concat", l->base, !reverse && rank > 1 ? 3 : 2, pads, &pads[0]));
    MPL_PASS(int_attr(out, to->item[to->n - 1], "axis", 0));
    MPL_PASS(
        new_node(out, to, "Pad", 2, (char *[]){rows, pads[0]}, 1, &out->g->value_name[v], &pad));
    if (!reverse)
        pad->doc_string = (char *)ONNX_SAME_VALUE;
    return MPL_OK;
}

static mpl_status add_loop(writer *w, const loop *l, onnx_nodes *to)
{
    const mpl_graph *g = w->g;
    uint32_t n_in = 2 + l->n_carried, n_out = l->n_carried + l->n_rows;
    Onnx__GraphProto *body;
    Onnx__NodeProto *node;
    char **in, **out;

    MPL_PASS(part_new(w, in, n_in));
    MPL_PASS(part_new(w, out, n_out));
    MPL_PASS(add_trips(w, l, to, &in[0]));
    in[1] = l->in[1] != MPL_NONE ? g->value_name[l->in[1]] : (char *)"";
    for (uint32_t i = 0; i < l->n_carried; i++)
        in[2 + i] = g->value_name[l->in[2 + i]];
    for (uint32_t i = 0; i < n_out; i++) {
        bool plain = i < l->n_carried ||
                     (!is_reversed(l, l->n_scans + i - l->n_carried) && !may_end_early(l));

        out[i] = plain && l->made[i] != MPL_NONE ? g->value_name[l->made[i]] : NULL;
        if (out[i] == NULL)
            MPL_PASS(new_name(w, l->base, "rows", &out[i]));
    }
    MPL_PASS(make_loop_body(w, l, &body));
    MPL_PASS(new_node(w, to, "Loop", n_in, in, n_out, out, &node));
    onnx_name_node(w, l->op, node);
    MPL_PASS(graph_attr(w, node, "body", body));
    for (uint32_t i = 0; i < l->n_rows; i++)
        if (l->made[l->n_carried + i] != MPL_NONE &&
            out[l->n_carried + i] != g->value_name[l->made[l->n_carried + i]])
            MPL_PASS(finish_rows(w, l, i, to, out[l->n_carried + i]));
    return MPL_OK;
}

/* ---- fused operations ---- */

/* A constant x of a floating type. */
static mpl_status bound(writer *w, onnx_nodes *to, const char *base, mpl_type type, int64_t x,
                        char **out)
{
    MPL_PASS(whole(w, to, base, x, out));
    MPL_PASS(step(w, to, "Cast", base, 1, out, out));
    return int_attr(w, to->item[to->n - 1], "to", onnx_type_number(type));
}

/* Transposes operands of a MatMul, inputs from `first` on, before it. */
static mpl_status turn_operands(writer *out, mpl_op op, uint32_t first, onnx_nodes *to,
                                Onnx__NodeProto *node)
{
    static const mpl_attr_key key[2] = {MPL_ATTR_trans_a, MPL_ATTR_trans_b};
    const mpl_graph *g = out->g;
    int64_t perm[MPL_MAX_RANK];

    for (uint32_t i = 0; i < 2; i++) {
        uint32_t rank = g->value_shape[mpl_op_input(g, op, first + i)].rank;

        if (mpl_attr_int(g, op, key[i], 0) == 0)
            continue;
        for (uint32_t k = 0; k < rank; k++)
            perm[k] = k + 2 < rank ? k : 2 * (int64_t)rank - 3 - k;
        MPL_PASS(step(out, to, "Transpose", node->output[0], 1, &node->input[i], &node->input[i]));
        MPL_PASS(ints_attr(out, to->item[to->n - 1], "perm", rank, perm));
    }
    return MPL_OK;
}

/* Adds to the result of *node, the last one so far; *node: the sum. */
static mpl_status add_sum(writer *out, onnx_nodes *to, const char *what, char *other,
                          Onnx__NodeProto **node)
{
    char *made = (*node)->output[0], *in[2] = {NULL, other};

    MPL_PASS(new_name(out, made, what, &in[0]));
    (*node)->output[0] = in[0];
    return new_node(out, to, "Add", 2, in, 1, &made, node);
}

/* Conv or Gemm (of more than two dims: MatMul and Add), then Add, then Relu or Clip; the last one
 * makes the operation's value. */
static mpl_status add_fused(writer *out, mpl_op op, onnx_nodes *to)
{
    const mpl_graph *g = out->g;
    uint32_t first = mpl_fused_first((mpl_op_kind)g->op_kind[op]);
    mpl_value made = g->op_out[g->op_out_begin[op]];
    const char *base = g->value_name[made];
    mpl_activation activation = mpl_activation_of(g, op);
    Onnx__NodeProto *node;
    char *in[3];

    MPL_PASS(onnx_make_node(out, op, &node));
    in[0] = node->n_input > 2 ? node->input[2] : NULL;
    if (onnx_is_stacked(g, op)) {
        MPL_PASS(turn_operands(out, op, first, to, node));
        node->n_input = 2;
    }
    MPL_PASS(add_node(out, to, node));
    if (in[0] != NULL && node->n_input == 2)
        MPL_PASS(add_sum(out, to, "unbiased", in[0], &node));
    if (first > 0)
        MPL_PASS(add_sum(out, to, "product", g->value_name[mpl_op_input(g, op, 0)], &node));
    if (activation == MPL_ACT_NONE)
        return MPL_OK;
    MPL_PASS(new_name(out, base, "linear", &in[0]));
    node->output[0] = in[0];
    for (int i = 1; i < 3 && activation == MPL_ACT_RELU6; i++)
        MPL_PASS(bound(out, to, base, (mpl_type)g->value_type[made], i == 1 ? 0 : 6, &in[i]));
    if (activation == MPL_ACT_RELU)
        MPL_PASS(new_node(out, to, "Relu", 1, in, 1, &g->value_name[made], NULL));
    else
        MPL_PASS(new_node(out, to, "Clip", 3, in, 1, &g->value_name[made], NULL));
    return MPL_OK;
}

/* MatMul of operands that are transposed first. */
static mpl_status add_matmul(writer *out, mpl_op op, onnx_nodes *to)
{
    Onnx__NodeProto *node;

    MPL_PASS(onnx_make_node(out, op, &node));
    MPL_PASS(turn_operands(out, op, 0, to, node));
    return add_node(out, to, node);
}

mpl_status onnx_add_nodes(writer *out, mpl_op op, onnx_nodes *to)
{
    Onnx__NodeProto *node;
    loop l;

    switch (out->g->op_kind[op]) {
    case MPL_OP_case:
        MPL_PASS(add_case(out, op, to));
        onnx_name_node(out, op, to->item[to->n - 1]);
        break;
    case MPL_OP_while:
        l = loop_of(out->g, op);
        return only_scans(out->g, &l) ? add_scan(out, &l, to) : add_loop(out, &l, to);
    case MPL_OP_conv_act:
    case MPL_OP_conv_sum:
    case MPL_OP_gemm_act:
    case MPL_OP_gemm_sum:
        return add_fused(out, op, to);
    case MPL_OP_matmul:
        return add_matmul(out, op, to);
    case MPL_OP_exit_unless: /* part of the loop's condition */
        return MPL_OK;
    default:
        MPL_PASS(onnx_make_node(out, op, &node));
        MPL_PASS(add_node(out, to, node));
    }
    return MPL_OK;
}
