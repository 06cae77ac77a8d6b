/* test_planners_online.c -- online allocators against simulations written apart: lists of what is
 * alive and of segments, searched in the plainest way. MPL_ONLINE=N: that many random traces of
 * each (2,000).
 *
 * Fault: a fit that is not the best; free neighbours not joined; bytes lost or given out twice;
 * segments, classes or buddies of a wrong size; a segment that stays or goes too early; a wrong
 * alignment; a wrong count; lost memory of the host. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "planners/online/online.h"

enum { MOST = 40, MOST_SEGMENTS = 2 * MOST };

#define KIB *UINT64_C(1024)

/* What is alive: bytes [at, at + bytes) are its block, of which it uses some. */
typedef struct alive {
    uint64_t at, bytes, asked, offset;
    uint32_t id; /* of the allocator's block */
} alive;

/* From the system; of an arena there is one. unit: of all blocks in it, or 0. */
typedef struct segment {
    uint64_t at, bytes, unit;
} segment;

typedef struct simulation {
    uint32_t n, n_segments;
    alive item[MOST];
    segment segment[MOST_SEGMENTS];
} simulation;

/* Whether nothing alive touches [from, to). */
static bool is_empty(const simulation *s, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->item[i].at < to && from < s->item[i].at + s->item[i].bytes)
            return false;
    return true;
}

/* The first end of a block, or begin of the segment, at or after `from`; at most the end. */
static uint64_t next_begin(const simulation *s, const segment *g, uint64_t from)
{
    uint64_t to = g->at >= from ? g->at : g->at + g->bytes;

    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t end = s->item[i].at + s->item[i].bytes;

        if (end >= from && end < to && end > g->at)
            to = end;
    }
    return to;
}

/* Where what is free from `from` on ends. */
static uint64_t free_end(const simulation *s, const segment *g, uint64_t from)
{
    uint64_t to = g->at + g->bytes;

    for (uint32_t i = 0; i < s->n; i++)
        if (s->item[i].at >= from && s->item[i].at < to)
            to = s->item[i].at;
    return to;
}

static uint64_t up(uint64_t x, uint64_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* The lowest addresses that no segment has. */
static segment *new_segment(simulation *s, uint64_t bytes, uint64_t unit)
{
    uint64_t at = 0;

    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < s->n_segments; i++)
            if (s->segment[i].at < at + bytes && at < s->segment[i].at + s->segment[i].bytes)
                at = s->segment[i].at + s->segment[i].bytes, moved = true;
    }
    assert_true(s->n_segments < MOST_SEGMENTS);
    s->segment[s->n_segments] = (segment){at, bytes, unit};
    return &s->segment[s->n_segments++];
}

/* ---- best_fit: the smallest gap between two that are alive ---- */

static void place_best_fit(simulation *s, uint64_t bytes, uint64_t align, alive *b)
{
    segment *g = &s->segment[0];
    uint64_t least = UINT64_MAX, last = g->bytes;

    s->n_segments = 1;
    for (uint64_t from = 0, to; from < g->bytes;
         from = next_begin(s, g, mpl_max_u64(to, from + 1))) {
        to = free_end(s, g, from);
        last = to == g->bytes && to > from ? from : last;
        if (up(from, align) + bytes <= to && to - from < least)
            least = to - from, b->at = up(from, align);
    }
    if (least == UINT64_MAX)
        b->at = up(last, align);
    b->bytes = bytes;
    g->bytes = mpl_max_u64(g->bytes, b->at + bytes);
}

/* ---- buddy: ranges of powers of two, as large as they can be ---- */

static bool is_buddy(const simulation *s, uint64_t at, uint64_t bytes)
{
    return at % bytes == 0 && at + bytes <= s->segment[0].bytes && is_empty(s, at, at + bytes);
}

static void place_buddy(simulation *s, uint64_t bytes, uint64_t align, alive *b)
{
    segment *g = &s->segment[0];

    s->n_segments = 1;
    for (b->bytes = 64; b->bytes < bytes || b->bytes < align;)
        b->bytes *= 2;
    for (;;) {
        for (uint64_t size = b->bytes; size <= g->bytes; size *= 2)
            for (b->at = 0; b->at < g->bytes; b->at += size)
                if (is_buddy(s, b->at, size) &&
                    !is_buddy(s, b->at / (2 * size) * (2 * size), 2 * size))
                    return;
        for (uint64_t more = b->bytes;; more /= 2)
            if (g->bytes % more == 0) {
                g->bytes += more;
                break;
            }
    }
}

