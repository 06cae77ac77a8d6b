/* tvm_usmp.c -- plans of TVM's Unified Static Memory Planner (USMP): buffers, the conflicts among
 * them, and their pool allocations.
 *
 * Source   apache/tvm (no longer in 0.25), include/tvm/tir/usmp/utils.h: BufferInfo (name_hint,
 *          size_bytes, alignment, conflicts) and PoolAllocation (pool_info.pool_name, byte_offset).
 *          scripts/peers/production/usmp_dump.py writes them, within TVM, as JSON: {"usmp": 1,
 *          "buffers": [{.., "conflicts": [indices], "pool_name": .., "byte_offset": ..}]}.
 * Lives    The planner sees conflicts, not times. Each step here is a largest set of buffers that
 *          all conflict; steps cover every conflict, so that just what conflicts is alive at once.
 *          Their order is that of Habib, McConnell, Paul and Viennot (2000: Lex-BFS, then
 *          refinement of the cliques), by which the conflicts of lifetimes become lifetimes again;
 *          what is alive at several times, as memory within an operator that is called twice, has
 *          gaps.
 * Cost     O(n^2 m) time at most, n m / 8 bytes, for n buffers and m steps.
 * Limits   Each pool by itself, as USMP plans them; a candidate pool that was not chosen is
 *          unknown. */
#include <stdlib.h>

#include "graphs/core/text.h"
#include "planners/import/json/read_json.h"

enum { MOST_BUFFERS = 2048, MOST_CLIQUES = 4096 };

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    const json_t *buffers;
    const char *pool_name[MPL_IMPORT_POOLS];
    uint32_t n, n_words, m; /* buffers; words of a row; cliques */
    uint64_t *conflict;     /* [n] rows of n bits */
    uint64_t *covered;      /* the same: conflicts that a clique has */
    uint64_t *clique;       /* [m] rows */
    size_t cap;
    uint32_t *order, *rank; /* [n] Lex-BFS, and its inverse */
    uint32_t *number;       /* [m] the highest rank in the clique */
    uint32_t *seq, *class;  /* [m] cliques in order; the class of each place */
    mpl_import_list list;
} reader;

bool mpl_import_is_tvm_usmp(const mpl_import_in *in)
{
    return mpl_text_first(in->text, in->size) == '{' &&
           mpl_text_has(in->text, in->size < 100 ? in->size : 100, "\"usmp\"");
}

static bool has(const reader *in, const uint64_t *rows, uint32_t row, uint32_t b)
{
    return (rows[(size_t)row * in->n_words + b / 64] >> b % 64 & 1) != 0;
}

static void put(const reader *in, uint64_t *rows, uint32_t row, uint32_t b)
{
    rows[(size_t)row * in->n_words + b / 64] |= UINT64_C(1) << b % 64;
}

/* ---- the file ---- */

static mpl_status read_pool(reader *in, const json_t *one, uint32_t i, uint32_t *pool)
{
    const char *name = json_string_value(json_object_get(one, "pool_name"));
    uint64_t k = 0;

    if (name == NULL)
        return MPL_REFUSE(in->ctx, "%.200s: buffer %u: 'pool_name' is missing or no text", in->path,
                          i);
    while (k < in->list.n_pools && strcmp(in->pool_name[k], name) != 0)
        k++;
    MPL_PASS(mpl_import_pool(in->ctx, in->path, &in->list, k, pool));
    in->pool_name[*pool] = name;
    return MPL_OK;
}

static mpl_status read_conflicts(reader *in, const json_t *one, uint32_t i)
{
    const json_t *list = json_object_get(one, "conflicts");

    if (!json_is_array(list))
        return MPL_REFUSE(in->ctx, "%.200s: buffer %u: 'conflicts' is missing or no list", in->path,
                          i);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *other = json_array_get(list, k);
        json_int_t b = json_is_integer(other) ? json_integer_value(other) : -1;

        if (b < 0 || b >= in->n)
            return MPL_REFUSE(in->ctx, "%.200s: buffer %u: conflict %zu is no buffer of the %u",
                              in->path, i, k, in->n);
        if (b != i)
            put(in, in->conflict, i, (uint32_t)b);
    }
    return MPL_OK;
}

