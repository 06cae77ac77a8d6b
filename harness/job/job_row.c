/* job_row.c -- writes a job and its plan into a row. See job.h. */

#include <stdlib.h>

#include "harness/foreign/foreign.h"
#include "harness/job/measure.h"
#include "harness/cli/version.h"

static void put_build(mpl_record *row)
{
    const mpl_build *build = &mpl_this_build;

    mpl_record_null(row, MPL_FIELD_memplan);
    mpl_record_member_text(row, MPL_FIELD_memplan, "version", build->version);
    mpl_record_member_text(row, MPL_FIELD_memplan, "commit", build->commit);
    mpl_record_member_bool(row, MPL_FIELD_memplan, "dirty", build->dirty);
    mpl_record_member_text(row, MPL_FIELD_memplan, "compiler", build->compiler);
    mpl_record_member_text(row, MPL_FIELD_memplan, "flags", build->flags);
}

static void put_machine(const mpl_machine *machine, mpl_record *row)
{
    mpl_record_null(row, MPL_FIELD_machine);
    mpl_record_member_text(row, MPL_FIELD_machine, "host", machine->host);
    mpl_record_member_text(row, MPL_FIELD_machine, "cpu", machine->cpu);
    mpl_record_member_text(row, MPL_FIELD_machine, "isa", machine->isa);
    mpl_record_member_text(row, MPL_FIELD_machine, "os", machine->os);
    mpl_record_member_int(row, MPL_FIELD_machine, "cores", machine->n_cores);
    mpl_record_member_int(row, MPL_FIELD_machine, "threads", machine->n_threads);
    mpl_record_member_int(row, MPL_FIELD_machine, "numa_nodes", machine->n_nodes);
    mpl_record_member_int(row, MPL_FIELD_machine, "memory_bytes", machine->memory_bytes);
    mpl_record_member_int(row, MPL_FIELD_machine, "page_bytes", machine->page_bytes);
}

void mpl_row_build(const mpl_machine *machine, mpl_record *row)
{
    put_build(row);
    if (machine->page_bytes > 0)
        put_machine(machine, row);
}

/* The options as given, as far as they fit. */
static void put_constraints(const mpl_options *options, mpl_record *row)
{
    const mpl_strings *lists[] = {&options->fix, &options->reserve, &options->apart,
                                  &options->together};
    static const char *const names[] = {"fix", "reserve", "apart", "together"};
    char text[1000] = "";
    size_t n = 0;

    for (int k = 0; k < 4; k++)
        for (uint32_t i = 0; i < lists[k]->n && n < sizeof text; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %s", n > 0 ? "; " : "", names[k],
                                  lists[k]->item[i]);
    if (options->given[MPL_OPT_chunk] && n < sizeof text)
        n += (size_t)snprintf(text + n, sizeof text - n, "%schunk %" PRIu64, n > 0 ? "; " : "",
                              options->chunk);
    mpl_record_text(row, MPL_FIELD_constraints, n > 0 ? text : NULL);
}

static void put_recomputed(const mpl_options *options, const mpl_job *job, mpl_record *row)
{
    const mpl_recompute_found *found = &job->recomputed;

    if (job->recompute_ns == 0)
        return;
    mpl_record_text(row, MPL_FIELD_recompute, options->recompute);
    mpl_record_int(row, MPL_FIELD_recompute_before_bytes, found->before_bytes);
    mpl_record_int(row, MPL_FIELD_recompute_ops, found->facts.n_again);
    mpl_record_int(row, MPL_FIELD_recompute_ns, (uint64_t)job->recompute_ns);
    mpl_record_int(row, MPL_FIELD_forward_work, found->facts.forward_work);
    mpl_record_int(row, MPL_FIELD_all_work, found->facts.all_work);
    mpl_record_int(row, MPL_FIELD_extra_work, found->facts.extra_work);
    if (found->n_taped > 0) {
        mpl_record_int(row, MPL_FIELD_forward_rounds, found->forward_rounds);
        mpl_record_int(row, MPL_FIELD_tape_bytes, found->tape_bytes);
        mpl_record_int(row, MPL_FIELD_tape_before_bytes, found->tape_before_bytes);
    }
    if (found->has_bound)
        mpl_record_int(row, MPL_FIELD_extra_work_bound, found->bound_work);
    mpl_record_text(row, MPL_FIELD_recompute_claim,
                    found->claim == MPL_RECOMPUTE_OPTIMAL   ? "optimal"
                    : found->claim == MPL_RECOMPUTE_REGIONS ? "regions"
                                                            : "feasible");
    if (found->n_regions > 0) {
        mpl_record_int(row, MPL_FIELD_recompute_regions, found->n_regions);
        mpl_record_int(row, MPL_FIELD_recompute_plain, found->n_plain);
    }
}

