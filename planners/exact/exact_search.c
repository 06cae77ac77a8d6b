/* exact_search.c -- depth-first search for a completion of a state. See exact_priv.h.
 *
 * Idea     SEARCH.md, section 4: an item covers the lowest cell and lies exactly there, or none
 *          does.
 * Source   this project
 * Cost     Exponential; a node costs about the items alive in the sections that it touches. */
#include "planners/exact/exact_priv.h"

#include "graphs/core/rng.h"

#define MEMO_SLOTS     (UINT64_C(1) << 6) /* grows with failures, so small problems pay little */
#define MEMO_MAX_SLOTS (UINT64_C(1) << 22)

/* ---- memory of failures ---- */

static void component_key(const mpl_exact_search *q, int32_t a, int32_t b, uint64_t key[2])
{
    const mpl_exact_state *x = q->x;
    const mpl_exact_case *c = x->c;
    uint64_t cap = (uint64_t)x->cap[a];

    key[0] = mpl_rng_mix(cap + UINT64_C(0x9e3779b97f4a7c15));
    key[1] = mpl_rng_mix(cap + UINT64_C(0xd1b54a32d192ed03));
    for (int32_t i = c->first[a]; i < c->first[b]; i++) {
        uint64_t one;

        if (x->placed[i])
            continue;
        one = (uint64_t)x->est[i] * UINT64_C(0x9e3779b97f4a7c15) +
              c->item[i] * UINT64_C(0xff51afd7ed558ccd);
        key[0] += mpl_rng_mix(one);
        key[1] += mpl_rng_mix(one ^ UINT64_C(0x2545f4914f6cdd1d)) * UINT64_C(0xc4ceb9fe1a85ec53);
    }
    key[0] |= 1; /* an empty slot is zero */
}

static size_t memo_find(const mpl_exact_memo *memo, const uint64_t key[2])
{
    size_t at = (size_t)key[1] & (memo->n_slots - 1);

    while (memo->slot[at][0] != 0 && (memo->slot[at][0] != key[0] || memo->slot[at][1] != key[1]))
        at = (at + 1) & (memo->n_slots - 1);
    return at;
}

bool mpl_exact_memo_has(const mpl_exact_memo *memo, const uint64_t key[2])
{
    return memo != NULL && memo->n_used > 0 && memo->slot[memo_find(memo, key)][0] != 0;
}

static void memo_grow(mpl_exact_memo *memo)
{
    mpl_exact_memo larger = {.ctx = memo->ctx};

    larger.n_slots = memo->n_slots > 0 ? 4 * memo->n_slots : MEMO_SLOTS;
    if (mpl_new(memo->ctx, larger.slot, larger.n_slots) != MPL_OK)
        return; /* the memo only saves work */
    for (size_t i = 0; i < memo->n_slots; i++)
        if (memo->slot[i][0] != 0)
            memcpy(larger.slot[memo_find(&larger, memo->slot[i])], memo->slot[i],
                   sizeof *memo->slot);
    mpl_free(memo->ctx, memo->slot);
    memo->slot = larger.slot;
    memo->n_slots = larger.n_slots;
}

void mpl_exact_memo_add(mpl_exact_memo *memo, const uint64_t key[2])
{
    size_t at;

    if (memo == NULL)
        return;
    if (2 * memo->n_used >= memo->n_slots && memo->n_slots < MEMO_MAX_SLOTS)
        memo_grow(memo);
    if (2 * memo->n_used >= memo->n_slots)
        return; /* full */
    at = memo_find(memo, key);
    memo->n_used += memo->slot[at][0] == 0;
    memo->slot[at][0] = key[0];
    memo->slot[at][1] = key[1];
}

void mpl_exact_memo_clear(mpl_exact_memo *memo)
{
    if (memo->n_used > 0)
        memset(memo->slot, 0, memo->n_slots * sizeof *memo->slot);
    memo->n_used = 0;
}

void mpl_exact_memo_fini(mpl_exact_memo *memo)
{
    mpl_free(memo->ctx, memo->slot);
    memo->slot = NULL;
    memo->n_slots = memo->n_used = 0;
}

/* ---- choosing a cell ---- */

