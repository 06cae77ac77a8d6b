/* cmd_certify.c -- memplan certify: runs only the checker of certificates. */
#include "harness/cli/command.h"
#include "harness/job/job.h"
#include "harness/residency/residency_job.h"
#include "harness/shapes/template_job.h"
#include "planners/verify/certify.h"

static void print_proved(const char *path, const mpl_plan_file *file, const mpl_certified *proved)
{
    const char *claim = mpl_claim_name(file->plan->claim),
               *pool = file->problem->pool_name[proved->pool];

    if (proved->evidence == MPL_EVIDENCE_REFUTATION && proved->bound == UINT64_MAX)
        printf("%s: certified: %s: pool '%s' has no plan of any height: %" PRIu64
               " records refute all\n",
               mpl_shown(path), claim, mpl_shown(pool), proved->n_steps);
    else if (proved->evidence == MPL_EVIDENCE_REFUTATION)
        printf("%s: certified: %s: pool '%s' needs %" PRIu64 " bytes or more: %" PRIu64
               " records refute one byte less\n",
               mpl_shown(path), claim, mpl_shown(pool), proved->bound, proved->n_steps);
    else if (proved->evidence == MPL_EVIDENCE_CLIQUE)
        printf("%s: certified: %s: pool '%s' needs %" PRIu64 " bytes or more: %" PRIu32
               " buffers conflict pairwise\n",
               mpl_shown(path), claim, mpl_shown(pool), proved->bound, file->plan->n_witness);
    else if (proved->evidence == MPL_EVIDENCE_PRICES)
        printf("%s: certified: %s: the buffers of pool '%s' cost %" PRIu64
               " or more: the least that a memory with room asks for each\n",
               mpl_shown(path), claim, mpl_shown(pool), proved->bound);
    else
        printf("%s: nothing to certify: the plan claims to be %s, and its bound of %" PRIu64
               " bytes has no certificate\n",
               mpl_shown(path), claim, file->plan->bound_bytes);
}

/* The file's row as JSON, with the proof of its bound. refused: why nothing is proved, or NULL. */
static mpl_status write_row(mpl_ctx *ctx, const mpl_plan_file *file, const mpl_certified *proved,
                            const char *refused, mpl_record *row, char **json)
{
    static const char *const kinds[] = {NULL, "peak_live", "search", NULL};

    if (refused != NULL)
        mpl_row_fail(row, "refused", refused);
    else
        mpl_record_text(row, MPL_FIELD_status, "ok");
    mpl_record_text(row, MPL_FIELD_claim, mpl_claim_name(file->plan->claim));
    mpl_record_null(row, MPL_FIELD_bound_bytes);
    if (kinds[proved->evidence] != NULL && proved->bound != UINT64_MAX)
        mpl_record_int(row, MPL_FIELD_bound_bytes, proved->bound);
    mpl_record_text(row, MPL_FIELD_bound_kind, kinds[proved->evidence]);
    return mpl_record_write(ctx, row, json);
}

mpl_status mpl_cmd_certify(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK, judged;
    bool alone = options->args.n == 1;
    const char *path = options->args.item[alone ? 0 : 1];
    mpl_plan_file file = {0};
    mpl_record *row = NULL;
    mpl_job job = {0};
    mpl_certified proved = {0};
    char message[sizeof ctx->message], name[MPL_OPTION_TEXT];

    for (mpl_option_id i = 0; alone && i < MPL_N_OPTIONS; i++)
        if (options->given[i] && i != MPL_OPT_json && i != MPL_OPT_quiet)
            MPL_FAIL(ctx, MPL_EINPUT, "certify: --%s is of a GRAPH, and none is given",
                     mpl_option_name(i, name));
    if (mpl_plan_of_kind(ctx, path, "residency")) {
        if (!alone)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "certify: %s is certified by itself; run GRAPH --plan %s compares it with a "
                     "graph",
                     path, path);
        MPL_TRY(mpl_residency_certify(ctx, options, path));
        goto out;
    }
    if (mpl_template_named(ctx, path)) {
        if (!alone)
            MPL_FAIL(ctx, MPL_EINPUT,
                     "certify: %s is a template, certified by itself; run GRAPH --plan %s --shapes "
                     "N compares it with a graph",
                     path, path);
        MPL_TRY(mpl_template_certify(ctx, options, path));
        goto out;
    }
    if (alone) {
        MPL_TRY(mpl_plan_read(ctx, path, &file));
        MPL_TRY(file.fields_json == NULL
                    ? mpl_record_new(ctx, &row)
                    : mpl_record_read(ctx, path, file.fields_json, strlen(file.fields_json), &row));
    } else {
        MPL_TRY(mpl_job_open_plan(ctx, options, options->args.item[0], path, &file, &row, &job));
    }
    judged = mpl_certify(ctx, file.problem, file.plan, &proved);
    if (judged != MPL_OK && judged != MPL_EINVALID)
        MPL_TRY(judged);
    memcpy(message, ctx->message, sizeof message);
    if (judged != MPL_OK)
        proved = (mpl_certified){0};
    if (options->json)
        MPL_TRY(write_row(ctx, &file, &proved, judged != MPL_OK ? message : NULL, row,
                          &options->result));
    else if (judged == MPL_OK && !options->quiet)
        print_proved(path, &file, &proved);
    if (judged != MPL_OK)
        MPL_FAIL(ctx, judged, "%.100s: %.400s", path, message);
out:
    mpl_plan_file_fini(ctx, &file);
    mpl_record_free(ctx, row);
    mpl_job_fini(ctx, &job);
    return st;
}
