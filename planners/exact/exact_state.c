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

mpl_status mpl_exact_state_new(mpl_ctx *ctx, const mpl_exact_case *c, mpl_exact_state **out)
{
    mpl_status st = MPL_OK;
    mpl_exact_state *x = NULL;
    size_t n = (size_t)c->n, sections = (size_t)c->n_sections, longest = 0;

    MPL_TRY(mpl_new(ctx, x, 1));
    x->ctx = ctx;
    x->c = c;
    x->n_words = (uint32_t)(sections + 63) / 64;
    x->filter_slack = MPL_EXACT_FILTER_SLACK;
    x->filter_sweeps = 1;
    for (int32_t s = 0; s < c->n_sections; s++)
        if (longest < (size_t)(c->begin[s + 1] - c->begin[s]))
            longest = (size_t)(c->begin[s + 1] - c->begin[s]);
    MPL_TRY(mpl_new_each(ctx, n, x->est, x->placed));
    MPL_TRY(mpl_new_each(ctx, (size_t)c->begin[sections], x->order, x->key));
    MPL_TRY(mpl_new_each(ctx, sections, x->count, x->cross, x->rest, x->floor, x->cap));
    MPL_TRY(mpl_new_each(ctx, x->n_words, x->dirty, x->stale, x->changed));
    MPL_TRY(mpl_new(ctx, x->sums, MAX_SUM_WORDS + 2));
    MPL_TRY(mpl_new_each(ctx, longest, x->end, x->end_size));
    MPL_TRY(mpl_new(ctx, x->sorted, 2 * n));
    *out = x, x = NULL;
out:
    mpl_exact_state_free(ctx, x);
    return st;
}

