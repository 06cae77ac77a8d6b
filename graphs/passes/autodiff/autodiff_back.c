/* autodiff_back.c -- loops and branches in reverse mode. See autodiff.h and TRAINING.md, "Loops and
 * branches".
 *
 * Source   Griewank, Walther, "Evaluating Derivatives", 2008, chapters 3 and 12: a tape of states,
 *          each step run again from its own. */
#include "graphs/passes/autodiff/autodiff_priv.h"

/* ---- frames: the gradients of one block ---- */

/* Saved state of the enclosing block while an inner block is differentiated. */
typedef struct frame {
    uint32_t block;
    mpl_op op;
    uint32_t *slots, *waits, *n_parts, *last;
    mpl_value *whole;
    uint32_t n_pieces;
    size_t piece_cap;
    mpl_grad_piece *piece;
} frame;

static mpl_value gradient_of(mpl_grad *grad, mpl_value v)
{
    return grad->whole[v] != MPL_NONE ? grad->whole[v] : mpl_grad_zeros(grad, v);
}

static void forget_values(mpl_grad *grad, uint32_t b)
{
    for (mpl_value v = grad->g->block_value_begin[b]; v < grad->g->block_value_end[b]; v++)
        if (grad->g->value_block[v] != 0)
            grad->now[v] = MPL_NONE;
}

static mpl_status enter(mpl_grad *grad, uint32_t b, frame *old)
{
    uint32_t n = grad->g->n_values;

    *old = (frame){grad->block, grad->op,    grad->slots,    grad->waits,     grad->n_parts,
                   grad->last,  grad->whole, grad->n_pieces, grad->piece_cap, grad->piece};
    grad->block = b;
    grad->slots = grad->waits = grad->n_parts = grad->last = grad->whole = NULL;
    grad->n_pieces = 0, grad->piece_cap = 0, grad->piece = NULL;
    MPL_PASS(mpl_new_each(grad->ctx, n, grad->slots, grad->waits, grad->n_parts, grad->last,
                          grad->whole));
    memset(grad->last, 0xff, n * sizeof *grad->last);
    memset(grad->whole, 0xff, n * sizeof *grad->whole);
    forget_values(grad, b);
    return MPL_OK;
}

static void leave(mpl_grad *grad, const frame *old)
{
    forget_values(grad, grad->block);
    mpl_free_each(grad->ctx, grad->slots, grad->waits, grad->n_parts, grad->last, grad->whole,
                  grad->piece);
    grad->block = old->block;
    grad->op = old->op;
    grad->slots = old->slots, grad->waits = old->waits, grad->n_parts = old->n_parts,
    grad->last = old->last;
    grad->whole = old->whole;
    grad->n_pieces = old->n_pieces, grad->piece_cap = old->piece_cap, grad->piece = old->piece;
}

/* Differentiates block b; seed[i] is the gradient of result[i], or MPL_NONE. */
static mpl_status back_block(mpl_grad *grad, uint32_t b, uint32_t n, const mpl_value *result,
                             const mpl_value *seed)
{
    const mpl_graph *g = grad->g;

    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        grad->leads[op] = 0;
    for (uint32_t i = 0; i < n; i++)
        if (mpl_grad_varies(grad, result[i]) && seed[i] != MPL_NONE) {
            grad->slots[result[i]]++;
            if (g->value_op[result[i]] != MPL_NONE && g->value_block[result[i]] == b)
                grad->leads[g->value_op[result[i]]] = 1;
        }
    MPL_PASS(mpl_grad_count_slots(grad, b));
    memcpy(grad->waits, grad->slots, g->n_values * sizeof *grad->waits);
    for (uint32_t i = 0; i < n; i++)
        if (mpl_grad_varies(grad, result[i]) && seed[i] != MPL_NONE) {
            mpl_grad_part(grad, result[i], seed[i]);
            if (--grad->waits[result[i]] == 0)
                MPL_PASS(mpl_grad_complete(grad, result[i]));
        }
    for (mpl_op op = g->block_op_end[b]; op-- > g->block_op_begin[b];)
        if (g->op_block[op] == b && grad->leads[op])
            MPL_PASS(mpl_grad_back(grad, op));
    return grad->st;
}

/* ---- recomputed values ---- */

/* Makes all values that the blocks of `op` read, before a block is opened. */
static mpl_status need_captured(mpl_grad *grad, mpl_op op)
{
    mpl_status st = MPL_OK;
    mpl_value *captured = NULL;
    uint32_t n;

    MPL_TRY(mpl_grad_captured(grad, op, false, &n, &captured));
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(mpl_grad_now(grad, captured[i]));
out:
    mpl_free(grad->ctx, captured);
    return st;
}

