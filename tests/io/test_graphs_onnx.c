/* Reading ONNX models: known networks (operators, shapes, bytes), every error, external data, dims,
 * bindings. Small models are texts, many in tests/data/onnx, made by an encoder independent of the
 * reader. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/onnx_text.h"
#include "tests/support/interpret.h"
#include "tests/support/folder.h"

#include "graphs/ops/ops_priv.h"
#include "graphs/passes/passes.h"

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
    int64_t live = ctx->n_live;

    assert_status(ctx, read_message(ctx, m, options, &g), MPL_EINPUT);
    assert_int_equal(ctx->n_live, live);
    assert_null(g);
    if (strstr(ctx->message, text) == NULL || strchr(ctx->message, '\n') != NULL)
        fail_msg("'%s' was expected in the one line: %s", text, ctx->message);
}

/* ---- the networks of onnx-light ---- */

static const struct network {
    const char *name;
    uint32_t n_ops; /* nodes of the file except those that make weights */
    const char *output;
    mpl_op_kind kind; /* one operator and its count */
    uint32_t n_kind;
    uint64_t peak_bytes; /* live, in file order, without inputs and weights */
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
        owned_graph *g = NULL;
        owned_problem *p = NULL;
        owned_map *map = NULL;
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
        count_up(g->n_ops, order);
        options.in_place = options.views = options.pin_outputs = false;
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
        free(order);
        assert_int_equal(peak, net->peak_bytes);
    }
}

/* ---- wrong files ---- */

/* A truncated file is refused by name; one flipped bit gives another model or an error. */
static void cut_and_flip(mpl_ctx *ctx, const char *name, char *data, size_t n)
{
    uint64_t random = 1;

    for (size_t i = 0; i < 64; i++) {
        mpl_graph *g = NULL;

        assert_status(ctx, mpl_onnx_read_memory(ctx, name, data, n * i / 64, NULL, &g), MPL_EINPUT);
        assert_non_null(strstr(ctx->message, name));
        assert_null(strchr(ctx->message, '\n'));
    }
    for (unsigned i = 0; i < 400; i++) {
        owned_graph *g = NULL;
        mpl_status st;
        size_t bit;

        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        bit = (size_t)(random >> 20) % (8 * n);
        data[bit / 8] ^= (char)(1u << bit % 8);
        st = mpl_onnx_read_memory(ctx, name, data, n, NULL, &g);
        if (st != MPL_OK && st != MPL_EINPUT)
            fail_msg("bit %zu flipped: status '%s': %s", bit, mpl_status_name(st), ctx->message);
        assert_null(st == MPL_OK ? NULL : strchr(ctx->message, '\n'));
        data[bit / 8] ^= (char)(1u << bit % 8);
    }
}

/* The graph is the last field of the file, so no truncation is complete. */
TEST(cut_and_flipped)
{
    static const char *const texts[] = {
        "input x f32 [1,3,8,8]\ninit w f32 [2,3,1,1] = 1 2 3 4 5 6\nc = Conv(x, w) pads=[0,0,0,0]\n"
        "r = Relu(c)\np = MaxPool(r) kernel_shape=[2,2] strides=[2,2]\ny = Flatten(p)\noutput y\n",
        "input go bool []\ninput x f32 [2]\ny = If(go)\ngraph then_branch\n  y = Neg(x)\n"
        "  output y\nend\ngraph else_branch\n  y = Exp(x)\n  output y\nend\noutput y\n",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        message m = onnx_model(texts[i]);

        cut_and_flip(ctx, "small.onnx", (char *)m.data, m.n);
    }
}

