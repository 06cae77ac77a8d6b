/* changes.c -- the changes of options that may lower a plan. See explain.h. */
#include <stdlib.h>

#include "harness/explain/explain.h"

/* Options to set, one to five; a later row of a kind is tried after an earlier one. */
typedef struct row {
    mpl_advice_kind kind;
    bool list;    /* also of a list of buffers */
    uint8_t late; /* of mpl_change */
    mpl_option_id id;
    const char *value;
    const char *in_place, *views, *order, *planner; /* NULL: as they are */
} row;

#define ONE(kind, list, late, id, value)                                                           \
    {                                                                                              \
        MPL_ADVICE_##kind, list, late, MPL_OPT_##id, value, NULL, NULL, NULL, NULL                 \
    }

static const row rows[] = {
    ONE(safety, true, 0, safety, "serial"),
    ONE(sharing, false, 0, views, "on"),
    ONE(sharing, true, 0, in_place, "on"),
    ONE(sharing, false, 0, concat, "auto"),
    ONE(sharing, false, 0, concat, "share"),
    ONE(sharing, false, 0, loop, "view"),
    ONE(sharing, false, 0, ssa, "full"),
    ONE(sharing, false, 0, rnn, "while"),
    {MPL_ADVICE_sharing, false, 0, MPL_OPT_concat, "auto", "on", "on", NULL, NULL},
    {MPL_ADVICE_sharing, false, 0, MPL_OPT_concat, "share", "on", "on", NULL, NULL},
    ONE(order, false, 0, order, "given"),
    ONE(order, false, 0, order, "dfs"),
    ONE(order, false, 0, order, "bfs"),
    ONE(order, false, 0, order, "greedy"),
    ONE(pin, false, 0, pin, "weights,inputs,outputs"),
    ONE(pin, false, 0, pin, "weights,outputs"),
    ONE(pin, false, 0, pin, "weights,inputs"),
    ONE(pin, false, 0, pin, "weights"),
    ONE(workspaces, false, 0, workspaces, "pool"),
    ONE(workspaces, false, 0, algorithms, "least"),
    ONE(layout, false, 0, layout, "auto"),
    ONE(layout, false, 0, layout, "plain"),
    ONE(order, false, 1, order, "least_peak"),
    ONE(recompute, false, 1, recompute, "sqrt"),
    ONE(recompute, false, 1, recompute, "revolve"),
    ONE(safety, true, 1, safety, "parallel"), /* for its price: what it asks for more */
    ONE(order, false, 1, order, "joint"),
    {MPL_ADVICE_together, false, 2, MPL_OPT_concat, "auto", "on", "on", "least_peak", "portfolio"},
    {MPL_ADVICE_together, false, 2, MPL_OPT_optimise, "all", "on", "on", "least_peak", "portfolio"},
    ONE(recompute, false, 1, recompute, "budget:90%"),
    ONE(recompute, false, 1, recompute, "budget:75%"),
    ONE(recompute, false, 1, recompute, "budget:50%"),
    ONE(recompute, false, 1, recompute, "pebble"),
    ONE(recompute, false, 1, recompute, "round:75%"),
    ONE(recompute, false, 1, recompute, "round:50%"),
    ONE(pin, false, 1, pin, "inputs,outputs"),
    ONE(pin, false, 1, pin, "outputs"),
    ONE(pin, false, 1, pin, "inputs"),
    ONE(pin, false, 1, pin, "none"),
};

/* Planners worth a try where a plan is not known to be the lowest. */
static const char *const quick_planners[] = {"greedy_size", "best_fit", "first_fit", "nnc_arena"};
static const char *const slow_planners[] = {"portfolio", "local_search", "beam", "hill_climb"};

enum { LATEST = 3 };      /* of mpl_change.late */
enum { HALVES = 4 };      /* of the batch that are tried */
enum { PIN_WEIGHTS = 1 }; /* the first word of --pin */

/* The options that are common to all changes of one list. */
typedef struct lister {
    mpl_ctx *ctx;
    const mpl_options *present;
    const mpl_job *job;
    mpl_changes *to;
} lister;

/* Adds an unchanged copy of the present options. */
static mpl_status begin(lister *self, mpl_advice_kind kind, uint8_t late, mpl_change **out)
{
    mpl_changes *to = self->to;

    MPL_PASS(mpl_reserve(self->ctx, to->change, to->cap, (size_t)to->n + 1));
    *out = &to->change[to->n++];
    **out = (mpl_change){.kind = kind,
                         .command = MPL_CMD_plan,
                         .late = late,
                         .options = *self->present,
                         .graph = self->job->text,
                         .pass = MPL_N_PASSES};
    return MPL_OK;
}

