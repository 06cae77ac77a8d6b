/* cpu.c -- the backend `cpu`: oneDNN on the graph's layouts, with a fixed number of threads, so
 * that runs repeat bit for bit.
 *
 * For each operation, prepare chooses what computes it. Scratchpads are workspaces of the caller.
 * 16-bit floats are computed in f32 (halves.h). What oneDNN lacks, and other types, run by the
 * plain loops of graphs/ops on one thread, named "ref loops". oneDNN's matrix product allocates
 * pack buffers of its own during a call. */
#include "graphs/ir/layout.h"
#include "graphs/ops/move/fused.h"
#include "graphs/passes/layouts.h"
#include "runtime/cpu/loops/chain.h"
#include "runtime/cpu/loops/chain_priv.h"
#include "runtime/cpu/loops/normal.h"
#include "runtime/cpu/loops/panels.h"
#include "runtime/cpu/cpu_priv.h"
#include "runtime/cpu/cpu_quant.h"
#include "runtime/cpu/halves.h"
#include "runtime/cpu/host_priv.h"
#include "runtime/cpu/images.h"
#include "runtime/cpu/loops/rescale.h"
#include "runtime/machine.h"

#include <stdlib.h>

extern const mpl_backend mpl_backend_cpu;
void omp_set_num_threads(int n); /* of libgomp, which oneDNN uses; its header may be absent */

struct mpl_library {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
};

/* One of them, at most; none: the loops of mpl_eval. */
struct mpl_prepared {
    mpl_cpu_primitive *primitive;
    bool copy; /* output 0 is input 0's bytes */
    bool normal;
    mpl_chain *chain;
    mpl_images *images;
    mpl_halves *halves;
    mpl_cpu_quant *quant;
    mpl_panels *panels;
    mpl_rescale *rescale;
    mpl_resample *resample;
};

static void close_device(mpl_device *dev)
{
    if (dev == NULL)
        return;
    if (dev->library != NULL) {
        if (dev->library->attr != NULL)
            dnnl_primitive_attr_destroy(dev->library->attr);
        if (dev->library->stream != NULL)
            dnnl_stream_destroy(dev->library->stream);
        if (dev->library->engine != NULL)
            dnnl_engine_destroy(dev->library->engine);
    }
    mpl_free_each(dev->ctx, dev->library, dev);
}

/* oneDNN 2.6 crashes on small shapes by AMX. Who names instructions, as oneDNN's manual says, gets
 * them. */
static void avoid_amx(void)
{
    if (getenv("ONEDNN_MAX_CPU_ISA") == NULL && getenv("DNNL_MAX_CPU_ISA") == NULL)
        dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_vnni);
}

static mpl_status open_device(mpl_ctx *ctx, const mpl_device_options *options, mpl_device **out)
{
    mpl_status st = MPL_OK;
    mpl_device *dev = NULL;
    mpl_machine machine;

    MPL_TRY(mpl_new(ctx, dev, 1));
    dev->ctx = ctx;
    MPL_TRY(mpl_new(ctx, dev->library, 1));
    MPL_TRY(mpl_machine_get(ctx, &machine));
    dev->n_threads = options->n_threads > 0 ? options->n_threads : machine.n_cores;
    dev->most_workspace = UINT64_MAX;
    avoid_amx();
    MPL_TRY(mpl_cpu_status(dev, dnnl_engine_create(&dev->library->engine, dnnl_cpu, 0), "opening",
                           "engine"));
    MPL_TRY(mpl_cpu_status(
        dev,
        dnnl_stream_create(&dev->library->stream, dev->library->engine, dnnl_stream_default_flags),
        "opening", "stream"));
    MPL_TRY(mpl_cpu_status(dev, dnnl_primitive_attr_create(&dev->library->attr), "opening",
                           "attributes"));
    MPL_TRY(mpl_cpu_status(
        dev, dnnl_primitive_attr_set_scratchpad_mode(dev->library->attr, dnnl_scratchpad_mode_user),
        "opening", "attributes"));
    *out = dev, dev = NULL;
out:
    close_device(dev);
    return st;
}

