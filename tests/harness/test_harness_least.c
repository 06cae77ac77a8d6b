/* test_harness_least.c -- memplan least: its row, its plan file, its promise never to be above
 * other plans, its freedoms, and its end by the user. */
#include "tests/harness/run_program.h"

#include <fcntl.h>
#include <jansson.h>

#define SMALL "lstm:layers=1,steps=3,hidden=8,batch=2"

/* Runs it and reads the row. The caller frees the row (json_decref). */
static json_t *least(const char *arguments)
{
    json_t *row;

    if (run("least %s --json", arguments) != 0)
        fail_msg("memplan least %s: %s", arguments, err);
    row = json_loads(out, 0, NULL);
    assert_non_null(row);
    return row;
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value))
        fail_msg("'%s' is no number", key);
    return json_integer_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL ? value : "";
}

static bool lists(const json_t *row, const char *key, const char *word)
{
    const json_t *list = json_object_get(row, key);

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), word) == 0)
            return true;
    return false;
}

/* Bytes of the plan that memplan plan makes. */
static json_int_t planned(const char *arguments)
{
    json_t *row;
    json_int_t bytes;

    if (run("plan %s --json", arguments) != 0)
        fail_msg("memplan plan %s: %s", arguments, err);
    row = json_loads(out, 0, NULL);
    bytes = number(row, "planned_bytes");
    json_decref(row);
    return bytes;
}

/* ---- the row ---- */

/* Fault: a waterfall that rises or does not end at the plan; a claim without its bound, or without
 * saying what it covers. */
TEST(rows_say_over_what)
{
    static const char *const graphs[] =
        ROW("squeezenet:image=64", "lstm:form=while,layers=1,steps=4", "densenet121:image=32",
            "mlp:layers=3,mode=train", "inception_v3:image=75 --safety parallel",
            SMALL " --views off", SMALL " --in-place off --concat copy");
    static const char *const steps[] =
        ROW("nothing shared", "lifetimes", "in place", "views and concats", "order");

    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        json_t *row = least(graphs[i]);
        const json_t *falls = json_object_get(row, "waterfall");
        bool views = strstr(graphs[i], "views off") == NULL,
             pairs = strstr(graphs[i], "in-place off") == NULL,
             loops = strstr(graphs[i], "while") != NULL,
             copies = strstr(graphs[i], "copy") != NULL || !views || loops;
        json_int_t before = INT64_MAX, bytes = 0;
        size_t n = 0;

        for (size_t k = 0; k < 5; k++) {
            if ((k == 2 && !pairs) || (k == 3 && !views))
                continue;
            assert_string_equal(text(json_array_get(falls, n), "step"), steps[k]);
            bytes = number(json_array_get(falls, n++), "bytes");
            assert_in_range(bytes, 1, before);
            before = bytes;
        }
        assert_int_equal(json_array_size(falls), n);
        assert_int_equal(bytes, number(row, "planned_bytes"));
        assert_int_equal(number(json_array_get(falls, 0), "bytes"), number(row, "naive_bytes"));
        assert_true(lists(row, "free", "order") && lists(row, "free", "placement"));
        assert_int_equal(lists(row, "free", "in-place pairs"), pairs);
        assert_int_equal(lists(row, "held", "in-place pairs off"), !pairs);
        assert_int_equal(lists(row, "free", "views"), views);
        assert_int_equal(lists(row, "held", "views off"), !views);
        assert_int_equal(lists(row, "free", "concats"), !copies);
        assert_int_equal(lists(row, "held", "concats copied"), copies);
        assert_int_equal(lists(row, "held", "splits copied"), loops);
        assert_int_equal(lists(row, "free", "splits"), views && !loops);
        assert_true(lists(row, "held", "recomputation off"));
        assert_true(!loops || number(row, "bound_bytes") == bytes);
        if (json_is_null(json_object_get(row, "bound_bytes")))
            assert_string_equal(text(row, "claim"), "feasible");
        else
            assert_string_equal(text(row, "claim"),
                                number(row, "bound_bytes") == bytes ? "optimal" : "feasible");
        assert_true(json_is_true(json_object_get(row, "verified")));
        json_decref(row);
    }
}

