/* onnx_signal.c -- signals: DFT and STFT as products with a matrix of cosines, the windows and
 * MelWeightMatrix as constants. Source: ONNX, docs/Operators.md. */
#include "graphs/io/onnx/onnx_priv.h"

#include <math.h>

#define PI         3.14159265358979323846
#define MAX_MATRIX (INT64_C(32) << 20) /* elements */

/* One whole number of at least `least`, known now. */
static mpl_status known_int(onnx_node *node, uint32_t i, const char *what, int64_t least,
                            int64_t *out)
{
    uint32_t count;
    int64_t *ints;

    if (onnx_in(node, i) == MPL_NONE)
        return ONNX_REFUSE(node, "its %s is missing", what);
    MPL_PASS(onnx_ints(node, node->in[i], what, &count, &ints));
    if (count != 1 || ints[0] < least || ints[0] > MAX_MATRIX)
        return ONNX_REFUSE(node, "its %s is no number in [%" PRId64 ",%" PRId64 "]", what, least,
                           MAX_MATRIX);
    *out = ints[0];
    return MPL_OK;
}

/* ---- constants ---- */

static mpl_status finish_constant(onnx_node *node, const mpl_shape *shape, const double *data)
{
    const char *refused;
    mpl_type type = MPL_TYPE_f32;
    mpl_value v;

    if (!onnx_type((int32_t)onnx_attr_int(node, "output_datatype", 1), &type, &refused))
        return ONNX_REFUSE(node, "its result has element type %s, which memplan has not", refused);
    MPL_PASS(onnx_constant(node, type, shape, data, "table", &v));
    return onnx_finish(node, MPL_OP_identity, 1, &v);
}

/* a - b cos(2 pi i / length) + c cos(4 pi i / length) */
static mpl_status window(onnx_node *node, double a, double b, double c)
{
    int64_t size = 0, length;
    double *at;

    MPL_PASS(known_int(node, 0, "size", 0, &size));
    length = onnx_attr_int(node, "periodic", 1) != 0 ? size : size - 1;
    MPL_PASS(onnx_new(node->r, at, (size_t)size));
    for (int64_t i = 0; i < size; i++) {
        double turn = length > 0 ? 2 * PI * (double)i / (double)length : 0;

        at[i] = a - b * cos(turn) + c * cos(2 * turn);
    }
    return finish_constant(node, &(mpl_shape){1, {size}}, at);
}

mpl_status onnx_lower_hann_window(onnx_node *node)
{
    return window(node, 0.5, 0.5, 0);
}

mpl_status onnx_lower_hamming_window(onnx_node *node)
{
    return window(node, 25.0 / 46, 21.0 / 46, 0);
}

mpl_status onnx_lower_blackman_window(onnx_node *node)
{
    return window(node, 0.42, 0.5, 0.08);
}

/* The spectrum's bin of edge i of n + 1 equal steps between two frequencies on the mel scale. */
static double mel_bin(double low, double high, int64_t i, int64_t n, int64_t length, int64_t rate)
{
    double from = 2595 * log10(1 + low / 700), to = 2595 * log10(1 + high / 700);
    double hertz = 700 * (pow(10, (from + (double)i * (to - from) / (double)n) / 2595) - 1);

    return floor((double)(length + 1) * hertz / (double)rate);
}

/* Column i rises from edge i to edge i + 1 and falls to edge i + 2. */
mpl_status onnx_lower_mel_weights(onnx_node *node)
{
    int64_t bins = 0, length = 0, rate = 0, rows;
    double edge[2], *hertz, *at;
    uint32_t count;

    MPL_PASS(known_int(node, 0, "num_mel_bins", 1, &bins));
    MPL_PASS(known_int(node, 1, "dft_length", 1, &length));
    MPL_PASS(known_int(node, 2, "sample_rate", 1, &rate));
    for (uint32_t i = 0; i < 2; i++) {
        if (onnx_in(node, 3 + i) == MPL_NONE)
            return ONNX_REFUSE(node, "an edge is missing");
        MPL_PASS(onnx_floats(node, node->in[3 + i], "edge", &count, &hertz));
        if (count != 1 || !(hertz[0] >= 0 && hertz[0] <= (double)rate / 2))
            return ONNX_REFUSE(node, "an edge is no frequency up to half the sample rate");
        edge[i] = hertz[0];
    }
    rows = length / 2 + 1;
    if (bins > MAX_MATRIX / rows)
        return ONNX_REFUSE(node, "its result has more than %" PRId64 " elements", MAX_MATRIX);
    MPL_PASS(onnx_new(node->r, at, (size_t)(rows * bins)));
    for (int64_t i = 0; i < bins; i++) {
        double e[3];

        for (int64_t k = 0; k < 3; k++)
            e[k] = mel_bin(edge[0], edge[1], i + k, bins + 2, length, rate);
        for (int64_t row = 0; row < rows; row++) {
            double x = (double)row;

            if (x >= e[0] && x <= e[1])
                at[row * bins + i] = e[1] > e[0] ? (x - e[0]) / (e[1] - e[0]) : 1;
            if (x >= e[1] && x < e[2])
                at[row * bins + i] = (e[2] - x) / (e[2] - e[1]);
        }
    }
    return finish_constant(node, &(mpl_shape){2, {rows, bins}}, at);
}

