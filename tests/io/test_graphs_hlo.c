/* HLO text. Faults: bytes of a shape, a pair that XLA's rules do not give or lack, a value that a
 * tuple, call, loop or branch loses or keeps, an output that is not where it was donated, a bad
 * file that is taken or crashes.
 *
 * Oracle: comments in tests/data/hlo/, written by hand. Modules of XLA: test_graphs_hlo_modules.c.
 */
#include <dirent.h>

#include "graphs/core/file.h"
#include "tests/io/hlo_case.h"

/* ---- modules with their buffers written by hand ---- */

static mpl_value named(const mpl_graph *g, const char *file, const char *name)
{
    mpl_value v = mpl_graph_find(g, name);

    if (v == MPL_NONE)
        fail_msg("%s: there is no value '%s'", file, name);
    return v;
}

static mpl_buffer buffer_named(const mpl_problem *p, const char *file, const char *name)
{
    for (mpl_buffer b = 0; b < p->n; b++)
        if (strcmp(p->buffer_name[b], name) == 0)
            return b;
    fail_msg("%s: there is no buffer '%s'", file, name);
    return 0;
}

typedef struct said {
    uint32_t n_buffers, n_pairs, n_conflicts;
    bool buffers; /* each is named */
} said;

/* Checks one comment; counts what must be all there is. */
static void check_line(mpl_ctx *ctx, const char *file, const char *line, const hlo_case *c,
                       said *all)
{
    const mpl_problem *p = c->p;
    char a[80], b[80];
    uint64_t n, bytes = 0;

    for (mpl_buffer i = 0; i < p->n; i++)
        bytes += p->bytes[i];
    if (sscanf(line, "// buffer %79s %" SCNu64, a, &n) == 2) {
        assert_int_equal(p->bytes[buffer_named(p, file, a)], n);
        all->n_buffers++;
        all->buffers = true;
    } else if (sscanf(line, "// conflict %79s %79s", a, b) == 2) {
        if (!mpl_conflict(p, buffer_named(p, file, a), buffer_named(p, file, b)))
            fail_msg("%s: '%s' and '%s' do not conflict", file, a, b);
        all->n_conflicts++;
    } else if (sscanf(line, "// pair %79s %79s", a, b) == 2) {
        if (!is_offered(p, buffer_named(p, file, a), buffer_named(p, file, b)))
            fail_msg("%s: '%s' may not lie over '%s'", file, b, a);
        all->n_pairs++;
    } else if (sscanf(line, "// in %79s %79s", a, b) == 2) {
        assert_int_equal(c->map->value_root[named(c->g, file, a)], named(c->g, file, b));
    } else if (sscanf(line, "// own %79s", a) == 1) {
        assert_int_equal(c->map->value_root[named(c->g, file, a)], named(c->g, file, a));
    } else if (sscanf(line, "// pinned %" SCNu64, &n) == 1) {
        if (c->map->pinned_bytes != n)
            fail_msg("%s: %" PRIu64 " bytes are pinned", file, c->map->pinned_bytes);
    } else if (sscanf(line, "// plan %" SCNu64, &n) == 1) {
        if (hlo_plan(ctx, c, "exact") != n)
            fail_msg("%s: planned in %" PRIu64 " bytes", file, hlo_plan(ctx, c, "exact"));
    } else if (sscanf(line, "// count %" SCNu64, &n) == 1) {
        assert_int_equal(p->n, n);
    } else if (sscanf(line, "// bytes %" SCNu64, &n) == 1) {
        assert_int_equal(bytes, n);
    }
}

static void check_module(mpl_ctx *ctx, const char *file)
{
    char path[300];
    hlo_case c = hlo_open(ctx, (snprintf(path, sizeof path, "tests/data/hlo/%s", file), path));
    owned_memory char *text = NULL;
    char *rest;
    size_t size;
    said all = {0, 0, 0, false};
    uint32_t conflicts = 0;

    assert_ok(ctx, mpl_file_read(ctx, path, &text, &size));
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        check_line(ctx, file, line + strspn(line, " "), &c, &all);
    for (mpl_buffer a = 0; a < c.p->n; a++)
        for (mpl_buffer b = a + 1; b < c.p->n; b++)
            conflicts += mpl_conflict(c.p, a, b);
    if (all.buffers &&
        (all.n_buffers != c.p->n || all.n_pairs != c.p->n_in_place || all.n_conflicts != conflicts))
        fail_msg("%s: %u buffers, %u pairs, %u conflicts", file, c.p->n, c.p->n_in_place,
                 conflicts);
    hlo_close(ctx, &c);
}

