/* trace.c -- what a step ran: as a graph, as a problem, planned. See tape_priv.h. */
#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/liveness.h"
#include "runtime/tape/tape_priv.h"

void mpl_trace_fini(mpl_ctx *ctx, mpl_trace *t)
{
    for (uint32_t i = 0; i < t->n_ops; i++)
        t->op[i].kernel->n_held--;
    mpl_graph_free(ctx, t->graph);
    mpl_free_each(ctx, t->op, t->value, t->store, t->operand, t->last, t->result, t->release);
    memset(t, 0, sizeof *t);
}

bool mpl_trace_equal(const mpl_trace *a, const mpl_trace *b)
{
    if (a->n_ops != b->n_ops || a->n_values != b->n_values || a->n_releases != b->n_releases ||
        a->n_operands != b->n_operands || a->n_results != b->n_results)
        return false;
    for (uint32_t i = 0; i < a->n_ops; i++)
        if (a->op[i].kernel != b->op[i].kernel || a->op[i].released != b->op[i].released)
            return false;
    for (uint32_t i = 0; i < a->n_values; i++)
        if (a->value[i].weight != b->value[i].weight)
            return false;
    return a->n_ops == 0 ||
           (memcmp(a->operand, b->operand, a->n_operands * sizeof *a->operand) == 0 &&
            memcmp(a->last, b->last, a->n_operands) == 0 &&
            (a->n_releases == 0 ||
             memcmp(a->release, b->release, a->n_releases * sizeof *a->release) == 0));
}

uint64_t mpl_trace_key(const mpl_trace *t)
{
    uint64_t h = mpl_hash(MPL_HASH_SEED, &t->n_values, sizeof t->n_values);

    for (uint32_t at = 0; at < t->n_ops; at++) {
        h = mpl_hash(h, &t->op[at].kernel->hash, sizeof t->op[at].kernel->hash);
        h = mpl_hash(h, &t->op[at].released, sizeof t->op[at].released);
    }
    h = mpl_hash(h, t->operand, t->n_operands * sizeof *t->operand);
    h = mpl_hash(h, t->last, t->n_operands);
    return t->n_releases > 0 ? mpl_hash(h, t->release, t->n_releases * sizeof *t->release) : h;
}

/* Copies n items of an array of a trace. */
#define TAKE(field, room, n)                                                                       \
    do {                                                                                           \
        MPL_TRY(mpl_reserve(ctx, t.field, t.room, (size_t)(n) + 1));                               \
        if ((n) > 0)                                                                               \
            memcpy(t.field, from->field, (n) * sizeof *t.field);                                   \
    } while (0)

mpl_status mpl_trace_prefix(mpl_ctx *ctx, const mpl_trace *from, uint32_t n_ops, uint32_t n_values,
                            uint32_t n_releases, mpl_trace *out)
{
    mpl_status st = MPL_OK;
    mpl_trace t = {0};
    uint32_t n_operands = n_ops < from->n_ops ? from->op[n_ops].in : from->n_operands;
    uint32_t n_results = n_ops < from->n_ops ? from->op[n_ops].out : from->n_results;

    TAKE(op, op_room, n_ops);
    TAKE(operand, operand_room, n_operands);
    TAKE(last, last_room, n_operands);
    TAKE(result, result_room, n_results);
    TAKE(release, release_room, n_releases);
    MPL_TRY(mpl_reserve(ctx, t.release, t.release_room, (size_t)n_values + 1));
    TAKE(store, store_room, from->n_stores);
    TAKE(value, value_room, n_values);
    while (t.n_stores < from->n_stores && t.store[t.n_stores].birth < n_ops) {
        mpl_traced_store *s = &t.store[t.n_stores++];

        if (s->death > n_ops)
            s->death = MPL_NONE;
    }
    for (uint32_t i = 0; i < n_values; i++)
        t.value[i].read = false; /* what this step read of them is not known; it decides nothing */
    t.n_values = n_values, t.n_operands = n_operands, t.n_results = n_results,
    t.n_releases = n_releases;
    for (uint32_t i = 0; i < n_ops; i++)
        t.op[i].kernel->n_held++;
    t.n_ops = n_ops;
    *out = t;
    memset(&t, 0, sizeof t);
out:
    mpl_trace_fini(ctx, &t);
    return st;
}

