/* certify.c -- the checker of certificates. See certify.h; proof.h has the language of refutations.
 *
 * A state is a set of active buffers, each with a lowest offset est and a highest offset top. It says: "the active buffers
 * can be placed, each at a multiple of its alignment from est to top, no two that live at once overlapping". The first
 * state is the claim to be refuted: all buffers of the pool, est 0 and top = within - bytes (both the fixed offset where there
 * is one). A record draws a conclusion that the state implies, or splits it, or shows that it is false. Why each is sound:
 *
 *   w A,B    Only buffers alive in steps [A, B) stay active: if all can be placed, so can some.
 *   a G      Sizes are rounded up to multiples of G, which divides the alignments of all: none begins in between.
 *   b T,N    F = least est of those alive at step T. Who lies at F? One of those with est F (candidates), or nobody. N children
 *            follow: nobody, and each candidate; of twins (same size, alignment, est, top, and the same others alive with
 *            them) one is enough: swapping two turns a placement with the one at F into one with the other.
 *   p I      I lies at its est. Others alive with I that cannot end by there lie above I: their est rises to its end.
 *   n        Take a placement with the least sum of offsets. If it has somebody at F, a sibling holds. Else each candidate
 *            was pushed down onto another buffer, which ends no lower than its est + size: one not alive at T
 *            (outside), or one alive at T, and down the pile comes one that is no candidate or lies on one outside. So
 *            its est rises to the least of: its own outside; over the others alive at T, size plus, for a candidate its
 *            outside, for another its est.
 *   r I,T,E  I does not begin in [est, E). Were it at o: of the others alive at T those below I have est + size <= o, fit
 *            into o - F, and leave so little above that the rest ends by the highest top + size. No sum of sizes does both.
 *   u I      Those not alive with I are dropped, no other has a higher est, and I's size keeps their alignments: then I may
 *            be moved to the top, and those above it down by its size, to I's offset at least. Their tops sink.
 *   x T,I    Those alive at T with at least the est of I: the topmost of them, whichever it is, ends beyond its top.
 *   z I      est > top.
 *   k N      This state is number N once it is refuted.
 *   m N      State N is refuted, its buffers are all active here, with no lower est and no higher top: a placement here would be
 *            one there.
 *
 * Source   this project */
#include "planners/certify.h"

#include "planners/verify.h"

#define MOST      (INT64_C(1) << 60) /* bytes of a pool, and numbers in a text */
#define BEYOND    (INT64_C(1) << 61) /* an est that no top reaches */
#define MOST_SUMS (INT64_C(1) << 18) /* of one record 'r' */
#define MOST_KEPT (1u << 23)         /* buffers of all states that are kept at a time */

typedef struct item {
    mpl_buffer id;
    bool active, refuted; /* as a candidate of the split that keeps this */
    int64_t est, top, size, align;
} item;

/* A state that is kept: to go back to at each child of a split, or under a number. */
typedef struct kept {
    item *item;                  /* [n] */
    int64_t step, floor, n_left; /* of a split's children; a numbered one has none */
    mpl_buffer child;            /* at work; MPL_NONE: nobody */
    bool refuted;                /* nobody; the numbered state */
    size_t number;
} kept;

typedef struct checker {
    mpl_ctx *ctx;
    mpl_status st; /* the first fault */
    const mpl_problem *p;
    item *item; /* [n] the state at hand */
    const char *at;
    uint64_t n_read;
    int64_t number[3];
    bool waiting;  /* for a child of the last split */
    bool finished; /* the first state is refuted */
    kept *open, *numbered;
    size_t n_open, open_room, n_numbered, numbered_room, sum_room;
    item *scratch; /* [n] */
    char *sum;     /* 1: such a sum exists */
} checker;