/* ---- loops backward ---- */

typedef struct back {
    mpl_op op;
    uint32_t b, n, n_scans, n_rows, n_captured;
    int64_t most;
    bool full;                   /* it certainly runs `most` rounds */
    const mpl_value *in;         /* of the old operation */
    mpl_value *captured;         /* varying captured values */
    mpl_grad_list inputs, flags; /* of the new operation; flags: of scans and rows */
    mpl_grad_list scan;          /* values of the new graph that are scanned in reverse */
    mpl_grad_list scan_now;      /* their values in the old body; MPL_NONE: seeds */
    mpl_grad_list result, seed;  /* results of the old body, and their gradients: carried values,
                                    rows */
    mpl_grad_list row;           /* rows that have a gradient */
    mpl_value round, last;       /* numbers of the current round and of the last one */
} back;

static bool reversed(const mpl_graph *g, mpl_op op, uint32_t i)
{
    uint32_t n;
    const int64_t *flag = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n);

    return i < n && flag[i] != 0;
}

/* Scans `whole`; `from_end`: the forward loop took the last slice first. */
static void add_scan(mpl_grad *grad, back *l, mpl_value whole, mpl_value old, bool from_end)
{
    mpl_grad_push(grad, &l->scan, whole);
    mpl_grad_push(grad, &l->scan_now, old);
    mpl_grad_push(grad, &l->flags, !from_end);
}

/* Lists what the backward loop scans: tapes, scans, gradients of rows. */
static mpl_status list_scans(mpl_grad *grad, back *l)
{
    const mpl_graph *g = grad->g;

    for (uint32_t i = 1; i <= l->n; i++)
        if (grad->tape[mpl_param(g, l->b, i)] != MPL_NONE)
            add_scan(grad, l, grad->tape[mpl_param(g, l->b, i)], mpl_param(g, l->b, i), false);
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_value slice = mpl_param(g, l->b, 1 + l->n + i);

        if (!mpl_grad_is_read(g, slice))
            continue;
        MPL_PASS(mpl_grad_now(grad, l->in[2 + l->n + i]));
        add_scan(grad, l, grad->now[l->in[2 + l->n + i]], slice, reversed(g, l->op, i));
    }
    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value out = g->op_out[g->op_out_begin[l->op] + l->n + i];

        if (!mpl_grad_varies(grad, out) || grad->whole[out] == MPL_NONE)
            continue;
        add_scan(grad, l, grad->whole[out], MPL_NONE, reversed(g, l->op, l->n_scans + i));
        mpl_grad_push(grad, &l->row, mpl_result(g, l->b, 1 + l->n + i));
    }
    return grad->st;
}

/* Lists the initial values: gradients of outputs, zeros for captured values. */
static void list_inits(mpl_grad *grad, back *l)
{
    const mpl_graph *g = grad->g;

    mpl_grad_push(grad, &l->inputs, l->full ? MPL_NONE : grad->count[l->op]);
    mpl_grad_push(grad, &l->inputs, MPL_NONE);
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_value out = g->op_out[g->op_out_begin[l->op] + i], param = mpl_param(g, l->b, 1 + i);

        if (grad->varies[param])
            mpl_grad_push(grad, &l->inputs,
                          out != MPL_NONE && grad->whole[out] != MPL_NONE
                              ? grad->whole[out]
                              : mpl_grad_zeros(grad, param));
    }
    for (uint32_t i = 0; i < l->n_captured; i++)
        mpl_grad_push(grad, &l->inputs, mpl_grad_zeros(grad, l->captured[i]));
    for (uint32_t i = 0; l->full && i < l->scan.n; i++)
        mpl_grad_push(grad, &l->inputs, l->scan.item[i]);
}

/* Slice of scan i for the current round; indexed by its number if the loop may end early. */
static mpl_value slice_of(mpl_grad *grad, back *l, uint32_t i)
{
    const mpl_graph *to = grad->to;
    const char *base = grad->g->op_name[l->op];
    mpl_value whole = l->scan.item[i], at = l->round;
    mpl_shape shape = {.rank = to->value_shape[whole].rank - 1};

    memcpy(shape.dim, to->value_shape[whole].dim + 1, shape.rank * sizeof *shape.dim);
    if (l->full)
        return mpl_grad_add_param(grad, base, ".slice", (mpl_type)to->value_type[whole], &shape);
    if (l->flags.item[i] == 0)
        at = mpl_grad_add_two(grad, MPL_OP_sub, base, ".at",
                              mpl_grad_whole_number(grad, l->most - 1), at, 0, NULL);
    return mpl_grad_add_two(grad, MPL_OP_gather, base, ".slice", whole, at, 1, &MPL_INT(axis, 0));
}

