/* entries.c -- graphs over one memory as one problem, and their plan. See entries.h. */
#include "harness/entries/entries.h"

#include "graphs/core/size.h"
#include "graphs/core/text.h"
#include "planners/verify/verify.h"

#include <sys/stat.h>

void mpl_entries_fini(mpl_ctx *ctx, mpl_entries *entries)
{
    for (uint32_t i = 0; i < entries->n; i++) {
        mpl_entry *entry = &entries->entry[i];

        mpl_job_fini(ctx, &entry->job);
        mpl_held_free(ctx, entry->held);
        mpl_free_each(ctx, entry->name, entry->text, entry->state);
    }
    for (uint32_t s = 0; s < entries->n_states; s++)
        mpl_free(ctx, entries->state_name[s]);
    mpl_free_each(ctx, entries->entry, entries->state_name, entries->state_type,
                  entries->state_shape, entries->state_bytes);
    entries->entry = NULL, entries->state_name = NULL, entries->state_type = NULL,
    entries->state_shape = NULL;
    entries->state_bytes = NULL;
    entries->n = entries->n_states = 0;
}

void mpl_entries_free(mpl_ctx *ctx, mpl_entries *entries)
{
    if (entries == NULL)
        return;
    mpl_entries_fini(ctx, entries);
    mpl_free_each(ctx, entries->text, entries);
}

/* ---- which graphs ---- */

static mpl_status has_entries(mpl_ctx *ctx, const char *path, bool *has)
{
    mpl_text_entries text = {0};
    struct stat facts;

    *has = false;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return MPL_OK;
    MPL_PASS(mpl_text_entries_read(ctx, path, &text));
    *has = text.n_entries > 0;
    mpl_text_entries_fini(ctx, &text);
    return MPL_OK;
}

static mpl_status is_asked(mpl_ctx *ctx, const mpl_options *options, uint32_t n, bool *asked,
                           bool *is_text)
{
    for (uint32_t i = 0; i < n && !*is_text; i++) {
        MPL_PASS(has_entries(ctx, options->args.item[i], is_text));
        if (*is_text && (n > 1 || options->shared.n > 0))
            return MPL_REFUSE(ctx,
                              "%s: its entries and states are in the text; it stands alone, "
                              "without --shared",
                              options->args.item[i]);
    }
    *asked = *is_text || n > 1 || options->shared.n > 0;
    return MPL_OK;
}

/* The name of a graph: its file's without folder and ending, or its network's. */
static mpl_status name_entry(mpl_ctx *ctx, mpl_entries *entries, uint32_t i)
{
    const char *text = entries->entry[i].text, *slash = NULL, *dot;
    size_t n = strcspn(text, ":");
    char name[200];

    for (const char *at = text; at < text + n; at++)
        slash = *at == '/' ? at + 1 : slash;
    n -= slash != NULL ? (size_t)(slash - text) : 0;
    text = slash != NULL ? slash : text;
    dot = memrchr(text, '.', n);
    n = dot != NULL && dot > text ? (size_t)(dot - text) : n;
    snprintf(name, sizeof name, "%.*s", (int)mpl_min_u64(n, 150), text);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(entries->entry[k].name, name) == 0) {
            snprintf(name, sizeof name, "%.*s-%" PRIu32, (int)mpl_min_u64(n, 150), text, i + 1);
            break;
        }
    return mpl_copy_text(ctx, entries->entry[i].name, name);
}

static mpl_status name_texts(mpl_ctx *ctx, mpl_entries *entries)
{
    mpl_status st = MPL_OK;
    mpl_text_entries text = {0};

    if (entries->is_text)
        MPL_TRY(mpl_text_entries_read(ctx, entries->graph[0], &text));
    MPL_TRY(mpl_new(ctx, entries->entry, entries->is_text ? text.n_entries : entries->n_graphs));
    entries->n = entries->is_text ? text.n_entries : entries->n_graphs;
    for (uint32_t i = 0; i < entries->n; i++) {
        mpl_entry *entry = &entries->entry[i];

        if (!entries->is_text) {
            MPL_TRY(mpl_copy_text(ctx, entry->text, entries->graph[i]));
            MPL_TRY(name_entry(ctx, entries, i));
            continue;
        }
        MPL_TRY(mpl_copy_text(ctx, entry->name, text.entry[i]));
        MPL_TRY(mpl_new(ctx, entry->text, strlen(entries->graph[0]) + strlen(entry->name) + 8));
        sprintf(entry->text, "%s:entry=%s", entries->graph[0], entry->name);
    }
out:
    mpl_text_entries_fini(ctx, &text);
    return st;
}

