/* Plan files: they read back unchanged, with the same bytes each time; a file with one error gives
 * one line. */
#include "tests/support/random_problem.h"

#include "planners/verify/verify.h"

#include <jansson.h>

#define FILE_NAME "build/test_planners_plan_file.json"

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1 << 16, 1);

    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

static void spill(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fputs(text, f) >= 0, 1);
    assert_int_equal(fclose(f), 0);
}

/* A verified plan of a random problem, at times with blocks or fixed offsets. */
static void make(mpl_ctx *ctx, mpl_rng *rng, unsigned what, mpl_problem **p, mpl_plan **plan)
{
    *p = random_problem(ctx, rng, 1 + random_below(rng, 12), what);
    *plan = plain_plan(ctx, *p);
    if (random_below(rng, 2) == 0) {
        assert_ok(ctx, mpl_new(ctx, (*p)->fixed, (*p)->n));
        for (mpl_buffer b = 0; b < (*p)->n; b++)
            (*p)->fixed[b] = random_below(rng, 2) == 0 ? (*plan)->offset[b] : MPL_UNFIXED;
    }
    if (random_below(rng, 2) == 0) {
        assert_ok(ctx, mpl_new(ctx, (*plan)->block, (*p)->n));
        for (mpl_buffer b = 0; b < (*p)->n; b++)
            (*plan)->block[b] = (*p)->pool[b] != (*p)->pool[0]; /* one block per pool */
    }
    if (random_below(rng, 2) == 0)
        (*p)->pool_capacity[0] = 1000000;
    if (random_below(rng, 2) == 0) {
        assert_ok(ctx, mpl_new(ctx, (*p)->buffer_name, (*p)->n));
        (*p)->buffer_name[0] = mpl_strdup(ctx, "conv1 \"a\", \\ \xc3\xa9");
    }
    assert_ok(ctx, mpl_verify(ctx, *p, *plan));
}

static void same_after_reading(const mpl_problem *p, const mpl_plan *plan,
                               const mpl_plan_file *file)
{
    const mpl_problem *q = file->problem;

    assert_int_equal(mpl_problem_hash(p), mpl_problem_hash(q));
    assert_string_equal(p->name, q->name);
    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < p->n; b++)
            assert_int_equal(mpl_conflict(p, a, b), mpl_conflict(q, a, b));
    if (p->buffer_name != NULL)
        assert_string_equal(p->buffer_name[0], q->buffer_name[0]);
    assert_int_equal(plan->n, file->plan->n);
    assert_memory_equal(plan->offset, file->plan->offset, p->n * sizeof *plan->offset);
    assert_int_equal(plan->block == NULL, file->plan->block == NULL);
    if (plan->block != NULL)
        assert_memory_equal(plan->block, file->plan->block, p->n * sizeof *plan->block);
    assert_int_equal(plan->claim, file->plan->claim);
    assert_int_equal(plan->bound_bytes, file->plan->bound_bytes);
}

TEST(write_and_read_back)
{
    static const char fields[] =
        "{\"graph\":\"mlp\",\"dims\":{\"N\":4},\"gap\":null,\"pinned\":[\"weights\"]}";
    mpl_rng rng = mpl_rng_of(11);

    for (unsigned round = 0; round < 96; round++) {
        owned_problem *p;
        owned_plan *plan;
        mpl_plan_file file = {0};
        char *first, *second;

        make(ctx, &rng, round % 32, &p, &plan);
        assert_ok(ctx, mpl_plan_write(ctx, FILE_NAME, p, plan, round % 2 == 0 ? fields : NULL));
        first = slurp(FILE_NAME);
        assert_ok(ctx, mpl_plan_read(ctx, FILE_NAME, &file));
        same_after_reading(p, plan, &file);
        assert_string_equal(file.fields_json, round % 2 == 0 ? fields : "{}");
        assert_ok(ctx, mpl_verify(ctx, file.problem, file.plan));
        assert_ok(ctx, mpl_plan_write(ctx, FILE_NAME, file.problem, file.plan, file.fields_json));
        second = slurp(FILE_NAME);
        assert_string_equal(first, second);
        free(first);
        free(second);
        mpl_plan_file_fini(ctx, &file);
    }
}

