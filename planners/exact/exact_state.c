/* exact_state.c -- lower bounds of the offsets, their propagation, and the way back. See
 * exact_priv.h.
 *
 * Idea     SEARCH.md, section 4: lower bounds for open items. Release dates: in each section and
 *          for each est e, the items with est >= e need their sizes above e. Filling: where a
 *          section may waste next to nothing, an offset is a sum of sizes, up to the waste.
 * Source   the bounds of M. D. Moffitt, "MiniMalloc", 2023, in each section and for every est; sums
 *          of sizes: this project */
#include "planners/exact/exact_priv.h"

#define MAX_SUM_WORDS 1024 /* reach of the filter: 65,536 units above the floor */

enum { OLD_EST, OLD_FLOOR, OLD_CAP, OLD_PLACED };

mpl_status mpl_exact_state_new(mpl_ctx *ctx, const mpl_exact_case *exact_case,
                               mpl_exact_state **out)
{
    mpl_status st = MPL_OK;
    mpl_exact_state *state = NULL;
    size_t n = (size_t)exact_case->n, sections = (size_t)exact_case->n_sections, longest = 0;

    MPL_TRY(mpl_new(ctx, state, 1));
    state->ctx = ctx;
    state->exact_case = exact_case;
    state->n_words = (uint32_t)(sections + 63) / 64;
    state->filter_slack = MPL_EXACT_FILTER_SLACK;
    state->filter_sweeps = 1;
    for (int32_t s = 0; s < exact_case->n_sections; s++)
        if (longest < (size_t)(exact_case->begin[s + 1] - exact_case->begin[s]))
            longest = (size_t)(exact_case->begin[s + 1] - exact_case->begin[s]);
    MPL_TRY(mpl_new_each(ctx, n, state->est, state->placed));
    MPL_TRY(mpl_new_each(ctx, (size_t)exact_case->begin[sections], state->order, state->key));
    MPL_TRY(mpl_new_each(ctx, sections, state->count, state->cross, state->rest, state->floor,
                         state->cap));
    MPL_TRY(mpl_new_each(ctx, state->n_words, state->dirty, state->stale, state->changed));
    MPL_TRY(mpl_new(ctx, state->sums, MAX_SUM_WORDS + 2));
    MPL_TRY(mpl_new_each(ctx, longest, state->end, state->end_size));
    MPL_TRY(mpl_new(ctx, state->sorted, 2 * n));
    *out = state, state = NULL;
out:
    mpl_exact_state_free(ctx, state);
    return st;
}

void mpl_exact_state_free(mpl_ctx *ctx, mpl_exact_state *state)
{
    if (state == NULL)
        return;
    mpl_free_each(ctx, state->est, state->placed, state->order, state->key, state->count,
                  state->cross, state->rest, state->floor, state->cap, state->dirty, state->stale,
                  state->changed, state->sums, state->end, state->end_size, state->trail.step,
                  state->sorted, state);
}

/* Adds sections [a, b) to the set. */
static void set_range(uint64_t *set, int32_t a, int32_t b)
{
    uint32_t first = (uint32_t)a / 64, last = (uint32_t)(b - 1) / 64;
    uint64_t low = ~UINT64_C(0) << (a % 64), high = ~UINT64_C(0) >> (63 - (b - 1) % 64);

    if (first == last) {
        set[first] |= low & high;
        return;
    }
    set[first] |= low;
    while (++first < last)
        set[first] = ~UINT64_C(0);
    set[last] |= high;
}

static bool has(const uint64_t *set, int32_t s)
{
    return mpl_bit_has(set, s);
}

static void record(mpl_exact_state *state, int32_t id, int kind, mpl_len old)
{
    if (mpl_trail_push(state->ctx, &state->trail, (uint32_t)(id * 4 + kind), old) != MPL_OK)
        state->dead = state->no_memory = true;
}

