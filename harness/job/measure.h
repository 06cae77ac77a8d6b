/* measure.h -- one execution of a job: inputs, outputs, comparison, and what a row says of it. */
#ifndef MPL_MEASURE_H
#define MPL_MEASURE_H

#include "harness/job/job.h"
#include "runtime/exec/caching.h"
#include "runtime/exec.h"
#include "runtime/exec/malloced.h"

#define MPL_REL_TOLERANCE 1e-4
#define MPL_ABS_TOLERANCE 1e-5

typedef struct mpl_inputs {
    uint32_t n;
    void **data; /* [n] host memory, plain layout, value_bytes long */
} mpl_inputs;

/* Contents of every input of the job's graph: what --input says, else pseudo-random from seed 1.
 * MPL_EINPUT: a name or index that the graph lacks, another type or shape; MPL_ELIMIT:
 * mpl_job_check_claims. */
mpl_status mpl_inputs_make(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                           mpl_inputs *out);
void mpl_inputs_fini(mpl_ctx *ctx, mpl_inputs *inputs);

/* "libmimalloc.so.2": what --compare malloc compares with by this process's environment, into
 * text[size]; NULL: malloc as it comes. */
const char *mpl_malloc_by(char *text, size_t size);

/* --checked and --weights; --compare is looked at. Where a pass computes with weights
 * (mpl_pass_set_reads_weights), those of files were made random when the graph was read (job.c). */
mpl_status mpl_measure_options(mpl_ctx *ctx, const mpl_options *options, mpl_exec_options *out);

/* --compare malloc: makes *out for an executor of a plan, and runs it once; NULL where the option
 * is not given. MPL_EUNAVAIL. */
mpl_status mpl_measure_malloced(mpl_ctx *ctx, const mpl_options *options, mpl_exec *exec,
                                mpl_malloced **out, uint64_t *malloc_bytes);
/* One timed run of each, the first of them in turns; m NULL: the planned one alone. */
mpl_status mpl_measure_pair(mpl_exec *exec, mpl_malloced *m, uint64_t turn, int64_t *ns,
                            int64_t *malloc_ns);

/* The job's graph bound to the device, in the plan's arenas or with nothing shared (plan NULL),
 * inputs set. */
mpl_status mpl_measure_new(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                           const mpl_exec_options *options, const mpl_inputs *inputs,
                           mpl_device *dev, mpl_exec **exec);

/* All outputs one after the other, each at a multiple of 64 bytes. */
uint64_t mpl_outputs_bytes(const mpl_graph *g);
mpl_status mpl_outputs_get(mpl_exec *exec, const mpl_graph *g, void *to);
/* Where output i begins. */
const void *mpl_outputs_at(const mpl_graph *g, const void *outputs, uint32_t i);
/* 0 when all outputs are equal bit for bit, else the largest error as mpl_compare has it, and at
 * least a denormal. */
double mpl_outputs_error(const mpl_graph *g, const void *got, const void *want);

/* Largest |got - want| / max(|want|, 0.1) over n elements: at most 1e-4 is within 1e-4 relative or
 * 1e-5 absolute. Infinity where only one is a number; equal infinities, and two NaNs, count as
 * equal. */
double mpl_compare(mpl_type type, uint64_t n, const void *got, const void *want);

/* "equal", "within 1e-4" or "differ". */
const char *mpl_outputs_word(double error);

/* What takes a job's buffers call by call, without a plan. */
typedef struct mpl_allocators {
    mpl_caching_facts model;                   /* of a caching allocator */
    bool on_device;                            /* the device's own have played, too */
    mpl_replay_facts own[MPL_REPLAY_POOL + 1]; /* by mpl_replay_mode */
} mpl_allocators;

/* Plays the requests of pool 0. dev NULL, or without room for them, or a backend without replay:
 * the model alone. MPL_EUNAVAIL: the problem has no lifetimes. */
mpl_status mpl_allocators_play(mpl_ctx *ctx, const mpl_problem *p, const mpl_backend *backend,
                               mpl_device *dev, mpl_allocators *out);

typedef struct mpl_measured {
    mpl_allocators allocators; /* all 0: not played */
    mpl_exec_facts facts;
    uint64_t before_bytes; /* resident before the run was prepared [byte] */
    uint64_t rss_bytes;    /* peak resident set [byte] */
    uint64_t malloc_bytes; /* of runs with one malloc a buffer; 0: there were none [byte] */
} mpl_measured;

/* Whether a device took what was asked of it, and nothing while it ran. MPL_EINVALID: not so. */
mpl_status mpl_measure_check(mpl_ctx *ctx, const mpl_measured *measured);
void mpl_measure_fields(const mpl_measured *measured, mpl_record *row);
/* Resident set of this process now. [byte] */
uint64_t mpl_rss_now(void);

/* again.c: under --changed, whether outputs, of the job's graph, hold to the bit what a whole
 * evaluation of the changed inputs gives on the same device, nothing shared. MPL_EINVALID: they do
 * not. */
mpl_status mpl_again_check(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                           const mpl_inputs *inputs, mpl_device *dev, const void *outputs);

#endif
