/* export_trace.c -- a plan as Chrome's trace events, which Perfetto also reads. A pool is a
 * process, an offset is a thread, and a step is a microsecond. Parallel plans have no steps; depth
 * in the partial order stands for time (viewer.h). The trace says so in otherData and as the label
 * of each process.
 *
 * Source   "Trace Event Format", the events M (metadata), X (complete) and C (counter) */
#include "graphs/core/file.h"
#include "graphs/problem/bounds/bounds.h"
#include "harness/export/export.h"
#include "harness/view/viewer.h"

/* Last step at which the trace shows a buffer. If another takes it over in place, it ends where
 * that one begins. */
static uint32_t shown_end(const mpl_problem *p, const mpl_plan *plan,
                          const mpl_spans_across *across, mpl_buffer b)
{
    uint32_t end = across->to[b];

    for (uint32_t k = 0; k < p->n_in_place; k++) {
        mpl_buffer next = p->in_place_out[k];

        if (p->in_place_in[k] == b && plan->offset[next] == plan->offset[b] &&
            across->from[next] < end && across->from[next] > across->from[b])
            end = across->from[next];
    }
    return end;
}

static mpl_status put_pools(mpl_ctx *ctx, const mpl_problem *p, const mpl_spans_across *across,
                            FILE *to)
{
    mpl_status st = MPL_OK;
    char *name = NULL, *unit = NULL;

    MPL_TRY(mpl_json_quote(ctx, across->unit, &unit));
    for (uint32_t k = 0; k < p->n_pools; k++) {
        MPL_TRY(mpl_json_quote(ctx, p->pool_name[k], &name));
        fprintf(to,
                "{\"ph\": \"M\", \"pid\": %" PRIu32
                ", \"name\": \"process_name\", \"args\": {\"name\": %s}},\n",
                k, name);
        fprintf(to,
                "{\"ph\": \"M\", \"pid\": %" PRIu32
                ", \"name\": \"process_labels\", \"args\": {\"labels\": %s}}%s\n",
                k, unit, k + 1 < p->n_pools || p->n > 0 ? "," : "");
        mpl_free(ctx, name);
        name = NULL;
    }
out:
    mpl_free_each(ctx, name, unit);
    return st;
}

static mpl_status put_buffers(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                              const mpl_spans_across *across, FILE *to)
{
    mpl_status st = MPL_OK;
    char *quoted = NULL, label[24];

    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_TRY(mpl_json_quote(ctx, mpl_buffer_label(p, b, label), &quoted));
        fprintf(to,
                "{\"ph\": \"X\", \"pid\": %" PRIu32 ", \"tid\": %" PRIu64 ", \"ts\": %" PRIu32
                ", \"dur\": %" PRIu32 ", \"name\": %s, \"args\": {\"bytes\": %" PRIu64
                ", \"offset\": %" PRIu64 "}}%s\n",
                p->pool[b], plan->offset[b], across->from[b],
                shown_end(p, plan, across, b) - across->from[b], quoted, p->bytes[b],
                plan->offset[b], b + 1 < p->n || p->before == NULL ? "," : "");
        mpl_free(ctx, quoted);
        quoted = NULL;
    }
out:
    mpl_free(ctx, quoted);
    return st;
}

/* Only a serial plan has live bytes at a step. */
static mpl_status put_live(mpl_ctx *ctx, const mpl_problem *p, FILE *to)
{
    mpl_status st = MPL_OK;
    uint64_t *live = NULL, peak;

    if (p->before != NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, live, p->n_steps));
    MPL_TRY(mpl_peak_live(ctx, p, 0, &peak, live, NULL));
    for (uint32_t s = 0; s < p->n_steps; s++)
        fprintf(to,
                "{\"ph\": \"C\", \"pid\": 0, \"ts\": %" PRIu32
                ", \"name\": \"live bytes\", \"args\": {\"bytes\": %" PRIu64 "}}%s\n",
                s, live[s], s + 1 < p->n_steps ? "," : "");
out:
    mpl_free(ctx, live);
    return st;
}

mpl_status mpl_export_trace(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = what->job->problem;
    mpl_spans_across across = {0};
    mpl_new_file file = {0};
    char *unit = NULL, *about = NULL;

    MPL_TRY(mpl_across(ctx, p, &across));
    MPL_TRY(mpl_json_quote(ctx, across.unit, &unit));
    MPL_TRY(mpl_json_quote(ctx, across.about, &about));
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fprintf(file.stream, "{\"traceEvents\": [\n");
    MPL_TRY(put_pools(ctx, p, &across, file.stream));
    MPL_TRY(put_buffers(ctx, p, what->plan, &across, file.stream));
    MPL_TRY(put_live(ctx, p, file.stream));
    fprintf(file.stream,
            "], \"displayTimeUnit\": \"ns\", \"otherData\": {\"safety\": \"%s\", \"a microsecond "
            "is\": %s, "
            "\"about\": %s}}\n",
            p->before != NULL ? "parallel" : "serial", unit, about);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    mpl_free_each(ctx, unit, about);
    mpl_across_fini(ctx, &across);
    return st;
}
