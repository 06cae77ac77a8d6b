/* Graphs and their problems over ranges: dims, bytes, structure and in-place pairs against those of
 * graphs read at drawn shapes; ranges and relations as text; what is refused. */
#include "graphs/symbols/sym_problem.h"
#include "graphs/problem/alias.h"
#include "tests/symbols/sized_text.h"

#define owned_exprs __attribute__((cleanup(free_owned_exprs))) mpl_exprs
#define owned_sym   __attribute__((cleanup(free_owned_sym))) mpl_sym_graph

static void free_owned_exprs(mpl_exprs **x)
{
    mpl_exprs_free(test_ctx, *x);
}

static void free_owned_sym(mpl_sym_graph **s)
{
    mpl_sym_graph_free(test_ctx, *s);
}

enum { MAX_RANGES = 4, N_SHAPES = 6 };

static mpl_status read_ranges(mpl_ctx *ctx, const char *const *range, mpl_exprs **x)
{
    uint32_t n = 0;

    while (n < MAX_RANGES && range[n] != NULL)
        n++;
    return mpl_symbols_read(ctx, n, range, x);
}

static mpl_exprs *ranges(mpl_ctx *ctx, const char *const *range)
{
    mpl_exprs *x = NULL;

    assert_ok(ctx, read_ranges(ctx, range, &x));
    return x;
}

/* ---- networks ---- */

typedef struct network {
    const char *text, *range[MAX_RANGES];
    bool loops, joins; /* joins: concats share their storage */
} network;

/* encoder_decoder over fewer tokens: its tables of positions grow with their square. */
static const network networks[] = {
    {"resnet50", {"batch=1..64", "image=128..512:32"}, false, false},
    {"inception_v3", {"batch=1..64", "image=128..512:32"}, false, true},
    {"inception_v3", {"batch=1..64", "image=128..512"}, false, true},
    {"densenet121", {"batch=1..64", "image=128..512:32"}, false, true},
    {"unet:levels=3", {"image=128..512:32"}, false, true},
    {"bert", {"batch=1..64", "seq=1..512"}, false, false},
    {"encoder_decoder", {"batch=1..64", "seq=1..256"}, false, false},
    {"gpt:context=4096", {"batch=1..64", "seq=2..4096"}, false, false},
    {"gpt:context=4096,seq=1", {"batch=1..64", "past=1..4095"}, false, false},
    {"gpt:context=4096,seq=1,cache=in_place", {"batch=1..64", "past=1..4095"}, false, false},
    {"gpt:context=4096,layers=2",
     {"batch=1..8", "seq=2..4095", "past=1..4094", "past + seq <= 4096"},
     false,
     false},
    {"lstm:form=while", {"batch=1..64", "steps=1..4096"}, true, false},
    {MPL_SHARED "/onnx-2026/gru_plain__tsb17/model.onnx",
     {"batch=1..64", "seq=1..4096"},
     true,
     false},
    {MPL_SHARED "/onnx-2026/lstm_lm__tsb17/model.onnx",
     {"batch=1..64", "seq=1..4096"},
     true,
     false},
};

static void check_dims(const mpl_sym_graph *s, const int64_t *value, const mpl_graph *g)
{
    int64_t got;

    for (mpl_value v = 0; v < g->n_values; v++) {
        for (uint32_t k = 0; k < g->value_shape[v].rank; k++) {
            assert_true(mpl_expr_eval(s->exprs, s->dim[s->dim_begin[v] + k], value, &got));
            assert_int_equal(got, g->value_shape[v].dim[k]);
        }
        assert_true(mpl_expr_eval(s->exprs, s->bytes[v], value, &got));
        assert_int_equal(got, g->value_bytes[v]);
    }
}

/* The graph's own problem there, made with the decisions of the range. */
static void check_shape(mpl_ctx *ctx, const mpl_sym_graph *s, const mpl_sym_reader *reader,
                        const mpl_op *order, const mpl_problem_options *options,
                        const mpl_sym_problem *sp, const int64_t *value)
{
    mpl_problem_options o = mpl_sym_options(sp, options);
    owned_graph *g = NULL;
    owned_problem *want = NULL, *p = NULL;
    owned_map *map = NULL;

    assert_ok(ctx, reader->read(ctx, reader->arg, s->exprs, value, &g));
    assert_ok(ctx, mpl_sym_compare(ctx, s->graph[0], g, "there"));
    check_dims(s, value, g);
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
    assert_ok(ctx, mpl_sym_problem_at(ctx, sp, value, &want));
    assert_true(mpl_problem_ok(want));
    assert_ok(ctx, mpl_sym_problem_compare(ctx, want, p, false, "there"));
    assert_int_equal(want->n_in_place, sp->at->n_in_place);
}

