/* Loops that keep their tape in part: schedules against the formula, a dynamic program and a search
 * of all ways; their graphs give the same bits, run as many rounds as said, and never have a higher
 * peak. Fault: a state read from a row that holds another; a round that runs again in vain or on
 * the wrong slice; a loop taken for one whose tape nothing else reads. */
#include "tests/runtime/bound_graph.h"
#include "tests/recompute/random_loops.h"

#include "planners/recompute/recompute.h"
#include "planners/verify/verify.h"

enum { ROUNDS = 200, SLOTS = 12, FEW_ROUNDS = 6, FEW_SLOTS = 3 };

/* ---- schedules ---- */

/* Plays a schedule on rows that hold numbers of rounds. */
static void play(const mpl_schedule *s, uint32_t l)
{
    uint32_t *row = malloc(s->n_rows * sizeof *row), left = l, at = UINT32_MAX;
    uint64_t forward = 0, sweep = UINT64_MAX;

    memset(row, 0xff, s->n_rows * sizeof *row);
    row[0] = 0;
    for (uint32_t i = 0; i < s->n_actions; i++) {
        const mpl_schedule_action *a = &s->action[i];

        assert_in_range(a->row, 0, s->n_rows - 1);
        assert_int_equal(row[a->row], a->from);
        if (a->step == MPL_REVERSE) {
            assert_int_equal(a->from, left - 1);
            sweep = sweep == UINT64_MAX ? forward : sweep;
            left--;
        } else {
            assert_true(a->from < a->to && a->to < left);
            assert_in_range(a->store, 0, s->n_rows - 1);
            assert_true(i == 0 || s->action[i - 1].step == MPL_REVERSE || at == a->row);
            row[at = a->store] = a->to;
            forward += a->to - a->from;
        }
    }
    assert_int_equal(left, 0);
    assert_int_equal(forward, s->n_forward);
    assert_int_equal(sweep, l - 1);
    free(row);
}

/* least[c][l] by t(l, c) = min over m of m + t(l - m, c - 1) + t(m, c). */
static void dynamic_program(uint64_t least[SLOTS + 1][ROUNDS + 1])
{
    for (uint32_t c = 1; c <= SLOTS; c++)
        for (uint32_t l = 1; l <= ROUNDS; l++) {
            least[c][l] = (uint64_t)l * (l - 1) / 2;
            for (uint32_t m = 1; m < l && c > 1; m++)
                least[c][l] = mpl_min_u64(least[c][l], m + least[c - 1][l - m] + least[c][m]);
        }
}

TEST(revolve_is_the_least)
{
    static uint64_t least[SLOTS + 1][ROUNDS + 1];

    dynamic_program(least);
    for (uint32_t c = 1; c <= SLOTS; c++)
        for (uint32_t l = 1; l <= ROUNDS; l++) {
            mpl_schedule s;

            assert_ok(ctx, mpl_schedule_revolve(ctx, l, c, &s));
            assert_int_equal(s.n_forward, least[c][l]);
            assert_int_equal(mpl_revolve_rounds(l, c), least[c][l]);
            assert_int_equal(s.n_rows, (c < l ? c : l) + 1);
            play(&s, l);
            mpl_schedule_fini(ctx, &s);
        }
    assert_int_equal(mpl_revolve_rounds(1000, 10), 3636);
    assert_int_equal(mpl_revolve_rounds(10000, 10), 57624);
}

/* States of a search: what each slot and the machine hold (a round, or l: nothing), how many rounds
 * are left. Any state may be kept anywhere, any time. */
static uint32_t coded(const uint32_t *slot, uint32_t c, uint32_t here, uint32_t left, uint32_t l)
{
    uint32_t n = left * (l + 1) + here;

    for (uint32_t k = 0; k < c; k++)
        n = n * (l + 1) + slot[k];
    return n;
}

/* The least rounds forward of all ways, by relaxing every move until nothing changes. */
static uint32_t searched(uint32_t l, uint32_t c)
{
    uint32_t n = (l + 1) * (l + 1), best = UINT32_MAX, slot[FEW_SLOTS], *cost;
    bool more = true;

    for (uint32_t k = 0; k < c; k++)
        n *= l + 1;
    cost = malloc(n * sizeof *cost);
    memset(cost, 0xff, n * sizeof *cost);
    for (uint32_t k = 0; k < c; k++)
        slot[k] = k == 0 ? 0 : l;
    cost[coded(slot, c, l, l, l)] = 0;
    while (more) {
        more = false;
        for (uint32_t state = 0; state < n; state++) {
            uint32_t rest = state, here, left;

            if (cost[state] == UINT32_MAX)
                continue;
            for (uint32_t k = c; k-- > 0; rest /= l + 1)
                slot[k] = rest % (l + 1);
            here = rest % (l + 1), left = rest / (l + 1);
            for (uint32_t move = 0; move < 2 * c + 2; move++) {
                uint32_t k = move % c, was = slot[k], to = here, down = left, price = 0, next;

                if (move < c && was < l)
                    to = was; /* restore */
                else if (move >= c && move < 2 * c && here < l)
                    slot[k] = here; /* store */
                else if (move == 2 * c && here + 1 < left)
                    to = here + 1, price = 1;
                else if (move == 2 * c + 1 && here < l && here + 1 == left)
                    to = l, down = left - 1; /* going back uses the state up */
                next = coded(slot, c, to, down, l);
                slot[k] = was;
                if (cost[state] + price < cost[next]) {
                    cost[next] = cost[state] + price;
                    more = true;
                }
            }
            if (left == 0)
                best = cost[state] < best ? cost[state] : best;
        }
    }
    free(cost);
    return best;
}