TEST(modules_are_as_written)
{
    DIR *folder = opendir("tests/data/hlo");
    struct dirent *entry;
    int n = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.') {
            check_module(ctx, entry->d_name);
            n++;
        }
    closedir(folder);
    assert_true(n >= 10);
}

/* ---- shapes ---- */

static const struct {
    const char *shape;
    uint64_t bytes;
} shapes[] = {
    {"f32[]", 4},
    {"f32[]{}", 4},
    {"f64[3]{0}", 24},
    {"pred[2,3]{1,0}", 6},
    {"s16[2,3]{0,1}", 12},
    {"u64[0,3]", 0},
    {"c128[2]", 32},
    {"f8e4m3b11fnuz[5]", 5},
    {"bf16[<=7,2]", 28},
    {"bf16[2,<=7]{1,0}", 28},
    {"token[]", 0},
    {"s4[5]", 5},
    {"s4[5]{0:E(4)}", 3},
    {"u2[5]{0:E(2)}", 2},
    {"s1[9]{0:E(1)}", 2},
    {"pred[9]{0:E(1)}", 2},
    {"f4e2m1fn[3]{0:E(4)}", 2},
    {"f32[3,5]{1,0:T(2,4)}", 128},
    {"f32[3,5]{0,1:T(2,4)}", 96},
    {"f32[7]{0:T(2,4)}", 64},
    {"bf16[3,5]{1,0:T(8,128)(2,1)}", 2048},
    {"s4[3,5]{1,0:T(2,4)E(4)}", 16},
    {"f32[4]{0:S(5)}", 16},
    {"f32[4,2]{1,0:T(*,2)}", 32},
    {"f32[1,2,1,2,1,2,1,2,1,2]", 128},
};

TEST(shapes_have_their_bytes)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char text[200];
        owned_graph *g;

        snprintf(text, sizeof text, "e {\n  p = s32[] parameter(0)\n  x = %s foo(p)\n}\n",
                 shapes[i].shape);
        g = hlo_graph(ctx, text);
        if (g->value_bytes[g->output[0]] != shapes[i].bytes)
            fail_msg("%s: %" PRIu64 " bytes", shapes[i].shape, g->value_bytes[g->output[0]]);
    }
}

/* ---- what may lie over what ---- */

/* Instructions of operands a, b, c and d, all alike; over: which of them the result may lie over.
 */
