/* Reading ONNX's Loop, If and Scan: ONNX's own models with the outputs that they expect, and small
 * ones for every way that bodies are nested, capture, stack rows, end early or change shapes, all
 * run by a direct interpreter. */
#include "tests/support/interpret.h"
#include "tests/support/onnx_model.h"

#include "graphs/passes/passes.h"
#include "graphs/source.h"

#include <math.h>

#define MODELS MPL_SHARED "/onnx-control-flow"

/* ---- ONNX's own models ---- */

static const struct {
    const char *name;
    mpl_op_kind kind;                     /* an operator that must be there */
    uint32_t n_blocks, n_inputs, n_bound; /* with the block of the whole */
} models[] = {
    {"test_gru_defaults", MPL_OP_while, 2, 3, 0},
    {"test_if", MPL_OP_case, 3, 1, 0},
    {"test_loop11", MPL_OP_add, 1, 1, 2},
    {"test_lstm_defaults", MPL_OP_while, 2, 3, 0},
    {"test_lstm_with_initial_bias", MPL_OP_while, 2, 4, 0},
    {"test_lstm_with_peepholes", MPL_OP_while, 2, 8, 0},
    {"test_range_float_type_positive_delta_expanded", MPL_OP_while, 2, 0, 3},
    {"test_scan9_multi_state", MPL_OP_while, 2, 3, 0},
    {"test_scan9_sum", MPL_OP_while, 2, 2, 0},
    {"test_scan_sum", MPL_OP_while, 3, 2, 0},
    {"test_simple_rnn_defaults", MPL_OP_while, 2, 3, 0},
};

enum { MAX_TENSORS = 8 };

typedef struct tensors {
    uint32_t n, index[MAX_TENSORS];
    mpl_tensor tensor[MAX_TENSORS];
} tensors;

static void read_tensors(mpl_ctx *ctx, const char *model, const char *kind, tensors *t)
{
    char path[300];

    for (t->n = 0; t->n < MAX_TENSORS; t->n++) {
        snprintf(path, sizeof path, "%s/%s/test_data_set_0/%s_%u.pb", MODELS, model, kind, t->n);
        if (access(path, R_OK) != 0)
            break;
        t->index[t->n] = t->n;
        assert_ok(ctx, mpl_tensor_read(ctx, path, &t->tensor[t->n]));
    }
}

static void free_tensors(mpl_ctx *ctx, tensors *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        mpl_free(ctx, t->tensor[i].data);
}

static void assert_close(const char *what, mpl_type type, const void *got, const void *want,
                         uint64_t bytes)
{
    uint64_t n = bytes / mpl_type_bytes(type);

    if (type != MPL_TYPE_f32) {
        assert_memory_equal(got, want, bytes);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        double a = (double)((const float *)got)[i], b = (double)((const float *)want)[i];

        if (!(fabs(a - b) <= 1e-5 + 1e-5 * fabs(b)))
            fail_msg("%s: element %" PRIu64 " is %.8g; %.8g is expected", what, i, a, b);
    }
}

static void run_model(mpl_ctx *ctx, const char *name, const mpl_graph *g, const tensors *in,
                      const tensors *want)
{
    interpreter it = interpret_begin(ctx, g);

    for (uint32_t i = 0; i < in->n; i++) {
        mpl_value v = mpl_graph_file_input(g, i);

        memcpy(it.data[v], in->tensor[i].data, g->value_bytes[v]);
    }
    assert_ok(ctx, interpret(&it));
    assert_int_equal(g->n_outputs, want->n);
    for (uint32_t i = 0; i < want->n; i++) {
        mpl_value v = g->output[i];

        assert_true(mpl_shape_equal(&g->value_shape[v], &want->tensor[i].shape));
        assert_close(name, (mpl_type)g->value_type[v], it.data[v], want->tensor[i].data,
                     g->value_bytes[v]);
    }
    interpret_end(&it);
}

