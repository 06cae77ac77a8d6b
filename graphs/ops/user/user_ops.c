/* user_ops.c -- shape rule, loop and in-place rule of the user's operators as memplan calls them.
 * What a library answers is checked before it is believed. See user_ops.h. */
#include "graphs/ops/user/user_ops.h"

#include "graphs/core/text.h"
#include "graphs/ops/ops_priv.h"

_Thread_local const memplan_operator *mpl_user_inside;

/* One operation as a library sees it. */
typedef struct frame {
    memplan_operation op; /* op.attributes is the frame */
    const memplan_operator *u;
    const char *params;
    memplan_tensor in[MEMPLAN_MOST_OPERANDS], out[MEMPLAN_MOST_OPERANDS];
    char message[300];
} frame;

/* ---- attributes ---- */

static bool find_param(const memplan_operation *op, const char *name, mpl_user_param *out)
{
    const frame *f = op->attributes;
    const char *at = f->params;

    while (mpl_user_next_param(f->u, &at, out))
        if (strlen(name) == out->n_name && strncmp(name, out->name, out->n_name) == 0)
            return true;
    return false;
}

static int64_t get_int(const memplan_operation *op, const char *name, int64_t otherwise)
{
    mpl_user_param p;
    int64_t number;

    return find_param(op, name, &p) && mpl_user_param_int(&p, 0, &number) ? number : otherwise;
}

static double get_real(const memplan_operation *op, const char *name, double otherwise)
{
    mpl_user_param p;
    double number;

    return find_param(op, name, &p) && mpl_user_param_real(&p, 0, &number) ? number : otherwise;
}

static uint32_t get_ints(const memplan_operation *op, const char *name, int64_t *to, uint32_t most)
{
    mpl_user_param p;
    int64_t number;
    uint32_t n = 0;

    if (find_param(op, name, &p))
        for (; mpl_user_param_int(&p, n, &number); n++)
            if (n < most)
                to[n] = number;
    return n;
}

static uint32_t get_reals(const memplan_operation *op, const char *name, double *to, uint32_t most)
{
    mpl_user_param p;
    double number;
    uint32_t n = 0;

    if (find_param(op, name, &p))
        for (; mpl_user_param_real(&p, n, &number); n++)
            if (n < most)
                to[n] = number;
    return n;
}

static const char *get_text(const memplan_operation *op, const char *name, char *to, size_t room,
                            const char *otherwise)
{
    mpl_user_param p;

    if (room == 0 || !find_param(op, name, &p) || p.kind != 't')
        return otherwise;
    mpl_user_param_text(&p, to, room);
    return to;
}

/* Whether the value is one of the attribute's kind. */
static bool holds(const mpl_user_param *param)
{
    bool list = param->kind == 'I' || param->kind == 'R',
         whole = param->kind == 'i' || param->kind == 'I';
    uint32_t commas = 0, n = 0;
    int64_t number;
    double real;

    if (param->kind == 't')
        return param->value[0] != '[';
    if (list != (param->value[0] == '['))
        return false;
    for (size_t i = 0; i < param->n_value; i++)
        commas += param->value[i] == ',';
    while (whole ? mpl_user_param_int(param, n, &number) : mpl_user_param_real(param, n, &real))
        n++;
    return n == (!list ? 1 : param->n_value == 2 ? 0 : commas + 1);
}

static mpl_status check_params(mpl_ctx *ctx, const memplan_operator *u, const char *params)
{
    const char *at = params;
    mpl_user_param p, earlier;

    while (mpl_user_next_param(u, &at, &p)) {
        if (p.kind == 0)
            return MPL_REFUSE(ctx, "%s has no attribute '%.*s'; it has: %s", u->name,
                              (int)(p.n_name < 60 ? p.n_name : 60), p.name,
                              u->attributes != NULL ? u->attributes : "none");
        if (!holds(&p))
            return MPL_REFUSE(ctx, "attribute '%.*s' of %s is not of its kind (%s)",
                              (int)(p.n_name < 60 ? p.n_name : 60), p.name, u->name, u->attributes);
        for (const char *from = params; mpl_user_next_param(u, &from, &earlier);)
            if (earlier.name < p.name && earlier.n_name == p.n_name &&
                strncmp(earlier.name, p.name, p.n_name) == 0)
                return MPL_REFUSE(ctx, "attribute '%.*s' is given twice", (int)p.n_name, p.name);
    }
    if (*at != '\0')
        return MPL_REFUSE(ctx, "its attributes are not NAME=VALUE at '%.40s'", at);
    return MPL_OK;
}

