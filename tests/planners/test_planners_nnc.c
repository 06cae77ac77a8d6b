/* NNC: production's recorded problems and plans, its ratios on lists, invariants on random
 * problems. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/test.h"

#include "graphs/problem/before.h"
#include "graphs/core/rng.h"
#include "planners/verify/verify.h"

/* Planned bytes of one planner on a problem, verified by the entry check. */
static uint64_t planned(mpl_ctx *ctx, const char *name, const mpl_problem *p, mpl_plan **keep)
{
    mpl_run run = mpl_run_default(ctx);
    mpl_plan *plan = NULL;
    uint64_t bytes;

    assert_non_null(mpl_planner_find(name));
    assert_ok(ctx, mpl_planner_run(mpl_planner_find(name), &run, p, &plan));
    bytes = plan->peak_bytes;
    if (keep != NULL)
        *keep = plan;
    else
        mpl_plan_free(ctx, plan);
    return bytes;
}

static const struct {
    const char *name;
    double bound_mib;      /* as recorded, two decimals */
    double production_mib; /* libnnc's arena */
} records[] = {
    {"resnet50_1_infer", 13.02, 13.02},      {"densenet121_1_infer", 6.89, 8.42},
    {"inceptionv3_1_infer", 10.55, 13.19},   {"lstm_32_infer", 8.25, 8.25},
    {"resnet50_16_train", 1225.20, 1225.20}, {"vgg16_16_train", 931.00, 931.00},
};

/* The recorded plan with its blocks laid end to end. */
static mpl_plan *production_plan(mpl_ctx *ctx, const mpl_problem *p, const mpl_nnc_record *record)
{
    mpl_plan *plan = NULL;
    uint64_t base = 0;

    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    plan->claim = MPL_FEASIBLE;
    for (uint64_t block = 0; block < 4096; block++) {
        uint64_t end = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (record->block[b] == block) {
                plan->offset[b] = base + record->offset[b];
                end = mpl_max_u64(end, record->offset[b] + p->bytes[b]);
            }
        base += (end + 63) / 64 * 64;
    }
    return plan;
}

TEST(production_is_reproduced)
{
    skip_without(MPL_SHARED "/libnnc");
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        char path[200];
        owned_problem *p = NULL;
        mpl_nnc_record record = {0};
        owned_plan *plan;
        uint64_t bound, mine;

        snprintf(path, sizeof path, MPL_SHARED "/libnnc/%s.tensors.csv", records[i].name);
        assert_ok(ctx, mpl_nnc_read(ctx, path, &p, &record));
        assert_true(record.has_plan);
        assert_ok(ctx, mpl_antichain(ctx, p, 0, &bound, NULL));
        assert_true(bound / 1048576.0 > records[i].bound_mib - 0.005 &&
                    bound / 1048576.0 < records[i].bound_mib + 0.005);
        plan = production_plan(ctx, p, &record);
        assert_ok(ctx, mpl_verify(ctx, p, plan));
        assert_true(plan->peak_bytes / 1048576.0 > records[i].production_mib - 0.005 &&
                    plan->peak_bytes / 1048576.0 < records[i].production_mib + 0.005);
        mine = planned(ctx, "nnc_2019", p, NULL);
        assert_true(mine * 1000 >= plan->peak_bytes * 999 &&
                    mine * 1000 <= plan->peak_bytes * 1001);
        assert_int_equal(planned(ctx, "nnc_arena", p, NULL), bound);
        assert_true(planned(ctx, "nnc_2018", p, NULL) >= bound);
        mpl_nnc_record_fini(ctx, &record);
    }
}

/* Production's plan with any one tensor moved by an alignment step onto one that it interferes
 * with. */
