/* test_harness_quote.c -- hostile names: no command or format executes text from a graph, plan, row
 * or file name; outputs stay well-formed, and no control character reaches a terminal. */
#include "tests/support/folder.h"

#include <fcntl.h>
#include <locale.h>
#include <sys/stat.h>
#include <wchar.h>

#include <jansson.h>

#include "graphs/core/rng.h"
#include "harness/cli/quote.h"
#include "harness/rows/record.h"

/* ---- characters ---- */

/* Displayed text is valid UTF-8 by the C library's decoder, without control characters by its
 * table. */
TEST(only_characters_are_seen)
{
    mpl_rng rng;

    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        print_message("skip: no C.UTF-8 here\n");
        skip();
    }
    rng = mpl_rng_of(5);
    for (uint32_t i = 0; i < draws(3000000); i++) {
        char text[6] = {0};
        uint32_t n = 1 + (uint32_t)mpl_rng_below(&rng, 4), seen;
        mbstate_t none = {0};
        wchar_t wide = 0;
        size_t length;

        for (uint32_t k = 0; k < n; k++) /* often prefixes of an n-byte character */
            text[k] = (char)(mpl_rng_below(&rng, 4) == 0 ? 1 + mpl_rng_below(&rng, 255)
                             : k > 0                     ? 0x80 + mpl_rng_below(&rng, 64)
                                     : (0xf00u >> n & 0xff) + mpl_rng_below(&rng, 0x40u >> n));
        length = mbrtowc(&wide, text, sizeof text, &none);
        seen = mpl_text_seen(text);
        if (seen > 0 && (length != seen || (wide < 0xa0 && wide > 0x7e) || wide < 0x20))
            fail_msg("%02x %02x %02x %02x is seen", text[0] & 255, text[1] & 255, text[2] & 255,
                     text[3] & 255);
        if (seen == 0 && length <= 4 && wide >= 0x20 && (wide < 0x7f || wide > 0x9f) &&
            wide < 0x600)
            fail_msg("%02x %02x %02x %02x is not seen", text[0] & 255, text[1] & 255, text[2] & 255,
                     text[3] & 255);
    }
    setlocale(LC_CTYPE, "C");
}

/* JSON is also printed: control characters are escaped by number and read back unchanged. */
TEST(json_shows_nothing_raw)
{
    static const char text[] = "a\x7f"
                               "b\xc2\x9b"
                               "31mc\xe2\x80\xae"
                               "d\xc3\xa9\"\n\xef\xbb\xbf\xf0\x9f\x90\xa7";
    owned_memory char *quoted = NULL, *row = NULL;
    mpl_record *record = NULL;
    json_t *read;

    assert_ok(ctx, mpl_json_quote(ctx, text, &quoted));
    assert_string_equal(quoted,
                        "\"a\\u007fb\\u009b31mc\\u202ed\xc3\xa9\\\"\\n\\ufeff\xf0\x9f\x90\xa7\"");
    assert_non_null(read = json_loads(quoted, JSON_DECODE_ANY, NULL));
    assert_string_equal(json_string_value(read), text);
    json_decref(read);
    assert_ok(ctx, mpl_record_new(ctx, &record));
    mpl_record_text(record, MPL_FIELD_graph, text);
    assert_ok(ctx, mpl_record_write(ctx, record, &row));
    assert_true(mpl_text_is_seen(row));
    assert_non_null(strstr(row, quoted));
    mpl_record_free(ctx, record);
}

