/* test_runtime_models.c -- five real networks (ONNX, all weights equal; the zoo's if those are
 * missing) end to end: read, planned by every planner, executed, and compared with ONNX's expected
 * outputs for the input arange(n)/n.
 *
 * Their outputs are constant and prove little, so each also runs with random weights, and the
 * logits of `cpu` are compared with those of `ref`: |a - b| <= 1e-4 of the largest |logit|.
 *
 * Fault: a network read, planned or executed wrongly although each operator alone is right. */
#include "tests/runtime/bound_graph.h"

#include <math.h>

#define LIGHT MPL_SHARED "/onnx-light/light_"

static const char *const models[] = {"bvlc_alexnet", "inception_v1", "resnet50", "densenet121",
                                     "vgg19"};
#define N_MODELS (sizeof models / sizeof *models)

/* Zoo networks used if the models are missing. */
static const char *const stand_ins[N_MODELS] = {"alexnet", "inception_v1:image=64",
                                                "resnet50:image=64", "densenet121:image=64",
                                                "resnet18:image=64"};

static bool have_models(void)
{
    return access(LIGHT "resnet50.onnx", R_OK) == 0;
}

/* A graph on a device; plan NULL: nothing shared. */
typedef struct session {
    mpl_ctx *ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    mpl_plan *done[64]; /* that ran */
    uint32_t n_done;
} session;

static void begin(mpl_ctx *ctx, size_t model, const char *backend, session *s)
{
    char path[256];
    mpl_problem_options options = mpl_problem_options_default();
    owned_memory uint64_t *workspace = NULL;

    *s = (session){.ctx = ctx, .backend = mpl_backend_find(backend)};
    snprintf(path, sizeof path, LIGHT "%s.onnx", models[model]);
    assert_ok(ctx, s->backend->open(ctx, &(mpl_device_options){.n_threads = 2}, &s->dev));
    if (have_models())
        assert_ok(ctx, mpl_onnx_read(ctx, path, &(mpl_read_options){0}, &s->g));
    else
        assert_ok(ctx, mpl_zoo_build(ctx, stand_ins[model], &s->g));
    mpl_op last = s->g->value_op[s->g->output[0]];
    if (s->g->op_kind[last] == MPL_OP_softmax) { /* compare the logits */
        assert_ok(ctx, mpl_graph_add_output(ctx, s->g, s->g->op_in[s->g->op_in_begin[last]]));
        assert_ok(ctx, mpl_graph_finish(ctx, s->g));
    }
    s->order = mpl_alloc(ctx, s->g->n_ops, sizeof *s->order);
    workspace = mpl_alloc(ctx, s->g->n_ops, sizeof *workspace);
    assert_true(s->order != NULL && workspace != NULL);
    count_up(s->g->n_ops, s->order);
    assert_ok(ctx, mpl_exec_workspaces(ctx, s->backend, s->dev, s->g, workspace));
    options.op_workspace_bytes = workspace;
    assert_ok(ctx, mpl_problem_from_graph(ctx, s->g, s->order, &options, &s->p, &s->map));
}

static void end(session *s)
{
    while (s->n_done > 0)
        mpl_plan_free(s->ctx, s->done[--s->n_done]);
    mpl_problem_free(s->ctx, s->p);
    mpl_value_map_free(s->ctx, s->map);
    mpl_graph_free(s->ctx, s->g);
    mpl_free(s->ctx, s->order);
    s->backend->close(s->dev);
}

/* All outputs, concatenated; the last one is the logits. */
static float *run(const session *s, const mpl_plan *plan, bool random, bool checked)
{
    mpl_exec_options options = {.random_weights = random, .weight_seed = 11, .checked = checked};
    bool shared = plan != NULL;
    /* each memory has its own pages */
    uint64_t n_cuts = shared && plan->spread.n > 0 ? plan->spread.n - 1 : 0;
    mpl_exec *exec;
    mpl_exec_facts facts;
    char *all;

    assert_ok(s->ctx, mpl_exec_new(s->ctx, s->backend, s->dev, s->g, s->order, shared ? s->p : NULL,
                                   shared ? s->map : NULL, plan, &options, &exec));
    give_inputs(s->ctx, s->g, exec, 0);
    assert_ok(s->ctx, mpl_exec_run(exec, NULL));
    all = outputs_of(s->ctx, s->g, exec);
    assert_ok(s->ctx, mpl_exec_facts_get(exec, &facts));
    if (shared) {
        assert_int_equal(facts.arena_bytes, plan->peak_bytes);
        if (!checked)
            assert_true(facts.measured_bytes <=
                        (facts.arena_bytes + 4095) / 4096 * 4096 + n_cuts * 4096);
    }
    mpl_exec_free(s->ctx, exec);
    return (float *)(void *)all;
}

