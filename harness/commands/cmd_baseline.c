/* cmd_baseline.c -- memplan baseline update: plans graphs, reads plans, and records them for
 * memplan check. */
#include <ctype.h>
#include <unistd.h>

#include "harness/cli/command.h"
#include "harness/gate/gate.h"
#include "harness/bench/suite.h"

typedef struct update {
    mpl_ctx *ctx;
    mpl_options *options;
    uint32_t n_specs;
    size_t cap;
    mpl_planner_spec *spec;
    uint32_t n_suites;
    size_t suite_cap;
    mpl_suite *suite; /* options point into their texts */
    mpl_rows rows;
} update;

static mpl_status add_spec(void *arg, const char *text)
{
    update *u = arg;
    mpl_planner_spec spec = {0};

    MPL_PASS(mpl_reserve(u->ctx, u->spec, u->cap, (size_t)u->n_specs + 1));
    MPL_PASS(mpl_planner_spec_parse(u->ctx, text, &spec));
    u->spec[u->n_specs++] = spec;
    return MPL_OK;
}

/* Chooses the planners given; by default all that plan one arena with the same bytes on every
 * machine. */
static mpl_status choose_planners(update *self)
{
    for (uint32_t i = 0; i < self->options->planners.n; i++)
        MPL_PASS(mpl_planner_list(self->ctx, self->options->planners.item[i], add_spec, self));
    for (uint32_t i = 0; self->options->planners.n == 0 && mpl_planners[i] != NULL; i++)
        if (mpl_planners[i]->plan != NULL &&
            (mpl_planners[i]->traits & (MPL_ROUNDED | MPL_SPREADS | MPL_PRODUCTION)) == 0)
            MPL_PASS(add_spec(self, mpl_planners[i]->name));
    return MPL_OK;
}

static mpl_status record(update *self, const mpl_record *from, uint64_t planned,
                         const mpl_optimum *optimum)
{
    static const mpl_field kept[] = {MPL_FIELD_graph, MPL_FIELD_problem_hash, MPL_FIELD_safety,
                                     MPL_FIELD_claim};
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    char label[120];
    uint64_t plan_ns;

    MPL_TRY(mpl_record_new(self->ctx, &row));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        mpl_record_text(row, kept[i], mpl_record_get_text(from, kept[i]));
    mpl_record_text(row, MPL_FIELD_planner, mpl_planner_label(from, label));
    mpl_record_int(row, MPL_FIELD_planned_bytes, planned);
    mpl_record_int(row, MPL_FIELD_bound_bytes, optimum->bound_bytes);
    if (optimum->proved)
        mpl_record_int(row, MPL_FIELD_optimum_bytes, optimum->best_bytes);
    if (self->options->times && mpl_record_get_int(from, MPL_FIELD_plan_ns, &plan_ns))
        mpl_record_int(row, MPL_FIELD_plan_ns, plan_ns);
    if (optimum->proved && optimum->best_bytes == planned)
        mpl_record_text(row, MPL_FIELD_claim, "optimal");
    MPL_TRY(mpl_rows_take(self->ctx, &self->rows, &row));
out:
    mpl_record_free(self->ctx, row);
    return st;
}

static mpl_status add_plan(update *self, const char *path)
{
    mpl_status st = MPL_OK;
    mpl_import import = {0};
    mpl_record *row = NULL;
    mpl_job job = {0};
    mpl_optimum optimum;
    char name[200];

    MPL_TRY(mpl_gate_open_plan(self->ctx, self->options, NULL, path, name, &import, &row, &job));
    MPL_TRY(mpl_job_verify_file(self->ctx, &job, import.plan));
    MPL_TRY(mpl_job_plan_fields(self->ctx, &job, import.plan, row));
    MPL_TRY(mpl_optimum_find(self->ctx, self->options, &job, &optimum));
    optimum.proved = optimum.proved && !import.returns_memory;
    if (import.returns_memory)
        optimum.bound_bytes = job.bound_bytes;
    MPL_TRY(record(self, row, mpl_gate_bytes(&import, import.plan), &optimum));
out:
    mpl_job_fini(self->ctx, &job);
    mpl_record_free(self->ctx, row);
    mpl_import_fini(self->ctx, &import);
    return st;
}

