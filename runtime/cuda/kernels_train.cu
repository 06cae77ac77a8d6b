/* kernels_train.cu -- device kernels of training: gradients, batch norm, dropout, the loss,
 * updates. See kernels.cu.
 *
 * Each result gathers its own contributions, in the order of the reference loops. So no two threads
 * add to the same memory. */
#include "runtime/cuda/kernels_priv.h"

/* x rounded to an element type. */
DEVICE double rounded(int type, double x)
{
    switch (type) {
    case MPL_TYPE_f32:
        return (double)(float)x;
    case MPL_TYPE_f16:
        return from_f16(to_f16(x));
    case MPL_TYPE_bf16:
        return from_bf16(to_bf16(x));
    default:
        return x;
    }
}

/* ---- pooling ---- */

/* The output along axis d that sees element `at` through tap t; -1: none. */
DEVICE int64_t seer(const mpl_cuda_window *w, int d, int64_t at, int64_t t)
{
    int64_t o = at + w->before[d] - t * w->dilation[d];

    return o < 0 || o % w->stride[d] != 0 || o / w->stride[d] >= w->out[d] ? -1 : o / w->stride[d];
}

/* The first largest element of a window in the plane of x that starts at `plane`. */
DEVICE int64_t first_largest(const mpl_cuda_kernel *k, int64_t plane, int64_t oz, int64_t oy,
    int64_t ox)
{
    const mpl_cuda_window *w = &k->as.window;
    int64_t best = -1;
    double most = 0;

    for (int64_t t = 0; t < w->kernel[0] * w->kernel[1] * w->kernel[2]; t++) {
        int64_t z = seen_by(w, 0, oz, t / w->kernel[2] / w->kernel[1]);
        int64_t y = seen_by(w, 1, oy, t / w->kernel[2] % w->kernel[1]);
        int64_t x = seen_by(w, 2, ox, t % w->kernel[2]),
            at = plane + (z * w->in[1] + y) * w->in[2] + x;
        double v;

        if (z < 0 || y < 0 || x < 0)
            continue;
        v = get(k->type[1], k->in[1], at);
        if (best < 0 || v > most) {
            best = at;
            most = v;
        }
    }
    return best;
}

/* Taps of output o along axis d that lie in the input. */
DEVICE int64_t inside_count(const mpl_cuda_window *w, int d, int64_t o)
{
    int64_t n = 0;

    for (int64_t t = 0; t < w->kernel[d]; t++)
        n += seen_by(w, d, o, t) >= 0;
    return n;
}

/* dy and x (max_pool_grad), or dy. A thread for each element of dx visits its windows in order. */
KERNEL pool_grad(const mpl_cuda_kernel k)
{
    const mpl_cuda_window *w = &k.as.window;
    const int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2],
        plane = w->in[0] * w->in[1] * w->in[2];
    const int64_t out_plane = w->out[0] * w->out[1] * w->out[2];

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, x = last_index(&rest, w->in[2]), y = last_index(&rest, w->in[1]);
        int64_t z = last_index(&rest, w->in[0]);
        double sum = 0;

        for (int64_t t = taps - 1; t >= 0; t--) {
            int64_t oz = seer(w, 0, z, t / w->kernel[2] / w->kernel[1]);
            int64_t oy = seer(w, 1, y, t / w->kernel[2] % w->kernel[1]);
            int64_t ox = seer(w, 2, x, t % w->kernel[2]), n;
            double part;

            if (oz < 0 || oy < 0 || ox < 0)
                continue;
            part = get(k.type[0], k.in[0],
                rest * out_plane + (oz * w->out[1] + oy) * w->out[2] + ox);
            if (k.kind != MPL_OP_max_pool_grad) {
                n = w->counts_pads ? padded_count(w, 0, oz) * padded_count(w, 1, oy) *
                                         padded_count(w, 2, ox)
                                   : inside_count(w, 0, oz) * inside_count(w, 1, oy) *
                                         inside_count(w, 2, ox);
                part /= (double)n;
            } else if (first_largest(&k, rest * plane, oz, oy, ox) != i) {
                continue;
            }
            sum = rounded(k.out_type, sum + part);
        }
        put(k.out_type, k.out[0], i, sum);
    }
}

/* global_avg_pool_grad: each plane of `inner` elements shares one number equally. */
KERNEL plane_grad(const mpl_cuda_kernel k)
{
    const int64_t plane = k.as.lanes.inner;

    FOR_EACH(i, k.n)
    put(k.out_type, k.out[0], i, get(k.type[0], k.in[0], i / plane) / (double)plane);
}

