/* test_harness_explain.c -- memplan explain: its parts add up to the arena and are what is alive
 * there, and each of its suggestions gives the bytes that it promised.
 *
 *  MPL_PROMISES=all  every row of promises (make explain-promises); else the first few
 */
#include "tests/harness/run_program.h"

#include <jansson.h>
#include <sys/resource.h>

#include "graphs/problem/before.h"
#include "harness/explain/explain.h"
#include "planners/verify/verify.h"

static bool every;

static int begin(void)
{
    every = getenv("MPL_PROMISES") != NULL;
    return program_begin("explain");
}

static json_int_t number(const json_t *of, const char *key)
{
    return json_integer_value(json_object_get(of, key));
}

static const char *text(const json_t *of, const char *key)
{
    return json_string_value(json_object_get(of, key));
}

/* The last line of `out` may follow others: the object begins where a line begins with a brace. */
static json_t *object_of(const char *words)
{
    const char *at = out[0] == '{' ? out : strstr(out, "\n{");
    json_t *made = at != NULL ? json_loads(at, 0, NULL) : NULL;

    if (made == NULL)
        fail_msg("memplan %s: no object in '%s' '%s'", words, out, err);
    return made;
}

static void put_file(const char *name, const char *contents)
{
    write_file(in_folder(name), contents, strlen(contents));
}

/* ---- parts ---- */

/* Portions follow one another from the base of each memory to its end. Returns their sum. */
static json_int_t check_parts(const json_t *of, const char *what)
{
    json_int_t sum = 0, at = 0, memory = -1;
    const json_t *part;
    size_t i;

    json_array_foreach(json_object_get(of, "parts"), i, part)
    {
        if (memory != number(part, "memory"))
            at = 0;
        memory = number(part, "memory");
        if (number(part, "offset") != at || number(part, "bytes") <= 0)
            fail_msg("%s: part %zu of %lld bytes at %lld, not at %lld", what, i,
                     (long long)number(part, "bytes"), (long long)number(part, "offset"),
                     (long long)at);
        at += number(part, "bytes");
        sum += number(part, "bytes");
    }
    if (sum != number(of, "arena_bytes"))
        fail_msg("%s: parts of %lld bytes, an arena of %lld", what, (long long)sum,
                 (long long)number(of, "arena_bytes"));
    return sum;
}

/* Explains without suggestions, and plans: the same arena and the same pools. */
static void check_sums(const char *graph, const char *options)
{
    json_t *explained, *planned;
    const json_t *pool, *bytes;
    char words[400];
    size_t i;

    snprintf(words, sizeof words, "explain '%s' %s --time-limit 0 --json", graph, options);
    assert_int_equal(run("%s", words), 0);
    explained = object_of(words);
    assert_int_equal(run("plan '%s' %s --json", graph, options), 0);
    planned = object_of("plan");
    assert_int_equal(check_parts(explained, words), number(planned, "planned_bytes"));
    bytes = json_object_get(planned, "pool_bytes");
    json_array_foreach(json_object_get(explained, "pools"), i, pool)
    {
        check_parts(pool, words);
        (void)bytes;
    }
    json_decref(explained);
    json_decref(planned);
}

TEST(test_parts_of_the_zoo)
{
    for (const mpl_zoo_entry *const *z = mpl_zoo; *z != NULL; z++) {
        if ((z - mpl_zoo) % (6 / draws(6)) != 0)
            continue;
        check_sums((*z)->name, "--planner greedy_size");
        if (every || (strncmp((*z)->name, "incep", 5) != 0 && strcmp((*z)->name, "mask_rcnn") != 0))
            check_sums((*z)->name, "--planner nnc_2019 --safety parallel");
    }
}

