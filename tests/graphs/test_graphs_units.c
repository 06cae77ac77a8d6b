/* Safety parallel, and streams, for graphs with loops and branches: which buffers may be needed at
 * once, from hand-made tables and from every interleaving of the outermost operations' steps.
 * Fault: a lifetime that holds for one order only. */
#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/steps.h"
#include "tests/support/random_control.h"

/* ---- by hand ---- */

#define LOOP(name, from, to)                                                                       \
    "block " name "\n  param " name "r i64 []\n  param " name "x f32 [64]\n  " name                \
    "a = sin(" name "x)\n  " name "b = sin(" name "a)\nyield _, " name "b\n" to " = while " name   \
    "(_, _, " from ") carried=1 trips=4\n"

typedef struct row {
    const char *name, *text;
    uint64_t bytes;       /* bound without in-place pairs [byte] */
    const char *conflict; /* "a b, .." of values: these conflict; those after ';' do not */
} row;

static const row rows[] = {
    {"two loops at the same time",
     "graph g\ninput i f32 [64]\nu = cos(i)\nv = tan(i)\n" LOOP("p", "u", "m")
         LOOP("q", "v", "n") "out = add(m, n)\noutput out\n",
     1024, "pa qa, pa qb, pb qa, pb qb, u v, u qa, m qa, pa u"},
    {"one loop behind the other",
     "graph g\ninput i f32 [64]\nu = cos(i)\n" LOOP("p", "u", "m")
         LOOP("q", "m", "n") "out = sin(n)\noutput out\n",
     512, "pa pb, qa qb; pa qa"},
    {"a loop beside a chain",
     "graph g\ninput i f32 [64]\nu = cos(i)\n" LOOP(
         "p", "u", "m") "c = tan(i)\nd = sin(c)\ne = cos(d)\nout = add(m, e)\noutput out\n",
     1024, "pa c, pa d, pa e, pb c, u e, c d; c e"},
    ROW("a case beside a loop",
        "graph g\ninput i f32 [64]\ninput k i64 []\nu = cos(i)\n" LOOP(
            "p", "u",
            "m") "block one\n  s = tan(i)\n  t = sin(s)\nyield t\nblock two\n  w = cos(i)\n"
                 "  z = tan(w)\nyield z\nc = case one, two(k, i)\nout = add(m, c)\noutput out\n",
        1024, "pa s, pa w, pa t, u w; s w"),
    {"a value that a branch at the same time captures",
     "graph g\ninput i f32 [64]\ninput k i64 []\nu = cos(i)\nv = tan(i)\n"
     "block one\n  s = add(u, v)\n  t = sin(s)\nyield t\nc = case one(k, i)\n" LOOP(
         "p", "v", "m") "e = sin(u)\nf = tan(e)\nd = add(m, c)\nout = add(d, f)\noutput out\n",
     2048, "u pa, u v, u e, v s, v e, u s, f s, f pa"},
};

typedef struct bench {
    mpl_ctx ctx;
    mpl_graph *g;
    mpl_op *order;
    uint32_t *stream; /* [n_ops] NULL: no streams */
    mpl_problem *p;
    mpl_value_map *map;
} bench;

static void open_problem(bench *b, bool in_place)
{
    mpl_problem_options options = mpl_problem_options_default();

    options.parallel = true;
    options.in_place = in_place;
    options.op_stream = b->stream;
    b->order = order_by(&b->ctx, b->g, "given");
    assert_ok(&b->ctx, mpl_problem_from_graph(&b->ctx, b->g, b->order, &options, &b->p, &b->map));
    assert_non_null(b->p->before);
}

static void close_problem(bench *b)
{
    mpl_value_map_free(&b->ctx, b->map);
    mpl_problem_free(&b->ctx, b->p);
    mpl_free(&b->ctx, b->order);
    free(b->stream);
    mpl_graph_free(&b->ctx, b->g);
    assert_int_equal(b->ctx.n_live, 0);
}

static mpl_buffer buffer_of(const bench *b, const char *name)
{
    for (mpl_value v = 0; v < b->g->n_values; v++)
        if (strcmp(b->g->value_name[v], name) == 0) {
            assert_int_not_equal(b->map->value_buffer[v], MPL_NONE);
            return b->map->value_buffer[v];
        }
    fail_msg("no value '%s'", name);
    return MPL_NONE;
}

