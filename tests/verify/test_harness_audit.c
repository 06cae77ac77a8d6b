/* test_harness_audit.c -- rows that contradict each other are found, rows that only seem to are
 * not: pairs of rows made by hand, altered rows of real plans, and random rows against a
 * comparison of each with each. */
#include "tests/harness/run_program.h"

#include "graphs/core/rng.h"
#include "harness/audit/audit.h"

static void add_row(mpl_ctx *ctx, mpl_audit *audit, uint32_t line, const char *members)
{
    mpl_record *row = NULL;
    char text[2000];

    snprintf(text, sizeof text, "{\"graph\": \"net\", %s}", members);
    assert_ok(ctx, mpl_record_read(ctx, "a row", text, strlen(text), &row));
    assert_ok(ctx, mpl_audit_row(ctx, audit, "rows", line, row));
    mpl_record_free(ctx, row);
}

#define OK "\"status\": \"ok\", \"verified\": true, "

/* ---- pairs of rows ---- */

#define HELD         "\"views\": true, \"pinned\": [\"weights\", \"inputs\", \"outputs\"], "
#define COPIES       "\"views\": false, \"pinned\": [\"weights\", \"inputs\", \"outputs\"], "
#define PIN          "\"views\": true, \"pinned\": [\"weights\"], "
#define COPY         "\"concat\": \"copy\", "
#define AUTO         "\"concat\": \"auto\", "
#define ON           "\"in_place\": true, "
#define OFF          "\"in_place\": false, "
#define GIVEN        "\"order\": \"given\", "
#define FOUND        "\"order\": \"least_peak\", \"order_kept\": \"searched\", "
#define JOINT        "\"order\": \"joint:rounds=3\", \"order_kept\": \"searched\", "
#define ALL          "\"order_scope\": \"all orders\", "
#define COPIED       "\"order_scope\": \"all orders with concats copied\", "
#define SERIAL       "\"safety\": \"serial\", "
#define PARALLEL     "\"safety\": \"parallel\", "
#define G            "\"graph_hash\": \"g\", "
#define SHARE        "\"concat\": \"share\", "
#define OFTEN        "\"order_scope\": \"all orders and shared concats\", "
#define SPLITS       "\"order_scope\": \"all orders, shared concats and splits\", "
#define SHARED       "\"order_scope\": \"all orders with concats shared\", "
#define CUDA         "\"backend\": \"cuda\", "
#define LEAST(words) "\"order\": \"least\", \"free\": [\"order\", " words "\"placement\"], "
#define PARTS        "\"lifetimes\": \"exact\", "
#define LOOP         "\"loop\": \"view\", "
#define P            "\"problem_hash\": \"p\", "
#define Q            "\"problem_hash\": \"q\", "
#define OPTIMAL(n)   "\"claim\": \"optimal\", \"planned_bytes\": " #n
#define BOUND(n)     "\"claim\": \"feasible\", \"planned_bytes\": 9000, \"bound_bytes\": " #n
#define PLANNED(n)   "\"claim\": \"feasible\", \"planned_bytes\": " #n
#define RERUN(method, work, bound)                                                                 \
    "\"recompute\": \"" method "\", \"recompute_before_bytes\": 1000, \"all_work\": 50, "          \
    "\"forward_work\": 20, \"extra_work\": " #work ", \"extra_work_bound\": " #bound
#define SPREAD(capacities, cost, bound)                                                            \
    "\"params\": {\"capacities\": \"" capacities "\", \"cost\": \"1/4\"}, \"cost\": " #cost        \
    ", \"planned_bytes\": 1, \"cost_bound\": " #bound