TEST(test_parts_of_others)
{
    static const char *const rows[][2] = {
        {"mlp:mode=train,update=adam", "--pools weights,gradients,state --planner best_fit"},
        {"mlp:mode=train,update=adam", "--pools state --safety parallel --planner best_fit"},
        {"mlp:mode=train,update=momentum", "--pin none --planner best_fit"},
        {"lstm:form=while", "--planner exact"},
        {"lstm:form=while", "--safety parallel --loop copy"},
        {"resnet18", "--planner owl"},
        {"resnet18", "--planner pool"},
        {"resnet18", "--planner none"},
        {"resnet18", "--backend ref --workspaces plan"},
        {"mlp:layers=5", "--planner spill:capacities=4096/2048/1MiB,cost=1/2/3"},
        {"tests/data/six.csv", ""},
        {"tests/data/six.csv", "--safety parallel"},
        {"guillotine:n=40", ""},
        {"synthetic:n=200,alive=20", "--planner first_fit"},
        {"synthetic:n=100,alive=10", "--planner first_fit --safety parallel"},
        {"tests/data/control.graph", ""},
        {"tests/data/loops/shift_3.graph", "--planner greedy_size"},
        {"densenet121", "--concat share --planner first_fit"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!left_out(i))
            check_sums(rows[i][0], rows[i][1]);
}

/* ---- against the plan file ---- */

static mpl_buffer buffer_named(const mpl_problem *p, const char *name)
{
    mpl_buffer b = 0;
    char label[24];

    while (b < p->n && strcmp(mpl_buffer_label(p, b, label), name) != 0)
        b++;
    assert_true(b < p->n);
    return b;
}

/* Bytes of pool 0 that buffers needed at `step` cover, counted one by one; *top: the last is. */
static uint64_t covered(const mpl_problem *p, const mpl_plan *plan, uint32_t step, bool *top)
{
    uint64_t sum = 0;
    uint8_t *byte = calloc(plan->peak_bytes + 1, 1);

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 && mpl_needed_at(p, b, step))
            memset(byte + plan->offset[b], 1, p->bytes[b]);
    for (uint64_t k = 0; k < plan->peak_bytes; k++)
        sum += byte[k];
    *top = plan->peak_bytes > 0 && byte[plan->peak_bytes - 1] != 0;
    free(byte);
    return sum;
}

/* Sum of the parts that buffers have; each is where its buffer lies. */
static uint64_t used_bytes(const json_t *explained, const mpl_problem *p, const mpl_plan *plan)
{
    uint64_t sum = 0;
    const json_t *part;
    size_t i;

    json_array_foreach(json_object_get(explained, "parts"), i, part)
    {
        uint64_t from = (uint64_t)number(part, "offset"), bytes = (uint64_t)number(part, "bytes");
        mpl_buffer b;

        if (strcmp(text(part, "kind"), "hole") == 0 || strcmp(text(part, "kind"), "alignment") == 0)
            continue;
        b = buffer_named(p, text(part, "name"));
        assert_true(from >= plan->offset[b] && from + bytes <= plan->offset[b] + p->bytes[b]);
        sum += bytes;
    }
    return sum;
}

static void check_serial(const json_t *explained, const mpl_problem *p, const mpl_plan *plan)
{
    uint32_t step = (uint32_t)number(explained, "step");
    uint64_t used = used_bytes(explained, p, plan);
    bool top;

    assert_int_equal(covered(p, plan, step, &top), used);
    assert_true(top);
    for (uint32_t k = 0; k < p->n_steps; k++) {
        uint64_t other = covered(p, plan, k, &top);

        if (top && (other > used || (other == used && k < step)))
            fail_msg("step %u has %llu bytes, step %u has %llu", k, (unsigned long long)other, step,
                     (unsigned long long)used);
    }
}

/* Any two of the parts conflict, in-place pairs included. */
static void check_parallel(const json_t *explained, const mpl_problem *p, const mpl_plan *plan)
{
    const json_t *parts = json_object_get(explained, "parts");
    mpl_buffer set[400];
    uint32_t n = 0;
    bool top = false;

    for (size_t i = 0; i < json_array_size(parts); i++)
        if (json_object_get(json_array_get(parts, i), "made_by") != NULL)
            set[n++] = buffer_named(p, text(json_array_get(parts, i), "name"));
    for (uint32_t a = 0; a < n; a++) {
        top |= plan->offset[set[a]] + p->bytes[set[a]] == plan->peak_bytes;
        for (uint32_t b = 0; b < a; b++)
            assert_true(mpl_verify_conflict(p, set[a], set[b]));
    }
    assert_true(top);
}

