/* test_harness_docs.c -- help, the man page and their source tables. */
#include "tests/support/folder.h"

#include <sys/mman.h>

#include "harness/cli/command.h"

static char text[1 << 17];

static void catch (void (*write)(FILE *to))
{
    FILE *f = fmemopen(text, sizeof text, "w");

    assert_non_null(f);
    write(f);
    fclose(f);
}

/* Fault: an example that the program refuses, or that belongs to another command. */
TEST(examples_are_accepted)
{
    for (int c = 0; c < MPL_N_COMMANDS; c++) {
        const mpl_command *info = &mpl_commands[c];
        char line[300], *argv[40], *rest = line, *word;
        mpl_options options;
        int argc = 0;

        snprintf(line, sizeof line, "%s", info->example);
        while ((word = strtok_r(rest, " ", &rest)) != NULL)
            argv[argc++] = word;
        argv[argc] = NULL;
        assert_true(argc >= 2);
        assert_string_equal(argv[0], "memplan");
        assert_string_equal(argv[1], info->name);
        mpl_options_init(&options);
        assert_ok(ctx, mpl_options_parse(ctx, (mpl_command_id)c, argc - 1, argv + 1, &options));
        mpl_options_fini(ctx, &options);
    }
}

TEST(help_has_an_example)
{
    for (int c = 0; c < MPL_N_COMMANDS; c++) {
        FILE *f = fmemopen(text, sizeof text, "w");

        mpl_help_command(f, (mpl_command_id)c);
        fclose(f);
        assert_non_null(strstr(text, "\nexample: memplan "));
        assert_non_null(strstr(text, mpl_commands[c].example));
    }
}

/* Fault: a line longer than 80 columns, an option that needs a paragraph. */
TEST(help_fits_a_terminal)
{
    for (int c = -1; c < MPL_N_COMMANDS; c++) {
        FILE *f = fmemopen(text, sizeof text, "w");
        char *rest = text, *line;

        if (c < 0)
            mpl_help(f);
        else
            mpl_help_command(f, (mpl_command_id)c);
        fclose(f);
        while ((line = strsep(&rest, "\n")) != NULL)
            if (strlen(line) > 80 || (line[0] != '\0' && line[strlen(line) - 1] == ' '))
                fail_msg("%s: %s", c < 0 ? "memplan" : mpl_commands[c].name, line);
    }
    for (int i = 0; i < MPL_N_OPTIONS; i++)
        if (strlen(mpl_option_table[i].about) > 60)
            fail_msg("--%s: %s", mpl_option_table[i].name, mpl_option_table[i].about);
}

/* ---- commands read their options ---- */

/* Commands that succeed, but fail with any option that they read and cannot use. @ is the test's
 * folder; earlier commands make what later ones read. */
static const char *const bases[] = {
    "plan mlp -q -o @/plan.json",
    "bench @/one.suite --planners none --backends ref --repeat 1 -q -o @/rows.jsonl",
    "least mlp -q -o @/least.json",
    "show mlp",
    "verify mlp @/plan.json",
    "certify mlp @/plan.json",
    "run mlp -b ref --repeat 1",
    "merge @/rows.jsonl",
    "table planned --rows @/rows.jsonl",
    "plot mlp --planner none -o @/plan.html",
    "export mlp --planner none -f onnx -o @/net.onnx",
    "check mlp --planner portfolio --budget 1000",
    "baseline update @/one.suite -o @/baseline.json",
};

/* Numbers and flags that none of these commands can use. */
static const struct {
    mpl_option_id id;
    uint64_t value;
} hostile[] = {{MPL_OPT_threads, 5000}, {MPL_OPT_repeat, 0},     {MPL_OPT_turns, 5000},
               {MPL_OPT_jobs, 100000},  {MPL_OPT_work_limit, 1}, {MPL_OPT_capacity, 1},
               {MPL_OPT_iterations, 1}, {MPL_OPT_tradeoff, 1}};

