/* Inputs of runs: ramps or random, and their pages. */
#include "tests/support/test.h"

#include "runtime/exec.h"
#include "runtime/machine.h"

TEST(inputs_are_ramps_or_random)
{
    owned_graph *g;
    mpl_value v;
    float a[6], b[6];
    int64_t whole[4];

    assert_ok(ctx, mpl_graph_new(ctx, "inputs", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32,
                                       &(mpl_shape){2, {2, 3}}, &v));
    assert_ok(ctx,
              mpl_graph_add_value(ctx, g, "i", MPL_INPUT, MPL_TYPE_i64, &(mpl_shape){1, {4}}, &v));
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 0, 0, a));
    for (int i = 0; i < 6; i++)
        assert_true(a[i] == (float)(i / 6.0));
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 0, 9, a));
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 0, 9, b));
    assert_memory_equal(a, b, sizeof a);
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 0, 10, b));
    assert_memory_not_equal(a, b, sizeof a);
    assert_ok(ctx, mpl_exec_make_input(ctx, g, 1, 9, whole));
    for (int i = 0; i < 4; i++)
        assert_in_range(whole[i], 0, 1);
    assert_status(ctx, mpl_exec_make_input(ctx, g, 2, 0, a), MPL_EINPUT);
}

TEST(pages_become_resident_when_touched)
{
    mpl_machine m;
    void *base;
    uint64_t resident, bytes;

    assert_ok(ctx, mpl_machine_get(ctx, &m));
    assert_true(m.n_cores >= 1 && m.n_threads >= m.n_cores && m.n_nodes >= 1 && m.memory_bytes > 0);
    bytes = UINT64_C(5000) * m.page_bytes - 100;
    assert_ok(ctx, mpl_pages_new(ctx, bytes, &base));
    assert_int_equal((uintptr_t)base % m.page_bytes, 0);
    assert_ok(ctx, mpl_pages_resident(ctx, base, bytes, &resident));
    assert_int_equal(resident, 0);
    ((char *)base)[0] = 1;
    ((char *)base)[4500 * (uint64_t)m.page_bytes] = 1;
    ((char *)base)[bytes - 1] = 1;
    assert_ok(ctx, mpl_pages_resident(ctx, base, bytes, &resident));
    assert_int_equal(resident, 3 * m.page_bytes);
    assert_true(mpl_rss_peak() > resident);
    mpl_pages_free(base, bytes);
    assert_status(ctx, mpl_pages_new(ctx, UINT64_MAX, &base), MPL_EMEM);
    assert_status(ctx, mpl_pages_new(ctx, UINT64_C(1) << 60, &base), MPL_EMEM);
}

TESTS(inputs_are_ramps_or_random, pages_become_resident_when_touched)
