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

static mpl_value gradient_of(mpl_grad *d, mpl_value v)
{
    return d->whole[v] != MPL_NONE ? d->whole[v] : mpl_grad_zeros(d, v);
}

static void forget_values(mpl_grad *d, uint32_t b)
{
    for (mpl_value v = d->g->block_value_begin[b]; v < d->g->block_value_end[b]; v++)
        if (d->g->value_block[v] != 0)
            d->now[v] = MPL_NONE;
}

static mpl_status enter(mpl_grad *d, uint32_t b, frame *old)
{
    uint32_t n = d->g->n_values;

    *old = (frame){d->block, d->op,    d->slots,    d->waits,     d->n_parts,
                   d->last,  d->whole, d->n_pieces, d->piece_cap, d->piece};
    d->block = b;
    d->slots = d->waits = d->n_parts = d->last = d->whole = NULL;
    d->n_pieces = 0, d->piece_cap = 0, d->piece = NULL;
    MPL_PASS(mpl_new_each(d->ctx, n, d->slots, d->waits, d->n_parts, d->last, d->whole));
    memset(d->last, 0xff, n * sizeof *d->last);
    memset(d->whole, 0xff, n * sizeof *d->whole);
    forget_values(d, b);
    return MPL_OK;
}

static void leave(mpl_grad *d, const frame *old)
{
    forget_values(d, d->block);
    mpl_free_each(d->ctx, d->slots, d->waits, d->n_parts, d->last, d->whole, d->piece);
    d->block = old->block;
    d->op = old->op;
    d->slots = old->slots, d->waits = old->waits, d->n_parts = old->n_parts, d->last = old->last;
    d->whole = old->whole;
    d->n_pieces = old->n_pieces, d->piece_cap = old->piece_cap, d->piece = old->piece;
}

/* Differentiates block b; seed[i] is the gradient of result[i], or MPL_NONE. */
static mpl_status back_block(mpl_grad *d, uint32_t b, uint32_t n, const mpl_value *result,
                             const mpl_value *seed)
{
    const mpl_graph *g = d->g;

    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        d->leads[op] = 0;
    for (uint32_t i = 0; i < n; i++)
        if (mpl_grad_varies(d, result[i]) && seed[i] != MPL_NONE) {
            d->slots[result[i]]++;
            if (g->value_op[result[i]] != MPL_NONE && g->value_block[result[i]] == b)
                d->leads[g->value_op[result[i]]] = 1;
        }
    MPL_PASS(mpl_grad_count_slots(d, b));
    memcpy(d->waits, d->slots, g->n_values * sizeof *d->waits);
    for (uint32_t i = 0; i < n; i++)
        if (mpl_grad_varies(d, result[i]) && seed[i] != MPL_NONE) {
            mpl_grad_part(d, result[i], seed[i]);
            if (--d->waits[result[i]] == 0)
                MPL_PASS(mpl_grad_complete(d, result[i]));
        }
    for (mpl_op op = g->block_op_end[b]; op-- > g->block_op_begin[b];)
        if (g->op_block[op] == b && d->leads[op])
            MPL_PASS(mpl_grad_back(d, op));
    return d->st;
}

/* ---- recomputed values ---- */