TEST(onnx_models)
{
    skip_without(MODELS);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int form = MPL_RNN_WHILE; form <= MPL_RNN_UNROLL; form++) {
            char path[300];
            tensors in, want;
            mpl_graph *g = NULL;
            uint32_t n = 0;

            read_tensors(ctx, models[i].name, "input", &in);
            read_tensors(ctx, models[i].name, "output", &want);
            snprintf(path, sizeof path, "%s/%s/model.onnx", MODELS, models[i].name);
            assert_ok(ctx, mpl_onnx_read(ctx, path,
                                         &(mpl_read_options){.n_inputs = in.n,
                                                             .input_index = in.index,
                                                             .input_tensor = in.tensor,
                                                             .rnn = (mpl_rnn_form)form},
                                         &g));
            for (mpl_op op = 0; op < g->n_ops; op++)
                n += g->op_kind[op] == models[i].kind;
            if (form == MPL_RNN_WHILE) {
                assert_true(n > 0);
                if (g->n_blocks != models[i].n_blocks || g->n_inputs != models[i].n_inputs ||
                    g->n_bound != models[i].n_bound)
                    fail_msg("%s: %u blocks, %u inputs, %u bound", models[i].name, g->n_blocks,
                             g->n_inputs, g->n_bound);
            }
            run_model(ctx, models[i].name, g, &in, &want);
            mpl_graph_free(ctx, g);
            free_tensors(ctx, &in);
            free_tensors(ctx, &want);
        }
}

/* ---- small models ---- */

static message saved[4];
static unsigned n_saved;

/* What is added from now on belongs to a graph inside. */
static void begin_body(void)
{
    saved[n_saved++] = graph;
    begin();
}
static message end_body(void)
{
    message body = graph;

    graph = saved[--n_saved];
    return body;
}

static void add_owner(const char *type, const char *in, const char *out, const char *attrs,
                      const char *attr, const message *body)
{
    add(1, owner("", type, in, out, attrs, 1, &attr, body));
}

static void add_scalar(const char *name, float x)
{
    ADD_INIT(name, FLOAT, 0, NULL, &x, sizeof x);
}
static void add_whole(const char *name, int64_t x)
{
    ADD_INIT(name, INT64, 0, NULL, &x, sizeof x);
}
static void add_truth(const char *name, uint8_t x)
{
    ADD_INIT(name, BOOL, 0, NULL, &x, sizeof x);
}

enum { MAX_NUMBERS = 24 };

/* What an input is given, or an output must be; a float for each element, whatever the type. */
typedef struct numbers {
    const char *name, *dims;
    unsigned n;
    float x[MAX_NUMBERS];
} numbers;

typedef struct small {
    const char *what;
    void (*make)(void);
    int64_t opset;
    uint32_t n_blocks, n_bound;
    bool bind; /* the reader is told the inputs, too */
    numbers in[3], out[3];
} small;

static void put_number(mpl_type type, void *data, unsigned i, float x)
{
    if (type == MPL_TYPE_f32)
        ((float *)data)[i] = x;
    else if (type == MPL_TYPE_i64)
        ((int64_t *)data)[i] = (int64_t)x;
    else
        ((uint8_t *)data)[i] = x != 0;
}

static mpl_status read_small(mpl_ctx *ctx, const small *s, mpl_graph **g)
{
    static int64_t store[3][MAX_NUMBERS];
    const char *name[3];
    mpl_tensor given[3];
    mpl_read_options read = {.input_name = name, .input_tensor = given};
    message m;

    for (unsigned i = 0; i < 3 && s->in[i].name != NULL; i++) {
        unsigned n = s->in[i].n;

        /* A list where there are many, else a scalar; i64 and bool by the first letter of the
         * name. */
        given[i] = (mpl_tensor){s->in[i].name[0] == 'M'   ? MPL_TYPE_i64
                                : s->in[i].name[0] == 'c' ? MPL_TYPE_bool
                                                          : MPL_TYPE_f32,
                                {n > 1, {n}},
                                store[i]};
        for (unsigned k = 0; k < n; k++)
            put_number(given[i].type, store[i], k, s->in[i].x[k]);
        name[read.n_inputs++] = s->in[i].name;
    }
    n_saved = 0;
    begin();
    s->make();
    m = model(s->opset);
    return mpl_onnx_read_memory(ctx, "small.onnx", m.data, m.n, s->bind ? &read : NULL, g);
}

/* x' = x + w in an inner loop of 2 rounds, of which the outer one runs 3; names of both bodies are
 * the same, and hide that of the result. The inner one captures the outer one's x. */
