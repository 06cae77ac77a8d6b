/* plan_file.c -- reads the plan files that plan_write.c writes: checks types, ranges, counts and
 * the embedded hash, and closes the partial order again from its pairs. */
#include "graphs/problem/before.h"
#include "graphs/core/file.h"
#include "graphs/source.h"
#include "planners/plan/plan.h"
#include "planners/plan/plan_json.h"

#include <stdlib.h>

#define SCHEMA 1

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    json_t *root;
    mpl_problem *p;
    mpl_plan *plan;
} reader;

/* A whole number in [0, most]; `what` names it in messages. */
static mpl_status read_number(const reader *r, const json_t *value, const char *what, uint64_t most,
                              uint64_t *out)
{
    if (!json_is_integer(value))
        return MPL_REFUSE(r->ctx, "%s: %s is missing or no whole number", r->path, what);
    if (json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > most)
        return MPL_REFUSE(r->ctx,
                          "%s: %s is %" JSON_INTEGER_FORMAT "; 0 to %" PRIu64 " are possible",
                          r->path, what, json_integer_value(value), most);
    *out = (uint64_t)json_integer_value(value);
    return MPL_OK;
}

/* The same for a member; `whose` ("a buffer's ") precedes its name in messages. */
static mpl_status get_number(const reader *r, const json_t *object, const char *whose,
                             const char *key, uint64_t most, uint64_t *out)
{
    char what[60];

    snprintf(what, sizeof what, "%s%s", whose, key);
    return read_number(r, json_object_get(object, key), what, most, out);
}

static mpl_status get_u32(const reader *r, const json_t *object, const char *whose, const char *key,
                          uint32_t most, uint32_t *out)
{
    uint64_t number_read = 0;
    mpl_status st = get_number(r, object, whose, key, most, &number_read);

    if (st == MPL_OK)
        *out = (uint32_t)number_read;
    return st;
}

/* A capacity; null means none. */
static mpl_status get_capacity(const reader *r, const json_t *object, const char *whose,
                               uint64_t *out)
{
    *out = MPL_NO_CAPACITY;
    if (json_is_null(json_object_get(object, "capacity")))
        return MPL_OK;
    return get_number(r, object, whose, "capacity", INT64_MAX, out);
}

static mpl_status read_list(const reader *r, const char *key, json_t **out)
{
    *out = json_object_get(r->root, key);
    if (!json_is_array(*out))
        return MPL_REFUSE(r->ctx, "%s: '%s' is missing or no list", r->path, key);
    if (json_array_size(*out) >= MPL_NONE / 4)
        return MPL_REFUSE(r->ctx, "%s: '%s' has more than 2^30 entries", r->path, key);
    return MPL_OK;
}

/* An array of n numbers, each at most most[i]. */
static mpl_status read_row(const reader *r, const json_t *row, const char *what, size_t n,
                           const uint64_t *most, uint64_t *out)
{
    if (!json_is_array(row) || json_array_size(row) != n)
        return MPL_REFUSE(r->ctx, "%s: an entry of '%s' is no list of %zu numbers", r->path, what,
                          n);
    for (size_t i = 0; i < n; i++)
        MPL_PASS(read_number(r, json_array_get(row, i), what, most[i], &out[i]));
    return MPL_OK;
}

static mpl_status read_head(reader *r)
{
    const char *kind = json_string_value(json_object_get(r->root, "kind"));
    uint32_t schema = 0;

    if (!json_is_object(r->root) || kind == NULL || strcmp(kind, "plan") != 0)
        return MPL_REFUSE(r->ctx, "%s: no plan file: 'kind' is not \"plan\"", r->path);
    MPL_PASS(get_u32(r, r->root, "", "schema", UINT32_MAX, &schema));
    if (schema != SCHEMA)
        return MPL_REFUSE(r->ctx, "%s: schema %u; this memplan reads %u", r->path, schema, SCHEMA);
    return MPL_OK;
}

