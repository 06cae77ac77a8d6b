/* plan_file.c -- plans as JSON files that stand alone. The format is on this folder's page; see
 * plan.h.
 *
 * Names that are not UTF-8 are written with '?' for the bytes that do not fit; names do not enter
 * the hash. The reader believes nothing: types, ranges, counts and the embedded hash are checked,
 * and the partial order is closed again from its pairs. */
#include "graphs/problem/before.h"
#include "graphs/core/file.h"
#include "graphs/source.h"
#include "planners/plan/plan.h"

#include <jansson.h>
#include <stdlib.h>

#define SCHEMA 1

/* jansson tells a failed allocation by NULL or -1 only, whatever the call: both end here. */
static mpl_status no_memory(mpl_ctx *ctx)
{
    return mpl_fail(ctx, MPL_EMEM, __FILE__, __LINE__, "out of memory for a plan file");
}

/* Parses; jansson leaves the text of its error empty where an allocation failed. */
static mpl_status parse(mpl_ctx *ctx, const char *path, const char *text, size_t size, json_t **out)
{
    json_error_t error = {.line = 0};

    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (*out != NULL)
        return MPL_OK;
    if (error.text[0] == '\0' || json_error_code(&error) == json_error_out_of_memory)
        return no_memory(ctx);
    return mpl_fail(ctx, MPL_EINPUT, __FILE__, __LINE__, "%s:%d: no JSON: %s", path,
                    error.line > 0 ? error.line : 1, error.text);
}

/* ---- writing ---- */

/* Puts `value` (taken, NULL: could not be made) under `key`. */
static mpl_status put(mpl_ctx *ctx, json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0 ? MPL_OK : no_memory(ctx);
}

static mpl_status push(mpl_ctx *ctx, json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0 ? MPL_OK : no_memory(ctx);
}

/* Sizes that pass 2^63 - 1 are refused where they enter; "no capacity" is null. */
static json_t *number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

static mpl_status put_text(mpl_ctx *ctx, json_t *object, const char *key, const char *text)
{
    mpl_status st = MPL_OK;
    json_t *value = json_string(text);
    char *plain = NULL;

    if (value == NULL) { /* not UTF-8, or no memory; the second try tells which */
        MPL_TRY((plain = mpl_strdup(ctx, text)) != NULL ? MPL_OK : MPL_EMEM);
        for (char *c = plain; *c != '\0'; c++)
            if ((unsigned char)*c >= 0x80)
                *c = '?';
        value = json_string(plain);
    }
    MPL_TRY(put(ctx, object, key, value));
out:
    mpl_free(ctx, plain);
    return st;
}

static mpl_status put_hash(mpl_ctx *ctx, json_t *object, const char *key, uint64_t hash)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return put(ctx, object, key, json_string(text));
}

static mpl_status put_row(mpl_ctx *ctx, json_t *list, size_t n, const uint64_t *number_of)
{
    mpl_status st = MPL_OK;
    json_t *row = json_array();

    MPL_TRY(row != NULL ? MPL_OK : no_memory(ctx));
    for (size_t i = 0; i < n; i++)
        MPL_TRY(push(ctx, row, number(number_of[i])));
    MPL_TRY(push(ctx, list, json_incref(row)));
out:
    json_decref(row);
    return st;
}

static mpl_status put_pools(mpl_ctx *ctx, json_t *root, const mpl_problem *p, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    json_t *list = json_array();

    MPL_TRY(put(ctx, root, "pools", json_incref(list)));
    for (uint32_t i = 0; i < p->n_pools; i++) {
        json_t *pool = json_object();

        MPL_TRY(push(ctx, list, pool)); /* the list owns it, and keeps it alive */
        MPL_TRY(put_text(ctx, pool, "name", p->pool_name[i]));
        MPL_TRY(put(ctx, pool, "bytes", number(plan->pool_bytes[i])));
        MPL_TRY(put(ctx, pool, "capacity", number(p->pool_capacity[i])));
    }
out:
    json_decref(list);
    return st;
}

