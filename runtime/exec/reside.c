/* reside.c -- runs a plan of residency in time: operands where the plan has them at their step, and
 * moves between steps. See exec.h. */
#include "runtime/exec/exec_priv.h"
#include "runtime/machine.h"

#pragma weak mpl_pages_bind_far

struct mpl_reside {
    uint32_t n_moves, next;
    mpl_move *move;       /* [n_moves] */
    uint64_t *bytes;      /* [n_moves] */
    uint64_t moved_bytes; /* of this run, or the last one */
};

/* Slabs of the two memories: those of a pool 0 that is spread. */
enum { FAST, SLOW };

/* What a plan of residency is bound by. */
typedef struct binding {
    mpl_exec *exec;
    const mpl_problem *q;
    const mpl_value_map *map;
    const mpl_residency_problem *p;
    const mpl_residency_plan *plan;
    const uint32_t *of_buffer;
} binding;

/* Bytes from the start of v's buffer, of a family: of its first part, to v. */
static uint64_t within(const binding *self, mpl_value v)
{
    mpl_value holder = mpl_exec_holder(self->map, v);
    uint64_t part =
        self->q->inside != NULL ? self->q->inside_at[self->map->value_buffer[holder]] : 0;

    return part + (holder != v ? self->map->value_offset[v] : 0);
}

/* Address of operand v at its step; NULL: the plan does not move it. MPL_EINVALID: the plan has no
 * use of it there. */
static mpl_status operand_at(const binding *self, uint32_t step, mpl_value v, char **at)
{
    uint32_t id = v != MPL_NONE && self->map->value_buffer[v] != MPL_NONE
                      ? self->of_buffer[self->map->value_buffer[v]]
                      : MPL_NONE;

    *at = NULL;
    if (id == MPL_NONE)
        return MPL_OK;
    for (uint32_t i = self->p->begin[id]; i < self->p->begin[id + 1]; i++)
        if (self->p->at[i] == step) {
            *at = mpl_exec_at(self->exec, self->plan->fast[i] ? FAST : SLOW,
                              self->plan->place[i] + within(self, v));
            return MPL_OK;
        }
    return MPL_ERROR(self->exec->ctx, MPL_EINVALID,
                     "step %" PRIu32 " has operand '%s', which the plan of residency has not", step,
                     self->exec->g->value_name[v]);
}

static mpl_status bind_step(const binding *self, uint32_t step)
{
    mpl_exec *exec = self->exec;
    const mpl_graph *g = exec->g;
    mpl_op op = exec->order[step];
    char *at;

    if (exec->op_skipped[op])
        return MPL_OK;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        MPL_PASS(operand_at(self, step, g->op_in[i], &at));
        if (at != NULL)
            exec->in[i].data = at;
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        MPL_PASS(operand_at(self, step, g->op_out[i], &at));
        if (at != NULL)
            exec->out[i].data = at;
    }
    return MPL_OK;
}

mpl_status mpl_exec_reside(mpl_exec *exec, const mpl_problem *q, const mpl_value_map *map,
                           const mpl_residency_problem *p, const mpl_residency_plan *plan,
                           const uint32_t *of_buffer)
{
    mpl_ctx *ctx = exec->ctx;
    binding b = {exec, q, map, p, plan, of_buffer};

    if (exec->control != NULL || exec->parallel || exec->n_arrivals > 0 || exec->n_staged > 0 ||
        exec->team != NULL || exec->options.checked || exec->backend->sequence_new != NULL ||
        exec->n_memories != 2)
        return MPL_REFUSE(ctx, "residency: runs are of serial graphs without loops, by one worker, "
                               "unchecked, on a backend of the host (cpu, ref)");
    for (uint32_t s = 0; s < exec->g->n_ops; s++)
        MPL_PASS(bind_step(&b, s));
    MPL_PASS(mpl_new(ctx, exec->reside, 1));
    MPL_PASS(mpl_new_each(ctx, plan->n_moves, exec->reside->move, exec->reside->bytes));
    exec->reside->n_moves = plan->n_moves;
    memcpy(exec->reside->move, plan->move, plan->n_moves * sizeof *plan->move);
    for (uint32_t k = 0; k < plan->n_moves; k++)
        exec->reside->bytes[k] = p->bytes[plan->move[k].buffer];
    if (mpl_pages_bind_far == NULL) /* libmemplan knows no nodes */
        return MPL_OK;
    return mpl_pages_bind_far(ctx, exec->slab[SLOW].base, exec->slab[SLOW].bytes);
}

void mpl_reside_free(mpl_ctx *ctx, mpl_reside *reside)
{
    if (reside != NULL)
        mpl_free_each(ctx, reside->move, reside->bytes, reside);
}

mpl_status mpl_reside_before(mpl_exec *exec, uint32_t step)
{
    mpl_reside *reside = exec->reside;

    if (step == 0)
        reside->next = 0, reside->moved_bytes = 0;
    for (; reside->next < reside->n_moves && reside->move[reside->next].step == step;
         reside->next++) {
        const mpl_move *move = &reside->move[reside->next];
        char *fast = mpl_exec_at(exec, FAST, move->fast_at),
             *slow = mpl_exec_at(exec, SLOW, move->slow_at);

        MPL_PASS(exec->backend->copy(exec->dev, move->to_fast ? fast : slow,
                                     move->to_fast ? slow : fast, reside->bytes[reside->next]));
        reside->moved_bytes += reside->bytes[reside->next];
    }
    return MPL_OK;
}

uint64_t mpl_reside_moved(const mpl_exec *exec)
{
    return exec->reside != NULL ? exec->reside->moved_bytes : 0;
}
