/* exact_graph.c -- complete search for any conflict relation. See exact_general.h.
 *
 * Idea     SEARCH.md, section 6: one branch for each member of a clique that may cover its floor,
 *          and one for nobody. It suffices that no open rival of a candidate lies below it: then
 *          all of them end up above it once it is placed. Complete: push a completion down. If a
 *          candidate then lies at the floor, a branch of the first kind finds it. Else each
 *          candidate rests on an open body outside the clique, at its est at least, or on a clique
 *          member that rests so in turn.
 * Source   this project; exact_search.c has the same for intervals.
 * Bound    For every clique and every est e among its open members: e plus the sizes of those with
 *          est from e on, within the cap.
 * Ticks    Members of cliques examined, rivals examined. */
#include "planners/exact/exact_general.h"

#define NEVER       UINT64_MAX
#define PLACED      (-1)              /* in the trail */
#define CLOCK_TICKS UINT64_C(1000000) /* between two readings of the clock */

/* ---- creation ---- */

static bool same_relation(const mpl_bodies *bodies, uint32_t i, uint32_t j)
{
    for (uint32_t w = 0; w < bodies->n_words; w++) {
        uint64_t differ = bodies->rival[(size_t)i * bodies->n_words + w] ^
                          bodies->rival[(size_t)j * bodies->n_words + w];

        differ &= i / 64 == w ? ~(UINT64_C(1) << (i % 64)) : UINT64_MAX;
        differ &= j / 64 == w ? ~(UINT64_C(1) << (j % 64)) : UINT64_MAX;
        if (differ != 0)
            return false;
    }
    return true;
}

/* Finds rivals that are identical, which may be exchanged. */
static void find_twins(mpl_graph_search *search)
{
    const mpl_bodies *bodies = search->bodies;

    for (uint32_t i = 0; i < bodies->n; i++) {
        search->twin[i] = MPL_NONE;
        for (uint32_t j = i; bodies->dist == NULL && bodies->fixed == NULL && j-- > 0 &&
                             search->twin[i] == MPL_NONE;)
            if (mpl_rivals(bodies, i, j) && bodies->bytes[i] == bodies->bytes[j] &&
                bodies->align[i] == bodies->align[j] && same_relation(bodies, i, j))
                search->twin[i] = j;
    }
}

mpl_status mpl_graph_search_new(mpl_ctx *ctx, const mpl_bodies *bodies, const mpl_cliques *cliques,
                                mpl_graph_search **out)
{
    mpl_status st = MPL_OK;
    mpl_graph_search *search = NULL;

    MPL_TRY(mpl_new(ctx, search, 1));
    search->ctx = search->memo.ctx = ctx;
    search->bodies = bodies;
    search->cliques = cliques;
    MPL_TRY(mpl_new_each(ctx, bodies->n, search->est, search->placed, search->twin, search->lowest,
                         search->seen));
    MPL_TRY(mpl_new(ctx, search->order, cliques->begin[cliques->n]));
    MPL_TRY(mpl_new_each(ctx, cliques->n, search->queue, search->queued, search->visited));
    MPL_TRY(mpl_new(ctx, search->inside, bodies->n));
    memcpy(search->order, cliques->member, cliques->begin[cliques->n] * sizeof *search->order);
    find_twins(search);
    *out = search, search = NULL;
out:
    mpl_graph_search_free(search);
    return st;
}

void mpl_graph_search_free(mpl_graph_search *search)
{
    if (search == NULL)
        return;
    mpl_free_each(search->ctx, search->est, search->placed, search->twin, search->lowest,
                  search->seen, search->order, search->queue, search->queued, search->visited,
                  search->trail.step, search->rows, search->stack, search->set, search->first,
                  search->several, search->inside);
    mpl_exact_memo_fini(&search->memo);
    mpl_free(search->ctx, search);
}

void mpl_graph_search_cap(mpl_graph_search *search, uint64_t cap)
{
    if (search->cap != cap)
        mpl_exact_memo_clear(&search->memo);
    search->cap = cap;
}

