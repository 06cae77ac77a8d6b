/* onnx_write_priv.h -- what onnx_write.c and onnx_write_control.c share: nodes on their way into a
 * model. */
#ifndef MPL_ONNX_WRITE_PRIV_H
#define MPL_ONNX_WRITE_PRIV_H

#include "graphs/io/onnx/onnx_priv.h"

typedef struct writer {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_onnx_weights *weights;
    int64_t opset;
    onnx_sink *to;
    uint32_t n_names; /* that onnx_new_name has made, the same each time that the graph is gone
                         through */
    bool *named; /* [n_ops] whether its node has its name: the first one that has it, as names of
                    nodes are unique */
    void **part; /* freed after each node of the whole graph */
    size_t n_parts, cap_parts;
} writer;

/* Nodes of a graph in order, in the writer's memory. */
typedef struct onnx_nodes {
    Onnx__NodeProto **item;
    size_t n, cap;
} onnx_nodes;

/* Memory until the end of the node. */
void *onnx_part(writer *w, size_t n, size_t size);
#define part_new(w, p, n) (((p) = onnx_part(w, n, sizeof *(p))) != NULL ? MPL_OK : MPL_EMEM)

/* The node of an operation that is no control flow. */
mpl_status onnx_make_node(writer *w, mpl_op op, Onnx__NodeProto **out);

/* The next attribute of a node with room for it, under that name, whatever the key of `from`. */
mpl_status onnx_add_attr(writer *w, Onnx__NodeProto *node, const char *name, size_t n_name,
                         const mpl_attr *from);

/* The name of its operation, where that is the first of the name. */
void onnx_name_node(const writer *w, mpl_op op, Onnx__NodeProto *node);

/* ---- onnx_write_control.c ---- */

/* A value's name, type and dims. */
mpl_status onnx_describe(writer *w, const char *name, mpl_type type, const mpl_shape *shape,
                         Onnx__ValueInfoProto **out);
/* All nodes of an operation: one, but for control flow and convolutions that do more. */
mpl_status onnx_add_nodes(writer *w, mpl_op op, onnx_nodes *to);
/* How many attributes an operation has. */
uint32_t onnx_count_attrs(const mpl_graph *g, mpl_op op);
/* The rule that an operation is written by; a convolution that does more is one with nodes behind
 * it. */
const onnx_rule *onnx_write_rule(const mpl_graph *g, mpl_op op, int64_t opset);
/* The item of the rule that stands for attribute `key`; false: none does. */
bool onnx_find_item(const onnx_rule *rule, mpl_attr_key key, onnx_item *out);
/* A name for the constant that stands for an attribute, free in the graph. */
mpl_status onnx_name_constant(writer *w, mpl_op op, mpl_attr_key key, char **out);
/* Floating numbers in 32 bits, as ONNX has them, in the writer's memory. */
mpl_status onnx_narrow(writer *w, const mpl_attr *attr, float **out);

#endif
