/* template_plan.h -- planners of templates, their regret, their files. */
#pragma once

#include "graphs/core/rng.h"
#include "planners/plan/template.h"
#include "planners/planner.h"
#include "planners/verify/verify_template.h"

/* How a template is made. All but the first two are what others do (results/APPENDIX.md). */
typedef enum mpl_template_method {
    MPL_TEMPLATE_SEARCH,   /* orders of plans at many shapes, improved at the worst ones */
    MPL_TEMPLATE_EXACT,    /* the least worst regret of one template: small problems */
    MPL_TEMPLATE_CONSTANT, /* offsets that do not change: the worst case always, "upper" */
    MPL_TEMPLATE_EQUAL,    /* buffers share where their sizes are equal as expressions */
    MPL_TEMPLATE_SLAB,     /* buffers share slabs as wide as their widest */
    MPL_TEMPLATE_EXAMPLE,  /* the plan of one shape, kept */
    MPL_TEMPLATE_METHODS
} mpl_template_method;

/* "search", "exact", "constant", "equal", "slab", "example" */
extern const char *const mpl_template_method_name[MPL_TEMPLATE_METHODS];

typedef struct mpl_template_ask {
    mpl_template_method method;
    uint32_t cells;         /* at most; methods other than search make one */
    const int64_t *example; /* [symbols] for MPL_TEMPLATE_EXAMPLE; NULL: the middle of the range */
    uint32_t most_boxes;    /* of the proof of a cell's regret; 0: 200000 */
} mpl_template_ask;

/* Plans the range of sp->x, checks the template (mpl_verify_template) and states its regret. run
 * gives context, seed and ticks; run->ticks and run->stopped_by_clock are written. The template
 * borrows sp. MPL_EUNAVAIL: the problem has decided offsets or capacities. MPL_EINPUT: no shape
 * satisfies the relations. */
mpl_status mpl_template_plan(mpl_run *run, const mpl_sym_problem *sp, const mpl_template_ask *ask,
                             mpl_template **out);

/* Bytes of pool 0 planned for the one shape, by the portfolio: what a plan for each shape needs. */
mpl_status mpl_template_replan(mpl_run *run, const mpl_sym_problem *sp, const int64_t *value,
                               uint64_t *bytes);
/* The house's lower bound of pool 0 at a shape. [byte] */
mpl_status mpl_template_bound(mpl_ctx *ctx, const mpl_sym_problem *sp, const int64_t *value,
                              uint64_t *bytes);

/* Draws an allowed shape of the box (NULL: the whole range), each symbol uniform in the logarithm
 * of its count + 1 where `log`, else uniform. MPL_EINPUT: none found in 10000 draws. */
mpl_status mpl_shape_draw(mpl_ctx *ctx, const mpl_exprs *exprs, const mpl_box *box, bool log,
                          mpl_rng *rng, int64_t *value);

/* The largest regret of all cells from both sides: *worst names the cell that attains it. */
uint64_t mpl_template_most(const mpl_template *tmpl, uint32_t *worst);

/* Writes one self-contained JSON object: kind `template`, the caller's fields, symbols, sizes as
 * text, cells with relations and regret, and the plan of one shape (planners/template/README.md).
 * Equal templates give equal bytes. */
mpl_status mpl_template_write(mpl_ctx *ctx, const char *path, const mpl_template *tmpl,
                              const char *fields_json);
/* Reads one, believing nothing: mpl_verify_template judges it. The caller frees *out and
 * *fields_json (may be NULL). MPL_EINPUT: one line that names the file. */
mpl_status mpl_template_read(mpl_ctx *ctx, const char *path, mpl_template **out,
                             char **fields_json);
