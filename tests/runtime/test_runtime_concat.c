/* Operands of concats inside their results, and parts inside their wholes: outputs as without
 * sharing, fewer bytes moved, and no more memory than copying needs. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/runtime/bound_graph.h"
#include "tests/support/random_rows.h"

#include "graphs/passes/passes.h"
#include "graphs/problem/alias.h"
#include "planners/search/concat.h"
#include "planners/verify/verify.h"
#include "runtime/cpu/loops/chain_priv.h"
#include "runtime/exec/exec_priv.h"

/* Values of [n, c, h] floats, small and odd: computed element by element, concatenated along any
 * axis, split; concats of concats along other axes, operands through other dims. */
static mpl_graph *random_boxes(mpl_ctx *ctx, uint64_t seed)
{
    mpl_graph *g = NULL;
    mpl_value v[64];
    uint32_t n = 0;
    mpl_rng rng = mpl_rng_of(seed);
    char name[16];

    assert_ok(ctx, mpl_graph_new(ctx, "boxes", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32,
                                       &(mpl_shape){3, {1 + (int64_t)(seed % 3), 2, 3}}, &v[n++]));
    for (uint32_t i = 0; i < 6 + seed % 14; i++) {
        uint32_t what = (uint32_t)mpl_rng_below(&rng, 8), a = (uint32_t)mpl_rng_below(&rng, n),
                 b = (uint32_t)mpl_rng_below(&rng, n), axis = (uint32_t)mpl_rng_below(&rng, 3);
        const mpl_shape *s = &g->value_shape[v[a]], *t = &g->value_shape[v[b]];
        const int64_t turned[3] = {s->dim[0], s->dim[2], s->dim[1]};
        uint32_t same = 0;
        const char *out[] = {name};

        snprintf(name, sizeof name, "v%u", i);
        for (uint32_t d = 0; d < 3; d++)
            same += d == axis || s->dim[d] == t->dim[d];
        if (what < 4 && same == 3 && g->value_bytes[v[a]] + g->value_bytes[v[b]] <= 1024)
            assert_ok(ctx, mpl_graph_add_op(
                               ctx, g, MPL_OP_concat, name, 2, (mpl_value[]){v[a], v[b]}, 1,
                               (mpl_attr[]){MPL_INT(axis, (int64_t)axis - 3 * (seed % 2 == 0))}, 1,
                               out, &v[n++]));
        else if (what == 4 && mpl_shape_equal(s, t))
            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_add, name, 2, (mpl_value[]){v[a], v[b]},
                                            0, NULL, 1, out, &v[n++]));
        else if (what == 5 && seed % 4 == 0)
            assert_ok(ctx,
                      mpl_graph_add_op(ctx, g, MPL_OP_reshape, name, 1, &v[a], 1,
                                       (mpl_attr[]){MPL_INTS(shape, 3, turned)}, 1, out, &v[n++]));
        else if (what == 6)
            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_identity, name, 1, &v[a], 0, NULL, 1,
                                            out, &v[n++]));
        else
            assert_ok(ctx, mpl_graph_add_op(ctx, g, what % 2 == 0 ? MPL_OP_tanh : MPL_OP_relu, name,
                                            1, &v[a], 0, NULL, 1, out, &v[n++]));
    }
    assert_ok(ctx, mpl_graph_add_output(ctx, g, v[n - 1]));
    if (seed % 3 == 0 && n > 4)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, v[n / 2]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* Copies of strided operands lie within their memory, and apart if they may exist at once. Returns
 * the number of such pairs of two operations. */
static uint32_t check_rooms(const mpl_exec *exec)
{
    uint32_t n_met = 0;

    for (uint32_t i = 0; i < exec->n_staged; i++) {
        const mpl_staged *a = &exec->staged[i];
        uint64_t end = a->offset + exec->block[a->block].bytes;

        assert_true(end <= exec->slab[a->slab].bytes);
        for (uint32_t k = 0; k < i; k++) {
            const mpl_staged *b = &exec->staged[k];

            if (a->op != b->op && !exec->parallel)
                continue;
            n_met += a->op != b->op;
            if (b->offset < end && a->offset < b->offset + exec->block[b->block].bytes)
                fail_msg("copies for operations %u and %u share bytes", a->op, b->op);
        }
    }
    return n_met;
}

