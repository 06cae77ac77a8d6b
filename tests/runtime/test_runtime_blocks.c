/* Blocks of an executor and their lifetimes: each buffer's block against the problem that liveness
 * made of the same graph, own memory for unplanned values, arenas of pools and memories, what is
 * reported of operations. */
#include "tests/support/random_control.h"
#include "tests/support/random_graph.h"

#include "runtime/exec/exec_priv.h"

typedef struct bound {
    mpl_ctx ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    mpl_graph *g;
    mpl_op *order;
    uint64_t *workspace;
    mpl_problem *p;
    mpl_value_map *map;
    mpl_plan *plan;
    mpl_exec *exec;
} bound;

static void bind_graph(bound *b, mpl_graph *g)
{
    b->g = g;
    b->backend = mpl_backend_find("ref");
    assert_ok(&b->ctx, b->backend->open(&b->ctx, &(mpl_device_options){.n_threads = 1}, &b->dev));
    assert_ok(&b->ctx, mpl_new(&b->ctx, b->order, g->n_ops));
    assert_ok(&b->ctx, mpl_new(&b->ctx, b->workspace, g->n_ops));
    assert_ok(&b->ctx, mpl_order_of(&b->ctx, g, mpl_order_find("given"), b->order));
}

static void bind_plan(bound *b, mpl_problem_options options, const char *planner,
                      const char *capacities)
{
    const char *key = "capacities";
    mpl_run run;

    options.op_workspace_bytes = b->workspace;
    assert_ok(&b->ctx, mpl_problem_from_graph(&b->ctx, b->g, b->order, &options, &b->p, &b->map));
    run = mpl_run_default(&b->ctx);
    run.n_params = capacities != NULL;
    run.param_key = &key, run.param_value = &capacities;
    assert_ok(&b->ctx, mpl_planner_run(mpl_planner_find(planner), &run, b->p, &b->plan));
}

static void bind_exec(bound *b, mpl_exec_options options)
{
    assert_ok(&b->ctx, mpl_exec_new(&b->ctx, b->backend, b->dev, b->g, b->order, b->p, b->map,
                                    b->plan, &options, &b->exec));
}

static void unbind(bound *b)
{
    mpl_exec_free(&b->ctx, b->exec);
    mpl_plan_free(&b->ctx, b->plan);
    mpl_value_map_free(&b->ctx, b->map);
    mpl_problem_free(&b->ctx, b->p);
    mpl_free_each(&b->ctx, b->order, b->workspace);
    mpl_graph_free(&b->ctx, b->g);
    b->backend->close(b->dev);
    assert_int_equal(b->ctx.n_live, 0);
}

/* Whether an input lies in the buffer: it is put there when it is first read, though its place is
 * reserved from the start. */
static bool holds_given(const bound *b, mpl_buffer buffer)
{
    for (mpl_value v = 0; v < b->g->n_values; v++)
        if (b->map->value_buffer[v] == buffer && b->g->value_op[v] == MPL_NONE)
            return true;
    return false;
}

/* A buffer is first touched when it is born and last touched before it dies; an input, as long as
 * it is read. */
static void check_blocks(const bound *b, const char *what)
{
    for (mpl_buffer i = 0; i < b->p->n; i++) {
        const mpl_block *block = &b->exec->block[i];
        uint32_t birth = b->p->birth[i], death = b->p->death[i];
        bool same = block->birth == birth && block->death == death;

        if (holds_given(b, i))
            same = block->birth >= birth && block->death <= death;
        if (!same || block->offset != b->plan->offset[i] || block->bytes != b->p->bytes[i])
            fail_msg("%s: buffer %u lives in [%u, %u), its block in [%u, %u)", what, i, birth,
                     death, block->birth, block->death);
    }
    for (uint32_t k = 0; k < b->p->n_in_place; k++) { /* whose place it takes */
        mpl_buffer in = b->p->in_place_in[k], out = b->p->in_place_out[k];

        if (b->plan->offset[in] == b->plan->offset[out] && b->p->death[in] == b->p->birth[out] + 1)
            assert_int_equal(b->exec->block[out].over, in);
    }
}

TEST(blocks_live_as_planned)
{
    for (uint64_t seed = 0; seed < draws(400); seed++) {
        mpl_problem_options options = random_options(seed);
        bound b = {.exec = NULL};
        char what[32];

        b.ctx = mpl_ctx_default();
        bind_graph(&b, random_graph(&b.ctx, seed, 6 + (uint32_t)seed % 20, 1 + (uint32_t)seed % 9));
        for (mpl_op op = 0; op < b.g->n_ops; op++)
            b.workspace[op] = (seed + op) % 3 == 0 ? 64 + op : 0;
        options.parallel = false;
        bind_plan(&b, options, "pool", NULL);
        bind_exec(&b, (mpl_exec_options){.checked = seed % 2 == 0});
        snprintf(what, sizeof what, "seed %" PRIu64, seed);
        check_blocks(&b, what);
        unbind(&b);
    }
}

/* First and last step at which an operation touches v; an input exists from the start, and an
 * output until the end. */
