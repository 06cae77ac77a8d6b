/* cpu_quant.c -- see cpu_quant.h. */
#include "runtime/cpu/cpu_quant.h"

#include "graphs/ops/matrix/window_priv.h"
#include "runtime/cpu/cpu_words.h"
#include "runtime/cpu/sums.h"

enum { LINE = 64 };

/* x is [batch, in_channels, in_pixels], or with channels last; the sums [batch, pixels, channels].
 * A product: one image, rows as pixels, terms as input channels, already last. */
struct mpl_cpu_quant {
    mpl_words *words; /* computes it all; NULL: oneDNN does */
    int64_t batch, in_channels, in_pixels, channels, pixels;
    bool turned;   /* channels first: x and the sums change their order */
    bool constant; /* the weight: packed once */
    bool is_packed;
    uint64_t x_at, sum_at, pack_at, scratch_at; /* in the workspace [byte] */
    dnnl_primitive_t primitive, pack;
    dnnl_memory_t src, plain, weights, dst, scratch, zero;
    int32_t zero_point;
    uint64_t packed_bytes;
    char how[64];
};

/* Whether the instructions that oneDNN uses cannot saturate in sums of products of bytes. */
static bool is_exact_here(void)
{
    dnnl_cpu_isa_t exact = dnnl_cpu_isa_avx512_core_vnni;

    return (dnnl_get_effective_cpu_isa() & exact) == exact;
}

/* ---- preparing ---- */

/* Whether operand i is left out, or constant and all 0. */
static bool is_no_zero(const mpl_graph *g, mpl_op op, uint32_t i)
{
    mpl_value v = i < mpl_op_n_in(g, op) ? mpl_op_input(g, op, i) : MPL_NONE;
    int64_t n;

    if (v == MPL_NONE)
        return true;
    if (g->value_data[v] == NULL || mpl_type_bits((mpl_type)g->value_type[v]) != 8)
        return false;
    n = g->value_splat[v] ? 1 : mpl_count(&g->value_shape[v]);
    for (int64_t k = 0; k < n; k++)
        if (((const uint8_t *)g->value_data[v])[k] != 0)
            return false;
    return true;
}

/* Whether oneDNN might compute it. */
static bool fits(const mpl_graph *g, mpl_op op)
{
    mpl_value x = mpl_op_input(g, op, Q_X), w = mpl_op_input(g, op, Q_W);
    mpl_value zero = mpl_op_n_in(g, op) > Q_X_ZERO ? mpl_op_input(g, op, Q_X_ZERO) : MPL_NONE;

    return (g->value_type[x] == MPL_TYPE_u8 || g->value_type[x] == MPL_TYPE_i8) &&
           g->value_type[w] == MPL_TYPE_i8 && is_no_zero(g, op, Q_W_ZERO) &&
           (zero == MPL_NONE || mpl_count(&g->value_shape[zero]) == 1) &&
           mpl_count(&g->value_shape[x]) > 0 && mpl_count(&g->value_shape[w]) > 0 &&
           mpl_count(&g->value_shape[mpl_op_output(g, op, 0)]) > 0;
}

/* The layout with these strides. [element] */
static dnnl_memory_desc_t strided(int n, const int64_t *dim, const int64_t *stride,
                                  dnnl_data_type_t type)
{
    dnnl_memory_desc_t md = {0};
    dnnl_dims_t dims = {0}, strides = {0};

    memcpy(dims, dim, (size_t)n * sizeof *dim);
    memcpy(strides, stride, (size_t)n * sizeof *stride);
    dnnl_memory_desc_init_by_strides(&md, n, dims, type, strides);
    return md;
}

/* The layout that oneDNN likes best. */
static dnnl_memory_desc_t any_layout(int n, const int64_t *dim)
{
    dnnl_memory_desc_t md = {0};
    dnnl_dims_t dims = {0};

    memcpy(dims, dim, (size_t)n * sizeof *dim);
    dnnl_memory_desc_init_by_tag(&md, n, dims, dnnl_s8, dnnl_format_tag_any);
    return md;
}

