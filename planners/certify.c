/* certify.c -- the checker of certificates. See certify.h; proof.h says what each record means and why it is sound.
 *
 * Source   this project */
#include "planners/certify.h"

#define MOST      (UINT64_C(1) << 60) /* bytes of a pool, and numbers in a text */
#define BEYOND    (INT64_C(1) << 61)  /* an est that no top reaches */
#define MOST_SUMS (INT64_C(1) << 18)  /* of one record 'r' */
#define MOST_KEPT (1u << 23)          /* buffers of all states and sets that are kept at a time */

typedef struct item {
    mpl_buffer id, body;           /* buffers of one body share their offset */
    uint32_t pair_begin, pair_end; /* the pairs with it are among these of the problem */
    bool active, shared;           /* shared: others are of its body */
    bool candidate, marked;        /* of the last split; in what is kept: a refuted one, or one of the set */
    int64_t est, top, size, align;
} item;

/* A state that is kept: to go back to at each child of a split, or under a number. Or a set. */
typedef struct kept {
    enum { SPLIT, PAIR, NUMBER } kind;
    item *item;            /* [n] */
    int64_t set, n_left;   /* of a split's children; PAIR: 1 left: the two lie apart */
    mpl_buffer a, b;       /* SPLIT: the child at work (MPL_NONE: nobody); PAIR: the two */
    bool refuted;          /* nobody; the numbered state */
    size_t n_sets, number; /* PAIR: how many there were; NUMBER: which */
} kept;

typedef struct list {
    kept *at;
    size_t n, room;
} list;

typedef struct checker {
    mpl_ctx *ctx;
    mpl_status st; /* the first fault */
    const mpl_problem *p;
    item *item; /* [n] the state at hand */
    const char *at;
    uint64_t n_read;
    int64_t number[3];
    bool waiting; /* for a child of the last split */
    bool moved;   /* split by b, or put at the top: pairs no longer matter to the state */
    list open, numbered, sets;
    item *scratch; /* [n] */
    char *sum;     /* [MOST_SUMS] 1: such a sum exists */
} checker;

/* Keeps the first fault: what is wrong at the record, and the number it is about. */
static void refuse(checker *c, const char *why, int64_t about)
{
    if (c->st == MPL_OK)
        c->st = mpl_fail(c->ctx, MPL_EINVALID, __FILE__, __LINE__,
                         "the refutation is wrong at record %" PRIu64 ": %s %" PRId64, c->n_read, why, about);
}

#define DIGIT(letter) ((letter) >= '0' && (letter) <= '9')
#define foreach(c, i) for (item *i = (c)->item; i < (c)->item + (c)->p->n; i++)

/* Whether a and b conflict, and are no pair or one that lies apart. */
static bool rivals(const checker *c, const item *i, const item *j)
{
    const mpl_problem *p = c->p;
    mpl_buffer a = i->id, b = j->id;
    bool pair = false;

    if (!mpl_verify_conflict(p, a, b))
        return false;
    for (uint32_t k = i->pair_begin; k < i->pair_end; k++)
        pair = pair || (p->in_place_in[k] == a && p->in_place_out[k] == b) ||
               (p->in_place_in[k] == b && p->in_place_out[k] == a);
    for (const kept *k = c->open.at; pair && k != NULL && k < c->open.at + c->open.n; k++)
        pair = k->kind != PAIR || k->n_left != 1 || ((k->a != a || k->b != b) && (k->a != b || k->b != a));
    return !pair;
}

static bool in_set(const checker *c, const item *i, int64_t set)
{
    return i->active && set < (int64_t)c->sets.n && c->sets.at[set].item[i->id].marked;
}

/* What an upper body keeps from a lower one: the largest there that has a rival here; 0: nothing. */
static int64_t distance(const checker *c, const item *lower, const item *upper)
{
    int64_t most = 0;

    if (!lower->shared && !upper->shared)
        return rivals(c, lower, upper) ? lower->size : 0;
    foreach (c, i)
        for (item *j = c->item; i->body == lower->body && i->active && j < c->item + c->p->n; j++)
            if (j->body == upper->body && j->active && i->size > most && rivals(c, i, j))
                most = i->size;
    return most;
}

