/* The .graph format: nothing is lost, every error has its line, no input crashes it. */
#include "tests/support/folder.h"

#include "graphs/core/rng.h"
#include "graphs/io/text/text_priv.h"

/* ---- equality of graphs, array by array ---- */

static void assert_same_ids(const uint32_t *a, const uint32_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(a[i], b[i]);
}

static void assert_same_attrs(const mpl_graph *a, const mpl_graph *b)
{
    for (uint32_t i = 0; i < a->op_attr_begin[a->n_ops]; i++) {
        mpl_attr x = mpl_attr_at(a, i), y = mpl_attr_at(b, i);

        assert_int_equal(x.key, y.key);
        assert_int_equal(x.n, y.n);
        if (x.n > 0 && x.ints != NULL)
            assert_memory_equal(x.ints, y.ints, x.n * sizeof *x.ints);
        if (x.n > 0 && x.floats != NULL)
            assert_memory_equal(x.floats, y.floats, x.n * sizeof *x.floats);
        if (x.text != NULL)
            assert_memory_equal(x.text, y.text, x.n + 1);
    }
}

static void assert_same_values(const mpl_graph *a, const mpl_graph *b)
{
    for (mpl_value v = 0; v < a->n_values; v++) {
        assert_string_equal(a->value_name[v], b->value_name[v]);
        assert_int_equal(a->value_type[v], b->value_type[v]);
        assert_int_equal(a->value_role[v], b->value_role[v]);
        assert_true(mpl_shape_equal(&a->value_shape[v], &b->value_shape[v]));
        assert_int_equal(a->value_op[v], b->value_op[v]);
        assert_int_equal(a->value_splat[v], b->value_splat[v]);
        assert_int_equal(a->value_data[v] == NULL, b->value_data[v] == NULL);
        if (a->value_data[v] != NULL)
            assert_memory_equal(a->value_data[v], b->value_data[v],
                                a->value_splat[v] ? mpl_type_bytes((mpl_type)a->value_type[v])
                                                  : a->value_bytes[v]);
    }
}

static void assert_same(const mpl_graph *a, const mpl_graph *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->n_ops, b->n_ops);
    assert_int_equal(a->n_values, b->n_values);
    for (mpl_op op = 0; op < a->n_ops; op++) {
        assert_int_equal(a->op_kind[op], b->op_kind[op]);
        assert_string_equal(a->op_name[op], b->op_name[op]);
    }
    assert_same_ids(a->op_in_begin, b->op_in_begin, a->n_ops + 1);
    assert_same_ids(a->op_out_begin, b->op_out_begin, a->n_ops + 1);
    assert_same_ids(a->op_attr_begin, b->op_attr_begin, a->n_ops + 1);
    assert_same_ids(a->op_in, b->op_in, a->op_in_begin[a->n_ops]);
    assert_same_ids(a->op_out, b->op_out, a->op_out_begin[a->n_ops]);
    assert_same_attrs(a, b);
    assert_same_values(a, b);
    assert_int_equal(a->n_inputs, b->n_inputs);
    assert_same_ids(a->input, b->input, a->n_inputs);
    assert_int_equal(a->n_outputs, b->n_outputs);
    assert_same_ids(a->output, b->output, a->n_outputs);
    assert_int_equal(a->n_blocks, b->n_blocks);
    assert_same_ids(a->op_block, b->op_block, a->n_ops);
    assert_same_ids(a->op_body_begin, b->op_body_begin, a->n_ops + 1);
    assert_same_ids(a->op_body, b->op_body, a->op_body_begin[a->n_ops]);
    assert_same_ids(a->value_block, b->value_block, a->n_values);
    assert_same_ids(a->block_parent, b->block_parent, a->n_blocks);
    for (uint32_t i = 0; i < a->n_blocks; i++) {
        assert_string_equal(a->block_name[i], b->block_name[i]);
        assert_int_equal(a->block_n_params[i], b->block_n_params[i]);
        assert_int_equal(a->block_n_results[i], b->block_n_results[i]);
        assert_same_ids(a->block_param + a->block_param_begin[i],
                        b->block_param + b->block_param_begin[i], a->block_n_params[i]);
        assert_same_ids(a->block_result + a->block_result_begin[i],
                        b->block_result + b->block_result_begin[i], a->block_n_results[i]);
    }
    assert_int_equal(a->n_bound, b->n_bound);
    for (uint32_t i = 0; i < a->n_bound; i++)
        assert_string_equal(a->bound_input[i], b->bound_input[i]);
    assert_true(mpl_graph_hash(a) == mpl_graph_hash(b));
}

