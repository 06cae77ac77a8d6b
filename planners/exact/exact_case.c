/* exact_case.c -- makes a case for the search by sections. See exact_priv.h. */
#include "planners/exact/exact_priv.h"

#include <stdlib.h>

/* An item and its range in steps, in the chosen direction of time. */
typedef struct ranged {
    const mpl_exact_item *item;
    uint32_t index;
    int32_t left, right;
} ranged;

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Compares all properties, so that twins are neighbours; then the index. */
static int by_left(const void *a, const void *b)
{
    const ranged *x = a, *y = b;
    int order = compare_u64((uint64_t)x->left, (uint64_t)y->left);

    order = order != 0 ? order : compare_u64((uint64_t)x->right, (uint64_t)y->right);
    order = order != 0 ? order : compare_u64(x->item->bytes, y->item->bytes);
    order = order != 0 ? order : compare_u64((uint64_t)x->item->align, (uint64_t)y->item->align);
    order = order != 0 ? order : compare_u64(x->item->given_align, y->item->given_align);
    order = order != 0 ? order : compare_u64((uint64_t)x->item->start, (uint64_t)y->item->start);
    order = order != 0 ? order : x->item->fixed - y->item->fixed;
    return order != 0 ? order : compare_u64(x->index, y->index);
}

static bool twins(const ranged *a, const ranged *b)
{
    return a->left == b->left && a->right == b->right && a->item->size == b->item->size &&
           a->item->bytes == b->item->bytes && a->item->align == b->item->align &&
           a->item->given_align == b->item->given_align && a->item->start == b->item->start &&
           a->item->fixed == b->item->fixed;
}

/* Finds ranges in sections. Between two births only the last live set before a death is maximal, so
 * a section closes at the first death after a birth. */
static mpl_status find_sections(mpl_ctx *ctx, const mpl_exact_item *item, uint32_t n, ranged *range,
                                int32_t *n_sections)
{
    mpl_status st = MPL_OK;
    uint32_t *time = NULL, n_times = 0;
    uint8_t *begins = NULL, *ends = NULL;
    int32_t *section = NULL, closed = 0;
    bool open = false;

    MPL_TRY(mpl_new_each(ctx, 2 * (size_t)n, time, begins, ends, section));
    for (uint32_t i = 0; i < n; i++)
        time[2 * i] = item[i].birth, time[2 * i + 1] = item[i].death;
    mpl_sort_u32(time, 2 * (size_t)n);
    for (uint32_t k = 0; k < 2 * n; k++)
        if (n_times == 0 || time[k] != time[n_times - 1])
            time[n_times++] = time[k];
    for (uint32_t i = 0; i < n; i++) {
        begins[mpl_rank_u32(time, n_times, item[i].birth)] = 1;
        ends[mpl_rank_u32(time, n_times, item[i].death)] = 1;
    }
    for (uint32_t k = 0; k < n_times; k++) {
        if (ends[k] && open)
            closed++, open = false;
        section[k] = closed; /* section open from time k on, or the next one */
        open = open || begins[k];
    }
    for (uint32_t i = 0; i < n; i++) {
        range[i] = (ranged){.item = &item[i], .index = i};
        range[i].left = section[mpl_rank_u32(time, n_times, item[i].birth)];
        range[i].right = section[mpl_rank_u32(time, n_times, item[i].death)];
    }
    *n_sections = closed;
out:
    mpl_free_each(ctx, time, begins, ends, section);
    return st;
}

static mpl_status fill_items(mpl_ctx *ctx, mpl_exact_case *c, const ranged *range)
{
    size_t n = (size_t)c->n;

    MPL_PASS(mpl_new_each(ctx, n, c->left, c->right, c->size, c->align, c->start, c->limit,
                          c->duration));
    MPL_PASS(mpl_new_each(ctx, n, c->item, c->twin));
    for (int32_t i = 0; i < c->n; i++) {
        const mpl_exact_item *item = range[i].item;

        c->left[i] = range[i].left;
        c->right[i] = range[i].right;
        c->size[i] = item->size;
        c->align[i] = item->align;
        c->start[i] = (item->start + item->align - 1) / item->align * item->align;
        c->duration[i] = item->death - item->birth;
        c->item[i] = range[i].index;
        c->twin[i] = i > 0 && twins(&range[i - 1], &range[i]) ? i - 1 : -1;
    }
    return MPL_OK;
}

