/* test_harness_audit_walk.c -- a random walk over options: graphs are planned under drawn
 * combinations of them, and all rows are audited. Beside the audit, pairs of rows that differ in
 * one option are compared directly: more freedom never costs bytes.
 *
 * AUDIT_WALK combinations a graph are drawn (2), from AUDIT_SEED on (1); `make audit-walk` draws
 * more. */
#include "tests/support/folder.h"

#include "harness/audit/audit.h"
#include "harness/cli/command.h"
#include "harness/least/least_job.h"
#include "tests/support/random_control.h"
#include "tests/support/random_rows.h"
#include "tests/support/random_training.h"

/* ---- graphs ---- */

static const char *const nets[] = {
    "mlp:layers=3,batch=2,input=24,hidden=9,classes=4",
    "lstm:layers=1,steps=3,hidden=8,batch=2",
    "lstm:layers=2,steps=3,hidden=5,batch=1,form=while",
    "gru:layers=1,steps=4,hidden=8,batch=1,form=while",
    "pingpong:image=5",
    "seq2seq:mode=train",
    "piecewise",
    "nested_loop:mode=train",
    "squeezenet:image=47",
    "randwire:regime=cell,image=9,nodes=8,channels=3,stages=1,classes=5",
    "mobilenet_v2:image=32,classes=7",
    "mlp:layers=3,batch=2,input=12,hidden=20,classes=4,mode=train",
    "mlp:layers=2,batch=3,input=7,hidden=9,classes=5,mode=train,update=sgd",
    "lstm:layers=1,steps=2,hidden=6,batch=2,form=while,mode=train",
    "mnist_conv:batch=2,mode=train,update=adagrad",
};

enum { N_NETS = sizeof nets / sizeof *nets, N_GRAPHS = N_NETS + 18 };

/* The name of graph i; those drawn at random are files of the test's folder. */
static const char *graph_name(mpl_ctx *ctx, uint32_t i, uint64_t seed)
{
    static char name[40];
    mpl_graph *g;

    if (i < N_NETS)
        return nets[i];
    seed = seed * N_GRAPHS + i;
    g = i % 4 == 0   ? random_rows(ctx, seed)
        : i % 4 == 1 ? random_control_of(ctx, seed, 12)
        : i % 4 == 2 ? random_graph(ctx, seed, 8 + (uint32_t)(seed % 12), 4)
                     : random_training(ctx, seed, 2);
    snprintf(name, sizeof name, "walk%u.graph", i);
    assert_ok(ctx, mpl_text_write(ctx, in_folder(name), g));
    mpl_graph_free(ctx, g);
    return in_folder(name);
}

/* ---- options ---- */

typedef enum choice {
    ORDER,
    CONCAT,
    VIEWS,
    PAIRS,
    SAFETY,
    PLANNER,
    PIN,
    LOOP,
    PASSES,
    N_CHOICES
} choice;

/* Words of each option; the first is drawn as often as the others together. */
static const struct {
    const char *option;
    uint32_t n;
    const char *word[9];
} choices[N_CHOICES] = {
    [ORDER] = {"--order",
               8,
               {"given", "least_peak", "joint:ticks=300000,rounds=5", "beam", "anneal", "greedy",
                "dfs", "bfs"}},
    [CONCAT] = {"--concat", 3, {"copy", "auto", "share"}},
    [VIEWS] = {"--views", 2, {"on", "off"}},
    [PAIRS] = {"--in-place", 2, {"on", "off"}},
    [SAFETY] = {"--safety", 2, {"serial", "parallel"}},
    [PLANNER] = {"--planner",
                 8,
                 {"exact", "portfolio", "greedy_size", "hill_climb", "nnc_arena", "pool", "owl",
                  "none"}},
    [PIN] = {"--pin", 4, {"weights,inputs,outputs", "weights,inputs", "weights", "none"}},
    [LOOP] = {"--loop", 2, {"view", "copy"}},
    [PASSES] = {"--optimise", 2, {"none", "all"}},
};

/* A word of each option by its index. */
typedef struct combination {
    uint8_t word[N_CHOICES];
} combination;

static combination draw(mpl_rng *rng)
{
    combination c;

    for (int k = 0; k < N_CHOICES; k++)
        c.word[k] =
            (uint8_t)(mpl_rng_below(rng, 2) == 0 ? 0 : 1 + mpl_rng_below(rng, choices[k].n - 1));
    if (c.word[VIEWS] != 0 && c.word[CONCAT] == 2) /* without views nothing can share */
        c.word[CONCAT] = 0;
    return c;
}

/* A planned combination, for direct comparisons. */
typedef struct walked {
    combination c;
    uint64_t planned;
    bool optimal;
    bool best_concats; /* the choice of concats has the least best plan */
    bool in_parts;     /* storage comes and goes in parts */
    bool has_blocks;   /* loops or branches */
} walked;

