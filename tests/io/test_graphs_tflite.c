/* test_graphs_tflite.c -- TensorFlow Lite models: small ones of each operator against what its
 * reference kernels gave (scripts/peers/tflite_outputs.py made both), the models of `make data`
 * planned to a proof and run, a producer's own offsets, and damaged files.
 *
 * Fault: an operator read with another window, axis, order of channels, scale or rounding; a tensor
 * that is not one of the file's; an offset that leads outside of a file. */
#include "tests/harness/run_program.h"

#include <math.h>

#define HERE "tests/data/tflite/"

static int begin(void)
{
    return program_begin("tflite");
}

static int end(void)
{
    return folder_remove();
}

/* ---- against the reference kernels ---- */

static const char *const models[] = {"elements_float", "elements_int8", "layers_float",
                                     "layers_int8",    "moves_float",   "moves_int8",
                                     "states"};

/* The rule of the script: odd inputs are positive. */
static void make_input(mpl_type type, uint32_t k, int64_t i, void *data)
{
    int64_t x = i * 37 + 11 * k;
    float real = (float)(x % 101 - 50) / 20;

    if (type == MPL_TYPE_f32)
        ((float *)data)[i] = k % 2 != 0 ? fabsf(real) + 0.25f : real;
    else
        ((int8_t *)data)[i] = (int8_t)(x % 256 - 128);
}

static mpl_graph *open_model(mpl_ctx *ctx, const char *path)
{
    mpl_source source;

    assert_ok(ctx, mpl_source_open(ctx, path, NULL, &source));
    assert_non_null(source.graph);
    return source.graph;
}

/* Writes the inputs to the folder and their options behind the command. */
static void write_inputs(mpl_ctx *ctx, const mpl_graph *g, char *command)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        mpl_tensor t = {(mpl_type)g->value_type[g->input[k]], g->value_shape[g->input[k]], NULL};
        owned_memory void *data = mpl_alloc(ctx, g->value_bytes[g->input[k]], 1);
        char name[32];

        t.data = data;
        for (int64_t i = 0; i < mpl_count(&t.shape); i++)
            make_input(t.type, k, i, data);
        snprintf(name, sizeof name, "in%u.npy", k);
        assert_ok(ctx, mpl_tensor_write(ctx, in_folder(name), &t));
        sprintf(command + strlen(command), " --input %u=@/%s", k, name);
    }
}

/* One step of the scale for integers, 2e-5 of the largest magnitude for floats. Returns how many
 * elements are further off. */
static unsigned compare(mpl_ctx *ctx, const char *name, char *numbers)
{
    char path[100];
    mpl_tensor t;
    double largest = 1, got, want;
    char *at = numbers;
    unsigned off = 0;

    snprintf(path, sizeof path, "dump/%s.npy", name);
    assert_ok(ctx, mpl_tensor_read(ctx, in_folder(path), &t));
    for (int64_t i = 0; i < mpl_count(&t.shape); i++)
        largest = fmax(largest, fabs(strtod(at, &at)));
    at = numbers;
    for (int64_t i = 0; i < mpl_count(&t.shape); i++) {
        want = strtod(at, &at);
        got = t.type == MPL_TYPE_f32   ? (double)((float *)t.data)[i]
              : t.type == MPL_TYPE_i8  ? ((int8_t *)t.data)[i]
              : t.type == MPL_TYPE_i32 ? ((int32_t *)t.data)[i]
              : t.type == MPL_TYPE_i64 ? (double)((int64_t *)t.data)[i]
                                       : ((uint8_t *)t.data)[i];
        off += !(fabs(got - want) <= (t.type == MPL_TYPE_f32  ? 2e-5 * largest
                                      : t.type == MPL_TYPE_i8 ? 1
                                                              : 0));
    }
    assert_true(*at == '\0');
    mpl_free(ctx, t.data);
    if (off > 0)
        print_error("%s: %u elements are off\n", name, off);
    return off;
}