static const struct {
    const char *name, *a, *b;
    uint32_t beaten, comparisons;
} pairs[] = {
    {"a bound of the problem", OK P BOUND(101), OK P PLANNED(100), 1, 1},
    {"an optimum above its bound", OK P OPTIMAL(101) ", \"bound_bytes\": 100", OK P PLANNED(100), 1,
     1},
    {"a bound that is met", OK P BOUND(100), OK P PLANNED(100), 0, 1},
    {"an optimum", OK P OPTIMAL(101), OK P PLANNED(100), 1, 1},
    {"two optima", OK P OPTIMAL(101), OK P OPTIMAL(100), 1, 2},
    {"a plan that claims nothing", OK P PLANNED(101), OK P PLANNED(100), 0, 0},
    {"another problem", OK P OPTIMAL(101), OK Q PLANNED(100), 0, 0},
    {"a plan nobody verified", OK P OPTIMAL(101), "\"status\": \"ok\", " P PLANNED(100), 0, 0},
    {"a run that ended in a timeout", OK P OPTIMAL(101),
     "\"status\": \"timeout\", \"verified\": true, " P PLANNED(100), 0, 0},
    {"packed blocks", OK P BOUND(101), OK P PLANNED(200) ", \"packed_bytes\": 100", 1, 2},
    {"an optimum of the gate", OK P PLANNED(200) ", \"optimum_bytes\": 101", OK P PLANNED(100), 1,
     1},
    {"beaten by itself", OK P OPTIMAL(100) ", \"bound_bytes\": 101", OK Q PLANNED(1), 1, 0},
    {"without hashes", OK OPTIMAL(101), OK PLANNED(100), 0, 0},

    /* one graph, in its own order */
    {"pairs on, beaten by off", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL OFF Q PLANNED(100), 1, 1},
    {"pairs off, below by on", OK G HELD COPY GIVEN SERIAL OFF P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"pairs on, below by parts", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL OFF PARTS Q PLANNED(100), 0, 0},
    {"pairs on, beaten in a loop", OK G HELD COPY GIVEN SERIAL ON LOOP P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL OFF LOOP PARTS Q PLANNED(100), 1, 1},
    {"parts, beaten by parts", OK G HELD COPY GIVEN SERIAL OFF P OPTIMAL(101),
     OK G HELD COPY GIVEN PARALLEL OFF PARTS Q PLANNED(100), 1, 1},
    {"shared concats cover parts",
     OK G HELD AUTO FOUND OFTEN SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY GIVEN SERIAL OFF PARTS Q PLANNED(960), 1, 1},
    {"least, pairs or parts", OK G HELD COPY LEAST("\"in-place pairs\", ") SERIAL OFF P BOUND(101),
     OK G HELD COPY GIVEN SERIAL OFF PARTS Q PLANNED(100), 1, 1},
    {"least, parts", OK G HELD COPY LEAST("") SERIAL OFF P BOUND(101),
     OK G HELD COPY GIVEN SERIAL OFF PARTS Q PLANNED(100), 1, 1},
    {"serial, beaten by parallel", OK G HELD COPY GIVEN SERIAL ON P BOUND(101),
     OK G HELD COPY GIVEN PARALLEL ON Q PLANNED(100), 1, 1},
    {"parallel, below by serial", OK G HELD COPY GIVEN PARALLEL ON P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"serial with inputs that may be unread", OK G PIN COPY GIVEN SERIAL ON P BOUND(101),
     OK G PIN COPY GIVEN PARALLEL ON Q PLANNED(100), 0, 0},
    {"copies of views, below views", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G COPIES COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"views that are null may be either", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G
     "\"pinned\": [\"weights\", \"inputs\", \"outputs\"], " COPY GIVEN SERIAL ON Q PLANNED(100),
     0, 0},
    {"views that are null are claimed of neither",
     OK G
     "\"pinned\": [\"weights\", \"inputs\", \"outputs\"], " COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"serial in a loop, below by parallel", OK G HELD COPY GIVEN SERIAL ON LOOP P OPTIMAL(101),
     OK G HELD COPY GIVEN PARALLEL ON LOOP Q PLANNED(100), 0, 0},
    {"other pins", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G PIN COPY GIVEN SERIAL OFF Q PLANNED(100), 0, 0},
    {"another order", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY FOUND SERIAL ON Q PLANNED(100), 0, 0},
    {"an order that was not kept", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY
     "\"order\": \"least_peak\", \"order_kept\": \"given\", " SERIAL ON Q PLANNED(100),
     1, 1},
    {"the plan that was not kept", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY FOUND SERIAL ON Q PLANNED(90) ", \"order_other_bytes\": 100", 1, 1},
    {"the plan of the search, not kept", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY "\"order\": \"least_peak\", \"order_kept\": \"given\", " SERIAL ON Q PLANNED(
         101) ", \"order_other_bytes\": 100",
     0, 1},
    {"concats unknown", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD AUTO GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"no concats, as an order says", OK G HELD COPY GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD AUTO FOUND ALL SERIAL ON Q PLANNED(90) ", \"order_other_bytes\": 100", 1, 1},
    {"concats share, as nothing says", OK G HELD AUTO GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL OFF Q PLANNED(100), 0, 0},
    {"pairs that are null may be there", OK G HELD COPY GIVEN SERIAL P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"a backend of coarser alignment", OK G HELD COPY GIVEN SERIAL ON P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON CUDA Q PLANNED(100), 1, 1},
    {"a backend of finer alignment", OK G HELD COPY GIVEN SERIAL ON CUDA P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"a backend nobody knows", OK G HELD COPY GIVEN SERIAL ON P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON "\"backend\": \"abacus\", " Q PLANNED(100), 0, 0},
    {"bounds with workspaces",
     OK G HELD COPY GIVEN SERIAL ON "\"workspaces\": \"plan\", " P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"plans with workspaces", OK G HELD COPY GIVEN SERIAL ON P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON "\"workspaces\": \"plan\", " Q PLANNED(100), 1, 1},
    {"capacities hold nothing back",
     OK G HELD COPY GIVEN SERIAL ON "\"capacity\": 5000, " P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 1, 1},

    /* one graph, all orders */
    {"the end of the last slot",
     OK G HELD COPY FOUND COPIED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(961), 0, 1},
    {"a slot less",
     OK G HELD COPY FOUND COPIED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(960), 1, 1},
    {"all orders contain parallel",
     OK G HELD COPY FOUND COPIED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY GIVEN PARALLEL OFF Q PLANNED(960), 1, 1},
    {"concats that may share are out of it",
     OK G HELD COPY FOUND COPIED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD AUTO GIVEN SERIAL ON Q PLANNED(960), 0, 0},
    {"pairs are out of it",
     OK G HELD COPY FOUND COPIED SERIAL OFF P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(960), 0, 0},
    {"a scope from elsewhere",
     OK G HELD COPY FOUND
     "\"order_scope\": \"some orders\", " SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(960), 0, 0},
    {"joint proves arenas",
     OK G HELD COPY JOINT COPIED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1001",
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(1000), 1, 1},
    {"joint's arena is a plan",
     OK G HELD COPY FOUND COPIED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY JOINT COPIED SERIAL ON Q PLANNED(2000) ", \"order_live_bytes\": 960", 1, 2},
    {"live bytes beat live bytes",
     OK G HELD AUTO FOUND COPIED SERIAL ON P PLANNED(500) ", \"order_bound_bytes\": 1024",
     OK G HELD AUTO FOUND COPIED SERIAL ON Q PLANNED(500) ", \"order_live_bytes\": 960", 1, 1},
    {"live bytes are no arena",
     OK G HELD AUTO JOINT COPIED SERIAL ON P PLANNED(500) ", \"order_bound_bytes\": 1024",
     OK G HELD AUTO FOUND COPIED SERIAL ON Q PLANNED(500) ", \"order_live_bytes\": 960", 0, 0},

    {"bounds of shared concats cover all",
     OK G HELD AUTO FOUND OFTEN SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD SHARE GIVEN SERIAL ON Q PLANNED(960), 1, 1},
    {"and no splits that copy",
     OK G HELD AUTO FOUND OFTEN SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD AUTO LEAST("\"splits\", ") SERIAL ON Q PLANNED(960), 0, 0},
    {"but for bounds over splits, too",
     OK G HELD AUTO FOUND SPLITS SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD AUTO LEAST("\"splits\", ") SERIAL ON Q PLANNED(960), 1, 1},
    {"copied concats do not cover splits that copy",
     OK G HELD COPY FOUND ALL SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY LEAST("\"splits\", ") SERIAL ON Q PLANNED(960), 0, 0},
    {"all shared, beaten by all shared",
     OK G HELD SHARE FOUND SHARED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD SHARE GIVEN SERIAL OFF Q PLANNED(960), 1, 1},
    {"all shared, below by copied",
     OK G HELD SHARE FOUND SHARED SERIAL ON P PLANNED(2000) ", \"order_bound_bytes\": 1024",
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(960), 0, 0},
    {"shared in the order given", OK G HELD SHARE GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD SHARE GIVEN SERIAL OFF Q PLANNED(100), 1, 1},
    {"a backend without boxes shares less", OK G HELD SHARE GIVEN SERIAL ON P OPTIMAL(101),
     OK G HELD SHARE GIVEN SERIAL ON CUDA Q PLANNED(100), 0, 0},

    /* memplan least: over what it was free to choose, and no more */
    {"least, concats", OK G HELD AUTO LEAST("\"concats\", ") SERIAL OFF P BOUND(101),
     OK G HELD SHARE GIVEN SERIAL OFF Q PLANNED(100), 1, 1},
    {"least, concats held", OK G HELD COPY LEAST("") SERIAL OFF P BOUND(101),
     OK G HELD SHARE GIVEN SERIAL OFF Q PLANNED(100), 0, 0},
    {"least, pairs", OK G HELD COPY LEAST("\"in-place pairs\", ") SERIAL OFF P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 1, 1},
    {"least, pairs held", OK G HELD COPY LEAST("") SERIAL OFF P BOUND(101),
     OK G HELD COPY GIVEN SERIAL ON Q PLANNED(100), 0, 0},
    {"least, views", OK G HELD COPY LEAST("\"views\", ") SERIAL OFF P BOUND(101),
     OK G COPIES COPY GIVEN SERIAL OFF Q PLANNED(100), 1, 1},
    {"least, views held", OK G HELD COPY LEAST("") SERIAL OFF P BOUND(101),
     OK G COPIES COPY GIVEN SERIAL OFF Q PLANNED(100), 0, 0},
    {"least, splits", OK G HELD COPY LEAST("\"splits\", ") SERIAL OFF P BOUND(101),
     OK G HELD COPY LEAST("\"splits\", ") SERIAL OFF Q PLANNED(100), 1, 1},
    {"least, splits held", OK G HELD COPY LEAST("") SERIAL OFF P BOUND(101),
     OK G HELD COPY LEAST("\"splits\", ") SERIAL OFF Q PLANNED(100), 0, 0},
    {"least, parallel", OK G HELD COPY LEAST("") PARALLEL OFF P BOUND(101),
     OK G HELD COPY GIVEN SERIAL OFF Q PLANNED(100), 0, 0},
    {"least, with workspaces",
     OK G HELD COPY LEAST("") "\"workspaces\": \"plan\", " SERIAL OFF P BOUND(101),
     OK G HELD COPY GIVEN SERIAL OFF Q PLANNED(100), 0, 0},
    {"least, concats held as shared", OK G HELD SHARE LEAST("") SERIAL OFF P BOUND(101),
     OK G HELD COPY GIVEN SERIAL OFF Q PLANNED(100), 0, 0},
    {"least, optimal", OK G HELD COPY LEAST("") SERIAL OFF P OPTIMAL(101),
     OK G HELD COPY GIVEN SERIAL OFF Q PLANNED(100), 1, 1},

    /* repeated work */
    {"as much budget", OK RERUN("budget:50%", 9, 7), OK RERUN("budget:500", 6, 0), 1, 1},
    {"less budget", OK RERUN("budget:50%", 9, 7), OK RERUN("budget:49%", 6, 0), 1, 1},
    {"more budget", OK RERUN("budget:50%", 9, 7), OK RERUN("budget:501", 6, 0), 0, 0},
    {"round proves of its order", OK RERUN("round:50%", 9, 7), OK RERUN("sqrt:50%", 6, 0), 1, 1},
    {"others prove of themselves", OK RERUN("budget:50%", 9, 7), OK RERUN("sqrt:50%", 6, 0), 0, 0},
    {"pebbles change the order", OK RERUN("round:50%", 9, 7), OK RERUN("pebble:50%", 6, 0), 0, 0},
    {"the least work", OK RERUN("pebble:50%", 7, 0) ", \"recompute_claim\": \"optimal\"",
     OK RERUN("pebble:50%,without=estimate", 6, 0), 1, 1},
    {"no budget", OK RERUN("pebble", 9, 7), OK RERUN("pebble", 6, 0), 0, 0},
    {"a method nobody knows", OK RERUN("magic:50%", 9, 7), OK RERUN("magic:50%", 6, 0), 0, 0},

    /* several memories */
    {"a cost", OK P SPREAD("10/-", 9, 7), OK P SPREAD("10/-", 6, 5), 1, 2},
    {"another memory", OK P SPREAD("10/-", 9, 7), OK P SPREAD("11/-", 6, 5), 0, 0},
    {"bytes are no cost", OK P SPREAD("10/-", 9, 7), OK P BOUND(100), 0, 0},
};

