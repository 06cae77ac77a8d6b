/* images.h -- our own kernels of the backend `cpu` for channels-last images whose pixels may lie
 * apart; oneDNN has no fast code for them. Private to runtime/.
 *
 * The channels of a pixel are contiguous. Pixels are `pitch` elements apart: the number of
 * channels, or more if an image is some of the channels of another (an operand inside a concat's
 * result). Results are bit-identical for all pitches, threads and batches. */
#ifndef MPL_IMAGES_H
#define MPL_IMAGES_H

#include "graphs/graph.h"

typedef struct mpl_images mpl_images;

/* Prepares an operation: convolutions of one group with constant filters, pools, batch norm.
 * stride: as in prepare_strided of backend.h; NULL: all are contiguous. *out is NULL if there is no
 * kernel on this processor. Otherwise *how (may be NULL) names the implementation. MPL_EMEM. */
mpl_status mpl_images_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const int64_t *const *stride,
                          mpl_images **out, const char **how);
void mpl_images_free(mpl_ctx *ctx, mpl_images *images); /* NULL is allowed */
void mpl_images_run(mpl_images *images, const mpl_op_call *call, uint32_t n_threads);
/* Bytes of the packed filters. */
uint64_t mpl_images_packed_bytes(const mpl_images *images);

/* ---- images_conv.c: a few pixels by a few vectors of channels, of a convolution ---- */

typedef struct mpl_image_window {
    int64_t n, high, wide, channels;          /* of x */
    int64_t out_high, out_wide, out_channels; /* of y */
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    int64_t x_pitch, y_pitch, sum_pitch; /* [element] */
} mpl_image_window;

/* Pixels [from, to) of y, in the order of rows and images, for channels [channel, channel + at most
 * vectors * lanes). */
typedef struct mpl_image_tile {
    const mpl_image_window *window;
    const float *x, *filter, *bias, *sum; /* filter is packed; bias, sum: or NULL */
    const float *nothing;                 /* a pixel of zeros, used for pads */
    float *y;
    int64_t from, to, channel;
    float low, high; /* results are clipped to it */
} mpl_image_tile;

typedef void mpl_image_kernel(const mpl_image_tile *tile);

enum { MPL_IMAGE_VECTORS = 4, MPL_IMAGE_PIXELS = 14 };

/* Kernels of a processor. kernel[v][p]: v vectors, p pixels; NULL: none. */
typedef struct mpl_image_kernels {
    const char *how;
    uint32_t lanes; /* floats in a vector */
    uint32_t most_vectors;
    uint32_t most_pixels[MPL_IMAGE_VECTORS + 1]; /* by number of vectors */
    mpl_image_kernel *kernel[MPL_IMAGE_VECTORS + 1][MPL_IMAGE_PIXELS + 1];
} mpl_image_kernels;

const mpl_image_kernels *mpl_image_kernels_here(void); /* NULL: none for this processor */

#endif