/* Numbers that a double cannot represent are preserved. */
TEST(keep_large_numbers)
{
    const uint64_t large = (UINT64_C(1) << 62) + 1;
    owned_problem *p = NULL;
    owned_plan *plan = NULL;
    mpl_plan_file file = {0};

    assert_ok(ctx, mpl_problem_new(ctx, "large", 1, &p));
    p->bytes[0] = large, p->death[0] = p->n_steps = UINT32_MAX;
    p->pool_capacity[0] = INT64_MAX;
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    plan->offset[0] = large - 3;
    plan->claim = MPL_OPTIMAL;
    plan->bound_bytes = 2 * large - 3;
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    assert_ok(ctx, mpl_plan_write(ctx, FILE_NAME, p, plan, NULL));
    assert_ok(ctx, mpl_plan_read(ctx, FILE_NAME, &file));
    same_after_reading(p, plan, &file);
    mpl_plan_file_fini(ctx, &file);
}

/* A file of two buffers, one in place of the other, beside a third; and replacements that must each
 * be detected. */
static const struct {
    const char *from, *to, *want;
} tampered[] = {
    {"\"kind\":\"plan\"", "\"kind\":\"row\"", "'kind'"},
    {"\"kind\":\"plan\"", "\"kind\":7", "'kind'"},
    {"\"schema\":1", "\"schema\":2", "schema 2"},
    {"\"schema\":1", "\"schema\":\"1\"", "schema"},
    {"\"bytes\":8", "\"bytes\":9", "problem_hash"},
    {"\"bytes\":8", "\"bytes\":-8", "bytes is -8"},
    {"\"bytes\":8", "\"bytes\":8.0", "bytes is missing or no whole number"},
    {"\"bytes\":8", "\"bytes\":92233720368547758070", "no JSON"},
    {"\"bytes\":8", "\"byte\":8", "bytes is missing"},
    {"\"id\":1", "\"id\":2", "ids rise"},
    {"\"id\":0", "\"id\":3", "id is 3"},
    {"\"align\":4", "\"align\":3", "'#0' is aligned to 3"},
    {"\"align\":4", "\"align\":4294967296", "align is 4294967296"},
    {"\"pool\":0", "\"pool\":1", "pool is 1"},
    {"\"birth\":1", "\"birth\":null", "birth is missing"},
    {"\"birth\":1", "\"birth\":3", "'#1' lives in [3, 3)"},
    {"\"offset\":0", "\"offset\":-1", "offset is -1"},
    {"\"offset\":0", "\"offset\":null", "offset is missing"},
    {"\"block\":null", "\"block\":0", "some buffers have a block"},
    {"\"claim\":\"feasible\"", "\"claim\":\"best\"", "'claim'"},
    {"\"bound_bytes\":0", "\"bound_bytes\":null", "bound_bytes"},
    {"\"in_place\":[[0,1,1]]", "\"in_place\":[[0,1]]", "'in_place' is no list of 3"},
    {"\"in_place\":[[0,1,1]]", "\"in_place\":[]", "problem_hash"},
    {"\"in_place\":[[0,1,1]]", "\"in_place\":[[0,9,1]]", "joins buffers 0 and 9"},
    {"\"in_place\":[[0,1,1]]", "\"in_place\":{}", "'in_place' is missing or no list"},
    {"\"inside\":[]", "\"inside\":[[0,1,0]]", "of one family overlap"},
    {"\"inside\":[]", "\"inside\":[[0,0,0]]", "entry 0 of 'inside'"},
    {"\"inside\":[]", "\"inside\":[[1,0,0],[1,0,64]]", "entry 1 of 'inside'"},
    {"\"inside\":[]", "\"inside\":[[0,1,4611686018427387904],[1,0,64]]",
     "not the lowest of its family"},
    {"\"bindings\":[]", "\"bindings\":[1]", "'bindings'"},
    {"\"before\":null", "\"before\":[[0,1],[1,0]]", "before: "},
    {"\"before\":null", "\"before\":[[0,5]]", "before: "},
    {"\"before\":null", "\"before\":[[0,1]]", "pair 0: one of buffers 0 and 1 is before the other"},
    {"\"before\":null", "\"before\":[[1,2]]", "pair 0: what follows or overwrites buffer 1"},
    {"\"before\":null", "\"before\":[[2,0]]", "pair 0: what is before buffer 0"},
    {"\"before\":null", "\"before\":7", "'before' is missing or no list"},
    {"\"fixed\":null", "\"fixed\":[[7,0]]", "'fixed' names buffer 7"},
    {"\"fixed\":null", "\"fixed\":[[0,0]]", "problem_hash"},
    {"\"capacity\":null", "\"capacity\":-1", "capacity is -1"},
    {"\"capacity\":null", "\"capacity\":100", "problem_hash"},
    {"\"n_steps\":3", "\"n_steps\":2", "until step 3"},
    {"\"n_steps\":3", "\"n_steps\":4", "problem_hash"},
    {"\"n_steps\":3", "\"n_steps\":3,\"n_steps\":3", "no JSON: duplicate"},
    {"\"pools\":[", "\"pools\":[],\"pool_list\":[", "'pools' is empty"},
    {"\"problem_hash\":\"", "\"problem_hash\":\"x", "problem_hash"},
    {"\"buffers\":[", "\"buffers\":7,\"b\":[", "'buffers' is missing or no list"},
    {"{\"schema\"", "[{\"schema\"", "no JSON"},
    {"}\n", "", "no JSON"},
    {"}\n", "}}\n", "no JSON"},
};