TEST(pairs_of_rows)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int turned = 0; turned < 2; turned++) {
            mpl_audit audit = {0};

            add_row(ctx, &audit, 1, turned ? pairs[i].b : pairs[i].a);
            add_row(ctx, &audit, 2, turned ? pairs[i].a : pairs[i].b);
            assert_ok(ctx, mpl_audit_judge(ctx, &audit));
            if (audit.n_beaten != pairs[i].beaten || audit.n_comparisons != pairs[i].comparisons)
                fail_msg("%s: %u beaten of %" PRIu64 " comparisons, not %u of %u", pairs[i].name,
                         audit.n_beaten, audit.n_comparisons, pairs[i].beaten,
                         pairs[i].comparisons);
            mpl_audit_fini(ctx, &audit);
        }
}

/* ---- random rows, each compared with each ---- */

/* A row of few values, so that many rows are about the same. */
typedef struct drawn {
    uint32_t problem, graph;
    bool given, in_place, serial, copy, cuda, optimal, whole;
    uint64_t planned, bound, live, all_orders; /* live, all_orders: 0: not searched for */
} drawn;

static drawn draw(mpl_rng *rng)
{
    drawn d = {.problem = (uint32_t)mpl_rng_below(rng, 20),
               .graph = (uint32_t)mpl_rng_below(rng, 2),
               .given = mpl_rng_below(rng, 2) == 0,
               .in_place = mpl_rng_below(rng, 2) == 0,
               .serial = mpl_rng_below(rng, 2) == 0,
               .copy = mpl_rng_below(rng, 2) == 0,
               .cuda = mpl_rng_below(rng, 4) == 0,
               .optimal = mpl_rng_below(rng, 4) == 0,
               .planned = 900 + mpl_rng_below(rng, 200)};

    d.bound = 850 + mpl_rng_below(rng, 70);
    if (d.given)
        return d;
    d.live = 64 * (13 + mpl_rng_below(rng, 3));
    d.all_orders = 64 * (12 + mpl_rng_below(rng, 3));
    d.whole = mpl_rng_below(rng, 8) == 0;
    return d;
}

