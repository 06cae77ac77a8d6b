/* concurrent.c -- runs independent operations of a graph at the same time, on threads. See exec.h.
 *
 * A free worker takes the ready operation that comes first in the order. Only the graph's edges
 * hold an operation back, so a plan that is not safe in parallel would show as a wrong output. A
 * loop or case is one operation, with its blocks; it also reads what its blocks capture. */
#include "runtime/exec/exec_priv.h"

#include <pthread.h>

#define MAX_WORKERS 64

typedef struct crew {
    mpl_exec *exec;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an operation became ready, or the run ended */
    uint32_t *waiting;      /* [n_ops] inputs that are not made yet */
    uint32_t *step_of;      /* [n_ops] position in the order */
    uint64_t *ready;        /* set of positions in the order */
    uint32_t n_words;
    uint32_t n_left; /* unfinished operations of the whole graph */
    mpl_status st;   /* of the first operation that failed */
} crew;

static void make_ready(crew *c, mpl_op op)
{
    mpl_bit_add(c->ready, c->step_of[op]);
}

/* Takes the ready operation that comes first in the order; MPL_NONE: none. */
static mpl_op take_ready(crew *c)
{
    for (uint32_t w = 0; w < c->n_words; w++)
        if (c->ready[w] != 0) {
            uint32_t step = w * 64 + (uint32_t)__builtin_ctzll(c->ready[w]);

            c->ready[w] &= c->ready[w] - 1;
            return c->exec->order[step];
        }
    return MPL_NONE;
}

static void finish(crew *c, mpl_op op, mpl_status st)
{
    const mpl_graph *g = c->exec->g;

    c->n_left--;
    if (st != MPL_OK && c->st == MPL_OK)
        c->st = st;
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        for (uint32_t k = v != MPL_NONE ? g->value_use_begin[v] : 0;
             v != MPL_NONE && k < g->value_use_begin[v + 1]; k++)
            if (--c->waiting[mpl_op_outermost(g, g->value_use[k])] == 0)
                make_ready(c, mpl_op_outermost(g, g->value_use[k]));
    }
    pthread_cond_broadcast(&c->changed);
}

static mpl_status run_unit(mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;
    const mpl_program *program;
    bool owns = g->op_body_begin[op] < g->op_body_begin[op + 1];

    if (exec->control == NULL)
        return mpl_exec_run_op(exec, op);
    program = exec->control->program;
    return mpl_control_run(
        exec, owns ? program->begin_step[g->op_body[g->op_body_begin[op]]] : program->op_step[op],
        program->op_step[op] + 1, NULL);
}

static void *work(void *argument)
{
    crew *c = argument;

    pthread_mutex_lock(&c->lock);
    while (c->n_left > 0 && c->st == MPL_OK) {
        mpl_op op = take_ready(c);
        mpl_status st;

        if (op == MPL_NONE) {
            pthread_cond_wait(&c->changed, &c->lock);
            continue;
        }
        pthread_mutex_unlock(&c->lock);
        st = run_unit(c->exec, op);
        pthread_mutex_lock(&c->lock);
        finish(c, op, st);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static mpl_status crew_init(crew *c, mpl_exec *exec)
{
    const mpl_graph *g = exec->g;

    c->exec = exec;
    c->n_words = g->n_ops / 64 + 1;
    MPL_PASS(mpl_new_each(exec->ctx, g->n_ops, c->waiting, c->step_of));
    MPL_PASS(mpl_new(exec->ctx, c->ready, c->n_words));
    for (uint32_t s = 0; s < g->n_ops; s++)
        c->step_of[exec->order[s]] = s;
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
            c->waiting[mpl_op_outermost(g, g->value_use[k])] +=
                g->value_op[v] != MPL_NONE && g->value_block[v] == 0;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        c->n_left += g->op_block[op] == 0;
        if (g->op_block[op] == 0 && c->waiting[op] == 0)
            make_ready(c, op);
    }
    return MPL_OK;
}

mpl_status mpl_exec_run_concurrent(mpl_exec *exec, uint32_t n_workers, int64_t *ns)
{
    mpl_status st = MPL_OK;
    crew c = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread[MAX_WORKERS];
    uint32_t n_started = 0;
    int64_t begin;

    if (!exec->parallel)
        MPL_FAIL(
            exec->ctx, MPL_EINPUT,
            "graph '%s': only a plan of safety parallel may run its operations at the same time",
            exec->g->name);
    if (n_workers < 1 || n_workers > MAX_WORKERS)
        MPL_FAIL(exec->ctx, MPL_EINPUT, "%u workers; 1 to %d are possible", n_workers, MAX_WORKERS);
    MPL_TRY(mpl_exec_renew(exec));
    if (mpl_exec_takes_whole(exec)) { /* uses the device's own streams instead of threads */
        MPL_TRY(mpl_exec_run_whole(exec, n_workers, ns));
        goto out;
    }
    MPL_TRY(crew_init(&c, exec));
    MPL_TRY(mpl_exec_arrive_all(exec));
    mpl_control_reset(exec);
    begin = mpl_clock_ns();
    /* such a device has one host thread */
    n_workers = exec->backend->sequence_new != NULL ? 1 : n_workers;
    while (n_started + 1 < n_workers && pthread_create(&thread[n_started], NULL, work, &c) == 0)
        n_started++;
    work(&c);
    for (uint32_t i = 0; i < n_started; i++)
        pthread_join(thread[i], NULL);
    MPL_TRY(c.st);
    mpl_assert(c.n_left == 0 && take_ready(&c) == MPL_NONE);
    MPL_TRY(exec->backend->wait(exec->dev));
    if (ns != NULL)
        *ns = mpl_clock_ns() - begin;
    MPL_TRY(mpl_exec_depart(exec));
out:
    pthread_mutex_destroy(&c.lock);
    pthread_cond_destroy(&c.changed);
    mpl_free_each(exec->ctx, c.waiting, c.step_of, c.ready);
    return st;
}
