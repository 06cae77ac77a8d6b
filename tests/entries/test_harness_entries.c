/* test_harness_entries.c -- several graphs over one memory: random models called in random
 * sequences against runs of each graph alone; the least arena by brute force; planted faults that
 * the verifier must refuse; what the command line says. */
#include "tests/support/placement_oracle.h"

#include "tests/harness/run_program.h"

#include "harness/entries/entries.h"
#include "planners/verify/verify.h"

/* ---- a model through the same steps as the program's ---- */

typedef struct model {
    mpl_options options;
    mpl_entries *entries;
    mpl_made made;
} model;

static mpl_status model_plan(mpl_ctx *ctx, const char *path, bool in_place, model *m)
{
    const char *graph = path;

    memset(m, 0, sizeof *m);
    mpl_options_init(&m->options);
    m->options.backend = "ref";
    m->options.planner = "exact";
    m->options.in_place = in_place;
    MPL_PASS(mpl_strings_add(ctx, &m->options.args, path));
    MPL_PASS(mpl_entries_start(ctx, &m->options, 1, &graph, &m->entries));
    MPL_PASS(mpl_make(ctx, &m->options, graph, MPL_TO_PLAN, &m->made));
    return mpl_entries_finish(ctx, &m->options, m->entries, &m->made);
}

static void model_free(mpl_ctx *ctx, model *m)
{
    mpl_made_fini(ctx, &m->made);
    mpl_entries_free(ctx, m->entries);
    mpl_options_fini(ctx, &m->options);
}

/* ---- random models ---- */

typedef struct writer {
    FILE *f;
    mpl_rng rng;
    uint32_t n_made;
    char value[40][8]; /* of the entry, [4,16] */
    uint32_t n_values;
} writer;

static const char *any_value(writer *w)
{
    return w->value[mpl_rng_below(&w->rng, w->n_values)];
}

static void add_line(writer *w)
{
    static const char *const unary[] = {"relu", "tanh", "neg", "softmax"};
    const char *a = any_value(w), *b = any_value(w);
    uint32_t n = w->n_made++;

    switch (mpl_rng_below(&w->rng, 6)) {
    case 0:
        fprintf(w->f, "v%u = %s(%s)\n", n, unary[mpl_rng_below(&w->rng, 4)], a);
        break;
    case 1:
        fprintf(w->f, "v%u = add(%s, %s)\n", n, a, b);
        break;
    case 2:
        fprintf(w->f, "v%u = mul(%s, %s)\n", n, a, b);
        break;
    case 3:
        fprintf(w->f, "v%u = scatter_elements(%s, idx, row) axis=0\n", n, a);
        break;
    case 4:
        fprintf(w->f, "h%u = slice(%s) starts=[0] ends=[2] axes=[0]\n", n, a);
        fprintf(w->f, "g%u = slice(%s) starts=[2] ends=[4] axes=[0]\n", n, b);
        fprintf(w->f, "v%u = concat(g%u, h%u) axis=0\n", n, n, n);
        break;
    case 5:
        fprintf(w->f, "f%u = reshape(%s) shape=[64]\n", n, a);
        fprintf(w->f, "v%u = reshape(f%u) shape=[4,16]\n", n, n);
        break;
    }
    snprintf(w->value[w->n_values++], 8, "v%u", n);
}