static mpl_problem *three(mpl_ctx *ctx)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "three", 3, &p));
    p->n_steps = 3;
    for (mpl_buffer b = 0; b < 3; b++)
        p->bytes[b] = 8, p->align[b] = 4, p->birth[b] = b == 1, p->death[b] = b == 1 ? 3 : 2;
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 1));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 1));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 1));
    p->n_in_place = 1;
    p->in_place_out[0] = p->in_place_step[0] = 1;
    return p;
}

TEST(refuse_tampered_files)
{
    char *text, *changed;
    owned_problem *p = three(ctx);
    owned_plan *plan = plain_plan(ctx, p);

    assert_ok(ctx, mpl_verify(ctx, p, plan));
    assert_ok(ctx, mpl_plan_write(ctx, FILE_NAME, p, plan, NULL));
    text = slurp(FILE_NAME);
    changed = calloc(strlen(text) + 256, 1);
    assert_non_null(changed);
    for (size_t i = 0; i < sizeof tampered / sizeof *tampered; i++) {
        const char *at = strstr(text, tampered[i].from);
        mpl_plan_file file = {0};
        int64_t live = ctx->n_live;
        mpl_status st;

        if (at == NULL)
            fail_msg("no %s in %s", tampered[i].from, text);
        sprintf(changed, "%.*s%s%s", (int)(at - text), text, tampered[i].to,
                at + strlen(tampered[i].from));
        spill(FILE_NAME, changed);
        st = mpl_plan_read(ctx, FILE_NAME, &file);
        if (st != MPL_EINPUT || strstr(ctx->message, tampered[i].want) == NULL ||
            strncmp(ctx->message, FILE_NAME ":", strlen(FILE_NAME) + 1) != 0 ||
            strchr(ctx->message, '\n') != NULL)
            fail_msg("%s: %s, '%s'; expected '%s'", tampered[i].to, mpl_status_name(st),
                     ctx->message, tampered[i].want);
        assert_null(file.plan);
        assert_int_equal(ctx->n_live, live);
    }
    for (size_t n = 0; n < strlen(text) - 1; n += 7) { /* truncated */
        spill(FILE_NAME, "");
        changed[0] = '\0';
        strncat(changed, text, n);
        spill(FILE_NAME, changed);
        assert_status(ctx, mpl_plan_read(ctx, FILE_NAME, &(mpl_plan_file){0}), MPL_EINPUT);
    }
    free(text);
    free(changed);
}

