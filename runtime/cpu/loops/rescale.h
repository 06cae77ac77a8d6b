/* rescale.h -- operators of the backend `cpu` that oneDNN lacks: between floats and 8-bit integers,
 * and of 8-bit integers element by element; images of another size. */
#ifndef MPL_RESCALE_H
#define MPL_RESCALE_H

#include "graphs/graph.h"

/* Runs one operation, with the results of its plain loops bit for bit; allocates nothing. */
typedef mpl_status mpl_rescale(mpl_ctx *ctx, const mpl_op_call *call);

/* The function for an operation, or NULL: quantize and dequantize with one scale,
 * dynamic_quantize, qelementwise of bytes, cast from i32 to f32; pow of f32 by one exponent, within
 * rounding. *how names it. */
mpl_rescale *mpl_rescale_of(const mpl_graph *g, mpl_op op, const char **how);

/* thin.c: the function for a product of f32 with at most four rows, by a matrix of at most 4 MiB;
 * or NULL. Within rounding of its plain loops; one thread. */
mpl_rescale *mpl_thin_of(const mpl_graph *g, mpl_op op, const char **how);

/* planes.c: the function for an average of windows, or a sum or mean over dims side by side before
 * the last, of plain f32; or NULL. Within rounding of its plain loops; one thread. */
mpl_rescale *mpl_planes_of(const mpl_graph *g, mpl_op op, const char **how);

/* The function for a concat of images whose channels lie in blocks: runs of whole blocks; or NULL.
 */
mpl_rescale *mpl_join_of(const mpl_graph *g, mpl_op op, const char **how);

/* roi_means.c: the function for means of regions (roi_align) of f32, in at most `most` bytes of
 * workspace; or NULL. Within rounding of its plain loops; one thread. */
mpl_rescale *mpl_roi_of(const mpl_graph *g, mpl_op op, uint64_t most, uint64_t *workspace_bytes,
                        const char **how);

/* ---- resample.c: resize of f32 planes: along rows first, each row of the input once, then down
 * the columns ---- */

typedef struct mpl_resample mpl_resample;

/* Prepares a resize of the last two dims. *out is NULL if it is none, or of another type. MPL_EMEM.
 */
mpl_status mpl_resample_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_resample **out,
                            uint64_t *workspace_bytes, const char **how);
void mpl_resample_free(mpl_ctx *ctx, mpl_resample *resample); /* NULL is allowed */
/* By the plain loops if an element is infinite or no number: a weight of 0 leaves it out there. */
mpl_status mpl_resample_run(mpl_ctx *ctx, const mpl_resample *resample, const mpl_op_call *call);

#endif
