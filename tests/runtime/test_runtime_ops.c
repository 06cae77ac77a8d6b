/* test_runtime_ops.c -- conformance: every operator on every backend that opens, against `ref`,
 * within |a - b| <= 1e-6 m + 1e-4 |b|, where m is 1 for element-wise operators (over a wide range
 * of arguments), and max(1, largest |b|) for those that sum many numbers; and that oneDNN really
 * computes what it can. Our own device kernels run thread by thread on a fake device (cuda_fake.h),
 * and on a real one if there is one; and once more with the code for cuDNN and cuBLAS, against
 * calls that act as documented (cudnn_host.h).
 *
 * Fault: a wrong layout, axis, pad, group or scale in a backend; too coarse an approximation; a
 * silent fallback to loops. */
#include "graphs/ir/counts.h"
#include "tests/runtime/bound_graph.h"

#include "graphs/core/file.h"
#include "harness/job/measure.h"
#include "tests/device/cuda_fake.h"
#include "tests/device/cudnn_host.h"

#include <math.h>

/* A line of tests/data/ops/backends.txt. */
typedef struct row {
    const char *op, *in, *attrs;
    uint32_t n_out;
    const char *how;
} row;

#define LOOPS   MPL_HOW_LOOPS
#define LIBRARY "!" LOOPS
#ifdef __x86_64__
#define IS_X64 1 /* oneDNN uses other implementation names elsewhere */
#else
#define IS_X64 0
#endif

/* What a column says about the cpu backend. */
static const char *how_of(const char *text)
{
    return strcmp(text, "LOOPS") == 0    ? LOOPS
           : strcmp(text, "!LOOPS") == 0 ? LIBRARY
           : strcmp(text, "COPY") == 0   ? MPL_HOW_COPY
           : *text == '\0'               ? NULL
                                         : text;
}

static row rows[500];
static size_t n_rows;
static char *rows_text;

static int read_rows(void)
{
    mpl_ctx ctx = mpl_ctx_default();
    char *rest;
    size_t size;

    assert_ok(&ctx, mpl_file_read(&ctx, "tests/data/ops/backends.txt", &rows_text, &size));
    rest = rows_text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *column[5];

        if (*line == '\0' || *line == '#')
            continue;
        assert_true(n_rows < sizeof rows / sizeof *rows);
        for (int i = 0; i < 5; i++) {
            size_t n;

            column[i] = strsep(&line, "|");
            assert_non_null(column[i]);
            column[i] += strspn(column[i], " ");
            for (n = strlen(column[i]); n > 0 && column[i][n - 1] == ' '; n--)
                ;
            column[i][n] = '\0';
        }
        rows[n_rows++] =
            (row){column[0], column[1], column[2], (uint32_t)atoi(column[3]), how_of(column[4])};
    }
    return n_rows < 320;
}

static int free_rows(void)
{
    mpl_ctx ctx = mpl_ctx_default();

    mpl_free(&ctx, rows_text);
    return 0;
}

/* ---- building a row's graph ---- */

enum { MOST_OPERANDS = 24 };

typedef struct operand {
    float scale;
    bool absolute;
} operand;

