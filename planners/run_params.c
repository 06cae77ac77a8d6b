/* run_params.c -- what planners read of their run: parameters, limits, claims. See planner.h. */
#include "planners/place/placement.h"
#include "planners/verify/verify.h"

#include <errno.h>
#include <stdlib.h>

void mpl_run_init(mpl_run *run, mpl_ctx *ctx)
{
    *run = (mpl_run){
        .ctx = ctx,
        .seed = 1,
        .budget_ticks = UINT64_MAX,
        .deadline_ns = INT64_MAX,
        .n_threads = 1,
    };
}

const char *mpl_run_param(const mpl_run *run, const char *key)
{
    for (uint32_t i = 0; i < run->n_params; i++)
        if (strcmp(run->param_key[i], key) == 0)
            return run->param_value[i];
    return NULL;
}

mpl_status mpl_run_param_int(const mpl_run *run, const char *key, int64_t min, int64_t max,
                             int64_t otherwise, int64_t *out)
{
    mpl_status st = MPL_OK;
    const char *text = mpl_run_param(run, key);
    char *end = NULL;
    long long value;

    if (text == NULL) {
        *out = otherwise;
        goto out;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
        MPL_FAIL(run->ctx, MPL_EINPUT,
                 "parameter %s=%.50s: a whole number from %" PRId64 " to %" PRId64 " is needed",
                 key, text, min, max);
    *out = value;
out:
    return st;
}

mpl_status mpl_run_decided(const mpl_run *run, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;

    if (plan->claim == MPL_UNKNOWN)
        MPL_FAIL(run->ctx, MPL_ELIMIT,
                 "no plan within the capacity was found, and none was refuted, in %" PRIu64
                 " ticks",
                 run->ticks);
out:
    return st;
}
