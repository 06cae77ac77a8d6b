/* explain.c -- the plan, its highest point, and what would lower it, ranked. See explain.h. */
#include <stdlib.h>
#include <sys/mman.h>

#include "harness/cli/isolate.h"
#include "harness/explain/explain.h"

/* For working out what would lower the plan, unless --time-limit says: time of the processor, so
 * much and so much more for each operation, or buffer of a list, up to a limit; and an end by the
 * clock, on a busy machine. [s] */
static const double SECONDS = 0.7, SECONDS_EACH = 0.0015, MOST_SECONDS = 8, LATEST_SECONDS = 9.5;

const char *const mpl_advice_name[MPL_N_ADVICE] = {
#define KIND(name) #name,
    MPL_ADVICE_KINDS(KIND)
#undef KIND
};

/* ---- the present plan ---- */

/* Whether the file is one JSON object: a plan file. */
static bool is_plan_file(const char *path)
{
    FILE *f = fopen(path, "r");
    int c = EOF;

    while (f != NULL && (c = fgetc(f)) != EOF && strchr(" \t\r\n", c) != NULL)
        ;
    if (f != NULL)
        fclose(f);
    return c == '{';
}

/* A plan file whose GRAPH cannot be opened: its own problem, without operations. */
static mpl_status take_plan_alone(mpl_ctx *ctx, mpl_options *options, const char *path,
                                  mpl_made *made)
{
    mpl_status st = MPL_OK;
    mpl_plan_file file = {0};
    mpl_job *job = &made->job;

    mpl_made_fini(ctx, made);
    MPL_TRY(mpl_plan_read(ctx, path, &file));
    *job = (mpl_job){.text = path, .source = {.problem = file.problem}};
    options->in_place = true;
    options->given[MPL_OPT_capacity] = false;
    job->safety = mpl_list_safety(file.problem);
    file.problem = NULL;
    MPL_TRY(mpl_job_problem(ctx, options, NULL, NULL, job));
    MPL_TRY(mpl_job_verify_file(ctx, job, file.plan));
    if (file.fields_json != NULL)
        MPL_TRY(mpl_record_read(ctx, path, file.fields_json, strlen(file.fields_json), &made->row));
    else
        MPL_TRY(mpl_job_row(ctx, options, job, NULL, &made->row));
    MPL_TRY(mpl_job_plan_fields(ctx, job, file.plan, made->row));
    made->plan = file.plan, file.plan = NULL;
out:
    mpl_plan_file_fini(ctx, &file);
    return st;
}

/* Keeps the GRAPH that a plan file names; NULL: it names none. */
static mpl_status named_graph(mpl_ctx *ctx, const char *path, char **graph)
{
    mpl_status st = MPL_OK;
    mpl_plan_file file = {0};
    mpl_record *row = NULL;
    const char *name;

    MPL_TRY(mpl_plan_read(ctx, path, &file));
    if (file.fields_json == NULL)
        goto out;
    MPL_TRY(mpl_record_read(ctx, path, file.fields_json, strlen(file.fields_json), &row));
    if ((name = mpl_record_get_text(row, MPL_FIELD_graph)) != NULL)
        MPL_TRY(mpl_copy_text(ctx, *graph, name));
out:
    mpl_record_free(ctx, row);
    mpl_plan_file_fini(ctx, &file);
    return st;
}

/* Whether what a plan file names cannot be opened here, so that only its own problem is known. */
static bool is_absent(mpl_status st)
{
    return st == MPL_EINPUT || st == MPL_EUNAVAIL;
}

/* Takes the plan of a plan file, of the graph that it names where that can be opened. */
static mpl_status take_plan(mpl_ctx *ctx, mpl_options *options, const char *path,
                            mpl_explained *out)
{
    mpl_status st = MPL_OK;
    mpl_options asked = *options;

    if (options->plan != NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "explain: %.200s is a plan; --plan FILE is for a GRAPH", path);
    MPL_TRY(named_graph(ctx, path, &out->named));
    options->plan = path;
    snprintf(out->why, sizeof out->why, "the plan names no graph");
    if (out->named != NULL) {
        st = mpl_make(ctx, options, out->named, MPL_TO_PLAN, &out->made);
        if (!is_absent(st)) {
            out->graph = st == MPL_OK ? out->named : NULL;
            goto out;
        }
        snprintf(out->why, sizeof out->why, "%s", ctx->message);
    }
    *options = asked; /* nothing is adopted from the row that is freed now */
    MPL_TRY(take_plan_alone(ctx, options, path, &out->made));
out:
    return st;
}