TEST(marks_that_turn_text_are_hidden)
{
    static const char *const rows[][2] = ROW(
        {"plain", "plain"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa7", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa7"},
        {"\x1b[31m\a\n", "?[31m??"},
        ROW("a\xc2\x9b"
            "31m",
            "a??31m"),
        ROW("\xe2\x80\xae"
            "cod",
            "???cod"),
        {"\xef\xbb\xbfid", "???id"}, {"\xc0\xaf\xed\xa0\x80\xff\xe2\x82", "????????"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(mpl_shown(rows[i][0]), rows[i][1]);
    assert_ptr_equal(mpl_shown(rows[1][0]), rows[1][0]);
}

typedef void put(FILE *to, const char *text);

TEST(each_language_gets_its_text)
{
    static const struct {
        put *put;
        const char *from, *to;
    } rows[] =
        ROW({mpl_put_gnuplot, "it's `x` \\\n\"@y", "'it''s `x` \\?\"@y'"},
            {mpl_put_gnuplot_cell, "a \"b\\\" `c`\nEOD", "\"a 'b/' `c`?EOD\""},
            {mpl_put_markup, "<a href='x\">&\x1b", "&lt;a href=&#39;x&quot;&gt;&amp;?"},
            ROW(mpl_put_script, "</script>\\\"\xe2\x80\xa8", "\"\\u003c/script>\\\\\\\"???\""),
            {mpl_put_dot, "a\"]; b\\N\n", "a\\\"]; b\\\\N?"},
            {mpl_put_markdown, "a|b\\|c <img> [x](y) `z`\t",
             "a\\|b\\\\\\|c &lt;img> \\[x](y) \\`z\\`?"},
            {mpl_put_tsv, "=1+1\t", "'=1+1?"}, {mpl_put_tsv, "@sum", "'@sum"},
            {mpl_put_tsv, "-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"},
            {mpl_put_tsv, "+3.21 %", "+3.21 %"}, {mpl_put_tsv, "-", "-"},
            {mpl_put_tsv, "-1e-05", "-1e-05"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        rows[i].put(f, rows[i].from);
        fclose(f);
        assert_string_equal(text, rows[i].to);
        free(text);
    }
}

/* Two texts map to one file name only if they are equal: all texts of up to three of the relevant
 * characters. */
TEST(names_of_files_differ)
{
    static const char letters[] = "a_/.%2F\n";
    enum { N = 8 * 8 * 8 + 8 * 8 + 8 + 1 };
    static char name[N][MPL_FILE_NAME], one[300], two[300], other[MPL_FILE_NAME];

    for (uint32_t i = 0; i < N; i++) {
        char text[4] = {0};
        uint32_t k = i, n = i == 0 ? 0 : i < 9 ? 1 : i < 73 ? 2 : 3;

        k -= n == 0 ? 0 : n == 1 ? 1 : n == 2 ? 9 : 73;
        for (uint32_t j = 0; j < n; j++, k /= 8)
            text[j] = letters[k % 8];
        mpl_file_name(text, 7, name[i]);
        assert_true(name[i][0] != '\0' && name[i][0] != '.' && strchr(name[i], '/') == NULL);
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(name[i], name[j]);
    }
    memset(one, 'x', 299);
    memcpy(two, one, 300);
    two[298] = 'y';
    assert_string_not_equal(mpl_file_name(one, 1, name[0]), mpl_file_name(two, 2, other));
    assert_true(strlen(other) < MPL_FILE_NAME && strlen(other) > 200);
}

/* ---- the program ---- */

/* Backquotes, ends of each kind of string, of a script element, of a data block; escapes; a
 * formula; broken UTF-8. Executed, each would create a file in the current folder. No slash, since
 * it is also a file name. */
#define HOSTILE                                                                                    \
    "=1+1`touch pwned1`$(touch pwned2)'; touch pwned3; '\"\nsystem(\"touch "                       \
    "pwned4\")\nEOD\n!touch "                                                                      \
    "pwned5\n\"]; <script>&amp;\x1b[31m|a|\t\x9b\xc2\x9b\\N]]>--><"

static char program[4200], hostile_file[280];
static char hostile[] = HOSTILE; /* as UTF-8, for JSON */
static char text[1 << 20];

/* As a quoted string of the text format. */
static void put_quoted(FILE *to, const char *what)
{
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)what; *c != '\0'; c++)
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(to, "\\x%02x", *c);
        else
            fputc(*c, to);
    fputc('"', to);
}

static void put_graph(const char *path)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f, "graph ");
    put_quoted(f, HOSTILE);
    fprintf(f, "\ninput x f32 [4]\n");
    for (int i = 0; i < 3; i++) {
        char name[sizeof HOSTILE + 4], last[sizeof HOSTILE + 4];

        snprintf(name, sizeof name, "%s%d", HOSTILE, i);
        snprintf(last, sizeof last, "%s%d", HOSTILE, i - 1);
        put_quoted(f, name);
        fprintf(f, " = relu(");
        if (i == 0)
            fputc('x', f);
        else
            put_quoted(f, last);
        fprintf(f, ")\n");
    }
    fprintf(f, "output ");
    put_quoted(f, HOSTILE "2");
    fputc('\n', f);
    assert_int_equal(fclose(f), 0);
}

