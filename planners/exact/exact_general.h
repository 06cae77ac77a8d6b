/* exact_general.h -- the complete search where conflicts are any relation. Private to
 * planners/exact*.c. See SEARCH.md, section 6. */
#ifndef MPL_EXACT_GENERAL_H
#define MPL_EXACT_GENERAL_H

#include "planners/exact/exact.h"
#include "planners/place/bodies.h"

/* ---- cliques ---- */

/* Members that are pairwise rivals. All maximal ones, or, where they are too many, some; each
 * member is in one. */
typedef struct mpl_cliques {
    uint32_t n;
    uint32_t *begin;    /* [n + 1] into member */
    uint32_t *member;   /* members of the bodies, ascending */
    uint32_t *of_begin; /* [bodies->n + 1] into of_item */
    uint32_t *of_item;  /* the cliques of each body */
} mpl_cliques;

/* With little effort left they are fewer. */
mpl_status mpl_cliques_new(mpl_ctx *ctx, const mpl_bodies *b, mpl_exact_effort *effort,
                           mpl_cliques **out);
void mpl_cliques_free(mpl_ctx *ctx, mpl_cliques *q);
/* What the heaviest of them needs. [byte] */
uint64_t mpl_cliques_bound(const mpl_bodies *b, const mpl_cliques *q);

/* ---- search ---- */

/* A node means only this: the bodies not placed lie somewhere at or above their est, and above the
 * placed ones. */
typedef struct mpl_graph_search {
    mpl_ctx *ctx;
    const mpl_bodies *b;
    const mpl_cliques *q;
    uint64_t cap; /* every body ends there [byte] */
    uint64_t *est;
    uint8_t *placed;
    uint32_t *twin;  /* [n] a body of lower id that differs in nothing, or MPL_NONE */
    uint32_t *order; /* parallel to q->member: members of each clique by est as of the last look */
    uint32_t *queue; /* cliques to be looked at */
    uint8_t *queued; /* [q->n] */
    uint32_t n_queue;
    uint64_t *lowest;  /* [n] scratch of a node: least est among open rivals */
    uint32_t *seen;    /* [n] stamp of lowest */
    uint32_t *visited; /* [q->n] stamp */
    uint32_t stamp;
    uint32_t *inside; /* [n] entry: the body is in the clique entered last */
    uint32_t entry;
    uint64_t look_at; /* ticks at which the clock is asked again */
    mpl_trail trail;  /* est of a body; -1: it was placed */
    uint64_t *rows;   /* stack of sets of bodies */
    size_t n_rows, rows_room;
    uint32_t *stack; /* candidates of the nodes above */
    size_t n_stack, stack_room;
    mpl_exact_memo memo;
    mpl_exact_pick pick;
    const uint32_t *rank; /* [n] candidates with lower ranks are tried first */
    uint64_t nodes, node_limit;
    mpl_exact_effort *effort;
    bool no_memory;
    mpl_proof *proof; /* NULL: nobody writes. Else what it refutes is added there, and forgotten for
                         the memo */
    uint32_t *set;    /* [q->n] the cliques in the proof */
    bool apart;       /* the bodies in it are not all connected */
    uint32_t *first;  /* [n] a buffer of each body */
    uint8_t *several; /* [n] it has more than one */
} mpl_graph_search;

mpl_status mpl_graph_search_new(mpl_ctx *ctx, const mpl_bodies *b, const mpl_cliques *q,
                                mpl_graph_search **out);
void mpl_graph_search_free(mpl_graph_search *s);
/* A new cap forgets what failed below the old one. */
void mpl_graph_search_cap(mpl_graph_search *s, uint64_t cap);
/* Whether the bodies fit. FOUND leaves all offsets in est; FAILED is a proof. */
mpl_exact_verdict mpl_graph_search_run(mpl_graph_search *s);
/* Makes a search write what it refutes. */
mpl_status mpl_graph_search_prove(mpl_graph_search *s, mpl_proof *proof);

/* ---- relations ---- */

/* The lowest plan of the bodies, until it is no higher than `enough`, or is proved to be higher
 * than `most`: offset[n] with *height, and *bound. On entry they hold a plan and a bound, or
 * UINT64_MAX and 0. */
mpl_status mpl_general_solve(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *b,
                             uint64_t enough, uint64_t most, mpl_exact_effort *effort,
                             uint64_t *offset, uint64_t *height, uint64_t *bound);

/* Writes why the bodies have no plan within `cap` bytes at the end of the proof. FOUND: they may
 * have one; STOPPED: the effort ended, or the proof is full; both write nothing. offset[n] (may be
 * NULL): the best plan known. */
mpl_status mpl_general_refute(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *b, uint64_t cap,
                              const uint64_t *offset, mpl_exact_effort *effort, mpl_proof *proof,
                              mpl_exact_verdict *verdict);

/* ---- the planner ---- */

/* The effort that a run allows, and what came of it (exact_serial.c). */
mpl_exact_effort mpl_exact_begin(const mpl_run *run, const mpl_exact_options *options);
mpl_status mpl_exact_end(mpl_run *run, const mpl_exact_effort *effort, mpl_plan *out);

/* Whether two fixed places break the rules by themselves: then out claims `infeasible`, with the
 * refutation. O(fixed^2). */
mpl_status mpl_exact_clash(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *out, bool *clash);

/* buffers of a pool; with more, pairs are taken up as the first plan has them */
#define MPL_EXACT_PAIRS_MOST 1000

/* The same as mpl_exact_plan for one pool with in-place pairs, taken up or not: offset[] of the
 * pool's buffers, of *height, is improved until `enough`; *bound is raised by what is proved. */
mpl_status mpl_exact_pairs(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t enough,
                           uint64_t most, mpl_exact_effort *effort, uint64_t *offset,
                           uint64_t *height, uint64_t *bound);
/* Families (exact_families.c): a first plan of all pools, offset[n], where `solve` plans whole
 * families; then, of a pool that has some, as above. */
mpl_status mpl_exact_families_first(mpl_run *run, const mpl_problem *p, mpl_exact_solver *solve,
                                    mpl_exact_effort *effort, uint64_t *offset);
mpl_status mpl_exact_families(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t enough,
                              uint64_t most, mpl_exact_effort *effort, uint64_t *offset,
                              uint64_t *height, uint64_t *bound);
/* Writes why there is no plan within `cap` bytes: FAILED; else STOPPED, and what is written is of
 * no use. */
mpl_status mpl_exact_pairs_refute(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t cap,
                                  mpl_exact_effort *effort, mpl_proof *proof,
                                  mpl_exact_verdict *verdict);

#endif