/* With its body. */
static void raise_est(checker *c, item *i, int64_t est)
{
    est = est > BEYOND ? BEYOND : (est + i->align - 1) / i->align * i->align;
    i->est = est > i->est ? est : i->est;
    if (i->shared)
        foreach (c, j)
            j->est = j->body == i->body && est > j->est ? est : j->est;
}

/* Keeps the state at hand at the end of a list. */
static void keep(checker *c, list *l, kept k)
{
    if ((c->open.n + c->numbered.n + c->sets.n) * c->p->n > MOST_KEPT)
        refuse(c, "too many states and sets to keep:", (int64_t)(c->open.n + c->numbered.n + c->sets.n));
    if (c->st == MPL_OK && (c->st = mpl_reserve(c->ctx, l->at, l->room, l->n + 1)) == MPL_OK &&
        (c->st = mpl_new(c->ctx, k.item, c->p->n)) == MPL_OK) {
        foreach (c, i)
            k.item[i->id] = *i, k.item[i->id].marked = false;
        l->at[l->n++] = k;
    }
}

static void rule_drop(checker *c)
{
    c->item[c->number[0]].active = false;
}

static void rule_connected(checker *c)
{
    item *queue = c->scratch;
    int64_t grain = BEYOND;
    uint32_t n = 0;

    queue[n++] = c->item[c->number[0]];
    c->item[c->number[0]].active = false;
    for (uint32_t k = 0; k < n; k++) {
        if (c->p->align[queue[k].id] < grain)
            grain = c->p->align[queue[k].id]; /* a power of two: it divides the others */
        foreach (c, i)
            if (i->active && (i->body == queue[k].body || rivals(c, i, &queue[k]))) {
                queue[n++] = *i;
                i->active = false;
            }
    }
    foreach (c, i)
        i->active = false;
    while (n-- > 0) {
        queue[n].size = c->moved ? queue[n].size : (queue[n].size + grain - 1) / grain * grain;
        c->item[queue[n].id] = queue[n];
    }
}

