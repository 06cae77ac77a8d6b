/* kernels_move.cu -- device kernels that move elements to or from places that data or attributes
 * name, sort, or sample them; norms over sets of elements. See kernels.cu. Every index is checked
 * before it is used. */
#include "runtime/cuda/kernels_priv.h"

KERNEL fill_bytes(const mpl_cuda_kernel k)
{
    FOR_EACH(i, k.n)
    ((uint8_t *)k.out[0])[i] = (uint8_t)k.as.byte;
}

/* An index into an axis of `dim` elements, from its end where negative; one out of range raises the
 * flag and becomes 0. */
DEVICE int64_t index_at(const mpl_cuda_kernel *k, int64_t i, int64_t dim)
{
    int64_t index = get_int(k->type[1], k->in[1], i);

    if (index < -dim || index >= dim) {
        *k->flag = 1; /* whoever writes writes the same */
        return 0;
    }
    return index < 0 ? index + dim : index;
}

/* The row that tuple i names. */
DEVICE int64_t tuple_at(const mpl_cuda_kernel *k, int64_t i)
{
    const mpl_cuda_tuples *t = &k->as.tuples;
    int64_t row = 0;

    for (int d = 0; d < t->length; d++)
        row = row * t->dim[d] + index_at(k, i * t->length + d, t->dim[d]);
    return row;
}

KERNEL gather_nd(const mpl_cuda_kernel k)
{
    const mpl_cuda_tuples *t = &k.as.tuples;

    FOR_EACH(i, k.n)
    {
        int64_t tuple = i, inner = last_index(&tuple, t->inner);

        copy_element(t->bytes, k.out[0], i, k.in[0],
                     (tuple / t->per_batch * t->rows + tuple_at(&k, tuple)) * t->inner + inner);
    }
}

/* ---- scatter: the first launch of these operators has copied input 0 ---- */

/* Brings update j together with element i of the output. */
DEVICE void scatter_one(const mpl_cuda_kernel *k, int how, int bytes, int64_t i, int64_t j)
{
    const int type = k->out_type;

    if (how == MPL_SCATTER_PUT) {
        copy_element(bytes, k->out[0], i, k->in[2], j);
    } else if (is_float(type)) {
        double a = get(type, k->out[0], i), b = get(type, k->in[2], j);

        put(type, k->out[0], i,
            how == MPL_SCATTER_ADD   ? a + b
            : how == MPL_SCATTER_MUL ? a * b
            : how == MPL_SCATTER_MAX ? (b > a ? b : a)
                                     : (b < a ? b : a));
    } else {
        int64_t a = get_int(type, k->out[0], i), b = get_int(type, k->in[2], j);

        put_int(type, k->out[0], i,
                how == MPL_SCATTER_ADD   ? (int64_t)((uint64_t)a + (uint64_t)b)
                : how == MPL_SCATTER_MUL ? (int64_t)((uint64_t)a * (uint64_t)b)
                : how == MPL_SCATTER_MAX ? (b > a ? b : a)
                                         : (b < a ? b : a));
    }
}

/* Updates of one place lie along the axis: one thread does them in turn. */
KERNEL scatter(const mpl_cuda_kernel k)
{
    const mpl_cuda_scatter *s = &k.as.scatter;

    FOR_EACH(lane, k.n)
    {
        int64_t from = offset_of(lane, s->rank, s->dim, s->index_stride);
        int64_t to = offset_of(lane, s->rank, s->dim, s->to_stride);

        for (int64_t j = 0; j < s->n; j++, from += s->index_along)
            scatter_one(&k, s->how, s->bytes, to + index_at(&k, from, s->axis_dim) * s->to_along,
                from);
    }
}

/* Thread (part, inner) goes through all tuples in turn and does those whose rows are of its
 * part. */
KERNEL scatter_nd(const mpl_cuda_kernel k)
{
    const mpl_cuda_tuples *t = &k.as.tuples;

    FOR_EACH(i, k.n)
    {
        int64_t part = i, inner = last_index(&part, t->inner);

        for (int64_t tuple = 0; tuple < t->n; tuple++) {
            int64_t row = tuple_at(&k, tuple);

            if (row % t->parts == part)
                scatter_one(&k, t->how, t->bytes, row * t->inner + inner, tuple * t->inner + inner);
        }
    }
}

