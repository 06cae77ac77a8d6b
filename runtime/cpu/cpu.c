/* cpu.c -- the backend `cpu`: oneDNN on the graph's layouts, with a fixed number of threads, so
 * that runs repeat bit for bit.
 *
 * Primitives and their memory objects are made once, by prepare; a run only sets their pointers.
 * Scratchpads are workspaces of the caller. 16-bit floats are computed in f32 (halves.h). What
 * oneDNN lacks, and other types, run by the plain loops of graphs/ops on one thread, named "ref
 * loops". oneDNN's matrix product allocates pack buffers of its own during a call. */
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

#include <float.h>
#include <math.h>

extern const mpl_backend mpl_backend_cpu;
void omp_set_num_threads(int n); /* of libgomp, which oneDNN uses; its header may be absent */

struct mpl_library {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
};

struct mpl_prepared {
    dnnl_primitive_t primitive; /* NULL: copies output 0's bytes, or runs loops */
    bool copy, normal;
    mpl_chain *chain;       /* or NULL */
    mpl_images *images;     /* or NULL */
    mpl_halves *halves;     /* or NULL */
    mpl_cpu_quant *quant;   /* or NULL */
    mpl_panels *panels;     /* or NULL */
    mpl_rescale *rescale;   /* or NULL */
    mpl_resample *resample; /* or NULL */
    int64_t n_images;       /* runs of the primitive; each argument advances a step between them */
    uint64_t *step;         /* [n_args] [byte] */
    int n_args;
    dnnl_exec_arg_t *arg;  /* [n_args] */
    mpl_cpu_arg *source;   /* [n_args] */
    dnnl_primitive_t pack; /* reorders a weight once; or NULL */
    dnnl_memory_t unpacked, packed;
    uint32_t packed_in; /* index of that input */
    bool is_packed;
    void (*begin)(const mpl_op_call *call);  /* before the primitive, or NULL */
    void (*finish)(const mpl_op_call *call); /* after the primitive, or NULL */
    bool drops_nan, drops_infinity;          /* as in the recipe */
    mpl_activation activation;               /* applied to the primitive's result */
    int64_t n_made;            /* elements of output 0 from one run of the primitive */
    struct mpl_prepared *next; /* the operation's next primitive, or NULL */
};

