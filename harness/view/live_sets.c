/* live_sets.c -- memplan show --live and memplan export --format interference. See live_sets.h. */
#include "harness/view/live_sets.h"

#include "graphs/core/file.h"
#include "graphs/ops/user/user_ops.h"
#include "harness/cli/quote.h"

/* Positions among the outermost operations, 1 .. n; 0 is before all, n + 1 after all. */
typedef struct live_range {
    uint32_t defined;
    uint32_t last_used; /* 0: never */
} live_range;

static void set_range(const mpl_graph *g, const uint32_t *at, mpl_value v, live_range *range)
{
    if (g->value_op[v] != MPL_NONE)
        range->defined = at[g->value_op[v]];
    for (uint32_t i = g->value_use_begin[v]; i < g->value_use_begin[v + 1]; i++) {
        uint32_t use = at[mpl_op_outermost(g, g->value_use[i])];

        range->last_used = use > range->last_used ? use : range->last_used;
    }
}

static void print_set(const mpl_graph *g, const live_range *range, uint32_t at, bool before)
{
    const char *separator = before ? "  in " : "  out";

    for (mpl_value v = 0; v < g->n_values; v++) {
        bool live = before ? range[v].defined < at && at <= range[v].last_used
                           : range[v].defined <= at && at < range[v].last_used;

        if (g->value_block[v] != 0 || g->value_role[v] == MPL_WEIGHT || !live)
            continue;
        printf("%s %s", separator, mpl_shown(g->value_name[v]));
        separator = "";
    }
    printf("%s\n", separator[0] == '\0' ? "" : separator);
}

mpl_status mpl_live_sets_show(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order)
{
    mpl_status st = MPL_OK;
    uint32_t *at = NULL, n = 0;
    live_range *range = NULL;

    MPL_TRY(mpl_new(ctx, at, g->n_ops));
    MPL_TRY(mpl_new(ctx, range, g->n_values));
    for (uint32_t i = 0; i < g->n_ops; i++)
        at[order[i]] = g->op_block[order[i]] == 0 ? ++n : 0;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_block[v] == 0)
            set_range(g, at, v, &range[v]);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        range[g->output[i]].last_used = n + 1;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (at[order[i]] == 0)
            continue;
        printf("%" PRIu32 " %s (%s)\n", at[order[i]], mpl_shown(g->op_name[order[i]]),
               mpl_op_called(g, order[i]));
        print_set(g, range, at[order[i]], true);
        print_set(g, range, at[order[i]], false);
    }
out:
    mpl_free_each(ctx, at, range);
    return st;
}

static void put_nodes(FILE *out, const mpl_problem *p)
{
    char label[24];

    fprintf(out, "graph memplan {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (mpl_buffer b = 0; b < p->n; b++) {
        fprintf(out, "  b%" PRIu32 " [label=\"", b);
        mpl_put_dot(out, mpl_buffer_label(p, b, label));
        fprintf(out, "\\n%" PRIu64 " B\"];\n", p->bytes[b]);
    }
}

/* A cell of CSV, quoted whatever it holds. */
static void put_cell(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_edges(FILE *out, const mpl_problem *p, bool dot)
{
    char one[24], other[24];

    for (mpl_buffer a = 0; a < p->n; a++)
        for (mpl_buffer b = a + 1; b < p->n; b++) {
            if (!mpl_conflict(p, a, b))
                continue;
            if (dot) {
                fprintf(out, "  b%" PRIu32 " -- b%" PRIu32 ";\n", a, b);
                continue;
            }
            put_cell(out, mpl_buffer_label(p, a, one));
            fputc(',', out);
            put_cell(out, mpl_buffer_label(p, b, other));
            fprintf(out, ",%" PRIu64 ",%" PRIu64 "\n", p->bytes[a], p->bytes[b]);
        }
}

mpl_status mpl_interference_write(mpl_ctx *ctx, const mpl_problem *p, const char *path)
{
    mpl_status st = MPL_OK;
    const char *end = strrchr(path, '.');
    bool dot = end != NULL && (strcmp(end, ".dot") == 0 || strcmp(end, ".gv") == 0);
    mpl_new_file file = {0};

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    if (dot)
        put_nodes(file.stream, p);
    else
        fprintf(file.stream, "a,b,a_bytes,b_bytes\n");
    put_edges(file.stream, p, dot);
    if (dot)
        fprintf(file.stream, "}\n");
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}