/* ---- places that attributes name ---- */

/* Which of `depth` places element i switches on; -1: none. */
DEVICE int64_t hot_at(const mpl_cuda_kernel *k, int64_t i, int64_t depth)
{
    double x = is_float(k->type[0]) ? get(k->type[0], k->in[0], i) : 0;
    int64_t at = is_float(k->type[0]) ? to_int(x) : get_int(k->type[0], k->in[0], i);

    if (x != x || at < -depth || at >= depth)
        return -1;
    return at < 0 ? at + depth : at;
}

KERNEL one_hot(const mpl_cuda_kernel k)
{
    const mpl_cuda_place *p = &k.as.place;

    FOR_EACH(i, k.n)
    {
        int64_t outer = i, inner = last_index(&outer, p->inner), at = last_index(&outer, p->rows);

        copy_element(p->bytes, k.out[0], i, k.in[1], hot_at(&k, outer * p->inner + inner,
            p->rows) == at);
    }
}

/* May be in place. */
KERNEL trilu(const mpl_cuda_kernel k)
{
    const mpl_cuda_place *p = &k.as.place;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, column = last_index(&rest, p->columns), row = last_index(&rest, p->rows);
        int upper = p->which != 0, kept = upper ? column >= row + p->k : column <= row + p->k;

        if (kept)
            copy_element(p->bytes, k.out[0], i, k.in[0], i);
        else
            for (int b = 0; b < p->bytes; b++)
                ((uint8_t *)k.out[0])[i * p->bytes + b] = 0;
    }
}

KERNEL reverse(const mpl_cuda_kernel k)
{
    const mpl_cuda_place *p = &k.as.place;

    FOR_EACH(i, k.n)
    {
        int64_t row = i, inner = last_index(&row, p->inner), column = last_index(&row, p->columns);
        int64_t batch = p->which == 0 ? row : column, time = p->which == 0 ? column : row;
        int64_t times = p->which == 0 ? p->columns : p->rows, n = get_int(k.type[1], k.in[1],
            batch);

        if (n < 0 || n > times) {
            *k.flag = 1;
            n = 0;
        }
        time = time < n ? n - 1 - time : time;
        row = p->which == 0 ? batch : time;
        column = p->which == 0 ? time : batch;
        copy_element(p->bytes, k.out[0], i, k.in[0],
            (row * p->columns + column) * p->inner + inner);
    }
}

/* ---- top_k: one thread for each lane; the k best so far are a heap in output 1, the worst at its
 * root ---- */

typedef struct mpl_cuda_heap {
    const mpl_cuda_kernel *k;
    int64_t *item; /* element i at item[i * inner] */
    int64_t base;  /* of the lane in the input */
} mpl_cuda_heap;

/* Element i comes before j in the answer; equals go by the index, and a NaN counts as the largest
 * number. */
DEVICE int better(const mpl_cuda_heap *h, int64_t i, int64_t j)
{
    const mpl_cuda_kernel *k = h->k;
    int64_t at_i = h->base + i * k->as.lanes.inner, at_j = h->base + j * k->as.lanes.inner;
    int above, below;

    if (is_float(k->type[0])) {
        double a = get(k->type[0], k->in[0], at_i), b = get(k->type[0], k->in[0], at_j);

        above = a > b || (a != a && b == b);
        below = a < b || (b != b && a == a);
    } else {
        int64_t a = get_int(k->type[0], k->in[0], at_i), b = get_int(k->type[0], k->in[0], at_j);

        above = a > b;
        below = a < b;
    }
    return above || below ? above == (k->as.lanes.largest != 0) : i < j;
}

/* Lets the item at the root of the first n sink until no child is worse. */
DEVICE void sink(const mpl_cuda_heap *h, int64_t root, int64_t n)
{
    const int64_t step = h->k->as.lanes.inner;
    int64_t item = h->item[root * step], child = 2 * root + 1;

    while (child < n) {
        if (child + 1 < n && better(h, h->item[child * step], h->item[(child + 1) * step]))
            child++;
        if (better(h, h->item[child * step], item))
            break;
        h->item[root * step] = h->item[child * step];
        root = child;
        child = 2 * root + 1;
    }
    h->item[root * step] = item;
}