/* Sorts the open items into state->sorted, ascending by est; returns their number. Merge sort. */
static int32_t sort_open(mpl_exact_state *state)
{
    int32_t *from = state->sorted, *to = state->sorted + state->exact_case->n, n = 0;
    const mpl_len *est = state->est;

    for (int32_t i = 0; i < state->exact_case->n; i++)
        if (!state->placed[i])
            from[n++] = i;
    for (int32_t run = 1; run < n; run *= 2) {
        int32_t *swap = from;

        for (int32_t begin = 0; begin < n; begin += 2 * run) {
            int32_t middle = begin + run < n ? begin + run : n,
                    end = middle + run < n ? middle + run : n;
            int32_t a = begin, b = middle;

            for (int32_t k = begin; k < end; k++)
                to[k] = b == end || (a < middle && est[from[a]] <= est[from[b]]) ? from[a++]
                                                                                 : from[b++];
        }
        from = to;
        to = swap;
    }
    if (from != state->sorted)
        memcpy(state->sorted, from, (size_t)n * sizeof *from);
    return n;
}

void mpl_exact_state_load(mpl_exact_state *state, const mpl_len *est, const uint8_t *placed)
{
    const mpl_exact_case *exact_case = state->exact_case;
    int32_t n;

    memcpy(state->est, est, (size_t)exact_case->n * sizeof *est);
    memcpy(state->placed, placed, (size_t)exact_case->n);
    for (int32_t s = 0; s < exact_case->n_sections; s++) {
        state->count[s] = state->cross[s] = 0;
        state->rest[s] = state->floor[s] = 0;
        state->cap[s] = exact_case->cap;
    }
    n = sort_open(state);
    for (int32_t k = 0; k < n; k++) {
        int32_t i = state->sorted[k];

        for (int32_t s = exact_case->left[i]; s < exact_case->right[i]; s++) {
            int32_t at = exact_case->begin[s] + state->count[s]++;

            state->order[at] = i;
            state->key[at] = state->est[i];
            state->rest[s] += exact_case->size[i];
            state->cross[s]++;
        }
        state->cross[exact_case->right[i] - 1]--;
    }
    memset(state->changed, 0, state->n_words * sizeof *state->changed);
    memset(state->stale, 0, state->n_words * sizeof *state->stale);
    set_range(state->dirty, 0, exact_case->n_sections);
    state->trail.n = 0;
    state->risk = MPL_LEN_MAX;
    state->dead = state->no_memory;
}

void mpl_exact_state_reset(mpl_exact_state *state)
{
    memset(state->placed, 0, (size_t)state->exact_case->n);
    mpl_exact_state_load(state, state->exact_case->start, state->placed);
    for (int32_t i = 0; i < state->exact_case->n; i++)
        state->dead =
            state->dead || state->est[i] + state->exact_case->size[i] > state->exact_case->limit[i];
}

void mpl_exact_raise(mpl_exact_state *state, int32_t i, mpl_len est)
{
    const mpl_exact_case *exact_case = state->exact_case;

    if (exact_case->align[i] > 1)
        est = (est + exact_case->align[i] - 1) / exact_case->align[i] * exact_case->align[i];
    if (est <= state->est[i])
        return;
    record(state, i, OLD_EST, state->est[i]);
    state->est[i] = est;
    state->risk = est > state->risk ? est : state->risk;
    state->dead = state->dead || est + exact_case->size[i] > exact_case->limit[i];
    set_range(state->dirty, exact_case->left[i], exact_case->right[i]);
    set_range(state->stale, exact_case->left[i], exact_case->right[i]);
}

/* Moves item i behind the open items of its sections, where mpl_exact_undo finds it. */
static void leave_sections(mpl_exact_state *state, int32_t i)
{
    const mpl_exact_case *exact_case = state->exact_case;

    for (int32_t s = exact_case->left[i]; s < exact_case->right[i]; s++) {
        int32_t *order = state->order + exact_case->begin[s], k = 0, last = --state->count[s];
        mpl_len *key = state->key + exact_case->begin[s];

        while (order[k] != i)
            k++;
        memmove(order + k, order + k + 1, (size_t)(last - k) * sizeof *order);
        memmove(key + k, key + k + 1, (size_t)(last - k) * sizeof *key);
        order[last] = i;
        state->rest[s] -= exact_case->size[i];
        state->cross[s] -= s + 1 < exact_case->right[i];
    }
    set_range(state->dirty, exact_case->left[i], exact_case->right[i]);
    state->placed[i] = 1;
    record(state, i, OLD_PLACED, 0);
}

