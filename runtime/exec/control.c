/* control.c -- runs the program of a graph with control flow: rounds of loops, branches of cases.
 * See exec_priv.h.
 *
 * It runs one step after the other and follows control as steps.h says. There is no recursion, so
 * blocks may nest to any depth. Trip counts, conditions, exit tests and the index of a case are
 * read from the device. What the plan lays out in one place is not copied; both sides must then
 * have the same address, which is checked. Without a plan everything is copied. */
#include "graphs/orders/work.h"
#include "runtime/exec/exec_priv.h"

static bool in_copied(const mpl_exec *exec, mpl_op op, uint32_t i)
{
    return exec->control->unshared || exec->control->in_copied[exec->g->op_in_begin[op] + i];
}

bool mpl_control_result_copied(const mpl_exec *exec, uint32_t b, uint32_t i)
{
    return exec->control->unshared ||
           exec->control->result_copied[exec->g->block_result_begin[b] + i];
}

/* ---- work ---- */

static mpl_status refuse_work(const mpl_exec *exec, const char *what, uint64_t work)
{
    return MPL_ERROR(exec->ctx, MPL_ELIMIT,
                     "graph '%s': %s a run comes to %" PRIu64
                     " units of work; its limit is %" PRIu64 " (--work-limit N lifts it, 0: none)",
                     exec->g->name, what, work, exec->options.work_limit);
}

/* Least work of the checks around one step: reading the guards. */
static uint64_t checks_work(const mpl_exec *exec)
{
    return exec->options.checked ? 8 * (uint64_t)MPL_GUARD_BYTES : 0;
}

mpl_status mpl_control_count_work(mpl_exec *exec)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = exec->g;
    uint64_t work[1] = {0}, *of = work;

    if (exec->options.work_limit == 0)
        goto out;
    if (exec->control != NULL) {
        MPL_TRY(mpl_new(exec->ctx, exec->control->block_work, g->n_blocks));
        of = exec->control->block_work;
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        of[g->op_block[op]] =
            mpl_add_work(of[g->op_block[op]], mpl_run_work(g, op) + checks_work(exec));
    if (of[0] > exec->options.work_limit)
        st = refuse_work(exec, "outside of loops", of[0]);
out:
    return st;
}

/* Counts the work of block b when a round or branch of it begins. */
static mpl_status spend(mpl_exec *exec, uint32_t b)
{
    mpl_control *control = exec->control;
    uint64_t work;
    char where[200];

    if (control->block_work == NULL)
        return MPL_OK;
    work = control->block_work[b] + MPL_STEP_WORK + checks_work(exec);
    work += atomic_fetch_add(&control->work, work);
    if (work <= exec->options.work_limit)
        return MPL_OK;
    snprintf(where, sizeof where, "with round %" PRIu64 " of '%.120s'", control->round[b],
             exec->g->op_name[exec->g->block_owner[b]]);
    return refuse_work(exec, where, work);
}

/* ---- moving bytes ---- */

static bool same_spot(mpl_spot a, mpl_spot b)
{
    return a.slab == b.slab && a.offset == b.offset;
}

static char *at_spot(const mpl_exec *exec, mpl_spot spot)
{
    return mpl_exec_at(exec, spot.slab, spot.offset);
}

static mpl_status copy_bytes(mpl_exec *exec, mpl_spot to, mpl_spot from, uint64_t bytes)
{
    MPL_PASS(exec->backend->copy(exec->dev, at_spot(exec, to), at_spot(exec, from), bytes));
    return mpl_witness_wrote(exec, to, bytes);
}

