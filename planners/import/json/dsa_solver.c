/* dsa_solver.c -- dsa-solver's structured problem and its solution, schema 1.
 *
 * Source   tonibohnlein/dsa-solver, schemas/dsa-problem-v1 and dsa-solution-v1, validator.cpp. The
 *          problem has pools (id, capacity, reserved_ranges), buffers (id, name, size, alignment,
 *          allowed_pools, live_intervals of lower and upper, half-open) and constraints; the
 *          solution has placements (buffer, pool, offset). One file holds both, in either order:
 *          the solution alone has no sizes, and the problem no offsets.
 * Lives    Several intervals are a life with gaps. A pin that is exclusive for all time lives all
 *          the time.
 * Limits   One pool a buffer, one pool with reserved ranges, alignments that are powers of two.
 *          Colocations, temporal exclusions and objectives of more than bytes are refused. What
 *          tells where a problem comes from (metadata, pypto_structure) is left out. */
#include <stdlib.h>

#include "graphs/core/text.h"
#include "planners/import/json/read_json.h"

enum { MOST_STEPS = 1 << 22 }; /* times up to it stay as they are */

typedef struct span {
    int64_t from, to;
    uint32_t b;
} span;

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    const json_t *problem, *pins;
    size_t n_pins;
    mpl_import_list list;
    uint64_t *id;    /* [list.n] */
    mpl_names by_id; /* buffers; its keys are the bytes of id[] */
    bool *always;    /* [list.n] an exclusive pin */
    span *span;      /* of all buffers, by buffer and time */
    size_t n, cap;
    int64_t *time; /* [n_times] rising */
    size_t n_times;
} reader;

bool mpl_import_is_dsa_solver(const mpl_import_in *in)
{
    return mpl_text_first(in->text, in->size) == '{' &&
           mpl_text_has(in->text, in->size, "\"schema_version\"") &&
           (mpl_text_has(in->text, in->size, "\"placements\"") ||
            mpl_text_has(in->text, in->size, "\"live_intervals\""));
}

/* ---- values ---- */

#define WHOLE(r, object, key, what, i, out)                                                        \
    mpl_json_whole((r)->ctx, (r)->path, object, key, what, i, out)

static mpl_status read_time(reader *in, const json_t *interval, const char *key, size_t i,
                            int64_t *out)
{
    const json_t *value = json_object_get(interval, key);

    if (!json_is_integer(value))
        return MPL_REFUSE(in->ctx, "%.200s: buffer %zu: '%s' of a live interval is no whole number",
                          in->path, i, key);
    *out = json_integer_value(value);
    return MPL_OK;
}

/* A list of the object, which must be there. */
static mpl_status get_list(reader *in, const json_t *object, const char *key, const json_t **out)
{
    *out = json_object_get(object, key);
    return json_is_array(*out)
               ? MPL_OK
               : MPL_REFUSE(in->ctx, "%.200s: '%s' is missing or no list", in->path, key);
}

/* The buffer that has the id; MPL_EINPUT: none. */
static mpl_status find_buffer(reader *in, const json_t *object, const char *key, const char *what,
                              size_t i, uint32_t *b)
{
    uint64_t id, found;

    MPL_PASS(WHOLE(in, object, key, what, i, &id));
    found = mpl_names_get(&in->by_id, (const char *)&id, sizeof id);
    *b = (uint32_t)found;
    return found != UINT64_MAX ? MPL_OK
                               : MPL_REFUSE(in->ctx, "%.200s: %s %zu: there is no buffer %" PRIu64,
                                            in->path, what, i, id);
}

/* ---- what has no counterpart ---- */

