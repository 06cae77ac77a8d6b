/* op_streams.c -- assigns operations to streams and simulates them. See op_streams.h.
 *
 * Idea     Units are numbered by the order, which every stream keeps; so one pass in that order
 *          simulates any assignment.
 * Source   list scheduling: R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J.
 *          Appl. Math., 1969; by longest remaining path with insertion: H. Topcuoglu, S. Hariri,
 *          M.-Y. Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
 *          computing", IEEE TPDS, 2002.
 * Differs  A unit's place in its stream is that of the order, not the first gap. */
#include "graphs/orders/op_streams.h"

#include "graphs/orders/work.h"

#include <stdlib.h>

#define MOST_SIMULATED (UINT64_C(1) << 32) /* units and reads that critical_path may visit */

enum { ESTIMATED_OP_NS = 1000, ESTIMATED_WORK_A_NS = 16 };

static const char *const rule_name[] = {
#define RULE(name, about) #name,
    MPL_STREAM_RULES(RULE)
#undef RULE
};

const char *mpl_stream_rule_name(mpl_stream_rule rule)
{
    return rule_name[rule];
}

const char *mpl_stream_rule_names(void)
{
#define RULE(name, about) ", " #name
    static const char names[] = MPL_STREAM_RULES(RULE);
#undef RULE

    return names + 2;
}

bool mpl_stream_rule_find(const char *name, mpl_stream_rule *rule)
{
    for (uint32_t i = 0; i < MPL_N_STREAM_RULES; i++)
        if (strcmp(name, rule_name[i]) == 0) {
            *rule = (mpl_stream_rule)i;
            return true;
        }
    return false;
}

void mpl_streams_estimate(const mpl_graph *g, uint64_t *cost_ns)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        cost_ns[op] = ESTIMATED_OP_NS + mpl_op_work(g, op) / ESTIMATED_WORK_A_NS;
}

/* ---- units in order ---- */

typedef struct tasks {
    mpl_ctx *ctx;
    uint32_t n;       /* units, numbered by the order */
    uint32_t *of;     /* [n_ops] unit of an operation, blocks included */
    uint64_t *cost;   /* [n] [ns] */
    uint64_t *behind; /* [n] longest path of costs after it [ns] */
    uint32_t *begin;  /* [n + 2] into before: units whose results it reads */
    uint32_t *before;
    uint32_t *stream; /* [n] MPL_NONE: not assigned */
    uint64_t *end;    /* [n] as simulated [ns] */
    uint64_t *free;   /* [streams] when a stream's last unit ends [ns] */
    uint32_t *last;   /* [streams] its last unit so far; MPL_NONE: none */
    uint32_t n_streams;
} tasks;

static void tasks_fini(tasks *t)
{
    mpl_free_each(t->ctx, t->of, t->cost, t->behind, t->begin, t->before, t->stream, t->end,
                  t->free, t->last);
}

/* Lists what each unit reads of others: counts while before == NULL, else enters. */
static void visit_reads(tasks *t, const mpl_graph *g)
{
    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_op[v] == MPL_NONE || g->value_block[v] != 0)
            continue;
        for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++) {
            uint32_t reader = t->of[g->value_use[k]];

            if (t->before == NULL)
                t->begin[reader + 2]++;
            else
                t->before[t->begin[reader + 1]++] = t->of[g->value_op[v]];
        }
    }
}

static mpl_status number_units(tasks *t, const mpl_graph *g, const mpl_op *order,
                               const uint64_t *cost_ns)
{
    uint32_t n = 0;

    MPL_PASS(mpl_new(t->ctx, t->of, g->n_ops));
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (g->op_block[order[i]] == 0)
            t->of[order[i]] = n++;
    MPL_PASS(mpl_new_each(t->ctx, n, t->cost, t->behind, t->stream, t->end));
    t->n = n;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        t->of[op] = t->of[mpl_op_outermost(g, op)];
        t->cost[t->of[op]] = mpl_add_work(t->cost[t->of[op]], cost_ns[op]);
    }
    return MPL_OK;
}