/* Hands v on to where `to_what` lies, unless it is there. What lies nowhere has no readers. */
static mpl_status hand_on(mpl_exec *exec, mpl_value v, mpl_spot from, mpl_spot to, uint64_t bytes,
                          bool copied, mpl_value to_what)
{
    if (bytes == 0 || from.slab == MPL_NONE || to.slab == MPL_NONE || same_spot(from, to))
        return MPL_OK;
    if (copied) {
        exec->control->copied_bytes += bytes;
        return copy_bytes(exec, to, from, bytes);
    }
    return MPL_ERROR(
        exec->ctx, MPL_EINVALID,
        "graph '%s': '%.100s' takes over '%.100s' without a copy, and lies elsewhere: byte %" PRIu64
        " of memory %u, and byte %" PRIu64 " of memory %u",
        exec->g->name, exec->g->value_name[to_what], exec->g->value_name[v], to.offset, to.slab,
        from.offset, from.slab);
}

/* One element of type i64, i32 or bool. */
static mpl_status read_number(mpl_exec *exec, mpl_value v, int64_t *out)
{
    union {
        int64_t i64;
        int32_t i32;
        uint8_t b;
    } number = {0};
    mpl_type type = (mpl_type)exec->g->value_type[v];

    MPL_PASS(exec->backend->wait(exec->dev));
    MPL_PASS(exec->backend->download(exec->dev, &number, mpl_exec_value_at(exec, v),
                                     mpl_type_bytes(type)));
    *out = type == MPL_TYPE_i64 ? number.i64 : type == MPL_TYPE_i32 ? number.i32 : number.b != 0;
    return MPL_OK;
}

/* `otherwise` if v is left out. */
static mpl_status read_optional(mpl_exec *exec, mpl_value v, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    return v == MPL_NONE ? MPL_OK : read_number(exec, v, out);
}

/* ---- while: entering, and the beginning of a round ---- */

static uint32_t after_round(const mpl_exec *exec, uint32_t b, bool go)
{
    const mpl_program *program = exec->control->program;

    return go && exec->control->round[b] < exec->control->limit[b]
               ? program->begin_step[b]
               : program->op_step[exec->g->block_owner[b]];
}

/* Where parameter i of b must be: its own place, or its source's place if it has none because no
 * operation reads it. */
static mpl_spot param_spot(const mpl_exec *exec, uint32_t b, uint32_t i, mpl_spot source)
{
    mpl_value param = mpl_control_params(exec->g, b)[i];
    mpl_spot spot = mpl_control_spot(exec, param);

    return spot.slab != MPL_NONE ? spot : source;
}

static mpl_status enter_while(mpl_exec *exec, mpl_op op, uint32_t *next)
{
    const mpl_graph *g = exec->g;
    mpl_control *control = exec->control;
    uint32_t b = mpl_op_first_body(g, op), n = mpl_n_carried(g, op);
    int64_t most = mpl_while_most_rounds(g, op), trips, go;

    MPL_PASS(read_optional(exec, mpl_op_input(g, op, 0), INT64_MAX, &trips));
    MPL_PASS(read_optional(exec, mpl_op_input(g, op, 1), 1, &go));
    trips = most >= 0 && most < trips ? most : trips;
    control->limit[b] = trips > 0 ? (uint64_t)trips : 0;
    control->round[b] = 0;
    control->open[op] = 1;
    for (uint32_t i = 0; i < n; i++) {
        mpl_value init = mpl_op_input(g, op, 2 + i), param = mpl_control_params(g, b)[1 + i];
        mpl_spot from = mpl_exec_spot(exec, init), to = param_spot(exec, b, 1 + i, from);

        MPL_PASS(hand_on(exec, init, from, to, g->value_bytes[param], in_copied(exec, op, 2 + i),
                         param));
        mpl_control_bind(exec, param, to);
    }
    for (uint32_t i = g->op_out_begin[op] + n; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE) /* rows are written round by round */
            mpl_control_bind(exec, g->op_out[i], mpl_control_spot(exec, g->op_out[i]));
    *next = after_round(exec, b, go != 0);
    return MPL_OK;
}

static uint64_t slice_number(const mpl_exec *exec, mpl_op op, uint32_t i, uint64_t round)
{
    uint32_t n_flags = 0;
    const int64_t *flag = mpl_attr_ints(exec->g, op, MPL_ATTR_scan_reverse, &n_flags);

    return i < n_flags && flag[i] != 0 ? (uint64_t)mpl_while_most_rounds(exec->g, op) - 1 - round
                                       : round;
}

