/* cmd_diff.c -- memplan diff: compares two plans, or two files of rows. Times are shown but not
 * compared. */
#include <math.h>
#include <stdlib.h>

#include "graphs/core/file.h"
#include "graphs/source.h"
#include "harness/cli/command.h"
#include "harness/report/grid.h"
#include "harness/rows/rows.h"
#include "planners/plan/plan.h"

/* Collects and counts differences, as lines or as members of one JSON object. */
typedef struct report {
    mpl_ctx *ctx;
    bool json, quiet;
    FILE *to;            /* the differences, printed after the summary */
    uint64_t planned[2]; /* of two plans [byte] */
    uint32_t n;          /* number of differences */
    int n_kinds;
    struct {
        const char *what;
        uint32_t n;
    } kind[16]; /* in order of appearance */
} report;

static void count(report *self, const char *what)
{
    int i = 0;

    while (i < self->n_kinds && strcmp(self->kind[i].what, what) != 0)
        i++;
    mpl_assert(i < (int)(sizeof self->kind / sizeof *self->kind));
    self->n_kinds += i == self->n_kinds;
    self->kind[i].what = what;
    self->kind[i].n++;
    self->n++;
}

/* Adds one difference: {"what": .., "of": .., "a": .., "b": ..}; numbers and names as text. */
static mpl_status differs(report *self, const char *what, const char *of, const char *a,
                          const char *b)
{
    mpl_status st = MPL_OK;
    const char *text[4] = {what, of, a, b};
    char *quoted[4] = {NULL};

    count(self, what);
    if (self->quiet && !self->json)
        goto out;
    if (!self->json) {
        fprintf(self->to, "%-10s %s: %s -> %s\n", what, mpl_shown(of),
                a != NULL ? mpl_shown(a) : "-", b != NULL ? mpl_shown(b) : "-");
        goto out;
    }
    for (int i = 0; i < 4; i++)
        if (text[i] != NULL)
            MPL_TRY(mpl_json_quote(self->ctx, text[i], &quoted[i]));
    fprintf(self->to, "%s{\"what\": %s, \"of\": %s, \"a\": %s, \"b\": %s}", self->n > 1 ? ", " : "",
            quoted[0], quoted[1], quoted[2] != NULL ? quoted[2] : "null",
            quoted[3] != NULL ? quoted[3] : "null");
out:
    for (int i = 0; i < 4; i++)
        mpl_free(self->ctx, quoted[i]);
    return st;
}

static mpl_status differs_number(report *self, const char *what, const char *of, uint64_t a,
                                 uint64_t b)
{
    char x[24], y[24];

    if (a == b)
        return MPL_OK;
    snprintf(x, sizeof x, "%" PRIu64, a);
    snprintf(y, sizeof y, "%" PRIu64, b);
    return differs(self, what, of, x, y);
}

/* ---- plans ---- */