TEST(tables)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench b = {0};
        char copy[2048], *at, *save = NULL;
        uint64_t bytes;
        bool conflict = true;

        b.ctx = mpl_ctx_default();
        assert_ok(&b.ctx, mpl_text_read_memory(&b.ctx, rows[i].name, rows[i].text,
                                               strlen(rows[i].text), &b.g));
        open_problem(&b, false);
        snprintf(copy, sizeof copy, "%s", rows[i].conflict);
        for (at = strtok_r(copy, ",", &save); at != NULL; at = strtok_r(NULL, ",", &save)) {
            char *part[2] = {at, strchr(at, ';')}, x[16], y[16];

            if (part[1] != NULL)
                *part[1]++ = '\0';
            for (int k = 0; k < 2 && part[k] != NULL; k++) {
                conflict = conflict && k == 0;
                assert_int_equal(sscanf(part[k], " %15s %15s", x, y), 2);
                if (mpl_conflict(b.p, buffer_of(&b, x), buffer_of(&b, y)) != conflict)
                    fail_msg("%s: '%s' and '%s' %s", rows[i].name, x, y,
                             conflict ? "do not conflict" : "conflict");
            }
        }
        assert_ok(&b.ctx, mpl_lower_bound(&b.ctx, b.p, 0, &bytes, NULL));
        if (bytes != rows[i].bytes)
            fail_msg("%s: %" PRIu64 " bytes", rows[i].name, bytes);
        close_problem(&b);
    }
}

/* ---- every interleaving ---- */

enum { MOST_UNITS = 6, MOST_EVENTS = 160, MOST_STATES = 60000, N_WALKS = 3 };

/* One executed operation with its reads and writes. */
typedef struct unit {
    mpl_op op[MOST_EVENTS]; /* innermost first; last the unit's own */
    uint32_t n;
    uint64_t needs; /* units that must end before it begins */
} unit;

typedef struct walk {
    bench *b;
    mpl_program *program;
    mpl_rng rng;
    unit unit[MOST_UNITS];
    uint32_t n_units, at[MOST_UNITS];
    uint32_t unit_of[512];    /* [n_ops] of outermost operations */
    uint8_t *seen;            /* [states] */
    uint32_t *stack, n_stack; /* states to visit */
    uint64_t n_looked;
} walk;

static void run_block(walk *w, unit *u, uint32_t block);

static void push(unit *u, mpl_op op)
{
    assert_true(u->n < MOST_EVENTS);
    u->op[u->n++] = op;
}

/* Runs an operation along one path of control. */
static void run_op(walk *w, unit *u, mpl_op op)
{
    const mpl_graph *g = w->b->g;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op], rounds;

    if (g->op_kind[op] == MPL_OP_while) {
        int64_t most = mpl_while_most_rounds(g, op);

        rounds = (uint32_t)mpl_rng_below(&w->rng, most >= 0 && most < 2 ? (uint64_t)most + 1 : 3);
        for (uint32_t r = 0; r < rounds; r++)
            run_block(w, u, g->op_body[g->op_body_begin[op]]);
    } else if (n > 0) {
        uint32_t k = (uint32_t)mpl_rng_below(&w->rng, n);

        run_block(w, u, g->op_body[g->op_body_begin[op] + k]);
    }
    push(u, op);
}

static void run_block(walk *w, unit *u, uint32_t block)
{
    const mpl_graph *g = w->b->g;

    for (uint32_t i = 0; i < g->n_ops; i++)
        if (g->op_block[w->b->order[i]] == block)
            run_op(w, u, w->b->order[i]);
}

static void note_need(walk *w, unit *u, mpl_value v)
{
    mpl_op maker = v != MPL_NONE ? w->b->g->value_op[v] : MPL_NONE;

    if (maker != MPL_NONE && w->b->g->op_block[maker] == 0 && &w->unit[w->unit_of[maker]] != u)
        u->needs |= UINT64_C(1) << w->unit_of[maker];
}

