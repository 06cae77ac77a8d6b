/* random_nets.c -- random graphs of dense layers, for orders of many operations.
 *
 * Source   this project. A node reads one value or the sum of several, each by a dense layer of its
 *          own; tanh stands between. Widths are drawn from 64 to 1,024 units, so that values of a
 *          batch of 32 take 8 to 128 KiB.
 *          series_parallel: a part of n operations is one operation, two parts one after the other,
 *          or two to four branches that read one value and end in one sum. layered: rows of nodes;
 * a node reads the one above it and up to two more of that row. The last row ends in one sum. */
#include "graphs/core/rng.h"
#include "graphs/zoo/net/zoo_priv.h"

typedef struct grower {
    mpl_net *net;
    mpl_rng rng;
    uint32_t n_made; /* operations so far; their names */
} grower;

static int64_t draw_units(grower *self)
{
    uint64_t k = mpl_rng_below(&self->rng, 9);

    return k % 2 == 0 ? INT64_C(64) << k / 2 : INT64_C(96) << k / 2;
}

static const char *next_name(grower *self, const char *kind)
{
    return mpl_net_text(self->net, "%s%u", kind, self->n_made++);
}

static mpl_value dense(grower *self, mpl_value x, int64_t units)
{
    return mpl_net_dense(self->net, next_name(self, "fc"), x, units);
}

static mpl_value sum(grower *self, uint32_t n, const mpl_value *in)
{
    return mpl_net_op(self->net, MPL_OP_sum, next_name(self, "sum"), n, in, 0, NULL);
}

/* ---- series-parallel ---- */

enum { MOST_BRANCHES = 4 };

/* A share of n, between an eighth and all but an eighth: the parts nest O(log n) deep. */
static uint32_t draw_share(grower *self, uint32_t n)
{
    uint32_t edge = n / 8 + 1;

    return n <= 2 * edge ? n / 2 : edge + (uint32_t)mpl_rng_below(&self->rng, n - 2 * edge + 1);
}

static mpl_value part(grower *self, mpl_value x, uint32_t n);

/* A branch of n operations: a dense layer at either end, a part between them. */
static mpl_value branch(grower *self, mpl_value x, uint32_t n, int64_t units)
{
    if (n > 1)
        x = dense(self, x, draw_units(self));
    if (n > 2)
        x = part(self, x, n - 2);
    return dense(self, x, units);
}

/* Branches of n - 1 operations in all, each at least one, then their sum. */
static mpl_value side_by_side(grower *self, mpl_value x, uint32_t n)
{
    uint32_t left = n - 1, n_branches = 2 + (uint32_t)mpl_rng_below(&self->rng, MOST_BRANCHES - 1);
    int64_t units = draw_units(self);
    mpl_value end[MOST_BRANCHES];

    n_branches = n_branches > left ? left : n_branches;
    for (uint32_t i = 0; i < n_branches; i++) {
        uint32_t others = n_branches - 1 - i,
                 size = others == 0 ? left : 1 + draw_share(self, left - others - 1);

        end[i] = branch(self, x, size, units);
        left -= size;
    }
    return sum(self, n_branches, end);
}

/* n operations from x on; returns the last one's value. */
static mpl_value part(grower *self, mpl_value x, uint32_t n)
{
    uint32_t first;

    if (n == 1)
        return mpl_rng_below(&self->rng, 2) == 0
                   ? dense(self, x, draw_units(self))
                   : mpl_net_unary(self->net, MPL_OP_tanh, next_name(self, "tanh"), x);
    if (n > 2 && mpl_rng_below(&self->rng, 2) == 0)
        return side_by_side(self, x, n);
    first = draw_share(self, n);
    return part(self, part(self, x, first), n - first);
}

static mpl_status build_series_parallel(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net;
    grower g = {.net = &net};
    mpl_value x;

    g.rng = mpl_rng_of((uint64_t)mpl_zoo_arg(args, "seed"));
    net = mpl_net_begin(ctx, args);
    x = mpl_net_input(&net, "data", 2, (int64_t[]){mpl_zoo_arg(args, "batch"), 256});
    return mpl_net_end(&net, part(&g, x, (uint32_t)mpl_zoo_arg(args, "ops")), out);
}

/* ---- layered ---- */

enum { MOST_WIDTH = 256, MOST_READS = 3 };

/* The node below above[at]; it reads up to `most_reads` nodes of that row. */
static mpl_value node(grower *self, const mpl_value *above, uint32_t width, uint32_t at,
                      uint32_t most_reads)
{
    uint32_t n = 1 + (uint32_t)mpl_rng_below(&self->rng, most_reads);
    int64_t units = draw_units(self);
    mpl_value in[MOST_READS];

    for (uint32_t i = 0; i < n; i++)
        in[i] = dense(self, above[i == 0 ? at : mpl_rng_below(&self->rng, width)], units);
    return n > 1 ? sum(self, n, in)
                 : mpl_net_unary(self->net, MPL_OP_tanh, next_name(self, "tanh"), in[0]);
}

static mpl_value end_of(grower *self, const mpl_value *row, uint32_t width)
{
    mpl_value in[MOST_WIDTH];

    for (uint32_t i = 0; i < width; i++)
        in[i] = dense(self, row[i], 256);
    return width == 1 ? in[0] : sum(self, width, in);
}

static mpl_status build_layered(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net;
    grower g = {.net = &net};
    uint32_t width = (uint32_t)mpl_zoo_arg(args, "width"),
             n_ops = (uint32_t)mpl_zoo_arg(args, "ops");
    mpl_value row[MOST_WIDTH], next[MOST_WIDTH] = {0};

    g.rng = mpl_rng_of((uint64_t)mpl_zoo_arg(args, "seed"));
    net = mpl_net_begin(ctx, args);
    row[0] = mpl_net_input(&net, "data", 2, (int64_t[]){mpl_zoo_arg(args, "batch"), 256});
    for (uint32_t i = width; i-- > 0;)
        row[i] = dense(&g, row[0], draw_units(&g));
    while (net.st == MPL_OK && g.n_made + 2 * width < n_ops) {
        for (uint32_t i = 0; i < width; i++)
            next[i] = node(&g, row, width, i, (uint32_t)mpl_zoo_arg(args, "reads"));
        memcpy(row, next, width * sizeof *row);
    }
    return mpl_net_end(&net, end_of(&g, row, width), out);
}

#define SEED_AND_BATCH {"seed", 1, 0, INT32_MAX, "of the random graph", NULL}, MPL_PARAM_BATCH(32)

MPL_ZOO(series_parallel, "random: dense layers in series and in parallel",
        MPL_PARAMS({"ops", 200, 1, 1000000, "operations", NULL}, SEED_AND_BATCH),
        build_series_parallel);
MPL_ZOO(layered, "random: rows of dense layers, wired from row to row",
        MPL_PARAMS({"ops", 200, 1, 1000000, "operations, to the end of a row", NULL},
                   {"width", 8, 1, MOST_WIDTH, "nodes of a row", NULL},
                   {"reads", 3, 1, MOST_READS, "most nodes that a node reads", NULL},
                   SEED_AND_BATCH),
        build_layered);
