/* relation.h -- rows as relations, which SQLite joins, groups and orders. What a query may use and
 * how its columns become a table stands at the head of tables.sql. */
#ifndef MPL_RELATION_H
#define MPL_RELATION_H

#include "harness/report/grid.h"
#include "harness/rows/rows.h"

/* One table of an answer. */
typedef struct mpl_answer {
    mpl_grid grid;
    uint32_t section; /* index of the row that tells it apart; MPL_NONE: there is one table only */
} mpl_answer;

/* Given each table that an answer makes; may keep the grid, and leaves zeros behind then. */
typedef mpl_status mpl_answer_taker(mpl_ctx *ctx, mpl_answer *answer, void *arg);

/* Makes the views of `prelude` over the rows, then the tables of the query's records. MPL_EINPUT:
 * what the query itself refuses; MPL_EUNAVAIL: built without SQLite. */
mpl_status mpl_relation_ask(mpl_ctx *ctx, const mpl_rows *rows, const char *prelude,
                            const char *query, mpl_answer_taker *take, void *arg);

#endif
