/* test_planners_production.c -- planners of production systems: plans that the producers' own code
 * made, plain simulations of the rules, examples worked out by hand.
 *
 * Fault: another order or tie; a gap that is not the smallest, or the lowest; objects of a wrong
 * size, or stacked where they may not be; a split by space not aligned; a block freed too early or
 * handed on twice; sizes not rounded as the system rounds them; a parameter that does nothing. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/placement_oracle.h"

enum { MOST = 14 };

static void expect_offsets(mpl_ctx *ctx, const char *name, const char *key, const char *value,
                           const mpl_problem *p, const uint64_t *want)
{
    owned_plan *plan = NULL;

    assert_ok(ctx, plan_with(ctx, name, key, value, 0, p, &plan));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (plan->offset[b] != want[b])
            fail_msg("%s %s=%s: buffer %u of %u lies at %" PRIu64 ", not at %" PRIu64, name,
                     key != NULL ? key : "", key != NULL ? value : "", b, p->n, plan->offset[b],
                     want[b]);
}

/* ---- rows ---- */

typedef struct row {
    const char *planner, *key, *value;
    uint32_t align, n;
    uint64_t bytes[MOST];
    uint32_t birth[MOST], death[MOST];
    uint64_t offset[MOST];
} row;

/* clang-format off */
/* Made by pick_shared_obj of ExecuTorch and AllocationPool of TorchInductor:
 * scripts/peers/producers.py holds them to any number of lists. */
static const row recorded[] = {
    {"executorch", "overlap", "1", 16, 12, {112, 144, 16, 16, 112, 32, 16, 16, 64, 48, 48, 80},
        {5, 0, 1, 8, 1, 1, 8, 1, 6, 0, 4, 8}, {7, 1, 4, 10, 5, 3, 10, 3, 7, 5, 8, 9}, {0, 0, 128,
        208, 0, 208, 144, 112, 144, 144, 208, 0}},
    {"executorch", "overlap", "0", 16, 12, {32, 32, 16, 144, 128, 80, 64, 80, 96, 32, 112, 48},
        {8, 3, 8, 3, 6, 7, 3, 1, 8, 7, 1, 2}, {10, 6, 9, 7, 9, 10, 5, 6, 10, 10, 6, 5}, {416, 464,
        464, 0, 144, 272, 352, 272, 0, 352, 144, 416}},
    {"executorch", "overlap", "1", 16, 12, {16, 96, 128, 32, 32, 128, 96, 96, 32, 64, 64, 128},
        {7, 1, 5, 7, 4, 0, 4, 0, 2, 7, 4, 6}, {10, 6, 8, 8, 8, 3, 8, 4, 7, 8, 6, 10}, {416, 352,
        128, 448, 480, 0, 256, 128, 448, 352, 0, 0}},
    {"inductor_pool", NULL, NULL, 64, 14, {160, 100, 180, 120, 60, 60, 20, 60, 20, 180, 120, 20,
        140, 140}, {1, 6, 2, 4, 6, 1, 3, 7, 4, 2, 5, 2, 7, 6}, {3, 10, 6, 8, 8, 3, 5, 10, 7, 6,
        10, 7, 10, 10}, {384, 384, 0, 768, 576, 640, 384, 512, 960, 192, 640, 896, 192, 0}},
    {"inductor_pool", NULL, NULL, 64, 14, {140, 40, 60, 20, 60, 120, 80, 100, 120, 40, 160, 40,
        120, 60}, {1, 0, 3, 1, 1, 8, 0, 6, 5, 7, 7, 7, 2, 4}, {5, 2, 7, 4, 2, 9, 1, 8, 10, 8, 10,
        10, 3, 8}, {0, 576, 512, 192, 256, 384, 0, 384, 256, 512, 0, 640, 256, 576}},
    {"inductor_pool", NULL, NULL, 64, 14, {80, 60, 180, 100, 60, 180, 120, 80, 80, 160, 20, 100,
        120, 120}, {8, 8, 8, 4, 8, 5, 8, 3, 3, 3, 5, 4, 3, 7}, {9, 10, 9, 5, 10, 7, 10, 8, 7, 8,
        6, 8, 8, 10}, {384, 704, 0, 0, 832, 0, 192, 832, 512, 192, 640, 704, 384, 512}},
};

