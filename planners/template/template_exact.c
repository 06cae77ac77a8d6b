/* template_exact.c -- the least worst ratio of one template over a set of shapes.
 *
 * Idea     Every acyclic choice of relations is that of some order in which bodies are placed, each
 *          as low as those before it allow. Orders are tried depth first, the placed part at all
 *          shapes at once; of two neighbours that do not conflict the lower id comes first.
 * Source   this project
 * Cost     exponential: up to about ten buffers that conflict */
#include "planners/template/template_priv.h"

#define DEFAULT_TICKS UINT64_C(2000000000)

typedef struct exact {
    mpl_draft *draft;
    mpl_layout l, *best; /* l.rank: MPL_NONE until placed */
    mpl_ratio least;     /* of the best */
    uint64_t *offset;    /* [scenes * n] */
    uint64_t *distance;  /* [scenes * n] from the root */
    mpl_buffer *root;    /* [n] */
    uint64_t limit;
} exact;

/* Whether a buffer of one body conflicts with one of the other. */
static bool related(const exact *self, mpl_buffer r, mpl_buffer s)
{
    for (mpl_buffer a = 0; a < self->draft->p->n; a++)
        for (uint32_t i = self->draft->rival_begin[a];
             self->root[a] == r && i < self->draft->rival_begin[a + 1]; i++)
            if (self->root[self->draft->rival[i]] == s)
                return true;
    return false;
}

/* Places the body at `r` above what is placed. Returns the worst ratio it makes. */
static mpl_ratio place(exact *self, mpl_buffer r)
{
    const mpl_draft *draft = self->draft;
    const mpl_problem *p = draft->p;
    mpl_ratio worst = {0, 1};

    for (uint32_t k = 0; k < draft->n_scenes; k++) {
        uint64_t *offset = self->offset + (size_t)k * p->n,
                 *away = self->distance + (size_t)k * p->n, start = 0, align = 1;

        for (mpl_buffer b = 0; b < p->n; b++) {
            if (self->root[b] != r)
                continue;
            align = mpl_max_u64(align, p->align[b]);
            for (uint32_t i = draft->rival_begin[b]; i < draft->rival_begin[b + 1]; i++) {
                mpl_buffer a = draft->rival[i];
                uint64_t end = offset[a] + draft->scene[k].bytes[a];

                if (self->root[a] != r && self->l.rank[a] != MPL_NONE && end > away[b] + start)
                    start = end - away[b];
            }
        }
        start = mpl_align_up(start, align);
        for (mpl_buffer b = 0; b < p->n; b++)
            if (self->root[b] == r) {
                mpl_ratio now;

                offset[b] = start + away[b];
                now = (mpl_ratio){offset[b] + draft->scene[k].bytes[b], draft->scene[k].bound};
                if (p->pool[b] == 0 && mpl_ratio_less(worst, now))
                    worst = now;
            }
    }
    self->draft->ticks += (uint64_t)draft->n_scenes * p->n;
    return worst;
}

static void set_rank(exact *self, mpl_buffer r, uint32_t rank)
{
    for (mpl_buffer b = 0; b < self->draft->p->n; b++)
        if (self->root[b] == r)
            self->l.rank[b] = rank;
}

/* Continues an order of n bodies whose last is `last`. */
static void extend(exact *self, uint32_t n, mpl_buffer last, mpl_ratio worst)
{
    bool complete = true;

    for (mpl_buffer r = 0; r < self->draft->p->n && self->draft->ticks < self->limit; r++) {
        mpl_ratio now;

        if (self->root[r] != r || self->l.rank[r] != MPL_NONE)
            continue;
        complete = false;
        if (last != MPL_NONE && r < last && !related(self, r, last))
            continue;
        now = place(self, r);
        now = mpl_ratio_less(now, worst) ? worst : now;
        if (!mpl_ratio_less(now, self->least))
            continue;
        set_rank(self, r, n);
        extend(self, n + 1, r, now);
        set_rank(self, r, MPL_NONE);
    }
    if (complete && mpl_ratio_less(worst, self->least)) {
        self->least = worst;
        mpl_layout_copy(self->draft, self->best, &self->l);
    }
}

/* Tries all orders with the pairs taken so far. */
static void try_orders(exact *self)
{
    const mpl_problem *p = self->draft->p;

    mpl_layout_roots(self->draft, &self->l);
    memcpy(self->root, self->draft->root, p->n * sizeof *self->root);
    for (uint32_t k = 0; k < self->draft->n_scenes; k++) {
        mpl_layout_height(self->draft, &self->l, &self->draft->scene[k]); /* for the distances alone
                                                                           */
        memcpy(self->distance + (size_t)k * p->n, self->draft->distance,
               p->n * sizeof *self->distance);
    }
    memset(self->l.rank, 0xff, p->n * sizeof *self->l.rank);
    extend(self, 0, MPL_NONE, (mpl_ratio){0, 1});
    memset(self->l.rank, 0, p->n * sizeof *self->l.rank);
}

/* Takes or leaves each in-place pair from the i-th on. */
static mpl_status try_pairs(exact *self, uint32_t i)
{
    const mpl_problem *p = self->draft->p;
    mpl_layout before = {0};
    mpl_status st = MPL_OK;
    bool taken;

    if (i == p->n_in_place) {
        try_orders(self);
        return MPL_OK;
    }
    MPL_TRY(mpl_layout_new(self->draft, &before));
    mpl_layout_copy(self->draft, &before, &self->l);
    MPL_TRY(mpl_layout_take_pair(self->draft, &self->l, i, &taken));
    if (taken)
        MPL_TRY(try_pairs(self, i + 1));
    mpl_layout_copy(self->draft, &self->l, &before);
    MPL_TRY(try_pairs(self, i + 1));
out:
    mpl_layout_free(self->draft->ctx, &before);
    return st;
}

mpl_status mpl_template_exact(mpl_draft *draft, mpl_layout *best, mpl_ratio *worst)
{
    mpl_status st = MPL_OK;
    exact e = {.draft = draft, .best = best, .least = {UINT64_MAX, 1}};
    size_t n = (size_t)draft->n_scenes * draft->p->n;

    e.limit = draft->run->budget_ticks != UINT64_MAX ? draft->run->budget_ticks : DEFAULT_TICKS;
    e.limit += draft->ticks < UINT64_MAX - e.limit ? draft->ticks : 0;
    MPL_TRY(mpl_layout_new(draft, &e.l));
    MPL_TRY(mpl_new_each(draft->ctx, n, e.offset, e.distance));
    MPL_TRY(mpl_new(draft->ctx, e.root, draft->p->n));
    MPL_TRY(try_pairs(&e, 0));
    if (draft->ticks >= e.limit)
        MPL_FAIL(draft->ctx, MPL_ELIMIT,
                 "the effort ended before all orders of %u buffers were tried", draft->p->n);
    *worst = e.least;
out:
    mpl_layout_free(draft->ctx, &e.l);
    mpl_free_each(draft->ctx, e.offset, e.distance, e.root);
    return st;
}