/* The memories of pool 0, where it has several. */
static mpl_status put_memories(mpl_ctx *ctx, json_t *root, const mpl_spread *spread)
{
    mpl_status st = MPL_OK;
    json_t *list = json_array();

    MPL_TRY(put(ctx, root, "memories", json_incref(list)));
    for (uint32_t k = 0; k < spread->n; k++) {
        json_t *memory = json_object();

        MPL_TRY(push(ctx, list, memory));
        MPL_TRY(put(ctx, memory, "bytes", number(spread->bytes[k])));
        MPL_TRY(put(ctx, memory, "capacity", number(spread->capacity[k])));
        MPL_TRY(put(ctx, memory, "price", number(spread->price[k])));
    }
    MPL_TRY(put(ctx, root, "cost", number(spread->cost)));
    MPL_TRY(put(ctx, root, "cost_bound", number(spread->cost_bound)));
out:
    json_decref(list);
    return st;
}

/* Where a lifetime has gaps: [[from, to], ..]. */
static mpl_status put_gaps(mpl_ctx *ctx, json_t *one, const mpl_problem *p, mpl_buffer b)
{
    mpl_status st = MPL_OK;
    json_t *list = json_array();

    MPL_TRY(put(ctx, one, "gaps", json_incref(list)));
    for (uint32_t i = p->gap_begin[b]; i < p->gap_begin[b + 1]; i++)
        MPL_TRY(put_row(ctx, list, 2, (uint64_t[]){p->gap_from[i], p->gap_to[i]}));
out:
    json_decref(list);
    return st;
}

static mpl_status put_buffers(mpl_ctx *ctx, json_t *root, const mpl_problem *p,
                              const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    json_t *list = json_array();
    bool steps = p->before == NULL;

    MPL_TRY(put(ctx, root, "buffers", json_incref(list)));
    for (mpl_buffer b = 0; b < p->n; b++) {
        json_t *one = json_object();

        MPL_TRY(push(ctx, list, one));
        MPL_TRY(put(ctx, one, "id", number(b)));
        if (p->buffer_name != NULL && p->buffer_name[b] != NULL)
            MPL_TRY(put_text(ctx, one, "name", p->buffer_name[b]));
        else
            MPL_TRY(put(ctx, one, "name", json_null()));
        MPL_TRY(put(ctx, one, "bytes", number(p->bytes[b])));
        MPL_TRY(put(ctx, one, "align", number(p->align[b])));
        MPL_TRY(put(ctx, one, "pool", number(p->pool[b])));
        if (plan->spread.n > 0)
            MPL_TRY(put(ctx, one, "memory", number(plan->spread.memory[b])));
        MPL_TRY(put(ctx, one, "birth", steps ? number(p->birth[b]) : json_null()));
        MPL_TRY(put(ctx, one, "death", steps ? number(p->death[b]) : json_null()));
        if (p->gap_begin != NULL && p->gap_begin[b] < p->gap_begin[b + 1])
            MPL_TRY(put_gaps(ctx, one, p, b));
        MPL_TRY(put(ctx, one, "offset", number(plan->offset[b])));
        MPL_TRY(put(ctx, one, "block", plan->block != NULL ? number(plan->block[b]) : json_null()));
    }
out:
    json_decref(list);
    return st;
}

static mpl_status put_relations(mpl_ctx *ctx, json_t *root, const mpl_problem *p)
{
    mpl_status st = MPL_OK;
    json_t *before = json_array(), *pairs = json_array(), *inside = json_array(),
           *fixed = json_array();

    MPL_TRY(put(ctx, root, "before", p->before != NULL ? json_incref(before) : json_null()));
    for (mpl_buffer a = 0; p->before != NULL && a < p->n; a++)
        for (uint32_t i = p->before->red_begin[a]; i < p->before->red_begin[a + 1]; i++)
            MPL_TRY(put_row(ctx, before, 2, (uint64_t[]){a, p->before->red_item[i]}));
    MPL_TRY(put(ctx, root, "in_place", json_incref(pairs)));
    for (uint32_t i = 0; i < p->n_in_place; i++)
        MPL_TRY(put_row(ctx, pairs, 3,
                        (uint64_t[]){p->in_place_in[i], p->in_place_out[i], p->in_place_step[i]}));
    MPL_TRY(put(ctx, root, "inside", json_incref(inside)));
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        if (p->inside[b] != b)
            MPL_TRY(put_row(ctx, inside, 3, (uint64_t[]){b, p->inside[b], p->inside_at[b]}));
    MPL_TRY(put(ctx, root, "fixed", p->fixed != NULL ? json_incref(fixed) : json_null()));
    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED)
            MPL_TRY(put_row(ctx, fixed, 2, (uint64_t[]){b, p->fixed[b]}));
out:
    json_decref(before);
    json_decref(pairs);
    json_decref(inside);
    json_decref(fixed);
    return st;
}

