/* test_harness_templates.c -- plans for ranges of sizes as a user has them: made, certified,
 * executed at drawn shapes, exported as C, evaluated by the library; what is refused. Fault: a
 * shape outside of the range evaluated, another graph's template run, C that differs. */
#include "tests/harness/run_program.h"

#include "graphs/core/file.h"
#include "graphs/core/rng.h"
#include "harness/lib/memplan.h"

#include <dlfcn.h>

enum { MOST_BUFFERS = 400, SHAPES = 200 };

typedef int offsets_of_shape(const int64_t *dim, uint64_t *offset, uint64_t *pool_bytes);

/* A network, its ranges, and a bound on its regret in ten thousandths. */
static const struct {
    const char *graph, *ranges, *run, *backend;
    double most;
} nets[] = {
    {"mlp", "--dim batch=1..64", "", "cpu", 1.001},
    {"unet:levels=2,channels=8", "--dim image=32..64:16", "", "ref", 1.001},
    {"bert:layers=1,hidden=32,heads=2,vocab=50", "--dim batch=1..8 --dim seq=1..32", "", "cpu",
     1.01},
    {"lstm:form=while,layers=1", "--dim batch=1..8 --dim steps=1..12", "", "ref", 1.001},
    {"resnet18", "--dim batch=1..2 --dim image=32..64:32", "", "cpu", 1.001},
};

static double number_of(const char *key)
{
    const char *at = strstr(out, key);

    if (at == NULL)
        fail_msg("no %s in %s", key, out);
    return strtod(at + strlen(key), NULL);
}

TEST(made_certified_and_run)
{
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        if (run("plan %s %s -o @/t.json --json --shapes 50", nets[i].graph, nets[i].ranges) != 0)
            fail_msg("%s: %s", nets[i].graph, err);
        assert_true(number_of("\"regret_most\":") <= nets[i].most);
        assert_true(number_of("\"drawn_worst\":") <= number_of("\"regret_most\":") + 1e-4);
        assert_int_equal(run("certify @/t.json"), 0);
        if (run("run %s --plan @/t.json --shapes 3 --seed 5 --backend %s", nets[i].graph,
                nets[i].backend) != 0)
            fail_msg("%s: %s", nets[i].graph, err);
        assert_non_null(strstr(out, "equal to the run that shares nothing, at each of 3 shapes"));
    }
}

/* The script of make shapes-oracle, on two networks: what concats share as boxes is in the file. */
TEST(oracle_in_short)
{
    char command[1200];

    snprintf(command, sizeof command,
             "scripts/shapes-oracle.sh %s 4 inception_v3 gpt_both >%s/oracle 2>&1", program,
             folder);
    if (system(command) != 0)
        fail_msg("%s: see %s/oracle", command, folder);
}

TEST(one_shape)
{
    assert_int_equal(run("plan mlp --dim batch=1..64 -o @/mlp.json"), 0);
    assert_int_equal(run("run mlp --dim batch=9 --plan @/mlp.json --backend ref --checked"), 0);
    assert_int_equal(run("run mlp:batch=9 --plan @/mlp.json --backend ref"), 0);
    assert_int_equal(run("run mlp --dim batch=65 --plan @/mlp.json"), 2);
    check_error("run outside of the range");
    assert_int_equal(run("run mnist_conv --dim batch=9 --plan @/mlp.json"), 2);
    check_error("run of another graph");
    assert_int_equal(run("run mlp:hidden=17 --dim batch=9 --plan @/mlp.json"), 2);
    check_error("run of another size");
    assert_non_null(strstr(err, "another graph"));
    assert_int_equal(run("run mlp:layers=3 --dim batch=9 --plan @/mlp.json"), 2);
    check_error("run of more operations");
}

