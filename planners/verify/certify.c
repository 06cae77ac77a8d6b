/* certify.c -- the checker of certificates. See certify.h. CERTIFICATES.md defines each record and
 * why it is sound.
 *
 * Source   this project */
#include "planners/verify/certify.h"

#include <stdlib.h>

#define MOST      (UINT64_C(1) << 60) /* bytes of a pool, and numbers in a text */
#define BEYOND    (INT64_C(1) << 61)  /* an est above every top */
#define MOST_SUMS (INT64_C(1) << 18)  /* of one record 'r' */
#define MOST_KEPT (1u << 23)          /* buffers in all states kept at a time */
/* allowed work of a text: steps for each byte, times the bits of the size */
#define STEPS_PER_BYTE 128

typedef struct item {
    mpl_buffer id, body, next; /* buffers of one body share their offset; next: ring of the body */
    bool active;
    /* candidate of the last split; marked: in a kept state, a refuted one */
    bool candidate, marked;
    int64_t est, top, size, align;
} item;

/* A kept state: to return to at each child of a split, or under a number. */
typedef struct kept {
    enum { SPLIT, PAIR, NUMBER } kind;
    item *item;              /* [n] */
    int64_t set, n_left;     /* children of a split; PAIR: n_left 1: the two lie apart */
    mpl_buffer a, b;         /* SPLIT: the current child (MPL_NONE: 'nobody'); PAIR: the two */
    bool refuted;            /* SPLIT: child 'nobody' is refuted; NUMBER: the state is */
    size_t n_joined, number; /* PAIR: joined count before; NUMBER: its number */
} kept;

typedef struct list {
    kept *at;
    size_t n, room;
} list;

typedef struct partner {
    mpl_buffer of, with;
    uint32_t apart; /* open splits on the pair that are at their second child */
} partner;

typedef struct checker {
    mpl_ctx *ctx;
    mpl_status st; /* the first fault */
    const mpl_problem *p;
    item *item; /* [n] the current state */
    const char *at;
    uint64_t n_read, steps_left;
    int64_t number[3];
    bool waiting; /* for a child of the last split */
    bool moved;   /* split by b, or put at the top: pairs no longer matter to the state */
    list open, numbered;
    uint64_t *set; /* [n_sets * n_words] its buffers, active or not */
    size_t n_sets, n_words, set_room;
    uint64_t *joined; /* [n_joined] set * n + buffer, in the order of the records c */
    size_t n_joined, joined_room;
    partner *partner;        /* both ways, ascending */
    uint32_t *partner_begin; /* [n + 1] */
    item **member;           /* [n_members] scratch: active members of a set */
    uint32_t n_members;
    item *scratch; /* [n] */
    uint64_t *sum; /* [MOST_SUMS / 64] bits: this sum exists */
} checker;

/* Keeps the first fault: the reason, and the number it is about. */
static void refuse(checker *c, const char *why, int64_t about)
{
    if (c->st == MPL_OK)
        c->st = MPL_ERROR(c->ctx, MPL_EINVALID,
                          "the refutation is wrong at record %" PRIu64 ": %s %" PRId64, c->n_read,
                          why, about);
}

/* Counts work, which the size of the text limits. */
static item *spend(checker *c, uint64_t steps)
{
    if (steps > c->steps_left)
        refuse(c, "more work than its size allows; characters left", (int64_t)strlen(c->at));
    c->steps_left -= steps < c->steps_left ? steps : c->steps_left;
    return c->item;
}

#define DIGIT(letter) ((letter) >= '0' && (letter) <= '9')
#define foreach(c, i)                                                                              \
    for (item *i = spend(c, (c)->p->n); (c)->st == MPL_OK && i < (c)->item + (c)->p->n; i++)

