/* Writing ONNX models: reading them back gives the same graph, for every operator and network;
 * metadata beside them. */
#include "graphs/ir/counts.h"
#include "tests/support/interpret.h"
#include "tests/support/folder.h"

#include "onnx.pb-c.h"

static int make_folder(void)
{
    return folder_make("onnx");
}

static const char *file_of(const char *name, char *path)
{
    snprintf(path, 600, "%s/%s", folder, name);
    return path;
}

/* Fills each weight with its id. */
static mpl_status fill_ids(void *arg, mpl_value v, void *data)
{
    const mpl_graph *g = arg;

    memset(data, g->value_type[v] == MPL_TYPE_bool ? (int)v % 2 : (int)v % 100, g->value_bytes[v]);
    return MPL_OK;
}

static void assert_same_attr(const char *name, mpl_attr a, mpl_attr b)
{
    if (a.key != b.key || a.n != b.n)
        fail_msg("%s: attribute %s[%u] became %s[%u]", name, mpl_attr_name(a.key), a.n,
                 mpl_attr_name(b.key), b.n);
    for (uint32_t i = 0; i < a.n && a.ints != NULL; i++)
        assert_true(a.ints[i] == b.ints[i]);
    for (uint32_t i = 0; i < a.n && a.floats != NULL; i++)
        assert_true((float)a.floats[i] == (float)b.floats[i]);
    if (a.text != NULL)
        assert_string_equal(a.text, b.text);
}

static const char *name_of(const mpl_graph *g, mpl_value v)
{
    return v != MPL_NONE ? g->value_name[v] : "";
}

static void assert_same_names(const mpl_graph *a, const mpl_value *in_a, const mpl_graph *b,
                              const mpl_value *in_b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        assert_string_equal(name_of(a, in_a[i]), name_of(b, in_b[i]));
}

static void assert_same_values(const mpl_graph *a, const mpl_graph *b)
{
    assert_int_equal(a->n_values, b->n_values);
    for (mpl_value v = 0; v < a->n_values; v++) {
        mpl_value w = mpl_graph_find(b, a->value_name[v]);

        if (w == MPL_NONE)
            fail_msg("value %s is gone", a->value_name[v]);
        assert_int_equal(a->value_type[v], b->value_type[w]);
        assert_int_equal(a->value_role[v], b->value_role[w]);
        assert_true(mpl_shape_equal(&a->value_shape[v], &b->value_shape[w]));
        if (a->value_role[v] == MPL_WEIGHT && a->value_bytes[v] > 0)
            assert_int_equal(*(const uint8_t *)b->value_data[w],
                             a->value_type[v] == MPL_TYPE_bool ? v % 2 : v % 100);
    }
}

/* Compares by name: ids of weights and inputs may differ, and float attributes have 32 bits in a
 * file. */
static void assert_same(const mpl_graph *a, const mpl_graph *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->n_ops, b->n_ops);
    for (mpl_op op = 0; op < a->n_ops; op++) {
        uint32_t n_attr = a->op_attr_begin[op + 1] - a->op_attr_begin[op];

        if (a->op_kind[op] != b->op_kind[op])
            fail_msg("%s: %s became %s", a->op_name[op], mpl_op_table[a->op_kind[op]].name,
                     mpl_op_table[b->op_kind[op]].name);
        assert_string_equal(a->op_name[op], b->op_name[op]);
        if (n_attr != b->op_attr_begin[op + 1] - b->op_attr_begin[op])
            fail_msg("%s (%s): %u attributes became %u", a->op_name[op],
                     mpl_op_table[a->op_kind[op]].name, n_attr,
                     b->op_attr_begin[op + 1] - b->op_attr_begin[op]);
        for (uint32_t i = 0; i < n_attr; i++)
            assert_same_attr(a->op_name[op], mpl_attr_at(a, a->op_attr_begin[op] + i),
                             mpl_attr_at(b, b->op_attr_begin[op] + i));
        assert_int_equal(a->op_in_begin[op + 1], b->op_in_begin[op + 1]);
        assert_int_equal(a->op_out_begin[op + 1], b->op_out_begin[op + 1]);
    }
    assert_same_names(a, a->op_in, b, b->op_in, a->op_in_begin[a->n_ops]);
    assert_same_names(a, a->op_out, b, b->op_out, a->op_out_begin[a->n_ops]);
    assert_same_values(a, b);
    assert_int_equal(a->n_inputs, b->n_inputs);
    assert_same_names(a, a->input, b, b->input, a->n_inputs);
    assert_int_equal(a->n_outputs, b->n_outputs);
    assert_same_names(a, a->output, b, b->output, a->n_outputs);
}

