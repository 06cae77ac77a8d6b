/* program_orders.h -- enumerates every order of every block of a small graph with control flow. */
#pragma once

#include "tests/support/test.h"

enum { PROGRAM_MOST_OPS = 24, PROGRAM_MOST_BLOCKS = 16, PROGRAM_MOST_ORDERS = 4000 };

typedef struct program_orders {
    const mpl_graph *g;
    void (*each)(struct program_orders *all, const mpl_op *order);
    void *arg;
    uint64_t most, n; /* orders to call each() with; those so far */
    bool too_many;
    uint32_t before[PROGRAM_MOST_OPS]; /* bits: operations of the same block that come first */
    /* Orders of each block, one after the other. */
    uint32_t n_orders[PROGRAM_MOST_BLOCKS], n_ops[PROGRAM_MOST_BLOCKS];
    mpl_op *orders[PROGRAM_MOST_BLOCKS];
    uint32_t taken[PROGRAM_MOST_BLOCKS]; /* which order of each block */
    mpl_op now[PROGRAM_MOST_OPS];
} program_orders;

/* The operation of block b that is `op` or contains it; MPL_NONE: none. */
static inline mpl_op program_within(const mpl_graph *g, mpl_op op, uint32_t b)
{
    while (op != MPL_NONE && g->op_block[op] != b)
        op = g->block_owner[g->op_block[op]];
    return op;
}

/* What reads v comes after v's maker, and so does whatever contains the reader in v's block. */
static inline void program_reads(program_orders *all, mpl_op reader, mpl_value v)
{
    const mpl_graph *g = all->g;
    mpl_op maker = v != MPL_NONE ? g->value_op[v] : MPL_NONE, outer;

    if (maker == MPL_NONE)
        return;
    outer = program_within(g, reader, g->op_block[maker]);
    if (outer != MPL_NONE && outer != maker)
        all->before[outer] |= 1u << maker;
}

static inline void program_block(program_orders *all, uint32_t b, uint32_t n, uint32_t done)
{
    const mpl_graph *g = all->g;

    if (n == all->n_ops[b]) {
        mpl_op *list = all->orders[b] + all->n_orders[b] * PROGRAM_MOST_OPS;

        if (all->n_orders[b] == PROGRAM_MOST_ORDERS) {
            all->too_many = true;
            return;
        }
        all->n_orders[b]++;
        memcpy(list, all->now, n * sizeof *list);
        return;
    }
    for (mpl_op op = 0; op < g->n_ops && !all->too_many; op++)
        if (g->op_block[op] == b && (done >> op & 1) == 0 && (all->before[op] & ~done) == 0) {
            all->now[n] = op;
            program_block(all, b, n + 1, done | 1u << op);
        }
}

static inline uint32_t program_write(const program_orders *all, uint32_t b, mpl_op *order)
{
    const mpl_graph *g = all->g;
    uint32_t n = 0;

    for (uint32_t i = 0; i < all->n_ops[b]; i++) {
        mpl_op op = all->orders[b][all->taken[b] * PROGRAM_MOST_OPS + i];

        for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
            n += program_write(all, g->op_body[k], order + n);
        order[n++] = op;
    }
    return n;
}

/* Calls each() with every order; false: there are more than `most`, or the graph is too large. */
static inline bool program_visit(program_orders *all)
{
    const mpl_graph *g = all->g;
    uint64_t product = 1;
    uint32_t b = 0;
    mpl_op order[PROGRAM_MOST_OPS];

    if (g->n_ops > PROGRAM_MOST_OPS || g->n_blocks > PROGRAM_MOST_BLOCKS)
        return false;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        all->n_ops[g->op_block[op]]++;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            program_reads(all, op, g->op_in[i]);
    }
    for (b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            program_reads(all, g->block_owner[b], mpl_result(g, b, i));
    for (b = 0; b < g->n_blocks; b++) {
        all->orders[b] = malloc(sizeof(mpl_op) * PROGRAM_MOST_OPS * PROGRAM_MOST_ORDERS);
        program_block(all, b, 0, 0);
        product = product > all->most ? product : product * all->n_orders[b];
    }
    while (!all->too_many && product <= all->most) {
        assert_int_equal(program_write(all, 0, order), g->n_ops);
        all->n++;
        all->each(all, order);
        for (b = 0; b < g->n_blocks && ++all->taken[b] == all->n_orders[b]; b++)
            all->taken[b] = 0;
        if (b == g->n_blocks)
            break;
    }
    for (b = 0; b < g->n_blocks; b++)
        free(all->orders[b]);
    return !all->too_many && product <= all->most;
}
