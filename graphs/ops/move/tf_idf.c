/* tf_idf.c -- tf_idf: how often n-grams of a pool of integers occur in each row, [columns] or
 * [rows, columns].
 *
 * ngram_counts: where the pool's 1-grams, 2-grams, .. begin; ngram_indexes: the column of the
 * result that counts each. An n-gram's items stand apart by 1 to max_skip_count + 1 columns; a
 * 1-gram counts once. Of equal n-grams the pool's last counts. mode: 'TF', counts; 'IDF', whether
 * there are any; 'TFIDF', counts; the latter two times `weights`, one an n-gram of the pool, as
 * ONNX's text and ONNX Runtime 1.32 have it (onnx 1.23's reference evaluator: one a column).
 * Cost: O(elements * skips * pool). */
#include "graphs/ops/ops_priv.h"

typedef struct grams {
    const int64_t *begin, *column, *pool; /* attributes */
    const double *weight;                 /* NULL: 1 each */
    uint32_t n_begin, n_column, n_pool, n_weight;
    int64_t least, most, skip; /* items of an n-gram; columns left out between two */
    int64_t columns;           /* of the result */
    bool once;                 /* mode IDF */
} grams;

static grams grams_of(const mpl_graph *g, mpl_op op)
{
    grams s = {.least = mpl_attr_int(g, op, MPL_ATTR_min_gram_length, 1),
               .most = mpl_attr_int(g, op, MPL_ATTR_max_gram_length, 1),
               .skip = mpl_attr_int(g, op, MPL_ATTR_max_skip_count, 0)};
    const char *mode = mpl_attr_text(g, op, MPL_ATTR_mode, "TF");
    mpl_attr weights;

    if (mpl_attr_get(g, op, MPL_ATTR_weights, &weights)) {
        s.weight = strcmp(mode, "TF") != 0 ? weights.floats : NULL;
        s.n_weight = weights.n;
    }
    s.once = strcmp(mode, "IDF") == 0;
    s.begin = mpl_attr_ints(g, op, MPL_ATTR_ngram_counts, &s.n_begin);
    s.column = mpl_attr_ints(g, op, MPL_ATTR_ngram_indexes, &s.n_column);
    s.pool = mpl_attr_ints(g, op, MPL_ATTR_pool_int64s, &s.n_pool);
    for (uint32_t i = 0; i < s.n_column; i++)
        s.columns = s.column[i] >= s.columns ? s.column[i] + 1 : s.columns;
    return s;
}

/* The n-grams of the pool with n items. */
static int64_t grams_with(const grams *self, uint32_t n)
{
    return ((n < self->n_begin ? self->begin[n] : self->n_pool) - self->begin[n - 1]) / n;
}

/* Whether the pool is in order, and each n-gram has a column. */
static bool is_valid(const grams *self)
{
    int64_t count = 0, at = 0;

    for (uint32_t i = 0; i < self->n_begin; i++) {
        if (self->begin[i] < at || self->begin[i] > self->n_pool)
            return false;
        at = self->begin[i];
    }
    for (uint32_t n = 1; n <= self->n_begin; n++)
        count += grams_with(self, n);
    for (uint32_t i = 0; i < self->n_column; i++)
        if (self->column[i] < 0 || self->column[i] == INT64_MAX)
            return false;
    return self->n_pool > 0 && count <= self->n_column;
}

mpl_status mpl_shape_tf_idf(mpl_ctx *ctx, const mpl_shape_call *call)
{
    grams s = grams_of(call->graph, call->op);
    const char *mode = mpl_attr_text(call->graph, call->op, MPL_ATTR_mode, "TF");
    uint32_t rank = call->in_shape[0]->rank;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_INDEX));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 1, 2));
    if (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 && strcmp(mode, "TFIDF") != 0)
        return MPL_REFUSE(ctx, "mode '%.40s' is none of TF, IDF, TFIDF", mode);
    if (s.least < 1 || s.most < s.least || s.skip < 0)
        return MPL_REFUSE(ctx, "lengths of n-grams are from 1 on, what they skip from 0 on");
    if (!is_valid(&s))
        return MPL_REFUSE(ctx, "pool_int64s, ngram_counts and ngram_indexes do not fit together");
    if (s.n_weight > 0 && s.n_weight != s.n_column)
        return MPL_REFUSE(ctx, "%u weights for %u n-grams", s.n_weight, s.n_column);
    call->out_shape[0] = *call->in_shape[0];
    call->out_shape[0].dim[rank - 1] = s.columns;
    call->out_type[0] = MPL_TYPE_f32;
    return MPL_OK;
}

/* Whether the n items from column `at` on, `apart` from one another, are that n-gram. */
static bool is_there(const mpl_tensor *in, int64_t at, int64_t apart, const int64_t *gram,
                     uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (mpl_get_int(in->type, in->data, at + i * apart) != gram[i])
            return false;
    return true;
}

/* Counts the n-gram that begins at column `at`, if the pool has it. */
static void count_gram(const grams *self, const mpl_tensor *in, int64_t at, int64_t apart,
                       uint32_t n, float *out)
{
    int64_t before = 0;

    for (uint32_t k = 1; k < n; k++)
        before += grams_with(self, k);
    for (int64_t i = grams_with(self, n); i-- > 0;)
        if (is_there(in, at, apart, self->pool + self->begin[n - 1] + i * n, n)) {
            float weight = self->weight != NULL ? (float)self->weight[before + i] : 1;
            float *count = &out[self->column[before + i]];

            *count = self->once ? weight : *count + weight;
            return;
        }
}

static void count_row(const grams *self, const mpl_tensor *in, int64_t begin, int64_t end,
                      float *out)
{
    for (int64_t n = self->least; n <= self->most && n <= self->n_begin; n++)
        for (int64_t apart = 1; apart <= (n > 1 ? end - begin : 1); apart++) {
            for (int64_t at = begin; at < end && n - 1 <= (end - 1 - at) / apart; at++)
                count_gram(self, in, at, apart, (uint32_t)n, out);
            if (apart > self->skip)
                break;
        }
}

mpl_status mpl_eval_tf_idf(mpl_ctx *ctx, const mpl_op_call *call)
{
    grams s = grams_of(call->graph, call->op);
    const mpl_tensor *in = &call->in[0];
    int64_t n = in->shape.dim[in->shape.rank - 1], rows = in->shape.rank > 1 ? in->shape.dim[0] : 1;
    float *out = call->out[0].data;

    (void)ctx;
    memset(out, 0, (size_t)(rows * s.columns) * sizeof *out);
    for (int64_t row = 0; row < rows; row++, out += s.columns)
        count_row(&s, in, row * n, (row + 1) * n, out);
    return MPL_OK;
}
