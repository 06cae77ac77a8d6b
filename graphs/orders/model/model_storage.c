/* model_storage.c -- the memory model of a graph: which bytes its operations make and need, with
 * concats and splits that are decided, or for all decisions at once. See model.h.
 *
 * Idea     Storage is cut into parts (cuts.h); a value lies in a list of them. In the relaxed model
 *          the result of a concat has the parts of its operands, wherever they lie: those bytes are
 *          somewhere as long as a value that contains them is read. A copy only adds to them.
 * Source   this project */
#include "graphs/orders/model/model_priv.h"

#include "graphs/problem/cuts.h"
#include "graphs/problem/derive/concats.h"
#include "graphs/problem/liveness.h"

static const uint64_t MOST = INT64_MAX / 4; /* the sum of three such numbers does not overflow */

enum { READ = 1, KEPT };

typedef struct source {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    bool relaxed, copy_splits; /* copy_splits: relaxed over splits that copy, too */
    mpl_concats *concats;      /* shared[op]: it shares; relaxed: it may */
    mpl_alias alias;           /* relaxed: with all concats copied */
    mpl_alias apart;           /* relaxed: with all splits copied, too */
    mpl_cuts cuts;
    uint32_t *begin, *count; /* [n_values] into item: the parts that a value lies in */
    size_t n_items, cap;
    uint32_t *item;
    uint64_t *piece_rest; /* [cuts.n] of the values that end in a part [byte] */
    uint8_t *how;         /* [cuts.n] READ: an operation reads it; KEPT: it stays to the end */
    uint8_t *pinned;      /* [n_values] of a root: takes no planned memory */
    uint8_t *tight;       /* [n_values] of a root: it may lie in a box, without padding */
    uint32_t *id;         /* [cuts.n] buffer of a part, or MPL_NONE */
    mpl_order_arcs arcs;
} source;

static uint64_t slots(const source *s, uint64_t bytes)
{
    return (bytes + s->options->align - 1) & ~(uint64_t)(s->options->align - 1);
}

static uint64_t part_bytes(const source *s, uint32_t part)
{
    return s->tight[s->cuts.root[part]] ? s->cuts.bytes[part] : slots(s, s->cuts.bytes[part]);
}

/* Bytes of a part's last slot that stay unused. A copied piece ends where its own storage ends. */
static uint64_t part_rest(const source *s, uint32_t part)
{
    return mpl_max_u64(part_bytes(s, part) - s->cuts.bytes[part], s->piece_rest[part]);
}

static void find_rests(source *s)
{
    for (mpl_value v = 0; v < s->g->n_values; v++)
        for (uint32_t k = 0; k < s->count[v] && s->alias.root[v] != v; k++) {
            uint64_t *rest = &s->piece_rest[s->item[s->begin[v] + k]];

            *rest = mpl_max_u64(*rest, slots(s, s->g->value_bytes[v]) - s->g->value_bytes[v]);
        }
}

/* ---- storage ---- */

/* Whether it is undecided if the operands of `op` lie in its result. */
static bool is_open(const source *s, mpl_op op)
{
    return s->relaxed && op != MPL_NONE && s->concats->shared[op];
}

/* Whether the concat `op` may share if all splits copy: its operands are made by operations and
 * differ, and neither they nor the result are outputs of the graph. Their order in the result does
 * not matter. */
static bool may_share(const source *s, mpl_op op, const uint8_t *is_output)
{
    const mpl_graph *g = s->g;
    mpl_value out = mpl_op_output(g, op, 0);

    if (g->op_kind[op] != MPL_OP_concat || out == MPL_NONE || is_output[s->apart.root[out]])
        return false;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value root = s->apart.root[g->op_in[i]];

        if (g->value_op[root] == MPL_NONE || is_output[root])
            return false;
        for (uint32_t k = g->op_in_begin[op]; k < i; k++)
            if (s->apart.root[g->op_in[k]] == root)
                return false;
    }
    return true;
}

/* Which concats may share depends on which splits copy: takes the concats that share under some
 * choice. If no split copies, a result that contains a pinned output takes no planned memory. Such
 * a result stays decided; only its operands may lie in a box. */
