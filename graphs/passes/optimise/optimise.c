/* optimise.c -- runs passes in turns, and applies their edits. See optimise.h. */
#include "graphs/ir/counts.h"
#include "graphs/passes/optimise/optimise_priv.h"

#include "graphs/passes/copy.h"
#include "graphs/passes/passes.h"

const mpl_pass_info mpl_pass_table[MPL_N_PASSES] = {
#define PASS(name, tolerance, about) {#name, about, tolerance},
#include "graphs/passes/passes.def"
#undef PASS
};

typedef mpl_status match(mpl_match *m, mpl_op op, mpl_edit *edit);
static match *const match_table[MPL_N_PASSES] = {
#define PASS(name, tolerance, about) mpl_match_##name,
#include "graphs/passes/passes.def"
#undef PASS
};

enum { MOST_TURNS = 100 }; /* every edit simplifies a graph; so many turns have never been seen */

/* ---- the list of passes ---- */

static bool same_word(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* Sets one name of the list. False: unknown name. */
static bool set_word(const char *word, size_t n, mpl_pass_set *set)
{
    bool known = same_word(word, n, "unsafe") || same_word(word, n, "all");

    set->unsafe = set->unsafe || same_word(word, n, "unsafe");
    for (int i = 0; i < MPL_N_PASSES; i++) {
        bool named = same_word(word, n, mpl_pass_table[i].name);

        set->on[i] = set->on[i] || named || (same_word(word, n, "all") && i != MPL_PASS_bn_fma);
        known = known || named;
    }
    return known;
}

mpl_status mpl_pass_set_parse(mpl_ctx *ctx, const char *text, mpl_pass_set *out)
{
    mpl_pass_set set = {0};
    bool any = false;
    char names[800];
    int n_names = 0;

    if (strcmp(text, "none") == 0)
        goto done;
    for (int i = 0; i < MPL_N_PASSES; i++)
        n_names += snprintf(names + n_names, sizeof names - (size_t)n_names, " %s",
                            mpl_pass_table[i].name);
    for (const char *at = text; at != NULL;
         at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        size_t n = strcspn(at, ",");

        if (!set_word(at, n, &set))
            return MPL_REFUSE(
                ctx, "optimise: no pass '%.*s'; there is none, by itself, and all, unsafe,%s",
                (int)(n < 40 ? n : 40), at, names);
    }
    for (int i = 0; i < MPL_N_PASSES; i++)
        any = any || set.on[i];
    if (!any)
        return MPL_REFUSE(ctx, "optimise: unsafe goes with passes, as in all,unsafe");
done:
    *out = set;
    return MPL_OK;
}

bool mpl_pass_set_reads_weights(const mpl_pass_set *set)
{
    return set->on[MPL_PASS_bn_scale] || set->on[MPL_PASS_conv_bn] ||
           set->on[MPL_PASS_conv_scale] || set->on[MPL_PASS_bn_fma];
}

/* ---- one pass: finding edits ---- */

/* An alias would rename an output of the graph. */
static bool renames_output(const mpl_graph *g, mpl_op op)
{
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE && g->value_role[g->op_out[i]] == MPL_OUTPUT)
            return true;
    return false;
}

