/* Training graphs on every backend that supports them: planned equal to unshared bit for bit, cpu
 * near ref, state that starts anew or carries over. Fault: a weight updated too early or in the
 * wrong place, a wrong primitive, state that leaks between runs. */
#include "tests/runtime/bound_graph.h"

#include "graphs/ops/ops_priv.h"
#include "planners/verify/verify.h"
#include "tests/device/cuda_fake.h"
#include "tests/device/cudnn_host.h"

#include <math.h>

typedef struct setting {
    const char *spec;
    double tolerance; /* of others against ref, relative to the largest element of an output */
} setting;

static const setting settings[] = {
    {"mlp:batch=5,input=7,hidden=6,classes=4,mode=train,update=sgd", 1e-5},
    {"mnist_conv:batch=3,image=8,mode=train,update=adagrad", 1e-4},
    {"mnist_conv:batch=3,image=8,mode=train,update=adam,products=apart", 1e-2},
    {"randwire:regime=cell,batch=2,image=32,channels=4,nodes=6,mode=train,update=momentum", 1e-3},
    {"lstm:batch=2,layers=2,steps=4,hidden=5,mode=train,update=sgd,accumulate=chain", 1e-5},
    {"seq2seq:steps=3,most=4,hidden=8,vocab=10,batch=2,mode=train,update=momentum", 1e-5},
    {"offset2bbox:batch=2,boxes=30,mode=train,update=sgd", 1e-5},
    {"ssd_boxes:batch=2,boxes=30,classes=3,mode=train,update=adagrad", 1e-5},
    {"yolo_boxes:cells=4,classes=3,mode=train,update=sgd", 1e-5},
    ROW("graph g\ninput x f32 [2,4,6,6]\nweight w f32 [4,4,3,3]\nweight scale f32 [4]\n"
        "weight b f32 [4]\nweight mean f32 [4]\nweight var f32 [4]\nblock c\n  param r i64 []\n"
        "  param h f32 [2,4,6,6]\n  p = conv(h, w) pads=[1,1,1,1]\n"
        "  m = batch_norm(p, scale, b, mean, var)\n  t = relu(m)\nyield _, t\n"
        "y = while c(_, _, x) carried=1 trips=2\noutput y\n",
        1e-4),
};

/* A zoo graph, or the training graph of a text. */
static mpl_graph *build(mpl_ctx *ctx, const char *spec)
{
    mpl_graph *forward = NULL, *g = NULL;

    if (strncmp(spec, "graph", 5) != 0) {
        assert_ok(ctx, mpl_zoo_build(ctx, spec, &g));
        return g;
    }
    assert_ok(ctx, mpl_text_read_memory(ctx, "test", spec, strlen(spec), &forward));
    assert_ok(ctx,
              mpl_autodiff(ctx, forward, &(mpl_autodiff_options){.update = MPL_OPTIMISER_SGD}, &g));
    mpl_graph_free(ctx, forward);
    return g;
}

/* Outputs are concatenated, each aligned. */
static uint64_t slot(const mpl_graph *g, uint32_t i)
{
    return (g->value_bytes[g->output[i]] + 63) / 64 * 64;
}

static uint64_t outputs_bytes(const mpl_graph *g)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < g->n_outputs; i++)
        bytes += slot(g, i);
    return bytes;
}

static const char *device_params; /* for every device that is opened; NULL: none */