/* Sets an option, which the command line may have given. */
static mpl_status set(lister *self, mpl_change *change, mpl_option_id id, const char *value)
{
    if (value == NULL)
        return MPL_OK;
    change->options.given[id] = false;
    return mpl_options_default(self->ctx, MPL_CMD_plan, mpl_option_table[id].name, value,
                               &change->options);
}

/* Drops the last change if it is what the present options say, or plans weights that are pinned:
 * these need memory all the time. */
static mpl_status drop_vain(lister *self)
{
    mpl_status st = MPL_OK;
    const mpl_change *change = &self->to->change[self->to->n - 1];
    char *now = NULL, *then = NULL;

    MPL_TRY(mpl_command_line(self->ctx, MPL_CMD_plan, self->job->text, self->present, &now));
    MPL_TRY(mpl_command_line(self->ctx, change->command, change->graph, &change->options, &then));
    if (strcmp(now, then) == 0 || (self->present->pin & ~change->options.pin & PIN_WEIGHTS) != 0)
        self->to->n--;
out:
    mpl_free_each(self->ctx, now, then);
    return st;
}

/* For graphs only: workspaces that are planned, of a backend that may have a choice. */
static bool applies(const lister *self, const row *r)
{
    if (self->job->source.graph == NULL)
        return r->list;
    if (r->kind == MPL_ADVICE_workspaces)
        return self->present->workspaces == MPL_workspaces_plan;
    if (r->id == MPL_OPT_loop)
        return mpl_graph_has_loop(self->job->source.graph);
    return r->id != MPL_OPT_ssa || self->job->is_program;
}

static mpl_status add_rows(lister *self)
{
    mpl_change *change;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];

        if (!applies(self, r))
            continue;
        MPL_PASS(begin(self, r->kind, r->late, &change));
        MPL_PASS(set(self, change, r->id, r->value));
        if ((self->present->pin & ~change->options.pin) != 0) /* to plan more seldom lowers a plan
                                                               */
            change->late = LATEST;
        MPL_PASS(set(self, change, MPL_OPT_in_place, r->in_place));
        MPL_PASS(set(self, change, MPL_OPT_views, r->views));
        MPL_PASS(set(self, change, MPL_OPT_order, r->order));
        MPL_PASS(set(self, change, MPL_OPT_planner, r->planner));
        MPL_PASS(drop_vain(self));
    }
    return MPL_OK;
}

/* ---- fusion: all passes, and each pass alone ---- */

static mpl_status add_passes(lister *self, const char *names, uint8_t late, mpl_pass_id pass)
{
    const char *now = self->present->optimise;
    size_t room = strlen(now) + strlen(names) + 2;
    bool none = strcmp(now, "none") == 0;
    mpl_change *change;

    MPL_PASS(begin(self, MPL_ADVICE_fusion, late, &change));
    change->pass = pass;
    MPL_PASS((change->store = mpl_alloc(self->ctx, room, 1)) != NULL ? MPL_OK : MPL_EMEM);
    snprintf(change->store, room, "%s%s%s", none ? "" : now, none ? "" : ",", names);
    change->options.optimise = change->store;
    return MPL_OK;
}

/* Passes that compute with weights are tried with all others only: they take as long alone. */
static mpl_status add_fusions(lister *self)
{
    mpl_pass_set now, all;
    bool some = false;

    MPL_PASS(mpl_pass_set_parse(self->ctx, self->present->optimise, &now));
    MPL_PASS(mpl_pass_set_parse(self->ctx, "all", &all));
    for (mpl_pass_id k = 0; k < MPL_N_PASSES; k++)
        some |= all.on[k] && !now.on[k];
    if (some)
        MPL_PASS(add_passes(self, "all", 1, MPL_N_PASSES));
    for (mpl_pass_id k = 0; k < MPL_N_PASSES; k++) {
        mpl_pass_set alone = {.on = {false}};

        alone.on[k] = true;
        if (!now.on[k] && (!mpl_pass_set_reads_weights(&alone) || k == MPL_PASS_bn_fma))
            MPL_PASS(add_passes(self, mpl_pass_table[k].name, 1, k));
    }
    return MPL_OK;
}

/* ---- a smaller batch ---- */