static void add_drawn(mpl_ctx *ctx, mpl_audit *audit, uint32_t line, const drawn *d)
{
    char searched[200] = "", text[1500];

    if (d->live > 0)
        snprintf(searched, sizeof searched,
                 "\"order_live_bytes\": %" PRIu64 ", \"order_bound_bytes\": %" PRIu64
                 ", \"order_scope\": \"all orders%s\", ",
                 d->live, d->all_orders, d->whole ? "" : " with concats copied");
    snprintf(text, sizeof text,
             OK HELD "\"problem_hash\": \"p%u\", \"graph_hash\": \"g%u\", %s%s%s%s%s%s"
                     "\"claim\": \"%s\", \"planned_bytes\": %" PRIu64 ", \"bound_bytes\": %" PRIu64,
             d->problem, d->graph, searched, d->given ? GIVEN : FOUND, d->in_place ? ON : OFF,
             d->serial ? SERIAL : PARALLEL, d->copy ? COPY : AUTO,
             d->cuda ? "\"backend\": \"cuda\", " : "", d->optimal ? "optimal" : "feasible",
             d->planned, d->bound);
    add_row(ctx, audit, line, text);
}

/* Whether no concat shares in row i, as any row shows. */
static bool copied(const drawn *row, uint32_t n, uint32_t i)
{
    for (uint32_t k = 0; k < n; k++)
        if (row[k].graph == row[i].graph && ((row[k].copy && row[k].problem == row[i].problem) ||
                                             (row[k].live > 0 && row[k].whole)))
            return true;
    return false;
}

