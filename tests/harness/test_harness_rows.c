/* test_harness_rows.c -- rows: writing and reading fields, keys, files that are appended to, torn,
 * on a full disk. */
#include "tests/support/folder.h"

#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "harness/job/measure.h"
#include "harness/bench/suite.h"
#include "harness/report/table.h"

static int make_folder(void)
{
    return folder_make("rows") != 0;
}

/* A row with a value in every field, different for different n. */
static mpl_record *full_row(mpl_ctx *ctx, uint64_t n)
{
    mpl_record *r = NULL;
    char text[100];

    assert_ok(ctx, mpl_record_new(ctx, &r));
    for (int i = 0; i < MPL_N_FIELDS; i++) {
        snprintf(text, sizeof text, "%s \"%" PRIu64 "\" \\ \xc3\xa4", mpl_field_table[i].name, n);
        switch (mpl_field_table[i].kind) {
        case MPL_KIND_TEXT:
            mpl_record_text(r, (mpl_field)i, text);
            break;
        case MPL_KIND_INT:
            mpl_record_int(r, (mpl_field)i, i == MPL_FIELD_schema ? MPL_ROW_SCHEMA : INT64_MAX - n);
            break;
        case MPL_KIND_BOOL:
            mpl_record_bool(r, (mpl_field)i, n % 2);
            break;
        case MPL_KIND_REAL:
            mpl_record_real(r, (mpl_field)i, 0.1 * (double)n);
            break;
        case MPL_KIND_INTS:
            mpl_record_ints(r, (mpl_field)i, 3, (const int64_t[]){5, -7, (int64_t)n});
            break;
        case MPL_KIND_JSON:
            mpl_record_member_text(r, (mpl_field)i, "b", text);
            mpl_record_member_int(r, (mpl_field)i, "a", n);
            break;
        }
    }
    return r;
}

/* Fault: a field that is written but not read, or read as another. */
TEST(every_field_survives)
{
    mpl_record *r, *back = NULL;
    owned_memory char *text = NULL, *again = NULL;

    r = full_row(ctx, 42);
    assert_ok(ctx, mpl_record_write(ctx, r, &text));
    assert_null(strchr(text, '\n'));
    for (int i = 0; i < MPL_N_FIELDS; i++) {
        char member[64];

        snprintf(member, sizeof member, "\"%s\":", mpl_field_table[i].name);
        assert_non_null(strstr(text, member));
    }
    assert_ok(ctx, mpl_record_read(ctx, "row", text, strlen(text), &back));
    assert_ok(ctx, mpl_record_write(ctx, back, &again));
    assert_string_equal(text, again);
    mpl_record_free(ctx, r);
    mpl_record_free(ctx, back);
}

/* Fault: a null becomes a zero, an absent field is missing from the row. */
TEST(absent_is_null)
{
    mpl_record *r = NULL;
    owned_memory char *text = NULL;
    uint64_t value;

    assert_ok(ctx, mpl_record_new(ctx, &r));
    assert_false(mpl_record_get_int(r, MPL_FIELD_planned_bytes, &value));
    assert_ok(ctx, mpl_record_write(ctx, r, &text));
    assert_non_null(strstr(text, "\"planned_bytes\":null"));
    assert_non_null(strstr(text, "\"schema\":1"));
    mpl_record_free(ctx, r);
}

/* Fault: a key that depends on times, or omits an option. */
TEST(keys_name_runs)
{
    mpl_record *a, *b;
    char *key_a = NULL, *key_b = NULL;

    for (int i = 0; i < MPL_N_FIELDS; i++) {
        a = full_row(ctx, 1);
        b = full_row(ctx, 1);
        mpl_record_null(b, (mpl_field)i);
        assert_ok(ctx, mpl_record_key(ctx, a, &key_a));
        assert_ok(ctx, mpl_record_key(ctx, b, &key_b));
        if (mpl_field_table[i].key)
            assert_string_not_equal(key_a, key_b);
        else
            assert_string_equal(key_a, key_b);
        mpl_free_each(ctx, key_a, key_b);
        mpl_record_free(ctx, a);
        mpl_record_free(ctx, b);
    }
    for (size_t i = 0; i < 8; i++) {
        static const mpl_field must[] = {MPL_FIELD_graph_hash, MPL_FIELD_safety,  MPL_FIELD_order,
                                         MPL_FIELD_planner,    MPL_FIELD_params,  MPL_FIELD_seed,
                                         MPL_FIELD_backend,    MPL_FIELD_in_place};

        assert_true(mpl_field_table[must[i]].key);
    }
}

