/* library.c -- contexts, settings and plans of the library. See memplan.h. */
#include "harness/lib/library_priv.h"
#include "planners/plan/plan_bindings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "harness/rows/record.h"
#include "harness/cli/version.h"
#include "planners/search/joint.h"
#include "planners/verify/verify.h"

_Static_assert((int)MEMPLAN_EMEM == (int)MPL_EMEM && (int)MEMPLAN_EINPUT == (int)MPL_EINPUT &&
                   (int)MEMPLAN_ELIMIT == (int)MPL_ELIMIT &&
                   (int)MEMPLAN_EINVALID == (int)MPL_EINVALID &&
                   (int)MEMPLAN_EUNAVAIL == (int)MPL_EUNAVAIL,
               "statuses are handed through");

static const double LONGEST_S = 3e7; /* about a year: later clocks cannot overflow */

const char *memplan_version(void)
{
    return mpl_this_build.version;
}

memplan_ctx *memplan_ctx_new(void)
{
    memplan_ctx *ctx = calloc(1, sizeof *ctx);

    if (ctx == NULL)
        return NULL;
    mpl_ctx_init(&ctx->ctx);
    library_settings_init(&ctx->set);
    return ctx;
}

static void forget_dims(memplan_ctx *ctx)
{
    for (uint32_t i = 0; i < ctx->n_dims; i++)
        mpl_free(&ctx->ctx, ctx->dim_name[i]);
    mpl_free(&ctx->ctx, ctx->dim_name);
    mpl_free(&ctx->ctx, ctx->dim_value);
    ctx->dim_name = NULL;
    ctx->dim_value = NULL;
    ctx->name_cap = ctx->value_cap = ctx->n_dims = 0;
}

void memplan_ctx_free(memplan_ctx *ctx)
{
    if (ctx == NULL)
        return;
    forget_dims(ctx);
    mpl_assert(ctx->ctx.n_live == 0);
    free(ctx);
}

const char *memplan_message(const memplan_ctx *ctx)
{
    return ctx->ctx.message;
}

void memplan_fail_allocation(memplan_ctx *ctx, int64_t k)
{
    ctx->ctx.fail_after = k < 0 ? -1 : ctx->ctx.n_allocs + k;
}

int64_t memplan_live_allocations(const memplan_ctx *ctx)
{
    return ctx->ctx.n_live;
}

/* ---- settings ---- */

static mpl_status read_count(memplan_ctx *ctx, const char *name, const char *text, uint64_t min,
                             uint64_t max, uint64_t *out)
{
    mpl_status st = MPL_OK;
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < min || value > max)
        MPL_FAIL(&ctx->ctx, MPL_EINPUT,
                 "%s: '%.100s' is no whole number from %" PRIu64 " to %" PRIu64, name, text, min,
                 max);
    *out = value;
out:
    return st;
}

/* Which of two words `text` is. */
static mpl_status read_word(memplan_ctx *ctx, const char *name, const char *text, const char *no,
                            const char *yes, bool *out)
{
    mpl_status st = MPL_OK;

    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
        MPL_FAIL(&ctx->ctx, MPL_EINPUT, "%s: '%.100s' is neither %s nor %s", name, text, no, yes);
    *out = strcmp(text, yes) == 0;
out:
    return st;
}

static mpl_status set_safety(memplan_ctx *ctx, library_settings *set, const char *text)
{
    set->parallel_given = true;
    return read_word(ctx, "safety", text, "serial", "parallel", &set->parallel);
}

static mpl_status set_in_place(memplan_ctx *ctx, library_settings *set, const char *text)
{
    return read_word(ctx, "in-place", text, "off", "on", &set->in_place);
}

static mpl_status set_views(memplan_ctx *ctx, library_settings *set, const char *text)
{
    return read_word(ctx, "views", text, "off", "on", &set->views);
}