/* ---- the graph ---- */

/* Writes into text[140] a name that the graph does not have: `name`, or WHAT.NUMBER. */
static const char *new_name(const mpl_graph *g, const char *name, const char *what, uint32_t number,
                            char *text)
{
    int n = name != NULL ? snprintf(text, 140, "%.100s", name)
                         : snprintf(text, 140, "%.60s.%u", what, number);

    while (mpl_graph_find(g, text) != MPL_NONE && n < 139)
        text[n++] = '_', text[n] = '\0';
    return text;
}

/* Adds a value from outside. A constant of one element has its contents. */
static mpl_status add_outer(mpl_tape *tape, const mpl_trace *t, const mpl_kernel *kernel,
                            uint32_t i, mpl_graph *g)
{
    const mpl_traced *traced = &t->value[g->n_values];
    mpl_value leaf = kernel->g->op_in[i], added;
    char text[140];
    const char *name =
        new_name(g, traced->name, traced->weight != 0 ? "weight" : "input", g->n_values, text);

    return kernel->g->value_data[leaf] != NULL
               ? mpl_graph_add_const(tape->ctx, g, name, traced->type, &traced->shape,
                                     kernel->g->value_data[leaf], false, &added)
               : mpl_graph_add_value(tape->ctx, g, name,
                                     traced->weight != 0 ? MPL_WEIGHT : MPL_INPUT, traced->type,
                                     &traced->shape, &added);
}

static bool among(mpl_value v, const mpl_value *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

/* Appends to in[] what operation `at`, an update of the weight `root`, has to wait for: a result of
 * each operation before it that read the weight. */
static mpl_status wait_for_readers(mpl_ctx *ctx, const mpl_trace *t, uint32_t at, uint32_t root,
                                   mpl_value **in, size_t *room, uint32_t *n)
{
    for (uint32_t j = 0; j < at; j++) {
        mpl_value made = t->result[t->op[j].out];
        bool reads = false;

        for (uint32_t i = t->op[j].in; i < t->op[j + 1].in && !reads; i++)
            reads = t->operand[i] != MPL_NONE && t->value[t->operand[i]].root == root;
        if (!reads || made == MPL_NONE || among(made, *in, *n))
            continue;
        MPL_PASS(mpl_reserve(ctx, *in, *room, (size_t)*n + 1));
        (*in)[(*n)++] = made;
    }
    return MPL_OK;
}

static mpl_status add_op(mpl_tape *tape, const mpl_trace *t, uint32_t at, mpl_graph *g)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = tape->ctx;
    const mpl_kernel *kernel = t->op[at].kernel;
    const char *kind = kernel->g->op_name[0];
    uint32_t n_in = mpl_kernel_n_in(kernel), n_out = mpl_kernel_n_out(kernel), n = n_in, n_attr;
    mpl_value *in = NULL;
    mpl_attr *attr = NULL;
    size_t room = 0;
    char(*text)[140] = NULL;
    const char **name = NULL;

    n_attr = kernel->g->op_attr_begin[1];
    MPL_TRY(mpl_reserve(ctx, in, room, (size_t)n_in + 1));
    MPL_TRY(mpl_new_each(ctx, n_out, text, name));
    MPL_TRY(mpl_new(ctx, attr, n_attr));
    for (uint32_t i = 0; i < n_in; i++) {
        in[i] = t->operand[t->op[at].in + i];
        if (in[i] != MPL_NONE && in[i] == g->n_values)
            MPL_TRY(add_outer(tape, t, kernel, i, g));
    }
    for (uint32_t i = 0; i < n_out; i++) {
        uint32_t updated = mpl_kernel_updated(kernel, i);

        if (updated != MPL_NONE)
            MPL_TRY(wait_for_readers(ctx, t, at, t->value[in[updated]].root, &in, &room, &n));
        if (kernel->g->op_out[i] != MPL_NONE)
            name[i] = new_name(g, NULL, kind, t->result[t->op[at].out + i], text[i]);
    }
    for (uint32_t i = 0; i < n_attr; i++)
        attr[i] = mpl_attr_at(kernel->g, i);
    MPL_TRY(mpl_graph_add_op(ctx, g, (mpl_op_kind)kernel->g->op_kind[0], kind, n, in, n_attr, attr,
                             n_out, name, NULL));
out:
    mpl_free_each(ctx, in, attr, text, name);
    return st;
}

