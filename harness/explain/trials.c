/* trials.c -- plans changed options, in a process of its own that ends with the time. See
 * explain.h. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "harness/cli/isolate.h"
#include "graphs/core/text.h"
#include "harness/explain/explain.h"
#include "harness/least/least_job.h"

enum { NAMED = 6 };                             /* operations that a text names */
static const int64_t LEAST_TURN_NS = 450000000; /* of the processor that a change may take */

/* What the parent and the process share. */
typedef struct board {
    int64_t spent_ns; /* of the processor, in all processes before and up to this change */
    int64_t turn_ns;  /* that the present change may take of the processor */
    uint32_t next;    /* index in `turn` of the change that is tried */
    bool no_training; /* recomputation is for training graphs, and this is none */
    bool fused;       /* places of all passes are known */
    uint32_t places[MPL_N_PASSES];
} board;

typedef struct task {
    const mpl_changes *changes;
    const uint32_t *turn; /* [n] the changes in the order in which they are tried */
    mpl_trial *trial;
    mpl_viewer_box *box;
    const mpl_trial_limit *limit;
    board *board;
} task;

/* ---- what a change does, in words ---- */

/* Names the operations whose results are made again. */
static void tell_again(const mpl_job *job, char *what)
{
    const mpl_graph *g = job->source.graph;
    uint32_t n = job->recomputed.facts.n_again, named = 0;
    int at = snprintf(what, MPL_ADVICE_WHAT,
                      "%" PRIu32 " operations run again, %.3f of a forward part more%s", n,
                      (double)job->recomputed.facts.extra_work /
                          (double)mpl_max_u64(job->recomputed.facts.forward_work, 1),
                      n > 0 ? ": " : "");

    if (job->recomputed.n_loops > 0)
        at += snprintf(what + at, (size_t)(MPL_ADVICE_WHAT - at), "rounds of %" PRIu32 " loops",
                       job->recomputed.n_loops);
    for (mpl_op op = 0; op < g->n_ops && named < NAMED && g->n_blocks == 1; op++) {
        mpl_value v = mpl_op_output(g, op, 0);

        if (v != MPL_NONE && strstr(g->value_name[v], ".again") != NULL)
            at += snprintf(what + at, (size_t)(MPL_ADVICE_WHAT - at), "%s%.40s",
                           named++ > 0 ? ", " : "", g->op_name[op]);
    }
    if (n > named && named > 0)
        snprintf(what + at, (size_t)(MPL_ADVICE_WHAT - at), ", ..");
    mpl_text_clean(what);
}

static void tell_passes(const mpl_job *job, char *what)
{
    int at = 0;
    const char *between = "";

    for (int k = 0; k < MPL_N_PASSES && at < MPL_ADVICE_WHAT - 60; k++)
        if (job->passes[k].places > 0) {
            at += snprintf(what + at, (size_t)(MPL_ADVICE_WHAT - at), "%s%s at %" PRIu32 " places",
                           between, mpl_pass_table[k].name, job->passes[k].places);
            between = ", ";
        }
}

static void tell(const mpl_change *change, const mpl_job *job, mpl_trial *trial)
{
    if (change->kind == MPL_ADVICE_recompute)
        tell_again(job, trial->what);
    else if (change->kind == MPL_ADVICE_fusion)
        tell_passes(job, trial->what);
    else if (change->kind == MPL_ADVICE_order && job->order_found.ns > 0)
        snprintf(trial->what, sizeof trial->what, "%s over %s", mpl_order_proof(job),
                 job->order_found.scope);
    else if (change->kind == MPL_ADVICE_pin)
        snprintf(trial->what, sizeof trial->what, "%" PRIu64 " bytes are pinned then",
                 trial->pinned_bytes);
    else if (change->kind == MPL_ADVICE_safety && change->options.safety.kind == MPL_safety_serial)
        snprintf(trial->what, sizeof trial->what, "right for this order only");
}

