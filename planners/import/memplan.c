/* memplan.c -- memplan's own plan files, and plans in ONNX models, as an import format;
 * planners/plan/plan_file.c reads them. */
#include "graphs/source.h"
#include "planners/import/base/import_priv.h"

bool mpl_import_is_memplan(const mpl_import_in *in)
{
    size_t n;

    return mpl_text_first(in->text, in->size) == '{' ||
           mpl_onnx_note_find(in->text, in->size, MPL_PLAN_NOTE, &n) != NULL;
}

mpl_status mpl_import_read_memplan(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_plan_file file = {0};

    MPL_PASS(mpl_plan_read(ctx, in->path, &file));
    out->problem = file.problem;
    out->plan = file.plan;
    out->fields_json = file.fields_json;
    return MPL_OK;
}