static mpl_status tasks_init(tasks *t, const mpl_graph *g, const mpl_op *order,
                             const uint64_t *cost_ns, uint32_t n_streams)
{
    MPL_PASS(number_units(t, g, order, cost_ns));
    MPL_PASS(mpl_new(t->ctx, t->begin, (size_t)t->n + 2));
    visit_reads(t, g);
    mpl_lists_begin(t->begin, t->n);
    MPL_PASS(mpl_new(t->ctx, t->before, t->begin[t->n + 1]));
    visit_reads(t, g);
    for (uint32_t u = t->n; u-- > 0;)
        for (uint32_t i = t->begin[u]; i < t->begin[u + 1]; i++) {
            uint64_t path = mpl_add_work(t->cost[u], t->behind[u]);

            t->behind[t->before[i]] = mpl_max_u64(t->behind[t->before[i]], path);
        }
    memset(t->stream, 0xff, t->n * sizeof *t->stream);
    t->n_streams = n_streams < t->n ? n_streams : t->n;
    return mpl_new_each(t->ctx, (size_t)t->n_streams + 1, t->free, t->last);
}

/* ---- simulation ---- */

static void empty_streams(tasks *t)
{
    memset(t->free, 0, t->n_streams * sizeof *t->free);
    memset(t->last, 0xff, t->n_streams * sizeof *t->last);
}

/* When what unit u reads is made; units that are not assigned take no time. */
static uint64_t ready_at(const tasks *t, uint32_t u)
{
    uint64_t at = 0;

    for (uint32_t i = t->begin[u]; i < t->begin[u + 1]; i++)
        if (t->stream[t->before[i]] != MPL_NONE)
            at = mpl_max_u64(at, t->end[t->before[i]]);
    return at;
}

/* Runs unit u at the end of its stream. */
static void run_next(tasks *t, uint32_t u)
{
    uint32_t k = t->stream[u];

    t->end[u] = mpl_add_work(mpl_max_u64(ready_at(t, u), t->free[k]), t->cost[u]);
    t->free[k] = t->end[u];
    t->last[k] = u;
}

/* Runs all assigned units. Returns the time at which the run would end if what is not assigned had
 * a stream for each unit. *follows: `at` directly follows a unit that it reads. */
static uint64_t simulate(tasks *t, uint32_t at, bool *follows)
{
    uint64_t end = 0;

    empty_streams(t);
    for (uint32_t u = 0; u < t->n; u++) {
        if (t->stream[u] == MPL_NONE)
            continue;
        for (uint32_t i = t->begin[u]; u == at && i < t->begin[u + 1]; i++)
            *follows = *follows || t->before[i] == t->last[t->stream[u]];
        run_next(t, u);
        end = mpl_max_u64(end, mpl_add_work(t->end[u], t->behind[u]));
    }
    return end;
}

/* ---- rules ---- */

typedef struct place {
    uint64_t end;   /* of the run [ns] */
    uint64_t first; /* of the unit: its end or its beginning [ns] */
    bool follows;   /* it directly follows a unit that it reads */
} place;

static bool is_better(const place *a, const place *b)
{
    if (a->end != b->end)
        return a->end < b->end;
    return a->first != b->first ? a->first < b->first : a->follows && !b->follows;
}

typedef struct ranked {
    uint64_t path;
    uint32_t unit;
} ranked;

MPL_ORDER_BY(by_path, ranked, MPL_FALLING(path) MPL_RISING(unit))

static mpl_status by_critical_path(tasks *t)
{
    mpl_status st = MPL_OK;
    ranked *list = NULL;
    uint32_t n_used = 0;

    MPL_TRY(mpl_new(t->ctx, list, (size_t)t->n + 1));
    for (uint32_t u = 0; u < t->n; u++)
        list[u] = (ranked){mpl_add_work(t->cost[u], t->behind[u]), u};
    qsort(list, t->n, sizeof *list, by_path);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t u = list[i].unit, best = 0;
        place found = {0};

        for (uint32_t k = 0; k <= n_used && k < t->n_streams; k++) { /* empty ones are alike */
            place here = {0};

            t->stream[u] = k;
            here.end = simulate(t, u, &here.follows);
            here.first = t->end[u];
            if (k == 0 || is_better(&here, &found))
                best = k, found = here;
        }
        t->stream[u] = best;
        n_used += best == n_used;
    }
out:
    mpl_free(t->ctx, list);
    return st;
}

/* Whether unit u reads what the last unit of stream k makes. */
static bool reads_last(const tasks *t, uint32_t u, uint32_t k)
{
    for (uint32_t i = t->begin[u]; i < t->begin[u + 1]; i++)
        if (t->before[i] == t->last[k])
            return true;
    return false;
}

