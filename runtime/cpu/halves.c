/* halves.c -- see halves.h. */
#include "runtime/cpu/halves.h"

#include "runtime/cpu/loops/chain_priv.h"
#include "runtime/cpu/halves_priv.h"
#include "runtime/cpu/host_priv.h"

enum {
    LINE = 64,         /* alignment of an operand in the workspace [byte] */
    SHARE = 16 * 1024, /* elements worth a thread of their own */
};

struct mpl_halves {
    mpl_half_pieces p;
    const mpl_backend *inner;
    mpl_tensor *tensor;     /* [n_in + n_out] of a piece */
    mpl_graph *g;           /* one operation, on a piece */
    mpl_prepared *prepared; /* of it */
    uint64_t bytes;         /* of widened operands in the workspace; the inner one follows [byte] */
    float *kept;            /* weights; widened by the first run */
    uint64_t kept_bytes;
    bool is_widened;
    char how[64];
};

static bool is_half(mpl_type type)
{
    return type == MPL_TYPE_f16 || type == MPL_TYPE_bf16;
}

/* Whether loops are left to it: it moves elements, its types are its purpose, or each of its steps
 * is rounded. */
static bool stays_half(mpl_op_kind kind)
{
    switch (kind) {
    case MPL_OP_cast:
    case MPL_OP_bit_cast:
    case MPL_OP_concat:
    case MPL_OP_split:
    case MPL_OP_slice:
    case MPL_OP_transpose:
    case MPL_OP_expand:
    case MPL_OP_tile:
    case MPL_OP_pad:
    case MPL_OP_gather:
    case MPL_OP_gather_elements:
    case MPL_OP_gather_nd:
    case MPL_OP_scatter_elements:
    case MPL_OP_scatter_nd:
    case MPL_OP_depth_to_space:
    case MPL_OP_space_to_depth:
    case MPL_OP_reverse_sequence:
    case MPL_OP_one_hot:
    case MPL_OP_trilu:
    case MPL_OP_where:
    case MPL_OP_access:
    case MPL_OP_assign:
    case MPL_OP_reorder:
    case MPL_OP_fused:
    case MPL_OP_fma:
    case MPL_OP_div_sqrt:
        return true;
    default:
        return (mpl_op_table[kind].traits & (MPL_VIEW | MPL_CONTROL | MPL_MUTATES)) != 0;
    }
}

/* A weight that no operation trains. */
static bool is_constant(const mpl_graph *g, mpl_value v)
{
    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
        if (mpl_n_updates((mpl_op_kind)g->op_kind[g->value_use[k]]) > 0)
            return false;
    return g->value_role[v] == MPL_WEIGHT;
}

/* ---- preparing ---- */

/* False: no operand is a half, or one is empty or of the wide type f64. */
static bool read_operands(mpl_halves *halves, const mpl_graph *g, mpl_op op)
{
    bool any = false;

    for (uint32_t k = 0; k < halves->p.n_in + halves->p.n_out; k++) {
        mpl_value v = mpl_half_value(g, op, k);
        mpl_half_operand *operand = &halves->p.operand[k];

        if (v == MPL_NONE)
            continue;
        operand->type = (mpl_type)g->value_type[v];
        operand->half = is_half(operand->type);
        operand->kept = operand->half && k < halves->p.n_in && is_constant(g, v);
        any = any || operand->half;
        if (g->value_bytes[v] == 0 || operand->type == MPL_TYPE_f64)
            return false;
    }
    return any;
}

