/* exact.h -- the complete search as a function, for planners and searches that ask it on their
 * way. */
#ifndef MPL_EXACT_H
#define MPL_EXACT_H

#include "planners/planner.h"

/* The engines and rules that a search may do without. */
typedef enum mpl_exact_rule {
#define RULE(name) MPL_RULE_##name,
#include "planners/exact/rules.def"
#undef RULE
    MPL_N_RULES
} mpl_exact_rule;

typedef struct mpl_exact_options {
    bool minimise;    /* go on below a capacity */
    bool proofs;      /* write refutations down */
    uint32_t without; /* bits of mpl_exact_rule; 0: everything is used */
} mpl_exact_options;

/* Plans p within the budget, the deadline and the watch of run: out's offsets, claim, bound of pool
 * 0 and, with `proofs`, the refutation of what no set of buffers proves. MPL_ELIMIT: the budget
 * ended before there was a plan within the capacities. Exponential; without budget and deadline it
 * ends after some 20 s. */
typedef mpl_status mpl_exact_solver(mpl_run *run, const mpl_problem *p,
                                    const mpl_exact_options *options, mpl_plan *out);

/* Any problem. */
mpl_exact_solver mpl_exact_plan;
/* A serial problem without gaps, pairs and families: exact_serial.c, which none of the others
 * stands above. */
mpl_exact_solver mpl_exact_serial;

#endif
