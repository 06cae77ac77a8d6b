/* programs.c -- programs of views and writes in place: an example, box decoders, a stencil by
 * slices, a step of an environment.
 *
 * Source   views: the example of the TensorSSA proposal. offset2bbox: the decoder that it names, as
 *          in detection libraries: offsets to anchors of corners, variances 0.1 and 0.2. stencil:
 *          the heat equation as usual in NumPy. ssd_boxes: W. Liu et al., "SSD: Single Shot
 *          MultiBox Detector", ECCV 2016, section 2.2. yolo_boxes: J. Redmon and A. Farhadi,
 *          "YOLOv3", arXiv 1804.02767, section 2.1. cart_pole: A. Barto, R. Sutton, C. Anderson,
 *          1983, the equations and constants of OpenAI Gym's.
 * Forms    ssa=full, views, copy: levels of tensor_ssa; ssa=program: the program unchanged.
 * Train    The box decoders learn their bias by smooth L1 of their boxes (yolo_boxes: of its whole
 *          output) against wanted ones. The others have no weights.
 *
 * An operation makes what is written to, since an input could not be overwritten. */
#include "graphs/passes/passes.h"
#include "graphs/zoo/net/zoo_priv.h"

#include <stdarg.h>

static const char *const levels[] = {"full", "views", "copy", "program"};

#define PARAM_SSA                                                                                  \
    {                                                                                              \
        "ssa", 0, 0, 3, "what becomes of views and writes", levels                                 \
    }

/* Growing text; ignores additions after a failure. */
typedef struct script {
    mpl_ctx *ctx;
    const mpl_zoo_args *args;
    mpl_status st;
    char *text;
    size_t n, cap;
} script;