/* ---- lrn, softmax ---- */

DEVICE int64_t lrn_first(int64_t c, int64_t below)
{
    return c > below ? c - below : 0;
}

DEVICE int64_t lrn_end(int64_t c, int64_t above, int64_t n)
{
    return n - c > above ? c + above + 1 : n;
}

/* Channel c is divided by this to the power beta; element `base` is channel 0 of its place. */
DEVICE double lrn_sum(const mpl_cuda_kernel *k, int64_t base, int64_t c)
{
    const mpl_cuda_lrn *l = &k->as.lrn;
    double squares = 0;

    for (int64_t j = lrn_first(c, l->below); j < lrn_end(c, l->above, l->channels); j++) {
        double v = get(k->type[1], k->in[1], base + j * l->inner);

        squares += v * v;
    }
    return l->bias + l->factor * squares;
}

/* dy, x. */
KERNEL lrn_grad(const mpl_cuda_kernel k)
{
    const mpl_cuda_lrn *l = &k.as.lrn;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, inner = last_index(&rest, l->inner), c = last_index(&rest, l->channels);
        int64_t base = rest * l->channels * l->inner + inner;
        double sum = 0;

        for (int64_t j = lrn_first(c, l->above); j < lrn_end(c, l->below, l->channels); j++)
            sum += get(k.type[0], k.in[0], base + j * l->inner) * get(k.type[1], k.in[1],
                base + j * l->inner) *
                   pow(lrn_sum(&k, base, j), -l->beta - 1);
        put(k.out_type, k.out[0], i,
            get(k.type[0], k.in[0], i) * pow(lrn_sum(&k, base, c), -l->beta) -
                2 * l->beta * l->factor * get(k.type[1], k.in[1], i) * sum);
    }
}

/* dy, y; one block for each lane. The result may lie over dy: the thread that writes an element is
 * the last to read it. */
KERNEL softmax_grad(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_lanes *l = &k.as.lanes;

    for (int64_t lane = blockIdx.x; lane < k.n; lane += gridDim.x) {
        int64_t base = lane_base(&k, lane);
        double sum = 0;

        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x)
            sum += get(k.type[0], k.in[0], base + i * l->inner) * get(k.type[1], k.in[1],
                base + i * l->inner);
        sum = block_fold(FOLD_SUM, room, sum);
        for (int64_t i = threadIdx.x; i < l->n; i += blockDim.x) {
            int64_t at = base + i * l->inner;

            put(k.out_type, k.out[0], at, get(k.type[1], k.in[1], at) * (get(k.type[0], k.in[0],
                at) - sum));
        }
    }
}

/* ---- batch norm ---- */

/* Element j of channel c. */
DEVICE int64_t of_channel(const mpl_cuda_batch *b, int64_t c, int64_t j)
{
    int64_t inner = last_index(&j, b->inner);

    return (j * b->channels + c) * b->inner + inner;
}

/* batch_norm_train and batch_norm_again: one block for each channel. New running statistics may lie
 * over the old ones. */
KERNEL batch_train(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_batch *b = &k.as.batch;
    const int64_t n = b->batch * b->inner;
    const int train = k.kind == MPL_OP_batch_norm_train;

    for (int64_t c = blockIdx.x; c < b->channels; c += gridDim.x) {
        double moment[2] = {0, 0}, factor, bias = get(k.type[2], k.in[2], c);

        for (int64_t j = threadIdx.x; j < n; j += blockDim.x)
            moment[0] += get(k.type[0], k.in[0], of_channel(b, c, j));
        moment[0] = block_fold(FOLD_SUM, room, moment[0]) / (double)n;
        for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
            double distance = get(k.type[0], k.in[0], of_channel(b, c, j)) - moment[0];

            moment[1] += distance * distance;
        }
        moment[1] = block_fold(FOLD_SUM, room, moment[1]) / (double)n;
        factor = get(k.type[1], k.in[1], c) / sqrt(moment[1] + b->epsilon);
        for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
            int64_t at = of_channel(b, c, j);

            put(k.out_type, k.out[0], at, (get(k.type[0], k.in[0],
                at) - moment[0]) * factor + bias);
        }
        for (int i = 0; i < 2 && threadIdx.x == 0; i++) {
            int type = k.type[train ? 3 + i : 1];

            put(type, k.out[1 + i], c, moment[i]);
            if (train)
                put(type, k.out[3 + i], c,
                    b->momentum * get(type, k.in[3 + i], c) + (1 - b->momentum) * moment[i]);
        }
    }
}

