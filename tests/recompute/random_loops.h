/* random_loops.h -- random programs of loops and branches, trained. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"

enum { TEXT = 8000, MOST_SEEN = 40 };

typedef struct maker {
    mpl_rng rng;
    char text[TEXT];
    size_t n;
    uint32_t n_names, n_seen;
    uint32_t seen[MOST_SEEN]; /* values of dims [2,3] by number */
} maker;

static uint32_t below(maker *m, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&m->rng, n);
}

static void say(maker *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(maker *m, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    m->n += (size_t)vsnprintf(m->text + m->n, TEXT - m->n, format, list);
    va_end(list);
    assert_true(m->n < TEXT);
}

static uint32_t see(maker *m)
{
    mpl_assert(m->n_seen < MOST_SEEN);
    return m->seen[m->n_seen++] = m->n_names++;
}

static uint32_t any(maker *m)
{
    return m->seen[below(m, m->n_seen)];
}

static void add_ops(maker *m, uint32_t n, uint32_t round, uint32_t depth);

/* A loop over one value, of rounds that are known or not, with another that only shifts. */
static void add_inner_loop(maker *m, uint32_t round, uint32_t depth)
{
    uint32_t b = m->n_names++, r = m->n_names++, seen = m->n_seen, h, k, first = any(m),
             second = any(m), trips = 2 + below(m, 6);
    bool known = below(m, 3) != 0;

    say(m, "block b%u\nparam v%u i64 []\n", b, r);
    h = see(m);
    k = see(m);
    say(m, "param v%u f32 [2,3]\nparam v%u f32 [2,3]\n", h, k);
    add_ops(m, 2, r, depth + 1);
    say(m, "yield _, v%u, v%u\n", m->seen[m->n_seen - 1], h);
    m->n_seen = seen;
    h = see(m);
    if (known)
        say(m, "v%u, _ = while b%u(_, _, v%u, v%u) carried=2 trips=%u\n", h, b, first, second,
            trips);
    else
        say(m, "v%u, _ = while b%u(v%u, _, v%u, v%u) carried=2 trips=40\n", h, b, round, first,
            second);
}

static void add_case(maker *m, uint32_t round, uint32_t depth)
{
    uint32_t part = m->n_names++, index = m->n_names++, seen = m->n_seen, branch[2],
             bypass = any(m);

    say(m, "v%u = mod(v%u, three)\nv%u = sub(v%u, one)\n", part, round, index, part);
    for (int i = 0; i < 2; i++) {
        branch[i] = m->n_names++;
        say(m, "block b%u\n", branch[i]);
        add_ops(m, 2, round, depth + 1);
        say(m, "yield v%u\n", m->seen[m->n_seen - 1]);
        m->n_seen = seen;
    }
    say(m, "v%u = case b%u, b%u(v%u, v%u)\n", see(m), branch[0], branch[1], index, bypass);
}

static void add_ops(maker *m, uint32_t n, uint32_t round, uint32_t depth)
{
    static const char *const pair[] = {"add", "sub", "mul"}, *const lone[] = {"tanh", "sigmoid"};
    uint32_t last;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t a = any(m), b = any(m), kind = below(m, depth < 2 ? 8 : 6);

        if (kind == 6)
            add_inner_loop(m, round, depth);
        else if (kind == 7)
            add_case(m, round, depth);
        else if (kind < 2)
            say(m, "v%u = matmul(v%u, w%u)\n", see(m), a, below(m, 2));
        else if (kind < 4)
            say(m, "v%u = %s(v%u)\n", see(m), lone[kind - 2], a);
        else
            say(m, "v%u = %s(v%u, v%u)\n", see(m), pair[below(m, 3)], a, b);
    }
    last = m->seen[m->n_seen - 1];
    say(m, "v%u = tanh(v%u)\n", see(m), last);
}

/* Loops one after the other over up to three values and slices, with rows, and their training. */
static inline mpl_graph *random_loops(mpl_ctx *ctx, uint64_t seed)
{
    maker *m = calloc(1, sizeof *m);
    mpl_graph *forward = NULL, *g = NULL;
    mpl_autodiff_options o = {.update = (mpl_optimiser)(seed % 4),
                              .gradients = MPL_GRADIENTS_PINNED,
                              .chained = seed % 3 == 0,
                              .apart = seed % 5 == 0};
    uint32_t x, n_loops;

    m->rng = mpl_rng_of(seed);
    n_loops = 1 + below(m, 2);
    x = see(m);
    say(m,
        "graph g\ninput v%u f32 [2,3]\nweight w0 f32 [3,3]\nweight w1 f32 [3,3]\n"
        "weight one i64 [] = splat 1\nweight three i64 [] = splat 3\n",
        x);
    for (uint32_t k = 0; k < n_loops; k++) {
        uint32_t n = 1 + below(m, 3), rounds = 3 + below(m, 22), r = m->n_names++,
                 first = m->n_seen, init[3], p[3];
        bool rows = below(m, 2), trained = below(m, 2), reverse = below(m, 2);
        uint32_t last;

        for (uint32_t i = 0; i < n; i++)
            init[i] = any(m);
        say(m, "%s s%u f32 [%u,2,3]\nblock loop%u\nparam v%u i64 []\n",
            trained ? "weight" : "input", k, rounds, k, r);
        for (uint32_t i = 0; i < n; i++)
            say(m, "param v%u f32 [2,3]\n", p[i] = see(m));
        say(m, "param v%u f32 [2,3]\n", see(m));
        add_ops(m, 3 + below(m, 3), r, 0);
        say(m, "yield _");
        for (uint32_t i = 0; i < n; i++) /* made by the body, shifted, or as it was */
            say(m, ", v%u", i == 0 ? m->seen[m->n_seen - 1] : below(m, 2) ? p[i - 1] : any(m));
        if (rows)
            say(m, ", v%u", m->seen[m->n_seen - 2]);
        m->n_seen = first;
        for (uint32_t i = 0; i < n; i++)
            say(m, i == 0 ? "\nv%u" : ", v%u", see(m));
        if (rows)
            say(m, ", r%u", k);
        say(m, " = while loop%u(_, _", k);
        for (uint32_t i = 0; i < n; i++)
            say(m, ", v%u", init[i]);
        say(m, ", s%u) carried=%u", k, n);
        if (reverse)
            say(m, rows ? " scan_reverse=[1,1]" : " scan_reverse=[1]");
        say(m, "\n");
        last = m->seen[m->n_seen - 1];
        if (rows)
            say(m, "q%u = reduce_sum(r%u) axes=[0] keepdims=0\nv%u = add(q%u, v%u)\n", k, k, see(m),
                k, last);
    }
    say(m, "z = matmul(v%u, w0)\noutput z\n", m->seen[m->n_seen - 1]);
    assert_ok(ctx, mpl_text_read_memory(ctx, "net", m->text, m->n, &forward));
    assert_ok(ctx, mpl_autodiff(ctx, forward, &o, &g));
    mpl_graph_free(ctx, forward);
    free(m);
    return g;
}
