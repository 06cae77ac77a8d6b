/* source.h -- where graphs and problems come from: the zoo, ONNX, .graph text, buffer lists; and
 * tensor files. */
#ifndef MPL_SOURCE_H
#define MPL_SOURCE_H

#include "graphs/graph.h"
#include "graphs/problem/problem.h"

/* ---- tensor files (.npy, ONNX TensorProto .pb) ---- */

/* Reads a whole tensor, by content: "\x93NUMPY" is .npy (C order), anything else a TensorProto.
 * tensor->data is the caller's (mpl_free). MPL_EINPUT: cut, another byte order, a type that memplan
 * has not. */
mpl_status mpl_tensor_read(mpl_ctx *ctx, const char *path, mpl_tensor *tensor);
/* Writes .npy. MPL_EINPUT for bf16, which the format lacks, or when the file cannot be written. */
mpl_status mpl_tensor_write(mpl_ctx *ctx, const char *path, const mpl_tensor *tensor);

/* ---- readers ---- */

typedef enum mpl_rnn_form {
    MPL_RNN_WHILE, /* a `while` over the cell */
    MPL_RNN_UNROLL /* a cell for each step in time */
} mpl_rnn_form;

/* What a user says beside the file: sizes of symbolic dims (--dim NAME=N), contents of inputs that
 * decide shapes (--input NAME=FILE, read by the caller). A binding with name NULL stands for the
 * input of its index. */
typedef struct mpl_read_options {
    uint32_t n_dims;
    const char *const *dim_name;
    const int64_t *dim_value;
    bool spare_dims; /* a dim that the file has not is no error: what is said serves several files
                      */
    uint32_t n_inputs;
    const char *const *input_name; /* NULL: by input_index */
    const uint32_t *input_index;   /* among the inputs of the file */
    const mpl_tensor *input_tensor;
    mpl_rnn_form rnn; /* what becomes of ONNX's LSTM, GRU and RNN */
} mpl_read_options;

mpl_status mpl_onnx_read(mpl_ctx *ctx, const char *path, const mpl_read_options *options,
                         mpl_graph **out);
/* The same from memory; `path` is for messages and for the folder of external data. */
mpl_status mpl_onnx_read_memory(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                                const mpl_read_options *options, mpl_graph **out);

/* An entry of an ONNX model's metadata_props: what it says beside its graph. */
typedef struct mpl_onnx_note {
    const char *key, *value;
} mpl_onnx_note;

/* Who knows the contents of weights: fill writes all value_bytes of weight v to data. */
typedef struct mpl_onnx_weights {
    mpl_status (*fill)(void *arg, mpl_value v, void *data);
    void *arg;
} mpl_onnx_weights;

/* The graph as an ONNX model of opset 18, or later where an operator came later: standard
 * operators, weights as initialisers, the shape of every value, the notes as metadata. Read back it
 * is the same graph (mpl_graph_hash), but that floating attributes are 32 bits wide there, that
 * what depends on weights alone is then computed while reading, and that weights come where they
 * are first used. One weight at a time is in memory. MPL_EINPUT: the file would pass 2 GiB, an
 * operation that ONNX cannot say. */
mpl_status mpl_onnx_write(mpl_ctx *ctx, const char *path, const mpl_graph *g,
                          const mpl_onnx_weights *weights, uint32_t n_notes,
                          const mpl_onnx_note *notes);

/* The ONNX model `from`, byte for byte, with those entries behind; its own whose keys begin with
 * `prefix` are left out. MPL_EINPUT: no ONNX model, or its weights lie beside it and `to` is in
 * another folder. */
mpl_status mpl_onnx_annotate(mpl_ctx *ctx, const char *from, const char *to, const char *prefix,
                             uint32_t n_notes, const mpl_onnx_note *notes);

/* The value of entry `key` in a model; NULL: it has none, or is no model. *n characters, no zero
 * behind. */
const char *mpl_onnx_note_find(const void *data, size_t size, const char *key, size_t *n);

/* The text format; errors carry the line. Writing and reading back gives the same graph, byte for
 * byte of hash and text. */
mpl_status mpl_text_read(mpl_ctx *ctx, const char *path, mpl_graph **out);
mpl_status mpl_text_read_memory(mpl_ctx *ctx, const char *path, const char *data, size_t size,
                                mpl_graph **out);
mpl_status mpl_text_write(mpl_ctx *ctx, const char *path, const mpl_graph *g);
/* The same into memory: *text is the caller's (mpl_free), zero-terminated, *size characters without
 * the zero. */
mpl_status mpl_text_write_memory(mpl_ctx *ctx, const mpl_graph *g, char **text, size_t *size);

/* ---- zoo ---- */

typedef struct mpl_zoo_param {
    const char *key;
    int64_t otherwise, min, max;
    const char *about;
    const char *const *choices; /* NULL: a number; else max + 1 words, and the value is the index of
                                   one */
} mpl_zoo_param;

struct mpl_zoo_args;
typedef struct mpl_zoo_entry {
    const char *name;
    const char *about;           /* one line with the source */
    const mpl_zoo_param *params; /* ends with key NULL */
    mpl_status (*build)(mpl_ctx *ctx, const struct mpl_zoo_args *args, mpl_graph **out);
    double dropout, rate; /* in training: part of the values that is dropped, pace of the updates;
                             0: the default */
    bool own_loss; /* mode=train: build makes the network up to its loss, a number, with inputs for
                      what is wanted of it */
} mpl_zoo_entry;

extern const mpl_zoo_entry *const mpl_zoo[];   /* NULL-terminated, in the order of zoo.def */
extern const mpl_zoo_param mpl_zoo_training[]; /* parameters that every network has besides; ends
                                                  with key NULL */

/* The entry of that name (n characters), or NULL. */
const mpl_zoo_entry *mpl_zoo_find(const char *name, size_t n);

/* "resnet50:batch=16,image=224,mode=train". The graph's name is the network's with the parameters
 * that are not the default's. mode=train: mpl_autodiff of the network, or of its own loss.
 * MPL_EINPUT: no such network or parameter, a number out of range. */
mpl_status mpl_zoo_build(mpl_ctx *ctx, const char *spec, mpl_graph **out);

/* ---- any of them ---- */

/* Exactly one of graph and problem is set. offset: a list's own plan, where the file has one. */
typedef struct mpl_source {
    mpl_graph *graph;
    mpl_problem *problem;
    uint64_t *offset;
    uint64_t file_bytes; /* of the file; 0: it is none [byte] */
} mpl_source;

/* GRAPH of the command line: a file by its content (ONNX, .graph text, buffer CSV), else a zoo
 * name, or "guillotine:n=N[,seed=S]" or "synthetic:n=N[,alive=A][,seed=S]"
 * (mpl_problem_synthetic_guillotine, mpl_problem_synthetic). A list followed by ":twin=reversed" or
 * ":twin=shuffled[,seed=N]" is the list with time reversed, or with its rows in another order.
 * MPL_EINPUT with one line that says what was looked for. */
mpl_status mpl_source_open(mpl_ctx *ctx, const char *text, const mpl_read_options *options,
                           mpl_source *out);
void mpl_source_fini(mpl_ctx *ctx, mpl_source *source);

#endif
