/* memplan.h -- the library libmemplan: plan the memory of a graph, or of buffers of your own, from
 * C or C++.
 *
 *     memplan_ctx *ctx = memplan_ctx_new();
 *     memplan_task *task = NULL;
 *     memplan_plan *plan = NULL;
 *
 *     if (memplan_load(ctx, "model.onnx", &task) != MEMPLAN_OK || memplan_run(task, "portfolio",
 *     &plan) != MEMPLAN_OK)
 *         fprintf(stderr, "%s\n", memplan_message(ctx));
 *     for (uint32_t b = 0; plan != NULL && b < memplan_count(task); b++)
 *         printf("%s at %" PRIu64 "\n", memplan_name(task, b), memplan_offset(plan, b));
 *     memplan_plan_free(plan), memplan_task_free(task), memplan_ctx_free(ctx);
 *
 * A context, and all that was made with it, belongs to one thread at a time; contexts do not know
 * of each other, so each thread may have its own. Tasks outlive their plans, contexts their tasks.
 * On failure outputs are untouched, and nothing stays allocated but what stood before. Every plan
 * that is handed out was accepted by a verifier that shares no code with any planner.
 *
 * Sizes and offsets are bytes. Ids of buffers go from 0, in the order of the file or of
 * memplan_add. Versions: functions are only ever added while the library's name is libmemplan.so.0;
 * each carries the version that brought it. */
#ifndef MEMPLAN_H
#define MEMPLAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MEMPLAN_API __attribute__((visibility("default")))
#else
#define MEMPLAN_API
#endif

#define MEMPLAN_NO_BUFFER UINT32_MAX
#define MEMPLAN_NO_OFFSET UINT64_MAX

typedef enum memplan_status {
    MEMPLAN_OK,
    MEMPLAN_EMEM,     /* memory ran out */
    MEMPLAN_EINPUT,   /* a file or an argument is wrong */
    MEMPLAN_ELIMIT,   /* budget, time or capacity ended before there was a plan; there may be one */
    MEMPLAN_EINVALID, /* the verifier refused a plan, or it is proved that none fits the capacity */
    MEMPLAN_EUNAVAIL, /* not in this build, or the task lacks what this planner needs */
} memplan_status;

/* What is known of a plan: it is valid, or no valid one is smaller. */
typedef enum memplan_claim { MEMPLAN_IS_FEASIBLE, MEMPLAN_IS_OPTIMAL } memplan_claim;

typedef struct memplan_ctx memplan_ctx;   /* settings, and the message of the last failure */
typedef struct memplan_task memplan_task; /* what is to be planned: buffers, and which of them must
                                             not overlap */
typedef struct memplan_plan memplan_plan; /* an offset for each buffer of one task */

/* ---- contexts ---- */

MEMPLAN_API const char *memplan_version(void);  /* "0.1.0" */
MEMPLAN_API memplan_ctx *memplan_ctx_new(void); /* NULL: out of memory */
MEMPLAN_API void memplan_ctx_free(memplan_ctx *ctx);
/* One line about the last failure with this context; lives until the next. */
MEMPLAN_API const char *memplan_message(const memplan_ctx *ctx);

/* A setting, by the name and in the words of the command line (memplan plan --help): safety, order,
 * in-place, views, pin, pools, capacity [byte] and dim ("NAME=N", one more each time) for
 * memplan_load from then on, budget [ticks], time-limit [s], threads and seed for memplan_run.
 * value NULL: as it was at first. An order that is searched for gives way to the order given where
 * portfolio plans that lower: it is the best where concats copy, and plans need not. */
MEMPLAN_API memplan_status memplan_set(memplan_ctx *ctx, const char *name, const char *value);

/* ---- tasks ---- */

/* GRAPH of the command line: an ONNX file, .graph text, a list of buffers in CSV, NAME.tensors.csv
 * with its partial order, a network of the zoo ("resnet50:batch=4"). */
MEMPLAN_API memplan_status memplan_load(memplan_ctx *ctx, const char *graph, memplan_task **task);

/* A task without buffers, for those that follow. Once it was planned or checked, it is complete.
 * name may be NULL. */
