/* panels.c -- see panels.h.
 *
 * A tile of six rows by a panel stays in registers while a block of terms passes: the panel's block
 * lies in the nearest cache, the rows' in the next, and blocks of one panel after another follow
 * each other in memory. The first block adds to the addend, or the sum of both, a later one to what
 * the last one left in y. */
#include "runtime/cpu/loops/panels.h"
#include "graphs/ops/matrix/conv.h"
#include "runtime/cpu/loops/chain_priv.h"

#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    PANEL = 16,
    ROWS = 6,
    TERMS = 384,        /* of a block, at most */
    BLOCK = 240,        /* rows of a block, at most */
    LEAST = 5,          /* rows; fewer take as long as the matrix takes to come, packed or not */
    SHARE = 512 * 1024, /* products worth a thread of their own */
};

struct mpl_panels {
    int64_t rows, terms, columns;
    uint32_t first; /* index of input a: 1 behind an addend of all elements, else 0 */
    mpl_activation activation;
    bool turned; /* the matrix is [columns, terms] */
    bool is_packed;
    float *packed; /* for each block of terms: [n_panels][terms of the block][PANEL] */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t n_panels(const mpl_panels *panels)
{
    return (panels->columns + PANEL - 1) / PANEL;
}

/* ---- preparing ---- */

static bool is_here(void)
{
#if defined(__x86_64__)
    return mpl_chain_widest() >= MPL_CHAIN_AVX2 && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* A weight that no operation trains. */
static bool is_constant(const mpl_graph *g, mpl_value v)
{
    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
        if (mpl_n_updates((mpl_op_kind)g->op_kind[g->value_use[k]]) > 0)
            return false;
    return g->value_role[v] == MPL_WEIGHT;
}

/* Whether input c is absent, a row for all rows, or has all elements. */
static bool fits_addend(const mpl_graph *g, mpl_op op, uint32_t i)
{
    mpl_value c = mpl_op_n_in(g, op) > i ? mpl_op_input(g, op, i) : MPL_NONE;
    const mpl_shape *y = &g->value_shape[mpl_op_output(g, op, 0)], *s;

    if (c == MPL_NONE)
        return true;
    s = &g->value_shape[c];
    return mpl_shape_equal(s, y) || (s->rank > 0 && mpl_count(s) == y->dim[y->rank - 1] &&
                                     s->dim[s->rank - 1] == mpl_count(s));
}

static bool fits(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t first = mpl_fused_first(kind);
    const mpl_shape *a, *b, *y;

    if ((kind != MPL_OP_gemm && kind != MPL_OP_matmul && kind != MPL_OP_gemm_act &&
         kind != MPL_OP_gemm_sum) ||
        !is_here() || g->value_type[mpl_op_output(g, op, 0)] != MPL_TYPE_f32)
        return false;
    a = &g->value_shape[mpl_op_input(g, op, first)];
    b = &g->value_shape[mpl_op_input(g, op, first + 1)];
    y = &g->value_shape[mpl_op_output(g, op, 0)];
    return a->rank >= 2 && b->rank == 2 && mpl_count(y) > 0 && mpl_count(a) > 0 &&
           is_constant(g, mpl_op_input(g, op, first + 1)) && y->dim[y->rank - 1] >= PANEL &&
           mpl_count(y) / y->dim[y->rank - 1] >= LEAST &&
           mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) == 0 &&
           mpl_attr_int(g, op, MPL_ATTR_way, 0) == 0 &&
           mpl_attr_float(g, op, MPL_ATTR_alpha, 1) == 1 &&
           mpl_attr_float(g, op, MPL_ATTR_beta, 1) == 1 && fits_addend(g, op, first + 2);
}

mpl_status mpl_panels_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_panels **out,
                          const char **how)
{
    mpl_status st = MPL_OK;
    mpl_panels *panels = NULL;
    const mpl_shape *a, *y;

    *out = NULL;
    if (!fits(g, op))
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, panels, 1));
    panels->first = mpl_fused_first((mpl_op_kind)g->op_kind[op]);
    panels->activation = mpl_activation_of(g, op);
    a = &g->value_shape[mpl_op_input(g, op, panels->first)];
    y = &g->value_shape[mpl_op_output(g, op, 0)];
    panels->terms = a->dim[a->rank - 1], panels->columns = y->dim[y->rank - 1];
    panels->rows = mpl_count(y) / panels->columns;
    panels->turned = mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0;
    MPL_TRY(mpl_new(ctx, panels->packed, (size_t)(n_panels(panels) * panels->terms * PANEL)));
    *how = "panels:avx2";
    *out = panels, panels = NULL;