/* ---- one entry's problem ---- */

static mpl_status read_entry(mpl_ctx *ctx, const mpl_options *options, mpl_entry *entry)
{
    MPL_PASS(mpl_job_read(ctx, options, entry->text, &entry->job));
    if (entry->job.source.graph == NULL)
        return MPL_REFUSE(ctx, "%s: a list of buffers has no inputs and outputs to share",
                          entry->text);
    return mpl_job_passes(ctx, options, &entry->job);
}

/* The order that was searched for, or the given one; its fallback goes. */
static mpl_status order_entry(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    MPL_PASS(mpl_job_order(ctx, options, job));
    if (job->given != NULL)
        mpl_free_each(ctx, job->given->order, job->given);
    job->given = NULL;
    return MPL_OK;
}

/* Decides what lies in states, in the problem of the order. */
static mpl_status hold(mpl_ctx *ctx, const mpl_options *options, uint32_t n, mpl_entry *entry,
                       bool *refused)
{
    const mpl_backend *backend;

    mpl_held_free(ctx, entry->held);
    entry->held = NULL;
    MPL_PASS(mpl_backend_by_option(ctx, options->backend, &backend));
    MPL_PASS(mpl_job_problem(ctx, options, backend, NULL, &entry->job));
    MPL_PASS(mpl_held_new(ctx, entry->job.source.graph, entry->job.order, entry->job.map, n,
                          entry->state, &entry->held));
    *refused = false;
    for (uint32_t s = 0; s < n; s++)
        *refused = *refused || entry->held->refused[s];
    return MPL_OK;
}

/* Appends copies of the outputs that cannot be made where their states lie. */
static mpl_status copy_refused(mpl_ctx *ctx, uint32_t n, mpl_entry *entry)
{
    mpl_job *job = &entry->job;
    uint32_t n_ops = job->source.graph->n_ops;

    for (uint32_t s = 0; s < n; s++)
        entry->state[s].copied = entry->held->refused[s];
    MPL_PASS(mpl_graph_keep_state(ctx, &job->source.graph, n, entry->state));
    MPL_PASS(mpl_realloc_bytes(ctx, (void **)&job->order, n_ops, job->source.graph->n_ops,
                               sizeof *job->order));
    for (mpl_op op = n_ops; op < job->source.graph->n_ops; op++)
        job->order[op] = op;
    job->graph_hash = mpl_graph_hash(job->source.graph);
    return MPL_OK;
}

static mpl_status prepare_entry(mpl_ctx *ctx, const mpl_options *options, uint32_t n,
                                mpl_entry *entry)
{
    bool refused;

    MPL_PASS(mpl_graph_keep_state(ctx, &entry->job.source.graph, n, entry->state));
    MPL_PASS(order_entry(ctx, options, &entry->job));
    MPL_PASS(hold(ctx, options, n, entry, &refused));
    if (refused) {
        MPL_PASS(copy_refused(ctx, n, entry));
        MPL_PASS(hold(ctx, options, n, entry, &refused));
    }
    for (uint32_t s = 0; s < n && refused; s++)
        if (entry->held->refused[s])
            return MPL_REFUSE(ctx,
                              "%s: what state '%s' holds is needed after it is written: an output "
                              "shows it, or states exchange their contents",
                              entry->name, entry->state[s].name);
    entry->job.held = entry->held->is_held;
    return mpl_job_problem_here(ctx, options, &entry->job);
}

/* ---- all of them ---- */

static mpl_status combine(mpl_ctx *ctx, const mpl_options *options, mpl_entries *entries,
                          mpl_problem **list)
{
    mpl_status st = MPL_OK;
    mpl_entry_part *part = NULL;
    mpl_problem_options po;

    MPL_TRY(mpl_new(ctx, part, entries->n));
    for (uint32_t i = 0; i < entries->n; i++)
        part[i] = (mpl_entry_part){entries->entry[i].name, entries->entry[i].job.problem,
                                   entries->entry[i].held, 0};
    MPL_TRY(mpl_job_problem_options(ctx, options, entries->entry[0].job.backend,
                                    &entries->entry[0].job, &po));
    MPL_TRY(mpl_problem_of_entries(ctx, entries->text, entries->n_states,
                                   (const char *const *)entries->state_name, entries->state_bytes,
                                   po.align, entries->n, part, list));
    for (uint32_t i = 0; i < entries->n; i++)
        entries->entry[i].first = part[i].first;
out:
    mpl_free(ctx, part);
    return st;
}