/* Attributes of the operation; a piece brings its own pads along the axis that it is cut on. */
static mpl_status copy_attrs(mpl_ctx *ctx, const mpl_halves *halves, const mpl_graph *g, mpl_op op,
                             mpl_attr *attr, int64_t *pads)
{
    uint32_t first = g->op_attr_begin[op], n = g->op_attr_begin[op + 1] - first;
    bool windows = false;

    for (uint32_t k = 0; k < halves->p.n_in; k++)
        windows = windows || halves->p.operand[k].window != 1 || halves->p.operand[k].step != 1 ||
                  halves->p.operand[k].low != 0;
    for (uint32_t i = 0; i < n; i++) {
        attr[i] = mpl_attr_at(g, first + i);
        if (!windows || attr[i].key != MPL_ATTR_pads)
            continue;
        if (attr[i].n > 2 * MPL_MAX_RANK)
            return MPL_REFUSE(ctx, "operation '%.100s': %u pads", g->op_name[op], attr[i].n);
        memcpy(pads, attr[i].ints, attr[i].n * sizeof *pads);
        pads[0] = pads[attr[i].n / 2] = 0;
        attr[i].ints = pads;
    }
    return MPL_OK;
}

/* The graph of one piece; *fits: its results are as expected. */
static mpl_status make_graph(mpl_ctx *ctx, mpl_halves *halves, const mpl_graph *g, mpl_op op,
                             bool *fits)
{
    mpl_status st = MPL_OK;
    const mpl_half_pieces *pieces = &halves->p;
    uint32_t n = pieces->n_in + pieces->n_out,
             n_attr = g->op_attr_begin[op + 1] - g->op_attr_begin[op];
    mpl_value *value = NULL;
    const char **name = NULL;
    char(*text)[16] = NULL;
    mpl_attr *attr = NULL;
    int64_t pads[2 * MPL_MAX_RANK];

    mpl_graph_free(ctx, halves->g);
    halves->g = NULL;
    MPL_TRY(mpl_new(ctx, value, n));
    MPL_TRY(mpl_new(ctx, name, pieces->n_out));
    MPL_TRY(mpl_new(ctx, text, n));
    MPL_TRY(mpl_new(ctx, attr, n_attr));
    MPL_TRY(copy_attrs(ctx, halves, g, op, attr, pads));
    MPL_TRY(mpl_graph_new(ctx, g->op_name[op], &halves->g));
    for (uint32_t k = 0; k < n; k++) {
        mpl_value v = mpl_half_value(g, op, k);
        const mpl_half_operand *operand = &pieces->operand[k];

        value[k] = MPL_NONE;
        snprintf(text[k], sizeof *text, "%u", k); /* one value may be several operands */
        if (v != MPL_NONE && k < pieces->n_in)
            MPL_TRY(mpl_graph_add_value(
                ctx, halves->g, text[k], is_constant(g, v) ? MPL_WEIGHT : MPL_INPUT,
                operand->half ? MPL_TYPE_f32 : operand->type, &operand->shape, &value[k]));
        else if (v != MPL_NONE)
            name[k - pieces->n_in] = text[k];
    }
    MPL_TRY(mpl_graph_add_op(ctx, halves->g, (mpl_op_kind)g->op_kind[op], g->op_name[op],
                             pieces->n_in, value, n_attr, attr, pieces->n_out, name,
                             value + pieces->n_in));
    for (uint32_t k = pieces->n_in; k < n; k++)
        if (value[k] != MPL_NONE)
            MPL_TRY(mpl_graph_add_output(ctx, halves->g, value[k]));
    MPL_TRY(mpl_graph_finish(ctx, halves->g));
    *fits = true;
    for (uint32_t k = pieces->n_in; k < n; k++)
        *fits = *fits &&
                (value[k] == MPL_NONE ||
                 (mpl_shape_equal(&halves->g->value_shape[value[k]], &pieces->operand[k].shape) &&
                  is_half(pieces->operand[k].type) ==
                      (halves->g->value_type[value[k]] == MPL_TYPE_f32)));
out:
    mpl_free_each(ctx, value, name, text, attr);
    return st;
}