mpl_status mpl_graph_search_prove(mpl_graph_search *search, mpl_proof *proof)
{
    if (search->set == NULL)
        MPL_PASS(mpl_new(search->ctx, search->set, search->cliques->n));
    if (search->first == NULL)
        MPL_PASS(mpl_new(search->ctx, search->first, search->bodies->n));
    if (search->several == NULL)
        MPL_PASS(mpl_new(search->ctx, search->several, search->bodies->n));
    for (uint32_t i = 0; i < search->bodies->n; i++)
        search->first[i] = MPL_NONE;
    for (uint32_t m = 0; m < search->bodies->n_members; m++) {
        uint32_t i = search->bodies->body[m];

        search->several[i] = search->first[i] != MPL_NONE;
        search->first[i] = search->bodies->buffer[m];
    }
    search->proof = proof;
    return MPL_OK;
}

/* ---- states ---- */

/* Adds a record about a buffer if a proof is written. */
static void note(mpl_graph_search *search, char kind, uint32_t buffer, uint32_t set)
{
    if (search->proof != NULL)
        mpl_proof_add(search->proof, kind, buffer, set, 0);
}

/* Adds a record about a body if a proof is written. */
static void note_body(mpl_graph_search *search, char kind, uint32_t i)
{
    if (search->proof != NULL)
        mpl_proof_add(search->proof, kind, search->first[i], 0, 0);
}

static bool remember(mpl_graph_search *search, uint32_t id, int64_t old)
{
    search->no_memory =
        search->no_memory || mpl_trail_push(search->ctx, &search->trail, id, old) != MPL_OK;
    return !search->no_memory;
}

static void undo(mpl_graph_search *search, size_t mark)
{
    while (search->trail.n > mark) {
        const struct mpl_trail_step *step = &search->trail.step[--search->trail.n];

        if (step->old == PLACED)
            search->placed[step->what] = 0;
        else
            search->est[step->what] = (uint64_t)step->old;
    }
    while (search->n_queue > 0)
        search->queued[search->queue[--search->n_queue]] = 0;
}

/* Raises body i to `at` or above; false: impossible. */
static bool raise_est(mpl_graph_search *search, uint32_t i, uint64_t at)
{
    const mpl_bodies *bodies = search->bodies;

    if (at <= search->est[i])
        return true;
    if (at == NEVER || at + bodies->bytes[i] > search->cap ||
        (bodies->fixed != NULL && bodies->fixed[i] != MPL_UNFIXED && at > bodies->fixed[i])) {
        note_body(search, 'z', i);
        return false;
    }
    if (!remember(search, i, (int64_t)search->est[i]))
        return false;
    search->est[i] = at;
    search->effort->ticks += (search->cliques->of_begin[i + 1] - search->cliques->of_begin[i]) / 2;
    for (uint32_t k = search->cliques->of_begin[i]; k < search->cliques->of_begin[i + 1]; k++) {
        uint32_t c = search->cliques->of_item[k];

        if (!search->queued[c])
            search->queued[c] = 1, search->queue[search->n_queue++] = c;
    }
    return true;
}

/* Places body i at its est and raises its open rivals above it. */
static bool place(mpl_graph_search *search, uint32_t i)
{
    const uint64_t *row = search->bodies->rival + (size_t)i * search->bodies->n_words;

    if (!remember(search, i, PLACED))
        return false;
    search->placed[i] = 1;
    for (uint32_t w = 0; w < search->bodies->n_words; w++)
        for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
            uint32_t j = w * 64 + (uint32_t)__builtin_ctzll(bits);

            search->effort->ticks++;
            if (!search->placed[j] &&
                !raise_est(search, j, mpl_above(search->bodies, i, search->est[i], j)))
                return false;
        }
    return true;
}

static uint32_t body_of(const mpl_graph_search *search, uint32_t member)
{
    return search->bodies->body[member];
}