/* One entry; states 0 and 1 are [4,16]; state 2 grows by a row or a column a call. */
static void add_entry(writer *w, uint32_t e, uint32_t n_states, uint32_t most, bool inner)
{
    uint32_t n = 1 + mpl_rng_below(&w->rng, most);

    fprintf(w->f, "entry e%u\ninput x f32 [4,16]\ninput row f32 [1,16]\ninput column f32 [4,1]\n",
            e);
    w->n_values = 0;
    snprintf(w->value[w->n_values++], 8, "x");
    for (uint32_t s = 0; s < n_states && s < 2; s++)
        snprintf(w->value[w->n_values++], 8, "s%u", s);
    while (n-- > 0)
        add_line(w);
    for (uint32_t s = 0; s < n_states && s < 2; s++)
        if (mpl_rng_below(&w->rng, 4) > 0)
            fprintf(w->f, "update s%u %s\n", s,
                    mpl_rng_below(&w->rng, 4) == 0 ? any_value(w) : w->value[w->n_values - 1 - s]);
    if (n_states == 3 && mpl_rng_below(&w->rng, 3) == 0)
        fprintf(w->f, "c%u = exp(s2)\n", e);
    if (n_states == 3 && mpl_rng_below(&w->rng, 3) == 0)
        fprintf(w->f, "g = relu(x)\nupdate s2 g\n");
    else if (n_states == 3)
        fprintf(w->f, "g = concat(s2, %s) axis=%d\nupdate s2 g\n", inner ? "column" : "row", inner);
    fprintf(w->f,
            mpl_rng_below(&w->rng, 6) > 0 ? "last = tanh(%s)\noutput last\n"
                                          : "last = reshape(%s) shape=[16,4]\noutput last\n",
            any_value(w));
}

static void write_model(const char *path, uint64_t seed, uint32_t most_entries, uint32_t most_ops)
{
    writer w = {.f = fopen(path, "w")};
    uint32_t n_states, n_entries;
    bool inner;

    assert_non_null(w.f);
    w.rng = mpl_rng_of(seed);
    n_states = 1 + mpl_rng_below(&w.rng, 3);
    n_entries = 1 + mpl_rng_below(&w.rng, most_entries);
    inner = mpl_rng_below(&w.rng, 2) == 1;
    fprintf(w.f, "graph random\nweight idx i64 [1,16] = splat 2\n");
    for (uint32_t s = 0; s < n_states; s++)
        fprintf(w.f, "state s%u f32 [4,16]\n", s);
    for (uint32_t e = 0; e < n_entries; e++)
        add_entry(&w, e, n_states, most_ops, inner);
    assert_int_equal(fclose(w.f), 0);
}

/* ---- they compute what each computes alone ---- */

static uint64_t states_end(const model *m)
{
    uint64_t end = 0;

    for (uint32_t s = 0; s < m->entries->n_states; s++)
        end += (m->entries->state_bytes[s] + 63) / 64 * 64;
    return end;
}

/* The arena holds the states beside the largest entry, at most. */
static void check_arena(mpl_ctx *ctx, const model *m)
{
    uint64_t most = 0;

    for (uint32_t e = 0; e < m->entries->n; e++) {
        owned_plan *alone = planned_by(ctx, "exact", m->entries->entry[e].job.problem);

        assert_ok(ctx, mpl_verify(ctx, m->entries->entry[e].job.problem, alone));
        most = alone->peak_bytes > most ? alone->peak_bytes : most;
    }
    assert_true(m->made.plan->peak_bytes <= states_end(m) + most);
}

static void call_at_random(mpl_ctx *ctx, const model *m, uint64_t seed)
{
    mpl_executed executed = {0};
    uint32_t calls[12], n;
    mpl_rng rng = mpl_rng_of(seed);

    n = 1 + mpl_rng_below(&rng, 12);
    for (uint32_t k = 0; k < n; k++)
        calls[k] = mpl_rng_below(&rng, m->entries->n);
    assert_ok(ctx, mpl_calls_run(ctx, &m->options, &m->made.job, m->entries, m->made.plan, calls, n,
                                 &executed));
    if (executed.error != 0)
        fail_msg("sequence %" PRIu64 ": outputs differ by %g", seed, executed.error);
    mpl_executed_fini(ctx, &executed);
}

