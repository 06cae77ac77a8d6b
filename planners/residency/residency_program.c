/* residency_program.c -- residency in time as a mixed integer program. See residency_priv.h.
 *
 * Idea     Each buffer sends one unit through a network: after a use it lies in fast memory alone,
 *          in both, or in slow memory alone, and each way to the next use is an arc with its cost.
 *          At each step the arcs that are in fast memory are within what whole buffers can fill of
 *          it. Cover and rounding cuts close most of what prices leave open.
 * Source   this project; the program without offsets, so what it proves holds for all offsets
 * Cost     GLPK's; nodes are limited. Its proof holds up to the rounding of doubles. */
#include "planners/ilp/lp.h"
#include "planners/residency/residency_priv.h"

#include <math.h>

enum { ALONE, BOTH, AWAY, N_STATES, MOST_ARCS = 8, MOST_COLUMNS = 40000, MOST_MIB = 1024 };

/* A way from one state after use i - 1 to one after use i; into use 0 from nowhere. */
typedef struct arc {
    uint8_t from, to;
    bool kept;
    uint64_t cost;
} arc;

static uint32_t arcs_into(const mpl_residency *residency, mpl_buffer b, uint32_t i,
                          arc out[MOST_ARCS])
{
    const mpl_residency_problem *p = residency->p;
    uint64_t move = p->bytes[b] * p->move_price, slow = p->bytes[b] * p->slow_price;
    uint8_t both = p->writes[i] ? ALONE : BOTH;
    uint32_t n = 0;

    if (i == p->begin[b]) {
        out[n++] = (arc){ALONE, ALONE, false, 0};
        if (slow > 0)
            out[n++] = (arc){ALONE, AWAY, false, slow};
        return n;
    }
    out[n++] = (arc){ALONE, ALONE, true, 0};
    out[n++] = (arc){BOTH, both, true, 0};
    out[n++] = (arc){ALONE, both, false, 2 * move};
    out[n++] = (arc){BOTH, both, false, move};
    if (slow == 0)
        return n;
    out[n++] = (arc){AWAY, both, false, move};
    out[n++] = (arc){ALONE, AWAY, false, move + slow};
    out[n++] = (arc){BOTH, AWAY, false, slow};
    out[n++] = (arc){AWAY, AWAY, false, slow};
    return n;
}

/* The program as it is built: entries of the rows of steps come first, use by use. */
typedef struct program {
    mpl_residency *residency;
    mpl_lp *lp;
    uint32_t *first;  /* [n_uses + 1] column of the first arc into a use */
    uint32_t *column; /* [room] of an entry */
    uint32_t *step;   /* [room] likewise */
    size_t n, columns_room, steps_room;
    uint32_t *row_column; /* [columns] scratch of a row */
    double *row_value;
} program;

static mpl_status fill(program *self, uint32_t step, uint32_t column)
{
    mpl_ctx *ctx = self->residency->run->ctx;

    MPL_PASS(mpl_reserve(ctx, self->column, self->columns_room, self->n + 1));
    MPL_PASS(mpl_reserve(ctx, self->step, self->steps_room, self->n + 1));
    self->column[self->n] = column;
    self->step[self->n++] = step;
    return MPL_OK;
}

static mpl_status add_columns(program *self)
{
    const mpl_residency_problem *p = self->residency->p;
    arc into[MOST_ARCS];

    for (uint32_t i = 0; i < self->residency->n_uses; i++) {
        mpl_buffer b = self->residency->owner[i];
        uint32_t n = arcs_into(self->residency, b, i, into), column;

        self->first[i] = mpl_lp_columns(self->lp);
        for (uint32_t k = 0; k < n; k++) {
            MPL_PASS(
                mpl_lp_add_column(self->lp, true, 0, 1, (double)into[k].cost, 'x', i, k, &column));
            for (uint32_t s = into[k].kept ? p->at[i - 1] + 1 : p->at[i];
                 into[k].to != AWAY && s <= p->at[i]; s++)
                MPL_PASS(fill(self, s, column));
        }
    }
    self->first[self->residency->n_uses] = mpl_lp_columns(self->lp);
    return MPL_OK;
}

/* What leaves a state came into it; one unit arrives at the last use. */
static mpl_status add_flows(program *self)
{
    const mpl_residency_problem *p = self->residency->p;
    arc into[MOST_ARCS];

    for (uint32_t i = 0; i < self->residency->n_uses; i++) {
        mpl_buffer b = self->residency->owner[i];
        bool last = i + 1 == p->begin[b + 1];

        for (uint32_t state = 0; state < (last ? 1 : N_STATES); state++) {
            uint32_t n = 0, n_into = arcs_into(self->residency, b, i, into);

            for (uint32_t k = 0; k < n_into; k++)
                if (last || into[k].to == state) {
                    self->row_column[n] = self->first[i] + k;
                    self->row_value[n++] = 1;
                }
            n_into = last ? 0 : arcs_into(self->residency, b, i + 1, into);
            for (uint32_t k = 0; k < n_into; k++)
                if (into[k].from == state) {
                    self->row_column[n] = self->first[i + 1] + k;
                    self->row_value[n++] = -1;
                }
            MPL_PASS(mpl_lp_add_row(self->lp, last ? 1 : 0, n, self->row_column, self->row_value));
        }
    }
    return MPL_OK;
}

