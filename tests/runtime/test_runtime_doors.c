/* test_runtime_doors.c -- the checks at the entries of modules (mpl_assert_ok).
 *
 * Fault: a broken invariant passes unnoticed, a message lacks the id of what is broken, a check
 * costs time in a release build. */
#include "tests/support/test.h"

#include "graphs/problem/before.h"
#include "graphs/problem/control/storage.h"
#include "graphs/problem/liveness.h"
#include "runtime/exec/exec_priv.h"

#include <sys/wait.h>

static mpl_ctx ctx;

/* The checked structures; each row breaks one rule of one of them. */
typedef struct things {
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_plan *plan;
    mpl_storage *storage;
    mpl_storage_spec spec;
    mpl_exec *exec;
} things;

static void set_up(const char *spec, bool parallel, things *t)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_value_map *map = NULL;

    *t = (things){0};
    ctx = mpl_ctx_default();
    assert_ok(&ctx, mpl_zoo_build(&ctx, spec, &t->g));
    assert_ok(&ctx, mpl_new(&ctx, t->order, t->g->n_ops));
    count_up(t->g->n_ops, t->order);
    options.parallel = parallel;
    assert_ok(&ctx, mpl_problem_from_graph(&ctx, t->g, t->order, &options, &t->p, &map));
    mpl_value_map_free(&ctx, map);
    assert_ok(&ctx, mpl_plan_new(&ctx, t->p, &t->plan));
    t->plan->claim = MPL_FEASIBLE;
    for (mpl_buffer b = 1; b < t->p->n; b++)
        t->plan->offset[b] = mpl_align_up(t->plan->offset[b - 1] + t->p->bytes[b - 1], 64);
}

static void tear_down(things *t)
{
    mpl_exec_free(&ctx, t->exec);
    mpl_storage_free(&ctx, t->storage);
    mpl_plan_free(&ctx, t->plan);
    mpl_problem_free(&ctx, t->p);
    mpl_free(&ctx, t->order);
    mpl_graph_free(&ctx, t->g);
    assert_int_equal(ctx.n_live, 0);
}

/* ---- the rules, one per row ---- */

typedef struct row {
    const char *name;
    void *(*at)(things *t); /* the number to break: 4 bytes */
    uint32_t wrong;
    const char *says;
} row;

static const uint32_t FAR = 1000000;

#define AT(name, expression)                                                                       \
    static void *name(things *t)                                                                   \
    {                                                                                              \
        return expression;                                                                         \
    }
AT(graph_input, &t->g->op_in[t->g->op_in_begin[1]])
AT(graph_maker, &t->g->value_op[t->g->op_out[0]])
AT(graph_list, &t->g->op_out_begin[1])
AT(graph_output, &t->g->output[0])
AT(graph_bytes, &t->g->value_bytes[t->g->op_out[0]])
AT(block_owner, &t->g->block_owner[1])
AT(block_result, &t->g->block_result[t->g->block_result_begin[1] + 1])
AT(birth, &t->p->birth[2])
AT(death, &t->p->death[1])
AT(align, &t->p->align[3])
AT(pool, &t->p->pool[2])
AT(pair, &t->p->in_place_in[0])
AT(event, &t->p->access->first_item[t->p->access->first_begin[1]])
AT(no_last, &t->p->access->last_begin[1])
AT(edge, &t->p->access->edge_item[0])
AT(cover, &t->p->before->red_item[0])
AT(follower, &t->p->before->row[0])
AT(plan_n, &t->plan->n)
AT(plan_offset, &t->plan->offset[2])
AT(plan_claim, &t->plan->claim)
AT(cell_named, &t->storage->named[0])
AT(cell_bytes, &t->storage->bytes[0])
AT(cell_row, &t->storage->row[0])
AT(place_item, &t->storage->places->item[0])
AT(place_of, &t->storage->places->place[t->storage->places->n - 1].of)
AT(staging, &t->storage->places->staging[1])
AT(value_cell, &t->storage->value_cell[t->g->op_out[t->g->op_out_begin[0]]])
AT(value_slab, &t->exec->value_slab[t->g->output[0]])
AT(value_block, &t->exec->value_block[t->g->op_out[0]])
AT(value_offset, &t->exec->value_offset[t->g->op_out[0]])
AT(block_slab, &t->exec->block[0].slab)

