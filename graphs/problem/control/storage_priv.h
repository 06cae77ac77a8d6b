/* storage_priv.h -- what the files of storage.h share. */
#ifndef MPL_STORAGE_PRIV_H
#define MPL_STORAGE_PRIV_H

#include "graphs/problem/control/storage.h"
#include "graphs/problem/control/units.h"

/* How a root value gets its address. */
typedef enum mpl_how {
    MPL_HOW_NOWHERE, /* nobody needs its contents */
    MPL_HOW_PINNED,
    MPL_HOW_CELL,
    MPL_HOW_SLICE,  /* a part of its scan, or of the output that its rows are stacked in */
    MPL_HOW_FINAL,  /* a while's output: wherever the last round left it */
    MPL_HOW_BRANCH, /* a case's output: wherever the branch left it */
} mpl_how;

/* An address that goes round: in round r, ref[r] while r < n_first, then ref[n_first + (r -
 * n_first) % n_cycle]. */
typedef struct mpl_turn {
    uint32_t block;
    uint32_t begin, n_first, n_cycle; /* into refs: items */
} mpl_turn;

/* Items are the values, by id, and behind them the cells that carried values go round. Each item
 * that has storage is in one cell: a tree of parents, and a ring of its members. */
typedef struct mpl_store {
    mpl_ctx *ctx;
    const mpl_storage_spec *spec;
    const mpl_graph *g;
    const mpl_program *program;
    mpl_value *hold;   /* [n_values] the root whose contents it reads: its own, or a scan's */
    uint8_t *wanted;   /* [n_values] a carried parameter that something reads */
    uint8_t *out_live; /* [n_values] an operation's output that something reads */
    uint8_t *how;      /* [n_values] mpl_how, of roots */
    mpl_op *of;        /* [n_values] FINAL, BRANCH, SLICE: the while or case */
    uint32_t *at;      /* [n_values] which output of it; SLICE of a scan: which input */
    mpl_units *units;  /* safety parallel: what runs at the same time; else NULL */
    uint32_t half;     /* words of a set of steps, or of points */
    /* Of a row. Serial: the steps at which its contents must stand. Parallel: points at which they
     * do in every run, and behind them those at which they do in some run, so at the same time as
     * something else: wherever they may stand. */
    uint32_t words;
    uint32_t n_items, most_items;
    uint64_t *row;    /* [most_items * words] */
    uint32_t *parent; /* [most_items] */
    uint32_t *next;   /* [most_items] ring of the cell's members */
    uint32_t *turn;   /* [most_items] of a cell's representative: into turns; MPL_NONE: it stays */
    uint64_t *bytes;  /* [most_items] of a cell's representative */
    mpl_value *named; /* [most_items] */
    uint32_t *copy;   /* [most_items] */
    mpl_turn *turns;
    uint32_t n_turns;
    size_t turns_cap;
    uint32_t *refs; /* of turns */
    uint32_t n_refs;
    size_t refs_cap;
    uint32_t *ref0; /* [n_values] FINAL: what holds it when no round ran; BRANCH: the item that
                       branches leave it in */
    uint32_t *ref1; /* [n_values] FINAL: what held it in the last round */
    uint32_t *same; /* [n_values] FINAL: the item that always lies there; MPL_NONE: that depends */
    uint32_t *dep_begin; /* [n_values] into deps; of FINAL and BRANCH: items that may hold it */
    uint32_t *dep_n;     /* [n_values] */
    uint32_t *deps;
    uint32_t n_deps;
    size_t deps_cap;
    uint8_t *in_copied, *result_copied;
    uint32_t *staging; /* [n_blocks] item or MPL_NONE */
    uint64_t *skipped; /* [n_blocks * (n_values / 64 + 1)] of a body: values that are needed behind
                          it if it has no round */
} mpl_store;

/* What is read at all: wanted (parameters among them, if something reads their contents) and
 * out_live. */
void mpl_store_wanted(mpl_store *s);
/* Rows of all values, by data flow over the program with its branches. */
mpl_status mpl_store_live(mpl_store *s);

static inline uint64_t *mpl_row(const mpl_store *s, uint32_t item)
{
    return s->row + (size_t)item * s->words;
}
/* store_units.c: contents must stand at `step`. */
void mpl_row_set(const mpl_store *s, uint64_t *row, uint32_t step);
/* Whether both may have to stand at once; whether they do, and at `step` alone. */
bool mpl_rows_meet(const mpl_store *s, const uint64_t *a, const uint64_t *b);
bool mpl_rows_meet_at(const mpl_store *s, const uint64_t *a, const uint64_t *b, uint32_t step);
/* Makes rows of points, for any order of the units, out of those of steps, of one order. Nothing
 * without units. */
mpl_status mpl_store_widen(mpl_store *s);

/* The representative of an item's cell. */
uint32_t mpl_cell(mpl_store *s, uint32_t item);
/* A new item of its own cell, with an empty row. */
uint32_t mpl_item_new(mpl_store *s, mpl_value named, uint64_t bytes, uint32_t copy);
/* Makes two cells one, if no step needs two of their items; both must stay where they are. */
bool mpl_cells_join(mpl_store *s, uint32_t a, uint32_t b);
/* Lets the contents of value v (a root) stand at the further steps of `row`; false when something
 * else needs the place then. */
bool mpl_hold(mpl_store *s, mpl_value v, const uint64_t *row);
/* Appends what may hold root value v to the list of dependencies that is being made at the end of
 * deps. */
mpl_status mpl_add_deps(mpl_store *s, mpl_value v);
/* The same for any item. */
mpl_status mpl_add_item_deps(mpl_store *s, uint32_t item);

/* One `while`, of which nested blocks are done; one `case`. */
mpl_status mpl_store_while(mpl_store *s, mpl_op op);
mpl_status mpl_store_case(mpl_store *s, mpl_op op);

#endif
