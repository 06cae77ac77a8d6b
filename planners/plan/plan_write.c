/* plan_write.c -- plans as self-contained JSON files. See plan.h, and this folder's README for the
 * format. Bytes of a name that are not UTF-8 are written as '?'; names do not enter the hash. */
#include "planners/plan/plan.h"
#include "planners/plan/plan_json.h"

#include <stdlib.h>

static json_t *hash_of(uint64_t hash)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

static json_t *pools_of(const mpl_problem *p, const mpl_plan *plan)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < p->n_pools; i++)
        list =
            mpl_json_push(list, json_pack("{s:o, s:o, s:o}", "name", mpl_json_text(p->pool_name[i]),
                                          "bytes", mpl_json_number(plan->pool_bytes[i]), "capacity",
                                          mpl_json_number(p->pool_capacity[i])));
    return list;
}

/* The memories of a spread pool 0. */
static json_t *memories_of(const mpl_spread *spread)
{
    json_t *list = json_array();

    for (uint32_t k = 0; k < spread->n; k++)
        list = mpl_json_push(list, json_pack("{s:o, s:o, s:o}", "bytes",
                                             mpl_json_number(spread->bytes[k]), "capacity",
                                             mpl_json_number(spread->capacity[k]), "price",
                                             mpl_json_number(spread->price[k])));
    return list;
}

/* The gaps of a lifetime: [[from, to], ..]. */
static json_t *gaps_of(const mpl_problem *p, mpl_buffer b)
{
    json_t *list = json_array();

    for (uint32_t i = p->gap_begin[b]; i < p->gap_begin[b + 1]; i++)
        list = mpl_json_push(list, mpl_json_row(2, (uint64_t[]){p->gap_from[i], p->gap_to[i]}));
    return list;
}

static json_t *buffer_of(const mpl_problem *p, const mpl_plan *plan, mpl_buffer b)
{
    bool steps = p->before == NULL;
    json_t *one = json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", mpl_json_number(b), "name",
                            mpl_json_text(p->buffer_name != NULL ? p->buffer_name[b] : NULL),
                            "bytes", mpl_json_number(p->bytes[b]), "align",
                            mpl_json_number(p->align[b]), "pool", mpl_json_number(p->pool[b]));

    if (plan->spread.n > 0)
        one = mpl_json_put(one, "memory", mpl_json_number(plan->spread.memory[b]));
    one = mpl_json_put(one, "birth", steps ? mpl_json_number(p->birth[b]) : json_null());
    one = mpl_json_put(one, "death", steps ? mpl_json_number(p->death[b]) : json_null());
    if (p->gap_begin != NULL && p->gap_begin[b] < p->gap_begin[b + 1])
        one = mpl_json_put(one, "gaps", gaps_of(p, b));
    one = mpl_json_put(one, "offset", mpl_json_number(plan->offset[b]));
    return mpl_json_put(one, "block",
                        plan->block != NULL ? mpl_json_number(plan->block[b]) : json_null());
}

static json_t *buffers_of(const mpl_problem *p, const mpl_plan *plan)
{
    json_t *list = json_array();

    for (mpl_buffer b = 0; b < p->n; b++)
        list = mpl_json_push(list, buffer_of(p, plan, b));
    return list;
}

/* The partial order; null: lifetimes decide conflicts. */
static json_t *before_of(const mpl_problem *p)
{
    json_t *list = p->before != NULL ? json_array() : json_null();

    for (mpl_buffer a = 0; p->before != NULL && a < p->n; a++)
        for (uint32_t i = p->before->red_begin[a]; i < p->before->red_begin[a + 1]; i++)
            list = mpl_json_push(list, mpl_json_row(2, (uint64_t[]){a, p->before->red_item[i]}));
    return list;
}

static json_t *pairs_of(const mpl_problem *p)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < p->n_in_place; i++)
        list =
            mpl_json_push(list, mpl_json_row(3, (uint64_t[]){p->in_place_in[i], p->in_place_out[i],
                                                             p->in_place_step[i]}));
    return list;
}

static json_t *families_of(const mpl_problem *p)
{
    json_t *list = json_array();

    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        if (p->inside[b] != b)
            list = mpl_json_push(list,
                                 mpl_json_row(3, (uint64_t[]){b, p->inside[b], p->inside_at[b]}));
    return list;
}

static json_t *fixed_of(const mpl_problem *p)
{
    json_t *list = p->fixed != NULL ? json_array() : json_null();

    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED)
            list = mpl_json_push(list, mpl_json_row(2, (uint64_t[]){b, p->fixed[b]}));
    return list;
}

static json_t *two_of(uint32_t n, mpl_buffer (*two)[2])
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        list = mpl_json_push(list, mpl_json_row(2, (uint64_t[]){two[i][0], two[i][1]}));
    return list;
}