/* What forces the height: buffers that conflict, with the bytes of the arena or a chain below. */
static void check_height(const json_t *explained, const mpl_problem *p, const mpl_plan *plan)
{
    const json_t *height = json_object_get(explained, "height");
    const json_t *names = json_object_get(height, "buffers");
    bool proved = strcmp(text(height, "by"), "conflicts") == 0;
    size_t n = json_array_size(names);
    uint64_t sum = 0;

    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        mpl_buffer a = buffer_named(p, json_string_value(json_array_get(names, i)));

        sum += p->bytes[a];
        for (size_t k = proved ? 0 : i; k < (proved ? i : i + 1 < n ? i + 1 : i); k++) {
            size_t other = proved ? k : i + 1;
            mpl_buffer b = buffer_named(p, json_string_value(json_array_get(names, other)));

            assert_true(mpl_verify_conflict(p, a, b));
            assert_true(proved || plan->offset[b] + p->bytes[b] <= plan->offset[a]);
        }
    }
    assert_int_equal(sum, number(height, "bytes"));
    if (proved)
        assert_true(sum <= plan->peak_bytes && sum + 64 * n > plan->peak_bytes);
}

TEST(test_against_plan_files)
{
    static const char *const rows[] = {
        "mlp:layers=6,input=50,hidden=30 --planner first_fit --in-place off",
        "mlp:layers=4,mode=train,input=50,hidden=30 --planner greedy_breadth",
        "mlp:layers=4,mode=train,input=50,hidden=30 --planner exact",
        "mlp:layers=4,mode=train,input=50,hidden=30 --planner none",
        "lstm:hidden=8,steps=4,batch=1 --planner first_fit --order bfs",
        "lstm:hidden=8,steps=4,batch=1,form=while --planner first_fit",
        "lstm:hidden=8,steps=4,batch=1 --planner best_fit --safety parallel",
        "randwire:image=32,channels=4,stages=1 --planner nnc_2018 --safety parallel",
        "randwire:image=32,channels=4,stages=1 --planner owl",
        "randwire:image=32,channels=4,stages=1 --planner nnc_2018 --views off",
        "squeezenet:image=47,classes=3 --planner first_fit --concat share",
        "tests/data/six.csv --planner none",
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_plan_file file = {0};
        json_t *explained;

        assert_int_equal(run("plan %s -q -o @/plan.json", rows[i]), 0);
        assert_int_equal(run("explain @/plan.json --time-limit 0 --json"), 0);
        explained = object_of(rows[i]);
        check_parts(explained, rows[i]);
        assert_ok(ctx, mpl_plan_read(ctx, in_folder("plan.json"), &file));
        assert_ok(ctx, mpl_verify(ctx, file.problem, file.plan));
        assert_int_equal(number(explained, "arena_bytes"), file.plan->peak_bytes);
        if (file.problem->before == NULL)
            check_serial(explained, file.problem, file.plan);
        else
            check_parallel(explained, file.problem, file.plan);
        check_height(explained, file.problem, file.plan);
        json_decref(explained);
        mpl_plan_file_fini(ctx, &file);
    }
}

/* By hand: b, then a above it, then c, which is too large for the hole that b leaves. */
TEST(test_by_hand)
{
    json_t *explained;
    const json_t *part;
    size_t i;
    static const struct {
        const char *kind, *name;
        json_int_t bytes, offset;
    } want[] = {
        {"hole", "below a", 256, 0},
        {"value", "a", 100, 256},
        {"alignment", "below c", 28, 356},
        {"value", "c", 300, 384},
    };

    put_file("hand.csv", "id,lower,upper,size,alignment\n"
                         "a,0,3,100,64\nb,0,1,200,64\nc,1,2,300,64\n");
    assert_int_equal(run("explain @/hand.csv --planner best_fit --time-limit 0 --json"), 0);
    explained = object_of("hand");
    assert_int_equal(number(explained, "arena_bytes"), 684);
    assert_int_equal(number(explained, "step"), 1);
    assert_int_equal(json_array_size(json_object_get(explained, "parts")), 4);
    json_array_foreach(json_object_get(explained, "parts"), i, part)
    {
        assert_string_equal(text(part, "kind"), want[i].kind);
        assert_string_equal(text(part, "name"), want[i].name);
        assert_int_equal(number(part, "bytes"), want[i].bytes);
        assert_int_equal(number(part, "offset"), want[i].offset);
    }
    json_decref(explained);
}