TEST(no_way_has_fewer)
{
    for (uint32_t c = 1; c <= FEW_SLOTS; c++)
        for (uint32_t l = 1; l <= FEW_ROUNDS - (c == FEW_SLOTS); l++)
            assert_int_equal(searched(l, c), mpl_revolve_rounds(l, c));
}

TEST(sqrt_keeps_segments)
{
    for (uint32_t l = 1; l <= 1000; l += l < ROUNDS ? 1 : 37) {
        mpl_schedule s;
        uint32_t m = 1, n;

        while (m * m < l)
            m++;
        n = (l + m - 1) / m;
        assert_ok(ctx, mpl_schedule_sqrt(ctx, l, 0, &s));
        play(&s, l);
        assert_int_equal(s.n_rows, n + m - 1);
        assert_int_equal(s.n_forward, l - 1 + (n - 1) * (m - 1));
        mpl_schedule_fini(ctx, &s);
    }
}

/* ---- graphs ---- */

static mpl_status recompute(mpl_ctx *ctx, const mpl_graph *g, const char *method, uint32_t slots,
                            mpl_graph **made, mpl_recompute_found *found)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_recompute_task task = {
        .ctx = ctx, .g = g, .options = &options, .budget = MPL_LEAST_PEAK, .slots = slots};
    mpl_status st = mpl_recompute(mpl_recompute_find(method), &task, made);

    *found = task.found;
    return st;
}

/* Counts the writes into slots. */
static const mpl_backend *counted;
static uint64_t n_scattered;

static mpl_status count_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    n_scattered += call->graph->op_kind[call->op] == MPL_OP_scatter_nd;
    return counted->run_op(dev, prepared, call);
}

/* All outputs of the second planned run; weights carry over. *scattered: writes of each run. */
static char *outputs(mpl_ctx *ctx, const mpl_graph *g, const char *backend, bool parallel,
                     const char *planner, uint64_t *scattered)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_backend counting = *(counted = mpl_backend_find(backend));
    bound b;
    char *out;

    counting.run_op = count_op;
    options.parallel = parallel;
    n_scattered = 0;
    bind_device(ctx, &counting, g, "given", &(mpl_device_options){.n_threads = 1}, &b);
    bind_problem(&b, &options, planner);
    assert_ok(ctx, mpl_verify_places(ctx, g, b.map, b.p, b.plan));
    bind_exec(&b,
              &(mpl_exec_options){
                  .weight_seed = 1, .iterate = true, .checked = !parallel && g->n_ops % 2 == 0},
              7);
    for (int i = 0; i < 2; i++)
        assert_ok(ctx, mpl_exec_run(b.exec, NULL));
    *scattered = n_scattered / 2;
    out = outputs_of(ctx, g, b.exec);
    unbind(&b);
    return out;
}

static void check_bits(mpl_ctx *ctx, const char *what, const mpl_graph *g, const mpl_graph *made,
                       const char *backend, bool parallel, const char *planner, uint64_t *writes)
{
    uint64_t none;
    char *want = outputs(ctx, g, backend, parallel, planner, &none),
         *got = outputs(ctx, made, backend, parallel, planner, writes);

    assert_int_equal(g->n_outputs, made->n_outputs);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        assert_string_equal(g->value_name[g->output[i]], made->value_name[made->output[i]]);
    if (memcmp(want, got, output_bytes(g)) != 0)
        fail_msg("%s on %s: outputs differ", what, backend);
    *writes -= none;
    mpl_free_each(ctx, want, got);
}