TEST(key_ignores_member_order)
{
    mpl_record *r[2];
    char *key[2] = {NULL, NULL};

    for (int i = 0; i < 2; i++) {
        assert_ok(ctx, mpl_record_new(ctx, &r[i]));
        mpl_record_member_text(r[i], MPL_FIELD_params, i == 0 ? "x" : "y", "1");
        mpl_record_member_text(r[i], MPL_FIELD_params, i == 0 ? "y" : "x", "1");
        assert_ok(ctx, mpl_record_key(ctx, r[i], &key[i]));
    }
    assert_string_equal(key[0], key[1]);
    for (int i = 0; i < 2; i++) {
        mpl_free(ctx, key[i]);
        mpl_record_free(ctx, r[i]);
    }
}

/* Fault: other input is accepted as a row. */
TEST(wrong_rows_are_refused)
{
    static const char *const wrong[] =
        ROW("", "{", "[1]", "null", "{\"status\": 1}", "{\"seed\": -1}", "{\"seed\": \"1\"}",
            "{\"run_ns\": [1, 2.5]}", "{\"run_ns\": 3}", "{\"verified\": 1}", "{\"params\": 3}",
            "{\"seed\": 1, \"seed\": 2}", "{\"seed\": 99999999999999999999}");
    mpl_record *r = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(ctx, mpl_record_read(ctx, "rows:7", wrong[i], strlen(wrong[i]), &r),
                      MPL_EINPUT);
        assert_memory_equal(ctx->message, "rows:7: ", 8);
        assert_null(r);
    }
    assert_ok(ctx, mpl_record_read(ctx, "row", "{\"later\": 1, \"seed\": null}", 26, &r));
    mpl_record_free(ctx, r);
}

static void append(mpl_ctx *ctx, const char *path, uint64_t n, uint64_t *dropped)
{
    mpl_row_file file;
    mpl_record *r = full_row(ctx, n);

    assert_ok(ctx, mpl_row_file_open(ctx, path, &file));
    *dropped = file.dropped_bytes;
    assert_ok(ctx, mpl_row_file_append(ctx, &file, r));
    mpl_row_file_close(&file);
    mpl_record_free(ctx, r);
}

static off_t size_of(const char *path)
{
    struct stat facts;

    assert_int_equal(stat(path, &facts), 0);
    return facts.st_size;
}

/* Cuts the last row after each of its bytes: the rest is dropped, the row before stays. Fault: a
 * row appended to a torn one. */
TEST(torn_lines_are_dropped)
{
    const char *path = in_folder("deep/er/torn.jsonl");
    uint64_t dropped;
    off_t one, two;

    append(ctx, path, 1, &dropped);
    one = size_of(path);
    append(ctx, path, 2, &dropped);
    two = size_of(path);
    for (off_t cut = one; cut < two; cut += 97) {
        mpl_rows rows = {0};

        assert_int_equal(truncate(path, cut), 0);
        append(ctx, path, 2, &dropped);
        assert_int_equal(dropped, cut - one);
        assert_int_equal(size_of(path), two);
        assert_ok(ctx, mpl_rows_read(ctx, path, &rows));
        assert_int_equal(rows.n, 2);
        mpl_rows_fini(ctx, &rows);
    }
}

