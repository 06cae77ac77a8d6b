/* autodiff_blocks.c -- loops and branches in reverse mode. See autodiff.h and TRAINING.md, "Loops
 * and branches".
 *
 * Source   Griewank, Walther, "Evaluating Derivatives", 2008, chapters 3 and 12: a tape of states,
 *          each step run again from its own. */
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/autodiff_priv.h"

/* ---- captured values ---- */

static void capture(const mpl_graph *g, mpl_op owner, mpl_value v, uint8_t *seen)
{
    uint32_t b = v != MPL_NONE ? g->value_block[v] : 0;

    if (v == MPL_NONE)
        return;
    for (uint32_t k = g->op_body_begin[owner]; k < g->op_body_begin[owner + 1]; k++)
        if (mpl_block_within(g, b, g->op_body[k]))
            return;
    seen[v] = 1;
}

/* Marks the outside values that the blocks of `op` read. */
static void mark_captured(const mpl_graph *g, mpl_op op, uint8_t *seen)
{
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        uint32_t b = g->op_body[k];

        for (mpl_op in = g->block_op_begin[b]; in < g->block_op_end[b]; in++)
            for (uint32_t i = g->op_in_begin[in]; i < g->op_in_begin[in + 1]; i++)
                capture(g, op, g->op_in[i], seen);
        for (uint32_t inner = b; inner < g->n_blocks; inner++)
            for (uint32_t i = 0; mpl_block_within(g, inner, b) && i < g->block_n_results[inner];
                 i++)
                capture(g, op, mpl_result(g, inner, i), seen);
    }
}

mpl_status mpl_grad_captured(mpl_grad *d, mpl_op op, bool varying, uint32_t *n, mpl_value **list)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    uint8_t *seen = NULL;

    *n = 0;
    MPL_TRY(mpl_new(d->ctx, seen, g->n_values));
    mark_captured(g, op, seen);
    for (mpl_value v = 0; v < g->n_values; v++)
        *n += seen[v] && (!varying || d->varies[v]);
    MPL_TRY(mpl_new(d->ctx, *list, *n));
    *n = 0;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (seen[v] && (!varying || d->varies[v]))
            (*list)[(*n)++] = v;
out:
    mpl_free(d->ctx, seen);
    return st;
}

/* ---- varying values ---- */

static bool is_varied(const mpl_grad *d, mpl_value v)
{
    return v != MPL_NONE && d->varies[v];
}

/* Marks v as varying if `with` varies. Returns whether that is new. */
static bool vary(mpl_grad *d, mpl_value v, mpl_value with)
{
    if (v == MPL_NONE || d->varies[v] || !is_varied(d, with) ||
        !mpl_type_in((mpl_type)d->g->value_type[v], MPL_SET_FLOAT))
        return false;
    d->varies[v] = 1;
    return true;
}

bool mpl_grad_vary_control(mpl_grad *d, mpl_op op)
{
    const mpl_graph *g = d->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op], *out = g->op_out + g->op_out_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
             n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    bool any = false;

    for (uint32_t k = g->op_body_begin[op];
         g->op_kind[op] == MPL_OP_case && k < g->op_body_begin[op + 1]; k++)
        for (uint32_t i = 0; i < n_out; i++) {
            any |= vary(d, out[i], mpl_result(g, g->op_body[k], i));
            any |= vary(d, out[i], 1 + i < n_in ? in[1 + i] : MPL_NONE);
        }
    for (uint32_t i = 1;
         g->op_kind[op] == MPL_OP_while && i < g->block_n_params[mpl_op_first_body(g, op)]; i++)
        any |= vary(d, mpl_param(g, mpl_op_first_body(g, op), i), in[1 + i]);
    for (uint32_t i = 0; g->op_kind[op] == MPL_OP_while && i < n_out; i++) {
        mpl_value result = mpl_result(g, mpl_op_first_body(g, op), 1 + i);

        any |= vary(d, out[i], result);
        if (i >= mpl_n_carried(g, op))
            continue;
        any |= vary(d, mpl_param(g, mpl_op_first_body(g, op), 1 + i), result);
        any |= vary(d, out[i], in[2 + i]);
    }
    return any;
}