static mpl_status open_concats(source *s)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    uint8_t *is_output = NULL, *pinned = NULL; /* roots, where all splits copy, and where none does
                                                */

    MPL_TRY(mpl_new_each(s->ctx, g->n_values, is_output, pinned));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        is_output[s->apart.root[g->output[i]]] = 1;
        pinned[s->alias.root[g->output[i]]] = s->options->pin_outputs;
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (!may_share(s, op, is_output))
            continue;
        if (!pinned[s->alias.root[mpl_op_output(g, op, 0)]])
            s->concats->shared[op] = 1;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            s->tight[s->alias.root[g->op_in[i]]] = 1;
    }
out:
    mpl_free_each(s->ctx, is_output, pinned);
    return st;
}

static mpl_status find_storage(source *s)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    const mpl_problem_options *o = s->options;
    mpl_alias_options how = {o->views, o->align,       NULL, o->in_place && o->pin_outputs,
                             o->boxes, o->split_copied};
    uint8_t *all = NULL;

    if (s->relaxed) {
        MPL_TRY(mpl_new(s->ctx, all, g->n_ops));
        memset(all, 1, g->n_ops);
        how.copied = all;
        MPL_TRY(mpl_alias_new(s->ctx, g, &how, &s->apart));
        how.copied = NULL;
    } else if (s->concats->n > 0) {
        how.shared = s->concats->shared;
    }
    MPL_TRY(mpl_alias_new(s->ctx, g, &how, &s->alias));
    if (s->copy_splits && o->concat != MPL_CONCAT_COPY && o->views && g->n_blocks == 1)
        MPL_TRY(open_concats(s));
    MPL_TRY(mpl_cuts_new(s->ctx, g, &s->alias,
                         s->relaxed    ? MPL_CUT_ALL
                         : o->in_place ? MPL_CUT_NOT_WRITTEN
                                       : MPL_CUT_MADE,
                         o->align, &s->cuts));
out:
    mpl_free(s->ctx, all);
    return st;
}

static mpl_status add_items(source *s, mpl_value v, uint32_t first, uint32_t n)
{
    MPL_PASS(mpl_reserve(s->ctx, s->item, s->cap, s->n_items + n));
    for (uint32_t k = 0; k < n; k++)
        s->item[s->n_items++] = first + k;
    s->count[v] += n;
    return MPL_OK;
}

/* The parts of an undecided concat's result are those of its operands. */
static mpl_status join_parts(source *s, mpl_op op)
{
    const mpl_graph *g = s->g;
    mpl_value out = mpl_op_output(g, op, 0);

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value v = g->op_in[i];

        MPL_PASS(mpl_reserve(s->ctx, s->item, s->cap, s->n_items + s->count[v]));
        for (uint32_t k = 0; k < s->count[v]; k++)
            s->item[s->n_items++] = s->item[s->begin[v] + k];
        s->count[out] += s->count[v];
        s->tight[s->alias.root[v]] = 1;
    }
    return MPL_OK;
}

/* Whether v is a copied piece that could lie in an output if its split or slice copied. */
static bool may_lie_in_output(const source *s, mpl_value v)
{
    return s->relaxed && s->apart.root[v] != s->alias.root[v] && s->apart.root[v] != v;
}

/* Lists the parts of v. A part of an undecided concat's result may need no bytes of its own. */
static mpl_status find_parts(source *s, mpl_value v)
{
    mpl_value root = s->alias.root[v];

    s->begin[v] = (uint32_t)s->n_items;
    if (may_lie_in_output(s, v))
        return MPL_OK;
    if (is_open(s, s->g->value_op[root])) {
        if (v == root) {
            MPL_PASS(join_parts(s, s->g->value_op[v]));
        } else if (s->g->value_bytes[v] == s->g->value_bytes[root]) {
            s->begin[v] = s->begin[root];
            s->count[v] = s->count[root];
        }
        return MPL_OK;
    }
    if (mpl_cuts_cut(&s->cuts, &s->alias, v))
        MPL_PASS(add_items(s, v, s->cuts.first[v], s->cuts.count[v]));
    else
        MPL_PASS(add_items(s, v, s->cuts.first[root], s->cuts.count[root]));
    return MPL_OK;
}

/* Operands come before results, so their parts are known. */
static mpl_status find_all_parts(source *s)
{
    const mpl_graph *g = s->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] == MPL_NONE)
            MPL_PASS(find_parts(s, v));
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE)
                MPL_PASS(find_parts(s, g->op_out[i]));
    return MPL_OK;
}