/* b takes over the bytes of a at the step at which c is born too: they are counted once. */
TEST(test_in_place)
{
    static const uint64_t bytes[] = {100, 60, 50}, offset[] = {0, 0, 100};
    static const uint32_t birth[] = {0, 1, 1}, death[] = {2, 3, 3};
    owned_problem *p = NULL;
    owned_plan *plan = NULL;
    mpl_job job = {.text = "in place"};
    mpl_highest h = {0};

    assert_ok(ctx, mpl_problem_new(ctx, "in place", 3, &p));
    memcpy(p->bytes, bytes, sizeof bytes);
    memcpy(p->birth, birth, sizeof birth);
    memcpy(p->death, death, sizeof death);
    p->n_steps = 3;
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 1));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 1));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 1));
    p->n_in_place = p->in_place_out[0] = p->in_place_step[0] = 1;
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    memcpy(plan->offset, offset, sizeof offset);
    plan->claim = MPL_FEASIBLE;
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    job.problem = p;
    assert_ok(ctx, mpl_highest_find(ctx, &job, plan, 0, &h));
    assert_int_equal(h.arena_bytes, 150);
    assert_int_equal(h.step, 1);
    assert_int_equal(h.n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(h.portion[i].buffer, i == 0 ? 0 : 2);
        assert_int_equal(h.portion[i].bytes, i == 0 ? 100 : 50);
    }
    mpl_highest_fini(ctx, &h);
}

static const json_t *of_kind(const json_t *list, const char *kind)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item) if (strcmp(text(item, "kind"), kind) == 0) return item;
    fail_msg("nothing of kind %s", kind);
    return NULL;
}

/* Who makes each buffer, who keeps it until when, and what its sharing would save. */
TEST(test_keepers)
{
    static const struct {
        const char *name, *kept_by;
        json_int_t from, until;
    } want[] = {{"a", "sum", 0, 3}, {"b", "sum", 1, 3}, {"c", "last", 2, 4}};
    json_t *explained;
    const json_t *costs, *advice, *names;

    put_file("keep.graph", "graph keep\ninput x f32 [8,8]\na = relu(x)\nb = sigmoid(a)\n"
                           "c = add(a, b) @sum\nd = relu(c) @last\noutput d\n");
    assert_int_equal(run("explain @/keep.graph --in-place off --time-limit 20 --json"), 0);
    explained = object_of("keep");
    assert_int_equal(check_parts(explained, "keep"), 768);
    assert_int_equal(number(explained, "step"), 2);
    assert_string_equal(text(explained, "operation"), "sum");
    names = json_object_get(json_object_get(explained, "height"), "buffers");
    for (size_t i = 0; i < 3; i++) {
        const json_t *part = NULL, *parts = json_object_get(explained, "parts");

        for (size_t k = 0; k < 3; k++)
            if (strcmp(text(json_array_get(parts, k), "name"), want[i].name) == 0)
                part = json_array_get(parts, k);
        assert_non_null(part);
        assert_string_equal(text(part, "made_by"), i < 2 ? want[i].name : "sum");
        assert_string_equal(text(part, "kept_by"), want[i].kept_by);
        assert_int_equal(number(part, "from"), want[i].from);
        assert_int_equal(number(part, "until"), want[i].until);
        assert_string_equal(text(part, "type"), "f32");
        assert_int_equal(json_array_size(json_object_get(part, "shape")), 2);
        assert_string_equal(json_string_value(json_array_get(names, i)), want[i].name);
    }
    costs = json_object_get(explained, "costs");
    assert_int_equal(number(of_kind(costs, "placement"), "bytes"), 0);
    assert_int_equal(number(of_kind(costs, "safety"), "planned_bytes"), 768);
    assert_int_equal(number(of_kind(costs, "order"), "bytes"), 0);
    advice = of_kind(json_object_get(explained, "suggestions"), "sharing");
    assert_int_equal(number(advice, "planned_bytes"), 512);
    assert_null(strstr(text(advice, "command"), "--in-place"));
    json_decref(explained);
}

/* ---- promises ---- */

static uint32_t n_kept[MPL_N_ADVICE]; /* promises kept, by kind */

static int kind_named(const char *name)
{
    int k = 0;

    while (k < MPL_N_ADVICE && strcmp(mpl_advice_name[k], name) != 0)
        k++;
    assert_true(k < MPL_N_ADVICE);
    return k;
}