static mpl_status set_order(memplan_ctx *ctx, library_settings *set, const char *text)
{
    mpl_status st = MPL_OK;

    if ((set->order = mpl_any_order_find(text)) == NULL)
        MPL_FAIL(&ctx->ctx, MPL_EINPUT, "order: there is no '%.100s'", text);
out:
    return st;
}

enum { N_NAMES = 3 };
static const char *const pin_names[N_NAMES] = {"weights", "inputs", "outputs"};
static const char *const pool_names[N_NAMES] = {"weights", "gradients", "state"};

/* Bit k: name[k] is listed. */
static mpl_status read_names(memplan_ctx *ctx, const char *key, const char *text,
                             const char *const *name, unsigned *bits)
{
    mpl_status st = MPL_OK;
    unsigned found = 0;

    for (const char *at = strcmp(text, "none") == 0 ? "" : text; *at != '\0';) {
        size_t n = strcspn(at, ","), k = 0;

        while (k < N_NAMES && (strlen(name[k]) != n || memcmp(name[k], at, n) != 0))
            k++;
        if (k == N_NAMES || (at[n] == ',' && at[n + 1] == '\0'))
            MPL_FAIL(&ctx->ctx, MPL_EINPUT, "%s: '%.100s' lists something else than %s,%s,%s", key,
                     text, name[0], name[1], name[2]);
        found |= 1u << k;
        at += n + (at[n] == ',');
    }
    *bits = found;
out:
    return st;
}

static mpl_status set_pin(memplan_ctx *ctx, library_settings *set, const char *text)
{
    return read_names(ctx, "pin", text, pin_names, &set->pin);
}

static mpl_status set_pools(memplan_ctx *ctx, library_settings *set, const char *text)
{
    return read_names(ctx, "pools", text, pool_names, &set->pools);
}

static mpl_status set_capacity(memplan_ctx *ctx, library_settings *set, const char *text)
{
    return read_count(ctx, "capacity", text, 0, INT64_MAX, &set->capacity);
}

static mpl_status set_budget(memplan_ctx *ctx, library_settings *set, const char *text)
{
    return read_count(ctx, "budget", text, 0, INT64_MAX, &set->budget);
}

static mpl_status set_seed(memplan_ctx *ctx, library_settings *set, const char *text)
{
    return read_count(ctx, "seed", text, 0, INT64_MAX, &set->seed);
}

static mpl_status set_threads(memplan_ctx *ctx, library_settings *set, const char *text)
{
    uint64_t n = 0;
    mpl_status st = read_count(ctx, "threads", text, 1, 1024, &n);

    set->n_threads = (uint32_t)n;
    return st;
}

static mpl_status set_time_limit(memplan_ctx *ctx, library_settings *set, const char *text)
{
    mpl_status st = MPL_OK;
    char *end = NULL;

    set->time_limit = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(set->time_limit) || set->time_limit <= 0)
        MPL_FAIL(&ctx->ctx, MPL_EINPUT, "time-limit: '%.100s' is no number above 0", text);
out:
    return st;
}

static mpl_status add_dim(memplan_ctx *ctx, const char *text)
{
    mpl_ctx *c = &ctx->ctx;
    mpl_status st = MPL_OK;
    const char *cut = strchr(text, '=');
    char *name = NULL;
    uint64_t value = 0;

    if (cut == NULL || cut == text)
        MPL_FAIL(c, MPL_EINPUT, "dim: '%.100s' is no NAME=N", text);
    MPL_TRY(read_count(ctx, "dim", cut + 1, 1, INT32_MAX, &value));
    MPL_TRY((name = mpl_strdup(c, text)) != NULL ? MPL_OK : MPL_EMEM);
    name[cut - text] = '\0';
    MPL_TRY(mpl_reserve(c, ctx->dim_name, ctx->name_cap, (size_t)ctx->n_dims + 1));
    MPL_TRY(mpl_reserve(c, ctx->dim_value, ctx->value_cap, (size_t)ctx->n_dims + 1));
    ctx->dim_name[ctx->n_dims] = name, name = NULL;
    ctx->dim_value[ctx->n_dims++] = (int64_t)value;
out:
    mpl_free(c, name);
    return st;
}

