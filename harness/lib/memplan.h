/* memplan.h -- the library libmemplan: plans the memory of a graph, or of your own buffers, from C
 * or C++.
 *
 *     memplan_ctx *ctx = memplan_ctx_new();
 *     memplan_task *task = NULL;
 *     memplan_plan *plan = NULL;
 *
 *     if (memplan_load(ctx, "model.onnx", &task) != MEMPLAN_OK ||
 *         memplan_run(task, "portfolio", &plan) != MEMPLAN_OK)
 *         fprintf(stderr, "%s\n", memplan_message(ctx));
 *     for (uint32_t b = 0; plan != NULL && b < memplan_count(task); b++)
 *         printf("%s at %" PRIu64 "\n", memplan_name(task, b), memplan_offset(plan, b));
 *     memplan_plan_free(plan), memplan_task_free(task), memplan_ctx_free(ctx);
 *
 * Only one thread at a time may use a context and its tasks and plans. Contexts are independent, so
 * each thread may have its own. Free plans before their task, and tasks before their context. A
 * failure leaves outputs untouched and leaks no memory. Every plan that is returned was accepted by
 * a verifier that shares no code with any planner.
 *
 * Sizes and offsets are bytes. Buffer ids count from 0, in the order of the file or of memplan_add.
 * While the library's name is libmemplan.so.0, functions are only added; each carries the version
 * that added it. */
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
    MEMPLAN_ELIMIT,   /* budget, time or capacity ran out before a plan was found; one may exist */
    MEMPLAN_EINVALID, /* rejected by the verifier, or proved that no plan fits the capacity */
    MEMPLAN_EUNAVAIL, /* not in this build, or the task lacks what the planner needs */
} memplan_status;

/* A plan is valid, or also proved smallest. */
typedef enum memplan_claim { MEMPLAN_IS_FEASIBLE, MEMPLAN_IS_OPTIMAL } memplan_claim;

typedef struct memplan_ctx memplan_ctx;   /* settings, and the message of the last failure */
typedef struct memplan_task memplan_task; /* buffers to place, and their conflicts */
typedef struct memplan_plan memplan_plan; /* an offset for each buffer of one task */

/* ---- contexts ---- */

MEMPLAN_API const char *memplan_version(void);  /* "0.1.0" */
MEMPLAN_API memplan_ctx *memplan_ctx_new(void); /* NULL: out of memory */
MEMPLAN_API void memplan_ctx_free(memplan_ctx *ctx);
/* One line about the last failure with this context; lives until the next. */
MEMPLAN_API const char *memplan_message(const memplan_ctx *ctx);

/* Changes a setting, with names and values of the command line (memplan plan --help). For later
 * calls of memplan_load: safety, order, in-place, views, pin, pools, capacity [byte] and dim
 * ("NAME=N", one more each call). For memplan_run: budget [ticks], time-limit [s], threads and
 * seed. value NULL restores the default. A search for an order assumes that concats copy; where
 * portfolio plans the given order lower, the given order is used. */
MEMPLAN_API memplan_status memplan_set(memplan_ctx *ctx, const char *name, const char *value);

/* ---- tasks ---- */

/* Loads GRAPH of the command line: an ONNX file, .graph text, a list of buffers in CSV,
 * NAME.tensors.csv with its partial order, or a network of the zoo ("resnet50:batch=4"). */
MEMPLAN_API memplan_status memplan_load(memplan_ctx *ctx, const char *graph, memplan_task **task);

/* An empty task, to be filled by the functions below. Planning or checking completes it. name may
 * be NULL. */
MEMPLAN_API memplan_status memplan_task_new(memplan_ctx *ctx, const char *name,
                                            memplan_task **task);
/* Adds a buffer that lives in steps [birth, death), at a multiple of `align`, a power of two. name
 * (may be NULL) is copied; id (may be NULL) receives its id. With birth = death = 0, for all
 * buffers or none, the task has a partial order instead of steps: two buffers may share memory only
 * if one is before the other. */
MEMPLAN_API memplan_status memplan_add(memplan_task *task, const char *name, uint64_t bytes,
                                       uint32_t align, uint32_t birth, uint32_t death,
                                       uint32_t *id);
/* Adds n buffers without names, as memplan_add: align[n], birth[n] and death[n] beside bytes[n].
 * Adds all or none; ids follow in their order. */
MEMPLAN_API memplan_status memplan_add_all(memplan_task *task, uint32_t n, const uint64_t *bytes,
                                           const uint32_t *align, const uint32_t *birth,
                                           const uint32_t *death);
/* States that a's last use is before b's first in every execution. Only for tasks without steps.
 * Transitive pairs may be left out. */
