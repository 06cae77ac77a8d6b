/* revolve_loops.c -- finds loops whose tape can be kept in part. See revolve.h.
 *
 * A row of a loop is tape if it is a carried value as the round found it, and one later loop of the
 * same block scans it the other way round. Waiting updates may name it, too. */
#include "planners/recompute/revolve.h"

#include "graphs/orders/work.h"
#include "graphs/problem/liveness.h"

/* ---- work ---- */

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product = MPL_MOST_WORK;

    mpl_mul_bytes(a, b, &product);
    return mpl_min_u64(product, MPL_MOST_WORK);
}

/* Rounds that the loops between block b and `top` run at most. */
static uint64_t rounds_within(const mpl_graph *g, uint32_t b, uint32_t top)
{
    uint64_t n = 1;

    for (; b != top && b != 0; b = g->op_block[g->block_owner[b]]) {
        mpl_op owner = g->block_owner[b];
        int64_t most = g->op_kind[owner] == MPL_OP_while ? mpl_while_most_rounds(g, owner) : 1;

        n = times(n, most < 0 ? 1 : (uint64_t)most);
    }
    return n;
}

uint64_t mpl_work_within(const mpl_graph *g, mpl_op op, uint32_t top)
{
    return times(mpl_op_work(g, op), rounds_within(g, g->op_block[op], top));
}

/* ---- one loop ---- */

static uint32_t n_scans(const mpl_graph *g, mpl_op op)
{
    return mpl_op_n_in(g, op) - 2 - mpl_n_carried(g, op);
}

/* Flag of a scan, or of the row after so many scans. */
static bool is_reversed(const mpl_graph *g, mpl_op op, uint32_t i)
{
    uint32_t n;
    const int64_t *flag = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n);

    return i < n && flag[i] != 0;
}

/* The carried value that row `i` of a loop shows as the round found it; MPL_NONE: another value. */
static uint32_t carried_of_row(const mpl_graph *g, mpl_op op, uint32_t i)
{
    uint32_t body = mpl_op_first_body(g, op), n = mpl_n_carried(g, op);
    mpl_value row = mpl_result(g, body, 1 + n + i);

    for (uint32_t k = 0; k < n; k++)
        if (mpl_param(g, body, 1 + k) == row)
            return k;
    return MPL_NONE;
}

/* Whether only scans of `reader` in that direction read v; updates may wait for it. */
static bool is_read_by(const mpl_graph *g, mpl_value v, mpl_op reader, bool reversed)
{
    uint32_t first = 2 + mpl_n_carried(g, reader);

    for (uint32_t u = g->value_use_begin[v]; u < g->value_use_begin[v + 1]; u++) {
        mpl_op op = g->value_use[u];

        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            if (mpl_op_input(g, op, i) == v &&
                (op == reader ? i < first || is_reversed(g, op, i - first) != reversed
                              : i < mpl_n_read(g, op)))
                return false;
        for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
            for (uint32_t i = 0; i < g->block_n_results[g->op_body[k]]; i++)
                if (mpl_result(g, g->op_body[k], i) == v)
                    return false;
    }
    return g->value_role[v] != MPL_OUTPUT;
}

/* The row of a loop that is the tape behind scan `i` of `op`; MPL_NONE: it scans no tape. */
static uint32_t row_behind(const mpl_graph *g, mpl_op op, uint32_t i, mpl_op *forward)
{
    mpl_value v = mpl_op_input(g, op, 2 + mpl_n_carried(g, op) + i);
    uint32_t row;

    *forward = v != MPL_NONE ? g->value_op[v] : MPL_NONE;
    if (*forward == MPL_NONE || g->op_kind[*forward] != MPL_OP_while ||
        g->op_block[*forward] != g->op_block[op])
        return MPL_NONE;
    for (row = 0; mpl_op_output(g, *forward, row) != v; row++) {
    }
    if (row < mpl_n_carried(g, *forward))
        return MPL_NONE;
    row -= mpl_n_carried(g, *forward);
    return carried_of_row(g, *forward, row) != MPL_NONE &&
                   is_read_by(g, v, op, !is_reversed(g, *forward, n_scans(g, *forward) + row))
               ? row
               : MPL_NONE;
}

/* ---- the states that make each other ---- */

static void want_operands(const mpl_graph *g, mpl_op op, uint8_t *wanted)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE)
            wanted[g->op_in[i]] = 1;
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        for (uint32_t i = 0; i < g->block_n_results[g->op_body[k]]; i++)
            if (mpl_result(g, g->op_body[k], i) != MPL_NONE)
                wanted[mpl_result(g, g->op_body[k], i)] = 1;
}

/* Marks what makes wanted values of block b, last operation first; nested operations come with
 * their owners. */
static void mark_makers(const mpl_graph *g, uint32_t b, uint8_t *wanted, uint8_t *makes)
{
    for (mpl_op op = g->block_op_end[b]; op-- > g->block_op_begin[b];) {
        if (g->op_block[op] != b)
            makes[op] = makes[g->block_owner[g->op_block[op]]];
        for (uint32_t i = 0; g->op_block[op] == b && i < mpl_op_n_out(g, op); i++)
            if (mpl_op_output(g, op, i) != MPL_NONE && wanted[mpl_op_output(g, op, i)])
                makes[op] = 1;
        if (makes[op])
            want_operands(g, op, wanted);
    }
}

