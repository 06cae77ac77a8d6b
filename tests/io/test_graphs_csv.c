/* Buffer lists: correct ones are read exactly, and each wrong file gives one line that names file
 * and line. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/test.h"

#define FILE_NAME "build/test_graphs_csv.csv"

#define HEAD "id,lower,upper,size\n"

static const struct {
    const char *text, *want; /* what follows "FILE:" in the message */
} wrong[] = {
    {"", "1: empty"},
    {"\n \n\r\n", "1: empty"},
    {"id,lower,upper\n", "1: no column 'size'"},
    {"\n\nlower,upper,size\n", "3: no column 'id'"},
    {"a,b,c\n", "1: no column 'id'"},
    {"\xef\xbb\xbfid,lower,upper,size\na,0,1,1\n", "1: begins with a UTF-8 byte-order mark"},
    {"id,lower,start,upper,size\n", "1: two columns give the lower"},
    {HEAD, "1: no buffer"},
    {HEAD "a,0,1\n", "2: 3 fields; the header names 4"},
    {HEAD "a,0,1,2,3\n", "2: 5 fields"},
    {HEAD "a,0,1,2\nb,-1,1,2\n", "3: lower is negative: '-1'"},
    {HEAD "a,0,-3,2\n", "2: upper is negative"},
    {HEAD "a,0,1,-2\n", "2: size is negative"},
    {HEAD "a,0,1,0\n", "2: size is 0"},
    {HEAD "a,0,1,\n", "2: size is missing"},
    {HEAD ",0,1,4\n", "2: id is missing"},
    {HEAD "a,0,1,4k\n", "2: size is no whole number: '4k'"},
    {HEAD "a,0,1,4.0\n", "2: size is no whole number"},
    {HEAD "a,0,1,+4\n", "2: size is no whole number"},
    {HEAD "a,0,1,0x10\n", "2: size is no whole number"},
    {HEAD "a,0,1,-\n", "2: size is no whole number"},
    {HEAD "a,0,1,9223372036854775808\n", "2: size passes 2^63 - 1"},
    {HEAD "a,0,1,18446744073709551617\n", "2: size passes 2^63 - 1"},
    {HEAD "a,0,99999999999999999999999999,1\n", "2: upper passes 2^63 - 1"},
    {HEAD "a,5,5,1\n", "2: lower 5 is not below upper 5"},
    {HEAD "a,6,5,1\n", "2: lower 6 is not below upper 5"},
    {HEAD "a,0,1,1\nb,0,1,1\n\na,0,1,1\n", "5: id 'a' stands in line 2 already"},
    {"id,lower,upper,size,alignment\na,0,1,1,3\n", "2: alignment 3 is no power of two"},
    {"id,lower,upper,size,alignment\na,0,1,1,0\n", "2: alignment 0 is no power of two"},
    {"id,lower,upper,size,alignment\na,0,1,1,4294967296\n", "2: alignment 4294967296"},
    {"id,lower,upper,size,offset\na,0,1,1,-8\n", "2: offset is negative"},
};

TEST(refuse_wrong_files)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mpl_problem *p = NULL;
        mpl_status st;

        write_file(FILE_NAME, wrong[i].text, strlen(wrong[i].text));
        st = mpl_csv_read(ctx, FILE_NAME, &p, NULL);
        if (st != MPL_EINPUT || strncmp(ctx->message, FILE_NAME ":", strlen(FILE_NAME) + 1) != 0 ||
            strncmp(ctx->message + strlen(FILE_NAME) + 1, wrong[i].want, strlen(wrong[i].want)) !=
                0)
            fail_msg("%s\n: %s, '%s'; expected '%s'", wrong[i].text, mpl_status_name(st),
                     ctx->message, wrong[i].want);
        assert_null(p);
    }
    write_file(FILE_NAME, HEAD "a\0,0,1,1\n", sizeof HEAD "a\0,0,1,1\n" - 1);
    assert_status(ctx, mpl_csv_read(ctx, FILE_NAME, &(mpl_problem *){NULL}, NULL), MPL_EINPUT);
    assert_status(ctx, mpl_csv_read(ctx, "build/no/such/file.csv", &(mpl_problem *){NULL}, NULL),
                  MPL_EINPUT);
    assert_status(ctx, mpl_csv_read(ctx, "tests", &(mpl_problem *){NULL}, NULL), MPL_EINPUT);
}

