/* residency_file.c -- plans of residency in time as self-contained JSON files. See residency.h.
 *
 * {"schema":1, "kind":"residency", fields of the row, "residency":{..}}: prices and sizes;
 * `buffers` {name, bytes, uses: [{step, writes, memory, offset, kept}]}; `moves` {step, buffer,
 * from, from_offset, to, to_offset, bytes}, in order; `step_prices`, which prove cost_bound unless
 * it is of a complete `search`, or of a mixed integer `program`. With a `bandwidth`:
 * `step_ns`, `stall_ns`, `stall_bound_ns`, and of each move `from_step` and `start_ns`. */
#include "graphs/core/file.h"
#include "planners/plan/plan_json.h"
#include "planners/plan/residency.h"

#include <stdlib.h>

static const char *const memory_name[] = {"slow", "fast"};

/* ---- writing ---- */

static json_t *uses_of(const mpl_residency_problem *p, const mpl_residency_plan *plan, mpl_buffer b)
{
    json_t *list = json_array();

    for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
        list = mpl_json_push(
            list, json_pack("{s:I, s:b, s:s, s:o, s:b}", "step", (json_int_t)p->at[i], "writes",
                            p->writes[i], "memory", memory_name[plan->fast[i] != 0], "offset",
                            mpl_json_number(plan->place[i]), "kept", plan->kept[i]));
    return list;
}

static json_t *move_of(const mpl_residency_problem *p, const mpl_move *move)
{
    json_t *out =
        json_pack("{s:I, s:I, s:s, s:o, s:s, s:o, s:o}", "step", (json_int_t)move->step, "buffer",
                  (json_int_t)move->buffer, "from", memory_name[!move->to_fast], "from_offset",
                  mpl_json_number(move->to_fast ? move->slow_at : move->fast_at), "to",
                  memory_name[move->to_fast != 0], "to_offset",
                  mpl_json_number(move->to_fast ? move->fast_at : move->slow_at), "bytes",
                  mpl_json_number(p->bytes[move->buffer]));
    if (p->bandwidth == 0)
        return out;
    out = mpl_json_put(out, "from_step", json_integer((json_int_t)move->from));
    return mpl_json_put(out, "start_ns", mpl_json_number(move->start_ns));
}

static json_t *body_of(const mpl_residency_problem *p, const mpl_residency_plan *plan)
{
    json_t *body =
        json_pack("{s:o, s:I, s:o, s:o, s:o, s:I}", "name", mpl_json_text(p->name), "n_steps",
                  (json_int_t)p->n_steps, "capacity", mpl_json_number(p->capacity), "move_price",
                  mpl_json_number(p->move_price), "slow_price", mpl_json_number(p->slow_price),
                  "align", (json_int_t)p->align);
    json_t *buffers = json_array(), *moves = json_array();

    for (mpl_buffer b = 0; b < p->n; b++)
        buffers = mpl_json_push(
            buffers, json_pack("{s:o, s:o, s:o}", "name", mpl_json_text(p->buffer_name[b]), "bytes",
                               mpl_json_number(p->bytes[b]), "uses", uses_of(p, plan, b)));
    for (uint32_t k = 0; k < plan->n_moves; k++)
        moves = mpl_json_push(moves, move_of(p, &plan->move[k]));
    body = mpl_json_put(body, "buffers", buffers);
    body = mpl_json_put(body, "moves", moves);
    body = mpl_json_put(body, "step_prices", mpl_json_row(p->n_steps, plan->step_price));
    body = mpl_json_put(body, "moved_bytes", mpl_json_number(plan->moved_bytes));
    body = mpl_json_put(body, "slow_used_bytes", mpl_json_number(plan->slow_bytes));
    body = mpl_json_put(body, "cost", mpl_json_number(plan->cost));
    body = mpl_json_put(body, "cost_bound", mpl_json_number(plan->bound));
    body = mpl_json_put(body, "search", json_boolean(plan->searched));
    body = mpl_json_put(body, "program", json_boolean(plan->programmed));
    if (p->bandwidth > 0) {
        body = mpl_json_put(body, "bandwidth", mpl_json_number(p->bandwidth));
        body = mpl_json_put(body, "step_ns", mpl_json_row(p->n_steps, p->step_ns));
        body = mpl_json_put(body, "stall_ns", mpl_json_number(plan->stall_ns));
        body = mpl_json_put(body, "stall_bound_ns", mpl_json_number(plan->stall_bound));
        body = mpl_json_put(body, "stall_search", json_boolean(plan->stall_searched));
    }
    body = mpl_json_put(body, "fast_bytes", mpl_json_number(plan->fast_bytes));
    return mpl_json_put(body, "slow_bytes", mpl_json_number(plan->slow_arena));
}