/* Whether anything that a claims is refuted by b, of the same graph. */
static bool refuted(const drawn *a, bool a_copied, const drawn *b, bool b_copied)
{
    uint64_t claim = a->optimal && a->planned > a->bound ? a->planned : a->bound;
    bool offered = a->in_place || !b->in_place;

    if (a->given && a_copied && b->given && b_copied && offered && (a->serial || !b->serial) &&
        (b->cuda || !a->cuda) && b->planned < claim)
        return true;
    if (a->live == 0 || !offered)
        return false;
    return (b_copied && (b->planned + 63) / 64 * 64 < a->all_orders) ||
           (b->live > 0 && b->live < a->all_orders);
}

/* Counts each claim with each plan. */
static void check_counts(const mpl_audit *a)
{
    uint64_t comparisons = 0;
    uint32_t n_claims = 0, n_rows = 0;
    bool seen[100] = {false};

    assert_true(a->n_rows < 100);
    for (uint32_t c = 0; c < a->claims.n; c++) {
        const mpl_statement *claim = &a->claims.item[c];
        uint64_t before = comparisons;

        for (uint32_t p = 0; p < a->plans.n; p++) {
            const mpl_statement *plan = &a->plans.item[p];

            if (plan->row == claim->row || !mpl_scope_contains(&claim->scope, &plan->scope))
                continue;
            comparisons++;
            n_rows += !seen[plan->row];
            seen[plan->row] = true;
        }
        n_claims += comparisons > before;
    }
    assert_int_equal(a->n_comparisons, comparisons);
    assert_int_equal(a->n_claims_compared, n_claims);
    assert_int_equal(a->n_rows_compared, n_rows);
}

