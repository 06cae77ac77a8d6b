/* test_harness_viewer.c -- plans as HTML pages: small, self-contained, safe against hostile names,
 * correct conflicts. */
#include "graphs/io/lists/lists.h"
#include "tests/support/folder.h"

#include <jansson.h>

#include "harness/export/export.h"
#include "harness/view/unroll.h"
#include "harness/view/viewer.h"
#include "tests/support/random_problem.h"

/* The page of a plan, which the caller frees. */
static char *page_with(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                       const mpl_viewer_extra *extra, size_t *size)
{
    mpl_job job = {.text = "list", .problem = p, .bound_bytes = 1};
    char *text = NULL;
    FILE *f = open_memstream(&text, size);

    assert_non_null(f);
    assert_ok(ctx, mpl_viewer_write(ctx, f, "a & b <c>", "greedy_size", &job, plan, extra));
    assert_int_equal(fclose(f), 0);
    return text;
}

static char *page_of(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan, size_t *size)
{
    return page_with(ctx, p, plan, NULL, size);
}

static uint32_t count(const char *text, const char *part)
{
    uint32_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

TEST(test_ten_thousand)
{
    owned_problem *p = NULL;
    owned_plan *plan;
    char *page, *again;
    size_t size, size_again;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 10000, 100, 1, &p));
    assert_ok(ctx, mpl_new(ctx, p->buffer_name, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) { /* as long as a network's names are */
        char name[120];

        snprintf(name, sizeof name, "/model/layers.%u/attention/projection/MatMul_output_%u", b / 9,
                 b);
        p->buffer_name[b] = mpl_strdup(ctx, name);
    }
    plan = planned_by(ctx, "greedy_size", p);
    page = page_of(ctx, p, plan, &size);
    again = page_of(ctx, p, plan, &size_again);
    if (size >= 2000000)
        fail_msg("%zu bytes for 10,000 buffers", size);
    assert_int_equal(size, size_again);
    assert_memory_equal(page, again, size);
    free(page);
    free(again);
}

/* Names that would end the script. */
static const char *const names[] = {
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "quote \" backslash \\ newline \n",
};

