/* kernels.cu -- our own device kernels. See kernels.h.
 *
 * Written in the common subset of C11 and CUDA C++. nvcc compiles it for devices;
 * tests/device/cuda_fake.c includes it with other definitions of KERNEL, DEVICE, SHARED and LAUNCH,
 * which run every thread of every block in turn on the host. So indices and arithmetic are tested
 * without a device.
 *
 * Sums are kept in double and combined in a fixed order: outputs repeat bit for bit. Branches on
 * element types are the same for all threads of a launch. */
#include "runtime/cuda/kernels_priv.h"

/* ---- element-wise ---- */

/* A remainder with the sign of x, as in C, or with that of z, as in Python; 0 if z is 0. */
DEVICE int64_t int_mod(int64_t x, int64_t z, int like_c)
{
    int64_t rest = z == 0 || z == -1 ? 0 : x % z;

    return !like_c && rest != 0 && (rest < 0) != (z < 0) ? rest + z : rest;
}

#define REAL_ONE(name, value)
#define REAL_TWO(name, value)

DEVICE int64_t int_one_operand(int kind, int64_t x)
{
    switch (kind) {
#define INT_ONE(name, value)                                                                   \
    case MPL_OP_##name: return value;
#define INT_TWO(name, value)
#include "runtime/cuda/kernels_elementwise.def"
#undef INT_ONE
#undef INT_TWO
    default:
        return x;
    }
}

DEVICE int64_t int_two_operands(int kind, int64_t flag, int64_t x, int64_t z)
{
    switch (kind) {
#define INT_ONE(name, value)
#define INT_TWO(name, value)                                                                   \
    case MPL_OP_##name: return value;
#include "runtime/cuda/kernels_elementwise.def"
#undef INT_ONE
#undef INT_TWO
    default:
        return x;
    }
}

#undef REAL_ONE
#undef REAL_TWO

/* fma, the only operator of three integers. */
DEVICE int64_t int_three_operands(const mpl_cuda_kernel *k, int64_t x, int64_t y, int64_t z)
{
    (void)k;
    return (int64_t)((uint64_t)x * (uint64_t)y + (uint64_t)z);
}

#define real       float
#define F(name)    name##f
#define REAL(name) float_##name
#include "runtime/cuda/kernels_real.h"

#define real       double
#define F(name)    name
#define REAL(name) double_##name
#include "runtime/cuda/kernels_real.h"

/* The offset of each operand's element for element i of the output. */
DEVICE void elementwise_offsets(const mpl_cuda_kernel *k, int64_t i, int64_t *offset)
{
    const mpl_cuda_elementwise *e = &k->as.elementwise;

    for (int n = 0; n < k->n_in; n++)
        offset[n] = 0;
    for (int d = e->rank - 1; d >= 0; d--) {
        int64_t index = d > 0 ? last_index(&i, e->dim[d]) : i;

        for (int n = 0; n < k->n_in; n++)
            offset[n] += index * e->stride[n][d];
    }
}

/* One element. where, clip and its gradient, fma and div_sqrt have operands of different kinds; the
 * others have one, or fold several. */
