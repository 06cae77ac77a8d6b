/* test_planners_usmp.c -- conflicts of TVM's USMP become lives with just these conflicts, and,
 * where they are those of lifetimes, lives without gaps. */
#include "graphs/core/rng.h"
#include "tests/support/folder.h"

#include "planners/import/import.h"

enum { MOST = 24, TEXT = 1 << 16 };

static int begin(void)
{
    return folder_make("usmp") != 0;
}

/* Writes n buffers of one byte, all at 0, with these conflicts. */
static const char *write_plan(uint32_t n, bool (*conflict)[MOST])
{
    static char text[TEXT];
    int at = snprintf(text, TEXT, "{\"usmp\": 1, \"buffers\": [");

    for (uint32_t a = 0; a < n; a++) {
        const char *comma = "";

        at += snprintf(text + at, TEXT - at,
                       "%s{\"size_bytes\": 1, \"alignment\": 1, "
                       "\"byte_offset\": 0, \"pool_name\": \"w\", \"conflicts\": [",
                       a > 0 ? ", " : "");
        for (uint32_t b = 0; b < n; b++)
            if (conflict[a][b])
                at += snprintf(text + at, TEXT - at, "%s%u", comma, b), comma = ", ";
        at += snprintf(text + at, TEXT - at, "]}");
    }
    at += snprintf(text + at, TEXT - at, "]}");
    assert_true(at < TEXT);
    return folder_put("u.json", text, (size_t)at);
}

static void check_conflicts(mpl_ctx *ctx, uint32_t n, bool (*conflict)[MOST], bool of_lives)
{
    mpl_import got = {0};

    assert_ok(ctx, mpl_plan_import(ctx, write_plan(n, conflict), NULL, &got));
    assert_string_equal(got.format, "tvm_usmp");
    assert_int_equal(got.problem->n, n);
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++)
            if (a != b && mpl_conflict(got.problem, a, b) != conflict[a][b])
                fail_msg("%u and %u of %u: should%s conflict", a, b, n,
                         conflict[a][b] ? "" : " not");
    if (of_lives && got.problem->gap_begin != NULL)
        fail_msg("the conflicts of %u lives became lives with gaps", n);
    mpl_import_fini(ctx, &got);
}

TEST(conflicts_of_lives_become_lives)
{
    mpl_rng rng = mpl_rng_of(24);

    for (uint32_t turn = 0, turns = draws(600); turn < turns; turn++) {
        uint32_t n = 1 + (uint32_t)mpl_rng_below(&rng, MOST), birth[MOST], death[MOST];
        uint32_t length = 1 + (uint32_t)mpl_rng_below(&rng, 12);
        bool conflict[MOST][MOST] = {{false}};

        for (uint32_t a = 0; a < n; a++) {
            birth[a] = (uint32_t)mpl_rng_below(&rng, 30);
            death[a] = birth[a] + 1 + (uint32_t)mpl_rng_below(&rng, length);
            for (uint32_t b = 0; b < a; b++)
                conflict[a][b] = conflict[b][a] = birth[a] < death[b] && birth[b] < death[a];
        }
        check_conflicts(ctx, n, conflict, true);
    }
}

/* Any relation, as of memory that is alive at several times. */
TEST(any_conflicts_are_kept)
{
    mpl_rng rng = mpl_rng_of(25);

    for (uint32_t turn = 0, turns = draws(300); turn < turns; turn++) {
        uint32_t n = 1 + (uint32_t)mpl_rng_below(&rng, MOST);
        uint64_t dense = 1 + mpl_rng_below(&rng, 9);
        bool conflict[MOST][MOST] = {{false}};

        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < a; b++)
                conflict[a][b] = conflict[b][a] = mpl_rng_below(&rng, 10) < dense;
        check_conflicts(ctx, n, conflict, false);
    }
}

TESTS_WITHIN(begin, folder_remove, conflicts_of_lives_become_lives, any_conflicts_are_kept)