static const struct {
    const char *instr, *over;
} rules[] = {
    {"f32[4] dynamic-update-slice(a, b, c)", "0"},
    {"f32[4] scatter(a, b, c)", "0"},
    {"f32[4] set-dimension-size(a, b)", "0"},
    {"f32[4] triangular-solve(a, b)", "1"},
    {"f32[4] ragged-all-to-all(a, b, c)", "1"},
    {"f32[4] sort(a)", "0"},
    {"(f32[4], f32[4]) sort(a, b)", "0"},
    {"(f32[2], f32[4]) sort(a, b)", "1"},
    {"f32[4] custom-call(a, b), custom_call_target=\"x\"", ""},
    {"f32[4] custom-call(a, b), output_to_operand_aliasing={{}: (1, {})}", "1"},
    {"(f32[2], f32[4]) custom-call(a, b), output_to_operand_aliasing={{1}: (0, {})}", "0"},
    {"f32[4] fusion(a, b), kind=kLoop, calls=both", "0 1"},
    {"f32[4] fusion(a, b), kind=kInput, calls=first", "0"},
    {"f32[4] fusion(a, b), kind=kOutput, calls=product", "1"},
    {"f32[4] fusion(a, b), kind=kLoop, calls=product", "1"},
    {"f32[4] fusion(a, b), kind=kOutput, calls=wide", "0"},
    {"f32[4] fusion(a, b), kind=kLoop, calls=wide", ""},
    {"f32[4] fusion(a, b), kind=kLoop, calls=update", "0"},
    {"f32[4] fusion(a, b), kind=kLoop, calls=read", "0"},
    {"f32[4] fusion(a, b), kind=kLoop, calls=twice", ""},
    {"(f32[2], f32[4]) fusion(a, b), kind=kLoop, calls=pair", "1"},
    {"f32[4] fusion(a, b), kind=kLoop, calls=deep", ""},
    /* not for other types, dims or layouts */
    {"s32[4] convert(a)", ""},
    {"f32[2,2] negate(a)", ""},
    {"f32[4]{0:S(1)} copy(a)", ""},
    {"f32[4]{0} copy(a)", "0"},
    {"f32[4] select(a, b, c)", "0 1 2"},
    {"f32[4] unheard-of(a, b)", ""},
};
static const char fused[] =
    "both {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n n = f32[4] tanh(p)\n"
    " r = f32[4] add(n, q)\n}\n"
    "first {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n v = f32[4] reverse(q)\n"
    " r = f32[4] add(p, v)\n}\n"
    "product {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n d = f32[4] dot(p, p)\n"
    " r = f32[4] add(d, q)\n}\n"
    "wide {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n v = f32[4] reverse(p)\n"
    " d = f32[4] convolution(v, q)\n r = f32[4] add(p, d)\n x = f32[4] reverse(p)\n"
    " ROOT s = f32[4] add(p, d)\n}\n"
    "update {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n b = f32[4] bitcast(p)\n"
    " r = f32[4] dynamic-update-slice(b, q, q)\n}\n"
    "read {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n u = f32[1] slice(p)\n"
    " r = f32[4] dynamic-update-slice(p, u, q)\n}\n"
    "twice {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n"
    " r = f32[4] dynamic-update-slice(p, p, q)\n}\n"
    "deep {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n n = f32[4] tanh(p)\n"
    " m = f32[4] add(n, q)\n r = f32[4] reverse(m)\n}\n"
    "pair {\n p = f32[4] parameter(0)\n q = f32[4] parameter(1)\n u = f32[2] slice(p)\n"
    " r = f32[4] scatter(q, u, p)\n ROOT t = (f32[2], f32[4]) tuple(u, r)\n}\n";

static void check_rule(mpl_ctx *ctx, const char *instr, const char *over)
{
    char text[2400], found[40] = "";
    owned_graph *g;
    mpl_op op;

    snprintf(text, sizeof text,
             "%sENTRY e {\n a = f32[4] parameter(0)\n b = f32[4] parameter(1)\n"
             " c = f32[4] parameter(2)\n d = f32[4] parameter(3)\n x = %s\n}\n",
             fused, instr);
    g = hlo_graph(ctx, text);
    op = g->n_ops - 1;
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
        if (mpl_op_overwrites(g, op, i))
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%u",
                     *found != '\0' ? " " : "", i);
    if (strcmp(found, over) != 0)
        fail_msg("%s: over '%s', not '%s'", instr, found, over);
}

/* Instructions that compute each element from those of its index, and others, by XLA's list. */
static const char along[] =
    "abs acos acosh add and asin asinh atan2 atanh cbrt ceil clamp copy cosh cosine "
    "count-leading-zeros divide erf exponential exponential-minus-one floor log log-plus-one "
    "logistic map maximum minimum multiply negate not or popcnt power reduce-precision remainder "
    "round-nearest-afz round-nearest-even rsqrt select shift-left shift-right-arithmetic "
    "shift-right-logical sign sine sinh sqrt stochastic-convert subtract tan tanh xor";
static const char apart[] =
    "all-gather all-reduce all-to-all batch-norm-inference broadcast cholesky collective-broadcast "
    "collective-permute concatenate convolution dot dynamic-reshape dynamic-slice fft gather pad "
    "ragged-dot reduce reduce-scatter reduce-window reshape reverse rng rng-bit-generator "
    "select-and-scatter slice topk transpose";

TEST(results_lie_where_xla_lets_them)
{
    char list[1200], instr[80];

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        check_rule(ctx, rules[i].instr, rules[i].over);
    for (int which = 0; which < 2; which++) {
        snprintf(list, sizeof list, "%s", which == 0 ? along : apart);
        for (char *name = strtok(list, " "); name != NULL; name = strtok(NULL, " ")) {
            snprintf(instr, sizeof instr, "f32[4] %s(a, b)", name);
            check_rule(ctx, instr, which == 0 ? "0 1" : "");
        }
    }
}

