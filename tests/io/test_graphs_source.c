/* What GRAPH may be: files by their content, networks by name, and one error line for anything
 * else. */
#include "graphs/core/gzip.h"
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/folder.h"

static const mpl_read_options options = {0};

static const struct {
    const char *text;
    const char *graph; /* its name, or NULL: a list */
    uint32_t n_buffers;
} good[] = {
    {"graph tiny\ninput x f32 [1]\noutput x\n", "tiny", 0},
    {"\n  # from somewhere, by hand\n\n\tgraph\t\"g,h\"\ninput x f32 [1]\noutput x", "g,h", 0},
    {"id,lower,upper,size\na,0,2,8\nb,1,3,8\n", NULL, 2},
};

TEST(test_by_content)
{
    char path[300];
    mpl_source source;

    temporary_file(path, sizeof path, "source");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_file(path, good[i].text, strlen(good[i].text));
        assert_ok(ctx, mpl_source_open(ctx, path, &options, &source));
        assert_int_equal(source.graph != NULL, good[i].graph != NULL);
        assert_int_equal(source.problem != NULL, good[i].graph == NULL);
        if (source.graph != NULL)
            assert_string_equal(source.graph->name, good[i].graph);
        else
            assert_int_equal(source.problem->n, good[i].n_buffers);
        mpl_source_fini(ctx, &source);
    }
    unlink(path);
    assert_ok(ctx, mpl_source_open(ctx, "tests/data/tight/parallel_1.tensors.csv", NULL, &source));
    assert_non_null(source.problem->before);
    mpl_source_fini(ctx, &source);
}

TEST(test_by_name)
{
    mpl_source source;

    assert_ok(ctx, mpl_source_open(ctx, "mlp:layers=1", &options, &source));
    assert_string_equal(source.graph->name, "mlp:layers=1");
    mpl_source_fini(ctx, &source);
    skip_without(MPL_SHARED "/onnx-light");
    assert_ok(
        ctx, mpl_source_open(ctx, MPL_SHARED "/onnx-light/light_resnet50.onnx", &options, &source));
    assert_int_equal(source.graph->n_ops, 176);
    mpl_source_fini(ctx, &source);
}

static const char *const lists[] = {"tests/data/four.csv", "guillotine:n=60,seed=3",
                                    MPL_SHARED "/minimalloc/A.1048576.csv"};

static void open_twin(mpl_ctx *ctx, const char *list, const char *twin, mpl_source *out)
{
    char text[200];

    snprintf(text, sizeof text, "%s%s", list, twin);
    assert_ok(ctx, mpl_source_open(ctx, text, &options, out));
    assert_string_equal(out->problem->name + strlen(out->problem->name) - strlen(twin), twin);
}

/* Mirroring twice gives the original; once does not, and mirrors each lifetime. */
static void check_reversed(mpl_ctx *ctx, const char *list, const mpl_problem *p)
{
    mpl_source once, twice;

    open_twin(ctx, list, ":twin=reversed", &once);
    open_twin(ctx, list, ":twin=reversed:twin=reversed", &twice);
    assert_int_equal(mpl_problem_hash(twice.problem), mpl_problem_hash(p));
    assert_int_not_equal(mpl_problem_hash(once.problem), mpl_problem_hash(p));
    assert_ok(ctx, mpl_problem_check(ctx, once.problem));
    for (mpl_buffer b = 0; b < p->n; b++) {
        assert_int_equal(once.problem->bytes[b], p->bytes[b]);
        assert_int_equal(once.problem->align[b], p->align[b]);
        assert_int_equal(once.problem->birth[b] + p->death[b], p->n_steps);
        assert_int_equal(once.problem->death[b] + p->birth[b], p->n_steps);
    }
    mpl_source_fini(ctx, &once);
    mpl_source_fini(ctx, &twice);
}

/* Shuffling keeps the rows and changes their order; another seed gives another order. Rows without
 * names are identified by their contents. */
