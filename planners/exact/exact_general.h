/* exact_general.h -- the complete search for any conflict relation. Private to planners/exact*.c.
 * See SEARCH.md, section 6. */
#pragma once

#include "planners/place/bodies.h"

/* ---- cliques ---- */

/* Cliques of members: all maximal ones, or, if there are too many, some that cover every member. */
typedef struct mpl_cliques {
    uint32_t n;
    uint32_t *begin;    /* [n + 1] into member */
    uint32_t *member;   /* members of the bodies, ascending */
    uint32_t *of_begin; /* [bodies->n + 1] into of_item */
    uint32_t *of_item;  /* the cliques of each body */
} mpl_cliques;

/* Lists fewer cliques when little effort is left. */
mpl_status mpl_cliques_new(mpl_ctx *ctx, const mpl_bodies *bodies, mpl_exact_effort *effort,
                           mpl_cliques **out);
void mpl_cliques_free(mpl_ctx *ctx, mpl_cliques *cliques);
/* Bytes of the heaviest clique. [byte] */
uint64_t mpl_cliques_bound(const mpl_bodies *bodies, const mpl_cliques *cliques);

/* ---- search ---- */

/* A node means only that each open body lies at or above its est and above the placed bodies. */
typedef struct mpl_graph_search {
    mpl_ctx *ctx;
    const mpl_bodies *bodies;
    const mpl_cliques *cliques;
    uint64_t cap; /* highest allowed end [byte] */
    uint64_t *est;
    uint8_t *placed;
    uint32_t *twin;  /* [n] an identical body of lower id, or MPL_NONE */
    uint32_t *order; /* parallel to q->member: members of each clique, by est at the last look */
    uint32_t *queue; /* cliques to be examined */
    uint8_t *queued; /* [q->n] */
    uint32_t n_queue;
    uint64_t *lowest;  /* [n] scratch of a node: least est of open rivals */
    uint32_t *seen;    /* [n] stamp of lowest */
    uint32_t *visited; /* [q->n] stamp */
    uint32_t stamp;
    uint32_t *inside; /* [n] last clique entry that contains the body */
    uint32_t entry;
    uint64_t look_at; /* ticks at which the clock is read again */
    mpl_trail trail;  /* est of a body; -1: it was placed */
    uint64_t *rows;   /* stack of body sets */
    size_t n_rows, rows_room;
    uint32_t *stack; /* candidates of the nodes on the current path */
    size_t n_stack, stack_room;
    mpl_exact_memo memo;
    mpl_exact_pick pick;
    const uint32_t *rank; /* [n] candidates of lower rank are tried first */
    uint64_t nodes, node_limit;
    mpl_exact_effort *effort;
    bool no_memory;
    mpl_proof *proof; /* receives refutations, used instead of the memo; NULL: none are written */
    uint32_t *set;    /* [q->n] names of the cliques in the proof */
    bool apart;       /* the bodies of the proof are not all connected */
    uint32_t *first;  /* [n] one buffer of each body */
    uint8_t *several; /* [n] the body has several buffers */
} mpl_graph_search;

mpl_status mpl_graph_search_new(mpl_ctx *ctx, const mpl_bodies *bodies, const mpl_cliques *cliques,
                                mpl_graph_search **out);
void mpl_graph_search_free(mpl_graph_search *search);
/* Sets a cap and forgets the failures below the old one. */
void mpl_graph_search_cap(mpl_graph_search *search, uint64_t cap);
/* Whether the bodies fit. FOUND leaves all offsets in est; FAILED is a proof. */
mpl_exact_verdict mpl_graph_search_run(mpl_graph_search *search);
/* Makes a search write its refutations. */
mpl_status mpl_graph_search_prove(mpl_graph_search *search, mpl_proof *proof);

/* ---- relations ---- */

/* Improves the plan offset[n] of *height and the bound *bound. Stops when the plan is no higher
 * than `enough` or the bound is above `most`. Without a plan or bound pass UINT64_MAX or 0. */
mpl_status mpl_general_solve(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *bodies,
                             uint64_t enough, uint64_t most, mpl_exact_effort *effort,
                             uint64_t *offset, uint64_t *height, uint64_t *bound);

/* Appends to the proof a refutation of every plan within `cap` bytes. FOUND: a plan may exist;
 * STOPPED: the effort ended, or the proof is full; neither writes anything. offset[n]: the best
 * plan known, or NULL. */
mpl_status mpl_general_refute(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *bodies,
                              uint64_t cap, const uint64_t *offset, mpl_exact_effort *effort,
                              mpl_proof *proof, mpl_exact_verdict *verdict);

/* ---- the planner ---- */

/* The effort that a run allows, and the report of what was used (exact_serial.c). */
mpl_exact_effort mpl_exact_begin(const mpl_run *run, const mpl_exact_options *options);
mpl_status mpl_exact_end(mpl_run *run, const mpl_exact_effort *effort, mpl_plan *out);

/* Whether two fixed offsets break the rules by themselves. Then out claims `infeasible`, with the
 * refutation. O(fixed^2). */
mpl_status mpl_exact_clash(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *out, bool *clash);

/* buffers of a pool; above it, pairs stay as the first plan has them */
#define MPL_EXACT_PAIRS_MOST 1000

/* mpl_exact_plan for one pool with in-place pairs, each taken or not. Improves offset[] of the
 * pool's buffers, of *height, until `enough`; raises *bound to what is proved. */
mpl_status mpl_exact_pairs(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t enough,
                           uint64_t most, mpl_exact_effort *effort, uint64_t *offset,
                           uint64_t *height, uint64_t *bound);
/* Families (exact_families.c). The first function makes a plan of all pools, offset[n], with
 * `solve` placing whole families. The second improves a pool, as mpl_exact_pairs does. */
mpl_status mpl_exact_families_first(mpl_run *run, const mpl_problem *p, mpl_exact_solver *solve,
                                    mpl_exact_effort *effort, uint64_t *offset);
mpl_status mpl_exact_families(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t enough,
                              uint64_t most, mpl_exact_effort *effort, uint64_t *offset,
                              uint64_t *height, uint64_t *bound);
/* Refutes every plan within `cap` bytes: FAILED. Otherwise STOPPED, with useless text. */
mpl_status mpl_exact_pairs_refute(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t cap,
                                  mpl_exact_effort *effort, mpl_proof *proof,
                                  mpl_exact_verdict *verdict);