#define ELEMENTWISE(name, number, family, get_one, put_one, one_operand, two_operands)             \
    KERNEL name(const mpl_cuda_kernel k)                                                           \
    {                                                                                              \
        FOR_EACH(i, k.n)                                                                           \
        {                                                                                          \
            int64_t at[MPL_CUDA_MAX_IN];                                                           \
            int first = 0;                                                                         \
            number x, z;                                                                           \
                                                                                                   \
            elementwise_offsets(&k, i, at);                                                        \
            if (k.kind == MPL_OP_where)                                                            \
                first = get_int(MPL_TYPE_bool, k.in[0], at[0]) != 0 ? 1 : 2;                       \
            x = get_one(k.type[first], k.in[first], at[first]);                                    \
            if (k.kind == MPL_OP_clip) {                                                           \
                z = k.in[1] != NULL ? get_one(k.type[1], k.in[1], at[1]) : x;                      \
                x = x < z ? z : x;                                                                 \
                z = k.in[2] != NULL ? get_one(k.type[2], k.in[2], at[2]) : x;                      \
                x = x > z ? z : x;                                                                 \
            } else if (k.kind == MPL_OP_clip_grad) {                                               \
                z = get_one(k.type[1], k.in[1], at[1]);                                            \
                if ((k.in[2] != NULL && !(z > get_one(k.type[2], k.in[2], at[2]))) ||              \
                    (k.in[3] != NULL && !(z < get_one(k.type[3], k.in[3], at[3]))))                \
                    x = 0;                                                                         \
            } else if (k.kind == MPL_OP_fma || k.kind == MPL_OP_div_sqrt) {                        \
                z = k.kind == MPL_OP_fma ? get_one(k.type[2], k.in[2], at[2]) : 0;                 \
                x = family##_three_operands(&k, x, get_one(k.type[1], k.in[1], at[1]), z);         \
            } else if (k.n_in == 1) {                                                              \
                x = one_operand(x);                                                                \
            } else if (first == 0) {                                                               \
                for (int n = 1; n < k.n_in; n++)                                                   \
                    x = two_operands(x, get_one(k.type[n], k.in[n], at[n]));                       \
            }                                                                                      \
            if (k.kind == MPL_OP_mean)                                                             \
                x = x / (number)k.as.elementwise.flag;                                             \
            put_one(k.out_type, k.out[0], i, x);                                                   \
        }                                                                                          \
    }

#define FLOAT_ONE(x)     float_one_operand(&k.as.elementwise, k.kind, x)
#define DOUBLE_ONE(x)    double_one_operand(&k.as.elementwise, k.kind, x)
#define WHOLE_ONE(x)     int_one_operand(k.kind, x)
#define FLOAT_TWO(x, z)  float_two_operands(k.kind, x, z)
#define DOUBLE_TWO(x, z) double_two_operands(k.kind, x, z)
#define WHOLE_TWO(x, z)  int_two_operands(k.kind, k.as.elementwise.flag, x, z)
ELEMENTWISE(elementwise_float, float, float, get_float, put_float, FLOAT_ONE, FLOAT_TWO)
ELEMENTWISE(elementwise_double, double, double, get, put, DOUBLE_ONE, DOUBLE_TWO)
ELEMENTWISE(elementwise_int, int64_t, int, get_int, put_int, WHOLE_ONE, WHOLE_TWO)

/* A chain in one pass over the elements; each step is rounded as the operator alone would round it.
 * The written box may also be read: one thread handles both accesses to an element. */
