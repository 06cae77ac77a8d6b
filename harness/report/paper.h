/* paper.h -- what stands in results/ made from rows, and a text whose markers are filled from it.
 *
 * results/paper/NAME.suite is one experiment: a suite, whose rows are results/raw/NAME.jsonl, with
 * lines that say what is made of them:
 *
 *   #! table NAME KIND [SUITE ..] | CAPTION     results/tables/NAME.md
 *   #! figure NAME KIND [SUITE ..] [with=SCRIPT.gp] | CAPTION
 *                                                results/tables/NAME.tsv, drawn by scripts/NAME.gp:
 *                                                results/figures/NAME.svg
 *
 * KIND is a table's (memplan list tables), made from the rows of this suite and of those named; or
 * FILE.tsv, a table of results/tables that another program measured; or FILE.csv, one of results/,
 * or all that match it as a pattern: the columns of the first, then what later ones add. There need
 * be none: the table then says so. A line of columns `count` and `failures` that counts nothing was
 * not run, and says so. With rows=optional the rows, too, need not be there. With COLUMN=VALUE or
 * COLUMN!=VALUE among the words only such lines are kept, with show=COLUMN,.. only these columns; a
 * ~ before a name of show marks times; an underscore in a name may stand for a blank.
 *
 * Markers in the text, each up to `<!-- end -->`:
 *
 *   <!-- table:NAME -->                          the caption and the table
 *   <!-- figure:NAME -->                         the picture
 *   <!-- value:NAME/CELL/../COLUMN -->           the cell under the head COLUMN in the one line
 *   that begins with these cells
 *   <!-- quoted:SOURCE -->                       stays as it is: a figure of others, or a constant
 *
 * and one without an end, which says nothing to a reader:
 *
 *   <!-- holds:NAME/CELL/../COLUMN OP VALUE -->  OP is one of = != < <= > >=; VALUE a text, or a
 *   number to compare the cell's with
 *
 * What does not hold is a fault of the text: a sentence beside it says what is no longer so. So is
 * a figure (with a decimal point, or in per cent) in running text that stands in none of these
 * markers: nothing keeps it true. */
#ifndef MPL_PAPER_H
#define MPL_PAPER_H

#include "harness/report/grid.h"

typedef struct mpl_paper_item {
    char *name, *caption;
    char *script;   /* of a figure, below scripts/; NULL: a table */
    mpl_grid table; /* no columns: it was not run */
} mpl_paper_item;

typedef struct mpl_paper {
    uint32_t n;
    size_t cap;
    mpl_paper_item *item;
} mpl_paper;

/* Everything that results/paper asks for, in the order of its files' names. MPL_EINPUT with
 * FILE:LINE: a line that is none, a name twice, rows that lack. */
mpl_status mpl_paper_make(mpl_ctx *ctx, mpl_paper *paper);
void mpl_paper_fini(mpl_ctx *ctx, mpl_paper *paper);

/* A table as markdown below its caption, a figure's data tab-separated; the caller's (mpl_free). */
mpl_status mpl_paper_print(mpl_ctx *ctx, const mpl_paper_item *item, char **text);
/* One cell by "CELL/../COLUMN"; the caller's (mpl_free). MPL_EINPUT: no such column; no line, or
 * several, begin so. */
mpl_status mpl_paper_value(mpl_ctx *ctx, const mpl_paper_item *item, const char *path,
                           char **value);

/* The text with every marker filled; `where` begins messages. *faults: a line each, "" where there
 * is none; both are the caller's (mpl_free). MPL_EINPUT with the line: a marker that is none, one
 * without its end. */
mpl_status mpl_paper_fill(mpl_ctx *ctx, const mpl_paper *paper, const char *where, const char *text,
                          char **out, char **faults);

/* paper_words.c: whether "NAME/CELL/../COLUMN OP VALUE" holds, and what the cell is (200 bytes).
 * MPL_EINPUT: no such cell or OP. */
mpl_status mpl_paper_holds(mpl_ctx *ctx, const mpl_paper *paper, const char *claim, bool *holds,
                           char *is);
/* Where a figure that needs a marker stands in text[from..to), or `to`; text is the whole text,
 * whose lines decide. */
size_t mpl_paper_bare(const char *text, size_t from, size_t to);

/* NULL: there is none */
const mpl_paper_item *mpl_paper_find(const mpl_paper *paper, const char *name);

/* paper_files.c: a tab-separated file as a table. */
mpl_status mpl_paper_tsv(mpl_ctx *ctx, const char *path, mpl_grid *all);
/* The lines of all comma-separated files that match, below a head of all their columns; no columns
 * where there is no file. */
mpl_status mpl_paper_csv(mpl_ctx *ctx, const char *pattern, mpl_grid *all);

#endif
