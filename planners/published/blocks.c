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
static mpl_status make_classes(mpl_ctx *ctx, mpl_blocks *blocks, mpl_block_group group)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = blocks->p;
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
        blocks->buffer_class[id[i]] = class;
        blocks->class_bytes[class] = p->bytes[id[i]];
        blocks->class_first[class] = first;
    }
    blocks->n_classes = p->n > 0 ? class + 1 : 0;
    for (uint32_t c = blocks->n_classes; c-- > 0;)
        blocks->class_end[c] =
            c + 1 < blocks->n_classes && blocks->class_first[c + 1] == blocks->class_first[c]
                ? blocks->class_end[c + 1]
                : c + 1;
out:
    mpl_free_each(ctx, key, id);
    return st;
}

/* ---- shelves ---- */

static void refresh_age(mpl_blocks *blocks, uint32_t class)
{
    uint32_t at = blocks->n_leaves + class, oldest = blocks->shelf_oldest[class];

    blocks->oldest_age[at] = oldest == MPL_NONE ? MPL_NONE : blocks->block_age[oldest];
    for (at /= 2; at > 0; at /= 2) {
        uint32_t left = blocks->oldest_age[2 * at], right = blocks->oldest_age[2 * at + 1];

        blocks->oldest_age[at] = left < right ? left : right;
    }
}

static void release(mpl_blocks *blocks, uint32_t block)
{
    uint32_t class = blocks->block_class[block], newest = blocks->shelf_newest[class];

    blocks->block_age[block] = blocks->n_releases++;
    blocks->block_older[block] = newest;
    blocks->block_newer[block] = MPL_NONE;
    blocks->shelf_newest[class] = block;
    if (newest != MPL_NONE) {
        blocks->block_newer[newest] = block;
        return;
    }
    blocks->shelf_oldest[class] = block;
    refresh_age(blocks, class);
}

uint32_t mpl_blocks_lowest(const mpl_blocks *blocks, uint32_t first, uint32_t end)
{
    uint32_t at = blocks->n_leaves + first;

    if (first >= end)
        return MPL_NONE;
    /* climb until a subtree at or right of `first` has a block, then descend to its leftmost */
    while (blocks->oldest_age[at] == MPL_NONE) {
        while ((at & 1) != 0)
            at /= 2;
        if (at == 0)
            return MPL_NONE;
        at++;
    }
    while (at < blocks->n_leaves)
        at = blocks->oldest_age[2 * at] != MPL_NONE ? 2 * at : 2 * at + 1;
    return at - blocks->n_leaves < end ? at - blocks->n_leaves : MPL_NONE;
}

uint32_t mpl_blocks_highest(const mpl_blocks *blocks, uint32_t first, uint32_t end)
{
    uint32_t at = blocks->n_leaves + end - 1;

    if (first >= end)
        return MPL_NONE;
    while (blocks->oldest_age[at] == MPL_NONE) {
        while (at > 1 && (at & 1) == 0)
            at /= 2;
        if (at == 1)
            return MPL_NONE;
        at--;
    }
    while (at < blocks->n_leaves)
        at = blocks->oldest_age[2 * at + 1] != MPL_NONE ? 2 * at + 1 : 2 * at;
    return at - blocks->n_leaves >= first ? at - blocks->n_leaves : MPL_NONE;
}

uint32_t mpl_blocks_oldest(const mpl_blocks *blocks, uint32_t first, uint32_t end)
{
    uint32_t best = 0;

    for (uint32_t low = blocks->n_leaves + first, high = blocks->n_leaves + end; low < high;
         low /= 2, high /= 2) {
        if ((low & 1) != 0) {
            best = best == 0 || blocks->oldest_age[low] < blocks->oldest_age[best] ? low : best;
            low++;
        }
        if ((high & 1) != 0) {
            high--;
            best = best == 0 || blocks->oldest_age[high] < blocks->oldest_age[best] ? high : best;
        }
    }
    if (best == 0 || blocks->oldest_age[best] == MPL_NONE)
        return MPL_NONE;
    while (best < blocks->n_leaves)
        best = blocks->oldest_age[2 * best] == blocks->oldest_age[best] ? 2 * best : 2 * best + 1;
    return best - blocks->n_leaves;
}

/* ---- queries and actions of a rule ---- */

bool mpl_blocks_alone(const mpl_blocks *blocks, mpl_buffer x)
{
    return blocks->p->no_reuse != NULL && blocks->p->no_reuse[x] != 0;
}

