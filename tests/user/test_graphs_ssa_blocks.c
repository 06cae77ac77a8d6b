/* test_graphs_ssa_blocks.c -- TensorSSA of programs with loops and branches. Each is held to the
 * same program with its loops unrolled and its branches taken, run by the interpreter of straight
 * programs (tests/support/program.h), which knows neither blocks nor strides. Fault: a write in a
 * block that is lost behind it, seen too early, or carried in the wrong place. */
#include <math.h>

#include "graphs/passes/passes.h"
#include "tests/support/interpret.h"
#include "tests/support/program.h"

static mpl_graph *read_text(mpl_ctx *ctx, const char *text)
{
    mpl_graph *g = NULL;

    if (mpl_text_read_memory(ctx, "test", text, strlen(text), &g) != MPL_OK)
        fail_msg("%s in\n%s", ctx->message, text);
    return g;
}

static float element(uint64_t v, int64_t i)
{
    return (float)((double)((v * 31 + (uint64_t)i * 17) % 64) / 16 - 2);
}

static bool equal(const float *a, const float *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* Outputs of the blocked program in SSA against those of the straight one, bit for bit. */
static void check(mpl_ctx *ctx, const char *blocked, const char *straight)
{
    owned_graph *plain = read_text(ctx, straight), *program = read_text(ctx, blocked);
    program_run want = program_begin(ctx, plain);

    for (uint32_t i = 0; i < plain->n_inputs; i++)
        for (int64_t k = 0; k < program_count(&want, plain->input[i]); k++)
            ((float *)want.memory[plain->input[i]])[k] = element(i, k);
    for (mpl_op op = 0; op < plain->n_ops; op++)
        program_op(&want, op);
    for (int level = 0; level < MPL_N_SSA_LEVELS; level++) {
        owned_graph *g = NULL;
        interpreter it;
        mpl_ssa_facts facts;

        assert_ok(ctx, mpl_tensor_ssa(ctx, program, (mpl_ssa_level)level, NULL, &facts, &g));
        assert_true(!g->program && mpl_graph_ok(g));
        it = interpret_begin(ctx, g);
        for (uint32_t i = 0; i < g->n_inputs; i++)
            for (uint64_t k = 0; k < g->value_bytes[g->input[i]] / 4; k++)
                if (g->value_type[g->input[i]] == MPL_TYPE_f32)
                    ((float *)it.data[g->input[i]])[k] = element(i, (int64_t)k);
                else
                    ((int32_t *)it.data[g->input[i]])[k] = 0;
        assert_ok(ctx, interpret(&it));
        for (uint32_t i = 0; i < plain->n_outputs; i++) {
            void *made = program_read(&want, plain->output[i]);

            if (!equal(made, it.data[g->output[i]], g->value_bytes[g->output[i]] / 4))
                fail_msg("output %u, %s, differs in\n%s", i, mpl_ssa_level_name[level], blocked);
            free(made);
        }
        interpret_end(&it);
    }
    program_end(&want);
}

/* ---- random programs, told twice ---- */

enum { N_SHAPES = 3, MOST = 400, MOST_BLOCKS = 40 };

typedef struct ref {
    int block, id; /* block -1: of outside */
} ref;

typedef enum { COMPUTE, WRITE, VIEW, LOOP, BRANCH } what;

typedef struct statement {
    what kind;
    int shape, op, id; /* id: of the value that it makes; -1: none */
    ref x, y;
    int first, n, block, times; /* of a loop or branch: its statements; its number; rounds, index */
    ref init, result;           /* carried, or of the branch taken; of shape 1 */
    int param;
    int others; /* BRANCH: statements of the branch not taken, right behind the first */
} statement;

typedef struct teller {
    mpl_rng rng;
    statement all[MOST];
    int n, n_ids, n_blocks, depth;
    ref seen[N_SHAPES][MOST];
    int n_seen[N_SHAPES];
    int instance[MOST_BLOCKS], n_instances;
    char text[1 << 21];
    size_t length;
    bool straight;
} teller;

static const char *const outer[N_SHAPES][8] = {
    {"a", "b", "c", "a_back"},
    {"a_row", "b_row", "c_row", "a_last", "back_row"},
    {"a_part", "b_part", "back_part"},
};

static const char head[] =
    "input x f32 [4,6]\ninput y f32 [4,6]\nweight half f32 [] = splat 0.5\n"
    "weight one f32 [] = splat 1\na = neg(x)\nb = add(x, y)\nc = mul(y, half)\n"
    "a_back = view(a) index=\"::-1,:\"\na_row = view(a) index=\"1,:\"\n"
    "b_row = view(b) index=\"0,:\"\nc_row = view(c) index=\"3,::-1\"\n"
    "a_last = view(a) index=\"-1,:\"\nback_row = view(a_back) index=\"2,:\"\n"
    "a_part = view(a) index=\"1:3,::2\"\nb_part = view(b) index=\"::3,1::2\"\n"
    "back_part = view(a_back) index=\":2,:3\"\n";

static void __attribute__((format(printf, 2, 3))) tell(teller *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    t->length += (size_t)vsnprintf(t->text + t->length, sizeof t->text - t->length, format, args);
    va_end(args);
    assert_true(t->length < sizeof t->text);
}

static const char *named(const teller *t, int shape, ref r, char *text)
{
    if (r.block < 0)
        return outer[shape][r.id];
    sprintf(text, "t%d", r.id);
    if (t->straight)
        sprintf(text + strlen(text), "_%d", t->instance[r.block]);
    return text;
}

static ref any(teller *t, int shape)
{
    return t->seen[shape][program_draw(&t->rng, t->n_seen[shape])];
}

static void see(teller *t, int shape, ref r)
{
    t->seen[shape][t->n_seen[shape]++] = r;
}

static void draw_block(teller *t, int block, int *first, int *n);

/* A loop or branch; its statements are drawn at the end of the list, then it is put before them. */
static void draw_owner(teller *t, int block)
{
    statement *s = &t->all[t->n++];
    int kept[N_SHAPES];

    *s = (statement){.kind = program_draw(&t->rng, 2) ? LOOP : BRANCH, .block = t->n_blocks++};
    s->times = (int)program_draw(&t->rng, s->kind == LOOP ? 4 : 2);
    s->id = t->n_ids++;
    s->init = any(t, 1);
    s->param = t->n_ids++;
    memcpy(kept, t->n_seen, sizeof kept);
    if (s->kind == LOOP)
        see(t, 1, (ref){s->block, s->param});
    t->depth++;
    draw_block(t, s->block, &s->first, &s->n);
    t->depth--;
    s->result = any(t, 1);
    memcpy(t->n_seen, kept, sizeof kept);
    see(t, 1, (ref){block, s->id});
}

static void draw_statement(teller *t, int block)
{
    statement *s = &t->all[t->n];
    int shape = (int)program_draw(&t->rng, N_SHAPES);

    if (t->depth < 3 && t->n_blocks < MOST_BLOCKS - 1 && program_draw(&t->rng, 4) == 0) {
        draw_owner(t, block);
        return;
    }
    t->n++;
    *s = (statement){.kind = program_draw(&t->rng, 3) == 0 ? COMPUTE : WRITE,
                     .shape = shape,
                     .op = (int)program_draw(&t->rng, 4),
                     .x = any(t, shape),
                     .y = any(t, shape)};
    if (s->kind == WRITE)
        return;
    s->id = t->n_ids++;
    see(t, shape, (ref){block, s->id});
    if (shape != 0)
        return;
    t->all[t->n++] = (statement){.kind = VIEW, .x = {block, s->id}, .id = t->n_ids++};
    see(t, 1, (ref){block, t->n_ids - 1});
}

static void draw_block(teller *t, int block, int *first, int *n)
{
    *first = t->n;
    for (int64_t i = 1 + program_draw(&t->rng, 4); i > 0 && t->n < MOST - 40; i--)
        draw_statement(t, block);
    *n = t->n - *first;
}

static void tell_list(teller *t, int first, int n, int block);

/* Once for each round, or for the branch that is taken; values are copied by a product with 1. */
static void tell_straight(teller *t, const statement *s, int block)
{
    char a[32];
    int times = s->kind == LOOP ? s->times : s->times == 0;

    tell(t, "w%d_0 = mul(%s, one)\n", t->n_instances, named(t, 1, s->init, a));
    int from = t->n_instances, rounds = 0;

    t->n_instances += 5;
    for (; rounds < times; rounds++) {
        t->instance[s->block] = t->n_instances++;
        if (s->kind == LOOP)
            tell(t, "t%d_%d = mul(w%d_%d, one)\n", s->param, t->instance[s->block], from, rounds);
        tell_list(t, s->first, s->n, s->block);
        tell(t, "w%d_%d = mul(%s, one)\n", from, rounds + 1, named(t, 1, s->result, a));
    }
    tell(t, "%s = mul(w%d_%d, one)\n", named(t, 1, (ref){block, s->id}, a), from, rounds);
}

static void tell_blocked(teller *t, const statement *s)
{
    char a[32], b[32];

    if (s->kind == BRANCH)
        tell(t, "weight i%d i64 [] = data %d\n", s->id, s->times);
    tell(t, "block b%d\n", s->block);
    if (s->kind == LOOP)
        tell(t, "param r%d i64 []\nparam t%d f32 [6]\n", s->block, s->param);
    tell_list(t, s->first, s->n, s->block);
    tell(t, "yield %s%s\n", s->kind == LOOP ? "_, " : "", named(t, 1, s->result, a));
    if (s->kind == LOOP)
        tell(t, "t%d = while b%d(_, _, %s) carried=1 trips=%d\n", s->id, s->block,
             named(t, 1, s->init, b), s->times);
    else
        tell(t, "block e%d\nu%d = mul(%s, one)\nyield u%d\nt%d = case b%d, e%d(i%d)\n", s->block,
             s->id, named(t, 1, s->init, b), s->id, s->id, s->block, s->block, s->id);
}

static void tell_list(teller *t, int first, int n, int block)
{
    static const char *const op[] = {"add", "sub", "mul", "min"};
    char a[32], b[32], c[32];

    for (int i = first; i < first + n; i++) {
        const statement *s = &t->all[i];

        if (s->kind == WRITE)
            tell(t, "%s_into(%s, %s)\n", op[s->op], named(t, s->shape, s->x, a),
                 s->op == 2 ? "half" : named(t, s->shape, s->y, b));
        else if (s->kind == COMPUTE)
            tell(t, "%s = %s(%s, %s)\n", named(t, s->shape, (ref){block, s->id}, c), op[s->op],
                 named(t, s->shape, s->x, a), named(t, s->shape, s->y, b));
        else if (s->kind == VIEW)
            tell(t, "%s = view(%s) index=\"2,:\"\n", named(t, 1, (ref){block, s->id}, c),
                 named(t, 0, s->x, a));
        else {
            if (t->straight)
                tell_straight(t, s, block);
            else
                tell_blocked(t, s);
            i += s->n; /* its statements stand behind it */
        }
    }
}

static void tell_program(teller *t, bool straight, int first, int n, char **text)
{
    t->straight = straight;
    t->length = 0;
    t->n_instances = 1;
    tell(t, "program random\n%s", head);
    tell_list(t, first, n, 0);
    tell(t, "output a\noutput b\noutput c\n");
    *text = strdup(t->text);
}

TEST(random_programs)
{
    uint64_t n = draws(400);
    uint32_t n_blocks = 0;

    for (uint64_t seed = 1; seed <= n; seed++) {
        teller *t = calloc(1, sizeof *t);
        char *blocked, *straight;
        int first, count;

        t->rng = mpl_rng_of(seed);
        t->n_blocks = 1;
        for (int shape = 0; shape < N_SHAPES; shape++)
            for (int i = 0; outer[shape][i] != NULL; i++)
                see(t, shape, (ref){-1, i});
        draw_block(t, 0, &first, &count);
        draw_owner(t, 0);
        tell_program(t, false, 0, t->n, &blocked);
        tell_program(t, true, 0, t->n, &straight);
        n_blocks += (uint32_t)t->n_blocks - 1;
        check(ctx, blocked, straight);
        free(blocked);
        free(straight);
        free(t);
    }
    assert_true(n_blocks > n);
}

/* ---- by hand ---- */

static const struct {
    const char *blocked, *straight;
} by_hand[] = {
    {"block b\nparam i i64 []\nadd_into(row, one)\nyield _\nwhile b(_, _) trips=3\noutput u\n",
     "add_into(row, one)\nadd_into(row, one)\nadd_into(row, one)\noutput u\n"},
    {"block b\nparam i i64 []\nadd_into(row, one)\nyield _\nwhile b(_, _) trips=0\noutput u\n",
     "output u\n"},
    /* nothing outside of it changes: the loop goes */
    {"block b\nparam i i64 []\nt = neg(u)\nadd_into(t, one)\nyield _\nwhile b(_, _) trips=3\n"
     "output u\n",
     "output u\n"},
    /* rows, and a slice that is written: the scanned value stays */
    {"block b\nparam i i64 []\nparam s f32 [4]\nadd_into(s, one)\nadd_into(row, s)\nyield _, s\n"
     "r = while b(_, _, u)\noutput u\noutput r\n",
     "v = mul(u, one)\nv0 = view(v) index=\"0,:\"\nv1 = view(v) index=\"1,:\"\nadd_into(v, one)\n"
     "add_into(row, v0)\nadd_into(row, v1)\noutput u\noutput v\n"},
    /* a branch of two: the other one writes elsewhere */
    {"weight k i64 [] = data 1\nblock t\nneg_into(u)\nyield\nblock e\nadd_into(row, row)\nyield\n"
     "case t, e(k)\noutput u\n",
     "add_into(row, row)\noutput u\n"},
    /* no branch */
    {"weight k i64 [] = data -1\nblock t\nneg_into(u)\nyield\ncase t(k)\noutput u\n", "output u\n"},
};

TEST(programs_by_hand)
{
    static const char top[] = "program p\ninput x f32 [2,4]\nweight one f32 [] = splat 1\n"
                              "u = relu(x)\nrow = view(u) index=\"1,:\"\n";
    char blocked[2000], straight[2000];

    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) {
        snprintf(blocked, sizeof blocked, "%s%s", top, by_hand[i].blocked);
        snprintf(straight, sizeof straight, "%s%s", top, by_hand[i].straight);
        check(ctx, blocked, straight);
    }
}

