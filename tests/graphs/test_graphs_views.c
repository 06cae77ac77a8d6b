/* test_graphs_views.c -- views and tensor_ssa: tables, overlaps and compositions checked element by
 * element, and programs against an interpreter that really writes in place.
 *
 *  test_graphs_views [PROGRAMS]      number of random programs (2,000) */
#include "tests/support/program.h"

#include "graphs/build/views.h"
#include "graphs/passes/passes.h"
#include "tests/support/interpret.h"

static uint64_t n_programs = 2000;

/* ---- view tuples ---- */

TEST(view_tuples_are_exact)
{
    static const struct {
        mpl_shape of;
        const char *index; /* applied in turn, separated by ';' */
        const char *tuple; /* NULL: there is none */
    } table[] = ROW(
        {{3, {3, 4, 5}}, "1;2", "([5],[1],30)"},
        {{3, {3, 4, 5}}, ":,1:4:2,:", "([3,2,5],[20,10,1],5)"},
        {{3, {3, 4, 5}}, "", "([3,4,5],[20,5,1],0)"},
        {{3, {3, 4, 5}}, "...", "([3,4,5],[20,5,1],0)"}, {{3, {3, 4, 5}}, "-1", "([4,5],[5,1],40)"},
        {{3, {3, 4, 5}}, "...,-1", "([3,4],[20,5],4)"}, {{3, {3, 4, 5}}, "1,2,3", "([],[],33)"},
        {{3, {3, 4, 5}}, ":,::-1", "([3,4,5],[20,-5,1],15)"},
        {{3, {3, 4, 5}}, "::-2,:,::2", "([2,4,3],[-40,5,2],40)"},
        {{3, {3, 4, 5}}, ":,None,:,0", "([3,1,4],[20,0,5],0)"},
        {{3, {3, 4, 5}}, ":,1:4:2;1,0", "([5],[1],25)"},
        {{3, {3, 4, 5}}, ":,1:4:2;:,::-1;:,:,1:", "([3,2,4],[20,-10,1],16)"},
        {{3, {3, 4, 5}}, "0:3:5", "([1,4,5],[20,5,1],0)"},
        {{3, {3, 4, 5}}, "2:0:-1,3:0:-2", "([2,2,5],[-20,-10,1],55)"},
        {{3, {3, 4, 5}}, "5:", "([0,4,5],[20,5,1],0)"},
        {{3, {3, 4, 5}}, ":-1,-3:-1", "([2,2,5],[20,5,1],5)"},
        {{3, {3, 4, 5}}, "1:2,1:2,1:2", "([1,1,1],[20,5,1],26)"},
        {{1, {10}}, "8:2:-3", "([2],[-3],8)"}, {{1, {10}}, "::3;::2", "([2],[6],0)"},
        {{1, {10}}, "::-1;::-1", "([10],[1],0)"}, {{1, {10}}, "2:8;1:-1;1:3", "([2],[1],4)"},
        {{1, {10}}, "-20:20", "([10],[1],0)"}, {{1, {10}}, "20:-20:-4", "([3],[-4],9)"},
        {{2, {8732, 4}}, ":,2:", "([8732,2],[4,1],2)"},
        {{4, {2, 3, 4, 5}}, "1,...,::2;0;-1", "([3],[2],75)"},
        {{4, {2, 3, 4, 5}}, "...,3,:;:,1", "([2,5],[60,1],35)"}, {{3, {3, 4, 5}}, "3", NULL},
        {{3, {3, 4, 5}}, "-4", NULL}, {{3, {3, 4, 5}}, "0,0,0,0", NULL},
        {{3, {3, 4, 5}}, "...,...", NULL}, {{3, {3, 4, 5}}, "::0", NULL},
        {{3, {3, 4, 5}}, "1,,2", NULL}, {{3, {3, 4, 5}}, "x", NULL}, {{1, {10}}, "1:2:3:4", NULL});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_strided v = mpl_strided_all(&table[i].of);
        char steps[80], *step = steps, tuple[400];
        mpl_status st = MPL_OK;

        snprintf(steps, sizeof steps, "%s", table[i].index);
        for (char *end; step != NULL && st == MPL_OK; step = end) {
            end = strchr(step, ';');
            if (end != NULL)
                *end++ = '\0';
            st = mpl_strided_index(ctx, &v, step);
        }
        if (st != (table[i].tuple != NULL ? MPL_OK : MPL_EINPUT))
            fail_msg("'%s': %s", table[i].index, mpl_status_name(st));
        if (st == MPL_OK && strcmp(mpl_strided_text(&v, tuple), table[i].tuple) != 0)
            fail_msg("'%s': %s where %s is right", table[i].index, tuple, table[i].tuple);
    }
}

