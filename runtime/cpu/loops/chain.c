/* chain.c -- see chain.h. */
#include "runtime/cpu/loops/chain.h"

#include "graphs/ir/layout.h"
#include "graphs/ops/move/fused.h"
#include "graphs/ops/move/move_strided_priv.h"
#include "runtime/cpu/loops/chain_priv.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    PIECE = 512,       /* elements */
    LONG_ROW = 256,    /* no piece crosses the end of a row this long */
    SHARE = 16 * 1024, /* elements worth a thread of their own */
};

struct mpl_chain {
    mpl_fused f;
    mpl_chain_step *step[MPL_FUSED_STEPS]; /* NULL: a load */
    bool constant[MPL_FUSED_LOADS];        /* a single element */
    int64_t n, row;                        /* elements; those of a row common to all operands */
    bool has_base, overwrites_all;
};

/* ---- preparing ---- */

static bool all_of(const mpl_graph *g, mpl_op op, bool f32)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE &&
            (f32 ? g->value_type[g->op_in[i]] != MPL_TYPE_f32
                 : mpl_type_bytes((mpl_type)g->value_type[g->op_in[i]]) != 4))
            return false;
    return true;
}

static void add_load(mpl_fused *fused, uint32_t input, const mpl_strided *from)
{
    fused->load[fused->n_loads] = (mpl_fused_load){input, *from};
    fused->step[fused->n_steps].kind = MPL_STEP_LOAD;
    fused->step[fused->n_steps++].of = fused->n_loads++;
}

/* Input i, of these dims, broadcast to the result's dims. */
static void add_input(mpl_fused *fused, uint32_t i, const mpl_shape *dims)
{
    mpl_strided from = mpl_strided_all(dims);
    bool fits = mpl_strided_expand(&from, &fused->to.shape);

    mpl_assert(fits);
    (void)fits;
    add_load(fused, i, &from);
}

/* Whether input i of clip is left out, or a number known before the run. */
static bool is_known_bound(const mpl_graph *g, mpl_op op, uint32_t i)
{
    mpl_value v = mpl_op_input(g, op, i);
    float bound;

    if (v == MPL_NONE)
        return true;
    if (g->value_role[v] != MPL_WEIGHT || g->value_data[v] == NULL ||
        g->value_type[v] != MPL_TYPE_f32)
        return false;
    memcpy(&bound, g->value_data[v], sizeof bound);
    return bound == bound;
}

static void read_clip(const mpl_graph *g, mpl_op op, mpl_fused *fused)
{
    static const mpl_op_kind kind[] = {MPL_STEP_LOAD, MPL_OP_max, MPL_OP_min};

    for (uint32_t i = 0; i < 3; i++) {
        if (mpl_op_input(g, op, i) == MPL_NONE)
            continue;
        add_input(fused, i, i > 0 ? &(mpl_shape){0} : &fused->to.shape);
        if (i > 0)
            fused->step[fused->n_steps++].kind = kind[i];
    }
}

/* Whether a single step does what its attributes ask for. */
static bool is_one_step(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    return kind == MPL_OP_gelu ||
           (kind == MPL_OP_swish && mpl_attr_float(g, op, MPL_ATTR_alpha, 1) == 1) ||
           g->op_attr_begin[op] == g->op_attr_begin[op + 1];
}

static mpl_chain_step *step_of(const mpl_graph *g, mpl_op op, mpl_op_kind kind)
{
    const char *way = mpl_attr_text(g, op, MPL_ATTR_approximate, "none");

    return kind == MPL_OP_gelu && strcmp(way, "tanh") == 0
               ? mpl_chain_gelu_tanh(mpl_chain_widest())
               : mpl_chain_step_of(kind, mpl_chain_widest());
}

/* a * b + c, each step rounded. */
static void read_fma(const mpl_graph *g, mpl_op op, mpl_fused *fused)
{
    for (uint32_t i = 0; i < 3; i++) {
        add_input(fused, i, &g->value_shape[mpl_op_input(g, op, i)]);
        if (i > 0)
            fused->step[fused->n_steps++].kind = i == 1 ? MPL_OP_mul : MPL_OP_add;
    }
}