/* ---- planning ---- */

static char **noted; /* [n_commands] what made each row, by its line from 1 */
static uint32_t n_commands;

static void show_combination(const combination *c, char *text, size_t size)
{
    size_t n = 0;

    text[0] = '\0';
    for (int k = 0; k < N_CHOICES; k++)
        n += (size_t)snprintf(text + n, size - n, " %s %s", choices[k].option,
                              choices[k].word[c->word[k]]);
}

/* Notes a command; returns its line. */
static uint32_t note(const char *what, const char *graph, const combination *c)
{
    char text[1200], words[500];

    show_combination(c, words, sizeof words);
    snprintf(text, sizeof text, "%s %s%s", what, graph, words);
    noted = realloc(noted, (n_commands + 1) * sizeof *noted);
    noted[n_commands++] = strdup(text);
    return n_commands;
}

static void parse(mpl_ctx *ctx, mpl_command_id command, const char *graph, const combination *c,
                  mpl_options *options)
{
    char *argv[40] = {"memplan", (char *)graph, "--budget", "300000"};
    int argc = 4;

    for (int k = 0; k < N_CHOICES; k++) {
        if (command == MPL_CMD_least && (k == ORDER || k == PLANNER))
            continue;
        argv[argc++] = (char *)choices[k].option;
        argv[argc++] = (char *)choices[k].word[c->word[k]];
    }
    if (command == MPL_CMD_least) { /* whatever it finds by then is as good */
        argv[argc++] = "--time-limit";
        argv[argc++] = "1";
    }
    mpl_options_init(options);
    assert_ok(ctx, mpl_options_parse(ctx, command, argc, argv, options));
}

/* Whether a planner may refuse: what it needs is not there, or the budget ended. */
static bool may_fail(mpl_status st)
{
    return st == MPL_EINPUT || st == MPL_EUNAVAIL || st == MPL_ELIMIT;
}

/* Plans, audits, and fills *out; false: the combination cannot be planned. */
static bool plan(mpl_ctx *ctx, mpl_audit *audit, const char *graph, walked *out)
{
    mpl_options options;
    mpl_made made = {0};
    mpl_status st;

    uint32_t line = note("plan", graph, &out->c);

    parse(ctx, MPL_CMD_plan, graph, &out->c, &options);
    st = mpl_make(ctx, &options, graph, MPL_TO_PLAN, &made);
    if (st == MPL_OK) {
        assert_ok(ctx, mpl_audit_row(ctx, audit, "walk", line, made.row));
        out->planned = made.plan->peak_bytes;
        out->optimal = made.plan->claim == MPL_OPTIMAL;
        out->in_parts = made.job.problem->inside != NULL;
        out->has_blocks = made.job.source.graph->n_blocks > 1;
        out->best_concats = made.job.concats.by == MPL_CONCAT_BY_EXACT;
    } else if (!may_fail(st)) {
        fail_msg("%s: %s", noted[line - 1], ctx->message);
    }
    mpl_made_fini(ctx, &made);
    mpl_options_fini(ctx, &options);
    return st == MPL_OK;
}

static void plan_least(mpl_ctx *ctx, mpl_audit *audit, const char *graph, const combination *c)
{
    mpl_options options;
    mpl_lowest lowest = {0};
    mpl_record *found = NULL;
    uint32_t line = note("least", graph, c);
    mpl_status st;

    parse(ctx, MPL_CMD_least, graph, c, &options);
    st = mpl_lowest_find(ctx, &options, graph, &lowest);
    if (st == MPL_OK) {
        assert_ok(ctx, mpl_lowest_row(ctx, &options, &lowest, &found));
        assert_ok(ctx, mpl_audit_row(ctx, audit, "walk", line, found));
    } else if (!may_fail(st)) {
        fail_msg("%s: %s", noted[line - 1], ctx->message);
    }
    mpl_record_free(ctx, found);
    mpl_lowest_fini(ctx, &lowest);
    mpl_options_fini(ctx, &options);
}

/* ---- direct comparisons ---- */

/* Whether a and b have the same words, but perhaps for option k. */
static bool same_but(const walked *a, const walked *b, choice k)
{
    for (int i = 0; i < N_CHOICES; i++)
        if (i != (int)k && a->c.word[i] != b->c.word[i])
            return false;
    return true;
}

