/* exact_merge.c -- plans by merging: two items that waste little together become one. See
 * exact_priv.h.
 *
 * Idea     SEARCH.md, section 5: pairs beside or on each other, wheels of five, least waste first.
 *          Repairs split neighbours and merge them otherwise; the remaining items are searched.
 * Source   this project; that cuts and wheels make most packings of rectangles is known from the
 *          floorplans of chips, as hierarchies of order 5: T. C. Wang, D. F. Wong, 1990
 * Cost     O(sections) a pair, O(n^2) pairs first, then for each repair the pairs of the remaining
 *          items.
 * Limits   Other plans are found only where the search finds that part of them. A failure proves
 *          nothing. */
#include "planners/exact/exact_priv.h"

#include "graphs/core/rng.h"

#define DEEPEST        24   /* mergers split in one repair */
#define PATIENCE       4    /* one repair in 4 may leave one item more, in 16 two, .. */
#define STACK_COST     0.02 /* of stacking, as waste per area: side by side leaves more choice */
#define REST_N         48   /* items left that are searched */
#define REST_REPAIRS   16   /* repairs between searches of an equally small rest */
#define NODES_PER_ITEM 3    /* of such a search */
#define TICKS_PER_ITEM 2000 /* of such a search */
#define MEMBERS        3    /* of such a search */
#define NEVER          1e300

enum { PAIR = 2, WHEEL = 5 };

/* An item, or several merged into one. A pair: the first item is beside the second in time, or
 * below it. A wheel: the lower, left, middle, right and upper item. */
typedef struct node {
    int32_t left, right; /* [section] */
    mpl_len size;
    double area; /* size * sections */
    int32_t n_kids, kid[WHEEL];
    int32_t partner; /* of its best pair; -1: none */
    double score;    /* of its best pair; lower is better */
} node;

typedef struct wheel {
    int32_t kid[WHEEL];
    double score;
} wheel;

/* A merger or a split. */
typedef struct change {
    int32_t id, n_kids, kid[WHEEL];
    bool apart;
} change;

typedef struct merger {
    mpl_ctx *ctx;
    const mpl_exact_part *part;
    const mpl_exact_case *exact_case;
    node *node;              /* [2 * n] the items first */
    mpl_len *slack;          /* [section] waste still allowed */
    int32_t *left, n_left;   /* [n] unmerged nodes */
    int32_t *at;             /* [2 * n] index into left */
    int32_t *spare, n_spare; /* [n] unused nodes */
    int32_t *head[2];        /* [n_sections + 1] lists of unmerged nodes by left, right section */
    int32_t *next[2];        /* [2 * n] */
    change *log;             /* of a repair */
    size_t n_log, log_room;
    int32_t avoided[DEEPEST][2], n_avoided; /* pairs just split */
    double noise;                           /* of scores */
    uint32_t without;                       /* bits of mpl_exact_rule */
    uint64_t ticks;
    mpl_rng rng;
} merger;

/* ---- pairs ---- */

/* Whether sections [from, to) can waste this much. */
static bool can_waste(merger *self, int32_t from, int32_t to, mpl_len waste)
{
    int32_t s = from;

    if (waste <= 0)
        return true;
    while (s < to && self->slack[s] >= waste)
        s++;
    self->ticks += (uint64_t)(s - from < 0 ? 0 : s - from);
    return s >= to;
}

static bool is_stacked(const node *x, const node *y)
{
    return x->left < y->right && y->left < x->right;
}

/* Merges x and y, where x is not after y. */
static node make_pair(const node *x, const node *y)
{
    node both = {.left = x->left < y->left ? x->left : y->left,
                 .right = x->right > y->right ? x->right : y->right,
                 .partner = -1,
                 .score = NEVER};

    if (is_stacked(x, y))
        both.size = x->size + y->size;
    else
        both.size = x->size > y->size ? x->size : y->size;
    both.area = (double)both.size * (both.right - both.left);
    return both;
}

static bool fits(merger *self, const node *x, const node *y, const node *both)
{
    if (is_stacked(x, y))
        return can_waste(self, both->left, x->left, x->size) &&
               can_waste(self, x->right, both->right, x->size) &&
               can_waste(self, both->left, y->left, y->size) &&
               can_waste(self, y->right, both->right, y->size);
    return can_waste(self, x->left, x->right, both->size - x->size) &&
           can_waste(self, y->left, y->right, both->size - y->size) &&
           can_waste(self, x->right, y->left, both->size) &&
           can_waste(self, y->right, x->left, both->size);
}