/* Reads the operation as a chain; *is_one: it is one. */
static mpl_status read_chain(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_chain *chain,
                             bool *is_one)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t arity = mpl_fused_arity(kind);
    const mpl_shape *out;
    mpl_strided box;

    *is_one = arity > 0 || kind == MPL_OP_fused || kind == MPL_OP_access || kind == MPL_OP_assign ||
              kind == MPL_OP_fma ||
              (kind == MPL_OP_clip && is_known_bound(g, op, 1) && is_known_bound(g, op, 2));
    if (!*is_one)
        return MPL_OK;
    out = &g->value_shape[g->op_out[g->op_out_begin[op]]];
    if (kind == MPL_OP_fused && all_of(g, op, true)) {
        chain->has_base = mpl_op_input(g, op, 0) != MPL_NONE;
        MPL_PASS(mpl_fused_read(ctx, g, op, &chain->f));
    } else if (kind == MPL_OP_access && all_of(g, op, false)) {
        chain->f.to = mpl_strided_all(out);
        MPL_PASS(mpl_strided_of(ctx, g, op, &g->value_shape[mpl_op_input(g, op, 0)], &box));
        add_load(&chain->f, 0, &box);
    } else if (kind == MPL_OP_assign && all_of(g, op, false)) {
        chain->has_base = true;
        MPL_PASS(mpl_strided_of(ctx, g, op, out, &chain->f.to));
        add_input(&chain->f, 1, &g->value_shape[mpl_op_input(g, op, 1)]);
    } else if (arity > 0 && g->op_in_begin[op + 1] - g->op_in_begin[op] == arity &&
               all_of(g, op, true) && is_one_step(g, op)) {
        chain->f.to = mpl_strided_all(out);
        for (uint32_t i = 0; i < arity; i++)
            add_input(&chain->f, i, &g->value_shape[mpl_op_input(g, op, i)]);
        chain->f.step[chain->f.n_steps++].kind = kind;
    } else if (kind == MPL_OP_clip && all_of(g, op, true)) {
        chain->f.to = mpl_strided_all(out);
        read_clip(g, op, &chain->f);
    } else if (kind == MPL_OP_fma && all_of(g, op, true)) {
        chain->f.to = mpl_strided_all(out);
        read_fma(g, op, &chain->f);
    } else {
        *is_one = false;
    }
    return MPL_OK;
}

/* Length of the common row: the trailing dims over which each operand has one stride. */
static int64_t common_row(const mpl_chain *chain)
{
    const mpl_shape *dims = &chain->f.to.shape;
    int64_t row = 1;
    const mpl_strided *view[MPL_FUSED_LOADS + 1];
    uint32_t n = 0;

    view[n++] = &chain->f.to;
    for (uint32_t i = 0; i < chain->f.n_loads; i++)
        view[n++] = &chain->f.load[i].from;
    for (uint32_t i = dims->rank, last = dims->rank; i-- > 0;) {
        if (dims->dim[i] == 1)
            continue;
        for (uint32_t k = 0; k < n && last < dims->rank; k++)
            if (view[k]->stride[i] != view[k]->stride[last] * dims->dim[last])
                return row;
        row *= dims->dim[i];
        last = i;
    }
    return row;
}

/* Merges dims, but keeps at least two, so that there are rows. Element order stays. */
static void join(mpl_strided *view)
{
    mpl_strided joined, out = {.shape = {2, {1, 1}}};
    uint32_t lead;

    mpl_strided_join(view, &joined);
    lead = joined.shape.rank < 2 ? 2 - joined.shape.rank : 0;
    out.offset = joined.offset;
    out.shape.rank = joined.shape.rank + lead;
    for (uint32_t i = 0; i < joined.shape.rank; i++) {
        out.shape.dim[lead + i] = joined.shape.dim[i];
        out.stride[lead + i] = joined.stride[i];
    }
    *view = out;
}

static bool is_constant(const mpl_strided *view)
{
    for (uint32_t i = 0; i < view->shape.rank; i++)
        if (view->shape.dim[i] > 1 && view->stride[i] != 0)
            return false;
    return true;
}

/* View of a whole operand as it lies, broadcast to a result of dims `to`. */
static void lay(mpl_strided *view, const mpl_shape *shape, const int64_t *stride, bool last)
{
    static const uint32_t order[MPL_MAX_RANK] = {0, 2, 3, 1};
    bool turned = true;

    *view = mpl_strided_all(shape);
    if (last && stride == NULL) {
        const mpl_shape lies = {4, {shape->dim[0], shape->dim[2], shape->dim[3], shape->dim[1]}};

        *view = mpl_strided_all(&lies);
        return;
    }
    if (stride != NULL)
        memcpy(view->stride, stride, sizeof view->stride);
    if (last)
        turned = mpl_strided_permute(view, order);
    mpl_assert(turned);
    (void)turned;
}

/* Number of operands of a single operation, without the bounds of a clip. 0: another chain, whose
 * boxes stay as they are. */
