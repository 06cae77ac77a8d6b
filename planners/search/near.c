/* near.c -- keeps the offsets of an older plan: as few buffers as possible lie elsewhere, within a
 * few per cent of what a plan from nothing needs.
 *
 * Idea     Buffers of the same name and pool keep their offsets where they fit. What is new, larger
 *          or in the way takes a gap among them, or the place that drives out the fewest; last,
 *          what was driven out returns where its place is free.
 * Source   this project
 * Cost     O(n log n + conflicts) for a few changes; a driven-out buffer costs the square of its
 *          conflicts. complete=1: up to 16 buffers, sets of moved ones by number, each by the exact
 *          search.
 * Limits   A family moves as a whole buffer. Within the limit, not the least bytes. */
#include <stdlib.h>

#include "planners/exact/exact.h"
#include "planners/place/placement.h"
#include "planners/place/sort.h"

enum { COMPLETE_MOST = 16, COMPLETE_TICKS = 200000 };

extern const mpl_planner mpl_planner_greedy_size;

/* Where a buffer lies. */
typedef struct lying {
    uint64_t from, end;
    mpl_buffer id;
    uint32_t death;
} lying;

static bool is_across(const lying *self, uint64_t from, uint64_t end)
{
    return self->from < end && from < self->end;
}

typedef struct nearer {
    mpl_run *run;
    const mpl_problem *p;
    uint64_t *old;    /* [n] offset in the older plan, MPL_UNFIXED: none that may be kept */
    uint64_t *at;     /* [n] offset, MPL_UNFIXED: not placed */
    uint64_t *limit;  /* [n_pools] */
    mpl_buffer *wait; /* [n_wait] to be placed, first come first served */
    uint8_t *moved;   /* [n] was driven out, stays where it comes to lie */
    uint32_t n_wait, n_done;
    uint32_t *clash_begin; /* [n + 1] into clash: buffers in the way of a wanted offset */
    mpl_buffer *clash;
    lying *rival; /* [n_rivals] what lies somewhere and conflicts with the buffer that is placed */
    uint32_t n_rivals;
} nearer;

typedef struct named {
    const char *name;
    uint32_t pool;
    mpl_buffer id;
} named;

