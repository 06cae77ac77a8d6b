/* paper_files.c -- reads results of other programs as one table. See paper.h.
 *
 * .tsv: cells are separated by tabs. .csv: RFC 4180; cells with commas or line ends stand in
 * quotes, and quotes inside are doubled. */
#include <glob.h>
#include <stdlib.h>

#include "graphs/core/file.h"
#include "harness/report/paper.h"

typedef struct source {
    mpl_ctx *ctx;
    const char *path, *at;
    bool csv;
} source;

/* Reads the cell at self->at into buffer, which is as large as the file; *last: it ends the line.
 */
static void next_cell(source *self, char *buffer, bool *last)
{
    const char *from = self->at, *stops = self->csv ? ",\n" : "\t\n";
    bool quoted = self->csv && *from == '"';
    size_t n = 0;

    for (from += quoted; *from != '\0' && (quoted || strchr(stops, *from) == NULL); from++) {
        if (quoted && *from == '"' && *++from != '"') {
            quoted = false, from--;
            continue;
        }
        buffer[n++] = (char)(strchr("\t\n\r", *from) != NULL ? ' ' : *from);
    }
    while (self->csv && n > 0 && buffer[n - 1] == ' ')
        n--;
    buffer[n] = '\0';
    *last = *from == '\0' || *from == '\n';
    self->at = from + (*from != '\0');
}

static mpl_status read_cells(source *self, char *buffer, mpl_grid *grid)
{
    for (self->at += strspn(self->at, "\r\n"); *self->at != '\0';
         self->at += strspn(self->at, "\r\n")) {
        uint32_t before = grid->n;

        for (bool last = false; !last;) {
            next_cell(self, buffer, &last);
            MPL_PASS(mpl_grid_cell(self->ctx, grid, "%s", buffer));
        }
        if (grid->n_cols == 0)
            grid->n_cols = grid->n;
        if (grid->n - before != grid->n_cols)
            return MPL_REFUSE(self->ctx,
                              "%s: a line has %" PRIu32 " cells where the head has %" PRIu32,
                              self->path, grid->n - before, grid->n_cols);
    }
    if (grid->n_cols == 0)
        return MPL_REFUSE(self->ctx, "%s: no head of columns", self->path);
    return MPL_OK;
}

static mpl_status read_file(mpl_ctx *ctx, const char *path, bool csv, mpl_grid *grid)
{
    mpl_status st = MPL_OK;
    source s = {.ctx = ctx, .path = path, .csv = csv};
    char *text = NULL, *buffer = NULL;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    MPL_TRY(mpl_new(ctx, buffer, size + 1));
    s.at = text;
    MPL_TRY(read_cells(&s, buffer, grid));
out:
    mpl_free_each(ctx, text, buffer);
    return st;
}

/* Whether a line was not run: its count is absent or zero, and nothing failed. */
static bool not_run(const mpl_grid *all, const mpl_grid *file, uint32_t line)
{
    const char *count = mpl_grid_in(file, line, "count");
    const char *failures = mpl_grid_in(file, line, "failures");

    return mpl_grid_column(all, "count") < all->n_cols &&
           mpl_grid_column(all, "failures") < all->n_cols &&
           (count == NULL || strtoull(count, NULL, 10) == 0) &&
           (failures == NULL || strtoull(failures, NULL, 10) == 0);
}

/* Adds the file's lines below the heads of all. */
static mpl_status add_lines(mpl_ctx *ctx, const mpl_grid *file, mpl_grid *all)
{
    for (uint32_t line = 1; line < mpl_grid_lines(file); line++) {
        bool never = not_run(all, file, line);

        for (uint32_t c = 0; c < all->n_cols; c++) {
            const char *text = mpl_grid_in(file, line, all->cell[c]);

            if (never && strcmp(all->cell[c], "count") == 0)
                text = "**not run**";
            else if (never && strcmp(all->cell[c], "failures") == 0)
                text = NULL;
            MPL_PASS(mpl_grid_cell(ctx, all, "%s", text != NULL && text[0] != '\0' ? text : "-"));
        }
    }
    return MPL_OK;
}

mpl_status mpl_paper_csv(mpl_ctx *ctx, const char *pattern, mpl_grid *all)
{
    mpl_status st = MPL_OK;
    glob_t files = {0};
    mpl_grid *file = NULL;

    if (glob(pattern, 0, NULL, &files) == GLOB_NOSPACE)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_new(ctx, file, files.gl_pathc));
    for (size_t i = 0; i < files.gl_pathc; i++) {
        MPL_TRY(read_file(ctx, files.gl_pathv[i], true, &file[i]));
        for (uint32_t c = 0; c < file[i].n_cols; c++)
            if (mpl_grid_column(all, file[i].cell[c]) == all->n_cols) {
                MPL_TRY(mpl_grid_cell(ctx, all, "%s", file[i].cell[c]));
                all->n_cols = all->n;
            }
    }
    for (size_t i = 0; i < files.gl_pathc; i++)
        MPL_TRY(add_lines(ctx, &file[i], all));
out:
    for (size_t i = 0; file != NULL && i < files.gl_pathc; i++)
        mpl_grid_fini(ctx, &file[i]);
    mpl_free(ctx, file);
    globfree(&files);
    return st;
}

mpl_status mpl_paper_tsv(mpl_ctx *ctx, const char *path, mpl_grid *all)
{
    return read_file(ctx, path, false, all);
}
