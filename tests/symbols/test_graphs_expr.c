/* Expressions of sizes: random trees against their own evaluation in 128 bits, intervals and proofs
 * against every point of small ranges, texts read back, known normal forms. */
#include "graphs/symbols/expr.h"
#include "tests/support/test.h"

#include "graphs/core/rng.h"

#define owned_exprs __attribute__((cleanup(free_owned_exprs))) mpl_exprs
__extension__ typedef __int128 wide;

static void free_owned_exprs(mpl_exprs **x)
{
    mpl_exprs_free(test_ctx, *x);
}

static mpl_exprs *no_exprs(mpl_ctx *ctx)
{
    mpl_exprs *x = NULL;

    assert_ok(ctx, mpl_exprs_new(ctx, &x));
    return x;
}

static mpl_expr read_expr(mpl_ctx *ctx, mpl_exprs *x, const char *text)
{
    mpl_expr e = 0;

    assert_ok(ctx, mpl_expr_read(ctx, x, text, &e));
    return e;
}

static void add_symbol(mpl_ctx *ctx, mpl_exprs *x, const char *name, int64_t first, int64_t last,
                       int64_t step)
{
    mpl_expr e;

    assert_ok(ctx, mpl_expr_symbol(ctx, x, name, first, last, step, &e));
}

/* ---- random trees ---- */

enum { N_NODES = 14 };
typedef enum kind { CONST, SYMBOL, ADD, SUB, MUL, MIN, MAX, FLOOR, CEIL, ALIGN, N_KINDS } kind;

typedef struct node {
    kind kind;
    int64_t number;
    uint32_t left, right; /* earlier nodes */
} node;

static wide quotient(wide a, int64_t by)
{
    return a / by - (a % by < 0 ? 1 : 0);
}

static wide value_of(const node *tree, uint32_t i, const int64_t *value)
{
    const node *t = &tree[i];
    wide a, b;

    if (t->kind == CONST)
        return t->number;
    if (t->kind == SYMBOL)
        return value[t->number];
    a = value_of(tree, t->left, value), b = value_of(tree, t->right, value);
    switch (t->kind) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case FLOOR:
        return quotient(a, t->number);
    case CEIL:
        return -quotient(-a, t->number);
    default:
        return -quotient(-a, t->number) * t->number;
    }
}

static mpl_status build(mpl_ctx *ctx, mpl_exprs *x, const node *t, const mpl_expr *made,
                        mpl_expr *out)
{
    switch (t->kind) {
    case CONST:
        return mpl_expr_const(ctx, x, t->number, out);
    case SYMBOL:
        return mpl_expr_of_symbol(ctx, x, (uint32_t)t->number, out);
    case ADD:
        return mpl_expr_add(ctx, x, made[t->left], made[t->right], out);
    case SUB:
        return mpl_expr_sub(ctx, x, made[t->left], made[t->right], out);
    case MUL:
        return mpl_expr_mul(ctx, x, made[t->left], made[t->right], out);
    case MIN:
        return mpl_expr_min(ctx, x, made[t->left], made[t->right], out);
    case MAX:
        return mpl_expr_max(ctx, x, made[t->left], made[t->right], out);
    case FLOOR:
        return mpl_expr_floor_div(ctx, x, made[t->left], t->number, out);
    case CEIL:
        return mpl_expr_ceil_div(ctx, x, made[t->left], t->number, out);
    default:
        return mpl_expr_align_up(ctx, x, made[t->left], t->number, out);
    }
}

static node draw_node(mpl_rng *rng, uint32_t i)
{
    node t = {.kind = (kind)mpl_rng_below(rng, i < 3 ? 2 : N_KINDS)};

    if (t.kind == MUL && mpl_rng_below(rng, 2) == 0)
        t.kind = ADD;
    t.number = t.kind == SYMBOL  ? (int64_t)mpl_rng_below(rng, 3)
               : t.kind == CONST ? (int64_t)mpl_rng_below(rng, 40) - 12
                                 : (int64_t)(1 + mpl_rng_below(rng, 9));
    if (t.kind >= ADD) {
        t.left = (uint32_t)mpl_rng_below(rng, i);
        t.right = (uint32_t)mpl_rng_below(rng, i);
    }
    return t;
}