TEST(moved_tensors_are_refused)
{
    uint32_t n_refused = 0;

    skip_without(MPL_SHARED "/libnnc");
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        char path[200];
        owned_problem *p = NULL;
        mpl_nnc_record record = {0};
        owned_plan *plan;

        snprintf(path, sizeof path, MPL_SHARED "/libnnc/%s.tensors.csv", records[i].name);
        assert_ok(ctx, mpl_nnc_read(ctx, path, &p, &record));
        plan = production_plan(ctx, p, &record);
        for (mpl_buffer a = 0; a < p->n; a++) {
            mpl_buffer b = 0;

            plan->offset[a] += 64;
            while (b < p->n &&
                   !(mpl_conflict(p, a, b) && plan->offset[a] < plan->offset[b] + p->bytes[b] &&
                     plan->offset[b] < plan->offset[a] + p->bytes[a]))
                b++;
            if (b < p->n) { /* now overlaps an interfering one */
                assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
                n_refused++;
            } else {
                assert_ok(ctx, mpl_verify(ctx, p, plan));
            }
            plan->offset[a] -= 64;
        }
        mpl_nnc_record_fini(ctx, &record);
    }
    assert_true(often(n_refused > 100));
}

/* Ratios to peak live of libnnc's allocator on the lists; ties differ, so within 5 %. */
static const struct {
    const char *name;
    double ratio;
} lists[] = {
    {"A", 1.27}, {"C", 1.40}, {"D", 1.30}, {"E", 1.45},
    {"G", 1.47}, {"I", 1.67}, {"J", 1.24}, {"K", 1.44},
};

TEST(lists_are_near_production)
{
    skip_without(MPL_SHARED "/minimalloc");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char path[200];
        owned_problem *p = NULL;
        uint64_t peak, mine;

        snprintf(path, sizeof path, MPL_SHARED "/minimalloc/%s.1048576.csv", lists[i].name);
        assert_ok(ctx, mpl_csv_read(ctx, path, &p, NULL));
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
        mine = planned(ctx, "nnc_2019", p, NULL);
        assert_true((double)mine / (double)peak > lists[i].ratio * 0.95);
        assert_true((double)mine / (double)peak < lists[i].ratio * 1.05);
        assert_true(planned(ctx, "nnc_arena", p, NULL) <= mine);
    }
}

static mpl_problem *random_problem(mpl_ctx *ctx, mpl_rng *rng)
{
    uint32_t n = 1 + (uint32_t)mpl_rng_below(rng, 30), odds = 2 + (uint32_t)mpl_rng_below(rng, 12);
    uint32_t from[30 * 30], to[30 * 30];
    size_t n_arcs = 0;
    mpl_problem *p = NULL;
    mpl_before *o = NULL;

    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++)
            if (mpl_rng_below(rng, odds) == 0) {
                from[n_arcs] = n - 1 - a; /* descending ids: code must not rely on ascending ones */
                to[n_arcs++] = n - 1 - b;
            }
    assert_ok(ctx, mpl_before_from_arcs(ctx, n, n_arcs, from, to, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "random", n, &p));
    p->before = o;
    for (uint32_t b = 0; b < n; b++) {
        p->bytes[b] = 1 + mpl_rng_below(rng, 20);
        p->align[b] = 1u << mpl_rng_below(rng, 4);
    }
    return p;
}

TEST(random_problems)
{
    static const char *const names[] = {"nnc_2018", "nnc_2019", "nnc_arena"};
    mpl_rng rng = mpl_rng_of(7);

    for (uint32_t round = 0; round < draws(300); round++) {
        owned_problem *p = random_problem(ctx, &rng);
        uint64_t bound, got[3];

        assert_ok(ctx, mpl_antichain(ctx, p, 0, &bound, NULL));
        for (int k = 0; k < 3; k++) {
            owned_plan *one = NULL, *other = NULL;
            mpl_run run = mpl_run_default(ctx);

            run.budget_ticks = 20000;
            assert_ok(ctx, mpl_planner_run(mpl_planner_find(names[k]), &run, p, &one));
            run = mpl_run_default(ctx);
            run.budget_ticks = 20000;
            assert_ok(ctx, mpl_planner_run(mpl_planner_find(names[k]), &run, p, &other));
            assert_memory_equal(one->offset, other->offset, p->n * sizeof *one->offset);
            got[k] = one->peak_bytes;
        }
        assert_true(got[0] >= bound && got[1] >= bound && got[2] >= bound);
        assert_true(got[2] <= got[1]);
    }
}

/* Size first, then edge count, then the tightest edge, by hand: 0 (8) before 1 (4) before 2 (8): 0
 * and 2 share a block; 1 lies at its front. */