/* Primitives are the device's; a stream is each thread's own. */
static mpl_status share(mpl_device *dev, mpl_ctx *ctx, mpl_device **out)
{
    mpl_status st = MPL_OK;
    mpl_device *view = NULL;

    MPL_TRY(mpl_new(ctx, view, 1));
    view->ctx = ctx;
    view->n_threads = dev->n_threads;
    view->most_workspace = dev->most_workspace;
    MPL_TRY(mpl_new(ctx, view->library, 1));
    MPL_TRY(mpl_cpu_status(
        view,
        dnnl_stream_create(&view->library->stream, dev->library->engine, dnnl_stream_default_flags),
        "opening", "stream"));
    *out = view, view = NULL;
out:
    close_device(view);
    return st;
}

static void release(mpl_device *dev, mpl_prepared *prepared)
{
    if (prepared == NULL)
        return;
    mpl_cpu_primitives_free(dev, prepared->primitive);
    mpl_chain_free(dev->ctx, prepared->chain);
    mpl_images_free(dev->ctx, prepared->images);
    mpl_halves_free(dev, prepared->halves);
    mpl_cpu_quant_free(dev->ctx, prepared->quant);
    mpl_panels_free(dev->ctx, prepared->panels);
    mpl_resample_free(dev->ctx, prepared->resample);
    mpl_free(dev->ctx, prepared);
}

/* Shapes of the operands. False: not for oneDNN (a type other than f32, or no elements). */
static bool read_operands(mpl_cpu_recipe *recipe)
{
    const mpl_graph *g = recipe->g;

    for (uint32_t i = 0; i < recipe->n_in + recipe->n_out; i++) {
        bool is_in = i < recipe->n_in;
        mpl_value v = is_in ? g->op_in[g->op_in_begin[recipe->op] + i]
                            : g->op_out[g->op_out_begin[recipe->op] + i - recipe->n_in];

        if (v == MPL_NONE)
            continue;
        if (g->value_type[v] != MPL_TYPE_f32 || g->value_bytes[v] == 0)
            return false;
        if (is_in)
            recipe->in[i] = &g->value_shape[v];
        else
            recipe->out[i - recipe->n_in] = &g->value_shape[v];
    }
    return true;
}

/* Operations on images that are not plain must be as mpl_graph_lay makes them. */
static mpl_status check_layout(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_layout *layout)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    *layout = g->op_in_begin[op] < g->op_in_begin[op + 1]
                  ? mpl_layout_of(g, g->op_in[g->op_in_begin[op]])
                  : MPL_PLAIN;
    if (mpl_turns_layout(g, op)) {
        if (*layout != MPL_PLAIN)
            return MPL_REFUSE(ctx,
                              "operation '%.100s' (%s): its operand must be plain, as mode says",
                              g->op_name[op], mpl_op_table[kind].name);
        *layout = MPL_LAST;
        return MPL_OK;
    }
    if (kind == MPL_OP_reorder)
        return MPL_OK;
    if (*layout == MPL_BLOCKED && mpl_keeps_layout(kind) && !mpl_op_may_be(g, op, MPL_BLOCKED))
        return MPL_REFUSE(ctx, "operation '%.100s' (%s) cannot have its channels in blocks",
                          g->op_name[op], mpl_op_table[kind].name);
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value v = g->op_in[i];
        bool image = v != MPL_NONE && i - g->op_in_begin[op] < mpl_n_images(g, op) &&
                     g->value_shape[v].rank == 4 && g->value_role[v] != MPL_WEIGHT;

        mpl_layout own = v != MPL_NONE ? mpl_layout_of(g, v) : MPL_PLAIN;

        if (own != MPL_PLAIN ? !mpl_keeps_layout(kind) || *layout != own
                             : image && *layout != MPL_PLAIN)
            return MPL_REFUSE(
                ctx,
                "operation '%.100s' (%s): the layout of '%.100s' does not fit; a reorder is "
                "missing",
                g->op_name[op], mpl_op_table[kind].name, g->value_name[v]);
    }
    return MPL_OK;
}

/* Element by element: any layout is fine if all operands have it. */
static bool is_flat(const mpl_graph *g, mpl_op op, mpl_layout layout)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    bool flat = (mpl_op_table[kind].traits & MPL_ELEMENTWISE) != 0 || kind == MPL_OP_sum;

    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++) {
        mpl_value v = mpl_op_input(g, op, i);

        if (v != MPL_NONE && g->value_shape[v].rank > 0)
            flat = flat && mpl_layout_of(g, v) == layout &&
                   mpl_shape_equal(&g->value_shape[v], &g->value_shape[mpl_op_output(g, op, 0)]);
    }
    return flat;
}