static mpl_status add_planned(update *self, const mpl_job *job, const mpl_planner_spec *spec,
                              const char *name, const mpl_optimum *optimum)
{
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    mpl_plan *plan = NULL;
    const mpl_job *kept;
    mpl_optimum of_given;

    MPL_TRY(mpl_job_row(self->ctx, self->options, job, spec, &row));
    mpl_record_text(row, MPL_FIELD_graph, name);
    st = mpl_job_plan(self->ctx, self->options, job, spec, &row, &plan, &kept);
    if (st == MPL_EUNAVAIL) { /* the planner cannot take this problem */
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    if (kept != job) /* another order has another optimum */
        MPL_TRY(mpl_optimum_find(self->ctx, self->options, kept, &of_given));
    MPL_TRY(record(self, row, plan->peak_bytes, kept == job ? optimum : &of_given));
out:
    mpl_plan_free(self->ctx, plan);
    mpl_record_free(self->ctx, row);
    return st;
}

/* Adds GRAPH under `name`; a file with a plan adds that plan. */
static mpl_status add_graph(update *self, const char *graph, const char *name)
{
    mpl_status st = MPL_OK;
    mpl_job job = {0};
    mpl_optimum optimum;

    if (access(graph, R_OK) == 0 && mpl_plan_format(self->ctx, graph) != NULL)
        return add_plan(self, graph);
    MPL_TRY(mpl_job_open(self->ctx, self->options, graph, &job));
    MPL_TRY(mpl_job_problem(self->ctx, self->options, NULL, NULL, &job));
    MPL_TRY(mpl_optimum_find(self->ctx, self->options, &job, &optimum));
    for (uint32_t i = 0; i < self->n_specs; i++)
        MPL_TRY(add_planned(self, &job, &self->spec[i], name, &optimum));
out:
    mpl_job_fini(self->ctx, &job);
    return st;
}

/* Adds a suite's graph; reports and skips a file below --data that is absent. */
static mpl_status add_from_suite(update *self, const char *graph)
{
    mpl_status st = MPL_OK;
    char *path = NULL, *file = NULL;

    MPL_TRY(mpl_suite_graph_path(self->ctx, self->options, graph, &path));
    if (path == NULL) {
        st = add_graph(self, graph, graph);
        goto out;
    }
    if ((file = mpl_strdup(self->ctx, path)) == NULL) {
        st = MPL_EMEM;
        goto out;
    }
    file[mpl_suite_file_length(path)] = '\0';
    if (access(file, R_OK) != 0)
        fprintf(stderr, "skip: no %s here; --data names the folder, scripts/data.sh brings it\n",
                mpl_shown(file));
    else
        MPL_TRY(add_graph(self, path, mpl_suite_graph_name(graph)));
out:
    mpl_free_each(self->ctx, path, file);
    return st;
}

static bool is_suite(const char *text)
{
    const mpl_builtin_suite *suite = mpl_builtin_suites;
    size_t n = strlen(text);

    while (suite->name != NULL && strcmp(suite->name, text) != 0)
        suite++;
    return suite->name != NULL || (n > 6 && strcmp(text + n - 6, ".suite") == 0);
}

/* Adds a suite or a graph. A suite's options also apply to everything after it. */
static mpl_status add(update *self, const char *text)
{
    mpl_suite *suite = NULL;

    if (is_suite(text)) {
        MPL_PASS(mpl_reserve(self->ctx, self->suite, self->suite_cap, (size_t)self->n_suites + 1));
        suite = &self->suite[self->n_suites];
        MPL_PASS(mpl_suite_open(self->ctx, text, self->options, suite));
        self->n_suites++;
        if (suite->n_own > 0)
            return MPL_REFUSE(
                self->ctx,
                "baseline: %.200s has options of single graphs, which a baseline does not "
                "tell apart",
                text);
    }
    if (self->n_specs == 0)
        MPL_PASS(choose_planners(self));
    if (suite == NULL)
        MPL_PASS(add_graph(self, text, text));
    for (uint32_t i = 0; suite != NULL && i < suite->graph.n; i++)
        MPL_PASS(add_from_suite(self, suite->graph.item[i]));
    return MPL_OK;
}

/* results/baselines/NAME.json; NAME comes from the argument. */
static mpl_status default_path(mpl_ctx *ctx, const mpl_options *options, const char *what,
                               char path[300])
{
    const char *base = strrchr(what, '/') != NULL ? strrchr(what, '/') + 1 : what;
    int n =
        snprintf(path, 300, "results/baselines/%.*s.json", (int)(strcspn(base, ".") % 200), base);

    if (options->args.n > 2)
        return MPL_REFUSE(ctx, "baseline: of several arguments; name the file with -o");
    for (int i = (int)strlen("results/baselines/"); i < n; i++)
        path[i] = isalnum((unsigned char)path[i]) || strchr("._-", path[i]) != NULL ? path[i] : '_';
    return mpl_folders_make(ctx, path);
}

mpl_status mpl_cmd_baseline(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    update u = {.ctx = ctx, .options = options};
    const char *first = options->args.n > 1 ? options->args.item[1] : "smoke";
    char path[300];

    if (strcmp(options->args.item[0], "update") != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "baseline: '%s' is no action; there is: update",
                 options->args.item[0]);
    MPL_TRY(mpl_job_check_options(ctx, options));
    if (options->output != NULL)
        snprintf(path, sizeof path, "%s", options->output);
    else
        MPL_TRY(default_path(ctx, options, first, path));
    MPL_TRY(add(&u, first));
    for (uint32_t i = 2; i < options->args.n; i++)
        MPL_TRY(add(&u, options->args.item[i]));
    MPL_TRY(mpl_baseline_write(ctx, path, &u.rows));
    if (!options->quiet)
        printf("%s: %" PRIu32 " plans\n", mpl_shown(path), u.rows.n);
out:
    for (uint32_t i = 0; i < u.n_specs; i++)
        mpl_planner_spec_fini(ctx, &u.spec[i]);
    mpl_free(ctx, u.spec);
    for (uint32_t i = 0; i < u.n_suites; i++)
        mpl_suite_fini(ctx, &u.suite[i]);
    mpl_free(ctx, u.suite);
    mpl_rows_fini(ctx, &u.rows);
    return st;
}