/* Slice `number` of `whole`; each slice has `bytes` bytes. */
static mpl_spot slice_spot(const mpl_exec *exec, mpl_value whole, uint64_t number, uint64_t bytes)
{
    mpl_spot spot = mpl_exec_spot(exec, whole);

    spot.offset += number * bytes;
    return spot;
}

static mpl_status put_round(mpl_exec *exec, mpl_value v, int64_t round)
{
    char *at = mpl_exec_value_at(exec, v);

    return exec->backend->put_number != NULL
               ? exec->backend->put_number(exec->dev, at, round)
               : exec->backend->upload(exec->dev, at, &round, sizeof round);
}

static mpl_status begin_round(mpl_exec *exec, uint32_t b, uint32_t *next)
{
    const mpl_graph *g = exec->g;
    mpl_op op = g->block_owner[b];
    const mpl_value *param = mpl_control_params(g, b);
    uint32_t n = mpl_n_carried(g, op);
    int64_t round = (int64_t)exec->control->round[b];

    MPL_PASS(spend(exec, b));
    mpl_control_bind(exec, param[0], mpl_control_spot(exec, param[0]));
    if (exec->value_slab[param[0]] != MPL_NONE) {
        MPL_PASS(put_round(exec, param[0], round));
        MPL_PASS(mpl_witness_wrote(exec, mpl_exec_spot(exec, param[0]), sizeof round));
    }
    for (uint32_t i = 0; i + 1 + n < g->block_n_params[b]; i++) {
        mpl_value scan = mpl_op_input(g, op, 2 + n + i), slice = param[1 + n + i];
        uint64_t bytes = g->value_bytes[slice];
        mpl_spot from =
            slice_spot(exec, scan, slice_number(exec, op, i, exec->control->round[b]), bytes);
        mpl_spot to = param_spot(exec, b, 1 + n + i, from);

        MPL_PASS(hand_on(exec, scan, from, to, bytes, in_copied(exec, op, 2 + n + i), slice));
        mpl_control_bind(exec, slice, to);
    }
    *next = exec->control->program->begin_step[b] + 1;
    return mpl_residues_round(exec, b, next);
}

/* ---- while: the end of a round ---- */

static mpl_status hand_on_rows(mpl_exec *exec, uint32_t b)
{
    const mpl_graph *g = exec->g;
    mpl_op op = g->block_owner[b];
    uint32_t n = mpl_n_carried(g, op), n_scans = g->block_n_params[b] - 1 - n;

    for (uint32_t i = 0; i + 1 + n < g->block_n_results[b]; i++) {
        mpl_value row = mpl_control_results(g, b)[1 + n + i],
                  out = g->op_out[g->op_out_begin[op] + n + i];
        uint64_t bytes = g->value_bytes[row];

        if (out == MPL_NONE || exec->value_slab[out] == MPL_NONE)
            continue;
        MPL_PASS(
            hand_on(exec, row, mpl_exec_spot(exec, row),
                    slice_spot(exec, out,
                               slice_number(exec, op, n_scans + i, exec->control->round[b]), bytes),
                    bytes, mpl_control_result_copied(exec, b, 1 + n + i), out));
    }
    return MPL_OK;
}

static bool overlap(mpl_spot a, mpl_spot b, uint64_t a_bytes, uint64_t b_bytes)
{
    return a.slab == b.slab && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
}

static uint64_t result_bytes(const mpl_graph *g, uint32_t at)
{
    return g->value_bytes[g->block_result[at]];
}

enum { DONE, PENDING, STAGED };

/* Whether result number `at` must wait for number `i`, because `i` still lies in its target. They
 * may be the same, if it overlaps itself. */
