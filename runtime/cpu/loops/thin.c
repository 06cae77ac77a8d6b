/* thin.c -- see rescale.h.
 *
 * Each weight is read once, in the order in which it lies: a product of few rows takes as long as
 * its weights take to come. Sums of products run in 16 lanes on every processor. */
#include "graphs/ops/matrix/conv.h"
#include "runtime/cpu/loops/chain_priv.h"
#include "runtime/cpu/loops/rescale.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum { LANES = 16, AT_ONCE = 4, MOST_ROWS = 4 };
enum { MOST_ADDED = 64 };        /* rows, if the addend has as many: oneDNN 2 has no such product */
enum { MOST_WEIGHTS = 1 << 20 }; /* beyond it, several threads of oneDNN's are faster */

/* Half of the lanes: where a processor has no vectors of them all, gcc keeps those in memory. */
typedef float lanes __attribute__((vector_size(LANES / 2 * sizeof(float))));

/* The product of a matrix of few rows. */
typedef struct product {
    const float *a, *b, *c; /* c: [columns], or of each element, or NULL */
    const float *sum;       /* of each element, added as well, may lie where y does; or NULL */
    float *y;
    int64_t rows, terms, columns;
    bool turned, whole; /* b is [columns, terms]; c has all elements */
} product;

/* A function that returned one would have another interface for each width. */
INLINE void take(lanes *v, const float *from)
{
    memcpy(v, from, sizeof *v);
}

