/* export_onnx.c -- graphs as ONNX models, and plans in the metadata of a model.
 *
 * ONNX Runtime shows ModelProto.metadata_props as the custom metadata of a session's model. Every
 * key begins with "memplan.":
 *     memplan.schema        1
 *     memplan.planner       as in the row
 *     memplan.arena_bytes   size of the arena of the values
 *     memplan.offsets       JSON: the name of each value in an arena with [offset, bytes], and the
 *                           memory as a third number if there are several. A view has the place of
 *                           its storage. Values that loops and branches move are absent; their
 *                           bindings are in the plan
 *     memplan.plan          the whole plan file; memplan reads it from the model as a plan */
#include <stdlib.h>
#include <unistd.h>

#include "harness/job/measure.h"
#include "harness/export/export.h"

#define PREFIX "memplan."

typedef struct notes {
    uint32_t n;
    mpl_onnx_note item[5];
    char arena[24];
    char *offsets; /* of the C library */
    char *plan;
} notes;

mpl_status mpl_export_offsets(mpl_ctx *ctx, const mpl_export *what, FILE *to)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = what->job->source.graph;
    const char *before = "";
    char *quoted = NULL;

    fputc('{', to);
    for (mpl_value v = 0; v < g->n_values; v++) {
        const mpl_value_map *map = what->job->map;
        mpl_buffer b = map->value_buffer[v];
        uint64_t at;

        if (b == MPL_NONE)
            continue;
        at = what->plan->offset[b];
        if (map->value_buffers != NULL)
            at = what->plan->offset[map->value_buffer[map->value_root[v]]] + map->value_offset[v];
        MPL_TRY(mpl_json_quote(ctx, g->value_name[v], &quoted));
        fprintf(to, "%s%s:[%" PRIu64 ",%" PRIu64, before, quoted, at, g->value_bytes[v]);
        if (what->plan->spread.n > 0)
            fprintf(to, ",%" PRIu32, what->plan->spread.memory[b]);
        fputc(']', to);
        before = ",";
        mpl_free(ctx, quoted);
        quoted = NULL;
    }
    fputc('}', to);
out:
    mpl_free(ctx, quoted);
    return st;
}

static void add_note(notes *list, const char *key, const char *value)
{
    list->item[list->n++] = (mpl_onnx_note){key, value};
}

/* Makes no notes without a plan. */
static mpl_status make_notes(mpl_ctx *ctx, const mpl_export *what, notes *list)
{
    mpl_status st = MPL_OK;
    char *fields = NULL;
    FILE *stream = NULL;
    size_t size;

    if (what->plan == NULL)
        return MPL_OK;
    MPL_TRY(mpl_record_write(ctx, what->row, &fields));
    MPL_TRY(mpl_job_add_members(ctx, what->job, &fields));
    MPL_TRY(mpl_plan_text(ctx, what->job->problem, what->plan, fields, &list->plan));
    MPL_TRY((stream = open_memstream(&list->offsets, &size)) != NULL ? MPL_OK : MPL_EMEM);
    MPL_TRY(mpl_export_offsets(ctx, what, stream));
    st = fclose(stream) == 0 ? MPL_OK : MPL_EMEM;
    stream = NULL;
    MPL_TRY(st);
    snprintf(list->arena, sizeof list->arena, "%" PRIu64, what->plan->pool_bytes[0]);
    add_note(list, PREFIX "schema", "1");
    if (!mpl_record_is_null(what->row, MPL_FIELD_planner))
        add_note(list, PREFIX "planner", mpl_record_get_text(what->row, MPL_FIELD_planner));
    add_note(list, PREFIX "arena_bytes", list->arena);
    add_note(list, PREFIX "offsets", list->offsets);
    add_note(list, MPL_PLAN_NOTE, list->plan);
out:
    if (stream != NULL)
        fclose(stream);
    mpl_free(ctx, fields);
    return st;
}

static void free_notes(mpl_ctx *ctx, notes *list)
{
    free(list->offsets);
    mpl_free(ctx, list->plan);
}

typedef struct source_of_weights {
    const mpl_graph *g;
    mpl_exec_options options;
} source_of_weights;

static mpl_status fill(void *arg, mpl_value v, void *data)
{
    const source_of_weights *from = arg;

    mpl_exec_make_weight(from->g, &from->options, v, data);
    return MPL_OK;
}

mpl_status mpl_export_onnx(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    mpl_status st = MPL_OK;
    source_of_weights from = {.g = what->job->source.graph};
    notes list = {0};

    MPL_TRY(mpl_measure_options(ctx, what->options, &from.options));
    MPL_TRY(make_notes(ctx, what, &list));
    MPL_TRY(mpl_onnx_write(ctx, path, from.g, &(mpl_onnx_weights){fill, &from}, list.n, list.item));
out:
    free_notes(ctx, &list);
    return st;
}

mpl_status mpl_export_onnx_metadata(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    mpl_status st = MPL_OK;
    const char *from = what->job->text;
    notes list = {0};

    if (access(from, F_OK) != 0)
        MPL_FAIL(
            ctx, MPL_EINPUT,
            "export onnx-metadata: %.200s is no ONNX file; --format onnx makes one of any graph",
            from);
    MPL_TRY(make_notes(ctx, what, &list));
    MPL_TRY(mpl_onnx_annotate(ctx, from, path, PREFIX, list.n, list.item));
out:
    free_notes(ctx, &list);
    return st;
}