TEST(real_model_cut_and_flipped)
{
    static const char *const path = MPL_SHARED "/onnx-light/light_inception_v1.onnx";
    owned_memory char *data;
    size_t n;

    skip_without(path);
    assert_ok(ctx, mpl_file_read(ctx, path, &data, &n));
    cut_and_flip(ctx, path, data, n);
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

/* A message nested a thousand levels deep; megabytes of that would exhaust protobuf-c's stack. */
TEST(deep_nesting)
{
    message m = {.n = 0}, outer;

    for (unsigned i = 0; i < 400; i++) { /* TypeProto.sequence_type.elem_type.sequence_type... */
        outer.n = 0;
        put_message(&outer, i % 2 == 0 ? 1 : 4, &m);
        m = outer;
    }
    for (unsigned i = 0; i < 3; i++) { /* ModelProto.graph.input.type */
        outer.n = 0;
        put_message(&outer, i == 0 ? 2 : i == 1 ? 11 : 7, &m);
        m = outer;
    }
    assert_refused(ctx, &m, NULL, "nest deeper");
}

/* A row of a table in tests/data/onnx. */
typedef struct case_row {
    int opset;
    char *column[3];
} case_row;

/* Calls CHECK for each row of a file, `OPSET | COLUMN | COLUMN | COLUMN`. */
static void each_row(mpl_ctx *ctx, const char *path, uint32_t n_rows,
                     void (*check)(mpl_ctx *ctx, const case_row *row))
{
    char *text, *next;
    size_t size;
    uint32_t n = 0;

    assert_ok(ctx, mpl_file_read(ctx, path, &text, &size));
    next = text;
    for (char *line; (line = strsep(&next, "\n")) != NULL;)
        if (*line >= '0' && *line <= '9') {
            case_row row = {.opset = atoi(line)};

            for (unsigned i = 0; i < 3; i++) {
                line = strstr(line, " | ");
                assert_non_null(line);
                *line = '\0', line += 3;
                row.column[i] = line;
            }
            check(ctx, &row);
            n++;
        }
    mpl_free(ctx, text);
    assert_int_equal(n, n_rows);
}

static void check_refused(mpl_ctx *ctx, const case_row *row)
{
    char text[600];
    message m;

    snprintf(text, sizeof text, "opset %d\ninput x %s\nname the node\n%s\noutput y\n", row->opset,
             row->column[0], row->column[1]);
    m = onnx_model(text);
    assert_refused(ctx, &m, NULL, row->column[2]);
}

TEST(refused_nodes)
{
    each_row(ctx, "tests/data/onnx/refused.txt", 49, check_refused);
}

/* Operators that attention becomes: heads that share keys copy none, nor does one step transpose;
 * masks that hide nothing are left out. `view`: only names. */
TEST(attention_is_lean)
{
    static const struct {
        const char *lines, *kinds;
    } rows[] = ROW(
        {"input q f32 [1,4,3,8]\ninput k f32 [1,2,5,8]\ny = Attention(q, k, k) scale=1.0f\n",
         "view matmul view softmax view matmul view view"},
        {"input q f32 [1,4,3,8]\ninput k f32 [1,4,5,8]\ny = Attention(q, k, k) is_causal=1\n",
         "mul matmul where softmax matmul view"},
        {"input q f32 [2,1,16]\ninput p f32 [2,2,7,8]\n"
         "y, k, v = Attention(q, q, q, -, p, p) q_num_heads=2 kv_num_heads=2 is_causal=1\noutput "
         "k\n",
         "view view concat view concat mul matmul softmax matmul view"},
        {"input q f32 [2,3,16]\nname the node\ndomain com.microsoft\n"
         "y = MultiHeadAttention(q, q, q, -, m) num_heads=2\ninit m i32 [2] = 3 4\n",
         "view transpose view transpose view transpose mul matmul softmax matmul transpose view"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = NULL;
        char text[600], kinds[600] = "";
        message m;

        snprintf(text, sizeof text, "opset 23\n%soutput y\n", rows[i].lines);
        m = onnx_model(text);
        assert_ok(ctx, read_message(ctx, &m, NULL, &g));
        for (mpl_op op = 0; op < g->n_ops; op++)
            snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s", op > 0 ? " " : "",
                     (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0
                         ? "view"
                         : mpl_op_table[g->op_kind[op]].name);
        assert_string_equal(kinds, rows[i].kinds);
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
        dims += sprintf(dims, "%s%d", i > 0 ? "," : "", (int)dim_of(term[i]));
}

/* Index of the element selected by a term's letters. */
static int64_t place(const char *term, size_t n, const int64_t *index)
{
    int64_t at = 0;

    for (size_t i = 0; i < n; i++)
        at = at * dim_of(term[i]) + index[(unsigned char)term[i]];
    return at;
}

/* The sum over all letters by definition. */
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
        char dims[64], text[300];
        int size;
        double y[1024] = {0};
        owned_graph *g = NULL;
        interpreter it;
        message m;
        mpl_value out;

        dims_of(equation, (size_t)((comma ? comma : arrow) - equation), dims);
        size = snprintf(text, sizeof text, "opset 12\ninput a f32 [%s]\n", dims);
        if (comma != NULL) {
            dims_of(comma + 1, (size_t)(arrow - comma - 1), dims);
            size += snprintf(text + size, sizeof text - (size_t)size, "input b f32 [%s]\n", dims);
        }
        snprintf(text + size, sizeof text - (size_t)size,
                 "y = Einsum(a%s) equation='%s'\noutput y\n", comma != NULL ? ", b" : "", equation);
        m = onnx_model(text);
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

    m = onnx_model("input x f32 [N,3,?]\ny = Relu(x)\noutput y\n");
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

/* n and k decide a shape, n through an Add; x does not, and is not bound although its contents are
 * given. */
static const char bound_model[] =
    "input n i64 [1]\ninput x f32 [2,3]\ninput k i64 [1]\ninit one i64 [1] = 1\nn1 = Add(n, one)\n"
    "shape = Concat(n1, k) axis=0\nname the node\ny = Reshape(x, shape)\noutput y\n";

TEST(inputs_that_decide_shapes)
{
    static float pixels[6];
    mpl_graph *g = NULL;
    char text[200];
    const mpl_tensor given[] =
        ROW({MPL_TYPE_i64, {1, {1}}, &(int64_t){-1}}, {MPL_TYPE_f32, {2, {2, 3}}, pixels},
            {MPL_TYPE_i64, {1, {1}}, &(int64_t){2}}, {MPL_TYPE_i64, {1, {1}}, &(int64_t){2}});
    mpl_read_options options = {
        .n_inputs = 3, .input_index = (const uint32_t[]){0, 1, 2}, .input_tensor = given};
    message m = onnx_model(bound_model);

    assert_refused(ctx, &m, NULL, "--input n=FILE");
    options.n_inputs = 1;
    assert_refused(ctx, &m, &options, "--input k=FILE");
    options.n_inputs = 3;
    assert_refused(ctx, &m, &options, "node 'the node' (Reshape, opset 13)"); /* cannot hold 6 */
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
    /* By name, and with a wrong type. */
    options.input_name = (const char *const[]){"k", "n", "x"};
    options.input_tensor = (const mpl_tensor[]){given[1], given[2], given[1]};
    assert_refused(ctx, &m, &options, "input 'k' is i64 [1]; its contents were given as f32 [2,3]");
}

/* Input indices do not count initialisers, which IR version 3 lists among the inputs. */
TEST(initialisers_are_no_inputs)
{
    const mpl_tensor given = {MPL_TYPE_i64, {1, {2}}, (int64_t[]){3, 4}};
    const mpl_read_options options = {
        .n_inputs = 1, .input_index = (const uint32_t[]){0}, .input_tensor = &given};
    owned_graph *g = NULL;
    message m;
    char text[200];

    m = onnx_model(
        "input w f32 [1]\ninput s i64 [2]\ninit w f32 [1] = 1\ny = Expand(w, s)\noutput y\n");
    assert_ok(ctx, read_message(ctx, &m, &options, &g));
    assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), "[3,4]");
}

/* ONNX's opset applies to its own operators only. */
TEST(no_own_node)
{
    owned_graph *g = NULL;
    message m = onnx_model("opset 99\ninput x f32 [2]\noutput x\n");

    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 0);
    assert_int_equal(g->n_values, 1);
    m = onnx_model(
        "opset 99\ninput x f32 [2]\noutput x\ndomain com.example\nname the node\ny = Foo(x)\n");
    assert_refused(ctx, &m, NULL, "(Foo of com.example, opset 0): this operator is not supported");
    m = onnx_model("input x f32 [2]\n");
    assert_refused(ctx, &m, NULL, "small.onnx: graph 'small' has no output");
}

