/* autodiff_blocks.c -- loops and branches of a graph that is differentiated: what their blocks
 * read, what varies in them, and their copies, which keep a tape. autodiff_back.c goes through them
 * backwards. See TRAINING.md, "Loops and branches". */
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

mpl_status mpl_grad_captured(mpl_grad *grad, mpl_op op, bool varying, uint32_t *n, mpl_value **list)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    uint8_t *seen = NULL;

    *n = 0;
    MPL_TRY(mpl_new(grad->ctx, seen, g->n_values));
    mark_captured(g, op, seen);
    for (mpl_value v = 0; v < g->n_values; v++)
        *n += seen[v] && (!varying || grad->varies[v]);
    MPL_TRY(mpl_new(grad->ctx, *list, *n));
    *n = 0;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (seen[v] && (!varying || grad->varies[v]))
            (*list)[(*n)++] = v;
out:
    mpl_free(grad->ctx, seen);
    return st;
}

/* ---- varying values ---- */

/* Marks v as varying if `with` varies. Returns whether that is new. */
static bool vary(mpl_grad *grad, mpl_value v, mpl_value with)
{
    if (v == MPL_NONE || grad->varies[v] || !mpl_grad_varies(grad, with) ||
        !mpl_type_in((mpl_type)grad->g->value_type[v], MPL_SET_FLOAT))
        return false;
    grad->varies[v] = 1;
    return true;
}

bool mpl_grad_vary_control(mpl_grad *grad, mpl_op op)
{
    const mpl_graph *g = grad->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op], *out = g->op_out + g->op_out_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
             n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    bool any = false;

    for (uint32_t k = g->op_body_begin[op];
         g->op_kind[op] == MPL_OP_case && k < g->op_body_begin[op + 1]; k++)
        for (uint32_t i = 0; i < n_out; i++) {
            any |= vary(grad, out[i], mpl_result(g, g->op_body[k], i));
            any |= vary(grad, out[i], 1 + i < n_in ? in[1 + i] : MPL_NONE);
        }
    for (uint32_t i = 1;
         g->op_kind[op] == MPL_OP_while && i < g->block_n_params[mpl_op_first_body(g, op)]; i++)
        any |= vary(grad, mpl_param(g, mpl_op_first_body(g, op), i), in[1 + i]);
    for (uint32_t i = 0; g->op_kind[op] == MPL_OP_while && i < n_out; i++) {
        mpl_value result = mpl_result(g, mpl_op_first_body(g, op), 1 + i);

        any |= vary(grad, out[i], result);
        if (i >= mpl_n_carried(g, op))
            continue;
        any |= vary(grad, mpl_param(g, mpl_op_first_body(g, op), 1 + i), result);
        any |= vary(grad, out[i], in[2 + i]);
    }
    return any;
}

mpl_status mpl_grad_count_slots(mpl_grad *grad, uint32_t b)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    mpl_value *captured = NULL;
    uint32_t n;

    for (mpl_op op = g->block_op_end[b]; op-- > g->block_op_begin[b];) {
        if (g->op_block[op] != b || !grad->leads[op])
            continue;
        mpl_free(grad->ctx, captured);
        captured = NULL;
        MPL_TRY(mpl_grad_captured(grad, op, true, &n, &captured));
        for (uint32_t i = 0; i < g->op_in_begin[op + 1] - g->op_in_begin[op] + n; i++) {
            uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
            mpl_value v = i < n_in ? g->op_in[g->op_in_begin[op] + i] : captured[i - n_in];

            if (!mpl_grad_varies(grad, v))
                continue;
            grad->slots[v]++;
            if (g->value_op[v] != MPL_NONE && g->value_block[v] == b)
                grad->leads[g->value_op[v]] = 1;
        }
    }
out:
    mpl_free(grad->ctx, captured);
    return st;
}

/* ---- copies ---- */

const char *mpl_grad_fresh_block(const mpl_grad *grad, char *text, const char *base,
                                 const char *suffix)
{
    size_t n;

    snprintf(text, MPL_GRAD_NAME - 16, "%.200s%s", base, suffix);
    n = strlen(text);
    for (uint32_t i = 2; mpl_graph_find_block(grad->to, text) != MPL_NONE ||
                         (suffix[0] != '\0' && mpl_graph_find_block(grad->g, text) != MPL_NONE);
         i++)
        snprintf(text + n, MPL_GRAD_NAME - n, "_%u", i);
    return text;
}