/* Spells the planner of a plan file's row, if it is one of ours. */
static mpl_status spell_planner(mpl_ctx *ctx, const mpl_record *row, char **out)
{
    const char *name = mpl_record_get_text(row, MPL_FIELD_planner), *key, *value;
    char text[500];
    int n;

    if (name == NULL || mpl_planner_find(name) == NULL)
        return MPL_OK;
    n = snprintf(text, sizeof text, "%s", name);
    for (uint32_t i = 0; mpl_record_member(row, MPL_FIELD_params, i, &key, &value); i++)
        if (value != NULL && n < (int)sizeof text)
            n += snprintf(text + n, sizeof text - (size_t)n, "%c%s=%s", i == 0 ? ':' : ',', key,
                          value);
    if (n < (int)sizeof text)
        MPL_PASS(mpl_copy_text(ctx, *out, text));
    return MPL_OK;
}

/* The options that give the present plan, for `memplan plan`. */
static mpl_status settle_options(mpl_ctx *ctx, const mpl_options *options, mpl_explained *out)
{
    out->present = *options;
    out->present.plan = NULL;
    out->present.given[MPL_OPT_time_limit] = false;
    out->present.watch = NULL;
    out->present.result = NULL;
    if (options->plan != NULL) {
        MPL_PASS(spell_planner(ctx, out->made.row, &out->planner));
        out->present.planner = out->planner;
    }
    return MPL_OK;
}

static mpl_status take_present(mpl_ctx *ctx, mpl_options *options, mpl_explained *out)
{
    mpl_status st = MPL_OK;
    const char *text = options->args.item[0];
    bool limited = options->given[MPL_OPT_time_limit];

    options->given[MPL_OPT_time_limit] = false; /* the plan itself is the one of `memplan plan` */
    if (is_plan_file(text)) {
        MPL_TRY(take_plan(ctx, options, text, out));
    } else {
        MPL_TRY(mpl_make(ctx, options, text, MPL_TO_PLAN, &out->made));
        out->graph = text;
    }
    MPL_TRY(settle_options(ctx, options, out));
out:
    options->given[MPL_OPT_time_limit] = limited;
    return st;
}

/* ---- what it is made of ---- */