/* Hash of the problem that planners get for a graph, under either safety. */
static uint64_t problem_hash(mpl_ctx *ctx, const mpl_graph *g, bool parallel)
{
    mpl_problem_options options = mpl_problem_options_default();
    owned_problem *p = NULL;
    owned_map *map = NULL;
    owned_memory mpl_op *order = NULL;
    uint64_t hash;

    options.parallel = parallel;
    assert_ok(ctx, mpl_new(ctx, order, g->n_ops));
    count_up(g->n_ops, order);
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
    hash = mpl_problem_hash(p);
    return hash;
}

/* A plan of one graph is a plan of the other: same problem, same names in its bindings. Names of
 * weights and of a round number that Scan does not have may differ. */
static void assert_same_problem(mpl_ctx *ctx, const mpl_graph *g, const mpl_graph *back)
{
    if (g->n_ops != back->n_ops)
        fail_msg("%s: %u operations became %u", g->name, g->n_ops, back->n_ops);
    for (mpl_op op = 0; op < g->n_ops; op++)
        assert_string_equal(mpl_op_table[g->op_kind[op]].name,
                            mpl_op_table[back->op_kind[op]].name);
    assert_same_names(g, g->op_out, back, back->op_out, g->op_out_begin[g->n_ops]);
    assert_int_equal(g->n_blocks, back->n_blocks);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        assert_string_equal(g->block_name[b], back->block_name[b]);
    for (int parallel = 0; parallel < 2; parallel++)
        if (problem_hash(ctx, g, parallel) != problem_hash(ctx, back, parallel))
            fail_msg("%s: another problem, %s", g->name, parallel ? "parallel" : "serial");
}

static void assert_round_trip(mpl_ctx *ctx, const mpl_graph *g)
{
    owned_graph *back = NULL;
    char path[600];

    file_of("model.onnx", path);
    assert_ok(ctx, mpl_onnx_write(ctx, path, g, &(mpl_onnx_weights){fill_ids, (void *)g}, 0, NULL));
    assert_ok(ctx, mpl_onnx_read(ctx, path, NULL, &back));
    assert_same(g, back);
    assert_true(mpl_graph_hash(g) == mpl_graph_hash(back));
    for (int parallel = 0; parallel < 2; parallel++)
        assert_true(problem_hash(ctx, g, parallel) == problem_hash(ctx, back, parallel));
}

/* ---- operators ---- */

static const char inputs[] =
    "graph small\ninput a f32 [2,6]\ninput m f32 [6,4]\ninput v f32 [1,4,6,6]\n"
    "input f f32 [4,4,3,3]\ninput c f32 [4]\ninput d f32 [6]\ninput k i32 [2,6]\n"
    "input u u8 [3]\ninput b bool [2,6]\ninput x i64 [2]\ninput i i64 [2,6]\n"
    "input z f32 []\ninput e f32 [2]\ninput n f32 [6,6]\ninput r f32 [1,6,2]\n";

/* A line of tests/data/onnx/operators.txt. */
static mpl_graph *one_operation(mpl_ctx *ctx, const char *line)
{
    const char *outputs = strstr(line, " = ") != NULL ? line : NULL;
    char text[2000];
    mpl_graph *g = NULL;
    int n = snprintf(text, sizeof text, "%s%s%s\n", inputs, outputs == NULL ? "y = " : "", line);

    if (outputs == NULL)
        n += snprintf(text + n, sizeof text - (size_t)n, "output y\n");
    for (const char *at = outputs; at != NULL && *at != '='; at += strspn(at, ", ")) {
        size_t size = strcspn(at, ", ");

        n += snprintf(text + n, sizeof text - (size_t)n, "output %.*s\n", (int)size, at);
        at += size;
    }
    if (mpl_text_read_memory(ctx, "small", text, (size_t)n, &g) != MPL_OK)
        fail_msg("%s: %s", line, ctx->message);
    return g;
}