/* Opens the backward body. The old body's parameters come from the tape and the scans. */
static mpl_status open_body(mpl_grad *grad, back *l, mpl_grad_list *carried, uint32_t *id)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    char text[MPL_GRAD_NAME];
    mpl_value round;
    mpl_grad_list slice = {0};

    MPL_TRY(mpl_graph_open_block(
        grad->ctx, grad->to, mpl_grad_fresh_block(grad, text, g->block_name[l->b], ".back"), id));
    round =
        mpl_grad_add_param(grad, g->op_name[l->op], ".round", MPL_TYPE_i64, &(mpl_shape){0, {0}});
    for (uint32_t i = 0; i < l->n; i++)
        if (grad->varies[mpl_param(g, l->b, 1 + i)])
            mpl_grad_push(grad, carried,
                          mpl_grad_param_like(grad, ".grad", mpl_param(g, l->b, 1 + i)));
    for (uint32_t i = 0; i < l->n_captured; i++)
        mpl_grad_push(grad, carried, mpl_grad_param_like(grad, ".grad.sum", l->captured[i]));
    for (uint32_t i = 0; l->full && i < l->scan.n; i++)
        mpl_grad_push(grad, &slice, slice_of(grad, l, i));
    l->round =
        mpl_grad_add_two(grad, MPL_OP_sub, g->op_name[l->op], ".at", l->last, round, 0, NULL);
    for (uint32_t i = 0; !l->full && i < l->scan.n; i++)
        mpl_grad_push(grad, &slice, slice_of(grad, l, i));
    MPL_TRY(grad->st);
    grad->now[mpl_param(g, l->b, 0)] = l->round;
    for (uint32_t i = 0, k = 0; i < l->n; i++)
        if (grad->varies[mpl_param(g, l->b, 1 + i)]) {
            mpl_grad_push(grad, &l->result, mpl_result(g, l->b, 1 + i));
            mpl_grad_push(grad, &l->seed, carried->item[k++]);
        }
    for (uint32_t i = 0; i < l->row.n; i++)
        mpl_grad_push(grad, &l->result, l->row.item[i]);
    for (uint32_t i = 0; i < l->scan.n; i++)
        if (l->scan_now.item[i] != MPL_NONE)
            grad->now[l->scan_now.item[i]] = slice.item[i];
        else
            mpl_grad_push(grad, &l->seed, slice.item[i]);
    st = grad->st;
out:
    mpl_free(grad->ctx, slice.item);
    return st;
}

/* Adds results of the backward body and their flags: gradients before the round, sums, rows. */
static mpl_status close_body(mpl_grad *grad, back *l, const mpl_grad_list *carried)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    mpl_grad_list result = {0};
    uint32_t k = 0;

    mpl_grad_push(grad, &result, MPL_NONE);
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_value param = mpl_param(g, l->b, 1 + i);

        if (grad->varies[param])
            mpl_grad_push(grad, &result, gradient_of(grad, param)), k++;
    }
    for (uint32_t i = 0; i < l->n_captured; i++, k++) {
        mpl_value part = grad->whole[l->captured[i]];

        mpl_grad_push(grad, &result,
                      part == MPL_NONE
                          ? carried->item[k]
                          : mpl_grad_add_two(grad, MPL_OP_add, g->value_name[l->captured[i]],
                                             ".grad.next", carried->item[k], part, 0, NULL));
    }
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_value slice = mpl_param(g, l->b, 1 + l->n + i);

        if (!grad->varies[slice])
            continue;
        mpl_grad_push(grad, &result, gradient_of(grad, slice));
        mpl_grad_push(grad, &l->flags, !reversed(g, l->op, i));
    }
    MPL_TRY(grad->st);
    MPL_TRY(mpl_graph_close_block(grad->ctx, grad->to, result.n, result.item));
out:
    mpl_free(grad->ctx, result.item);
    return st;
}

