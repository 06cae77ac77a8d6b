/* asked.c -- translates options for readers, problems, planners and the verifier. See asked.h. */
#include "harness/job/asked.h"

#include "graphs/problem/before.h"
#include "planners/verify/verify.h"

mpl_status mpl_asked_dims(mpl_ctx *ctx, const mpl_options *options, mpl_reading *out)
{
    uint32_t n = options->dim.n;

    MPL_PASS(mpl_new_each(ctx, n, out->name_store, out->dim_name, out->dim_value));
    for (uint32_t i = 0; i < n; i++) {
        char *name = mpl_strdup(ctx, options->dim.item[i]);
        size_t name_bytes;
        uint64_t value;

        MPL_PASS(name != NULL ? MPL_OK : MPL_EMEM);
        out->name_store[out->n_names++] = name;
        MPL_PASS(mpl_parse_dim(ctx, name, &name_bytes, &value));
        name[name_bytes] = '\0';
        out->dim_name[i] = name;
        out->dim_value[i] = (int64_t)value;
    }
    out->options.loss = options->loss;
    out->options.trainable = options->trainable;
    out->options.n_dims = n;
    out->options.dim_name = out->dim_name;
    out->options.dim_value = out->dim_value;
    return MPL_OK;
}

void mpl_reading_fini(mpl_ctx *ctx, mpl_reading *reading)
{
    for (uint32_t i = 0; i < reading->n_names; i++)
        mpl_free(ctx, reading->name_store[i]);
    mpl_free_each(ctx, reading->name_store, reading->dim_name, reading->dim_value);
}

/* Whether a SET contains a word. */
static bool has(uint32_t set, mpl_option_id id, mpl_word word)
{
    return set >> (word - mpl_option_word(id, 0)) & 1;
}

mpl_problem_options mpl_asked_problem(const mpl_options *options)
{
    mpl_problem_options out = mpl_problem_options_default();

    out.in_place = options->in_place;
    out.views = options->views;
    out.concat = options->concat == MPL_concat_copy || !options->views ? MPL_CONCAT_COPY
                 : options->concat == MPL_concat_share                 ? MPL_CONCAT_SHARE
                                                                       : MPL_CONCAT_AUTO;
    out.loop_copy = options->loop == MPL_loop_copy;
    out.pin_weights = has(options->pin, MPL_OPT_pin, MPL_pin_weights);
    out.pin_inputs = has(options->pin, MPL_OPT_pin, MPL_pin_inputs);
    out.pin_outputs = has(options->pin, MPL_OPT_pin, MPL_pin_outputs);
    out.own_pools = options->pools << MPL_PART_WEIGHT; /* words have the order of mpl_part */
    out.capacity = options->given[MPL_OPT_capacity] ? options->capacity : MPL_NO_CAPACITY;
    return out;
}

mpl_status mpl_asked_safety(mpl_ctx *ctx, const mpl_options *options, const char *name,
                            mpl_problem *list)
{
    if (list->before != NULL && options->given[MPL_OPT_safety] &&
        options->safety.kind == MPL_safety_serial)
        return MPL_REFUSE(ctx, "%.200s has a partial order and no steps: --safety serial cannot be",
                          name);
    if (options->safety.kind == MPL_safety_streams)
        return MPL_REFUSE(ctx,
                          "%.200s is a list of buffers, without operations: --safety %s is for "
                          "a graph",
                          name, options->safety.text);
    if (list->before == NULL && options->safety.kind == MPL_safety_parallel)
        MPL_PASS(mpl_problem_as_parallel(ctx, list));
    return MPL_OK;
}

mpl_safety mpl_list_safety(const mpl_problem *list)
{
    static const mpl_safety serial = MPL_SAFETY(serial), parallel = MPL_SAFETY(parallel);

    return list->before != NULL ? parallel : serial;
}

void mpl_asked_limits(const mpl_options *options, mpl_problem *list)
{
    if (!options->in_place)
        list->n_in_place = 0;
    if (options->given[MPL_OPT_capacity])
        list->pool_capacity[0] = options->capacity;
}

void mpl_asked_run(mpl_ctx *ctx, const mpl_options *options, const mpl_params *params, mpl_run *run)
{
    *run = mpl_run_default(ctx);
    run->seed = options->seed;
    run->budget_ticks = options->budget;
    if (options->given[MPL_OPT_time_limit])
        run->deadline_ns = mpl_clock_ns() + mpl_seconds_ns(options->time_limit);
    run->n_threads = options->threads > 0 ? (uint32_t)options->threads : 1;
    run->watch = options->watch;
    run->n_params = params->key.n;
    run->param_key = params->key.item;
    run->param_value = params->value.item;
}

mpl_status mpl_verify_all(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                          const mpl_problem *p, mpl_plan *plan)
{
    MPL_PASS(mpl_verify(ctx, p, plan));
    if (g != NULL && g->n_blocks > 1)
        MPL_PASS(mpl_verify_places(ctx, g, map, p, plan));
    else if (g != NULL && p->before != NULL)
        MPL_PASS(mpl_verify_graph(ctx, g, map, p, plan));
    return MPL_OK;
}

void mpl_row_words(mpl_record *row, mpl_field field, mpl_option_id id, uint32_t set)
{
    for (uint32_t k = 0; set >> k != 0; k++)
        if (set >> k & 1)
            mpl_record_item_text(row, field, mpl_word_text[mpl_option_word(id, k)]);
}