TEST(test_operators)
{
    static const mpl_op_kind known[] = {
#define ONNX(name, since, kind, rule, attrs) MPL_OP_##kind,
#include "graphs/ir/each_op.h"
    };
    static const mpl_op_kind unwritten[] = {
        /* graphs/io/README.md */
        MPL_OP_grid_sample, MPL_OP_roi_align, MPL_OP_max_roi_pool, MPL_OP_det,   MPL_OP_non_zero,
        MPL_OP_compress,    MPL_OP_nms,       MPL_OP_unique,       MPL_OP_qconv, MPL_OP_qmatmul};
    bool met[MPL_N_OPS] = {false};
    char *text, *rest;
    size_t size;

    for (size_t i = 0; i < sizeof unwritten / sizeof *unwritten; i++)
        met[unwritten[i]] = true;
    assert_ok(ctx, mpl_file_read(ctx, "tests/data/onnx/operators.txt", &text, &size));
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0' && *line != '#') {
            owned_graph *g = one_operation(ctx, line);

            met[g->op_kind[0]] = true;
            assert_round_trip(ctx, g);
        }
    mpl_free(ctx, text);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!met[known[i]] && (mpl_op_table[known[i]].traits & MPL_CONTROL) == 0)
            fail_msg("no line for operator %s", mpl_op_table[known[i]].name);
}

/* What our reader accepts either way but other readers may not: where constants stand among the
 * inputs, their ranks, opsets. */
static const struct {
    const char *line;
    const char *type;
    int64_t opset, ir;
    const char *input; /* names separated by blanks; '-' for an omitted one */
    int rank;          /* of the constant, -1: none */
} message[] = {
    {"trilu(a) upper=0 k=1", "Trilu", 18, 8, "a y/k", 0},
    {"cumsum(a) axis=1", "CumSum", 18, 8, "a y/axis", 0},
    {"one_hot(x, e) axis=0 depth=3", "OneHot", 18, 8, "x y/depth e", 0},
    {"reshape(a) shape=[3,4]", "Reshape", 18, 8, "a y/shape", 1},
    {"reduce_sum(a) axes=[1]", "ReduceSum", 18, 8, "a y/axes", 1},
    {"pad(a, z) pads=[0,1,0,2]", "Pad", 18, 8, "a y/pads z", 1},
    {"resize(v) scales=[1,1,2,2]", "Resize", 18, 8, "v - y/scales", 1},
    {"resize(v) sizes=[1,4,3,3]", "Resize", 18, 8, "v - - y/sizes", 1},
    {"clip(a, _, z)", "Clip", 18, 8, "a - z", -1},
    {"scatter_elements(a, i, a) axis=1", "ScatterElements", 18, 8, "a i a", -1},
    {"identity(a)", "Identity", 18, 8, "a", -1},
    {"cast(a) to=f16", "Cast", 18, 8, "a", -1},
    {"avg_pool(v) kernel_shape=[3,3] dilations=[2,2]", "AveragePool", 19, 9, "v", -1},
    {"gelu(a)", "Gelu", 20, 9, "a", -1},
    {"group_norm(v, c, c) num_groups=2", "GroupNormalization", 21, 10, "v c c", -1},
    {"rms_norm(a, d)", "RMSNormalization", 23, 11, "a d", -1},
};

static void check_message(size_t i, const Onnx__ModelProto *m)
{
    char names[600] = "";

    assert_int_equal(m->ir_version, message[i].ir);
    assert_int_equal(m->n_opset_import, 1);
    if (m->opset_import[0]->version != message[i].opset)
        fail_msg("%s: opset %d", message[i].line, (int)m->opset_import[0]->version);
    assert_string_equal(m->graph->node[0]->op_type, message[i].type);
    for (size_t k = 0; k < m->graph->node[0]->n_input; k++) {
        const char *name = m->graph->node[0]->input[k];

        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k > 0 ? " " : "",
                 name[0] != '\0' ? name : "-");
    }
    assert_string_equal(names, message[i].input);
    assert_int_equal(m->graph->n_initializer, message[i].rank >= 0);
    if (message[i].rank >= 0)
        assert_int_equal(m->graph->initializer[0]->n_dims, message[i].rank);
    assert_int_equal(m->graph->n_output, 1);
    assert_int_equal(m->graph->output[0]->type->value_case, ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE);
}

