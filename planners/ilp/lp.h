/* lp.h -- mixed integer programs: min cost x, low <= A x <= high, some columns integer. Solved by
 * GLPK, which only lp.c uses. It works in doubles, so its proofs hold up to rounding. Private to
 * planners/. */
#pragma once

#include "graphs/core/base.h"

typedef struct mpl_lp mpl_lp;

/* An empty program. The name appears only in files. */
mpl_status mpl_lp_new(mpl_ctx *ctx, const char *name, mpl_lp **out);
void mpl_lp_free(mpl_ctx *ctx, mpl_lp *lp);

/* Adds a column in [low, high], both finite, named <letter><a>, or <letter><a>_<b> if b is not
 * MPL_NONE. *column: its index, counted from 0. */
mpl_status mpl_lp_add_column(mpl_lp *lp, bool integer, double low, double high, double cost,
                             char letter, uint32_t a, uint32_t b, uint32_t *column);
/* Adds sum value[i] * x[column[i]] >= low; no column twice. Drops entries of value 0. */
mpl_status mpl_lp_add_row(mpl_lp *lp, double low, uint32_t n, const uint32_t *column,
                          const double *value);

uint32_t mpl_lp_rows(const mpl_lp *lp);
uint32_t mpl_lp_columns(const mpl_lp *lp);

typedef enum mpl_lp_state {
    MPL_LP_OPTIMAL,    /* x[] is optimal */
    MPL_LP_FEASIBLE,   /* a limit was reached; x[] is the best so far */
    MPL_LP_INFEASIBLE, /* no point satisfies all rows */
    MPL_LP_NOTHING,    /* no x[]: a limit was reached, or GLPK failed numerically or otherwise */
} mpl_lp_state;

typedef struct mpl_lp_limits {
    uint64_t max_nodes;  /* of the branch and bound tree */
    uint64_t max_pivots; /* of the simplex method over all nodes; checked between nodes */
    uint32_t max_mib;    /* memory of GLPK, 1 at least [MiB] */
    /* mpl_clock_ns(), checked between nodes and during the first relaxation; INT64_MAX: none */
    int64_t deadline_ns;
    double enough; /* an objective this low ends the search */
    bool cuts;     /* GLPK simplifies first, and adds cover and rounding cuts */
} mpl_lp_limits;

typedef struct mpl_lp_answer {
    mpl_lp_state state;
    double objective; /* of x[] */
    double bound;     /* lower bound of the objective, within doubles; -INFINITY: unknown */
    uint64_t n_nodes;
    uint64_t n_pivots;
    bool stopped_by_clock;
    /* GLPK failed with an error of its own under every scaling; the context has its message */
    bool gave_up;
} mpl_lp_answer;

/* Branch and bound: dual simplex, best local bound first. Writes x[columns] if a point was found.
 * Deterministic for the same program, limits (except the clock) and machine. MPL_EMEM: out of
 * memory or of max_mib. MPL_EUNAVAIL: GLPK is not in this build. */
mpl_status mpl_lp_solve(mpl_lp *lp, const mpl_lp_limits *limits, mpl_lp_answer *answer, double *x);

/* Writes the program in CPLEX LP format, whole or not at all. MPL_EINPUT: the file cannot be
 * written; MPL_ELIMIT: GLPK failed; MPL_EMEM and MPL_EUNAVAIL as above. */
mpl_status mpl_lp_write(mpl_lp *lp, uint32_t max_mib, const char *path);