static void rule_set(checker *c)
{
    int64_t id = c->number[0], set = c->number[1];

    if (set == (int64_t)c->sets.n)
        keep(c, &c->sets, (kept){0});
    if (set >= (int64_t)c->sets.n)
        refuse(c, "out of turn: set", set);
    for (uint32_t i = 0; c->st == MPL_OK && i < c->p->n; i++)
        if (c->sets.at[set].item[i].marked && !rivals(c, &c->item[i], &c->item[id]))
            refuse(c, "no rival of all of its set: buffer", id);
    if (c->st == MPL_OK)
        c->sets.at[set].item[id].marked = true;
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

static void rule_fill(checker *c)
{
    item *x = &c->item[c->number[0]];
    int64_t set = c->number[1], est = c->number[2], high;
    int64_t floor = BEYOND, rest = 0, highest = 0, unit = 0, n_sums;

    foreach (c, i) {
        if (!in_set(c, i, set))
            continue;
        rest += i->size;
        floor = i->est < floor ? i->est : floor;
        highest = i->top + i->size > highest ? i->top + i->size : highest;
        unit = i != x && i->est + i->size < est ? divisor(i->size, unit) : unit;
    }
    unit = unit > 0 ? unit : (int64_t)MOST; /* nobody fits below: 0 is the only sum */
    n_sums = est > floor ? (est - 1 - floor) / unit + 1 : 1;
    if (!in_set(c, x, set) || n_sums > MOST_SUMS)
        refuse(c, "not there, or too many sums: buffer", x->id);
    for (int64_t low = x->est; low < est && c->st == MPL_OK;
         low = high) { /* offsets [low, high) have the same buffers below */
        int64_t from = low + rest - highest, to;

        high = est;
        memset(c->sum, 0, (size_t)n_sums);
        c->sum[0] = 1;
        foreach (c, i) {
            int64_t end = i != x && in_set(c, i, set) ? i->est + i->size : BEYOND, by = i->size / unit;

            high = end > low && end < high ? end : high;
            for (int64_t s = n_sums - 1; end <= low && s >= by; s--)
                c->sum[s] |= c->sum[s - by];
        }
        from = from > 0 ? (from + unit - 1) / unit : 0;
        to = (high - 1 - floor) / unit;
        if (from <= to && memchr(c->sum + from, 1, (size_t)(to - from + 1)) != NULL)
            refuse(c, "there is room lower for buffer", x->id);
    }
    raise_est(c, x, est);
}

static void rule_top(checker *c)
{
    item u = c->item[c->number[0]];

    c->moved = true;
    foreach (c, i) {
        i->active = i->active && rivals(c, &u, i);
        if (i->active && (i->est > u.est || u.size % i->align != 0))
            refuse(c, "the top is not for buffer", u.id);
        i->top =
            i->top > u.top - i->size + u.size ? i->top - u.size : u.top - i->size; /* above u now, or below */
    }
}

static void rule_number(checker *c)
{
    kept k = {.kind = NUMBER, .number = c->numbered.n};

    keep(c, &c->numbered, k);
    keep(c, &c->open, k);
}

static void rule_split(checker *c)
{
    kept k = {.kind = SPLIT, .set = c->number[0], .n_left = c->number[1]};
    int64_t floor = BEYOND;

    foreach (c, i)
        floor = in_set(c, i, k.set) && i->est < floor ? i->est : floor;
    foreach (c, i)
        i->candidate = in_set(c, i, k.set) && i->est == floor;
    keep(c, &c->open, k);
    c->waiting = c->moved = true;
}

static void rule_pair(checker *c)
{
    item *a = &c->item[c->number[0]], *b = &c->item[c->number[1]], was = *b;
    kept k = {PAIR, .n_left = 2, .a = a->id, .b = b->id, .n_sets = c->sets.n, .number = c->numbered.n};

    if (c->moved)
        refuse(c, "too late for a word on the pair of buffer", k.a);
    keep(c, &c->open, k);
    was.top = a->top < b->top ? a->top : b->top;
    was.align = a->align > b->align ? a->align : b->align;
    foreach (c, i)
        if (i->body == a->body || i->body == was.body) {
            i->body = a->body;
            i->shared = true;
            i->top = was.top;
            i->align = was.align;
        }
    raise_est(c, a, was.est > a->est ? was.est : a->est);
}

static void rule_place(checker *c)
{
    item *i = &c->item[c->number[0]];

    c->open.at[c->open.n - 1].a = i->id;
    c->waiting = false;
    foreach (c, j)
        if (j->active && j->body != i->body && j->est + distance(c, j, i) > i->est && distance(c, i, j) > 0)
            raise_est(c, j, i->est + distance(c, i, j));
    foreach (c, j)
        j->active = j->active && j->body != i->body;
}

static void rule_nobody(checker *c)
{
    kept *split = &c->open.at[c->open.n - 1];
    item *own = memcpy(c->scratch, c->item, c->p->n * sizeof *c->item); /* est of candidates: their outside */

    for (int inside = 0; inside < 2; inside++)
        foreach (c, i) {
            int64_t least = inside ? own[i->id].est : BEYOND;

            foreach (c, j) {
                bool counts = i->candidate && j->active && in_set(c, j, split->set) == inside;
                int64_t end = own[j->id].est + (counts ? distance(c, j, i) : 0);

                least = end > own[j->id].est && end < least ? end : least;
            }
            if (i->candidate && inside)
                raise_est(c, i, least);
            else if (i->candidate)
                own[i->id].est = least;
        }
    split->a = MPL_NONE;
    c->waiting = false;
}

/* Whether i and j, at one est, may change places. */
static bool twins(const checker *c, const item *i, const item *j)
{
    foreach (c, k)
        if (k->id != i->id && k->id != j->id && k->active && rivals(c, i, k) != rivals(c, j, k))
            return false;
    return !i->shared && !j->shared && i->size == j->size && i->align == j->align && i->est == j->est &&
           i->top == j->top;
}

/* Another child of a split, or none. What was found of rivals while a pair shared its offset need not be so when it does not. */
static void next_child(checker *c, kept *k)
{
    c->waiting = --k->n_left > 0 && k->kind == SPLIT;
    if (k->kind == PAIR) {
        c->moved = false;
        for (size_t i = k->n_sets; i < c->sets.n; i++)
            memset(c->sets.at[i].item, 0, c->p->n * sizeof *c->item);
        for (size_t i = k->number; i < c->numbered.n; i++)
            c->numbered.at[i].refuted = false;
        return;
    }
    k->refuted = k->refuted || k->a == MPL_NONE;
    foreach (c, i) {
        k->item[i->id].marked |= k->a != MPL_NONE && i->candidate &&
                                 (i->body == c->item[k->a].body || twins(c, i, &c->item[k->a]));
        if (k->n_left <= 0 && (!k->refuted || (i->candidate && !k->item[i->id].marked)))
            refuse(c, "a child is missing in the split of set", k->set);
    }
}

/* The state at hand is false: so is what it came from, up to the first split with children left. */
static void close_state(checker *c)
{
    for (; c->st == MPL_OK && c->open.n > 0; mpl_free(c->ctx, c->open.at[--c->open.n].item)) {
        kept *k = &c->open.at[c->open.n - 1];

        memcpy(c->item, k->item, c->p->n * sizeof *k->item);
        if (k->kind == NUMBER)
            c->numbered.at[k->number].refuted = true;
        else
            next_child(c, k);
        if (k->n_left > 0)
            return;
    }
}

static void rule_load(checker *c)
{
    int64_t sum = 0, least = c->item[c->number[0]].est, set = c->number[1];

    foreach (c, i)
        sum += in_set(c, i, set) && i->est >= least ? i->size : 0;
    foreach (c, i)
        if (sum == 0 || (in_set(c, i, set) && i->est >= least && least + sum - i->size <= i->top))
            refuse(c, "there is room in set", set);
}

static void rule_passed(checker *c)
{
    const item *i = &c->item[c->number[0]];

    foreach (c, j)
        if (j->active && j->body == i->body && rivals(c, i, j))
            return;
    if (i->est <= i->top)
        refuse(c, "there is room for buffer", c->number[0]);
}

static void rule_same(checker *c)
{
    size_t number = (size_t)c->number[0];
    bool known = number < c->numbered.n && c->numbered.at[number].refuted;

    foreach (c, i) {
        const item *then = known ? &c->numbered.at[number].item[i->id] : i;

        if (!known || (then->active && (!i->active || i->est < then->est || i->top > then->top)))
            refuse(c, "not refuted yet, or with less room for a buffer: state", c->number[0]);
    }
}

static const struct rule {
    char kind;
    int n_numbers, n_buffers;          /* which come first */
    enum { STATE, CHILD, LEAF } place; /* where it stands */
    void (*apply)(checker *c);
} rules[] = {
    {'d', 1, 1, STATE, rule_drop},   {'o', 1, 1, STATE, rule_connected}, {'c', 2, 1, STATE, rule_set},
    {'s', 2, 2, STATE, rule_pair},   {'b', 2, 0, STATE, rule_split},     {'p', 1, 1, CHILD, rule_place},
    {'n', 0, 0, CHILD, rule_nobody}, {'r', 3, 1, STATE, rule_fill},      {'u', 1, 1, STATE, rule_top},
    {'x', 2, 1, LEAF, rule_load},    {'z', 1, 1, LEAF, rule_passed},     {'k', 0, 0, STATE, rule_number},
    {'m', 1, 0, LEAF, rule_same},    {'\0', 0, 0, STATE, NULL},
};

/* Whether it is the last. */
static bool check_record(checker *c)
{
    const struct rule *rule = rules;
    int n = 0;

    c->n_read++;
    while (rule->kind != '\0' && rule->kind != *c->at)
        rule++;
    c->at += rule->kind != '\0';
    for (; n < rule->n_numbers && (n == 0 || *c->at == ',') && DIGIT(c->at[n > 0]); n++)
        for (c->number[n] = 0, c->at += n > 0; DIGIT(*c->at) && c->number[n] < (int64_t)MOST / 16; c->at++)
            c->number[n] = 10 * c->number[n] + (*c->at - '0');
    if (rule->kind == '\0' || n < rule->n_numbers || (*c->at != ' ' && *c->at != '\0'))
        refuse(c, "no letter with its numbers; characters left", (int64_t)strlen(c->at));
    else if ((rule->place == CHILD) != c->waiting)
        refuse(c, "children, all, come behind their split; states open", (int64_t)c->open.n);
    c->at += *c->at == ' ';
    for (n = 0; n < rule->n_buffers && c->st == MPL_OK; n++)
        if (c->number[n] >= c->p->n || !c->item[c->number[n]].active)
            refuse(c, "not there: buffer", c->number[n]);
    if (c->st == MPL_OK)
        rule->apply(c);
    if (c->st == MPL_OK && rule->place == LEAF)
        close_state(c);
    return rule->place == LEAF && c->open.n == 0;
}

/* The state that says: the buffers of the pool fit into so many bytes. *ample: whatever fits at all does so in so many. */
static void first_state(checker *c, const mpl_refutation *proof, uint64_t *ample)
{
    const mpl_problem *p = c->p;
    bool countable = p->n > 0 && proof->pool < p->n_pools && proof->within < MOST;
    uint64_t sum = proof->within;

    for (mpl_buffer b = 0; b < p->n && countable; b++) {
        bool fixed = p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
        uint64_t est = fixed ? p->fixed[b] : 0;
        int64_t top = (int64_t)(proof->within - p->bytes[b]);

        countable = p->bytes[b] < MOST && est < MOST && (sum += p->bytes[b] + est + p->align[b]) < MOST;
        top = fixed && (int64_t)est < top ? (int64_t)est : top;
        c->item[b] = (item){.id = b, .body = b, .active = p->pool[b] == proof->pool, .align = p->align[b]};
        c->item[b].size = (int64_t)p->bytes[b], c->item[b].est = (int64_t)est, c->item[b].top = top;
    }
    for (uint32_t k = p->n_in_place; k-- > 0;)
        c->item[p->in_place_in[k]].pair_begin = c->item[p->in_place_out[k]].pair_begin = k;
    for (uint32_t k = 0; k < p->n_in_place; k++)
        c->item[p->in_place_in[k]].pair_end = c->item[p->in_place_out[k]].pair_end = k + 1;
    *ample = sum - proof->within;
    if (!countable)
        refuse(c, "it needs buffers, and less than 2^60 bytes, in pool", proof->pool);
}

static mpl_status check_text(mpl_ctx *ctx, const mpl_problem *p, const mpl_refutation *proof,
                             mpl_certified *out)
{
    checker c = {.ctx = ctx, .p = p, .at = proof->steps};

    if ((c.st = mpl_new(ctx, c.item, p->n)) == MPL_OK && (c.st = mpl_new(ctx, c.scratch, p->n)) == MPL_OK &&
        (c.st = mpl_new(ctx, c.sum, MOST_SUMS)) == MPL_OK)
        first_state(&c, proof, &out->bound);
    while (c.st == MPL_OK && !check_record(&c))
        ;
    if (*c.at != '\0')
        refuse(&c, "all is refuted, and the text goes on; characters left", (int64_t)strlen(c.at));
    *out = (mpl_certified){MPL_EVIDENCE_REFUTATION, proof->pool,
                           proof->within >= out->bound ? UINT64_MAX : proof->within + 1, c.n_read};
    list *lists[] = {&c.open, &c.numbered, &c.sets};
    for (int k = 0; k < 3; mpl_free(ctx, lists[k++]->at))
        while (lists[k]->n > 0)
            mpl_free(ctx, lists[k]->at[--lists[k]->n].item);
    mpl_free(ctx, c.item);
    mpl_free(ctx, c.scratch);
    mpl_free(ctx, c.sum);
    return c.st;
}

mpl_status mpl_certify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, mpl_certified *out)
{
    mpl_status st = MPL_OK;
    const mpl_refutation *proof = &plan->refutation;
    bool placed = plan->claim == MPL_FEASIBLE || plan->claim == MPL_OPTIMAL;
    uint64_t proved;

    *out = (mpl_certified){0};
    MPL_TRY(mpl_problem_check(ctx, p));
    if (placed)
        MPL_TRY(mpl_verify(ctx, p, plan)); /* with the clique, and that optimal means: peak = bound */
    if (proof->steps != NULL)
        MPL_TRY(check_text(ctx, p, proof, out));
    else if (placed && plan->n_witness > 0)
        *out = (mpl_certified){MPL_EVIDENCE_CLIQUE, 0, plan->bound_bytes, 0};
    proved = placed && out->pool != 0 ? 0 : out->bound;
    if ((placed && (plan->claim == MPL_OPTIMAL || proof->steps != NULL) && proved < plan->bound_bytes) ||
        (plan->claim == MPL_INFEASIBLE && proved != UINT64_MAX && proved <= p->pool_capacity[out->pool]))
        MPL_FAIL(ctx, MPL_EINVALID,
                 "no certificate proves what the plan claims: %s, a bound of %" PRIu64 " bytes",
                 mpl_claim_name(plan->claim), plan->bound_bytes);
out:
    return st;
}