/* Where each widened operand lies. */
static mpl_status place(mpl_ctx *ctx, mpl_halves *halves, const mpl_graph *g, mpl_op op)
{
    for (uint32_t k = 0; k < halves->p.n_in + halves->p.n_out; k++) {
        mpl_half_operand *operand = &halves->p.operand[k];
        uint64_t *end = operand->kept && !operand->cut ? &halves->kept_bytes : &halves->bytes;

        halves->tensor[k].shape = operand->shape;
        halves->tensor[k].type = operand->half ? MPL_TYPE_f32 : operand->type;
        if (mpl_half_value(g, op, k) == MPL_NONE || !operand->half)
            continue;
        operand->at = *end;
        *end += ((uint64_t)mpl_count(&operand->shape) * sizeof(float) + LINE - 1) &
                ~(uint64_t)(LINE - 1);
    }
    return halves->kept_bytes > 0 ? mpl_new(ctx, halves->kept, halves->kept_bytes / sizeof(float))
                                  : MPL_OK;
}

mpl_status mpl_halves_new(mpl_device *dev, const mpl_backend *inner, int64_t piece_bytes,
                          const mpl_graph *g, mpl_op op, mpl_halves **out,
                          uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = dev->ctx;
    mpl_halves *halves = NULL;
    const char *name = NULL;
    uint64_t workspace = 0;
    bool fits = false;

    *out = NULL;
    if (stays_half((mpl_op_kind)g->op_kind[op]))
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, halves, 1));
    halves->inner = inner;
    halves->p.n_in = mpl_op_n_in(g, op), halves->p.n_out = mpl_op_n_out(g, op);
    MPL_TRY(mpl_new(ctx, halves->p.operand, halves->p.n_in + halves->p.n_out));
    MPL_TRY(mpl_new(ctx, halves->tensor, halves->p.n_in + halves->p.n_out));
    if (!read_operands(halves, g, op))
        goto out;
    mpl_half_cut(&halves->p, piece_bytes, g, op);
    MPL_TRY(make_graph(ctx, halves, g, op, &fits));
    if (!fits) {
        mpl_half_whole(&halves->p, g, op);
        MPL_TRY(make_graph(ctx, halves, g, op, &fits));
    }
    if (!fits)
        goto out;
    MPL_TRY(place(ctx, halves, g, op));
    MPL_TRY(inner->prepare(dev, halves->g, 0, &halves->prepared, &workspace, &name));
    snprintf(halves->how, sizeof halves->how, "f32 pieces: %s", name);
    *workspace_bytes = halves->bytes + workspace;
    *how = halves->how;
    *out = halves, halves = NULL;
out:
    mpl_halves_free(dev, halves);
    return st;
}

void mpl_halves_free(mpl_device *dev, mpl_halves *halves)
{
    if (halves == NULL)
        return;
    if (halves->prepared != NULL)
        halves->inner->release(dev, halves->prepared);
    mpl_graph_free(dev->ctx, halves->g);
    mpl_free_each(dev->ctx, halves->p.operand, halves->tensor, halves->kept, halves);
}

uint64_t mpl_halves_packed_bytes(const mpl_halves *halves)
{
    return halves->kept_bytes + (halves->inner->packed_bytes != NULL
                                     ? halves->inner->packed_bytes(halves->prepared)
                                     : 0);
}

/* ---- running ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Rows of equal length between an operand and its piece. */
typedef struct rows {
    mpl_type type;
    uint16_t *half;
    float *wide;
    int64_t length, half_step, wide_step; /* [element] */
    bool round;
} rows;

static void convert(const void *arg, int64_t from, int64_t to)
{
    const rows *r = arg;

    while (from < to) {
        int64_t row = from / r->length, at = from % r->length;
        int64_t n = least(r->length - at, to - from);
        uint16_t *half = r->half + row * r->half_step + at;
        float *wide = r->wide + row * r->wide_step + at;

        if (r->round)
            mpl_half_round(r->type, half, wide, n);
        else
            mpl_half_widen(r->type, wide, half, n);
        from += n;
    }
}

static void zero(float *row, int64_t from, int64_t to)
{
    if (from < to)
        memset(row + from, 0, (size_t)(to - from) * sizeof *row);
}