/* Writing g and reading it back gives the same graph, and then the same text. */
static void assert_round_trip(mpl_ctx *ctx, const mpl_graph *g)
{
    owned_graph *back = NULL;
    owned_memory char *text = NULL, *again = NULL;
    size_t n, n_again;

    assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &n));
    assert_ok(ctx, mpl_text_read_memory(ctx, g->name, text, n, &back));
    assert_same(g, back);
    assert_ok(ctx, mpl_text_write_memory(ctx, back, &again, &n_again));
    assert_string_equal(text, again);
    assert_int_equal(n, n_again);
}

TEST(test_zoo_round_trip)
{
    for (size_t i = 0; mpl_zoo[i] != NULL; i++) {
        owned_graph *g = zoo_graph(ctx, mpl_zoo[i]->name);

        assert_round_trip(ctx, g);
    }
}

TEST(test_data_round_trip)
{
    static const char *const paths[] = {"tests/data/syntax.graph", "tests/data/operators.graph",
                                        "tests/data/control.graph"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        owned_graph *g = NULL;

        assert_ok(ctx, mpl_text_read(ctx, paths[i], &g));
        assert_round_trip(ctx, g);
    }
}

/* ---- a graph of awkward cases ---- */

static const mpl_shape scalar = {0}, pair = {1, {2}}, square = {2, {2, 2}}, nothing = {2, {0, 3}},
                       many = {1, {65}};

static mpl_value add_const(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_type type,
                           const mpl_shape *shape, const void *data, bool splat)
{
    mpl_value v = MPL_NONE;

    assert_ok(ctx, mpl_graph_add_const(ctx, g, name, type, shape, data, splat, &v));
    return v;
}

static void add_awkward_constants(mpl_ctx *ctx, mpl_graph *g)
{
    static const uint32_t nan_bits = 0xffc00001;
    static const double doubles[] = {5e-324, -1.7976931348623157e308};
    static const int64_t ints[] = {INT64_MIN, INT64_MAX};
    static const uint8_t bytes[] = {0, 1, 128, 255};
    float numbers[65];

    for (int i = 0; i < 65; i++)
        numbers[i] = (float)i / 3;
    add_const(ctx, g, "nan", MPL_TYPE_f32, &square, &nan_bits, true);
    add_const(ctx, g, "graph", MPL_TYPE_f64, &pair, doubles, false);
    add_const(ctx, g, "0", MPL_TYPE_i64, &pair, ints, false);
    add_const(ctx, g, "gpu_0/a.b-c+d", MPL_TYPE_i8, &square, bytes, false);
    add_const(ctx, g, "", MPL_TYPE_u8, &square, bytes, false);
    add_const(ctx, g, "two\nlines \"quoted\\\" # \x1f\x7f\xc3\xa9", MPL_TYPE_bool, &square, bytes,
              false);
    add_const(ctx, g, "empty", MPL_TYPE_i32, &nothing, "", false);
    add_const(ctx, g, "long", MPL_TYPE_f32, &many, numbers, false);
    add_const(ctx, g, "half", MPL_TYPE_f16, &pair, "\x01\x00\x00\xfc", false); /* least positive,
                                                                                  -inf */
    add_const(ctx, g, "brain", MPL_TYPE_bf16, &scalar, "\x81\x7f", false); /* a signalling NaN */
}

