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
static void move_body(const mpl_draft *m, mpl_layout *l, uint32_t from, uint32_t to)
{
    for (mpl_buffer b = 0; b < m->p->n; b++) {
        uint32_t *rank = &l->rank[b];

        if (*rank == from)
            *rank = to;
        else if (from<to && * rank> from && *rank <= to)
            --*rank;
        else if (to < from && *rank >= to && *rank < from)
            ++*rank;
    }
}

/* The buffer below b's body that decides where that begins, at m->offset; MPL_NONE: none does. */
static mpl_buffer support_of(const mpl_draft *m, const mpl_layout *l, const mpl_scene *scene,
                             mpl_buffer b, uint64_t *most)
{
    mpl_buffer best = MPL_NONE;

    *most = 0;
    for (mpl_buffer c = 0; c < m->p->n; c++)
        for (uint32_t i = m->rival_begin[c]; l->rank[c] == l->rank[b] && i < m->rival_begin[c + 1];
             i++) {
            mpl_buffer a = m->rival[i];
            uint64_t end = m->offset[a] + scene->bytes[a];

            if (l->rank[a] < l->rank[b] && end > m->distance[c] && end - m->distance[c] > *most)
                *most = end - m->distance[c], best = a;
        }
    return best;
}

/* The ranks of the bodies that make the height of a scene, falling, in m->chain. */
static uint32_t find_chain(mpl_draft *m, const mpl_layout *l, const mpl_scene *scene)
{
    uint64_t top = mpl_layout_height(m, l, scene), most;
    mpl_buffer b = 0;
    uint32_t n = 0;

    while (m->p->pool[b] != 0 || m->offset[b] + scene->bytes[b] != top)
        b++;
    for (; b != MPL_NONE; b = support_of(m, l, scene, b, &most))
        m->chain[n++] = l->rank[b];
    return n;
}

/* Moves one body of the worst scene's chain beyond its neighbour. False: no such move is better. */
static bool improve_once(mpl_draft *m, mpl_layout *l, mpl_layout *trial, mpl_ratio *worst)
{
    uint32_t at = 0, n;

    mpl_layout_worst(m, l, &at);
    n = find_chain(m, l, &m->scene[at]);
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t up = 0; up < 2; up++) {
            mpl_ratio now;

            mpl_layout_copy(m, trial, l);
            move_body(m, trial, m->chain[i + (up == 0)], m->chain[i + (up != 0)]);
            now = mpl_layout_worst(m, trial, NULL);
            if (mpl_ratio_less(now, *worst)) {
                *worst = now;
                mpl_layout_copy(m, l, trial);
                return true;
            }
        }
    return false;
}

static mpl_status improve(mpl_draft *m, mpl_layout *l)
{
    mpl_status st = MPL_OK;
    mpl_layout trial = {0};
    mpl_ratio worst = mpl_layout_worst(m, l, NULL);
    uint64_t until = m->ticks + mpl_min_u64(FLIP_TICKS, m->run->budget_ticks);

    MPL_TRY(mpl_layout_new(m, &trial));
    while (worst.arena > worst.bound && m->ticks < until && !mpl_run_late(m->run) &&
           improve_once(m, l, &trial, &worst))
        ;
out:
    mpl_layout_free(m->ctx, &trial);
    return st;
}

/* ---- one cell ---- */

typedef struct cell_search {
    mpl_draft *m;
    mpl_template *t;
    uint32_t k;
    uint32_t most_boxes;
    uint32_t n; /* candidates */
    size_t cap;
    mpl_layout *candidate;
    mpl_layout trial, best;
    mpl_ratio least; /* attained by the best */
} cell_search;

static bool in_box(const mpl_exprs *x, const mpl_box *box, const int64_t *value)
{
    for (uint32_t i = 0; i < box->n; i++) {
        const mpl_symbol *s = mpl_exprs_symbol(x, i);
        int64_t count = (value[i] - s->first) / s->step;

        if (count < box->low[i] || count > box->high[i])
            return false;
    }
    return true;
}

