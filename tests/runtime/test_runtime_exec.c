/* test_runtime_exec.c -- running a graph inside a plan's arenas.
 *
 * Fault: outputs that depend on the plan (a wrong offset, lifetime, view or in-place pair), wrong
 * plans and kernels that --checked must name, pages touched beyond the plan, memory allocated while
 * running, leaks. */
#include "tests/runtime/bound_graph.h"

#include "planners/verify/verify.h"
#include "runtime/machine.h"

#include <math.h>

/* ---- counting heap allocations ---- */

static bool counting;
static size_t n_taken, largest_taken;

#if MPL_CHECK >= 3 || defined(__SANITIZE_THREAD__) /* the address sanitizer's build */
#define COUNTS_HEAP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_HEAP 0
#endif
#endif
#ifndef COUNTS_HEAP
#define COUNTS_HEAP 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static void note(size_t n)
{
    if (counting) {
        n_taken++;
        largest_taken = n > largest_taken ? n : largest_taken;
    }
}

void *malloc(size_t n)
{
    note(n);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    note(n * size);
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    note(n);
    return __libc_realloc(p, n);
}
int posix_memalign(void **p, size_t align, size_t n)
{
    note(n);
    *p = __libc_memalign(align, n);
    return *p != NULL ? 0 : 12;
}
#endif

/* ---- graphs ---- */

static mpl_value op1(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_op_kind kind, uint32_t n_in,
                     const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    mpl_value out;

    assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, name, n_in, in, n_attr, attr, 1, &name, &out));
    return out;
}

#define OP1(name, kind, ...)                                                                       \
    op1(ctx, g, name, MPL_OP_##kind, sizeof((mpl_value[]){__VA_ARGS__}) / sizeof(mpl_value),       \
        (mpl_value[]){__VA_ARGS__}, n_attr, attr)

static mpl_value weight(mpl_ctx *ctx, mpl_graph *g, const char *name, uint32_t rank, int64_t a,
                        int64_t b, int64_t c)
{
    mpl_value v;

    assert_ok(ctx, mpl_graph_add_value(ctx, g, name, MPL_WEIGHT, MPL_TYPE_f32,
                                       &(mpl_shape){rank, {a, b, c, c}}, &v));
    return v;
}

/* Some of each case: branches, a residual sum, views of inner values, concat, split, dead values,
 * an integer branch. Its outputs are a value, a view of an inner value, a view of an input, and an
 * inner value with other readers. */
static mpl_graph *small_graph(mpl_ctx *ctx)
{
    mpl_graph *g;
    mpl_value x, y, z, left, right, parts[2];
    uint32_t n_attr = 0;
    const mpl_attr *attr = NULL;
    const mpl_attr pads[] = {MPL_INTS(pads, 4, ((const int64_t[]){1, 1, 1, 1}))};
    const mpl_attr pool[] = {MPL_INTS(kernel_shape, 2, ((const int64_t[]){2, 2})),
                             MPL_INTS(strides, 2, ((const int64_t[]){2, 2}))};
    const mpl_attr axis[] = {MPL_INT(axis, 1)};
    static const char *const names[] = {"half0", "half1"};

    assert_ok(ctx, mpl_graph_new(ctx, "small", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32,
                                       &(mpl_shape){4, {1, 4, 12, 12}}, &x));
    n_attr = 1, attr = pads;
    y = OP1("conv0", conv, x, weight(ctx, g, "w0", 4, 8, 4, 3), weight(ctx, g, "b0", 1, 8, 0, 0));
    n_attr = 0;
    y = OP1("norm0", batch_norm, y, weight(ctx, g, "scale", 1, 8, 0, 0),
            weight(ctx, g, "shift", 1, 8, 0, 0), weight(ctx, g, "mean", 1, 8, 0, 0),
            weight(ctx, g, "var", 1, 8, 0, 0));
    y = OP1("relu0", relu, y);
    n_attr = 1, attr = pads;
    left = OP1("conv1", conv, y, weight(ctx, g, "w1", 4, 8, 8, 3));
    n_attr = 0;
    left = OP1("tanh1", tanh, left);
    right = OP1("sigmoid2", sigmoid, y);
    OP1("dead", abs, right);
    y = OP1("sum", add, left, right);
    z = OP1("square", mul, y, y);
    n_attr = 1, attr = axis;
    z = OP1("both", concat, z, right, y);
    assert_ok(ctx,
              mpl_graph_add_op(ctx, g, MPL_OP_split, "halves", 1, &z, 1, axis, 2, names, parts));
    n_attr = 2, attr = pool;
    y = OP1("pool", max_pool, parts[1]);
    n_attr = 0;
    y = OP1("flat", flatten, y);
    OP1("again", identity, x);
    z = OP1("logits", gemm, y, weight(ctx, g, "w2", 2, 12 * 36, 10, 0),
            weight(ctx, g, "b2", 1, 10, 0, 0));
    z = OP1("scaled", softmax, z);
    OP1("twice", add, z, z);
    static const char *const outputs[] = {"twice", "flat", "again", "half0"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, mpl_graph_find(g, outputs[i])));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