/* Keeps the first fault: what is wrong at the record, and the number it is about. */
static void refuse(checker *c, const char *why, int64_t about)
{
    if (c->st == MPL_OK)
        c->st = mpl_fail(c->ctx, MPL_EINVALID, __FILE__, __LINE__,
                         "the refutation is wrong at record %" PRIu64 ": %s %" PRId64, c->n_read, why, about);
}

/* ---- states -------------------------------------------------------------------------------------------------- */

static void raise_est(item *i, int64_t est)
{
    est = est > BEYOND ? BEYOND : (est + i->align - 1) / i->align * i->align;
    i->est = est > i->est ? est : i->est;
}

static bool alive(const checker *c, const item *i, int64_t step)
{
    return i->active && c->p->birth[i->id] <= step && step < c->p->death[i->id];
}

static bool meet(const checker *c, const item *i, const item *j)
{
    return c->p->birth[i->id] < c->p->death[j->id] && c->p->birth[j->id] < c->p->death[i->id];
}

static bool candidate(const checker *c, const item *i, const kept *split)
{
    return alive(c, i, split->step) && i->est == split->floor;
}

#define foreach(c, i) for (item *i = (c)->item; i < (c)->item + (c)->p->n; i++)

/* Least est alive at `step`; BEYOND: nobody is. */
static int64_t floor_at(const checker *c, int64_t step)
{
    int64_t least = BEYOND;

    foreach (c, i)
        if (alive(c, i, step) && i->est < least)
            least = i->est;
    return least;
}

/* ---- conclusions --------------------------------------------------------------------------------------------- */

static void rule_window(checker *c)
{
    foreach (c, i)
        i->active = i->active && c->p->birth[i->id] < c->number[1] && c->p->death[i->id] > c->number[0];
}

