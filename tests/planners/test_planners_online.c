/* test_planners_online.c -- online allocators against simulations written apart: lists of what is
 * alive, searched in the plainest way. MPL_ONLINE=N: that many random traces (2,000).
 *
 * Fault: a fit that is not the best; free neighbours not joined; bytes lost or given out twice; a
 * wrong alignment; a wrong count. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "planners/online/online.h"

enum { MOST = 40 };

/* Of the simulation: what is alive, in no order. */
typedef struct alive {
    uint64_t at, bytes; /* of its block */
    uint64_t asked, offset;
    uint32_t id; /* of the allocator's block */
} alive;

typedef struct simulation {
    alive item[MOST];
    uint32_t n;
    uint64_t top;
} simulation;

/* The end of what is free from `at` on, below `end`. */
static uint64_t free_to(const simulation *s, uint64_t at, uint64_t end)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->item[i].at + s->item[i].bytes > at && s->item[i].at < end)
            end = mpl_max_u64(s->item[i].at, at);
    return end;
}

/* ---- best_fit: every gap between two that are alive ---- */

static bool is_begin(const simulation *s, uint64_t at)
{
    bool begins = at == 0;

    for (uint32_t i = 0; i < s->n; i++)
        begins = begins || s->item[i].at + s->item[i].bytes == at;
    return begins;
}

static uint64_t place_best_fit(simulation *s, uint64_t bytes, uint64_t align, alive *out)
{
    uint64_t best = UINT64_MAX, at = 0, last = s->top;

    for (uint64_t from = 0; from < s->top; from++) {
        uint64_t to = is_begin(s, from) ? free_to(s, from, s->top) : from, begin = from;

        while (begin % align != 0)
            begin++;
        if (to == s->top && to > from)
            last = from;
        if (begin + bytes <= to && to - from < best)
            best = to - from, at = begin;
    }
    if (best == UINT64_MAX)
        for (at = last; at % align != 0;)
            at++;
    out->at = at, out->bytes = bytes;
    s->top = mpl_max_u64(s->top, at + bytes);
    return at;
}

/* ---- random traces ---- */

typedef uint64_t place(simulation *s, uint64_t bytes, uint64_t align, alive *out);

static const struct {
    const char *name;
    place *place;
    uint64_t most; /* bytes of a request */
} kinds[] = {{"best_fit", place_best_fit, 90}};

static void check_alive(const simulation *s, const alive *b)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->item[i].offset < b->offset + b->asked &&
            b->offset < s->item[i].offset + s->item[i].asked)
            fail_msg("[%" PRIu64 ", +%" PRIu64 ") is given out twice", b->offset, b->asked);
}

static void check_facts(const mpl_online *o, const simulation *s, uint64_t peak, uint64_t sum)
{
    mpl_online_facts f = mpl_online_facts_of(o);
    uint64_t live = 0;

    for (uint32_t i = 0; i < s->n; i++)
        live += s->item[i].asked;
    assert_int_equal(f.live_bytes, live);
    assert_int_equal(f.live_peak_bytes, peak);
    assert_int_equal(f.requested_bytes, sum);
    assert_int_equal(f.held_bytes, s->top);
    assert_true(f.live_peak_bytes <= f.allocated_bytes && f.allocated_bytes <= f.reserved_bytes);
}

static void play_random(mpl_ctx *ctx, size_t k, mpl_rng *rng)
{
    simulation s = {0};
    mpl_online *o = NULL;
    uint64_t live = 0, peak = 0, sum = 0, most = 1 + mpl_rng_below(rng, kinds[k].most);
    uint32_t n = 1 + (uint32_t)mpl_rng_below(rng, 60), often = 1 + (uint32_t)mpl_rng_below(rng, 3);

    assert_ok(ctx, mpl_online_new(ctx, mpl_allocator_find(kinds[k].name), UINT64_MAX, &o));
    for (uint32_t i = 0; i < n; i++) {
        if (s.n == MOST || (s.n > 0 && mpl_rng_below(rng, 4) < often)) {
            uint32_t gone = (uint32_t)mpl_rng_below(rng, s.n);

            live -= s.item[gone].asked;
            assert_ok(ctx, mpl_online_give_back(o, s.item[gone].id));
            assert_status(ctx, mpl_online_give_back(o, s.item[gone].id), MPL_EINVALID);
            s.item[gone] = s.item[--s.n];
        } else {
            alive b = {.asked = mpl_rng_below(rng, most + 1)};
            uint32_t align = UINT32_C(1) << mpl_rng_below(rng, 5);
            uint64_t want = kinds[k].place(&s, mpl_max_u64(b.asked, 1), align, &b);

            assert_ok(ctx, mpl_online_take(o, b.asked, align, &b.id, &b.offset));
            if (b.offset != want)
                fail_msg("%s: %" PRIu64 " bytes at %" PRIu64 ", not at %" PRIu64, kinds[k].name,
                         b.asked, b.offset, want);
            check_alive(&s, &b);
            live += b.asked, sum += b.asked, peak = mpl_max_u64(peak, live);
            s.item[s.n++] = b;
        }
        check_facts(o, &s, peak, sum);
    }
    mpl_online_free(ctx, o);
}

TEST(allocators_do_as_their_simulations)
{
    const char *text = getenv("MPL_ONLINE");
    uint64_t rounds = text != NULL ? strtoull(text, NULL, 10) : 2000;
    mpl_rng rng;

    mpl_rng_init(&rng, 21);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint64_t i = 0; i < rounds; i++)
            play_random(ctx, k, &rng);
}

TESTS(allocators_do_as_their_simulations)