/* Unneeded parts are removed: dead nodes, unused results, folded weights. */
TEST(pruned)
{
    owned_graph *g = NULL;
    message m = onnx_model("# w: as IR version 3 lists its initialisers\ninput x f32 [2,3]\n"
                           "input unused f32 [9]\ninput w f32 [3]\ninit w f32 [3] = 1 2 3\n"
                           "init never f32 [3] = 1 2 3\nminus = Neg(w)\nname dead\ngone = Exp(x)\n"
                           "kept, mask = Dropout(x)\ns = Shape(x)\nz = Add(kept, minus)\n"
                           "y = Reshape(z, s)\noutput y\noutput s\noutput x\n");

    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 3);
    assert_int_equal(g->n_inputs, 2);
    assert_int_equal(g->n_outputs, 3);
    assert_int_equal(g->n_values, 2 + 3 + 2); /* inputs, results, minus and s */
    assert_int_equal(mpl_graph_find(g, "mask"), MPL_NONE);
    assert_int_equal(mpl_graph_find(g, "never"), MPL_NONE);
    assert_int_equal(g->value_role[mpl_graph_find(g, "s")], MPL_WEIGHT);
    assert_true(((const float *)g->value_data[mpl_graph_find(g, "minus")])[2] == -3);
}

/* Names made by the reader avoid the file's; empty names are filled in. */
TEST(names)
{
    owned_graph *g = NULL;
    message m =
        onnx_model("opset 11\ninput x f32 [2,3,4]\np = Softmax(x) axis=1\np/flat = Relu(p)\n"
                   "y, - = TopK(p/flat, k)\ninit k i64 [1] = 2\noutput y\n");

    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 5);
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[0]]], "p/flat~2");
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[3]]], "p/flat");
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[4]]], "y");
    assert_string_equal(g->value_name[g->op_out[g->op_out_begin[4] + 1]], "y/out");
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