/* Fault: a full disk leaves half a row, or is not reported. */
TEST(full_disks_keep_whole_rows)
{
    const char *path = in_folder("full.jsonl");
    uint64_t dropped;
    off_t one;
    int how;
    pid_t pid;

    append(ctx, path, 1, &dropped);
    one = size_of(path);
    if ((pid = fork()) == 0) {
        struct rlimit limit = {(rlim_t)one + 100, (rlim_t)one + 100};
        mpl_row_file file;
        mpl_record *r = full_row(ctx, 2);
        bool good;

        signal(SIGXFSZ, SIG_IGN);
        good =
            setrlimit(RLIMIT_FSIZE, &limit) == 0 && mpl_row_file_open(ctx, path, &file) == MPL_OK &&
            mpl_row_file_append(ctx, &file, r) == MPL_EINPUT && strstr(ctx->message, path) != NULL;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    assert_int_equal(size_of(path), one);
}

TEST(one_writer_at_a_time)
{
    mpl_row_file first, second;
    const char *path = in_folder("locked.jsonl");
    pid_t pid;

    assert_ok(ctx, mpl_row_file_open(ctx, path, &first));
    assert_status(ctx, mpl_row_file_open(ctx, path, &second), MPL_EINPUT);
    mpl_row_file_close(&first);
    assert_ok(ctx, mpl_row_file_open(ctx, path, &second));
    if ((pid = fork()) == 0) { /* a worker that briefly outlives its bench while holding the lock */
        usleep(300000);
        _exit(0);
    }
    mpl_row_file_close(&second);
    assert_ok(ctx, mpl_row_file_open(ctx, path, &first));
    mpl_row_file_close(&first);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Rows 1, 2, 1: the second 1 replaces the first. */
TEST(last_row_of_a_key_counts)
{
    mpl_rows rows = {0};
    uint64_t planned;

    for (uint64_t i = 0; i < 3; i++) {
        mpl_record *r = full_row(ctx, i % 2);

        mpl_record_int(r, MPL_FIELD_planned_bytes, 100 + i);
        assert_ok(ctx, mpl_rows_take(ctx, &rows, &r));
    }
    assert_ok(ctx, mpl_rows_last(ctx, &rows));
    assert_int_equal(rows.n, 2);
    assert_true(mpl_record_get_int(rows.row[0], MPL_FIELD_planned_bytes, &planned));
    assert_int_equal(planned, 102);
    assert_true(mpl_record_get_int(rows.row[1], MPL_FIELD_planned_bytes, &planned));
    assert_int_equal(planned, 101);
    mpl_rows_fini(ctx, &rows);
}

TEST(medians)
{
    static const struct {
        uint32_t n;
        int64_t ns[5], median;
    } table[] = ROW({1, {7}, 7}, {2, {10, 4}, 7}, {3, {9, 1, 5}, 5}, {5, {5, 4, 3, 2, 1}, 3},
                    {4, {1, 100, 3, 2}, 2});
    int64_t median;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_record *r = NULL;

        assert_ok(ctx, mpl_record_new(ctx, &r));
        assert_false(mpl_record_median(r, MPL_FIELD_run_ns, &median));
        mpl_record_ints(r, MPL_FIELD_run_ns, table[i].n, table[i].ns);
        assert_true(mpl_record_median(r, MPL_FIELD_run_ns, &median));
        assert_int_equal(median, table[i].median);
        mpl_record_free(ctx, r);
    }
}

/* |got - want| <= 1e-4 |want| or 1e-5 is accepted, in each type. Fault: a tolerance that is only
 * relative, a NaN that passes. */
TEST(comparisons)
{
    static const struct {
        float got, want;
        bool within;
    } table[] = ROW({1, 1, true}, {1.00009f, 1, true}, {1.00011f, 1, false}, {0.000009f, 0, true},
                    {0.000011f, 0, false}, {-5, 5, false}, {1e30f, 1e30f, true}, {NAN, NAN, true},
                    {NAN, 1, false}, {1, NAN, false}, {INFINITY, 1, false},
                    {INFINITY, INFINITY, true}, {INFINITY, -INFINITY, false}, {-0.0f, 0.0f, true});
    const uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x7c00},
                   half_other[] = {0x3c01, 0xc000, 0x0001, 0x7c00};
    const uint16_t brain[] = {0x3f80}, brain_other[] = {0x3f81};
    const int64_t whole[] = {5, -3}, whole_other[] = {5, -4};
    const double value[] = {1.0}, value_other[] = {1.0 + 1e-6};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_int_equal(mpl_compare(MPL_TYPE_f32, 1, &table[i].got, &table[i].want) <=
                             MPL_REL_TOLERANCE,
                         table[i].within);
    assert_true(mpl_compare(MPL_TYPE_f16, 4, half, half) == 0);
    assert_true(mpl_compare(MPL_TYPE_f16, 4, half_other, half) == 1.0 / 1024);
    assert_true(mpl_compare(MPL_TYPE_bf16, 1, brain_other, brain) == 1.0 / 128);
    assert_true(mpl_compare(MPL_TYPE_i64, 2, whole_other, whole) == 1.0 / 3);
    assert_true(mpl_compare(MPL_TYPE_f64, 1, value_other, value) > 0.9e-6);
    assert_string_equal(mpl_outputs_word(0), "equal");
    assert_string_equal(mpl_outputs_word(1e-5), "within 1e-4");
    assert_string_equal(mpl_outputs_word(2e-4), "differ");
}

