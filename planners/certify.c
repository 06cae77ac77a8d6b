/* certify.c -- the checker of certificates. See certify.h; the language of refutations is in proof.h.
 *
 * A state is a set of active buffers, each with a lowest offset est and a highest offset top. It says: "the active buffers
 * can be placed, each at a multiple of its alignment from est to top, no two that live at once overlapping". The first
 * state is the claim to be refuted: all buffers of the pool, est 0 and top = within - bytes (both the fixed offset where there
 * is one). Every
 * record either draws a conclusion that the state implies, or splits it, or shows that it is false. Why each is sound:
 *
 *   w A,B    Only buffers alive in steps [A, B) stay active. Fewer buffers are placed if all are.
 *   a G      Sizes are rounded up to multiples of G, which divides the alignments of all: none begins in between.
 *   b T,N    F = least est of those alive at step T. Who lies at F? A buffer alive at T with est F (a candidate), or nobody: nobody
 *            alive at T begins lower, so whoever covers F begins there. Of N children that follow, one is each candidate and
 *            one nobody. Of candidates that are twins (same size, alignment, est, top, and the same others alive with them)
 *            one is enough: swapping the two turns a placement with the one at F into one with the other.
 *   p I      I lies at F. Others alive with I that cannot end by F lie above I: their est rises to F + size.
 *   n        Nobody lies at F. Take a placement with the least sum of offsets: had it somebody at F, a sibling would hold. In it
 *            each candidate has been pushed down onto another buffer, which ends no lower than its est + size: one
 *            not alive at T (outside), or one alive at T, and down the pile comes one that is no candidate or lies on one
 *            outside. So its est rises to the least of: its own outside; over the others alive at T, the sum of size and,
 *            for a candidate its outside, for another its est.
 *   r I,T,E  I does not begin in [est, E). Were it at o: of the others alive at T those below I have est + size <= o, fit
 *            into o - F, and leave so little above that the rest ends by the highest top + size. No sum of sizes does both.
 *   u I      I overlaps in time all active ones that stay (others are dropped), its est is the highest, and its size keeps
 *            their alignments: then I may be moved to the top, those above it down by its size, to I's offset at least.
 *            Their tops sink.
 *   x T,I    Those alive at T with at least the est of I: the topmost of them, whichever it is, ends beyond its top.
 *   z I      est > top.
 *   k N      This state is number N once it is refuted.
 *   m N      State N is refuted, its buffers are all active here, with est no lower and top no higher: a placement here would
 *            be one there.
 *
 * Source   this project
 * Cost     Each record O(n), children O(candidates * n), 'r' one sum of bits a buffer. */
#include "planners/certify.h"

#include "planners/verify.h"

#include <stdarg.h>
#include <stdlib.h>

#define MOST      (INT64_C(1) << 60) /* bytes of a pool, and numbers in a text */
#define BEYOND    (INT64_C(1) << 61) /* an est that no top reaches */
#define MOST_SUMS (INT64_C(1) << 24) /* of one record 'r' */
#define MOST_KEPT (1u << 24)         /* buffers of all numbered states */

typedef struct item {
    mpl_buffer id;
    bool active;
    int64_t est, top, size, align;
} item;

/* A numbered state, or a split with its child at work. */
typedef struct frame {
    size_t n_changes;            /* to undo down to */
    size_t number;               /* of the state; SIZE_MAX: a split */
    int64_t step, floor, n_left; /* of its children */
    bool nobody;                 /* is refuted */
    size_t n_done;               /* where its refuted candidates begin */
    mpl_buffer child;            /* MPL_NONE: nobody */
} frame;

typedef struct numbered {
    size_t begin, end; /* into kept */
    bool refuted;
} numbered;

