/* Problems: refusals, hash sensitivity, and conflicts and bounds against a naive recount. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_problem.h"

static mpl_problem *three(mpl_ctx *ctx)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "three", 3, &p));
    p->n_steps = 4;
    p->bytes[0] = 8, p->birth[0] = 0, p->death[0] = 2;
    p->bytes[1] = 8, p->birth[1] = 1, p->death[1] = 4;
    p->bytes[2] = 4, p->birth[2] = 2, p->death[2] = 3;
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 2));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 2));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 2));
    p->n_in_place = 1;
    p->in_place_in[0] = 0, p->in_place_out[0] = 1, p->in_place_step[0] = 1;
    assert_ok(ctx, mpl_new(ctx, p->fixed, 3));
    p->fixed[0] = p->fixed[1] = p->fixed[2] = MPL_UNFIXED;
    return p;
}

/* Sets one field of `three` to another value: whether the problem stays valid, or the error. */
typedef struct change {
    const char *what;
    size_t array; /* offset of the pointer in mpl_problem; width 0: of the number */
    uint32_t index;
    uint32_t width; /* of an item [byte] */
    uint64_t value;
    const char *want; /* NULL: valid, and the hash changes */
} change;

#define AT(array) offsetof(mpl_problem, array)

static const change changes[] = {
    {"bytes", AT(bytes), 2, 8, 5, NULL},
    {"no bytes", AT(bytes), 0, 8, 0, "buffer '#0' has 0 bytes"},
    {"too many bytes", AT(bytes), 0, 8, UINT64_C(1) << 63, "1 to 2^63 - 1"},
    {"align", AT(align), 1, 4, 64, NULL},
    {"no alignment", AT(align), 1, 4, 0, "'#1' is aligned to 0"},
    {"odd alignment", AT(align), 1, 4, 6, "a power of two"},
    {"pool", AT(pool), 2, 4, 1, "in pool 1; there are 1"},
    {"birth", AT(birth), 2, 4, 1, NULL},
    {"born dead", AT(birth), 2, 4, 3, "'#2' lives in [3, 3)"},
    {"death", AT(death), 2, 4, 4, NULL},
    {"beyond the last step", AT(death), 2, 4, 5, "until step 5"},
    {"steps", AT(n_steps), 0, 0, 5, NULL},
    {"capacity", AT(pool_capacity), 0, 8, 99, NULL},
    {"no pools", AT(n_pools), 0, 0, 0, "has no pool"},
    {"no pair", AT(n_in_place), 0, 0, 0, NULL},
    {"pair of itself", AT(in_place_out), 0, 4, 0, "joins buffers 0 and 0"},
    {"pair beyond", AT(in_place_in), 0, 4, 3, "joins buffers 3"},
    {"pair at another step", AT(in_place_step), 0, 4, 2, "pair 0 at step 2"},
    {"pair too large", AT(bytes), 1, 8, 9, "buffer 1 has 9 bytes"},
    {"pair with one that lives on", AT(death), 0, 4, 3, "pair 0 at step 1"},
    {"pair with one born at once", AT(birth), 0, 4, 1, "pair 0 at step 1"},
    {"pair twice", AT(n_in_place), 0, 0, 2, "joins buffers 0 and 0"},
    {"fixed", AT(fixed), 1, 8, 16, NULL},
};

static void apply(mpl_problem *p, const change *c)
{
    char *base = (char *)p + c->array,
         *at = c->width == 0 ? base : *(char **)(void *)base + (size_t)c->index * c->width;
    uint32_t narrow = (uint32_t)c->value;

    if (c->width == 8)
        memcpy(at, &c->value, 8);
    else
        memcpy(at, &narrow, 4);
}

TEST(check_and_hash)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        owned_problem *p = three(ctx);
        uint32_t n_pools = p->n_pools;
        uint64_t hash = mpl_problem_hash(p);
        mpl_status st;

        assert_ok(ctx, mpl_problem_check(ctx, p));
        apply(p, &changes[i]);
        st = mpl_problem_check(ctx, p);
        if (st != (changes[i].want == NULL ? MPL_OK : MPL_EINPUT))
            fail_msg("%s: %s (%s)", changes[i].what, mpl_status_name(st), ctx->message);
        if (changes[i].want != NULL && strstr(ctx->message, changes[i].want) == NULL)
            fail_msg("%s: '%s' without '%s'", changes[i].what, ctx->message, changes[i].want);
        p->n_pools = n_pools;
        if (changes[i].want == NULL && mpl_problem_hash(p) == hash)
            fail_msg("%s: the hash does not see it", changes[i].what);
    }
}

