/* Reading ONNX models: known networks (operators, shapes, bytes), every way to be wrong, external
 * data, dims, bindings. Small models are written here byte by byte, by an encoder that shares
 * nothing with the reader. */
#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/derive/from_graph.h"
#include "tests/support/onnx_model.h"
#include "tests/support/interpret.h"
#include "tests/support/folder.h"

#include "graphs/passes/passes.h"
#include "graphs/source.h"

#include <sys/stat.h>

static mpl_status read_message(mpl_ctx *ctx, const message *m, const mpl_read_options *options,
                               mpl_graph **g)
{
    return mpl_onnx_read_memory(ctx, "small.onnx", m->data, m->n, options, g);
}

static void assert_refused(mpl_ctx *ctx, const message *m, const mpl_read_options *options,
                           const char *text)
{
    mpl_graph *g = NULL;

    assert_status(ctx, read_message(ctx, m, options, &g), MPL_EINPUT);
    assert_null(g);
    if (strstr(ctx->message, text) == NULL || strchr(ctx->message, '\n') != NULL)
        fail_msg("'%s' was expected in the one line: %s", text, ctx->message);
    assert_int_equal(ctx->n_live, 0);
}

/* ---- the networks of onnx-light ---- */

static const struct network {
    const char *name;
    uint32_t n_ops; /* nodes of the file but those that make weights */
    const char *output;
    mpl_op_kind kind; /* one operator and how often it stands there */
    uint32_t n_kind;
    uint64_t peak_bytes; /* live, file order, one buffer for each output of an operation, inputs and
                            weights apart */
} networks[] = {
    {"bvlc_alexnet", 24, "[1,1000]", MPL_OP_conv, 5, 2239488},
    {"vgg19", 46, "[1,1000]", MPL_OP_conv, 16, 25690112},
    {"inception_v1", 143, "[1,1000]", MPL_OP_conv, 57, 6422528},
    {"resnet50", 176, "[1,1000]", MPL_OP_batch_norm, 53, 9633792},
    {"densenet121", 668, "[1,1000,1,1]", MPL_OP_batch_norm, 121, 8429568},
};

TEST(light_networks)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        const struct network *net = &networks[i];
        mpl_problem_options options = mpl_problem_options_default();
        char path[256], text[200];
        mpl_graph *g = NULL;
        mpl_problem *p = NULL;
        mpl_value_map *map = NULL;
        mpl_op *order;
        uint64_t peak;
        uint32_t n_kind = 0;

        snprintf(path, sizeof path, "%s/onnx-light/light_%s.onnx", MPL_SHARED, net->name);
        skip_without(path);
        assert_ok(ctx, mpl_onnx_read(ctx, path, NULL, &g));
        for (mpl_op op = 0; op < g->n_ops; op++)
            n_kind += g->op_kind[op] == net->kind;
        for (mpl_value v = 0; v < g->n_values; v++)
            if (g->value_role[v] == MPL_WEIGHT && g->value_bytes[v] > 4096)
                assert_int_equal(g->value_splat[v], 1);
        assert_int_equal(g->n_ops, net->n_ops);
        assert_int_equal(n_kind, net->n_kind);
        assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), net->output);
        order = calloc(g->n_ops, sizeof *order);
        for (mpl_op op = 0; op < g->n_ops; op++)
            order[op] = op;
        options.in_place = options.views = options.pin_outputs = false;
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
        free(order);
        mpl_problem_free(ctx, p);
        mpl_value_map_free(ctx, map);
        mpl_graph_free(ctx, g);
        assert_int_equal(peak, net->peak_bytes);
    }
}

/* ---- files that are wrong ---- */

static uint8_t *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);

    assert_non_null(f);
    *n = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

TEST(cut_and_flipped)
{
    static const char *const path = MPL_SHARED "/onnx-light/light_inception_v1.onnx";
    uint8_t *data;
    size_t n;
    uint64_t random = 1;

    skip_without(path);
    data = slurp(path, &n);
    for (size_t i = 0; i < 64; i++) {
        mpl_graph *g = NULL;

        assert_status(ctx, mpl_onnx_read_memory(ctx, path, data, n * i / 64, NULL, &g), MPL_EINPUT);
        assert_non_null(strstr(ctx->message, path));
        assert_null(strchr(ctx->message, '\n'));
    }
    for (unsigned i = 0; i < 400; i++) {
        mpl_graph *g = NULL;
        mpl_status st;
        size_t bit;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        bit = (size_t)(random >> 20) % (8 * n);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        st = mpl_onnx_read_memory(ctx, path, data, n, NULL, &g);
        if (st != MPL_OK && st != MPL_EINPUT)
            fail_msg("bit %zu flipped: status '%s': %s", bit, mpl_status_name(st), ctx->message);
        assert_null(st == MPL_OK ? NULL : strchr(ctx->message, '\n'));
        mpl_graph_free(ctx, g);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(data);
}

TEST(no_such_file)
{
    mpl_graph *g = NULL;

    assert_status(ctx, mpl_onnx_read(ctx, "tests/no_such.onnx", NULL, &g), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "tests/no_such.onnx"));
    assert_status(ctx, mpl_onnx_read(ctx, "tests", NULL, &g), MPL_EINPUT);
    assert_status(ctx, mpl_onnx_read(ctx, "/dev/null", NULL, &g), MPL_EINPUT);
    assert_status(ctx, mpl_onnx_read_memory(ctx, "text", "graph small\n", 12, NULL, &g),
                  MPL_EINPUT);
}

/* A message that nests a thousand deep would exhaust protobuf-c's stack if it went on for
 * megabytes. */
TEST(deep_nesting)
{
    message m = {.n = 0}, outer;

    begin();
    for (unsigned i = 0; i < 400; i++) { /* TypeProto.sequence_type.elem_type.sequence_type... */
        outer.n = 0;
        put_message(&outer, i % 2 == 0 ? 1 : 4, &m);
        m = outer;
    }
    outer.n = 0;
    put_text(&outer, 1, "x");
    put_message(&outer, 2, &m);
    put_message(&graph, 11, &outer);
    m = model(13);
    assert_refused(ctx, &m, NULL, "nest deeper");
}