#define FUSED(name, real, get_one, put_one, round)                                                 \
    KERNEL name(const mpl_cuda_kernel k)                                                           \
    {                                                                                              \
        const mpl_cuda_fused *f = &k.as.fused;                                                     \
                                                                                                   \
        FOR_EACH(i, k.n)                                                                           \
        {                                                                                          \
            real stack[MPL_CUDA_MAX_STACK];                                                        \
            int depth = 0;                                                                         \
                                                                                                   \
            for (int s = 0; s < f->n_steps; s++) {                                                 \
                int step = f->step[s], load = -1 - step;                                           \
                                                                                                   \
                if (step < 0) {                                                                    \
                    stack[depth++] =                                                               \
                        get_one(k.out_type, k.in[load],                                            \
                                f->offset[load] + offset_of(i, f->rank, f->dim, f->stride[load])); \
                } else if (takes_two(step)) {                                                      \
                    depth--;                                                                       \
                    stack[depth - 1] =                                                             \
                        round(real##_two_operands(step, stack[depth - 1], stack[depth]));          \
                } else {                                                                           \
                    stack[depth - 1] = round(                                                      \
                        real##_one_operand(&k.as.elementwise, step, stack[depth - 1]));            \
                }                                                                                  \
            }                                                                                      \
            put_one(k.out_type, k.out[0], f->to_offset + offset_of(i, f->rank, f->dim,             \
                f->to_stride),                                                                     \
                    stack[0]);                                                                     \
        }                                                                                          \
    }

/* Whether a chain's operator is binary (mpl_fused_arity). */
DEVICE int takes_two(int kind)
{
    switch (kind) {
    case MPL_OP_add:
    case MPL_OP_sub:
    case MPL_OP_mul:
    case MPL_OP_div:
    case MPL_OP_min:
    case MPL_OP_max:
        return 1;
    default:
        return 0;
    }
}

/* Rounds to the type of the elements if it is narrower than float. */
DEVICE float narrowed(int type, float x)
{
    if (type == MPL_TYPE_f16)
        return (float)from_f16(to_f16((double)x));
    return type == MPL_TYPE_bf16 ? (float)from_bf16(to_bf16((double)x)) : x;
}

#define NARROWED(x) narrowed(k.out_type, x)
#define AS_IT_IS(x) (x)
FUSED(fused_float, float, get_float, put_float, NARROWED)
FUSED(fused_double, double, get, put, AS_IT_IS)

/* Integers to floating types, each rounded once. */
KERNEL cast_from_int(const mpl_cuda_kernel k)
{
    FOR_EACH(i, k.n)
    {
        int64_t x = get_int(k.type[0], k.in[0], i);

        if (k.out_type == MPL_TYPE_f32)
            ((float *)k.out[0])[i] = (float)x;
        else
            put(k.out_type, k.out[0], i, (double)x);
    }
}

/* x, scale, bias, mean, variance: (x - mean) * scale / sqrt(variance + epsilon) + bias. */
KERNEL batch_norm(const mpl_cuda_kernel k)
{
    FOR_EACH(i, k.n)
    {
        int64_t at[MPL_CUDA_MAX_IN];
        double factor, mean, bias;

        elementwise_offsets(&k, i, at);
        factor = get(k.type[1], k.in[1], at[1]) / sqrt(get(k.type[4], k.in[4],
            at[4]) + k.as.elementwise.alpha);
        mean = get(k.type[3], k.in[3], at[3]);
        bias = get(k.type[2], k.in[2], at[2]);
        put(k.out_type, k.out[0], i, (get(k.type[0], k.in[0], at[0]) - mean) * factor + bias);
    }
}

/* ---- moving elements ---- */

KERNEL move(const mpl_cuda_kernel k)
{
    const mpl_cuda_move *m = &k.as.move;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, to = 0, from = 0;

        for (int d = m->rank - 1; d >= 0; d--) {
            int64_t index = d > 0 ? last_index(&rest, m->dim[d]) : rest;

            to += index * m->to_stride[d];
            from += index * m->from_stride[d];
        }
        copy_element(m->bytes, k.out[0], to, k.in[0], from);
    }
}

KERNEL fill_bytes(const mpl_cuda_kernel k)
{
    FOR_EACH(i, k.n)
    ((uint8_t *)k.out[0])[i] = (uint8_t)k.as.byte;
}

/* An index out of range raises the flag and gives element 0 of the axis. */
KERNEL gather(const mpl_cuda_kernel k)
{
    const mpl_cuda_gather *g = &k.as.gather;

    FOR_EACH(i, k.n)
    {
        int64_t batch = i, inner = last_index(&batch, g->inner);
        int64_t index = get_int(k.type[1], k.in[1], last_index(&batch, g->n_index));

        if (index < -g->axis_dim || index >= g->axis_dim) {
            *k.flag = 1; /* all threads that write it write the same */
            index = 0;
        }
        index += index < 0 ? g->axis_dim : 0;
        copy_element(g->bytes, k.out[0], i, k.in[0],
                     (batch * g->axis_dim + index) * g->inner + inner);
    }
}

/* ---- reductions: one block for each output ---- */

DEVICE fold fold_of(int kind)
{
    switch (kind) {
    case MPL_OP_reduce_max:
    case MPL_OP_global_max_pool:
        return FOLD_MOST;
    case MPL_OP_reduce_min:
        return FOLD_LEAST;
    case MPL_OP_reduce_prod:
        return FOLD_PRODUCT;
    default:
        return FOLD_SUM;
    }
}

KERNEL reduce(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_reduce *r = &k.as.reduce;
    const fold how = fold_of(k.kind);
    const int squares = k.kind == MPL_OP_reduce_l2 || k.kind == MPL_OP_reduce_sum_square;

    for (int64_t o = blockIdx.x; o < k.n; o += gridDim.x) {
        int64_t base = offset_of(o, r->n_kept, r->kept_dim, r->kept_stride);
        double x = how == FOLD_PRODUCT ? 1
                   : how == FOLD_MOST  ? -INFINITY
                   : how == FOLD_LEAST ? INFINITY
                                       : 0;

        for (int64_t j = threadIdx.x; j < r->n; j += blockDim.x) {
            int64_t at = base + offset_of(j, r->n_reduced, r->reduced_dim, r->reduced_stride);
            double v = get(k.type[0], k.in[0], at);

            x = combine(how, x, squares ? v * v : k.kind == MPL_OP_reduce_l1 ? fabs(v) : v);
        }
        x = block_fold(how, room, x);
        if (k.kind == MPL_OP_reduce_mean || k.kind == MPL_OP_global_avg_pool)
            x = r->n > 0 || k.kind == MPL_OP_reduce_mean ? x / (double)r->n : 0;
        else if (k.kind == MPL_OP_reduce_l2)
            x = sqrt(x);
        if (threadIdx.x == 0)
            put(k.out_type, k.out[0], o, x * r->factor);
    }
}

/* ---- lanes ---- */

/* softmax, log_softmax, hardmax: a block for each lane; a thread writes what it read. */
KERNEL softmax(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_lanes *l = &k.as.lanes;

    for (int64_t lane = blockIdx.x; lane < k.n; lane += gridDim.x) {
        int64_t base = lane_base(&k, lane);
        double most = -INFINITY, sum = 0, first = INFINITY;

        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x)
            most = combine(FOLD_MOST, most, get(k.type[0], k.in[0], base + i * l->inner));
        most = block_fold(FOLD_MOST, room, most);
        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x) {
            double x = get(k.type[0], k.in[0], base + i * l->inner);

            sum += exp(x - most);
            first = (x == most || x != x) && (double)i < first ? (double)i : first;
        }
        sum = block_fold(FOLD_SUM, room, sum);
        first = block_fold(FOLD_LEAST, room, first);
        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x) {
            double x = get(k.type[0], k.in[0], base + i * l->inner);

            put(k.out_type, k.out[0], base + i * l->inner,
                k.kind == MPL_OP_softmax       ? exp(x - most) / sum
                : k.kind == MPL_OP_log_softmax ? x - most - log(sum)
                                               : (double)((double)i == first));
        }
    }
}