typedef struct result {
    uint64_t hash, copied, bound, planned;
    uint32_t n_rooms; /* pairs of copies for two operations that may run at once */
} result;

static result run_on(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g,
                     const mpl_planner *planner, const mpl_problem_options *options, bool checked)
{
    result r = {.hash = MPL_HASH_SEED};
    mpl_exec_facts facts;
    mpl_run call;
    float data[512];
    bound b;

    bind_device(ctx, backend, g, "given", &(mpl_device_options){.n_threads = 1}, &b);
    if (planner != NULL) {
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, b.order, options, &b.p, &b.map));
        call = mpl_run_default(ctx);
        call.budget_ticks = 2000000;
        assert_ok(ctx, mpl_planner_run(planner, &call, b.p, &b.plan));
        assert_ok(ctx, mpl_lower_bound(ctx, b.p, 0, &r.bound, NULL));
        if (options->parallel)
            assert_ok(ctx, mpl_verify_graph(ctx, g, b.map, b.p, b.plan));
        r.planned = b.plan->pool_bytes[0];
    }
    bind_exec(&b, &(mpl_exec_options){.checked = checked, .weight_seed = 5}, 3);
    r.n_rooms = check_rooms(b.exec);
    for (uint32_t round = 0; round < (options != NULL && options->parallel ? 6u : 2u); round++) {
        if (options != NULL && options->parallel && round > 1) {
            assert_ok(ctx, mpl_order_random(ctx, g, round, b.order));
            assert_ok(ctx, mpl_exec_set_order(b.exec, b.order));
        }
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
        for (uint32_t i = 0; i < g->n_outputs; i++) {
            assert_ok(ctx, mpl_exec_output(b.exec, i, data));
            if (round == 0)
                r.hash = mpl_hash(r.hash, data, g->value_bytes[g->output[i]]);
        }
    }
    assert_ok(ctx, mpl_exec_facts_get(b.exec, &facts));
    r.copied = facts.copied_bytes;
    unbind(&b);
    return r;
}

static result run(mpl_ctx *ctx, const mpl_graph *g, const mpl_planner *planner,
                  const mpl_problem_options *options, bool checked)
{
    return run_on(ctx, mpl_backend_find("ref"), g, planner, options, checked);
}

/* Cycles through the planners. */
static const mpl_planner *planner_of(uint64_t seed, bool parallel)
{
    uint32_t n = 0;

    while (mpl_planners[n] != NULL)
        n++;
    for (uint64_t i = seed % n;; i = (i + 1) % n) {
        const mpl_planner *one = mpl_planners[i];

        if (one->plan != NULL && (one->traits & MPL_SPREADS) == 0 &&
            (!parallel || (one->traits & MPL_SERIAL_ONLY) == 0))
            return one;
    }
}