static mpl_status status_of(mpl_device *dev, dnnl_status_t code, const char *what, const char *name)
{
    static const char *const text[] = {"success",       "out of memory",  "invalid arguments",
                                       "unimplemented", "iterator ended", "runtime error",
                                       "not required"};

    if (code == dnnl_success)
        return MPL_OK;
    return MPL_ERROR(dev->ctx, code == dnnl_out_of_memory ? MPL_EMEM : MPL_EUNAVAIL,
                     "oneDNN: %s '%s': %s", what, name,
                     (unsigned)code < sizeof text / sizeof *text ? text[code] : "?");
}

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
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_vnni); /* 2.6 crashes on small shapes by AMX */
    MPL_TRY(status_of(dev, dnnl_engine_create(&dev->library->engine, dnnl_cpu, 0), "opening",
                      "engine"));
    MPL_TRY(status_of(
        dev,
        dnnl_stream_create(&dev->library->stream, dev->library->engine, dnnl_stream_default_flags),
        "opening", "stream"));
    MPL_TRY(
        status_of(dev, dnnl_primitive_attr_create(&dev->library->attr), "opening", "attributes"));
    MPL_TRY(status_of(
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
    MPL_TRY(status_of(
        view,
        dnnl_stream_create(&view->library->stream, dev->library->engine, dnnl_stream_default_flags),
        "opening", "stream"));
    *out = view, view = NULL;
out:
    close_device(view);
    return st;
}

static void release_one(mpl_device *dev, mpl_prepared *prepared)
{
    for (int i = 0; i < prepared->n_args && prepared->arg != NULL; i++)
        if (prepared->arg[i].memory != NULL)
            dnnl_memory_destroy(prepared->arg[i].memory);
    if (prepared->primitive != NULL)
        dnnl_primitive_destroy(prepared->primitive);
    if (prepared->pack != NULL)
        dnnl_primitive_destroy(prepared->pack);
    if (prepared->unpacked != NULL)
        dnnl_memory_destroy(prepared->unpacked);
    if (prepared->packed != NULL)
        dnnl_memory_destroy(prepared->packed);
    mpl_chain_free(dev->ctx, prepared->chain);
    mpl_images_free(dev->ctx, prepared->images);
    mpl_halves_free(dev, prepared->halves);
    mpl_cpu_quant_free(dev->ctx, prepared->quant);
    mpl_panels_free(dev->ctx, prepared->panels);
    mpl_resample_free(dev->ctx, prepared->resample);
    mpl_free_each(dev->ctx, prepared->step, prepared->arg, prepared->source, prepared);
}

static void release(mpl_device *dev, mpl_prepared *prepared)
{
    while (prepared != NULL) {
        mpl_prepared *next = prepared->next;

        release_one(dev, prepared);
        prepared = next;
    }
}

/* Shapes of the operands. False: not for oneDNN (a type other than f32, or no elements). */
static bool read_operands(mpl_cpu_recipe *r)
{
    const mpl_graph *g = r->g;

    for (uint32_t i = 0; i < r->n_in + r->n_out; i++) {
        bool is_in = i < r->n_in;
        mpl_value v = is_in ? g->op_in[g->op_in_begin[r->op] + i]
                            : g->op_out[g->op_out_begin[r->op] + i - r->n_in];

        if (v == MPL_NONE)
            continue;
        if (g->value_type[v] != MPL_TYPE_f32 || g->value_bytes[v] == 0)
            return false;
        if (is_in)
            r->in[i] = &g->value_shape[v];
        else
            r->out[i - r->n_in] = &g->value_shape[v];
    }
    return true;
}

/* The reorder of input `i` from the weight's layout to `to`, and memory for it. */
static mpl_status make_packed(mpl_device *dev, mpl_cpu_recipe *r, mpl_prepared *p, uint32_t i,
                              const dnnl_memory_desc_t *to)
{
    mpl_status st = MPL_OK;
    const char *name = r->g->op_name[r->op];
    dnnl_primitive_desc_t pd = NULL;

    p->packed_in = i;
    MPL_TRY(status_of(
        dev, dnnl_memory_create(&p->unpacked, &r->packed_from, r->engine, DNNL_MEMORY_NONE),
        "preparing", name));
    MPL_TRY(status_of(dev, dnnl_memory_create(&p->packed, to, r->engine, DNNL_MEMORY_ALLOCATE),
                      "preparing", name));
    MPL_TRY(status_of(
        dev,
        dnnl_reorder_primitive_desc_create(&pd, &r->packed_from, r->engine, to, r->engine, NULL),
        "preparing", name));
    MPL_TRY(status_of(dev, dnnl_primitive_create(&p->pack, pd), "preparing", name));
out:
    if (pd != NULL)
        dnnl_primitive_desc_destroy(pd);
    return st;
}

/* Distance of each argument from image to image. */
static mpl_status make_steps(mpl_device *dev, const mpl_cpu_recipe *r, mpl_prepared *p)
{
    const mpl_graph *g = r->g;

    p->n_images = 1;
    MPL_PASS(mpl_new(dev->ctx, p->step, (size_t)p->n_args));
    for (int i = 0; i < p->n_args && r->image != NULL; i++) {
        const mpl_cpu_arg *a = &p->source[i];
        uint32_t k = a->from == MPL_FROM_IN ? a->index : r->n_in + a->index;
        mpl_value v;

        if ((a->from != MPL_FROM_IN && a->from != MPL_FROM_OUT) || r->image[k].rank == 0)
            continue;
        v = a->from == MPL_FROM_IN ? g->op_in[g->op_in_begin[r->op] + k]
                                   : g->op_out[g->op_out_begin[r->op] + a->index];
        p->n_images = g->value_shape[v].dim[0];
        p->step[i] = r->stride != NULL && r->stride[k] != NULL
                         ? (uint64_t)r->stride[k][0] * sizeof(float)
                         : g->value_bytes[v] / (uint64_t)p->n_images;
    }
    return MPL_OK;
}

/* The primitive and its memory objects from a described recipe. Takes over its args. */
static mpl_status make_primitive(mpl_device *dev, mpl_cpu_recipe *r, mpl_prepared *p,
                                 uint64_t *workspace_bytes, const char **how)
{
    const char *name = r->g->op_name[r->op];
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(r->pd, dnnl_query_scratchpad_md, 0);
    const_dnnl_primitive_desc_t made;

    uint64_t bytes = scratch != NULL ? dnnl_memory_desc_get_size(scratch) : 0;

    *workspace_bytes = mpl_max_u64(*workspace_bytes, bytes);
    p->begin = r->begin;
    p->finish = r->finish;
    p->drops_nan = r->drops_nan;
    p->drops_infinity = r->drops_infinity;
    p->activation = r->activation;
    if (bytes > 0)
        r->arg[r->n_args++] = (mpl_cpu_arg){DNNL_ARG_SCRATCHPAD, *scratch, MPL_FROM_WORKSPACE, 0};
    MPL_PASS(status_of(dev, dnnl_primitive_create(&p->primitive, r->pd), "preparing", name));
    MPL_PASS(mpl_new(dev->ctx, p->arg, r->n_args));
    p->source = r->arg, r->arg = NULL;
    p->n_args = (int)r->n_args;
    for (int i = 0; i < p->n_args; i++) {
        p->arg[i].arg = p->source[i].name;
        MPL_PASS(status_of(
            dev,
            dnnl_memory_create(&p->arg[i].memory, &p->source[i].md, r->engine, DNNL_MEMORY_NONE),
            "preparing", name));
    }
    MPL_PASS(make_steps(dev, r, p));
    p->n_made = mpl_count(r->out[0]);
    for (int i = 0; i < p->n_args; i++)
        if (p->source[i].from == MPL_FROM_PACKED)
            MPL_PASS(make_packed(dev, r, p, p->source[i].index, &p->source[i].md));
    if (how != NULL) {
        MPL_PASS(
            status_of(dev, dnnl_primitive_get_primitive_desc(p->primitive, &made), "asking", name));
        MPL_PASS(status_of(dev, dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, how),
                           "asking", name));
    }
    return MPL_OK;
}