static bool copies_bytes(const mpl_graph *g, mpl_op op)
{
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];

    return (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0 &&
           (n_out == 1 || g->op_out[g->op_out_begin[op] + 1] == MPL_NONE);
}

static mpl_status recipe_init(mpl_device *dev, const mpl_graph *g, mpl_op op,
                              const int64_t *const *stride, mpl_cpu_recipe *recipe)
{
    *recipe = (mpl_cpu_recipe){
        .g = g,
        .op = op,
        .n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
        .n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
        .stride = stride,
        .engine = dev->library->engine,
        .attr = dev->library->attr,
        .most_workspace = dev->most_workspace,
    };
    MPL_PASS(check_layout(dev->ctx, g, op, &recipe->layout));
    mpl_cpu_lay(recipe, recipe->layout);
    omp_set_num_threads((int)dev->n_threads); /* of the calling thread; primitives depend on it */
    MPL_PASS(mpl_new(dev->ctx, recipe->in, recipe->n_in));
    MPL_PASS(mpl_new(dev->ctx, recipe->out, recipe->n_out));
    return mpl_new(dev->ctx, recipe->mds, recipe->n_in);
}

static void recipe_fini(mpl_device *dev, mpl_cpu_recipe *recipe)
{
    mpl_free_each(dev->ctx, recipe->in, recipe->out, recipe->mds, recipe->image);
}

/* Whether prepared has an implementation. */
static bool is_ready(const mpl_prepared *prepared)
{
    return prepared->primitive != NULL || prepared->copy || prepared->normal ||
           prepared->chain != NULL || prepared->images != NULL || prepared->halves != NULL ||
           prepared->quant != NULL || prepared->panels != NULL || prepared->rescale != NULL ||
           prepared->resample != NULL;
}

/* ---- operands of concats, which may lie inside the result ---- */

/* Whether an operand is one of a concat, or its result. It may then be strided, and the
 * implementation must not depend on whether it is. */
static bool meets_concat(const mpl_graph *g, mpl_op op)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value v = g->op_in[i];

        if (v != MPL_NONE && g->value_op[v] != MPL_NONE &&
            g->op_kind[g->value_op[v]] == MPL_OP_concat)
            return true;
        for (uint32_t k = v != MPL_NONE ? g->value_use_begin[v] : 0;
             v != MPL_NONE && k < g->value_use_begin[v + 1]; k++)
            if (g->op_kind[g->value_use[k]] == MPL_OP_concat)
                return true;
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        for (uint32_t k = g->op_out[i] != MPL_NONE ? g->value_use_begin[g->op_out[i]] : 0;
             g->op_out[i] != MPL_NONE && k < g->value_use_begin[g->op_out[i] + 1]; k++)
            if (g->op_kind[g->value_use[k]] == MPL_OP_concat)
                return true;
    return false;
}

/* How many operands, from input 0 on, have a batch of independent images as their first dim; 0: the
 * images depend on each other. */
static uint32_t n_batched(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    switch (kind) {
    case MPL_OP_conv:
    case MPL_OP_conv_act:
    case MPL_OP_max_pool:
    case MPL_OP_avg_pool:
    case MPL_OP_global_max_pool:
    case MPL_OP_global_avg_pool:
    case MPL_OP_batch_norm:
    case MPL_OP_lrn:
        return 1;
    case MPL_OP_concat:
        return g->op_in_begin[op + 1] - g->op_in_begin[op];
    default:
        return (mpl_op_table[kind].traits & MPL_ELEMENTWISE) != 0 &&
                       g->op_in_begin[op + 1] - g->op_in_begin[op] == 1
                   ? 1
                   : 0;
    }
}

/* Whether an image of an operand is contiguous. */
static bool is_piece(const mpl_shape *image, const int64_t *stride)
{
    mpl_strided v = {.shape = *image};

    memcpy(v.stride, stride, sizeof v.stride);
    return mpl_strided_contiguous(&v);
}