KERNEL top_k(const mpl_cuda_kernel k)
{
    const mpl_cuda_lanes *l = &k.as.lanes;

    FOR_EACH(lane, k.n)
    {
        int64_t outer = lane, inner = last_index(&outer, l->inner),
            to = outer * l->k * l->inner + inner;
        mpl_cuda_heap h = {&k, (int64_t *)k.out[1] + to, lane_base(&k, lane)};

        for (int64_t i = 0; i < l->k; i++)
            h.item[i * l->inner] = i;
        for (int64_t root = l->k / 2 - 1; root >= 0; root--)
            sink(&h, root, l->k);
        for (int64_t i = l->k; i < l->n; i++)
            if (better(&h, i, h.item[0])) {
                h.item[0] = i;
                sink(&h, 0, l->k);
            }
        for (int64_t left = l->k - 1; left > 0; left--) { /* the worst left goes to the end */
            int64_t worst = h.item[0];

            h.item[0] = h.item[left * l->inner];
            h.item[left * l->inner] = worst;
            sink(&h, 0, left);
        }
        for (int64_t i = 0; i < l->k; i++) {
            int64_t from = h.base + h.item[i * l->inner] * l->inner;

            if (is_float(k.type[0]))
                put(k.type[0], k.out[0], to + i * l->inner, get(k.type[0], k.in[0], from));
            else
                put_int(k.type[0], k.out[0], to + i * l->inner, get_int(k.type[0], k.in[0], from));
        }
    }
}

/* ---- resize ---- */

/* Where in the input element x of the output of an axis lies. [element, not whole] */
DEVICE double coordinate(const mpl_cuda_resize *r, int axis, int64_t x)
{
    double scale = r->scale[axis], in = (double)r->in[axis], out = (double)r->out[axis],
        at = (double)x;

    switch (r->coordinate) {
    case MPL_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - out / (in * scale)) + (at + 0.5) / scale - 0.5;
    case MPL_PYTORCH_HALF_PIXEL:
        return r->out[axis] > 1 ? (at + 0.5) / scale - 0.5 : 0;
    case MPL_ALIGN_CORNERS:
        return r->out[axis] > 1 ? at * (in - 1) / (in * scale - 1) : 0;
    case MPL_ASYMMETRIC:
        return at / scale;
    case MPL_TF_HALF_PIXEL:
        return (at + 0.5) / scale;
    default:
        return (at + 0.5) / scale - 0.5;
    }
}

/* Into [0, dim); what is no number goes to 0. */
DEVICE int64_t clamped(double x, int64_t dim)
{
    return !(x >= 0) ? 0 : x > (double)(dim - 1) ? dim - 1 : (int64_t)x;
}

DEVICE double to_whole(int rounding, double x)
{
    switch (rounding) {
    case MPL_ROUND_PREFER_FLOOR:
        return ceil(x - 0.5);
    case MPL_ROUND_PREFER_CEIL:
        return floor(x + 0.5);
    case MPL_ROUND_FLOOR:
        return floor(x);
    default:
        return ceil(x);
    }
}

