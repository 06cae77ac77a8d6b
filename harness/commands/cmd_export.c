/* cmd_export.c -- memplan export: graphs, buffers and plans in formats of other tools. */
#include "graphs/core/file.h"
#include "graphs/io/lists/lists.h"
#include "harness/cli/command.h"
#include "harness/export/export.h"
#include "harness/gate/gate.h"
#include "harness/view/live_sets.h"
#include "harness/shapes/template_job.h"
#include "planners/place/handover.h"

static mpl_status write_csv(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    return mpl_csv_write(ctx, path, what->job->problem,
                         what->plan != NULL ? what->plan->offset : NULL);
}

static mpl_status write_interference(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    return mpl_interference_write(ctx, what->job->problem, path);
}

static mpl_status write_graph(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    return mpl_text_write(ctx, path, what->job->source.graph);
}

/* Writes one node an operation, and one edge a value shared by two operations. */
static mpl_status write_operations(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = what->job->source.graph;
    mpl_new_file file = {0};
    char label[200], shape[200];

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fprintf(file.stream, "digraph memplan {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (mpl_op i = 0; i < g->n_ops; i++) {
        snprintf(label, sizeof label, "%.120s (%s)", g->op_name[i],
                 mpl_op_table[g->op_kind[i]].name);
        fprintf(file.stream, "  op%" PRIu32 " [label=\"", i);
        mpl_put_dot(file.stream, label);
        fputs("\"];\n", file.stream);
        for (uint32_t k = g->op_in_begin[i]; k < g->op_in_begin[i + 1]; k++) {
            mpl_value v = g->op_in[k];

            if (v != MPL_NONE && g->value_op[v] != MPL_NONE)
                fprintf(file.stream,
                        "  op%" PRIu32 " -> op%" PRIu32 " [label=\"%s%s\\n%" PRIu64 " B\"];\n",
                        g->value_op[v], i, mpl_type_name((mpl_type)g->value_type[v]),
                        mpl_shape_text(&g->value_shape[v], shape), g->value_bytes[v]);
        }
    }
    fprintf(file.stream, "}\n");
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

/* End of an edge: "b12", "source" or "sink"; text holds at least 24 bytes. */
static const char *end_name(mpl_buffer b, const char *dummy, char *text)
{
    if (b == MPL_NONE)
        return dummy;
    snprintf(text, 24, "b%" PRIu32, b);
    return text;
}

/* Writes a plan as NNC's allocation graph: one node a buffer, one edge a memory range handed from
 * one buffer to the next. */
static mpl_status write_allocation(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = what->job->problem;
    mpl_handover *list = NULL;
    size_t n = 0;
    mpl_new_file file = {0};
    char label[200], name[24], from[24], to[24];

    MPL_TRY(mpl_handovers(ctx, p, what->plan, &list, &n));
    MPL_TRY(mpl_file_begin(ctx, path, &file));
    fprintf(file.stream,
            "digraph memplan {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n"
            "  source [shape=circle];\n  sink [shape=circle];\n");
    for (mpl_buffer b = 0; b < p->n; b++) {
        snprintf(label, sizeof label, "%.120s", mpl_buffer_label(p, b, name));
        fprintf(file.stream, "  b%" PRIu32 " [label=\"", b);
        mpl_put_dot(file.stream, label);
        fprintf(file.stream, "\\n%" PRIu64 " B at %" PRIu64 "\"];\n", p->bytes[b],
                what->plan->offset[b]);
    }
    for (size_t i = 0; i < n; i++) {
        fprintf(file.stream, "  %s -> %s [label=\"", end_name(list[i].from, "source", from),
                end_name(list[i].to, "sink", to));
        snprintf(label, sizeof label, "%.120s: ", p->pool_name[list[i].pool]);
        mpl_put_dot(file.stream, p->n_pools > 1 ? label : "");
        fprintf(file.stream, "%" PRIu64 " B\\nat %" PRIu64 "\"];\n", list[i].bytes, list[i].offset);
    }
    fprintf(file.stream, "}\n");
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_free(ctx, list);
    mpl_file_end(ctx, &file);
    return st;
}

static mpl_status write_dot(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    if (what->plan != NULL)
        return write_allocation(ctx, what, path);
    if (what->job->source.graph == NULL)
        return MPL_REFUSE(ctx,
                          "export dot: %s is a list of buffers; with --planner P its allocation "
                          "graph can be drawn",
                          what->job->text);
    return write_operations(ctx, what, path);
}

/* Templates are in files alone: T.json, or GRAPH --plan T.json. */
static mpl_status export_template(mpl_ctx *ctx, mpl_options *options, const char *to)
{
    mpl_status st = MPL_OK;
    const char *path = options->plan != NULL ? options->plan
                       : options->args.n > 0 ? options->args.item[0]
                                             : "";
    mpl_template_opened opened = {0};

    if (!mpl_template_named(ctx, path))
        return MPL_REFUSE(ctx, "export c-template: %s is no template: a file of plan over ranges",
                          path);
    MPL_TRY(mpl_template_open(ctx, path, &opened));
    MPL_TRY(mpl_template_export_c(ctx, &opened, to));
out:
    mpl_template_opened_fini(ctx, &opened);
    return st;
}

const mpl_export_format mpl_export_formats[] = {
    {"csv", "buffers as MiniMalloc reads them; with a plan, their offsets too", false, false,
     write_csv, NULL},
    {"graph", "the graph in memplan's text format", true, false, write_graph, NULL},
    {"dot", "as a Graphviz graph: the operations; with a plan, who hands which bytes to whom",
     false, false, write_dot, NULL},
    {"trace", "a plan as a Chrome or Perfetto trace (JSON)", false, true, mpl_export_trace, NULL},
    {"onnx",
     "the graph as an ONNX model, weights from --weights; with a plan, its offsets as metadata",
     true, false, mpl_export_onnx, NULL},
    {"onnx-metadata", "an ONNX file as it is, with a plan's offsets as metadata", true, true,
     mpl_export_onnx_metadata, NULL},
    {"offline", "a plan's offsets alone, as OfflineMemoryAllocation of TFLite Micro (JSON)", false,
     true, mpl_export_offline, NULL},
    {"interference", "which buffers conflict: CSV, or DOT to a file .dot or .gv", false, false,
     write_interference, NULL},
    {"tflite", "a .tflite model as it is, with offsets for TFLite Micro's planner as metadata",
     false, true, NULL, mpl_export_tflite},
    {"json", "a plan's offsets, arena and bound", false, true, mpl_export_json, NULL},
    {"c-header", "a plan's offsets and the arena's size as macros of C", false, true,
     mpl_export_c_header, NULL},
    {"mlir", "a plan's offsets as attributes of an MLIR module", false, true, mpl_export_mlir,
     NULL},
    {"c-template", "a template, for every shape of its range, as a C function", false, true, NULL,
     export_template},
    {NULL, NULL, false, false, NULL, NULL},
};

/* Notes that a format cannot express the bindings of a plan with loops, only its offsets. */
static void note_bindings(const mpl_export_format *format, const mpl_export *what)
{
    bool whole = format->write == mpl_export_onnx || format->write == mpl_export_onnx_metadata;

    if (what->plan != NULL && !whole && what->job->source.graph != NULL &&
        what->job->map->places != NULL && what->job->map->places->n > 0)
        fprintf(stderr,
                "memplan: export %s: %s has loops or branches; where its values lie from round to "
                "round, its "
                "bindings, is not in this format, but in a plan file (plan -o)\n",
                format->name, mpl_shown(what->job->text));
}

/* Opens the plan of another allocator with the problem that its file has: no GRAPH is named. */
static mpl_status open_import(mpl_ctx *ctx, mpl_options *options, char name[200], mpl_made *made)
{
    mpl_status st = MPL_OK;
    mpl_import import = {0};

    if (options->plan == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "export: GRAPH is missing, or --plan FILE that has its problem");
    MPL_TRY(mpl_gate_open_plan(ctx, options, NULL, options->plan, name, &import, &made->row,
                               &made->job));
    MPL_TRY(mpl_job_verify_file(ctx, &made->job, import.plan));
    made->plan = import.plan, import.plan = NULL;
out:
    mpl_import_fini(ctx, &import);
    return st;
}

mpl_status mpl_cmd_export(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    const mpl_export_format *format = mpl_export_formats;
    const char *path = options->output != NULL ? options->output : "/dev/stdout";
    mpl_made made = {0};
    mpl_export what;
    char name[200];

    if (options->format == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "export: --format F is needed; see memplan list formats");
    while (format->name != NULL && strcmp(format->name, options->format) != 0)
        format++;
    if (format->name == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "export: no format '%s'; see memplan list formats",
                 options->format);
    if (format->plan != NULL) {
        MPL_TRY(format->plan(ctx, options, path));
        goto out;
    }
    if (options->args.n == 0) {
        MPL_TRY(open_import(ctx, options, name, &made));
    } else if (format->needs_plan || options->planner != NULL || options->plan != NULL) {
        MPL_TRY(mpl_make(ctx, options, options->args.item[0], MPL_TO_PLAN, &made));
    } else {
        MPL_TRY(mpl_job_open(ctx, options, options->args.item[0], &made.job));
        MPL_TRY(mpl_job_problem(ctx, options, NULL, NULL, &made.job));
    }
    if (format->needs_graph && made.job.source.graph == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "export %s: %s is a list of buffers, not a graph", format->name,
                 made.job.text);
    what = (mpl_export){options, &made.job, made.row, made.plan};
    MPL_TRY(format->write(ctx, &what, path));
    note_bindings(format, &what);
out:
    mpl_made_fini(ctx, &made);
    return st;
}
