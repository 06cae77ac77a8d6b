/* Forms of one network that compute the same: a decoder of text at once or beside a cache, a scan
 * as a loop or written out; wrong requests. Fault: a mask that is one token off, a cache joined the
 * wrong way round, positions that begin anew. */
#include "tests/support/interpret.h"

#include "graphs/ops/ops_priv.h"
#include "graphs/passes/passes.h"

#include <math.h>

/* Numbers that depend on the name and the place alone. */
static void fill(interpreter *it, mpl_value v)
{
    const mpl_graph *g = it->g;
    const char *name = g->value_name[v];
    uint64_t seed = mpl_hash(MPL_HASH_SEED, name, strlen(name)), n = 0;

    mpl_shape_count(&g->value_shape[v], &n);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t x = mpl_hash(seed, &i, sizeof i);

        if (g->value_type[v] == MPL_TYPE_i64)
            ((int64_t *)it->data[v])[i] = (int64_t)(x % 11);
        else
            ((float *)it->data[v])[i] = (float)(x % 2001) / 1000.0f - 1.0f;
    }
}

static interpreter filled(mpl_ctx *ctx, const mpl_graph *g)
{
    interpreter it = interpret_begin(ctx, g);

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] == MPL_NONE && g->value_role[v] != MPL_PARAMETER &&
            g->value_data[v] == NULL)
            fill(&it, v);
    return it;
}

static void assert_near(const char *what, const float *got, const float *want, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-4f * (1 + fabsf(want[i]))))
            fail_msg("%s: element %" PRIu64 " is %g; %g is expected", what, i, (double)got[i],
                     (double)want[i]);
}

enum { HEADS = 3, WIDTH = 2, ALL = 6, VOCAB = 11 };

/* Copies `tokens` tokens of each head from [HEADS, ALL, WIDTH] to [HEADS, room, WIDTH]. */
static void copy_past(float *to, const float *from, uint32_t tokens, uint32_t room)
{
    for (uint32_t h = 0; h < HEADS; h++)
        memcpy(to + h * room * WIDTH, from + h * ALL * WIDTH, tokens * WIDTH * sizeof *to);
}

/* The last tokens of a text, given the cache of the first ones, have the logits and leave the cache
 * that the whole text has. */
TEST(a_cache_continues_a_text)
{
#define SIZES "layers=2,hidden=6,heads=3,vocab=11,context=9"
    static const char *const caches[] = {"concat", "in_place"};

    for (uint32_t past = 1; past < ALL; past++)
        for (int c = 0; c < 2; c++) {
            owned_graph *whole = zoo_graph(ctx, "gpt:seq=6," SIZES), *rest;
            interpreter a = filled(ctx, whole), b;
            uint32_t seq = ALL - past, room = c == 1 ? ALL : past;
            char spec[120];

            snprintf(spec, sizeof spec, "gpt:seq=%u,past=%u,cache=%s," SIZES, seq, past, caches[c]);
            rest = zoo_graph(ctx, spec);
            b = filled(ctx, rest);
            assert_ok(ctx, interpret(&a));
            memcpy(b.data[rest->input[0]], (int64_t *)a.data[whole->input[0]] + past,
                   seq * sizeof(int64_t));
            assert_int_equal(rest->n_inputs, 1 + 4);
            for (uint32_t i = 1; i < rest->n_inputs; i++)
                copy_past(b.data[rest->input[i]], a.data[whole->output[i]], past, room);
            assert_ok(ctx, interpret(&b));
            assert_near(spec, b.data[rest->output[0]],
                        (float *)a.data[whole->output[0]] + past * VOCAB, seq * VOCAB);
            for (uint32_t i = 1; i < rest->n_outputs; i++)
                assert_near(spec, b.data[rest->output[i]], a.data[whole->output[i]],
                            HEADS * ALL * WIDTH);
            interpret_end(&a);
            interpret_end(&b);
        }
#undef SIZES
}