/* Every opcode of the table is known, and one that is not is marked. */
TEST(unknown_instructions_are_marked)
{
    owned_graph *g = hlo_graph(ctx, "e {\n p = f32[4] parameter(0)\n a = f32[4] frobnicate(p)\n"
                                    " ROOT b = f32[4] negate(a)\n}\n");

    assert_string_equal(mpl_attr_text(g, 0, MPL_ATTR_opcode, ""), "unknown:frobnicate");
    assert_string_equal(mpl_attr_text(g, 1, MPL_ATTR_opcode, ""), "negate");
}

/* ---- bad text ---- */

#define HEAD "e {\n p = f32[4] parameter(0)\n"

static const struct {
    const char *text, *says;
} wrong[] = {
    {"", "no computation"},
    {"HloModule", "no computation"},
    {"HloModule m, x", "1: an attribute of the module"},
    {"HloModule m, input_output_alias={ {0}: 1 }\n" HEAD "}\n", ":1: aliases are"},
    {"HloModule m, input_output_alias={ {0}: (0, {}) }\n" HEAD "}\n", "not there"},
    {"HloModule m, input_output_alias={ {}: (1, {}) }\n" HEAD "}\n", "not there"},
    {"e {\n", ":2: an instruction is"},
    {"e {\n}\n", "without instructions"},
    {"e\n", "a computation is"},
    {HEAD, ":3: an instruction is"},
    {HEAD " x\n}\n", "an instruction is"},
    {HEAD " x = f32[4]\n}\n", "an opcode"},
    {HEAD " x = f32 negate(p)\n}\n", "where a shape should stand"},
    {HEAD " x = f33[4] negate(p)\n}\n", "'f33' where a shape"},
    {HEAD " x = f32[-4] negate(p)\n}\n", "a dim is"},
    {HEAD " x = f32[?] negate(p)\n}\n", "one without a bound"},
    {HEAD " x = f32[4 negate(p)\n}\n", "dims end with"},
    {HEAD " x = f32[9223372036854775807,4] negate(p)\n}\n", "2^63"},
    {HEAD " x = f32[99999999999999999999] negate(p)\n}\n", "a dim is"},
    {HEAD " x = f32[4]{1} negate(p)\n}\n", "a layout names"},
    {HEAD " x = f32[4]{0,0} negate(p)\n}\n", "a layout names"},
    {HEAD " x = f32[4]{0:T(0)} negate(p)\n}\n", "a tile has"},
    {HEAD " x = f32[4]{0:E(999)} negate(p)\n}\n", "E(bits)"},
    {HEAD " x = (f32[4], f32[4] negate(p)\n}\n", "a tuple's shape ends"},
    {HEAD " x = f32[4] negate(q)\n}\n", ":3: operand 'q'"},
    {HEAD " x = f32[4] negate(x)\n}\n", "operand 'x'"},
    {HEAD " x = f32[4] negate(p p)\n}\n", "operands end"},
    {HEAD " x = f32[4] negate(p), y\n}\n", "an attribute is"},
    {HEAD " p = f32[4] negate(p)\n}\n", "stands here twice"},
    {HEAD "}\n" HEAD "}\n", "stands here twice"},
    {HEAD " x = f32[4] parameter(0)\n}\n", "numbered from 0"},
    {HEAD " x = f32[4] parameter(2)\n}\n", "numbered from 0"},
    {HEAD " x = f32[4] parameter()\n}\n", "has a number"},
    {HEAD " x = f32[4] constant({1, 2\n}\n", "a literal ends"},
    {HEAD " x = f32[4] get-tuple-element(p), index=0\n}\n", "no element 0"},
    {HEAD " t = (f32[4]) tuple(p)\n x = f32[4] get-tuple-element(t), index=1\n}\n", "no element 1"},
    {HEAD " t = (f32[4]) tuple(p)\n x = f32[5] get-tuple-element(t), index=0\n}\n",
     "has not the shape"},
    {HEAD " x = (f32[4], f32[4]) tuple(p)\n}\n", "has not the shape"},
    {HEAD " x = f32[4] call(p)\n}\n", "too few computations"},
    {HEAD " x = f32[4] call(p), to_apply=f\n}\n", "no computation 'f'"},
    {HEAD " x = f32[4] call(p), to_apply=e\n}\n", "in a circle"},
    {"f {\n x = f32[5] parameter(0)\n}\n" HEAD " x = f32[5] call(p), to_apply=f\n}\n", "the shape"},
    {"f {\n x = f32[4] parameter(0)\n}\n" HEAD " x = f32[4] call(p, p), to_apply=f\n}\n",
     "hands over 2 arrays"},
    {"f {\n x = f32[4] parameter(0)\n}\n" HEAD " x = f32[4] while(p), body=f\n}\n",
     "condition= and body="},
    {"f {\n x = f32[4] parameter(0)\n}\n" HEAD " x = f32[4] while(p), condition=f, body=f\n}\n",
     "it must be one element of type bool"},
    {"f {\n x = f32[4] parameter(0)\n}\n" HEAD
     " x = f32[4] conditional(p, p), branch_computations={f}\n}\n",
     "the index is f32"},
    {"f {\n x = f32[4] parameter(0)\n}\n" HEAD
     " x = f32[4] conditional(p), branch_computations={f}\n}\n",
     "an operand for each branch"},
    {HEAD " x = (f32[5], f32[8]) all-gather-start(p)\n}\n", "does not hold its operands"},
    {HEAD " x = f32[4] all-gather-done(p)\n}\n", "ends no async pair"},
    {HEAD " t = () tuple()\n}\n", "output"},
    {"ENTRY a {\n p = f32[4] parameter(0)\n}\nENTRY b {\n}\n", "a second ENTRY"},
};