/* One node between x [2,3] and y, each refused for its own reason. */
static const struct refusal {
    const char *what;
    int64_t opset;
    int type;
    const char *dims, *op, *in, *out, *attrs, *message;
} refusals[] = {
    {"unknown operator", 13, FLOAT, "2 3", "Frobnicate", "x", "y", "",
     "node 'the node' (Frobnicate, opset 13): this operator"},
    {"control flow", 16, FLOAT, "2 3", "Loop", "x", "y", "", "(Loop, opset 16)"},
    {"operator of a later opset", 12, FLOAT, "2 3", "Trilu", "x", "y", "",
     "(Trilu, opset 12): this operator is read from opset 14"},
    {"opset too old", 6, FLOAT, "2 3", "Relu", "x", "y", "", "opset 6; 7 to 27"},
    {"opset too new", 28, FLOAT, "2 3", "Relu", "x", "y", "", "opset 28; 7 to 27"},
    {"element type", 13, UINT16, "2 3", "Relu", "x", "y", "",
     "(Relu, opset 13): its input 'x' has type uint16"},
    {"text", 13, STRING, "2 3", "Identity", "x", "y", "",
     "(Identity, opset 13): its input 'x' has type string"},
    {"type that the operator has not", 13, BOOL, "2 3", "Relu", "x", "y", "",
     "node 'the node' (Relu, opset 13)"},
    {"cast to text", 13, FLOAT, "2 3", "Cast", "x", "y", "to=8", "type string"},
    {"unknown attribute", 13, FLOAT, "2 3", "Relu", "x", "y", "knob=1", "attribute 'knob'"},
    {"attribute of another type", 13, FLOAT, "2 3", "Flatten", "x", "y", "axis='one'",
     "attribute 'axis' is not an integer"},
    {"attribute of a later opset", 9, FLOAT, "1 1 4", "MaxPool", "x", "y",
     "kernel_shape=[2] ceil_mode=1", "'ceil_mode'"},
    {"input from nowhere", 13, FLOAT, "2 3", "Add", "x nowhere", "y", "",
     "'nowhere' is made by no node"},
    {"made twice", 13, FLOAT, "2 3", "Relu", "x", "x", "", "its output 'x' is made before"},
    {"no output", 13, FLOAT, "2 3", "Relu", "x", "", "", "it has no output"},
    {"output made by nobody", 13, FLOAT, "2 3", "Relu", "x", "z", "",
     "output 'y' is made by no node"},
    {"too few inputs", 13, FLOAT, "2 3", "Conv", "x", "y", "", "weights are missing"},
    {"named dim", 13, FLOAT, "N 3", "Relu", "x", "y", "", "--dim N=N"},
    {"dim without a name", 13, FLOAT, "2 ?", "Relu", "x", "y", "", "--dim x.1=N"},
    {"no dims", 13, FLOAT, NULL, "Relu", "x", "y", "", "--input x=FILE"},
    {"nine dims", 13, FLOAT, "1 1 1 1 1 1 1 1 1", "Relu", "x", "y", "", "at most 8"},
    {"too many bytes", 13, FLOAT, "4611686018427387904 4", "Relu", "x", "y", "", "2^63"},
    {"shape from an input", 13, INT64, "2", "ConstantOfShape", "x", "y", "", "--input x=FILE"},
    {"axis out of range", 13, FLOAT, "2 3", "Softmax", "x", "y", "axis=7", "(Softmax, opset 13)"},
    {"old axis out of range", 11, FLOAT, "2 3", "Softmax", "x", "y", "axis=7",
     "(Softmax, opset 11): axis 7"},
    {"uneven split", 13, FLOAT, "2 3", "Split", "x", "y z", "axis=1", "does not split into 2"},
    {"batch norm in training", 14, FLOAT, "2 3", "BatchNormalization", "x x x x x", "y",
     "training_mode=1", "training"},
    {"huge window", 13, FLOAT, "1 1 4", "MaxPool", "x", "y",
     "kernel_shape=[99999999999] auto_pad='SAME_UPPER'", "kernel_shape[0]"},
    {"Einsum's diagonal", 13, FLOAT, "2 2", "Einsum", "x", "y", "equation='ii->i'", "stands twice"},
    {"Einsum's letters", 13, FLOAT, "2 2", "Einsum", "x", "y", "equation='ijk->i'",
     "3 letters, its input 2"},
    {"Einsum's result", 13, FLOAT, "2 2", "Einsum", "x", "y", "equation='ij->ik'",
     "in no input's term"},
    {"Einsum's dims", 13, FLOAT, "2 3", "Einsum", "x x", "y", "equation='ij,jk->ik'",
     "3 and 2 of one letter"},
    {"Einsum's terms", 13, FLOAT, "2 3", "Einsum", "x x", "y", "equation='ij->ij'",
     "as many terms"},
    {"Einsum of three", 13, FLOAT, "2 2", "Einsum", "x x x", "y", "equation='ij,jk,kl->il'",
     "one or two"},
    {"Einsum's arrow", 13, FLOAT, "2 2", "Einsum", "x", "y", "equation='ij-ij'", "begins no arrow"},
    {"Einsum's end", 13, FLOAT, "2 2", "Einsum", "x", "y", "equation='ij->ij,'", "goes on behind"},
    {"Einsum's signs", 13, FLOAT, "2 2", "Einsum", "x", "y", "equation='ij1->ij'", "a '1'"},
    {"Einsum's dots", 13, FLOAT, "2 2", "Einsum", "x", "y", "equation='...j->j'",
     "the result has none"},
    {"Einsum without an equation", 13, FLOAT, "2 2", "Einsum", "x", "y", "",
     "'equation' is missing"},
    {"bad auto_pad", 13, FLOAT, "1 1 4", "MaxPool", "x", "y", "kernel_shape=[2] auto_pad='SOME'",
     "auto_pad"},
};

TEST(refused_nodes)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *r = &refusals[i];
        message m;

        begin();
        ADD_IN("x", r->type, r->dims);
        ADD_NODE("the node", r->op, r->in, r->out, r->attrs);
        ADD_OUT("y");
        m = model(r->opset);
        assert_refused(ctx, &m, NULL, r->message);
    }
}

/* ---- Einsum ---- */

static const char *const equations[] = {
    "ij,jk->ik",      "ij,jk->ki", "bij,bjk->bik",    "bhid,bhjd->bhij", "i,j->ij",   "i,i->",
    "bchw,bdhw->bcd", "ijk->ki",   "ij->ij",          "ijk->",           "ijk->j",    "ij,kl->i",
    "ab,ab->ab",      "ab,b->ab",  "abcd,efcd->abef", "bkn,bkm->bnm",    "a,bc->abc", "AaB,Bc->cAa",
    "ij,ik->jk",      "ia,ib->",   "xyz,zy->x",       "qj,jk->qk",       "iq,qk->ik", "q,q->",
    "iq->i",          "biq->qi",   "iq,j->ji",
};

/* q has no elements. */
static int64_t dim_of(char letter)
{
    return letter == 'q' ? 0 : 2 + letter % 3;
}