MEMPLAN_API memplan_status memplan_task_new(memplan_ctx *ctx, const char *name,
                                            memplan_task **task);
/* One more buffer that lives in steps [birth, death), at an offset that is a multiple of `align`, a
 * power of two. name (may be NULL) is copied, id (may be NULL) receives its id. With birth = death
 * = 0, which is all or none of the buffers, the task has a partial order instead of steps: two
 * buffers may share memory only where one is before the other. */
MEMPLAN_API memplan_status memplan_add(memplan_task *task, const char *name, uint64_t bytes,
                                       uint32_t align, uint32_t birth, uint32_t death,
                                       uint32_t *id);
/* a's last use is before b's first in every execution. For tasks without steps; what follows from
 * other pairs may be left out. */
MEMPLAN_API memplan_status memplan_add_before(memplan_task *task, uint32_t a, uint32_t b);
/* `out` may be written over `in`, at the very same offset; with steps, `in` must die with the step
 * at which `out` is born. */
MEMPLAN_API memplan_status memplan_add_in_place(memplan_task *task, uint32_t in, uint32_t out);
MEMPLAN_API memplan_status memplan_fix(memplan_task *task, uint32_t buffer, uint64_t offset);
/* The arena must not be larger. UINT64_MAX: as large as is needed. */
MEMPLAN_API memplan_status memplan_set_capacity(memplan_task *task, uint64_t bytes);
/* Says now what memplan_run would say of a built task that is not well-formed. */
MEMPLAN_API memplan_status memplan_check(memplan_task *task);
MEMPLAN_API void memplan_task_free(memplan_task *task);

MEMPLAN_API uint32_t memplan_count(const memplan_task *task);
/* or MEMPLAN_NO_BUFFER */
MEMPLAN_API uint32_t memplan_find(const memplan_task *task, const char *name);
/* NULL or 0 where there is none, or no such buffer. */
MEMPLAN_API const char *memplan_name(const memplan_task *task, uint32_t buffer);
MEMPLAN_API uint64_t memplan_bytes(const memplan_task *task, uint32_t buffer);
MEMPLAN_API uint32_t memplan_birth(const memplan_task *task, uint32_t buffer);
MEMPLAN_API uint32_t memplan_death(const memplan_task *task, uint32_t buffer);

/* ---- plans ---- */

/* "P:key=value,.." as --planner takes it; NULL: the default. Planners from outside (so:, exec:) are
 * the program's only. */
MEMPLAN_API memplan_status memplan_run(memplan_task *task, const char *planner,
                                       memplan_plan **plan);
/* A plan from elsewhere: offset[memplan_count(task)]. MEMPLAN_EINVALID: it is refused, and
 * the message names the first two buffers that overlap. */
MEMPLAN_API memplan_status memplan_verify(memplan_task *task, const uint64_t *offset,
                                          memplan_plan **plan);
/* A plan file as memplan plan writes it; it holds its task. Both are the caller's. */
MEMPLAN_API memplan_status memplan_read(memplan_ctx *ctx, const char *path, memplan_task **task,
                                        memplan_plan **plan);
MEMPLAN_API memplan_status memplan_write(const memplan_plan *plan, const char *path);
MEMPLAN_API void memplan_plan_free(memplan_plan *plan);

/* or MEMPLAN_NO_OFFSET */
MEMPLAN_API uint64_t memplan_offset(const memplan_plan *plan, uint32_t buffer);
MEMPLAN_API uint64_t memplan_peak_bytes(const memplan_plan *plan); /* size of the arena */
/* proved: no valid plan needs less */
MEMPLAN_API uint64_t memplan_bound_bytes(const memplan_plan *plan);
MEMPLAN_API memplan_claim memplan_claim_of(const memplan_plan *plan);

/* Planners by number, from 0, in the order of every report; NULL after the last. */
MEMPLAN_API const char *memplan_planner_name(uint32_t i);

/* ---- tests of your own ---- */

/* The k-th allocation from now on (0: the next) fails as if memory had run out; negative: none
 * does. */
MEMPLAN_API void memplan_fail_allocation(memplan_ctx *ctx, int64_t k);
/* Allocations of this context that are not freed yet. */
MEMPLAN_API int64_t memplan_live_allocations(const memplan_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