static bool waits_for(const mpl_exec *exec, uint32_t at, uint32_t i)
{
    const mpl_control *control = exec->control;

    return control->pending[i] != DONE &&
           overlap(control->to[at], control->from[i], result_bytes(exec->g, at),
                   result_bytes(exec->g, i));
}

static bool must_wait(const mpl_exec *exec, uint32_t at, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (waits_for(exec, at, i))
            return true;
    return false;
}

/* The first result that another one waits for, when all wait. The plan sized the staging buffer by
 * the same choice. */
static uint32_t first_waited_for(const mpl_exec *exec, uint32_t begin, uint32_t end)
{
    const mpl_control *control = exec->control;

    for (uint32_t i = begin; i < end; i++)
        for (uint32_t at = begin; at < end && control->pending[i] == PENDING; at++)
            if (control->pending[at] != DONE && waits_for(exec, at, i))
                return i;
    return MPL_NONE;
}

/* Saves a result in the staging buffer at *used, so that its bytes can be overwritten. */
static mpl_status stage(mpl_exec *exec, uint32_t b, uint32_t at, uint64_t *used)
{
    mpl_control *control = exec->control;
    mpl_spot staging = control->staging[b];
    uint64_t bytes = result_bytes(exec->g, at);

    if (staging.slab == MPL_NONE || bytes > exec->block[staging.block].bytes - *used)
        return MPL_ERROR(
            exec->ctx, MPL_EINVALID,
            "graph '%s': block '%s' carries values crosswise, '%s' among them, and has no "
            "room to do so",
            exec->g->name, exec->g->block_name[b], exec->g->value_name[exec->g->block_result[at]]);
    staging.offset += *used;
    *used += bytes;
    MPL_PASS(copy_bytes(exec, staging, control->from[at], bytes));
    control->from[at] = staging;
    control->pending[at] = STAGED;
    return MPL_OK;
}

/* Whether no carried result of [begin, end) is left to copy. */
static bool none_pending(const mpl_control *control, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        if (control->pending[i] != DONE)
            return mpl_broken("carried result %u was not copied", i);
    return true;
}

/* Copies all pending results of b as if at once. */
static mpl_status copy_pending(mpl_exec *exec, uint32_t b)
{
    mpl_control *control = exec->control;
    uint32_t begin = exec->g->block_result_begin[b] + 1;
    uint32_t end = begin + mpl_n_carried(exec->g, exec->g->block_owner[b]);
    uint32_t n_staged = 0;
    uint64_t used = 0;

    for (uint32_t i = begin; control->unshared && i < end; i++)
        if (control->pending[i] != DONE) {
            MPL_PASS(stage(exec, b, i, &used));
            n_staged++;
        }
    for (uint32_t left = end; left != MPL_NONE;) {
        bool moved = false;

        for (uint32_t i = begin; i < end; i++) {
            if (control->pending[i] == DONE || must_wait(exec, i, begin, end))
                continue;
            MPL_PASS(copy_bytes(exec, control->to[i], control->from[i], result_bytes(exec->g, i)));
            control->copied_bytes += result_bytes(exec->g, i);
            control->carried_bytes += result_bytes(exec->g, i);
            n_staged -= control->pending[i] == STAGED;
            used = n_staged > 0 ? used : 0;
            control->pending[i] = DONE;
            moved = true;
        }
        left = moved ? end : first_waited_for(exec, begin, end);
        if (!moved && left != MPL_NONE) {
            MPL_PASS(stage(exec, b, left, &used));
            n_staged++;
        }
    }
    mpl_assert_ok(none_pending(control, begin, end));
    return MPL_OK;
}