/* The caller's fields come behind `schema` and `kind`; what the plan itself knows overwrites
 * them. */
static mpl_status put_fields(mpl_ctx *ctx, json_t *root, const char *fields_json)
{
    mpl_status st = MPL_OK;
    json_t *fields = NULL;

    if (fields_json == NULL)
        goto out;
    MPL_TRY(parse(ctx, "the fields of a plan file", fields_json, strlen(fields_json), &fields));
    if (!json_is_object(fields))
        MPL_FAIL(ctx, MPL_EINPUT, "the fields of a plan file are no JSON object");
    if (json_object_update_missing(root, fields) != 0)
        st = no_memory(ctx);
out:
    json_decref(fields);
    return st;
}

static mpl_status put_refutation(mpl_ctx *ctx, json_t *certificate, const mpl_refutation *proof)
{
    mpl_status st = MPL_OK;

    MPL_TRY(put(ctx, certificate, "kind", json_string("refutation")));
    MPL_TRY(put(ctx, certificate, "pool", number(proof->pool)));
    MPL_TRY(put(ctx, certificate, "within", number(proof->within)));
    MPL_TRY(put(ctx, certificate, "steps", json_string(proof->steps)));
out:
    return st;
}

/* The refutation or the set of buffers that proves the bound, or null. */
static mpl_status put_certificate(mpl_ctx *ctx, json_t *root, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    json_t *certificate = NULL, *list = NULL;

    if (plan->refutation.steps == NULL && plan->n_witness == 0)
        return put(ctx, root, "certificate", json_null());
    MPL_TRY((certificate = json_object()) != NULL ? MPL_OK : no_memory(ctx));
    MPL_TRY(put(ctx, root, "certificate", json_incref(certificate)));
    if (plan->refutation.steps != NULL) {
        MPL_TRY(put_refutation(ctx, certificate, &plan->refutation));
        goto out;
    }
    MPL_TRY((list = json_array()) != NULL ? MPL_OK : no_memory(ctx));
    for (uint32_t i = 0; i < plan->n_witness; i++)
        if (json_array_append_new(list, number(plan->witness[i])) != 0)
            MPL_TRY(no_memory(ctx));
    MPL_TRY(put(ctx, certificate, "kind", json_string("clique")));
    MPL_TRY(put(ctx, certificate, "buffers", json_incref(list)));
out:
    json_decref(list);
    json_decref(certificate);
    return st;
}

static mpl_status build(mpl_ctx *ctx, json_t *root, const mpl_problem *p, const mpl_plan *plan,
                        const char *fields_json)
{
    mpl_status st = MPL_OK;

    MPL_TRY(root != NULL ? MPL_OK : no_memory(ctx));
    MPL_TRY(put(ctx, root, "schema", number(SCHEMA)));
    MPL_TRY(put(ctx, root, "kind", json_string("plan")));
    MPL_TRY(put_fields(ctx, root, fields_json));
    MPL_TRY(put_text(ctx, root, "name", p->name));
    MPL_TRY(put_hash(ctx, root, "problem_hash", mpl_problem_hash(p)));
    MPL_TRY(put(ctx, root, "n_steps", number(p->n_steps)));
    MPL_TRY(put(ctx, root, "claim", json_string(mpl_claim_name(plan->claim))));
    MPL_TRY(put(ctx, root, "bound_bytes", number(plan->bound_bytes)));
    MPL_TRY(put(ctx, root, "planned_bytes", number(plan->peak_bytes)));
    MPL_TRY(put_pools(ctx, root, p, plan));
    if (plan->spread.n > 0)
        MPL_TRY(put_memories(ctx, root, &plan->spread));
    MPL_TRY(put_buffers(ctx, root, p, plan));
    MPL_TRY(put_relations(ctx, root, p));
    if (!json_is_array(json_object_get(root, "bindings"))) /* the caller's, of control flow */
        MPL_TRY(put(ctx, root, "bindings", json_array()));
    MPL_TRY(put_certificate(ctx, root, plan));
out:
    return st;
}

mpl_status mpl_plan_text(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                         const char *fields_json, char **text)
{
    mpl_status st = MPL_OK;
    json_t *root = json_object();
    char *dumped = NULL;

    mpl_assert(plan->n == p->n && plan->n_pools == p->n_pools);
    MPL_TRY(build(ctx, root, p, plan, fields_json));
    MPL_TRY((dumped = json_dumps(root, JSON_COMPACT)) != NULL ? MPL_OK : no_memory(ctx));
    MPL_TRY((*text = mpl_strdup(ctx, dumped)) != NULL ? MPL_OK : MPL_EMEM);
out:
    free(dumped);
    json_decref(root);
    return st;
}

