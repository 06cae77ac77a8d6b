/* test_harness_tape.c -- tapes of libmemplan, as a C program uses them: random programs beside
 * plain arithmetic, steps that part from their plan, state that outlives steps, what is refused.
 *
 * Fault: a value lost where a step parts from its plan, an operand overwritten that can still be
 * asked for, state that lies in the arena, an eviction of another trace than the one least recently
 * used, a released tensor that is used. MPL_TAPES=N: that many random programs. */
#include "graphs/core/rng.h"
#include "harness/lib/memplan.h"
#include "tests/support/test.h"

enum { MOST = 24, WIDTH = 40, N_PROGRAMS = 150 };

/* A tensor beside the numbers that it must hold. */
typedef struct held {
    memplan_tensor tensor;
    uint32_t n;
    float x[WIDTH];
} held;

typedef struct program {
    memplan_ctx *owner;
    memplan_tape *tape;
    uint32_t n;
    held item[MOST];
    held weight;
} program;

static void assert_done(program *p, memplan_status st)
{
    if (st != MEMPLAN_OK)
        fail_msg("status %d: %s", (int)st, memplan_message(p->owner));
}

static void open_program(program *p, const char *allocator, uint32_t n_plans)
{
    *p = (program){.owner = memplan_ctx_new()};
    assert_non_null(p->owner);
    assert_done(p, memplan_set(p->owner, "budget", "2000"));
    assert_done(p, memplan_tape_new(p->owner, allocator, "ref", n_plans, &p->tape));
    p->weight.n = WIDTH;
    for (int i = 0; i < WIDTH; i++)
        p->weight.x[i] = (float)(i - 7) / 4;
    assert_done(p, memplan_tape_weight(p->tape, "w", "f32", 1, (int64_t[]){WIDTH}, p->weight.x, 1,
                                       &p->weight.tensor));
}

static void close_program(program *p)
{
    memplan_tape_free(p->tape);
    assert_int_equal(memplan_live_allocations(p->owner), 0);
    memplan_ctx_free(p->owner);
}

static memplan_status call(program *p, const char *op, uint32_t n_in, const memplan_tensor *in,
                           memplan_tensor *out)
{
    return memplan_tape_call(p->tape, op, n_in, in, 0, NULL, 1, out);
}

static void assert_holds(program *p, const held *h)
{
    float got[WIDTH];

    assert_done(p, memplan_tape_read(p->tape, h->tensor, got));
    for (uint32_t i = 0; i < h->n; i++)
        assert_true(got[i] == h->x[i]);
}

static void add_input(program *p, mpl_rng *rng, uint32_t n, float first)
{
    held *h = &p->item[p->n++];

    h->n = n;
    for (uint32_t i = 0; i < n; i++)
        h->x[i] = first + (float)mpl_rng_below(rng, 9) - 4;
    assert_done(p, memplan_tape_input(p->tape, NULL, "f32", 1, (int64_t[]){n}, h->x, &h->tensor));
}

/* Numbers that an operation gives, and its name. */
static const char *compute(uint32_t what, const held *a, const held *b, held *to)
{
    to->n = a->n;
    for (uint32_t i = 0; i < a->n; i++)
        to->x[i] = what == 0   ? (a->x[i] > b->x[i] ? a->x[i] : b->x[i])
                   : what == 1 ? (a->x[i] < b->x[i] ? a->x[i] : b->x[i])
                   : what == 2 ? (a->x[i] > 0 ? a->x[i] : 0)
                   : what == 3 ? -a->x[i]
                               : a->x[i];
    return (const char *[]){"max", "min", "relu", "neg", "identity"}[what];
}

static void drop(program *p, uint32_t i)
{
    p->item[i] = p->item[--p->n];
}