TEST(operators_give_what_the_reference_kernels_give)
{
    unsigned n = 0, off = 0;

    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        char path[100], command[1000];
        owned_memory char *text = NULL;
        char *rest;
        size_t size;

        snprintf(path, sizeof path, HERE "%s.tflite", models[k]);
        owned_graph *g = open_model(ctx, path);
        snprintf(command, sizeof command,
                 "run %s -p greedy_size -b ref --checked --repeat 1 --dump @/dump", path);
        write_inputs(ctx, g, command);
        if (run("%s", command) != 0)
            fail_msg("%s: %s", models[k], err);
        snprintf(path, sizeof path, HERE "%s.txt", models[k]);
        assert_ok(ctx, mpl_file_read(ctx, path, &text, &size));
        rest = text;
        for (char *line; (line = strsep(&rest, "\n")) != NULL;)
            if (*line != '#' && *line != '\0') {
                char *name = strsep(&line, " ");

                off += compare(ctx, name, line);
                n++;
            }
        for (mpl_op op = 0; op < g->n_ops; op++)
            assert_false(mpl_is_opaque(g, op));
    }
    assert_int_equal(off, 0);
    print_message("%u outputs of operators\n", n);
    assert_int_equal(n, 176);
}

/* ---- the models of others ---- */

static const struct {
    const char *name;
    unsigned bytes, all_bytes; /* the least; with inputs and outputs planned too, no views, no
                                  in-place pairs: TensorFlow Lite's own tensors */
    int exit;                  /* of a run */
} others[] = {
    {"tflm_person_detect", 55296, 55296, 0},    {"tinyengine_vww", 161472, 161472, 0},
    {"tflm_keyword_scrambled_8bit", 160, 0, 0}, {"tflm_micro_speech_quantized", 4036, 0, 0},
    {"tflm_trained_lstm_int8", 586, 0, 0},      {"tflm_person_detect_vela", 74464, 0, 4},
};

TEST(models_of_others_are_proved_and_run)
{
    if (access(MPL_SHARED "/tflite", R_OK) != 0) {
        print_message("skip: no " MPL_SHARED "/tflite (make data)\n");
        return;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char path[200], planned[60];

        snprintf(path, sizeof path, MPL_SHARED "/tflite/%s.tflite", others[i].name);
        for (int all = 0; all < 2; all++) {
            unsigned want = all ? others[i].all_bytes : others[i].bytes;

            assert_int_equal(run("plan %s --planner portfolio%s --json", path,
                                 all ? " --pin weights --views off --in-place off" : ""),
                             0);
            snprintf(planned, sizeof planned, "\"planned_bytes\":%u,", want);
            if (strstr(out, "\"claim\":\"optimal\"") == NULL ||
                (want > 0 && strstr(out, planned) == NULL))
                fail_msg("%s: %s", others[i].name, out);
        }
        assert_int_equal(run("run %s --planner greedy_size --backend ref --repeat 1", path),
                         others[i].exit);
        assert_true(others[i].exit == 0 || strstr(err, "ethos-u") != NULL);
    }
}

/* ---- the producer's own offsets ---- */

static const struct {
    const char *arguments;
    int exit;
    const char *says;
} own[] = {
    {"check --plan " HERE "placed.tflite", 1, "256 bytes"},
    {"check --plan " HERE "placed.tflite --tolerance 100%", 0, "verified"},
    {"check --plan " HERE "placed.tflite --tolerance 100%", 0, "1 tensors are left to the run"},
    {"check --plan " HERE "states.tflite", 2, "no metadata OfflineMemoryAllocation"},
    {"check " HERE "placed.tflite --plan " HERE "placed.tflite --tolerance 100% --in-place off", 0,
     "256 bytes"},
    {"check " HERE "placed.tflite --plan " HERE "placed.tflite --pin weights", 2, "no offset to"},
};

