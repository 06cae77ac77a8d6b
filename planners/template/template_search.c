/* template_search.c -- templates of little worst regret, cut into cells.
 *
 * Idea     A plan of one shape shows an order of its buffers by height. The orders of plans at
 *          corners, at drawn shapes and at the worst shapes found are judged over all of these;
 *          the best is improved along the chain of buffers that makes its worst arena. Proving its
 *          regret finds the next worst shape. Where that is too much, the box is cut where two
 *          orders serve the halves best.
 * Source   this project */
#include "graphs/symbols/symbols.h"
#include "planners/template/template_priv.h"

enum { ROUNDS = 6, DRAWN = 24, PLANNED = 10, SEARCH_BOXES = 400, SLACK = 500 };
#define FLIP_TICKS UINT64_C(200000000) /* of the improvements of a cell */

const char *const mpl_template_method_name[MPL_TEMPLATE_METHODS] = {"search", "exact", "constant",
                                                                    "equal",  "slab",  "example"};

/* ---- improvement ---- */

/* Gives the body of rank `from` the rank `to`; those between move by one. */
static void move_body(const mpl_draft *draft, mpl_layout *layout, uint32_t from, uint32_t to)
{
    for (mpl_buffer b = 0; b < draft->p->n; b++) {
        uint32_t *rank = &layout->rank[b];

        if (*rank == from)
            *rank = to;
        else if (from<to && * rank> from && *rank <= to)
            --*rank;
        else if (to < from && *rank >= to && *rank < from)
            ++*rank;
    }
}

/* The buffer below b's body that decides where that begins, at draft->offset; MPL_NONE: none does.
 */
static mpl_buffer support_of(const mpl_draft *draft, const mpl_layout *layout,
                             const mpl_scene *scene, mpl_buffer b, uint64_t *most)
{
    mpl_buffer best = MPL_NONE;

    *most = 0;
    for (mpl_buffer c = 0; c < draft->p->n; c++)
        for (uint32_t i = draft->rival_begin[c];
             layout->rank[c] == layout->rank[b] && i < draft->rival_begin[c + 1]; i++) {
            mpl_buffer a = draft->rival[i];
            uint64_t end = draft->offset[a] + scene->bytes[a];

            if (layout->rank[a] < layout->rank[b] && end > draft->distance[c] &&
                end - draft->distance[c] > *most)
                *most = end - draft->distance[c], best = a;
        }
    return best;
}

/* The ranks of the bodies that make the height of a scene, falling, in draft->chain. */
static uint32_t find_chain(mpl_draft *draft, const mpl_layout *layout, const mpl_scene *scene)
{
    uint64_t top = mpl_layout_height(draft, layout, scene), most;
    mpl_buffer b = 0;
    uint32_t n = 0;

    while (draft->p->pool[b] != 0 || draft->offset[b] + scene->bytes[b] != top)
        b++;
    for (; b != MPL_NONE; b = support_of(draft, layout, scene, b, &most))
        draft->chain[n++] = layout->rank[b];
    return n;
}

/* Moves one body of the worst scene's chain beyond its neighbour. False: no such move is better. */
static bool improve_once(mpl_draft *draft, mpl_layout *layout, mpl_layout *trial, mpl_ratio *worst)
{
    uint32_t at = 0, n;

    mpl_layout_worst(draft, layout, &at);
    n = find_chain(draft, layout, &draft->scene[at]);
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t up = 0; up < 2; up++) {
            mpl_ratio now;

            mpl_layout_copy(draft, trial, layout);
            move_body(draft, trial, draft->chain[i + (up == 0)], draft->chain[i + (up != 0)]);
            now = mpl_layout_worst(draft, trial, NULL);
            if (mpl_ratio_less(now, *worst)) {
                *worst = now;
                mpl_layout_copy(draft, layout, trial);
                return true;
            }
        }
    return false;
}

static mpl_status improve(mpl_draft *draft, mpl_layout *layout)
{
    mpl_status st = MPL_OK;
    mpl_layout trial = {0};
    mpl_ratio worst = mpl_layout_worst(draft, layout, NULL);
    uint64_t until = draft->ticks + mpl_min_u64(FLIP_TICKS, draft->run->budget_ticks);

    MPL_TRY(mpl_layout_new(draft, &trial));
    while (worst.arena > worst.bound && draft->ticks < until && !mpl_run_late(draft->run) &&
           improve_once(draft, layout, &trial, &worst))
        ;
out:
    mpl_layout_free(draft->ctx, &trial);
    return st;
}

