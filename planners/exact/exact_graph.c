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

static bool same_relation(const mpl_bodies *b, uint32_t i, uint32_t j)
{
    for (uint32_t w = 0; w < b->n_words; w++) {
        uint64_t differ =
            b->rival[(size_t)i * b->n_words + w] ^ b->rival[(size_t)j * b->n_words + w];

        differ &= i / 64 == w ? ~(UINT64_C(1) << (i % 64)) : UINT64_MAX;
        differ &= j / 64 == w ? ~(UINT64_C(1) << (j % 64)) : UINT64_MAX;
        if (differ != 0)
            return false;
    }
    return true;
}

/* Finds rivals that are identical, which may be exchanged. */
static void find_twins(mpl_graph_search *s)
{
    const mpl_bodies *b = s->b;

    for (uint32_t i = 0; i < b->n; i++) {
        s->twin[i] = MPL_NONE;
        for (uint32_t j = i;
             b->dist == NULL && b->fixed == NULL && j-- > 0 && s->twin[i] == MPL_NONE;)
            if (mpl_rivals(b, i, j) && b->bytes[i] == b->bytes[j] && b->align[i] == b->align[j] &&
                same_relation(b, i, j))
                s->twin[i] = j;
    }
}

mpl_status mpl_graph_search_new(mpl_ctx *ctx, const mpl_bodies *b, const mpl_cliques *q,
                                mpl_graph_search **out)
{
    mpl_status st = MPL_OK;
    mpl_graph_search *s = NULL;

    MPL_TRY(mpl_new(ctx, s, 1));
    s->ctx = s->memo.ctx = ctx;
    s->b = b;
    s->q = q;
    MPL_TRY(mpl_new_each(ctx, b->n, s->est, s->placed, s->twin, s->lowest, s->seen));
    MPL_TRY(mpl_new(ctx, s->order, q->begin[q->n]));
    MPL_TRY(mpl_new_each(ctx, q->n, s->queue, s->queued, s->visited));
    MPL_TRY(mpl_new(ctx, s->inside, b->n));
    memcpy(s->order, q->member, q->begin[q->n] * sizeof *s->order);
    find_twins(s);
    *out = s, s = NULL;
out:
    mpl_graph_search_free(s);
    return st;
}

void mpl_graph_search_free(mpl_graph_search *s)
{
    if (s == NULL)
        return;
    mpl_free_each(s->ctx, s->est, s->placed, s->twin, s->lowest, s->seen, s->order, s->queue,
                  s->queued, s->visited, s->trail.step, s->rows, s->stack, s->set, s->first,
                  s->several, s->inside);
    mpl_exact_memo_fini(&s->memo);
    mpl_free(s->ctx, s);
}

void mpl_graph_search_cap(mpl_graph_search *s, uint64_t cap)
{
    if (s->cap != cap)
        mpl_exact_memo_clear(&s->memo);
    s->cap = cap;
}

mpl_status mpl_graph_search_prove(mpl_graph_search *s, mpl_proof *proof)
{
    if (s->set == NULL)
        MPL_PASS(mpl_new(s->ctx, s->set, s->q->n));
    if (s->first == NULL)
        MPL_PASS(mpl_new(s->ctx, s->first, s->b->n));
    if (s->several == NULL)
        MPL_PASS(mpl_new(s->ctx, s->several, s->b->n));
    for (uint32_t i = 0; i < s->b->n; i++)
        s->first[i] = MPL_NONE;
    for (uint32_t m = 0; m < s->b->n_members; m++) {
        uint32_t i = s->b->body[m];

        s->several[i] = s->first[i] != MPL_NONE;
        s->first[i] = s->b->buffer[m];
    }
    s->proof = proof;
    return MPL_OK;
}

/* ---- states ---- */

/* Adds a record about a buffer if a proof is written. */
static void note(mpl_graph_search *s, char kind, uint32_t buffer, uint32_t set)
{
    if (s->proof != NULL)
        mpl_proof_add(s->proof, kind, buffer, set, 0);
}

/* Adds a record about a body if a proof is written. */
static void note_body(mpl_graph_search *s, char kind, uint32_t i)
{
    if (s->proof != NULL)
        mpl_proof_add(s->proof, kind, s->first[i], 0, 0);
}