/* ---- normalisation ---- */

/* layer_norm, rms_norm, instance_norm, group_norm: one block for each row. */
KERNEL norm(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_norm *m = &k.as.norm;

    for (int64_t row = blockIdx.x; row < k.n; row += gridDim.x) {
        int64_t base = row * m->n;
        double mean = 0, squares = 0, inverse;

        for (int64_t i = threadIdx.x; i < m->n && m->about_mean; i += blockDim.x)
            mean += get(k.type[0], k.in[0], base + i);
        if (m->about_mean)
            mean = block_fold(FOLD_SUM, room, mean) / (double)m->n;
        for (int64_t i = threadIdx.x; i < m->n; i += blockDim.x) {
            double distance = get(k.type[0], k.in[0], base + i) - mean;

            squares += distance * distance;
        }
        inverse = 1 / sqrt(block_fold(FOLD_SUM, room, squares) / (double)m->n + m->epsilon);
        for (int64_t i = threadIdx.x; i < m->n; i += blockDim.x) {
            double x = (get(k.type[0], k.in[0], base + i) - mean) * inverse;

            if (k.in[1] != NULL)
                x *= get(k.type[1], k.in[1], offset_of(base + i, m->rank, m->dim, m->stride[0]));
            if (k.in[2] != NULL)
                x += get(k.type[2], k.in[2], offset_of(base + i, m->rank, m->dim, m->stride[1]));
            put(k.out_type, k.out[0], base + i, x);
        }
        if (threadIdx.x == 0 && k.out[1] != NULL)
            put(MPL_TYPE_f32, k.out[1], row, mean);
        if (threadIdx.x == 0 && k.out[2] != NULL)
            put(MPL_TYPE_f32, k.out[2], row, inverse);
    }
}