static mpl_graph *awkward(mpl_ctx *ctx)
{
    static const int64_t no_ints[1] = {0}, shape_data[] = {2, 2};
    const mpl_attr every_kind[] =
        ROW(MPL_INT(axis, -1), MPL_INTS(axes, 0, no_ints), MPL_FLOAT(alpha, -0.0),
            MPL_FLOATS(scales, 3, ((const double[]){1e300 * 1e10, 0.1, 9.99999974737875e-06})),
            {MPL_ATTR_mode, 4, NULL, NULL, "a\0\"b"}, MPL_TEXT(to, ""));
    mpl_graph *g = NULL;
    mpl_value x, y[3], bound, unused[2];

    assert_ok(ctx, mpl_graph_new(ctx, "an awkward name", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "first", MPL_INPUT, MPL_TYPE_f32, &square, &x));
    add_awkward_constants(ctx, g);
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "sizes", MPL_INPUT, MPL_TYPE_i64, &pair, &bound));
    assert_ok(ctx, mpl_graph_bind_input(ctx, g, bound, shape_data));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_relu, "op of another name", 1, &x, 6, every_kind,
                                    1, (const char *const[]){"output"}, y));
    assert_ok(ctx,
              mpl_graph_add_op(ctx, g, MPL_OP_clip, "_", 3, (mpl_value[]){y[0], MPL_NONE, MPL_NONE},
                               0, NULL, 1, (const char *const[]){"_"}, y + 1));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_dropout, "d", 1, &x, 0, NULL, 2,
                                    (const char *const[]){"d", NULL}, unused));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_dropout, "e", 1, &x, 0, NULL, 2,
                                    (const char *const[]){"e", "mask"}, unused));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, y[1]));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, x));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, y[1]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

TEST(test_awkward_round_trip)
{
    owned_memory char *text = NULL;
    size_t n;
    owned_graph *g = awkward(ctx);

    assert_round_trip(ctx, g);
    assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &n));
    assert_non_null(strstr(text, "long f32 [65] = bytes 00000000abaaaa3e")); /* 0, then 1/3 */
    for (size_t i = 0; i < n; i++) /* printable on a terminal */
        assert_true(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f));
}

/* Every bit pattern of the small types and 100,000 of the others read back bit by bit; types of XLA
 * alone have no numbers. */
TEST(test_numbers)
{
    mpl_rng rng = mpl_rng_of(7);
    char text[MPL_TEXT_NUMBER];

    for (int type = 0; type < MPL_TYPE_c64; type++) {
        uint32_t size = mpl_type_bytes((mpl_type)type), n_bits = mpl_type_bits((mpl_type)type);
        uint32_t n = n_bits <= 16 ? 1u << n_bits : 100000;

        for (uint32_t i = 0; i < n; i++) {
            uint64_t bits = size <= 2 ? i : mpl_rng_next(&rng), back = 0;

            mpl_text_format((mpl_type)type, &bits, 0, text);
            if (!mpl_text_parse((mpl_type)type, text, strlen(text), &back, 0) ||
                memcmp(&bits, &back, size) != 0)
                fail_msg("%s: bits %" PRIx64 " are written %s, which reads as %" PRIx64,
                         mpl_type_name((mpl_type)type), bits, text, back);
        }
    }
}