static mpl_graph *graph_of(mpl_ctx *ctx, const char *name)
{
    mpl_graph *g = NULL;

    if (strcmp(name, "small") == 0)
        return small_graph(ctx);
    assert_ok(ctx, mpl_zoo_build(ctx, name, &g));
    return g;
}

/* ---- plans ---- */

/* By birth or by size, each at the lowest offset that fits; or end to end. */
enum { BY_BIRTH, BY_SIZE, APART, N_WAYS };
static const char *const way_planner[] = {"first_fit", "greedy_size", "none"};

/* ---- running ---- */

static void bind_plan(bound *b, mpl_problem_options options, bool workspaces, int way)
{
    owned_memory uint64_t *bytes = mpl_alloc(b->ctx, b->g->n_ops, sizeof *bytes);

    assert_non_null(bytes);
    assert_ok(b->ctx, mpl_exec_workspaces(b->ctx, b->backend, b->dev, b->g, bytes));
    options.op_workspace_bytes = workspaces ? bytes : NULL;
    bind_problem(b, &options, way_planner[way]);
    b->plan->claim = MPL_FEASIBLE; /* tests move buffers */
    b->plan->bound_bytes = b->plan->n_witness = 0;
    assert_ok(b->ctx, mpl_verify(b->ctx, b->p, b->plan));
}

static const mpl_device_options two_threads = {.n_threads = 2};
static const mpl_exec_options plain = {.weight_seed = 5},
                              with_checks = {.checked = true, .weight_seed = 5};

static char *unshared_outputs(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g)
{
    bound b;
    char *all;

    bind_device(ctx, backend, g, "given", &two_threads, &b);
    bind_exec(&b, &plain, 3);
    assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    all = outputs_of(ctx, g, b.exec);
    unbind(&b);
    return all;
}

/* ---- shared equals unshared ---- */

static const char *const graphs[] = {"small",
                                     "mlp",
                                     "mnist_conv:batch=2",
                                     "lstm:layers=2,steps=4,batch=2,hidden=32",
                                     "resnet18:image=32",
                                     "densenet121:image=32",
                                     "inception_v1:image=64",
                                     "mobilenet_v2:image=32"};

/* Large graphs are planned in one way only: by size and checked, or by birth and unchecked. */
static void check_shared(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g,
                         const char *want, bool checked)
{
    bool large = g->n_ops > 40;

    for (uint32_t o = 0; mpl_orders[o] != NULL && (o == 0 || !large); o++)
        for (int way = 0; way < N_WAYS; way++) {
            bound b;
            char *got;

            if (large && way != (checked ? BY_SIZE : BY_BIRTH))
                continue;
            bind_device(ctx, backend, g, mpl_orders[o]->name, &two_threads, &b);
            bind_plan(&b, mpl_problem_options_default(), true, way);
            bind_exec(&b, checked ? &with_checks : &plain, 3);
            for (int repeat = 0; repeat < 2; repeat++) {
                assert_ok(ctx, mpl_exec_run(b.exec, NULL));
                got = outputs_of(ctx, g, b.exec);
                if (memcmp(got, want, output_bytes(g)) != 0)
                    fail_msg("%s on %s, order %s, way %d, run %d: outputs differ from those of the "
                             "unshared run",
                             g->name, backend->name, mpl_orders[o]->name, way, repeat);
                mpl_free(ctx, got);
            }
            unbind(&b);
        }
}

TEST(shared_equals_unshared)
{
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        owned_graph *g = graph_of(ctx, graphs[i]);

        for (uint32_t k = 0; mpl_backends[k] != NULL; k++) {
            if (mpl_backend_absent(mpl_backends[k]) != NULL ||
                (strcmp(mpl_backends[k]->name, "ref") == 0 && i > 3))
                continue; /* the plain loops take seconds on the larger ones */
            owned_memory char *want = unshared_outputs(ctx, mpl_backends[k], g);
            check_shared(ctx, mpl_backends[k], g, want, true);
            check_shared(ctx, mpl_backends[k], g, want, false);
        }
    }
}

