/* Quantised models of today's exporters (onnx-2026, of `make data`), with ONNX Runtime's outputs:
 * run on every backend, each output within 5 % of the largest magnitude. Fault: an operator that is
 * right alone, but read with operands of another. */
#include "tests/support/folder.h"

#include "graphs/passes/optimise/optimise.h"
#include "runtime/exec.h"

#include <math.h>

#define FOLDER MPL_SHARED "/onnx-2026/"

static const struct {
    const char *name;
    uint32_t n_in;
} models[] = {{"bert_tiny__int8dyn", 2},
              {"bert_tiny__int8qdq", 2},
              {"lstm_bidir__int8dyn", 1},
              {"timm_mobilenetv4_conv_small__int8qdq", 1}};

static double worst_of(const mpl_tensor *want, const float *got)
{
    const float *b = want->data;
    double worst = 0, most = 0;

    for (int64_t i = 0; i < mpl_count(&want->shape); i++) {
        worst = fmax(worst, fabs((double)got[i] - (double)b[i]));
        most = fmax(most, fabs((double)b[i]));
    }
    return worst / most;
}

static void run_model(mpl_ctx *ctx, size_t k, const char *backend_name, const char *passes)
{
    mpl_pass_set set;
    const mpl_backend *backend = mpl_backend_find(backend_name);
    mpl_exec_options options = {.checked = false};
    mpl_tensor in[2] = {{.data = NULL}}, want = {.data = NULL};
    uint32_t index[2] = {0, 1};
    mpl_read_options read = {.n_inputs = models[k].n_in, .input_index = index, .input_tensor = in};
    mpl_device *dev = NULL;
    mpl_graph *g = NULL;
    mpl_exec *exec = NULL;
    mpl_op *order;
    float *got;
    char path[600];

    for (uint32_t i = 0; i < models[k].n_in; i++) {
        snprintf(path, sizeof path, FOLDER "%s/in/%u.npy", models[k].name, i);
        skip_without(path);
        assert_ok(ctx, mpl_tensor_read(ctx, path, &in[i]));
    }
    snprintf(path, sizeof path, FOLDER "%s/out/0.npy", models[k].name);
    assert_ok(ctx, mpl_tensor_read(ctx, path, &want));
    snprintf(path, sizeof path, FOLDER "%s/model.onnx", models[k].name);
    assert_ok(ctx, mpl_onnx_read(ctx, path, &read, &g));
    assert_ok(ctx, mpl_pass_set_parse(ctx, passes, &set));
    assert_ok(ctx, mpl_graph_optimise(ctx, &g, &set, NULL, NULL));
    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    order = mpl_alloc(ctx, g->n_ops, sizeof *order);
    count_up(g->n_ops, order);
    assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, NULL, NULL, NULL, &options, &exec));
    for (uint32_t j = 0; j < g->n_inputs; j++)
        for (uint32_t i = 0; i < models[k].n_in; i++)
            if (mpl_graph_file_input(g, i) == g->input[j])
                assert_ok(ctx, mpl_exec_set_input(exec, j, in[i].data));
    assert_ok(ctx, mpl_exec_run(exec, NULL));
    got = mpl_alloc(ctx, g->value_bytes[g->output[0]], 1);
    assert_ok(ctx, mpl_exec_output(exec, 0, got));
    print_message("%s on %s, passes %s: off by %.4f of the largest\n", models[k].name, backend_name,
                  passes, worst_of(&want, got));
    assert_true(worst_of(&want, got) <= 0.05);
    mpl_exec_free(ctx, exec);
    mpl_graph_free(ctx, g);
    backend->close(dev);
    for (uint32_t i = 0; i < models[k].n_in; i++)
        mpl_free(ctx, in[i].data);
    mpl_free_each(ctx, order, got, want.data);
}

TEST(as_they_are)
{
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        run_model(ctx, k, "ref", "none");
        run_model(ctx, k, "cpu", "none");
    }
}

TEST(between_integers)
{
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        run_model(ctx, k, "ref", "qdq");
        run_model(ctx, k, "cpu", "all");
    }
}

int main(void)
{
    return RUN_TESTS(NULL, NULL, as_they_are, between_integers);
}
