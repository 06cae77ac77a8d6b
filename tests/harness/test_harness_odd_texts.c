/* test_harness_odd_texts.c -- odd texts for every option and argument of every command: the exit
 * status is the program's own, never a signal, with one line of error. The commands run in child
 * processes by the program's own main. */
#include "tests/support/folder.h"

int memplan_main(int argc, char **argv);
#define main memplan_main
#include "harness/main.c"
#undef main

#define SMALL "mlp:layers=1,input=4,hidden=4,classes=2"

enum { MOST_WORDS = 16, LIMIT_S = 60 };

/* Arguments that each command accepts, so that only the text is odd; @ is the argument. */
static const struct {
    mpl_command_id command;
    const char *words, *argument;
} good[] = {
    {MPL_CMD_list, "list @", "planners"},
    {MPL_CMD_show, "show @", SMALL},
    {MPL_CMD_plan, "plan @ --planner greedy_size", SMALL},
    {MPL_CMD_verify, "verify @ plan.json", SMALL},
    {MPL_CMD_verify, "verify " SMALL " @", "plan.json"},
    {MPL_CMD_certify, "certify @", "plan.json"},
    {MPL_CMD_run, "run @ --planner greedy_size --backend ref --repeat 1", SMALL},
    {MPL_CMD_bench, "bench @ --backends none --planners greedy_size -o bench.jsonl", "one.suite"},
    {MPL_CMD_merge, "merge @ -o merged.jsonl", "rows.jsonl"},
    {MPL_CMD_diff, "diff plan.json @", "plan.json"},
    {MPL_CMD_table, "table @ --rows rows.jsonl", "planned"},
    {MPL_CMD_plot, "plot @ --planner greedy_size -o plan.html", SMALL},
    {MPL_CMD_export, "export @ --format csv -o list.csv", SMALL},
    {MPL_CMD_check, "check @ --planner greedy_size", SMALL},
    {MPL_CMD_baseline, "baseline update @ --planners greedy_size -o baseline.json", SMALL},
    {MPL_CMD_paper, "paper @ --check", "none.md"},
};

/* Texts that are empty, truncated, or special in our grammars, to printf, strtol or a shell. */
static const char *const odd[] = {
    "",
    "=",
    ",",
    ":",
    "/",
    "%",
    "a",
    "a=",
    "=1",
    "a=1",
    "a=-1",
    "a=b=c",
    "a,",
    ",a",
    "a,,b",
    "none,a",
    "-1",
    "0",
    "0x10",
    "1e400",
    "nan",
    "1/0",
    "0/1",
    "2/1",
    "1/",
    "%s%n%d",
    "1%",
    "-1%",
    "1e9%",
    "sqrt:",
    "x:",
    "x:=",
    "x:y=z",
    "peak:",
    "exec:",
    "so:",
    "a{in}",
    "@",
    "1KiB1",
    "1MiBMiB",
    "..",
    "random",
    "given",
    "given:",
    "given:=",
    "random:seed=",
    "9999999999999999999",
    "-9999999999999999999",
    "99999999999GiB",
    "a=9999999999999999999",
    "greedy_size:",
    "greedy_size:a",
    "mlp:",
    "mlp:layers",
    "mlp:layers=",
    "mlp:=1",
    "mlp:layers=9999999999999999999",
    "so:./no.so:a",
    "budget:9999999999999999999",
    "sqrt:%",
    "{data}/x",
    ".",
    "[",
    "\xff\xfe",
};

/* Fills the words of good[which], with `argument` for its @, then `last` unless it is NULL; they
 * point into `store`. */
static int make_words(size_t which, char *argument, char *last, char store[300],
                      char *word[MOST_WORDS])
{
    int n = 0;

    snprintf(store, 300, "memplan %s", good[which].words);
    for (char *at = strtok(store, " "); at != NULL; at = strtok(NULL, " "))
        word[n++] = strcmp(at, "@") == 0 ? argument : at;
    if (last != NULL)
        word[n++] = last;
    word[n] = NULL;
    return n;
}

/* Runs the program's main in the child, its outputs in out and err, with cmocka's signal handlers
 * reset. */
static void be_the_program(int n, char **word)
{
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        signal(caught[i], SIG_DFL);
    alarm(LIMIT_S);
    if (chdir(folder) != 0 || freopen("out", "w", stdout) == NULL ||
        freopen("err", "w", stderr) == NULL)
        _exit(99);
    n = memplan_main(n, word);
    fflush(stdout);
    fflush(stderr);
    _exit(n);
}