/* No kind promises the same bytes twice; what runs again, and which passes found what, is said. */
static void check_words(const json_t *list, size_t i)
{
    static const char *const rows[][2] = {{"recompute", " operations run again, "},
                                          {"fusion", " at "},
                                          {"pin", " bytes are pinned then"}};
    const json_t *advice = json_array_get(list, i);

    for (size_t k = 0; k < i; k++)
        if (strcmp(text(json_array_get(list, k), "kind"), text(advice, "kind")) == 0)
            assert_true(number(json_array_get(list, k), "planned_bytes") !=
                        number(advice, "planned_bytes"));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(text(advice, "kind"), rows[k][0]) == 0)
            assert_non_null(strstr(text(advice, "what"), rows[k][1]));
}

/* Runs each command as it stands, `memplan` being the program that is tested. */
static void check_promises(const json_t *explained, const char *what)
{
    json_int_t now = number(explained, "arena_bytes"), last = 0;
    const json_t *advice;
    char command[4000];
    size_t i;

    json_array_foreach(json_object_get(explained, "suggestions"), i, advice)
    {
        json_int_t promised = number(advice, "planned_bytes");
        json_t *row;

        if (promised >= now || promised < last)
            fail_msg("%s: %lld bytes promised after %lld, now %lld", what, (long long)promised,
                     (long long)last, (long long)now);
        last = promised;
        check_words(json_object_get(explained, "suggestions"), i);
        snprintf(command, sizeof command, "memplan() { '%s' \"$@\"; }; %s --json >%s/out", program,
                 text(advice, "command"), folder);
        if (system(command) != 0)
            fail_msg("%s: fails", text(advice, "command"));
        folder_read("out", out, sizeof out);
        row = object_of(text(advice, "command"));
        if (number(row, "planned_bytes") != promised)
            fail_msg("%s: %lld bytes, %lld promised", text(advice, "command"),
                     (long long)number(row, "planned_bytes"), (long long)promised);
        n_kept[kind_named(text(advice, "kind"))]++;
        json_decref(row);
    }
}

static void check_graph(const char *graph, const char *options)
{
    char words[600];
    json_t *explained;

    snprintf(words, sizeof words, "explain '%s' %s --time-limit %d --json", graph, options,
             every ? 60 : 5);
    assert_int_equal(run("%s", words), 0);
    explained = object_of(words);
    check_parts(explained, words);
    check_promises(explained, words);
    json_decref(explained);
}

#define LSTM "lstm:hidden=32,steps=6,batch=16"
#define GRU  "gru:hidden=32,steps=6,batch=16"

/* Settings that leave room, and graphs under each of them. The first `few` are checked always. */
static const struct {
    const char *options;
    uint32_t few;
    const char *graph[24];
} promises[] = {
    {"--in-place off --views off --concat copy --planner first_fit --safety parallel --pin weights "
     "--order bfs",
     3,
     {LSTM,
      GRU,
      "squeezenet:batch=2,image=64",
      "mlp:layers=4,batch=16",
      "shufflenet_v2:batch=4",
      "mobilenet_v1:batch=4,image=64",
      "mobilenet_v2:batch=4,image=64",
      "resnet18:batch=4,image=64",
      "resnet50:batch=4,image=64",
      "inception_v1:batch=2",
      "inception_v3",
      "randwire:batch=2",
      "densenet121:image=64",
      "mnist_conv",
      "ssd_boxes",
      "offset2bbox",
      "cart_pole",
      "yolo_boxes:batch=4",
      "delay:batch=4",
      "nested_loop:batch=4",
      "pingpong:batch=4",
      "lstm:form=while",
      "gru:form=while",
      "mlp:mode=train,update=adam,batch=8"}},
    {"--planner none",
     2,
     {LSTM, "mlp:layers=4,batch=16", "squeezenet:batch=2,image=64", GRU, "shufflenet_v2:batch=4",
      "mobilenet_v1:batch=4,image=64", "mobilenet_v2:batch=4,image=64", "resnet18:batch=4,image=64",
      "inception_v1:batch=2", "inception_v3", "randwire:batch=2", "mnist_conv", "ssd_boxes",
      "offset2bbox", "cart_pole", "yolo_boxes:batch=4", "mlp:mode=train,update=adam,batch=8"}},
    {"--planner pool --order bfs",
     1,
     {GRU, LSTM, "squeezenet:batch=2,image=64", "shufflenet_v2:batch=4", "inception_v1:batch=2",
      "randwire:batch=2"}},
    {"--planner greedy_size --order bfs --pin none",
     1,
     {LSTM, "mlp:layers=4,batch=16", GRU, "lstm:hidden=64,steps=4,batch=32", "gru:batch=64",
      "lstm:layers=1,batch=64", "mlp:layers=9,batch=64", "delay:batch=4", "nested_loop:batch=4"}},
    {"--planner greedy_breadth",
     1,
     {"mlp:layers=8,hidden=64,batch=512,mode=train", "mlp:layers=16,hidden=64,batch=512,mode=train",
      "mlp:layers=24,hidden=64,batch=256,mode=train",
      "mlp:layers=12,hidden=32,batch=900,mode=train",
      "mlp:layers=10,hidden=96,batch=512,mode=train", "resnet18:image=32,batch=8,mode=train",
      "mobilenet_v1:image=32,batch=8,mode=train", "mnist_conv:mode=train,batch=400"}},
    {"--safety parallel", 1, {"tests/data/six.csv", "randwire", LSTM}},
};