/* Reads a file in the folder into text[]. */
static size_t slurp(const char *name)
{
    FILE *f = fopen(in_folder(name), "r");
    size_t n;

    if (f == NULL)
        fail_msg("%s was not written", name);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return n;
}

static void no_command_ran(const char *by)
{
    char path[20];

    for (int i = 1; i <= 5; i++) {
        snprintf(path, sizeof path, "pwned%d", i);
        if (access(in_folder(path), F_OK) == 0)
            fail_msg("a name was run by: %s", by);
    }
}

/* No control characters except line ends (and tabs between cells), and valid UTF-8. */
static void is_shown_whole(const char *by, const char *stream, bool tsv)
{
    size_t n = slurp(stream);

    for (const char *c = text; c < text + n;) {
        uint32_t length = *c == '\n' || (tsv && *c == '\t') ? 1 : mpl_text_seen(c);

        if (length == 0)
            fail_msg("%s: byte %02x on %s", by, *c & 255, stream);
        c += length;
    }
}

/* Runs in the test's folder, where files have plain paths; the graph's file has a hostile name. */
static void run(const char *const *args)
{
    char *argv[24] = {program};
    char by[600] = "";
    int n = 1, how;
    pid_t pid;

    for (; args[n - 1] != NULL; n++) {
        argv[n] = (char *)(uintptr_t)args[n - 1];
        snprintf(by + strlen(by), sizeof by - strlen(by), " %.40s", args[n - 1]);
    }
    if ((pid = fork()) == 0) {
        if (chdir(folder) != 0 || freopen("out", "w", stdout) == NULL ||
            freopen("err", "w", stderr) == NULL)
            _exit(99);
        execv(program, argv);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    is_shown_whole(by, "err", false);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        fail_msg("%s: status %d: %s", by, how, text);
    is_shown_whole(by, "out", n > 2 && strcmp(args[n - 2], "--tsv") == 0);
    no_command_ran(by);
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

/* Elements nest properly, no tag begins within text, entities are known ones. */
static void is_xml(const char *name)
{
    char open[64][24];
    int depth = 0;

    is_shown_whole("xml", name, true);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '&' && strncmp(c, "&amp;", 5) != 0 && strncmp(c, "&lt;", 4) != 0 &&
            strncmp(c, "&gt;", 4) != 0 && strncmp(c, "&quot;", 6) != 0 && strncmp(c, "&#", 2) != 0)
            fail_msg("%s: '%.30s'", name, c);
        if (*c != '<' || c[1] == '?' || c[1] == '!') /* gnuplot's or ours */
            continue;
        if (c[1] == '/') {
            if (depth == 0 || strncmp(c + 2, open[depth - 1], strlen(open[depth - 1])) != 0)
                fail_msg("%s: '%.30s' closes what is not open", name, c);
            depth--;
        } else {
            size_t length = strcspn(c + 1, " \t\n/>");
            const char *end = c;

            for (bool quoted = false; quoted || *end != '>'; end++) {
                assert_true(*end != '\0' && (end == c || quoted || *end != '<'));
                quoted ^= *end == '"';
            }
            assert_true(length > 0 && length < 24 && depth < 64);
            if (end[-1] != '/')
                snprintf(open[depth++], 24, "%.*s", (int)length, c + 1);
            c = end;
        }
    }
    assert_int_equal(depth, 0);
}

