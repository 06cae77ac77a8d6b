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
    const mpl_exact_case *c;
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
static bool can_waste(merger *m, int32_t from, int32_t to, mpl_len waste)
{
    int32_t s = from;

    if (waste <= 0)
        return true;
    while (s < to && m->slack[s] >= waste)
        s++;
    m->ticks += (uint64_t)(s - from < 0 ? 0 : s - from);
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

static bool fits(merger *m, const node *x, const node *y, const node *both)
{
    if (is_stacked(x, y))
        return can_waste(m, both->left, x->left, x->size) &&
               can_waste(m, x->right, both->right, x->size) &&
               can_waste(m, both->left, y->left, y->size) &&
               can_waste(m, y->right, both->right, y->size);
    return can_waste(m, x->left, x->right, both->size - x->size) &&
           can_waste(m, y->left, y->right, both->size - y->size) &&
           can_waste(m, x->right, y->left, both->size) &&
           can_waste(m, y->right, x->left, both->size);
}

static void waste(merger *m, int32_t from, int32_t to, mpl_len much)
{
    for (int32_t s = from; s < to; s++)
        m->slack[s] -= much;
}

/* Subtracts the waste of merging x and y from the slack; sign -1 restores it. */
static void account(merger *m, const node *x, const node *y, const node *both, mpl_len sign)
{
    if (is_stacked(x, y)) {
        waste(m, both->left, x->left, sign * x->size);
        waste(m, x->right, both->right, sign * x->size);
        waste(m, both->left, y->left, sign * y->size);
        waste(m, y->right, both->right, sign * y->size);
    } else {
        waste(m, x->left, x->right, sign * (both->size - x->size));
        waste(m, y->left, y->right, sign * (both->size - y->size));
        waste(m, x->right, y->left, sign * both->size);
        waste(m, y->right, x->left, sign * both->size);
    }
}

static bool is_avoided(const merger *m, int32_t a, int32_t b)
{
    for (int32_t k = 0; k < m->n_avoided; k++)
        if ((m->avoided[k][0] == a && m->avoided[k][1] == b) ||
            (m->avoided[k][0] == b && m->avoided[k][1] == a))
            return true;
    return false;
}

/* Records the pair i, j if it is the best of either. */
static void weigh(merger *m, int32_t i, int32_t j)
{
    node *x = &m->node[i], *y = &m->node[j], both = make_pair(x, y);
    double smaller = x->area < y->area ? x->area : y->area;
    double score = (both.area - x->area - y->area) / smaller + (is_stacked(x, y) ? STACK_COST : 0);

    m->ticks += 2;
    if (score >= x->score && score >= y->score)
        return;
    if (!fits(m, x, y, &both) || is_avoided(m, i, j))
        return;
    if (m->noise > 0)
        score += m->noise * (double)mpl_rng_below(&m->rng, 1024) / 1024;
    if (score < x->score)
        x->score = score, x->partner = j;
    if (score < y->score)
        y->score = score, y->partner = i;
}

static void forget(node *x)
{
    x->partner = -1;
    x->score = NEVER;
}

static void weigh_all(merger *m)
{
    for (int32_t k = 0; k < m->n_left; k++)
        forget(&m->node[m->left[k]]);
    for (int32_t k = 0; k < m->n_left; k++)
        for (int32_t l = 0; l < k; l++)
            weigh(m, m->left[k], m->left[l]);
}

static void weigh_one(merger *m, int32_t i)
{
    for (int32_t k = 0; k < m->n_left; k++)
        if (m->left[k] != i)
            weigh(m, i, m->left[k]);
}

static bool is_left(const merger *m, int32_t i)
{
    return m->at[i] < m->n_left && m->left[m->at[i]] == i;
}

/* ---- wheels ---- */

static node make_wheel(const merger *m, const int32_t kid[WHEEL])
{
    const node *low = &m->node[kid[0]], *left = &m->node[kid[1]], *middle = &m->node[kid[2]],
               *right = &m->node[kid[3]], *high = &m->node[kid[4]];
    node all = {.left = low->left, .right = high->right, .partner = -1, .score = NEVER};

    all.size = low->size + middle->size + high->size;
    if (all.size < low->size + left->size)
        all.size = low->size + left->size;
    if (all.size < right->size + high->size)
        all.size = right->size + high->size;
    all.area = (double)all.size * (all.right - all.left);
    return all;
}

static bool wheel_fits(merger *m, const int32_t kid[WHEEL], const node *all)
{
    const node *low = &m->node[kid[0]], *left = &m->node[kid[1]], *middle = &m->node[kid[2]],
               *right = &m->node[kid[3]], *high = &m->node[kid[4]];

    return can_waste(m, left->left, left->right, all->size - low->size - left->size) &&
           can_waste(m, middle->left, middle->right,
                     all->size - low->size - middle->size - high->size) &&
           can_waste(m, right->left, right->right, all->size - right->size - high->size);
}

static void account_wheel(merger *m, const int32_t kid[WHEEL], const node *all, mpl_len sign)
{
    const node *low = &m->node[kid[0]], *left = &m->node[kid[1]], *middle = &m->node[kid[2]],
               *right = &m->node[kid[3]], *high = &m->node[kid[4]];

    waste(m, left->left, left->right, sign * (all->size - low->size - left->size));
    waste(m, middle->left, middle->right,
          sign * (all->size - low->size - middle->size - high->size));
    waste(m, right->left, right->right, sign * (all->size - right->size - high->size));
}

static void weigh_wheel(merger *m, const int32_t kid[WHEEL], wheel *best)
{
    node all = make_wheel(m, kid);
    double area = 0, score;

    for (int k = 0; k < WHEEL; k++)
        area += m->node[kid[k]].area;
    score = (all.area - area) / (area / WHEEL);
    m->ticks += WHEEL;
    if (score >= best->score || is_avoided(m, kid[0], kid[1]) || !wheel_fits(m, kid, &all))
        return;
    if (m->noise > 0)
        score += m->noise * (double)mpl_rng_below(&m->rng, 1024) / 1024;
    if (score < best->score) {
        best->score = score;
        memcpy(best->kid, kid, sizeof best->kid);
    }
}

/* Tries the wheels around kid[2] with known kid[0] and kid[1]. */
static void close_wheel(merger *m, int32_t kid[WHEEL], wheel *best)
{
    const node *middle = &m->node[kid[2]];

    for (kid[4] = m->head[0][middle->left]; kid[4] >= 0; kid[4] = m->next[0][kid[4]])
        for (kid[3] = m->head[0][middle->right]; kid[3] >= 0; kid[3] = m->next[0][kid[3]])
            if (kid[4] != kid[2] && m->node[kid[4]].right == m->node[kid[3]].right)
                weigh_wheel(m, kid, best);
}

/* Finds the wheel of least waste, if any. */
static void find_wheel(merger *m, wheel *best)
{
    int32_t kid[WHEEL];

    best->score = NEVER;
    if (!mpl_exact_uses(m->without, MPL_RULE_wheels))
        return;
    for (int32_t t = 0; t <= m->c->n_sections; t++)
        m->head[0][t] = m->head[1][t] = -1;
    for (int32_t k = 0; k < m->n_left; k++) {
        int32_t i = m->left[k], left = m->node[i].left, right = m->node[i].right;

        m->next[0][i] = m->head[0][left];
        m->head[0][left] = i;
        m->next[1][i] = m->head[1][right];
        m->head[1][right] = i;
    }
    for (int32_t k = 0; k < m->n_left; k++) {
        const node *middle = &m->node[m->left[k]];

        kid[2] = m->left[k];
        for (kid[1] = m->head[1][middle->left]; kid[1] >= 0; kid[1] = m->next[1][kid[1]])
            for (kid[0] = m->head[1][middle->right]; kid[0] >= 0; kid[0] = m->next[1][kid[0]])
                if (kid[0] != kid[2] && m->node[kid[0]].left == m->node[kid[1]].left)
                    close_wheel(m, kid, best);
    }
    m->ticks += (uint64_t)(m->n_left * 2 + m->c->n_sections / 4);
}

/* ---- mergers ---- */

static void leave(merger *m, int32_t i)
{
    int32_t last = m->left[--m->n_left];

    m->left[m->at[i]] = last;
    m->at[last] = m->at[i];
}

static void join(merger *m, int32_t i)
{
    m->at[i] = m->n_left;
    m->left[m->n_left++] = i;
}

static int32_t merge(merger *m, int32_t n_kids, const int32_t *kid)
{
    int32_t id = m->spare[--m->n_spare];
    node all;

    if (n_kids == WHEEL) {
        all = make_wheel(m, kid);
        account_wheel(m, kid, &all, 1);
    } else {
        all = make_pair(&m->node[kid[0]], &m->node[kid[1]]);
        account(m, &m->node[kid[0]], &m->node[kid[1]], &all, 1);
    }
    all.n_kids = n_kids;
    for (int32_t k = 0; k < n_kids; k++) {
        all.kid[k] = kid[k];
        leave(m, kid[k]);
    }
    m->node[id] = all;
    join(m, id);
    return id;
}

static void take_apart(merger *m, int32_t id)
{
    const node *v = &m->node[id];

    if (v->n_kids == WHEEL)
        account_wheel(m, v->kid, v, -1);
    else
        account(m, &m->node[v->kid[0]], &m->node[v->kid[1]], v, -1);
    leave(m, id);
    for (int32_t k = 0; k < v->n_kids; k++)
        join(m, v->kid[k]);
    m->spare[m->n_spare++] = id;
}

static mpl_status note(merger *m, change one)
{
    MPL_PASS(mpl_reserve(m->ctx, m->log, m->log_room, m->n_log + 1));
    m->log[m->n_log++] = one;
    return MPL_OK;
}

/* The unmerged node with the best pair, or -1. */
static int32_t find_best(merger *m)
{
    int32_t best = -1;

    for (int32_t k = 0; k < m->n_left; k++)
        if (m->node[m->left[k]].partner >= 0 &&
            (best < 0 || m->node[m->left[k]].score < m->node[best].score))
            best = m->left[k];
    m->ticks += (uint64_t)m->n_left;
    return best;
}

static mpl_status merge_best(merger *m, int32_t n_kids, const int32_t *kid)
{
    int32_t id = merge(m, n_kids, kid);

    MPL_PASS(note(m, (change){.id = id}));
    weigh_one(m, id);
    return MPL_OK;
}

static bool holds(merger *m, const wheel *w)
{
    node all;

    for (int k = 0; k < WHEEL; k++)
        if (!is_left(m, w->kid[k]))
            return false;
    all = make_wheel(m, w->kid);
    return wheel_fits(m, w->kid, &all);
}

/* Merges i with its partner if that is still possible: the partner or the slack may be gone. */
static mpl_status try_pair(merger *m, int32_t i)
{
    int32_t kid[PAIR] = {i, m->node[i].partner};
    node both = make_pair(&m->node[kid[0]], &m->node[kid[1]]);

    if (is_left(m, kid[1]) && fits(m, &m->node[kid[0]], &m->node[kid[1]], &both))
        return merge_best(m, PAIR, kid);
    forget(&m->node[i]);
    weigh_one(m, i);
    return MPL_OK;
}

/* Merges until nothing fits. Looks for a wheel when the last one is gone or no pairs are left. */
static mpl_status reduce(merger *m)
{
    wheel w;
    bool known = true;

    find_wheel(m, &w);
    for (;;) {
        int32_t i = find_best(m);

        if (w.score < NEVER && (i < 0 || w.score <= m->node[i].score)) {
            if (holds(m, &w))
                MPL_PASS(merge_best(m, WHEEL, w.kid));
            find_wheel(m, &w);
            known = true;
        } else if (i >= 0) {
            MPL_PASS(try_pair(m, i));
            known = false;
        } else if (!known) {
            find_wheel(m, &w);
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

static bool meets_any(const merger *m, const node *x, const node *v)
{
    for (int32_t k = 0; k < v->n_kids; k++)
        if (meet(x, &m->node[v->kid[k]]))
            return true;
    return false;
}

/* A merged node that begins or ends where v or one of its parts does, or -1. */
static int32_t pick_near(merger *m, const node *v)
{
    int32_t n = 0, pick = -1;

    for (int32_t k = 0; k < m->n_left; k++) {
        const node *x = &m->node[m->left[k]];

        if (x->n_kids > 0 && meets_any(m, x, v) && mpl_rng_below(&m->rng, (uint64_t)++n) == 0)
            pick = m->left[k];
    }
    m->ticks += (uint64_t)m->n_left;
    return pick;
}

/* Splits a few neighbours, from `id` on. Most of the pairs must not be merged again at once. */
static mpl_status loosen(merger *m, int32_t id)
{
    for (uint64_t k = 1 + mpl_rng_below(&m->rng, DEEPEST); k > 0 && id >= 0; k--) {
        node v = m->node[id];

        change one = {.id = id, .n_kids = v.n_kids, .apart = true};

        memcpy(one.kid, v.kid, sizeof one.kid);
        MPL_PASS(note(m, one));
        take_apart(m, id);
        if (mpl_rng_below(&m->rng, 2) != 0) {
            m->avoided[m->n_avoided][0] = v.kid[0];
            m->avoided[m->n_avoided++][1] = v.kid[1];
        }
        id = pick_near(m, &v);
    }
    return MPL_OK;
}

static void undo(merger *m)
{
    while (m->n_log > 0) {
        change one = m->log[--m->n_log];

        if (one.apart)
            merge(m, one.n_kids, one.kid); /* takes the same node */
        else
            take_apart(m, one.id);
    }
}

/* Splits some mergers and merges otherwise; undone if more nodes are left than before. */
static mpl_status repair(merger *m)
{
    static const double noises[] = {0, 0, 0.1, 0.3};
    int32_t most = m->n_left, id = m->left[mpl_rng_below(&m->rng, (uint64_t)m->n_left)], n;

    m->ticks++;
    if (m->node[id].n_kids == 0)
        return MPL_OK;
    m->n_log = 0;
    m->noise = noises[mpl_rng_below(&m->rng, 4)];
    MPL_PASS(loosen(m, id));
    weigh_all(m);
    MPL_PASS(reduce(m));
    n = m->n_avoided;
    m->n_avoided = 0;
    for (int32_t k = 0; k < n; k++)
        if (is_left(m, m->avoided[k][0]) && is_left(m, m->avoided[k][1]))
            weigh(m, m->avoided[k][0], m->avoided[k][1]);
    MPL_PASS(reduce(m));
    while (mpl_rng_below(&m->rng, PATIENCE) == 0)
        most++;
    if (m->n_left > most)
        undo(m);
    return MPL_OK;
}

/* ---- the remaining nodes ---- */

static mpl_status make_rest(const merger *m, uint64_t cap, mpl_exact_part *rest)
{
    MPL_PASS(mpl_exact_part_made(m->ctx, m->part->unit, cap, (uint32_t)m->n_left, rest));
    for (int32_t k = 0; k < m->n_left; k++) {
        const node *v = &m->node[m->left[k]];

        mpl_exact_part_add(rest, (uint32_t)v->left, (uint32_t)v->right, v->size);
    }
    rest->node_limit = NODES_PER_ITEM * rest->n;
    rest->tick_limit = TICKS_PER_ITEM * (uint64_t)rest->n;
    rest->n_members = MEMBERS;
    return MPL_OK;
}

/* Offset of the k-th part of v in v. [unit] */
static mpl_len height_in(const merger *m, const node *v, int32_t k)
{
    const node *first = &m->node[v->kid[0]];

    if (v->n_kids == WHEEL) {
        const mpl_len height[WHEEL] = {0, first->size, first->size, 0,
                                       v->size - m->node[v->kid[4]].size};

        return height[k];
    }
    return k > 0 && is_stacked(first, &m->node[v->kid[1]]) ? first->size : 0;
}

/* offset[n] of the items from those of the remaining nodes. [byte] */
static mpl_status spread(const merger *m, const mpl_exact_part *rest, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    uint64_t *at = NULL, unit = m->part->unit;
    int32_t *stack = NULL, n_stack = m->n_left;

    MPL_TRY(mpl_new(m->ctx, at, 2 * (size_t)m->c->n));
    MPL_TRY(mpl_new(m->ctx, stack, (size_t)m->c->n));
    for (int32_t k = 0; k < m->n_left; k++) {
        stack[k] = m->left[k];
        at[m->left[k]] = rest->offset[k];
    }
    while (n_stack > 0) {
        int32_t id = stack[--n_stack];
        const node *v = &m->node[id];

        if (v->n_kids == 0)
            offset[m->c->item[id]] = at[id];
        for (int32_t k = 0; k < v->n_kids; k++) {
            at[v->kid[k]] = at[id] + (uint64_t)height_in(m, v, k) * unit;
            stack[n_stack++] = v->kid[k];
        }
    }
out:
    mpl_free_each(m->ctx, at, stack);
    return st;
}

static mpl_status search_rest(merger *m, uint64_t cap, mpl_exact_effort *effort, uint64_t *offset,
                              mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_exact_part rest = {0};

    MPL_TRY(make_rest(m, cap, &rest));
    MPL_TRY(mpl_exact_part_try(&rest, cap, 0, effort, verdict));
    if (*verdict == MPL_EXACT_FOUND)
        MPL_TRY(spread(m, &rest, offset));
    else
        *verdict = MPL_EXACT_STOPPED;
out:
    mpl_exact_part_fini(&rest);
    return st;
}

/* ---- one run ---- */

/* Starts with all items unmerged and the slack of the case. */
static void begin(merger *m)
{
    const mpl_exact_case *c = m->c;

    for (int32_t s = 0; s < c->n_sections; s++)
        m->slack[s] = c->cap;
    for (int32_t i = 2 * c->n; i-- > c->n;)
        m->spare[m->n_spare++] = i;
    for (int32_t i = 0; i < c->n; i++) {
        m->node[i] = (node){
            .left = c->left[i],
            .right = c->right[i],
            .size = c->size[i],
            .area = (double)c->size[i] * (c->right[i] - c->left[i]),
        };
        waste(m, c->left[i], c->right[i], c->size[i]);
        join(m, i);
    }
}

static mpl_status merger_init(mpl_ctx *ctx, const mpl_exact_part *part, merger *m)
{
    size_t n = part->n;

    *m = (merger){.ctx = ctx, .part = part, .c = part->side[0].c};
    MPL_PASS(mpl_new(ctx, m->node, 2 * n));
    MPL_PASS(mpl_new(ctx, m->slack, (size_t)m->c->n_sections));
    MPL_PASS(mpl_new(ctx, m->left, n));
    MPL_PASS(mpl_new(ctx, m->at, 2 * n));
    MPL_PASS(mpl_new(ctx, m->spare, n));
    for (int k = 0; k < 2; k++) {
        MPL_PASS(mpl_new(ctx, m->head[k], (size_t)m->c->n_sections + 1));
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
static mpl_status improve(merger *m, const mpl_exact_merging *one, mpl_exact_effort *effort,
                          uint64_t *offset, mpl_exact_verdict *verdict)
{
    int32_t best = INT32_MAX;

    for (uint32_t k = 0; *verdict != MPL_EXACT_FOUND && effort->ticks < effort->tick_limit &&
                         !effort->by_clock && atomic_load(one->first) > one->run;
         k++) {
        if (m->n_left <= REST_N &&
            (m->n_left < best || (m->n_left == best && k % REST_REPAIRS == 0)))
            MPL_PASS(search_rest(m, one->cap, effort, offset, verdict));
        best = m->n_left < best ? m->n_left : best;
        m->ticks = 0;
        MPL_PASS(repair(m));
        effort->ticks += m->ticks;
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