static void waste(merger *self, int32_t from, int32_t to, mpl_len much)
{
    for (int32_t s = from; s < to; s++)
        self->slack[s] -= much;
}

/* Subtracts the waste of merging x and y from the slack; sign -1 restores it. */
static void account(merger *self, const node *x, const node *y, const node *both, mpl_len sign)
{
    if (is_stacked(x, y)) {
        waste(self, both->left, x->left, sign * x->size);
        waste(self, x->right, both->right, sign * x->size);
        waste(self, both->left, y->left, sign * y->size);
        waste(self, y->right, both->right, sign * y->size);
    } else {
        waste(self, x->left, x->right, sign * (both->size - x->size));
        waste(self, y->left, y->right, sign * (both->size - y->size));
        waste(self, x->right, y->left, sign * both->size);
        waste(self, y->right, x->left, sign * both->size);
    }
}

static bool is_avoided(const merger *self, int32_t a, int32_t b)
{
    for (int32_t k = 0; k < self->n_avoided; k++)
        if ((self->avoided[k][0] == a && self->avoided[k][1] == b) ||
            (self->avoided[k][0] == b && self->avoided[k][1] == a))
            return true;
    return false;
}

/* Records the pair i, j if it is the best of either. */
static void weigh(merger *self, int32_t i, int32_t j)
{
    node *x = &self->node[i], *y = &self->node[j], both = make_pair(x, y);
    double smaller = x->area < y->area ? x->area : y->area;
    double score = (both.area - x->area - y->area) / smaller + (is_stacked(x, y) ? STACK_COST : 0);

    self->ticks += 2;
    if (score >= x->score && score >= y->score)
        return;
    if (!fits(self, x, y, &both) || is_avoided(self, i, j))
        return;
    if (self->noise > 0)
        score += self->noise * (double)mpl_rng_below(&self->rng, 1024) / 1024;
    if (score < x->score)
        x->score = score, x->partner = j;
    if (score < y->score)
        y->score = score, y->partner = i;
}

static void forget(node *self)
{
    self->partner = -1;
    self->score = NEVER;
}

static void weigh_all(merger *self)
{
    for (int32_t k = 0; k < self->n_left; k++)
        forget(&self->node[self->left[k]]);
    for (int32_t k = 0; k < self->n_left; k++)
        for (int32_t l = 0; l < k; l++)
            weigh(self, self->left[k], self->left[l]);
}

static void weigh_one(merger *self, int32_t i)
{
    for (int32_t k = 0; k < self->n_left; k++)
        if (self->left[k] != i)
            weigh(self, i, self->left[k]);
}

static bool is_left(const merger *self, int32_t i)
{
    return self->at[i] < self->n_left && self->left[self->at[i]] == i;
}

/* ---- wheels ---- */

static node make_wheel(const merger *self, const int32_t kid[WHEEL])
{
    const node *low = &self->node[kid[0]], *left = &self->node[kid[1]],
               *middle = &self->node[kid[2]], *right = &self->node[kid[3]],
               *high = &self->node[kid[4]];
    node all = {.left = low->left, .right = high->right, .partner = -1, .score = NEVER};

    all.size = low->size + middle->size + high->size;
    if (all.size < low->size + left->size)
        all.size = low->size + left->size;
    if (all.size < right->size + high->size)
        all.size = right->size + high->size;
    all.area = (double)all.size * (all.right - all.left);
    return all;
}

static bool wheel_fits(merger *self, const int32_t kid[WHEEL], const node *all)
{
    const node *low = &self->node[kid[0]], *left = &self->node[kid[1]],
               *middle = &self->node[kid[2]], *right = &self->node[kid[3]],
               *high = &self->node[kid[4]];

    return can_waste(self, left->left, left->right, all->size - low->size - left->size) &&
           can_waste(self, middle->left, middle->right,
                     all->size - low->size - middle->size - high->size) &&
           can_waste(self, right->left, right->right, all->size - right->size - high->size);
}