/* Sorts the members of a clique by est and checks, from the top down, the room above each est. */
static bool clique_fits(mpl_graph_search *search, uint32_t c)
{
    const mpl_bodies *bodies = search->bodies;
    uint32_t *order = search->order + search->cliques->begin[c],
             n = search->cliques->begin[c + 1] - search->cliques->begin[c];
    uint64_t sum = 0, rest = 0;

    search->effort->ticks += n;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t m = order[i], k = i;

        for (;
             k > 0 && search->est[body_of(search, order[k - 1])] > search->est[body_of(search, m)];
             k--)
            order[k] = order[k - 1];
        order[k] = m;
        search->effort->ticks += (i - k) / 2;
    }
    for (uint32_t i = n; i-- > 0;) {
        uint32_t m = order[i];

        if (search->placed[body_of(search, m)])
            continue;
        sum += bodies->member_size[m];
        rest = mpl_max_u64(rest, bodies->member_size[m] - bodies->member_bytes[m]);
        if (search->est[body_of(search, m)] + sum - rest > search->cap) {
            note(search, 'x', bodies->buffer[m], search->proof != NULL ? search->set[c] : 0);
            return false;
        }
    }
    return true;
}

static bool settle(mpl_graph_search *search)
{
    while (search->n_queue > 0) {
        uint32_t c = search->queue[--search->n_queue];

        search->queued[c] = 0;
        if (!clique_fits(search, c))
            return false;
    }
    return true;
}

/* ---- cells ---- */

typedef struct cell {
    uint32_t clique;
    uint32_t score;  /* number of branches */
    uint64_t floor;  /* [byte] */
    uint64_t margin; /* cap minus floor and open sizes [byte] */
    bool nobody;
} cell;

/* Least est among the open rivals of a body. */
static uint64_t lowest_rival(mpl_graph_search *search, uint32_t i)
{
    const uint64_t *row = search->bodies->rival + (size_t)i * search->bodies->n_words;

    if (search->seen[i] == search->stamp)
        return search->lowest[i];
    search->seen[i] = search->stamp;
    search->lowest[i] = NEVER;
    for (uint32_t w = 0; w < search->bodies->n_words; w++)
        for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
            uint32_t j = w * 64 + (uint32_t)__builtin_ctzll(bits);

            search->effort->ticks++;
            if (!search->placed[j])
                search->lowest[i] = mpl_min_u64(search->lowest[i], search->est[j]);
        }
    return search->lowest[i];
}

static bool in_clique(const mpl_graph_search *search, uint32_t c, uint32_t body)
{
    const uint32_t *item = search->cliques->of_item + search->cliques->of_begin[body];
    uint32_t n = search->cliques->of_begin[body + 1] - search->cliques->of_begin[body],
             at = mpl_rank_u32(item, n, c);

    return at < n && item[at] == c;
}

/* Prepares rest_outside for clique c. */
static void enter_clique(mpl_graph_search *search, uint32_t c)
{
    search->entry++;
    for (uint32_t k = search->cliques->begin[c]; k < search->cliques->begin[c + 1]; k++)
        search->inside[body_of(search, search->cliques->member[k])] = search->entry;
    search->effort->ticks += search->cliques->begin[c + 1] - search->cliques->begin[c];
}

/* Lowest offset at which body i could rest on an open body outside the clique entered last; may
 * stop at `enough`. With a proof it ignores alignments and counts clique bodies of several
 * members. */
static uint64_t rest_outside(mpl_graph_search *search, uint32_t i, uint64_t enough)
{
    const uint64_t *row = search->bodies->rival + (size_t)i * search->bodies->n_words;
    uint64_t low = NEVER;

    for (uint32_t w = 0; w < search->bodies->n_words && low > enough; w++)
        for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
            uint32_t j = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint64_t end;

            search->effort->ticks++;
            if (search->placed[j] || (search->inside[j] == search->entry &&
                                      (search->proof == NULL || !search->several[j])))
                continue;
            end = search->proof == NULL
                      ? mpl_above(search->bodies, j, search->est[j], i)
                      : search->est[j] +
                            (search->bodies->dist != NULL
                                 ? search->bodies->dist[(size_t)j * search->bodies->n + i]
                                 : search->bodies->size[j]);
            low = mpl_min_u64(low, end);
        }
    return low;
}