static mpl_status refuse_rest(reader *in)
{
    static const char *const refused[] = {"colocations", "temporal_exclusions"};
    const json_t *limits = json_object_get(in->problem, "constraints"), *list;

    for (size_t i = 0; i < 2; i++) {
        MPL_PASS(get_list(in, limits, refused[i], &list));
        if (json_array_size(list) > 0)
            return MPL_REFUSE(in->ctx, "%.200s: its '%s' have no counterpart in memplan", in->path,
                              refused[i]);
    }
    MPL_PASS(get_list(in, json_object_get(in->problem, "objective"), "terms", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *term = json_string_value(json_array_get(list, i));

        if (term == NULL || (strcmp(term, "capacity_overflow") != 0 &&
                             strcmp(term, "total_peak") != 0 && strcmp(term, "max_peak") != 0))
            return MPL_REFUSE(in->ctx,
                              "%.200s: '%.80s' in its objective has no counterpart in memplan, "
                              "which plans for the least bytes",
                              in->path, term != NULL ? term : "?");
    }
    return MPL_OK;
}

/* ---- the problem ---- */

/* The pool with reserved ranges is the first. */
static mpl_status read_pools(reader *in)
{
    const json_t *pools, *ranges;
    size_t first = SIZE_MAX, n;
    uint64_t id;
    uint32_t k;

    MPL_PASS(get_list(in, in->problem, "pools", &pools));
    n = json_array_size(pools);
    for (size_t i = 0; i < n; i++) {
        MPL_PASS(get_list(in, json_array_get(pools, i), "reserved_ranges", &ranges));
        if (json_array_size(ranges) > 0 && first != SIZE_MAX)
            return MPL_REFUSE(in->ctx,
                              "%.200s: pool %zu: 'reserved_ranges' of a second pool; memplan "
                              "reserves bytes of one",
                              in->path, i);
        first = json_array_size(ranges) > 0 ? i : first;
    }
    for (size_t turn = 0; turn < n; turn++) {
        size_t i = first == SIZE_MAX ? turn : turn == 0 ? first : turn <= first ? turn - 1 : turn;

        MPL_PASS(WHOLE(in, json_array_get(pools, i), "id", "pool", i, &id));
        MPL_PASS(mpl_import_pool(in->ctx, in->path, &in->list, id, &k));
        if (k != turn)
            return MPL_REFUSE(in->ctx, "%.200s: pool %zu: id %" PRIu64 " a second time", in->path,
                              i, id);
    }
    return MPL_OK;
}

/* The pool with the id. */
static mpl_status find_pool(reader *in, uint64_t id, const char *what, size_t i, uint32_t *pool)
{
    for (*pool = 0; *pool < in->list.n_pools; ++*pool)
        if (in->list.pool_label[*pool] == id)
            return MPL_OK;
    return MPL_REFUSE(in->ctx, "%.200s: %s %zu: there is no pool %" PRIu64, in->path, what, i, id);
}

static mpl_status read_spans(reader *in, const json_t *one, size_t i)
{
    const json_t *list;

    MPL_PASS(get_list(in, one, "live_intervals", &list));
    if (json_array_size(list) == 0)
        return MPL_REFUSE(in->ctx, "%.200s: buffer %zu: no live interval", in->path, i);
    for (size_t k = 0; k < json_array_size(list); k++) {
        span s = {.b = (uint32_t)i};

        MPL_PASS(read_time(in, json_array_get(list, k), "lower", i, &s.from));
        MPL_PASS(read_time(in, json_array_get(list, k), "upper", i, &s.to));
        if (s.from >= s.to)
            return MPL_REFUSE(in->ctx, "%.200s: buffer %zu: a live interval ends before it begins",
                              in->path, i);
        MPL_PASS(mpl_reserve(in->ctx, in->span, in->cap, in->n + 1));
        in->span[in->n++] = s;
    }
    return MPL_OK;
}

static mpl_status read_buffer(reader *in, const json_t *one, size_t i)
{
    const json_t *pools, *name = json_object_get(one, "name");
    mpl_import_buffer b = {.block = MPL_NONE, .offset = UINT64_MAX};
    uint64_t align, old;

    MPL_PASS(WHOLE(in, one, "id", "buffer", i, &in->id[i]));
    MPL_PASS(WHOLE(in, one, "size", "buffer", i, &b.bytes));
    MPL_PASS(WHOLE(in, one, "alignment", "buffer", i, &align));
    if (align == 0 || align > UINT32_C(1) << 31 || (align & (align - 1)) != 0)
        return MPL_REFUSE(in->ctx,
                          "%.200s: buffer %zu: 'alignment' is %" PRIu64
                          "; memplan aligns to powers of two up to 2^31",
                          in->path, i, align);
    b.align = (uint32_t)align;
    MPL_PASS(get_list(in, one, "allowed_pools", &pools));
    if (json_array_size(pools) != 1 || !json_is_integer(json_array_get(pools, 0)))
        return MPL_REFUSE(in->ctx,
                          "%.200s: buffer %zu: 'allowed_pools' are %zu; memplan's buffers have one "
                          "pool each",
                          in->path, i, json_array_size(pools));
    MPL_PASS(find_pool(in, (uint64_t)json_integer_value(json_array_get(pools, 0)), "buffer", i,
                       &b.pool));
    MPL_PASS(mpl_names_add(in->ctx, &in->by_id, (const char *)&in->id[i], sizeof *in->id, i, &old));
    if (old != UINT64_MAX)
        return MPL_REFUSE(in->ctx, "%.200s: buffer %zu: id %" PRIu64 " a second time", in->path, i,
                          in->id[i]);
    MPL_PASS(read_spans(in, one, i));
    return mpl_import_add(in->ctx, &in->list, &b,
                          json_is_string(name) ? json_string_value(name) : "",
                          json_string_length(name));
}

/* ---- lives ---- */

MPL_ORDER_BY(by_buffer, span, MPL_RISING(b) MPL_RISING(from) MPL_RISING(to))

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y); /* equal times are interchangeable */
}