/* Lists the carried values that the tape and they themselves depend on. */
static mpl_status close_states(mpl_ctx *ctx, const mpl_graph *g, mpl_taped_loop *loop,
                               uint8_t *is_state)
{
    mpl_status st = MPL_OK;
    uint32_t b = mpl_op_first_body(g, loop->forward), n = mpl_n_carried(g, loop->forward);
    uint8_t *wanted = NULL;
    bool more = true;

    MPL_TRY(mpl_new(ctx, wanted, g->n_values));
    while (more) {
        more = false;
        for (uint32_t i = 0; i < n; i++)
            if (is_state[i])
                wanted[mpl_result(g, b, 1 + i)] = 1;
        mark_makers(g, b, wanted, loop->makes);
        for (uint32_t i = 0; i < n; i++)
            if (!is_state[i] && wanted[mpl_param(g, b, 1 + i)])
                is_state[i] = more = true;
    }
    MPL_TRY(mpl_new(ctx, loop->state, n));
    for (uint32_t i = 0; i < n; i++)
        if (is_state[i]) {
            loop->state[loop->n_states++] = i;
            loop->state_bytes += g->value_bytes[mpl_param(g, b, 1 + i)];
        }
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (loop->makes[op]) {
            loop->round_work = mpl_add_work(loop->round_work, mpl_work_within(g, op, b));
            loop->n_ops += (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0;
        }
out:
    mpl_free(ctx, wanted);
    return st;
}

/* Fills loop for the backward loop `op` and the forward loop of its tapes. */
static mpl_status fill(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_op of, mpl_taped_loop *loop)
{
    mpl_status st = MPL_OK;
    uint32_t n = n_scans(g, op), carried = mpl_n_carried(g, of);
    uint8_t *is_state = NULL;

    *loop = (mpl_taped_loop){.forward = of, .backward = op};
    loop->n_rounds = (uint32_t)mpl_while_most_rounds(g, op);
    loop->enclosing = rounds_within(g, g->op_block[op], 0);
    MPL_TRY(mpl_new(ctx, loop->makes, g->n_ops));
    MPL_TRY(mpl_new(ctx, loop->dropped, mpl_op_n_out(g, of) - carried));
    MPL_TRY(mpl_new(ctx, loop->shown, n));
    MPL_TRY(mpl_new(ctx, is_state, carried));
    for (uint32_t i = 0; i < n; i++) {
        mpl_op forward;
        uint32_t row = row_behind(g, op, i, &forward);

        loop->shown[i] = row == MPL_NONE || forward != of ? MPL_NONE : carried_of_row(g, of, row);
        if (loop->shown[i] != MPL_NONE)
            loop->dropped[row] = is_state[loop->shown[i]] = 1;
    }
    MPL_TRY(close_states(ctx, g, loop, is_state));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < loop->n_states; k++)
            if (loop->shown[i] == loop->state[k]) {
                loop->shown[i] = k;
                break;
            }
out:
    mpl_free(ctx, is_state);
    return st;
}

/* ---- all loops ---- */

static bool is_used(const mpl_taped_loops *loops, mpl_op op)
{
    for (uint32_t k = 0; k < loops->n; k++)
        if (loops->loop[k].forward == op || loops->loop[k].backward == op)
            return true;
    return false;
}

/* The loop whose tape `op` goes back through; MPL_NONE. */
static mpl_op forward_of(const mpl_graph *g, const mpl_taped_loops *loops, mpl_op op)
{
    for (uint32_t i = 0; g->op_kind[op] == MPL_OP_while && i < n_scans(g, op); i++) {
        mpl_op of;

        if (row_behind(g, op, i, &of) != MPL_NONE && mpl_while_runs_full(g, op) &&
            mpl_while_runs_full(g, of) &&
            mpl_while_most_rounds(g, of) == mpl_while_most_rounds(g, op) &&
            mpl_while_most_rounds(g, op) > 0 && mpl_while_most_rounds(g, op) < INT32_MAX &&
            !is_used(loops, op) && !is_used(loops, of))
            return of;
    }
    return MPL_NONE;
}

/* Says why a loop with a row that may be tape is not among those found. */
static void say_why(const mpl_graph *g, mpl_taped_loops *out)
{
    for (mpl_op op = 0; op < g->n_ops && out->why[0] == '\0'; op++) {
        if (g->op_kind[op] != MPL_OP_while || is_used(out, op))
            continue;
        for (uint32_t i = mpl_n_carried(g, op); i < mpl_op_n_out(g, op); i++)
            if (carried_of_row(g, op, i - mpl_n_carried(g, op)) != MPL_NONE)
                snprintf(
                    out->why, sizeof out->why, "loop '%.100s' keeps its tape: %s", g->op_name[op],
                    mpl_while_runs_full(g, op) ? "not one loop alone reads it back"
                                               : "how many rounds it has is known only as it runs");
    }
}

mpl_status mpl_taped_loops_find(mpl_ctx *ctx, const mpl_graph *g, mpl_taped_loops *out)
{
    mpl_status st = MPL_OK;
    mpl_taped_loops found = {0};
    size_t room = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_op of = forward_of(g, &found, op);

        if (of == MPL_NONE)
            continue;
        MPL_TRY(mpl_reserve(ctx, found.loop, room, (size_t)found.n + 1));
        found.loop[found.n++] = (mpl_taped_loop){0};
        MPL_TRY(fill(ctx, g, op, of, &found.loop[found.n - 1]));
    }
    say_why(g, &found);
    *out = found;
    found = (mpl_taped_loops){0};
out:
    mpl_taped_loops_fini(ctx, &found);
    return st;
}

void mpl_taped_loops_fini(mpl_ctx *ctx, mpl_taped_loops *loops)
{
    for (uint32_t k = 0; k < loops->n; k++) {
        mpl_taped_loop *loop = &loops->loop[k];

        mpl_free_each(ctx, loop->state, loop->makes, loop->dropped, loop->shown);
        mpl_schedule_fini(ctx, &loop->schedule);
    }
    mpl_free(ctx, loops->loop);
    *loops = (mpl_taped_loops){0};
}
