/* verify_template_priv.h -- shared by the two halves of the check of templates. */
#pragma once

#include "graphs/symbols/bernstein.h"
#include "planners/verify/verify.h"
#include "planners/verify/verify_template.h"

typedef struct mpl_template_check {
    mpl_ctx *ctx;
    const mpl_template *tmpl;
    const mpl_sym_problem *sp;
    const mpl_problem *p;
    const mpl_template_cell *cell;
    uint32_t k;        /* the cell */
    uint32_t n_words;  /* of a row of `under` */
    mpl_buffer *root;  /* [n] what moves with b begins there */
    mpl_expr *away;    /* [n] distance from the root; [n, 2n): the bytes, for control values */
    uint64_t *under;   /* row b: buffers below b by relations */
    mpl_buffer *order; /* [n] roots, each after those below it */
    uint32_t n_order;
    uint32_t *rule_begin, *rule; /* relations by the place of the root above in `order` */
    uint64_t *align;             /* [n] of a root: the largest of its members [byte] */
    uint64_t *grain;             /* [n] divides every end of b [byte] */
    uint8_t *uneven;             /* [n] of a root: the alignment may add bytes */
    mpl_controls *controls;
    int64_t *low, *high, *start; /* [2n * points], [n] by root, times the scale */
    int64_t *load, *arena;       /* [loads * points], [points] */
    uint32_t *weight;            /* [loads] */
    uint32_t boxes;              /* left */
} mpl_template_check;

/* Whether the regret of the cell is as stated, its relations being closed: verify_regret.c. */
mpl_status mpl_verify_regret(mpl_template_check *self);
void mpl_verify_regret_fini(mpl_template_check *self);

#define REFUSE(c, ...) MPL_ERROR((c)->ctx, MPL_EINVALID, __VA_ARGS__)
