/* needs.c -- which values may be needed from a point of a program on. See needs.h.
 *
 * Backward data flow over steps, and over what happens between them, to a fixed point. */
#include "runtime/exec/needs.h"

static mpl_value holder(const mpl_needs *needs, mpl_value v)
{
    return needs->holder != NULL ? needs->holder[v] : v;
}

static uint64_t *row_at(const mpl_needs *needs, uint32_t point)
{
    return needs->row + (size_t)point * needs->words;
}

static void need(const mpl_needs *needs, uint64_t *row, mpl_value v)
{
    if (v != MPL_NONE)
        mpl_bit_add(row, holder(needs, v));
}

/* v is made here, so it is not needed before. Returns whether it is needed after. */
static bool make(const mpl_needs *needs, uint64_t *row, mpl_value v)
{
    bool needed;

    if (v == MPL_NONE || holder(needs, v) != v)
        return false;
    needed = mpl_bit_has(row, v);
    mpl_bit_drop(row, v);
    return needed;
}

static void join(const mpl_needs *needs, uint64_t *row, const uint64_t *other)
{
    for (uint32_t i = 0; i < needs->words; i++)
        row[i] |= other[i];
}

uint32_t mpl_needs_entry(const mpl_needs *needs, uint32_t step)
{
    const mpl_program *program = needs->program;

    return step < program->n_steps && program->kind[step] == MPL_STEP_BEGIN
               ? needs->entry[needs->g->block_owner[program->of[step]]]
               : step;
}

/* v is made from `source` here: `source` is needed before if v is needed after. */
static void pass(const mpl_needs *needs, uint64_t *row, mpl_value v, mpl_value source)
{
    if (make(needs, row, v))
        need(needs, row, source);
}

static void before_plain(const mpl_needs *needs, mpl_op op, uint64_t *row)
{
    const mpl_graph *g = needs->g;
    bool test = g->op_kind[op] == MPL_OP_exit_unless;

    if (test)
        join(needs, row, row_at(needs, needs->program->op_step[g->block_owner[g->op_block[op]]]));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        make(needs, row, g->op_out[i]);
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
        need(needs, row, g->op_in[i]);
}

/* After the loop its outputs are the final parameters and the stacked rows. */
static void before_owner(const mpl_needs *needs, mpl_op op, uint64_t *row)
{
    const mpl_graph *g = needs->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op], *out = g->op_out + g->op_out_begin[op];
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];

    if (g->op_kind[op] == MPL_OP_case) /* if no branch ran */
        for (uint32_t i = 0; i < n_out; i++)
            pass(needs, row, out[i], 1 + i < n_in ? in[1 + i] : MPL_NONE);
    else
        for (uint32_t i = 0; i < mpl_n_carried(g, op); i++)
            pass(needs, row, out[i],
                 mpl_control_params(g, g->op_body[g->op_body_begin[op]])[1 + i]);
}

/* After a round comes the next one, if any, or the loop's own step. Both read the parameters. */
static void before_round_ends(const mpl_needs *needs, uint32_t b, uint64_t *row)
{
    const mpl_graph *g = needs->g;
    const mpl_program *program = needs->program;
    mpl_op op = g->block_owner[b];
    const mpl_value *result = mpl_control_results(g, b), *out = g->op_out + g->op_out_begin[op];
    uint64_t *after = needs->scratch;
    uint32_t n = mpl_n_carried(g, op);

    if (mpl_while_most_rounds(g, op) != 1)
        join(needs, row, row_at(needs, program->begin_step[b]));
    join(needs, row, row_at(needs, program->op_step[op]));
    memcpy(after, row, needs->words * sizeof *row);
    for (uint32_t i = 0; i < n; i++)
        make(needs, row, mpl_control_params(g, b)[1 + i]);
    for (uint32_t i = 0; i < n; i++)
        if (mpl_bit_has(after, mpl_control_params(g, b)[1 + i]))
            need(needs, row, result[1 + i]);
    need(needs, row, result[0]);
    for (uint32_t i = 1 + n; i < g->block_n_results[b]; i++)
        if (out[i - 1] != MPL_NONE && mpl_bit_has(after, holder(needs, out[i - 1])))
            need(needs, row, result[i]);
}

static void before_branch_ends(const mpl_needs *needs, uint32_t b, uint64_t *row)
{
    const mpl_graph *g = needs->g;
    mpl_op op = g->block_owner[b];

    join(needs, row, row_at(needs, mpl_needs_entry(needs, needs->program->op_step[op] + 1)));
    for (uint32_t i = 0; i < g->block_n_results[b]; i++)
        pass(needs, row, g->op_out[g->op_out_begin[op] + i], mpl_control_results(g, b)[i]);
}

