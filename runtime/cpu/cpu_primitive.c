/* cpu_primitive.c -- oneDNN's primitives: made from recipes, their weights reordered once, and run.
 *
 * Primitives and their memory objects are made once; a run only sets their pointers. */
#include <float.h>
#include <math.h>

#include "runtime/cpu/cpu_priv.h"
#include "runtime/cpu/host_priv.h"
#include "runtime/cpu/loops/chain.h"
#include "runtime/cpu/loops/chain_priv.h"

struct mpl_cpu_primitive {
    dnnl_primitive_t primitive;
    int64_t n_images; /* runs of the primitive; each argument advances a step between them */
    uint64_t *step;   /* [n_args] [byte] */
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
    int64_t n_made;          /* elements of output 0 from one run of the primitive */
    mpl_cpu_primitive *next; /* the operation's next one, or NULL */
};

mpl_status mpl_cpu_status(mpl_device *dev, dnnl_status_t code, const char *what, const char *name)
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

static void free_one(mpl_device *dev, mpl_cpu_primitive *primitive)
{
    for (int i = 0; i < primitive->n_args && primitive->arg != NULL; i++)
        if (primitive->arg[i].memory != NULL)
            dnnl_memory_destroy(primitive->arg[i].memory);
    if (primitive->primitive != NULL)
        dnnl_primitive_destroy(primitive->primitive);
    if (primitive->pack != NULL)
        dnnl_primitive_destroy(primitive->pack);
    if (primitive->unpacked != NULL)
        dnnl_memory_destroy(primitive->unpacked);
    if (primitive->packed != NULL)
        dnnl_memory_destroy(primitive->packed);
    mpl_free_each(dev->ctx, primitive->step, primitive->arg, primitive->source, primitive);
}

void mpl_cpu_primitives_free(mpl_device *dev, mpl_cpu_primitive *first)
{
    while (first != NULL) {
        mpl_cpu_primitive *next = first->next;

        free_one(dev, first);
        first = next;
    }
}

/* The reorder of input `i` from the weight's layout to `to`, and memory for it. */
static mpl_status make_packed(mpl_device *dev, mpl_cpu_recipe *recipe, mpl_cpu_primitive *primitive,
                              uint32_t i, const dnnl_memory_desc_t *to)
{
    mpl_status st = MPL_OK;
    const char *name = recipe->g->op_name[recipe->op];
    dnnl_primitive_desc_t pd = NULL;

    primitive->packed_in = i;
    MPL_TRY(mpl_cpu_status(dev,
                           dnnl_memory_create(&primitive->unpacked, &recipe->packed_from,
                                              recipe->engine, DNNL_MEMORY_NONE),
                           "preparing", name));
    MPL_TRY(mpl_cpu_status(
        dev, dnnl_memory_create(&primitive->packed, to, recipe->engine, DNNL_MEMORY_ALLOCATE),
        "preparing", name));
    MPL_TRY(mpl_cpu_status(dev,
                           dnnl_reorder_primitive_desc_create(
                               &pd, &recipe->packed_from, recipe->engine, to, recipe->engine, NULL),
                           "preparing", name));
    MPL_TRY(mpl_cpu_status(dev, dnnl_primitive_create(&primitive->pack, pd), "preparing", name));
out:
    if (pd != NULL)
        dnnl_primitive_desc_destroy(pd);
    return st;
}

/* Distance of each argument from image to image. */
static mpl_status make_steps(mpl_device *dev, const mpl_cpu_recipe *recipe,
                             mpl_cpu_primitive *primitive)
{
    const mpl_graph *g = recipe->g;

    primitive->n_images = 1;
    MPL_PASS(mpl_new(dev->ctx, primitive->step, (size_t)primitive->n_args));
    for (int i = 0; i < primitive->n_args && recipe->image != NULL; i++) {
        const mpl_cpu_arg *arg = &primitive->source[i];
        uint32_t k = arg->from == MPL_FROM_IN ? arg->index : recipe->n_in + arg->index;
        mpl_value v;

        if ((arg->from != MPL_FROM_IN && arg->from != MPL_FROM_OUT) || recipe->image[k].rank == 0)
            continue;
        v = arg->from == MPL_FROM_IN ? g->op_in[g->op_in_begin[recipe->op] + k]
                                     : g->op_out[g->op_out_begin[recipe->op] + arg->index];
        primitive->n_images = g->value_shape[v].dim[0];
        primitive->step[i] = recipe->stride != NULL && recipe->stride[k] != NULL
                                 ? (uint64_t)recipe->stride[k][0] * sizeof(float)
                                 : g->value_bytes[v] / (uint64_t)primitive->n_images;
    }
    return MPL_OK;
}

