/* blocks.c -- the walk over the steps and the shelves of free blocks. See blocks.h. */
#include "planners/published/blocks.h"
#include "planners/place/sort.h"

/* ---- classes ---- */

static uint64_t group_key(const mpl_problem *p, mpl_block_group group, mpl_buffer b, int part)
{
    if (part == 0)
        return p->bytes[b];
    if (part == 1)
        return group >= MPL_GROUP_SHAPE && p->shape_id != NULL ? p->shape_id[b] : 0;
    if (part == 2)
        return group >= MPL_GROUP_TYPE && p->type_id != NULL ? p->type_id[b] : 0;
    return p->pool[b];
}

/* Whether the keys of two buffers differ in part `from` or a later one. */
static bool keys_differ(const mpl_problem *p, mpl_block_group group, mpl_buffer a, mpl_buffer b,
                        int from)
{
    for (int part = from; part < 4; part++)
        if (group_key(p, group, a, part) != group_key(p, group, b, part))
            return true;
    return false;
}

/* Numbers the sizes: groups ascending by (pool, type, shape), sizes rising within each. */
static mpl_status make_classes(mpl_ctx *ctx, mpl_blocks *s, mpl_block_group group)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;
    uint64_t *key = NULL;
    uint32_t *id = NULL, class = 0, first = 0;

    MPL_TRY(mpl_new_each(ctx, p->n, key, id));
    mpl_ids_ascending(p->n, id);
    for (int part = 0; part < 4; part++) {
        for (mpl_buffer b = 0; b < p->n; b++)
            key[b] = group_key(p, group, b, part);
        MPL_TRY(mpl_sort_ids(ctx, p->n, id, key));
    }
    for (uint32_t i = 0; i < p->n; i++) {
        if (i > 0 && keys_differ(p, group, id[i - 1], id[i], 0))
            class ++;
        if (i > 0 && keys_differ(p, group, id[i - 1], id[i], 1))
            first = class;
        s->buffer_class[id[i]] = class;
        s->class_bytes[class] = p->bytes[id[i]];
        s->class_first[class] = first;
    }
    s->n_classes = p->n > 0 ? class + 1 : 0;
    for (uint32_t c = s->n_classes; c-- > 0;)
        s->class_end[c] = c + 1 < s->n_classes && s->class_first[c + 1] == s->class_first[c]
                              ? s->class_end[c + 1]
                              : c + 1;
out:
    mpl_free_each(ctx, key, id);
    return st;
}

/* ---- shelves ---- */

static void refresh_age(mpl_blocks *s, uint32_t class)
{
    uint32_t at = s->n_leaves + class, oldest = s->shelf_oldest[class];

    s->oldest_age[at] = oldest == MPL_NONE ? MPL_NONE : s->block_age[oldest];
    for (at /= 2; at > 0; at /= 2) {
        uint32_t left = s->oldest_age[2 * at], right = s->oldest_age[2 * at + 1];

        s->oldest_age[at] = left < right ? left : right;
    }
}

static void release(mpl_blocks *s, uint32_t block)
{
    uint32_t class = s->block_class[block], newest = s->shelf_newest[class];

    s->block_age[block] = s->n_releases++;
    s->block_older[block] = newest;
    s->block_newer[block] = MPL_NONE;
    s->shelf_newest[class] = block;
    if (newest != MPL_NONE) {
        s->block_newer[newest] = block;
        return;
    }
    s->shelf_oldest[class] = block;
    refresh_age(s, class);
}

uint32_t mpl_blocks_lowest(const mpl_blocks *s, uint32_t first, uint32_t end)
{
    uint32_t at = s->n_leaves + first;

    if (first >= end)
        return MPL_NONE;
    /* climb until a subtree at or right of `first` has a block, then descend to its leftmost */
    while (s->oldest_age[at] == MPL_NONE) {
        while ((at & 1) != 0)
            at /= 2;
        if (at == 0)
            return MPL_NONE;
        at++;
    }
    while (at < s->n_leaves)
        at = s->oldest_age[2 * at] != MPL_NONE ? 2 * at : 2 * at + 1;
    return at - s->n_leaves < end ? at - s->n_leaves : MPL_NONE;
}

uint32_t mpl_blocks_highest(const mpl_blocks *s, uint32_t first, uint32_t end)
{
    uint32_t at = s->n_leaves + end - 1;

    if (first >= end)
        return MPL_NONE;
    while (s->oldest_age[at] == MPL_NONE) {
        while (at > 1 && (at & 1) == 0)
            at /= 2;
        if (at == 1)
            return MPL_NONE;
        at--;
    }
    while (at < s->n_leaves)
        at = s->oldest_age[2 * at + 1] != MPL_NONE ? 2 * at + 1 : 2 * at;
    return at - s->n_leaves >= first ? at - s->n_leaves : MPL_NONE;
}