static mpl_shape parse_dims(const char *text)
{
    mpl_shape s = {0};
    char *end = (char *)text;

    while (*text >= '0' && *text <= '9') {
        s.dim[s.rank++] = strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return s;
}

static mpl_value add_operand(mpl_ctx *ctx, mpl_graph *g, uint32_t i, const char *word, operand *how)
{
    mpl_type type = MPL_TYPE_f32;
    const char *colon = strchr(word, ':'), *star = strchr(word, '*'),
               *dims = word + (word[0] == '=');
    char name[16];
    mpl_value v;

    snprintf(name, sizeof name, "in%u", i);
    if (colon != NULL) {
        char type_name[16] = "";

        memcpy(type_name, dims, (size_t)(colon - dims));
        assert_true(mpl_type_find(type_name, &type));
        dims = colon + 1;
    }
    if (word[0] == '=') {
        float x = strtof(dims, NULL);
        int32_t n = (int32_t)x;

        assert_ok(ctx, mpl_graph_add_const(ctx, g, name, type, &(mpl_shape){0},
                                           type == MPL_TYPE_f32 ? (void *)&x : &n, false, &v));
        return v;
    }
    how->scale = star != NULL ? strtof(star + 1, NULL) : 1;
    how->absolute = word[strlen(word) - 1] == '+';
    mpl_shape shape = parse_dims(dims);
    assert_ok(ctx, mpl_graph_add_value(ctx, g, name, MPL_INPUT, type, &shape, &v));
    return v;
}

/* Attributes of one row; the storage lives as long as the row is built. */
typedef struct attrs {
    uint32_t n;
    mpl_attr attr[8];
    int64_t ints[8][8];
    double floats[8][8];
    char text[256];
} attrs;

static void parse_attrs(const char *text, attrs *out)
{
    char *save = NULL;

    memset(out, 0, sizeof *out);
    snprintf(out->text, sizeof out->text, "%s", text);
    for (char *word = strtok_r(out->text, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        mpl_attr *a = &out->attr[out->n];
        char *value = strchr(word, '=');

        *value++ = '\0';
        assert_true(mpl_attr_find(word, &a->key));
        a->ints = out->ints[out->n];
        a->floats = out->floats[out->n];
        a->text = value;
        mpl_attr_kind kind = mpl_attr_kind_of(a->key);
        if (kind == MPL_ATTR_TEXT) {
            a->n = (uint32_t)strlen(value);
        } else {
            for (char *at = value; *at != '\0'; at += *at == ',') {
                out->floats[out->n][a->n] = strtod(at, NULL);
                out->ints[out->n][a->n++] = (int64_t)strtod(at, &at);
            }
        }
        out->n++;
    }
}

/* A graph with the row's operation and other operands; its outputs are out[5]. */
static mpl_status add_row(mpl_ctx *ctx, mpl_graph *g, const row *r, const char *operands,
                          operand *how, mpl_value *out)
{
    static const char *const names[] = {"out0", "out1", "out2", "out3", "out4"};
    mpl_op_kind kind;
    mpl_value in[MOST_OPERANDS];
    char words[160], *save = NULL;
    uint32_t n_in = 0;
    attrs a;

    assert_true(mpl_op_find(r->op, &kind));
    snprintf(words, sizeof words, "%s", operands);
    for (char *word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save), n_in++)
        in[n_in] =
            strcmp(word, "-") == 0 ? MPL_NONE : add_operand(ctx, g, n_in, word, &how[g->n_inputs]);
    parse_attrs(r->attrs, &a);
    return mpl_graph_add_op(ctx, g, kind, r->op, n_in, in, a.n, a.attr, r->n_out, names, out);
}

static mpl_graph *build(mpl_ctx *ctx, const row *r, operand *how)
{
    mpl_graph *g;
    mpl_value out[5];

    assert_ok(ctx, mpl_graph_new(ctx, r->op, &g));
    assert_ok(ctx, add_row(ctx, g, r, r->in, how, out));
    for (uint32_t i = 0; i < r->n_out; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, out[i]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* ---- wrong types ---- */

/* Operators whose rows cannot run alone: they update weights. */
static const row updates[] = {
    {"batch_norm_train", "2,3,5,5 3 3 3 3", "", 5, NULL},
    {"sgd_update", "3 3", "", 1, NULL},
    {"momentum_update", "3 3 3", "", 2, NULL},
    {"adagrad_update", "3 3 3", "", 2, NULL},
    {"adam_update", "3 i64: 3 3 3", "", 3, NULL},
    {"step_update", "i64:", "", 1, NULL},
    {"set_update", "3 3", "", 1, NULL},
};

/* Operands that are only moved may have any type. */
static bool takes_any(const row *r, uint32_t input)
{
    static const char *const mover[] = {"gather", "gather_elements", "gather_nd",
                                        "reverse_sequence"};
    bool any = input == 0 && strchr(r->in, ' ') == NULL;

    for (size_t i = 0; i < sizeof mover / sizeof *mover; i++)
        any = any || (input == 0 && strcmp(r->op, mover[i]) == 0);
    return any || (input == 1 && strcmp(r->op, "one_hot") == 0);
}

/* The row's operands with input `wrong` of another type; false if there is no such input, or it has
 * that type. */
static bool retype(const char *operands, uint32_t wrong, mpl_type type, char *out, size_t size)
{
    char words[128], *save = NULL;
    uint32_t i = 0;
    bool changed = false;

    out[0] = '\0';
    snprintf(words, sizeof words, "%s", operands);
    for (char *word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save), i++) {
        char *colon = strchr(word, ':'), *dims = colon != NULL ? colon + 1 : word, other[64];

        snprintf(other, sizeof other, "%s:%s", mpl_type_name(type), word[0] == '=' ? "" : dims);
        if (i == wrong && strcmp(word, "-") != 0) {
            changed = colon == NULL
                          ? type != MPL_TYPE_f32
                          : strncmp(other, word + (word[0] == '='), (size_t)(colon - word)) != 0;
            word = other;
        }
        snprintf(out + strlen(out), size - strlen(out), "%s%s", i > 0 ? " " : "", word);
    }
    return changed;
}

/* Gives input `wrong` every other type; a refusal must name that input and type. Returns how many
 * did not. */
static int check_wrong_input(const row *r, uint32_t wrong)
{
    unsigned tried = 0, refused = 0;
    int bad = 0;

    for (int type = 0; type < MPL_N_TYPES; type++) {
        mpl_ctx ctx = mpl_ctx_default();
        operand how[MOST_OPERANDS];
        char operands[160], said[64];
        mpl_graph *g;
        mpl_value out[5];
        mpl_status st;

        if (!retype(r->in, wrong, (mpl_type)type, operands, sizeof operands))
            continue;
        tried++;
        assert_ok(&ctx, mpl_graph_new(&ctx, r->op, &g));
        st = add_row(&ctx, g, r, operands, how, out);
        snprintf(said, sizeof said, "input %u has type %s", wrong, mpl_type_name((mpl_type)type));
        if (st != MPL_OK && (st != MPL_EINPUT || strstr(ctx.message, said) == NULL)) {
            print_error("%s %s: '%s' does not say '%s'\n", r->op, operands, ctx.message, said);
            bad++;
        }
        refused += st != MPL_OK;
        mpl_graph_free(&ctx, g);
    }
    if (tried > 0 && refused == 0 && !takes_any(r, wrong)) {
        print_error("%s %s: any type will do as input %u\n", r->op, r->in, wrong);
        bad++;
    }
    return bad;
}

/* Fault: a rule that counts inputs from another's first one. */
TEST(wrong_types_name_their_input)
{
    const size_t n = n_rows, n_updates = sizeof updates / sizeof *updates;

    int bad = 0;

    for (size_t i = 0; i < n + n_updates; i++)
        for (uint32_t k = 0; k < MOST_OPERANDS; k++)
            bad += check_wrong_input(i < n ? &rows[i] : &updates[i - n], k);
    assert_int_equal(bad, 0);
}

/* ---- running it ---- */

/* Value in the middle and at the end of each input, or of the first alone; 0: none. */
static float special;
static bool special_everywhere;

static void set_inputs(mpl_ctx *ctx, mpl_exec *exec, const mpl_graph *g, const operand *how)
{
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        mpl_value v = g->input[i];
        owned_memory float *data = mpl_alloc(ctx, g->value_bytes[v], 1);

        assert_non_null(data);
        assert_ok(ctx, mpl_exec_make_input(ctx, g, i, 7, data));
        for (uint64_t k = 0;
             g->value_type[v] == MPL_TYPE_f32 && k < g->value_bytes[v] / sizeof *data; k++)
            data[k] = (how[i].absolute ? fabsf(data[k]) : data[k]) * how[i].scale;
        if (special != 0 && g->value_type[v] == MPL_TYPE_f32 && g->value_bytes[v] > 0 &&
            (i == 0 || special_everywhere))
            data[g->value_bytes[v] / sizeof *data / 2] =
                data[g->value_bytes[v] / sizeof *data - 1] = special;
        assert_ok(ctx, mpl_exec_set_input(exec, i, data));
    }
}

static unsigned n_refused; /* rows refused for lack of code */
static unsigned n_by_kernels, n_by_library;

/* A kernel or a library that refuses what it supported before falls back to the host. */
enum { LEAST_BY_LIBRARY = 48, LEAST_BY_KERNELS = 235 };

static const char *device_params; /* for every device that is opened; NULL: none */

/* The graph's outputs, concatenated; *how: what computed operation 0. NULL: refused. */
static char *run(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g, const operand *scale,
                 uint64_t *bytes, char how[64])
{
    static const mpl_op order[] = {0};
    mpl_device *dev;
    mpl_exec *exec;
    char *all;

    assert_ok(ctx, backend->open(
                       ctx, &(mpl_device_options){.n_threads = 2, .params = device_params}, &dev));
    mpl_status st = mpl_exec_new(ctx, backend, dev, g, order, NULL, NULL, NULL,
                                 &(mpl_exec_options){.checked = true}, &exec);
    if (st == MPL_EUNAVAIL && backend->computes != NULL) {
        print_message("refused: %s: %s\n", backend->name, ctx->message);
        n_refused += strcmp(backend->name, "cuda") != 0; /* cuda: counted on the fake */
        backend->close(dev);
        return NULL;
    }
    assert_ok(ctx, st);
    set_inputs(ctx, exec, g, scale);
    assert_ok(ctx, mpl_exec_run(exec, NULL));
    snprintf(how, 64, "%s", mpl_exec_how(exec, 0));
    *bytes = output_bytes(g);
    all = outputs_of(ctx, g, exec);
    mpl_exec_free(ctx, exec);
    backend->close(dev);
    return all;
}

/* Outputs follow each other without gaps. */
static float float_at(const char *data, uint64_t i)
{
    float x;

    memcpy(&x, data + i * sizeof x, sizeof x);
    return x;
}

static float largest(const char *data, uint64_t n)
{
    float m = 1;

    for (uint64_t i = 0; i < n; i++)
        m = fmaxf(m, fabsf(float_at(data, i)));
    return m;
}

/* Whether `name` begins with `how`, or does not if `how` begins with '!'; NULL: any. */
static bool is_named(const char *name, const char *how)
{
    if (how == NULL)
        return true;
    return how[0] == '!' ? strncmp(name, how + 1, strlen(how + 1)) != 0
                         : strncmp(name, how, strlen(how)) == 0;
}

/* A real device has its own <math.h> functions, and f32 stands for halves: last bits may differ
 * and so may values rounded from them. */
static bool near_half(const mpl_backend *backend, const char *how, const mpl_graph *g, mpl_value v,
                      const void *got, const void *want)
{
    mpl_type type = (mpl_type)g->value_type[v];
    double allowed = type == MPL_TYPE_f64 ? 1e-12 : type == MPL_TYPE_f16 ? 0x1p-10 : 0x1p-7;

    return (strcmp(backend->name, "cuda") == 0 || is_named(how, "f32 pieces")) &&
           type <= MPL_TYPE_bf16 &&
           mpl_compare(type, g->value_bytes[v] / mpl_type_bytes(type), got, want) <= allowed;
}

static bool agrees(const row *r, const mpl_backend *backend, const char *how, const mpl_graph *g,
                   const char *got, const char *want)
{
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];

        if (g->value_type[v] != MPL_TYPE_f32) {
            if (memcmp(got, want, g->value_bytes[v]) != 0 &&
                !near_half(backend, how, g, v, got, want)) {
                print_error("%s %s (%s) on %s (%s): output %u differs from ref\n", r->op, r->in,
                            r->attrs, backend->name, how, i);
                return false;
            }
        } else {
            uint64_t n = g->value_bytes[v] / sizeof(float);
            bool elementwise = (mpl_op_table[g->op_kind[0]].traits & MPL_ELEMENTWISE) != 0;
            bool device = strcmp(backend->name, "cuda") == 0; /* Winograd, Fourier transforms */
            float near = elementwise ? 1e-6f : (device ? 1e-4f : 1e-6f) * largest(want, n);

            for (uint64_t k = 0; k < n; k++) {
                float x = float_at(got, k), y = float_at(want, k);

                if (!(isfinite(y) && fabsf(x - y) <= near + 1e-4f * fabsf(y)) &&
                    !(isnan(x) && isnan(y)) && x != y) {
                    print_error(
                        "%s %s (%s) on %s (%s): element %" PRIu64 " is %.9g, ref has %.9g\n", r->op,
                        r->in, r->attrs, backend->name, how, k, (double)x, (double)y);
                    return false;
                }
            }
        }
        got += g->value_bytes[v];
        want += g->value_bytes[v];
    }
    return true;
}

