/* measure.h -- one execution of a job: inputs, outputs, comparison, and its fields of a row. */
#pragma once

#include "harness/job/job.h"
#include "runtime/exec/malloced.h"

#define MPL_REL_TOLERANCE 1e-4
#define MPL_ABS_TOLERANCE 1e-5

typedef struct mpl_inputs {
    uint32_t n;
    void **data; /* [n] host memory, plain layout, value_bytes each */
} mpl_inputs;

/* Contents of every input of the job's graph: from --input, else pseudo-random from seed 1.
 * MPL_EINPUT: an unknown name or index, a wrong type or shape; MPL_ELIMIT: mpl_job_check_claims. */
mpl_status mpl_inputs_make(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                           mpl_inputs *out);
void mpl_inputs_fini(mpl_ctx *ctx, mpl_inputs *inputs);

/* Writes into text[size] the allocator of --compare malloc that this process's environment selects,
 * such as "libmimalloc.so.2". NULL: the default malloc. */
const char *mpl_malloc_by(char *text, size_t size);

/* Reads --checked and --weights, and checks --compare. Where a pass computes with weights
 * (mpl_pass_set_reads_weights), the file's weights were already made random on reading (job.c). */
mpl_status mpl_measure_options(mpl_ctx *ctx, const mpl_options *options, mpl_exec_options *out);

/* --compare malloc: makes *out for an executor of a plan and runs it once; NULL: option not given.
 * MPL_EUNAVAIL. */
mpl_status mpl_measure_malloced(mpl_ctx *ctx, const mpl_options *options, mpl_exec *exec,
                                mpl_malloced **out, uint64_t *malloc_bytes);
/* One timed run of each; `turn` even: the planned run first. malloced NULL: the planned run alone,
 * and *malloc_ns is the time during which several of its operations ran. */
mpl_status mpl_measure_pair(mpl_exec *exec, mpl_malloced *malloced, uint64_t turn, int64_t *ns,
                            int64_t *malloc_ns);

/* Binds the job's graph to the device, in the plan's arenas or without memory sharing (plan NULL),
 * and sets its inputs. */
mpl_status mpl_measure_new(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                           const mpl_exec_options *options, const mpl_inputs *inputs,
                           mpl_device *dev, mpl_exec **exec);

/* Bytes of all outputs in sequence, each at a multiple of 64 bytes. */
uint64_t mpl_outputs_bytes(const mpl_graph *g);
mpl_status mpl_outputs_get(mpl_exec *exec, const mpl_graph *g, void *to);
/* Start of output i in that array. */
const void *mpl_outputs_at(const mpl_graph *g, const void *outputs, uint32_t i);
/* 0 if all outputs are equal bit for bit; else the largest error of mpl_compare, at least a
 * denormal. */
double mpl_outputs_error(const mpl_graph *g, const void *got, const void *want);

/* Largest |got - want| / max(|want|, 0.1) over n elements: at most 1e-4 is within 1e-4 relative or
 * 1e-5 absolute. Infinity if only one of two is a number. Equal infinities, and two NaNs, count as
 * equal. */
double mpl_compare(mpl_type type, uint64_t n, const void *got, const void *want);
/* The same in parts of what is allowed: largest |got - want| / max(relative * |want|, absolute). */
double mpl_compare_within(mpl_type type, uint64_t n, const void *got, const void *want,
                          double relative, double absolute);

/* "equal", "within 1e-4" or "differ". */
const char *mpl_outputs_word(double error);

/* Memory that allocators without a plan take for a job's buffers. */
typedef struct mpl_unplanned {
    mpl_online_facts model;                    /* of a caching allocator */
    bool on_device;                            /* own[] is measured too */
    mpl_replay_facts own[MPL_REPLAY_POOL + 1]; /* the device's own allocators, by mpl_replay_mode */
} mpl_unplanned;

/* Replays the requests of pool 0. Only the model runs if dev is NULL, lacks memory, or its backend
 * has no replay. MPL_EUNAVAIL: the problem has no lifetimes. */
mpl_status mpl_allocators_play(mpl_ctx *ctx, const mpl_problem *p, const mpl_backend *backend,
                               mpl_device *dev, mpl_unplanned *out);

typedef struct mpl_measured {
    uint32_t workers;         /* that ran it; 0: 1 */
    mpl_unplanned allocators; /* all 0: not replayed */
    uint64_t simulated_ns;    /* under streams, from the times of operations; 0: not measured */
    uint64_t ops_ns;          /* sum of these times */
    mpl_exec_facts facts;
    uint64_t before_bytes; /* resident before the run was prepared [byte] */
    uint64_t rss_bytes;    /* peak resident set [byte] */
    uint64_t malloc_bytes; /* with one malloc a buffer; 0: not run [byte] */
} mpl_measured;

/* Under streams: times of the operations, one after the other, and the run that these make. */
mpl_status mpl_measure_times(mpl_ctx *ctx, const mpl_job *job, mpl_exec *exec,
                             mpl_measured *measured);
/* Checks that a device took the planned memory, and no more while it ran. MPL_EINVALID. */
mpl_status mpl_measure_check(mpl_ctx *ctx, const mpl_measured *measured);
void mpl_measure_fields(const mpl_measured *measured, mpl_record *row);
/* Resident set of this process now. [byte] */
uint64_t mpl_rss_now(void);

/* again.c: under --changed, checks that outputs of the job's graph equal, bit for bit, a whole
 * evaluation of the changed inputs on the same device without memory sharing. MPL_EINVALID: they
 * differ. */
mpl_status mpl_again_check(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                           const mpl_inputs *inputs, mpl_device *dev, const void *outputs);