/* NULL plan: unshared. Runs `n` times, copies all outputs of the last run. */
static void *run_pools(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g,
                       const char *planner, bool parallel, bool checked, bool iterate, uint32_t n,
                       unsigned own_pools, bool pin)
{
    mpl_problem_options options = mpl_problem_options_default();
    uint64_t bytes = 0;
    char *out;
    bound b;

    bind_device(ctx, backend, g, "given",
                &(mpl_device_options){.n_threads = 2, .params = device_params}, &b);
    options.parallel = parallel;
    options.own_pools = own_pools;
    options.pin_weights = options.pin_outputs = pin;
    if (planner != NULL)
        bind_problem(&b, &options, planner);
    if (planner != NULL && parallel)
        assert_ok(ctx, (g->n_blocks > 1 ? mpl_verify_places : mpl_verify_graph)(ctx, g, b.map, b.p,
                                                                                b.plan));
    bind_exec(&b, &(mpl_exec_options){.checked = checked, .weight_seed = 1, .iterate = iterate}, 7);
    for (uint32_t i = 0; i < n; i++)
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    out = calloc(1, outputs_bytes(g) + 1);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        assert_ok(ctx, mpl_exec_output(b.exec, i, out + bytes));
        bytes += slot(g, i);
    }
    unbind(&b);
    return out;
}

static void *run_graph(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g,
                       const char *planner, bool parallel, bool checked, bool iterate, uint32_t n)
{
    return run_pools(ctx, backend, g, planner, parallel, checked, iterate, n, 0, true);
}

static void check_near(const setting *s, const mpl_graph *g, const char *name, const char *want,
                       const char *got)
{
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        mpl_type type = (mpl_type)g->value_type[v];
        uint64_t n = g->value_bytes[v] / mpl_type_bytes(type);
        double most = 1e-3, off = 0;

        for (uint64_t k = 0; k < n; k++) {
            double a = mpl_get(type, want, (int64_t)k), b = mpl_get(type, got, (int64_t)k);

            most = fmax(most, fabs(a));
            off = a == a && b == b ? fmax(off, fabs(a - b)) : INFINITY;
        }
        if (!(off <= s->tolerance * most))
            fail_msg("%s: '%s' on %s is off by %g of %g", s->spec, g->value_name[v], name, off,
                     most);
        want += slot(g, i), got += slot(g, i);
    }
}

/* Backends compared with ref, which is number 0; cuda on a fake device, by our own kernels and by
 * calls that act as cuDNN's. */
static const struct {
    const char *name;
    bool fake, cudnn;
} others[] = {
    {"ref", false, false}, {"cpu", false, false}, {"cuda", true, false}, {"cuda", true, true}};
enum { N_OTHERS = sizeof others / sizeof *others };

/* NULL: not available. */
static const mpl_backend *backend_of(int i)
{
    const mpl_backend *backend = others[i].fake ? fake_backend() : mpl_backend_find(others[i].name);

    fake.cudnn = others[i].cudnn;
    if (backend == NULL || (!others[i].fake && mpl_backend_absent(backend) != NULL) ||
        (others[i].cudnn && !host.built))
        return NULL;
    return backend;
}

TEST(training_runs)
{
    fake_reset();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char *whole[N_OTHERS] = {NULL};
        owned_graph *g = build(ctx, settings[i].spec);

        for (int b = 0; b < N_OTHERS; b++) {
            const mpl_backend *backend = backend_of(b);
            uint64_t bytes = outputs_bytes(g);
            char *planned, *parallel;

            if (backend == NULL)
                continue;
            whole[b] = run_graph(ctx, backend, g, NULL, false, false, false, 1);
            planned = run_graph(ctx, backend, g, "greedy_size", false, b == 1, false, 2);
            parallel = run_graph(ctx, backend, g, "nnc_2019", true, false, false, 1);
            assert_memory_equal(whole[b], planned, bytes);
            assert_memory_equal(whole[b], parallel, bytes);
            free(planned);
            free(parallel);
            if (b > 0)
                check_near(&settings[i], g, others[b].name, whole[0], whole[b]);
        }
        for (int b = 0; b < N_OTHERS; b++)
            free(whole[b]);
    }
    if (fake.n_races > 0)
        fail_msg("%s", fake.race);
    if (host.n_misused > 0)
        fail_msg("a call that cuDNN or cuBLAS forbids: %s", host.misuse);
    assert_int_equal(fake.n_wild + fake.n_misused + fake.n_live + host.n_live, 0);
}

/* Several planners, several runs that carry weights over: weights equal to the last bit, and a
 * falling loss. */