/* Sections [run_begin, run_end) around s share its floor. */
static void find_runs(mpl_exact_search *q, int32_t a, int32_t b)
{
    const mpl_len *floor = q->x->floor;

    for (int32_t s = a; s < b;) {
        int32_t end = s + 1;

        while (end < b && floor[end] == floor[s])
            end++;
        for (int32_t t = s; t < end; t++)
            q->run_begin[t] = s, q->run_end[t] = end;
        s = end;
    }
}

/* value_right[t], value_left[t]: least end (est + size) of the open items of [a, b) that end, begin
 * at t. */
static void find_values(mpl_exact_search *q, int32_t a, int32_t b)
{
    const mpl_exact_state *x = q->x;
    const mpl_exact_case *c = x->c;

    for (int32_t t = a; t <= b; t++)
        q->value_left[t] = q->value_right[t] = MPL_LEN_MAX;
    for (int32_t i = c->first[a]; i < c->first[b]; i++) {
        mpl_len end = x->est[i] + c->size[i];

        if (x->placed[i])
            continue;
        if (end < q->value_left[c->left[i]])
            q->value_left[c->left[i]] = end;
        if (end < q->value_right[c->right[i]])
            q->value_right[c->right[i]] = end;
    }
}

/* Whether the floor of s may stay uncovered. Then the candidates, which span [from, to), can rest
 * on an item outside s that ends low enough, or an item of s that is no candidate (its est is
 * `next`) lies low enough. */
static bool nobody_fits(const mpl_exact_search *q, int32_t s, int32_t from, int32_t to,
                        mpl_len next)
{
    const mpl_exact_state *x = q->x;
    mpl_len room = x->cap[s] - x->rest[s];

    if (room <= x->floor[s])
        return false;
    if (next <= room)
        return true;
    for (int32_t t = from + 1; t <= s; t++)
        if (q->value_right[t] <= room)
            return true;
    for (int32_t t = s + 1; t < to; t++)
        if (q->value_left[t] <= room)
            return true;
    return false;
}

static int32_t twin_of(const mpl_exact_search *q, int32_t i)
{
    return mpl_exact_uses(q->without, MPL_RULE_twins) ? q->x->c->twin[i] : -1;
}

/* Counts the children of the floor cell of s; false: a candidate does not lie flat there. */
static bool inspect(mpl_exact_search *q, int32_t s, mpl_exact_cell *cell)
{
    mpl_exact_state *x = q->x;
    const mpl_exact_case *c = x->c;
    const int32_t *order = x->order + c->begin[s];
    mpl_len floor = x->floor[s];
    int32_t k, from = s, to = s + 1, n = x->count[s];

    mpl_exact_sort(x, s);
    *cell = (mpl_exact_cell){.section = s};
    for (k = 0; k < n && x->est[order[k]] == floor; k++) {
        int32_t i = order[k], twin = twin_of(q, i);

        if (c->left[i] < q->run_begin[s] || c->right[i] > q->run_end[s])
            return false;
        from = c->left[i] < from ? c->left[i] : from;
        to = c->right[i] > to ? c->right[i] : to;
        cell->score += twin < 0 || x->placed[twin] || x->est[twin] != floor;
    }
    x->ticks += (uint64_t)k;
    cell->nobody = nobody_fits(q, s, from, to, k < n ? x->est[order[k]] : MPL_LEN_MAX);
    cell->score += cell->nobody;
    return true;
}

static bool better(const mpl_exact_search *q, const mpl_exact_cell *one, const mpl_exact_cell *than)
{
    const mpl_exact_state *x = q->x;
    mpl_len first, second;

    switch (q->pick) {
    case MPL_PICK_LOW:
        first = x->floor[one->section] - x->floor[than->section];
        second = one->score - than->score;
        break;
    case MPL_PICK_TIGHT:
        first = mpl_exact_slack(x, one->section) - mpl_exact_slack(x, than->section);
        second = x->floor[one->section] - x->floor[than->section];
        break;
    case MPL_PICK_SCORE_HIGH:
        first = one->score - than->score;
        second = x->floor[than->section] - x->floor[one->section];
        break;
    case MPL_PICK_SCORE_TIGHT:
        first = one->score - than->score;
        second = mpl_exact_slack(x, one->section) - mpl_exact_slack(x, than->section);
        break;
    default:
        first = one->score - than->score;
        second = x->floor[one->section] - x->floor[than->section];
    }
    return first < 0 || (first == 0 && second < 0);
}

