/* exact_perfect.c -- packings that waste nothing: items that must, or seem to, lie side by side
 * become one. See exact_priv.h.
 *
 * Idea     Where every section is full, the items that end at a time leave exactly the space that
 *          those which begin then take. One that ends and one that begins lie at the same offset:
 *          they are one item of both lives. Two that begin with the same life where one ends lie on
 *          each other: they are one item of both sizes. Where more items meet, equal sizes are
 *          guessed to belong together, the likeliest first. A wrong guess shows in what nothing
 *          fits to any more: there, some are taken apart again and merged otherwise, and the fewer
 *          are left, the better. A packing that full cuts can make ends as one item; what is left
 *          of others is searched.
 * Source   this project
 * Cost     O(items that meet)^2 a merger, some 10^6 repairs in all of up to some tens of mergers,
 *          and short searches.
 * Limits   Guesses may be wrong: its failing proves nothing. */
#include "planners/exact/exact_priv.h"

#include "graphs/core/rng.h"

#define LAPS           5
#define ROUNDS         3 /* in each; one in the first if items are few: searches do as well */
#define LARGE_N        200
#define REPAIRS        1000 /* of the first round; each has as many more */
#define DEEPEST        16   /* mergers taken apart in one of them */
#define PATIENCE       4 /* one repair in so many may leave one item more, one in its square two */
#define REPAIR_NOISE   200 /* of scores in half of the repairs */
#define NOISE_A_ROUND  16
#define TICKS_PER_ITEM 5000 /* of each search */
#define MEMBERS        3    /* searches of what is left: they walk through, or another guess does */
#define SURE           2    /* scores below it are no guesses */
#define GUESS          8
#define PER_ITEM       4   /* an equal pair is doubtful with each item that meets there */
#define PER_SUM_ITEM   6   /* so is a sum */
#define PER_EQUAL      16  /* and a pair with each other item of that size */
#define SMALL          200 /* small sizes are equal by chance */
#define SAME_LIFE      1000
#define NO_GUESS       INT32_MAX

enum { ENDING, STARTING };

/* An item, or two that became one: `a` beside b in time, or under it. */
typedef struct node {
    uint32_t birth, death; /* [step] */
    int32_t side[2];       /* [section] ENDING: its right, STARTING: its left */
    mpl_len size;
    int32_t a, b; /* -1: an item */
    bool stacked;
} node;

/* The likeliest merger where sections meet. Lower scores are better. */
typedef struct guess {
    int32_t score, a, b;
    bool stacked;
} guess;

/* A merger, or one taken apart. */
typedef struct change {
    int32_t id, a, b;
    bool stacked, apart;
} change;

typedef struct reducer {
    const mpl_exact_part *part;
    const mpl_exact_case *c;
    node *node;                /* [2 * n] the items first */
    int32_t *next[2];          /* [2 * n] nodes that end, start at the same time; -1: no more */
    int32_t *head[2];          /* [n_sections + 1] */
    int32_t *left, n_left;     /* [n] nodes that are not merged */
    int32_t *at;               /* [2 * n] index into left */
    int32_t *spare, n_spare;   /* [n] nodes not in use */
    guess *best;               /* [n_sections + 1] */
    int32_t *active, n_active; /* [n_sections + 1] times where best may be a guess */
    uint8_t *is_active;        /* [n_sections + 1] */
    change *log;               /* of a repair */
    size_t n_log, log_room;
    int32_t avoided[DEEPEST][2], n_avoided; /* pairs that were just taken apart */
    uint32_t noise;                         /* of scores */
    uint64_t ticks;
    mpl_rng rng;
} reducer;

/* ---- guesses ---- */

static int32_t count(const reducer *r, int which, int32_t t, mpl_len size)
{
    int32_t n = 0;

    for (int32_t i = r->head[which][t]; i >= 0; i = r->next[which][i])
        n += size == 0 || r->node[i].size == size;
    return n;
}

static bool is_avoided(const reducer *r, int32_t a, int32_t b)
{
    for (int32_t k = 0; k < r->n_avoided; k++)
        if (r->avoided[k][0] == a && r->avoided[k][1] == b)
            return true;
    return false;
}