/* The same two buffers, [3, 5) of 7 bytes and [4, 9) of 2, in every format and notation. */
static const struct {
    const char *text;
    bool offsets;
} right[] = {
    {"id,lower,upper,size\nx,3,5,7\ny,4,9,2\n", false},
    {"id,lower,upper,size\r\nx,3,5,7\r\ny,4,9,2", false},
    {"\n  size , id,begin,end\n\n7, x ,3,5\n\t2,y,4,9\n\n", false},
    {"buffer_id,start,end,size\nx,3,5,7\ny,4,9,2\n", false},
    {"buffer,lower,upper,size,gaps,hint\nx,3,5,7,3-4,\ny,4,9,2,,-1\n", false},
    {"id,lower,upper,size,offset\nx,3,5,7,0\ny,4,9,2,7\n", true},
    {"id,lower,upper,size,alignment\nx,3,5,7,1\ny,4,9,2,1\n", false},
    {"id,lower,upper,size\nx,03,0005,7\ny,4,9,2\n", false},
};

TEST(read_right_files)
{
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        owned_problem *p = NULL;
        owned_memory uint64_t *offset = NULL;

        write_file(FILE_NAME, right[i].text, strlen(right[i].text));
        assert_ok(ctx, mpl_csv_read(ctx, FILE_NAME, &p, &offset));
        assert_int_equal(p->n, 2);
        assert_string_equal(p->buffer_name[0], "x");
        assert_string_equal(p->buffer_name[1], "y");
        assert_int_equal(p->birth[0], 3);
        assert_int_equal(p->death[0], 5);
        assert_int_equal(p->bytes[0], 7);
        assert_int_equal(p->birth[1], 4);
        assert_int_equal(p->death[1], 9);
        assert_int_equal(p->bytes[1], 2);
        assert_int_equal(p->n_steps, 9);
        assert_int_equal(p->align[1], 1);
        assert_int_equal(offset != NULL, right[i].offsets);
        if (offset != NULL)
            assert_int_equal(offset[1], 7);
    }
}

/* Times in nanoseconds become ranks; conflicts stay. */
TEST(renumber_sparse_times)
{
    static const char text[] =
        HEAD "a,0,4000000000,1\nb,4000000000,9000000000000000000,2\nc,3999999999,4000000001,4\n";
    owned_problem *p = NULL;
    uint64_t peak = 0, live[8];
    uint32_t step = 0;

    write_file(FILE_NAME, text, sizeof text - 1);
    assert_ok(ctx, mpl_csv_read(ctx, FILE_NAME, &p, NULL));
    assert_int_equal(p->n_steps, 4);
    assert_false(mpl_conflict(p, 0, 1));
    assert_true(mpl_conflict(p, 0, 2));
    assert_true(mpl_conflict(p, 1, 2));
    assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, live, &step));
    assert_int_equal(peak, 6);
    assert_int_equal(step, 2);
}