static const row of_graphs[] = {
    {"an input that is nowhere", graph_input, FAR, "operation 1 reads value 1000000"},
    {"an output that another makes", graph_maker, 3, "is an output of operation 0"},
    {"lists that end early", graph_list, FAR, "operation 0"},
    {"an output that is nowhere", graph_output, FAR, "output 0 is value 1000000"},
    {"bytes that the type does not give", graph_bytes, 3, "has 3 bytes"},
};
static const row of_blocks[] = {
    {"a block that nobody owns", block_owner, FAR, "block 1"},
    {"a result that is nowhere", block_result, FAR, "block 1 has result 1000000"},
};
static const row of_serial[] = {
    {"born after its death", birth, FAR, "lives in [1000000, "},
    {"dead before its birth", death, 0, ", 0)"},
    {"no power of two", align, 48, "aligned to 48"},
    {"a pool that is not there", pool, 7, "in pool 7"},
    {"a pair that is none", pair, FAR, "in-place pair 0"},
    {"an event that is not there", event, FAR, "buffer 1 has first event 1000000"},
    {"first events alone", no_last, 0, "buffer 0 has first events and no last ones"},
    {"an edge backwards", edge, 0, "comes before event 0"},
};
static const row of_parallel[] = {
    {"a cover that is nowhere", cover, FAR, "at buffer "},
    {"closure and reduction differ", follower, 2, "buffer "},
};
static const row of_plans[] = {
    {"too many buffers", plan_n, FAR, "1000000 buffers"},
    {"an offset between two", plan_offset, 65, "buffer 2 lies at 65"},
    {"a claim that is none", plan_claim, 9, "claims 9"},
};
static const row of_storage[] = {
    {"a name that is no value", cell_named, FAR, "cell 0"},
    {"a cell too small", cell_bytes, 1, "cell 0 of 1 bytes"},
    {"a cell that nothing needs", cell_row, 0, "cell 0 is needed at no step"},
    {"a place above itself", place_item, FAR, "refers to place 1000000"},
    {"a place of nothing", place_of, FAR, "is of 1000000"},
    {"staging that is not there", staging, FAR, "block 1 stages through cell 1000000"},
    {"a cell that is not there", value_cell, FAR, "in cell 1000000"},
};
static const row of_runs[] = {
    {"a slab that is not there", value_slab, 77, "in slab 77"},
    {"a block that is not there", value_block, FAR, "in block 1000000"},
    {"behind the end of its slab", value_offset, FAR, "at 1000000"},
    {"a block in no slab", block_slab, 77, "block 0"},
};

static bool graph_holds(const things *t)
{
    return mpl_graph_ok(t->g);
}
static bool problem_holds(const things *t)
{
    return mpl_problem_ok(t->p);
}
static bool plan_holds(const things *t)
{
    return mpl_plan_ok(t->p, t->plan);
}
static bool storage_holds(const things *t)
{
    return mpl_storage_ok(t->storage, &t->spec);
}
static bool exec_holds(const things *t)
{
    return mpl_exec_ok(t->exec);
}

/* Each row holds at first, is reported with its id when broken, and holds again when restored. */
static void look(things *t, bool (*holds)(const things *t), const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *at = rows[i].at(t);
        uint32_t was;

        if (!holds(t))
            fail_msg("%s: before it is broken: %s", rows[i].name, mpl_broken_text());
        memcpy(&was, at, sizeof was);
        memcpy(at, &rows[i].wrong, sizeof was);
        if (holds(t) || strstr(mpl_broken_text(), rows[i].says) == NULL)
            fail_msg("%s: '%s' does not say '%s'", rows[i].name, mpl_broken_text(), rows[i].says);
        memcpy(at, &was, sizeof was);
        assert_true(holds(t));
    }
}
#define LOOK(t, holds, rows) look(t, holds, rows, sizeof(rows) / sizeof *(rows))