static void describe(mpl_cpu_recipe *r)
{
    mpl_op_kind kind = (mpl_op_kind)r->g->op_kind[r->op];
    mpl_cpu_describer *how = mpl_cpu_forward(kind);

    if (how == NULL)
        how = mpl_cpu_gradient(kind);
    if (how != NULL)
        how(r);
}

/* All primitives of an operation in turn. If oneDNN lacks one, none is made and p is unchanged. */
static mpl_status make_stages(mpl_device *dev, mpl_cpu_recipe *r, mpl_prepared *p,
                              uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_prepared *first = NULL, **last = &first;
    const char *name;
    uint64_t workspace = 0;

    do {
        MPL_TRY(mpl_new(dev->ctx, r->arg, (size_t)r->n_in + r->n_out + 2));
        r->n_args = 0;
        r->more = false;
        r->begin = r->finish = NULL;
        r->drops_nan = r->drops_infinity = false;
        r->activation = MPL_ACT_NONE;
        describe(r);
        if (r->pd == NULL)
            goto out;
        MPL_TRY(mpl_new(dev->ctx, *last, 1));
        MPL_TRY(make_primitive(dev, r, *last, &workspace, r->stage == 0 ? &name : NULL));
        dnnl_primitive_desc_destroy(r->pd);
        r->pd = NULL;
        last = &(*last)->next;
        r->stage++;
    } while (r->more);
    *p = *first;
    mpl_free(dev->ctx, first);
    first = NULL;
    *workspace_bytes = workspace;
    *how = name;
out:
    if (r->pd != NULL)
        dnnl_primitive_desc_destroy(r->pd);
    r->pd = NULL;
    mpl_free(dev->ctx, r->arg);
    r->arg = NULL;
    release(dev, first);
    return st;
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
                              const int64_t *const *stride, mpl_cpu_recipe *r)
{
    *r = (mpl_cpu_recipe){
        .g = g,
        .op = op,
        .n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
        .n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
        .stride = stride,
        .engine = dev->library->engine,
        .attr = dev->library->attr,
        .most_workspace = dev->most_workspace,
    };
    MPL_PASS(check_layout(dev->ctx, g, op, &r->layout));
    mpl_cpu_lay(r, r->layout);
    omp_set_num_threads((int)dev->n_threads); /* of the calling thread; primitives depend on it */
    MPL_PASS(mpl_new(dev->ctx, r->in, r->n_in));
    MPL_PASS(mpl_new(dev->ctx, r->out, r->n_out));
    return mpl_new(dev->ctx, r->mds, r->n_in);
}