/* Where unit u can begin first (chain: after what it reads, if that is the last of its stream). */
static uint32_t choose(const tasks *t, uint32_t u, mpl_stream_rule rule)
{
    uint64_t ready = ready_at(t, u);
    uint32_t best = 0;
    place found = {0};

    if (rule == MPL_STREAMS_round_robin)
        return u % t->n_streams;
    for (uint32_t k = 0; k < t->n_streams; k++) {
        place here = {0, mpl_max_u64(ready, t->free[k]), reads_last(t, u, k)};

        here.end = rule == MPL_STREAMS_chain && !here.follows;
        if (k == 0 || is_better(&here, &found))
            best = k, found = here;
    }
    return best;
}

static mpl_status assign(tasks *t, mpl_stream_rule *rule)
{
    uint64_t visits = (uint64_t)t->n + t->begin[t->n];

    if (*rule == MPL_STREAMS_critical_path && t->n > 0 &&
        visits > MOST_SIMULATED / t->n / t->n_streams)
        *rule = MPL_STREAMS_earliest;
    if (*rule == MPL_STREAMS_critical_path && t->n_streams < t->n)
        return by_critical_path(t);
    empty_streams(t);
    for (uint32_t u = 0; u < t->n; u++) {
        t->stream[u] = t->n_streams == t->n ? u : choose(t, u, *rule);
        run_next(t, u);
    }
    return MPL_OK;
}

mpl_status mpl_streams_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, uint32_t n,
                           mpl_stream_rule rule, const uint64_t *cost_ns, mpl_streams **out)
{
    mpl_status st = MPL_OK;
    tasks t = {.ctx = ctx};
    mpl_streams *s = NULL;
    uint64_t *estimated = NULL;

    if (n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "0 streams; at least 1 is needed");
    if (cost_ns == NULL) {
        MPL_TRY(mpl_new(ctx, estimated, g->n_ops));
        mpl_streams_estimate(g, estimated);
        cost_ns = estimated;
    }
    MPL_TRY(tasks_init(&t, g, order, cost_ns, n));
    MPL_TRY(assign(&t, &rule));
    MPL_TRY(mpl_new(ctx, s, 1));
    *s = (mpl_streams){.n_ops = g->n_ops, .n_units = t.n, .n = n, .rule = rule};
    MPL_TRY(mpl_new(ctx, s->op_stream, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        s->op_stream[op] = t.stream[t.of[op]];
    *out = s, s = NULL;
out:
    tasks_fini(&t);
    mpl_free(ctx, estimated);
    mpl_streams_free(ctx, s);
    return st;
}

void mpl_streams_free(mpl_ctx *ctx, mpl_streams *streams)
{
    if (streams != NULL)
        mpl_free_each(ctx, streams->op_stream, streams);
}

void mpl_streams_ask(const mpl_streams *streams, mpl_problem_options *o)
{
    o->parallel = streams->n > 1;
    o->op_stream = streams->n > 1 && streams->n < streams->n_units ? streams->op_stream : NULL;
}

/* ---- any assignment ---- */

mpl_status mpl_streams_simulate(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                const uint32_t *op_stream, const uint64_t *cost_ns,
                                uint64_t *start_ns, uint64_t *makespan_ns)
{
    mpl_status st = MPL_OK;
    tasks t = {.ctx = ctx};
    uint32_t most = 0;

    for (mpl_op op = 0; op < g->n_ops && op_stream != NULL; op++)
        most = op_stream[op] > most ? op_stream[op] : most;
    MPL_TRY(tasks_init(&t, g, order, cost_ns, MPL_NONE));
    if (op_stream != NULL) {
        mpl_free_each(ctx, t.free, t.last), t.free = NULL, t.last = NULL;
        t.n_streams = most + 1;
        MPL_TRY(mpl_new_each(ctx, (size_t)most + 1, t.free, t.last));
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        t.stream[t.of[op]] = op_stream != NULL ? op_stream[op] : t.of[op];
    *makespan_ns = simulate(&t, MPL_NONE, NULL);
    for (mpl_op op = 0; op < g->n_ops && start_ns != NULL; op++)
        start_ns[op] = g->op_block[op] == 0 ? t.end[t.of[op]] - t.cost[t.of[op]] : 0;
out:
    tasks_fini(&t);
    return st;
}

mpl_status mpl_streams_check(mpl_ctx *ctx, const mpl_graph *g, const mpl_streams *streams)
{
    const uint32_t *stream = streams->op_stream;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool beyond = stream[op] >= streams->n || stream[op] >= g->n_ops;

        if (beyond || stream[op] != stream[mpl_op_outermost(g, op)])
            return MPL_REFUSE(ctx, "streams: operation '%.80s' is on stream %u, %s", g->op_name[op],
                              stream[op],
                              beyond ? "which there is not" : "and its loop or case on another");
    }
    return MPL_OK;
}