/* ---- Fourier ---- */

typedef struct transform {
    int64_t given, length, out; /* elements: of the input, of the transform, of the result */
    int64_t parts, out_parts;   /* 2: real and imaginary part */
    bool inverse;
    bool mirrored; /* the input is one side of a symmetric spectrum */
} transform;

/* What part p of element i contributes to part q of element k. */
static double factor(const transform *self, int64_t i, int64_t p, int64_t k, int64_t q)
{
    double turn = 2 * PI * (double)(i * k % self->length) / (double)self->length;
    double sine = self->inverse ? sin(turn) : -sin(turn), x;

    if (i >= self->length)
        return 0;
    x = p == q ? cos(turn) : q == 1 ? sine : -sine; /* (c + s i)(a + b i) */
    if (self->mirrored && i > 0 && 2 * i != self->length)
        x = 2 * i < self->length ? 2 * x : 0;
    return self->inverse ? x / (double)self->length : x;
}

/* The matrix [given, parts, out, out_parts]; or, as kernels of a convolution, transposed:
 * [out, out_parts, parts, given]. */
static mpl_status fourier_matrix(onnx_node *node, const transform *t, mpl_type type, bool kernels,
                                 mpl_value *out)
{
    int64_t rows = t->given * t->parts, columns = t->out * t->out_parts;
    mpl_shape shape =
        kernels ? (mpl_shape){3, {columns, t->parts, t->given}} : (mpl_shape){2, {rows, columns}};
    double *at;

    if (rows < 1 || columns < 1 || rows > MAX_MATRIX / columns || t->length > INT32_MAX)
        return ONNX_REFUSE(node, "a transform of %" PRId64 " elements is none, or too long",
                           t->given);
    MPL_PASS(onnx_new(node->r, at, (size_t)(rows * columns)));
    for (int64_t i = 0; i < t->given; i++)
        for (int64_t p = 0; p < t->parts; p++)
            for (int64_t c = 0; c < columns; c++)
                at[kernels ? (c * t->parts + p) * t->given + i : (i * t->parts + p) * columns + c] =
                    factor(t, i, p, c / t->out_parts, c % t->out_parts);
    return onnx_constant(node, type, &shape, at, "turns", out);
}

/* The axis is moved behind all but the parts, multiplied, and moved back. */
static mpl_status transform_axis(onnx_node *node, const transform *t, uint32_t axis)
{
    mpl_shape shape = node->r->g->value_shape[node->in[0]];
    uint32_t rank = shape.rank;
    int64_t perm[MPL_MAX_RANK], dim[MPL_MAX_RANK], at = 0;
    mpl_value in[2], result;

    for (uint32_t i = 0; i < rank; i++)
        if (i != axis && i + 1 < rank)
            dim[at] = shape.dim[i], perm[at++] = i;
    perm[rank - 2] = axis, perm[rank - 1] = rank - 1;
    MPL_PASS(fourier_matrix(node, t, (mpl_type)node->r->g->value_type[node->in[0]], false, &in[1]));
    MPL_PASS(onnx_transpose(node, node->in[0], perm, &in[0]));
    dim[rank - 2] = t->given * t->parts;
    MPL_PASS(onnx_reshape(node, in[0], rank - 1, dim, &in[0]));
    MPL_PASS(onnx_step(node, MPL_OP_matmul, "product", 2, in, 0, NULL, &result));
    dim[rank - 2] = t->out, dim[rank - 1] = t->out_parts;
    MPL_PASS(onnx_reshape(node, result, rank, dim, &result));
    for (uint32_t i = 0; i + 1 < rank; i++)
        perm[i] = i < axis ? (int64_t)i : i == axis ? (int64_t)rank - 2 : (int64_t)i - 1;
    node->n_attr = 0;
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_perm, rank, perm));
    return onnx_finish(node, MPL_OP_transpose, 1, &result);
}