/* Scenes at the corners of the box, its middle, and drawn. */
static mpl_status add_scenes(mpl_draft *m)
{
    const mpl_exprs *x = m->sp->x;
    int64_t value[MPL_MAX_SYMBOLS];
    uint32_t n = m->box.n < 3 ? m->box.n : 3;
    mpl_rng rng;

    for (uint32_t corner = 0; corner <= 1U << n; corner++) {
        for (uint32_t i = 0; i < m->box.n; i++) {
            const mpl_symbol *s = mpl_exprs_symbol(x, i);
            int64_t count = corner == 1U << n              ? (m->box.low[i] + m->box.high[i]) / 2
                            : (corner >> (i % 3) & 1) != 0 ? m->box.high[i]
                                                           : m->box.low[i];

            value[i] = s->first + count * s->step;
        }
        if (mpl_point_allowed(x, value))
            MPL_PASS(mpl_draft_add(m, value));
    }
    for (uint64_t corner = 1; corner < 1U << n; corner++) {
        MPL_PASS(mpl_point_corner(m->ctx, x, corner, value));
        if (in_box(x, &m->box, value))
            MPL_PASS(mpl_draft_add(m, value));
    }
    mpl_rng_init(&rng, m->run->seed);
    for (uint32_t i = 0; i < DRAWN; i++)
        if (mpl_shape_draw(m->ctx, x, &m->box, true, &rng, value) == MPL_OK)
            MPL_PASS(mpl_draft_add(m, value));
    return MPL_OK;
}

static mpl_status add_layout(cell_search *s, const mpl_layout *l)
{
    mpl_layout copy = {0};

    MPL_PASS(mpl_reserve(s->m->ctx, s->candidate, s->cap, s->n + 1));
    MPL_PASS(mpl_layout_new(s->m, &copy));
    if (l != NULL)
        mpl_layout_copy(s->m, &copy, l);
    s->candidate[s->n++] = copy;
    return MPL_OK;
}

/* Plans scene i: one candidate more, and one improved over all scenes. */
static mpl_status add_candidate(cell_search *s, uint32_t i)
{
    mpl_layout at_scene;

    MPL_PASS(add_layout(s, NULL));
    MPL_PASS(mpl_layout_at(s->m, &s->m->scene[i], &s->candidate[s->n - 1]));
    at_scene = s->candidate[s->n - 1]; /* the list may move as it grows */
    MPL_PASS(add_layout(s, &at_scene));
    return improve(s->m, &s->candidate[s->n - 1]);
}

/* The candidate of the least worst ratio over all scenes, into s->trial. */
static mpl_ratio choose(cell_search *s)
{
    mpl_ratio best = {UINT64_MAX, 1};

    for (uint32_t i = 0; i < s->n; i++) {
        mpl_ratio r = mpl_layout_worst(s->m, &s->candidate[i], NULL);

        if (mpl_ratio_less(r, best)) {
            best = r;
            mpl_layout_copy(s->m, &s->trial, &s->candidate[i]);
        }
    }
    return best;
}

/* Gives the cell a layout, and its regret. */
static mpl_status settle(cell_search *s, const mpl_layout *l, uint64_t slack, uint32_t most_boxes)
{
    mpl_template_cell *cell = &s->t->cell[s->k];

    mpl_free_each(s->m->ctx, cell->below, cell->above);
    cell->below = cell->above = NULL, cell->n_relations = 0;
    MPL_PASS(mpl_layout_relations(s->m, l, cell));
    MPL_PASS(mpl_template_ready_cell(s->m->ctx, s->t, s->k));
    return mpl_regret_of(s->m->run, s->t, s->k, slack, most_boxes);
}

/* Whether the cell's worst known shape is no worse than the shapes of the scenes. */
static bool is_covered(const cell_search *s, mpl_ratio seen)
{
    const mpl_regret *r = &s->t->cell[s->k].regret;

    return r->bound == 0 ||
           mpl_ratio_parts((mpl_ratio){r->arena, r->bound}) <= mpl_ratio_parts(seen) + SLACK;
}

/* Settles on s->trial for now; keeps it if no layout before had less regret. */
static mpl_status judge_layout(cell_search *s)
{
    const mpl_regret *r = &s->t->cell[s->k].regret;
    mpl_ratio now;

    MPL_PASS(settle(s, &s->trial, SLACK, SEARCH_BOXES));
    now = (mpl_ratio){r->arena, mpl_max_u64(r->bound, 1)};
    if (mpl_ratio_less(now, s->least)) {
        s->least = now;
        mpl_layout_copy(s->m, &s->best, &s->trial);
    }
    return MPL_OK;
}

static mpl_status search_cell(cell_search *s)
{
    uint32_t corners;
    mpl_ratio seen;

    if (s->n > 0) { /* what the whole had */
        mpl_layout_copy(s->m, &s->trial, &s->candidate[0]);
        MPL_PASS(judge_layout(s));
    }
    MPL_PASS(add_scenes(s->m));
    corners = s->m->n_scenes < PLANNED ? s->m->n_scenes : PLANNED;
    for (uint32_t i = 0; i < corners; i++) {
        MPL_PASS(add_candidate(s, i));
        seen = choose(s);
        if (seen.arena <= seen.bound || mpl_run_late(s->m->run))
            break;
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        seen = choose(s);
        MPL_PASS(judge_layout(s));
        if (is_covered(s, seen) || mpl_run_late(s->m->run))
            break;
        MPL_PASS(mpl_draft_add(s->m, s->t->cell[s->k].regret.at));
        MPL_PASS(add_candidate(s, s->m->n_scenes - 1));
    }
    return settle(s, &s->best, SLACK, s->most_boxes);
}