TEST(shared_operands_keep_the_outputs)
{
    uint32_t n_saved = 0, n_copied = 0, n_lower = 0;

    for (uint64_t seed = 0; seed < draws(400); seed++) {
        owned_graph *g = random_rows(ctx, seed);
        bool parallel = seed % 5 == 2 || seed % 11 == 4;
        const mpl_planner *planner = planner_of(seed / 3, parallel);
        result alone = run(ctx, g, NULL, NULL, false), by[3] = {{0}};

        for (int concat = MPL_CONCAT_AUTO; concat <= MPL_CONCAT_COPY; concat++) {
            mpl_problem_options o = mpl_problem_options_default();

            o.concat = (mpl_concat)concat;
            o.pin_outputs = seed % 4 != 1;
            o.in_place = seed % 7 != 3;
            o.pin_inputs = seed % 3 != 2;
            o.parallel = parallel;
            by[concat] = run(ctx, g, planner, &o, seed % 2 == 0 && !parallel);
            if (by[concat].hash != alone.hash)
                fail_msg("seed %" PRIu64 ", concat %d, %s: outputs differ", seed, concat,
                         planner->name);
        }
        assert_true(parallel || (by[MPL_CONCAT_AUTO].bound <= by[MPL_CONCAT_COPY].bound &&
                                 by[MPL_CONCAT_AUTO].bound <= by[MPL_CONCAT_SHARE].bound));
        assert_true(by[MPL_CONCAT_AUTO].copied <= by[MPL_CONCAT_COPY].copied);
        assert_true(by[MPL_CONCAT_SHARE].copied <= by[MPL_CONCAT_AUTO].copied);
        n_saved += by[MPL_CONCAT_AUTO].copied < by[MPL_CONCAT_COPY].copied;
        n_copied += by[MPL_CONCAT_COPY].copied > 0;
        n_lower += by[MPL_CONCAT_AUTO].bound < by[MPL_CONCAT_COPY].bound;
    }
    print_message(
        "fewer bytes are copied in %u, less memory is needed in %u of %u graphs that copy\n",
        n_saved, n_lower, n_copied);
    assert_true(often(n_saved > 100 && n_copied > n_saved && n_lower > 30));
}

/* ---- operands that are boxes ---- */

/* Concats along any axis, on `ref`, which copies strided operands, and on `cpu`, which takes them
 * in place: outputs bit for bit as on that backend without sharing, and no more memory than with
 * copies. */
TEST(boxes_keep_the_outputs)
{
    static const char *const backends[] = {"ref", "cpu"};
    uint32_t n_boxes = 0, n_saved = 0, n_runs = 0, n_rooms = 0;

    for (uint64_t seed = 0; seed < draws(600); seed++) {
        const mpl_backend *backend = mpl_backend_find(backends[seed % 2]);
        mpl_graph *g = random_boxes(ctx, seed / 2);
        bool parallel = seed % 10 == 4;
        const mpl_planner *planner = planner_of(seed / 3, parallel);
        result alone, by[3];

        if (mpl_backend_absent(backend) != NULL) {
            mpl_graph_free(ctx, g);
            continue;
        }
        alone = run_on(ctx, backend, g, NULL, NULL, false);
        for (int concat = MPL_CONCAT_AUTO; concat <= MPL_CONCAT_COPY; concat++) {
            mpl_problem_options o = mpl_problem_options_default();
            mpl_value_map *map = NULL;
            mpl_problem *p = NULL;
            mpl_op order[64];

            o.concat = (mpl_concat)concat;
            o.pin_outputs = seed % 8 != 1;
            o.in_place = seed % 7 != 3;
            o.parallel = parallel;
            by[concat] = run_on(ctx, backend, g, planner, &o, seed % 3 != 0 && !parallel);
            if (by[concat].hash != alone.hash)
                fail_msg("seed %" PRIu64 ", concat %d, %s on %s: outputs differ", seed, concat,
                         planner->name, backend->name);
            n_rooms += by[concat].n_rooms;
            assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
            assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
            n_boxes += concat == MPL_CONCAT_SHARE && map->value_box != NULL;
            assert_true(concat != MPL_CONCAT_COPY || map->value_box == NULL);
            mpl_value_map_free(ctx, map), map = NULL;
            mpl_problem_free(ctx, p), p = NULL;
            o.boxes = false;
            assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
            assert_null(map->value_box);
            mpl_value_map_free(ctx, map);
            mpl_problem_free(ctx, p);
        }
        assert_true(parallel || by[MPL_CONCAT_AUTO].bound <= by[MPL_CONCAT_COPY].bound);
        n_saved += seed % 2 == 1 && by[MPL_CONCAT_SHARE].copied < by[MPL_CONCAT_COPY].copied;
        n_runs++;
        mpl_graph_free(ctx, g);
    }
    print_message("%u of %u runs have boxes; on cpu %u copy less than with copies\n", n_boxes,
                  n_runs, n_saved);
    assert_true(n_boxes > n_runs / 3);
    assert_true(often(n_rooms > 50));
    assert_true(often(mpl_backend_absent(mpl_backend_find("cpu")) != NULL || n_saved > 50));
}