/* Makes all values that the blocks of `op` read, before a block is opened. */
static mpl_status need_captured(mpl_grad *d, mpl_op op)
{
    mpl_status st = MPL_OK;
    mpl_value *captured = NULL;
    uint32_t n;

    MPL_TRY(mpl_grad_captured(d, op, false, &n, &captured));
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(mpl_grad_now(d, captured[i]));
out:
    mpl_free(d->ctx, captured);
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
static void add_scan(mpl_grad *d, back *l, mpl_value whole, mpl_value old, bool from_end)
{
    mpl_grad_push(d, &l->scan, whole);
    mpl_grad_push(d, &l->scan_now, old);
    mpl_grad_push(d, &l->flags, !from_end);
}

/* Lists what the backward loop scans: tapes, scans, gradients of rows. */
static mpl_status list_scans(mpl_grad *d, back *l)
{
    const mpl_graph *g = d->g;

    for (uint32_t i = 1; i <= l->n; i++)
        if (d->tape[mpl_param(g, l->b, i)] != MPL_NONE)
            add_scan(d, l, d->tape[mpl_param(g, l->b, i)], mpl_param(g, l->b, i), false);
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_value slice = mpl_param(g, l->b, 1 + l->n + i);

        if (!mpl_grad_is_read(g, slice))
            continue;
        MPL_PASS(mpl_grad_now(d, l->in[2 + l->n + i]));
        add_scan(d, l, d->now[l->in[2 + l->n + i]], slice, reversed(g, l->op, i));
    }
    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value out = g->op_out[g->op_out_begin[l->op] + l->n + i];

        if (!mpl_grad_varies(d, out) || d->whole[out] == MPL_NONE)
            continue;
        add_scan(d, l, d->whole[out], MPL_NONE, reversed(g, l->op, l->n_scans + i));
        mpl_grad_push(d, &l->row, mpl_result(g, l->b, 1 + l->n + i));
    }
    return d->st;
}

/* Lists the initial values: gradients of outputs, zeros for captured values. */
static void list_inits(mpl_grad *d, back *l)
{
    const mpl_graph *g = d->g;

    mpl_grad_push(d, &l->inputs, l->full ? MPL_NONE : d->count[l->op]);
    mpl_grad_push(d, &l->inputs, MPL_NONE);
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_value out = g->op_out[g->op_out_begin[l->op] + i], param = mpl_param(g, l->b, 1 + i);

        if (d->varies[param])
            mpl_grad_push(d, &l->inputs,
                          out != MPL_NONE && d->whole[out] != MPL_NONE ? d->whole[out]
                                                                       : mpl_grad_zeros(d, param));
    }
    for (uint32_t i = 0; i < l->n_captured; i++)
        mpl_grad_push(d, &l->inputs, mpl_grad_zeros(d, l->captured[i]));
    for (uint32_t i = 0; l->full && i < l->scan.n; i++)
        mpl_grad_push(d, &l->inputs, l->scan.item[i]);
}

/* Slice of scan i for the current round; indexed by its number if the loop may end early. */
static mpl_value slice_of(mpl_grad *d, back *l, uint32_t i)
{
    const mpl_graph *to = d->to;
    const char *base = d->g->op_name[l->op];
    mpl_value whole = l->scan.item[i], at = l->round;
    mpl_shape shape = {.rank = to->value_shape[whole].rank - 1};

    memcpy(shape.dim, to->value_shape[whole].dim + 1, shape.rank * sizeof *shape.dim);
    if (l->full)
        return mpl_grad_add_param(d, base, ".slice", (mpl_type)to->value_type[whole], &shape);
    if (l->flags.item[i] == 0)
        at = mpl_grad_add_two(d, MPL_OP_sub, base, ".at", mpl_grad_whole_number(d, l->most - 1), at,
                              0, NULL);
    return mpl_grad_add_two(d, MPL_OP_gather, base, ".slice", whole, at, 1, &MPL_INT(axis, 0));
}

