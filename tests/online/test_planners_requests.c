/* test_planners_requests.c -- requests of problems, problems of requests, and the rules of the
 * caching allocator.
 *
 * Fault: wrong rounding, pools or segments; a fit that is not the best; remainders split off or
 * kept wrongly; neighbours not merged; a peak that misses a step; requests out of order; a problem
 * of requests that is not theirs. */
#include "tests/support/test.h"

#include "planners/online/requests.h"

#define K *UINT64_C(1024)
#define M *UINT64_C(1048576)

typedef struct row {
    const char *name;
    struct {
        uint32_t id;
        uint64_t bytes; /* 0: freed */
    } call[12];
    uint32_t n;
    uint64_t capacity, requested, allocated, reserved;
    uint32_t n_segments, n_splits, n_flushes;
    mpl_status st;
} row;

static const row rows[] = {
    {"nothing", {{0, 0}}, 0, 1 M, 0, 0, 0, 0, 0, 0, MPL_OK},
    {"one byte takes 512, and a small segment", {{1, 1}}, 1, 100 M, 1, 512, 2 M, 1, 1, 0, MPL_OK},
    {"1 MiB is small", {{1, 1 M}}, 1, 100 M, 1 M, 1 M, 2 M, 1, 1, 0, MPL_OK},
    {"two of 1 MiB fill a segment", {{1, 1 M}, {2, 1 M}}, 2, 100 M, 2 M, 2 M, 2 M, 1, 1, 0, MPL_OK},
    {"a byte more is large", {{1, 1 M + 1}}, 1, 100 M, 1 M + 1, 1 M + 512, 20 M, 1, 1, 0, MPL_OK},
    ROW("small and large do not share", {{1, 512}, {2, 2 M}}, 2, 100 M, 2 M + 512, 2 M + 512, 22 M,
        2, 2, 0, MPL_OK),
    ROW("a large rest of 1 MiB stays", {{1, 9 M}, {2, 10 M}}, 2, 100 M, 19 M, 20 M, 20 M, 1, 1, 0,
        MPL_OK),
    ROW("10 MiB stands alone, in units of 2 MiB", {{1, 11 M}}, 1, 100 M, 11 M, 12 M, 12 M, 1, 0, 0,
        MPL_OK),
    ROW("a freed segment serves again", {{1, 30 M}, {1, 0}, {2, 29 M}}, 3, 100 M, 30 M, 30 M, 30 M,
        1, 0, 0, MPL_OK),
    ROW("it holds what it no longer needs", {{1, 30 M}, {1, 0}, {2, 40 M}}, 3, 100 M, 40 M, 40 M,
        70 M, 2, 0, 0, MPL_OK),
    ROW("but gives it back before it fails", {{1, 30 M}, {1, 0}, {2, 40 M}}, 3, 60 M, 40 M, 40 M,
        40 M, 2, 0, 1, MPL_OK),
    ROW("what is in use it cannot give back", {{1, 30 M}, {2, 40 M}}, 2, 60 M, 0, 0, 0, 0, 0, 0,
        MPL_ELIMIT),
    ROW("the best fit, not the first", {{1, 16 M}, {2, 12 M}, {1, 0}, {2, 0}, {3, 12 M}, {4, 16 M}},
        6, 100 M, 28 M, 28 M, 28 M, 2, 0, 0, MPL_OK),
    ROW("neighbours are joined, in front",
        {{1, 512 K}, {2, 512 K}, {3, 1 M}, {1, 0}, {2, 0}, {4, 1 M}}, 6, 100 M, 2 M, 2 M, 2 M, 1, 2,
        0, MPL_OK),
    ROW("neighbours are joined, behind",
        {{1, 512 K}, {2, 512 K}, {3, 1 M}, {2, 0}, {1, 0}, {4, 1 M}}, 6, 100 M, 2 M, 2 M, 2 M, 1, 2,
        0, MPL_OK),
    ROW("and all three",
        {{1, 512 K}, {2, 512 K}, {3, 512 K}, {1, 0}, {3, 0}, {2, 0}, {4, 1 M}, {5, 1 M}}, 8, 100 M,
        2 M, 2 M, 2 M, 1, 4, 0, MPL_OK),
    ROW("a segment with one block in use stays", {{1, 512}, {2, 3 M}, {2, 0}, {3, 50 M}}, 4, 60 M,
        50 M + 512, 50 M + 512, 52 M, 3, 2, 1, MPL_OK),
    {"given back twice", {{1, 512}, {1, 0}, {1, 0}}, 3, 60 M, 0, 0, 0, 0, 0, 0, MPL_EINVALID},
    {"more than there is", {{1, UINT64_MAX}}, 1, 60 M, 0, 0, 0, 0, 0, 0, MPL_ELIMIT},
};

static const mpl_allocator *caching(void)
{
    return mpl_allocator_find("caching");
}