/* Two outputs of 3 and 20 elements; one element of either is changed. Fault: an output is not
 * compared to its end. */
TEST(outputs_are_compared_to_the_end)
{
    static const struct {
        uint32_t output;
        uint32_t element;
        float value;
        bool equal, within;
    } table[] =
        ROW({0, 0, 1.0f, true, true}, {0, 0, 1.5f, false, false}, {0, 2, 1.00001f, false, true},
            {1, 0, 0.5f, false, false}, {1, 19, 2.0f, false, false}, {1, 19, 1.00005f, false, true},
            {1, 19, -1.0f, false, false}, {0, 1, NAN, false, false});
    owned_graph *g = NULL;

    assert_ok(ctx, mpl_graph_new(ctx, "two", &g));
    for (int i = 0; i < 2; i++) {
        const mpl_shape shape = {1, {i == 0 ? 3 : 20}};
        const char *name = i == 0 ? "a" : "b", *out_name = i == 0 ? "c" : "d";
        mpl_value in, out;

        assert_ok(ctx, mpl_graph_add_value(ctx, g, name, MPL_INPUT, MPL_TYPE_f32, &shape, &in));
        assert_ok(ctx,
                  mpl_graph_add_op(ctx, g, MPL_OP_relu, name, 1, &in, 0, NULL, 1, &out_name, &out));
        assert_ok(ctx, mpl_graph_add_output(ctx, g, out));
    }
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t size = mpl_outputs_bytes(g);
        float *want = calloc(size, 1), *got = calloc(size, 1), *at;
        double error;

        for (size_t k = 0; k < size / sizeof *want; k++)
            want[k] = got[k] = 1;
        at = (float *)(uintptr_t)mpl_outputs_at(g, got, table[i].output);
        at[table[i].element] = table[i].value;
        error = mpl_outputs_error(g, got, want);
        assert_int_equal(error == 0, table[i].equal);
        assert_int_equal(error <= MPL_REL_TOLERANCE, table[i].within);
        free(want);
        free(got);
    }
}

/* Fault: a comment taken for a graph, an option that overrides the command line. */
TEST(suites)
{
    static const struct {
        const char *text;
        mpl_status st;
        uint32_t n;
        uint64_t repeat;
    } table[] =
        ROW({"# what\n\nmlp\n  lstm:steps=2  \n", MPL_OK, 2, 5}, {"--repeat 3\nmlp", MPL_OK, 1, 3},
            {"--repeat=4\nmlp\r\n", MPL_OK, 1, 4}, {"# nothing\n", MPL_EINPUT, 0, 0},
            {"--repeat\nmlp\n", MPL_EINPUT, 0, 0}, {"--repeat x\nmlp\n", MPL_EINPUT, 0, 0},
            {"--dump x\nmlp\n", MPL_EINPUT, 0, 0}, {"--checked\nmlp\n", MPL_OK, 1, 5});
    const char *path = in_folder("own.suite");

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_options options;
        mpl_suite suite = {0};
        FILE *f = fopen(path, "w");

        fputs(table[i].text, f);
        fclose(f);
        mpl_options_init(&options);
        assert_status(ctx, mpl_suite_open(ctx, path, &options, &suite), table[i].st);
        if (table[i].st == MPL_OK) {
            assert_string_equal(suite.name, "own");
            assert_int_equal(suite.graph.n, table[i].n);
            assert_int_equal(options.repeat, table[i].repeat);
        }
        mpl_suite_fini(ctx, &suite);
        mpl_options_fini(ctx, &options);
    }
    for (const mpl_builtin_suite *s = mpl_builtin_suites; s->name != NULL; s++) {
        mpl_options options;
        mpl_suite suite = {0};

        mpl_options_init(&options);
        assert_ok(ctx, mpl_suite_open(ctx, s->name, &options, &suite));
        mpl_suite_fini(ctx, &suite);
        mpl_options_fini(ctx, &options);
    }
}

TESTS_WITHIN(make_folder, folder_remove, every_field_survives, absent_is_null, keys_name_runs,
             key_ignores_member_order, wrong_rows_are_refused, torn_lines_are_dropped,
             full_disks_keep_whole_rows, one_writer_at_a_time, last_row_of_a_key_counts, medians,
             comparisons, outputs_are_compared_to_the_end, suites)
