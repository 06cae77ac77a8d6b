/* tflm.c -- the plan that TFLite Micro's GreedyMemoryPlanner prints: for each buffer a line with
 * its size, offset, first and last use.
 *
 * Source   tflite-micro, GreedyMemoryPlanner::PrintMemoryPlan, in its two forms:
 *            a (id=10): size=256, offset=512, first_used=1 last_used=3
 *            Planner buffer ID: 10, calculated offset: 512, size required: 256,
 *            first_time_created: 1, last_time_used: 3
 *          Times are operators, the last use included: a life is [first, last + 1) here. The
 *          picture after these lines is skipped, and so is any text of a log before them.
 * Limits   Ids count up from 0, so that a missing line in the middle is noticed; one missing at the
 *          end is not. */
#include "planners/import/base/import_priv.h"

static const struct form {
    const char *id, *size, *offset, *first, *last;
} forms[] = {
    {"(id=", "size=", "offset=", "first_used=", "last_used="},
    {"Planner buffer ID:", "size required:", "calculated offset:", "first_time_created:",
     "last_time_used:"},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static const struct form *form_of(const mpl_lines *lines)
{
    for (int i = 0; i < N_FORMS; i++)
        if (mpl_lines_find(lines, forms[i].id) != NULL)
            return &forms[i];
    return NULL;
}

bool mpl_import_is_tflm(const mpl_import_in *in)
{
    mpl_lines lines = mpl_lines_of(in->text, in->size);

    while (mpl_lines_next(&lines)) {
        const struct form *f = form_of(&lines);

        if (f != NULL && (f == &forms[1] || mpl_lines_find(&lines, forms[0].size) != NULL))
            return true;
    }
    return false;
}

static mpl_status read_line(mpl_ctx *ctx, const char *path, const mpl_lines *lines,
                            const struct form *f, mpl_import_list *list)
{
    mpl_import_buffer b = {.block = MPL_NONE};
    uint64_t id, last;
    char name[24];

    MPL_PASS(mpl_lines_value(ctx, path, lines, f->id, &id));
    MPL_PASS(mpl_lines_value(ctx, path, lines, f->size, &b.bytes));
    MPL_PASS(mpl_lines_value(ctx, path, lines, f->offset, &b.offset));
    MPL_PASS(mpl_lines_value(ctx, path, lines, f->first, &b.birth));
    MPL_PASS(mpl_lines_value(ctx, path, lines, f->last, &last));
    b.death = last + 1; /* both are below 2^63 */
    if (id != list->n)
        return MPL_REFUSE(ctx,
                          "%.200s:%u: buffer %" PRIu64 " where %u was expected; ids rise from 0",
                          path, lines->number, id, list->n);
    if (b.bytes == 0 || last < b.birth)
        return MPL_REFUSE(ctx, "%.200s:%u: buffer %" PRIu64 " has %s", path, lines->number, id,
                          b.bytes == 0 ? "no bytes" : "its last use before its first");
    return mpl_import_add(ctx, list, &b, name, (size_t)snprintf(name, sizeof name, "%" PRIu64, id));
}

mpl_status mpl_import_read_tflm(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_lines lines = mpl_lines_of(in->text, in->size);
    mpl_import_list list = {0};

    while (mpl_lines_next(&lines)) {
        const struct form *f = form_of(&lines);

        if (f != NULL)
            MPL_TRY(read_line(ctx, in->path, &lines, f, &list));
    }
    MPL_TRY(mpl_import_make(ctx, in, &list, out));
out:
    mpl_import_list_fini(ctx, &list);
    return st;
}
