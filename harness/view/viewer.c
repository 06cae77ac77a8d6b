/* viewer.c -- a plan as one HTML page. See viewer.h; the page itself is viewer.html. */
#include "harness/view/viewer.h"
#include "graphs/problem/bounds/bounds.h"

#include <stdlib.h>

#include "harness/cli/quote.h"

static const char page[] =
#include "viewer_gen.h"
    ;

enum { NAME_BYTES = 80 };

/* ---- the axis across ---- */

/* Lengths of the longest chains before each buffer, in an order that respects the relation. */
static mpl_status chain_depths(mpl_ctx *ctx, const mpl_before *before, uint32_t *depth)
{
    mpl_status st = MPL_OK;
    uint32_t *waiting = NULL, *ready = NULL, n = 0;

    MPL_TRY(mpl_new_each(ctx, before->n, waiting, ready));
    for (uint32_t k = 0; k < before->red_begin[before->n]; k++)
        waiting[before->red_item[k]]++;
    for (mpl_buffer b = 0; b < before->n; b++)
        if (waiting[b] == 0)
            ready[n++] = b;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = before->red_begin[ready[i]]; k < before->red_begin[ready[i] + 1]; k++) {
            mpl_buffer next = before->red_item[k];

            if (--waiting[next] > 0)
                continue;
            /* The queue is sorted by depth, so the last predecessor is the deepest. */
            depth[next] = depth[ready[i]] + 1;
            ready[n++] = next;
        }
    mpl_assert(n == before->n);
out:
    mpl_free_each(ctx, waiting, ready);
    return st;
}

static mpl_status across_chains(mpl_ctx *ctx, const mpl_problem *p, mpl_spans_across *across)
{
    const mpl_before *before = p->before;

    MPL_PASS(chain_depths(ctx, before, across->from));
    across->n_steps = 1;
    for (mpl_buffer b = 0; b < p->n; b++)
        across->n_steps = across->n_steps > across->from[b] ? across->n_steps : across->from[b] + 1;
    for (mpl_buffer b = 0; b < p->n; b++) {
        across->to[b] = across->n_steps;
        for (uint32_t k = before->red_begin[b]; k < before->red_begin[b + 1]; k++) {
            uint32_t next = across->from[before->red_item[k]];

            across->to[b] = next < across->to[b] ? next : across->to[b];
        }
    }
    across->unit = "depth [buffers in the longest chain before]";
    across->about =
        "Across: from the longest chain of buffers before this one to the first buffer that "
        "must come "
        "after it. There is "
        "no time: buffers that do not stand above one another may still be alive at once.";
    return MPL_OK;
}

mpl_status mpl_across(mpl_ctx *ctx, const mpl_problem *p, mpl_spans_across *out)
{
    mpl_status st = MPL_OK;
    mpl_spans_across a = {
        .n_steps = p->n_steps, .unit = "time [step]", .about = "Across: steps of the order."};

    MPL_TRY(mpl_new_each(ctx, p->n, a.from, a.to));
    if (p->before != NULL) {
        MPL_TRY(across_chains(ctx, p, &a));
    } else if (p->n > 0) {
        memcpy(a.from, p->birth, p->n * sizeof *a.from);
        memcpy(a.to, p->death, p->n * sizeof *a.to);
    }
    *out = a;
    memset(&a, 0, sizeof a);
out:
    mpl_across_fini(ctx, &a);
    return st;
}

void mpl_across_fini(mpl_ctx *ctx, mpl_spans_across *across)
{
    mpl_free_each(ctx, across->from, across->to);
    memset(across, 0, sizeof *across);
}

/* ---- the data ---- */

/* Shortens a long name in the middle, at UTF-8 boundaries. */
static const char *short_name(const char *name, char text[NAME_BYTES + 8])
{
    size_t n = strlen(name), head = NAME_BYTES / 2, tail = n - NAME_BYTES / 2;

    if (n <= NAME_BYTES)
        return name;
    while (head > 0 && ((unsigned char)name[head] & 0xc0) == 0x80)
        head--;
    while (tail < n && ((unsigned char)name[tail] & 0xc0) == 0x80)
        tail++;
    snprintf(text, NAME_BYTES + 8, "%.*s..%s", (int)head, name, name + tail);
    return text;
}

static void put_u32s(FILE *to, const char *key, uint32_t n, const uint32_t *item)
{
    fprintf(to, ",\n%s: [", key);
    for (uint32_t i = 0; i < n; i++)
        fprintf(to, "%s%" PRIu32, i > 0 ? "," : "", item[i]);
    fputc(']', to);
}

static void put_u64s(FILE *to, const char *key, uint32_t n, const uint64_t *item)
{
    fprintf(to, ",\n%s: [", key);
    for (uint32_t i = 0; i < n; i++)
        fprintf(to, "%s%" PRIu64, i > 0 ? "," : "", item[i]);
    fputc(']', to);
}