static void recipe_fini(mpl_device *dev, mpl_cpu_recipe *r)
{
    mpl_free_each(dev->ctx, r->in, r->out, r->mds, r->image);
}

/* Whether p has an implementation. */
static bool is_ready(const mpl_prepared *p)
{
    return p->primitive != NULL || p->copy || p->normal || p->chain != NULL || p->images != NULL ||
           p->halves != NULL || p->quant != NULL || p->panels != NULL || p->rescale != NULL ||
           p->resample != NULL;
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
static bool take_one_image(mpl_cpu_recipe *r)
{
    const mpl_graph *g = r->g;
    uint32_t n = n_batched(g, r->op);
    int64_t batch = r->out[0]->rank > 1 ? r->out[0]->dim[0] : 0;
    int64_t axis = mpl_attr_int(g, r->op, MPL_ATTR_axis, 0);

    if (n == 0 || batch == 0 || r->n_out > 1 ||
        (g->op_kind[r->op] == MPL_OP_concat && (axis == 0 || axis + r->out[0]->rank == 0)))
        return false;
    for (uint32_t k = 0; k < r->n_in + r->n_out; k++) {
        const mpl_shape **s = k < r->n_in ? &r->in[k] : &r->out[k - r->n_in];
        const int64_t *stride = r->stride != NULL ? r->stride[k] : NULL;

        if (k >= n && k < r->n_in) {
            if (stride != NULL)
                return false;
            continue;
        }
        if (*s == NULL || (*s)->rank < 2 || (*s)->dim[0] != batch)
            return false;
        r->image[k] = **s;
        r->image[k].dim[0] = 1;
        if (stride != NULL && !is_piece(&r->image[k], stride))
            return false;
        *s = &r->image[k];
    }
    return true;
}

/* The implementation on operands of concats, and its *name; p is unchanged if there is none. */
static mpl_status prepare_concats(mpl_device *dev, mpl_cpu_recipe *r, mpl_prepared *p,
                                  uint64_t *workspace, const char **name)
{
    mpl_op_kind kind = (mpl_op_kind)r->g->op_kind[r->op];
    bool copies = kind == MPL_OP_concat || kind == MPL_OP_reorder;
    mpl_images_limits limits = {dev->n_threads, dev->most_workspace};

    if (r->last && !copies)
        MPL_PASS(
            mpl_images_new(dev->ctx, r->g, r->op, r->stride, &limits, &p->images, workspace, name));
    if (p->images == NULL &&
        (mpl_fused_arity(kind) > 0 || kind == MPL_OP_clip || kind == MPL_OP_fma))
        MPL_PASS(mpl_chain_new(dev->ctx, r->g, r->op, r->stride, r->last, &p->chain, name));
    if (p->images != NULL || p->chain != NULL || !read_operands(r))
        return MPL_OK;
    if (!copies &&
        (r->last || (r->out[0]->rank > 1 && r->out[0]->dim[0] == 1 && r->stride == NULL)))
        return MPL_OK;
    if (!(copies && (r->last || kind == MPL_OP_reorder))) {
        MPL_PASS(mpl_new(dev->ctx, r->image, (size_t)r->n_in + r->n_out));
        if (!take_one_image(r)) {
            mpl_free(dev->ctx, r->image);
            r->image = NULL;
            return MPL_OK;
        }
    }
    return make_stages(dev, r, p, workspace, name);
}

/* Whether images.h computes the operation better than oneDNN on channels-last images. In max pools,
 * oneDNN ignores NaNs; for averages of windows it has plain loops; filters of more than a
 * pixel, groups that are not depthwise, and what makes many channels of few it does less well. */
static bool prefers_images(const mpl_graph *g, mpl_op op)
{
    enum { LARGE = 24 * 24, FEW = 32 }; /* pairs of channels; channels */
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    int64_t groups = mpl_attr_int(g, op, MPL_ATTR_group, 1);
    const mpl_shape *f;

    if (!mpl_is_conv(kind))
        return kind == MPL_OP_batch_norm || kind == MPL_OP_max_pool || kind == MPL_OP_avg_pool ||
               kind == MPL_OP_global_max_pool;
    if (mpl_turns_layout(g, op)) /* oneDNN has reference loops alone */
        return true;
    f = &g->value_shape[mpl_op_input(g, op, mpl_fused_first(kind) + 1)];
    if (mpl_chain_widest() != MPL_CHAIN_AVX2 || f->rank != 4 ||
        mpl_attr_int(g, op, MPL_ATTR_way, 0) != 0)
        return false;
    if (groups > 1)
        return f->dim[0] > groups; /* oneDNN has depthwise ones */
    if (f->dim[2] * f->dim[3] == 1)
        return f->dim[1] <= FEW && f->dim[0] >= 3 * f->dim[1];
    return f->dim[0] * f->dim[1] >= LARGE;
}

static mpl_status prepare(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = dev->ctx;
    mpl_prepared *p = NULL;
    const char *name = MPL_HOW_LOOPS;
    uint64_t workspace = 0;
    mpl_images_limits limits = {dev->n_threads, dev->most_workspace};
    mpl_cpu_recipe r;

    MPL_TRY(recipe_init(dev, g, op, NULL, &r));
    MPL_TRY(mpl_new(ctx, p, 1));
    p->copy = copies_bytes(g, op);
    if (p->copy)
        name = MPL_HOW_COPY;
    else if (!r.blocked && g->op_kind[op] != MPL_OP_concat && meets_concat(g, op))
        MPL_TRY(prepare_concats(dev, &r, p, &workspace, &name));
    else if ((r.last || (r.blocked && !mpl_is_conv((mpl_op_kind)g->op_kind[op]))) &&
             prefers_images(g, op))
        MPL_TRY(mpl_images_new(ctx, g, op, NULL, &limits, &p->images, &workspace, &name));
    if (!is_ready(p))
        MPL_TRY(mpl_panels_new(ctx, g, op, &p->panels, &name));
    if (!is_ready(p) && r.layout == MPL_PLAIN)
        p->normal = mpl_normal_fits(g, op, &name);
    if (!is_ready(p))
        p->rescale = r.blocked ? mpl_join_of(g, op, &name) : mpl_thin_of(g, op, &name);
    if (!is_ready(p) && r.layout == MPL_PLAIN)
        p->rescale = mpl_planes_of(g, op, &name);
    if (!is_ready(p) && read_operands(&r))
        MPL_TRY(make_stages(dev, &r, p, &workspace, &name));
    if (!is_ready(p))
        MPL_TRY(mpl_chain_new(ctx, g, op, NULL, r.last, &p->chain, &name));
    if (!is_ready(p))
        MPL_TRY(mpl_cpu_quant_new(ctx, dev->library->engine, g, op, &p->quant, &workspace, &name));
    if (!is_ready(p) && !r.last)
        p->rescale = mpl_rescale_of(g, op, &name);
    if (!is_ready(p) && r.layout == MPL_PLAIN)
        p->rescale = mpl_roi_of(g, op, dev->most_workspace, &workspace, &name);
    if (!is_ready(p) && !r.last)
        MPL_TRY(mpl_resample_new(ctx, g, op, &p->resample, &workspace, &name));
    if (!is_ready(p) && !r.last)
        MPL_TRY(mpl_halves_new(dev, &mpl_backend_cpu, MPL_HALVES_PIECE, g, op, &p->halves,
                               &workspace, &name));
    if (r.layout != MPL_PLAIN && !is_ready(p) && !is_flat(g, op, r.layout))
        MPL_FAIL(ctx, MPL_EUNAVAIL, "operation '%.100s' (%s): oneDNN has nothing for channels %s",
                 g->op_name[op], mpl_op_table[g->op_kind[op]].name,
                 r.layout == MPL_LAST ? "last" : "in blocks");
    *workspace_bytes = is_ready(p) ? workspace : mpl_eval_workspace(g, op);
    if (*workspace_bytes > dev->most_workspace)
        MPL_FAIL(ctx, MPL_EUNAVAIL,
                 "operation '%.100s' (%s): nothing computes it in %" PRIu64 " bytes of workspace",
                 g->op_name[op], mpl_op_table[g->op_kind[op]].name, dev->most_workspace);
    if (how != NULL)
        *how = name;
    *out = p, p = NULL;
out:
    recipe_fini(dev, &r);
    release(dev, p);
    return st;
}

/* *out is NULL if no kernel takes the operands as they lie. */
static mpl_status prepare_strided(mpl_device *dev, const mpl_graph *g, mpl_op op,
                                  const int64_t *const *stride, mpl_prepared **out,
                                  uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_prepared *p = NULL;
    const char *name = NULL;
    uint64_t workspace = 0;
    mpl_cpu_recipe r;

    *out = NULL;
    MPL_TRY(recipe_init(dev, g, op, stride, &r));
    MPL_TRY(mpl_new(dev->ctx, p, 1));
    if (!r.blocked && meets_concat(g, op)) /* blocks inside a concat are copied */
        MPL_TRY(prepare_concats(dev, &r, p, &workspace, &name));
    if (!is_ready(p))
        goto out;
    *workspace_bytes = workspace;
    if (how != NULL)
        *how = name;
    *out = p, p = NULL;
out:
    recipe_fini(dev, &r);
    release(dev, p);
    return st;
}

/* Reorders the weight, once, to the layout that the primitive asks for. */
static mpl_status pack(mpl_device *dev, mpl_prepared *p, const mpl_op_call *call)
{
    dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, p->unpacked}, {DNNL_ARG_TO, p->packed}};
    const char *name = call->graph->op_name[call->op];

    MPL_PASS(status_of(dev,
                       dnnl_memory_set_data_handle_v2(p->unpacked, call->in[p->packed_in].data,
                                                      dev->library->stream),
                       "running", name));
    MPL_PASS(status_of(dev, dnnl_primitive_execute(p->pack, dev->library->stream, 2, arg),
                       "running", name));
    p->is_packed = true;
    return MPL_OK;
}

