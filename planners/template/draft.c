/* draft.c -- scenes (a problem's numbers at one shape) and layouts (what is placed after what). */
#include "graphs/symbols/bernstein.h"
#include "planners/template/template_priv.h"

#include <stdlib.h>

static mpl_status find_rivals(mpl_draft *draft)
{
    const mpl_problem *p = draft->p;
    size_t n = 0, cap = 0;

    MPL_PASS(mpl_new(draft->ctx, draft->rival_begin, p->n + 1));
    for (mpl_buffer a = 0; a < p->n; a++) {
        for (mpl_buffer b = 0; b < p->n; b++) {
            if (a == b || !mpl_conflict(p, a, b))
                continue;
            MPL_PASS(mpl_reserve(draft->ctx, draft->rival, cap, n + 1));
            draft->rival[n++] = b;
        }
        if (n > MPL_NONE / 2)
            return MPL_ERROR(draft->ctx, MPL_ELIMIT, "too many conflicts for a template");
        draft->rival_begin[a + 1] = (uint32_t)n;
    }
    return MPL_OK;
}

mpl_status mpl_draft_init(mpl_run *run, const mpl_sym_problem *sp, const mpl_box *box,
                          mpl_draft *draft)
{
    uint32_t n = sp->at->n;

    *draft = (mpl_draft){.run = run, .ctx = run->ctx, .sp = sp, .p = sp->at};
    MPL_PASS(mpl_box_new(run->ctx, sp->exprs, &draft->box));
    if (box != NULL) {
        memcpy(draft->box.low, box->low, box->n * sizeof *box->low);
        memcpy(draft->box.high, box->high, box->n * sizeof *box->high);
    }
    MPL_PASS(mpl_new_each(run->ctx, n + 1, draft->offset, draft->distance, draft->order,
                          draft->root, draft->chain));
    return find_rivals(draft);
}

static void free_scene(mpl_ctx *ctx, mpl_scene *scene)
{
    mpl_free_each(ctx, scene->value, scene->bytes, scene->inside);
}

void mpl_draft_fini(mpl_draft *draft)
{
    for (uint32_t i = 0; i < draft->n_scenes; i++)
        free_scene(draft->ctx, &draft->scene[i]);
    mpl_box_free(draft->ctx, &draft->box);
    mpl_free_each(draft->ctx, draft->offset, draft->distance, draft->order, draft->root,
                  draft->chain, draft->rival_begin, draft->rival, draft->scene);
}

mpl_status mpl_draft_add(mpl_draft *draft, const int64_t *value)
{
    mpl_status st = MPL_OK;
    uint32_t n_symbols = draft->box.n;
    mpl_problem *p = NULL;
    mpl_scene s = {0};

    for (uint32_t i = 0; i < draft->n_scenes; i++)
        if (memcmp(draft->scene[i].value, value, n_symbols * sizeof *value) == 0)
            return MPL_OK;
    MPL_TRY(mpl_sym_problem_at(draft->ctx, draft->sp, value, &p));
    MPL_TRY(mpl_new(draft->ctx, s.value, n_symbols + 1));
    MPL_TRY(mpl_new_each(draft->ctx, p->n, s.bytes, s.inside));
    memcpy(s.value, value, n_symbols * sizeof *value);
    memcpy(s.bytes, p->bytes, p->n * sizeof *s.bytes);
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        s.inside[b] = p->inside_at[b];
    MPL_TRY(mpl_template_bound(draft->ctx, draft->sp, value, &s.bound));
    MPL_TRY(mpl_reserve(draft->ctx, draft->scene, draft->cap_scenes, draft->n_scenes + 1));
    draft->scene[draft->n_scenes++] = s;
    s = (mpl_scene){0};
out:
    free_scene(draft->ctx, &s);
    mpl_problem_free(draft->ctx, p);
    return st;
}

/* ---- layouts ---- */

mpl_status mpl_layout_new(mpl_draft *draft, mpl_layout *out)
{
    mpl_layout l = {NULL, NULL};

    if (mpl_new_each(draft->ctx, draft->p->n, l.on, l.rank) != MPL_OK) {
        mpl_layout_free(draft->ctx, &l);
        return MPL_EMEM;
    }
    for (mpl_buffer b = 0; b < draft->p->n; b++)
        l.on[b] = b;
    *out = l;
    return MPL_OK;
}

void mpl_layout_free(mpl_ctx *ctx, mpl_layout *layout)
{
    mpl_free_each(ctx, layout->on, layout->rank);
    *layout = (mpl_layout){NULL, NULL};
}

void mpl_layout_copy(const mpl_draft *draft, mpl_layout *to, const mpl_layout *from)
{
    memcpy(to->on, from->on, draft->p->n * sizeof *from->on);
    memcpy(to->rank, from->rank, draft->p->n * sizeof *from->rank);
}

/* The buffer whose offset a buffer shares or starts from: the first part of its family, the buffer
 * that it overwrites, or itself. */
static mpl_buffer parent_of(const mpl_problem *p, const mpl_layout *layout, mpl_buffer b)
{
    return p->inside != NULL && p->inside[b] != b ? p->inside[b] : layout->on[b];
}