/* The results of the round that ends become the parameters of the next. */
static mpl_status carry(mpl_exec *exec, uint32_t b)
{
    const mpl_graph *g = exec->g;
    mpl_control *control = exec->control;
    mpl_op op = g->block_owner[b];
    uint32_t n = mpl_n_carried(g, op), begin = g->block_result_begin[b] + 1;

    for (uint32_t i = 0; i < n; i++)
        control->from[begin + i] = mpl_exec_spot(exec, g->block_result[begin + i]);
    mpl_control_note_final(exec, op);
    control->round[b]++;
    for (uint32_t i = 0; i < n; i++) {
        mpl_value result = g->block_result[begin + i], param = mpl_control_params(g, b)[1 + i];
        mpl_spot from = control->from[begin + i], to = param_spot(exec, b, 1 + i, from);

        control->to[begin + i] = to;
        control->pending[begin + i] = mpl_control_result_copied(exec, b, 1 + i) &&
                                      g->value_bytes[result] > 0 && from.slab != MPL_NONE &&
                                      !same_spot(from, to);
        if (!mpl_control_result_copied(exec, b, 1 + i))
            MPL_PASS(hand_on(exec, result, from, to, g->value_bytes[result], false, param));
    }
    MPL_PASS(copy_pending(exec, b));
    for (uint32_t i = 0; i < n; i++)
        mpl_control_bind(exec, mpl_control_params(g, b)[1 + i], control->to[begin + i]);
    return MPL_OK;
}

static mpl_status end_round(mpl_exec *exec, uint32_t b, uint32_t *next)
{
    int64_t go;

    MPL_PASS(read_optional(exec, mpl_control_results(exec->g, b)[0], 1, &go));
    MPL_PASS(hand_on_rows(exec, b));
    MPL_PASS(carry(exec, b));
    *next = after_round(exec, b, go != 0);
    return MPL_OK;
}

/* ---- while: after the last round ---- */

/* Rows of rounds that did not run are zero. */
static mpl_status clear_rows(mpl_exec *exec, mpl_op op, uint32_t i)
{
    const mpl_graph *g = exec->g;
    uint32_t b = mpl_op_first_body(g, op), n = mpl_n_carried(g, op),
             n_scans = g->block_n_params[b] - 1 - n;
    mpl_value out = g->op_out[g->op_out_begin[op] + n + i];
    uint64_t bytes = g->value_bytes[mpl_control_results(g, b)[1 + n + i]],
             rounds = exec->control->round[b];
    uint64_t missing = (uint64_t)mpl_while_most_rounds(g, op) - rounds, first = rounds;

    if (out == MPL_NONE || exec->value_slab[out] == MPL_NONE || missing == 0 || bytes == 0)
        return MPL_OK;
    if (slice_number(exec, op, n_scans + i, 0) != 0)
        first = 0;
    MPL_PASS(exec->backend->fill(exec->dev, at_spot(exec, slice_spot(exec, out, first, bytes)), 0,
                                 missing * bytes));
    return mpl_witness_wrote(exec, slice_spot(exec, out, first, bytes), missing * bytes);
}

static mpl_status leave_while(mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;
    uint32_t b = mpl_op_first_body(g, op), n = mpl_n_carried(g, op);

    for (uint32_t i = 0; i < n; i++) {
        mpl_value out = g->op_out[g->op_out_begin[op] + i], param = mpl_control_params(g, b)[1 + i];
        mpl_spot to;

        if (out == MPL_NONE)
            continue;
        to = mpl_control_spot(exec, out);
        MPL_PASS(hand_on(exec, param, mpl_exec_spot(exec, param), to, g->value_bytes[out],
                         exec->control->unshared, out));
        mpl_control_bind(exec, out, to);
    }
    for (uint32_t i = 0; i + 1 + n < g->block_n_results[b]; i++)
        MPL_PASS(clear_rows(exec, op, i));
    if (exec->control->round[b] < exec->control->fewest[b])
        exec->control->fewest[b] = exec->control->round[b];
    exec->control->open[op] = 0;
    return MPL_OK;
}

static mpl_status test_exit(mpl_exec *exec, mpl_op op, uint32_t *next)
{
    const mpl_graph *g = exec->g;
    int64_t stay;

    MPL_PASS(read_number(exec, mpl_op_input(g, op, 0), &stay));
    if (stay == 0)
        *next = exec->control->program->op_step[g->block_owner[g->op_block[op]]];
    return MPL_OK;
}

