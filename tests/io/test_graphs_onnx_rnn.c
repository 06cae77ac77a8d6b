/* ONNX's LSTM, GRU and RNN with every option of the standard, as loops and unrolled, against loops
 * over the standard's formulas, one sequence and one unit at a time.
 *
 * Fault: confused gates, peepholes, biases or directions; a sequence that goes on past its end or
 * begins in the wrong place; a batch axis in the wrong place; an alpha or a clip applied to the
 * wrong function. */
#include "tests/support/interpret.h"
#include "tests/support/onnx_text.h"

#include <math.h>

enum { STEPS = 5, BATCH = 3, INPUT = 2, HIDDEN = 4, MAX_GATES = 4 };

typedef struct activation {
    const char *name;
    double alpha, beta;
} activation;

typedef struct option {
    const char *op, *direction, *attrs; /* direction NULL: omitted */
    const char *given;                  /* optional inputs: B, l (lengths), h, c, P */
    const char *outputs;                /* "- Y_h": the requested ones */
    bool batch_first, flag; /* flag: input_forget, linear_before_reset; also set in attrs */
    double clip;            /* 0: none */
    activation f[6];        /* NULL: the defaults */
} option;

#define TANH                                                                                       \
    {                                                                                              \
        "Tanh", 0, 0                                                                               \
    }
#define SIGMOID                                                                                    \
    {                                                                                              \
        "Sigmoid", 0, 0                                                                            \
    }
static const option options[] = {
    {"RNN", NULL, "", "", "Y Y_h", .f = {TANH}},
    {"RNN", "reverse", "", "Bh", "Y Y_h", .f = {TANH}},
    {"RNN", "bidirectional", "activations={Relu,Tanh}", "Blh", "Y Y_h",
     .f = {{"Relu", 0, 0}, TANH}},
    {"RNN", "bidirectional", "layout=1 clip=0.4f", "Blh", "Y Y_h", true, .clip = 0.4f,
     .f = {TANH, TANH}},
    {"RNN", "forward", "activations={Affine} activation_alpha=(0.5) activation_beta=(0.1)", "B",
     "Y", .f = {{"Affine", 0.5, 0.1f}}},
    {"RNN", NULL, "activations={LeakyRelu} activation_alpha=(0.25)", "B", "Y Y_h",
     .f = {{"LeakyRelu", 0.25, 0}}},
    {"RNN", NULL, "activations={leakyrelu}", "B", "Y", .f = {{"LeakyRelu", 0.01, 0}}},
    {"RNN", NULL, "activations={ThresholdedRelu} activation_alpha=(0.125)", "B", "Y",
     .f = {{"ThresholdedRelu", 0.125, 0}}},
    {"RNN", NULL, "activations={ScaledTanh} activation_alpha=(1.5) activation_beta=(0.5)", "B", "Y",
     .f = {{"ScaledTanh", 1.5, 0.5}}},
    {"RNN", NULL, "activations={HardSigmoid}", "B", "Y", .f = {{"HardSigmoid", 0.2f, 0.5}}},
    {"RNN", "bidirectional",
     "activations={Elu,HardSigmoid} activation_alpha=(0.5,0.25) activation_beta=(0.75)", "B",
     "Y Y_h", .f = {{"Elu", 0.5, 0}, {"HardSigmoid", 0.25, 0.75}}},
    {"RNN", "bidirectional", "activations={Softsign,Softplus}", "B", "Y Y_h",
     .f = {{"Softsign", 0, 0}, {"Softplus", 0, 0}}},
    {"GRU", NULL, "", "", "Y Y_h", .f = {SIGMOID, TANH}},
    {"GRU", NULL, "linear_before_reset=1", "", "Y Y_h", .flag = true, .f = {SIGMOID, TANH}},
    {"GRU", "reverse", "", "Blh", "Y Y_h", .f = {SIGMOID, TANH}},
    {"GRU", "reverse", "linear_before_reset=1", "Blh", "Y Y_h", .flag = true, .f = {SIGMOID, TANH}},
    {"GRU", "bidirectional", "linear_before_reset=1 layout=1", "Bh", "Y Y_h", true, true,
     .f = {SIGMOID, TANH, SIGMOID, TANH}},
    {"GRU", "bidirectional",
     "clip=0.3f activations={HardSigmoid,Affine,Sigmoid,Softsign} activation_alpha=(0.3,0.5)",
     "Blh", "Y Y_h", .clip = 0.3f,
     .f = {{"HardSigmoid", 0.3f, 0.5}, {"Affine", 0.5, 0}, SIGMOID, {"Softsign", 0, 0}}},
    {"LSTM", NULL, "", "", "Y Y_h Y_c", .f = {SIGMOID, TANH, TANH}},
    {"LSTM", NULL, "", "B", "- - Y_c", .f = {SIGMOID, TANH, TANH}},
    {"LSTM", "reverse", "", "BhcP", "Y Y_h Y_c", .f = {SIGMOID, TANH, TANH}},
    {"LSTM", "reverse", "", "lhc", "- Y_h", .f = {SIGMOID, TANH, TANH}},
    {"LSTM", "forward", "input_forget=1", "BhcP", "Y Y_h Y_c", .flag = true,
     .f = {SIGMOID, TANH, TANH}},
    {"LSTM", "forward", "clip=0.2f", "BP", "Y Y_h Y_c", .clip = 0.2f, .f = {SIGMOID, TANH, TANH}},
    {"LSTM", "forward", "layout=1", "Bhc", "- Y_h Y_c", true, .f = {SIGMOID, TANH, TANH}},
    {"LSTM", "bidirectional", "layout=1", "BlhcP", "Y Y_h Y_c", true,
     .f = {SIGMOID, TANH, TANH, SIGMOID, TANH, TANH}},
    ROW("LSTM", "bidirectional",
        "activations={Sigmoid,Softsign,Relu,HardSigmoid,Tanh,Elu} activation_alpha=(0.25,0.5)",
        "BlhcP", "Y Y_h Y_c",
        .f = ROW(SIGMOID, {"Softsign", 0, 0}, {"Relu", 0, 0}, {"HardSigmoid", 0.25, 0.5}, TANH,
                 {"Elu", 0.5, 0})),
};

