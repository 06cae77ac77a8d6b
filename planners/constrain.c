/* constrain.c -- constraints as buffers, gaps and families, which planners know.
 *
 * Idea     A reserved range is a buffer of its own at a fixed offset. Two buffers apart are both
 *          needed at one more step before all others. Buffers together are a family. Between two
 *          chunks lies a wall, a fixed buffer as wide as the largest alignment; offsets are counted
 *          without walls again. One more wall is built while the arena reaches beyond the last, so
 *          that an optimum stays one: a problem of fewer walls can only be lower.
 * Source   this project
 * Cost     a plan for each number of walls tried
 * Limits   In-place pairs whose output is kept apart, or that lie together, are not used: a plan is
 *          then called feasible. No certificate. */
#include "planners/constrain.h"

#include <stdlib.h>

#include "graphs/problem/before.h"
#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/subset.h"

enum { WALLS_MOST = 4096 };
/* of each plan, if the caller sets no limit: fixed buffers make bounds weak and proofs long */
#define MOST_TICKS (UINT64_C(1) << 22)

typedef struct lowered {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const mpl_constraints *constraints;
    mpl_plan_by *plain;
    mpl_problem *q;   /* without constraints: the buffers of p by `into`, then the added ones */
    uint32_t *into;   /* [p->n] */
    mpl_buffer *next; /* [p->n] that lies right behind, or MPL_NONE */
    uint64_t wall;    /* [byte]; 0: no chunks */
    uint32_t n_walls, most_walls;
    uint32_t shift; /* steps before the first of p */
    bool exact;     /* nothing was left out */
} lowered;

/* An address of p among walls, and back; `end`: the end of bytes, which a wall may follow. */
static uint64_t walled(const lowered *s, uint64_t at, bool end)
{
    uint64_t chunk = s->constraints->chunk_bytes;

    return chunk == 0 || at == 0 ? at : at + (at - end) / chunk * s->wall;
}

static uint64_t unwalled(const lowered *s, uint64_t at, bool end)
{
    uint64_t chunk = s->constraints->chunk_bytes, both = chunk + s->wall, index;

    if (chunk == 0 || at == 0)
        return at;
    index = (at - end) / both;
    at -= index * both;
    return at > chunk ? (index + 1) * chunk + 1 : index * chunk + at;
}

/* Sorts the buffers of p: those that lie together follow each other. */
static mpl_status permute(lowered *s)
{
    mpl_status st = MPL_OK;
    uint32_t n = s->p->n, k = 0, *begin = NULL;
    mpl_buffer *item = NULL;
    uint8_t *behind = NULL;
    mpl_members members = {.n = n};

    MPL_TRY(mpl_new(s->ctx, begin, (size_t)n + 1));
    MPL_TRY(mpl_new_each(s->ctx, n, item, behind, s->into, s->next));
    for (mpl_buffer b = 0; b < n; b++)
        s->next[b] = MPL_NONE;
    for (uint32_t i = 0; i < s->constraints->n_together; i++) {
        s->next[s->constraints->together[i][0]] = s->constraints->together[i][1];
        behind[s->constraints->together[i][1]] = 1;
    }
    for (mpl_buffer b = 0; b < n; b++)
        for (mpl_buffer a = behind[b] ? MPL_NONE : b; a != MPL_NONE; a = s->next[a])
            item[k++] = a;
    for (uint32_t i = 0; i <= n; i++)
        begin[i] = i;
    members.begin = begin, members.item = item;
    st = mpl_problem_subset(s->ctx, s->p, &members,
                            MPL_KEEP_POOLS | MPL_KEEP_ORDER | MPL_KEEP_PAIRS | MPL_KEEP_FAMILIES,
                            s->into, &s->q);
out:
    mpl_free_each(s->ctx, begin, item, behind);
    return st;
}