static void make_nested(void)
{
    message inner, outer;

    ADD_IN("x", FLOAT, "2");
    add_scalar("w", 0.5f);
    add_whole("M", 3);
    add_whole("two", 2);
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_IN("x", FLOAT, "2");
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_IN("z", FLOAT, "2");
    ADD_NODE("", "Add", "z w", "t", "");
    ADD_NODE("", "Add", "t x", "y", "");
    ADD_OUT("go");
    ADD_OUT("y");
    inner = end_body();
    add_owner("Loop", "two - x", "y", "", "body", &inner);
    ADD_OUT("go");
    ADD_OUT("y");
    outer = end_body();
    add_owner("Loop", "M - x", "y", "", "body", &outer);
    ADD_OUT("y");
}

/* x doubles until it passes 100; what the loop stacks is padded. */
static void make_early(void)
{
    message body;

    ADD_IN("x", FLOAT, "");
    add_whole("M", 5);
    add_scalar("most", 100);
    begin_body();
    ADD_IN("i", INT64, "1");
    ADD_IN("go_in", BOOL, "");
    ADD_IN("x", FLOAT, "");
    ADD_NODE("", "Add", "x x", "y", "");
    ADD_NODE("", "Less", "y most", "go", "");
    ADD_OUT("go");
    ADD_OUT("y");
    ADD_OUT("y");
    ADD_OUT("i");
    body = end_body();
    add_owner("Loop", "M - x", "last rows rounds", "", "body", &body);
    ADD_OUT("last");
    ADD_OUT("rows");
    add(12, value_info("rounds", INT64, NULL));
}

/* Trip count and condition are inputs, and stay so: no shape depends on them. */
static void make_dynamic(void)
{
    message body;

    ADD_IN("M", INT64, "");
    ADD_IN("cond", BOOL, "");
    ADD_IN("x", FLOAT, "");
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("c", BOOL, "");
    ADD_IN("x", FLOAT, "");
    ADD_NODE("", "Add", "x x", "y", "");
    ADD_NODE("", "Identity", "c", "go", "");
    ADD_OUT("go");
    ADD_OUT("y");
    body = end_body();
    add_owner("Loop", "M cond x", "y", "", "body", &body);
    ADD_OUT("y");
}

/* As above, with rows: both decide how many. */
static void make_rows(void)
{
    message body;

    ADD_IN("M", INT64, "");
    ADD_IN("cond", BOOL, "");
    ADD_IN("x", FLOAT, "");
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("c", BOOL, "");
    ADD_IN("x", FLOAT, "");
    ADD_NODE("", "Add", "x x", "y", "");
    ADD_OUT("c");
    ADD_OUT("y");
    ADD_OUT("y");
    body = end_body();
    add_owner("Loop", "M cond x", "- rows", "", "body", &body);
    ADD_OUT("rows");
}

/* A branch with an If that nobody reads, which so has no output, and a constant behind it: the
 * branch ends in a value that no operation makes, the other begins with one, and the If stands
 * nowhere among the values. */
static void make_unread(void)
{
    static const char *const branch[] = {"else_branch", "then_branch"};
    message inner[2], outer[2];

    ADD_IN("cond", BOOL, "");
    ADD_IN("cother", BOOL, "");
    ADD_IN("x", FLOAT, "");
    begin_body();
    for (int i = 0; i < 2; i++) {
        begin_body();
        ADD_NODE("", "Neg", "x", i == 0 ? "p" : "q", "");
        ADD_OUT(i == 0 ? "p" : "q");
        inner[i] = end_body();
    }
    add(1, owner("", "If", "cother", "unread", "", 2, branch, inner));
    ADD_NODE("", "Constant", "", "yes", "value_float=1.0f");
    ADD_OUT("yes");
    outer[0] = end_body();
    begin_body();
    ADD_NODE("", "Constant", "", "one", "value_float=1.0f");
    ADD_NODE("", "Add", "x one", "no", "");
    ADD_OUT("no");
    outer[1] = end_body();
    add(1, owner("", "If", "cond", "y", "", 2, branch, outer));
    ADD_OUT("y");
}

/* A list that grows, until it is 4 long: rounds of different shapes, the last of which is known by
 * the round alone. */
