/* recompute_model.c -- runs by stages. See recompute_priv.h.
 *
 * Source   P. Jain and others, "Checkmate: Breaking the Memory Wall with Optimal Tensor
 *          Rematerialization", 2020, section 4.
 * Differs  Nodes are groups of operations with several results. A result that the last reader may
 *          overwrite is not counted beside the reader's result. */
#include "planners/recompute/recompute_priv.h"

#include "graphs/orders/work.h"

static const uint64_t MOST_PAIRS = UINT64_C(1) << 22;
enum { SMALL = 16 }; /* a result this many times smaller than another of its operation is kept */

/* ---- values to lumps ---- */

typedef struct builder {
    mpl_stage_model *model;
    const mpl_problem_options *options;
    mpl_value *root;     /* [n_values] */
    uint32_t *lump_of;   /* [n_values] of a root; MPL_NONE: read only by its group */
    uint32_t *reader_at; /* [n_values + 1] into reader, of a root */
    uint32_t *reader;    /* groups that read it except the maker, ascending, distinct */
    uint32_t *n_readers; /* [n_values] */
    uint32_t *final;     /* [n_values] the last operation that reads a root */
} builder;

static uint64_t slots(const builder *self, mpl_value v)
{
    const mpl_graph *g = self->model->g;
    bool pinned = (g->value_role[v] == MPL_OUTPUT && self->options->pin_outputs) ||
                  (g->value_role[v] == MPL_INPUT && self->options->pin_inputs) ||
                  (g->value_role[v] == MPL_WEIGHT && self->options->pin_weights);

    return pinned ? 0
                  : (g->value_bytes[v] + self->options->align - 1) &
                        ~((uint64_t)self->options->align - 1);
}

static uint32_t group_of(const builder *self, mpl_value v)
{
    mpl_op op = self->model->g->value_op[v];

    return op == MPL_NONE ? MPL_NONE : self->model->group_of[op];
}

static mpl_status find_readers(builder *self)
{
    mpl_ctx *ctx = self->model->ctx;
    const mpl_graph *g = self->model->g;
    const mpl_unit_reads *reads = &self->model->reads;

    MPL_PASS(mpl_new(ctx, self->reader_at, (size_t)g->n_values + 1));
    MPL_PASS(mpl_new_each(ctx, g->n_values, self->n_readers, self->final));
    MPL_PASS(mpl_new(ctx, self->reader, (size_t)reads->begin[g->n_ops] + g->n_values));
    for (uint32_t i = 0; i < reads->begin[g->n_ops]; i++)
        self->reader_at[self->root[reads->value[i]] + 1]++;
    for (mpl_value v = 0; v < g->n_values; v++) {
        self->reader_at[v + 1] += self->reader_at[v] + 1; /* one more entry, for values kept to the
                                                             end */
        self->final[v] = g->value_op[v];
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = reads->begin[op]; i < reads->begin[op + 1]; i++) {
            mpl_value v = self->root[reads->value[i]];
            uint32_t *n = &self->n_readers[v], group = self->model->group_of[op];

            if (group == MPL_NONE)
                continue;
            self->final[v] = op;
            if (group != group_of(self, v) &&
                (*n == 0 || self->reader[self->reader_at[v] + *n - 1] != group))
                self->reader[self->reader_at[v] + (*n)++] = group;
        }
    for (mpl_value v = 0; v < g->n_values; v++) { /* unpinned outputs stay to the end */
        uint32_t *n = &self->n_readers[v], last = self->model->n - 1;

        if (g->value_role[v] == MPL_OUTPUT && self->root[v] == v && slots(self, v) > 0 &&
            group_of(self, v) != last &&
            (*n == 0 || self->reader[self->reader_at[v] + *n - 1] != last))
            self->reader[self->reader_at[v] + (*n)++] = last;
    }
    return MPL_OK;
}

static bool same_readers(const builder *self, uint32_t lump, mpl_value v)
{
    const mpl_stage_model *model = self->model;
    uint32_t n = model->user_begin[lump + 1] - model->user_begin[lump];

    return n == self->n_readers[v] &&
           memcmp(model->user + model->user_begin[lump], self->reader + self->reader_at[v],
                  n * sizeof *model->user) == 0;
}

