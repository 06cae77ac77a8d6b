/* Loops planned without copies: the measured figures of the NNC allocator, reached or beaten, and
 * the least bytes for each program. What random programs need, to the byte: reveals storage that is
 * lost or shared by accident. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_control.h"

#include "planners/verify/verify.h"

/* In units of the program's own size: what production needs, and the least: all values alive at
 * once in some round. */
static const struct {
    const char *file;
    uint64_t unit; /* [byte] */
    uint64_t production, least;
} goldens[] = {
    {"pingpong", 1024, 2, 2},        {"lstm_cell", 65536, 10, 9},     {"shift_2", 1024, 4, 3},
    {"shift_3", 1024, 5, 4},         {"shift_4", 1024, 6, 5},         {"shift_6", 1024, 8, 7},
    {"shift_8", 1024, 10, 9},        {"independent_1", 1024, 2, 2},   {"independent_2", 1024, 6, 5},
    {"independent_3", 1024, 14, 11}, {"independent_4", 1024, 30, 23}, {"chained_1", 1024, 4, 2},
    {"chained_2", 1024, 6, 4},       {"chained_3", 1024, 8, 5},       {"chained_4", 1024, 10, 6},
    {"chained_6", 1024, 14, 8},
};

typedef struct loaded {
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
} loaded;

static loaded load(mpl_ctx *ctx, const char *file, bool copy)
{
    mpl_problem_options options = mpl_problem_options_default();
    loaded l = {NULL, NULL, NULL, NULL};
    char path[100];

    options.loop_copy = copy;
    snprintf(path, sizeof path, "tests/data/loops/%s.graph", file);
    assert_ok(ctx, mpl_text_read(ctx, path, &l.g));
    l.order = order_by(ctx, l.g, "given");
    assert_ok(ctx, mpl_problem_from_graph(ctx, l.g, l.order, &options, &l.p, &l.map));
    return l;
}

static void unload(mpl_ctx *ctx, loaded *l)
{
    mpl_value_map_free(ctx, l->map);
    mpl_problem_free(ctx, l->p);
    mpl_free(ctx, l->order);
    mpl_graph_free(ctx, l->g);
}

static uint64_t planned(mpl_ctx *ctx, const mpl_problem *p, const char *planner)
{
    owned_plan *plan = planned_by(ctx, planner, p);
    uint64_t bytes = plan->pool_bytes[0];

    return bytes;
}

static bool copies_carried(const mpl_graph *g, const mpl_places *places)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 1;
             g->op_kind[op] == MPL_OP_while && i <= mpl_attr_int(g, op, MPL_ATTR_carried, 0); i++)
            if (places->result_copied[g->block_result_begin[g->op_body[g->op_body_begin[op]]] + i])
                return true;
    return false;
}

TEST(test_goldens)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        loaded l = load(ctx, goldens[i].file, false);
        uint64_t bound, nnc = planned(ctx, l.p, "nnc_2019"), exact = planned(ctx, l.p, "exact");

        assert_ok(ctx, mpl_lower_bound(ctx, l.p, 0, &bound, NULL));
        if (nnc > goldens[i].production * goldens[i].unit ||
            exact != goldens[i].least * goldens[i].unit || bound != exact ||
            copies_carried(l.g, l.map->places))
            fail_msg("%s: nnc_2019 %" PRIu64 ", exact %" PRIu64 ", bound %" PRIu64 " bytes%s",
                     goldens[i].file, nnc, exact, bound,
                     copies_carried(l.g, l.map->places) ? "; carried values are copied" : "");
        unload(ctx, &l);
    }
}

/* The arena does not grow with the number of rounds, and copying every carried value never needs
 * less. */
TEST(test_copying_needs_no_less)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        loaded l = load(ctx, goldens[i].file, true);

        assert_true(copies_carried(l.g, l.map->places));
        assert_true(planned(ctx, l.p, "exact") >= goldens[i].least * goldens[i].unit);
        unload(ctx, &l);
    }
}

/* ---- random programs ---- */

enum {
    DRAWN = 700,
    LARGE = 10
}; /* the last ones are large: more than 64 operations outside of loops */