/* MEMPLAN_TEST_BACKEND: this one alone, without a fake; MEMPLAN_TEST_PART=I/N: every N-th row. For
 * slow tools. */
static const char *lone_backend(void)
{
    return getenv("MEMPLAN_TEST_BACKEND");
}

static bool in_part(size_t i)
{
    const char *part = getenv("MEMPLAN_TEST_PART");
    unsigned which, n;

    return part == NULL || sscanf(part, "%u/%u", &which, &n) != 2 || n == 0 || i % n + 1 == which;
}

static int check_row(mpl_ctx *ctx, const row *r)
{
    const mpl_backend *backends[8] = {fake_backend(), fake_backend()};
    int bad = 0;
    operand how[MOST_OPERANDS] = {0};
    owned_graph *g = build(ctx, r, how);
    char name[64];
    uint64_t bytes;
    owned_memory char *want = run(ctx, mpl_backend_find("ref"), g, how, &bytes, name);

    if (lone_backend() != NULL)
        backends[0] = mpl_backend_find(lone_backend()), backends[1] = NULL;
    for (uint32_t i = 0, n = 2; lone_backend() == NULL && mpl_backends[i] != NULL; i++)
        if (mpl_backend_absent(mpl_backends[i]) == NULL)
            backends[n++] = mpl_backends[i];
    for (uint32_t i = 0; backends[i] != NULL; i++) {
        owned_memory char *got = NULL;

        fake.cudnn = i == 1;
        got = run(ctx, backends[i], g, how, &bytes, name);
        if (got == NULL)
            continue;
        n_by_library += i == 1 && strncmp(name, "cu", 2) == 0;
        n_by_kernels += i == 0 && strcmp(name, MPL_HOW_LOOPS) != 0;
        bad += !agrees(r, backends[i], name, g, got, want);
        if (getenv("MEMPLAN_SHOW_HOW") != NULL)
            print_message("%-20s %-32s %-40s %s: %s\n", r->op, r->in, r->attrs, backends[i]->name,
                          name);
        if (IS_X64 && strcmp(backends[i]->name, "cpu") == 0 && !is_named(name, r->how)) {
            print_error("%s %s (%s) ran as '%s' on cpu; '%s' was expected\n", r->op, r->in,
                        r->attrs, name, r->how);
            bad++;
        }
    }
    return bad;
}