static void account_wheel(merger *self, const int32_t kid[WHEEL], const node *all, mpl_len sign)
{
    const node *low = &self->node[kid[0]], *left = &self->node[kid[1]],
               *middle = &self->node[kid[2]], *right = &self->node[kid[3]],
               *high = &self->node[kid[4]];

    waste(self, left->left, left->right, sign * (all->size - low->size - left->size));
    waste(self, middle->left, middle->right,
          sign * (all->size - low->size - middle->size - high->size));
    waste(self, right->left, right->right, sign * (all->size - right->size - high->size));
}

static void weigh_wheel(merger *self, const int32_t kid[WHEEL], wheel *best)
{
    node all = make_wheel(self, kid);
    double area = 0, score;

    for (int k = 0; k < WHEEL; k++)
        area += self->node[kid[k]].area;
    score = (all.area - area) / (area / WHEEL);
    self->ticks += WHEEL;
    if (score >= best->score || is_avoided(self, kid[0], kid[1]) || !wheel_fits(self, kid, &all))
        return;
    if (self->noise > 0)
        score += self->noise * (double)mpl_rng_below(&self->rng, 1024) / 1024;
    if (score < best->score) {
        best->score = score;
        memcpy(best->kid, kid, sizeof best->kid);
    }
}

/* Tries the wheels around kid[2] with known kid[0] and kid[1]. */
static void close_wheel(merger *self, int32_t kid[WHEEL], wheel *best)
{
    const node *middle = &self->node[kid[2]];

    for (kid[4] = self->head[0][middle->left]; kid[4] >= 0; kid[4] = self->next[0][kid[4]])
        for (kid[3] = self->head[0][middle->right]; kid[3] >= 0; kid[3] = self->next[0][kid[3]])
            if (kid[4] != kid[2] && self->node[kid[4]].right == self->node[kid[3]].right)
                weigh_wheel(self, kid, best);
}

/* Finds the wheel of least waste, if any. */
static void find_wheel(merger *self, wheel *best)
{
    int32_t kid[WHEEL];

    best->score = NEVER;
    if (!mpl_exact_uses(self->without, MPL_RULE_wheels))
        return;
    for (int32_t t = 0; t <= self->exact_case->n_sections; t++)
        self->head[0][t] = self->head[1][t] = -1;
    for (int32_t k = 0; k < self->n_left; k++) {
        int32_t i = self->left[k], left = self->node[i].left, right = self->node[i].right;

        self->next[0][i] = self->head[0][left];
        self->head[0][left] = i;
        self->next[1][i] = self->head[1][right];
        self->head[1][right] = i;
    }
    for (int32_t k = 0; k < self->n_left; k++) {
        const node *middle = &self->node[self->left[k]];

        kid[2] = self->left[k];
        for (kid[1] = self->head[1][middle->left]; kid[1] >= 0; kid[1] = self->next[1][kid[1]])
            for (kid[0] = self->head[1][middle->right]; kid[0] >= 0; kid[0] = self->next[1][kid[0]])
                if (kid[0] != kid[2] && self->node[kid[0]].left == self->node[kid[1]].left)
                    close_wheel(self, kid, best);
    }
    self->ticks += (uint64_t)(self->n_left * 2 + self->exact_case->n_sections / 4);
}

/* ---- mergers ---- */

static void leave(merger *self, int32_t i)
{
    int32_t last = self->left[--self->n_left];

    self->left[self->at[i]] = last;
    self->at[last] = self->at[i];
}

static void join(merger *self, int32_t i)
{
    self->at[i] = self->n_left;
    self->left[self->n_left++] = i;
}

static int32_t merge(merger *self, int32_t n_kids, const int32_t *kid)
{
    int32_t id = self->spare[--self->n_spare];
    node all;

    if (n_kids == WHEEL) {
        all = make_wheel(self, kid);
        account_wheel(self, kid, &all, 1);
    } else {
        all = make_pair(&self->node[kid[0]], &self->node[kid[1]]);
        account(self, &self->node[kid[0]], &self->node[kid[1]], &all, 1);
    }
    all.n_kids = n_kids;
    for (int32_t k = 0; k < n_kids; k++) {
        all.kid[k] = kid[k];
        leave(self, kid[k]);
    }
    self->node[id] = all;
    join(self, id);
    return id;
}