/* ---- in the process ---- */

/* Keeps the rectangles of pool 0. */
static void keep_boxes(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan, mpl_trial *trial,
                       mpl_viewer_box *box)
{
    const mpl_problem *p = job->problem;
    mpl_spans_across across = {0};

    if (mpl_across(ctx, p, &across) == MPL_OK) {
        trial->n_steps = across.n_steps;
        for (mpl_buffer b = 0; b < p->n && trial->n_boxes < MPL_AFTER_MOST; b++)
            if (p->pool[b] == 0)
                box[trial->n_boxes++] =
                    (mpl_viewer_box){across.from[b], across.to[b], plan->offset[b], p->bytes[b]};
    }
    mpl_across_fini(ctx, &across);
}

/* Whether changes of two kinds that `together` joins lower the plan, each alone. */
static bool is_joined(const task *self)
{
    uint32_t kinds = 0;

    for (uint32_t i = 0; i < self->changes->n; i++)
        if (self->trial[i].state == MPL_TRIAL_PLANNED &&
            self->trial[i].planned_bytes < self->changes->present_bytes)
            kinds |= 1u << self->changes->change[i].kind;
    kinds &= 1u << MPL_ADVICE_order | 1u << MPL_ADVICE_sharing | 1u << MPL_ADVICE_fusion |
             1u << MPL_ADVICE_planner;
    return (kinds & (kinds - 1)) != 0;
}

/* Whether what is known of earlier trials says that this one gives nothing. */
static bool is_vain(const task *self, const mpl_change *change)
{
    const board *b = self->board;

    return (change->kind == MPL_ADVICE_recompute && b->no_training) ||
           (change->kind == MPL_ADVICE_together && !is_joined(self)) ||
           (change->pass < MPL_N_PASSES && b->fused && change->pass != MPL_PASS_bn_fma &&
            b->places[change->pass] == 0);
}

static void learn(board *self, const mpl_change *change, mpl_status st, const mpl_job *job)
{
    if (change->kind == MPL_ADVICE_recompute && st == MPL_EINPUT &&
        strcmp(change->options.recompute, "sqrt") == 0)
        self->no_training = true;
    if (change->kind != MPL_ADVICE_fusion || change->pass != MPL_N_PASSES || st != MPL_OK)
        return;
    self->fused = true;
    for (int k = 0; k < MPL_N_PASSES; k++)
        self->places[k] = job->passes[k].places;
}

/* Keeps what the plan after change i comes to. */
static void keep(mpl_ctx *ctx, const task *t, uint32_t i, const mpl_job *job, const mpl_plan *plan)
{
    mpl_trial *trial = &t->trial[i];

    trial->planned_bytes = plan->peak_bytes;
    trial->pinned_bytes = job->map != NULL ? job->map->pinned_bytes : 0;
    tell(&t->changes->change[i], job, trial);
    if (t->box != NULL)
        keep_boxes(ctx, job, plan, trial, t->box + (size_t)i * MPL_AFTER_MOST);
}

static mpl_status try_plan(mpl_ctx *ctx, const task *t, uint32_t i)
{
    const mpl_change *change = &t->changes->change[i];
    mpl_options options = change->options;
    mpl_made made = {0};
    mpl_status st = mpl_make(ctx, &options, change->graph, MPL_TO_PLAN, &made);

    learn(t->board, change, st, &made.job);
    if (st == MPL_OK)
        keep(ctx, t, i, &made.job, made.plan);
    mpl_made_fini(ctx, &made);
    return st;
}

static mpl_status try_least(mpl_ctx *ctx, const task *t, uint32_t i)
{
    const mpl_change *change = &t->changes->change[i];
    mpl_lowest lowest = {0};
    mpl_status st = mpl_lowest_find(ctx, &change->options, change->graph, &lowest);

    if (st == MPL_OK)
        keep(ctx, t, i, &lowest.job, lowest.plan);
    mpl_lowest_fini(ctx, &lowest);
    return st;
}

