/* lp.h -- mixed integer programs: min cost x, low <= A x <= high, some columns integer. Solved by
 * GLPK, which lp.c alone knows; it works in doubles, so what it proves holds up to rounding.
 * Private to planners/. */
#ifndef MPL_LP_H
#define MPL_LP_H

#include "graphs/core/base.h"

typedef struct mpl_lp mpl_lp;

/* A program without rows and columns. The name appears in files alone. */
mpl_status mpl_lp_new(mpl_ctx *ctx, const char *name, mpl_lp **out);
void mpl_lp_free(mpl_ctx *ctx, mpl_lp *lp);

/* A column in [low, high]; both must be finite. It is called <letter><a>, or <letter><a>_<b> where
 * b is not MPL_NONE. *column is its index: the number of columns before it. */
mpl_status mpl_lp_add_column(mpl_lp *lp, bool integer, double low, double high, double cost,
                             char letter, uint32_t a, uint32_t b, uint32_t *column);
/* sum value[i] * x[column[i]] >= low; no column twice. Entries of value 0 are left out. */
mpl_status mpl_lp_add_row(mpl_lp *lp, double low, uint32_t n, const uint32_t *column,
                          const double *value);

uint32_t mpl_lp_rows(const mpl_lp *lp);
uint32_t mpl_lp_columns(const mpl_lp *lp);

typedef enum mpl_lp_state {
    MPL_LP_OPTIMAL,    /* x[] is the best there is */
    MPL_LP_FEASIBLE,   /* a limit came first; x[] is the best so far */
    MPL_LP_INFEASIBLE, /* nothing satisfies all rows */
    MPL_LP_NOTHING,    /* a limit came first, or GLPK gave up or lost its footing; no x[] */
} mpl_lp_state;

typedef struct mpl_lp_limits {
    uint64_t max_nodes;  /* of the branch and bound tree */
    uint64_t max_pivots; /* of the simplex method, over all nodes; looked at between nodes */
    uint32_t max_mib;    /* memory of GLPK, 1 at least [MiB] */
    int64_t deadline_ns; /* mpl_clock_ns(); looked at between nodes and during the first relaxation;
                            INT64_MAX: none */
    double enough;       /* an objective this low is as good as optimal */
} mpl_lp_limits;

typedef struct mpl_lp_answer {
    mpl_lp_state state;
    double objective; /* of x[] */
    double bound;     /* nothing better exists, as far as doubles can tell; -INFINITY: unknown */
    uint64_t n_nodes;
    uint64_t n_pivots;
    bool stopped_by_clock;
    bool gave_up; /* GLPK ended in an error of its own, however the program was scaled; the context
                     has its message */
} mpl_lp_answer;

/* Branch and bound: dual simplex, best local bound first. x[columns] is written when there is a
 * point. Same program, same limits without the clock, same machine: same answer. MPL_EMEM: GLPK ran
 * out of memory, or of max_mib. MPL_EUNAVAIL: GLPK is not in this build. */
mpl_status mpl_lp_solve(mpl_lp *lp, const mpl_lp_limits *limits, mpl_lp_answer *answer, double *x);

/* Writes the program in CPLEX LP format, whole or not at all. MPL_EINPUT: the file cannot be
 * written; MPL_ELIMIT: GLPK gave up; MPL_EMEM and MPL_EUNAVAIL as above. */
mpl_status mpl_lp_write(mpl_lp *lp, uint32_t max_mib, const char *path);

#endif