TEST(worked_by_hand)
{
    owned_problem *p = NULL;
    mpl_before *o = NULL;
    owned_plan *plan;

    assert_ok(ctx, mpl_before_from_arcs(ctx, 4, 2, (uint32_t[]){0, 1}, (uint32_t[]){1, 2}, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "hand", 4, &p));
    p->before = o;
    memcpy(p->bytes, (uint64_t[]){8, 4, 8, 2}, 4 * sizeof *p->bytes);
    assert_int_equal(planned(ctx, "nnc_2019", p, &plan), 10);
    assert_int_equal(plan->block[0], plan->block[2]);
    assert_int_equal(plan->block[0], plan->block[1]);
    assert_int_not_equal(plan->block[0], plan->block[3]);
    assert_int_equal(plan->offset[1], plan->offset[0]);
}

static mpl_plan *plan_of_pairs(mpl_ctx *ctx, const mpl_problem *p, const char *key,
                               const char *value, const char *pairs)
{
    const char *keys[] = {key, "pairs"}, *values[] = {value, pairs};
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);

    run.n_params = 2;
    run.param_key = keys;
    run.param_value = values;
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("nnc_2018"), &run, p, &plan));
    return plan;
}

static uint64_t planned_with(mpl_ctx *ctx, const mpl_problem *p, const char *key, const char *value,
                             const char *pairs)
{
    owned_plan *plan = plan_of_pairs(ctx, p, key, value, pairs);

    return plan->peak_bytes;
}

/* Eight buffers, one after the other: 0 1 3 2 4 5 6 7. By the text a block of 8 is opened by 0, and
 * another by the pair of 1 and 2, between which 3 finds room; the rest touches source or sink. */
TEST(text_and_code_by_hand)
{
    owned_problem *p = NULL;
    mpl_before *o = NULL;

    assert_ok(ctx, mpl_before_from_arcs(ctx, 8, 7, (uint32_t[]){0, 1, 3, 2, 4, 5, 6},
                                        (uint32_t[]){1, 3, 2, 4, 5, 6, 7}, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "hand", 8, &p));
    p->before = o;
    memcpy(p->bytes, (uint64_t[]){8, 4, 8, 1, 1, 1, 1, 1}, 8 * sizeof *p->bytes);
    assert_int_equal(planned_with(ctx, p, "rule", "code", "on"), 8);
    assert_int_equal(planned_with(ctx, p, "rule", "text", "on"), 8 + 8 + 4);
    assert_int_equal(planned_with(ctx, p, "rule", "text", "off"), 8 + 4 + 8 + 5);
    assert_int_equal(planned_with(ctx, p, "ties", "reversed", "on"), 8);
}

/* Equal keys: what a tie rule chooses is valid, and the same at every call. */
TEST(ties)
{
    static const char *const rules[] = {"id", "reversed", "shuffled"};
    mpl_rng rng = mpl_rng_of(11);
    uint32_t differ = 0;

    for (uint32_t round = 0; round < draws(100); round++) {
        owned_problem *p = random_problem(ctx, &rng);
        uint64_t got[3];

        for (int k = 0; k < 3; k++) {
            got[k] = planned_with(ctx, p, "ties", rules[k], "on");
            assert_int_equal(planned_with(ctx, p, "ties", rules[k], "on"), got[k]);
        }
        differ += got[0] != got[1] || got[0] != got[2];
    }
    assert_true(often(differ > 10));
}

/* Six buffers: 0 before 1 and 2, 3 4 5 one after the other, 5 before 1, 4 before 2. Of these 0 has
 * the most interferences, three, and may bring 1, of 4 bytes and one interference, or 2, of 2 bytes
 * and two. Which of them shares its block says which key comes first. */
TEST(keys_by_hand)
{
    static const struct {
        const char *keys;
        mpl_buffer with;
    } rows[] = {{"size+edges", 1}, {"size", 1}, {"edges+size", 2}, {"edges", 2}};
    owned_problem *p = NULL;
    mpl_before *o = NULL;

    assert_ok(ctx, mpl_before_from_arcs(ctx, 6, 6, (uint32_t[]){0, 0, 3, 4, 4, 5},
                                        (uint32_t[]){1, 2, 4, 5, 2, 1}, &o));
    assert_ok(ctx, mpl_problem_new(ctx, "hand", 6, &p));
    p->before = o;
    memcpy(p->bytes, (uint64_t[]){1, 4, 2, 1, 1, 1}, 6 * sizeof *p->bytes);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_plan *plan = plan_of_pairs(ctx, p, "keys", rows[i].keys, "on");

        assert_int_equal(plan->block[0], plan->block[rows[i].with]);
        assert_int_not_equal(plan->block[0], plan->block[3 - rows[i].with]);
        assert_int_equal(plan->offset[0], plan->offset[rows[i].with]);
    }
}