KERNEL lrn(const mpl_cuda_kernel k)
{
    const mpl_cuda_lrn *l = &k.as.lrn;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, inner = last_index(&rest, l->inner), c = last_index(&rest, l->channels);
        int64_t base = rest * l->channels * l->inner + inner;
        int64_t first = c > l->below ? c - l->below : 0;
        int64_t end = l->channels - c > l->above ? c + l->above + 1 : l->channels;
        double squares = 0;

        for (int64_t j = first; j < end; j++) {
            double v = get(k.type[0], k.in[0], base + j * l->inner);

            squares += v * v;
        }
        put(k.out_type, k.out[0], i,
            get(k.type[0], k.in[0], i) / pow(l->bias + l->factor * squares, l->beta));
    }
}

/* ---- windows ---- */

/* One thread for each output of max_pool or avg_pool. Output 1 receives the position of the largest
 * element in x; -1: none. */
KERNEL pool(const mpl_cuda_kernel k)
{
    const mpl_cuda_window *w = &k.as.window;
    const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2],
        plane = w->in[0] * w->in[1] * w->in[2];

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, o2 = last_index(&rest, w->out[2]), o1 = last_index(&rest, w->out[1]);
        int64_t o0 = last_index(&rest, w->out[0]), n = 0, where = -1;
        double value = 0;

        for (int64_t t = 0; t < taps; t++) {
            int64_t z = seen_by(w, 0, o0, t / w->kernel[2] / w->kernel[1]);
            int64_t y = seen_by(w, 1, o1, t / w->kernel[2] % w->kernel[1]);
            int64_t x = seen_by(w, 2, o2, t % w->kernel[2]);
            double v;

            if (z < 0 || y < 0 || x < 0)
                continue;
            v = get(k.type[0], k.in[0], rest * plane + (z * w->in[1] + y) * w->in[2] + x);
            if (k.kind == MPL_OP_max_pool && (n == 0 || v > value || (v != v && value == value))) {
                value = v;
                where = rest * plane + (w->column_major ? (x * w->in[1] + y) * w->in[0] + z
                                                        : (z * w->in[1] + y) * w->in[2] + x);
            }
            if (k.kind != MPL_OP_max_pool)
                value += v;
            n++;
        }
        if (k.kind == MPL_OP_max_pool) {
            value = n > 0 ? value : is_float(k.out_type) ? -INFINITY : (double)lowest(k.out_type);
            if (k.out[1] != NULL)
                ((int64_t *)k.out[1])[i] = where;
        } else {
            if (w->counts_pads)
                n = padded_count(w, 0, o0) * padded_count(w, 1, o1) * padded_count(w, 2, o2);
            value = n > 0 ? value / (double)n : 0;
        }
        put(k.out_type, k.out[0], i, value);
    }
}

/* ---- products ---- */