TEST(write_and_read_back)
{
    static const char *const names[][2] = {{"x", "y"}, {"x,1", "y"}, {"x", ""}, {NULL, "y"}};
    static const char *const heads[] = {"x,3,5,7,4,8\ny,4,9,2,2,0\n", "0,3,5,7,4,8\n1,4,9,2,2,0\n"};

    for (size_t i = 0; i < 4; i++) {
        owned_problem *p = NULL, *again = NULL;
        uint64_t at[] = {8, 0}, *offset = NULL;
        char text[256] = "";
        FILE *f;

        assert_ok(ctx, mpl_problem_new(ctx, "two", 2, &p));
        assert_ok(ctx, mpl_new(ctx, p->buffer_name, 2));
        for (int b = 0; b < 2; b++)
            p->buffer_name[b] = names[i][b] != NULL ? mpl_strdup(ctx, names[i][b]) : NULL;
        p->n_steps = 9;
        p->birth[0] = 3, p->death[0] = 5, p->bytes[0] = 7, p->align[0] = 4;
        p->birth[1] = 4, p->death[1] = 9, p->bytes[1] = 2, p->align[1] = 2;
        assert_ok(ctx, mpl_csv_write(ctx, FILE_NAME, p, at));
        f = fopen(FILE_NAME, "r");
        assert_non_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
        assert_non_null(strstr(text, heads[i > 0]));
        assert_ok(ctx, mpl_csv_read(ctx, FILE_NAME, &again, &offset));
        assert_int_equal(mpl_problem_hash(p), mpl_problem_hash(again));
        assert_memory_equal(offset, at, sizeof at);
        mpl_free(ctx, offset);
        assert_status(ctx, mpl_csv_write(ctx, "build/no/such/file.csv", p, at), MPL_EINPUT);
        if (access("/dev/full", W_OK) == 0)
            assert_status(ctx, mpl_csv_write(ctx, "/dev/full", p, at), MPL_EINPUT);
    }
}

/* Rows of one pool alone, with a column of alignments where one of them needs it. */
TEST(write_rows_of_a_pool)
{
    static const char *const want[] = {"id,lower,upper,size,alignment\n0,3,5,7,4\n2,4,9,1,1\n",
                                       "id,lower,upper,size\n1,4,9,2\n"};
    owned_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "three", 3, &p));
    p->n_steps = 9;
    p->birth[0] = 3, p->death[0] = 5, p->bytes[0] = 7, p->align[0] = 4;
    p->birth[1] = 4, p->death[1] = 9, p->bytes[1] = 2, p->pool[1] = 1;
    p->birth[2] = 4, p->death[2] = 9, p->bytes[2] = 1;
    for (uint32_t pool = 0; pool < 2; pool++) {
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);

        assert_non_null(f);
        assert_int_equal(mpl_csv_write_rows(f, p, pool, false, NULL), 2 - pool);
        fclose(f);
        assert_string_equal(text, want[pool]);
        free(text);
    }
}

TEST(survive_lost_memory)
{
    write_file(FILE_NAME, right[5].text, strlen(right[5].text));
    EACH_ALLOCATION_FAILS (ctx, st) {
        owned_problem *p = NULL;
        owned_memory uint64_t *offset = NULL;

        st = mpl_csv_read(ctx, FILE_NAME, &p, &offset);
    }
}

/* Peak live bytes of published lists, half-open. */
static const struct {
    const char *path;
    uint32_t n;
    uint64_t peak;
} lists[] = {
    {MPL_SHARED "/minimalloc/A.1048576.csv", 154, 1048576},
    {MPL_SHARED "/minimalloc/C.1048576.csv", 203, 1039360},
    {MPL_SHARED "/minimalloc/D.1048576.csv", 213, 986112},
    {MPL_SHARED "/minimalloc/E.1048576.csv", 215, 1048576},
    {MPL_SHARED "/minimalloc/G.1048576.csv", 308, 1048576},
    {MPL_SHARED "/minimalloc/I.1048576.csv", 374, 1048576},
    {MPL_SHARED "/minimalloc/J.1048576.csv", 409, 989184},
    {MPL_SHARED "/minimalloc/K.1048576.csv", 454, 1048576},
    {MPL_SHARED "/idealloc/somas_resnet50.csv", 1042, 1515472556},
    {MPL_SHARED "/idealloc/G_1.csv", 816, 3030937746},
    {MPL_SHARED "/idealloc/S_1.csv", 28526, 1498635932},
};

TEST(know_published_peaks)
{
    skip_without(MPL_SHARED "/minimalloc");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        owned_problem *p = NULL;
        uint64_t peak = 0;

        assert_ok(ctx, mpl_csv_read(ctx, lists[i].path, &p, NULL));
        assert_int_equal(p->n, lists[i].n);
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
        assert_int_equal(peak, lists[i].peak);
    }
}

TESTS(refuse_wrong_files, read_right_files, renumber_sparse_times, write_and_read_back,
      write_rows_of_a_pool, survive_lost_memory, know_published_peaks)
