/* table_common.c -- what several tables share. See table.h. */
#include "harness/report/table.h"

#include <stdlib.h>

#include "graphs/core/size.h"
#include "harness/report/cells.h"

const char *mpl_planner_label(const mpl_record *row, char *text)
{
    const char *planner = mpl_record_text_or(row, MPL_FIELD_planner, "-"), *key, *value;
    int n = snprintf(text, 120, "%s", planner);
    char before = ':';

    for (uint32_t i = 0; n < 120 && mpl_record_member(row, MPL_FIELD_params, i, &key, &value);
         i++) {
        size_t kind = strlen(key);

        /* the library or command, which the planner's name stands for */
        if (strncmp(planner, key, kind) == 0 && planner[kind] == ':')
            continue;
        n +=
            snprintf(text + n, 120 - (size_t)n, "%c%s=%s", before, key, value != NULL ? value : "");
        before = ',';
    }
    return text;
}

mpl_status mpl_table_lines(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv, uint32_t n_cols, const char *const *head, mpl_table_line *line)
{
    mpl_status st = MPL_OK;
    mpl_grid grid = {.n_cols = n_cols};

    MPL_TRY(mpl_grid_head(ctx, &grid, head));
    for (uint32_t i = 0; i < rows->n; i++)
        MPL_TRY(line(ctx, rows, rows->row[i], &grid));
    mpl_grid_print_titled(to, &grid, kind->about, tsv);
out:
    mpl_grid_fini(ctx, &grid);
    return st;
}

const char *mpl_graph_label(const mpl_record *row, char *text)
{
    const char *graph = mpl_record_get_text(row, MPL_FIELD_graph), *slash, *dot;

    graph = graph != NULL ? graph : "-";
    slash = strrchr(graph, '/');
    dot = strrchr(graph, '.');
    if (slash != NULL || (dot != NULL && (strcmp(dot, ".csv") == 0 || strcmp(dot, ".onnx") == 0 ||
                                          strcmp(dot, ".graph") == 0))) {
        graph = slash != NULL ? slash + 1 : graph;
        snprintf(text, 200, "%.*s", (int)strcspn(graph, "."), graph);
    } else {
        snprintf(text, 200, "%s", graph);
    }
    return text;
}
