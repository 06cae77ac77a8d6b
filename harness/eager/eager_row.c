/* eager_row.c -- what memplan eager found, as a row and as text. See eager_job.h. */
#include "harness/eager/eager_job.h"

#include "graphs/core/size.h"
#include "harness/cli/quote.h"

/* How many pairs of runs were timed both ways. */
static uint32_t n_memoised(const mpl_eager *e)
{
    uint32_t n = 0;

    while (n < e->n_timed && e->memoised_ns[n] >= 0)
        n++;
    return n;
}

mpl_status mpl_eager_row(mpl_ctx *ctx, const mpl_options *options, const mpl_eager *e,
                         mpl_record **row)
{
    const mpl_tape_facts *f = &e->facts;
    mpl_options asked = *options;
    const mpl_job *job = &e->program[0].job;
    mpl_record *r;

    asked.workspaces = MPL_workspaces_plan;
    asked.concat = MPL_concat_copy;
    asked.pin = 3; /* weights and inputs: what the tape keeps beside */
    MPL_PASS(mpl_job_row(ctx, &asked, job, NULL, row));
    r = *row;
    mpl_record_text(r, MPL_FIELD_graph, options->args.item[0]);
    mpl_record_text(r, MPL_FIELD_planner, e->planner->name);
    mpl_record_text(r, MPL_FIELD_allocator, e->allocator);
    mpl_record_text(r, MPL_FIELD_shapes, options->shapes);
    mpl_record_int(r, MPL_FIELD_steps, e->n_steps);
    mpl_record_int(r, MPL_FIELD_reserved_bytes, f->online.reserved_bytes);
    mpl_record_int(r, MPL_FIELD_requested_bytes, f->online.requested_bytes);
    mpl_record_int(r, MPL_FIELD_live_peak_bytes, f->online.live_peak_bytes);
    mpl_record_real(r, MPL_FIELD_fragmentation, mpl_online_fragmentation(&f->online));
    mpl_record_int(r, MPL_FIELD_traces, f->n_traces);
    mpl_record_member_int(r, MPL_FIELD_plan_cache, "most", options->plans);
    mpl_record_member_text(r, MPL_FIELD_plan_cache, "eviction", "least recently used");
    mpl_record_member_int(r, MPL_FIELD_plan_cache, "hits", f->n_hits);
    mpl_record_member_int(r, MPL_FIELD_plan_cache, "misses", f->n_misses);
    mpl_record_member_int(r, MPL_FIELD_plan_cache, "diverged", f->n_diverged);
    mpl_record_member_int(r, MPL_FIELD_plan_cache, "evictions", f->n_evictions);
    if (e->planned) {
        mpl_record_int(r, MPL_FIELD_planned_bytes, e->plan_bytes);
        mpl_record_int(r, MPL_FIELD_bound_bytes, e->bound_bytes);
        mpl_record_text(r, MPL_FIELD_bound_kind, "peak_live");
        mpl_record_text(r, MPL_FIELD_claim, mpl_claim_name(e->claim));
        mpl_record_bool(r, MPL_FIELD_verified, true);
        if (e->claim == MPL_OPTIMAL)
            mpl_record_int(r, MPL_FIELD_optimum_bytes, e->plan_bytes);
    }
    mpl_record_text(r, MPL_FIELD_executed, "in order");
    mpl_record_int(r, MPL_FIELD_repeat, e->n_timed);
    mpl_record_ints(r, MPL_FIELD_eager_ns, e->n_timed, e->eager_ns);
    if (n_memoised(e) > 0)
        mpl_record_ints(r, MPL_FIELD_memoised_ns, n_memoised(e), e->memoised_ns);
    mpl_record_text(r, MPL_FIELD_outputs, mpl_outputs_word(e->error));
    mpl_record_real(r, MPL_FIELD_max_rel_error, e->error);
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

void mpl_eager_print(const mpl_options *options, const mpl_record *row, const mpl_eager *e)
{
    const mpl_tape_facts *f = &e->facts;
    char what[120];

    printf("graph     %s on %s (%s)\n", mpl_shown(options->args.item[0]), e->backend->name,
           e->backend->about);
    printf("outputs:  %s to the run that shares nothing, the same bits in every step of the same "
           "shapes\n",
           mpl_outputs_word(e->error));
    snprintf(what, sizeof what, "by %s, eagerly; %.1f %% not needed", e->allocator,
             100 * mpl_online_fragmentation(&f->online));
    print_bytes("reserved", f->online.reserved_bytes, what);
    print_bytes("alive", f->online.live_peak_bytes, "at once, most");
    if (e->planned) {
        snprintf(what, sizeof what, "the plan of the %strace, %s",
                 f->n_traces > 1 ? "largest " : "", mpl_claim_name(e->claim));
        print_bytes("memoised", e->plan_bytes, what);
        print_bytes("bound", e->bound_bytes, "alive at once in it, results over operands that end");
    }
    printf("steps     %" PRIu32 ": %" PRIu64 " by a plan, %" PRIu64 " eagerly (%" PRIu64
           " left a plan); %" PRIu64 " traces planned, %" PRIu64 " least recently used evicted\n",
           e->n_steps, f->n_hits, f->n_misses, f->n_diverged, f->n_traces, f->n_evictions);
    printf("time      %.3f ms eagerly", median_ms(row, MPL_FIELD_eager_ns));
    if (n_memoised(e) > 0)
        printf(", %.3f ms by the plan", median_ms(row, MPL_FIELD_memoised_ns));
    printf(" (medians of %" PRIu32 ")\n", e->n_timed);
}
