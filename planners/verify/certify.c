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
static void refuse(checker *self, const char *why, int64_t about)
{
    if (self->st == MPL_OK)
        self->st = MPL_ERROR(self->ctx, MPL_EINVALID,
                             "the refutation is wrong at record %" PRIu64 ": %s %" PRId64,
                             self->n_read, why, about);
}

/* Counts work, which the size of the text limits. */
static item *spend(checker *self, uint64_t steps)
{
    if (steps > self->steps_left)
        refuse(self, "more work than its size allows; characters left", (int64_t)strlen(self->at));
    self->steps_left -= steps < self->steps_left ? steps : self->steps_left;
    return self->item;
}

#define DIGIT(letter) ((letter) >= '0' && (letter) <= '9')
#define foreach(c, i)                                                                              \
    for (item *i = spend(c, (c)->p->n); (c)->st == MPL_OK && i < (c)->item + (c)->p->n; i++)

static partner *find_partner(const checker *self, mpl_buffer a, mpl_buffer b)
{
    uint32_t low = self->partner_begin[a], high = self->partner_begin[a + 1];

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (self->partner[mid].with == b)
            return &self->partner[mid];
        if (self->partner[mid].with < b)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Whether a and b must not overlap: in conflict, and no in-place pair unless it was split apart. */
static bool rivals(checker *self, const item *i, const item *j)
{
    const uint32_t *gaps = self->p->gap_begin;
    mpl_buffer a = i->id, b = j->id;
    const partner *pair;

    spend(self, 1 + (gaps != NULL ? gaps[a + 1] - gaps[a] + gaps[b + 1] - gaps[b] : 0));
    if (!mpl_verify_conflict(self->p, a, b))
        return false;
    pair = find_partner(self, a, b);
    return pair == NULL || pair->apart > 0;
}

static bool in_set(const checker *self, mpl_buffer id, int64_t set)
{
    return set < (int64_t)self->n_sets && mpl_bit_has(self->set + (size_t)set * self->n_words, id);
}

/* member[] = the active members of a set. */
static void find_members(checker *self, int64_t set)
{
    self->n_members = 0;
    spend(self, self->n_words);
    for (size_t w = 0; set < (int64_t)self->n_sets && w < self->n_words; w++)
        for (uint64_t rest = self->set[(size_t)set * self->n_words + w]; rest != 0;
             rest &= rest - 1) {
            item *i = &self->item[w * 64 + (size_t)__builtin_ctzll(rest)];

            if (i->active)
                self->member[self->n_members++] = i;
        }
    spend(self, self->n_members);
}

/* Distance that an upper body keeps from a lower one: the largest lower buffer with a conflict in
 * the upper body; 0: none. */
static int64_t distance(checker *self, const item *lower, const item *upper)
{
    int64_t most = 0;
    const item *i = lower, *j = upper;

    do {
        do {
            if (i->active && j->active && i->size > most && rivals(self, i, j))
                most = i->size;
            j = &self->item[j->next];
        } while (j != upper);
        i = &self->item[i->next];
    } while (i != lower && self->st == MPL_OK);
    return most;
}

/* Raises the est of all of i's body. */
static void raise_est(checker *self, item *i, int64_t est)
{
    item *j = i;

    est = est > BEYOND ? BEYOND : (est + i->align - 1) / i->align * i->align;
    do {
        j->est = est > j->est ? est : j->est;
        j = &self->item[j->next];
    } while (j != i);
}

/* Appends the current state to a list. */
static void keep(checker *self, list *l, kept k)
{
    if ((self->open.n + self->numbered.n) * self->p->n > MOST_KEPT)
        refuse(self, "too many states to keep:", (int64_t)(self->open.n + self->numbered.n));
    if (self->st == MPL_OK &&
        (self->st = mpl_reserve(self->ctx, l->at, l->room, l->n + 1)) == MPL_OK &&
        (self->st = mpl_new(self->ctx, k.item, self->p->n)) == MPL_OK) {
        foreach (self, i)
            k.item[i->id] = *i, k.item[i->id].marked = false;
        l->at[l->n++] = k;
    }
}

static void rule_drop(checker *self)
{
    self->item[self->number[0]].active = false;
}

static void rule_connected(checker *self)
{
    item *queue = self->scratch;
    int64_t grain = BEYOND;
    uint32_t n = 0;

    queue[n++] = self->item[self->number[0]];
    self->item[self->number[0]].active = false;
    for (uint32_t k = 0; k < n; k++) {
        if (self->p->align[queue[k].id] < grain)
            grain = self->p->align[queue[k].id]; /* a power of two, so it divides the others */
        foreach (self, i)
            if (i->active && (i->body == queue[k].body || rivals(self, i, &queue[k]))) {
                queue[n++] = *i;
                i->active = false;
            }
    }
    foreach (self, i)
        i->active = false;
    while (n-- > 0) {
        queue[n].size = self->moved ? queue[n].size : (queue[n].size + grain - 1) / grain * grain;
        self->item[queue[n].id] = queue[n];
    }
}

static void rule_set(checker *self)
{
    int64_t set = self->number[1];
    const item *i = &self->item[self->number[0]];

    if (set > (int64_t)self->n_sets) {
        refuse(self, "out of turn: set", set);
        return;
    }
    if (set == (int64_t)self->n_sets &&
        (self->st = mpl_reserve(self->ctx, self->set, self->set_room,
                                (self->n_sets + 1) * self->n_words)) == MPL_OK)
        memset(self->set + self->n_sets++ * self->n_words, 0, self->n_words * sizeof *self->set);
    if (self->st != MPL_OK || (self->st = mpl_reserve(self->ctx, self->joined, self->joined_room,
                                                      self->n_joined + 1)) != MPL_OK)
        return;
    spend(self, self->n_words);
    for (size_t w = 0; w < self->n_words; w++)
        for (uint64_t rest = self->set[(size_t)set * self->n_words + w]; rest != 0;
             rest &= rest - 1)
            if (!rivals(self, i, &self->item[w * 64 + (size_t)__builtin_ctzll(rest)]))
                refuse(self, "no rival of all of its set: buffer", i->id);
    mpl_bit_add(self->set + (size_t)set * self->n_words, i->id);
    self->joined[self->n_joined++] = (uint64_t)set * self->p->n + i->id;
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

/* Adds a buffer of `by` units to the n sums. */
static void add_sums(checker *self, int64_t by, int64_t n)
{
    int64_t skip = by / 64, last = (n - 1) / 64;
    unsigned shift = (unsigned)(by % 64);

    spend(self, (uint64_t)last + 1);
    for (int64_t w = last; w >= skip; w--) {
        self->sum[w] |= self->sum[w - skip] << shift;
        if (shift > 0 && w > skip)
            self->sum[w] |= self->sum[w - skip - 1] >> (64 - shift);
    }
}

/* Whether a sum lies in [from, to]. */
static bool has_sum(checker *self, int64_t from, int64_t to)
{
    spend(self, from <= to ? (uint64_t)(to - from) / 64 + 1 : 0);
    for (int64_t s = from; s <= to; s = (s / 64 + 1) * 64) {
        uint64_t word = self->sum[s / 64] >> (s % 64) << (s % 64);

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

static void rule_fill(checker *self)
{
    item *x = &self->item[self->number[0]];
    int64_t est = self->number[2], floor = BEYOND, rest = 0, highest = 0, unit = 0, n_sums, high;
    uint32_t n = 0;

    find_members(self, self->number[1]);
    for (uint32_t k = 0; k < self->n_members; k++) {
        item *i = self->member[k];

        rest += i->size;
        floor = i->est < floor ? i->est : floor;
        highest = i->top + i->size > highest ? i->top + i->size : highest;
        if (i != x && i->est + i->size < est) {
            unit = divisor(i->size, unit);
            self->member[n++] = i;
        }
    }
    unit = unit > 0 ? unit : (int64_t)MOST; /* no buffer fits below: 0 is the only sum */
    n_sums = est > floor ? (est - 1 - floor) / unit + 1 : 1;
    if (!in_set(self, x->id, self->number[1]) || n_sums > MOST_SUMS) {
        refuse(self, "not there, or too many sums: buffer", x->id);
        return;
    }
    qsort(self->member, n, sizeof *self->member, by_end);
    memset(self->sum, 0, (size_t)(n_sums + 63) / 64 * sizeof *self->sum);
    self->sum[0] = 1;
    /* For offsets in [low, high) the same buffers fit below. */
    for (int64_t low = x->est, k = 0; low < est && self->st == MPL_OK; low = high) {
        int64_t from = low + rest - highest;

        for (; k < n && self->member[k]->est + self->member[k]->size <= low; k++)
            add_sums(self, self->member[k]->size / unit, n_sums);
        high = k < n ? self->member[k]->est + self->member[k]->size : est;
        if (has_sum(self, from > 0 ? (from + unit - 1) / unit : 0, (high - 1 - floor) / unit))
            refuse(self, "there is room lower for buffer", x->id);
    }
    raise_est(self, x, est);
}

static void rule_top(checker *self)
{
    item u = self->item[self->number[0]];

    self->moved = true;
    foreach (self, i) {
        i->active = i->active && rivals(self, &u, i);
        if (i->active && (i->est > u.est || u.size % i->align != 0))
            refuse(self, "the top is not for buffer", u.id);
        i->top = i->top > u.top - i->size + u.size ? i->top - u.size
                                                   : u.top - i->size; /* above u, or below */
    }
}

static void rule_number(checker *self)
{
    kept k = {.kind = NUMBER, .number = self->numbered.n};

    keep(self, &self->numbered, k);
    keep(self, &self->open, k);
}

static void rule_split(checker *self)
{
    kept k = {.kind = SPLIT, .set = self->number[0], .n_left = self->number[1]};
    int64_t floor = BEYOND;

    find_members(self, k.set);
    for (uint32_t m = 0; m < self->n_members; m++)
        floor = self->member[m]->est < floor ? self->member[m]->est : floor;
    foreach (self, i)
        i->candidate = false;
    for (uint32_t m = 0; m < self->n_members; m++)
        self->member[m]->candidate = self->member[m]->est == floor;
    keep(self, &self->open, k);
    self->waiting = self->moved = true;
}

static void rule_pair(checker *self)
{
    item *a = &self->item[self->number[0]], *b = &self->item[self->number[1]], was = *b;
    kept k = {PAIR,
              .n_left = 2,
              .a = a->id,
              .b = b->id,
              .n_joined = self->n_joined,
              .number = self->numbered.n};
    mpl_buffer next = a->next;

    if (self->moved)
        refuse(self, "too late for a word on the pair of buffer", k.a);
    keep(self, &self->open, k);
    was.top = a->top < b->top ? a->top : b->top;
    was.align = a->align > b->align ? a->align : b->align;
    if (a->body != b->body)
        a->next = b->next, b->next = next; /* joins two rings */
    foreach (self, i)
        if (i->body == a->body || i->body == was.body) {
            i->body = a->body;
            i->top = was.top;
            i->align = was.align;
        }
    raise_est(self, a, was.est > a->est ? was.est : a->est);
}

static void rule_place(checker *self)
{
    item *i = &self->item[self->number[0]];

    self->open.at[self->open.n - 1].a = i->id;
    self->waiting = false;
    foreach (self, j)
        if (j->active && j->body != i->body && j->est + distance(self, j, i) > i->est)
            raise_est(self, j, i->est + distance(self, i, j));
    foreach (self, j)
        j->active = j->active && j->body != i->body;
}

static void rule_nobody(checker *self)
{
    kept *split = &self->open.at[self->open.n - 1];
    /* the items' own est; est of candidates becomes their outside */
    item *own = memcpy(self->scratch, self->item, self->p->n * sizeof *self->item);

    for (int inside = 0; inside < 2; inside++)
        foreach (self, i) {
            int64_t least = inside ? own[i->id].est : BEYOND;

            if (!i->candidate)
                continue;
            foreach (self, j) {
                bool counts = j->active && in_set(self, j->id, split->set) == inside;
                int64_t end = own[j->id].est + (counts ? distance(self, j, i) : 0);

                least = end > own[j->id].est && end < least ? end : least;
            }
            if (inside)
                raise_est(self, i, least);
            else
                own[i->id].est = least;
        }
    split->a = MPL_NONE;
    self->waiting = false;
}

/* Whether i and j, at one est, are interchangeable. */
static bool twins(checker *self, const item *i, const item *j)
{
    if (i->next != i->id || j->next != j->id || i->size != j->size || i->align != j->align ||
        i->est != j->est || i->top != j->top)
        return false;
    foreach (self, k)
        if (k->id != i->id && k->id != j->id && k->active &&
            rivals(self, i, k) != rivals(self, j, k))
            return false;
    return true;
}

/* Drops what was derived while a pair shared its offset or lay apart: it may not hold otherwise. */
static void forget_since(checker *self, const kept *pair)
{
    while (self->n_joined > pair->n_joined) {
        uint64_t at = self->joined[--self->n_joined];

        mpl_bit_drop(self->set + at / self->p->n * self->n_words, (uint32_t)(at % self->p->n));
    }
    for (size_t i = pair->number; i < self->numbered.n; i++)
        self->numbered.at[i].refuted = false;
}

/* From the first child of s to the second; after the second, out of the split. */
static void next_of_pair(checker *self, kept *k)
{
    partner *there = find_partner(self, k->a, k->b), *back = find_partner(self, k->b, k->a);

    self->moved = false;
    forget_since(self, k);
    if (there != NULL && k->n_left > 0)
        there->apart++, back->apart++;
    else if (there != NULL)
        there->apart--, back->apart--;
}

/* Goes to the next child of a split, or ends it. */
static void next_child(checker *self, kept *k)
{
    self->waiting = --k->n_left > 0 && k->kind == SPLIT;
    if (k->kind == PAIR) {
        next_of_pair(self, k);
        return;
    }
    k->refuted = k->refuted || k->a == MPL_NONE;
    foreach (self, i) {
        item *seen = &k->item[i->id];

        if (i->candidate && !seen->marked && k->a != MPL_NONE)
            seen->marked = i->body == self->item[k->a].body || twins(self, i, &self->item[k->a]);
        if (k->n_left <= 0 && (!k->refuted || (i->candidate && !seen->marked)))
            refuse(self, "a child is missing in the split of set", k->set);
    }
}

/* Refutes the current state and those it came from, up to the first split with children left. */
static void close_state(checker *self)
{
    for (; self->st == MPL_OK && self->open.n > 0;
         mpl_free(self->ctx, self->open.at[--self->open.n].item)) {
        kept *k = &self->open.at[self->open.n - 1];

        memcpy(spend(self, self->p->n), k->item, self->p->n * sizeof *k->item);
        if (k->kind == NUMBER)
            self->numbered.at[k->number].refuted = true;
        else
            next_child(self, k);
        if (k->n_left > 0)
            return;
    }
}

static void rule_load(checker *self)
{
    int64_t sum = 0, least = self->item[self->number[0]].est, set = self->number[1];

    find_members(self, set);
    for (uint32_t k = 0; k < self->n_members; k++)
        sum += self->member[k]->est >= least ? self->member[k]->size : 0;
    for (uint32_t k = 0; k < self->n_members; k++)
        if (self->member[k]->est >= least &&
            least + sum - self->member[k]->size <= self->member[k]->top)
            refuse(self, "there is room in set", set);
    if (sum == 0)
        refuse(self, "nobody is in set", set);
}

static void rule_passed(checker *self)
{
    const item *i = &self->item[self->number[0]], *j = i;

    do {
        if (j->active && rivals(self, i, j))
            return;
        j = &self->item[j->next];
    } while (j != i);
    if (i->est <= i->top)
        refuse(self, "there is room for buffer", self->number[0]);
}

static void rule_same(checker *self)
{
    size_t number = (size_t)self->number[0];
    bool known = number < self->numbered.n && self->numbered.at[number].refuted;

    foreach (self, i) {
        const item *then = known ? &self->numbered.at[number].item[i->id] : i;

        if (!known || (then->active && (!i->active || i->est < then->est || i->top > then->top)))
            refuse(self, "not refuted yet, or with less room for a buffer: state", self->number[0]);
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
static bool check_record(checker *self)
{
    const struct rule *rule = rules;
    int n = 0;

    self->n_read++;
    while (rule->kind != '\0' && rule->kind != *self->at)
        rule++;
    self->at += rule->kind != '\0';
    for (; n < rule->n_numbers && (n == 0 || *self->at == ',') && DIGIT(self->at[n > 0]); n++)
        for (self->number[n] = 0, self->at += n > 0;
             DIGIT(*self->at) && self->number[n] < (int64_t)MOST / 16; self->at++)
            self->number[n] = 10 * self->number[n] + (*self->at - '0');
    if (rule->kind == '\0' || n < rule->n_numbers || (*self->at != ' ' && *self->at != '\0'))
        refuse(self, "no letter with its numbers; characters left", (int64_t)strlen(self->at));
    else if ((rule->place == CHILD) != self->waiting)
        refuse(self, "children, all, come behind their split; states open", (int64_t)self->open.n);
    self->at += *self->at == ' ';
    for (n = 0; n < rule->n_buffers && self->st == MPL_OK; n++)
        if (self->number[n] >= self->p->n || !self->item[self->number[n]].active)
            refuse(self, "not there: buffer", self->number[n]);
    if (self->st == MPL_OK)
        rule->apply(self);
    if (self->st == MPL_OK && rule->place == LEAF)
        close_state(self);
    return rule->place == LEAF && self->open.n == 0;
}

/* The initial state: all buffers of the pool fit into that many bytes. *ample: a height in which
 * whatever fits at all does fit. */
static void first_state(checker *self, const mpl_refutation *proof, uint64_t *ample)
{
    const mpl_problem *p = self->p;
    bool countable = p->n > 0 && proof->pool < p->n_pools && proof->within < MOST;
    uint64_t sum = proof->within;

    for (mpl_buffer b = 0; b < p->n && countable; b++) {
        bool fixed = p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
        uint64_t est = fixed ? p->fixed[b] : 0;
        int64_t top = (int64_t)(proof->within - p->bytes[b]);

        countable =
            p->bytes[b] < MOST && est < MOST && (sum += p->bytes[b] + est + p->align[b]) < MOST;
        top = fixed && (int64_t)est < top ? (int64_t)est : top;
        self->item[b] = (item){.id = b,
                               .body = b,
                               .next = b,
                               .active = p->pool[b] == proof->pool,
                               .align = p->align[b]};
        self->item[b].size = (int64_t)p->bytes[b], self->item[b].est = (int64_t)est,
        self->item[b].top = top;
    }
    *ample = sum - proof->within;
    if (!countable)
        refuse(self, "it needs buffers, and less than 2^60 bytes, in pool", proof->pool);
}

static int by_couple(const void *a, const void *b)
{
    const partner *x = a, *y = b;

    return x->of != y->of ? (x->of > y->of) - (x->of < y->of)
                          : (x->with > y->with) - (x->with < y->with);
}

static mpl_status find_partners(checker *self)
{
    const mpl_problem *p = self->p;

    MPL_PASS(mpl_new(self->ctx, self->partner, 2 * (size_t)p->n_in_place));
    MPL_PASS(mpl_new(self->ctx, self->partner_begin, p->n + (size_t)1));
    for (uint32_t k = 0; k < p->n_in_place; k++) {
        self->partner[2 * k] = (partner){p->in_place_in[k], p->in_place_out[k], 0};
        self->partner[2 * k + 1] = (partner){p->in_place_out[k], p->in_place_in[k], 0};
    }
    qsort(self->partner, 2 * (size_t)p->n_in_place, sizeof *self->partner, by_couple);
    for (uint32_t k = 0; k < 2 * p->n_in_place; k++)
        self->partner_begin[self->partner[k].of + 1] = k + 1;
    for (mpl_buffer b = 0; b < p->n; b++)
        if (self->partner_begin[b + 1] < self->partner_begin[b])
            self->partner_begin[b + 1] = self->partner_begin[b];
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

static void close_checker(checker *self)
{
    list *lists[] = {&self->open, &self->numbered};

    for (int k = 0; k < 2; k++)
        while (lists[k]->n > 0)
            mpl_free(self->ctx, lists[k]->at[--lists[k]->n].item);
    mpl_free_each(self->ctx, self->open.at, self->numbered.at, self->set, self->joined,
                  self->partner, self->partner_begin, self->item, self->scratch, self->member,
                  self->sum);
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