static const char text_of_model[] =
    "graph small\ninput a f32 [2,6]\nweight w f32 [6,4]\ny = matmul(a, w)\n"
    "z = reshape(y) shape=[8]\noutput z\n";

/* There is one value between input and output, and its shape is written as well. */
static void check_shapes(mpl_ctx *ctx)
{
    owned_graph *g = text_graph(ctx, text_of_model);
    char path[600], *data;
    const Onnx__TensorShapeProto *shape;
    Onnx__ModelProto *m;
    size_t size;

    file_of("message.onnx", path);
    assert_ok(ctx, mpl_onnx_write(ctx, path, g, &(mpl_onnx_weights){fill_ids, g}, 0, NULL));
    assert_ok(ctx, mpl_file_read(ctx, path, &data, &size));
    m = onnx__model_proto__unpack(NULL, size, (const uint8_t *)data);
    assert_non_null(m);
    assert_int_equal(m->graph->n_value_info, 1);
    assert_string_equal(m->graph->value_info[0]->name, "y");
    shape = m->graph->value_info[0]->type->tensor_type->shape;
    assert_int_equal(shape->n_dim, 2);
    assert_int_equal(shape->dim[1]->dim_value, 4);
    onnx__model_proto__free_unpacked(m, NULL);
    mpl_free(ctx, data);
}

TEST(test_messages)
{
    char path[600];

    for (size_t i = 0; i < sizeof message / sizeof *message; i++) {
        owned_graph *g = one_operation(ctx, message[i].line);
        Onnx__ModelProto *m;
        owned_memory char *data;
        size_t size;

        file_of("message.onnx", path);
        assert_ok(ctx, mpl_onnx_write(ctx, path, g, &(mpl_onnx_weights){fill_ids, g}, 0, NULL));
        assert_ok(ctx, mpl_file_read(ctx, path, &data, &size));
        m = onnx__model_proto__unpack(NULL, size, (const uint8_t *)data);
        assert_non_null(m);
        check_message(i, m);
        onnx__model_proto__free_unpacked(m, NULL);
    }
    check_shapes(ctx);
}

/* ---- networks ---- */

/* Operators of tensor_ssa that ONNX lacks. */
static bool has_boxes(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_access || g->op_kind[op] == MPL_OP_assign ||
            g->op_kind[op] == MPL_OP_fused)
            return true;
    return false;
}

/* Whether an operation reads weights alone: read back, it is folded. */
static bool reads_weights_alone(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool alone = mpl_op_n_in(g, op) > 0;

        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            alone = alone && mpl_op_input(g, op, i) != MPL_NONE &&
                    g->value_role[mpl_op_input(g, op, i)] == MPL_WEIGHT;
        if (alone)
            return true;
    }
    return false;
}

/* Tables keep their contents, which are indices; other weights are zeros. */
static mpl_status fill_tables(void *arg, mpl_value v, void *data)
{
    const mpl_graph *g = arg;

    if (g->value_data[v] != NULL && !g->value_splat[v])
        memcpy(data, g->value_data[v], g->value_bytes[v]);
    else
        memset(data, 0, g->value_bytes[v]);
    return MPL_OK;
}

/* Without what reads weights alone, the graph has these operations. */
static void assert_folded(mpl_ctx *ctx, const mpl_graph *g)
{
    owned_graph *back = NULL;
    char path[600];

    assert_ok(ctx, mpl_onnx_write(ctx, file_of("model.onnx", path), g,
                                  &(mpl_onnx_weights){fill_tables, (void *)g}, 0, NULL));
    assert_ok(ctx, mpl_onnx_read(ctx, path, NULL, &back));
    assert_true(back->n_ops < g->n_ops);
    for (mpl_value made = 0; made < back->n_values; made++) {
        mpl_value v = mpl_graph_find(g, back->value_name[made]);

        if (back->value_op[made] == MPL_NONE)
            continue;
        assert_true(v != MPL_NONE && g->value_op[v] != MPL_NONE);
        assert_int_equal(g->op_kind[g->value_op[v]], back->op_kind[back->value_op[made]]);
        assert_true(mpl_shape_equal(&g->value_shape[v], &back->value_shape[made]));
    }
}