out:
    mpl_panels_free(ctx, panels);
    return st;
}

void mpl_panels_free(mpl_ctx *ctx, mpl_panels *panels)
{
    if (panels != NULL)
        mpl_free_each(ctx, panels->packed, panels);
}

uint64_t mpl_panels_packed_bytes(const mpl_panels *panels)
{
    return (uint64_t)(n_panels(panels) * panels->terms * PANEL) * sizeof *panels->packed;
}

/* Where the block of terms k, .. of the panel of columns j, .. begins; n: its terms. */
static int64_t block_at(const mpl_panels *panels, int64_t k, int64_t n, int64_t j)
{
    return k * n_panels(panels) * PANEL + j * n;
}

/* Columns that the last panel lacks stay zero. */
static void pack(mpl_panels *panels, const float *b)
{
    int64_t column = panels->turned ? panels->terms : 1,
            term = panels->turned ? 1 : panels->columns;

    for (int64_t j = 0; j < panels->columns; j += PANEL)
        for (int64_t at = 0, n; at < panels->terms; at += n) {
            n = least(panels->terms - at, TERMS);
            float *to = panels->packed + block_at(panels, at, n, j);

            for (int64_t k = at; k < at + n; k++, to += PANEL)
                for (int64_t i = 0; i < PANEL && j + i < panels->columns; i++)
                    to[i] = b[(j + i) * column + k * term];
        }
    panels->is_packed = true;
}

/* ---- running ---- */

typedef struct job {
    const mpl_panels *panels;
    const float *a, *c, *sum; /* c: a row, or all, or NULL; sum: all, or NULL */
    bool whole;               /* c has all elements */
    float *y;
} job;

#if defined(__x86_64__)
#define INLINE static inline __attribute__((always_inline))
#define FMA    __attribute__((target("avx2,fma")))
#define UNROLL _Pragma("GCC unroll 16")

/* What a tile of sums begins as: rows that lie `apart` from one another, plus more of them, which
 * may be NULL. */
typedef struct origin {
    const float *rows, *more;
    int64_t apart, more_apart;
} origin;

/* Adds n terms of `rows` rows, by a panel, to what they begin as. */
INLINE FMA void add_tile(const float *a, int64_t a_apart, const float *b, int64_t n,
                         const origin *from, float *y, int64_t y_apart, const int rows)
{
    __m256 sum[ROWS][2];

    UNROLL for (int i = 0; i < rows; i++)
    {
        sum[i][0] = _mm256_loadu_ps(from->rows + i * from->apart);
        sum[i][1] = _mm256_loadu_ps(from->rows + i * from->apart + PANEL / 2);
    }
    if (from->more != NULL) {
        UNROLL for (int i = 0; i < rows; i++)
        {
            const float *more = from->more + i * from->more_apart;

            sum[i][0] = _mm256_add_ps(sum[i][0], _mm256_loadu_ps(more));
            sum[i][1] = _mm256_add_ps(sum[i][1], _mm256_loadu_ps(more + PANEL / 2));
        }
    }
    for (int64_t k = 0; k < n; k++, b += PANEL) {
        __m256 low = _mm256_loadu_ps(b), high = _mm256_loadu_ps(b + PANEL / 2);

        UNROLL for (int i = 0; i < rows; i++)
        {
            __m256 x = _mm256_broadcast_ss(a + i * a_apart + k);

            sum[i][0] = _mm256_fmadd_ps(x, low, sum[i][0]);
            sum[i][1] = _mm256_fmadd_ps(x, high, sum[i][1]);
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        _mm256_storeu_ps(y + i * y_apart, sum[i][0]);
        _mm256_storeu_ps(y + i * y_apart + PANEL / 2, sum[i][1]);
    }
}

#define TILE(rows)                                                                                 \
    FMA static void add_##rows(const float *a, int64_t a_apart, const float *b, int64_t n,         \
                               const origin *from, float *y, int64_t y_apart)                      \
    {                                                                                              \
        add_tile(a, a_apart, b, n, from, y, y_apart, rows);                                        \
    }
#define ENTER(rows) [rows] = add_##rows,
#define EACH(M)     M(1) M(2) M(3) M(4) M(5) M(6)

EACH(TILE)

typedef void add_rows(const float *a, int64_t a_apart, const float *b, int64_t n,
                      const origin *from, float *y, int64_t y_apart);