static void propose(reducer *r, guess *best, int32_t score, int32_t a, int32_t b, bool stacked)
{
    if (score >= SURE && r->noise > 0)
        score += (int32_t)mpl_rng_below(&r->rng, r->noise);
    if (score < best->score && !is_avoided(r, a, b) && !(stacked && is_avoided(r, b, a)))
        *best = (guess){score, a, b, stacked};
}

/* Pairs of `which` at t with the same life. */
static void propose_stacks(reducer *r, int32_t t, int which, int32_t n_own, int32_t n_other,
                           guess *best)
{
    const int32_t *next = r->next[which];

    for (int32_t i = r->head[which][t]; i >= 0; i = next[i])
        for (int32_t j = next[i]; j >= 0; j = next[j]) {
            mpl_len sum = r->node[i].size + r->node[j].size;

            if (r->node[i].side[1 - which] != r->node[j].side[1 - which])
                continue;
            if (n_own == 2 && n_other == 1)
                propose(r, best, SURE - 1, i, j, true);
            else if (count(r, 1 - which, t, sum) > 0)
                propose(r, best, GUESS + 1 + PER_SUM_ITEM * (n_own + n_other), i, j, true);
            else
                propose(r, best, SAME_LIFE + n_own + n_other, i, j, true);
        }
}

static void find_best(reducer *r, int32_t t)
{
    guess *best = &r->best[t];
    int32_t n_ending = count(r, ENDING, t, 0), n_starting = count(r, STARTING, t, 0);

    *best = (guess){.score = NO_GUESS};
    for (int32_t i = r->head[ENDING][t]; i >= 0; i = r->next[ENDING][i])
        for (int32_t j = r->head[STARTING][t]; j >= 0; j = r->next[STARTING][j]) {
            mpl_len size = r->node[i].size;
            int32_t equal;

            if (size != r->node[j].size)
                continue;
            if (n_ending == 1 && n_starting == 1) {
                propose(r, best, 0, i, j, false);
                continue;
            }
            equal = count(r, ENDING, t, size) + count(r, STARTING, t, size);
            propose(r, best,
                    GUESS + (int32_t)(SMALL / size) + PER_ITEM * (n_ending + n_starting) +
                        PER_EQUAL * (equal - 2),
                    i, j, false);
        }
    propose_stacks(r, t, ENDING, n_ending, n_starting, best);
    propose_stacks(r, t, STARTING, n_starting, n_ending, best);
    r->ticks += (uint64_t)(4 + (n_ending + n_starting) * (n_ending + n_starting));
    if (best->score != NO_GUESS && !r->is_active[t]) {
        r->is_active[t] = 1;
        r->active[r->n_active++] = t;
    }
}

/* ---- mergers ---- */

static void leave(reducer *r, int32_t i)
{
    int32_t last = r->left[--r->n_left];

    for (int which = ENDING; which <= STARTING; which++) {
        int32_t *at = &r->head[which][r->node[i].side[which]];

        while (*at != i)
            at = &r->next[which][*at];
        *at = r->next[which][i];
    }
    r->left[r->at[i]] = last;
    r->at[last] = r->at[i];
}

static void join(reducer *r, int32_t i)
{
    for (int which = ENDING; which <= STARTING; which++) {
        int32_t *head = &r->head[which][r->node[i].side[which]];

        r->next[which][i] = *head;
        *head = i;
    }
    r->at[i] = r->n_left;
    r->left[r->n_left++] = i;
}

static int32_t merge(reducer *r, int32_t i, int32_t j, bool stacked)
{
    int32_t id = r->spare[--r->n_spare];
    const node *a = &r->node[i], *b = &r->node[j];
    node *both = &r->node[id];

    *both = (node){.birth = a->birth, .death = b->death, .a = i, .b = j, .stacked = stacked};
    both->side[STARTING] = a->side[STARTING];
    both->side[ENDING] = b->side[ENDING];
    both->size = stacked ? a->size + b->size : a->size;
    leave(r, i);
    leave(r, j);
    join(r, id);
    return id;
}