/* Fault: a plan of one freedom that is lower than the plan of all. */
TEST(no_other_plan_is_lower)
{
    static const char *const graphs[] =
        ROW("squeezenet:image=48", "inception_v3:image=75", "randwire:image=32",
            "shufflenet_v2:image=32", "lstm:form=while,layers=1,steps=4",
            "densenet121:image=32,batch=2,mode=train");
    static const char *const options[] =
        ROW("--order given", "--order least_peak", "--order least_peak --concat copy",
            "--concat share", "--concat copy --in-place off", "--views off");

    for (size_t i = 0; i < 2 * sizeof graphs / sizeof *graphs; i++) {
        const char *safety = i % 2 == 0 ? "" : " --safety parallel";
        char arguments[300];
        json_int_t bytes;
        json_t *row;

        if (left_out(i))
            continue;
        snprintf(arguments, sizeof arguments, "%s%s", graphs[i / 2], safety);
        row = least(arguments);
        bytes = number(row, "planned_bytes");
        json_decref(row);
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            json_int_t other;

            snprintf(arguments, sizeof arguments, "%s %s%s", graphs[i / 2], options[k], safety);
            if ((other = planned(arguments)) < bytes)
                fail_msg("%s: %lld bytes, and least has %lld", arguments, (long long)other,
                         (long long)bytes);
        }
    }
}

/* ---- plan files ---- */

/* Fault: a plan whose order and choices are lost on the way through its file. */
TEST(plans_survive_files)
{
    static const char *const graphs[] = ROW(
        "densenet121:image=32", "lstm:form=while,layers=1,steps=4", "randwire:image=32",
        SMALL " --safety parallel", SMALL " --views off", SMALL " --backend ref --workspaces plan",
        "mlp:layers=4,batch=16,hidden=32,mode=train --free +optimise,+recompute:1.5x");

    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char graph[200], arguments[300];
        json_t *row, *again;

        snprintf(graph, sizeof graph, "%.*s", (int)strcspn(graphs[i], " "), graphs[i]);
        snprintf(arguments, sizeof arguments, "%s%s -o @/plan.json", graphs[i],
                 strstr(graphs[i], "--backend") == NULL ? " --backend ref" : "");
        row = least(arguments);
        if (run("run %s --plan @/plan.json --repeat 1 --checked --json", graph) != 0)
            fail_msg("run %s --plan after least %s: %s", graph, graphs[i], err);
        again = json_loads(out, 0, NULL);
        assert_string_equal(text(again, "outputs"), "equal");
        assert_int_equal(number(again, "planned_bytes"), number(row, "planned_bytes"));
        assert_in_range(number(again, "measured_bytes"), 1, number(row, "planned_bytes") + 4095);
        assert_string_equal(text(again, "order"), "least");
        assert_true(json_is_null(json_object_get(again, "free")));
        assert_int_equal(run("verify %s @/plan.json", graph), 0);
        assert_int_equal(run("certify %s @/plan.json", graph), 0);
        assert_int_equal(run("plot %s --plan @/plan.json -o @/plan.html", graph), 0);
        assert_int_equal(run("check %s --plan @/plan.json --tolerance 1000%%", graph), 0);
        json_decref(row);
        json_decref(again);
    }
    json_decref(least("lstm:form=while,layers=1,steps=4 -o @/plan.json"));
    assert_int_equal(run("verify lstm:form=while,layers=1,steps=4 @/plan.json --order given"), 2);
    assert_non_null(strstr(err, "another problem"));
    json_decref(least("randwire:image=32 -o @/plan.json"));
    assert_int_equal(run("export randwire:image=32 --plan @/plan.json -f onnx -o @/net.onnx"), 0);
    if (run("verify randwire:image=32 @/net.onnx") != 0)
        fail_msg("the plan in the model: %s", err);
}

