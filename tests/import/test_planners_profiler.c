/* test_planners_profiler.c -- allocations in traces of PyTorch's profiler: a file worked out by
 * hand, and changes of it. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/folder.h"

#include "planners/import/import.h"
#include "planners/verify/verify.h"

#define TRACE "tests/data/import/small.profiler.json"

static int begin(void)
{
    return folder_make("profiler") != 0;
}

/* Fault: events as they stand in the file, a device's mixed with another's, a block from before or
 * one that stays forgotten. */
TEST(lives_are_those_of_one_device_in_time)
{
    static const uint32_t birth[] = {1, 4, 2, 0}, death[] = {3, 6, 6, 5};
    static const uint64_t bytes[] = {1024, 768, 512, 256}, offset[] = {0, 0, 1024, 4096};
    mpl_import got = {0};
    uint64_t live = 0;

    assert_ok(ctx, mpl_plan_import(ctx, TRACE, NULL, &got));
    assert_string_equal(got.format, "profiler");
    assert_int_equal(got.problem->n, 4);
    for (int b = 0; b < 4; b++) {
        assert_int_equal(got.problem->birth[b], birth[b]);
        assert_int_equal(got.problem->death[b], death[b]);
        assert_int_equal(got.problem->bytes[b], bytes[b]);
        assert_int_equal(got.plan->offset[b], offset[b]);
    }
    assert_true(got.returns_memory);
    assert_int_equal(got.arena_bytes, 2097152);
    assert_ok(ctx, mpl_verify(ctx, got.problem, got.plan));
    assert_ok(ctx, mpl_peak_live(ctx, got.problem, 0, &live, NULL, NULL));
    assert_int_equal(live, 1792);
    mpl_import_fini(ctx, &got);
}

/* The trace with the first `from` replaced, or cut behind it where `to` is NULL. */
static mpl_status changed(mpl_ctx *ctx, const char *from, const char *to, mpl_import *got)
{
    char text[4000], *at;
    size_t size;
    char *whole = NULL;
    int n;

    assert_ok(ctx, mpl_file_read(ctx, TRACE, &whole, &size));
    at = strstr(whole, from);
    assert_non_null(at);
    n = to != NULL ? snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, to,
                              at + strlen(from))
                   : snprintf(text, sizeof text, "%.*s", (int)(at - whole), whole);
    mpl_free(ctx, whole);
    return mpl_plan_import(ctx, folder_put("t.json", text, (size_t)n), NULL, got);
}

TEST(wrong_traces_are_refused_with_one_line)
{
    static const struct {
        const char *from, *to, *says;
    } table[] = {
        {"\"Bytes\": -1024", "\"Bytes\": 1024", "event 2: 0x1000 is allocated twice"},
        {"\"Bytes\": 768", "\"Bytes\": -1024", "event 5: 0x1000 is freed twice"},
        {"\"Bytes\": -1024", "\"Bytes\": -512", "event 2 frees 512 bytes of 1024"},
        {"\"Bytes\": 1024", "\"Bytes\": 1.5", "event 1: 'Bytes' or 'ts'"},
        {"\"Bytes\": 1024", "\"Bytes\": -9223372036854775808", "event 1: 'Bytes' or 'ts'"},
        {"\"ts\": 2.5", "\"ts\": \"2\"", "event 1: 'Bytes' or 'ts'"},
        {"\"Addr\": 4096", "\"Addr\": -1", "event 1: 'Addr'"},
        {"\"Ev Idx\": 9", NULL, "JSON"},
    };
    static const char ort[] = "[{\"cat\": \"Session\", \"ph\": \"X\", \"name\": \"model_run\", "
                              "\"ts\": 1, \"args\": {}}]";
    static const char kept[] =
        "{\"traceEvents\": [{\"name\": \"[memory]\", \"ts\": 1, \"args\": {\"Addr\": 1, "
        "\"Bytes\": 8}}]}";
    mpl_import got = {0};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_status(ctx, changed(ctx, table[i].from, table[i].to, &got), MPL_EINPUT);
        if (strstr(ctx->message, table[i].says) == NULL || strchr(ctx->message, '\n') != NULL)
            fail_msg("does not say '%s': %s", table[i].says, ctx->message);
    }
    assert_status(ctx, mpl_plan_import(ctx, folder_put("ort", ort, sizeof ort - 1), NULL, &got),
                  MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "ONNX Runtime's does not"));
    assert_status(ctx, mpl_plan_import(ctx, folder_put("kept", kept, sizeof kept - 1), NULL, &got),
                  MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "nothing is freed"));
}

/* Two blocks at once at one place are read, and the verifier names them. */
TEST(the_verifier_sees_what_overlaps)
{
    mpl_import got = {0};

    assert_ok(ctx, changed(ctx, "\"Addr\": 5120", "\"Addr\": 4608", &got));
    assert_status(ctx, mpl_verify(ctx, got.problem, got.plan), MPL_EINVALID);
    mpl_import_fini(ctx, &got);
}

TEST(memory_runs_out)
{
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_import got = {0};

        st = mpl_plan_import(ctx, TRACE, NULL, &got);
        mpl_import_fini(ctx, &got);
    }
}

TESTS_WITHIN(begin, folder_remove, lives_are_those_of_one_device_in_time,
             wrong_traces_are_refused_with_one_line, the_verifier_sees_what_overlaps,
             memory_runs_out)
