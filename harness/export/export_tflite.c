/* export_tflite.c -- a .tflite model with a plan's offsets in its metadata, as TensorFlow Lite
 * Micro takes them. What is planned are its planner's own tensors and units (mpl_tflite_problem),
 * not the operations of the graph. */
#include "graphs/core/file.h"
#include "harness/export/export.h"

extern const mpl_planner mpl_planner_tflm_greedy;

typedef struct model {
    const char *path;
    char *data;
    size_t size;
    uint32_t *tensor; /* number of each buffer */
} model;

static mpl_status open_tensors(void *arg, mpl_ctx *ctx, const mpl_options *options,
                               mpl_problem **list)
{
    model *m = arg;

    (void)options;
    mpl_free(ctx, m->tensor);
    m->tensor = NULL;
    return mpl_tflite_problem(ctx, m->path, m->data, m->size, list, &m->tensor);
}

/* The arena when TensorFlow Lite Micro's planner places all, or only scratch around our tensors. */
static mpl_status run_planner(mpl_ctx *ctx, const mpl_made *made, const uint32_t *tensor,
                              uint64_t *bytes)
{
    mpl_status st = MPL_OK;
    mpl_problem p = *made->job.problem;
    mpl_plan *own = NULL;
    uint64_t *fixed = NULL;
    mpl_run run;

    MPL_TRY(mpl_new(ctx, fixed, p.n));
    for (mpl_buffer b = 0; b < p.n; b++)
        fixed[b] = tensor != NULL && tensor[b] != MPL_NONE ? made->plan->offset[b] : MPL_UNFIXED;
    p.fixed = fixed;
    mpl_run_init(&run, ctx);
    MPL_TRY(mpl_planner_run(&mpl_planner_tflm_greedy, &run, &p, &own));
    *bytes = own->peak_bytes;
out:
    mpl_free(ctx, fixed);
    mpl_plan_free(ctx, own);
    return st;
}

/* Prints the bytes that the run will need, and those of TensorFlow Lite Micro's own planner. */
static mpl_status say(mpl_ctx *ctx, const mpl_made *made, const uint32_t *tensor)
{
    uint64_t with = 0, without = 0;

    MPL_PASS(run_planner(ctx, made, tensor, &with));
    MPL_PASS(run_planner(ctx, made, NULL, &without));
    fprintf(stderr,
            "memplan: export tflite: head of the arena: %" PRIu64 " bytes%s; by TensorFlow Lite "
            "Micro's own planner %" PRIu64 "\n",
            with, with == made->plan->bound_bytes ? ", the least" : "", without);
    return MPL_OK;
}

static mpl_status write_bytes(mpl_ctx *ctx, const char *path, const uint8_t *text, size_t size)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fwrite(text, 1, size, file.stream);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

mpl_status mpl_export_tflite(mpl_ctx *ctx, mpl_options *options, const char *path)
{
    mpl_status st = MPL_OK;
    model m = {.path = options->args.n > 0 ? options->args.item[0] : NULL};
    const mpl_opener opener = {open_tensors, &m};
    mpl_made made = {0};
    uint8_t *text = NULL;
    size_t size;

    if (m.path == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "export tflite: the model to write offsets into is missing");
    MPL_TRY(mpl_file_read(ctx, m.path, &m.data, &m.size));
    options->opener = &opener;
    MPL_TRY(mpl_make(ctx, options, m.path, MPL_TO_PLAN, &made));
    if (made.plan->spread.n > 0)
        MPL_FAIL(ctx, MPL_EINPUT, "export tflite: the plan has several arenas, and the format one");
    MPL_TRY(mpl_tflite_place(ctx, m.path, m.data, m.size, made.plan->n, m.tensor, made.plan->offset,
                             &text, &size));
    MPL_TRY(write_bytes(ctx, path, text, size));
    MPL_TRY(say(ctx, &made, m.tensor));
out:
    options->opener = NULL;
    mpl_free_each(ctx, m.data, m.tensor, text);
    mpl_made_fini(ctx, &made);
    return st;
}
