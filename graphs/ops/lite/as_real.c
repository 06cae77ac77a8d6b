/* as_real.c -- another operator on what the operands mean (form_priv.h): quantised numbers, images
 * and filters with channels last. The result, within `clamp`, becomes `dims` of type `to`.
 *
 * Operands that are no plain floats are written as floats into the workspace, the operator works
 * there, and its result is stored last. So the result may lie where any input lies. */
#include "graphs/ops/lite/as_real.h"
#include "graphs/ops/lite/form_priv.h"

enum { LINE = 64 };

/* The operator inside: operands as it sees them, the result behind them. */
typedef struct inner {
    mpl_op_kind kind;
    uint32_t n_in;
    mpl_form *form;          /* [n_in + 1] */
    mpl_tensor *tensor;      /* [n_in + 1] */
    const mpl_shape **shape; /* [n_in] NULL: omitted */
    mpl_type *type;          /* [n_in] */
} inner;

static uint64_t head_bytes(uint32_t n_in)
{
    uint64_t n = n_in;

    return mpl_align_up((n + 1) * (sizeof(mpl_tensor) + sizeof(mpl_form)) +
                            n * (sizeof(void *) + sizeof(mpl_type)),
                        LINE);
}

static inner inner_at(void *memory, uint32_t n_in, mpl_op_kind kind)
{
    inner x = {.kind = kind, .n_in = n_in, .tensor = memory};

    x.form = (mpl_form *)(x.tensor + n_in + 1);
    x.shape = (const mpl_shape **)(x.form + n_in + 1);
    x.type = (mpl_type *)(x.shape + n_in);
    return x;
}

static mpl_op_kind kind_of(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = MPL_OP_as_real;

    mpl_op_find(mpl_attr_text(g, op, MPL_ATTR_kernel, ""), &kind);
    return kind;
}

/* Whether operand i must be rewritten for the operator. */
static bool is_converted(const mpl_form *form)
{
    return form->n > 0 || form->order != MPL_FORM_PLAIN;
}

static void set_inner(inner *self, uint32_t i, mpl_type type, const mpl_shape *outer)
{
    const mpl_form *form = &self->form[i];
    mpl_tensor *tensor = &self->tensor[i];
    uint32_t perm[MPL_MAX_RANK];

    mpl_form_perm(form, outer->rank, perm);
    tensor->type = is_converted(form) ? MPL_TYPE_f32 : type;
    tensor->shape.rank = outer->rank;
    for (uint32_t d = 0; d < outer->rank; d++)
        tensor->shape.dim[d] = outer->dim[perm[d]];
    self->shape[i] = &tensor->shape;
    self->type[i] = tensor->type;
}

/* Bytes of an element of the operator's result, at most: of the types that it reads, and of indices
 * that it makes. */
static uint32_t result_bytes(mpl_op_kind kind)
{
    return kind == MPL_OP_arg_max || kind == MPL_OP_arg_min ? 8 : 4;
}

static uint32_t wider(uint32_t bytes, mpl_type type)
{
    return mpl_type_bytes(type) > bytes ? mpl_type_bytes(type) : bytes;
}

static mpl_status infer(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, inner *x,
                        mpl_shape_rule *shape)
{
    mpl_tensor *tensor = &x->tensor[x->n_in];
    const mpl_shape_call call = {
        g, op, x->n_in, 1, x->shape, x->type, 0, NULL, &tensor->shape, &tensor->type, 0};

    return shape(ctx, x->kind, &call);
}

/* Whether dims, permuted by the result's form, are those of the operator's result; forms without an
 * order may have other dims of as many elements. */
static bool fits(const inner *self, const mpl_shape *dims)
{
    const mpl_form *form = &self->form[self->n_in];
    const mpl_shape *shape = &self->tensor[self->n_in].shape;
    uint64_t count;
    uint32_t perm[MPL_MAX_RANK];

    if (!mpl_shape_count(dims, &count) || !mpl_shape_count(shape, &(uint64_t){0}) ||
        (int64_t)count != mpl_count(shape))
        return false;
    mpl_form_perm(form, dims->rank, perm);
    for (uint32_t d = 0; form->order != MPL_FORM_PLAIN && d < dims->rank; d++)
        if (shape->rank != dims->rank || shape->dim[d] != dims->dim[perm[d]])
            return false;
    return true;
}

