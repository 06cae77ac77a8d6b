/* What a user may name as GRAPH: files by their content, networks by their name, and one line for anything
 * else. */
#include "tests/test.h"

#include "graphs/source.h"

static const mpl_read_options options = {0};

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static const struct {
    const char *text;
    const char *graph; /* its name, or NULL: a list */
    uint32_t n_buffers;
} good[] = {
    {"graph tiny\ninput x f32 [1]\noutput x\n", "tiny", 0},
    {"\n  # from somewhere, by hand\n\n\tgraph\t\"g,h\"\ninput x f32 [1]\noutput x", "g,h", 0},
    {"id,lower,upper,size\na,0,2,8\nb,1,3,8\n", NULL, 2},
};

static void test_by_content(void **state)
{
    char path[] = "/tmp/memplan_source_XXXXXX";
    mpl_source source;
    mpl_ctx ctx;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    mpl_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_file(path, good[i].text, strlen(good[i].text));
        assert_ok(&ctx, mpl_source_open(&ctx, path, &options, &source));
        assert_int_equal(source.graph != NULL, good[i].graph != NULL);
        assert_int_equal(source.problem != NULL, good[i].graph == NULL);
        if (source.graph != NULL)
            assert_string_equal(source.graph->name, good[i].graph);
        else
            assert_int_equal(source.problem->n, good[i].n_buffers);
        mpl_source_fini(&ctx, &source);
        assert_int_equal(ctx.n_live, 0);
    }
    unlink(path);
}

static void test_by_name(void **state)
{
    mpl_source source;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    assert_ok(&ctx, mpl_source_open(&ctx, "mlp:layers=1", &options, &source));
    assert_string_equal(source.graph->name, "mlp:layers=1");
    mpl_source_fini(&ctx, &source);
    skip_without(MPL_SHARED "/onnx-light");
    assert_ok(&ctx, mpl_source_open(&ctx, MPL_SHARED "/onnx-light/light_resnet50.onnx", &options, &source));
    assert_int_equal(source.graph->n_ops, 176);
    mpl_source_fini(&ctx, &source);
    assert_int_equal(ctx.n_live, 0);
}

/* text NULL: the name is opened as it is; else a file of these bytes. */
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
    {"/tmp", NULL, 0, "/tmp: is a folder"},
    {NULL, "", 0, "the file is empty"},
    {NULL, "hello\n", 6, ":1: neither ONNX, nor .graph text"},
    {NULL, "# only a comment", 16, ":1: neither ONNX, nor .graph text"},
    {NULL, "graphs g\n", 9, ":1: neither ONNX, nor .graph text"},
    {NULL, "graph g\nx\n", 10, ":2: "},
    {NULL, "a,b\n1,2\n", 8, ":1: "},
    {NULL, "\x08\x03\x01", 3, ": "},
};

static void test_wrong(void **state)
{
    char path[] = "/tmp/memplan_source_XXXXXX";
    mpl_source source;
    mpl_ctx ctx;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    mpl_ctx_init(&ctx);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *name = wrong[i].name != NULL ? wrong[i].name : path;

        if (wrong[i].text != NULL)
            write_file(path, wrong[i].text, wrong[i].n);
        assert_status(&ctx, mpl_source_open(&ctx, name, &options, &source), MPL_EINPUT);
        if (strstr(ctx.message, wrong[i].says) == NULL || strchr(ctx.message, '\n') != NULL)
            fail_msg("'%s': \"%s\" does not say \"%s\"", name, ctx.message, wrong[i].says);
        if (wrong[i].text != NULL)
            assert_non_null(strstr(ctx.message, path));
        assert_null(source.graph);
        assert_null(source.problem);
        assert_int_equal(ctx.n_live, 0);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_content),
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
