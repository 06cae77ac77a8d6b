/* cmd_plan.c -- memplan plan: one plan, verified before it is written. */
#include <unistd.h>

#include "graphs/core/size.h"
#include "harness/cli/command.h"
#include "harness/cli/interrupt.h"
#include "harness/entries/entries.h"
#include "harness/report/grid.h"
#include "harness/job/job.h"
#include "harness/residency/residency_job.h"
#include "harness/shapes/template_job.h"
#include "planners/ilp/ilp.h"

/* Prints the memories of pool 0 if it has several; they have no bounds. */
static void print_memories(const mpl_spread *spread)
{
    char gap[32], capacity[32];

    for (uint32_t k = 0; k < spread->n; k++) {
        snprintf(capacity, sizeof capacity, "%" PRIu64, spread->capacity[k]);
        printf("memory %" PRIu32 " %12" PRIu64 " bytes  %14s  of %s, %" PRIu64 " a byte\n", k,
               spread->bytes[k], mpl_sized(spread->bytes[k]).text,
               spread->capacity[k] == MPL_NO_CAPACITY ? "any number" : capacity, spread->price[k]);
    }
    printf("cost     %12" PRIu64 ", bound %" PRIu64 ", gap %s\n", spread->cost, spread->cost_bound,
           mpl_gap_text(spread->cost, spread->cost_bound, gap));
}

/* Prints the result of an order search, the scope of its proof, and whether the plan uses that
 * order. */
static void print_order(const mpl_job *job, const mpl_record *row, uint64_t planned)
{
    const mpl_order_found *found = &job->order_found;
    uint64_t other = 0;
    char gap[32];

    if (found->ns > 0)
        printf("order    %12" PRIu64 " bytes  %14s  %s; %s over %s, gap %s\n", found->live_bytes,
               mpl_sized(found->live_bytes).text, mpl_record_get_text(row, MPL_FIELD_order),
               mpl_order_proof(job), found->scope,
               mpl_gap_text(found->live_bytes, found->bound_bytes, gap));
    if (!mpl_record_is(row, MPL_FIELD_order_kept, "given"))
        return;
    printf("kept     the given order: ");
    if (mpl_record_get_int(row, MPL_FIELD_order_other_bytes, &other))
        printf("its plan is lower, %" PRIu64 " bytes against %" PRIu64 "\n", planned, other);
    else
        printf("the other has no plan\n");
}

/* Prints why the search ended early. */
static void print_stop(const mpl_record *row)
{
    const char *by = mpl_record_text_or(row, MPL_FIELD_stopped, "done");

    if (strcmp(by, "solver") == 0)
        printf("stopped  GLPK gave up; the plan is what was there\n");
    else if (strcmp(by, "done") != 0)
        printf("stopped  by the %s\n", strcmp(by, "ticks") == 0 ? "budget" : by);
}

static void print_summary(const mpl_job *job, const mpl_plan *plan, const mpl_record *row)
{
    uint64_t planned = 0, packed = 0, bound = 0, plan_ns = 0;
    int64_t self_ns;
    char gap[32];

    mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    mpl_record_get_int(row, MPL_FIELD_packed_bytes, &packed);
    mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound);
    printf("graph    %s: %" PRIu32 " buffers, %" PRIu32 " steps, %s\n", mpl_shown(job->text),
           job->problem->n, job->problem->n_steps, mpl_record_get_text(row, MPL_FIELD_safety));
    print_order(job, row, planned);
    printf("planner  %s\n", mpl_shown(mpl_record_get_text(row, MPL_FIELD_planner)));
    printf("planned  %12" PRIu64 " bytes  %14s  verified, %s\n", planned, mpl_sized(planned).text,
           mpl_claim_name(plan->claim));
    if (packed != planned)
        printf("packed   %12" PRIu64 " bytes  %14s  blocks in one arena\n", packed,
               mpl_sized(packed).text);
    if (plan->spread.n > 0)
        print_memories(&plan->spread);
    else
        printf("bound    %12" PRIu64 " bytes  %14s  %s, gap %s\n", bound, mpl_sized(bound).text,
               mpl_record_get_text(row, MPL_FIELD_bound_kind), mpl_gap_text(planned, bound, gap));
    printf("naive    %12" PRIu64 " bytes  %14s  nothing shared\n", job->naive_bytes,
           mpl_sized(job->naive_bytes).text);
    for (uint32_t k = 1; k < plan->n_pools; k++)
        printf("pool     %12" PRIu64 " bytes  %14s  %s\n", plan->pool_bytes[k],
               mpl_sized(plan->pool_bytes[k]).text, mpl_shown(job->problem->pool_name[k]));
    print_stop(row);
    if (!mpl_record_get_int(row, MPL_FIELD_plan_ns, &plan_ns))
        return;
    printf("time     %.3f ms", (double)plan_ns / 1e6);
    if (strcmp(mpl_record_get_text(row, MPL_FIELD_planner), "near") == 0 &&
        mpl_record_median(row, MPL_FIELD_self_ns, &self_ns))
        printf(", %.3f ms of it without reading the older plan", (double)self_ns / 1e6);
    printf("\n");
}

/* Keeps a failure as a row. The message of ctx stays that of the failure. */
static void keep_failure(mpl_ctx *ctx, const mpl_record *row, char **json)
{
    char message[sizeof ctx->message];

    memcpy(message, ctx->message, sizeof message);
    if (!mpl_record_is(row, MPL_FIELD_status, "ok") && !mpl_record_is_null(row, MPL_FIELD_status))
        (void)mpl_record_write(ctx, row, json);
    memcpy(ctx->message, message, sizeof message);
}