/* Whether a candidate of the clique could rest outside it at or below `high`. */
static bool some_can_rest(mpl_graph_search *search, uint32_t c, uint64_t floor, uint64_t high)
{
    bool can = false;

    enter_clique(search, c);
    for (uint32_t i = search->cliques->begin[c]; i < search->cliques->begin[c + 1] && !can; i++) {
        uint32_t k = body_of(search, search->cliques->member[i]);

        can =
            !search->placed[k] && search->est[k] == floor && rest_outside(search, k, high) <= high;
    }
    return can;
}

/* Examines a clique with open members; false: it cannot be branched on. */
static bool look(mpl_graph_search *search, uint32_t c, uint32_t best_score, cell *out)
{
    const mpl_bodies *bodies = search->bodies;
    uint64_t sum = 0, rest = 0, next = NEVER;

    *out = (cell){.clique = c, .floor = NEVER};
    for (uint32_t i = search->cliques->begin[c]; i < search->cliques->begin[c + 1]; i++) {
        uint32_t m = search->cliques->member[i], k = body_of(search, m);

        if (search->placed[k])
            continue;
        sum += bodies->member_size[m];
        rest = mpl_max_u64(rest, bodies->member_size[m] - bodies->member_bytes[m]);
        if (search->est[k] < out->floor)
            next = out->floor, out->floor = search->est[k], out->score = 1;
        else if (search->est[k] == out->floor)
            out->score++;
        else
            next = mpl_min_u64(next, search->est[k]);
    }
    search->effort->ticks += search->cliques->begin[c + 1] - search->cliques->begin[c];
    if (out->floor == NEVER || out->score > best_score)
        return false;
    for (uint32_t i = search->cliques->begin[c]; i < search->cliques->begin[c + 1]; i++) {
        uint32_t k = body_of(search, search->cliques->member[i]);

        if (!search->placed[k] && search->est[k] == out->floor &&
            lowest_rival(search, k) < out->floor)
            return false;
    }
    out->margin = search->cap + rest - sum - out->floor;
    out->nobody = next <= out->floor + out->margin ||
                  some_can_rest(search, c, out->floor, out->floor + out->margin);
    out->score += out->nobody;
    return true;
}

static bool better(mpl_exact_pick pick, const cell *a, const cell *b)
{
    if (a->score == 1 || b->score == 1 || pick <= MPL_PICK_SCORE_HIGH) {
        if (a->score != b->score)
            return a->score < b->score;
        if (pick == MPL_PICK_SCORE_HIGH && a->floor != b->floor)
            return a->floor > b->floor;
    }
    if ((pick == MPL_PICK_TIGHT || pick == MPL_PICK_SCORE_TIGHT) && a->margin != b->margin)
        return a->margin < b->margin;
    if (a->floor != b->floor)
        return a->floor < b->floor;
    return a->score < b->score;
}

/* Checks the effort between nodes, independent of the number of cliques. */
static bool spent(mpl_graph_search *search)
{
    mpl_exact_effort *effort = search->effort;

    if (effort->ticks >= search->look_at) {
        search->look_at = effort->ticks + CLOCK_TICKS;
        effort->by_clock = effort->by_clock || mpl_exact_late(effort->deadline_ns, effort->watch);
    }
    return effort->by_clock || effort->ticks >= effort->tick_limit;
}

/* Chooses the cell to branch on among these open bodies' cliques; false: none, or effort ended. */
static bool choose(mpl_graph_search *search, const uint64_t *open, cell *best)
{
    bool found = false, by_score = search->pick <= MPL_PICK_SCORE_HIGH;

    search->stamp++;
    for (uint32_t w = 0; w < search->bodies->n_words; w++)
        for (uint64_t bits = open[w]; bits != 0; bits &= bits - 1) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);

            for (uint32_t k = search->cliques->of_begin[i]; k < search->cliques->of_begin[i + 1];
                 k++) {
                uint32_t c = search->cliques->of_item[k];
                cell one;

                if (search->visited[c] == search->stamp)
                    continue;
                search->visited[c] = search->stamp;
                if (spent(search))
                    return false;
                if (look(search, c, found && by_score ? best->score : UINT32_MAX, &one) &&
                    (!found || better(search->pick, &one, best))) {
                    *best = one;
                    found = true;
                    if (one.score == 1)
                        return true;
                }
            }
        }
    return found;
}