static const struct {
    const char *name;
    mpl_status (*set)(memplan_ctx *ctx, library_settings *set, const char *text);
    size_t at, size; /* of the member, which goes back to its first value */
} settings[] = {
#define SETTING(name, function, member)                                                            \
    {                                                                                              \
        name, function, offsetof(library_settings, member), sizeof((library_settings *)0)->member  \
    }
    SETTING("safety", set_safety, parallel),
    SETTING("order", set_order, order),
    SETTING("in-place", set_in_place, in_place),
    SETTING("views", set_views, views),
    SETTING("pin", set_pin, pin),
    SETTING("pools", set_pools, pools),
    SETTING("capacity", set_capacity, capacity),
    SETTING("budget", set_budget, budget),
    SETTING("time-limit", set_time_limit, time_limit),
    SETTING("threads", set_threads, n_threads),
    SETTING("seed", set_seed, seed),
#undef SETTING
};

memplan_status memplan_set(memplan_ctx *ctx, const char *name, const char *value)
{
    mpl_status st = MPL_OK;
    library_settings set = ctx->set, first;
    size_t i = 0, n = sizeof settings / sizeof *settings;

    library_settings_init(&first);
    if (strcmp(name, "dim") == 0) {
        if (value == NULL)
            forget_dims(ctx);
        else
            MPL_TRY(add_dim(ctx, value));
        goto out;
    }
    while (i < n && strcmp(settings[i].name, name) != 0)
        i++;
    if (i == n)
        MPL_FAIL(&ctx->ctx, MPL_EINPUT, "there is no setting '%.100s'", name);
    if (value != NULL)
        MPL_TRY(settings[i].set(ctx, &set, value));
    else
        memcpy((char *)&set + settings[i].at, (char *)&first + settings[i].at, settings[i].size);
    if (value == NULL && settings[i].set == set_safety)
        set.parallel_given = false;
    ctx->set = set;
out:
    return (memplan_status)st;
}

/* ---- plans ---- */

enum { MOST_PARAMS = 32 };

/* "P:key=value,..", cut. */
typedef struct planner_text {
    char *store;
    const mpl_planner *planner;
    uint32_t n;
    const char *key[MOST_PARAMS], *value[MOST_PARAMS];
} planner_text;

static mpl_status cut_planner(mpl_ctx *ctx, const char *text, planner_text *out)
{
    mpl_status st = MPL_OK;
    char *at;

    MPL_TRY((out->store = mpl_strdup(ctx, text)) != NULL ? MPL_OK : MPL_EMEM);
    if ((at = strchr(out->store, ':')) != NULL)
        *at++ = '\0';
    if ((out->planner = mpl_planner_find(out->store)) == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "there is no planner '%.100s'", out->store);
    while (at != NULL) {
        char *value = strchr(at, '='), *end = strchr(at, ',');

        if (value == NULL || (end != NULL && value > end) || out->n == MOST_PARAMS)
            MPL_FAIL(ctx, MPL_EINPUT, "planner '%.100s': parameters are written key=value,..",
                     text);
        *value++ = '\0';
        if (end != NULL)
            *end++ = '\0';
        out->key[out->n] = at;
        out->value[out->n++] = value;
        at = end;
    }
out:
    return st;
}

/* The verifier, and for a graph under parallel the one that looks at the graph itself. */
static mpl_status verify(mpl_ctx *ctx, const memplan_task *task, mpl_plan *plan)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_verify(ctx, task->problem, plan));
    if (task->graph != NULL && task->graph->n_blocks > 1)
        MPL_TRY(mpl_verify_places(ctx, task->graph, task->map, task->problem, plan));
    else if (task->graph != NULL && task->problem->before != NULL)
        MPL_TRY(mpl_verify_graph(ctx, task->graph, task->map, task->problem, plan));
out:
    return st;
}

