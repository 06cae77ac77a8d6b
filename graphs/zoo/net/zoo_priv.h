/* zoo_priv.h -- a builder with a sticky error, so that generators read like tables.
 *
 * Every helper returns the value that it made. After a failure helpers only return MPL_NONE;
 * mpl_net_end returns the first failure. Names are the scope, a dot, and the given name; weights
 * add ".w", ".b" and the like. Images are f32 in NCHW. */
#pragma once

#include "graphs/source.h"

#define MPL_ZOO_MAX_PARAMS 12

typedef struct mpl_zoo_args {
    const mpl_zoo_entry *entry;
    int64_t value[MPL_ZOO_MAX_PARAMS]; /* in the order of entry->params, each in its range */
    bool train;                        /* if the entry has own_loss, build the loss */
    /* any network of the zoo, for those made of others */
    mpl_status (*any)(mpl_ctx *ctx, const char *spec, mpl_graph **out);
} mpl_zoo_args;

/* MPL_ZOO(key, about, params, build, ..): mpl_zoo_<key>; `.field = value` adds fields. */
#define MPL_ZOO(key, text, list, maker, ...)                                                       \
    const mpl_zoo_entry mpl_zoo_##key = {                                                          \
        .name = #key, .about = text, .params = list, .build = maker, __VA_ARGS__}

/* Value of a parameter of the entry. */
int64_t mpl_zoo_arg(const mpl_zoo_args *args, const char *key);

/* Writes the network's name with its non-default parameters to name; returns it. */
const char *mpl_zoo_name(const mpl_zoo_args *args, char name[256]);

#define MPL_PARAM_BATCH(otherwise)                                                                 \
    {                                                                                              \
        "batch", otherwise, 1, 65536, "images or sequences at once", NULL                          \
    }
#define MPL_PARAM_IMAGE(size, least)                                                               \
    {                                                                                              \
        "image", size, least, 8192, "height and width [pixel]", NULL                               \
    }
#define MPL_PARAM_CLASSES(otherwise)                                                               \
    {                                                                                              \
        "classes", otherwise, 1, 1000000, "classes told apart", NULL                               \
    }
#define MPL_PARAMS(...) ((const mpl_zoo_param[]){__VA_ARGS__, MPL_PARAM_END})
#define MPL_PARAM_END                                                                              \
    {                                                                                              \
        NULL, 0, 0, 0, NULL, NULL                                                                  \
    }
#define MPL_PARAM_FORM                                                                             \
    {                                                                                              \
        "form", 0, 0, 1, "layers whole, or as Owl has them", mpl_zoo_forms                         \
    }

extern const char *const mpl_zoo_forms[]; /* plain, owl */

typedef struct mpl_net {
    mpl_ctx *ctx;
    const mpl_zoo_args *args;
    mpl_graph *graph;
    mpl_status st;
    char scope[64];
    bool owl;    /* layers are taken apart as in Owl */
    char **text; /* [n_texts] names; freed by mpl_net_end */
    size_t n_texts, cap_texts;
} mpl_net;

