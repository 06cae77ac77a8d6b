/* main.c -- finds the command, reads its options, runs it; the only place that prints errors and exits. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>

#include "graphs/base/names.h"
#include "harness/command.h"
#include "harness/version.h"

static int find(const char *name)
{
    for (int i = 0; i < MPL_N_COMMANDS; i++)
        if (strcmp(mpl_commands[i].name, name) == 0)
            return i;
    return -1;
}

/* "no command 'paln' (is 'plan' meant?)" */
static mpl_status no_command(mpl_ctx *ctx, const char *name)
{
    const char *near = NULL;
    uint32_t least = MPL_TOO_FAR;

    for (int i = 0; i < MPL_N_COMMANDS; i++)
        if (mpl_nearer(name, strlen(name), mpl_commands[i].name, &least))
            near = mpl_commands[i].name;
    return mpl_fail(ctx, MPL_EINPUT, __FILE__, __LINE__, "no command '%.100s'%s%s%s; see memplan --help",
                    name, near != NULL ? " (is '" : "", near != NULL ? near : "",
                    near != NULL ? "' meant?)" : "");
}

static mpl_status dispatch(mpl_ctx *ctx, int argc, char **argv)
{
    mpl_status st = MPL_OK;
    mpl_options options;
    int command;

    mpl_options_init(&options);
    if (argc < 2)
        MPL_FAIL(ctx, MPL_EINPUT, "no command; see memplan --help");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        mpl_help(stdout);
        goto out;
    }
    if (strcmp(argv[1], "--version") == 0) {
        mpl_version_print(stdout);
        goto out;
    }
    command = find(argv[1]);
    if (command < 0)
        MPL_TRY(no_command(ctx, argv[1]));
    MPL_TRY(mpl_options_parse(ctx, (mpl_command_id)command, argc - 1, argv + 1, &options));
    if (options.help)
        mpl_help_command(stdout, (mpl_command_id)command);
    else
        st = mpl_commands[command].run(ctx, &options);
out:
    mpl_options_fini(ctx, &options);
    return st;
}

int main(int argc, char **argv)
{
    mpl_ctx ctx;
    mpl_status st;

    setlocale(LC_CTYPE, "");  /* which characters the terminal shows; numbers stay in the C locale */
    signal(SIGXFSZ, SIG_IGN); /* a full quota is an error of write(), not a signal */
    mpl_ctx_init(&ctx);
    st = dispatch(&ctx, argc, argv);
    mpl_assert(ctx.n_live == 0);
    if (st == MPL_OK && (fflush(stdout) != 0 || ferror(stdout)))
        st = mpl_fail(&ctx, MPL_EINPUT, __FILE__, __LINE__, "standard output: %s", strerror(errno));
    if (st != MPL_OK)
        fprintf(stderr, "memplan: %s\n", ctx.message);
    return mpl_status_exit(st);
}