static void *packed_data(const mpl_prepared *p)
{
    void *data = NULL;

    dnnl_memory_get_data_handle(p->packed, &data);
    return data;
}

static uint64_t packed_bytes(const mpl_prepared *prepared)
{
    uint64_t sum = 0;

    for (const mpl_prepared *p = prepared; p != NULL; p = p->next) {
        const dnnl_memory_desc_t *md;

        sum += p->halves != NULL ? mpl_halves_packed_bytes(p->halves) : 0;
        sum += p->quant != NULL ? mpl_cpu_quant_packed_bytes(p->quant) : 0;
        sum += p->panels != NULL ? mpl_panels_packed_bytes(p->panels) : 0;
        sum += p->images != NULL ? mpl_images_packed_bytes(p->images) : 0;
        if (p->packed != NULL && dnnl_memory_get_memory_desc(p->packed, &md) == dnnl_success)
            sum += dnnl_memory_desc_get_size(md);
    }
    return sum;
}

static mpl_status run_primitive(mpl_device *dev, mpl_prepared *p, const mpl_op_call *call,
                                int64_t image)
{
    const char *name = call->graph->op_name[call->op];
    float *made = NULL;

    if (p->pack != NULL && !p->is_packed)
        MPL_PASS(pack(dev, p, call));
    for (int i = 0; i < p->n_args; i++) {
        const mpl_cpu_arg *s = &p->source[i];
        void *data = s->from == MPL_FROM_IN       ? call->in[s->index].data
                     : s->from == MPL_FROM_OUT    ? call->out[s->index].data
                     : s->from == MPL_FROM_PACKED ? packed_data(p)
                                                  : call->workspace;

        if (image > 0)
            data = (char *)data + (uint64_t)image * p->step[i];
        if (s->from == MPL_FROM_OUT)
            made = data;
        MPL_PASS(status_of(
            dev, dnnl_memory_set_data_handle_v2(p->arg[i].memory, data, dev->library->stream),
            "running", name));
    }
    MPL_PASS(status_of(
        dev, dnnl_primitive_execute(p->primitive, dev->library->stream, p->n_args, p->arg),
        "running", name));
    if (p->activation != MPL_ACT_NONE)
        mpl_chain_activate(p->activation, made, p->n_made, dev->n_threads);
    return MPL_OK;
}

