/* optimise.h -- passes that make a graph smaller and keep its outputs; listed in passes.def.
 *
 * A pass looks at a finished graph and notes edits. An edit expresses the outputs of an operation
 * in earlier values of that graph, so edits hold independently of each other. Then a new graph is
 * built. Operations in blocks of control flow are left alone; their captures follow the edits.
 * Inputs and outputs keep their names. Patterns: those of the Owl library's optimiser (P.
 * Vandenhove, "Functional Design of Computation Graph"), common subexpressions, constants, batch
 * norm into weights. */
#pragma once

#include "graphs/graph.h"

typedef enum mpl_pass_id {
#define PASS(name, tolerance, about) MPL_PASS_##name,
#include "graphs/passes/passes.def"
#undef PASS
    MPL_N_PASSES
} mpl_pass_id;

typedef struct mpl_pass_info {
    const char *name, *about;
    double tolerance; /* of outputs, see passes.def */
} mpl_pass_info;

extern const mpl_pass_info mpl_pass_table[MPL_N_PASSES];

/* Which passes run. */
typedef struct mpl_pass_set {
    bool on[MPL_N_PASSES];
    bool unsafe; /* also rewrite what does not hold for every float */
} mpl_pass_set;

/* Parses "none", "all", or a comma-separated list of passes and "unsafe". "all,unsafe" is every
 * pass except bn_fma, which splits an operator that libraries provide whole. MPL_EINPUT: an unknown
 * name (the message lists the known ones); unsafe without a pass. */
mpl_status mpl_pass_set_parse(mpl_ctx *ctx, const char *text, mpl_pass_set *out);

/* Whether a pass of the set computes with contents of weights that may have no data. */
bool mpl_pass_set_reads_weights(const mpl_pass_set *set);

/* Writes all value_bytes of weight v, which has no data, for passes that compute. */
typedef struct mpl_weight_source {
    mpl_status (*fill)(void *arg, const mpl_graph *g, mpl_value v, void *data);
    void *arg;
} mpl_weight_source;

/* Totals of one pass over all of its turns. */
typedef struct mpl_pass_count {
    uint32_t places;    /* edits; of dead_code, removed operations */
    int64_t ops_less;   /* operations before minus after */
    int64_t bytes_less; /* bytes that operations make, before minus after [byte] */
} mpl_pass_count;

/* Replaces *g (finished) by the result of the passes, run in turns until none finds anything.
 * weights may be NULL: then batch norm passes use only weights with data. A pass that found
 * something removes unread operations. count[MPL_N_PASSES] may be NULL. MPL_EINPUT: an operation
 * updates a weight, or writes into a value. On failure only mpl_graph_free may be called on *g.
 * O(size) a turn, plus what folding computes. */
mpl_status mpl_graph_optimise(mpl_ctx *ctx, mpl_graph **g, const mpl_pass_set *set,
                              const mpl_weight_source *weights, mpl_pass_count *count);