/* Makes the model's folder, with links that leave it and links within. */
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
        const char *const keys[] = {"location", "offset", "length"};
        const char *const values[] = {o->location, o->offset, o->length};
        char text[300] = "outside w f32 [3]";
        message m;
        owned_graph *g = NULL;
        mpl_status st;

        for (unsigned k = 0; k < 3; k++)
            if (values[k] != NULL)
                snprintf(text + strlen(text), sizeof text - strlen(text), " %s=%s", keys[k],
                         values[k]);
        strcat(text, "\ny = Neg(w)\noutput y\n");
        m = onnx_model(text);
        st = mpl_onnx_read_memory(ctx, in_folder("memplan.onnx"), m.data, m.n, NULL, &g);
        if ((st == MPL_OK) != o->good || (!o->good && strstr(ctx->message, o->message) == NULL))
            fail_msg("%s: status '%s': %s", o->what, mpl_status_name(st), ctx->message);
        if (o->good)
            assert_true(((float *)g->value_data[g->output[0]])[2] ==
                        (o->offset[0] == '4' ? -3 : -2));
    }
    assert_int_equal(folder_remove(), 0);
}

/* ---- folding, and the semantics of each version ---- */

/* The numbers of "1 2 3". */
static uint32_t numbers_of(char *text, double *numbers)
{
    uint32_t n = 0;

    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(n < 64);
        numbers[n++] = strtod(word, NULL);
    }
    return n;
}

/* The model of a row: its constants and its node, of ONNX Runtime's domain if it begins "ms ". */
static message folded_model(const case_row *row)
{
    bool foreign = strncmp(row->column[1], "ms ", 3) == 0;
    char text[1300], constants[900], *rest = constants;
    int size = snprintf(text, sizeof text, "opset %d\n", row->opset);

    snprintf(constants, sizeof constants, "%s", row->column[0]);
    for (char *one; (one = strsep(&rest, ";")) != NULL;)
        if (*one != '\0')
            size += snprintf(text + size, sizeof text - (size_t)size, "init %s\n",
                             one + strspn(one, " "));
    snprintf(text + size, sizeof text - (size_t)size, "name the node\n%s%s\noutput y\n",
             foreign ? "domain com.microsoft\n" : "", row->column[1] + (foreign ? 3 : 0));
    return onnx_model(text);
}

static void check_fold(mpl_ctx *ctx, const case_row *row)
{
    message m = folded_model(row);
    owned_graph *g = NULL;
    char kind[16], shape[200], *want = row->column[2];
    bool folds = strcmp(want, "refused") != 0;
    mpl_status st = read_message(ctx, &m, NULL, &g);
    double numbers[64];
    uint32_t n;
    mpl_value y;

    if ((st == MPL_OK) != folds)
        fail_msg("%d %s: status '%s': %s", row->opset, row->column[1], mpl_status_name(st),
                 ctx->message);
    if (!folds)
        return;
    y = g->output[0];
    assert_int_equal(g->n_ops, 0);
    assert_int_equal(g->n_values, 1);
    snprintf(kind, sizeof kind, "%s ",
             g->value_splat[y] ? "splat" : mpl_type_name((mpl_type)g->value_type[y]));
    mpl_shape_text(&g->value_shape[y], shape);
    if (strncmp(want, kind, strlen(kind)) != 0 ||
        strncmp(want + strlen(kind), shape, strlen(shape)) != 0)
        fail_msg("%d %s: %s%s where %s is expected", row->opset, row->column[1], kind, shape, want);
    n = numbers_of(want + strlen(kind) + strlen(shape), numbers);
    assert_int_equal(n, g->value_splat[y] ? 1 : mpl_count(&g->value_shape[y]));
    for (uint32_t i = 0; i < n; i++) {
        double got = mpl_get((mpl_type)g->value_type[y], g->value_data[y], i);

        if (!(got - numbers[i] < 2e-5 && numbers[i] - got < 2e-5))
            fail_msg("%d %s: element %u is %g where %g is expected", row->opset, row->column[1], i,
                     got, numbers[i]);
    }
}