/* ---- slab and caching: segments ---- */

/* The best free range of the segments of a unit. first: the lowest; else the smallest. */
static bool find_range(const simulation *s, uint64_t unit, uint64_t bytes, bool first, uint64_t *at,
                       uint64_t *room)
{
    bool found = false;

    for (uint32_t i = 0; i < s->n_segments; i++) {
        const segment *g = &s->segment[i];

        for (uint64_t from = g->at, to; from < g->at + g->bytes && g->unit == unit;
             from = next_begin(s, g, mpl_max_u64(to, from + 1))) {
            to = free_end(s, g, from);
            if (to - from < bytes ||
                (found && (first || to - from == *room ? from > *at : to - from > *room)))
                continue;
            found = true, *at = from, *room = to - from;
        }
    }
    return found;
}

static void place_slab(simulation *s, uint64_t bytes, uint64_t align, alive *b)
{
    uint64_t room, n = 8, power = 64;

    bytes += align > 64 ? align - 64 : 0;
    while (power * 2 < bytes)
        power *= 2;
    b->bytes = up(bytes, power < 256 ? 64 : power / 4);
    while (n > 1 && n * b->bytes > 64 KIB)
        n--;
    if (!find_range(s, b->bytes, b->bytes, true, &b->at, &room))
        b->at = new_segment(s, n * b->bytes, b->bytes)->at;
}

/* Unit 1: small, 2: large. */
static void place_caching(simulation *s, uint64_t bytes, uint64_t align, alive *b)
{
    uint64_t room, unit;

    bytes = up(bytes + (align > 512 ? align - 512 : 0), 512);
    unit = bytes <= 1024 KIB ? 1 : 2;
    if (!find_range(s, unit, bytes, false, &b->at, &room)) {
        room = unit == 1 ? 2048 KIB : bytes < 10240 KIB ? 20480 KIB : up(bytes, 2048 KIB);
        b->at = new_segment(s, room, unit)->at;
    }
    b->bytes = unit == 1 || room - bytes > 1024 KIB ? bytes : room;
}

/* ---- ggml: as best_fit, but the highest of equals, and the end of the arena last ---- */

static void place_ggml(simulation *s, uint64_t bytes, uint64_t align, alive *b)
{
    segment *g = &s->segment[0];
    uint64_t least = UINT64_MAX, last = g->bytes;

    s->n_segments = 1;
    b->bytes = bytes = up(bytes, align);
    for (uint64_t from = 0, to; from < g->bytes;
         from = next_begin(s, g, mpl_max_u64(to, from + 1))) {
        to = free_end(s, g, from);
        if (to == g->bytes && to > from)
            last = from;
        else if (up(from, align) + bytes <= to && to - from <= least)
            least = to - from, b->at = up(from, align);
    }
    if (least == UINT64_MAX)
        b->at = up(last, align);
    g->bytes = mpl_max_u64(g->bytes, b->at + bytes);
}

/* ---- bfc: a region that was not doubled for its request doubles the next ---- */

static void place_bfc(simulation *s, uint64_t bytes, uint64_t align, alive *b)
{
    uint64_t room, next = 1024 KIB, asked = bytes + (align > 256 ? align - 256 : 0);

    bytes = up(asked, 256);
    if (!find_range(s, 1, bytes, false, &b->at, &room)) {
        for (uint32_t i = 0; i < s->n_segments; i++)
            next = s->segment[i].bytes == next ? 2 * next : s->segment[i].bytes;
        while (next < bytes)
            next *= 2;
        room = next;
        b->at = new_segment(s, room, 1)->at;
    }
    b->bytes = room >= 2 * bytes || room - asked >= 128 * 1024 KIB ? bytes : room;
}

/* ---- random traces ---- */

typedef void place(simulation *s, uint64_t bytes, uint64_t align, alive *out);

static const struct {
    const char *name;
    place *place;
    uint64_t most;    /* bytes of a request */
    uint32_t aligns;  /* powers of two of an alignment */
    bool gives_empty; /* segments without a block go back */
} kinds[] = {
    {"caching", place_caching, 14336 KIB, 12, false}, {"best_fit", place_best_fit, 90, 5, false},
    {"bfc", place_bfc, 14336 KIB, 12, false},         {"ggml", place_ggml, 90, 5, false},
    {"buddy", place_buddy, 2000, 9, false},           {"slab", place_slab, 20 KIB, 9, true}};

