/* base.h -- what every folder uses: statuses, the context, checked memory and byte arithmetic.
 *
 * Error idiom: the message is written once, where the fault is detected; callers pass on the
 * status. A function that has something to release keeps the status in `st` (MPL_TRY, MPL_FAIL) and
 * cleans up at `out:`. One that has nothing to release returns at once (MPL_PASS, MPL_ERROR,
 * MPL_REFUSE). */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef enum mpl_status {
    MPL_OK,
    MPL_EMEM,     /* host memory ran out */
    MPL_EINPUT,   /* a file or an argument is wrong; the user can fix it */
    MPL_ELIMIT,   /* the budget ended before there was any answer */
    MPL_EINVALID, /* the verifier rejected a plan, or an output differed */
    MPL_EUNAVAIL, /* not built in, no device, or the problem lacks what the planner needs */
} mpl_status;

/* State of one caller: the last failure's message, and fault injection for the allocator. Zero
 * except fail_after = -1 (mpl_ctx_default). Not thread-safe. */
typedef struct mpl_ctx {
    char message[512]; /* of the last failure, without the leading "memplan: " */
    const char *file;  /* source file that raised it; for debugging only */
    int line;
    int64_t fail_after; /* index of the allocation that fails; < 0: none */
    int64_t n_allocs;   /* allocations requested so far */
    int64_t n_live;     /* allocations not yet freed */
} mpl_ctx;

mpl_ctx mpl_ctx_default(void);
static inline void mpl_ctx_init(mpl_ctx *ctx)
{
    *ctx = mpl_ctx_default();
}

/* Writes the message of a failure into ctx, as one line without control characters; the arguments
 * may be the last message. Returns `code`. Use MPL_FAIL. */
mpl_status mpl_fail(mpl_ctx *ctx, mpl_status code, const char *file, int line, const char *format,
                    ...) __attribute__((format(printf, 5, 6)));

/* "ok", "out of memory", "bad input", ... */
const char *mpl_status_name(mpl_status st);

/* Exit status of a program that ends with `st`: 0 good, 1 rejected or differing, 2 bad input, 3
 * limit or no host memory, 4 unavailable. */
int mpl_status_exit(mpl_status st);

#define MPL_TRY(call)                                                                              \
    do {                                                                                           \
        if ((st = (call)) != MPL_OK)                                                               \
            goto out;                                                                              \
    } while (0)
#define MPL_FAIL(ctx, code, ...)                                                                   \
    do {                                                                                           \
        st = MPL_ERROR(ctx, code, __VA_ARGS__);                                                    \
        goto out;                                                                                  \
    } while (0)
#define MPL_PASS(call)                                                                             \
    do {                                                                                           \
        mpl_status mpl_st = (call);                                                                \
        if (mpl_st != MPL_OK)                                                                      \
            return mpl_st;                                                                         \
    } while (0)
#define MPL_ERROR(ctx, code, ...) mpl_fail(ctx, code, __FILE__, __LINE__, __VA_ARGS__)
#define MPL_REFUSE(ctx, ...)      MPL_ERROR(ctx, MPL_EINPUT, __VA_ARGS__) /* of bad input */

/* Memory comes zeroed and through ctx, so that a test can make the k-th allocation fail. mpl_alloc:
 * n * size bytes; n * size = 0 gives a valid pointer; NULL with a message on failure. mpl_realloc:
 * resizes *p from old_n to n items and zeroes new ones; *p is unchanged on failure. mpl_free:
 * accepts NULL. */
void *mpl_alloc(mpl_ctx *ctx, size_t n, size_t size);
mpl_status mpl_realloc_bytes(mpl_ctx *ctx, void **p, size_t old_n, size_t n, size_t size);
void mpl_free(mpl_ctx *ctx, void *p);
char *mpl_strdup(mpl_ctx *ctx, const char *text);

/* MPL_TRY(mpl_new(ctx, p, n)): p = n zeroed items. */
#define mpl_new(ctx, p, n) (((p) = mpl_alloc(ctx, n, sizeof *(p))) != NULL ? MPL_OK : MPL_EMEM)
/* The same for several arrays of n items each, at most eight: mpl_new_each(ctx, n, p, q, ..). */
#define mpl_new_each(ctx, n, ...)                                                                  \
    MPL_NEW_PICK(__VA_ARGS__, MPL_NEW_8, MPL_NEW_7, MPL_NEW_6, MPL_NEW_5, MPL_NEW_4, MPL_NEW_3,    \
                 MPL_NEW_2, MPL_NEW_1, )                                                           \
    (ctx, n, __VA_ARGS__)
