/* Gradients through loops and branches: against central differences in f64, against the unrolled
 * network, and in plans of every planner. Fault: a gradient part of a round, branch, capture or
 * carried value that is omitted, counted twice, or taken from another round. */
#include "tests/runtime/bound_graph.h"

#include "graphs/ops/ops_priv.h"
#include "planners/verify/verify.h"

#include <math.h>

static const struct {
    const char *name, *text;
    int64_t number; /* contents of i64 inputs */
} graphs[] = {
    ROW("carried, captured",
        "graph g\ninput x f32 [2,3]\nweight w f32 [3,3]\nblock b\n  param r i64 []\n"
        "  param h f32 [2,3]\n  p = matmul(h, w)\n  q = tanh(p)\nyield _, q\n"
        "y = while b(_, _, x) carried=1 trips=3\noutput y\n",
        0),
    ROW("initial value trained, added to what was",
        "graph g\ninput x f32 [2,3]\nweight w f32 [3,3]\nweight i f32 [2,3]\nblock b\n"
        "  param r i64 []\n  param h f32 [2,3]\n  p = matmul(h, w)\n  q = sigmoid(p)\n"
        "  s = add(q, h)\n  t = mul(s, x)\nyield _, t\ny = while b(_, _, i) carried=1 trips=3\n"
        "z = add(y, i)\noutput z\n",
        0),
    ROW("slices of a trained value, rows",
        "graph g\nweight x f32 [4,2,3]\nweight w f32 [3,3]\nblock b\n  param r i64 []\n"
        "  param h f32 [2,3]\n  param s f32 [2,3]\n  p = matmul(h, w)\n  q = add(p, s)\n"
        "  t = sigmoid(q)\nyield _, t, q\nweight i f32 [2,3]\n"
        "y, rows = while b(_, _, i, x) carried=1\nu = reduce_sum(rows) axes=[0] keepdims=0\n"
        "z = mul(y, u)\noutput z\n",
        0),
    ROW("the same the other way round",
        "graph g\nweight x f32 [4,2,3]\nweight w f32 [3,3]\nblock b\n  param r i64 []\n"
        "  param h f32 [2,3]\n  param s f32 [2,3]\n  p = matmul(h, w)\n  q = add(p, s)\n"
        "  t = sigmoid(q)\nyield _, t, q\nweight i f32 [2,3]\nweight k f32 [4,2,3]\n"
        "y, rows = while b(_, _, i, x) carried=1 scan_reverse=[1,1]\nm = mul(rows, k)\n"
        "u = reduce_sum(m) axes=[0] keepdims=0\nz = mul(y, u)\noutput z\n",
        0),
    ROW("as many rounds as an input says",
        "graph g\ninput x f32 [2,3]\ninput n i64 []\nweight w f32 [3,3]\nweight k f32 [5,2,3]\n"
        "block b\n  param r i64 []\n  param h f32 [2,3]\n  p = matmul(h, w)\n  q = tanh(p)\n"
        "yield _, q, p\ny, rows = while b(n, _, x) carried=1 trips=5\nm = mul(rows, k)\n"
        "u = reduce_sum(m) axes=[0] keepdims=0\nz = add(y, u)\noutput z\n",
        3),
    ROW("no round",
        "graph g\ninput x f32 [2,3]\ninput n i64 []\nweight w f32 [3,3]\nweight i f32 [2,3]\n"
        "block b\n  param r i64 []\n  param h f32 [2,3]\n  p = matmul(h, w)\nyield _, p\n"
        "y = while b(n, _, i) carried=1 trips=5\nv = mul(y, x)\nz = matmul(v, w)\noutput z\n",
        0),
    ROW("an exit test, rows backwards, the round's number",
        "graph g\ninput x f32 [2,3]\ninput s f32 [6,2,3]\nweight w f32 [3,3]\nblock b\n"
        "  param r i64 []\n  param h f32 [2,3]\n  param a f32 [2,3]\n"
        "  weight most i64 [] = splat 4\n  go = less(r, most)\n  exit_unless(go)\n"
        "  f = cast(r) to=f32\n  p = matmul(h, w)\n  q = add(p, a)\n  t = tanh(q)\n"
        "  v = mul(t, f)\nyield _, t, v\ny, rows = while b(_, _, x, s) carried=1 "
        "scan_reverse=[1,1]\nu = reduce_sum(rows) axes=[0] keepdims=0\nz = add(y, u)\noutput z\n",
        0),
    ROW("values that rotate, shift and stay",
        "graph g\nweight a f32 [2,3]\nweight c f32 [2,3]\nweight e f32 [2,3]\nweight w f32 [3,3]\n"
        "block b\n  param r i64 []\n  param x0 f32 [2,3]\n  param x1 f32 [2,3]\n"
        "  param x2 f32 [2,3]\n  param x3 f32 [2,3]\n  p = matmul(x2, w)\n  q = sigmoid(p)\n"
        "  t = mul(q, x3)\nyield _, x1, x0, t, x2\ny0, y1, y2, y3 = while b(_, _, a, c, e, a) "
        "carried=4 trips=4\nu = mul(y0, y2)\nz = add(u, y3)\noutput z\n",
        0),
    ROW("a loop in a loop",
        "graph g\ninput x f32 [2,3]\nweight w f32 [3,3]\nweight v f32 [3,3]\nblock b\n"
        "  param r i64 []\n  param h f32 [2,3]\n  p = matmul(h, v)\n  block c\n    param k i64 []\n"
        "    param i f32 [2,3]\n    q = matmul(i, w)\n    s = add(q, p)\n    t = tanh(s)\n"
        "  yield _, t\n  y = while c(_, _, p) carried=1 trips=2\n  o = add(y, h)\nyield _, o\n"
        "z = while b(_, _, x) carried=1 trips=3\noutput z\n",
        0),
    ROW("an inner loop of as many rounds as the outer one has had",
        "graph g\ninput x f32 [2,3]\nweight w f32 [3,3]\nblock b\n  param r i64 []\n"
        "  param h f32 [2,3]\n  block c\n    param k i64 []\n    param i f32 [2,3]\n"
        "    q = matmul(i, w)\n    t = tanh(q)\n  yield _, t\n"
        "  y = while c(r, _, h) carried=1 trips=4\nyield _, y\n"
        "z = while b(_, _, x) carried=1 trips=3\noutput z\n",
        0),
    ROW("a branch in a loop",
        "graph g\ninput x f32 [2,3]\nweight w f32 [3,3]\nweight v f32 [3,3]\nweight o f32 [2,3]\n"
        "block b\n  param r i64 []\n  param h f32 [2,3]\n  weight two i64 [] = splat 3\n"
        "  m = mod(r, two)\n  weight one i64 [] = splat 1\n  i = sub(m, one)\n  block c\n"
        "    p = matmul(h, w)\n    q = tanh(p)\n  yield q\n  block d\n    s = matmul(h, v)\n"
        "    t = mul(s, o)\n  yield t\n  y = case c, d(i, h)\nyield _, y\n"
        "z = while b(_, _, x) carried=1 trips=5\noutput z\n",
        0),
    ROW("a loop in a branch, a value handed on as it is",
        "graph g\ninput x f32 [2,3]\ninput n i64 []\nweight w f32 [3,3]\nweight v f32 [2,3]\n"
        "block a\n  block b\n    param r i64 []\n    param h f32 [2,3]\n    p = matmul(h, w)\n"
        "    q = tanh(p)\n  yield _, q\n  y = while b(_, _, v) carried=1 trips=2\nyield y, v\n"
        "block e\n  f = mul(v, x)\nyield f, x\no, m = case a, e(n)\nz = add(o, m)\noutput z\n",
        0),
    ROW("the other branch",
        "graph g\ninput x f32 [2,3]\ninput n i64 []\nweight w f32 [3,3]\nweight v f32 [2,3]\n"
        "block a\n  k = matmul(v, w)\nyield k, v\nblock e\n  f = mul(v, x)\n  h = matmul(f, w)\n"
        "yield f, h\no, m = case a, e(n)\nz = mul(o, m)\noutput z\n",
        1),
    ROW("pieces, in the loop and around it",
        "graph g\ninput x f32 [2,3]\nweight w f32 [3,3]\nweight k f32 [4,3]\n"
        "s = slice(k) starts=[0] ends=[2]\nblock b\n  param r i64 []\n  param h f32 [2,3]\n"
        "  p = matmul(h, w)\n  t = slice(k) starts=[1] ends=[3]\n  q = mul(p, t)\n  m = tanh(q)\n"
        "yield _, m\ny = while b(_, _, x) carried=1 trips=3\nu = slice(k) starts=[2] ends=[4]\n"
        "v = mul(y, s)\nz = add(v, u)\noutput z\n",
        0),
    ROW("batch norm in a loop, on the carried value and on slices",
        "graph g\nweight x f32 [3,4,2]\nweight w f32 [2,2]\nweight scale f32 [2]\n"
        "weight b f32 [2]\nweight mean f32 [2]\nweight var f32 [2]\nweight mean2 f32 [2]\n"
        "weight var2 f32 [2]\nweight i f32 [4,2]\nblock c\n  param r i64 []\n  param h f32 [4,2]\n"
        "  param s f32 [4,2]\n  p = matmul(h, w)\n  n = batch_norm(p, scale, b, mean, var) "
        "epsilon=0.1\n  m = batch_norm(s, scale, b, mean2, var2) epsilon=0.1\n  q = add(n, m)\n"
        "  t = tanh(q)\nyield _, t\ny = while c(_, _, i, x) carried=1\noutput y\n",
        0),
    ROW("batch norm in a loop that ends early, and the same one behind it",
        "graph g\ninput n i64 []\ninput x f32 [4,2]\nweight w f32 [2,2]\nweight scale f32 [2]\n"
        "weight b f32 [2]\nweight mean f32 [2]\nweight var f32 [2]\nblock c\n  param r i64 []\n"
        "  param h f32 [4,2]\n  p = matmul(h, w)\n  m = batch_norm(p, scale, b, mean, var) "
        "epsilon=0.1\n  t = tanh(m)\nyield _, t\nz = while c(n, _, x) carried=1 trips=5\n"
        "u = matmul(z, w)\ny = batch_norm(u, scale, b, mean, var) epsilon=0.1\noutput y\n",
        3),
    ROW("batch norm in one branch, its input in the other",
        "graph g\ninput n i64 []\ninput x f32 [4,2]\nweight w f32 [2,2]\nweight scale f32 [2]\n"
        "weight b f32 [2]\nweight mean f32 [2]\nweight var f32 [2]\np = matmul(x, w)\nblock a\n"
        "  m = batch_norm(p, scale, b, mean, var) epsilon=0.1\nyield m\nblock e\n  t = tanh(p)\n"
        "yield t\nz = case a, e(n)\ny = matmul(z, w)\noutput y\n",
        0),
    ROW("batch norm in a branch in a loop in a loop",
        "graph g\ninput x f32 [4,2]\nweight w f32 [2,2]\nweight scale f32 [2]\nweight b f32 [2]\n"
        "weight mean f32 [2]\nweight var f32 [2]\nblock c\n  param r i64 []\n  param h f32 [4,2]\n"
        "  block d\n    param r2 i64 []\n    param h2 f32 [4,2]\n    p = matmul(h2, w)\n"
        "    weight one i64 [] = splat 1\n    k = sub(r2, one)\n    block a\n"
        "      m = batch_norm(p, scale, b, mean, var) epsilon=0.1\n      t = sigmoid(m)\n"
        "    yield t\n    j = case a(k, p)\n  yield _, j\n  o = while d(_, _, h) carried=1 "
        "trips=2\nyield _, o\ny = while c(_, _, x) carried=1 trips=2\noutput y\n",
        0),
    ROW("what is bypassed",
        "graph g\ninput x f32 [2,3]\ninput n i64 []\nweight w f32 [3,3]\nweight v f32 [2,3]\n"
        "t = sigmoid(v)\nblock a\n  k = matmul(v, w)\nyield k\no = case a(n, t)\nz = mul(o, x)\n"
        "u = matmul(z, w)\noutput u\n",
        -1),
};