static int by_name(const void *left, const void *right)
{
    const named *x = left, *y = right;
    int order = strcmp(x->name, y->name);

    if (order != 0)
        return order;
    if (x->pool != y->pool)
        return x->pool < y->pool ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static mpl_status sorted_names(mpl_ctx *ctx, const mpl_problem *p, named **list)
{
    MPL_PASS(mpl_new(ctx, *list, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        (*list)[b] = (named){p->buffer_name != NULL ? p->buffer_name[b] : "", p->pool[b], b};
    qsort(*list, p->n, sizeof **list, by_name);
    return MPL_OK;
}

/* Takes over the offsets of buffers of the same name; lists without names go by id. */
static mpl_status take_old(nearer *self, const mpl_problem *q, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    named *mine = NULL, *theirs = NULL;

    if (p->buffer_name == NULL || q->buffer_name == NULL) {
        for (mpl_buffer b = 0; b < p->n && b < q->n; b++)
            self->old[b] = p->pool[b] == q->pool[b] ? plan->offset[b] : MPL_UNFIXED;
        return MPL_OK;
    }
    MPL_TRY(sorted_names(self->run->ctx, p, &mine));
    MPL_TRY(sorted_names(self->run->ctx, q, &theirs));
    for (uint32_t i = 0, k = 0; i < p->n && k < q->n;) {
        int order = strcmp(mine[i].name, theirs[k].name);

        if (order == 0 && mine[i].pool == theirs[k].pool)
            self->old[mine[i].id] = plan->offset[theirs[k].id];
        i += order <= 0;
        k += order >= 0;
    }
out:
    mpl_free_each(self->run->ctx, mine, theirs);
    return st;
}

static bool may_share(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if ((p->in_place_in[i] == a && p->in_place_out[i] == b) ||
            (p->in_place_in[i] == b && p->in_place_out[i] == a))
            return true;
    return false;
}

/* Whether b at offset `at` would overlap `other` at `from`, in memory and time. */
static bool overlaps(const mpl_problem *p, mpl_buffer b, uint64_t at, mpl_buffer other,
                     uint64_t from)
{
    return from < at + p->bytes[b] && at < from + p->bytes[other] && mpl_conflict(p, b, other) &&
           !(from == at && may_share(p, b, other));
}

/* The same, where `other` lies. */
static bool meets(const nearer *self, mpl_buffer b, uint64_t at, mpl_buffer other)
{
    return other != b && self->at[other] != MPL_UNFIXED &&
           overlaps(self->p, b, at, other, self->at[other]);
}

/* Whether b may lie at `at`: aligned, and within the limit. */
static bool is_within(const nearer *self, mpl_buffer b, uint64_t at)
{
    uint64_t end;

    return at % self->p->align[b] == 0 && mpl_add_bytes(at, self->p->bytes[b], &end) &&
           end <= self->limit[self->p->pool[b]];
}

static bool is_fixed(const mpl_problem *p, mpl_buffer b)
{
    return p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
}

/* ---- buffers in the way at the wanted offsets ---- */

/* The offset wanted for b: its fixed one, or else its old one. */
static uint64_t wanted(const nearer *self, mpl_buffer b)
{
    return is_fixed(self->p, b) ? self->p->fixed[b] : self->old[b];
}

typedef struct pair {
    mpl_buffer a, b;
} pair;

/* clash lists both members of each pair. */
static mpl_status both_ways(nearer *self, const pair *of, size_t n)
{
    uint32_t *begin = self->clash_begin;

    if (n > UINT32_MAX / 2)
        return MPL_REFUSE(self->run->ctx,
                          "more than 2^31 pairs of buffers are in each other's way");
    MPL_PASS(mpl_new(self->run->ctx, self->clash, 2 * n));
    for (size_t i = 0; i < n; i++)
        begin[of[i].a]++, begin[of[i].b]++;
    for (uint32_t b = 0; b < self->p->n; b++)
        begin[b + 1] += begin[b];
    for (size_t i = 0; i < n; i++)
        self->clash[--begin[of[i].a]] = of[i].b, self->clash[--begin[of[i].b]] = of[i].a;
    return MPL_OK;
}

/* Finds the pairs in order of birth, each buffer among those that have not died; under parallel
 * among all. */
static mpl_status list_clashes(nearer *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    mpl_buffer *order = NULL;
    lying *alive = NULL;
    pair *found = NULL;
    uint64_t *key = NULL;
    size_t n_found = 0, cap = 0;
    uint32_t n_alive = 0;

    MPL_TRY(mpl_new_each(self->run->ctx, p->n, order, alive, key));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = p->before != NULL ? 0 : p->birth[b];
    MPL_TRY(mpl_sort_ids(self->run->ctx, p->n, order, key));
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = order[i];
        uint64_t at = wanted(self, b), end = at + p->bytes[b];
        uint32_t birth = p->before != NULL ? 0 : p->birth[b];

        if (at == MPL_UNFIXED)
            continue;
        MPL_TRY(mpl_reserve(self->run->ctx, found, cap, n_found + n_alive));
        for (uint32_t k = 0; k < n_alive;) {
            const lying *other = &alive[k];

            if (other->death <= birth) {
                alive[k] = alive[--n_alive];
                continue;
            }
            if (is_across(other, at, end) && overlaps(p, b, at, other->id, other->from))
                found[n_found++] = (pair){b, other->id};
            k++;
        }
        alive[n_alive++] = (lying){at, end, b, p->before != NULL ? UINT32_MAX : p->death[b]};
    }
    MPL_TRY(both_ways(self, found, n_found));
out:
    mpl_free_each(self->run->ctx, order, alive, key, found);
    return st;
}

/* How many buffers b at offset `at` displaces, and their bytes; UINT32_MAX if they are more than
 * `most`, or one of them must not move. */
static uint32_t driven_out(const nearer *self, mpl_buffer b, uint64_t at, uint32_t most,
                           uint64_t *bytes)
{
    uint64_t end = at + self->p->bytes[b];
    uint32_t n = 0;

    *bytes = 0;
    for (const lying *other = self->rival; other < self->rival + self->n_rivals; other++) {
        if (!is_across(other, at, end) || (other->from == at && may_share(self->p, b, other->id)))
            continue;
        if (n == most || self->moved[other->id] || is_fixed(self->p, other->id))
            return UINT32_MAX;
        n++;
        *bytes += other->end - other->from;
    }
    return n;
}

/* Chooses the offset for b that drives out the fewest, then the fewest bytes, then the lowest;
 * false: there is none within the limit. Candidates: 0, ends of conflicting buffers, their starts
 * less b's bytes. */
static bool choose(const nearer *self, mpl_buffer b, uint64_t *chosen)
{
    const mpl_problem *p = self->p;
    uint32_t fewest = UINT32_MAX;
    uint64_t least = 0;

    for (uint32_t i = 0; i <= self->n_rivals; i++)
        for (int side = 0; side < 3; side++) {
            uint64_t at = 0, bytes;
            uint32_t n;

            if (i < self->n_rivals) {
                lying other = self->rival[i];

                at = side == 0 ? other.end : other.from - (side == 2 ? p->bytes[b] : 0);
                if (side == 2 && other.from < p->bytes[b])
                    continue;
                if (side == 2)
                    at -= at % p->align[b];
                else if (!mpl_align_bytes(at, p->align[b], &at))
                    continue;
            }
            if (!is_within(self, b, at) || (fewest == 0 && at >= *chosen))
                continue;
            n = driven_out(self, b, at, fewest, &bytes);
            self->run->ticks += self->n_rivals;
            if (n < fewest || (n == fewest && n != UINT32_MAX &&
                               (bytes < least || (bytes == least && at < *chosen)))) {
                fewest = n, least = bytes, *chosen = at;
            }
        }
    return fewest != UINT32_MAX;
}

/* Places the waiting buffers, and those that they displace; false: one finds no place. Each buffer
 * is displaced at most once, so this ends. */
static bool place_waiting(nearer *self)
{
    for (; self->n_done < self->n_wait; self->n_done++) {
        mpl_buffer b = self->wait[self->n_done];
        uint64_t at = 0;

        self->n_rivals = 0;
        for (mpl_buffer other = 0; other < self->p->n; other++)
            if (self->at[other] != MPL_UNFIXED && mpl_conflict(self->p, b, other))
                self->rival[self->n_rivals++] =
                    (lying){self->at[other], self->at[other] + self->p->bytes[other], other, 0};
        if (!choose(self, b, &at))
            return false;
        for (uint32_t i = 0; i < self->n_rivals; i++) {
            mpl_buffer other = self->rival[i].id;

            if (!meets(self, b, at, other))
                continue;
            self->at[other] = MPL_UNFIXED;
            self->moved[other] = 1;
            self->wait[self->n_wait++] = other;
        }
        self->at[b] = at;
        self->moved[b] = 1;
    }
    return true;
}

/* Puts back what was moved and whose old place is free, until nothing changes. */
static void put_back(nearer *self)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (mpl_buffer b = 0; b < self->p->n; b++) {
            bool is_free = self->old[b] != MPL_UNFIXED && self->at[b] != self->old[b] &&
                           !is_fixed(self->p, b) && is_within(self, b, self->old[b]);

            for (mpl_buffer other = 0; is_free && other < self->p->n; other++)
                is_free = !meets(self, b, self->old[b], other);
            if (is_free)
                self->at[b] = self->old[b], changed = true;
        }
    }
}