/* One random thing: an operation, whose operands may end with it, a release, a reading. */
static void act(program *p, mpl_rng *rng)
{
    uint32_t i = (uint32_t)mpl_rng_below(rng, p->n), j = (uint32_t)mpl_rng_below(rng, p->n);
    uint32_t what = (uint32_t)mpl_rng_below(rng, 5);
    bool ends = mpl_rng_below(rng, 2) == 0;
    held made = {0};
    memplan_tensor in[2] = {p->item[i].tensor, p->item[j].tensor};

    if (mpl_rng_below(rng, 5) == 0)
        assert_holds(p, &p->item[j]);
    if ((p->n > 2 && mpl_rng_below(rng, 4) == 0) || p->n == MOST) {
        assert_done(p, memplan_tape_release(p->tape, in[0]));
        drop(p, i);
        return;
    }
    if (what < 2 && p->item[j].n != p->item[i].n)
        what = 2 + what;
    if (what < 2 && p->item[i].n == WIDTH && mpl_rng_below(rng, 3) == 0)
        j = MOST, in[1] = p->weight.tensor;
    if (ends)
        in[0] = MEMPLAN_LAST(in[0]);
    assert_done(p, call(p, compute(what, &p->item[i], j < MOST ? &p->item[j] : &p->weight, &made),
                        what < 2 ? 2 : 1, in, &made.tensor));
    if (ends)
        drop(p, i);
    p->item[p->n++] = made;
}

/* A step: `seed` decides what is done until thing `part`, then `other` does. All numbers differ
 * from step to step; what is alive at the end outlives it, up to `kept` tensors. */
static void take_step(program *p, uint64_t seed, uint32_t part, uint64_t other, float first,
                      uint32_t kept)
{
    mpl_rng rng, data;
    uint32_t n;

    rng = mpl_rng_of(seed);
    data = mpl_rng_of(seed + other);
    while (p->n > kept) {
        assert_done(p, memplan_tape_release(p->tape, p->item[p->n - 1].tensor));
        p->n--;
    }
    n = 5 + (uint32_t)mpl_rng_below(&rng, 20);
    add_input(p, &data, WIDTH, first);
    add_input(p, &data, 3 + 8 * (uint32_t)mpl_rng_below(&rng, 2), first);
    for (uint32_t k = 0; k < n; k++) {
        if (k == part)
            rng = mpl_rng_of(other);
        act(p, &rng);
    }
    for (uint32_t i = 0; i < p->n; i++)
        assert_holds(p, &p->item[i]);
    assert_done(p, memplan_tape_end(p->tape));
    for (uint32_t i = 0; i < p->n; i++)
        assert_holds(p, &p->item[i]);
}

static uint64_t fact(const program *p, const char *name)
{
    return memplan_tape_fact(p->tape, name);
}

TEST(random_programs)
{
    const char *text = getenv("MPL_TAPES");
    uint64_t n = text != NULL ? strtoull(text, NULL, 10) : N_PROGRAMS, hits = 0, diverged = 0;
    static const char *const allocator[] = {"best_fit", "buddy", "slab", "caching"};

    for (uint64_t seed = 1; seed <= n; seed++) {
        program p;
        uint32_t kept = seed % 3 == 0 ? 2 : 0;

        open_program(&p, allocator[seed % 4], 3);
        for (uint32_t s = 0; s < 12; s++) {
            uint32_t part = s % 3 == 2 ? (uint32_t)((seed + s) % 9) : MOST * 2;

            take_step(&p, seed + s % 2, part, seed + s, (float)s, kept);
            assert_true(fact(&p, "live_peak_bytes") <= fact(&p, "reserved_bytes"));
            assert_int_equal(fact(&p, "hits") + fact(&p, "misses"), s + 1);
        }
        hits += fact(&p, "hits");
        diverged += fact(&p, "diverged");
        close_program(&p);
    }
    assert_true(n < N_PROGRAMS || (hits > n && diverged > n));
}

/* ---- by hand ---- */

/* x -> relu -> neg, of n numbers; `late`: relu's result is released behind neg, not by it. */
static void small_step(program *p, int64_t n, bool late)
{
    float x[WIDTH] = {2, 3}, y[WIDTH];
    memplan_tensor t, u, v;

    assert_done(p, memplan_tape_input(p->tape, "x", "f32", 1, &n, x, &t));
    assert_done(p, call(p, "relu", 1, (memplan_tensor[]){MEMPLAN_LAST(t)}, &u));
    assert_done(p, call(p, "neg", 1, (memplan_tensor[]){late ? u : MEMPLAN_LAST(u)}, &v));
    if (late) {
        assert_done(p, memplan_tape_read(p->tape, u, y));
        assert_true(y[0] == 2);
        assert_done(p, memplan_tape_release(p->tape, u));
    }
    assert_done(p, memplan_tape_read(p->tape, v, y));
    assert_true(y[0] == -2);
    assert_done(p, memplan_tape_release(p->tape, v));
    assert_done(p, memplan_tape_end(p->tape));
}