/* Whether `op` only renames storage, so that none has to exist while it runs. In an exact model
 * this holds only for storage that is cut into parts; live ranges, too, count operations on the
 * rest. */
static bool skips(const source *s, mpl_op op, mpl_value v)
{
    if (s->relaxed)
        return s->alias.nothing[op] || s->concats->shared[op];
    return s->alias.nothing[op] && mpl_cuts_cut(&s->cuts, &s->alias, v);
}

static void mark(source *s, mpl_value v, uint8_t how)
{
    for (uint32_t k = 0; k < s->count[v]; k++)
        s->how[s->item[s->begin[v] + k]] = how;
}

/* Leaves out storage in other pools; for an undecided concat, operands and result alike. */
static mpl_status leave_pools(source *s)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    uint8_t *part = NULL;

    if (s->options->own_pools == 0)
        goto out;
    MPL_TRY(mpl_new(s->ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = s->alias.root[v];

        if (part[v] != MPL_PART_NONE && (s->options->own_pools >> part[v] & 1) != 0 &&
            (root == v || g->value_role[root] != MPL_WEIGHT))
            s->pinned[root] = 1;
    }
    for (mpl_op op = g->n_ops; op-- > 0;)
        for (uint32_t i = g->op_in_begin[op]; is_open(s, op) && i < g->op_in_begin[op + 1]; i++)
            s->pinned[s->alias.root[g->op_in[i]]] |= s->pinned[mpl_op_output(g, op, 0)];
out:
    mpl_free(s->ctx, part);
    return st;
}

static mpl_status mark_roots(source *s)
{
    const mpl_graph *g = s->g;
    const mpl_problem_options *o = s->options;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            if (g->op_in[i] != MPL_NONE && !skips(s, op, g->op_in[i]))
                mark(s, g->op_in[i], READ);
    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_role[v] == MPL_WEIGHT)
            mark(s, v, KEPT);
        s->pinned[v] = (g->value_role[v] == MPL_INPUT && o->pin_inputs) ||
                       (g->value_role[v] == MPL_WEIGHT && o->pin_weights) || g->value_bytes[v] == 0;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mark(s, g->output[i], KEPT);
        s->pinned[s->alias.root[g->output[i]]] |= o->pin_outputs;
    }
    return leave_pools(s);
}

/* ---- buffers ---- */

static mpl_status add_bytes(const source *s, const char *what, uint64_t bytes, uint64_t *sum)
{
    if (bytes > MOST || !mpl_add_bytes(*sum, bytes, sum) || *sum > MOST)
        return MPL_REFUSE(s->ctx, "the %s of '%.100s' together pass 2^61 bytes", what, s->g->name);
    return MPL_OK;
}

/* Makes a buffer of each part that is read. An input that is neither pinned nor read needs bytes at
 * the first step only, whichever operation that is. It is left out, since bounds must hold for all
 * orders. */
static mpl_status add_buffers(source *s, mpl_order_model *m)
{
    const mpl_graph *g = s->g;
    uint64_t sum = 0;

    m->n_buffers = 0;
    for (uint32_t i = 0; i < s->cuts.n; i++) {
        mpl_value root = s->cuts.root[i];
        bool from_start = g->value_op[root] == MPL_NONE;

        s->id[i] = MPL_NONE;
        if (s->pinned[root] || (s->how[i] == 0 && from_start) || is_open(s, g->value_op[root]))
            continue;
        MPL_PASS(
            add_bytes(s, "values", s->cuts.bytes[i] > MOST ? MOST + 1 : part_bytes(s, i), &sum));
        if (s->how[i] == 0)
            continue;
        s->id[i] = m->n_buffers;
        m->bytes[m->n_buffers] = part_bytes(s, i);
        m->rest[m->n_buffers] = part_rest(s, i);
        m->kept[m->n_buffers] = s->how[i] == KEPT;
        m->from_start[m->n_buffers] = from_start;
        m->n_buffers++;
    }
    return MPL_OK;
}

