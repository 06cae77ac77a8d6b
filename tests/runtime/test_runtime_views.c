/* test_runtime_views.c -- programs through tensor_ssa, planned and executed in the plan's arenas:
 * outputs equal, bit for bit, those of an interpreter that writes in place. Fault: operators that
 * read what they overwrite, missing copies.
 *
 *  test_runtime_views [PROGRAMS]      number of random programs (400) */
#include "tests/support/program.h"

#include "graphs/passes/passes.h"
#include "planners/verify/verify.h"
#include "runtime/exec.h"
#include "tests/device/cuda_fake.h"

static uint64_t n_programs = 400;

typedef struct bench {
    mpl_ctx ctx;
    mpl_graph *program;
    program_run want;
    void **input; /* [n_inputs] */
} bench;

static bool bench_begin(bench *b, uint64_t seed)
{
    mpl_rng rng;

    b->ctx = mpl_ctx_default();
    b->program = random_program(&b->ctx, seed);
    if (b->program == NULL)
        return false;
    b->want = program_begin(&b->ctx, b->program);
    b->input = calloc(b->program->n_inputs, sizeof *b->input);
    rng = mpl_rng_of(seed);
    for (uint32_t i = 0; i < b->program->n_inputs; i++) {
        mpl_value v = b->program->input[i];

        for (int64_t k = 0; k < program_count(&b->want, v); k++)
            mpl_put((mpl_type)b->program->value_type[v], b->want.memory[v], k,
                    (double)program_draw(&rng, 41) / 4 - 5);
        b->input[i] = program_read(&b->want, v); /* before anything writes there */
    }
    for (mpl_op op = 0; op < b->program->n_ops; op++)
        program_op(&b->want, op);
    return true;
}

static void bench_end(bench *b)
{
    for (uint32_t i = 0; i < b->program->n_inputs; i++)
        free(b->input[i]);
    free(b->input);
    program_end(&b->want);
    mpl_graph_free(&b->ctx, b->program);
    assert_int_equal(b->ctx.n_live, 0);
}

/* -0 equals 0: a library may negate by a product and a sum. */
static bool same_numbers(mpl_type type, const void *got, const void *want, int64_t n)
{
    const float *a = got, *b = want;
    const uint16_t *x = got, *y = want;
    bool same = type == MPL_TYPE_f32 || type == MPL_TYPE_f16;

    for (int64_t k = 0; k < n && same; k++)
        same = type == MPL_TYPE_f16 ? x[k] == y[k] || ((x[k] | y[k]) & 0x7fff) == 0
                                    : a[k] == b[k] || memcmp(&a[k], &b[k], sizeof *a) == 0;
    return same;
}

static void compare(bench *b, mpl_exec *exec, uint64_t seed, bool exact)
{
    for (uint32_t i = 0; i < b->program->n_outputs; i++) {
        mpl_value v = b->program->output[i];
        void *want = program_read(&b->want, v), *got = malloc(b->program->value_bytes[v] + 1);

        assert_ok(&b->ctx, mpl_exec_output(exec, i, got));
        if (memcmp(got, want, b->program->value_bytes[v]) != 0 &&
            (exact || !same_numbers((mpl_type)b->program->value_type[v], got, want,
                                    program_count(&b->want, v))))
            fail_msg("program %" PRIu64 ": output '%s' differs", seed, b->program->value_name[v]);
        free(want);
        free(got);
    }
}