/* Requests with the same output, from the same inputs and weights. */
TEST(forms_compute_the_same)
{
    static const char *const same[][2] =
        ROW({"mamba:layers=2,hidden=4,state=3,vocab=11,seq=5,batch=2",
             "mamba:layers=2,hidden=4,state=3,vocab=11,seq=5,batch=2,form=unroll"},
            {"gpt:layers=1,hidden=4,heads=2,vocab=11,seq=4,batch=2",
             "gpt:layers=1,hidden=4,heads=2,vocab=11,seq=4,batch=2,cache=none"},
            /* places for all tokens: more of them change nothing */
            {"moe:layers=2,hidden=4,heads=2,vocab=11,seq=4,answer=3,experts=3,topk=2,capacity=150",
             "moe:layers=2,hidden=4,heads=2,vocab=11,seq=4,answer=3,experts=3,topk=2,"
             "capacity=900"});

    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        owned_graph *one = zoo_graph(ctx, same[i][0]), *other = zoo_graph(ctx, same[i][1]);
        interpreter a = filled(ctx, one), b = filled(ctx, other);

        assert_ok(ctx, interpret(&a));
        assert_ok(ctx, interpret(&b));
        assert_int_equal(one->value_bytes[one->output[0]], other->value_bytes[other->output[0]]);
        assert_near(same[i][1], b.data[other->output[0]], a.data[one->output[0]],
                    one->value_bytes[one->output[0]] / sizeof(float));
        interpret_end(&a);
        interpret_end(&b);
    }
}

TEST(wrong_sizes_are_refused)
{
    static const char *const wrong[][2] =
        ROW({"bert:hidden=10,heads=3", "bert: hidden=10 is no multiple of heads=3"},
            {"vit:image=100", "vit: image=100 is no multiple of patch=16"},
            {"swin:image=100", "swin: image=100 is no multiple of 32"},
            {"unet:image=12", "unet: image=12 is no multiple of 8"},
            {"unet:channels=40", "unet: channels=40 is no multiple of 32"},
            {"moe:topk=3,experts=2", "moe: topk=3 of experts=2"},
            {"gpt:seq=1000,past=100", "gpt: past and seq are 1100 tokens; context=1024"},
            {"gpt:past=1,cache=none", "gpt: past=1 needs cache=concat or cache=in_place"},
            {"gpt:past=1,mode=train", "gpt: past=1 is for inference; mode=train needs past=0"},
            {"mamba:form=unroll,seq=5000", "mamba: form=unroll takes seq up to 4096, not 5000"},
            {"mobilenet_v2:width=0.355", "mobilenet_v2: width=0.355 is no number from 0.05 to 4"},
            {"mobilenet_v2:width=.5", "mobilenet_v2: width=.5 is no number from 0.05 to 4"},
            {"mobilenet_v2:width=0.-5", "mobilenet_v2: width=0.-5 is no number from 0.05 to 4"},
            {"mobilenet_v2:width=1.", "mobilenet_v2: width=1. is no number from 0.05 to 4"});
    mpl_graph *g = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(ctx, mpl_zoo_build(ctx, wrong[i][0], &g), MPL_EINPUT);
        assert_string_equal(ctx->message, wrong[i][1]);
    }
}

/* Widths in requests and names; channels at them. */
TEST(widths_scale_channels)
{
    static const struct {
        const char *spec, *name, *value;
        int64_t channels;
    } rows[] =
        ROW({"mobilenet_v2:width=1.0", "mobilenet_v2", "stem.conv", 32},
            {"mobilenet_v2:width=0.5", "mobilenet_v2:width=0.50", "stem.conv", 16},
            {"mobilenet_v2:width=0.35", "mobilenet_v2:width=0.35", "stem.conv", 16},
            {"mobilenet_v2:width=0.35", "mobilenet_v2:width=0.35", "last.conv", 1280},
            {"mobilenet_v2:width=0.75", "mobilenet_v2:width=0.75", "block2_0.project.conv", 24},
            {"mobilenet_v2:width=0.35,round=floor", "mobilenet_v2:width=0.35,round=floor",
             "stem.conv", 11},
            {"mobilenet_v2:width=0.35,round=floor", "mobilenet_v2:width=0.35,round=floor",
             "block2_0.depth.conv", 30},
            {"mobilenet_v2:width=2,residuals=off", "mobilenet_v2:width=2,residuals=off",
             "last.conv", 2560});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = zoo_graph(ctx, rows[i].spec);
        mpl_value v = mpl_graph_find(g, rows[i].value);

        assert_string_equal(g->name, rows[i].name);
        assert_int_equal(g->value_shape[v].dim[1], rows[i].channels);
        for (mpl_op op = 0; op < g->n_ops && strstr(rows[i].spec, "residuals=off") != NULL; op++)
            assert_true(g->op_kind[op] != MPL_OP_add);
    }
}