/* Operands as boxes also where they are runs, as a problem for many sizes of a graph has them: the
 * storage is one part, and the outputs stay. */
TEST(runs_as_boxes_keep_the_outputs)
{
    static const char *const backends[] = {"ref", "cpu"};
    uint8_t boxes[64];
    uint32_t n_runs = 0;

    memset(boxes, MPL_SHARE_BOXES, sizeof boxes);
    for (uint64_t seed = 0; seed < draws(240); seed++) {
        const mpl_backend *backend = mpl_backend_find(backends[seed % 2]);
        mpl_graph *g = random_boxes(ctx, seed / 2 * 3);
        mpl_problem_options o = mpl_problem_options_default();
        owned_memory mpl_op *order = order_by(ctx, g, "given");
        owned_map *map = NULL;
        owned_problem *p = NULL;

        o.align = 4, o.pin_outputs = false;
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        n_runs += p->inside != NULL && seed / 2 * 3 % 4 != 0;
        mpl_problem_free(ctx, p), p = NULL;
        mpl_value_map_free(ctx, map), map = NULL;
        o.concat_shared = boxes;
        if (seed / 2 * 3 % 4 != 0 && mpl_backend_absent(backend) == NULL) { /* no reshapes */
            result alone = run_on(ctx, backend, g, NULL, NULL, false),
                   boxed = run_on(ctx, backend, g, planner_of(seed / 3, false), &o, false);

            assert_int_equal(boxed.hash, alone.hash);
            assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
            assert_null(p->inside);
        }
        mpl_graph_free(ctx, g);
    }
    assert_true(often(n_runs > 20));
}

/* Figures of split or unsplit storage: buffers, their bytes, bytes times steps, pairs. The runs
 * above verify it; here it must not change by a byte. Fewer is a gain: update the figures. More is
 * a loss. */
TEST(drawn_storage_needs_no_more)
{
    static const uint64_t want[2][MPL_CONCAT_COPY + 1][4] = {
        {{2742, 441792, 1646240, 321}, {2730, 440896, 1657056, 316}, {2943, 497856, 1791712, 332}},
        {{2604, 272016, 1088232, 394}, {2534, 264456, 1103904, 379}, {2982, 307848, 1075008, 471}}};
    bool lost = false;

    for (int boxes = 0; boxes < 2; boxes++)
        for (int concat = MPL_CONCAT_AUTO; concat <= MPL_CONCAT_COPY; concat++) {
            uint64_t got[4] = {0};

            for (uint64_t seed = 0; seed < 300; seed++) {
                owned_graph *g = boxes ? random_boxes(ctx, seed) : random_rows(ctx, seed);
                mpl_problem_options o = mpl_problem_options_default();
                owned_map *map = NULL;
                owned_problem *p = NULL;
                mpl_op order[64];

                o.concat = (mpl_concat)concat;
                o.boxes = boxes == 1;
                o.align = seed % 4 == 0 ? 4 : 64;
                o.pin_outputs = seed % 2 == 1;
                o.in_place = seed % 3 != 0;
                assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
                assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
                got[0] += p->n;
                got[3] += p->n_in_place;
                for (mpl_buffer b = 0; b < p->n; b++) {
                    got[1] += p->bytes[b];
                    got[2] += p->bytes[b] * (p->death[b] - p->birth[b]);
                }
            }
            if (memcmp(got, want[boxes][concat], sizeof got) != 0)
                print_error("{%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 "}\n", got[0],
                            got[1], got[2], got[3]),
                    lost = true;
        }
    assert_false(lost);
}

/* Images concatenated by channel in both layouts: kernels that take separated pixels or images copy
 * nothing. Those of convolutions need AVX2. */