/* Worked out by hand. */
static const row by_hand[] = {
    /* equal sizes: the last of the file first in TFLM (greedy_size would begin with the longer) */
    {"tflm_greedy", NULL, NULL, 1, 3, {8, 8, 4}, {0, 1, 0}, {9, 2, 9}, {8, 0, 16}},
    /* 4 fits below the 8 of another time: XLA's best fit leaves the larger chunk */
    {"xla_heap", "order", "spatial", 1, 5, {9, 8, 7, 4, 3}, {0, 0, 0, 2, 2}, {2, 9, 2, 9, 9},
        {0, 9, 17, 0, 4}},
    {"xla_heap", "order", "temporal", 1, 2, {9, 4}, {0, 0}, {2, 9}, {4, 0}},
    {"xla_heap", "order", "spatial", 1, 2, {9, 4}, {0, 0}, {2, 9}, {0, 9}},
    /* no gap is ever filled: the third stands on the second */
    {"usmp", "order", "size", 1, 3, {9, 8, 7}, {0, 1, 2}, {2, 3, 4}, {0, 9, 17}},
    {"usmp", "order", "conflicts", 1, 3, {9, 4, 7}, {0, 1, 2}, {2, 3, 4}, {4, 0, 4}},
    /* 256 bytes are the least; the second begins behind the first's rounded bytes */
    {"ort_bfc", NULL, NULL, 1, 3, {100, 300, 200}, {0, 0, 1}, {1, 2, 2}, {0, 256, 0}},
    /* a hole of equal size is better than the end; the end counts as a hole of its own size */
    {"ort_pattern", NULL, NULL, 1, 5, {4, 8, 9, 8, 3}, {0, 0, 0, 1, 1}, {9, 1, 1, 2, 2},
        {0, 4, 12, 4, 12}},
    {"ggml_alloc", NULL, NULL, 1, 5, {4, 8, 4, 8, 4}, {0, 0, 0, 0, 1}, {9, 1, 9, 1, 2},
        {0, 4, 12, 16, 4}},
    /* of two holes of 4, the higher one */
    {"ggml_alloc", NULL, NULL, 1, 6, {4, 4, 4, 4, 4, 4}, {0, 0, 0, 0, 0, 1}, {1, 9, 1, 9, 9, 2},
        {0, 4, 8, 12, 16, 8}},
    /* 3 goes into the object of 9 beside 5, which is alive with it, not into a new one */
    {"somas", "objects", "shared", 1, 4, {9, 7, 5, 3}, {0, 0, 2, 2}, {2, 9, 9, 9}, {0, 9, 0, 5}},
};
/* clang-format on */

static mpl_problem *make_row(mpl_ctx *ctx, const row *r)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, r->planner, r->n, &p));
    for (mpl_buffer b = 0; b < r->n; b++) {
        p->bytes[b] = r->bytes[b];
        p->align[b] = r->align;
        p->birth[b] = r->birth[b];
        p->death[b] = r->death[b];
        p->n_steps = r->death[b] > p->n_steps ? r->death[b] : p->n_steps;
    }
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

static void expect_rows(mpl_ctx *ctx, const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        owned_problem *p = make_row(ctx, &rows[i]);

        expect_offsets(ctx, rows[i].planner, rows[i].key, rows[i].value, p, rows[i].offset);
    }
}

TEST(producers_plan_alike)
{
    expect_rows(ctx, recorded, sizeof recorded / sizeof *recorded);
}

TEST(examples_are_as_worked_out)
{
    expect_rows(ctx, by_hand, sizeof by_hand / sizeof *by_hand);
}

/* ---- in-place, by ggml ---- */

TEST(a_block_is_handed_on_once)
{
    static const row r = {"ggml_alloc", NULL,         NULL,         1, 4, {8, 8, 8, 4},
                          {0, 1, 1, 2}, {2, 3, 3, 4}, {0, 0, 8, 16}};
    static const uint64_t apart[] = {0, 8, 16, 0};
    owned_problem *p = make_row(ctx, &r);

    expect_offsets(ctx, "ggml_alloc", NULL, NULL, p, apart);
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 3));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 3));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 3));
    p->n_in_place = 3;
    p->in_place_out[0] = 1, p->in_place_step[0] = 1;                        /* 1 takes 0's block */
    p->in_place_out[1] = 2, p->in_place_step[1] = 1;                        /* 2 comes too late */
    p->in_place_in[2] = 1, p->in_place_out[2] = 3, p->in_place_step[2] = 2; /* 3 is too small */
    assert_ok(ctx, mpl_problem_check(ctx, p));
    expect_offsets(ctx, "ggml_alloc", NULL, NULL, p, r.offset);
}

/* ---- the heaps of XLA and TFLM against plain placement ---- */