/* Over all random programs: buffers and their bytes, pairs alive at once, in-place pairs, copied
 * bytes, places. */
typedef struct need {
    uint64_t n_buffers, bytes, n_meet, n_pairs, copied_bytes, n_places;
} need;

static void add_need(mpl_ctx *ctx, const loaded *l, need *sum)
{
    owned_memory mpl_copy *copy = NULL;
    uint32_t n_copies = 0;

    sum->n_buffers += l->p->n;
    sum->n_pairs += l->p->n_in_place;
    sum->n_places += l->map->places != NULL ? l->map->places->n : 0;
    for (mpl_buffer b = 0; b < l->p->n; b++) {
        sum->bytes += l->p->bytes[b];
        for (mpl_buffer a = 0; a < b; a++)
            sum->n_meet += mpl_verify_conflict(l->p, a, b);
    }
    assert_ok(ctx, mpl_copies_of(ctx, l->g, l->map, &copy, &n_copies));
    for (uint32_t k = 0; k < n_copies; k++)
        sum->copied_bytes += copy[k].bytes;
}

static need drawn_need(mpl_ctx *ctx, mpl_problem_options options)
{
    /* out of thousands, one where it matters what the whole graph may still read beside a loop */
    static const uint64_t rare[] = {102331};
    need sum = {0};

    for (uint64_t k = 0; k < DRAWN + sizeof rare / sizeof *rare; k++) {
        uint64_t seed = k < DRAWN ? k : rare[k - DRAWN];
        loaded l = {.g = random_control_of(ctx, seed, k < DRAWN - LARGE || k >= DRAWN ? 60 : 400)};

        options.align = seed % 5 == 0 ? 4 : 64;
        options.pin_inputs = options.pin_outputs = options.pin_weights = seed % 3 != 0;
        l.order = order_by(ctx, l.g, seed % 2 == 0 || k >= DRAWN ? "given" : "dfs");
        if (k >= DRAWN)
            assert_ok(ctx, mpl_order_shuffle(ctx, l.g, seed, l.order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, l.g, l.order, &options, &l.p, &l.map));
        add_need(ctx, &l, &sum);
        unload(ctx, &l);
    }
    return sum;
}

/* The figures are those of the storage that `make control-oracle` verified, and the least so far.
 * Fewer bytes or conflicts: a gain to record here after running it again; more: a loss. */
TEST(test_drawn_programs_need_no_more)
{
    static const struct {
        const char *what;
        bool parallel, bare, copy;
        need need;
    } rows[] = ROW({"serial", false, false, false, {27941, 2013767, 562868, 3570, 233472, 14511}},
                   {"parallel", true, false, false, {27942, 2013783, 799385, 3153, 233472, 14512}},
                   ROW("serial, neither views nor in place", false, true, false,
                       {30038, 2210679, 616429, 0, 274856, 11699}),
                   ROW("serial, all that is carried is copied", false, false, true,
                       {33337, 2448759, 759490, 4595, 1129824, 5289}));
    bool lost = false;

    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        mpl_problem_options options = mpl_problem_options_default();
        need got;

        options.parallel = rows[k].parallel;
        options.in_place = options.views = !rows[k].bare;
        options.loop_copy = rows[k].copy;
        got = drawn_need(ctx, options);
        if (memcmp(&got, &rows[k].need, sizeof got) != 0)
            print_error("%s: {%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
                        ", %" PRIu64 "}\n",
                        rows[k].what, got.n_buffers, got.bytes, got.n_meet, got.n_pairs,
                        got.copied_bytes, got.n_places),
                lost = true;
    }
    assert_false(lost);
}

/* A value in the cell of one parameter must leave the other its value; else the verifier refuses
 * the plan. */
TEST(test_one_instance_twice)
{
    loaded l = load(ctx, "one_instance_twice", false);
    owned_plan *plan = planned_by(ctx, "greedy_size", l.p);

    assert_ok(ctx, mpl_verify_places(ctx, l.g, l.map, l.p, plan));
    unload(ctx, &l);
}

TESTS(test_one_instance_twice, test_goldens, test_copying_needs_no_less,
      test_drawn_programs_need_no_more)
