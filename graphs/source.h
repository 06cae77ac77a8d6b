/* source.h -- sources of graphs and problems (zoo, ONNX, TensorFlow Lite, HLO, .graph text, buffer
 * lists); tensor files. */
#pragma once

#include "graphs/passes/autodiff/autodiff.h"
#include "graphs/problem/problem.h"

/* ---- tensor files (.npy, ONNX TensorProto .pb) ---- */

/* Reads a tensor; content decides the format: "\x93NUMPY" is .npy (C order), else TensorProto.
 * Caller frees tensor->data (mpl_free). MPL_EINPUT: truncated, other byte order, unknown type. */
mpl_status mpl_tensor_read(mpl_ctx *ctx, const char *path, mpl_tensor *tensor);
/* Writes .npy. MPL_EINPUT: bf16 (the format has none), or the file cannot be written. */
mpl_status mpl_tensor_write(mpl_ctx *ctx, const char *path, const mpl_tensor *tensor);

/* ---- readers ---- */

typedef enum mpl_rnn_form {
    MPL_RNN_WHILE,  /* a `while` over the cell */
    MPL_RNN_UNROLL, /* one cell for each time step */
    MPL_RNN_AHEAD   /* the inputs' products of all steps, then a `while` over the rest */
} mpl_rnn_form;

/* What the user adds to a file: sizes of symbolic dims (--dim NAME=N) and contents of inputs that
 * decide shapes (--input NAME=FILE, read by the caller). */
typedef struct mpl_read_options {
    uint32_t n_dims;
    const char *const *dim_name;
    const int64_t *dim_value;
    bool spare_dims; /* ignore dims that the file lacks, so that several files can share options */
    uint32_t n_inputs;
    const char *const *input_name; /* it or an item NULL: input_index alone */
    const uint32_t *input_index;   /* among the inputs of the file, where no input has the name;
                                      MPL_NONE: the name alone */
    const mpl_tensor *input_tensor;
    mpl_rnn_form rnn; /* form of ONNX's LSTM, GRU and RNN */
    /* Of FILE:mode=train, see graphs/passes/autodiff/train_graph.h; NULL: not given. */
    const char *loss, *trainable;
} mpl_read_options;

mpl_status mpl_onnx_read(mpl_ctx *ctx, const char *path, const mpl_read_options *options,
                         mpl_graph **out);
/* The same from memory; `path` is for messages and locates external data. */
mpl_status mpl_onnx_read_memory(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                                const mpl_read_options *options, mpl_graph **out);

/* An entry of an ONNX model's metadata_props. */
typedef struct mpl_onnx_note {
    const char *key, *value;
} mpl_onnx_note;

/* Provides contents of weights: fill writes value_bytes of weight v to data. */
typedef struct mpl_onnx_weights {
    mpl_status (*fill)(void *arg, mpl_value v, void *data);
    void *arg;
} mpl_onnx_weights;

/* Writes an ONNX model of opset 18, or later if an operator needs it: standard operators, weights
 * as initialisers, all shapes, notes as metadata. Reading it back gives the same graph
 * (mpl_graph_hash), except: real attributes have 32 bits, operations on weights alone are folded,
 * and weights are ordered by first use. Holds one weight in memory at a time. MPL_EINPUT: the file
 * would exceed 2 GiB, or ONNX cannot express an operation. */
mpl_status mpl_onnx_write(mpl_ctx *ctx, const char *path, const mpl_graph *g,
                          const mpl_onnx_weights *weights, uint32_t n_notes,
                          const mpl_onnx_note *notes);

/* Copies the ONNX model `from` byte for byte and appends the notes; drops its notes whose keys
 * begin with `prefix`. MPL_EINPUT: no ONNX model, or external weights and `to` is in another
 * folder. */
mpl_status mpl_onnx_annotate(mpl_ctx *ctx, const char *from, const char *to, const char *prefix,
                             uint32_t n_notes, const mpl_onnx_note *notes);

/* Value of note `key` in a model: *n characters, not zero-terminated. NULL: no such note, or no
 * model. */