static void take_apart(reducer *r, int32_t id)
{
    leave(r, id);
    join(r, r->node[id].a);
    join(r, r->node[id].b);
    r->spare[r->n_spare++] = id;
}

/* The guesses where a and b begin and end, which were or become one. */
static void look_again(reducer *r, int32_t a, int32_t b)
{
    find_best(r, r->node[a].side[ENDING]);
    find_best(r, r->node[a].side[STARTING]);
    find_best(r, r->node[b].side[ENDING]);
}

/* The time of the best guess, or -1. */
static int32_t find_guess(reducer *r)
{
    int32_t best = -1;

    r->ticks += (uint64_t)r->n_active;
    for (int32_t k = 0; k < r->n_active; k++) {
        int32_t t = r->active[k];

        if (r->best[t].score == NO_GUESS) {
            r->is_active[t] = 0;
            r->active[k--] = r->active[--r->n_active];
        } else if (best < 0 || r->best[t].score < r->best[best].score) {
            best = t;
        }
    }
    return best;
}

/* Merges while scores are below `most`. */
static mpl_status reduce(reducer *r, int32_t most)
{
    mpl_status st = MPL_OK;

    for (int32_t t = find_guess(r); t >= 0 && r->best[t].score < most; t = find_guess(r)) {
        guess g = r->best[t];

        MPL_TRY(mpl_reserve(r->part->ctx, r->log, r->log_room, r->n_log + 1));
        r->log[r->n_log++] = (change){.id = merge(r, g.a, g.b, g.stacked)};
        look_again(r, g.a, g.b);
    }
out:
    return st;
}

/* All items by themselves again. */
static void begin(reducer *r)
{
    const mpl_exact_case *c = r->c;

    r->n_left = r->n_active = r->n_spare = r->n_avoided = 0;
    r->n_log = 0;
    for (int32_t t = 0; t <= c->n_sections; t++) {
        r->head[ENDING][t] = r->head[STARTING][t] = -1;
        r->is_active[t] = 0;
    }
    for (int32_t i = 2 * c->n; i-- > c->n;)
        r->spare[r->n_spare++] = i;
    for (int32_t i = 0; i < c->n; i++) {
        const mpl_exact_item *item = &r->part->item[c->item[i]];

        r->node[i] = (node){.birth = item->birth,
                            .death = item->death,
                            .size = c->size[i],
                            .a = -1,
                            .side = {c->right[i], c->left[i]}};
        join(r, i);
    }
    for (int32_t t = 0; t <= c->n_sections; t++)
        find_best(r, t);
}

/* ---- repairs ---- */

/* A merged node that begins or ends at one of three times, or -1. */
static int32_t pick_near(reducer *r, const int32_t times[3])
{
    int32_t n = 0, pick = -1;

    for (int k = 0; k < 3; k++)
        for (int which = ENDING; which <= STARTING; which++)
            for (int32_t i = r->head[which][times[k]]; i >= 0; i = r->next[which][i])
                if (r->node[i].a >= 0 && mpl_rng_below(&r->rng, (uint64_t)++n) == 0)
                    pick = i;
    return pick;
}

/* Takes a few neighbours apart, from `id` on; most of the pairs are not to be merged again at
 * once. */
static mpl_status loosen(reducer *r, int32_t id)
{
    mpl_status st = MPL_OK;

    for (uint64_t k = 1 + mpl_rng_below(&r->rng, DEEPEST); k > 0 && id >= 0; k--) {
        node v = r->node[id];
        int32_t times[3] = {v.side[STARTING], v.side[ENDING], r->node[v.a].side[ENDING]};

        MPL_TRY(mpl_reserve(r->part->ctx, r->log, r->log_room, r->n_log + 1));
        r->log[r->n_log++] = (change){id, v.a, v.b, v.stacked, true};
        take_apart(r, id);
        if (mpl_rng_below(&r->rng, 4) != 0) {
            r->avoided[r->n_avoided][0] = v.a;
            r->avoided[r->n_avoided++][1] = v.b;
        }
        look_again(r, v.a, v.b);
        id = pick_near(r, times);
    }
out:
    return st;
}

