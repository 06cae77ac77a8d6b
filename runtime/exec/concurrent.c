/* concurrent.c -- runs independent operations of a graph at the same time, on threads. See
 * mpl_exec_set_workers.
 *
 * An operation waits for those that make what it reads, and for the one before it in its stream if
 * the plan has streams. A worker takes the first in the order of those that wait for nothing: of
 * all, or of its streams. So a plan that is not safe would show as a wrong output. A loop or case
 * is one operation, with its blocks; it also reads what its blocks capture. Workers see the
 * executor through a copy with a context and a device of their own. */
#include "runtime/exec/exec_priv.h"
#include "runtime/machine.h"

#include <pthread.h>
#include <stdlib.h>

/* Looks for work before a worker sleeps: about as long as the system takes to wake it again. */
enum { LOOKS = 4000 };

typedef struct worker {
    mpl_team *team;
    uint32_t index;
    pthread_t thread;
    pthread_cond_t wake; /* a run begins, or this worker is no longer idle */
    mpl_ctx ctx;
    mpl_device *dev;
    char *stage; /* for checks; or NULL */
    mpl_exec exec;
} worker;

struct mpl_team {
    mpl_exec *exec;
    uint32_t n, n_started;
    worker *worker; /* [n] */
    uint32_t n_looks;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint64_t n_runs; /* begun so far */
    bool closing;

    /* The current run. */
    uint32_t n_inside; /* workers that have not left it */
    uint32_t *waiting; /* [n_ops] operations that it still waits for */
    uint32_t *step_of; /* [n_ops] position in the order */
    mpl_op *follower;  /* [n_ops] the next of its stream; NULL: no streams */
    uint64_t *ready;   /* sets of positions in the order: one for each worker, or one for all */
    uint32_t n_words;  /* of a set */
    uint64_t idle;     /* set of workers that sleep */
    _Atomic uint64_t n_changes; /* times that something became ready, or the run ended */
    uint32_t n_left;            /* unfinished operations of the whole graph */
    uint32_t failed_step;
    const worker *failed; /* ran the first operation, in the order, that failed; or NULL */
    mpl_status st;        /* its status */
    int64_t end_ns;
    int64_t *stamps;  /* [2 * n_ops] times at which operations began, then at which they ended */
    uint32_t n_timed; /* operations with stamps */
};

/* ---- one run: called with the lock held ---- */

static uint64_t *set_of(const mpl_team *team, uint32_t index)
{
    return team->ready + (team->follower != NULL ? (size_t)index * team->n_words : 0);
}

static uint32_t worker_of(const mpl_team *team, mpl_op op)
{
    return team->exec->op_stream[op] % team->n;
}

static void wake(mpl_team *team, uint32_t index)
{
    team->idle &= ~(UINT64_C(1) << index);
    pthread_cond_signal(&team->worker[index].wake);
}

/* `spared`: an operation that needs no other worker, as this one takes one next. */
static void make_ready(mpl_team *team, mpl_op op, uint32_t by, bool *spared)
{
    uint32_t to = team->follower != NULL ? worker_of(team, op) : by;

    mpl_bit_add(set_of(team, to), team->step_of[op]);
    atomic_fetch_add(&team->n_changes, 1);
    if (to == by && !*spared)
        *spared = true;
    else if (team->follower == NULL && team->idle != 0)
        wake(team, (uint32_t)__builtin_ctzll(team->idle));
    else if (team->follower != NULL && (team->idle >> to & 1) != 0)
        wake(team, to);
}

/* Takes the ready operation that comes first in the order; MPL_NONE: none. */
static mpl_op take_ready(mpl_team *team, uint32_t index)
{
    uint64_t *set = set_of(team, index);

    for (uint32_t w = 0; w < team->n_words; w++)
        if (set[w] != 0) {
            uint32_t step = w * 64 + (uint32_t)__builtin_ctzll(set[w]);

            set[w] &= set[w] - 1;
            return team->exec->order[step];
        }
    return MPL_NONE;
}

static bool is_over(const mpl_team *team)
{
    return team->n_left == 0 || team->failed != NULL;
}

static void arrive_at(mpl_team *team, mpl_op op, uint32_t by, bool *spared)
{
    if (--team->waiting[op] == 0)
        make_ready(team, op, by, spared);
}