mpl_status mpl_plan_write(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                          const mpl_plan *plan, const char *fields_json)
{
    mpl_status st = MPL_OK;
    json_t *root = json_object();
    mpl_new_file file = {0};

    mpl_assert(plan->n == p->n && plan->n_pools == p->n_pools);
    MPL_TRY(build(ctx, root, p, plan, fields_json));
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    /* A failed write leaves its mark on the stream, which the commit looks at. */
    if (json_dumpf(root, file.stream, JSON_COMPACT) != 0 && !ferror(file.stream))
        MPL_TRY(no_memory(ctx));
    fputc('\n', file.stream);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    json_decref(root);
    return st;
}

/* ---- reading ---- */

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    json_t *root;
    mpl_problem *p;
    mpl_plan *plan;
} reader;

#define REFUSE(r, ...) MPL_FAIL((r)->ctx, MPL_EINPUT, __VA_ARGS__)

/* A whole number in [0, most]; `what` names it in the message. */
static mpl_status read_number(const reader *r, const json_t *value, const char *what, uint64_t most,
                              uint64_t *out)
{
    mpl_status st = MPL_OK;

    if (!json_is_integer(value))
        REFUSE(r, "%s: %s is missing or no whole number", r->path, what);
    if (json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > most)
        REFUSE(r, "%s: %s is %" JSON_INTEGER_FORMAT "; 0 to %" PRIu64 " are possible", r->path,
               what, json_integer_value(value), most);
    *out = (uint64_t)json_integer_value(value);
out:
    return st;
}

static mpl_status read_u32(const reader *r, const json_t *value, const char *what, uint32_t most,
                           uint32_t *out)
{
    uint64_t number_read = 0;
    mpl_status st = read_number(r, value, what, most, &number_read);

    if (st == MPL_OK)
        *out = (uint32_t)number_read;
    return st;
}

static mpl_status read_list(const reader *r, const char *key, json_t **out)
{
    mpl_status st = MPL_OK;

    *out = json_object_get(r->root, key);
    if (!json_is_array(*out))
        REFUSE(r, "%s: '%s' is missing or no list", r->path, key);
    if (json_array_size(*out) >= MPL_NONE / 4)
        REFUSE(r, "%s: '%s' has more than 2^30 entries", r->path, key);
out:
    return st;
}

/* A row of n numbers, each at most most[i]. */
static mpl_status read_row(const reader *r, const json_t *row, const char *what, size_t n,
                           const uint64_t *most, uint64_t *out)
{
    mpl_status st = MPL_OK;

    if (!json_is_array(row) || json_array_size(row) != n)
        REFUSE(r, "%s: an entry of '%s' is no list of %zu numbers", r->path, what, n);
    for (size_t i = 0; i < n; i++)
        MPL_TRY(read_number(r, json_array_get(row, i), what, most[i], &out[i]));
out:
    return st;
}

static mpl_status read_head(reader *r)
{
    mpl_status st = MPL_OK;
    const char *kind = json_string_value(json_object_get(r->root, "kind"));
    uint32_t schema = 0;

    if (!json_is_object(r->root) || kind == NULL || strcmp(kind, "plan") != 0)
        REFUSE(r, "%s: no plan file: 'kind' is not \"plan\"", r->path);
    MPL_TRY(read_u32(r, json_object_get(r->root, "schema"), "schema", UINT32_MAX, &schema));
    if (schema != SCHEMA)
        REFUSE(r, "%s: schema %u; this memplan reads %u", r->path, schema, SCHEMA);
out:
    return st;
}

static mpl_status read_pools(reader *r, const json_t *list)
{
    mpl_status st = MPL_OK;
    uint32_t n = (uint32_t)json_array_size(list);
    mpl_problem *p = r->p;

    if (n == 0)
        REFUSE(r, "%s: 'pools' is empty", r->path);
    mpl_free(r->ctx, p->pool_name[0]);
    p->pool_name[0] = NULL;
    MPL_TRY(mpl_realloc_bytes(r->ctx, (void **)&p->pool_name, 1, n, sizeof *p->pool_name));
    MPL_TRY(mpl_realloc_bytes(r->ctx, (void **)&p->pool_capacity, 1, n, sizeof *p->pool_capacity));
    p->n_pools = n;
    for (uint32_t i = 0; i < n; i++) {
        const json_t *pool = json_array_get(list, i), *capacity = json_object_get(pool, "capacity");
        const char *name = json_string_value(json_object_get(pool, "name"));

        if (name == NULL)
            REFUSE(r, "%s: pool %u has no name", r->path, i);
        MPL_TRY((p->pool_name[i] = mpl_strdup(r->ctx, name)) != NULL ? MPL_OK : MPL_EMEM);
        p->pool_capacity[i] = MPL_NO_CAPACITY;
        if (!json_is_null(capacity))
            MPL_TRY(read_number(r, capacity, "a pool's capacity", INT64_MAX, &p->pool_capacity[i]));
    }
out:
    return st;
}