static const mpl_problem *sorted; /* used by the comparators below */
static bool by_life;

static int compare_heap(const void *a, const void *b)
{
    mpl_buffer x = *(const mpl_buffer *)a, y = *(const mpl_buffer *)b;
    uint64_t key[2][2] = {{sorted->bytes[x], sorted->death[x] - sorted->birth[x]},
                          {sorted->bytes[y], sorted->death[y] - sorted->birth[y]}};

    for (int i = 0; i < 2; i++) {
        int k = by_life ? 1 - i : i;

        if (key[0][k] != key[1][k])
            return key[0][k] > key[1][k] ? -1 : 1;
    }
    return x < y ? -1 : 1;
}

static int compare_size(const void *a, const void *b)
{
    mpl_buffer x = *(const mpl_buffer *)a, y = *(const mpl_buffer *)b;

    return sorted->bytes[x] != sorted->bytes[y] ? (sorted->bytes[x] > sorted->bytes[y] ? -1 : 1)
                                                : (x < y ? -1 : 1);
}

/* TFLM: of equal sizes the last id first. */
static int compare_later(const void *a, const void *b)
{
    mpl_buffer x = *(const mpl_buffer *)a, y = *(const mpl_buffer *)b;

    return sorted->bytes[x] != sorted->bytes[y] ? compare_size(a, b) : (x > y ? -1 : 1);
}

static void expect_order(mpl_ctx *ctx, const mpl_problem *p, const char *name, const char *order,
                         int (*compare)(const void *, const void *), bool best)
{
    owned_plan *want = NULL;
    mpl_buffer id[MOST];

    for (mpl_buffer b = 0; b < p->n; b++)
        id[b] = b;
    sorted = p;
    qsort(id, p->n, sizeof *id, compare);
    assert_ok(ctx, mpl_plan_new(ctx, p, &want));
    oracle_place(p, id, best, want);
    expect_offsets(ctx, name, order != NULL ? "order" : NULL, order, p, want->offset);
}

static uint64_t peak_of(mpl_ctx *ctx, const char *name, const char *key, const char *value,
                        const mpl_problem *p)
{
    owned_plan *plan = NULL;

    assert_ok(ctx, plan_with(ctx, name, key, value, 0, p, &plan));
    return plan->peak_bytes;
}

TEST(heaps_are_placed_plainly)
{
    mpl_rng rng;
    uint32_t n_temporal = 0, n_repacked = 0;

    mpl_rng_init(&rng, 61);
    for (uint32_t i = 0; i < draws(300); i++) {
        owned_problem *p = random_problem(ctx, &rng, 1 + random_below(&rng, MOST),
                                          i % 4 & (RANDOM_ALIGNED | RANDOM_POOLS));
        uint64_t spatial, temporal, repacked;

        by_life = false;
        expect_order(ctx, p, "tflm_greedy", NULL, compare_later, false);
        expect_order(ctx, p, "xla_heap", "spatial", compare_heap, true);
        by_life = true;
        expect_order(ctx, p, "xla_heap", "temporal", compare_heap, true);
        spatial = peak_of(ctx, "xla_heap", "order", "spatial", p);
        temporal = peak_of(ctx, "xla_heap", "order", "temporal", p);
        repacked = peak_of(ctx, "xla_heap", "order", "repack", p);
        assert_int_equal(peak_of(ctx, "xla_heap", NULL, NULL, p),
                         temporal < spatial ? temporal : spatial);
        assert_true(repacked <= spatial);
        n_temporal += temporal < spatial;
        n_repacked += repacked < spatial && repacked != temporal;
    }
    assert_true(often(n_temporal > 10 && n_repacked > 0));
}

TEST(a_heap_uses_gaps)
{
    mpl_rng rng;

    mpl_rng_init(&rng, 62);
    for (uint32_t i = 0; i < draws(100); i++) {
        owned_problem *p = random_problem(ctx, &rng, 2 + random_below(&rng, 12), RANDOM_GAPS);

        by_life = i % 2 != 0;
        expect_order(ctx, p, "xla_heap", by_life ? "temporal" : "spatial", compare_heap, true);
    }
}

/* ---- USMP, SOMAS and ONNX Runtime, simulated ---- */

static uint64_t n_conflicts[MOST];
static bool conflicts_first;