/* ---- frames ---- */

static void fill(memplan_tensor *to, mpl_type type, const mpl_shape *shape, void *data)
{
    to->type = mpl_type_name(type);
    to->rank = shape->rank;
    memcpy(to->dim, shape->dim, shape->rank * sizeof *shape->dim);
    to->data = data;
}

static void begin(frame *f, const memplan_operator *u, const mpl_graph *g, mpl_op op, uint32_t n_in,
                  uint32_t n_out)
{
    memset(f, 0, sizeof *f);
    f->u = u;
    f->params = mpl_attr_text(g, op, MPL_ATTR_params, "");
    f->op = (memplan_operation){
        .size = sizeof f->op,
        .n_in = n_in,
        .n_out = n_out,
        .in = f->in,
        .out = f->out,
        .message = f->message,
        .message_size = sizeof f->message,
        .get_int = get_int,
        .get_real = get_real,
        .get_ints = get_ints,
        .get_reals = get_reals,
        .get_text = get_text,
        .attributes = f,
    };
}

/* An operation of a graph, without memory; NULL: its operator is not loaded. */
static const memplan_operator *begin_of(frame *self, const mpl_graph *g, mpl_op op)
{
    const memplan_operator *u = mpl_user_of(g, op);

    if (u == NULL)
        return NULL;
    begin(self, u, g, op, mpl_op_n_in(g, op), mpl_op_n_out(g, op));
    for (uint32_t i = 0; i < self->op.n_in + self->op.n_out; i++) {
        mpl_value v =
            i < self->op.n_in ? mpl_op_input(g, op, i) : mpl_op_output(g, op, i - self->op.n_in);

        if (v != MPL_NONE)
            fill(i < self->op.n_in ? &self->in[i] : &self->out[i - self->op.n_in],
                 (mpl_type)g->value_type[v], &g->value_shape[v], NULL);
    }
    return u;
}

/* The refusal of the library in the frame, on one line. */
static mpl_status refuse(mpl_ctx *ctx, frame *f, const char *what)
{
    f->message[sizeof f->message - 1] = '\0';
    return MPL_REFUSE(ctx, "%s of %s: %.250s", what, f->u->name,
                      f->message[0] != '\0' ? mpl_shown(f->message) : "refused without a reason");
}

/* ---- the shape rule ---- */

static mpl_status take_output(mpl_ctx *ctx, const frame *f, uint32_t i, mpl_type *type,
                              mpl_shape *shape)
{
    const memplan_tensor *tensor = &f->out[i];
    uint64_t count;

    if (tensor->type == NULL || !mpl_type_find(tensor->type, type) || mpl_type_bits(*type) < 8)
        return MPL_REFUSE(ctx, "the shape rule of %s gives output %u no element type that there is",
                          f->u->name, i);
    if (tensor->rank > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "the shape rule of %s gives output %u %u dims; %d are the most",
                          f->u->name, i, tensor->rank, MPL_MAX_RANK);
    *shape = (mpl_shape){.rank = tensor->rank};
    memcpy(shape->dim, tensor->dim, tensor->rank * sizeof *tensor->dim);
    if (!mpl_shape_count(shape, &count) || count > INT64_MAX / 16)
        return MPL_REFUSE(ctx,
                          "the shape rule of %s gives output %u a dim below 0, or more than 2^59 "
                          "elements",
                          f->u->name, i);
    return MPL_OK;
}

/* Runs the shape rule of the library once. */
static mpl_status run_shape(mpl_ctx *ctx, frame *f, mpl_type *type, mpl_shape *shape)
{
    int code;

    memset(f->out, 0, sizeof f->out);
    mpl_user_inside = f->u;
    code = f->u->shape(&f->op);
    mpl_user_inside = NULL;
    if (code != 0)
        return refuse(ctx, f, "the shape rule");
    for (uint32_t i = 0; i < f->op.n_out; i++)
        MPL_PASS(take_output(ctx, f, i, &type[i], &shape[i]));
    return MPL_OK;
}

static uint64_t workspace_of(const frame *self)
{
    uint64_t bytes;

    if (self->u->workspace == NULL)
        return 0;
    mpl_user_inside = self->u;
    bytes = self->u->workspace(&self->op);
    mpl_user_inside = NULL;
    return bytes;
}