/* Makes room for `more` buffers: 1-byte aligned, alive all the time, in pool 0. */
static mpl_status append(lowered *s, uint32_t more)
{
    mpl_problem *q = s->q;
    uint32_t n = q->n;

#define GROW(field)                                                                                \
    if (q->field != NULL)                                                                          \
        MPL_PASS(                                                                                  \
            mpl_realloc_bytes(s->ctx, (void **)&q->field, n, (size_t)n + more, sizeof *q->field));
    MPL_BUFFER_FIELDS(GROW)
    GROW(buffer_name)
#undef GROW
    if (q->gap_begin != NULL)
        MPL_PASS(mpl_realloc_bytes(s->ctx, (void **)&q->gap_begin, (size_t)n + 1,
                                   (size_t)n + 1 + more, sizeof *q->gap_begin));
    if (q->fixed == NULL) {
        MPL_PASS(mpl_new(s->ctx, q->fixed, (size_t)n + more));
        for (mpl_buffer b = 0; b < n; b++)
            q->fixed[b] = MPL_UNFIXED;
    }
    for (mpl_buffer b = n; b < n + more; b++) {
        q->align[b] = 1;
        q->pool[b] = 0;
        q->birth[b] = 0;
        q->death[b] = q->before == NULL ? q->n_steps : 1;
        if (q->inside != NULL)
            q->inside[b] = b;
        if (q->gap_begin != NULL)
            q->gap_begin[b + 1] = q->gap_begin[n];
    }
    q->n = n + more;
    return MPL_OK;
}

/* What is appended is before nothing, and nothing before it. */
static mpl_status widen_order(lowered *s, uint32_t n)
{
    const mpl_before *old = s->q->before;
    mpl_before *wide = NULL;
    uint32_t n_words = n / 64 + (n % 64 != 0);
    uint64_t *rows = NULL;
    mpl_status st;

    if (old == NULL)
        return MPL_OK;
    MPL_PASS(mpl_new(s->ctx, rows, (size_t)n * n_words));
    for (uint32_t b = 0; b < old->n; b++)
        memcpy(rows + (size_t)b * n_words, old->row + (size_t)b * old->n_words,
               old->n_words * sizeof *rows);
    st = mpl_before_from_rows_take(s->ctx, n, &rows, &wide);
    mpl_free(s->ctx, rows);
    if (st != MPL_OK)
        return st;
    mpl_before_free(s->ctx, (mpl_before *)s->q->before);
    s->q->before = wide;
    return MPL_OK;
}

static mpl_status add_fixed(lowered *s, mpl_buffer b, uint64_t from, uint64_t to, const char *name)
{
    s->q->bytes[b] = to - from;
    s->q->fixed[b] = from;
    return s->q->buffer_name == NULL ? MPL_OK : mpl_copy_text(s->ctx, s->q->buffer_name[b], name);
}

/* The pieces of a reserved range in chunks. */
static uint32_t pieces_of(const lowered *s, const mpl_reserved *reserved)
{
    uint64_t chunk = s->constraints->chunk_bytes, n = 1;

    if (chunk > 0)
        n = (reserved->to - 1) / chunk - reserved->from / chunk + 1;
    return n > WALLS_MOST ? WALLS_MOST + 1 : (uint32_t)n;
}

static mpl_status add_obstacles(lowered *s)
{
    const mpl_constraints *constraints = s->constraints;
    uint64_t both = constraints->chunk_bytes + s->wall;
    uint32_t n = s->p->n, more = s->n_walls;

    for (uint32_t i = 0; i < constraints->n_reserved; i++)
        more += pieces_of(s, &constraints->reserved[i]);
    if (more == 0)
        return MPL_OK;
    MPL_PASS(append(s, more));
    MPL_PASS(widen_order(s, n + more));
    for (uint32_t i = 0; i < s->n_walls; i++, n++)
        MPL_PASS(add_fixed(s, n, i * both + constraints->chunk_bytes, (i + 1) * both,
                           "the end of a chunk"));
    for (uint32_t i = 0; i < constraints->n_reserved; i++) {
        const mpl_reserved *reserved = &constraints->reserved[i];
        uint64_t from = reserved->from;

        for (uint32_t k = pieces_of(s, reserved); k > 0; k--, n++) {
            uint64_t to = k == 1 ? reserved->to
                                 : (from / constraints->chunk_bytes + 1) * constraints->chunk_bytes;

            MPL_PASS(
                add_fixed(s, n, walled(s, from, false), walled(s, to, true), "what is reserved"));
            if (s->q->before == NULL && (reserved->birth > 0 || reserved->death != UINT32_MAX)) {
                s->q->birth[n] = s->shift + reserved->birth;
                s->q->death[n] = (uint32_t)mpl_min_u64(reserved->death, s->p->n_steps) + s->shift;
            }
            from = to;
        }
    }
    return MPL_OK;
}

/* Gaps being written. */
typedef struct gap_list {
    uint32_t n, *begin, *from, *to;
} gap_list;