/* ---- the numbers ---- */

typedef struct data {
    uint32_t n_gates, n_directions;
    float x[STEPS * BATCH * INPUT], w[2 * MAX_GATES * HIDDEN * INPUT],
        r[2 * MAX_GATES * HIDDEN * HIDDEN];
    float b[2 * 2 * MAX_GATES * HIDDEN], h[2 * BATCH * HIDDEN], c[2 * BATCH * HIDDEN],
        p[2 * 3 * HIDDEN];
    int32_t length[BATCH];
    double y[STEPS * 2 * BATCH * HIDDEN], y_h[2 * BATCH * HIDDEN], y_c[2 * BATCH * HIDDEN];
} data;

static void fill(float *to, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at[] = {seed, i};

        to[i] = (float)(mpl_hash(MPL_HASH_SEED, at, sizeof at) % 1601) / 1000 - 0.8f;
    }
}

static bool has(const option *o, char input)
{
    return strchr(o->given, input) != NULL;
}

static void make_data(const option *o, data *d)
{
    memset(d, 0, sizeof *d);
    d->n_gates = o->op[0] == 'L' ? 4 : o->op[0] == 'G' ? 3 : 1;
    d->n_directions = o->direction != NULL && o->direction[0] == 'b' ? 2 : 1;
    fill(d->x, STEPS * BATCH * INPUT, 1);
    fill(d->w, 2 * MAX_GATES * HIDDEN * INPUT, 2);
    fill(d->r, 2 * MAX_GATES * HIDDEN * HIDDEN, 3);
    if (has(o, 'B'))
        fill(d->b, 2 * 2 * MAX_GATES * HIDDEN, 4);
    if (has(o, 'h'))
        fill(d->h, 2 * BATCH * HIDDEN, 5);
    if (has(o, 'c'))
        fill(d->c, 2 * BATCH * HIDDEN, 6);
    if (has(o, 'P'))
        fill(d->p, 2 * 3 * HIDDEN, 7);
    memcpy(d->length, has(o, 'l') ? ((int32_t[]){3, 0, STEPS}) : ((int32_t[]){STEPS, STEPS, STEPS}),
           sizeof d->length);
}