void mpl_layout_roots(mpl_draft *draft, const mpl_layout *layout)
{
    for (mpl_buffer b = 0; b < draft->p->n; b++) {
        mpl_buffer root = b;

        while (parent_of(draft->p, layout, root) != root)
            root = parent_of(draft->p, layout, root);
        draft->root[b] = root;
    }
}

/* The distance of b from its root, as an expression. */
static mpl_status distance_of(mpl_draft *draft, const mpl_layout *layout, mpl_buffer b,
                              mpl_expr *out)
{
    mpl_expr sum = 0;

    for (mpl_buffer on; (on = parent_of(draft->p, layout, b)) != b; b = on)
        if (layout->on[b] == b)
            MPL_PASS(
                mpl_expr_add(draft->ctx, draft->sp->exprs, sum, draft->sp->inside_at[b], &sum));
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
static mpl_status body_holds(mpl_draft *draft, const mpl_layout *layout, mpl_buffer of, bool *holds)
{
    const mpl_exprs *exprs = draft->sp->exprs;

    *holds = true;
    mpl_layout_roots(draft, layout);
    for (mpl_buffer a = 0; a < draft->p->n; a++) {
        mpl_expr away;

        if (draft->root[a] != draft->root[of])
            continue;
        MPL_PASS(distance_of(draft, layout, a, &away));
        *holds = *holds && mpl_expr_divisor(exprs, away) % draft->p->align[a] == 0;
        for (uint32_t i = draft->rival_begin[a]; i < draft->rival_begin[a + 1]; i++) {
            mpl_buffer b = draft->rival[i];
            mpl_expr at_a, at_b, end_a, end_b;

            if (b < a || draft->root[b] != draft->root[a])
                continue;
            MPL_PASS(distance_of(draft, layout, a, &at_a));
            MPL_PASS(distance_of(draft, layout, b, &at_b));
            MPL_PASS(mpl_expr_add(draft->ctx, draft->sp->exprs, at_a, draft->sp->bytes[a], &end_a));
            MPL_PASS(mpl_expr_add(draft->ctx, draft->sp->exprs, at_b, draft->sp->bytes[b], &end_b));
            if (!(at_a == at_b && is_pair(draft->p, a, b)) &&
                !mpl_expr_at_most(exprs, end_a, at_b, NULL) &&
                !mpl_expr_at_most(exprs, end_b, at_a, NULL))
                *holds = false;
        }
    }
    return MPL_OK;
}

mpl_status mpl_layout_take_pair(mpl_draft *draft, mpl_layout *layout, uint32_t i, bool *taken)
{
    const mpl_problem *p = draft->p;
    mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];
    mpl_buffer moved = parent_of(p, layout, out) == out ? out : in, other = moved == out ? in : out;

    *taken = false;
    mpl_layout_roots(draft, layout);
    if (draft->root[in] == draft->root[out] || parent_of(p, layout, moved) != moved)
        return MPL_OK;
    layout->on[moved] = other;
    MPL_PASS(body_holds(draft, layout, moved, taken));
    if (!*taken)
        layout->on[moved] = moved;
    return MPL_OK;
}

/* Puts the pairs of a plan on each other, as far as the bodies allow it for every shape. */
static mpl_status take_pairs(mpl_draft *draft, const uint64_t *offset, mpl_layout *layout)
{
    bool taken;

    for (uint32_t i = 0; i < draft->p->n_in_place; i++)
        if (offset[draft->p->in_place_in[i]] == offset[draft->p->in_place_out[i]])
            MPL_PASS(mpl_layout_take_pair(draft, layout, i, &taken));
    return MPL_OK;
}

/* Orders the bodies as the plan has their buffers: what lies below comes first; of a circle, the
 * lowest. */
static void rank_bodies(mpl_draft *draft, const mpl_scene *scene, const uint64_t *offset,
                        mpl_layout *layout)
{
    const mpl_problem *p = draft->p;
    uint32_t *waiting = draft->order; /* of a root */

    mpl_layout_roots(draft, layout);
    memset(waiting, 0, p->n * sizeof *waiting);
    for (mpl_buffer b = 0; b < p->n; b++) {
        layout->rank[b] = MPL_NONE;
        for (uint32_t i = draft->rival_begin[b]; i < draft->rival_begin[b + 1]; i++) {
            mpl_buffer a = draft->rival[i];

            waiting[draft->root[b]] +=
                draft->root[a] != draft->root[b] && offset[a] + scene->bytes[a] <= offset[b];
        }
    }
    for (uint32_t rank = 0;; rank++) {
        mpl_buffer next = MPL_NONE;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (draft->root[b] == b && layout->rank[b] == MPL_NONE &&
                (next == MPL_NONE || (waiting[b] == 0) > (waiting[next] == 0) ||
                 ((waiting[b] == 0) == (waiting[next] == 0) && offset[b] < offset[next])))
                next = b;
        if (next == MPL_NONE)
            return;
        for (mpl_buffer a = 0; a < p->n; a++) {
            if (draft->root[a] != next)
                continue;
            layout->rank[a] = rank;
            for (uint32_t i = draft->rival_begin[a]; i < draft->rival_begin[a + 1]; i++) {
                mpl_buffer b = draft->rival[i];

                waiting[draft->root[b]] -=
                    draft->root[b] != next && offset[a] + scene->bytes[a] <= offset[b];
            }
        }
    }
}

