/* memplan run --iterations: identical losses under every planner, a falling loss, MNIST's files,
 * refusals. */
#include "tests/support/folder.h"

#include "harness/job/train.h"

#include <math.h>

#define UNET    "tests/data/trained/unet.onnx"
#define TRAINED "mnist_conv:batch=32,image=8,mode=train,update=sgd,rate=50000"

/* Collects a command's output; returns its exit status. */
static int run(const char *arguments, char *text, size_t size)
{
    const char *program = getenv("MEMPLAN");
    char command[1000];
    size_t n = 0;
    FILE *f;

    snprintf(command, sizeof command, "%s %s 2>&1", program != NULL ? program : "build/memplan",
             arguments);
    f = popen(command, "r");
    assert_non_null(f);
    while (n + 1 < size && fgets(text + n, (int)(size - n), f) != NULL) {
        char *end = strstr(text + n, ", \"run_ns"); /* times differ */

        if (end != NULL)
            strcpy(end, "\n");
        n += strlen(text + n);
    }
    text[n] = '\0';
    return WEXITSTATUS(pclose(f));
}

static double loss_at(const char *text, int iteration)
{
    char key[40];
    const char *at;

    snprintf(key, sizeof key, "{\"iteration\": %d, \"loss\": ", iteration);
    at = strstr(text, key);
    assert_non_null(at);
    return atof(at + strlen(key));
}

TEST(every_planner_trains_alike)
{
    static char first[10000], text[10000];

    assert_int_equal(run("run " TRAINED " --planner none --backend cpu --iterations 5 --json",
                         first, sizeof first),
                     0);
    for (uint32_t i = 0; mpl_planners[i] != NULL; i++) {
        const mpl_planner *p = mpl_planners[i];
        char arguments[300];

        if (left_out(i) || p->plan == NULL || (p->traits & (MPL_PARALLEL_ONLY | MPL_SPREADS)) != 0)
            continue;
        snprintf(arguments, sizeof arguments,
                 "run " TRAINED " --planner %s --backend cpu --iterations 5 --json", p->name);
        if (run(arguments, text, sizeof text) != 0 || strcmp(first, text) != 0)
            fail_msg("%s: %s", p->name, text);
    }
}

/* Pictures of full size; the gradient's updates as usual, the network's own rate. */
TEST(loss_falls)
{
    static const char *const updates[] = {"sgd", "momentum", "adagrad", "adam"};
    static char text[10000];

    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        char arguments[300];
        double late = 0;

        if (left_out(i))
            continue;
        snprintf(arguments, sizeof arguments,
                 "run mnist_conv:batch=16,mode=train,update=%s --planner greedy_size --backend cpu "
                 "--iterations 60 --json",
                 updates[i]);
        assert_int_equal(run(arguments, text, sizeof text), 0);
        for (int k = 56; k <= 60; k++)
            late += loss_at(text, k) / 5;
        print_message("%s: loss %.3f, at last %.3f\n", updates[i], loss_at(text, 1), late);
        assert_true(fabs(loss_at(text, 1) - log(10)) < 0.15); /* untrained over ten classes */
        assert_true(late < 1);
    }
}

TEST(drawn_digits_are_said_to_be_drawn)
{
    static char text[10000];

    assert_int_equal(
        run("run " TRAINED " --planner owl --backend ref --iterations 1", text, sizeof text), 0);
    assert_non_null(strstr(text, "drawn"));
    assert_non_null(strstr(text, "bit for bit"));
}

TEST(other_graphs_are_refused)
{
    static const char *const graphs[] = {
        "mlp", "mlp:mode=train", "resnet18:image=32,mode=train,update=sgd --data .",
        "mnist_conv:classes=3,image=8,mode=train,update=sgd --data .", UNET ":mode=train"};
    static char text[10000];

    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char arguments[300];

        snprintf(arguments, sizeof arguments, "run %s --planner owl --backend ref --iterations 1",
                 graphs[i]);
        assert_int_equal(run(arguments, text, sizeof text), 2);
        assert_non_null(strstr(text, "--iterations"));
    }
}

/* A file, with each kind of loss, learns what it is shown; a digit classifier of a file gets
 * digits. */