TEST(ignore_names)
{
    owned_problem *p, *q;
    char text[24];

    p = three(ctx), q = three(ctx);
    assert_int_equal(mpl_problem_hash(p), mpl_problem_hash(q));
    assert_ok(ctx, mpl_new(ctx, q->buffer_name, 3));
    q->buffer_name[1] = mpl_strdup(ctx, "conv1");
    assert_int_equal(mpl_problem_hash(p), mpl_problem_hash(q));
    assert_string_equal(mpl_buffer_label(q, 1, text), "conv1");
    assert_string_equal(mpl_buffer_label(q, 2, text), "#2");
    assert_string_equal(mpl_buffer_label(p, 1, text), "#1");
}

/* Conflict is symmetric, irreflexive, and equal to step-by-step presence. */
TEST(conflict_plainly)
{
    mpl_rng rng = mpl_rng_of(3);

    for (uint32_t round = 0; round < draws(500); round++) {
        owned_problem *p = random_problem(ctx, &rng, 10, round % 4);

        for (mpl_buffer a = 0; a < p->n; a++)
            for (mpl_buffer b = 0; b < p->n; b++) {
                bool meet = false;

                for (uint32_t step = 0; a != b && p->pool[a] == p->pool[b] && step < p->n_steps;
                     step++)
                    meet = meet || (p->birth[a] <= step && step < p->death[a] &&
                                    p->birth[b] <= step && step < p->death[b]);
                assert_int_equal(mpl_conflict(p, a, b), meet);
            }
    }
}

/* Recounts the least bytes that one step needs: whole slots of the least alignment, minus the
 * largest rounding, minus outputs that may overwrite an input, while there is another input to
 * overwrite. */
static uint64_t plain_live(const mpl_problem *p, uint32_t pool, uint32_t step)
{
    uint64_t grain = UINT64_MAX, sum = 0, rest = 0, saved[16];
    uint32_t n_out = 0, n_in = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        grain = p->pool[b] == pool && p->align[b] < grain ? p->align[b] : grain;
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t slots = (p->bytes[b] + grain - 1) / grain * grain;
        bool as_in = false, as_out = false;

        if (p->pool[b] != pool || p->birth[b] > step || p->death[b] <= step)
            continue;
        sum += slots;
        rest = slots - p->bytes[b] > rest ? slots - p->bytes[b] : rest;
        for (uint32_t i = 0; i < p->n_in_place; i++) {
            as_in = as_in || (p->in_place_step[i] == step && p->in_place_in[i] == b);
            as_out = as_out || (p->in_place_step[i] == step && p->in_place_out[i] == b);
        }
        n_in += as_in;
        if (as_out)
            saved[n_out++] = slots;
    }
    for (; n_in > 0 && n_out > 0; n_in--) {
        uint32_t most = 0;

        for (uint32_t i = 1; i < n_out; i++)
            most = saved[i] > saved[most] ? i : most;
        sum -= saved[most];
        saved[most] = saved[--n_out];
    }
    return sum - rest;
}

TEST(bound_plainly)
{
    mpl_rng rng = mpl_rng_of(5);

    for (uint32_t round = 0; round < draws(4000); round++) {
        owned_problem *p = random_problem(ctx, &rng, 1 + random_below(&rng, 14), round % 8);

        for (uint32_t pool = 0; pool < p->n_pools; pool++) {
            uint64_t peak = 1, want = 0, live[32], naive = 0, sum = 0;
            uint32_t step = 9999, want_step = 0;

            assert_ok(ctx, mpl_peak_live(ctx, p, pool, &peak, live, &step));
            for (uint32_t s = 0; s < p->n_steps; s++) {
                assert_int_equal(live[s], plain_live(p, pool, s));
                if (live[s] > want)
                    want = live[s], want_step = s;
            }
            assert_int_equal(peak, want);
            assert_int_equal(step, want_step);
            assert_ok(ctx, mpl_naive_bytes(ctx, p, pool, &naive));
            for (mpl_buffer b = 0; b < p->n; b++)
                sum += p->pool[b] == pool
                           ? (p->bytes[b] + p->align[b] - 1) / p->align[b] * p->align[b]
                           : 0;
            assert_int_equal(naive, sum);
        }
    }
}

TEST(refuse_sums_that_overflow)
{
    uint64_t bytes = 7;
    owned_problem *p = three(ctx);

    p->n_in_place = 0;
    p->bytes[0] = p->bytes[1] = INT64_MAX;
    assert_status(ctx, mpl_peak_live(ctx, p, 0, &bytes, NULL, NULL), MPL_EINPUT);
    assert_status(ctx, mpl_naive_bytes(ctx, p, 0, &bytes), MPL_EINPUT);
    assert_int_equal(bytes, 7);
}

TESTS(check_and_hash, ignore_names, conflict_plainly, bound_plainly, refuse_sums_that_overflow)