TEST(any_sequence_of_calls_computes_what_each_computes_alone)
{
    const char *more = getenv("MPL_ENTRIES");
    uint32_t n_models = more != NULL ? (uint32_t)atoi(more) : draws(60), per_model = draws(17),
             made = 0, copied = 0, in_place = 0;

    for (uint64_t seed = 0; seed < n_models; seed++) {
        const char *path = in_folder("random.graph");
        mpl_status st;
        model m;

        write_model(path, seed, 3, 8);
        st = model_plan(ctx, path, true, &m);
        if (st == MPL_EINPUT && strstr(ctx->message, "exchange") != NULL) {
            model_free(ctx, &m);
            continue;
        }
        assert_ok(ctx, st);
        check_arena(ctx, &m);
        for (uint32_t e = 0; e < m.entries->n; e++)
            for (uint32_t s = 0; s < m.entries->n_states; s++) {
                const mpl_kept *kept = &m.entries->entry[e].state[s];

                copied += kept->copied_bytes > 0;
                in_place += kept->copied_bytes == 0 && kept->after != MPL_NONE;
            }
        for (uint32_t k = 0; k < per_model; k++)
            call_at_random(ctx, &m, seed * 1000 + k);
        made++;
        model_free(ctx, &m);
    }
    assert_true(often(made > n_models * 3 / 4));
    assert_true(copied > 0 && in_place > copied / 2);
}

TEST(exact_finds_the_least_arena)
{
    uint32_t gaps = 0, without = 0;

    for (uint64_t seed = 0; seed < draws(400); seed++) {
        const char *path = in_folder("small.graph");
        const mpl_problem *p;
        uint64_t least = 0;
        bool odd = false;
        model m;

        write_model(path, 5000 + seed, 2, 3);
        if (model_plan(ctx, path, false, &m) != MPL_OK) {
            model_free(ctx, &m);
            continue;
        }
        p = m.made.job.problem;
        assert_int_equal(m.made.plan->claim, MPL_OPTIMAL);
        for (uint32_t s = 0; s < m.entries->n_states; s++)
            odd = odd || p->bytes[s] % 64 != 0;
        if (p->inside != NULL || odd || p->n > 9) {
            model_free(ctx, &m);
            continue;
        }
        if (p->gap_begin == NULL && p->birth[0] == 0 && p->birth[m.entries->n_states - 1] == 0) {
            for (uint32_t e = 0; e < m.entries->n; e++) {
                uint64_t own = least_peak(ctx, m.entries->entry[e].job.problem);

                least = own > least ? own : least;
            }
            if (p->birth[m.entries->n_states / 2] == 0) {
                assert_int_equal(m.made.plan->peak_bytes, states_end(&m) + least);
                without++;
            }
        } else if (p->n <= 8) {
            assert_int_equal(m.made.plan->peak_bytes, least_peak(ctx, p));
            gaps++;
        }
        model_free(ctx, &m);
    }
    assert_true(gaps >= draws(6) && without >= draws(6));
}

/* ---- what the verifier must refuse ---- */

#define HEAD "graph two\nstate k f32 [4,16]\nweight idx i64 [1,16] = splat 2\n"
#define FILL                                                                                       \
    "entry fill\ninput x f32 [4,16]\na = transpose(x) perm=[1,0]\nb = transpose(a) perm=[1,0]\n"   \
    "c = softmax(b)\ny = softmax(c)\nupdate k c\noutput y\n"
#define STEP                                                                                       \
    "entry step\ninput row f32 [1,16]\nk2 = scatter_elements(k, idx, row) axis=0\n"                \
    "d = softmax(k2)\nz = softmax(d)\nupdate k k2\noutput z\n"
static const char two[] = HEAD FILL STEP;

static void refused(mpl_ctx *ctx, mpl_status st, const char *part)
{
    assert_status(ctx, st, MPL_EINVALID);
    if (strstr(ctx->message, part) == NULL)
        fail_msg("'%s' should say '%s'", ctx->message, part);
}

static mpl_buffer named(const mpl_problem *p, const char *name)
{
    for (mpl_buffer b = 0; b < p->n; b++)
        if (strcmp(p->buffer_name[b], name) == 0)
            return b;
    fail_msg("no buffer '%s'", name);
    return 0;
}

