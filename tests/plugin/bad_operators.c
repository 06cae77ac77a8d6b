/* bad_operators.c -- operators that are wrong, each in its own way, and two that are right. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <memplan/operators.h>

static int same(const memplan_operation *op)
{
    op->out[0] = op->in[0];
    return 0;
}

/* What attribute `do` asks for. */
static int nonsense(const memplan_operation *op)
{
    static int calls;
    char how[32];

    same(op);
    op->get_text(op, "do", how, sizeof how, "");
    if (strcmp(how, "refuse") == 0)
        return snprintf(op->message, op->message_size, "not on\na Sunday\x1b[31m");
    if (strcmp(how, "silent") == 0)
        return 7;
    if (strcmp(how, "long") == 0) {
        memset(op->message, 'x', op->message_size);
        return 1;
    }
    if (strcmp(how, "no_type") == 0)
        op->out[0].type = NULL;
    if (strcmp(how, "type") == 0)
        op->out[0].type = "f33";
    if (strcmp(how, "small") == 0)
        op->out[0].type = "i4";
    if (strcmp(how, "rank") == 0)
        op->out[0].rank = 9;
    if (strcmp(how, "negative") == 0)
        op->out[0].dim[0] = -1;
    if (strcmp(how, "huge") == 0)
        op->out[0].dim[0] = INT64_MAX / 3;
    if (strcmp(how, "nan") == 0) { /* what a cast of it gives on this machine */
        double size = op->get_real(op, "size", 1) * (double)op->in[0].dim[0];

        op->out[0].dim[0] = size == size ? (int64_t)size : INT64_MIN;
    }
    if (strcmp(how, "moody") == 0)
        op->out[0].dim[0] += calls++;
    if (strcmp(how, "crash") == 0)
        raise(SIGSEGV);
    return 0;
}

static int shorter(const memplan_operation *op)
{
    same(op);
    op->out[0].dim[0]--;
    return 0;
}

static uint64_t endless(const memplan_operation *op)
{
    (void)op;
    return UINT64_MAX;
}

static int copy(const memplan_operation *op)
{
    char how[32];

    op->get_text(op, "run", how, sizeof how, "");
    if (strcmp(how, "refuse") == 0)
        return snprintf(op->message, op->message_size, "no data today");
    if (strcmp(how, "crash") == 0)
        raise(SIGFPE);
    memmove(op->out[0].data, op->in[0].data, (size_t)op->in[0].dim[0] * sizeof(float));
    return 0;
}

/* y[i] = x[i] + x[i - 1], wrong where y is x, which it allows all the same. */
static int sums(const memplan_operation *op)
{
    const float *x = op->in[0].data;
    float *y = op->out[0].data;

    for (int64_t i = 0; i < op->in[0].dim[0]; i++)
        y[i] = x[i] + (i > 0 ? x[i - 1] : 0);
    return 0;
}

static int anywhere(const memplan_operation *op, uint32_t i)
{
    (void)op, (void)i;
    return MEMPLAN_OVER;
}

/* y = a / b of f64, and da = dy / b, db = -dy y / b. */
static int divide(const memplan_operation *op)
{
    const double *a = op->in[0].data, *b = op->in[1].data;

    for (int64_t i = 0; i < op->in[0].dim[0]; i++)
        ((double *)op->out[0].data)[i] = a[i] / b[i];
    return 0;
}

static int ratio_shape(const memplan_operation *op)
{
    if (strcmp(op->in[0].type, "f64") != 0 || op->in[1].dim[0] != op->in[0].dim[0])
        return snprintf(op->message, op->message_size, "two vectors of f64");
    return same(op);
}

static int ratio_grad_shape(const memplan_operation *op)
{
    for (uint32_t i = 0; i < op->n_out; i++)
        op->out[i] = op->in[1 + i];
    return 0;
}

static int ratio_grad(const memplan_operation *op)
{
    const double *dy = op->in[0].data, *b = op->in[2].data, *y = op->in[3].data;

    for (int64_t i = 0; i < op->in[0].dim[0]; i++) {
        if (op->out[0].data != NULL)
            ((double *)op->out[0].data)[i] = dy[i] / b[i];
        if (op->n_out > 1 && op->out[1].data != NULL)
            ((double *)op->out[1].data)[i] = -dy[i] * y[i] / b[i];
    }
    return 0;
}

#define OPERATOR(id, inputs, ...)                                                                  \
    static const memplan_operator id = {.size = sizeof(memplan_operator),                          \
                                        .name = #id,                                               \
                                        .min_in = inputs,                                          \
                                        .max_in = inputs,                                          \
                                        .min_out = 1,                                              \
                                        .max_out = 1,                                              \
                                        __VA_ARGS__}

OPERATOR(nonsensical, 1, .attributes = "do:text run:text size:real list:ints some:reals n:int",
         .shape = nonsense, .run = copy);
OPERATOR(thirsty, 1, .shape = same, .run = copy, .workspace = endless);
OPERATOR(careless, 1, .shape = same, .run = sums, .in_place = anywhere);
OPERATOR(careful, 1, .shape = same, .run = sums);
OPERATOR(ratio, 2, .shape = ratio_shape, .run = divide, .gradient = "ratio_grad",
         .gradient_reads = "dy x y");
static const memplan_operator ratio_grad_of = {.size = sizeof(memplan_operator),
                                               .name = "ratio_grad",
                                               .min_in = 4,
                                               .max_in = 4,
                                               .min_out = 1,
                                               .max_out = 2,
                                               .shape = ratio_grad_shape,
                                               .run = ratio_grad};
OPERATOR(misshapen, 1, .shape = same, .run = copy, .gradient = "misshapen_grad",
         .gradient_reads = "dy");
OPERATOR(misshapen_grad, 1, .shape = shorter, .run = copy);

static const memplan_operator *const list[] = {&nonsensical, &thirsty,        &careless,
                                               &careful,     &ratio,          &ratio_grad_of,
                                               &misshapen,   &misshapen_grad, NULL};

const memplan_operators memplan_operators_main = {
    .version = MEMPLAN_OPERATORS_VERSION, .size = sizeof(memplan_operators), .list = list};
