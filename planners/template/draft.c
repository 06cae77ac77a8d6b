/* draft.c -- scenes (a problem's numbers at one shape) and layouts (what is placed after what). */
#include "graphs/symbols/bernstein.h"
#include "planners/template/template_priv.h"

#include <stdlib.h>

static mpl_status find_rivals(mpl_draft *m)
{
    const mpl_problem *p = m->p;
    size_t n = 0, cap = 0;

    MPL_PASS(mpl_new(m->ctx, m->rival_begin, p->n + 1));
    for (mpl_buffer a = 0; a < p->n; a++) {
        for (mpl_buffer b = 0; b < p->n; b++) {
            if (a == b || !mpl_conflict(p, a, b))
                continue;
            MPL_PASS(mpl_reserve(m->ctx, m->rival, cap, n + 1));
            m->rival[n++] = b;
        }
        if (n > MPL_NONE / 2)
            return MPL_ERROR(m->ctx, MPL_ELIMIT, "too many conflicts for a template");
        m->rival_begin[a + 1] = (uint32_t)n;
    }
    return MPL_OK;
}

mpl_status mpl_draft_init(mpl_run *run, const mpl_sym_problem *sp, const mpl_box *box, mpl_draft *m)
{
    uint32_t n = sp->at->n;

    *m = (mpl_draft){.run = run, .ctx = run->ctx, .sp = sp, .p = sp->at};
    MPL_PASS(mpl_box_new(run->ctx, sp->x, &m->box));
    if (box != NULL) {
        memcpy(m->box.low, box->low, box->n * sizeof *box->low);
        memcpy(m->box.high, box->high, box->n * sizeof *box->high);
    }
    MPL_PASS(mpl_new_each(run->ctx, n + 1, m->offset, m->distance, m->order, m->root, m->chain));
    return find_rivals(m);
}

static void free_scene(mpl_ctx *ctx, mpl_scene *s)
{
    mpl_free_each(ctx, s->value, s->bytes, s->inside);
}

void mpl_draft_fini(mpl_draft *m)
{
    for (uint32_t i = 0; i < m->n_scenes; i++)
        free_scene(m->ctx, &m->scene[i]);
    mpl_box_free(m->ctx, &m->box);
    mpl_free_each(m->ctx, m->offset, m->distance, m->order, m->root, m->chain, m->rival_begin,
                  m->rival, m->scene);
}

mpl_status mpl_draft_add(mpl_draft *m, const int64_t *value)
{
    mpl_status st = MPL_OK;
    uint32_t n_symbols = m->box.n;
    mpl_problem *p = NULL;
    mpl_scene s = {0};

    for (uint32_t i = 0; i < m->n_scenes; i++)
        if (memcmp(m->scene[i].value, value, n_symbols * sizeof *value) == 0)
            return MPL_OK;
    MPL_TRY(mpl_sym_problem_at(m->ctx, m->sp, value, &p));
    MPL_TRY(mpl_new(m->ctx, s.value, n_symbols + 1));
    MPL_TRY(mpl_new_each(m->ctx, p->n, s.bytes, s.inside));
    memcpy(s.value, value, n_symbols * sizeof *value);
    memcpy(s.bytes, p->bytes, p->n * sizeof *s.bytes);
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        s.inside[b] = p->inside_at[b];
    MPL_TRY(mpl_template_bound(m->ctx, m->sp, value, &s.bound));
    MPL_TRY(mpl_reserve(m->ctx, m->scene, m->cap_scenes, m->n_scenes + 1));
    m->scene[m->n_scenes++] = s;
    s = (mpl_scene){0};
out:
    free_scene(m->ctx, &s);
    mpl_problem_free(m->ctx, p);
    return st;
}

/* ---- layouts ---- */

mpl_status mpl_layout_new(mpl_draft *m, mpl_layout *out)
{
    mpl_layout l = {NULL, NULL};

    if (mpl_new_each(m->ctx, m->p->n, l.on, l.rank) != MPL_OK) {
        mpl_layout_free(m->ctx, &l);
        return MPL_EMEM;
    }
    for (mpl_buffer b = 0; b < m->p->n; b++)
        l.on[b] = b;
    *out = l;
    return MPL_OK;
}

void mpl_layout_free(mpl_ctx *ctx, mpl_layout *l)
{
    mpl_free_each(ctx, l->on, l->rank);
    *l = (mpl_layout){NULL, NULL};
}

void mpl_layout_copy(const mpl_draft *m, mpl_layout *to, const mpl_layout *from)
{
    memcpy(to->on, from->on, m->p->n * sizeof *from->on);
    memcpy(to->rank, from->rank, m->p->n * sizeof *from->rank);
}

/* The buffer whose offset a buffer shares or starts from: the first part of its family, the buffer
 * that it overwrites, or itself. */
static mpl_buffer parent_of(const mpl_problem *p, const mpl_layout *l, mpl_buffer b)
{
    return p->inside != NULL && p->inside[b] != b ? p->inside[b] : l->on[b];
}