mpl_status mpl_layout_of_plan(mpl_draft *draft, const mpl_scene *scene, const uint64_t *offset,
                              mpl_layout *out)
{
    for (mpl_buffer b = 0; b < draft->p->n; b++)
        out->on[b] = b;
    MPL_PASS(take_pairs(draft, offset, out));
    rank_bodies(draft, scene, offset, out);
    return MPL_OK;
}

/* ---- evaluation ---- */

/* Buffers by rank, those of a body each after its parent, in draft->order. */
static void order_members(mpl_draft *draft, const mpl_layout *layout)
{
    uint32_t n = draft->p->n, *begin = draft->root; /* ranks are below n */

    memset(begin, 0, n * sizeof *begin);
    for (mpl_buffer b = 0; b < n; b++)
        if (layout->rank[b] + 1 < n)
            begin[layout->rank[b] + 1]++;
    for (uint32_t i = 1; i < n; i++)
        begin[i] += begin[i - 1];
    for (mpl_buffer b = 0; b < n; b++)
        draft->order[begin[layout->rank[b]]++] = b;
}

uint64_t mpl_layout_height(mpl_draft *draft, const mpl_layout *layout, const mpl_scene *scene)
{
    const mpl_problem *p = draft->p;
    uint64_t top = 0;

    order_members(draft, layout);
    for (mpl_buffer b = 0; b < p->n; b++) {
        draft->distance[b] = 0;
        for (mpl_buffer c = b, on; (on = parent_of(p, layout, c)) != c; c = on)
            draft->distance[b] += layout->on[c] == c ? scene->inside[c] : 0;
    }
    for (uint32_t i = 0, end; i < p->n; i = end) {
        uint64_t start = 0, align = 1;

        for (end = i;
             end < p->n && layout->rank[draft->order[end]] == layout->rank[draft->order[i]];
             end++) {
            mpl_buffer b = draft->order[end];

            align = mpl_max_u64(align, p->align[b]);
            for (uint32_t k = draft->rival_begin[b]; k < draft->rival_begin[b + 1]; k++) {
                mpl_buffer a = draft->rival[k];
                uint64_t above =
                    layout->rank[a] < layout->rank[b] ? draft->offset[a] + scene->bytes[a] : 0;

                if (above > draft->distance[b] && above - draft->distance[b] > start)
                    start = above - draft->distance[b];
            }
            draft->ticks += draft->rival_begin[b + 1] - draft->rival_begin[b] + 4;
        }
        start = mpl_align_up(start, align);
        for (uint32_t k = i; k < end; k++) {
            mpl_buffer b = draft->order[k];

            draft->offset[b] = start + draft->distance[b];
            if (p->pool[b] == 0)
                top = mpl_max_u64(top, draft->offset[b] + scene->bytes[b]);
        }
    }
    return top;
}

mpl_ratio mpl_layout_worst(mpl_draft *draft, const mpl_layout *layout, uint32_t *worst)
{
    mpl_ratio most = {0, 1};

    for (uint32_t i = 0; i < draft->n_scenes; i++) {
        mpl_ratio r = {mpl_layout_height(draft, layout, &draft->scene[i]), draft->scene[i].bound};

        if (mpl_ratio_less(most, r)) {
            most = r;
            if (worst != NULL)
                *worst = i;
        }
    }
    return most;
}

/* ---- relations ---- */

mpl_status mpl_layout_relations(mpl_draft *draft, const mpl_layout *layout, mpl_template_cell *cell)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = draft->p;
    uint32_t n_words = (p->n + 63) / 64;
    uint64_t *below = NULL; /* row b: buffers below b by a chain */
    size_t n = 0, cap_below = 0, cap_above = 0;

    MPL_TRY(mpl_new(draft->ctx, below, (size_t)p->n * n_words));
    memcpy(cell->on, layout->on, p->n * sizeof *layout->on);
    order_members(draft, layout);
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = draft->order[i];
        uint64_t *row = below + (size_t)b * n_words;

        for (uint32_t j = i; j-- > 0;) { /* the nearest first: it may imply the others */
            mpl_buffer a = draft->order[j];

            if (layout->rank[a] == layout->rank[b] || mpl_bit_has(row, a) || !mpl_conflict(p, a, b))
                continue;
            MPL_TRY(mpl_reserve(draft->ctx, cell->below, cap_below, n + 1));
            MPL_TRY(mpl_reserve(draft->ctx, cell->above, cap_above, n + 1));
            cell->below[n] = a, cell->above[n++] = b;
            mpl_bit_add(row, a);
            for (uint32_t w = 0; w < n_words; w++)
                row[w] |= below[(size_t)a * n_words + w];
        }
    }
    cell->n_relations = (uint32_t)n;
out:
    mpl_free(draft->ctx, below);
    return st;
}