/* Keeps old offsets, largest buffers first, where nothing kept is in the way; the rest waits. */
static mpl_status keep(nearer *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    mpl_buffer *order = NULL;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new_each(self->run->ctx, p->n, order, key));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - p->bytes[b];
    MPL_TRY(mpl_sort_ids(self->run->ctx, p->n, order, key));
    for (int turn = 0; turn < 2; turn++) /* what must lie at an offset goes first */
        for (uint32_t i = 0; i < p->n; i++) {
            mpl_buffer b = order[i];
            uint64_t at = wanted(self, b);
            bool fits = at != MPL_UNFIXED && is_within(self, b, at);

            if (is_fixed(p, b) != (turn == 0))
                continue;
            for (uint32_t k = self->clash_begin[b];
                 turn > 0 && fits && k < self->clash_begin[b + 1]; k++)
                fits = self->at[self->clash[k]] == MPL_UNFIXED;
            if (fits || turn == 0)
                self->at[b] = at;
            else
                self->wait[self->n_wait++] = b;
        }
out:
    mpl_free_each(self->run->ctx, order, key);
    return st;
}

static uint32_t count_moved(const nearer *self, const uint64_t *offset)
{
    uint32_t n = 0;

    for (mpl_buffer b = 0; b < self->p->n; b++)
        n += self->old[b] != MPL_UNFIXED && offset[b] != self->old[b];
    return n;
}

/* Whether a plan exists in which all but the buffers of `set` lie where they lay; writes it. */
static mpl_status try_set(const nearer *self, uint32_t set, uint64_t *fixed, mpl_plan *out,
                          bool *found)
{
    mpl_problem q = *self->p; /* borrows all but what is changed */
    mpl_run run = *self->run;
    mpl_plan *plan = NULL;
    mpl_exact_options options = {0};
    mpl_status st;

    *found = false;
    for (mpl_buffer b = 0; b < q.n; b++) {
        bool stays = self->old[b] != MPL_UNFIXED && ((set >> b) & 1) == 0;

        fixed[b] = is_fixed(self->p, b) ? self->p->fixed[b] : stays ? self->old[b] : MPL_UNFIXED;
        if (fixed[b] != MPL_UNFIXED && !is_within(self, b, fixed[b]))
            return MPL_OK;
        for (mpl_buffer a = 0; a < b && fixed[b] != MPL_UNFIXED; a++)
            if (fixed[a] != MPL_UNFIXED && mpl_conflict(self->p, a, b) &&
                fixed[a] < fixed[b] + q.bytes[b] && fixed[b] < fixed[a] + q.bytes[a] &&
                !(fixed[a] == fixed[b] && may_share(self->p, a, b)))
                return MPL_OK;
    }
    q.fixed = fixed;
    q.pool_capacity = self->limit;
    run.budget_ticks = COMPLETE_TICKS;
    run.start_offsets = NULL;
    MPL_PASS(mpl_plan_new(run.ctx, &q, &plan));
    st = mpl_exact_plan(&run, &q, &options, plan);
    *found = st == MPL_OK && plan->claim != MPL_INFEASIBLE;
    for (uint32_t k = 0; *found && k < q.n_pools; k++)
        *found = mpl_pool_height(&q, k, plan->offset) <= self->limit[k];
    for (mpl_buffer b = 0; *found && b < q.n; b++)
        *found = fixed[b] == MPL_UNFIXED || plan->offset[b] == fixed[b];
    if (*found)
        memcpy(out->offset, plan->offset, q.n * sizeof *out->offset);
    mpl_plan_free(run.ctx, plan);
    return st == MPL_ELIMIT ? MPL_OK : st;
}