/* Writes the plan with another value under that key. */
static void tamper(json_t *plan, const char *key, json_t *value)
{
    json_t *changed = json_copy(plan);
    char *dumped;

    if (value != NULL)
        json_object_set_new(changed, key, value);
    else
        json_object_del(changed, key);
    dumped = json_dumps(changed, JSON_COMPACT);
    folder_put_text("bad.json", dumped);
    free(dumped);
    json_decref(changed);
}

static void refused(const char *what)
{
    if (run("verify lstm:form=while,layers=1,steps=4 @/bad.json") != 2 || strstr(err, what) == NULL)
        fail_msg("not refused because of '%s': %s", what, err);
    check_error("verify");
}

/* Fault: an order or a choice of a file that is believed. */
TEST(wrong_choices_are_refused)
{
    json_t *plan, *order;
    size_t n;

    json_decref(least("lstm:form=while,layers=1,steps=4 -o @/plan.json"));
    plan = json_load_file(in_folder("plan.json"), 0, NULL);
    order = json_object_get(plan, "op_order");
    n = json_array_size(order);
    assert_true(n > 10);
    tamper(plan, "op_order", json_integer(1));
    refused("'op_order' is no list of the graph's");
    tamper(plan, "op_order", json_pack("[i]", 0));
    refused("'op_order' is no list of the graph's");
    for (int k = 0; k < 4; k++) {
        json_t *list = json_deep_copy(order);

        json_array_set_new(list, 5,
                           k == 0   ? json_integer((json_int_t)n)
                           : k == 1 ? json_integer(-1)
                           : k == 2 ? json_string("5")
                                    : json_deep_copy(json_array_get(order, 4)));
        tamper(plan, "op_order", list);
        refused(k < 3 ? "entry 5 of 'op_order' is no operation of the graph" : "twice");
    }
    {
        json_t *list = json_array();

        for (size_t i = n; i-- > 0;)
            json_array_append(list, json_array_get(order, i));
        tamper(plan, "op_order", list);
        refused("order"); /* no order of this graph */
    }
    tamper(plan, "shared", NULL);
    refused("'shared' is missing or no list");
    tamper(plan, "copied", json_pack("{}"));
    refused("'copied' is missing or no list");
    tamper(plan, "shared", json_pack("[i,i]", 3, 3));
    refused("'shared' lists operation 3 out of turn");
    tamper(plan, "copied", json_pack("[i]", 100000));
    refused("entry 0 of 'copied' is no operation of the graph");
    tamper(plan, "op_order", NULL);
    refused("another problem");
    json_decref(plan);
}

/* Fault: what a file says of splits is not read. */
TEST(copied_splits_are_read)
{
    json_t *plan;
    size_t n, i = 0;

    json_decref(least("shufflenet_v2:image=32 -o @/plan.json"));
    plan = json_load_file(in_folder("plan.json"), 0, NULL);
    n = json_array_size(json_object_get(plan, "op_order"));
    do
        tamper(plan, "copied", json_pack("[i]", (int)i));
    while (run("verify shufflenet_v2:image=32 @/bad.json") == 0 && ++i < n);
    assert_in_range(i, 0, n - 1); /* a split: other operations copy nothing */
    assert_non_null(strstr(err, "another problem"));
    json_decref(plan);
}

/* Fault: a plan file that differs from run to run. */
TEST(the_same_twice)
{
    static char first[1 << 17], second[1 << 17];

    for (int k = 0; k < 2; k++) {
        assert_int_equal(run("least randwire:image=32 --reproducible -q -o @/%d.json", k), 0);
        assert_string_equal(out, "");
    }
    folder_read("0.json", first, sizeof first);
    folder_read("1.json", second, sizeof second);
    assert_string_equal(first, second);
}

/* ---- freedoms that change operations ---- */