static bool remember(mpl_graph_search *s, uint32_t id, int64_t old)
{
    s->no_memory = s->no_memory || mpl_trail_push(s->ctx, &s->trail, id, old) != MPL_OK;
    return !s->no_memory;
}

static void undo(mpl_graph_search *s, size_t mark)
{
    while (s->trail.n > mark) {
        const struct mpl_trail_step *t = &s->trail.step[--s->trail.n];

        if (t->old == PLACED)
            s->placed[t->what] = 0;
        else
            s->est[t->what] = (uint64_t)t->old;
    }
    while (s->n_queue > 0)
        s->queued[s->queue[--s->n_queue]] = 0;
}

/* Raises body i to `at` or above; false: impossible. */
static bool raise_est(mpl_graph_search *s, uint32_t i, uint64_t at)
{
    const mpl_bodies *b = s->b;

    if (at <= s->est[i])
        return true;
    if (at == NEVER || at + b->bytes[i] > s->cap ||
        (b->fixed != NULL && b->fixed[i] != MPL_UNFIXED && at > b->fixed[i])) {
        note_body(s, 'z', i);
        return false;
    }
    if (!remember(s, i, (int64_t)s->est[i]))
        return false;
    s->est[i] = at;
    s->effort->ticks += (s->q->of_begin[i + 1] - s->q->of_begin[i]) / 2;
    for (uint32_t k = s->q->of_begin[i]; k < s->q->of_begin[i + 1]; k++) {
        uint32_t c = s->q->of_item[k];

        if (!s->queued[c])
            s->queued[c] = 1, s->queue[s->n_queue++] = c;
    }
    return true;
}

/* Places body i at its est and raises its open rivals above it. */
static bool place(mpl_graph_search *s, uint32_t i)
{
    const uint64_t *row = s->b->rival + (size_t)i * s->b->n_words;

    if (!remember(s, i, PLACED))
        return false;
    s->placed[i] = 1;
    for (uint32_t w = 0; w < s->b->n_words; w++)
        for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
            uint32_t j = w * 64 + (uint32_t)__builtin_ctzll(bits);

            s->effort->ticks++;
            if (!s->placed[j] && !raise_est(s, j, mpl_above(s->b, i, s->est[i], j)))
                return false;
        }
    return true;
}

static uint32_t body_of(const mpl_graph_search *s, uint32_t member)
{
    return s->b->body[member];
}

/* Sorts the members of a clique by est and checks, from the top down, the room above each est. */
static bool clique_fits(mpl_graph_search *s, uint32_t c)
{
    const mpl_bodies *b = s->b;
    uint32_t *order = s->order + s->q->begin[c], n = s->q->begin[c + 1] - s->q->begin[c];
    uint64_t sum = 0, rest = 0;

    s->effort->ticks += n;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t m = order[i], k = i;

        for (; k > 0 && s->est[body_of(s, order[k - 1])] > s->est[body_of(s, m)]; k--)
            order[k] = order[k - 1];
        order[k] = m;
        s->effort->ticks += (i - k) / 2;
    }
    for (uint32_t i = n; i-- > 0;) {
        uint32_t m = order[i];

        if (s->placed[body_of(s, m)])
            continue;
        sum += b->member_size[m];
        rest = mpl_max_u64(rest, b->member_size[m] - b->member_bytes[m]);
        if (s->est[body_of(s, m)] + sum - rest > s->cap) {
            note(s, 'x', b->buffer[m], s->proof != NULL ? s->set[c] : 0);
            return false;
        }
    }
    return true;
}

