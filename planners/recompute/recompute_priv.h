/* recompute_priv.h -- a run by stages, as Checkmate has it, and what memory it takes. See
 * recompute.h.
 *
 * Groups of operations, in the order in which they first run, are numbered 0 .. n - 1. Stage t ends
 * with the first run of group t; before it, in their order, earlier groups may run again. What a
 * group makes and others read lies in lumps. A lump is carried from stage to stage or dropped; one
 * that is dropped must be made again before it is read. */
#ifndef MPL_RECOMPUTE_MODEL_PRIV_H
#define MPL_RECOMPUTE_MODEL_PRIV_H

#include "planners/recompute/recompute.h"

/* The rules of recompute_rules.def. */
typedef enum mpl_recompute_rule {
#define RULE(name, about) MPL_RECOMPUTE_RULE_##name,
#include "planners/recompute/recompute_rules.def"
#undef RULE
    MPL_N_RECOMPUTE_RULES
} mpl_recompute_rule;

static inline bool mpl_recompute_uses(uint32_t without, mpl_recompute_rule rule)
{
    return (without >> rule & 1) == 0;
}

typedef struct mpl_stage_model {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    uint32_t n;             /* groups */
    uint32_t *group_of;     /* [n_ops] MPL_NONE: a view, which is made wherever it is needed */
    uint8_t *may;           /* [n] it may run again */
    uint64_t *work;         /* [n] */
    uint64_t *inner;        /* [n] what nobody else reads, at most at once. [byte] */
    uint32_t *need;         /* [n] the last stage in which it may be worth running */
    uint32_t *until;        /* [n] the last stage before an update of what it reads */
    uint32_t *overwrites;   /* [n] a lump that its result may overwrite; MPL_NONE */
    uint64_t *overwritable; /* [n] all of these among the first 64 lumps, as a set */

    uint32_t n_lumps;     /* lumps */
    uint32_t *maker;      /* [n_lumps] */
    uint64_t *bytes;      /* [n_lumps] whole slots */
    uint8_t *fixed;       /* [n_lumps] carried as long as somebody reads it */
    uint8_t *stays;       /* [n_lumps] a planned output is among it */
    uint32_t *last;       /* [n_lumps] the last stage in which somebody may read it */
    uint32_t *user_begin; /* [n_lumps + 1] into user: groups other than the maker, ascending */
    uint32_t *user;
    uint32_t *read_begin; /* [n + 1] into read: lumps of other groups */
    uint32_t *read;
    uint64_t base; /* unpinned inputs and weights [byte] */
} mpl_stage_model;

/* begins[n_ops]: 1, a new group begins with that operation (a view's does not count).
 * only_forward[n_ops] (may be NULL): others never run again. MPL_EINPUT: more than 2^22 pairs of
 * groups and lumps. */
mpl_status mpl_stage_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               const uint8_t *begins, const uint8_t *only_forward,
                               mpl_stage_model *out);
/* The weight or input that v shows, itself or through views; MPL_NONE. */
mpl_value mpl_shown_by(const mpl_graph *g, mpl_value v);
void mpl_stage_model_fini(mpl_stage_model *m);

/* Which groups run in which stage, and which lumps are carried into which stage. */
typedef struct mpl_stages {
    uint8_t *runs;    /* [n * n] stage t, group i; [t * n + t] is 1 */
    uint8_t *carried; /* [(n + 1) * n_lumps] into stage t, lump v; fixed ones are not looked at */
} mpl_stages;
mpl_status mpl_stages_new(const mpl_stage_model *m, mpl_stages *out);
void mpl_stages_fini(const mpl_stage_model *m, mpl_stages *s);

/* Leaves of the runs what the carried lumps need, then carries only what is read. */
void mpl_stages_complete(const mpl_stage_model *m, mpl_stages *s);
/* The most bytes at once, and the work of what runs again. */
uint64_t mpl_stages_peak(const mpl_stage_model *m, const mpl_stages *s);
uint64_t mpl_stages_work(const mpl_stage_model *m, const mpl_stages *s);
/* The operations of the stages, one after the other. */
mpl_status mpl_stages_run(const mpl_stage_model *m, const mpl_stages *s, uint32_t *n, mpl_op **run);

/* What no run within the budget, in the graph's order of first runs, gets around:
 * found.bound_work, if found.has_bound. *fits false: no run is within the budget. In doubles. */
mpl_status mpl_recompute_bound(mpl_recompute_task *task, bool *fits);

/* The relaxation of the program of a model within `within` bytes, rounded at several thresholds:
 * *best becomes the stages of the least work whose peak is within the budget, if that is less than
 * *work; *goes_on: there is a relaxation. now: scratch. */
typedef struct mpl_rounding {
    const mpl_stage_model *m;
    uint32_t without;
    uint64_t budget;
    mpl_stages now, best;
    uint64_t work;  /* of best; UINT64_MAX: there is none */
    uint64_t ticks; /* pivots, added to */
} mpl_rounding;
mpl_status mpl_stages_round(mpl_rounding *r, uint64_t within, bool *goes_on);

/* A refusal: what is asked for is not found, or proved not to be. */
mpl_status mpl_recompute_refuse(const mpl_recompute_task *task, uint64_t budget, bool proved);

/* Which runs the pebble game (recompute_pebble.c) goes through: those of the stages above; repeats
 * anywhere, any number of times, first runs in the graph's order; first runs in any order, too. */
typedef enum mpl_game_rule { MPL_GAME_STAGES, MPL_GAME_ORDER, MPL_GAME_FREE } mpl_game_rule;
/* As a method's choose(). MPL_LEAST_PEAK: the least budget that there is a run for, then the least
 * work. MPL_EINPUT: more than 64 operations or lumps. */
mpl_status mpl_recompute_game(mpl_recompute_task *task, mpl_game_rule rule);

/* A run of the least work that was found within the budget, or of the least peak. Forward
 * operations are cut into segments, each of which is kept, or dropped and run again as a whole
 * where the backward part first needs something of it: no operation runs three times. MPL_EINPUT as
 * mpl_find_forward. */
mpl_recompute_choose mpl_recompute_sqrt;
mpl_recompute_choose mpl_recompute_round;
/* The integer program, which looks only for what is better than the run of `start`. */
mpl_status mpl_recompute_exact(mpl_recompute_task *task, mpl_recompute_choose *start);

#endif