static mpl_status add_workspaces(source *s, mpl_order_model *m)
{
    const uint64_t *bytes = s->options->op_workspace_bytes;
    uint64_t sum = 0;

    if (!s->options->plan_workspaces || s->g->n_blocks != 1 || bytes == NULL)
        return MPL_OK;
    for (mpl_op op = 0; op < s->g->n_ops; op++) {
        MPL_PASS(
            add_bytes(s, "workspaces", bytes[op] > MOST ? MOST + 1 : slots(s, bytes[op]), &sum));
        m->extra[op] += slots(s, bytes[op]);
        m->extra_rest[op] = mpl_max_u64(m->extra_rest[op], slots(s, bytes[op]) - bytes[op]);
    }
    return MPL_OK;
}

/* Adds what `op` makes of v: buffers, and the bytes of parts that are never read. */
static mpl_status add_result(source *s, mpl_order_model *m, mpl_op op, mpl_value v)
{
    for (uint32_t k = 0; k < s->count[v]; k++) {
        uint32_t part = s->item[s->begin[v] + k], b = s->id[part];

        if (s->pinned[s->cuts.root[part]])
            continue;
        if (s->how[part] == 0) {
            m->extra[op] += part_bytes(s, part);
            m->extra_rest[op] = mpl_max_u64(m->extra_rest[op], part_rest(s, part));
        } else if (b != MPL_NONE && !m->from_start[b]) {
            MPL_PASS(mpl_order_add(s->ctx, &s->arcs.makers, b, op));
        }
    }
    return MPL_OK;
}

static mpl_status add_makers(source *s, mpl_order_model *m)
{
    const mpl_graph *g = s->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE && !s->alias.nothing[op] && !is_open(s, op))
                MPL_PASS(add_result(s, m, op, g->op_out[i]));
    return MPL_OK;
}

/* ---- operations ---- */

/* The single part that `out`, which `op` makes, fills alone, or MPL_NONE. */
static uint32_t own_part(const source *s, mpl_op op, mpl_value out)
{
    if (s->alias.nothing[op] || s->count[out] != 1 ||
        (s->alias.root[out] != out && !mpl_cuts_cut(&s->cuts, &s->alias, out)))
        return MPL_NONE;
    return s->item[s->begin[out]];
}

/* Bytes of output 0 of `op` if it may overwrite an operand; else 0. */
static uint64_t bytes_to_save(const source *s, mpl_op op)
{
    mpl_value out = s->g->op_out_begin[op] < s->g->op_out_begin[op + 1]
                        ? s->g->op_out[s->g->op_out_begin[op]]
                        : MPL_NONE;
    uint64_t sum = 0;

    if (!s->options->in_place || out == MPL_NONE || s->pinned[s->alias.root[out]])
        return 0;
    if (!s->relaxed)
        return own_part(s, op, out) == MPL_NONE ? 0 : part_bytes(s, own_part(s, op, out));
    if (s->alias.nothing[op] || is_open(s, op) || s->apart.root[out] != out)
        return 0;
    for (uint32_t k = 0; k < s->count[out]; k++)
        sum += part_bytes(s, s->item[s->begin[out] + k]);
    return sum;
}

/* Whether output 0 of `op` may overwrite its input i, which lies in planned storage. */
static bool may_overwrite(const source *s, mpl_op op, uint32_t i)
{
    mpl_value v = mpl_op_input(s->g, op, i), out = mpl_op_output(s->g, op, 0);

    if (s->relaxed)
        return mpl_in_place_operand(s->g, s->apart.root, s->apart.offset, op, i);
    if (mpl_cuts_cut(&s->cuts, &s->alias, v))
        return s->alias.root[v] != s->alias.root[out] &&
               mpl_cuts_operand(s->g, &s->alias, &s->cuts, op, i);
    return !mpl_alias_strided(&s->alias, v) &&
           mpl_in_place_operand(s->g, s->alias.root, s->alias.offset, op, i);
}

/* Adds the way to write over v, or over those parts of it that are not kept. A single part must be
 * large enough. */
static mpl_status add_way(source *s, mpl_order_model *m, mpl_op op, mpl_value v)
{
    uint32_t way = m->n_ways;

    for (uint32_t k = 0; k < s->count[v]; k++) {
        uint32_t b = s->id[s->item[s->begin[v] + k]];

        if (b == MPL_NONE || m->kept[b] || (!s->relaxed && m->bytes[b] < m->saves[op]))
            continue;
        MPL_PASS(mpl_order_add(s->ctx, &s->arcs.under, way, b));
        m->n_ways = way + 1;
    }
    if (m->n_ways > way)
        MPL_PASS(mpl_order_add(s->ctx, &s->arcs.ways, op, way));
    return MPL_OK;
}