mpl_exact_cell mpl_exact_choose(mpl_exact_search *q, int32_t a, int32_t b)
{
    mpl_exact_cell best = {.section = -1}, cell;

    find_runs(q, a, b);
    find_values(q, a, b);
    for (int32_t s = a; s < b; s++) {
        if (q->x->count[s] == 0 || !inspect(q, s, &cell))
            continue;
        if (cell.score <= 1)
            return cell;
        if (best.section < 0 || better(q, &cell, &best))
            best = cell;
    }
    mpl_assert(best.section >= 0); /* all sections of the lowest floor can be branched on */
    return best;
}

int32_t mpl_exact_candidates(mpl_exact_search *q, const mpl_exact_cell *cell)
{
    mpl_exact_state *x = q->x;
    const int32_t *order = x->order + x->c->begin[cell->section];
    mpl_len floor = x->floor[cell->section];
    size_t base = q->n_stack;

    if (mpl_reserve(x->ctx, q->stack, q->stack_room, base + (size_t)x->count[cell->section]) !=
        MPL_OK) {
        x->no_memory = x->dead = true;
        return -1;
    }
    mpl_exact_sort(x, cell->section);
    for (int32_t k = 0; k < x->count[cell->section] && x->est[order[k]] == floor; k++) {
        int32_t i = order[k], twin = twin_of(q, i);
        size_t at = q->n_stack;

        if (twin >= 0 && !x->placed[twin] && x->est[twin] == floor)
            continue;
        for (; at > base && (q->rank[q->stack[at - 1]] > q->rank[i] ||
                             (q->rank[q->stack[at - 1]] == q->rank[i] && q->stack[at - 1] > i));
             at--)
            q->stack[at] = q->stack[at - 1];
        q->stack[at] = i;
        q->n_stack++;
    }
    return (int32_t)(q->n_stack - base);
}

/* Lowest end of an open item outside section s that item i could rest on. */
static mpl_len support_outside(const mpl_exact_search *q, int32_t i, int32_t s)
{
    const mpl_exact_case *c = q->x->c;
    mpl_len end = MPL_LEN_MAX;

    for (int32_t t = c->left[i] + 1; t <= s; t++)
        end = q->value_right[t] < end ? q->value_right[t] : end;
    for (int32_t t = s + 1; t < c->right[i]; t++)
        end = q->value_left[t] < end ? q->value_left[t] : end;
    return end;
}

void mpl_exact_nobody(mpl_exact_search *q, int32_t s)
{
    mpl_exact_state *x = q->x;
    const mpl_exact_case *c = x->c;
    const int32_t *order = x->order + c->begin[s];
    int32_t n = x->count[s], n_candidates = 0, lowest = -1;
    mpl_len floor = x->floor[s], least = MPL_LEN_MAX, second = MPL_LEN_MAX;

    mpl_exact_sort(x, s);
    find_values(q, 0, c->n_sections);
    for (int32_t k = 0; k < n; k++) {
        int32_t i = order[k];
        bool candidate = x->est[i] == floor;
        mpl_len end = (candidate ? support_outside(q, i, s) : x->est[i]) + c->size[i];

        n_candidates += candidate;
        if (end < least)
            second = least, least = end, lowest = i;
        else if (end < second)
            second = end;
    }
    for (int32_t k = 0; k < n_candidates && !x->dead; k++) {
        mpl_len outside = support_outside(q, order[k], s),
                inside = order[k] == lowest ? second : least;
        mpl_len est = outside < inside ? outside : inside;

        mpl_exact_raise(x, order[k], est);
    }
}

/* ---- proof records ---- */

static void note(mpl_exact_search *q, char kind, int32_t item, uint32_t set, uint64_t last)
{
    if (q->proof != NULL)
        mpl_proof_add(q->proof, kind, item >= 0 ? q->id[item] : 0, set, last);
}