/* Every combination of planning options: bit i of `mask` changes option i from its default. */
TEST(options_do_not_change_outputs)
{
    owned_graph *g = small_graph(ctx);

    for (uint32_t k = 0; mpl_backends[k] != NULL; k++) {
        if (mpl_backend_absent(mpl_backends[k]) != NULL)
            continue;
        owned_memory char *want = unshared_outputs(ctx, mpl_backends[k], g);
        for (uint32_t mask = 0; mask < 128; mask++) {
            mpl_problem_options o = mpl_problem_options_default();
            bound b;
            owned_memory char *got;

            o.in_place = !(mask & 1);
            o.views = !(mask & 2);
            o.pin_weights = !(mask & 4);
            o.pin_inputs = !(mask & 8);
            o.pin_outputs = !(mask & 16);
            o.plan_workspaces = mask & 32;
            bind_device(ctx, mpl_backends[k], g, "given", &two_threads, &b);
            bind_plan(&b, o, !(mask & 64), BY_SIZE);
            bind_exec(&b, &with_checks, 3);
            assert_ok(ctx, mpl_exec_run(b.exec, NULL));
            assert_ok(ctx, mpl_exec_run(b.exec, NULL));
            got = outputs_of(ctx, g, b.exec);
            if (memcmp(got, want, output_bytes(g)) != 0)
                fail_msg("options %#x on %s: outputs differ from those of the unshared run", mask,
                         mpl_backends[k]->name);
            unbind(&b);
        }
    }
}

/* ---- --checked ---- */

static mpl_buffer buffer_of(const bound *b, const char *value)
{
    mpl_buffer id = b->map->value_buffer[mpl_graph_find(b->g, value)];

    assert_int_not_equal(id, MPL_NONE);
    return id;
}

/* Plans that put the second value where the first is still needed: a step that writes must be
 * named. */
static const struct {
    const char *victim, *intruder;
    uint64_t shift; /* of the second value, from the first one's offset [byte] */
} overlaps[] = {
    {"relu0", "conv1", 0}, {"relu0", "conv1", 64},    {"sigmoid2", "sum", 0},
    {"both", "half1", 0},  {"relu0", "sigmoid2", 64},
};

/* A backend one operation of which does nothing: its outputs are poisoned all the same. */
static const char *lazy_op;

static mpl_status lazy_run_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    if (strcmp(call->graph->op_name[call->op], lazy_op) == 0)
        return MPL_OK;
    return mpl_backend_find("ref")->run_op(dev, prepared, call);
}

static void check_wrong_plan(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g, size_t i)
{
    mpl_problem_options o = mpl_problem_options_default();
    bound b;
    mpl_buffer victim;

    o.views = false; /* each value has its own buffer */
    bind_device(ctx, backend, g, "given", &two_threads, &b);
    bind_plan(&b, o, true, APART);
    victim = buffer_of(&b, overlaps[i].victim);
    b.plan->offset[buffer_of(&b, overlaps[i].intruder)] =
        b.plan->offset[victim] + overlaps[i].shift;
    bind_exec(&b, &with_checks, 3);
    assert_status(ctx, mpl_exec_run(b.exec, NULL), MPL_EINVALID);
    if (strstr(ctx->message, overlaps[i].victim) == NULL ||
        strstr(ctx->message, overlaps[i].intruder) == NULL)
        fail_msg("'%s' does not name '%s' and '%s'", ctx->message, overlaps[i].victim,
                 overlaps[i].intruder);
    unbind(&b);
}

TEST(wrong_plans_are_caught)
{
    mpl_backend lazy = *mpl_backend_find("ref");
    owned_graph *g;

    lazy.run_op = lazy_run_op;
    g = small_graph(ctx);
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
        for (uint32_t k = 0; mpl_backends[k] != NULL; k++)
            if (mpl_backend_absent(mpl_backends[k]) == NULL)
                check_wrong_plan(ctx, mpl_backends[k], g, i);
        lazy_op = strcmp(overlaps[i].intruder, "half1") == 0 ? "halves" : overlaps[i].intruder;
        check_wrong_plan(ctx, &lazy, g, i);
    }
}

