/* explain_page.c -- an explanation as the viewer's page. See explain.h. */
#include "graphs/core/file.h"
#include "graphs/core/size.h"
#include "harness/explain/explain.h"

enum { AFTER_SHOWN = 12 }; /* suggestions whose plans a page shows */

/* The buffers at the highest point of pool 0's first arena. */
static void fill_peak(const mpl_highest *highest, mpl_buffer *peak, uint32_t *n)
{
    for (uint32_t i = 0; i < highest->n; i++)
        if (highest->portion[i].kind < MPL_PORTION_alignment)
            peak[(*n)++] = highest->portion[i].buffer;
}

static void fill_after(const mpl_explained *explained, mpl_viewer_after *after, uint32_t *n)
{
    for (; *n < explained->n_advice && *n < AFTER_SHOWN; ++*n) {
        const mpl_advice *advice = &explained->advice[*n];
        const mpl_trial *trial = &explained->trial[advice->trial];

        after[*n] =
            (mpl_viewer_after){.kind = mpl_advice_name[advice->kind],
                               .command = advice->command,
                               .what = advice->what,
                               .planned_bytes = advice->planned_bytes,
                               .n_steps = trial->n_steps,
                               .n = trial->n_boxes,
                               .box = explained->box + (size_t)advice->trial * MPL_AFTER_MOST};
    }
}

mpl_status mpl_explained_page(mpl_ctx *ctx, const mpl_explained *explained, const char *path)
{
    mpl_status st = MPL_OK;
    const mpl_job *job = &explained->made.job;
    mpl_viewer_after after[AFTER_SHOWN];
    mpl_viewer_extra extra = {.after = after};
    mpl_buffer *peak = NULL;
    mpl_new_file file = {0};
    char title[300];

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    MPL_TRY(mpl_new(ctx, peak, explained->highest[0].n));
    fill_peak(&explained->highest[0], peak, &extra.n_peak);
    extra.peak = peak;
    fill_after(explained, after, &extra.n_after);
    snprintf(title, sizeof title, "%.150s, explained: %s",
             explained->graph != NULL ? explained->graph : job->text,
             mpl_sized(explained->made.plan->peak_bytes).text);
    MPL_TRY(mpl_viewer_write(ctx, file.stream, title,
                             mpl_record_text_or(explained->made.row, MPL_FIELD_planner, "plan"),
                             job, explained->made.plan, &extra));
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    mpl_free(ctx, peak);
    return st;
}