/* Records all that a unit reads from others, in any block. */
static void note_needs(walk *w, unit *u, mpl_op op)
{
    const mpl_graph *g = w->b->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        note_need(w, u, g->op_in[i]);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        uint32_t b = g->op_body[k];

        for (mpl_op inner = 0; inner < g->n_ops; inner++)
            if (g->op_block[inner] == b)
                note_needs(w, u, inner);
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            note_need(w, u, g->block_result[g->block_result_begin[b] + i]);
    }
}

/* Puts each unit on one of a few streams. */
static void draw_streams(bench *b, uint64_t seed)
{
    uint32_t n = 2 + (uint32_t)(seed / 3 % 3);
    mpl_rng rng = mpl_rng_of(seed);

    b->stream = calloc(b->g->n_ops, sizeof *b->stream);
    for (mpl_op op = b->g->n_ops; op-- > 0;) /* owners come behind their blocks */
        b->stream[op] = b->g->op_block[op] == 0
                            ? (uint32_t)mpl_rng_below(&rng, n < b->g->n_ops ? n : b->g->n_ops)
                            : b->stream[mpl_op_outermost(b->g, op)];
}

/* Units of a stream run one after the other. */
static void note_streams(walk *w)
{
    bench *b = w->b;

    for (mpl_op op = 0; op < b->g->n_ops; op++)
        for (mpl_op other = 0; other < b->g->n_ops && b->g->op_block[op] == 0; other++)
            if (b->g->op_block[other] == 0 && b->stream[op] == b->stream[other] &&
                w->unit_of[other] < w->unit_of[op])
                w->unit[w->unit_of[op]].needs |= UINT64_C(1) << w->unit_of[other];
}

static bool reads(const walk *w, mpl_op op, mpl_buffer b)
{
    const mpl_graph *g = w->b->g;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0)
        return false; /* its result may lie elsewhere by then */
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE && w->b->map->value_buffer[g->op_in[i]] == b)
            return true;
    return false;
}

static bool writes(const walk *w, mpl_op op, mpl_buffer b)
{
    const mpl_graph *g = w->b->g;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0)
        return false;
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE && w->b->map->value_buffer[g->op_out[i]] == b)
            return true;
    return false;
}

/* Whether unit u, from event `from` on, reads b before writing it; *over: it writes first. */
static bool reads_next(const walk *w, const unit *u, uint32_t from, mpl_buffer b, bool *over)
{
    *over = false;
    for (uint32_t i = from; i < u->n && !*over; i++) {
        if (reads(w, u->op[i], b))
            return true;
        *over = writes(w, u->op[i], b);
    }
    return false;
}

/* Whether u wrote b before its event `at`. */
static bool written(const walk *w, const unit *u, uint32_t at, mpl_buffer b)
{
    for (uint32_t i = 0; i < at; i++)
        if (writes(w, u->op[i], b))
            return true;
    return false;
}

/* Whether b certainly holds contents still to be read when each unit is at w->at. */
static bool is_live(const walk *w, mpl_buffer b)
{
    bool made = false, wanted = false, over;

    for (uint32_t k = 0; k < w->n_units; k++) {
        made = made || written(w, &w->unit[k], w->at[k], b);
        wanted = wanted || reads_next(w, &w->unit[k], w->at[k], b, &over);
    }
    return made && wanted;
}

/* In this state, what the next operation of unit k writes must be disjoint from live contents. */
static void look(walk *w, uint32_t k)
{
    bench *b = w->b;
    mpl_op op = w->unit[k].op[w->at[k]];

    for (mpl_buffer x = 0; x < b->p->n; x++) {
        if (!writes(w, op, x))
            continue;
        for (mpl_buffer y = 0; y < b->p->n; y++) {
            char one[24], other[24];

            w->at[k]++; /* ignore in-place overwriting of operands last read here */
            if (y != x && is_live(w, y) && !mpl_conflict(b->p, x, y))
                fail_msg("'%s' is written while '%s' is needed, and they do not conflict",
                         mpl_buffer_label(b->p, x, one), mpl_buffer_label(b->p, y, other));
            w->at[k]--;
        }
    }
    w->n_looked++;
}

static uint32_t state_of(const walk *w)
{
    uint32_t id = 0;

    for (uint32_t k = 0; k < w->n_units; k++)
        id = id * (w->unit[k].n + 1) + w->at[k];
    return id;
}

