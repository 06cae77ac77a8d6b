/* import_common.c -- helpers of the readers: lines, names, lists of buffers. See import_priv.h. */
#include "planners/import/base/import_priv.h"

#include "graphs/core/text.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

mpl_lines mpl_lines_of(const char *text, size_t size)
{
    return (mpl_lines){.at = text, .end = text + size};
}

bool mpl_lines_next(mpl_lines *lines)
{
    const char *stop;

    if (lines->at == lines->end)
        return false;
    stop = memchr(lines->at, '\n', (size_t)(lines->end - lines->at));
    lines->number++;
    lines->text = lines->at;
    lines->at = stop != NULL ? stop + 1 : lines->end;
    stop = stop != NULL ? stop : lines->end;
    while (lines->text < stop && is_blank(*lines->text))
        lines->text++;
    while (stop > lines->text && is_blank(stop[-1]))
        stop--;
    lines->n = (size_t)(stop - lines->text);
    return true;
}

static const char *find(const char *text, size_t size, const char *what)
{
    return memmem(text, size, what, strlen(what));
}

bool mpl_text_has(const char *text, size_t size, const char *what)
{
    return find(text, size, what) != NULL;
}

char mpl_text_first(const char *text, size_t size)
{
    size_t i = 0;

    while (i < size && is_blank(text[i]))
        i++;
    return i < size ? text[i] : '\0';
}

const char *mpl_lines_find(const mpl_lines *lines, const char *key)
{
    const char *at = find(lines->text, lines->n, key);

    return at != NULL ? at + strlen(key) : NULL;
}

const char *mpl_digits(const char *at, const char *end, uint64_t *out)
{
    uint64_t value = 0;
    const char *begin = at;

    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (!mpl_mul_bytes(value, 10, &value) ||
            !mpl_add_bytes(value, (uint64_t)(*at - '0'), &value) || value > INT64_MAX)
            return NULL;
    if (at == begin)
        return NULL;
    *out = value;
    return at;
}

mpl_status mpl_lines_value(mpl_ctx *ctx, const char *path, const mpl_lines *lines, const char *key,
                           uint64_t *out)
{
    const char *at = mpl_lines_find(lines, key), *end = lines->text + lines->n;

    if (at == NULL)
        return MPL_REFUSE(ctx,
                          "%.200s:%u: no '%s' in this line; it was cut, or is of another version",
                          path, lines->number, key);
    while (at < end && is_blank(*at))
        at++;
    if (mpl_digits(at, end, out) == NULL)
        return MPL_REFUSE(ctx, "%.200s:%u: '%s' is followed by no whole number below 2^63", path,
                          lines->number, key);
    return MPL_OK;
}

/* The slot that has the key, or a free slot for it. */
static size_t slot_of(const mpl_names *names, const char *key, size_t n)
{
    size_t at = mpl_table_hash(0, key, n) & (names->n_slots - 1);

    while (names->slot[at].text != NULL &&
           (names->slot[at].n != n || memcmp(names->slot[at].text, key, n) != 0))
        at = (at + 1) & (names->n_slots - 1);
    return at;
}

static mpl_status grow(mpl_ctx *ctx, mpl_names *names)
{
    mpl_names more = {.n = names->n, .n_slots = names->n_slots > 0 ? 2 * names->n_slots : 64};

    MPL_PASS(mpl_new(ctx, more.slot, more.n_slots));
    for (size_t i = 0; i < names->n_slots; i++)
        if (names->slot[i].text != NULL)
            more.slot[slot_of(&more, names->slot[i].text, names->slot[i].n)] = names->slot[i];
    mpl_free(ctx, names->slot);
    *names = more;
    return MPL_OK;
}

mpl_status mpl_names_add(mpl_ctx *ctx, mpl_names *names, const char *key, size_t n, uint64_t value,
                         uint64_t *old)
{
    size_t at;

    if (2 * names->n >= names->n_slots)
        MPL_PASS(grow(ctx, names));
    at = slot_of(names, key, n);
    *old = names->slot[at].text != NULL ? names->slot[at].value : UINT64_MAX;
    if (names->slot[at].text == NULL) {
        names->slot[at].text = key, names->slot[at].n = n, names->slot[at].value = value;
        names->n++;
    }
    return MPL_OK;
}

uint64_t mpl_names_get(const mpl_names *names, const char *key, size_t n)
{
    size_t at = names->n_slots > 0 ? slot_of(names, key, n) : 0;

    return names->n_slots > 0 && names->slot[at].text != NULL ? names->slot[at].value : UINT64_MAX;
}

