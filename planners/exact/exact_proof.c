/* exact_proof.c -- the search once more, slowly, writing down why there is no plan. See
 * exact_priv.h and CERTIFICATES.md.
 *
 * Idea     What the portfolio refuted in a hurry is refuted again by one member at a time, without
 *          noise, in the steps that a checker can follow. Which cell comes next is all that matters
 *          to the size of a tree without solutions, so the members differ in that; each gets a few
 *          nodes, then all get more. A state that failed before is referred to, if its refutation
 *          is still in the text: that of a component in which a solution turned up is taken back.
 * Source   this project */
#include "planners/exact/exact_priv.h"
#include "planners/plan/proof.h"

#define FIRST_NODES 256
#define CLOCK_NODES 256

static const struct member {
    uint8_t pick, mirrored;
} members[] = {
    {MPL_PICK_SCORE_LOW, 0},   {MPL_PICK_SCORE_LOW, 1},  {MPL_PICK_SCORE_TIGHT, 0},
    {MPL_PICK_SCORE_TIGHT, 1}, {MPL_PICK_SCORE_HIGH, 0}, {MPL_PICK_TIGHT, 0},
    {MPL_PICK_LOW, 0},         {MPL_PICK_TIGHT, 1},
};

struct mpl_exact_prover {
    mpl_ctx *ctx;
    const mpl_exact_part *part;
    mpl_exact_case *c;
    mpl_exact_state *x;
    mpl_exact_search q;
    uint32_t *rank;
    uint32_t *set; /* [section] its items, as a set in the text */
    mpl_proof *proof;
    uint64_t nodes, node_limit;
    mpl_exact_effort *effort;
    bool lost; /* a failure that no record can state */
};

typedef mpl_exact_prover prover;

static mpl_exact_verdict refute(prover *w, int32_t a, int32_t b);

static uint32_t id(const prover *w, int32_t i)
{
    return w->part->buffer[w->c->item[i]];
}

static void write_raise(mpl_exact_prover *w, int32_t section, int32_t i, mpl_len est)
{
    mpl_proof_add(w->proof, 'r', id(w, i), w->set[section], (uint64_t)est * w->part->unit);
}

/* ---- failed states ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 32)) * UINT64_C(0xe9846af9b1a615d);
    z = (z ^ (z >> 32)) * UINT64_C(0xe9846af9b1a615d);
    return z ^ (z >> 28);
}

/* The name of the open items of sections [a, b) with their ests. */
static uint64_t name_of(const prover *w, int32_t a, int32_t b)
{
    const mpl_exact_state *x = w->x;
    uint64_t name = mix((uint64_t)x->cap[a] + 1);

    for (int32_t i = w->c->first[a]; i < w->c->first[b]; i++)
        if (!x->placed[i])
            name += mix((uint64_t)x->est[i] * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)i + 1);
    return name;
}

/* ---- contradictions ---- */

/* Whether the open items of section s with est >= least have no room; and those of them with the
 * least est. */
static bool no_room(const prover *w, int32_t s, mpl_len least)
{
    const mpl_exact_state *x = w->x;
    mpl_len sum = 0;

    for (int32_t k = w->c->begin[s]; k < w->c->begin[s + 1]; k++) {
        int32_t i = w->c->member[k];

        sum += !x->placed[i] && x->est[i] >= least ? w->c->size[i] : 0;
    }
    return least + sum > x->cap[s];
}

/* Draws conclusions; where they end in a contradiction, states it. */
static bool settle(prover *w)
{
    mpl_exact_state *x = w->x;
    const mpl_exact_case *c = w->c;

    if (mpl_exact_settle(x))
        return true;
    for (int32_t i = 0; i < c->n; i++)
        if (!x->placed[i] && x->est[i] + c->size[i] > c->limit[i]) {
            mpl_proof_add(w->proof, 'z', id(w, i), 0, 0);
            return false;
        }
    for (int32_t s = 0; s < c->n_sections; s++)
        for (int32_t k = c->begin[s]; k < c->begin[s + 1]; k++)
            if (!x->placed[c->member[k]] && no_room(w, s, x->est[c->member[k]])) {
                mpl_proof_add(w->proof, 'x', id(w, c->member[k]), w->set[s], 0);
                return false;
            }
    w->lost = true;
    return false;
}

/* ---- the tree ---- */

