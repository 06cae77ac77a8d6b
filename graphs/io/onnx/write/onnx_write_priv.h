/* onnx_write_priv.h -- nodes of a model being written, shared by the onnx_write files. */
#pragma once

#include "graphs/io/onnx/onnx_priv.h"

typedef struct writer {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_onnx_weights *weights;
    int64_t opset;
    onnx_sink *to;
    uint32_t n_names; /* made by onnx_new_name; equal in both passes */
    bool *named;      /* [n_ops] first operation of its name: node names are unique */
    void **part;      /* freed after each node of the whole graph */
    size_t n_parts, cap_parts;
} writer;

/* Nodes of a graph in order, in the writer's memory. */
typedef struct onnx_nodes {
    Onnx__NodeProto **item;
    size_t n, cap;
} onnx_nodes;

/* Scratch memory until the end of the node. */
void *onnx_part(writer *out, size_t n, size_t size);
#define part_new(w, p, n) (((p) = onnx_part(w, n, sizeof *(p))) != NULL ? MPL_OK : MPL_EMEM)

/* The node of an operation without control flow. */
mpl_status onnx_make_node(writer *w, mpl_op op, Onnx__NodeProto **out);

/* Adds an attribute of that name to a node with room for it, whatever the key of `from`. */
mpl_status onnx_add_attr(writer *out, Onnx__NodeProto *node, const char *name, size_t n_name,
                         const mpl_attr *from);

/* Names the node after its operation, if that is the first of the name. */
void onnx_name_node(const writer *out, mpl_op op, Onnx__NodeProto *node);

/* ---- onnx_write_control.c ---- */

/* A value's name, type and dims. */
mpl_status onnx_describe(writer *w, const char *name, mpl_type type, const mpl_shape *shape,
                         Onnx__ValueInfoProto **out);
/* Adds all nodes of an operation: several for control flow and fused operations, else one. */
mpl_status onnx_add_nodes(writer *out, mpl_op op, onnx_nodes *to);
uint32_t onnx_count_attrs(const mpl_graph *g, mpl_op op);
/* Whether a fused gemm has an operand a of more dims than a matrix: a MatMul in ONNX. */
bool onnx_is_stacked(const mpl_graph *g, mpl_op op);
/* The rule that an operation is written by; of a fused convolution or gemm, the plain one. */
const onnx_rule *onnx_write_rule(const mpl_graph *g, mpl_op op, int64_t opset);
/* The item of the rule for attribute `key`; false: there is none. */
bool onnx_find_item(const onnx_rule *rule, mpl_attr_key key, onnx_item *out);
/* A free name for the constant that stands for an attribute. */
mpl_status onnx_name_constant(writer *w, mpl_op op, mpl_attr_key key, char **out);
/* Floating numbers in 32 bits, as in ONNX; in the writer's memory. */
mpl_status onnx_narrow(writer *w, const mpl_attr *attr, float **out);