#define MPL_NEW_PICK(p1, p2, p3, p4, p5, p6, p7, p8, picked, ...) picked

#define MPL_NEW_1(ctx, n, p)         mpl_new(ctx, p, n)
#define MPL_NEW_2(ctx, n, p, ...)    MPL_NEW_AND(ctx, n, p, MPL_NEW_1(ctx, n, __VA_ARGS__))
#define MPL_NEW_3(ctx, n, p, ...)    MPL_NEW_AND(ctx, n, p, MPL_NEW_2(ctx, n, __VA_ARGS__))
#define MPL_NEW_4(ctx, n, p, ...)    MPL_NEW_AND(ctx, n, p, MPL_NEW_3(ctx, n, __VA_ARGS__))
#define MPL_NEW_5(ctx, n, p, ...)    MPL_NEW_AND(ctx, n, p, MPL_NEW_4(ctx, n, __VA_ARGS__))
#define MPL_NEW_6(ctx, n, p, ...)    MPL_NEW_AND(ctx, n, p, MPL_NEW_5(ctx, n, __VA_ARGS__))
#define MPL_NEW_7(ctx, n, p, ...)    MPL_NEW_AND(ctx, n, p, MPL_NEW_6(ctx, n, __VA_ARGS__))
#define MPL_NEW_8(ctx, n, p, ...)    MPL_NEW_AND(ctx, n, p, MPL_NEW_7(ctx, n, __VA_ARGS__))
#define MPL_NEW_AND(ctx, n, p, rest) (mpl_new(ctx, p, n) != MPL_OK ? MPL_EMEM : (rest))

/* MPL_TRY(mpl_copy_text(ctx, p, text)): p = a copy of text. */
#define mpl_copy_text(ctx, p, text) (((p) = mpl_strdup(ctx, text)) != NULL ? MPL_OK : MPL_EMEM)

/* MPL_TRY(mpl_reserve(ctx, p, cap, n)): makes room for n items in p; doubles cap (a size_t). */
#define mpl_reserve(ctx, p, cap, n) mpl_reserve_bytes(ctx, (void **)&(p), &(cap), n, sizeof *(p))
mpl_status mpl_reserve_bytes(mpl_ctx *ctx, void **p, size_t *cap, size_t n, size_t size);

/* Checked arithmetic for untrusted byte counts. False on overflow; *out is then unchanged. */
bool mpl_add_bytes(uint64_t a, uint64_t b, uint64_t *out);
bool mpl_mul_bytes(uint64_t a, uint64_t b, uint64_t *out);
/* Rounds up to a multiple of align (a power of two); false on overflow. */
bool mpl_align_bytes(uint64_t bytes, uint64_t align, uint64_t *out);
/* The same, unchecked: for values far below 2^64. */
static inline uint64_t mpl_align_up(uint64_t at, uint64_t align)
{
    return (at + align - 1) & ~(align - 1);
}
/* Greatest common divisor; for a = 0 it is b. */
static inline uint64_t mpl_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* 64-bit FNV-1a, for graph and problem hashes. Start with MPL_HASH_SEED. */
#define MPL_HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t mpl_hash(uint64_t hash, const void *data, size_t n);
/* Hash for tables whose keys come from a file. It uses a secret of this process, so that a file
 * cannot provoke collisions. It differs in each process; no table is read in slot order, so results
 * do not depend on it. */
uint64_t mpl_table_hash(uint64_t hash, const void *data, size_t n);
/* SipHash-2-4. */
uint64_t mpl_siphash(const uint64_t key[2], const void *data, size_t n);

/* Monotonic clock. [ns] Only time limits and measurements may read it. */
int64_t mpl_clock_ns(void);

/* Checks of our own invariants. They run at -DMPL_CHECK >= 1, 2, 3 and always compile.
 * mpl_assert_ok checks a whole structure where it enters a folder. x is a predicate (mpl_graph_ok,
 * mpl_problem_ok, ..) that reports what is wrong, with the id, through mpl_broken. */