/* Whether v is kept because it is small beside other results or cannot be made again. */
static bool is_fixed(const builder *self, mpl_op op, uint32_t i)
{
    const mpl_graph *g = self->model->g;
    uint64_t most = 0;

    for (uint32_t o = g->op_out_begin[op]; o < g->op_out_begin[op + 1]; o++)
        most = mpl_max_u64(most, g->op_out[o] != MPL_NONE ? g->value_bytes[g->op_out[o]] : 0);
    return !self->model->may[self->model->group_of[op]] || !mpl_repeat_makes(g, op, i) ||
           (self->model->g->value_role[g->op_out[g->op_out_begin[op] + i]] == MPL_OUTPUT &&
            !self->options->pin_outputs) ||
           g->value_bytes[g->op_out[g->op_out_begin[op] + i]] <= most / SMALL;
}

/* Values of one maker with the same readers share a lump. `first`: the maker's first lump. */
static void put_in_lump(builder *self, mpl_op op, uint32_t i, uint32_t first)
{
    mpl_stage_model *model = self->model;
    mpl_value v = model->g->op_out[model->g->op_out_begin[op] + i];
    bool fixed = is_fixed(self, op, i);
    uint32_t at = first;

    while (at < model->n_lumps && (model->fixed[at] != fixed || !same_readers(self, at, v)))
        at++;
    if (at == model->n_lumps) {
        model->maker[at] = model->group_of[op];
        model->fixed[at] = fixed;
        memcpy(model->user + model->user_begin[at], self->reader + self->reader_at[v],
               self->n_readers[v] * sizeof *model->user);
        model->user_begin[at + 1] = model->user_begin[at] + self->n_readers[v];
        model->n_lumps++;
    }
    model->bytes[at] += slots(self, v);
    model->stays[at] |= model->g->value_role[v] == MPL_OUTPUT;
    self->lump_of[v] = at;
}

static mpl_status make_lumps(builder *self)
{
    mpl_stage_model *model = self->model;
    const mpl_graph *g = model->g;
    uint32_t first = 0, group = MPL_NONE;

    MPL_PASS(mpl_new_each(model->ctx, g->n_values, model->maker, model->bytes, model->fixed,
                          model->stays, model->last));
    MPL_PASS(mpl_new(model->ctx, model->user_begin, (size_t)g->n_values + 1));
    MPL_PASS(mpl_new(model->ctx, model->user, (size_t)model->reads.begin[g->n_ops] + g->n_values));
    MPL_PASS(mpl_new(model->ctx, self->lump_of, g->n_values));
    memset(self->lump_of, 0xff, g->n_values * sizeof *self->lump_of);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (model->group_of[op] == MPL_NONE)
            continue;
        if (model->group_of[op] != group)
            first = model->n_lumps, group = model->group_of[op];
        for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
            mpl_value v = g->op_out[g->op_out_begin[op] + i];

            if (v != MPL_NONE && slots(self, v) > 0 && self->n_readers[v] > 0)
                put_in_lump(self, op, i, first);
        }
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] == MPL_NONE && g->value_role[v] != MPL_PARAMETER)
            model->base += slots(self, v);
    if ((uint64_t)model->n_lumps * model->n > MOST_PAIRS)
        return MPL_REFUSE(model->ctx,
                          "graph '%s': %" PRIu32 " groups and %" PRIu32 " values are too many",
                          g->name, model->n, model->n_lumps);
    return MPL_OK;
}

/* ---- groups ---- */

/* Bytes of the values inside a group that die at this operation. */
static uint64_t freed(builder *self, mpl_op op)
{
    const mpl_graph *g = self->model->g;
    uint64_t bytes = 0;

    const mpl_unit_reads *reads = &self->model->reads;

    for (uint32_t i = reads->begin[op]; i < reads->begin[op + 1]; i++) {
        mpl_value v = self->root[reads->value[i]];

        if (g->value_op[v] != MPL_NONE && self->final[v] == op && self->lump_of[v] == MPL_NONE) {
            bytes += slots(self, v);
            self->final[v] = MPL_NONE;
        }
    }
    for (uint32_t o = g->op_out_begin[op]; o < g->op_out_begin[op + 1]; o++)
        if (g->op_out[o] != MPL_NONE && self->root[g->op_out[o]] == g->op_out[o] &&
            self->final[g->op_out[o]] == op && self->lump_of[g->op_out[o]] == MPL_NONE)
            bytes += slots(self, g->op_out[o]);
    return bytes;
}