/* ---- copies ---- */

static const char *fresh_block(const mpl_grad *d, char *text, const char *base, const char *suffix)
{
    size_t n;

    snprintf(text, MPL_GRAD_NAME - 16, "%.200s%s", base, suffix);
    n = strlen(text);
    for (uint32_t i = 2; mpl_graph_find_block(d->to, text) != MPL_NONE ||
                         (suffix[0] != '\0' && mpl_graph_find_block(d->g, text) != MPL_NONE);
         i++)
        snprintf(text + n, MPL_GRAD_NAME - n, "_%u", i);
    return text;
}

static bool is_read(const mpl_graph *g, mpl_value v)
{
    return g->value_use_begin[v] < g->value_use_begin[v + 1] && g->value_bytes[v] > 0;
}

static mpl_value number(mpl_grad *d, int64_t n)
{
    char text[MPL_GRAD_NAME];
    mpl_value v = MPL_NONE;

    if (d->st == MPL_OK)
        d->st = mpl_graph_add_const(d->ctx, d->to, mpl_grad_fresh(d, text, "rounds", "", MPL_NONE),
                                    MPL_TYPE_i64, &(mpl_shape){0, {0}}, &n, false, &v);
    return v;
}

static mpl_value add_op(mpl_grad *d, mpl_op_kind kind, const char *base, const char *suffix,
                        mpl_value a, mpl_value b, uint32_t n_attr, const mpl_attr *attr)
{
    char text[MPL_GRAD_NAME];
    const char *name;
    mpl_value out = MPL_NONE;

    if (d->st != MPL_OK)
        return MPL_NONE;
    name = mpl_grad_fresh(d, text, base, suffix, MPL_NONE);
    d->st = mpl_graph_add_op(d->ctx, d->to, kind, name, 2, (mpl_value[]){a, b}, n_attr, attr, 1,
                             &name, &out);
    return out;
}

static mpl_value zeros(mpl_grad *d, mpl_value like)
{
    char text[MPL_GRAD_NAME];
    static const double zero = 0; /* in every floating type */
    mpl_value v = MPL_NONE;

    if (d->st == MPL_OK)
        d->st = mpl_graph_add_const(d->ctx, d->to, mpl_grad_fresh(d, text, "zeros", "", MPL_NONE),
                                    (mpl_type)d->g->value_type[like], &d->g->value_shape[like],
                                    &zero, true, &v);
    return v;
}

/* A growing list of values or flags. */
typedef struct list {
    mpl_value *item;
    uint32_t n;
    size_t room;
} list;

static void push(mpl_grad *d, list *l, mpl_value v)
{
    if (d->st == MPL_OK)
        d->st = mpl_reserve(d->ctx, l->item, l->room, (size_t)l->n + 1);
    if (d->st == MPL_OK)
        l->item[l->n++] = v;
}

static mpl_value add_param(mpl_grad *d, const char *base, const char *suffix, mpl_type type,
                           const mpl_shape *shape)
{
    char text[MPL_GRAD_NAME];
    mpl_value v = MPL_NONE;

    if (d->st == MPL_OK)
        d->st =
            mpl_graph_add_param(d->ctx, d->to,
                                suffix[0] == '\0' ? mpl_grad_copy_name(d, text, base)
                                                  : mpl_grad_fresh(d, text, base, suffix, MPL_NONE),
                                type, shape, &v);
    return v;
}

static mpl_value param_like(mpl_grad *d, const char *suffix, mpl_value v)
{
    return add_param(d, d->g->value_name[v], suffix, (mpl_type)d->g->value_type[v],
                     &d->g->value_shape[v]);
}