static mpl_status new_plan(memplan_task *task, const char *planner, mpl_plan **from,
                           memplan_plan **out)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    memplan_plan *plan = NULL;

    MPL_TRY(mpl_new(ctx, plan, 1));
    plan->task = task;
    if (planner != NULL)
        MPL_TRY((plan->planner = mpl_strdup(ctx, planner)) != NULL ? MPL_OK : MPL_EMEM);
    plan->plan = *from, *from = NULL;
    *out = plan, plan = NULL;
out:
    mpl_free(ctx, plan);
    return st;
}

memplan_status memplan_run(memplan_task *task, const char *planner, memplan_plan **out)
{
    const library_settings *set = &task->owner->set;
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    planner_text text = {0};
    mpl_plan *plan = NULL;
    mpl_run run;

    planner = planner != NULL ? planner : "portfolio";
    MPL_TRY((mpl_status)memplan_check(task));
    MPL_TRY(cut_planner(ctx, planner, &text));
    mpl_run_init(&run, ctx);
    run.seed = set->seed;
    run.budget_ticks = set->budget;
    if (set->time_limit > 0)
        run.deadline_ns =
            mpl_clock_ns() +
            (int64_t)((set->time_limit < LONGEST_S ? set->time_limit : LONGEST_S) * 1e9);
    run.n_threads = set->n_threads;
    run.n_params = text.n;
    run.param_key = text.key;
    run.param_value = text.value;
    MPL_TRY(mpl_planner_run(text.planner, &run, task->problem, &plan));
    if (plan->claim == MPL_INFEASIBLE)
        MPL_FAIL(ctx, MPL_EINVALID, "planner %s: proved: no plan fits in %" PRIu64 " bytes",
                 text.planner->name, task->problem->pool_capacity[0]);
    if (plan->claim == MPL_UNKNOWN)
        MPL_FAIL(ctx, MPL_ELIMIT, "planner %s: the budget ended before there was a plan",
                 text.planner->name);
    MPL_TRY(verify(ctx, task, plan));
    MPL_TRY(new_plan(task, planner, &plan, out));
out:
    mpl_plan_free(ctx, plan);
    mpl_free(ctx, text.store);
    return (memplan_status)st;
}

memplan_status memplan_verify(memplan_task *task, const uint64_t *offset, memplan_plan **out)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;

    MPL_TRY((mpl_status)memplan_check(task));
    MPL_TRY(mpl_plan_new(ctx, task->problem, &plan));
    memcpy(plan->offset, offset, task->problem->n * sizeof *offset);
    plan->claim = MPL_FEASIBLE;
    MPL_TRY(verify(ctx, task, plan));
    MPL_TRY(mpl_plan_bound(ctx, task->problem, plan));
    MPL_TRY(new_plan(task, NULL, &plan, out));
out:
    mpl_plan_free(ctx, plan);
    return (memplan_status)st;
}

memplan_status memplan_read(memplan_ctx *owner, const char *path, memplan_task **task,
                            memplan_plan **plan)
{
    mpl_ctx *ctx = &owner->ctx;
    mpl_status st = MPL_OK;
    mpl_plan_file file = {0};
    memplan_task *t = NULL;

    MPL_TRY(mpl_plan_read(ctx, path, &file));
    MPL_TRY(mpl_verify(ctx, file.problem, file.plan));
    MPL_TRY(mpl_plan_bound(ctx, file.problem, file.plan));
    MPL_TRY(mpl_new(ctx, t, 1));
    t->owner = owner;
    t->complete = true;
    library_settings_init(&t->set);
    t->problem = file.problem, file.problem = NULL;
    MPL_TRY(new_plan(t, NULL, &file.plan, plan));
    *task = t, t = NULL;
out:
    memplan_task_free(t);
    mpl_plan_file_fini(ctx, &file);
    return (memplan_status)st;
}