static void take_apart(merger *self, int32_t id)
{
    const node *v = &self->node[id];

    if (v->n_kids == WHEEL)
        account_wheel(self, v->kid, v, -1);
    else
        account(self, &self->node[v->kid[0]], &self->node[v->kid[1]], v, -1);
    leave(self, id);
    for (int32_t k = 0; k < v->n_kids; k++)
        join(self, v->kid[k]);
    self->spare[self->n_spare++] = id;
}

static mpl_status note(merger *self, change one)
{
    MPL_PASS(mpl_reserve(self->ctx, self->log, self->log_room, self->n_log + 1));
    self->log[self->n_log++] = one;
    return MPL_OK;
}

/* The unmerged node with the best pair, or -1. */
static int32_t find_best(merger *self)
{
    int32_t best = -1;

    for (int32_t k = 0; k < self->n_left; k++)
        if (self->node[self->left[k]].partner >= 0 &&
            (best < 0 || self->node[self->left[k]].score < self->node[best].score))
            best = self->left[k];
    self->ticks += (uint64_t)self->n_left;
    return best;
}

static mpl_status merge_best(merger *self, int32_t n_kids, const int32_t *kid)
{
    int32_t id = merge(self, n_kids, kid);

    MPL_PASS(note(self, (change){.id = id}));
    weigh_one(self, id);
    return MPL_OK;
}

static bool holds(merger *self, const wheel *w)
{
    node all;

    for (int k = 0; k < WHEEL; k++)
        if (!is_left(self, w->kid[k]))
            return false;
    all = make_wheel(self, w->kid);
    return wheel_fits(self, w->kid, &all);
}

/* Merges i with its partner if that is still possible: the partner or the slack may be gone. */
static mpl_status try_pair(merger *self, int32_t i)
{
    int32_t kid[PAIR] = {i, self->node[i].partner};
    node both = make_pair(&self->node[kid[0]], &self->node[kid[1]]);

    if (is_left(self, kid[1]) && fits(self, &self->node[kid[0]], &self->node[kid[1]], &both))
        return merge_best(self, PAIR, kid);
    forget(&self->node[i]);
    weigh_one(self, i);
    return MPL_OK;
}

/* Merges until nothing fits. Looks for a wheel when the last one is gone or no pairs are left. */
static mpl_status reduce(merger *self)
{
    wheel w;
    bool known = true;

    find_wheel(self, &w);
    for (;;) {
        int32_t i = find_best(self);

        if (w.score < NEVER && (i < 0 || w.score <= self->node[i].score)) {
            if (holds(self, &w))
                MPL_PASS(merge_best(self, WHEEL, w.kid));
            find_wheel(self, &w);
            known = true;
        } else if (i >= 0) {
            MPL_PASS(try_pair(self, i));
            known = false;
        } else if (!known) {
            find_wheel(self, &w);
            known = true;
        } else {
            break;
        }
    }
    return MPL_OK;
}

/* ---- repairs ---- */

static bool meet(const node *x, const node *y)
{
    return x->left == y->left || x->right == y->right || x->left == y->right || x->right == y->left;
}

static bool meets_any(const merger *self, const node *x, const node *v)
{
    for (int32_t k = 0; k < v->n_kids; k++)
        if (meet(x, &self->node[v->kid[k]]))
            return true;
    return false;
}

/* A merged node that begins or ends where v or one of its parts does, or -1. */
static int32_t pick_near(merger *self, const node *v)
{
    int32_t n = 0, pick = -1;

    for (int32_t k = 0; k < self->n_left; k++) {
        const node *x = &self->node[self->left[k]];

        if (x->n_kids > 0 && meets_any(self, x, v) && mpl_rng_below(&self->rng, (uint64_t)++n) == 0)
            pick = self->left[k];
    }
    self->ticks += (uint64_t)self->n_left;
    return pick;
}