void mpl_layout_roots(mpl_draft *m, const mpl_layout *l)
{
    for (mpl_buffer b = 0; b < m->p->n; b++) {
        mpl_buffer root = b;

        while (parent_of(m->p, l, root) != root)
            root = parent_of(m->p, l, root);
        m->root[b] = root;
    }
}

/* The distance of b from its root, as an expression. */
static mpl_status distance_of(mpl_draft *m, const mpl_layout *l, mpl_buffer b, mpl_expr *out)
{
    mpl_expr sum = 0;

    for (mpl_buffer on; (on = parent_of(m->p, l, b)) != b; b = on)
        if (l->on[b] == b)
            MPL_PASS(mpl_expr_add(m->ctx, m->sp->x, sum, m->sp->inside_at[b], &sum));
    *out = sum;
    return MPL_OK;
}

static bool is_pair(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if ((p->in_place_in[i] == a && p->in_place_out[i] == b) ||
            (p->in_place_in[i] == b && p->in_place_out[i] == a))
            return true;
    return false;
}

/* Whether buffers of one body are aligned, and those that conflict proved apart or a pair at one
 * offset. */
static mpl_status body_holds(mpl_draft *m, const mpl_layout *l, mpl_buffer of, bool *holds)
{
    const mpl_exprs *x = m->sp->x;

    *holds = true;
    mpl_layout_roots(m, l);
    for (mpl_buffer a = 0; a < m->p->n; a++) {
        mpl_expr away;

        if (m->root[a] != m->root[of])
            continue;
        MPL_PASS(distance_of(m, l, a, &away));
        *holds = *holds && mpl_expr_divisor(x, away) % m->p->align[a] == 0;
        for (uint32_t i = m->rival_begin[a]; i < m->rival_begin[a + 1]; i++) {
            mpl_buffer b = m->rival[i];
            mpl_expr at_a, at_b, end_a, end_b;

            if (b < a || m->root[b] != m->root[a])
                continue;
            MPL_PASS(distance_of(m, l, a, &at_a));
            MPL_PASS(distance_of(m, l, b, &at_b));
            MPL_PASS(mpl_expr_add(m->ctx, m->sp->x, at_a, m->sp->bytes[a], &end_a));
            MPL_PASS(mpl_expr_add(m->ctx, m->sp->x, at_b, m->sp->bytes[b], &end_b));
            if (!(at_a == at_b && is_pair(m->p, a, b)) && !mpl_expr_at_most(x, end_a, at_b, NULL) &&
                !mpl_expr_at_most(x, end_b, at_a, NULL))
                *holds = false;
        }
    }
    return MPL_OK;
}

mpl_status mpl_layout_take_pair(mpl_draft *m, mpl_layout *l, uint32_t i, bool *taken)
{
    const mpl_problem *p = m->p;
    mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];
    mpl_buffer moved = parent_of(p, l, out) == out ? out : in, other = moved == out ? in : out;

    *taken = false;
    mpl_layout_roots(m, l);
    if (m->root[in] == m->root[out] || parent_of(p, l, moved) != moved)
        return MPL_OK;
    l->on[moved] = other;
    MPL_PASS(body_holds(m, l, moved, taken));
    if (!*taken)
        l->on[moved] = moved;
    return MPL_OK;
}

/* Puts the pairs of a plan on each other, as far as the bodies allow it for every shape. */
static mpl_status take_pairs(mpl_draft *m, const uint64_t *offset, mpl_layout *l)
{
    bool taken;

    for (uint32_t i = 0; i < m->p->n_in_place; i++)
        if (offset[m->p->in_place_in[i]] == offset[m->p->in_place_out[i]])
            MPL_PASS(mpl_layout_take_pair(m, l, i, &taken));
    return MPL_OK;
}

/* Orders the bodies as the plan has their buffers: what lies below comes first; of a circle, the
 * lowest. */
static void rank_bodies(mpl_draft *m, const mpl_scene *scene, const uint64_t *offset, mpl_layout *l)
{
    const mpl_problem *p = m->p;
    uint32_t *waiting = m->order; /* of a root */

    mpl_layout_roots(m, l);
    memset(waiting, 0, p->n * sizeof *waiting);
    for (mpl_buffer b = 0; b < p->n; b++) {
        l->rank[b] = MPL_NONE;
        for (uint32_t i = m->rival_begin[b]; i < m->rival_begin[b + 1]; i++) {
            mpl_buffer a = m->rival[i];

            waiting[m->root[b]] +=
                m->root[a] != m->root[b] && offset[a] + scene->bytes[a] <= offset[b];
        }
    }
    for (uint32_t rank = 0;; rank++) {
        mpl_buffer next = MPL_NONE;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (m->root[b] == b && l->rank[b] == MPL_NONE &&
                (next == MPL_NONE || (waiting[b] == 0) > (waiting[next] == 0) ||
                 ((waiting[b] == 0) == (waiting[next] == 0) && offset[b] < offset[next])))
                next = b;
        if (next == MPL_NONE)
            return;
        for (mpl_buffer a = 0; a < p->n; a++) {
            if (m->root[a] != next)
                continue;
            l->rank[a] = rank;
            for (uint32_t i = m->rival_begin[a]; i < m->rival_begin[a + 1]; i++) {
                mpl_buffer b = m->rival[i];

                waiting[m->root[b]] -=
                    m->root[b] != next && offset[a] + scene->bytes[a] <= offset[b];
            }
        }
    }
}