const char *mpl_onnx_note_find(const void *data, size_t size, const char *key, size_t *n);

/* ---- TensorFlow Lite ---- */

/* Reads the first subgraph of a .tflite model, one value a tensor; what memplan cannot compute is
 * opaque. `path` is for messages. MPL_EINPUT: malformed, or operands that do not fit. */
mpl_status mpl_tflite_read_memory(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                                  mpl_graph **out);

/* A tensor that the file places: live at steps [birth, death); operator i runs at step i + 1. */
typedef struct mpl_tflite_tensor {
    char *name;
    uint64_t bytes, offset; /* [byte] */
    uint32_t birth, death;
} mpl_tflite_tensor;

typedef struct mpl_tflite_plan {
    uint32_t n, n_open, n_inside; /* placed; left to the run; inside the scratch of an operator */
    mpl_tflite_tensor *tensor;    /* [n] */
} mpl_tflite_plan;

/* The offsets that a model brings along (metadata OfflineMemoryAllocation). MPL_EINPUT: none, or
 * malformed. */
mpl_status mpl_tflite_offsets(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                              mpl_tflite_plan *out);
void mpl_tflite_plan_fini(mpl_ctx *ctx, mpl_tflite_plan *plan);
/* What TensorFlow Lite Micro's planner places, in units of 16 bytes: tensors, and the scratch that
 * reference kernels ask for; tensor[(*out)->n]: their numbers, MPL_NONE for scratch. The caller
 * frees both. MPL_EINPUT: malformed, or no such tensor. MPL_EUNAVAIL: several subgraphs, or tensors
 * inside the scratch of a compiled operator. */
mpl_status mpl_tflite_problem(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                              mpl_problem **out, uint32_t **tensor);
/* The same model with the offsets of n tensors in its metadata; *out is freed by the caller. No
 * other byte of its tables and contents changes; those may move by a multiple of 64 bytes.
 * MPL_EINPUT: an offset is beyond 2^31 - 1. MPL_EUNAVAIL: also, contents behind the tables. */
mpl_status mpl_tflite_place(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                            uint32_t n, const uint32_t *tensor, const uint64_t *offset,
                            uint8_t **out, size_t *out_size);

/* ---- the text format ---- */

/* The text format; errors name the line. Writing and reading preserves hash and text exactly. */
mpl_status mpl_text_read(mpl_ctx *ctx, const char *path, mpl_graph **out);
mpl_status mpl_text_read_memory(mpl_ctx *ctx, const char *path, const char *data, size_t size,
                                mpl_graph **out);
mpl_status mpl_text_write(mpl_ctx *ctx, const char *path, const mpl_graph *g);
/* The same to memory. Caller frees *text (mpl_free); it is zero-terminated, *size excludes the
 * zero. */
mpl_status mpl_text_write_memory(mpl_ctx *ctx, const mpl_graph *g, char **text, size_t *size);

/* Text of several graphs over one memory, an `entry` each (graphs/io/text/PROGRAMS.md). */
typedef struct mpl_text_entries {
    uint32_t n_entries, n_states;
    char **entry, **state; /* names */
    char ***update;        /* [n_entries][n_states] value with the new contents; NULL: none */
} mpl_text_entries;

bool mpl_text_has_entries(const char *data, size_t size);
/* Leaves in the text what belongs to one entry, line by line; nothing, if there is none. */
void mpl_text_keep_entry(char *data, size_t size, const char *entry);
/* n_entries 0: a file without entries, of whatever content. MPL_EINPUT names the line. */
mpl_status mpl_text_entries_read(mpl_ctx *ctx, const char *path, mpl_text_entries *out);
mpl_status mpl_text_entries_read_memory(mpl_ctx *ctx, const char *path, const char *data,
                                        size_t size, mpl_text_entries *out);
void mpl_text_entries_fini(mpl_ctx *ctx, mpl_text_entries *entries);

