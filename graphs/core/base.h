/* base.h -- what every room uses: statuses, the context, checked memory, checked byte arithmetic.
 *
 * One error idiom everywhere: functions return mpl_status, keep it in `st`, and clean up at `out:`.
 * The message is written once, where the fault is seen (MPL_FAIL), and passed on by status. */
#ifndef MPL_BASE_H
#define MPL_BASE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef enum mpl_status {
    MPL_OK,       /* done */
    MPL_EMEM,     /* host memory ran out */
    MPL_EINPUT,   /* a file or an argument is wrong; the user can fix it */
    MPL_ELIMIT,   /* the budget ended before any answer */
    MPL_EINVALID, /* the verifier refused a plan, or an output differed */
    MPL_EUNAVAIL, /* not built in, no device, or the problem lacks what this planner needs */
} mpl_status;

/* State of one caller: the message of the last failure, and the allocator's fault injection.
 * Zero-initialised but for fail_after = -1 (mpl_ctx_init). One thread at a time. */
typedef struct mpl_ctx {
    char message[512]; /* of the last failure, without the leading "memplan: " */
    const char *file;  /* where in our code it was raised; for debugging only */
    int line;
    int64_t fail_after; /* the allocation with this index fails; < 0: none does */
    int64_t n_allocs;   /* allocations asked for so far */
    int64_t n_live;     /* allocations not yet freed */
} mpl_ctx;

void mpl_ctx_init(mpl_ctx *ctx);

/* Writes the message of a failure into ctx, a line without control characters, and returns `code`.
 * Use MPL_FAIL. */
mpl_status mpl_fail(mpl_ctx *ctx, mpl_status code, const char *file, int line, const char *format,
                    ...) __attribute__((format(printf, 5, 6)));

/* "ok", "out of memory", "bad input", ... */
const char *mpl_status_name(mpl_status st);

/* Exit status of a program that ends with `st` (0 good, 1 refused or differing, 2 bad input, 3
 * limit, 4 unavailable; host memory run out counts as 3). */
int mpl_status_exit(mpl_status st);

#define MPL_TRY(call)                                                                              \
    do {                                                                                           \
        if ((st = (call)) != MPL_OK)                                                               \
            goto out;                                                                              \
    } while (0)
#define MPL_FAIL(ctx, code, ...)                                                                   \
    do {                                                                                           \
        st = mpl_fail(ctx, code, __FILE__, __LINE__, __VA_ARGS__);                                 \
        goto out;                                                                                  \
    } while (0)

/* Memory. All of it comes zeroed, through ctx, so that a test can let the k-th allocation fail.
 * mpl_alloc: n * size bytes (n * size = 0 gives a valid pointer); NULL with a message when it
 * cannot. mpl_realloc: grows or shrinks *p from old_n to n items, zeroing what is new; *p untouched
 * on failure. mpl_free: accepts NULL. */
void *mpl_alloc(mpl_ctx *ctx, size_t n, size_t size);
mpl_status mpl_realloc_bytes(mpl_ctx *ctx, void **p, size_t old_n, size_t n, size_t size);
void mpl_free(mpl_ctx *ctx, void *p);
char *mpl_strdup(mpl_ctx *ctx, const char *text);

/* MPL_TRY(mpl_new(ctx, p, n)): p = n zeroed items. */
#define mpl_new(ctx, p, n) (((p) = mpl_alloc(ctx, n, sizeof *(p))) != NULL ? MPL_OK : MPL_EMEM)
/* MPL_TRY(mpl_copy_text(ctx, p, text)): p = a copy of a text. */
#define mpl_copy_text(ctx, p, text) (((p) = mpl_strdup(ctx, text)) != NULL ? MPL_OK : MPL_EMEM)

/* MPL_TRY(mpl_reserve(ctx, p, cap, n)): room for at least n items in p, growing cap (a size_t) by
 * doubling. */
#define mpl_reserve(ctx, p, cap, n) mpl_reserve_bytes(ctx, (void **)&(p), &(cap), n, sizeof *(p))
mpl_status mpl_reserve_bytes(mpl_ctx *ctx, void **p, size_t *cap, size_t n, size_t size);

/* Checked arithmetic on bytes that came from outside: false on overflow, *out then untouched. */
bool mpl_add_bytes(uint64_t a, uint64_t b, uint64_t *out);
bool mpl_mul_bytes(uint64_t a, uint64_t b, uint64_t *out);
/* Rounds up to a multiple of align (a power of two); false on overflow. */
bool mpl_align_bytes(uint64_t bytes, uint64_t align, uint64_t *out);
/* The same of what is known to be far from 2^64. */
static inline uint64_t mpl_align_up(uint64_t at, uint64_t align)
{
    return (at + align - 1) & ~(align - 1);
}
/* The greatest number that divides both; of 0 and b: b. */
static inline uint64_t mpl_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* 64-bit FNV-1a, for names of contents (graph and problem hashes). Start with MPL_HASH_SEED. */
#define MPL_HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t mpl_hash(uint64_t hash, const void *data, size_t n);
/* The same for the slots of tables, whose keys a file chooses: by a secret of this process, so that
 * none can choose keys that meet. It is another number in each process and decides nothing but
 * where a key lies; no table is read in the order of its slots. */
