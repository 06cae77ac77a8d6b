/* onnx_inputs.c -- inputs of an ONNX model: their dims, their contents where the user gives them,
 * and those whose contents decide a shape.
 *
 * Idea     An input that decides a shape is marked, and the file is read again with it as a
 *          constant. */
#include "graphs/io/onnx/onnx_priv.h"

/* ---- dims and contents ---- */

/* Whether the file has an input of this name. */
static bool names_input(const onnx_reader *in, const char *name)
{
    for (size_t i = 0; i < in->model->graph->n_input; i++)
        if (strcmp(in->model->graph->input[i]->name, name) == 0)
            return true;
    return false;
}

/* The binding of input `index` of the file (initialisers not counted), or NULL. */
static const mpl_tensor *find_binding(const onnx_reader *in, const char *name, uint32_t index)
{
    const mpl_read_options *options = in->options;

    for (uint32_t i = 0; options != NULL && i < options->n_inputs; i++) {
        const char *given = options->input_name != NULL ? options->input_name[i] : NULL;

        if (given != NULL && strcmp(given, name) == 0)
            return &options->input_tensor[i];
        if (options->input_index != NULL && options->input_index[i] == index &&
            (given == NULL || !names_input(in, given)))
            return &options->input_tensor[i];
    }
    return NULL;
}

static const char *kind_of(const Onnx__TypeProto *type)
{
    switch (type != NULL ? type->value_case : ONNX__TYPE_PROTO__VALUE__NOT_SET) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE:
        return NULL;
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
        return "sequence";
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return "map";
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return "optional";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return "sparse tensor";
    default:
        return "undefined";
    }
}

enum { PLACE = 128 }; /* INPUT.AXIS, truncated */

/* The name of an open dim for --dim: its own, else INPUT.AXIS (in `place`). NULL: it is known. */
static const char *open_dim(const char *input, uint32_t axis,
                            const Onnx__TensorShapeProto__Dimension *d, char place[PLACE])
{
    const char *name = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                           ? onnx_text(d->dim_param)
                           : "";

    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
        return NULL;
    snprintf(place, PLACE, "%.100s.%u", input, axis);
    return name[0] != '\0' ? name : place;
}

/* One dim of an input: its value, else the one given by --dim, else that of the given contents. */
static mpl_status read_dim(onnx_reader *in, const char *input, uint32_t axis,
                           const Onnx__TensorShapeProto__Dimension *d, const mpl_tensor *given,
                           int64_t *out)
{
    char place[PLACE];
    const char *name = open_dim(input, axis, d, place);

    if (name == NULL)
        return *out = d->dim_value, MPL_OK;
    for (uint32_t i = 0; in->options != NULL && i < in->options->n_dims; i++)
        if (strcmp(in->options->dim_name[i], name) == 0) {
            if (in->options->dim_value[i] < 0)
                return MPL_REFUSE(in->ctx,
                                  "dim '%.100s' is given as %" PRId64 "; it cannot be negative",
                                  name, in->options->dim_value[i]);
            return *out = in->options->dim_value[i], MPL_OK;
        }
    if (given == NULL || axis >= given->shape.rank)
        return MPL_REFUSE(
            in->ctx,
            "%.120s: dim %u of input '%.100s' is open and has no maximum; give it: --dim %.100s=N",
            in->path, axis, input, name);
    *out = given->shape.dim[axis];
    return MPL_OK;
}

static mpl_status read_dims(onnx_reader *in, const char *name, const Onnx__TensorShapeProto *proto,
                            const mpl_tensor *given, mpl_shape *shape)
{
    if (proto == NULL && given == NULL)
        return MPL_REFUSE(in->ctx,
                          "%.120s: input '%.100s' says nothing about its dims; give its contents: "
                          "--input %.100s=FILE",
                          in->path, name, name);
    if (proto == NULL) {
        *shape = given->shape;
        return MPL_OK;
    }
    if (proto->n_dim > MPL_MAX_RANK)
        return MPL_REFUSE(in->ctx, "%.120s: input '%.100s' has %zu dims; at most %d are supported",
                          in->path, name, proto->n_dim, MPL_MAX_RANK);
    shape->rank = (uint32_t)proto->n_dim;
    for (uint32_t i = 0; i < shape->rank; i++)
        MPL_PASS(read_dim(in, name, i, proto->dim[i], given, &shape->dim[i]));
    return MPL_OK;
}

