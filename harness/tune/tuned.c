/* tuned.c -- see tuned.h. A file of times has a line of its form, one of its origin, then a line a
 * time: key, nanoseconds and words, with tabs between. */
#include "harness/tune/tuned.h"

#include <inttypes.h>
#include <stdlib.h>

#include "graphs/core/file.h"
#include "graphs/core/text.h"
#include "graphs/passes/passes.h"

#define FORM "memplan times 1"

/* ---- keys ---- */

static uint64_t hash_attrs(uint64_t hash, const mpl_graph *g, mpl_op op)
{
    for (uint32_t i = g->op_attr_begin[op]; i < g->op_attr_begin[op + 1]; i++) {
        mpl_attr a = mpl_attr_at(g, i);
        const char *name = mpl_attr_name(a.key);

        hash = mpl_hash(hash, name, strlen(name) + 1);
        hash = mpl_hash(hash, &a.n, sizeof a.n);
        if (a.ints != NULL)
            hash = mpl_hash(hash, a.ints, a.n * sizeof *a.ints);
        if (a.floats != NULL)
            hash = mpl_hash(hash, a.floats, a.n * sizeof *a.floats);
        if (a.text != NULL)
            hash = mpl_hash(hash, a.text, a.n);
    }
    return hash;
}

static uint64_t hash_value(uint64_t hash, const mpl_graph *g, mpl_value v)
{
    uint32_t about[3] = {MPL_NONE};

    if (v != MPL_NONE) {
        about[0] = g->value_type[v];
        about[1] = g->value_role[v] == MPL_WEIGHT; /* may be packed once */
        about[2] = g->value_shape[v].rank;
    }
    hash = mpl_hash(hash, about, sizeof about);
    return v != MPL_NONE ? mpl_hash(hash, g->value_shape[v].dim,
                                    g->value_shape[v].rank * sizeof *g->value_shape[v].dim)
                         : hash;
}

static void add_shape(char *text, size_t size, const mpl_shape *shape)
{
    for (uint32_t i = 0; i < shape->rank; i++) {
        size_t n = strlen(text);

        snprintf(text + n, size - n, "%s%" PRId64, i > 0 ? "x" : " ", shape->dim[i]);
    }
}

static const char *const words[MPL_N_LAYOUTS] = {"plain", "last", "blocked8"};

mpl_op_time mpl_op_time_of(const mpl_graph *g, mpl_op op, mpl_laid laid)
{
    const char *name = mpl_op_table[g->op_kind[op]].name;
    uint8_t how[2] = {laid.layout, laid.way};
    mpl_op_time t = {0};

    t.key = mpl_hash(MPL_HASH_SEED, name, strlen(name) + 1);
    t.key = mpl_hash(t.key, how, sizeof how);
    t.key = hash_attrs(t.key, g, op);
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        t.key = hash_value(t.key, g, g->op_in[i]);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        t.key = hash_value(t.key, g, g->op_out[i]);
    for (uint32_t i = g->op_body_begin[op]; i < g->op_body_begin[op + 1]; i++)
        for (mpl_op inner = 0; inner < g->n_ops; inner++)
            if (g->op_block[inner] == g->op_body[i]) {
                uint64_t key = mpl_op_time_of(g, inner, (mpl_laid){0}).key;

                t.key = mpl_hash(t.key, &key, sizeof key);
            }
    snprintf(t.what, sizeof t.what, "%s %s way %u", name, words[laid.layout], laid.way);
    if (g->op_out_begin[op] < g->op_out_begin[op + 1] && g->op_out[g->op_out_begin[op]] != MPL_NONE)
        add_shape(t.what, sizeof t.what, &g->value_shape[g->op_out[g->op_out_begin[op]]]);
    return t;
}

mpl_op_time mpl_reorder_time_of(const mpl_shape *image, mpl_layout layout)
{
    mpl_op_time t = {0};

    snprintf(t.what, sizeof t.what, "reorder to %s", words[layout]);
    add_shape(t.what, sizeof t.what, image);
    t.key = mpl_hash(MPL_HASH_SEED, t.what, strlen(t.what));
    return t;
}

mpl_op_time mpl_whole_time_of(const mpl_graph *g, const mpl_laid *laid)
{
    mpl_op_time t = {.key = MPL_HASH_SEED};

    snprintf(t.what, sizeof t.what, "whole run %s, %" PRIu32 " operations",
             laid != NULL ? "as chosen" : "as auto", g->n_ops);
    t.key = mpl_hash(t.key, t.what, strlen(t.what));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint64_t key = mpl_op_time_of(g, op, laid != NULL ? laid[op] : (mpl_laid){0}).key;

        t.key = mpl_hash(t.key, &key, sizeof key);
    }
    t.key = mpl_hash(t.key, g->op_in, g->op_in_begin[g->n_ops] * sizeof *g->op_in);
    return t;
}

/* ---- the list ---- */