/* Changes the recipe to a single image; false: it cannot run image by image. */
static bool take_one_image(mpl_cpu_recipe *recipe)
{
    const mpl_graph *g = recipe->g;
    uint32_t n = n_batched(g, recipe->op);
    int64_t batch = recipe->out[0]->rank > 1 ? recipe->out[0]->dim[0] : 0;
    int64_t axis = mpl_attr_int(g, recipe->op, MPL_ATTR_axis, 0);

    if (n == 0 || batch == 0 || recipe->n_out > 1 ||
        (g->op_kind[recipe->op] == MPL_OP_concat &&
         (axis == 0 || axis + recipe->out[0]->rank == 0)))
        return false;
    for (uint32_t k = 0; k < recipe->n_in + recipe->n_out; k++) {
        const mpl_shape **s = k < recipe->n_in ? &recipe->in[k] : &recipe->out[k - recipe->n_in];
        const int64_t *stride = recipe->stride != NULL ? recipe->stride[k] : NULL;

        if (k >= n && k < recipe->n_in) {
            if (stride != NULL)
                return false;
            continue;
        }
        if (*s == NULL || (*s)->rank < 2 || (*s)->dim[0] != batch)
            return false;
        recipe->image[k] = **s;
        recipe->image[k].dim[0] = 1;
        if (stride != NULL && !is_piece(&recipe->image[k], stride))
            return false;
        *s = &recipe->image[k];
    }
    return true;
}

/* The implementation on operands of concats, and its *name; prepared is unchanged if there is none.
 */
static mpl_status prepare_concats(mpl_device *dev, mpl_cpu_recipe *recipe, mpl_prepared *prepared,
                                  uint64_t *workspace, const char **name)
{
    mpl_op_kind kind = (mpl_op_kind)recipe->g->op_kind[recipe->op];
    bool copies = kind == MPL_OP_concat || kind == MPL_OP_reorder;
    mpl_images_limits limits = {dev->n_threads, dev->most_workspace};

    if (recipe->last && !copies)
        MPL_PASS(mpl_images_new(dev->ctx, recipe->g, recipe->op, recipe->stride, &limits,
                                &prepared->images, workspace, name));
    if (prepared->images == NULL &&
        (mpl_fused_arity(kind) > 0 || kind == MPL_OP_clip || kind == MPL_OP_fma))
        MPL_PASS(mpl_chain_new(dev->ctx, recipe->g, recipe->op, recipe->stride, recipe->last,
                               &prepared->chain, name));
    if (prepared->images != NULL || prepared->chain != NULL || !read_operands(recipe))
        return MPL_OK;
    if (!copies && (recipe->last || (recipe->out[0]->rank > 1 && recipe->out[0]->dim[0] == 1 &&
                                     recipe->stride == NULL)))
        return MPL_OK;
    if (!(copies && (recipe->last || kind == MPL_OP_reorder))) {
        MPL_PASS(mpl_new(dev->ctx, recipe->image, (size_t)recipe->n_in + recipe->n_out));
        if (!take_one_image(recipe)) {
            mpl_free(dev->ctx, recipe->image);
            recipe->image = NULL;
            return MPL_OK;
        }
    }
    return mpl_cpu_primitives_new(dev, recipe, &prepared->primitive, workspace, name);
}

/* Whether images.h computes the operation better than oneDNN on channels-last images. In max pools,
 * oneDNN ignores NaNs; for averages of windows it has plain loops; filters of more than a
 * pixel, groups that are not depthwise, and what makes many channels of few it does less well. */
static bool prefers_images(const mpl_graph *g, mpl_op op)
{
    enum { LARGE = 24 * 24, FEW = 32 }; /* pairs of channels; channels */
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    int64_t groups = mpl_attr_int(g, op, MPL_ATTR_group, 1);
    const mpl_shape *shape;

    if (!mpl_is_conv(kind))
        return kind == MPL_OP_batch_norm || kind == MPL_OP_max_pool || kind == MPL_OP_avg_pool ||
               kind == MPL_OP_global_max_pool;
    if (mpl_turns_layout(g, op)) /* oneDNN has reference loops alone */
        return true;
    shape = &g->value_shape[mpl_op_input(g, op, mpl_fused_first(kind) + 1)];
    if (mpl_chain_widest() != MPL_CHAIN_AVX2 || shape->rank != 4 ||
        mpl_attr_int(g, op, MPL_ATTR_way, 0) != 0)
        return false;
    if (groups > 1)
        return shape->dim[0] > groups; /* oneDNN has depthwise ones */
    if (shape->dim[2] * shape->dim[3] == 1)
        return shape->dim[1] <= FEW && shape->dim[0] >= 3 * shape->dim[1];
    return shape->dim[0] * shape->dim[1] >= LARGE;
}