static void weigh_groups(builder *self)
{
    mpl_stage_model *model = self->model;
    const mpl_graph *g = model->g;
    uint64_t live = 0;
    uint32_t group = MPL_NONE;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (model->group_of[op] == MPL_NONE)
            continue;
        live = model->group_of[op] == group ? live : 0;
        group = model->group_of[op];
        model->work[group] = mpl_add_work(model->work[group], mpl_unit_work(g, op));
        for (uint32_t o = g->op_out_begin[op]; o < g->op_out_begin[op + 1]; o++)
            if (g->op_out[o] != MPL_NONE && self->lump_of[g->op_out[o]] == MPL_NONE)
                live += slots(self, g->op_out[o]);
        model->inner[group] = mpl_max_u64(model->inner[group], live);
        live -= freed(self, op);
    }
}

/* Notes that the result `out` of a group of one operation may overwrite v, if that is a lump of one
 * value; best one that dies there. */
static void note_over(builder *self, mpl_op op, mpl_value v, mpl_value out)
{
    mpl_stage_model *model = self->model;
    const mpl_graph *g = model->g;
    uint32_t lump = v != MPL_NONE && self->root[v] == v ? self->lump_of[v] : MPL_NONE;

    if (lump == MPL_NONE || out == MPL_NONE || model->bytes[lump] != slots(self, v) ||
        slots(self, v) != slots(self, out) || g->value_type[v] != g->value_type[out] ||
        !mpl_shape_equal(&g->value_shape[v], &g->value_shape[out]))
        return;
    for (uint32_t r = model->read_begin[model->group_of[op]];
         r < model->read_begin[model->group_of[op] + 1]; r++)
        model->over[r] |= model->read[r] == lump;
    if (model->overwrites[model->group_of[op]] == MPL_NONE || self->final[v] == op)
        model->overwrites[model->group_of[op]] = lump;
}

static void find_over(builder *self, mpl_op op)
{
    const mpl_graph *g = self->model->g;
    uint32_t n = self->options->in_place ? mpl_n_read(g, op) : 0;
    const mpl_unit_reads *reads = &self->model->reads;
    bool loop = g->op_kind[op] == MPL_OP_while && !self->options->loop_copy;
    bool branch = g->op_kind[op] == MPL_OP_case;

    for (uint32_t i = 0; i < n; i++)
        if (mpl_op_overwrites(g, op, i))
            note_over(self, op, mpl_op_input(g, op, i), mpl_op_output(g, op, 0));
    for (uint32_t i = 0; loop && i < mpl_n_carried(g, op); i++) /* a carried value and its first */
        note_over(self, op, mpl_op_input(g, op, 2 + i), mpl_op_output(g, op, i));
    /* what a branch reads may be dead when it makes its result */
    for (uint32_t i = reads->begin[op]; branch && i < reads->begin[op + 1]; i++)
        note_over(self, op, reads->value[i], mpl_op_output(g, op, 0));
}

/* Bytes that group t needs besides the lumps. For a loop or branch: its peak in the problem of the
 * unchanged graph, less the lumps that are live then. */
static void weigh_unit(mpl_stage_model *model, mpl_op op, const mpl_program *program,
                       const uint64_t *live)
{
    const mpl_graph *g = model->g;
    uint32_t t = model->group_of[op], from = program->begin_step[mpl_op_first_body(g, op)];
    uint64_t most = 0, there = model->base;

    for (uint32_t step = from; step <= program->op_step[op]; step++)
        most = mpl_max_u64(most, live[step]);
    for (uint32_t v = 0; v < model->n_lumps; v++)
        if (model->maker[v] == t ||
            (model->maker[v] < t &&
             model->user[model->user_begin[v + 1] - 1] >= t + (model->overwrites[t] == v)))
            there += model->bytes[v];
    model->inner[t] = mpl_max_u64(model->inner[t], most - mpl_min_u64(most, there));
}

static mpl_status weigh_units(mpl_stage_model *model)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = model->g;
    mpl_program *program = NULL;
    uint64_t *live = NULL;

    MPL_TRY(mpl_given_live(model->ctx, g, model->options, &program, &live));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (model->group_of[op] != MPL_NONE && g->op_body_begin[op] < g->op_body_begin[op + 1])
            weigh_unit(model, op, program, live);
out:
    mpl_program_free(model->ctx, program);
    mpl_free(model->ctx, live);
    return st;
}