/* A failed write leaves the old file and no temporary file. */
TEST(write_whole_or_not)
{
    char *before, *after;
    owned_problem *p = three(ctx);
    owned_plan *plan = plain_plan(ctx, p);

    assert_ok(ctx, mpl_verify(ctx, p, plan));
    assert_ok(ctx, mpl_plan_write(ctx, FILE_NAME, p, plan, NULL));
    before = slurp(FILE_NAME);
    assert_status(ctx, mpl_plan_write(ctx, "build/no/such/folder/p.json", p, plan, NULL),
                  MPL_EINPUT);
    assert_status(ctx, mpl_plan_write(ctx, "tests", p, plan, NULL), MPL_EINPUT);
    if (access("/dev/full", W_OK) == 0)
        assert_status(ctx, mpl_plan_write(ctx, "/dev/full", p, plan, NULL), MPL_EINPUT);
    assert_status(ctx, mpl_plan_write(ctx, FILE_NAME, p, plan, "[1]"), MPL_EINPUT);
    assert_status(ctx, mpl_plan_write(ctx, FILE_NAME, p, plan, "{"), MPL_EINPUT);
    after = slurp(FILE_NAME);
    assert_string_equal(before, after);
    assert_int_equal(system("ls build/*.tmp tests.*.tmp >/dev/null 2>&1") == 0, 0);
    free(before);
    free(after);
    mpl_free(ctx, p->name);
    p->name = mpl_strdup(ctx, "not utf-8: \xff\xfe");
    assert_ok(ctx, mpl_plan_write(ctx, FILE_NAME, p, plan, NULL));
    after = slurp(FILE_NAME);
    assert_non_null(strstr(after, "not utf-8: ??"));
    free(after);
}

static int64_t json_left = -1; /* allocations of jansson until one fails; < 0: none does */
static int64_t json_live;

static void *json_alloc(size_t size)
{
    void *p = json_left == 0 ? NULL : malloc(size);

    if (json_left > 0)
        json_left--;
    json_live += p != NULL;
    return p;
}

static void json_release(void *p)
{
    json_live -= p != NULL;
    free(p);
}

/* Our allocations fail one after the other, then jansson's (every third one: there are many). Its
 * lexer reports some of those as wrong syntax; what counts is that nothing is read in part and
 * nothing leaks. */
TEST(survive_lost_memory)
{
    mpl_rng rng = mpl_rng_of(12);

    json_set_alloc_funcs(json_alloc, json_release);
    for (unsigned round = 0; round < 8; round++) {
        owned_problem *p;
        owned_plan *plan;

        make(ctx, &rng, 2 * round + 1, &p, &plan);
        for (int theirs = 0; theirs < 2; theirs++)
            for (int reading = 0; reading < 2; reading++) {
                mpl_status st = MPL_EMEM;
                int64_t live = ctx->n_live;

                for (int64_t k = 0; st == MPL_EMEM || (theirs && st == MPL_EINPUT);
                     k += theirs ? 3 : 1) {
                    mpl_plan_file file = {0};

                    ctx->n_allocs = 0, ctx->fail_after = theirs ? -1 : k;
                    json_left = theirs ? k : -1;
                    st = reading ? mpl_plan_read(ctx, FILE_NAME, &file)
                                 : mpl_plan_write(ctx, FILE_NAME, p, plan, "{\"graph\":\"x\"}");
                    mpl_plan_file_fini(ctx, &file);
                    assert_int_equal(ctx->n_live, live);
                    assert_int_equal(json_live, 0);
                }
                assert_ok(ctx, st);
                ctx->fail_after = json_left = -1;
            }
    }
    json_set_alloc_funcs(malloc, free);
}