/* At small sizes: the checks do not depend on them, but weights do. */
TEST(test_networks)
{
    for (size_t i = 0; mpl_zoo[i] != NULL; i++) {
        char spec[200];
        owned_graph *g = NULL;

        if (left_out(i))
            continue;
        assert_ok(ctx, mpl_zoo_build(ctx, small_network(mpl_zoo[i], spec), &g));
        if (reads_weights_alone(g)) {
            assert_folded(ctx, g);
            continue;
        }
        if (g->n_blocks == 1 && !has_boxes(g))
            assert_round_trip(ctx, g);
        else if (!has_boxes(g) && strcmp(mpl_zoo[i]->name, "piecewise") != 0) { /* many branches */
            owned_graph *back = NULL;
            char path[600];

            assert_ok(ctx, mpl_onnx_write(ctx, file_of("model.onnx", path), g,
                                          &(mpl_onnx_weights){fill_ids, (void *)g}, 0, NULL));
            assert_ok(ctx, mpl_onnx_read(ctx, path, NULL, &back));
            assert_same_problem(ctx, g, back);
        }
    }
}

/* ---- loops and branches ---- */

/* The written graph may nest differently, so results are compared, for these integer inputs and
 * floats up to `scale`. */
static const struct {
    const char *graph; /* of tests/data, or of the zoo */
    int64_t whole[2];
    float scale;
    uint32_t n_blocks; /* of the model that is read back */
    uint64_t rounds;   /* of all loops; 0: not compared (a Loop finishes its last round) */
    bool same;         /* same problem: no exit test, at most two branches, no scan in a Loop */
} control[] = {
    {"tests/data/loops/pingpong.graph", {0}, 1, 2, 0, true},
    {"tests/data/control.graph", {0, 2}, 1, 7, 4 + 4 * 2, false},
    {"tests/data/control.graph", {1, 1}, 1, 7, 4 + 4, false},
    {"tests/data/control.graph", {-1, 3}, 1, 7, 4 + 4 * 3, false},
    {"tests/data/control.graph", {0, 2}, 700, 7, 0, false},
    {"tests/data/control.graph", {0, 2}, 300, 7, 0, false},
    {"tests/data/control.graph", {1, 2}, 250, 7, 0, false},
    {"lstm:form=while,hidden=3,batch=2,steps=4", {0}, 1, 2, 4, true},
    {"gru:form=while,hidden=3,batch=2,steps=4", {0}, 1, 2, 4, true},
    {"delay:taps=3,rounds=4,image=4,channels=2", {0}, 1, 2, 4, true},
    {"nested_loop:depth=3,rounds=2,image=4,channels=2", {0}, 1, 4, 14, true},
    {"tests/data/loops/two_branches.graph", {0}, 1, 4, 3, true},
    {"piecewise:image=4,channels=2,branches=4", {0}, 1, 9, 0, false},
    {"piecewise:image=4,channels=2,branches=1", {0}, 1, 3, 0, false},
    {"seq2seq:hidden=4,vocab=5,batch=3,most=9,steps=3", {0}, 1, 3, 0, true},
};

static void set_values(interpreter *it, const int64_t *whole, float scale)
{
    const mpl_graph *g = it->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        bool input = g->value_role[v] == MPL_INPUT;

        if (!input && (g->value_role[v] != MPL_WEIGHT || g->value_data[v] != NULL))
            continue;
        if (g->value_type[v] == MPL_TYPE_i64)
            memcpy(it->data[v], whole++, sizeof *whole);
        for (uint64_t i = 0;
             g->value_type[v] == MPL_TYPE_f32 && i < g->value_bytes[v] / sizeof(float); i++) {
            uint64_t at[] = {v, i}, x = mpl_hash(MPL_HASH_SEED, at, sizeof at);

            ((float *)it->data[v])[i] = ((float)(x % 2001) / 1000 - 1) * (input ? scale : 1);
        }
    }
}

static mpl_status fill_from(void *arg, mpl_value v, void *data)
{
    const interpreter *it = arg;

    memcpy(data, it->data[v], it->g->value_bytes[v]);
    return MPL_OK;
}