static const struct {
    const char *graph, *method;
    uint32_t slots;
    uint64_t rounds;                     /* forward, beyond those reversed */
    uint32_t n_states, n_loops, n_turns; /* of each loop; with a tape; times that these run */
} networks[] = {
    {"lstm:form=while,layers=1,steps=1000,hidden=4,batch=2,mode=train", "revolve", 10, 3636, 2, 1,
     1},
    {"lstm:form=while,layers=1,steps=1000,hidden=4,batch=2,mode=train", "sqrt", 0, 1960, 2, 1, 1},
    {"lstm:form=while,layers=2,steps=50,hidden=16,batch=2,mode=train,update=adam", "revolve", 4,
     144, 4, 1, 1},
    {"gru:form=while,layers=2,steps=30,hidden=16,batch=2,mode=train,update=sgd", "revolve", 2, 126,
     2, 1, 1},
    {"gru:form=while,layers=1,steps=20,hidden=16,batch=2,mode=train", "revolve", 1, 190, 1, 1, 1},
    {"nested_loop:rounds=9,depth=2,image=6,channels=2,mode=train,update=momentum", "sqrt", 0, 120,
     1, 2, 10},
    {"nested_loop:rounds=9,depth=2,image=6,channels=2,mode=train", "revolve", 3, 130, 1, 2, 10},
    {"pingpong:rounds=12,image=6,channels=2,mode=train", "revolve", 3, 21, 1, 1, 1},
    {"delay:rounds=40,taps=3,image=4,channels=2,mode=train", "revolve", 5, 92, 3, 1, 1},
    {"seq2seq:steps=20,most=30,hidden=8,vocab=10,batch=2,mode=train,update=adam", "revolve", 3, 130,
     1, 2, 2},
};

TEST(the_same_bits)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        owned_graph *g = zoo_graph(ctx, networks[i].graph);
        mpl_graph *made = NULL;
        mpl_recompute_found found;
        uint64_t writes;

        assert_ok(ctx, recompute(ctx, g, networks[i].method, networks[i].slots, &made, &found));
        assert_int_equal(found.n_loops, networks[i].n_loops);
        assert_true(found.peak_bytes < found.before_bytes);
        assert_true(found.tape_bytes < found.tape_before_bytes);
        for (int parallel = 0; parallel < (found.forward_rounds < 1000 ? 2 : 1); parallel++) {
            check_bits(ctx, networks[i].graph, g, made, "ref", parallel != 0, "greedy_size",
                       &writes);
            assert_int_equal(found.forward_rounds, networks[i].rounds);
            assert_int_equal(writes, /* one more each time: the first sweep's first state */
                             (networks[i].rounds + networks[i].n_turns) * networks[i].n_states);
        }
        if (mpl_backend_find("cpu") != NULL && mpl_backend_find("cpu")->open != NULL)
            check_bits(ctx, networks[i].graph, g, made, "cpu", false, "best_fit", &writes);
        mpl_graph_free(ctx, made);
    }
}

/* ---- random programs ---- */

static uint32_t n_programs(void)
{
    const char *text = getenv("MPL_REVOLVED");

    return text != NULL ? (uint32_t)atoi(text) : 30;
}

/* Whether program `seed` keeps a part of a tape, by the k-th choice of method, device and planner.
 */
static bool check_program(mpl_ctx *ctx, uint32_t seed, uint32_t k)
{
    static const char *const planners[] = {"greedy_size", "best_fit", "none", "first_fit"};
    mpl_graph *g = random_loops(ctx, seed), *made = NULL;
    mpl_recompute_found found;
    uint64_t writes;
    char what[40];
    mpl_status st;

    snprintf(what, sizeof what, "program %u", seed);
    st = recompute(ctx, g, k % 3 == 0 ? "sqrt" : "revolve", k % 3 == 0 ? 0 : k % 4, &made, &found);
    if (st == MPL_EINPUT) { /* no loss needs the loop */
        if (strstr(ctx->message, "no loop of it has a tape") == NULL)
            fail_msg("%s: %s", what, ctx->message);
        mpl_graph_free(ctx, g);
        return false;
    }
    assert_ok(ctx, st);
    assert_true(found.peak_bytes <= found.before_bytes);
    if (found.n_loops > 0)
        check_bits(ctx, what, g, made, k % 5 == 0 ? "cpu" : "ref", k % 2 == 0, planners[k % 4],
                   &writes);
    mpl_graph_free(ctx, made);
    mpl_graph_free(ctx, g);
    return found.n_loops > 0;
}

TEST(random_programs)
{
    uint32_t n_done = 0;

    for (uint32_t i = 0; i < n_programs(); i++)
        n_done += check_program(ctx, i, i);
    assert_true(n_done * 2 > n_programs()); /* more than a half of them */
}

/* Slices from the end, a state that is a slice, an update that waits for what a loop overwrites,
 * and a source whose cells cannot take turns: each was wrong once. */
TEST(hard_programs)
{
    assert_true(check_program(ctx, 49, 49));
    assert_true(check_program(ctx, 77, 77));
    assert_true(check_program(ctx, 135, 85));
    assert_true(check_program(ctx, 849, 799));
}