/* Adds the steps at which b, of s->q, meets those it is kept apart from. */
static void add_meetings(lowered *s, mpl_buffer b, gap_list *gaps)
{
    mpl_problem *q = s->q;
    uint32_t shift = s->constraints->n_apart, last = MPL_NONE, born = q->birth[b] + shift,
             first = born;

    for (uint32_t i = 0; i <= shift; i++) {
        uint32_t at = i < shift ? i : born;

        if (i < shift && s->into[s->constraints->apart[i][0]] != b &&
            s->into[s->constraints->apart[i][1]] != b)
            continue;
        if (last == MPL_NONE)
            first = at;
        else if (at > last + 1)
            gaps->from[gaps->n] = last + 1, gaps->to[gaps->n++] = at;
        last = at;
    }
    for (uint32_t i = q->gap_begin != NULL ? q->gap_begin[b] : 0;
         q->gap_begin != NULL && i < q->gap_begin[b + 1]; i++) {
        gaps->from[gaps->n] = q->gap_from[i] + shift;
        gaps->to[gaps->n++] = q->gap_to[i] + shift;
    }
    gaps->begin[b + 1] = gaps->n;
    q->birth[b] = first;
    q->death[b] += shift;
}

/* Steps at which buffers that are kept apart meet, before all others. */
static mpl_status add_steps(lowered *s)
{
    mpl_status st = MPL_OK;
    mpl_problem *q = s->q;
    gap_list gaps = {0};
    size_t room =
        2 * (size_t)s->constraints->n_apart + (q->gap_begin != NULL ? q->gap_begin[q->n] : 0);

    if (s->constraints->n_apart == 0)
        return MPL_OK;
    MPL_TRY(mpl_new_each(s->ctx, room, gaps.from, gaps.to));
    MPL_TRY(mpl_new(s->ctx, gaps.begin, (size_t)q->n + 1));
    for (mpl_buffer b = 0; b < q->n; b++)
        add_meetings(s, b, &gaps);
    mpl_free_each(s->ctx, q->gap_begin, q->gap_from, q->gap_to);
    q->gap_begin = gaps.begin, q->gap_from = gaps.from, q->gap_to = gaps.to;
    gaps = (gap_list){0};
    q->n_steps += s->constraints->n_apart;
    s->shift = s->constraints->n_apart;
out:
    mpl_free_each(s->ctx, gaps.begin, gaps.from, gaps.to);
    return st;
}

typedef struct pair {
    uint32_t step, out, in;
} pair;

MPL_ORDER_BY(pair_order, pair, MPL_RISING(step) MPL_RISING(out) MPL_RISING(in))

/* Keeps the pairs that are still ones, in their order. */
static mpl_status keep_pairs(lowered *s)
{
    mpl_problem *q = s->q;
    uint32_t n = 0;
    pair *list = NULL;

    MPL_PASS(mpl_new(s->ctx, list, q->n_in_place));
    for (uint32_t i = 0; i < q->n_in_place; i++) {
        mpl_buffer in = q->in_place_in[i], out = q->in_place_out[i];
        uint32_t step = q->in_place_step[i] + s->shift;
        bool kept = (q->before != NULL || q->birth[out] == step) &&
                    (q->inside == NULL || q->inside[in] != q->inside[out]);

        s->exact &= kept;
        if (kept)
            list[n++] = (pair){step, out, in};
    }
    if (n > 0)
        qsort(list, n, sizeof *list, pair_order);
    q->n_in_place = n;
    for (uint32_t i = 0; i < n; i++) {
        q->in_place_step[i] = list[i].step;
        q->in_place_out[i] = list[i].out;
        q->in_place_in[i] = list[i].in;
    }
    mpl_free(s->ctx, list);
    return MPL_OK;
}

/* Makes the family of the buffers that lie behind `first`. One that has a fixed part is fixed as a
 * whole instead; false: it cannot lie there. */