/* Restricts the proof to the open items of sections [a, b), which are a component. */
static void note_component(mpl_exact_search *q, int32_t a, int32_t b)
{
    int32_t i = q->x->c->first[a];

    if (q->proof == NULL)
        return;
    while (q->x->placed[i])
        i++;
    mpl_assert(i < q->x->c->first[b]);
    mpl_proof_add(q->proof, 'o', q->id[i], 0, 0);
}

/* Records a branch on the floor of a section, with n children. */
static void note_branch(mpl_exact_search *q, int32_t section, int32_t n)
{
    if (q->proof != NULL)
        mpl_proof_add(q->proof, 'b', q->set[section], (uint32_t)n, 0);
}

static void note_raise(mpl_exact_search *q, int32_t section, int32_t i, mpl_len est)
{
    note(q, 'r', i, q->set[section], (uint64_t)est * q->unit);
}

/* Whether the open items of section s with est >= least have no room. */
static bool no_room(const mpl_exact_state *x, int32_t s, mpl_len least)
{
    const mpl_exact_case *c = x->c;
    mpl_len sum = 0;

    for (int32_t k = c->begin[s]; k < c->begin[s + 1]; k++)
        if (!x->placed[c->member[k]] && x->est[c->member[k]] >= least)
            sum += c->size[c->member[k]];
    return least + sum > x->cap[s];
}

/* Records that item i leads to a contradiction. If the items are not connected, the component of i
 * is isolated first: only then do sizes count as rounded. */
static void note_against(mpl_exact_search *q, char kind, int32_t i, uint32_t set)
{
    if (q->apart)
        note(q, 'o', i, 0, 0);
    note(q, kind, i, set, 0);
}

/* Records the contradiction that propagation found. */
static void note_contradiction(mpl_exact_search *q)
{
    const mpl_exact_state *x = q->x;
    const mpl_exact_case *c = x->c;

    for (int32_t i = 0; i < c->n; i++)
        if (!x->placed[i] && x->est[i] + c->size[i] > c->limit[i]) {
            note_against(q, 'z', i, 0);
            return;
        }
    for (int32_t s = 0; s < c->n_sections; s++)
        for (int32_t k = c->begin[s]; k < c->begin[s + 1]; k++)
            if (!x->placed[c->member[k]] && no_room(x, s, x->est[c->member[k]])) {
                note_against(q, 'x', c->member[k], q->set[s]);
                return;
            }
    q->lost = true;
}

static bool settle(mpl_exact_search *q)
{
    bool holds = mpl_exact_settle(q->x);

    if (!holds && q->proof != NULL)
        note_contradiction(q);
    return holds;
}

void mpl_exact_search_prove(mpl_exact_search *q, uint64_t unit, const uint32_t *id, uint32_t *set,
                            mpl_proof *proof)
{
    const mpl_exact_case *c = q->x->c;
    int32_t first = 0, end = 0;

    q->unit = unit;
    q->id = id;
    q->set = set;
    q->proof = proof;
    q->x->observer = note_raise;
    q->x->observed_by = q;
    mpl_proof_forget(proof);
    mpl_exact_component(q->x, &first, c->n_sections, &end);
    q->apart = mpl_exact_component(q->x, &end, c->n_sections, &(int32_t){0});
    if (!q->apart)
        note_component(q, 0, c->n_sections);
    for (int32_t s = 0; s < c->n_sections; s++) {
        set[s] = (uint32_t)proof->n;
        for (int32_t k = c->begin[s]; k < c->begin[s + 1]; k++)
            note(q, 'c', c->member[k], set[s], 0);
    }
}

/* ---- search ---- */

/* Whether memory ran out or the proof cannot be written. */
static bool is_broken(const mpl_exact_search *q)
{
    return q->x->no_memory || q->lost || (q->proof != NULL && q->proof->failed);
}

static bool out_of_budget(mpl_exact_search *q)
{
    if (is_broken(q) || q->nodes >= q->node_limit || q->x->ticks >= q->tick_limit)
        return true;
    if (mpl_exact_late(q->deadline_ns, q->watch)) /* cheap compared with a node */
        q->by_clock = true;
    return q->by_clock;
}