/* Outputs: the values that were read and those alive at the end; if there are none, the unused
 * results. */
static mpl_status add_outputs(mpl_tape *tape, const mpl_trace *t, mpl_graph *g)
{
    for (uint32_t v = 0; v < t->n_values; v++) {
        const mpl_traced *value = &t->value[v];

        if (value->made &&
            (value->read || (value->store != MPL_NONE && t->store[value->store].death == MPL_NONE)))
            MPL_PASS(mpl_graph_add_output(tape->ctx, g, v));
    }
    for (uint32_t v = 0; g->n_outputs == 0 && v < t->n_values; v++)
        if (t->value[v].made && !among(v, t->operand, t->n_operands)) {
            MPL_PASS(mpl_graph_add_output(tape->ctx, g, v));
            v = t->n_values;
        }
    return MPL_OK;
}

mpl_status mpl_trace_graph(mpl_tape *tape, mpl_trace *t)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = NULL;

    MPL_TRY(mpl_reserve(tape->ctx, t->op, t->op_room, (size_t)t->n_ops + 1));
    t->op[t->n_ops] = (mpl_traced_op){NULL, t->n_operands, t->n_results, t->n_releases, 0};
    MPL_TRY(mpl_graph_new(tape->ctx, "trace", &g));
    for (uint32_t at = 0; at < t->n_ops; at++)
        MPL_TRY(add_op(tape, t, at, g));
    MPL_TRY(add_outputs(tape, t, g));
    MPL_TRY(mpl_graph_finish(tape->ctx, g));
    t->hash = mpl_graph_hash(g);
    t->graph = g, g = NULL;
out:
    mpl_graph_free(tape->ctx, g);
    return st;
}

/* ---- the problem ---- */

static bool is_planned(const mpl_traced_store *store)
{
    return store->bytes > 0 && store->death != MPL_NONE;
}

/* The store that operand i of an operation ends with it, as far as the plan is concerned; MPL_NONE:
 * it lives on, or lies elsewhere. */
static uint32_t ending(const mpl_trace *t, uint32_t at, uint32_t i)
{
    uint32_t v = t->operand[t->op[at].in + i];
    uint32_t s = v != MPL_NONE ? t->value[v].store : MPL_NONE;

    return s != MPL_NONE && is_planned(&t->store[s]) && t->store[s].death == at + 1 &&
                   t->store[s].taken
               ? s
               : MPL_NONE;
}

/* Appends the pairs of operation `at`: its first result over an operand that ends with the call.
 * root is scratch of the kernel's values. */
static void add_pairs(const mpl_trace *t, uint32_t at, const mpl_buffer *buffer, mpl_value *root,
                      mpl_problem *p)
{
    const mpl_kernel *kernel = t->op[at].kernel;
    uint32_t n_in = mpl_kernel_n_in(kernel), first = p->n_in_place;
    uint32_t made = mpl_kernel_n_out(kernel) > 0 ? t->result[t->op[at].out] : MPL_NONE;
    uint32_t out = made != MPL_NONE ? t->value[made].store : MPL_NONE;

    if (out == MPL_NONE || !is_planned(&t->store[out]) || t->store[out].birth != at)
        return;
    for (mpl_value v = 0; v < kernel->g->n_values; v++)
        root[v] = v;
    for (uint32_t i = 0; i < n_in; i++) /* operands of one store have one root */
        for (uint32_t j = 0; j < i; j++)
            if (kernel->g->op_in[i] != MPL_NONE && kernel->g->op_in[j] != MPL_NONE &&
                ending(t, at, i) != MPL_NONE && ending(t, at, i) == ending(t, at, j))
                root[kernel->g->op_in[i]] = root[kernel->g->op_in[j]];
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t in = ending(t, at, i), last = p->n_in_place;

        if (in == MPL_NONE || in == out || t->store[out].bytes > t->store[in].bytes ||
            !mpl_in_place_operand(kernel->g, root, NULL, 0, i) ||
            among(buffer[in], p->in_place_in + first, last - first))
            continue;
        for (; last > first && p->in_place_in[last - 1] > buffer[in]; last--)
            p->in_place_in[last] = p->in_place_in[last - 1];
        p->in_place_in[last] = buffer[in];
        p->in_place_out[p->n_in_place] = buffer[out];
        p->in_place_step[p->n_in_place++] = at;
    }
}

