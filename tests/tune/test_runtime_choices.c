/* test_runtime_choices.c -- images in any choice of layouts, executed on `cpu` in a plan's arena,
 * against the plain graph on `ref`; the choice of the least time against all choices. Fault:
 * missing or superfluous reorders, a cut that forgets one, loops and branches that see an image in
 * another layout. */
#include "tests/tune/random_images.h"

/* Draws a layout for each operation, and an implementation; blocks are often taken. Returns how
 * many operations have blocks. */
static uint32_t draw_laid(const mpl_graph *g, mpl_rng *rng, mpl_laid *laid)
{
    uint32_t n_blocked = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_layout layout = (mpl_layout)mpl_rng_below(rng, MPL_N_LAYOUTS);

        if (mpl_op_may_be(g, op, MPL_BLOCKED) && mpl_rng_below(rng, 2) == 0)
            layout = MPL_BLOCKED;
        laid[op] = (mpl_laid){mpl_op_may_be(g, op, layout) ? (uint8_t)layout : MPL_PLAIN,
                              (uint8_t)mpl_rng_below(rng, MPL_N_WAYS)};
        n_blocked += laid[op].layout == MPL_BLOCKED;
    }
    return n_blocked;
}

static uint32_t agrees_as_drawn(mpl_ctx *ctx, const char *text, mpl_graph *graph, uint64_t seed)
{
    mpl_rng rng = mpl_rng_of(seed);
    owned_graph *g = graph;
    char *want = execute(ctx, "ref", g, false), *got;
    mpl_laid *laid = calloc(g->n_ops, sizeof *laid);
    uint32_t n_blocked = draw_laid(g, &rng, laid);

    assert_ok(ctx, mpl_graph_lay(ctx, &g, laid));
    got = execute(ctx, "cpu", g, true);
    assert_near(text, g, got, want, 1e-3);
    free(laid);
    free(want);
    free(got);
    return n_blocked;
}

/* Any choice computes the same, with images and reorders wherever it falls. */
TEST(any_choice_agrees)
{
    uint64_t n = draws(100), n_blocked = 0;
    writer *w = malloc(sizeof *w);

    for (uint64_t seed = 1; seed <= n; seed++) {
        mpl_graph *g = random_graph(ctx, seed, w);

        n_blocked += agrees_as_drawn(ctx, w->text, g, seed + 5000);
    }
    assert_true(n_blocked > n);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mpl_graph *g;

        w->n = (size_t)snprintf(w->text, sizeof w->text, "graph t\n%s", texts[i].text);
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", w->text, w->n, &g));
        agrees_as_drawn(ctx, w->text, g, i);
    }
    free(w);
}

/* What a choice costs, counted in the graph that is made so. */
static uint64_t cost_of(mpl_ctx *ctx, const char *text, const mpl_graph *g,
                        const mpl_layout_times *times, const mpl_laid *laid)
{
    owned_graph *made = NULL;
    uint64_t sum = 0;
    mpl_op from = 0;

    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &made));
    assert_ok(ctx, mpl_graph_lay(ctx, &made, laid));
    for (mpl_op op = 0; op < made->n_ops; op++) {
        const char *name;
        mpl_value v;
        size_t n;

        if (made->op_kind[op] != MPL_OP_reorder) {
            sum += times->op[laid[from].layout][from];
            from++;
            continue;
        }
        name = made->value_name[mpl_op_input(made, op, 0)]; /* v3, v3.last: of v3 */
        n = strcspn(name, ".");
        for (v = 0; strncmp(g->value_name[v], name, n) != 0 || g->value_name[v][n] != '\0'; v++)
            assert_true(v + 1 < g->n_values);
        sum += times->reorder[mpl_layout_of(made, mpl_op_output(made, op, 0))][v];
    }
    return sum;
}

static void draw_times(const mpl_graph *g, mpl_rng *rng, mpl_layout_times *times)
{
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
        times->op[k] = calloc(g->n_ops, sizeof(uint64_t));
        times->reorder[k] = calloc(g->n_values, sizeof(uint64_t));
        for (mpl_op op = 0; op < g->n_ops; op++)
            times->op[k][op] =
                mpl_op_may_be(g, op, (mpl_layout)k) ? mpl_rng_below(rng, 40) : UINT64_MAX;
        for (mpl_value v = 0; v < g->n_values; v++)
            times->reorder[k][v] = mpl_rng_below(rng, 12);
    }
}

static void free_times(mpl_layout_times *times)
{
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
        free(times->op[k]);
        free(times->reorder[k]);
    }
}

