/* memplan/plugin.h -- your own planner as a shared library:
 *     memplan plan GRAPH --planner so:./libmine.so[:key=value,..]
 *
 * The library defines one variable of this type and name, and links nothing of memplan:
 *
 *     const memplan_plugin memplan_plugin_main = {
 *         .version = MEMPLAN_PLUGIN_VERSION, .size = sizeof(memplan_plugin),
 *         .about = "what it does", .plan = plan,
 *     };
 *
 * memplan loads it in a separate process and calls plan() there once. Offsets are verified. A claim
 * or bound that memplan cannot prove itself is dropped. A crash, an exit, or running past the time
 * limit is one failed row. Its standard output goes to stderr.
 *
 * MEMPLAN_PLUGIN_VERSION changes only when libraries made for the previous version would break.
 * Members are only added at the end. `size` is the size of the struct known to the side that filled
 * it; members beyond it are absent. */
#ifndef MEMPLAN_PLUGIN_H
#define MEMPLAN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMPLAN_PLUGIN_VERSION 1
#define MEMPLAN_NO_LIMIT       UINT64_MAX /* capacity[] or budget_ticks: none */
#define MEMPLAN_UNFIXED        UINT64_MAX /* fixed[]: the planner chooses */

/* Return codes of plan(). */
enum {
    MEMPLAN_DONE = 0,          /* result is written */
    MEMPLAN_UNAVAILABLE = 1,   /* it cannot plan this problem, or not on this machine */
    MEMPLAN_BAD_PARAMETER = 2, /* an unknown key or value */
    MEMPLAN_NO_MEMORY = 3,
    MEMPLAN_GAVE_UP = 4, /* time or budget ran out, or no plan found fits */
};

/* result->claim */
enum { MEMPLAN_UNKNOWN = 0, MEMPLAN_FEASIBLE = 1, MEMPLAN_OPTIMAL = 2, MEMPLAN_INFEASIBLE = 3 };

/* n buffers. Two buffers of one pool must not overlap in memory if they conflict. Serial (before ==
 * NULL): if their [birth, death) overlap. Parallel: unless one is before the other. */
typedef struct memplan_problem {
    uint32_t size; /* of this struct [byte] */
    uint32_t n;
    uint32_t n_pools;         /* separate memories, each with offsets from 0 */
    uint32_t n_steps;         /* at least every death; 0 under parallel */
    const uint64_t *bytes;    /* [n] > 0 [byte] */
    const uint32_t *align;    /* [n] power of two that divides the offset [byte] */
    const uint32_t *pool;     /* [n] < n_pools */
    const uint32_t *birth;    /* [n] first step that needs it */
    const uint32_t *death;    /* [n] first step that no longer needs it; > birth */
    const uint64_t *capacity; /* [n_pools] or MEMPLAN_NO_LIMIT [byte]; pool 0 is minimised */
    const uint64_t *fixed;    /* [n] required offset, or MEMPLAN_UNFIXED [byte]; NULL: none */
    const char *const *name;  /* [n] for messages; NULL: no names */

    /* Pairs that may share one offset although they conflict; otherwise they conflict as usual. */
    uint32_t n_in_place;
    const uint32_t *in_place_in, *in_place_out; /* [n_in_place] buffers; bytes[out] <= bytes[in] */
    const uint32_t *in_place_step;              /* [n_in_place] last use of in, first of out */

    /* Parallel; NULL and 0 when serial. The whole relation: a is before b if bit b % 64 of before[a
     * * before_words + b / 64] is set. Its transitive reduction as lists: the successors of a are
     * reduction_item[reduction_begin[a] .. reduction_begin[a + 1]). */
    uint32_t before_words;
    const uint64_t *before;
    const uint32_t *reduction_begin; /* [n + 1] */
    const uint32_t *reduction_item;
} memplan_problem;

typedef struct memplan_request {
    uint32_t size; /* of this struct [byte] */
    uint32_t n_threads;
    uint64_t seed;         /* of all random choices */
    uint64_t budget_ticks; /* limit of work, in the planner's own unit; MEMPLAN_NO_LIMIT: none */
    double time_limit_s;   /* return by then; the process is killed shortly after */
    uint32_t n_params;     /* key=value pairs after the library's path */
    const char *const *key, *const *value;
} memplan_request;

typedef struct memplan_result {
    uint32_t size;        /* of this struct [byte] */
    int32_t claim;        /* MEMPLAN_FEASIBLE at the call */
    uint64_t *offset;     /* [n] from the base of the buffer's pool; write all [byte] */
    uint64_t bound_bytes; /* no plan needs less in pool 0; 0: nothing proved [byte] */
    uint64_t ticks;       /* work done */
    char *message;        /* [message_size] one line: reason of a code other than MEMPLAN_DONE */
    size_t message_size;
} memplan_result;

typedef struct memplan_plugin {
    uint32_t version; /* MEMPLAN_PLUGIN_VERSION */
    uint32_t size;    /* sizeof(memplan_plugin) */
    const char *about;
    /* Structs and arrays stay valid until it returns. */
    int (*plan)(const memplan_problem *problem, const memplan_request *request,
                memplan_result *result);
} memplan_plugin;

extern const memplan_plugin memplan_plugin_main;

#ifdef __cplusplus
}
#endif

#endif