/* No buffer's size says how many steps there are: the template of 4 is none of 5. */
TEST(parameters_without_a_range_stay)
{
    assert_int_equal(run("plan lstm:form=while,layers=1,steps=4 --dim batch=1..8 -o @/four.json"),
                     0);
    assert_int_equal(run("run lstm:form=while,layers=1,steps=4 --dim batch=3 --plan @/four.json "
                         "--backend ref"),
                     0);
    assert_int_equal(run("run lstm:form=while,layers=1,steps=5 --dim batch=3 --plan @/four.json "
                         "--backend ref"),
                     2);
    check_error("run of another number of steps");
    assert_non_null(strstr(err, "another graph"));
    assert_null(strstr(strstr(err, "four.json") + 1, "four.json"));
}

/* Streams and the whole of the order that operations leave open, over ranges. */
TEST(other_safeties)
{
    for (int i = 0; i < 2; i++) {
        const char *safety = i == 0 ? "streams:2" : "parallel";

        assert_int_equal(run("plan bert:layers=1,hidden=32,heads=2,vocab=50 --dim batch=1..4 "
                             "--dim seq=1..16 --safety %s -o @/t.json",
                             safety),
                         0);
        assert_int_equal(run("certify @/t.json"), 0);
        assert_int_equal(run("run bert:layers=1,hidden=32,heads=2,vocab=50 --plan @/t.json "
                             "--shapes 5 --backend ref --json"),
                         0);
        assert_non_null(strstr(out, i == 0 ? "\"safety\":\"streams:2" : "\"safety\":\"parallel"));
        assert_non_null(strstr(out, "\"outputs\":\"equal\""));
    }
}

/* A refused file's row has nothing of what the file claims. */
TEST(refused_rows_claim_nothing)
{
    owned_memory char *text = NULL;
    char *most, *end;
    size_t n;

    assert_int_equal(run("plan mlp --dim batch=1..64 --shapes 20 -o @/t.json"), 0);
    assert_ok(test_ctx, mpl_file_read(test_ctx, in_folder("t.json"), &text, &n));
    assert_non_null(most = strstr(text, "\"most\":"));
    end = most + strcspn(most, "}");
    memset(most + 7, ' ', (size_t)(end - most) - 7);
    memcpy(most + 7, "999", 3);
    folder_put_text("forged.json", text);
    assert_int_equal(run("certify @/forged.json --json"), 1);
    assert_null(strstr(out, "\"regret_most\":0"));
    assert_null(strstr(out, "\"regret_least\":1"));
    assert_null(strstr(out, "\"drawn_worst\":1"));
    assert_int_equal(run("certify @/t.json --json"), 0);
    assert_true(number_of("\"regret_most\":") >= 1);
}

TEST(refused)
{
    static const char *const ranges[] = {"batch=5..2", "batch=0..4",   "batch=-3..4", "foo=1..3",
                                         "batch=1..",  "batch=1..4:0", "batch<=0"};

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (run("plan mlp --dim batch=1..4 --dim '%s' -o @/x.json", ranges[i]) != 2 &&
            run("plan mlp --dim '%s' -o @/x.json", ranges[i]) != 2)
            fail_msg("%s was taken: %s", ranges[i], out);
        check_error(ranges[i]);
    }
    assert_int_equal(run("plan mlp --cells 2 -o @/x.json"), 2);
    check_error("cells without a range");
    assert_int_equal(run("plan mlp --dim batch=1..4 --capacity 1000 -o @/x.json"), 2);
    check_error("a capacity of a range");
    assert_int_equal(run("plan mlp --dim batch=1..4 --reserve 0..64 -o @/x.json"), 2);
    check_error("reserved bytes of a range");
    assert_int_equal(run("plan mlp --dim batch=1..4 --planner replan -o @/x.json"), 2);
    check_error("a file of replan");
    folder_put_text("cut.json", "{\"kind\": \"template\", \"schema\": 1");
    assert_int_equal(run("certify @/cut.json"), 2);
    check_error("a cut file");
}

