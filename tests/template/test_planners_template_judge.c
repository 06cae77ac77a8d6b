/* Templates changed at random: none is accepted that is wrong at any shape of its range, or exceeds
 * its stated regret. MPL_JUDGED: how many changes (1,000,000 are the claim). */
#include "tests/template/random_template.h"

enum { CHANGES = 500 }; /* of one template */

/* A copy of what changes touch. */
typedef struct kept {
    mpl_template_cell *cell;
    mpl_buffer *load;
    uint32_t n_loads, *load_begin;
} kept;

static void *copy_of(const void *from, size_t bytes)
{
    void *to = from != NULL ? malloc(bytes + 1) : NULL;

    if (to != NULL)
        memcpy(to, from, bytes);
    return to;
}

static kept keep(const mpl_template *t)
{
    uint32_t n = t->problem->at->n, n_loads = t->load_begin[t->n_loads];
    kept k = {copy_of(t->cell, t->n_cells * sizeof *t->cell),
              copy_of(t->load, n_loads * sizeof *t->load), t->n_loads,
              copy_of(t->load_begin, (t->n_loads + 1) * sizeof *t->load_begin)};

    for (uint32_t i = 0; i < t->n_cells; i++) {
        mpl_template_cell *cell = &k.cell[i];

        cell->on = copy_of(cell->on, n * sizeof *cell->on);
        cell->below = copy_of(cell->below, cell->n_relations * sizeof *cell->below);
        cell->above = copy_of(cell->above, cell->n_relations * sizeof *cell->above);
        cell->offset = copy_of(cell->offset, n * sizeof *cell->offset);
        cell->arena = copy_of(cell->arena, t->problem->at->n_pools * sizeof *cell->arena);
        cell->box.low = copy_of(cell->box.low, cell->box.n * sizeof *cell->box.low);
        cell->box.high = copy_of(cell->box.high, cell->box.n * sizeof *cell->box.high);
        cell->regret.at = copy_of(cell->regret.at, cell->box.n * sizeof *cell->regret.at);
    }
    return k;
}

static void put_back(const kept *k, mpl_template *t)
{
    uint32_t n = t->problem->at->n;

    t->n_loads = k->n_loads;
    memcpy(t->load_begin, k->load_begin, (k->n_loads + 1) * sizeof *t->load_begin);
    if (t->load != NULL)
        memcpy(t->load, k->load, t->load_begin[t->n_loads] * sizeof *t->load);
    for (uint32_t i = 0; i < t->n_cells; i++) {
        mpl_template_cell *to = &t->cell[i];
        const mpl_template_cell *from = &k->cell[i];

        to->n_relations = from->n_relations;
        to->regret.arena = from->regret.arena, to->regret.bound = from->regret.bound;
        to->regret.most = from->regret.most;
        memcpy(to->on, from->on, n * sizeof *to->on);
        if (from->n_relations > 0) {
            memcpy(to->below, from->below, from->n_relations * sizeof *to->below);
            memcpy(to->above, from->above, from->n_relations * sizeof *to->above);
        }
        if (to->offset != NULL)
            memcpy(to->offset, from->offset, n * sizeof *to->offset);
        if (to->arena != NULL)
            memcpy(to->arena, from->arena, t->problem->at->n_pools * sizeof *to->arena);
        memcpy(to->box.low, from->box.low, to->box.n * sizeof *to->box.low);
        memcpy(to->box.high, from->box.high, to->box.n * sizeof *to->box.high);
        if (to->regret.at != NULL)
            memcpy(to->regret.at, from->regret.at, to->box.n * sizeof *to->regret.at);
    }
}

static void forget(kept *k, uint32_t n_cells)
{
    for (uint32_t i = 0; i < n_cells; i++) {
        mpl_template_cell *cell = &k->cell[i];

        free(cell->on), free(cell->below), free(cell->above), free(cell->offset);
        free(cell->arena);
        free(cell->box.low), free(cell->box.high), free(cell->regret.at);
    }
    free(k->cell), free(k->load), free(k->load_begin);
}

/* Changes relations: one is dropped, turned, or joins others. */
static void change_relation(mpl_template_cell *cell, uint32_t n, mpl_rng *rng)
{
    uint32_t i;

    if (cell->n_relations == 0)
        return;
    i = drawn(rng, cell->n_relations);
    switch (drawn(rng, 4)) {
    case 0:
        cell->n_relations--;
        cell->below[i] = cell->below[cell->n_relations];
        cell->above[i] = cell->above[cell->n_relations];
        break;
    case 1: {
        mpl_buffer low = cell->below[i];

        cell->below[i] = cell->above[i], cell->above[i] = low;
        break;
    }
    case 2:
        cell->below[i] = drawn(rng, n);
        break;
    default:
        cell->above[i] = drawn(rng, n);
    }
}