static mpl_status make_groups(builder *self, const uint8_t *begins, const uint8_t *only_forward)
{
    mpl_stage_model *model = self->model;
    const mpl_graph *g = model->g;

    MPL_PASS(mpl_new(model->ctx, model->group_of, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool view = g->op_block[op] != 0 || mpl_shows_input(g, model->options, op);

        model->n += !view && (begins == NULL || begins[op] || model->n == 0);
        model->group_of[op] = view ? MPL_NONE : model->n - 1;
    }
    MPL_PASS(mpl_new_each(model->ctx, model->n, model->may, model->work, model->inner, model->need,
                          model->overwrites));
    memset(model->overwrites, 0xff, model->n * sizeof *model->overwrites);
    memset(model->may, 1, model->n);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (model->group_of[op] != MPL_NONE &&
            (!mpl_may_repeat(g, op) || (only_forward != NULL && !only_forward[op])))
            model->may[model->group_of[op]] = 0;
    return MPL_OK;
}

/* The weight or input that v is or is a view of; MPL_NONE if none. */
static mpl_value shown_by(const mpl_graph *g, mpl_value v)
{
    v = mpl_shown_source(g, v);
    return g->value_op[v] == MPL_NONE ? v : MPL_NONE;
}

/* A reader of a weight does not run again after the weight's update. */
static mpl_status find_until(mpl_stage_model *model)
{
    const mpl_graph *g = model->g;

    MPL_PASS(mpl_new(model->ctx, model->until, model->n));
    MPL_PASS(mpl_new(model->ctx, model->update, g->n_values));
    memset(model->until, 0xff, model->n * sizeof *model->until);
    memset(model->update, 0xff, g->n_values * sizeof *model->update);
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
            if (mpl_updated(g, op, i) != MPL_NONE)
                model->update[mpl_updated(g, op, i)] = mpl_op_outermost(g, op);
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = model->reads.begin[op];
             i < model->reads.begin[op + 1] && model->group_of[op] != MPL_NONE; i++) {
            mpl_op update = mpl_stage_update(model, op, model->reads.value[i]);
            uint32_t *until = &model->until[model->group_of[op]];

            if (update != MPL_NONE && model->group_of[update] < *until)
                *until = model->group_of[update];
        }
    return MPL_OK;
}

mpl_op mpl_stage_update(const mpl_stage_model *model, mpl_op op, mpl_value v)
{
    mpl_value w = shown_by(model->g, v);

    return w != MPL_NONE && model->update[w] != op ? model->update[w] : MPL_NONE;
}

static uint32_t until_stage(const mpl_stage_model *model, uint32_t i)
{
    return !model->may[i] ? i : model->need[i] < model->until[i] ? model->need[i] : model->until[i];
}

/* Indexes the readers of lumps, and the last stages in which runs are useful. */
static mpl_status index_reads(mpl_stage_model *model)
{
    MPL_PASS(mpl_lists_turn(model->ctx, model->n, model->n_lumps, model->user_begin, model->user,
                            &model->read_begin, &model->read));
    MPL_PASS(mpl_new(model->ctx, model->over, model->read_begin[model->n]));
    for (uint32_t i = 0; i < model->n; i++)
        model->need[i] = i;
    for (uint32_t v = model->n_lumps; v-- > 0;) { /* lumps ascend by maker */
        for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1]; i++)
            model->last[v] =
                (uint32_t)mpl_max_u64(model->last[v], until_stage(model, model->user[i]));
        if (!model->fixed[v])
            model->need[model->maker[v]] =
                (uint32_t)mpl_max_u64(model->need[model->maker[v]], model->last[v]);
    }
    for (uint32_t i = 0; i < model->n; i++)
        model->need[i] = until_stage(model, i);
    return MPL_OK;
}

mpl_status mpl_stage_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               const uint8_t *begins, const uint8_t *only_forward,
                               mpl_stage_model *out)
{
    mpl_status st = MPL_OK;
    mpl_stage_model m = {.ctx = ctx, .g = g, .options = options};
    builder b = {.model = &m, .options = options};
    mpl_run_list roots = {0};
    uint32_t *size = NULL;

    MPL_TRY(mpl_run_list_init(ctx, g, options, &roots));
    b.root = roots.root;
    MPL_TRY(mpl_unit_reads_new(ctx, g, &m.reads));
    MPL_TRY(make_groups(&b, begins, only_forward));
    MPL_TRY(find_readers(&b));
    MPL_TRY(make_lumps(&b));
    MPL_TRY(find_until(&m));
    MPL_TRY(index_reads(&m));
    MPL_TRY(mpl_new(ctx, size, m.n));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (m.group_of[op] != MPL_NONE)
            size[m.group_of[op]]++;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (m.group_of[op] != MPL_NONE && size[m.group_of[op]] == 1)
            find_over(&b, op);
    weigh_groups(&b);
    if (g->n_blocks > 1)
        MPL_TRY(weigh_units(&m));
    *out = m;
    m = (mpl_stage_model){.ctx = ctx};
out:
    mpl_stage_model_fini(&m);
    mpl_run_list_fini(&roots);
    mpl_free_each(ctx, b.lump_of, b.reader_at, b.reader, b.n_readers, b.final, size);
    return st;
}