static void put_names(FILE *to, const mpl_problem *p)
{
    char label[24], cut[NAME_BYTES + 8];

    fputs(",\nname: [", to);
    for (mpl_buffer b = 0; b < p->n; b++) {
        fputs(b > 0 ? "," : "", to);
        mpl_put_script(to, short_name(mpl_buffer_label(p, b, label), cut));
    }
    fputs("],\npools: [", to);
    for (uint32_t k = 0; k < p->n_pools; k++) {
        fputs(k > 0 ? "," : "", to);
        mpl_put_script(to, p->pool_name[k]);
    }
    fputc(']', to);
}

/* Writes in-place pairs, and under parallel the transitive reduction. */
static void put_relations(FILE *to, const mpl_problem *p)
{
    fputs(",\npairs: [", to);
    for (uint32_t k = 0; k < p->n_in_place; k++)
        fprintf(to, "%s[%" PRIu32 ",%" PRIu32 "]", k > 0 ? "," : "", p->in_place_in[k],
                p->in_place_out[k]);
    fputs("],\nafter: ", to);
    for (mpl_buffer b = 0; p->before != NULL && b < p->n; b++) {
        fputs(b == 0 ? "[" : ",", to);
        for (uint32_t k = p->before->red_begin[b]; k < p->before->red_begin[b + 1]; k++)
            fprintf(to, "%c%" PRIu32, k == p->before->red_begin[b] ? '[' : ',',
                    p->before->red_item[k]);
        fputs(p->before->red_begin[b] == p->before->red_begin[b + 1] ? "[]" : "]", to);
    }
    fputs(p->before == NULL ? "null" : p->n > 0 ? "]" : "[]", to);
}

static void put_after(FILE *to, const mpl_viewer_after *after)
{
    fputs("{kind: ", to);
    mpl_put_script(to, after->kind);
    fputs(", command: ", to);
    mpl_put_script(to, after->command);
    fputs(", what: ", to);
    mpl_put_script(to, after->what);
    fprintf(to, ", planned: %" PRIu64 ", steps: %" PRIu32 ", box: [", after->planned_bytes,
            after->n_steps);
    for (uint32_t i = 0; i < after->n; i++)
        fprintf(to, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, i > 0 ? "," : "",
                after->box[i].from, after->box[i].to, after->box[i].offset, after->box[i].bytes);
    fputs("]}", to);
}

static void put_extra(FILE *to, const mpl_viewer_extra *extra)
{
    put_u32s(to, "peak", extra->n_peak, extra->peak);
    fputs(",\nafterwards: [", to);
    for (uint32_t i = 0; i < extra->n_after; i++) {
        fputs(i > 0 ? ",\n" : "", to);
        put_after(to, &extra->after[i]);
    }
    fputc(']', to);
}

static mpl_status put_data(mpl_ctx *ctx, FILE *to, const char *planner, const mpl_job *job,
                           const mpl_plan *plan, const mpl_viewer_extra *extra)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = job->problem;
    mpl_spans_across across = {0};
    uint64_t *live = NULL, peak;
    uint32_t n_live = p->before == NULL ? p->n_steps : 0;

    MPL_TRY(mpl_across(ctx, p, &across));
    MPL_TRY(mpl_new(ctx, live, n_live));
    if (p->before == NULL)
        MPL_TRY(mpl_peak_live(ctx, p, 0, &peak, live, NULL));
    fputs("{planner: ", to);
    mpl_put_script(to, planner);
    fprintf(to,
            ", safety: \"%s\", claim: \"%s\", bound: %" PRIu64 ", steps: %" PRIu32
            ",\nunit: \"%s\",\naxis: \"%s\"",
            p->before != NULL ? "parallel" : "serial", mpl_claim_name(plan->claim),
            job->bound_bytes, across.n_steps, across.unit, across.about);
    put_u64s(to, "planned", p->n_pools, plan->pool_bytes);
    put_u64s(to, "bytes", p->n, p->bytes);
    put_u64s(to, "offset", p->n, plan->offset);
    put_u32s(to, "from", p->n, across.from);
    put_u32s(to, "to", p->n, across.to);
    put_u32s(to, "align", p->n, p->align);
    put_u32s(to, "pool", p->n, p->pool);
    if (plan->block != NULL)
        put_u32s(to, "block", p->n, plan->block);
    else
        fputs(",\nblock: null", to);
    put_u64s(to, "live", n_live, live);
    put_names(to, p);
    put_relations(to, p);
    put_extra(to, extra != NULL ? extra : &(mpl_viewer_extra){0});
    fputs("\n}", to);
out:
    mpl_free(ctx, live);
    mpl_across_fini(ctx, &across);
    return st;
}

mpl_status mpl_viewer_write(mpl_ctx *ctx, FILE *to, const char *title, const char *planner,
                            const mpl_job *job, const mpl_plan *plan, const mpl_viewer_extra *extra)
{
    static const char title_mark[] = "@TITLE@", data_mark[] = "@DATA@";

    for (const char *at = page; *at != '\0';) {
        if (strncmp(at, title_mark, strlen(title_mark)) == 0) {
            mpl_put_markup(to, title);
            at += strlen(title_mark);
        } else if (strncmp(at, data_mark, strlen(data_mark)) == 0) {
            MPL_PASS(put_data(ctx, to, planner, job, plan, extra));
            at += strlen(data_mark);
        } else {
            fputc(*at++, to);
        }
    }
    return MPL_OK;
}