static void change(mpl_template *t, mpl_rng *rng)
{
    uint32_t n = t->problem->at->n, s;
    mpl_template_cell *cell = &t->cell[drawn(rng, t->n_cells)];

    s = drawn(rng, cell->box.n);
    switch (drawn(rng, 10)) {
    case 0:
        cell->on[drawn(rng, n)] = drawn(rng, n);
        break;
    case 1:
        cell->box.high[s] += (int64_t)drawn(rng, 3) - 1;
        break;
    case 2:
        cell->box.low[s] += (int64_t)drawn(rng, 3) - 1;
        break;
    case 3:
        if (cell->regret.most != UINT64_MAX)
            cell->regret.most -= drawn(rng, 2) == 0 ? 1 + drawn(rng, 2000) : drawn(rng, 100000);
        break;
    case 4:
        if (t->n_loads > 0)
            t->load[drawn(rng, t->load_begin[t->n_loads])] = drawn(rng, n);
        break;
    case 5:
        cell->regret.arena += drawn(rng, 3) - 1;
        break;
    case 6:
        if (cell->arena != NULL && drawn(rng, 2) == 0)
            cell->arena[0] += drawn(rng, 64) - 32U;
        else if (cell->offset != NULL)
            cell->offset[drawn(rng, n)] += drawn(rng, 64) - 32U;
        else
            change_relation(cell, n, rng);
        break;
    default:
        change_relation(cell, n, rng);
    }
}

/* Whether the template is right at every shape, by the verifier of plans and by division. */
static bool is_right(mpl_ctx *ctx, const mpl_template *t)
{
    int64_t value[MPL_MAX_SYMBOLS] = {-1};

    while (next_point(t->problem->exprs, value)) {
        owned_problem *p = NULL;
        owned_plan *plan = NULL;
        uint64_t bound = 0, pool[8] = {0};
        uint32_t k = 0;

        assert_ok(ctx, mpl_sym_problem_at(ctx, t->problem, value, &p));
        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        if (mpl_template_offsets(ctx, t, value, plan->offset, NULL, pool) != MPL_OK)
            return false;
        plan->claim = MPL_FEASIBLE;
        if (mpl_verify(ctx, p, plan) != MPL_OK || plan->peak_bytes > pool[0])
            return false;
        assert_ok(ctx, mpl_template_bound(ctx, t->problem, value, &bound));
        assert_ok(ctx, mpl_template_find(ctx, t, value, &k));
        if (t->cell[k].regret.most != UINT64_MAX &&
            pool[0] * MPL_REGRET_ONE > bound * t->cell[k].regret.most)
            return false;
    }
    return true;
}

/* Judges changes of one template; returns how many were accepted. */
static uint32_t judge(mpl_ctx *ctx, uint32_t seed, uint32_t n_changes)
{
    mpl_rng rng;
    mpl_sym_problem *sp;
    mpl_template *t = NULL;
    mpl_run run;
    mpl_template_ask ask = {.method = seed % 5 == 4 ? MPL_TEMPLATE_CONSTANT : MPL_TEMPLATE_SEARCH,
                            .cells = 1 + seed % 3};
    uint32_t accepted = 0;
    kept original;

    mpl_rng_init(&rng, seed);
    sp = random_sym(ctx, &rng, 3 + drawn(&rng, 6), 1 + drawn(&rng, 2), drawn(&rng, 32) & ~SYM_WIDE);
    mpl_run_init(&run, ctx);
    run.budget_ticks = 20000;
    assert_ok(ctx, mpl_template_plan(&run, sp, &ask, &t));
    original = keep(t);
    for (uint32_t i = 0; i < n_changes; i++) {
        for (uint32_t k = 0; k <= drawn(&rng, 3); k++)
            change(t, &rng);
        if (mpl_template_ready(ctx, t) == MPL_OK && mpl_verify_template(ctx, t, 20000) == MPL_OK) {
            accepted++;
            if (!is_right(ctx, t))
                fail_msg("seed %u, change %u: accepted, and wrong: %s", seed, i, ctx->message);
        }
        put_back(&original, t);
    }
    forget(&original, t->n_cells);
    assert_ok(ctx, mpl_template_ready(ctx, t));
    assert_ok(ctx, mpl_verify_template(ctx, t, 20000));
    mpl_template_free(ctx, t);
    free_sym(ctx, sp);
    return accepted;
}

TEST(no_changed_template_is_accepted_wrongly)
{
    const char *asked = getenv("MPL_JUDGED");
    uint32_t n = asked != NULL ? (uint32_t)strtoul(asked, NULL, 10) : draws(80000), accepted = 0;

    for (uint32_t done = 0; done < n; done += CHANGES)
        accepted += judge(ctx, done / CHANGES, n - done < CHANGES ? n - done : CHANGES);
    if (asked != NULL)
        print_message("%u changed templates, %u accepted, each right\n", n, accepted);
    assert_true(accepted > n / 100 && accepted < n / 2);
}

TESTS(no_changed_template_is_accepted_wrongly)
