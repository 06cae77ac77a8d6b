/* Partial orders: closure, reduction, antichain bound and folding against brute force. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/synthetic_training.h"
#include "tests/support/test.h"

#include "graphs/problem/fold_pairs.h"
#include "graphs/problem/subset.h"

enum { MOST = 14 };

/* A random DAG over n elements with shuffled ids, so that code cannot rely on ascending ids. */
static size_t random_arcs(mpl_rng *rng, uint32_t n, uint32_t *from, uint32_t *to)
{
    uint32_t name[MOST];
    size_t n_arcs = 0;
    uint32_t odds = 2 + (uint32_t)mpl_rng_below(rng, 6);

    count_up(n, name);
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = (uint32_t)mpl_rng_below(rng, i), swap = name[i - 1];

        name[i - 1] = name[k];
        name[k] = swap;
    }
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++)
            if (mpl_rng_below(rng, odds) == 0) {
                from[n_arcs] = name[a];
                to[n_arcs++] = name[b];
            }
    return n_arcs;
}

/* Warshall's transitive closure. */
static void close_plainly(uint32_t n, size_t n_arcs, const uint32_t *from, const uint32_t *to,
                          bool reach[MOST][MOST])
{
    memset(reach, 0, sizeof(bool[MOST][MOST]));
    for (size_t i = 0; i < n_arcs; i++)
        reach[from[i]][to[i]] = true;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++)
                reach[a][b] |= reach[a][k] && reach[k][b];
}

TEST(closure_and_reduction)
{
    mpl_rng rng = mpl_rng_of(1);
    uint32_t from[MOST * MOST], to[MOST * MOST];

    for (uint32_t round = 0; round < draws(2000); round++) {
        uint32_t n = 1 + (uint32_t)mpl_rng_below(&rng, MOST);
        size_t n_arcs = random_arcs(&rng, n, from, to);
        bool reach[MOST][MOST];
        mpl_before *o = NULL;
        uint32_t n_covers = 0;

        close_plainly(n, n_arcs, from, to, reach);
        assert_ok(ctx, mpl_before_from_arcs(ctx, n, n_arcs, from, to, &o));
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++) {
                bool covers = reach[a][b];

                assert_int_equal(mpl_is_before(o, a, b), reach[a][b]);
                for (uint32_t k = 0; k < n; k++)
                    covers &= !(reach[a][k] && reach[k][b]);
                n_covers += covers;
                if (covers) {
                    uint32_t i = o->red_begin[a];

                    while (i < o->red_begin[a + 1] && o->red_item[i] != b)
                        i++;
                    assert_true(i < o->red_begin[a + 1]);
                }
            }
        assert_int_equal(o->red_begin[n], n_covers);
        mpl_before_free(ctx, o);
    }
}

TEST(cycles_are_refused)
{
    mpl_before *o = NULL;

    assert_status(ctx,
                  mpl_before_from_arcs(ctx, 3, 3, (uint32_t[]){0, 1, 2}, (uint32_t[]){1, 2, 0}, &o),
                  MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "cycle"));
    assert_status(ctx, mpl_before_from_arcs(ctx, 3, 1, (uint32_t[]){0}, (uint32_t[]){3}, &o),
                  MPL_EINPUT);
    assert_null(o);
}

static mpl_problem *parallel_problem(mpl_ctx *ctx, uint32_t n, size_t n_arcs, const uint32_t *from,
                                     const uint32_t *to)
{
    mpl_problem *p = NULL;
    mpl_before *o = NULL;

    assert_ok(ctx, mpl_before_from_arcs(ctx, n, n_arcs, from, to, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "test", n, &p));
    p->before = o;
    return p;
}

/* Heaviest set without two related elements, over all subsets; an in-place pair relates its two
 * buffers. */
static uint64_t heaviest_plainly(const mpl_problem *p)
{
    uint64_t best = 0;

    for (uint32_t set = 0; set < UINT32_C(1) << p->n; set++) {
        uint64_t sum = 0;
        bool good = true;

        for (uint32_t a = 0; a < p->n; a++) {
            sum += (set >> a & 1) != 0 ? (p->bytes[a] + p->align[a] - 1) / p->align[a] * p->align[a]
                                       : 0;
            for (uint32_t b = 0; b < p->n && (set >> a & 1) != 0; b++)
                good &= (set >> b & 1) == 0 || !mpl_is_before(p->before, a, b);
        }
        for (uint32_t i = 0; i < p->n_in_place; i++)
            good &= (set >> p->in_place_in[i] & 1) == 0 || (set >> p->in_place_out[i] & 1) == 0;
        if (good && sum > best)
            best = sum;
    }
    return best;
}