static bool out_of_budget(prover *w)
{
    const mpl_exact_effort *e = w->effort;

    if (w->lost || w->proof->failed || w->x->no_memory || w->nodes >= w->node_limit ||
        w->x->ticks >= e->tick_limit - e->ticks)
        return true;
    if (w->nodes % CLOCK_NODES == 0 && mpl_exact_late(e->deadline_ns, e->watch))
        w->effort->by_clock = true;
    return w->effort->by_clock;
}

/* Item i (-1: nobody) takes the floor cell of s. */
static bool child(prover *w, int32_t i, int32_t s)
{
    w->nodes++;
    mpl_proof_add(w->proof, i >= 0 ? 'p' : 'n', i >= 0 ? id(w, i) : 0, 0, 0);
    if (i >= 0)
        mpl_exact_place(w->x, i);
    else
        mpl_exact_nobody(&w->q, s);
    return settle(w);
}

static mpl_exact_verdict branch(prover *w, int32_t a, int32_t b, const mpl_exact_cell *cell)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    size_t base = w->q.n_stack, mark = w->x->n_trail, at;
    uint64_t name = name_of(w, a, b);
    int32_t n;

    if ((at = mpl_proof_known(w->proof, name)) != SIZE_MAX) {
        mpl_proof_add(w->proof, 'm', (uint32_t)at, 0, 0);
        return MPL_EXACT_FAILED;
    }
    at = w->proof->n;
    mpl_proof_add(w->proof, 'k', 0, 0, name);
    n = mpl_exact_candidates(&w->q, cell);
    mpl_proof_add(w->proof, 'b', w->set[cell->section], (uint32_t)n + 1, 0);
    for (int32_t k = 0; k <= n && verdict == MPL_EXACT_FAILED; k++) {
        mpl_exact_undo(w->x, mark);
        if (out_of_budget(w))
            verdict = MPL_EXACT_STOPPED;
        else if (child(w, k < n ? w->q.stack[base + (size_t)k] : -1, cell->section))
            verdict = refute(w, a, b);
    }
    w->q.n_stack = base;
    if (w->x->no_memory || w->proof->failed || w->lost)
        return MPL_EXACT_STOPPED;
    if (verdict == MPL_EXACT_FAILED)
        mpl_proof_remember(w->proof, name, at);
    return verdict;
}

/* Only the open items of sections [a, b), which are a component, stay. */
static void keep_component(prover *w, int32_t a, int32_t b)
{
    for (int32_t i = w->c->first[a]; i < w->c->first[b]; i++)
        if (!w->x->placed[i]) {
            mpl_proof_add(w->proof, 'o', id(w, i), 0, 0);
            return;
        }
}

/* One of several components has no completion: those with few sections first. What is written of
 * one that has is taken back. */
static mpl_exact_verdict refute_parts(prover *w, int32_t a, int32_t b)
{
    for (int32_t done = 0, next; done < INT32_MAX; done = next) {
        next = INT32_MAX;
        for (int32_t from = a, end; mpl_exact_component(w->x, &from, b, &end); from = end)
            if (end - from > done && end - from < next)
                next = end - from;
        for (int32_t from = a, end; mpl_exact_component(w->x, &from, b, &end); from = end) {
            size_t mark = w->proof->n;
            mpl_exact_verdict verdict;

            if (end - from != next)
                continue;
            keep_component(w, from, end);
            verdict = refute(w, from, end);
            if (verdict != MPL_EXACT_FOUND)
                return verdict;
            w->proof->n = mark;
        }
    }
    return MPL_EXACT_FOUND;
}