static void dims_of(const char *term, size_t n, char *dims)
{
    *dims = '\0';
    for (size_t i = 0; i < n; i++)
        dims += sprintf(dims, "%s%d", i > 0 ? " " : "", (int)dim_of(term[i]));
}

/* Where the element lies that a term's letters choose. */
static int64_t place(const char *term, size_t n, const int64_t *index)
{
    int64_t at = 0;

    for (size_t i = 0; i < n; i++)
        at = at * dim_of(term[i]) + index[(unsigned char)term[i]];
    return at;
}

/* The sum over all letters, one after the other: the definition. */
static void sum_all(const char *equation, const float *a, const float *b, double *y)
{
    const char *arrow = strchr(equation, '-'), *comma = strchr(equation, ','),
               *end = comma ? comma : arrow;
    int64_t index[128] = {0};
    bool met[128] = {false}, more = strchr(equation, 'q') == NULL;

    for (const char *at = equation; *at != '\0'; at++)
        met[(unsigned char)*at] = *at >= 'A';
    while (more) {
        float x = a[place(equation, (size_t)(end - equation), index)];

        if (comma != NULL)
            x *= b[place(comma + 1, (size_t)(arrow - comma - 1), index)];
        y[place(arrow + 2, strlen(arrow + 2), index)] += (double)x;
        more = false;
        for (int letter = 0; letter < 128 && !more; letter++)
            if (met[letter]) {
                more = ++index[letter] < dim_of((char)letter);
                index[letter] = more ? index[letter] : 0;
            }
    }
}

TEST(einsum_sums)
{
    for (size_t i = 0; i < sizeof equations / sizeof *equations; i++) {
        const char *equation = equations[i], *arrow = strchr(equation, '-'),
                   *comma = strchr(equation, ',');
        char dims[64], attr[64];
        double y[1024] = {0};
        mpl_graph *g = NULL;
        interpreter it;
        message m;
        mpl_value out;

        begin();
        dims_of(equation, (size_t)((comma ? comma : arrow) - equation), dims);
        ADD_IN("a", FLOAT, dims);
        if (comma != NULL) {
            dims_of(comma + 1, (size_t)(arrow - comma - 1), dims);
            ADD_IN("b", FLOAT, dims);
        }
        snprintf(attr, sizeof attr, "equation='%s'", equation);
        ADD_NODE("", "Einsum", comma != NULL ? "a b" : "a", "y", attr);
        ADD_OUT("y");
        m = model(12);
        assert_ok(ctx, read_message(ctx, &m, NULL, &g));
        it = interpret_begin(ctx, g);
        for (uint32_t k = 0; k < g->n_inputs; k++)
            for (uint64_t e = 0; e < g->value_bytes[g->input[k]] / sizeof(float); e++)
                ((float *)it.data[g->input[k]])[e] = (float)((e * 7 + k * 5) % 11) - 4;
        assert_ok(ctx, interpret(&it));
        sum_all(equation, it.data[g->input[0]], comma != NULL ? it.data[g->input[1]] : NULL, y);
        out = g->output[0];
        assert_int_equal(g->value_shape[out].rank, strlen(arrow + 2));
        for (uint32_t k = 0; k < g->value_shape[out].rank; k++)
            assert_int_equal(g->value_shape[out].dim[k], dim_of(arrow[2 + k]));
        for (uint64_t e = 0; e < g->value_bytes[out] / sizeof(float); e++)
            if ((double)((float *)it.data[out])[e] != y[e])
                fail_msg("%s: element %d", equation, (int)e);
        interpret_end(&it);
        mpl_graph_free(ctx, g);
    }
}

/* ---- dims, bindings, names ---- */

TEST(dims_from_options)
{
    mpl_graph *g = NULL;
    message m;
    char text[200];
    mpl_read_options options = {.n_dims = 2,
                                .dim_name = (const char *const[]){"N", "x.2"},
                                .dim_value = (const int64_t[]){5, 7}};

    begin();
    ADD_IN("x", FLOAT, "N 3 ?");
    ADD_NODE("", "Relu", "x", "y", "");
    ADD_OUT("y");
    m = model(13);
    assert_ok(ctx, read_message(ctx, &m, &options, &g));
    assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), "[5,3,7]");
    assert_string_equal(g->op_name[0], "y");
    mpl_graph_free(ctx, g);
    options.dim_value = (const int64_t[]){-5, 7};
    assert_refused(ctx, &m, &options, "cannot be negative");
    options.dim_value = (const int64_t[]){5, 7};
    options.dim_name = (const char *const[]){"N", "x.1"}; /* known: 3 */
    assert_refused(ctx, &m, &options, "no input has an open dim 'x.1'; open are: N, x.2");
    options.n_dims = 3, options.dim_name = (const char *const[]){"N", "x.2", "M"};
    options.dim_value = (const int64_t[]){5, 7, 9};
    assert_refused(ctx, &m, &options, "no input has an open dim 'M'");
    options.spare_dims = true;
    assert_ok(ctx, read_message(ctx, &m, &options, &g));
    assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), "[5,3,7]");
    mpl_graph_free(ctx, g);
}

/* n and k decide a shape, n by way of an Add; x does not, and is not bound though its contents are
 * given. */
static message bound_model(void)
{
    begin();
    ADD_IN("n", INT64, "1");
    ADD_IN("x", FLOAT, "2 3");
    ADD_IN("k", INT64, "1");
    ADD_INIT("one", INT64, DIMS(1), (int64_t[]){1}, 8);
    ADD_NODE("", "Add", "n one", "n1", "");
    ADD_NODE("", "Concat", "n1 k", "shape", "axis=0");
    ADD_NODE("the node", "Reshape", "x shape", "y", "");
    ADD_OUT("y");
    return model(13);
}