static void set_floor(mpl_exact_state *state, int32_t s, mpl_len floor)
{
    record(state, s, OLD_FLOOR, state->floor[s]);
    state->floor[s] = floor;
}

void mpl_exact_place(mpl_exact_state *state, int32_t i)
{
    const mpl_exact_case *exact_case = state->exact_case;
    mpl_len end = state->est[i] + exact_case->size[i];
    const int32_t *first_section = state->order + exact_case->begin[exact_case->left[i]];

    leave_sections(state, i);
    for (int32_t s = exact_case->left[i]; s < exact_case->right[i]; s++) /* open items there lie
                                                                            above */
        set_floor(state, s, end);
    for (int32_t k = 0; k < state->count[exact_case->left[i]]; k++)
        if (state->est[first_section[k]] < end)
            mpl_exact_raise(state, first_section[k], end);
    for (int32_t j = exact_case->first[exact_case->left[i] + 1];
         j < exact_case->first[exact_case->right[i]]; j++)
        if (!state->placed[j] && state->est[j] < end)
            mpl_exact_raise(state, j, end);
}

void mpl_exact_place_top(mpl_exact_state *state, int32_t i, int32_t a, int32_t b)
{
    mpl_len top = state->cap[a] - state->exact_case->size[i];

    if (top < state->est[i])
        state->dead = true;
    leave_sections(state, i);
    record(state, i, OLD_EST, state->est[i]);
    state->est[i] = top;
    for (int32_t s = a; s < b; s++) {
        record(state, s, OLD_CAP, state->cap[s]);
        state->cap[s] = top;
    }
    set_range(state->dirty, a, b);
    state->risk = MPL_LEN_MAX;
}

static void rejoin_sections(mpl_exact_state *state, int32_t i)
{
    const mpl_exact_case *exact_case = state->exact_case;

    state->placed[i] = 0;
    for (int32_t s = exact_case->left[i]; s < exact_case->right[i]; s++) {
        state->count[s]++;
        state->rest[s] += exact_case->size[i];
        state->cross[s] += s + 1 < exact_case->right[i];
    }
    set_range(state->stale, exact_case->left[i], exact_case->right[i]);
}

void mpl_exact_undo(mpl_exact_state *state, size_t n_trail)
{
    const mpl_exact_case *exact_case = state->exact_case;

    while (state->trail.n > n_trail) {
        struct mpl_trail_step t = state->trail.step[--state->trail.n];
        int32_t id = (int32_t)(t.what / 4);

        switch (t.what % 4) {
        case OLD_EST:
            state->est[id] = t.old;
            set_range(state->stale, exact_case->left[id], exact_case->right[id]);
            break;
        case OLD_FLOOR:
            state->floor[id] = t.old;
            break;
        case OLD_CAP:
            state->cap[id] = t.old;
            break;
        default:
            rejoin_sections(state, id);
        }
    }
    memset(state->dirty, 0, state->n_words * sizeof *state->dirty);
    memset(state->changed, 0, state->n_words * sizeof *state->changed);
    state->risk = 0;
    state->dead = state->no_memory;
}

void mpl_exact_sort(mpl_exact_state *state, int32_t s)
{
    int32_t *order = state->order + state->exact_case->begin[s], n = state->count[s];
    mpl_len *key = state->key + state->exact_case->begin[s];
    const mpl_len *est = state->est;
    mpl_len last = -1;

    if (!has(state->stale, s))
        return;
    mpl_bit_drop(state->stale, s);
    for (int32_t k = 0; k < n; k++) {
        int32_t i = order[k], at = k;
        mpl_len e = est[i];

        if (e >= last) {
            key[k] = last = e;
            continue;
        }
        for (; at > 0 && key[at - 1] > e; at--) {
            key[at] = key[at - 1];
            order[at] = order[at - 1];
        }
        key[at] = e;
        order[at] = i;
    }
    state->ticks += (uint64_t)n;
}