static void make_growing(void)
{
    message body;

    ADD_IN("x", FLOAT, "1");
    add_whole("M", 10);
    add_whole("two", 2);
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go_in", BOOL, "");
    ADD_IN("x", FLOAT, "N");
    ADD_NODE("", "Concat", "x x0", "y", "axis=0");
    ADD_INIT("x0", FLOAT, 1, (int64_t[]){1}, (float[]){7}, 4);
    ADD_NODE("", "Less", "i two", "go", "");
    ADD_OUT("go");
    ADD_OUT("y");
    body = end_body();
    add_owner("Loop", "M - x", "y", "", "body", &body);
    ADD_OUT("y");
}

/* The same with a trip count that is an input. */
static void make_growing_dynamic(void)
{
    message body;

    ADD_IN("x", FLOAT, "1");
    ADD_IN("M", INT64, "");
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_IN("x", FLOAT, "N");
    ADD_NODE("", "Concat", "x x", "y", "axis=0");
    ADD_OUT("go");
    ADD_OUT("y");
    body = end_body();
    add_owner("Loop", "M - x", "y", "", "body", &body);
    ADD_OUT("y");
}

/* The condition that the body makes is known: false after the first round. */
static void make_once(void)
{
    message body;

    ADD_IN("x", FLOAT, "");
    add_whole("M", 5);
    add_truth("never", 0);
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("c", BOOL, "");
    ADD_IN("x", FLOAT, "");
    ADD_NODE("", "Add", "x x", "y", "");
    ADD_OUT("never");
    ADD_OUT("y");
    ADD_OUT("y");
    body = end_body();
    add_owner("Loop", "M - x", "y rows", "", "body", &body);
    ADD_OUT("y");
    ADD_OUT("rows");
}

static message branch(const char *type, const char *in)
{
    begin_body();
    ADD_NODE("", type, in, "y", "");
    ADD_OUT("y");
    return end_body();
}

static void add_if(const char *condition, message on, message off)
{
    add(1, owner("", "If", condition, "y", "", 2,
                 (const char *const[]){"then_branch", "else_branch"}, (message[]){on, off}));
}

static void make_if(void)
{
    ADD_IN("cond", BOOL, "");
    ADD_IN("x", FLOAT, "2");
    add_if("cond", branch("Neg", "x"), branch("Exp", "x"));
    ADD_OUT("y");
}

static void make_known_if(void)
{
    ADD_IN("x", FLOAT, "2");
    add_truth("cond", 1);
    add_if("cond", branch("Neg", "x"), branch("Exp", "x"));
    ADD_OUT("y");
}

/* Nobody reads what the branches make. */
static void make_idle_if(void)
{
    ADD_IN("cond", BOOL, "");
    ADD_IN("x", FLOAT, "2");
    add_if("cond", branch("Neg", "x"), branch("Exp", "x"));
    ADD_OUT("x");
}

/* Both branches are values that stand outside. */
static void make_outer_if(void)
{
    message on, off;

    ADD_IN("cond", BOOL, "");
    ADD_IN("x", FLOAT, "2");
    ADD_INIT("w", FLOAT, 1, (int64_t[]){2}, (float[]){3, 4}, 8);
    begin_body();
    ADD_OUT("x");
    on = end_body();
    begin_body();
    ADD_OUT("w");
    off = end_body();
    add_if("cond", on, off);
    ADD_OUT("y");
}

/* Branches of different dims: the condition decides a shape. */
static void make_shapes_if(void)
{
    message on, off;

    ADD_IN("cond", BOOL, "");
    ADD_IN("x", FLOAT, "2");
    begin_body();
    ADD_NODE("", "Concat", "x x", "y", "axis=0");
    ADD_OUT("y");
    on = end_body();
    off = branch("Neg", "x");
    add_if("cond", on, off);
    ADD_OUT("y");
}

/* In each round the parity of the round decides: x + 1, or x * 2. */
static void make_if_in_loop(void)
{
    message body, on, off;

    ADD_IN("x", FLOAT, "");
    ADD_IN("M", INT64, "");
    add_scalar("one", 1);
    add_whole("two", 2);
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_IN("x", FLOAT, "");
    ADD_NODE("", "Mod", "i two", "odd", "");
    ADD_NODE("", "Cast", "odd", "is", "to=9");
    on = branch("Add", "x x");
    off = branch("Add", "x one");
    add_if("is", on, off);
    ADD_OUT("go");
    ADD_OUT("y");
    body = end_body();
    add_owner("Loop", "M - x", "y", "", "body", &body);
    ADD_OUT("y");
}