TEST(reshapes_are_views_where_strides_allow)
{
    static const struct {
        mpl_strided from;
        mpl_shape to;
        const char *tuple; /* NULL: a copy */
    } table[] = ROW(
        {{{3, {3, 4, 5}}, {20, 5, 1}, 0}, {2, {12, 5}}, "([12,5],[5,1],0)"},
        {{{3, {3, 2, 5}}, {20, 10, 1}, 5}, {2, {6, 5}}, "([6,5],[10,1],5)"},
        {{{3, {3, 2, 5}}, {20, 10, 1}, 5}, {2, {3, 10}}, NULL},
        {{{3, {3, 2, 5}}, {20, 10, 1}, 5}, {4, {3, 1, 2, 5}}, "([3,1,2,5],[20,20,10,1],5)"},
        {{{2, {4, 3}}, {1, 4}, 0}, {1, {12}}, NULL},
        {{{2, {4, 6}}, {-6, -1}, 23}, {3, {2, 2, 6}}, "([2,2,6],[-12,-6,-1],23)"},
        {{{2, {4, 6}}, {-6, -1}, 23}, {1, {24}}, "([24],[-1],23)"},
        {{{2, {3, 3}}, {0, 0}, 7}, {1, {9}}, "([9],[0],7)"},
        {{{2, {3, 4}}, {0, 1}, 0}, {1, {12}}, NULL},
        {{{0, {0}}, {0}, 3}, {2, {1, 1}}, "([1,1],[1,1],3)"},
        {{{1, {6}}, {2}, 1}, {2, {2, 3}}, "([2,3],[6,2],1)"}, {{{1, {6}}, {2}, 1}, {1, {5}}, NULL});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_strided v = table[i].from;
        bool is_view = mpl_strided_reshape(&v, &table[i].to);
        char tuple[400];

        if (is_view != (table[i].tuple != NULL) ||
            (is_view && strcmp(mpl_strided_text(&v, tuple), table[i].tuple) != 0))
            fail_msg("row %zu: %s", i, is_view ? mpl_strided_text(&v, tuple) : "a copy");
    }
}

/* ---- boxes, element by element ---- */

enum { ROOT = 4096 };

/* The element at index `k` of a box in row-major order. */
static int64_t element(const mpl_strided *v, int64_t k)
{
    int64_t at = v->offset;

    for (uint32_t i = v->shape.rank; i-- > 0;) {
        at += k % v->shape.dim[i] * v->stride[i];
        k /= v->shape.dim[i];
    }
    return at;
}

/* A box within [0, ROOT). */
static mpl_strided random_box(mpl_rng *rng, uint32_t most_rank)
{
    mpl_strided v = {.shape = {.rank = (uint32_t)program_draw(rng, most_rank + 1)}};
    int64_t low = 0, high = 0;

    for (uint32_t i = 0; i < v.shape.rank; i++) {
        static const int64_t common[] = {1, 2, 3, 4, 6, 8, 12, 24};

        v.shape.dim[i] = program_draw(rng, 20) == 0 ? 0 : 1 + program_draw(rng, 5);
        v.stride[i] =
            program_draw(rng, 3) == 0 ? program_draw(rng, 40) : common[program_draw(rng, 8)];
        v.stride[i] *= program_draw(rng, 4) == 0 ? -1 : 1;
        *(v.stride[i] < 0 ? &low : &high) +=
            v.shape.dim[i] > 0 ? (v.shape.dim[i] - 1) * v.stride[i] : 0;
    }
    v.offset = -low + program_draw(rng, 100);
    assert_true(v.offset + high < ROOT);
    return v;
}

TEST(boxes_meet_where_elements_do)
{
    static uint32_t seen[ROOT];
    mpl_rng rng = mpl_rng_of(7);
    uint32_t n[3] = {0}, n_twice = 0, n_told = 0;

    for (uint32_t i = 1; i <= 20000; i++) {
        mpl_strided a = random_box(&rng, 4), b = random_box(&rng, 4);
        bool meet = false, twice = false;
        mpl_meeting found = mpl_strided_meet(&a, &b, i % 5 == 0 ? 2 : 0);
        char text[2][400];

        for (int64_t k = 0; k < mpl_count(&a.shape); k++) {
            twice = twice || seen[element(&a, k)] == i;
            seen[element(&a, k)] = i;
        }
        for (int64_t k = 0; k < mpl_count(&b.shape); k++)
            meet = meet || seen[element(&b, k)] == i;
        n[found]++;
        if (found != MPL_UNDECIDED && (found == MPL_MEET) != meet)
            fail_msg("%s and %s: %s", mpl_strided_text(&a, text[0]), mpl_strided_text(&b, text[1]),
                     meet ? "they meet" : "they are apart");
        assert_false(found == MPL_UNDECIDED && i % 5 != 0); /* always decided */
        assert_false(twice && mpl_strided_distinct(&a));
        n_twice += !twice;
        n_told += mpl_strided_distinct(&a);
    }
    print_message(
        "boxes: %u apart, %u meet, %u not decided within 2 steps; of %u without an element twice "
        "%u are told\n",
        n[MPL_APART], n[MPL_MEET], n[MPL_UNDECIDED], n_twice, n_told);
    assert_true(often(n[MPL_APART] > 5000 && n[MPL_MEET] > 2000 && n[MPL_UNDECIDED] > 0));
}