mpl_status mpl_layout_of_plan(mpl_draft *m, const mpl_scene *scene, const uint64_t *offset,
                              mpl_layout *out)
{
    for (mpl_buffer b = 0; b < m->p->n; b++)
        out->on[b] = b;
    MPL_PASS(take_pairs(m, offset, out));
    rank_bodies(m, scene, offset, out);
    return MPL_OK;
}

/* ---- evaluation ---- */

/* Buffers by rank, those of a body each after its parent, in m->order. */
static void order_members(mpl_draft *m, const mpl_layout *l)
{
    uint32_t n = m->p->n, *begin = m->root; /* ranks are below n */

    memset(begin, 0, n * sizeof *begin);
    for (mpl_buffer b = 0; b < n; b++)
        if (l->rank[b] + 1 < n)
            begin[l->rank[b] + 1]++;
    for (uint32_t i = 1; i < n; i++)
        begin[i] += begin[i - 1];
    for (mpl_buffer b = 0; b < n; b++)
        m->order[begin[l->rank[b]]++] = b;
}

uint64_t mpl_layout_height(mpl_draft *m, const mpl_layout *l, const mpl_scene *scene)
{
    const mpl_problem *p = m->p;
    uint64_t top = 0;

    order_members(m, l);
    for (mpl_buffer b = 0; b < p->n; b++) {
        m->distance[b] = 0;
        for (mpl_buffer c = b, on; (on = parent_of(p, l, c)) != c; c = on)
            m->distance[b] += l->on[c] == c ? scene->inside[c] : 0;
    }
    for (uint32_t i = 0, end; i < p->n; i = end) {
        uint64_t start = 0, align = 1;

        for (end = i; end < p->n && l->rank[m->order[end]] == l->rank[m->order[i]]; end++) {
            mpl_buffer b = m->order[end];

            align = mpl_max_u64(align, p->align[b]);
            for (uint32_t k = m->rival_begin[b]; k < m->rival_begin[b + 1]; k++) {
                mpl_buffer a = m->rival[k];
                uint64_t above = l->rank[a] < l->rank[b] ? m->offset[a] + scene->bytes[a] : 0;

                if (above > m->distance[b] && above - m->distance[b] > start)
                    start = above - m->distance[b];
            }
            m->ticks += m->rival_begin[b + 1] - m->rival_begin[b] + 4;
        }
        start = mpl_align_up(start, align);
        for (uint32_t k = i; k < end; k++) {
            mpl_buffer b = m->order[k];

            m->offset[b] = start + m->distance[b];
            if (p->pool[b] == 0)
                top = mpl_max_u64(top, m->offset[b] + scene->bytes[b]);
        }
    }
    return top;
}

mpl_ratio mpl_layout_worst(mpl_draft *m, const mpl_layout *l, uint32_t *worst)
{
    mpl_ratio most = {0, 1};

    for (uint32_t i = 0; i < m->n_scenes; i++) {
        mpl_ratio r = {mpl_layout_height(m, l, &m->scene[i]), m->scene[i].bound};

        if (mpl_ratio_less(most, r)) {
            most = r;
            if (worst != NULL)
                *worst = i;
        }
    }
    return most;
}

/* ---- relations ---- */

mpl_status mpl_layout_relations(mpl_draft *m, const mpl_layout *l, mpl_template_cell *cell)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = m->p;
    uint32_t n_words = (p->n + 63) / 64;
    uint64_t *below = NULL; /* row b: buffers below b by a chain */
    size_t n = 0, cap_below = 0, cap_above = 0;

    MPL_TRY(mpl_new(m->ctx, below, (size_t)p->n * n_words));
    memcpy(cell->on, l->on, p->n * sizeof *l->on);
    order_members(m, l);
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = m->order[i];
        uint64_t *row = below + (size_t)b * n_words;

        for (uint32_t j = i; j-- > 0;) { /* the nearest first: it may imply the others */
            mpl_buffer a = m->order[j];

            if (l->rank[a] == l->rank[b] || mpl_bit_has(row, a) || !mpl_conflict(p, a, b))
                continue;
            MPL_TRY(mpl_reserve(m->ctx, cell->below, cap_below, n + 1));
            MPL_TRY(mpl_reserve(m->ctx, cell->above, cap_above, n + 1));
            cell->below[n] = a, cell->above[n++] = b;
            mpl_bit_add(row, a);
            for (uint32_t w = 0; w < n_words; w++)
                row[w] |= below[(size_t)a * n_words + w];
        }
    }
    cell->n_relations = (uint32_t)n;
out:
    mpl_free(m->ctx, below);
    return st;
}