TEST(offsets_of_the_file_are_checked_as_a_plan)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        int got = run("%s", own[i].arguments);

        if (got != own[i].exit ||
            (strstr(out, own[i].says) == NULL && strstr(err, own[i].says) == NULL))
            fail_msg("%s: exit %d: %s%s", own[i].arguments, got, out, err);
    }
    if (access(MPL_SHARED "/tflite", R_OK) != 0)
        return;
    assert_int_equal(
        run("check --plan " MPL_SHARED "/tflite/tflm_person_detect_vela.tflite --tolerance 0%%"),
        0);
    assert_non_null(strstr(out, "74464 bytes"));
    assert_non_null(strstr(out, "3 lie inside"));
}

/* What tflite-micro's interpreter took for the head of these, by print_allocations(); models of
 * scripts/peers/random_tflite.py, of which each test has one. Fault: equal sizes in another order;
 * an input that no operator reads is left out, or lives into the first operator. */
TEST(the_head_of_its_own_planner_is_said)
{
    static const struct {
        const char *model;
        int head, least;
    } table[] = {{"ties", 576, 512}, {"unread", 1408, 1280}};
    char says[100];

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        snprintf(says, sizeof says,
                 "head of the arena: %d bytes, the least; by TensorFlow Lite "
                 "Micro's own planner %d\n",
                 table[i].least, table[i].head);
        assert_int_equal(run("export " HERE "%s.tflite --format tflite -o %s/placed.tflite",
                             table[i].model, folder),
                         0);
        if (strstr(err, says) == NULL)
            fail_msg("%s: not '%s' but %s", table[i].model, says, err);
    }
}

/* ---- damaged files ---- */

/* Reads a copy of the model; the answer is a graph, or one line that names the file. */
static void read_damaged(mpl_ctx *ctx, const char *data, size_t size)
{
    owned_graph *g = NULL;
    mpl_status st = mpl_tflite_read_memory(ctx, "bad.tflite", data, size, &g);

    assert_true(st == MPL_OK || (st == MPL_EINPUT && strstr(ctx->message, "bad.tflite") != NULL &&
                                 strchr(ctx->message, '\n') == NULL));
}

TEST(damaged_files_are_refused_in_one_line)
{
    owned_memory char *data = NULL;
    size_t size;

    assert_ok(ctx, mpl_file_read(ctx, HERE "states.tflite", &data, &size));
    for (size_t n = 8; n < size; n += 3) {
        owned_memory char *part = mpl_alloc(ctx, n, 1); /* its end is guarded by the sanitizer */
        mpl_graph *g = NULL;

        memcpy(part, data, n);
        assert_status(ctx, mpl_tflite_read_memory(ctx, "bad.tflite", part, n, &g), MPL_EINPUT);
    }
    for (size_t i = 0; i < size; i++) {
        static const unsigned char flips[] = {0x01, 0x80, 0xff};
        char was = data[i];

        data[i] = (char)(was ^ flips[i % 3]);
        read_damaged(ctx, data, size);
        data[i] = was;
    }
}

TEST(memory_runs_out)
{
    owned_memory char *data = NULL;
    size_t size;
    mpl_status st = MPL_EMEM;

    assert_ok(ctx, mpl_file_read(ctx, HERE "states.tflite", &data, &size));
    for (int64_t k = 0; st == MPL_EMEM; k++) {
        owned_graph *g = NULL;

        ctx->n_allocs = 0;
        ctx->fail_after = k;
        st = mpl_tflite_read_memory(ctx, "states.tflite", data, size, &g);
        assert_true(st == MPL_OK || (st == MPL_EMEM && g == NULL));
    }
    ctx->fail_after = -1;
    assert_ok(ctx, st);
}

TESTS_WITHIN(begin, end, operators_give_what_the_reference_kernels_give,
             models_of_others_are_proved_and_run, offsets_of_the_file_are_checked_as_a_plan,
             the_head_of_its_own_planner_is_said, damaged_files_are_refused_in_one_line,
             memory_runs_out)