/* Times as steps: as they are where they are small, else their ranks. */
static uint64_t step_of(const reader *in, int64_t t)
{
    const int64_t *at = bsearch(&t, in->time, in->n_times, sizeof t, by_value);

    return in->time[0] >= 0 && in->time[in->n_times - 1] <= MOST_STEPS ? (uint64_t)t
                                                                       : (uint64_t)(at - in->time);
}

static mpl_status sort_times(reader *in)
{
    size_t kept = 0;

    MPL_PASS(mpl_new(in->ctx, in->time, 2 * in->n));
    for (size_t i = 0; i < in->n; i++)
        in->time[2 * i] = in->span[i].from, in->time[2 * i + 1] = in->span[i].to;
    qsort(in->time, 2 * in->n, sizeof *in->time, by_value);
    for (size_t i = 0; i < 2 * in->n; i++)
        if (kept == 0 || in->time[i] != in->time[kept - 1])
            in->time[kept++] = in->time[i];
    in->n_times = kept;
    return kept <= MOST_STEPS
               ? MPL_OK
               : MPL_REFUSE(in->ctx, "%.200s: more than %d different times", in->path, MOST_STEPS);
}

/* Joins intervals of a buffer that touch; those that are left stand in in->span, by buffer. */
static void join_spans(reader *in)
{
    size_t kept = 0;

    qsort(in->span, in->n, sizeof *in->span, by_buffer);
    for (size_t i = 0; i < in->n; i++) {
        span *last = kept > 0 ? &in->span[kept - 1] : NULL;

        if (last != NULL && last->b == in->span[i].b && in->span[i].from <= last->to)
            last->to = in->span[i].to > last->to ? in->span[i].to : last->to;
        else
            in->span[kept++] = in->span[i];
    }
    in->n = kept;
}

static mpl_status read_lives(reader *in)
{
    MPL_PASS(sort_times(in));
    for (size_t i = 0; i < in->n_pins; i++) {
        const json_t *pin = json_array_get(in->pins, i);
        uint32_t b;

        MPL_PASS(find_buffer(in, pin, "buffer", "pin", i, &b));
        in->always[b] = json_is_true(json_object_get(pin, "exclusive_for_all_time"));
    }
    for (size_t k = 0; k < in->n; k++)
        if (in->always[in->span[k].b])
            in->span[k].from = in->time[0], in->span[k].to = in->time[in->n_times - 1];
    join_spans(in);
    for (size_t i = in->n; i-- > 0;)
        in->list.item[in->span[i].b].birth = step_of(in, in->span[i].from);
    for (size_t i = 0; i < in->n; i++)
        in->list.item[in->span[i].b].death = step_of(in, in->span[i].to);
    return MPL_OK;
}

static mpl_status set_gaps(reader *in, mpl_problem *p)
{
    uint32_t n = 0;

    if (in->n == p->n)
        return MPL_OK;
    MPL_PASS(mpl_new(in->ctx, p->gap_begin, p->n + (size_t)1));
    MPL_PASS(mpl_new_each(in->ctx, in->n - p->n, p->gap_from, p->gap_to));
    for (size_t i = 1; i < in->n; i++)
        if (in->span[i].b == in->span[i - 1].b) {
            p->gap_begin[in->span[i].b + 1]++;
            p->gap_from[n] = (uint32_t)step_of(in, in->span[i - 1].to);
            p->gap_to[n++] = (uint32_t)step_of(in, in->span[i].from);
        }
    for (mpl_buffer b = 0; b < p->n; b++)
        p->gap_begin[b + 1] += p->gap_begin[b];
    return MPL_OK;
}

/* ---- constraints ---- */

