/* optimise.h -- passes that make a graph smaller and leave its outputs as they are; passes.def
 * lists them.
 *
 * A pass looks at a finished graph and notes edits, each of which says what the outputs of an
 * operation are in terms of earlier values of that graph: so edits hold whichever others are made.
 * Then a new graph is built. Operations in blocks of control flow are left alone; what they capture
 * follows the edits. Names of inputs and outputs stay. Patterns: those of the Owl library's
 * optimiser (P. Vandenhove, "Functional Design of Computation Graph"), common subexpressions,
 * constants, batch norm into weights. */
#ifndef MPL_OPTIMISE_H
#define MPL_OPTIMISE_H

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
    bool unsafe; /* what does not hold for every float, too */
} mpl_pass_set;

/* "none", "all", or names of passes and "unsafe", with commas; "all,unsafe" is all there is but
 * bn_fma, which takes an operator apart that libraries have whole. MPL_EINPUT: another name, with
 * those there are; unsafe without a pass. */
mpl_status mpl_pass_set_parse(mpl_ctx *ctx, const char *text, mpl_pass_set *out);

/* Whether a pass of the set computes with the contents of weights that may have no data. */
bool mpl_pass_set_reads_weights(const mpl_pass_set *set);

/* Writes all value_bytes of weight v, which has no data, for passes that compute. */
typedef struct mpl_weight_source {
    mpl_status (*fill)(void *arg, const mpl_graph *g, mpl_value v, void *data);
    void *arg;
} mpl_weight_source;

/* What one pass did, all of its turns together. */
typedef struct mpl_pass_count {
    uint32_t places;    /* edits; of dead_code, operations that went */
    int64_t ops_less;   /* operations before minus after */
    int64_t bytes_less; /* what operations make, before minus after [byte] */
} mpl_pass_count;

/* Replaces *g (finished) by what the passes of the set make of it, in turns until none finds
 * anything. weights may be NULL: batch norms take and give only weights with data. A pass that
 * found something leaves no operation without a reader. count[MPL_N_PASSES] may be NULL.
 * MPL_EINPUT: an operation updates a weight, or writes into a value. On failure *g is fit for
 * mpl_graph_free alone. O(size) a turn, and what folding computes. */
mpl_status mpl_graph_optimise(mpl_ctx *ctx, mpl_graph **g, const mpl_pass_set *set,
                              const mpl_weight_source *weights, mpl_pass_count *count);

#endif