static void check_shuffled(mpl_ctx *ctx, const char *list, const mpl_source *original)
{
    const mpl_problem *p = original->problem;
    mpl_source one, two;
    uint32_t moved = 0;
    owned_memory uint8_t *taken = NULL;

    open_twin(ctx, list, ":twin=shuffled", &one);
    open_twin(ctx, list, ":twin=shuffled,seed=2", &two);
    assert_int_not_equal(mpl_problem_hash(one.problem), mpl_problem_hash(two.problem));
    assert_int_equal(one.problem->n_steps, p->n_steps);
    assert_ok(ctx, mpl_new(ctx, taken, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer a = 0;
        const mpl_problem *q = one.problem;

        while (a < p->n &&
               (taken[a] || p->bytes[a] != q->bytes[b] || p->align[a] != q->align[b] ||
                p->birth[a] != q->birth[b] || p->death[a] != q->death[b] ||
                (original->offset != NULL && original->offset[a] != one.offset[b]) ||
                (p->buffer_name != NULL && strcmp(p->buffer_name[a], q->buffer_name[b]) != 0)))
            a++;
        assert_true(a < p->n);
        taken[a] = 1;
        moved += a != b;
    }
    assert_true(2 * moved >= p->n);
    mpl_source_fini(ctx, &one);
    mpl_source_fini(ctx, &two);
}

TEST(test_twins)
{
    static const char *const twins[] = {":twin=reversed", ":twin=shuffled"};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        mpl_source source, twin;
        uint64_t bound, other;

        if (strncmp(lists[i], MPL_SHARED, strlen(MPL_SHARED)) == 0)
            skip_without(lists[i]);
        assert_ok(ctx, mpl_source_open(ctx, lists[i], &options, &source));
        check_reversed(ctx, lists[i], source.problem);
        check_shuffled(ctx, lists[i], &source);
        assert_ok(ctx, mpl_lower_bound(ctx, source.problem, 0, &bound, NULL));
        for (int k = 0; k < 2; k++) {
            open_twin(ctx, lists[i], twins[k], &twin);
            assert_ok(ctx, mpl_lower_bound(ctx, twin.problem, 0, &other, NULL));
            assert_int_equal(other, bound);
            mpl_source_fini(ctx, &twin);
        }
        mpl_source_fini(ctx, &source);
    }
}

/* Fault: a problem with a direction of time is mirrored. */
TEST(test_directed_have_no_twin)
{
    owned_problem *p = NULL;
    uint32_t step = 1;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 8, 4, 1, &p));
    p->n_in_place = 1;
    p->in_place_step = &step;
    assert_status(ctx, mpl_problem_reverse(ctx, p), MPL_EINPUT);
    assert_status(ctx, mpl_problem_shuffle(ctx, p, 1, NULL), MPL_EINPUT);
    p->n_in_place = 0;
    p->in_place_step = NULL;
}

/* text NULL: open the name as it is; else a file with these bytes. */
static const struct {
    const char *name, *text;
    size_t n;
    const char *says;
} wrong[] = {
    {"no_such_file.onnx", NULL, 0, "no_such_file.onnx: neither a file nor a network"},
    {"resnet5", NULL, 0, "(is 'resnet50' meant?)"},
    {"vgg61:batch=2", NULL, 0, "(is 'vgg16' meant?)"},
    {"a-name-that-is-much-longer-than-any-network-there-could-be", NULL, 0, "neither a file nor"},
    {"", NULL, 0, "neither a file nor"},
    {"resnet50:batch=x", NULL, 0, "batch=x is no number"},
    {"tests", NULL, 0, "tests: is a folder"},
    {"mlp:layers=1:twin=reversed", NULL, 0, "only lists of buffers have twins"},
    {"tests/data/four.csv:twin=turned", NULL, 0, "'turned' is no twin"},
    {"tests/data/four.csv:twin=reversed,seed=1", NULL, 0, "'reversed,seed=1' is no twin"},
    {"tests/data/four.csv:twin=shuffled,seed=", NULL, 0, "'shuffled,seed=' is no twin"},
    {"tests/data/five.csv:twin=shuffled", NULL, 0, "tests/data/five.csv: neither a file nor"},
    {NULL, "", 0, "the file is empty"},
    {NULL, "hello\n", 6, ":1: neither ONNX, nor TensorFlow Lite, nor HLO"},
    {NULL, "# only a comment", 16, ":1: neither ONNX, nor TensorFlow Lite, nor HLO"},
    {NULL, "graphs g\n", 9, ":1: neither ONNX, nor TensorFlow Lite, nor HLO"},
    {NULL, "graph g\nx\n", 10, ":2: "},
    {NULL, "a,b\n1,2\n", 8, ":1: "},
    {NULL, "\x08\x03\x01", 3, ": "},
};

