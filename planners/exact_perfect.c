/* exact_perfect.c -- packings that waste nothing: items that must, or seem to, lie side by side become one. See exact_priv.h.
 *
 * Idea     Where every section is full, the items that end at a time leave exactly the space that those which begin then
 *          take. One that ends and one that begins lie at the same offset: they are one item of both lives. Two that begin
 *          with the same life where one ends lie on each other: they are one item of both sizes. Where more items meet,
 *          equal sizes are guessed to belong together, the likeliest first. What is left is searched.
 * Source   this project
 * Cost     O(n * sections) for each try, and short searches.
 * Limits   Guesses may be wrong: its failing proves nothing. */
#include "planners/exact_priv.h"

#include "graphs/base/rng.h"

#define TRIES          200
#define TICKS_PER_ITEM 5000 /* of each */
#define MEMBERS        3 /* searches of what is left in each: either they walk through, or another guess does */
#define SURE           2 /* scores below it are no guesses */
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
    bool stacked, merged;
} node;

/* The likeliest merger where sections meet. Lower scores are better. */
typedef struct guess {
    int32_t score, a, b;
    bool stacked;
} guess;

typedef struct reducer {
    const mpl_exact_part *part;
    int32_t n_sections, n_nodes, n_left;
    node *node;       /* [2 * n] the items first */
    int32_t *next[2]; /* [2 * n] nodes that end, start at the same time; -1: no more */
    int32_t *head[2]; /* [n_sections + 1] */
    guess *best;      /* [n_sections + 1] */
    uint32_t noise;   /* of scores */
    mpl_rng rng;
} reducer;

/* ---- guesses ------------------------------------------------------------------------------------------------- */

static int32_t count(const reducer *r, int which, int32_t t, mpl_len size)
{
    int32_t n = 0;

    for (int32_t i = r->head[which][t]; i >= 0; i = r->next[which][i])
        n += size == 0 || r->node[i].size == size;
    return n;
}

static void propose(reducer *r, guess *best, int32_t score, int32_t a, int32_t b, bool stacked)
{
    if (score >= SURE && r->noise > 0)
        score += (int32_t)mpl_rng_below(&r->rng, r->noise);
    if (score < best->score)
        *best = (guess){score, a, b, stacked};
}

/* Pairs of `which` at t with the same life. */
static void propose_stacks(reducer *r, int32_t t, int which, int32_t n_own, int32_t n_other, guess *best)
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
            int32_t equal = count(r, ENDING, t, size) + count(r, STARTING, t, size);

            if (n_ending == 1 && n_starting == 1)
                propose(r, best, 0, i, j, false);
            else if (size == r->node[j].size)
                propose(r, best,
                        GUESS + (int32_t)(SMALL / size) + PER_ITEM * (n_ending + n_starting) +
                            PER_EQUAL * (equal - 2),
                        i, j, false);
        }
    propose_stacks(r, t, ENDING, n_ending, n_starting, best);
    propose_stacks(r, t, STARTING, n_starting, n_ending, best);
}

/* ---- mergers ------------------------------------------------------------------------------------------------- */

static void leave(reducer *r, int which, int32_t i)
{
    int32_t *at = &r->head[which][r->node[i].side[which]];

    while (*at != i)
        at = &r->next[which][*at];
    *at = r->next[which][i];
}

static void join(reducer *r, int which, int32_t i)
{
    int32_t *head = &r->head[which][r->node[i].side[which]];

    r->next[which][i] = *head;
    *head = i;
}

static void merge(reducer *r, const guess *g)
{
    node *a = &r->node[g->a], *b = &r->node[g->b], *both = &r->node[r->n_nodes];

    *both = (node){.birth = a->birth, .death = b->death, .a = g->a, .b = g->b, .stacked = g->stacked};
    both->side[STARTING] = a->side[STARTING];
    both->side[ENDING] = b->side[ENDING];
    both->size = g->stacked ? a->size + b->size : a->size;
    a->merged = b->merged = true;
    for (int which = ENDING; which <= STARTING; which++) {
        leave(r, which, g->a);
        leave(r, which, g->b);
        join(r, which, r->n_nodes);
    }
    find_best(r, a->side[ENDING]);
    find_best(r, both->side[STARTING]);
    find_best(r, both->side[ENDING]);
    r->n_nodes++;
    r->n_left--;
}

/* Merges while scores are below `most`. */
static void reduce(reducer *r, const mpl_exact_case *c, int32_t most, uint64_t *ticks)
{
    r->n_nodes = r->n_left = c->n;
    for (int32_t t = 0; t <= c->n_sections; t++)
        r->head[ENDING][t] = r->head[STARTING][t] = -1;
    for (int32_t i = 0; i < c->n; i++) {
        const mpl_exact_item *item = &r->part->item[c->item[i]];

        r->node[i] = (node){.birth = item->birth,
                            .death = item->death,
                            .size = c->size[i],
                            .a = -1,
                            .side = {c->right[i], c->left[i]}};
        join(r, ENDING, i);
        join(r, STARTING, i);
    }
    for (int32_t t = 0; t <= c->n_sections; t++)
        find_best(r, t);
    for (;;) {
        int32_t at = 0;

        for (int32_t t = 1; t < c->n_sections && r->best[at].score >= SURE; t++)
            at = r->best[t].score < r->best[at].score ? t : at;
        *ticks += (uint64_t)c->n_sections;
        if (r->best[at].score >= most)
            return;
        merge(r, &(guess){r->best[at].score, r->best[at].a, r->best[at].b, r->best[at].stacked});
    }
}

