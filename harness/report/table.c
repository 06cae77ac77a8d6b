#include "harness/report/table.h"

#include "graphs/core/size.h"
#include "harness/report/relation.h"

#define MPL_FIELD_any MPL_N_FIELDS

static const char prelude[] =
#define PRELUDE(...) __VA_ARGS__;
#define TABLE(name, field, about, ...)
#include "tables_gen.h"
#undef PRELUDE
#undef TABLE

    const mpl_table_kind mpl_tables[] = {
#define PRELUDE(...)
#define TABLE(name, field, about, ...) {#name, about, MPL_FIELD_##field, __VA_ARGS__, NULL},
#include "tables_gen.h"
        {"pebble",
         "the pebble game with sliding: least times within each space, all connected graphs of up "
         "to 6 "
         "vertices",
         MPL_FIELD_any, NULL, mpl_table_pebble},
        {"pebble_still", "the same without sliding: no result lies in place of an operand",
         MPL_FIELD_any, NULL, mpl_table_pebble_still},
        {NULL, NULL, MPL_FIELD_any, NULL, NULL},
};

const mpl_table_kind *mpl_table_find(const char *name)
{
    for (const mpl_table_kind *kind = mpl_tables; kind->name != NULL; kind++)
        if (strcmp(kind->name, name) == 0)
            return kind;
    return NULL;
}

static mpl_status ask(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                      mpl_answer_taker *take, void *arg)
{
    mpl_status st = mpl_relation_ask(ctx, rows, prelude, kind->query, take, arg);

    return st != MPL_EINPUT ? st : MPL_REFUSE(ctx, "table %s: %s", kind->name, ctx->message);
}

static mpl_status keep_grid(mpl_ctx *ctx, mpl_answer *answer, void *arg)
{
    mpl_grid *grid = arg;

    mpl_grid_fini(ctx, grid);
    *grid = answer->grid;
    memset(&answer->grid, 0, sizeof answer->grid);
    return MPL_OK;
}

mpl_status mpl_table_make(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                          mpl_grid *grid)
{
    return kind->query == NULL ? kind->compute(ctx, grid) : ask(ctx, kind, rows, keep_grid, grid);
}

/* ---- text ---- */

/* Prints how this problem differs from the others of the same graph, backend and safety. */
static void print_apart(const mpl_rows *rows, const mpl_record *row, const char *before, FILE *to)
{
    static const mpl_field named[] = {MPL_FIELD_graph, MPL_FIELD_safety, MPL_FIELD_backend};
    enum { N_NAMED = sizeof named / sizeof *named };

    for (int i = 0; i < MPL_N_FIELDS; i++) {
        mpl_field field = (mpl_field)i;
        bool apart = false;
        char text[80];

        for (uint32_t k = 0; k < rows->n && !apart && mpl_field_of_problem(field); k++)
            apart = mpl_rows_alike(row, rows->row[k], N_NAMED, named) &&
                    !mpl_record_equal(row, rows->row[k], field);
        if (!apart)
            continue;
        mpl_record_show(row, field, text, sizeof text);
        fprintf(to, "%s%s %s", before, mpl_field_table[i].name, text);
    }
}

/* Prints the text above the rows of one problem. */
static void print_problem(const mpl_rows *rows, uint32_t first, FILE *to, bool tsv)
{
    const mpl_record *row = rows->row[first];
    uint64_t bound = 0, naive = 0;

    for (uint32_t i = first; i < rows->n; i++)
        if (mpl_rows_problem(rows, i) == first) {
            mpl_record_get_int(rows->row[i], MPL_FIELD_bound_bytes, &bound);
            mpl_record_get_int(rows->row[i], MPL_FIELD_naive_bytes, &naive);
        }
    fprintf(to, tsv ? "# %s\t%s\t%s" : "\n### %s, %s, %s",
            mpl_record_text_or(row, MPL_FIELD_graph, "-"),
            mpl_record_text_or(row, MPL_FIELD_safety, "-"),
            mpl_record_text_or(row, MPL_FIELD_backend, "planned only"));
    print_apart(rows, row, tsv ? "\t" : ", ", to);
    if (naive > 0 && !tsv)
        fprintf(to, ": bound %s, nothing shared %s", mpl_sized(bound).text, mpl_sized(naive).text);
    fputs(tsv ? "\n" : "\n\n", to);
}

typedef struct printing {
    const mpl_table_kind *kind;
    const mpl_rows *rows;
    FILE *to;
    bool tsv;
    uint32_t n_lines;
} printing;

static mpl_status print_answer(mpl_ctx *ctx, mpl_answer *answer, void *arg)
{
    printing *p = arg;
    const mpl_grid *grid = &answer->grid;

    (void)ctx;
    if (answer->section != MPL_NONE)
        print_problem(p->rows, answer->section, p->to, p->tsv);
    else if (!p->tsv && p->kind->query != NULL)
        fprintf(p->to, "%s\n\n", p->kind->about);
    mpl_grid_print(p->to, grid, p->tsv);
    p->n_lines += grid->n_cols > 0 ? mpl_grid_lines(grid) - 1 : 0;
    return MPL_OK;
}

mpl_status mpl_table_print(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv, uint32_t *n_lines)
{
    mpl_status st = MPL_OK;
    mpl_answer computed = {.section = MPL_NONE};
    printing p = {.kind = kind, .rows = rows, .to = to, .tsv = tsv};

    if (kind->query != NULL) {
        MPL_TRY(ask(ctx, kind, rows, print_answer, &p));
    } else {
        MPL_TRY(kind->compute(ctx, &computed.grid));
        MPL_TRY(print_answer(ctx, &computed, &p));
    }
    *n_lines = p.n_lines;
out:
    mpl_grid_fini(ctx, &computed.grid);
    return st;
}