static mpl_status add_steps(program *self)
{
    mpl_status st = MPL_OK;
    mpl_residency *residency = self->residency;
    uint32_t *begin = NULL, *entry = NULL;

    MPL_TRY(mpl_lists_new(residency->run->ctx, residency->p->n_steps, (uint32_t)self->n, self->step,
                          self->column, &begin, &entry));
    for (uint32_t s = 0; s < residency->p->n_steps; s++) {
        uint32_t n = begin[s + 1] - begin[s], use = 0;

        for (uint32_t k = 0; k < n; k++) {
            while (self->first[use + 1] <= entry[begin[s] + k])
                use++;
            self->row_column[k] = entry[begin[s] + k];
            self->row_value[k] =
                -(double)(residency->size[residency->owner[use]] / residency->p->align);
        }
        MPL_TRY(mpl_lp_add_row(self->lp, -(double)(residency->room[s] / residency->p->align), n,
                               self->row_column, self->row_value));
    }
out:
    mpl_free_each(residency->run->ctx, begin, entry);
    return st;
}

/* The ways that the solution takes, from each last use backwards. */
static void decode(const program *self, const double *x, uint8_t *fast, uint8_t *kept)
{
    const mpl_residency_problem *p = self->residency->p;
    arc into[MOST_ARCS];

    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t state = N_STATES;

        for (uint32_t i = p->begin[b + 1]; i-- > p->begin[b];) {
            uint32_t n = arcs_into(self->residency, b, i, into), best = MPL_NONE;

            for (uint32_t k = 0; k < n; k++)
                if ((state == N_STATES || into[k].to == state) &&
                    (best == MPL_NONE || x[self->first[i] + k] > x[self->first[i] + best]))
                    best = k;
            mpl_assert(best != MPL_NONE);
            fast[i] = into[best].to != AWAY;
            if (i > p->begin[b])
                kept[i - 1] = into[best].kept;
            state = into[best].from;
        }
        kept[p->begin[b + 1] - 1] = 0;
    }
}

/* A cost that the program's bound proves: whole, and below it by what doubles may be wrong. */
static uint64_t proved(const mpl_lp_answer *answer, uint64_t cost)
{
    double bound = answer->bound - 1e-7 * fabs(answer->bound);

    if (answer->state == MPL_LP_OPTIMAL && fabs(answer->objective - (double)cost) <= 0.5)
        return cost;
    return bound > 0 ? (uint64_t)bound : 0;
}

mpl_status mpl_residency_program(mpl_residency *residency, uint64_t nodes, uint64_t *bound,
                                 uint8_t *fast, uint8_t *kept, bool *found)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = residency->run->ctx;
    program q = {.residency = residency};
    double *x = NULL;
    mpl_lp_limits limits = {.max_nodes = nodes,
                            .max_pivots = UINT64_MAX,
                            .max_mib = MOST_MIB,
                            .deadline_ns = residency->run->deadline_ns,
                            .cuts = true};
    mpl_lp_answer answer;

    *found = false;
    *bound = 0;
    MPL_TRY(mpl_lp_new(ctx, residency->p->name != NULL ? residency->p->name : "", &q.lp));
    MPL_TRY(mpl_new(ctx, q.first, (size_t)residency->n_uses + 1));
    MPL_TRY(add_columns(&q));
    if (mpl_lp_columns(q.lp) > MOST_COLUMNS)
        goto out;
    MPL_TRY(mpl_new(ctx, q.row_column, mpl_lp_columns(q.lp)));
    MPL_TRY(mpl_new_each(ctx, mpl_lp_columns(q.lp), q.row_value, x));
    MPL_TRY(add_flows(&q));
    MPL_TRY(add_steps(&q));
    st = mpl_lp_solve(q.lp, &limits, &answer, x);
    if (st == MPL_EUNAVAIL) { /* without GLPK the other bounds stand */
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    residency->ticks += answer.n_nodes * residency->p->n;
    *found = answer.state == MPL_LP_OPTIMAL || answer.state == MPL_LP_FEASIBLE;
    if (*found)
        decode(&q, x, fast, kept);
    *bound = proved(&answer, *found ? mpl_residency_total(residency, fast, kept) : 0);
out:
    mpl_lp_free(ctx, q.lp);
    mpl_free_each(ctx, q.first, q.column, q.step, q.row_column, q.row_value, x);
    return st;
}