/* Opens the backward body. The old body's parameters come from the tape and the scans. */
static mpl_status open_body(mpl_grad *d, back *l, mpl_grad_list *carried, uint32_t *id)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    char text[MPL_GRAD_NAME];
    mpl_value round;
    mpl_grad_list slice = {0};

    MPL_TRY(mpl_graph_open_block(d->ctx, d->to,
                                 mpl_grad_fresh_block(d, text, g->block_name[l->b], ".back"), id));
    round = mpl_grad_add_param(d, g->op_name[l->op], ".round", MPL_TYPE_i64, &(mpl_shape){0, {0}});
    for (uint32_t i = 0; i < l->n; i++)
        if (d->varies[mpl_param(g, l->b, 1 + i)])
            mpl_grad_push(d, carried, mpl_grad_param_like(d, ".grad", mpl_param(g, l->b, 1 + i)));
    for (uint32_t i = 0; i < l->n_captured; i++)
        mpl_grad_push(d, carried, mpl_grad_param_like(d, ".grad.sum", l->captured[i]));
    for (uint32_t i = 0; l->full && i < l->scan.n; i++)
        mpl_grad_push(d, &slice, slice_of(d, l, i));
    l->round = mpl_grad_add_two(d, MPL_OP_sub, g->op_name[l->op], ".at", l->last, round, 0, NULL);
    for (uint32_t i = 0; !l->full && i < l->scan.n; i++)
        mpl_grad_push(d, &slice, slice_of(d, l, i));
    MPL_TRY(d->st);
    d->now[mpl_param(g, l->b, 0)] = l->round;
    for (uint32_t i = 0, k = 0; i < l->n; i++)
        if (d->varies[mpl_param(g, l->b, 1 + i)]) {
            mpl_grad_push(d, &l->result, mpl_result(g, l->b, 1 + i));
            mpl_grad_push(d, &l->seed, carried->item[k++]);
        }
    for (uint32_t i = 0; i < l->row.n; i++)
        mpl_grad_push(d, &l->result, l->row.item[i]);
    for (uint32_t i = 0; i < l->scan.n; i++)
        if (l->scan_now.item[i] != MPL_NONE)
            d->now[l->scan_now.item[i]] = slice.item[i];
        else
            mpl_grad_push(d, &l->seed, slice.item[i]);
    st = d->st;
out:
    mpl_free(d->ctx, slice.item);
    return st;
}

/* Adds results of the backward body and their flags: gradients before the round, sums, rows. */
static mpl_status close_body(mpl_grad *d, back *l, const mpl_grad_list *carried)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    mpl_grad_list result = {0};
    uint32_t k = 0;

    mpl_grad_push(d, &result, MPL_NONE);
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_value param = mpl_param(g, l->b, 1 + i);

        if (d->varies[param])
            mpl_grad_push(d, &result, gradient_of(d, param)), k++;
    }
    for (uint32_t i = 0; i < l->n_captured; i++, k++) {
        mpl_value part = d->whole[l->captured[i]];

        mpl_grad_push(d, &result,
                      part == MPL_NONE
                          ? carried->item[k]
                          : mpl_grad_add_two(d, MPL_OP_add, g->value_name[l->captured[i]],
                                             ".grad.next", carried->item[k], part, 0, NULL));
    }
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_value slice = mpl_param(g, l->b, 1 + l->n + i);

        if (!d->varies[slice])
            continue;
        mpl_grad_push(d, &result, gradient_of(d, slice));
        mpl_grad_push(d, &l->flags, !reversed(g, l->op, i));
    }
    MPL_TRY(d->st);
    MPL_TRY(mpl_graph_close_block(d->ctx, d->to, result.n, result.item));
out:
    mpl_free(d->ctx, result.item);
    return st;
}