/* dims {batch, channels, spatial..} with channels innermost. */
static dnnl_memory_desc_t image(int64_t batch, int64_t channels, uint32_t n, const int64_t *space,
                                dnnl_data_type_t type)
{
    int64_t dim[5] = {batch, channels}, stride[5], step = channels;

    for (uint32_t i = n; i-- > 0; step *= space[i])
        dim[2 + i] = space[i], stride[2 + i] = step;
    stride[0] = step, stride[1] = 1;
    return strided((int)n + 2, dim, stride, type);
}

/* The weight as it lies: [O, C / group, spatial..], or with channels last. */
static dnnl_memory_desc_t filter(const mpl_shape *shape, bool last, int64_t group, bool any)
{
    int64_t dim[6], stride[6], plain[6], step = 1;
    uint32_t n = shape->rank, lead = group > 1;

    for (uint32_t i = n; i-- > 0; step *= shape->dim[i])
        plain[i] = step;
    if (lead)
        dim[0] = group, stride[0] = shape->dim[0] / group * plain[0];
    dim[lead] = shape->dim[0] / group, stride[lead] = plain[0];
    dim[lead + 1] = shape->dim[last ? n - 1 : 1], stride[lead + 1] = plain[last ? n - 1 : 1];
    for (uint32_t i = 2; i < n; i++)
        dim[lead + i] = shape->dim[last ? i - 1 : i], stride[lead + i] = plain[last ? i - 1 : i];
    return any ? any_layout((int)(n + lead), dim) : strided((int)(n + lead), dim, stride, dnnl_s8);
}

static dnnl_data_type_t type_of(const mpl_graph *g, mpl_value v)
{
    return g->value_type[v] == MPL_TYPE_u8 ? dnnl_u8 : dnnl_s8;
}

typedef struct parts {
    dnnl_memory_desc_t src, plain, dst;
    dnnl_primitive_desc_t pd;
} parts;

static dnnl_primitive_desc_t choose(dnnl_engine_t engine, const_dnnl_op_desc_t desc, bool zero)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    const int32_t given = DNNL_RUNTIME_S32_VAL;
    const char *name = "ref";

    if (dnnl_primitive_attr_create(&attr) != dnnl_success)
        return NULL;
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if ((zero &&
         dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_SRC, 1, 0, &given) != dnnl_success) ||
        dnnl_primitive_desc_create(&pd, desc, attr, engine, NULL) != dnnl_success)
        pd = NULL;
    if (pd != NULL)
        dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    if (pd != NULL && strncmp(name, "ref", 3) == 0) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    dnnl_primitive_attr_destroy(attr);
    return pd;
}

static mpl_status describe_conv(mpl_ctx *ctx, mpl_cpu_quant *quant, dnnl_engine_t engine,
                                const mpl_graph *g, mpl_op op, bool zero, parts *p)
{
    const mpl_shape *shape = &g->value_shape[mpl_op_input(g, op, Q_W)];
    mpl_shape x = g->value_shape[mpl_op_input(g, op, Q_X)], plain = *shape;
    bool last = mpl_attr_int(g, op, MPL_ATTR_channels_last, 0) != 0;
    int64_t group = mpl_attr_int(g, op, MPL_ATTR_group, 1);
    dnnl_dims_t before = {0}, after = {0}, dilation = {0}, stride = {0};
    dnnl_convolution_desc_t desc;
    dnnl_memory_desc_t any;
    uint32_t skip;
    mpl_window win;

    for (uint32_t i = 1; last && i < x.rank; i++) {
        x.dim[i] = g->value_shape[mpl_op_input(g, op, Q_X)].dim[i == 1 ? x.rank - 1 : i - 1];
        plain.dim[i] = shape->dim[i == 1 ? x.rank - 1 : i - 1];
    }
    MPL_PASS(mpl_window_read(ctx, g, op, &x, &plain, &win));
    MPL_PASS(mpl_window_slide(ctx, g, op, &win));
    if (win.n == 3 && zero) /* oneDNN 2.6 is wrong with dilation, by AMX */
        return MPL_OK;
    skip = 3 - win.n;
    for (uint32_t i = 0; i < win.n; i++) {
        uint32_t k = skip + i;

        before[i] = win.before[k];
        stride[i] = win.stride[k];
        dilation[i] = win.dilation[k] - 1;
        after[i] = (win.out[k] - 1) * win.stride[k] + (win.kernel[k] - 1) * win.dilation[k] + 1 -
                   win.in[k] - win.before[k];
    }
    quant->batch = x.dim[0], quant->in_channels = x.dim[1], quant->channels = plain.dim[0];
    quant->in_pixels = mpl_count_dims(&x, 2, x.rank);
    quant->pixels = win.out[0] * win.out[1] * win.out[2];
    quant->turned = !last;
    p->src = image(x.dim[0], x.dim[1], win.n, win.in + skip, type_of(g, mpl_op_input(g, op, Q_X)));
    p->dst = image(x.dim[0], plain.dim[0], win.n, win.out + skip, dnnl_s32);
    p->plain = filter(shape, last, group, false);
    any = filter(shape, last, group, true);
    if (dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_inference, dnnl_convolution_direct, &p->src, &any, NULL, &p->dst,
            stride, dilation, before, after) == dnnl_success)
        p->pd = choose(engine, &desc, zero);
    return MPL_OK;
}

