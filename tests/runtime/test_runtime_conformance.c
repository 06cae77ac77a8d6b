/* ONNX's own node tests: each model is read, executed on every backend that opens, and compared
 * with ONNX's expected outputs. Two sets: libonnx-testdata's, and those of ONNX 1.22, the newest
 * release that has them as files, where `make data` unpacked them; MEMPLAN_ONNX_NODE names the
 * folder of another release, as scripts/peers/onnx_node_tests.py writes it. Fault: operators read
 * or computed wrongly; refusals without a reason. */
#include "tests/support/folder.h"

#include "runtime/exec.h"
#include "tests/device/cuda_fake.h"

#include <dirent.h>
#include <math.h>

#define NODE_TESTS        "/usr/share/libonnx-testdata/data/node"
#define MAX_FILES         32
#define MIN_PASSED        879
#define MIN_PASSED_CUDA   586 /* by our own kernels */
#define NEWEST_NODE_TESTS MPL_SHARED "/onnx-node/node"
#define MIN_PASSED_NEWEST 1675 /* of 1765 in ONNX 1.22; 1794 of 1884 in 1.23.2 */

static const char *program;     /* its path: tables lie beside it as files */
static const char *node_folder; /* of the tests that run */

/* ---- operators of a model, found by a walk over the bytes of its message ---- */

typedef struct span {
    const uint8_t *at, *end;
} span;

static uint64_t varint(span *b)
{
    uint64_t x = 0;

    for (unsigned shift = 0; b->at < b->end && shift < 64; shift += 7) {
        x |= (uint64_t)(*b->at & 127) << shift;
        if (*b->at++ < 128)
            break;
    }
    return x;
}

/* The next field; *inside: its contents if it has a length. */
static bool next_field(span *b, uint64_t *number, span *inside)
{
    uint64_t tag, length;

    if (b->at >= b->end)
        return false;
    tag = varint(b);
    *number = tag >> 3;
    *inside = (span){b->at, b->at};
    if ((tag & 7) == 0)
        varint(b);
    else if ((tag & 7) == 2) {
        length = varint(b);
        assert_true(length <= (uint64_t)(b->end - b->at));
        *inside = (span){b->at, b->at + length};
        b->at += length;
    } else
        b->at += (tag & 7) == 1 ? 8 : 4;
    return true;
}

#define MAX_OPERATORS 512
typedef struct tally {
    char name[40];
    unsigned models, passed, refused;
    unsigned last; /* the model counted last, + 1: each counts once */
} tally;
static tally operators[MAX_OPERATORS];
static unsigned n_operators;

static void count_operator(span name, unsigned model, bool passed)
{
    char text[40];
    unsigned i = 0;

    snprintf(text, sizeof text, "%.*s", (int)(name.end - name.at), (const char *)name.at);
    while (i < n_operators && strcmp(operators[i].name, text) != 0)
        i++;
    if (i == n_operators) {
        assert_true(n_operators < MAX_OPERATORS);
        strcpy(operators[n_operators++].name, text);
    }
    if (operators[i].last == model + 1)
        return;
    operators[i].last = model + 1;
    operators[i].models++;
    operators[i].passed += passed;
    operators[i].refused += !passed;
}

/* ModelProto.graph = 7, GraphProto.node = 1, NodeProto.op_type = 4 */
static void count_model(const char *path, unsigned model, bool passed)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    span whole, graph, node, field;
    uint64_t in_model, in_graph, in_node;

    assert_non_null(f);
    whole = (span){data, data + fread(data, 1, sizeof data, f)};
    fclose(f);
    while (next_field(&whole, &in_model, &graph))
        while (in_model == 7 && next_field(&graph, &in_graph, &node))
            while (in_graph == 1 && next_field(&node, &in_node, &field))
                if (in_node == 4)
                    count_operator(field, model, passed);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tally *)a)->name, ((const tally *)b)->name);
}

static void print_operators(const char *file)
{
    const char *slash = strrchr(program, '/');
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%.*s%s", slash != NULL ? (int)(slash + 1 - program) : 0, program,
             file);
    f = fopen(path, "w");
    qsort(operators, n_operators, sizeof *operators, by_name);
    if (f != NULL)
        fprintf(f, "operator\tmodels\tpassed\trefused\n");
    for (unsigned i = 0; i < n_operators; i++) {
        const tally *t = &operators[i];

        print_message("%-28s %4u models %4u passed %4u refused\n", t->name, t->models, t->passed,
                      t->refused);
        if (f != NULL)
            fprintf(f, "%s\t%u\t%u\t%u\n", t->name, t->models, t->passed, t->refused);
    }
    if (f != NULL)
        fclose(f);
}

