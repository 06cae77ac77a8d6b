/* Templates: every method's is valid at every shape; regret holds from both sides. */
#include "tests/template/random_template.h"

#include "graphs/core/file.h"
#include "planners/template/template_priv.h"
#include "tests/support/folder.h"

/* The regret of the template at every point of a small range, against what it states. */
static void assert_regret(mpl_ctx *ctx, const mpl_template *t)
{
    int64_t value[MPL_MAX_SYMBOLS] = {-1};
    uint64_t worst[64] = {0};

    while (next_point(t->problem->exprs, value)) {
        uint64_t arena = assert_valid_at(ctx, t, value), bound = 0, parts;
        uint32_t k = 0;

        assert_ok(ctx, mpl_template_bound(ctx, t->problem, value, &bound));
        assert_ok(ctx, mpl_template_find(ctx, t, value, &k));
        parts = (arena * MPL_REGRET_ONE + bound - 1) / bound;
        assert_true(parts <= t->cell[k].regret.most);
        worst[k] = parts > worst[k] ? parts : worst[k];
    }
    for (uint32_t k = 0; k < t->n_cells; k++) {
        const mpl_regret *r = &t->cell[k].regret;

        if (r->bound > 0)
            assert_true((r->arena * MPL_REGRET_ONE + r->bound - 1) / r->bound <= worst[k]);
    }
}

TEST(every_method_is_valid_at_every_shape)
{
    for (uint32_t seed = 0; seed < draws(60); seed++)
        for (mpl_template_method method = 0; method < MPL_TEMPLATE_METHODS; method++) {
            mpl_rng rng;
            mpl_sym_problem *sp;
            mpl_template *t = NULL;
            mpl_run run;
            mpl_template_ask ask = {.method = method, .cells = 1 + seed % 3};

            mpl_rng_init(&rng, seed);
            sp = random_sym(ctx, &rng, 3 + drawn(&rng, 4), 1 + drawn(&rng, 3),
                            seed % 32 & ~SYM_WIDE);
            mpl_run_init(&run, ctx);
            run.budget_ticks = 200000;
            if (method == MPL_TEMPLATE_EXACT)
                run.budget_ticks = 20000000;
            assert_ok(ctx, mpl_template_plan(&run, sp, &ask, &t));
            assert_regret(ctx, t);
            mpl_template_free(ctx, t);
            free_sym(ctx, sp);
        }
}

/* The largest arena of any shape, by the verifier's plans alone: what is reserved once. */
static uint64_t largest_end(mpl_ctx *ctx, const mpl_template *t)
{
    int64_t value[MPL_MAX_SYMBOLS] = {-1};
    uint64_t most = 0;

    while (next_point(t->problem->exprs, value)) {
        uint32_t n = t->problem->at->n;
        uint64_t offset[16], bytes[16];

        assert_true(n <= 16);
        assert_ok(ctx, mpl_template_offsets(ctx, t, value, offset, bytes, NULL));
        for (mpl_buffer b = 0; b < n; b++)
            most = mpl_max_u64(most, offset[b] + bytes[b]);
    }
    return most;
}

/* A constant plan pays one arena at every shape: the largest end of any, where sizes rise in each
 * symbol; where a relation cuts the range, never less, and seldom more. */
TEST(a_constant_plan_reserves_once)
{
    uint32_t equal = 0, n = draws(40);

    for (uint32_t seed = 0; seed < n; seed++) {
        mpl_rng rng = mpl_rng_of(seed);
        mpl_sym_problem *sp =
            random_sym(ctx, &rng, 3 + drawn(&rng, 8), 1 + drawn(&rng, 2), seed % 32 & ~SYM_WIDE);
        mpl_template *t = NULL;
        mpl_template_ask ask = {.method = MPL_TEMPLATE_CONSTANT, .cells = 1};
        mpl_run run;
        int64_t value[MPL_MAX_SYMBOLS] = {-1};
        uint64_t most, bound = 0;

        mpl_run_init(&run, ctx);
        run.budget_ticks = 200000;
        assert_ok(ctx, mpl_template_plan(&run, sp, &ask, &t));
        most = largest_end(ctx, t);
        assert_true(t->cell[0].arena[0] >= most);
        equal += t->cell[0].arena[0] == most;
        if ((seed & SYM_RELATED) == 0)
            assert_int_equal(t->cell[0].arena[0], most);
        while (next_point(sp->exprs, value)) {
            assert_int_equal(assert_valid_at(ctx, t, value), t->cell[0].arena[0]);
            assert_ok(ctx, mpl_template_bound(ctx, sp, value, &bound));
            assert_true(t->cell[0].arena[0] * MPL_REGRET_ONE <= bound * t->cell[0].regret.most);
        }
        mpl_template_free(ctx, t);
        free_sym(ctx, sp);
    }
    assert_true(equal > n * 3 / 4);
}