static mpl_status read_memories(reader *r)
{
    mpl_status st = MPL_OK;
    mpl_spread *spread = &r->plan->spread;
    json_t *list;

    if (json_object_get(r->root, "memories") == NULL)
        goto out;
    MPL_TRY(read_list(r, "memories", &list));
    if (json_array_size(list) == 0)
        REFUSE(r, "%s: 'memories' is empty", r->path);
    MPL_TRY(mpl_plan_spread(r->ctx, r->plan, (uint32_t)json_array_size(list)));
    for (uint32_t k = 0; k < spread->n; k++) {
        const json_t *memory = json_array_get(list, k),
                     *capacity = json_object_get(memory, "capacity");

        spread->capacity[k] = MPL_NO_CAPACITY;
        if (!json_is_null(capacity))
            MPL_TRY(
                read_number(r, capacity, "a memory's capacity", INT64_MAX, &spread->capacity[k]));
        MPL_TRY(read_number(r, json_object_get(memory, "price"), "a memory's price", INT64_MAX,
                            &spread->price[k]));
    }
    MPL_TRY(read_number(r, json_object_get(r->root, "cost"), "cost", INT64_MAX, &spread->cost));
    MPL_TRY(read_number(r, json_object_get(r->root, "cost_bound"), "cost_bound", INT64_MAX,
                        &spread->cost_bound));
out:
    return st;
}

static mpl_status read_buffer(reader *r, mpl_buffer b, const json_t *one, bool steps)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = r->p;
    const json_t *name = json_object_get(one, "name"), *block = json_object_get(one, "block");
    uint32_t id = 0;

    MPL_TRY(read_u32(r, json_object_get(one, "id"), "a buffer's id", p->n - 1, &id));
    if (id != b)
        REFUSE(r, "%s: buffer %u stands in place %u; ids rise from 0", r->path, id, b);
    if (json_is_string(name))
        MPL_TRY((p->buffer_name[b] = mpl_strdup(r->ctx, json_string_value(name))) != NULL
                    ? MPL_OK
                    : MPL_EMEM);
    MPL_TRY(
        read_number(r, json_object_get(one, "bytes"), "a buffer's bytes", INT64_MAX, &p->bytes[b]));
    MPL_TRY(
        read_u32(r, json_object_get(one, "align"), "a buffer's align", UINT32_MAX, &p->align[b]));
    MPL_TRY(
        read_u32(r, json_object_get(one, "pool"), "a buffer's pool", p->n_pools - 1, &p->pool[b]));
    if (steps) {
        MPL_TRY(read_u32(r, json_object_get(one, "birth"), "a buffer's birth", UINT32_MAX,
                         &p->birth[b]));
        MPL_TRY(read_u32(r, json_object_get(one, "death"), "a buffer's death", UINT32_MAX,
                         &p->death[b]));
    }
    MPL_TRY(read_number(r, json_object_get(one, "offset"), "a buffer's offset", INT64_MAX,
                        &r->plan->offset[b]));
    if (json_is_null(block) != (r->plan->block == NULL))
        REFUSE(r, "%s: some buffers have a block and some have none", r->path);
    if (r->plan->block != NULL)
        MPL_TRY(read_u32(r, block, "a buffer's block", p->n - 1, &r->plan->block[b]));
    if (r->plan->spread.n > 0)
        MPL_TRY(read_u32(r, json_object_get(one, "memory"), "a buffer's memory",
                         r->plan->spread.n - 1, &r->plan->spread.memory[b]));
out:
    return st;
}