TEST(bad_text_is_refused)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mpl_graph *g = NULL;

        assert_status(ctx, mpl_hlo_read_memory(ctx, "m", wrong[i].text, strlen(wrong[i].text), &g),
                      MPL_EINPUT);
        if (strstr(ctx->message, wrong[i].says) == NULL || strncmp(ctx->message, "m:", 2) != 0)
            fail_msg("row %zu: \"%s\" does not say \"%s\"", i, ctx->message, wrong[i].says);
        assert_null(g);
    }
}

/* Calls that double at each level are refused before they fill the memory. */
TEST(calls_are_limited)
{
    char text[8000];
    size_t n = (size_t)sprintf(text, "f0 {\n p = f32[4] parameter(0)\n n = f32[4] tanh(p)\n}\n");
    mpl_graph *g = NULL;

    for (int k = 1; k < 40; k++)
        n += (size_t)sprintf(text + n,
                             "f%d {\n p = f32[4] parameter(0)\n a = f32[4] call(p), to_apply=f%d\n"
                             " b = f32[4] call(a), to_apply=f%d\n}\n",
                             k, k - 1, k - 1);
    assert_status(ctx, mpl_hlo_read_memory(ctx, "m", text, n, &g), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "calls written out"));
}

/* Fault: memory that leaks, or a crash, when an allocation fails. */
TEST(memory_may_end_anywhere)
{
    static const char *const files[] = {"donation.hlo", "while.hlo", "conditional.hlo",
                                        "fusion.hlo", "async.hlo"};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[100];
        owned_memory char *text = NULL;
        size_t size;
        mpl_status st = MPL_EMEM;
        mpl_graph *g = NULL;

        snprintf(path, sizeof path, "tests/data/hlo/%s", files[i]);
        assert_ok(ctx, mpl_file_read(ctx, path, &text, &size));
        for (int64_t k = 0; st != MPL_OK; k++) {
            int64_t live = ctx->n_live;

            ctx->fail_after = ctx->n_allocs + k;
            st = mpl_hlo_read_memory(ctx, path, text, size, &g);
            ctx->fail_after = -1;
            if (st != MPL_OK && (st != MPL_EMEM || ctx->n_live != live))
                fail_msg("%s, allocation %d: status '%s', %d blocks stay", path, (int)k,
                         mpl_status_name(st), (int)(ctx->n_live - live));
        }
        mpl_graph_free(ctx, g);
    }
}

TESTS(modules_are_as_written, shapes_have_their_bytes, results_lie_where_xla_lets_them,
      unknown_instructions_are_marked, bad_text_is_refused, calls_are_limited,
      memory_may_end_anywhere)
