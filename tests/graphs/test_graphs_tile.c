/* Regions by patches: outputs of random networks of images equal, bit for bit, those of the graph
 * as it was; work and live bytes as counted. Faults: a halo too small, pads of the whole image on a
 * patch, rows of a line buffer that are not there or stand at the wrong place, a kept value that is
 * let go too early, channels of another patch. MPL_TILE_DRAWS: how many networks. */
#include "tests/support/interpret.h"

#include "graphs/core/rng.h"
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/tile/tile_priv.h"
#include "planners/recompute/rerun.h"

#include <stdlib.h>

/* ---- random networks ---- */

typedef struct grown {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_rng rng;
    mpl_value image[32]; /* values of rank 4 */
    uint32_t n, n_names;
} grown;

static uint32_t draw(grown *w, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&w->rng, n);
}

static mpl_value weight(grown *w, uint32_t rank, const int64_t *dim)
{
    mpl_shape shape = {.rank = rank};
    mpl_value v;
    char name[16];

    memcpy(shape.dim, dim, rank * sizeof *dim);
    snprintf(name, sizeof name, "w%u", w->n_names++);
    assert_ok(w->ctx,
              mpl_graph_add_value(w->ctx, w->g, name, MPL_WEIGHT, MPL_TYPE_f32, &shape, &v));
    return v;
}

/* False: the operator refuses the operands. */
static bool grow(grown *w, mpl_op_kind kind, uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                 const mpl_attr *attr)
{
    char name[16];
    const char *names[1] = {name};
    mpl_value v;

    snprintf(name, sizeof name, "v%u", w->n_names++);
    if (mpl_graph_add_op(w->ctx, w->g, kind, name, n_in, in, n_attr, attr, 1, names, &v) != MPL_OK)
        return false;
    w->image[w->n++] = v;
    return true;
}

static void grow_window(grown *w, mpl_value x, bool pool)
{
    const mpl_shape *s = &w->g->value_shape[x];
    int64_t k[2] = {1 + draw(w, 4), 1 + draw(w, 4)}, strides[2] = {1 + draw(w, 2), 1 + draw(w, 3)};
    int64_t dilations[2] = {1 + draw(w, 2), 1}, pads[4], c = s->dim[1];
    bool depth = draw(w, 2) == 0;
    int64_t group = depth ? c : c % 2 == 0 && draw(w, 3) == 0 ? 2 : 1;
    int64_t out = depth ? c : 2 * (1 + (int64_t)draw(w, 3));
    int64_t dims[4] = {out, c / group, k[0], k[1]};
    mpl_attr attr[5];
    mpl_value in[3] = {x};

    for (int i = 0; i < 4; i++)
        pads[i] = draw(w, (uint32_t)k[i % 2]);
    attr[0] = MPL_INTS(kernel_shape, 2, k);
    attr[1] = MPL_INTS(strides, 2, strides);
    attr[2] = MPL_INTS(pads, 4, pads);
    if (pool) {
        mpl_attr ceil = MPL_INT(ceil_mode, 1);

        attr[3] = ceil;
        grow(w, draw(w, 2) == 0 ? MPL_OP_max_pool : MPL_OP_avg_pool, 1, in, 3 + draw(w, 2), attr);
        return;
    }
    attr[3] = (mpl_attr){MPL_ATTR_group, 1, &group, NULL, NULL};
    attr[4] = MPL_INTS(dilations, 2, dilations);
    in[1] = weight(w, 4, dims);
    in[2] = weight(w, 1, &out);
    grow(w, MPL_OP_conv, 2 + draw(w, 2), in, 5, attr);
}

static void grow_two(grown *w, mpl_value x)
{
    const mpl_shape *s = &w->g->value_shape[x];
    const int64_t channels[4] = {1, s->dim[1], 1, 1};
    const mpl_attr axis = MPL_INT(axis, 1);
    mpl_value in[2] = {x, x};

    for (uint32_t i = w->n; i-- > 0 && in[1] == x;) {
        const mpl_shape *y = &w->g->value_shape[w->image[i]];

        if (w->image[i] != x && y->dim[2] == s->dim[2] && y->dim[3] == s->dim[3])
            in[1] = w->image[i];
    }
    if (in[1] == x)
        in[1] = weight(w, 4, channels);
    if (!grow(w, MPL_OP_add, 2, in, 0, NULL))
        grow(w, MPL_OP_concat, 2, in, 1, &axis);
}