/* Where a key is, or belongs. */
static uint32_t place_of(const mpl_op_times *times, uint64_t key)
{
    uint32_t low = 0, high = times->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (times->item[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: unknown. O(log n). */
static const mpl_op_time *find_time(const mpl_op_times *times, uint64_t key)
{
    uint32_t i = place_of(times, key);

    return i < times->n && times->item[i].key == key ? &times->item[i] : NULL;
}

mpl_status mpl_op_times_put(mpl_ctx *ctx, mpl_op_times *times, const mpl_op_time *item)
{
    uint32_t i = place_of(times, item->key);

    if (i < times->n && times->item[i].key == item->key) {
        times->item[i].ns = mpl_min_u64(times->item[i].ns, item->ns);
        return MPL_OK;
    }
    MPL_PASS(mpl_reserve(ctx, times->item, times->room, (size_t)times->n + 1));
    memmove(times->item + i + 1, times->item + i, (times->n - i) * sizeof *times->item);
    times->item[i] = *item;
    times->n++;
    return MPL_OK;
}

void mpl_op_times_free(mpl_ctx *ctx, mpl_op_times *times)
{
    mpl_free(ctx, times->item);
    *times = (mpl_op_times){0};
}

/* ---- the file ---- */

/* "0123456789abcdef\t1234\twords" */
static bool read_line(const char *line, mpl_op_time *out)
{
    char *end;

    if (strspn(line, "0123456789abcdef") != 16 || line[16] != '\t' || line[17] < '0' ||
        line[17] > '9')
        return false;
    out->key = strtoull(line, NULL, 16);
    out->ns = strtoull(line + 17, &end, 10);
    if (*end != '\t' || out->ns > INT64_MAX || strlen(end + 1) >= sizeof out->what)
        return false;
    memcpy(out->what, end + 1, strlen(end + 1) + 1);
    return true;
}

static mpl_status read_lines(mpl_ctx *ctx, const char *path, char *text, mpl_op_times *out)
{
    uint32_t number = 0;

    for (char *line = text, *end; *line != '\0'; line = end) {
        mpl_op_time t = {0};

        end = line + strcspn(line, "\n");
        if (*end != '\0')
            *end++ = '\0';
        number++;
        if (number == 1 && strcmp(line, FORM) != 0)
            break;
        if (number == 2)
            snprintf(out->origin, sizeof out->origin, "%s", line);
        if (number > 2 && !read_line(line, &t))
            return MPL_REFUSE(ctx,
                              "%s:%" PRIu32 ": '%.40s' is no time (a key of 16 digits, "
                              "nanoseconds, words, with tabs between)",
                              path, number, line);
        if (number > 2)
            MPL_PASS(mpl_op_times_put(ctx, out, &t));
    }
    if (number < 2)
        return MPL_REFUSE(ctx, "%s: no times of operations (memplan tune makes such files)", path);
    return MPL_OK;
}

mpl_status mpl_op_times_read(mpl_ctx *ctx, const char *path, mpl_op_times *out)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    MPL_TRY(read_lines(ctx, path, text, out));
out:
    mpl_free(ctx, text);
    return st;
}

mpl_status mpl_op_times_write(mpl_ctx *ctx, const char *path, const mpl_op_times *times)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fprintf(file.stream, "%s\n%s\n", FORM, times->origin);
    for (uint32_t i = 0; i < times->n; i++)
        fprintf(file.stream, "%016" PRIx64 "\t%" PRIu64 "\t%s\n", times->item[i].key,
                times->item[i].ns, times->item[i].what);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

/* ---- the choice ---- */

/* Time of the implementation to take in that layout: the preferred one or one that is clearly
 * faster; UINT64_MAX: none is known. *least is lowered to that of the fastest. */
static uint64_t fastest(const mpl_graph *g, mpl_op op, const mpl_op_times *times, mpl_layout layout,
                        uint8_t *way, uint64_t *least)
{
    uint64_t taken = UINT64_MAX, below = UINT64_MAX;

    if (g->op_block[op] != 0) /* a part of the operation whose loop or branch it is in */
        return *way = 0, *least = 0;
    for (uint8_t w = 0; w < MPL_N_WAYS; w++) {
        mpl_op_time t = mpl_op_time_of(g, op, (mpl_laid){(uint8_t)layout, w});
        const mpl_op_time *found = find_time(times, t.key);

        if (found == NULL)
            continue;
        *least = mpl_min_u64(*least, found->ns);
        if (found->ns < below)
            taken = found->ns, *way = w;
        below = mpl_min_u64(below, w == 0 ? taken - taken / 100 * MPL_TUNED_MARGIN : found->ns);
    }
    return taken;
}

static bool is_image(const mpl_graph *g, mpl_value v)
{
    return g->value_type[v] == MPL_TYPE_f32 && g->value_shape[v].rank == 4;
}

/* Whether v may be needed in another layout than its own. */
static bool may_turn(const mpl_graph *g, mpl_value v)
{
    bool turns = g->value_op[v] != MPL_NONE && mpl_op_may_be_last(g, g->value_op[v]);

    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
        turns = turns || mpl_op_may_be_last(g, g->value_use[k]);
    return turns && is_image(g, v);
}

#define ABSENT "%s: no time of %.96s ('%.60s'); 'memplan tune GRAPH --op-times %s' adds it"

mpl_status mpl_tuned_times(mpl_ctx *ctx, const mpl_graph *g, const char *path, uint64_t *ns)
{
    mpl_status st = MPL_OK;
    mpl_op_times times = {0};

    MPL_TRY(mpl_op_times_read(ctx, path, &times));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint8_t way;
        uint64_t least = UINT64_MAX;

        ns[op] = fastest(g, op, &times, MPL_PLAIN, &way, &least);
        if (ns[op] == UINT64_MAX)
            MPL_FAIL(ctx, MPL_EINPUT, ABSENT, path, mpl_op_time_of(g, op, (mpl_laid){0}).what,
                     g->op_name[op], path);
    }
out:
    mpl_op_times_free(ctx, &times);
    return st;
}

static mpl_status look_up(mpl_ctx *ctx, const mpl_graph *g, const mpl_op_times *times,
                          const char *path, const mpl_layout_times *found,
                          uint8_t (*way)[MPL_N_LAYOUTS], uint64_t *bound_ns)
{
    *bound_ns = 0;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint64_t least = UINT64_MAX;

        for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
            found->op[k][op] = mpl_op_may_be(g, op, (mpl_layout)k)
                                   ? fastest(g, op, times, (mpl_layout)k, &way[op][k], &least)
                                   : UINT64_MAX;
        *bound_ns += least;
        if (found->op[MPL_PLAIN][op] == UINT64_MAX)
            return MPL_REFUSE(ctx, ABSENT, path, mpl_op_time_of(g, op, (mpl_laid){0}).what,
                              g->op_name[op], path);
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = 0; k < MPL_N_LAYOUTS && may_turn(g, v); k++) {
            mpl_op_time t = mpl_reorder_time_of(&g->value_shape[v], (mpl_layout)k);
            const mpl_op_time *known = find_time(times, t.key);

            if (!mpl_layout_takes((mpl_layout)k, &g->value_shape[v]))
                continue;
            if (known == NULL)
                return MPL_REFUSE(ctx, ABSENT, path, t.what, g->value_name[v], path);
            found->reorder[k][v] = known->ns;
        }
    return MPL_OK;
}

