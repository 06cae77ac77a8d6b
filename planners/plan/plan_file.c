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
static mpl_status read_number(const reader *in, const json_t *value, const char *what,
                              uint64_t most, uint64_t *out)
{
    if (!json_is_integer(value))
        return MPL_REFUSE(in->ctx, "%s: %s is missing or no whole number", in->path, what);
    if (json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > most)
        return MPL_REFUSE(in->ctx,
                          "%s: %s is %" JSON_INTEGER_FORMAT "; 0 to %" PRIu64 " are possible",
                          in->path, what, json_integer_value(value), most);
    *out = (uint64_t)json_integer_value(value);
    return MPL_OK;
}

/* The same for a member; `whose` ("a buffer's ") precedes its name in messages. */
static mpl_status get_number(const reader *in, const json_t *object, const char *whose,
                             const char *key, uint64_t most, uint64_t *out)
{
    char what[60];

    snprintf(what, sizeof what, "%s%s", whose, key);
    return read_number(in, json_object_get(object, key), what, most, out);
}

static mpl_status get_u32(const reader *in, const json_t *object, const char *whose,
                          const char *key, uint32_t most, uint32_t *out)
{
    uint64_t number_read = 0;
    mpl_status st = get_number(in, object, whose, key, most, &number_read);

    if (st == MPL_OK)
        *out = (uint32_t)number_read;
    return st;
}

/* A capacity; null means none. */
static mpl_status get_capacity(const reader *in, const json_t *object, const char *whose,
                               uint64_t *out)
{
    *out = MPL_NO_CAPACITY;
    if (json_is_null(json_object_get(object, "capacity")))
        return MPL_OK;
    return get_number(in, object, whose, "capacity", INT64_MAX, out);
}

static mpl_status read_list(const reader *in, const char *key, json_t **out)
{
    *out = json_object_get(in->root, key);
    if (!json_is_array(*out))
        return MPL_REFUSE(in->ctx, "%s: '%s' is missing or no list", in->path, key);
    if (json_array_size(*out) >= MPL_NONE / 4)
        return MPL_REFUSE(in->ctx, "%s: '%s' has more than 2^30 entries", in->path, key);
    return MPL_OK;
}

/* An array of n numbers, each at most most[i]. */
static mpl_status read_row(const reader *in, const json_t *row, const char *what, size_t n,
                           const uint64_t *most, uint64_t *out)
{
    if (!json_is_array(row) || json_array_size(row) != n)
        return MPL_REFUSE(in->ctx, "%s: an entry of '%s' is no list of %zu numbers", in->path, what,
                          n);
    for (size_t i = 0; i < n; i++)
        MPL_PASS(read_number(in, json_array_get(row, i), what, most[i], &out[i]));
    return MPL_OK;
}

static mpl_status read_head(reader *in)
{
    const char *kind = json_string_value(json_object_get(in->root, "kind"));
    uint32_t schema = 0;

    if (!json_is_object(in->root) || kind == NULL || strcmp(kind, "plan") != 0)
        return MPL_REFUSE(in->ctx, "%s: no plan file: 'kind' is not \"plan\"", in->path);
    MPL_PASS(get_u32(in, in->root, "", "schema", UINT32_MAX, &schema));
    if (schema != SCHEMA)
        return MPL_REFUSE(in->ctx, "%s: schema %u; this memplan reads %u", in->path, schema,
                          SCHEMA);
    return MPL_OK;
}

static mpl_status read_pools(reader *in, const json_t *list)
{
    uint32_t n = (uint32_t)json_array_size(list);
    mpl_problem *p = in->p;

    if (n == 0)
        return MPL_REFUSE(in->ctx, "%s: 'pools' is empty", in->path);
    mpl_free(in->ctx, p->pool_name[0]);
    p->pool_name[0] = NULL;
    MPL_PASS(mpl_realloc_bytes(in->ctx, (void **)&p->pool_name, 1, n, sizeof *p->pool_name));
    MPL_PASS(
        mpl_realloc_bytes(in->ctx, (void **)&p->pool_capacity, 1, n, sizeof *p->pool_capacity));
    p->n_pools = n;
    for (uint32_t i = 0; i < n; i++) {
        const json_t *pool = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(pool, "name"));

        if (name == NULL)
            return MPL_REFUSE(in->ctx, "%s: pool %u has no name", in->path, i);
        MPL_PASS((p->pool_name[i] = mpl_strdup(in->ctx, name)) != NULL ? MPL_OK : MPL_EMEM);
        MPL_PASS(get_capacity(in, pool, "a pool's ", &p->pool_capacity[i]));
    }
    return MPL_OK;
}