static void grow_norm(grown *w, mpl_value x)
{
    const int64_t c = w->g->value_shape[x].dim[1];
    mpl_value in[5] = {x};

    for (int i = 1; i < 5; i++)
        in[i] = weight(w, 1, &c);
    grow(w, MPL_OP_batch_norm, 5, in, 0, NULL);
}

static void grow_resize(grown *w, mpl_value x)
{
    const double scales[4] = {1, 1, 1 + draw(w, 3), 1 + draw(w, 3)};
    const mpl_attr attr[1] = {MPL_FLOATS(scales, 4, scales)};

    if (w->g->value_shape[x].dim[2] <= 20)
        grow(w, MPL_OP_resize, 1, &x, 1, attr);
}

static mpl_graph *random_net(mpl_ctx *ctx, uint64_t seed)
{
    grown w = {.ctx = ctx, .rng = mpl_rng_of(seed)};
    mpl_shape shape = {4, {1 + draw(&w, 2), 2 + draw(&w, 4), 6 + draw(&w, 12), 6 + draw(&w, 12)}};
    uint32_t n_ops = 3 + draw(&w, 9);

    assert_ok(ctx, mpl_graph_new(ctx, "images", &w.g));
    assert_ok(ctx,
              mpl_graph_add_value(ctx, w.g, "x", MPL_INPUT, MPL_TYPE_f32, &shape, &w.image[w.n++]));
    for (uint32_t i = 0; i < n_ops; i++) {
        mpl_value x = w.image[w.n - 1 - (draw(&w, 4) == 0 && w.n > 1)];
        uint32_t kind = draw(&w, 10);

        if (kind < 6)
            grow_window(&w, x, kind > 4);
        else if (kind == 6)
            grow(&w, MPL_OP_relu, 1, &x, 0, NULL);
        else if (kind == 7)
            grow_two(&w, x);
        else if (kind == 8)
            grow_norm(&w, x);
        else
            grow_resize(&w, x);
    }
    if (w.n == 1)
        grow(&w, MPL_OP_relu, 1, w.image, 0, NULL);
    for (mpl_value v = 0; v < w.g->n_values; v++) {
        bool read = false;

        for (uint32_t i = 0; i < w.g->op_in_begin[w.g->n_ops]; i++)
            read = read || w.g->op_in[i] == v;
        if (!read && w.g->value_op[v] != MPL_NONE)
            assert_ok(ctx, mpl_graph_add_output(ctx, w.g, v));
    }
    assert_ok(ctx, mpl_graph_finish(ctx, w.g));
    return w.g;
}

/* ---- comparing ---- */

/* By name: both graphs get the same. Variances of batch norm must not be negative. */
static void fill(interpreter *it)
{
    for (mpl_value v = 0; v < it->g->n_values; v++) {
        const char *name = it->g->value_name[v];
        mpl_rng rng = mpl_rng_of(mpl_hash(MPL_HASH_SEED, name, strlen(name)));
        mpl_type type = (mpl_type)it->g->value_type[v];

        if (it->g->value_op[v] != MPL_NONE || it->g->value_data[v] != NULL)
            continue;
        for (int64_t i = 0; i < mpl_count(&it->g->value_shape[v]); i++)
            mpl_put(type, it->data[v], i,
                    type == MPL_TYPE_f32 ? ((double)mpl_rng_below(&rng, 2000) + 1) / 999
                                         : (double)mpl_rng_below(&rng, 200) - 100);
    }
}

static void assert_same(mpl_ctx *ctx, const mpl_graph *was, const mpl_graph *is)
{
    interpreter a = interpret_begin(ctx, was), b = interpret_begin(ctx, is);

    fill(&a), fill(&b);
    assert_ok(ctx, interpret(&a));
    assert_ok(ctx, interpret(&b));
    assert_int_equal(was->n_outputs, is->n_outputs);
    for (uint32_t i = 0; i < was->n_outputs; i++) {
        mpl_value v = was->output[i], w = is->output[i];

        assert_string_equal(was->value_name[v], is->value_name[w]);
        assert_true(mpl_shape_equal(&was->value_shape[v], &is->value_shape[w]));
        assert_memory_equal(a.data[v], b.data[w], was->value_bytes[v]);
    }
    interpret_end(&a);
    interpret_end(&b);
}