TEST(random_rows_as_each_with_each)
{
    enum { ROWS = 60, ROUNDS = 300 };
    uint32_t n_refuted = 0, n_sound = 0;

    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        mpl_audit audit = {0};
        drawn row[ROWS];
        bool told[ROWS] = {false};
        mpl_rng rng = mpl_rng_of(seed);

        for (uint32_t i = 0; i < ROWS; i++)
            row[i] = draw(&rng);
        for (uint32_t i = 0; i < ROWS; i++)
            add_drawn(ctx, &audit, i + 1, &row[i]);
        assert_ok(ctx, mpl_audit_judge(ctx, &audit));
        check_counts(&audit);
        for (uint32_t i = 0; i < audit.n_beaten; i++)
            told[audit.beaten[i].claim.row] = true;
        for (uint32_t i = 0; i < ROWS; i++) {
            bool wrong = false;

            for (uint32_t k = 0; k < ROWS && !wrong; k++)
                wrong = (row[i].problem == row[k].problem &&
                         row[k].planned < (row[i].optimal && row[i].planned > row[i].bound
                                               ? row[i].planned
                                               : row[i].bound)) ||
                        (row[i].graph == row[k].graph &&
                         refuted(&row[i], copied(row, ROWS, i), &row[k], copied(row, ROWS, k)));
            if (wrong != told[i])
                fail_msg("seed %" PRIu64 ", row %u: %s, but audit says otherwise", seed, i + 1,
                         wrong ? "refuted" : "sound");
            n_refuted += wrong;
            n_sound += !wrong;
        }
        mpl_audit_fini(ctx, &audit);
    }
    assert_true(n_refuted > ROUNDS && n_sound > ROUNDS);
}