/* dy, x, scale, mean, variance: the gradients of x, scale and bias; one block for each channel. */
KERNEL batch_grad(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_batch *b = &k.as.batch;
    const int64_t n = b->batch * b->inner;

    for (int64_t c = blockIdx.x; c < b->channels; c += gridDim.x) {
        double mean = get(k.type[3], k.in[3], c), scale = get(k.type[2], k.in[2], c), sum[2] = {0,
            0};
        double inverse = 1 / sqrt(get(k.type[4], k.in[4], c) + b->epsilon);

        for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
            int64_t at = of_channel(b, c, j);
            double dy = get(k.type[0], k.in[0], at);

            sum[0] += dy;
            sum[1] += dy * (get(k.type[1], k.in[1], at) - mean) * inverse;
        }
        sum[0] = block_fold(FOLD_SUM, room, sum[0]);
        sum[1] = block_fold(FOLD_SUM, room, sum[1]);
        for (int64_t j = threadIdx.x; j < n; j += blockDim.x) {
            int64_t at = of_channel(b, c, j);
            double normal = (get(k.type[1], k.in[1], at) - mean) * inverse;

            put(k.out_type, k.out[0], at,
                scale * inverse * (get(k.type[0], k.in[0],
                    at) - (sum[0] + normal * sum[1]) / (double)n));
        }
        for (int i = 0; i < 2 && threadIdx.x == 0; i++)
            put(k.type[2], k.out[1 + i], c, sum[1 - i]);
    }
}

/* ---- dropout ---- */

#define STEP UINT64_C(0x9e3779b97f4a7c15)

/* Number n, from 0, of the generator of graphs/core/rng.h that began at `state`, directly. */
DEVICE uint64_t random_bits(uint64_t state, uint64_t n)
{
    uint64_t z = state + (n + 1) * STEP;

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* dropout_train: x and the number of the run; dropout_grad: dy and the mask. */
KERNEL drop(const mpl_cuda_kernel k)
{
    const mpl_cuda_drop *d = &k.as.drop;
    const int train = k.kind == MPL_OP_dropout_train;
    uint64_t run = train && k.in[1] != NULL ? *(const uint64_t *)k.in[1] : 0;
    uint64_t state = random_bits(random_bits(d->seed, 0) ^ run, 0);

    FOR_EACH(i, k.n)
    {
        int kept;

        if (train) {
            kept = (double)((float)(random_bits(state, (uint64_t)i) >> 40) * 0x1p-24f) >= d->ratio;
            ((uint8_t *)k.out[1])[i] = (uint8_t)kept;
        } else {
            kept = ((const uint8_t *)k.in[1])[i] != 0;
        }
        put(k.out_type, k.out[0], i, kept ? get(k.type[0], k.in[0], i) / (1 - d->ratio) : 0);
    }
}

/* ---- softmax cross-entropy ---- */

/* The label of a row; an out-of-range label raises the flag and counts as 0. */
DEVICE int64_t label_of(const mpl_cuda_kernel *k, int64_t row)
{
    int64_t label = ((const int64_t *)k->in[1])[row];

    if (label >= 0 && label < k->as.lanes.n)
        return label;
    *k->flag = 1;
    return 0;
}

/* Logits, labels: writes probabilities to output 1 and each row's loss to the workspace; one block
 * for each row. */
KERNEL loss(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const int64_t n = k.as.lanes.n;

    for (int64_t row = blockIdx.x; row < k.n; row += gridDim.x) {
        int64_t base = row * n;
        double most = -INFINITY, sum = 0;

        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            most = combine(FOLD_MOST, most, get(k.type[0], k.in[0], base + i));
        most = block_fold(FOLD_MOST, room, most);
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            sum += exp(get(k.type[0], k.in[0], base + i) - most);
        sum = block_fold(FOLD_SUM, room, sum);
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            put(k.out_type, k.out[1], base + i, exp(get(k.type[0], k.in[0],
                base + i) - most) / sum);
        if (threadIdx.x == 0)
            ((double *)k.work)[row] =
                log(sum) + most - get(k.type[0], k.in[0], base + label_of(&k, row));
    }
}

/* The mean of the losses in the workspace; one block. */
KERNEL loss_mean(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const int64_t rows = k.as.lanes.inner;
    double sum = 0;

    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x)
        sum += ((const double *)k.work)[i];
    sum = block_fold(FOLD_SUM, room, sum);
    if (threadIdx.x == 0)
        put(k.out_type, k.out[0], 0, sum / (double)rows);
}

