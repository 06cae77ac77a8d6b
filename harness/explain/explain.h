/* explain.h -- what a plan's arena is made of at its highest point, what forces its height, and
 * which options would lower it. */
#pragma once

#include "harness/view/viewer.h"

/* ---- the highest point ---- */

#define MPL_PORTION_KINDS(KIND)                                                                    \
    KIND(value) KIND(weight) KIND(gradient) KIND(state) KIND(workspace) KIND(alignment) KIND(hole)
typedef enum mpl_portion_kind {
#define KIND(name) MPL_PORTION_##name,
    MPL_PORTION_KINDS(KIND)
#undef KIND
        MPL_N_PORTIONS
} mpl_portion_kind;
extern const char *const mpl_portion_name[MPL_N_PORTIONS];

/* Consecutive bytes of an arena at its highest point. */
typedef struct mpl_portion {
    mpl_portion_kind kind;
    mpl_buffer buffer; /* that has the bytes; alignment, hole: the next one above */
    uint64_t offset, bytes;
} mpl_portion;

/* An arena at its highest point: the portions follow one another from its base to its end. Of two
 * buffers at one offset, an in-place pair, the larger has the bytes; ties by id. */
typedef struct mpl_highest {
    uint32_t pool;
    uint32_t memory; /* of a spread pool 0; else 0 */
    uint64_t arena_bytes;
    /* The first step with the most live bytes at which a buffer that ends the arena is needed.
     * MPL_NONE under a partial order: then any two of the buffers may be alive at once. */
    uint32_t step;
    uint32_t n;
    mpl_portion *portion; /* [n] by offset; the sum of their bytes is arena_bytes */
} mpl_highest;

/* Explains arena `arena` (mpl_plan_arena) of a verified plan. Serial O(n log n + steps), parallel
 * O(n * set). */
mpl_status mpl_highest_find(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan, uint32_t arena,
                            mpl_highest *out);
void mpl_highest_fini(mpl_ctx *ctx, mpl_highest *highest);

/* The value that a buffer holds, and the operations that keep it alive. MPL_NONE: unknown, as in a
 * list. */
typedef struct mpl_keeper {
    mpl_value value;
    mpl_op made_by, kept_by; /* the operation that first, and last, needs it */
} mpl_keeper;
/* keeper[n] of the job's buffers. O(size). */
mpl_status mpl_keepers_new(mpl_ctx *ctx, const mpl_job *job, mpl_keeper **keeper);

/* ---- what forces the height ---- */

typedef enum mpl_height_by {
    MPL_HEIGHT_CONFLICTS, /* the buffers conflict pairwise: no plan of the problem is lower */
    MPL_HEIGHT_SEARCH,    /* a search proved it; the buffers are a chain of this plan */
    MPL_HEIGHT_CHAIN,     /* each buffer lies above the next one, with which it conflicts */
} mpl_height_by;
extern const char *const mpl_height_name[]; /* "conflicts", "search", "chain" */

typedef struct mpl_height {
    mpl_height_by by;
    uint64_t bytes;     /* sum of the buffers' bytes */
    uint32_t n;         /* 0: pool 0 is empty, or spread over memories */
    mpl_buffer *buffer; /* [n] conflicts: ascending; else from the top down */
} mpl_height;

/* Of pool 0. */
mpl_status mpl_height_find(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                           const mpl_highest *highest, mpl_height *out);

/* ---- what would lower it ---- */

/* clang-format off */
#define MPL_ADVICE_KINDS(KIND)                                                                     \
    KIND(order) KIND(sharing) KIND(fusion) KIND(layout) KIND(recompute) KIND(batch) KIND(safety)   \
    KIND(pin) KIND(planner) KIND(workspaces) KIND(together)      \
    KIND(least)
/* clang-format on */
typedef enum mpl_advice_kind {
#define KIND(name) MPL_ADVICE_##name,
    MPL_ADVICE_KINDS(KIND)
#undef KIND
        MPL_N_ADVICE
} mpl_advice_kind;
extern const char *const mpl_advice_name[MPL_N_ADVICE];

enum { MPL_ADVICE_WHAT = 400 }; /* of what a change does, as text [byte] */

/* A change of options. */
typedef struct mpl_change {
    mpl_advice_kind kind;
    mpl_command_id command; /* plan, or least */
    uint8_t late;        /* 0: quick; 1 to 3: tried after those, as they take longer or help less */
    mpl_options options; /* texts are borrowed, from the options it is made of or from store */
    const char *graph;   /* GRAPH, or from store */
    char *store;         /* owned; or NULL */
    mpl_pass_id pass;    /* of fusion by one pass; MPL_N_PASSES: another change */
} mpl_change;

enum { MPL_AFTER_MOST = 1 << 15 }; /* rectangles that are kept of a plan */

