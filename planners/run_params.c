/* run_params.c -- what planners read of their run: parameters, limits, claims. See planner.h. */
#include "planners/planner.h"

#include <errno.h>
#include <stdlib.h>

mpl_run mpl_run_default(mpl_ctx *ctx)
{
    return (mpl_run){
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
    const char *text = mpl_run_param(run, key);
    char *end = NULL;
    long long value;

    if (text == NULL) {
        *out = otherwise;
        return MPL_OK;
    }
    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
        return MPL_REFUSE(run->ctx,
                          "parameter %s=%.50s: a whole number from %" PRId64 " to %" PRId64
                          " is needed",
                          key, text, min, max);
    *out = value;
    return MPL_OK;
}

mpl_status mpl_run_decided(const mpl_run *run, const mpl_plan *plan)
{
    if (plan->claim == MPL_UNKNOWN)
        return MPL_ERROR(run->ctx, MPL_ELIMIT,
                         "no plan within the capacity was found, and none was refuted, in %" PRIu64
                         " ticks",
                         run->ticks);
    return MPL_OK;
}