/* ---- running ---- */

typedef struct bench {
    mpl_ctx ctx;
    const mpl_backend *backend;
    mpl_device *dev;
} bench;

static bench opened; /* its device is open as long as tests run */

static double draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 33) / 1073741824.0 - 1;
}

static mpl_graph *read_double(mpl_ctx *ctx, const char *text)
{
    char *copy = strdup(text);
    mpl_graph *g = NULL;

    for (char *at = copy; (at = strstr(at, " f32 ")) != NULL;)
        memcpy(at, " f64 ", 5);
    for (char *at = copy; (at = strstr(at, "to=f32")) != NULL;)
        memcpy(at, "to=f64", 6);
    assert_ok(ctx, mpl_text_read_memory(ctx, "test", copy, strlen(copy), &g));
    free(copy);
    return g;
}

/* Gives weights data that depends on their order only, so that it can be changed. */
static void fill_weights(mpl_ctx *ctx, mpl_graph *g)
{
    uint64_t state = 5;

    for (mpl_value v = 0; v < g->n_values; v++) {
        uint64_t n = 0;

        if (g->value_role[v] != MPL_WEIGHT || g->value_data[v] != NULL)
            continue;
        mpl_shape_count(&g->value_shape[v], &n);
        g->value_data[v] = mpl_alloc(ctx, g->value_bytes[v], 1);
        for (uint64_t i = 0; i < n; i++)
            mpl_put((mpl_type)g->value_type[v], g->value_data[v], (int64_t)i, 0.7 * draw(&state));
    }
}

