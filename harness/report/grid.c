/* grid.c -- tables as text. See grid.h. */
#include "harness/report/grid.h"

#include "graphs/core/size.h"

#include <stdarg.h>

#include "harness/cli/quote.h"

mpl_status mpl_grid_cell(mpl_ctx *ctx, mpl_grid *grid, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    MPL_PASS(mpl_reserve(ctx, grid->cell, grid->cap, (size_t)grid->n + 1));
    MPL_PASS(mpl_new(ctx, text, (size_t)n + 1));
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    grid->cell[grid->n++] = text;
    return MPL_OK;
}

mpl_status mpl_grid_head(mpl_ctx *ctx, mpl_grid *grid, const char *const *head)
{
    for (uint32_t i = 0; i < grid->n_cols; i++)
        MPL_PASS(mpl_grid_cell(ctx, grid, "%s", head[i]));
    return MPL_OK;
}

uint32_t mpl_grid_lines(const mpl_grid *grid)
{
    return grid->n_cols > 0 ? grid->n / grid->n_cols : 0;
}

const char *mpl_grid_at(const mpl_grid *grid, uint32_t line, uint32_t column)
{
    mpl_assert(column < grid->n_cols && line < mpl_grid_lines(grid));
    return grid->cell[(size_t)line * grid->n_cols + column];
}

static bool same_name(const char *head, const char *name)
{
    while (*head != '\0' && (*head == *name || (*head == ' ' && *name == '_')))
        head++, name++;
    return *head == *name;
}

uint32_t mpl_grid_column(const mpl_grid *grid, const char *name)
{
    uint32_t c = 0;

    while (c < grid->n_cols && !same_name(grid->cell[c], name))
        c++;
    return c;
}

const char *mpl_grid_in(const mpl_grid *grid, uint32_t line, const char *name)
{
    uint32_t c = mpl_grid_column(grid, name);

    return c < grid->n_cols ? mpl_grid_at(grid, line, c) : NULL;
}

static uint32_t column_width(const mpl_grid *grid, uint32_t column)
{
    uint32_t widest = 3;

    for (uint32_t i = column; i < grid->n; i += grid->n_cols)
        if (mpl_markdown_width(grid->cell[i]) > widest)
            widest = mpl_markdown_width(grid->cell[i]);
    return widest;
}

static void print_rule(FILE *to, const mpl_grid *grid)
{
    for (uint32_t c = 0; c < grid->n_cols; c++) {
        fputs("|", to);
        for (uint32_t k = column_width(grid, c) + (c == 0 ? 2 : 1); k > 0; k--)
            fputs("-", to);
        fputs(c == 0 ? "" : ":", to);
    }
    fputs("|\n", to);
}

void mpl_grid_print(FILE *to, const mpl_grid *grid, bool tsv)
{
    for (uint32_t i = 0; i < grid->n; i++) {
        uint32_t c = i % grid->n_cols;
        bool last = c + 1 == grid->n_cols;

        if (tsv) {
            mpl_put_tsv(to, grid->cell[i]);
            fputc(last ? '\n' : '\t', to);
            continue;
        }
        fputs(c == 0 ? "| " : " ", to);
        for (uint32_t k = mpl_markdown_width(grid->cell[i]), w = column_width(grid, c);
             c > 0 && k < w; k++)
            fputc(' ', to);
        mpl_put_markdown(to, grid->cell[i]);
        for (uint32_t k = mpl_markdown_width(grid->cell[i]), w = column_width(grid, c);
             c == 0 && k < w; k++)
            fputc(' ', to);
        fputs(last ? " |\n" : " |", to);
        if (i + 1 == grid->n_cols)
            print_rule(to, grid);
    }
}

void mpl_grid_fini(mpl_ctx *ctx, mpl_grid *grid)
{
    for (uint32_t i = 0; i < grid->n; i++)
        mpl_free(ctx, grid->cell[i]);
    mpl_free(ctx, grid->cell);
    memset(grid, 0, sizeof *grid);
}

const char *mpl_fixed_text(double value, int digits, char *text)
{
    snprintf(text, MPL_CELL_TEXT, "%.*f", digits, value);
    return text;
}

const char *mpl_mib_text(uint64_t bytes, char *text)
{
    const mpl_size size = mpl_sized(bytes);

    if (bytes > 0 && strstr(size.text, " bytes") != NULL)
        return strcpy(text, size.text);
    return mpl_fixed_text((double)bytes / 1048576, 3, text);
}

const char *mpl_gap_text(uint64_t bytes, uint64_t bound, char *text)
{
    if (bytes == bound)
        return strcpy(text, "0");
    if (bound == 0)
        return strcpy(text, "-");
    snprintf(text, 32, "%+.2f %%", ((double)bytes / (double)bound - 1) * 100);
    return text;
}