TEST(compositions_give_the_same_elements)
{
    mpl_rng rng = mpl_rng_of(11);
    uint32_t n_made = 0, n_refused = 0;

    for (uint32_t i = 0; i < draws(20000); i++) {
        mpl_strided outer = random_box(&rng, 3), inner = mpl_strided_all(&outer.shape), both;
        char index[200];
        bool any = program_draw(&rng, 3) == 0; /* any strides, or an index, which always composes */

        if (any) {
            inner = random_box(&rng, 2);
            inner.offset %= 8;
        } else {
            program_index(&rng, &outer.shape, index);
            assert_ok(ctx, mpl_strided_index(ctx, &inner, index));
        }
        if (!mpl_strided_compose(&outer, &inner, &both)) {
            assert_true(any);
            n_refused++;
            continue;
        }
        n_made++;
        assert_true(mpl_shape_equal(&both.shape, &inner.shape));
        for (int64_t k = 0; k < mpl_count(&both.shape); k++)
            assert_int_equal(element(&both, k), element(&outer, element(&inner, k)));
    }
    print_message("compositions: %u made, %u refused\n", n_made, n_refused);
    assert_true(often(n_made > 12000 && n_refused > 1000));
}

/* ---- programs ---- */

static mpl_graph *read_text(mpl_ctx *ctx, const char *text)
{
    mpl_graph *g = text_graph(ctx, text);

    return g;
}

typedef struct steps {
    mpl_ctx *ctx;
    mpl_graph *g[MPL_SSA_STEPS];
} steps;

static mpl_status keep_step(void *arg, uint32_t step, const mpl_graph *g)
{
    steps *s = arg;
    char *text = NULL;
    size_t size;

    assert_ok(s->ctx, mpl_text_write_memory(s->ctx, g, &text, &size));
    assert_ok(s->ctx, mpl_text_read_memory(s->ctx, "step", text, size, &s->g[step]));
    mpl_free(s->ctx, text);
    return MPL_OK;
}

static void free_steps(steps *s)
{
    for (uint32_t i = 0; i < MPL_SSA_STEPS; i++)
        mpl_graph_free(s->ctx, s->g[i]);
}

static void fill(mpl_type type, void *data, int64_t n, uint64_t seed)
{
    mpl_rng rng = mpl_rng_of(seed);

    for (int64_t i = 0; i < n; i++)
        mpl_put(type, data, i, (double)program_draw(&rng, 41) / 4 - 5);
}

/* NULL if graph `ssa` gives the program's outputs bit for bit, else the output that differs. */
static const char *difference(mpl_ctx *ctx, const mpl_graph *program, const mpl_graph *ssa)
{
    program_run want = program_begin(ctx, program);
    interpreter got = interpret_begin(ctx, ssa);
    const char *differs = NULL;

    assert_int_equal(program->n_inputs, ssa->n_inputs);
    for (uint32_t i = 0; i < program->n_inputs; i++) {
        mpl_value v = program->input[i];

        fill((mpl_type)program->value_type[v], want.memory[v], program_count(&want, v), i);
        memcpy(got.data[ssa->input[i]], want.memory[v], program->value_bytes[v]);
    }
    for (mpl_op op = 0; op < program->n_ops; op++)
        program_op(&want, op);
    assert_ok(ctx, interpret(&got));
    assert_int_equal(program->n_outputs, ssa->n_outputs);
    for (uint32_t i = 0; i < program->n_outputs; i++) {
        mpl_value v = program->output[i], w = ssa->output[i];
        void *data = program_read(&want, v);

        assert_true(mpl_shape_equal(&program->value_shape[v], &ssa->value_shape[w]));
        if (memcmp(data, got.data[w], program->value_bytes[v]) != 0)
            differs = program->value_name[v];
        free(data);
    }
    program_end(&want);
    interpret_end(&got);
    return differs;
}