TEST(test_wrong)
{
    char path[300];
    mpl_source source;

    temporary_file(path, sizeof path, "source");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *name = wrong[i].name != NULL ? wrong[i].name : path;

        if (wrong[i].text != NULL)
            write_file(path, wrong[i].text, wrong[i].n);
        assert_status(ctx, mpl_source_open(ctx, name, &options, &source), MPL_EINPUT);
        if (strstr(ctx->message, wrong[i].says) == NULL || strchr(ctx->message, '\n') != NULL)
            fail_msg("'%s': \"%s\" does not say \"%s\"", name, ctx->message, wrong[i].says);
        if (wrong[i].text != NULL)
            assert_non_null(strstr(ctx->message, path));
        assert_null(source.graph);
        assert_null(source.problem);
    }
    unlink(path);
}

/* What gzip packed, in one member or several, is what it was; cut anywhere, or with a byte changed,
 * it is refused, or was no part of the contents. */
TEST(test_packed)
{
    char path[300];
    owned_memory char *data = NULL;
    size_t size;
    mpl_source source = {0};

    assert_ok(ctx, mpl_file_read(ctx, "tests/data/packed.graph.gz", &data, &size));
    assert_ok(ctx, mpl_source_open(ctx, "tests/data/packed.graph.gz", &options, &source));
    assert_string_equal(source.graph->name, "packed");
    assert_int_equal(source.graph->n_ops, 1);
    assert_int_equal(source.file_bytes, size);
    mpl_source_fini(ctx, &source);
    temporary_file(path, sizeof path, "packed");
    for (size_t i = 2; i < size; i++) {
        write_file(path, data, i);
        assert_status(ctx, mpl_source_open(ctx, path, &options, &source), MPL_EINPUT);
        assert_non_null(strstr(ctx->message, path));
        data[i] ^= 1;
        write_file(path, data, size);
        data[i] ^= 1;
        if (mpl_source_open(ctx, path, &options, &source) == MPL_OK)
            assert_int_equal(source.graph->n_ops, 1);
        mpl_source_fini(ctx, &source);
    }
    unlink(path);
}

/* Lists and traces too; a bound on what comes of a file is exact. */
TEST(test_packed_lists)
{
    static const char *const of[] = {"tests/data/four.csv", "tests/data/trace.csv"};
    char path[300], cut[300];

    temporary_file(cut, sizeof cut, "cut");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        owned_memory char *packed = NULL, *text = NULL;
        size_t n_packed, n, n_unpacked;
        mpl_source plain, source;

        snprintf(path, sizeof path, "%s.gz", of[i]);
        assert_ok(ctx, mpl_source_open(ctx, of[i], &options, &plain));
        assert_ok(ctx, mpl_source_open(ctx, path, &options, &source));
        assert_int_equal(mpl_problem_hash(source.problem), mpl_problem_hash(plain.problem));
        assert_string_equal(source.problem->buffer_name[1], plain.problem->buffer_name[1]);
        assert_int_equal(source.offset == NULL, plain.offset == NULL);
        if (plain.offset != NULL)
            assert_memory_equal(source.offset, plain.offset, plain.problem->n * 8);
        n = plain.file_bytes;
        mpl_source_fini(ctx, &source);
        mpl_source_fini(ctx, &plain);
        assert_ok(ctx, mpl_file_read(ctx, path, &packed, &n_packed));
        for (size_t k = 2; k < n_packed; k++) {
            write_file(cut, packed, k);
            assert_status(ctx, mpl_source_open(ctx, cut, &options, &source), MPL_EINPUT);
            assert_non_null(strstr(ctx->message, "cut off"));
            assert_null(strchr(ctx->message, '\n'));
        }
        assert_status(ctx, mpl_gunzip(ctx, path, packed, n_packed, n - 1, &text, &n_unpacked),
                      MPL_EINPUT);
        assert_ok(ctx, mpl_gunzip(ctx, path, packed, n_packed, n, &text, &n_unpacked));
        assert_int_equal(n_unpacked, n);
    }
    unlink(cut);
}

TESTS(test_by_content, test_packed, test_packed_lists, test_by_name, test_wrong, test_twins,
      test_directed_have_no_twin)