/* Whole runs of the graph laid so, and as auto. */
static void look_up_whole(const mpl_graph *g, const mpl_op_times *times, const mpl_laid *laid,
                          mpl_chosen *out)
{
    const mpl_op_time *chosen = find_time(times, mpl_whole_time_of(g, laid).key);
    const mpl_op_time *plain_auto = find_time(times, mpl_whole_time_of(g, NULL).key);

    if (chosen == NULL || plain_auto == NULL)
        return;
    out->whole_ns = chosen->ns;
    out->auto_ns = plain_auto->ns;
    out->as_auto = chosen->ns > plain_auto->ns - plain_auto->ns / 100 * MPL_TUNED_GAIN;
}

mpl_status mpl_tuned_choose(mpl_ctx *ctx, const mpl_graph *g, const mpl_op_times *times,
                            const char *path, mpl_laid *laid, mpl_chosen *out)
{
    mpl_status st = MPL_OK;
    mpl_layout_times found = {0};
    uint8_t(*way)[MPL_N_LAYOUTS] = NULL;
    uint64_t bound_ns;

    *out = (mpl_chosen){0};
    MPL_TRY(mpl_new(ctx, way, g->n_ops));
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
        MPL_TRY(mpl_new(ctx, found.op[k], g->n_ops));
        MPL_TRY(mpl_new(ctx, found.reorder[k], g->n_values));
    }
    MPL_TRY(look_up(ctx, g, times, path, &found, way, &out->bound_ns));
    MPL_TRY(mpl_layouts_choose(ctx, g, &found, laid, &out->ns, &bound_ns));
    for (mpl_op op = 0; op < g->n_ops; op++)
        laid[op].way = way[op][laid[op].layout];
    look_up_whole(g, times, laid, out);
out:
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
        mpl_free_each(ctx, found.op[k], found.reorder[k]);
    mpl_free(ctx, way);
    return st;
}

mpl_status mpl_tuned_graph(mpl_ctx *ctx, const char *path, mpl_graph **g, uint64_t *ns)
{
    mpl_status st = MPL_OK;
    mpl_op_times times = {0};
    mpl_laid *laid = NULL;
    mpl_chosen chosen;

    *ns = 0;
    if (path == NULL)
        return MPL_REFUSE(ctx, "--layout tuned: add --op-times FILE, which 'memplan tune' makes");
    if (!mpl_layouts_open(*g))
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, laid, (*g)->n_ops));
    MPL_TRY(mpl_op_times_read(ctx, path, &times));
    MPL_TRY(mpl_tuned_choose(ctx, *g, &times, path, laid, &chosen));
    *ns = chosen.as_auto ? chosen.auto_ns : chosen.ns;
    MPL_TRY(chosen.as_auto ? mpl_graph_channels_last(ctx, g) : mpl_graph_lay(ctx, g, laid));
out:
    mpl_op_times_free(ctx, &times);
    mpl_free(ctx, laid);
    return st;
}
