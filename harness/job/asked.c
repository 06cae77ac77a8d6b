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

/* The buffer whose name is the first n bytes of text. */
static mpl_status named_buffer(mpl_ctx *ctx, const mpl_problem *p, const char *option,
                               const char *text, size_t n, mpl_buffer *out)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        char number[24];
        const char *name = mpl_buffer_label(p, b, number);

        if (strlen(name) == n && memcmp(name, text, n) == 0) {
            *out = b;
            return MPL_OK;
        }
    }
    return MPL_REFUSE(ctx,
                      "--%s %.200s: '%.100s' has no buffer '%.*s'; memplan export --format csv "
                      "names them",
                      option, text, p->name, (int)mpl_min_u64(n, 100), text);
}

static mpl_status ask_fixed(mpl_ctx *ctx, const mpl_strings *list, mpl_problem *p)
{
    if (list->n > 0 && p->fixed == NULL) {
        MPL_PASS(mpl_new(ctx, p->fixed, p->n));
        for (mpl_buffer b = 0; b < p->n; b++)
            p->fixed[b] = MPL_UNFIXED;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        const char *text = list->item[i], *sign = strrchr(text, '=');
        char one[24], other[24];
        mpl_buffer b = 0;

        if (sign == NULL)
            return MPL_REFUSE(ctx, "--fix %.200s: NAME=OFFSET is needed", text);
        MPL_PASS(named_buffer(ctx, p, "fix", text, (size_t)(sign - text), &b));
        MPL_PASS(mpl_parse_bytes(ctx, "--fix", sign + 1, &p->fixed[b]));
        for (mpl_buffer a = 0; a < p->n; a++)
            if (p->fixed[a] != MPL_UNFIXED && p->fixed[a] < p->fixed[b] + p->bytes[b] &&
                p->fixed[b] < p->fixed[a] + p->bytes[a] && p->fixed[a] != p->fixed[b] &&
                mpl_conflict(p, a, b))
                return MPL_REFUSE(ctx, "--fix %.200s: '%.100s' would overlap '%.100s'", text,
                                  mpl_buffer_label(p, b, one), mpl_buffer_label(p, a, other));
    }
    return MPL_OK;
}

/* "A,B": cut at the comma that leaves two names. */
static mpl_status ask_pairs(mpl_ctx *ctx, const char *option, const mpl_strings *list,
                            const mpl_problem *p, mpl_buffer (*out)[2])
{
    for (uint32_t i = 0; i < list->n; i++) {
        const char *text = list->item[i], *comma = strchr(text, ',');
        mpl_status st = MPL_EINPUT;

        if (comma == NULL)
            return MPL_REFUSE(ctx, "--%s %.200s: two buffers A,B are needed", option, text);
        for (; st == MPL_EINPUT && comma != NULL; comma = strchr(comma + 1, ',')) {
            st = named_buffer(ctx, p, option, text, (size_t)(comma - text), &out[i][0]);
            if (st == MPL_OK)
                st = named_buffer(ctx, p, option, comma + 1, strlen(comma + 1), &out[i][1]);
        }
        MPL_PASS(st);
    }
    return MPL_OK;
}

/* "FROM..TO"; *rest: what follows it. */
static mpl_status parse_range(mpl_ctx *ctx, const char *text, char end, uint64_t range[2],
                              const char **rest)
{
    const char *dots = strstr(text, ".."), *stop = end != '\0' ? strchr(text, end) : NULL;
    char number[2][32] = {{0}};

    stop = stop != NULL ? stop : text + strlen(text);
    if (dots == NULL || dots > stop || dots - text > 31 || stop - dots - 2 > 31)
        return MPL_REFUSE(ctx, "--reserve %.200s: FROM..TO is needed, or FROM..TO@STEP..STEP",
                          text);
    memcpy(number[0], text, (size_t)(dots - text));
    memcpy(number[1], dots + 2, (size_t)(stop - dots - 2));
    for (int i = 0; i < 2; i++)
        MPL_PASS(mpl_parse_bytes(ctx, "--reserve", number[i], &range[i]));
    *rest = stop;
    return MPL_OK;
}

static mpl_status ask_reserved(mpl_ctx *ctx, const mpl_strings *list, mpl_reserved *out)
{
    for (uint32_t i = 0; i < list->n; i++) {
        uint64_t bytes[2], steps[2] = {0, UINT32_MAX};
        const char *rest = "";

        MPL_PASS(parse_range(ctx, list->item[i], '@', bytes, &rest));
        if (*rest == '@')
            MPL_PASS(parse_range(ctx, rest + 1, '\0', steps, &rest));
        out[i] = (mpl_reserved){bytes[0], bytes[1], (uint32_t)mpl_min_u64(steps[0], UINT32_MAX),
                                (uint32_t)mpl_min_u64(steps[1], UINT32_MAX)};
    }
    return MPL_OK;
}

bool mpl_asks_constraints(const mpl_options *options)
{
    return options->fix.n + options->reserve.n + options->apart.n + options->together.n > 0 ||
           options->given[MPL_OPT_chunk];
}

mpl_status mpl_asked_constraints(mpl_ctx *ctx, const mpl_options *options, mpl_problem *p)
{
    mpl_constraints *constraints = NULL;

    if (!mpl_asks_constraints(options))
        return MPL_OK;
    mpl_constraints_free(ctx, p->constraints);
    p->constraints = NULL;
    MPL_PASS(ask_fixed(ctx, &options->fix, p));
    if (options->reserve.n + options->apart.n + options->together.n > 0 ||
        options->given[MPL_OPT_chunk]) {
        MPL_PASS(mpl_new(ctx, constraints, 1));
        p->constraints = constraints;
        constraints->chunk_bytes = options->chunk;
        if (options->given[MPL_OPT_chunk] && constraints->chunk_bytes == 0)
            return MPL_REFUSE(ctx, "--chunk 0: at least one byte is needed");
        MPL_PASS(mpl_new(ctx, constraints->reserved, options->reserve.n));
        MPL_PASS(mpl_new(ctx, constraints->apart, options->apart.n));
        MPL_PASS(mpl_new(ctx, constraints->together, options->together.n));
        MPL_PASS(ask_reserved(ctx, &options->reserve, constraints->reserved));
        MPL_PASS(ask_pairs(ctx, "apart", &options->apart, p, constraints->apart));
        MPL_PASS(ask_pairs(ctx, "together", &options->together, p, constraints->together));
        constraints->n_reserved = options->reserve.n;
        constraints->n_apart = options->apart.n;
        constraints->n_together = options->together.n;
    }
    return mpl_problem_check(ctx, p);
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