/* Three small ranges, with steps, and often a relation between them. */
static mpl_exprs *draw_ranges(mpl_ctx *ctx, mpl_rng *rng)
{
    mpl_exprs *x = no_exprs(ctx);
    const char *const name[] = {"batch", "seq", "past.0"};
    mpl_expr sum, e;

    for (uint32_t i = 0; i < 3; i++) {
        int64_t step = 1 + (int64_t)mpl_rng_below(rng, 4),
                first = 1 + (int64_t)mpl_rng_below(rng, 6);

        add_symbol(ctx, x, name[i], first, first + (int64_t)mpl_rng_below(rng, 20), step);
    }
    if (mpl_rng_below(rng, 2) == 0) {
        assert_ok(ctx, mpl_expr_of_symbol(ctx, x, 0, &sum));
        assert_ok(ctx, mpl_expr_of_symbol(ctx, x, 1, &e));
        assert_ok(ctx, mpl_expr_add(ctx, x, sum, e, &sum));
        assert_ok(ctx, mpl_expr_const(ctx, x, 20, &e));
        assert_ok(ctx, mpl_expr_sub(ctx, x, sum, e, &sum));
        assert_ok(ctx, mpl_exprs_relation(ctx, x, sum));
    }
    return x;
}

/* The next point of the whole range; false after the last. */
static bool next_point(const mpl_exprs *x, int64_t *value)
{
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(x); i++) {
        const mpl_symbol *s = mpl_exprs_symbol(x, i);

        if (value[i] + s->step <= s->last) {
            value[i] += s->step;
            return true;
        }
        value[i] = s->first;
    }
    return false;
}

static void check_tree(mpl_exprs *x, const node *tree, const mpl_expr *made, uint32_t i,
                       uint64_t *proved)
{
    int64_t value[3], low = 0, high = 0, got, other;
    bool bounded = mpl_expr_bounds(x, made[i], NULL, &low, &high);
    bool below = mpl_expr_at_most(x, made[i], made[i - 1], NULL);

    *proved += below;
    for (uint32_t k = 0; k < 3; k++)
        value[k] = mpl_exprs_symbol(x, k)->first;
    do {
        wide want = value_of(tree, i, value);

        if (mpl_point_allowed(x, value)) {
            assert_true(mpl_expr_eval(x, made[i], value, &got));
            assert_true(got == want);
            assert_true(mpl_expr_eval(x, made[i - 1], value, &other));
            assert_true(!below || got <= other);
            assert_true(!bounded || (low <= got && got <= high));
        }
    } while (next_point(x, value));
}

TEST(random_trees_have_their_values_intervals_and_proofs)
{
    uint64_t proved = 0, written = 0;
    mpl_rng rng;

    mpl_rng_init(&rng, 1);
    for (uint32_t round = 0; round < draws(4000); round++) {
        owned_exprs *x = draw_ranges(ctx, &rng);
        node tree[N_NODES];
        mpl_expr made[N_NODES], again;

        for (uint32_t i = 0; i < N_NODES; i++) {
            mpl_status st;

            do {
                tree[i] = draw_node(&rng, i);
                st = build(ctx, x, &tree[i], made, &made[i]);
            } while (st == MPL_EINPUT); /* too many factors: another one */
            assert_ok(ctx, st);
        }
        for (uint32_t i = N_NODES - 3; i < N_NODES; i++) {
            owned_memory char *text = NULL;

            check_tree(x, tree, made, i, &proved);
            if (mpl_expr_write(ctx, x, made[i], &text) != MPL_OK)
                continue;
            written++;
            again = read_expr(ctx, x, text);
            if (again != made[i])
                fail_msg("%s is read as another expression", text);
        }
    }
    assert_in_range(proved, draws(4000) / 4, 3 * draws(4000));
    assert_true(written > 2 * draws(4000));
}

/* ---- known forms ---- */