static mpl_status set_pins(reader *in, mpl_problem *p)
{
    if (in->n_pins > 0) {
        MPL_PASS(mpl_new(in->ctx, p->fixed, p->n));
        memset(p->fixed, 0xff, p->n * sizeof *p->fixed);
    }
    for (size_t i = 0; i < in->n_pins; i++) {
        const json_t *pin = json_array_get(in->pins, i);
        uint64_t pool;
        uint32_t b, k;

        MPL_PASS(find_buffer(in, pin, "buffer", "pin", i, &b));
        MPL_PASS(WHOLE(in, pin, "pool", "pin", i, &pool));
        MPL_PASS(find_pool(in, pool, "pin", i, &k));
        if (k != p->pool[b] || p->fixed[b] != MPL_UNFIXED)
            return MPL_REFUSE(in->ctx, "%.200s: pin %zu: buffer '%.80s' is %s", in->path, i,
                              p->buffer_name[b],
                              k != p->pool[b] ? "of another pool" : "pinned already");
        MPL_PASS(WHOLE(in, pin, "offset", "pin", i, &p->fixed[b]));
    }
    return MPL_OK;
}

static mpl_status set_apart(reader *in, const json_t *list, mpl_problem *p)
{
    mpl_constraints *constraints = p->constraints;
    mpl_buffer two[2];

    MPL_PASS(mpl_new(in->ctx, constraints->apart, json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);

        MPL_PASS(find_buffer(in, pair, "first", "separation", i, &two[0]));
        MPL_PASS(find_buffer(in, pair, "second", "separation", i, &two[1]));
        if (two[0] == two[1])
            return MPL_REFUSE(in->ctx, "%.200s: separation %zu: of a buffer from itself", in->path,
                              i);
        if (p->pool[two[0]] == p->pool[two[1]])
            memcpy(constraints->apart[constraints->n_apart++], two, sizeof two);
    }
    return MPL_OK;
}

/* `reserved`: of the first pool. */
static mpl_status set_reserved(reader *in, const json_t *reserved, mpl_problem *p)
{
    mpl_constraints *constraints = p->constraints;

    MPL_PASS(mpl_new(in->ctx, constraints->reserved, json_array_size(reserved)));
    for (size_t i = 0; i < json_array_size(reserved); i++) {
        mpl_reserved *range = &constraints->reserved[i];

        MPL_PASS(WHOLE(in, json_array_get(reserved, i), "begin", "range", i, &range->from));
        MPL_PASS(WHOLE(in, json_array_get(reserved, i), "end", "range", i, &range->to));
        range->death = UINT32_MAX;
        constraints->n_reserved++;
    }
    return MPL_OK;
}

static mpl_status set_pools(reader *in, mpl_problem *p, const json_t **reserved)
{
    const json_t *pools = json_object_get(in->problem, "pools");
    uint64_t id;
    uint32_t k;

    for (size_t i = 0; i < json_array_size(pools); i++) {
        const json_t *pool = json_array_get(pools, i), *room = json_object_get(pool, "capacity");

        MPL_PASS(WHOLE(in, pool, "id", "pool", i, &id));
        MPL_PASS(find_pool(in, id, "pool", i, &k));
        if (!json_is_null(room))
            MPL_PASS(WHOLE(in, pool, "capacity", "pool", i, &p->pool_capacity[k]));
        if (json_is_string(json_object_get(pool, "name"))) {
            mpl_free(in->ctx, p->pool_name[k]);
            p->pool_name[k] = NULL;
            MPL_PASS(mpl_copy_text(in->ctx, p->pool_name[k],
                                   json_string_value(json_object_get(pool, "name"))));
            mpl_text_clean(p->pool_name[k]);
        }
        if (k == 0)
            *reserved = json_object_get(pool, "reserved_ranges");
    }
    return MPL_OK;
}

static mpl_status set_constraints(reader *in, mpl_problem *p)
{
    const json_t *apart, *reserved = NULL;

    MPL_PASS(get_list(in, json_object_get(in->problem, "constraints"), "separations", &apart));
    MPL_PASS(set_pools(in, p, &reserved));
    MPL_PASS(set_gaps(in, p));
    MPL_PASS(set_pins(in, p));
    if (json_array_size(apart) == 0 && json_array_size(reserved) == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(in->ctx, p->constraints, 1));
    MPL_PASS(set_apart(in, apart, p));
    return set_reserved(in, reserved, p);
}

/* ---- the solution ---- */