TEST(test_alone_and_safe)
{
    static const char *const outside[] = {"http",    "src=",    "href",  "url(",
                                          "@import", "@TITLE@", "@DATA@"};
    owned_problem *p = NULL;
    owned_plan *plan;
    char *page;
    size_t size;

    assert_ok(ctx, mpl_problem_synthetic(ctx, sizeof names / sizeof *names, 3, 1, &p));
    assert_ok(ctx, mpl_new(ctx, p->buffer_name, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->buffer_name[b] = mpl_strdup(ctx, names[b]);
    plan = planned_by(ctx, "greedy_size", p);
    page = page_of(ctx, p, plan, &size);
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (strstr(page, outside[i]) != NULL)
            fail_msg("'%s' is in the page", outside[i]);
    assert_int_equal(count(page, "<script"), 1);
    assert_int_equal(count(page, "</script"), 1);
    assert_int_equal(count(page, "<!--"), 0);
    assert_int_equal(count(page, "<title>a &amp; b &lt;c&gt;</title>"), 1);
    assert_int_equal(count(page, "?"), 1 + count(strstr(page, "/* ---- who"), "?")); /* the newline
                                                                                        only */
    assert_int_equal(count(page, "\\u003c/script>"), 2);
    free(page);
}

/* Long names of two-byte characters at even and odd offsets: none is cut in two, which would become
 * a '?' in JSON. */
TEST(test_long_names)
{
    owned_problem *p = NULL;
    owned_plan *plan;
    char *page, *at, name[300];
    size_t size;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 4, 3, 1, &p));
    assert_ok(ctx, mpl_new(ctx, p->buffer_name, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        size_t n = (size_t)snprintf(name, sizeof name, "%.*s", (int)b % 2, "x");

        for (int k = 0; k < 100; k++)
            n += (size_t)snprintf(name + n, sizeof name - n, "\xc3\xa4");
        snprintf(name + n, sizeof name - n, "%.*s", (int)b / 2, "y");
        p->buffer_name[b] = mpl_strdup(ctx, name);
    }
    plan = planned_by(ctx, "greedy_size", p);
    page = page_of(ctx, p, plan, &size);
    at = strstr(page, "\nname: [");
    assert_non_null(at);
    *strstr(at, "],") = '\0';
    assert_int_equal(count(at, "?"), 0);
    assert_int_equal(count(at, ".."), 4);
    assert_true(strlen(at) < 4 * 90);
    free(page);
}

/* Under parallel: a buffer before another ends where that begins or earlier, so sharing buffers
 * never overlap. */
TEST(test_across_chains)
{
    mpl_rng rng = mpl_rng_of(5);

    for (int round = 0; round < 200; round++) {
        owned_problem *p = random_problem(ctx, &rng, 1 + random_below(&rng, 16), RANDOM_PARALLEL);
        mpl_spans_across across = {0};

        assert_ok(ctx, mpl_across(ctx, p, &across));
        for (mpl_buffer a = 0; a < p->n; a++) {
            assert_true(across.from[a] < across.to[a] && across.to[a] <= across.n_steps);
            for (mpl_buffer b = 0; b < p->n; b++)
                if (mpl_is_before(p->before, a, b))
                    assert_true(across.to[a] <= across.from[b]);
        }
        mpl_across_fini(ctx, &across);
    }
}

/* The longest chain, not any: 3 -> 2 -> 0 and 3 -> 0, 3 -> 1, with ids against the order. */
TEST(test_longest_chain)
{
    static const uint32_t arc_from[] = {3, 2, 3, 3}, arc_to[] = {2, 0, 0, 1};
    static const uint32_t from[] = {2, 1, 1, 0}, to[] = {3, 3, 2, 1};
    owned_problem *p = NULL;
    mpl_before *before = NULL;
    mpl_spans_across across = {0};

    assert_ok(ctx, mpl_problem_new(ctx, "chain", 4, &p));
    assert_ok(ctx, mpl_before_from_arcs(ctx, 4, 4, arc_from, arc_to, &before));
    p->before = before;
    assert_ok(ctx, mpl_across(ctx, p, &across));
    assert_memory_equal(across.from, from, sizeof from);
    assert_memory_equal(across.to, to, sizeof to);
    assert_int_equal(across.n_steps, 3);
    mpl_across_fini(ctx, &across);
}

/* Conflicts in the page's script, against mpl_conflict; in-place partners at one offset do not
 * conflict. */
TEST(test_conflicts)
{
    mpl_rng rng;
    char file[300], command[400], line[4096];
    int fd = mkstemp(temporary(file, sizeof file, "page"));

    skip_without("/usr/bin/node");
    assert_true(fd >= 0);
    snprintf(command, sizeof command, "node tests/data/viewer.js %s", file);
    rng = mpl_rng_of(7);
    for (unsigned round = 0; round < 12; round++) {
        owned_problem *p = random_problem(
            ctx, &rng, 12, RANDOM_POOLS | RANDOM_PAIRS | (round % 2 ? RANDOM_PARALLEL : 0));
        size_t size;
        FILE *f;
        owned_plan *plan = planned_by(ctx, "greedy_size", p);
        char *page = page_of(ctx, p, plan, &size);

        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, page, size, 0), size);
        f = popen(command, "r");
        assert_non_null(f);
        for (mpl_buffer a = 0; a < p->n; a++) {
            char want[4096];
            int n = 0;

            want[0] = '\0';
            for (mpl_buffer b = 0; b < p->n; b++) {
                bool meet = a != b && mpl_conflict(p, a, b);

                for (uint32_t k = 0; k < p->n_in_place; k++)
                    if (plan->offset[a] == plan->offset[b] &&
                        ((p->in_place_in[k] == a && p->in_place_out[k] == b) ||
                         (p->in_place_in[k] == b && p->in_place_out[k] == a)))
                        meet = false;
                if (meet)
                    n += snprintf(want + n, sizeof want - (size_t)n, "%s%u", n > 0 ? " " : "", b);
            }
            assert_non_null(fgets(line, sizeof line, f));
            line[strcspn(line, "\n")] = '\0';
            assert_string_equal(line, want);
        }
        assert_int_equal(pclose(f), 0);
        free(page);
    }
    close(fd);
    unlink(file);
}

/* Bytes of pool 0 that buffers alive at a step cover, counted one by one; *top: the last is. */
static uint64_t covered(const mpl_problem *p, const mpl_plan *plan, uint32_t step, bool *top)
{
    uint64_t sum = 0, end = plan->peak_bytes;
    uint8_t *byte = calloc(end + 1, 1);

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 && p->birth[b] <= step && step < p->death[b])
            memset(byte + plan->offset[b], 1, p->bytes[b]);
    for (uint64_t k = 0; k < end; k++)
        sum += byte[k];
    *top = end > 0 && byte[end - 1] != 0;
    free(byte);
    return sum;
}