/* Running sums over the columns of a and, backward, over the last axis of b; rows become columns,
 * the second ones backward. */
static void make_scan(void)
{
    message body;

    ADD_IN("a", FLOAT, "2 3");
    ADD_IN("b", FLOAT, "2 3");
    ADD_INIT("zero", FLOAT, 1, (int64_t[]){2}, (float[]){0, 0}, 8);
    begin_body();
    ADD_IN("s", FLOAT, "2");
    ADD_IN("p", FLOAT, "2");
    ADD_IN("q", FLOAT, "2");
    ADD_NODE("", "Add", "s p", "t", "");
    ADD_NODE("", "Add", "t q", "u", "");
    ADD_OUT("u");
    ADD_OUT("u");
    ADD_OUT("q");
    body = end_body();
    add_owner("Scan", "zero a b", "last sums back",
              "num_scan_inputs=2 scan_input_axes=[1,-1] scan_input_directions=[0,1] "
              "scan_output_axes=[-1,1] "
              "scan_output_directions=[0,1]",
              "body", &body);
    ADD_OUT("last");
    ADD_OUT("sums");
    ADD_OUT("back");
}

/* Slices of two dims along the last axis, stacked along the middle one and the last one. */
static void make_deep_scan(void)
{
    message body;

    ADD_IN("x", FLOAT, "2 2 3");
    begin_body();
    ADD_IN("p", FLOAT, "2 2");
    ADD_OUT("p");
    ADD_OUT("p");
    body = end_body();
    add_owner("Scan", "x", "middle last",
              "num_scan_inputs=1 scan_input_axes=[2] scan_output_axes=[1,2]", "body", &body);
    ADD_OUT("middle");
    ADD_OUT("last");
}

/* Two sequences of one number a step, the first one step long. */
static void make_scan_8(void)
{
    message body;

    ADD_IN("x", FLOAT, "2 3");
    ADD_INIT("s0", FLOAT, 1, (int64_t[]){2}, (float[]){10, 20}, 8);
    ADD_INIT("lens", INT64, 1, (int64_t[]){2}, (int64_t[]){1, 3}, 16);
    begin_body();
    ADD_IN("s", FLOAT, "");
    ADD_IN("p", FLOAT, "");
    ADD_NODE("", "Add", "s p", "t", "");
    ADD_OUT("t");
    ADD_OUT("t");
    body = end_body();
    add_owner("Scan", "lens s0 x", "last sums", "num_scan_inputs=1", "body", &body);
    ADD_OUT("last");
    ADD_OUT("sums");
}

/* A shape that a loop computes: it is run while the model is read. */
static void make_shape_by_loop(void)
{
    message body;

    ADD_IN("x", FLOAT, "4");
    add_whole("M", 2);
    ADD_INIT("n", INT64, 1, (int64_t[]){1}, (int64_t[]){1}, 8);
    ADD_INIT("rest", INT64, 1, (int64_t[]){1}, (int64_t[]){-1}, 8);
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_IN("k", INT64, "1");
    ADD_NODE("", "Add", "k k", "k2", "");
    ADD_OUT("go");
    ADD_OUT("k2");
    body = end_body();
    add_owner("Loop", "M - n", "four", "", "body", &body);
    ADD_NODE("", "Concat", "four rest", "dims", "axis=0");
    ADD_NODE("", "Reshape", "x dims", "y", "");
    ADD_OUT("y");
}