static int compare_usmp(const void *a, const void *b)
{
    mpl_buffer x = *(const mpl_buffer *)a, y = *(const mpl_buffer *)b;
    uint64_t key[2][2] = {{sorted->bytes[x], n_conflicts[x]}, {sorted->bytes[y], n_conflicts[y]}};

    for (int i = 0; i < 2; i++) {
        int k = conflicts_first ? 1 - i : i;

        if (key[0][k] != key[1][k])
            return key[0][k] > key[1][k] ? -1 : 1;
    }
    return x < y ? -1 : 1;
}

TEST(usmp_stands_on_all_conflicts)
{
    mpl_rng rng;

    mpl_rng_init(&rng, 63);
    for (uint32_t i = 0; i < draws(300); i++) {
        owned_problem *p =
            random_problem(ctx, &rng, 1 + random_below(&rng, MOST),
                           (i % 2 != 0 ? RANDOM_PARALLEL : 0) | (i % 3 != 0 ? RANDOM_ALIGNED : 0));
        uint64_t want[MOST];
        mpl_buffer id[MOST];

        memset(n_conflicts, 0, sizeof n_conflicts);
        for (mpl_buffer a = 0; a < p->n; a++) {
            id[a] = a;
            for (mpl_buffer b = 0; b < p->n; b++)
                n_conflicts[a] += b != a && mpl_conflict(p, a, b);
        }
        sorted = p;
        conflicts_first = i / 2 % 2 != 0;
        qsort(id, p->n, sizeof *id, compare_usmp);
        for (uint32_t k = 0; k < p->n; k++) {
            uint64_t at = 0;

            for (uint32_t j = 0; j < k; j++)
                if (mpl_conflict(p, id[k], id[j]) && want[id[j]] + p->bytes[id[j]] > at)
                    at = want[id[j]] + p->bytes[id[j]];
            want[id[k]] = round_up(at, p->align[id[k]]);
        }
        expect_offsets(ctx, "usmp", "order", conflicts_first ? "conflicts" : "size", p, want);
    }
}

/* Whether [at, at + bytes) is free of b's conflicts. */
static bool is_free(const mpl_problem *p, const mpl_buffer *id, uint32_t n, const uint64_t *offset,
                    mpl_buffer b, uint64_t at, uint64_t bytes)
{
    for (uint32_t k = 0; k < n; k++)
        if (mpl_conflict(p, b, id[k]) && offset[id[k]] < at + bytes &&
            at < offset[id[k]] + p->bytes[id[k]])
            return false;
    return true;
}

/* The gap for b between two ends of an object, byte by byte. */
static bool plain_gap(const mpl_problem *p, const mpl_buffer *id, uint32_t n,
                      const uint64_t *offset, mpl_buffer b, const uint64_t *ends, bool best,
                      uint64_t *at)
{
    uint64_t least = UINT64_MAX;

    for (uint64_t from = ends[0], to; from < ends[1]; from = to + 1) {
        for (to = from; to < ends[1] && is_free(p, id, n, offset, b, to, 1); to++)
            ;
        if (to - from >= p->bytes[b] && (best ? to - from < least : least == UINT64_MAX)) {
            least = to - from;
            *at = from;
        }
    }
    return least < UINT64_MAX;
}

TEST(somas_shares_objects)
{
    mpl_rng rng;

    mpl_rng_init(&rng, 64);
    for (uint32_t i = 0; i < draws(200); i++) {
        owned_problem *p = random_problem(ctx, &rng, 1 + random_below(&rng, MOST),
                                          i % 2 != 0 ? RANDOM_PARALLEL : 0);
        uint64_t want[MOST] = {0}, ends[MOST + 1] = {0};
        uint32_t n_objects = 0;
        mpl_buffer id[MOST];
        mpl_run run;

        for (mpl_buffer b = 0; b < p->n; b++)
            id[b] = b;
        sorted = p;
        qsort(id, p->n, sizeof *id, compare_size);
        for (uint32_t k = 0; k < p->n; k++) {
            uint32_t o = 0;

            while (o < n_objects &&
                   !plain_gap(p, id, k, want, id[k], &ends[o], i % 4 < 2, &want[id[k]]))
                o++;
            if (o == n_objects) {
                want[id[k]] = ends[n_objects];
                ends[n_objects + 1] = ends[n_objects] + p->bytes[id[k]];
                n_objects++;
            }
        }
        mpl_run_init(&run, ctx);
        run.n_params = 2;
        run.param_key = (const char *[]){"objects", "fit"};
        run.param_value = (const char *[]){"shared", i % 4 < 2 ? "best" : "lowest"};
        {
            owned_plan *plan = NULL;

            assert_ok(ctx, mpl_planner_run(mpl_planner_find("somas"), &run, p, &plan));
            assert_memory_equal(plan->offset, want, p->n * sizeof *want);
            assert_true(peak_of(ctx, "somas", NULL, NULL, p) <= plan->peak_bytes);
            assert_true(peak_of(ctx, "somas", NULL, NULL, p) <=
                        peak_of(ctx, "somas", "objects", "one", p));
        }
    }
}