/* Entries [first, first + n) of an operand to or from its piece; those outside of it are zero. */
static void move_piece(mpl_device *dev, const mpl_half_operand *operand, void *data, int64_t image,
                       int64_t first, int64_t n, float *piece, bool round)
{
    int64_t from = most(first, 0), to = least(first + n, operand->n);
    int64_t all = operand->outer * operand->n * operand->inner;
    rows r = {operand->type,
              (uint16_t *)data + image * all + from * operand->inner,
              piece + (from - first) * operand->inner,
              most(to - from, 0) * operand->inner,
              operand->n * operand->inner,
              operand->piece * operand->inner,
              round};

    for (int64_t o = 0; o < operand->outer && !round; o++) {
        float *row = piece + o * r.wide_step;

        zero(row, 0, (from - first) * operand->inner);
        zero(row, (most(to, from) - first) * operand->inner, r.wide_step);
    }
    if (r.length > 0)
        mpl_deal(operand->outer * r.length, 1, operand->outer * r.length / SHARE, dev->n_threads,
                 convert, &r);
}

static void widen_kept(mpl_halves *halves, const mpl_op_call *call)
{
    for (uint32_t k = 0; k < halves->p.n_in; k++) {
        const mpl_half_operand *operand = &halves->p.operand[k];

        if (operand->kept && !operand->cut && call->in[k].data != NULL)
            mpl_half_widen(operand->type, halves->kept + operand->at / sizeof(float),
                           call->in[k].data, mpl_count(&operand->shape));
    }
    halves->is_widened = true;
}

static mpl_status run_piece(mpl_device *dev, mpl_halves *halves, const mpl_op_call *call,
                            int64_t image, int64_t from)
{
    const mpl_half_pieces *pieces = &halves->p;
    bool is_first = image == 0 && from == 0;
    mpl_op_call inner = {halves->g,
                         0,
                         pieces->n_in,
                         pieces->n_out,
                         halves->tensor,
                         halves->tensor + pieces->n_in,
                         (char *)call->workspace + halves->bytes};

    for (uint32_t k = 0; k < pieces->n_in; k++) {
        const mpl_half_operand *operand = &pieces->operand[k];
        float *piece = (float *)(void *)((char *)call->workspace + operand->at);

        if (operand->half && (operand->cut || (is_first && !operand->kept)) &&
            call->in[k].data != NULL)
            move_piece(dev, operand, call->in[k].data, image, from * operand->step - operand->low,
                       operand->piece, piece, false);
    }
    MPL_PASS(halves->inner->run_op(dev, halves->prepared, &inner));
    for (uint32_t i = 0; i < pieces->n_out; i++) {
        const mpl_half_operand *operand = &pieces->operand[pieces->n_in + i];
        float *piece = (float *)(void *)((char *)call->workspace + operand->at);

        if (operand->half && call->out[i].data != NULL)
            move_piece(dev, operand, call->out[i].data, image, from,
                       least(operand->piece, operand->n - from), piece, true);
    }
    return MPL_OK;
}

mpl_status mpl_halves_run(mpl_device *dev, mpl_halves *halves, const mpl_op_call *call)
{
    for (uint32_t k = 0; k < halves->p.n_in + halves->p.n_out; k++) {
        const mpl_half_operand *operand = &halves->p.operand[k];
        void *data = k < halves->p.n_in ? call->in[k].data : call->out[k - halves->p.n_in].data;

        if (data != NULL && operand->half)
            data = operand->kept && !operand->cut ? (char *)halves->kept + operand->at
                                                  : (char *)call->workspace + operand->at;
        halves->tensor[k].data = data;
    }
    if (!halves->is_widened)
        widen_kept(halves, call);
    for (int64_t image = 0; image < halves->p.images; image++)
        for (int64_t from = 0; from < halves->p.n; from += halves->p.piece)
            MPL_PASS(run_piece(dev, halves, call, image, from));
    return MPL_OK;
}