TEST(plans_outside_of_their_arena_are_refused)
{
    bound b;
    mpl_exec *exec;
    owned_graph *g = small_graph(ctx);

    bind_device(ctx, mpl_backend_find("ref"), g, "given", &two_threads, &b);
    bind_plan(&b, mpl_problem_options_default(), true, BY_SIZE);
    for (mpl_buffer i = 0; i < b.p->n; i++) {
        uint64_t offset = b.plan->offset[i];
        const uint64_t wrong[] = {b.plan->pool_bytes[0], UINT64_MAX & ~UINT64_C(63), offset + 4};

        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            b.plan->offset[i] = wrong[k];
            assert_status(ctx,
                          mpl_exec_new(ctx, b.backend, b.dev, g, b.order, b.p, b.map, b.plan,
                                       &(mpl_exec_options){0}, &exec),
                          MPL_EINVALID);
        }
        b.plan->offset[i] = offset;
    }
    unbind(&b);
}

/* Each text has three operations that can be reordered, in the body of a loop or not. */
static const struct order_case {
    const char *text;
    bool parallel;
    mpl_op order[4];
    const char *refused; /* part of the message; NULL: accepted */
} order_cases[] = {
#define FLAT "graph t\ninput x f32 [8]\na = relu(x)\nb = tanh(x)\nc = add(a, b)\noutput c\n"
#define LOOP                                                                                       \
    "graph t\ninput x f32 [8]\nblock body\nparam i i64 []\nparam p f32 [8]\na = relu(p)\nb = "     \
    "tanh(p)\n"                                                                                    \
    "c = add(a, b)\nyield _, c\ny = while body(_, _, x) carried=1 trips=2\noutput y\n"
    {FLAT, false, {0, 1, 2}, NULL},
    {FLAT, false, {1, 0, 2}, "it was planned for step"},
    {FLAT, false, {0, 2, 1}, "comes before what makes 'b'"},
    {FLAT, false, {0, 0, 2}, "no permutation"},
    {FLAT, true, {1, 0, 2}, NULL},
    {FLAT, true, {2, 0, 1}, "comes before what makes 'a'"},
    {LOOP, false, {0, 1, 2, 3}, NULL},
    {LOOP, false, {1, 0, 2, 3}, "stands elsewhere in its block"},
    {LOOP, true, {0, 1, 2, 3}, NULL},
    {LOOP, true, {1, 0, 2, 3}, "stands elsewhere in its block"},
};

/* Fault: a plan is run in another order than its own, and overwrites what is still read. */
TEST(orders_are_compared_with_the_plan)
{
    for (size_t i = 0; i < sizeof order_cases / sizeof *order_cases; i++) {
        const struct order_case *c = &order_cases[i];
        mpl_problem_options options = mpl_problem_options_default();
        mpl_exec *exec = NULL;
        bound b;
        owned_graph *g = text_graph(ctx, c->text);

        bind_device(ctx, mpl_backend_find("ref"), g, "given", &two_threads, &b);
        options.parallel = c->parallel;
        bind_plan(&b, options, false, c->parallel ? APART : BY_BIRTH);
        assert_status(ctx,
                      mpl_exec_new(ctx, b.backend, b.dev, g, c->order, b.p, b.map, b.plan,
                                   &(mpl_exec_options){0}, &exec),
                      c->refused != NULL ? MPL_EINPUT : MPL_OK);
        if (c->refused != NULL && strstr(ctx->message, c->refused) == NULL)
            fail_msg("case %zu: '%s' does not say '%s'", i, ctx->message, c->refused);
        mpl_exec_free(ctx, exec);
        unbind(&b);
    }
}

/* A backend one operation of which also changes a wrong byte: `shift` from the first byte of a
 * value that it or an earlier one reads or writes, or of the value pool's arena. */
static struct {
    const char *op;
    mpl_value value; /* MPL_NONE: the arena */
    int64_t shift;
    char *base;
} wild;

static void find_base(const mpl_tensor *tensor, const mpl_value *value, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (wild.value != MPL_NONE && value[i] == wild.value)
            wild.base = tensor[i].data;
}

static mpl_status wild_run_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    const mpl_graph *g = call->graph;
    mpl_status st = mpl_backend_find("ref")->run_op(dev, prepared, call);

    find_base(call->in, g->op_in + g->op_in_begin[call->op], call->n_in);
    find_base(call->out, g->op_out + g->op_out_begin[call->op], call->n_out);
    if (strcmp(g->op_name[call->op], wild.op) == 0)
        wild.base[wild.shift] ^= 0x55;
    return st;
}

