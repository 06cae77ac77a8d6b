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

static void tasks_fini(tasks *self)
{
    mpl_free_each(self->ctx, self->of, self->cost, self->behind, self->begin, self->before,
                  self->stream, self->end, self->free, self->last);
}

/* Lists what each unit reads of others: counts while before == NULL, else enters. */
static void visit_reads(tasks *self, const mpl_graph *g)
{
    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_op[v] == MPL_NONE || g->value_block[v] != 0)
            continue;
        for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++) {
            uint32_t reader = self->of[g->value_use[k]];

            if (self->before == NULL)
                self->begin[reader + 2]++;
            else
                self->before[self->begin[reader + 1]++] = self->of[g->value_op[v]];
        }
    }
}

static mpl_status number_units(tasks *self, const mpl_graph *g, const mpl_op *order,
                               const uint64_t *cost_ns)
{
    uint32_t n = 0;

    MPL_PASS(mpl_new(self->ctx, self->of, g->n_ops));
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (g->op_block[order[i]] == 0)
            self->of[order[i]] = n++;
    MPL_PASS(mpl_new_each(self->ctx, n, self->cost, self->behind, self->stream, self->end));
    self->n = n;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        self->of[op] = self->of[mpl_op_outermost(g, op)];
        self->cost[self->of[op]] = mpl_add_work(self->cost[self->of[op]], cost_ns[op]);
    }
    return MPL_OK;
}

static mpl_status tasks_init(tasks *self, const mpl_graph *g, const mpl_op *order,
                             const uint64_t *cost_ns, uint32_t n_streams)
{
    MPL_PASS(number_units(self, g, order, cost_ns));
    MPL_PASS(mpl_new(self->ctx, self->begin, (size_t)self->n + 2));
    visit_reads(self, g);
    mpl_lists_begin(self->begin, self->n);
    MPL_PASS(mpl_new(self->ctx, self->before, self->begin[self->n + 1]));
    visit_reads(self, g);
    for (uint32_t u = self->n; u-- > 0;)
        for (uint32_t i = self->begin[u]; i < self->begin[u + 1]; i++) {
            uint64_t path = mpl_add_work(self->cost[u], self->behind[u]);

            self->behind[self->before[i]] = mpl_max_u64(self->behind[self->before[i]], path);
        }
    memset(self->stream, 0xff, self->n * sizeof *self->stream);
    self->n_streams = n_streams < self->n ? n_streams : self->n;
    return mpl_new_each(self->ctx, (size_t)self->n_streams + 1, self->free, self->last);
}

/* ---- simulation ---- */

static void empty_streams(tasks *self)
{
    memset(self->free, 0, self->n_streams * sizeof *self->free);
    memset(self->last, 0xff, self->n_streams * sizeof *self->last);
}

/* When what unit u reads is made; units that are not assigned take no time. */
static uint64_t ready_at(const tasks *self, uint32_t u)
{
    uint64_t at = 0;

    for (uint32_t i = self->begin[u]; i < self->begin[u + 1]; i++)
        if (self->stream[self->before[i]] != MPL_NONE)
            at = mpl_max_u64(at, self->end[self->before[i]]);
    return at;
}

/* Runs unit u at the end of its stream. */
static void run_next(tasks *self, uint32_t u)
{
    uint32_t k = self->stream[u];

    self->end[u] = mpl_add_work(mpl_max_u64(ready_at(self, u), self->free[k]), self->cost[u]);
    self->free[k] = self->end[u];
    self->last[k] = u;
}

/* Runs all assigned units. Returns the time at which the run would end if what is not assigned had
 * a stream for each unit. *follows: `at` directly follows a unit that it reads. */