static mpl_status read_memories(reader *in)
{
    mpl_spread *spread = &in->plan->spread;
    json_t *list;

    if (json_object_get(in->root, "memories") == NULL)
        return MPL_OK;
    MPL_PASS(read_list(in, "memories", &list));
    if (json_array_size(list) == 0)
        return MPL_REFUSE(in->ctx, "%s: 'memories' is empty", in->path);
    MPL_PASS(mpl_plan_spread(in->ctx, in->plan, (uint32_t)json_array_size(list)));
    for (uint32_t k = 0; k < spread->n; k++) {
        const json_t *memory = json_array_get(list, k);

        MPL_PASS(get_capacity(in, memory, "a memory's ", &spread->capacity[k]));
        MPL_PASS(get_number(in, memory, "a memory's ", "price", INT64_MAX, &spread->price[k]));
    }
    MPL_PASS(get_number(in, in->root, "", "cost", INT64_MAX, &spread->cost));
    return get_number(in, in->root, "", "cost_bound", INT64_MAX, &spread->cost_bound);
}

static mpl_status read_buffer(reader *in, mpl_buffer b, const json_t *one, bool steps)
{
    mpl_problem *p = in->p;
    const json_t *name = json_object_get(one, "name"), *block = json_object_get(one, "block");
    uint32_t id = 0;

    MPL_PASS(get_u32(in, one, "a buffer's ", "id", p->n - 1, &id));
    if (id != b)
        return MPL_REFUSE(in->ctx, "%s: buffer %u stands in place %u; ids rise from 0", in->path,
                          id, b);
    if (json_is_string(name))
        MPL_PASS((p->buffer_name[b] = mpl_strdup(in->ctx, json_string_value(name))) != NULL
                     ? MPL_OK
                     : MPL_EMEM);
    MPL_PASS(get_number(in, one, "a buffer's ", "bytes", INT64_MAX, &p->bytes[b]));
    MPL_PASS(get_u32(in, one, "a buffer's ", "align", UINT32_MAX, &p->align[b]));
    MPL_PASS(get_u32(in, one, "a buffer's ", "pool", p->n_pools - 1, &p->pool[b]));
    if (steps) {
        MPL_PASS(get_u32(in, one, "a buffer's ", "birth", UINT32_MAX, &p->birth[b]));
        MPL_PASS(get_u32(in, one, "a buffer's ", "death", UINT32_MAX, &p->death[b]));
    }
    MPL_PASS(get_number(in, one, "a buffer's ", "offset", INT64_MAX, &in->plan->offset[b]));
    if (json_is_null(block) != (in->plan->block == NULL))
        return MPL_REFUSE(in->ctx, "%s: some buffers have a block and some have none", in->path);
    if (in->plan->block != NULL)
        MPL_PASS(get_u32(in, one, "a buffer's ", "block", p->n - 1, &in->plan->block[b]));
    if (in->plan->spread.n > 0)
        MPL_PASS(get_u32(in, one, "a buffer's ", "memory", in->plan->spread.n - 1,
                         &in->plan->spread.memory[b]));
    return MPL_OK;
}

/* The gaps of all lifetimes. Only buffers with gaps name them. */
static mpl_status read_gaps(reader *in, const json_t *list)
{
    mpl_problem *p = in->p;
    size_t n = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        n += json_array_size(json_object_get(json_array_get(list, b), "gaps"));
    if (n == 0)
        return MPL_OK;
    if (n >= MPL_NONE / 4)
        return MPL_REFUSE(in->ctx, "%s: lifetimes have more than 2^30 gaps", in->path);
    MPL_PASS(mpl_new(in->ctx, p->gap_begin, p->n + (size_t)1));
    MPL_PASS(mpl_new_each(in->ctx, n, p->gap_from, p->gap_to));
    for (mpl_buffer b = 0; b < p->n; b++) {
        const json_t *gaps = json_object_get(json_array_get(list, b), "gaps");
        uint32_t at = p->gap_begin[b];

        for (size_t i = 0; i < json_array_size(gaps); i++, at++) {
            uint64_t row[2];

            MPL_PASS(read_row(in, json_array_get(gaps, i), "gaps", 2,
                              (const uint64_t[]){UINT32_MAX, UINT32_MAX}, row));
            p->gap_from[at] = (uint32_t)row[0];
            p->gap_to[at] = (uint32_t)row[1];
        }
        p->gap_begin[b + 1] = at;
    }
    return MPL_OK;
}