/* The zoo's loop against its steps one after the other; the loop carries one value. */
TEST(zoo)
{
    owned_graph *loop = NULL, *steps = NULL;
    interpreter a, b;
    uint32_t n_loops = 0;

    assert_ok(ctx, mpl_zoo_build(ctx, "stencil:side=9,steps=5,form=while", &loop));
    assert_ok(ctx, mpl_zoo_build(ctx, "stencil:side=9,steps=5", &steps));
    a = interpret_begin(ctx, loop);
    b = interpret_begin(ctx, steps);
    for (int64_t k = 0; k < 81; k++)
        ((float *)a.data[loop->input[0]])[k] = ((float *)b.data[steps->input[0]])[k] =
            element(1, k);
    assert_ok(ctx, interpret(&a));
    assert_ok(ctx, interpret(&b));
    assert_memory_equal(a.data[loop->output[0]], b.data[steps->output[0]], 81 * sizeof(float));
    for (mpl_op op = 0; op < loop->n_ops; op++)
        if (loop->op_kind[op] == MPL_OP_while) {
            n_loops++;
            assert_int_equal(mpl_n_carried(loop, op), 1);
        }
    assert_int_equal(n_loops, 1);
    interpret_end(&a);
    interpret_end(&b);
}

TEST(what_is_refused)
{
    static const char text[] =
        "program p\ninput x f32 [4]\ninput c bool []\nu = relu(x)\nblock b\nparam i i64 []\n"
        "neg_into(u)\nexit_unless(c)\nyield _\nwhile b(_, _) trips=3\noutput u\n";
    owned_graph *program = read_text(ctx, text), *g = NULL;

    assert_int_equal(mpl_tensor_ssa(ctx, program, MPL_SSA_FULL, NULL, NULL, &g), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "exit_unless is for graphs"));
}

TESTS(programs_by_hand, random_programs, zoo, what_is_refused)