/* Whether an element is a NaN, positive infinity or below `least`. */
static bool has_special(const float *x, int64_t n, float least)
{
    enum { AT_ONCE = 512 }; /* a constant count, so that compilers vectorise */
    unsigned any = 0;
    int64_t k = 0;

    for (; k + AT_ONCE <= n && any == 0; k += AT_ONCE)
        for (int64_t i = 0; i < AT_ONCE; i++)
            any |= !(x[k + i] >= least && x[k + i] < INFINITY);
    for (; k < n && any == 0; k++)
        any |= !(x[k] >= least && x[k] < INFINITY);
    return any != 0;
}

/* One image, or all, of an operation with drops_nan: by plain loops if NaNs may be lost. */
static mpl_status run_image(mpl_device *dev, mpl_prepared *p, const mpl_op_call *call,
                            int64_t image)
{
    mpl_tensor in = call->in[0], out = call->out[0];
    mpl_op_call loops = *call;

    if (p->n_images > 1)
        in.shape.dim[0] = out.shape.dim[0] = 1;
    in.data = (char *)in.data + (uint64_t)image * p->step[0];
    out.data = (char *)out.data + (uint64_t)image * p->step[1];
    if (!has_special(in.data, mpl_count(&in.shape), p->drops_infinity ? -FLT_MAX : -INFINITY))
        return run_primitive(dev, p, call, image);
    loops.in = &in, loops.out = &out;
    loops.n_in = loops.n_out = 1;
    return mpl_eval(dev->ctx, &loops);
}