/* The least worst ratio over some shapes bounds that over all; the worst one is added until the
 * two are equal. */
static mpl_status exact_cell(cell_search *s)
{
    mpl_regret *r = &s->t->cell[s->k].regret;

    MPL_PASS(add_scenes(s->m));
    for (;;) {
        uint32_t n = s->m->n_scenes;
        mpl_ratio seen;

        MPL_PASS(mpl_template_exact(s->m, &s->best, &seen));
        MPL_PASS(settle(s, &s->best, 0, s->most_boxes));
        if (r->bound == 0 || !mpl_ratio_less(seen, (mpl_ratio){r->arena, r->bound}))
            return MPL_OK;
        MPL_PASS(mpl_draft_add(s->m, r->at));
        mpl_assert(s->m->n_scenes > n);
    }
}

/* ---- cells ---- */

/* The worst ratio over the scenes on one side of a cut by the best candidate for that side. */
static mpl_ratio side_of(cell_search *s, uint32_t symbol, int64_t most, bool left)
{
    mpl_ratio best = {UINT64_MAX, 1};

    for (uint32_t c = 0; c < s->n; c++) {
        mpl_ratio worst = {0, 1};

        for (uint32_t i = 0; i < s->m->n_scenes; i++) {
            const mpl_scene *scene = &s->m->scene[i];
            mpl_ratio r;

            if ((scene->value[symbol] <= most) != left)
                continue;
            r = (mpl_ratio){mpl_layout_height(s->m, &s->candidate[c], scene), scene->bound};
            worst = mpl_ratio_less(worst, r) ? r : worst;
        }
        best = mpl_ratio_less(worst, best) ? worst : best;
    }
    return best;
}

/* Where to cut the cell: the last count of the left side; MPL_NONE: it is one point. */
static uint32_t find_cut(cell_search *s, int64_t *last)
{
    mpl_ratio best = {UINT64_MAX, 1};
    uint32_t symbol = MPL_NONE;

    for (uint32_t i = 0; i < s->m->box.n; i++) {
        const mpl_symbol *name = mpl_exprs_symbol(s->m->sp->x, i);

        for (uint32_t k = 0; k < s->m->n_scenes; k++) {
            int64_t value = s->m->scene[k].value[i];
            mpl_ratio left, right;

            if ((value - name->first) / name->step >= s->m->box.high[i])
                continue;
            left = side_of(s, i, value, true), right = side_of(s, i, value, false);
            left = mpl_ratio_less(left, right) ? right : left;
            if (mpl_ratio_less(left, best)) {
                best = left, symbol = i;
                *last = (value - name->first) / name->step;
            }
        }
    }
    return symbol;
}

static void close_search(cell_search *s)
{
    mpl_ctx *ctx = s->m->ctx;

    for (uint32_t i = 0; i < s->n; i++)
        mpl_layout_free(ctx, &s->candidate[i]);
    mpl_layout_free(ctx, &s->trial);
    mpl_layout_free(ctx, &s->best);
    mpl_free(ctx, s->candidate);
    mpl_draft_fini(s->m);
}

/* A planned cell: its layout, and the best place to cut it. */
typedef struct planned {
    mpl_layout best;
    uint32_t cut; /* MPL_NONE: it is one shape */
    int64_t last;
} planned;