/* ---- wide ranges ---- */

/* Three dimensions of 4000 values each, related: the regret is proved, and no drawn shape leaves
 * its interval. */
TEST(wide_ranges_are_proved)
{
    for (uint32_t seed = 0; seed < draws(6); seed++) {
        mpl_rng rng;
        mpl_sym_problem *sp;
        mpl_template *t = NULL;
        mpl_run run;
        mpl_template_ask ask = {.method = MPL_TEMPLATE_SEARCH, .cells = 2, .most_boxes = 3000};

        mpl_rng_init(&rng, 1000 + seed);
        sp = random_sym(ctx, &rng, 4 + drawn(&rng, 5), 3,
                        SYM_WIDE | (seed % 2 == 0 ? SYM_RELATED : SYM_PAIRS));
        mpl_run_init(&run, ctx);
        run.budget_ticks = 100000;
        assert_ok(ctx, mpl_template_plan(&run, sp, &ask, &t));
        assert_true(mpl_template_most(t, NULL) < 4 * MPL_REGRET_ONE);
        for (uint32_t i = 0; i < 200; i++) {
            int64_t value[MPL_MAX_SYMBOLS];
            uint64_t arena, bound = 0;
            uint32_t k = 0;

            assert_ok(ctx, mpl_shape_draw(ctx, sp->exprs, NULL, i % 2 == 0, &rng, value));
            arena = assert_valid_at(ctx, t, value);
            assert_ok(ctx, mpl_template_bound(ctx, sp, value, &bound));
            assert_ok(ctx, mpl_template_find(ctx, t, value, &k));
            assert_true((double)arena * 1e6 <= (double)bound * (double)t->cell[k].regret.most);
        }
        mpl_template_free(ctx, t);
        free_sym(ctx, sp);
    }
}

/* A proof that is cut short, by its boxes or by the clock, states a wider interval, which is true:
 * no drawn shape leaves it. */
TEST(cut_proofs_are_wider_and_true)
{
    uint32_t wider = 0;

    for (uint32_t seed = 0; seed < draws(14); seed++) {
        mpl_rng rng = mpl_rng_of(900 + seed);
        mpl_sym_problem *sp =
            random_sym(ctx, &rng, 8, 2, SYM_WIDE | SYM_PAIRS | (seed % 2 == 0 ? SYM_ALIGNED : 0));
        uint64_t full = 0;

        for (uint32_t cut = 0; cut < 3; cut++) {
            mpl_template *t = NULL;
            mpl_run run;
            mpl_template_ask ask = {.cells = 1, .most_boxes = cut == 1 ? 1 : 2000};

            mpl_run_init(&run, ctx);
            run.budget_ticks = 20000;
            assert_ok(ctx, mpl_template_plan(&run, sp, &ask, &t));
            run.deadline_ns = 1; /* long ago */
            if (cut == 2)
                assert_ok(ctx, mpl_regret_of(&run, t, 0, 0, 2000));
            full = cut == 0 ? t->cell[0].regret.most : full;
            wider += t->cell[0].regret.most > full;
            for (uint32_t i = 0; i < 50; i++) {
                int64_t value[MPL_MAX_SYMBOLS];
                uint64_t bound = 0;

                assert_ok(ctx, mpl_shape_draw(ctx, sp->exprs, NULL, i % 2 == 0, &rng, value));
                assert_ok(ctx, mpl_template_bound(ctx, sp, value, &bound));
                assert_true((double)assert_valid_at(ctx, t, value) * 1e6 <=
                            (double)bound * (double)t->cell[0].regret.most);
            }
            mpl_template_free(ctx, t);
        }
        free_sym(ctx, sp);
    }
    assert_true(often(wider > 3));
}