/* Outside of strings there is only what any graph of ours has. */
static void is_dot(const char *name)
{
    slurp(name);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"')
            for (c++; *c != '"'; c++) {
                assert_true((unsigned char)*c >= ' ');
                c += *c == '\\';
            }
        else
            assert_non_null(strchr("abcdefghijklmnopqrstuvwxyzLRTB0123456789 \n{}[]=;,->_", *c));
    }
}

static void is_json(const char *name)
{
    json_t *root;

    slurp(name);
    root = json_loads(text, 0, NULL);
    assert_non_null(root);
    json_decref(root);
}

/* Every row has the same number of cells, and none is a formula. */
static void is_table(const char *name, char between)
{
    int n = -1;

    slurp(name);
    for (char *line = text, *end; *line != '\0'; line = end + 1) {
        int cells = 1;

        end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        assert_false(mpl_is_formula(line));
        for (char *c = line; *c != '\0'; c++)
            if (*c == between) {
                cells++;
                assert_true(strchr("=@", c[1]) == NULL || c[1] == '\0');
            }
        assert_true(n < 0 || n == cells);
        n = cells;
    }
    assert_true(n > 1);
}

static bool has_gnuplot(void)
{
    return system("gnuplot --version >/dev/null 2>&1") == 0;
}

TEST(pictures_run_nothing)
{
    if (!has_gnuplot()) {
        print_message("skip: no gnuplot here\n");
        skip();
    }
    RUN("plot", hostile_file, "-o", "by_name.svg");
    is_xml("by_name.svg");
    RUN("plot", hostile_file, "-o", "by_name.png");
    RUN("plot", "g.graph", "--plan", "evil.json", "-o", "by_plan.svg");
    is_xml("by_plan.svg");
    RUN("plot", "g.graph", "--pin", "none", "--safety", "parallel", "-o", "parallel.svg");
    is_xml("parallel.svg");
    RUN("plot", "mlp", "--tradeoff", "--rows", "rows.jsonl", "-o", "curve.svg");
    is_xml("curve.svg");
    RUN("plot", hostile, "--tradeoff", "--rows", "named.jsonl", "-o", "named.svg");
    is_xml("named.svg");
}

TEST(pages_and_exports_are_well_formed)
{
    static const char *const json[] = {"trace", "offline"};

    RUN("plot", hostile_file, "--pin", "none", "-o", "page.html");
    slurp("page.html");
    assert_null(strstr(strstr(text, "<script") + 1, "<script"));
    assert_null(strstr(strstr(text, "</script") + 1, "</script"));
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        RUN("export", hostile_file, "--pin", "none", "--planner", "pool", "-f", json[i], "-o",
            "x.json");
        is_json("x.json");
    }
    RUN("export", hostile_file, "-f", "dot", "-o", "ops.dot");
    is_dot("ops.dot");
    RUN("export", hostile_file, "--pin", "none", "--planner", "pool", "-f", "dot", "-o",
        "plan.dot");
    is_dot("plan.dot");
    RUN("export", hostile_file, "--pin", "none", "-f", "csv", "-o", "x.csv");
    is_table("x.csv", ',');
    RUN("show", "x.csv");
    RUN("export", hostile_file, "-f", "graph", "-o", "x.graph");
    is_shown_whole("export -f graph", "x.graph", true);
    RUN("diff", "evil.json", "evil.json");
    RUN("export", hostile_file, "-f", "onnx", "-o", "x.onnx");
    RUN("show", "x.onnx", "--pin", "none");
}