TEST(images_need_no_copies)
{
    static const char *const networks[] = {"densenet121:image=32,batch=2", "inception_v3:image=75",
                                           "squeezenet:image=64,batch=3,classes=10"};
    const mpl_backend *cpu = mpl_backend_find("cpu");

    if (mpl_backend_absent(cpu) != NULL)
        skip_without("the backend cpu");
    for (size_t i = 0; i < 2 * (sizeof networks / sizeof *networks); i++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = zoo_graph(ctx, networks[i / 2]);
        uint64_t hash[2], copied = 0;

        if (i % 2 == 1)
            assert_ok(ctx, mpl_graph_channels_last(ctx, &g));
        o.concat = MPL_CONCAT_SHARE;
        for (int shared = 0; shared < 2; shared++) {
            mpl_exec_facts facts;
            owned_memory char *out;
            bound b;

            bind_device(ctx, cpu, g, "given", &(mpl_device_options){.n_threads = 2}, &b);
            if (shared)
                bind_problem(&b, &o, "greedy_size");
            bind_exec(&b, &(mpl_exec_options){.weight_seed = 5}, 3);
            assert_ok(ctx, mpl_exec_run(b.exec, NULL));
            out = outputs_of(ctx, g, b.exec);
            hash[shared] = mpl_hash(MPL_HASH_SEED, out, output_bytes(g));
            assert_ok(ctx, mpl_exec_facts_get(b.exec, &facts));
            copied = facts.copied_bytes;
            unbind(&b);
        }
        if (hash[0] != hash[1] || (copied != 0 && mpl_chain_widest() != MPL_CHAIN_PLAIN))
            fail_msg("%s%s: outputs %s, %" PRIu64 " bytes copied", networks[i / 2],
                     i % 2 == 1 ? ", channels last" : "", hash[0] == hash[1] ? "equal" : "differ",
                     copied);
    }
}

/* Layouts, and the bytes that a plain backend copies: each strided operand once per operation that
 * makes or reads it. Floats: 64 bytes are 16 of them. */
static const struct {
    const char *what, *text;
    uint64_t copied; /* on ref, with all concats sharing that can [byte] */
    uint32_t n_pairs;
} layouts[] = {
    {"an operand seen through other dims, of a concat that lies in a box",
     "graph g\ninput x f32 [2,4,4]\ns = slice(x) starts=[0] ends=[1] axes=[0]\na = tanh(s)\n"
     "b = relu(s)\nr = reshape(a) shape=[1,2,8]\ni = concat(a, b) axis=0\nc = tanh(x)\n"
     "o = concat(i, c) axis=1\ny = relu(o)\nz = softplus(r)\noutput y\noutput z\n",
     128 + 128 + 128, 2},
    ROW("the same, a concat further in",
        "graph g\ninput x f32 [3,4,4]\ns = slice(x) starts=[0] ends=[1] axes=[0]\na = tanh(s)\n"
        "b = relu(s)\nd = softplus(s)\nr = reshape(a) shape=[1,2,8]\ni = concat(a, b) axis=0\n"
        "j = concat(i, d) axis=0\nc = tanh(x)\no = concat(j, c) axis=1\ny = relu(o)\n"
        "z = softplus(r)\noutput y\noutput z\n",
        128 + 128 + 192, 2),
    ROW("a run that begins between two multiples of the alignment",
        "graph g\ninput x f32 [1,5]\na = tanh(x)\nb = relu(x)\nc = concat(a, b) axis=1\n"
        "y = softplus(c)\noutput y\n",
        20, 1),
    ROW("an operand that lies apart is read last: nothing is written over it",
        "graph g\ninput x f32 [2,16]\na = tanh(x)\nb = relu(x)\nc = concat(a, b) axis=1\n"
        "s = reduce_sum(c) axes=[1] keepdims=1\nt = add(a, s)\ny = softplus(t)\noutput y\n",
        128 + 128 + 128, 1),
    {"the last operand ends between two multiples",
     "graph g\ninput x f32 [1,16]\na = tanh(x)\nb = slice(a) starts=[0] ends=[5] axes=[1]\n"
     "d = relu(b)\nc = concat(a, d) axis=1\ny = reduce_sum(c) axes=[1]\noutput y\n",
     0, 0},
};