static void set_inputs(bench *b, mpl_exec *exec, const mpl_graph *g, int64_t number)
{
    uint64_t state = 11;

    for (uint32_t i = 0; i < g->n_inputs; i++) {
        mpl_value v = g->input[i];
        char *data = mpl_alloc(&b->ctx, g->value_bytes[v], 1);
        uint64_t n = 0;

        mpl_shape_count(&g->value_shape[v], &n);
        for (uint64_t k = 0; k < n; k++)
            if (g->value_type[v] == MPL_TYPE_i64)
                ((int64_t *)data)[k] = g->value_shape[v].rank == 0 ? number : (int64_t)k % 2;
            else
                mpl_put((mpl_type)g->value_type[v], data, (int64_t)k, draw(&state));
        assert_ok(&b->ctx, mpl_exec_set_input(exec, i, data));
        mpl_free(&b->ctx, data);
    }
}

/* Output i as doubles, from a run without sharing; *n: number of elements. */
static double *output_of(bench *b, mpl_exec *exec, const mpl_graph *g, uint32_t i, uint64_t *n)
{
    mpl_value v = g->output[i];
    char *data = mpl_alloc(&b->ctx, g->value_bytes[v] + 1, 1);
    double *out;

    mpl_shape_count(&g->value_shape[v], n);
    out = mpl_alloc(&b->ctx, *n, sizeof *out);
    assert_ok(&b->ctx, mpl_exec_output(exec, i, data));
    for (uint64_t k = 0; k < *n; k++)
        out[k] = mpl_get((mpl_type)g->value_type[v], data, (int64_t)k);
    mpl_free(&b->ctx, data);
    return out;
}