TEST(test_promises)
{
    uint32_t sum = 0, n_kinds = 0;

    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        for (uint32_t k = 0; k < 24 && promises[i].graph[k] != NULL; k++)
            if (every || k < promises[i].few)
                check_graph(promises[i].graph[k], promises[i].options);
    for (int k = 0; k < MPL_N_ADVICE; k++) {
        sum += n_kept[k];
        n_kinds += n_kept[k] >= (every ? 20 : 1);
        printf("%-10s %5u promises kept\n", mpl_advice_name[k], n_kept[k]);
    }
    printf("%-10s %5u\n", "all", sum);
    assert_true(n_kinds >= 6);
    assert_true(sum >= (every ? 300 : 30));
}

/* ---- plans, lists, time, wrong input ---- */

/* The explanation of a plan file is that of its GRAPH under its options, suggestions included. */
TEST(test_plan_files)
{
    static const char words[] = LSTM " --planner pool --order bfs --safety serial --in-place off";
    json_t *of_graph, *of_plan;

    assert_int_equal(run("explain %s --time-limit 20 --json", words), 0);
    of_graph = object_of(words);
    assert_int_equal(run("plan %s -q -o @/named.json", words), 0);
    assert_int_equal(run("explain @/named.json --time-limit 20 --json"), 0);
    of_plan = object_of("@/named.json");
    assert_true(json_array_size(json_object_get(of_graph, "suggestions")) > 4);
    assert_true(json_equal(of_graph, of_plan));
    json_decref(of_plan);
    assert_int_equal(run("explain " LSTM " --plan @/named.json --time-limit 20 --json"), 0);
    of_plan = object_of("--plan");
    assert_true(json_equal(of_graph, of_plan));
    json_decref(of_graph);
    json_decref(of_plan);
}

/* A plan whose graph is gone still has its parts; nothing is suggested, and that is said. */
TEST(test_plan_alone)
{
    json_t *explained;

    put_file("gone.csv", "id,lower,upper,size\na,0,2,5\nb,1,3,7\nc,2,4,6\n");
    assert_int_equal(run("plan @/gone.csv --planner none -q -o @/gone.json"), 0);
    assert_int_equal(unlink(in_folder("gone.csv")), 0);
    assert_int_equal(run("explain @/gone.json --json"), 0);
    explained = object_of("gone");
    assert_int_equal(check_parts(explained, "gone"), 18);
    assert_int_equal(json_array_size(json_object_get(explained, "suggestions")), 0);
    assert_int_equal(json_array_size(json_object_get(explained, "missing")), MPL_N_ADVICE);
    json_decref(explained);
    assert_int_equal(run("explain @/gone.json"), 0);
    assert_non_null(strstr(out, "missing  what would lower it: "));
    assert_non_null(strstr(out, "gone.csv: neither a file"));
}

