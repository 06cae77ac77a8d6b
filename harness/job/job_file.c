/* job_file.c -- writes plan files, opens them and checks them against GRAPH. See job.h. */
#include "harness/job/job.h"

#include "graphs/core/file.h"

#include "planners/plan/plan_bindings.h"

/* ---- writing ---- */

mpl_status mpl_job_add_members(mpl_ctx *ctx, const mpl_job *job, char **fields_json)
{
    const mpl_graph *g = job->source.graph;

    MPL_PASS(mpl_plan_add_bindings(ctx, g, job->map, fields_json));
    if (g != NULL)
        MPL_PASS(mpl_plan_add_choices(ctx, g->n_ops, &job->choices, fields_json));
    if (job->map != NULL && job->map->op_stream != NULL)
        MPL_PASS(mpl_plan_add_streams(ctx, job->streams, fields_json));
    return MPL_OK;
}

mpl_status mpl_job_write_plan(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                              const char *row_json, const char *path)
{
    mpl_status st = MPL_OK;
    char *fields = NULL;

    MPL_TRY(mpl_copy_text(ctx, fields, row_json));
    MPL_TRY(mpl_job_add_members(ctx, job, &fields));
    MPL_TRY(mpl_plan_write(ctx, path, job->problem, plan, fields));
out:
    mpl_free(ctx, fields);
    return st;
}

/* ---- reading ---- */

bool mpl_plan_of_kind(mpl_ctx *ctx, const char *path, const char *kind)
{
    char *text = NULL, mark[64];
    size_t n = 0;
    bool found = false;

    snprintf(mark, sizeof mark, "\"kind\":\"%s\"", kind);
    if (mpl_file_read(ctx, path, &text, &n) == MPL_OK)
        found = memmem(text, n < 4096 ? n : 4096, mark, strlen(mark)) != NULL;
    mpl_free(ctx, text);
    return found;
}

/* Adopts the words of a SET listed in a row. */
static void adopt_set(mpl_options *options, mpl_option_id id, const mpl_record *row,
                      mpl_field field, uint32_t *set)
{
    mpl_word word;

    for (uint32_t k = 0; !options->given[id] && (word = mpl_option_word(id, k)) < MPL_N_WORDS; k++)
        *set = (*set & ~(1u << k)) |
               (mpl_record_has_item(row, field, mpl_word_text[word]) ? 1u << k : 0);
}