static void finish(mpl_team *team, mpl_op op, const worker *by, mpl_status st)
{
    const mpl_graph *g = team->exec->g;
    bool spared = false;

    team->n_left--;
    if (st != MPL_OK && (team->failed == NULL || team->step_of[op] < team->failed_step)) {
        team->failed = by;
        team->failed_step = team->step_of[op];
        team->st = st;
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        for (uint32_t k = v != MPL_NONE ? g->value_use_begin[v] : 0;
             v != MPL_NONE && k < g->value_use_begin[v + 1]; k++)
            arrive_at(team, mpl_op_outermost(g, g->value_use[k]), by->index, &spared);
    }
    if (team->follower != NULL && team->follower[op] != MPL_NONE)
        arrive_at(team, team->follower[op], by->index, &spared);
    if (!is_over(team))
        return;
    team->end_ns = mpl_clock_ns();
    atomic_fetch_add(&team->n_changes, 1);
    while (team->idle != 0)
        wake(team, (uint32_t)__builtin_ctzll(team->idle));
}

/* Between two looks: leaves the core's other thread its turn. */
static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Waits until there may be something to take. */
static void await(mpl_team *team, worker *w)
{
    uint64_t seen = atomic_load(&team->n_changes);

    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < team->n_looks && atomic_load(&team->n_changes) == seen; i++)
        relax();
    pthread_mutex_lock(&team->lock);
    if (atomic_load(&team->n_changes) != seen)
        return;
    team->idle |= UINT64_C(1) << w->index;
    while ((team->idle >> w->index & 1) != 0)
        pthread_cond_wait(&w->wake, &team->lock);
}

mpl_status mpl_exec_run_unit(mpl_exec *exec, mpl_op op, int64_t *apart_ns)
{
    const mpl_graph *g = exec->g;
    const mpl_program *program;
    bool owns = g->op_body_begin[op] < g->op_body_begin[op + 1];

    if (exec->control == NULL)
        return mpl_exec_run_op(exec, op);
    program = exec->control->program;
    return mpl_control_run(
        exec, owns ? program->begin_step[g->op_body[g->op_body_begin[op]]] : program->op_step[op],
        program->op_step[op] + 1, apart_ns);
}