/* ---- comparison ---- */

static double half(uint16_t bits, int mantissa, int bias)
{
    int exponent = bits >> mantissa & ((1 << (15 - mantissa)) - 1),
        top = (1 << (15 - mantissa)) - 1;
    double fraction = (double)(bits & ((1 << mantissa) - 1)) / (double)(1 << mantissa), x;

    if (exponent == top)
        x = fraction != 0 ? (double)NAN : (double)INFINITY;
    else
        x = exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
    return bits >> 15 ? -x : x;
}

static double element(const mpl_tensor *t, uint64_t i)
{
    switch (t->type) {
    case MPL_TYPE_f64:
        return ((const double *)t->data)[i];
    case MPL_TYPE_f32:
        return (double)((const float *)t->data)[i];
    case MPL_TYPE_f16:
        return half(((const uint16_t *)t->data)[i], 10, 15);
    case MPL_TYPE_bf16:
        return half(((const uint16_t *)t->data)[i], 7, 127);
    case MPL_TYPE_i64:
        return (double)((const int64_t *)t->data)[i];
    case MPL_TYPE_i32:
        return (double)((const int32_t *)t->data)[i];
    case MPL_TYPE_i8:
        return (double)((const int8_t *)t->data)[i];
    case MPL_TYPE_i16:
        return (double)((const int16_t *)t->data)[i];
    case MPL_TYPE_u16:
        return (double)((const uint16_t *)t->data)[i];
    case MPL_TYPE_u32:
        return (double)((const uint32_t *)t->data)[i];
    case MPL_TYPE_u64:
        return (double)((const uint64_t *)t->data)[i];
    default:
        return (double)((const uint8_t *)t->data)[i];
    }
}

/* Integers and bool are equal, floats within `relative` or 1e-5 absolute, f16 within 1e-3; bf16
 * within one unit of its last place, as ONNX's files were made by truncation, and casts round to
 * nearest. */
static bool is_close(const mpl_tensor *got, const mpl_tensor *want, double relative, double coarser,
                     char *why, size_t n_why)
{
    uint64_t count = 0;
    char text[2][200];

    if (got->type != want->type || !mpl_shape_equal(&got->shape, &want->shape)) {
        snprintf(why, n_why, "it is %s %s; %s %s is expected", mpl_type_name(got->type),
                 mpl_shape_text(&got->shape, text[0]), mpl_type_name(want->type),
                 mpl_shape_text(&want->shape, text[1]));
        return false;
    }
    if (got->type == MPL_TYPE_f16 || got->type == MPL_TYPE_bf16)
        relative = coarser * (got->type == MPL_TYPE_f16 ? 1e-3 : 0x1p-7);
    mpl_shape_count(&got->shape, &count);
    if (mpl_type_bits(got->type) < 8) /* packed: whole bytes are compared */
        count = (count * mpl_type_bits(got->type) + 7) / 8;
    for (uint64_t i = 0; i < count; i++) {
        double a = element(got, i), b = element(want, i);
        bool whole = got->type > MPL_TYPE_bf16;

        if (a == b || (isnan(a) && isnan(b)) ||
            (!whole && fabs(a - b) <= 1e-5 + relative * fabs(b)))
            continue;
        snprintf(why, n_why, "element %" PRIu64 " is %.9g; %.9g is expected", i, a, b);
        return false;
    }
    return true;
}

/* ---- one model ---- */

typedef struct files {
    uint32_t n;
    uint32_t index[MAX_FILES];
    mpl_tensor tensor[MAX_FILES];
    double relative; /* tolerance */
    double coarser;  /* times that for 16 bits; 0: 1 */
} files;

/* Reads PREFIX_0.pb, PREFIX_1.pb, ..; skips sequences and types that memplan does not support. */
static void read_files(mpl_ctx *ctx, const char *model_folder, const char *prefix, files *out)
{
    char path[1024];

    *out = (files){.n = 0};
    for (uint32_t i = 0; i < MAX_FILES; i++) {
        mpl_tensor *t = &out->tensor[out->n];

        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%u.pb", model_folder, prefix, i);
        if (access(path, R_OK) != 0)
            break;
        if (mpl_tensor_read(ctx, path, t) != MPL_OK)
            continue;
        /* ONNX's files store a bfloat16 as the uint16 of the same bits. */
        if (strstr(model_folder, "BFLOAT16") != NULL && t->type == MPL_TYPE_u16)
            t->type = MPL_TYPE_bf16;
        out->index[out->n++] = i;
    }
}