static const struct {
    const char *type, *word;
    uint64_t bits; /* UINT64_MAX: refused */
} words[] = {
    {"f32", "0.5", 0x3f000000},
    {"f32", "0x1p-1", 0x3f000000},
    {"f32", "-0", 0x80000000},
    {"f32", "inf", 0x7f800000},
    {"f32", "nan", 0x7fc00000},
    {"f32", "nan.7f800001", 0x7f800001},
    {"f32", "nan.7f800000", UINT64_MAX},
    {"f32", "nan.1", UINT64_MAX},
    {"f32", "nanx", UINT64_MAX},
    {"f32", "1e39", UINT64_MAX},
    {"f32", "infinity", UINT64_MAX},
    {"f32", "1x", UINT64_MAX},
    {"f32", "", UINT64_MAX},
    {"f32", "-", UINT64_MAX},
    {"f16", "1", 0x3c00},
    {"f16", "0.1", 0x2e66},
    {"f16", "65504", 0x7bff},
    {"f16", "65520", UINT64_MAX},
    {"bf16", "1", 0x3f80},
    {"f64", "0.1", 0x3fb999999999999a},
    {"f64", "1e999", UINT64_MAX},
    {"i8", "-128", 0x80},
    {"i8", "-129", UINT64_MAX},
    {"i8", "128", UINT64_MAX},
    {"i8", "1.0", UINT64_MAX},
    {"u8", "255", 0xff},
    {"u8", "256", UINT64_MAX},
    {"u8", "-1", UINT64_MAX},
    {"bool", "1", 1},
    {"i32", "2147483647", 0x7fffffff},
    {"i32", "2147483648", UINT64_MAX},
    {"i32", "-2147483648", 0x80000000},
    {"i64", "-9223372036854775808", 0x8000000000000000},
    {"i64", "9223372036854775808", UINT64_MAX},
    {"i64", "-9223372036854775809", UINT64_MAX},
    {"i64", "99999999999999999999", UINT64_MAX},
    {"i64", "+1", UINT64_MAX},
};

TEST(test_words)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint64_t bits = 0;
        mpl_type type;
        bool good;

        assert_true(mpl_type_find(words[i].type, &type));
        good = mpl_text_parse(type, words[i].word, strlen(words[i].word), &bits, 0);
        if (good ? bits != words[i].bits : words[i].bits != UINT64_MAX)
            fail_msg("%s '%s': %s %" PRIx64, words[i].type, words[i].word,
                     good ? "read as" : "refused", bits);
    }
}

/* ---- texts as people write them ---- */

#define HEAD "graph g\ninput x f32 [1,2]\n"

/* Loose notation with the same meaning as the strict one. */
static const char *const loose[][2] = {
    {HEAD "y = relu(x) : f32 [1,2]\noutput y\n", HEAD "y = relu(x)\noutput y"},
    {HEAD "y = relu(x) : f32 [1,2]\noutput y\n",
     "\n# a comment\n  graph \"g\" # another\r\n\tinput   x f32 "
     "[ 1 , 2 ]\r\n\r\ny=relu( x )@y\n\noutput y # \"\n\n"},
    {HEAD "y = gemm(x, x, _) alpha=0.5 trans_b=1 : f32 [1,1]\noutput y\n",
     HEAD "y = gemm(x,x,_) alpha=0x1p-1 trans_b=1\noutput y"},
    {HEAD "weight w f32 [2] = data 0.1 -1\ny = add(x, w) : f32 [1,2] @op\noutput y\n",
     HEAD "weight w f32 [2] = bytes CDCCCC3D000080bf\ny = add(x, w) @\"op\"\noutput y"},
    {HEAD "y, _ = dropout(x) : f32 [1,2], _\noutput y\n",
     HEAD "y, _ = dropout(x) : _, _\noutput y"},
};

TEST(test_loose)
{
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++) {
        owned_memory char *text = NULL;
        size_t n;
        owned_graph *g = text_graph(ctx, loose[i][1]);

        assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &n));
        assert_string_equal(text, loose[i][0]);
    }
}