/* ---- case ---- */

static mpl_status enter_case(mpl_exec *exec, mpl_op op, uint32_t *next)
{
    const mpl_graph *g = exec->g;
    mpl_control *control = exec->control;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    int64_t index;

    MPL_PASS(read_number(exec, mpl_op_input(g, op, 0), &index));
    if (index >= (int64_t)n)
        return MPL_REFUSE(
            exec->ctx, "graph '%s': operation '%s' (case) is to take branch %" PRId64 "; it has %u",
            g->name, g->op_name[op], index, n);
    if (index < 0 && n_out > 0 && mpl_op_input(g, op, 1) == MPL_NONE)
        return MPL_REFUSE(exec->ctx,
                          "graph '%s': operation '%s' (case) is to take no branch (%" PRId64
                          "), and has no bypass inputs",
                          g->name, g->op_name[op], index);
    control->open[op] = 1;
    control->branch[op] = index < 0 ? MPL_NONE : (uint32_t)index;
    *next = index < 0
                ? control->program->op_step[op]
                : control->program->begin_step[g->op_body[g->op_body_begin[op] + (uint32_t)index]];
    return MPL_OK;
}

/* Output i of a case takes over `v`: a branch's result, or the bypass value. */
static mpl_status hand_out(mpl_exec *exec, mpl_op op, uint32_t i, mpl_value v, bool copied)
{
    mpl_value out = exec->g->op_out[exec->g->op_out_begin[op] + i];
    mpl_spot to;

    if (out == MPL_NONE)
        return MPL_OK;
    to = mpl_control_spot(exec, out);
    MPL_PASS(hand_on(exec, v, mpl_exec_spot(exec, v), to, exec->g->value_bytes[out], copied, out));
    mpl_control_bind(exec, out, to);
    return MPL_OK;
}

static mpl_status end_branch(mpl_exec *exec, uint32_t b, uint32_t *next)
{
    const mpl_graph *g = exec->g;
    mpl_op op = g->block_owner[b];

    for (uint32_t i = 0; i < g->block_n_results[b]; i++)
        MPL_PASS(hand_out(exec, op, i, mpl_control_results(g, b)[i],
                          mpl_control_result_copied(exec, b, i)));
    *next = exec->control->program->op_step[op];
    return MPL_OK;
}

static mpl_status leave_case(mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;

    if (exec->control->branch[op] == MPL_NONE)
        for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
            MPL_PASS(hand_out(exec, op, i, mpl_op_input(g, op, 1 + i), in_copied(exec, op, 1 + i)));
    exec->control->open[op] = 0;
    return MPL_OK;
}

/* ---- steps ---- */

void mpl_control_bind_outputs(mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE && mpl_control_moves(exec, g->op_out[i]) &&
            exec->control->holder[g->op_out[i]] == g->op_out[i])
            mpl_control_bind(exec, g->op_out[i], mpl_control_spot(exec, g->op_out[i]));
}

static mpl_status plain_op(mpl_exec *exec, mpl_op op)
{
    mpl_control_bind_outputs(exec, op);
    if (exec->control->op_copied_bytes[op] > 0)
        exec->control->copied_bytes += exec->control->op_copied_bytes[op];
    return mpl_exec_run_op(exec, op);
}