static mpl_status add_all_pairs(mpl_ctx *ctx, const mpl_trace *t, const mpl_buffer *buffer,
                                mpl_problem *p)
{
    mpl_status st = MPL_OK;
    uint32_t most = 0;
    mpl_value *root = NULL;

    for (uint32_t at = 0; at < t->n_ops; at++)
        if (t->op[at].kernel->g->n_values > most)
            most = t->op[at].kernel->g->n_values;
    MPL_TRY(mpl_new(ctx, root, most));
    MPL_TRY(mpl_new_each(ctx, t->n_operands, p->in_place_in, p->in_place_out, p->in_place_step));
    for (uint32_t at = 0; at < t->n_ops; at++)
        add_pairs(t, at, buffer, root, p);
out:
    mpl_free(ctx, root);
    return st;
}

/* Buffers: the stores that are planned, then the workspaces. */
static mpl_status make_problem(mpl_tape *tape, const mpl_trace *t, mpl_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_buffer *buffer = NULL;
    uint32_t n = 0, b = 0;

    MPL_TRY(mpl_new(tape->ctx, buffer, t->n_stores));
    for (uint32_t s = 0; s < t->n_stores; s++)
        if (is_planned(&t->store[s]))
            buffer[s] = n++;
    for (uint32_t at = 0; at < t->n_ops; at++)
        n += t->op[at].kernel->workspace_bytes > 0;
    MPL_TRY(mpl_problem_new(tape->ctx, "trace", n, &p));
    p->n_steps = t->n_ops;
    for (uint32_t i = 0; i < n; i++)
        p->align[i] = tape->options.backend->align;
    for (uint32_t s = 0; s < t->n_stores; s++)
        if (is_planned(&t->store[s])) {
            p->bytes[b] = t->store[s].bytes;
            p->birth[b] = t->store[s].birth;
            p->death[b++] = t->store[s].death;
        }
    for (uint32_t at = 0; at < t->n_ops; at++)
        if (t->op[at].kernel->workspace_bytes > 0) {
            p->bytes[b] = t->op[at].kernel->workspace_bytes;
            p->birth[b] = at;
            p->death[b++] = at + 1;
        }
    MPL_TRY(add_all_pairs(tape->ctx, t, buffer, p));
    *out = p, p = NULL;
out:
    mpl_problem_free(tape->ctx, p);
    mpl_free(tape->ctx, buffer);
    return st;
}

mpl_status mpl_trace_plan(mpl_tape *tape, mpl_trace *t)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;
    uint32_t b = 0;

    MPL_TRY(make_problem(tape, t, &p));
    t->claim = MPL_OPTIMAL; /* of nothing */
    if (p->n == 0)
        goto out;
    run = mpl_run_default(tape->ctx);
    run.budget_ticks = tape->options.budget_ticks;
    MPL_TRY(mpl_planner_run(tape->options.planner, &run, p, &plan));
    MPL_TRY(mpl_run_decided(&run, plan));
    MPL_TRY(mpl_peak_live(tape->ctx, p, 0, &t->bound_bytes, NULL, NULL));
    t->plan_bytes = plan->peak_bytes;
    t->plan_bound = plan->bound_bytes;
    t->claim = plan->claim;
    for (uint32_t s = 0; s < t->n_stores; s++)
        if (is_planned(&t->store[s]))
            t->store[s].offset = plan->offset[b++];
    for (uint32_t at = 0; at < t->n_ops; at++)
        if (t->op[at].kernel->workspace_bytes > 0)
            t->op[at].offset = plan->offset[b++];
out:
    mpl_plan_free(tape->ctx, plan);
    mpl_problem_free(tape->ctx, p);
    return st;
}