TEST(iterations_are_the_same_under_every_planner)
{
    static const char *const planners[] = {NULL, "greedy_size", "owl", "nnc_2019", "best_fit"};
    static const char *const specs[] = {
        "mlp:batch=8,input=12,hidden=10,classes=2,mode=train,update=adam,rate=20000",
        "mnist_conv:batch=4,image=8,mode=train,update=adagrad"};
    const mpl_backend *backend = mpl_backend_find("ref");

    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        char *first, *last;
        owned_graph *g = zoo_graph(ctx, specs[k]);

        first = run_graph(ctx, backend, g, NULL, false, false, true, 1);
        last = run_graph(ctx, backend, g, NULL, false, false, true, 8);
        if (!(*(float *)last < 0.8f * *(float *)first))
            fail_msg("%s: the loss is %g at first, %g in the end", specs[k],
                     (double)*(float *)first, (double)*(float *)last);
        for (size_t i = 1; i < sizeof planners / sizeof *planners; i++) {
            char *out = run_graph(ctx, backend, g, planners[i], false, false, true, 8);

            assert_memory_equal(last, out, outputs_bytes(g));
            free(out);
        }
        free(first);
        free(last);
    }
}

/* Weights, gradients and state in separate pools or among the values: the same bits, carried over
 * from run to run or not. */
TEST(pools_of_their_own)
{
    static const char *const specs[] =
        ROW("mlp:batch=5,input=7,hidden=6,classes=4,mode=train,update=adam",
            "mnist_conv:batch=3,image=8,mode=train,update=momentum",
            "randwire:regime=cell,batch=2,image=32,channels=4,nodes=5,mode=train,update=sgd",
            "lstm:batch=2,layers=2,steps=3,hidden=5,mode=train,update=sgd",
            "offset2bbox:batch=2,boxes=30,mode=train,update=sgd");
    const mpl_backend *backend = mpl_backend_find("ref");

    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        owned_graph *g = zoo_graph(ctx, specs[k]);

        for (int iterate = 0; iterate < 2; iterate++) {
            void *want = run_graph(ctx, backend, g, NULL, false, false, iterate, 3);

            for (unsigned set = 0; set < 16; set++) { /* separate pools, and pinning the rest */
                bool parallel = set % 3 == 1;
                void *out =
                    run_pools(ctx, backend, g, parallel ? "nnc_2019" : "greedy_size", parallel,
                              set % 3 == 0, iterate, 3, set / 2 << MPL_PART_WEIGHT, set % 2);

                assert_memory_equal(want, out, outputs_bytes(g));
                free(out);
            }
            free(want);
        }
    }
}

/* A device runs once before it captures: weights and state begin as they would without that, and go
 * on from there. */
TEST(captures_change_no_state)
{
    static const char *const ways[] = {"graph=off", "graph=on", "graph=both"};
    static const char spec[] = "mlp:batch=5,input=7,hidden=6,classes=4,mode=train,update=adam";

    for (int i = 0; i < 6; i++) { /* parallel safety: the whole run as one graph */
        bool pin = i % 2 == 1;
        uint32_t n = i / 2 == 0 ? 1 : i / 2 == 1 ? 2 : 5;
        char *out[3];
        owned_graph *g = NULL;

        fake_reset();
        assert_ok(ctx, mpl_zoo_build(ctx, spec, &g));
        for (int k = 0; k < 3; k++) {
            device_params = ways[k];
            out[k] = run_pools(ctx, fake_backend(), g, "nnc_2019", true, false, true, n, 0, pin);
            assert_true((fake.n_graph_launches > 0) == (k > 0));
        }
        device_params = NULL;
        for (int k = 1; k < 3; k++)
            if (memcmp(out[0], out[k], outputs_bytes(g)) != 0)
                fail_msg("%s, %u runs: not what runs without it give", ways[k], n);
        for (int k = 0; k < 3; k++)
            free(out[k]);
    }
}

TESTS(captures_change_no_state, training_runs, iterations_are_the_same_under_every_planner,
      pools_of_their_own)