uint64_t mpl_table_hash(uint64_t hash, const void *data, size_t n);
/* SipHash-2-4. */
uint64_t mpl_siphash(const uint64_t key[2], const void *data, size_t n);

/* Monotonic clock. [ns] Only budgets' safety nets and measurements may read it. */
int64_t mpl_clock_ns(void);

/* Checks on our own invariants; they run at -DMPL_CHECK >= 1, 2, 3 and always compile.
 * mpl_assert_ok stands at the doors of rooms: x is a predicate over a whole structure
 * (mpl_graph_ok, mpl_problem_ok, ..) that says through mpl_broken what is wrong, where, and the id.
 */
#ifndef MPL_CHECK
#define MPL_CHECK 0
#endif
void mpl_assert_fail(const char *text, const char *file, int line) __attribute__((noreturn));
#define MPL_ASSERT_LEVEL(level, x)                                                                 \
    do {                                                                                           \
        if (MPL_CHECK >= (level) && !(x))                                                          \
            mpl_assert_fail(#x, __FILE__, __LINE__);                                               \
    } while (0)
bool mpl_broken(const char *format, ...) __attribute__((format(printf, 1, 2))); /* false */
const char *mpl_broken_text(void); /* what this thread's last call of it said */
#define mpl_assert(x) MPL_ASSERT_LEVEL(1, x)
#define mpl_assert_ok(x)                                                                           \
    do {                                                                                           \
        if (MPL_CHECK >= 2 && !(x))                                                                \
            mpl_assert_fail(mpl_broken_text(), __FILE__, __LINE__);                                \
    } while (0)
#define mpl_assert_slow(x) MPL_ASSERT_LEVEL(3, x)
enum { MPL_CHECK_SMALL = 64 }; /* things, of which level 3 looks at each pair */

#define MPL_NONE UINT32_MAX /* "no such id"; zero is a real id */

static inline uint64_t mpl_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
static inline uint64_t mpl_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Frees each of an array of pointers, whose length is known here. */
#define MPL_FREE_ALL(ctx, arrays)                                                                  \
    do {                                                                                           \
        for (size_t mpl_i = 0; mpl_i < sizeof(arrays) / sizeof *(arrays); mpl_i++)                 \
            mpl_free(ctx, (arrays)[mpl_i]);                                                        \
    } while (0)

/* Sets of small numbers as rows of 64-bit words. */
static inline bool mpl_bit_has(const uint64_t *row, uint32_t i)
{
    return (row[i / 64] >> (i % 64) & 1) != 0;
}
static inline void mpl_bit_add(uint64_t *row, uint32_t i)
{
    row[i / 64] |= UINT64_C(1) << (i % 64);
}
static inline void mpl_bit_drop(uint64_t *row, uint32_t i)
{
    row[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* Ascending. */
void mpl_sort_u32(uint32_t *x, size_t n);
void mpl_sort_i64(int64_t *x, size_t n);

/* Lists of lists by counting. begin[n + 2] holds in [key + 2] how many items each key has, and zero
 * in [0] and [1]. Makes of it that items of a key go to begin[key + 1]++, of which begin[0 .. n]
 * comes out right; [n + 1] counts them all. O(n). */
void mpl_lists_begin(uint32_t *begin, uint32_t n);
/* Items by key: those of k are item[begin[k]] to item[begin[k + 1] - 1], in the order in which they
 * come. Item i is value[i]; value NULL: i itself. key[n_items] < n_keys, or MPL_NONE: in no list.
 * begin[n_keys + 2] and item[n_items] are the caller's to free. MPL_EMEM, also for 2^32 items and
 * more; then neither is there. O(n_keys + n_items). */
mpl_status mpl_lists_new(mpl_ctx *ctx, uint32_t n_keys, size_t n_items, const uint32_t *key,
                         const uint32_t *value, uint32_t **begin, uint32_t **item);
/* Lists turned round: of each key below n_keys the lists that it is in, ascending, as often as it
 * is in them. List i is key[from[i]] to key[from[i + 1] - 1], from[n + 1]. The rest as above. */
mpl_status mpl_lists_turn(mpl_ctx *ctx, uint32_t n_keys, uint32_t n, const uint32_t *from,
                          const uint32_t *key, uint32_t **begin, uint32_t **item);

/* How many of sorted[n], which ascends, are less than `value`. O(log n). */
static inline uint32_t mpl_rank_u32(const uint32_t *sorted, uint32_t n, uint32_t value)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (sorted[mid] < value)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

#endif