TEST(plans_that_lose_a_state_are_refused)
{
    model m;
    mpl_plan *plan;
    mpl_buffer d, a;

    folder_put_text("two.graph", two);
    assert_ok(ctx, model_plan(ctx, in_folder("two.graph"), true, &m));
    plan = m.made.plan;
    d = named(m.made.job.problem, "step/d");
    a = named(m.made.job.problem, "fill/a");
    /* the state's place is free until it is filled: no fault */
    plan->offset[a] = plan->offset[0];
    assert_ok(ctx, mpl_entries_verify(ctx, m.entries, plan));
    plan->offset[d] = plan->offset[0];
    refused(ctx, mpl_entries_verify(ctx, m.entries, plan), "reads 'k2' where state 'k' lies");
    plan->offset[d] = plan->offset[0] + 64;
    refused(ctx, mpl_entries_verify(ctx, m.entries, plan), "reads 'k2' where state 'k' lies");
    plan->offset[0] = plan->peak_bytes;
    refused(ctx, mpl_entries_verify(ctx, m.entries, plan), "ends outside of the arena");
    model_free(ctx, &m);
}

/* Before a graph makes a state anew, other buffers lie there: two at once, and no third. */
TEST(a_state_takes_no_memory_before_it_is_made_anew)
{
    static const char *const texts[] = {two, HEAD STEP FILL};

    for (int i = 0; i < 2; i++) {
        model m;

        folder_put_text("two.graph", texts[i]);
        assert_ok(ctx, model_plan(ctx, in_folder("two.graph"), true, &m));
        assert_int_equal(m.made.plan->peak_bytes, 512);
        model_free(ctx, &m);
    }
}

/* One graph with the state `k` as it is held, and a fault in it. */
typedef struct held_graph {
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    mpl_plan *plan;
    uint64_t *held_at;
    mpl_value before, after;
} held_graph;

static void held_make(mpl_ctx *ctx, const char *text, const char *after, held_graph *h)
{
    mpl_problem_options po = mpl_problem_options_default();
    owned_memory uint8_t *held = NULL;

    h->g = text_graph(ctx, text);
    h->order = order_by(ctx, h->g, "given");
    assert_ok(ctx, mpl_new(ctx, held, h->g->n_values));
    assert_ok(ctx, mpl_new(ctx, h->held_at, h->g->n_values));
    h->before = mpl_graph_find(h->g, "k");
    h->after = mpl_graph_find(h->g, after);
    for (mpl_value v = 0; v < h->g->n_values; v++) {
        held[v] = v == h->before || v == h->after;
        h->held_at[v] = held[v] ? 4096 : UINT64_MAX;
    }
    po.held = held;
    assert_ok(ctx, mpl_problem_from_graph(ctx, h->g, h->order, &po, &h->p, &h->map));
    h->plan = planned_by(ctx, "greedy_size", h->p);
    assert_ok(ctx, mpl_verify(ctx, h->p, h->plan));
}

static mpl_status held_verify(mpl_ctx *ctx, const held_graph *h, uint64_t state_at)
{
    const char *name = "k";
    uint64_t bytes = 256;
    mpl_states_at states = {1, &name, &state_at, &bytes, 8192};

    return mpl_verify_calls(
        ctx, &states, 1,
        &(mpl_called){"e", h->g, h->map, h->p, h->plan, &h->before, &h->after, h->held_at});
}

static void held_free(mpl_ctx *ctx, held_graph *h)
{
    mpl_graph_free(ctx, h->g);
    mpl_problem_free(ctx, h->p);
    mpl_value_map_free(ctx, h->map);
    mpl_plan_free(ctx, h->plan);
    mpl_free_each(ctx, h->order, h->held_at);
}