static uint64_t held(const simulation *s)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->n_segments; i++)
        sum += s->segment[i].bytes;
    return sum;
}

static void check_apart(const simulation *s, const alive *b)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->item[i].offset < b->offset + b->asked &&
            b->offset < s->item[i].offset + s->item[i].asked)
            fail_msg("[%" PRIu64 ", +%" PRIu64 ") is given out twice", b->offset, b->asked);
}

typedef struct counts {
    uint64_t live, peak, sum, held, allocated;
    uint32_t n;
} counts;

static void check_facts(const mpl_online *o, const simulation *s, counts *c)
{
    mpl_online_facts f = mpl_online_facts_of(o);
    uint64_t allocated = 0;

    for (uint32_t i = 0; i < s->n; i++)
        allocated += s->item[i].bytes;
    c->peak = mpl_max_u64(c->peak, c->live);
    c->held = mpl_max_u64(c->held, held(s));
    c->allocated = mpl_max_u64(c->allocated, allocated);
    assert_int_equal(f.live_bytes, c->live);
    assert_int_equal(f.live_peak_bytes, c->peak);
    assert_int_equal(f.requested_bytes, c->sum);
    assert_int_equal(f.allocated_bytes, c->allocated);
    assert_int_equal(f.held_bytes, held(s));
    assert_int_equal(f.reserved_bytes, c->held);
    assert_int_equal(f.n_requests, c->n);
    assert_true(f.live_peak_bytes <= f.allocated_bytes && f.allocated_bytes <= f.reserved_bytes);
}

static void end_one(mpl_ctx *ctx, mpl_online *o, simulation *s, size_t k, uint32_t i, counts *c)
{
    c->live -= s->item[i].asked;
    assert_ok(ctx, mpl_online_give_back(o, s->item[i].id));
    assert_status(ctx, mpl_online_give_back(o, s->item[i].id), MPL_EINVALID);
    s->item[i] = s->item[--s->n];
    for (uint32_t g = s->n_segments; kinds[k].gives_empty && g-- > 0;)
        if (is_empty(s, s->segment[g].at, s->segment[g].at + s->segment[g].bytes))
            s->segment[g] = s->segment[--s->n_segments];
}

static void begin_one(mpl_ctx *ctx, mpl_online *o, simulation *s, size_t k, uint64_t asked,
                      uint32_t align, counts *c)
{
    alive b = {.asked = asked};

    kinds[k].place(s, mpl_max_u64(asked, 1), align, &b);
    assert_ok(ctx, mpl_online_take(o, asked, align, &b.id, &b.offset));
    if (b.offset != up(b.at, align))
        fail_msg("%s: %" PRIu64 " bytes at %" PRIu64 ", not at %" PRIu64, kinds[k].name, asked,
                 b.offset, up(b.at, align));
    assert_true(b.offset + asked <= mpl_online_facts_of(o).extent_bytes);
    check_apart(s, &b);
    c->live += asked, c->sum += asked, c->n++;
    s->item[s->n++] = b;
}

static void play_random(mpl_ctx *ctx, size_t k, mpl_rng *rng)
{
    simulation s = {0};
    mpl_online *o = NULL;
    counts c = {0};
    uint64_t most = 1 + mpl_rng_below(rng, kinds[k].most);
    uint32_t n = 1 + (uint32_t)mpl_rng_below(rng, 80), often = 1 + (uint32_t)mpl_rng_below(rng, 3),
             aligns = 1 + (uint32_t)mpl_rng_below(rng, kinds[k].aligns);

    assert_ok(ctx, mpl_online_new(ctx, mpl_allocator_find(kinds[k].name), UINT64_MAX, &o));
    for (uint32_t i = 0; i < n || s.n > 0; i++) {
        if (i >= n || s.n == MOST || (s.n > 0 && mpl_rng_below(rng, 4) < often))
            end_one(ctx, o, &s, k, (uint32_t)mpl_rng_below(rng, s.n), &c);
        else /* an eighth are small, whatever the others are */
            begin_one(ctx, o, &s, k,
                      mpl_rng_below(rng, mpl_rng_below(rng, 8) > 0 ? most + 1 : most / 64 + 1),
                      UINT32_C(1) << mpl_rng_below(rng, aligns), &c);
        check_facts(o, &s, &c);
    }
    mpl_online_free(ctx, o);
}

