/* source.h -- where graphs and problems come from: the zoo, ONNX, .graph text, buffer lists; and tensor files. */
#ifndef MPL_SOURCE_H
#define MPL_SOURCE_H

#include "graphs/graph.h"
#include "graphs/problem.h"

/* ---- tensor files (.npy, ONNX TensorProto .pb) ------------------------------------------------------------- */

/* Reads a whole tensor, by content: "\x93NUMPY" is .npy (C order), anything else a TensorProto. tensor->data is the
 * caller's (mpl_free). MPL_EINPUT: cut, another byte order, a type that memplan has not. */
mpl_status mpl_tensor_read(mpl_ctx *ctx, const char *path, mpl_tensor *tensor);
/* Writes .npy. MPL_EINPUT for bf16, which the format lacks, or when the file cannot be written. */
mpl_status mpl_tensor_write(mpl_ctx *ctx, const char *path, const mpl_tensor *tensor);

/* ---- readers ----------------------------------------------------------------------------------------------- */

/* What a user says beside the file: sizes of symbolic dims (--dim NAME=N), contents of inputs that decide shapes
 * (--input NAME=FILE, read by the caller). A binding with name NULL stands for the input of its index. */
typedef struct mpl_read_options {
    uint32_t n_dims;
    const char *const *dim_name;
    const int64_t *dim_value;
    uint32_t n_inputs;
    const char *const *input_name; /* NULL: by input_index */
    const uint32_t *input_index;   /* among the inputs of the file */
    const mpl_tensor *input_tensor;
} mpl_read_options;

mpl_status mpl_onnx_read(mpl_ctx *ctx, const char *path, const mpl_read_options *options, mpl_graph **out);
/* The same from memory; `path` is for messages and for the folder of external data. */
mpl_status mpl_onnx_read_memory(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                                const mpl_read_options *options, mpl_graph **out);

/* The text format; errors carry the line. Writing and reading back gives the same graph, byte for byte of hash and text. */
mpl_status mpl_text_read(mpl_ctx *ctx, const char *path, mpl_graph **out);
mpl_status mpl_text_read_memory(mpl_ctx *ctx, const char *path, const char *data, size_t size,
                                mpl_graph **out);
mpl_status mpl_text_write(mpl_ctx *ctx, const char *path, const mpl_graph *g);
/* The same into memory: *text is the caller's (mpl_free), zero-terminated, *size characters without the zero. */
mpl_status mpl_text_write_memory(mpl_ctx *ctx, const mpl_graph *g, char **text, size_t *size);

/* ---- zoo --------------------------------------------------------------------------------------------------- */

typedef struct mpl_zoo_param {
    const char *key;
    int64_t otherwise, min, max;
    const char *about;
    const char *const *choices; /* NULL: a number; else max + 1 words, and the value is the index of one */
} mpl_zoo_param;

struct mpl_zoo_args;
typedef struct mpl_zoo_entry {
    const char *name;
    const char *about;           /* one line with the source */
    const mpl_zoo_param *params; /* ends with key NULL */
    mpl_status (*build)(mpl_ctx *ctx, const struct mpl_zoo_args *args, mpl_graph **out);
} mpl_zoo_entry;

extern const mpl_zoo_entry *const mpl_zoo[]; /* NULL-terminated, in the order of zoo.def */

/* The entry of that name (n characters), or NULL. */
const mpl_zoo_entry *mpl_zoo_find(const char *name, size_t n);

/* "resnet50:batch=16,image=224". The graph's name is the network's with the parameters that are not the default's.
 * MPL_EINPUT: no such network or parameter, a number out of range. */
mpl_status mpl_zoo_build(mpl_ctx *ctx, const char *spec, mpl_graph **out);

/* ---- any of them ---------------------------------------------------------------------------------------------- */

/* Exactly one of graph and problem is set. offset: a list's own plan, where the file has one. */
typedef struct mpl_source {
    mpl_graph *graph;
    mpl_problem *problem;
    uint64_t *offset;
} mpl_source;

/* GRAPH of the command line: a file by its content (ONNX, .graph text, buffer CSV), else a zoo name, or
 * "guillotine:n=N[,seed=S]" or "synthetic:n=N[,alive=A][,seed=S]" (mpl_problem_synthetic_guillotine, mpl_problem_synthetic).
 * A list followed by ":twin=reversed" or ":twin=shuffled[,seed=N]" is the list with time reversed, or with its rows in another
 * order. MPL_EINPUT with one line that says what was looked for. */
mpl_status mpl_source_open(mpl_ctx *ctx, const char *text, const mpl_read_options *options, mpl_source *out);
void mpl_source_fini(mpl_ctx *ctx, mpl_source *source);

#endif