/* ---- refusals, memory ---- */

/* The training of a loop; `more` follows it. */
#define LOOP(loop, more)                                                                           \
    "graph g\ninput x f32 [20,3]\ninput n i64 []\nweight w f32 [3,3]\nblock b\n  param r i64 []\n" \
    "  param h f32 [20,3]\n  p = matmul(h, w)\n  t = tanh(p)\nyield _, t, h\n"                     \
    "y, tape = while b(" loop                                                                      \
    ") carried=1 trips=9\ninput g f32 [20,3]\nweight l i64 [] = data 8\n"                          \
    "block c\n  param r2 i64 []\n  param d f32 [20,3]\n  param s f32 [20,3]\n  m = mul(d, s)\n"    \
    "  u = matmul(m, w)\nyield _, u\nz = while c(_, _, g, tape) carried=1 " more "\noutput z\n"    \
    "output y\n"
#define BACK "scan_reverse=[1]"
/* The tape shows only h, whose next value needs k, whose next value needs m. */
#define HIDDEN                                                                                     \
    "graph g\ninput x f32 [20,3]\nblock b\n  param r i64 []\n  param h f32 [20,3]\n"               \
    "  param k f32 [20,3]\n  param m f32 [20,3]\n  t = tanh(k)\n  p = sigmoid(m)\n"                \
    "  q = add(m, x)\nyield _, t, p, q, h\n"                                                       \
    "y, _, _, tape = while b(_, _, x, x, x) carried=3 trips=19\nblock c\n  param r2 i64 []\n"      \
    "  param d f32 [20,3]\n  param s f32 [20,3]\n  u = mul(d, s)\nyield _, u\n"                    \
    "z = while c(_, _, x, tape) carried=1 scan_reverse=[1]\noutput z\noutput y\n"

TEST(loops_that_qualify)
{
    static const struct {
        const char *text, *why; /* NULL: it keeps a part of its tape */
    } rows[] = {
        {LOOP("_, _, x", BACK), NULL},
        {HIDDEN, NULL},
        {LOOP("_, _, x", BACK "\nweight v f32 [3,3] = splat 1\nn2 = sgd_update(v, w, tape, z)\n"
                              "output n2"),
         NULL},
        {LOOP("n, _, x", BACK), "known only as it runs"},
        {LOOP("_, _, x", "scan_reverse=[0]"), "not one loop alone reads it back"},
        {LOOP("_, _, x", BACK "\nq = reduce_sum(tape) axes=[0] keepdims=0\noutput q"),
         "not one loop alone reads it back"},
        {LOOP("_, _, x", BACK "\noutput tape"), "not one loop alone reads it back"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = text_graph(ctx, rows[i].text);
        mpl_graph *made = NULL;
        mpl_recompute_found found;
        mpl_status st = recompute(ctx, g, "revolve", 2, &made, &found);
        uint64_t writes;

        assert_status(ctx, st, rows[i].why == NULL ? MPL_OK : MPL_EINPUT);
        if (rows[i].why != NULL && strstr(ctx->message, rows[i].why) == NULL)
            fail_msg("row %zu: %s", i, ctx->message);
        if (rows[i].why == NULL) {
            assert_int_equal(found.n_loops, 1);
            check_bits(ctx, "by hand", g, made, "ref", false, "greedy_size", &writes);
        }
        mpl_graph_free(ctx, made);
    }
}

TEST(too_many_rounds)
{
    mpl_schedule s;

    assert_status(ctx, mpl_schedule_revolve(ctx, 10000, 1, &s), MPL_ELIMIT);
    assert_status(ctx, mpl_schedule_revolve(ctx, UINT32_MAX, 1, &s), MPL_ELIMIT);
    assert_status(ctx, mpl_schedule_sqrt(ctx, UINT32_MAX, 0, &s), MPL_ELIMIT);
    assert_ok(ctx, mpl_schedule_revolve(ctx, 200000, 100, &s));
    assert_int_equal(s.n_forward, mpl_revolve_rounds(200000, 100));
    mpl_schedule_fini(ctx, &s);
}

TEST(memory_may_run_out)
{
    mpl_graph *g = zoo_graph(ctx, "nested_loop:rounds=5,image=4,channels=1,mode=train");

    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_recompute_found found;
        mpl_graph *made = NULL;

        st = recompute(ctx, g, "revolve", 2, &made, &found);
        mpl_graph_free(ctx, made);
    }
    mpl_graph_free(ctx, g);
}

TESTS(revolve_is_the_least, no_way_has_fewer, sqrt_keeps_segments, the_same_bits, random_programs,
      hard_programs, loops_that_qualify, too_many_rounds, memory_may_run_out)