/* Item i (-1: nobody) takes the floor cell of s. */
static bool step(mpl_exact_search *q, int32_t i, int32_t s)
{
    q->nodes++;
    note(q, i >= 0 ? 'p' : 'n', i, 0, 0);
    if (i >= 0)
        mpl_exact_place(q->x, i);
    else
        mpl_exact_nobody(q, s);
    return settle(q);
}

/* Whether the component with this key failed before. With a proof, its refutation must still be in
 * the text; it is found by key[1], to which every item contributes. */
static bool failed_before(mpl_exact_search *q, const uint64_t key[2])
{
    size_t at;

    if (q->proof == NULL)
        return mpl_exact_memo_has(q->memo, key);
    at = mpl_proof_known(q->proof, key[1]);
    if (at != SIZE_MAX)
        mpl_proof_add(q->proof, 'm', (uint32_t)at, 0, 0);
    else
        mpl_proof_add(q->proof, 'k', 0, 0, key[1]);
    return at != SIZE_MAX;
}

static mpl_exact_verdict solve(mpl_exact_search *q, int32_t a, int32_t b);

static mpl_exact_verdict branch(mpl_exact_search *q, int32_t a, int32_t b,
                                const mpl_exact_cell *cell)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    size_t base = q->n_stack, mark = q->x->trail.n, begin = q->proof != NULL ? q->proof->n : 0;
    bool nobody = cell->nobody || q->proof != NULL; /* a checker must see why "nobody" fails */
    uint64_t key[2];
    int32_t n;

    component_key(q, a, b, key);
    if (failed_before(q, key))
        return MPL_EXACT_FAILED;
    n = mpl_exact_candidates(q, cell);
    note_branch(q, cell->section, n + 1);
    for (int32_t k = 0; k < n + nobody && verdict == MPL_EXACT_FAILED; k++) {
        mpl_exact_undo(q->x, mark);
        if (out_of_budget(q))
            verdict = MPL_EXACT_STOPPED;
        else if (step(q, k < n ? q->stack[base + (size_t)k] : -1, cell->section))
            verdict = solve(q, a, b);
    }
    q->n_stack = base;
    if (is_broken(q))
        return MPL_EXACT_STOPPED;
    if (verdict == MPL_EXACT_FAILED && q->proof != NULL)
        mpl_proof_remember(q->proof, key[1], begin);
    else if (verdict == MPL_EXACT_FAILED)
        mpl_exact_memo_add(q->memo, key);
    return verdict;
}

/* Places the only candidate of a cell that must be covered. */
static mpl_exact_verdict step_forced(mpl_exact_search *q, const mpl_exact_cell *cell)
{
    size_t mark = q->x->trail.n;

    if (out_of_budget(q) || mpl_exact_candidates(q, cell) < 0)
        return MPL_EXACT_STOPPED;
    q->n_stack--;
    if (q->proof != NULL) {
        note_branch(q, cell->section, 2);
        if (step(q, -1, cell->section))
            q->lost = true;
        mpl_exact_undo(q->x, mark);
    }
    if (!q->lost && step(q, q->stack[q->n_stack], cell->section))
        return MPL_EXACT_FOUND;
    return is_broken(q) ? MPL_EXACT_STOPPED : MPL_EXACT_FAILED;
}

bool mpl_exact_component(const mpl_exact_state *x, int32_t *a, int32_t b, int32_t *end)
{
    while (*a < b && x->count[*a] == 0)
        ++*a;
    if (*a == b)
        return false;
    *end = *a + 1;
    while (x->cross[*end - 1] > 0)
        ++*end;
    return true;
}

/* Solves several components, those with few sections first: they fail fast. */
static mpl_exact_verdict solve_parts(mpl_exact_search *q, int32_t a, int32_t b)
{
    mpl_exact_verdict verdict = MPL_EXACT_FOUND;
    size_t text = q->proof != NULL ? q->proof->n : 0;
    int32_t done = 0, next = 0;

    while (verdict == MPL_EXACT_FOUND) {
        next = INT32_MAX;
        for (int32_t from = a, end; mpl_exact_component(q->x, &from, b, &end); from = end)
            if (end - from > done && end - from < next)
                next = end - from;
        if (next == INT32_MAX)
            break;
        done = next;
        for (int32_t from = a, end;
             verdict == MPL_EXACT_FOUND && mpl_exact_component(q->x, &from, b, &end); from = end) {
            if (end - from != next)
                continue;
            if (q->proof != NULL)
                q->proof->n = text; /* the text of a solved component proves nothing */
            note_component(q, from, end);
            verdict = solve(q, from, end);
        }
    }
    if (verdict == MPL_EXACT_FOUND && q->proof != NULL)
        q->proof->n = text;
    return verdict;
}

