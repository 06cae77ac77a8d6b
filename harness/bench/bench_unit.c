/* bench_unit.c -- units of a bench: their shards, finished runs and rows. See bench.h. */
#include <errno.h>
#include <stdlib.h>

#include "harness/bench/bench.h"

/* Runs compared with a peer, or interleaved, stay in one shard. */
bool mpl_bench_is_mine(const mpl_bench *b, uint32_t unit, uint32_t backend, uint32_t p)
{
    uint64_t group = (uint64_t)(unit / b->turns) * b->n_backends + backend;

    return mpl_shard_of(b->n_peers > 0 || b->turns > 1 ? group : group * b->n_specs + p,
                        b->n_shards) == b->shard;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Whether a row of the file can be kept. One executed beside other workers has no times and is
 * measured again by a single worker. */
static bool will_do(const mpl_bench *b, const mpl_record *row)
{
    return mpl_record_is(row, MPL_FIELD_status, "ok") &&
           (b->options->jobs > 1 || mpl_record_is_null(row, MPL_FIELD_outputs) ||
            !mpl_record_is_null(row, MPL_FIELD_run_ns));
}

mpl_status mpl_bench_read_done(mpl_bench *b)
{
    MPL_PASS(mpl_rows_read(b->ctx, b->file.path, &b->old));
    MPL_PASS(mpl_rows_last(b->ctx, &b->old));
    MPL_PASS(mpl_new(b->ctx, b->done, b->old.n));
    for (uint32_t i = 0; i < b->old.n; i++)
        if (will_do(b, b->old.row[i])) {
            MPL_PASS(mpl_record_key(b->ctx, b->old.row[i], &b->done[b->n_done]));
            b->n_done++;
        }
    qsort(b->done, b->n_done, sizeof *b->done, by_text);
    return MPL_OK;
}

mpl_status mpl_bench_is_done(mpl_bench *b, const mpl_record *row, bool *found)
{
    mpl_status st = MPL_OK;
    char *key = NULL;

    *found = false;
    if (b->n_done == 0)
        goto out;
    MPL_TRY(mpl_record_key(b->ctx, row, &key));
    *found = bsearch(&key, b->done, b->n_done, sizeof *b->done, by_text) != NULL;
out:
    mpl_free(b->ctx, key);
    return st;
}

/* Sends a worker's row to the parent: "BACKEND PLANNER OLD {row}". */
static mpl_status tell(mpl_bench *b, mpl_bench_run run, bool old, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    char *json = NULL;

    MPL_TRY(mpl_record_write(b->ctx, row, &json));
    fprintf(b->crew, "%" PRIu32 " %" PRIu32 " %d %s\n", run.backend, run.planner, old, json);
    if (fflush(b->crew) != 0)
        MPL_FAIL(b->ctx, MPL_EMEM, "a row could not be handed on: %s", strerror(errno));
out:
    mpl_free(b->ctx, json);
    return st;
}

mpl_status mpl_bench_take_done(mpl_bench *b, mpl_bench_run run, const mpl_record *row)
{
    mpl_status st = MPL_OK;
    char *key = NULL, *other = NULL;
    mpl_record *copy = NULL;
    bool found = false;

    MPL_TRY(mpl_record_key(b->ctx, row, &key));
    for (uint32_t i = 0; !found && i < b->old.n; i++) {
        mpl_free(b->ctx, other);
        other = NULL;
        MPL_TRY(mpl_record_key(b->ctx, b->old.row[i], &other));
        found = strcmp(other, key) == 0;
        if (!found)
            continue;
        MPL_TRY(mpl_record_copy(b->ctx, b->old.row[i], &copy));
        if (b->crew != NULL)
            MPL_TRY(tell(b, run, true, copy));
        MPL_TRY(mpl_rows_take(b->ctx, &b->rows, &copy));
    }
out:
    mpl_record_free(b->ctx, copy);
    mpl_free_each(b->ctx, key, other);
    return st;
}

mpl_status mpl_bench_keep_row(mpl_bench *b, mpl_record **row)
{
    mpl_status st = MPL_OK;
    bool ok = mpl_record_is(*row, MPL_FIELD_status, "ok");
    const char *reason = mpl_record_get_text(*row, MPL_FIELD_reason);
    char *json = NULL;

    MPL_TRY(mpl_row_file_append(b->ctx, &b->file, *row));
    if (!ok)
        mpl_progress_line(
            &b->progress, "memplan: %s, %s: %s: %s", mpl_record_get_text(*row, MPL_FIELD_graph),
            mpl_record_get_text(*row, MPL_FIELD_planner),
            mpl_record_get_text(*row, MPL_FIELD_status), reason != NULL ? reason : "");
    b->bad |= !ok && !mpl_record_is(*row, MPL_FIELD_status, "unavailable");
    if (b->options->json) {
        MPL_TRY(mpl_record_write(b->ctx, *row, &json));
        printf("%s\n", json);
    }
    MPL_TRY(mpl_rows_take(b->ctx, &b->rows, row));
out:
    mpl_free(b->ctx, json);
    return st;
}

mpl_status mpl_bench_finish_row(mpl_bench *b, mpl_bench_run run, mpl_record **row)
{
    return b->crew != NULL ? tell(b, run, false, *row) : mpl_bench_keep_row(b, row);
}

mpl_status mpl_bench_unit_options(mpl_bench *b, uint32_t unit, mpl_options *own)
{
    const char *safety = b->safeties.item[unit % b->safeties.n];

    *own = *b->options;
    if (safety != NULL)
        MPL_PASS(mpl_options_default(b->ctx, MPL_CMD_bench, "safety", safety, own));
    MPL_PASS(mpl_suite_own(b->ctx, &b->suite, unit / b->safeties.n, own));
    MPL_PASS(mpl_job_default_safety(b->ctx, MPL_CMD_bench, own));
    return mpl_job_check_options(b->ctx, own);
}