/* The sum of both halves. */
INLINE float add_up(const lanes *self)
{
    lanes both = self[0] + self[1];
    float four[LANES / 2];

    memcpy(four, &both, sizeof four);
    for (int i = 0; i < 4; i++)
        four[i] += four[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* y[j] = a . w[j] for n rows of w. */
INLINE void dots(float *y, const float *a, const float *w, int64_t terms, const int n)
{
    lanes sum[AT_ONCE][2] = {{{0}}};
    int64_t k = 0;

    for (; k + LANES <= terms; k += LANES) {
        lanes x[2], own[2];

        take(&x[0], a + k), take(&x[1], a + k + LANES / 2);
        UNROLL for (int j = 0; j < n; j++)
        {
            __builtin_prefetch(w + (n + j) * terms + k); /* rows are short: the next ones */
            take(&own[0], w + j * terms + k), take(&own[1], w + j * terms + k + LANES / 2);
            sum[j][0] += x[0] * own[0], sum[j][1] += x[1] * own[1];
        }
    }
    UNROLL for (int j = 0; j < n; j++) y[j] = add_up(sum[j]);
    for (int j = 0; j < n && k < terms; j++)
        for (int64_t i = k; i < terms; i++)
            y[j] += a[i] * w[j * terms + i];
}

/* y += a . w for n rows of w. */
INLINE void add_multiples(float *y, const float *a, const float *w, int64_t columns, int64_t n)
{
    int64_t j = 0;

    for (; j + LANES / 2 <= columns; j += LANES / 2) {
        lanes sum, own;

        take(&sum, y + j);
        for (int64_t k = 0; k < n; k++) {
            take(&own, w + k * columns + j);
            sum += a[k] * own;
        }
        memcpy(y + j, &sum, sizeof sum);
    }
    for (; j < columns; j++)
        for (int64_t k = 0; k < n; k++)
            y[j] += a[k] * w[k * columns + j];
}

/* Row `row` of the addend, from column j on; NULL: none. */
INLINE const float *addend(const product *p, int64_t row)
{
    return p->c == NULL ? NULL : p->c + (p->whole ? row * p->columns : 0);
}

INLINE void turned_body(const product *p)
{
    float made[AT_ONCE];

    for (int64_t j = 0, n; j < p->columns; j += n) {
        n = p->columns - j < AT_ONCE ? p->columns - j : AT_ONCE;
        for (int64_t i = 0; i < p->rows; i++) {
            const float *c = addend(p, i), *a = p->a + i * p->terms, *w = p->b + j * p->terms;
            const float *sum = p->sum != NULL ? p->sum + i * p->columns + j : NULL;

            if (n == AT_ONCE)
                dots(made, a, w, p->terms, AT_ONCE);
            else
                for (int64_t k = 0; k < n; k++)
                    dots(made + k, a, w + k * p->terms, p->terms, 1);
            for (int64_t k = 0; k < n; k++)
                p->y[i * p->columns + j + k] =
                    (sum != NULL ? sum[k] : 0) + (made[k] + (c != NULL ? c[j + k] : 0));
        }
    }
}

INLINE void plain_body(const product *p)
{
    for (int64_t i = 0; i < p->rows; i++) {
        const float *c = addend(p, i);

        float *y = p->y + i * p->columns;

        if (p->sum != NULL)
            memmove(y, p->sum + i * p->columns, (size_t)p->columns * sizeof *y);
        else if (c != NULL)
            memmove(y, c, (size_t)p->columns * sizeof *c);
        else
            memset(y, 0, (size_t)p->columns * sizeof *y);
        for (int64_t j = 0; j < p->columns && p->sum != NULL && c != NULL; j++)
            y[j] += c[j];
    }
    for (int64_t k = 0, n; k < p->terms; k += n) {
        n = p->terms - k < AT_ONCE ? p->terms - k : AT_ONCE;
        for (int64_t i = 0; i < p->rows; i++) {
            const float *a = p->a + i * p->terms + k, *w = p->b + k * p->columns;

            if (n == AT_ONCE)
                add_multiples(p->y + i * p->columns, a, w, p->columns, AT_ONCE);
            else
                add_multiples(p->y + i * p->columns, a, w, p->columns, n);
        }
    }
}

#define LOOPS(width, target)                                                                       \
    target static void multiply_##width(const product *p)                                          \
    {                                                                                              \
        if (p->turned)                                                                             \
            turned_body(p);                                                                        \
        else                                                                                       \
            plain_body(p);                                                                         \
    }

LOOPS(plain, )
#if defined(__x86_64__)
LOOPS(avx2, __attribute__((target("avx2"))))
LOOPS(avx512, MPL_TARGET_AVX512)
#else
#define multiply_avx2   multiply_plain
#define multiply_avx512 multiply_plain
#endif

static mpl_status multiply(mpl_ctx *ctx, const mpl_op_call *call)
{
    static void (*const widths[MPL_N_CHAIN_WIDTHS])(const product *) = {
        multiply_plain, multiply_avx2, multiply_avx512};
    const uint32_t first = mpl_fused_first((mpl_op_kind)call->graph->op_kind[call->op]);
    const mpl_tensor *in = call->in + first;
    const mpl_shape *shape = &in[0].shape;
    product p = {.a = in[0].data, .b = in[1].data, .y = call->out[0].data};

    (void)ctx;
    p.terms = shape->dim[shape->rank - 1];
    p.columns = call->out[0].shape.dim[call->out[0].shape.rank - 1];
    p.rows = mpl_count(&call->out[0].shape) / p.columns;
    p.turned = mpl_attr_int(call->graph, call->op, MPL_ATTR_trans_b, 0) != 0;
    p.sum = first > 0 ? call->in[0].data : NULL;
    if (call->n_in > first + 2 && in[2].data != NULL) {
        p.c = in[2].data;
        p.whole = mpl_count(&in[2].shape) != p.columns;
    }
    widths[mpl_chain_widest()](&p);
    return MPL_OK;
}

/* Whether input i, the addend, is absent, one row, or has all elements; *most: rows it is good for.
 */
static bool fits_addend(const mpl_graph *g, mpl_op op, uint32_t i, int64_t *most)
{
    mpl_value c = mpl_op_n_in(g, op) > i ? mpl_op_input(g, op, i) : MPL_NONE;
    const mpl_shape *shape = &g->value_shape[mpl_op_output(g, op, 0)], *s;

    *most = MOST_ROWS;
    if (c == MPL_NONE)
        return true;
    s = &g->value_shape[c];
    if (mpl_shape_equal(s, shape))
        *most = MOST_ADDED;
    return mpl_shape_equal(s, shape) ||
           (s->rank > 0 && mpl_count(s) == shape->dim[shape->rank - 1] &&
            s->dim[s->rank - 1] == mpl_count(s));
}

mpl_rescale *mpl_thin_of(const mpl_graph *g, mpl_op op, const char **how)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    const uint32_t first = mpl_fused_first(kind);
    const mpl_shape *shape, *b, *y;
    int64_t most;

    if ((!mpl_is_gemm(kind) && kind != MPL_OP_matmul) || mpl_activation_of(g, op) != MPL_ACT_NONE ||
        g->value_type[mpl_op_output(g, op, 0)] != MPL_TYPE_f32)
        return NULL;
    shape = &g->value_shape[mpl_op_input(g, op, first)];
    b = &g->value_shape[mpl_op_input(g, op, first + 1)];
    y = &g->value_shape[mpl_op_output(g, op, 0)];
    if (shape->rank < 2 || b->rank != 2 || mpl_count(y) == 0 || mpl_count(shape) == 0 ||
        mpl_count(b) > MOST_WEIGHTS || mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) != 0 ||
        mpl_attr_float(g, op, MPL_ATTR_alpha, 1) != 1 ||
        mpl_attr_float(g, op, MPL_ATTR_beta, 1) != 1 || !fits_addend(g, op, first + 2, &most) ||
        mpl_count(y) / y->dim[y->rank - 1] > most)
        return NULL;
    *how = "thin";
    return multiply;
}