TEST(an_operand_that_ends_is_overwritten)
{
    program p;

    open_program(&p, "best_fit", 4);
    small_step(&p, 16, false);
    assert_int_equal(fact(&p, "arena_bytes"), 64);
    assert_int_equal(fact(&p, "live_peak_bytes"), 128);
    small_step(&p, 16, true); /* another trace: both results are alive at once */
    assert_int_equal(fact(&p, "diverged"), 1);
    assert_int_equal(fact(&p, "arena_bytes"), 128);
    small_step(&p, 16, true);
    small_step(&p, 16, false); /* begins by the trace used last, and parts from it */
    assert_int_equal(fact(&p, "diverged"), 2);
    assert_int_equal(fact(&p, "traces"), 2);
    small_step(&p, 16, false);
    assert_int_equal(fact(&p, "hits"), 2);
    assert_int_equal(fact(&p, "live_bytes"), 0);
    close_program(&p);
}

TEST(the_least_recently_used_goes)
{
    static const struct {
        int64_t n;
        bool hit;
    } steps[] = ROW({1, false}, {2, false}, {1, true}, {3, false}, {1, true}, {2, false},
                    {3, false}, {2, true}, {1, false});
    program p;

    open_program(&p, "slab", 2);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        uint64_t hits = fact(&p, "hits");

        small_step(&p, steps[i].n, false);
        if ((fact(&p, "hits") > hits) != steps[i].hit)
            fail_msg("step %zu", i);
    }
    assert_int_equal(fact(&p, "evictions"), 4);
    assert_int_equal(fact(&p, "plans"), 2);
    close_program(&p);
}

/* w -= rate * g, once a step; readers before it see the old contents. */
TEST(weights_are_updated)
{
    program p;
    float g[WIDTH], rate = 0.5F, got[WIDTH];
    memplan_tensor t, u, r;

    open_program(&p, "best_fit", 4);
    for (int i = 0; i < WIDTH; i++)
        g[i] = 1;
    assert_done(&p, memplan_tape_weight(p.tape, "rate", "f32", 0, NULL, &rate, 0, &r));
    for (int s = 0; s < 4; s++) {
        const memplan_attr attr = {.key = "rate", .n = 1, .floats = (double[]){0.5}};
        memplan_tensor updated, kept;

        assert_done(&p, memplan_tape_input(p.tape, "g", "f32", 1, (int64_t[]){WIDTH}, g, &t));
        assert_done(&p, call(&p, "neg", 1, &p.weight.tensor, &u));
        assert_done(&p,
                    memplan_tape_call(p.tape, "sgd_update", 2,
                                      (memplan_tensor[]){t, p.weight.tensor}, 1, &attr, 1, &kept));
        assert_int_equal(memplan_tape_call(p.tape, "sgd_update", 2,
                                           (memplan_tensor[]){t, p.weight.tensor}, 1, &attr, 1,
                                           &updated),
                         MEMPLAN_EINPUT);
        assert_non_null(strstr(memplan_message(p.owner), "a second time"));
        assert_done(&p, memplan_tape_read(p.tape, u, got));
        assert_true(got[9] == -((9 - 7) / 4.0F - 0.5F * (float)s));
        assert_done(&p, memplan_tape_read(p.tape, p.weight.tensor, got));
        assert_true(got[9] == (9 - 7) / 4.0F - 0.5F * (float)(s + 1));
        assert_done(&p, memplan_tape_release(p.tape, u));
        assert_done(&p, memplan_tape_release(p.tape, t));
        assert_done(&p, memplan_tape_release(p.tape, kept));
        assert_done(&p, memplan_tape_end(p.tape));
    }
    assert_int_equal(fact(&p, "hits"), 3);
    close_program(&p);
}