static void plain(void **state)
{
    things t;

    (void)state;
    set_up("resnet18:image=64", false, &t);
    LOOK(&t, graph_holds, of_graphs);
    LOOK(&t, problem_holds, of_serial);
    LOOK(&t, plan_holds, of_plans);
    tear_down(&t);
    set_up("resnet18:image=64", true, &t);
    LOOK(&t, problem_holds, of_parallel);
    tear_down(&t);
}

static void loops(void **state)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_program *program = NULL;
    mpl_value *root = NULL;
    uint8_t *pinned = NULL, *kept = NULL;
    things t;

    (void)state;
    set_up("seq2seq", false, &t);
    LOOK(&t, graph_holds, of_blocks);
    assert_ok(&ctx, mpl_program_new(&ctx, t.g, t.order, &program));
    assert_ok(&ctx, mpl_new(&ctx, root, t.g->n_values));
    assert_ok(&ctx, mpl_new(&ctx, pinned, t.g->n_values));
    assert_ok(&ctx, mpl_new(&ctx, kept, t.g->n_values));
    mpl_value_roots(t.g, root);
    t.spec = (mpl_storage_spec){t.g, program, &options, root, pinned, kept};
    assert_ok(&ctx, mpl_storage_new(&ctx, &t.spec, &t.storage));
    LOOK(&t, storage_holds, of_storage);
    mpl_program_free(&ctx, program);
    mpl_free_each(&ctx, root, pinned, kept);
    tear_down(&t);
}

static void runs(void **state)
{
    const mpl_backend *ref = mpl_backend_find("ref");
    mpl_device *dev = NULL;
    things t;

    (void)state;
    set_up("mlp", false, &t);
    assert_ok(&ctx, ref->open(&ctx, &(mpl_device_options){0}, &dev));
    assert_ok(&ctx, mpl_exec_new(&ctx, ref, dev, t.g, t.order, NULL, NULL, NULL,
                                 &(mpl_exec_options){0}, &t.exec));
    LOOK(&t, exec_holds, of_runs);
    mpl_exec_free(&ctx, t.exec);
    t.exec = NULL;
    ref->close(dev);
    tear_down(&t);
}

/* ---- the checks themselves ---- */

/* A debug build stops at the check and reports where and what; a release build has no check. */
static void a_door_stops(void **state)
{
    char text[2000] = "";
    int ends[2], status;
    pid_t child;
    ssize_t n;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    if ((child = fork()) == 0) {
        mpl_plan *plan = NULL;
        mpl_run run;
        things t;

        dup2(ends[1], 2);
        set_up("mlp", false, &t);
        t.p->align[1] = 3;
        run = mpl_run_default(&ctx);
        (void)mpl_planner_run(mpl_planner_find("greedy_size"), &run, t.p, &plan);
        _exit(0);
    }
    close(ends[1]);
    for (size_t at = 0; (n = read(ends[0], text + at, sizeof text - 1 - at)) > 0;)
        at += (size_t)n;
    close(ends[0]);
    assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "planners/run.c:"));
    assert_non_null(strstr(text, "broken invariant"));
    assert_non_null(strstr(text, "aligned to 3 bytes"));
}

static const char *const rooms[] = {"graphs/build/graph",
                                    "graphs/io/lists/csv",
                                    "graphs/problem/control/storage",
                                    "graphs/problem/derive/concats",
                                    "planners/run",
                                    "runtime/exec/exec"};

static void a_release_has_none(void **state)
{
    char self[512], command[800], line[200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)state;
    assert_true(n > 0);
    self[n] = '\0';
    assert_non_null(strstr(self, "/tests/"));
    *strstr(self, "/tests/test_") = '\0';
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        size_t n_names = 0;
        FILE *names;

        snprintf(command, sizeof command, "nm '%s/%s.o'", self, rooms[i]);
        names = popen(command, "r");
        assert_non_null(names);
        for (; fgets(line, sizeof line, names) != NULL; n_names++)
            if (strstr(line, "_ok\n") != NULL || strstr(line, " mpl_assert_fail\n") != NULL)
                fail_msg("%s calls %s", rooms[i], line);
        pclose(names);
        assert_true(n_names > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(loops),
        cmocka_unit_test(runs),
        MPL_CHECK > 0 ? (struct CMUnitTest)cmocka_unit_test(a_door_stops)
                      : (struct CMUnitTest)cmocka_unit_test(a_release_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