/* Reads a module of XLA's HLO text: its instructions in the order of the text, as opaque
 * operations (graphs/io/hlo/README.md). MPL_EINPUT, with path and line. O(text), calls written
 * out. */
mpl_status mpl_hlo_read_memory(mpl_ctx *ctx, const char *path, const char *data, size_t size,
                               mpl_graph **out);

/* ---- zoo ---- */

typedef struct mpl_zoo_param {
    const char *key;
    int64_t otherwise, min, max;
    const char *about;
    const char *const *choices; /* NULL: a number; mpl_zoo_hundredths: one of up to two decimals,
                                 * the value is 100 times it; else max + 1 words and their index */
} mpl_zoo_param;

extern const char *const mpl_zoo_hundredths[];
/* How a request says a value of the parameter; writes number[MPL_ZOO_NUMBER] if it is one. */
enum { MPL_ZOO_NUMBER = 32 };
const char *mpl_zoo_value_text(const mpl_zoo_param *param, int64_t value, char *number);

struct mpl_zoo_args;
typedef struct mpl_zoo_entry {
    const char *name;
    const char *about;           /* one line with the source */
    const mpl_zoo_param *params; /* ends with key NULL */
    mpl_status (*build)(mpl_ctx *ctx, const struct mpl_zoo_args *args, mpl_graph **out);
    double dropout, rate; /* training: dropout ratio, learning rate; 0: default */
    /* mode=train: build returns the network with its loss (a scalar) and inputs for the targets. */
    bool own_loss;
} mpl_zoo_entry;

extern const mpl_zoo_entry *const mpl_zoo[];   /* NULL-terminated, in the order of zoo.def */
extern const mpl_zoo_param mpl_zoo_training[]; /* of all networks; ends with key NULL */

/* The entry with this name (n characters), or NULL. */
const mpl_zoo_entry *mpl_zoo_find(const char *name, size_t n);

/* Builds "resnet50:batch=16,image=224,mode=train". The graph's name is the network's with the
 * parameters that differ from defaults. mode=train: mpl_autodiff of the network, or of its own
 * loss. MPL_EINPUT: no such network or parameter, or a number out of range. */
mpl_status mpl_zoo_build(mpl_ctx *ctx, const char *spec, mpl_graph **out);

/* Parameters behind a file's name: those of training, `batch` (the open dim of that name) and
 * `layers` (batch norm and dropout as the file runs them, or as training does). */
typedef struct mpl_file_spec {
    bool train;
    int64_t batch;                 /* 0: not given */
    mpl_autodiff_options autodiff; /* without name */
    char suffix[200];              /* those that differ from defaults, for the graph's name */
} mpl_file_spec;

/* Parses ":key=value,.." at text; `file` is for messages. MPL_EINPUT: no such parameter or value.
 */
mpl_status mpl_file_params(mpl_ctx *ctx, const char *file, const char *text, mpl_file_spec *out);

/* ---- any source ---- */

/* Exactly one of graph and problem is set. offset: a plan contained in a buffer list, or NULL. */
typedef struct mpl_source {
    mpl_graph *graph;
    mpl_problem *problem;
    uint64_t *offset;
    uint64_t file_bytes; /* 0: not read from a file [byte] */
} mpl_source;

/* Opens GRAPH of the command line: a file by content (ONNX, TensorFlow Lite, HLO, .graph text,
 * buffer or trace CSV; also packed by gzip); such a file's name, a colon and parameters
 * (mpl_file_params), such as "m.onnx:mode=train"; else a zoo name, "guillotine:n=N[,seed=S]"
 * (mpl_problem_synthetic_guillotine) or "synthetic:n=N[,alive=A][,seed=S]" (mpl_problem_synthetic).
 * Suffixes of a list: ":twin=reversed" reverses time, ":twin=shuffled[,seed=N]" permutes its rows.
 * MPL_EINPUT, with one line that says what was tried. */
mpl_status mpl_source_open(mpl_ctx *ctx, const char *text, const mpl_read_options *options,
                           mpl_source *out);
void mpl_source_fini(mpl_ctx *ctx, mpl_source *source);