/* Fault: a plan is followed, or a prepared operation taken, for other attributes or weights. */
TEST(attributes_and_weights_decide)
{
    static const struct {
        double alpha;
        int weight;
        bool hit;
    } steps[] = ROW({0.5, 0, false}, {0.25, 0, false}, {0.5, 0, true}, {0.5, 1, false},
                    {0.25, 0, true}, {0.5, 1, true});
    program p;
    memplan_tensor weight[2], out;
    float got[WIDTH];

    open_program(&p, "best_fit", 4);
    weight[0] = p.weight.tensor;
    assert_done(&p, memplan_tape_weight(p.tape, "v", "f32", 1, (int64_t[]){WIDTH}, p.weight.x, 1,
                                        &weight[1]));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const memplan_attr attr = {.key = "alpha", .n = 1, .floats = &steps[i].alpha};
        uint64_t hits = fact(&p, "hits");

        assert_done(&p, memplan_tape_call(p.tape, "leaky_relu", 1, &weight[steps[i].weight], 1,
                                          &attr, 1, &out));
        assert_done(&p, memplan_tape_read(p.tape, out, got));
        assert_true(got[3] == -(float)steps[i].alpha);
        assert_done(&p, memplan_tape_release(p.tape, out));
        assert_done(&p, memplan_tape_end(p.tape));
        if ((fact(&p, "hits") > hits) != steps[i].hit)
            fail_msg("step %zu", i);
    }
    close_program(&p);
}

TEST(what_is_refused)
{
    program p;
    float x[WIDTH] = {0};
    memplan_tensor t, u = 7;
    memplan_tape *tape = NULL;
    const memplan_attr bad[] = {{.key = "nothing", .n = 1, .ints = (int64_t[]){1}},
                                {.key = "axis", .n = 1, .floats = (double[]){1}},
                                {.key = "axis", .n = 2, .ints = (int64_t[]){1, 2}}};

    open_program(&p, "best_fit", 4);
    assert_int_equal(memplan_tape_new(p.owner, "x", "ref", 1, &tape), MEMPLAN_EINPUT);
    assert_int_equal(memplan_tape_new(p.owner, "slab", "cpu", 1, &tape), MEMPLAN_EUNAVAIL);
    assert_int_equal(memplan_tape_input(p.tape, "x", "f99", 0, NULL, x, &t), MEMPLAN_EINPUT);
    assert_int_equal(memplan_tape_input(p.tape, "x", "f32", 1, (int64_t[]){-1}, x, &t),
                     MEMPLAN_EINPUT);
    assert_done(&p, memplan_tape_input(p.tape, "x", "f32", 1, (int64_t[]){4}, x, &t));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(memplan_tape_call(p.tape, "softmax", 1, &t, 1, &bad[i], 1, &u),
                         MEMPLAN_EINPUT);
    assert_int_equal(call(&p, "nothing", 1, &t, &u), MEMPLAN_EINPUT);
    assert_int_equal(call(&p, "while", 0, NULL, &u), MEMPLAN_EINPUT);
    assert_int_equal(call(&p, "add", 2, (memplan_tensor[]){t, p.weight.tensor}, &u),
                     MEMPLAN_EINPUT);
    assert_int_equal(call(&p, "add", 2, (memplan_tensor[]){MEMPLAN_LAST(t), MEMPLAN_LAST(t)}, &u),
                     MEMPLAN_EINPUT);
    assert_int_equal(memplan_tape_write(p.tape, t, x), MEMPLAN_EINPUT);
    assert_int_equal(u, 7);
    assert_done(&p, memplan_tape_release(p.tape, t));
    assert_int_equal(memplan_tape_release(p.tape, t), MEMPLAN_EINPUT);
    assert_int_equal(memplan_tape_read(p.tape, t, x), MEMPLAN_EINPUT);
    assert_int_equal(call(&p, "relu", 1, &t, &u), MEMPLAN_EINPUT);
    assert_done(&p, memplan_tape_end(p.tape));
    assert_int_equal(fact(&p, "traces"), 0);
    assert_true(fact(&p, "nothing") == UINT64_MAX);
    close_program(&p);
}

TESTS(random_programs, an_operand_that_ends_is_overwritten, the_least_recently_used_goes,
      weights_are_updated, attributes_and_weights_decide, what_is_refused)