static mpl_status wild_arena_new(mpl_device *dev, uint64_t bytes, void **base)
{
    mpl_status st = mpl_backend_find("ref")->arena_new(dev, bytes, base);

    if (wild.base == NULL) /* the first one is the value pool's; a guard page precedes the values */
        wild.base = (char *)*base + 4096;
    return st;
}

TEST(wild_kernels_are_caught)
{
    static const struct {
        const char *op, *value;
        int64_t shift;
    } rows[] = ROW({"sum", NULL, -1}, {"sum", NULL, -4000}, {"conv1", "relu0", 17},
                   {"conv1", "w1", 3}, {"relu0", "x", 0}, {"pool", "half0", 5},
                   {"sum", "conv1", 8 * 144 * 4}, {"tanh1", "relu0", -1}, {"scaled", "flat", 100},
                   {"twice", "both", 24 * 144 * 4 + 4095});
    mpl_backend backend = *mpl_backend_find("ref");
    owned_graph *g;

    backend.run_op = wild_run_op;
    backend.arena_new = wild_arena_new;
    g = small_graph(ctx);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bound b;

        wild.op = rows[i].op;
        wild.value = rows[i].value != NULL ? mpl_graph_find(g, rows[i].value) : MPL_NONE;
        wild.shift = rows[i].shift;
        wild.base = NULL;
        bind_device(ctx, &backend, g, "given", &two_threads, &b);
        bind_plan(&b, mpl_problem_options_default(), true, APART);
        bind_exec(&b, &with_checks, 3);
        if (mpl_exec_run(b.exec, NULL) != MPL_EINVALID)
            fail_msg("row %zu: '%s' wrote astray and nobody saw it", i, rows[i].op);
        if (strstr(ctx->message, rows[i].op) == NULL && strstr(ctx->message, "weight") == NULL)
            fail_msg("row %zu: '%s' does not name '%s'", i, ctx->message, rows[i].op);
        unbind(&b);
    }
}

/* ---- memory ---- */

static uint64_t whole_pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

TEST(only_planned_pages_become_resident)
{
    mpl_exec_facts facts;
    owned_graph *g = graph_of(ctx, "resnet18:image=64");

    for (int way = 0; way < N_WAYS; way++) {
        const uint64_t hole = way == BY_SIZE ? 16 << 20 : 0; /* uncovered pages stay untouched */
        bound b;

        bind_device(ctx, mpl_backend_find("cpu"), g, "given", &two_threads, &b);
        bind_plan(&b, mpl_problem_options_default(), true, way);
        for (mpl_buffer i = 0; i < b.p->n; i++)
            b.plan->offset[i] += b.p->pool[i] == 0 ? hole : 0;
        assert_ok(ctx, mpl_verify(ctx, b.p, b.plan));
        bind_exec(&b, &plain, 3);
        assert_ok(ctx, mpl_exec_facts_get(b.exec, &facts));
        assert_int_equal(facts.arena_bytes, b.plan->peak_bytes);
        assert_int_equal(facts.measured_bytes, 0);
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
        assert_ok(ctx, mpl_exec_facts_get(b.exec, &facts));
        assert_true(facts.measured_bytes > 0 &&
                    facts.measured_bytes + hole <= whole_pages(facts.arena_bytes));
        if (hole == 0) /* plans without page-sized holes: all of it is used */
            assert_true(facts.measured_bytes + 4096 >= facts.arena_bytes);
        assert_true(facts.workspace_bytes > 0 && facts.weight_bytes > 40e6 &&
                    facts.pinned_bytes > 0);
        unbind(&b);
    }
}

/* copied_bytes counts concat and split, and views only if copied. */
TEST(copies_are_counted)
{
    mpl_exec_facts facts;
    owned_graph *g = small_graph(ctx);

    for (int views = 0; views < 2; views++) {
        mpl_problem_options o = mpl_problem_options_default();
        uint64_t both = 24 * 144 * 4, halves = both, flat = 12 * 36 * 4, again = 4 * 144 * 4;
        bound b;

        o.views = views;
        o.in_place = false;
        o.concat = MPL_CONCAT_COPY;
        bind_device(ctx, mpl_backend_find("ref"), g, "given", &two_threads, &b);
        bind_plan(&b, o, true, BY_SIZE);
        bind_exec(&b, &plain, 3);
        assert_ok(ctx, mpl_exec_facts_get(b.exec, &facts));
        assert_int_equal(facts.copied_bytes, both + (views ? 0 : halves + flat + again));
        unbind(&b);
    }
}