static mpl_status read_buffer(reader *in, uint32_t i)
{
    const json_t *one = json_array_get(in->buffers, i), *name = json_object_get(one, "name_hint");
    mpl_import_buffer b = {.block = MPL_NONE};
    uint64_t align;

    MPL_PASS(mpl_json_whole(in->ctx, in->path, one, "size_bytes", "buffer", i, &b.bytes));
    MPL_PASS(mpl_json_whole(in->ctx, in->path, one, "alignment", "buffer", i, &align));
    MPL_PASS(mpl_json_whole(in->ctx, in->path, one, "byte_offset", "buffer", i, &b.offset));
    if (align == 0 || align > UINT32_C(1) << 31 || (align & (align - 1)) != 0)
        return MPL_REFUSE(in->ctx,
                          "%.200s: buffer %u: 'alignment' is %" PRIu64 ", no power of two to 2^31",
                          in->path, i, align);
    b.align = (uint32_t)align;
    MPL_PASS(read_pool(in, one, i, &b.pool));
    MPL_PASS(read_conflicts(in, one, i));
    return mpl_import_add(in->ctx, &in->list, &b,
                          json_is_string(name) ? json_string_value(name) : "",
                          json_string_length(name));
}

static mpl_status read_buffers(reader *in, const json_t *root)
{
    size_t n = json_array_size(json_object_get(root, "buffers"));

    if (json_integer_value(json_object_get(root, "usmp")) != 1)
        return MPL_REFUSE(in->ctx, "%.200s: 'usmp' is not 1, the version that is read", in->path);
    if (n == 0 || n > MOST_BUFFERS)
        return MPL_REFUSE(in->ctx, "%.200s: %zu 'buffers'; 1 to %d can be read", in->path, n,
                          MOST_BUFFERS);
    in->buffers = json_object_get(root, "buffers");
    in->n = (uint32_t)n;
    in->n_words = (in->n + 63) / 64;
    MPL_PASS(mpl_new_each(in->ctx, n * in->n_words, in->conflict, in->covered));
    MPL_PASS(mpl_new_each(in->ctx, n, in->order, in->rank));
    for (uint32_t i = 0; i < in->n; i++)
        MPL_PASS(read_buffer(in, i));
    for (uint32_t a = 0; a < in->n; a++)
        for (uint32_t b = 0; b < in->n; b++)
            if (has(in, in->conflict, a, b) && !has(in, in->conflict, b, a))
                return MPL_REFUSE(in->ctx,
                                  "%.200s: buffer %u conflicts with buffer %u, and not the reverse",
                                  in->path, a, b);
    return MPL_OK;
}

/* ---- steps ---- */

/* Lex-BFS: classes of buffers, each split by what was visited, neighbours first. */
static mpl_status visit(reader *in)
{
    mpl_status st = MPL_OK;
    uint32_t *class = NULL, *next = NULL;

    MPL_TRY(mpl_new_each(in->ctx, in->n, class, next));
    for (uint32_t i = 0; i < in->n; i++)
        in->order[i] = i;
    for (uint32_t i = 0; i + 1 < in->n; i++)
        for (uint32_t from = i + 1, to; from < in->n; from = to) {
            uint32_t at = from, was = class[from];

            for (to = from; to < in->n && class[to] == was; to++)
                if (has(in, in->conflict, in->order[i], in->order[to]))
                    next[at++] = in->order[to];
            for (uint32_t k = from, rest = at; k < to; k++)
                if (!has(in, in->conflict, in->order[i], in->order[k]))
                    next[rest++] = in->order[k];
            memcpy(&in->order[from], &next[from], (to - from) * sizeof *next);
            for (uint32_t k = from; k < to; k++)
                class[k] = k < at ? from : at;
        }
    for (uint32_t i = 0; i < in->n; i++)
        in->rank[in->order[i]] = i;
out:
    mpl_free_each(in->ctx, class, next);
    return st;
}