TEST(terminals_are_not_steered)
{
    static const char *const commands[] = {"show", "plan"};

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        RUN(commands[i], hostile_file);
        RUN(commands[i], hostile_file, "--pin", "none", "--safety", "parallel");
    }
    RUN("run", hostile_file, "--backend", "ref", "--planner", "pool");
    RUN("verify", "g.graph", "evil.json");
    RUN("certify", "evil.json");
    RUN("check", "--plan", "evil.json", "--against", "optimum", "--junit", "junit.xml");
    is_xml("junit.xml");
    RUN("table", "summary", "--rows", "rows.jsonl");
    RUN("table", "summary", "--rows", "rows.jsonl", "--tsv");
    is_table("out", '\t');
    RUN("table", "overview", "--rows", "named.jsonl");
    RUN("merge", "rows.jsonl", "-o", "merged.jsonl");
}

/* Outputs with different names go to different files with their own values. */
TEST(outputs_have_files_of_their_own)
{
    static const char graph[] =
        "graph g\ninput x f32 [4]\n\"a/b\" = relu(x)\n\"a_b\" = neg(x)\n\"a%2Fb\" = exp(x)\n"
        "output \"a/b\"\noutput \"a_b\"\noutput \"a%2Fb\"\n";
    static const char *const files[] = {"d/a%2Fb.npy", "d/a_b.npy", "d/a%252Fb.npy"};
    static char data[3][400];

    folder_put_text("coll.graph", graph);
    RUN("run", "coll.graph", "--backend", "ref", "--planner", "pool", "--dump", "d", "--input",
        "x=ramp");
    for (int i = 0; i < 3; i++) {
        memcpy(data[i], text, slurp(files[i]));
        memcpy(data[i], text, 400);
        for (int k = 0; k < i; k++)
            assert_memory_not_equal(data[i], data[k], 144);
    }
}

/* ---- what they read ---- */

/* A copy of a JSON file with HOSTILE as the value of each key. */
static void poison(const char *from, const char *to, const char *const *keys)
{
    json_t *root;

    slurp(from);
    root = json_loads(text, 0, NULL);
    assert_non_null(root);
    for (; *keys != NULL; keys++)
        json_object_set_new(root, *keys, json_string(hostile));
    json_object_set_new(root, "all_work", json_integer(10));
    json_object_set_new(root, "extra_work", json_integer(1));
    assert_int_equal(json_dump_file(root, in_folder(to), 0), 0);
    json_decref(root);
}

static int begin(void)
{
    static const char *const of_plan[] = {"planner", "name", "graph", NULL};
    static const char *const of_row[] = {"planner", "recompute", "device", NULL};
    static const char *const of_graph[] = {"graph", NULL};
    const char *given = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";

    if (folder_make("quote") != 0 || realpath(given, program) == NULL)
        return 1;
    *strchr(hostile, '\x9b') = '?';
    setenv("OMP_WAIT_POLICY", "passive", 0);
    snprintf(hostile_file, sizeof hostile_file, "%s.graph", HOSTILE);
    put_graph(in_folder(hostile_file));
    put_graph(in_folder("g.graph"));
    RUN("plan", "g.graph", "--planner", "pool", "-o", "plain.json", "-q");
    poison("plain.json", "evil.json", of_plan);
    RUN("run", "mlp", "--backend", "ref", "--planner", "pool", "--repeat", "1", "--json");
    poison("out", "rows.jsonl", of_row);
    poison("rows.jsonl", "named.jsonl", of_graph);
    return 0;
}

TESTS_WITHIN(begin, folder_remove, only_characters_are_seen, json_shows_nothing_raw,
             marks_that_turn_text_are_hidden, each_language_gets_its_text, names_of_files_differ,
             pictures_run_nothing, pages_and_exports_are_well_formed, terminals_are_not_steered,
             outputs_have_files_of_their_own)