static const struct {
    const char *text;
    uint32_t line;
    const char *says;
} wrong[] = {
    {"", 1, "the first line is not 'graph NAME'"},
    {"# nothing\n\n", 3, "the first line is not 'graph NAME'"},
    {"input x f32 [1]\n", 1, "the first line is not 'graph NAME'"},
    {"graph\n", 1, "the end of the line where the name of the graph should stand"},
    {"graph g h\n", 1, "'h' where the line should end"},
    {"graph \"g\n", 1, "a string without its closing quote"},
    {"graph \"a\\qb\"\n", 1, "a backslash in a string"},
    {"graph \"a\\x4\"\n", 1, "a backslash in a string"},
    {"graph \"a\\x00\"\n", 1, "zero byte"},
    {"graph g\n", 2, "no output"},
    {HEAD "graph h\n", 3, "a second 'graph' line"},
    {HEAD "view = relu(x)\n", 3, "'view' is reserved"},
    {HEAD "case {\n", 3, "'{' where '=' should stand"},
    {HEAD "}\n", 3, "'}' where the name of a value should stand"},
    {HEAD "y = relu(x);\n", 3, "character 0x3b has no place"},
    {HEAD "\x01", 3, "character 0x01 has no place"},
    /* declarations */
    {HEAD "input x f32 [1]\noutput x\n", 3, "'x' is made twice"},
    {HEAD "input y f33 [1]\n", 3, "'f33' is no type; there are f64 f32"},
    {HEAD "input y [1]\n", 3, "'[' is no type"},
    {HEAD "input y f32\n", 3, "where '[' should stand"},
    {HEAD "input y f32 [1\n", 3, "where ',' should stand between dims"},
    {HEAD "input y f32 [N]\n", 3, "'N' where a dim should be a whole number"},
    {HEAD "input y f32 [-1]\n", 3, "dim -1 is negative"},
    {HEAD "input y f32 [1,1,1,1,1,1,1,1,1]\n", 3, "more than 8 dims"},
    {HEAD "input y f32 [4294967296,4294967296]\n", 3, "more than 2^63 bytes"},
    {HEAD "input y f32 [1] = data 1\n", 3, "an input has no data"},
    {HEAD "weight w f32 [2] = 1 2\n", 3, "'1' where 'splat', 'data' or 'bytes' should stand"},
    {HEAD "weight w f32 [2] = data 1\n", 3, "1 numbers where the dims need 2"},
    {HEAD "weight w f32 [2] = data 1 2 3\n", 3, "3 numbers where the dims need 2"},
    {HEAD "weight w f32 [2] = data 1, 2\n", 3, "',' where a number that f32 can hold"},
    {HEAD "weight w f32 [2] = splat\n", 3, "the end of the line where a number"},
    {HEAD "weight w f32 [2] = splat 1 2\n", 3, "'2' where the line should end"},
    {HEAD "weight w u8 [1] = data 256\n", 3, "'256' where a number that u8 can hold"},
    {HEAD "weight w u8 [2] = bytes 0102f\n", 3, "two hexadecimal digits a byte"},
    {HEAD "weight w u8 [2] = bytes 01\n", 3, "1 bytes where type and dims need 2"},
    {HEAD "weight w u8 [2] = bytes 01xx\n", 3, "'xx' where two hexadecimal digits"},
    {HEAD "weight w f32 [4294967296,4294967296] = data 1\n", 3, "more than 2^63 bytes"},
    {HEAD "bound b i64 [1]\n", 3, "a bound input needs all its elements"},
    {HEAD "bound b i64 [1] = splat 1\n", 3, "a bound input needs all its elements"},
    {HEAD "output z\n", 3, "output 'z' is made by no line above"},
    {HEAD "output\n", 3, "the name of an output should stand"},
    /* operations */
    {HEAD "y\n", 3, "where '=' should stand"},
    {HEAD "y = \n", 3, "where an operator should stand"},
    {HEAD "y = rely(x)\n", 3, "'rely' is no operator"},
    {HEAD "y = relu x\n", 3, "the end of the line where '(' should stand"},
    {HEAD "y = relu x(x)\n", 3, "no block 'x' stands above"},
    {HEAD "y = relu(x\n", 3, "the end of the line where ',' should stand"},
    {HEAD "y = relu(x x)\n", 3, "'x' where ',' should stand between inputs"},
    {HEAD "y = relu(x, x)\n", 3, "has 2 inputs and 1 outputs"},
    {HEAD "y = relu()\n", 3, "has 0 inputs"},
    {HEAD "y = relu(_)\n", 3, "input 0 is missing"},
    {HEAD "_ = relu(x)\n", 3, "output 0 has no name"},
    {HEAD "x = relu(x)\n", 3, "'x' is made twice"},
    {HEAD "y, y = dropout(x)\n", 3, "'y' is made twice"},
    {HEAD "y = matmul(x, x)\n", 3, "operation 'y' (matmul)"},
    {HEAD "y = matmul(x, x) @\"the op\"\n", 3, "operation 'the op' (matmul)"},
    {HEAD "y = relu(x) : f32 [2,1]\n", 3, "the type of 'y' is f32 [1,2]"},
    {HEAD "y = relu(x) : f16 [1,2]\n", 3, "the type of 'y' is f32 [1,2]"},
    {HEAD "y = relu(x) : f32 [1,2], f32 [1]\n", 3, "2 types for 1 outputs"},
    {HEAD "y, _ = dropout(x) : f32 [1,2], bool [1,2]\n", 3, "output 1 is left out"},
    {HEAD "y = relu(x) @\n", 3, "where the name of the operation should stand"},
    {HEAD "y = relu(x) @a b\n", 3, "'b' where the line should end"},
    {HEAD "y = relu(x) axe=1\n", 3, "'axe' is no attribute"},
    {HEAD "y = relu(x) axis 1\n", 3, "'1' where '=' should stand"},
    {HEAD "y = relu(x) axis=1 axis=1\n", 3, "attribute 'axis' is given twice"},
    {HEAD "y = relu(x) axis=1.5\n", 3, "'1.5' where the attribute should be a whole number"},
    {HEAD "y = relu(x) axis=9223372036854775808\n", 3, "whole number of 64 bits"},
    {HEAD "y = relu(x) axes=1\n", 3, "'1' where '[' should stand"},
    {HEAD "y = relu(x) axes=[1,,2]\n", 3, "',' where the attribute should be a whole number"},
    {HEAD "y = relu(x) alpha=one\n", 3, "'one' where the attribute should be a number"},
    {HEAD "y = relu(x) mode=[a]\n", 3, "'[' where the attribute should be a word or a string"},
    /* blocks */
    {HEAD "block b\noutput x\n", 5, "block 'b' has no end"},
    {HEAD "block b\nyield x\noutput x\n", 6, "block 'b' is run by no operation"},
    {HEAD "block b\nblock b\n", 4, "block 'b' is made twice"},
    {HEAD "block b\nblock c\nyield\nyield\n", 6, "block 'c' is run by no operation"},
    {HEAD "yield x\n", 3, "results outside of a block"},
    {HEAD "param p f32 []\n", 3, "parameter 'p' stands outside of a block"},
    {HEAD "block b\ny = relu(x)\nparam p f32 []\n", 5, "parameters come first in a block"},
    {HEAD "block b\nparam x f32 []\n", 4, "'x' is made twice"},
    {HEAD "exit_unless(x)\n", 3, "it must be one element of type bool"},
    {HEAD "input c bool []\nexit_unless(c)\noutput x\n", 6,
     "does not stand in the body of a while"},
    {HEAD "y = while(_, _, x) carried=1\n", 3, "has 0 blocks; it needs at least one"},
    {HEAD "block b\nyield x\ny = relu b(x)\n", 5, "has 1 blocks; this operator has none"},
    {HEAD "block b\nyield x\nz = relu(x)\ny = case b(x)\n", 6,
     "not one that stands, unused, right before it"},
    {HEAD "block b\nz = relu(x)\nyield z\ny = relu(z)\n", 6,
     "'y' reads 'z' of block 'b', which it cannot see"},
    {HEAD "block b\nz = relu(x)\nyield z\noutput z\n", 6,
     "'the graph's output' reads 'z' of block 'b'"},
    {HEAD "block b\nyield x\ny = case b(x)\n", 5, "the index is f32 [1,2]; it must be one element"},
    {HEAD "input i i64 []\nblock b\nyield i\nblock c\nyield x\ny = case b, c(i)\n", 8,
     "a branch's result 0 is f32 [1,2]"},
    {HEAD "input i i64 []\nblock b\nyield x\ny = case b(i, i)\n", 6,
     "bypass input 1 has not the type"},
    {HEAD "input i i64 []\nblock b\nyield x, x\ny = case b(i)\n", 6, "must have none and 1"},
    {HEAD "block b\nparam t i64 []\nyield _\n = while b(_, _) trips=1\n", 6,
     "where the name of a value"},
    {HEAD
     "block b\nparam t i64 []\nparam h f32 [1,2]\nyield _, h\ny = while b(_, _, x) carried=1\n",
     7, "nothing can end it"},
    {HEAD "block b\nparam t i32 []\nparam h f32 [1,2]\nyield _, h\ny = while b(_, _, x) carried=1 "
          "trips=2\n",
     7, "parameter 0 is i32 []; it must be i64 []"},
    {HEAD "block b\nparam t i64 []\nparam h f32 [2]\nyield _, h\ny = while b(_, _, x) carried=1 "
          "trips=2\n",
     7, "parameter 1 is f32 [2]; it must be f32 [1,2]"},
    {HEAD "block b\nparam t i64 []\nparam h f32 [1,2]\nyield _, t\ny = while b(_, _, x) carried=1 "
          "trips=2\n",
     7, "result 1 is i64 []; it must be f32 [1,2]"},
    {HEAD "block b\nparam t i64 []\nparam h f32 [1,2]\nyield _, h\ny = while b(_, _, x) carried=2 "
          "trips=2\n",
     7, "carried=2 of 3 inputs"},
    {HEAD "block b\nparam t i64 []\nparam h f32 [1,2]\nyield _, h\ny = while b(_, _, x) carried=1 "
          "trips=-2\n",
     7, "trips=-2; it must be at least 0"},
    {HEAD "block b\nparam t i64 []\nparam s f32 [2]\nyield _, s\ny = while b(_, _, x) trips=2\n", 7,
     "input 2 has 1 slices where others, or trips=, say 2"},
    {HEAD "block b\nparam t i64 []\nparam s f32 [2]\nyield _, s\ny = while b(_, _, x) "
          "scan_reverse=[1]\n",
     7, "scan_reverse has 1 flags for 1 scans and 1 rows"},
    {HEAD "input n i64 []\nblock b\nparam t i64 []\nyield _, t\ny = while b(n, _)\n", 7,
     "trips=N must say"},
    /* order */
    {HEAD "y = relu(z)\noutput y\n", 3, "'z' is made by no line"},
    {HEAD "y = relu(z)\n\nz = relu(x)\noutput y\n", 3,
     "'z' is made on line 5; a line may only use"},
    {HEAD "y = relu(z)\ninput z f32 [1]\noutput y\n", 3,
     "'z' is made on line 4; a line may only use"},
    {HEAD "y = relu(y)\noutput y\n", 3, "'y' needs itself: a cycle"},
    {HEAD "a = relu(c)\nb = relu(a)\nc = relu(b)\noutput c\n", 3,
     "'c' is made on line 5, which needs what this line"},
    {HEAD "a = relu(b)\nbroken (\n\"\nb = relu(a)\n", 3,
     "'b' is made on line 6, which needs what this line"},
    {HEAD "a = relu(b)\nc = relu(x)\nb = relu(c)\n", 3,
     "'b' is made on line 5; a line may only use"},
};