TEST(inputs_that_decide_shapes)
{
    static float pixels[6];
    mpl_graph *g = NULL;
    message m;
    char text[200];
    const mpl_tensor given[] =
        ROW({MPL_TYPE_i64, {1, {1}}, &(int64_t){-1}}, {MPL_TYPE_f32, {2, {2, 3}}, pixels},
            {MPL_TYPE_i64, {1, {1}}, &(int64_t){2}}, {MPL_TYPE_i64, {1, {1}}, &(int64_t){2}});
    mpl_read_options options = {
        .n_inputs = 3, .input_index = (const uint32_t[]){0, 1, 2}, .input_tensor = given};

    m = bound_model();
    assert_refused(ctx, &m, NULL, "--input n=FILE");
    options.n_inputs = 1;
    assert_refused(ctx, &m, &options, "--input k=FILE");
    options.n_inputs = 3;
    assert_refused(ctx, &m, &options, "node 'the node' (Reshape, opset 13)"); /* [0, 2] holds no 6
                                                                                  elements */
    options.input_tensor = (const mpl_tensor[]){given[2], given[1], given[3]};
    assert_ok(ctx, read_message(ctx, &m, &options, &g));
    assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), "[3,2]");
    assert_int_equal(g->n_ops, 1);
    assert_int_equal(g->n_bound, 2);
    assert_int_equal(g->n_inputs, 1);
    assert_string_equal(g->bound_input[0], "n");
    assert_string_equal(g->bound_input[1], "k");
    for (uint32_t i = 0; i < 3; i++) {
        mpl_value v = mpl_graph_file_input(g, i);

        assert_string_equal(g->value_name[v], ((const char *const[]){"n", "x", "k"})[i]);
        assert_int_equal(g->value_role[v], i == 1 ? MPL_INPUT : MPL_WEIGHT);
    }
    assert_int_equal(mpl_graph_file_input(g, 3), MPL_NONE);
    mpl_graph_free(ctx, g);
    g = NULL;
    /* By name, and of the wrong type. */
    options.input_name = (const char *const[]){"k", "n", "x"};
    options.input_tensor = (const mpl_tensor[]){given[1], given[2], given[1]};
    assert_refused(ctx, &m, &options, "input 'k' is i64 [1]; its contents were given as f32 [2,3]");
}

/* Indices of inputs do not count initialisers, which IR version 3 lists among them. */
TEST(initialisers_are_no_inputs)
{
    const mpl_tensor given = {MPL_TYPE_i64, {1, {2}}, (int64_t[]){3, 4}};
    const mpl_read_options options = {
        .n_inputs = 1, .input_index = (const uint32_t[]){0}, .input_tensor = &given};
    mpl_graph *g = NULL;
    message m;
    char text[200];

    begin();
    ADD_IN("w", FLOAT, "1");
    ADD_IN("s", INT64, "2");
    ADD_INIT("w", FLOAT, DIMS(1), (float[]){1}, 4);
    ADD_NODE("", "Expand", "w s", "y", "");
    ADD_OUT("y");
    m = model(13);
    assert_ok(ctx, read_message(ctx, &m, &options, &g));
    assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), "[3,4]");
    mpl_graph_free(ctx, g);
}

/* The opset of ONNX matters to its own operators alone. */
TEST(no_own_node)
{
    mpl_graph *g = NULL;
    message m, foreign = node("the node", "Foo", "x", "y", "");

    begin();
    ADD_IN("x", FLOAT, "2");
    ADD_OUT("x");
    m = model(99);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 0);
    assert_int_equal(g->n_values, 1);
    mpl_graph_free(ctx, g);
    put_text(&foreign, 7, "com.example");
    add(1, foreign);
    m = model(99);
    assert_refused(ctx, &m, NULL, "(Foo of com.example, opset 0): this operator is not supported");
    begin();
    ADD_IN("x", FLOAT, "2");
    m = model(13);
    assert_refused(ctx, &m, NULL, "small.onnx: graph 'small' has no output");
}

/* What nobody needs is gone: dead nodes, unused results, weights that were folded away. */
TEST(pruned)
{
    mpl_graph *g = NULL;
    message m;

    begin();
    ADD_IN("x", FLOAT, "2 3");
    ADD_IN("unused", FLOAT, "9");
    ADD_IN("w", FLOAT, "3"); /* as IR version 3 lists its initialisers */
    ADD_INIT("w", FLOAT, DIMS(3), (float[]){1, 2, 3}, 12);
    ADD_INIT("never", FLOAT, DIMS(3), (float[]){1, 2, 3}, 12);
    ADD_NODE("", "Neg", "w", "minus", "");
    ADD_NODE("dead", "Exp", "x", "gone", "");
    ADD_NODE("", "Dropout", "x", "kept mask", "");
    ADD_NODE("", "Shape", "x", "s", "");
    ADD_NODE("", "Add", "kept minus", "z", "");
    ADD_NODE("", "Reshape", "z s", "y", "");
    ADD_OUT("y");
    ADD_OUT("s");
    ADD_OUT("x");
    m = model(13);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 3);
    assert_int_equal(g->n_inputs, 2);
    assert_int_equal(g->n_outputs, 3);
    assert_int_equal(g->n_values, 2 + 3 + 2); /* inputs, results, minus and s */
    assert_int_equal(mpl_graph_find(g, "mask"), MPL_NONE);
    assert_int_equal(mpl_graph_find(g, "never"), MPL_NONE);
    assert_int_equal(g->value_role[mpl_graph_find(g, "s")], MPL_WEIGHT);
    assert_true(((const float *)g->value_data[mpl_graph_find(g, "minus")])[2] == -3);
    mpl_graph_free(ctx, g);
}

/* Names that the reader makes give way to the file's; empty names are filled in. */
TEST(names)
{
    mpl_graph *g = NULL;
    message m;

    begin();
    ADD_IN("x", FLOAT, "2 3 4");
    ADD_NODE("", "Softmax", "x", "p", "axis=1");
    ADD_NODE("", "Relu", "p", "p/flat", "");
    ADD_NODE("", "TopK", "p/flat k", "y -", "");
    ADD_INIT("k", INT64, DIMS(1), (int64_t[]){2}, 8);
    ADD_OUT("y");
    m = model(11);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 5);
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[0]]], "p/flat~2");
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[3]]], "p/flat");
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[4]]], "y");
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[4] + 1]], "y/out");
    mpl_graph_free(ctx, g);
}

/* ---- external data ---- */