/* Without time every kind that applies is missing; a list has few. */
TEST(test_missing)
{
    json_t *explained;

    assert_int_equal(run("explain mnist_conv --time-limit 0 --json"), 0);
    explained = object_of("no time");
    assert_int_equal(json_array_size(json_object_get(explained, "suggestions")), 0);
    assert_int_equal(json_array_size(json_object_get(explained, "missing")), 10);
    json_decref(explained);
    assert_int_equal(run("explain tests/data/six.csv --planner none --time-limit 0"), 0);
    assert_non_null(strstr(out, "missing  not worked out within the time: safety, planner\n"));
    assert_int_equal(run("explain tests/data/six.csv --planner none --time-limit 20"), 0);
    assert_null(strstr(out, "missing"));
    assert_non_null(strstr(out, "memplan plan tests/data/six.csv --planner nnc_arena"));
}

TEST(test_same_twice)
{
    static char first[sizeof out];

    assert_int_equal(run("explain " GRU " --safety parallel --time-limit 30 --json"), 0);
    memcpy(first, out, sizeof out);
    assert_int_equal(run("explain " GRU " --safety parallel --time-limit 30 --json"), 0);
    assert_string_equal(out, first);
}

TEST(test_page)
{
    owned_memory char *page = NULL;
    size_t size;

    assert_int_equal(run("explain " LSTM " --planner none -q --time-limit 20 -o @/page.html"), 0);
    assert_string_equal(out, "");
    assert_ok(ctx, mpl_file_read(ctx, in_folder("page.html"), &page, &size));
    assert_non_null(strstr(page, "{kind: \"planner\", command: \"memplan plan " LSTM));
    assert_non_null(strstr(page, "explained: 0.490 MiB</title>"));
}

TEST(test_wrong_input)
{
    static const struct {
        const char *words, *part;
    } rows[] = {
        {"explain", "an argument is missing"},
        {"explain nosuch", "neither a file nor a network of the zoo"},
        {"explain mlp -o @/x.svg", "explain: -o takes FILE.html, not '"},
        {"explain mlp -o @/no/x.html", "No such file or directory"},
        {"explain @/broken.json", "broken.json"},
        {"explain tests/data/serial.plan.json --plan x", "is a plan; --plan FILE is for a GRAPH"},
        {"explain mlp --plan tests/data/serial.plan.json", "a plan for another problem"},
        {"explain mlp --time-limit soon", "'soon' is no number of at least 0"},
        {"explain mlp --format csv", "no option '--format' here"},
    };

    put_file("broken.json", "{\"offsets\": [1, 2");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(run("%s", rows[i].words), 2);
        check_error(rows[i].words);
        if (strstr(err, rows[i].part) == NULL)
            fail_msg("memplan %s: '%s' is not in: %s", rows[i].words, rows[i].part, err);
    }
    assert_int_equal(run("explain mlp --capacity 100"), 1);
}

/* ---- time ---- */

/* Layers of attention and of two products, 22 operations each, as text. */
static void write_transformer(const char *name, int n_layers)
{
    FILE *f = fopen(in_folder(name), "w");

    assert_non_null(f);
    fputs("graph transformer\ninput l0.x f32 [128,256]\n", f);
    for (int i = 0; i < n_layers; i++) {
        fprintf(f, "weight l%d.s f32 [256] = splat 1\nweight l%d.b f32 [256] = splat 0\n", i, i);
        for (const char *w = "qkvo"; *w != '\0'; w++)
            fprintf(f, "weight l%d.%c.w f32 [256,256]\n", i, *w);
        fprintf(f, "weight l%d.up.w f32 [256,1024]\nweight l%d.down.w f32 [1024,256]\n", i, i);
        fprintf(f, "l%d.n = layer_norm(l%d.x, l%d.s, l%d.b)\n", i, i, i, i);
        for (const char *w = "qkv"; *w != '\0'; w++)
            fprintf(f,
                    "l%d.%c = matmul(l%d.n, l%d.%c.w)\n"
                    "l%d.%ch = reshape(l%d.%c) shape=[128,4,64]\n"
                    "l%d.%ct = transpose(l%d.%ch) perm=%s\n",
                    i, *w, i, i, *w, i, *w, i, *w, i, *w, i, *w, *w == 'k' ? "[1,2,0]" : "[1,0,2]");
        fprintf(f,
                "l%d.p = matmul(l%d.qt, l%d.kt)\nl%d.a = softmax(l%d.p)\n"
                "l%d.c = matmul(l%d.a, l%d.vt)\nl%d.ct = transpose(l%d.c) perm=[1,0,2]\n"
                "l%d.m = reshape(l%d.ct) shape=[128,256]\nl%d.o = matmul(l%d.m, l%d.o.w)\n",
                i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
        fprintf(f,
                "l%d.r = add(l%d.x, l%d.o)\nl%d.n2 = layer_norm(l%d.r, l%d.s, l%d.b)\n"
                "l%d.u = matmul(l%d.n2, l%d.up.w)\nl%d.g = gelu(l%d.u)\n"
                "l%d.d = matmul(l%d.g, l%d.down.w)\nl%d.x = add(l%d.r, l%d.d)\n",
                i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i, i);
    }
    fprintf(f, "output l%d.x\n", n_layers);
    assert_int_equal(fclose(f), 0);
}

/* Time of the processor that the program and its processes took so far. [ns] */
static int64_t processor_ns(void)
{
    struct rusage used;

    assert_int_equal(getrusage(RUSAGE_CHILDREN, &used), 0);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000000) +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * INT64_C(1000);
}