/* Fault: a freedom kept without need, one that costs more than allowed, or a bound that does not
 * cover it. */
TEST(freedoms_have_their_price)
{
    json_t *row = least("mlp:layers=4,batch=16,hidden=32,mode=train "
                        "--free +optimise,+layout,+recompute:1.2x");
    const json_t *falls = json_object_get(row, "waterfall");
    size_t n = json_array_size(falls);
    json_int_t before = number(json_array_get(falls, n - 4), "bytes");

    assert_int_equal(n, 8);
    for (size_t i = n - 3; i < n; i++) {
        const json_t *fall = json_array_get(falls, i);
        json_int_t bytes = number(fall, "bytes"), tried = number(fall, "tried_bytes");
        bool kept = json_is_true(json_object_get(fall, "kept"));

        assert_int_equal(kept, tried < before);
        assert_int_equal(bytes, kept ? tried : before);
        assert_true(strlen(text(fall, "price")) > 0);
        before = bytes;
    }
    assert_int_equal(before, number(row, "planned_bytes"));
    assert_true(json_is_true(json_object_get(json_array_get(falls, n - 1), "kept")));
    assert_in_range(number(row, "extra_work"), 1, number(row, "all_work") / 5);
    assert_string_equal(text(row, "claim"), "feasible");
    assert_true(json_is_null(json_object_get(row, "bound_bytes")));
    assert_true(lists(row, "free", "+recompute:1.2x"));
    assert_int_equal(json_array_size(json_object_get(row, "held")), 0);
    json_decref(row);
    row = least("squeezenet:image=48 --free +recompute:2x");
    falls = json_object_get(row, "waterfall");
    n = json_array_size(falls);
    assert_non_null(strstr(text(json_array_get(falls, n - 1), "why"), "loss"));
    assert_true(json_is_false(json_object_get(json_array_get(falls, n - 1), "kept")));
    assert_true(json_is_null(json_object_get(row, "recompute")));
    json_decref(row);
    row = least("resnet18:image=32,mode=train --free +optimise"); /* its batch norms write over */
    falls = json_object_get(row, "waterfall");
    n = json_array_size(falls);
    assert_non_null(strstr(text(json_array_get(falls, n - 1), "why"), "optimise: operation"));
    assert_true(json_is_null(json_object_get(row, "optimise")));
    json_decref(row);
}

/* Fault: patches of more work than allowed, or a price that is not theirs. */
TEST(patches_have_their_price)
{
    json_t *row = least("mobilenet_v2:width=0.1,image=32,form=fused --free +tile:1.3x");
    const json_t *falls = json_object_get(row, "waterfall");
    size_t n = json_array_size(falls);
    const json_t *fall = json_array_get(falls, n - 1);

    assert_true(json_is_true(json_object_get(fall, "kept")));
    assert_true(2 * number(fall, "bytes") < number(json_array_get(falls, n - 2), "bytes"));
    assert_true(10 * number(fall, "work") <= 13 * number(fall, "work_before"));
    assert_true(number(row, "patches") > 1);
    json_decref(row);
}

/* The number under `key` of what plan or run says of residency. */
static json_int_t said(const char *key)
{
    json_t *row = json_loads(out, 0, NULL);
    json_int_t value = number(row, key);

    json_decref(row);
    return value;
}

/* Faults: a plan in two memories that costs more than the one of the given order, or of the graph
 * without patches; one that is not of the capacity, or is lost on the way through its file. */