MEMPLAN_API memplan_status memplan_add_before(memplan_task *task, uint32_t a, uint32_t b);
/* Allows `out` to overwrite `in`, at the very same offset. With steps, `in` must die at the step
 * where `out` is born. */
MEMPLAN_API memplan_status memplan_add_in_place(memplan_task *task, uint32_t in, uint32_t out);
MEMPLAN_API memplan_status memplan_fix(memplan_task *task, uint32_t buffer, uint64_t offset);
/* Limits the arena. UINT64_MAX: no limit. */
MEMPLAN_API memplan_status memplan_set_capacity(memplan_task *task, uint64_t bytes);
/* Checks a built task now; memplan_run would report the same errors. */
MEMPLAN_API memplan_status memplan_check(memplan_task *task);
MEMPLAN_API void memplan_task_free(memplan_task *task);

MEMPLAN_API uint32_t memplan_count(const memplan_task *task);
/* or MEMPLAN_NO_BUFFER */
MEMPLAN_API uint32_t memplan_find(const memplan_task *task, const char *name);
/* NULL or 0 if there is none, or no such buffer. */
MEMPLAN_API const char *memplan_name(const memplan_task *task, uint32_t buffer);
MEMPLAN_API uint64_t memplan_bytes(const memplan_task *task, uint32_t buffer);
MEMPLAN_API uint32_t memplan_birth(const memplan_task *task, uint32_t buffer);
MEMPLAN_API uint32_t memplan_death(const memplan_task *task, uint32_t buffer);

/* ---- plans ---- */

/* Plans with "P:key=value,.." of --planner; NULL: the default. External planners (so:, exec:) are
 * not available here. */
MEMPLAN_API memplan_status memplan_run(memplan_task *task, const char *planner,
                                       memplan_plan **plan);
/* Verifies an external plan: offset[memplan_count(task)]. MEMPLAN_EINVALID: rejected; the message
 * names the first two buffers that overlap. */
MEMPLAN_API memplan_status memplan_verify(memplan_task *task, const uint64_t *offset,
                                          memplan_plan **plan);
/* Reads a plan file of memplan plan, with its task. The caller frees both. */
MEMPLAN_API memplan_status memplan_read(memplan_ctx *ctx, const char *path, memplan_task **task,
                                        memplan_plan **plan);
MEMPLAN_API memplan_status memplan_write(const memplan_plan *plan, const char *path);
/* The same as text, one JSON object, with the proof of the claim as its member "certificate" (or
 * null). Lives as long as the plan. NULL: as memplan_write fails. */
MEMPLAN_API const char *memplan_text(memplan_plan *plan);
MEMPLAN_API void memplan_plan_free(memplan_plan *plan);

/* or MEMPLAN_NO_OFFSET */
MEMPLAN_API uint64_t memplan_offset(const memplan_plan *plan, uint32_t buffer);
/* offset[memplan_count(task)] receives all of them. */
MEMPLAN_API void memplan_offsets(const memplan_plan *plan, uint64_t *offset);
MEMPLAN_API uint64_t memplan_peak_bytes(const memplan_plan *plan); /* size of the arena */
/* proved: no valid plan needs less */
MEMPLAN_API uint64_t memplan_bound_bytes(const memplan_plan *plan);
MEMPLAN_API memplan_claim memplan_claim_of(const memplan_plan *plan);

/* ---- templates: one plan for every shape of a range ---- */

typedef struct memplan_template memplan_template;

/* Reads a template of memplan plan over ranges. MEMPLAN_EINVALID: it is not right for every shape.
 * Free templates before their context. */
MEMPLAN_API memplan_status memplan_template_read(memplan_ctx *ctx, const char *path,
                                                 memplan_template **out);
MEMPLAN_API void memplan_template_free(memplan_template *template_);
MEMPLAN_API uint32_t memplan_template_count(const memplan_template *template_); /* buffers */
/* NULL: no name, or no such buffer. */
MEMPLAN_API const char *memplan_template_name(const memplan_template *template_, uint32_t buffer);
/* Name of the i-th size; NULL after the last. */
MEMPLAN_API const char *memplan_template_dim(const memplan_template *template_, uint32_t i);
/* Offsets of all buffers, each in its pool, at the shape dims[]: a value of each size. Returns the
 * size of the arena, or MEMPLAN_NO_OFFSET: the shape is outside of the range. Allocates nothing. */
MEMPLAN_API uint64_t memplan_template_offsets(const memplan_template *template_,
                                              const int64_t *dims, uint64_t *offsets);