static bool settle(mpl_graph_search *s)
{
    while (s->n_queue > 0) {
        uint32_t c = s->queue[--s->n_queue];

        s->queued[c] = 0;
        if (!clique_fits(s, c))
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
static uint64_t lowest_rival(mpl_graph_search *s, uint32_t i)
{
    const uint64_t *row = s->b->rival + (size_t)i * s->b->n_words;

    if (s->seen[i] == s->stamp)
        return s->lowest[i];
    s->seen[i] = s->stamp;
    s->lowest[i] = NEVER;
    for (uint32_t w = 0; w < s->b->n_words; w++)
        for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
            uint32_t j = w * 64 + (uint32_t)__builtin_ctzll(bits);

            s->effort->ticks++;
            if (!s->placed[j])
                s->lowest[i] = mpl_min_u64(s->lowest[i], s->est[j]);
        }
    return s->lowest[i];
}

static bool in_clique(const mpl_graph_search *s, uint32_t c, uint32_t body)
{
    const uint32_t *item = s->q->of_item + s->q->of_begin[body];
    uint32_t n = s->q->of_begin[body + 1] - s->q->of_begin[body], at = mpl_rank_u32(item, n, c);

    return at < n && item[at] == c;
}

/* Prepares rest_outside for clique c. */
static void enter_clique(mpl_graph_search *s, uint32_t c)
{
    s->entry++;
    for (uint32_t k = s->q->begin[c]; k < s->q->begin[c + 1]; k++)
        s->inside[body_of(s, s->q->member[k])] = s->entry;
    s->effort->ticks += s->q->begin[c + 1] - s->q->begin[c];
}

/* Lowest offset at which body i could rest on an open body outside the clique entered last; may
 * stop at `enough`. With a proof it ignores alignments and counts clique bodies of several
 * members. */
static uint64_t rest_outside(mpl_graph_search *s, uint32_t i, uint64_t enough)
{
    const uint64_t *row = s->b->rival + (size_t)i * s->b->n_words;
    uint64_t low = NEVER;

    for (uint32_t w = 0; w < s->b->n_words && low > enough; w++)
        for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) {
            uint32_t j = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint64_t end;

            s->effort->ticks++;
            if (s->placed[j] || (s->inside[j] == s->entry && (s->proof == NULL || !s->several[j])))
                continue;
            end = s->proof == NULL
                      ? mpl_above(s->b, j, s->est[j], i)
                      : s->est[j] + (s->b->dist != NULL ? s->b->dist[(size_t)j * s->b->n + i]
                                                        : s->b->size[j]);
            low = mpl_min_u64(low, end);
        }
    return low;
}

/* Whether a candidate of the clique could rest outside it at or below `high`. */
static bool some_can_rest(mpl_graph_search *s, uint32_t c, uint64_t floor, uint64_t high)
{
    bool can = false;

    enter_clique(s, c);
    for (uint32_t i = s->q->begin[c]; i < s->q->begin[c + 1] && !can; i++) {
        uint32_t k = body_of(s, s->q->member[i]);

        can = !s->placed[k] && s->est[k] == floor && rest_outside(s, k, high) <= high;
    }
    return can;
}