static void compare_expected(const session *s, const char *model, const float *got)
{
    char path[256];
    mpl_tensor want;
    uint64_t n = s->g->value_bytes[s->g->output[0]] / sizeof *got, count = 0;

    snprintf(path, sizeof path, LIGHT "%s_output_0.pb", model);
    assert_ok(s->ctx, mpl_tensor_read(s->ctx, path, &want));
    assert_true(mpl_shape_count(&want.shape, &count) && count == n && want.type == MPL_TYPE_f32);
    for (uint64_t i = 0; i < n; i++) {
        float y = ((const float *)want.data)[i];

        if (!(fabsf(got[i] - y) <= 1e-5f + 1e-4f * fabsf(y)))
            fail_msg("%s on %s: output %" PRIu64 " is %.9g; expected %.9g", model, s->backend->name,
                     i, (double)got[i], (double)y);
    }
    mpl_free(s->ctx, want.data);
}

/* Whether a plan with these places ran; else it is kept as one that did. */
static bool ran(session *s, mpl_plan *plan)
{
    for (uint32_t i = 0; i < s->n_done; i++)
        if (s->done[i]->peak_bytes == plan->peak_bytes && s->done[i]->spread.n == plan->spread.n &&
            memcmp(s->done[i]->offset, plan->offset, s->p->n * sizeof *plan->offset) == 0)
            return true;
    assert_true(s->n_done < sizeof s->done / sizeof *s->done);
    s->done[s->n_done++] = plan;
    return false;
}

static void check_planner(session *s, const char *model, const mpl_planner *planner, bool random,
                          const float *want)
{
    mpl_run how = mpl_run_default(s->ctx);
    mpl_plan *plan;
    mpl_status st;
    float *got;

    how.budget_ticks = 1000000;
    if ((planner->traits & MPL_SPREADS) != 0) { /* as many arenas */
        static const char *const key[] = {"capacities"}, *const value[] = {"262144/1048576/-"};

        how.n_params = 1;
        how.param_key = key;
        how.param_value = value;
    }
    st = planner->plan != NULL ? mpl_planner_run(planner, &how, s->p, &plan) : MPL_EUNAVAIL;
    if (st == MPL_EUNAVAIL || st == MPL_ELIMIT) /* not this kind of problem, or not found so soon */
        return;
    assert_ok(s->ctx, st);
    if (!random && ran(s, plan)) {
        mpl_plan_free(s->ctx, plan);
        return;
    }
    got = run(s, plan, random, false);
    if (memcmp(got, want, output_bytes(s->g)) != 0)
        fail_msg("%s on %s by %s: outputs differ from those of the unshared run", model,
                 s->backend->name, planner->name);
    mpl_free(s->ctx, got);
    if (random)
        mpl_plan_free(s->ctx, plan);
}

TEST(expected_outputs_under_every_planner)
{
    for (size_t i = 0; i < (in_short() ? 2 : N_MODELS); i++) {
        session s;
        float *out;

        begin(ctx, i, "cpu", &s);
        for (int random = 0; random < 2; random++) {
            out = run(&s, NULL, random, false);
            if (!random && have_models())
                compare_expected(&s, models[i], out);
            for (uint32_t k = 0; mpl_planners[k] != NULL; k++)
                if (!random || strcmp(mpl_planners[k]->name, "greedy_size") == 0)
                    check_planner(&s, models[i], mpl_planners[k], random, out);
            mpl_free(ctx, out);
        }
        end(&s);
    }
}

TEST(checked_runs_find_nothing)
{
    for (size_t i = 0; i < 3; i++) {
        session s;
        owned_plan *plan;
        owned_memory float *want, *got;

        begin(ctx, i, "cpu", &s);
        plan = planned_by(ctx, "greedy_size", s.p);
        want = run(&s, NULL, true, false);
        got = run(&s, plan, true, true);
        assert_memory_equal(got, want, output_bytes(s.g));
        end(&s);
    }
}

/* Plain loops take seconds per model: the largest, which has no other operators than the first,
 * runs with MPL_ALL=1 only. */
TEST(cpu_agrees_with_ref)
{
    for (size_t i = 0; i < (in_short() ? 1 : N_MODELS - (getenv("MPL_ALL") == NULL)); i++) {
        session cpu, ref;
        float *got, *want, far = 0, most = 0;
        uint64_t n, first;

        begin(ctx, i, "cpu", &cpu);
        begin(ctx, i, "ref", &ref);
        want = run(&ref, NULL, true, false);
        got = run(&cpu, NULL, true, false);
        n = output_bytes(ref.g) / sizeof *want;
        first = n - ref.g->value_bytes[ref.g->output[ref.g->n_outputs - 1]] / sizeof *want;
        for (uint64_t k = first; k < n; k++) {
            far = fmaxf(far, fabsf(got[k] - want[k]));
            most = fmaxf(most, fabsf(want[k]));
        }
        print_message("%s: largest logit %.3g, cpu off by %.2g of it\n", models[i], (double)most,
                      (double)(far / most));
        assert_true(most > 0 && far <= 1e-4f * most);
        mpl_free_each(ctx, got, want);
        end(&cpu);
        end(&ref);
    }
}

TESTS(expected_outputs_under_every_planner, checked_runs_find_nothing, cpu_agrees_with_ref)