/* Adds the backward loop; its outputs become gradients of their values. */
static mpl_status run_backward(mpl_grad *grad, back *l, uint32_t body, uint32_t n_new)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    int64_t *flags = NULL;
    uint32_t n_flags = l->full ? l->flags.n : l->flags.n - l->scan.n, n_out = n_new, at = 0;
    char(*text)[MPL_GRAD_NAME] = NULL;
    const char **name = NULL;
    mpl_value *out = NULL;
    const mpl_attr attr[] = {MPL_INT(carried, n_new), MPL_INT(trips, l->most)};
    mpl_attr all[3];

    for (uint32_t i = 0; i < l->n_scans; i++)
        n_out += grad->varies[mpl_param(g, l->b, 1 + l->n + i)];
    MPL_TRY(mpl_new(grad->ctx, flags, (size_t)n_flags + 1));
    MPL_TRY(mpl_new_each(grad->ctx, (size_t)n_out + 1, name, out));
    if ((text = mpl_alloc(grad->ctx, (size_t)n_out + 1, MPL_GRAD_NAME)) == NULL)
        MPL_TRY(MPL_EMEM);
    for (uint32_t i = 0; i < n_flags; i++)
        flags[i] = l->flags.item[i + l->flags.n - n_flags];
    for (uint32_t i = 0; i < n_out; i++)
        name[i] = mpl_grad_fresh(grad, text[i], g->op_name[l->op], ".grad.", i);
    all[0] = attr[0], all[1] = attr[1], all[2] = MPL_INTS(scan_reverse, n_flags, flags);
    MPL_TRY(mpl_graph_add_control(
        grad->ctx, grad->to, MPL_OP_while,
        mpl_grad_fresh(grad, text[n_out], g->op_name[l->op], ".back", MPL_NONE), l->inputs.n,
        l->inputs.item, n_flags > 0 ? 3 : 2, all, 1, &body, n_out, name, out));
    for (uint32_t i = 0; i < l->n; i++)
        if (grad->varies[mpl_param(g, l->b, 1 + i)]) {
            if (mpl_grad_varies(grad, l->in[2 + i]))
                mpl_grad_part(grad, l->in[2 + i], out[at]);
            at++;
        }
    for (uint32_t i = 0; i < l->n_captured; i++)
        mpl_grad_part(grad, l->captured[i], out[at++]);
    for (uint32_t i = 0; i < l->n_scans; i++)
        if (grad->varies[mpl_param(g, l->b, 1 + l->n + i)])
            mpl_grad_part(grad, l->in[2 + l->n + i], out[at++]);
    st = grad->st;
out:
    mpl_free_each(grad->ctx, flags, name, out, text);
    return st;
}

static mpl_status check_loop(mpl_grad *grad, const back *l)
{
    for (uint32_t i = 0; i < l->n_scans && !l->full; i++)
        if (grad->varies[mpl_param(grad->g, l->b, 1 + l->n + i)])
            return MPL_REFUSE(
                grad->ctx,
                "loop '%.100s' cannot be differentiated: it may end early, and its scanned input "
                "'%.100s' is trained",
                grad->g->op_name[l->op], grad->g->value_name[l->in[2 + l->n + i]]);
    return MPL_OK;
}

static mpl_status back_while(mpl_grad *grad, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    back l = {.op = op,
              .b = mpl_op_first_body(g, op),
              .n = mpl_n_carried(g, op),
              .most = mpl_while_most_rounds(g, op)};
    mpl_grad_list carried = {0};
    frame old;
    bool inside = false;
    uint32_t body;

    l.in = g->op_in + g->op_in_begin[op];
    l.n_scans = g->op_in_begin[op + 1] - g->op_in_begin[op] - 2 - l.n;
    l.n_rows = g->op_out_begin[op + 1] - g->op_out_begin[op] - l.n;
    l.full = mpl_while_runs_full(g, op);
    MPL_TRY(check_loop(grad, &l));
    MPL_TRY(mpl_grad_captured(grad, op, true, &l.n_captured, &l.captured));
    MPL_TRY(need_captured(grad, op));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        MPL_TRY(mpl_grad_now(grad, g->op_out[i])); /* includes the tape */
    MPL_TRY(list_scans(grad, &l));
    list_inits(grad, &l);
    l.last = l.full ? mpl_grad_whole_number(grad, l.most - 1)
                    : mpl_grad_add_two(grad, MPL_OP_sub, g->op_name[op], ".last", grad->count[op],
                                       mpl_grad_whole_number(grad, 1), 0, NULL);
    MPL_TRY(grad->st);
    inside = true;
    MPL_TRY(enter(grad, l.b, &old));
    MPL_TRY(open_body(grad, &l, &carried, &body));
    MPL_TRY(back_block(grad, l.b, l.result.n, l.result.item, l.seed.item));
    MPL_TRY(close_body(grad, &l, &carried));
    leave(grad, &old);
    inside = false;
    MPL_TRY(run_backward(grad, &l, body, carried.n));
out:
    if (inside)
        leave(grad, &old);
    mpl_free_each(grad->ctx, l.captured, l.inputs.item, l.flags.item, l.scan.item, l.scan_now.item,
                  l.seed.item, l.result.item, l.row.item, carried.item);
    return st;
}