/* a [.., M, K] by b [K, N]: the rows of a stack are the rows of one matrix. */
static void describe_product(mpl_cpu_quant *quant, dnnl_engine_t engine, const mpl_graph *g,
                             mpl_op op, bool zero, parts *p)
{
    const mpl_shape *a = &g->value_shape[mpl_op_input(g, op, Q_X)];
    const mpl_shape *b = &g->value_shape[mpl_op_input(g, op, Q_W)];
    bool turned = mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0;
    dnnl_matmul_desc_t desc;
    dnnl_memory_desc_t any;
    int64_t rows, terms, columns;

    if (a->rank < 2 || b->rank != 2 || mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) != 0)
        return;
    rows = mpl_count_dims(a, 0, a->rank - 1), terms = a->dim[a->rank - 1];
    columns = b->dim[turned ? 0 : 1];
    quant->batch = 1, quant->in_channels = terms, quant->in_pixels = quant->pixels = rows,
    quant->channels = columns;
    p->src = strided(2, (int64_t[]){rows, terms}, (int64_t[]){terms, 1},
                     type_of(g, mpl_op_input(g, op, Q_X)));
    p->dst = strided(2, (int64_t[]){rows, columns}, (int64_t[]){columns, 1}, dnnl_s32);
    p->plain = strided(2, (int64_t[]){terms, columns},
                       turned ? (int64_t[]){1, terms} : (int64_t[]){columns, 1}, dnnl_s8);
    any = any_layout(2, (int64_t[]){terms, columns});
    if (dnnl_matmul_desc_init(&desc, &p->src, &any, NULL, &p->dst) == dnnl_success)
        p->pd = choose(engine, &desc, zero);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + LINE - 1) & ~(uint64_t)(LINE - 1);
}

/* Primitives and memory objects. */
static dnnl_status_t make(mpl_cpu_quant *quant, dnnl_engine_t engine, const parts *p, bool zero,
                          uint64_t *workspace)
{
    const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(p->pd, dnnl_query_weights_md, 0);
    const dnnl_memory_desc_t *s = dnnl_primitive_desc_query_md(p->pd, dnnl_query_scratchpad_md, 0);
    const int64_t one = 1;
    dnnl_memory_desc_t number = strided(1, &one, &one, dnnl_s32);
    dnnl_primitive_desc_t pack = NULL;
    const struct {
        dnnl_memory_t *memory;
        const dnnl_memory_desc_t *md;
        void *data;
    } made[] = {{&quant->src, &p->src, DNNL_MEMORY_NONE},
                {&quant->dst, &p->dst, DNNL_MEMORY_NONE},
                {&quant->plain, &p->plain, DNNL_MEMORY_NONE},
                {&quant->weights, w, quant->constant ? DNNL_MEMORY_ALLOCATE : DNNL_MEMORY_NONE},
                {&quant->scratch, s, DNNL_MEMORY_NONE}};
    dnnl_status_t code;

    quant->packed_bytes = dnnl_memory_desc_get_size(w);
    quant->sum_at = quant->turned ? aligned(dnnl_memory_desc_get_size(&p->src)) : 0;
    quant->pack_at = quant->sum_at + aligned(dnnl_memory_desc_get_size(&p->dst));
    quant->scratch_at = quant->pack_at + (quant->constant ? 0 : aligned(quant->packed_bytes));
    *workspace = quant->scratch_at + dnnl_memory_desc_get_size(s);
    code = dnnl_primitive_create(&quant->primitive, p->pd);
    for (size_t i = 0; i < sizeof made / sizeof *made && code == dnnl_success; i++)
        code = dnnl_memory_create(made[i].memory, made[i].md, engine, made[i].data);
    if (code == dnnl_success && zero)
        code = dnnl_memory_create(&quant->zero, &number, engine, &quant->zero_point);
    if (code == dnnl_success)
        code = dnnl_reorder_primitive_desc_create(&pack, &p->plain, engine, w, engine, NULL);
    if (code == dnnl_success)
        code = dnnl_primitive_create(&quant->pack, pack);
    if (pack != NULL)
        dnnl_primitive_desc_destroy(pack);
    return code;
}

