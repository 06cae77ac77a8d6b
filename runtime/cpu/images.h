/* images.h -- our own kernels of the backend `cpu` for channels-last images whose pixels may lie
 * apart; oneDNN has no fast code for them. Private to runtime/.
 *
 * The channels of a pixel are contiguous, but for the plain operand of a convolution that turns its
 * layout. Pixels are `pitch` elements apart: the number of channels, or more if an image is some of
 * the channels of another (an operand inside a concat's result). Results are bit-identical for all
 * pitches, threads and batches. */
#ifndef MPL_IMAGES_H
#define MPL_IMAGES_H

#include "graphs/graph.h"

typedef struct mpl_images mpl_images;

/* What runs may take. */
typedef struct mpl_images_limits {
    uint32_t n_threads;
    uint64_t workspace_bytes;
} mpl_images_limits;

/* Prepares an operation: convolutions with constant filters (with AVX-512 of one group, with AVX2
 * as taps.c says), pools, batch norm. stride: as in prepare_strided of backend.h; NULL: all are
 * contiguous. *out is NULL if there is no kernel on this processor. Otherwise *how (may be NULL)
 * names the implementation, and *workspace_bytes is what it takes. MPL_EMEM. */
mpl_status mpl_images_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const int64_t *const *stride,
                          const mpl_images_limits *limits, mpl_images **out,
                          uint64_t *workspace_bytes, const char **how);
void mpl_images_free(mpl_ctx *ctx, mpl_images *images); /* NULL is allowed */
void mpl_images_run(mpl_images *images, const mpl_op_call *call);
/* Bytes of the packed filters. */
uint64_t mpl_images_packed_bytes(const mpl_images *images);

/* ---- convolutions ---- */

typedef struct mpl_image_window {
    int64_t n, high, wide, channels; /* of x */
    int64_t groups;
    int64_t out_high, out_wide, out_channels; /* of y */
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t x_pitch, y_pitch, sum_pitch; /* [element] */
    int64_t x_apart, x_image; /* from channel to channel, and from image to image [element] */
} mpl_image_window;

/* Units [from, to) of y, in the order of rows and images. */
typedef struct mpl_image_part {
    const mpl_image_window *window;
    const float *x, *filter, *bias, *sum; /* filter is packed; bias, sum: or NULL */
    const float *given;                   /* the filter as it was given */
    const float *nothing;                 /* a pixel of zeros, used for pads */
    float *y, *work;                      /* work: n_work floats */
    int64_t from, to;
    float low, high; /* results are clipped to it; NaNs stay */
} mpl_image_part;

/* How a processor computes them. */
typedef struct mpl_image_conv {
    const char *how;
    bool (*fits)(const mpl_image_window *w);         /* whether this processor takes it so */
    uint64_t (*n_packed)(const mpl_image_window *w); /* floats of packed filters */
    uint64_t (*n_work)(const mpl_image_window *w);   /* NULL: none */
    int64_t (*n_units)(const mpl_image_window *w);   /* NULL: each pixel is one */
    /* filter: [out_channels][channels / groups][kernel 0][kernel 1] */
    void (*pack)(const mpl_image_window *w, const float *filter, float *packed);
    void (*run)(const mpl_image_part *part);
} mpl_image_conv;

extern const mpl_image_conv mpl_image_conv_tiles;    /* images_conv.c: AVX-512 */
extern const mpl_image_conv mpl_image_conv_winograd; /* loops/winograd.c: AVX2 */
extern const mpl_image_conv mpl_image_conv_taps;     /* loops/taps.c: AVX2 */

#endif
