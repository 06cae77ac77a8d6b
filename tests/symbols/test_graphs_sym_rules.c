/* Shape rules over symbols, by brute force: at every point of a small range the dims are those that
 * the operator's own rule gives. The range is larger than what the readings see of it. */
#include "tests/symbols/sized_text.h"

static const struct {
    const char *text;
    uint32_t n_leaves; /* numbers of attributes that vary */
} cases[] = {
    {"input x f32 [{a},{b}]\nz = relu(x)\noutput z\n", 0},
    {"input x f32 [{a},1,{b}]\ninput y f32 [{b}]\ninput w f32 [4,1]\nu = add(x, y)\n"
     "z = mul(u, w)\noutput z\n",
     0},
    {"input x f32 [2,{a},{b},4]\ninput y f32 [{a},4,{b+1}]\nu = matmul(x, y)\n"
     "z = matmul(u, y) trans_b=1\noutput z\n",
     0},
    {"input x f32 [{b}]\ninput y f32 [{a},{b},3]\nz = matmul(x, y)\noutput z\n", 0},
    {"input x f32 [{a},{b}]\ninput y f32 [{a},5]\nu = gemm(x, y) trans_a=1\n"
     "z = gemm(u, y) trans_b=1\noutput z\n",
     0},
    {"input x f32 [2,{a},{b},4]\ninput y f32 [4,5]\nu = gemm_act(x, y)\n"
     "z = gemm_sum(x, u, y) trans_b=1\noutput z\n",
     0},
    {"input x f32 [{a},3,{b+6},{a+b+3}]\nweight w f32 [4,3,3,2]\n"
     "u = conv(x, w) strides=[2,3] pads=[1,0,2,1] dilations=[2,1]\nz = relu(u)\noutput z\n",
     0},
    {"input x f32 [1,3,{b+2},{a+2}]\nz = max_pool(x) kernel_shape=[3,2] strides=[2,3] "
     "pads=[1,0,1,1] ceil_mode=1\noutput z\n",
     0},
    {"input x f32 [1,3,{b+2},{a+2}]\nz = max_pool(x) kernel_shape=[2,3] strides=[5,4] "
     "ceil_mode=1\noutput z\n",
     0},
    {"input x f32 [2,3,{b},{a}]\nz = avg_pool(x) kernel_shape=[{b},{a}]\noutput z\n", 2},
    {"input x f32 [2,3,{b},{a}]\nz = global_avg_pool(x)\noutput z\n", 0},
    {"input x f32 [{a},4,{b},5]\nweight w f32 [4,3,3,2]\n"
     "z = conv_transpose(x, w) strides=[2,3] pads=[0,0,1,1] dilations=[2,1] "
     "output_padding=[1,0]\noutput z\n",
     0},
    {"input x f32 [{a},{b},3]\nu = reduce_mean(x) axes=[-1] keepdims=0\n"
     "v = reduce_sum(u) axes=[0]\nw = reduce_max(v)\ny = arg_max(x) axis=1 keepdims=0\n"
     "output w\noutput y\n",
     0},
    {"input x f32 [{a},{b},3]\nweight s f32 [3]\ny, m, d = layer_norm(x, s) axis=-1\n"
     "output y\noutput m\n",
     0},
    {"input x f32 [{b+3},{a}]\ny, i = top_k(x) k={b} axis=0\nz = softmax(y) axis=0\n"
     "output z\noutput i\n",
     1},
    {"input x f32 [{a},{b},6]\nu = reshape(x) shape=[0,-1,3]\nv = reshape(u) shape=[-1]\n"
     "w = reshape(v) shape=[{a},2,-1]\nz = flatten(w) axis=2\noutput z\n",
     1},
    {"input x f32 [{a},1,{b}]\nu = squeeze(x) axes=[1]\nv = unsqueeze(u) axes=[0,3]\n"
     "w = transpose(v) perm=[2,0,1,3]\nz = transpose(w)\noutput z\n",
     0},
    {"input x f32 [2,4,{2*a},{2*b}]\nu = space_to_depth(x) blocksize=2\n"
     "z = depth_to_space(u) blocksize=4\noutput z\n",
     0},
    {"input x f32 [{a},{b},2]\ninput y f32 [{a},{a},2]\nz = concat(x, y, x) axis=-2\noutput z\n",
     0},
    {"input x f32 [{a+b},{2*b+1}]\nu, v = split(x) axis=0 split=[{a},{b}]\n"
     "w, y = split(x) axis=1\noutput u\noutput v\noutput w\noutput y\n",
     2},
    {"input x f32 [{b+3},9]\nu = slice(x) starts=[2] ends=[{b}] axes=[0] steps=[61]\noutput u\n",
     1},
    {"input x f32 [{b},{a}]\nu = slice(x) starts=[-3,1] ends=[9223372036854775807,-1] "
     "axes=[0,1]\noutput u\n",
     0},
    {"input x f32 [{b},{a}]\nu = slice(x) starts=[-1] ends=[-9223372036854775807] axes=[0] "
     "steps=[-2]\nv = slice(x) starts=[7] ends=[2] axes=[0] steps=[-3]\noutput u\noutput v\n",
     0},
    {"input x f32 [{b},1]\nu = expand(x) shape=[4,1,{a}]\nz = tile(u) repeats=[1,2,{b}]\n"
     "output z\n",
     2},
    {"input x f32 [{b},{a+2}]\nz = pad(x) pads=[{a},-1,3,0]\noutput z\n", 1},
    {"input x f32 [1,1,{b},{a}]\nu = resize(x) scales=[1.0,1.0,2.0,3.0]\n"
     "z = resize(u) sizes=[{b},7] axes=[2,3]\noutput z\n",
     1},
    {"input x f32 [{a},{b},3]\ninput i i64 [5,{a}]\nu = gather(x, i) axis=1\n"
     "v = gather(x, i) axis=-1\noutput u\noutput v\n",
     0},
    {"input x f32 [{b},{a}]\ninput i i64 [{a},2]\ninput k i64 [{a},{b},1]\n"
     "u = gather_nd(x, i)\nv = gather_nd(x, k)\noutput u\noutput v\n",
     0},
    {"input i i64 [{a},{b}]\nweight s f32 [2] = data 0 1\nz = one_hot(i, s) depth={b} axis=1\n"
     "output z\n",
     1},
    {"input x i64 [{a},{b}]\ninput w i32 [{b}]\n"
     "y = tf_idf(x) ngram_counts=[0] ngram_indexes=[2,0] pool_int64s=[1,2]\n"
     "z = tf_idf(w) ngram_counts=[0] ngram_indexes=[0] pool_int64s=[1]\noutput y\noutput z\n",
     0},
    {"input x f32 [{a},{b}]\ninput c bool [7]\nu, n = non_zero(x)\nv, m = compress(x, c) axis=1\n"
     "output u\noutput v\noutput n\noutput m\n",
     0},
    {"input x f32 [{a},{b},4]\ninput s f32 [{a},3,{b}]\nu, n = nms(x, s) k=5\noutput u\noutput n\n",
     0},
};