/* Probabilities, labels; the result may lie over the probabilities. */
KERNEL loss_grad(const mpl_cuda_kernel k)
{
    FOR_EACH(i, k.n)
    {
        int64_t row = i, class_of = last_index(&row, k.as.lanes.n);

        put(k.out_type, k.out[0], i,
            (get(k.type[0], k.in[0], i) - (label_of(&k,
                row) == class_of ? 1 : 0)) / (double)k.as.lanes.inner);
    }
}

/* ---- updates ---- */

/* Updates of the optimisers, each output over its input: one thread reads and writes each. */
KERNEL update(const mpl_cuda_kernel k)
{
    const mpl_cuda_update *u = &k.as.update;
    const int type = k.out_type;
    double correct1 = 1, correct2 = 1;

    if (k.kind == MPL_OP_adam_update) {
        int64_t run = ((const int64_t *)k.in[1])[0];

        if (run < 1)
            *k.flag = 1;
        correct1 = 1 - pow(u->beta1, (double)run);
        correct2 = 1 - pow(u->beta2, (double)run);
    }
    FOR_EACH(i, k.n)
    {
        double g, state, second;

        if (k.kind == MPL_OP_step_update) {
            ((int64_t *)k.out[0])[i] = ((const int64_t *)k.in[0])[i] + 1;
            continue;
        }
        g = get(type, k.in[0], i);
        switch (k.kind) {
        case MPL_OP_momentum_update:
            state = u->momentum * get(type, k.in[2], i) + g;
            put(type, k.out[0], i, get(type, k.in[1], i) - u->rate * state);
            put(type, k.out[1], i, state);
            break;
        case MPL_OP_adagrad_update:
            state = get(type, k.in[2], i) + g * g;
            put(type, k.out[0], i, get(type, k.in[1], i) - u->rate * g / sqrt(state + u->epsilon));
            put(type, k.out[1], i, state);
            break;
        case MPL_OP_adam_update:
            state = u->beta1 * get(type, k.in[3], i) + (1 - u->beta1) * g;
            second = u->beta2 * get(type, k.in[4], i) + (1 - u->beta2) * g * g;
            put(type, k.out[0], i,
                get(type, k.in[2], i) -
                    u->rate * (state / correct1) / (sqrt(second / correct2) + u->epsilon) -
                    u->rate * u->decay * get(type, k.in[2], i));
            put(type, k.out[1], i, state);
            put(type, k.out[2], i, second);
            break;
        default:
            put(type, k.out[0], i, get(type, k.in[1], i) - u->rate * g);
        }
    }
}

/* ---- launching ---- */

/* Powers are computed once for each thread, so fewer threads take more elements each. */
#define UPDATE_BLOCKS 2048

void mpl_cuda_launch_train(const mpl_cuda_kernel *k, void *stream)
{
    int64_t blocks = blocks_for(k->n, THREADS);

    switch (k->id) {
    EACH(MPL_CUDA_POOL_GRAD, pool_grad);
    EACH(MPL_CUDA_PLANE_GRAD, plane_grad);
    EACH(MPL_CUDA_LRN_GRAD, lrn_grad);
    BLOCKS(MPL_CUDA_SOFTMAX_GRAD, softmax_grad, k->as.lanes.n);
    case MPL_CUDA_BATCH:
        if (k->kind == MPL_OP_batch_norm_grad)
            LAUNCH(batch_grad, blocks_for(k->n, 1), THREADS, stream, *k);
        else
            LAUNCH(batch_train, blocks_for(k->n, 1), THREADS, stream, *k);
        break;
    EACH(MPL_CUDA_DROP, drop);
    BLOCKS(MPL_CUDA_LOSS, loss, k->as.lanes.n);
    case MPL_CUDA_LOSS_MEAN:
        LAUNCH(loss_mean, 1, THREADS, stream, *k);
        break;
    EACH(MPL_CUDA_LOSS_GRAD, loss_grad);
    default:
        LAUNCH(update, blocks < UPDATE_BLOCKS ? blocks : UPDATE_BLOCKS, THREADS, stream, *k);
    }
}