/* Other readers accept a graph's output only if one of its nodes makes it, and only once. */
static void check_handed_out(const char *what, const Onnx__GraphProto *graph, bool inside)
{
    for (size_t i = 0; i < graph->n_output && inside; i++) {
        const char *name = graph->output[i]->name;
        int made = 0;

        for (size_t k = 0; k < graph->n_node; k++)
            for (size_t o = 0; o < graph->node[k]->n_output; o++)
                made += strcmp(graph->node[k]->output[o], name) == 0;
        for (size_t k = 0; k < i; k++)
            made += strcmp(graph->output[k]->name, name) == 0;
        if (made != 1)
            fail_msg("%s: output %s of graph %s", what, name, graph->name);
    }
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_attribute; k++)
            if (graph->node[i]->attribute[k]->g != NULL)
                check_handed_out(what, graph->node[i]->attribute[k]->g, true);
}

static void check_model(mpl_ctx *ctx, const char *what, const char *path)
{
    owned_memory char *data;
    size_t size;
    Onnx__ModelProto *m;

    assert_ok(ctx, mpl_file_read(ctx, path, &data, &size));
    m = onnx__model_proto__unpack(NULL, size, (const uint8_t *)data);
    assert_non_null(m);
    check_handed_out(what, m->graph, false);
    onnx__model_proto__free_unpacked(m, NULL);
}

TEST(test_control)
{
    char path[600];

    for (size_t i = 0; i < sizeof control / sizeof *control; i++) {
        mpl_source source;
        mpl_graph *g, *back = NULL;
        interpreter one, other;

        assert_ok(ctx, mpl_source_open(ctx, control[i].graph, NULL, &source));
        g = source.graph;
        one = interpret_begin(ctx, g);
        set_values(&one, control[i].whole, control[i].scale);
        assert_ok(ctx, mpl_onnx_write(ctx, file_of("control.onnx", path), g,
                                      &(mpl_onnx_weights){fill_from, &one}, 0, NULL));
        check_model(ctx, control[i].graph, path);
        if (mpl_onnx_read(ctx, path, NULL, &back) != MPL_OK)
            fail_msg("%s: %s", control[i].graph, ctx->message);
        if (control[i].same)
            assert_same_problem(ctx, g, back);
        other = interpret_begin(ctx, back);
        assert_int_equal(g->n_inputs, back->n_inputs);
        assert_int_equal(g->n_outputs, back->n_outputs);
        for (uint32_t k = 0; k < g->n_inputs; k++)
            memcpy(other.data[back->input[k]], one.data[g->input[k]], g->value_bytes[g->input[k]]);
        assert_ok(ctx, interpret(&one));
        assert_ok(ctx, interpret(&other));
        if (back->n_blocks != control[i].n_blocks ||
            (control[i].rounds != 0 &&
             (one.rounds != control[i].rounds || one.rounds != other.rounds)))
            fail_msg("%s: %u blocks, %" PRIu64 " rounds, then %" PRIu64, control[i].graph,
                     back->n_blocks, one.rounds, other.rounds);
        for (uint32_t k = 0; k < g->n_outputs; k++) {
            mpl_value v = g->output[k], u = back->output[k];

            assert_string_equal(g->value_name[v], back->value_name[u]);
            assert_true(mpl_shape_equal(&g->value_shape[v], &back->value_shape[u]));
            if (memcmp(one.data[v], other.data[u], g->value_bytes[v]) != 0)
                fail_msg("%s: output %u differs", control[i].graph, k);
        }
        interpret_end(&one);
        interpret_end(&other);
        mpl_graph_free(ctx, back);
        mpl_source_fini(ctx, &source);
    }
}

/* ---- metadata ---- */

static void assert_note(const char *data, size_t size, const char *key, const char *value)
{
    size_t n = 0;
    const char *found = mpl_onnx_note_find(data, size, key, &n);

    if (value == NULL ? found != NULL
                      : found == NULL || n != strlen(value) || memcmp(found, value, n) != 0)
        fail_msg("%s is %.*s, not %s", key, (int)n, found, value);
}