mpl_status mpl_import_add(mpl_ctx *ctx, mpl_import_list *list, const mpl_import_buffer *buffer,
                          const char *name, size_t n)
{
    char *copy = NULL;

    if (list->n >= MPL_NONE / 4)
        return MPL_REFUSE(ctx, "a plan of more than 2^30 buffers");
    MPL_PASS(mpl_reserve(ctx, list->item, list->cap, (size_t)list->n + 1));
    MPL_PASS(mpl_new(ctx, copy, n + 1));
    memcpy(copy, name, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = copy[i] == '\0' ? '?' : copy[i];
    mpl_text_clean(copy);
    list->item[list->n] = *buffer;
    list->item[list->n++].name = copy;
    return MPL_OK;
}

mpl_status mpl_import_pool(mpl_ctx *ctx, const char *path, mpl_import_list *list, uint64_t label,
                           uint32_t *pool)
{
    uint32_t k = 0;

    while (k < list->n_pools && list->pool_label[k] != label)
        k++;
    if (k == MPL_IMPORT_POOLS)
        return MPL_REFUSE(ctx, "%.200s: more than %d memories", path, MPL_IMPORT_POOLS);
    if (k == list->n_pools)
        list->pool_label[list->n_pools++] = label;
    *pool = k;
    return MPL_OK;
}

uint32_t mpl_import_alignment(const mpl_import_list *list, uint32_t most)
{
    uint64_t bits = most;

    for (uint32_t b = 0; b < list->n; b++)
        bits |= list->item[b].offset;
    return (uint32_t)(bits & (~bits + 1));
}

void mpl_import_list_fini(mpl_ctx *ctx, mpl_import_list *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        mpl_free(ctx, list->item[i].name);
    mpl_free(ctx, list->item);
    memset(list, 0, sizeof *list);
}

/* Names the file in the message of a broken problem. */
static mpl_status check(mpl_ctx *ctx, const char *path, const mpl_problem *p)
{
    mpl_status st = mpl_problem_check(ctx, p);

    return st != MPL_EINPUT ? st : MPL_REFUSE(ctx, "%.150s: %s", path, ctx->message);
}

static mpl_status set_steps(mpl_ctx *ctx, const mpl_import_list *list, mpl_problem *p)
{
    mpl_status st = MPL_OK;
    uint64_t *birth = NULL, *death = NULL;

    MPL_TRY(mpl_new_each(ctx, list->n, birth, death));
    for (uint32_t b = 0; b < list->n; b++)
        birth[b] = list->item[b].birth, death[b] = list->item[b].death;
    MPL_TRY(mpl_problem_set_times(ctx, birth, death, p));
out:
    mpl_free_each(ctx, birth, death);
    return st;
}

static mpl_status add_pools(mpl_ctx *ctx, const mpl_import_list *list, mpl_problem *p)
{
    char name[40];

    for (uint32_t k = 1; k < list->n_pools; k++) {
        snprintf(name, sizeof name, "memory %" PRIu64, list->pool_label[k]);
        MPL_PASS(mpl_problem_add_pool(ctx, p, name));
    }
    return MPL_OK;
}

mpl_status mpl_import_make(mpl_ctx *ctx, const mpl_import_in *in, const mpl_import_list *list,
                           mpl_import *out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;

    if (list->n == 0 && !list->may_be_empty)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: there is no buffer in it", in->path);
    MPL_TRY(mpl_problem_new(ctx, in->path, list->n, &p));
    MPL_TRY(mpl_new(ctx, p->buffer_name, list->n));
    MPL_TRY(set_steps(ctx, list, p));
    MPL_TRY(add_pools(ctx, list, p));
    MPL_TRY(mpl_plan_new(ctx, p, &plan));
    if (list->n > 0 && list->item[0].block != MPL_NONE)
        MPL_TRY(mpl_new(ctx, plan->block, list->n));
    for (uint32_t b = 0; b < list->n; b++) {
        MPL_TRY(mpl_copy_text(ctx, p->buffer_name[b], list->item[b].name));
        p->bytes[b] = list->item[b].bytes;
        p->align[b] = list->item[b].align > 0 ? list->item[b].align : 1;
        p->pool[b] = list->item[b].pool;
        plan->offset[b] = list->item[b].offset;
        if (plan->block != NULL)
            plan->block[b] = list->item[b].block;
    }
    MPL_TRY(check(ctx, in->path, p));
    plan->claim = MPL_FEASIBLE;
    out->problem = p, p = NULL;
    out->plan = plan, plan = NULL;
out:
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, p);
    return st;
}