static bool join(lowered *s, mpl_buffer first)
{
    mpl_problem *q = s->q;
    mpl_buffer root = s->into[first];
    uint64_t end = 0, base = MPL_UNFIXED;

    for (mpl_buffer b = first; b != MPL_NONE; b = s->next[b]) {
        mpl_buffer at = s->into[b];

        if (!mpl_align_bytes(end, q->align[at], &end))
            return false;
        q->inside[at] = root;
        q->inside_at[at] = end;
        if (q->fixed != NULL && q->fixed[at] != MPL_UNFIXED) {
            if (q->fixed[at] < end || (base != MPL_UNFIXED && base != q->fixed[at] - end))
                return false;
            base = q->fixed[at] - end;
        }
        if (!mpl_add_bytes(end, q->bytes[at], &end) || end > INT64_MAX)
            return false;
    }
    for (mpl_buffer b = first; base != MPL_UNFIXED && b != MPL_NONE; b = s->next[b]) {
        mpl_buffer at = s->into[b];

        q->fixed[at] = base + q->inside_at[at];
        q->inside[at] = at;
        q->inside_at[at] = 0;
    }
    return base == MPL_UNFIXED || base % q->align[root] == 0;
}

static mpl_status join_together(lowered *s)
{
    mpl_problem *q = s->q;
    char text[24];

    if (s->constraints->n_together == 0)
        return MPL_OK;
    if (q->inside == NULL) {
        MPL_PASS(mpl_new_each(s->ctx, q->n, q->inside, q->inside_at));
        for (mpl_buffer b = 0; b < q->n; b++)
            q->inside[b] = b;
    }
    for (mpl_buffer b = 0; b < s->p->n; b++) {
        bool behind = false;

        for (uint32_t i = 0; i < s->constraints->n_together; i++)
            behind |= s->constraints->together[i][1] == b;
        if (!behind && s->next[b] != MPL_NONE && !join(s, b))
            return MPL_ERROR(s->ctx, MPL_EINVALID,
                             "what lies together behind buffer '%.100s' cannot, as parts are fixed",
                             mpl_buffer_label(s->p, b, text));
    }
    return MPL_OK;
}

static void lowered_fini(lowered *s)
{
    mpl_problem_free(s->ctx, s->q);
    mpl_free_each(s->ctx, s->into, s->next);
    s->q = NULL, s->into = NULL, s->next = NULL;
}

/* Makes s->q with n_walls walls. */
static mpl_status lower(lowered *s)
{
    lowered_fini(s);
    MPL_PASS(permute(s));
    MPL_PASS(join_together(s));
    MPL_PASS(add_steps(s));
    MPL_PASS(keep_pairs(s));
    for (mpl_buffer b = 0; b < s->q->n; b++)
        if (s->q->fixed != NULL && s->q->fixed[b] != MPL_UNFIXED && s->q->pool[b] == 0)
            s->q->fixed[b] = walled(s, s->q->fixed[b], false);
    if (s->constraints->chunk_bytes > 0 && s->q->pool_capacity[0] != MPL_NO_CAPACITY)
        s->q->pool_capacity[0] = walled(s, s->q->pool_capacity[0], true);
    return add_obstacles(s);
}

/* The walls that every plan reaches beyond. */
static mpl_status first_walls(lowered *s)
{
    const mpl_problem *p = s->p;
    uint64_t chunk = s->constraints->chunk_bytes, reach = 0;

    if (chunk == 0)
        return MPL_OK;
    MPL_PASS(mpl_lower_bound(s->ctx, p, 0, &reach, NULL));
    for (uint32_t i = 0; i < s->constraints->n_reserved; i++)
        reach = mpl_max_u64(reach, s->constraints->reserved[i].to);
    s->wall = 1;
    for (mpl_buffer b = 0; b < p->n; b++) {
        s->wall = p->pool[b] == 0 ? mpl_max_u64(s->wall, p->align[b]) : s->wall;
        if (p->pool[b] == 0 && p->fixed != NULL && p->fixed[b] != MPL_UNFIXED)
            reach = mpl_max_u64(reach, p->fixed[b] + p->bytes[b]);
    }
    reach = reach > 0 ? (reach - 1) / chunk : 0;
    s->n_walls = reach > WALLS_MOST ? WALLS_MOST + 1 : (uint32_t)reach;
    /* there, each buffer could have a chunk of its own */
    s->most_walls = (uint32_t)mpl_min_u64((uint64_t)s->n_walls + p->n, WALLS_MOST);
    return MPL_OK;
}

