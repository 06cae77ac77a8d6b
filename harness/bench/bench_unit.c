/* bench_unit.c -- units of a bench: their shards, finished runs and rows. See bench.h. */
#include <errno.h>
#include <stdlib.h>

#include "harness/bench/bench.h"

/* Runs compared with a peer, or interleaved, stay in one shard. */
bool mpl_bench_is_mine(const mpl_bench *bench, uint32_t unit, uint32_t backend, uint32_t p)
{
    uint64_t group = (uint64_t)(unit / bench->turns) * bench->n_backends + backend;

    return mpl_shard_of(bench->n_peers > 0 || bench->turns > 1 ? group : group * bench->n_specs + p,
                        bench->n_shards) == bench->shard;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Whether a row of the file can be kept. One executed beside other workers has no times and is
 * measured again by a single worker. */
static bool will_do(const mpl_bench *bench, const mpl_record *row)
{
    return mpl_record_is(row, MPL_FIELD_status, "ok") &&
           (bench->options->jobs > 1 || mpl_record_is_null(row, MPL_FIELD_outputs) ||
            !mpl_record_is_null(row, MPL_FIELD_run_ns));
}

mpl_status mpl_bench_read_done(mpl_bench *bench)
{
    MPL_PASS(mpl_rows_read(bench->ctx, bench->file.path, &bench->old));
    MPL_PASS(mpl_rows_last(bench->ctx, &bench->old));
    MPL_PASS(mpl_new(bench->ctx, bench->done, bench->old.n));
    for (uint32_t i = 0; i < bench->old.n; i++)
        if (will_do(bench, bench->old.row[i])) {
            MPL_PASS(mpl_record_key(bench->ctx, bench->old.row[i], &bench->done[bench->n_done]));
            bench->n_done++;
        }
    qsort(bench->done, bench->n_done, sizeof *bench->done, by_text);
    return MPL_OK;
}

mpl_status mpl_bench_is_done(mpl_bench *bench, const mpl_record *row, bool *found)
{
    mpl_status st = MPL_OK;
    char *key = NULL;

    *found = false;
    if (bench->n_done == 0)
        goto out;
    MPL_TRY(mpl_record_key(bench->ctx, row, &key));
    *found = bsearch(&key, bench->done, bench->n_done, sizeof *bench->done, by_text) != NULL;
out:
    mpl_free(bench->ctx, key);
    return st;
}

/* Sends a worker's row to the parent: "BACKEND PLANNER OLD {row}". */
static mpl_status tell(mpl_bench *bench, mpl_bench_run run, bool old, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    char *json = NULL;

    MPL_TRY(mpl_record_write(bench->ctx, row, &json));
    fprintf(bench->crew, "%" PRIu32 " %" PRIu32 " %d %s\n", run.backend, run.planner, old, json);
    if (fflush(bench->crew) != 0)
        MPL_FAIL(bench->ctx, MPL_EMEM, "a row could not be handed on: %s", strerror(errno));
out:
    mpl_free(bench->ctx, json);
    return st;
}

mpl_status mpl_bench_take_done(mpl_bench *bench, mpl_bench_run run, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    char *key = NULL, *other = NULL;
    mpl_record *copy = NULL;
    bool found = false;

    MPL_TRY(mpl_record_key(bench->ctx, row, &key));
    for (uint32_t i = 0; !found && i < bench->old.n; i++) {
        mpl_free(bench->ctx, other);
        other = NULL;
        MPL_TRY(mpl_record_key(bench->ctx, bench->old.row[i], &other));
        found = strcmp(other, key) == 0;
        if (!found)
            continue;
        MPL_TRY(mpl_record_copy(bench->ctx, bench->old.row[i], &copy));
        if (bench->crew != NULL)
            MPL_TRY(tell(bench, run, true, copy));
        MPL_TRY(mpl_rows_take(bench->ctx, &bench->rows, &copy));
    }
out:
    mpl_record_free(bench->ctx, copy);
    mpl_free_each(bench->ctx, key, other);
    return st;
}

mpl_status mpl_bench_keep_row(mpl_bench *bench, mpl_record **row)
{
    mpl_status st = MPL_OK;
    bool ok = mpl_record_is(*row, MPL_FIELD_status, "ok");
    const char *reason = mpl_record_get_text(*row, MPL_FIELD_reason);
    char *json = NULL;

    MPL_TRY(mpl_row_file_append(bench->ctx, &bench->file, *row));
    if (!ok)
        mpl_progress_line(
            &bench->progress, "memplan: %s, %s: %s: %s", mpl_record_get_text(*row, MPL_FIELD_graph),
            mpl_record_get_text(*row, MPL_FIELD_planner),
            mpl_record_get_text(*row, MPL_FIELD_status), reason != NULL ? reason : "");
    bench->bad |= !ok && !mpl_record_is(*row, MPL_FIELD_status, "unavailable");
    if (bench->options->json) {
        MPL_TRY(mpl_record_write(bench->ctx, *row, &json));
        printf("%s\n", json);
    }
    MPL_TRY(mpl_rows_take(bench->ctx, &bench->rows, row));
out:
    mpl_free(bench->ctx, json);
    return st;
}

mpl_status mpl_bench_finish_row(mpl_bench *bench, mpl_bench_run run, mpl_record **row)
{
    return bench->crew != NULL ? tell(bench, run, false, *row) : mpl_bench_keep_row(bench, row);
}

mpl_status mpl_bench_unit_options(mpl_bench *bench, uint32_t unit, mpl_options *own)
{
    const char *safety = bench->safeties.item[unit % bench->safeties.n];

    *own = *bench->options;
    if (safety != NULL)
        MPL_PASS(mpl_options_default(bench->ctx, MPL_CMD_bench, "safety", safety, own));
    MPL_PASS(mpl_suite_own(bench->ctx, &bench->suite, unit / bench->safeties.n, own));
    MPL_PASS(mpl_job_default_safety(bench->ctx, MPL_CMD_bench, own));
    return mpl_job_check_options(bench->ctx, own);
}