mpl_value mpl_grad_whole_number(mpl_grad *grad, int64_t n)
{
    char text[MPL_GRAD_NAME];
    mpl_value v = MPL_NONE;

    if (grad->st == MPL_OK)
        grad->st = mpl_graph_add_const(grad->ctx, grad->to,
                                       mpl_grad_fresh(grad, text, "rounds", "", MPL_NONE),
                                       MPL_TYPE_i64, &(mpl_shape){0, {0}}, &n, false, &v);
    return v;
}

mpl_value mpl_grad_add_two(mpl_grad *grad, mpl_op_kind kind, const char *base, const char *suffix,
                           mpl_value a, mpl_value b, uint32_t n_attr, const mpl_attr *attr)
{
    char text[MPL_GRAD_NAME];
    const char *name;
    mpl_value out = MPL_NONE;

    if (grad->st != MPL_OK)
        return MPL_NONE;
    name = mpl_grad_fresh(grad, text, base, suffix, MPL_NONE);
    grad->st = mpl_graph_add_op(grad->ctx, grad->to, kind, name, 2, (mpl_value[]){a, b}, n_attr,
                                attr, 1, &name, &out);
    return out;
}

void mpl_grad_push(mpl_grad *grad, mpl_grad_list *list, mpl_value v)
{
    if (grad->st == MPL_OK)
        grad->st = mpl_reserve(grad->ctx, list->item, list->room, (size_t)list->n + 1);
    if (grad->st == MPL_OK)
        list->item[list->n++] = v;
}

mpl_value mpl_grad_add_param(mpl_grad *grad, const char *base, const char *suffix, mpl_type type,
                             const mpl_shape *shape)
{
    char text[MPL_GRAD_NAME];
    mpl_value v = MPL_NONE;

    if (grad->st == MPL_OK)
        grad->st = mpl_graph_add_param(grad->ctx, grad->to,
                                       suffix[0] == '\0'
                                           ? mpl_grad_copy_name(grad, text, base)
                                           : mpl_grad_fresh(grad, text, base, suffix, MPL_NONE),
                                       type, shape, &v);
    return v;
}

mpl_value mpl_grad_param_like(mpl_grad *grad, const char *suffix, mpl_value v)
{
    return mpl_grad_add_param(grad, grad->g->value_name[v], suffix,
                              (mpl_type)grad->g->value_type[v], &grad->g->value_shape[v]);
}

/* What a copied loop or case has in addition. */
typedef struct extras {
    bool counts;          /* a loop: carries the number of its rounds */
    mpl_value count;      /* that number, in the body */
    mpl_grad_list moved;  /* running statistics that the blocks move, of the old graph */
    mpl_grad_list before; /* their values before the operation, in the new graph */
} extras;

static uint32_t n_extras(const extras *self)
{
    return self->counts + self->moved.n;
}

static void extras_fini(mpl_grad *grad, extras *e)
{
    mpl_free_each(grad->ctx, e->moved.item, e->before.item);
}

/* Lists the statistics, ascending; recomputed rounds move none. */
static mpl_status list_moved(mpl_grad *grad, mpl_op op, extras *e)
{
    const mpl_graph *g = grad->g;

    for (mpl_value v = 0; v < g->n_values && grad->block == 0; v++) {
        bool inside = false;

        for (uint32_t i = g->value_use_begin[v];
             grad->moved[v] != MPL_NONE && i < g->value_use_begin[v + 1]; i++)
            for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
                inside = inside || mpl_block_within(g, g->op_block[g->value_use[i]], g->op_body[k]);
        if (!inside)
            continue;
        mpl_grad_push(grad, &e->moved, v);
        mpl_grad_push(grad, &e->before, grad->moved[v]);
    }
    return grad->st;
}

/* Adds the parameters of a copied block, extras after the carried ones. */
static void copy_params(mpl_grad *grad, mpl_op op, uint32_t b, extras *e)
{
    const mpl_graph *g = grad->g;
    bool loop = g->op_kind[op] == MPL_OP_while;

    for (uint32_t i = 0; i <= g->block_n_params[b]; i++) {
        if (e->counts && i == 1 + mpl_n_carried(g, op))
            e->count = mpl_grad_add_param(grad, g->op_name[op], ".count", MPL_TYPE_i64,
                                          &(mpl_shape){0, {0}});
        for (uint32_t k = 0; k < e->moved.n && loop && i == 1 + mpl_n_carried(g, op); k++)
            grad->moved[e->moved.item[k]] = mpl_grad_param_like(grad, ".before", e->moved.item[k]);
        if (i < g->block_n_params[b])
            grad->now[mpl_param(g, b, i)] = mpl_grad_param_like(grad, "", mpl_param(g, b, i));
    }
}