uint32_t mpl_blocks_oldest(const mpl_blocks *s, uint32_t first, uint32_t end)
{
    uint32_t best = 0;

    for (uint32_t low = s->n_leaves + first, high = s->n_leaves + end; low < high;
         low /= 2, high /= 2) {
        if ((low & 1) != 0) {
            best = best == 0 || s->oldest_age[low] < s->oldest_age[best] ? low : best;
            low++;
        }
        if ((high & 1) != 0) {
            high--;
            best = best == 0 || s->oldest_age[high] < s->oldest_age[best] ? high : best;
        }
    }
    if (best == 0 || s->oldest_age[best] == MPL_NONE)
        return MPL_NONE;
    while (best < s->n_leaves)
        best = s->oldest_age[2 * best] == s->oldest_age[best] ? 2 * best : 2 * best + 1;
    return best - s->n_leaves;
}

/* ---- queries and actions of a rule ---- */

bool mpl_blocks_alone(const mpl_blocks *s, mpl_buffer x)
{
    return s->p->no_reuse != NULL && s->p->no_reuse[x] != 0;
}

mpl_buffer mpl_blocks_partner(const mpl_blocks *s, mpl_buffer x, uint32_t i)
{
    if (s->pair_first == NULL)
        return MPL_NONE;
    for (uint32_t pair = s->pair_first[x]; pair < s->pair_end[x]; pair++) {
        mpl_buffer in = s->p->in_place_in[pair];
        /* an input born at this step may have overwritten a buffer that conflicts with x */
        bool free =
            !s->handed_on[in] && !mpl_blocks_alone(s, in) && s->p->birth[in] < s->p->birth[x];

        if (free && i-- == 0)
            return in;
    }
    return MPL_NONE;
}

uint64_t mpl_blocks_bytes(const mpl_blocks *s, uint32_t block)
{
    return s->class_bytes[s->block_class[block]];
}

void mpl_blocks_inherit(mpl_blocks *s, mpl_buffer x, mpl_buffer partner)
{
    s->block_of[x] = s->block_of[partner];
    s->handed_on[partner] = 1;
}

void mpl_blocks_take(mpl_blocks *s, mpl_buffer x, uint32_t class, bool oldest)
{
    uint32_t block = oldest ? s->shelf_oldest[class] : s->shelf_newest[class];
    uint32_t older = s->block_older[block], newer = s->block_newer[block];

    if (newer != MPL_NONE)
        s->block_older[newer] = older;
    else
        s->shelf_newest[class] = older;
    if (older != MPL_NONE)
        s->block_newer[older] = newer;
    else
        s->shelf_oldest[class] = newer;
    if (older == MPL_NONE)
        refresh_age(s, class);
    s->block_of[x] = block;
    if (s->class_bytes[class] < s->p->bytes[x])
        s->block_class[block] = s->buffer_class[x];
}

void mpl_blocks_open(mpl_blocks *s, mpl_buffer x)
{
    s->block_of[x] = s->n_blocks;
    s->block_class[s->n_blocks++] = s->buffer_class[x];
}

/* ---- the walk ---- */

static void clear(mpl_blocks *s)
{
    s->n_releases = 0;
    s->n_blocks = 0;
    memset(s->handed_on, 0, s->p->n);
    memset(s->oldest_age, 0xff, 2 * (size_t)s->n_leaves * sizeof *s->oldest_age);
    for (uint32_t c = 0; c < s->n_classes; c++)
        s->shelf_oldest[c] = s->shelf_newest[c] = MPL_NONE;
}

/* Frees the blocks of all buffers, from `at` on, dead at or before `step`; returns the next
 * position. */
static uint32_t release_until(mpl_blocks *s, uint32_t at, uint32_t step, bool keep_unused)
{
    const mpl_problem *p = s->p;

    for (; at < p->n && p->death[s->by_death[at]] <= step; at++) {
        mpl_buffer b = s->by_death[at];
        bool unused = p->death[b] - p->birth[b] == 1;

        if (!s->handed_on[b] && !mpl_blocks_alone(s, b) && !(unused && keep_unused))
            release(s, s->block_of[b]);
    }
    return at;
}

void mpl_blocks_walk(mpl_blocks *s, mpl_blocks_rule *rule, const void *params, bool keep_unused)
{
    const mpl_problem *p = s->p;
    uint32_t dead = 0;

    clear(s);
    for (uint32_t i = 0, end; i < p->n; i = end) {
        uint32_t step = p->birth[s->by_birth[i]];

        for (end = i; end < p->n && p->birth[s->by_birth[end]] == step;)
            end++;
        dead = release_until(s, dead, step, keep_unused);
        rule(s, params, i, end);
    }
    s->run->ticks += 2 * (uint64_t)p->n;
}

/* ---- totals and the plan ---- */