/* Parts begin at valid buffer offsets and together fill their whole. */
static void check_parts(const mpl_graph *g, const mpl_value_map *map, const mpl_problem *p,
                        uint32_t align)
{
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        assert_int_equal(p->inside_at[b] % align, 0);
    for (mpl_value v = 0; map->value_buffers != NULL && v < g->n_values; v++) {
        uint64_t bytes = 0;

        for (uint32_t k = 0; map->value_buffer[v] != MPL_NONE && k < map->value_buffers[v]; k++)
            bytes += p->bytes[map->value_buffer[v] + k];
        if (map->value_root[v] == v && bytes > 0)
            assert_int_equal(bytes, g->value_bytes[v]);
    }
}

/* Layouts that random graphs seldom have. */
TEST(layouts_are_as_said)
{
    static const char *const backends[] = {"ref", "cpu"};

    for (size_t i = 0; i < 2 * (sizeof layouts / sizeof *layouts); i++) {
        const mpl_backend *backend = mpl_backend_find(backends[i % 2]);
        mpl_problem_options o = mpl_problem_options_default();
        const char *text = layouts[i / 2].text;
        owned_map *map = NULL;
        owned_problem *p = NULL;
        owned_graph *g = NULL;
        result alone, shared;
        mpl_op order[64];

        if (mpl_backend_absent(backend) != NULL)
            continue;
        o.concat = MPL_CONCAT_SHARE;
        o.pin_outputs = false;
        assert_ok(ctx, mpl_text_read_memory(ctx, "layout", text, strlen(text), &g));
        assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        check_parts(g, map, p, o.align);
        alone = run_on(ctx, backend, g, NULL, NULL, false);
        shared = run_on(ctx, backend, g, mpl_planner_find("greedy_size"), &o, true);
        if (alone.hash != shared.hash || (i % 2 == 0 && shared.copied != layouts[i / 2].copied) ||
            p->n_in_place != layouts[i / 2].n_pairs)
            fail_msg("%s, on %s: outputs %s, %" PRIu64 " bytes copied, %u pairs",
                     layouts[i / 2].what, backends[i % 2],
                     alone.hash == shared.hash ? "equal" : "differ", shared.copied, p->n_in_place);
    }
}

/* A buffer at the offset of another whose last reader makes it: the graph must refuse this because
 * of where their values lie. */
static const struct {
    const char *what, *text, *in, *out;
} refused[] = {
    {"the operand that is read lies apart",
     "graph g\ninput x f32 [2,16]\na = tanh(x)\nb = relu(x)\nc = concat(a, b) axis=1\n"
     "s = reduce_sum(c) axes=[1] keepdims=1\nt = add(a, s)\ny = softplus(t)\noutput y\n",
     "c", "t"},
    ROW("the operand that is made lies apart",
        "graph g\ninput x f32 [4,16]\ns = slice(x) starts=[0] ends=[2] axes=[0]\na = sigmoid(s)\n"
        "b = relu(a)\nc = concat(a, b) axis=1\ny = reduce_sum(c) axes=[1]\noutput y\n",
        "x", "c"),
    {"the piece that is read begins elsewhere",
     "graph g\ninput x f32 [4,16]\ns = slice(x) starts=[2] ends=[4] axes=[0]\na = sigmoid(s)\n"
     "y = reduce_sum(a) axes=[1]\noutput y\n",
     "x", "a"},
};

