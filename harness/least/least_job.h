/* least_job.h -- memplan least: one GRAPH in the least memory, with what was free to choose and
 * what each freedom saves. */
#pragma once

#include "harness/residency/residency_job.h"

enum { MPL_MOST_FREEDOMS = 8, MPL_MOST_FALLS = 6 + MPL_MOST_FREEDOMS };

/* A freedom of --free that changes operations or their work. */
typedef struct mpl_freedom {
    const struct mpl_freedom_kind *kind;
    char text[40];     /* as given: "+recompute:1.2x" */
    double most_extra; /* of recompute: extra work over the work of the graph */
} mpl_freedom;

/* What a freedom asks of the options under which GRAPH is opened: changes *options, whose texts may
 * then point into text[40]. why[200] stays empty, or says why the freedom cannot be had here. */
typedef struct mpl_freedom_kind {
    const char *name;
    bool takes_factor;
    mpl_option_id option; /* whose value it chooses */
    mpl_status (*ask)(mpl_ctx *ctx, const mpl_freedom *freedom, const char *graph,
                      int64_t deadline_ns, mpl_options *options, char *text, char *why);
} mpl_freedom_kind;

/* Parses "+optimise,+layout,+recompute:1.2x"; NULL: none. MPL_EINPUT: no such freedom, twice the
 * same, or its option is given. */
mpl_status mpl_freedoms_parse(mpl_ctx *ctx, const mpl_options *options,
                              mpl_freedom list[MPL_MOST_FREEDOMS], uint32_t *n);

/* A step of the waterfall. */
typedef struct mpl_fall {
    char step[40];
    uint64_t bytes; /* of the lowest plan so far, which may use all freedoms up to this one */

    /* Of the added freedoms alone. */
    bool is_added, is_kept;
    char why[200];        /* why it could not be tried; "": it was */
    uint64_t tried_bytes; /* of the plan with it */
    /* of the graph (graphs/orders/work.h); with patches multiplications alone */
    uint64_t work_before, work;
    uint64_t reordered_bytes;              /* by changes of layout, in one run */
    uint32_t n_ops_before, n_ops, n_again; /* operations; those that run again */
    const mpl_job_residency *moves; /* of --memories: what costs least; NULL: nothing moves */
    const char *of;                 /* .. in the graph after which step */
    bool is_elsewhere;              /* .. which is not the last that was kept */
} mpl_fall;

/* The graph that the lowest plan had after a step of the waterfall, in that plan's order. */
typedef struct mpl_on_the_way {
    const char *step;
    mpl_options options; /* lists and texts are borrowed */
    mpl_job job;
} mpl_on_the_way;

/* Results for one GRAPH. */
typedef struct mpl_lowest {
    mpl_options options; /* of the plan; lists and texts are borrowed */
    char text[MPL_MOST_FREEDOMS][40];
    const char *step; /* that led to the plan */
    mpl_job job;
    uint32_t n_earlier; /* with --memories: graphs before the last kept freedom */
    mpl_on_the_way earlier[MPL_MOST_FREEDOMS];
    mpl_plan *plan; /* verified; its claim and bound are about the job's problem alone */
    mpl_residency_job residency; /* of --memories, in place of job and plan; no plan: not kept */
    uint32_t n_freedoms;
    mpl_freedom freedom[MPL_MOST_FREEDOMS];
    uint32_t n_falls;
    mpl_fall fall[MPL_MOST_FALLS];
    uint64_t bound_bytes; /* proved over all but the added freedoms; 0: none */
    const char *bound_by;
    uint64_t ticks;
    int64_t ns;
    bool by_clock, by_caller; /* what ended the search early */
} mpl_lowest;

/* Runs all steps. options->watch (may be NULL) hears of better plans and may stop the search, which
 * then ends with its best plan. MPL_EINPUT: a list of buffers. The caller frees the result even
 * after a failure. */
mpl_status mpl_lowest_find(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                           mpl_lowest *out);
/* Whether values move between two memories. */
static inline bool mpl_lowest_moves(const mpl_lowest *lowest)
{
    return lowest->residency.found.plan != NULL;
}
void mpl_lowest_fini(mpl_ctx *ctx, mpl_lowest *lowest);

/* asked: the options as given, which say what was free. */
mpl_status mpl_lowest_row(mpl_ctx *ctx, const mpl_options *asked, const mpl_lowest *lowest,
                          mpl_record **row);
void mpl_lowest_print(const mpl_options *asked, const mpl_lowest *lowest, const mpl_record *row);

/* ---- least_base.c ---- */

/* One graph after its passes, and the lowest of the plans tried so far. */
typedef struct mpl_least_base {
    mpl_ctx *ctx;
    const mpl_backend *backend; /* of the workspaces; NULL: none */
    uint64_t *workspace_bytes;  /* [n_ops] or NULL */
    mpl_job *job;
    mpl_options options; /* of the lowest plan, like the rest */
    mpl_plan_choices choices;
    mpl_plan *plan; /* NULL: none yet */
} mpl_least_base;

mpl_status mpl_least_base_open(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                               mpl_job *job, mpl_least_base *out);
void mpl_least_base_fini(mpl_least_base *base);
/* Plans the given order under `options` by the planner, with `ticks` of work at most and to its
 * end, whatever the time. concats: 1: decided as --concat says, 0: copied. */
mpl_status mpl_least_try_given(mpl_least_base *base, const mpl_options *options,
                               const char *planner, uint64_t ticks, bool concats);
/* Searches (planners/search/least.h) and adds the facts to *facts. */
mpl_status mpl_least_try_search(mpl_least_base *base, const mpl_options *options,
                                int64_t deadline_ns, mpl_lowest *facts);
/* Makes the lowest plan, *plan, the job's, and hands out its options. */
mpl_status mpl_least_base_settle(mpl_least_base *base, mpl_plan **plan, mpl_options *options);
