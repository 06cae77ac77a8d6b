/* against.c -- what a plan is held to by --against: a baseline, another plan, or the plan of the
 * same name in a folder. See gate.h. */
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cli/carried.h"
#include "harness/gate/gate.h"

static mpl_status baseline_path(mpl_ctx *ctx, const char *text, char path[400])
{
    snprintf(path, 400, "%s", text);
    if (access(path, F_OK) == 0)
        return MPL_OK;
    snprintf(path, 400, "results/baselines/%s.json", text);
    if (access(path, F_OK) != 0 && !mpl_is_carried(path))
        return MPL_REFUSE(
            ctx, "--against: no file '%.150s', and no %.150s; memplan baseline update makes one",
            text, path);
    return MPL_OK;
}

/* Finds the plan's row in the baseline. Its optimum is read there, not searched for again. */
static mpl_status look_up(mpl_ctx *ctx, const char *text, const mpl_record *row, const char *label,
                          mpl_reference *out)
{
    mpl_status st = MPL_OK;
    mpl_rows rows = {0};
    const mpl_record *was;
    const char *hash = mpl_record_get_text(row, MPL_FIELD_problem_hash);
    mpl_optimum *optimum = &out->optimum;
    char path[400];

    MPL_TRY(baseline_path(ctx, text, path));
    MPL_TRY(mpl_baseline_read(ctx, path, &rows));
    if ((was = mpl_baseline_find(&rows, hash, label)) == NULL)
        MPL_FAIL(
            ctx, MPL_EINPUT,
            "%.150s: no plan by %s of this problem (hash %s); memplan baseline update records one",
            path, label, hash);
    mpl_record_get_int(was, MPL_FIELD_planned_bytes, &out->planned_bytes);
    mpl_record_get_int(was, MPL_FIELD_plan_ns, &out->plan_ns);
    mpl_record_get_int(was, MPL_FIELD_bound_bytes, &optimum->bound_bytes);
    optimum->bound_kind = "baseline";
    optimum->best_bytes = UINT64_MAX;
    optimum->proved = mpl_record_get_int(was, MPL_FIELD_optimum_bytes, &optimum->best_bytes);
    if (optimum->proved)
        optimum->bound_bytes = optimum->best_bytes;
    optimum->by = "the baseline";
    out->searched = true;
out:
    mpl_rows_fini(ctx, &rows);
    return st;
}

/* Verifies the other plan. GRAPH is for formats that have offsets alone. */
static mpl_status open_other(mpl_ctx *ctx, mpl_options options, const char *path,
                             mpl_reference *out)
{
    mpl_status st = MPL_OK;
    const mpl_import_format *format = mpl_plan_format(ctx, path);
    bool own = format != NULL && strcmp(format->name, "memplan") == 0;
    mpl_import import = {0};
    mpl_record *row = NULL;
    mpl_job job = {0};
    char name[200], why[sizeof ctx->message];

    MPL_TRY(mpl_gate_open_plan(ctx, &options,
                               options.args.n > 0 && !own ? options.args.item[0] : NULL, path, name,
                               &import, &row, &job));
    if ((st = mpl_job_verify_file(ctx, &job, import.plan)) == MPL_EINVALID) {
        snprintf(why, sizeof why, "%s", ctx->message);
        MPL_FAIL(ctx, MPL_EINPUT, "--against: %.200s is no valid plan: %.300s", path, why);
    }
    MPL_TRY(st);
    out->planned_bytes = mpl_gate_bytes(&import, import.plan);
    mpl_record_get_int(row, MPL_FIELD_plan_ns, &out->plan_ns);
out:
    mpl_job_fini(ctx, &job);
    mpl_record_free(ctx, row);
    mpl_import_fini(ctx, &import);
    return st;
}

mpl_status mpl_gate_against(mpl_ctx *ctx, const mpl_options *options, const mpl_record *row,
                            const char *label, mpl_reference *out)
{
    const char *text = options->against, *base;
    struct stat about;
    char path[4096];

    *out = (mpl_reference){.optimum = {.best_bytes = UINT64_MAX}};
    snprintf(path, sizeof path, "%s", text);
    if (stat(text, &about) == 0 && S_ISDIR(about.st_mode)) {
        if (options->plan == NULL)
            return MPL_REFUSE(ctx, "--against: %.200s is a folder, of plans beside --plan FILE",
                              text);
        base = strrchr(options->plan, '/');
        snprintf(path, sizeof path, "%s/%s", text, base != NULL ? base + 1 : options->plan);
    }
    if (strcmp(path, text) == 0 &&
        (access(path, R_OK) != 0 || mpl_is_baseline(path) || mpl_plan_format(ctx, path) == NULL))
        return look_up(ctx, text, row, label, out);
    return open_other(ctx, *options, path, out);
}