static void plain_life(const bound *b, mpl_value v, uint32_t *birth, uint32_t *death)
{
    const mpl_graph *g = b->g;

    *birth = MPL_NONE, *death = 0;
    for (uint32_t step = 0; step < g->n_ops; step++) {
        mpl_op op = b->order[step];
        bool here = g->value_op[v] == op;

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            here = here || g->op_in[i] == v;
        if (here)
            *birth = *birth == MPL_NONE ? step : *birth, *death = step + 1;
    }
    if (g->value_role[v] == MPL_INPUT)
        *birth = 0, *death = g->n_ops;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            *birth = *birth == MPL_NONE ? 0 : *birth, *death = g->n_ops;
}

/* A run's time is less than the elapsed time, with or without checks; ports past the last are
 * invalid. */
static void check_run(bound *b)
{
    float data[128] = {0};
    int64_t ns = -1, begin;

    for (uint32_t i = 0; i < b->g->n_inputs; i++)
        assert_ok(&b->ctx, mpl_exec_set_input(b->exec, i, data));
    begin = mpl_clock_ns();
    assert_ok(&b->ctx, mpl_exec_run(b->exec, &ns));
    assert_true(ns >= 0 && ns <= mpl_clock_ns() - begin);
    assert_status(&b->ctx, mpl_exec_set_input(b->exec, b->g->n_inputs, data), MPL_EINPUT);
    assert_status(&b->ctx, mpl_exec_output(b->exec, b->g->n_outputs, data), MPL_EINPUT);
}

/* No plan: every value has its own memory, end to end except for alignment, and lives as long as it
 * is used. */
TEST(nothing_is_shared_without_a_plan)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        bound b = {.exec = NULL};
        mpl_exec_facts facts;
        uint64_t weights = 0, pinned = 0, end[8] = {0};

        b.ctx = mpl_ctx_default();
        bind_graph(&b, random_graph(&b.ctx, seed, 6 + (uint32_t)seed % 20, 1 + (uint32_t)seed % 9));
        bind_exec(&b, (mpl_exec_options){.checked = seed % 2 == 0});
        for (mpl_value v = 0; v < b.g->n_values; v++) {
            uint32_t slab = b.exec->value_slab[v], id = b.exec->value_block[v], birth, death;
            bool weight = b.g->value_role[v] == MPL_WEIGHT;

            assert_true(slab < b.exec->n_slabs && b.exec->value_offset[v] >= end[slab] &&
                        b.exec->value_offset[v] - end[slab] < b.backend->align);
            end[slab] = b.exec->value_offset[v] + b.g->value_bytes[v];
            assert_true(slab == (weight ? b.exec->n_pools + MPL_SLAB_WEIGHTS
                                 : b.g->value_role[v] == MPL_TEMPORARY
                                     ? 0
                                     : b.exec->n_pools + MPL_SLAB_PINNED));
            weights += weight ? b.g->value_bytes[v] : 0;
            pinned += !weight && slab > 0 ? b.g->value_bytes[v] : 0;
            assert_true((id == MPL_NONE) == weight);
            if (weight)
                continue;
            plain_life(&b, v, &birth, &death);
            if (b.exec->block[id].value != v || b.exec->block[id].bytes != b.g->value_bytes[v] ||
                b.exec->block[id].birth != birth || b.exec->block[id].death != death)
                fail_msg("seed %" PRIu64 ": value %u lives in [%u, %u), its block in [%u, %u)",
                         seed, v, birth, death, b.exec->block[id].birth, b.exec->block[id].death);
        }
        for (uint32_t k = 0; k < b.exec->n_slabs; k++)
            assert_int_equal(b.exec->slab[k].bytes, end[k]);
        assert_ok(&b.ctx, mpl_exec_facts_get(b.exec, &facts));
        assert_true(facts.weight_bytes == weights && facts.pinned_bytes == pinned &&
                    facts.arena_bytes == end[0] && facts.workspace_bytes == 0);
        check_run(&b);
        unbind(&b);
    }
}

/* The same with loops and branches: there is also room for what each loop carries, and no two
 * blocks overlap. Control flow itself needs no workspace. */