static mpl_exec *run(bench *b, const mpl_graph *g, int64_t number)
{
    mpl_exec *exec = NULL;
    mpl_op *order = mpl_alloc(&b->ctx, g->n_ops, sizeof *order);

    assert_ok(&b->ctx, mpl_order_of(&b->ctx, g, mpl_order_find("given"), order));
    assert_ok(&b->ctx, mpl_exec_new(&b->ctx, b->backend, b->dev, g, order, NULL, NULL, NULL,
                                    &(mpl_exec_options){.weight_seed = 1}, &exec));
    set_inputs(b, exec, g, number);
    assert_ok(&b->ctx, mpl_exec_run(exec, NULL));
    mpl_free(&b->ctx, order);
    return exec;
}

static double loss_of(bench *b, const mpl_graph *g, int64_t number)
{
    mpl_exec *exec = run(b, g, number);
    uint64_t n;
    double *out = output_of(b, exec, g, 0, &n), loss = out[0];

    mpl_free(&b->ctx, out);
    mpl_exec_free(&b->ctx, exec);
    return loss;
}

/* ---- central differences ---- */

/* Running statistics of batch norms have no gradient. */
static bool is_running(const char *name)
{
    return strncmp(name, "mean", 4) == 0 || strncmp(name, "var", 3) == 0;
}

static uint32_t n_running(const mpl_graph *g)
{
    uint32_t n = 0;

    for (mpl_value v = 0; v < g->n_values; v++)
        n += g->value_role[v] == MPL_WEIGHT && is_running(g->value_name[v]);
    return n;
}

/* The trained weights, in the order of the gradients: those of the old graph that are not
 * constants. */
static uint32_t trained(const mpl_graph *old, const mpl_graph *g, mpl_value *list)
{
    uint32_t n = 0;

    for (mpl_value v = 0; v < old->n_values; v++)
        if (old->value_role[v] == MPL_WEIGHT && old->value_data[v] == NULL &&
            !is_running(old->value_name[v]))
            list[n++] = mpl_graph_find(g, old->value_name[v]);
    return n;
}

/* Checks the gradients that g, the training graph of `old`, outputs after its loss. */
static void check_differences(bench *b, const char *name, const mpl_graph *old, mpl_graph *g,
                              int64_t number, uint64_t most)
{
    const double h = 1e-5;
    mpl_value weight[64];
    uint32_t n_weights = trained(old, g, weight);
    mpl_exec *exec;

    fill_weights(&b->ctx, g);
    exec = run(b, g, number);
    for (uint32_t i = 0; i < n_weights; i++) {
        uint64_t n;
        double *gradient = output_of(b, exec, g, 1 + i, &n), *data = g->value_data[weight[i]];

        for (uint64_t k = 0; k<n; k += n> most ? n / most : 1) {
            double was = data[k], above, below, want;

            data[k] = was + h, above = loss_of(b, g, number);
            data[k] = was - h, below = loss_of(b, g, number);
            data[k] = was;
            want = (above - below) / (2 * h);
            if (fabs(gradient[k] - want) > 1e-7 + 1e-6 * fabs(want))
                fail_msg("%s: element %" PRIu64
                         " of the gradient of '%s' is %.12g, by differences %.12g",
                         name, k, g->value_name[weight[i]], gradient[k], want);
        }
        mpl_free(&b->ctx, gradient);
    }
    mpl_exec_free(&b->ctx, exec);
}