void mpl_stage_model_fini(mpl_stage_model *model)
{
    if (model->ctx != NULL) {
        mpl_unit_reads_fini(model->ctx, &model->reads);
        mpl_free_each(model->ctx, model->group_of, model->may, model->work, model->inner,
                      model->need, model->overwrites, model->maker, model->bytes, model->fixed,
                      model->last, model->user_begin, model->user, model->read_begin, model->read,
                      model->over, model->stays, model->until, model->update);
    }
    *model = (mpl_stage_model){0};
}

/* ---- stages ---- */

mpl_status mpl_stages_new(const mpl_stage_model *model, mpl_stages *out)
{
    mpl_status st = MPL_OK;
    mpl_stages s = {0};

    MPL_TRY(mpl_new(model->ctx, s.runs, (size_t)model->n * model->n));
    MPL_TRY(mpl_new(model->ctx, s.carried, ((size_t)model->n + 1) * model->n_lumps));
    for (uint32_t t = 0; t < model->n; t++)
        s.runs[(size_t)t * model->n + t] = 1;
    *out = s, s = (mpl_stages){0};
out:
    mpl_stages_fini(model, &s);
    return st;
}

void mpl_stages_fini(const mpl_stage_model *model, mpl_stages *stages)
{
    if (model->ctx == NULL)
        return;
    mpl_free_each(model->ctx, stages->runs, stages->carried);
    *stages = (mpl_stages){0};
}

/* Whether a group from `from` on reads lump v, which is not fixed, in the stage. */
static bool is_read(const mpl_stage_model *model, const uint8_t *runs, uint32_t v, uint32_t from,
                    uint32_t stage)
{
    for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1] && model->user[i] <= stage;
         i++)
        if (model->user[i] >= from && runs[model->user[i]])
            return true;
    return false;
}

void mpl_stages_complete(const mpl_stage_model *model, mpl_stages *stages)
{
    for (uint32_t t = 0; t < model->n; t++) {
        uint8_t *runs = stages->runs + (size_t)t * model->n,
                *in = stages->carried + (size_t)t * model->n_lumps, *out = in + model->n_lumps;

        memset(runs, 0, t);
        /* do not carry lumps that are made later or no longer read */
        for (uint32_t v = 0; v < model->n_lumps; v++)
            out[v] = out[v] && model->maker[v] <= t && model->last[v] > t;
        for (uint32_t i = t + 1; i-- > 0;) {
            for (uint32_t v = 0; v < model->n_lumps && i < t; v++)
                if (model->maker[v] == i && out[v] && !in[v] && !model->fixed[v])
                    runs[i] = 1;
            for (uint32_t r = model->read_begin[i]; r < model->read_begin[i + 1] && runs[i]; r++)
                if (!model->fixed[model->read[r]] && !in[model->read[r]])
                    runs[model->maker[model->read[r]]] = 1;
        }
    }
    for (uint32_t t = model->n; t-- > 0;) {
        uint8_t *runs = stages->runs + (size_t)t * model->n,
                *in = stages->carried + (size_t)t * model->n_lumps, *out = in + model->n_lumps;

        for (uint32_t v = 0; v < model->n_lumps; v++)
            in[v] = in[v] && !(model->maker[v] <= t && runs[model->maker[v]]) &&
                    (out[v] || is_read(model, runs, v, 0, t));
    }
}

static bool is_there(const mpl_stage_model *model, const mpl_stages *stages, uint32_t t, uint32_t i,
                     uint32_t v)
{
    const uint8_t *runs = stages->runs + (size_t)t * model->n,
                  *in = stages->carried + (size_t)t * model->n_lumps, *out = in + model->n_lumps;
    uint32_t maker = model->maker[v];

    if (model->fixed[v]) /* carried to its last stage, which group t ends */
        return maker == t ? i == t
                          : maker < t && t <= model->last[v] &&
                                !(model->overwrites[i] == v && t == model->last[v] && i == t);
    if (maker > i)
        return maker < t && in[v];
    return maker == i || out[v] ||
           is_read(model, runs, v, model->overwrites[i] == v ? i + 1 : i, t);
}