/* What a copied loop or case has in addition. */
typedef struct extras {
    bool counts;     /* a loop: carries the number of its rounds */
    mpl_value count; /* that number, in the body */
    list moved;      /* running statistics that the blocks move, of the old graph */
    list before;     /* their values before the operation, in the new graph */
} extras;

static uint32_t n_extras(const extras *e)
{
    return e->counts + e->moved.n;
}

static void extras_fini(mpl_grad *d, extras *e)
{
    mpl_free_each(d->ctx, e->moved.item, e->before.item);
}

/* Lists the statistics, ascending; recomputed rounds move none. */
static mpl_status list_moved(mpl_grad *d, mpl_op op, extras *e)
{
    const mpl_graph *g = d->g;

    for (mpl_value v = 0; v < g->n_values && d->block == 0; v++) {
        bool inside = false;

        for (uint32_t i = g->value_use_begin[v];
             d->moved[v] != MPL_NONE && i < g->value_use_begin[v + 1]; i++)
            for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
                inside = inside || mpl_block_within(g, g->op_block[g->value_use[i]], g->op_body[k]);
        if (!inside)
            continue;
        push(d, &e->moved, v);
        push(d, &e->before, d->moved[v]);
    }
    return d->st;
}

/* Adds the parameters of a copied block, extras after the carried ones. */
static void copy_params(mpl_grad *d, mpl_op op, uint32_t b, extras *e)
{
    const mpl_graph *g = d->g;
    bool loop = g->op_kind[op] == MPL_OP_while;

    for (uint32_t i = 0; i <= g->block_n_params[b]; i++) {
        if (e->counts && i == 1 + mpl_n_carried(g, op))
            e->count = add_param(d, g->op_name[op], ".count", MPL_TYPE_i64, &(mpl_shape){0, {0}});
        for (uint32_t k = 0; k < e->moved.n && loop && i == 1 + mpl_n_carried(g, op); k++)
            d->moved[e->moved.item[k]] = param_like(d, ".before", e->moved.item[k]);
        if (i < g->block_n_params[b])
            d->now[mpl_param(g, b, i)] = param_like(d, "", mpl_param(g, b, i));
    }
}

/* Appends the results of the extras. */
static void push_extras(mpl_grad *d, mpl_op op, const extras *e, list *result)
{
    if (e->counts)
        push(d, result,
             add_op(d, MPL_OP_add, d->g->op_name[op], ".counted", e->count, number(d, 1), 0, NULL));
    for (uint32_t k = 0; k < e->moved.n; k++)
        push(d, result, d->moved[e->moved.item[k]]);
}

/* Copies a block and leaves it open; its results are in `result`. */
static mpl_status copy_block(mpl_grad *d, mpl_op op, uint32_t b, bool tape, extras *e, list *result,
                             uint32_t *id)
{
    const mpl_graph *g = d->g;
    uint32_t n = mpl_n_carried(g, op);
    uint32_t behind = g->op_kind[op] == MPL_OP_while ? 1 + n : g->block_n_results[b];
    char text[MPL_GRAD_NAME];

    MPL_PASS(mpl_graph_open_block(
        d->ctx, d->to, fresh_block(d, text, g->block_name[b], d->block != 0 ? ".again" : ""), id));
    copy_params(d, op, b, e);
    for (mpl_op in = g->block_op_begin[b]; in < g->block_op_end[b] && d->st == MPL_OK; in++)
        if (g->op_block[in] == b)
            MPL_PASS(mpl_grad_owns(g, in) ? mpl_grad_copy_control(d, in, false)
                                          : mpl_grad_copy(d, in));
    for (uint32_t i = 0; i <= g->block_n_results[b]; i++) {
        if (i == behind)
            push_extras(d, op, e, result);
        if (i < g->block_n_results[b])
            push(d, result,
                 mpl_result(g, b, i) != MPL_NONE ? d->now[mpl_result(g, b, i)] : MPL_NONE);
    }
    for (uint32_t i = 1; tape && i <= n; i++) /* values at the beginning of the round */
        if (is_read(g, mpl_param(g, b, i)))
            push(d, result, d->now[mpl_param(g, b, i)]);
    return d->st;
}

