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

static mpl_status fill_items(mpl_ctx *ctx, mpl_exact_case *exact_case, const ranged *range)
{
    size_t n = (size_t)exact_case->n;

    MPL_PASS(mpl_new_each(ctx, n, exact_case->left, exact_case->right, exact_case->size,
                          exact_case->align, exact_case->start, exact_case->limit,
                          exact_case->duration));
    MPL_PASS(mpl_new_each(ctx, n, exact_case->item, exact_case->twin));
    for (int32_t i = 0; i < exact_case->n; i++) {
        const mpl_exact_item *item = range[i].item;

        exact_case->left[i] = range[i].left;
        exact_case->right[i] = range[i].right;
        exact_case->size[i] = item->size;
        exact_case->align[i] = item->align;
        exact_case->start[i] = (item->start + item->align - 1) / item->align * item->align;
        exact_case->duration[i] = item->death - item->birth;
        exact_case->item[i] = range[i].index;
        exact_case->twin[i] = i > 0 && twins(&range[i - 1], &range[i]) ? i - 1 : -1;
    }
    return MPL_OK;
}

static mpl_status fill_sections(mpl_ctx *ctx, mpl_exact_case *exact_case)
{
    mpl_status st = MPL_OK;
    size_t n_members = 0;
    int32_t *used = NULL;

    MPL_TRY(mpl_new_each(ctx, (size_t)exact_case->n_sections + 1, exact_case->first,
                         exact_case->begin));
    MPL_TRY(mpl_new(ctx, used, (size_t)exact_case->n_sections));
    for (int32_t i = 0; i < exact_case->n; i++) {
        n_members += (size_t)(exact_case->right[i] - exact_case->left[i]);
        exact_case->first[exact_case->left[i] + 1] = i + 1;
    }
    for (int32_t s = 0; s < exact_case->n_sections; s++)
        exact_case->first[s + 1] = exact_case->first[s + 1] > exact_case->first[s]
                                       ? exact_case->first[s + 1]
                                       : exact_case->first[s];
    if (n_members > MPL_EXACT_MEMBERS)
        goto out;
    for (int32_t i = 0; i < exact_case->n; i++)
        for (int32_t s = exact_case->left[i]; s < exact_case->right[i]; s++)
            exact_case->begin[s + 1]++;
    for (int32_t s = 0; s < exact_case->n_sections; s++)
        exact_case->begin[s + 1] += exact_case->begin[s];
    MPL_TRY(mpl_new(ctx, exact_case->member, n_members));
    for (int32_t i = 0; i < exact_case->n; i++)
        for (int32_t s = exact_case->left[i]; s < exact_case->right[i]; s++)
            exact_case->member[exact_case->begin[s] + used[s]++] = i;
out:
    mpl_free(ctx, used);
    return st;
}

mpl_status mpl_exact_case_new(mpl_ctx *ctx, const mpl_exact_item *item, uint32_t n, bool mirrored,
                              mpl_exact_case **out)
{
    mpl_status st = MPL_OK;
    mpl_exact_case *exact_case = NULL;
    ranged *range = NULL;

    MPL_TRY(mpl_new(ctx, exact_case, 1));
    MPL_TRY(mpl_new(ctx, range, n));
    exact_case->n = (int32_t)n;
    MPL_TRY(find_sections(ctx, item, n, range, &exact_case->n_sections));
    for (uint32_t i = 0; mirrored && i < n; i++) {
        int32_t left = range[i].left;

        range[i].left = exact_case->n_sections - range[i].right;
        range[i].right = exact_case->n_sections - left;
    }
    qsort(range, n, sizeof *range, by_left);
    MPL_TRY(fill_items(ctx, exact_case, range));
    MPL_TRY(fill_sections(ctx, exact_case));
    *out = exact_case, exact_case = NULL;
out:
    mpl_free(ctx, range);
    mpl_exact_case_free(ctx, exact_case);
    return st;
}

void mpl_exact_case_free(mpl_ctx *ctx, mpl_exact_case *exact_case)
{
    if (exact_case == NULL)
        return;
    mpl_free_each(ctx, exact_case->left, exact_case->right, exact_case->size, exact_case->align,
                  exact_case->start, exact_case->limit, exact_case->duration, exact_case->item,
                  exact_case->twin, exact_case->first, exact_case->begin, exact_case->member,
                  exact_case);
}

void mpl_exact_case_limit(mpl_exact_case *exact_case, const mpl_exact_item *item, uint64_t unit,
                          uint64_t cap)
{
    exact_case->plain = true;
    exact_case->cap = 0;
    for (int32_t i = 0; i < exact_case->n; i++) {
        const mpl_exact_item *from = &item[exact_case->item[i]];

        exact_case->limit[i] =
            cap < from->bytes ? 0 : (mpl_len)((cap - from->bytes) / unit) + from->size;
        if (from->fixed && exact_case->limit[i] > from->start + from->size)
            exact_case->limit[i] = from->start + from->size;
        exact_case->cap =
            exact_case->limit[i] > exact_case->cap ? exact_case->limit[i] : exact_case->cap;
    }
    for (int32_t i = 0; i < exact_case->n; i++)
        exact_case->plain = exact_case->plain && exact_case->limit[i] == exact_case->cap &&
                            exact_case->align[i] == 1 && exact_case->start[i] == 0;
}