/* Examines a clique with open members; false: it cannot be branched on. */
static bool look(mpl_graph_search *s, uint32_t c, uint32_t best_score, cell *out)
{
    const mpl_bodies *b = s->b;
    uint64_t sum = 0, rest = 0, next = NEVER;

    *out = (cell){.clique = c, .floor = NEVER};
    for (uint32_t i = s->q->begin[c]; i < s->q->begin[c + 1]; i++) {
        uint32_t m = s->q->member[i], k = body_of(s, m);

        if (s->placed[k])
            continue;
        sum += b->member_size[m];
        rest = mpl_max_u64(rest, b->member_size[m] - b->member_bytes[m]);
        if (s->est[k] < out->floor)
            next = out->floor, out->floor = s->est[k], out->score = 1;
        else if (s->est[k] == out->floor)
            out->score++;
        else
            next = mpl_min_u64(next, s->est[k]);
    }
    s->effort->ticks += s->q->begin[c + 1] - s->q->begin[c];
    if (out->floor == NEVER || out->score > best_score)
        return false;
    for (uint32_t i = s->q->begin[c]; i < s->q->begin[c + 1]; i++) {
        uint32_t k = body_of(s, s->q->member[i]);

        if (!s->placed[k] && s->est[k] == out->floor && lowest_rival(s, k) < out->floor)
            return false;
    }
    out->margin = s->cap + rest - sum - out->floor;
    out->nobody = next <= out->floor + out->margin ||
                  some_can_rest(s, c, out->floor, out->floor + out->margin);
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
static bool spent(mpl_graph_search *s)
{
    mpl_exact_effort *e = s->effort;

    if (e->ticks >= s->look_at) {
        s->look_at = e->ticks + CLOCK_TICKS;
        e->by_clock = e->by_clock || mpl_exact_late(e->deadline_ns, e->watch);
    }
    return e->by_clock || e->ticks >= e->tick_limit;
}

/* Chooses the cell to branch on among these open bodies' cliques; false: none, or effort ended. */
static bool choose(mpl_graph_search *s, const uint64_t *open, cell *best)
{
    bool found = false, by_score = s->pick <= MPL_PICK_SCORE_HIGH;

    s->stamp++;
    for (uint32_t w = 0; w < s->b->n_words; w++)
        for (uint64_t bits = open[w]; bits != 0; bits &= bits - 1) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);

            for (uint32_t k = s->q->of_begin[i]; k < s->q->of_begin[i + 1]; k++) {
                uint32_t c = s->q->of_item[k];
                cell one;

                if (s->visited[c] == s->stamp)
                    continue;
                s->visited[c] = s->stamp;
                if (spent(s))
                    return false;
                if (look(s, c, found && by_score ? best->score : UINT32_MAX, &one) &&
                    (!found || better(s->pick, &one, best))) {
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
static uint32_t push_candidates(mpl_graph_search *s, const cell *at)
{
    uint32_t n = 0, *list;
    size_t room = s->q->begin[at->clique + 1] - s->q->begin[at->clique];

    if (mpl_reserve(s->ctx, s->stack, s->stack_room, s->n_stack + room) != MPL_OK) {
        s->no_memory = true;
        return 0;
    }
    list = s->stack + s->n_stack;
    for (uint32_t i = s->q->begin[at->clique]; i < s->q->begin[at->clique + 1]; i++) {
        uint32_t k = body_of(s, s->q->member[i]), slot;
        uint32_t t = mpl_exact_uses(s->effort->without, MPL_RULE_twins) ? s->twin[k] : MPL_NONE;

        if (s->placed[k] || s->est[k] != at->floor)
            continue;
        while (t != MPL_NONE &&
               (s->placed[t] || s->est[t] != at->floor || !in_clique(s, at->clique, t)))
            t = s->twin[t];
        if (t != MPL_NONE) /* its twin is tried */
            continue;
        for (slot = n++; slot > 0 && s->rank[list[slot - 1]] > s->rank[k]; slot--)
            list[slot] = list[slot - 1];
        list[slot] = k;
    }
    s->n_stack += n;
    return n;
}

/* Takes the branch in which no body covers the cell: its candidates rise. */
static bool lift(mpl_graph_search *s, const cell *at)
{
    uint32_t begin = s->q->begin[at->clique], end = s->q->begin[at->clique + 1];
    size_t base = s->n_rows;
    uint64_t *own;
    bool good = true;

    if (mpl_reserve(s->ctx, s->rows, s->rows_room, base + (end - begin)) != MPL_OK) {
        s->no_memory = true;
        return false;
    }
    enter_clique(s, at->clique);
    own = s->rows + base; /* lowest rest outside the clique of each member, or its est */
    for (uint32_t i = begin; i < end; i++) {
        uint32_t k = body_of(s, s->q->member[i]);

        own[i - begin] = s->placed[k]             ? NEVER
                         : s->est[k] == at->floor ? rest_outside(s, k, 0)
                                                  : s->est[k];
    }
    for (uint32_t i = begin; i < end && good; i++) {
        uint32_t k = body_of(s, s->q->member[i]);
        uint64_t low = own[i - begin];

        if (s->placed[k] || s->est[k] != at->floor)
            continue;
        for (uint32_t j = begin; j < end; j++)
            if (j != i && own[j - begin] != NEVER)
                low = mpl_min_u64(low,
                                  mpl_above(s->b, body_of(s, s->q->member[j]), own[j - begin], k));
        low = low == NEVER ? low : (low + s->b->align[k] - 1) & ~(s->b->align[k] - 1);
        good = raise_est(s, k, low);
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
static void make_key(const mpl_graph_search *s, const uint64_t *open, uint64_t key[2])
{
    key[0] = key[1] = 1;
    for (uint32_t w = 0; w < s->b->n_words; w++)
        for (uint64_t bits = open[w]; bits != 0; bits &= bits - 1) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);
            uint64_t id = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

            key[0] += mix(s->est[i] ^ id);
            key[1] += mix(s->est[i] * UINT64_C(0xd6e8feb86659fd93) + id);
        }
    key[0] += key[0] == 0;
}

static bool out_of_budget(mpl_graph_search *s)
{
    return s->no_memory || spent(s) || s->nodes >= s->node_limit ||
           (s->proof != NULL && s->proof->failed);
}

/* Pushes a row of n_words zeros; false: out of memory. */
static bool push_row(mpl_graph_search *s)
{
    if (mpl_reserve(s->ctx, s->rows, s->rows_room, s->n_rows + s->b->n_words) != MPL_OK) {
        s->no_memory = true;
        return false;
    }
    memset(s->rows + s->n_rows, 0, s->b->n_words * sizeof *s->rows);
    s->n_rows += s->b->n_words;
    return true;
}

/* Moves the open bodies connected with the first of rows[from ..] into rows[to ..]; false: none. */
static bool take_component(mpl_graph_search *s, size_t from, size_t to)
{
    uint64_t *left = s->rows + from, *taken = s->rows + to;
    uint32_t n_words = s->b->n_words, w = 0;
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
                const uint64_t *row =
                    s->b->rival + (size_t)(v * 64 + (uint32_t)__builtin_ctzll(bits)) * n_words;

                for (uint32_t k = 0; k < n_words; k++)
                    if ((left[k] & row[k]) != 0) {
                        taken[k] |= left[k] & row[k];
                        left[k] &= ~row[k];
                        grown = true;
                    }
            }
    }
    s->effort->ticks += n_words;
    return true;
}

static mpl_exact_verdict solve(mpl_graph_search *s, size_t row);

/* Whether this component failed before. With a proof, its refutation must still be in the text. */
static bool failed_before(mpl_graph_search *s, const uint64_t key[2])
{
    size_t at;

    if (s->proof == NULL)
        return mpl_exact_uses(s->effort->without, MPL_RULE_memo) &&
               mpl_exact_memo_has(&s->memo, key);
    at = mpl_proof_known(s->proof, key[0]);
    if (at != SIZE_MAX)
        note(s, 'm', (uint32_t)at, 0);
    else
        mpl_proof_add(s->proof, 'k', 0, 0, key[0]);
    return at != SIZE_MAX;
}

/* Solves rows[row ..], one component of open bodies, with all bounds checked. */
static mpl_exact_verdict solve_component(mpl_graph_search *s, size_t row)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    size_t base = s->n_stack, entry = s->trail.n, begin = s->proof != NULL ? s->proof->n : 0;
    uint64_t key[2];
    bool nobody = true;

    make_key(s, s->rows + row, key);
    if (failed_before(s, key))
        return MPL_EXACT_FAILED;
    while (nobody && verdict == MPL_EXACT_FAILED) { /* without the last round's candidates */
        size_t mark = s->trail.n, inner = s->n_rows;
        uint32_t n;
        cell at = {0};

        s->nodes++;
        if (out_of_budget(s) || !choose(s, s->rows + row, &at))
            return MPL_EXACT_STOPPED;
        n = push_candidates(s, &at);
        note(s, 'b', s->proof != NULL ? s->set[at.clique] : 0, n + 1);
        for (uint32_t k = 0; k < n && verdict == MPL_EXACT_FAILED; k++) {
            uint32_t i = s->stack[base + k];

            note_body(s, 'p', i);
            if (place(s, i) && settle(s) && push_row(s)) {
                memcpy(s->rows + inner, s->rows + row, s->b->n_words * sizeof *s->rows);
                mpl_bit_drop(s->rows + inner, i);
                verdict = solve(s, inner);
            }
            s->n_rows = inner;
            if (verdict != MPL_EXACT_FOUND)
                undo(s, mark);
            if (s->no_memory)
                verdict = MPL_EXACT_STOPPED;
        }
        s->n_stack = base;
        nobody = verdict == MPL_EXACT_FAILED && (at.nobody || s->proof != NULL);
        if (nobody) {
            note(s, 'n', 0, 0);
            nobody = lift(s, &at) && settle(s);
        }
        if (s->no_memory)
            verdict = MPL_EXACT_STOPPED;
    }
    if (verdict != MPL_EXACT_FOUND)
        undo(s, entry);
    if (verdict == MPL_EXACT_FAILED && s->proof != NULL)
        mpl_proof_remember(s->proof, key[0], begin);
    else if (verdict == MPL_EXACT_FAILED)
        mpl_exact_memo_add(&s->memo, key);
    return verdict;
}

