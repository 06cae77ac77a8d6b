/* recompute_priv.h -- a run by stages, as in Checkmate, and the memory it takes. See recompute.h.
 * Groups of operations are numbered 0 .. n - 1 in the order of their first runs. Stage t ends with
 * the first run of group t; before it, earlier groups may run again, in their order. What a group
 * makes for others lies in lumps. A lump is carried from stage to stage or dropped. A dropped lump
 * must be made again before it is read. */
#pragma once

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
    uint32_t n;           /* groups */
    uint32_t *group_of;   /* [n_ops] MPL_NONE: nested, or a view, made wherever it is needed */
    uint8_t *may;         /* [n] may run again */
    uint64_t *work;       /* [n] */
    uint64_t *inner;      /* [n] peak of values that no other group reads [byte] */
    uint32_t *need;       /* [n] last stage in which a run may be useful */
    uint32_t *until;      /* [n] last stage before an update of what it reads */
    uint32_t *overwrites; /* [n] lump that its result may overwrite; or MPL_NONE */
    mpl_op *update;       /* [n_values] the outermost operation that updates a weight; MPL_NONE */
    mpl_unit_reads reads;

    uint32_t n_lumps;
    uint32_t *maker;      /* [n_lumps] */
    uint64_t *bytes;      /* [n_lumps] whole slots [byte] */
    uint8_t *fixed;       /* [n_lumps] carried until its last reader */
    uint8_t *stays;       /* [n_lumps] holds a planned output */
    uint32_t *last;       /* [n_lumps] last stage in which it may be read */
    uint32_t *user_begin; /* [n_lumps + 1] into user: reading groups except the maker, ascending */
    uint32_t *user;
    uint32_t *read_begin; /* [n + 1] into read: lumps of other groups */
    uint32_t *read;
    uint8_t *over; /* beside read: the group's result may overwrite that lump */
    uint64_t base; /* unpinned inputs and weights [byte] */
} mpl_stage_model;

/* begins[n_ops]: 1: a new group begins with that operation (ignored for views); NULL: with each.
 * only_forward[n_ops] (may be NULL): operations without it never run again. MPL_EINPUT: more than
 * 2^22 pairs of groups and lumps. */
mpl_status mpl_stage_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               const uint8_t *begins, const uint8_t *only_forward,
                               mpl_stage_model *out);
/* The other operation that updates what v, which op reads, shows; or MPL_NONE. */
mpl_op mpl_stage_update(const mpl_stage_model *model, mpl_op op, mpl_value v);
void mpl_stage_model_fini(mpl_stage_model *model);

/* The groups that run in each stage, and the lumps carried into each stage. */
typedef struct mpl_stages {
    uint8_t *runs; /* [n * n] at [t * n + i]: group i runs in stage t; [t * n + t] is 1 */
    /* [(n + 1) * n_lumps] lump v is carried into stage t; ignored for fixed lumps */
    uint8_t *carried;
} mpl_stages;
mpl_status mpl_stages_new(const mpl_stage_model *model, mpl_stages *out);
void mpl_stages_fini(const mpl_stage_model *model, mpl_stages *stages);

/* Keeps only the runs that the carried lumps need, then carries only what is read. */
void mpl_stages_complete(const mpl_stage_model *model, mpl_stages *stages);
/* Peak bytes; and the work of all repeats. */
uint64_t mpl_stages_peak(const mpl_stage_model *model, const mpl_stages *stages);
uint64_t mpl_stages_work(const mpl_stage_model *model, const mpl_stages *stages);
/* The operations of all stages in sequence. */
mpl_status mpl_stages_run(const mpl_stage_model *model, const mpl_stages *stages, uint32_t *n,
                          mpl_op **run);

/* Bound for all runs within the budget that keep the graph's order of first runs: found.bound_work,
 * if found.has_bound. *fits false: no such run exists. In doubles. */
mpl_status mpl_recompute_bound(mpl_recompute_task *task, bool *fits);

/* Rounds the relaxation of a model's program within `within` bytes at several thresholds. *best
 * becomes the stages of least work with a peak within the budget, if their work is below *work.
 * *goes_on: the relaxation has a solution. now: scratch. */
typedef struct mpl_rounding {
    const mpl_stage_model *model;
    uint32_t without;
    uint64_t budget;
    mpl_stages now, best;
    uint64_t work;  /* of best; UINT64_MAX: none yet */
    uint64_t ticks; /* pivots are added */
} mpl_rounding;
mpl_status mpl_stages_round(mpl_rounding *rounding, uint64_t within, bool *goes_on);

/* Which budget to give a model, where the graph itself needs more or less than the model counts:
 * the next one is off by as much as the peak was. `tries` are left. [byte] */
typedef struct mpl_budget_aim {
    uint64_t want, low, high, budget;
    uint32_t tries;
} mpl_budget_aim;
bool mpl_budget_left(const mpl_budget_aim *aim);
/* peak: of the graph under aim->budget; UINT64_MAX: no run. */
void mpl_budget_next(mpl_budget_aim *aim, uint64_t peak);

/* Fails with the message that the request was not met, or proved impossible. */
mpl_status mpl_recompute_refuse(const mpl_recompute_task *task, uint64_t budget, bool proved);

/* The runs that the pebble game (recompute_pebble.c) searches: those by stages, as above; repeats
 * anywhere and any number of times, first runs in the graph's order; the same with first runs in
 * any order. */