static mpl_status check_operands(mpl_ctx *ctx, const memplan_operator *u,
                                 const mpl_shape_call *call)
{
    if (call->n_in < u->min_in || call->n_in > u->max_in || call->n_out < u->min_out ||
        call->n_out > u->max_out)
        return MPL_REFUSE(ctx, "%s has %u inputs and %u outputs; it takes %u to %u and %u to %u",
                          u->name, call->n_in, call->n_out, u->min_in, u->max_in, u->min_out,
                          u->max_out);
    for (uint32_t i = 0; i < u->min_in; i++)
        if (call->in_shape[i] == NULL)
            return MPL_REFUSE(ctx, "input %u of %s is missing", i, u->name);
    return check_params(ctx, u, mpl_attr_text(call->graph, call->op, MPL_ATTR_params, ""));
}

mpl_status mpl_shape_user(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const memplan_operator *u = mpl_user_of(call->graph, call->op);
    mpl_type type[MEMPLAN_MOST_OPERANDS];
    mpl_shape shape[MEMPLAN_MOST_OPERANDS];
    frame f;

    if (u == NULL)
        return MPL_REFUSE(ctx, "no operator '%.60s' is loaded; --operators so:FILE loads yours",
                          mpl_op_called(call->graph, call->op));
    MPL_PASS(check_operands(ctx, u, call));
    begin(&f, u, call->graph, call->op, call->n_in, call->n_out);
    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in_shape[i] != NULL)
            fill(&f.in[i], call->in_type[i], call->in_shape[i], NULL);
    MPL_PASS(run_shape(ctx, &f, call->out_type, call->out_shape));
    MPL_PASS(run_shape(ctx, &f, type, shape));
    for (uint32_t i = 0; i < call->n_out; i++)
        if (type[i] != call->out_type[i] || !mpl_shape_equal(&shape[i], &call->out_shape[i]))
            return MPL_REFUSE(ctx, "the shape rule of %s gives output %u another form each time",
                              u->name, i);
    if (workspace_of(&f) > INT64_MAX)
        return MPL_REFUSE(ctx, "%s wants more than 2^63 bytes of workspace", u->name);
    return MPL_OK;
}

/* ---- the loop ---- */

mpl_status mpl_eval_user(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_status st = MPL_OK;
    const memplan_operator *u = mpl_user_of(call->graph, call->op);
    void *own = NULL;
    uint64_t bytes;
    frame f;
    int code;

    if (u == NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL,
                 "no operator '%.60s' is loaded; --operators so:FILE loads yours",
                 mpl_op_called(call->graph, call->op));
    begin(&f, u, call->graph, call->op, call->n_in, call->n_out);
    for (uint32_t i = 0; i < call->n_in; i++)
        if (mpl_op_input(call->graph, call->op, i) != MPL_NONE)
            fill(&f.in[i], call->in[i].type, &call->in[i].shape, call->in[i].data);
    for (uint32_t i = 0; i < call->n_out; i++)
        if (mpl_op_output(call->graph, call->op, i) != MPL_NONE)
            fill(&f.out[i], call->out[i].type, &call->out[i].shape, call->out[i].data);
    f.op.workspace = call->workspace;
    bytes = call->workspace == NULL ? workspace_of(&f) : 0;
    if (bytes > 0)
        MPL_TRY((f.op.workspace = own = mpl_alloc(ctx, bytes, 1)) != NULL ? MPL_OK : MPL_EMEM);
    mpl_user_inside = u;
    code = u->run(&f.op);
    mpl_user_inside = NULL;
    if (code != 0)
        st = refuse(ctx, &f, "the loop");
out:
    mpl_free(ctx, own);
    return st;
}

uint64_t mpl_user_workspace(const mpl_graph *g, mpl_op op)
{
    frame f;

    return begin_of(&f, g, op) != NULL ? workspace_of(&f) : 0;
}

int mpl_user_in_place(const mpl_graph *g, mpl_op op, uint32_t i)
{
    frame f;
    int answer;

    if (mpl_op_output(g, op, 0) == MPL_NONE || mpl_op_input(g, op, i) == MPL_NONE ||
        begin_of(&f, g, op) == NULL || f.u->in_place == NULL)
        return MEMPLAN_APART;
    mpl_user_inside = f.u;
    answer = f.u->in_place(&f.op, i);
    mpl_user_inside = NULL;
    return answer == MEMPLAN_OVER || answer == MEMPLAN_ALONG ? answer : MEMPLAN_APART;
}