static const struct outside {
    const char *what, *location, *offset, *length;
    bool good;
    const char *message;
} outsides[] = {
    {"in place", "memplan-weights.bin", "4", "12", true, ""},
    {"length left out", "memplan-weights.bin", "4", NULL, true, ""},
    {"below", "./memplan-weights.bin", "0", "12", true, ""},
    {"absolute", "/absolute/memplan-weights.bin", "4", "12", false, "relative path"},
    {"above", "../above/memplan-weights.bin", "4", "12", false, "relative path"},
    {"above, later", "a/../memplan-weights.bin", "4", "12", false, "relative path"},
    {"above at the end", "a/..", "4", "12", false, "relative path"},
    {"dots in a name", "..memplan", "4", "12", false, "..memplan: No such file"},
    {"missing", "memplan-none.bin", "4", "12", false, "memplan-none.bin"},
    {"no place", NULL, "4", "12", false, "relative path"},
    {"too far", "memplan-weights.bin", "8", "12", false, "the file has 16"},
    {"far too far", "memplan-weights.bin", "9223372036854775807", "12", false, "the file has 16"},
    {"wrong length", "memplan-weights.bin", "4", "8", false, "dims need 12"},
    {"length of more", "memplan-weights.bin", "0", "16", false, "dims need 12"},
    {"negative offset", "memplan-weights.bin", "-4", "12", false, "no number"},
    {"no number", "memplan-weights.bin", "4x", "12", false, "no number"},
    {"folder", ".", "0", "12", false, "not a regular file"},
    {"in a folder", "sub//w.bin", "4", "12", true, ""},
    {"link to a file outside", "link.bin", "0", "12", false, "link.bin: a symbolic link"},
    {"link to a file beside", "beside.bin", "4", "12", false, "beside.bin: a symbolic link"},
    {"link to a folder", "out/passwd", "0", "12", false, "out/passwd: a symbolic link"},
    {"link of a link", "sub/up/out/passwd", "0", "12", false, "a symbolic link"},
    {"dangling link", "nowhere.bin", "0", "12", false, "nowhere.bin: a symbolic link"},
    {"pipe", "pipe", "0", "12", false, "not a regular file"},
    {"file as a folder", "memplan-weights.bin/x", "0", "12", false, "Not a directory"},
};

static message entry(const char *key, const char *value)
{
    message m = {.n = 0};

    put_text(&m, 1, key);
    put_text(&m, 2, value);
    return m;
}

/* The folder of the model, with links out of it and within. */
static void make_outsides(void)
{
    assert_int_equal(folder_make("onnx"), 0);
    folder_put("memplan-weights.bin", (float[]){9, 1, 2, 3}, 16);
    assert_int_equal(mkdir(in_folder("sub"), 0777), 0);
    folder_put("sub/w.bin", (float[]){9, 1, 2, 3}, 16);
    assert_int_equal(symlink("/etc/passwd", in_folder("link.bin")), 0);
    assert_int_equal(symlink("memplan-weights.bin", in_folder("beside.bin")), 0);
    assert_int_equal(symlink("/etc", in_folder("out")), 0);
    assert_int_equal(symlink("..", in_folder("sub/up")), 0);
    assert_int_equal(symlink("/nowhere/at/all", in_folder("nowhere.bin")), 0);
    assert_int_equal(mkfifo(in_folder("pipe"), 0666), 0);
}

TEST(external_data)
{
    make_outsides();
    for (size_t i = 0; i < sizeof outsides / sizeof *outsides; i++) {
        const struct outside *o = &outsides[i];
        message w = tensor("w", FLOAT, DIMS(3), NULL, 0), part, m;
        mpl_graph *g = NULL;
        mpl_status st;

        const char *const fields[][2] = {
            {"location", o->location}, {"offset", o->offset}, {"length", o->length}};
        for (unsigned j = 0; j < 3; j++)
            if (fields[j][1] != NULL) {
                part = entry(fields[j][0], fields[j][1]);
                put_message(&w, 13, &part);
            }
        put_int(&w, 14, 1);
        begin();
        add(5, w);
        ADD_NODE("", "Neg", "w", "y", "");
        ADD_OUT("y");
        m = model(13);
        st = mpl_onnx_read_memory(ctx, in_folder("memplan.onnx"), m.data, m.n, NULL, &g);
        if ((st == MPL_OK) != o->good || (!o->good && strstr(ctx->message, o->message) == NULL))
            fail_msg("%s: status '%s': %s", o->what, mpl_status_name(st), ctx->message);
        if (o->good)
            assert_true(((float *)g->value_data[g->output[0]])[2] ==
                        (o->offset[0] == '4' ? -3 : -2));
        mpl_graph_free(ctx, g);
    }
    assert_int_equal(folder_remove(), 0);
}

/* ---- folding, and each version's meaning ---- */

/* "2,3: 1 2 3 4 5 6" as f32, "i 2: 1 1" as i64; "s 2: 7" one element for all. */
static unsigned parse(const char *text, int64_t *dims, double *numbers, unsigned *count)
{
    char *at = (char *)text + strspn(text, "isb ");
    unsigned rank = 0;

    for (; *at != ':'; at += *at == ',')
        dims[rank++] = strtoll(at, &at, 10);
    *count = 0;
    for (at++; *at != '\0'; at += strspn(at, " ")) {
        numbers[(*count)++] = strtod(at, &at);
        assert_true(*count <= 64);
    }
    return rank;
}

static message initialiser(const char *name, const char *text)
{
    int64_t dims[8], whole[64];
    double numbers[64];
    float real[64];
    unsigned count, rank = parse(text, dims, numbers, &count);
    uint8_t truth[64];

    for (unsigned i = 0; i < count; i++) {
        whole[i] = (int64_t)numbers[i];
        real[i] = (float)numbers[i];
        truth[i] = numbers[i] != 0;
    }
    if (text[0] == 'i')
        return tensor(name, INT64, rank, dims, whole, 8 * count);
    if (text[0] == 'b')
        return tensor(name, BOOL, rank, dims, truth, count);
    return tensor(name, FLOAT, rank, dims, real, 4 * count);
}