TEST(every_operator_agrees_with_ref)
{
    bool seen[MPL_N_OPS] = {false};
    int bad = 0;

    fake_reset();
    for (uint32_t i = 0; mpl_backends[i] != NULL; i++)
        if (mpl_backend_absent(mpl_backends[i]) != NULL)
            print_message("skip: %s: %s\n", mpl_backends[i]->name,
                          mpl_backend_absent(mpl_backends[i]));
    for (size_t i = 0; i < n_rows; i++) {
        mpl_op_kind kind;

        bad += in_part(i) ? check_row(ctx, &rows[i]) : 0;
        assert_true(mpl_op_find(rows[i].op, &kind));
        seen[kind] = true;
    }
    for (int i = 0; i < MPL_N_OPS; i++)
        if (!seen[i] && !(mpl_op_table[i].traits & (MPL_CONTROL | MPL_PROGRAM)) &&
            strncmp(mpl_op_table[i].name, "opaque", 6) != 0 && i != MPL_OP_user &&
            mpl_n_updates((mpl_op_kind)i) == 0) /* overwrite weights: test_runtime_training */
            fail_msg("operator '%s' has no row in the table", mpl_op_table[i].name);
    assert_int_equal(bad, 0);
    print_message("the kernels of cuda take %u rows of %zu, the host the others; refused: %u\n",
                  n_by_kernels, n_rows, n_refused);
    print_message("cuDNN and cuBLAS take %u\n", n_by_library);
    if (lone_backend() != NULL || getenv("MEMPLAN_TEST_PART") != NULL)
        return;
    assert_int_equal(n_refused, 0);
    assert_true(n_by_kernels >= LEAST_BY_KERNELS);
    assert_true(!host.built || n_by_library >= LEAST_BY_LIBRARY);
    if (fake.n_races > 0)
        fail_msg("%s", fake.race);
    if (host.n_misused > 0)
        fail_msg("a call that cuDNN or cuBLAS forbids: %s", host.misuse);
    assert_int_equal(fake.n_misused + fake.n_wild, 0);
    assert_int_equal(fake.n_live + host.n_live, 0);
}

