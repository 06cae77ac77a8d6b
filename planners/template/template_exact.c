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
    mpl_draft *m;
    mpl_layout l, *best; /* l.rank: MPL_NONE until placed */
    mpl_ratio least;     /* of the best */
    uint64_t *offset;    /* [scenes * n] */
    uint64_t *distance;  /* [scenes * n] from the root */
    mpl_buffer *root;    /* [n] */
    uint64_t limit;
} exact;

/* Whether a buffer of one body conflicts with one of the other. */
static bool related(const exact *e, mpl_buffer r, mpl_buffer s)
{
    for (mpl_buffer a = 0; a < e->m->p->n; a++)
        for (uint32_t i = e->m->rival_begin[a]; e->root[a] == r && i < e->m->rival_begin[a + 1];
             i++)
            if (e->root[e->m->rival[i]] == s)
                return true;
    return false;
}

/* Places the body at `r` above what is placed. Returns the worst ratio it makes. */
static mpl_ratio place(exact *e, mpl_buffer r)
{
    const mpl_draft *m = e->m;
    const mpl_problem *p = m->p;
    mpl_ratio worst = {0, 1};

    for (uint32_t k = 0; k < m->n_scenes; k++) {
        uint64_t *offset = e->offset + (size_t)k * p->n, *away = e->distance + (size_t)k * p->n,
                 start = 0, align = 1;

        for (mpl_buffer b = 0; b < p->n; b++) {
            if (e->root[b] != r)
                continue;
            align = mpl_max_u64(align, p->align[b]);
            for (uint32_t i = m->rival_begin[b]; i < m->rival_begin[b + 1]; i++) {
                mpl_buffer a = m->rival[i];
                uint64_t end = offset[a] + m->scene[k].bytes[a];

                if (e->root[a] != r && e->l.rank[a] != MPL_NONE && end > away[b] + start)
                    start = end - away[b];
            }
        }
        start = mpl_align_up(start, align);
        for (mpl_buffer b = 0; b < p->n; b++)
            if (e->root[b] == r) {
                mpl_ratio now;

                offset[b] = start + away[b];
                now = (mpl_ratio){offset[b] + m->scene[k].bytes[b], m->scene[k].bound};
                if (p->pool[b] == 0 && mpl_ratio_less(worst, now))
                    worst = now;
            }
    }
    e->m->ticks += (uint64_t)m->n_scenes * p->n;
    return worst;
}

static void set_rank(exact *e, mpl_buffer r, uint32_t rank)
{
    for (mpl_buffer b = 0; b < e->m->p->n; b++)
        if (e->root[b] == r)
            e->l.rank[b] = rank;
}

/* Continues an order of n bodies whose last is `last`. */
static void extend(exact *e, uint32_t n, mpl_buffer last, mpl_ratio worst)
{
    bool complete = true;

    for (mpl_buffer r = 0; r < e->m->p->n && e->m->ticks < e->limit; r++) {
        mpl_ratio now;

        if (e->root[r] != r || e->l.rank[r] != MPL_NONE)
            continue;
        complete = false;
        if (last != MPL_NONE && r < last && !related(e, r, last))
            continue;
        now = place(e, r);
        now = mpl_ratio_less(now, worst) ? worst : now;
        if (!mpl_ratio_less(now, e->least))
            continue;
        set_rank(e, r, n);
        extend(e, n + 1, r, now);
        set_rank(e, r, MPL_NONE);
    }
    if (complete && mpl_ratio_less(worst, e->least)) {
        e->least = worst;
        mpl_layout_copy(e->m, e->best, &e->l);
    }
}

/* Tries all orders with the pairs taken so far. */
static void try_orders(exact *e)
{
    const mpl_problem *p = e->m->p;

    mpl_layout_roots(e->m, &e->l);
    memcpy(e->root, e->m->root, p->n * sizeof *e->root);
    for (uint32_t k = 0; k < e->m->n_scenes; k++) {
        mpl_layout_height(e->m, &e->l, &e->m->scene[k]); /* for the distances alone */
        memcpy(e->distance + (size_t)k * p->n, e->m->distance, p->n * sizeof *e->distance);
    }
    memset(e->l.rank, 0xff, p->n * sizeof *e->l.rank);
    extend(e, 0, MPL_NONE, (mpl_ratio){0, 1});
    memset(e->l.rank, 0, p->n * sizeof *e->l.rank);
}

/* Takes or leaves each in-place pair from the i-th on. */
static mpl_status try_pairs(exact *e, uint32_t i)
{
    const mpl_problem *p = e->m->p;
    mpl_layout before = {0};
    mpl_status st = MPL_OK;
    bool taken;

    if (i == p->n_in_place) {
        try_orders(e);
        return MPL_OK;
    }
    MPL_TRY(mpl_layout_new(e->m, &before));
    mpl_layout_copy(e->m, &before, &e->l);
    MPL_TRY(mpl_layout_take_pair(e->m, &e->l, i, &taken));
    if (taken)
        MPL_TRY(try_pairs(e, i + 1));
    mpl_layout_copy(e->m, &e->l, &before);
    MPL_TRY(try_pairs(e, i + 1));
out:
    mpl_layout_free(e->m->ctx, &before);
    return st;
}

mpl_status mpl_template_exact(mpl_draft *m, mpl_layout *best, mpl_ratio *worst)
{
    mpl_status st = MPL_OK;
    exact e = {.m = m, .best = best, .least = {UINT64_MAX, 1}};
    size_t n = (size_t)m->n_scenes * m->p->n;

    e.limit = m->run->budget_ticks != UINT64_MAX ? m->run->budget_ticks : DEFAULT_TICKS;
    e.limit += m->ticks < UINT64_MAX - e.limit ? m->ticks : 0;
    MPL_TRY(mpl_layout_new(m, &e.l));
    MPL_TRY(mpl_new_each(m->ctx, n, e.offset, e.distance));
    MPL_TRY(mpl_new(m->ctx, e.root, m->p->n));
    MPL_TRY(try_pairs(&e, 0));
    if (m->ticks >= e.limit)
        MPL_FAIL(m->ctx, MPL_ELIMIT, "the effort ended before all orders of %u buffers were tried",
                 m->p->n);
    *worst = e.least;
out:
    mpl_layout_free(m->ctx, &e.l);
    mpl_free_each(m->ctx, e.offset, e.distance, e.root);
    return st;
}