TEST(loops_have_room_for_what_they_carry)
{
    uint32_t n_loops = 0;

    for (uint64_t seed = 0; seed < 60; seed++) {
        bound b = {.exec = NULL};
        mpl_block *block;

        b.ctx = mpl_ctx_default();
        bind_graph(&b, random_control(&b.ctx, seed));
        memset(b.workspace, 0xff, b.g->n_ops * sizeof *b.workspace);
        assert_ok(&b.ctx, mpl_exec_workspaces(&b.ctx, b.backend, b.dev, b.g, b.workspace));
        bind_exec(&b, (mpl_exec_options){.checked = false});
        block = b.exec->block;
        for (mpl_value v = 0; v < b.g->n_values; v++)
            if (b.exec->value_block[v] != MPL_NONE)
                assert_true(block[b.exec->value_block[v]].value == v &&
                            block[b.exec->value_block[v]].offset == b.exec->value_offset[v]);
        for (mpl_op op = 0; op < b.g->n_ops; op++) {
            const mpl_spot *spot;
            uint32_t body;
            uint64_t bytes = 0;

            if ((mpl_op_table[b.g->op_kind[op]].traits & MPL_CONTROL) != 0)
                assert_int_equal(b.workspace[op], 0);
            if (b.g->op_kind[op] != MPL_OP_while)
                continue;
            body = b.g->op_body[b.g->op_body_begin[op]];
            spot = &b.exec->control->staging[body];
            for (uint32_t i = 1; i < b.g->block_n_params[body]; i++)
                bytes += b.g->value_bytes[b.g->block_param[b.g->block_param_begin[body] + i]];
            assert_true(spot->block < b.exec->n_blocks && block[spot->block].op == op &&
                        spot->slab == 0 && block[spot->block].bytes == bytes &&
                        block[spot->block].offset == spot->offset);
            n_loops++;
        }
        for (uint32_t i = 0; i < b.exec->n_blocks; i++)
            for (uint32_t k = 0; k < i; k++)
                assert_true(block[i].slab != block[k].slab ||
                            block[i].offset >= block[k].offset + block[k].bytes ||
                            block[k].offset >= block[i].offset + block[i].bytes);
        unbind(&b);
    }
    assert_true(often(n_loops > 60));
}

/* Each memory that pool 0 is spread over is an arena, and so is each further pool. */
TEST(arenas_are_memories_and_pools)
{
    bound b = {.exec = NULL};
    mpl_problem_options options = mpl_problem_options_default();
    mpl_exec_facts facts;
    uint64_t arenas = 0;

    b.ctx = mpl_ctx_default();
    bind_graph(&b, random_graph(&b.ctx, 5, 24, 9));
    for (mpl_op op = 0; op < b.g->n_ops; op++)
        b.workspace[op] = 1000 + 64 * op;
    options.pin_inputs = options.pin_outputs = false;
    options.concat = MPL_CONCAT_COPY;
    bind_plan(&b, options, "spill", "512/1024/-");
    assert_true(b.p->n_pools == 2 && b.plan->spread.n == 3);
    bind_exec(&b, (mpl_exec_options){.checked = false});
    assert_int_equal(b.exec->n_pools, 4);
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(b.exec->slab[k].bytes, b.plan->spread.bytes[k]);
        arenas += b.plan->spread.bytes[k];
    }
    assert_true(b.plan->pool_bytes[1] > 1024 && b.plan->pool_bytes[1] != b.plan->pool_bytes[0]);
    assert_int_equal(b.exec->slab[3].bytes, b.plan->pool_bytes[1]);
    assert_ok(&b.ctx, mpl_exec_facts_get(b.exec, &facts));
    assert_int_equal(facts.arena_bytes, arenas);
    assert_int_equal(facts.workspace_bytes, b.plan->pool_bytes[1]);
    for (mpl_buffer i = 0; i < b.p->n; i++)
        assert_int_equal(b.exec->block[i].slab, b.p->pool[i] == 1 ? 3 : b.plan->spread.memory[i]);
    unbind(&b);
}

/* Copies of strided operands exist while their operation runs; operations without a kernel are
 * reported as such. */
TEST(operands_in_one_piece_live_for_a_step)
{
    static const char *const graphs[] = {"inception_v1:image=64", "densenet121:image=32",
                                         "shufflenet_v2:image=32"};
    uint32_t n_staged = 0, n_concats = 0, n_views = 0;

    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        mpl_problem_options options = mpl_problem_options_default();
        bound b = {.exec = NULL};
        mpl_graph *g = NULL;

        b.ctx = mpl_ctx_default();
        assert_ok(&b.ctx, mpl_zoo_build(&b.ctx, graphs[k], &g));
        bind_graph(&b, g);
        options.boxes = true;
        options.concat = MPL_CONCAT_SHARE;
        bind_plan(&b, options, "pool", NULL);
        bind_exec(&b, (mpl_exec_options){.checked = false});
        check_blocks(&b, graphs[k]);
        for (uint32_t i = 0; i < b.exec->n_staged; i++, n_staged++) {
            const mpl_staged *staged = &b.exec->staged[i];
            const mpl_block *block = &b.exec->block[staged->block];

            assert_true(b.order[block->birth] == staged->op && block->death == block->birth + 1);
        }
        for (mpl_op op = 0; op < g->n_ops; op++) {
            const char *how = mpl_exec_how(b.exec, op);
            bool concat = g->op_kind[op] == MPL_OP_concat;

            assert_true(how != NULL && (strncmp(how, "nothing", 7) == 0) == b.exec->op_skipped[op]);
            if (!b.exec->op_skipped[op])
                continue;
            assert_string_equal(how, concat ? "nothing: made in place" : "nothing: a view");
            n_concats += concat, n_views += !concat;
        }
        unbind(&b);
    }
    assert_true(n_staged > 0 && n_concats > 0 && n_views > 0);
}

TESTS(blocks_live_as_planned, nothing_is_shared_without_a_plan, loops_have_room_for_what_they_carry,
      arenas_are_memories_and_pools, operands_in_one_piece_live_for_a_step)