/* Records that the component in rows[taken ..] is searched alone, unless it is the only one.
 * rows[left ..] are the components after it. */
static bool note_component(mpl_graph_search *s, size_t left, size_t taken, bool more)
{
    uint32_t w = 0;

    for (uint32_t k = 0; k < s->b->n_words; k++)
        more = more || s->rows[left + k] != 0;
    while (s->rows[taken + w] == 0)
        w++;
    if (more)
        note_body(s, 'o', w * 64 + (uint32_t)__builtin_ctzll(s->rows[taken + w]));
    return more;
}

/* Solves the components of rows[row ..], the open bodies below a node, until one fails. Consumes
 * it. */
static mpl_exact_verdict solve(mpl_graph_search *s, size_t row)
{
    mpl_exact_verdict verdict = MPL_EXACT_FOUND;
    size_t mark = s->trail.n, base = s->n_rows, text = s->proof != NULL ? s->proof->n : 0;
    bool more = false;

    if (!push_row(s))
        return MPL_EXACT_STOPPED;
    while (verdict == MPL_EXACT_FOUND && take_component(s, row, base)) {
        if (s->proof != NULL)
            s->proof->n = text; /* the text of a solved component proves nothing */
        more = note_component(s, row, base, more);
        verdict = solve_component(s, base);
    }
    s->n_rows = base;
    if (verdict != MPL_EXACT_FOUND)
        undo(s, mark);
    return verdict;
}