static mpl_status check_result(mpl_ctx *ctx, const mpl_shape_call *call, const inner *x)
{
    const mpl_graph *g = call->graph;
    const mpl_form *form = &x->form[x->n_in];
    uint32_t n;
    const int64_t *dim = mpl_attr_ints(g, call->op, MPL_ATTR_dims, &n);
    const char *to = mpl_attr_text(g, call->op, MPL_ATTR_to, "");
    mpl_shape *dims = &call->out_shape[0];
    uint32_t widest = result_bytes(x->kind);
    char text[200];

    if (!mpl_type_find(to, &call->out_type[0]))
        return MPL_REFUSE(ctx, "to='%.40s' is no type", to);
    if (n > MPL_MAX_RANK || form->n > 1)
        return MPL_REFUSE(ctx, "the result has %u dims and %u factors", n, form->n);
    dims->rank = n;
    for (uint32_t d = 0; d < n; d++)
        dims->dim[d] = dim[d];
    MPL_PASS(mpl_form_check(ctx, form, x->n_in, call->out_type[0], dims));
    if (!fits(x, dims))
        return MPL_REFUSE(ctx, "the operator gives %s, which dims does not fit",
                          mpl_shape_text(&x->tensor[x->n_in].shape, text));
    for (uint32_t i = 0; i < x->n_in; i++)
        widest = wider(widest, x->type[i]);
    if (mpl_type_bytes(x->tensor[x->n_in].type) > widest)
        return MPL_REFUSE(ctx, "the operator makes %s, which is wider than what it reads",
                          mpl_type_name(x->tensor[x->n_in].type));
    return MPL_OK;
}

static mpl_status check_kernel(mpl_ctx *ctx, const mpl_shape_call *call, mpl_op_kind kind)
{
    const mpl_op_info *info = &mpl_op_table[kind];

    if ((info->traits & (MPL_NO_FOLD | MPL_CONTROL | MPL_PROGRAM | MPL_MUTATES | MPL_UPDATE_3)) !=
            0 ||
        call->n_in < info->min_in || call->n_in > info->max_in || info->min_out != 1)
        return MPL_REFUSE(ctx, "kernel='%.40s' is no operator of %u inputs that works on reals",
                          mpl_attr_text(call->graph, call->op, MPL_ATTR_kernel, ""), call->n_in);
    return MPL_OK;
}

mpl_status mpl_real_shape(mpl_ctx *ctx, const mpl_shape_call *call, mpl_shape_rule *shape)
{
    mpl_status st = MPL_OK;
    mpl_op_kind kind = kind_of(call->graph, call->op);
    void *memory = NULL;
    inner x;

    MPL_TRY(check_kernel(ctx, call, kind));
    MPL_TRY((memory = mpl_alloc(ctx, head_bytes(call->n_in), 1)) != NULL ? MPL_OK : MPL_EMEM);
    x = inner_at(memory, call->n_in, kind);
    MPL_TRY(mpl_forms_read(ctx, call->graph, call->op, call->n_in + 1, x.form));
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (call->in_shape[i] == NULL && i < mpl_op_table[kind].min_in)
            MPL_FAIL(ctx, MPL_EINPUT, "input %u is missing", i);
        if (call->in_shape[i] == NULL)
            continue;
        MPL_TRY(mpl_form_check(ctx, &x.form[i], i, call->in_type[i], call->in_shape[i]));
        set_inner(&x, i, call->in_type[i], call->in_shape[i]);
    }
    MPL_TRY(infer(ctx, call->graph, call->op, &x, shape));
    MPL_TRY(check_result(ctx, call, &x));
out:
    mpl_free(ctx, memory);
    return st;
}

/* ---- evaluation ---- */

uint64_t mpl_real_workspace(const mpl_graph *g, mpl_op op)
{
    uint32_t n_in = mpl_op_n_in(g, op), n, widest = result_bytes(kind_of(g, op));
    const int64_t *form = mpl_attr_ints(g, op, MPL_ATTR_forms, &n);
    mpl_value y = mpl_op_output(g, op, 0);
    uint64_t bytes = head_bytes(n_in);

    for (uint32_t i = 0; i < n_in; i++) {
        mpl_value v = mpl_op_input(g, op, i);

        if (v == MPL_NONE)
            continue;
        if (form[4 * i] != MPL_FORM_PLAIN || form[4 * i + 3] > 0)
            bytes += mpl_align_up(4 * (uint64_t)mpl_count(&g->value_shape[v]), LINE);
        else
            widest = wider(widest, (mpl_type)g->value_type[v]);
    }
    return bytes + mpl_align_up(widest * (uint64_t)mpl_count(&g->value_shape[y]), LINE);
}