mpl_status mpl_residency_write(mpl_ctx *ctx, const char *path, const mpl_residency_problem *p,
                               const mpl_residency_plan *plan, const char *fields_json)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL;

    MPL_TRY(mpl_json_begin(ctx, "residency", fields_json, &root));
    root = mpl_json_put(root, "residency", body_of(p, plan));
    MPL_TRY(root != NULL ? mpl_json_write(ctx, path, root) : mpl_json_no_memory(ctx));
out:
    json_decref(root);
    return st;
}

/* ---- reading ---- */

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    json_t *body;
    mpl_residency_problem *p;
    mpl_residency_plan *plan;
} reader;

static mpl_status get_list(const reader *in, const json_t *object, const char *key, json_t **out)
{
    *out = json_object_get(object, key);
    if (!json_is_array(*out) || json_array_size(*out) >= MPL_NONE / 4)
        return MPL_REFUSE(in->ctx, "%.200s: '%s' is missing or no list", in->path, key);
    return MPL_OK;
}

static mpl_status get_number(const reader *in, const json_t *value, const char *key, uint64_t most,
                             uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most)
        return MPL_REFUSE(in->ctx, "%.200s: '%s' is missing or holds no number from 0 to %" PRIu64,
                          in->path, key, most);
    *out = (uint64_t)json_integer_value(value);
    return MPL_OK;
}

static mpl_status number_of(const reader *in, const json_t *object, const char *key, uint64_t most,
                            uint64_t *out)
{
    return get_number(in, json_object_get(object, key), key, most, out);
}

static mpl_status get_flag(const reader *in, const json_t *object, const char *key, bool *out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_boolean(value))
        return MPL_REFUSE(in->ctx, "%.200s: '%s' is missing, or neither true nor false", in->path,
                          key);
    *out = json_is_true(value);
    return MPL_OK;
}

/* Whether `key` says fast. */
static mpl_status get_memory(const reader *in, const json_t *object, const char *key, bool *fast)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (text == NULL || (strcmp(text, "fast") != 0 && strcmp(text, "slow") != 0))
        return MPL_REFUSE(in->ctx, "%.200s: '%s' is neither fast nor slow", in->path, key);
    *fast = strcmp(text, "fast") == 0;
    return MPL_OK;
}

static mpl_status read_problem(reader *in)
{
    json_t *buffers = NULL, *uses = NULL;
    const char *name = json_string_value(json_object_get(in->body, "name"));
    size_t n_uses = 0, n;
    uint64_t number = 0;

    MPL_PASS(get_list(in, in->body, "buffers", &buffers));
    n = json_array_size(buffers);
    for (size_t b = 0; b < n; b++) {
        MPL_PASS(get_list(in, json_array_get(buffers, b), "uses", &uses));
        n_uses += json_array_size(uses);
    }
    if (n_uses >= MPL_NONE / 4)
        return MPL_REFUSE(in->ctx, "%.200s: too many uses", in->path);
    MPL_PASS(mpl_residency_problem_new(in->ctx, name != NULL ? name : "", (uint32_t)n,
                                       (uint32_t)n_uses, &in->p));
    MPL_PASS(number_of(in, in->body, "n_steps", MPL_NONE / 4, &number));
    in->p->n_steps = (uint32_t)number;
    MPL_PASS(number_of(in, in->body, "align", MPL_NONE / 4, &number));
    in->p->align = (uint32_t)number;
    MPL_PASS(number_of(in, in->body, "capacity", INT64_MAX, &in->p->capacity));
    MPL_PASS(number_of(in, in->body, "move_price", INT64_MAX, &in->p->move_price));
    MPL_PASS(number_of(in, in->body, "slow_price", INT64_MAX, &in->p->slow_price));
    for (size_t b = 0; b < n; b++) {
        const json_t *one = json_array_get(buffers, b);

        name = json_string_value(json_object_get(one, "name"));
        if (name != NULL)
            MPL_PASS(mpl_copy_text(in->ctx, in->p->buffer_name[b], name));
        MPL_PASS(number_of(in, one, "bytes", INT64_MAX, &in->p->bytes[b]));
        in->p->begin[b + 1] =
            in->p->begin[b] + (uint32_t)json_array_size(json_object_get(one, "uses"));
    }
    return MPL_OK;
}