#ifndef MPL_CHECK
#define MPL_CHECK 0
#endif
void mpl_assert_fail(const char *text, const char *file, int line) __attribute__((noreturn));
#define MPL_ASSERT_LEVEL(level, x)                                                                 \
    do {                                                                                           \
        if (MPL_CHECK >= (level) && !(x))                                                          \
            mpl_assert_fail(#x, __FILE__, __LINE__);                                               \
    } while (0)
bool mpl_broken(const char *format, ...) __attribute__((format(printf, 1, 2))); /* returns false */
const char *mpl_broken_text(void); /* the last message in this thread */
#define mpl_assert(x) MPL_ASSERT_LEVEL(1, x)
#define mpl_assert_ok(x)                                                                           \
    do {                                                                                           \
        if (MPL_CHECK >= 2 && !(x))                                                                \
            mpl_assert_fail(mpl_broken_text(), __FILE__, __LINE__);                                \
    } while (0)
#define mpl_assert_slow(x) MPL_ASSERT_LEVEL(3, x)
enum { MPL_CHECK_SMALL = 64 }; /* up to this many items, level 3 checks each pair */

#define MPL_NONE UINT32_MAX /* no such id; zero is a valid id */

static inline uint64_t mpl_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
static inline uint64_t mpl_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Frees each of the pointers. */
#define mpl_free_each(ctx, ...)                                                                    \
    mpl_free_n(ctx, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *), (void *[]){__VA_ARGS__})
void mpl_free_n(mpl_ctx *ctx, size_t n, void *const *p);
/* Frees each pointer of a true array (not of a pointer to one). */
#define MPL_FREE_ALL(ctx, arrays)                                                                  \
    do {                                                                                           \
        for (size_t mpl_i = 0; mpl_i < sizeof(arrays) / sizeof *(arrays); mpl_i++)                 \
            mpl_free(ctx, (arrays)[mpl_i]);                                                        \
    } while (0)

/* Defines `name`, a comparator for qsort: by the first of the keys that differs. The keys are
 * fields of `type`, as in MPL_ORDER_BY(by_size, buffer, MPL_FALLING(bytes) MPL_RISING(id)). */
#define MPL_ORDER_BY(name, type, keys)                                                             \
    static int name(const void *left, const void *right)                                           \
    {                                                                                              \
        const type *x = left, *y = right;                                                          \
                                                                                                   \
        keys return 0;                                                                             \
    }
#define MPL_RISING(key)                                                                            \
    if (x->key != y->key)                                                                          \
        return x->key < y->key ? -1 : 1;
#define MPL_FALLING(key)                                                                           \
    if (x->key != y->key)                                                                          \
        return x->key > y->key ? -1 : 1;

/* Bit sets as rows of 64-bit words. */
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

/* Sorts ascending. */
void mpl_sort_u32(uint32_t *x, size_t n);
void mpl_sort_i64(int64_t *x, size_t n);

/* Counting sort: turns counts into list starts. In: begin[n + 2] with begin[key + 2] = items of
 * `key`, and zero in [0] and [1]. Then store each item of a key at begin[key + 1]++; afterwards
 * begin[0 .. n] holds the starts and begin[n + 1] the total. O(n). */
void mpl_lists_begin(uint32_t *begin, uint32_t n);
/* Groups items by key: those of k are item[begin[k]] to item[begin[k + 1] - 1], in input order.
 * Item i is value[i], or i where value is NULL. key[n_items] < n_keys, or MPL_NONE for no list.
 * Caller frees begin[n_keys + 2] and item[n_items]. MPL_EMEM, also for 2^32 items and more; then
 * neither is allocated. O(n_keys + n_items). */
mpl_status mpl_lists_new(mpl_ctx *ctx, uint32_t n_keys, size_t n_items, const uint32_t *key,
                         const uint32_t *value, uint32_t **begin, uint32_t **item);
/* Inverts lists: gives each key below n_keys the lists that contain it, ascending, with
 * multiplicity. List i is key[from[i]] to key[from[i + 1] - 1], from[n + 1]. Otherwise as
 * mpl_lists_new. */
mpl_status mpl_lists_turn(mpl_ctx *ctx, uint32_t n_keys, uint32_t n, const uint32_t *from,
                          const uint32_t *key, uint32_t **begin, uint32_t **item);

/* Number of items of the ascending sorted[n] that are less than `value`. O(log n). */
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