/* ---- the standard's formulas ---- */

static double apply(const option *o, const activation *f, double x)
{
    if (o->clip > 0)
        x = x > o->clip ? o->clip : x < -o->clip ? -o->clip : x;
    if (strcmp(f->name, "Relu") == 0)
        return x > 0 ? x : 0;
    if (strcmp(f->name, "Tanh") == 0)
        return tanh(x);
    if (strcmp(f->name, "Sigmoid") == 0)
        return 1 / (1 + exp(-x));
    if (strcmp(f->name, "Affine") == 0)
        return f->alpha * x + f->beta;
    if (strcmp(f->name, "LeakyRelu") == 0)
        return x >= 0 ? x : f->alpha * x;
    if (strcmp(f->name, "ThresholdedRelu") == 0)
        return x > f->alpha ? x : 0;
    if (strcmp(f->name, "ScaledTanh") == 0)
        return f->alpha * tanh(f->beta * x);
    if (strcmp(f->name, "HardSigmoid") == 0)
        return fmin(fmax(f->alpha * x + f->beta, 0), 1);
    if (strcmp(f->name, "Elu") == 0)
        return x >= 0 ? x : f->alpha * (exp(x) - 1);
    if (strcmp(f->name, "Softsign") == 0)
        return x / (1 + fabs(x));
    assert_string_equal(f->name, "Softplus");
    return log(1 + exp(x));
}

/* One sequence in one direction. */
typedef struct sequence {
    const option *o;
    const data *d;
    const activation *f;
    uint32_t direction;
    double h[HIDDEN], c[HIDDEN];
} sequence;

static double of_x(const sequence *s, uint32_t gate, uint32_t unit, const double *x)
{
    uint32_t row = (s->direction * s->d->n_gates + gate) * HIDDEN + unit;
    double sum = s->d->b[(2 * s->direction * s->d->n_gates + gate) * HIDDEN + unit];

    for (uint32_t i = 0; i < INPUT; i++)
        sum += x[i] * s->d->w[row * INPUT + i];
    return sum;
}

static double of_h(const sequence *s, uint32_t gate, uint32_t unit, const double *h)
{
    uint32_t row = (s->direction * s->d->n_gates + gate) * HIDDEN + unit;
    double sum = s->d->b[((2 * s->direction + 1) * s->d->n_gates + gate) * HIDDEN + unit];

    for (uint32_t i = 0; i < HIDDEN; i++)
        sum += h[i] * s->d->r[row * HIDDEN + i];
    return sum;
}

static double peephole(const sequence *s, uint32_t gate, uint32_t unit, double c)
{
    return s->d->p[(s->direction * 3 + gate) * HIDDEN + unit] * c;
}

static void step_lstm(sequence *s, const double *x)
{
    double h[HIDDEN];

    for (uint32_t u = 0; u < HIDDEN; u++) { /* gates: i, o, f, c; peepholes: i, o, f */
        double i = apply(s->o, &s->f[0],
                         of_x(s, 0, u, x) + of_h(s, 0, u, s->h) + peephole(s, 0, u, s->c[u]));
        double f = apply(s->o, &s->f[0],
                         of_x(s, 2, u, x) + of_h(s, 2, u, s->h) + peephole(s, 2, u, s->c[u]));
        double g = apply(s->o, &s->f[1], of_x(s, 3, u, x) + of_h(s, 3, u, s->h)), o;

        s->c[u] = (s->o->flag ? 1 - i : f) * s->c[u] + i * g;
        o = apply(s->o, &s->f[0],
                  of_x(s, 1, u, x) + of_h(s, 1, u, s->h) + peephole(s, 1, u, s->c[u]));
        h[u] = o * apply(s->o, &s->f[2], s->c[u]);
    }
    memcpy(s->h, h, sizeof h);
}