/* Reads the steps that the page's script prints. */
static void check_steps(FILE *f, const mpl_problem *p, const mpl_plan *plan)
{
    uint64_t most = 0;
    uint32_t best = 0, step;
    unsigned long long sum, whole, used;
    bool top;

    for (uint32_t s = 0; s < p->n_steps; s++) {
        uint64_t want = covered(p, plan, s, &top);

        assert_int_equal(fscanf(f, "%u %llu %llu %llu ", &step, &sum, &whole, &used), 4);
        assert_int_equal(step, s);
        assert_int_equal(sum, plan->peak_bytes);
        assert_int_equal(whole, plan->peak_bytes);
        assert_int_equal(used, want);
        if (top && want > most) {
            most = want;
            best = s;
        }
    }
    assert_int_equal(fscanf(f, "highest %u ", &step), 1);
    assert_int_equal(step, best);
}

/* A click below the axis lists the parts of the arena at that step, which add up to it; the pointer
 * on a suggestion shows the plan before and after. */
TEST(test_parts)
{
    static const mpl_viewer_box boxes[] = {{0, 2, 0, 512}, {1, 3, 512, 512}};
    static const mpl_viewer_after after = {"order", "memplan plan x --order dfs", "", 1024, 3, 2,
                                           boxes};
    mpl_viewer_extra extra = {.n_after = 1, .after = &after};
    mpl_rng rng;
    char file[300], command[400], line[400];
    int fd = mkstemp(temporary(file, sizeof file, "page"));

    skip_without("/usr/bin/node");
    assert_true(fd >= 0);
    snprintf(command, sizeof command, "node tests/data/viewer.js %s parts", file);
    rng = mpl_rng_of(9);
    for (unsigned round = 0; round < 8; round++) {
        owned_problem *p = random_problem(ctx, &rng, 12, RANDOM_POOLS | RANDOM_PAIRS);
        owned_plan *plan = planned_by(ctx, "greedy_size", p);
        size_t size;
        char *page = page_with(ctx, p, plan, &extra, &size);
        FILE *f;

        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, page, size, 0), size);
        f = popen(command, "r");
        assert_non_null(f);
        check_steps(f, p, plan);
        assert_non_null(fgets(line, sizeof line, f));
        assert_non_null(strstr(line, "now: "));
        assert_non_null(strstr(line, "after: 1.00 KiB"));
        assert_non_null(fgets(line, sizeof line, f));
        assert_string_equal(line, "-1\n");
        assert_int_equal(pclose(f), 0);
        free(page);
    }
    close(fd);
    unlink(file);
}

static json_int_t number_of(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(event, key));
}

/* Trace rectangles overlap only for parallel in-place partners; the meaning of time is stated. */
static void check_trace(const mpl_problem *p, const json_t *trace)
{
    const json_t *events = json_object_get(trace, "traceEvents"), *shown[16] = {NULL}, *event;
    const char *safety =
        json_string_value(json_object_get(json_object_get(trace, "otherData"), "safety"));
    uint32_t n = 0, n_live = 0;
    size_t i;

    json_array_foreach(events, i, event)
    {
        n_live += strcmp(json_string_value(json_object_get(event, "ph")), "C") == 0;
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0)
            shown[n++] = event;
    }
    assert_int_equal(n, p->n);
    assert_string_equal(safety, p->before != NULL ? "parallel" : "serial");
    assert_int_equal(n_live, p->before != NULL ? 0 : p->n_steps);
    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = 0; b < a; b++) {
            const json_t *x = shown[a], *y = shown[b];
            json_int_t at_x = number_of(x, "tid"), at_y = number_of(y, "tid");

            if (number_of(x, "pid") == number_of(y, "pid") && (p->before == NULL || at_x != at_y) &&
                at_x < at_y + number_of(json_object_get(y, "args"), "bytes") &&
                at_y < at_x + number_of(json_object_get(x, "args"), "bytes"))
                assert_true(number_of(x, "ts") >= number_of(y, "ts") + number_of(y, "dur") ||
                            number_of(y, "ts") >= number_of(x, "ts") + number_of(x, "dur"));
        }
}