/* ---- odd rows ---- */

TEST(odd_values_say_less)
{
    static const char *const odd[] = {
        OK P G HELD COPY GIVEN SERIAL ON OPTIMAL(9223372036854775807),
        OK P G HELD COPY FOUND ALL SERIAL ON
        "\"order_bound_bytes\": 9223372036854775807, "
        "\"order_live_bytes\": 9223372036854775807, \"planned_bytes\": 9223372036854775807",
        OK "\"problem_hash\": \"\", \"graph_hash\": \"\", " GIVEN PLANNED(0),
        OK P "\"pinned\": {}, \"own_pools\": {\"a\": [[]]}, \"loop\": \"\", " G GIVEN PLANNED(
            9223372036854775807),
        OK P G "\"order\": \"\", \"safety\": \"both\", " PLANNED(9223372036854775807),
        OK RERUN("round:0%", 1, 2),
        OK RERUN("round:100.00%,without=nothing", 1, 2),
        OK RERUN("", 1, 2),
        OK "\"recompute\": \"round:50%\", \"extra_work\": 1, \"extra_work_bound\": 2",
        OK P "\"params\": [\"capacities\"], \"cost\": 1, \"cost_bound\": 2",
        OK P "\"params\": {\"capacities\": {}, \"cost\": null}, \"cost\": 1, \"cost_bound\": 2",
        "\"verified\": true",
        "\"status\": \"ok\"",
    };
    mpl_audit audit = {0};
    char text[1200], many[700] = "";

    for (uint32_t i = 0; i < sizeof odd / sizeof *odd; i++)
        add_row(ctx, &audit, i + 1, odd[i]);
    /* two lists of pins that are the same as far as they are shown */
    while (strlen(many) < 600)
        strcat(many, "\"weights\", ");
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 OK G COPY GIVEN SERIAL ON "\"views\": true, \"pinned\": [%s%d], "
                                           "\"claim\": \"optimal\", \"planned_bytes\": %d",
                 many, i, 100 + i);
        add_row(ctx, &audit, 90, text);
    }
    assert_ok(ctx, mpl_audit_judge(ctx, &audit));
    assert_int_equal(audit.n_beaten, 0);
    mpl_audit_fini(ctx, &audit);
}

TEST(nothing_is_compared_with_nothing)
{
    mpl_audit audit = {0};

    assert_ok(ctx, mpl_audit_judge(ctx, &audit));
    assert_int_equal(audit.n_comparisons, 0);
    mpl_audit_fini(ctx, &audit);
}

/* ---- the command ---- */

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* Writes to `to` the rows of `from`; in the `line`-th, the number behind the first `key` grows by
 * `by`. */
static void alter(const char *from, const char *to, uint32_t line, const char *key, int64_t by)
{
    static char text[1 << 20];
    FILE *f = fopen(in_folder(to), "w");
    char *at, *next, *number, *end;
    uint32_t n = 0;

    folder_read(from, text, sizeof text);
    for (at = text; *at != '\0'; at = next) {
        next = strchr(at, '\n') + 1;
        number = ++n == line ? strstr(at, key) : NULL;
        if (number == NULL) {
            fprintf(f, "%.*s", (int)(next - at), at);
            continue;
        }
        number += strlen(key);
        fprintf(f, "%.*s%" PRId64, (int)(number - at), at, (int64_t)strtoll(number, &end, 10) + by);
        fprintf(f, "%.*s", (int)(next - end), end);
    }
    fclose(f);
}

