/* plan_choices.c -- `op_order`, `shared`, `copied` and `streams` of a plan file. See
 * plan_choices.h. */
#include "planners/plan/plan_choices.h"

#include <stdlib.h>

#include "graphs/problem/alias.h"
#include "planners/plan/plan_json.h"

void mpl_plan_choices_fini(mpl_ctx *ctx, mpl_plan_choices *choices)
{
    mpl_free_each(ctx, choices->order, choices->shared, choices->copied);
    *choices = (mpl_plan_choices){0};
}

/* ---- writing ---- */

/* Of ids of operations, or numbers of streams. */
static json_t *order_of(uint32_t n_ops, const uint32_t *order)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n_ops; i++)
        list = mpl_json_push(list, mpl_json_number(order[i]));
    return list;
}

/* The ids of the operations that are marked with at least `least`. */
static json_t *set_of(uint32_t n_ops, const uint8_t *marked, uint8_t least)
{
    json_t *list = json_array();

    for (mpl_op op = 0; op < n_ops; op++)
        if (marked[op] >= least)
            list = mpl_json_push(list, mpl_json_number(op));
    return list;
}

static mpl_status parse(mpl_ctx *ctx, const char *text, json_t **out)
{
    return mpl_json_parse(ctx, "the fields of a plan file", text, strlen(text),
                          JSON_REJECT_DUPLICATES, out);
}

/* Replaces *fields_json by the text of root (NULL: memory ran out). */
static mpl_status replace(mpl_ctx *ctx, const json_t *root, char **fields_json)
{
    mpl_status st = MPL_OK;
    char *dumped = NULL, *text = NULL;

    MPL_TRY(root != NULL ? MPL_OK : mpl_json_no_memory(ctx));
    MPL_TRY((dumped = json_dumps(root, JSON_COMPACT)) != NULL ? MPL_OK : mpl_json_no_memory(ctx));
    MPL_TRY((text = mpl_strdup(ctx, dumped)) != NULL ? MPL_OK : MPL_EMEM);
    mpl_free(ctx, *fields_json);
    *fields_json = text;
out:
    free(dumped);
    return st;
}

mpl_status mpl_plan_add_choices(mpl_ctx *ctx, uint32_t n_ops, const mpl_plan_choices *choices,
                                char **fields_json)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL;

    if (choices->order == NULL)
        goto out;
    MPL_TRY(parse(ctx, *fields_json, &root));
    root = mpl_json_put(root, "op_order", order_of(n_ops, choices->order));
    root = root != NULL ? mpl_json_put(root, "shared", set_of(n_ops, choices->shared, 1)) : NULL;
    if (root != NULL && memchr(choices->shared, MPL_SHARE_BOXES, n_ops) != NULL)
        root = mpl_json_put(root, "boxes", set_of(n_ops, choices->shared, MPL_SHARE_BOXES));
    root = root != NULL ? mpl_json_put(root, "copied", set_of(n_ops, choices->copied, 1)) : NULL;
    MPL_TRY(replace(ctx, root, fields_json));
out:
    json_decref(root);
    return st;
}

mpl_status mpl_plan_add_streams(mpl_ctx *ctx, const mpl_streams *streams, char **fields_json)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL, *made = NULL;

    if (streams == NULL)
        goto out;
    MPL_TRY(parse(ctx, *fields_json, &root));
    made = mpl_json_put(json_object(), "n", mpl_json_number(streams->n));
    made = made != NULL
               ? mpl_json_put(made, "rule", json_string(mpl_stream_rule_name(streams->rule)))
               : NULL;
    made = made != NULL ? mpl_json_put(made, "of", order_of(streams->n_ops, streams->op_stream))
                        : NULL;
    root = mpl_json_put(root, "streams", made);
    MPL_TRY(replace(ctx, root, fields_json));
out:
    json_decref(root);
    return st;
}

/* ---- reading ---- */

/* An id below n_ops in place i of a list. */
static mpl_status read_op(mpl_ctx *ctx, const char *path, const json_t *list, const char *key,
                          size_t i, uint32_t n_ops, mpl_op *out)
{
    const json_t *item = json_array_get(list, i);

    if (!json_is_integer(item) || json_integer_value(item) < 0 ||
        json_integer_value(item) >= (json_int_t)n_ops)
        return MPL_REFUSE(
            ctx, "%.150s: entry %zu of '%s' is no operation of the graph, which has %" PRIu32, path,
            i, key, n_ops);
    *out = (mpl_op)json_integer_value(item);
    return MPL_OK;
}

static mpl_status read_order(mpl_ctx *ctx, const char *path, const json_t *list, uint32_t n_ops,
                             mpl_op *order)
{
    mpl_status st = MPL_OK;
    uint8_t *seen = NULL;

    if (!json_is_array(list) || json_array_size(list) != n_ops)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%.150s: 'op_order' is no list of the graph's %" PRIu32 " operations", path,
                 n_ops);
    MPL_TRY(mpl_new(ctx, seen, n_ops));
    for (uint32_t i = 0; i < n_ops; i++) {
        MPL_TRY(read_op(ctx, path, list, "op_order", i, n_ops, &order[i]));
        if (seen[order[i]]++ != 0)
            MPL_FAIL(ctx, MPL_EINPUT, "%.150s: 'op_order' lists operation %" PRIu32 " twice", path,
                     order[i]);
    }