static void before_begin(const mpl_needs *needs, uint32_t b, uint64_t *row)
{
    const mpl_graph *g = needs->g;
    mpl_op op = g->block_owner[b];
    uint32_t n;

    if (g->op_kind[op] != MPL_OP_while)
        return;
    n = mpl_n_carried(g, op);
    make(needs, row, mpl_control_params(g, b)[0]);
    for (uint32_t i = 1 + n; i < g->block_n_params[b]; i++)
        pass(needs, row, mpl_control_params(g, b)[i], g->op_in[g->op_in_begin[op] + 1 + i]);
}

static void before_entry(const mpl_needs *needs, mpl_op op, uint64_t *row)
{
    const mpl_graph *g = needs->g;
    const mpl_program *program = needs->program;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t n = mpl_n_carried(g, op);

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        join(needs, row, row_at(needs, program->begin_step[g->op_body[k]]));
    join(needs, row, row_at(needs, program->op_step[op]));
    need(needs, row, in[0]);
    if (g->op_kind[op] != MPL_OP_while)
        return;
    for (uint32_t i = g->op_out_begin[op] + n; i < g->op_out_begin[op + 1]; i++)
        make(needs, row, g->op_out[i]);
    for (uint32_t i = 0; i < n; i++)
        pass(needs, row, mpl_control_params(g, g->op_body[g->op_body_begin[op]])[1 + i], in[2 + i]);
    need(needs, row, in[1]);
}

/* Adds the bits of `row` to row `point`. Returns whether any was new. */
static bool grow(mpl_needs *needs, uint32_t point, const uint64_t *row)
{
    bool more = false;

    for (uint32_t i = 0; i < needs->words; i++) {
        more = more || (row[i] & ~row_at(needs, point)[i]) != 0;
        row_at(needs, point)[i] |= row[i];
    }
    return more;
}

/* One pass from the end to the beginning. Returns whether any bit was new. */
static bool flow_back(mpl_needs *needs)
{
    const mpl_graph *g = needs->g;
    const mpl_program *program = needs->program;
    uint64_t *row = needs->now;
    bool more = false;

    for (uint32_t step = program->n_steps; step-- > 0;) {
        uint32_t of = program->of[step];
        bool end = program->kind[step] == MPL_STEP_END, loop;

        memset(row, 0, needs->words * sizeof *row);
        if (!end)
            join(needs, row, row_at(needs, mpl_needs_entry(needs, step + 1)));
        loop = end && g->op_kind[g->block_owner[of]] == MPL_OP_while;
        if (end)
            loop ? before_round_ends(needs, of, row) : before_branch_ends(needs, of, row);
        else if (program->kind[step] == MPL_STEP_BEGIN)
            before_begin(needs, of, row);
        else if (g->op_body_begin[of] < g->op_body_begin[of + 1])
            before_owner(needs, of, row);
        else
            before_plain(needs, of, row);
        more = grow(needs, step, row) || more;
        if (program->kind[step] == MPL_STEP_BEGIN &&
            of == g->op_body[g->op_body_begin[g->block_owner[of]]]) {
            memset(row, 0, needs->words * sizeof *row);
            before_entry(needs, g->block_owner[of], row);
            more = grow(needs, needs->entry[g->block_owner[of]], row) || more;
        }
    }
    return more;
}

mpl_status mpl_needs_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_program *program,
                         const mpl_value *holder_of, mpl_needs **out)
{
    mpl_status st = MPL_OK;
    mpl_needs *needs = NULL;
    uint32_t n_points = program->n_steps + 1;

    MPL_TRY(mpl_new(ctx, needs, 1));
    needs->g = g;
    needs->program = program;
    needs->holder = holder_of;
    needs->words = g->n_values / 64 + 1;
    MPL_TRY(mpl_new(ctx, needs->entry, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_body_begin[op] < g->op_body_begin[op + 1])
            needs->entry[op] = n_points++;
    MPL_TRY(mpl_new(ctx, needs->row, (size_t)n_points * needs->words));
    MPL_TRY(mpl_new_each(ctx, needs->words, needs->now, needs->scratch));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        need(needs, row_at(needs, program->n_steps), g->output[i]);
    while (flow_back(needs)) {
    }
    *out = needs, needs = NULL;
out:
    mpl_needs_free(ctx, needs);
    return st;
}

void mpl_needs_free(mpl_ctx *ctx, mpl_needs *needs)
{
    if (needs == NULL)
        return;
    mpl_free_each(ctx, needs->entry, needs->row, needs->now, needs->scratch, needs);
}