static const struct folded {
    int64_t opset;
    const char *op, *in, *out, *attrs;
    const char *a, *b, *c, *d; /* initialisers of these names */
    const char *want;          /* what y is */
} folds[] = {
    {11, "Softmax", "a", "y", "", "1,2,2: 0 0 0 0", 0, 0, 0, "1,2,2: .25 .25 .25 .25"},
    {11, "Softmax", "a", "y", "axis=-1", "1,2,2: 0 0 0 0", 0, 0, 0, "1,2,2: .5 .5 .5 .5"},
    {11, "Softmax", "a", "y", "axis=1", "1,2,1: 0 0", 0, 0, 0, "1,2,1: .5 .5"},
    {13, "Softmax", "a", "y", "", "1,2,2: 0 0 0 0", 0, 0, 0, "1,2,2: .5 .5 .5 .5"},
    {12, "Hardmax", "a", "y", "axis=0", "2,2: 0 3 2 1", 0, 0, 0, "2,2: 0 1 0 0"},
    {11, "Squeeze", "a", "y", "axes=[0]", "1,2: 1 2", 0, 0, 0, "2: 1 2"},
    {13, "Squeeze", "a b", "y", "", "1,2,1: 1 2", "i 1: -1", 0, 0, "1,2: 1 2"},
    {13, "Squeeze", "a", "y", "", "1,2,1: 1 2", 0, 0, 0, "2: 1 2"},
    {11, "Unsqueeze", "a", "y", "axes=[0,2]", "2: 1 2", 0, 0, 0, "1,2,1: 1 2"},
    {13, "Unsqueeze", "a b", "y", "", "2: 1 2", "i 1: -1", 0, 0, "2,1: 1 2"},
    {10, "Clip", "a", "y", "min=2.0f", "3: 1 2 3", 0, 0, 0, "3: 2 2 3"},
    {10, "Clip", "a", "y", "min=-1.0f max=2.0f", "3: 1 2 3", 0, 0, 0, "3: 1 2 2"},
    {11, "Clip", "a - b", "y", "", "3: 1 2 3", ": 2", 0, 0, "3: 1 2 2"},
    {9, "Slice", "a", "y", "starts=[1] ends=[99]", "3: 1 2 3", 0, 0, 0, "2: 2 3"},
    {10, "Slice", "a b c - d", "y", "", "3: 1 2 3", "i 1: -1", "i 1: -9", "i 1: -2", "2: 3 1"},
    {11, "Split", "a", "z y", "split=[1,2]", "3: 1 2 3", 0, 0, 0, "2: 2 3"},
    {13, "Split", "a b", "z y", "", "3: 1 2 3", "i 2: 2 1", 0, 0, "1: 3"},
    {13, "Split", "a", "z y", "axis=-1", "4: 1 2 3 4", 0, 0, 0, "2: 3 4"},
    {18, "Split", "a", "z y", "num_outputs=2", "3: 1 2 3", 0, 0, 0, "1: 3"},
    {10, "Pad", "a", "y", "pads=[1,0] value=7.0f", "2: 1 2", 0, 0, 0, "3: 7 1 2"},
    {11, "Pad", "a b c", "y", "", "2: 1 2", "i 2: 0 1", ": 5", 0, "3: 1 2 5"},
    {18, "Pad", "a b c d", "y", "", "1,2: 1 2", "i 2: 1 0", ": 5", "i 1: 1", "1,3: 5 1 2"},
    {18, "Pad", "a b - d", "y", "mode='edge'", "2,1: 1 2", "i 2: 0 1", 0, "i 1: -2", "3,1: 1 2 2"},
    {9, "Upsample", "a b", "y", "", "1,1,2: 1 2", "3: 1 1 2", 0, 0, "1,1,4: 1 1 2 2"},
    {7, "Upsample", "a", "y", "mode='nearest' scales=[1,1,2]", "1,1,2: 1 2", 0, 0, 0, NULL},
    {10, "Resize", "a b", "y", "mode='linear'", "1,1,2: 1 3", "3: 1 1 2", 0, 0, "1,1,4: 1 2 3 3"},
    {11, "Resize", "a c c d", "y", "", "1,1,4: 1 2 3 4", 0, "0:", "i 3: 1 1 2", "1,1,2: 1 3"},
    {18, "Resize", "a - b", "y", "axes=[2]", "1,1,2: 1 2", "1: 2", 0, 0, "1,1,4: 1 1 2 2"},
    {18, "Resize", "a - - b", "y", "axes=[2]", "1,1,2: 1 2", "i 1: 4", 0, 0, "1,1,4: 1 1 2 2"},
    {9, "TopK", "a", "y z", "k=2", "3: 1 3 2", 0, 0, 0, "2: 3 2"},
    {10, "TopK", "a b", "y z", "", "3: 1 3 2", "i 1: 1", 0, 0, "1: 3"},
    {11, "TopK", "a b", "z y", "largest=0", "3: 4 3 2", "i 1: 2", 0, 0, "i 2: 2 1"},
    {11, "ReduceSum", "a", "y", "axes=[1] keepdims=0", "2,2: 1 2 3 4", 0, 0, 0, "2: 3 7"},
    {13, "ReduceSum", "a b", "y", "keepdims=0", "2,2: 1 2 3 4", "i 1: 0", 0, 0, "2: 4 6"},
    {13, "ReduceSum", "a b", "y", "noop_with_empty_axes=1", "2,2: 1 2 3 4", "i 0:", 0, 0,
     "2,2: 1 2 3 4"},
    {13, "ReduceSum", "a b", "y", "keepdims=0", "2,2: 1 2 3 4", "i 0:", 0, 0, ": 10"},
    {13, "ReduceMean", "a", "y", "axes=[0]", "2,2: 1 2 3 4", 0, 0, 0, "1,2: 2 3"},
    {18, "ReduceMean", "a b", "y", "", "2,2: 1 2 3 4", "i 1: 0", 0, 0, "1,2: 2 3"},
    {18, "ReduceL1", "a b", "y", "keepdims=0", "2,2: 1 -2 3 -4", "i 1: 1", 0, 0, "2: 3 7"},
    {9, "Dropout", "a", "y", "ratio=.5f", "2: 1 2", 0, 0, 0, "2: 1 2"},
    {12, "Dropout", "a b c", "y", "", "2: 1 2", ": .5", "b : 0", 0, "2: 1 2"},
    {12, "Dropout", "a b c", "y", "", "2: 1 2", ": 0", "b : 1", 0, "2: 1 2"},
    {12, "Dropout", "a b c", "y", "", "2: 1 2", ": .5", "b : 1", 0, NULL},
    {9, "Dropout", "a", "z y", "", "2: 1 2", 0, 0, 0, NULL},
    {18, "GroupNormalization", "a b c", "y", "num_groups=2", "1,4,1: 1 1 1 1", "2: 1 1", "2: 5 6",
     0, "1,4,1: 5 5 6 6"},
    {21, "GroupNormalization", "a b c", "y", "num_groups=2", "1,4,1: 1 1 1 1", "4: 1 1 1 1",
     "4: 5 6 7 8", 0, "1,4,1: 5 6 7 8"},
    {17, "LayerNormalization", "a b c", "y", "", "1,2: 1 3", "2: 1 2", "2: 0 1", 0, "1,2: -1 3"},
    {23, "RMSNormalization", "a b", "y", "", "1,2: 3 3", "2: 1 2", 0, 0, "1,2: 1 2"},
    {9, "BatchNormalization", "a b c c d", "y", "", "1,2: 4 4", "2: 2 4", "2: 0 2", "2: 1 1",
     "1,2: 7.99996 9.99996"},
    {20, "Gelu", "a", "y", "", "2: 0 1", 0, 0, 0, "2: 0 .8413447"},
    {18, "Mish", "a", "y", "", "2: 0 1", 0, 0, 0, "2: 0 .8650984"},
    {24, "Swish", "a", "y", "alpha=1.0f", "2: 0 1", 0, 0, 0, "2: 0 .7310586"},
    {14, "HardSwish", "a", "y", "", "3: -4 0 4", 0, 0, 0, "3: 0 0 4"},
    {12, "Celu", "a", "y", "alpha=2.0f", "2: -2 3", 0, 0, 0, "2: -1.264241 3"},
    {9, "Cast", "a", "y", "to=7", "2: 1.9 -1.9", 0, 0, 0, "i 2: 1 -1"},
    {15, "CastLike", "a b", "y", "", "2: 1.9 -1.9", "i 0:", 0, 0, "i 2: 1 -1"},
    {12, "Pow", "a b", "y", "", "i 2: 4 9", "2: .5 .5", 0, 0, "i 2: 2 3"},
    {12, "Pow", "a b", "y", "", "2: 2 3", "i 1: 2", 0, 0, "2: 4 9"},
    {11, "Range", "a b c", "y", "", "i : 9", "i : 2", "i : -3", 0, "i 3: 9 6 3"},
    {11, "Range", "a b c", "y", "", "i : 0", "i : 4", "i : 2", 0, "i 2: 0 2"},
    {11, "Range", "a b c", "y", "", ": 0", ": 1", ": .4", 0, "3: 0 .4 .8"},
    {9, "EyeLike", "a", "y", "k=1", "2,3: 0 0 0 0 0 0", 0, 0, 0, "2,3: 0 1 0 0 0 1"},
    {9, "EyeLike", "a", "y", "k=-1 dtype=7", "2,2: 0 0 0 0", 0, 0, 0, "i 2,2: 0 0 1 0"},
    {11, "Softmax", "a", "y", "", "2,3,0:", 0, 0, 0, "2,3,0:"},
    {9, "ConstantOfShape", "a", "y", "", "i 2: 2 1", 0, 0, 0, "s 2,1: 0"},
    {12, "Constant", "", "y", "value_ints=[3,4]", 0, 0, 0, 0, "i 2: 3 4"},
    {12, "Constant", "", "y", "value_float=1.5f", 0, 0, 0, 0, ": 1.5"},
    {13, "Shape", "a", "y", "", "2,3: 1 2 3 4 5 6", 0, 0, 0, "i 2: 2 3"},
    {15, "Shape", "a", "y", "start=-2 end=9", "1,2,3: 1 2 3 4 5 6", 0, 0, 0, "i 2: 2 3"},
    {15, "Shape", "a", "y", "start=-9 end=1", "2,3: 1 2 3 4 5 6", 0, 0, 0, "i 1: 2"},
    {15, "Shape", "a", "y", "start=2 end=1", "1,2,3: 1 2 3 4 5 6", 0, 0, 0, "i 0:"},
    {13, "Size", "a", "y", "", "2,3: 1 2 3 4 5 6", 0, 0, 0, "i : 6"},
    {13, "Reshape", "a b", "y", "", "2,3: 1 2 3 4 5 6", "i 2: 0 -1", 0, 0, "2,3: 1 2 3 4 5 6"},
    {14, "Reshape", "a b", "y", "allowzero=1", "0,3:", "i 3: 3 0 4", 0, 0, "3,0,4:"},
    {11, "OneHot", "a b c", "y", "", "i 2: 1 0", "i : 2", "2: 5 7", 0, "2,2: 5 7 7 5"},
    {11, "CumSum", "a b", "y", "reverse=1", "3: 1 2 3", "i : 0", 0, 0, "3: 6 5 3"},
    {14, "Trilu", "a b", "y", "upper=0", "2,2: 1 2 3 4", "i : -1", 0, 0, "2,2: 0 0 3 0"},
    {8, "Expand", "a b", "y", "", "1: 3", "i 2: 2 2", 0, 0, "s 2,2: 3"},
    {8, "Expand", "a b", "y", "", "2: 3 4", "i 2: 2 1", 0, 0, "2,2: 3 4 3 4"},
    {7, "Tile", "a b", "y", "", "2: 3 4", "i 1: 2", 0, 0, "4: 3 4 3 4"},
    {9, "Gemm", "a b c", "y", "transB=1 alpha=2.0f", "1,2: 1 2", "1,2: 3 4", ": 1", 0, "1,1: 23"},
    {11, "AveragePool", "a", "y", "kernel_shape=[2] strides=[2] auto_pad='SAME_UPPER'",
     "1,1,3: 1 3 5", 0, 0, 0, "1,1,2: 2 5"},
    {11, "AveragePool", "a", "y", "kernel_shape=[2] strides=[2] auto_pad='SAME_LOWER'",
     "1,1,3: 1 3 5", 0, 0, 0, "1,1,2: 1 4"},
    {11, "MaxPool", "a", "y", "kernel_shape=[2] strides=[2] auto_pad='VALID'", "1,1,3: 1 3 5", 0, 0,
     0, "1,1,1: 3"},
    {11, "Conv", "a b", "y", "auto_pad='SAME_LOWER'", "1,1,3: 1 2 3", "1,1,2: 1 10", 0, 0,
     "1,1,3: 10 21 32"},
    {11, "Conv", "a b", "y", "auto_pad='SAME_UPPER'", "1,1,3: 1 2 3", "1,1,2: 1 10", 0, 0,
     "1,1,3: 21 32 3"},
    {11, "Conv", "a b", "y", "auto_pad='SAME_UPPER' dilations=[2]", "1,1,3: 1 2 3", "1,1,2: 1 10",
     0, 0, "1,1,3: 20 31 2"},
    {11, "MaxPool", "a", "y", "kernel_shape=[1] strides=[3] auto_pad='SAME_UPPER'",
     "1,1,6: 1 2 3 4 5 6", 0, 0, 0, "1,1,2: 1 4"},
    {11, "ConvTranspose", "a b", "y", "output_shape=[3,3]", "1,1,2: 1 2", "1,1,2: 1 10", 0, 0,
     NULL},
    {11, "ConvTranspose", "a b", "y", "strides=[2] output_shape=[5]", "1,1,2: 1 2", "1,1,2: 1 10",
     0, 0, "1,1,5: 1 10 2 20 0"},
    {11, "ConvTranspose", "a b", "y", "strides=[2] auto_pad='SAME_UPPER'", "1,1,2: 1 2",
     "1,1,3: 1 10 100", 0, 0, "1,1,4: 1 10 102 20"},
};

