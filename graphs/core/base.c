/* base.c -- statuses, checked memory and checked byte arithmetic. See base.h. */
#include "graphs/core/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>

mpl_ctx mpl_ctx_default(void)
{
    return (mpl_ctx){.fail_after = -1};
}

mpl_status mpl_fail(mpl_ctx *ctx, mpl_status code, const char *file, int line, const char *format,
                    ...)
{
    char message[sizeof ctx->message]; /* the arguments may quote the last one */
    va_list args;

    ctx->file = file;
    ctx->line = line;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    mpl_text_clean(message); /* it may quote text of a file; keep it on one line */
    memcpy(ctx->message, message, strlen(message) + 1);
    return code;
}

const char *mpl_status_name(mpl_status st)
{
    static const char *const names[] = {"ok",           "out of memory", "bad input",
                                        "budget ended", "refused",       "not available"};

    return names[st];
}

int mpl_status_exit(mpl_status st)
{
    static const int codes[] = {0, 3, 2, 3, 1, 4};

    return codes[st];
}

void mpl_assert_fail(const char *text, const char *file, int line)
{
    fprintf(stderr, "memplan: %s:%d: broken invariant: %s\n", file, line, text);
    abort();
}

static _Thread_local char broken[200];

bool mpl_broken(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(broken, sizeof broken, format, args);
    va_end(args);
    return false;
}

const char *mpl_broken_text(void)
{
    return broken;
}

void *mpl_alloc(mpl_ctx *ctx, size_t n, size_t size)
{
    bool planted = ctx->fail_after >= 0 && ctx->n_allocs == ctx->fail_after;
    void *p = NULL;

    ctx->n_allocs++;
    if (!planted)
        p = calloc(n > 0 ? n : 1, size > 0 ? size : 1);
    if (p == NULL)
        MPL_ERROR(ctx, MPL_EMEM, "out of memory: %zu items of %zu bytes", n, size);
    else
        ctx->n_live++;
    return p;
}

mpl_status mpl_realloc_bytes(mpl_ctx *ctx, void **p, size_t old_n, size_t n, size_t size)
{
    void *fresh = mpl_alloc(ctx, n, size);

    if (fresh == NULL)
        return MPL_EMEM;
    if (*p != NULL)
        memcpy(fresh, *p, (old_n < n ? old_n : n) * size);
    mpl_free(ctx, *p);
    *p = fresh;
    return MPL_OK;
}

void mpl_free(mpl_ctx *ctx, void *p)
{
    if (p == NULL)
        return;
    ctx->n_live--;
    free(p);
}

void mpl_free_n(mpl_ctx *ctx, size_t n, void *const *p)
{
    for (size_t i = 0; i < n; i++)
        mpl_free(ctx, p[i]);
}

char *mpl_strdup(mpl_ctx *ctx, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = mpl_alloc(ctx, n, 1);

    if (copy != NULL)
        memcpy(copy, text, n);
    return copy;
}

/* Under the address sanitizer, small arrays move whenever they grow. */
#ifdef __has_feature
#define MPL_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define MPL_ADDRESS_SANITIZER 1
#else
#define MPL_ADDRESS_SANITIZER 0
#endif
#define MPL_MOVES (MPL_CHECK >= 2 && MPL_ADDRESS_SANITIZER ? 24 : 0)

mpl_status mpl_reserve_bytes(mpl_ctx *ctx, void **p, size_t *cap, size_t n, size_t size)
{
    mpl_status st;
    size_t want = *cap > 0 ? *cap : 8;

    if (n <= *cap)
        return MPL_OK;
    if (n <= MPL_MOVES) /* whoever keeps a pointer into the array over an addition is found out */
        want = n;
    while (want < n) {
        if (want > SIZE_MAX / 2)
            return MPL_ERROR(ctx, MPL_EMEM, "out of memory: %zu items", n);
        want *= 2;
    }
    st = mpl_realloc_bytes(ctx, p, *cap, want, size);
    if (st == MPL_OK)
        *cap = want;
    return st;
}