TEST(loss_of_files_falls)
{
    static const char *const files[] = {
        UNET ":mode=train,update=adam,rate=10000",
        "tests/data/trained/encoder.onnx:mode=train,update=sgd,rate=100000",
        "tests/data/trained/residual_norm.onnx:mode=train,update=momentum,layers=training",
        "tests/data/trained/autoencoder.onnx:mode=train,update=adagrad --loss 17:square",
        "tests/data/trained/variational.onnx:mode=train,update=adam,rate=20000 --loss 38:scalar "
        "--trainable "
        "'*.weight'",
        "@/digits.onnx:mode=train,update=sgd,rate=50000"};
    static char text[100000];
    char arguments[1000];

    assert_int_equal(folder_make("training"), 0);
    snprintf(arguments, sizeof arguments,
             "export mnist_conv:batch=32,image=8 -f onnx -o %s/digits.onnx", folder);
    assert_int_equal(run(arguments, text, sizeof text), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        bool own = files[i][0] == '@';

        if (left_out(i))
            continue;
        snprintf(arguments, sizeof arguments, "run %s%s --iterations 60 --json --backend cpu",
                 own ? folder : "", files[i] + own);
        assert_int_equal(run(arguments, text, sizeof text), 0);
        print_message("%s: loss %.3f, at last %.3f\n", files[i], loss_at(text, 1),
                      loss_at(text, 60));
        assert_true(loss_at(text, 60) < 0.9 * loss_at(text, 1));
    }
    assert_int_equal(folder_remove(), 0);
}

/* Every command that takes a GRAPH. */
TEST(commands_take_trained_files)
{
    static const struct {
        const char *arguments, *says;
    } rows[] = {
        {"plan " UNET ":mode=train -o @/plan.json", "verified"},
        {"verify " UNET ":mode=train @/plan.json", ""},
        {"plan " UNET ":mode=train,update=adam --loss 39:square --trainable '*.weight' -o "
         "@/square.json",
         "verified"},
        {"verify " UNET ":mode=train,update=adam @/square.json", "verified"},
        {"plan " UNET ":mode=train --recompute sqrt --order least_peak", "verified"},
        {"run " UNET ":mode=train --repeat 1", "equal"},
        {"least " UNET ":mode=train --budget 1000", "order"},
        {"explain " UNET ":mode=train --time-limit 0.5", "arena"},
        {"export " UNET ":mode=train -f csv", "LeakyRelu_output_0.grad"},
        {"check " UNET ":mode=train --planner exact", "ok"},
        {"show " UNET ":mode=train", "conv_grad"},
        {"bench @/one.suite --repeat 1 -o @/rows.jsonl", "39:square"},
    };
    static char text[200000];

    assert_int_equal(folder_make("training"), 0);
    folder_put_text("one.suite",
                    "--backends cpu\n--planners greedy_size\n" UNET ":mode=train\n" UNET
                    ":mode=train,update=sgd --loss 39:square --trainable a.*,b.*\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char arguments[600] = "";

        for (const char *at = rows[i].arguments; *at != '\0'; at++)
            snprintf(arguments + strlen(arguments), sizeof arguments - strlen(arguments),
                     *at == '@' ? "%s" : "%.1s", *at == '@' ? folder : at);
        if (run(arguments, text, sizeof text) != 0)
            fail_msg("%s: %s", arguments, text);
        if (strncmp(arguments, "bench", 5) == 0)
            folder_read("rows.jsonl", text, sizeof text);
        if (strstr(text, rows[i].says) == NULL)
            fail_msg("%s does not say '%s': %s", arguments, rows[i].says, text);
    }
    assert_int_equal(folder_remove(), 0);
}

/* Two pictures of 2 x 2; then truncated ones, and ones of another format. */
TEST(mnist_files_are_read)
{
    static const uint8_t images[] = {0, 0, 8, 3, 0, 0,   0,  2, 0, 0, 0, 2,
                                     0, 0, 0, 2, 0, 255, 51, 0, 1, 2, 3, 4};
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};
    mpl_digits d = {0};

    assert_int_equal(folder_make("digits"), 0);
    assert_status(ctx, mpl_digits_read(ctx, folder, &d), MPL_EINPUT);
    folder_put("train-images-idx3-ubyte", images, sizeof images);
    folder_put("train-labels-idx1-ubyte", labels, sizeof labels);
    assert_ok(ctx, mpl_digits_read(ctx, folder, &d));
    assert_int_equal(d.n, 2);
    assert_int_equal(d.side, 2);
    assert_true(d.pixel[1] == 1 && d.pixel[2] == 51.0f / 255 && d.pixel[7] == 4.0f / 255);
    assert_true(d.label[0] == 7 && d.label[1] == 9);
    mpl_digits_fini(ctx, &d);
    folder_put("train-images-idx3-ubyte", images, sizeof images - 1);
    assert_status(ctx, mpl_digits_read(ctx, folder, &d), MPL_EINPUT);
    folder_put("train-images-idx3-ubyte", labels, sizeof labels);
    assert_status(ctx, mpl_digits_read(ctx, folder, &d), MPL_EINPUT);
    assert_int_equal(ctx->n_live, 0);
    assert_int_equal(folder_remove(), 0);
}

TESTS(every_planner_trains_alike, loss_falls, drawn_digits_are_said_to_be_drawn,
      other_graphs_are_refused, loss_of_files_falls, commands_take_trained_files,
      mnist_files_are_read)