typedef struct named {
    char name[128];
    mpl_buffer id;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

/* Sorts buffers by name; ids keep equal names apart. */
static mpl_status name_buffers(mpl_ctx *ctx, const mpl_problem *p, named **out)
{
    char text[24];

    MPL_PASS(mpl_new(ctx, *out, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        snprintf((*out)[b].name, sizeof(*out)[b].name, "%s", mpl_buffer_label(p, b, text));
        (*out)[b].id = b;
    }
    qsort(*out, p->n, sizeof **out, by_name);
    return MPL_OK;
}

static mpl_status diff_buffer(report *self, const mpl_plan_file *a, const mpl_plan_file *b,
                              const named *x, const named *y)
{
    const mpl_problem *p = a->problem, *q = b->problem;

    MPL_PASS(differs_number(self, "bytes", x->name, p->bytes[x->id], q->bytes[y->id]));
    MPL_PASS(differs_number(self, "align", x->name, p->align[x->id], q->align[y->id]));
    MPL_PASS(differs_number(self, "birth", x->name, p->birth[x->id], q->birth[y->id]));
    MPL_PASS(differs_number(self, "death", x->name, p->death[x->id], q->death[y->id]));
    MPL_PASS(
        differs_number(self, "moved", x->name, a->plan->offset[x->id], b->plan->offset[y->id]));
    if (a->plan->block != NULL && b->plan->block != NULL)
        MPL_PASS(
            differs_number(self, "block", x->name, a->plan->block[x->id], b->plan->block[y->id]));
    return MPL_OK;
}

static mpl_status diff_buffers(report *self, const mpl_plan_file *a, const mpl_plan_file *b)
{
    mpl_status st = MPL_OK;
    uint32_t i = 0, k = 0, n = a->problem->n, m = b->problem->n;
    named *x = NULL, *y = NULL;
    char bytes[24];

    MPL_TRY(name_buffers(self->ctx, a->problem, &x));
    MPL_TRY(name_buffers(self->ctx, b->problem, &y));
    while (i < n || k < m) {
        int order = i == n ? 1 : k == m ? -1 : strcmp(x[i].name, y[k].name);

        if (order == 0) {
            MPL_TRY(diff_buffer(self, a, b, &x[i++], &y[k++]));
            continue;
        }
        snprintf(bytes, sizeof bytes, "%" PRIu64,
                 order < 0 ? a->problem->bytes[x[i].id] : b->problem->bytes[y[k].id]);
        if (order < 0)
            MPL_TRY(differs(self, "removed", x[i++].name, bytes, NULL));
        else
            MPL_TRY(differs(self, "added", y[k++].name, NULL, bytes));
    }
out:
    mpl_free_each(self->ctx, x, y);
    return st;
}

/* Reads a file's plan, with the highest end in its first pool. */
static mpl_status read_plan(mpl_ctx *ctx, const char *path, mpl_plan_file *file)
{
    MPL_PASS(mpl_plan_read(ctx, path, file));
    for (mpl_buffer b = 0; b < file->problem->n; b++) {
        uint64_t end;

        if (!mpl_add_bytes(file->plan->offset[b], file->problem->bytes[b], &end))
            return MPL_REFUSE(ctx, "%s: buffer %" PRIu32 " ends beyond 2^64", path, b);
        if (file->problem->pool[b] == 0)
            file->plan->peak_bytes = mpl_max_u64(file->plan->peak_bytes, end);
    }
    return MPL_OK;
}

static mpl_status diff_plans(report *self, const char *path_a, const char *path_b)
{
    mpl_status st = MPL_OK;
    mpl_plan_file a = {0}, b = {0};
    const char *claim[2];

    MPL_TRY(read_plan(self->ctx, path_a, &a));
    MPL_TRY(read_plan(self->ctx, path_b, &b));
    self->planned[0] = a.plan->peak_bytes;
    self->planned[1] = b.plan->peak_bytes;
    claim[0] = mpl_claim_name(a.plan->claim);
    claim[1] = mpl_claim_name(b.plan->claim);
    MPL_TRY(differs_number(self, "planned", "bytes", a.plan->peak_bytes, b.plan->peak_bytes));
    MPL_TRY(differs_number(self, "bound", "bytes", a.plan->bound_bytes, b.plan->bound_bytes));
    if (strcmp(claim[0], claim[1]) != 0)
        MPL_TRY(differs(self, "claim", "plan", claim[0], claim[1]));
    if ((a.problem->before == NULL) != (b.problem->before == NULL))
        MPL_TRY(differs(self, "safety", "plan", a.problem->before == NULL ? "serial" : "parallel",
                        b.problem->before == NULL ? "serial" : "parallel"));
    MPL_TRY(diff_buffers(self, &a, &b));
    if (self->n == 0 && mpl_problem_hash(a.problem) != mpl_problem_hash(b.problem))
        MPL_TRY(
            differs(self, "problem", "order, pairs, fixed places or capacity", "one", "another"));
out:
    mpl_plan_file_fini(self->ctx, &a);
    mpl_plan_file_fini(self->ctx, &b);
    return st;
}

/* ---- rows ---- */

/* Fields that differ between any two runs: times, build and machine. */
static bool is_passing(mpl_field field)
{
    static const mpl_field passing[] = {MPL_FIELD_memplan,   MPL_FIELD_machine, MPL_FIELD_device,
                                        MPL_FIELD_repeat,    MPL_FIELD_turns,   MPL_FIELD_suite,
                                        MPL_FIELD_rss_bytes, MPL_FIELD_holds};
    const char *name = mpl_field_table[field].name, *end = strrchr(name, '_');

    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (passing[i] == field)
            return true;
    return end != NULL && strcmp(end, "_ns") == 0;
}

/* Ratios of times, b to a: geometric mean and largest. */
typedef struct ratios {
    uint32_t n;
    double log_sum, largest;
    char largest_of[200];
} ratios;

static void add_ratio(ratios *self, double a, double b, const char *of)
{
    if (a <= 0 || b <= 0)
        return;
    self->n++;
    self->log_sum += log(b / a);
    if (self->n == 1 || b / a > self->largest) {
        self->largest = b / a;
        snprintf(self->largest_of, sizeof self->largest_of, "%s", of);
    }
}

/* A run for people, "resnet50 serial cpu greedy_size"; text holds 200 bytes. */
static const char *run_label(const mpl_record *row, char *text)
{
    static const mpl_field field[] = {MPL_FIELD_graph, MPL_FIELD_safety, MPL_FIELD_backend};
    char planner[120];
    int n = 0;

    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        const char *part = mpl_record_get_text(row, field[i]);

        if (part != NULL && n < 200)
            n += snprintf(text + n, 200 - (size_t)n, "%.60s ", part);
    }
    if (n < 200)
        snprintf(text + n, 200 - (size_t)n, "%s", mpl_planner_label(row, planner));
    return text;
}

static mpl_status diff_row(report *self, const mpl_record *a, const mpl_record *b, ratios *plan,
                           ratios *run)
{
    char label[200], of[300], x[200], y[200];
    uint64_t plan_a = 0, plan_b = 0;
    int64_t run_a = 0, run_b = 0;

    run_label(a, label);
    for (int i = 0; i < MPL_N_FIELDS; i++) {
        if (is_passing((mpl_field)i) || mpl_record_equal(a, b, (mpl_field)i))
            continue;
        snprintf(of, sizeof of, "%s of %s", mpl_field_table[i].name, label);
        mpl_record_show(a, (mpl_field)i, x, sizeof x);
        mpl_record_show(b, (mpl_field)i, y, sizeof y);
        MPL_PASS(differs(self, "changed", of, x, y));
    }
    if (mpl_record_get_int(a, MPL_FIELD_plan_ns, &plan_a) &&
        mpl_record_get_int(b, MPL_FIELD_plan_ns, &plan_b))
        add_ratio(plan, (double)plan_a, (double)plan_b, label);
    if (mpl_record_median(a, MPL_FIELD_run_ns, &run_a) &&
        mpl_record_median(b, MPL_FIELD_run_ns, &run_b))
        add_ratio(run, (double)run_a, (double)run_b, label);
    return MPL_OK;
}

typedef struct keyed {
    char *key;
    const mpl_record *row;
} keyed;

static int by_key(const void *a, const void *b)
{
    return strcmp(((const keyed *)a)->key, ((const keyed *)b)->key);
}

static void free_keys(mpl_ctx *ctx, keyed *keys, uint32_t n)
{
    for (uint32_t i = 0; keys != NULL && i < n; i++)
        mpl_free(ctx, keys[i].key);
    mpl_free(ctx, keys);
}

/* Reads the last row of each key, sorted by key. */
static mpl_status read_keys(mpl_ctx *ctx, const char *path, mpl_rows *rows, keyed **keys)
{
    MPL_PASS(mpl_rows_read(ctx, path, rows));
    MPL_PASS(mpl_rows_last(ctx, rows));
    MPL_PASS(mpl_new(ctx, *keys, rows->n));
    for (uint32_t i = 0; i < rows->n; i++) {
        (*keys)[i].row = rows->row[i];
        MPL_PASS(mpl_record_key(ctx, rows->row[i], &(*keys)[i].key));
    }
    qsort(*keys, rows->n, sizeof **keys, by_key);
    return MPL_OK;
}

static mpl_status match_rows(report *self, const keyed *a, uint32_t n, const keyed *b, uint32_t m,
                             ratios *plan, ratios *run)
{
    char label[200];

    for (uint32_t i = 0, k = 0; i < n || k < m;) {
        int order = i == n ? 1 : k == m ? -1 : strcmp(a[i].key, b[k].key);

        if (order == 0)
            MPL_PASS(diff_row(self, a[i++].row, b[k++].row, plan, run));
        else if (order < 0)
            MPL_PASS(differs(self, "removed", run_label(a[i++].row, label), "a row", NULL));
        else
            MPL_PASS(differs(self, "added", run_label(b[k++].row, label), NULL, "a row"));
    }
    return MPL_OK;
}

static void print_ratios(const report *self, const char *what, const ratios *t)
{
    if (t->n == 0 || (self->quiet && !self->json))
        return;
    if (self->json)
        fprintf(self->to,
                ", \"%s_time\": {\"n\": %" PRIu32
                ", \"mean_ratio\": %.4f, \"largest_ratio\": %.4f}",
                what, t->n, exp(t->log_sum / t->n), t->largest);
    else
        fprintf(self->to,
                "%s time: %.3f times, geometric mean of %" PRIu32 "; at most %.3f times (%s)\n",
                what, exp(t->log_sum / t->n), t->n, t->largest, mpl_shown(t->largest_of));
}

static mpl_status diff_rows(report *self, const char *path_a, const char *path_b, ratios *plan,
                            ratios *run)
{
    mpl_status st = MPL_OK;
    mpl_rows a = {0}, b = {0};
    keyed *x = NULL, *y = NULL;

    MPL_TRY(read_keys(self->ctx, path_a, &a, &x));
    MPL_TRY(read_keys(self->ctx, path_b, &b, &y));
    MPL_TRY(match_rows(self, x, a.n, y, b.n, plan, run));
out:
    free_keys(self->ctx, x, a.n);
    free_keys(self->ctx, y, b.n);
    mpl_rows_fini(self->ctx, &a);
    mpl_rows_fini(self->ctx, &b);
    return st;
}

/* ---- both ---- */

/* Whether a file is a plan. A plan file has a marker among its first members, which rows lack. An
 * ONNX model may hold a plan, never rows. */
static mpl_status is_plan(mpl_ctx *ctx, const char *path, bool *plan)
{
    mpl_status st = MPL_OK;
    char *text = NULL, *at;
    size_t size, n;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    if (mpl_onnx_note_find(text, size, MPL_PLAN_NOTE, &n) != NULL) {
        *plan = true;
        goto out;
    }
    if (size > 200)
        text[200] = '\0';
    at = strstr(text, "\"kind\"");
    if (at != NULL)
        at += sizeof "\"kind\"" - 1 + strspn(at + sizeof "\"kind\"" - 1, " :");
    *plan = at != NULL && strncmp(at, "\"plan\"", 6) == 0;
out:
    mpl_free(ctx, text);
    return st;
}

/* Prints "A and B: 80 bytes, then 72 (-10.00 %); 3 differences: 1 planned, 2 moved". */
static void print_summary(const report *self, const char *a, const char *b)
{
    char gap[32];

    printf("%s and %s: ", mpl_shown(a), mpl_shown(b));
    if (self->n == 0) {
        printf("the same\n");
        return;
    }
    if (self->planned[0] != self->planned[1])
        printf("%" PRIu64 " bytes, then %" PRIu64 " (%s); ", self->planned[0], self->planned[1],
               mpl_gap_text(self->planned[1], self->planned[0], gap));
    printf("%" PRIu32 " difference%s", self->n, self->n == 1 ? "" : "s");
    for (int i = 0; i < self->n_kinds; i++)
        printf("%s %" PRIu32 " %s%s", i == 0 ? ":" : ",", self->kind[i].n, self->kind[i].what,
               i + 1 == self->n_kinds ? "\n" : "");
}

static mpl_status diff_both(report *self, bool plans, const char *a, const char *b)
{
    ratios plan = {0}, run = {0};

    if (self->json)
        fprintf(self->to, "{\"kind\": \"%s\", \"differences\": [", plans ? "plan" : "rows");
    MPL_PASS(plans ? diff_plans(self, a, b) : diff_rows(self, a, b, &plan, &run));
    if (self->json)
        fprintf(self->to, "]");
    print_ratios(self, "plan", &plan);
    print_ratios(self, "run", &run);
    if (self->json)
        fprintf(self->to, ", \"same\": %s}", self->n == 0 ? "true" : "false");
    return MPL_OK;
}

mpl_status mpl_cmd_diff(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const char *a = options->args.item[0], *b = options->args.item[1];
    report r = {.ctx = ctx, .json = options->json, .quiet = options->quiet};
    char *text = NULL;
    size_t size = 0;
    bool plan_a, plan_b;

    MPL_TRY(is_plan(ctx, a, &plan_a));
    MPL_TRY(is_plan(ctx, b, &plan_b));
    if (plan_a != plan_b)
        MPL_FAIL(ctx, MPL_EINPUT, "diff: %s is a plan, %s is none: two plans, or two files of rows",
                 plan_a ? a : b, plan_a ? b : a);
    if ((r.to = open_memstream(&text, &size)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(diff_both(&r, plan_a, a, b));
    if (fflush(r.to) != 0)
        MPL_TRY(MPL_EMEM);
    if (r.json) {
        MPL_TRY(mpl_copy_text(ctx, options->result, text));
    } else if (!r.quiet) {
        print_summary(&r, a, b);
        fwrite(text, 1, size, stdout);
    }
    if (r.n > 0)
        MPL_FAIL(ctx, MPL_EINVALID, "diff: %s and %s: %" PRIu32 " differences", a, b, r.n);
out:
    if (r.to != NULL)
        fclose(r.to);
    free(text);
    return st;
}