static mpl_status read_uses(reader *in)
{
    json_t *buffers = NULL;

    MPL_PASS(get_list(in, in->body, "buffers", &buffers));
    for (mpl_buffer b = 0; b < in->p->n; b++) {
        const json_t *uses = json_object_get(json_array_get(buffers, b), "uses");

        for (uint32_t i = in->p->begin[b]; i < in->p->begin[b + 1]; i++) {
            const json_t *one = json_array_get(uses, i - in->p->begin[b]);
            bool writes = false, fast = false, kept = false;
            uint64_t step = 0;

            MPL_PASS(number_of(in, one, "step", MPL_NONE / 4, &step));
            MPL_PASS(get_flag(in, one, "writes", &writes));
            MPL_PASS(get_memory(in, one, "memory", &fast));
            MPL_PASS(number_of(in, one, "offset", INT64_MAX, &in->plan->place[i]));
            MPL_PASS(get_flag(in, one, "kept", &kept));
            in->p->at[i] = (uint32_t)step;
            in->p->writes[i] = writes, in->plan->fast[i] = fast, in->plan->kept[i] = kept;
        }
    }
    return MPL_OK;
}

static mpl_status read_moves(reader *in)
{
    json_t *list = NULL;

    MPL_PASS(get_list(in, in->body, "moves", &list));
    in->plan->n_moves = (uint32_t)json_array_size(list);
    MPL_PASS(mpl_new(in->ctx, in->plan->move, in->plan->n_moves));
    for (uint32_t k = 0; k < in->plan->n_moves; k++) {
        const json_t *one = json_array_get(list, k);
        mpl_move *move = &in->plan->move[k];
        uint64_t step = 0, buffer = 0, from = 0, to = 0;
        bool from_fast = false, to_fast = false;

        MPL_PASS(number_of(in, one, "step", MPL_NONE / 4, &step));
        MPL_PASS(number_of(in, one, "buffer", MPL_NONE / 4, &buffer));
        MPL_PASS(get_memory(in, one, "from", &from_fast));
        MPL_PASS(get_memory(in, one, "to", &to_fast));
        MPL_PASS(number_of(in, one, "from_offset", INT64_MAX, &from));
        MPL_PASS(number_of(in, one, "to_offset", INT64_MAX, &to));
        if (from_fast == to_fast)
            return MPL_REFUSE(in->ctx, "%.200s: move %" PRIu32 " stays in one memory", in->path, k);
        *move =
            (mpl_move){.step = (uint32_t)step, .buffer = (mpl_buffer)buffer, .to_fast = to_fast};
        move->from = move->step;
        if (in->p->bandwidth > 0) {
            MPL_PASS(number_of(in, one, "from_step", MPL_NONE / 4, &step));
            MPL_PASS(number_of(in, one, "start_ns", INT64_MAX, &move->start_ns));
            move->from = (uint32_t)step;
        }
        move->fast_at = to_fast ? to : from;
        move->slow_at = to_fast ? from : to;
    }
    return MPL_OK;
}