/* Between two regions bands, where there may be some. */
static void maybe_bands(const mpl_graph *g, const tile_rule *rule, mpl_tile_region region[2])
{
    const mpl_shape *y = &g->value_shape[mpl_tile_result(g, &region[0])];

    if (region[1].begin != region[0].end ||
        !tile_reads_bands(g, rule, region[1].begin, region[1].end))
        return;
    region[0].banded = true, region[0].patch.channels = y->dim[1];
    region[0].patch.columns = region[0].patch.across ? region[0].patch.columns : y->dim[3];
    region[1].band = region[0].patch.rows;
}

/* Up to two random regions with random patches; their number. The second begins where the first
 * ends, if it can. */
static uint32_t random_regions(mpl_ctx *ctx, const mpl_graph *g, mpl_rng *rng,
                               mpl_tile_region region[2])
{
    tile_rule *rule;
    uint32_t n = 0;
    mpl_op least = 0;

    assert_ok(ctx, tile_rules_new(ctx, g, &rule));
    for (int i = 0; i < 60 && n < 2 && least < g->n_ops; i++) {
        mpl_op begin =
            n == 1 && i < 40 ? least : least + (mpl_op)mpl_rng_below(rng, g->n_ops - least);
        mpl_op end = begin + 1 + (mpl_op)mpl_rng_below(rng, g->n_ops - begin);
        const mpl_shape *y;

        if (!tile_is_region(g, rule, begin, end) || (i < 20 && end - begin < (n == 0 ? 3 : 1)))
            continue;
        region[n] = (mpl_tile_region){.begin = begin, .end = end};
        y = &g->value_shape[mpl_tile_result(g, &region[n])];
        region[n].patch = (mpl_patch){y->dim[1],
                                      1 + (int64_t)mpl_rng_below(rng, 5),
                                      1 + (int64_t)mpl_rng_below(rng, (uint64_t)y->dim[3]),
                                      (mpl_tile_keep)mpl_rng_below(rng, MPL_N_KEEPS),
                                      mpl_rng_below(rng, 2) == 0,
                                      mpl_rng_below(rng, 2) == 0};
        if (mpl_rng_below(rng, 3) == 0)
            region[n].patch.channels = 1 + (int64_t)mpl_rng_below(rng, (uint64_t)y->dim[1]);
        if (n == 1)
            maybe_bands(g, rule, region);
        n++;
        least = end;
    }
    mpl_free(ctx, rule);
    return n;
}

TEST(random_networks_by_patches_are_the_networks)
{
    uint32_t n =
        draws(getenv("MPL_TILE_DRAWS") != NULL ? (uint32_t)atoi(getenv("MPL_TILE_DRAWS")) : 150);
    const mpl_problem_options options = mpl_problem_options_default();
    uint32_t long_regions = 0, n_banded = 0, n_tight = 0;

    for (uint32_t seed = 1; seed <= n; seed++) {
        mpl_graph *was = random_net(ctx, seed), *is = random_net(ctx, seed);
        mpl_rng rng = mpl_rng_of(seed + 7);
        mpl_tile_region region[2];
        mpl_tile_facts facts = {0};
        tile_edges e;
        uint64_t peak;
        uint32_t k = random_regions(ctx, was, &rng, region);

        assert_ok(ctx, mpl_graph_tile(ctx, &is, k, region, &facts));
        assert_int_equal(facts.n_regions, k);
        assert_true(facts.n_patches >= k);
        assert_ok(ctx, mpl_given_peak(ctx, is, &options, &peak));
        assert_ok(ctx, tile_edges_new(ctx, was, 2, &e));
        assert_true(peak >= e.bound);
        n_tight += peak <= e.bound + e.bound / 4;
        mpl_free(ctx, e.edge);
        assert_same(ctx, was, is);
        n_banded += k == 2 && region[0].banded;
        for (uint32_t i = 0; i < k; i++)
            long_regions += region[i].end - region[i].begin > 2 && facts.n_patches > 3;
        mpl_graph_free(ctx, was);
        mpl_graph_free(ctx, is);
    }
    assert_true(often(long_regions * 4 > n && n_banded * 10 > n && n_tight * 8 > n));
}

/* ---- the search ---- */