TEST(test_trace)
{
    mpl_rng rng;
    char file[300];
    int fd = mkstemp(temporary(file, sizeof file, "trace"));

    assert_true(fd >= 0);
    rng = mpl_rng_of(11);
    for (unsigned round = 0; round < 60; round++) {
        owned_problem *p =
            random_problem(ctx, &rng, 1 + random_below(&rng, 15),
                           RANDOM_POOLS | RANDOM_PAIRS | (round % 2 ? RANDOM_PARALLEL : 0));
        owned_plan *plan;
        mpl_job job = {.text = "list", .problem = p};
        mpl_export what = {.job = &job};
        json_t *trace;

        what.plan = plan = planned_by(ctx, "greedy_size", p);
        assert_ok(ctx, mpl_export_trace(ctx, &what, file));
        trace = json_load_file(file, 0, NULL);
        assert_non_null(trace);
        check_trace(p, trace);
        json_decref(trace);
    }
    assert_int_equal(ctx->n_live, 0);
    close(fd);
    unlink(file);
}

TEST(test_memory_runs_out)
{
    mpl_rng rng = mpl_rng_of(3);
    mpl_problem *p = random_problem(ctx, &rng, 6, RANDOM_PARALLEL);
    mpl_plan *plan = planned_by(ctx, "greedy_size", p);
    int64_t live = ctx->n_live;

    for (int64_t k = 0;; k++) {
        mpl_job job = {.text = "list", .problem = p};
        FILE *f = fopen("/dev/null", "w");
        mpl_status st;

        assert_non_null(f);
        ctx->fail_after = k;
        ctx->n_allocs = 0;
        st = mpl_viewer_write(ctx, f, "t", "p", &job, plan, NULL);
        fclose(f);
        assert_int_equal(ctx->n_live, live);
        if (st == MPL_OK)
            break;
        assert_status(ctx, st, MPL_EMEM);
    }
    ctx->fail_after = -1;
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, p);
}

/* ---- rounds and branches side by side ---- */

/* Pictures of loops: as many rounds as places need to repeat; overlapping rectangles at one time
 * are one carried value; nothing lies outside of its arena. */
TEST(test_unrolled)
{
    static const struct {
        const char *name;
        uint32_t n_rounds;                    /* of the first loop */
    } rows[] = ROW({"loops/pingpong", 1 + 2}, /* the first lies elsewhere, then two alternate */
                   {"loops/shift_2", 2 + 2}, {"loops/shift_3", 3 + 3},
                   {"loops/shift_4", 7}, /* the loop has no more rounds */
                   {"loops/chained_3", 1 + 2}, {"loops/lstm_cell", 1 + 1}, {"control", 4});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g;
        owned_problem *p;
        owned_map *map;
        owned_plan *plan;
        owned_memory mpl_op *order;
        mpl_unrolled u = {0};
        uint32_t n_rounds = 0;
        char path[100];

        snprintf(path, sizeof path, "tests/data/%s.graph", rows[i].name);
        assert_ok(ctx, mpl_text_read(ctx, path, &g));
        order = order_by(ctx, g, "given");
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        plan = planned_by(ctx, "greedy_size", p);
        assert_ok(ctx, mpl_unroll(ctx, g, order, p, map, plan, &u));
        for (uint32_t k = 0; k < u.n_marks; k++)
            n_rounds += u.mark[k].block == 1;
        assert_int_equal(n_rounds, rows[i].n_rounds);
        assert_true(u.n_columns >= n_rounds && u.n_boxes > 0);
        for (uint32_t a = 0; a < u.n_boxes; a++) {
            assert_true(u.box[a].from < u.box[a].to && u.box[a].to <= u.n_columns);
            assert_true(u.box[a].offset + u.box[a].bytes <= plan->pool_bytes[0]);
            for (uint32_t b = 0; b < a; b++)
                if (u.box[a].from < u.box[b].to && u.box[b].from < u.box[a].to &&
                    u.box[a].offset < u.box[b].offset + u.box[b].bytes &&
                    u.box[b].offset < u.box[a].offset + u.box[a].bytes)
                    assert_int_equal(u.box[a].offset, u.box[b].offset);
        }
        mpl_unrolled_fini(ctx, &u);
    }
}

TESTS(test_ten_thousand, test_alone_and_safe, test_long_names, test_across_chains,
      test_longest_chain, test_conflicts, test_parts, test_trace, test_memory_runs_out,
      test_unrolled)
