/* eager_row.c -- what memplan eager found, as a row and as text. See eager_job.h. */
#include "harness/eager/eager_job.h"

#include "graphs/core/size.h"
#include "harness/cli/quote.h"

/* How many pairs of runs were timed both ways. */
static uint32_t n_memoised(const mpl_eager *eager)
{
    uint32_t n = 0;

    while (n < eager->n_timed && eager->memoised_ns[n] >= 0)
        n++;
    return n;
}

mpl_status mpl_eager_row(mpl_ctx *ctx, const mpl_options *options, const mpl_eager *eager,
                         mpl_record **row)
{
    const mpl_tape_facts *facts = &eager->facts;
    mpl_options asked = *options;
    const mpl_job *job = &eager->program[0].job;
    mpl_record *record;

    asked.workspaces = MPL_workspaces_plan;
    asked.concat = MPL_concat_copy;
    asked.pin = 3; /* weights and inputs: what the tape keeps beside */
    MPL_PASS(mpl_job_row(ctx, &asked, job, NULL, row));
    record = *row;
    mpl_record_text(record, MPL_FIELD_graph, options->args.item[0]);
    mpl_record_text(record, MPL_FIELD_planner, eager->planner->name);
    mpl_record_text(record, MPL_FIELD_allocator, eager->allocator);
    mpl_record_text(record, MPL_FIELD_shapes, options->shapes);
    mpl_record_int(record, MPL_FIELD_steps, eager->n_steps);
    mpl_record_int(record, MPL_FIELD_reserved_bytes, facts->online.reserved_bytes);
    mpl_record_int(record, MPL_FIELD_requested_bytes, facts->online.requested_bytes);
    mpl_record_int(record, MPL_FIELD_live_peak_bytes, facts->online.live_peak_bytes);
    mpl_record_real(record, MPL_FIELD_fragmentation, mpl_online_fragmentation(&facts->online));
    mpl_record_int(record, MPL_FIELD_traces, facts->n_traces);
    mpl_record_member_int(record, MPL_FIELD_plan_cache, "most", options->plans);
    mpl_record_member_text(record, MPL_FIELD_plan_cache, "eviction", "least recently used");
    mpl_record_member_int(record, MPL_FIELD_plan_cache, "hits", facts->n_hits);
    mpl_record_member_int(record, MPL_FIELD_plan_cache, "misses", facts->n_misses);
    mpl_record_member_int(record, MPL_FIELD_plan_cache, "diverged", facts->n_diverged);
    mpl_record_member_int(record, MPL_FIELD_plan_cache, "evictions", facts->n_evictions);
    if (eager->planned) {
        mpl_record_int(record, MPL_FIELD_planned_bytes, eager->plan_bytes);
        mpl_record_int(record, MPL_FIELD_bound_bytes, eager->bound_bytes);
        mpl_record_text(record, MPL_FIELD_bound_kind, "peak_live");
        mpl_record_text(record, MPL_FIELD_claim, mpl_claim_name(eager->claim));
        mpl_record_bool(record, MPL_FIELD_verified, true);
        if (eager->claim == MPL_OPTIMAL)
            mpl_record_int(record, MPL_FIELD_optimum_bytes, eager->plan_bytes);
    }
    mpl_record_text(record, MPL_FIELD_executed, "in order");
    mpl_record_int(record, MPL_FIELD_repeat, eager->n_timed);
    mpl_record_ints(record, MPL_FIELD_eager_ns, eager->n_timed, eager->eager_ns);
    if (n_memoised(eager) > 0)
        mpl_record_ints(record, MPL_FIELD_memoised_ns, n_memoised(eager), eager->memoised_ns);
    mpl_record_text(record, MPL_FIELD_outputs, mpl_outputs_word(eager->error));
    mpl_record_real(record, MPL_FIELD_max_rel_error, eager->error);
    return MPL_OK;
}

static double median_ms(const mpl_record *row, mpl_field field)
{
    int64_t ns = 0;

    mpl_record_median(row, field, &ns);
    return (double)ns / 1e6;
}

static void print_bytes(const char *name, uint64_t bytes, const char *what)
{
    printf("%-10s%12" PRIu64 " bytes  %14s  %s\n", name, bytes, mpl_sized(bytes).text, what);
}

void mpl_eager_print(const mpl_options *options, const mpl_record *row, const mpl_eager *eager)
{
    const mpl_tape_facts *facts = &eager->facts;
    char what[120];

    printf("graph     %s on %s (%s)\n", mpl_shown(options->args.item[0]), eager->backend->name,
           eager->backend->about);
    printf("outputs:  %s to the run that shares nothing, the same bits in every step of the same "
           "shapes\n",
           mpl_outputs_word(eager->error));
    snprintf(what, sizeof what, "by %s, eagerly; %.1f %% not needed", eager->allocator,
             100 * mpl_online_fragmentation(&facts->online));
    print_bytes("reserved", facts->online.reserved_bytes, what);
    print_bytes("alive", facts->online.live_peak_bytes, "at once, most");
    if (eager->planned) {
        snprintf(what, sizeof what, "the plan of the %strace, %s",
                 facts->n_traces > 1 ? "largest " : "", mpl_claim_name(eager->claim));
        print_bytes("memoised", eager->plan_bytes, what);
        print_bytes("bound", eager->bound_bytes,
                    "alive at once in it, results over operands that end");
    }
    printf("steps     %" PRIu32 ": %" PRIu64 " by a plan, %" PRIu64 " eagerly (%" PRIu64
           " left a plan); %" PRIu64 " traces planned, %" PRIu64 " least recently used evicted\n",
           eager->n_steps, facts->n_hits, facts->n_misses, facts->n_diverged, facts->n_traces,
           facts->n_evictions);
    printf("time      %.3f ms eagerly", median_ms(row, MPL_FIELD_eager_ns));
    if (n_memoised(eager) > 0)
        printf(", %.3f ms by the plan", median_ms(row, MPL_FIELD_memoised_ns));
    printf(" (medians of %" PRIu32 ")\n", eager->n_timed);
}