/* A NaN or an infinity gives what ref gives, except where a pad meets one of a filter or a
 * gradient: only some backends multiply there.
 *
 * Fault: an activation, a maximum or a softmax that takes a NaN for a number. */
TEST(specials_come_out_as_ref_has_them)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    int bad = 0;

    fake_reset();
    for (size_t i = 0; i < 2 * sizeof specials / sizeof *specials; i++)
        for (size_t k = 0; k < n_rows; k++) {
            special = specials[i / 2];
            special_everywhere = i % 2 == 1;
            if (strstr(rows[k].op, "_grad") == NULL &&
                !(special_everywhere && strncmp(rows[k].op, "conv", 4) == 0) && in_part(k))
                bad += check_row(ctx, &rows[k]);
        }
    special = 0;
    assert_int_equal(bad, 0);
}

/* With any workspace limit cuBLAS never gets less than it asks for, and products stay right. */
TEST(little_workspace)
{
    static const struct {
        const char *params, *how;
    } limits[] = ROW({"workspace=0", "kernel"}, {"workspace=16KiB", "kernel"}, /* and alignment */
                     {"workspace=17KiB", "cublas:gemm in little workspace"},
                     {"workspace=5MiB", "cublas:gemm"});

    fake_reset();
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (size_t k = 0; k < n_rows; k++) {
            operand scale[MOST_OPERANDS] = {0};
            char how[64], *want, *got;
            mpl_graph *g;
            uint64_t bytes;

            if ((strcmp(rows[k].op, "gemm") != 0 && strcmp(rows[k].op, "matmul") != 0) ||
                !host.built)
                continue;
            g = build(ctx, &rows[k], scale);
            fake.cudnn = true;
            want = run(ctx, mpl_backend_find("ref"), g, scale, &bytes, how);
            device_params = limits[i].params;
            got = run(ctx, fake_backend(), g, scale, &bytes, how);
            device_params = NULL;
            assert_true(agrees(&rows[k], fake_backend(), how, g, got, want));
            if (strcmp(how, "kernel") != 0) /* some never use cuBLAS */
                assert_string_equal(how, limits[i].how);
            mpl_free_each(ctx, want, got);
            mpl_graph_free(ctx, g);
        }
    if (host.n_misused > 0)
        fail_msg("a call that cuDNN or cuBLAS forbids: %s", host.misuse);
    assert_int_equal(fake.n_misused + fake.n_wild + fake.n_live + host.n_live, 0);
}