/* More cells are never worse, and somewhere better. */
TEST(cells_lower_the_regret)
{
    uint32_t better = 0;

    for (uint32_t seed = 0; seed < draws(30); seed++) {
        uint64_t most[3] = {0};
        uint32_t worst = 0;
        mpl_rng rng;
        mpl_sym_problem *sp;

        mpl_rng_init(&rng, 500 + seed);
        sp = random_sym(ctx, &rng, 12, 2, SYM_PAIRS | SYM_ALIGNED);
        for (uint32_t k = 0; k < 3; k++) {
            mpl_template *t = NULL;
            mpl_run run;
            mpl_template_ask ask = {.method = MPL_TEMPLATE_SEARCH, .cells = 1U << k};

            mpl_run_init(&run, ctx);
            run.budget_ticks = 100000;
            assert_ok(ctx, mpl_template_plan(&run, sp, &ask, &t));
            most[k] = mpl_template_most(t, &worst);
            for (uint32_t i = 0; i < t->n_cells; i++)
                assert_true(t->cell[i].regret.most <= most[k]);
            assert_int_equal(t->cell[worst].regret.most, most[k]);
            mpl_template_free(ctx, t);
        }
        assert_true(most[1] <= most[0] + 1000 && most[2] <= most[1] + 1000);
        better += most[2] + 2000 < most[0];
        free_sym(ctx, sp);
    }
    assert_true(often(better > 2));
}

/* ---- files ---- */

static mpl_template *some_template(mpl_ctx *ctx, mpl_sym_problem **sp, uint32_t seed)
{
    mpl_template *t = NULL;
    mpl_run run;
    mpl_template_ask ask = {.method = seed % 4 == 3 ? MPL_TEMPLATE_CONSTANT : MPL_TEMPLATE_SEARCH,
                            .cells = 3};
    mpl_rng rng;

    mpl_rng_init(&rng, seed);
    *sp = random_sym(ctx, &rng, 6, 2, seed % 32 & ~SYM_WIDE);
    mpl_run_init(&run, ctx);
    run.budget_ticks = 100000;
    assert_ok(ctx, mpl_template_plan(&run, *sp, &ask, &t));
    return t;
}

static char *written(mpl_ctx *ctx, const char *name, const mpl_template *t, const char *fields)
{
    char *text = NULL;
    size_t size;

    assert_ok(ctx, mpl_template_write(ctx, in_folder(name), t, fields));
    assert_ok(ctx, mpl_file_read(ctx, in_folder(name), &text, &size));
    return text;
}

TEST(what_is_read_is_what_was_written)
{
    for (uint32_t seed = 0; seed < draws(40); seed++) {
        mpl_sym_problem *sp = NULL;
        mpl_template *t = some_template(ctx, &sp, seed), *again = NULL;
        owned_memory char *first = written(ctx, "a.json", t, "{\"scope\":\"all shapes\"}");
        owned_memory char *fields = NULL, *second = NULL;
        int64_t value[MPL_MAX_SYMBOLS] = {-1};

        assert_ok(ctx, mpl_template_read(ctx, in_folder("a.json"), &again, &fields));
        assert_string_equal(fields, "{\"scope\":\"all shapes\"}");
        second = written(ctx, "b.json", again, fields);
        assert_string_equal(first, second);
        assert_ok(ctx, mpl_verify_template(ctx, again, 20000));
        while (next_point(sp->exprs, value))
            assert_int_equal(assert_valid_at(ctx, t, value), assert_valid_at(ctx, again, value));
        mpl_template_free(ctx, again);
        mpl_template_free(ctx, t);
        free_sym(ctx, sp);
    }
}