/* Appends the results of the extras. */
static void push_extras(mpl_grad *grad, mpl_op op, const extras *e, mpl_grad_list *result)
{
    if (e->counts)
        mpl_grad_push(grad, result,
                      mpl_grad_add_two(grad, MPL_OP_add, grad->g->op_name[op], ".counted", e->count,
                                       mpl_grad_whole_number(grad, 1), 0, NULL));
    for (uint32_t k = 0; k < e->moved.n; k++)
        mpl_grad_push(grad, result, grad->moved[e->moved.item[k]]);
}

/* Copies a block and leaves it open; its results are in `result`. */
static mpl_status copy_block(mpl_grad *grad, mpl_op op, uint32_t b, bool tape, extras *e,
                             mpl_grad_list *result, uint32_t *id)
{
    const mpl_graph *g = grad->g;
    uint32_t n = mpl_n_carried(g, op);
    uint32_t behind = g->op_kind[op] == MPL_OP_while ? 1 + n : g->block_n_results[b];
    char text[MPL_GRAD_NAME];

    MPL_PASS(mpl_graph_open_block(
        grad->ctx, grad->to,
        mpl_grad_fresh_block(grad, text, g->block_name[b], grad->block != 0 ? ".again" : ""), id));
    copy_params(grad, op, b, e);
    for (mpl_op in = g->block_op_begin[b]; in < g->block_op_end[b] && grad->st == MPL_OK; in++)
        if (g->op_block[in] == b)
            MPL_PASS(mpl_grad_owns(g, in) ? mpl_grad_copy_control(grad, in, false)
                                          : mpl_grad_copy(grad, in));
    for (uint32_t i = 0; i <= g->block_n_results[b]; i++) {
        if (i == behind)
            push_extras(grad, op, e, result);
        if (i < g->block_n_results[b])
            mpl_grad_push(grad, result,
                          mpl_result(g, b, i) != MPL_NONE ? grad->now[mpl_result(g, b, i)]
                                                          : MPL_NONE);
    }
    for (uint32_t i = 1; tape && i <= n; i++) /* values at the beginning of the round */
        if (mpl_grad_is_read(g, mpl_param(g, b, i)))
            mpl_grad_push(grad, result, grad->now[mpl_param(g, b, i)]);
    return grad->st;
}

/* Attributes of a copied loop or case, with `more` rows after the others. */
static mpl_status copy_attrs(mpl_grad *grad, mpl_op op, uint32_t more_carried, uint32_t n_rows,
                             uint32_t more, mpl_attr **attr, int64_t **flags, uint32_t *n_attr)
{
    const mpl_graph *g = grad->g;
    uint32_t n = g->op_attr_begin[op + 1] - g->op_attr_begin[op], n_flags = 0;
    const int64_t *old = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);

    MPL_PASS(mpl_new(grad->ctx, *attr, (size_t)n + 1));
    MPL_PASS(mpl_new(grad->ctx, *flags, (size_t)n_rows + more + 1));
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

/* The output after which a copy has extras. */
static uint32_t last_carried(const mpl_graph *g, mpl_op op)
{
    return g->op_kind[op] == MPL_OP_while ? mpl_n_carried(g, op)
                                          : g->op_out_begin[op + 1] - g->op_out_begin[op];
}

/* Names of a copy's outputs: the old ones, extras, tapes. */
static mpl_status name_outputs(mpl_grad *grad, mpl_op op, const extras *e, uint32_t n_tapes,
                               uint32_t *n_out, char (**text)[MPL_GRAD_NAME], const char ***name)
{
    const mpl_graph *g = grad->g;
    uint32_t n_old = g->op_out_begin[op + 1] - g->op_out_begin[op], at = 0;

    *n_out = n_old + n_extras(e) + n_tapes;
    if ((*text = mpl_alloc(grad->ctx, *n_out, MPL_GRAD_NAME)) == NULL)
        MPL_PASS(MPL_EMEM);
    MPL_PASS(mpl_new(grad->ctx, *name, *n_out));
    for (uint32_t i = 0; i <= n_old; i++) {
        if (e->counts && i == last_carried(g, op))
            (*name)[at] = mpl_grad_fresh(grad, (*text)[at], g->op_name[op], ".rounds", MPL_NONE),
            at++;
        for (uint32_t k = 0; k < e->moved.n && i == last_carried(g, op); k++, at++)
            (*name)[at] =
                mpl_grad_fresh(grad, (*text)[at], g->value_name[e->moved.item[k]], ".behind.", op);
        if (i == n_old)
            break;
        if (g->op_out[g->op_out_begin[op] + i] != MPL_NONE)
            (*name)[at] = mpl_grad_copy_name(grad, (*text)[at],
                                             g->value_name[g->op_out[g->op_out_begin[op] + i]]);
        at++;
    }
    for (uint32_t i = 0; i < n_tapes; i++, at++)
        (*name)[at] = mpl_grad_fresh(grad, (*text)[at], g->op_name[op], ".tape", i);
    return MPL_OK;
}

