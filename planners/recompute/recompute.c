/* recompute.c -- methods of recomputation by name. See recompute.h. */
#include "planners/recompute/recompute_priv.h"

#include "graphs/core/names.h"
#include "graphs/orders/work.h"

#include "mpl_config.h"

static const char *const rule_names[MPL_N_RECOMPUTE_RULES] = {
#define RULE(name, about) #name,
#include "planners/recompute/recompute_rules.def"
#undef RULE
};

mpl_status mpl_recompute_without(mpl_ctx *ctx, const char *text, uint32_t *without)
{
    return mpl_names_to_bits(ctx, "--recompute: without", text, MPL_N_RECOMPUTE_RULES, rule_names,
                             without);
}

/* Work of the repeats of a run; UINT64_MAX: there is none. */
static mpl_status work_of(const mpl_recompute_task *task, uint64_t *work)
{
    mpl_rerun_facts facts = {.extra_work = UINT64_MAX};
    uint64_t peak;

    if (task->run != NULL)
        MPL_PASS(
            mpl_rerun_peak(task->ctx, task->g, task->n, task->run, task->options, &peak, &facts));
    *work = facts.extra_work;
    return MPL_OK;
}

/* Regions or rounding: what does less work. The bound of rounding holds for both. */
static mpl_status choose_large(mpl_recompute_task *task)
{
    mpl_status st = MPL_OK;
    mpl_recompute_task parts = *task, *best = task;
    uint64_t work, other;

    st = mpl_recompute_round(task);
    MPL_TRY(st == MPL_ELIMIT ? MPL_OK : st);
    if (mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_regions))
        st = mpl_recompute_regions(&parts, MPL_GAME_STAGES);
    MPL_TRY(st == MPL_ELIMIT ? MPL_OK : st);
    MPL_TRY(work_of(task, &work));
    MPL_TRY(work_of(&parts, &other));
    if (work == UINT64_MAX && other == UINT64_MAX)
        MPL_TRY(mpl_recompute_refuse(task, task->budget, false));
    best = other < work ? &parts : task;
    task->found.ticks += parts.found.ticks;
    if (best == &parts) {
        mpl_free(task->ctx, task->run);
        task->run = parts.run, parts.run = NULL;
        task->n = parts.n;
        task->found.n_regions = parts.found.n_regions;
        task->found.n_plain = parts.found.n_plain;
        task->found.claim = task->found.has_bound && other <= task->found.bound_work
                                ? MPL_RECOMPUTE_OPTIMAL
                                : parts.found.claim;
    }
out:
    mpl_free(task->ctx, parts.run);
    return st;
}

/* The game covers the program's runs and often finishes where the program does not. */
static mpl_status choose_budget(mpl_recompute_task *task)
{
    mpl_status st = MPL_OK;
    mpl_recompute_found before = task->found, game = {.has_bound = false};
    mpl_recompute_choose *start = mpl_recompute_round;

    if (mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_game)) {
        st = mpl_recompute_game(task, MPL_GAME_STAGES);
        if (st == MPL_EINVALID || (st == MPL_OK && task->found.claim == MPL_RECOMPUTE_OPTIMAL))
            return st;
        mpl_free(task->ctx, task->run);
        task->run = NULL;
        if (st == MPL_EINPUT) /* too large for it */
            start = choose_large;
        MPL_TRY(st == MPL_EINPUT || st == MPL_ELIMIT ? MPL_OK : st);
        game = task->found;
        task->found = before;
        task->found.ticks = game.ticks;
    }
    st = mpl_recompute_exact(task, start);
    if (st == MPL_EINPUT && start == choose_large) /* too large for the program, too */
        return choose_large(task);
    MPL_TRY(st);
    if (game.has_bound && task->found.claim != MPL_RECOMPUTE_OPTIMAL) {
        task->found.bound_work = mpl_max_u64(task->found.bound_work, game.bound_work);
        task->found.has_bound = true;
    }
out:
    return st;
}

static mpl_status choose_pebble(mpl_recompute_task *task)
{
    mpl_status st = mpl_recompute_game(task, MPL_GAME_FREE);

    return st == MPL_EINPUT && mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_regions)
               ? mpl_recompute_regions(task, MPL_GAME_FREE)
               : st;
}

static mpl_status refuse_straight(mpl_recompute_task *task)
{
    return MPL_REFUSE(
        task->ctx,
        "graph '%s' has no loop: revolve keeps a part of a loop's tape; sqrt, budget, "
        "round and pebble apply",
        task->g->name);
}

const mpl_recompute_method mpl_recompute_methods[] = {
    {"sqrt", "segments of the forward part, kept or run again once (Chen and others, 2016)", false,
     mpl_recompute_sqrt, mpl_schedule_sqrt},
    {"budget",
     "the least work within the budget over all operations, by search or an integer program (Jain "
     "and others, 2020); by regions where there are more than 64 operations",
     true, MPL_HAVE_GLPK ? choose_budget : NULL, NULL},
    {"round", "its relaxation over groups of operations, rounded, or sqrt; the better, thinned out",
     true, MPL_HAVE_GLPK ? mpl_recompute_round : NULL, NULL},
    {"pebble",
     "the pebble game: of all runs in any order, the least work within the budget, or the least "
     "peak; by regions where there are more than 64 operations",
     false, choose_pebble, NULL},
    {"revolve",
     "loops: so many states kept that the fewest rounds run again (Griewank and Walther, 2000)",
     false, refuse_straight, mpl_schedule_revolve},
    {NULL, NULL, false, NULL, NULL},
};