TEST(two_memories_have_their_price)
{
    static const struct {
        const char *graph, *freedoms, *part, *prices, *of;
        bool below; /* the given order */
    } rows[] = {
        {"squeezenet:image=48", "", "60%", ":1,slow:inf:8", "order", false},
        {"squeezenet:image=48", "", "60%", ":1,slow:inf:8,bandwidth=10GiB", "order", false},
        {"randwire:image=32", "", "60%", ":1,slow:inf:8", "order", true},
        {"mobilenet_v2:width=0.1,image=32,form=fused", "--free +tile:1.05x", "50%", ":1,slow:inf:8",
         "order", false},
        {"mlp:layers=4,batch=16,hidden=32,mode=train", "--free +recompute:1.5x", "90%",
         ":1,slow:inf:1000", "+recompute:1.5x", true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char arguments[400];
        json_int_t before, capacity, given, moved, cost;
        json_t *row;
        const json_t *falls, *fall;
        bool stalls = strstr(rows[i].prices, "bandwidth") != NULL;

        snprintf(arguments, sizeof arguments,
                 "%s %s --memories fast:%s%s --backend ref --budget 20000 -o @/plan.json",
                 rows[i].graph, rows[i].freedoms, rows[i].part, rows[i].prices);
        row = least(arguments);
        falls = json_object_get(row, "waterfall");
        fall = json_array_get(falls, json_array_size(falls) - 1);
        before = number(json_array_get(falls, json_array_size(falls) - 2), "bytes");
        capacity = number(row, "fast_capacity");
        moved = number(row, "moved_bytes"), cost = number(row, "cost");
        assert_string_equal(text(fall, "step"), "residency");
        assert_string_equal(text(fall, "of"), rows[i].of);
        assert_true(json_is_true(json_object_get(fall, "kept")));
        assert_non_null(strstr(text(fall, "price"), stalls ? "; stall " : " moved"));
        assert_int_equal(number(row, "without_bytes"), before);
        assert_int_equal(number(fall, "bytes"), number(row, "planned_bytes"));
        assert_in_range(number(row, "planned_bytes"), 1, capacity);
        assert_true(capacity < before && moved > 0);
        assert_in_range(number(row, "cost_bound"), 1, cost);
        assert_string_equal(text(row, "claim"), "feasible");
        assert_true(json_is_null(json_object_get(row, "bound_bytes")));
        assert_true(lists(row, "free", "residency"));
        assert_int_equal(run("certify @/plan.json"), 0);
        if (run("run %s --plan @/plan.json --repeat 1 --json", rows[i].graph) != 0)
            fail_msg("run --plan after least %s: %s", arguments, err);
        assert_int_equal(said("moved_bytes"), moved);
        assert_int_equal(said("cost"), cost);
        assert_non_null(strstr(out, "\"outputs\":\"equal\""));
        if (run("plan %s --residency --memories fast:%lld%s --backend ref --budget 20000 --json",
                rows[i].graph, (long long)capacity, rows[i].prices) != 0)
            fail_msg("plan %s: %s", rows[i].graph, err);
        given = said(stalls ? "stall_ns" : "cost");
        cost = stalls ? number(row, "stall_ns") : cost;
        if (cost > given || (rows[i].below && cost == given))
            fail_msg("least %s: %lld, in the given order %lld", arguments, (long long)cost,
                     (long long)given);
        json_decref(row);
    }
}

/* Fault: nothing said, or a plan spoiled, where two memories do not help, or cannot. */
TEST(two_memories_are_not_always_tried)
{
    static const struct {
        const char *arguments, *why;
        bool optimal;
    } rows[] = {
        {"mlp --memories fast:1MiB:1,slow:inf:8", "fits in 1.000 MiB of fast memory as it is",
         true},
        {"lstm:form=while,layers=1,steps=4 --memories fast:60%:1,slow:inf:8", "has loops", true},
        {"mlp --memories fast:64:1,slow:inf:-", "the operands of step", true},
        {"mlp --free +layout --time-limit 0.000000001 --memories fast:1KiB:1,slow:inf:8",
         "the search ended before", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *row = least(rows[i].arguments);
        const json_t *falls = json_object_get(row, "waterfall");
        const json_t *fall = json_array_get(falls, json_array_size(falls) - 1);

        assert_string_equal(text(fall, "step"), "residency");
        assert_true(json_is_false(json_object_get(fall, "kept")));
        if (strstr(text(fall, "why"), rows[i].why) == NULL)
            fail_msg("%s: %s", rows[i].arguments, text(fall, "why"));
        assert_int_equal(number(fall, "bytes"), number(row, "planned_bytes"));
        assert_true(json_is_null(json_object_get(row, "cost")));
        assert_string_equal(text(row, "claim"), rows[i].optimal ? "optimal" : "feasible");
        json_decref(row);
    }
}

TEST(wrong_freedoms_are_refused)
{
    static const struct {
        const char *arguments, *says;
    } wrong[] = {
        {"mlp --free +turn", "'+turn' is none of +optimise, +layout, +recompute:FACTORx"},
        {"mlp --free optimise", "'optimise' is none of"},
        {"mlp --free +optimise:2x", "'+optimise:2x' is none of"},
        {"mlp --free +recompute", "'+recompute' is none of"},
        {"mlp --free +recompute:1.2", "such as +recompute:1.2x"},
        {"mlp --free +recompute:0.5x", "such as +recompute:1.2x"},
        {"mlp --free +recompute:x", "such as +recompute:1.2x"},
        {"mlp --free +layout,+layout", "+layout stands there twice"},
        {"mlp --free +layout,", "--free"},
        {"mlp --free +optimise --optimise all", "--optimise is given"},
        {"mlp --memories fast:1KiB:1", "of the form"},
        {"mlp --memories fast:1KiB:1,slow:inf:8 --safety parallel", "serial plans"},
        {"mlp --order least_peak", "--order"},
        {"tests/data/four.csv", "is a list of buffers; it has no operations to order"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (run("least %s", wrong[i].arguments) != 2 || strstr(err, wrong[i].says) == NULL)
            fail_msg("least %s: %s", wrong[i].arguments, err);
        check_error(wrong[i].arguments);
    }
}

/* ---- ends before the end ---- */

/* Starts it and interrupts it after that time; the exit status. */
static int interrupted(const char *graph, const char *free_text, unsigned milliseconds)
{
    pid_t pid = fork();
    int how;

    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(open(in_folder("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        execl(program, program, "least", graph, "--free", free_text, "--json", "-o",
              in_folder("plan.json"), (char *)NULL);
        _exit(127);
    }
    usleep(1000 * milliseconds);
    kill(pid, SIGINT);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    folder_read("out", out, sizeof out);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* Fault: Ctrl-C loses the plan, or a limit of time does. */
TEST(the_best_so_far_is_written)
{
    static const char *const graph = "resnet18:image=32,mode=train";
    json_t *row, *last;
    unsigned wait = 300; /* until it listens: longer on a machine that is busy */
    int status;

    while ((status = interrupted(graph, "+recompute:1.2x,+optimise", wait)) == 128 + SIGINT &&
           wait < 5000)
        wait *= 2;
    assert_int_equal(status, 0);
    row = json_loads(out, 0, NULL);
    assert_non_null(row);
    assert_string_equal(text(row, "stopped"), "interrupt");
    last = json_object_get(row, "waterfall");
    last = json_array_get(last, json_array_size(last) - 1);
    assert_string_equal(text(last, "step"), "+optimise");
    assert_non_null(strstr(text(last, "why"), "ended"));
    if (run("verify %s @/plan.json", graph) != 0)
        fail_msg("%s", err);
    json_decref(row);
    row = least("resnet18:image=32,mode=train --time-limit 0.001 -o @/plan.json "
                "--free +optimise,+layout");
    assert_string_equal(text(row, "stopped"), "clock");
    assert_int_equal(run("verify %s @/plan.json", graph), 0);
    json_decref(row);
}

TESTS_OF_PROGRAM("least", rows_say_over_what, no_other_plan_is_lower, plans_survive_files,
                 wrong_choices_are_refused, copied_splits_are_read, the_same_twice,
                 freedoms_have_their_price, patches_have_their_price, two_memories_have_their_price,
                 two_memories_are_not_always_tried, wrong_freedoms_are_refused,
                 the_best_so_far_is_written)