mpl_status mpl_blocks_total(const mpl_blocks *s, uint64_t *bytes)
{
    uint64_t sum = 0;

    for (uint32_t block = 0; block < s->n_blocks; block++)
        if (!mpl_add_bytes(sum, mpl_blocks_bytes(s, block), &sum) || sum > INT64_MAX)
            return MPL_REFUSE(s->run->ctx, "the blocks together have more than 2^63 bytes");
    *bytes = sum;
    return MPL_OK;
}

mpl_status mpl_blocks_write(const mpl_blocks *s, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = s->run->ctx;
    const mpl_problem *p = s->p;
    uint64_t *base = NULL, *top = NULL;
    uint32_t *align = NULL, *pool = NULL;

    MPL_TRY(mpl_new_each(ctx, s->n_blocks, base, align, pool));
    MPL_TRY(mpl_new(ctx, top, p->n_pools));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t block = s->block_of[b];

        pool[block] = p->pool[b];
        if (align[block] < p->align[b])
            align[block] = p->align[b];
    }
    for (uint32_t block = 0; block < s->n_blocks; block++) {
        uint64_t *end = &top[pool[block]];

        if (!mpl_align_bytes(*end, align[block], &base[block]) ||
            !mpl_add_bytes(base[block], mpl_blocks_bytes(s, block), end) || *end > INT64_MAX)
            MPL_FAIL(ctx, MPL_EINPUT, "the blocks together have more than 2^63 bytes");
    }
    MPL_TRY(mpl_new(ctx, out->block, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        out->block[b] = s->block_of[b];
        out->offset[b] = base[s->block_of[b]];
    }
    out->claim = MPL_FEASIBLE;
out:
    mpl_free_each(ctx, base, align, pool, top);
    return st;
}

/* ---- creation and release ---- */

static mpl_status make_events(mpl_ctx *ctx, mpl_blocks *s)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(ctx, key, p->n));
    mpl_ids_ascending(p->n, s->by_birth);
    mpl_ids_ascending(p->n, s->by_death);
    mpl_ids_ascending(p->n, s->by_size);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - p->bytes[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, s->by_size, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = p->birth[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, s->by_size, key));
    MPL_TRY(mpl_sort_ids(ctx, p->n, s->by_birth, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = (uint64_t)p->death[b] << 1 | (p->death[b] - p->birth[b] == 1);
    MPL_TRY(mpl_sort_ids(ctx, p->n, s->by_death, key));
out:
    mpl_free(ctx, key);
    return st;
}

/* Pairs are sorted by (step, out, in), so the pairs of one output are neighbours. */
static mpl_status index_pairs(mpl_ctx *ctx, mpl_blocks *s)
{
    const mpl_problem *p = s->p;

    if (p->n_in_place == 0)
        return MPL_OK;
    MPL_PASS(mpl_new_each(ctx, p->n, s->pair_first, s->pair_end));
    for (uint32_t i = p->n_in_place; i-- > 0;) {
        mpl_buffer x = p->in_place_out[i];

        s->pair_first[x] = i;
        if (s->pair_end[x] == 0)
            s->pair_end[x] = i + 1;
    }
    return MPL_OK;
}

mpl_status mpl_blocks_new(mpl_run *run, const mpl_problem *p, mpl_block_group group,
                          mpl_blocks **out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = run->ctx;
    mpl_blocks *s = NULL;

    MPL_TRY(mpl_new(ctx, s, 1));
    s->run = run;
    s->p = p;
    for (s->n_leaves = 1; s->n_leaves < p->n;)
        s->n_leaves *= 2;
    MPL_TRY(mpl_new_each(ctx, p->n, s->class_bytes, s->class_first, s->class_end, s->buffer_class,
                         s->shelf_oldest, s->shelf_newest));
    MPL_TRY(mpl_new(ctx, s->oldest_age, 2 * (size_t)s->n_leaves));
    MPL_TRY(mpl_new_each(ctx, p->n, s->block_class, s->block_age, s->block_older, s->block_newer,
                         s->block_of, s->handed_on, s->by_birth));
    MPL_TRY(mpl_new_each(ctx, p->n, s->by_size, s->by_death));
    MPL_TRY(make_classes(ctx, s, group));
    MPL_TRY(make_events(ctx, s));
    MPL_TRY(index_pairs(ctx, s));
    *out = s, s = NULL;
out:
    mpl_blocks_free(ctx, s);
    return st;
}

void mpl_blocks_free(mpl_ctx *ctx, mpl_blocks *s)
{
    if (s == NULL)
        return;
    mpl_free_each(ctx, s->class_bytes, s->class_first, s->class_end, s->buffer_class,
                  s->shelf_oldest, s->shelf_newest, s->oldest_age, s->block_class, s->block_age,
                  s->block_older, s->block_newer, s->block_of, s->handed_on, s->by_birth,
                  s->by_size, s->by_death, s->pair_first, s->pair_end, s);
}