/* By oneDNN; *made is false if it has no code for it. */
static mpl_status describe(mpl_ctx *ctx, mpl_cpu_quant *quant, dnnl_engine_t engine,
                           const mpl_graph *g, mpl_op op, uint64_t *workspace_bytes, bool *made)
{
    mpl_status st = MPL_OK;
    const char *name = "";
    parts p = {.pd = NULL};
    bool zero = !is_no_zero(g, op, Q_X_ZERO);

    quant->constant = g->value_role[mpl_op_input(g, op, Q_W)] == MPL_WEIGHT;
    if (g->op_kind[op] == MPL_OP_qconv)
        MPL_TRY(describe_conv(ctx, quant, engine, g, op, zero, &p));
    else
        describe_product(quant, engine, g, op, zero, &p);
    if (p.pd == NULL)
        goto out;
    dnnl_primitive_desc_query(p.pd, dnnl_query_impl_info_str, 0, &name);
    snprintf(quant->how, sizeof quant->how, "int8: %s", name);
    *made = make(quant, engine, &p, zero, workspace_bytes) == dnnl_success;
out:
    if (p.pd != NULL)
        dnnl_primitive_desc_destroy(p.pd);
    return st;
}

/* What oneDNN has made; quant keeps nothing of it. */
static void forget(mpl_cpu_quant *quant)
{
    dnnl_memory_t memory[] = {quant->src, quant->plain,   quant->weights,
                              quant->dst, quant->scratch, quant->zero};

    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (memory[i] != NULL)
            dnnl_memory_destroy(memory[i]);
    if (quant->primitive != NULL)
        dnnl_primitive_destroy(quant->primitive);
    if (quant->pack != NULL)
        dnnl_primitive_destroy(quant->pack);
    *quant = (mpl_cpu_quant){0};
}

mpl_status mpl_cpu_quant_new(mpl_ctx *ctx, dnnl_engine_t engine, const mpl_graph *g, mpl_op op,
                             mpl_cpu_quant **out, uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_cpu_quant *quant = NULL;
    bool made = false;

    *out = NULL;
    if (g->op_kind[op] != MPL_OP_qconv && g->op_kind[op] != MPL_OP_qmatmul)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, quant, 1));
    if (is_exact_here() && fits(g, op))
        MPL_TRY(describe(ctx, quant, engine, g, op, workspace_bytes, &made));
    if (made) {
        *how = quant->how;
    } else {
        forget(quant);
        MPL_TRY(
            mpl_words_new(ctx, g, op, MPL_WORDS_PIECE, false, &quant->words, workspace_bytes, how));
    }
    if (made || quant->words != NULL)
        *out = quant, quant = NULL;
out:
    mpl_cpu_quant_free(ctx, quant);
    return st;
}

void mpl_cpu_quant_free(mpl_ctx *ctx, mpl_cpu_quant *quant)
{
    if (quant == NULL)
        return;
    mpl_words_free(ctx, quant->words);
    forget(quant);
    mpl_free(ctx, quant);
}

uint64_t mpl_cpu_quant_packed_bytes(const mpl_cpu_quant *quant)
{
    if (quant->words != NULL)
        return mpl_words_packed_bytes(quant->words);
    return quant->constant ? quant->packed_bytes : 0;
}

/* ---- running ---- */