/* What a file with a bandwidth has besides. */
static mpl_status read_times(reader *in)
{
    json_t *list = NULL;

    if (json_object_get(in->body, "bandwidth") == NULL)
        return MPL_OK;
    MPL_PASS(number_of(in, in->body, "bandwidth", INT64_MAX, &in->p->bandwidth));
    MPL_PASS(get_list(in, in->body, "step_ns", &list));
    if (in->p->bandwidth == 0 || json_array_size(list) != in->p->n_steps)
        return MPL_REFUSE(
            in->ctx, "%.200s: 'step_ns' has not one of each step, or 'bandwidth' is 0", in->path);
    MPL_PASS(mpl_new(in->ctx, in->p->step_ns, in->p->n_steps));
    for (uint32_t s = 0; s < in->p->n_steps; s++)
        MPL_PASS(get_number(in, json_array_get(list, s), "step_ns", INT64_MAX, &in->p->step_ns[s]));
    MPL_PASS(number_of(in, in->body, "stall_ns", INT64_MAX, &in->plan->stall_ns));
    MPL_PASS(number_of(in, in->body, "stall_bound_ns", INT64_MAX, &in->plan->stall_bound));
    return get_flag(in, in->body, "stall_search", &in->plan->stall_searched);
}

static mpl_status read_figures(reader *in)
{
    mpl_residency_plan *plan = in->plan;
    const struct {
        const char *key;
        uint64_t *to;
    } figure[] = {{"moved_bytes", &plan->moved_bytes},
                  {"slow_used_bytes", &plan->slow_bytes},
                  {"cost", &plan->cost},
                  {"cost_bound", &plan->bound},
                  {"fast_bytes", &plan->fast_bytes},
                  {"slow_bytes", &plan->slow_arena}};
    json_t *prices = NULL;

    for (size_t i = 0; i < sizeof figure / sizeof *figure; i++)
        MPL_PASS(number_of(in, in->body, figure[i].key, INT64_MAX, figure[i].to));
    MPL_PASS(get_flag(in, in->body, "search", &plan->searched));
    plan->programmed = json_is_true(json_object_get(in->body, "program"));
    MPL_PASS(get_list(in, in->body, "step_prices", &prices));
    if (json_array_size(prices) != in->p->n_steps)
        return MPL_REFUSE(in->ctx, "%.200s: 'step_prices' has not one of each step", in->path);
    for (uint32_t s = 0; s < in->p->n_steps; s++)
        MPL_PASS(get_number(in, json_array_get(prices, s), "step_prices", INT64_MAX,
                            &plan->step_price[s]));
    return MPL_OK;
}

/* Leaves in *fields what the file has of the row. */
static mpl_status take_fields(mpl_ctx *ctx, json_t *root, char **fields)
{
    char *text;

    json_object_del(root, "residency");
    json_object_del(root, "kind");
    text = json_dumps(root, JSON_COMPACT);
    if (text == NULL || (*fields = mpl_strdup(ctx, text)) == NULL) {
        free(text);
        return mpl_json_no_memory(ctx);
    }
    free(text);
    return MPL_OK;
}

mpl_status mpl_residency_read(mpl_ctx *ctx, const char *path, mpl_residency_problem **p,
                              mpl_residency_plan **plan, char **fields_json)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = path};
    json_t *root = NULL;
    char *text = NULL;
    size_t n = 0;

    MPL_TRY(mpl_file_read(ctx, path, &text, &n));
    MPL_TRY(mpl_json_parse(ctx, path, text, n, JSON_REJECT_DUPLICATES, &root));
    r.body = json_object_get(root, "residency");
    if (!json_is_object(r.body))
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: no plan of residency", path);
    MPL_TRY(read_problem(&r));
    MPL_TRY(mpl_residency_plan_new(ctx, r.p, &r.plan));
    MPL_TRY(read_uses(&r));
    MPL_TRY(read_times(&r));
    MPL_TRY(read_moves(&r));
    MPL_TRY(read_figures(&r));
    MPL_TRY(take_fields(ctx, root, fields_json));
    *p = r.p, *plan = r.plan;
    r.p = NULL, r.plan = NULL;
out:
    mpl_residency_problem_free(ctx, r.p);
    mpl_residency_plan_free(ctx, r.plan);
    json_decref(root);
    mpl_free(ctx, text);
    return st;
}