static void step_gru(sequence *s, const double *x)
{
    double h[HIDDEN], reset[HIDDEN], r[HIDDEN];

    for (uint32_t u = 0; u < HIDDEN; u++) { /* gates: z, r, h */
        r[u] = apply(s->o, &s->f[0], of_x(s, 1, u, x) + of_h(s, 1, u, s->h));
        reset[u] = r[u] * s->h[u];
    }
    for (uint32_t u = 0; u < HIDDEN; u++) {
        double z = apply(s->o, &s->f[0], of_x(s, 0, u, x) + of_h(s, 0, u, s->h));
        double from_h = s->o->flag ? r[u] * of_h(s, 2, u, s->h) : of_h(s, 2, u, reset);

        h[u] = (1 - z) * apply(s->o, &s->f[1], of_x(s, 2, u, x) + from_h) + z * s->h[u];
    }
    memcpy(s->h, h, sizeof h);
}

static void step_rnn(sequence *s, const double *x)
{
    double h[HIDDEN];

    for (uint32_t u = 0; u < HIDDEN; u++)
        h[u] = apply(s->o, &s->f[0], of_x(s, 0, u, x) + of_h(s, 0, u, s->h));
    memcpy(s->h, h, sizeof h);
}

static void run_sequence(const option *o, data *d, uint32_t direction, uint32_t batch)
{
    uint32_t n_functions = d->n_gates == 4 ? 3 : d->n_gates == 3 ? 2 : 1;
    bool backward = direction == 1 || (o->direction != NULL && o->direction[0] == 'r');
    sequence s = {o, d, o->f + direction * n_functions, direction, {0}, {0}};

    for (uint32_t u = 0; u < HIDDEN; u++) {
        s.h[u] = (double)d->h[(direction * BATCH + batch) * HIDDEN + u];
        s.c[u] = (double)d->c[(direction * BATCH + batch) * HIDDEN + u];
    }
    for (int32_t i = 0; i < d->length[batch]; i++) {
        uint32_t t = (uint32_t)(backward ? d->length[batch] - 1 - i : i);
        double x[INPUT];

        for (uint32_t k = 0; k < INPUT; k++)
            x[k] = (double)d->x[(t * BATCH + batch) * INPUT + k];
        if (d->n_gates == 4)
            step_lstm(&s, x);
        else if (d->n_gates == 3)
            step_gru(&s, x);
        else
            step_rnn(&s, x);
        memcpy(d->y + ((t * d->n_directions + direction) * BATCH + batch) * HIDDEN, s.h,
               sizeof s.h);
    }
    memcpy(d->y_h + (direction * BATCH + batch) * HIDDEN, s.h, sizeof s.h);
    memcpy(d->y_c + (direction * BATCH + batch) * HIDDEN, s.c, sizeof s.c);
}

/* ---- the model ---- */

typedef struct text {
    char line[1 << 14];
    size_t n;
} text;

static void say(text *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    t->n += (size_t)vsnprintf(t->line + t->n, sizeof t->line - t->n, format, args);
    va_end(args);
    assert_true(t->n < sizeof t->line);
}

/* Weights are initialisers in one model and inputs in the other. */
static void declare(text *t, const char *name, int64_t n, int64_t rows, int64_t columns,
                    const float *numbers)
{
    say(t, "%s %s f32 [%d,%d,%d]", numbers != NULL ? "init" : "input", name, (int)n, (int)rows,
        (int)columns);
    for (int64_t i = 0; numbers != NULL && i < n * rows * columns; i++)
        say(t, "%s%.9g", i == 0 ? " = " : " ", (double)numbers[i]);
    say(t, "\n");
}