void mpl_exact_state_free(mpl_ctx *ctx, mpl_exact_state *x)
{
    if (x == NULL)
        return;
    mpl_free_each(ctx, x->est, x->placed, x->order, x->key, x->count, x->cross, x->rest, x->floor,
                  x->cap, x->dirty, x->stale, x->changed, x->sums, x->end, x->end_size,
                  x->trail.step, x->sorted, x);
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

static void record(mpl_exact_state *x, int32_t id, int kind, mpl_len old)
{
    if (mpl_trail_push(x->ctx, &x->trail, (uint32_t)(id * 4 + kind), old) != MPL_OK)
        x->dead = x->no_memory = true;
}

/* Sorts the open items into x->sorted, ascending by est; returns their number. Merge sort. */
static int32_t sort_open(mpl_exact_state *x)
{
    int32_t *from = x->sorted, *to = x->sorted + x->c->n, n = 0;
    const mpl_len *est = x->est;

    for (int32_t i = 0; i < x->c->n; i++)
        if (!x->placed[i])
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
    if (from != x->sorted)
        memcpy(x->sorted, from, (size_t)n * sizeof *from);
    return n;
}

void mpl_exact_state_load(mpl_exact_state *x, const mpl_len *est, const uint8_t *placed)
{
    const mpl_exact_case *c = x->c;
    int32_t n;

    memcpy(x->est, est, (size_t)c->n * sizeof *est);
    memcpy(x->placed, placed, (size_t)c->n);
    for (int32_t s = 0; s < c->n_sections; s++) {
        x->count[s] = x->cross[s] = 0;
        x->rest[s] = x->floor[s] = 0;
        x->cap[s] = c->cap;
    }
    n = sort_open(x);
    for (int32_t k = 0; k < n; k++) {
        int32_t i = x->sorted[k];

        for (int32_t s = c->left[i]; s < c->right[i]; s++) {
            int32_t at = c->begin[s] + x->count[s]++;

            x->order[at] = i;
            x->key[at] = x->est[i];
            x->rest[s] += c->size[i];
            x->cross[s]++;
        }
        x->cross[c->right[i] - 1]--;
    }
    memset(x->changed, 0, x->n_words * sizeof *x->changed);
    memset(x->stale, 0, x->n_words * sizeof *x->stale);
    set_range(x->dirty, 0, c->n_sections);
    x->trail.n = 0;
    x->risk = MPL_LEN_MAX;
    x->dead = x->no_memory;
}

void mpl_exact_state_reset(mpl_exact_state *x)
{
    memset(x->placed, 0, (size_t)x->c->n);
    mpl_exact_state_load(x, x->c->start, x->placed);
    for (int32_t i = 0; i < x->c->n; i++)
        x->dead = x->dead || x->est[i] + x->c->size[i] > x->c->limit[i];
}

void mpl_exact_raise(mpl_exact_state *x, int32_t i, mpl_len est)
{
    const mpl_exact_case *c = x->c;

    if (c->align[i] > 1)
        est = (est + c->align[i] - 1) / c->align[i] * c->align[i];
    if (est <= x->est[i])
        return;
    record(x, i, OLD_EST, x->est[i]);
    x->est[i] = est;
    x->risk = est > x->risk ? est : x->risk;
    x->dead = x->dead || est + c->size[i] > c->limit[i];
    set_range(x->dirty, c->left[i], c->right[i]);
    set_range(x->stale, c->left[i], c->right[i]);
}

/* Moves item i behind the open items of its sections, where mpl_exact_undo finds it. */
static void leave_sections(mpl_exact_state *x, int32_t i)
{
    const mpl_exact_case *c = x->c;

    for (int32_t s = c->left[i]; s < c->right[i]; s++) {
        int32_t *order = x->order + c->begin[s], k = 0, last = --x->count[s];
        mpl_len *key = x->key + c->begin[s];

        while (order[k] != i)
            k++;
        memmove(order + k, order + k + 1, (size_t)(last - k) * sizeof *order);
        memmove(key + k, key + k + 1, (size_t)(last - k) * sizeof *key);
        order[last] = i;
        x->rest[s] -= c->size[i];
        x->cross[s] -= s + 1 < c->right[i];
    }
    set_range(x->dirty, c->left[i], c->right[i]);
    x->placed[i] = 1;
    record(x, i, OLD_PLACED, 0);
}

static void set_floor(mpl_exact_state *x, int32_t s, mpl_len floor)
{
    record(x, s, OLD_FLOOR, x->floor[s]);
    x->floor[s] = floor;
}

void mpl_exact_place(mpl_exact_state *x, int32_t i)
{
    const mpl_exact_case *c = x->c;
    mpl_len end = x->est[i] + c->size[i];
    const int32_t *first_section = x->order + c->begin[c->left[i]];

    leave_sections(x, i);
    for (int32_t s = c->left[i]; s < c->right[i]; s++) /* open items there lie above */
        set_floor(x, s, end);
    for (int32_t k = 0; k < x->count[c->left[i]]; k++)
        if (x->est[first_section[k]] < end)
            mpl_exact_raise(x, first_section[k], end);
    for (int32_t j = c->first[c->left[i] + 1]; j < c->first[c->right[i]]; j++)
        if (!x->placed[j] && x->est[j] < end)
            mpl_exact_raise(x, j, end);
}

void mpl_exact_place_top(mpl_exact_state *x, int32_t i, int32_t a, int32_t b)
{
    mpl_len top = x->cap[a] - x->c->size[i];

    if (top < x->est[i])
        x->dead = true;
    leave_sections(x, i);
    record(x, i, OLD_EST, x->est[i]);
    x->est[i] = top;
    for (int32_t s = a; s < b; s++) {
        record(x, s, OLD_CAP, x->cap[s]);
        x->cap[s] = top;
    }
    set_range(x->dirty, a, b);
    x->risk = MPL_LEN_MAX;
}

static void rejoin_sections(mpl_exact_state *x, int32_t i)
{
    const mpl_exact_case *c = x->c;

    x->placed[i] = 0;
    for (int32_t s = c->left[i]; s < c->right[i]; s++) {
        x->count[s]++;
        x->rest[s] += c->size[i];
        x->cross[s] += s + 1 < c->right[i];
    }
    set_range(x->stale, c->left[i], c->right[i]);
}

void mpl_exact_undo(mpl_exact_state *x, size_t n_trail)
{
    const mpl_exact_case *c = x->c;

    while (x->trail.n > n_trail) {
        struct mpl_trail_step t = x->trail.step[--x->trail.n];
        int32_t id = (int32_t)(t.what / 4);

        switch (t.what % 4) {
        case OLD_EST:
            x->est[id] = t.old;
            set_range(x->stale, c->left[id], c->right[id]);
            break;
        case OLD_FLOOR:
            x->floor[id] = t.old;
            break;
        case OLD_CAP:
            x->cap[id] = t.old;
            break;
        default:
            rejoin_sections(x, id);
        }
    }
    memset(x->dirty, 0, x->n_words * sizeof *x->dirty);
    memset(x->changed, 0, x->n_words * sizeof *x->changed);
    x->risk = 0;
    x->dead = x->no_memory;
}

void mpl_exact_sort(mpl_exact_state *x, int32_t s)
{
    int32_t *order = x->order + x->c->begin[s], n = x->count[s];
    mpl_len *key = x->key + x->c->begin[s];
    const mpl_len *est = x->est;
    mpl_len last = -1;

    if (!has(x->stale, s))
        return;
    mpl_bit_drop(x->stale, s);
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
    x->ticks += (uint64_t)n;
}

/* Recomputes floor[s], which never sinks here. */
static void find_floor(mpl_exact_state *x, int32_t s)
{
    const int32_t *order = x->order + x->c->begin[s];
    mpl_len floor = MPL_LEN_MAX, known = x->floor[s];
    int32_t n = x->count[s], k;

    for (k = 0; k < n && floor > known; k++)
        floor = x->est[order[k]] < floor ? x->est[order[k]] : floor;
    if (floor != known)
        set_floor(x, s, floor);
    x->ticks += (uint64_t)k + 1;
}

/* Checks the release dates of section s: for every est e, e plus the sizes of the items with est >=
 * e. At or below cap - rest all sizes fit, so only an est above that can break it. */
static bool bound_holds(mpl_exact_state *x, int32_t s)
{
    const int32_t *order = x->order + x->c->begin[s];
    const mpl_len *key = x->key + x->c->begin[s], *size = x->c->size;
    int32_t k = x->count[s];
    mpl_len cap = x->cap[s], safe = cap - x->rest[s], above = 0;

    find_floor(x, s);
    if (x->risk <= safe)
        return true;
    mpl_exact_sort(x, s);
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

static void collect_ends(mpl_exact_state *x, int32_t s, fill *f)
{
    const int32_t *order = x->order + x->c->begin[s];
    const mpl_len *key = x->key + x->c->begin[s], *size = x->c->size;

    f->n = 0;
    for (int32_t k = 0; k < x->count[s] && key[k] <= f->reach; k++) {
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

static void add_size(fill *f, mpl_len size)
{
    mpl_len top = f->top + size < f->reach - f->floor ? f->top + size : f->reach - f->floor;
    mpl_len words = size / 64, last = top / 64;
    uint32_t bits = (uint32_t)(size % 64);

    for (mpl_len w = last; w >= words; w--) {
        uint64_t low = f->bit[w - words];
        uint64_t carry = w > words && bits > 0 ? f->bit[w - words - 1] >> (64 - bits) : 0;

        f->bit[w] |= low << bits | carry;
    }
    f->top = top;
}

/* Whether some sum lies in [low, high], 0 <= high. */
static bool any_sum(const fill *f, mpl_len low, mpl_len high)
{
    low = low > 0 ? low : 0;
    for (mpl_len at = low; at <= high && at <= f->top; at = (at / 64 + 1) * 64) {
        uint64_t word = f->bit[at / 64] >> (at % 64);

        if (word != 0)
            return at + __builtin_ctzll(word) <= high;
    }
    return false;
}

static mpl_len next_sum(const fill *f, mpl_len above)
{
    for (mpl_len at = above + 1; at <= f->top; at = (at / 64 + 1) * 64) {
        uint64_t word = f->bit[at / 64] >> (at % 64);

        if (word != 0)
            return at + __builtin_ctzll(word);
    }
    return MPL_LEN_MAX;
}

/* Lowest offset >= `at` below which the possible items leave at most the slack unused. */
static mpl_len lowest_filled(fill *f, mpl_len at)
{
    for (;;) {
        mpl_len by_sum, by_end;

        while (f->n_added < f->n && f->end[f->n_added] <= at)
            add_size(f, f->size[f->n_added++]);
        if (any_sum(f, at - f->floor - f->slack, at - f->floor))
            return at;
        by_sum = f->floor + next_sum(f, at - f->floor);
        by_end = f->n_added < f->n ? f->end[f->n_added] : MPL_LEN_MAX;
        at = by_sum < by_end ? by_sum : by_end;
        if (at > f->reach)
            return f->reach + 1;
    }
}

static void filter(mpl_exact_state *x, int32_t s)
{
    const int32_t *order = x->order + x->c->begin[s];
    const mpl_len *key = x->key + x->c->begin[s];
    int32_t n = x->count[s];
    mpl_len slack = mpl_exact_slack(x, s), filled = -1;
    fill f = {.bit = x->sums, .slack = slack, .end = x->end, .size = x->end_size};

    if (n == 0 || slack > x->filter_slack)
        return;
    mpl_exact_sort(x, s);
    if (key[n - 1] <= key[0] + slack || key[n - 1] - key[0] >= MAX_SUM_WORDS * 64)
        return;
    f.floor = key[0];
    f.reach = key[n - 1];
    memset(f.bit, 0, ((size_t)(f.reach - f.floor) / 64 + 1) * sizeof *f.bit);
    f.bit[0] = 1;
    collect_ends(x, s, &f);
    for (int32_t k = 0; k < n && !x->dead; k++) {
        if (key[k] <= f.floor + slack)
            continue;
        if (key[k] > filled)
            filled = lowest_filled(&f, key[k]);
        if (filled > key[k]) {
            if (x->observer != NULL)
                x->observer(x->observed_by, s, order[k], filled);
            mpl_exact_raise(x, order[k], filled);
        }
    }
    x->ticks += (uint64_t)n + (uint64_t)(f.n_added * ((f.reach - f.floor) / 64 + 1));
}

static bool bounds_hold(mpl_exact_state *x)
{
    for (uint32_t w = 0; w < x->n_words; w++)
        while (x->dirty[w] != 0) {
            uint64_t bit = x->dirty[w] & -x->dirty[w];

            x->dirty[w] ^= bit;
            x->changed[w] |= bit;
            if (!bound_holds(x, (int32_t)(w * 64) + __builtin_ctzll(bit)))
                return false;
        }
    return true;
}

static bool filter_all(mpl_exact_state *x)
{
    for (uint32_t w = 0; w < x->n_words; w++)
        while (x->changed[w] != 0) {
            uint64_t bit = x->changed[w] & -x->changed[w];

            x->changed[w] ^= bit;
            if ((x->dirty[w] & bit) == 0)
                filter(x, (int32_t)(w * 64) + __builtin_ctzll(bit));
            if (x->dead)
                return false;
        }
    return true;
}

static bool any_dirty(const mpl_exact_state *x)
{
    uint64_t all = 0;

    for (uint32_t w = 0; w < x->n_words; w++)
        all |= x->dirty[w];
    return all != 0;
}

/* Whether counts, rests and floors match the open items. */
static bool sections_ok(const mpl_exact_state *x)
{
    const mpl_exact_case *c = x->c;

    for (int32_t s = 0; s < c->n_sections; s++) {
        int32_t n = 0;
        mpl_len rest = 0, floor = MPL_LEN_MAX;

        for (int32_t k = c->begin[s]; k < c->begin[s + 1]; k++)
            if (!x->placed[c->member[k]]) {
                n++;
                rest += c->size[c->member[k]];
                floor = x->est[c->member[k]] < floor ? x->est[c->member[k]] : floor;
            }
        if (x->count[s] != n || x->rest[s] != rest || (n > 0 && x->floor[s] > floor))
            return false;
    }
    return true;
}

bool mpl_exact_settle(mpl_exact_state *x)
{
    mpl_assert_slow(x->dead || sections_ok(x));
    if (x->dead || !bounds_hold(x) || x->dead)
        return false;
    for (uint32_t sweep = 0; x->filter_slack >= 0 && sweep < x->filter_sweeps; sweep++) {
        if (!filter_all(x))
            return false;
        if (!any_dirty(x))
            break;
        if (!bounds_hold(x))
            return false;
    }
    memset(x->changed, 0, x->n_words * sizeof *x->changed);
    x->risk = 0;
    return true;
}