/* Attributes of a copied loop or case, with `more` rows after the others. */
static mpl_status copy_attrs(mpl_grad *d, mpl_op op, uint32_t more_carried, uint32_t n_rows,
                             uint32_t more, mpl_attr **attr, int64_t **flags, uint32_t *n_attr)
{
    const mpl_graph *g = d->g;
    uint32_t n = g->op_attr_begin[op + 1] - g->op_attr_begin[op], n_flags = 0;
    const int64_t *old = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);

    MPL_PASS(mpl_new(d->ctx, *attr, (size_t)n + 1));
    MPL_PASS(mpl_new(d->ctx, *flags, (size_t)n_rows + more + 1));
    (*flags)[n_rows + more] = mpl_n_carried(g, op) + more_carried;
    for (uint32_t i = 0; i < n; i++) {
        (*attr)[i] = mpl_attr_at(g, g->op_attr_begin[op] + i);
        if ((*attr)[i].key == MPL_ATTR_carried)
            (*attr)[i] = MPL_INTS(carried, 1, *flags + n_rows + more);
    }
    *n_attr = n;
    for (uint32_t i = 0; i < n_flags; i++)
        (*flags)[i] = old[i];
    for (uint32_t i = 0; n_flags > 0 && i < n; i++)
        if ((*attr)[i].key == MPL_ATTR_scan_reverse)
            (*attr)[i] = MPL_INTS(scan_reverse, n_rows + more, *flags);
    return MPL_OK;
}

static mpl_status add_control(mpl_grad *d, mpl_op_kind kind, const char *name, const list *in,
                              uint32_t n_attr, const mpl_attr *attr, const list *block,
                              const char *const *out_name, uint32_t n_out, mpl_value *out)
{
    return mpl_graph_add_control(d->ctx, d->to, kind, name, in->n, in->item, n_attr, attr, block->n,
                                 block->item, n_out, out_name, out);
}

/* The output after which a copy has extras. */
static uint32_t last_carried(const mpl_graph *g, mpl_op op)
{
    return g->op_kind[op] == MPL_OP_while ? mpl_n_carried(g, op)
                                          : g->op_out_begin[op + 1] - g->op_out_begin[op];
}

/* Names of a copy's outputs: the old ones, extras, tapes. */
static mpl_status name_outputs(mpl_grad *d, mpl_op op, const extras *e, uint32_t n_tapes,
                               uint32_t *n_out, char (**text)[MPL_GRAD_NAME], const char ***name)
{
    const mpl_graph *g = d->g;
    uint32_t n_old = g->op_out_begin[op + 1] - g->op_out_begin[op], at = 0;

    *n_out = n_old + n_extras(e) + n_tapes;
    if ((*text = mpl_alloc(d->ctx, *n_out, MPL_GRAD_NAME)) == NULL)
        MPL_PASS(MPL_EMEM);
    MPL_PASS(mpl_new(d->ctx, *name, *n_out));
    for (uint32_t i = 0; i <= n_old; i++) {
        if (e->counts && i == last_carried(g, op))
            (*name)[at] = mpl_grad_fresh(d, (*text)[at], g->op_name[op], ".rounds", MPL_NONE), at++;
        for (uint32_t k = 0; k < e->moved.n && i == last_carried(g, op); k++, at++)
            (*name)[at] =
                mpl_grad_fresh(d, (*text)[at], g->value_name[e->moved.item[k]], ".behind.", op);
        if (i == n_old)
            break;
        if (g->op_out[g->op_out_begin[op] + i] != MPL_NONE)
            (*name)[at] = mpl_grad_copy_name(d, (*text)[at],
                                             g->value_name[g->op_out[g->op_out_begin[op] + i]]);
        at++;
    }
    for (uint32_t i = 0; i < n_tapes; i++, at++)
        (*name)[at] = mpl_grad_fresh(d, (*text)[at], g->op_name[op], ".tape", i);
    return MPL_OK;
}

