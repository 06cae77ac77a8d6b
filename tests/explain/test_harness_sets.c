/* test_harness_sets.c -- live-in and live-out of operations, and the interference graph, by hand.
 * Fault: a value that is read later left out of a set, an output dead at the end, an edge missing.
 */
#include "tests/harness/run_program.h"

static const char chain[] = "graph chain\ninput x f32 [4]\nweight w f32 [4]\na = relu(x)\n"
                            "b = tanh(a)\nc = add(b, w)\nd = add(c, x)\noutput d\noutput b\n";

TEST(live_sets)
{
    folder_put_text("chain.graph", chain);
    assert_int_equal(run("show @/chain.graph --live"), 0);
    assert_string_equal(out, "1 a (relu)\n  in  x\n  out x a\n"
                             "2 b (tanh)\n  in  x a\n  out x b\n"
                             "3 c (add)\n  in  x b\n  out x b c\n"
                             "4 d (add)\n  in  x b c\n  out b d\n");
    assert_int_equal(run("show synthetic:n=5 --live"), 2);
    check_error("show --live of a list");
}

/* A loop is one operation, which reads what its body captures. */
TEST(of_a_loop)
{
    static const char text[] = "graph loop\ninput n i64 []\ninput h f32 [2]\ninput k f32 [2]\n"
                               "s = tanh(k)\nt = neg(k)\nblock body\n  param i i64 []\n"
                               "  param p f32 [2]\n  q = add(p, s)\nyield _, q\n"
                               "r = while body(n, _, h) carried=1\nz = add(r, t)\noutput z\n";

    folder_put_text("loop.graph", text);
    assert_int_equal(run("show @/loop.graph --live"), 0);
    assert_string_equal(out, "1 s (tanh)\n  in  n h k\n  out n h k s\n"
                             "2 t (neg)\n  in  n h k s\n  out n h s t\n"
                             "3 r (while)\n  in  n h s t\n  out t r\n"
                             "4 z (add)\n  in  t r\n  out z\n");
}

TEST(interference)
{
    folder_put_text("chain.graph", chain);
    assert_int_equal(run("export @/chain.graph --format interference --pin weights,inputs"), 0);
    assert_string_equal(out, "a,b,a_bytes,b_bytes\n\"a\",\"b\",16,16\n\"b\",\"c\",16,16\n"
                             "\"b\",\"d\",16,16\n\"c\",\"d\",16,16\n");
    assert_int_equal(run("export @/chain.graph --format interference -o @/edges.dot"), 0);
    folder_read("edges.dot", out, sizeof out);
    assert_non_null(strstr(out, "graph memplan {\n"));
    assert_non_null(strstr(out, "  b0 [label=\"a\\n16 B\"];\n"));
    assert_null(strstr(out, "->"));
}

static int begin(void)
{
    return program_begin("sets");
}

TESTS_WITHIN(begin, folder_remove, live_sets, of_a_loop, interference)
