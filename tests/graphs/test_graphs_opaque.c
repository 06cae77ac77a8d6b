/* Opaque operations. Faults: bytes that are not those the reader gave, a pair that the list does
 * not allow or a missing one, an update that takes memory, operands that are only waited for and
 * yet kept, attributes that do not fit. */
#include "tests/support/test.h"

#define INPUTS "graph t\ninput x f32 [4]\ninput s f32 [4]\na = tanh(x)\nb = tanh(x)\n"

static const struct {
    const char *text;
    uint64_t bytes;  /* of all buffers */
    uint32_t pairs;  /* of operand and result that may share */
    uint64_t pinned; /* aligned to 64 */
} rows[] = {
    /* what is listed may be overwritten, nothing else */
    {"c = opaque(a, b) to=f32 shape=[1,4]\nz = tanh(c)\noutput z\n", 48, 0, 192},
    {"c = opaque(a, b) to=f32 shape=[1,4] over=[1]\nz = tanh(c)\noutput z\n", 48, 1, 192},
    {"c = opaque(a, b) to=f32 shape=[1,4] over=[0,1]\nz = tanh(c)\noutput z\n", 48, 2, 192},
    /* never for another type, or other dims */
    {"c = opaque(a, b) to=i32 shape=[1,4] over=[0,1]\nz = cast(c) to=f32\noutput z\n", 48, 0, 192},
    {"c = opaque(a, b) to=f32 shape=[2,2,2] over=[0,1]\nz = tanh(c)\noutput z\n", 48, 0, 192},
    /* an operand twice: only if both are read along */
    {"c = opaque(a, a) to=f32 shape=[1,4] over=[0]\nz = sum(c, b)\noutput z\n", 48, 0, 192},
    {"c = opaque(a, a) to=f32 shape=[1,4] over=[0,1]\nz = sum(c, b)\noutput z\n", 48, 1, 192},
    /* results of any number, bytes as given */
    {"c, d = opaque(a, b) to=\"i8 i64\" shape=[1,7,2,3,5]\nz = tanh(a)\noutput z\n", 159, 0, 192},
    /* a view has no bytes; what it reads besides lives as long */
    {"c = opaque_view(a, b) to=f32 shape=[2,2,2]\nz = tanh(c)\noutput z\n", 32, 0, 192},
    /* an update lies where the input lies */
    {"n = opaque_update(s, a, b) to=f32 shape=[1,4] reads=2\noutput n\n", 32, 0, 128},
};

TEST(bytes_and_pairs)
{
    mpl_problem_options o = mpl_problem_options_default();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[600];
        owned_graph *g;
        owned_problem *p = NULL;
        owned_map *map = NULL;
        mpl_op order[8];
        uint64_t bytes = 0;

        snprintf(text, sizeof text, "%s%s", INPUTS, rows[i].text);
        g = text_graph(ctx, text);
        count_up(g->n_ops, order);
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        for (mpl_buffer b = 0; b < p->n; b++)
            bytes += p->bytes[b];
        if (bytes != rows[i].bytes || p->n_in_place != rows[i].pairs ||
            map->pinned_bytes != rows[i].pinned)
            fail_msg("row %zu: %" PRIu64 " bytes, %u pairs, %" PRIu64 " pinned", i, bytes,
                     p->n_in_place, map->pinned_bytes);
    }
}

/* What an update only waits for may be gone when it runs: `b` has no reader, so it lives for one
 * step. */
TEST(an_update_reads_what_it_says)
{
    mpl_problem_options o = mpl_problem_options_default();
    owned_graph *g = text_graph(ctx, INPUTS "c = tanh(a)\nn = opaque_update(s, c, b) to=f32 "
                                            "shape=[1,4] reads=2\noutput n\n");
    owned_problem *p = NULL;
    owned_map *map = NULL;

    assert_ok(ctx, mpl_problem_from_graph(ctx, g, (const mpl_op[]){0, 1, 2, 3}, &o, &p, &map));
    assert_int_equal(p->death[map->value_buffer[mpl_graph_find(g, "b")]], 2);
    assert_int_equal(p->death[map->value_buffer[mpl_graph_find(g, "c")]], 4);
}

TEST(wrong_ones_are_refused)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"z = opaque(x)\n", "output 0"},
        {"z = opaque(x) to=f32 shape=[1]\n", "output 0"},
        {"z = opaque(x) to=f33 shape=[0]\n", "output 0"},
        {"z = opaque(x) to=f32 shape=[9,1,1,1,1,1,1,1,1,1]\n", "output 0"},
        {"z = opaque(x) to=f32 shape=[1,-1]\n", "output 0"},
        {"z = opaque(x) to=\"f32 f32\" shape=[0]\n", "more than"},
        {"z = opaque(x) to=f32 shape=[0,0]\n", "more than"},
        {"z = opaque(x) to=f32 shape=[0] over=[1]\n", "over=1 of 1"},
        {"z = opaque(x) to=f32 shape=[0] over=[-1]\n", "over=-1"},
        {"z = opaque(x) to=f32 shape=[0] reads=2\n", "reads=2 of 1"},
        {"z = opaque_view(x) to=f32 shape=[1,5]\n", "bytes of input 0"},
        {"z = opaque_update(x, s) to=f32 shape=[1,5] reads=1\n", "bytes of input 0"},
        {"n = opaque_update(a) to=f32 shape=[1,4] reads=1\nz = tanh(n)\n", "no weight"},
        {"n = opaque_update(s) to=f32 shape=[1,4] reads=1\nz = tanh(s)\n", "need not wait"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[400];
        mpl_graph *g = NULL;

        snprintf(text, sizeof text, INPUTS "%soutput z\n", wrong[i].text);
        assert_status(ctx, mpl_text_read_memory(ctx, "t", text, strlen(text), &g), MPL_EINPUT);
        if (strstr(ctx->message, wrong[i].why) == NULL)
            fail_msg("row %zu: %s", i, ctx->message);
    }
}

TESTS(bytes_and_pairs, an_update_reads_what_it_says, wrong_ones_are_refused)