static void try_one(const task *self, uint32_t i)
{
    bool least = self->changes->change[i].command == MPL_CMD_least;
    mpl_ctx ctx = mpl_ctx_default();
    mpl_status st = least ? try_least(&ctx, self, i) : try_plan(&ctx, self, i);

    self->trial[i].state = st == MPL_OK ? MPL_TRIAL_PLANNED : MPL_TRIAL_NONE;
}

static int64_t processor_ns(void)
{
    struct timespec used = {0};

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* Lets a signal end this process once half of what is left of the processor's time is used, so
 * that one long search leaves time for other changes. Load of the machine thus cuts nothing. */
static void limit_turn(board *self, int64_t left_ns)
{
    struct itimerval turn = {0};

    self->turn_ns = left_ns / 2 > LEAST_TURN_NS ? left_ns / 2 : LEAST_TURN_NS;
    turn.it_value.tv_sec = self->turn_ns / 1000000000;
    turn.it_value.tv_usec = self->turn_ns % 1000000000 / 1000 + 1;
    signal(SIGPROF, SIG_DFL);
    setitimer(ITIMER_PROF, &turn, NULL);
}

static void try_all(void *arg)
{
    const task *t = arg;
    board *b = t->board;
    int64_t before = b->spent_ns;

    for (; b->next < t->changes->n; b->next++) {
        uint32_t i = t->turn[b->next];

        b->spent_ns = before + processor_ns();
        if (b->spent_ns >= t->limit->processor_ns)
            return;
        limit_turn(b, t->limit->processor_ns - b->spent_ns);
        if (is_vain(t, &t->changes->change[i]))
            t->trial[i].state = MPL_TRIAL_NONE;
        else
            try_one(t, i);
    }
}

/* ---- in the parent ---- */

/* Those that are quick come first. */
static void order_turns(const mpl_changes *changes, uint32_t *turn)
{
    uint32_t n = 0;

    for (uint8_t late = 0; late <= 3; late++)
        for (uint32_t i = 0; i < changes->n; i++)
            if (changes->change[i].late == late)
                turn[n++] = i;
}

/* Goes on after the change in whose turn the process died, which may have been its limit. */
static void pass_over(task *self, const mpl_ending *ending)
{
    board *b = self->board;

    if (b->next == self->changes->n || b->spent_ns >= self->limit->processor_ns)
        return;
    self->trial[self->turn[b->next++]].state =
        ending->signal == SIGPROF ? MPL_TRIAL_OPEN : MPL_TRIAL_NONE;
    b->spent_ns += b->turn_ns;
}

mpl_status mpl_changes_try(mpl_ctx *ctx, const mpl_changes *changes, const mpl_trial_limit *limit,
                           mpl_trial *trial, mpl_viewer_box *box)
{
    mpl_status st = MPL_OK;
    uint32_t *turn = NULL;
    mpl_ending ending = {0};
    task t = {.changes = changes, .trial = trial, .box = box, .limit = limit};
    board *b = NULL;

    MPL_TRY(mpl_new(ctx, turn, changes->n));
    order_turns(changes, turn);
    t.turn = turn;
    if ((t.board = b = mpl_share(sizeof *b)) == NULL)
        MPL_FAIL(ctx, MPL_EMEM, "out of memory to share with a process");
    while (b->next < changes->n && b->spent_ns < limit->processor_ns &&
           mpl_clock_ns() < limit->deadline_ns) {
        MPL_TRY(mpl_isolate(ctx, try_all, &t, limit->deadline_ns, &ending));
        if (ending.timed_out || ending.interrupted != 0)
            break;
        pass_over(&t, &ending);
    }
out:
    if (b != NULL)
        munmap(b, sizeof *b);
    mpl_free(ctx, turn);
    return st;
}