static void go_to(walk *w, uint32_t id)
{
    for (uint32_t k = w->n_units; k-- > 0;) {
        w->at[k] = id % (w->unit[k].n + 1);
        id /= w->unit[k].n + 1;
    }
}

static void visit(walk *w)
{
    uint32_t id = state_of(w);

    if (w->seen[id])
        return;
    w->seen[id] = 1;
    w->stack[w->n_stack++] = id;
}

static bool may_run(const walk *w, uint32_t k)
{
    for (uint32_t i = 0; i < w->n_units; i++)
        if ((w->unit[k].needs >> i & 1) != 0 && w->at[i] < w->unit[i].n)
            return false;
    return w->at[k] < w->unit[k].n;
}

/* Returns false if there are too many states. */
static bool every_interleaving(walk *w)
{
    uint64_t n_states = 1;

    for (uint32_t k = 0; k < w->n_units; k++)
        n_states *= w->unit[k].n + 1;
    if (n_states > MOST_STATES)
        return false;
    w->seen = calloc(n_states, 1);
    w->stack = calloc(n_states, sizeof *w->stack);
    memset(w->at, 0, sizeof w->at);
    visit(w);
    while (w->n_stack > 0) {
        uint32_t id = w->stack[--w->n_stack];

        for (uint32_t k = 0; k < w->n_units; k++) {
            go_to(w, id);
            if (!may_run(w, k))
                continue;
            look(w, k);
            w->at[k]++;
            visit(w);
        }
    }
    free(w->seen);
    free(w->stack);
    return true;
}

TEST(interleavings)
{
    uint64_t n_graphs = 0, n_looked = 0;

    for (uint64_t seed = 1; seed <= 600; seed++) {
        bench b = {0};

        b.ctx = mpl_ctx_default();
        b.g = random_control_of(&b.ctx, seed, 6 + (uint32_t)seed % 20);
        if (seed % 3 != 0)
            draw_streams(&b, seed);
        open_problem(&b, seed % 2 == 0);
        for (uint32_t t = 0; t < N_WALKS && count_units(b.g) <= MOST_UNITS && b.g->n_blocks > 1;
             t++) {
            walk *w = calloc(1, sizeof *w);

            w->b = &b;
            w->rng = mpl_rng_of(seed * N_WALKS + t);
            for (uint32_t i = 0; i < b.g->n_ops; i++)
                if (b.g->op_block[b.order[i]] == 0)
                    w->unit_of[b.order[i]] = w->n_units++;
            for (mpl_op op = 0; op < b.g->n_ops; op++)
                if (b.g->op_block[op] == 0) {
                    run_op(w, &w->unit[w->unit_of[op]], op);
                    note_needs(w, &w->unit[w->unit_of[op]], op);
                }
            if (b.stream != NULL)
                note_streams(w);
            n_graphs += every_interleaving(w) && t == 0;
            n_looked += w->n_looked;
            free(w);
        }
        close_problem(&b);
    }
    print_message("%" PRIu64 " graphs, %" PRIu64
                  " operations at all points that others can be at\n",
                  n_graphs, n_looked);
    assert_true(n_graphs > 50);
}

/* ---- memory ---- */

TEST(lose_memory)
{
    for (uint64_t seed = 20; seed < 24; seed++) {
        mpl_problem_options options = mpl_problem_options_default();
        bench b = {0};
        mpl_status st = MPL_EMEM;
        int64_t live;

        options.parallel = true;
        b.ctx = mpl_ctx_default();
        b.g = random_control(&b.ctx, seed);
        b.order = order_by(&b.ctx, b.g, "given");
        live = b.ctx.n_live;
        for (int64_t k = 0; st == MPL_EMEM; k++) {
            b.ctx.n_allocs = 0, b.ctx.fail_after = k;
            st = mpl_problem_from_graph(&b.ctx, b.g, b.order, &options, &b.p, &b.map);
            assert_true(st == MPL_OK || b.ctx.n_live == live);
        }
        b.ctx.fail_after = -1;
        assert_ok(&b.ctx, st);
        close_problem(&b);
    }
}

TESTS(tables, interleavings, lose_memory)