/* The gaps of all lifetimes, which only those buffers name that have some. */
static mpl_status read_gaps(reader *r, const json_t *list)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = r->p;
    size_t n = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        n += json_array_size(json_object_get(json_array_get(list, b), "gaps"));
    if (n == 0)
        goto out;
    if (n >= MPL_NONE / 4)
        REFUSE(r, "%s: lifetimes have more than 2^30 gaps", r->path);
    MPL_TRY(mpl_new(r->ctx, p->gap_begin, p->n + (size_t)1));
    MPL_TRY(mpl_new(r->ctx, p->gap_from, n));
    MPL_TRY(mpl_new(r->ctx, p->gap_to, n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        const json_t *gaps = json_object_get(json_array_get(list, b), "gaps");
        uint32_t at = p->gap_begin[b];

        for (size_t i = 0; i < json_array_size(gaps); i++, at++) {
            uint64_t row[2];

            MPL_TRY(read_row(r, json_array_get(gaps, i), "gaps", 2,
                             (const uint64_t[]){UINT32_MAX, UINT32_MAX}, row));
            p->gap_from[at] = (uint32_t)row[0];
            p->gap_to[at] = (uint32_t)row[1];
        }
        p->gap_begin[b + 1] = at;
    }
out:
    return st;
}

static mpl_status read_buffers(reader *r, const json_t *list, bool steps)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_new(r->ctx, r->p->buffer_name, r->p->n));
    if (r->p->n > 0 && !json_is_null(json_object_get(json_array_get(list, 0), "block")))
        MPL_TRY(mpl_new(r->ctx, r->plan->block, r->p->n));
    for (mpl_buffer b = 0; b < r->p->n; b++)
        MPL_TRY(read_buffer(r, b, json_array_get(list, b), steps));
    MPL_TRY(read_gaps(r, list));
out:
    return st;
}

static mpl_status read_families(reader *r)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = r->p;
    json_t *list;
    size_t n;

    MPL_TRY(read_list(r, "inside", &list));
    n = json_array_size(list);
    if (n == 0)
        goto out;
    MPL_TRY(mpl_new(r->ctx, p->inside, p->n));
    MPL_TRY(mpl_new(r->ctx, p->inside_at, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->inside[b] = b;
    for (size_t i = 0; i < n; i++) {
        uint64_t row[3];

        MPL_TRY(read_row(r, json_array_get(list, i), "inside", 3,
                         (const uint64_t[]){UINT32_MAX, UINT32_MAX, INT64_MAX}, row));
        if (row[0] >= p->n || row[1] >= p->n || row[0] == row[1] || p->inside[row[0]] != row[0])
            REFUSE(r,
                   "%s: entry %zu of 'inside' puts buffer %" PRIu64 " into buffer %" PRIu64
                   " of %u, or "
                   "anew",
                   r->path, i, row[0], row[1], p->n);
        p->inside[row[0]] = (mpl_buffer)row[1];
        p->inside_at[row[0]] = row[2];
    }
out:
    return st;
}

static mpl_status read_pairs(reader *r)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = r->p;
    json_t *list;
    uint32_t n;

    MPL_TRY(read_list(r, "in_place", &list));
    n = (uint32_t)json_array_size(list);
    MPL_TRY(mpl_new(r->ctx, p->in_place_in, n));
    MPL_TRY(mpl_new(r->ctx, p->in_place_out, n));
    MPL_TRY(mpl_new(r->ctx, p->in_place_step, n));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t row[3];

        MPL_TRY(read_row(r, json_array_get(list, i), "in_place", 3,
                         (const uint64_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX}, row));
        p->in_place_in[i] = (mpl_buffer)row[0];
        p->in_place_out[i] = (mpl_buffer)row[1];
        p->in_place_step[i] = (uint32_t)row[2];
    }
    p->n_in_place = n;
    MPL_TRY(read_families(r));
    MPL_TRY(read_list(r, "bindings", &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_object_get(json_array_get(list, i), "value")) ||
            !json_is_object(json_object_get(json_array_get(list, i), "at")))
            REFUSE(r, "%s: entry %zu of 'bindings' names no value and where it is at", r->path, i);
out:
    return st;
}

static mpl_status read_fixed(reader *r)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = r->p;
    json_t *list;

    if (json_is_null(json_object_get(r->root, "fixed")))
        goto out;
    MPL_TRY(read_list(r, "fixed", &list));
    MPL_TRY(mpl_new(r->ctx, p->fixed, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->fixed[b] = MPL_UNFIXED;
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t row[2];

        MPL_TRY(read_row(r, json_array_get(list, i), "fixed", 2,
                         (const uint64_t[]){UINT32_MAX, INT64_MAX}, row));
        if (row[0] >= p->n)
            REFUSE(r, "%s: 'fixed' names buffer %" PRIu64 " of %u", r->path, row[0], p->n);
        p->fixed[row[0]] = row[1];
    }
out:
    return st;
}