/* Weights of the four elements around a point that lies t behind the second. */
DEVICE void cubic_weights(double a, double t, double *weight)
{
    weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
    weight[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
}

/* The elements of an axis that element x of the output is made of, and their weights; how many. */
DEVICE int resize_taps(const mpl_cuda_resize *r, int axis, int64_t x, int64_t *at, double *weight)
{
    int64_t dim = r->in[axis];
    double point = coordinate(r, axis, x), low = floor(point), sum = 0;

    at[0] = x;
    weight[0] = 1;
    if (r->scale[axis] == 1 && dim == r->out[axis])
        return 1;
    if (r->mode == MPL_RESIZE_NEAREST) {
        at[0] = clamped(to_whole(r->rounding, point), dim);
        return 1;
    }
    if (r->mode == MPL_RESIZE_LINEAR) {
        at[0] = clamped(low, dim);
        at[1] = clamped(low + 1, dim);
        weight[1] = point - low;
        weight[0] = 1 - weight[1];
        return 2;
    }
    cubic_weights(r->cubic_a, point - low, weight);
    for (int i = 0; i < 4; i++) {
        double whole = low - 1 + i;

        if (r->exclude_outside && (whole < 0 || whole >= (double)dim))
            weight[i] = 0;
        at[i] = clamped(whole, dim);
        sum += weight[i];
    }
    for (int i = 0; i < 4 && r->exclude_outside; i++)
        weight[i] /= sum;
    return 4;
}

/* Every combination of the axes' taps, in row-major order; a weight of 0 takes no part, whatever it
 * would weigh. */
KERNEL resize(const mpl_cuda_kernel k)
{
    const mpl_cuda_resize *r = &k.as.resize;

    FOR_EACH(i, k.n)
    {
        int64_t rest = i, at[MPL_MAX_RANK][4], n_all = 1, base = 0;
        double weight[MPL_MAX_RANK][4], sum = 0;
        int n[MPL_MAX_RANK];

        for (int d = r->rank - 1; d >= 0; d--) {
            n[d] = resize_taps(r, d, last_index(&rest, r->out[d]), at[d], weight[d]);
            n_all *= n[d];
            base += at[d][0] * r->stride[d];
        }
        if (r->mode == MPL_RESIZE_NEAREST) {
            copy_element(r->bytes, k.out[0], i, k.in[0], base);
            continue;
        }
        for (int64_t c = 0; c < n_all; c++) {
            int64_t which = c, from = 0;
            double w = 1;

            for (int d = r->rank - 1; d >= 0; d--) {
                int tap = (int)(which % n[d]);

                which /= n[d];
                from += at[d][tap] * r->stride[d];
                w *= weight[d][tap];
            }
            if (w != 0)
                sum += w * get(k.type[0], k.in[0], from);
        }
        put(k.out_type, k.out[0], i, sum);
    }
}

/* ---- norms over sets ---- */

/* lp_norm, mean_variance_norm: one block for each set of elements that are normalised together. */
KERNEL set_norm(const mpl_cuda_kernel k)
{
    SHARED double room[THREADS];
    const mpl_cuda_reduce *r = &k.as.reduce;
    const int about_mean = k.kind == MPL_OP_mean_variance_norm;

    for (int64_t o = blockIdx.x; o < k.n; o += gridDim.x) {
        int64_t base = offset_of(o, r->n_kept, r->kept_dim, r->kept_stride);
        double mean = 0, size = 0;

        for (int64_t j = threadIdx.x; j < r->n && about_mean; j += blockDim.x)
            mean += get(k.type[0], k.in[0], base + offset_of(j, r->n_reduced, r->reduced_dim,
                r->reduced_stride));
        if (about_mean)
            mean = block_fold(FOLD_SUM, room, mean) / (double)r->n;
        for (int64_t j = threadIdx.x; j < r->n; j += blockDim.x) {
            double v = get(k.type[0], k.in[0],
                           base + offset_of(j, r->n_reduced, r->reduced_dim, r->reduced_stride)) -
                       mean;

            size += r->p == 1 ? fabs(v) : v * v;
        }
        size = block_fold(FOLD_SUM, room, size);
        if (about_mean)
            size = sqrt(size / (double)r->n) + 1e-9;
        else
            size = size == 0 ? 1 : r->p == 1 ? size : sqrt(size);
        for (int64_t j = threadIdx.x; j < r->n; j += blockDim.x) {
            int64_t at = base + offset_of(j, r->n_reduced, r->reduced_dim, r->reduced_stride);

            put(k.out_type, k.out[0], at, (get(k.type[0], k.in[0], at) - mean) / size);
        }
    }
}

void mpl_cuda_launch_move(const mpl_cuda_kernel *k, void *stream)
{
    int64_t blocks = blocks_for(k->n, THREADS), alone = blocks_for(k->n, 1);

    switch (k->id) {
    case MPL_CUDA_FILL:
        LAUNCH(fill_bytes, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_GATHER_ND:
        LAUNCH(gather_nd, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_SCATTER:
        LAUNCH(scatter, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_SCATTER_ND:
        LAUNCH(scatter_nd, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_ONE_HOT:
        LAUNCH(one_hot, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_TRILU:
        LAUNCH(trilu, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_REVERSE:
        LAUNCH(reverse, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_TOP_K:
        LAUNCH(top_k, blocks, THREADS, stream, *k);
        break;
    case MPL_CUDA_RESIZE:
        LAUNCH(resize, blocks, THREADS, stream, *k);
        break;
    default:
        LAUNCH(set_norm, alone, threads_for(k->as.reduce.n), stream, *k);
    }
}