static void rule_round(checker *c)
{
    int64_t grain = c->number[0];

    foreach (c, i)
        if (i->active && (grain < 1 || i->align % grain != 0))
            refuse(c, "an alignment is no multiple of", grain);
        else if (i->active)
            i->size = (i->size + grain - 1) / grain * grain;
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

static void rule_fill(checker *c)
{
    item *x = &c->item[c->number[0]];
    int64_t step = c->number[1], est = c->number[2], floor = floor_at(c, step);
    int64_t rest = 0, highest = 0, unit = 0, n_sums, high;
    item *below = c->scratch;
    uint32_t n = 0;

    foreach (c, i) {
        if (!alive(c, i, step))
            continue;
        rest += i->size;
        highest = i->top + i->size > highest ? i->top + i->size : highest;
        if (i == x || i->est + i->size >= est)
            continue;
        below[n] = *i;
        below[n++].est += i->size; /* where it ends at the least */
        unit = divisor(i->size, unit);
    }
    unit = unit > 0 ? unit : MOST; /* nobody fits below: 0 is the only sum */
    n_sums = est > floor ? (est - 1 - floor) / unit + 1 : 1;
    if (!alive(c, x, step) || n_sums > MOST_SUMS)
        refuse(c, "not there, or too many sums: buffer", x->id);
    if (c->st != MPL_OK || (c->st = mpl_reserve(c->ctx, c->sum, c->sum_room, (size_t)n_sums)) != MPL_OK)
        return;
    memset(c->sum, 0, (size_t)n_sums);
    c->sum[0] = 1;
    for (int64_t low = x->est; low < est; low = high) { /* offsets [low, high) have the same buffers below */
        int64_t from = low + rest - highest, to;

        high = est;
        for (uint32_t k = 0; k < n; k++) {
            int64_t by = below[k].size / unit;

            if (below[k].est > low)
                high = below[k].est < high ? below[k].est : high;
            else
                for (int64_t s = n_sums - 1; below[k].active && s >= by; s--)
                    c->sum[s] |= c->sum[s - by];
            below[k].active = below[k].est > low;
        }
        from = from > 0 ? (from + unit - 1) / unit : 0;
        to = (high - 1 - floor) / unit;
        if (from <= to && memchr(c->sum + from, 1, (size_t)(to - from + 1)) != NULL)
            refuse(c, "there is room lower for buffer", x->id);
    }
    raise_est(x, est);
}

static void rule_top(checker *c)
{
    item u = c->item[c->number[0]];

    c->item[u.id].active = false;
    foreach (c, i) {
        int64_t below = u.top - i->size; /* where it can lie if it lies below u now */

        i->active = i->active && meet(c, &u, i);
        if (i->active && (i->est > u.est || u.size % i->align != 0))
            refuse(c, "the top is not for buffer", u.id);
        i->top = i->top - u.size > below ? i->top - u.size : below;
    }
}

/* ---- the tree ------------------------------------------------------------------------------------------------ */

/* Keeps the state at hand at the end of a list. */
static void keep(checker *c, kept **list, size_t *n, size_t *room, kept k)
{
    if ((c->n_open + c->n_numbered) * c->p->n > MOST_KEPT)
        refuse(c, "too many states to keep:", (int64_t)(c->n_open + c->n_numbered));
    if (c->st == MPL_OK && (c->st = mpl_reserve(c->ctx, *list, *room, *n + 1)) == MPL_OK &&
        (c->st = mpl_new(c->ctx, k.item, c->p->n)) == MPL_OK) {
        foreach (c, i)
            k.item[i->id] = *i, k.item[i->id].refuted = false;
        (*list)[(*n)++] = k;
    }
}

static void rule_number(checker *c)
{
    kept k = {.number = c->n_numbered};

    if ((size_t)c->number[0] != k.number)
        refuse(c, "out of turn: state", c->number[0]);
    keep(c, &c->numbered, &c->n_numbered, &c->numbered_room, k);
    keep(c, &c->open, &c->n_open, &c->open_room, k);
}

static void rule_split(checker *c)
{
    kept k = {.step = c->number[0], .n_left = c->number[1], .floor = floor_at(c, c->number[0])};

    if (k.n_left < 1)
        refuse(c, "no children of the split at step", k.step);
    keep(c, &c->open, &c->n_open, &c->open_room, k);
    c->waiting = true;
}

static void rule_place(checker *c)
{
    kept *split = &c->open[c->n_open - 1];
    item *i = &c->item[c->number[0]];

    split->child = i->id;
    i->active = c->waiting = false;
    foreach (c, j)
        if (j->active && meet(c, i, j) && j->est + j->size > i->est)
            raise_est(j, i->est + i->size);
}

static void rule_nobody(checker *c)
{
    kept *split = &c->open[c->n_open - 1];
    int64_t first = BEYOND, second = BEYOND;
    mpl_buffer lowest = MPL_NONE;

    foreach (c, i) {
        int64_t least = candidate(c, i, split) ? BEYOND : i->est, end;

        if (!alive(c, i, split->step))
            continue;
        foreach (c, j)
            if (candidate(c, i, split) && j->active && meet(c, i, j) && !alive(c, j, split->step))
                least = j->est + j->size < least ? j->est + j->size : least;
        c->scratch[i->id].est = least;
        end = least + i->size;
        if (end < first)
            second = first, first = end, lowest = i->id;
        else if (end < second)
            second = end;
    }
    foreach (c, i) {
        int64_t inside = i->id == lowest ? second : first;

        if (candidate(c, i, split))
            raise_est(i, c->scratch[i->id].est < inside ? c->scratch[i->id].est : inside);
    }
    split->child = MPL_NONE;
    c->waiting = false;
}

static bool twins(const checker *c, const item *i, const item *j)
{
    foreach (c, k)
        if (k->id != i->id && k->id != j->id && k->active && meet(c, i, k) != meet(c, j, k))
            return false;
    return i->size == j->size && i->align == j->align && i->est == j->est && i->top == j->top;
}

/* Whether the refuted children leave nobody to lie at the floor of the split, and somebody has to. */
static bool complete(const checker *c, const kept *split)
{
    foreach (c, i) {
        bool refuted = !candidate(c, i, split);

        for (mpl_buffer j = 0; j < c->p->n && !refuted; j++)
            refuted = split->item[j].refuted && (j == i->id || twins(c, i, &c->item[j]));
        if (!refuted)
            return false;
    }
    return split->refuted;
}

/* The state at hand is false: so is what it came from, up to the first split with children left. */
static void close_state(checker *c)
{
    for (; c->st == MPL_OK && c->n_open > 0; mpl_free(c->ctx, c->open[--c->n_open].item)) {
        kept *k = &c->open[c->n_open - 1];

        memcpy(c->item, k->item, c->p->n * sizeof *k->item);
        if (k->n_left == 0) {
            c->numbered[k->number].refuted = true;
            continue;
        }
        if (k->child == MPL_NONE)
            k->refuted = true;
        else
            k->item[k->child].refuted = true;
        c->waiting = --k->n_left > 0;
        if (c->waiting)
            return;
        if (!complete(c, k))
            refuse(c, "a child is missing in the split at step", k->step);
    }
    c->finished = true;
}

static void rule_load(checker *c)
{
    int64_t sum = 0, least = c->item[c->number[1]].est, lowest = BEYOND;

    foreach (c, i)
        if (alive(c, i, c->number[0]) && i->est >= least) {
            sum += i->size;
            lowest = i->est < lowest ? i->est : lowest;
        }
    foreach (c, i)
        if (sum == 0 || (alive(c, i, c->number[0]) && i->est >= least && lowest + sum - i->size <= i->top))
            refuse(c, "there is room at step", c->number[0]);
}

static void rule_passed(checker *c)
{
    if (c->item[c->number[0]].est <= c->item[c->number[0]].top)
        refuse(c, "there is room for buffer", c->number[0]);
}

static void rule_same(checker *c)
{
    const kept *k = (size_t)c->number[0] < c->n_numbered ? &c->numbered[c->number[0]] : NULL;

    if (k == NULL || !k->refuted)
        refuse(c, "not refuted yet: state", c->number[0]);
    foreach (c, i) {
        const item *then = k != NULL ? &k->item[i->id] : i;

        if (then->active && (!i->active || i->est < then->est || i->top > then->top))
            refuse(c, "more room than before for buffer", i->id);
    }
}

/* ---- records ------------------------------------------------------------------------------------------------- */

static const struct rule {
    char kind;
    int n_numbers, buffer;             /* which number is one; < 0: none */
    enum { STATE, CHILD, LEAF } place; /* where it stands */
    void (*apply)(checker *c);
} rules[] = {
    {'w', 2, -1, STATE, rule_window}, {'a', 1, -1, STATE, rule_round},  {'b', 2, -1, STATE, rule_split},
    {'p', 1, 0, CHILD, rule_place},   {'n', 0, -1, CHILD, rule_nobody}, {'r', 3, 0, STATE, rule_fill},
    {'u', 1, 0, STATE, rule_top},     {'x', 2, 1, LEAF, rule_load},     {'z', 1, 0, LEAF, rule_passed},
    {'k', 1, -1, STATE, rule_number}, {'m', 1, -1, LEAF, rule_same},
};

/* Reads a record; NULL: it is none. */
static const struct rule *read_record(checker *c)
{
    const struct rule *rule = rules, *end = rules + sizeof rules / sizeof *rules;

    while (rule < end && rule->kind != *c->at)
        rule++;
    if (rule == end)
        return NULL;
    c->at++;
    for (int k = 0; k < rule->n_numbers; k++) {
        if (k > 0 && *c->at != ',')
            return NULL;
        c->at += k > 0;
        if (*c->at < '0' || *c->at > '9')
            return NULL;
        for (c->number[k] = 0; *c->at >= '0' && *c->at <= '9' && c->number[k] < MOST / 16; c->at++)
            c->number[k] = 10 * c->number[k] + (*c->at - '0');
    }
    if (*c->at != ' ' && *c->at != '\0')
        return NULL;
    c->at += *c->at == ' ';
    return rule;
}

static void check_record(checker *c)
{
    const struct rule *rule = read_record(c);
    int64_t named = rule != NULL && rule->buffer >= 0 ? c->number[rule->buffer] : -1;

    c->n_read++;
    if (rule == NULL)
        refuse(c, "no letter with its numbers; characters left", (int64_t)strlen(c->at));
    else if ((rule->place == CHILD) != c->waiting)
        refuse(c, "children, all, come behind their split; states open", (int64_t)c->n_open);
    else if (named >= 0 && (named >= c->p->n || !c->item[named].active))
        refuse(c, "not there: buffer", named);
    else
        rule->apply(c);
    if (c->st == MPL_OK && rule->place == LEAF)
        close_state(c);
}

/* The state that says: the buffers of the pool fit into so many bytes. */
static void first_state(checker *c, const mpl_refutation *proof)
{
    const mpl_problem *p = c->p;
    uint64_t sum = proof->within;
    bool countable = p->before == NULL && proof->pool < p->n_pools && sum < (uint64_t)MOST;

    for (uint32_t k = 0; k < p->n_in_place; k++)
        if (p->pool[p->in_place_in[k]] == proof->pool && p->pool[p->in_place_out[k]] == proof->pool)
            countable = false;
    for (mpl_buffer b = 0; b < p->n && countable; b++) {
        bool fixed = p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
        uint64_t est = fixed ? p->fixed[b] : 0;
        item *i = &c->item[b];

        *i = (item){.id = b, .active = p->pool[b] == proof->pool, .align = p->align[b]};
        if (!i->active)
            continue;
        countable = mpl_add_bytes(sum, p->bytes[b], &sum) && mpl_add_bytes(sum, est, &sum) &&
                    mpl_add_bytes(sum, p->align[b], &sum) && sum < (uint64_t)MOST;
        i->size = (int64_t)p->bytes[b];
        i->est = (int64_t)est;
        i->top = (int64_t)(proof->within - p->bytes[b]);
        i->top = fixed && i->est < i->top ? i->est : i->top;
    }
    if (!countable)
        refuse(c, "it needs steps, no in-place pairs, and less than 2^60 bytes in pool", proof->pool);
}

static mpl_status check_refutation(mpl_ctx *ctx, const mpl_problem *p, const mpl_refutation *proof,
                                   mpl_certified *out)
{
    checker c = {.ctx = ctx, .p = p, .at = proof->steps};

    if ((c.st = mpl_new(ctx, c.item, p->n)) == MPL_OK && (c.st = mpl_new(ctx, c.scratch, p->n)) == MPL_OK)
        first_state(&c, proof);
    while (!c.finished && c.st == MPL_OK)
        check_record(&c);
    if (*c.at != '\0')
        refuse(&c, "all is refuted, and the text goes on; characters left", (int64_t)strlen(c.at));
    *out = (mpl_certified){MPL_EVIDENCE_REFUTATION, proof->pool, proof->within + 1, c.n_read};
    while (c.n_open > 0)
        mpl_free(ctx, c.open[--c.n_open].item);
    while (c.n_numbered > 0)
        mpl_free(ctx, c.numbered[--c.n_numbered].item);
    void *arrays[] = {c.item, c.scratch, c.open, c.numbered, c.sum};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
        mpl_free(ctx, arrays[k]);
    return c.st;
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
    if (plan->claim == MPL_INFEASIBLE && out->bound <= p->pool_capacity[out->pool])
        MPL_FAIL(ctx, MPL_EINVALID, "the plan claims that there is none, and no certificate proves it");
    if (placed && (plan->claim == MPL_OPTIMAL || proof->steps != NULL) &&
        (out->pool != 0 ? 0 : out->bound) < plan->bound_bytes)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "the plan claims that %" PRIu64 " bytes are needed, and no certificate proves it",
                 plan->bound_bytes);
out:
    return st;
}