/* ---- one cell ---- */

typedef struct cell_search {
    mpl_draft *draft;
    mpl_template *tmpl;
    uint32_t k;
    uint32_t most_boxes;
    uint32_t n; /* candidates */
    size_t cap;
    mpl_layout *candidate;
    mpl_layout trial, best;
    mpl_ratio least; /* attained by the best */
} cell_search;

static bool in_box(const mpl_exprs *exprs, const mpl_box *box, const int64_t *value)
{
    for (uint32_t i = 0; i < box->n; i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);
        int64_t count = (value[i] - symbol->first) / symbol->step;

        if (count < box->low[i] || count > box->high[i])
            return false;
    }
    return true;
}

/* Scenes at the corners of the box, its middle, and drawn. */
static mpl_status add_scenes(mpl_draft *draft)
{
    const mpl_exprs *exprs = draft->sp->exprs;
    int64_t value[MPL_MAX_SYMBOLS];
    uint32_t n = draft->box.n < 3 ? draft->box.n : 3;
    mpl_rng rng;

    for (uint32_t corner = 0; corner <= 1U << n; corner++) {
        for (uint32_t i = 0; i < draft->box.n; i++) {
            const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);
            int64_t count = corner == 1U << n ? (draft->box.low[i] + draft->box.high[i]) / 2
                            : (corner >> (i % 3) & 1) != 0 ? draft->box.high[i]
                                                           : draft->box.low[i];

            value[i] = symbol->first + count * symbol->step;
        }
        if (mpl_point_allowed(exprs, value))
            MPL_PASS(mpl_draft_add(draft, value));
    }
    for (uint64_t corner = 1; corner < 1U << n; corner++) {
        MPL_PASS(mpl_point_corner(draft->ctx, exprs, corner, value));
        if (in_box(exprs, &draft->box, value))
            MPL_PASS(mpl_draft_add(draft, value));
    }
    mpl_rng_init(&rng, draft->run->seed);
    for (uint32_t i = 0; i < DRAWN; i++)
        if (mpl_shape_draw(draft->ctx, exprs, &draft->box, true, &rng, value) == MPL_OK)
            MPL_PASS(mpl_draft_add(draft, value));
    return MPL_OK;
}

static mpl_status add_layout(cell_search *search, const mpl_layout *layout)
{
    mpl_layout copy = {0};

    MPL_PASS(mpl_reserve(search->draft->ctx, search->candidate, search->cap, search->n + 1));
    MPL_PASS(mpl_layout_new(search->draft, &copy));
    if (layout != NULL)
        mpl_layout_copy(search->draft, &copy, layout);
    search->candidate[search->n++] = copy;
    return MPL_OK;
}

/* Plans scene i: one candidate more, and one improved over all scenes. */
static mpl_status add_candidate(cell_search *search, uint32_t i)
{
    mpl_layout at_scene;

    MPL_PASS(add_layout(search, NULL));
    MPL_PASS(
        mpl_layout_at(search->draft, &search->draft->scene[i], &search->candidate[search->n - 1]));
    at_scene = search->candidate[search->n - 1]; /* the list may move as it grows */
    MPL_PASS(add_layout(search, &at_scene));
    return improve(search->draft, &search->candidate[search->n - 1]);
}

/* The candidate of the least worst ratio over all scenes, into search->trial. */
static mpl_ratio choose(cell_search *search)
{
    mpl_ratio best = {UINT64_MAX, 1};

    for (uint32_t i = 0; i < search->n; i++) {
        mpl_ratio r = mpl_layout_worst(search->draft, &search->candidate[i], NULL);

        if (mpl_ratio_less(r, best)) {
            best = r;
            mpl_layout_copy(search->draft, &search->trial, &search->candidate[i]);
        }
    }
    return best;
}

/* Gives the cell a layout, and its regret. */
static mpl_status settle(cell_search *search, const mpl_layout *layout, uint64_t slack,
                         uint32_t most_boxes)
{
    mpl_template_cell *cell = &search->tmpl->cell[search->k];

    mpl_free_each(search->draft->ctx, cell->below, cell->above);
    cell->below = cell->above = NULL, cell->n_relations = 0;
    MPL_PASS(mpl_layout_relations(search->draft, layout, cell));
    MPL_PASS(mpl_template_ready_cell(search->draft->ctx, search->tmpl, search->k));
    return mpl_regret_of(search->draft->run, search->tmpl, search->k, slack, most_boxes);
}