static json_t *constraints_of(const mpl_constraints *constraints)
{
    json_t *root = json_object(), *list = json_array();

    for (uint32_t i = 0; i < constraints->n_reserved; i++) {
        const mpl_reserved *reserved = &constraints->reserved[i];

        list = mpl_json_push(list, mpl_json_row(4, (uint64_t[]){reserved->from, reserved->to,
                                                                reserved->birth, reserved->death}));
    }
    root = mpl_json_put(root, "reserved", list);
    root = mpl_json_put(root, "apart", two_of(constraints->n_apart, constraints->apart));
    root = mpl_json_put(root, "together", two_of(constraints->n_together, constraints->together));
    return mpl_json_put(root, "chunk", mpl_json_number(constraints->chunk_bytes));
}

/* The refutation or clique that proves the bound, or null. */
static json_t *certificate_of(const mpl_plan *plan)
{
    const mpl_refutation *proof = &plan->refutation;
    json_t *list;

    if (proof->steps != NULL)
        return json_pack("{s:s, s:o, s:o, s:s}", "kind", "refutation", "pool",
                         mpl_json_number(proof->pool), "within", mpl_json_number(proof->within),
                         "steps", proof->steps);
    if (plan->n_witness == 0)
        return json_null();
    list = json_array();
    for (uint32_t i = 0; i < plan->n_witness; i++)
        list = mpl_json_push(list, mpl_json_number(plan->witness[i]));
    return json_pack("{s:s, s:o}", "kind", "clique", "buffers", list);
}

/* Adds what a plan file says to the caller's fields, of which it overwrites those of its names. */
static json_t *plan_of(const mpl_problem *p, const mpl_plan *plan, json_t *root)
{
    const mpl_spread *spread = &plan->spread;

    root = mpl_json_put(root, "name", mpl_json_text(p->name));
    root = mpl_json_put(root, "problem_hash", hash_of(mpl_problem_hash(p)));
    root = mpl_json_put(root, "n_steps", mpl_json_number(p->n_steps));
    root = mpl_json_put(root, "claim", json_string(mpl_claim_name(plan->claim)));
    root = mpl_json_put(root, "bound_bytes", mpl_json_number(plan->bound_bytes));
    root = mpl_json_put(root, "planned_bytes", mpl_json_number(plan->peak_bytes));
    root = mpl_json_put(root, "pools", pools_of(p, plan));
    if (spread->n > 0) {
        root = mpl_json_put(root, "memories", memories_of(spread));
        root = mpl_json_put(root, "cost", mpl_json_number(spread->cost));
        root = mpl_json_put(root, "cost_bound", mpl_json_number(spread->cost_bound));
    }
    root = mpl_json_put(root, "buffers", buffers_of(p, plan));
    root = mpl_json_put(root, "before", before_of(p));
    root = mpl_json_put(root, "in_place", pairs_of(p));
    root = mpl_json_put(root, "inside", families_of(p));
    root = mpl_json_put(root, "fixed", fixed_of(p));
    if (p->constraints != NULL)
        root = mpl_json_put(root, "limits", constraints_of(p->constraints));
    /* else the caller's, from control flow */
    if (!json_is_array(json_object_get(root, "bindings")))
        root = mpl_json_put(root, "bindings", json_array());
    return mpl_json_put(root, "certificate", certificate_of(plan));
}

static mpl_status build(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                        const char *fields_json, json_t **root)
{
    mpl_assert(plan->n == p->n && plan->n_pools == p->n_pools);
    MPL_PASS(mpl_json_begin(ctx, "plan", fields_json, root));
    *root = plan_of(p, plan, *root);
    return *root != NULL ? MPL_OK : mpl_json_no_memory(ctx);
}

mpl_status mpl_plan_text(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                         const char *fields_json, char **text)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL;
    char *dumped = NULL;

    MPL_TRY(build(ctx, p, plan, fields_json, &root));
    MPL_TRY((dumped = json_dumps(root, JSON_COMPACT)) != NULL ? MPL_OK : mpl_json_no_memory(ctx));
    MPL_TRY((*text = mpl_strdup(ctx, dumped)) != NULL ? MPL_OK : MPL_EMEM);
out:
    free(dumped);
    json_decref(root);
    return st;
}

mpl_status mpl_plan_write(mpl_ctx *ctx, const char *path, const mpl_problem *p,
                          const mpl_plan *plan, const char *fields_json)
{
    json_t *root = NULL;
    mpl_status st = build(ctx, p, plan, fields_json, &root);

    if (st == MPL_OK)
        st = mpl_json_write(ctx, path, root);
    json_decref(root);
    return st;
}