/* Adds the clique of a, b and, by rank, each that conflicts with all of it; set: scratch. */
static mpl_status add_clique(reader *in, uint32_t a, uint32_t b, uint64_t *set)
{
    uint64_t *clique;

    if (in->m == MOST_CLIQUES)
        return MPL_REFUSE(in->ctx, "%.200s: the conflicts need more than %d steps", in->path,
                          MOST_CLIQUES);
    MPL_PASS(mpl_reserve(in->ctx, in->clique, in->cap, ((size_t)in->m + 1) * in->n_words));
    clique = &in->clique[(size_t)in->m * in->n_words];
    memset(clique, 0, in->n_words * sizeof *clique);
    for (uint32_t w = 0; w < in->n_words; w++)
        set[w] = UINT64_MAX;
    for (uint32_t i = 0; i < in->n + 2; i++) {
        uint32_t c = i == 0 ? a : i == 1 ? b : in->order[i - 2];

        if ((set[c / 64] >> c % 64 & 1) == 0)
            continue;
        put(in, in->clique, in->m, c);
        for (uint32_t w = 0; w < in->n_words; w++)
            set[w] &= in->conflict[(size_t)c * in->n_words + w];
    }
    for (uint32_t c = 0; c < in->n; c++)
        for (uint32_t w = 0; has(in, in->clique, in->m, c) && w < in->n_words; w++)
            in->covered[(size_t)c * in->n_words + w] |= clique[w];
    in->m++;
    return MPL_OK;
}

/* Cliques until each conflict is in one, and each buffer. */
static mpl_status find_cliques(reader *in)
{
    mpl_status st = MPL_OK;
    uint64_t *set = NULL;

    MPL_TRY(mpl_new(in->ctx, set, in->n_words));
    for (uint32_t i = 0; i < in->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            uint32_t a = in->order[i], b = in->order[k];

            if (has(in, in->conflict, a, b) && !has(in, in->covered, a, b))
                MPL_TRY(add_clique(in, a, b, set));
        }
    for (uint32_t b = 0; b < in->n; b++)
        if (!has(in, in->covered, b, b))
            MPL_TRY(add_clique(in, b, b, set));
out:
    mpl_free(in->ctx, set);
    return st;
}

/* Moves the cliques of the class at `place` that have b to its end, or to its begin, and makes them
 * a class of their own. */
static void split(reader *in, uint32_t place, uint32_t b, bool to_end, uint32_t *scratch)
{
    uint32_t from = place, to = place, at, n = 0;

    while (from > 0 && in->class[from - 1] == in->class[place])
        from--;
    while (to < in->m && in->class[to] == in->class[place])
        to++;
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t k = from; k < to; k++)
            if (has(in, in->clique, in->seq[k], b) == ((turn == 1) == to_end))
                scratch[n++] = in->seq[k];
    memcpy(&in->seq[from], scratch, n * sizeof *scratch);
    for (at = from; at < to && has(in, in->clique, in->seq[at], b) != to_end;)
        at++;
    for (uint32_t k = from; k < to; k++)
        in->class[k] = k < at ? from : at;
}

/* Splits the outermost classes of each buffer whose cliques are in several, until none is left. */
static void refine(reader *in, bool *used, uint32_t *scratch)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = in->n; i-- > 0;) {
            uint32_t b = in->order[i], first = 0, last = in->m;

            while (!used[b] && !has(in, in->clique, in->seq[first], b))
                first++;
            while (!used[b] && !has(in, in->clique, in->seq[last - 1], b))
                last--;
            if (used[b] || in->class[first] == in->class[last - 1])
                continue;
            split(in, first, b, true, scratch);
            split(in, last - 1, b, false, scratch);
            used[b] = again = true;
        }
    }
}