static void check_gradients(bench *b, const char *name, const mpl_graph *old,
                            const mpl_autodiff_options *options, int64_t number, uint64_t most)
{
    mpl_graph *g = NULL;
    mpl_value weight[64];

    assert_ok(&b->ctx, mpl_autodiff(&b->ctx, old, options, &g));
    assert_int_equal(g->n_outputs, 1 + trained(old, g, weight) + n_running(old));
    check_differences(b, name, old, g, number, most);
    mpl_graph_free(&b->ctx, g);
}

TEST(by_hand)
{
    bench *b = &opened;

    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        for (int chained = 0; chained < 2; chained++) {
            mpl_graph *g = read_double(&b->ctx, graphs[i].text);

            check_gradients(b, graphs[i].name, g, &(mpl_autodiff_options){.chained = chained != 0},
                            graphs[i].number, 9);
            mpl_graph_free(&b->ctx, g);
        }
}

static const char *const networks[] = {
    "lstm:form=while,layers=2,steps=3,hidden=3,batch=2",
    "gru:form=while,steps=3,hidden=3,batch=2",
    "piecewise:image=6,channels=2",
    "nested_loop:image=5,channels=2",
};

/* Networks with their own loss. */
static const char *const own_losses[] = {
    "seq2seq:steps=3,most=4,hidden=3,vocab=5,batch=2,mode=train",
    "seq2seq:steps=2,most=1,hidden=2,vocab=3,batch=1,mode=train,accumulate=chain,products=apart",
    "offset2bbox:batch=2,boxes=3,mode=train",
    "ssd_boxes:batch=2,boxes=3,classes=2,mode=train",
    "yolo_boxes:cells=2,classes=2,mode=train",
    "yolo_boxes:cells=2,classes=2,ssa=copy,mode=train",
};

static mpl_graph *zoo_double(bench *b, const char *name)
{
    mpl_graph *single = NULL, *g;
    char *text = NULL;
    size_t size;

    assert_ok(&b->ctx, mpl_zoo_build(&b->ctx, name, &single));
    assert_ok(&b->ctx, mpl_text_write_memory(&b->ctx, single, &text, &size));
    g = read_double(&b->ctx, text);
    mpl_free(&b->ctx, text);
    mpl_graph_free(&b->ctx, single);
    return g;
}

TEST(of_the_zoo)
{
    bench *b = &opened;

    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        mpl_graph *g = zoo_double(b, networks[i]);

        check_gradients(b, networks[i], g, &(mpl_autodiff_options){.chained = false}, 0, 3);
        mpl_graph_free(&b->ctx, g);
    }
    for (size_t i = 0; i < sizeof own_losses / sizeof *own_losses; i++) {
        mpl_graph *g = zoo_double(b, own_losses[i]);

        check_differences(b, own_losses[i], g, g, 0, 3);
        mpl_graph_free(&b->ctx, g);
    }
}

/* ---- running statistics ---- */

#define NORMS                                                                                      \
    "graph g\ninput x f32 [3,4,2]\ninput n i64 []\nweight w f32 [2]\nweight scale f32 "            \
    "[2]\nweight b f32 "                                                                           \
    "[2]\n"                                                                                        \
    "weight mean f32 [2]\nweight var f32 [2]\nweight last i64 [] = splat 2\n"