static mpl_status find(mpl_ctx *ctx, const mpl_graph *g, int pass, const mpl_pass_set *set,
                       const mpl_weight_source *weights, mpl_edit *edit, uint32_t *n_found)
{
    mpl_status st = MPL_OK;
    mpl_match m = {.ctx = ctx, .g = g, .unsafe = set->unsafe, .weights = weights, .n_slots = 4};

    while (m.n_slots / 2 <= g->n_ops)
        m.n_slots *= 2;
    if (pass == MPL_PASS_cse) {
        MPL_TRY(mpl_new(ctx, m.slot, m.n_slots));
        MPL_TRY(mpl_new(ctx, m.number, g->n_values));
        for (uint32_t i = 0; i < m.n_slots; i++)
            m.slot[i] = MPL_NONE;
        for (mpl_value v = 0; v < g->n_values; v++)
            m.number[v] = v;
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_edit *e = &edit[op];

        if (g->op_block[op] != 0 || (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0)
            continue;
        e->from = MPL_NONE;
        MPL_TRY(match_table[pass](&m, op, e));
        if ((e->kind == MPL_EDIT_ALIAS || e->kind == MPL_EDIT_TWIN) && renames_output(g, op))
            e->kind = MPL_EDIT_NONE;
        *n_found += e->kind != MPL_EDIT_NONE;
    }
out:
    mpl_free_each(ctx, m.slot, m.number);
    return st;
}

/* ---- one pass: applying edits ---- */

typedef struct rebuild {
    mpl_ctx *ctx;
    mpl_graph *g, *to;
    mpl_value *map;
    uint32_t *block;
    uint32_t n_made; /* constants so far; part of their names */
} rebuild;

/* Adds a constant, named after output 0 of `op`; with the very name when it replaces that. */
static mpl_status add_fresh(rebuild *self, mpl_op op, const mpl_fresh *fresh, bool as_output,
                            mpl_value *out)
{
    mpl_status st = MPL_OK;
    const char *base = self->g->value_name[mpl_op_output(self->g, op, 0)];
    size_t size = strlen(base) + 24;
    char *name = NULL;

    MPL_TRY(mpl_new(self->ctx, name, size));
    snprintf(name, size, "%s", base);
    while (!as_output && (mpl_graph_find(self->g, name) != MPL_NONE ||
                          mpl_graph_find(self->to, name) != MPL_NONE))
        snprintf(name, size, "%s.const%" PRIu32, base, self->n_made++);
    MPL_TRY(mpl_graph_add_const(self->ctx, self->to, name, fresh->type, &fresh->shape, fresh->data,
                                fresh->splat, out));
out:
    mpl_free(self->ctx, name);
    return st;
}

/* Attributes of `from` that the edit does not override, then its own. */
static uint32_t gather_attrs(const mpl_graph *g, const mpl_edit *edit, mpl_attr *attr)
{
    uint32_t n = 0;

    for (uint32_t i = edit->from != MPL_NONE ? g->op_attr_begin[edit->from] : 0;
         edit->from != MPL_NONE && i < g->op_attr_begin[edit->from + 1]; i++) {
        bool own = false;

        for (uint32_t k = 0; k < edit->n_attr; k++)
            own = own || g->attr_key[i] == (uint16_t)edit->attr[k].key;
        if (!own)
            attr[n++] = mpl_attr_at(g, i);
    }
    for (uint32_t k = 0; k < edit->n_attr; k++)
        attr[n++] = edit->attr[k];
    return n;
}

static mpl_status replace(rebuild *self, mpl_op op, const mpl_edit *edit)
{
    mpl_value in[MPL_EDIT_IN], fresh[MPL_EDIT_FRESH] = {MPL_NONE, MPL_NONE};
    mpl_value out = mpl_op_output(self->g, op, 0);
    mpl_attr attr[MPL_N_ATTRS + MPL_EDIT_ATTRS]; /* an operation has each key once */
    uint32_t n_attr = gather_attrs(self->g, edit, attr);

    for (uint32_t k = 0; k < MPL_EDIT_FRESH; k++)
        if (edit->fresh[k].data != NULL)
            MPL_PASS(add_fresh(self, op, &edit->fresh[k], false, &fresh[k]));
    for (uint32_t i = 0; i < edit->n_in; i++)
        in[i] = edit->in[i] == MPL_FRESH(0)   ? fresh[0]
                : edit->in[i] == MPL_FRESH(1) ? fresh[1]
                : edit->in[i] == MPL_NONE     ? MPL_NONE
                                              : self->map[edit->in[i]];
    MPL_PASS(mpl_graph_add_op(self->ctx, self->to, edit->op_kind, self->g->op_name[op], edit->n_in,
                              in, n_attr, attr, 1, (const char *const *)&self->g->value_name[out],
                              &self->map[out]));
    mpl_assert(mpl_shape_equal(&self->to->value_shape[self->map[out]], &self->g->value_shape[out]));
    return MPL_OK;
}

static mpl_status make_op(rebuild *self, mpl_op op, const mpl_edit *edit)
{
    const mpl_graph *g = self->g;

    switch (edit->kind) {
    case MPL_EDIT_ALIAS:
        self->map[mpl_op_output(g, op, 0)] = self->map[edit->in[0]];
        return MPL_OK;
    case MPL_EDIT_TWIN:
        for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
            if (mpl_op_output(g, op, i) != MPL_NONE)
                self->map[mpl_op_output(g, op, i)] = self->map[mpl_op_output(g, edit->from, i)];
        return MPL_OK;
    case MPL_EDIT_REPLACE:
        return replace(self, op, edit);
    case MPL_EDIT_CONSTANT:
        return add_fresh(self, op, &edit->fresh[0], true, &self->map[mpl_op_output(g, op, 0)]);
    case MPL_EDIT_FOLD:
        return mpl_copy_op_as(self->ctx, g, op, self->to, self->map, self->block,
                              &(mpl_copy_as){.folded = true});
    default:
        return mpl_copy_op(self->ctx, g, op, self->to, self->map, self->block);
    }
}

static mpl_status make_all(rebuild *self, const mpl_edit *edit)
{
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    while ((item = mpl_walk_next(self->g, &walk)) != MPL_ITEM_END)
        if (item == MPL_ITEM_OP)
            MPL_PASS(make_op(self, walk.op, &edit[walk.op]));
        else if (item == MPL_ITEM_VALUE)
            MPL_PASS(
                mpl_copy_value(self->ctx, self->g, walk.value, self->to, &self->map[walk.value]));
        else if (item == MPL_ITEM_OPEN)
            MPL_PASS(mpl_copy_open(self->ctx, self->g, walk.block, self->to, self->map,
                                   &self->block[walk.block]));
        else
            MPL_PASS(mpl_copy_close(self->ctx, self->g, walk.block, self->to, self->map));
    for (uint32_t i = 0; i < self->g->n_outputs; i++)
        MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->map[self->g->output[i]]));
    MPL_PASS(mpl_graph_finish(self->ctx, self->to));
    return mpl_graph_prune(self->ctx, &self->to);
}