/* Splits a few neighbours, from `id` on. Most of the pairs must not be merged again at once. */
static mpl_status loosen(merger *self, int32_t id)
{
    for (uint64_t k = 1 + mpl_rng_below(&self->rng, DEEPEST); k > 0 && id >= 0; k--) {
        node v = self->node[id];

        change one = {.id = id, .n_kids = v.n_kids, .apart = true};

        memcpy(one.kid, v.kid, sizeof one.kid);
        MPL_PASS(note(self, one));
        take_apart(self, id);
        if (mpl_rng_below(&self->rng, 2) != 0) {
            self->avoided[self->n_avoided][0] = v.kid[0];
            self->avoided[self->n_avoided++][1] = v.kid[1];
        }
        id = pick_near(self, &v);
    }
    return MPL_OK;
}

static void undo(merger *self)
{
    while (self->n_log > 0) {
        change one = self->log[--self->n_log];

        if (one.apart)
            merge(self, one.n_kids, one.kid); /* takes the same node */
        else
            take_apart(self, one.id);
    }
}

/* Splits some mergers and merges otherwise; undone if more nodes are left than before. */
static mpl_status repair(merger *self)
{
    static const double noises[] = {0, 0, 0.1, 0.3};
    int32_t most = self->n_left, id = self->left[mpl_rng_below(&self->rng, (uint64_t)self->n_left)],
            n;

    self->ticks++;
    if (self->node[id].n_kids == 0)
        return MPL_OK;
    self->n_log = 0;
    self->noise = noises[mpl_rng_below(&self->rng, 4)];
    MPL_PASS(loosen(self, id));
    weigh_all(self);
    MPL_PASS(reduce(self));
    n = self->n_avoided;
    self->n_avoided = 0;
    for (int32_t k = 0; k < n; k++)
        if (is_left(self, self->avoided[k][0]) && is_left(self, self->avoided[k][1]))
            weigh(self, self->avoided[k][0], self->avoided[k][1]);
    MPL_PASS(reduce(self));
    while (mpl_rng_below(&self->rng, PATIENCE) == 0)
        most++;
    if (self->n_left > most)
        undo(self);
    return MPL_OK;
}

/* ---- the remaining nodes ---- */

static mpl_status make_rest(const merger *self, uint64_t cap, mpl_exact_part *rest)
{
    MPL_PASS(mpl_exact_part_made(self->ctx, self->part->unit, cap, (uint32_t)self->n_left, rest));
    for (int32_t k = 0; k < self->n_left; k++) {
        const node *v = &self->node[self->left[k]];

        mpl_exact_part_add(rest, (uint32_t)v->left, (uint32_t)v->right, v->size);
    }
    rest->node_limit = NODES_PER_ITEM * rest->n;
    rest->tick_limit = TICKS_PER_ITEM * (uint64_t)rest->n;
    rest->n_members = MEMBERS;
    return MPL_OK;
}

/* Offset of the k-th part of v in v. [unit] */
static mpl_len height_in(const merger *self, const node *v, int32_t k)
{
    const node *first = &self->node[v->kid[0]];

    if (v->n_kids == WHEEL) {
        const mpl_len height[WHEEL] = {0, first->size, first->size, 0,
                                       v->size - self->node[v->kid[4]].size};

        return height[k];
    }
    return k > 0 && is_stacked(first, &self->node[v->kid[1]]) ? first->size : 0;
}

/* offset[n] of the items from those of the remaining nodes. [byte] */
static mpl_status spread(const merger *self, const mpl_exact_part *rest, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    uint64_t *at = NULL, unit = self->part->unit;
    int32_t *stack = NULL, n_stack = self->n_left;

    MPL_TRY(mpl_new(self->ctx, at, 2 * (size_t)self->exact_case->n));
    MPL_TRY(mpl_new(self->ctx, stack, (size_t)self->exact_case->n));
    for (int32_t k = 0; k < self->n_left; k++) {
        stack[k] = self->left[k];
        at[self->left[k]] = rest->offset[k];
    }
    while (n_stack > 0) {
        int32_t id = stack[--n_stack];
        const node *v = &self->node[id];

        if (v->n_kids == 0)
            offset[self->exact_case->item[id]] = at[id];
        for (int32_t k = 0; k < v->n_kids; k++) {
            at[v->kid[k]] = at[id] + (uint64_t)height_in(self, v, k) * unit;
            stack[n_stack++] = v->kid[k];
        }
    }
out:
    mpl_free_each(self->ctx, at, stack);
    return st;
}