/* Takes the clique with the highest number out of the first class of several; false: none is. */
static bool take_one(reader *in)
{
    uint32_t from = 0, to, best;

    while (from + 1 < in->m && in->class[from] != in->class[from + 1])
        from++;
    if (from + 1 >= in->m)
        return false;
    best = from;
    for (to = from; to < in->m && in->class[to] == in->class[from]; to++)
        best = in->number[in->seq[to]] > in->number[in->seq[best]] ? to : best;
    for (uint32_t k = best, one = in->seq[best]; k < to; k++)
        in->seq[k] = k + 1 < to ? in->seq[k + 1] : one;
    in->class[to - 1] = to - 1;
    return true;
}

static mpl_status order_cliques(reader *in)
{
    mpl_status st = MPL_OK;
    bool *used = NULL;
    uint32_t *scratch = NULL;

    MPL_TRY(mpl_new(in->ctx, used, in->n));
    MPL_TRY(mpl_new_each(in->ctx, in->m, scratch, in->number, in->seq, in->class));
    for (uint32_t k = 0; k < in->m; k++) {
        in->seq[k] = k;
        for (uint32_t b = 0; b < in->n; b++)
            if (has(in, in->clique, k, b) && in->rank[b] > in->number[k])
                in->number[k] = in->rank[b];
    }
    while (take_one(in))
        refine(in, used, scratch);
out:
    mpl_free_each(in->ctx, used, scratch);
    return st;
}

/* ---- lives ---- */

static void set_lives(reader *in)
{
    for (uint32_t b = 0; b < in->n; b++) {
        mpl_import_buffer *buffer = &in->list.item[b];

        buffer->birth = UINT64_MAX;
        for (uint32_t step = 0; step < in->m; step++)
            if (has(in, in->clique, in->seq[step], b)) {
                buffer->birth = mpl_min_u64(buffer->birth, step);
                buffer->death = (uint64_t)step + 1;
            }
    }
}

/* Returns the number of gaps; writes them where the problem has room for them. */
static uint32_t walk_gaps(const reader *in, mpl_problem *p)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < in->n; b++) {
        for (uint32_t step = p->birth[b] + 1; step < p->death[b]; step++) {
            bool here = has(in, in->clique, in->seq[step], b);

            if (here == has(in, in->clique, in->seq[step - 1], b))
                continue;
            if (p->gap_begin != NULL)
                (here ? p->gap_to : p->gap_from)[n] = step;
            n += here;
        }
        if (p->gap_begin != NULL)
            p->gap_begin[b + 1] = n;
    }
    return n;
}

static mpl_status set_gaps(const reader *in, mpl_problem *p)
{
    uint32_t n = walk_gaps(in, p);

    if (n == 0)
        return MPL_OK;
    MPL_PASS(mpl_new_each(in->ctx, n, p->gap_from, p->gap_to));
    MPL_PASS(mpl_new(in->ctx, p->gap_begin, (size_t)in->n + 1));
    walk_gaps(in, p);
    return MPL_OK;
}

static mpl_status set_pools(const reader *in, mpl_problem *p)
{
    for (uint32_t k = 0; k < p->n_pools; k++) {
        mpl_free(in->ctx, p->pool_name[k]);
        p->pool_name[k] = NULL;
        MPL_PASS(mpl_copy_text(in->ctx, p->pool_name[k], in->pool_name[k]));
        mpl_text_clean(p->pool_name[k]);
    }
    return MPL_OK;
}

mpl_status mpl_import_read_tvm_usmp(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path};
    json_t *root = NULL;

    MPL_TRY(mpl_json_parse(ctx, in->path, in->text, in->size, 0, &root));
    MPL_TRY(read_buffers(&r, root));
    MPL_TRY(visit(&r));
    MPL_TRY(find_cliques(&r));
    MPL_TRY(order_cliques(&r));
    set_lives(&r);
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    MPL_TRY(set_gaps(&r, out->problem));
    MPL_TRY(set_pools(&r, out->problem));
    snprintf(out->note, sizeof out->note, "steps are sets of buffers that all conflict: %u", r.m);
out:
    mpl_import_list_fini(ctx, &r.list);
    mpl_free_each(ctx, r.conflict, r.covered, r.clique, r.order, r.rank, r.number, r.seq, r.class);
    json_decref(root);
    return st;
}