TEST(folded_versions)
{
    each_row(ctx, "tests/data/onnx/folded.txt", 162, check_fold);
}

/* Each EyeLike makes a value with the dims of the first one, whose array moves as the graph grows.
 *
 * Fault: dims read from the old address. */
TEST(eyes_of_a_graph_that_grows)
{
    enum { N = 200 };
    /* each node makes two values; which one finds full arrays depends on their number */
    char text[8000] = "opset 9\ninput x f32 [2,3]\ninput odd f32 [2,3]\n";
    owned_graph *g = NULL;
    message m;

    for (int i = 0; i < N; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "y%d = EyeLike(x)\noutput y%d\n",
                 i, i);
    m = onnx_model(text);
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_outputs, N);
    for (uint32_t i = 0; i < N; i++)
        assert_true(mpl_shape_equal(&g->value_shape[g->output[i]], &(mpl_shape){2, {2, 3}}));
}

/* A constant of one repeated number decides a shape like any other. */
TEST(shape_of_one_number)
{
    message m = onnx_model("input x f32 [1]\ninit three i64 [1] = 3\ns = Expand(three, three)\n"
                           "y = Expand(x, s)\noutput y\noutput s\n");
    owned_graph *g = NULL;
    char text[200];

    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->value_splat[g->output[1]], 1);
    assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text), "[3,3,3]");
}

/* A weight of 4 TiB of one repeated number stays one number; other large ones stay for the run. */
TEST(large_constants)
{
    message m = onnx_model(
        "init s i64 [2] = 1048576 1048576\ninit flat i64 [1] = -1\ninit two f32 [1] = 2\n"
        "zeros = ConstantOfShape(s)\ntwos = Add(zeros, two)\nt = Transpose(twos)\n"
        "c = Cast(t) to=11\ny = Reshape(c, flat)\noutput y\n");
    mpl_graph *g = NULL;
    mpl_value y;

    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    y = g->output[0];
    assert_int_equal(g->n_ops, 0);
    assert_int_equal(g->value_splat[y], 1);
    assert_int_equal(g->value_bytes[y], UINT64_C(8) << 40);
    assert_true(*(double *)g->value_data[y] == 2);
    mpl_graph_free(ctx, g);
    g = NULL;

    m = onnx_model(
        "init s i64 [2] = 67108864 2\ninit ab f32 [2] = 1 2\ny = Expand(ab, s)\noutput y\n");
    assert_ok(ctx, read_message(ctx, &m, NULL, &g));
    assert_int_equal(g->n_ops, 1);
    mpl_graph_free(ctx, g);
}

/* Every allocation fails once. */
TEST(failing_allocations)
{
    static const char *const models[] = {
        bound_model,
        "init a f32 [3] = 1 2 3\ninit b i64 [2] = 2 1\nz, y = Split(a, b)\noutput y\n"};
    const mpl_tensor one = {MPL_TYPE_i64, {1, {1}}, &(int64_t){2}};
    mpl_read_options options = {.n_inputs = 3,
                                .input_name = (const char *const[]){"n", "k", "x"},
                                .input_tensor = (const mpl_tensor[]){one, one, one}};

    for (int i = 0; i < 2; i++) {
        message m = onnx_model(models[i]);

        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_graph *g = NULL;

            st = read_message(ctx, &m, &options, &g);
        }
    }
}

TESTS(light_networks, cut_and_flipped, real_model_cut_and_flipped, no_such_file, deep_nesting,
      refused_nodes, attention_is_lean, einsum_sums, dims_from_options, inputs_that_decide_shapes,
      initialisers_are_no_inputs, no_own_node, pruned, names, external_data, folded_versions,
      eyes_of_a_graph_that_grows, shape_of_one_number, large_constants, failing_allocations)
