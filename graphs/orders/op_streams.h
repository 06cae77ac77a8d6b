/* op_streams.h -- which operations of a graph run on which of K streams.
 *
 * A stream runs its operations one after the other, in the order of the graph. An operation also
 * waits for what it reads, if another stream makes it: an event. A unit is an operation of block 0
 * with all of its blocks; it is on one stream. */
#pragma once

#include "graphs/problem/derive/from_graph.h"

/* RULE(name, about): how units are assigned, the first by default. */
#define MPL_STREAM_RULES(RULE)                                                                     \
    RULE(critical_path, "by longest remaining path, where the simulated run ends first")           \
    RULE(earliest, "in order, where the operation can begin first")                                \
    RULE(chain, "in order, behind a predecessor, where nothing else is yet")                       \
    RULE(round_robin, "in order, each on the next stream")
typedef enum mpl_stream_rule {
#define RULE(name, about) MPL_STREAMS_##name,
    MPL_STREAM_RULES(RULE)
#undef RULE
        MPL_N_STREAM_RULES
} mpl_stream_rule;
const char *mpl_stream_rule_name(mpl_stream_rule rule);
const char *mpl_stream_rule_names(void); /* all, with commas between */
bool mpl_stream_rule_find(const char *name, mpl_stream_rule *rule);

typedef struct mpl_streams {
    uint32_t n_ops;
    uint32_t n_units;     /* outermost operations */
    uint32_t n;           /* streams asked for; a rule may leave some empty */
    mpl_stream_rule rule; /* that assigned: critical_path gives way to earliest on large graphs */
    uint32_t *op_stream;  /* [n_ops] < n, < n_ops; inside blocks: the stream of the unit */
} mpl_streams;

/* Assigns the units of g to n >= 1 streams. order[n_ops] respects the graph, with blocks before
 * their owner. cost_ns[n_ops] (NULL: mpl_streams_estimate): the cost of a unit is the sum over its
 * operations. With a stream for each unit, the i-th unit of the order is on stream i under every
 * rule. Ties: after a predecessor, then the lowest stream.
 * critical_path takes units by the longest path of costs that begins with them, then by order. Each
 * is put where max(end of a unit + longest path after it) over the units assigned so far is least,
 * then where it ends first, as simulated. O(units * n * (units + reads)); where that passes 2^32,
 * earliest takes its place: O(units * n + reads). MPL_EINPUT: n is 0. */
mpl_status mpl_streams_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, uint32_t n,
                           mpl_stream_rule rule, const uint64_t *cost_ns, mpl_streams **out);
void mpl_streams_free(mpl_ctx *ctx, mpl_streams *streams);

/* Asks for a problem that is right under these streams: the serial one for one stream, the parallel
 * one where each unit has its own. options->op_stream borrows. */
void mpl_streams_ask(const mpl_streams *streams, mpl_problem_options *options);

/* Estimated costs: 1000 ns an operation, and 1 ns for 16 of mpl_op_work; blocks count one round.
 * Writes cost_ns[n_ops]. */
void mpl_streams_estimate(const mpl_graph *g, uint64_t *cost_ns);

/* The time that a run takes if each unit begins as soon as its stream and what it reads allow, and
 * takes its cost. start_ns[n_ops] (may be NULL) receives the beginning of each unit, at its
 * outermost operation. op_stream NULL: a stream for each unit. */
mpl_status mpl_streams_simulate(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                const uint32_t *op_stream, const uint64_t *cost_ns,
                                uint64_t *start_ns, uint64_t *makespan_ns);

/* Whether each unit has one stream, below n and n_ops. MPL_EINPUT names the operation. */
mpl_status mpl_streams_check(mpl_ctx *ctx, const mpl_graph *g, const mpl_streams *streams);