/* Every network has each type, or says in one line which operation does not; no f32 is left. */
TEST(types_reach_every_value)
{
    static const char *const types[] = {"f16", "bf16"};
    uint32_t refused = 0;

    for (const mpl_zoo_entry *const *z = mpl_zoo; *z != NULL; z++)
        for (int t = 0; t < 2; t++) {
            char small[200], spec[260];
            owned_graph *plain = zoo_graph(ctx, small_network(*z, small)), *g = NULL;
            mpl_type type = t == 0 ? MPL_TYPE_f16 : MPL_TYPE_bf16;

            snprintf(spec, sizeof spec, "%s%cdtype=%s", small, strchr(small, ':') ? ',' : ':',
                     types[t]);
            if (mpl_zoo_build(ctx, spec, &g) != MPL_OK) {
                fprintf(stderr, "%s\n", ctx->message);
                refused++;
                continue;
            }
            assert_int_equal(g->n_values, plain->n_values);
            for (mpl_value v = 0; v < g->n_values; v++) {
                bool was = plain->value_type[v] == MPL_TYPE_f32;

                assert_int_equal(g->value_type[v], was ? type : (mpl_type)plain->value_type[v]);
                assert_true(g->value_bytes[v] == plain->value_bytes[v] / (was ? 2 : 1));
                if (was && plain->value_data[v] != NULL && plain->value_bytes[v] > 0) {
                    double want = (double)*(float *)plain->value_data[v];
                    double got = mpl_get(type, g->value_data[v], 0);

                    if (!(fabs(got - want) <= 0.005 * fabs(want) + 1e-6))
                        fail_msg("%s: %s is %g, not %g", spec, g->value_name[v], got, want);
                }
            }
        }
    assert_int_equal(refused, 0);
}

/* What each operator becomes: one scale for what moves, a scale for weights and numbers. */
TEST(int8_forms)
{
    static const char text[] =
        "graph q\ninput x f32 [1,2,4,4]\nweight w f32 [3,2,1,1]\nweight s f32 [3]\n"
        "weight b f32 [3]\nweight m f32 [3]\nweight v f32 [3]\nweight z f32 [] = data 0\n"
        "weight six f32 [] = data 6\nweight half f32 [] = data 0.5\nweight d f32 [5,48]\n"
        "weight e f32 [5]\nc = conv(x, w)\nn = batch_norm(c, s, b, m, v)\nk = clip(n, z, six)\n"
        "f = reshape(k) shape=[1,48]\ng = gemm(f, d, e) trans_b=1\nh = mul(g, half)\n"
        "i = softmax(h)\nj = add(i, h)\noutput j\n";
    static const char want[] =
        "graph q\n"
        "weight int8.scale f32 [] = data 0.0625\n"
        "input x i8 [1,2,4,4]\n"
        "weight c.w.scale f32 [] = data 0.01369863\n"
        "weight w i8 [3,2,1,1]\n"
        "weight b i32 [3]\n"
        "k = qconv(x, w, int8.scale, _, c.w.scale, _, int8.scale, _, b) low=0 high=96 : i8 "
        "[1,3,4,4] @c\n"
        "f = reshape(k) shape=[1,48] : i8 [1,48]\n"
        "weight g.w.scale f32 [] = data 0.002796221\n"
        "weight d i8 [5,48]\n"
        "weight e i32 [5]\n"
        "g = qmatmul(f, d, int8.scale, _, g.w.scale, _, int8.scale, _, e) trans_b=1 : i8 [1,5]\n"
        "weight h.z i8 [] = data 64\n"
        "weight h.z.scale f32 [] = data 0.0078125\n"
        "h = qelementwise(g, int8.scale, int8.scale, _, _, h.z, h.z.scale, _) of=mul : i8 [1,5]\n"
        "i.wide0 = dequantize(h, int8.scale) : f32 [1,5]\n"
        "i.wide = softmax(i.wide0) : f32 [1,5] @i\n"
        "i = quantize(i.wide, int8.scale) to=i8 : i8 [1,5]\n"
        "j = qelementwise(i, int8.scale, int8.scale, _, _, h, int8.scale, _) of=add : i8 [1,5]\n"
        "output j\n";
    owned_graph *g = NULL, *q = NULL;
    owned_memory char *got = NULL;
    size_t size;

    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
    assert_ok(ctx, mpl_graph_int8(ctx, g, "q", &q));
    assert_ok(ctx, mpl_text_write_memory(ctx, q, &got, &size));
    assert_string_equal(got, want);
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_graph *again = NULL;

        st = mpl_graph_int8(ctx, g, "q", &again);
        mpl_graph_free(ctx, again);
    }
}

/* A file's types are its own. */
TEST(dtype_is_for_the_zoo)
{
    mpl_file_spec spec;

    assert_status(ctx, mpl_file_params(ctx, "m.onnx", ":dtype=f16", &spec), MPL_EINPUT);
    assert_string_equal(ctx->message, "m.onnx: parameter 'dtype' is for networks of the zoo");
}

TESTS(int8_forms, types_reach_every_value, dtype_is_for_the_zoo, a_cache_continues_a_text,
      forms_compute_the_same, wrong_sizes_are_refused, widths_scale_channels)
