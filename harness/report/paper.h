/* paper.h -- tables and figures made from rows, and a text whose markers are filled from them.
 *
 * results/paper/NAME.suite is one experiment: a suite whose rows are results/raw/NAME.jsonl, with
 * lines that ask for tables and figures:
 *
 *   #! table NAME KIND [SUITE ..] | CAPTION     results/tables/NAME.md
 *   #! figure NAME KIND [SUITE ..] [with=SCRIPT.gp] | CAPTION
 *                                                results/tables/NAME.tsv, drawn by scripts/NAME.gp:
 *                                                results/figures/NAME.svg
 *
 * KIND is one of
 *   a kind of `memplan list tables`, made from the rows of this suite and of those named
 *   FILE.graph, a small graph of results/paper: lines to draw of what planning sees of it
 *   FILE.tsv, a table of results/tables that another program measured
 *   FILE.csv, one or all files of results/ that match the pattern: the columns of the first file,
 *   then the columns that later files add
 * A table whose files are absent says so. So does a line not run: its columns `count` and
 * `failures` count nothing. With rows=optional the rows may be absent too. COLUMN=VALUE or
 * COLUMN!=VALUE selects lines, show=COLUMN,.. selects columns. A ~ before a name in show marks
 * times; an underscore in a name may stand for a blank.
 *
 * Markers in the text, each up to `<!-- end -->`:
 *
 *   <!-- table:NAME -->                          the caption and the table
 *   <!-- figure:NAME -->                         the picture
 *   <!-- value:NAME/CELL/../COLUMN -->           the cell of COLUMN in the one line that begins
 *                                                with these cells
 *   <!-- quoted:SOURCE -->                       kept as it is: a published figure or a constant
 *
 * and one without an end, which is invisible to the reader:
 *
 *   <!-- holds:NAME/CELL/../COLUMN OP VALUE -->  OP is one of = != < <= > >=; VALUE is a text, or
 *                                                a number to compare with the cell's
 *
 * A false claim is a fault of the text. So is a figure (with a decimal point, or in per cent) in
 * running text outside these markers, because nothing checks it. */
#pragma once

#include "harness/report/grid.h"

typedef struct mpl_paper_item {
    char *name, *caption;
    char *script;   /* of a figure, below scripts/; NULL: a table */
    mpl_grid table; /* no columns: not run */
} mpl_paper_item;

typedef struct mpl_paper {
    uint32_t n;
    size_t cap;
    mpl_paper_item *item;
} mpl_paper;

/* Makes everything that results/paper asks for, in the order of its file names. MPL_EINPUT with
 * FILE:LINE: a malformed line, a duplicate name, absent rows. */
mpl_status mpl_paper_make(mpl_ctx *ctx, mpl_paper *paper);
void mpl_paper_fini(mpl_ctx *ctx, mpl_paper *paper);

/* A table as markdown below its caption, or a figure's data tab-separated; freed by mpl_free. */
mpl_status mpl_paper_print(mpl_ctx *ctx, const mpl_paper_item *item, char **text);
/* One cell by "CELL/../COLUMN"; freed by mpl_free. MPL_EINPUT: no such column; no line, or several,
 * begin with these cells. */
mpl_status mpl_paper_value(mpl_ctx *ctx, const mpl_paper_item *item, const char *path,
                           char **value);

/* Fills every marker of the text; messages begin with `where`. *faults: a line each, "" if there
 * are none. Both are freed by mpl_free. MPL_EINPUT with the line: an unknown marker, or one without
 * its end. */
mpl_status mpl_paper_fill(mpl_ctx *ctx, const mpl_paper *paper, const char *where, const char *text,
                          char **out, char **faults);

/* paper_words.c: whether "NAME/CELL/../COLUMN OP VALUE" holds, and the cell's text (200 bytes).
 * MPL_EINPUT: no such cell or OP. */
mpl_status mpl_paper_holds(mpl_ctx *ctx, const mpl_paper *paper, const char *claim, bool *holds,
                           char *is);
/* Position of the first figure in text[from..to) that needs a marker, or `to`. `text` is the whole
 * text; its lines decide what is running text. */
size_t mpl_paper_bare(const char *text, size_t from, size_t to);

/* NULL: none */
const mpl_paper_item *mpl_paper_find(const mpl_paper *paper, const char *name);

/* paper_files.c: reads a tab-separated file as a table. */
mpl_status mpl_paper_tsv(mpl_ctx *ctx, const char *path, mpl_grid *all);
/* Lines of all comma-separated files that match, with all their columns; no columns if no file
 * matches. */
mpl_status mpl_paper_csv(mpl_ctx *ctx, const char *pattern, mpl_grid *all);
/* paper_anatomy.c: what planning sees of a graph file: operations, lifetimes, conflicts in the
 * order given and in any, two plans with what hands each range of memory to the next (lines with
 * panel, shape, x, y, to x, to y, text; memory in MiB). MPL_EINPUT: more than 24 operations or
 * buffers. */
mpl_status mpl_paper_anatomy(mpl_ctx *ctx, const char *path, mpl_grid *all);