static void put_changed(const mpl_options *options, const mpl_job *job, mpl_record *row)
{
    if (job->twice.n_ops == 0)
        return;
    mpl_record_text(row, MPL_FIELD_changed, options->changed);
    mpl_record_int(row, MPL_FIELD_changed_ops, job->twice.n_again);
    mpl_record_int(row, MPL_FIELD_all_ops, job->twice.n_ops);
    mpl_record_int(row, MPL_FIELD_kept_bytes, job->twice.kept_bytes);
}

static void put_layout(const mpl_options *options, const mpl_job *job, bool ordered,
                       mpl_record *row)
{
    mpl_record_text(row, MPL_FIELD_layout,
                    ordered && options->layout != MPL_layout_plain ? mpl_word_text[options->layout]
                                                                   : NULL);
    if (options->layout != MPL_layout_tuned)
        return;
    mpl_record_text(row, MPL_FIELD_op_times, options->op_times);
    mpl_record_int(row, MPL_FIELD_tuned_ns, job->tuned_ns);
}

static void put_order(const mpl_options *options, const mpl_job *job, bool ordered, mpl_record *row)
{
    mpl_record_text(row, MPL_FIELD_order, ordered ? options->order : NULL);
    if (job->order_found.ns == 0)
        return;
    mpl_record_int(row, MPL_FIELD_order_live_bytes, job->order_found.live_bytes);
    mpl_record_int(row, MPL_FIELD_order_bound_bytes, job->order_found.bound_bytes);
    mpl_record_text(row, MPL_FIELD_order_proof, job->order_found.method);
    mpl_record_text(row, MPL_FIELD_order_scope, job->order_found.scope);
    if (job->source.graph != NULL)
        mpl_record_int(row, MPL_FIELD_order_ops, job->source.graph->n_ops);
    mpl_record_int(row, MPL_FIELD_order_ticks, job->order_found.ticks);
    mpl_record_int(row, MPL_FIELD_order_ns, (uint64_t)job->order_found.ns);
}

/* The sizes that the options set, and the inputs that they bound. g may be NULL. */
static void put_dims(const mpl_options *options, const mpl_graph *g, mpl_record *row)
{
    char name[200];

    for (uint32_t i = 0; i < options->dim.n; i++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(options->dim.item[i], "="),
                 options->dim.item[i]);
        mpl_record_member_int(row, MPL_FIELD_dims, name,
                              strtoull(strchr(options->dim.item[i], '=') + 1, NULL, 10));
    }
    for (uint32_t i = 0; g != NULL && i < g->n_bound; i++)
        mpl_record_member_text(row, MPL_FIELD_dims, g->bound_input[i], "bound");
}