static message make_model(const option *o, const data *d, bool constant)
{
    static const char *const names[] = {"Y", "Y_h", "Y_c"};
    int64_t n = d->n_directions, rows = d->n_gates * HIDDEN;
    text t = {.n = 0};

    say(&t, "opset 22\n");
    declare(&t, "X", o->batch_first ? BATCH : STEPS, o->batch_first ? STEPS : BATCH, INPUT, NULL);
    declare(&t, "W", n, rows, INPUT, constant ? d->w : NULL);
    declare(&t, "R", n, rows, HIDDEN, constant ? d->r : NULL);
    if (has(o, 'B'))
        say(&t, "input B f32 [%d,%d]\n", (int)n, (int)(2 * rows));
    if (has(o, 'l') && constant)
        say(&t, "init l i32 [%d] = %d %d %d\n", BATCH, d->length[0], d->length[1], d->length[2]);
    else if (has(o, 'l'))
        say(&t, "input l i32 [%d]\n", BATCH);
    for (int i = 0; i < 2; i++)
        if (has(o, "hc"[i]))
            declare(&t, i == 0 ? "h" : "c", o->batch_first ? BATCH : n, o->batch_first ? n : BATCH,
                    HIDDEN, NULL);
    if (has(o, 'P'))
        say(&t, "input P f32 [%d,%d]\n", (int)n, 3 * HIDDEN);
    say(&t, "%s = %s(X, W, R, %s, %s, %s", o->outputs, o->op, has(o, 'B') ? "B" : "-",
        has(o, 'l') ? "l" : "-", has(o, 'h') ? "h" : "-");
    if (o->op[0] == 'L')
        say(&t, ", %s, %s", has(o, 'c') ? "c" : "-", has(o, 'P') ? "P" : "-");
    say(&t, ") hidden_size=%d", HIDDEN);
    if (o->direction != NULL)
        say(&t, " direction='%s'", o->direction);
    say(&t, " %s\n", o->attrs);
    for (int i = 0; i < 3; i++) {
        char words[32], word[8];

        snprintf(words, sizeof words, " %s ", o->outputs);
        snprintf(word, sizeof word, " %s ", names[i]);
        if (strstr(words, word) != NULL)
            say(&t, "output %s\n", names[i]);
    }
    return onnx_model(t.line);
}

/* Fills an input in the layout of the node. */
static void set_input(interpreter *it, const option *o, const data *d, const char *name)
{
    mpl_value v = mpl_graph_find(it->g, name);
    uint64_t size = it->g->value_bytes[v];
    float *to = it->data[v];
    const float *from = name[0] == 'X' ? d->x : name[0] == 'h' ? d->h : d->c;
    uint32_t outer = name[0] == 'X' ? STEPS : d->n_directions,
             inner = name[0] == 'X' ? INPUT : HIDDEN;

    if (name[0] == 'l' || strchr("WRBP", name[0]) != NULL) {
        memcpy(to,
               name[0] == 'l'   ? (const void *)d->length
               : name[0] == 'W' ? d->w
               : name[0] == 'R' ? d->r
               : name[0] == 'B' ? d->b
                                : d->p,
               size);
        return;
    }
    for (uint32_t a = 0; a < outer; a++)
        for (uint32_t b = 0; b < BATCH; b++)
            memcpy(to + (o->batch_first ? b * outer + a : a * BATCH + b) * inner,
                   from + (a * BATCH + b) * inner, inner * sizeof *to);
}

static void assert_output(const interpreter *it, const option *o, const data *d, mpl_value v,
                          const char *what)
{
    const char *name = it->g->value_name[v];
    const double *want = strcmp(name, "Y") == 0 ? d->y : strcmp(name, "Y_h") == 0 ? d->y_h : d->y_c;
    uint32_t steps = strcmp(name, "Y") == 0 ? STEPS : 1, n = d->n_directions;
    const float *got = it->data[v];

    assert_int_equal(it->g->value_bytes[v], steps * n * BATCH * HIDDEN * sizeof *got);
    for (uint32_t t = 0; t < steps; t++)
        for (uint32_t e = 0; e < n; e++)
            for (uint32_t b = 0; b < BATCH; b++)
                for (uint32_t u = 0; u < HIDDEN; u++) {
                    uint32_t at =
                        o->batch_first ? (b * steps + t) * n + e : (t * n + e) * BATCH + b;
                    double a = (double)got[at * HIDDEN + u],
                           w = want[((t * n + e) * BATCH + b) * HIDDEN + u];

                    if (!(fabs(a - w) <= 1e-5))
                        fail_msg("%s: %s of step %u, direction %u, sequence %u, unit %u is %.7g; "
                                 "%.7g is expected",
                                 what, name, t, e, b, u, a, w);
                }
}