static mpl_status read_pools(reader *r, const json_t *list)
{
    uint32_t n = (uint32_t)json_array_size(list);
    mpl_problem *p = r->p;

    if (n == 0)
        return MPL_REFUSE(r->ctx, "%s: 'pools' is empty", r->path);
    mpl_free(r->ctx, p->pool_name[0]);
    p->pool_name[0] = NULL;
    MPL_PASS(mpl_realloc_bytes(r->ctx, (void **)&p->pool_name, 1, n, sizeof *p->pool_name));
    MPL_PASS(mpl_realloc_bytes(r->ctx, (void **)&p->pool_capacity, 1, n, sizeof *p->pool_capacity));
    p->n_pools = n;
    for (uint32_t i = 0; i < n; i++) {
        const json_t *pool = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(pool, "name"));

        if (name == NULL)
            return MPL_REFUSE(r->ctx, "%s: pool %u has no name", r->path, i);
        MPL_PASS((p->pool_name[i] = mpl_strdup(r->ctx, name)) != NULL ? MPL_OK : MPL_EMEM);
        MPL_PASS(get_capacity(r, pool, "a pool's ", &p->pool_capacity[i]));
    }
    return MPL_OK;
}

static mpl_status read_memories(reader *r)
{
    mpl_spread *spread = &r->plan->spread;
    json_t *list;

    if (json_object_get(r->root, "memories") == NULL)
        return MPL_OK;
    MPL_PASS(read_list(r, "memories", &list));
    if (json_array_size(list) == 0)
        return MPL_REFUSE(r->ctx, "%s: 'memories' is empty", r->path);
    MPL_PASS(mpl_plan_spread(r->ctx, r->plan, (uint32_t)json_array_size(list)));
    for (uint32_t k = 0; k < spread->n; k++) {
        const json_t *memory = json_array_get(list, k);

        MPL_PASS(get_capacity(r, memory, "a memory's ", &spread->capacity[k]));
        MPL_PASS(get_number(r, memory, "a memory's ", "price", INT64_MAX, &spread->price[k]));
    }
    MPL_PASS(get_number(r, r->root, "", "cost", INT64_MAX, &spread->cost));
    return get_number(r, r->root, "", "cost_bound", INT64_MAX, &spread->cost_bound);
}

static mpl_status read_buffer(reader *r, mpl_buffer b, const json_t *one, bool steps)
{
    mpl_problem *p = r->p;
    const json_t *name = json_object_get(one, "name"), *block = json_object_get(one, "block");
    uint32_t id = 0;

    MPL_PASS(get_u32(r, one, "a buffer's ", "id", p->n - 1, &id));
    if (id != b)
        return MPL_REFUSE(r->ctx, "%s: buffer %u stands in place %u; ids rise from 0", r->path, id,
                          b);
    if (json_is_string(name))
        MPL_PASS((p->buffer_name[b] = mpl_strdup(r->ctx, json_string_value(name))) != NULL
                     ? MPL_OK
                     : MPL_EMEM);
    MPL_PASS(get_number(r, one, "a buffer's ", "bytes", INT64_MAX, &p->bytes[b]));
    MPL_PASS(get_u32(r, one, "a buffer's ", "align", UINT32_MAX, &p->align[b]));
    MPL_PASS(get_u32(r, one, "a buffer's ", "pool", p->n_pools - 1, &p->pool[b]));
    if (steps) {
        MPL_PASS(get_u32(r, one, "a buffer's ", "birth", UINT32_MAX, &p->birth[b]));
        MPL_PASS(get_u32(r, one, "a buffer's ", "death", UINT32_MAX, &p->death[b]));
    }
    MPL_PASS(get_number(r, one, "a buffer's ", "offset", INT64_MAX, &r->plan->offset[b]));
    if (json_is_null(block) != (r->plan->block == NULL))
        return MPL_REFUSE(r->ctx, "%s: some buffers have a block and some have none", r->path);
    if (r->plan->block != NULL)
        MPL_PASS(get_u32(r, one, "a buffer's ", "block", p->n - 1, &r->plan->block[b]));
    if (r->plan->spread.n > 0)
        MPL_PASS(get_u32(r, one, "a buffer's ", "memory", r->plan->spread.n - 1,
                         &r->plan->spread.memory[b]));
    return MPL_OK;
}