/* Half of the time inputs are planned, too: only then can a program's writes overwrite them. */
static void run_one(bench *b, uint64_t seed, mpl_ssa_level level, const mpl_backend *backend,
                    mpl_device *dev, uint64_t copied[3])
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_graph *g = NULL;
    mpl_op *order;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_exec *exec = NULL;
    mpl_exec_facts facts;

    assert_ok(&b->ctx, mpl_tensor_ssa(&b->ctx, b->program, level, NULL, NULL, &g));
    options.pin_inputs = options.pin_outputs = seed % 2 == 0 || g->n_ops == 0;
    /* a device's copies are as wide as the alignment allows */
    options.align = backend->align > 64 ? backend->align : 4u << seed % 3;
    order = calloc(g->n_ops + 1, sizeof *order);
    assert_ok(&b->ctx, mpl_order_of(&b->ctx, g, mpl_order_find("given"), order));
    assert_ok(&b->ctx, mpl_problem_from_graph(&b->ctx, g, order, &options, &p, &map));
    plan = planned_by(&b->ctx, "greedy_size", p);
    assert_ok(&b->ctx, mpl_verify(&b->ctx, p, plan));
    assert_ok(&b->ctx, mpl_exec_new(&b->ctx, backend, dev, g, order, p, map, plan,
                                    &(mpl_exec_options){.checked = seed % 4 == 0}, &exec));
    for (uint32_t i = 0; i < b->program->n_inputs; i++)
        assert_ok(&b->ctx, mpl_exec_set_input(exec, i, b->input[i]));
    for (int round = 0; round < 2; round++) {
        mpl_status st = mpl_exec_run(exec, NULL);

        if (st != MPL_OK)
            fail_msg("program %" PRIu64 ", level %s: %s", seed, mpl_ssa_level_name[level],
                     b->ctx.message);
        compare(b, exec, seed, strcmp(backend->name, "ref") == 0);
    }
    assert_ok(&b->ctx, mpl_exec_facts_get(exec, &facts));
    copied[level] += facts.copied_bytes;
    mpl_exec_free(&b->ctx, exec);
    mpl_plan_free(&b->ctx, plan);
    mpl_value_map_free(&b->ctx, map);
    mpl_problem_free(&b->ctx, p);
    mpl_graph_free(&b->ctx, g);
    free(order);
}

TEST(programs_run_in_their_plans)
{
    const mpl_backend *ref = mpl_backend_find("ref"), *cpu = mpl_backend_find("cpu");
    uint64_t on_cpu[MPL_N_SSA_LEVELS] = {0}, copied[MPL_N_SSA_LEVELS] = {0};
    const mpl_backend *cuda = fake_backend();
    mpl_device *dev = NULL, *threads = NULL, *gpu = NULL;

    assert_ok(ctx, ref->open(ctx, &(mpl_device_options){0}, &dev));
    assert_ok(ctx, cpu->open(ctx, &(mpl_device_options){.n_threads = 2}, &threads));
    fake_reset();
    assert_ok(ctx, cuda->open(ctx, &(mpl_device_options){0}, &gpu));
    for (uint64_t seed = 1, n = 0; n < n_programs; seed++) {
        bench b;

        if (!bench_begin(&b, seed))
            continue;
        n++;
        for (int level = 0; level < MPL_N_SSA_LEVELS; level++)
            run_one(&b, seed, (mpl_ssa_level)level, ref, dev, copied);
        if (n % 4 == 0) /* its operations are exact on any backend */
            for (int level = 0; level < MPL_N_SSA_LEVELS; level++)
                run_one(&b, seed, (mpl_ssa_level)level, cpu, threads, on_cpu);
        if (n % 4 == 2)
            for (int level = 0; level < MPL_N_SSA_LEVELS; level++)
                run_one(&b, seed, (mpl_ssa_level)level, cuda, gpu, on_cpu);
        bench_end(&b);
    }
    ref->close(dev);
    cpu->close(threads);
    cuda->close(gpu);
    assert_int_equal(fake.n_races + fake.n_wild + fake.n_misused + fake.n_live, 0);
    print_message("%" PRIu64 " programs; bytes copied: %" PRIu64 " each time, %" PRIu64
                  " until a write, %" PRIu64 " by TensorSSA\n",
                  n_programs, copied[MPL_SSA_COPY], copied[MPL_SSA_VIEWS], copied[MPL_SSA_FULL]);
    assert_true(copied[MPL_SSA_FULL] < copied[MPL_SSA_VIEWS] &&
                copied[MPL_SSA_VIEWS] < copied[MPL_SSA_COPY]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        n_programs = strtoull(argv[1], NULL, 10);
    return RUN_TESTS(NULL, NULL, programs_run_in_their_plans);
}