/* The exit status must be 0 to 4; unless 0, the last line is an error, and the only line if the
 * input was wrong. */
static int check_run(int n, char **word, const char *what, const char *text)
{
    char err[1 << 12];
    size_t length;
    int how, status;
    pid_t child;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        be_the_program(n, word);
    assert_int_equal(waitpid(child, &how, 0), child);
    folder_read("err", err, sizeof err);
    length = strlen(err);
    status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    if (status > 4)
        fail_msg("%s, %s '%.60s': exit status %d: '%.300s'", word[1], what, text, status, err);
    if (status != 0 && (length == 0 || err[length - 1] != '\n' || strstr(err, "memplan: ") == NULL))
        fail_msg("%s, %s '%.60s': exit status %d without an error: '%.300s'", word[1], what, text,
                 status, err);
    if (status == 2 && (strncmp(err, "memplan: ", 9) != 0 || strchr(err, '\n') != err + length - 1))
        fail_msg("%s, %s '%.60s': not one line of error: '%.300s'", word[1], what, text, err);
    return status;
}

static void check_option(size_t which, const mpl_option_info *option, const char *text)
{
    char store[300], argument[100], *word[MOST_WORDS], *last = malloc(strlen(text) + 60);
    size_t n;

    assert_non_null(last);
    sprintf(last, "--%s=", option->name);
    for (char *c = last; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    n = strlen(last);
    strcpy(last + n, text);
    snprintf(argument, sizeof argument, "%s", good[which].argument);
    check_run(make_words(which, argument, last, store, word), word, option->name, text);
    free(last);
}

static void check_argument(size_t which, const char *text)
{
    char store[300], *word[MOST_WORDS], *argument = strdup(text);

    assert_non_null(argument);
    check_run(make_words(which, argument, NULL, store, word), word, "its argument", text);
    free(argument);
}

/* Calls `take` for each command with every third odd text, under a sanitizer every 24th, from
 * one further on than the command before; and with two longer than any buffer. MPL_ALL=1: every
 * text.
 */
static void with_odd_texts(void (*take)(size_t which, const char *text))
{
    static char path_long[5000], very_long[100000];
    const size_t stride = getenv("MPL_ALL") != NULL ? 1 : MPL_CHECK >= 3 ? 24 : 3;

    memset(path_long, 'x', sizeof path_long - 1);
    memset(very_long, '1', sizeof very_long - 1);
    for (size_t which = 0; which < sizeof good / sizeof *good; which++) {
        for (size_t i = which % stride; i < sizeof odd / sizeof *odd; i += stride)
            take(which, odd[i]);
        take(which, path_long);
        take(which, very_long);
    }
}

static void take_options(size_t which, const char *text)
{
    for (int i = 0; i < MPL_N_OPTIONS; i++)
        if (mpl_option_table[i].commands & (1u << good[which].command) &&
            (mpl_option_table[i].arg != NULL || strcmp(text, "a") == 0))
            check_option(which, &mpl_option_table[i], text);
}

/* Every option from the table. Fault: a text used before it is checked: bench --dim without '='
 * ended by signal 11. */
TEST(odd_option_texts)
{
    with_odd_texts(take_options);
}

TEST(odd_arguments)
{
    with_odd_texts(check_argument);
}

/* The base commands succeed, except paper, which needs the project around it. */
TEST(the_rest_is_good)
{
    for (size_t which = 0; which < sizeof good / sizeof *good; which++) {
        char store[300], argument[100], *word[MOST_WORDS];
        int n;

        snprintf(argument, sizeof argument, "%s", good[which].argument);
        n = make_words(which, argument, NULL, store, word);
        if (good[which].command != MPL_CMD_paper)
            assert_int_equal(check_run(n, word, "its argument", argument), 0);
    }
}

/* Writes the files that the commands read. */
static int begin(void)
{
    static char *plan[] = {"memplan", "plan", SMALL, "-o", "plan.json", NULL};
    static char *rows[] = {"memplan", "bench",       "one.suite", "--backends", "none",
                           "-p",      "greedy_size", "-o",        "rows.jsonl", NULL};

    setenv("OMP_WAIT_POLICY", "passive", 0); /* main would otherwise restart itself for this */
    if (folder_make("options") != 0)
        return 1;
    folder_put_text("one.suite", SMALL "\n");
    return check_run(5, plan, "nothing", "") + check_run(9, rows, "nothing", "");
}

TESTS_WITHIN(begin, folder_remove, the_rest_is_good, odd_option_texts, odd_arguments)