TEST(a_pattern_is_best_fit_in_time)
{
    mpl_rng rng;

    mpl_rng_init(&rng, 65);
    for (uint32_t i = 0; i < draws(200); i++) {
        owned_problem *p = random_problem(ctx, &rng, 1 + random_below(&rng, MOST), 0);
        uint64_t want[MOST], top = 0;

        for (uint32_t step = 0; step < p->n_steps; step++)
            for (mpl_buffer b = 0; b < p->n; b++) {
                uint64_t least = UINT64_MAX, last = 0;
                mpl_buffer alive[MOST];
                uint32_t n = 0;

                if (p->birth[b] != step)
                    continue;
                for (mpl_buffer c = 0; c < p->n; c++)
                    if (p->death[c] > step &&
                        (p->birth[c] < step || (p->birth[c] == step && c < b)))
                        alive[n++] = c;
                for (uint64_t from = 0, to; from < top; from = to + 1) {
                    for (to = from; to < top && is_free(p, alive, n, want, b, to, 1); to++)
                        ;
                    last = to == top ? from : top;
                    if (to - from >= p->bytes[b] && to - from < least) {
                        least = to - from;
                        want[b] = from;
                    }
                }
                if (least == UINT64_MAX)
                    want[b] = last;
                top = mpl_max_u64(top, want[b] + p->bytes[b]);
            }
        expect_offsets(ctx, "ort_pattern", NULL, NULL, p, want);
    }
}

TEST(decided_offsets_are_refused)
{
    static const char *const names[] = {"executorch", "inductor_pool", "ort_pattern", "ort_bfc",
                                        "ggml_alloc", "usmp",          "somas"};
    owned_problem *p = make_row(ctx, &by_hand[0]);

    assert_ok(ctx, mpl_new(ctx, p->fixed, p->n));
    p->fixed[0] = 64;
    p->fixed[1] = p->fixed[2] = MPL_UNFIXED;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        owned_plan *plan = NULL;

        assert_status(ctx, plan_with(ctx, names[i], NULL, NULL, 0, p, &plan), MPL_EUNAVAIL);
    }
    assert_int_equal(peak_of(ctx, "tflm_greedy", NULL, NULL, p), 72);
}

/* n buffers of sizes up to `most`, or all of one size; lives of all lengths. */
static mpl_problem *random_list(mpl_ctx *ctx, mpl_rng *rng, uint32_t n, uint32_t most, bool equal)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "list", n, &p));
    p->n_steps = 100;
    for (mpl_buffer b = 0; b < n; b++) {
        p->bytes[b] = equal ? most : 1 + random_below(rng, 1 + random_below(rng, most));
        p->birth[b] = random_below(rng, 99);
        p->death[b] = p->birth[b] + 1 + random_below(rng, 99 - p->birth[b]);
    }
    return p;
}

/* Fault: a box that loses a buffer, rows that overlap, tries that never help, a start that is given
 * up for something worse. Buffers of one size end at the bound: colouring packs intervals so. */
TEST(idealloc_boxes_and_colours)
{
    uint32_t better = 0;
    mpl_rng rng;

    mpl_rng_init(&rng, 66);
    for (uint32_t i = 0; i < 60; i++) {
        bool equal = i % 3 == 0;
        owned_problem *p =
            random_list(ctx, &rng, 2 + random_below(&rng, 150), i % 2 == 0 ? 5000000 : 900, equal);
        uint64_t live = 0, start = peak_of(ctx, "idealloc", "lives", "0", p);
        uint64_t peak = peak_of(ctx, "idealloc", "lives", "9", p);

        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &live, NULL, NULL));
        assert_true(peak >= live && peak <= start);
        if (equal)
            assert_int_equal(peak, live);
        better += !equal && peak < start;
    }
    assert_true(better >= 5);
}

TESTS(idealloc_boxes_and_colours, producers_plan_alike, examples_are_as_worked_out,
      a_block_is_handed_on_once, heaps_are_placed_plainly, a_heap_uses_gaps,
      usmp_stands_on_all_conflicts, somas_shares_objects, a_pattern_is_best_fit_in_time,
      decided_offsets_are_refused)