/* Whether the cell's worst known shape is no worse than the shapes of the scenes. */
static bool is_covered(const cell_search *search, mpl_ratio seen)
{
    const mpl_regret *regret = &search->tmpl->cell[search->k].regret;

    return regret->bound == 0 || mpl_ratio_parts((mpl_ratio){regret->arena, regret->bound}) <=
                                     mpl_ratio_parts(seen) + SLACK;
}

/* Settles on search->trial for now; keeps it if no layout before had less regret. */
static mpl_status judge_layout(cell_search *search)
{
    const mpl_regret *regret = &search->tmpl->cell[search->k].regret;
    mpl_ratio now;

    MPL_PASS(settle(search, &search->trial, SLACK, SEARCH_BOXES));
    now = (mpl_ratio){regret->arena, mpl_max_u64(regret->bound, 1)};
    if (mpl_ratio_less(now, search->least)) {
        search->least = now;
        mpl_layout_copy(search->draft, &search->best, &search->trial);
    }
    return MPL_OK;
}

static mpl_status search_cell(cell_search *search)
{
    uint32_t corners;
    mpl_ratio seen;

    if (search->n > 0) { /* what the whole had */
        mpl_layout_copy(search->draft, &search->trial, &search->candidate[0]);
        MPL_PASS(judge_layout(search));
    }
    MPL_PASS(add_scenes(search->draft));
    corners = search->draft->n_scenes < PLANNED ? search->draft->n_scenes : PLANNED;
    for (uint32_t i = 0; i < corners; i++) {
        MPL_PASS(add_candidate(search, i));
        seen = choose(search);
        if (seen.arena <= seen.bound || mpl_run_late(search->draft->run))
            break;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        seen = choose(search);
        MPL_PASS(judge_layout(search));
        if (is_covered(search, seen) || mpl_run_late(search->draft->run))
            break;
        MPL_PASS(mpl_draft_add(search->draft, search->tmpl->cell[search->k].regret.at));
        MPL_PASS(add_candidate(search, search->draft->n_scenes - 1));
    }
    return settle(search, &search->best, SLACK, search->most_boxes);
}

/* The least worst ratio over some shapes bounds that over all; the worst one is added until the
 * two are equal. */
static mpl_status exact_cell(cell_search *search)
{
    mpl_regret *regret = &search->tmpl->cell[search->k].regret;

    MPL_PASS(add_scenes(search->draft));
    for (;;) {
        uint32_t n = search->draft->n_scenes;
        mpl_ratio seen;

        MPL_PASS(mpl_template_exact(search->draft, &search->best, &seen));
        MPL_PASS(settle(search, &search->best, 0, search->most_boxes));
        if (regret->bound == 0 || !mpl_ratio_less(seen, (mpl_ratio){regret->arena, regret->bound}))
            return MPL_OK;
        MPL_PASS(mpl_draft_add(search->draft, regret->at));
        mpl_assert(search->draft->n_scenes > n);
    }
}

/* ---- cells ---- */

/* The worst ratio over the scenes on one side of a cut by the best candidate for that side. */
static mpl_ratio side_of(cell_search *search, uint32_t symbol, int64_t most, bool left)
{
    mpl_ratio best = {UINT64_MAX, 1};

    for (uint32_t c = 0; c < search->n; c++) {
        mpl_ratio worst = {0, 1};

        for (uint32_t i = 0; i < search->draft->n_scenes; i++) {
            const mpl_scene *scene = &search->draft->scene[i];
            mpl_ratio r;

            if ((scene->value[symbol] <= most) != left)
                continue;
            r = (mpl_ratio){mpl_layout_height(search->draft, &search->candidate[c], scene),
                            scene->bound};
            worst = mpl_ratio_less(worst, r) ? r : worst;
        }
        best = mpl_ratio_less(worst, best) ? worst : best;
    }
    return best;
}

/* Where to cut the cell: the last count of the left side; MPL_NONE: it is one point. */
static uint32_t find_cut(cell_search *search, int64_t *last)
{
    mpl_ratio best = {UINT64_MAX, 1};
    uint32_t symbol = MPL_NONE;

    for (uint32_t i = 0; i < search->draft->box.n; i++) {
        const mpl_symbol *name = mpl_exprs_symbol(search->draft->sp->exprs, i);

        for (uint32_t k = 0; k < search->draft->n_scenes; k++) {
            int64_t value = search->draft->scene[k].value[i];
            mpl_ratio left, right;

            if ((value - name->first) / name->step >= search->draft->box.high[i])
                continue;
            left = side_of(search, i, value, true), right = side_of(search, i, value, false);
            left = mpl_ratio_less(left, right) ? right : left;
            if (mpl_ratio_less(left, best)) {
                best = left, symbol = i;
                *last = (value - name->first) / name->step;
            }
        }
    }
    return symbol;
}