/* Adds the backward loop; its outputs become gradients of their values. */
static mpl_status run_backward(mpl_grad *d, back *l, uint32_t body, uint32_t n_new)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    int64_t *flags = NULL;
    uint32_t n_flags = l->full ? l->flags.n : l->flags.n - l->scan.n, n_out = n_new, at = 0;
    char(*text)[MPL_GRAD_NAME] = NULL;
    const char **name = NULL;
    mpl_value *out = NULL;
    const mpl_attr attr[] = {MPL_INT(carried, n_new), MPL_INT(trips, l->most)};
    mpl_attr all[3];

    for (uint32_t i = 0; i < l->n_scans; i++)
        n_out += d->varies[mpl_param(g, l->b, 1 + l->n + i)];
    MPL_TRY(mpl_new(d->ctx, flags, (size_t)n_flags + 1));
    MPL_TRY(mpl_new_each(d->ctx, (size_t)n_out + 1, name, out));
    if ((text = mpl_alloc(d->ctx, (size_t)n_out + 1, MPL_GRAD_NAME)) == NULL)
        MPL_TRY(MPL_EMEM);
    for (uint32_t i = 0; i < n_flags; i++)
        flags[i] = l->flags.item[i + l->flags.n - n_flags];
    for (uint32_t i = 0; i < n_out; i++)
        name[i] = mpl_grad_fresh(d, text[i], g->op_name[l->op], ".grad.", i);
    all[0] = attr[0], all[1] = attr[1], all[2] = MPL_INTS(scan_reverse, n_flags, flags);
    MPL_TRY(mpl_graph_add_control(
        d->ctx, d->to, MPL_OP_while,
        mpl_grad_fresh(d, text[n_out], g->op_name[l->op], ".back", MPL_NONE), l->inputs.n,
        l->inputs.item, n_flags > 0 ? 3 : 2, all, 1, &body, n_out, name, out));
    for (uint32_t i = 0; i < l->n; i++)
        if (d->varies[mpl_param(g, l->b, 1 + i)]) {
            if (mpl_grad_varies(d, l->in[2 + i]))
                mpl_grad_part(d, l->in[2 + i], out[at]);
            at++;
        }
    for (uint32_t i = 0; i < l->n_captured; i++)
        mpl_grad_part(d, l->captured[i], out[at++]);
    for (uint32_t i = 0; i < l->n_scans; i++)
        if (d->varies[mpl_param(g, l->b, 1 + l->n + i)])
            mpl_grad_part(d, l->in[2 + l->n + i], out[at++]);
    st = d->st;
out:
    mpl_free_each(d->ctx, flags, name, out, text);
    return st;
}

static mpl_status check_loop(mpl_grad *d, const back *l)
{
    for (uint32_t i = 0; i < l->n_scans && !l->full; i++)
        if (d->varies[mpl_param(d->g, l->b, 1 + l->n + i)])
            return MPL_REFUSE(
                d->ctx,
                "loop '%.100s' cannot be differentiated: it may end early, and its scanned input "
                "'%.100s' is trained",
                d->g->op_name[l->op], d->g->value_name[l->in[2 + l->n + i]]);
    return MPL_OK;
}

static mpl_status back_while(mpl_grad *d, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
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
    MPL_TRY(check_loop(d, &l));
    MPL_TRY(mpl_grad_captured(d, op, true, &l.n_captured, &l.captured));
    MPL_TRY(need_captured(d, op));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        MPL_TRY(mpl_grad_now(d, g->op_out[i])); /* includes the tape */
    MPL_TRY(list_scans(d, &l));
    list_inits(d, &l);
    l.last = l.full ? mpl_grad_whole_number(d, l.most - 1)
                    : mpl_grad_add_two(d, MPL_OP_sub, g->op_name[op], ".last", d->count[op],
                                       mpl_grad_whole_number(d, 1), 0, NULL);
    MPL_TRY(d->st);
    inside = true;
    MPL_TRY(enter(d, l.b, &old));
    MPL_TRY(open_body(d, &l, &carried, &body));
    MPL_TRY(back_block(d, l.b, l.result.n, l.result.item, l.seed.item));
    MPL_TRY(close_body(d, &l, &carried));
    leave(d, &old);
    inside = false;
    MPL_TRY(run_backward(d, &l, body, carried.n));
out:
    if (inside)
        leave(d, &old);
    mpl_free_each(d->ctx, l.captured, l.inputs.item, l.flags.item, l.scan.item, l.scan_now.item,
                  l.seed.item, l.result.item, l.row.item, carried.item);
    return st;
}

/* ---- cases backward ---- */