static mpl_status find_state(mpl_ctx *ctx, mpl_explained *out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = out->made.job.source.graph;
    uint8_t *part = NULL;

    if (g == NULL)
        goto out;
    MPL_TRY(mpl_new(ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++)
        if (part[v] == MPL_PART_STATE && out->made.job.map->value_buffer[v] == MPL_NONE &&
            out->made.job.map->value_root[v] == v)
            out->state_bytes += g->value_bytes[v];
out:
    mpl_free(ctx, part);
    return st;
}

static mpl_status find_parts(mpl_ctx *ctx, mpl_explained *out)
{
    const mpl_job *job = &out->made.job;
    const mpl_plan *plan = out->made.plan;

    MPL_PASS(mpl_keepers_new(ctx, job, &out->keeper));
    out->n_first = plan->spread.n > 0 ? plan->spread.n : 1;
    MPL_PASS(mpl_new(ctx, out->highest, mpl_plan_n_arenas(plan)));
    for (; out->n_arenas < mpl_plan_n_arenas(plan); out->n_arenas++)
        MPL_PASS(mpl_highest_find(ctx, job, plan, out->n_arenas, &out->highest[out->n_arenas]));
    MPL_PASS(mpl_height_find(ctx, job, plan, &out->highest[0], &out->height));
    return find_state(ctx, out);
}

/* ---- what would lower it ---- */

static mpl_status work_out(mpl_ctx *ctx, const mpl_trial_limit *limit, bool boxes,
                           mpl_explained *out)
{
    MPL_PASS(mpl_changes_list(ctx, &out->present, &out->made.job, out->made.plan, &out->changes));
    out->trial_bytes = (out->changes.n + (size_t)1) * sizeof *out->trial;
    out->box_bytes = boxes ? out->changes.n * sizeof *out->box * MPL_AFTER_MOST + 1 : 0;
    if ((out->trial = mpl_share(out->trial_bytes)) == NULL ||
        (boxes && (out->box = mpl_share(out->box_bytes)) == NULL))
        return MPL_ERROR(ctx, MPL_EMEM, "out of memory to share with a process");
    MPL_PASS(mpl_changes_try(ctx, &out->changes, limit, out->trial, out->box));
    for (uint32_t i = 0; i < out->changes.n; i++)
        if (out->trial[i].state == MPL_TRIAL_OPEN)
            out->missing[out->changes.change[i].kind] = true;
    return MPL_OK;
}

/* Whether another change of the kind gives the same bytes and is tried before. */
static bool is_repeated(const mpl_explained *explained, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (explained->changes.change[k].kind == explained->changes.change[i].kind &&
            explained->trial[k].state == MPL_TRIAL_PLANNED &&
            explained->trial[k].planned_bytes == explained->trial[i].planned_bytes)
            return true;
    return false;
}

/* Lower first; ties by the change. */
static int lower_first(const void *x, const void *y)
{
    const mpl_advice *advice = x, *b = y;

    return advice->planned_bytes != b->planned_bytes
               ? (advice->planned_bytes > b->planned_bytes) -
                     (advice->planned_bytes < b->planned_bytes)
               : (advice->trial > b->trial) - (advice->trial < b->trial);
}

static mpl_status command_of(mpl_ctx *ctx, const mpl_explained *explained, uint32_t i, char **out)
{
    const mpl_change *change = &explained->changes.change[i];

    return mpl_command_line(ctx, change->command, change->graph, &change->options, out);
}

static mpl_status rank(mpl_ctx *ctx, mpl_explained *explained)
{
    MPL_PASS(mpl_new(ctx, explained->advice, explained->changes.n));
    for (uint32_t i = 0; i < explained->changes.n; i++) {
        const mpl_trial *trial = &explained->trial[i];

        if (trial->state != MPL_TRIAL_PLANNED ||
            trial->planned_bytes >= explained->made.plan->peak_bytes || is_repeated(explained, i))
            continue;
        explained->advice[explained->n_advice] =
            (mpl_advice){.kind = explained->changes.change[i].kind,
                         .trial = i,
                         .planned_bytes = trial->planned_bytes,
                         .pinned_bytes = trial->pinned_bytes,
                         .what = trial->what};
        MPL_PASS(command_of(ctx, explained, i, &explained->advice[explained->n_advice++].command));
    }
    qsort(explained->advice, explained->n_advice, sizeof *explained->advice, lower_first);
    return MPL_OK;
}

/* The lowest plan of one kind, of all that were tried. */
static mpl_status find_price(mpl_ctx *ctx, const mpl_explained *explained, mpl_advice_kind kind,
                             mpl_price *out)
{
    uint32_t best = explained->changes.n;

    for (uint32_t i = 0; i < explained->changes.n; i++)
        if (explained->changes.change[i].kind == kind &&
            explained->trial[i].state == MPL_TRIAL_PLANNED &&
            (best == explained->changes.n ||
             explained->trial[i].planned_bytes < explained->trial[best].planned_bytes))
            best = i;
    if (best == explained->changes.n)
        return MPL_OK;
    MPL_PASS(command_of(ctx, explained, best, &out->command));
    out->planned_bytes = explained->trial[best].planned_bytes;
    out->known = true;
    return MPL_OK;
}

static mpl_trial_limit limit_of(const mpl_options *options, const mpl_made *made, int64_t begin)
{
    const mpl_graph *g = made->job.source.graph;
    double seconds = SECONDS + SECONDS_EACH * (g != NULL ? g->n_ops : made->job.problem->n);
    int64_t asked = mpl_seconds_ns(options->time_limit);

    if (options->given[MPL_OPT_time_limit])
        return (mpl_trial_limit){begin + asked, asked};
    return (mpl_trial_limit){begin + mpl_seconds_ns(LATEST_SECONDS),
                             mpl_seconds_ns(seconds < MOST_SECONDS ? seconds : MOST_SECONDS)};
}

mpl_status mpl_explain(mpl_ctx *ctx, mpl_options *options, bool boxes, mpl_explained *out)
{
    int64_t begin = mpl_clock_ns();
    mpl_trial_limit limit;

    MPL_PASS(take_present(ctx, options, out));
    limit = limit_of(options, &out->made, begin);
    MPL_PASS(find_parts(ctx, out));
    if (out->graph == NULL)
        return MPL_OK;
    MPL_PASS(work_out(ctx, &limit, boxes, out));
    MPL_PASS(rank(ctx, out));
    MPL_PASS(find_price(ctx, out, MPL_ADVICE_safety, &out->safety));
    return find_price(ctx, out, MPL_ADVICE_order, &out->order);
}

void mpl_explained_fini(mpl_ctx *ctx, mpl_explained *explained)
{
    for (uint32_t i = 0; i < explained->n_advice; i++)
        mpl_free(ctx, explained->advice[i].command);
    mpl_free_each(ctx, explained->advice, explained->safety.command, explained->order.command);
    mpl_changes_fini(ctx, &explained->changes);
    if (explained->trial != NULL)
        munmap(explained->trial, explained->trial_bytes);
    if (explained->box != NULL)
        munmap(explained->box, explained->box_bytes);
    mpl_free(ctx, explained->height.buffer);
    for (uint32_t k = 0; k < explained->n_arenas; k++)
        mpl_highest_fini(ctx, &explained->highest[k]);
    mpl_free_each(ctx, explained->highest, explained->keeper, explained->planner);
    mpl_made_fini(ctx, &explained->made);
    mpl_free(ctx, explained->named);
    *explained = (mpl_explained){0};
}