static mpl_status apply(mpl_ctx *ctx, mpl_graph **g, const mpl_edit *edit)
{
    mpl_status st = MPL_OK;
    rebuild r = {.ctx = ctx, .g = *g};

    MPL_TRY(mpl_new(ctx, r.map, r.g->n_values));
    MPL_TRY(mpl_new(ctx, r.block, r.g->n_blocks));
    MPL_TRY(mpl_graph_new(ctx, r.g->name, &r.to));
    MPL_TRY(make_all(&r, edit));
    mpl_graph_free(ctx, *g);
    *g = r.to, r.to = NULL;
out:
    mpl_graph_free(ctx, r.to);
    mpl_free_each(ctx, r.map, r.block);
    return st;
}

/* ---- passes in turns ---- */

static int64_t made_bytes(const mpl_graph *g)
{
    int64_t sum = 0;

    for (mpl_value v = 0; v < g->n_values; v++)
        sum += g->value_op[v] != MPL_NONE ? (int64_t)g->value_bytes[v] : 0;
    return sum;
}

/* One turn of one pass; *changed: the graph changed. */
static mpl_status turn(mpl_ctx *ctx, mpl_graph **g, int pass, const mpl_pass_set *set,
                       const mpl_weight_source *weights, mpl_pass_count *count, bool *changed)
{
    mpl_status st = MPL_OK;
    uint32_t n_ops = (*g)->n_ops, n_found = 0;
    int64_t bytes = made_bytes(*g);
    mpl_edit *edit = NULL;

    if (pass == MPL_PASS_dead_code) {
        MPL_TRY(mpl_graph_prune(ctx, g));
        n_found = n_ops - (*g)->n_ops;
    } else {
        MPL_TRY(mpl_new(ctx, edit, n_ops));
        MPL_TRY(find(ctx, *g, pass, set, weights, edit, &n_found));
        if (n_found > 0)
            MPL_TRY(apply(ctx, g, edit));
    }
    count->places += n_found;
    count->ops_less += (int64_t)n_ops - (int64_t)(*g)->n_ops;
    count->bytes_less += bytes - made_bytes(*g);
    *changed = *changed || n_found > 0;
out:
    for (mpl_op op = 0; op < n_ops && edit != NULL; op++)
        for (uint32_t k = 0; k < MPL_EDIT_FRESH; k++)
            mpl_free(ctx, edit[op].fresh[k].data);
    mpl_free(ctx, edit);
    return st;
}

/* Refuses a graph that writes into values: reads must precede the write, which passes may break. */
static mpl_status refuse_writes(mpl_ctx *ctx, const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

        if (mpl_n_updates(kind) > 0 ||
            (mpl_op_table[kind].traits & (MPL_PROGRAM | MPL_MUTATES)) != 0)
            return MPL_REFUSE(
                ctx,
                "optimise: operation '%s' (%s) writes over what was there; passes are for "
                "graphs where "
                "none does",
                g->op_name[op], mpl_op_table[kind].name);
    }
    return MPL_OK;
}

mpl_status mpl_graph_optimise(mpl_ctx *ctx, mpl_graph **g, const mpl_pass_set *set,
                              const mpl_weight_source *weights, mpl_pass_count *count)
{
    mpl_pass_count own[MPL_N_PASSES] = {0};
    bool changed = true;

    MPL_PASS(refuse_writes(ctx, *g));
    for (int i = 0; i < MOST_TURNS && changed; i++) {
        changed = false;
        for (int pass = 0; pass < MPL_N_PASSES; pass++)
            if (set->on[pass])
                MPL_PASS(turn(ctx, g, pass, set, weights, &own[pass], &changed));
    }
    if (count != NULL)
        memcpy(count, own, sizeof own);
    return MPL_OK;
}
