/* Zoo networks against the ONNX models of the same names, operation by operation. */
#include "tests/support/test.h"

/* A constant Mul or Add after a batch norm, which Caffe's models have and ours do not. */
static bool is_caffe_scale(const mpl_graph *g, mpl_op op)
{
    mpl_value x = g->op_in[g->op_in_begin[op]], constant = g->op_in[g->op_in_begin[op] + 1];

    return (g->op_kind[op] == MPL_OP_mul || g->op_kind[op] == MPL_OP_add) &&
           g->value_role[constant] == MPL_WEIGHT && g->value_op[x] != MPL_NONE &&
           (g->op_kind[g->value_op[x]] == MPL_OP_batch_norm || is_caffe_scale(g, g->value_op[x]));
}

/* Whether an attribute is equal, or omitted on one side and equal to its default on the other. */
static bool same_attr(const mpl_graph *a, mpl_op x, const mpl_graph *b, mpl_op y, mpl_attr_key key,
                      int64_t otherwise)
{
    uint32_t n, m;
    const int64_t *p = mpl_attr_ints(a, x, key, &n), *q = mpl_attr_ints(b, y, key, &m);
    bool same = p == NULL || q == NULL || n == m;

    for (uint32_t i = 0; i < (p != NULL ? n : m) && same; i++)
        same = (p != NULL ? p[i] : otherwise) == (q != NULL ? q[i] : otherwise);
    return same;
}

static bool same_op(const mpl_graph *a, mpl_op x, const mpl_graph *b, mpl_op y,
                    const mpl_value *twin)
{
    mpl_value out = a->op_out[a->op_out_begin[x]], out_twin = b->op_out[b->op_out_begin[y]];
    uint32_t n_in = a->op_in_begin[x + 1] - a->op_in_begin[x];
    bool same =
        a->op_kind[x] == b->op_kind[y] && n_in == b->op_in_begin[y + 1] - b->op_in_begin[y] &&
        a->value_type[out] == b->value_type[out_twin] &&
        mpl_shape_equal(&a->value_shape[out], &b->value_shape[out_twin]) &&
        same_attr(a, x, b, y, MPL_ATTR_kernel_shape, 1) &&
        same_attr(a, x, b, y, MPL_ATTR_strides, 1) && same_attr(a, x, b, y, MPL_ATTR_pads, 0) &&
        same_attr(a, x, b, y, MPL_ATTR_group, 1) && same_attr(a, x, b, y, MPL_ATTR_size, 0) &&
        same_attr(a, x, b, y, MPL_ATTR_trans_b, 0);

    for (uint32_t i = 0; i < n_in && same; i++) {
        mpl_value in = a->op_in[a->op_in_begin[x] + i], in_twin = b->op_in[b->op_in_begin[y] + i];

        same = a->value_role[in] == MPL_WEIGHT
                   ? b->value_role[in_twin] == MPL_WEIGHT &&
                         mpl_shape_equal(&a->value_shape[in], &b->value_shape[in_twin])
                   : twin[in] == in_twin;
    }
    return same;
}

/* Compares operations in file order: kind, dims, windows, operands. twin: for each value of the
 * model. */
static void assert_agree(mpl_ctx *ctx, const mpl_graph *model, const mpl_graph *g)
{
    owned_memory mpl_value *twin = NULL;
    mpl_op y = 0;

    assert_ok(ctx, mpl_new(ctx, twin, model->n_values));
    assert_int_equal(model->n_inputs, g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        twin[model->input[i]] = g->input[i];
        assert_true(
            mpl_shape_equal(&model->value_shape[model->input[i]], &g->value_shape[g->input[i]]));
    }
    for (mpl_op x = 0; x < model->n_ops; x++) {
        mpl_value out = model->op_out[model->op_out_begin[x]];

        if (is_caffe_scale(model, x)) {
            twin[out] = twin[model->op_in[model->op_in_begin[x]]];
            continue;
        }
        if (y == g->n_ops || !same_op(model, x, g, y, twin))
            fail_msg("%s: '%s' is not the '%s' of the zoo", model->name, model->op_name[x],
                     y < g->n_ops ? g->op_name[y] : "nothing");
        twin[out] = g->op_out[g->op_out_begin[y++]];
    }
    assert_int_equal(y, g->n_ops);
    assert_int_equal(model->n_outputs, g->n_outputs);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        assert_int_equal(twin[model->output[i]], g->output[i]);
}

TEST(test_models)
{
    static const char *const names[] = {"resnet50", "inception_v1", "densenet121"};
    static const mpl_read_options options = {0};
    char path[100];

    skip_without(MPL_SHARED "/onnx-light");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        owned_graph *model = NULL, *g = NULL;

        assert_ok(ctx, mpl_zoo_build(ctx, names[i], &g));
        snprintf(path, sizeof path, MPL_SHARED "/onnx-light/light_%s.onnx", names[i]);
        assert_ok(ctx, mpl_onnx_read(ctx, path, &options, &model));
        assert_agree(ctx, model, g);
    }
}

TESTS(test_models)
