/* foreign_so.c -- planners in shared libraries (harness/lib/plugin.h), loaded and called in a
 * separate process. The child writes its answer into shared memory. The parent copies the offsets
 * before it checks them, so processes that outlive the child cannot change a verified plan. */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "harness/foreign/foreign.h"
#include "harness/cli/isolate.h"
#include "harness/lib/plugin.h"

enum { ANSWER_ROOM = 4096, DONE = 0x600d }; /* offsets begin on the next page */

typedef struct answer {
    int32_t code; /* return code of plan(); -1: not called */
    int32_t claim;
    uint64_t bound_bytes, ticks;
    int64_t plan_ns;
    char message[400];
    int done; /* DONE: the answer is complete */
} answer;

typedef struct call {
    const mpl_run *run;
    const mpl_problem *problem;
    const char *path;
    double time_limit_s;
    answer *answer;
    uint64_t *offset; /* [n] after the answer */
} call;

static void __attribute__((format(printf, 2, 3))) unusable(answer *self, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(self->message, sizeof self->message, format, args);
    va_end(args);
    self->code = -1;
    self->done = DONE;
}

/* Loads the library's entry; NULL: the answer holds the reason. */
static const memplan_plugin *load(const char *path, answer *a)
{
    char file[4096];
    const memplan_plugin *plugin;
    void *library;

    /* without a slash dlopen would search the library path */
    snprintf(file, sizeof file, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    if ((library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) == NULL) {
        unusable(a, "%s", dlerror());
        return NULL;
    }
    if ((plugin = dlsym(library, "memplan_plugin_main")) == NULL)
        unusable(a, "the library has no memplan_plugin_main (see memplan/plugin.h)");
    else if (plugin->version != MEMPLAN_PLUGIN_VERSION)
        unusable(a, "made for version %u of the plug-in interface; this memplan speaks version %d",
                 plugin->version, MEMPLAN_PLUGIN_VERSION);
    else if (plugin->size < sizeof *plugin || plugin->plan == NULL)
        unusable(a, "memplan_plugin_main has no plan()");
    else
        return plugin;
    return NULL;
}

static memplan_problem problem_of(const mpl_problem *p)
{
    memplan_problem out = {
        .size = sizeof out,
        .n = p->n,
        .n_pools = p->n_pools,
        .n_steps = p->n_steps,
        .bytes = p->bytes,
        .align = p->align,
        .pool = p->pool,
        .birth = p->birth,
        .death = p->death,
        .capacity = p->pool_capacity,
        .fixed = p->fixed,
        .name = (const char *const *)p->buffer_name,
        .n_in_place = p->n_in_place,
        .in_place_in = p->in_place_in,
        .in_place_out = p->in_place_out,
        .in_place_step = p->in_place_step,
    };

    if (p->before != NULL) {
        out.before_words = p->before->n_words;
        out.before = p->before->row;
        out.reduction_begin = p->before->red_begin;
        out.reduction_item = p->before->red_item;
    }
    return out;
}

static void in_child(void *arg)
{
    const call *c = arg;
    const mpl_run *run = c->run;
    answer *a = c->answer;
    const memplan_plugin *plugin = load(c->path, a);
    memplan_problem problem = problem_of(c->problem);
    memplan_request request = {
        .size = sizeof request,
        .n_threads = run->n_threads,
        .seed = run->seed,
        .budget_ticks = run->budget_ticks,
        .time_limit_s = c->time_limit_s,
        .n_params = run->n_params,
        .key = run->param_key,
        .value = run->param_value,
    };
    memplan_result result = {
        .size = sizeof result,
        .claim = MEMPLAN_FEASIBLE,
        .offset = c->offset,
        .message = a->message,
        .message_size = sizeof a->message,
    };
    int64_t begin;

    if (plugin == NULL)
        return;
    begin = mpl_clock_ns();
    a->code = plugin->plan(&problem, &request, &result);
    a->plan_ns = mpl_clock_ns() - begin;
    a->claim = result.claim;
    a->bound_bytes = result.bound_bytes;
    a->ticks = result.ticks;
    a->done = DONE;
    fflush(NULL);
}

/* The failure that the library reports; MPL_OK: it has a plan. */
static mpl_status judge(mpl_run *run, const answer *a)
{
    const char *said = a->message[0] != '\0' ? a->message : "no reason given";

    switch (a->code) {
    case MEMPLAN_DONE:
        break;
    case -1:
    case MEMPLAN_UNAVAILABLE:
        return mpl_foreign_fail(run, MPL_EUNAVAIL, "unavailable", "%.390s", said);
    case MEMPLAN_BAD_PARAMETER:
        return mpl_foreign_fail(run, MPL_EINPUT, "refused", "parameters: %.380s", said);
    case MEMPLAN_NO_MEMORY:
        return mpl_foreign_fail(run, MPL_EMEM, "crash", "out of memory: %.380s", said);
    case MEMPLAN_GAVE_UP:
        return mpl_foreign_fail(run, MPL_ELIMIT, "timeout", "gave up: %.380s", said);
    default:
        return mpl_foreign_fail(run, MPL_EINVALID, "garbage", "plan() returned %d", a->code);
    }
    switch (a->claim) {
    case MEMPLAN_FEASIBLE:
    case MEMPLAN_OPTIMAL:
        return MPL_OK;
    case MEMPLAN_UNKNOWN:
        return mpl_foreign_fail(run, MPL_ELIMIT, "timeout", "it claims no plan");
    case MEMPLAN_INFEASIBLE:
        return mpl_foreign_fail(run, MPL_ELIMIT, "timeout",
                                "it says that nothing fits, which is not proved");
    default:
        return mpl_foreign_fail(run, MPL_EINVALID, "garbage", "claim %d", a->claim);
    }
}

mpl_status mpl_foreign_so_ask(mpl_run *run, const mpl_problem *p, uint64_t *offset,
                              uint64_t *bound_bytes)
{
    mpl_status st = MPL_OK;
    const mpl_foreign *foreign = (const mpl_foreign *)run->planner;
    size_t bytes = ANSWER_ROOM + p->n * sizeof(uint64_t);
    int64_t limit_ns = mpl_foreign_limit(run);
    call c = {.run = run,
              .problem = p,
              .path = foreign->target,
              .time_limit_s = 0.9 * (double)limit_ns / 1e9};
    mpl_ending ending;

    if ((c.answer = mpl_share(bytes)) == NULL)
        MPL_FAIL(run->ctx, MPL_EMEM, "planner %s: no memory to share with it", foreign->name);
    c.offset = (uint64_t *)(void *)((char *)c.answer + ANSWER_ROOM);
    memcpy(c.offset, offset, p->n * sizeof *offset);
    MPL_TRY(mpl_isolate(run->ctx, in_child, &c, mpl_clock_ns() + limit_ns, &ending));
    MPL_TRY(mpl_foreign_ended(run, &ending, limit_ns));
    if (c.answer->done != DONE || ending.exit_status != 0) {
        st = mpl_foreign_fail(run, MPL_EINVALID, "crash",
                              "ended with exit status %d before it answered", ending.exit_status);
        goto out;
    }
    c.answer->message[sizeof c.answer->message - 1] = '\0';
    MPL_TRY(judge(run, c.answer));
    memcpy(offset, c.offset, p->n * sizeof *offset);
    *bound_bytes = c.answer->bound_bytes;
    run->ticks = c.answer->ticks <= INT64_MAX ? c.answer->ticks : 0;
    run->plan_ns = c.answer->plan_ns > 0 ? c.answer->plan_ns : ending.wall_ns;
out:
    if (c.answer != NULL)
        munmap(c.answer, bytes);
    return st;
}