static uint32_t n_operands(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    return kind == MPL_OP_clip ? 1 : kind == MPL_OP_fma ? 3 : mpl_fused_arity(kind);
}

/* Whether nothing is broadcast: all operands have the same dims. */
static bool is_even(const mpl_graph *g, mpl_op op)
{
    uint32_t n = n_operands(g, op);

    for (uint32_t i = 0; i < n; i++)
        if (!mpl_shape_equal(&g->value_shape[mpl_op_input(g, op, i)],
                             &g->value_shape[mpl_op_output(g, op, 0)]))
            return false;
    return n > 0;
}

/* The chain over channels-last images, in memory order; a broadcast operand may be row-major.
 * False: it has more than one operation. */
static bool turn_chain(const mpl_graph *g, mpl_op op, mpl_chain *chain)
{
    static const uint32_t order[MPL_MAX_RANK] = {0, 2, 3, 1};
    uint32_t n = n_operands(g, op);
    bool fits = n > 0 && chain->f.to.shape.rank == 4;

    if (fits)
        lay(&chain->f.to, &g->value_shape[mpl_op_output(g, op, 0)], NULL, true);
    for (uint32_t i = 0; i < chain->f.n_loads && fits; i++) {
        mpl_value v = mpl_op_input(g, op, chain->f.load[i].input);

        if (mpl_channels_last(g, v)) {
            lay(&chain->f.load[i].from, &g->value_shape[v], NULL, true);
            fits = mpl_strided_expand(&chain->f.load[i].from, &chain->f.to.shape);
        } else {
            fits = mpl_strided_permute(&chain->f.load[i].from, order);
        }
    }
    return fits;
}

/* The chain over strided operands; false: it broadcasts. */
static bool stride_chain(const mpl_graph *g, mpl_op op, const int64_t *const *stride, bool last,
                         mpl_chain *chain)
{
    uint32_t n_in = mpl_op_n_in(g, op);
    const mpl_shape *out = &g->value_shape[mpl_op_output(g, op, 0)];

    if (!is_even(g, op) || (last && out->rank != 4))
        return false;
    for (uint32_t i = 0; i < n_operands(g, op); i++)
        lay(&chain->f.load[i].from, out, stride[i], last);
    lay(&chain->f.to, out, stride[n_in], last);
    return true;
}

mpl_status mpl_chain_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const int64_t *const *stride,
                         bool last, mpl_chain **out, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_chain *chain = NULL;
    bool is_one;

    *out = NULL;
    MPL_TRY(mpl_new(ctx, chain, 1));
    MPL_TRY(read_chain(ctx, g, op, chain, &is_one));
    for (uint32_t i = 0; i < chain->f.n_steps; i++)
        if (chain->f.step[i].kind != MPL_STEP_LOAD)
            chain->step[i] = step_of(g, op, chain->f.step[i].kind);
    if (!is_one || (stride != NULL && !stride_chain(g, op, stride, last, chain)) ||
        (stride == NULL && last && !turn_chain(g, op, chain)))
        goto out;
    chain->n = mpl_count(&chain->f.to.shape);
    chain->overwrites_all = mpl_strided_whole(
        &chain->f.to, (uint64_t)mpl_count(&g->value_shape[g->op_out[g->op_out_begin[op]]]));
    if (chain->n > 0) {
        chain->row = common_row(chain);
        join(&chain->f.to);
        for (uint32_t i = 0; i < chain->f.n_loads; i++) {
            join(&chain->f.load[i].from);
            chain->constant[i] = is_constant(&chain->f.load[i].from);
        }
    }
    if (how != NULL)
        *how = mpl_chain_how[mpl_chain_widest()];
    *out = chain, chain = NULL;
out:
    mpl_free(ctx, chain);
    return st;
}

void mpl_chain_free(mpl_ctx *ctx, mpl_chain *chain)
{
    mpl_free(ctx, chain);
}

/* ---- elements between memory and pieces ---- */

/* Progress of a walk over a joined view. */
typedef struct cursor {
    const mpl_strided *view;
    int64_t index[MPL_MAX_RANK], offset; /* of the next element */
} cursor;

static void cursor_set(cursor *self, const mpl_strided *view, int64_t at)
{
    self->view = view;
    self->offset = view->offset;
    for (uint32_t i = view->shape.rank; i-- > 0; at /= view->shape.dim[i]) {
        self->index[i] = at % view->shape.dim[i];
        self->offset += self->index[i] * view->stride[i];
    }
}

