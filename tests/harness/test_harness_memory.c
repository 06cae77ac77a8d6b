/* test_harness_memory.c -- every command with the k-th allocation failing: it ends in "out of
 * memory" and leaks nothing, or succeeds without that memory. A bench goes on: the failure is a
 * row.
 *
 *  test_harness_memory [all]     a few dozen k spread over each command; all: every k */
#include "tests/support/folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "harness/cli/command.h"

#define NET "mlp:layers=2,input=8,hidden=8,classes=4"

static bool every;

/* @ is the test's folder. The first commands make what later ones read. */
static const char *const commands[] = {
    "plan " NET " --planner exact:proof=1 -q -o @/plan.json",
    "plan " NET " --planner portfolio --safety parallel -q -o @/parallel.json",
    "plan " NET ",mode=train --planner nnc_2019 --json",
    "plan lstm:form=while,steps=3,layers=1 --planner exact --json",
    "least " NET " -q -o @/least.json",
    "least " NET ",mode=train --free +layout --json",
    "replay " NET " --allocator caching,best_fit,buddy,slab -o @/replay.jsonl",
    "verify " NET " @/least.json",
    "verify " NET " @/plan.json",
    "certify @/plan.json",
    "show " NET " --json",
    "run " NET " --planner pool --backend ref --json",
    "run " NET " --plan @/plan.json --backend ref --repeat 2 --json",
    "run " NET " --planner greedy_size --backend cpu --checked --json",
    "check --plan @/plan.json --against optimum",
    "bench @/one.suite --planners none,exact --backends ref --repeat 1 -q -o @/rows.jsonl",
    "table planned --rows @/rows.jsonl",
    "diff @/rows.jsonl @/rows.jsonl",
    "merge @/rows.jsonl -o @/merged.jsonl",
    "audit @/rows.jsonl @/merged.jsonl --compared 1",
    "audit @/rows.jsonl --json",
    "export " NET " --format csv -o @/net.csv",
    "export " NET " --format graph -o @/net.graph",
    "export " NET " --format onnx -o @/net.onnx",
    "show @/net.onnx",
    "plot " NET " --planner best_fit -o @/plan.svg",
    "plot " NET " --planner best_fit -o @/plan.html",
    "explain " NET " --time-limit 0 --json",
    "explain @/plan.json --time-limit 0 --safety parallel -o @/explained.html",
    "list planners --json",
};

static int command_named(const char *name)
{
    for (int c = 0; c < MPL_N_COMMANDS; c++)
        if (strcmp(mpl_commands[c].name, name) == 0)
            return c;
    fail_msg("no command %s", name);
    return 0;
}

/* Runs the command with the k-th allocation refused (k < 0: none) and its standard output
 * discarded; *asked: allocations requested. */
static mpl_status attempt(mpl_ctx *ctx, const char *words, int64_t k, int64_t *asked)
{
    mpl_status st;
    mpl_options options;
    char text[2000], *argv[32], *save = NULL;
    size_t n = 0;
    int argc = 0, command, out = dup(1), null = open("/dev/null", O_WRONLY);

    for (const char *w = words; *w != '\0'; w++)
        n += (size_t)snprintf(text + n, sizeof text - n, *w == '@' ? "%s" : "%.1s",
                              *w == '@' ? folder : w);
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    argv[argc] = NULL;
    command = command_named(argv[0]);
    if (strcmp(argv[0], "bench") == 0) /* bench appends to existing rows */
        unlink(in_folder("rows.jsonl"));
    *ctx = mpl_ctx_default();
    ctx->fail_after = k;
    mpl_options_init(&options);
    fflush(stdout);
    dup2(null, 1);
    st = mpl_options_parse(ctx, (mpl_command_id)command, argc, argv, &options);
    if (st == MPL_OK)
        st = mpl_command_start(ctx, (mpl_command_id)command, &options);
    mpl_options_fini(ctx, &options);
    fflush(stdout);
    dup2(out, 1);
    close(out), close(null);
    *asked = ctx->n_allocs;
    return st;
}

TEST(commands_survive_lost_memory)
{
    int64_t total = 0, lived = 0;

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int64_t asked, ignored, step;

        assert_ok(ctx, attempt(ctx, commands[i], -1, &asked));
        assert_int_equal(ctx->n_live, 0);
        step = every || asked < 32 ? 1 : asked / 32;
        for (int64_t k = 0; k < asked; k += step, total++) {
            mpl_status st = attempt(ctx, commands[i], k, &ignored);

            if (st == MPL_OK)
                lived++;
            else if (st != MPL_EMEM &&
                     (st != MPL_EINVALID || strstr(ctx->message, "some rows are not ok") == NULL))
                fail_msg("memplan %s: allocation %" PRId64 " of %" PRId64 " fails: %s: %s",
                         commands[i], k, asked, mpl_status_name(st), ctx->message);
            if (ctx->n_live != 0)
                fail_msg("memplan %s: allocation %" PRId64 " of %" PRId64 " fails: %" PRId64
                         " not freed",
                         commands[i], k, asked, ctx->n_live);
        }
        print_message("%6" PRId64 " allocations  memplan %s\n", asked, commands[i]);
        /* no failed attempt left anything in the way */
        assert_ok(ctx, attempt(ctx, commands[i], -1, &asked));
    }
    print_message("%" PRId64 " allocations refused, one at a time; %" PRId64 " done without\n",
                  total, lived);
}

static int begin(void)
{
    if (folder_make("memory") != 0)
        return 1;
    folder_put_text("one.suite", NET "\n");
    return 0;
}

int main(int argc, char **argv)
{
    every = argc > 1 && strcmp(argv[1], "all") == 0;
    return RUN_TESTS(begin, folder_remove, commands_survive_lost_memory);
}
