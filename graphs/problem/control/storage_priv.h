/* storage_priv.h -- shared by storage.c and store_*.c. */
#pragma once

#include "graphs/problem/control/storage.h"

/* How a root value gets its address. */
typedef enum mpl_how {
    MPL_HOW_NOWHERE, /* its contents are never read */
    MPL_HOW_PINNED,
    MPL_HOW_CELL,
    MPL_HOW_SLICE,  /* a slice of its scan, or of the output that its rows are stacked in */
    MPL_HOW_FINAL,  /* a while's output: where the last round left it */
    MPL_HOW_BRANCH, /* a case's output: where the branch left it */
} mpl_how;

/* An address that changes by round: in round r, ref[r] while r < n_first, then ref[n_first + (r -
 * n_first) % n_cycle]. */
typedef struct mpl_turn {
    uint32_t block;
    uint32_t begin, n_first, n_cycle; /* into refs: items */
} mpl_turn;

/* Items are the values, by id, then the cells that carried values cycle through. Each item with
 * storage belongs to one cell: a tree of parents, and a ring of members. */
typedef struct mpl_store {
    mpl_ctx *ctx;
    const mpl_storage_spec *spec;
    const mpl_graph *g;
    const mpl_program *program;
    mpl_value *hold;   /* [n_values] root whose contents it reads: its own, or a scan's */
    uint8_t *wanted;   /* [n_values] a carried parameter that is read */
    uint8_t *out_live; /* [n_values] an operation's output that is read */
    uint8_t *how;      /* [n_values] mpl_how, of roots */
    mpl_op *of;        /* [n_values] FINAL, BRANCH, SLICE: the while or case */
    uint32_t *at;      /* [n_values] index of its output; SLICE of a scan: of its input */
    mpl_units *units;  /* parallel: units that may run concurrently; else NULL */
    uint32_t half;     /* words of a set of steps, or of points */
    /* Words of a row. Serial: steps at which the contents are needed. Parallel: two sets of points,
     * first those where they are needed in every run, then those where they are needed in some
     * run. */
    uint32_t words;
    uint32_t n_items, most_items;
    uint64_t *row;    /* [most_items * words] */
    uint32_t *parent; /* [most_items] */
    uint32_t *next;   /* [most_items] ring of the cell's members */
    uint32_t *turn;   /* [most_items] of a cell's representative: into turns; MPL_NONE: it stays */
    uint64_t *bytes;  /* [most_items] of a cell's representative [byte] */
    mpl_value *named; /* [most_items] */
    uint32_t *copy;   /* [most_items] */
    mpl_turn *turns;
    uint32_t n_turns;
    size_t turns_cap;
    uint32_t *refs; /* of turns */
    uint32_t n_refs;
    size_t refs_cap;
    uint32_t *ref0; /* [n_values] item after no round (FINAL), or home of branches (BRANCH) */
    uint32_t *ref1; /* [n_values] FINAL: item that held it in the last round */
    uint32_t *same; /* [n_values] FINAL: the item if it is always the same one; else MPL_NONE */
    uint32_t *dep_begin; /* [n_values] into deps; of FINAL and BRANCH: items that may hold it */
    uint32_t *dep_n;     /* [n_values] */
    uint32_t *deps;
    uint32_t n_deps;
    size_t deps_cap;
    uint8_t *in_copied, *result_copied;
    uint32_t *staging; /* [n_blocks] item or MPL_NONE */
    uint64_t *skipped; /* [n_blocks * (n_values / 64 + 1)] values needed if a body never runs */
} mpl_store;

/* Whether result i of a block is read at its end. */
bool mpl_result_read(const mpl_store *store, uint32_t block, uint32_t i);
/* Fills wanted (parameters whose contents are read) and out_live. */
void mpl_store_wanted(mpl_store *store);
/* Fills the rows of all values, by data flow over the program with its branches. */
mpl_status mpl_store_live(mpl_store *store);

static inline uint64_t *mpl_row(const mpl_store *store, uint32_t item)
{
    return store->row + (size_t)item * store->words;
}
/* Marks contents as needed at `step`. */
void mpl_row_set(const mpl_store *store, uint64_t *row, uint32_t step);
/* Whether both may be needed at once; whether at `step` and at no other. */
bool mpl_rows_meet(const mpl_store *store, const uint64_t *a, const uint64_t *b);
bool mpl_rows_meet_at(const mpl_store *store, const uint64_t *a, const uint64_t *b, uint32_t step);
/* Turns rows of steps (one order) into rows of points (any order of the units). Does nothing
 * without units. */
mpl_status mpl_store_widen(mpl_store *store);

/* Representative of an item's cell. */
uint32_t mpl_cell(mpl_store *store, uint32_t item);
/* Adds an item in a cell of its own, with an empty row. */
uint32_t mpl_item_new(mpl_store *store, mpl_value named, uint64_t bytes, uint32_t copy);
/* Merges two cells if no step needs items of both. Neither may have a turn. */
bool mpl_cells_join(mpl_store *store, uint32_t a, uint32_t b);
/* Extends the live range of root value v by the steps of `row`. False when its place is needed for
 * something else then. */
bool mpl_hold(mpl_store *store, mpl_value v, const uint64_t *row);
/* Appends the items that may hold root value v to the list being made at the end of deps. */
mpl_status mpl_add_deps(mpl_store *store, mpl_value v);
/* The same for any item. */
mpl_status mpl_add_item_deps(mpl_store *store, uint32_t item);

/* Places one `while` (nested blocks are done already); one `case`. */
mpl_status mpl_store_while(mpl_store *s, mpl_op op);
mpl_status mpl_store_case(mpl_store *store, mpl_op op);
