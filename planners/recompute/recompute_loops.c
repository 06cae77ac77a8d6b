/* recompute_loops.c -- recomputation in graphs with loops: each keeps its tape by a schedule, or
 * runs again as a whole. See recompute.h and revolve.h. */
#include "planners/recompute/recompute_priv.h"

#include "graphs/orders/work.h"

static bool is_shortened(const mpl_taped_loop *loop)
{
    return loop->schedule.n_rows < loop->n_rounds;
}

static mpl_status check(const mpl_recompute_method *method, const mpl_recompute_task *task)
{
    if (task->budget != MPL_LEAST_PEAK || task->without != 0)
        return MPL_REFUSE(task->ctx,
                          "graph '%s' has loops or branches: there, %s takes no budget and no "
                          "without=; revolve:SLOTS says how many states are kept, and "
                          "budget:BYTES,loops=%s is within a budget",
                          task->g->name, method->name, method->name);
    return MPL_OK;
}

/* The values that loops with a tape keep, and how often their rounds run. */
static void count(const mpl_taped_loops *loops, mpl_recompute_found *found)
{
    mpl_rerun_facts *facts = &found->facts;

    for (uint32_t k = 0; k < loops->n; k++) {
        const mpl_taped_loop *loop = &loops->loop[k];
        uint32_t rows = is_shortened(loop) ? loop->schedule.n_rows : loop->n_rounds;
        uint64_t again = loop->schedule.n_forward - (loop->n_rounds - 1), work = MPL_MOST_WORK;

        found->tape_before_bytes += loop->n_rounds * loop->state_bytes;
        found->tape_bytes += rows * loop->state_bytes;
        found->forward_rounds = mpl_add_work(
            found->forward_rounds,
            loop->enclosing * (is_shortened(loop) ? loop->schedule.n_forward : loop->n_rounds - 1));
        if (!is_shortened(loop))
            continue;
        mpl_mul_bytes(again * loop->enclosing, loop->round_work, &work);
        facts->extra_work = mpl_add_work(facts->extra_work, work);
        facts->n_again += loop->n_ops;
        found->n_loops++;
    }
}

static mpl_status count_work(mpl_recompute_task *task)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = task->g;
    mpl_rerun_facts *facts = &task->found.facts;
    uint8_t *forward = NULL;

    MPL_TRY(mpl_new(task->ctx, forward, g->n_ops));
    if (mpl_find_forward(task->ctx, g, forward) == MPL_EINPUT)
        memset(forward, 1, g->n_ops);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint64_t work = mpl_work_within(g, op, 0);

        if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0)
            continue; /* the work is that of its blocks */
        facts->all_work = mpl_add_work(facts->all_work, work);
        facts->forward_work = mpl_add_work(facts->forward_work, forward[op] ? work : 0);
    }
out:
    mpl_free(task->ctx, forward);
    return st;
}

/* Schedules every loop. */
static mpl_status schedule(const mpl_recompute_method *method, mpl_recompute_task *task,
                           mpl_taped_loops *loops)
{
    for (uint32_t k = 0; k < loops->n; k++)
        MPL_PASS(method->loops(task->ctx, loops->loop[k].n_rounds, task->slots,
                               &loops->loop[k].schedule));
    return MPL_OK;
}

static void keep_all(mpl_ctx *ctx, mpl_taped_loops *loops)
{
    for (uint32_t k = 0; k < loops->n; k++) {
        mpl_schedule *schedule = &loops->loop[k].schedule;

        mpl_schedule_fini(ctx, schedule);
        schedule->n_rows = loops->loop[k].n_rounds;
        schedule->n_forward = schedule->n_rows - 1;
    }
}

mpl_status mpl_recompute_loops(const mpl_recompute_method *method, mpl_recompute_task *task,
                               mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = task->ctx;
    mpl_recompute_found *found = &task->found;
    mpl_taped_loops loops = {0};
    mpl_graph *made = NULL;

    MPL_TRY(check(method, task));
    MPL_TRY(mpl_taped_loops_find(ctx, task->g, &loops));
    if (loops.n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "graph '%s': %s", task->g->name,
                 loops.why[0] != '\0' ? loops.why : "no loop of it has a tape, as in training");
    MPL_TRY(mpl_given_peak(ctx, task->g, task->options, &found->before_bytes));
    MPL_TRY(schedule(method, task, &loops));
    MPL_TRY(mpl_taped_graph(ctx, task->g, &loops, &made));
    MPL_TRY(mpl_given_peak(ctx, made, task->options, &found->peak_bytes));
    if (found->peak_bytes >= found->before_bytes && task->loops == NULL) { /* few rounds, or the
                                                                              peak is elsewhere */
        mpl_graph_free(ctx, made);
        made = NULL;
        keep_all(ctx, &loops);
        MPL_TRY(mpl_taped_graph(ctx, task->g, &loops, &made));
        found->peak_bytes = found->before_bytes;
    }
    MPL_TRY(count_work(task));
    count(&loops, found);
    found->n_taped = loops.n;
    memcpy(found->why, loops.why, sizeof found->why);
    *out = made, made = NULL;
out:
    mpl_graph_free(ctx, made);
    mpl_taped_loops_fini(ctx, &loops);
    return st;
}

/* ---- outermost operations ---- */

enum { TRIES = 6 };

/* Chooses within `budget` of the model; keeps the run in *task if it is better and within the
 * task's. *peak: of its graph; UINT64_MAX: no run. */
static mpl_status try_model(mpl_recompute_choose *choose, mpl_recompute_task *task, uint64_t budget,
                            uint64_t *peak)
{
    mpl_status st = MPL_OK;
    mpl_recompute_task now = *task;
    mpl_rerun_facts facts;

    *peak = UINT64_MAX;
    now.budget = budget, now.run = NULL, now.n = 0;
    now.found.has_bound = false, now.found.n_regions = now.found.n_plain = 0;
    st = choose(&now);
    task->found.ticks = now.found.ticks;
    if (st == MPL_ELIMIT || st == MPL_EINVALID)
        return MPL_OK;
    MPL_TRY(st);
    MPL_TRY(mpl_rerun_peak(now.ctx, now.g, now.n, now.run, now.options, peak, &facts));
    if (*peak > task->budget ||
        (task->run != NULL && facts.extra_work >= task->found.facts.extra_work))
        goto out;
    mpl_free(task->ctx, task->run);
    task->run = now.run, now.run = NULL;
    task->n = now.n;
    task->found = now.found;
    task->found.facts = facts;
    task->found.has_bound = false;
    task->found.claim = MPL_RECOMPUTE_FEASIBLE;
out:
    mpl_free(now.ctx, now.run);
    return st;
}

mpl_status mpl_recompute_units(mpl_recompute_choose *choose, mpl_recompute_task *task)
{
    mpl_budget_aim aim = {.want = task->budget,
                          .high = 2 * task->found.before_bytes,
                          .budget = task->budget,
                          .tries = TRIES};
    uint64_t peak;

    while (mpl_budget_left(&aim)) {
        MPL_PASS(try_model(choose, task, aim.budget, &peak));
        mpl_budget_next(&aim, peak);
    }
    return task->run != NULL ? MPL_OK : mpl_recompute_refuse(task, task->budget, false);
}
