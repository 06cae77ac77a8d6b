/* baselines.c -- what others do over a range of shapes, as templates: see template_plan.h.
 *
 * Source   constant: upper bounds (ExecuTorch, Relax's static planner, TensorRT profiles); equal:
 *          IREE's and Relax's groups of equal symbolic size; slab: slots as wide as their widest
 *          user (hip-ep); example: Inductor plans with the hint of each size. */
#include "graphs/symbols/symbols.h"
#include "planners/template/template_priv.h"

enum { MOST_PROOFS = 10 }; /* of one size's largest value */

/* The largest value of a size over the range: that of a corner where it is proved, else the least
 * of some numbers up to the bound of its interval for which it is. */
static mpl_status largest(const mpl_draft *draft, mpl_expr e, uint64_t *out)
{
    mpl_exprs *exprs = draft->sp->exprs;
    int64_t value[MPL_MAX_SYMBOLS], most = 0, low, high;
    bool proved;
    uint32_t n = draft->box.n < 6 ? draft->box.n : 6;
    mpl_expr top;

    for (uint64_t corner = 0; corner < UINT64_C(1) << n; corner++) {
        int64_t now;

        MPL_PASS(mpl_point_corner(draft->ctx, exprs, corner, value));
        if (mpl_expr_eval(exprs, e, value, &now))
            most = now > most ? now : most;
    }
    if (!mpl_expr_bounds(exprs, e, NULL, &low, &high))
        return MPL_REFUSE(draft->ctx, "a size of the range does not fit in 64 bits");
    for (uint32_t i = 0; i < MOST_PROOFS && most < high; i++) {
        int64_t middle = i == 0 ? most : most + (high - most) / 2;

        MPL_PASS(mpl_expr_const(draft->ctx, exprs, middle, &top));
        proved = mpl_expr_at_most(exprs, e, top, NULL);
        if (proved)
            high = middle;
        else
            most = middle;
    }
    *out = (uint64_t)high;
    return MPL_OK;
}

/* Reserves of each pool what its buffers need at most, at offsets that do not change. */
static mpl_status reserve(const mpl_draft *draft, const mpl_template_cell *cell)
{
    const mpl_problem *p = draft->p;

    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_expr end = draft->sp->bytes[b];
        mpl_buffer at = b;
        uint64_t most;

        for (;;) { /* the distance from what moves with b */
            bool part = p->inside != NULL && p->inside[at] != at;
            mpl_buffer next = part ? p->inside[at] : cell->on[at];

            if (next == at)
                break;
            if (part)
                MPL_PASS(mpl_expr_add(draft->ctx, draft->sp->exprs, end, draft->sp->inside_at[at],
                                      &end));
            at = next;
        }
        MPL_PASS(largest(draft, end, &most));
        if (!mpl_add_bytes(most, cell->offset[at], &most) || most > INT64_MAX / 4)
            return MPL_REFUSE(draft->ctx,
                              "a constant plan of the range does not fit in 2^61 bytes");
        cell->arena[p->pool[b]] = mpl_max_u64(cell->arena[p->pool[b]], most);
    }
    return MPL_OK;
}