typedef enum mpl_game_rule { MPL_GAME_STAGES, MPL_GAME_ORDER, MPL_GAME_FREE } mpl_game_rule;

/* A border in the order of a model whose operations are groups: inside is what runs from `from` to
 * before `until`. A region is what lies inside its outer border and not inside its inner one. */
typedef struct mpl_border {
    uint32_t from, until;
} mpl_border;
typedef struct mpl_region {
    mpl_border outer, inner;
} mpl_region;

/* A region as the game sees it: at most 64 groups and as many lumps, as sets. What lies inside the
 * inner border is one group, the gap; what ran before is group 0, which has run. What crosses a
 * border is made once and stays until its last reader on the other side may have run. */
enum { MPL_BOARD_MOST = 64 };
typedef struct mpl_board {
    uint32_t n, n_lumps;
    uint32_t group[MPL_BOARD_MOST]; /* of the model; MPL_NONE: stands for others */
    uint32_t lump[MPL_BOARD_MOST];  /* of the model */
    uint32_t gap;                   /* group; or MPL_NONE */
    uint64_t all, done;             /* sets of groups: all; those that have run at first */
    uint64_t there, passed;         /* sets of lumps: at first; which the gap's side counts */
    uint64_t base[2];               /* bytes that are always there, before and after the gap */
    uint64_t bytes[MPL_BOARD_MOST], users[MPL_BOARD_MOST]; /* by lump; users: set of groups */
    uint32_t maker[MPL_BOARD_MOST];
    uint64_t fixed, stays;                                /* sets of lumps */
    uint64_t work[MPL_BOARD_MOST], inner[MPL_BOARD_MOST]; /* by group */
    /* sets of lumps, by group */
    uint64_t reads[MPL_BOARD_MOST], makes[MPL_BOARD_MOST], remakes[MPL_BOARD_MOST];
    uint64_t overwritable[MPL_BOARD_MOST];
    uint64_t waits[MPL_BOARD_MOST];      /* groups whose first run must precede its own */
    uint64_t spoiled_by[MPL_BOARD_MOST]; /* groups after which it must not run again */
    uint64_t may;                        /* set of groups that may run again */
} mpl_board;

/* n = 0: the region is too large. */
void mpl_board_make(const mpl_stage_model *model, const mpl_region *region, mpl_board *out);
/* Whether lump v, made on either side of the border, is read on the other; and whether it then has
 * to outlive what is inside. */
bool mpl_border_enters(const mpl_stage_model *model, const mpl_border *border, uint32_t v);
bool mpl_border_leaves(const mpl_stage_model *model, const mpl_border *border, uint32_t v);
static inline bool mpl_after_gap(const mpl_board *board, uint64_t done)
{
    return board->gap != MPL_NONE && (done >> board->gap & 1) != 0;
}

typedef struct mpl_game_limits {
    mpl_game_rule rule;
    uint32_t without;
    uint64_t budget, most_kept; /* [byte] most_kept: over the gap, what is passed excluded */
    uint32_t most_states;
} mpl_game_limits;

typedef struct mpl_game_answer {
    bool found, full;     /* full: out of states */
    uint64_t work, least; /* of repeats; and what is proved of it */
    uint64_t need, kept;  /* most bytes of a move; bytes kept over the gap */
    uint64_t ticks;
    uint32_t n, *move; /* [n] groups of the board, owned */
} mpl_game_answer;

/* The least work on a board within the limits. */
mpl_status mpl_game_play(mpl_ctx *ctx, const mpl_board *board, const mpl_game_limits *limits,
                         mpl_game_answer *out);
/* The run that makes these groups, of one operation each, and the views of what they make. */
mpl_status mpl_groups_run(const mpl_stage_model *model, uint32_t n_moves, const uint32_t *move,
                          uint32_t *n, mpl_op **run);

/* Works as a method's choose(). MPL_LEAST_PEAK: the least budget that has a run, then the least
 * work. MPL_EINPUT: more than 64 operations or lumps. */
mpl_status mpl_recompute_game(mpl_recompute_task *task, mpl_game_rule rule);
/* The same by regions (recompute_regions.c), at any size. MPL_EINPUT as mpl_find_forward. */
mpl_status mpl_recompute_regions(mpl_recompute_task *task, mpl_game_rule rule);

/* The run of least work found within the budget, or of the least peak found. Cuts forward
 * operations into segments. Each is kept, or dropped and run again as a whole where the backward
 * part first needs it: no operation runs three times. MPL_EINPUT as mpl_find_forward. */
mpl_recompute_choose mpl_recompute_sqrt;
/* mpl_recompute of a graph with blocks, by a method with a schedule. */
mpl_status mpl_recompute_loops(const mpl_recompute_method *method, mpl_recompute_task *task,
                               mpl_graph **out);
/* choose() of a graph with blocks: the model counts bytes of loops as they were measured once, so
 * that budgets of the model around the task's are tried. Claims nothing. */
mpl_status mpl_recompute_units(mpl_recompute_choose *choose, mpl_recompute_task *task);
mpl_recompute_choose mpl_recompute_round;
/* Solves the integer program, restricted to runs better than that of `start`. */
mpl_status mpl_recompute_exact(mpl_recompute_task *task, mpl_recompute_choose *start);