static void assert_refused(mpl_ctx *ctx, const char *text, uint32_t line, const char *says)
{
    mpl_graph *g = NULL;
    char place[32];

    snprintf(place, sizeof place, "file:%u: ", line);
    assert_status(ctx, mpl_text_read_memory(ctx, "file", text, strlen(text), &g), MPL_EINPUT);
    assert_null(g);
    if (strncmp(ctx->message, place, strlen(place)) != 0 || strstr(ctx->message, says) == NULL)
        fail_msg("%s\n\"%s\" is not \"%s.. %s\"", text, ctx->message, place, says);
    assert_null(strchr(ctx->message, '\n'));
}

TEST(test_wrong)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(ctx, wrong[i].text, wrong[i].line, wrong[i].says);
    assert_refused(ctx, HEAD "\"a\\x0ab\" = relu(\"a\\x0ab\")\n", 3, "a cycle");
    assert_refused(ctx, HEAD "\"a\\x0ab\" = relu(x, x)\n", 3, "'a?b'");
}

/* Every prefix of a valid text, and every text with one byte changed, is read or refused without a
 * crash or a leak. */
TEST(test_damaged)
{
    owned_memory char *text = NULL;
    size_t n;
    mpl_graph *g = awkward(ctx);

    assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &n));
    mpl_graph_free(ctx, g);
    for (size_t i = 0; i < n; i++)
        for (int change = 0; change < 3; change++) {
            static const char flips[] = {0, 1, (char)0x80};
            char was = text[i];
            mpl_status st;

            g = NULL;
            text[i] = (char)(was ^ flips[change]);
            st = mpl_text_read_memory(ctx, "damaged", text, change == 0 ? i : n, &g);
            assert_true(st == MPL_OK ? g != NULL : st == MPL_EINPUT && g == NULL);
            mpl_graph_free(ctx, g);
            text[i] = was;
        }
}