/* Batch norms of slices of x, and the slices in the order in which they ran; -1: end. */
static const struct {
    const char *text;
    int64_t number;
    int ran[8];
} moving[] = {
    ROW(NORMS "block c\n  param r i64 []\n  param h f32 [4,2]\n  param s f32 [4,2]\n"
              "  m = batch_norm(s, scale, b, mean, var)\n  q = add(h, m)\nyield _, q\n"
              "weight i f32 [4,2]\ny = while c(_, _, i, x) carried=1\noutput y\n",
        0, {0, 1, 2, -1}),
    ROW(NORMS "block c\n  param r i64 []\n  param h f32 [4,2]\n  s = gather(x, r)\n"
              "  m = batch_norm(s, scale, b, mean, var)\n  q = add(h, m)\nyield _, q\n"
              "weight i f32 [4,2]\nz = while c(n, _, i) carried=1 trips=3\nu = gather(x, last)\n"
              "v = batch_norm(u, scale, b, mean, var)\ny = add(z, v)\noutput y\n",
        2, {0, 1, 2, -1}),
    {NORMS "u = gather(x, last)\nm = batch_norm(u, scale, b, mean, var)\ns = gather(x, n)\n"
           "v = batch_norm(s, scale, b, mean, var)\ny = add(m, v)\noutput y\n",
     1,
     {2, 1, -1}},
    ROW(NORMS "u = gather(x, last)\nblock c\n  m = batch_norm(u, scale, b, mean, var)\nyield m\n"
              "block d\n  s = mul(u, w)\nyield s\ny = case c, d(n)\noutput y\n",
        0, {2, -1}),
    ROW(NORMS "u = gather(x, last)\nblock c\n  m = batch_norm(u, scale, b, mean, var)\nyield m\n"
              "block d\n  s = mul(u, w)\nyield s\ny = case c, d(n)\noutput y\n",
        1, {-1}),
    ROW(NORMS "u = gather(x, last)\nz = mul(u, w)\nblock c\n  m = batch_norm(u, scale, b, mean, "
              "var)\nyield m\ny = case c(n, z)\noutput y\n",
        -1, {-1}),
    ROW(NORMS "weight i f32 [4,2]\nblock c\n  param r i64 []\n  param h f32 [4,2]\n  block d\n"
              "    param k i64 []\n    param e f32 [4,2]\n    s = gather(x, k)\n"
              "    m = batch_norm(s, scale, b, mean, var)\n    q = add(e, m)\n  yield _, q\n"
              "  o = while d(r, _, h) carried=1 trips=3\n  t = tanh(o)\nyield _, t\n"
              "y = while c(_, _, i) carried=1 trips=3\noutput y\n",
        0, {0, 0, 1, -1}),
};

/* Mean and variance of channel c of a slice of x [3,4,2]. */
static void moments(const double *x, int slice, int c, double moment[2])
{
    moment[0] = moment[1] = 0;
    for (int i = 0; i < 4; i++)
        moment[0] += x[(slice * 4 + i) * 2 + c] / 4;
    for (int i = 0; i < 4; i++)
        moment[1] += pow(x[(slice * 4 + i) * 2 + c] - moment[0], 2) / 4;
}

/* Statistics are updated once per batch norm that ran forward, in that order; recomputation on the
 * way back updates nothing. */
TEST(statistics_move_in_turn)
{
    bench *b = &opened;

    for (size_t i = 0; i < sizeof moving / sizeof *moving; i++) {
        mpl_graph *old = read_double(&b->ctx, moving[i].text), *g = NULL;
        double x[24];
        uint64_t seed = 11, n;
        mpl_exec *exec;

        assert_ok(&b->ctx,
                  mpl_autodiff(&b->ctx, old, &(mpl_autodiff_options){.chained = false}, &g));
        fill_weights(&b->ctx, g);
        for (int k = 0; k < 24; k++) /* x is the first input, as drawn by set_inputs */
            x[k] = draw(&seed);
        exec = run(b, g, moving[i].number);
        for (int k = 0; k < 2; k++) {
            double *got = output_of(b, exec, g, g->n_outputs - 2 + k, &n);
            const double *was = g->value_data[mpl_graph_find(g, k == 0 ? "mean" : "var")];

            for (int c = 0; c < 2; c++) {
                double want = was[c], moment[2];

                for (const int *at = moving[i].ran; *at >= 0; at++) {
                    moments(x, *at, c, moment);
                    want = 0.9 * want + 0.1 * moment[k];
                }
                if (fabs(got[c] - want) > 1e-14)
                    fail_msg("row %zu: %s of channel %d is %.17g, should be %.17g", i,
                             k == 0 ? "mean" : "var", c, got[c], want);
            }
            mpl_free(&b->ctx, got);
        }
        mpl_exec_free(&b->ctx, exec);
        mpl_graph_free(&b->ctx, old);
        mpl_graph_free(&b->ctx, g);
    }
}

/* ---- loops against their unrolled form ---- */