static void undo(reducer *r)
{
    while (r->n_log > 0) {
        change one = r->log[--r->n_log];

        if (one.apart)
            merge(r, one.a, one.b, one.stacked); /* takes the same node */
        else
            take_apart(r, one.id);
    }
    while (r->n_active > 0) /* there was nothing to merge before */
        r->is_active[r->active[--r->n_active]] = 0;
}

/* Takes something apart and merges it otherwise; taken back if more is left than before. */
static mpl_status repair(reducer *r)
{
    mpl_status st = MPL_OK;
    int32_t most = r->n_left, id = r->left[mpl_rng_below(&r->rng, (uint64_t)r->n_left)];

    r->ticks += 8;
    if (r->node[id].a < 0)
        return MPL_OK;
    r->n_log = 0;
    r->noise = mpl_rng_below(&r->rng, 2) == 0 ? 0 : REPAIR_NOISE;
    MPL_TRY(loosen(r, id));
    MPL_TRY(reduce(r, NO_GUESS));
    r->n_avoided = 0;
    for (size_t k = 0, n = r->n_log; k < n; k++)
        if (r->log[k].apart)
            look_again(r, r->log[k].a, r->log[k].b);
    MPL_TRY(reduce(r, NO_GUESS));
    while (mpl_rng_below(&r->rng, PATIENCE) == 0)
        most++;
    if (r->n_left > most)
        undo(r);
out:
    return st;
}

/* ---- search ---- */

/* A part of what is left. */
static mpl_status make_rest(const reducer *r, uint64_t cap, mpl_exact_part *rest)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_exact_part_made(r->part->ctx, r->part->unit, cap, (uint32_t)r->n_left, rest));
    for (int32_t k = 0; k < r->n_left; k++) {
        const node *v = &r->node[r->left[k]];

        mpl_exact_part_add(rest, v->birth, v->death, v->size);
    }
    rest->node_limit = rest->n + rest->n / 16 + 16;
    rest->tick_limit = TICKS_PER_ITEM * (uint64_t)rest->n;
    rest->n_members = MEMBERS;
    rest->full = true;
out:
    return st;
}

/* Offsets of the items from those of what was left. */
static mpl_status spread(const reducer *r, const mpl_exact_part *rest, mpl_exact_part *part)
{
    mpl_status st = MPL_OK;
    size_t n = (size_t)r->c->n;
    uint64_t *offset = NULL;
    int32_t *stack = NULL, n_stack = r->n_left;

    MPL_TRY(mpl_new(part->ctx, offset, 2 * n));
    MPL_TRY(mpl_new(part->ctx, stack, n));
    for (int32_t k = 0; k < r->n_left; k++) {
        stack[k] = r->left[k];
        offset[r->left[k]] = rest->offset[k];
    }
    while (n_stack > 0) {
        int32_t id = stack[--n_stack];
        const node *v = &r->node[id];

        if (v->a < 0) {
            part->offset[r->c->item[id]] = offset[id];
            continue;
        }
        offset[v->a] = offset[id];
        offset[v->b] = offset[id] + (v->stacked ? (uint64_t)r->node[v->a].size * part->unit : 0);
        stack[n_stack++] = v->a;
        stack[n_stack++] = v->b;
    }
    part->height = rest->height;
out:
    mpl_free(part->ctx, offset);
    mpl_free(part->ctx, stack);
    return st;
}

static bool is_perfect(const mpl_exact_part *part, const mpl_exact_case *c)
{
    for (int32_t s = 0; s < c->n_sections; s++) {
        mpl_len live = 0;

        for (int32_t k = c->begin[s]; k < c->begin[s + 1]; k++)
            live += c->size[c->member[k]];
        if (live != c->cap)
            return false;
    }
    for (uint32_t i = 0; i < part->n; i++)
        if ((uint64_t)part->item[i].size * part->unit != part->item[i].bytes)
            return false;
    return c->plain;
}