/* Rows of real plans: sound as they are; each altered one is found, with both rows. */
TEST(altered_rows_of_real_plans)
{
    static const char *const made[] = {
        "--planners none,greedy_size,exact --concat copy", /* rows 1 to 3 */
        "--planners exact --in-place off --concat copy",   /* 4 */
        "--planners exact --order least_peak",             /* 5 */
    };
    static const struct {
        uint32_t line;
        const char *key;
        int64_t by;
        int exit;
    } fault[] = {
        {1, "\"bound_bytes\":", 1, 1},
        {2, "\"planned_bytes\":", -1, 1},
        {3, "\"planned_bytes\":", -1, 1},
        {3, "\"planned_bytes\":", 1, 1},
        {4, "\"planned_bytes\":", -64, 1},
        {4, "\"planned_bytes\":", 64, 1},
        {5, "\"order_bound_bytes\":", 64, 1},
        {5, "\"order_live_bytes\":", -64, 1},
        {5, "\"planned_bytes\":", -64, 1},
        {1, "\"naive_bytes\":", -100, 0},
        {2, "\"ticks\":", 10, 0},
        {1, "\"bound_bytes\":", -1, 0},
    };

    folder_put_text("one.suite", "lstm:layers=1,steps=4,hidden=32,batch=2\n");
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        assert_int_equal(run("bench @/one.suite --backends none -q -o @/rows.jsonl %s", made[i]),
                         0);
    assert_int_equal(run("audit @/rows.jsonl --compared 20"), 0);
    assert_int_equal(count(out, "\n"), 1);
    assert_non_null(strstr(out, "of 5 rows"));
    assert_non_null(strstr(out, "none is beaten"));
    for (size_t i = 0; i < sizeof fault / sizeof *fault; i++) {
        alter("rows.jsonl", "altered.jsonl", fault[i].line, fault[i].key, fault[i].by);
        if (run("audit @/altered.jsonl") != fault[i].exit)
            fail_msg("%s of row %u by %" PRId64 ": not exit status %d: %s%s", fault[i].key,
                     fault[i].line, fault[i].by, fault[i].exit, out, err);
        if (fault[i].exit != 0)
            check_error("audit");
    }
}

TEST(what_the_command_says)
{
    folder_put_text("a.jsonl",
                    "\n{" OK P "\"graph\": \"net\", \"planner\": \"x\", " OPTIMAL(101) "}\n");
    folder_put_text("b.jsonl",
                    "{" OK P "\"graph\": \"net\", \"planner\": \"y\", " PLANNED(100) "}\n");
    folder_put_text("c.jsonl", "{" OK P PLANNED(101) "}\nno row\n");
    folder_put_text("empty.jsonl", "");
    assert_int_equal(run("audit @/a.jsonl @/b.jsonl"), 1);
    assert_non_null(strstr(out, "a.jsonl:2 (net, x): optimal, 101 bytes; "));
    assert_non_null(strstr(out, "b.jsonl:1 (net, y): planned 100; scope: problem p\n"));
    assert_non_null(
        strstr(out, "1 of 1 claims compared with 1 of 2 rows, 1 comparisons: 1 beaten"));
    check_error("audit");
    assert_int_equal(run("audit -q @/a.jsonl"), 0);
    assert_string_equal(out, "");
    assert_int_equal(run("audit @/a.jsonl --compared 1"), 1);
    assert_non_null(strstr(out, "0 of 1 claims compared with 0 of 1 rows"));
    assert_non_null(strstr(out, "nothing was held to anything"));
    assert_non_null(strstr(err, "0 comparisons where --compared asks for 1"));
    assert_int_equal(run("audit @/empty.jsonl"), 0);
    assert_int_equal(run("audit @/c.jsonl"), 2);
    assert_non_null(strstr(err, "c.jsonl:2: no row"));
    assert_int_equal(run("audit @/none.jsonl"), 2);
    assert_int_equal(run("audit"), 2);
    assert_int_equal(run("audit --json @/a.jsonl @/b.jsonl"), 1);
    assert_non_null(
        strstr(out, "\"claims_compared\": 1, \"comparisons\": 1, \"beaten\": [{\"claim\": {"));
    assert_non_null(strstr(out, "\"line\": 2, \"graph\": \"net\", \"planner\": \"x\", \"what\": "
                                "\"optimal\", \"amount\": 101}"));
    assert_non_null(strstr(out, "\"exit_status\": 1}"));
}

TESTS_OF_PROGRAM("audit", pairs_of_rows, random_rows_as_each_with_each, odd_values_say_less,
                 nothing_is_compared_with_nothing, altered_rows_of_real_plans,
                 what_the_command_says)
