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

static void component_key(const mpl_exact_search *search, int32_t a, int32_t b, uint64_t key[2])
{
    const mpl_exact_state *state = search->x;
    const mpl_exact_case *exact_case = state->exact_case;
    uint64_t cap = (uint64_t)state->cap[a];

    key[0] = mpl_rng_mix(cap + UINT64_C(0x9e3779b97f4a7c15));
    key[1] = mpl_rng_mix(cap + UINT64_C(0xd1b54a32d192ed03));
    for (int32_t i = exact_case->first[a]; i < exact_case->first[b]; i++) {
        uint64_t one;

        if (state->placed[i])
            continue;
        one = (uint64_t)state->est[i] * UINT64_C(0x9e3779b97f4a7c15) +
              exact_case->item[i] * UINT64_C(0xff51afd7ed558ccd);
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
static void find_runs(mpl_exact_search *search, int32_t a, int32_t b)
{
    const mpl_len *floor = search->x->floor;

    for (int32_t s = a; s < b;) {
        int32_t end = s + 1;

        while (end < b && floor[end] == floor[s])
            end++;
        for (int32_t t = s; t < end; t++)
            search->run_begin[t] = s, search->run_end[t] = end;
        s = end;
    }
}

/* value_right[t], value_left[t]: least end (est + size) of the open items of [a, b) that end, begin
 * at t. */
static void find_values(mpl_exact_search *search, int32_t a, int32_t b)
{
    const mpl_exact_state *state = search->x;
    const mpl_exact_case *exact_case = state->exact_case;

    for (int32_t t = a; t <= b; t++)
        search->value_left[t] = search->value_right[t] = MPL_LEN_MAX;
    for (int32_t i = exact_case->first[a]; i < exact_case->first[b]; i++) {
        mpl_len end = state->est[i] + exact_case->size[i];

        if (state->placed[i])
            continue;
        if (end < search->value_left[exact_case->left[i]])
            search->value_left[exact_case->left[i]] = end;
        if (end < search->value_right[exact_case->right[i]])
            search->value_right[exact_case->right[i]] = end;
    }
}

/* Whether the floor of s may stay uncovered. Then the candidates, which span [from, to), can rest
 * on an item outside s that ends low enough, or an item of s that is no candidate (its est is
 * `next`) lies low enough. */
static bool nobody_fits(const mpl_exact_search *search, int32_t s, int32_t from, int32_t to,
                        mpl_len next)
{
    const mpl_exact_state *state = search->x;
    mpl_len room = state->cap[s] - state->rest[s];

    if (room <= state->floor[s])
        return false;
    if (next <= room)
        return true;
    for (int32_t t = from + 1; t <= s; t++)
        if (search->value_right[t] <= room)
            return true;
    for (int32_t t = s + 1; t < to; t++)
        if (search->value_left[t] <= room)
            return true;
    return false;
}

static int32_t twin_of(const mpl_exact_search *search, int32_t i)
{
    return mpl_exact_uses(search->without, MPL_RULE_twins) ? search->x->exact_case->twin[i] : -1;
}

/* Counts the children of the floor cell of s; false: a candidate does not lie flat there. */
static bool inspect(mpl_exact_search *search, int32_t s, mpl_exact_cell *cell)
{
    mpl_exact_state *state = search->x;
    const mpl_exact_case *exact_case = state->exact_case;
    const int32_t *order = state->order + exact_case->begin[s];
    mpl_len floor = state->floor[s];
    int32_t k, from = s, to = s + 1, n = state->count[s];

    mpl_exact_sort(state, s);
    *cell = (mpl_exact_cell){.section = s};
    for (k = 0; k < n && state->est[order[k]] == floor; k++) {
        int32_t i = order[k], twin = twin_of(search, i);

        if (exact_case->left[i] < search->run_begin[s] || exact_case->right[i] > search->run_end[s])
            return false;
        from = exact_case->left[i] < from ? exact_case->left[i] : from;
        to = exact_case->right[i] > to ? exact_case->right[i] : to;
        cell->score += twin < 0 || state->placed[twin] || state->est[twin] != floor;
    }
    state->ticks += (uint64_t)k;
    cell->nobody = nobody_fits(search, s, from, to, k < n ? state->est[order[k]] : MPL_LEN_MAX);
    cell->score += cell->nobody;
    return true;
}

static bool better(const mpl_exact_search *search, const mpl_exact_cell *one,
                   const mpl_exact_cell *than)
{
    const mpl_exact_state *state = search->x;
    mpl_len first, second;

    switch (search->pick) {
    case MPL_PICK_LOW:
        first = state->floor[one->section] - state->floor[than->section];
        second = one->score - than->score;
        break;
    case MPL_PICK_TIGHT:
        first = mpl_exact_slack(state, one->section) - mpl_exact_slack(state, than->section);
        second = state->floor[one->section] - state->floor[than->section];
        break;
    case MPL_PICK_SCORE_HIGH:
        first = one->score - than->score;
        second = state->floor[than->section] - state->floor[one->section];
        break;
    case MPL_PICK_SCORE_TIGHT:
        first = one->score - than->score;
        second = mpl_exact_slack(state, one->section) - mpl_exact_slack(state, than->section);
        break;
    default:
        first = one->score - than->score;
        second = state->floor[one->section] - state->floor[than->section];
    }
    return first < 0 || (first == 0 && second < 0);
}

mpl_exact_cell mpl_exact_choose(mpl_exact_search *search, int32_t a, int32_t b)
{
    mpl_exact_cell best = {.section = -1}, cell;

    find_runs(search, a, b);
    find_values(search, a, b);
    for (int32_t s = a; s < b; s++) {
        if (search->x->count[s] == 0 || !inspect(search, s, &cell))
            continue;
        if (cell.score <= 1)
            return cell;
        if (best.section < 0 || better(search, &cell, &best))
            best = cell;
    }
    mpl_assert(best.section >= 0); /* all sections of the lowest floor can be branched on */
    return best;
}

int32_t mpl_exact_candidates(mpl_exact_search *search, const mpl_exact_cell *cell)
{
    mpl_exact_state *state = search->x;
    const int32_t *order = state->order + state->exact_case->begin[cell->section];
    mpl_len floor = state->floor[cell->section];
    size_t base = search->n_stack;

    if (mpl_reserve(state->ctx, search->stack, search->stack_room,
                    base + (size_t)state->count[cell->section]) != MPL_OK) {
        state->no_memory = state->dead = true;
        return -1;
    }
    mpl_exact_sort(state, cell->section);
    for (int32_t k = 0; k < state->count[cell->section] && state->est[order[k]] == floor; k++) {
        int32_t i = order[k], twin = twin_of(search, i);
        size_t at = search->n_stack;

        if (twin >= 0 && !state->placed[twin] && state->est[twin] == floor)
            continue;
        for (; at > base && (search->rank[search->stack[at - 1]] > search->rank[i] ||
                             (search->rank[search->stack[at - 1]] == search->rank[i] &&
                              search->stack[at - 1] > i));
             at--)
            search->stack[at] = search->stack[at - 1];
        search->stack[at] = i;
        search->n_stack++;
    }
    return (int32_t)(search->n_stack - base);
}

/* Lowest end of an open item outside section s that item i could rest on. */
static mpl_len support_outside(const mpl_exact_search *search, int32_t i, int32_t s)
{
    const mpl_exact_case *exact_case = search->x->exact_case;
    mpl_len end = MPL_LEN_MAX;

    for (int32_t t = exact_case->left[i] + 1; t <= s; t++)
        end = search->value_right[t] < end ? search->value_right[t] : end;
    for (int32_t t = s + 1; t < exact_case->right[i]; t++)
        end = search->value_left[t] < end ? search->value_left[t] : end;
    return end;
}

void mpl_exact_nobody(mpl_exact_search *search, int32_t s)
{
    mpl_exact_state *state = search->x;
    const mpl_exact_case *exact_case = state->exact_case;
    const int32_t *order = state->order + exact_case->begin[s];
    int32_t n = state->count[s], n_candidates = 0, lowest = -1;
    mpl_len floor = state->floor[s], least = MPL_LEN_MAX, second = MPL_LEN_MAX;

    mpl_exact_sort(state, s);
    find_values(search, 0, exact_case->n_sections);
    for (int32_t k = 0; k < n; k++) {
        int32_t i = order[k];
        bool candidate = state->est[i] == floor;
        mpl_len end =
            (candidate ? support_outside(search, i, s) : state->est[i]) + exact_case->size[i];

        n_candidates += candidate;
        if (end < least)
            second = least, least = end, lowest = i;
        else if (end < second)
            second = end;
    }
    for (int32_t k = 0; k < n_candidates && !state->dead; k++) {
        mpl_len outside = support_outside(search, order[k], s),
                inside = order[k] == lowest ? second : least;
        mpl_len est = outside < inside ? outside : inside;

        mpl_exact_raise(state, order[k], est);
    }
}

/* ---- proof records ---- */

static void note(mpl_exact_search *search, char kind, int32_t item, uint32_t set, uint64_t last)
{
    if (search->proof != NULL)
        mpl_proof_add(search->proof, kind, item >= 0 ? search->id[item] : 0, set, last);
}

/* Restricts the proof to the open items of sections [a, b), which are a component. */
static void note_component(mpl_exact_search *search, int32_t a, int32_t b)
{
    int32_t i = search->x->exact_case->first[a];

    if (search->proof == NULL)
        return;
    while (search->x->placed[i])
        i++;
    mpl_assert(i < search->x->exact_case->first[b]);
    mpl_proof_add(search->proof, 'o', search->id[i], 0, 0);
}

/* Records a branch on the floor of a section, with n children. */
static void note_branch(mpl_exact_search *search, int32_t section, int32_t n)
{
    if (search->proof != NULL)
        mpl_proof_add(search->proof, 'b', search->set[section], (uint32_t)n, 0);
}

static void note_raise(mpl_exact_search *search, int32_t section, int32_t i, mpl_len est)
{
    note(search, 'r', i, search->set[section], (uint64_t)est * search->unit);
}

/* Whether the open items of section s with est >= least have no room. */
static bool no_room(const mpl_exact_state *state, int32_t s, mpl_len least)
{
    const mpl_exact_case *exact_case = state->exact_case;
    mpl_len sum = 0;

    for (int32_t k = exact_case->begin[s]; k < exact_case->begin[s + 1]; k++)
        if (!state->placed[exact_case->member[k]] && state->est[exact_case->member[k]] >= least)
            sum += exact_case->size[exact_case->member[k]];
    return least + sum > state->cap[s];
}

/* Records that item i leads to a contradiction. If the items are not connected, the component of i
 * is isolated first: only then do sizes count as rounded. */
static void note_against(mpl_exact_search *search, char kind, int32_t i, uint32_t set)
{
    if (search->apart)
        note(search, 'o', i, 0, 0);
    note(search, kind, i, set, 0);
}

/* Records the contradiction that propagation found. */
static void note_contradiction(mpl_exact_search *search)
{
    const mpl_exact_state *state = search->x;
    const mpl_exact_case *exact_case = state->exact_case;

    for (int32_t i = 0; i < exact_case->n; i++)
        if (!state->placed[i] && state->est[i] + exact_case->size[i] > exact_case->limit[i]) {
            note_against(search, 'z', i, 0);
            return;
        }
    for (int32_t s = 0; s < exact_case->n_sections; s++)
        for (int32_t k = exact_case->begin[s]; k < exact_case->begin[s + 1]; k++)
            if (!state->placed[exact_case->member[k]] &&
                no_room(state, s, state->est[exact_case->member[k]])) {
                note_against(search, 'x', exact_case->member[k], search->set[s]);
                return;
            }
    search->lost = true;
}

static bool settle(mpl_exact_search *search)
{
    bool holds = mpl_exact_settle(search->x);

    if (!holds && search->proof != NULL)
        note_contradiction(search);
    return holds;
}

void mpl_exact_search_prove(mpl_exact_search *search, uint64_t unit, const uint32_t *id,
                            uint32_t *set, mpl_proof *proof)
{
    const mpl_exact_case *exact_case = search->x->exact_case;
    int32_t first = 0, end = 0;

    search->unit = unit;
    search->id = id;
    search->set = set;
    search->proof = proof;
    search->x->observer = note_raise;
    search->x->observed_by = search;
    mpl_proof_forget(proof);
    mpl_exact_component(search->x, &first, exact_case->n_sections, &end);
    search->apart = mpl_exact_component(search->x, &end, exact_case->n_sections, &(int32_t){0});
    if (!search->apart)
        note_component(search, 0, exact_case->n_sections);
    for (int32_t s = 0; s < exact_case->n_sections; s++) {
        set[s] = (uint32_t)proof->n;
        for (int32_t k = exact_case->begin[s]; k < exact_case->begin[s + 1]; k++)
            note(search, 'c', exact_case->member[k], set[s], 0);
    }
}

/* ---- search ---- */

/* Whether memory ran out or the proof cannot be written. */
static bool is_broken(const mpl_exact_search *search)
{
    return search->x->no_memory || search->lost || (search->proof != NULL && search->proof->failed);
}

static bool out_of_budget(mpl_exact_search *search)
{
    if (is_broken(search) || search->nodes >= search->node_limit ||
        search->x->ticks >= search->tick_limit)
        return true;
    if (mpl_exact_late(search->deadline_ns, search->watch)) /* cheap compared with a node */
        search->by_clock = true;
    return search->by_clock;
}

/* Item i (-1: nobody) takes the floor cell of s. */
static bool step(mpl_exact_search *search, int32_t i, int32_t s)
{
    search->nodes++;
    note(search, i >= 0 ? 'p' : 'n', i, 0, 0);
    if (i >= 0)
        mpl_exact_place(search->x, i);
    else
        mpl_exact_nobody(search, s);
    return settle(search);
}

/* Whether the component with this key failed before. With a proof, its refutation must still be in
 * the text; it is found by key[1], to which every item contributes. */
static bool failed_before(mpl_exact_search *search, const uint64_t key[2])
{
    size_t at;

    if (search->proof == NULL)
        return mpl_exact_memo_has(search->memo, key);
    at = mpl_proof_known(search->proof, key[1]);
    if (at != SIZE_MAX)
        mpl_proof_add(search->proof, 'm', (uint32_t)at, 0, 0);
    else
        mpl_proof_add(search->proof, 'k', 0, 0, key[1]);
    return at != SIZE_MAX;
}

static mpl_exact_verdict solve(mpl_exact_search *search, int32_t a, int32_t b);

static mpl_exact_verdict branch(mpl_exact_search *search, int32_t a, int32_t b,
                                const mpl_exact_cell *cell)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    size_t base = search->n_stack, mark = search->x->trail.n,
           begin = search->proof != NULL ? search->proof->n : 0;
    bool nobody = cell->nobody || search->proof != NULL; /* a checker must see why "nobody" fails */
    uint64_t key[2];
    int32_t n;

    component_key(search, a, b, key);
    if (failed_before(search, key))
        return MPL_EXACT_FAILED;
    n = mpl_exact_candidates(search, cell);
    note_branch(search, cell->section, n + 1);
    for (int32_t k = 0; k < n + nobody && verdict == MPL_EXACT_FAILED; k++) {
        mpl_exact_undo(search->x, mark);
        if (out_of_budget(search))
            verdict = MPL_EXACT_STOPPED;
        else if (step(search, k < n ? search->stack[base + (size_t)k] : -1, cell->section))
            verdict = solve(search, a, b);
    }
    search->n_stack = base;
    if (is_broken(search))
        return MPL_EXACT_STOPPED;
    if (verdict == MPL_EXACT_FAILED && search->proof != NULL)
        mpl_proof_remember(search->proof, key[1], begin);
    else if (verdict == MPL_EXACT_FAILED)
        mpl_exact_memo_add(search->memo, key);
    return verdict;
}

/* Places the only candidate of a cell that must be covered. */
static mpl_exact_verdict step_forced(mpl_exact_search *search, const mpl_exact_cell *cell)
{
    size_t mark = search->x->trail.n;

    if (out_of_budget(search) || mpl_exact_candidates(search, cell) < 0)
        return MPL_EXACT_STOPPED;
    search->n_stack--;
    if (search->proof != NULL) {
        note_branch(search, cell->section, 2);
        if (step(search, -1, cell->section))
            search->lost = true;
        mpl_exact_undo(search->x, mark);
    }
    if (!search->lost && step(search, search->stack[search->n_stack], cell->section))
        return MPL_EXACT_FOUND;
    return is_broken(search) ? MPL_EXACT_STOPPED : MPL_EXACT_FAILED;
}

bool mpl_exact_component(const mpl_exact_state *state, int32_t *a, int32_t b, int32_t *end)
{
    while (*a < b && state->count[*a] == 0)
        ++*a;
    if (*a == b)
        return false;
    *end = *a + 1;
    while (state->cross[*end - 1] > 0)
        ++*end;
    return true;
}

/* Solves several components, those with few sections first: they fail fast. */
static mpl_exact_verdict solve_parts(mpl_exact_search *search, int32_t a, int32_t b)
{
    mpl_exact_verdict verdict = MPL_EXACT_FOUND;
    size_t text = search->proof != NULL ? search->proof->n : 0;
    int32_t done = 0, next = 0;

    while (verdict == MPL_EXACT_FOUND) {
        next = INT32_MAX;
        for (int32_t from = a, end; mpl_exact_component(search->x, &from, b, &end); from = end)
            if (end - from > done && end - from < next)
                next = end - from;
        if (next == INT32_MAX)
            break;
        done = next;
        for (int32_t from = a, end;
             verdict == MPL_EXACT_FOUND && mpl_exact_component(search->x, &from, b, &end);
             from = end) {
            if (end - from != next)
                continue;
            if (search->proof != NULL)
                search->proof->n = text; /* the text of a solved component proves nothing */
            note_component(search, from, end);
            verdict = solve(search, from, end);
        }
    }
    if (verdict == MPL_EXACT_FOUND && search->proof != NULL)
        search->proof->n = text;
    return verdict;
}

/* Returns an open item of the component [a, b) that overlaps all others there and has the highest
 * est, or -1. If there is a completion, there is one with this item at the top. */
static int32_t universal(const mpl_exact_state *state, int32_t a, int32_t b)
{
    const mpl_exact_case *exact_case = state->exact_case;
    int32_t min_right = INT32_MAX, max_left = -1;
    mpl_len highest = -1;

    if (!exact_case->plain)
        return -1;
    for (int32_t i = exact_case->first[a]; i < exact_case->first[b]; i++) {
        if (state->placed[i])
            continue;
        min_right = exact_case->right[i] < min_right ? exact_case->right[i] : min_right;
        max_left = exact_case->left[i] > max_left ? exact_case->left[i] : max_left;
        highest = state->est[i] > highest ? state->est[i] : highest;
    }
    for (int32_t i = exact_case->first[a]; i < exact_case->first[b]; i++)
        if (!state->placed[i] && state->est[i] == highest && exact_case->left[i] < min_right &&
            exact_case->right[i] > max_left)
            return i;
    return -1;
}

static mpl_exact_verdict solve(mpl_exact_search *search, int32_t a, int32_t b)
{
    mpl_exact_state *state = search->x;
    mpl_exact_verdict verdict = MPL_EXACT_FOUND;

    while (verdict == MPL_EXACT_FOUND) {
        mpl_exact_cell cell;
        int32_t end, last, top;

        if (!mpl_exact_component(state, &a, b, &end))
            return MPL_EXACT_FOUND;
        if (mpl_exact_uses(search->without, MPL_RULE_split)) {
            last = end;
            if (mpl_exact_component(state, &last, b, &(int32_t){0}))
                return solve_parts(search, a, b);
            b = end;
        }
        if (mpl_exact_uses(search->without, MPL_RULE_top) && (top = universal(state, a, b)) >= 0) {
            note(search, 'u', top, 0, 0);
            mpl_exact_place_top(state, top, a, b);
            if (!settle(search))
                verdict = is_broken(search) ? MPL_EXACT_STOPPED : MPL_EXACT_FAILED;
            continue;
        }
        cell = mpl_exact_choose(search, a, b);
        if (cell.score > 1)
            return branch(search, a, b, &cell);
        verdict = step_forced(search, &cell);
    }
    return verdict;
}

mpl_exact_verdict mpl_exact_search_run(mpl_exact_search *search)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    mpl_len filter_slack = search->x->filter_slack;
    bool holds;

    search->n_stack = 0;
    if (search->apart) /* the filter needs a component of its own, whose sizes count as rounded */
        search->x->filter_slack = -1;
    holds = settle(search);
    search->x->filter_slack = filter_slack;
    if (holds)
        verdict = solve(search, 0, search->x->exact_case->n_sections);
    return is_broken(search) ? MPL_EXACT_STOPPED : verdict;
}

mpl_status mpl_exact_search_init(mpl_exact_search *search, mpl_exact_state *state)
{
    mpl_status st = MPL_OK;
    size_t sections = (size_t)state->exact_case->n_sections;

    *search = (mpl_exact_search){
        .x = state, .node_limit = UINT64_MAX, .tick_limit = UINT64_MAX, .deadline_ns = INT64_MAX};
    MPL_TRY(mpl_new_each(state->ctx, sections + 1, search->value_left, search->value_right));
    MPL_TRY(mpl_new_each(state->ctx, sections, search->run_begin, search->run_end));
out:
    if (st != MPL_OK)
        mpl_exact_search_fini(search);
    return st;
}

void mpl_exact_search_fini(mpl_exact_search *search)
{
    if (search->x != NULL)
        mpl_free_each(search->x->ctx, search->value_left, search->value_right, search->run_begin,
                      search->run_end, search->stack);
    *search = (mpl_exact_search){0};
}