/* The primitive and its memory objects from a described recipe. Takes over its args. */
static mpl_status make_primitive(mpl_device *dev, mpl_cpu_recipe *recipe,
                                 mpl_cpu_primitive *primitive, uint64_t *workspace_bytes,
                                 const char **how)
{
    const char *name = recipe->g->op_name[recipe->op];
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(recipe->pd, dnnl_query_scratchpad_md, 0);
    const_dnnl_primitive_desc_t made;

    uint64_t bytes = scratch != NULL ? dnnl_memory_desc_get_size(scratch) : 0;

    *workspace_bytes = mpl_max_u64(*workspace_bytes, bytes);
    primitive->begin = recipe->begin;
    primitive->finish = recipe->finish;
    primitive->drops_nan = recipe->drops_nan;
    primitive->drops_infinity = recipe->drops_infinity;
    primitive->activation = recipe->activation;
    if (bytes > 0)
        recipe->arg[recipe->n_args++] =
            (mpl_cpu_arg){DNNL_ARG_SCRATCHPAD, *scratch, MPL_FROM_WORKSPACE, 0};
    MPL_PASS(mpl_cpu_status(dev, dnnl_primitive_create(&primitive->primitive, recipe->pd),
                            "preparing", name));
    MPL_PASS(mpl_new(dev->ctx, primitive->arg, recipe->n_args));
    primitive->source = recipe->arg, recipe->arg = NULL;
    primitive->n_args = (int)recipe->n_args;
    for (int i = 0; i < primitive->n_args; i++) {
        primitive->arg[i].arg = primitive->source[i].name;
        MPL_PASS(
            mpl_cpu_status(dev,
                           dnnl_memory_create(&primitive->arg[i].memory, &primitive->source[i].md,
                                              recipe->engine, DNNL_MEMORY_NONE),
                           "preparing", name));
    }
    MPL_PASS(make_steps(dev, recipe, primitive));
    primitive->n_made = mpl_count(recipe->out[0]);
    for (int i = 0; i < primitive->n_args; i++)
        if (primitive->source[i].from == MPL_FROM_PACKED)
            MPL_PASS(make_packed(dev, recipe, primitive, primitive->source[i].index,
                                 &primitive->source[i].md));
    if (how != NULL) {
        MPL_PASS(mpl_cpu_status(dev, dnnl_primitive_get_primitive_desc(primitive->primitive, &made),
                                "asking", name));
        MPL_PASS(mpl_cpu_status(dev,
                                dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, how),
                                "asking", name));
    }
    return MPL_OK;
}

static void describe(mpl_cpu_recipe *recipe)
{
    mpl_op_kind kind = (mpl_op_kind)recipe->g->op_kind[recipe->op];
    mpl_cpu_describer *how = mpl_cpu_forward(kind);

    if (how == NULL)
        how = mpl_cpu_gradient(kind);
    if (how != NULL)
        how(recipe);
}

mpl_status mpl_cpu_primitives_new(mpl_device *dev, mpl_cpu_recipe *recipe, mpl_cpu_primitive **out,
                                  uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_cpu_primitive *first = NULL, **last = &first;
    const char *name;
    uint64_t workspace = 0;

    do {
        MPL_TRY(mpl_new(dev->ctx, recipe->arg, (size_t)recipe->n_in + recipe->n_out + 2));
        recipe->n_args = 0;
        recipe->more = false;
        recipe->begin = recipe->finish = NULL;
        recipe->drops_nan = recipe->drops_infinity = false;
        recipe->activation = MPL_ACT_NONE;
        describe(recipe);
        if (recipe->pd == NULL)
            goto out;
        MPL_TRY(mpl_new(dev->ctx, *last, 1));
        MPL_TRY(make_primitive(dev, recipe, *last, &workspace, recipe->stage == 0 ? &name : NULL));
        dnnl_primitive_desc_destroy(recipe->pd);
        recipe->pd = NULL;
        last = &(*last)->next;
        recipe->stage++;
    } while (recipe->more);
    *out = first, first = NULL;
    *workspace_bytes = workspace;
    *how = name;
out:
    if (recipe->pd != NULL)
        dnnl_primitive_desc_destroy(recipe->pd);
    recipe->pd = NULL;
    mpl_free(dev->ctx, recipe->arg);
    recipe->arg = NULL;
    mpl_cpu_primitives_free(dev, first);
    return st;
}