/* Records the outputs of a copied loop or case in the new graph; its tapes too. */
static void note_outputs(mpl_grad *d, mpl_op op, bool tape, const extras *e, const mpl_value *out)
{
    const mpl_graph *g = d->g;
    uint32_t n_old = g->op_out_begin[op + 1] - g->op_out_begin[op], n = last_carried(g, op);
    uint32_t at = n_old + n_extras(e);

    for (uint32_t i = 0; i < n_old; i++)
        if (g->op_out[g->op_out_begin[op] + i] != MPL_NONE)
            d->now[g->op_out[g->op_out_begin[op] + i]] = out[i < n ? i : i + n_extras(e)];
    d->count[op] = e->counts ? out[n] : MPL_NONE;
    for (uint32_t k = 0; k < e->moved.n; k++)
        d->moved[e->moved.item[k]] = out[n + e->counts + k];
    for (uint32_t i = 1; tape && i <= n; i++)
        d->tape[mpl_param(g, mpl_op_first_body(g, op), i)] =
            is_read(g, mpl_param(g, mpl_op_first_body(g, op), i)) ? out[at++] : MPL_NONE;
}

mpl_status mpl_grad_copy_control(mpl_grad *d, mpl_op op, bool tape)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    list in = {0}, block = {0}, result = {0};
    extras e = {.count = MPL_NONE};
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op], n_out, n_attr, n_tapes = 0, id;
    uint32_t n = g->op_kind[op] == MPL_OP_while ? mpl_n_carried(g, op) : 0;
    uint32_t n_flags = n_in + g->op_out_begin[op + 1] - g->op_out_begin[op];
    /* a case needs inputs for extras only if it can bypass its branches */
    uint32_t behind = g->op_kind[op] == MPL_OP_while ? 2 + n : n_in > 1 ? n_in : MPL_NONE;
    mpl_attr *attr = NULL;
    int64_t *flags = NULL;
    char(*text)[MPL_GRAD_NAME] = NULL;
    const char **name = NULL;
    mpl_value *out = NULL;

    tape = tape && g->op_kind[op] == MPL_OP_while;
    if (tape && mpl_while_most_rounds(g, op) < 0)
        MPL_FAIL(d->ctx, MPL_EINPUT,
                 "loop '%.100s' cannot be differentiated: nothing says how many rounds it may have "
                 "at most; "
                 "give it "
                 "trips=N",
                 g->op_name[op]);
    e.counts = tape && !mpl_while_runs_full(g, op);
    MPL_TRY(list_moved(d, op, &e));
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        result.n = 0;
        for (uint32_t i = 0; i < e.moved.n; i++)
            d->moved[e.moved.item[i]] = e.before.item[i];
        MPL_TRY(copy_block(d, op, g->op_body[k], tape, &e, &result, &id));
        push(d, &block, id);
        MPL_TRY(d->st);
        MPL_TRY(mpl_graph_close_block(d->ctx, d->to, result.n, result.item));
    }
    for (uint32_t i = 1; tape && i <= n; i++)
        n_tapes += is_read(g, mpl_param(g, mpl_op_first_body(g, op), i));
    for (uint32_t i = 0; i <= n_in; i++) {
        if (i == behind && e.counts)
            push(d, &in, number(d, 0));
        for (uint32_t k = 0; k < e.moved.n && i == behind; k++)
            push(d, &in, e.before.item[k]);
        if (i < n_in)
            push(d, &in,
                 g->op_in[g->op_in_begin[op] + i] != MPL_NONE
                     ? d->now[g->op_in[g->op_in_begin[op] + i]]
                     : MPL_NONE);
    }
    MPL_TRY(d->st);
    MPL_TRY(copy_attrs(d, op, n_extras(&e), n_flags > 2 + 2 * n ? n_flags - 2 - 2 * n : 0, n_tapes,
                       &attr, &flags, &n_attr));
    MPL_TRY(name_outputs(d, op, &e, n_tapes, &n_out, &text, &name));
    MPL_TRY(mpl_new(d->ctx, out, n_out));
    d->op_now[op] = d->to->n_ops;
    MPL_TRY(add_control(d, (mpl_op_kind)g->op_kind[op], g->op_name[op], &in, n_attr, attr, &block,
                        name, n_out, out));
    note_outputs(d, op, tape, &e, out);