static mpl_status read_before(reader *r, const json_t *list)
{
    mpl_status st = MPL_OK;
    mpl_before *before = NULL;
    size_t n = json_array_size(list);
    uint32_t *from = NULL, *to = NULL;
    char why[sizeof r->ctx->message];

    MPL_TRY(mpl_new(r->ctx, from, n));
    MPL_TRY(mpl_new(r->ctx, to, n));
    for (size_t i = 0; i < n; i++) {
        uint64_t arc[2];

        MPL_TRY(read_row(r, json_array_get(list, i), "before", 2,
                         (const uint64_t[]){UINT32_MAX, UINT32_MAX}, arc));
        from[i] = (uint32_t)arc[0];
        to[i] = (uint32_t)arc[1];
    }
    st = mpl_before_from_arcs(r->ctx, r->p->n, n, from, to, &before);
    r->p->before = before;
    if (st == MPL_EINPUT) {
        memcpy(why, r->ctx->message, sizeof why);
        REFUSE(r, "%.150s: before: %.350s", r->path, why);
    }
out:
    mpl_free(r->ctx, from);
    mpl_free(r->ctx, to);
    return st;
}

static mpl_status read_claim(reader *r)
{
    mpl_status st = MPL_OK;
    const char *claim = json_string_value(json_object_get(r->root, "claim"));
    int c = MPL_UNKNOWN;

    while (c <= MPL_INFEASIBLE &&
           (claim == NULL || strcmp(claim, mpl_claim_name((mpl_claim)c)) != 0))
        c++;
    if (c > MPL_INFEASIBLE)
        REFUSE(r, "%s: 'claim' is none of unknown, feasible, optimal, infeasible", r->path);
    r->plan->claim = (mpl_claim)c;
    MPL_TRY(read_number(r, json_object_get(r->root, "bound_bytes"), "bound_bytes", INT64_MAX,
                        &r->plan->bound_bytes));
out:
    return st;
}

static mpl_status read_refutation(reader *r, const json_t *certificate)
{
    mpl_status st = MPL_OK;
    mpl_refutation *proof = &r->plan->refutation;
    const json_t *steps = json_object_get(certificate, "steps");

    if (!json_is_string(steps) || strlen(json_string_value(steps)) != json_string_length(steps))
        REFUSE(r, "%s: the certificate's 'steps' are missing or no text", r->path);
    MPL_TRY(read_u32(r, json_object_get(certificate, "pool"), "the certificate's pool",
                     r->p->n_pools - 1, &proof->pool));
    MPL_TRY(read_number(r, json_object_get(certificate, "within"), "the certificate's 'within'",
                        INT64_MAX, &proof->within));
    MPL_TRY((proof->steps = mpl_strdup(r->ctx, json_string_value(steps))) != NULL ? MPL_OK
                                                                                  : MPL_EMEM);
out:
    return st;
}

static mpl_status read_certificate(reader *r)
{
    mpl_status st = MPL_OK;
    const json_t *certificate = json_object_get(r->root, "certificate");
    const json_t *list = json_object_get(certificate, "buffers");
    const char *kind = json_string_value(json_object_get(certificate, "kind"));

    if (certificate == NULL || json_is_null(certificate))
        return MPL_OK;
    if (kind != NULL && strcmp(kind, "refutation") == 0)
        return read_refutation(r, certificate);
    if (kind == NULL || strcmp(kind, "clique") != 0 || !json_is_array(list) ||
        json_array_size(list) == 0 || json_array_size(list) > r->p->n)
        REFUSE(r,
               "%s: 'certificate' should be null, {\"kind\": \"clique\", \"buffers\": [id, ..]}, "
               "or {\"kind\": "
               "\"refutation\", \"pool\": k, \"within\": bytes, \"steps\": \"..\"}",
               r->path);
    MPL_TRY(mpl_new(r->ctx, r->plan->witness, json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++)
        MPL_TRY(
            read_u32(r, json_array_get(list, i), "certificate", UINT32_MAX, &r->plan->witness[i]));
    r->plan->n_witness = (uint32_t)json_array_size(list);
out:
    return st;
}

static mpl_status check_hash(const reader *r)
{
    mpl_status st = MPL_OK;
    const char *hash = json_string_value(json_object_get(r->root, "problem_hash"));
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, mpl_problem_hash(r->p));
    if (hash == NULL || strcmp(hash, text) != 0)
        REFUSE(r, "%s: problem_hash is %.20s, and the problem in it has %s: the file was changed",
               r->path, hash != NULL ? hash : "missing", text);
out:
    return st;
}