static void check_fold(mpl_ctx *ctx, const struct folded *f)
{
    const char *const text[] = {f->a, f->b, f->c, f->d};
    message m;
    mpl_graph *g = NULL;
    mpl_status st;
    int64_t dims[8];
    double numbers[64];
    unsigned count, rank;
    mpl_value y;

    begin();
    for (unsigned i = 0; i < 4; i++)
        if (text[i] != NULL)
            add(5, initialiser((const char[2]){(char)('a' + i)}, text[i]));
    ADD_NODE("the node", f->op, f->in, f->out, f->attrs);
    ADD_OUT("y");
    m = model(f->opset);
    st = read_message(ctx, &m, NULL, &g);
    if ((st == MPL_OK) != (f->want != NULL))
        fail_msg("%s-%d: status '%s': %s", f->op, (int)f->opset, mpl_status_name(st), ctx->message);
    if (f->want == NULL)
        return;
    rank = parse(f->want, dims, numbers, &count);
    y = g->output[0];
    assert_int_equal(g->n_ops, 0);
    assert_int_equal(g->n_values, 1);
    assert_int_equal(g->value_splat[y], f->want[0] == 's');
    assert_int_equal(g->value_type[y], f->want[0] == 'i' ? MPL_TYPE_i64 : MPL_TYPE_f32);
    if (rank != g->value_shape[y].rank ||
        memcmp(dims, g->value_shape[y].dim, rank * sizeof *dims) != 0)
        fail_msg("%s-%d: shape %s where %s is expected", f->op, (int)f->opset,
                 mpl_shape_text(&g->value_shape[y], (char[200]){0}), f->want);
    for (unsigned i = 0; i < count; i++) {
        double got = f->want[0] == 'i' ? (double)((int64_t *)g->value_data[y])[i]
                                       : (double)((float *)g->value_data[y])[i];

        if (!(got - numbers[i] < 2e-5 && numbers[i] - got < 2e-5))
            fail_msg("%s-%d %s: element %u is %g where %s is expected", f->op, (int)f->opset,
                     f->attrs, i, got, f->want);
    }
    mpl_graph_free(ctx, g);
}