/* New metadata replaces ours and keeps that of others; all other bytes stay. */
TEST(test_notes)
{
    static const mpl_onnx_note first[] = {
        {"author", "somebody"}, {"memplan.x", "1"}, {"memplan.old", "2"}};
    static const mpl_onnx_note second[] = {{"memplan.x", "a longer one"}};
    char path[600], copy[600], again[600], *data, *bare;
    size_t size, n_bare;
    owned_graph *g, *back = NULL;

    g = text_graph(ctx, text_of_model);
    file_of("a.onnx", path), file_of("b.onnx", copy), file_of("c.onnx", again);
    assert_ok(ctx, mpl_onnx_write(ctx, path, g, &(mpl_onnx_weights){fill_ids, g}, 3, first));
    assert_ok(ctx, mpl_file_read(ctx, path, &data, &size));
    assert_note(data, size, "memplan.x", "1");
    mpl_free(ctx, data);

    assert_ok(ctx, mpl_onnx_annotate(ctx, path, copy, "memplan.", 1, second));
    assert_ok(ctx, mpl_file_read(ctx, copy, &data, &size));
    assert_note(data, size, "author", "somebody");
    assert_note(data, size, "memplan.x", "a longer one");
    assert_note(data, size, "memplan.old", NULL);
    for (size_t n = 0; n < size; n++) { /* nothing past the end of a truncated model is read */
        char *cut = malloc(n + 1);

        memcpy(cut, data, n);
        mpl_onnx_note_find(cut, n, "memplan.none", &n_bare);
        free(cut);
    }
    mpl_free(ctx, data);
    assert_ok(ctx, mpl_onnx_read(ctx, copy, NULL, &back));
    assert_same(g, back);

    assert_ok(ctx, mpl_onnx_annotate(ctx, copy, again, "memplan.", 0, NULL));
    assert_ok(ctx, mpl_onnx_write(ctx, path, g, &(mpl_onnx_weights){fill_ids, g}, 1, first));
    assert_ok(ctx, mpl_file_read(ctx, path, &bare, &n_bare));
    assert_ok(ctx, mpl_file_read(ctx, again, &data, &size));
    assert_int_equal(size, n_bare);
    assert_memory_equal(data, bare, size);
    mpl_free_each(ctx, data, bare);
}

/* ---- what is refused ---- */

static mpl_status fill_never(void *arg, mpl_value v, void *data)
{
    (void)arg, (void)v, (void)data;
    fail_msg("a weight was asked for");
    return MPL_OK;
}

TEST(test_refused)
{
    static const char huge[] = "graph huge\ninput a f32 [1,24000]\nweight w f32 [24000,24000]\n"
                               "y = matmul(a, w)\noutput y\n";
    char path[600], other[600];
    owned_graph *g = NULL;
    FILE *f;

    assert_ok(ctx, mpl_text_read_memory(ctx, "huge", huge, strlen(huge), &g));
    assert_status(ctx,
                  mpl_onnx_write(ctx, file_of("huge.onnx", path), g,
                                 &(mpl_onnx_weights){fill_never, NULL}, 0, NULL),
                  MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "2 GiB"));
    assert_int_not_equal(access(path, F_OK), 0);

    assert_non_null(f = fopen(file_of("text.onnx", path), "w"));
    fputs("graph x\n", f);
    fclose(f);
    assert_status(ctx, mpl_onnx_annotate(ctx, path, file_of("x.onnx", other), "memplan.", 0, NULL),
                  MPL_EINPUT);
    assert_int_not_equal(access(other, F_OK), 0);
}

/* GraphProto.initializer = 5, TensorProto.external_data = 13, ModelProto.graph = 7: a copy
 * elsewhere would lack its weights. */
TEST(test_external)
{
    static const uint8_t model[] = {0x08, 8,   0x3a, 10, 0x2a, 8, 0x42,
                                    1,    'w', 0x6a, 3,  0x0a, 1, 'k'};
    char path[600], beside[600];
    FILE *f;

    assert_non_null(f = fopen(file_of("external.onnx", path), "w"));
    fwrite(model, 1, sizeof model, f);
    fclose(f);
    assert_status(ctx,
                  mpl_onnx_annotate(ctx, path, "/no/such/folder/out.onnx", "memplan.", 0, NULL),
                  MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "beside"));
    assert_ok(ctx,
              mpl_onnx_annotate(ctx, path, file_of("beside.onnx", beside), "memplan.", 0, NULL));
}