static const small smalls[] = {
    ROW("a branch with an If that nobody reads", make_unread, 13, 3, 0, false,
        {{"cond", "", 1, {1}}, {"cother", "", 1, {0}}, {"x", "", 1, {-3}}}, {{"y", "[]", 1, {-2}}}),
    ROW("loops in loops", make_nested, 13, 3, 0, false, {{"x", "2", 2, {1, -2}}},
        {{"y", "[2]", 2, {27 + 13 * 1.f, -54 + 13}}}),
    ROW("a loop that ends early", make_early, 13, 2, 0, false, {{"x", "", 1, {30}}},
        {{"last", "[]", 1, {120}}, {"rows", "[5]", 5, {60, 120}}, {"rounds", "[5,1]", 5, {0, 1}}}),
    ROW("a loop that runs on", make_early, 13, 2, 0, false, {{"x", "", 1, {1}}},
        {{"last", "[]", 1, {32}},
         {"rows", "[5]", 5, {2, 4, 8, 16, 32}},
         {"rounds", "[5,1]", 5, {0, 1, 2, 3, 4}}}),
    ROW("a trip count that stays an input", make_dynamic, 11, 2, 0, true,
        {{"M", "", 1, {4}}, {"cond", "", 1, {1}}, {"x", "", 1, {1}}}, {{"y", "[]", 1, {16}}}),
    ROW("a condition that stays an input", make_dynamic, 11, 2, 0, false,
        {{"M", "", 1, {4}}, {"cond", "", 1, {0}}, {"x", "", 1, {1}}}, {{"y", "[]", 1, {1}}}),
    ROW("a negative trip count", make_dynamic, 11, 2, 0, false,
        {{"M", "", 1, {-4}}, {"cond", "", 1, {1}}, {"x", "", 1, {1}}}, {{"y", "[]", 1, {1}}}),
    ROW("rows by what inputs say", make_rows, 11, 2, 2, true,
        {{"M", "", 1, {3}}, {"cond", "", 1, {1}}, {"x", "", 1, {1}}},
        {{"rows", "[3]", 3, {2, 4, 8}}}),
    ROW("no rows", make_rows, 11, 2, 2, true,
        {{"M", "", 1, {3}}, {"cond", "", 1, {0}}, {"x", "", 1, {1}}}, {{"rows", "[0]", 0, {0}}}),
    ROW("a list that grows", make_growing, 13, 1, 0, false, {{"x", "1", 1, {5}}},
        {{"y", "[4]", 4, {5, 7, 7, 7}}}),
    ROW("a list that doubles", make_growing_dynamic, 13, 1, 1, true, {{"M", "", 1, {2}}},
        {{"y", "[4]", 4, {0}}}),
    ROW("one round", make_once, 13, 2, 0, false, {{"x", "", 1, {3}}},
        {{"y", "[]", 1, {6}}, {"rows", "[1]", 1, {6}}}),
    ROW("then", make_if, 13, 3, 0, false, {{"cond", "", 1, {1}}, {"x", "2", 2, {0, 1}}},
        {{"y", "[2]", 2, {0, -1}}}),
    ROW("else", make_if, 13, 3, 0, false, {{"cond", "", 1, {0}}, {"x", "2", 2, {0, 1}}},
        {{"y", "[2]", 2, {1, 2.7182818f}}}),
    ROW("a known condition", make_known_if, 13, 1, 0, false, {{"x", "2", 2, {0, 1}}},
        {{"y", "[2]", 2, {0, -1}}}),
    ROW("branches for nobody", make_idle_if, 13, 1, 0, false, {{"x", "2", 2, {5, 6}}},
        {{"x", "[2]", 2, {5, 6}}}),
    ROW("a value from outside", make_outer_if, 13, 3, 0, false,
        {{"cond", "", 1, {1}}, {"x", "2", 2, {5, 6}}}, {{"y", "[2]", 2, {5, 6}}}),
    ROW("a weight from outside", make_outer_if, 13, 3, 0, false,
        {{"cond", "", 1, {0}}, {"x", "2", 2, {5, 6}}}, {{"y", "[2]", 2, {3, 4}}}),
    ROW("a condition that decides a shape", make_shapes_if, 13, 1, 1, true,
        {{"cond", "", 1, {1}}, {"x", "2", 2, {5, 6}}}, {{"y", "[4]", 4, {5, 6, 5, 6}}}),
    ROW("branches in a loop", make_if_in_loop, 13, 4, 0, false,
        {{"x", "", 1, {1}}, {"M", "", 1, {5}}}, {{"y", "[]", 1, {11}}}),
    ROW("axes and directions", make_scan, 11, 2, 0, false,
        {{"a", "2 3", 6, {1, 2, 3, 4, 5, 6}}, {"b", "2 3", 6, {10, 20, 30, 40, 50, 60}}},
        {{"last", "[2]", 2, {66, 165}},
         {"sums", "[2,3]", 6, {31, 53, 66, 64, 119, 165}},
         {"back", "[2,3]", 6, {10, 20, 30, 40, 50, 60}}}),
    ROW("axes behind others", make_deep_scan, 11, 2, 0, false,
        {{"x", "2 2 3", 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}},
        {{"middle", "[2,3,2]", 12, {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}},
         {"last", "[2,2,3]", 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}}),
    ROW("batches of sequences", make_scan_8, 8, 3, 0, false, {{"x", "2 3", 6, {1, 2, 3, 4, 5, 6}}},
        {{"last", "[2]", 2, {11, 35}}, {"sums", "[2,3]", 6, {11, 0, 0, 24, 29, 35}}}),
    ROW("a shape that a loop computes", make_shape_by_loop, 13, 1, 0, false,
        {{"x", "4", 4, {1, 2, 3, 4}}}, {{"y", "[4,1]", 4, {1, 2, 3, 4}}}),
};