/* ---- packing the blocks of a block plan ---- */

/* Blocks in the order of size, then id, each at the lowest aligned offset clear of earlier
 * conflicting blocks: those with any conflicting buffers. */
static uint64_t plain_packed(const mpl_problem *p, const uint32_t *block, uint32_t n)
{
    uint64_t size[16] = {0}, align[16] = {0}, at[16] = {0}, top = 0;
    bool placed[16] = {false};

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0) {
            size[block[b]] = mpl_max_u64(size[block[b]], p->bytes[b]);
            align[block[b]] = mpl_max_u64(align[block[b]], p->align[b]);
        }
    for (uint32_t round = 0; round < n; round++) {
        uint32_t next = MPL_NONE;

        for (uint32_t i = 0; i < n; i++)
            if (!placed[i] && size[i] > 0 && (next == MPL_NONE || size[i] > size[next]))
                next = i;
        if (next == MPL_NONE)
            break;
        for (uint32_t i = 0; i < n; i++) {
            bool apart = true, before = true, after = true;

            for (mpl_buffer a = 0; a < p->n; a++)
                for (mpl_buffer b = 0; b < p->n; b++) {
                    if (p->pool[a] != 0 || p->pool[b] != 0 || block[a] != next || block[b] != i)
                        continue;
                    before = before && (p->before != NULL ? mpl_is_before(p->before, a, b)
                                                          : p->death[a] <= p->birth[b]);
                    after = after && (p->before != NULL ? mpl_is_before(p->before, b, a)
                                                        : p->death[b] <= p->birth[a]);
                }
            apart =
                before || after || at[next] >= at[i] + size[i] || at[i] >= at[next] + size[next];
            if (placed[i] && !apart) {
                at[next] += align[next];
                i = MPL_NONE; /* restart */
            }
        }
        placed[next] = true;
        top = mpl_max_u64(top, at[next] + size[next]);
    }
    return top;
}

/* Random blocks of buffers without conflicts, end to end. */
TEST(pack_blocks)
{
    mpl_rng rng = mpl_rng_of(13);

    for (unsigned round = 0; round < 3000; round++) {
        owned_problem *p = random_problem(ctx, &rng, 1 + random_below(&rng, 12),
                                          round % 16 & ~(unsigned)RANDOM_PAIRS);
        owned_plan *plan = plain_plan(ctx, p);
        uint64_t base = 0, packed = 0;
        uint32_t n = 0;

        assert_ok(ctx, mpl_verify(ctx, p, plan));
        assert_ok(ctx, mpl_plan_packed(ctx, p, plan, &packed));
        assert_int_equal(packed, plan->peak_bytes);
        assert_ok(ctx, mpl_new(ctx, plan->block, p->n));
        for (mpl_buffer b = 0; b < p->n; b++) { /* the first free block, else a new one */
            for (uint32_t i = 0; i <= n; i++) {
                bool fits = true;

                for (mpl_buffer a = 0; a < b; a++)
                    fits = fits && (plan->block[a] != i ||
                                    (p->pool[a] == p->pool[b] && !mpl_conflict(p, a, b)));
                if (fits) {
                    plan->block[b] = i;
                    n = i == n ? n + 1 : n;
                    break;
                }
            }
        }
        for (uint32_t i = 0; i < n; i++) {
            uint64_t end = base = (base + 7) & ~UINT64_C(7);

            for (mpl_buffer b = 0; b < p->n; b++)
                if (plan->block[b] == i) {
                    plan->offset[b] = base;
                    end = mpl_max_u64(end, base + p->bytes[b]);
                }
            base = end;
        }
        assert_ok(ctx, mpl_verify(ctx, p, plan));
        assert_ok(ctx, mpl_plan_packed(ctx, p, plan, &packed));
        assert_int_equal(packed, plain_packed(p, plan->block, n));
    }
}

TESTS(write_and_read_back, keep_large_numbers, refuse_tampered_files, write_whole_or_not,
      survive_lost_memory, pack_blocks)