TEST(test_out_of_memory)
{
    static const mpl_onnx_note note[] = {{"memplan.x", "1"}};
    char path[600], copy[600];
    owned_graph *g = text_graph(ctx, text_of_model);

    file_of("memory.onnx", path), file_of("copy.onnx", copy);
    EACH_ALLOCATION_FAILS (ctx, st) {
        unlink(path), unlink(copy);
        st = mpl_onnx_write(ctx, path, g, &(mpl_onnx_weights){fill_ids, g}, 1, note);
        assert_int_equal(access(path, F_OK) == 0, st == MPL_OK);
        if (st == MPL_OK)
            st = mpl_onnx_annotate(ctx, path, copy, "memplan.", 1, note);
        assert_int_equal(access(copy, F_OK) == 0, st == MPL_OK);
    }
}

/* Fused convolutions become several nodes that compute the same. */
TEST(test_convolutions)
{
    static const struct {
        const char *line, *kinds; /* of the graph read back, separated by blanks */
    } rows[] = ROW(
        {"conv_act(v, f, c) pads=[1,0,1,2] activation=relu", "conv relu"},
        {"conv_act(v, f) strides=[2,1] activation=relu6", "conv clip"},
        {"conv_act(v, f) activation=none", "conv"},
        {"conv_sum(v, v, f, c) pads=[1,1,1,1]", "conv add"},
        {"gemm_act(a, m, c) activation=relu", "gemm relu"},
        {"gemm_sum(a, a, n, d) activation=relu6", "gemm add clip"},
        {"gemm_act(v, m, c) activation=relu", "matmul add relu"},
        {"gemm_sum(v, v, n)", "matmul add"},
        {"gemm_sum(v, v, n, d) trans_b=1 activation=relu6", "transpose matmul add add clip"},
        {"gemm_sum(a, a, n)", "gemm add"}, {"matmul(a, a) trans_b=1", "transpose matmul"},
        {"conv_sum(v, v, f) kernel_shape=[3,3] pads=[1,1,1,1] activation=relu", "conv add relu"},
        {"conv_sum(v, v, f, c) pads=[1,1,1,1] activation=relu6", "conv add clip"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = one_operation(ctx, rows[i].line), *back = NULL;
        interpreter a, b;
        char path[600], kinds[600] = "";
        unsigned named = 0;
        const float *x, *y;

        file_of("conv.onnx", path);
        assert_ok(ctx, mpl_onnx_write(ctx, path, g, &(mpl_onnx_weights){fill_ids, g}, 0, NULL));
        assert_ok(ctx, mpl_onnx_read(ctx, path, NULL, &back));
        for (mpl_op op = 0; op < back->n_ops; op++) {
            snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s", op > 0 ? " " : "",
                     mpl_op_table[back->op_kind[op]].name);
            named += strcmp(back->op_name[op], g->op_name[0]) == 0;
        }
        assert_string_equal(kinds, rows[i].kinds);
        assert_true(named > 0);
        assert_string_equal(back->value_name[back->output[0]], "y");
        a = interpret_begin(ctx, g), b = interpret_begin(ctx, back);
        for (uint32_t k = 0; k < g->n_inputs; k++)
            for (uint64_t n = 0; n < g->value_bytes[g->input[k]] / sizeof(float); n++)
                if (g->value_type[g->input[k]] == MPL_TYPE_f32)
                    ((float *)a.data[g->input[k]])[n] = ((float *)b.data[back->input[k]])[n] =
                        (float)(n * 7 % 9) * 0.25f - 1;
        assert_ok(ctx, interpret(&a));
        assert_ok(ctx, interpret(&b));
        x = a.data[g->output[0]], y = b.data[back->output[0]];
        for (uint64_t n = 0; n < g->value_bytes[g->output[0]] / sizeof *x; n++)
            assert_float_equal(x[n], y[n], 1e-5);
        interpret_end(&a);
        interpret_end(&b);
    }
}

TESTS_WITHIN(make_folder, folder_remove, test_operators, test_convolutions, test_messages,
             test_networks, test_control, test_notes, test_refused, test_external,
             test_out_of_memory)