/* Writes the plan of s->q as one of p. `proved`: no plan of p needs fewer walls. */
static mpl_status lift(const lowered *s, bool proved, const mpl_plan *from, mpl_plan *to)
{
    if (from->spread.n > 0)
        return MPL_ERROR(s->ctx, MPL_EUNAVAIL,
                         "a plan over several memories keeps no constraints on addresses");
    proved &= s->exact;
    if (from->claim == MPL_INFEASIBLE && !proved)
        return MPL_ERROR(s->ctx, MPL_ELIMIT,
                         "no plan within the capacity was found; there may be one");
    to->claim = from->claim == MPL_OPTIMAL && !proved ? MPL_FEASIBLE : from->claim;
    to->bound_bytes = proved ? unwalled(s, from->bound_bytes, true) : 0;
    if (from->block != NULL)
        MPL_PASS(mpl_new(s->ctx, to->block, to->n));
    for (mpl_buffer b = 0; b < to->n; b++) {
        uint64_t at = from->offset[s->into[b]];

        to->offset[b] = s->p->pool[b] == 0 ? unwalled(s, at, false) : at;
        if (from->block != NULL)
            to->block[b] = from->block[s->into[b]];
    }
    return MPL_OK;
}

/* The chunk in which the plan's highest buffer ends. */
static uint64_t last_chunk(const lowered *s, const mpl_plan *plan)
{
    uint64_t top = 0;

    for (mpl_buffer b = 0; b < s->p->n; b++)
        if (s->p->pool[b] == 0)
            top = mpl_max_u64(top, plan->offset[s->into[b]] + s->p->bytes[b]);
    return s->wall == 0 || top == 0 ? 0 : (top - 1) / (s->constraints->chunk_bytes + s->wall);
}

static bool beyond_walls(const lowered *s, const mpl_plan *plan)
{
    uint64_t chunk = s->constraints->chunk_bytes, last = s->n_walls * (chunk + s->wall);

    for (mpl_buffer b = 0; chunk > 0 && b < s->p->n; b++)
        if (s->p->pool[b] == 0 && plan->offset[s->into[b]] + s->p->bytes[b] > last + chunk)
            return true;
    return false;
}

/* Plans with more and more walls, until no buffer lies beyond the last chunk. */
static mpl_status plan_walls(lowered *s, const mpl_planner *planner, mpl_run *run, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;
    bool proved = true;
    uint64_t ticks = 0;
    int64_t ns = 0;

    for (bool done = false; !done; done = plan->claim == MPL_INFEASIBLE || !beyond_walls(s, plan)) {
        if (plan != NULL) {
            uint64_t next = mpl_max_u64(s->n_walls + 1, last_chunk(s, plan));

            proved &= plan->claim == MPL_OPTIMAL;
            s->n_walls = next > WALLS_MOST ? WALLS_MOST + 1 : (uint32_t)next;
        }
        if (s->n_walls > s->most_walls)
            MPL_FAIL(s->ctx, MPL_ELIMIT,
                     "planner %s found no plan in %u chunks of %" PRIu64
                     " bytes; what lies together, or in one another, must fit into one",
                     planner->name, s->most_walls + 1, s->constraints->chunk_bytes);
        mpl_plan_free(s->ctx, plan);
        plan = NULL;
        MPL_TRY(lower(s));
        MPL_TRY(s->plain(planner, run, s->q, &plan));
        ticks += run->ticks, ns += run->plan_ns;
    }
    run->ticks = ticks, run->plan_ns = ns;
    MPL_TRY(lift(s, proved, plan, out));
out:
    mpl_plan_free(s->ctx, plan);
    return st;
}

mpl_status mpl_constrained_plan(const mpl_planner *planner, mpl_run *run, const mpl_problem *p,
                                mpl_plan_by *plain, mpl_plan **out)
{
    mpl_status st = MPL_OK;
    lowered s = {
        .ctx = run->ctx, .p = p, .constraints = p->constraints, .plain = plain, .exact = true};
    mpl_plan *plan = NULL;
    const uint64_t *start = run->start_offsets;
    uint64_t budget = run->budget_ticks;

    run->start_offsets = NULL;
    if (budget == UINT64_MAX && run->deadline_ns == INT64_MAX)
        run->budget_ticks = MOST_TICKS;
    MPL_TRY(mpl_constraints_check(run->ctx, p));
    MPL_TRY(mpl_plan_new(run->ctx, p, &plan));
    MPL_TRY(first_walls(&s));
    MPL_TRY(plan_walls(&s, planner, run, plan));
    *out = plan, plan = NULL;
out:
    run->start_offsets = start;
    run->budget_ticks = budget;
    lowered_fini(&s);
    mpl_plan_free(run->ctx, plan);
    return st;
}
