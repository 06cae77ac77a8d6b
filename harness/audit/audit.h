/* audit.h -- holds rows to each other: what one row proves, no row within the scope of the proof
 * may beat. The README of this folder has the scopes. */
#pragma once

#include "harness/rows/rows.h"

/* Freedoms of a plan. All else equal, a scope with more of them contains one with fewer. */
enum {
    MPL_FREE_ORDER = 1,    /* an order other than the one given */
    MPL_FREE_SHARE = 2,    /* concats whose operands lie inside the result */
    MPL_FREE_SPLIT = 4,    /* splits and slices whose pieces are copies */
    MPL_FREE_IN_PLACE = 8, /* outputs over inputs */
    MPL_FREE_VIEWS = 16,   /* views that take no memory */
    MPL_FREE_COPIES = 32,  /* views that are copies; a scope has one of the two, or both */
    MPL_FREE_SERIAL = 64,  /* right for its order alone, not for every execution */
    /* Storage that comes and goes in parts, also where an operation might write over several of
     * them: with in-place pairs such storage stays whole. */
    MPL_FREE_PARTS = 128,
};

/* Plans that keep to the same things. */
typedef struct mpl_scope {
    const char *subject; /* what is held, as text */
    unsigned free;       /* MPL_FREE_.. */
    uint32_t align;      /* of every buffer, at least [byte] */
    uint64_t within;     /* of repeated work: the budget of live bytes; else 0 [byte] */
} mpl_scope;

/* Something that a row says: as a claim, that no plan in the scope has less; as a plan, that there
 * is one in the scope, of so much. */
typedef struct mpl_statement {
    mpl_scope scope;
    uint64_t amount;
    const char *what; /* static: "bound", "optimal", "planned", .. */
    const char *unit; /* static: "bytes", "work", "cost" */
    /* The claim counts plans in whole slots of so many bytes. [byte] */
    uint32_t slot;
    uint32_t row;
    bool if_copied; /* holds only if no concat shares */
} mpl_statement;

typedef struct mpl_statements {
    uint32_t n;
    size_t cap;
    mpl_statement *item;
} mpl_statements;

typedef struct mpl_audited_row {
    const char *file;
    uint32_t line;
    const char *graph, *graph_hash, *problem_hash; /* "": none */
    const char *planner;
} mpl_audited_row;

/* A claim and the least of the plans that are below it. */
typedef struct mpl_beaten {
    mpl_statement claim, plan;
} mpl_beaten;

/* All that rows said, and what came of it. Zero to begin with. */
typedef struct mpl_audit {
    uint32_t n_rows;
    size_t row_cap;
    mpl_audited_row *row;
    mpl_statements claims, plans;
    uint32_t n_texts; /* owned texts of rows and scopes */
    size_t text_cap;
    char **text;
    uint32_t n_copied; /* graphs, and graphs with problems, in which no concat shares */
    size_t copied_cap;
    const char **copied;

    /* Written by mpl_audit_judge. */
    uint32_t n_claims_compared; /* with a plan of another row */
    uint32_t n_rows_compared;   /* with a claim of another row */
    uint64_t n_comparisons;     /* of a claim with a plan of another row */
    uint32_t n_beaten;          /* by order of the rows that claim */
    size_t beaten_cap;
    mpl_beaten *beaten;
} mpl_audit;

/* Adds all rows of a file, one at a time. MPL_EINPUT as of mpl_rows_read. */
mpl_status mpl_audit_file(mpl_ctx *ctx, mpl_audit *audit, const char *path);
/* Adds one row; fields that are null or odd make it say less. */
mpl_status mpl_audit_row(mpl_ctx *ctx, mpl_audit *audit, const char *file, uint32_t line,
                         const mpl_record *row);
/* Compares each claim with all plans in its scope, once. O(n log n + claims * kinds of freedom). */
mpl_status mpl_audit_judge(mpl_ctx *ctx, mpl_audit *audit);
void mpl_audit_fini(mpl_ctx *ctx, mpl_audit *audit);

bool mpl_scope_contains(const mpl_scope *scope, const mpl_scope *other);
/* The scope as text: first the fixed choices, then the free ones. text holds `size` bytes. */
const char *mpl_scope_text(const mpl_scope *scope, char *text, size_t size);