/* clique_fits() before the first placement. If the bodies are not connected, the component of the
 * clique is isolated first: only then do sizes count as rounded. */
static bool clique_fits_first(mpl_graph_search *s, uint32_t c)
{
    mpl_proof *proof = s->proof;
    bool fits;

    if (proof == NULL || !s->apart)
        return clique_fits(s, c);
    s->proof = NULL;
    fits = clique_fits(s, c);
    s->proof = proof;
    if (fits)
        return true;
    note_body(s, 'o', body_of(s, s->q->member[s->q->begin[c]]));
    return clique_fits(s, c);
}

/* Writes the cliques at the start of the text. */
static void write_sets(mpl_graph_search *s)
{
    mpl_proof_forget(s->proof);
    for (uint32_t c = 0; c < s->q->n; c++) {
        s->set[c] = (uint32_t)s->proof->n;
        for (uint32_t i = s->q->begin[c]; i < s->q->begin[c + 1]; i++)
            note(s, 'c', s->b->buffer[s->q->member[i]], s->set[c]);
    }
}

mpl_exact_verdict mpl_graph_search_run(mpl_graph_search *s)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    const mpl_bodies *b = s->b;

    s->trail.n = s->n_rows = s->n_stack = 0;
    s->nodes = s->look_at = 0;
    if (s->proof != NULL)
        write_sets(s);
    for (uint32_t i = 0; i < b->n; i++) {
        s->est[i] = b->fixed != NULL && b->fixed[i] != MPL_UNFIXED ? b->fixed[i] : 0;
        s->placed[i] = 0;
        if (s->est[i] + b->bytes[i] > s->cap) {
            note_body(s, 'z', i);
            return MPL_EXACT_FAILED;
        }
    }
    for (uint32_t c = 0; c < s->q->n; c++)
        if (!clique_fits_first(s, c))
            return MPL_EXACT_FAILED;
    if (!push_row(s))
        return MPL_EXACT_STOPPED;
    for (uint32_t i = 0; i < b->n; i++)
        mpl_bit_add(s->rows, i);
    verdict = solve(s, 0);
    return verdict;
}