/* Recomputes floor[s], which never sinks here. */
static void find_floor(mpl_exact_state *state, int32_t s)
{
    const int32_t *order = state->order + state->exact_case->begin[s];
    mpl_len floor = MPL_LEN_MAX, known = state->floor[s];
    int32_t n = state->count[s], k;

    for (k = 0; k < n && floor > known; k++)
        floor = state->est[order[k]] < floor ? state->est[order[k]] : floor;
    if (floor != known)
        set_floor(state, s, floor);
    state->ticks += (uint64_t)k + 1;
}

/* Checks the release dates of section s: for every est e, e plus the sizes of the items with est >=
 * e. At or below cap - rest all sizes fit, so only an est above that can break it. */
static bool bound_holds(mpl_exact_state *state, int32_t s)
{
    const int32_t *order = state->order + state->exact_case->begin[s];
    const mpl_len *key = state->key + state->exact_case->begin[s], *size = state->exact_case->size;
    int32_t k = state->count[s];
    mpl_len cap = state->cap[s], safe = cap - state->rest[s], above = 0;

    find_floor(state, s);
    if (state->risk <= safe)
        return true;
    mpl_exact_sort(state, s);
    while (k-- > 0 && key[k] > safe) {
        above += size[order[k]];
        if (key[k] + above > cap)
            return false;
    }
    return true;
}

/* ---- filling ---- */

/* Bits, from the floor on: sums of sizes of items of a section that end at or below an offset. */
typedef struct fill {
    uint64_t *bit;
    mpl_len floor, slack, reach; /* offsets up to `reach` can be judged */
    mpl_len top;                 /* largest sum so far */
    mpl_len *end, *size;         /* items that end within reach, by end */
    int32_t n, n_added;
} fill;

static void collect_ends(mpl_exact_state *state, int32_t s, fill *f)
{
    const int32_t *order = state->order + state->exact_case->begin[s];
    const mpl_len *key = state->key + state->exact_case->begin[s], *size = state->exact_case->size;

    f->n = 0;
    for (int32_t k = 0; k < state->count[s] && key[k] <= f->reach; k++) {
        mpl_len end = key[k] + size[order[k]];
        int32_t at = f->n;

        if (end > f->reach)
            continue;
        for (; at > 0 && f->end[at - 1] > end; at--) {
            f->end[at] = f->end[at - 1];
            f->size[at] = f->size[at - 1];
        }
        f->end[at] = end;
        f->size[at] = size[order[k]];
        f->n++;
    }
}

static void add_size(fill *self, mpl_len size)
{
    mpl_len top =
        self->top + size < self->reach - self->floor ? self->top + size : self->reach - self->floor;
    mpl_len words = size / 64, last = top / 64;
    uint32_t bits = (uint32_t)(size % 64);

    for (mpl_len w = last; w >= words; w--) {
        uint64_t low = self->bit[w - words];
        uint64_t carry = w > words && bits > 0 ? self->bit[w - words - 1] >> (64 - bits) : 0;

        self->bit[w] |= low << bits | carry;
    }
    self->top = top;
}

/* Whether some sum lies in [low, high], 0 <= high. */
static bool any_sum(const fill *self, mpl_len low, mpl_len high)
{
    low = low > 0 ? low : 0;
    for (mpl_len at = low; at <= high && at <= self->top; at = (at / 64 + 1) * 64) {
        uint64_t word = self->bit[at / 64] >> (at % 64);

        if (word != 0)
            return at + __builtin_ctzll(word) <= high;
    }
    return false;
}

static mpl_len next_sum(const fill *self, mpl_len above)
{
    for (mpl_len at = above + 1; at <= self->top; at = (at / 64 + 1) * 64) {
        uint64_t word = self->bit[at / 64] >> (at % 64);

        if (word != 0)
            return at + __builtin_ctzll(word);
    }
    return MPL_LEN_MAX;
}

/* Lowest offset >= `at` below which the possible items leave at most the slack unused. */
static mpl_len lowest_filled(fill *self, mpl_len at)
{
    for (;;) {
        mpl_len by_sum, by_end;

        while (self->n_added < self->n && self->end[self->n_added] <= at)
            add_size(self, self->size[self->n_added++]);
        if (any_sum(self, at - self->floor - self->slack, at - self->floor))
            return at;
        by_sum = self->floor + next_sum(self, at - self->floor);
        by_end = self->n_added < self->n ? self->end[self->n_added] : MPL_LEN_MAX;
        at = by_sum < by_end ? by_sum : by_end;
        if (at > self->reach)
            return self->reach + 1;
    }
}