static mpl_status reducer_init(mpl_ctx *ctx, const mpl_exact_part *part, reducer *r)
{
    mpl_status st = MPL_OK;
    size_t n = part->n, times = (size_t)part->side[0].c->n_sections + 1;

    *r = (reducer){.part = part, .c = part->side[0].c};
    MPL_TRY(mpl_new(ctx, r->node, 2 * n));
    MPL_TRY(mpl_new(ctx, r->left, n));
    MPL_TRY(mpl_new(ctx, r->at, 2 * n));
    MPL_TRY(mpl_new(ctx, r->spare, n));
    MPL_TRY(mpl_new(ctx, r->best, times));
    MPL_TRY(mpl_new(ctx, r->active, times));
    MPL_TRY(mpl_new(ctx, r->is_active, times));
    for (int which = 0; which < 2; which++) {
        MPL_TRY(mpl_new(ctx, r->next[which], 2 * n));
        MPL_TRY(mpl_new(ctx, r->head[which], times));
    }
out:
    return st;
}

static void reducer_fini(mpl_ctx *ctx, reducer *r)
{
    void *arrays[] = {r->node,   r->left,      r->at,  r->spare,   r->best,    r->head[0],
                      r->active, r->is_active, r->log, r->next[0], r->next[1], r->head[1]};

    MPL_FREE_ALL(ctx, arrays);
}

static mpl_status search_rest(reducer *r, uint64_t cap, mpl_exact_part *part,
                              mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_exact_part rest = {0};

    effort->ticks += r->ticks;
    r->ticks = 0;
    MPL_TRY(make_rest(r, cap, &rest));
    MPL_TRY(mpl_exact_part_try(&rest, cap, 0, effort, verdict));
    if (*verdict == MPL_EXACT_FOUND)
        MPL_TRY(spread(r, &rest, part));
out:
    mpl_exact_part_fini(&rest);
    return st;
}

static bool is_over(const reducer *r, mpl_exact_effort *effort)
{
    effort->by_clock = effort->by_clock || mpl_exact_late(effort->deadline_ns, effort->watch);
    return effort->by_clock || effort->ticks + r->ticks >= effort->tick_limit;
}

/* A search of what careful guesses leave, then one of what bold ones do after some repairs. */
static mpl_status play_round(reducer *r, uint64_t cap, uint32_t round, mpl_exact_part *part,
                             mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    static const int32_t most[] = {GUESS + 60, GUESS + 90, GUESS + 120, SAME_LIFE};
    mpl_status st = MPL_OK;

    r->noise = NOISE_A_ROUND * round;
    begin(r);
    MPL_TRY(reduce(r, most[round % 4]));
    if (round > 0)
        MPL_TRY(search_rest(r, cap, part, effort, verdict));
    if (*verdict == MPL_EXACT_FOUND)
        goto out;
    MPL_TRY(reduce(r, NO_GUESS));
    for (uint64_t k = 0;
         k < (uint64_t)REPAIRS * (round + 1) && r->n_left > 1 && !is_over(r, effort); k++)
        MPL_TRY(repair(r));
    MPL_TRY(search_rest(r, cap, part, effort, verdict));
out:
    return st;
}

mpl_status mpl_exact_part_perfect(mpl_exact_part *part, uint64_t cap, uint32_t lap,
                                  mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_exact_case *c = part->side[0].c;
    reducer r = {0};

    *verdict = MPL_EXACT_STOPPED;
    if (part->vast || lap >= LAPS || !mpl_exact_uses(effort->without, MPL_RULE_perfect))
        return MPL_OK;
    if (part->cap != cap) {
        mpl_exact_case_limit(c, part->item, part->unit, cap);
        part->cap = 0; /* the other side still has the old limits */
    }
    if (!is_perfect(part, c))
        return MPL_OK;
    part->full = true;
    MPL_TRY(reducer_init(part->ctx, part, &r));
    mpl_rng_init(&r.rng, effort->seed + lap);
    for (uint32_t k = lap * ROUNDS, end = k + (lap > 0 || part->n >= LARGE_N ? ROUNDS : 1);
         k < end && *verdict != MPL_EXACT_FOUND && !is_over(&r, effort); k++)
        MPL_TRY(play_round(&r, cap, k, part, effort, verdict));
    if (*verdict == MPL_EXACT_FAILED)
        *verdict = MPL_EXACT_STOPPED;
out:
    reducer_fini(part->ctx, &r);
    return st;
}
