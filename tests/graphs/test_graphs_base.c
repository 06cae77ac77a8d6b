/* Lists of items by key in graphs/core: hand-made tables, and comparison with a search of every
 * item for every key. Fault: an item lost, in another key's list, or out of order. */
#include "tests/support/test.h"

#include <sys/wait.h>

#include "graphs/core/rng.h"

enum { MOST = 12 };

/* ---- by hand ---- */

typedef struct row {
    const char *name;
    uint32_t n_keys, n_items;
    uint32_t key[MOST], value[MOST]; /* value[0] MPL_NONE: no values */
    uint32_t begin[MOST], item[MOST];
} row;

static const row rows[] = {
    {"no keys", 0, 0, {0}, {MPL_NONE}, {0}, {0}},
    {"keys without items", 3, 0, {0}, {MPL_NONE}, {0, 0, 0, 0}, {0}},
    {"one each, upside down", 3, 3, {2, 1, 0}, {MPL_NONE}, {0, 1, 2, 3}, {2, 1, 0}},
    {"the first and the last key", 4, 4, {3, 0, 3, 0}, {MPL_NONE}, {0, 2, 2, 2, 4}, {1, 3, 0, 2}},
    {"all of one key", 2, 3, {1, 1, 1}, {MPL_NONE}, {0, 0, 3}, {0, 1, 2}},
    {"none is in no list", 2, 4, {MPL_NONE, 1, MPL_NONE, 0}, {MPL_NONE}, {0, 1, 2}, {3, 1}},
    ROW("values, equal and descending", 2, 5, {1, 0, 1, 1, 0}, {9, 9, 8, 9, 2}, {0, 2, 5},
        {9, 2, 9, 8, 9}),
};

TEST(by_hand)
{
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const row *t = &rows[r];
        owned_memory uint32_t *begin = NULL, *item = NULL;

        print_message("%s\n", t->name);
        assert_ok(ctx, mpl_lists_new(ctx, t->n_keys, t->n_items, t->key,
                                     t->value[0] != MPL_NONE ? t->value : NULL, &begin, &item));
        for (uint32_t k = 0; k <= t->n_keys; k++)
            assert_int_equal(begin[k], t->begin[k]);
        assert_int_equal(begin[t->n_keys + 1], t->begin[t->n_keys]);
        for (uint32_t i = 0; i < begin[t->n_keys]; i++)
            assert_int_equal(item[i], t->item[i]);
    }
}

/* ---- against a search ---- */

/* Random lists of keys, some without items, inverted and checked key by key against a search. */
TEST(turned)
{
    mpl_rng rng = mpl_rng_of(7);

    for (uint32_t round = 0; round < draws(2000); round++) {
        uint32_t n = (uint32_t)mpl_rng_below(&rng, 6),
                 n_keys = 1 + (uint32_t)mpl_rng_below(&rng, 5), at = 0;
        uint32_t from[7] = {0}, key[6 * 4], *begin = NULL, *item = NULL;

        for (uint32_t i = 0; i < n; i++) {
            uint32_t length = (uint32_t)mpl_rng_below(&rng, 5);

            from[i + 1] = from[i] + length;
            for (uint32_t k = from[i]; k < from[i + 1]; k++)
                key[k] =
                    mpl_rng_below(&rng, 8) == 0 ? MPL_NONE : (uint32_t)mpl_rng_below(&rng, n_keys);
        }
        assert_ok(ctx, mpl_lists_turn(ctx, n_keys, n, from, key, &begin, &item));
        for (uint32_t k = 0; k < n_keys; k++) {
            assert_int_equal(begin[k], at);
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = from[i]; j < from[i + 1]; j++)
                    if (key[j] == k)
                        assert_int_equal(item[at++], i);
        }
        assert_int_equal(begin[n_keys], at);
        mpl_free_each(ctx, begin, item);
    }
}

/* ---- invalid calls ---- */

TEST(refused)
{
    const uint32_t from[] = {0, 2, 3}, key[] = {1, 0, 1};
    owned_memory uint32_t *begin = NULL, *item = NULL;
    mpl_status st = MPL_EMEM;

    assert_status(ctx, mpl_lists_new(ctx, 1, (size_t)UINT32_MAX + 1, NULL, NULL, &begin, &item),
                  MPL_EMEM);
    assert_non_null(strstr(ctx->message, "4294967296 items"));
    assert_int_equal(ctx->n_allocs, 0);
    for (int64_t k = 0; st == MPL_EMEM; k++) {
        assert_null(begin);
        assert_null(item);
        assert_true(k < 10);
        ctx->fail_after = ctx->n_allocs + k;
        st = mpl_lists_turn(ctx, 2, 2, from, key, &begin, &item);
        assert_int_equal(ctx->n_live, st == MPL_OK ? 2 : 0);
    }
    assert_ok(ctx, st);
}