/* `mode`: bit 0 parallel, bit 1 nothing pinned but weights. */
static void check_problem(mpl_ctx *ctx, const mpl_sym_graph *s, const mpl_sym_reader *reader,
                          uint32_t mode, bool joins)
{
    mpl_problem_options o = mpl_problem_options_default();
    owned_memory mpl_op *order = order_by(ctx, s->graph[0], "given");
    mpl_sym_problem *sp = NULL;
    mpl_rng rng;

    o.parallel = (mode & 1) != 0;
    o.pin_inputs = o.pin_outputs = (mode & 2) == 0;
    assert_ok(ctx, mpl_sym_problem_new(ctx, s, order, &o, false, &sp));
    assert_int_equal(sp->n_bounded, 0);
    assert_int_equal(sp->n_unproved, 0);
    assert_true(!joins || memchr(sp->shared, 1, sp->n_ops) != NULL ||
                memchr(sp->shared, MPL_SHARE_BOXES, sp->n_ops) != NULL);
    mpl_rng_init(&rng, 7 + mode);
    for (uint32_t i = 0; i < N_SHAPES; i++) {
        int64_t value[MPL_MAX_SYMBOLS];

        if (i < 2)
            assert_ok(ctx, mpl_point_corner(ctx, s->exprs, i, value));
        else
            assert_ok(ctx, mpl_point_draw(ctx, s->exprs, &rng, value));
        check_shape(ctx, s, reader, order, &o, sp, value);
    }
    mpl_sym_problem_free(ctx, sp);
}

TEST(networks_have_their_sizes_and_one_structure)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        mpl_sym_source source = {networks[i].text, NULL};
        mpl_sym_reader reader = {mpl_sym_open, &source};
        owned_exprs *x = NULL;
        owned_sym *s = NULL;

        if (strchr(source.text, '/') != NULL && access(source.text, F_OK) != 0)
            continue;
        x = ranges(ctx, networks[i].range);
        if (mpl_sym_graph_new(ctx, x, &reader, NULL, false, &s) != MPL_OK)
            fail_msg("%s: %s", source.text, ctx->message);
        if (s->n_fitted > 0)
            fail_msg("%s: fitted: %s", source.text, s->fitted);
        assert_true(!networks[i].loops || s->graph[0]->n_blocks > 1);
        for (uint32_t mode = i % 2; mode < 4; mode += 2)
            check_problem(ctx, s, &reader, mode, networks[i].joins);
    }
}

/* ---- operators, in texts with numbers that depend on the sizes ---- */

typedef struct operator_case {
    const char *text, *size; /* of the last dim but one, or the only one, of the output */
} operator_case;

static const operator_case operators[] = {
    {"input x f32 [{a},3,{b},8]\nweight w f32 [4,3,3,3]\n"
     "z = conv(x, w) strides=[2,2] pads=[1,1,1,1]\noutput z\n",
     "floor((b-1)/2)+1"},
    {"input x f32 [{a},3,{b},8]\n"
     "z = max_pool(x) kernel_shape=[3,3] strides=[2,2] ceil_mode=1\noutput z\n",
     "ceil((b-3)/2)+1"},
    {"input x f32 [{a},{b},4]\ninput y f32 [{a},{a},4]\nz = concat(x, y) axis=1\noutput z\n",
     "a+b"},
    {"input x f32 [{a},{b},4]\ny = reshape(x) shape=[-1,4]\nz = relu(y)\noutput z\n", "a*b"},
    {"input x f32 [{b},2,{a},4]\ny = transpose(x) perm=[0,2,1,3]\n"
     "z = reshape(y) shape=[{b},-1,2]\noutput z\n",
     "4*a"},
    {"input x f32 [{b},4]\nz = slice(x) starts=[1] ends=[{b}] axes=[0] steps=[3]\noutput z\n",
     "ceil((b-1)/3)"},
    {"input x f32 [2,3,{a+4},8]\ninput y f32 [2,3,{b},8]\n"
     "u = max_pool(x) kernel_shape=[3,3] strides=[2,2]\n"
     "v = max_pool(y) kernel_shape=[3,3] strides=[2,2]\nz = concat(u, v, v) axis=2\noutput z\n",
     "floor((a+1)/2)+1 + 2*(floor((b-3)/2)+1)"},
    {"input x f32 [2,3,{floor(b/3)},{a}]\ny = relu(x)\nz = reshape(y) shape=[2,-1,{a}]\noutput z\n",
     "3*floor(b/3)"},
    {"input x f32 [{a},{b}]\ny, n = non_zero(x)\nz = transpose(y) perm=[1,0]\noutput z\n", "a*b"},
    {"input x f32 [{b},4]\nz = pad(x) pads=[3,0,{a},0]\noutput z\n", "a+b+3"},
    {"input x f32 [{b},1]\nz = expand(x) shape=[{b},{a}]\noutput z\n", "b"},
    {"input x f32 [{2*b},4]\ny, z = split(x) sizes=[{b},{b}] axis=0\noutput z\n", "b"},
    {"input x f32 [1,1,{b},4]\nz = resize(x) sizes=[{floor(3*b/2)},4] axes=[2,3]\noutput z\n",
     "floor(3*b/2)"},
    {"input x f32 [{b},4]\nz = slice(x) starts=[0] ends=[40] axes=[0]\noutput z\n", "min(b,40)"},
};