/* memplan itself allocates nothing while it runs. oneDNN's matrix product allocates pack buffers
 * during a call. */
TEST(nothing_is_allocated_while_running)
{
    if (!COUNTS_HEAP) {
        print_message("skip: %s: a sanitizer owns malloc\n", __func__);
        skip();
    }
    for (size_t i = 0; i < 5; i++) {
        owned_graph *g = graph_of(ctx, graphs[i]);

        for (uint32_t k = 0; mpl_backends[k] != NULL; k++) {
            bool is_ref = strcmp(mpl_backends[k]->name, "ref") == 0;
            int64_t asked, live;
            bound b;

            if (mpl_backend_absent(mpl_backends[k]) != NULL || (is_ref && i > 3) ||
                strcmp(mpl_backends[k]->name, "cuda") == 0)
                continue;
            bind_device(ctx, mpl_backends[k], g, "given", &two_threads, &b);
            bind_plan(&b, mpl_problem_options_default(), true, BY_SIZE);
            bind_exec(&b, &plain, 3);
            assert_ok(ctx, mpl_exec_run(b.exec, NULL));
            asked = ctx->n_allocs, live = ctx->n_live;
            n_taken = largest_taken = 0;
            counting = true;
            mpl_exec_run(b.exec, NULL);
            counting = false;
            assert_int_equal(ctx->n_allocs, asked);
            assert_int_equal(ctx->n_live, live);
            if (is_ref)
                assert_int_equal(n_taken, 0);
            assert_in_range(largest_taken, 0, 1 << 20);
            unbind(&b);
        }
    }
}

TEST(failing_allocations_leave_nothing)
{
    owned_graph *g = small_graph(ctx);

    for (uint32_t k = 0; mpl_backends[k] != NULL; k++) {
        bound b;
        mpl_status st = MPL_EMEM;

        if (mpl_backend_absent(mpl_backends[k]) != NULL)
            continue;
        for (int64_t at = 0; st == MPL_EMEM; at++) {
            ctx->fail_after = ctx->n_allocs + at;
            st = mpl_backends[k]->open(ctx, &(mpl_device_options){0}, &b.dev);
            ctx->fail_after = -1;
        }
        assert_ok(ctx, st);
        mpl_backends[k]->close(b.dev);
        st = MPL_EMEM;
        bind_device(ctx, mpl_backends[k], g, "given", &two_threads, &b);
        bind_plan(&b, mpl_problem_options_default(), true, BY_SIZE);
        for (int64_t at = 0; st == MPL_EMEM; at++) {
            int64_t live = ctx->n_live;

            ctx->fail_after = ctx->n_allocs + at;
            st = mpl_exec_new(ctx, b.backend, b.dev, g, b.order, b.p, b.map, b.plan,
                              &(mpl_exec_options){.checked = true}, &b.exec);
            ctx->fail_after = -1;
            if (st != MPL_OK)
                assert_int_equal(ctx->n_live, live);
        }
        assert_ok(ctx, st);
        unbind(&b);
    }
}

/* ---- weights ---- */

/* Random weights keep the activations of deep networks finite and nonzero; other seeds give other
 * outputs. */
TEST(random_weights_are_sane)
{
    static const char *const deep[] = {"resnet152:image=32", "densenet121:image=32",
                                       "vgg16:image=32", "inception_v3:image=75",
                                       "mobilenet_v2:image=32"};

    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        owned_graph *g = graph_of(ctx, deep[i]);
        owned_memory float *out = (float *)unshared_outputs(ctx, mpl_backend_find("cpu"), g);
        uint64_t n = output_bytes(g) / sizeof *out;
        float low = out[0], high = out[0];

        for (uint64_t k = 0; k < n; k++) {
            assert_true(isfinite(out[k]));
            low = fminf(low, out[k]), high = fmaxf(high, out[k]);
        }
        assert_true(high - low > 1e-4f && high < 1e6f && low > -1e6f);
    }
}

TESTS(shared_equals_unshared, options_do_not_change_outputs, wrong_plans_are_caught,
      plans_outside_of_their_arena_are_refused, orders_are_compared_with_the_plan,
      wild_kernels_are_caught, only_planned_pages_become_resident, copies_are_counted,
      nothing_is_allocated_while_running, failing_allocations_leave_nothing,
      random_weights_are_sane)