TEST(values_apart_are_not_overwritten)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        mpl_buffer in, out;
        owned_map *map = NULL;
        owned_problem *p = NULL;
        owned_plan *plan = NULL;
        owned_graph *g = NULL;
        mpl_op order[64];

        o.concat = MPL_CONCAT_SHARE;
        o.parallel = true;
        o.pin_inputs = false;
        assert_ok(ctx, mpl_text_read_memory(ctx, "refused", refused[i].text,
                                            strlen(refused[i].text), &g));
        assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        plan = planned_by(ctx, "none", p);
        assert_ok(ctx, mpl_verify_graph(ctx, g, map, p, plan));
        in = map->value_buffer[mpl_graph_find(g, refused[i].in)];
        out = map->value_buffer[mpl_graph_find(g, refused[i].out)];
        assert_true(in < p->n && out < p->n && in != out && p->bytes[out] <= p->bytes[in]);
        plan->offset[out] = plan->offset[in];
        if (mpl_verify_graph(ctx, g, map, p, plan) != MPL_EINVALID)
            fail_msg("%s: allowed", refused[i].what);
    }
}

/* Maps and plans with wrong locations of values are refused before anything runs. */
TEST(wrong_places_are_refused)
{
    static const char *const text[] =
        ROW("graph g\ninput x f32 [2,16]\na = tanh(x)\nb = relu(x)\nc = concat(a, b) axis=1\ny = "
            "softplus(c)\noutput y\n",
            "graph g\ninput x f32 [1,16]\na = tanh(x)\nb = relu(x)\nc = concat(a, b) axis=1\ny = "
            "softplus(c)\noutput y\n");

    for (int fault = 0; fault < 6; fault++) { /* 0, 1: none */
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = text_graph(ctx, text[fault % 2]);
        mpl_buffer part;
        mpl_value v = mpl_graph_find(g, "b");
        bound b;

        o.concat = MPL_CONCAT_SHARE;
        o.in_place = false;
        bind_device(ctx, mpl_backend_find("ref"), g, "given", &(mpl_device_options){.n_threads = 1},
                    &b);
        bind_problem(&b, &o, "none");
        part = b.map->value_buffer[v];
        if (fault == 2)
            b.map->value_box[v].offset++; /* it ends one element past the result */
        if (fault == 3)
            b.plan->offset[part] -= 64, b.p->bytes[part] += 64; /* over the part before it */
        if (fault == 4)
            b.map->value_box[v].stride[0]++;
        if (fault == 5)
            b.p->bytes[part] -= 64;
        if (mpl_exec_new(ctx, b.backend, b.dev, g, b.order, b.p, b.map, b.plan,
                         &(mpl_exec_options){.weight_seed = 5},
                         &b.exec) != (fault < 2 ? MPL_OK : MPL_EINVALID))
            fail_msg("fault %d: %s", fault, fault < 2 ? ctx->message : "taken");
        unbind(&b);
    }
}

/* ---- parts with live ranges of their own ---- */

static const struct {
    const char *what, *text;
    uint64_t parts, whole; /* least bytes without in-place pairs */
} texts[] = {
    ROW("a piece that nobody needs any more makes room",
        "graph g\ninput x f32 [1,64]\na = softplus(x)\np, q = split(a) axis=1 split=[32,32]\n"
        "r = softplus(p)\nt = softplus(r)\nu = add(t, q)\noutput u\n",
        384, 512),
    ROW("where the last operand will be there is room until then",
        "graph g\ninput x f32 [1,32]\ny = softplus(x)\nw = softplus(y)\nv = softplus(w)\n"
        "z = softplus(v)\nc = concat(y, z) axis=1\nu = softplus(c)\noutput u\n",
        384, 512),
    {"what lies behind a slice ends at once",
     "graph g\ninput x f32 [1,64]\na = softplus(x)\ns = slice(a) starts=[0] ends=[16] axes=[1]\n"
     "b = softplus(x)\nd = reduce_sum(b) axes=[1] keepdims=1\nu = add(s, d)\noutput u\n",
     324, 516},
};

