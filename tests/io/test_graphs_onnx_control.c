/* Reading ONNX's Loop, If and Scan: ONNX's own models with their expected outputs, and small ones
 * in tests/data/onnx/control.txt for nested bodies, captures, stacked rows, early exits and
 * changing shapes, run by a direct interpreter. */
#include "tests/support/interpret.h"
#include "tests/support/onnx_text.h"

#include "graphs/core/file.h"
#include "graphs/passes/passes.h"

#include <math.h>

#define MODELS MPL_SHARED "/onnx-control-flow"

/* ---- ONNX's own models ---- */

static const struct {
    const char *name;
    mpl_op_kind kind;                     /* an operator that must occur */
    uint32_t n_blocks, n_inputs, n_bound; /* including the block of the whole graph */
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

        if (a != b && !(fabs(a - b) <= 1e-5 + 1e-5 * fabs(b)))
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
            owned_graph *g = NULL;
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
            free_tensors(ctx, &in);
            free_tensors(ctx, &want);
        }
}

/* ---- small models ---- */

enum { MOST_NUMBERS = 24, MOST_INPUTS = 8 };

/* One run of a case in control.txt: its lines up to the next run. */
typedef struct small_run {
    const char *what, *text; /* of the case; of the run, `-- ..` */
    size_t n;
} small_run;

/* The text after `begin` in the nth line (from 0) of the run that begins with it, or NULL. */
static const char *line_of(const small_run *r, const char *begin, unsigned nth)
{
    for (const char *at = r->text; at < r->text + r->n; at += strcspn(at, "\n") + 1)
        if (strncmp(at, begin, strlen(begin)) == 0 && nth-- == 0)
            return at + strlen(begin);
    return NULL;
}

static void put_number(mpl_type type, void *data, unsigned i, double x)
{
    if (type == MPL_TYPE_f32)
        ((float *)data)[i] = (float)x;
    else if (type == MPL_TYPE_i64)
        ((int64_t *)data)[i] = (int64_t)x;
    else
        ((uint8_t *)data)[i] = x != 0;
}

/* Up to the end of the line. */
static unsigned put_numbers(const char *text, mpl_type type, void *data)
{
    unsigned n = 0;

    for (char *end = (char *)text; *end != '\n' && *end != '\0'; n++) {
        double x = strtod(end, &end);

        assert_true(n < MOST_NUMBERS);
        put_number(type, data, n, x);
    }
    return n;
}

/* With `bind` the reader gets the inputs: i64 and bool by the first letter of the name, a list if
 * there are several numbers, else a scalar. */
static mpl_status read_small(mpl_ctx *ctx, const small_run *r, mpl_graph **g)
{
    static int64_t store[MOST_INPUTS][MOST_NUMBERS];
    static char names[MOST_INPUTS][16];
    const char *name[MOST_INPUTS], *line;
    mpl_tensor given[MOST_INPUTS];
    mpl_read_options read = {.input_name = name, .input_tensor = given};
    message m = onnx_model(r->what);

    for (unsigned i = 0; (line = line_of(r, "< ", i)) != NULL; i++) {
        mpl_type type = *line == 'M' ? MPL_TYPE_i64 : *line == 'c' ? MPL_TYPE_bool : MPL_TYPE_f32;
        unsigned n = put_numbers(line + strcspn(line, " "), type, store[i]);

        given[i] = (mpl_tensor){type, {n > 1, {n}}, store[i]};
        snprintf(names[i], sizeof names[i], "%.*s", (int)strcspn(line, " "), line);
        name[read.n_inputs++] = names[i];
    }
    line = line_of(r, "-- ", 0);
    return mpl_onnx_read_memory(
        ctx, "small.onnx", m.data, m.n,
        strncmp(line + strcspn(line, ",\n"), ", bind", 6) == 0 ? &read : NULL, g);
}