/* The least cost over all layouts of the operations from `op` on. */
static uint64_t least_cost(mpl_ctx *ctx, const char *text, const mpl_graph *g,
                           const mpl_layout_times *times, mpl_laid *laid, mpl_op op)
{
    uint64_t least = UINT64_MAX;

    if (op == g->n_ops) {
        least = cost_of(ctx, text, g, times, laid);
        assert_int_equal(least, mpl_layouts_ns(g, times, laid));
        return least;
    }
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
        if (mpl_op_may_be(g, op, (mpl_layout)k)) {
            uint64_t cost;

            laid[op].layout = (uint8_t)k;
            cost = least_cost(ctx, text, g, times, laid, op + 1);
            least = cost < least ? cost : least;
        }
    return least;
}

/* How many choices there are, at most 512. */
static uint32_t n_choices(const mpl_graph *g)
{
    uint32_t n = 1;

    for (mpl_op op = 0; op < g->n_ops && n <= 512; op++)
        n *= 1u + mpl_op_may_be(g, op, MPL_LAST) + mpl_op_may_be(g, op, MPL_BLOCKED);
    return n;
}

/* The choice against all others, each counted in its graph: of two layouts the least, of three
 * rarely more, and never below the bound. */
TEST(the_choice_is_the_least_of_all)
{
    uint64_t n = draws(60), n_other = 0, n_tried[2] = {0}, more = 0;
    writer *w = malloc(sizeof *w);

    for (uint64_t seed = 1; n_tried[0] + n_tried[1] < n; seed++) {
        mpl_rng rng = mpl_rng_of(seed);
        owned_graph *g = random_graph(ctx, seed, w);
        mpl_layout_times times;
        mpl_laid *laid = calloc(g->n_ops, sizeof *laid), *chosen = calloc(g->n_ops, sizeof *laid);
        uint64_t found = 0, bound = 0, least;
        uint32_t others = 0;

        draw_times(g, &rng, &times);
        if (n_choices(g) <= 512) {
            n_tried[seed % 2]++;
            least = least_cost(ctx, w->text, g, &times, laid, 0);
            assert_ok(ctx, mpl_layouts_choose(ctx, g, &times, chosen, &found, &bound));
            assert_true(bound <= least && least <= found);
            assert_int_equal(cost_of(ctx, w->text, g, &times, chosen), found);
            if (seed % 2 == 1)
                assert_int_equal(found, least);
            more += found > least;
            for (mpl_op op = 0; op < g->n_ops; op++)
                others |= 1u << chosen[op].layout;
            n_other += (others & 1u << MPL_BLOCKED) != 0 && others != 1u << MPL_BLOCKED;
        }
        free_times(&times);
        free(laid);
        free(chosen);
    }
    free(w);
    assert_true(n < 20 || (n_tried[0] >= n / 4 && n_tried[1] >= n / 4 && n_other > n / 6));
    assert_true(n < 20 || more <= n_tried[0] / 5);
}

/* Around a loop and a branch, which read images of any layout as they were and hand one on. */
TEST(blocks_stay_plain)
{
    static const char text[] =
        "graph t\ninput x f32 [1,8,6,5]\nweight w f32 [8,8,3,3]\nweight n i64 [] = splat 3\n"
        "weight which i64 [] = splat 0\na = conv(x, w) pads=[1,1,1,1]\nb = sigmoid(a)\n"
        "q = relu(b)\nblock keep\nyield q\nblock turn\nz = neg(b)\nyield z\nk = case keep, "
        "turn(which)\n"
        "block step\nparam t i64 []\nparam h f32 [1,8,6,5]\ns = add(h, k)\n"
        "i = conv(s, w) pads=[1,1,1,1]\nyield _, i\nc = while step(n, _, a) carried=1\n"
        "d = relu(c)\nblock first\nyield d\nblock second\ne = neg(b)\nyield e\n"
        "f = case first, second(which)\ny = tanh(f)\noutput y\n";
    uint64_t n = draws(30);

    for (uint64_t seed = 1; seed <= n; seed++) {
        mpl_rng rng = mpl_rng_of(seed);
        owned_graph *g = text_graph(ctx, text);
        mpl_layout_times times;
        mpl_laid *laid = calloc(g->n_ops, sizeof *laid);
        uint64_t found, bound;

        agrees_as_drawn(ctx, text, text_graph(ctx, text), seed);
        draw_times(g, &rng, &times);
        assert_ok(ctx, mpl_layouts_choose(ctx, g, &times, laid, &found, &bound));
        assert_int_equal(cost_of(ctx, text, g, &times, laid), found);
        if (seed <= 3)
            assert_true(least_cost(ctx, text, g, &times, laid, 0) <= found);
        free_times(&times);
        free(laid);
    }
}

TESTS(any_choice_agrees, the_choice_is_the_least_of_all, blocks_stay_plain)