/* The fields of a row that a reader of the plan file asks for: whence the problem came. */
static mpl_status make_fields(mpl_ctx *ctx, const memplan_plan *plan, char **text)
{
    const memplan_task *task = plan->task;
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    char hash[17];

    MPL_TRY(mpl_record_new(ctx, &row));
    mpl_record_member_text(row, MPL_FIELD_memplan, "version", mpl_this_build.version);
    mpl_record_member_text(row, MPL_FIELD_memplan, "commit", mpl_this_build.commit);
    mpl_record_text(row, MPL_FIELD_status, "ok");
    mpl_record_text(row, MPL_FIELD_graph, task->text);
    snprintf(hash, sizeof hash, "%016" PRIx64, mpl_problem_hash(task->problem));
    mpl_record_text(row, MPL_FIELD_problem_hash, hash);
    mpl_record_text(row, MPL_FIELD_safety, task->problem->before != NULL ? "parallel" : "serial");
    mpl_record_text(row, MPL_FIELD_planner, plan->planner);
    if (task->graph != NULL) {
        mpl_record_text(row, MPL_FIELD_order, task->set.order->name);
        if (task->set.order->search != NULL)
            mpl_record_text(row, MPL_FIELD_order_kept, task->kept_given ? "given" : "searched");
        mpl_record_bool(row, MPL_FIELD_views, task->set.views);
        mpl_record_text(row, MPL_FIELD_concat, task->set.views ? "auto" : "copy");
        mpl_record_text(row, MPL_FIELD_loop, mpl_graph_has_loop(task->graph) ? "view" : NULL);
        for (int k = 0; k < N_NAMES; k++) {
            if (task->set.pin >> k & 1)
                mpl_record_item_text(row, MPL_FIELD_pinned, pin_names[k]);
            if (task->set.pools >> k & 1)
                mpl_record_item_text(row, MPL_FIELD_own_pools, pool_names[k]);
        }
    }
    if (task->problem->pool_capacity[0] <= INT64_MAX)
        mpl_record_int(row, MPL_FIELD_capacity, task->problem->pool_capacity[0]);
    mpl_record_bool(row, MPL_FIELD_verified, true);
    MPL_TRY(mpl_record_write(ctx, row, text));
out:
    mpl_record_free(ctx, row);
    return st;
}

memplan_status memplan_write(const memplan_plan *plan, const char *path)
{
    mpl_ctx *ctx = &plan->task->owner->ctx;
    mpl_status st = MPL_OK;
    char *fields = NULL;

    MPL_TRY(make_fields(ctx, plan, &fields));
    MPL_TRY(mpl_plan_add_bindings(ctx, plan->task->graph, plan->task->map, &fields));
    MPL_TRY(mpl_plan_write(ctx, path, plan->task->problem, plan->plan, fields));
out:
    mpl_free(ctx, fields);
    return (memplan_status)st;
}

void memplan_plan_free(memplan_plan *plan)
{
    mpl_ctx *ctx = plan != NULL ? &plan->task->owner->ctx : NULL;

    if (plan == NULL)
        return;
    mpl_plan_free(ctx, plan->plan);
    mpl_free(ctx, plan->planner);
    mpl_free(ctx, plan);
}

uint64_t memplan_offset(const memplan_plan *plan, uint32_t buffer)
{
    return buffer < plan->plan->n ? plan->plan->offset[buffer] : MEMPLAN_NO_OFFSET;
}

uint64_t memplan_peak_bytes(const memplan_plan *plan)
{
    return plan->plan->peak_bytes;
}

uint64_t memplan_bound_bytes(const memplan_plan *plan)
{
    return plan->plan->bound_bytes;
}

memplan_claim memplan_claim_of(const memplan_plan *plan)
{
    return plan->plan->claim == MPL_OPTIMAL ? MEMPLAN_IS_OPTIMAL : MEMPLAN_IS_FEASIBLE;
}

const char *memplan_planner_name(uint32_t i)
{
    uint32_t n = 0;

    while (mpl_planners[n] != NULL && n < i)
        n++;
    return mpl_planners[n] != NULL ? mpl_planners[n]->name : NULL;
}