TEST(as_unrolled)
{
    static const char *const pairs[][2] = ROW({"lstm:form=while,layers=2,steps=5,hidden=4,batch=2",
                                               "lstm:layers=2,steps=5,hidden=4,batch=2"},
                                              {"gru:form=while,layers=2,steps=5,hidden=4,batch=2",
                                               "gru:layers=2,steps=5,hidden=4,batch=2"});
    bench *b = &opened;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        mpl_graph *g[2];
        mpl_exec *exec[2];

        for (int k = 0; k < 2; k++) {
            mpl_graph *old = zoo_double(b, pairs[i][k]);

            assert_ok(&b->ctx,
                      mpl_autodiff(&b->ctx, old, &(mpl_autodiff_options){.chained = false}, &g[k]));
            fill_weights(&b->ctx, g[k]);
            exec[k] = run(b, g[k], 0);
            mpl_graph_free(&b->ctx, old);
        }
        assert_int_equal(g[0]->n_outputs, g[1]->n_outputs);
        for (uint32_t o = 0; o < g[0]->n_outputs; o++) {
            uint64_t n[2];
            double *out[2] = {output_of(b, exec[0], g[0], o, &n[0]),
                              output_of(b, exec[1], g[1], o, &n[1])};

            assert_int_equal(n[0], n[1]);
            for (uint64_t k = 0; k < n[0]; k++)
                if (fabs(out[0][k] - out[1][k]) > 1e-12)
                    fail_msg("%s: output %u differs from the unrolled one: %.17g, %.17g",
                             pairs[i][0], o, out[0][k], out[1][k]);
            mpl_free_each(&b->ctx, out[0], out[1]);
        }
        for (int k = 0; k < 2; k++) {
            mpl_exec_free(&b->ctx, exec[k]);
            mpl_graph_free(&b->ctx, g[k]);
        }
    }
}

/* ---- refusals, memory ---- */

TEST(refused)
{
    static const struct {
        const char *text, *message;
    } rows[] = ROW(ROW("graph g\ninput x f32 [2,3]\ninput n i64 []\nweight w f32 [3,3]\nblock b\n"
                       "  param r i64 []\n  param h f32 [2,3]\n  p = matmul(h, w)\nyield _, p\n"
                       "y = while b(n, _, x) carried=1\noutput y\n",
                       "give it trips=N"),
                   ROW("graph g\ninput x f32 [2,3]\ninput n i64 []\nweight w f32 [4,2,3]\nblock b\n"
                       "  param r i64 []\n  param h f32 [2,3]\n  param s f32 [2,3]\n"
                       "  p = mul(h, s)\nyield _, p\ny = while b(n, _, x, w) carried=1\noutput y\n",
                       "may end early, and its scanned input 'w' is trained"));
    bench *b = &opened;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_graph *g = NULL, *out = NULL;

        assert_ok(&b->ctx,
                  mpl_text_read_memory(&b->ctx, "test", rows[i].text, strlen(rows[i].text), &g));
        assert_status(&b->ctx,
                      mpl_autodiff(&b->ctx, g, &(mpl_autodiff_options){.chained = false}, &out),
                      MPL_EINPUT);
        if (strstr(b->ctx.message, rows[i].message) == NULL)
            fail_msg("%s", b->ctx.message);
        mpl_graph_free(&b->ctx, g);
    }
}

TEST(lose_memory)
{
    bench *b = &opened;

    for (size_t i = 6; i < sizeof graphs / sizeof *graphs; i += 4) {
        mpl_graph *g = read_double(&b->ctx, graphs[i].text);

        EACH_ALLOCATION_FAILS (&b->ctx, st) {
            mpl_graph *out = NULL;

            st = mpl_autodiff(&b->ctx, g, &(mpl_autodiff_options){.chained = false}, &out);
            mpl_graph_free(&b->ctx, out);
        }
        mpl_graph_free(&b->ctx, g);
    }
}

/* ---- plans ---- */

/* A plan's outputs equal those of a run without sharing, bit for bit. */
static void check_plan(bench *b, const mpl_graph *g, const mpl_op *order, bool parallel,
                       mpl_exec *apart)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;

    options.parallel = parallel;
    assert_ok(&b->ctx, mpl_problem_from_graph(&b->ctx, g, order, &options, &p, &map));
    for (int i = 0; mpl_planners[i] != NULL; i++) {
        mpl_plan *plan = NULL;
        mpl_exec *exec = NULL;
        mpl_run how = mpl_run_default(&b->ctx);
        mpl_status st;

        how.budget_ticks = 20000;
        if ((mpl_planners[i]->traits & MPL_SPREADS) != 0)
            continue;
        st = mpl_planner_run(mpl_planners[i], &how, p, &plan);
        if (st == MPL_EUNAVAIL)
            continue;
        assert_ok(&b->ctx, st);
        if (mpl_verify_places(&b->ctx, g, map, p, plan) != MPL_OK)
            fail_msg("%s: %s", mpl_planners[i]->name, b->ctx.message);
        assert_ok(&b->ctx,
                  mpl_exec_new(&b->ctx, b->backend, b->dev, g, order, p, map, plan,
                               &(mpl_exec_options){.weight_seed = 1, .checked = !parallel}, &exec));
        set_inputs(b, exec, g, 0);
        assert_ok(&b->ctx, parallel ? run_by(exec, 2) : mpl_exec_run(exec, NULL));
        for (uint32_t o = 0; o < g->n_outputs; o++) {
            uint64_t bytes = g->value_bytes[g->output[o]];
            char *got = mpl_alloc(&b->ctx, 2 * bytes + 1, 1), *want = got + bytes;

            assert_ok(&b->ctx, mpl_exec_output(exec, o, got));
            assert_ok(&b->ctx, mpl_exec_output(apart, o, want));
            assert_memory_equal(got, want, bytes);
            mpl_free(&b->ctx, got);
        }
        mpl_exec_free(&b->ctx, exec);
        mpl_plan_free(&b->ctx, plan);
    }
    mpl_problem_free(&b->ctx, p);
    mpl_value_map_free(&b->ctx, map);
}