/* The example of the proposal. */
TEST(the_example_needs_one_assign)
{
    mpl_ssa_facts facts;
    owned_graph *program, *ssa = NULL;
    steps s = {.ctx = ctx};
    mpl_op assign = MPL_NONE, add = MPL_NONE;

    program = read_text(ctx, "program example\ninput A f32 [3,4]\nweight two f32 [] = splat 2\n"
                             "B = view(A) index=\"1,:\"\nC = view(A) index=\"2,:\"\nD = add(B, C)\n"
                             "add_into(C, two)\nE = add(A, D)\noutput E\n");
    assert_ok(ctx, mpl_tensor_ssa(ctx, program, MPL_SSA_FULL, &(mpl_ssa_watch){keep_step, &s},
                                  &facts, &ssa));
    for (uint32_t i = 0; i < MPL_SSA_STEPS; i++)
        assert_null(difference(ctx, program, s.g[i]));
    assert_null(difference(ctx, program, ssa));
    assert_int_equal(count_kind(s.g[0], MPL_OP_access), 3); /* B, C, and B again, passed down */
    assert_int_equal(count_kind(s.g[0], MPL_OP_assign), 1);
    for (uint32_t i = 1; i < 3; i++) {
        const mpl_graph *g = s.g[i];

        assert_int_equal(count_kind(g, MPL_OP_access), 2); /* B and C, each read */
        assert_int_equal(count_kind(g, MPL_OP_assign), 1);
        for (mpl_op op = 0; op < g->n_ops; op++) {
            assign = g->op_kind[op] == MPL_OP_assign ? op : assign;
            add = g->op_kind[op] == MPL_OP_add ? op : add; /* the last one: E */
        }
        for (mpl_op op = 0; op < g->n_ops; op++)
            if (g->op_kind[op] == MPL_OP_access) {
                assert_true(op < assign);
                assert_true(g->value_use_begin[g->op_out[g->op_out_begin[op]] + 1] >
                            g->value_use_begin[g->op_out[g->op_out_begin[op]]]);
            }
        assert_int_equal(g->op_in[g->op_in_begin[assign]], mpl_graph_find(g, "A"));
        assert_int_equal(mpl_attr_int(g, assign, MPL_ATTR_offset, -1), 8);
        assert_int_equal(g->op_in[g->op_in_begin[add]], g->op_out[g->op_out_begin[assign]]);
    }
    assert_int_equal(count_kind(ssa, MPL_OP_access), 0); /* all read by fused operations */
    assert_int_equal(count_kind(ssa, MPL_OP_fused), 2);
    free_steps(&s);
}

TEST(random_programs_give_what_they_give_in_place)
{
    mpl_ssa_facts facts;
    uint64_t n = 0, n_access[MPL_SSA_STEPS] = {0}, n_assign[MPL_SSA_STEPS] = {0}, n_fused = 0,
             met[3] = {0};

    for (uint64_t seed = 1; n < n_programs; seed++) {
        owned_graph *program = random_program(ctx, seed);
        mpl_graph *ssa = NULL;

        if (program == NULL)
            continue;
        n++;
        for (int level = 0; level < MPL_N_SSA_LEVELS; level++) {
            steps s = {.ctx = ctx};
            const char *bad;

            assert_ok(ctx,
                      mpl_tensor_ssa(ctx, program, (mpl_ssa_level)level,
                                     level == MPL_SSA_FULL ? &(mpl_ssa_watch){keep_step, &s} : NULL,
                                     level == MPL_SSA_FULL ? &facts : NULL, &ssa));
            for (uint32_t i = 0; i < MPL_SSA_STEPS && level == MPL_SSA_FULL; i++)
                if ((bad = difference(ctx, program, s.g[i])) != NULL)
                    fail_msg("program %" PRIu64 ": '%s' differs once %s", seed, bad,
                             mpl_ssa_step_name[i]);
            if ((bad = difference(ctx, program, ssa)) != NULL)
                fail_msg("program %" PRIu64 ", level %s: '%s' differs", seed,
                         mpl_ssa_level_name[level], bad);
            free_steps(&s);
            mpl_graph_free(ctx, ssa);
            ssa = NULL;
        }
        for (uint32_t i = 0; i < MPL_SSA_STEPS; i++) {
            n_access[i] += facts.n_access[i];
            n_assign[i] += facts.n_assign[i];
        }
        n_fused += facts.n_fused[3];
        met[0] += facts.n_apart, met[1] += facts.n_meet, met[2] += facts.n_undecided;
    }
    for (uint32_t i = 0; i < MPL_SSA_STEPS; i++)
        print_message("%-10s %" PRIu64 " accesses, %" PRIu64 " assigns\n", mpl_ssa_step_name[i],
                      n_access[i], n_assign[i]);
    print_message("%" PRIu64 " programs, %" PRIu64 " fused operations; boxes: %" PRIu64
                  " apart, %" PRIu64 " meet, %" PRIu64 " not decided\n",
                  n, n_fused, met[0], met[1], met[2]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        n_programs = strtoull(argv[1], NULL, 10);
    return RUN_TESTS(NULL, NULL, view_tuples_are_exact, reshapes_are_views_where_strides_allow,
                     boxes_meet_where_elements_do, compositions_give_the_same_elements,
                     the_example_needs_one_assign, random_programs_give_what_they_give_in_place);
}