static void say(script *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(script *self, const char *format, ...)
{
    va_list list;
    char line[1000];
    int n;

    va_start(list, format);
    n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    mpl_assert(n >= 0 && (size_t)n < sizeof line);
    if (self->st == MPL_OK)
        self->st = mpl_reserve(self->ctx, self->text, self->cap, self->n + (size_t)n + 1);
    if (self->st == MPL_OK)
        memcpy(self->text + self->n, line, (size_t)n + 1);
    self->n += (size_t)n;
}

static script begin(mpl_ctx *ctx, const mpl_zoo_args *args)
{
    script s = {.ctx = ctx, .args = args};
    char name[256];

    say(&s, "program \"%s\"\n", mpl_zoo_name(args, name));
    return s;
}

static void scalar(script *self, const char *name, double value)
{
    say(self, "weight %s f32 [] = splat %g\n", name, value);
}

/* Outputs `made`; in training, its smooth L1 loss (net.c) against input `wanted`. */
static void learn(script *self, const char *made, const char *dims)
{
    if (!self->args->train) {
        say(self, "output %s\n", made);
        return;
    }
    say(self,
        "input wanted f32 %s\nweight loss_one f32 [] = splat 1\n"
        "weight loss_half f32 [] = splat 0.5\nloss_off = sub(%s, wanted)\n"
        "loss_size = abs(loss_off)\nloss_near = clip(loss_size, _, loss_one)\n"
        "loss_part = mul(loss_near, loss_half)\nloss_rest = sub(loss_size, loss_part)\n"
        "loss_each = mul(loss_near, loss_rest)\nloss = reduce_mean(loss_each) keepdims=0\n"
        "output loss\n",
        dims, made);
}

/* Reads the text and converts it to SSA. */
static mpl_status end(script *self, mpl_graph **out)
{
    const mpl_ssa_level level[] = {self->args->train ? MPL_SSA_BOXES : MPL_SSA_FULL, MPL_SSA_VIEWS,
                                   MPL_SSA_COPY};
    mpl_status st = MPL_OK;
    mpl_graph *program = NULL;
    int64_t ssa = mpl_zoo_arg(self->args, "ssa");

    MPL_TRY(self->st);
    if (self->args->train && (ssa == 1 || ssa == 3))
        MPL_FAIL(self->ctx, MPL_EINPUT,
                 "%s: ssa=%s has operations without a gradient; mode=train takes ssa=full, which "
                 "fuses nothing then, or ssa=copy",
                 self->args->entry->name, levels[ssa]);
    MPL_TRY(
        mpl_text_read_memory(self->ctx, self->args->entry->name, self->text, self->n, &program));
    if (ssa < 3) {
        MPL_TRY(mpl_tensor_ssa(self->ctx, program, level[ssa], NULL, NULL, out));
        goto out;
    }
    *out = program, program = NULL;
out:
    mpl_graph_free(self->ctx, program);
    mpl_free(self->ctx, self->text);
    return st;
}

/* ---- the example ---- */

static mpl_status build_views(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    script s = begin(ctx, args);
    int n = (int)mpl_zoo_arg(args, "columns");

    say(&s, "input data f32 [3,%d]\n", n);
    scalar(&s, "two", 2);
    say(&s, "A = relu(data)\n"
            "B = view(A) index=\"1,:\"\n"
            "C = view(A) index=\"2,:\"\n"
            "D = add(B, C)\n"
            "add_into(C, two)\n"
            "E = add(A, D)\n"
            "output E\n");
    return end(&s, out);
}

MPL_ZOO(views, "the example of TensorSSA",
        MPL_PARAMS({"columns", 65536, 1, 100000000, "of three rows", NULL}, PARAM_SSA),
        build_views);

/* ---- boxes ---- */

static mpl_status build_offset2bbox(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    script s = begin(ctx, args);
    char dims[64];
    int batch = (int)mpl_zoo_arg(args, "batch"), n = (int)mpl_zoo_arg(args, "boxes");

    say(&s, "input anchors f32 [%d,4]\ninput head f32 [%d,%d,4]\nweight bias f32 [4]\n", n, batch,
        n);
    scalar(&s, "half", 0.5);
    scalar(&s, "tenth", 0.1);
    scalar(&s, "fifth", 0.2);
    say(&s, "a_min = view(anchors) index=\":,0:2\"\n"
            "a_max = view(anchors) index=\":,2:4\"\n"
            "size = sub(a_max, a_min)\n"
            "a_half = mul(size, half)\n"
            "center = add(a_min, a_half)\n"
            "boxes = add(head, bias)\n"
            "xy = view(boxes) index=\"...,0:2\"\n"
            "wh = view(boxes) index=\"...,2:4\"\n"
            "mul_into(xy, tenth)\n"
            "mul_into(xy, size)\n"
            "add_into(xy, center)\n"
            "mul_into(wh, fifth)\n"
            "exp_into(wh)\n"
            "mul_into(wh, a_half)\n"
            "low = sub(xy, wh)\n"
            "high = add(xy, wh)\n"
            "copy_into(xy, low)\n"
            "copy_into(wh, high)\n");
    snprintf(dims, sizeof dims, "[%d,%d,4]", batch, n);
    learn(&s, "boxes", dims);
    return end(&s, out);
}

MPL_ZOO(offset2bbox, "boxes from offsets to anchors, written in place",
        MPL_PARAMS(MPL_PARAM_BATCH(8), {"boxes", 8732, 1, 10000000, "anchors", NULL}, PARAM_SSA),
        build_offset2bbox, .own_loss = true);

static mpl_status build_ssd(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    script s = begin(ctx, args);
    char dims[64];
    int batch = (int)mpl_zoo_arg(args, "batch"), n = (int)mpl_zoo_arg(args, "boxes");

    say(&s,
        "input priors f32 [%d,4]\ninput head f32 [%d,%d,4]\ninput conf f32 [%d,%d,%d]\n"
        "weight bias f32 [4]\n",
        n, batch, n, batch, n, (int)mpl_zoo_arg(args, "classes") + 1);
    scalar(&s, "zero", 0);
    scalar(&s, "one", 1);
    scalar(&s, "half", 0.5);
    scalar(&s, "tenth", 0.1);
    scalar(&s, "fifth", 0.2);
    say(&s, "p_xy = view(priors) index=\":,:2\"\n"
            "p_wh = view(priors) index=\":,2:\"\n"
            "boxes = add(head, bias)\n"
            "xy = view(boxes) index=\"...,:2\"\n"
            "wh = view(boxes) index=\"...,2:\"\n"
            "mul_into(xy, tenth)\n"
            "mul_into(xy, p_wh)\n"
            "add_into(xy, p_xy)\n"
            "mul_into(wh, fifth)\n"
            "exp_into(wh)\n"
            "mul_into(wh, p_wh)\n"
            "w_half = mul(wh, half)\n"
            "sub_into(xy, w_half)\n"
            "add_into(wh, xy)\n"
            "max_into(boxes, zero)\n"
            "min_into(boxes, one)\n");
    snprintf(dims, sizeof dims, "[%d,%d,4]", batch, n);
    learn(&s, "boxes", dims);
    if (args->train) /* scores come from the input: nothing of them is learnt */
        return end(&s, out);
    say(&s, "scores = softmax(conf) axis=-1\n"
            "background = view(scores) index=\"...,0\"\n"
            "copy_into(background, zero)\n"
            "best = reduce_max(scores) axes=[-1] keepdims=0\n"
            "output scores\noutput best\n");
    return end(&s, out);
}

MPL_ZOO(ssd_boxes, "boxes and scores as SSD decodes them, written in place",
        MPL_PARAMS(MPL_PARAM_BATCH(8), {"boxes", 8732, 1, 10000000, "priors", NULL},
                   MPL_PARAM_CLASSES(20), PARAM_SSA),
        build_ssd, .own_loss = true);

static mpl_status build_yolo(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    script s = begin(ctx, args);
    char dims[64];
    int batch = (int)mpl_zoo_arg(args, "batch"), cells = (int)mpl_zoo_arg(args, "cells");
    int width = 5 + (int)mpl_zoo_arg(args, "classes");

    say(&s, "input head f32 [%d,%d,%d,%d]\nweight bias f32 [%d,1,1]\ninput grid f32 [%d,%d,2]\n",
        batch, 3 * width, cells, cells, 3 * width, cells, cells);
    say(&s, "weight anchors f32 [3,1,1,2] = data 10 13 16 30 33 23\n");
    scalar(&s, "stride", 8);
    scalar(&s, "half", 0.5);
    say(&s,
        "planes = add(head, bias)\n"
        "apart = reshape(planes) shape=[%d,3,%d,%d,%d]\n"
        "out = transpose(apart) perm=[0,1,3,4,2]\n",
        batch, width, cells, cells);
    say(&s, "xy = view(out) index=\"...,0:2\"\n"
            "wh = view(out) index=\"...,2:4\"\n"
            "object = view(out) index=\"...,4:5\"\n"
            "class = view(out) index=\"...,5:\"\n"
            "sigmoid_into(xy)\n"
            "add_into(xy, grid)\n"
            "mul_into(xy, stride)\n"
            "exp_into(wh)\n"
            "mul_into(wh, anchors)\n"
            "w_half = mul(wh, half)\n"
            "sub_into(xy, w_half)\n"
            "add_into(wh, xy)\n"
            "sigmoid_into(object)\n"
            "sigmoid_into(class)\n"
            "mul_into(class, object)\n");
    snprintf(dims, sizeof dims, "[%d,%d,%d]", batch, 3 * cells * cells, width);
    say(&s, "boxes = reshape(out) shape=%s\n", dims);
    learn(&s, "boxes", dims);
    return end(&s, out);
}

MPL_ZOO(yolo_boxes, "one scale of boxes and scores as YOLOv3 decodes them, in place",
        MPL_PARAMS(MPL_PARAM_BATCH(1), {"cells", 52, 1, 10000, "of the grid, along a side", NULL},
                   MPL_PARAM_CLASSES(80), PARAM_SSA),
        build_yolo, .own_loss = true);

/* ---- slices ---- */

static const char *const steps_forms[] = {"unroll", "while"};

static mpl_status build_stencil(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    script s = begin(ctx, args);
    int side = (int)mpl_zoo_arg(args, "side");

    say(&s, "input data f32 [%d,%d]\n", side, side);
    scalar(&s, "four", 4);
    scalar(&s, "rate", 0.1);
    say(&s, "u = relu(data)\n"
            "inner = view(u) index=\"1:-1,1:-1\"\n"
            "up = view(u) index=\":-2,1:-1\"\n"
            "down = view(u) index=\"2:,1:-1\"\n"
            "left = view(u) index=\"1:-1,:-2\"\n"
            "right = view(u) index=\"1:-1,2:\"\n"
            "top = view(u) index=\"0,:\"\n"
            "top_next = view(u) index=\"1,:\"\n"
            "bottom = view(u) index=\"-1,:\"\n"
            "bottom_next = view(u) index=\"-2,:\"\n");
    if (mpl_zoo_arg(args, "form") != 0) { /* the same in a loop */
        say(&s,
            "block step\nparam i i64 []\nrows = add(up, down)\ncolumns = add(left, right)\n"
            "sum = add(rows, columns)\nown = mul(inner, four)\nflow = sub(sum, own)\n"
            "change = mul(flow, rate)\nadd_into(inner, change)\ncopy_into(top, top_next)\n"
            "copy_into(bottom, bottom_next)\nyield _\nwhile step(_, _) trips=%d\noutput u\n",
            (int)mpl_zoo_arg(args, "steps"));
        return end(&s, out);
    }
    for (int64_t i = 0; i < mpl_zoo_arg(args, "steps"); i++) {
        int k = (int)i;

        say(&s,
            "rows%d = add(up, down)\ncolumns%d = add(left, right)\nsum%d = add(rows%d, columns%d)\n"
            "own%d = mul(inner, four)\nflow%d = sub(sum%d, own%d)\nchange%d = mul(flow%d, rate)\n"
            "add_into(inner, change%d)\ncopy_into(top, top_next)\ncopy_into(bottom, bottom_next)\n",
            k, k, k, k, k, k, k, k, k, k, k, k);
    }
    say(&s, "output u\n");
    return end(&s, out);
}

MPL_ZOO(stencil, "the heat equation by NumPy-style slices, in place",
        MPL_PARAMS({"side", 512, 4, 100000, "of the plate", NULL},
                   {"steps", 4, 1, 1000, "in time", NULL}, PARAM_SSA,
                   {"form", 0, 0, 1, "of the steps", steps_forms}),
        build_stencil);

/* ---- an environment ---- */

static mpl_status build_cart_pole(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    script s = begin(ctx, args);
    int n = (int)mpl_zoo_arg(args, "batch");

    say(&s, "input start f32 [%d,4]\ninput force f32 [%d]\n", n, n);
    scalar(&s, "tau", 0.02);
    scalar(&s, "gravity", 9.8);
    scalar(&s, "per_mass", 1 / 1.1);
    scalar(&s, "pole", 0.05);
    scalar(&s, "share", 0.05 / 1.1);
    scalar(&s, "length", 0.5);
    scalar(&s, "third", 4.0 / 3);
    scalar(&s, "mass", 0.1 / 1.1);
    scalar(&s, "unit", 1);
    say(&s, "s = mul(start, unit)\n"
            "x = view(s) index=\":,0\"\n"
            "speed = view(s) index=\":,1\"\n"
            "angle = view(s) index=\":,2\"\n"
            "turn = view(s) index=\":,3\"\n");
    for (int64_t i = 0; i < mpl_zoo_arg(args, "steps"); i++) {
        int k = (int)i;

        say(&s,
            "sin%d = sin(angle)\ncos%d = cos(angle)\nturn2%d = mul(turn, turn)\n"
            "pull%d = mul(turn2%d, sin%d)\npush%d = mul(pull%d, pole)\n"
            "both%d = add(force, push%d)\nt%d = mul(both%d, per_mass)\n",
            k, k, k, k, k, k, k, k, k, k, k, k);
        say(&s,
            "fall%d = mul(sin%d, gravity)\nct%d = mul(cos%d, t%d)\nover%d = sub(fall%d, ct%d)\n"
            "cc%d = mul(cos%d, cos%d)\ncm%d = mul(cc%d, mass)\nu1%d = sub(third, cm%d)\n"
            "under%d = mul(u1%d, length)\nturning%d = div(over%d, under%d)\n",
            k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k);
        say(&s,
            "tc%d = mul(turning%d, cos%d)\ntcs%d = mul(tc%d, share)\npushing%d = sub(t%d, tcs%d)\n"
            "dx%d = mul(speed, tau)\nadd_into(x, dx%d)\ndv%d = mul(pushing%d, tau)\n"
            "add_into(speed, dv%d)\nda%d = mul(turn, tau)\nadd_into(angle, da%d)\n"
            "dt%d = mul(turning%d, tau)\nadd_into(turn, dt%d)\n",
            k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k, k);
    }
    say(&s, "output s\n");
    return end(&s, out);
}

MPL_ZOO(cart_pole, "a step of the cart-pole environment, its state written in place",
        MPL_PARAMS({"batch", 65536, 1, 10000000, "environments at once", NULL},
                   {"steps", 1, 1, 1000, "in time", NULL}, PARAM_SSA),
        build_cart_pole);