typedef struct checker {
    mpl_ctx *ctx;
    mpl_status st; /* the first failure */
    const mpl_problem *p;
    item *item; /* [n] */
    const char *at;
    uint64_t n_read;
    int64_t number[3]; /* of the record read */
    bool waiting;      /* for a child of the topmost split */
    bool finished;     /* the first state is refuted */
    item *change;      /* what items were */
    frame *frame;
    mpl_buffer *done;
    numbered *state;
    item *kept;
    size_t n_changes, n_frames, n_done, n_states, n_kept;
    size_t change_room, frame_room, done_room, state_room, kept_room, sum_room;
    item *below;    /* [n] scratch */
    int64_t *least; /* [n] scratch */
    char *sum;      /* 1: such a sum exists */
} checker;

static void refuse(checker *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(checker *c, const char *format, ...)
{
    char why[200];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (c->st == MPL_OK)
        c->st = mpl_fail(c->ctx, MPL_EINVALID, __FILE__, __LINE__,
                         "the refutation is wrong at record %" PRIu64 ": %s", c->n_read, why);
}

/* Room for one more; false: there is none. */
#define ROOM(c, array, room, n)                                                                              \
    ((c)->st == MPL_OK && ((c)->st = mpl_reserve((c)->ctx, array, room, (n) + 1)) == MPL_OK)

/* ---- states -------------------------------------------------------------------------------------------------- */

static void set(checker *c, item to)
{
    if (!ROOM(c, c->change, c->change_room, c->n_changes))
        return;
    c->change[c->n_changes++] = c->item[to.id];
    c->item[to.id] = to;
}

static void drop(checker *c, item i)
{
    i.active = false;
    set(c, i);
}

static void raise_est(checker *c, item i, int64_t est)
{
    est = est > BEYOND ? BEYOND : (est + i.align - 1) / i.align * i.align;
    if (est > i.est) {
        i.est = est;
        set(c, i);
    }
}

static void undo(checker *c, size_t n_changes)
{
    while (c->n_changes > n_changes) {
        item was = c->change[--c->n_changes];

        c->item[was.id] = was;
    }
}

static bool alive(const checker *c, mpl_buffer i, int64_t step)
{
    return c->item[i].active && c->p->birth[i] <= step && step < c->p->death[i];
}

static bool meet(const checker *c, mpl_buffer i, mpl_buffer j)
{
    return c->p->birth[i] < c->p->death[j] && c->p->birth[j] < c->p->death[i];
}

static bool candidate(const checker *c, mpl_buffer i, const frame *f)
{
    return alive(c, i, f->step) && c->item[i].est == f->floor;
}

/* Least est alive at `step`; BEYOND: nobody is, or nobody has room. */
static int64_t floor_at(const checker *c, int64_t step)
{
    int64_t least = BEYOND;

    for (mpl_buffer i = 0; i < c->p->n; i++)
        if (alive(c, i, step) && c->item[i].est < least)
            least = c->item[i].est;
    return least;
}

/* Whether those alive at `step` with est >= least cannot all end by their tops. */
static bool too_high(const checker *c, int64_t step, int64_t least)
{
    int64_t sum = 0, lowest = INT64_MAX;

    for (mpl_buffer i = 0; i < c->p->n; i++)
        if (alive(c, i, step) && c->item[i].est >= least) {
            sum += c->item[i].size;
            lowest = c->item[i].est < lowest ? c->item[i].est : lowest;
        }
    for (mpl_buffer i = 0; i < c->p->n; i++)
        if (alive(c, i, step) && c->item[i].est >= least && lowest + sum - c->item[i].size <= c->item[i].top)
            return false;
    return sum > 0;
}

/* ---- conclusions --------------------------------------------------------------------------------------------- */

static void rule_window(checker *c)
{
    for (mpl_buffer i = 0; i < c->p->n; i++)
        if (c->item[i].active && (c->p->birth[i] >= c->number[1] || c->p->death[i] <= c->number[0]))
            drop(c, c->item[i]);
}

static void rule_round(checker *c)
{
    int64_t grain = c->number[0];

    for (mpl_buffer i = 0; i < c->p->n; i++) {
        item to = c->item[i];

        if (!to.active)
            continue;
        if (grain < 1 || to.align % grain != 0) {
            refuse(c, "buffer %u may begin at multiples of %" PRId64, i, to.align);
            return;
        }
        to.size = (to.size + grain - 1) / grain * grain;
        set(c, to);
    }
}

static void place(checker *c, item i)
{
    drop(c, i);
    for (mpl_buffer j = 0; j < c->p->n; j++)
        if (c->item[j].active && meet(c, i.id, j) && c->item[j].est + c->item[j].size > i.est)
            raise_est(c, c->item[j], i.est + i.size);
}

/* Lowest end of a buffer that lives with i but not at `step`. */
static int64_t outside(const checker *c, mpl_buffer i, int64_t step)
{
    int64_t least = BEYOND;

    for (mpl_buffer j = 0; j < c->p->n; j++)
        if (c->item[j].active && meet(c, i, j) && !alive(c, j, step) &&
            c->item[j].est + c->item[j].size < least)
            least = c->item[j].est + c->item[j].size;
    return least;
}

static void place_nobody(checker *c, const frame *f)
{
    int64_t first = INT64_MAX, second = INT64_MAX;
    mpl_buffer lowest = MPL_NONE;

    for (mpl_buffer i = 0; i < c->p->n; i++) {
        int64_t end;

        if (!alive(c, i, f->step))
            continue;
        c->least[i] = candidate(c, i, f) ? outside(c, i, f->step) : c->item[i].est;
        end = c->least[i] + c->item[i].size;
        if (end < first)
            second = first, first = end, lowest = i;
        else if (end < second)
            second = end;
    }
    for (mpl_buffer i = 0; i < c->p->n; i++) {
        int64_t inside = i == lowest ? second : first;

        if (candidate(c, i, f))
            raise_est(c, c->item[i], c->least[i] < inside ? c->least[i] : inside);
    }
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

static int by_end(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int64_t one = x->est + x->size, other = y->est + y->size;

    return one != other ? (one > other) - (one < other) : (x->id > y->id) - (x->id < y->id);
}

static void rule_fill(checker *c)
{
    item x = c->item[c->number[0]];
    int64_t step = c->number[1], est = c->number[2];
    int64_t floor = floor_at(c, step), rest = 0, highest = 0, unit = 0, n_sums, high;
    uint32_t n = 0, k = 0;

    for (mpl_buffer i = 0; i < c->p->n; i++) {
        item one = c->item[i];

        if (!alive(c, i, step))
            continue;
        rest += one.size;
        highest = one.top + one.size > highest ? one.top + one.size : highest;
        if (i != x.id && one.est + one.size < est) {
            c->below[n++] = one;
            unit = divisor(one.size, unit);
        }
    }
    qsort(c->below, n, sizeof *c->below, by_end);
    unit = unit > 0 ? unit : MOST; /* nobody fits below: 0 is the only sum */
    n_sums = est > floor ? (est - 1 - floor) / unit + 1 : 1;
    if (!alive(c, x.id, step) || n_sums > MOST_SUMS)
        refuse(c, "buffer %u and %" PRId64 " sums at step %" PRId64, x.id, n_sums, step);
    if (!ROOM(c, c->sum, c->sum_room, (size_t)n_sums))
        return;
    memset(c->sum, 0, (size_t)n_sums);
    c->sum[0] = 1;
    for (int64_t low = x.est; low < est; low = high) { /* offsets [low, high) have the same buffers below */
        int64_t from = low + rest - highest, to = 0;

        for (; k < n && c->below[k].est + c->below[k].size <= low; k++)
            for (int64_t s = n_sums - 1, by = c->below[k].size / unit; s >= by; s--)
                c->sum[s] |= c->sum[s - by];
        high = k < n ? c->below[k].est + c->below[k].size : est;
        from = from > 0 ? (from + unit - 1) / unit : 0;
        to = (high - 1 - floor) / unit;
        if (from <= to && memchr(c->sum + from, 1, (size_t)(to - from + 1)) != NULL)
            refuse(c, "buffer %u may lie below %" PRId64, x.id, est);
    }
    raise_est(c, x, est);
}

static void rule_top(checker *c)
{
    item u = c->item[c->number[0]];

    drop(c, u);
    for (mpl_buffer j = 0; j < c->p->n; j++) {
        item to = c->item[j];

        if (!to.active)
            continue;
        if (!meet(c, u.id, j)) {
            drop(c, to);
            continue;
        }
        if (to.est > u.est || u.size % to.align != 0)
            refuse(c, "buffer %u cannot go to the top: buffer %u is in the way", u.id, j);
        to.top -= u.size;
        to.top = u.top - to.size > to.top ? u.top - to.size : to.top;
        set(c, to);
    }
}

static void rule_number(checker *c)
{
    if ((size_t)c->number[0] != c->n_states || c->n_kept > MOST_KEPT)
        refuse(c, "state %" PRId64 " is out of turn, or one too many", c->number[0]);
    if (!ROOM(c, c->state, c->state_room, c->n_states) || !ROOM(c, c->frame, c->frame_room, c->n_frames))
        return;
    c->frame[c->n_frames++] = (frame){.n_changes = c->n_changes, .number = c->n_states};
    c->state[c->n_states].begin = c->n_kept;
    for (mpl_buffer i = 0; i < c->p->n; i++)
        if (c->item[i].active && ROOM(c, c->kept, c->kept_room, c->n_kept))
            c->kept[c->n_kept++] = c->item[i];
    c->state[c->n_states++].end = c->n_kept;
}

/* ---- the tree ------------------------------------------------------------------------------------------------ */

static void rule_split(checker *c)
{
    frame f = {.n_changes = c->n_changes, .number = SIZE_MAX, .n_done = c->n_done};

    f.step = c->number[0];
    f.n_left = c->number[1];
    f.floor = floor_at(c, f.step);
    if (f.floor == BEYOND || f.n_left < 1)
        refuse(c, "nobody is there at step %" PRId64, f.step);
    if (ROOM(c, c->frame, c->frame_room, c->n_frames))
        c->frame[c->n_frames++] = f;
    c->waiting = true;
}

static void open_child(checker *c, mpl_buffer i)
{
    frame *f = &c->frame[c->n_frames - 1];

    c->waiting = false;
    f->child = i;
    if (i == MPL_NONE)
        place_nobody(c, f);
    else if (candidate(c, i, f))
        place(c, c->item[i]);
    else
        refuse(c, "buffer %u cannot lie at %" PRId64, i, f->floor);
}

static void rule_place(checker *c)
{
    open_child(c, (mpl_buffer)c->number[0]);
}

static void rule_nobody(checker *c)
{
    open_child(c, MPL_NONE);
}

static bool twins(const checker *c, mpl_buffer i, mpl_buffer j)
{
    const item *a = &c->item[i], *b = &c->item[j];

    for (mpl_buffer k = 0; k < c->p->n; k++)
        if (k != i && k != j && c->item[k].active && meet(c, i, k) != meet(c, j, k))
            return false;
    return a->size == b->size && a->align == b->align && a->est == b->est && a->top == b->top;
}

/* Whether the refuted children of the split leave nobody to lie at its floor, and somebody has to. */
static bool complete(const checker *c, const frame *f)
{
    for (mpl_buffer i = 0; i < c->p->n; i++) {
        bool refuted = !candidate(c, i, f);

        for (size_t k = f->n_done; k < c->n_done && !refuted; k++)
            refuted = c->done[k] == i || twins(c, c->done[k], i);
        if (!refuted)
            return false;
    }
    return f->nobody;
}

/* The state at hand is false: so is what it came from, up to the first split with children left. */
static void close_state(checker *c)
{
    for (; c->st == MPL_OK && c->n_frames > 0; c->n_frames--) {
        frame *f = &c->frame[c->n_frames - 1];

        undo(c, f->n_changes);
        if (f->number != SIZE_MAX) {
            c->state[f->number].refuted = true;
            continue;
        }
        if (f->child == MPL_NONE)
            f->nobody = true;
        else if (ROOM(c, c->done, c->done_room, c->n_done))
            c->done[c->n_done++] = f->child;
        c->waiting = --f->n_left > 0;
        if (c->waiting)
            return;
        if (!complete(c, f))
            refuse(c, "the split at step %" PRId64 " lacks a child", f->step);
        c->n_done = f->n_done;
    }
    c->finished = true;
}

static void rule_load(checker *c)
{
    if (!too_high(c, c->number[0], c->item[c->number[1]].est))
        refuse(c, "those at step %" PRId64 " not below buffer %" PRId64 " have room", c->number[0],
               c->number[1]);
    close_state(c);
}

static void rule_top_passed(checker *c)
{
    if (c->item[c->number[0]].est <= c->item[c->number[0]].top)
        refuse(c, "buffer %" PRId64 " has room", c->number[0]);
    close_state(c);
}

static void rule_same(checker *c)
{
    const numbered *state = &c->state[c->number[0]];

    if ((size_t)c->number[0] >= c->n_states || !state->refuted) {
        refuse(c, "state %" PRId64 " is not refuted yet", c->number[0]);
        return;
    }
    for (size_t k = state->begin; k < state->end; k++) {
        const item *then = &c->kept[k], *now = &c->item[then->id];

        if (!now->active || now->est < then->est || now->top > then->top)
            refuse(c, "buffer %u has more room than in state %" PRId64, then->id, c->number[0]);
    }
    close_state(c);
}

/* ---- records ------------------------------------------------------------------------------------------------- */

static const struct rule {
    char kind;
    int n_numbers, buffer; /* which number is one; < 0: none */
    bool child;
    void (*apply)(checker *c);
} rules[] = {
    {'w', 2, -1, false, rule_window}, {'a', 1, -1, false, rule_round}, {'b', 2, -1, false, rule_split},
    {'p', 1, 0, true, rule_place},    {'n', 0, -1, true, rule_nobody}, {'r', 3, 0, false, rule_fill},
    {'u', 1, 0, false, rule_top},     {'x', 2, 1, false, rule_load},   {'z', 1, 0, false, rule_top_passed},
    {'k', 1, -1, false, rule_number}, {'m', 1, -1, false, rule_same},
};

static void check_record(checker *c)
{
    const struct rule *rule = rules, *end = rules + sizeof rules / sizeof *rules;
    bool whole = *c->at != '\0';

    c->n_read++;
    while (rule < end && rule->kind != *c->at)
        rule++;
    for (int k = 0; rule < end && whole && k < rule->n_numbers; k++) {
        const char *digit = c->at + 1;

        whole = k == 0 || *c->at == ',';
        c->number[k] = 0;
        for (c->at = digit; *c->at >= '0' && *c->at <= '9' && c->number[k] < MOST / 16; c->at++)
            c->number[k] = 10 * c->number[k] + (*c->at - '0');
        whole = whole && c->at > digit;
    }
    c->at += rule < end && rule->n_numbers == 0;
    if (!whole || rule == end || (*c->at != ' ' && *c->at != '\0'))
        refuse(c, "it should be a letter and its numbers");
    else if (rule->child != c->waiting)
        refuse(c, rule->child ? "a child of no split" : "the split before has children left");
    else if (rule->buffer >= 0 &&
             (c->number[rule->buffer] >= c->p->n || !c->item[c->number[rule->buffer]].active))
        refuse(c, "buffer %" PRId64 " is not there", c->number[rule->buffer]);
    else
        c->at += *c->at == ' ', rule->apply(c);
}

/* The state that says: the buffers of the pool fit into so many bytes. */
static void first_state(checker *c, const mpl_refutation *proof)
{
    const mpl_problem *p = c->p;
    uint64_t sum = proof->within;
    bool countable = p->before == NULL && proof->pool < p->n_pools && proof->within < (uint64_t)MOST;

    for (uint32_t k = 0; k < p->n_in_place; k++)
        countable = countable &&
                    (p->pool[p->in_place_in[k]] != proof->pool || p->pool[p->in_place_out[k]] != proof->pool);
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t fixed = p->fixed != NULL ? p->fixed[b] : MPL_UNFIXED, est = fixed != MPL_UNFIXED ? fixed : 0;
        item i = {.id = b, .active = p->pool[b] == proof->pool, .align = p->align[b]};

        if (!i.active)
            continue;
        countable = countable && mpl_add_bytes(sum, p->bytes[b], &sum) && mpl_add_bytes(sum, est, &sum) &&
                    mpl_add_bytes(sum, p->align[b], &sum) && sum < (uint64_t)MOST;
        i.size = (int64_t)(p->bytes[b] % MOST);
        i.est = (int64_t)(est % MOST);
        i.top = (int64_t)(proof->within % MOST) - (int64_t)(p->bytes[b] % MOST);
        i.top = fixed != MPL_UNFIXED && i.est < i.top ? i.est : i.top;
        c->item[b] = i;
    }
    if (!countable)
        refuse(c, "refutations are for pools with steps, without in-place pairs, of less than 2^60 bytes");
}

static mpl_status check_refutation(mpl_ctx *ctx, const mpl_problem *p, const mpl_refutation *proof,
                                   mpl_certified *out)
{
    mpl_status st = MPL_OK;
    checker c = {.ctx = ctx, .p = p, .at = proof->steps};

    MPL_TRY(mpl_new(ctx, c.item, p->n));
    MPL_TRY(mpl_new(ctx, c.below, p->n));
    MPL_TRY(mpl_new(ctx, c.least, p->n));
    first_state(&c, proof);
    while (!c.finished && c.st == MPL_OK)
        check_record(&c);
    if (*c.at != '\0')
        refuse(&c, "all is refuted, and the text goes on");
    *out = (mpl_certified){MPL_EVIDENCE_REFUTATION, proof->pool, proof->within + 1, c.n_read};
    st = c.st;
out:;
    void *arrays[] = {c.item, c.below, c.least, c.change, c.frame, c.done, c.state, c.kept, c.sum};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        mpl_free(ctx, arrays[k]);
    return st;
}

mpl_status mpl_certify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, mpl_certified *out)
{
    mpl_status st = MPL_OK;
    const mpl_refutation *proof = &plan->refutation;
    bool placed = plan->claim == MPL_FEASIBLE || plan->claim == MPL_OPTIMAL;

    *out = (mpl_certified){0};
    MPL_TRY(mpl_problem_check(ctx, p));
    if (placed)
        MPL_TRY(mpl_verify(ctx, p, plan)); /* with the clique, and that optimal means: peak = bound */
    if (proof->steps != NULL)
        MPL_TRY(check_refutation(ctx, p, proof, out));
    else if (placed && plan->n_witness > 0)
        *out = (mpl_certified){MPL_EVIDENCE_CLIQUE, 0, plan->bound_bytes, 0};
    if (plan->claim == MPL_INFEASIBLE &&
        (proof->steps == NULL || p->pool_capacity[proof->pool] > proof->within))
        MPL_FAIL(ctx, MPL_EINVALID,
                 "the plan claims that there is none: its certificate does not prove that");
    if (placed && (plan->claim == MPL_OPTIMAL || proof->steps != NULL) && plan->bound_bytes > 0 &&
        (out->pool != 0 || out->bound < plan->bound_bytes))
        MPL_FAIL(ctx, MPL_EINVALID,
                 "the plan claims a bound of %" PRIu64 " bytes: its certificate proves %" PRIu64,
                 plan->bound_bytes, out->pool == 0 ? out->bound : 0);
out:
    return st;
}