/* Writes the options of the problem. */
static void put_options(const mpl_options *options, const mpl_job *job, mpl_record *row)
{
    const mpl_graph *g = job->source.graph;
    bool ordered = g != NULL || options->opener != NULL; /* one graph, or several as one list */
    char name[200];

    mpl_record_text(row, MPL_FIELD_safety, job->safety.text);
    if (job->streams != NULL) {
        mpl_record_int(row, MPL_FIELD_simulated_ns, job->simulated_ns);
        mpl_record_text(row, MPL_FIELD_simulated_by, "work");
    }
    put_order(options, job, ordered, row);
    mpl_record_bool(row, MPL_FIELD_in_place, options->in_place);
    mpl_record_bool(row, MPL_FIELD_views, options->views);
    mpl_record_text(row, MPL_FIELD_concat,
                    !ordered         ? NULL
                    : options->views ? mpl_word_text[options->concat]
                                     : "copy");
    mpl_record_text(row, MPL_FIELD_loop,
                    (g != NULL && mpl_graph_has_loop(g)) || options->opener != NULL
                        ? mpl_word_text[options->loop]
                        : NULL);
    if (strcmp(options->unroll, "none") != 0) {
        mpl_record_text(row, MPL_FIELD_unroll, options->unroll);
        mpl_record_int(row, MPL_FIELD_unroll_bodies, job->unrolled.bodies);
    }
    mpl_record_text(row, MPL_FIELD_ssa, job->is_program ? mpl_word_text[options->ssa] : NULL);
    mpl_record_text(row, MPL_FIELD_optimise,
                    ordered && strcmp(options->optimise, "none") != 0 ? options->optimise : NULL);
    put_changed(options, job, row);
    mpl_record_text(row, MPL_FIELD_loss, options->loss);
    mpl_record_text(row, MPL_FIELD_trainable, options->trainable);
    put_recomputed(options, job, row);
    mpl_tile_fields(options->tile, &job->tiled, row);
    put_layout(options, job, ordered, row);
    put_dims(options, g, row);
    if (options->given[MPL_OPT_capacity])
        mpl_record_int(row, MPL_FIELD_capacity, options->capacity);
    put_constraints(options, row);
    mpl_record_text(row, MPL_FIELD_gap, options->gap);
    if (options->budget <= INT64_MAX)
        mpl_record_int(row, MPL_FIELD_budget, options->budget);
    if (options->threads > 0)
        mpl_record_int(row, MPL_FIELD_threads, options->threads);
    if (options->given[MPL_OPT_workers])
        mpl_record_int(row, MPL_FIELD_workers, options->workers);
    mpl_record_text(row, MPL_FIELD_workspaces,
                    job->backend != NULL ? mpl_word_text[options->workspaces] : NULL);
    if (job->backend != NULL && strcmp(options->algorithms, "fastest") != 0)
        mpl_record_text(row, MPL_FIELD_algorithms, options->algorithms);
    if (options->compare == MPL_compare_malloc)
        mpl_record_text(row, MPL_FIELD_malloc_by, mpl_malloc_by(name, sizeof name));
    if (ordered) {
        mpl_row_words(row, MPL_FIELD_pinned, MPL_OPT_pin, options->pin);
        mpl_row_words(row, MPL_FIELD_own_pools, MPL_OPT_pools, options->pools);
    }
}

void mpl_row_problem(const mpl_job *job, const mpl_planner_spec *spec, mpl_record *row)
{
    const mpl_problem *p = job->problem;
    char hash[17];

    if (p == NULL)
        return;
    snprintf(hash, sizeof hash, "%016" PRIx64, mpl_problem_hash(p));
    mpl_record_text(row, MPL_FIELD_problem_hash, hash);
    if (spec != NULL && (p->gap_begin != NULL || p->inside != NULL))
        mpl_record_text(row, MPL_FIELD_lifetimes,
                        mpl_planner_sees_hull(spec->planner, p) ? "hull" : "exact");
}

mpl_status mpl_job_row(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                       const mpl_planner_spec *spec, mpl_record **out)
{
    mpl_record *row = NULL;
    char hash[17];

    MPL_PASS(mpl_record_new(ctx, &row));
    mpl_row_build(&job->machine, row);
    mpl_record_text(row, MPL_FIELD_status, "ok");
    mpl_record_text(row, MPL_FIELD_graph, job->text);
    snprintf(hash, sizeof hash, "%016" PRIx64, job->graph_hash);
    if (job->source.graph != NULL || job->source.problem != NULL)
        mpl_record_text(row, MPL_FIELD_graph_hash, hash);
    mpl_row_problem(job, spec, row);
    put_options(options, job, row);
    mpl_record_int(row, MPL_FIELD_seed, options->seed);
    if (job->backend != NULL) {
        mpl_record_text(row, MPL_FIELD_backend, job->backend->name);
        mpl_record_text(row, MPL_FIELD_device, job->backend->about);
    }
    if (spec != NULL) {
        mpl_record_text(row, MPL_FIELD_planner, spec->planner->name);
        if (spec->foreign != NULL)
            mpl_record_member_text(row, MPL_FIELD_params, spec->foreign->kind,
                                   spec->foreign->target);
        for (uint32_t i = 0; i < spec->params.key.n; i++)
            mpl_record_member_text(row, MPL_FIELD_params, spec->params.key.item[i],
                                   spec->params.value.item[i]);
    }
    *out = row;
    return MPL_OK;
}

const char *mpl_proof_absence(const mpl_plan *plan)
{
    return plan->refutation.absent != NULL ? plan->refutation.absent : "the planner writes none";
}

static void put_proof(const mpl_plan *plan, mpl_record *row)
{
    char text[100];

    snprintf(text, sizeof text, "none: %s", mpl_proof_absence(plan));
    if (plan->refutation.steps != NULL)
        mpl_record_text(row, MPL_FIELD_proof, "refutation");
    else if (plan->n_witness > 0)
        mpl_record_text(row, MPL_FIELD_proof, "clique");
    else if (plan->bound_bytes > 0)
        mpl_record_text(row, MPL_FIELD_proof, text);
    else
        mpl_record_null(row, MPL_FIELD_proof);
}

