/* test_harness_data.c -- scripts/data.sh with a table, a mirror and folders of the test's own. */
#include "tests/support/folder.h"

#include "harness/bench/suite.h"

static char said[4000];

/* Exit status of the script in the copied project, with these settings and arguments; its output
 * goes to `said`. */
static int data(const char *settings, const char *arguments)
{
    char command[2000];
    int how;

    snprintf(command, sizeof command,
             "cd '%s/project' && env -u MEMPLAN_DATA -u MEMPLAN_MIRROR HOME='%s/home' "
             "XDG_CACHE_HOME= %s scripts/data.sh %s >'%s/said' 2>&1",
             folder, folder, settings, arguments, folder);
    how = system(command);
    folder_read("said", said, sizeof said);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

/* Checksums of "one\n" and "two\n", as sha256sum prints them. */
static const char table[] =
    "a/one.csv\t2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806\tMIT\tfile:///no/o"
    "ne\ntwo.csv\t27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a\tours\t-\n";

static int set_up(void **state)
{
    char command[1000];

    (void)state;
    if (folder_make("data") != 0)
        return -1;
    snprintf(
        command, sizeof command,
        "mkdir -p '%s/project/scripts' '%s/mirror/a' && cp scripts/data.sh '%s/project/scripts'",
        folder, folder, folder);
    if (system(command) != 0)
        return -1;
    folder_put_text("project/scripts/data.tsv", table);
    folder_put_text("mirror/a/one.csv", "one\n");
    folder_put_text("mirror/two.csv", "two\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return folder_remove();
}

static void holds(const char *name, const char *want)
{
    char text[100];

    folder_read(name, text, sizeof text);
    assert_string_equal(text, want);
}

/* Fault: fetching a file that is present, keeping a damaged one, not asking a mirror given as a
 * folder or as an address. */
static void a_mirror_brings_what_lacks(void **state)
{
    (void)state;
    assert_int_equal(data("MEMPLAN_MIRROR=../mirror", "../d"), 0);
    assert_non_null(strstr(said, "0 files were there, 2 brought, 0 missing"));
    holds("d/a/one.csv", "one\n");
    folder_put_text("d/two.csv", "spoiled\n");
    assert_int_equal(data("MEMPLAN_MIRROR=file://$PWD/../mirror MEMPLAN_DATA=../d", ""), 0);
    assert_non_null(strstr(said, "1 files were there, 1 brought, 0 missing"));
    holds("d/two.csv", "two\n");
}

/* Fault: a wrong file is kept or left under its name, a missing file is ignored silently. */
static void a_wrong_file_is_not_kept(void **state)
{
    (void)state;
    folder_put_text("mirror/a/one.csv", "other\n");
    assert_int_equal(data("MEMPLAN_MIRROR=../mirror", ""), 1);
    assert_non_null(strstr(said, "data: a/one.csv: not readable: file:///no/one"));
    assert_non_null(strstr(said, "0 files were there, 1 brought, 1 missing"));
    holds("home/.cache/memplan/data/two.csv", "two\n");
    assert_int_not_equal(access(in_folder("home/.cache/memplan/data/a/one.csv"), F_OK), 0);
    remove(in_folder("mirror/two.csv"));
    assert_int_equal(data("MEMPLAN_MIRROR=../mirror", "../e"), 1);
    assert_non_null(strstr(said, "two.csv: not readable: ../mirror/two.csv; it has no public"));
    folder_put_text("project/scripts/data.tsv", "x\t0\tMIT\tfile:///dev/null\n");
    assert_int_equal(data("", "../e"), 1);
    assert_non_null(strstr(said, "x: another SHA-256: file:///dev/null"));
    assert_int_not_equal(access(in_folder("e/x"), F_OK), 0);
}

/* Where there is no curl it is asked for, once; a folder is read without it. Fault: an address that
 * is called unreadable, though nothing was there to read it. */
static void addresses_need_curl(void **state)
{
    static const char make[] =
        "cd '%s' && mkdir few && for p in bash env mktemp cut sha256sum mkdir chmod cp mv rm sed "
        "dirname realpath tar; do ln -s $(command -v $p) few/$p; done && "
        "printf '#!/bin/bash\\necho \"$1\" >>asked\\n' >project/scripts/install-deps.sh && "
        "chmod +x project/scripts/install-deps.sh";
    char command[1000];

    (void)state;
    snprintf(command, sizeof command, make, folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(data("MEMPLAN_MIRROR=../mirror PATH=../few", "../d"), 0);
    assert_int_not_equal(access(in_folder("project/asked"), F_OK), 0);
    assert_int_equal(data("MEMPLAN_MIRROR=file://$PWD/../mirror PATH=../few", "../e"), 1);
    assert_non_null(strstr(said, "data: two.csv: no curl here to read file://"));
    holds("project/asked", "--data\n");
}

/* Packs what `files` makes in the mirror; the table has this archive alone. */
static void pack(const char *files)
{
    char command[2000];

    snprintf(
        command, sizeof command,
        "cd '%s' && rm -rf onnx-9 && mkdir -p onnx-9/onnx/backend/test/data mirror/onnx-node && "
        "(cd onnx-9/onnx/backend/test/data && %s) && "
        "tar -czf mirror/onnx-node/onnx-9.tar.gz onnx-9 && "
        "sum=$(sha256sum <mirror/onnx-node/onnx-9.tar.gz) && "
        "printf 'onnx-node/onnx-9.tar.gz\\t%%s\\tours\\t-\\n' \"${sum%%%% *}\" "
        ">project/scripts/data.tsv",
        folder, files);
    assert_int_equal(system(command), 0);
}

/* Fault: the archive kept packed, unpacked at another place or at every call, a silent failure. */
static void node_tests_are_unpacked(void **state)
{
    (void)state;
    pack("mkdir -p node/test_abs && echo model >node/test_abs/model.onnx");
    assert_int_equal(data("MEMPLAN_MIRROR=../mirror", "../d"), 0);
    holds("d/onnx-node/node/test_abs/model.onnx", "model\n");
    assert_int_not_equal(access(in_folder("d/onnx-node/part"), F_OK), 0);
    folder_put_text("d/onnx-node/node/test_abs/model.onnx", "kept\n");
    assert_int_equal(data("MEMPLAN_MIRROR=../mirror", "../d"), 0);
    holds("d/onnx-node/node/test_abs/model.onnx", "kept\n");
    pack("mkdir simple");
    assert_int_equal(data("MEMPLAN_MIRROR=../mirror", "../e"), 1);
    assert_non_null(strstr(said, "onnx-node/node: not unpacked from ../e/onnx-node/onnx-9.tar.gz"));
    assert_int_not_equal(access(in_folder("e/onnx-node/node"), F_OK), 0);
    assert_int_not_equal(access(in_folder("e/onnx-node/part"), F_OK), 0);
}

/* Fault: the order of the locations, an empty variable taken for a folder. */
static void where_names_the_folder(void **state)
{
    char want[400];

    (void)state;
    assert_int_equal(data("MEMPLAN_DATA=/x/y", "--where"), 0);
    assert_string_equal(said, "/x/y\n");
    assert_int_equal(data("MEMPLAN_DATA=", "--where"), 0);
    snprintf(want, sizeof want, "%s/home/.cache/memplan/data\n", folder);
    assert_string_equal(said, want);
    assert_int_equal(data("XDG_CACHE_HOME=/c", "--where"), 0);
    assert_string_equal(said, "/c/memplan/data\n");
    snprintf(want, sizeof want, "mkdir -p '%s/shared/data'", folder);
    assert_int_equal(system(want), 0);
    assert_int_equal(data("", "--where"), 0);
    snprintf(want, sizeof want, "%s/shared/data\n", folder);
    assert_string_equal(said, want);
    assert_int_equal(data("", "--list"), 0);
    assert_string_equal(said, "a/one.csv\tMIT\tfile:///no/one\ntwo.csv\tours\t-\n");
    assert_int_equal(data("", "--all"), 2);
    assert_int_equal(data("", "a b"), 2);
}

/* Fault: another order of locations than the script's, a graph of another location changed. */
static void suites_read_there(void **state)
{
    static const struct {
        const char *option, *data, *cache, *want;
    } rows[] = {
        {"/o", "/d", "/c", "/o/two.csv:twin=reversed"},
        {NULL, "/d", "/c", "/d/two.csv:twin=reversed"},
        {NULL, "", "/c", "/c/memplan/data/two.csv:twin=reversed"},
        {NULL, "", "", "/h/.cache/memplan/data/two.csv:twin=reversed"},
    };
    static const char graph[] = "{data}/two.csv:twin=reversed";
    char here[1000], *path;
    mpl_ctx ctx;

    (void)state;
    ctx = mpl_ctx_default();
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(in_folder("mirror")), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_options options = {.data = rows[i].option};

        setenv("MEMPLAN_DATA", rows[i].data, 1);
        setenv("XDG_CACHE_HOME", rows[i].cache, 1);
        setenv("HOME", "/h", 1);
        assert_ok(&ctx, mpl_suite_graph_path(&ctx, &options, graph, &path));
        assert_string_equal(path, rows[i].want);
        assert_int_equal(mpl_suite_file_length(path), strlen(path) - strlen(":twin=reversed"));
        mpl_free(&ctx, path);
        assert_ok(&ctx, mpl_suite_graph_path(&ctx, &options, "resnet18", &path));
        assert_null(path);
    }
    assert_string_equal(mpl_suite_graph_name("{data}/a/b.csv"), "a/b.csv");
    assert_string_equal(mpl_suite_graph_name("a/b.csv"), "a/b.csv");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(ctx.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_mirror_brings_what_lacks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_file_is_not_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(addresses_need_curl, set_up, tear_down),
        cmocka_unit_test_setup_teardown(node_tests_are_unpacked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(where_names_the_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(suites_read_there, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