/* A zoo network, or the graph of a text, with momentum updates. */
static mpl_graph *trained_network(mpl_ctx *ctx, const char *text)
{
    mpl_graph *forward = NULL, *g = NULL;

    if (strncmp(text, "graph", 5) != 0) {
        assert_ok(ctx, mpl_zoo_build(ctx, text, &g));
        return g;
    }
    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &forward));
    assert_ok(ctx, mpl_autodiff(ctx, forward,
                                &(mpl_autodiff_options){.update = MPL_OPTIMISER_MOMENTUM}, &g));
    mpl_graph_free(ctx, forward);
    return g;
}

static void planned_on(const char *backend)
{
    static const char *const trained_networks[] = ROW(
        "lstm:form=while,layers=2,steps=3,hidden=16,batch=2,mode=train",
        "gru:form=while,steps=3,hidden=16,batch=2,mode=train",
        "piecewise:image=8,channels=4,mode=train", "nested_loop:image=8,channels=4,mode=train",
        "lstm:form=while,steps=3,hidden=16,batch=2,mode=train,update=adam",
        "nested_loop:image=8,channels=4,mode=train,update=momentum",
        "piecewise:image=8,channels=4,mode=train,update=sgd",
        "seq2seq:steps=3,most=4,hidden=8,vocab=10,batch=2,mode=train,update=adam",
        "graph g\ninput x f32 [2,4,6,6]\nweight w f32 [4,4,3,3]\nweight scale f32 [4]\n"
        "weight b f32 [4]\nweight mean f32 [4]\nweight var f32 [4]\nblock c\n  param r i64 []\n"
        "  param h f32 [2,4,6,6]\n  p = conv(h, w) pads=[1,1,1,1]\n"
        "  m = batch_norm(p, scale, b, mean, var)\n  t = relu(m)\n  weight one i64 [] = splat 1\n"
        "  k = sub(r, one)\n  block a\n    e = conv(t, w) pads=[1,1,1,1]\n"
        "    f = batch_norm(e, scale, b, mean, var)\n  yield f\n  j = case a(k, t)\nyield _, j\n"
        "y = while c(_, _, x) carried=1 trips=2\noutput y\n");
    bench b = opened;

    b.backend = mpl_backend_find(backend);
    if (b.backend == NULL ||
        b.backend->open(&b.ctx, &(mpl_device_options){.n_threads = 1}, &b.dev) != MPL_OK)
        skip_without(backend);
    for (size_t i = 0; i < sizeof trained_networks / sizeof *trained_networks; i++) {
        mpl_graph *g = trained_network(&b.ctx, trained_networks[i]);
        mpl_op *order = order_by(&b.ctx, g, "given");
        mpl_exec *apart = run(&b, g, 0);

        check_plan(&b, g, order, false, apart);
        check_plan(&b, g, order, true, apart);
        mpl_exec_free(&b.ctx, apart);
        mpl_free(&b.ctx, order);
        mpl_graph_free(&b.ctx, g);
    }
    b.backend->close(b.dev);
}

TEST(planned_on_ref)
{
    planned_on("ref");
}

TEST(planned_on_cpu)
{
    planned_on("cpu");
}

static int open_device(void)
{
    opened.ctx = mpl_ctx_default();
    opened.backend = mpl_backend_find("ref");
    assert_ok(&opened.ctx, opened.backend->open(&opened.ctx, &(mpl_device_options){.n_threads = 1},
                                                &opened.dev));
    return 0;
}

static int close_device(void)
{
    opened.backend->close(opened.dev);
    return opened.ctx.n_live == 0 ? 0 : -1;
}

TESTS_WITHIN(open_device, close_device, by_hand, of_the_zoo, as_unrolled, statistics_move_in_turn,
             refused, lose_memory, planned_on_ref, planned_on_cpu)
