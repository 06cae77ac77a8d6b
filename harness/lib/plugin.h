/* memplan/plugin.h -- a planner of your own as a shared library: memplan plan GRAPH --planner
 * so:./libmine.so[:key=value,..]
 *
 * The library defines one variable of this type and name; nothing of memplan is linked to it:
 *
 *     const memplan_plugin memplan_plugin_main = {
 *         .version = MEMPLAN_PLUGIN_VERSION, .size = sizeof(memplan_plugin), .about = "what it
 *         does", .plan = plan,
 *     };
 *
 * memplan loads it in a process of its own, calls plan() there once, and believes nothing: offsets
 * are verified, a claim or a bound that memplan cannot prove itself is dropped, and a crash, an
 * exit or a hang past the time limit is one failed row. What it prints goes to stderr.
 *
 * Versions: MEMPLAN_PLUGIN_VERSION changes only when a library made for the one before would break.
 * Members are only ever added at the end; `size` is what the side that filled a struct knew, and
 * what lies beyond is not there. */
#ifndef MEMPLAN_PLUGIN_H
#define MEMPLAN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMPLAN_PLUGIN_VERSION 1
#define MEMPLAN_NO_LIMIT       UINT64_MAX /* capacity[]: as much as is needed; budget_ticks: none */
#define MEMPLAN_UNFIXED        UINT64_MAX /* fixed[]: the planner chooses */

/* What plan() returns. */
enum {
    MEMPLAN_DONE = 0,          /* result is written */
    MEMPLAN_UNAVAILABLE = 1,   /* it cannot plan this problem, or not here */
    MEMPLAN_BAD_PARAMETER = 2, /* a key or value that it does not know */
    MEMPLAN_NO_MEMORY = 3,
    MEMPLAN_GAVE_UP = 4, /* time or budget ended before there was a plan, or it found none that fits
                          */
};

/* result->claim */
enum { MEMPLAN_UNKNOWN = 0, MEMPLAN_FEASIBLE = 1, MEMPLAN_OPTIMAL = 2, MEMPLAN_INFEASIBLE = 3 };

/* n buffers. Two buffers of one pool must not overlap in memory while they conflict: serial (before
 * == NULL), if [birth, death) of the two overlap; parallel, unless one is before the other. */
typedef struct memplan_problem {
    uint32_t size; /* of this struct. [byte] */
    uint32_t n;
    uint32_t n_pools;         /* pools are memories of their own, each with offsets from 0 */
    uint32_t n_steps;         /* every death is at most this; 0 under parallel */
    const uint64_t *bytes;    /* [n] > 0. [byte] */
    const uint32_t *align;    /* [n] power of two that divides the offset. [byte] */
    const uint32_t *pool;     /* [n] < n_pools */
    const uint32_t *birth;    /* [n] first step that needs it */
    const uint32_t *death;    /* [n] first step that does not; > birth */
    const uint64_t *capacity; /* [n_pools] or MEMPLAN_NO_LIMIT; pool 0 is the one whose size counts.
                                 [byte] */
    const uint64_t *fixed; /* [n] offset that is decided already, or MEMPLAN_UNFIXED; NULL: none is.
                              [byte] */
    const char *const *name; /* [n] for messages; NULL: none have names */

    /* Pairs that may lie at the very same offset although they conflict; otherwise like any two. */
    uint32_t n_in_place;
    const uint32_t *in_place_in, *in_place_out; /* [n_in_place] buffers; bytes[out] <= bytes[in] */
    const uint32_t *in_place_step;              /* [n_in_place] last use of in, first of out */

    /* Parallel; NULL and 0 when serial. Bit b % 64 of before[a * before_words + b / 64]: a is
     * before b, the whole relation. Its reduction, as lists: the successors of a are
     * reduction_item[reduction_begin[a] .. reduction_begin[a + 1]). */
    uint32_t before_words;
    const uint64_t *before;
    const uint32_t *reduction_begin; /* [n + 1] */
    const uint32_t *reduction_item;
} memplan_problem;

typedef struct memplan_request {
    uint32_t size; /* of this struct. [byte] */
    uint32_t n_threads;
    uint64_t seed;         /* of all that is random */
    uint64_t budget_ticks; /* work that it may do, in units of its own; MEMPLAN_NO_LIMIT: none */
    double time_limit_s;   /* return by then; the process is killed a little later */
    uint32_t n_params;     /* key=value pairs after the library's path */
    const char *const *key, *const *value;
} memplan_request;

typedef struct memplan_result {
    uint32_t size;        /* of this struct. [byte] */
    int32_t claim;        /* MEMPLAN_FEASIBLE at the call */
    uint64_t *offset;     /* [n] from the base of the buffer's pool, each to be written. [byte] */
    uint64_t bound_bytes; /* no plan needs less in pool 0; 0: nothing proved. [byte] */
    uint64_t ticks;       /* work done */
    char *message; /* [message_size] one line that says why, where it returns another code than
                      MEMPLAN_DONE */
    size_t message_size;
} memplan_result;

typedef struct memplan_plugin {
    uint32_t version; /* MEMPLAN_PLUGIN_VERSION */
    uint32_t size;    /* sizeof(memplan_plugin) */
    const char *about;
    /* Structs and arrays live until it returns. */
    int (*plan)(const memplan_problem *problem, const memplan_request *request,
                memplan_result *result);
} memplan_plugin;

extern const memplan_plugin memplan_plugin_main;

#ifdef __cplusplus
}
#endif

#endif