/* ---- the rules of nnc_2018, word for word ---- */

enum { FEW = 12, MOST_EDGES = 4 * FEW * FEW };

typedef struct word_edge {
    uint32_t from, to, block; /* n: the source; n + 1: the sink */
    uint64_t bytes, at;
} word_edge;

/* A plan by the words alone: every tuple is listed, every edge tried, every path walked. */
typedef struct words {
    const mpl_problem *p;
    bool text, pairs, by_size, by_edges, edges_first, reversed;
    uint64_t size[FEW];
    bool open[FEW];
    word_edge edge[MOST_EDGES];
    uint32_t n_edges, n_blocks, block[FEW];
    uint64_t at[FEW], block_bytes[FEW];
    uint32_t path[FEW][FEW];
} words;

static uint32_t interferences(const words *w, uint32_t b)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < w->p->n; k++)
        n += k != b && w->open[k] && !mpl_is_before(w->p->before, b, k) &&
             !mpl_is_before(w->p->before, k, b);
    return n;
}

/* path[a][b]: arcs on the longest path, each pair tried until none gets longer. */
static void walk_paths(words *w)
{
    bool longer = true;

    memset(w->path, 0, sizeof w->path);
    for (uint32_t a = 0; a < w->p->n; a++)
        for (uint32_t b = 0; b < w->p->n; b++)
            w->path[a][b] = mpl_is_before(w->p->before, a, b);
    while (longer) {
        longer = false;
        for (uint32_t a = 0; a < w->p->n; a++)
            for (uint32_t b = 0; b < w->p->n; b++)
                for (uint32_t k = 0; k < w->p->n; k++)
                    if (w->path[a][k] > 0 && w->path[k][b] > 0 &&
                        w->path[a][k] + w->path[k][b] > w->path[a][b]) {
                        w->path[a][b] = w->path[a][k] + w->path[k][b];
                        longer = true;
                    }
    }
}

static bool fits(const words *w, const word_edge *e, uint32_t first, uint32_t last, uint64_t need)
{
    uint32_t n = w->p->n;
    bool source = e->from == n, sink = e->to == n + 1;

    return e->bytes >= need && !(source && sink) && !(w->text && (source || sink)) &&
           (source || mpl_is_before(w->p->before, e->from, first)) &&
           (sink || mpl_is_before(w->p->before, last, e->to));
}

/* The edge of fewest hops, the oldest of these. A dummy node is farther than any path. */
static uint32_t tightest(const words *w, uint32_t first, uint32_t last, uint64_t need)
{
    uint32_t n = w->p->n, best = MPL_NONE, least = UINT32_MAX;

    for (uint32_t i = 0; i < w->n_edges; i++) {
        const word_edge *e = &w->edge[i];
        uint32_t hops;

        if (!fits(w, e, first, last, need))
            continue;
        hops = (e->from == n ? n + 1 : w->path[e->from][first]) +
               (e->to == n + 1 ? n + 1 : w->path[last][e->to]);
        if (hops < least)
            least = hops, best = i;
    }
    return best;
}

/* A tuple: a, and k unless that is MPL_NONE. */
typedef struct word_tuple {
    uint64_t key[4]; /* the largest first */
    uint32_t a, k, first, last;
    uint64_t need;
} word_tuple;