static add_rows *const add[ROWS + 1] = {EACH(ENTER)};

/* What sums of columns j and after begin as, from row i on: the addends, or what is there. */
static origin origin_of(const job *self, int64_t i, int64_t k, int64_t j)
{
    static const float zeros[PANEL];
    int64_t columns = self->panels->columns, apart = self->whole ? columns : 0;
    const float *c = self->c != NULL ? self->c + i * apart + j : NULL;

    if (k > 0)
        return (origin){self->y + i * columns + j, NULL, columns, 0};
    if (self->sum != NULL)
        return (origin){self->sum + i * columns + j, c, columns, apart};
    return c == NULL ? (origin){zeros, NULL, 0, 0} : (origin){c, NULL, apart, 0};
}

/* The same in n columns of a panel that lacks some. */
static origin narrow(const origin *from, int64_t rows, int64_t n, float part[ROWS][PANEL])
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            part[r][i] = from->rows[r * from->apart + i] +
                         (from->more != NULL ? from->more[r * from->more_apart + i] : 0);
    return (origin){part[0], NULL, PANEL, 0};
}

/* Rows [from, to), n terms from k on, by the panel of columns j and after. */
static void add_block(const job *self, int64_t from, int64_t to, int64_t k, int64_t n, int64_t j)
{
    const mpl_panels *panels = self->panels;
    const float *b = panels->packed + block_at(panels, k, n, j);
    int64_t wide = least(panels->columns - j, PANEL);
    float part[ROWS][PANEL] = {{0}};

    for (int64_t i = from, rows; i < to; i += rows) {
        const float *a = self->a + i * panels->terms + k;
        float *y = self->y + i * panels->columns + j;
        origin sums = origin_of(self, i, k, j);

        rows = least(to - i, ROWS);
        if (wide == PANEL) {
            add[rows](a, panels->terms, b, n, &sums, y, panels->columns);
            continue;
        }
        sums = narrow(&sums, rows, wide, part);
        add[rows](a, panels->terms, b, n, &sums, part[0], PANEL);
        for (int64_t r = 0; r < rows; r++)
            memcpy(y + r * panels->columns, part[r], (size_t)wide * sizeof *y);
    }
}

/* Keeps NaNs. */
static void activate(const job *self, int64_t from, int64_t to, int64_t j, int64_t n)
{
    float most = self->panels->activation == MPL_ACT_RELU6 ? 6 : INFINITY;

    for (int64_t i = from; i < to; i++)
        for (float *y = self->y + i * self->panels->columns + j, *end = y + n; y < end; y++)
            *y = *y < 0 ? 0 : *y > most ? most : *y;
}

/* Panels [from, to). */
static void compute(const void *arg, int64_t from, int64_t to)
{
    const job *w = arg;
    const mpl_panels *panels = w->panels;
    int64_t first = from * PANEL, end = least(to * PANEL, panels->columns);

    int64_t n_blocks = (panels->rows + BLOCK - 1) / BLOCK;
    int64_t rows = ((panels->rows + n_blocks - 1) / n_blocks + ROWS - 1) / ROWS * ROWS;

    for (int64_t i = 0, i_end; i < panels->rows; i = i_end) {
        i_end = least(panels->rows, i + rows);
        for (int64_t k = 0; k < panels->terms; k += TERMS)
            for (int64_t j = first; j < end; j += PANEL)
                add_block(w, i, i_end, k, least(panels->terms - k, TERMS), j);
        if (panels->activation != MPL_ACT_NONE)
            activate(w, i, i_end, first, end - first);
    }
}
#else
static void compute(const void *arg, int64_t from, int64_t to)
{
    (void)arg, (void)from, (void)to; /* is_here() is false */
}
#endif

void mpl_panels_run(mpl_panels *p, const mpl_op_call *call, uint32_t n_threads)
{
    job w = {.panels = p, .a = call->in[p->first].data, .y = call->out[0].data};
    const mpl_tensor *tensor = call->n_in > p->first + 2 ? &call->in[p->first + 2] : NULL;
    int64_t panels = n_panels(p);

    w.sum = p->first > 0 ? call->in[0].data : NULL;
    if (tensor != NULL && tensor->data != NULL) {
        w.c = tensor->data;
        w.whole = mpl_count(&tensor->shape) != p->columns;
    }
    if (!p->is_packed)
        pack(p, call->in[p->first + 1].data);
    mpl_deal(panels, 1, least(p->rows * p->terms * p->columns / SHARE, panels), n_threads, compute,
             &w);
}