typedef enum mpl_trial_state {
    MPL_TRIAL_OPEN,    /* the time ended before it, or in it */
    MPL_TRIAL_PLANNED, /* there is a plan */
    MPL_TRIAL_NONE,    /* the change does not apply, or has no plan */
} mpl_trial_state;

/* What one change comes to. */
typedef struct mpl_trial {
    mpl_trial_state state;
    uint64_t planned_bytes, pinned_bytes;
    char what[MPL_ADVICE_WHAT];
    uint32_t n_boxes, n_steps; /* kept for a page: the first n_boxes of the buffers of pool 0 */
} mpl_trial;

/* The changes to try, given the options of the present plan (mpl_explain_options). */
typedef struct mpl_changes {
    uint64_t present_bytes;
    uint32_t n;
    mpl_change *change; /* [n] */
    size_t cap;
} mpl_changes;
mpl_status mpl_changes_list(mpl_ctx *ctx, const mpl_options *present, const mpl_job *job,
                            const mpl_plan *plan, mpl_changes *out);
void mpl_changes_fini(mpl_ctx *ctx, mpl_changes *changes);

/* Limits of the trials: a single change gets at most half of the processor time that is left, or
 * 0.45 s, by which the total may be exceeded. */
typedef struct mpl_trial_limit {
    int64_t deadline_ns;  /* mpl_clock_ns() at which it ends */
    int64_t processor_ns; /* of the processor; the load of the machine does not count */
} mpl_trial_limit;

/* Plans each change, in a process of its own, within the limit. trial[n] and box[n *
 * MPL_AFTER_MOST], a page's rectangles or NULL, are shared memory. MPL_EMEM: no process. */
mpl_status mpl_changes_try(mpl_ctx *ctx, const mpl_changes *changes, const mpl_trial_limit *limit,
                           mpl_trial *trial, mpl_viewer_box *box);

/* ---- all of it ---- */

typedef struct mpl_advice {
    mpl_advice_kind kind;
    uint32_t trial; /* index of its change */
    uint64_t planned_bytes, pinned_bytes;
    char *command; /* the command line that gives planned_bytes, for a shell */
    const char *what;
} mpl_advice;

/* What other safety or order would change. */
typedef struct mpl_price {
    bool known;
    uint64_t planned_bytes; /* under the other safety; in the best order found */
    char *command;
} mpl_price;

typedef struct mpl_explained {
    mpl_made made;       /* the present plan */
    mpl_options present; /* its options, as `memplan plan` takes them; texts are borrowed */
    const char *graph;   /* GRAPH for `memplan plan`; NULL: a plan file alone, nothing is tried */
    char *named;         /* owned: the GRAPH that a plan file names; or NULL */
    char why[512];       /* graph is NULL: why the plan file's graph cannot be opened */
    char *planner;       /* owned: of a plan file, as --planner; or NULL */
    mpl_keeper *keeper;  /* [n] */
    uint32_t n_arenas;
    mpl_highest *highest; /* [n_arenas] those of pool 0 first */
    uint32_t n_first;     /* of them, of pool 0 */
    mpl_height height;
    uint64_t state_bytes; /* of pinned optimiser state */
    mpl_changes changes;
    mpl_trial *trial; /* [changes.n] shared memory */
    size_t trial_bytes;
    mpl_viewer_box *box; /* shared memory, or NULL */
    size_t box_bytes;
    mpl_price safety, order;
    uint32_t n_advice;
    mpl_advice *advice;         /* [n_advice] lowest first; all are lower than the present plan */
    bool missing[MPL_N_ADVICE]; /* not all was worked out within the time */
} mpl_explained;

/* Explains the plan of options->args.item[0]: a GRAPH or list, planned; a plan file, or --plan.
 * boxes: keep rectangles for a page. Everything is deterministic but for what the time limit cuts.
 * After a failure `out` holds the results so far. MPL_EINPUT and others as mpl_make. */
mpl_status mpl_explain(mpl_ctx *ctx, mpl_options *options, bool boxes, mpl_explained *out);
void mpl_explained_fini(mpl_ctx *ctx, mpl_explained *explained);

/* One JSON object; the caller frees *text (mpl_free). */
mpl_status mpl_explained_json(mpl_ctx *ctx, const mpl_explained *explained, char **text);
void mpl_explained_print(FILE *to, const mpl_explained *explained);
/* Writes the viewer's page with the suggestions: their plans are shown beside the present one. */
mpl_status mpl_explained_page(mpl_ctx *ctx, const mpl_explained *explained, const char *path);

/* Copies the options that `command` takes; the others get their defaults. Lists and texts are
 * borrowed. */
void mpl_options_for(mpl_command_id command, const mpl_options *from, mpl_options *to);

/* Writes "memplan COMMAND GRAPH --option value .." with each option of the command that differs
 * from its default, quoted for a shell; leaves out those that only say where results go. The caller
 * frees *text (mpl_free). */
mpl_status mpl_command_line(mpl_ctx *ctx, mpl_command_id command, const char *graph,
                            const mpl_options *options, char **text);