static void free_files(mpl_ctx *ctx, files *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        mpl_free(ctx, f->tensor[i].data);
}

/* CastLike's second input only gives its type; its files hold one element in any case. */
static bool is_read(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->op_in_begin[g->n_ops]; i++)
        if (g->op_in[i] == v)
            return true;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

static mpl_status set_inputs(mpl_exec *exec, const mpl_graph *g, const files *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        mpl_value v = mpl_graph_file_input(g, in->index[i]);

        for (uint32_t j = 0; j < g->n_inputs; j++)
            if (g->input[j] == v && is_read(g, v)) {
                mpl_status st = mpl_exec_set_input(exec, j, in->tensor[i].data);

                if (st != MPL_OK)
                    return st;
            }
    }
    return MPL_OK;
}

/* The outputs in the file: behind them are lengths of those whose length depends on data. */
static uint32_t file_outputs(const mpl_graph *g)
{
    uint32_t n = g->n_outputs, lengths = 0, axis;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (mpl_length_of(g, g->output[k], &axis) == g->output[i]) {
                lengths++;
                break;
            }
    return n - lengths;
}

/* Output i, cut to its length. */
static bool get_output(mpl_exec *exec, const mpl_graph *g, uint32_t i, mpl_tensor *got)
{
    mpl_value v = g->output[i];
    uint32_t axis, k = 0;
    mpl_value length = mpl_length_of(g, v, &axis);
    int64_t n;

    *got = (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v],
                        calloc(1, g->value_bytes[v] + 1)};
    if (mpl_exec_output(exec, i, got->data) != MPL_OK)
        return false;
    if (length == MPL_NONE)
        return true;
    while (k < g->n_outputs && g->output[k] != length)
        k++;
    if (k == g->n_outputs || mpl_exec_output(exec, k, &n) != MPL_OK)
        return false;
    mpl_tensor_cut(got, axis, n);
    return true;
}

/* Runs the graph without sharing and compares all outputs; returns false and the reason. */
static bool run(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev, const mpl_graph *g,
                const files *in, const files *want, bool checked, char *why, size_t n_why)
{
    mpl_exec *exec = NULL;
    mpl_exec_options options = {.checked = checked};
    mpl_op *order = calloc(g->n_ops + 1, sizeof *order);
    bool good = want->n == file_outputs(g);

    snprintf(why, n_why, "it has %u outputs; %u are expected", file_outputs(g), want->n);
    count_up(g->n_ops, order);
    if (good &&
        (mpl_exec_new(ctx, backend, dev, g, order, NULL, NULL, NULL, &options, &exec) != MPL_OK ||
         set_inputs(exec, g, in) != MPL_OK || mpl_exec_run(exec, NULL) != MPL_OK)) {
        snprintf(why, n_why, "%s", ctx->message);
        good = false;
    }
    for (uint32_t i = 0; i < want->n && good; i++) {
        mpl_tensor got;

        good = get_output(exec, g, i, &got) &&
               is_close(&got, &want->tensor[i], want->relative, want->coarser, why, n_why);
        free(got.data);
    }
    mpl_exec_free(ctx, exec);
    free(order);
    return good;
}

/* ---- all models ---- */

typedef struct result {
    unsigned passed, wrong, refused, unexplained;
    unsigned lacking; /* the backend reports that it has no code for it */
} result;