static uint64_t simulate(tasks *self, uint32_t at, bool *follows)
{
    uint64_t end = 0;

    empty_streams(self);
    for (uint32_t u = 0; u < self->n; u++) {
        if (self->stream[u] == MPL_NONE)
            continue;
        for (uint32_t i = self->begin[u]; u == at && i < self->begin[u + 1]; i++)
            *follows = *follows || self->before[i] == self->last[self->stream[u]];
        run_next(self, u);
        end = mpl_max_u64(end, mpl_add_work(self->end[u], self->behind[u]));
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

static mpl_status by_critical_path(tasks *self)
{
    mpl_status st = MPL_OK;
    ranked *list = NULL;
    uint32_t n_used = 0;

    MPL_TRY(mpl_new(self->ctx, list, (size_t)self->n + 1));
    for (uint32_t u = 0; u < self->n; u++)
        list[u] = (ranked){mpl_add_work(self->cost[u], self->behind[u]), u};
    qsort(list, self->n, sizeof *list, by_path);
    for (uint32_t i = 0; i < self->n; i++) {
        uint32_t u = list[i].unit, best = 0;
        place found = {0};

        for (uint32_t k = 0; k <= n_used && k < self->n_streams; k++) { /* empty ones are alike */
            place here = {0};

            self->stream[u] = k;
            here.end = simulate(self, u, &here.follows);
            here.first = self->end[u];
            if (k == 0 || is_better(&here, &found))
                best = k, found = here;
        }
        self->stream[u] = best;
        n_used += best == n_used;
    }
out:
    mpl_free(self->ctx, list);
    return st;
}

/* Whether unit u reads what the last unit of stream k makes. */
static bool reads_last(const tasks *self, uint32_t u, uint32_t k)
{
    for (uint32_t i = self->begin[u]; i < self->begin[u + 1]; i++)
        if (self->before[i] == self->last[k])
            return true;
    return false;
}

/* Where unit u can begin first (chain: after what it reads, if that is the last of its stream). */
static uint32_t choose(const tasks *self, uint32_t u, mpl_stream_rule rule)
{
    uint64_t ready = ready_at(self, u);
    uint32_t best = 0;
    place found = {0};

    if (rule == MPL_STREAMS_round_robin)
        return u % self->n_streams;
    for (uint32_t k = 0; k < self->n_streams; k++) {
        place here = {0, mpl_max_u64(ready, self->free[k]), reads_last(self, u, k)};

        here.end = rule == MPL_STREAMS_chain && !here.follows;
        if (k == 0 || is_better(&here, &found))
            best = k, found = here;
    }
    return best;
}

static mpl_status assign(tasks *self, mpl_stream_rule *rule)
{
    uint64_t visits = (uint64_t)self->n + self->begin[self->n];

    if (*rule == MPL_STREAMS_critical_path && self->n > 0 &&
        visits > MOST_SIMULATED / self->n / self->n_streams)
        *rule = MPL_STREAMS_earliest;
    if (*rule == MPL_STREAMS_critical_path && self->n_streams < self->n)
        return by_critical_path(self);
    empty_streams(self);
    for (uint32_t u = 0; u < self->n; u++) {
        self->stream[u] = self->n_streams == self->n ? u : choose(self, u, *rule);
        run_next(self, u);
    }
    return MPL_OK;
}

mpl_status mpl_streams_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, uint32_t n,
                           mpl_stream_rule rule, const uint64_t *cost_ns, mpl_streams **out)
{
    mpl_status st = MPL_OK;
    tasks t = {.ctx = ctx};
    mpl_streams *streams = NULL;
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
    MPL_TRY(mpl_new(ctx, streams, 1));
    *streams = (mpl_streams){.n_ops = g->n_ops, .n_units = t.n, .n = n, .rule = rule};
    MPL_TRY(mpl_new(ctx, streams->op_stream, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        streams->op_stream[op] = t.stream[t.of[op]];
    *out = streams, streams = NULL;
out:
    tasks_fini(&t);
    mpl_free(ctx, estimated);
    mpl_streams_free(ctx, streams);
    return st;
}

void mpl_streams_free(mpl_ctx *ctx, mpl_streams *streams)
{
    if (streams != NULL)
        mpl_free_each(ctx, streams->op_stream, streams);
}

void mpl_streams_ask(const mpl_streams *streams, mpl_problem_options *options)
{
    options->parallel = streams->n > 1;
    options->op_stream =
        streams->n > 1 && streams->n < streams->n_units ? streams->op_stream : NULL;
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