mpl_status mpl_entries_read(mpl_ctx *ctx, const mpl_options *options, mpl_entries *entries)
{
    mpl_options own = *options; /* of one graph */

    own.opener = NULL;
    mpl_entries_fini(ctx, entries);
    MPL_PASS(name_texts(ctx, entries));
    for (uint32_t i = 0; i < entries->n; i++)
        MPL_PASS(read_entry(ctx, &own, &entries->entry[i]));
    return mpl_entries_match(ctx, options, entries);
}

static mpl_status open_all(void *arg, mpl_ctx *ctx, const mpl_options *options, mpl_problem **list)
{
    mpl_entries *entries = arg;
    mpl_options own = *options; /* of one graph */

    own.opener = NULL;
    if (options->safety.kind != MPL_safety_serial)
        return MPL_REFUSE(ctx, "--safety %s: graphs over one memory are planned serially",
                          options->safety.text);
    MPL_PASS(mpl_entries_read(ctx, options, entries));
    for (uint32_t i = 0; i < entries->n; i++)
        MPL_PASS(prepare_entry(ctx, &own, entries->n_states, &entries->entry[i]));
    return combine(ctx, options, entries, list);
}

static mpl_status refuse_alone(mpl_ctx *ctx, const mpl_options *options)
{
    static const mpl_option_id alone[] = {MPL_OPT_changed, MPL_OPT_pools,  MPL_OPT_checked,
                                          MPL_OPT_expect,  MPL_OPT_dump,   MPL_OPT_iterations,
                                          MPL_OPT_compare, MPL_OPT_workers};
    char name[MPL_OPTION_TEXT];

    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        if (options->given[alone[i]])
            return MPL_REFUSE(ctx, "--%s is for one graph, not for several over one memory",
                              mpl_option_name(alone[i], name));
    return MPL_OK;
}

mpl_status mpl_entries_start(mpl_ctx *ctx, mpl_options *options, uint32_t n, const char **graph,
                             mpl_entries **out)
{
    mpl_status st = MPL_OK;
    mpl_entries *entries = NULL;
    bool asked = false, is_text = false;
    size_t length = 1;

    MPL_TRY(is_asked(ctx, options, n, &asked, &is_text));
    if (!asked)
        goto out;
    MPL_TRY(refuse_alone(ctx, options));
    MPL_TRY(mpl_new(ctx, entries, 1));
    entries->graph = options->args.item;
    entries->n_graphs = n;
    entries->is_text = is_text;
    for (uint32_t i = 0; i < n; i++)
        length += strlen(entries->graph[i]) + 1;
    MPL_TRY(mpl_new(ctx, entries->text, length));
    for (uint32_t i = 0; i < n; i++)
        sprintf(entries->text + strlen(entries->text), "%s%s", i > 0 ? " " : "", entries->graph[i]);
    entries->opener = (mpl_opener){open_all, entries};
    options->opener = &entries->opener;
    *graph = entries->text;
    *out = entries, entries = NULL;
out:
    mpl_entries_free(ctx, entries);
    return st;
}

/* ---- the plan ---- */

mpl_status mpl_entries_slice(mpl_ctx *ctx, const mpl_entries *entries, uint32_t i,
                             const mpl_plan *plan, mpl_plan **out)
{
    mpl_status st = MPL_OK;
    const mpl_entry *entry = &entries->entry[i];
    mpl_plan *slice = NULL;

    if (plan->spread.n > 0)
        MPL_FAIL(ctx, MPL_EINPUT, "graphs over one memory: a plan over several memories is none");
    MPL_TRY(mpl_plan_new(ctx, entry->job.problem, &slice));
    memcpy(slice->offset, plan->offset + entry->first, slice->n * sizeof *slice->offset);
    slice->claim = MPL_FEASIBLE;
    MPL_TRY(
        mpl_verify_all(ctx, entry->job.source.graph, entry->job.map, entry->job.problem, slice));
    *out = slice, slice = NULL;
out:
    mpl_plan_free(ctx, slice);
    return st;
}