mpl_buffer mpl_blocks_partner(const mpl_blocks *blocks, mpl_buffer x, uint32_t i)
{
    if (blocks->pair_first == NULL)
        return MPL_NONE;
    for (uint32_t pair = blocks->pair_first[x]; pair < blocks->pair_end[x]; pair++) {
        mpl_buffer in = blocks->p->in_place_in[pair];
        /* an input born at this step may have overwritten a buffer that conflicts with x */
        bool free = !blocks->handed_on[in] && !mpl_blocks_alone(blocks, in) &&
                    blocks->p->birth[in] < blocks->p->birth[x];

        if (free && i-- == 0)
            return in;
    }
    return MPL_NONE;
}

uint64_t mpl_blocks_bytes(const mpl_blocks *blocks, uint32_t block)
{
    return blocks->class_bytes[blocks->block_class[block]];
}

void mpl_blocks_inherit(mpl_blocks *blocks, mpl_buffer x, mpl_buffer partner)
{
    blocks->block_of[x] = blocks->block_of[partner];
    blocks->handed_on[partner] = 1;
}

void mpl_blocks_take(mpl_blocks *blocks, mpl_buffer x, uint32_t class, bool oldest)
{
    uint32_t block = oldest ? blocks->shelf_oldest[class] : blocks->shelf_newest[class];
    uint32_t older = blocks->block_older[block], newer = blocks->block_newer[block];

    if (newer != MPL_NONE)
        blocks->block_older[newer] = older;
    else
        blocks->shelf_newest[class] = older;
    if (older != MPL_NONE)
        blocks->block_newer[older] = newer;
    else
        blocks->shelf_oldest[class] = newer;
    if (older == MPL_NONE)
        refresh_age(blocks, class);
    blocks->block_of[x] = block;
    if (blocks->class_bytes[class] < blocks->p->bytes[x])
        blocks->block_class[block] = blocks->buffer_class[x];
}

void mpl_blocks_open(mpl_blocks *blocks, mpl_buffer x)
{
    blocks->block_of[x] = blocks->n_blocks;
    blocks->block_class[blocks->n_blocks++] = blocks->buffer_class[x];
}

/* ---- the walk ---- */

static void clear(mpl_blocks *blocks)
{
    blocks->n_releases = 0;
    blocks->n_blocks = 0;
    memset(blocks->handed_on, 0, blocks->p->n);
    memset(blocks->oldest_age, 0xff, 2 * (size_t)blocks->n_leaves * sizeof *blocks->oldest_age);
    for (uint32_t c = 0; c < blocks->n_classes; c++)
        blocks->shelf_oldest[c] = blocks->shelf_newest[c] = MPL_NONE;
}

/* Frees the blocks of all buffers, from `at` on, dead at or before `step`; returns the next
 * position. */
static uint32_t release_until(mpl_blocks *blocks, uint32_t at, uint32_t step, bool keep_unused)
{
    const mpl_problem *p = blocks->p;

    for (; at < p->n && p->death[blocks->by_death[at]] <= step; at++) {
        mpl_buffer b = blocks->by_death[at];
        bool unused = p->death[b] - p->birth[b] == 1;

        if (!blocks->handed_on[b] && !mpl_blocks_alone(blocks, b) && !(unused && keep_unused))
            release(blocks, blocks->block_of[b]);
    }
    return at;
}

void mpl_blocks_walk(mpl_blocks *blocks, mpl_blocks_rule *rule, const void *params,
                     bool keep_unused)
{
    const mpl_problem *p = blocks->p;
    uint32_t dead = 0;

    clear(blocks);
    for (uint32_t i = 0, end; i < p->n; i = end) {
        uint32_t step = p->birth[blocks->by_birth[i]];

        for (end = i; end < p->n && p->birth[blocks->by_birth[end]] == step;)
            end++;
        dead = release_until(blocks, dead, step, keep_unused);
        rule(blocks, params, i, end);
    }
    blocks->run->ticks += 2 * (uint64_t)p->n;
}

/* ---- totals and the plan ---- */

mpl_status mpl_blocks_total(const mpl_blocks *blocks, uint64_t *bytes)
{
    uint64_t sum = 0;

    for (uint32_t block = 0; block < blocks->n_blocks; block++)
        if (!mpl_add_bytes(sum, mpl_blocks_bytes(blocks, block), &sum) || sum > INT64_MAX)
            return MPL_REFUSE(blocks->run->ctx, "the blocks together have more than 2^63 bytes");
    *bytes = sum;
    return MPL_OK;
}

