/* test_harness_docs.c -- help, the man page and the tables they are made from. */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "harness/cli/command.h"

static char text[1 << 17];

static void catch (void (*write)(FILE *to))
{
    FILE *f = fmemopen(text, sizeof text, "w");

    assert_non_null(f);
    write(f);
    fclose(f);
}

/* Fault: an example that the program would refuse, or of another command. */
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
        mpl_ctx_init(ctx);
        mpl_options_init(&options);
        assert_ok(ctx, mpl_options_parse(ctx, (mpl_command_id)c, argc - 1, argv + 1, &options));
        mpl_options_fini(ctx, &options);
        assert_int_equal(ctx->n_live, 0);
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

/* Fault: a command or option that the man page lacks, a line that the formatter takes for a
 * request. */
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
        name[strcspn(name, " ")] = '\0'; /* up to where '_' becomes an escaped dash */
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

TESTS(examples_are_accepted, help_has_an_example, man_page_is_whole, options_page_is_fresh)