/* Tries sets of moved buffers that are smaller than that of out, by number, then as numbers. */
static mpl_status search_sets(nearer *self, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    uint64_t *fixed = NULL;
    uint32_t most = count_moved(self, out->offset), n = self->p->n;
    bool found = false;

    MPL_TRY(mpl_new(self->run->ctx, fixed, n));
    for (uint32_t size = 0; size < most && !found; size++)
        for (uint32_t set = 0; set < (1u << n) && !found; set++)
            if ((uint32_t)__builtin_popcount(set) == size)
                MPL_TRY(try_set(self, set, fixed, out, &found));
out:
    mpl_free(self->run->ctx, fixed);
    return st;
}

/* The limit of each pool: `most` hundredths of a per cent above the plan in out, and no more than
 * the capacity. */
static void set_limits(nearer *self, const mpl_plan *out, uint64_t most)
{
    for (uint32_t k = 0; k < self->p->n_pools; k++) {
        uint64_t height = mpl_pool_height(self->p, k, out->offset), more;

        more = height / 10000 * most + height % 10000 * most / 10000;
        self->limit[k] = mpl_min_u64(self->p->pool_capacity[k], height + more);
    }
}

static mpl_status read_old(nearer *self, const char *path)
{
    mpl_status st = MPL_OK;
    mpl_plan_file file = {0};

    for (mpl_buffer b = 0; b < self->p->n; b++)
        self->old[b] = self->at[b] = MPL_UNFIXED;
    if (path == NULL)
        return MPL_OK;
    MPL_TRY(mpl_plan_read(self->run->ctx, path, &file));
    MPL_TRY(take_old(self, file.problem, file.plan));
out:
    mpl_plan_file_fini(self->run->ctx, &file);
    return st;
}

/* Writes the plan that keeps old offsets over the one in out, unless something finds no place. */
static mpl_status plan_near(nearer *self, mpl_plan *out)
{
    const char *complete = mpl_run_param(self->run, "complete");
    int64_t most;

    MPL_PASS(mpl_run_param_int(self->run, "most", 0, 10000, 100, &most));
    set_limits(self, out, (uint64_t)most);
    MPL_PASS(list_clashes(self));
    MPL_PASS(keep(self));
    if (place_waiting(self)) {
        put_back(self);
        memcpy(out->offset, self->at, self->p->n * sizeof *self->at);
    }
    if (complete != NULL && strcmp(complete, "1") == 0 && self->p->n <= COMPLETE_MOST)
        MPL_PASS(search_sets(self, out));
    return MPL_OK;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    nearer s = {.run = run, .p = p};
    int64_t begin;

    MPL_TRY(mpl_new_each(run->ctx, p->n, s.old, s.at, s.wait, s.moved, s.rival));
    MPL_TRY(mpl_new(run->ctx, s.limit, p->n_pools));
    MPL_TRY(mpl_new(run->ctx, s.clash_begin, (size_t)p->n + 1));
    MPL_TRY(read_old(&s, mpl_run_param(run, "old")));
    begin = mpl_clock_ns();
    MPL_TRY(mpl_planner_greedy_size.plan(run, p, out));
    if (mpl_run_param(run, "old") != NULL)
        MPL_TRY(plan_near(&s, out));
    run->self_ns = mpl_clock_ns() - begin; /* without reading the older plan */
    out->claim = MPL_FEASIBLE;
out:
    mpl_free_each(run->ctx, s.old, s.at, s.wait, s.moved, s.limit, s.clash_begin, s.clash, s.rival);
    return st;
}

const mpl_planner mpl_planner_near = {
    .name = "near",
    .about = "keeps the offsets of an older plan, largest first without one",
    .source = "this project",
    .params = "old=FILE,most=N,complete=0|1",
    .traits = MPL_USES_IN_PLACE | MPL_PRODUCTION, /* asked for by name: it needs an older plan */
    .plan = plan,
};