static const struct {
    const char *from, *to, *said;
} hostile[] = {
    {"\"kind\":\"template\"", "\"kind\":\"plan\"", "'kind' is not \"template\""},
    {"\"schema\":1", "\"schema\":9", "'schema' is not 1"},
    {"\"first\":", "\"first\":-", "'first' is missing"},
    {"\"relations\":[[", "\"relations\":[[77,", "something else than pairs"},
    {"\"relations\":[[", "\"relations\":[[0,0],[", "buffer 0 cannot lie below 0"},
    {"\"bytes\":[\"", "\"bytes\":[\"7+", "the size or place of buffer 0"},
    {"\"bytes\":[\"", "\"bytes\":[\"(", "a.json"},
    {"\"low\":[0", "\"low\":[0,0,0", "'low' is missing or no list of the right length"},
    {"\"cells\":[{", "\"cells\":[],\"old\":[{", "has no cells"},
    {"\"loads\":[[", "\"loads\":[[99,", "'loads' is missing or holds no number"},
    {"\"on\":[", "\"on\":[[0,5],[5,0],", "a.json"},
};

TEST(hostile_files_are_one_line)
{
    mpl_sym_problem *sp = NULL;
    mpl_template *t = some_template(ctx, &sp, 0), *read = NULL;
    owned_memory char *text = written(ctx, "a.json", t, NULL);

    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        char *at = strstr(text, hostile[i].from);
        FILE *f = fopen(in_folder("a.json"), "w");

        assert_non_null(at);
        fprintf(f, "%.*s%s%s", (int)(at - text), text, hostile[i].to, at + strlen(hostile[i].from));
        fclose(f);
        assert_status(ctx, mpl_template_read(ctx, in_folder("a.json"), &read, NULL), MPL_EINPUT);
        if (strstr(ctx->message, hostile[i].said) == NULL ||
            strncmp(ctx->message, folder, strlen(folder)) != 0)
            fail_msg("row %zu: %s", i, ctx->message);
    }
    mpl_template_free(ctx, t);
    free_sym(ctx, sp);
}

TEST(shapes_outside_are_refused)
{
    mpl_sym_problem *sp = NULL;
    mpl_template *t = some_template(ctx, &sp, SYM_RELATED);
    int64_t value[2] = {mpl_exprs_symbol(sp->exprs, 0)->last + 1,
                        mpl_exprs_symbol(sp->exprs, 1)->first};
    uint64_t offset[6];

    assert_status(ctx, mpl_template_offsets(ctx, t, value, offset, NULL, NULL), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "the template is for"));
    mpl_template_free(ctx, t);
    free_sym(ctx, sp);
}

TEST(memory_may_run_out_anywhere)
{
    mpl_sym_problem *sp = NULL;
    mpl_template *t = some_template(ctx, &sp, 3 | SYM_FAMILIES);

    assert_ok(ctx, mpl_template_write(ctx, in_folder("a.json"), t, NULL));
    mpl_template_free(ctx, t);
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_template *read = NULL;

        st = mpl_template_read(ctx, in_folder("a.json"), &read, NULL);
        if (st == MPL_OK)
            st = mpl_verify_template(ctx, read, 20000);
        mpl_template_free(ctx, read);
    }
    for (mpl_template_method method = 0; method < MPL_TEMPLATE_METHODS; method++)
        EACH_ALLOCATION_FAILS (ctx, st) {
            mpl_template *made = NULL;
            mpl_template_ask ask = {.method = method, .cells = 1};
            mpl_run run;

            mpl_run_init(&run, ctx);
            run.budget_ticks = 10000;
            if (method == MPL_TEMPLATE_EXACT)
                run.budget_ticks = 10000000;
            st = mpl_template_plan(&run, sp, &ask, &made);
            mpl_template_free(ctx, made);
        }
    free_sym(ctx, sp);
}

static int make_folder(void)
{
    return folder_make("template");
}

TESTS_WITHIN(make_folder, folder_remove, every_method_is_valid_at_every_shape,
             a_constant_plan_reserves_once, wide_ranges_are_proved, cut_proofs_are_wider_and_true,
             cells_lower_the_regret, what_is_read_is_what_was_written, hostile_files_are_one_line,
             shapes_outside_are_refused, memory_may_run_out_anywhere)