TEST(operators_round_join_and_clip)
{
    const char *const range[MAX_RANGES] = {"a=1..50", "b=5..300"};

    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const operator_case *c = &operators[i];
        mpl_sym_reader reader = {read_text, (void *)(uintptr_t)c->text};
        owned_exprs *x = ranges(ctx, range);
        owned_sym *s = NULL;
        owned_memory char *got_text = NULL;
        mpl_expr want, got;
        mpl_value z;

        if (mpl_sym_graph_new(ctx, x, &reader, NULL, false, &s) != MPL_OK)
            fail_msg("%s%s", c->text, ctx->message);
        assert_ok(ctx, mpl_expr_read(ctx, x, c->size, &want));
        z = s->graph[0]->output[0];
        got = s->dim[s->dim_begin[z + 1] - (s->graph[0]->value_shape[z].rank > 1 ? 2 : 1)];
        assert_ok(ctx, mpl_expr_write(ctx, x, got, &got_text));
        if (got != want)
            fail_msg("%s\n%s, not %s", c->text, got_text, c->size);
        check_problem(ctx, s, &reader, 2, false);
    }
}

/* ---- what is refused ---- */

static mpl_status over(mpl_ctx *ctx, const char *text, const char *const *range, bool bounded,
                       const char **said)
{
    owned_exprs *x = ranges(ctx, range);
    owned_sym *s = NULL;
    mpl_sym_source source = {text, NULL};
    mpl_sym_reader reader = {strchr(text, '\n') != NULL ? read_text : mpl_sym_open,
                             strchr(text, '\n') != NULL ? (void *)(uintptr_t)text : &source};
    mpl_status st = mpl_sym_graph_new(ctx, x, &reader, NULL, bounded, &s);

    if (st == MPL_OK && bounded)
        assert_int_equal(s->n_bounded, 1);
    *said = ctx->message;
    return st;
}

TEST(the_operator_is_named)
{
    static const char *const all[MAX_RANGES] = {"batch=1..64", "seq=1..4096"},
                             *const cut[MAX_RANGES] = {"a=1..50", "b=5..300"};
    const char *said;

    /* with one token there is no mask */
    assert_status(ctx, over(ctx, "gpt:context=4096", all, false, &said), MPL_EINPUT);
    assert_non_null(strstr(said, "seq=1: other operations than elsewhere, from 'layer0.norm1'"));
    assert_status(ctx, over(ctx, "gpt", all, false, &said), MPL_EINPUT);
    /* a size with a remainder */
    static const char odd[] = "input x f32 [300,4]\n"
                              "z = slice(x) starts=[0] ends=[{b - 7*floor(b/7) + 1 + "
                              "a*floor(a/3)}] axes=[0]\noutput z\n";

    assert_status(ctx, over(ctx, odd, cut, false, &said), MPL_EINPUT);
    assert_non_null(strstr(said, "(slice): dim 0 of 'z'"));
    assert_ok(ctx, over(ctx, odd, cut, true, &said));
    /* two shifts of such a long step cannot be told apart at a few points: the rule says which */
    static const char far[] = "input x f32 [{b},4]\n"
                              "z = slice(x) starts=[2] ends=[{b}] axes=[0] steps=[61]\noutput z\n";

    assert_ok(ctx, over(ctx, far, cut, false, &said));
}