enum { A = 9, B = 23 };

static void check_everywhere(mpl_ctx *ctx, const char *text, const mpl_sym_graph *s)
{
    for (int64_t a = 1; a <= A; a++)
        for (int64_t b = 1; b <= B; b++) {
            const int64_t value[] = {a, b};
            owned_graph *g = NULL;

            assert_ok(ctx, read_text(ctx, (void *)(uintptr_t)text, s->exprs, value, &g));
            for (mpl_value v = 0; v < g->n_values; v++)
                for (uint32_t k = 0; k < g->value_shape[v].rank; k++) {
                    int64_t got;

                    assert_true(mpl_expr_eval(s->exprs, s->dim[s->dim_begin[v] + k], value, &got));
                    if (got != g->value_shape[v].dim[k])
                        fail_msg("%s: dim %u of %s at a=%d, b=%d is %d", text, k, g->value_name[v],
                                 (int)a, (int)b, (int)got);
                }
        }
}

TEST(dims_are_right_at_every_point)
{
    static const char *const range[] = {"a=1..9", "b=1..23"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mpl_sym_reader reader = {read_text, (void *)(uintptr_t)cases[i].text};
        mpl_exprs *x = NULL;
        mpl_sym_graph *s = NULL;

        assert_ok(ctx, mpl_symbols_read(ctx, 2, range, &x));
        if (mpl_sym_graph_new(ctx, x, &reader, NULL, false, &s) != MPL_OK)
            fail_msg("%s%s", cases[i].text, ctx->message);
        if (s->n_fitted > 0)
            fail_msg("%s: fitted: %s", cases[i].text, s->fitted);
        assert_true(s->n_ruled >= s->graph[0]->n_ops);
        if (s->n_leaves != cases[i].n_leaves)
            fail_msg("%s: %u attributes fitted", cases[i].text, s->n_leaves);
        check_everywhere(ctx, cases[i].text, s);
        mpl_sym_graph_free(ctx, s);
        mpl_exprs_free(ctx, x);
    }
}

/* What has no rule is fitted, and named with its operator. */
TEST(what_was_fitted_is_named)
{
    static const char text[] =
        "input x f32 [{a},{b},2,2]\nweight r f32 [1,5] = splat 0\n"
        "u = relu(x)\nz = max_roi_pool(u, r) sizes=[2,2] scales=[1.0]\noutput z\n";
    static const char *const range[] = {"a=1..9", "b=1..23"};
    mpl_sym_reader reader = {read_text, (void *)(uintptr_t)text};
    mpl_exprs *x = NULL;
    mpl_sym_graph *s = NULL;

    assert_ok(ctx, mpl_symbols_read(ctx, 2, range, &x));
    assert_ok(ctx, mpl_sym_graph_new(ctx, x, &reader, NULL, false, &s));
    assert_int_equal(s->n_ruled, 1);
    assert_int_equal(s->n_fitted, 1);
    assert_string_equal(s->fitted, "'z' (max_roi_pool) of 'z'");
    check_everywhere(ctx, text, s);
    mpl_sym_graph_free(ctx, s);
    mpl_exprs_free(ctx, x);
}

TESTS(dims_are_right_at_every_point, what_was_fitted_is_named)