/* The gaps of all lifetimes. Only buffers with gaps name them. */
static mpl_status read_gaps(reader *r, const json_t *list)
{
    mpl_problem *p = r->p;
    size_t n = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        n += json_array_size(json_object_get(json_array_get(list, b), "gaps"));
    if (n == 0)
        return MPL_OK;
    if (n >= MPL_NONE / 4)
        return MPL_REFUSE(r->ctx, "%s: lifetimes have more than 2^30 gaps", r->path);
    MPL_PASS(mpl_new(r->ctx, p->gap_begin, p->n + (size_t)1));
    MPL_PASS(mpl_new_each(r->ctx, n, p->gap_from, p->gap_to));
    for (mpl_buffer b = 0; b < p->n; b++) {
        const json_t *gaps = json_object_get(json_array_get(list, b), "gaps");
        uint32_t at = p->gap_begin[b];

        for (size_t i = 0; i < json_array_size(gaps); i++, at++) {
            uint64_t row[2];

            MPL_PASS(read_row(r, json_array_get(gaps, i), "gaps", 2,
                              (const uint64_t[]){UINT32_MAX, UINT32_MAX}, row));
            p->gap_from[at] = (uint32_t)row[0];
            p->gap_to[at] = (uint32_t)row[1];
        }
        p->gap_begin[b + 1] = at;
    }
    return MPL_OK;
}

static mpl_status read_buffers(reader *r, const json_t *list, bool steps)
{
    MPL_PASS(mpl_new(r->ctx, r->p->buffer_name, r->p->n));
    if (r->p->n > 0 && !json_is_null(json_object_get(json_array_get(list, 0), "block")))
        MPL_PASS(mpl_new(r->ctx, r->plan->block, r->p->n));
    for (mpl_buffer b = 0; b < r->p->n; b++)
        MPL_PASS(read_buffer(r, b, json_array_get(list, b), steps));
    return read_gaps(r, list);
}

static mpl_status read_families(reader *r)
{
    mpl_problem *p = r->p;
    json_t *list;
    size_t n;

    MPL_PASS(read_list(r, "inside", &list));
    n = json_array_size(list);
    if (n == 0)
        return MPL_OK;
    MPL_PASS(mpl_new_each(r->ctx, p->n, p->inside, p->inside_at));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->inside[b] = b;
    for (size_t i = 0; i < n; i++) {
        uint64_t row[3];

        MPL_PASS(read_row(r, json_array_get(list, i), "inside", 3,
                          (const uint64_t[]){UINT32_MAX, UINT32_MAX, INT64_MAX}, row));
        if (row[0] >= p->n || row[1] >= p->n || row[0] == row[1] || p->inside[row[0]] != row[0])
            return MPL_REFUSE(r->ctx,
                              "%s: entry %zu of 'inside' puts buffer %" PRIu64
                              " into buffer %" PRIu64 " of %u, or "
                              "anew",
                              r->path, i, row[0], row[1], p->n);
        p->inside[row[0]] = (mpl_buffer)row[1];
        p->inside_at[row[0]] = row[2];
    }
    return MPL_OK;
}

static mpl_status read_pairs(reader *r)
{
    mpl_problem *p = r->p;
    json_t *list;
    uint32_t n;

    MPL_PASS(read_list(r, "in_place", &list));
    n = (uint32_t)json_array_size(list);
    MPL_PASS(mpl_new_each(r->ctx, n, p->in_place_in, p->in_place_out, p->in_place_step));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t row[3];

        MPL_PASS(read_row(r, json_array_get(list, i), "in_place", 3,
                          (const uint64_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX}, row));
        p->in_place_in[i] = (mpl_buffer)row[0];
        p->in_place_out[i] = (mpl_buffer)row[1];
        p->in_place_step[i] = (uint32_t)row[2];
    }
    p->n_in_place = n;
    MPL_PASS(read_families(r));
    MPL_PASS(read_list(r, "bindings", &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_object_get(json_array_get(list, i), "value")) ||
            !json_is_object(json_object_get(json_array_get(list, i), "at")))
            return MPL_REFUSE(r->ctx,
                              "%s: entry %zu of 'bindings' names no value and where it is at",
                              r->path, i);
    return MPL_OK;
}

