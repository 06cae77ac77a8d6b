/* exact.h -- the complete search as a function, for planners and other searches. */
#pragma once

#include "planners/planner.h"

/* The engines and rules that a search may do without. */
typedef enum mpl_exact_rule {
#define RULE(name) MPL_RULE_##name,
#include "planners/exact/rules.def"
#undef RULE
    MPL_N_RULES
} mpl_exact_rule;

typedef struct mpl_exact_options {
    bool minimise;    /* search below a capacity that is met */
    bool proofs;      /* write refutations */
    uint32_t without; /* bits of mpl_exact_rule; 0: everything is used */
} mpl_exact_options;

/* Plans p within the budget, the deadline and the watch of run. Writes offsets, claim and bound of
 * pool 0; with `proofs`, also a refutation where no clique proves the bound. MPL_ELIMIT: the budget
 * ended before a plan within the capacities was found. Exponential; without budget and deadline it
 * ends after some 20 s. */
typedef mpl_status mpl_exact_solver(mpl_run *run, const mpl_problem *p,
                                    const mpl_exact_options *options, mpl_plan *out);

/* Solves any problem. */
mpl_exact_solver mpl_exact_plan;
/* Solves a serial problem without gaps, pairs and families (exact_serial.c); never calls the
 * above. */
mpl_exact_solver mpl_exact_serial;