/* One branch: gradients of captured values, then zeros for bypassed ones. */
static mpl_status back_branch(mpl_grad *d, mpl_op op, uint32_t b, const mpl_grad_list *seed,
                              uint32_t n_captured, const mpl_value *captured, uint32_t *id)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    mpl_grad_list result = {0};
    frame old;
    char text[MPL_GRAD_NAME];

    MPL_TRY(enter(d, b, &old));
    MPL_TRY(mpl_graph_open_block(d->ctx, d->to,
                                 mpl_grad_fresh_block(d, text, g->block_name[b], ".back"), id));
    MPL_TRY(back_block(d, b, seed->n, g->block_result + g->block_result_begin[b], seed->item));
    for (uint32_t i = 0; i < n_captured; i++)
        mpl_grad_push(d, &result, gradient_of(d, captured[i]));
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        if (mpl_grad_varies(d, g->op_in[i]))
            mpl_grad_push(d, &result, mpl_grad_zeros(d, g->op_in[i]));
    MPL_TRY(d->st);
    MPL_TRY(mpl_graph_close_block(d->ctx, d->to, result.n, result.item));
out:
    leave(d, &old);
    mpl_free(d->ctx, result.item);
    return st;
}

/* Adds the backward case on the same index; bypassed values get the outputs' gradients. */
static mpl_status back_case(mpl_grad *d, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    uint32_t n_outs = g->op_out_begin[op + 1] - g->op_out_begin[op], n_captured,
             first = g->op_in_begin[op], n = 0, id;
    mpl_grad_list in = {0}, block = {0}, seed = {0}, target = {0};
    mpl_value *captured = NULL, *out = NULL;
    char(*text)[MPL_GRAD_NAME] = NULL;
    const char **name = NULL;
    bool bypass = g->op_in_begin[op + 1] > first + 1;

    MPL_TRY(mpl_grad_captured(d, op, true, &n_captured, &captured));
    MPL_TRY(need_captured(d, op));
    MPL_TRY(mpl_grad_now(d, g->op_in[first]));
    mpl_grad_push(d, &in, d->now[g->op_in[first]]);
    for (uint32_t i = 0; i < n_captured; i++) {
        mpl_grad_push(d, &target, captured[i]);
        if (bypass)
            mpl_grad_push(d, &in, mpl_grad_zeros(d, captured[i]));
    }
    for (uint32_t i = 0; i < n_outs; i++) {
        mpl_value y = g->op_out[g->op_out_begin[op] + i],
                  x = bypass ? g->op_in[first + 1 + i] : MPL_NONE;
        mpl_value dy = y != MPL_NONE ? d->whole[y] : MPL_NONE;

        mpl_grad_push(d, &seed, dy);
        if (!mpl_grad_varies(d, x))
            continue;
        mpl_grad_push(d, &target, x);
        mpl_grad_push(d, &in, dy != MPL_NONE ? dy : mpl_grad_zeros(d, x));
    }
    MPL_TRY(d->st);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        MPL_TRY(back_branch(d, op, g->op_body[k], &seed, n_captured, captured, &id));
        mpl_grad_push(d, &block, id);
    }
    MPL_TRY(d->st);
    n = target.n;
    MPL_TRY(mpl_new_each(d->ctx, (size_t)n + 1, name, out));
    if ((text = mpl_alloc(d->ctx, (size_t)n + 1, MPL_GRAD_NAME)) == NULL)
        MPL_TRY(MPL_EMEM);
    for (uint32_t i = 0; i < n; i++)
        name[i] = mpl_grad_fresh(d, text[i], g->op_name[op], ".grad.", i);
    MPL_TRY(mpl_graph_add_control(d->ctx, d->to, MPL_OP_case,
                                  mpl_grad_fresh(d, text[n], g->op_name[op], ".back", MPL_NONE),
                                  in.n, in.item, 0, NULL, block.n, block.item, n, name, out));
    for (uint32_t i = 0; i < n; i++)
        mpl_grad_part(d, target.item[i], out[i]);
    st = d->st;
out:
    mpl_free_each(d->ctx, in.item, block.item, seed.item, target.item, captured, out, text, name);
    return st;
}

mpl_status mpl_grad_back_control(mpl_grad *d, mpl_op op)
{
    return d->g->op_kind[op] == MPL_OP_while ? back_while(d, op) : back_case(d, op);
}