static mpl_status add_operand(source *s, mpl_order_model *m, mpl_op op, uint32_t i)
{
    const mpl_graph *g = s->g;
    mpl_value v = g->op_in[g->op_in_begin[op] + i];

    if (v != MPL_NONE && g->value_op[v] != MPL_NONE)
        MPL_PASS(mpl_order_add(s->ctx, &s->arcs.before, op, g->value_op[v]));
    if (v == MPL_NONE || i >= mpl_n_read(g, op) || skips(s, op, v))
        return MPL_OK;
    for (uint32_t k = 0; k < s->count[v]; k++)
        if (s->id[s->item[s->begin[v] + k]] != MPL_NONE)
            MPL_PASS(mpl_order_add(s->ctx, &s->arcs.users, s->id[s->item[s->begin[v] + k]], op));
    if (m->saves[op] > 0 && may_overwrite(s, op, i))
        MPL_PASS(add_way(s, m, op, v));
    return MPL_OK;
}

static mpl_status add_operands(source *s, mpl_order_model *m)
{
    const mpl_graph *g = s->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        m->op[op] = op;
        m->saves[op] = bytes_to_save(s, op);
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            MPL_PASS(add_operand(s, m, op, i));
    }
    return MPL_OK;
}

/* ---- the model ---- */

static mpl_status fill(source *s, mpl_order_model *m)
{
    MPL_PASS(add_buffers(s, m));
    MPL_PASS(add_workspaces(s, m));
    MPL_PASS(add_makers(s, m));
    MPL_PASS(add_operands(s, m));
    return mpl_order_model_finish(s->ctx, m, &s->arcs);
}

static void source_fini(source *s)
{
    void *const arrays[] = {s->begin,  s->count, s->item, s->how,
                            s->pinned, s->tight, s->id,   s->piece_rest};

    mpl_concats_free(s->ctx, s->concats);
    mpl_alias_free(s->ctx, &s->alias);
    mpl_alias_free(s->ctx, &s->apart);
    mpl_cuts_free(s->ctx, &s->cuts);
    MPL_FREE_ALL(s->ctx, arrays);
    mpl_order_arcs_fini(s->ctx, &s->arcs);
}

/* relaxed: over every choice of sharing; otherwise only where concats are undecided. */
static mpl_status make_model(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             bool relaxed, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = options != NULL ? *options : mpl_problem_options_default();
    bool undecided = o.concat == MPL_CONCAT_AUTO && o.concat_shared == NULL;
    source s = {.ctx = ctx, .g = g, .options = &o};
    mpl_order_model *m = NULL;

    if (undecided)
        o.concat = MPL_CONCAT_SHARE;
    MPL_TRY(mpl_concats_new(ctx, g, NULL, &o, &s.concats));
    s.copy_splits = relaxed;
    s.relaxed = relaxed || (undecided && s.concats->n > 0);
    MPL_TRY(mpl_new(ctx, s.tight, g->n_values));
    MPL_TRY(find_storage(&s));
    MPL_TRY(mpl_new_each(ctx, g->n_values, s.begin, s.count));
    MPL_TRY(mpl_new_each(ctx, s.cuts.n, s.how, s.piece_rest));
    MPL_TRY(mpl_new(ctx, s.pinned, g->n_values));
    MPL_TRY(mpl_new(ctx, s.id, s.cuts.n));
    MPL_TRY(find_all_parts(&s));
    find_rests(&s);
    MPL_TRY(mark_roots(&s));
    MPL_TRY(mpl_order_model_alloc(ctx, g->n_ops, s.cuts.n, &m));
    m->relaxed = s.relaxed;
    MPL_TRY(fill(&s, m));
    *out = m, m = NULL;
out:
    mpl_order_model_free(ctx, m);
    source_fini(&s);
    return st;
}

mpl_status mpl_order_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               mpl_order_model **out)
{
    return make_model(ctx, g, options, false, out);
}

mpl_status mpl_order_model_relaxed(mpl_ctx *ctx, const mpl_graph *g,
                                   const mpl_problem_options *options, mpl_order_model **out)
{
    return make_model(ctx, g, options, true, out);
}