/* ---- keys that a file chooses ---- */

/* The authors' test vectors: key 0, 1, .. 15, text 0, 1, .. */
TEST(siphash_is_its_authors)
{
    static const struct {
        size_t n;
        uint64_t want;
    } vectors[] = {{0, UINT64_C(0x726fdb47dd0e0e31)}, {15, UINT64_C(0xa129ca6149be45e5)}};
    unsigned char text[16];
    uint64_t key[2];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)i;
    memcpy(key, text, sizeof key);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        assert_true(mpl_siphash(key, text, vectors[i].n) == vectors[i].want);
}

enum { CHOSEN = 20000, MASK = (1 << 16) - 1 };

/* Total probes for all names in a table with open addressing. */
static uint64_t steps_of(uint64_t hash(uint64_t, const void *, size_t), char (*name)[16])
{
    uint8_t *taken = calloc(MASK + 1, 1);
    uint64_t steps = 0;

    for (uint32_t i = 0; i < CHOSEN; i++) {
        size_t at = hash(MPL_HASH_SEED, name[i], strlen(name[i])) & MASK;

        for (; taken[at]; at = (at + 1) & MASK)
            steps++;
        taken[at] = 1;
    }
    free(taken);
    return steps;
}

/* Names that share one slot under FNV, found as an attacker would: two letters after each number
 * bring the hash near, and a third hits the slot. The tables' own hash must scatter them. */
TEST(chosen_names_do_not_meet)
{
    static char name[CHOSEN][16];
    uint32_t n = 0;

    for (uint32_t number = 0; n < CHOSEN; number++) {
        char text[16];
        int length = snprintf(text, sizeof text, "%u", number);

        for (int two = 0; two < 64 * 64 && n < CHOSEN; two++) {
            uint64_t x;

            text[length] = (char)('0' + two / 64), text[length + 1] = (char)('0' + two % 64);
            x = mpl_hash(MPL_HASH_SEED, text, (size_t)length + 2);
            if (((x ^ 0x1234) & MASK) >= 128 || ((x ^ 0x1234) & MASK) < ' ')
                continue;
            memcpy(name[n], text, (size_t)length + 2);
            name[n][length + 2] = (char)((x ^ 0x1234) & MASK);
            name[n++][length + 3] = '\0';
        }
    }
    assert_true(steps_of(mpl_hash, name) > (uint64_t)CHOSEN * CHOSEN / 4);
    assert_true(steps_of(mpl_table_hash, name) < 4 * (uint64_t)CHOSEN);
}

/* The table hash of a name in a separate process. */
static uint64_t hash_elsewhere(void)
{
    char line[64] = "", self[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    int ends[2], status;
    pid_t child;

    assert_true(n > 0);
    self[n] = '\0';
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        execl(self, self, "hash", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    assert_true(child > 0 && read(ends[0], line, sizeof line - 1) > 0);
    close(ends[0]);
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    return strtoull(line, NULL, 16);
}

/* A name's slot is unpredictable, also from another process. */
TEST(slots_are_a_secret)
{
    uint64_t here = mpl_table_hash(0, "memplan", 7), there = hash_elsewhere(),
             again = hash_elsewhere();

    assert_true(here == mpl_table_hash(0, "memplan", 7));
    assert_true(here != there && there != again && here != again);
}

/* Fault: a message that quotes the last one is lost or mixed with it; one of two lines. */
TEST(messages_quote_the_last)
{
    assert_int_equal(MPL_REFUSE(ctx, "a name of\ntwo lines\x1b"), MPL_EINPUT);
    assert_string_equal(ctx->message, "a name of?two lines?");
    assert_int_equal(MPL_ERROR(ctx, MPL_ELIMIT, "FILE:%d: %s", 3, ctx->message), MPL_ELIMIT);
    assert_string_equal(ctx->message, "FILE:3: a name of?two lines?");
    for (int i = 0; i < 100; i++)
        MPL_REFUSE(ctx, "FILE: %s", ctx->message);
    assert_int_equal(strlen(ctx->message), sizeof ctx->message - 1);
    MPL_REFUSE(ctx, "short");
    assert_string_equal(ctx->message, "short");
}

int main(int n_args, char **arg)
{
    if (n_args == 2 && strcmp(arg[1], "hash") == 0)
        return printf("%" PRIx64 "\n", mpl_table_hash(0, "memplan", 7)) < 0;
    return RUN_TESTS(NULL, NULL, by_hand, turned, refused, siphash_is_its_authors,
                     slots_are_a_secret, chosen_names_do_not_meet, messages_quote_the_last);
}