TEST(small_models)
{
    for (size_t i = 0; i < sizeof smalls / sizeof *smalls; i++) {
        const small *s = &smalls[i];
        mpl_graph *g = NULL;
        interpreter it;
        char dims[200];

        if (read_small(ctx, s, &g) != MPL_OK)
            fail_msg("%s: %s", s->what, ctx->message);
        if (g->n_blocks != s->n_blocks || g->n_bound != s->n_bound)
            fail_msg("%s: %u blocks, %u inputs bound", s->what, g->n_blocks, g->n_bound);
        assert_ok(ctx, mpl_graph_prune(ctx, &g));
        it = interpret_begin(ctx, g);
        for (unsigned k = 0; k < 3 && s->in[k].name != NULL; k++) {
            mpl_value v = mpl_graph_find(g, s->in[k].name);

            for (unsigned e = 0; e < s->in[k].n; e++)
                put_number((mpl_type)g->value_type[v], it.data[v], e, s->in[k].x[e]);
        }
        if (interpret(&it) != MPL_OK)
            fail_msg("%s: %s", s->what, ctx->message);
        for (unsigned k = 0; k < 3 && s->out[k].name != NULL; k++) {
            mpl_value v = g->output[k];
            int64_t want[MAX_NUMBERS];

            assert_string_equal(g->value_name[v], s->out[k].name);
            assert_string_equal(mpl_shape_text(&g->value_shape[v], dims), s->out[k].dims);
            for (unsigned e = 0; e < s->out[k].n; e++)
                put_number((mpl_type)g->value_type[v], want, e, s->out[k].x[e]);
            assert_close(s->what, (mpl_type)g->value_type[v], it.data[v], want, g->value_bytes[v]);
        }
        interpret_end(&it);
        mpl_graph_free(ctx, g);
    }
}

/* ---- what is wrong ---- */

static void make_bodyless(void)
{
    ADD_IN("x", FLOAT, "");
    ADD_NODE("", "Loop", "- - x", "y", "");
    ADD_OUT("y");
}

static void make_endless_rows(void)
{
    message body;

    ADD_IN("x", FLOAT, "");
    ADD_IN("cond", BOOL, "");
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_OUT("cond");
    ADD_OUT("x");
    body = end_body();
    add_owner("Loop", "- cond", "rows", "", "body", &body);
    ADD_OUT("rows");
}

static void make_endless(void)
{
    message body;

    ADD_IN("x", FLOAT, "");
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_IN("x", FLOAT, "");
    ADD_OUT("go");
    ADD_OUT("x");
    body = end_body();
    add_owner("Loop", "- - x", "y", "", "body", &body);
    ADD_OUT("y");
}

static void make_few_inputs(void)
{
    message body;

    ADD_IN("x", FLOAT, "");
    add_whole("M", 5);
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_OUT("i");
    body = end_body();
    add_owner("Loop", "M - x", "y", "", "body", &body);
    ADD_OUT("y");
}

static void make_unknown_capture(void)
{
    message body;

    ADD_IN("x", FLOAT, "");
    add_whole("M", 5);
    begin_body();
    ADD_IN("i", INT64, "");
    ADD_IN("go", BOOL, "");
    ADD_IN("x", FLOAT, "");
    ADD_NODE("", "Add", "x later", "y", "");
    ADD_OUT("go");
    ADD_OUT("y");
    body = end_body();
    add_owner("Loop", "M - x", "y", "", "body", &body);
    ADD_NODE("", "Neg", "y", "later", "");
    ADD_OUT("later");
}

