/* export.h -- formats of memplan export, one table entry each. */
#pragma once

#include "harness/job/job.h"

/* Input of an export. plan and row are NULL if no plan was asked for. */
typedef struct mpl_export {
    const mpl_options *options;
    const mpl_job *job;
    const mpl_record *row;
    const mpl_plan *plan;
} mpl_export;

typedef struct mpl_export_format {
    const char *name;
    const char *about;
    bool needs_graph, needs_plan;
    mpl_status (*write)(mpl_ctx *ctx, const mpl_export *what, const char *path);
    /* in place of write: plans a problem of its own of the first argument; else NULL */
    mpl_status (*plan)(mpl_ctx *ctx, mpl_options *options, const char *path);
} mpl_export_format;

extern const mpl_export_format mpl_export_formats[]; /* ends with name NULL */

/* export_offline.c, export_offsets.c, export_onnx.c, export_tflite.c, export_trace.c */
mpl_status mpl_export_c_header(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_json(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_mlir(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_tflite(mpl_ctx *ctx, mpl_options *options, const char *path);
/* {"value": [offset, bytes], ..}, as export_onnx.c has it; a third number names the memory, if
 * there are several. */
mpl_status mpl_export_offsets(mpl_ctx *ctx, const mpl_export *what, FILE *to);
mpl_status mpl_export_offline(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_trace(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_onnx(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_onnx_metadata(mpl_ctx *ctx, const mpl_export *what, const char *path);
