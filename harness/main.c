/* main.c -- finds the command, reads its options, runs it. Only main.c prints errors and exits. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "graphs/core/names.h"
#include "harness/cli/command.h"
#include "harness/rows/record.h"
#include "harness/cli/version.h"

static int find(const char *name)
{
    for (int i = 0; i < MPL_N_COMMANDS; i++)
        if (strcmp(mpl_commands[i].name, name) == 0)
            return i;
    return -1;
}

/* Reports "no command 'paln' (is 'plan' meant?)". */
static mpl_status no_command(mpl_ctx *ctx, const char *name)
{
    const char *near = NULL;
    uint32_t least = MPL_TOO_FAR;

    for (int i = 0; i < MPL_N_COMMANDS; i++)
        if (mpl_nearer(name, strlen(name), mpl_commands[i].name, &least))
            near = mpl_commands[i].name;
    return MPL_REFUSE(ctx, "no command '%.100s'%s%s%s; see memplan --help", name,
                      near != NULL ? " (is '" : "", near != NULL ? near : "",
                      near != NULL ? "' meant?)" : "");
}

static mpl_status dispatch(mpl_ctx *ctx, int argc, char **argv, mpl_options *options)
{
    mpl_status st = MPL_OK;
    int command;

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
    MPL_TRY(mpl_options_parse(ctx, (mpl_command_id)command, argc - 1, argv + 1, options));
    if (options->help)
        mpl_help_command(stdout, (mpl_command_id)command);
    else
        st = mpl_command_start(ctx, (mpl_command_id)command, options);
out:
    return st;
}

/* Whether JSON is asked for, even if the options were not read to the end. getopt has moved
 * arguments that are no options to the end. */
static bool wants_json(int argc, char **argv, const mpl_options *options)
{
    bool asked = options->json;

    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        asked |= strcmp(argv[i], "--json") == 0;
    return asked;
}

/* Prints the command's object. After a failure it adds `error` and `exit_status`, or prints only
 * these. */
static void print_json(mpl_ctx *ctx, mpl_status st, const char *result)
{
    size_t n = result != NULL ? strlen(result) : 0;
    char message[sizeof ctx->message], *quoted = NULL;

    if (st == MPL_OK) {
        if (result != NULL)
            printf("%s\n", result);
        return;
    }
    memcpy(message, ctx->message, sizeof message);
    if (mpl_json_quote(ctx, message, &quoted) != MPL_OK) /* no memory, or not UTF-8 */
        (void)mpl_json_quote(ctx, mpl_status_name(st), &quoted);
    printf("%.*s%s\"error\": %s, \"exit_status\": %d}\n", n > 2 ? (int)n - 1 : 0,
           n > 2 ? result : "", n > 2 ? ", " : "{", quoted != NULL ? quoted : "null",
           mpl_status_exit(st));
    mpl_free(ctx, quoted);
    memcpy(ctx->message, message, sizeof message);
}

/* Makes waiting threads of oneDNN sleep instead of spin. A spinning thread takes its core from
 * other work, which on a shared machine costs up to 30 times the time. OpenMP reads its environment
 * when it is loaded, before main, so commands that execute restart the program with a changed
 * environment. If that fails, it goes on unchanged. A user's own setting is kept. */
static void sleep_while_waiting(int argc, char **argv)
{
    char path[4096];
    ssize_t n;

    if (argc < 2 ||
        (strcmp(argv[1], "run") != 0 && strcmp(argv[1], "bench") != 0 &&
         strcmp(argv[1], "eager") != 0) ||
        getenv("OMP_WAIT_POLICY") != NULL)
        return;
    n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || setenv("OMP_WAIT_POLICY", "passive", 0) != 0)
        return;
    path[n] = '\0';
    execv(path, argv);
}

int main(int argc, char **argv)
{
    mpl_ctx ctx;
    mpl_options options;
    mpl_status st;

    sleep_while_waiting(argc, argv);
    setlocale(LC_CTYPE, "");  /* characters of the terminal; numbers stay in the C locale */
    signal(SIGXFSZ, SIG_IGN); /* a full quota becomes an error of write() */
    ctx = mpl_ctx_default();
    mpl_options_init(&options);
    st = dispatch(&ctx, argc, argv, &options);
    if (wants_json(argc, argv, &options))
        print_json(&ctx, st, options.result);
    mpl_options_fini(&ctx, &options);
    mpl_assert(ctx.n_live == 0);
    if ((fflush(stdout) != 0 || ferror(stdout)) && st == MPL_OK)
        st = MPL_REFUSE(&ctx, "standard output: %s", strerror(errno));
    if (st != MPL_OK)
        fprintf(stderr, "memplan: %s\n", ctx.message);
    return mpl_status_exit(st);
}