const mpl_recompute_method *mpl_recompute_find(const char *name)
{
    const mpl_recompute_method *method = mpl_recompute_methods;

    while (method->name != NULL && strcmp(method->name, name) != 0)
        method++;
    return method->name != NULL ? method : NULL;
}

/* The run without repeats. */
static mpl_status keep_as_it_is(mpl_recompute_task *task)
{
    MPL_PASS(mpl_new(task->ctx, task->run, task->g->n_ops));
    for (mpl_op op = 0; op < task->g->n_ops; op++)
        if (task->g->op_block[op] == 0)
            task->run[task->n++] = op;
    task->found.has_bound = true;
    task->found.claim = MPL_RECOMPUTE_OPTIMAL;
    return MPL_OK;
}

static mpl_status choose(const mpl_recompute_method *method, mpl_recompute_task *task)
{
    bool fits = task->budget != MPL_LEAST_PEAK && task->found.before_bytes <= task->budget;

    if (fits && method->choose != mpl_recompute_sqrt)
        return keep_as_it_is(task);
    return task->g->n_blocks > 1 ? mpl_recompute_units(method->choose, task) : method->choose(task);
}

/* Loops first, then the rest, within the budget together. */
static mpl_status choose_both(const mpl_recompute_method *method, mpl_recompute_task *task,
                              mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_recompute_task loops = *task, rest = *task;
    mpl_recompute_found *found = &task->found;
    mpl_graph *made = NULL;

    if (method->loops != NULL || task->g->n_blocks == 1)
        return MPL_REFUSE(task->ctx,
                          "graph '%s' %s: loops= is for graphs with loops, by budget, "
                          "round or pebble",
                          task->g->name,
                          task->g->n_blocks == 1 ? "has no loop" : "keeps its tape by the method");
    loops.budget = MPL_LEAST_PEAK, loops.without = 0;
    MPL_TRY(mpl_recompute_loops(task->loops, &loops, &made));
    rest.g = made, rest.loops = NULL;
    MPL_TRY(mpl_recompute(method, &rest, out));
    *found = rest.found;
    found->before_bytes = loops.found.before_bytes;
    found->facts = loops.found.facts;
    found->facts.n_again += rest.found.facts.n_again;
    found->facts.extra_work = mpl_add_work(found->facts.extra_work, rest.found.facts.extra_work);
    found->has_bound = false;
    found->claim = MPL_RECOMPUTE_FEASIBLE;
    found->n_taped = loops.found.n_taped;
    found->n_loops = loops.found.n_loops;
    memcpy(found->why, loops.found.why, sizeof found->why);
    found->forward_rounds = loops.found.forward_rounds;
    found->tape_before_bytes = loops.found.tape_before_bytes;
    found->tape_bytes = loops.found.tape_bytes;
out:
    mpl_graph_free(task->ctx, made);
    return st;
}

mpl_status mpl_recompute(const mpl_recompute_method *method, mpl_recompute_task *task,
                         mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = task->ctx;
    const mpl_graph *g = task->g;
    mpl_recompute_found *found = &task->found;

    *found = (mpl_recompute_found){0};
    if (method->choose == NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "recomputation by '%s' needs GLPK, which is not in this build",
                 method->name);
    if (method->needs_budget && task->budget == MPL_LEAST_PEAK)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "recomputation by '%s' needs a budget, as in %s:512MiB or %s:50%%", method->name,
                 method->name, method->name);
    if (g->program)
        MPL_FAIL(ctx, MPL_EINPUT, "graph '%s' is a program: nothing of it can run again", g->name);
    if (task->loops != NULL)
        return choose_both(method, task, out);
    if (g->n_blocks > 1 && method->loops != NULL)
        return mpl_recompute_loops(method, task, out);
    MPL_TRY(mpl_given_peak(ctx, g, task->options, &found->before_bytes));
    MPL_TRY(choose(method, task));
    MPL_TRY(mpl_rerun_peak(ctx, g, task->n, task->run, task->options, &found->peak_bytes, NULL));
    /* Memory outside the method's model may exceed the budget. */
    if (task->budget != MPL_LEAST_PEAK && found->peak_bytes > task->budget)
        MPL_FAIL(ctx, MPL_ELIMIT,
                 "graph '%s': what method '%s' found needs %" PRIu64 " bytes, more than %" PRIu64,
                 g->name, method->name, found->peak_bytes, task->budget);
    MPL_TRY(mpl_rerun(ctx, g, task->n, task->run, out, &found->facts));
out:
    mpl_free(ctx, task->run);
    task->run = NULL;
    return st;
}