static mpl_status run_step(mpl_exec *exec, uint32_t step, uint32_t *next)
{
    const mpl_graph *g = exec->g;
    const mpl_program *program = exec->control->program;
    uint32_t of = program->of[step];
    mpl_op op = program->kind[step] == MPL_STEP_OP ? of : g->block_owner[of];
    bool loop = g->op_kind[op] == MPL_OP_while;

    *next = step + 1;
    switch ((mpl_step_kind)program->kind[step]) {
    case MPL_STEP_OP:
        return loop                                   ? leave_while(exec, op)
               : g->op_kind[op] == MPL_OP_case        ? leave_case(exec, op)
               : g->op_kind[op] == MPL_OP_exit_unless ? test_exit(exec, op, next)
                                                      : plain_op(exec, op);
    case MPL_STEP_BEGIN: /* on entry it decides the next step, later it begins a round or branch */
        return !exec->control->open[op]
                   ? (loop ? enter_while(exec, op, next) : enter_case(exec, op, next))
               : loop ? begin_round(exec, of, next)
                      : spend(exec, of);
    case MPL_STEP_END:
        return loop ? end_round(exec, of, next) : end_branch(exec, of, next);
    }
    return MPL_OK;
}

uint32_t mpl_control_point(const mpl_exec *exec, uint32_t step)
{
    const mpl_control *control = exec->control;
    const mpl_program *program = control->program;
    mpl_op op;

    if (step == program->n_steps)
        return step;
    op = program->kind[step] == MPL_STEP_OP ? program->of[step]
                                            : exec->g->block_owner[program->of[step]];
    if (program->kind[step] == MPL_STEP_BEGIN && !control->open[op])
        return control->needs->entry[op];
    return program->kind[step] == MPL_STEP_OP && exec->g->op_kind[op] == MPL_OP_case &&
                   control->branch[op] != MPL_NONE
               ? mpl_needs_entry(control->needs, step + 1)
               : step;
}

/* Copies in what this step is the first in the run to read. A value that is read but not needed
 * does not arrive, as its place may belong to another. */
static mpl_status arrive(mpl_exec *exec, uint32_t step)
{
    mpl_control *control = exec->control;

    for (uint32_t i = control->arrival_begin[step]; i < control->arrival_begin[step + 1]; i++) {
        uint32_t arrival = control->arrival[i];

        if (control->arrived[arrival] ||
            !mpl_needs_has(control->needs, mpl_control_point(exec, step),
                           exec->arrival_value[arrival]))
            continue;
        MPL_PASS(mpl_exec_arrive_one(exec, arrival));
        control->arrived[arrival] = 1;
    }
    return MPL_OK;
}

static mpl_status prepare_step(mpl_exec *exec, uint32_t step, int64_t *apart_ns)
{
    int64_t begin = mpl_clock_ns();

    if (exec->n_arrivals > 0)
        MPL_PASS(arrive(exec, step));
    if (exec->witness != NULL)
        MPL_PASS(mpl_witness_before(exec, step));
    *apart_ns += mpl_clock_ns() - begin;
    return MPL_OK;
}

static mpl_status check_step(mpl_exec *exec, uint32_t step, uint32_t next, int64_t *apart_ns)
{
    int64_t begin;

    MPL_PASS(exec->backend->wait(exec->dev));
    begin = mpl_clock_ns();
    MPL_PASS(mpl_witness_after(exec, step, next));
    *apart_ns += mpl_clock_ns() - begin;
    return MPL_OK;
}

mpl_status mpl_control_run(mpl_exec *exec, uint32_t from, uint32_t to, int64_t *apart_ns)
{
    uint32_t next;

    for (uint32_t step = from; step < to; step = next) {
        if (apart_ns != NULL && (exec->n_arrivals > 0 || exec->witness != NULL))
            MPL_PASS(prepare_step(exec, step, apart_ns));
        MPL_PASS(run_step(exec, step, &next));
        if (apart_ns != NULL && exec->witness != NULL)
            MPL_PASS(check_step(exec, step, next, apart_ns));
    }
    return MPL_OK;
}

void mpl_control_reset(mpl_exec *exec)
{
    mpl_control *control = exec->control;

    if (control == NULL)
        return;
    if (exec->g->n_ops > 0)
        memset(control->open, 0, exec->g->n_ops);
    memset(control->fewest, 0xff, exec->g->n_blocks * sizeof *control->fewest);
    if (exec->n_arrivals > 0)
        memset(control->arrived, 0, exec->n_arrivals);
    control->copied_bytes = control->carried_bytes = 0;
    control->work = control->block_work != NULL ? control->block_work[0] : 0;
    mpl_witness_reset(exec);
}