/* Whether `a` has all that `b` may do and more, for a reason that needs no audit. */
static bool is_freer(const walked *a, const walked *b)
{
    bool both = a->optimal && b->optimal, copied = a->c.word[CONCAT] == 0;
    bool given = a->c.word[ORDER] == 0;

    /* the plan in the order given is kept if it is lower: of any planner */
    if (same_but(a, b, ORDER) && b->c.word[ORDER] == 0 && a->c.word[ORDER] <= 4)
        return true;
    /* auto plans every choice exactly, where it says so */
    if (same_but(a, b, CONCAT) && a->best_concats && given && both)
        return true;
    if (same_but(a, b, PAIRS) && copied && given && both)
        return a->c.word[PAIRS] == 0 && !b->in_parts; /* with pairs some storage stays whole */
    /* where inputs are planned, the unread ones are there for the first step, or for none; the
     * safeties do not offer the same pairs in blocks */
    return same_but(a, b, SAFETY) && copied && given && both && a->c.word[SAFETY] == 0 &&
           a->c.word[PIN] <= 1 && !a->has_blocks;
}

/* Returns the pairs compared, and adds those that are wrong to *n_wrong. */
static uint32_t compare_directly(const char *graph, const walked *w, uint32_t n, uint32_t *n_wrong)
{
    uint32_t compared = 0;
    char text[2][500];

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++) {
            if (i == k || !is_freer(&w[i], &w[k]))
                continue;
            compared++;
            if (w[i].planned <= w[k].planned)
                continue;
            ++*n_wrong;
            show_combination(&w[i].c, text[0], sizeof text[0]);
            show_combination(&w[k].c, text[1], sizeof text[1]);
            print_error("%s: %" PRIu64 " bytes with more freedom,%s; %" PRIu64 " with less,%s\n",
                        graph, w[i].planned, text[0], w[k].planned, text[1]);
        }
    return compared;
}

/* ---- the walk ---- */

/* A drawn combination and its neighbours: each differs from it in one option. */
static uint32_t walk_around(mpl_ctx *ctx, mpl_audit *audit, const char *graph, const combination *c,
                            walked *w)
{
    static const struct {
        choice option;
        uint8_t word;
    } step[] = {{PAIRS, 0}, {PAIRS, 1}, {SAFETY, 1}, {ORDER, 0}, {ORDER, 2}, {CONCAT, 1}};
    uint32_t n = 0;

    w[n].c = *c;
    n += plan(ctx, audit, graph, &w[n]);
    for (size_t k = 0; k < sizeof step / sizeof *step; k++) {
        if (c->word[step[k].option] == step[k].word)
            continue;
        w[n].c = *c;
        w[n].c.word[step[k].option] = step[k].word;
        n += plan(ctx, audit, graph, &w[n]);
    }
    return n;
}

static void report(const mpl_audit *audit)
{
    char scope[600];

    for (uint32_t i = 0; i < audit->n_beaten; i++) {
        const mpl_beaten *b = &audit->beaten[i];

        print_error("%s: %s, %" PRIu64 "; %s: %s %" PRIu64 "; scope: %s\n",
                    noted[audit->row[b->claim.row].line - 1], b->claim.what, b->claim.amount,
                    noted[audit->row[b->plan.row].line - 1], b->plan.what, b->plan.amount,
                    mpl_scope_text(&b->claim.scope, scope, sizeof scope));
    }
    print_message("%u of %u claims compared with %u of %u rows, %" PRIu64 " comparisons\n",
                  audit->n_claims_compared, audit->claims.n, audit->n_rows_compared, audit->n_rows,
                  audit->n_comparisons);
}

TEST(what_is_proved_is_never_beaten)
{
    uint64_t n_walks = number_asked("AUDIT_WALK", 2), seed = number_asked("AUDIT_SEED", 1);
    mpl_audit audit = {0};
    uint32_t direct = 0, n_wrong = 0;
    mpl_rng rng = mpl_rng_of(seed);

    for (uint32_t i = 0; i < N_GRAPHS; i++) {
        char graph[700];

        snprintf(graph, sizeof graph, "%s", graph_name(ctx, i, seed));
        for (uint64_t k = 0; k < n_walks; k++) {
            walked w[8];
            combination c = draw(&rng);
            uint32_t n = walk_around(ctx, &audit, graph, &c, w);

            direct += compare_directly(graph, w, n, &n_wrong);
            if (k % 4 == 0) /* it takes longer */
                plan_least(ctx, &audit, graph, &c);
        }
    }
    assert_ok(ctx, mpl_audit_judge(ctx, &audit));
    report(&audit);
    print_message("%u pairs compared directly\n", direct);
    assert_int_equal(audit.n_beaten + n_wrong, 0);
    assert_true(audit.n_comparisons > N_GRAPHS * n_walks && direct > N_GRAPHS);
    mpl_audit_fini(ctx, &audit);
    for (uint32_t i = 0; i < n_commands; i++)
        free(noted[i]);
    free(noted);
}

static int begin(void)
{
    return folder_make("walk");
}

TESTS_WITHIN(begin, folder_remove, what_is_proved_is_never_beaten)