static void run_small(mpl_ctx *ctx, const small_run *r)
{
    unsigned n_blocks = 0, n_bound = 0;
    owned_graph *g = NULL;
    interpreter it;
    const char *line;

    if (read_small(ctx, r, &g) != MPL_OK)
        fail_msg("%.80s: %s", r->what, ctx->message);
    sscanf(r->text, "-- blocks %u, bind %u", &n_blocks, &n_bound);
    if (g->n_blocks != n_blocks || g->n_bound != n_bound)
        fail_msg("%.80s: %u blocks, %u inputs bound", r->what, g->n_blocks, g->n_bound);
    assert_ok(ctx, mpl_graph_prune(ctx, &g));
    it = interpret_begin(ctx, g);
    for (unsigned i = 0; (line = line_of(r, "< ", i)) != NULL; i++) {
        char name[16] = "";
        mpl_value v;

        sscanf(line, "%15s", name);
        v = mpl_graph_find(g, name);
        put_numbers(line + strlen(name), (mpl_type)g->value_type[v], it.data[v]);
    }
    if (interpret(&it) != MPL_OK)
        fail_msg("%.80s: %s", r->what, ctx->message);
    for (unsigned i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        char want[300], dims[200];
        int64_t numbers[MOST_NUMBERS];

        snprintf(want, sizeof want, "%s %s", g->value_name[v],
                 mpl_shape_text(&g->value_shape[v], dims));
        line = line_of(r, "> ", i);
        if (line == NULL || strncmp(line, want, strlen(want)) != 0)
            fail_msg("%.80s: output %u is %s", r->what, i, want);
        assert_int_equal(put_numbers(line + strlen(want), (mpl_type)g->value_type[v], numbers),
                         mpl_count(&g->value_shape[v]));
        assert_close(want, (mpl_type)g->value_type[v], it.data[v], numbers, g->value_bytes[v]);
    }
    interpret_end(&it);
}

static void refuse_small(mpl_ctx *ctx, const small_run *r, const char *says)
{
    mpl_graph *g = NULL;
    char want[200];

    snprintf(want, sizeof want, "%.*s", (int)strcspn(says, "\n"), says);
    if (read_small(ctx, r, &g) == MPL_OK || strstr(ctx->message, want) == NULL ||
        strchr(ctx->message, '\n') != NULL)
        fail_msg("'%s' was expected: %s", want, ctx->message);
    assert_null(g);
}

/* Every allocation fails once. */
static void lose_memory(mpl_ctx *ctx, const small_run *r)
{
    EACH_ALLOCATION_FAILS (ctx, st) {
        owned_graph *g = NULL;

        st = read_small(ctx, r, &g);
        assert_true((g != NULL) == (st == MPL_OK));
    }
}

/* Cases begin with a `#` after an empty line, the runs of a case with `--`. */
TEST(small_models)
{
    char *text, *end;
    size_t size;
    unsigned n = 0;

    assert_ok(ctx, mpl_file_read(ctx, "tests/data/onnx/control.txt", &text, &size));
    for (char *at = strstr(text, "\n\n# "); at != NULL; at = end) {
        small_run r = {.what = at + 2};

        end = strstr(r.what, "\n\n# ");
        if (end != NULL)
            *end = '\0';
        for (r.text = strstr(r.what, "\n--"); r.text != NULL; n++) {
            const char *next = strstr(++r.text, "\n--"), *says;

            r.n = next != NULL ? (size_t)(next - r.text) : strlen(r.text);
            says = line_of(&r, "-- says ", 0);
            if (says != NULL)
                refuse_small(ctx, &r, says);
            else
                run_small(ctx, &r);
            says = line_of(&r, "-- blocks ", 0);
            if (says != NULL && strncmp(says + strcspn(says, ",\n"), ", lose memory", 13) == 0)
                lose_memory(ctx, &r);
            assert_int_equal(ctx->n_live, 1); /* the text */
            r.text = next;
        }
    }
    mpl_free(ctx, text);
    assert_int_equal(n, 65);
}

TESTS(onnx_models, small_models)