/* Returns an open item of the component [a, b) that overlaps all others there and has the highest
 * est, or -1. If there is a completion, there is one with this item at the top. */
static int32_t universal(const mpl_exact_state *x, int32_t a, int32_t b)
{
    const mpl_exact_case *c = x->c;
    int32_t min_right = INT32_MAX, max_left = -1;
    mpl_len highest = -1;

    if (!c->plain)
        return -1;
    for (int32_t i = c->first[a]; i < c->first[b]; i++) {
        if (x->placed[i])
            continue;
        min_right = c->right[i] < min_right ? c->right[i] : min_right;
        max_left = c->left[i] > max_left ? c->left[i] : max_left;
        highest = x->est[i] > highest ? x->est[i] : highest;
    }
    for (int32_t i = c->first[a]; i < c->first[b]; i++)
        if (!x->placed[i] && x->est[i] == highest && c->left[i] < min_right &&
            c->right[i] > max_left)
            return i;
    return -1;
}

static mpl_exact_verdict solve(mpl_exact_search *q, int32_t a, int32_t b)
{
    mpl_exact_state *x = q->x;
    mpl_exact_verdict verdict = MPL_EXACT_FOUND;

    while (verdict == MPL_EXACT_FOUND) {
        mpl_exact_cell cell;
        int32_t end, last, top;

        if (!mpl_exact_component(x, &a, b, &end))
            return MPL_EXACT_FOUND;
        if (mpl_exact_uses(q->without, MPL_RULE_split)) {
            last = end;
            if (mpl_exact_component(x, &last, b, &(int32_t){0}))
                return solve_parts(q, a, b);
            b = end;
        }
        if (mpl_exact_uses(q->without, MPL_RULE_top) && (top = universal(x, a, b)) >= 0) {
            note(q, 'u', top, 0, 0);
            mpl_exact_place_top(x, top, a, b);
            if (!settle(q))
                verdict = is_broken(q) ? MPL_EXACT_STOPPED : MPL_EXACT_FAILED;
            continue;
        }
        cell = mpl_exact_choose(q, a, b);
        if (cell.score > 1)
            return branch(q, a, b, &cell);
        verdict = step_forced(q, &cell);
    }
    return verdict;
}

mpl_exact_verdict mpl_exact_search_run(mpl_exact_search *q)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    mpl_len filter_slack = q->x->filter_slack;
    bool holds;

    q->n_stack = 0;
    if (q->apart) /* the filter needs a component of its own, whose sizes count as rounded */
        q->x->filter_slack = -1;
    holds = settle(q);
    q->x->filter_slack = filter_slack;
    if (holds)
        verdict = solve(q, 0, q->x->c->n_sections);
    return is_broken(q) ? MPL_EXACT_STOPPED : verdict;
}

mpl_status mpl_exact_search_init(mpl_exact_search *q, mpl_exact_state *x)
{
    mpl_status st = MPL_OK;
    size_t sections = (size_t)x->c->n_sections;

    *q = (mpl_exact_search){
        .x = x, .node_limit = UINT64_MAX, .tick_limit = UINT64_MAX, .deadline_ns = INT64_MAX};
    MPL_TRY(mpl_new_each(x->ctx, sections + 1, q->value_left, q->value_right));
    MPL_TRY(mpl_new_each(x->ctx, sections, q->run_begin, q->run_end));
out:
    if (st != MPL_OK)
        mpl_exact_search_fini(q);
    return st;
}

void mpl_exact_search_fini(mpl_exact_search *q)
{
    if (q->x != NULL)
        mpl_free_each(q->x->ctx, q->value_left, q->value_right, q->run_begin, q->run_end, q->stack);
    *q = (mpl_exact_search){0};
}