/* What others do over ranges stands above the template. */
TEST(baselines)
{
    double most;

    assert_int_equal(run("plan mlp --dim batch=1..64 --json"), 0);
    most = number_of("\"regret_most\":");
    for (int i = 0; i < 3; i++) {
        static const char *const way[] = {"--planner upper", "--planner equal", "--constant"};

        assert_int_equal(run("plan mlp --dim batch=1..64 --json --shapes 20 %s", way[i]), 0);
        assert_true(number_of("\"drawn_worst\":") > most);
    }
    assert_int_equal(run("plan mlp --dim batch=1..64 --json --shapes 20 --planner replan"), 0);
    assert_true(number_of("\"drawn_worst\":") <= most);
}

static offsets_of_shape *compiled(void **handle)
{
    char command[1200], path[600];

    snprintf(path, sizeof path, "%s/t.so", folder);
    snprintf(command, sizeof command,
             "${CC:-cc} -std=c11 -Wall -Wextra -Werror -shared -fPIC -o %s %s/t.c", path, folder);
    assert_int_equal(system(command), 0);
    assert_non_null(*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL));
    return (offsets_of_shape *)(uintptr_t)dlsym(*handle, "memplan_offsets");
}

/* The exported C function and the library say the same of every drawn shape; both refuse shapes
 * that a relation leaves out. */
static void as_c_and_library(const char *way)
{
    memplan_ctx *library = memplan_ctx_new();
    memplan_template *t = NULL;
    uint64_t ours[MOST_BUFFERS], theirs[MOST_BUFFERS], pools[4];
    uint32_t inside = 0;
    char path[600];
    void *handle;
    offsets_of_shape *evaluate;
    mpl_rng rng = mpl_rng_of(3);

    assert_int_equal(run("plan bert:layers=1,hidden=32,heads=2,vocab=50 --dim batch=1..9 "
                         "--dim seq=2..40:2 --dim 'batch+seq<=30' %s -o @/t.json",
                         way),
                     0);
    assert_int_equal(run("export @/t.json --format c-template -o @/t.c"), 0);
    evaluate = compiled(&handle);
    snprintf(path, sizeof path, "%s/t.json", folder);
    assert_int_equal(memplan_template_read(library, path, &t), MEMPLAN_OK);
    assert_true(memplan_template_count(t) <= MOST_BUFFERS);
    assert_string_equal(memplan_template_dim(t, 0), "batch");
    assert_string_equal(memplan_template_dim(t, 1), "seq");
    for (uint32_t i = 0; i < SHAPES; i++) {
        int64_t dim[2] = {(int64_t)mpl_rng_below(&rng, 11), (int64_t)mpl_rng_below(&rng, 43)};
        bool allowed = dim[0] >= 1 && dim[0] <= 9 && dim[1] >= 2 && dim[1] <= 40 &&
                       dim[1] % 2 == 0 && dim[0] + dim[1] <= 30;
        uint64_t bytes = memplan_template_offsets(t, dim, ours);

        assert_int_equal(bytes != MEMPLAN_NO_OFFSET, allowed);
        assert_int_equal(evaluate(dim, theirs, pools) == 0, allowed);
        if (!allowed)
            continue;
        inside++;
        assert_int_equal(pools[0], bytes);
        assert_memory_equal(ours, theirs, memplan_template_count(t) * sizeof *ours);
    }
    assert_true(inside > SHAPES / 10);
    dlclose(handle);
    memplan_template_free(t);
    memplan_ctx_free(library);
}

TEST(as_c_and_as_library)
{
    as_c_and_library("--cells 2");
    as_c_and_library("--constant");
}

static int begin(void)
{
    return program_begin("templates");
}

TESTS_WITHIN(begin, folder_remove, made_certified_and_run, oracle_in_short, one_shape,
             parameters_without_a_range_stay, other_safeties, refused_rows_claim_nothing, refused,
             baselines, as_c_and_as_library)