/* Up to opset 19 the axis is an attribute, 1 if absent; then input 2, -2. */
mpl_status onnx_lower_dft(onnx_node *node)
{
    bool onesided = onnx_attr_int(node, "onesided", 0) != 0;
    transform t = {.inverse = onnx_attr_int(node, "inverse", 0) != 0};
    const mpl_attr *given = onnx_get(node, MPL_ATTR_axis);
    mpl_shape shape;
    uint32_t axis = 0;

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    shape = node->r->g->value_shape[node->in[0]];
    MPL_PASS(onnx_axis(node,
                       given != NULL         ? given->ints[0]
                       : node->r->opset < 20 ? 1
                                             : -2,
                       shape.rank, &axis));
    t.parts = shape.dim[shape.rank - 1];
    if (axis + 1 == shape.rank || t.parts < 1 || t.parts > 2)
        return ONNX_REFUSE(node, "its input must end in 1 or 2 parts, and the axis come before");
    t.mirrored = onesided && t.inverse;
    t.given = shape.dim[axis];
    t.length = t.mirrored ? 2 * (t.given - 1) : t.given;
    if (onnx_in(node, 1) != MPL_NONE)
        MPL_PASS(known_int(node, 1, "dft_length", 1, &t.length));
    t.out = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
    t.out_parts = t.mirrored ? 1 : 2;
    if (t.length < 1)
        return ONNX_REFUSE(node, "it has no element to transform");
    return transform_axis(node, &t, axis);
}

/* A convolution whose kernels are the rows of the matrix, times the window. */
mpl_status onnx_lower_stft(onnx_node *node)
{
    transform t = {.out_parts = 2};
    int64_t step = 0, frames;
    mpl_shape shape;
    mpl_value in[2], result, window = onnx_in(node, 2);

    MPL_PASS(known_int(node, 1, "frame_step", 1, &step));
    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its signal is missing");
    shape = node->r->g->value_shape[node->in[0]];
    if (shape.rank == 2)
        shape = (mpl_shape){3, {shape.dim[0], shape.dim[1], 1}};
    if (shape.rank != 3 || shape.dim[2] < 1 || shape.dim[2] > 2)
        return ONNX_REFUSE(node, "its signal must have batch, length, and 1 or 2 parts");
    t.parts = shape.dim[2];
    t.given = window != MPL_NONE && node->r->g->value_shape[window].rank == 1
                  ? node->r->g->value_shape[window].dim[0]
                  : shape.dim[1];
    if (onnx_in(node, 3) != MPL_NONE)
        MPL_PASS(known_int(node, 3, "frame_length", 1, &t.given));
    if (t.given < 1 || t.given > shape.dim[1] ||
        (window != MPL_NONE && node->r->g->value_shape[window].dim[0] != t.given))
        return ONNX_REFUSE(node, "its frames of %" PRId64 " do not fit its signal or its window",
                           t.given);
    t.length = t.given;
    t.out = onnx_attr_int(node, "onesided", 1) != 0 ? t.length / 2 + 1 : t.length;
    frames = (shape.dim[1] - t.given) / step + 1;
    MPL_PASS(fourier_matrix(node, &t, (mpl_type)node->r->g->value_type[node->in[0]], true, &in[1]));
    if (window != MPL_NONE)
        MPL_PASS(onnx_step(node, MPL_OP_mul, "windowed", 2, (mpl_value[]){in[1], window}, 0, NULL,
                           &in[1]));
    MPL_PASS(onnx_reshape(node, node->in[0], 3, shape.dim, &in[0]));
    MPL_PASS(onnx_transpose(node, in[0], (int64_t[]){0, 2, 1}, &in[0]));
    MPL_PASS(
        onnx_step(node, MPL_OP_conv, "frames", 2, in, 1, &MPL_INTS(strides, 1, &step), &result));
    MPL_PASS(onnx_transpose(node, result, (int64_t[]){0, 2, 1}, &result));
    node->n_attr = 0;
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_shape, 4, (int64_t[]){shape.dim[0], frames, t.out, 2}));
    return onnx_finish(node, MPL_OP_reshape, 1, &result);
}
