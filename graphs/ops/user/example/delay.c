/* delay.c -- example: operators of Owl's computation graph that run a function of the user's, which
 * the graph knows nothing about: Delay of one array, DelayArray of several.
 *
 *     cc -shared -fPIC -o delay.so delay.c
 *     memplan run x.graph --operators so:./delay.so
 *
 * delay: the function here is a delay line, y[t] = gain * x[t - taps] along the last axis, 0 before
 * the first sample. delay_array: y[i] = the sum of x_k[i mod its length], in the dims of `shape`.
 * Source: Owl, owl_computation_type.ml (Delay, DelayArray); the functions are this file's. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <memplan/operators.h>

static int refuse(const memplan_operation *op, const char *why)
{
    snprintf(op->message, op->message_size, "%s", why);
    return 1;
}

static int64_t elements(const memplan_tensor *t)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

/* ---- delay ---- */

static int delay_shape(const memplan_operation *op)
{
    const char *type = op->in[0].type;

    if ((strcmp(type, "f32") != 0 && strcmp(type, "f64") != 0) || op->in[0].rank == 0)
        return refuse(op, "samples are f32 or f64, along the last axis");
    if (op->get_int(op, "taps", 1) < 0)
        return refuse(op, "taps is below 0");
    op->out[0] = op->in[0];
    return 0;
}

/* Element `to` of y is gain times element `from` of x; 0 where that lies outside of [begin, end).
 */
static void put(const memplan_tensor *y, int64_t to, const memplan_tensor *x, int64_t from,
                int64_t begin, int64_t end, double gain)
{
    bool inside = begin <= from && from < end;

    if (strcmp(x->type, "f64") == 0)
        ((double *)y->data)[to] = inside ? gain * ((const double *)x->data)[from] : 0;
    else
        ((float *)y->data)[to] = inside ? (float)(gain * ((const float *)x->data)[from]) : 0;
}

/* Rows are moved by `taps` samples: forward the last one first, backward the first one first, so
 * that each is read before it is written where y is x. */
static void move(const memplan_operation *op, bool forward)
{
    const memplan_tensor *x = &op->in[0];
    int64_t n = x->dim[x->rank - 1], rows = n > 0 ? elements(x) / n : 0;
    int64_t taps = op->get_int(op, "taps", 1);
    double gain = op->get_real(op, "gain", 1);

    taps = taps < n ? taps : n;
    for (int64_t begin = 0; begin < rows * n; begin += n)
        for (int64_t i = 0; i < n; i++) {
            int64_t t = begin + (forward ? n - 1 - i : i);

            put(&op->out[0], t, x, forward ? t - taps : t + taps, begin, begin + n, gain);
        }
}

static int delay_run(const memplan_operation *op)
{
    move(op, true);
    return 0;
}

static int delay_grad_run(const memplan_operation *op) /* dx[t] = gain * dy[t + taps] */
{
    move(op, false);
    return 0;
}

static int delay_in_place(const memplan_operation *op, uint32_t i)
{
    (void)i; /* there is one input */
    return op->get_int(op, "taps", 1) == 0 ? MEMPLAN_ALONG : MEMPLAN_OVER;
}

static const memplan_operator delay = {
    .size = sizeof(memplan_operator),
    .name = "delay",
    .onnx = "owl:Delay",
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .attributes = "taps:int gain:real",
    .shape = delay_shape,
    .run = delay_run,
    .in_place = delay_in_place,
    .gradient = "delay_grad",
    .gradient_reads = "dy",
};

static const memplan_operator delay_grad = {
    .size = sizeof(memplan_operator),
    .name = "delay_grad",
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .attributes = "taps:int gain:real",
    .shape = delay_shape,
    .run = delay_grad_run,
    .in_place = delay_in_place,
};

/* ---- delay_array ---- */

static int array_shape(const memplan_operation *op)
{
    memplan_tensor *y = &op->out[0];

    *y = (memplan_tensor){.type = "f32"};
    y->rank = op->get_ints(op, "shape", y->dim, MEMPLAN_MOST_DIMS);
    for (uint32_t k = 0; k < op->n_in; k++)
        if (strcmp(op->in[k].type, "f32") != 0 || elements(&op->in[k]) == 0)
            return refuse(op, "arrays are f32, of one element at least");
    return 0;
}

/* Sums in double, in planned workspace. */
static uint64_t array_workspace(const memplan_operation *op)
{
    return (uint64_t)elements(&op->out[0]) * sizeof(double);
}

static int array_run(const memplan_operation *op)
{
    int64_t n = elements(&op->out[0]);
    double *sum = op->workspace;

    for (int64_t i = 0; i < n; i++)
        sum[i] = 0;
    for (uint32_t k = 0; k < op->n_in; k++) {
        int64_t length = elements(&op->in[k]);

        for (int64_t i = 0; i < n; i++)
            sum[i] += ((const float *)op->in[k].data)[i % length];
    }
    for (int64_t i = 0; i < n; i++)
        ((float *)op->out[0].data)[i] = (float)sum[i];
    return 0;
}

static const memplan_operator delay_array = {
    .size = sizeof(memplan_operator),
    .name = "delay_array",
    .onnx = "owl:DelayArray",
    .min_in = 1,
    .max_in = MEMPLAN_MOST_OPERANDS,
    .min_out = 1,
    .max_out = 1,
    .attributes = "shape:ints",
    .shape = array_shape,
    .run = array_run,
    .workspace = array_workspace,
};

static const memplan_operator *const list[] = {&delay, &delay_grad, &delay_array, NULL};

const memplan_operators memplan_operators_main = {
    .version = MEMPLAN_OPERATORS_VERSION,
    .size = sizeof(memplan_operators),
    .about = "Owl's Delay and DelayArray",
    .list = list,
};
