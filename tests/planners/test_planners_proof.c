/* The writer of refutations: names of failed states against a plain list, and every kind of record
 * as text. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "planners/plan/proof.h"

enum { NAMES = 3000 };

/* Names that differ only in their high bits. */
static uint64_t name_of(uint32_t k)
{
    return k % 3 == 0 ? (uint64_t)k << 40 | 7 : (uint64_t)k * UINT64_C(0x9e3779b97f4a7c15);
}

/* Each state is found where it was last written; none before that, and none that the text no longer
 * holds. */
TEST(names_are_found)
{
    static size_t place[NAMES];
    mpl_proof proof = {.ctx = ctx};
    mpl_rng rng = mpl_rng_of(28);

    for (int round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < NAMES; k++) {
            uint32_t old = (uint32_t)mpl_rng_below(&rng, k + 1);

            assert_true(mpl_proof_known(&proof, name_of(k)) == SIZE_MAX);
            for (uint32_t again = 0; again < 2; again++) {
                uint32_t which = again == 0 ? k : old;

                place[which] = proof.n;
                mpl_proof_add(&proof, 'k', 0, 0, name_of(which));
                mpl_proof_remember(&proof, name_of(which), place[which]);
                mpl_proof_add(&proof, 'z', 1, 0, 0);
            }
            assert_int_equal(mpl_proof_known(&proof, name_of(old)), place[old]);
        }
        for (uint32_t k = 0; k < NAMES; k++)
            assert_int_equal(mpl_proof_known(&proof, name_of(k)), place[k]);
        /* another text is there now */
        proof.record[place[7]].kind = 'z', proof.record[place[8]].c ^= 1;
        proof.n = NAMES;
        for (uint32_t k = 0; k < NAMES; k++)
            assert_int_equal(mpl_proof_known(&proof, name_of(k)),
                             place[k] < NAMES && k != 7 && k != 8 ? place[k] : SIZE_MAX);
        proof.n = place[NAMES - 1]; /* the state that begins right after the text */
        assert_true(mpl_proof_known(&proof, name_of(NAMES - 1)) == SIZE_MAX);
        if (round == 0)
            mpl_proof_forget(&proof);
        assert_true(mpl_proof_known(&proof, name_of(NAMES + 1)) == SIZE_MAX);
    }
    assert_false(proof.failed || proof.full);
    mpl_proof_fini(&proof);
    assert_true(proof.ctx == ctx && proof.n == 0 && proof.n_used == 0);
    assert_true(mpl_proof_known(&proof, name_of(0)) == SIZE_MAX);
}

/* Sets and states without references are omitted and not counted. */
TEST(records_are_written)
{
    static const mpl_proof_record records[] = ROW(
        {'c', false, 5, 0, 0}, {'c', false, 6, 0, 0}, {'c', false, 7, 2, 0}, {'k', false, 0, 0, 1},
        {'c', false, 8, 4, 0}, {'k', false, 0, 0, 2}, {'c', false, 9, 6, 0}, {'b', false, 0, 3, 0},
        {'p', false, 5, 0, 0}, {'x', false, 8, 4, 0}, {'n', false, 0, 0, 0}, {'r', false, 6, 6, 77},
        {'s', false, 1, 2, 0}, {'z', false, 3, 0, 0}, {'k', false, 0, 0, 3}, {'m', false, 14, 0, 0},
        {'m', false, 5, 0, 0}, {'d', false, 4, 0, 0}, {'o', false, 10, 0, 0},
        {'u', false, 4294967294, 0, 0});
    mpl_proof proof = {.ctx = ctx};
    mpl_status st = MPL_EMEM;
    owned_memory char *text = NULL;

    for (size_t k = 0; k < sizeof records / sizeof *records; k++)
        mpl_proof_add(&proof, records[k].kind, records[k].a, records[k].b, records[k].c);
    for (int64_t k = 0; st == MPL_EMEM; k++) {
        ctx->fail_after = ctx->n_allocs + k;
        st = mpl_proof_text(&proof, &text);
        ctx->fail_after = -1;
        assert_true(k < 100 && (st == MPL_OK) == (text != NULL));
    }
    assert_ok(ctx, st);
    assert_string_equal(
        text, "c5,0 c6,0 c8,1 k c9,2 b0,3 p5 x8,1 n r6,2,77 s1,2 z3 k m1 m0 d4 o10 u4294967294");
    mpl_proof_fini(&proof);
}

TEST(writers_give_up)
{
    mpl_proof proof = {.ctx = ctx};

    ctx->fail_after = ctx->n_allocs;
    mpl_proof_add(&proof, 'k', 0, 0, 0);
    assert_true(proof.failed && !proof.full && proof.n == 0);
    ctx->fail_after = -1;
    mpl_proof_add(&proof, 'k', 0, 0, 0); /* a record is missing from now on */
    assert_true(proof.failed && proof.n == 0);
    proof.failed = false;
    ctx->fail_after = ctx->n_allocs;
    mpl_proof_remember(&proof, 1, 0);
    assert_true(proof.failed && proof.n_used == 0);
    ctx->fail_after = -1;
    proof = (mpl_proof){.ctx = ctx, .n = MPL_PROOF_MOST};
    mpl_proof_add(&proof, 'z', 0, 0, 0);
    assert_true(proof.failed && proof.full);
    proof.n = 0;
    mpl_proof_fini(&proof);
}

TESTS(names_are_found, records_are_written, writers_give_up)