/* ---- files, memory ---- */

TEST(test_files)
{
    char path[300];
    mpl_graph *g, *back = NULL;

    temporary_file(path, sizeof path, "text");
    g = awkward(ctx);
    assert_ok(ctx, mpl_text_write(ctx, path, g));
    assert_ok(ctx, mpl_text_read(ctx, path, &back));
    assert_same(g, back);
    unlink(path);
    assert_status(ctx, mpl_text_write(ctx, "/no such folder/x.graph", g), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "/no such folder/x.graph: "));
    mpl_graph_free(ctx, back);
    mpl_graph_free(ctx, g);
    assert_status(ctx, mpl_text_read(ctx, path, &back), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, path));
}

/* The k-th allocation fails while reading, checking for a cycle, or writing. */
TEST(test_out_of_memory)
{
    static const char *const texts[] =
        ROW(HEAD "weight w f32 [2] = data 1 2\nbound b i64 [1] = data 4\ny, m = dropout(x) @\"n\"\n"
                 "z = add(y, w) axes=[1] alpha=2 mode=\"a\" : f32 [1,2]\noutput z\n",
            HEAD "a = relu(c)\nb = relu(a)\nc = relu(b)\n");

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mpl_status st = MPL_EMEM;

        for (int64_t k = 0; st == MPL_EMEM; k++) {
            owned_graph *g = NULL;
            owned_memory char *text = NULL;
            size_t n;

            ctx->fail_after = ctx->n_allocs + k;
            st = mpl_text_read_memory(ctx, "file", texts[i], strlen(texts[i]), &g);
            if (st == MPL_OK)
                st = mpl_text_write_memory(ctx, g, &text, &n);
            assert_true(st == MPL_OK || text == NULL);
        }
        assert_status(ctx, st, i == 0 ? MPL_OK : MPL_EINPUT);
    }
}

TESTS(test_zoo_round_trip, test_data_round_trip, test_awkward_round_trip, test_numbers, test_words,
      test_loose, test_wrong, test_damaged, test_files, test_out_of_memory)
