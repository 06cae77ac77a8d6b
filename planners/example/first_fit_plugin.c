/* first_fit_plugin.c -- a planner outside memplan, to copy: each buffer in its order at the lowest
 * offset that is free.
 *
 *     cc -std=c11 -O2 -fPIC -shared -o first_fit.so first_fit_plugin.c
 *     memplan plan resnet50 --planner so:./first_fit.so
 */
#include <memplan/plugin.h>
#include <stdbool.h>

static bool before(const memplan_problem *p, uint32_t a, uint32_t b)
{
    return p->before[(size_t)a * p->before_words + b / 64] >> b % 64 & 1;
}

static bool conflict(const memplan_problem *p, uint32_t a, uint32_t b)
{
    if (p->pool[a] != p->pool[b])
        return false;
    if (p->before != NULL)
        return !before(p, a, b) && !before(p, b, a);
    return p->birth[a] < p->death[b] && p->birth[b] < p->death[a];
}

/* The lowest aligned offset of b that no conflicting buffer before b reaches into. */
static uint64_t lowest_free(const memplan_problem *p, uint32_t b, const uint64_t *offset)
{
    uint64_t at = 0, mask = p->align[b] - 1;

    for (uint32_t a = 0; a < b; a++) {
        if (!conflict(p, a, b) || offset[a] >= at + p->bytes[b] || at >= offset[a] + p->bytes[a])
            continue;
        at = (offset[a] + p->bytes[a] + mask) & ~mask;
        a = UINT32_MAX; /* those that were free below may not be here: all over again */
    }
    return at;
}

static int plan(const memplan_problem *p, const memplan_request *request, memplan_result *result)
{
    if (request->n_params > 0)
        return MEMPLAN_BAD_PARAMETER;
    if (p->fixed != NULL)
        return MEMPLAN_UNAVAILABLE;
    for (uint32_t b = 0; b < p->n; b++)
        result->offset[b] = lowest_free(p, b, result->offset);
    return MEMPLAN_DONE;
}

const memplan_plugin memplan_plugin_main = {.version = MEMPLAN_PLUGIN_VERSION,
                                            .size = sizeof(memplan_plugin),
                                            .about = "first fit",
                                            .plan = plan};