/* Name of the i-th planner, in the order of every report; NULL after the last. */
MEMPLAN_API const char *memplan_planner_name(uint32_t i);

/* ---- tapes: operations that run as they are called, planned for the next time ---- */

/* A tape runs operations at once. A step is what happens between two calls of memplan_tape_end. In
 * a step that was not met before, results are allocated online, and given back with their last
 * reference; at its end, what ran is planned. A step that makes the same calls again runs in the
 * plan's arena, call by call. Where it parts from the plan, what is alive is copied out, and it
 * goes on as a new step: results are the same either way, bit for bit. memplan_set's budget limits
 * each plan. Free tapes before their context. */
typedef struct memplan_tape memplan_tape;
typedef uint64_t memplan_tensor; /* a reference to a tensor; 0: none */

/* Operand of memplan_tape_call whose reference ends with the call. A plan may let the result
 * overwrite it. */
#define MEMPLAN_LAST(tensor) ((tensor) | UINT64_C(1) << 63)

/* An attribute: n ints, n floats, or a text, as its key takes (graphs/ir/attrs.def). */
typedef struct memplan_attr {
    const char *key;
    uint32_t n;
    const int64_t *ints;
    const double *floats;
    const char *text;
} memplan_attr;

/* allocator: malloc, caching, best_fit, buddy or slab. backend: "ref", the only one of this library
 * (MEMPLAN_EUNAVAIL: another). n_plans: how many steps are remembered with their plans; the least
 * recently used is forgotten. */
MEMPLAN_API memplan_status memplan_tape_new(memplan_ctx *ctx, const char *allocator,
                                            const char *backend, uint32_t n_plans,
                                            memplan_tape **tape);
MEMPLAN_API void memplan_tape_free(memplan_tape *tape); /* and all its tensors */
/* A tensor with data of yours, copied: row-major, type "f32", "i64", .. name may be NULL. */
MEMPLAN_API memplan_status memplan_tape_input(memplan_tape *tape, const char *name,
                                              const char *type, uint32_t rank, const int64_t *dim,
                                              const void *data, memplan_tensor *tensor);
/* The same for a weight, which outlives steps. Only one that changes may be written, or updated by
 * operations such as sgd, once a step. */
MEMPLAN_API memplan_status memplan_tape_weight(memplan_tape *tape, const char *name,
                                               const char *type, uint32_t rank, const int64_t *dim,
                                               const void *data, int changes,
                                               memplan_tensor *tensor);
MEMPLAN_API memplan_status memplan_tape_write(memplan_tape *tape, memplan_tensor weight,
                                              const void *data);
/* Runs an operator of graphs/ir/ops.def. in[n_in]: 0 leaves an optional operand out. out[n_out]
 * receives references to the results. MEMPLAN_EINPUT: the operands do not fit, or were released;
 * nothing has happened then. */
MEMPLAN_API memplan_status memplan_tape_call(memplan_tape *tape, const char *op, uint32_t n_in,
                                             const memplan_tensor *in, uint32_t n_attr,
                                             const memplan_attr *attr, uint32_t n_out,
                                             memplan_tensor *out);
/* One more reference; one less. The last one ends the tensor. */
MEMPLAN_API memplan_status memplan_tape_retain(memplan_tape *tape, memplan_tensor tensor);
MEMPLAN_API memplan_status memplan_tape_release(memplan_tape *tape, memplan_tensor tensor);
MEMPLAN_API memplan_status memplan_tape_dims(memplan_tape *tape, memplan_tensor tensor,
                                             uint32_t *rank, int64_t dim[8]);
/* Copies a tensor's contents to data. */
MEMPLAN_API memplan_status memplan_tape_read(memplan_tape *tape, memplan_tensor tensor, void *data);
/* Ends the step, and plans it if it is new. Tensors that are still referred to live on. */
MEMPLAN_API memplan_status memplan_tape_end(memplan_tape *tape);
/* A count or bytes so far: "hits" (steps by a plan), "misses", "diverged" (misses that began by a
 * plan), "evictions", "traces" (planned), "plans" (kept), "arena_bytes" (of the plans),
 * "reserved_bytes", "live_peak_bytes", "live_bytes" (of the allocator). UINT64_MAX: no such. */
MEMPLAN_API uint64_t memplan_tape_fact(const memplan_tape *tape, const char *name);

/* ---- tests of your own ---- */

/* The k-th allocation from now on (0: the next) fails as if memory had run out; negative: none
 * fails. */
MEMPLAN_API void memplan_fail_allocation(memplan_ctx *ctx, int64_t k);
/* Allocations of this context that are not yet freed. */
MEMPLAN_API int64_t memplan_live_allocations(const memplan_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