static void make_scan_lengths(void)
{
    message body;

    ADD_IN("a", FLOAT, "2");
    ADD_IN("b", FLOAT, "3");
    begin_body();
    ADD_IN("p", FLOAT, "");
    ADD_IN("q", FLOAT, "");
    ADD_OUT("p");
    body = end_body();
    add_owner("Scan", "a b", "y", "num_scan_inputs=2", "body", &body);
    ADD_OUT("y");
}

/* A loop in which each round makes ten rounds, and so on: more than a million nodes. */
static void make_explosion(void)
{
    message body = {.n = 0};
    char name[16], next[16];

    ADD_IN("x", FLOAT, "1");
    add_whole("M", 10);
    for (int level = 0; level < 4; level++)
        begin_body();
    for (int level = 0; level < 4; level++) {
        ADD_IN("i", INT64, "");
        ADD_IN("go", BOOL, "");
        ADD_IN("z", FLOAT, "N");
        if (level == 0)
            for (int i = 0; i < 110; i++) {
                snprintf(name, sizeof name, "w%d x", i);
                snprintf(next, sizeof next, i < 109 ? "w%d" : "w", i + 1);
                ADD_NODE("", "Concat", i == 0 ? "z x" : name, next, "axis=0");
            }
        else
            add_owner("Loop", "M - z", "w", "", "body", &body);
        ADD_OUT("go");
        ADD_OUT("w");
        body = end_body();
    }
    add_owner("Loop", "M - x", "w", "", "body", &body);
    ADD_OUT("w");
}

static const struct {
    small s;
    const char *says;
} wrong[] = {
    {{.make = make_bodyless, .opset = 13}, "attribute 'body' is missing, or is no graph"},
    {{.make = make_endless_rows, .opset = 13},
     "it stacks rows without a limit: it has no trip count"},
    {{.make = make_endless, .opset = 13}, "nothing can end it"},
    {{.make = make_few_inputs, .opset = 13},
     "its body has 1 inputs and 1 outputs; it must have 3, and at least 2"},
    {{.make = make_unknown_capture, .opset = 13}, "its input 'later' is made by no node before it"},
    {{.make = make_scan_lengths, .opset = 13}, "its scan inputs have 2 and 3 slices"},
    {{.make = make_rows, .opset = 13},
     "its trip count depends on the contents of input 'M'; give them: --input M=FILE"},
    {{.make = make_growing_dynamic, .opset = 13},
     "its trip count depends on the contents of input 'M'"},
    {{.make = make_shapes_if, .opset = 13},
     "its condition, which decides the shape of its outputs, depends on"},
    {{.make = make_explosion, .opset = 13}, "it has more than 262144 nodes"},
};

TEST(wrong_models)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mpl_graph *g = NULL;

        if (read_small(ctx, &wrong[i].s, &g) == MPL_OK ||
            strstr(ctx->message, wrong[i].says) == NULL || strchr(ctx->message, '\n') != NULL)
            fail_msg("'%s' was expected: %s", wrong[i].says, ctx->message);
        assert_null(g);
        assert_int_equal(ctx->n_live, 0);
    }
}

/* Every allocation fails once. */
TEST(out_of_memory)
{
    static void (*const make[])(void) = {make_nested, make_growing, make_if,
                                         make_scan,   make_scan_8,  make_shape_by_loop};

    for (size_t i = 0; i < sizeof make / sizeof *make; i++) {
        small s = {.make = make[i], .opset = make[i] == make_scan_8 ? 8 : 13};
        mpl_status st = MPL_EMEM;

        for (int64_t k = 0; st == MPL_EMEM; k++) {
            mpl_graph *g = NULL;

            mpl_ctx_init(ctx);
            ctx->fail_after = k;
            st = read_small(ctx, &s, &g);
            assert_true((g != NULL) == (st == MPL_OK));
            mpl_graph_free(ctx, g);
            assert_int_equal(ctx->n_live, 0);
        }
        assert_int_equal(st, MPL_OK);
    }
}

TESTS(onnx_models, small_models, wrong_models, out_of_memory)