static mpl_status bind_contents(onnx_reader *in, const char *name, mpl_value v,
                                const mpl_tensor *given)
{
    const mpl_graph *g = in->g;
    char text[2][200];

    if (given->type != (mpl_type)g->value_type[v] ||
        !mpl_shape_equal(&given->shape, &g->value_shape[v]))
        return MPL_REFUSE(in->ctx,
                          "%.120s: input '%.100s' is %s %s; its contents were given as %s %s",
                          in->path, name, mpl_type_name((mpl_type)g->value_type[v]),
                          mpl_shape_text(&g->value_shape[v], text[0]), mpl_type_name(given->type),
                          mpl_shape_text(&given->shape, text[1]));
    return onnx_blame_file(in, mpl_graph_bind_input(in->ctx, in->g, v, given->data));
}

mpl_status onnx_read_input(onnx_reader *in, const Onnx__ValueInfoProto *proto, uint32_t index,
                           bool bind)
{
    const char *text = onnx_text(proto->name), *name, *refused;
    const mpl_tensor *given = find_binding(in, text, index);
    onnx_name *e = onnx_enter_name(&in->top, text);
    mpl_shape shape = {.rank = 0};
    mpl_type type;

    if (e->value != MPL_NONE || e->refused != NULL)
        return MPL_REFUSE(in->ctx, "%.120s: two inputs are named '%.100s'", in->path, text);
    /* An input of an unknown kind or type is an error only if it is read. */
    e->refused = kind_of(proto->type);
    if (e->refused == NULL && !onnx_type(proto->type->tensor_type->elem_type, &type, &refused))
        e->refused = refused;
    if (e->refused != NULL)
        return MPL_OK;
    MPL_PASS(read_dims(in, text, proto->type->tensor_type->shape, given, &shape));
    MPL_PASS(onnx_own_name(in, text[0] != '\0' ? text : "input", &name));
    MPL_PASS(onnx_blame_file(
        in, mpl_graph_add_value(in->ctx, in->g, name, MPL_INPUT, type, &shape, &e->value)));
    if (bind)
        MPL_PASS(bind_contents(in, text, e->value, given));
    return MPL_OK;
}

/* Visits the open dims until one is called `name` (NULL: all); adds their names to `list`. */
static bool find_open_dim(onnx_reader *in, const char *name, char *list, size_t cap)
{
    const Onnx__GraphProto *p = in->proto;
    char place[PLACE];
    size_t n = 0;

    for (size_t i = 0; i < p->n_input; i++) {
        const Onnx__TypeProto *type = p->input[i]->type;
        const Onnx__TensorShapeProto *shape =
            type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
                ? type->tensor_type->shape
                : NULL;

        for (uint32_t axis = 0; shape != NULL && axis < shape->n_dim; axis++) {
            const char *called =
                open_dim(onnx_text(p->input[i]->name), axis, shape->dim[axis], place);

            if (called == NULL)
                continue;
            if (name != NULL && strcmp(called, name) == 0)
                return true;
            if (list != NULL && n < cap)
                n += (size_t)snprintf(list + n, cap - n, "%s%.100s", n > 0 ? ", " : "", called);
        }
    }
    return false;
}

mpl_status onnx_check_dims_given(onnx_reader *in)
{
    char list[300] = "";

    for (uint32_t i = 0; in->options != NULL && !in->options->spare_dims && i < in->options->n_dims;
         i++) {
        if (find_open_dim(in, in->options->dim_name[i], NULL, 0))
            continue;
        find_open_dim(in, NULL, list, sizeof list);
        return MPL_REFUSE(in->ctx, "%.120s: no input has an open dim '%.100s'; %s%s", in->path,
                          in->options->dim_name[i],
                          list[0] != '\0' ? "open are: " : "all of them are known", list);
    }
    return MPL_OK;
}

/* ---- inputs that decide shapes ---- */