static void assert_same(mpl_ctx *ctx, mpl_exprs *x, const char *a, const char *b)
{
    owned_memory char *left = NULL, *right = NULL;
    mpl_expr e = read_expr(ctx, x, a), f = read_expr(ctx, x, b);

    assert_ok(ctx, mpl_expr_write(ctx, x, e, &left));
    assert_ok(ctx, mpl_expr_write(ctx, x, f, &right));
    if (e != f)
        fail_msg("%s is %s, %s is %s", a, left, b, right);
}

static mpl_exprs *usual(mpl_ctx *ctx)
{
    mpl_exprs *x = no_exprs(ctx);

    add_symbol(ctx, x, "batch", 1, 64, 1);
    add_symbol(ctx, x, "image", 128, 512, 32);
    add_symbol(ctx, x, "seq", 1, 4096, 1);
    add_symbol(ctx, x, "past", 1, 4096, 1);
    assert_ok(ctx, mpl_exprs_relation(ctx, x, read_expr(ctx, x, "past + seq - 4096")));
    return x;
}

TEST(equal_sizes_are_equal_ids)
{
    owned_exprs *x = usual(ctx);

    assert_same(ctx, x, "floor((image+1)/2)", "floor(image/2)");
    assert_same(ctx, x, "floor((floor((image-1)/2)+1-1)/2)+1", "floor((image-1)/4)+1");
    assert_same(ctx, x, "floor((floor((seq-1)/2)-1)/3)", "floor((seq-3)/6)");
    assert_same(ctx, x, "floor((32*batch+5)/2)", "16*batch+2");
    assert_same(ctx, x, "floor(6*batch/9)", "floor((2*batch+0)/3)");
    assert_same(ctx, x, "(batch+seq)*(batch-seq)", "batch*batch-seq*seq");
    assert_same(ctx, x, "min(batch,seq)+max(batch,seq)", "batch+seq");
    assert_same(ctx, x, "max(2*batch,2*seq)", "2*max(seq,batch)");
    assert_same(ctx, x, "min(batch,64)", "batch");
    assert_same(ctx, x, "max(4*batch,3*image)", "3*image");
    assert_same(ctx, x, "min(past+seq,4096)", "past+seq");
    assert_same(ctx, x, "ceil(image/32)*32-image", "0");
    assert_same(ctx, x, "floor(batch/65)", "0");
}

TEST(what_needs_a_proof_is_proved)
{
    static const struct {
        const char *low, *high;
    } pair[] = {
        {"4*batch*seq", "4*batch*(past+seq)"},
        {"batch*seq*(past+seq)", "4096*batch*seq"},
        {"past*past + seq*past", "4096*past"},
        {"floor((seq+63)/64)*64", "seq+63"},
        {"seq", "floor((seq+63)/64)*64"},
        {"floor((seq+1)/2)*floor((seq+1)/2)", "seq*seq"},
        {"batch*floor((seq+3)/4)", "batch*seq"},
        {"max(batch,seq)", "batch*seq"},
        {"max(floor(seq/2),batch)", "seq+batch-1"},
        {"seq*seq - 60*seq", "4035*seq"},
        {"2*seq*batch", "seq*seq + batch*batch"},
    };
    owned_exprs *x = usual(ctx);

    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        mpl_expr a = read_expr(ctx, x, pair[i].low), b = read_expr(ctx, x, pair[i].high);

        if (i + 1 < sizeof pair / sizeof *pair && !mpl_expr_at_most(x, a, b, NULL))
            fail_msg("%s <= %s is not proved", pair[i].low, pair[i].high);
        assert_false(mpl_expr_at_most(x, b, a, NULL)); /* that is wrong at some point */
    }
}

/* Factors below zero turn what rises into what falls, and what a relation adds into what it takes.
 */