static mpl_status prepare(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = dev->ctx;
    mpl_prepared *prepared = NULL;
    const char *name = MPL_HOW_LOOPS;
    uint64_t workspace = 0;
    mpl_images_limits limits = {dev->n_threads, dev->most_workspace};
    mpl_cpu_recipe r;

    MPL_TRY(recipe_init(dev, g, op, NULL, &r));
    MPL_TRY(mpl_new(ctx, prepared, 1));
    prepared->copy = copies_bytes(g, op);
    if (prepared->copy)
        name = MPL_HOW_COPY;
    else if (!r.blocked && g->op_kind[op] != MPL_OP_concat && meets_concat(g, op))
        MPL_TRY(prepare_concats(dev, &r, prepared, &workspace, &name));
    else if ((r.last || (r.blocked && !mpl_is_conv((mpl_op_kind)g->op_kind[op]))) &&
             prefers_images(g, op))
        MPL_TRY(mpl_images_new(ctx, g, op, NULL, &limits, &prepared->images, &workspace, &name));
    if (!is_ready(prepared) && mpl_chain_widest() == MPL_CHAIN_AVX2) /* else oneDNN is faster */
        MPL_TRY(mpl_panels_new(ctx, g, op, &prepared->panels, &name));
    if (!is_ready(prepared) && r.layout == MPL_PLAIN)
        prepared->normal = mpl_normal_fits(g, op, &name);
    if (!is_ready(prepared))
        prepared->rescale = r.blocked ? mpl_join_of(g, op, &name) : mpl_thin_of(g, op, &name);
    if (!is_ready(prepared) && r.layout == MPL_PLAIN)
        prepared->rescale = mpl_planes_of(g, op, &name);
    if (!is_ready(prepared) && read_operands(&r))
        MPL_TRY(mpl_cpu_primitives_new(dev, &r, &prepared->primitive, &workspace, &name));
    if (!is_ready(prepared))
        MPL_TRY(mpl_chain_new(ctx, g, op, NULL, r.last, &prepared->chain, &name));
    if (!is_ready(prepared))
        MPL_TRY(mpl_cpu_quant_new(ctx, dev->library->engine, g, op, &prepared->quant, &workspace,
                                  &name));
    if (!is_ready(prepared) && !r.last)
        prepared->rescale = mpl_rescale_of(g, op, &name);
    if (!is_ready(prepared) && r.layout == MPL_PLAIN)
        prepared->rescale = mpl_roi_of(g, op, dev->most_workspace, &workspace, &name);
    if (!is_ready(prepared) && !r.last)
        MPL_TRY(mpl_resample_new(ctx, g, op, &prepared->resample, &workspace, &name));
    if (!is_ready(prepared) && !r.last)
        MPL_TRY(mpl_halves_new(dev, &mpl_backend_cpu, MPL_HALVES_PIECE, g, op, &prepared->halves,
                               &workspace, &name));
    if (r.layout != MPL_PLAIN && !is_ready(prepared) && !is_flat(g, op, r.layout))
        MPL_FAIL(ctx, MPL_EUNAVAIL, "operation '%.100s' (%s): oneDNN has nothing for channels %s",
                 g->op_name[op], mpl_op_table[g->op_kind[op]].name,
                 r.layout == MPL_LAST ? "last" : "in blocks");
    *workspace_bytes = is_ready(prepared) ? workspace : mpl_eval_workspace(g, op);
    if (*workspace_bytes > dev->most_workspace)
        MPL_FAIL(ctx, MPL_EUNAVAIL,
                 "operation '%.100s' (%s): nothing computes it in %" PRIu64 " bytes of workspace",
                 g->op_name[op], mpl_op_table[g->op_kind[op]].name, dev->most_workspace);
    if (how != NULL)
        *how = name;
    *out = prepared, prepared = NULL;
out:
    recipe_fini(dev, &r);
    release(dev, prepared);
    return st;
}