out:
    extras_fini(d, &e);
    mpl_free_each(d->ctx, in.item, block.item, result.item, attr, flags, text, name, out);
    return st;
}

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

mpl_status mpl_grad_count_slots(mpl_grad *d, uint32_t b)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    mpl_value *captured = NULL;
    uint32_t n;

    for (mpl_op op = g->block_op_end[b]; op-- > g->block_op_begin[b];) {
        if (g->op_block[op] != b || !d->leads[op])
            continue;
        mpl_free(d->ctx, captured);
        captured = NULL;
        MPL_TRY(mpl_grad_captured(d, op, true, &n, &captured));
        for (uint32_t i = 0; i < g->op_in_begin[op + 1] - g->op_in_begin[op] + n; i++) {
            uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
            mpl_value v = i < n_in ? g->op_in[g->op_in_begin[op] + i] : captured[i - n_in];

            if (!is_varied(d, v))
                continue;
            d->slots[v]++;
            if (g->value_op[v] != MPL_NONE && g->value_block[v] == b)
                d->leads[g->value_op[v]] = 1;
        }
    }
out:
    mpl_free(d->ctx, captured);
    return st;
}

/* Differentiates block b; seed[i] is the gradient of result[i], or MPL_NONE. */
static mpl_status back_block(mpl_grad *d, uint32_t b, uint32_t n, const mpl_value *result,
                             const mpl_value *seed)
{
    const mpl_graph *g = d->g;

    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        d->leads[op] = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_varied(d, result[i]) && seed[i] != MPL_NONE) {
            d->slots[result[i]]++;
            if (g->value_op[result[i]] != MPL_NONE && g->value_block[result[i]] == b)
                d->leads[g->value_op[result[i]]] = 1;
        }
    MPL_PASS(mpl_grad_count_slots(d, b));
    memcpy(d->waits, d->slots, g->n_values * sizeof *d->waits);
    for (uint32_t i = 0; i < n; i++)
        if (is_varied(d, result[i]) && seed[i] != MPL_NONE) {
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
    bool full;             /* it certainly runs `most` rounds */
    const mpl_value *in;   /* of the old operation */
    mpl_value *captured;   /* varying captured values */
    list inputs, flags;    /* of the new operation; flags: of scans and rows */
    list scan;             /* values of the new graph that are scanned in reverse */
    list scan_now;         /* their values in the old body; MPL_NONE: seeds */
    list result, seed;     /* results of the old body, and their gradients: carried values, rows */
    list row;              /* rows that have a gradient */
    mpl_value round, last; /* numbers of the current round and of the last one */
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
    push(d, &l->scan, whole);
    push(d, &l->scan_now, old);
    push(d, &l->flags, !from_end);
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

        if (!is_read(g, slice))
            continue;
        MPL_PASS(mpl_grad_now(d, l->in[2 + l->n + i]));
        add_scan(d, l, d->now[l->in[2 + l->n + i]], slice, reversed(g, l->op, i));
    }
    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value out = g->op_out[g->op_out_begin[l->op] + l->n + i];

        if (!is_varied(d, out) || d->whole[out] == MPL_NONE)
            continue;
        add_scan(d, l, d->whole[out], MPL_NONE, reversed(g, l->op, l->n_scans + i));
        push(d, &l->row, mpl_result(g, l->b, 1 + l->n + i));
    }
    return d->st;
}