static mpl_status read_fixed(reader *r)
{
    mpl_problem *p = r->p;
    json_t *list;

    if (json_is_null(json_object_get(r->root, "fixed")))
        return MPL_OK;
    MPL_PASS(read_list(r, "fixed", &list));
    MPL_PASS(mpl_new(r->ctx, p->fixed, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->fixed[b] = MPL_UNFIXED;
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t row[2];

        MPL_PASS(read_row(r, json_array_get(list, i), "fixed", 2,
                          (const uint64_t[]){UINT32_MAX, INT64_MAX}, row));
        if (row[0] >= p->n)
            return MPL_REFUSE(r->ctx, "%s: 'fixed' names buffer %" PRIu64 " of %u", r->path, row[0],
                              p->n);
        p->fixed[row[0]] = row[1];
    }
    return MPL_OK;
}

/* The member `key` of the constraints: rows of n numbers. */
static mpl_status read_rows(reader *r, const char *key, uint32_t n, uint32_t *n_rows,
                            uint64_t (**rows)[4])
{
    const json_t *list = json_object_get(json_object_get(r->root, "limits"), key);
    static const uint64_t most[4] = {INT64_MAX, INT64_MAX, UINT32_MAX, UINT32_MAX};

    if (!json_is_array(list) || json_array_size(list) > UINT32_MAX)
        return MPL_REFUSE(r->ctx, "%s: the limits' '%s' is no list", r->path, key);
    *n_rows = (uint32_t)json_array_size(list);
    MPL_PASS(mpl_new(r->ctx, *rows, *n_rows));
    for (uint32_t i = 0; i < *n_rows; i++)
        MPL_PASS(read_row(r, json_array_get(list, i), key, n, most, (*rows)[i]));
    return MPL_OK;
}

static mpl_status read_two(reader *r, const char *key, uint32_t *n, mpl_buffer (**two)[2])
{
    mpl_status st = MPL_OK;
    uint64_t(*rows)[4] = NULL;

    MPL_TRY(read_rows(r, key, 2, n, &rows));
    MPL_TRY(mpl_new(r->ctx, *two, *n));
    for (uint32_t i = 0; i < *n; i++)
        for (int k = 0; k < 2; k++)
            (*two)[i][k] = (mpl_buffer)mpl_min_u64(rows[i][k], MPL_NONE);
out:
    mpl_free(r->ctx, rows);
    return st;
}

static mpl_status read_constraints(reader *r)
{
    mpl_status st = MPL_OK;
    const json_t *root = json_object_get(r->root, "limits");
    mpl_constraints *c = NULL;
    uint64_t(*rows)[4] = NULL;

    if (root == NULL || json_is_null(root))
        return MPL_OK;
    MPL_TRY(mpl_new(r->ctx, c, 1));
    r->p->constraints = c;
    MPL_TRY(get_number(r, root, "the limits' ", "chunk", INT64_MAX, &c->chunk_bytes));
    MPL_TRY(read_two(r, "apart", &c->n_apart, &c->apart));
    MPL_TRY(read_two(r, "together", &c->n_together, &c->together));
    MPL_TRY(read_rows(r, "reserved", 4, &c->n_reserved, &rows));
    MPL_TRY(mpl_new(r->ctx, c->reserved, c->n_reserved));
    for (uint32_t i = 0; i < c->n_reserved; i++)
        c->reserved[i] =
            (mpl_reserved){rows[i][0], rows[i][1], (uint32_t)rows[i][2], (uint32_t)rows[i][3]};
out:
    mpl_free(r->ctx, rows);
    return st;
}

static mpl_status read_before(reader *r, const json_t *list)
{
    mpl_status st = MPL_OK;
    mpl_before *before = NULL;
    size_t n = json_array_size(list);
    uint32_t *from = NULL, *to = NULL;

    MPL_TRY(mpl_new_each(r->ctx, n, from, to));
    for (size_t i = 0; i < n; i++) {
        uint64_t arc[2];

        MPL_TRY(read_row(r, json_array_get(list, i), "before", 2,
                         (const uint64_t[]){UINT32_MAX, UINT32_MAX}, arc));
        from[i] = (uint32_t)arc[0];
        to[i] = (uint32_t)arc[1];
    }
    st = mpl_before_from_arcs(r->ctx, r->p->n, n, from, to, &before);
    r->p->before = before;
    if (st == MPL_EINPUT)
        MPL_FAIL(r->ctx, MPL_EINPUT, "%.150s: before: %s", r->path, r->ctx->message);
out:
    mpl_free_each(r->ctx, from, to);
    return st;
}

static mpl_status read_claim(reader *r)
{
    const char *claim = json_string_value(json_object_get(r->root, "claim"));
    int c = MPL_UNKNOWN;

    while (c <= MPL_INFEASIBLE &&
           (claim == NULL || strcmp(claim, mpl_claim_name((mpl_claim)c)) != 0))
        c++;
    if (c > MPL_INFEASIBLE)
        return MPL_REFUSE(r->ctx, "%s: 'claim' is none of unknown, feasible, optimal, infeasible",
                          r->path);
    r->plan->claim = (mpl_claim)c;
    return get_number(r, r->root, "", "bound_bytes", INT64_MAX, &r->plan->bound_bytes);
}

static mpl_status read_refutation(reader *r, const json_t *certificate)
{
    mpl_refutation *proof = &r->plan->refutation;
    const json_t *steps = json_object_get(certificate, "steps");

    if (!json_is_string(steps) || strlen(json_string_value(steps)) != json_string_length(steps))
        return MPL_REFUSE(r->ctx, "%s: the certificate's 'steps' are missing or no text", r->path);
    MPL_PASS(
        get_u32(r, certificate, "the certificate's ", "pool", r->p->n_pools - 1, &proof->pool));
    MPL_PASS(read_number(r, json_object_get(certificate, "within"), "the certificate's 'within'",
                         INT64_MAX, &proof->within));
    return (proof->steps = mpl_strdup(r->ctx, json_string_value(steps))) != NULL ? MPL_OK
                                                                                 : MPL_EMEM;
}

static mpl_status read_certificate(reader *r)
{
    const json_t *certificate = json_object_get(r->root, "certificate");
    const json_t *list = json_object_get(certificate, "buffers");
    const char *kind = json_string_value(json_object_get(certificate, "kind"));

    if (certificate == NULL || json_is_null(certificate))
        return MPL_OK;
    if (kind != NULL && strcmp(kind, "refutation") == 0)
        return read_refutation(r, certificate);
    if (kind == NULL || strcmp(kind, "clique") != 0 || !json_is_array(list) ||
        json_array_size(list) == 0 || json_array_size(list) > r->p->n)
        return MPL_REFUSE(
            r->ctx,
            "%s: 'certificate' should be null, {\"kind\": \"clique\", \"buffers\": [id, ..]}, "
            "or {\"kind\": "
            "\"refutation\", \"pool\": k, \"within\": bytes, \"steps\": \"..\"}",
            r->path);
    MPL_PASS(mpl_new(r->ctx, r->plan->witness, json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t id = 0;

        MPL_PASS(read_number(r, json_array_get(list, i), "certificate", UINT32_MAX, &id));
        r->plan->witness[i] = (mpl_buffer)id;
    }
    r->plan->n_witness = (uint32_t)json_array_size(list);
    return MPL_OK;
}

static mpl_status check_hash(const reader *r)
{
    const char *hash = json_string_value(json_object_get(r->root, "problem_hash"));
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, mpl_problem_hash(r->p));
    if (hash == NULL || strcmp(hash, text) != 0)
        return MPL_REFUSE(
            r->ctx, "%s: problem_hash is %.20s, and the problem in it has %s: the file was changed",
            r->path, hash != NULL ? hash : "missing", text);
    return MPL_OK;
}

static mpl_status read_problem(reader *r)
{
    const char *name = json_string_value(json_object_get(r->root, "name"));
    const json_t *before = json_object_get(r->root, "before");
    json_t *buffers, *pools;

    MPL_PASS(read_list(r, "buffers", &buffers));
    MPL_PASS(read_list(r, "pools", &pools));
    MPL_PASS(mpl_problem_new(r->ctx, name != NULL ? name : r->path,
                             (uint32_t)json_array_size(buffers), &r->p));
    MPL_PASS(read_pools(r, pools));
    MPL_PASS(mpl_plan_new(r->ctx, r->p, &r->plan));
    MPL_PASS(read_memories(r));
    MPL_PASS(get_u32(r, r->root, "", "n_steps", UINT32_MAX, &r->p->n_steps));
    MPL_PASS(read_buffers(r, buffers, json_is_null(before)));
    MPL_PASS(read_pairs(r));
    MPL_PASS(read_fixed(r));
    MPL_PASS(read_constraints(r));
    if (!json_is_null(before)) {
        json_t *list;

        MPL_PASS(read_list(r, "before", &list));
        MPL_PASS(read_before(r, list));
    }
    return MPL_OK;
}

/* Names the file in the message of a broken problem. */
static mpl_status check_problem(const reader *r)
{
    mpl_status st = mpl_problem_check(r->ctx, r->p);

    return st != MPL_EINPUT ? st : MPL_REFUSE(r->ctx, "%.150s: %s", r->path, r->ctx->message);
}

/* Keeps the fields that are not the plan's own, as text. */
static mpl_status keep_fields(const reader *r, char **fields_json)
{
    static const char *const own[] = {"schema",  "kind",     "name",        "problem_hash",
                                      "n_steps", "claim",    "bound_bytes", "planned_bytes",
                                      "pools",   "buffers",  "before",      "in_place",
                                      "inside",  "fixed",    "bindings",    "certificate",
                                      "cost",    "memories", "cost_bound",  "limits"};
    size_t n;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], "bindings") != 0 ||
            json_array_size(json_object_get(r->root, own[i])) == 0)
            json_object_del(r->root, own[i]);
    n = json_dumpb(r->root, NULL, 0, JSON_COMPACT);
    MPL_PASS(n > 0 ? MPL_OK : mpl_json_no_memory(r->ctx));
    MPL_PASS(mpl_new(r->ctx, *fields_json, n + 1));
    return json_dumpb(r->root, *fields_json, n, JSON_COMPACT) == n ? MPL_OK
                                                                   : mpl_json_no_memory(r->ctx);
}

mpl_status mpl_plan_from_json(mpl_ctx *ctx, const char *path, json_t *root, mpl_plan_file *out)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = path, .root = root};
    char *fields = NULL;

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
    mpl_problem_free(ctx, r.p);
    mpl_plan_free(ctx, r.plan);
    mpl_free(ctx, fields);
    return st;
}

mpl_status mpl_plan_read(mpl_ctx *ctx, const char *path, mpl_plan_file *out)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL;
    char *text = NULL;
    const char *noted;
    size_t size = 0, n = 0;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    noted = mpl_onnx_note_find(text, size, MPL_PLAN_NOTE, &n);
    MPL_TRY(mpl_json_parse(ctx, path, noted != NULL ? noted : text, noted != NULL ? n : size,
                           JSON_REJECT_DUPLICATES, &root));
    MPL_TRY(mpl_plan_from_json(ctx, path, root, out));
out:
    json_decref(root);
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