static void take_part(mpl_team *team, worker *w)
{
    while (!is_over(team)) {
        mpl_op op = take_ready(team, w->index);
        int64_t from, to;
        mpl_status st;

        if (op == MPL_NONE) {
            await(team, w);
            continue;
        }
        pthread_mutex_unlock(&team->lock);
        from = mpl_clock_ns();
        st = team->exec->census != NULL ? mpl_census_run(&w->exec, op, team->step_of[op])
                                        : mpl_exec_run_unit(&w->exec, op, NULL);
        to = mpl_clock_ns();
        pthread_mutex_lock(&team->lock);
        if (!team->exec->op_skipped[op]) {
            team->stamps[team->n_timed] = from;
            team->stamps[team->exec->g->n_ops + team->n_timed++] = to;
        }
        finish(team, op, w, st);
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    mpl_team *team = w->team;
    uint64_t seen = 0;

    mpl_bind_share(w->index, team->n);
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (team->n_runs == seen && !team->closing)
            pthread_cond_wait(&w->wake, &team->lock);
        if (team->closing)
            break;
        seen = team->n_runs;
        take_part(team, w);
        if (--team->n_inside == 0)
            pthread_cond_signal(&team->ended);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

/* ---- before and after a run ---- */

/* How many operations each one waits for, and which are ready at the start. */
static void list_waits(mpl_team *team)
{
    const mpl_graph *g = team->exec->g;
    const mpl_op *order = team->exec->order;

    memset(team->waiting, 0, g->n_ops * sizeof *team->waiting);
    memset(team->ready, 0,
           (team->follower != NULL ? team->n : 1) * (size_t)team->n_words * sizeof *team->ready);
    for (uint32_t s = 0; s < g->n_ops; s++)
        team->step_of[order[s]] = s;
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
            team->waiting[mpl_op_outermost(g, g->value_use[k])] +=
                g->value_op[v] != MPL_NONE && g->value_block[v] == 0;
    for (mpl_op op = 0; team->follower != NULL && op < g->n_ops; op++)
        if (team->follower[op] != MPL_NONE)
            team->waiting[team->follower[op]]++;
    team->n_left = 0;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        team->n_left += g->op_block[op] == 0;
        if (g->op_block[op] == 0 && team->waiting[op] == 0)
            mpl_bit_add(set_of(team, team->follower != NULL ? worker_of(team, op) : 0),
                        team->step_of[op]);
    }
}

/* A worker counts its allocations from where the caller stands, so that tests can make them fail.
 */
static void brief(mpl_team *team, worker *w)
{
    const mpl_ctx *ctx = team->exec->ctx;

    w->exec = *team->exec;
    w->exec.ctx = &w->ctx;
    w->exec.dev = w->dev;
    w->exec.stage = w->stage;
    w->ctx.n_allocs = 0;
    w->ctx.fail_after = ctx->fail_after >= ctx->n_allocs ? ctx->fail_after - ctx->n_allocs : -1;
}

/* Time during which two or more operations ran. Sorts the stamps. */
static int64_t time_of_several(mpl_team *team)
{
    int64_t *from = team->stamps, *to = team->stamps + team->exec->g->n_ops, sum = 0, since = 0;
    uint32_t began = 0, ended = 0;

    mpl_sort_i64(from, team->n_timed);
    mpl_sort_i64(to, team->n_timed);
    while (ended < team->n_timed) {
        bool ends = began == team->n_timed || to[ended] <= from[began];
        int64_t now = ends ? to[ended] : from[began];

        sum += began - ended >= 2 ? now - since : 0;
        since = now;
        *(ends ? &ended : &began) += 1;
    }
    return sum;
}

mpl_status mpl_team_run(mpl_team *team, int64_t *ns)
{
    mpl_exec *exec = team->exec;
    int64_t begin;

    list_waits(team);
    for (uint32_t i = 0; i < team->n; i++)
        brief(team, &team->worker[i]);
    MPL_PASS(mpl_exec_arrive_all(exec));
    mpl_control_reset(exec);
    if (exec->census != NULL)
        MPL_PASS(mpl_census_begin(exec));
    team->failed = NULL;
    team->n_timed = 0;
    begin = team->end_ns = mpl_clock_ns();
    pthread_mutex_lock(&team->lock);
    team->n_runs++;
    team->n_inside = team->n;
    for (uint32_t i = 0; i < team->n; i++)
        pthread_cond_signal(&team->worker[i].wake);
    while (team->n_inside > 0)
        pthread_cond_wait(&team->ended, &team->lock);
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < team->n; i++)
        exec->ctx->n_allocs += team->worker[i].ctx.n_allocs;
    if (team->failed != NULL)
        return mpl_fail(exec->ctx, team->st, team->failed->ctx.file, team->failed->ctx.line, "%s",
                        team->failed->ctx.message);
    exec->concurrent_ns = time_of_several(team);
    if (exec->census != NULL)
        MPL_PASS(mpl_checked_rest(exec));
    if (ns != NULL)
        *ns = team->end_ns - begin;
    return MPL_OK;
}

/* ---- making a team ---- */

static mpl_status list_followers(mpl_team *team)
{
    mpl_status st = MPL_OK;
    const mpl_exec *exec = team->exec;
    mpl_op *last = NULL;
    uint32_t n_streams = 0;

    for (mpl_op op = 0; op < exec->g->n_ops; op++)
        n_streams = exec->op_stream[op] < n_streams ? n_streams : exec->op_stream[op] + 1;
    MPL_TRY(mpl_new(exec->ctx, team->follower, exec->g->n_ops));
    MPL_TRY(mpl_new(exec->ctx, last, n_streams));
    memset(last, 0xff, n_streams * sizeof *last);
    memset(team->follower, 0xff, exec->g->n_ops * sizeof *team->follower);
    for (uint32_t s = 0; s < exec->g->n_ops; s++) {
        mpl_op op = exec->order[s], *before = &last[exec->op_stream[op]];

        if (exec->g->op_block[op] != 0)
            continue;
        if (*before != MPL_NONE)
            team->follower[*before] = op;
        *before = op;
    }
out:
    mpl_free(exec->ctx, last);
    return st;
}