static partner *find_partner(const checker *c, mpl_buffer a, mpl_buffer b)
{
    uint32_t low = c->partner_begin[a], high = c->partner_begin[a + 1];

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (c->partner[mid].with == b)
            return &c->partner[mid];
        if (c->partner[mid].with < b)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Whether a and b must not overlap: in conflict, and no in-place pair unless it was split apart. */
static bool rivals(checker *c, const item *i, const item *j)
{
    const uint32_t *gaps = c->p->gap_begin;
    mpl_buffer a = i->id, b = j->id;
    const partner *pair;

    spend(c, 1 + (gaps != NULL ? gaps[a + 1] - gaps[a] + gaps[b + 1] - gaps[b] : 0));
    if (!mpl_verify_conflict(c->p, a, b))
        return false;
    pair = find_partner(c, a, b);
    return pair == NULL || pair->apart > 0;
}

static bool in_set(const checker *c, mpl_buffer id, int64_t set)
{
    return set < (int64_t)c->n_sets && mpl_bit_has(c->set + (size_t)set * c->n_words, id);
}

/* member[] = the active members of a set. */
static void find_members(checker *c, int64_t set)
{
    c->n_members = 0;
    spend(c, c->n_words);
    for (size_t w = 0; set < (int64_t)c->n_sets && w < c->n_words; w++)
        for (uint64_t rest = c->set[(size_t)set * c->n_words + w]; rest != 0; rest &= rest - 1) {
            item *i = &c->item[w * 64 + (size_t)__builtin_ctzll(rest)];

            if (i->active)
                c->member[c->n_members++] = i;
        }
    spend(c, c->n_members);
}

/* Distance that an upper body keeps from a lower one: the largest lower buffer with a conflict in
 * the upper body; 0: none. */
static int64_t distance(checker *c, const item *lower, const item *upper)
{
    int64_t most = 0;
    const item *i = lower, *j = upper;

    do {
        do {
            if (i->active && j->active && i->size > most && rivals(c, i, j))
                most = i->size;
            j = &c->item[j->next];
        } while (j != upper);
        i = &c->item[i->next];
    } while (i != lower && c->st == MPL_OK);
    return most;
}

/* Raises the est of all of i's body. */
static void raise_est(checker *c, item *i, int64_t est)
{
    item *j = i;

    est = est > BEYOND ? BEYOND : (est + i->align - 1) / i->align * i->align;
    do {
        j->est = est > j->est ? est : j->est;
        j = &c->item[j->next];
    } while (j != i);
}

/* Appends the current state to a list. */
static void keep(checker *c, list *l, kept k)
{
    if ((c->open.n + c->numbered.n) * c->p->n > MOST_KEPT)
        refuse(c, "too many states to keep:", (int64_t)(c->open.n + c->numbered.n));
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
            grain = c->p->align[queue[k].id]; /* a power of two, so it divides the others */
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
    int64_t set = c->number[1];
    const item *i = &c->item[c->number[0]];

    if (set > (int64_t)c->n_sets) {
        refuse(c, "out of turn: set", set);
        return;
    }
    if (set == (int64_t)c->n_sets &&
        (c->st = mpl_reserve(c->ctx, c->set, c->set_room, (c->n_sets + 1) * c->n_words)) == MPL_OK)
        memset(c->set + c->n_sets++ * c->n_words, 0, c->n_words * sizeof *c->set);
    if (c->st != MPL_OK ||
        (c->st = mpl_reserve(c->ctx, c->joined, c->joined_room, c->n_joined + 1)) != MPL_OK)
        return;
    spend(c, c->n_words);
    for (size_t w = 0; w < c->n_words; w++)
        for (uint64_t rest = c->set[(size_t)set * c->n_words + w]; rest != 0; rest &= rest - 1)
            if (!rivals(c, i, &c->item[w * 64 + (size_t)__builtin_ctzll(rest)]))
                refuse(c, "no rival of all of its set: buffer", i->id);
    mpl_bit_add(c->set + (size_t)set * c->n_words, i->id);
    c->joined[c->n_joined++] = (uint64_t)set * c->p->n + i->id;
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

/* Adds a buffer of `by` units to the n sums. */
static void add_sums(checker *c, int64_t by, int64_t n)
{
    int64_t skip = by / 64, last = (n - 1) / 64;
    unsigned shift = (unsigned)(by % 64);

    spend(c, (uint64_t)last + 1);
    for (int64_t w = last; w >= skip; w--) {
        c->sum[w] |= c->sum[w - skip] << shift;
        if (shift > 0 && w > skip)
            c->sum[w] |= c->sum[w - skip - 1] >> (64 - shift);
    }
}

/* Whether a sum lies in [from, to]. */
static bool has_sum(checker *c, int64_t from, int64_t to)
{
    spend(c, from <= to ? (uint64_t)(to - from) / 64 + 1 : 0);
    for (int64_t s = from; s <= to; s = (s / 64 + 1) * 64) {
        uint64_t word = c->sum[s / 64] >> (s % 64) << (s % 64);

        if (to / 64 == s / 64 && to % 64 < 63)
            word &= (UINT64_C(1) << (to % 64 + 1)) - 1;
        if (word != 0)
            return true;
    }
    return false;
}

static int by_end(const void *a, const void *b)
{
    const item *i = *(item *const *)a, *j = *(item *const *)b;
    int64_t x = i->est + i->size, y = j->est + j->size;

    return x != y ? (x > y) - (x < y) : (i->id > j->id) - (i->id < j->id);
}

static void rule_fill(checker *c)
{
    item *x = &c->item[c->number[0]];
    int64_t est = c->number[2], floor = BEYOND, rest = 0, highest = 0, unit = 0, n_sums, high;
    uint32_t n = 0;

    find_members(c, c->number[1]);
    for (uint32_t k = 0; k < c->n_members; k++) {
        item *i = c->member[k];

        rest += i->size;
        floor = i->est < floor ? i->est : floor;
        highest = i->top + i->size > highest ? i->top + i->size : highest;
        if (i != x && i->est + i->size < est) {
            unit = divisor(i->size, unit);
            c->member[n++] = i;
        }
    }
    unit = unit > 0 ? unit : (int64_t)MOST; /* no buffer fits below: 0 is the only sum */
    n_sums = est > floor ? (est - 1 - floor) / unit + 1 : 1;
    if (!in_set(c, x->id, c->number[1]) || n_sums > MOST_SUMS) {
        refuse(c, "not there, or too many sums: buffer", x->id);
        return;
    }
    qsort(c->member, n, sizeof *c->member, by_end);
    memset(c->sum, 0, (size_t)(n_sums + 63) / 64 * sizeof *c->sum);
    c->sum[0] = 1;
    /* For offsets in [low, high) the same buffers fit below. */
    for (int64_t low = x->est, k = 0; low < est && c->st == MPL_OK; low = high) {
        int64_t from = low + rest - highest;

        for (; k < n && c->member[k]->est + c->member[k]->size <= low; k++)
            add_sums(c, c->member[k]->size / unit, n_sums);
        high = k < n ? c->member[k]->est + c->member[k]->size : est;
        if (has_sum(c, from > 0 ? (from + unit - 1) / unit : 0, (high - 1 - floor) / unit))
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
        i->top = i->top > u.top - i->size + u.size ? i->top - u.size
                                                   : u.top - i->size; /* above u, or below */
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

    find_members(c, k.set);
    for (uint32_t m = 0; m < c->n_members; m++)
        floor = c->member[m]->est < floor ? c->member[m]->est : floor;
    foreach (c, i)
        i->candidate = false;
    for (uint32_t m = 0; m < c->n_members; m++)
        c->member[m]->candidate = c->member[m]->est == floor;
    keep(c, &c->open, k);
    c->waiting = c->moved = true;
}

static void rule_pair(checker *c)
{
    item *a = &c->item[c->number[0]], *b = &c->item[c->number[1]], was = *b;
    kept k = {PAIR,
              .n_left = 2,
              .a = a->id,
              .b = b->id,
              .n_joined = c->n_joined,
              .number = c->numbered.n};
    mpl_buffer next = a->next;

    if (c->moved)
        refuse(c, "too late for a word on the pair of buffer", k.a);
    keep(c, &c->open, k);
    was.top = a->top < b->top ? a->top : b->top;
    was.align = a->align > b->align ? a->align : b->align;
    if (a->body != b->body)
        a->next = b->next, b->next = next; /* joins two rings */
    foreach (c, i)
        if (i->body == a->body || i->body == was.body) {
            i->body = a->body;
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
        if (j->active && j->body != i->body && j->est + distance(c, j, i) > i->est)
            raise_est(c, j, i->est + distance(c, i, j));
    foreach (c, j)
        j->active = j->active && j->body != i->body;
}

static void rule_nobody(checker *c)
{
    kept *split = &c->open.at[c->open.n - 1];
    /* the items' own est; est of candidates becomes their outside */
    item *own = memcpy(c->scratch, c->item, c->p->n * sizeof *c->item);

    for (int inside = 0; inside < 2; inside++)
        foreach (c, i) {
            int64_t least = inside ? own[i->id].est : BEYOND;

            if (!i->candidate)
                continue;
            foreach (c, j) {
                bool counts = j->active && in_set(c, j->id, split->set) == inside;
                int64_t end = own[j->id].est + (counts ? distance(c, j, i) : 0);

                least = end > own[j->id].est && end < least ? end : least;
            }
            if (inside)
                raise_est(c, i, least);
            else
                own[i->id].est = least;
        }
    split->a = MPL_NONE;
    c->waiting = false;
}

/* Whether i and j, at one est, are interchangeable. */
static bool twins(checker *c, const item *i, const item *j)
{
    if (i->next != i->id || j->next != j->id || i->size != j->size || i->align != j->align ||
        i->est != j->est || i->top != j->top)
        return false;
    foreach (c, k)
        if (k->id != i->id && k->id != j->id && k->active && rivals(c, i, k) != rivals(c, j, k))
            return false;
    return true;
}

/* Drops what was derived while a pair shared its offset or lay apart: it may not hold otherwise. */
static void forget_since(checker *c, const kept *pair)
{
    while (c->n_joined > pair->n_joined) {
        uint64_t at = c->joined[--c->n_joined];

        mpl_bit_drop(c->set + at / c->p->n * c->n_words, (uint32_t)(at % c->p->n));
    }
    for (size_t i = pair->number; i < c->numbered.n; i++)
        c->numbered.at[i].refuted = false;
}

/* From the first child of s to the second; after the second, out of the split. */
static void next_of_pair(checker *c, kept *k)
{
    partner *there = find_partner(c, k->a, k->b), *back = find_partner(c, k->b, k->a);

    c->moved = false;
    forget_since(c, k);
    if (there != NULL && k->n_left > 0)
        there->apart++, back->apart++;
    else if (there != NULL)
        there->apart--, back->apart--;
}

/* Goes to the next child of a split, or ends it. */
static void next_child(checker *c, kept *k)
{
    c->waiting = --k->n_left > 0 && k->kind == SPLIT;
    if (k->kind == PAIR) {
        next_of_pair(c, k);
        return;
    }
    k->refuted = k->refuted || k->a == MPL_NONE;
    foreach (c, i) {
        item *seen = &k->item[i->id];

        if (i->candidate && !seen->marked && k->a != MPL_NONE)
            seen->marked = i->body == c->item[k->a].body || twins(c, i, &c->item[k->a]);
        if (k->n_left <= 0 && (!k->refuted || (i->candidate && !seen->marked)))
            refuse(c, "a child is missing in the split of set", k->set);
    }
}

/* Refutes the current state and those it came from, up to the first split with children left. */
static void close_state(checker *c)
{
    for (; c->st == MPL_OK && c->open.n > 0; mpl_free(c->ctx, c->open.at[--c->open.n].item)) {
        kept *k = &c->open.at[c->open.n - 1];

        memcpy(spend(c, c->p->n), k->item, c->p->n * sizeof *k->item);
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

    find_members(c, set);
    for (uint32_t k = 0; k < c->n_members; k++)
        sum += c->member[k]->est >= least ? c->member[k]->size : 0;
    for (uint32_t k = 0; k < c->n_members; k++)
        if (c->member[k]->est >= least && least + sum - c->member[k]->size <= c->member[k]->top)
            refuse(c, "there is room in set", set);
    if (sum == 0)
        refuse(c, "nobody is in set", set);
}

static void rule_passed(checker *c)
{
    const item *i = &c->item[c->number[0]], *j = i;

    do {
        if (j->active && rivals(c, i, j))
            return;
        j = &c->item[j->next];
    } while (j != i);
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
    int n_numbers, n_buffers;          /* numbers come first, then buffers */
    enum { STATE, CHILD, LEAF } place; /* where the record may stand */
    void (*apply)(checker *c);
} rules[] = {
    {'d', 1, 1, STATE, rule_drop},   {'o', 1, 1, STATE, rule_connected},
    {'c', 2, 1, STATE, rule_set},    {'s', 2, 2, STATE, rule_pair},
    {'b', 2, 0, STATE, rule_split},  {'p', 1, 1, CHILD, rule_place},
    {'n', 0, 0, CHILD, rule_nobody}, {'r', 3, 1, STATE, rule_fill},
    {'u', 1, 1, STATE, rule_top},    {'x', 2, 1, LEAF, rule_load},
    {'z', 1, 1, LEAF, rule_passed},  {'k', 0, 0, STATE, rule_number},
    {'m', 1, 0, LEAF, rule_same},    {'\0', 0, 0, STATE, NULL},
};

/* Checks a record. Returns whether it is the last. */
static bool check_record(checker *c)
{
    const struct rule *rule = rules;
    int n = 0;

    c->n_read++;
    while (rule->kind != '\0' && rule->kind != *c->at)
        rule++;
    c->at += rule->kind != '\0';
    for (; n < rule->n_numbers && (n == 0 || *c->at == ',') && DIGIT(c->at[n > 0]); n++)
        for (c->number[n] = 0, c->at += n > 0; DIGIT(*c->at) && c->number[n] < (int64_t)MOST / 16;
             c->at++)
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

/* The initial state: all buffers of the pool fit into that many bytes. *ample: a height in which
 * whatever fits at all does fit. */
static void first_state(checker *c, const mpl_refutation *proof, uint64_t *ample)
{
    const mpl_problem *p = c->p;
    bool countable = p->n > 0 && proof->pool < p->n_pools && proof->within < MOST;
    uint64_t sum = proof->within;

    for (mpl_buffer b = 0; b < p->n && countable; b++) {
        bool fixed = p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
        uint64_t est = fixed ? p->fixed[b] : 0;
        int64_t top = (int64_t)(proof->within - p->bytes[b]);

        countable =
            p->bytes[b] < MOST && est < MOST && (sum += p->bytes[b] + est + p->align[b]) < MOST;
        top = fixed && (int64_t)est < top ? (int64_t)est : top;
        c->item[b] = (item){.id = b,
                            .body = b,
                            .next = b,
                            .active = p->pool[b] == proof->pool,
                            .align = p->align[b]};
        c->item[b].size = (int64_t)p->bytes[b], c->item[b].est = (int64_t)est, c->item[b].top = top;
    }
    *ample = sum - proof->within;
    if (!countable)
        refuse(c, "it needs buffers, and less than 2^60 bytes, in pool", proof->pool);
}

static int by_couple(const void *a, const void *b)
{
    const partner *x = a, *y = b;

    return x->of != y->of ? (x->of > y->of) - (x->of < y->of)
                          : (x->with > y->with) - (x->with < y->with);
}

static mpl_status find_partners(checker *c)
{
    const mpl_problem *p = c->p;

    MPL_PASS(mpl_new(c->ctx, c->partner, 2 * (size_t)p->n_in_place));
    MPL_PASS(mpl_new(c->ctx, c->partner_begin, p->n + (size_t)1));
    for (uint32_t k = 0; k < p->n_in_place; k++) {
        c->partner[2 * k] = (partner){p->in_place_in[k], p->in_place_out[k], 0};
        c->partner[2 * k + 1] = (partner){p->in_place_out[k], p->in_place_in[k], 0};
    }
    qsort(c->partner, 2 * (size_t)p->n_in_place, sizeof *c->partner, by_couple);
    for (uint32_t k = 0; k < 2 * p->n_in_place; k++)
        c->partner_begin[c->partner[k].of + 1] = k + 1;
    for (mpl_buffer b = 0; b < p->n; b++)
        if (c->partner_begin[b + 1] < c->partner_begin[b])
            c->partner_begin[b + 1] = c->partner_begin[b];
    return MPL_OK;
}

/* Bytes of problem and text, times their logarithm, times a constant. */
static uint64_t most_steps(const mpl_problem *p, const char *steps)
{
    uint64_t gaps = p->gap_begin != NULL ? p->gap_begin[p->n] : 0;
    uint64_t size = strlen(steps) + 64 * (uint64_t)p->n + 16 * (p->n_in_place + gaps), log = 1;

    while (size >> log != 0)
        log++;
    return STEPS_PER_BYTE * size * log;
}

static mpl_status open_checker(mpl_ctx *ctx, const mpl_problem *p, const char *steps, checker *c)
{
    *c = (checker){.ctx = ctx, .p = p, .at = steps, .steps_left = most_steps(p, steps)};
    c->n_words = p->n / 64 + (p->n % 64 != 0);
    MPL_PASS(mpl_new_each(ctx, p->n, c->item, c->scratch, c->member));
    MPL_PASS(mpl_new(ctx, c->sum, MOST_SUMS / 64));
    return find_partners(c);
}

static void close_checker(checker *c)
{
    list *lists[] = {&c->open, &c->numbered};

    for (int k = 0; k < 2; k++)
        while (lists[k]->n > 0)
            mpl_free(c->ctx, lists[k]->at[--lists[k]->n].item);
    mpl_free_each(c->ctx, c->open.at, c->numbered.at, c->set, c->joined, c->partner,
                  c->partner_begin, c->item, c->scratch, c->member, c->sum);
}

static mpl_status check_text(mpl_ctx *ctx, const mpl_problem *p, const mpl_refutation *proof,
                             mpl_certified *out)
{
    checker c;
    uint64_t ample = 0;

    c.st = open_checker(ctx, p, proof->steps, &c);
    if (c.st == MPL_OK)
        first_state(&c, proof, &ample);
    while (c.st == MPL_OK && !check_record(&c))
        ;
    if (c.st == MPL_OK && *c.at != '\0')
        refuse(&c, "all is refuted, and the text goes on; characters left", (int64_t)strlen(c.at));
    if (c.st == MPL_OK)
        *out = (mpl_certified){MPL_EVIDENCE_REFUTATION, proof->pool,
                               proof->within >= ample ? UINT64_MAX : proof->within + 1, c.n_read};
    close_checker(&c);
    return c.st;
}

/* Least cost: each buffer of pool 0 lies in the cheapest memory with room for it. */
static uint64_t least_cost(const mpl_problem *p, const mpl_spread *spread)
{
    uint64_t cost = 0;

    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t price = UINT64_MAX;

        for (uint32_t k = 0; k < spread->n; k++)
            if (p->pool[b] == 0 && spread->capacity[k] >= p->bytes[b] && spread->price[k] < price)
                price = spread->price[k];
        cost += p->pool[b] == 0 ? price * p->bytes[b] : 0; /* at most the plan's checked cost */
    }
    return cost;
}

/* What a placed plan over several memories proves of its cost; records cover only one memory. */
static void price(const mpl_problem *p, const mpl_plan *plan, mpl_certified *out)
{
    uint64_t cost = least_cost(p, &plan->spread);

    if (cost > 0 && cost >= plan->spread.cost_bound)
        *out = (mpl_certified){MPL_EVIDENCE_PRICES, 0, cost, 0};
}

/* Whether the proof covers the whole claim. */
static bool covers(const mpl_certified *proved, const mpl_problem *p, const mpl_plan *plan)
{
    if (plan->claim == MPL_INFEASIBLE)
        return proved->bound == UINT64_MAX || proved->bound > p->pool_capacity[proved->pool];
    if (plan->claim == MPL_OPTIMAL && plan->spread.n > 0)
        return least_cost(p, &plan->spread) >= plan->spread.cost_bound;
    if (plan->claim == MPL_OPTIMAL ||
        (plan->claim == MPL_FEASIBLE && plan->refutation.steps != NULL))
        return (proved->pool == 0 ? proved->bound : 0) >= plan->bound_bytes;
    return true;
}

mpl_status mpl_certify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, mpl_certified *out)
{
    const mpl_refutation *proof = &plan->refutation;
    bool placed = plan->claim == MPL_FEASIBLE || plan->claim == MPL_OPTIMAL;

    *out = (mpl_certified){0};
    MPL_PASS(mpl_problem_check(ctx, p));
    if (placed)
        MPL_PASS(mpl_verify(ctx, p, plan)); /* checks the clique, and for optimal: peak = bound */
    if (proof->steps != NULL && plan->spread.n > 0 && proof->pool == 0)
        return MPL_ERROR(
            ctx, MPL_EINVALID,
            "no certificate proves what the plan claims: a refutation speaks of one memory, "
            "and pool 0 "
            "lies in %" PRIu32,
            plan->spread.n);
    if (proof->steps != NULL)
        MPL_PASS(check_text(ctx, p, proof, out));
    else if (placed && plan->spread.n > 0)
        price(p, plan, out);
    else if (placed && plan->n_witness > 0)
        *out = (mpl_certified){MPL_EVIDENCE_CLIQUE, 0, plan->bound_bytes, 0};
    if (!covers(out, p, plan))
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "no certificate proves what the plan claims: %s, a bound of %" PRIu64
                         " %s",
                         mpl_claim_name(plan->claim),
                         plan->spread.n > 0 ? plan->spread.cost_bound : plan->bound_bytes,
                         plan->spread.n > 0 ? "on its cost" : "bytes");
    return MPL_OK;
}
