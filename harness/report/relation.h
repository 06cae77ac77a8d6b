/* relation.h -- rows as relations, which SQLite joins, groups and sorts. The head of tables.sql
 * tells what queries may use and how their columns become a table. */
#pragma once

#include "harness/report/grid.h"
#include "harness/rows/rows.h"

typedef struct mpl_answer {
    mpl_grid grid;
    uint32_t section; /* index of a row of this section; MPL_NONE: the only table */
} mpl_answer;

/* Receives each table of an answer. It may keep the grid, and then zeroes answer->grid. */
typedef mpl_status mpl_answer_taker(mpl_ctx *ctx, mpl_answer *answer, void *arg);

/* Makes the views of `prelude` over the rows, then the tables of the query's records. MPL_EINPUT:
 * an error reported by the query; MPL_EUNAVAIL: built without SQLite. */
mpl_status mpl_relation_ask(mpl_ctx *ctx, const mpl_rows *rows, const char *prelude,
                            const char *query, mpl_answer_taker *take, void *arg);