uint64_t mpl_stages_peak(const mpl_stage_model *model, const mpl_stages *stages)
{
    uint64_t peak = 0;

    for (uint32_t t = 0; t < model->n; t++)
        for (uint32_t i = 0; i <= t; i++) {
            uint64_t live = model->base + model->inner[i];

            if (!stages->runs[(size_t)t * model->n + i])
                continue;
            for (uint32_t v = 0; v < model->n_lumps; v++)
                live += is_there(model, stages, t, i, v) ? model->bytes[v] : 0;
            peak = mpl_max_u64(peak, live);
        }
    return peak;
}

uint64_t mpl_stages_work(const mpl_stage_model *model, const mpl_stages *stages)
{
    uint64_t work = 0;

    for (uint32_t t = 0; t < model->n; t++)
        for (uint32_t i = 0; i < t; i++)
            work = mpl_add_work(work, stages->runs[(size_t)t * model->n + i] ? model->work[i] : 0);
    return work;
}

mpl_status mpl_stages_run(const mpl_stage_model *model, const mpl_stages *stages, uint32_t *n,
                          mpl_op **run)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = model->g;
    mpl_run_list list = {0};
    uint32_t *begin = NULL; /* [n + 1] first operation of a group */
    mpl_op op = 0;

    MPL_TRY(mpl_run_list_init(model->ctx, g, model->options, &list));
    MPL_TRY(mpl_new(model->ctx, begin, (size_t)model->n + 1));
    for (mpl_op o = g->n_ops; o-- > 0;)
        if (model->group_of[o] != MPL_NONE)
            begin[model->group_of[o]] = o;
    begin[model->n] = g->n_ops;
    for (uint32_t t = 0; t < model->n; t++) {
        for (uint32_t i = 0; i < t; i++)
            for (mpl_op o = begin[i]; stages->runs[(size_t)t * model->n + i] && o < begin[i + 1];
                 o++)
                if (model->group_of[o] == i)
                    MPL_TRY(mpl_run_list_add(&list, o));
        for (; op < begin[t + 1]; op++) /* includes views */
            if (g->op_block[op] == 0)
                MPL_TRY(mpl_run_list_add(&list, op));
    }
    for (; op < g->n_ops; op++)
        if (g->op_block[op] == 0)
            MPL_TRY(mpl_run_list_add(&list, op));
    MPL_TRY(mpl_rerun_trim(model->ctx, g, &list.n, list.run));
    *n = list.n;
    *run = list.run, list.run = NULL;
out:
    mpl_run_list_fini(&list);
    mpl_free(model->ctx, begin);
    return st;
}

enum { CLOSE = 128 }; /* a peak is close to the budget within such a part */

bool mpl_budget_left(const mpl_budget_aim *aim)
{
    return aim->tries > 0 && aim->budget > aim->low && aim->budget < aim->high;
}

void mpl_budget_next(mpl_budget_aim *aim, uint64_t peak)
{
    const uint64_t want = aim->want, budget = aim->budget;

    aim->tries--;
    if (want == MPL_LEAST_PEAK || (peak <= want && want - peak < want / CLOSE)) {
        aim->tries = 0;
        return;
    }
    if (peak <= want || peak == UINT64_MAX)
        aim->low = budget;
    else
        aim->high = budget;
    aim->budget = peak == UINT64_MAX ? budget + budget / 8 : budget + want - peak;
    if (aim->budget <= aim->low || aim->budget >= aim->high)
        aim->budget = aim->low + (aim->high - aim->low) / 2;
}

mpl_status mpl_recompute_refuse(const mpl_recompute_task *task, uint64_t budget, bool proved)
{
    if (proved && task->g->n_blocks == 1) /* with blocks the model is an estimate */
        return MPL_ERROR(task->ctx, MPL_EINVALID,
                         "graph '%s' in its order needs more than %" PRIu64
                         " bytes, whatever runs again (proved); a larger budget would be right",
                         task->g->name, budget);
    return MPL_ERROR(task->ctx, MPL_ELIMIT,
                     "graph '%s': nothing was found that needs at most %" PRIu64
                     " bytes, and that there is nothing is not proved",
                     task->g->name, budget);
}