TEST(the_model_follows_its_rules)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        mpl_request request[12];
        uint64_t bytes[8] = {0};
        mpl_online_facts f = {0};

        for (uint32_t k = 0; k < r->n; k++) {
            bool back = r->call[k].bytes == 0;

            bytes[r->call[k].id] = back ? bytes[r->call[k].id] : r->call[k].bytes;
            request[k] = (mpl_request){r->call[k].id, bytes[r->call[k].id], back, 1};
        }
        assert_status(ctx, mpl_requests_play(ctx, request, r->n, caching(), r->capacity, &f, NULL),
                      r->st);
        if (f.live_peak_bytes != r->requested || f.allocated_bytes != r->allocated ||
            f.reserved_bytes != r->reserved || f.n_segments != r->n_segments ||
            f.n_splits != r->n_splits || f.n_flushes != r->n_flushes)
            fail_msg("%s: requested %" PRIu64 ", allocated %" PRIu64 ", reserved %" PRIu64
                     ", %u segments, %u splits, %u flushes",
                     r->name, f.live_peak_bytes, f.allocated_bytes, f.reserved_bytes, f.n_segments,
                     f.n_splits, f.n_flushes);
    }
}

static mpl_problem *problem_of(mpl_ctx *ctx, const char *name, mpl_value_map **map, bool parallel)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_problem *p = NULL;
    owned_graph *g = NULL;
    owned_memory mpl_op *order;

    options.parallel = parallel;
    assert_ok(ctx, mpl_zoo_build(ctx, name, &g));
    order = order_by(ctx, g, "given");
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, map));
    return p;
}

/* The peaks of requested bytes and of live bytes agree for any graph. */
TEST(requests_follow_lifetimes)
{
    static const char *const names[] = {"mlp", "resnet50", "densenet121", "inception_v3", "lstm"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        owned_map *map = NULL;
        owned_memory mpl_request *request = NULL;
        uint32_t n = 0;
        uint64_t peak = 0;
        mpl_online_facts f;
        owned_problem *p = problem_of(ctx, names[i], &map, false);

        assert_ok(ctx, mpl_requests_make(ctx, p, 0, &request, &n));
        assert_ok(ctx, mpl_requests_play(ctx, request, n, caching(), UINT64_MAX, &f, NULL));
        for (uint32_t s = 0; s < p->n_steps; s++) {
            uint64_t live = 0;

            for (mpl_buffer b = 0; b < p->n; b++)
                live += p->birth[b] <= s && s < p->death[b] ? p->bytes[b] : 0;
            peak = mpl_max_u64(peak, live);
        }
        assert_int_equal(f.live_peak_bytes, peak);
        assert_true(f.live_peak_bytes <= f.allocated_bytes &&
                    f.allocated_bytes <= f.reserved_bytes);
    }
}

/* Which are alive at once, and for how long: of the problem, of its requests, and of a problem of
 * these, the same. Ids that are used again, and what is never given back. */
TEST(requests_are_a_problem)
{
    static const mpl_request request[] = {{7, 10, false, 1}, {2, 20, false, 4}, {7, 10, true, 1},
                                          {7, 30, false, 8}, {2, 20, true, 4},  {0, 0, false, 1}};
    static const uint64_t bytes[] = {10, 20, 30, 1}, align[] = {1, 4, 8, 1};
    static const bool conflict[4][4] = {{1, 1, 0, 0}, {1, 1, 1, 0}, {0, 1, 1, 1}, {0, 0, 1, 1}};
    owned_memory mpl_request *again = NULL;
    owned_problem *p = NULL;
    uint32_t n = 0;

    assert_ok(ctx, mpl_requests_problem(ctx, request, 6, &p));
    assert_int_equal(p->n, 4);
    for (mpl_buffer b = 0; b < 4; b++) {
        assert_true(p->bytes[b] == bytes[b] && p->align[b] == align[b]);
        for (mpl_buffer c = 0; c < 4; c++)
            assert_true(b == c || mpl_conflict(p, b, c) == conflict[b][c]);
    }
    assert_ok(ctx, mpl_requests_make(ctx, p, 0, &again, &n));
    assert_int_equal(n, 8); /* all end */
    for (uint32_t i = 0, k = 0; i < 6; i++, k++)
        assert_true(again[k].bytes == mpl_max_u64(request[i].bytes, 1) &&
                    again[k].gives_back == request[i].gives_back);
}

TEST(memory_may_run_out)
{
    owned_map *map = NULL, *other = NULL;
    owned_problem *p, *parallel;
    mpl_request *request = NULL;
    uint32_t n = 0;

    p = problem_of(ctx, "mlp", &map, false);
    parallel = problem_of(ctx, "mlp", &other, true);
    assert_status(ctx, mpl_requests_make(ctx, parallel, 0, &request, &n), MPL_EUNAVAIL);
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_online_facts f;

        st = mpl_requests_make(ctx, p, 0, &request, &n);
        if (st == MPL_OK) {
            mpl_problem *made = NULL;

            st = mpl_requests_play(ctx, request, n, caching(), UINT64_MAX, &f, NULL);
            if (st == MPL_OK)
                st = mpl_requests_problem(ctx, request, n, &made);
            mpl_problem_free(ctx, made);
            mpl_free(ctx, request);
            request = NULL;
        }
    }
    ctx->fail_after = -1;
}

TESTS(the_model_follows_its_rules, requests_follow_lifetimes, requests_are_a_problem,
      memory_may_run_out)