/* Pushes the bodies that may cover the cell, by rank; returns their number. */
static uint32_t push_candidates(mpl_graph_search *search, const cell *at)
{
    uint32_t n = 0, *list;
    size_t room = search->cliques->begin[at->clique + 1] - search->cliques->begin[at->clique];

    if (mpl_reserve(search->ctx, search->stack, search->stack_room, search->n_stack + room) !=
        MPL_OK) {
        search->no_memory = true;
        return 0;
    }
    list = search->stack + search->n_stack;
    for (uint32_t i = search->cliques->begin[at->clique];
         i < search->cliques->begin[at->clique + 1]; i++) {
        uint32_t k = body_of(search, search->cliques->member[i]), slot;
        uint32_t t =
            mpl_exact_uses(search->effort->without, MPL_RULE_twins) ? search->twin[k] : MPL_NONE;

        if (search->placed[k] || search->est[k] != at->floor)
            continue;
        while (t != MPL_NONE && (search->placed[t] || search->est[t] != at->floor ||
                                 !in_clique(search, at->clique, t)))
            t = search->twin[t];
        if (t != MPL_NONE) /* its twin is tried */
            continue;
        for (slot = n++; slot > 0 && search->rank[list[slot - 1]] > search->rank[k]; slot--)
            list[slot] = list[slot - 1];
        list[slot] = k;
    }
    search->n_stack += n;
    return n;
}

/* Takes the branch in which no body covers the cell: its candidates rise. */
static bool lift(mpl_graph_search *search, const cell *at)
{
    uint32_t begin = search->cliques->begin[at->clique],
             end = search->cliques->begin[at->clique + 1];
    size_t base = search->n_rows;
    uint64_t *own;
    bool good = true;

    if (mpl_reserve(search->ctx, search->rows, search->rows_room, base + (end - begin)) != MPL_OK) {
        search->no_memory = true;
        return false;
    }
    enter_clique(search, at->clique);
    own = search->rows + base; /* lowest rest outside the clique of each member, or its est */
    for (uint32_t i = begin; i < end; i++) {
        uint32_t k = body_of(search, search->cliques->member[i]);

        own[i - begin] = search->placed[k]             ? NEVER
                         : search->est[k] == at->floor ? rest_outside(search, k, 0)
                                                       : search->est[k];
    }
    for (uint32_t i = begin; i < end && good; i++) {
        uint32_t k = body_of(search, search->cliques->member[i]);
        uint64_t low = own[i - begin];

        if (search->placed[k] || search->est[k] != at->floor)
            continue;
        for (uint32_t j = begin; j < end; j++)
            if (j != i && own[j - begin] != NEVER)
                low = mpl_min_u64(low, mpl_above(search->bodies,
                                                 body_of(search, search->cliques->member[j]),
                                                 own[j - begin], k));
        low = low == NEVER ? low
                           : (low + search->bodies->align[k] - 1) & ~(search->bodies->align[k] - 1);
        good = raise_est(search, k, low);
    }
    return good;
}

/* ---- the search ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Hashes the open bodies of a component and their est. */
static void make_key(const mpl_graph_search *search, const uint64_t *open, uint64_t key[2])
{
    key[0] = key[1] = 1;
    for (uint32_t w = 0; w < search->bodies->n_words; w++)
        for (uint64_t bits = open[w]; bits != 0; bits &= bits - 1) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint64_t id = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

            key[0] += mix(search->est[i] ^ id);
            key[1] += mix(search->est[i] * UINT64_C(0xd6e8feb86659fd93) + id);
        }
    key[0] += key[0] == 0;
}

static bool out_of_budget(mpl_graph_search *search)
{
    return search->no_memory || spent(search) || search->nodes >= search->node_limit ||
           (search->proof != NULL && search->proof->failed);
}