/* Marks what v depends on in mark[n_values]. Operations are in order, those of a block before its
 * owner, so one backward pass is enough. A carried value counts as dependent on its loop and
 * operands. */
static void mark_sources(const mpl_graph *g, mpl_value v, bool *mark)
{
    mark[v] = true;
    for (mpl_op op = g->n_ops; op-- > 0;) {
        bool needed = false;

        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            needed = needed || (g->op_out[i] != MPL_NONE && mark[g->op_out[i]]);
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1] && needed; i++)
            if (g->op_in[i] != MPL_NONE)
                mark[g->op_in[i]] = true;
        for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1] && needed; k++) {
            uint32_t b = g->op_body[k];

            for (uint32_t i = 0; i < g->block_n_results[b]; i++)
                if (g->block_result[g->block_result_begin[b] + i] != MPL_NONE)
                    mark[g->block_result[g->block_result_begin[b] + i]] = true;
            for (uint32_t i = 0; i < g->block_n_params[b]; i++) /* marks the loop as relevant */
                mark[g->block_param[g->block_param_begin[b] + i]] = true;
        }
    }
}

/* Whether a marked value is a parameter of that block. */
static bool marks_param(const mpl_graph *g, uint32_t block, const bool *mark)
{
    for (uint32_t i = 0; i < g->block_n_params[block]; i++)
        if (mark[g->block_param[g->block_param_begin[block] + i]])
            return true;
    return false;
}

bool onnx_is_constant(const onnx_node *node, mpl_value v)
{
    return node->r->g->value_role[v] == MPL_WEIGHT && node->r->g->value_data[v] != NULL;
}

/* Binds the marked inputs whose contents are given; *missing: the first without contents. */
static void bind_marked(onnx_reader *in, const bool *mark, bool *grew, const char **missing)
{
    uint32_t index = 0;

    *missing = NULL;
    for (size_t i = 0; i < in->proto->n_input; i++) {
        const char *name = onnx_text(in->proto->input[i]->name);
        const onnx_name *e = onnx_entry(&in->top, name);

        if (e->init != NULL)
            continue;
        if (e->value != MPL_NONE && mark[e->value] && !in->bind[i]) {
            if (find_binding(in, name, index) != NULL)
                in->bind[i] = *grew = true;
            else if (*missing == NULL)
                *missing = name;
        }
        index++;
    }
}

mpl_status onnx_can_be_constant(onnx_node *node, mpl_value v, bool *can)
{
    onnx_reader *in = node->r;
    bool *mark;
    uint32_t index = 0;

    *can = true;
    MPL_PASS(onnx_new(in, mark, in->g->n_values));
    mark_sources(in->g, v, mark);
    for (size_t i = 0; i < in->proto->n_input; i++) {
        const char *name = onnx_text(in->proto->input[i]->name);
        const onnx_name *e = onnx_entry(&in->top, name);

        if (e->init != NULL)
            continue;
        if (e->value != MPL_NONE && mark[e->value] && find_binding(in, name, index) == NULL)
            *can = false;
        index++;
    }
    for (size_t i = 0; i < in->n_loops; i++)
        if (marks_param(in->g, in->loop[i].block, mark))
            *can = false;
    return MPL_OK;
}

mpl_status onnx_need_constant(onnx_node *node, mpl_value v, const char *what)
{
    onnx_reader *in = node->r;
    bool *mark, grew = false;
    const char *missing;

    if (onnx_is_constant(node, v))
        return MPL_OK;
    MPL_PASS(onnx_new(in, mark, in->g->n_values));
    mark_sources(in->g, v, mark);
    bind_marked(in, mark, &grew, &missing);
    if (missing != NULL)
        return ONNX_REFUSE(
            node,
            "its %s depends on the contents of input '%.100s'; give them: --input %.100s=FILE",
            what, missing, missing);
    in->again = grew;
    for (size_t i = 0; i < in->n_loops; i++)
        if (marks_param(in->g, in->loop[i].block, mark))
            MPL_PASS(onnx_unroll(in, in->loop[i].proto));
    return ONNX_REFUSE(node, "its %s must be known when the model is read, and is not constant",
                       what);
}
