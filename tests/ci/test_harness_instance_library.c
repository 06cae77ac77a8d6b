/* test_harness_instance_library.c -- scripts/instances.sh on quick lines of the instance library,
 * and on tables that say something else. */
#include "tests/harness/run_program.h"

/* Exit status of the script's check of lines that match, in a table; its output goes to `out`. */
static int checked(const char *pattern, const char *table)
{
    char command[2000];
    int how;

    snprintf(command, sizeof command, "scripts/instances.sh %s check '%s' '%s' >'%s/out' 2>&1",
             program, pattern, table, folder);
    how = system(command);
    folder_read("out", out, sizeof out);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

/* Fault: a status, bound, plan or certificate of the table that memplan does not reach. */
TEST(quick_lines_are_certified_as_they_stand)
{
    assert_int_equal(
        checked("^(guillotine:n=(20|50),|synthetic:n=100,|mlp|mnist_conv|pingpong|delay:|piecewise|"
                "series_parallel:ops=50,seed=1|layered:ops=50,seed=1|cart_pole|squeezenet)",
                "results/instances.tsv"),
        0);
    assert_non_null(strstr(out, " certified as they stand, 0 wrong, 0 skipped\n"));
    assert_true(strtoul(strstr(out, "instances: ") + 11, NULL, 10) >= 40);
}

/* A copy of the table, of whose line `mlp` an expression of sed made another. */
static int changed(const char *expression)
{
    char command[2000], table[600];

    snprintf(table, sizeof table, "%s/table.tsv", folder);
    snprintf(command, sizeof command, "sed -E '/^mlp\t/%s' results/instances.tsv >'%s'", expression,
             table);
    assert_int_equal(system(command), 0);
    return checked("^mlp$", table);
}

/* Fault: a column that is not compared, the lines of suite and table that are not. */
TEST(what_the_table_says_wrongly_is_named)
{
    assert_int_equal(changed("s/\t[0-9.]*$/\t99999.9/"), 0); /* time alone may differ */
    assert_int_equal(changed("s/\topt\t/\tbest\t/"), 1);
    assert_non_null(strstr(out, "instances: mlp: not what was made anew"));
    for (int column = 2; column <= 11; column++) { /* a digit before buffers, .., */
        char expression[60];

        snprintf(expression, sizeof expression, "s/^(([^\t]*\t){%d})/\\19/", column);
        if ((column < 7 || column == 11) && changed(expression) != 1) /* bounds and certificate */
            fail_msg("column %d is not compared", column + 1);
    }
    assert_int_equal(changed("d"), 1);
    assert_non_null(strstr(out, "does not have the lines of"));
}

/* Fault: a library that shrinks, a name twice, a proof without an optimum. */
TEST(the_library_has_its_size_and_its_kinds)
{
    assert_int_equal(
        system("awk -F '\t' 'NR > 1 { n++; kind[$2]++; opt += $8 == \"opt\"; twice += seen[$1]++;"
               " odd += NF != 13 || $7 > $6 || ($8 == \"opt\") != ($6 == $7) || $3 < 1 }"
               " END { for (k in kind) kinds++; exit !(n >= 400 && opt >= 400 && kinds == 5 &&"
               " !twice && !odd) }' results/instances.tsv"),
        0);
}

TESTS_OF_PROGRAM("instances", quick_lines_are_certified_as_they_stand,
                 what_the_table_says_wrongly_is_named, the_library_has_its_size_and_its_kinds)