static mpl_status start_worker(mpl_team *team, worker *w)
{
    mpl_ctx *ctx = team->exec->ctx;
    int failed;

    w->team = team;
    w->index = team->n_started;
    if (team->exec->options.checked)
        MPL_PASS(mpl_new(ctx, w->stage, MPL_STAGE_BYTES));
    w->ctx = mpl_ctx_default();
    if (team->exec->backend->share(team->exec->dev, &w->ctx, &w->dev) != MPL_OK)
        return mpl_fail(ctx, MPL_EMEM, __FILE__, __LINE__, "%s", w->ctx.message);
    pthread_cond_init(&w->wake, NULL);
    if ((failed = pthread_create(&w->thread, NULL, work, w)) != 0) {
        pthread_cond_destroy(&w->wake);
        team->exec->backend->close(w->dev);
        return MPL_ERROR(ctx, MPL_EMEM, "worker %u of %u: no thread: %s", w->index + 1, team->n,
                         strerror(failed));
    }
    team->n_started++;
    return MPL_OK;
}

static mpl_status team_new(mpl_exec *exec, uint32_t n, mpl_team **out)
{
    mpl_status st = MPL_OK;
    uint32_t n_ops = exec->g->n_ops, n_cores = mpl_cores_here();
    mpl_team *team = NULL;

    MPL_TRY(mpl_new(exec->ctx, team, 1));
    team->exec = exec;
    team->n = n;
    team->n_looks = n <= n_cores ? LOOKS : 0;
    team->n_words = n_ops / 64 + 1;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->ended, NULL);
    MPL_TRY(mpl_new_each(exec->ctx, n_ops, team->waiting, team->step_of));
    MPL_TRY(mpl_new(exec->ctx, team->stamps, 2 * (size_t)n_ops));
    if (exec->op_stream != NULL)
        MPL_TRY(list_followers(team));
    MPL_TRY(
        mpl_new(exec->ctx, team->ready, (team->follower != NULL ? n : 1) * (size_t)team->n_words));
    MPL_TRY(mpl_new(exec->ctx, team->worker, n));
    if (exec->options.checked && exec->census == NULL)
        MPL_TRY(mpl_census_new(exec));
    while (team->n_started < n)
        MPL_TRY(start_worker(team, &team->worker[team->n_started]));
    *out = team, team = NULL;
out:
    mpl_team_free(team);
    return st;
}

void mpl_team_free(mpl_team *team)
{
    if (team == NULL)
        return;
    pthread_mutex_lock(&team->lock);
    team->closing = true;
    for (uint32_t i = 0; i < team->n_started; i++)
        pthread_cond_signal(&team->worker[i].wake);
    pthread_mutex_unlock(&team->lock);
    for (uint32_t i = 0; i < team->n_started; i++) {
        pthread_join(team->worker[i].thread, NULL);
        pthread_cond_destroy(&team->worker[i].wake);
        team->exec->backend->close(team->worker[i].dev);
        mpl_assert(team->worker[i].ctx.n_live == 0);
    }
    for (uint32_t i = 0; team->worker != NULL && i < team->n; i++)
        mpl_free(team->exec->ctx, team->worker[i].stage);
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->ended);
    mpl_free_each(team->exec->ctx, team->waiting, team->step_of, team->follower, team->ready,
                  team->stamps, team->worker, team);
}

mpl_status mpl_exec_set_workers(mpl_exec *exec, uint32_t n)
{
    const char *name = exec->g->name;
    mpl_team *team = NULL;

    if (n < 1 || n > MPL_MOST_WORKERS)
        return MPL_REFUSE(exec->ctx, "%u workers; 1 to %d are possible", n, MPL_MOST_WORKERS);
    if (n > 1 && !exec->parallel)
        return MPL_REFUSE(exec->ctx,
                          "graph '%s': a plan of safety serial holds for one worker, not for %u",
                          name, n);
    if (n > 1 && exec->options.checked && exec->control != NULL)
        return MPL_REFUSE(exec->ctx,
                          "graph '%s': --checked by %u workers is for graphs without loops and "
                          "branches: within these, what bytes are dead is known of one operation "
                          "after the other; --workers 1 checks the same plan",
                          name, n);
    if (n > 1 && exec->backend->sequence_new == NULL) {
        if (exec->backend->share == NULL)
            return MPL_ERROR(exec->ctx, MPL_EUNAVAIL,
                             "backend %s runs one operation after the other: one worker",
                             exec->backend->name);
        MPL_PASS(team_new(exec, n, &team));
    }
    mpl_team_free(exec->team);
    exec->team = team;
    exec->n_workers = n;
    exec->concurrent_ns = 0;
    return MPL_OK;
}

int64_t mpl_exec_concurrent_ns(const mpl_exec *exec)
{
    return exec->concurrent_ns;
}