TEST(antichain_is_heaviest)
{
    mpl_rng rng = mpl_rng_of(2);
    uint32_t from[MOST * MOST], to[MOST * MOST];

    for (uint32_t round = 0; round < draws(300); round++) {
        uint32_t n = 1 + (uint32_t)mpl_rng_below(&rng, 12);
        size_t n_arcs = random_arcs(&rng, n, from, to);
        owned_problem *p = parallel_problem(ctx, n, n_arcs, from, to);
        uint8_t member[MOST];
        uint64_t bytes, sum = 0, rest = 0;

        for (uint32_t b = 0; b < n; b++) {
            p->bytes[b] = 1 + mpl_rng_below(&rng, 1000);
            p->align[b] = round % 2 == 0 ? 1 : 64;
        }
        assert_ok(ctx, mpl_antichain(ctx, p, 0, &bytes, member));
        for (uint32_t a = 0; a < n; a++) {
            uint64_t slots = (p->bytes[a] + p->align[a] - 1) / p->align[a] * p->align[a];

            sum += member[a] ? slots : 0;
            rest = member[a] && slots - p->bytes[a] > rest ? slots - p->bytes[a] : rest;
            for (uint32_t b = 0; b < n; b++)
                assert_false(member[a] && member[b] && mpl_is_before(p->before, a, b));
        }
        assert_int_equal(sum, heaviest_plainly(p));
        assert_int_equal(sum - rest, bytes);
    }
}

TEST(sums_past_a_double_are_refused)
{
    uint64_t bytes;
    owned_problem *p = parallel_problem(ctx, 2, 0, NULL, NULL);

    p->bytes[0] = p->bytes[1] = UINT64_C(1) << 52;
    assert_status(ctx, mpl_antichain(ctx, p, 0, &bytes, NULL), MPL_EINPUT);
    p->bytes[1]--;
    assert_ok(ctx, mpl_antichain(ctx, p, 0, &bytes, NULL));
    assert_int_equal(bytes, (UINT64_C(1) << 53) - 1);
}

/* a -> x -> y in place, c alive throughout: they fold to one group and c. */
TEST(folding_merges_chains)
{
    owned_problem *p = NULL, *f = NULL;
    uint32_t into[4];
    uint32_t pairs[] = {0, 1}, outs[] = {1, 2}, steps[] = {1, 2};

    assert_ok(ctx, mpl_problem_new(ctx, "chain", 4, &p));
    for (uint32_t b = 0; b < 3; b++) {
        p->bytes[b] = 100 - b;
        p->birth[b] = b;
        p->death[b] = b + 2;
    }
    p->bytes[3] = 7;
    p->death[3] = p->n_steps = 4;
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 2));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 2));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 2));
    p->n_in_place = 2;
    memcpy(p->in_place_in, pairs, sizeof pairs);
    memcpy(p->in_place_out, outs, sizeof outs);
    memcpy(p->in_place_step, steps, sizeof steps);
    assert_ok(ctx, mpl_problem_check(ctx, p));
    assert_ok(ctx, mpl_problem_fold(ctx, p, &f, into));
    assert_int_equal(f->n, 2);
    assert_int_equal(into[0], 0);
    assert_int_equal(into[1], 0);
    assert_int_equal(into[2], 0);
    assert_int_equal(into[3], 1);
    assert_int_equal(f->bytes[0], 100);
    assert_int_equal(f->birth[0], 0);
    assert_int_equal(f->death[0], 4);
    assert_int_equal(f->n_in_place, 0);
}

/* A diamond of events 0 -> {1, 2} -> 3: a buffer used on one arm may conflict with the other arm in
 * any order. */
TEST(access_gives_the_order)
{
    mpl_before *o = NULL;
    uint32_t edge_begin[] = {0, 2, 3, 4, 4}, edge_item[] = {1, 2, 3, 3};
    /* x made by 0, read by 1 and 2; y made by 1, read by 3; z made by 2, read by 3; u made by 0,
     * read by 1; w made by 3 */
    uint32_t first_begin[] = {0, 1, 2, 3, 4, 5}, first_item[] = {0, 1, 2, 0, 3};
    uint32_t last_begin[] = {0, 2, 3, 4, 5, 6}, last_item[] = {1, 2, 3, 3, 1, 3};
    const mpl_access access = {4,          edge_begin, edge_item, first_begin,
                               first_item, last_begin, last_item};
    const char *want[] = {"00001", "00000", "00000", "00001", "00000"};

    assert_ok(ctx, mpl_before_from_access(ctx, 5, &access, &o));
    for (uint32_t a = 0; a < 5; a++)
        for (uint32_t b = 0; b < 5; b++)
            assert_int_equal(mpl_is_before(o, a, b), want[a][b] == '1');
    mpl_before_free(ctx, o);
}