static mpl_status fill_sections(mpl_ctx *ctx, mpl_exact_case *c)
{
    mpl_status st = MPL_OK;
    size_t n_members = 0;
    int32_t *used = NULL;

    MPL_TRY(mpl_new_each(ctx, (size_t)c->n_sections + 1, c->first, c->begin));
    MPL_TRY(mpl_new(ctx, used, (size_t)c->n_sections));
    for (int32_t i = 0; i < c->n; i++) {
        n_members += (size_t)(c->right[i] - c->left[i]);
        c->first[c->left[i] + 1] = i + 1;
    }
    for (int32_t s = 0; s < c->n_sections; s++)
        c->first[s + 1] = c->first[s + 1] > c->first[s] ? c->first[s + 1] : c->first[s];
    if (n_members > MPL_EXACT_MEMBERS)
        goto out;
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t s = c->left[i]; s < c->right[i]; s++)
            c->begin[s + 1]++;
    for (int32_t s = 0; s < c->n_sections; s++)
        c->begin[s + 1] += c->begin[s];
    MPL_TRY(mpl_new(ctx, c->member, n_members));
    for (int32_t i = 0; i < c->n; i++)
        for (int32_t s = c->left[i]; s < c->right[i]; s++)
            c->member[c->begin[s] + used[s]++] = i;
out:
    mpl_free(ctx, used);
    return st;
}

mpl_status mpl_exact_case_new(mpl_ctx *ctx, const mpl_exact_item *item, uint32_t n, bool mirrored,
                              mpl_exact_case **out)
{
    mpl_status st = MPL_OK;
    mpl_exact_case *c = NULL;
    ranged *range = NULL;

    MPL_TRY(mpl_new(ctx, c, 1));
    MPL_TRY(mpl_new(ctx, range, n));
    c->n = (int32_t)n;
    MPL_TRY(find_sections(ctx, item, n, range, &c->n_sections));
    for (uint32_t i = 0; mirrored && i < n; i++) {
        int32_t left = range[i].left;

        range[i].left = c->n_sections - range[i].right;
        range[i].right = c->n_sections - left;
    }
    qsort(range, n, sizeof *range, by_left);
    MPL_TRY(fill_items(ctx, c, range));
    MPL_TRY(fill_sections(ctx, c));
    *out = c, c = NULL;
out:
    mpl_free(ctx, range);
    mpl_exact_case_free(ctx, c);
    return st;
}

void mpl_exact_case_free(mpl_ctx *ctx, mpl_exact_case *c)
{
    if (c == NULL)
        return;
    mpl_free_each(ctx, c->left, c->right, c->size, c->align, c->start, c->limit, c->duration,
                  c->item, c->twin, c->first, c->begin, c->member, c);
}

void mpl_exact_case_limit(mpl_exact_case *c, const mpl_exact_item *item, uint64_t unit,
                          uint64_t cap)
{
    c->plain = true;
    c->cap = 0;
    for (int32_t i = 0; i < c->n; i++) {
        const mpl_exact_item *from = &item[c->item[i]];

        c->limit[i] = cap < from->bytes ? 0 : (mpl_len)((cap - from->bytes) / unit) + from->size;
        if (from->fixed && c->limit[i] > from->start + from->size)
            c->limit[i] = from->start + from->size;
        c->cap = c->limit[i] > c->cap ? c->limit[i] : c->cap;
    }
    for (int32_t i = 0; i < c->n; i++)
        c->plain = c->plain && c->limit[i] == c->cap && c->align[i] == 1 && c->start[i] == 0;
}