bool mpl_add_bytes(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

bool mpl_mul_bytes(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

bool mpl_align_bytes(uint64_t bytes, uint64_t align, uint64_t *out)
{
    uint64_t up;

    if (!mpl_add_bytes(bytes, align - 1, &up))
        return false;
    *out = up & ~(align - 1);
    return true;
}

static int by_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void mpl_sort_u32(uint32_t *x, size_t n)
{
    qsort(x, n, sizeof *x, by_u32);
}

static int by_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

void mpl_sort_i64(int64_t *x, size_t n)
{
    qsort(x, n, sizeof *x, by_i64);
}

void mpl_lists_begin(uint32_t *begin, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        begin[k + 2] += begin[k + 1];
}

/* Each list ends where the next begins; together they hold at most n_items. */
static bool lists_ok(const uint32_t *begin, uint32_t n_keys, size_t n_items)
{
    for (uint32_t key = 0; key < n_keys; key++)
        if (begin[key] > begin[key + 1])
            return false;
    return begin[0] == 0 && begin[n_keys] <= n_items;
}

mpl_status mpl_lists_new(mpl_ctx *ctx, uint32_t n_keys, size_t n_items, const uint32_t *key,
                         const uint32_t *value, uint32_t **begin, uint32_t **item)
{
    mpl_status st = MPL_OK;
    uint32_t *first = NULL, *list = NULL;

    if (n_items > UINT32_MAX)
        MPL_FAIL(ctx, MPL_EMEM, "out of memory: %zu items in lists", n_items);
    MPL_TRY(mpl_new(ctx, first, (size_t)n_keys + 2));
    MPL_TRY(mpl_new(ctx, list, n_items));
    for (size_t i = 0; i < n_items; i++)
        if (key[i] != MPL_NONE)
            first[(size_t)key[i] + 2]++;
    mpl_lists_begin(first, n_keys);
    for (size_t i = 0; i < n_items; i++)
        if (key[i] != MPL_NONE)
            list[first[key[i] + 1]++] = value != NULL ? value[i] : (uint32_t)i;
    mpl_assert_ok(lists_ok(first, n_keys, n_items));
    *begin = first, first = NULL;
    *item = list, list = NULL;
out:
    mpl_free(ctx, first);
    mpl_free(ctx, list);
    return st;
}

mpl_status mpl_lists_turn(mpl_ctx *ctx, uint32_t n_keys, uint32_t n, const uint32_t *from,
                          const uint32_t *key, uint32_t **begin, uint32_t **item)
{
    mpl_status st = MPL_OK;
    uint32_t *list = NULL;

    MPL_TRY(mpl_new(ctx, list, from[n]));
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = from[k]; i < from[k + 1]; i++)
            list[i] = k;
    MPL_TRY(mpl_lists_new(ctx, n_keys, from[n], key, list, begin, item));
out:
    mpl_free(ctx, list);
    return st;
}

uint64_t mpl_hash(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *byte = data;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t turned(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1], v[1] = turned(v[1], 13) ^ v[0], v[0] = turned(v[0], 32);
        v[2] += v[3], v[3] = turned(v[3], 16) ^ v[2];
        v[0] += v[3], v[3] = turned(v[3], 21) ^ v[0];
        v[2] += v[1], v[1] = turned(v[1], 17) ^ v[2], v[2] = turned(v[2], 32);
    }
}

/* Source   J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012, section 2 */
uint64_t mpl_siphash(const uint64_t key[2], const void *data, size_t n)
{
    const unsigned char *byte = data;
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t word = 0;

    for (size_t i = 0; i <= n; i++) { /* the last word also holds the length */
        size_t place = i % 8;

        if (i == n)
            word |= (uint64_t)n << 56, place = 7;
        else
            word |= (uint64_t)byte[i] << 8 * place;
        if (place < 7)
            continue;
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
        word = 0;
    }
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t mpl_table_hash(uint64_t hash, const void *data, size_t n)
{
    /* 16 random bytes that the kernel gives each process */
    const void *secret = (const void *)(uintptr_t)getauxval(AT_RANDOM);
    uint64_t key[2] = {0, 0};

    if (secret != NULL)
        memcpy(key, secret, sizeof key);
    key[0] ^= hash;
    return mpl_siphash(key, data, n);
}

int64_t mpl_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