mpl_status mpl_entries_places(mpl_ctx *ctx, const mpl_entries *entries, uint32_t i,
                              const mpl_plan *plan, uint64_t **held_at)
{
    const mpl_entry *entry = &entries->entry[i];
    uint32_t n = entry->job.source.graph->n_values;

    MPL_PASS(mpl_new(ctx, *held_at, n));
    for (mpl_value v = 0; v < n; v++)
        (*held_at)[v] = entry->held->is_held[v] ? plan->offset[entry->held->state[v]] : UINT64_MAX;
    return MPL_OK;
}

mpl_status mpl_entries_verify(mpl_ctx *ctx, const mpl_entries *entries, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    mpl_called called = {0};
    mpl_plan *slice = NULL;
    uint64_t *held_at = NULL;
    mpl_value *before = NULL, *after = NULL;
    mpl_states_at states = {entries->n_states, (const char *const *)entries->state_name,
                            plan->offset, entries->state_bytes, plan->peak_bytes};

    MPL_TRY(mpl_new_each(ctx, entries->n_states, before, after));
    for (uint32_t i = 0; i < entries->n; i++) {
        const mpl_entry *entry = &entries->entry[i];

        MPL_TRY(mpl_entries_slice(ctx, entries, i, plan, &slice));
        MPL_TRY(mpl_entries_places(ctx, entries, i, plan, &held_at));
        for (uint32_t s = 0; s < entries->n_states; s++) {
            before[s] = entry->state[s].before;
            after[s] = entry->state[s].after;
        }
        called = (mpl_called){entry->name,    entry->job.source.graph,
                              entry->job.map, entry->job.problem,
                              slice,          before,
                              after,          held_at};
        MPL_TRY(mpl_verify_calls(ctx, &states, 1, &called));
        mpl_plan_free(ctx, slice);
        mpl_free(ctx, held_at);
        slice = NULL, held_at = NULL;
    }
out:
    mpl_plan_free(ctx, slice);
    mpl_free_each(ctx, held_at, before, after);
    return st;
}

/* ---- what is said of it ---- */

static uint64_t sum_states(const mpl_entries *entries)
{
    uint64_t sum = 0;

    for (uint32_t s = 0; s < entries->n_states; s++)
        sum += entries->state_bytes[s];
    return sum;
}

static uint64_t sum_copied(const mpl_entry *entry, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t s = 0; s < n; s++)
        sum += entry->state[s].copied_bytes;
    return sum;
}

static void put_fields(const mpl_options *options, const mpl_entries *entries, mpl_record *row)
{
    char text[4000] = "";
    uint64_t copied = 0;

    mpl_record_text(row, MPL_FIELD_graph, entries->text);
    for (uint32_t i = 0; i < options->shared.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "," : "",
                 options->shared.item[i]);
    if (mpl_record_is_null(row, MPL_FIELD_shared_state)) /* options may point into the row of a plan
                                                          * file
                                                          */
        mpl_record_text(row, MPL_FIELD_shared_state, text[0] != '\0' ? text : NULL);
    mpl_record_null(row, MPL_FIELD_entries);
    for (uint32_t i = 0; i < entries->n; i++) {
        mpl_record_item_bytes(row, MPL_FIELD_entries, entries->entry[i].name,
                              entries->entry[i].job.bound_bytes);
        copied += sum_copied(&entries->entry[i], entries->n_states);
    }
    mpl_record_int(row, MPL_FIELD_state_bytes, sum_states(entries));
    mpl_record_int(row, MPL_FIELD_state_copied_bytes, copied);
}

mpl_status mpl_entries_finish(mpl_ctx *ctx, const mpl_options *options, const mpl_entries *entries,
                              mpl_made *made)
{
    MPL_PASS(mpl_entries_verify(ctx, entries, made->plan));
    put_fields(options, entries, made->row);
    return MPL_OK;
}

void mpl_entries_print(const mpl_entries *entries)
{
    printf("state    %12" PRIu64 " bytes  %14s  %" PRIu32 " shared by %" PRIu32 " graphs\n",
           sum_states(entries), mpl_sized(sum_states(entries)).text, entries->n_states, entries->n);
    for (uint32_t i = 0; i < entries->n; i++) {
        const mpl_entry *entry = &entries->entry[i];
        uint64_t copied = sum_copied(entry, entries->n_states);

        printf("entry    %12" PRIu64 " bytes  %14s  at once beside the state: %s",
               entry->job.bound_bytes, mpl_sized(entry->job.bound_bytes).text,
               mpl_shown(entry->name));
        if (copied > 0)
            printf("; %" PRIu64 " bytes of state copied a call", copied);
        printf("\n");
    }
}