/* Formats a name of at most 127 characters. */
const char *mpl_net_text(mpl_net *net, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "scope.name". */
const char *mpl_net_scoped(mpl_net *net, const char *name);

/* Starts a graph named after the network and its parameters; borrows `args` until mpl_net_end. */
mpl_net mpl_net_begin(mpl_ctx *ctx, const mpl_zoo_args *args);
/* Makes y the output, finishes and hands over the graph; or frees it and returns the first
 * failure. */
mpl_status mpl_net_end(mpl_net *net, mpl_value y, mpl_graph **out);
/* Makes v an output before that of mpl_net_end. */
void mpl_net_output(mpl_net *net, mpl_value v);

/* The scope of the following names; "": none. */
void mpl_net_scope(mpl_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint32_t mpl_net_rank(const mpl_net *net, mpl_value x);              /* 1 after a failure */
int64_t mpl_net_dim(const mpl_net *net, mpl_value x, uint32_t axis); /* 1 after a failure */
mpl_value mpl_net_input(mpl_net *net, const char *name, uint32_t rank, const int64_t *dim);
mpl_value mpl_net_image(mpl_net *net, int64_t channels); /* input "data", NCHW */
/* An i64 input: classes, words. */
mpl_value mpl_net_numbers(mpl_net *net, const char *name, uint32_t rank, const int64_t *dim);
mpl_value mpl_net_weight(mpl_net *net, const char *name, uint32_t rank, const int64_t *dim);
mpl_value mpl_net_scalar(mpl_net *net, const char *name, float number); /* a constant */
/* A constant with an element for each place. */
mpl_value mpl_net_data(mpl_net *net, const char *name, mpl_type type, uint32_t rank,
                       const int64_t *dim, const void *data);
mpl_value mpl_net_const(mpl_net *net, const char *name, mpl_type type, const mpl_shape *shape,
                        const void *element); /* same for all elements */

/* Any operation with one output, which takes the operation's name. */
mpl_value mpl_net_op(mpl_net *net, mpl_op_kind kind, const char *name, uint32_t n_in,
                     const mpl_value *in, uint32_t n_attr, const mpl_attr *attr);
mpl_value mpl_net_unary(mpl_net *net, mpl_op_kind kind, const char *name, mpl_value x);
mpl_value mpl_net_binary(mpl_net *net, mpl_op_kind kind, const char *name, mpl_value a,
                         mpl_value b);
/* Along channels. */
mpl_value mpl_net_concat(mpl_net *net, const char *name, uint32_t n, const mpl_value *in);

/* Kernel, stride and pads of convolutions and pools; pads are equal at both ends. */
typedef struct mpl_window {
    int64_t kernel[2], stride, pad[2];
} mpl_window;

#define MPL_WINDOW(k, s, p) ((mpl_window){{k, k}, s, {p, p}})

mpl_value mpl_net_pool(mpl_net *net, mpl_op_kind kind, const char *name, mpl_value x, mpl_window w);
mpl_value mpl_net_conv(mpl_net *net, const char *name, mpl_value x, int64_t channels, mpl_window w,
                       int64_t group, bool bias);
/* batch_norm */
mpl_value mpl_net_norm(mpl_net *net, const char *name, mpl_value x, double epsilon);
/* NAME.conv without bias, then NAME.bn. */
mpl_value mpl_net_conv_norm(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                            mpl_window w, int64_t group, double epsilon);
mpl_value mpl_net_relu(mpl_net *net, const char *name, mpl_value x); /* NAME.relu */
/* NAME.conv, NAME.bn, NAME.relu. */
mpl_value mpl_net_conv_relu(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                            mpl_window w, double epsilon);
/* [batch, the rest] by reshape */
mpl_value mpl_net_flatten(mpl_net *net, const char *name, mpl_value x);
/* gemm, weights transposed */
mpl_value mpl_net_dense(mpl_net *net, const char *name, mpl_value x, int64_t units);
/* The usual end of a classifier: avg_pool over the whole image, flatten, dense, softmax. */
mpl_value mpl_net_classify(mpl_net *net, mpl_value x, bool dropout);

/* Scalar losses: softmax cross-entropy, the mean over rows of logits; smooth L1 and sigmoid
 * cross-entropy of logits, the mean over elements. */
mpl_value mpl_net_cross_entropy(mpl_net *net, const char *name, mpl_value logits, mpl_value labels);
mpl_value mpl_net_smooth_l1(mpl_net *net, const char *name, mpl_value x, mpl_value wanted);
mpl_value mpl_net_sigmoid_loss(mpl_net *net, const char *name, mpl_value logits, mpl_value wanted);
/* x, but no gradient flows through it. */
mpl_value mpl_net_stop(mpl_net *net, const char *name, mpl_value x);

/* resnet.c: the image and four stages of resnet101, strides on the first 1x1. Needs batch and
 * image. */
void mpl_net_resnet101(mpl_net *net, mpl_value stage[4]);

/* Control flow: operations made between open and close belong to the block. */
uint32_t mpl_net_open(mpl_net *net, const char *name); /* the block */
mpl_value mpl_net_param(mpl_net *net, const char *name, mpl_type type, const mpl_shape *shape);
mpl_value mpl_net_param_like(mpl_net *net, const char *name, mpl_value like); /* carried value */
/* slice of the first axis */
mpl_value mpl_net_param_slice(mpl_net *net, const char *name, mpl_value scan);
void mpl_net_close(mpl_net *net, uint32_t n_results, const mpl_value *result);

#define MPL_NET_CARRIED 256 /* most values that a loop carries, scans or stacks */

/* A `while` over the body. Sizes [n_carried + n_rows]: out_name (NULL omits the output), out. */
typedef struct mpl_net_loop {
    uint32_t body;
    int64_t trips; /* -1: number of slices */
    uint32_t n_carried, n_scans, n_rows;
    const mpl_value *init, *scan;
    const char *const *out_name;
} mpl_net_loop;
void mpl_net_while(mpl_net *net, const char *name, const mpl_net_loop *loop, mpl_value *out);
/* A `case` with one output; bypass MPL_NONE: none. */
mpl_value mpl_net_case(mpl_net *net, const char *name, mpl_value index, mpl_value bypass,
                       uint32_t n_branches, const uint32_t *branch);

/* Parts of layers under form=owl; see owl_networks.c. */
mpl_value mpl_net_owl_bias(mpl_net *net, const char *name, mpl_value x);
mpl_value mpl_net_owl_norm(mpl_net *net, const char *name, mpl_value x);
mpl_value mpl_net_owl_softmax(mpl_net *net, const char *name, mpl_value x);
/* A value in the scope; a failure is kept for mpl_net_end. */
mpl_value mpl_net_add_value(mpl_net *net, const char *name, mpl_role role, mpl_type type,
                            uint32_t rank, const int64_t *dim);