/* The value of `key` in a GRAPH of the zoo: *at is where its digits begin in text, or the end. */
static bool find_number(const char *text, const char *key, size_t *at, size_t *n)
{
    size_t length = strlen(key);

    for (const char *c = strpbrk(text, ":"); c != NULL; c = strpbrk(c + 1, ","))
        if (strncmp(c + 1, key, length) == 0 && c[1 + length] == '=') {
            *at = (size_t)(c - text) + length + 2;
            *n = strspn(text + *at, "0123456789");
            return true;
        }
    *at = strlen(text);
    *n = 0;
    return false;
}

static mpl_status add_batch(lister *self, uint64_t batch)
{
    const char *text = self->job->text;
    size_t at, n, room = strlen(text) + 40;
    bool given = find_number(text, "batch", &at, &n);
    mpl_change *change;

    MPL_PASS(begin(self, MPL_ADVICE_batch, 0, &change));
    MPL_PASS((change->store = mpl_alloc(self->ctx, room, 1)) != NULL ? MPL_OK : MPL_EMEM);
    snprintf(change->store, room, "%.*s%s%" PRIu64 "%s", (int)at, text,
             given                       ? ""
             : strchr(text, ':') != NULL ? ",batch="
                                         : ":batch=",
             batch, text + at + n);
    change->graph = change->store;
    return MPL_OK;
}

static mpl_status add_batches(lister *self)
{
    const char *text = self->job->text;
    const mpl_zoo_entry *entry = mpl_zoo_find(text, strcspn(text, ":"));
    size_t at, n;
    uint64_t batch = 1;

    if (self->job->source.file_bytes > 0 || self->job->source.graph == NULL || entry == NULL)
        return MPL_OK;
    for (const mpl_zoo_param *param = entry->params; param->key != NULL; param++)
        batch = strcmp(param->key, "batch") == 0 ? (uint64_t)param->otherwise : batch;
    if (find_number(text, "batch", &at, &n) && n > 0)
        batch = strtoull(text + at, NULL, 10);
    for (int k = 0; k < HALVES && batch > 1; k++)
        MPL_PASS(add_batch(self, batch /= 2));
    return MPL_OK;
}

/* ---- another planner ---- */

static mpl_status add_planners(lister *self, const mpl_plan *plan)
{
    const char *now = self->present->planner != NULL ? self->present->planner : "portfolio";
    mpl_change *change;

    if (plan->claim == MPL_OPTIMAL || plan->peak_bytes == self->job->bound_bytes)
        return MPL_OK;
    for (int slow = 0; slow <= 1; slow++)
        for (int i = 0; i < 4; i++) {
            const char *name = (slow ? slow_planners : quick_planners)[i];

            if (strcmp(name, now) == 0)
                continue;
            MPL_PASS(begin(self, MPL_ADVICE_planner, (uint8_t)slow, &change));
            change->options.planner = name;
        }
    return MPL_OK;
}

/* The least memory over all orders, sharing and placement, and over passes too. */
static mpl_status add_least(lister *self, const char *freedoms, uint8_t late)
{
    const mpl_option_id chosen[] = {MPL_OPT_in_place, MPL_OPT_views, MPL_OPT_concat, MPL_OPT_loop};
    mpl_change *change;

    MPL_PASS(begin(self, MPL_ADVICE_least, late, &change));
    change->command = MPL_CMD_least;
    mpl_options_for(MPL_CMD_least, self->present, &change->options);
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        mpl_options_reset(self->ctx, chosen[i], &change->options);
    change->options.free = freedoms;
    return MPL_OK;
}

mpl_status mpl_changes_list(mpl_ctx *ctx, const mpl_options *present, const mpl_job *job,
                            const mpl_plan *plan, mpl_changes *out)
{
    lister l = {ctx, present, job, out};

    *out = (mpl_changes){.present_bytes = plan->peak_bytes};
    MPL_PASS(add_rows(&l));
    MPL_PASS(add_planners(&l, plan));
    MPL_PASS(add_batches(&l));
    if (job->source.graph == NULL)
        return MPL_OK;
    MPL_PASS(add_fusions(&l));
    MPL_PASS(add_least(&l, NULL, 1));
    if (strcmp(present->optimise, "none") == 0)
        MPL_PASS(add_least(&l, "+optimise", 2));
    return MPL_OK;
}

void mpl_changes_fini(mpl_ctx *ctx, mpl_changes *changes)
{
    for (uint32_t i = 0; i < changes->n; i++)
        mpl_free(ctx, changes->change[i].store);
    mpl_free(ctx, changes->change);
    *changes = (mpl_changes){0};
}