static word_tuple word_tuple_of(const words *w, uint32_t a, uint32_t k)
{
    bool pair = k != MPL_NONE, k_first = pair && mpl_is_before(w->p->before, k, a);
    uint32_t n = w->p->n;
    word_tuple t = {{0}, a, k, k_first ? k : a, pair && !k_first ? k : a, w->size[pair ? k : a]};
    uint64_t size = w->by_size ? t.need : 0;
    uint64_t edges = w->by_edges ? interferences(w, a) + (pair ? interferences(w, k) : 0) : 0;

    t.key[0] = w->edges_first ? edges : size;
    t.key[1] = w->edges_first ? size : edges;
    t.key[2] = w->reversed ? a : n - a;
    t.key[3] = !pair ? 0 : w->reversed ? k + 1 : n - k;
    return t;
}

static int by_keys(const void *x, const void *y)
{
    const word_tuple *s = x, *t = y;

    for (int i = 0; i < 4; i++)
        if (s->key[i] != t->key[i])
            return s->key[i] > t->key[i] ? -1 : 1;
    return 0;
}

static uint32_t list_tuples(const words *w, word_tuple *tuple)
{
    uint32_t most = 0, n = 0;

    for (uint32_t a = 0; a < w->p->n; a++)
        if (w->open[a] && interferences(w, a) > most)
            most = interferences(w, a);
    for (uint32_t a = 0; a < w->p->n; a++) {
        if (!w->open[a] || interferences(w, a) != most)
            continue;
        tuple[n++] = word_tuple_of(w, a, MPL_NONE);
        for (uint32_t k = 0; w->pairs && k < w->p->n; k++)
            if (w->open[k] && w->size[k] > w->size[a] &&
                (mpl_is_before(w->p->before, a, k) || mpl_is_before(w->p->before, k, a)))
                tuple[n++] = word_tuple_of(w, a, k);
    }
    qsort(tuple, n, sizeof *tuple, by_keys);
    return n;
}

static void hand_on(words *w, uint32_t from, uint32_t to, uint32_t block, uint64_t at,
                    uint64_t bytes)
{
    assert_true(w->n_edges < MOST_EDGES);
    if (bytes > 0)
        w->edge[w->n_edges++] = (word_edge){from, to, block, bytes, at};
}

static void put_buffer(words *w, uint32_t b, uint32_t block, uint64_t at)
{
    w->open[b] = false;
    w->block[b] = block;
    w->at[b] = at;
}

static void insert_words(words *w, const word_tuple *t, uint32_t edge)
{
    uint32_t n = w->p->n, from = n, to = n + 1, block = w->n_blocks, one = t->first, two = t->last;
    uint64_t at = 0, first = w->size[one], last = w->size[two];
    uint64_t both = first < last ? first : last;

    if (edge != MPL_NONE) {
        word_edge *e = &w->edge[edge];

        from = e->from, to = e->to, block = e->block, at = e->at;
        e->at += t->need;
        e->bytes -= t->need;
    } else {
        w->block_bytes[w->n_blocks++] = t->need;
    }
    put_buffer(w, one, block, at);
    hand_on(w, from, one, block, at, first);
    if (one == two) {
        hand_on(w, one, to, block, at, first);
        return;
    }
    put_buffer(w, two, block, at);
    hand_on(w, from, two, block, at + first, last > first ? last - first : 0);
    hand_on(w, one, two, block, at, both);
    hand_on(w, one, to, block, at + both, first - both);
    hand_on(w, two, to, block, at, last);
}

static void plan_by_words(words *w)
{
    static word_tuple tuple[FEW * FEW + FEW];
    uint32_t widest = 1;

    walk_paths(w);
    for (uint32_t b = 0; b < w->p->n; b++)
        widest = w->p->align[b] > widest ? w->p->align[b] : widest;
    for (uint32_t b = 0; b < w->p->n; b++) {
        w->size[b] = (w->p->bytes[b] + widest - 1) / widest * widest;
        w->open[b] = true;
    }
    for (uint32_t n; (n = list_tuples(w, tuple)) > 0;) {
        uint32_t edge = MPL_NONE, i = 0;

        while (i < n && edge == MPL_NONE) {
            edge = tightest(w, tuple[i].first, tuple[i].last, tuple[i].need);
            i += edge == MPL_NONE;
        }
        insert_words(w, &tuple[i < n ? i : 0], edge);
    }
}