uint64_t mpl_exec_fewest_rounds(const mpl_exec *exec, mpl_op op)
{
    return exec->control->fewest[mpl_op_first_body(exec->g, op)];
}

/* ---- what arrives from outside ---- */

/* The step before which values read by operation `op` must have arrived: its own. For a loop, and
 * for a case except its bypass values: where its first block begins. */
static uint32_t arrival_step(const mpl_exec *exec, mpl_op op, bool bypass)
{
    const mpl_graph *g = exec->g;
    bool owns = g->op_body_begin[op] < g->op_body_begin[op + 1] && !bypass;

    return owns ? exec->control->program->begin_step[mpl_op_first_body(g, op)]
                : exec->control->program->op_step[op];
}

/* Calls see() for each value that arrives in an arena and each step that may need it. */
static void each_arrival(mpl_exec *exec,
                         void (*see)(mpl_exec *exec, uint32_t step, uint32_t arrival))
{
    const mpl_graph *g = exec->g;
    const uint32_t *arrival_of = exec->control->arrival_of;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && arrival_of[g->op_in[i]] != MPL_NONE)
                see(exec,
                    arrival_step(exec, op, g->op_kind[op] == MPL_OP_case && i > g->op_in_begin[op]),
                    arrival_of[g->op_in[i]]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (arrival_of[g->output[i]] != MPL_NONE)
            see(exec, 0, arrival_of[g->output[i]]);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++) {
            mpl_value v = mpl_control_results(g, b)[i];

            if (v != MPL_NONE && arrival_of[v] != MPL_NONE)
                see(exec, exec->control->program->end_step[b], arrival_of[v]);
        }
}

static void count_arrival(mpl_exec *exec, uint32_t step, uint32_t arrival)
{
    (void)arrival;
    exec->control->arrival_begin[step + 2]++;
}

static void put_arrival(mpl_exec *exec, uint32_t step, uint32_t arrival)
{
    exec->control->arrival[exec->control->arrival_begin[step + 1]++] = arrival;
}

mpl_status mpl_control_list_arrivals(mpl_exec *exec)
{
    const mpl_graph *g = exec->g;
    mpl_control *control = exec->control;
    uint32_t n_steps = control->program->n_steps;
    uint32_t *arrival_of;

    mpl_free_each(exec->ctx, control->arrival_begin, control->arrival, control->arrived,
                  control->arrival_of);
    control->arrival_begin = control->arrival = control->arrival_of = NULL, control->arrived = NULL;
    MPL_PASS(mpl_new(exec->ctx, control->arrival_of, g->n_values));
    arrival_of = control->arrival_of;
    MPL_PASS(mpl_new(exec->ctx, control->arrival_begin, (size_t)n_steps + 2));
    MPL_PASS(mpl_new(exec->ctx, control->arrived, exec->n_arrivals));
    for (mpl_value v = 0; v < g->n_values; v++)
        arrival_of[v] = MPL_NONE;
    for (uint32_t i = 0; i < exec->n_arrivals; i++)
        arrival_of[exec->arrival_value[i]] = i;
    for (mpl_value v = 0; v < g->n_values && !control->unshared; v++)
        if (control->holder[v] != v)
            arrival_of[v] = arrival_of[control->holder[v]];
    each_arrival(exec, count_arrival);
    mpl_lists_begin(control->arrival_begin, n_steps);
    MPL_PASS(mpl_new(exec->ctx, control->arrival, control->arrival_begin[n_steps + 1]));
    each_arrival(exec, put_arrival);
    mpl_needs_free(exec->ctx, control->needs);
    control->needs = NULL;
    if (exec->n_arrivals > 0 || exec->options.checked)
        MPL_PASS(mpl_needs_new(exec->ctx, g, control->program, control->holder, &control->needs));
    return MPL_OK;
}