static void filter(mpl_exact_state *state, int32_t s)
{
    const int32_t *order = state->order + state->exact_case->begin[s];
    const mpl_len *key = state->key + state->exact_case->begin[s];
    int32_t n = state->count[s];
    mpl_len slack = mpl_exact_slack(state, s), filled = -1;
    fill f = {.bit = state->sums, .slack = slack, .end = state->end, .size = state->end_size};

    if (n == 0 || slack > state->filter_slack)
        return;
    mpl_exact_sort(state, s);
    if (key[n - 1] <= key[0] + slack || key[n - 1] - key[0] >= MAX_SUM_WORDS * 64)
        return;
    f.floor = key[0];
    f.reach = key[n - 1];
    memset(f.bit, 0, ((size_t)(f.reach - f.floor) / 64 + 1) * sizeof *f.bit);
    f.bit[0] = 1;
    collect_ends(state, s, &f);
    for (int32_t k = 0; k < n && !state->dead; k++) {
        if (key[k] <= f.floor + slack)
            continue;
        if (key[k] > filled)
            filled = lowest_filled(&f, key[k]);
        if (filled > key[k]) {
            if (state->observer != NULL)
                state->observer(state->observed_by, s, order[k], filled);
            mpl_exact_raise(state, order[k], filled);
        }
    }
    state->ticks += (uint64_t)n + (uint64_t)(f.n_added * ((f.reach - f.floor) / 64 + 1));
}

static bool bounds_hold(mpl_exact_state *state)
{
    for (uint32_t w = 0; w < state->n_words; w++)
        while (state->dirty[w] != 0) {
            uint64_t bit = state->dirty[w] & -state->dirty[w];

            state->dirty[w] ^= bit;
            state->changed[w] |= bit;
            if (!bound_holds(state, (int32_t)(w * 64) + __builtin_ctzll(bit)))
                return false;
        }
    return true;
}

static bool filter_all(mpl_exact_state *state)
{
    for (uint32_t w = 0; w < state->n_words; w++)
        while (state->changed[w] != 0) {
            uint64_t bit = state->changed[w] & -state->changed[w];

            state->changed[w] ^= bit;
            if ((state->dirty[w] & bit) == 0)
                filter(state, (int32_t)(w * 64) + __builtin_ctzll(bit));
            if (state->dead)
                return false;
        }
    return true;
}

static bool any_dirty(const mpl_exact_state *state)
{
    uint64_t all = 0;

    for (uint32_t w = 0; w < state->n_words; w++)
        all |= state->dirty[w];
    return all != 0;
}

/* Whether counts, rests and floors match the open items. */
static bool sections_ok(const mpl_exact_state *state)
{
    const mpl_exact_case *exact_case = state->exact_case;

    for (int32_t s = 0; s < exact_case->n_sections; s++) {
        int32_t n = 0;
        mpl_len rest = 0, floor = MPL_LEN_MAX;

        for (int32_t k = exact_case->begin[s]; k < exact_case->begin[s + 1]; k++)
            if (!state->placed[exact_case->member[k]]) {
                n++;
                rest += exact_case->size[exact_case->member[k]];
                floor = state->est[exact_case->member[k]] < floor
                            ? state->est[exact_case->member[k]]
                            : floor;
            }
        if (state->count[s] != n || state->rest[s] != rest || (n > 0 && state->floor[s] > floor))
            return false;
    }
    return true;
}

bool mpl_exact_settle(mpl_exact_state *state)
{
    mpl_assert_slow(state->dead || sections_ok(state));
    if (state->dead || !bounds_hold(state) || state->dead)
        return false;
    for (uint32_t sweep = 0; state->filter_slack >= 0 && sweep < state->filter_sweeps; sweep++) {
        if (!filter_all(state))
            return false;
        if (!any_dirty(state))
            break;
        if (!bounds_hold(state))
            return false;
    }
    memset(state->changed, 0, state->n_words * sizeof *state->changed);
    state->risk = 0;
    return true;
}