/* Offsets of the plan of the largest sizes, families whole. */
static mpl_status constant(mpl_draft *draft, mpl_template_cell *cell)
{
    mpl_status st = MPL_OK;
    int64_t value[MPL_MAX_SYMBOLS];
    mpl_problem *p = NULL, *hull = NULL;
    mpl_plan *plan = NULL;
    uint32_t *into = NULL;
    mpl_layout l = {0};

    MPL_TRY(mpl_point_corner(draft->ctx, draft->sp->exprs, 0, value));
    MPL_TRY(mpl_sym_problem_at(draft->ctx, draft->sp, value, &p));
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_TRY(largest(draft, draft->sp->bytes[b], &p->bytes[b]));
        if (p->inside != NULL && p->inside[b] != b)
            MPL_TRY(largest(draft, draft->sp->inside_at[b], &p->inside_at[b]));
    }
    MPL_TRY(mpl_new(draft->ctx, into, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        into[b] = b;
    if (p->inside != NULL)
        MPL_TRY(mpl_problem_hull(draft->ctx, p, &hull, into));
    MPL_TRY(mpl_plan_shape(draft->run, hull != NULL ? hull : p, &plan));
    MPL_TRY(mpl_new(draft->ctx, cell->offset, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        cell->offset[b] = plan->offset[into[b]];
    MPL_TRY(mpl_layout_new(draft, &l));
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];
        bool alone = p->inside == NULL ||
                     (into[in] != into[out] && p->inside[in] == in && p->inside[out] == out),
             taken;

        if (alone && cell->offset[in] == cell->offset[out])
            MPL_TRY(mpl_layout_take_pair(draft, &l, i, &taken));
    }
    memcpy(cell->on, l.on, p->n * sizeof *l.on);
    MPL_TRY(mpl_new(draft->ctx, cell->arena, p->n_pools));
    MPL_TRY(reserve(draft, cell));
out:
    mpl_problem_free(draft->ctx, p);
    mpl_problem_free(draft->ctx, hull);
    mpl_plan_free(draft->ctx, plan);
    mpl_free(draft->ctx, into);
    mpl_layout_free(draft->ctx, &l);
    return st;
}

/* Whether the body at `r` may be in a block: nothing there conflicts with it; for `equal`, one
 * buffer of the same expression. */
static bool fits(const mpl_draft *draft, const uint32_t *block, mpl_buffer r, uint32_t k,
                 bool equal)
{
    const mpl_problem *p = draft->p;

    for (mpl_buffer a = 0; a < p->n; a++) {
        if (equal && block[a] == k && draft->root[a] != r &&
            draft->sp->bytes[a] != draft->sp->bytes[r])
            return false;
        if (block[a] == k && p->pool[a] != p->pool[r])
            return false;
        if (equal && draft->root[a] == r && a != r)
            return false;
        for (uint32_t i = draft->rival_begin[a];
             draft->root[a] == r && i < draft->rival_begin[a + 1]; i++)
            if (block[draft->rival[i]] == k)
                return false;
    }
    return true;
}

/* Blocks one above the other: each buffer of one below each of the next of its pool. */
static mpl_status stack_blocks(mpl_draft *draft, const uint32_t *block, uint32_t n_blocks,
                               mpl_template_cell *cell)
{
    const mpl_problem *p = draft->p;
    size_t n = 0, cap_below = 0, cap_above = 0;

    for (uint32_t k = 0; k < n_blocks; k++)
        for (mpl_buffer a = 0; a < p->n; a++) {
            uint32_t next = MPL_NONE; /* the first block above of the pool */

            for (mpl_buffer b = 0; block[a] == k && b < p->n; b++)
                if (p->pool[b] == p->pool[a] && block[b] > k && block[b] < next)
                    next = block[b];
            for (mpl_buffer b = 0; next != MPL_NONE && b < p->n; b++) {
                if (block[b] != next)
                    continue;
                MPL_PASS(mpl_reserve(draft->ctx, cell->below, cap_below, n + 1));
                MPL_PASS(mpl_reserve(draft->ctx, cell->above, cap_above, n + 1));
                cell->below[n] = a, cell->above[n++] = b;
            }
        }
    cell->n_relations = (uint32_t)n;
    return MPL_OK;
}

/* Blocks in the order of births (under parallel, of ids): each body in the first that it fits. */
static mpl_status blocks(mpl_draft *draft, mpl_template_cell *cell, bool equal)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = draft->p;
    mpl_layout none = {0};
    uint32_t n_blocks = 0, *block = NULL;

    MPL_TRY(mpl_layout_new(draft, &none));
    MPL_TRY(mpl_new(draft->ctx, block, p->n));
    memset(block, 0xff, p->n * sizeof *block);
    mpl_layout_roots(draft, &none);
    for (;;) {
        mpl_buffer next = MPL_NONE;
        uint32_t k = 0;

        for (mpl_buffer r = 0; r < p->n; r++)
            if (draft->root[r] == r && block[r] == MPL_NONE &&
                (next == MPL_NONE || (p->before == NULL && p->birth[r] < p->birth[next])))
                next = r;
        if (next == MPL_NONE)
            break;
        while (k < n_blocks && !fits(draft, block, next, k, equal))
            k++;
        n_blocks += k == n_blocks;
        for (mpl_buffer b = 0; b < p->n; b++)
            if (draft->root[b] == next)
                block[b] = k;
    }
    MPL_TRY(stack_blocks(draft, block, n_blocks, cell));
out:
    mpl_layout_free(draft->ctx, &none);
    mpl_free(draft->ctx, block);
    return st;
}

static mpl_status example(mpl_draft *draft, const int64_t *value, mpl_template_cell *cell)
{
    mpl_status st = MPL_OK;
    int64_t middle[MPL_MAX_SYMBOLS];
    mpl_layout l = {0};

    if (value == NULL) {
        MPL_TRY(mpl_point_corner(draft->ctx, draft->sp->exprs, 0, middle));
        for (uint32_t part = 2; part < 1U << 31; part *= 2) {
            int64_t now[MPL_MAX_SYMBOLS];

            for (uint32_t i = 0; i < draft->box.n; i++) {
                const mpl_symbol *symbol = mpl_exprs_symbol(draft->sp->exprs, i);

                now[i] = symbol->first + draft->box.high[i] / part * symbol->step;
            }
            if (mpl_point_allowed(draft->sp->exprs, now)) {
                memcpy(middle, now, draft->box.n * sizeof *now);
                break;
            }
        }
        value = middle;
    }
    MPL_TRY(mpl_draft_add(draft, value));
    MPL_TRY(mpl_layout_new(draft, &l));
    MPL_TRY(mpl_layout_at(draft, &draft->scene[0], &l));
    MPL_TRY(mpl_layout_relations(draft, &l, cell));
out:
    mpl_layout_free(draft->ctx, &l);
    return st;
}

mpl_status mpl_template_baseline(mpl_draft *draft, const mpl_template_ask *ask, mpl_template *tmpl)
{
    switch (ask->method) {
    case MPL_TEMPLATE_CONSTANT:
        return constant(draft, &tmpl->cell[0]);
    case MPL_TEMPLATE_EXAMPLE:
        return example(draft, ask->example, &tmpl->cell[0]);
    default:
        return blocks(draft, &tmpl->cell[0], ask->method == MPL_TEMPLATE_EQUAL);
    }
}