static mpl_status run_op(mpl_device *dev, mpl_prepared *p, const mpl_op_call *call)
{
    if (p->copy) {
        memmove(call->out[0].data, call->in[0].data,
                call->graph->value_bytes[call->graph->op_out[call->graph->op_out_begin[call->op]]]);
        return MPL_OK;
    }
    if (p->chain != NULL) {
        mpl_chain_run(p->chain, call, dev->n_threads);
        return MPL_OK;
    }
    if (p->normal) {
        mpl_normal_run(call, dev->n_threads);
        return MPL_OK;
    }
    if (p->halves != NULL)
        return mpl_halves_run(dev, p->halves, call);
    if (p->quant != NULL)
        return mpl_cpu_quant_run(dev->ctx, dev->library->stream, p->quant, call, dev->n_threads);
    if (p->panels != NULL) {
        mpl_panels_run(p->panels, call, dev->n_threads);
        return MPL_OK;
    }
    if (p->rescale != NULL)
        return p->rescale(dev->ctx, call);
    if (p->resample != NULL)
        return mpl_resample_run(dev->ctx, p->resample, call);
    if (p->images != NULL) {
        mpl_images_run(p->images, call);
        return MPL_OK;
    }
    if (p->primitive == NULL)
        return mpl_eval(dev->ctx, call);
    omp_set_num_threads((int)dev->n_threads);
    for (; p != NULL; p = p->next) {
        mpl_status st = MPL_OK;

        if (p->begin != NULL)
            p->begin(call);
        for (int64_t i = 0; i < p->n_images && st == MPL_OK; i++)
            st = p->drops_nan ? run_image(dev, p, call, i) : run_primitive(dev, p, call, i);
        if (st != MPL_OK)
            return st;
        if (p->finish != NULL)
            p->finish(call);
    }
    return MPL_OK;
}

static mpl_status wait(mpl_device *dev)
{
    return status_of(dev, dnnl_stream_wait(dev->library->stream), "waiting for", "stream");
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