out:
    mpl_free(ctx, seen);
    return st;
}

/* Marks the operations of a list with `as`. */
static mpl_status read_set(mpl_ctx *ctx, const char *path, const json_t *list, const char *key,
                           uint32_t n_ops, uint8_t as, uint8_t *marked)
{
    mpl_op op = 0, least = 0;

    if (!json_is_array(list))
        return MPL_REFUSE(ctx, "%.150s: '%s' is missing or no list, beside 'op_order'", path, key);
    for (size_t i = 0; i < json_array_size(list); i++, least = op + 1) {
        MPL_PASS(read_op(ctx, path, list, key, i, n_ops, &op));
        if (op < least)
            return MPL_REFUSE(ctx, "%.150s: '%s' lists operation %" PRIu32 " out of turn", path,
                              key, op);
        marked[op] = as;
    }
    return MPL_OK;
}

mpl_status mpl_plan_read_choices(mpl_ctx *ctx, const char *path, const char *fields_json,
                                 uint32_t n_ops, mpl_plan_choices *out)
{
    mpl_status st = MPL_OK;
    mpl_plan_choices made = {0};
    json_t *root = NULL;
    const json_t *order, *boxes;

    MPL_TRY(parse(ctx, fields_json != NULL ? fields_json : "{}", &root));
    if ((order = json_object_get(root, "op_order")) != NULL) {
        MPL_TRY(mpl_new_each(ctx, n_ops, made.order, made.shared, made.copied));
        MPL_TRY(read_order(ctx, path, order, n_ops, made.order));
        MPL_TRY(
            read_set(ctx, path, json_object_get(root, "shared"), "shared", n_ops, 1, made.shared));
        if ((boxes = json_object_get(root, "boxes")) != NULL)
            MPL_TRY(read_set(ctx, path, boxes, "boxes", n_ops, MPL_SHARE_BOXES, made.shared));
        MPL_TRY(
            read_set(ctx, path, json_object_get(root, "copied"), "copied", n_ops, 1, made.copied));
    }
    *out = made;
    made = (mpl_plan_choices){0};
out:
    mpl_plan_choices_fini(ctx, &made);
    json_decref(root);
    return st;
}

/* The stream of each operation, from the list `of`. */
static mpl_status read_stream_of(mpl_ctx *ctx, const char *path, const json_t *list,
                                 const mpl_graph *g, uint32_t *op_stream)
{
    if (!json_is_array(list) || json_array_size(list) != g->n_ops)
        return MPL_REFUSE(ctx,
                          "%.150s: 'streams' does not cover the graph's %" PRIu32
                          " operations: 'of' is no list of as many",
                          path, g->n_ops);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        const json_t *item = json_array_get(list, op);

        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) >= (json_int_t)g->n_ops)
            return MPL_REFUSE(
                ctx, "%.150s: 'streams': operation %" PRIu32 " is on no stream from 0 to %" PRIu32,
                path, op, g->n_ops - 1);
        op_stream[op] = (uint32_t)json_integer_value(item);
    }
    return MPL_OK;
}

mpl_status mpl_plan_read_streams(mpl_ctx *ctx, const char *path, const char *fields_json,
                                 const mpl_graph *g, mpl_streams **out)
{
    mpl_status st = MPL_OK;
    mpl_streams *made = NULL;
    json_t *root = NULL;
    const json_t *streams, *n, *rule;

    MPL_TRY(parse(ctx, fields_json != NULL ? fields_json : "{}", &root));
    if ((streams = json_object_get(root, "streams")) == NULL)
        goto out;
    n = json_object_get(streams, "n");
    rule = json_object_get(streams, "rule");
    MPL_TRY(mpl_new(ctx, made, 1));
    if (!json_is_integer(n) || json_integer_value(n) < 1 ||
        json_integer_value(n) > (json_int_t)UINT32_MAX || !json_is_string(rule) ||
        !mpl_stream_rule_find(json_string_value(rule), &made->rule))
        MPL_FAIL(ctx, MPL_EINPUT, "%.150s: 'streams' has no number 'n', or no 'rule' of %s", path,
                 mpl_stream_rule_names());
    made->n_ops = g->n_ops;
    made->n = (uint32_t)json_integer_value(n);
    for (mpl_op op = 0; op < g->n_ops; op++)
        made->n_units += g->op_block[op] == 0;
    MPL_TRY(mpl_new(ctx, made->op_stream, g->n_ops));
    MPL_TRY(read_stream_of(ctx, path, json_object_get(streams, "of"), g, made->op_stream));
    MPL_TRY(mpl_streams_check(ctx, g, made));
    *out = made, made = NULL;
out:
    mpl_streams_free(ctx, made);
    json_decref(root);
    return st;
}