/* The least work of all ways from `at` on over edges of at most `most` bytes, by trying each. */
static uint64_t least_by_trying(const tile_edges *e, size_t at, uint64_t most)
{
    uint64_t least = UINT64_MAX;

    if (at == tile_node(e->g->n_ops, 0))
        return 0;
    for (size_t i = 0; i < e->n; i++) {
        const tile_edge *edge = &e->edge[i];
        uint64_t rest;

        if (tile_from(edge) != at || edge->peak > most)
            continue;
        rest = least_by_trying(e, tile_to(edge), most);
        if (rest != UINT64_MAX && edge->work + rest < least)
            least = edge->work + rest;
    }
    return least;
}

/* A chain of convolutions and the like, at most 12 operations. */
static mpl_graph *random_chain(mpl_ctx *ctx, uint64_t seed)
{
    grown w = {.ctx = ctx, .rng = mpl_rng_of(seed)};
    mpl_shape shape = {4, {1, 3, 12 + draw(&w, 10), 12 + draw(&w, 10)}};
    uint32_t n_ops = 3 + draw(&w, 6);

    assert_ok(ctx, mpl_graph_new(ctx, "chain", &w.g));
    assert_ok(ctx,
              mpl_graph_add_value(ctx, w.g, "x", MPL_INPUT, MPL_TYPE_f32, &shape, &w.image[w.n++]));
    while (w.n <= n_ops)
        if (draw(&w, 5) == 0)
            grow(&w, MPL_OP_relu, 1, &w.image[w.n - 1], 0, NULL);
        else
            grow_window(&w, w.image[w.n - 1], draw(&w, 4) == 0);
    assert_ok(ctx, mpl_graph_add_output(ctx, w.g, w.image[w.n - 1]));
    assert_ok(ctx, mpl_graph_finish(ctx, w.g));
    return w.g;
}

TEST(of_chains_no_choice_does_less_work_within_a_peak)
{
    uint32_t n_tiled = 0;

    for (uint64_t seed = 1; seed <= draws(24); seed++) {
        mpl_graph *g = random_chain(ctx, seed);
        tile_cost *cost = calloc(tile_node(g->n_ops + 1, 0), sizeof *cost);
        uint32_t *via = calloc(tile_node(g->n_ops + 1, 0), sizeof *via);
        tile_edges e;

        assert_ok(ctx, tile_edges_new(ctx, g, 0, &e));
        for (uint32_t part = 1; part <= 8; part++) {
            uint64_t most = e.plain_peak * part / 8, want;
            bool found = tile_least_work(&e, most, cost, via);

            want = least_by_trying(&e, 0, most);
            assert_int_equal(found, want != UINT64_MAX);
            if (found)
                assert_int_equal(cost[tile_node(g->n_ops, 0)].work, want);
            n_tiled += found && part < 8;
        }
        free(cost), free(via);
        mpl_free(ctx, e.edge);
        mpl_graph_free(ctx, g);
    }
    assert_true(n_tiled * 24 > 20 * draws(24));
}

/* What the search counts is what the problem of the new graph has live, but for the last slot; in
 * few cases a strip that the model left out as like the one before it needs a little more. */
TEST(the_model_counts_what_is_live)
{
    const mpl_problem_options options = mpl_problem_options_default();
    uint32_t n_equal = 0, n_all = draws(40);

    for (uint64_t seed = 1; seed <= n_all; seed++) {
        mpl_graph *g = random_chain(ctx, seed), *was = random_chain(ctx, seed);
        mpl_tile_ask ask = {.goal = MPL_TILE_WORK, .factor = 1 + (double)(seed % 4) / 2};
        mpl_tile_region *region;
        mpl_tile_facts facts;
        uint64_t peak, least, model;
        uint32_t n;

        assert_ok(ctx, mpl_tile_search(ctx, g, &ask, &n, &region, &facts));
        model = facts.model_bytes, least = facts.least_bytes;
        assert_true(least <= model && facts.bound_bytes <= least);
        assert_ok(ctx, mpl_graph_tile(ctx, &g, n, region, &facts));
        assert_true((double)facts.work <= ask.factor * (double)facts.plain_work);
        assert_ok(ctx, mpl_given_peak(ctx, g, &options, &peak));
        n_equal += peak <= model && peak + TILE_SLOT > model;
        assert_same(ctx, was, g);
        mpl_free(ctx, region);
        mpl_graph_free(ctx, g);
        mpl_graph_free(ctx, was);
    }
    assert_true(n_equal + 1 >= n_all);
}

TESTS(random_networks_by_patches_are_the_networks, of_chains_no_choice_does_less_work_within_a_peak,
      the_model_counts_what_is_live)