static const struct {
    const char *kind;
    size_t at;
} member[] = {
#define OPTION(id, letter, kind, arg, initial, commands, about, details)                           \
    {#kind, offsetof(mpl_options, id)},
#include "harness/cli/options.def"
};

/* Sets an option to a value that any reader fails on: a text in inaccessible memory, or a number
 * from `hostile`. Returns false if there is none. */
static bool set_hostile(mpl_options *options, mpl_option_id id)
{
    static const char *list[1];
    void *at = (char *)options + member[id].at;
    size_t i = 0, n = sizeof hostile / sizeof *hostile;

    list[0] = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    options->given[id] = true;
    while (i < n && hostile[i].id != id)
        i++;
    if (strcmp(member[id].kind, "TEXT") == 0)
        *(const char **)at = list[0];
    else if (strcmp(member[id].kind, "LIST") == 0)
        *(mpl_strings *)at = (mpl_strings){1, 1, list};
    else if (i < n && strcmp(member[id].kind, "FLAG") == 0)
        *(bool *)at = hostile[i].value;
    else if (i < n)
        *(uint64_t *)at = hostile[i].value;
    else
        return false;
    return true;
}

/* Runs a base command in a child process with that option set; true if it succeeded. */
static bool succeeds(const char *base, mpl_option_id id, bool *skipped)
{
    char words[600], *argv[32], *rest = words, *word;
    size_t n = 0;
    int argc = 0, how = 0, command = 0;
    pid_t pid;

    for (const char *w = base; *w != '\0'; w++)
        n += (size_t)snprintf(words + n, sizeof words - n, *w == '@' ? "%s" : "%.1s",
                              *w == '@' ? folder : w);
    while ((word = strtok_r(rest, " ", &rest)) != NULL)
        argv[argc++] = word;
    argv[argc] = NULL;
    while (strcmp(mpl_commands[command].name, argv[0]) != 0)
        command++;
    *skipped = id < MPL_N_OPTIONS && (mpl_option_table[id].commands >> command & 1) == 0;
    if (*skipped)
        return true;
    fflush(NULL);
    if ((pid = fork()) == 0) {
        mpl_ctx ctx;
        mpl_options options;

        signal(SIGSEGV, SIG_DFL);
        if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(1);
        ctx = mpl_ctx_default();
        mpl_options_init(&options);
        if (mpl_options_parse(&ctx, (mpl_command_id)command, argc, argv, &options) != MPL_OK)
            _exit(2);
        if (id < MPL_N_OPTIONS && !set_hostile(&options, id))
            _exit(77);
        _exit(mpl_command_start(&ctx, (mpl_command_id)command, &options) != MPL_OK);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    *skipped = WIFEXITED(how) && WEXITSTATUS(how) == 77;
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/* Fault: a command lists an option in its help and ignores it. */
TEST(commands_read_their_options)
{
    uint32_t n = 0;
    bool skipped;

    assert_int_equal(folder_make("docs"), 0);
    folder_put_text("one.suite", "mlp\n{data}/nowhere.onnx\n");
    for (size_t k = 0; k < sizeof bases / sizeof *bases; k++) {
        if (!succeeds(bases[k], MPL_N_OPTIONS, &skipped))
            fail_msg("memplan %s fails by itself", bases[k]);
        for (mpl_option_id i = 0; i < MPL_N_OPTIONS; i++) {
            bool ignored = succeeds(bases[k], i, &skipped);

            n += !skipped;
            if (ignored && !skipped)
                fail_msg("memplan %s: --%s is listed and not read", bases[k],
                         mpl_option_table[i].name);
        }
    }
    print_message("%u texts and numbers of commands\n", n);
    assert_true(n > 100);
    assert_int_equal(folder_remove(), 0);
}

/* Fault: the man page lacks a command or option, or the formatter takes a line for a request. */
TEST(man_page_is_whole)
{
    static const char *const requests[] = {".TH ", ".SH ", ".SS ", ".PP",
                                           ".TP",  ".B ",  ".I ",  ".RI "};
    char *rest = text, *line, name[60];
    FILE *f;

    catch (mpl_help_man);
    for (int c = 0; c < MPL_N_COMMANDS; c++) {
        snprintf(name, sizeof name, ".SS \"memplan %s ", mpl_commands[c].name);
        assert_non_null(strstr(text, name));
    }
    for (int i = 0; i < MPL_N_OPTIONS; i++) {
        snprintf(name, sizeof name, "\\-\\-%.20s", mpl_option_table[i].name);
        for (char *at = name; (at = strchr(at, '_')) != NULL;)
            *at = ' ';
        name[strcspn(name, " ")] = '\0'; /* up to the '_' that becomes an escaped dash */
        assert_non_null(strstr(text, name));
    }
    if (system("command -v groff >/dev/null") == 0) {
        f = popen("groff -man -ww -z 2>&1 | grep -c . | grep -qx 0", "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(pclose(f), 0);
    } else {
        print_message("skip: %s: no groff here\n", __func__);
    }
    while ((line = strsep(&rest, "\n")) != NULL) {
        bool known = line[0] != '.';

        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
            known |= strncmp(line, requests[i], strlen(requests[i])) == 0;
        if (!known || line[0] == '\'')
            fail_msg("no request: %s", line);
    }
}

/* OPTIONS.md is what `make docs` would write. */
TEST(options_page_is_fresh)
{
    static char file[sizeof text];
    FILE *f = fopen("harness/cli/OPTIONS.md", "r");

    assert_non_null(f);
    file[fread(file, 1, sizeof file - 1, f)] = '\0';
    fclose(f);
    catch (mpl_help_markdown);
    assert_string_equal(text, file);
}

TESTS(examples_are_accepted, help_has_an_example, help_fits_a_terminal, commands_read_their_options,
      man_page_is_whole, options_page_is_fresh)
