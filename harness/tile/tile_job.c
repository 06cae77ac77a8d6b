/* tile_job.c -- see tile_job.h. */
#include "harness/tile/tile_job.h"

#include "harness/cli/values.h"
#include "planners/recompute/rerun.h"

#include <stdlib.h>

enum { MOST_PATCHES = 4096 };

/* "1.2x", at least 1. */
static mpl_status parse_factor(mpl_ctx *ctx, const char *text, double *factor)
{
    size_t n = strlen(text);
    char *end = NULL;

    *factor = strtod(text, &end);
    if (n < 2 || n > 10 || strspn(text, "0123456789.") != n - 1 || end != text + n - 1 ||
        *end != 'x' || !(*factor >= 1))
        return MPL_REFUSE(ctx,
                          "--tile: 'work:%.40s' does not say how much work there may be in all, "
                          "such as work:1.2x",
                          text);
    return MPL_OK;
}

mpl_status mpl_tile_parse(mpl_ctx *ctx, const char *text, bool *asked, mpl_tile_ask *out)
{
    *out = (mpl_tile_ask){.goal = MPL_TILE_WORK, .factor = MPL_TILE_AUTO};
    *asked = strcmp(text, "none") != 0;
    if (!*asked || strcmp(text, "auto") == 0)
        return MPL_OK;
    if (strncmp(text, "work:", 5) == 0)
        return parse_factor(ctx, text + 5, &out->factor);
    if (strncmp(text, "budget:", 7) == 0) {
        out->goal = MPL_TILE_BUDGET;
        return mpl_parse_bytes(ctx, "--tile", text + 7, &out->bytes);
    }
    out->goal = MPL_TILE_ROWS;
    if (text[0] < '0' || text[0] > '9')
        return MPL_REFUSE(ctx, "--tile: '%.40s' is none of K, auto, work:1.2x, budget:BYTES, none",
                          text);
    return mpl_parse_count(ctx, "--tile", text, 2, MOST_PATCHES, &out->patches);
}

mpl_status mpl_tile_job(mpl_ctx *ctx, const char *text, const mpl_problem_options *options,
                        mpl_graph **g, mpl_tiled *out)
{
    mpl_status st = MPL_OK;
    int64_t begin = mpl_clock_ns();
    mpl_tile_region *region = NULL;
    mpl_tile_ask ask;
    uint32_t n;
    bool asked;

    MPL_TRY(mpl_tile_parse(ctx, text, &asked, &ask));
    if (!asked)
        goto out;
    MPL_TRY(mpl_given_peak(ctx, *g, options, &out->before_bytes));
    MPL_TRY(mpl_tile_search(ctx, *g, &ask, &n, &region, &out->facts));
    MPL_TRY(mpl_graph_tile(ctx, g, n, region, &out->facts));
    MPL_TRY(mpl_given_peak(ctx, *g, options, &out->peak_bytes));
    out->ns = mpl_clock_ns() - begin + 1;
    if (ask.goal == MPL_TILE_BUDGET && out->peak_bytes > ask.bytes)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "--tile: %" PRIu64 " live bytes were reached, not the %" PRIu64
                 " asked for; the model said %" PRIu64,
                 out->peak_bytes, ask.bytes, out->facts.model_bytes);
out:
    mpl_free(ctx, region);
    return st;
}

void mpl_tile_fields(const char *text, const mpl_tiled *tiled, mpl_record *row)
{
    const mpl_tile_facts *facts = &tiled->facts;

    if (tiled->ns == 0)
        return;
    mpl_record_text(row, MPL_FIELD_tile, text);
    mpl_record_int(row, MPL_FIELD_tile_before_bytes, tiled->before_bytes);
    mpl_record_int(row, MPL_FIELD_tile_model_bytes, facts->model_bytes);
    if (facts->least_bytes > 0)
        mpl_record_int(row, MPL_FIELD_tile_least_bytes, facts->least_bytes);
    mpl_record_int(row, MPL_FIELD_tile_bound_bytes, facts->bound_bytes);
    mpl_record_int(row, MPL_FIELD_regions, facts->n_regions);
    mpl_record_int(row, MPL_FIELD_patches, facts->n_patches);
    mpl_record_real(row, MPL_FIELD_work_factor,
                    facts->plain_work > 0 ? (double)facts->work / (double)facts->plain_work : 1);
    mpl_record_int(row, MPL_FIELD_tile_ns, (uint64_t)tiled->ns);
}