/* Whether the library supports row k. */
static bool is_taken(mpl_ctx *ctx, size_t k)
{
    operand scale[MOST_OPERANDS] = {0};
    owned_graph *g = build(ctx, &rows[k], scale);
    mpl_cuda_choice choice = {.workspace_limit = UINT64_C(1) << 28};
    mpl_cuda_dnn *dnn = NULL;
    uint64_t bytes;
    const char *how;
    bool taken;

    assert_ok(ctx, host_dnn_prepare(ctx, g, 0, &choice, &dnn, &bytes, &how));
    taken = dnn != NULL;
    host_dnn_release(ctx, dnn);
    return taken;
}

/* The real library, if present, accepts every descriptor that its stand-in accepts, and a
 * convolution gives the dims of y. */
TEST(descriptors_are_what_cudnn_takes)
{
    int n = 0;

    if (!host_borrow()) {
        print_message("skip: no cuDNN here (MEMPLAN_CUDNN names its folder)\n");
        skip();
    }
    host_give_back();
    for (size_t k = 0; k < n_rows; k++) {
        bool want = is_taken(ctx, k), got = host_borrow() && is_taken(ctx, k);

        host_give_back();
        n += got;
        if (want != got)
            fail_msg("%s %s (%s) is %s by cuDNN", rows[k].op, rows[k].in, rows[k].attrs,
                     got ? "taken" : "refused");
    }
    if (host.n_misused > 0)
        fail_msg("a call that cuDNN or cuBLAS forbids: %s", host.misuse);
    print_message("cuDNN takes the descriptors of %d rows\n", n);
}

TESTS_WITHIN(read_rows, free_rows, wrong_types_name_their_input, every_operator_agrees_with_ref,
             specials_come_out_as_ref_has_them, little_workspace, descriptors_are_what_cudnn_takes)
