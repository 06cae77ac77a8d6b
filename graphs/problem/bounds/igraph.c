/* igraph.c -- maximum flow through igraph. See igraph.h. */
#include "graphs/problem/bounds/igraph.h"

#include <igraph.h>
#include <pthread.h>

/* Unless built with IGRAPH_THREAD_SAFE, igraph keeps its error handler and its list of objects to
 * free in globals. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* igraph's default handler aborts the process; this one returns. */
static void keep_quiet(const char *reason, const char *file, int line, igraph_error_t code)
{
    (void)reason, (void)file, (void)line, (void)code;
    IGRAPH_FINALLY_FREE();
}

static mpl_status status_of(mpl_ctx *ctx, igraph_error_t code)
{
    if (code == IGRAPH_SUCCESS)
        return MPL_OK;
    if (code == IGRAPH_ENOMEM)
        return mpl_fail(ctx, MPL_EMEM, __FILE__, __LINE__, "out of memory in igraph");
    return mpl_fail(ctx, MPL_EINPUT, __FILE__, __LINE__, "igraph: %s", igraph_strerror(code));
}

#define IG(call) MPL_TRY(status_of(ctx, call))

mpl_status mpl_max_flow(mpl_ctx *ctx, uint32_t n_nodes, size_t n_arcs, const uint32_t *from,
                        const uint32_t *to, const uint64_t *capacity, uint32_t source,
                        uint32_t sink, uint64_t *flow, uint8_t *side)
{
    mpl_status st = MPL_OK;
    igraph_error_handler_t *before;
    igraph_t graph = {0};
    igraph_vector_int_t ends = {0}, partition = {0};
    igraph_vector_t weight = {0};
    bool has_graph = false;
    igraph_real_t value;

    pthread_mutex_lock(&one_at_a_time);
    before = igraph_set_error_handler(keep_quiet);
    IG(igraph_vector_int_init(&ends, 2 * (igraph_integer_t)n_arcs));
    IG(igraph_vector_int_init(&partition, 0));
    IG(igraph_vector_init(&weight, (igraph_integer_t)n_arcs));
    for (size_t i = 0; i < n_arcs; i++) {
        VECTOR(ends)[2 * i] = from[i];
        VECTOR(ends)[2 * i + 1] = to[i];
        VECTOR(weight)[i] = (double)capacity[i];
    }
    IG(igraph_create(&graph, &ends, n_nodes, IGRAPH_DIRECTED));
    has_graph = true;
    IG(igraph_maxflow(&graph, &value, NULL, NULL, &partition, NULL, source, sink, &weight, NULL));
    *flow = (uint64_t)value;
    memset(side, 0, n_nodes);
    for (igraph_integer_t i = 0; i < igraph_vector_int_size(&partition); i++)
        side[VECTOR(partition)[i]] = 1;
out:
    if (has_graph)
        igraph_destroy(&graph);
    igraph_vector_int_destroy(&ends);
    igraph_vector_int_destroy(&partition);
    igraph_vector_destroy(&weight);
    igraph_set_error_handler(before);
    pthread_mutex_unlock(&one_at_a_time);
    return st;
}