/* Writes the certificate of a problem proved not to fit. The status stays a failure with its
 * message. */
static mpl_status write_refusal(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                                mpl_record *row, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    char *json = NULL, message[sizeof ctx->message];

    memcpy(message, ctx->message, sizeof message);
    if (options->reproducible)
        mpl_row_forget_origin(row);
    MPL_TRY(mpl_record_write(ctx, row, &json));
    MPL_TRY(mpl_plan_write(ctx, options->output, job->problem, plan, json));
    memcpy(ctx->message, message, sizeof message);
    st = MPL_EINVALID;
out:
    mpl_free(ctx, json);
    return st;
}

/* ---- while planning ---- */

/* Prints one line that the next one overwrites. */
static void show_progress(void *arg, uint64_t planned, uint64_t bound)
{
    char gap[32];

    (void)arg;
    fprintf(stderr, "\r\033[Kbest %s, bound %s, gap %s; Ctrl-C takes the best",
            mpl_sized(planned).text, mpl_sized(bound).text, mpl_gap_text(planned, bound, gap));
}

/* Plans. The first Ctrl-C ends the search with its best plan, the second ends the program. */
static mpl_status plan_watched(mpl_ctx *ctx, mpl_options *options, const char *graph,
                               mpl_made *made)
{
    bool shown = isatty(STDERR_FILENO) != 0 && !options->quiet && !options->json;
    mpl_watch watch = {.progress = shown ? show_progress : NULL,
                       .bind = mpl_bind_thread,
                       .stop = mpl_interrupt_soften()};
    mpl_status st;

    options->watch = &watch;
    st = mpl_make(ctx, options, graph, MPL_TO_PLAN, made);
    mpl_interrupt_restore();
    options->watch = NULL;
    if (shown)
        fputs("\r\033[K", stderr);
    return st;
}

/* A template: one plan for every shape of the ranges. */
static mpl_status plan_ranges(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_template_job job;

    MPL_TRY(mpl_template_job_plan(ctx, options, &job));
    if (options->reproducible)
        mpl_row_forget_origin(job.row);
    if (options->output != NULL)
        MPL_TRY(mpl_template_job_write(ctx, &job, options->output));
    if (options->json)
        MPL_TRY(mpl_record_write(ctx, job.row, &options->result));
    else if (!options->quiet)
        mpl_template_job_print(&job);
out:
    mpl_template_job_fini(ctx, &job);
    return st;
}

/* Two memories, between which values move. */
static mpl_status plan_residency(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_residency_job job;

    MPL_TRY(mpl_residency_job_plan(ctx, options, &job));
    if (options->reproducible)
        mpl_row_forget_origin(job.made.row);
    if (options->output != NULL)
        MPL_TRY(mpl_residency_job_write(ctx, &job, job.made.row, options->output));
    if (options->json)
        MPL_TRY(mpl_record_write(ctx, job.made.row, &options->result));
    else if (!options->quiet)
        mpl_residency_job_print(&job);
out:
    mpl_residency_job_fini(ctx, &job);
    return st;
}

mpl_status mpl_cmd_plan(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_made made = {0};
    mpl_entries *entries = NULL;
    char *json = NULL;
    const char *graph = options->args.item[0];

    bool asked;

    MPL_TRY(mpl_residency_asked(ctx, options, &asked));
    if (asked)
        return plan_residency(ctx, options);
    if (options->args.n == 1 && mpl_ranges_asked(options, graph))
        return plan_ranges(ctx, options);
    if (options->shapes != NULL || options->given[MPL_OPT_template] ||
        options->given[MPL_OPT_cells] || options->constant || options->bounded)
        return MPL_REFUSE(ctx, "plan: --shapes, --template, --cells, --constant and --bounded are "
                               "for one GRAPH over ranges: --dim NAME=LO..HI");
    MPL_TRY(mpl_entries_start(ctx, options, options->args.n, &graph, &entries));
    st = plan_watched(ctx, options, graph, &made);
    if (st != MPL_OK && options->json && made.row != NULL)
        keep_failure(ctx, made.row, &options->result);
    if (st == MPL_EINVALID && made.plan != NULL && options->output != NULL)
        st = write_refusal(ctx, options, &made.job, made.row, made.plan);
    MPL_TRY(st);
    if (entries != NULL)
        MPL_TRY(mpl_entries_finish(ctx, options, entries, &made));
    if (options->reproducible)
        mpl_row_forget_origin(made.row);
    MPL_TRY(mpl_record_write(ctx, made.row, &json));
    if (options->output != NULL)
        MPL_TRY(mpl_job_write_plan(ctx, &made.job, made.plan, json, options->output));
    if (options->write_lp != NULL)
        MPL_TRY(mpl_ilp_write(ctx, made.job.problem, made.plan, options->write_lp));
    if (options->json)
        options->result = json, json = NULL;
    else if (!options->quiet)
        print_summary(&made.job, made.plan, made.row);
    if (entries != NULL && !options->json && !options->quiet)
        mpl_entries_print(entries);
out:
    mpl_free(ctx, json);
    mpl_made_fini(ctx, &made);
    mpl_entries_free(ctx, entries);
    return st;
}