mpl_status mpl_job_adopt(mpl_ctx *ctx, mpl_options *options, bool in_place, const mpl_record *row)
{
    static const struct {
        mpl_option_id option;
        mpl_field field;
    } texts[] = {
#define SAME(id) {MPL_OPT_##id, MPL_FIELD_##id}
        SAME(safety),     SAME(order),     SAME(concat),
        SAME(loop),       SAME(unroll),    SAME(ssa),
        SAME(optimise),   SAME(changed),   SAME(recompute),
        SAME(layout),     SAME(tile),      SAME(workspaces),
        SAME(algorithms), SAME(op_times),  SAME(backend),
        SAME(loss),       SAME(trainable), {MPL_OPT_shared, MPL_FIELD_shared_state},
#undef SAME
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        MPL_PASS(mpl_options_adopt(ctx, texts[i].option, mpl_record_get_text(row, texts[i].field),
                                   options));
    /* The plan is of the given order and not of the searched one, or the file has its order. */
    if (!options->given[MPL_OPT_order] && (mpl_record_is(row, MPL_FIELD_order_kept, "given") ||
                                           mpl_record_is(row, MPL_FIELD_order, MPL_ORDER_LEAST)))
        options->order = "given";
    if (!options->given[MPL_OPT_in_place])
        options->in_place = in_place;
    if (!options->given[MPL_OPT_seed]) /* seed of a random order */
        mpl_record_get_int(row, MPL_FIELD_seed, &options->seed);
    if (!options->given[MPL_OPT_views])
        mpl_record_get_bool(row, MPL_FIELD_views, &options->views);
    if (!options->given[MPL_OPT_capacity])
        options->given[MPL_OPT_capacity] =
            mpl_record_get_int(row, MPL_FIELD_capacity, &options->capacity);
    adopt_set(options, MPL_OPT_pin, row, MPL_FIELD_pinned, &options->pin);
    adopt_set(options, MPL_OPT_pools, row, MPL_FIELD_own_pools, &options->pools);
    return MPL_OK;
}

/* Takes the streams of the file, unless other ones are asked for. */
static mpl_status take_streams(mpl_ctx *ctx, const mpl_options *options, const char *path,
                               const mpl_plan_file *file, mpl_job *job)
{
    const mpl_safety *safety = &options->safety;

    if (options->given[MPL_OPT_safety] || safety->kind != MPL_safety_streams ||
        job->source.graph == NULL)
        return MPL_OK;
    MPL_PASS(mpl_plan_read_streams(ctx, path, file->fields_json, job->source.graph, &job->streams));
    if (job->streams == NULL) { /* one stream, and one for each unit, need not be told */
        MPL_PASS(mpl_job_streams(ctx, job));
        if (job->streams->n == 1 || job->streams->n >= job->streams->n_units)
            return MPL_OK;
    } else if (job->streams->n == safety->n_streams) {
        return MPL_OK;
    }
    return MPL_REFUSE(ctx, "%.200s: a plan of safety %s needs 'streams' of as many", path,
                      safety->text);
}

/* Takes the order and the choices of the file, if it has them and no order is asked for. */
static mpl_status order_as_chosen(mpl_ctx *ctx, const mpl_options *options, const char *path,
                                  const mpl_plan_file *file, mpl_job *job)
{
    mpl_plan_choices choices = {0};

    if (!options->given[MPL_OPT_order] && job->source.graph != NULL)
        MPL_PASS(mpl_plan_read_choices(ctx, path, file->fields_json, job->source.graph->n_ops,
                                       &choices));
    if (choices.order != NULL)
        mpl_job_order_chosen(&choices, job);
    else
        MPL_PASS(mpl_job_order(ctx, options, job));
    return MPL_OK;
}

/* The plan was asked to keep the fixed offsets and constraints in its file, which the job's problem
 * gets; a second call takes them back. */
static void swap_constraints(mpl_problem *file, mpl_job *job)
{
    mpl_problem *p = job->own_problem != NULL ? job->own_problem : job->source.problem;
    mpl_constraints *constraints = p->constraints;
    uint64_t *fixed = p->fixed;

    if (p->n != file->n || (p == job->source.problem && (fixed != NULL || constraints != NULL)))
        return;
    p->fixed = file->fixed, p->constraints = file->constraints;
    file->fixed = fixed, file->constraints = constraints;
}

static mpl_status open_again(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                             const char *path, const mpl_plan_file *file, mpl_job *job)
{
    mpl_job_fini(ctx, job);
    MPL_PASS(mpl_job_read(ctx, options, graph, job));
    MPL_PASS(mpl_job_passes(ctx, options, job));
    MPL_PASS(order_as_chosen(ctx, options, path, file, job));
    MPL_PASS(take_streams(ctx, options, path, file, job));
    return mpl_job_problem_here(ctx, options, job);
}

/* The freedoms of an earlier search say nothing about the claim that the plan is now judged by. */
static void forget_search(mpl_record *row)
{
    mpl_record_null(row, MPL_FIELD_free);
    mpl_record_null(row, MPL_FIELD_held);
    mpl_record_null(row, MPL_FIELD_waterfall);
}

mpl_status mpl_job_open_plan(mpl_ctx *ctx, mpl_options *options, const char *graph,
                             const char *path, mpl_plan_file *file, mpl_record **row, mpl_job *job)
{
    uint64_t hash;

    MPL_PASS(mpl_plan_read(ctx, path, file));
    hash = mpl_problem_hash(file->problem);
    if (file->fields_json == NULL)
        MPL_PASS(mpl_record_new(ctx, row));
    else
        MPL_PASS(mpl_record_read(ctx, path, file->fields_json, strlen(file->fields_json), row));
    if (file->fields_json != NULL)
        MPL_PASS(mpl_job_adopt(ctx, options, file->problem->n_in_place > 0, *row));
    forget_search(*row);
    MPL_PASS(open_again(ctx, options, graph, path, file, job));
    swap_constraints(file->problem, job);
    if (!options->in_place && !options->given[MPL_OPT_in_place] &&
        mpl_problem_hash(job->problem) != hash) {
        /* The file has no pairs left if all were decided, or none was possible. */
        options->in_place = true;
        swap_constraints(file->problem, job);
        MPL_PASS(open_again(ctx, options, graph, path, file, job));
        swap_constraints(file->problem, job);
    }
    if (mpl_problem_hash(job->problem) != hash)
        return MPL_REFUSE(ctx,
                          "%s: a plan for another problem: %" PRIu32 " buffers, hash %016" PRIx64
                          "; %s has %" PRIu32 ", %016" PRIx64,
                          path, file->problem->n, hash, graph, job->problem->n,
                          mpl_problem_hash(job->problem));
    return mpl_plan_check_bindings(ctx, path, file->fields_json, job->source.graph, job->map);
}