/* Lists the initial values: gradients of outputs, zeros for captured values. */
static void list_inits(mpl_grad *d, back *l)
{
    const mpl_graph *g = d->g;

    push(d, &l->inputs, l->full ? MPL_NONE : d->count[l->op]);
    push(d, &l->inputs, MPL_NONE);
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_value out = g->op_out[g->op_out_begin[l->op] + i], param = mpl_param(g, l->b, 1 + i);

        if (d->varies[param])
            push(d, &l->inputs,
                 out != MPL_NONE && d->whole[out] != MPL_NONE ? d->whole[out] : zeros(d, param));
    }
    for (uint32_t i = 0; i < l->n_captured; i++)
        push(d, &l->inputs, zeros(d, l->captured[i]));
    for (uint32_t i = 0; l->full && i < l->scan.n; i++)
        push(d, &l->inputs, l->scan.item[i]);
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
        return add_param(d, base, ".slice", (mpl_type)to->value_type[whole], &shape);
    if (l->flags.item[i] == 0)
        at = add_op(d, MPL_OP_sub, base, ".at", number(d, l->most - 1), at, 0, NULL);
    return add_op(d, MPL_OP_gather, base, ".slice", whole, at, 1, &MPL_INT(axis, 0));
}

/* Opens the backward body. The old body's parameters come from the tape and the scans. */
static mpl_status open_body(mpl_grad *d, back *l, list *carried, uint32_t *id)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    char text[MPL_GRAD_NAME];
    mpl_value round;
    list slice = {0};

    MPL_TRY(mpl_graph_open_block(d->ctx, d->to, fresh_block(d, text, g->block_name[l->b], ".back"),
                                 id));
    round = add_param(d, g->op_name[l->op], ".round", MPL_TYPE_i64, &(mpl_shape){0, {0}});
    for (uint32_t i = 0; i < l->n; i++)
        if (d->varies[mpl_param(g, l->b, 1 + i)])
            push(d, carried, param_like(d, ".grad", mpl_param(g, l->b, 1 + i)));
    for (uint32_t i = 0; i < l->n_captured; i++)
        push(d, carried, param_like(d, ".grad.sum", l->captured[i]));
    for (uint32_t i = 0; l->full && i < l->scan.n; i++)
        push(d, &slice, slice_of(d, l, i));
    l->round = add_op(d, MPL_OP_sub, g->op_name[l->op], ".at", l->last, round, 0, NULL);
    for (uint32_t i = 0; !l->full && i < l->scan.n; i++)
        push(d, &slice, slice_of(d, l, i));
    MPL_TRY(d->st);
    d->now[mpl_param(g, l->b, 0)] = l->round;
    for (uint32_t i = 0, k = 0; i < l->n; i++)
        if (d->varies[mpl_param(g, l->b, 1 + i)]) {
            push(d, &l->result, mpl_result(g, l->b, 1 + i));
            push(d, &l->seed, carried->item[k++]);
        }
    for (uint32_t i = 0; i < l->row.n; i++)
        push(d, &l->result, l->row.item[i]);
    for (uint32_t i = 0; i < l->scan.n; i++)
        if (l->scan_now.item[i] != MPL_NONE)
            d->now[l->scan_now.item[i]] = slice.item[i];
        else
            push(d, &l->seed, slice.item[i]);
    st = d->st;
out:
    mpl_free(d->ctx, slice.item);
    return st;
}

