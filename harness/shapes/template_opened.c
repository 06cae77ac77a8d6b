/* template_opened.c -- opens template files, and certifies them. See template_job.h. */
#include "harness/cli/quote.h"
#include "harness/shapes/template_job.h"

bool mpl_template_named(mpl_ctx *ctx, const char *path)
{
    return mpl_plan_of_kind(ctx, path, "template");
}

mpl_status mpl_template_open(mpl_ctx *ctx, const char *path, mpl_template_opened *out)
{
    memset(out, 0, sizeof *out);
    out->path = path;
    MPL_PASS(mpl_template_read(ctx, path, &out->tmpl, &out->fields_json));
    return mpl_record_read(ctx, path, out->fields_json, strlen(out->fields_json), &out->row);
}

void mpl_template_opened_fini(mpl_ctx *ctx, mpl_template_opened *o)
{
    mpl_template_free(ctx, o->tmpl);
    mpl_record_free(ctx, o->row);
    mpl_free(ctx, o->fields_json);
    memset(o, 0, sizeof *o);
}

static void print_certified(const char *path, const mpl_template *tmpl)
{
    char text[MPL_SHAPE_TEXT];
    uint32_t worst = 0;
    uint64_t most = mpl_template_most(tmpl, &worst);
    const mpl_regret *regret = &tmpl->cell[worst].regret;

    printf("%s: certified: %" PRIu32 " buffers keep apart at every shape, in %" PRIu32 " cell%s",
           mpl_shown(path), tmpl->problem->at->n, tmpl->n_cells, tmpl->n_cells == 1 ? "" : "s");
    if (regret->at != NULL && regret->bound > 0)
        printf("; %.4f of the bound at %s", (double)regret->arena / (double)regret->bound,
               mpl_shape_words(tmpl->problem->exprs, regret->at, text));
    if (most != UINT64_MAX)
        printf(", nowhere more than %.4f", (double)most / (double)MPL_REGRET_ONE);
    printf("\n");
}

mpl_status mpl_template_certify(mpl_ctx *ctx, mpl_options *options, const char *path)
{
    mpl_status st = MPL_OK, judged;
    mpl_template_opened o = {0};
    /* the file's claims about all shapes: a row states only what was proved here */
    static const mpl_field stated[] = {MPL_FIELD_regret_least, MPL_FIELD_regret_at,
                                       MPL_FIELD_regret_most,  MPL_FIELD_regret_corner,
                                       MPL_FIELD_drawn_worst,  MPL_FIELD_drawn_worst_at,
                                       MPL_FIELD_drawn_mean};
    char message[sizeof ctx->message];

    MPL_TRY(mpl_template_open(ctx, path, &o));
    judged = mpl_verify_template(ctx, o.tmpl, MPL_TEMPLATE_BOXES);
    memcpy(message, ctx->message, sizeof message);
    if (options->json) {
        for (size_t i = 0; i < sizeof stated / sizeof *stated; i++)
            mpl_record_null(o.row, stated[i]);
        if (judged == MPL_OK)
            mpl_regret_fields(o.tmpl, o.row);
        else
            mpl_row_fail(o.row, mpl_row_status(judged), message);
        MPL_TRY(mpl_record_write(ctx, o.row, &options->result));
    } else if (judged == MPL_OK && !options->quiet) {
        print_certified(path, o.tmpl);
    }
    if (judged != MPL_OK)
        MPL_FAIL(ctx, judged, "%.100s: %.400s", path, message);
out:
    mpl_template_opened_fini(ctx, &o);
    return st;
}