static void put_sums(const mpl_cpu_quant *quant, const mpl_op_call *call, const int32_t *sum)
{
    mpl_sums s = mpl_sums_of(call, quant->pixels, quant->channels, quant->turned);
    mpl_sums_scales scales;

    scales.n = 0;
    for (int64_t b = 0; b < quant->batch; b++)
        for (int64_t c = 0; c < quant->channels; c += MPL_SUMS_TILE) {
            mpl_sums_scales_get(&s, c, mpl_least(quant->channels - c, MPL_SUMS_TILE), &scales);
            for (int64_t i = 0; i < quant->pixels; i += MPL_SUMS_TILE)
                mpl_sums_put(&s, &scales, sum + (b * quant->pixels + i) * quant->channels + c,
                             quant->channels, b * quant->pixels * quant->channels, i,
                             mpl_least(quant->pixels - i, MPL_SUMS_TILE));
        }
}

/* Whether sums are the output as they are. */
static bool is_plain_sum(const mpl_cpu_quant *quant, const mpl_op_call *call)
{
    return !quant->turned && call->out[0].type == MPL_TYPE_i32 &&
           (call->n_in <= Q_BIAS || call->in[Q_BIAS].data == NULL);
}

static dnnl_status_t set(dnnl_memory_t m, void *data, dnnl_stream_t stream)
{
    return dnnl_memory_set_data_handle_v2(m, data, stream);
}

static dnnl_status_t execute(mpl_cpu_quant *quant, dnnl_stream_t stream, const mpl_op_call *call,
                             const void *x, void *sum)
{
    char *workspace = call->workspace;
    dnnl_exec_arg_t packing[] = {{DNNL_ARG_FROM, quant->plain}, {DNNL_ARG_TO, quant->weights}};
    dnnl_exec_arg_t arg[] = {{DNNL_ARG_SRC, quant->src},
                             {DNNL_ARG_WEIGHTS, quant->weights},
                             {DNNL_ARG_DST, quant->dst},
                             {DNNL_ARG_SCRATCHPAD, quant->scratch},
                             {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, quant->zero}};
    dnnl_status_t code = set(quant->src, (void *)(uintptr_t)x, stream);

    if (code == dnnl_success)
        code = set(quant->dst, sum, stream);
    if (code == dnnl_success)
        code = set(quant->scratch, workspace + quant->scratch_at, stream);
    if (code == dnnl_success && !quant->constant)
        code = set(quant->weights, workspace + quant->pack_at, stream);
    if (code == dnnl_success && !quant->is_packed) {
        code = set(quant->plain, call->in[Q_W].data, stream);
        if (code == dnnl_success)
            code = dnnl_primitive_execute(quant->pack, stream, 2, packing);
        quant->is_packed = quant->constant;
    }
    return code == dnnl_success
               ? dnnl_primitive_execute(quant->primitive, stream, quant->zero != NULL ? 5 : 4, arg)
               : code;
}

mpl_status mpl_cpu_quant_run(mpl_ctx *ctx, dnnl_stream_t stream, mpl_cpu_quant *quant,
                             const mpl_op_call *call, uint32_t n_threads)
{
    const uint8_t *x = call->in[Q_X].data;
    uint8_t *turned = (uint8_t *)call->workspace + quant->x_at;
    int64_t image_bytes = quant->in_channels * quant->in_pixels;
    void *sum = (char *)call->workspace + quant->sum_at;
    dnnl_status_t code;

    if (quant->words != NULL) {
        mpl_words_run(quant->words, call, n_threads);
        return MPL_OK;
    }
    quant->zero_point = (int32_t)mpl_q_at(call, Q_X_ZERO, 0, 0);
    for (int64_t b = 0; b < quant->batch && quant->turned; b++)
        mpl_turn_bytes(x + b * image_bytes, quant->in_pixels, turned + b * image_bytes,
                       quant->in_channels, quant->in_channels, quant->in_pixels);
    if (is_plain_sum(quant, call))
        sum = call->out[0].data;
    code = execute(quant, stream, call, quant->turned ? turned : x, sum);
    if (code == dnnl_success)
        code = dnnl_stream_wait(stream);
    if (code != dnnl_success)
        return MPL_ERROR(ctx, MPL_EUNAVAIL, "oneDNN: running '%s': status %d",
                         call->graph->op_name[call->op], (int)code);
    if (sum != call->out[0].data)
        put_sums(quant, call, sum);
    return MPL_OK;
}