TEST(negative_factors_are_minded)
{
    owned_exprs *x = no_exprs(ctx);
    int64_t low, high, value[2], got;
    mpl_expr e;

    add_symbol(ctx, x, "a", 1, 19, 1);
    add_symbol(ctx, x, "b", 1, 19, 1);
    assert_ok(ctx, mpl_exprs_relation(ctx, x, read_expr(ctx, x, "a + b - 20")));
    assert_false(mpl_expr_at_most(x, 0, read_expr(ctx, x, "floor((a-20)/3)*(20-a-b)"), NULL));
    assert_true(mpl_expr_at_most(x, read_expr(ctx, x, "floor((a-20)/3)*(20-a-b)"), 0, NULL));
    e = read_expr(ctx, x, "floor((a-20)/3)*b + a");
    assert_true(mpl_expr_bounds(x, e, NULL, &low, &high));
    for (value[0] = 1; value[0] <= 19; value[0]++)
        for (value[1] = 1; value[1] <= 19; value[1]++) {
            assert_true(mpl_expr_eval(x, e, value, &got));
            assert_in_range(got - low, 0, high - low);
        }
}

TEST(division_without_a_rest)
{
    owned_exprs *x = usual(ctx);
    bool exact;
    mpl_expr out = 0;

    assert_ok(ctx, mpl_expr_exact_div(ctx, x, read_expr(ctx, x, "12*batch*seq*(past+seq)"),
                                      read_expr(ctx, x, "3*seq*batch"), &exact, &out));
    assert_true(exact);
    assert_int_equal(out, read_expr(ctx, x, "4*(past+seq)"));
    assert_ok(ctx, mpl_expr_exact_div(ctx, x, read_expr(ctx, x, "batch*seq+1"),
                                      read_expr(ctx, x, "batch"), &exact, &out));
    assert_false(exact);
    assert_status(ctx, mpl_expr_exact_div(ctx, x, out, 0, &exact, &out), MPL_EINPUT);
}

TEST(overflow_and_bad_text_are_refused)
{
    static const char *const wrong[] = {"batch +",
                                        "2**3",
                                        "floor(seq/0)",
                                        "floor(seq)",
                                        "heads",
                                        "9999999999999999999",
                                        "min(1)",
                                        "(batch",
                                        "batch)",
                                        "",
                                        "batch*seq*seq*seq*seq*seq*seq"};
    owned_exprs *x = usual(ctx);
    const int64_t value[] = {64, 128, 4096, 4096}, off[] = {1, 129, 1, 1};
    int64_t low, high;
    mpl_expr e = read_expr(ctx, x, "4000000000000000*seq*batch"), out;

    assert_false(mpl_expr_eval(x, e, value, &low) && low > 0);
    assert_false(mpl_expr_bounds(x, e, NULL, &low, &high));
    assert_false(mpl_expr_eval(x, read_expr(ctx, x, "image"), off, &low));
    assert_status(ctx, mpl_expr_mul(ctx, x, e, e, &out), MPL_EINPUT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_status(ctx, mpl_expr_read(ctx, x, wrong[i], &out), MPL_EINPUT);
    assert_status(ctx, mpl_expr_symbol(ctx, x, "batch", 1, 2, 1, &out), MPL_EINPUT);
    assert_status(ctx, mpl_expr_symbol(ctx, x, "zero", 0, 2, 1, &out), MPL_EINPUT);
    assert_status(ctx, mpl_expr_symbol(ctx, x, "empty", 3, 2, 1, &out), MPL_EINPUT);
    assert_status(ctx, mpl_expr_symbol(ctx, x, "max", 1, 2, 1, &out), MPL_EINPUT);
}

TEST(each_allocation_may_fail)
{
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_exprs *x = NULL;
        char *text = NULL;
        mpl_expr e;

        if ((st = mpl_exprs_new(ctx, &x)) == MPL_OK &&
            (st = mpl_expr_symbol(ctx, x, "seq", 8, 4096, 8, &e)) == MPL_OK &&
            (st = mpl_expr_read(ctx, x, "max(floor((seq+3)/16),seq*seq-900)", &e)) == MPL_OK)
            st = mpl_expr_write(ctx, x, e, &text);
        mpl_free(ctx, text);
        mpl_exprs_free(ctx, x);
    }
}

TESTS(random_trees_have_their_values_intervals_and_proofs, equal_sizes_are_equal_ids,
      what_needs_a_proof_is_proved, negative_factors_are_minded, division_without_a_rest,
      overflow_and_bad_text_are_refused, each_allocation_may_fail)