TEST(allocators_do_as_their_simulations)
{
    uint64_t rounds = number_asked("MPL_ONLINE", 2000);
    mpl_rng rng = mpl_rng_of(21);

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint64_t i = 0; i < rounds; i++)
            play_random(ctx, k, &rng);
}

/* The same of any allocator, the real one included: bytes written stay as they are. */
TEST(blocks_are_memory)
{
    enum { BLOCKS = 200 };
    uint64_t room = UINT64_C(64) << 20;
    unsigned char *memory = malloc(room);
    mpl_rng rng = mpl_rng_of(3);

    for (const mpl_allocator *const *a = mpl_allocators; *a != NULL; a++) {
        struct {
            uint32_t id, bytes;
            unsigned char *at;
        } b[BLOCKS] = {{0}};
        unsigned char *base = (*a)->is_real ? NULL : memory;
        mpl_online *o = NULL;
        mpl_status st = mpl_online_new(ctx, *a, room, &o);
        mpl_online_facts f;

        if (st == MPL_EUNAVAIL) {
            print_message("skip: %s: %s\n", (*a)->name, ctx->message);
            continue;
        }
        assert_ok(ctx, st);
        for (uint32_t i = 0; i < 20 * BLOCKS; i++) {
            uint32_t k = (uint32_t)mpl_rng_below(&rng, BLOCKS), align = UINT32_C(1)
                                                                        << mpl_rng_below(&rng, 13);
            uint64_t offset;

            for (uint32_t j = 0; j < b[k].bytes; j++)
                assert_int_equal(b[k].at[j], k);
            if (b[k].at != NULL)
                assert_ok(ctx, mpl_online_give_back(o, b[k].id));
            b[k].bytes = 1 + (uint32_t)mpl_rng_below(&rng, i % 10 == 0 ? 200000 : 2000);
            assert_ok(ctx, mpl_online_take(o, b[k].bytes, align, &b[k].id, &offset));
            assert_int_equal(offset % align, 0);
            b[k].at = base + offset;
            memset(b[k].at, (int)k, b[k].bytes);
        }
        f = mpl_online_facts_of(o);
        assert_true(f.live_peak_bytes <= f.allocated_bytes &&
                    f.allocated_bytes <= f.reserved_bytes);
        assert_true((*a)->is_real || f.extent_bytes <= room);
        mpl_online_free(ctx, o); /* with all of them alive */
    }
    free(memory);
}

/* After a request that fails, all goes on as if it had not been made. */
TEST(requests_may_fail)
{
    static const uint64_t wrong[] = {UINT64_MAX,        UINT64_MAX - 4095, (UINT64_C(1) << 63) + 1,
                                     UINT64_C(1) << 63, INT64_MAX - 1,     33 * 1024 KIB};

    for (const mpl_allocator *const *a = mpl_allocators; *a != NULL; a++) {
        uint64_t capacity = 32 * 1024 KIB, offset = 0;
        uint32_t first = 0, second = 0;
        mpl_online *o = NULL;
        mpl_online_facts f;

        if ((*a)->is_real)
            continue;
        assert_ok(ctx, mpl_online_new(ctx, *a, capacity, &o));
        assert_ok(ctx, mpl_online_take(o, 1000, 64, &first, &offset));
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
            for (uint32_t align = 1; align <= 4096; align *= 64)
                assert_status(ctx, mpl_online_take(o, wrong[i], align, &second, &offset),
                              MPL_ELIMIT);
        assert_status(ctx, mpl_online_give_back(o, MPL_NONE), MPL_EINVALID);
        assert_status(ctx, mpl_online_give_back(o, first + 1), MPL_EINVALID);
        f = mpl_online_facts_of(o);
        assert_true(f.live_bytes == 1000 && f.requested_bytes == 1000 && f.n_requests == 1);
        assert_ok(ctx, mpl_online_take(o, 9 * 1024 KIB, 64, &second, &offset));
        assert_true(offset >= 1000 && offset + 9 * 1024 KIB <= capacity);
        mpl_online_free(ctx, o);
        EACH_ALLOCATION_FAILS (ctx, st) {
            o = NULL;
            st = mpl_online_new(ctx, *a, capacity, &o);
            for (uint32_t i = 0; i < 40 && st == MPL_OK; i++)
                st = mpl_online_take(o, 100 * (i + 1), 256, &second, &offset);
            mpl_online_free(ctx, o);
        }
        ctx->fail_after = -1;
    }
}

TESTS(allocators_do_as_their_simulations, blocks_are_memory, requests_may_fail)