TEST(intervals_become_an_order)
{
    mpl_rng rng = mpl_rng_of(3);

    for (uint32_t round = 0; round < draws(100); round++) {
        owned_problem *p = NULL;
        bool conflict[20][20];
        uint64_t peak, bytes;

        assert_ok(ctx, mpl_problem_new(ctx, "intervals", 20, &p));
        p->n_steps = 40;
        for (uint32_t b = 0; b < p->n; b++) {
            p->bytes[b] = 1 + mpl_rng_below(&rng, 100);
            p->birth[b] = (uint32_t)mpl_rng_below(&rng, 30);
            p->death[b] = p->birth[b] + 1 + (uint32_t)mpl_rng_below(&rng, 10);
        }
        for (uint32_t a = 0; a < p->n; a++)
            for (uint32_t b = 0; b < p->n; b++)
                conflict[a][b] = mpl_conflict(p, a, b);
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
        assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
        for (uint32_t a = 0; a < p->n; a++)
            for (uint32_t b = 0; b < p->n; b++)
                assert_int_equal(mpl_conflict(p, a, b), conflict[a][b]);
        assert_ok(ctx, mpl_antichain(ctx, p, 0, &bytes, NULL));
        assert_int_equal(bytes, peak); /* for intervals, cliques are the sets alive at one step */
    }
}

/* Buffers in groups of one to three, in any order, a few left out; or each for itself, in the order
 * given or in any. */
static mpl_members draw_members(mpl_rng *rng, uint32_t n, uint32_t *begin, mpl_buffer *item)
{
    uint32_t kind = (uint32_t)mpl_rng_below(rng, 4);
    bool all = kind < 2;
    uint32_t n_groups = 0, left = n;

    count_up(n, item);
    for (uint32_t i = n; kind > 0 && i > 1; i--) {
        uint32_t k = (uint32_t)mpl_rng_below(rng, i), held = item[i - 1];

        item[i - 1] = item[k];
        item[k] = held;
    }
    for (begin[0] = 0; left > 0 && (all || left > 3); n_groups++) {
        begin[n_groups + 1] = begin[n_groups] + (all ? 1 : 1 + (uint32_t)mpl_rng_below(rng, 3));
        left = n - begin[n_groups + 1];
    }
    return (mpl_members){n_groups, begin, item};
}

static bool all_before(const mpl_problem *p, const mpl_members *m, uint32_t i, uint32_t k)
{
    bool all = true;

    for (uint32_t a = m->begin[i]; a < m->begin[i + 1]; a++)
        for (uint32_t b = m->begin[k]; b < m->begin[k + 1]; b++)
            all &= mpl_is_before(p->before, m->item[a], m->item[b]);
    return all;
}

/* Relations of more elements than a word has bits, of intervals, whose order is known: as they are,
 * transposed, and of groups. */
TEST(relations_of_several_words)
{
    mpl_rng rng = mpl_rng_of(9);

    for (uint32_t round = 0; round < draws(60); round++) {
        uint32_t n = 1 + (uint32_t)mpl_rng_below(&rng, 200), born[200], dead[200], begin[201];
        mpl_buffer item[200];
        mpl_members members = draw_members(&rng, n, begin, item);
        owned_problem *p = NULL, *some = NULL;
        owned_memory uint64_t *after = NULL;

        assert_ok(ctx, mpl_problem_new(ctx, "words", n, &p));
        p->n_steps = 400;
        for (uint32_t b = 0; b < n; b++) {
            p->bytes[b] = 1;
            born[b] = p->birth[b] = (uint32_t)mpl_rng_below(&rng, 300);
            dead[b] = p->death[b] = born[b] + 1 + (uint32_t)mpl_rng_below(&rng, 100);
        }
        assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
        assert_ok(ctx, mpl_before_transpose(ctx, p->before, &after));
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++) {
                assert_int_equal(mpl_is_before(p->before, a, b), dead[a] <= born[b]);
                assert_int_equal(mpl_bit_has(after + (size_t)b * p->before->n_words, a),
                                 dead[a] <= born[b]);
            }
        assert_ok(ctx, mpl_problem_subset(ctx, p, &members, MPL_KEEP_ORDER, NULL, &some));
        for (uint32_t i = 0; i < members.n; i++)
            for (uint32_t k = 0; k < members.n; k++)
                assert_int_equal(mpl_is_before(some->before, i, k), all_before(p, &members, i, k));
        if (members.n == n)
            assert_int_equal(some->before->red_begin[n], p->before->red_begin[n]);
    }
}

/* Any failing allocation gives a clean status and no leak. */
TEST(allocation_failures)
{
    EACH_ALLOCATION_FAILS (ctx, st) {
        owned_problem *p = NULL;
        uint64_t bytes;

        st = synthetic_training(ctx, 60, 1, &p);
        if (st == MPL_OK)
            st = mpl_antichain(ctx, p, 0, &bytes, NULL);
    }
}

TESTS(closure_and_reduction, cycles_are_refused, antichain_is_heaviest,
      sums_past_a_double_are_refused, folding_merges_chains, access_gives_the_order,
      intervals_become_an_order, relations_of_several_words, allocation_failures)
