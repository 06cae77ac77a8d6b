/* eager_job.h -- memplan eager: one GRAPH run as an eager program runs it, under an online
 * allocator, and by the plans of its traces. */
#pragma once

#include "harness/eager/walk.h"
#include "harness/job/measure.h"
#include "harness/shapes/one_shape.h"

/* GRAPH with one value of --shapes. */
typedef struct mpl_eager_program {
    mpl_one_shape shape;
    mpl_exec_options exec_options;
    mpl_job job;
    mpl_inputs inputs;
    mpl_walker *walker;
    void *want, *got, *first; /* outputs: of the run that shares nothing, now, of the first step */
    bool ran;
} mpl_eager_program;

typedef struct mpl_eager {
    const char *allocator; /* set by the caller: its name */
    const mpl_backend *backend;
    mpl_device *dev;
    mpl_tape *tape;
    const mpl_planner *planner;
    uint32_t n_shapes; /* 0: no --shapes */
    int64_t *shape;    /* [n_shapes] */
    char *shape_name;
    uint32_t n_programs;
    mpl_eager_program *program;
    uint32_t n_steps;
    uint32_t *step; /* [n_steps] its program */

    mpl_tape_facts facts; /* after these steps; of the allocator: after all of them eagerly */
    double error;         /* of outputs against the run that shares nothing */
    bool planned;         /* a trace was planned; the rest is of the largest one */
    uint64_t plan_bytes, bound_bytes;
    mpl_claim claim;
    uint32_t n_timed; /* pairs of runs of the last step's program */
    int64_t *eager_ns, *memoised_ns;
} mpl_eager;

/* Runs all steps, again all of them eagerly, then the last one in turns eagerly and by its plan.
 * MPL_EINVALID: outputs differ from the run that shares nothing, or a step from the first of its
 * program in any bit. After a failure `eager` holds the results so far. */
mpl_status mpl_eager_run(mpl_ctx *ctx, const mpl_options *options, mpl_eager *eager);
void mpl_eager_fini(mpl_ctx *ctx, mpl_eager *eager);
/* Its row. */
mpl_status mpl_eager_row(mpl_ctx *ctx, const mpl_options *options, const mpl_eager *eager,
                         mpl_record **row);
void mpl_eager_print(const mpl_options *options, const mpl_record *row, const mpl_eager *eager);
