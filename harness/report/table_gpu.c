/* table_gpu.c -- what a GPU gave to plans, and what it would have given to allocators without one.
 * See table.h. */
#include <stdlib.h>

#include "harness/report/cells.h"
#include "harness/report/table.h"

/* A member of an object in MiB, or over the planned bytes; *bytes 0 where it is not known. */
static bool member(const mpl_record *row, mpl_field field, const char *key, uint64_t *bytes)
{
    char text[32];

    *bytes = 0;
    if (!mpl_record_member_show(row, field, key, text, sizeof text))
        return false;
    *bytes = strtoull(text, NULL, 10);
    return true;
}

static mpl_status member_mib(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field,
                             const char *key)
{
    uint64_t bytes;
    bool known = member(row, field, key, &bytes);

    return mpl_grid_mib(ctx, grid, known, bytes);
}

static mpl_status member_count(mpl_ctx *ctx, mpl_grid *grid, const mpl_record *row, mpl_field field,
                               const char *key)
{
    uint64_t n;

    return member(row, field, key, &n) ? mpl_grid_cell(ctx, grid, "%" PRIu64, n)
                                       : mpl_grid_cell(ctx, grid, "-");
}

static mpl_status allocator_line(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                                 mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    char text[200];
    uint64_t planned = 0, reserved, malloc_ns, pool_ns;
    bool has_planned = mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned);
    bool has_reserved = member(row, MPL_FIELD_allocators, "reserved", &reserved);
    bool has_malloc_ns = member(row, MPL_FIELD_allocators, "malloc_ns", &malloc_ns);
    bool has_pool_ns = member(row, MPL_FIELD_allocators, "pool_ns", &pool_ns);

    (void)rows;
    if (mpl_record_is_null(row, MPL_FIELD_allocators))
        goto out;
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(row, text)));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_planned, planned));
    MPL_TRY(member_mib(ctx, grid, row, MPL_FIELD_allocators, "requested"));
    MPL_TRY(member_mib(ctx, grid, row, MPL_FIELD_allocators, "malloc"));
    MPL_TRY(member_mib(ctx, grid, row, MPL_FIELD_allocators, "pool"));
    MPL_TRY(member_mib(ctx, grid, row, MPL_FIELD_allocators, "allocated"));
    MPL_TRY(mpl_grid_mib(ctx, grid, has_reserved, reserved));
    MPL_TRY(
        mpl_ratio_cell(ctx, grid, has_planned && has_reserved, (double)reserved, (double)planned));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_malloc_ns, (int64_t)malloc_ns));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_pool_ns, (int64_t)pool_ns));
out:
    return st;
}

static mpl_status gpu_line(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                           mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    char text[200];
    uint64_t power;
    int64_t run = 0, replay = 0;
    bool has_run = mpl_record_median(row, MPL_FIELD_run_ns, &run);
    bool has_replay = mpl_record_median(row, MPL_FIELD_replay_ns, &replay);
    bool has_power = member(row, MPL_FIELD_clocks, "power_mw", &power);

    (void)rows;
    if (mpl_record_is_null(row, MPL_FIELD_math))
        goto out;
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_graph_label(row, text)));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_safety));
    MPL_TRY(mpl_grid_cell(ctx, grid, "%s", mpl_planner_label(row, text)));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_math));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_algorithms));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_planned_bytes));
    MPL_TRY(mpl_mib_cell(ctx, grid, row, MPL_FIELD_workspace_bytes));
    MPL_TRY(member_mib(ctx, grid, row, MPL_FIELD_device_memory, "asked"));
    MPL_TRY(member_mib(ctx, grid, row, MPL_FIELD_device_memory, "taken"));
    MPL_TRY(member_count(ctx, grid, row, MPL_FIELD_device_memory, "allocations"));
    MPL_TRY(mpl_text_cell(ctx, grid, row, MPL_FIELD_outputs));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_run, run));
    MPL_TRY(mpl_grid_ms(ctx, grid, has_replay, replay));
    MPL_TRY(member_count(ctx, grid, row, MPL_FIELD_clocks, "core_mhz"));
    MPL_TRY(has_power ? mpl_grid_cell(ctx, grid, "%" PRIu64, power / 1000)
                      : mpl_grid_cell(ctx, grid, "-"));
out:
    return st;
}

mpl_status mpl_table_allocators(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                                FILE *to, bool tsv)
{
    static const char *const head[] = {"graph",
                                       "planner",
                                       "planned MiB",
                                       "requested MiB",
                                       "cudaMalloc MiB",
                                       "cudaMallocAsync MiB",
                                       "caching MiB",
                                       "reserved MiB",
                                       "reserved by planned",
                                       MPL_TIMED "cudaMalloc ms",
                                       MPL_TIMED "cudaMallocAsync ms"};

    return mpl_table_lines(ctx, kind, rows, to, tsv, sizeof head / sizeof *head, head,
                           allocator_line);
}

mpl_status mpl_table_gpu(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                         bool tsv)
{
    static const char *const head[] = {"graph",
                                       "safety",
                                       "planner",
                                       "products",
                                       "algorithms",
                                       "planned MiB",
                                       "workspace MiB",
                                       "asked MiB",
                                       "taken MiB",
                                       "calls in runs",
                                       "outputs",
                                       MPL_TIMED "run ms",
                                       MPL_TIMED "replayed ms",
                                       MPL_TIMED "core MHz",
                                       MPL_TIMED "W"};

    return mpl_table_lines(ctx, kind, rows, to, tsv, sizeof head / sizeof *head, head, gpu_line);
}