/* Within a second on resnet50, within ten on a transformer of 5,000 operations: of the processor,
 * as one process works at a time. Only the long form, of a release build, holds it to that. */
TEST(test_time)
{
    static const struct {
        const char *graph;
        int64_t most_ns;
    } rows[] = {{"resnet50", 1000000000}, {"@/transformer.graph", 10000000000}};

    write_transformer("transformer.graph", every ? 228 : 12);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t begun = mpl_clock_ns(), before = processor_ns(), ns;
        json_t *explained;

        assert_int_equal(run("explain %s --json", rows[i].graph), 0);
        ns = processor_ns() - before;
        explained = object_of(rows[i].graph);
        check_parts(explained, rows[i].graph);
        printf("%-20s %.3f s of the processor, %.3f s\n", rows[i].graph, (double)ns / 1e9,
               (double)(mpl_clock_ns() - begun) / 1e9);
        if (every)
            assert_true(ns <= rows[i].most_ns);
        json_decref(explained);
    }
}

/* ---- command lines ---- */

/* Options of `memplan plan`, and the line that says them: shorter, since defaults are left out. */
TEST(test_command_lines)
{
    static const struct {
        const char *words[12];
        const char *line;
    } rows[] = {
        {{"plan", "g"}, "memplan plan g"},
        {{"plan", "it's", "--order", "given", "--in-place", "off"},
         "memplan plan 'it'\\''s' --in-place off"},
        {{"plan", "g", "--pin", "none", "--pools", "weights,state", "--capacity", "2KiB"},
         "memplan plan g --pin none --pools weights,state --capacity 2048"},
        {{"plan", "g", "--dim", "a=1", "--dim", "b c=2", "--json", "-o", "x", "--time-limit", "3"},
         "memplan plan g --dim a=1 --dim 'b c=2'"},
        {{"plan", "--seed", "3", "--planner", "exec:a {in} {out}", "--", "-g"},
         "memplan plan ./-g --planner 'exec:a {in} {out}' --seed 3"},
        {{"least", "g", "--free", "+optimise", "--concat", "copy", "--safety", "parallel"},
         "memplan least g --safety parallel --concat copy --free +optimise"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_command_id command = rows[i].words[0][0] == 'p' ? MPL_CMD_plan : MPL_CMD_least;
        char *argv[13] = {NULL}, *line = NULL;
        mpl_options options;
        int n = 0;

        for (; n < 12 && rows[i].words[n] != NULL; n++)
            argv[n] = (char *)(uintptr_t)rows[i].words[n];
        mpl_options_init(&options);
        assert_ok(ctx, mpl_options_parse(ctx, command, n, argv, &options));
        assert_ok(ctx, mpl_command_line(ctx, command, options.args.item[0], &options, &line));
        assert_string_equal(line, rows[i].line);
        mpl_free(ctx, line);
        mpl_options_fini(ctx, &options);
    }
}

TESTS_WITHIN(begin, folder_remove, test_parts_of_the_zoo, test_parts_of_others,
             test_against_plan_files, test_by_hand, test_in_place, test_keepers, test_promises,
             test_plan_files, test_plan_alone, test_missing, test_same_twice, test_page,
             test_wrong_input, test_time, test_command_lines)