mpl_status mpl_blocks_write(const mpl_blocks *blocks, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = blocks->run->ctx;
    const mpl_problem *p = blocks->p;
    uint64_t *base = NULL, *top = NULL;
    uint32_t *align = NULL, *pool = NULL;

    MPL_TRY(mpl_new_each(ctx, blocks->n_blocks, base, align, pool));
    MPL_TRY(mpl_new(ctx, top, p->n_pools));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t block = blocks->block_of[b];

        pool[block] = p->pool[b];
        if (align[block] < p->align[b])
            align[block] = p->align[b];
    }
    for (uint32_t block = 0; block < blocks->n_blocks; block++) {
        uint64_t *end = &top[pool[block]];

        if (!mpl_align_bytes(*end, align[block], &base[block]) ||
            !mpl_add_bytes(base[block], mpl_blocks_bytes(blocks, block), end) || *end > INT64_MAX)
            MPL_FAIL(ctx, MPL_EINPUT, "the blocks together have more than 2^63 bytes");
    }
    MPL_TRY(mpl_new(ctx, out->block, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        out->block[b] = blocks->block_of[b];
        out->offset[b] = base[blocks->block_of[b]];
    }
    out->claim = MPL_FEASIBLE;
out:
    mpl_free_each(ctx, base, align, pool, top);
    return st;
}

/* ---- creation and release ---- */

static mpl_status make_events(mpl_ctx *ctx, mpl_blocks *blocks)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = blocks->p;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(ctx, key, p->n));
    mpl_ids_ascending(p->n, blocks->by_birth);
    mpl_ids_ascending(p->n, blocks->by_death);
    mpl_ids_ascending(p->n, blocks->by_size);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - p->bytes[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, blocks->by_size, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = p->birth[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, blocks->by_size, key));
    MPL_TRY(mpl_sort_ids(ctx, p->n, blocks->by_birth, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = (uint64_t)p->death[b] << 1 | (p->death[b] - p->birth[b] == 1);
    MPL_TRY(mpl_sort_ids(ctx, p->n, blocks->by_death, key));
out:
    mpl_free(ctx, key);
    return st;
}

/* Pairs are sorted by (step, out, in), so the pairs of one output are neighbours. */
static mpl_status index_pairs(mpl_ctx *ctx, mpl_blocks *blocks)
{
    const mpl_problem *p = blocks->p;

    if (p->n_in_place == 0)
        return MPL_OK;
    MPL_PASS(mpl_new_each(ctx, p->n, blocks->pair_first, blocks->pair_end));
    for (uint32_t i = p->n_in_place; i-- > 0;) {
        mpl_buffer x = p->in_place_out[i];

        blocks->pair_first[x] = i;
        if (blocks->pair_end[x] == 0)
            blocks->pair_end[x] = i + 1;
    }
    return MPL_OK;
}

mpl_status mpl_blocks_new(mpl_run *run, const mpl_problem *p, mpl_block_group group,
                          mpl_blocks **out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = run->ctx;
    mpl_blocks *blocks = NULL;

    MPL_TRY(mpl_new(ctx, blocks, 1));
    blocks->run = run;
    blocks->p = p;
    for (blocks->n_leaves = 1; blocks->n_leaves < p->n;)
        blocks->n_leaves *= 2;
    MPL_TRY(mpl_new_each(ctx, p->n, blocks->class_bytes, blocks->class_first, blocks->class_end,
                         blocks->buffer_class, blocks->shelf_oldest, blocks->shelf_newest));
    MPL_TRY(mpl_new(ctx, blocks->oldest_age, 2 * (size_t)blocks->n_leaves));
    MPL_TRY(mpl_new_each(ctx, p->n, blocks->block_class, blocks->block_age, blocks->block_older,
                         blocks->block_newer, blocks->block_of, blocks->handed_on,
                         blocks->by_birth));
    MPL_TRY(mpl_new_each(ctx, p->n, blocks->by_size, blocks->by_death));
    MPL_TRY(make_classes(ctx, blocks, group));
    MPL_TRY(make_events(ctx, blocks));
    MPL_TRY(index_pairs(ctx, blocks));
    *out = blocks, blocks = NULL;
out:
    mpl_blocks_free(ctx, blocks);
    return st;
}

void mpl_blocks_free(mpl_ctx *ctx, mpl_blocks *blocks)
{
    if (blocks == NULL)
        return;
    mpl_free_each(ctx, blocks->class_bytes, blocks->class_first, blocks->class_end,
                  blocks->buffer_class, blocks->shelf_oldest, blocks->shelf_newest,
                  blocks->oldest_age, blocks->block_class, blocks->block_age, blocks->block_older,
                  blocks->block_newer, blocks->block_of, blocks->handed_on, blocks->by_birth,
                  blocks->by_size, blocks->by_death, blocks->pair_first, blocks->pair_end, blocks);
}