static void try_model(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev, const char *name,
                      unsigned model, result *r)
{
    char model_folder[512], path[600], why[600];
    files in, want;
    mpl_read_options options;
    mpl_graph *g = NULL;
    mpl_status st;
    bool good = false;

    snprintf(model_folder, sizeof model_folder, "%s/%s", node_folder, name);
    snprintf(path, sizeof path, "%s/model.onnx", model_folder);
    read_files(ctx, model_folder, "input", &in);
    read_files(ctx, model_folder, "output", &want);
    /* The window functions are written with pi = 3.1415, others with four digits: only ONNX's own
     * tolerance accepts them. */
    want.relative = strstr(name, "window") != NULL || strstr(name, "roialign") != NULL ||
                            strstr(name, "gridsample_bicubic") != NULL
                        ? 1e-3
                        : 1e-4;
    /* Attention is read as primitives, each of which rounds to its 16 bits. */
    want.coarser = strstr(name, "attention") != NULL ? 4 : 1;
    options =
        (mpl_read_options){.n_inputs = in.n, .input_index = in.index, .input_tensor = in.tensor};
    st = mpl_onnx_read(ctx, path, &options, &g);
    if (st == MPL_OK) {
        good = run(ctx, backend, dev, g, &in, &want, g->n_blocks == 1, why, sizeof why);
        bool lacks = !good && backend->computes != NULL && strstr(why, "cannot run on") != NULL;

        r->passed += good;
        r->wrong += !good && !lacks;
        r->lacking += lacks;
        if (!good && !lacks)
            print_message("wrong: %s on %s: %s\n", name, backend->name, why);
    } else {
        /* A reason names node, operator and opset, unless it is the opset itself or an output's
         * type. */
        bool explained =
            st == MPL_EINPUT && strstr(ctx->message, path) == ctx->message &&
            strchr(ctx->message, '\n') == NULL &&
            (strstr(ctx->message, "opset") != NULL || strstr(ctx->message, "has type") != NULL);

        r->refused++;
        r->unexplained += !explained;
        print_message("%s: %s: %s\n", explained ? "refused" : "UNEXPLAINED", name,
                      ctx->message +
                          (strlen(ctx->message) > strlen(path) + 2 ? strlen(path) + 2 : 0));
    }
    if (strcmp(backend->name, "ref") == 0)
        count_model(path, model, good);
    mpl_graph_free(ctx, g);
    free_files(ctx, &in);
    free_files(ctx, &want);
}