static mpl_exact_verdict refute(prover *w, int32_t a, int32_t b)
{
    mpl_exact_state *x = w->x;

    for (;;) {
        mpl_exact_cell cell;
        int32_t end, last, top;
        size_t mark;

        if (!mpl_exact_component(x, &a, b, &end))
            return MPL_EXACT_FOUND;
        last = end;
        if (mpl_exact_component(x, &last, b, &(int32_t){0}))
            return refute_parts(w, a, b);
        b = end;
        if ((top = mpl_exact_universal(x, a, b)) >= 0) {
            mpl_proof_add(w->proof, 'u', id(w, top), 0, 0);
            mpl_exact_place_top(x, top, a, b);
            if (!settle(w))
                return MPL_EXACT_FAILED;
            continue;
        }
        cell = mpl_exact_choose(&w->q, a, b);
        if (cell.score > 1)
            return branch(w, a, b, &cell);
        if (out_of_budget(w) || mpl_exact_candidates(&w->q, &cell) < 0)
            return MPL_EXACT_STOPPED;
        w->q.n_stack--; /* forced: nobody cannot be */
        mark = x->n_trail;
        mpl_proof_add(w->proof, 'b', w->set[cell.section], 2, 0);
        if (child(w, -1, cell.section)) {
            w->lost = true;
            return MPL_EXACT_STOPPED;
        }
        mpl_exact_undo(x, mark);
        if (!child(w, w->q.stack[w->q.n_stack], cell.section))
            return MPL_EXACT_FAILED;
    }
}

/* ---- members ---- */

static void close_prover(prover *w)
{
    mpl_exact_search_fini(&w->q);
    mpl_exact_state_free(w->ctx, w->x);
    mpl_exact_case_free(w->ctx, w->c);
    mpl_free(w->ctx, w->rank);
    mpl_free(w->ctx, w->set);
}

static mpl_status open_prover(prover *w, const mpl_exact_part *part, const struct member *member,
                              uint64_t cap, mpl_proof *proof)
{
    mpl_status st = MPL_OK;

    *w = (prover){.ctx = part->ctx, .part = part, .proof = proof};
    MPL_TRY(mpl_exact_case_new(w->ctx, part->item, part->n, member->mirrored != 0, &w->c));
    mpl_exact_case_limit(w->c, part->item, part->unit, cap);
    MPL_TRY(mpl_exact_state_new(w->ctx, w->c, &w->x));
    MPL_TRY(mpl_exact_search_init(&w->q, w->x));
    MPL_TRY(mpl_new(w->ctx, w->rank, part->n));
    MPL_TRY(mpl_new(w->ctx, w->set, (size_t)w->c->n_sections));
    w->q.rank = w->rank;
    w->q.pick = (mpl_exact_pick)member->pick;
    w->x->raised = write_raise;
    w->x->prover = w;
out:
    return st;
}

/* The text begins with the part, and its sections as sets. */
static void begin(prover *w)
{
    mpl_proof_forget(w->proof);
    mpl_exact_state_reset(w->x);
    keep_component(w, 0, w->c->n_sections);
    for (int32_t s = 0; s < w->c->n_sections; s++) {
        w->set[s] = (uint32_t)w->proof->n;
        for (int32_t k = w->c->begin[s]; k < w->c->begin[s + 1]; k++)
            mpl_proof_add(w->proof, 'c', id(w, w->c->member[k]), w->set[s], 0);
    }
}

static mpl_status try_member(const mpl_exact_part *part, const struct member *member, uint64_t cap,
                             uint64_t node_limit, mpl_exact_effort *effort, mpl_proof *proof,
                             mpl_exact_verdict *out)
{
    mpl_status st = MPL_OK;
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    size_t mark = proof->n;
    prover w;

    MPL_TRY(open_prover(&w, part, member, cap, proof));
    w.effort = effort;
    w.node_limit = node_limit;
    begin(&w);
    if (settle(&w))
        verdict = refute(&w, 0, w.c->n_sections);
    effort->ticks += w.x->ticks;
    if (w.x->no_memory || (proof->failed && !proof->full))
        st = MPL_EMEM;
    *out = proof->failed || w.lost ? MPL_EXACT_STOPPED : verdict;
    if (*out != MPL_EXACT_FAILED)
        proof->n = mark;
out:
    close_prover(&w);
    return st;
}

mpl_status mpl_exact_part_prove(const mpl_exact_part *part, uint64_t cap, mpl_exact_effort *effort,
                                mpl_proof *proof, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;

    *verdict = MPL_EXACT_STOPPED;
    for (uint64_t nodes = FIRST_NODES; nodes < MPL_PROOF_MOST; nodes *= 4)
        for (size_t k = 0; k < sizeof members / sizeof *members && *verdict == MPL_EXACT_STOPPED;
             k++) {
            if (effort->by_clock || effort->ticks >= effort->tick_limit || proof->full)
                return MPL_OK;
            MPL_TRY(try_member(part, &members[k], cap, nodes, effort, proof, verdict));
        }
out:
    return st;
}