/* Pushes a row of n_words zeros; false: out of memory. */
static bool push_row(mpl_graph_search *search)
{
    if (mpl_reserve(search->ctx, search->rows, search->rows_room,
                    search->n_rows + search->bodies->n_words) != MPL_OK) {
        search->no_memory = true;
        return false;
    }
    memset(search->rows + search->n_rows, 0, search->bodies->n_words * sizeof *search->rows);
    search->n_rows += search->bodies->n_words;
    return true;
}

/* Moves the open bodies connected with the first of rows[from ..] into rows[to ..]; false: none. */
static bool take_component(mpl_graph_search *search, size_t from, size_t to)
{
    uint64_t *left = search->rows + from, *taken = search->rows + to;
    uint32_t n_words = search->bodies->n_words, w = 0;
    bool grown = true;

    memset(taken, 0, n_words * sizeof *taken);
    while (w < n_words && left[w] == 0)
        w++;
    if (w == n_words)
        return false;
    taken[w] = left[w] & -left[w];
    left[w] &= left[w] - 1;
    while (grown) {
        grown = false;
        for (uint32_t v = 0; v < n_words; v++)
            for (uint64_t bits = taken[v]; bits != 0; bits &= bits - 1) {
                const uint64_t *row = search->bodies->rival +
                                      (size_t)(v * 64 + (uint32_t)__builtin_ctzll(bits)) * n_words;

                for (uint32_t k = 0; k < n_words; k++)
                    if ((left[k] & row[k]) != 0) {
                        taken[k] |= left[k] & row[k];
                        left[k] &= ~row[k];
                        grown = true;
                    }
            }
    }
    search->effort->ticks += n_words;
    return true;
}

static mpl_exact_verdict solve(mpl_graph_search *search, size_t row);

/* Whether this component failed before. With a proof, its refutation must still be in the text. */
static bool failed_before(mpl_graph_search *search, const uint64_t key[2])
{
    size_t at;

    if (search->proof == NULL)
        return mpl_exact_uses(search->effort->without, MPL_RULE_memo) &&
               mpl_exact_memo_has(&search->memo, key);
    at = mpl_proof_known(search->proof, key[0]);
    if (at != SIZE_MAX)
        note(search, 'm', (uint32_t)at, 0);
    else
        mpl_proof_add(search->proof, 'k', 0, 0, key[0]);
    return at != SIZE_MAX;
}

/* Solves rows[row ..], one component of open bodies, with all bounds checked. */
static mpl_exact_verdict solve_component(mpl_graph_search *search, size_t row)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    size_t base = search->n_stack, entry = search->trail.n,
           begin = search->proof != NULL ? search->proof->n : 0;
    uint64_t key[2];
    bool nobody = true;

    make_key(search, search->rows + row, key);
    if (failed_before(search, key))
        return MPL_EXACT_FAILED;
    while (nobody && verdict == MPL_EXACT_FAILED) { /* without the last round's candidates */
        size_t mark = search->trail.n, inner = search->n_rows;
        uint32_t n;
        cell at = {0};

        search->nodes++;
        if (out_of_budget(search) || !choose(search, search->rows + row, &at))
            return MPL_EXACT_STOPPED;
        n = push_candidates(search, &at);
        note(search, 'b', search->proof != NULL ? search->set[at.clique] : 0, n + 1);
        for (uint32_t k = 0; k < n && verdict == MPL_EXACT_FAILED; k++) {
            uint32_t i = search->stack[base + k];

            note_body(search, 'p', i);
            if (place(search, i) && settle(search) && push_row(search)) {
                memcpy(search->rows + inner, search->rows + row,
                       search->bodies->n_words * sizeof *search->rows);
                mpl_bit_drop(search->rows + inner, i);
                verdict = solve(search, inner);
            }
            search->n_rows = inner;
            if (verdict != MPL_EXACT_FOUND)
                undo(search, mark);
            if (search->no_memory)
                verdict = MPL_EXACT_STOPPED;
        }
        search->n_stack = base;
        nobody = verdict == MPL_EXACT_FAILED && (at.nobody || search->proof != NULL);
        if (nobody) {
            note(search, 'n', 0, 0);
            nobody = lift(search, &at) && settle(search);
        }
        if (search->no_memory)
            verdict = MPL_EXACT_STOPPED;
    }
    if (verdict != MPL_EXACT_FOUND)
        undo(search, entry);
    if (verdict == MPL_EXACT_FAILED && search->proof != NULL)
        mpl_proof_remember(search->proof, key[0], begin);
    else if (verdict == MPL_EXACT_FAILED)
        mpl_exact_memo_add(&search->memo, key);
    return verdict;
}

