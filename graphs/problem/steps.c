/* steps.c -- see steps.h. */
#include "graphs/problem/steps.h"

/* Whether the operations of block b have the steps [from, to). */
static bool fills(const mpl_graph *g, uint32_t b, const uint32_t *step_of, uint32_t from,
                  uint32_t to)
{
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (step_of[op] < from || step_of[op] >= to)
            return false;
    return true;
}

/* Checks that each operation's blocks are contiguous, in order, right before it. O(ops * depth). */
static mpl_status check_blocks(mpl_ctx *ctx, const mpl_graph *g, const uint32_t *step_of)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->op_body_begin[op + 1], to = step_of[op]; k-- > g->op_body_begin[op];) {
            uint32_t b = g->op_body[k], n = g->block_op_end[b] - g->block_op_begin[b];

            if (n > to || !fills(g, b, step_of, to - n, to))
                return MPL_REFUSE(
                    ctx,
                    "the order does not have block '%.100s' in one piece before operation '%.100s'",
                    g->block_name[b], g->op_name[op]);
            to -= n;
        }
    return MPL_OK;
}

mpl_status mpl_order_positions(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                               uint32_t *position)
{
    if (g->n_ops > 0)
        memset(position, 0xff, g->n_ops * sizeof *position);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (order[i] >= g->n_ops || position[order[i]] != MPL_NONE)
            return MPL_REFUSE(ctx, "the order's step %u has operation %u: %s", i, order[i],
                              order[i] >= g->n_ops ? "there is none" : "it stands twice");
        position[order[i]] = i;
    }
    return check_blocks(ctx, g, position);
}

static uint32_t push(mpl_program *program, mpl_step_kind kind, uint32_t of)
{
    program->kind[program->n_steps] = (uint8_t)kind;
    program->of[program->n_steps] = of;
    return program->n_steps++;
}

/* Begins and ends the blocks of `owner` without operations, up to block `until` (MPL_NONE: all). */
static void pass_empty(const mpl_graph *g, mpl_program *program, mpl_op owner, uint32_t until)
{
    for (uint32_t k = g->op_body_begin[owner];
         k < g->op_body_begin[owner + 1] && g->op_body[k] != until; k++)
        if (program->begin_step[g->op_body[k]] == MPL_NONE) {
            program->begin_step[g->op_body[k]] = push(program, MPL_STEP_BEGIN, g->op_body[k]);
            program->end_step[g->op_body[k]] = push(program, MPL_STEP_END, g->op_body[k]);
        }
}

/* Ends and begins blocks until `to` is the open one. */
static void go_to(const mpl_graph *g, mpl_program *program, uint32_t *open, uint32_t to)
{
    while (!mpl_block_within(g, to, *open)) {
        program->end_step[*open] = push(program, MPL_STEP_END, *open);
        *open = g->block_parent[*open];
    }
    while (*open != to) {
        uint32_t next = to;

        while (g->block_parent[next] != *open)
            next = g->block_parent[next];
        pass_empty(g, program, g->block_owner[next], next);
        program->begin_step[next] = push(program, MPL_STEP_BEGIN, next);
        *open = next;
    }
}

mpl_status mpl_program_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, mpl_program **out)
{
    mpl_status st = MPL_OK;
    mpl_program *program = NULL;
    size_t n_steps = (size_t)g->n_ops + 2 * ((size_t)g->n_blocks - 1);
    uint32_t open = 0;

    MPL_TRY(mpl_new(ctx, program, 1));
    MPL_TRY(mpl_new_each(ctx, n_steps, program->kind, program->of));
    MPL_TRY(mpl_new(ctx, program->op_step, g->n_ops));
    MPL_TRY(mpl_new_each(ctx, g->n_blocks, program->begin_step, program->end_step));
    MPL_TRY(mpl_order_positions(ctx, g, order, program->op_step));
    memset(program->begin_step, 0xff, g->n_blocks * sizeof *program->begin_step);
    program->begin_step[0] = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        go_to(g, program, &open, g->op_block[order[i]]);
        pass_empty(g, program, order[i], MPL_NONE);
        program->op_step[order[i]] = push(program, MPL_STEP_OP, order[i]);
    }
    program->end_step[0] = program->n_steps;
    mpl_assert(open == 0 && program->n_steps == n_steps);
    *out = program, program = NULL;
out:
    mpl_program_free(ctx, program);
    return st;
}

void mpl_program_free(mpl_ctx *ctx, mpl_program *program)
{
    if (program == NULL)
        return;
    void *arrays[] = {program->kind,       program->of,       program->op_step,
                      program->begin_step, program->end_step, program};
    MPL_FREE_ALL(ctx, arrays);
}
