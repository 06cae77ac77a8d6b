/* operators_so.c -- loads shared libraries of operators. See operators.h. */
#include "harness/foreign/operators.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "graphs/core/text.h"
#include "graphs/ops/user/user_ops.h"
#include "harness/cli/isolate.h"

#define LOAD_LIMIT_NS (INT64_C(60) * 1000000000)

/* Loads the library's entry. Without a slash dlopen would search the library path. */
static mpl_status open_library(mpl_ctx *ctx, const char *path, const memplan_operators **out)
{
    char file[4096];
    void *library;
    int n = snprintf(file, sizeof file, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);

    if (n < 0 || n >= (int)sizeof file)
        return MPL_REFUSE(ctx, "the path is too long");
    if ((library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) == NULL)
        return MPL_REFUSE(ctx, "%.300s", dlerror());
    if ((*out = dlsym(library, "memplan_operators_main")) == NULL)
        return MPL_REFUSE(ctx, "the library has no memplan_operators_main (see "
                               "memplan/operators.h)");
    return MPL_OK;
}

/* In a process of its own: what loading runs may crash or exit. */
static void try_library(void *arg)
{
    const memplan_operators *library;
    mpl_ctx ctx = mpl_ctx_default();

    if (open_library(&ctx, arg, &library) == MPL_OK)
        (void)mpl_user_add(&ctx, library);
}

static mpl_status load(mpl_ctx *ctx, const char *path)
{
    const memplan_operators *library;
    mpl_ending ending;

    if (access(path, R_OK) != 0)
        return MPL_REFUSE(ctx, "%s; the path of a shared library is needed", strerror(errno));
    MPL_PASS(mpl_isolate(ctx, try_library, (void *)path, mpl_clock_ns() + LOAD_LIMIT_NS, &ending));
    if (ending.interrupted != 0)
        return MPL_ERROR(ctx, MPL_ELIMIT, "interrupted by signal %d", ending.interrupted);
    if (ending.timed_out)
        return MPL_REFUSE(ctx, "loading it takes more than 60 s");
    if (ending.signal != 0 || ending.exit_status != 0)
        return MPL_REFUSE(ctx, "loading it ends the process, by %s %d",
                          ending.signal != 0 ? "signal" : "exit status",
                          ending.signal != 0 ? ending.signal : ending.exit_status);
    MPL_PASS(open_library(ctx, path, &library));
    return mpl_user_add(ctx, library);
}

/* A crash inside an operator is its fault, and said; any other takes its usual way. */
static void on_crash(int signal)
{
    const memplan_operator *inside = mpl_user_inside;
    char text[160];
    int n;

    if (inside == NULL)
        return; /* the fault comes again, and ends the program */
    n = snprintf(text, sizeof text, "memplan: --operators: operator '%s' crashed by signal %d\n",
                 inside->name, signal);
    if (write(STDERR_FILENO, text, (size_t)n) != n)
        _exit(3);
    _exit(2);
}

mpl_status mpl_operators_load(mpl_ctx *ctx, const mpl_strings *libraries)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    for (uint32_t i = 0; i < libraries->n; i++) {
        const char *text = libraries->item[i];
        mpl_status st;

        if (strncmp(text, "so:", 3) != 0 || text[3] == '\0')
            return MPL_REFUSE(ctx, "--operators: '%.200s' is not so:FILE", mpl_shown(text));
        if ((st = load(ctx, text + 3)) != MPL_OK)
            return MPL_ERROR(ctx, st, "--operators: %.150s: %s", mpl_shown(text), ctx->message);
    }
    for (size_t k = 0; k < sizeof crashes / sizeof *crashes && libraries->n > 0; k++)
        sigaction(crashes[k],
                  &(struct sigaction){.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND}, NULL);
    return MPL_OK;
}