mpl_status mpl_job_plan_fields(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                               mpl_record *row)
{
    uint64_t packed;
    bool searched = plan->bound_bytes > job->bound_bytes;

    MPL_PASS(mpl_plan_packed(ctx, job->problem, plan, &packed));
    mpl_record_text(row, MPL_FIELD_claim, mpl_claim_name(plan->claim));
    mpl_record_int(row, MPL_FIELD_naive_bytes, job->naive_bytes);
    mpl_record_int(row, MPL_FIELD_planned_bytes, plan->peak_bytes);
    mpl_record_int(row, MPL_FIELD_packed_bytes, packed);
    mpl_record_int(row, MPL_FIELD_bound_bytes, searched ? plan->bound_bytes : job->bound_bytes);
    mpl_record_text(row, MPL_FIELD_bound_kind, searched ? "search" : job->bound_kind);
    put_proof(plan, row);
    mpl_record_null(row, MPL_FIELD_cost);
    mpl_record_null(row, MPL_FIELD_cost_bound);
    mpl_record_null(row, MPL_FIELD_pools);
    if (plan->spread.n > 0) { /* the sum over several memories says little, nor does its bound */
        mpl_record_int(row, MPL_FIELD_cost, plan->spread.cost);
        mpl_record_int(row, MPL_FIELD_cost_bound, plan->spread.cost_bound);
        mpl_record_null(row, MPL_FIELD_bound_bytes);
        mpl_record_null(row, MPL_FIELD_bound_kind);
    }
    for (uint32_t k = 0; k < plan->spread.n; k++) {
        char name[32];

        snprintf(name, sizeof name, "memory %u", k);
        mpl_record_item_bytes(row, MPL_FIELD_pools, name, plan->spread.bytes[k]);
    }
    for (uint32_t k = plan->spread.n > 0 ? 1 : 0; k < plan->n_pools; k++)
        mpl_record_item_bytes(row, MPL_FIELD_pools, job->problem->pool_name[k],
                              plan->pool_bytes[k]);
    mpl_record_bool(row, MPL_FIELD_verified, true);
    return MPL_OK;
}

const char *mpl_row_status(mpl_status st)
{
    static const char *const status[] = {"ok",      "crash",   "garbage",
                                         "timeout", "refused", "unavailable"};

    return status[st];
}

void mpl_row_fail(mpl_record *row, const char *status, const char *reason)
{
    static const mpl_field results[] = {
        MPL_FIELD_claim,           MPL_FIELD_naive_bytes,
        MPL_FIELD_planned_bytes,   MPL_FIELD_packed_bytes,
        MPL_FIELD_bound_bytes,     MPL_FIELD_bound_kind,
        MPL_FIELD_proof,           MPL_FIELD_cost,
        MPL_FIELD_cost_bound,      MPL_FIELD_pools,
        MPL_FIELD_verified,        MPL_FIELD_run_ns,
        MPL_FIELD_measured_bytes,  MPL_FIELD_rss_bytes,
        MPL_FIELD_holds,           MPL_FIELD_copied_bytes,
        MPL_FIELD_kernels,         MPL_FIELD_workspace_bytes,
        MPL_FIELD_reordered_bytes, MPL_FIELD_loop_carry_bytes,
        MPL_FIELD_plan_each_ns,    MPL_FIELD_self_ns,
        MPL_FIELD_replay_ns,       MPL_FIELD_device_memory,
        MPL_FIELD_clocks,          MPL_FIELD_implementations,
        MPL_FIELD_allocators,      MPL_FIELD_malloc_ns,
        MPL_FIELD_malloc_bytes,    MPL_FIELD_executed,
        MPL_FIELD_concurrent_ns,   MPL_FIELD_ops_ns,
    };

    mpl_record_text(row, MPL_FIELD_status, status);
    mpl_record_text(row, MPL_FIELD_reason, reason);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        mpl_record_null(row, results[i]);
}

void mpl_row_forget_origin(mpl_record *row)
{
    static const mpl_field origin[] = {MPL_FIELD_memplan, MPL_FIELD_machine, MPL_FIELD_device,
                                       MPL_FIELD_plan_ns, MPL_FIELD_self_ns, MPL_FIELD_order_ns};

    for (size_t i = 0; i < sizeof origin / sizeof *origin; i++)
        mpl_record_null(row, origin[i]);
}