TEST(ranges_that_are_none_are_refused)
{
    static const struct {
        const char *range[MAX_RANGES], *said;
    } wrong[] = {
        {{"batch=0..4"}, "begins at 1 or above"},
        {{"batch=-3..4"}, "begins at 1 or above"},
        {{"batch=5..4"}, "the range is empty"},
        {{"seq=9..15:8"}, "the range is empty"},
        {{"seq=1..4:0"}, "FIRST..LAST[:DIVISOR]"},
        {{"seq=1..4k"}, "FIRST..LAST[:DIVISOR]"},
        {{"=1..4"}, "FIRST..LAST[:DIVISOR]"},
        {{"a=1..4", "a=1..5"}, "given twice"},
        {{"a=1..4", "a + b <= 5"}, "no dimension is called 'b'"},
        {{"a=1..4", "b=1..4", "a + b > 8"}, "no point of the ranges"},
        {{"a=1..4", "b=6..9", "a*b < 6"}, "no point of the ranges"},
    };
    mpl_exprs *x = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(ctx, read_ranges(ctx, wrong[i].range, &x), MPL_EINPUT);
        if (strstr(ctx->message, wrong[i].said) == NULL)
            fail_msg("%s: %s", wrong[i].range[0], ctx->message);
        assert_null(strchr(ctx->message, '\n'));
    }
    assert_true(mpl_is_range("seq=1..4"));
    assert_false(mpl_is_range("seq=14"));
}

TEST(points_keep_what_they_must)
{
    const char *const range[MAX_RANGES] = {"past=1..4096", "seq=1..4096:8", "past + seq <= 4096",
                                           "past*past >= 16000000"};
    owned_exprs *x = ranges(ctx, range);
    int64_t value[2];
    mpl_rng rng;

    assert_int_equal(mpl_exprs_symbol(x, 1)->first, 8);
    mpl_rng_init(&rng, 3);
    for (uint32_t i = 0; i < draws(1000); i++) {
        assert_ok(ctx, mpl_point_draw(ctx, x, &rng, value));
        assert_true(mpl_point_allowed(x, value));
        assert_true(value[0] >= 4000 && value[1] % 8 == 0 && value[0] + value[1] <= 4096);
    }
    assert_ok(ctx, mpl_point_corner(ctx, x, 1, value));
    assert_in_range(value[0], 4080, 4088);
    assert_ok(ctx, mpl_point_corner(ctx, x, 0, value));
    assert_int_equal(value[0], 4000);
    assert_int_equal(value[1], 8);
}

TEST(each_allocation_may_fail)
{
    static const char text[] =
        "input x f32 [{a},{b},4]\ninput y f32 [{a},{a},4]\n"
        "u = relu(x)\nv = relu(y)\nw = concat(u, v) axis=1\n"
        "t = relu(w)\nz = slice(t) starts=[1] ends=[{b}] axes=[1]\noutput z\n";
    const char *const range[MAX_RANGES] = {"a=1..5", "b=5..30"};

    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_exprs *x = NULL;
        mpl_sym_graph *s = NULL;
        mpl_sym_problem *sp = NULL;
        mpl_problem *p = NULL;
        mpl_sym_reader reader = {read_text, (void *)(uintptr_t)text};
        mpl_problem_options o = mpl_problem_options_default();
        const mpl_op order[] = {0, 1, 2, 3, 4};
        const int64_t value[] = {3, 7};

        if ((st = read_ranges(ctx, range, &x)) == MPL_OK &&
            (st = mpl_sym_graph_new(ctx, x, &reader, NULL, false, &s)) == MPL_OK &&
            (st = mpl_sym_problem_new(ctx, s, order, &o, false, &sp)) == MPL_OK)
            st = mpl_sym_problem_at(ctx, sp, value, &p);
        mpl_problem_free(ctx, p);
        mpl_sym_problem_free(ctx, sp);
        mpl_sym_graph_free(ctx, s);
        mpl_exprs_free(ctx, x);
    }
}

TESTS(networks_have_their_sizes_and_one_structure, operators_round_join_and_clip,
      the_operator_is_named, ranges_that_are_none_are_refused, points_keep_what_they_must,
      each_allocation_may_fail)