static mpl_status read_buffers(reader *in, const json_t *list, bool steps)
{
    MPL_PASS(mpl_new(in->ctx, in->p->buffer_name, in->p->n));
    if (in->p->n > 0 && !json_is_null(json_object_get(json_array_get(list, 0), "block")))
        MPL_PASS(mpl_new(in->ctx, in->plan->block, in->p->n));
    for (mpl_buffer b = 0; b < in->p->n; b++)
        MPL_PASS(read_buffer(in, b, json_array_get(list, b), steps));
    return read_gaps(in, list);
}

static mpl_status read_families(reader *in)
{
    mpl_problem *p = in->p;
    json_t *list;
    size_t n;

    MPL_PASS(read_list(in, "inside", &list));
    n = json_array_size(list);
    if (n == 0)
        return MPL_OK;
    MPL_PASS(mpl_new_each(in->ctx, p->n, p->inside, p->inside_at));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->inside[b] = b;
    for (size_t i = 0; i < n; i++) {
        uint64_t row[3];

        MPL_PASS(read_row(in, json_array_get(list, i), "inside", 3,
                          (const uint64_t[]){UINT32_MAX, UINT32_MAX, INT64_MAX}, row));
        if (row[0] >= p->n || row[1] >= p->n || row[0] == row[1] || p->inside[row[0]] != row[0])
            return MPL_REFUSE(in->ctx,
                              "%s: entry %zu of 'inside' puts buffer %" PRIu64
                              " into buffer %" PRIu64 " of %u, or "
                              "anew",
                              in->path, i, row[0], row[1], p->n);
        p->inside[row[0]] = (mpl_buffer)row[1];
        p->inside_at[row[0]] = row[2];
    }
    return MPL_OK;
}

static mpl_status read_pairs(reader *in)
{
    mpl_problem *p = in->p;
    json_t *list;
    uint32_t n;

    MPL_PASS(read_list(in, "in_place", &list));
    n = (uint32_t)json_array_size(list);
    MPL_PASS(mpl_new_each(in->ctx, n, p->in_place_in, p->in_place_out, p->in_place_step));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t row[3];

        MPL_PASS(read_row(in, json_array_get(list, i), "in_place", 3,
                          (const uint64_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX}, row));
        p->in_place_in[i] = (mpl_buffer)row[0];
        p->in_place_out[i] = (mpl_buffer)row[1];
        p->in_place_step[i] = (uint32_t)row[2];
    }
    p->n_in_place = n;
    MPL_PASS(read_families(in));
    MPL_PASS(read_list(in, "bindings", &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_object_get(json_array_get(list, i), "value")) ||
            !json_is_object(json_object_get(json_array_get(list, i), "at")))
            return MPL_REFUSE(in->ctx,
                              "%s: entry %zu of 'bindings' names no value and where it is at",
                              in->path, i);
    return MPL_OK;
}