static mpl_status read_places(reader *in, const json_t *solution)
{
    const json_t *list;

    MPL_PASS(get_list(in, solution, "placements", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *place = json_array_get(list, i);
        mpl_import_buffer *buffer;
        uint64_t pool;
        uint32_t b, k;

        MPL_PASS(find_buffer(in, place, "buffer", "placement", i, &b));
        buffer = &in->list.item[b];
        MPL_PASS(WHOLE(in, place, "pool", "placement", i, &pool));
        MPL_PASS(find_pool(in, pool, "placement", i, &k));
        if (k != buffer->pool || buffer->offset != UINT64_MAX)
            return MPL_REFUSE(in->ctx, "%.200s: placement %zu: '%.80s' is %s", in->path, i,
                              buffer->name,
                              k != buffer->pool ? "of another pool" : "placed already");
        MPL_PASS(WHOLE(in, place, "offset", "placement", i, &buffer->offset));
    }
    for (uint32_t b = 0; b < in->list.n; b++)
        if (in->list.item[b].offset == UINT64_MAX)
            return MPL_REFUSE(in->ctx, "%.200s: buffer '%.80s' has no placement", in->path,
                              in->list.item[b].name);
    return MPL_OK;
}

static mpl_status read_problem(reader *in)
{
    const json_t *buffers;

    MPL_PASS(refuse_rest(in));
    MPL_PASS(
        get_list(in, json_object_get(in->problem, "constraints"), "pinned_allocations", &in->pins));
    in->n_pins = json_array_size(in->pins);
    MPL_PASS(read_pools(in));
    MPL_PASS(get_list(in, in->problem, "buffers", &buffers));
    MPL_PASS(mpl_new_each(in->ctx, json_array_size(buffers), in->id, in->always));
    for (size_t i = 0; i < json_array_size(buffers); i++)
        MPL_PASS(read_buffer(in, json_array_get(buffers, i), i));
    return in->list.n > 0 ? read_lives(in)
                          : MPL_REFUSE(in->ctx, "%.200s: there is no buffer in it", in->path);
}

/* ---- the two documents ---- */

/* Parses the first document of the text; *n: where it ends. */
static mpl_status parse_first(mpl_ctx *ctx, const mpl_import_in *in, json_t **out, size_t *n)
{
    size_t depth = 0, i = 0;
    bool quoted = false;

    for (; i < in->size; i++) {
        char c = in->text[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == '{')
            depth++;
        else if (!quoted && c == '}' && (depth == 0 || --depth == 0))
            break;
    }
    *n = i < in->size ? i + 1 : in->size;
    return mpl_json_parse(ctx, in->path, in->text, *n, 0, out);
}

static mpl_status parse(mpl_ctx *ctx, const mpl_import_in *in, json_t *root[2])
{
    mpl_import_in rest = *in;
    size_t n;

    MPL_PASS(parse_first(ctx, in, &root[0], &n));
    rest.text += n, rest.size -= n;
    if (mpl_text_first(rest.text, rest.size) == '\0')
        return MPL_REFUSE(ctx,
                          "%.200s: dsa-solver's problem or solution alone; append the other's file "
                          "(dsa-bench --solution-output)",
                          in->path);
    MPL_PASS(mpl_json_parse(ctx, in->path, rest.text, rest.size, 0, &root[1]));
    if (json_object_get(root[0], "problem") != NULL) {
        json_t *problem = root[0];

        root[0] = root[1], root[1] = problem;
    }
    for (int i = 0; i < 2; i++)
        if (json_integer_value(json_object_get(root[i], "schema_version")) != 1)
            return MPL_REFUSE(ctx, "%.200s: 'schema_version' of its %s is not 1, which is read",
                              in->path, i == 0 ? "solution" : "problem");
    return MPL_OK;
}

static mpl_status check_names(mpl_ctx *ctx, const char *path, json_t *root[2])
{
    const char *of = json_string_value(json_object_get(root[0], "instance"));
    const char *name = json_string_value(json_object_get(root[1], "instance"));

    if (of == NULL || name == NULL || strcmp(of, name) != 0)
        return MPL_REFUSE(ctx, "%.150s: a solution of '%.80s', with the problem '%.80s'", path,
                          of != NULL ? of : "?", name != NULL ? name : "?");
    return MPL_OK;
}

mpl_status mpl_import_read_dsa_solver(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = in->path};
    json_t *root[2] = {NULL, NULL}; /* solution, problem */

    MPL_TRY(parse(ctx, in, root));
    MPL_TRY(check_names(ctx, in->path, root));
    r.problem = json_object_get(root[1], "problem");
    MPL_TRY(read_problem(&r));
    MPL_TRY(read_places(&r, root[0]));
    MPL_TRY(mpl_import_make(ctx, in, &r.list, out));
    MPL_TRY(set_constraints(&r, out->problem));
    if ((st = mpl_problem_check(ctx, out->problem)) == MPL_EINPUT)
        MPL_FAIL(ctx, MPL_EINPUT, "%.150s: %s", in->path, ctx->message);
out:
    mpl_import_list_fini(ctx, &r.list);
    mpl_free_each(ctx, r.id, r.by_id.slot, r.always, r.span, r.time);
    json_decref(root[0]), json_decref(root[1]);
    return st;
}