/* Plans cell k, from the layout of the cell that it was part of. */
static mpl_status plan_cell(mpl_run *run, mpl_template *t, uint32_t k, mpl_template_method method,
                            uint32_t most_boxes, planned *own, const planned *whole)
{
    mpl_status st = MPL_OK;
    mpl_draft m = {0};
    cell_search s = {.m = &m, .t = t, .k = k, .most_boxes = most_boxes, .least = {UINT64_MAX, 1}};

    MPL_TRY(mpl_draft_init(run, t->problem, &t->cell[k].box, &m));
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
static mpl_status cut_cell(mpl_ctx *ctx, mpl_template *t, uint32_t k, uint32_t symbol, int64_t last)
{
    mpl_template_cell *cell;

    MPL_PASS(
        mpl_realloc_bytes(ctx, (void **)&t->cell, t->n_cells, t->n_cells + 1, sizeof *t->cell));
    cell = &t->cell[t->n_cells++];
    cell->regret.most = UINT64_MAX;
    MPL_PASS(mpl_box_new(ctx, t->problem->x, &cell->box));
    MPL_PASS(mpl_new(ctx, cell->on, t->problem->at->n));
    for (mpl_buffer b = 0; b < t->problem->at->n; b++)
        cell->on[b] = b;
    memcpy(cell->box.low, t->cell[k].box.low, cell->box.n * sizeof(int64_t));
    memcpy(cell->box.high, t->cell[k].box.high, cell->box.n * sizeof(int64_t));
    cell->box.low[symbol] = last + 1;
    t->cell[k].box.high[symbol] = last;
    return MPL_OK;
}

uint64_t mpl_template_most(const mpl_template *t, uint32_t *worst)
{
    uint32_t k = 0;

    for (uint32_t i = 1; i < t->n_cells; i++)
        if (t->cell[i].regret.most > t->cell[k].regret.most)
            k = i;
    if (worst != NULL)
        *worst = k;
    return t->cell[k].regret.most;
}

enum { MOST_CELLS = 64 };

static mpl_status plan_cells(mpl_run *run, mpl_template *t, const mpl_template_ask *ask,
                             uint32_t most_boxes)
{
    mpl_status st = MPL_OK;
    planned known[MOST_CELLS] = {{{0}, 0, 0}};
    uint32_t worst = 0;

    MPL_TRY(plan_cell(run, t, 0, ask->method, most_boxes, &known[0], &known[0]));
    while (t->n_cells < ask->cells && t->n_cells < MOST_CELLS &&
           mpl_template_most(t, &worst) > MPL_REGRET_ONE + SLACK && known[worst].cut != MPL_NONE) {
        uint32_t n = t->n_cells;
        planned *whole = &known[worst];

        MPL_TRY(cut_cell(run->ctx, t, worst, whole->cut, whole->last));
        MPL_TRY(plan_cell(run, t, n, ask->method, most_boxes, &known[n], whole));
        MPL_TRY(plan_cell(run, t, worst, ask->method, most_boxes, whole, whole));
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
    return mpl_point_corner(ctx, sp->x, 0, value);
}

/* One cell of a method that others use. */
static mpl_status plan_baseline(mpl_run *run, mpl_template *t, const mpl_template_ask *ask,
                                uint32_t most_boxes)
{
    mpl_status st = MPL_OK;
    mpl_draft m = {0};

    MPL_TRY(mpl_draft_init(run, t->problem, NULL, &m));
    MPL_TRY(mpl_template_baseline(&m, ask, t));
    MPL_TRY(mpl_template_ready(run->ctx, t));
    MPL_TRY(mpl_regret_of(run, t, 0, SLACK, most_boxes));
out:
    run->ticks += m.ticks;
    mpl_draft_fini(&m);
    return st;
}

enum { MOST_WIDENED = 6 };

/* Checks the template. Regrets that the checker does not prove within its boxes are stated wider,
 * at last not at all: the template is right for every shape without them. */
static mpl_status check(mpl_run *run, mpl_template *t, uint32_t most_boxes)
{
    mpl_status st = mpl_verify_template(run->ctx, t, most_boxes);

    for (uint32_t widened = 0; st == MPL_ELIMIT && widened < MOST_WIDENED; widened++) {
        for (uint32_t k = 0; k < t->n_cells; k++) {
            uint64_t *most = &t->cell[k].regret.most;

            *most = widened + 1 == MOST_WIDENED || *most > MPL_REGRET_MOST / 2
                        ? UINT64_MAX
                        : *most + *most / 16 + (*most - MPL_REGRET_ONE) / 2;
        }
        st = mpl_verify_template(run->ctx, t, most_boxes);
    }
    return st;
}

mpl_status mpl_template_plan(mpl_run *run, const mpl_sym_problem *sp, const mpl_template_ask *ask,
                             mpl_template **out)
{
    mpl_status st = MPL_OK;
    mpl_template *t = NULL;
    uint32_t most_boxes = ask->most_boxes != 0 ? ask->most_boxes : 20000;

    MPL_TRY(refuse_problem(run->ctx, sp));
    MPL_TRY(mpl_template_new(run->ctx, sp, 1, &t));
    MPL_TRY(mpl_regret_loads(run->ctx, t));
    if (ask->method == MPL_TEMPLATE_SEARCH || ask->method == MPL_TEMPLATE_EXACT)
        MPL_TRY(plan_cells(run, t, ask, most_boxes));
    else
        MPL_TRY(plan_baseline(run, t, ask, most_boxes));
    MPL_TRY(check(run, t, 8 * most_boxes));
    *out = t, t = NULL;
out:
    mpl_template_free(run->ctx, t);
    return st;
}