/* Products outside the loops: none but those for all steps, one a direction. */
static void assert_products(const mpl_graph *g, mpl_rnn_form form, uint32_t n_directions)
{
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        n += g->op_kind[op] == MPL_OP_gemm && g->op_block[op] == 0;
    if (form != MPL_RNN_UNROLL)
        assert_int_equal(n, form == MPL_RNN_AHEAD ? n_directions : 0);
}

TEST(every_option)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (int form = 0; form < 6; form++) {
            const option *o = &options[i];
            mpl_read_options read = {.rnn = (mpl_rnn_form)(form % 3)};
            static data d;
            message m;
            owned_graph *g = NULL;
            interpreter it;
            char what[300];

            make_data(o, &d);
            for (uint32_t e = 0; e < d.n_directions; e++)
                for (uint32_t b = 0; b < BATCH; b++)
                    run_sequence(o, &d, e, b);
            m = make_model(o, &d, form >= 3);
            snprintf(what, sizeof what, "%s %s %s %s, form %d", o->op,
                     o->direction != NULL ? o->direction : "", o->attrs, o->given, form);
            if (mpl_onnx_read_memory(ctx, "rnn.onnx", m.data, m.n, &read, &g) != MPL_OK)
                fail_msg("%s: %s", what, ctx->message);
            assert_int_equal(g->n_blocks, read.rnn == MPL_RNN_UNROLL ? 1 : 1 + d.n_directions);
            assert_products(g, read.rnn, d.n_directions);
            it = interpret_begin(ctx, g);
            for (uint32_t k = 0; k < g->n_inputs; k++)
                set_input(&it, o, &d, g->value_name[g->input[k]]);
            assert_ok(ctx, interpret(&it));
            for (uint32_t k = 0; k < g->n_outputs; k++)
                assert_output(&it, o, &d, g->output[k], what);
            interpret_end(&it);
        }
}

/* ---- what is wrong ---- */

TEST(wrong_nodes)
{
    static const struct {
        option o;
        const char *says;
    } wrong[] =
        ROW({{"LSTM", "sideways", "", "", "Y", .f = {TANH}},
             "direction is none of forward, reverse, bidirectional"},
            {{"LSTM", NULL, "activations={Sigmoid,Tanh}", "", "Y", .f = {TANH}},
             "it has 2 activations; 3 are needed"},
            {{"GRU", NULL, "activations={Sigmoid,Sin}", "", "Y", .f = {TANH}},
             "activation 'Sin' is none that the standard lists"},
            {{"RNN", "bidirectional", "", "", "Y Y_h Y_c", .f = {TANH}},
             "it has 3 outputs; at most 2 are supported"},
            {{"GRU", NULL, "input_forget=1", "", "Y", .f = {TANH}}, "attribute 'input_forget'"});

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        static data d;
        mpl_graph *g = NULL;
        message m;

        make_data(&wrong[i].o, &d);
        m = make_model(&wrong[i].o, &d, false);
        if (mpl_onnx_read_memory(ctx, "rnn.onnx", m.data, m.n, NULL, &g) == MPL_OK ||
            strstr(ctx->message, wrong[i].says) == NULL || strchr(ctx->message, '\n') != NULL)
            fail_msg("'%s' was expected: %s", wrong[i].says, ctx->message);
        assert_null(g);
    }
}

/* Every allocation of a model with all options fails once. */
TEST(out_of_memory)
{
    static data d;
    const option *o = &options[sizeof options / sizeof *options - 2];
    message m;

    make_data(o, &d);
    m = make_model(o, &d, true);
    EACH_ALLOCATION_FAILS (ctx, st) {
        owned_graph *g = NULL;

        st = mpl_onnx_read_memory(ctx, "rnn.onnx", m.data, m.n, NULL, &g);
        assert_true((g != NULL) == (st == MPL_OK));
    }
}

TESTS(every_option, wrong_nodes, out_of_memory)