/* Advances n steps along dim i, at most to its end. */
static void cursor_pass(cursor *self, uint32_t i, int64_t n)
{
    const mpl_strided *view = self->view;

    self->index[i] += n;
    self->offset += n * view->stride[i];
    while (self->index[i] == view->shape.dim[i] && i > 0) {
        self->offset += view->stride[i - 1] - self->index[i] * view->stride[i];
        self->index[i] = 0;
        self->index[--i]++;
    }
}

/* Whether the next n elements are contiguous. */
static bool in_a_row(const cursor *self, int64_t n)
{
    uint32_t last = self->view->shape.rank - 1;

    return self->view->stride[last] == 1 && self->view->shape.dim[last] - self->index[last] >= n;
}

/* One element after another; `into` is the piece. */
#define MOVE_ONE(into, from)                                                                       \
    do {                                                                                           \
        if (out)                                                                                   \
            from = into;                                                                           \
        else                                                                                       \
            into = from;                                                                           \
    } while (0)

/* Rows of n elements, `row` apart in memory and contiguous in a piece. */
INLINE void move_rows(float *restrict piece, float *restrict memory, int64_t row, int64_t n_rows,
                      size_t n, bool out)
{
    for (int64_t r = 0; r < n_rows; r++)
        memcpy(out ? memory + r * row : piece + r * (int64_t)n,
               out ? piece + r * (int64_t)n : memory + r * row, n * sizeof *piece);
}

/* The same for elements that are `step` apart in memory. */
INLINE void move_apart(float *restrict piece, float *restrict memory, int64_t row, int64_t step,
                       int64_t n_rows, int64_t n, bool out)
{
    if (n_rows > 1 && (row == 1 || n < 8)) { /* along the rows */
        for (int64_t k = 0; k < n; k++) {
            float *column = memory + k * step;

            if (row == 1) /* the processor does not detect side-by-side columns */
                __builtin_prefetch(column + n_rows + 15);
            for (int64_t r = 0; r < n_rows; r++)
                MOVE_ONE(piece[r * n + k], column[r * row]);
        }
        return;
    }
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t k = 0; k < n; k++)
            MOVE_ONE(piece[r * n + k], memory[r * row + k * step]);
}

INLINE void move(float *restrict piece, float *restrict memory, int64_t row, int64_t step,
                 int64_t n_rows, int64_t n, bool out)
{
    if (n == 1) {
        move_apart(piece, memory, 0, row, 1, n_rows, out);
    } else if (step != 1) {
        move_apart(piece, memory, row, step, n_rows, n, out);
    } else { /* with a constant size it is one load and one store */
        switch (n) {
        case 2:
            move_rows(piece, memory, row, n_rows, 2, out);
            break;
        case 4:
            move_rows(piece, memory, row, n_rows, 4, out);
            break;
        default:
            move_rows(piece, memory, row, n_rows, (size_t)n, out);
        }
    }
}

/* Moves the next n elements between a piece and memory, whole rows together. */
INLINE void move_run(cursor *self, float *piece, float *data, int64_t n, bool out)
{
    const mpl_strided *view = self->view;
    uint32_t last = view->shape.rank - 1;

    while (n > 0) {
        int64_t len = view->shape.dim[last],
                run = len - self->index[last] < n ? len - self->index[last] : n;
        int64_t n_rows = 1, left = view->shape.dim[last - 1] - self->index[last - 1];

        if (run == len)
            n_rows = n / len < left ? n / len : left;
        move(piece, data + self->offset, view->stride[last - 1], view->stride[last], n_rows, run,
             out);
        if (run == len)
            cursor_pass(self, last - 1, n_rows);
        else
            cursor_pass(self, last, run);
        piece += n_rows * run;
        n -= n_rows * run;
    }
}

static void gather(cursor *self, float *piece, const float *data, int64_t n)
{
    move_run(self, piece, (float *)data, n, false);
}

static void scatter(cursor *self, float *piece, float *data, int64_t n)
{
    move_run(self, piece, data, n, true);
}

/* ---- running ---- */

typedef struct job {
    const mpl_chain *chain;
    const mpl_op_call *call;
    bool reads_result; /* a load reads the memory that the result goes to */
} job;

/* Buffers of one thread. */
typedef struct desk {
    float constant[MPL_FUSED_LOADS][PIECE]; /* of loads of a single element */
    float room[MPL_FUSED_DEPTH + 1][PIECE]; /* one for each place on the stack, and one spare */
    cursor load[MPL_FUSED_LOADS], to;
} desk;

