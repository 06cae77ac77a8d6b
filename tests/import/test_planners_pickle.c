/* test_planners_pickle.c -- Python's pickles: plain data is read as it was written, and nothing of
 * a pickle is executed. */
#include "tests/support/folder.h"

#include "planners/import/import.h"
#include "planners/import/json/pickle.h"

static int begin(void)
{
    return folder_make("pickle") != 0;
}

static json_t *loaded; /* of the last read that was good */

static mpl_status read_text(mpl_ctx *ctx, const char *text, size_t n)
{
    json_decref(loaded);
    loaded = NULL;
    return mpl_pickle_read(ctx, "p", text, n, &loaded);
}

/* One line that begins with the path and says `says`. */
static void is_refused(mpl_ctx *ctx, const char *text, size_t n, const char *says)
{
    if (read_text(ctx, text, n) != MPL_EINPUT)
        fail_msg("'%s' is read", says);
    if (strncmp(ctx->message, "p: pickle, byte ", 16) != 0 || strchr(ctx->message, '\n') != NULL ||
        strstr(ctx->message, says) == NULL)
        fail_msg("does not say '%s': %s", says, ctx->message);
}

#define BYTES(text) text, sizeof text - 1

/* As pickletools shows them. Fault: a sign, an order of bytes, a length of another width. */
TEST(values_are_as_written)
{
    static const struct {
        const char *text;
        size_t n;
        const char *json;
    } table[] = {
        {BYTES("\x80\x02K\xff."), "255"},
        {BYTES("\x80\x02M\x01\x02."), "513"},
        {BYTES("\x80\x02J\xfe\xff\xff\xff."), "-2"},
        {BYTES("\x80\x02\x8a\x00."), "0"},
        {BYTES("\x80\x02\x8a\x02\xff\x80."), "-32513"},
        {BYTES("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), "9223372036854775807"},
        {BYTES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\xff."), "-9223372036854775808"},
        {BYTES("\x80\x02\x8b\x01\x00\x00\x00\x05."), "5"},
        {BYTES("\x80\x02G\xbf\xf8\0\0\0\0\0\0."), "-1.5"},
        {BYTES("\x80\x02G\x7f\xf0\0\0\0\0\0\0."), "null"},
        {BYTES("\x80\x04\x8c\x02hi."), "\"hi\""},
        {BYTES("\x80\x02X\x02\0\0\0hi."), "\"hi\""},
        {BYTES("\x80\x04\x8d\x02\0\0\0\0\0\0\0hi."), "\"hi\""},
        {BYTES("\x80\x02]q\x00(NK\x01\x88\x89"
               "e."),
         "[null,1,true,false]"},
        {BYTES("\x80\x02]K\x01"
               "aK\x02"
               "a."),
         "[1,2]"},
        {BYTES("\x80\x02}(X\x01\0\0\0aK\x01X\x01\0\0\0b)u."), "{\"a\":1,\"b\":[]}"},
        {BYTES("\x80\x02}X\x01\0\0\0aK\x01\x85s."), "{\"a\":[1]}"},
        {BYTES("\x80\x02(K\x01K\x02K\x03K\x04t."), "[1,2,3,4]"},
        {BYTES("\x80\x02K\x01K\x02\x86."), "[1,2]"},
        {BYTES("\x80\x02K\x01K\x02K\x03\x87."), "[1,2,3]"},
        {BYTES("\x80\x04\x95\x05\0\0\0\0\0\0\0](])e\x94."), NULL},
        {BYTES("\x80\x02](]q\x00K\x07"
               "ah\x00"
               "e."),
         "[[7],[7]]"},
        {BYTES("\x80\x04](\x8c\x01x\x94h\x00"
               "e."),
         "[\"x\",\"x\"]"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *text;

        assert_ok(ctx, read_text(ctx, table[i].text, table[i].n));
        text = json_dumps(loaded, JSON_COMPACT | JSON_ENCODE_ANY);
        assert_string_equal(text, table[i].json != NULL ? table[i].json : "[[],[]]");
        free(text);
    }
    read_text(ctx, "", 0);
}

/* Fault: an object that holds itself, a depth that ends the stack, a memo of 2^32 places. */
TEST(hostile_structures_are_refused)
{
    static const struct {
        const char *text;
        size_t n;
        const char *says;
    } table[] = {
        {BYTES("\x80\x02]q\x00h\x00"
               "a."),
         "no new list, or holds itself"},
        {BYTES("\x80\x02]q\x00]h\x00"
               "aa."),
         "no new list, or holds itself"},
        {BYTES("\x80\x02]q\x00\x85h\x00K\x01"
               "a."),
         "items for what is no new list"},
        {BYTES("\x80\x02]r\xff\xff\xff\xff."), "place 4294967295 of the memo, where 0 is next"},
        {BYTES("\x80\x02Nq\x00Nq\x00\x86."), "place 0 of the memo, where 1 is next"},
        {BYTES("\x80\x02h\x05."), "place 5 of the memo is empty"},
        {BYTES("\x80\x02."), "too little on the stack"},
        {BYTES("\x80\x02NN."), "STOP with 2 values"},
        {BYTES("\x80\x02N"), "cut: it should end in STOP"},
        {BYTES("\x80\x02X\xff\xff\xff\xff"
               "a."),
         "cut: 4294967295 bytes should follow"},
        {BYTES("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
               "a."),
         "cut"},
        {BYTES("\x80\x02X\x01\0\0\0\xff."), "no UTF-8"},
        {BYTES("\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\x01."), "more than 8 bytes"},
        {BYTES("\x80\x02\x8a\x09\0\0\0\0\0\0\0\x80\0."), "more than 8 bytes"},
        {BYTES("\x80\x02\x8a\x0a\0\0\0\0\0\0\0\0\0\0."), "a number of 10 bytes"},
        {BYTES("\x80\x02"
               "e."),
         "no mark"},
        {BYTES("\x80\x02(e."), "too little"},
        {BYTES("\x80\x02t."), "no mark"},
        {BYTES("\x80\x02N\x86."), "too little"},
        {BYTES("\x80\x02(\x85."), "too little"},
        {BYTES("\x80\x02"
               "a."),
         "too little"},
        {BYTES("\x80\x02}K\x01"
               "a."),
         "no new list"},
        {BYTES("\x80\x02]K\x01K\x01s."), "no new dict"},
        {BYTES("\x80\x02}(K\x01u."), "a key without its value"},
        {BYTES("\x80\x02}K\x01K\x02s."), "no text"},
        {BYTES("\x80\x04"
               "C\x01"
               "a."),
         "opcode 0x43 is none of plain data"},
        {BYTES("\x80\x04\x8f."), "none of plain data"},
    };
    char deep[300] = "\x80\x02";

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        is_refused(ctx, table[i].text, table[i].n, table[i].says);
    memset(deep + 2, ']', 100);
    memset(deep + 102, 'a', 99);
    deep[201] = '.';
    is_refused(ctx, deep, 202, "more than 64 objects in each other");
    memset(deep + 2 + 64, 'a', 63);
    deep[2 + 127] = '.';
    assert_ok(ctx, read_text(ctx, deep, 2 + 128));
    memset(deep + 3, 0x85, 100); /* a list in tuples in each other */
    deep[103] = '.';
    is_refused(ctx, deep, 104, "more than 64 objects in each other");
    read_text(ctx, "", 0);
}

/* Fault: depth that the memo forgets: each list holds the one before, fetched from there. */
TEST(depth_is_counted_through_the_memo)
{
    char text[2000] = "\x80\x02(]q";
    size_t n = 6;

    for (int i = 0; i < 100; i++) { /* in a tuple; a list, remembered; the one before into it */
        static const char one[] = "\x85]q";

        memcpy(text + n, one, 3);
        text[n + 3] = (char)(i + 1);
        text[n + 4] = 'h', text[n + 5] = (char)i, text[n + 6] = 'a';
        n += 7;
    }
    text[n++] = 't', text[n++] = '.';
    is_refused(ctx, text, n, "more than 64 objects in each other");
    read_text(ctx, "", 0);
}

/* ---- code ---- */

/* os.system("touch FOLDER/ran") in the ways that a pickle can ask for it. */
TEST(no_code_is_executed)
{
    static const struct {
        const char *format, *says;
    } table[] = {
        {"\x80\x02"
         "cos\nsystem\nX%c%c%c%ctouch %s/ran\x85R.",
         "GLOBAL would run code"},
        {"\x80\x02(X%c%c%c%ctouch %s/ranios\nsystem\n.", "INST would run code"},
    };
    static const struct {
        char op;
        const char *name;
    } codes[] = {{'c', "GLOBAL"}, {'\x93', "STACK_GLOBAL"}, {'R', "REDUCE"},       {'i', "INST"},
                 {'o', "OBJ"},    {'\x81', "NEWOBJ"},       {'\x92', "NEWOBJ_EX"}, {'b', "BUILD"},
                 {'P', "PERSID"}, {'Q', "BINPERSID"},       {'\x82', "EXT1"},      {'\x83', "EXT2"},
                 {'\x84', "EXT4"}};
    char path[700];

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[1000];
        int length = (int)strlen(folder) + 10;
        int n = snprintf(text, sizeof text, table[i].format, length, 1, 1, 1, folder);

        for (char *x = memchr(text, 'X', (size_t)n) + 2, k = 0; k < 3; k++)
            x[(int)k] = 0;
        is_refused(ctx, text, (size_t)n, table[i].says);
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char text[] = "\x80\x04NN?.", says[60];

        text[4] = codes[i].op;
        snprintf(says, sizeof says, "%s would run code", codes[i].name);
        is_refused(ctx, text, 6, says);
    }
    snprintf(path, sizeof path, "%s/ran", folder);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* ---- snapshots ---- */

static void same(const mpl_import *a, const mpl_import *b)
{
    assert_int_equal(a->problem->n, b->problem->n);
    assert_int_equal(a->arena_bytes, b->arena_bytes);
    assert_memory_equal(a->plan->offset, b->plan->offset, a->plan->n * sizeof *a->plan->offset);
    assert_memory_equal(a->problem->bytes, b->problem->bytes, a->plan->n * sizeof(uint64_t));
    assert_memory_equal(a->problem->birth, b->problem->birth, a->plan->n * sizeof(uint32_t));
    assert_memory_equal(a->problem->death, b->problem->death, a->plan->n * sizeof(uint32_t));
}

/* pickle.dump by Python 3 of what the JSON file holds, in protocols 2 and 4, with lists that are
 * shared. Each cut of them, and each changed byte, is refused with one line or still a plan. */
TEST(a_snapshot_is_what_its_json_is)
{
    static const char *const files[] = {"tests/data/import/small2.pytorch.pickle",
                                        "tests/data/import/small4.pytorch.pickle"};
    mpl_import json = {0}, got = {0};

    assert_ok(ctx, mpl_plan_import(ctx, "tests/data/import/small.pytorch.json", NULL, &json));
    for (int i = 0; i < 2; i++) {
        char *text = NULL;
        size_t size;

        assert_ok(ctx, mpl_plan_import(ctx, files[i], NULL, &got));
        same(&got, &json);
        mpl_import_fini(ctx, &got);
        assert_ok(ctx, mpl_file_read(ctx, files[i], &text, &size));
        for (size_t n = 2; n < size; n++)
            is_refused(ctx, text, n, "cut");
        for (size_t n = 2; n < size; n++) {
            char was = text[n];

            text[n] = (char)(was ^ (1 << n % 8));
            if (read_text(ctx, text, size) != MPL_OK)
                assert_null(strchr(ctx->message, '\n'));
            text[n] = was;
        }
        mpl_free(ctx, text);
    }
    mpl_import_fini(ctx, &json);
    read_text(ctx, "", 0);
}

TEST(memory_runs_out)
{
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_import got = {0};

        st = mpl_plan_import(ctx, "tests/data/import/small2.pytorch.pickle", NULL, &got);
        mpl_import_fini(ctx, &got);
    }
}

/* Fault: a small file that becomes any number of blocks; a history without frees as a plan; a
 * pickle that is no snapshot. */
TEST(snapshots_that_say_nothing_are_refused)
{
    static const struct {
        const char *text;
        size_t n;
        const char *says;
    } table[] = {
        {BYTES("\x80\x02N."), "'segments' and 'device_traces' should be lists"},
        {BYTES("\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces]u."), "no history"},
        {BYTES("{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 0, "
               "\"size\": 4}]]}"),
         "nothing is freed"},
        {BYTES("{\"segments\": [], \"device_traces\": [[{\"action\": \"free_requested\", "
               "\"addr\": 0, \"size\": 4}]]}"),
         "nothing is freed"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_import got = {0};

        assert_status(
            ctx, mpl_plan_import(ctx, folder_put("odd", table[i].text, table[i].n), NULL, &got),
            MPL_EINPUT);
        if (strstr(ctx->message, table[i].says) == NULL)
            fail_msg("does not say '%s': %s", table[i].says, ctx->message);
    }
}

/* 300 times the same segment of 300 times the same block: 90,000 blocks of less than 2,000 bytes.
 */
TEST(shared_blocks_are_not_multiplied)
{
    static const char head[] =
        "\x80\x02}(X\x0d\0\0\0device_traces]]}(X\x06\0\0\0actionX\x0e\0\0\0"
        "free_completedX\x04\0\0\0addrK\0X\x04\0\0\0sizeK\1uaaX\x08\0\0\0"
        "segments](}(X\x07\0\0\0addressK\0X\x0a\0\0\0total_sizeK\1X\x06\0\0\0"
        "blocks](}(X\x05\0\0\0stateX\x06\0\0\0activeX\x04\0\0\0sizeK\1uq";
    char text[3000];
    size_t n = sizeof head - 1;
    mpl_import got = {0};

    memcpy(text, head, n);
    text[n++] = 0;
    for (int i = 0; i < 300; i++)
        text[n++] = 'h', text[n++] = 0;
    text[n++] = 'e', text[n++] = 'u', text[n++] = 'q', text[n++] = 1;
    for (int i = 0; i < 300; i++)
        text[n++] = 'h', text[n++] = 1;
    memcpy(text + n, "eu.", 3);
    assert_status(ctx, mpl_plan_import(ctx, folder_put("many", text, n + 3), NULL, &got),
                  MPL_EINPUT);
    if (strstr(ctx->message, "more blocks than the file has bytes") == NULL)
        fail_msg("%s", ctx->message);
}

TESTS_WITHIN(begin, folder_remove, values_are_as_written, hostile_structures_are_refused,
             depth_is_counted_through_the_memo, no_code_is_executed, a_snapshot_is_what_its_json_is,
             snapshots_that_say_nothing_are_refused, memory_runs_out,
             shared_blocks_are_not_multiplied)