/* Blocks lie end to end, each at the widest alignment of its buffers. */
static void assert_as_words(const words *w, const mpl_plan *plan)
{
    uint64_t base[FEW], end = 0;

    for (uint32_t k = 0; k < w->n_blocks; k++) {
        uint32_t widest = 1;

        for (uint32_t b = 0; b < w->p->n; b++)
            if (w->block[b] == k && w->p->align[b] > widest)
                widest = w->p->align[b];
        base[k] = (end + widest - 1) / widest * widest;
        end = base[k] + w->block_bytes[k];
    }
    for (uint32_t b = 0; b < w->p->n; b++) {
        assert_int_equal(plan->block[b], w->block[b]);
        assert_int_equal(plan->offset[b], base[w->block[b]] + w->at[b]);
    }
}

static mpl_plan *plan_by_rules(mpl_ctx *ctx, const mpl_problem *p, uint32_t rules, words *w)
{
    static const char *const keys[] = {"size+edges", "edges+size", "size", "edges"};
    static const char *const names[] = {"rule", "pairs", "keys", "ties"};
    const char *values[4];
    mpl_run run = mpl_run_default(ctx);
    mpl_plan *plan = NULL;

    *w = (words){.p = p, .text = rules & 1, .pairs = rules & 2, .reversed = rules & 4};
    w->by_size = rules / 8 % 4 != 3;
    w->by_edges = rules / 8 % 4 != 2;
    w->edges_first = rules / 8 % 4 % 2 == 1;
    values[0] = w->text ? "text" : "code";
    values[1] = w->pairs ? "on" : "off";
    values[2] = keys[rules / 8 % 4];
    values[3] = w->reversed ? "reversed" : "id";
    run.n_params = 4;
    run.param_key = names;
    run.param_value = values;
    assert_ok(ctx, mpl_planner_run(mpl_planner_find("nnc_2018"), &run, p, &plan));
    return plan;
}

/* Any order, or that of a list, in which lives are intervals. */
static mpl_problem *few_buffers(mpl_ctx *ctx, mpl_rng *rng)
{
    mpl_problem *p = NULL;
    uint32_t n = 1 + (uint32_t)mpl_rng_below(rng, FEW), sizes = 1 + (uint32_t)mpl_rng_below(rng, 9);

    if (mpl_rng_below(rng, 2) == 0)
        for (p = random_problem(ctx, rng); p->n > FEW; p = random_problem(ctx, rng))
            mpl_problem_free(ctx, p);
    if (p != NULL)
        return p;
    assert_ok(ctx, mpl_problem_new(ctx, "list", n, &p));
    p->n_steps = 30;
    for (uint32_t b = 0; b < n; b++) {
        p->bytes[b] = 1 + mpl_rng_below(rng, sizes);
        p->birth[b] = (uint32_t)mpl_rng_below(rng, 20);
        p->death[b] = p->birth[b] + 1 + (uint32_t)mpl_rng_below(rng, 8);
    }
    assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
    return p;
}

/* The planner keeps bounds, edges and paths from round to round; the words keep nothing. */
TEST(planned_as_the_words_say)
{
    mpl_rng rng = mpl_rng_of(2018);
    static words w;
    uint32_t n_joined = 0;

    for (uint32_t round = 0; round < draws(600); round++) {
        owned_problem *p = few_buffers(ctx, &rng);

        for (uint32_t rules = round % 4; rules < 32; rules += 4) {
            owned_plan *plan = plan_by_rules(ctx, p, rules, &w);

            plan_by_words(&w);
            assert_as_words(&w, plan);
            n_joined += w.n_blocks + 2 < p->n;
        }
    }
    assert_true(n_joined > draws(600));
}

/* Any failing allocation gives a clean status and no leak. */
TEST(allocation_failures)
{
    mpl_rng rng = mpl_rng_of(3);

    for (uint32_t rules = 0; rules < 4; rules++) {
        owned_problem *p = random_problem(ctx, &rng);
        const char *key = rules & 1 ? "rule" : "pairs", *value = rules & 1 ? "text" : "on";

        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_plan *plan = NULL;

            st = plan_with(ctx, "nnc_2018", key, value, 0, p, &plan);
        }
    }
}

TESTS(production_is_reproduced, moved_tensors_are_refused, lists_are_near_production,
      random_problems, worked_by_hand, text_and_code_by_hand, keys_by_hand, ties,
      planned_as_the_words_say, allocation_failures)