/* ---- cases backward ---- */

/* One branch: gradients of captured values, then zeros for bypassed ones. */
static mpl_status back_branch(mpl_grad *grad, mpl_op op, uint32_t b, const mpl_grad_list *seed,
                              uint32_t n_captured, const mpl_value *captured, uint32_t *id)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    mpl_grad_list result = {0};
    frame old;
    char text[MPL_GRAD_NAME];

    MPL_TRY(enter(grad, b, &old));
    MPL_TRY(mpl_graph_open_block(grad->ctx, grad->to,
                                 mpl_grad_fresh_block(grad, text, g->block_name[b], ".back"), id));
    MPL_TRY(back_block(grad, b, seed->n, g->block_result + g->block_result_begin[b], seed->item));
    for (uint32_t i = 0; i < n_captured; i++)
        mpl_grad_push(grad, &result, gradient_of(grad, captured[i]));
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        if (mpl_grad_varies(grad, g->op_in[i]))
            mpl_grad_push(grad, &result, mpl_grad_zeros(grad, g->op_in[i]));
    MPL_TRY(grad->st);
    MPL_TRY(mpl_graph_close_block(grad->ctx, grad->to, result.n, result.item));
out:
    leave(grad, &old);
    mpl_free(grad->ctx, result.item);
    return st;
}

/* Adds the backward case on the same index; bypassed values get the outputs' gradients. */
static mpl_status back_case(mpl_grad *grad, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    uint32_t n_outs = g->op_out_begin[op + 1] - g->op_out_begin[op], n_captured,
             first = g->op_in_begin[op], n = 0, id;
    mpl_grad_list in = {0}, block = {0}, seed = {0}, target = {0};
    mpl_value *captured = NULL, *out = NULL;
    char(*text)[MPL_GRAD_NAME] = NULL;
    const char **name = NULL;
    bool bypass = g->op_in_begin[op + 1] > first + 1;

    MPL_TRY(mpl_grad_captured(grad, op, true, &n_captured, &captured));
    MPL_TRY(need_captured(grad, op));
    MPL_TRY(mpl_grad_now(grad, g->op_in[first]));
    mpl_grad_push(grad, &in, grad->now[g->op_in[first]]);
    for (uint32_t i = 0; i < n_captured; i++) {
        mpl_grad_push(grad, &target, captured[i]);
        if (bypass)
            mpl_grad_push(grad, &in, mpl_grad_zeros(grad, captured[i]));
    }
    for (uint32_t i = 0; i < n_outs; i++) {
        mpl_value y = g->op_out[g->op_out_begin[op] + i],
                  x = bypass ? g->op_in[first + 1 + i] : MPL_NONE;
        mpl_value dy = y != MPL_NONE ? grad->whole[y] : MPL_NONE;

        mpl_grad_push(grad, &seed, dy);
        if (!mpl_grad_varies(grad, x))
            continue;
        mpl_grad_push(grad, &target, x);
        mpl_grad_push(grad, &in, dy != MPL_NONE ? dy : mpl_grad_zeros(grad, x));
    }
    MPL_TRY(grad->st);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        MPL_TRY(back_branch(grad, op, g->op_body[k], &seed, n_captured, captured, &id));
        mpl_grad_push(grad, &block, id);
    }
    MPL_TRY(grad->st);
    n = target.n;
    MPL_TRY(mpl_new_each(grad->ctx, (size_t)n + 1, name, out));
    if ((text = mpl_alloc(grad->ctx, (size_t)n + 1, MPL_GRAD_NAME)) == NULL)
        MPL_TRY(MPL_EMEM);
    for (uint32_t i = 0; i < n; i++)
        name[i] = mpl_grad_fresh(grad, text[i], g->op_name[op], ".grad.", i);
    MPL_TRY(mpl_graph_add_control(grad->ctx, grad->to, MPL_OP_case,
                                  mpl_grad_fresh(grad, text[n], g->op_name[op], ".back", MPL_NONE),
                                  in.n, in.item, 0, NULL, block.n, block.item, n, name, out));
    for (uint32_t i = 0; i < n; i++)
        mpl_grad_part(grad, target.item[i], out[i]);
    st = grad->st;
out:
    mpl_free_each(grad->ctx, in.item, block.item, seed.item, target.item, captured, out, text,
                  name);
    return st;
}

mpl_status mpl_grad_back_control(mpl_grad *grad, mpl_op op)
{
    return grad->g->op_kind[op] == MPL_OP_while ? back_while(grad, op) : back_case(grad, op);
}