TEST(folded_versions)
{
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        check_fold(ctx, &folds[i]);
}

/* Each EyeLike makes a value of the dims of the first one, which move as the graph grows.
 *
 * Catches: dims that are read where they lay before. */
TEST(eyes_of_a_graph_that_grows)
{
    enum { N = 200 };
    mpl_graph *g = NULL;
    message m;
    char name[16];

    begin();
    ADD_IN("x", FLOAT, "2 3");
    ADD_IN("odd", FLOAT, "2 3"); /* each node makes two values: which of them meets full arrays
                                    hangs on how many there are */
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "y%d", i);
        ADD_NODE("", "EyeLike", "x", name, "");
        ADD_OUT(name);
    }
    m = model(9);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_outputs, N);
    for (uint32_t i = 0; i < N; i++)
        assert_true(mpl_shape_equal(&g->value_shape[g->output[i]], &(mpl_shape){2, {2, 3}}));
    mpl_graph_free(ctx, g);
}

/* A constant that is one number for all elements decides a shape as any other. */
TEST(shape_of_one_number)
{
    message m;
    mpl_graph *g = NULL;
    char text[200];

    begin();
    ADD_IN("x", FLOAT, "1");
    ADD_INIT("three", INT64, DIMS(1), (int64_t[]){3}, 8);
    ADD_NODE("", "Expand", "three three", "s", "");
    ADD_NODE("", "Expand", "x s", "y", "");
    ADD_OUT("y");
    ADD_OUT("s");
    m = model(13);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->value_splat[g->output[1]], 1);
    assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), "[3,3,3]");
    mpl_graph_free(ctx, g);
}

/* A weight of 4 TiB that is one number stays one number; a large one that is not is left for the
 * run. */
TEST(large_constants)
{
    message m;
    mpl_graph *g = NULL;
    mpl_value y;

    begin();
    ADD_INIT("s", INT64, DIMS(2), (int64_t[]){1 << 20, 1 << 20}, 16);
    ADD_INIT("flat", INT64, DIMS(1), (int64_t[]){-1}, 8);
    ADD_INIT("two", FLOAT, DIMS(1), (float[]){2}, 4);
    ADD_NODE("", "ConstantOfShape", "s", "zeros", "");
    ADD_NODE("", "Add", "zeros two", "twos", "");
    ADD_NODE("", "Transpose", "twos", "t", "");
    ADD_NODE("", "Cast", "t", "c", "to=11");
    ADD_NODE("", "Reshape", "c flat", "y", "");
    ADD_OUT("y");
    m = model(13);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    y = g->output[0];
    assert_int_equal(g->n_ops, 0);
    assert_int_equal(g->value_splat[y], 1);
    assert_int_equal(g->value_bytes[y], UINT64_C(8) << 40);
    assert_true(*(double *)g->value_data[y] == 2);
    mpl_graph_free(ctx, g);
    g = NULL;

    begin();
    ADD_INIT("s", INT64, DIMS(2), (int64_t[]){1 << 26, 2}, 16);
    ADD_INIT("ab", FLOAT, DIMS(2), (float[]){1, 2}, 8);
    ADD_NODE("", "Expand", "ab s", "y", "");
    ADD_OUT("y");
    m = model(13);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 1);
    mpl_graph_free(ctx, g);
}

/* Every allocation fails once. */
TEST(failing_allocations)
{
    static const struct folded split = {13,         "Split",    "a b", "z y", "",
                                        "3: 1 2 3", "i 2: 2 1", 0,     0,     "1: 3"};
    const mpl_tensor one = {MPL_TYPE_i64, {1, {1}}, &(int64_t){2}};
    mpl_read_options options = {.n_inputs = 3,
                                .input_name = (const char *const[]){"n", "k", "x"},
                                .input_tensor = (const mpl_tensor[]){one, one, one}};
    mpl_status st = MPL_EMEM;
    message m;

    for (int round = 0; round < 2; round++) {
        st = MPL_EMEM;
        for (int64_t k = 0; st == MPL_EMEM; k++) {
            mpl_graph *g = NULL;

            if (round == 0)
                m = bound_model();
            else {
                begin();
                add(5, initialiser("a", split.a));
                add(5, initialiser("b", split.b));
                ADD_NODE("", split.op, split.in, split.out, split.attrs);
                ADD_OUT("y");
                m = model(13);
            }
            mpl_ctx_init(ctx);
            ctx->fail_after = k;
            st = read_message(ctx, &m, &options, &g);
            if (st != MPL_EMEM && st != MPL_OK)
                fail_msg("allocation %d failed: status '%s': %s", (int)k, mpl_status_name(st),
                         ctx->message);
            mpl_graph_free(ctx, g);
            assert_int_equal(ctx->n_live, 0);
        }
        assert_int_equal(st, MPL_OK);
    }
}

TESTS(light_networks, cut_and_flipped, no_such_file, deep_nesting, refused_nodes, einsum_sums,
      dims_from_options, inputs_that_decide_shapes, initialisers_are_no_inputs, no_own_node, pruned,
      names, external_data, folded_versions, eyes_of_a_graph_that_grows, shape_of_one_number,
      large_constants, failing_allocations)