/* Graphs whose output cannot lie where the state does, held there all the same. */
TEST(writes_over_what_is_still_read_are_refused)
{
    static const struct {
        const char *lines, *says; /* NULL: nothing is wrong */
    } table[] = {
        {"n = relu(k)\ny = tanh(n)\n", NULL},
        {"n = relu(x)\ny = tanh(n)\n", NULL},
        {"y = tanh(k)\nn = relu(x)\n", NULL},
        {"n = add(x, k)\ny = tanh(n)\n", NULL},
        {"n = add(k, k)\ny = tanh(n)\n", NULL},
        {"n = relu(k)\ny = tanh(k)\n", "reads 'k' where state 'k' lies; n is there"},
        {"n = relu(x)\ny = tanh(k)\n", "reads 'k' where state 'k' lies; n is there"},
        {"n = matmul(k, w)\ny = tanh(n)\n", "cannot write 'n' over what it reads"},
        {"t = transpose(k) perm=[1,0]\nn = matmul(w, k)\ny = tanh(n)\nz = tanh(t)\noutput z\n",
         "cannot write 'n' over what it reads"},
        {"i = identity(k)\nn = relu(x)\ny = tanh(i)\n", "reads 'i' where state 'k' lies"},
        {"i = identity(k)\nn = relu(x)\ny = tanh(x)\noutput i\n", "which is written later"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[600];
        held_graph h;
        mpl_status st;

        snprintf(text, sizeof text,
                 "graph g\ninput x f32 [8,8]\ninput k f32 [8,8]\nweight w f32 [8,8]\n%soutput n\n"
                 "output y\n",
                 table[i].lines);
        held_make(ctx, text, "n", &h);
        st = held_verify(ctx, &h, 4096);
        if (table[i].says == NULL)
            assert_ok(ctx, st);
        else
            refused(ctx, st, table[i].says);
        held_free(ctx, &h);
    }
}

TEST(states_in_other_places_are_refused)
{
    held_graph h;
    mpl_value n;

    held_make(ctx,
              "graph g\ninput x f32 [8,8]\ninput k f32 [8,8]\nn = relu(k)\ny = tanh(n)\n"
              "output n\noutput y\n",
              "n", &h);
    n = h.after;
    refused(ctx, held_verify(ctx, &h, 64), "is not where a state");
    h.held_at[h.before] = 64;
    refused(ctx, held_verify(ctx, &h, 4096), "is not where a state");
    h.held_at[h.before] = UINT64_MAX;
    refused(ctx, held_verify(ctx, &h, 4096), "input 'k' is not at 4096");
    h.held_at[h.before] = 4096;
    h.held_at[n] = UINT64_MAX;
    refused(ctx, held_verify(ctx, &h, 4096), "output 'n' is not written at 4096");
    held_free(ctx, &h);
}

/* ---- what lies where ---- */

/* How one graph with state `k` [8,8] and new contents `n` keeps it. */
TEST(outputs_are_made_in_place_where_they_can_be)
{
    static const struct {
        const char *lines;
        uint64_t copied_bytes, bound_bytes; /* of scratch */
    } table[] = {
        {"n = relu(k)\n", 0, 0},
        {"a = relu(k)\nb = tanh(a)\nn = neg(b)\n", 0, 0},
        {"a = relu(k)\nn = add(a, a)\ny = tanh(a)\noutput y\n", 0, 256},
        {"n = relu(x)\ny = tanh(k)\noutput y\n", 256, 256},
        {"n = matmul(k, w)\n", 256, 256},
        {"a = matmul(k, w)\nn = relu(a)\n", 0, 256},
        {"n = relu(x)\n", 0, 0},
        {"n = identity(x)\n", 256, 0},
        {"n = identity(k)\n", 0, 0},
        {"r = reshape(k) shape=[64]\ns = relu(r)\nn = reshape(s) shape=[8,8]\n", 0, 0},
        {"n = scatter_elements(k, i, x) axis=0\n", 0, 0},
        {"n = scatter_elements(x, i, k) axis=0\n", 256, 256},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[600];
        const mpl_entry *x;
        model m;

        snprintf(text, sizeof text,
                 "graph g\nstate k f32 [8,8]\nentry e\ninput x f32 [8,8]\nweight w f32 [8,8]\n"
                 "weight i i64 [8,8] = splat 3\n%supdate k n\n",
                 table[i].lines);
        folder_put_text("one.graph", text);
        assert_ok(ctx, model_plan(ctx, in_folder("one.graph"), true, &m));
        x = &m.entries->entry[0];
        if (x->state[0].copied_bytes != table[i].copied_bytes ||
            x->job.bound_bytes != table[i].bound_bytes)
            fail_msg("%s: %" PRIu64 " bytes copied, %" PRIu64 " beside the state", table[i].lines,
                     x->state[0].copied_bytes, x->job.bound_bytes);
        call_at_random(ctx, &m, i);
        model_free(ctx, &m);
    }
}

TEST(a_lack_of_memory_is_a_failure_and_no_leak)
{
    folder_put_text("small.graph", "graph g\nstate k f32 [2,8]\nentry e\ninput x f32 [2,8]\n"
                                   "n = relu(x)\ny = tanh(k)\nupdate k n\noutput y\n");
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_executed executed = {0};
        uint32_t calls[] = {0, 0};
        model m;

        st = model_plan(ctx, in_folder("small.graph"), true, &m);
        if (st == MPL_OK)
            st = mpl_calls_run(ctx, &m.options, &m.made.job, m.entries, m.made.plan, calls, 2,
                               &executed);
        mpl_executed_fini(ctx, &executed);
        model_free(ctx, &m);
    }
}