static void close_search(cell_search *search)
{
    mpl_ctx *ctx = search->draft->ctx;

    for (uint32_t i = 0; i < search->n; i++)
        mpl_layout_free(ctx, &search->candidate[i]);
    mpl_layout_free(ctx, &search->trial);
    mpl_layout_free(ctx, &search->best);
    mpl_free(ctx, search->candidate);
    mpl_draft_fini(search->draft);
}

/* A planned cell: its layout, and the best place to cut it. */
typedef struct planned {
    mpl_layout best;
    uint32_t cut; /* MPL_NONE: it is one shape */
    int64_t last;
} planned;

/* Plans cell k, from the layout of the cell that it was part of. */
static mpl_status plan_cell(mpl_run *run, mpl_template *tmpl, uint32_t k,
                            mpl_template_method method, uint32_t most_boxes, planned *own,
                            const planned *whole)
{
    mpl_status st = MPL_OK;
    mpl_draft m = {0};
    cell_search s = {
        .draft = &m, .tmpl = tmpl, .k = k, .most_boxes = most_boxes, .least = {UINT64_MAX, 1}};

    MPL_TRY(mpl_draft_init(run, tmpl->problem, &tmpl->cell[k].box, &m));
    MPL_TRY(mpl_layout_new(&m, &s.trial));
    MPL_TRY(mpl_layout_new(&m, &s.best));
    if (whole->best.on != NULL)
        MPL_TRY(add_layout(&s, &whole->best));
    MPL_TRY(method == MPL_TEMPLATE_EXACT ? exact_cell(&s) : search_cell(&s));
    own->cut = find_cut(&s, &own->last);
    if (own->best.on == NULL)
        MPL_TRY(mpl_layout_new(&m, &own->best));
    mpl_layout_copy(&m, &own->best, &s.best);
out:
    run->ticks += m.ticks;
    close_search(&s);
    return st;
}

/* Makes cell k end at `last` of a symbol, and the last cell begin after it. */
static mpl_status cut_cell(mpl_ctx *ctx, mpl_template *tmpl, uint32_t k, uint32_t symbol,
                           int64_t last)
{
    mpl_template_cell *cell;

    MPL_PASS(mpl_realloc_bytes(ctx, (void **)&tmpl->cell, tmpl->n_cells, tmpl->n_cells + 1,
                               sizeof *tmpl->cell));
    cell = &tmpl->cell[tmpl->n_cells++];
    cell->regret.most = UINT64_MAX;
    MPL_PASS(mpl_box_new(ctx, tmpl->problem->exprs, &cell->box));
    MPL_PASS(mpl_new(ctx, cell->on, tmpl->problem->at->n));
    for (mpl_buffer b = 0; b < tmpl->problem->at->n; b++)
        cell->on[b] = b;
    memcpy(cell->box.low, tmpl->cell[k].box.low, cell->box.n * sizeof(int64_t));
    memcpy(cell->box.high, tmpl->cell[k].box.high, cell->box.n * sizeof(int64_t));
    cell->box.low[symbol] = last + 1;
    tmpl->cell[k].box.high[symbol] = last;
    return MPL_OK;
}

uint64_t mpl_template_most(const mpl_template *tmpl, uint32_t *worst)
{
    uint32_t k = 0;

    for (uint32_t i = 1; i < tmpl->n_cells; i++)
        if (tmpl->cell[i].regret.most > tmpl->cell[k].regret.most)
            k = i;
    if (worst != NULL)
        *worst = k;
    return tmpl->cell[k].regret.most;
}

enum { MOST_CELLS = 64 };