static mpl_status read_problem(reader *r)
{
    mpl_status st = MPL_OK;
    const char *name = json_string_value(json_object_get(r->root, "name"));
    const json_t *before = json_object_get(r->root, "before");
    json_t *buffers, *pools;

    MPL_TRY(read_list(r, "buffers", &buffers));
    MPL_TRY(read_list(r, "pools", &pools));
    MPL_TRY(mpl_problem_new(r->ctx, name != NULL ? name : r->path,
                            (uint32_t)json_array_size(buffers), &r->p));
    MPL_TRY(read_pools(r, pools));
    MPL_TRY(mpl_plan_new(r->ctx, r->p, &r->plan));
    MPL_TRY(read_memories(r));
    MPL_TRY(
        read_u32(r, json_object_get(r->root, "n_steps"), "n_steps", UINT32_MAX, &r->p->n_steps));
    MPL_TRY(read_buffers(r, buffers, json_is_null(before)));
    MPL_TRY(read_pairs(r));
    MPL_TRY(read_fixed(r));
    if (!json_is_null(before)) {
        json_t *list;

        MPL_TRY(read_list(r, "before", &list));
        MPL_TRY(read_before(r, list));
    }
out:
    return st;
}

/* A broken problem is named together with its file. */
static mpl_status check_problem(const reader *r)
{
    mpl_status st = MPL_OK;
    char why[sizeof r->ctx->message];

    if ((st = mpl_problem_check(r->ctx, r->p)) != MPL_EINPUT)
        goto out;
    memcpy(why, r->ctx->message, sizeof why);
    REFUSE(r, "%.150s: %.350s", r->path, why);
out:
    return st;
}

/* The fields that are not the plan's own, as text again. */
static mpl_status keep_fields(const reader *r, char **fields_json)
{
    static const char *const own[] = {"schema",  "kind",     "name",        "problem_hash",
                                      "n_steps", "claim",    "bound_bytes", "planned_bytes",
                                      "pools",   "buffers",  "before",      "in_place",
                                      "inside",  "fixed",    "bindings",    "certificate",
                                      "cost",    "memories", "cost_bound"};
    mpl_status st = MPL_OK;
    size_t n;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], "bindings") != 0 ||
            json_array_size(json_object_get(r->root, own[i])) == 0)
            json_object_del(r->root, own[i]);
    n = json_dumpb(r->root, NULL, 0, JSON_COMPACT);
    MPL_TRY(n > 0 ? MPL_OK : no_memory(r->ctx));
    MPL_TRY(mpl_new(r->ctx, *fields_json, n + 1));
    MPL_TRY(json_dumpb(r->root, *fields_json, n, JSON_COMPACT) == n ? MPL_OK : no_memory(r->ctx));
out:
    return st;
}

mpl_status mpl_plan_read(mpl_ctx *ctx, const char *path, mpl_plan_file *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = path};
    char *text = NULL, *fields = NULL;
    const char *noted;
    size_t size = 0, n = 0;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    noted = mpl_onnx_note_find(text, size, MPL_PLAN_NOTE, &n);
    MPL_TRY(noted != NULL ? parse(ctx, path, noted, n, &r.root)
                          : parse(ctx, path, text, size, &r.root));
    MPL_TRY(read_head(&r));
    MPL_TRY(read_problem(&r));
    MPL_TRY(read_claim(&r));
    MPL_TRY(read_certificate(&r));
    MPL_TRY(check_problem(&r));
    MPL_TRY(check_hash(&r));
    MPL_TRY(keep_fields(&r, &fields));
    *out = (mpl_plan_file){fields, r.p, r.plan};
    fields = NULL, r.p = NULL, r.plan = NULL;
out:
    json_decref(r.root);
    mpl_problem_free(ctx, r.p);
    mpl_plan_free(ctx, r.plan);
    mpl_free(ctx, fields);
    mpl_free(ctx, text);
    return st;
}

void mpl_plan_file_fini(mpl_ctx *ctx, mpl_plan_file *file)
{
    mpl_free(ctx, file->fields_json);
    mpl_problem_free(ctx, file->problem);
    mpl_plan_free(ctx, file->plan);
    memset(file, 0, sizeof *file);
}