static mpl_status read_fixed(reader *in)
{
    mpl_problem *p = in->p;
    json_t *list;

    if (json_is_null(json_object_get(in->root, "fixed")))
        return MPL_OK;
    MPL_PASS(read_list(in, "fixed", &list));
    MPL_PASS(mpl_new(in->ctx, p->fixed, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->fixed[b] = MPL_UNFIXED;
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t row[2];

        MPL_PASS(read_row(in, json_array_get(list, i), "fixed", 2,
                          (const uint64_t[]){UINT32_MAX, INT64_MAX}, row));
        if (row[0] >= p->n)
            return MPL_REFUSE(in->ctx, "%s: 'fixed' names buffer %" PRIu64 " of %u", in->path,
                              row[0], p->n);
        p->fixed[row[0]] = row[1];
    }
    return MPL_OK;
}

/* The member `key` of the constraints: rows of n numbers. */
static mpl_status read_rows(reader *in, const char *key, uint32_t n, uint32_t *n_rows,
                            uint64_t (**rows)[4])
{
    const json_t *list = json_object_get(json_object_get(in->root, "limits"), key);
    static const uint64_t most[4] = {INT64_MAX, INT64_MAX, UINT32_MAX, UINT32_MAX};

    if (!json_is_array(list) || json_array_size(list) > UINT32_MAX)
        return MPL_REFUSE(in->ctx, "%s: the limits' '%s' is no list", in->path, key);
    *n_rows = (uint32_t)json_array_size(list);
    MPL_PASS(mpl_new(in->ctx, *rows, *n_rows));
    for (uint32_t i = 0; i < *n_rows; i++)
        MPL_PASS(read_row(in, json_array_get(list, i), key, n, most, (*rows)[i]));
    return MPL_OK;
}

static mpl_status read_two(reader *in, const char *key, uint32_t *n, mpl_buffer (**two)[2])
{
    mpl_status st = MPL_OK;
    uint64_t(*rows)[4] = NULL;

    MPL_TRY(read_rows(in, key, 2, n, &rows));
    MPL_TRY(mpl_new(in->ctx, *two, *n));
    for (uint32_t i = 0; i < *n; i++)
        for (int k = 0; k < 2; k++)
            (*two)[i][k] = (mpl_buffer)mpl_min_u64(rows[i][k], MPL_NONE);
out:
    mpl_free(in->ctx, rows);
    return st;
}

static mpl_status read_constraints(reader *in)
{
    mpl_status st = MPL_OK;
    const json_t *root = json_object_get(in->root, "limits");
    mpl_constraints *constraints = NULL;
    uint64_t(*rows)[4] = NULL;

    if (root == NULL || json_is_null(root))
        return MPL_OK;
    MPL_TRY(mpl_new(in->ctx, constraints, 1));
    in->p->constraints = constraints;
    MPL_TRY(get_number(in, root, "the limits' ", "chunk", INT64_MAX, &constraints->chunk_bytes));
    MPL_TRY(read_two(in, "apart", &constraints->n_apart, &constraints->apart));
    MPL_TRY(read_two(in, "together", &constraints->n_together, &constraints->together));
    MPL_TRY(read_rows(in, "reserved", 4, &constraints->n_reserved, &rows));
    MPL_TRY(mpl_new(in->ctx, constraints->reserved, constraints->n_reserved));
    for (uint32_t i = 0; i < constraints->n_reserved; i++)
        constraints->reserved[i] =
            (mpl_reserved){rows[i][0], rows[i][1], (uint32_t)rows[i][2], (uint32_t)rows[i][3]};
out:
    mpl_free(in->ctx, rows);
    return st;
}

static mpl_status read_before(reader *in, const json_t *list)
{
    mpl_status st = MPL_OK;
    mpl_before *before = NULL;
    size_t n = json_array_size(list);
    uint32_t *from = NULL, *to = NULL;

    MPL_TRY(mpl_new_each(in->ctx, n, from, to));
    for (size_t i = 0; i < n; i++) {
        uint64_t arc[2];

        MPL_TRY(read_row(in, json_array_get(list, i), "before", 2,
                         (const uint64_t[]){UINT32_MAX, UINT32_MAX}, arc));
        from[i] = (uint32_t)arc[0];
        to[i] = (uint32_t)arc[1];
    }
    st = mpl_before_from_arcs(in->ctx, in->p->n, n, from, to, &before);
    in->p->before = before;
    if (st == MPL_EINPUT)
        MPL_FAIL(in->ctx, MPL_EINPUT, "%.150s: before: %s", in->path, in->ctx->message);
out:
    mpl_free_each(in->ctx, from, to);
    return st;
}

static mpl_status read_claim(reader *in)
{
    const char *claim = json_string_value(json_object_get(in->root, "claim"));
    int c = MPL_UNKNOWN;

    while (c <= MPL_INFEASIBLE &&
           (claim == NULL || strcmp(claim, mpl_claim_name((mpl_claim)c)) != 0))
        c++;
    if (c > MPL_INFEASIBLE)
        return MPL_REFUSE(in->ctx, "%s: 'claim' is none of unknown, feasible, optimal, infeasible",
                          in->path);
    in->plan->claim = (mpl_claim)c;
    return get_number(in, in->root, "", "bound_bytes", INT64_MAX, &in->plan->bound_bytes);
}

static mpl_status read_refutation(reader *in, const json_t *certificate)
{
    mpl_refutation *proof = &in->plan->refutation;
    const json_t *steps = json_object_get(certificate, "steps");

    if (!json_is_string(steps) || strlen(json_string_value(steps)) != json_string_length(steps))
        return MPL_REFUSE(in->ctx, "%s: the certificate's 'steps' are missing or no text",
                          in->path);
    MPL_PASS(
        get_u32(in, certificate, "the certificate's ", "pool", in->p->n_pools - 1, &proof->pool));
    MPL_PASS(read_number(in, json_object_get(certificate, "within"), "the certificate's 'within'",
                         INT64_MAX, &proof->within));
    return (proof->steps = mpl_strdup(in->ctx, json_string_value(steps))) != NULL ? MPL_OK
                                                                                  : MPL_EMEM;
}

static mpl_status read_certificate(reader *in)
{
    const json_t *certificate = json_object_get(in->root, "certificate");
    const json_t *list = json_object_get(certificate, "buffers");
    const char *kind = json_string_value(json_object_get(certificate, "kind"));

    if (certificate == NULL || json_is_null(certificate))
        return MPL_OK;
    if (kind != NULL && strcmp(kind, "refutation") == 0)
        return read_refutation(in, certificate);
    if (kind == NULL || strcmp(kind, "clique") != 0 || !json_is_array(list) ||
        json_array_size(list) == 0 || json_array_size(list) > in->p->n)
        return MPL_REFUSE(
            in->ctx,
            "%s: 'certificate' should be null, {\"kind\": \"clique\", \"buffers\": [id, ..]}, "
            "or {\"kind\": "
            "\"refutation\", \"pool\": k, \"within\": bytes, \"steps\": \"..\"}",
            in->path);
    MPL_PASS(mpl_new(in->ctx, in->plan->witness, json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint64_t id = 0;

        MPL_PASS(read_number(in, json_array_get(list, i), "certificate", UINT32_MAX, &id));
        in->plan->witness[i] = (mpl_buffer)id;
    }
    in->plan->n_witness = (uint32_t)json_array_size(list);
    return MPL_OK;
}

static mpl_status check_hash(const reader *in)
{
    const char *hash = json_string_value(json_object_get(in->root, "problem_hash"));
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, mpl_problem_hash(in->p));
    if (hash == NULL || strcmp(hash, text) != 0)
        return MPL_REFUSE(
            in->ctx,
            "%s: problem_hash is %.20s, and the problem in it has %s: the file was changed",
            in->path, hash != NULL ? hash : "missing", text);
    return MPL_OK;
}

static mpl_status read_problem(reader *in)
{
    const char *name = json_string_value(json_object_get(in->root, "name"));
    const json_t *before = json_object_get(in->root, "before");
    json_t *buffers, *pools;

    MPL_PASS(read_list(in, "buffers", &buffers));
    MPL_PASS(read_list(in, "pools", &pools));
    MPL_PASS(mpl_problem_new(in->ctx, name != NULL ? name : in->path,
                             (uint32_t)json_array_size(buffers), &in->p));
    MPL_PASS(read_pools(in, pools));
    MPL_PASS(mpl_plan_new(in->ctx, in->p, &in->plan));
    MPL_PASS(read_memories(in));
    MPL_PASS(get_u32(in, in->root, "", "n_steps", UINT32_MAX, &in->p->n_steps));
    MPL_PASS(read_buffers(in, buffers, json_is_null(before)));
    MPL_PASS(read_pairs(in));
    MPL_PASS(read_fixed(in));
    MPL_PASS(read_constraints(in));
    if (!json_is_null(before)) {
        json_t *list;

        MPL_PASS(read_list(in, "before", &list));
        MPL_PASS(read_before(in, list));
    }
    return MPL_OK;
}

/* Names the file in the message of a broken problem. */
static mpl_status check_problem(const reader *in)
{
    mpl_status st = mpl_problem_check(in->ctx, in->p);

    return st != MPL_EINPUT ? st : MPL_REFUSE(in->ctx, "%.150s: %s", in->path, in->ctx->message);
}

/* Keeps the fields that are not the plan's own, as text. */
static mpl_status keep_fields(const reader *in, char **fields_json)
{
    static const char *const own[] = {"schema",  "kind",     "name",        "problem_hash",
                                      "n_steps", "claim",    "bound_bytes", "planned_bytes",
                                      "pools",   "buffers",  "before",      "in_place",
                                      "inside",  "fixed",    "bindings",    "certificate",
                                      "cost",    "memories", "cost_bound",  "limits"};
    size_t n;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], "bindings") != 0 ||
            json_array_size(json_object_get(in->root, own[i])) == 0)
            json_object_del(in->root, own[i]);
    n = json_dumpb(in->root, NULL, 0, JSON_COMPACT);
    MPL_PASS(n > 0 ? MPL_OK : mpl_json_no_memory(in->ctx));
    MPL_PASS(mpl_new(in->ctx, *fields_json, n + 1));
    return json_dumpb(in->root, *fields_json, n, JSON_COMPACT) == n ? MPL_OK
                                                                    : mpl_json_no_memory(in->ctx);
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