/* Records the outputs of a copied loop or case in the new graph; its tapes too. */
static void note_outputs(mpl_grad *grad, mpl_op op, bool tape, const extras *e,
                         const mpl_value *out)
{
    const mpl_graph *g = grad->g;
    uint32_t n_old = g->op_out_begin[op + 1] - g->op_out_begin[op], n = last_carried(g, op);
    uint32_t at = n_old + n_extras(e);

    for (uint32_t i = 0; i < n_old; i++)
        if (g->op_out[g->op_out_begin[op] + i] != MPL_NONE)
            grad->now[g->op_out[g->op_out_begin[op] + i]] = out[i < n ? i : i + n_extras(e)];
    grad->count[op] = e->counts ? out[n] : MPL_NONE;
    for (uint32_t k = 0; k < e->moved.n; k++)
        grad->moved[e->moved.item[k]] = out[n + e->counts + k];
    for (uint32_t i = 1; tape && i <= n; i++)
        grad->tape[mpl_param(g, mpl_op_first_body(g, op), i)] =
            mpl_grad_is_read(g, mpl_param(g, mpl_op_first_body(g, op), i)) ? out[at++] : MPL_NONE;
}

mpl_status mpl_grad_copy_control(mpl_grad *grad, mpl_op op, bool tape)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    mpl_grad_list in = {0}, block = {0}, result = {0};
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
        MPL_FAIL(grad->ctx, MPL_EINPUT,
                 "loop '%.100s' cannot be differentiated: nothing says how many rounds it may have "
                 "at most; "
                 "give it "
                 "trips=N",
                 g->op_name[op]);
    e.counts = tape && !mpl_while_runs_full(g, op);
    MPL_TRY(list_moved(grad, op, &e));
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        result.n = 0;
        for (uint32_t i = 0; i < e.moved.n; i++)
            grad->moved[e.moved.item[i]] = e.before.item[i];
        MPL_TRY(copy_block(grad, op, g->op_body[k], tape, &e, &result, &id));
        mpl_grad_push(grad, &block, id);
        MPL_TRY(grad->st);
        MPL_TRY(mpl_graph_close_block(grad->ctx, grad->to, result.n, result.item));
    }
    for (uint32_t i = 1; tape && i <= n; i++)
        n_tapes += mpl_grad_is_read(g, mpl_param(g, mpl_op_first_body(g, op), i));
    for (uint32_t i = 0; i <= n_in; i++) {
        if (i == behind && e.counts)
            mpl_grad_push(grad, &in, mpl_grad_whole_number(grad, 0));
        for (uint32_t k = 0; k < e.moved.n && i == behind; k++)
            mpl_grad_push(grad, &in, e.before.item[k]);
        if (i < n_in)
            mpl_grad_push(grad, &in,
                          g->op_in[g->op_in_begin[op] + i] != MPL_NONE
                              ? grad->now[g->op_in[g->op_in_begin[op] + i]]
                              : MPL_NONE);
    }
    MPL_TRY(grad->st);
    MPL_TRY(copy_attrs(grad, op, n_extras(&e), n_flags > 2 + 2 * n ? n_flags - 2 - 2 * n : 0,
                       n_tapes, &attr, &flags, &n_attr));
    MPL_TRY(name_outputs(grad, op, &e, n_tapes, &n_out, &text, &name));
    MPL_TRY(mpl_new(grad->ctx, out, n_out));
    grad->op_now[op] = grad->to->n_ops;
    MPL_TRY(mpl_graph_add_control(grad->ctx, grad->to, (mpl_op_kind)g->op_kind[op], g->op_name[op],
                                  in.n, in.item, n_attr, attr, block.n, block.item, n_out, name,
                                  out));
    note_outputs(grad, op, tape, &e, out);
out:
    extras_fini(grad, &e);
    mpl_free_each(grad->ctx, in.item, block.item, result.item, attr, flags, text, name, out);
    return st;
}