/* *out is NULL if no kernel takes the operands as they lie. */
static mpl_status prepare_strided(mpl_device *dev, const mpl_graph *g, mpl_op op,
                                  const int64_t *const *stride, mpl_prepared **out,
                                  uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_prepared *prepared = NULL;
    const char *name = NULL;
    uint64_t workspace = 0;
    mpl_cpu_recipe r;

    *out = NULL;
    MPL_TRY(recipe_init(dev, g, op, stride, &r));
    MPL_TRY(mpl_new(dev->ctx, prepared, 1));
    if (!r.blocked && meets_concat(g, op)) /* blocks inside a concat are copied */
        MPL_TRY(prepare_concats(dev, &r, prepared, &workspace, &name));
    if (!is_ready(prepared))
        goto out;
    *workspace_bytes = workspace;
    if (how != NULL)
        *how = name;
    *out = prepared, prepared = NULL;
out:
    recipe_fini(dev, &r);
    release(dev, prepared);
    return st;
}

static uint64_t packed_bytes(const mpl_prepared *prepared)
{
    return prepared->halves != NULL   ? mpl_halves_packed_bytes(prepared->halves)
           : prepared->quant != NULL  ? mpl_cpu_quant_packed_bytes(prepared->quant)
           : prepared->panels != NULL ? mpl_panels_packed_bytes(prepared->panels)
           : prepared->images != NULL ? mpl_images_packed_bytes(prepared->images)
                                      : mpl_cpu_primitives_packed_bytes(prepared->primitive);
}

static mpl_status run_op(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    if (prepared->copy) {
        memmove(call->out[0].data, call->in[0].data,
                call->graph->value_bytes[call->graph->op_out[call->graph->op_out_begin[call->op]]]);
        return MPL_OK;
    }
    if (prepared->chain != NULL) {
        mpl_chain_run(prepared->chain, call, dev->n_threads);
        return MPL_OK;
    }
    if (prepared->normal) {
        mpl_normal_run(call, dev->n_threads);
        return MPL_OK;
    }
    if (prepared->halves != NULL)
        return mpl_halves_run(dev, prepared->halves, call);
    if (prepared->quant != NULL)
        return mpl_cpu_quant_run(dev->ctx, dev->library->stream, prepared->quant, call,
                                 dev->n_threads);
    if (prepared->panels != NULL) {
        mpl_panels_run(prepared->panels, call, dev->n_threads);
        return MPL_OK;
    }
    if (prepared->rescale != NULL)
        return prepared->rescale(dev->ctx, call);
    if (prepared->resample != NULL)
        return mpl_resample_run(dev->ctx, prepared->resample, call);
    if (prepared->images != NULL) {
        mpl_images_run(prepared->images, call);
        return MPL_OK;
    }
    if (prepared->primitive == NULL)
        return mpl_eval(dev->ctx, call);
    omp_set_num_threads((int)dev->n_threads);
    return mpl_cpu_primitives_run(dev, dev->library->stream, prepared->primitive, call);
}

static mpl_status wait(mpl_device *dev)
{
    return mpl_cpu_status(dev, dnnl_stream_wait(dev->library->stream), "waiting for", "stream");
}

static void limit_workspace(mpl_device *dev, uint64_t bytes)
{
    dev->most_workspace = bytes;
}

#define TEXT(x)    #x
#define TEXT_OF(x) TEXT(x)

const mpl_backend mpl_backend_cpu = {
    .name = "cpu",
    .about = "oneDNN " TEXT_OF(DNNL_VERSION_MAJOR) "." TEXT_OF(DNNL_VERSION_MINOR) "." TEXT_OF(
        DNNL_VERSION_PATCH),
    .align = 64,
    .strided = true,
    .lays_channels_last = true,
    .open = open_device,
    .close = close_device,
    MPL_HOST_MEMORY,
    .prepare = prepare,
    .prepare_strided = prepare_strided,
    .release = release,
    .packed_bytes = packed_bytes,
    .limit_workspace = limit_workspace,
    .run_op = run_op,
    .wait = wait,
    .share = share,
};