static mpl_status search_rest(merger *self, uint64_t cap, mpl_exact_effort *effort,
                              uint64_t *offset, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_exact_part rest = {0};

    MPL_TRY(make_rest(self, cap, &rest));
    MPL_TRY(mpl_exact_part_try(&rest, cap, 0, effort, verdict));
    if (*verdict == MPL_EXACT_FOUND)
        MPL_TRY(spread(self, &rest, offset));
    else
        *verdict = MPL_EXACT_STOPPED;
out:
    mpl_exact_part_fini(&rest);
    return st;
}

/* ---- one run ---- */

/* Starts with all items unmerged and the slack of the case. */
static void begin(merger *self)
{
    const mpl_exact_case *exact_case = self->exact_case;

    for (int32_t s = 0; s < exact_case->n_sections; s++)
        self->slack[s] = exact_case->cap;
    for (int32_t i = 2 * exact_case->n; i-- > exact_case->n;)
        self->spare[self->n_spare++] = i;
    for (int32_t i = 0; i < exact_case->n; i++) {
        self->node[i] = (node){
            .left = exact_case->left[i],
            .right = exact_case->right[i],
            .size = exact_case->size[i],
            .area = (double)exact_case->size[i] * (exact_case->right[i] - exact_case->left[i]),
        };
        waste(self, exact_case->left[i], exact_case->right[i], exact_case->size[i]);
        join(self, i);
    }
}

static mpl_status merger_init(mpl_ctx *ctx, const mpl_exact_part *part, merger *m)
{
    size_t n = part->n;

    *m = (merger){.ctx = ctx, .part = part, .exact_case = part->side[0].exact_case};
    MPL_PASS(mpl_new(ctx, m->node, 2 * n));
    MPL_PASS(mpl_new(ctx, m->slack, (size_t)m->exact_case->n_sections));
    MPL_PASS(mpl_new(ctx, m->left, n));
    MPL_PASS(mpl_new(ctx, m->at, 2 * n));
    MPL_PASS(mpl_new(ctx, m->spare, n));
    for (int k = 0; k < 2; k++) {
        MPL_PASS(mpl_new(ctx, m->head[k], (size_t)m->exact_case->n_sections + 1));
        MPL_PASS(mpl_new(ctx, m->next[k], 2 * n));
    }
    return MPL_OK;
}

static void merger_fini(mpl_ctx *ctx, merger *m)
{
    mpl_free_each(ctx, m->node, m->slack, m->left, m->at, m->spare, m->log, m->head[0], m->head[1],
                  m->next[0], m->next[1]);
}

/* Repairs, and searches the remaining nodes whenever they are few. */
static mpl_status improve(merger *self, const mpl_exact_merging *one, mpl_exact_effort *effort,
                          uint64_t *offset, mpl_exact_verdict *verdict)
{
    int32_t best = INT32_MAX;

    for (uint32_t k = 0; *verdict != MPL_EXACT_FOUND && effort->ticks < effort->tick_limit &&
                         !effort->by_clock && atomic_load(one->first) > one->run;
         k++) {
        if (self->n_left <= REST_N &&
            (self->n_left < best || (self->n_left == best && k % REST_REPAIRS == 0)))
            MPL_PASS(search_rest(self, one->cap, effort, offset, verdict));
        best = self->n_left < best ? self->n_left : best;
        self->ticks = 0;
        MPL_PASS(repair(self));
        effort->ticks += self->ticks;
        effort->by_clock = effort->by_clock || mpl_exact_late(effort->deadline_ns, effort->watch);
    }
    return MPL_OK;
}

mpl_status mpl_exact_merge_once(mpl_ctx *ctx, const mpl_exact_merging *one,
                                mpl_exact_effort *effort, uint64_t *offset,
                                mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    merger m = {0};

    *verdict = MPL_EXACT_STOPPED;
    MPL_TRY(merger_init(ctx, one->part, &m));
    m.without = effort->without;
    m.rng = mpl_rng_of(one->seed + one->run * UINT64_C(0x632be59bd9b4e019));
    begin(&m);
    weigh_all(&m);
    MPL_TRY(reduce(&m));
    effort->ticks = m.ticks;
    MPL_TRY(improve(&m, one, effort, offset, verdict));
out:
    merger_fini(ctx, &m);
    return st;
}