static mpl_status plan_cells(mpl_run *run, mpl_template *tmpl, const mpl_template_ask *ask,
                             uint32_t most_boxes)
{
    mpl_status st = MPL_OK;
    planned known[MOST_CELLS] = {{{0}, 0, 0}};
    uint32_t worst = 0;

    MPL_TRY(plan_cell(run, tmpl, 0, ask->method, most_boxes, &known[0], &known[0]));
    while (tmpl->n_cells < ask->cells && tmpl->n_cells < MOST_CELLS &&
           mpl_template_most(tmpl, &worst) > MPL_REGRET_ONE + SLACK &&
           known[worst].cut != MPL_NONE) {
        uint32_t n = tmpl->n_cells;
        planned *whole = &known[worst];

        MPL_TRY(cut_cell(run->ctx, tmpl, worst, whole->cut, whole->last));
        MPL_TRY(plan_cell(run, tmpl, n, ask->method, most_boxes, &known[n], whole));
        MPL_TRY(plan_cell(run, tmpl, worst, ask->method, most_boxes, whole, whole));
    }
out:
    for (uint32_t k = 0; k < MOST_CELLS; k++)
        mpl_layout_free(run->ctx, &known[k].best);
    return st;
}

/* ---- the door ---- */

static mpl_status refuse_problem(mpl_ctx *ctx, const mpl_sym_problem *sp)
{
    int64_t value[MPL_MAX_SYMBOLS];

    for (mpl_buffer b = 0; sp->at->fixed != NULL && b < sp->at->n; b++)
        if (sp->at->fixed[b] != MPL_UNFIXED)
            return MPL_ERROR(
                ctx, MPL_EUNAVAIL,
                "a template moves all buffers, and the offset of buffer %u is decided: "
                "plan one shape instead",
                b);
    for (uint32_t i = 0; i < sp->at->n_pools; i++)
        if (sp->at->pool_capacity[i] != MPL_NO_CAPACITY)
            return MPL_ERROR(
                ctx, MPL_EUNAVAIL,
                "a template's arena grows with its sizes, and pool '%.60s' has a capacity: "
                "plan one shape instead",
                sp->at->pool_name[i]);
    return mpl_point_corner(ctx, sp->exprs, 0, value);
}

/* One cell of a method that others use. */
static mpl_status plan_baseline(mpl_run *run, mpl_template *tmpl, const mpl_template_ask *ask,
                                uint32_t most_boxes)
{
    mpl_status st = MPL_OK;
    mpl_draft m = {0};

    MPL_TRY(mpl_draft_init(run, tmpl->problem, NULL, &m));
    MPL_TRY(mpl_template_baseline(&m, ask, tmpl));
    MPL_TRY(mpl_template_ready(run->ctx, tmpl));
    MPL_TRY(mpl_regret_of(run, tmpl, 0, SLACK, most_boxes));
out:
    run->ticks += m.ticks;
    mpl_draft_fini(&m);
    return st;
}

enum { MOST_WIDENED = 6 };

/* Checks the template. Regrets that the checker does not prove within its boxes are stated wider,
 * at last not at all: the template is right for every shape without them. */
static mpl_status check(mpl_run *run, mpl_template *tmpl, uint32_t most_boxes)
{
    mpl_status st = mpl_verify_template(run->ctx, tmpl, most_boxes);

    for (uint32_t widened = 0; st == MPL_ELIMIT && widened < MOST_WIDENED; widened++) {
        for (uint32_t k = 0; k < tmpl->n_cells; k++) {
            uint64_t *most = &tmpl->cell[k].regret.most;

            *most = widened + 1 == MOST_WIDENED || *most > MPL_REGRET_MOST / 2
                        ? UINT64_MAX
                        : *most + *most / 16 + (*most - MPL_REGRET_ONE) / 2;
        }
        st = mpl_verify_template(run->ctx, tmpl, most_boxes);
    }
    return st;
}

mpl_status mpl_template_plan(mpl_run *run, const mpl_sym_problem *sp, const mpl_template_ask *ask,
                             mpl_template **out)
{
    mpl_status st = MPL_OK;
    mpl_template *tmpl = NULL;
    uint32_t most_boxes = ask->most_boxes != 0 ? ask->most_boxes : 20000;

    MPL_TRY(refuse_problem(run->ctx, sp));
    MPL_TRY(mpl_template_new(run->ctx, sp, 1, &tmpl));
    MPL_TRY(mpl_regret_loads(run->ctx, tmpl));
    if (ask->method == MPL_TEMPLATE_SEARCH || ask->method == MPL_TEMPLATE_EXACT)
        MPL_TRY(plan_cells(run, tmpl, ask, most_boxes));
    else
        MPL_TRY(plan_baseline(run, tmpl, ask, most_boxes));
    MPL_TRY(check(run, tmpl, 8 * most_boxes));
    *out = tmpl, tmpl = NULL;
out:
    mpl_template_free(run->ctx, tmpl);
    return st;
}