/* Records that the component in rows[taken ..] is searched alone, unless it is the only one.
 * rows[left ..] are the components after it. */
static bool note_component(mpl_graph_search *search, size_t left, size_t taken, bool more)
{
    uint32_t w = 0;

    for (uint32_t k = 0; k < search->bodies->n_words; k++)
        more = more || search->rows[left + k] != 0;
    while (search->rows[taken + w] == 0)
        w++;
    if (more)
        note_body(search, 'o', w * 64 + (uint32_t)__builtin_ctzll(search->rows[taken + w]));
    return more;
}

/* Solves the components of rows[row ..], the open bodies below a node, until one fails. Consumes
 * it. */
static mpl_exact_verdict solve(mpl_graph_search *search, size_t row)
{
    mpl_exact_verdict verdict = MPL_EXACT_FOUND;
    size_t mark = search->trail.n, base = search->n_rows,
           text = search->proof != NULL ? search->proof->n : 0;
    bool more = false;

    if (!push_row(search))
        return MPL_EXACT_STOPPED;
    while (verdict == MPL_EXACT_FOUND && take_component(search, row, base)) {
        if (search->proof != NULL)
            search->proof->n = text; /* the text of a solved component proves nothing */
        more = note_component(search, row, base, more);
        verdict = solve_component(search, base);
    }
    search->n_rows = base;
    if (verdict != MPL_EXACT_FOUND)
        undo(search, mark);
    return verdict;
}

/* clique_fits() before the first placement. If the bodies are not connected, the component of the
 * clique is isolated first: only then do sizes count as rounded. */
static bool clique_fits_first(mpl_graph_search *search, uint32_t c)
{
    mpl_proof *proof = search->proof;
    bool fits;

    if (proof == NULL || !search->apart)
        return clique_fits(search, c);
    search->proof = NULL;
    fits = clique_fits(search, c);
    search->proof = proof;
    if (fits)
        return true;
    note_body(search, 'o', body_of(search, search->cliques->member[search->cliques->begin[c]]));
    return clique_fits(search, c);
}

/* Writes the cliques at the start of the text. */
static void write_sets(mpl_graph_search *search)
{
    mpl_proof_forget(search->proof);
    for (uint32_t c = 0; c < search->cliques->n; c++) {
        search->set[c] = (uint32_t)search->proof->n;
        for (uint32_t i = search->cliques->begin[c]; i < search->cliques->begin[c + 1]; i++)
            note(search, 'c', search->bodies->buffer[search->cliques->member[i]], search->set[c]);
    }
}

mpl_exact_verdict mpl_graph_search_run(mpl_graph_search *search)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    const mpl_bodies *bodies = search->bodies;

    search->trail.n = search->n_rows = search->n_stack = 0;
    search->nodes = search->look_at = 0;
    if (search->proof != NULL)
        write_sets(search);
    for (uint32_t i = 0; i < bodies->n; i++) {
        search->est[i] =
            bodies->fixed != NULL && bodies->fixed[i] != MPL_UNFIXED ? bodies->fixed[i] : 0;
        search->placed[i] = 0;
        if (search->est[i] + bodies->bytes[i] > search->cap) {
            note_body(search, 'z', i);
            return MPL_EXACT_FAILED;
        }
    }
    for (uint32_t c = 0; c < search->cliques->n; c++)
        if (!clique_fits_first(search, c))
            return MPL_EXACT_FAILED;
    if (!push_row(search))
        return MPL_EXACT_STOPPED;
    for (uint32_t i = 0; i < bodies->n; i++)
        mpl_bit_add(search->rows, i);
    verdict = solve(search, 0);
    return verdict;
}