/* ---- search -------------------------------------------------------------------------------------------------- */

/* A part of what is left. */
static mpl_status make_rest(const reducer *r, uint64_t cap, mpl_exact_part *rest)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = r->part->ctx;

    *rest = (mpl_exact_part){.ctx = ctx, .unit = r->part->unit, .bound = cap, .memo.ctx = ctx};
    MPL_TRY(mpl_new(ctx, rest->item, (size_t)r->n_left));
    MPL_TRY(mpl_new(ctx, rest->offset, (size_t)r->n_left));
    for (int32_t i = 0; i < r->n_nodes; i++)
        if (!r->node[i].merged)
            rest->item[rest->n++] = (mpl_exact_item){.birth = r->node[i].birth,
                                                     .death = r->node[i].death,
                                                     .size = r->node[i].size,
                                                     .align = 1,
                                                     .bytes = (uint64_t)r->node[i].size * rest->unit};
    rest->node_limit = rest->n + rest->n / 16 + 16;
    rest->tick_limit = TICKS_PER_ITEM * (uint64_t)rest->n;
    rest->n_members = MEMBERS;
    rest->full = true;
out:
    return st;
}

/* Offsets of the items from those of what was left. */
static mpl_status spread(const reducer *r, const mpl_exact_case *c, const mpl_exact_part *rest,
                         mpl_exact_part *part)
{
    mpl_status st = MPL_OK;
    uint64_t *offset = NULL;
    uint32_t k = 0;

    MPL_TRY(mpl_new(part->ctx, offset, (size_t)r->n_nodes));
    for (int32_t i = 0; i < r->n_nodes; i++)
        if (!r->node[i].merged)
            offset[i] = rest->offset[k++];
    for (int32_t i = r->n_nodes; i-- > c->n;) {
        const node *v = &r->node[i];

        offset[v->a] = offset[i];
        offset[v->b] = offset[i] + (v->stacked ? (uint64_t)r->node[v->a].size * part->unit : 0);
    }
    for (int32_t i = 0; i < c->n; i++)
        part->offset[c->item[i]] = offset[i];
    part->height = rest->height;
out:
    mpl_free(part->ctx, offset);
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

    *r = (reducer){.part = part};
    MPL_TRY(mpl_new(ctx, r->node, 2 * n));
    MPL_TRY(mpl_new(ctx, r->best, times));
    for (int which = 0; which < 2; which++) {
        MPL_TRY(mpl_new(ctx, r->next[which], 2 * n));
        MPL_TRY(mpl_new(ctx, r->head[which], times));
    }
out:
    return st;
}

static void reducer_fini(mpl_ctx *ctx, reducer *r)
{
    void *arrays[] = {r->node, r->best, r->next[0], r->next[1], r->head[0], r->head[1]};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        mpl_free(ctx, arrays[i]);
}

mpl_status mpl_exact_part_perfect(mpl_exact_part *part, uint64_t cap, mpl_exact_effort *effort,
                                  mpl_exact_verdict *verdict)
{
    static const int32_t most[] = {NO_GUESS, GUESS + 60, GUESS + 90, GUESS + 120, SAME_LIFE};
    mpl_status st = MPL_OK;
    mpl_exact_case *c = part->side[0].c;
    reducer r = {0};

    *verdict = MPL_EXACT_STOPPED;
    if (part->vast)
        return MPL_OK;
    mpl_exact_case_limit(c, part->item, part->unit, cap);
    part->cap = 0;
    if (!is_perfect(part, c))
        return MPL_OK;
    part->full = true;
    MPL_TRY(reducer_init(part->ctx, part, &r));
    mpl_rng_init(&r.rng, effort->seed);
    for (uint32_t k = 0; k < TRIES && *verdict != MPL_EXACT_FOUND; k++) {
        mpl_exact_part rest = {0};

        if (effort->by_clock || effort->ticks >= effort->tick_limit)
            break;
        r.noise = 4 * k;
        reduce(&r, c, most[k % 5], &effort->ticks);
        st = make_rest(&r, cap, &rest);
        if (st == MPL_OK)
            st = mpl_exact_part_try(&rest, cap, 0, effort, verdict);
        if (st == MPL_OK && *verdict == MPL_EXACT_FOUND)
            st = spread(&r, c, &rest, part);
        mpl_exact_part_fini(&rest);
        MPL_TRY(st);
    }
    if (*verdict == MPL_EXACT_FAILED)
        *verdict = MPL_EXACT_STOPPED;
out:
    reducer_fini(part->ctx, &r);
    return st;
}