/* Exact figures with parts, and with wholes, as for planners without families. */
TEST(parts_make_room)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = NULL;
        result alone, exact, greedy, pool;

        o.in_place = false;
        o.concat = MPL_CONCAT_SHARE;
        assert_ok(ctx,
                  mpl_text_read_memory(ctx, "parts", texts[i].text, strlen(texts[i].text), &g));
        alone = run(ctx, g, NULL, NULL, false);
        exact = run(ctx, g, mpl_planner_find("exact"), &o, true);
        greedy = run(ctx, g, mpl_planner_find("greedy_size"), &o, true);
        pool = run(ctx, g, mpl_planner_find("mxnet"), &o, true);
        if (exact.planned != texts[i].parts || greedy.planned != texts[i].parts ||
            pool.planned < texts[i].whole || exact.bound != texts[i].parts)
            fail_msg("%s: exact %" PRIu64 ", greedy_size %" PRIu64 ", bound %" PRIu64
                     ", mxnet %" PRIu64,
                     texts[i].what, exact.planned, greedy.planned, exact.bound, pool.planned);
        assert_int_equal(exact.hash, alone.hash);
        assert_int_equal(greedy.hash, alone.hash);
        assert_int_equal(pool.hash, alone.hash);
        assert_int_equal(exact.copied, 0);
    }
}

/* One run under --checked of a plan for a problem that may be wrong: its status, and whether the
 * outputs are `hash`. */
static mpl_status run_checked(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                              const mpl_problem *p, const mpl_value_map *map, const mpl_plan *plan,
                              uint64_t hash, bool *equal)
{
    const mpl_backend *backend = mpl_backend_find("ref");
    mpl_exec_options how = {.checked = true, .weight_seed = 5};
    uint64_t got = MPL_HASH_SEED;
    mpl_device *dev = NULL;
    mpl_exec *exec = NULL;
    float data[512];
    mpl_status st;

    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, p, map, plan, &how, &exec));
    check_rooms(exec);
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 0, 3, data));
    assert_ok(ctx, mpl_exec_set_input(exec, 0, data));
    st = mpl_exec_run(exec, NULL);
    for (uint32_t i = 0; st == MPL_OK && i < g->n_outputs; i++) {
        assert_ok(ctx, mpl_exec_output(exec, i, data));
        got = mpl_hash(got, data, g->value_bytes[g->output[i]]);
    }
    *equal = got == hash;
    mpl_exec_free(ctx, exec);
    backend->close(dev);
    return st;
}

/* A part that is declared to end a step too early: if its bytes are then reused, the run reports
 * it. */
TEST(short_lives_are_caught)
{
    mpl_problem_options o = mpl_problem_options_default();
    uint32_t n_caught = 0, n_tried = 0;

    o.concat = MPL_CONCAT_SHARE;
    o.in_place = false;
    for (uint64_t seed = 0; seed < draws(120); seed++) {
        owned_graph *g = random_rows(ctx, seed);
        uint64_t hash = run(ctx, g, NULL, NULL, false).hash;
        owned_map *map = NULL;
        owned_problem *p = NULL;
        mpl_op order[64];

        assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++) {
            owned_plan *plan = NULL;
            bool equal = false;
            mpl_status st;

            if (p->death[b] - p->birth[b] < 2)
                continue;
            p->death[b]--;
            plan = planned_by(ctx, "greedy_size", p);
            st = run_checked(ctx, g, order, p, map, plan, hash, &equal);
            assert_true(st == MPL_EINVALID || (st == MPL_OK && equal));
            n_caught += st == MPL_EINVALID;
            n_tried++;
            p->death[b]++;
        }
    }
    print_message("%u of %u lives that are too short let others in, which is seen\n", n_caught,
                  n_tried);
    assert_true(often(n_caught > 50));
}

TESTS(shared_operands_keep_the_outputs, boxes_keep_the_outputs, runs_as_boxes_keep_the_outputs,
      drawn_storage_needs_no_more, images_need_no_copies, layouts_are_as_said,
      values_apart_are_not_overwritten, wrong_places_are_refused, parts_make_room,
      short_lives_are_caught)