static void run_all(const mpl_backend *backend, const char *tests, const char *table,
                    unsigned least)
{
    const char *backend_name = backend->name;
    struct dirent **entry = NULL;
    mpl_device *dev = NULL;
    mpl_ctx ctx;
    result r = {0};
    int n;

    skip_without(tests);
    node_folder = tests;
    n_operators = 0;
    memset(operators, 0, sizeof operators);
    if (mpl_backend_absent(backend) != NULL) {
        print_message("skip: %s: %s\n", backend_name, mpl_backend_absent(backend));
        skip();
    }
    ctx = mpl_ctx_default();
    assert_ok(&ctx, backend->open(&ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    n = scandir(tests, &entry, NULL, alphasort);
    assert_true(n > 2);
    for (int i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.')
            try_model(&ctx, backend, dev, entry[i]->d_name, (unsigned)i, &r);
        free(entry[i]);
    }
    free(entry);
    backend->close(dev);
    print_message(
        "%s: %u passed, %u wrong, %u refused, %u of them without a reason; %u without code here\n",
        backend_name, r.passed, r.wrong, r.refused, r.unexplained, r.lacking);
    if (strcmp(backend_name, "ref") == 0)
        print_operators(table);
    assert_int_equal(r.wrong, 0);
    assert_int_equal(r.unexplained, 0);
    assert_true(r.passed >= least);
    assert_int_equal(ctx.n_live, 0);
}

TEST(onnx_node_tests_on_ref)
{
    run_all(mpl_backend_find("ref"), NODE_TESTS, "conformance.tsv", MIN_PASSED);
}

TEST(onnx_node_tests_on_cpu)
{
    run_all(mpl_backend_find("cpu"), NODE_TESTS, NULL, MIN_PASSED);
}

TEST(onnx_node_tests_on_cuda)
{
    run_all(mpl_backend_find("cuda"), NODE_TESTS, NULL, MIN_PASSED_CUDA);
}

static void run_newest(const char *backend)
{
    const char *other = getenv("MEMPLAN_ONNX_NODE");

    run_all(mpl_backend_find(backend), other != NULL ? other : NEWEST_NODE_TESTS,
            "conformance_newest.tsv", MIN_PASSED_NEWEST);
}

TEST(onnx_newest_node_tests_on_ref)
{
    run_newest("ref");
}

TEST(onnx_newest_node_tests_on_cpu)
{
    run_newest("cpu");
}

/* Our device kernels, thread by thread on the host. */
TEST(onnx_node_tests_on_fake_cuda)
{
    fake_reset();
    run_all(fake_backend(), NODE_TESTS, NULL, MIN_PASSED_CUDA);
    assert_int_equal(fake.n_wild, 0);
    assert_int_equal(fake.n_races, 0);
    assert_int_equal(fake.n_live, 0);
}

/* ---- onnx-light: real networks, input arange(n) / n ---- */

static const char *const light[] = {"bvlc_alexnet", "vgg19", "inception_v1", "resnet50",
                                    "densenet121"};

static void run_light(const char *backend_name)
{
    const mpl_backend *backend = mpl_backend_find(backend_name);
    mpl_device *dev = NULL;
    mpl_ctx ctx = mpl_ctx_default();

    assert_non_null(backend);
    for (size_t i = 0; i < sizeof light / sizeof *light; i++) {
        char path[512], why[600];
        mpl_graph *g = NULL;
        files in = {.n = 1}, want = {.n = 1, .relative = 1e-4};
        int64_t start = mpl_clock_ns();
        bool good;

        if (left_out(i))
            continue;
        snprintf(path, sizeof path, "%s/onnx-light/light_%s.onnx", MPL_SHARED, light[i]);
        skip_without(path);
        if (dev == NULL)
            assert_ok(&ctx, backend->open(&ctx, &(mpl_device_options){.n_threads = 2}, &dev));
        assert_ok(&ctx, mpl_onnx_read(&ctx, path, NULL, &g));
        snprintf(path, sizeof path, "%s/onnx-light/light_%s_output_0.pb", MPL_SHARED, light[i]);
        assert_ok(&ctx, mpl_tensor_read(&ctx, path, &want.tensor[0]));
        assert_int_equal(g->n_inputs, 1);
        in.tensor[0] = (mpl_tensor){MPL_TYPE_f32, g->value_shape[g->input[0]],
                                    mpl_alloc(&ctx, g->value_bytes[g->input[0]], 1)};
        for (uint64_t j = 0, n = g->value_bytes[g->input[0]] / 4; j < n; j++)
            ((float *)in.tensor[0].data)[j] = (float)j / (float)n;
        /* checks take minutes here */
        good = run(&ctx, backend, dev, g, &in, &want, false, why, sizeof why);
        print_message("%s on %s: %.1f s%s%s\n", light[i], backend_name,
                      (double)(mpl_clock_ns() - start) * 1e-9, good ? "" : ": ", good ? "" : why);
        mpl_graph_free(&ctx, g);
        free_files(&ctx, &in);
        free_files(&ctx, &want);
        assert_true(good);
    }
    backend->close(dev);
    assert_int_equal(ctx.n_live, 0);
}

TEST(onnx_light_on_ref)
{
    run_light("ref");
}

TEST(onnx_light_on_cpu)
{
    run_light("cpu");
}

/* RAFT, exported by dynamo: samples images at places that it computes (GridSample); ONNX Runtime's
 * outputs. */
static void run_raft(const char *backend_name)
{
    static const char folder_of[] = MPL_SHARED "/onnx-2026/raft_small__d20";
    const mpl_backend *backend = mpl_backend_find(backend_name);
    mpl_device *dev = NULL;
    mpl_graph *g = NULL;
    files in = {.n = 2, .index = {0, 1}}, want = {.n = 1, .relative = 1e-3};
    mpl_ctx ctx;
    char why[600];

    skip_without(folder_of);
    ctx = mpl_ctx_default();
    assert_ok(&ctx, backend->open(&ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    assert_ok(&ctx,
              mpl_onnx_read(&ctx, MPL_SHARED "/onnx-2026/raft_small__d20/model.onnx", NULL, &g));
    for (uint32_t i = 0; i < 3; i++) {
        char path[512];

        snprintf(path, sizeof path, "%s/%s/%u.npy", folder_of, i < 2 ? "in" : "out", i % 2);
        assert_ok(&ctx, mpl_tensor_read(&ctx, path, i < 2 ? &in.tensor[i] : &want.tensor[0]));
    }
    if (!run(&ctx, backend, dev, g, &in, &want, false, why, sizeof why))
        fail_msg("raft on %s: %s", backend_name, why);
    mpl_graph_free(&ctx, g);
    free_files(&ctx, &in);
    free_files(&ctx, &want);
    backend->close(dev);
    assert_int_equal(ctx.n_live, 0);
}

TEST(raft_on_ref)
{
    run_raft("ref");
}

TEST(raft_on_cpu)
{
    run_raft("cpu");
}

int main(int argc, char **argv)
{
    program = argc > 0 ? argv[0] : "";
    return RUN_TESTS(NULL, NULL, onnx_node_tests_on_ref, onnx_node_tests_on_cpu,
                     onnx_node_tests_on_cuda, onnx_newest_node_tests_on_ref,
                     onnx_newest_node_tests_on_cpu, onnx_node_tests_on_fake_cuda, onnx_light_on_ref,
                     onnx_light_on_cpu, raft_on_ref, raft_on_cpu);
}