/* ---- the command line ---- */

static const char prefill[] = "graph prefill\ninput x f32 [1,2,4,8]\nn = relu(x)\ny = tanh(n)\n"
                              "output n\noutput y\n";
static const char decode[] = "graph decode\ninput past.0 f32 [1,2,4,8]\ninput row f32 [1,2,1,8]\n"
                             "now.0 = concat(past.0, row) axis=2\ny = tanh(now.0)\n"
                             "output now.0\noutput y\n";

TEST(a_cache_that_grows_is_planned_at_its_maximum_and_not_copied)
{
    folder_put_text("decode.graph", decode);
    assert_int_equal(run("plan @/decode.graph --shared kv=past.*:now.* -o @/d.json --backend ref"),
                     0);
    assert_non_null(strstr(out, "planned           320 bytes") != NULL
                        ? out
                        : strstr(out, "state             320 bytes"));
    assert_null(strstr(out, "copied"));
    assert_int_equal(run("verify @/decode.graph @/d.json --shared kv=past.*:now.*"), 0);
    assert_int_equal(run("run @/decode.graph --plan @/d.json --shared kv=past.*:now.* "
                         "--calls decode*20"),
                     0);
    assert_non_null(strstr(out, "outputs:  equal"));
}

TEST(two_files_share_a_state)
{
    folder_put_text("prefill.graph", prefill);
    folder_put_text("decode.graph", decode);
    assert_int_equal(run("run @/prefill.graph @/decode.graph --shared kv=past.*:now.*,o=x:n "
                         "--backend ref --calls prefill,decode*3,prefill --json"),
                     0);
    assert_non_null(strstr(out, "\"entries\":[{\"name\":\"prefill\""));
    assert_non_null(strstr(out, "\"outputs\":\"equal\""));
    assert_non_null(strstr(out, "\"calls\":\"prefill,decode*3,prefill\""));
}

/* The file says which states there are; so do the graphs' names, and numbers where they are alike.
 */
TEST(a_plan_file_is_enough)
{
    static const char graphs[] = "gpt:seq=4,layers=1,hidden=16,heads=2,vocab=9,context=8 "
                                 "gpt:seq=1,past=3,layers=1,hidden=16,heads=2,vocab=9,context=8";

    assert_int_equal(run("plan %s --shared kv=past.*:present.* --backend ref -o @/g.json", graphs),
                     0);
    assert_non_null(strstr(out, "2 shared by 2 graphs"));
    assert_null(strstr(out, "copied"));
    assert_int_equal(run("verify %s @/g.json", graphs), 0);
    assert_int_equal(run("run %s --plan @/g.json --calls gpt,gpt-2*5 --json", graphs), 0);
    assert_non_null(strstr(out, "\"outputs\":\"equal\""));
    assert_non_null(strstr(out, "\"shared_state\":\"kv=past.*:present.*\""));
}