/* The next n elements. */
static void do_piece(const job *self, desk *d, int64_t n)
{
    const mpl_chain *chain = self->chain;
    float *own[MPL_FUSED_DEPTH + 1], *out = self->call->out[0].data, *straight = NULL;
    const float *stack[MPL_FUSED_DEPTH] = {NULL};
    uint32_t depth = 0;

    for (uint32_t i = 0; i <= MPL_FUSED_DEPTH; i++)
        own[i] = d->room[i];
    if (!self->reads_result && in_a_row(&d->to, n))
        straight = out + d->to.offset;
    for (uint32_t i = 0; i < chain->f.n_steps; i++) {
        uint32_t load = chain->f.step[i].of, arity;
        const float *data;
        float *made;

        if (chain->step[i] == NULL) {
            data = self->call->in[chain->f.load[load].input].data;
            if (chain->constant[load]) {
                stack[depth] = d->constant[load];
            } else if (in_a_row(&d->load[load], n)) {
                stack[depth] = data + d->load[load].offset;
                cursor_pass(&d->load[load], d->load[load].view->shape.rank - 1, n);
            } else {
                gather(&d->load[load], own[depth], data, n);
                stack[depth] = own[depth];
            }
            depth++;
            continue;
        }
        arity = mpl_fused_arity(chain->f.step[i].kind);
        depth -= arity;
        made = straight != NULL && i + 1 == chain->f.n_steps ? straight : own[MPL_FUSED_DEPTH];
        chain->step[i](made, stack[depth], stack[depth + arity - 1], n);
        own[MPL_FUSED_DEPTH] = own[depth];
        own[depth] = made;
        stack[depth++] = made;
    }
    if (straight == NULL || stack[0] != straight)
        scatter(&d->to, (float *)stack[0], out, n);
    else
        cursor_pass(&d->to, d->to.view->shape.rank - 1, n);
}

/* Elements [from, to). */
static void do_range(const void *arg, int64_t from, int64_t to)
{
    const job *j = arg;
    const mpl_chain *chain = j->chain;
    desk d;

    for (uint32_t i = 0; i < chain->f.n_loads; i++) {
        const float *data = j->call->in[chain->f.load[i].input].data;

        for (int64_t k = 0; k < PIECE && chain->constant[i]; k++)
            d.constant[i][k] = data[chain->f.load[i].from.offset];
        cursor_set(&d.load[i], &chain->f.load[i].from, from);
    }
    cursor_set(&d.to, &chain->f.to, from);
    for (int64_t at = from, n; at < to; at += n) {
        n = to - at < PIECE ? to - at : PIECE;
        if (chain->row >= LONG_ROW && chain->row - at % chain->row < n)
            n = chain->row - at % chain->row;
        do_piece(j, &d, n);
    }
}

void mpl_chain_run(const mpl_chain *chain, const mpl_op_call *call, uint32_t n_threads)
{
    job j = {.chain = chain, .call = call};
    const mpl_tensor *out = &call->out[0];

    if (chain->has_base && call->in[0].data != out->data && !chain->overwrites_all)
        memcpy(out->data, call->in[0].data,
               (size_t)mpl_count(&out->shape) * mpl_type_bytes(out->type));
    if (chain->n == 0)
        return;
    for (uint32_t i = 0; i < chain->f.n_loads; i++)
        j.reads_result = j.reads_result || call->in[chain->f.load[i].input].data == out->data;
    mpl_deal(chain->n, PIECE, chain->n / SHARE, n_threads, do_range, &j);
}

/* ---- activations ---- */

typedef struct activation_job {
    mpl_chain_step *relu, *min; /* min: NULL if there is no upper bound */
    float *y;
} activation_job;

static void activate_range(const void *arg, int64_t from, int64_t to)
{
    const activation_job *j = arg;
    float piece[PIECE], six[PIECE];

    for (int64_t k = 0; k < PIECE && j->min != NULL; k++)
        six[k] = 6;
    for (int64_t at = from, n; at < to; at += n) {
        n = to - at < PIECE ? to - at : PIECE;
        j->relu(piece, j->y + at, j->y + at, n);
        if (j->min != NULL)
            j->min(j->y + at, piece, six, n);
        else
            memcpy(j->y + at, piece, (size_t)n * sizeof *piece);
    }
}

void mpl_chain_activate(mpl_activation activation, float *y, int64_t n, uint32_t n_threads)
{
    mpl_chain_width width = mpl_chain_widest();
    activation_job j = {.relu = mpl_chain_step_of(MPL_OP_relu, width), .y = y};

    j.min = activation == MPL_ACT_RELU6 ? mpl_chain_step_of(MPL_OP_min, width) : NULL;
    mpl_deal(n, PIECE, n / SHARE, n_threads, activate_range, &j);
}
