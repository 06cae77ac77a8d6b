/* template_priv.h -- shared by the files that make templates. */
#pragma once

#include "planners/template/template_plan.h"

/* arena / bound of a shape. */
typedef struct mpl_ratio {
    uint64_t arena, bound; /* [byte] */
} mpl_ratio;

static inline bool mpl_ratio_less(mpl_ratio a, mpl_ratio b)
{
    __extension__ typedef unsigned __int128 wide;

    return (wide)a.arena * b.bound < (wide)b.arena * a.bound;
}
uint64_t mpl_ratio_parts(mpl_ratio r); /* millionths, rounded up */

/* The problem's numbers at one shape. */
typedef struct mpl_scene {
    int64_t *value;   /* [symbols] */
    uint64_t *bytes;  /* [n] [byte] */
    uint64_t *inside; /* [n] distance from the family's first part; 0: none [byte] */
    uint64_t bound;   /* of pool 0 [byte] */
} mpl_scene;

/* A template under construction: which buffers share an offset, and the order in which bodies are
 * placed. */
typedef struct mpl_layout {
    mpl_buffer *on; /* [n] */
    uint32_t *rank; /* [n] place of a buffer's body in the order; equal within a body */
} mpl_layout;

typedef struct mpl_draft {
    mpl_run *run;
    mpl_ctx *ctx;
    const mpl_sym_problem *sp;
    const mpl_problem *p; /* sp->at */
    mpl_box box;          /* the cell planned */
    uint32_t *rival_begin;
    mpl_buffer *rival; /* each buffer's conflicting ones, in-place partners included */
    uint32_t n_scenes;
    size_t cap_scenes;
    mpl_scene *scene;
    uint64_t ticks;
    uint64_t *offset, *distance;      /* [n] scratch */
    mpl_buffer *order, *root, *chain; /* [n] scratch */
} mpl_draft;

/* mpl_draft_fini follows, also after a failure. */
mpl_status mpl_draft_init(mpl_run *run, const mpl_sym_problem *sp, const mpl_box *box,
                          mpl_draft *draft);
void mpl_draft_fini(mpl_draft *draft);
/* Adds the scene of an allowed shape unless it is there. */
mpl_status mpl_draft_add(mpl_draft *draft, const int64_t *value);
mpl_status mpl_layout_new(mpl_draft *draft, mpl_layout *out);
void mpl_layout_free(mpl_ctx *ctx, mpl_layout *layout);
void mpl_layout_copy(const mpl_draft *draft, mpl_layout *to, const mpl_layout *from);
/* The layout that a plan's offsets at a scene show. */
mpl_status mpl_layout_of_plan(mpl_draft *draft, const mpl_scene *scene, const uint64_t *offset,
                              mpl_layout *out);
/* Puts the buffers of in-place pair i at one offset, if that is right for every shape. */
mpl_status mpl_layout_take_pair(mpl_draft *draft, mpl_layout *layout, uint32_t i, bool *taken);
/* Pool 0 of the layout at a scene; draft->offset[n] receives the offsets. [byte] */
uint64_t mpl_layout_height(mpl_draft *draft, const mpl_layout *layout, const mpl_scene *scene);
/* The worst ratio over all scenes; *worst: which. Ticks are counted. */
mpl_ratio mpl_layout_worst(mpl_draft *draft, const mpl_layout *layout, uint32_t *worst);
/* Writes the layout's relations, transitively reduced, into a cell. */
mpl_status mpl_layout_relations(mpl_draft *draft, const mpl_layout *layout,
                                mpl_template_cell *cell);
/* The root of each buffer under a layout, in draft->root. */
void mpl_layout_roots(mpl_draft *draft, const mpl_layout *layout);

/* States the regret of cell k: halves its box, the worst part first, until both sides are within
 * `slack` millionths, most_boxes are used up or the run is late; the interval is true even then.
 * Adds loads that it needs. */
mpl_status mpl_regret_of(const mpl_run *run, mpl_template *tmpl, uint32_t k, uint64_t slack,
                         uint32_t most_boxes);
/* The loads of the range: those of drawn shapes and corners. */
mpl_status mpl_regret_loads(mpl_ctx *ctx, mpl_template *tmpl);

/* The layout of the least worst ratio over the scenes. MPL_ELIMIT: the ticks do not suffice. */
mpl_status mpl_template_exact(mpl_draft *draft, mpl_layout *best, mpl_ratio *worst);
/* The relations or offsets of a method that others use, in the template's one cell. */
mpl_status mpl_template_baseline(mpl_draft *draft, const mpl_template_ask *ask, mpl_template *tmpl);
/* The layout of the portfolio's plan of a scene. */
mpl_status mpl_layout_at(mpl_draft *draft, const mpl_scene *scene, mpl_layout *layout);
mpl_status mpl_plan_shape(mpl_run *run, const mpl_problem *p, mpl_plan **out);