TEST(wrong_commands_get_one_line)
{
    static const struct {
        const char *arguments, *says;
    } table[] = {
        {"plan @/decode.graph --shared kv=nothing.*:now.*", "no graph has an input 'nothing.*'"},
        {"plan @/decode.graph --shared kv=past.*:then.*", "no graph has an output 'then.*'"},
        {"plan @/decode.graph --shared kv=past.*", "is not NAME=INPUTS:OUTPUTS"},
        {"plan @/decode.graph --shared kv=past.*:y", "both patterns have a *, or none"},
        {"plan @/decode.graph --shared kv=*.*:now.*", "more than one *"},
        {"plan @/decode.graph --shared k=past.0:now.0 --shared k=row:y", "is read by"},
        {"plan @/decode.graph --shared k=past.0:now.0,k=past.0:y", "both state 'k' and state 'k'"},
        {"plan @/prefill.graph @/shapes.graph --shared k=x:n", "has two shapes"},
        {"plan @/four.graph", "its rows share bytes"},
        {"plan @/prefill.graph @/types.graph --shared k=x:n", "has two types"},
        {"plan @/decode.graph --shared k=past.0:now.0 --safety parallel", "planned serially"},
        {"plan @/decode.graph --shared k=past.0:now.0 --pools weights", "is for one graph"},
        {"run @/decode.graph --shared k=past.0:now.0 --calls prefill",
         "no entry 'prefill'; there are "
         "decode"},
        {"run @/decode.graph --calls decode", "is one graph"},
        {"run @/decode.graph --shared k=past.0:now.0 --input past.0=ramp", "that is no state"},
        {"plan @/two.graph --shared k=a:b", "stands alone"},
        {"show @/two.graph", "holds several entries"},
        {"show @/two.graph:entry=three", "has no entry 'three'; its first is 'fill'"},
        {"plan @/twice.graph", "updated twice"},
        {"plan @/swap.graph", "exchange"},
        {"plan six.csv six.csv", "six.csv"},
    };

    folder_put_text("prefill.graph", prefill);
    folder_put_text("decode.graph", decode);
    folder_put_text("two.graph", two);
    folder_put_text("types.graph", "graph t\ninput x i32 [1,2,4,8]\nn = neg(x)\noutput n\n");
    folder_put_text("shapes.graph", "graph t\ninput x f32 [1,3,5,8]\nn = neg(x)\noutput n\n");
    folder_put_text("four.graph", "graph t\nstate k i4 [4]\nentry e\ninput x i4 [7]\n"
                                  "update k x\n");
    folder_put_text("twice.graph", "graph t\nstate k f32 [4]\nentry e\na = relu(k)\nb = tanh(k)\n"
                                   "update k a\nupdate k b\n");
    folder_put_text("swap.graph", "graph t\nstate k f32 [4]\nstate l f32 [4]\nentry e\n"
                                  "update k l\nupdate l k\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (run("%s", table[i].arguments) != 2)
            fail_msg("memplan %s: no error", table[i].arguments);
        check_error(table[i].arguments);
        if (strstr(err, table[i].says) == NULL)
            fail_msg("memplan %s: '%s'", table[i].arguments, err);
    }
}

TESTS_OF_PROGRAM("entries", any_sequence_of_calls_computes_what_each_computes_alone,
                 exact_finds_the_least_arena, plans_that_lose_a_state_are_refused,
                 a_state_takes_no_memory_before_it_is_made_anew,
                 writes_over_what_is_still_read_are_refused, states_in_other_places_are_refused,
                 outputs_are_made_in_place_where_they_can_be,
                 a_lack_of_memory_is_a_failure_and_no_leak,
                 a_cache_that_grows_is_planned_at_its_maximum_and_not_copied,
                 two_files_share_a_state, a_plan_file_is_enough, wrong_commands_get_one_line)