/* Strides of a stored tensor along the operator's dims, and steps of the index that chooses a
 * factor. */
static void walk_of(const mpl_form *form, const mpl_shape *stored, int64_t stride[2][MPL_MAX_RANK])
{
    uint32_t perm[MPL_MAX_RANK];
    int64_t plain[MPL_MAX_RANK];

    mpl_strides(stored, plain);
    mpl_form_perm(form, stored->rank, perm);
    for (uint32_t d = 0; d < stored->rank; d++) {
        stride[0][d] = plain[perm[d]];
        stride[1][d] = form->n > 1 && perm[d] == form->axis;
    }
}

static void load(const mpl_form *form, const mpl_tensor *from, const mpl_tensor *to)
{
    int64_t stride[2][MPL_MAX_RANK], index[MPL_MAX_RANK] = {0}, at[2] = {0};
    int64_t n = mpl_count(&to->shape);
    float *x = to->data;

    walk_of(form, &from->shape, stride);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)mpl_form_get(form, from->type, from->data, at[0], (uint32_t)at[1]);
        mpl_step(to->shape.dim, to->shape.rank, index, 2, (const int64_t(*)[MPL_MAX_RANK])stride,
                 at);
    }
}

/* The operator's result has other dims than `to` where the form has no order: the same elements. */
static void store(const mpl_form *form, const double range[2], const mpl_tensor *from,
                  const mpl_tensor *to)
{
    const mpl_shape *dims = form->order == MPL_FORM_PLAIN ? &to->shape : &from->shape;
    int64_t stride[2][MPL_MAX_RANK], index[MPL_MAX_RANK] = {0}, at[2] = {0};
    int64_t n = mpl_count(&to->shape);

    walk_of(form, &to->shape, stride);
    for (int64_t i = 0; i < n; i++) {
        double x = mpl_get(from->type, from->data, i);

        mpl_form_put(form, to->type, to->data, at[0],
                     x < range[0]   ? range[0]
                     : x > range[1] ? range[1]
                                    : x);
        mpl_step(dims->dim, dims->rank, index, 2, (const int64_t(*)[MPL_MAX_RANK])stride, at);
    }
}

static void *take(char **memory, uint64_t bytes)
{
    char *at = *memory;

    *memory += mpl_align_up(bytes, LINE);
    return at;
}

static mpl_status eval(mpl_ctx *ctx, const mpl_op_call *call, mpl_shape_rule *shape,
                       mpl_eval_rule *loop, char *memory)
{
    uint32_t n_in = call->n_in;
    inner x = inner_at(memory, n_in, kind_of(call->graph, call->op));
    mpl_tensor *tensor = &x.tensor[n_in];
    mpl_op_call work = *call;
    double range[2];

    memset(memory, 0, head_bytes(n_in));
    memory += head_bytes(n_in);
    MPL_PASS(mpl_forms_read(ctx, call->graph, call->op, n_in + 1, x.form));
    for (uint32_t i = 0; i < n_in; i++) {
        if (call->in[i].data == NULL)
            continue;
        set_inner(&x, i, call->in[i].type, &call->in[i].shape);
        x.tensor[i].data = call->in[i].data;
        if (!is_converted(&x.form[i]))
            continue;
        x.tensor[i].data = take(&memory, 4 * (uint64_t)mpl_count(&x.tensor[i].shape));
        load(&x.form[i], &call->in[i], &x.tensor[i]);
    }
    MPL_PASS(infer(ctx, call->graph, call->op, &x, shape));
    tensor->data = memory;
    work.in = x.tensor;
    work.out = tensor;
    work.workspace = NULL;
    MPL_PASS(loop(ctx, x.kind, &work));
    mpl_form_clamp(call->graph, call->op, range);
    store(&x.form[n_in], range, tensor, &call->out[0]);
    return MPL_OK;
}

mpl_status mpl_real_eval(mpl_ctx *ctx, const mpl_op_call *call, mpl_shape_rule *shape,
                         mpl_eval_rule *loop)
{
    mpl_status st = MPL_OK;
    void *own = NULL;

    if (call->workspace == NULL)
        MPL_TRY((own = mpl_alloc(ctx, mpl_real_workspace(call->graph, call->op), 1)) != NULL
                    ? MPL_OK
                    : MPL_EMEM);
    MPL_TRY(eval(ctx, call, shape, loop, own != NULL ? own : call->workspace));
out:
    mpl_free(ctx, own);
    return st;
}