/* Adds results of the backward body and their flags: gradients before the round, sums, rows. */
static mpl_status close_body(mpl_grad *d, back *l, const list *carried)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    list result = {0};
    uint32_t k = 0;

    push(d, &result, MPL_NONE);
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_value param = mpl_param(g, l->b, 1 + i);

        if (d->varies[param])
            push(d, &result, d->whole[param] != MPL_NONE ? d->whole[param] : zeros(d, param)), k++;
    }
    for (uint32_t i = 0; i < l->n_captured; i++, k++) {
        mpl_value part = d->whole[l->captured[i]];

        push(d, &result,
             part == MPL_NONE ? carried->item[k]
                              : add_op(d, MPL_OP_add, g->value_name[l->captured[i]], ".grad.next",
                                       carried->item[k], part, 0, NULL));
    }
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_value slice = mpl_param(g, l->b, 1 + l->n + i);

        if (!d->varies[slice])
            continue;
        push(d, &result, d->whole[slice] != MPL_NONE ? d->whole[slice] : zeros(d, slice));
        push(d, &l->flags, !reversed(g, l->op, i));
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
            if (is_varied(d, l->in[2 + i]))
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
    list carried = {0};
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
    l.last = l.full ? number(d, l.most - 1)
                    : add_op(d, MPL_OP_sub, g->op_name[op], ".last", d->count[op], number(d, 1), 0,
                             NULL);
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
static mpl_status back_branch(mpl_grad *d, mpl_op op, uint32_t b, const list *seed,
                              uint32_t n_captured, const mpl_value *captured, uint32_t *id)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    list result = {0};
    frame old;
    char text[MPL_GRAD_NAME];

    MPL_TRY(enter(d, b, &old));
    MPL_TRY(
        mpl_graph_open_block(d->ctx, d->to, fresh_block(d, text, g->block_name[b], ".back"), id));
    MPL_TRY(back_block(d, b, seed->n, g->block_result + g->block_result_begin[b], seed->item));
    for (uint32_t i = 0; i < n_captured; i++)
        push(d, &result,
             d->whole[captured[i]] != MPL_NONE ? d->whole[captured[i]] : zeros(d, captured[i]));
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        if (is_varied(d, g->op_in[i]))
            push(d, &result, zeros(d, g->op_in[i]));
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
    list in = {0}, block = {0}, seed = {0}, target = {0};
    mpl_value *captured = NULL, *out = NULL;
    char(*text)[MPL_GRAD_NAME] = NULL;
    const char **name = NULL;
    bool bypass = g->op_in_begin[op + 1] > first + 1;

    MPL_TRY(mpl_grad_captured(d, op, true, &n_captured, &captured));
    MPL_TRY(need_captured(d, op));
    MPL_TRY(mpl_grad_now(d, g->op_in[first]));
    push(d, &in, d->now[g->op_in[first]]);
    for (uint32_t i = 0; i < n_captured; i++) {
        push(d, &target, captured[i]);
        if (bypass)
            push(d, &in, zeros(d, captured[i]));
    }
    for (uint32_t i = 0; i < n_outs; i++) {
        mpl_value y = g->op_out[g->op_out_begin[op] + i],
                  x = bypass ? g->op_in[first + 1 + i] : MPL_NONE;
        mpl_value dy = y != MPL_NONE ? d->whole[y] : MPL_NONE;

        push(d, &seed, dy);
        if (!is_varied(d, x))
            continue;
        push(d, &target, x);
        push(d, &in, dy != MPL_NONE ? dy : zeros(d, x));
    }
    MPL_TRY(d->st);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        MPL_TRY(back_branch(d, op, g->op_body[k], &seed, n_captured, captured, &id));
        push(d, &block, id);
    }
    MPL_TRY(d->st);
    n = target.n;
    MPL_TRY(mpl_new_each(d->ctx, (size_t)n + 1, name, out));
    if ((text = mpl_alloc(d->ctx, (size_t)n + 1, MPL_GRAD_NAME)) == NULL)
        MPL_TRY(MPL_EMEM);
    for (uint32_t i = 0; i < n; i++)
        name[i] = mpl_grad_fresh(d, text[i], g->op_name[op], ".grad.", i);
    MPL_TRY(add_control(d, MPL_OP_case,
                        mpl_grad_fresh(d, text[n], g->op_name[op], ".back", MPL_NONE), &in, 0, NULL,
                        &block, name, n, out));
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