/* Reorders the weight, once, to the layout that the primitive asks for. */
static mpl_status pack(mpl_device *dev, dnnl_stream_t stream, mpl_cpu_primitive *primitive,
                       const mpl_op_call *call)
{
    dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, primitive->unpacked},
                             {DNNL_ARG_TO, primitive->packed}};
    const char *name = call->graph->op_name[call->op];

    MPL_PASS(mpl_cpu_status(dev,
                            dnnl_memory_set_data_handle_v2(
                                primitive->unpacked, call->in[primitive->packed_in].data, stream),
                            "running", name));
    MPL_PASS(mpl_cpu_status(dev, dnnl_primitive_execute(primitive->pack, stream, 2, arg), "running",
                            name));
    primitive->is_packed = true;
    return MPL_OK;
}

static void *packed_data(const mpl_cpu_primitive *primitive)
{
    void *data = NULL;

    dnnl_memory_get_data_handle(primitive->packed, &data);
    return data;
}

uint64_t mpl_cpu_primitives_packed_bytes(const mpl_cpu_primitive *first)
{
    uint64_t sum = 0;

    for (const mpl_cpu_primitive *primitive = first; primitive != NULL;
         primitive = primitive->next) {
        const dnnl_memory_desc_t *md;

        if (primitive->packed != NULL &&
            dnnl_memory_get_memory_desc(primitive->packed, &md) == dnnl_success)
            sum += dnnl_memory_desc_get_size(md);
    }
    return sum;
}

static mpl_status run_primitive(mpl_device *dev, dnnl_stream_t stream, mpl_cpu_primitive *primitive,
                                const mpl_op_call *call, int64_t image)
{
    const char *name = call->graph->op_name[call->op];
    float *made = NULL;

    if (primitive->pack != NULL && !primitive->is_packed)
        MPL_PASS(pack(dev, stream, primitive, call));
    for (int i = 0; i < primitive->n_args; i++) {
        const mpl_cpu_arg *arg = &primitive->source[i];
        void *data = arg->from == MPL_FROM_IN       ? call->in[arg->index].data
                     : arg->from == MPL_FROM_OUT    ? call->out[arg->index].data
                     : arg->from == MPL_FROM_PACKED ? packed_data(primitive)
                                                    : call->workspace;

        if (image > 0)
            data = (char *)data + (uint64_t)image * primitive->step[i];
        if (arg->from == MPL_FROM_OUT)
            made = data;
        MPL_PASS(mpl_cpu_status(
            dev, dnnl_memory_set_data_handle_v2(primitive->arg[i].memory, data, stream), "running",
            name));
    }
    MPL_PASS(mpl_cpu_status(
        dev,
        dnnl_primitive_execute(primitive->primitive, stream, primitive->n_args, primitive->arg),
        "running", name));
    if (primitive->activation != MPL_ACT_NONE)
        mpl_chain_activate(primitive->activation, made, primitive->n_made, dev->n_threads);
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
static mpl_status run_image(mpl_device *dev, dnnl_stream_t stream, mpl_cpu_primitive *primitive,
                            const mpl_op_call *call, int64_t image)
{
    mpl_tensor in = call->in[0], out = call->out[0];
    mpl_op_call loops = *call;

    if (primitive->n_images > 1)
        in.shape.dim[0] = out.shape.dim[0] = 1;
    in.data = (char *)in.data + (uint64_t)image * primitive->step[0];
    out.data = (char *)out.data + (uint64_t)image * primitive->step[1];
    if (!has_special(in.data, mpl_count(&in.shape),
                     primitive->drops_infinity ? -FLT_MAX : -INFINITY))
        return run_primitive(dev, stream, primitive, call, image);
    loops.in = &in, loops.out = &out;
    loops.n_in = loops.n_out = 1;
    return mpl_eval(dev->ctx, &loops);
}

mpl_status mpl_cpu_primitives_run(mpl_device *dev, dnnl_stream_t stream, mpl_cpu_primitive *first,
                                  const mpl_op_call *call)
{
    for (mpl_cpu_primitive *primitive = first; primitive != NULL; primitive = primitive->next) {
        if (primitive->begin != NULL)
            primitive->begin(call);
        for (int64_t i = 0; i < primitive->n_images; i++)
            MPL_PASS(primitive->drops_nan ? run_image(dev, stream, primitive, call, i)
                                          : run_primitive(dev, stream, primitive, call, i));
        if (primitive->finish != NULL)
            primitive->finish(call);
    }
    return MPL_OK;
}
