/* Reading ONNX's Loop, If, Scan, LSTM, GRU and RNN: ONNX's own models with the outputs that they expect, by a direct
 * interpreter; every option of the recurrent layers against loops written from the standard's formulas. */
#include "tests/interpret.h"

#include "graphs/source.h"

#include <math.h>

#define MODELS MPL_SHARED "/onnx-control-flow"

/* ---- ONNX's own models ----------------------------------------------------------------------------------------- */

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

static void assert_close(const char *what, mpl_type type, const void *got, const void *want, uint64_t bytes)
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
        assert_close(name, (mpl_type)g->value_type[v], it.data[v], want->tensor[i].data, g->value_bytes[v]);
    }
    interpret_end(&it);
}

static void onnx_models(void **state)
{
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    skip_without(MODELS);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int form = MPL_RNN_WHILE; form <= MPL_RNN_UNROLL; form++) {
            char path[300];
            tensors in, want;
            mpl_graph *g = NULL;
            uint32_t n = 0;

            read_tensors(&ctx, models[i].name, "input", &in);
            read_tensors(&ctx, models[i].name, "output", &want);
            snprintf(path, sizeof path, "%s/%s/model.onnx", MODELS, models[i].name);
            assert_ok(&ctx, mpl_onnx_read(&ctx, path,
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
                    fail_msg("%s: %u blocks, %u inputs, %u bound", models[i].name, g->n_blocks, g->n_inputs,
                             g->n_bound);
            }
            run_model(&ctx, models[i].name, g, &in, &want);
            mpl_graph_free(&ctx, g);
            free_tensors(&ctx, &in);
            free_tensors(&ctx, &want);
        }
    assert_int_equal(ctx.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_models),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