/* One thread for each element, in floating arithmetic: for products that cuBLAS does not take. */
KERNEL product(const mpl_cuda_kernel k)
{
    const mpl_cuda_product *p = &k.as.product;

    FOR_EACH(at, k.n)
    {
        int64_t rest = at, j = last_index(&rest, p->columns), i = last_index(&rest, p->rows);
        int64_t a = offset_of(rest, p->rank, p->dim, p->a_stack) + i * p->a_row;
        int64_t b = offset_of(rest, p->rank, p->dim, p->b_stack) + j * p->b_column;
        double sum = 0;

        for (int64_t t = 0; t < p->terms; t++)
            sum += get(k.type[0], k.in[0], a + t * p->a_column) *
                   get(k.type[1], k.in[1], b + t * p->b_row);
        sum *= p->alpha;
        if (k.in[2] != NULL)
            sum += p->beta * get(k.type[2], k.in[2], i * p->c_row + j * p->c_column);
        if (k.in[3] != NULL) /* its own element of the output, if they share memory */
            sum += get(k.type[3], k.in[3], at);
        put(k.out_type, k.out[0], at, sum < p->least ? p->least : sum > p->most ? p->most : sum);
    }
}

/* ---- launching ---- */

static void launch_elementwise(const mpl_cuda_kernel *k, int64_t blocks, void *stream)
{
    int type = k->kind == MPL_OP_where ? k->type[1] : k->type[0];
    int from_int = type > MPL_TYPE_bf16, to_float = k->out_type <= MPL_TYPE_bf16;

    if (k->kind == MPL_OP_batch_norm)
        LAUNCH(batch_norm, blocks, THREADS, stream, *k);
    else if (k->kind == MPL_OP_cast && from_int && to_float)
        LAUNCH(cast_from_int, blocks, THREADS, stream, *k);
    else if (type == MPL_TYPE_f64 || (k->kind == MPL_OP_cast && !from_int))
        LAUNCH(elementwise_double, blocks, THREADS, stream, *k);
    else if (from_int)
        LAUNCH(elementwise_int, blocks, THREADS, stream, *k);
    else
        LAUNCH(elementwise_float, blocks, THREADS, stream, *k);
}

/* A box copied onto itself: what assign, scatter and fused keep of input 0 in place. */
static int moves_nothing(const mpl_cuda_kernel *k)
{
    const mpl_cuda_move *m = &k->as.move;

    for (int d = 0; d < m->rank; d++)
        if (m->to_stride[d] != m->from_stride[d])
            return 0;
    return k->in[0] == k->out[0];
}

int mpl_cuda_launch(const mpl_cuda_kernel *k, void *stream)
{
    if (k->n == 0 || (k->id == MPL_CUDA_MOVE && moves_nothing(k)))
        return 0;
    switch (k->id) {
    case MPL_CUDA_ELEMENTWISE:
        launch_elementwise(k, blocks_for(k->n, THREADS), stream);
        break;
    case MPL_CUDA_FUSED:
        if (k->out_type == MPL_TYPE_f64)
            LAUNCH(fused_double, blocks_for(k->n, THREADS), THREADS, stream, *k);
        else
            LAUNCH(fused_float, blocks_for(k->n, THREADS), THREADS, stream, *k);
        break;
    EACH(MPL_CUDA_MOVE, move);
    EACH(MPL_CUDA_FILL, fill_bytes);
    EACH(MPL_CUDA_GATHER, gather);
    BLOCKS(MPL_CUDA_REDUCE, reduce, k->as.reduce.n);
    BLOCKS(MPL_CUDA_SOFTMAX, softmax, k->as.lanes.n);
    BLOCKS(MPL_CUDA_NORM, norm, k->as.norm.n);
    EACH(MPL_CUDA_LRN, lrn);
    EACH(MPL_CUDA_POOL, pool);
    EACH(MPL_CUDA_PRODUCT, product);
    default:
        mpl_cuda_launch_train(k, stream);
    }
#ifdef __CUDACC__
    return (int)cudaGetLastError();
#else
    return 0;
#endif
}
