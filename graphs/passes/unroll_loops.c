/* unroll_loops.c -- see unroll_loops.h.
 *
 * Source   The NNC library plans a loop so (Liu Liu, "The NNC Tensor Allocation Algorithm", 2018,
 *          and its code): a carried value that cannot lie where its parameter does makes it copy
 *          the whole body, until the last copy's value can.
 * Differs  Rounds that K does not divide are copies after the loop; production leaves the loop in
 *          the middle of its body. */
#include "graphs/passes/unroll_loops.h"

#include "graphs/passes/copy.h"

typedef struct unroller {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_graph *to;
    mpl_value *map;   /* [values of g] the latest copy */
    uint32_t *block;  /* [blocks of g] the latest copy */
    uint32_t *copies; /* [operations of g] of a loop that is unrolled; else 0 */
} unroller;

/* A while of g, and what it becomes. Scans, carried values and rows are counted as in g. */
typedef struct unrolled {
    mpl_op op;
    uint32_t body, n_carried, n_scans, n_rows;
    const int64_t *reverse; /* [n_scans + n_rows] or NULL */
    mpl_value *carried;     /* [n_carried] in `to`: what the next round begins with */
    mpl_value *piece;       /* [n_scans + n_rows][MPL_MOST_BODIES] slices of one round */
} unrolled;

/* The loop that it becomes, or the copies after it, which are there once. */
typedef struct rounds {
    int64_t first; /* round of g that it begins with */
    int64_t n;
    uint32_t copies;
    bool is_last;
} rounds;

/* ---- names and pieces ---- */

/* A name of g as it is, if the copy is the first. */
static const char *name_of(const unroller *self, const char *base, char *text)
{
    if (mpl_graph_find(self->to, base) == MPL_NONE &&
        mpl_graph_find_block(self->to, base) == MPL_NONE)
        return base;
    return mpl_repeat_name(self->g, self->to, base, ".copy", NULL, text);
}

static const char *piece_name(const unroller *self, const unrolled *l, char *text)
{
    return mpl_repeat_name(self->g, self->to, self->g->op_name[l->op], ".piece", NULL, text);
}

/* x with other dims, under this name or (NULL) a fresh one. */
static mpl_status reshape(unroller *self, const unrolled *l, const char *name, mpl_value x,
                          const mpl_shape *shape, mpl_value *out)
{
    char text[MPL_REPEAT_NAME];

    name = name != NULL ? name : piece_name(self, l, text);
    return mpl_graph_add_op(self->ctx, self->to, MPL_OP_reshape, name, 1, &x, 1,
                            &MPL_INTS(shape, shape->rank, shape->dim), 1, &name, out);
}

/* Cuts x along its first axis into n pieces of these sizes. */
static mpl_status cut(unroller *self, const unrolled *l, mpl_value x, uint32_t n,
                      const int64_t *sizes, mpl_value *out)
{
    mpl_status st = MPL_OK;
    const char **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL;
    uint32_t number = 1;

    if (n == 1) {
        out[0] = x;
        goto out;
    }
    MPL_TRY(mpl_new_each(self->ctx, n, name, text));
    for (uint32_t i = 0; i < n; i++)
        name[i] =
            mpl_repeat_name(self->g, self->to, self->g->op_name[l->op], ".piece", &number, text[i]);
    MPL_TRY(mpl_graph_add_op(self->ctx, self->to, MPL_OP_split, name[0], 1, &x, 2,
                             (mpl_attr[]){MPL_INT(axis, 0), MPL_INTS(split, n, sizes)}, n, name,
                             out));
out:
    mpl_free_each(self->ctx, name, text);
    return st;
}

static mpl_status join(unroller *self, const unrolled *l, const char *name, uint32_t n,
                       const mpl_value *x, mpl_value *out)
{
    char text[MPL_REPEAT_NAME];

    if (n == 1 && name == NULL) {
        *out = x[0];
        return MPL_OK;
    }
    name = name != NULL ? name : piece_name(self, l, text);
    return mpl_graph_add_op(self->ctx, self->to, MPL_OP_concat, name, n, x, 1, &MPL_INT(axis, 0), 1,
                            &name, out);
}

/* [n, dims..] */
static mpl_shape stacked(int64_t n, const mpl_shape *slice)
{
    mpl_shape shape = {.rank = slice->rank + 1, .dim = {n}};

    memcpy(shape.dim + 1, slice->dim, slice->rank * sizeof *slice->dim);
    return shape;
}

static bool is_reversed(const unrolled *self, uint32_t i)
{
    return self->reverse != NULL && self->reverse[i] != 0;
}

/* ---- bodies ---- */

static mpl_status unroll_op(unroller *self, mpl_op op);

static mpl_status copy_body(unroller *self, uint32_t b)
{
    for (mpl_op op = self->g->block_op_begin[b]; op < self->g->block_op_end[b]; op++)
        if (self->g->op_block[op] == b)
            MPL_PASS(unroll_op(self, op));
    return MPL_OK;
}

static mpl_status copy_block(unroller *self, uint32_t b)
{
    const mpl_graph *g = self->g;
    char text[MPL_REPEAT_NAME];

    MPL_PASS(mpl_graph_open_block(self->ctx, self->to, name_of(self, g->block_name[b], text),
                                  &self->block[b]));
    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value v = mpl_param(g, b, i);

        MPL_PASS(mpl_graph_add_param(self->ctx, self->to, name_of(self, g->value_name[v], text),
                                     (mpl_type)g->value_type[v], &g->value_shape[v],
                                     &self->map[v]));
    }
    MPL_PASS(copy_body(self, b));
    return mpl_copy_close(self->ctx, g, b, self->to, self->map);
}

static mpl_status copy_op(unroller *self, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t n = mpl_op_n_out(g, op);
    const char **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL;

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        MPL_TRY(copy_block(self, g->op_body[k]));
    MPL_TRY(mpl_new_each(self->ctx, n, name, text));
    for (uint32_t i = 0; i < n; i++)
        if (mpl_op_output(g, op, i) != MPL_NONE)
            name[i] = name_of(self, g->value_name[mpl_op_output(g, op, i)], text[i]);
    MPL_TRY(mpl_copy_op_as(self->ctx, g, op, self->to, self->map, self->block,
                           &(mpl_copy_as){.out_name = name}));
out:
    mpl_free_each(self->ctx, name, text);
    return st;
}

/* x = x `kind` number, of scalars. */
static mpl_status count(unroller *self, const unrolled *l, mpl_op_kind kind, int64_t number,
                        mpl_value *x)
{
    char text[MPL_REPEAT_NAME];
    mpl_value in[2] = {*x};
    const char *name;

    MPL_PASS(mpl_graph_add_const(self->ctx, self->to, piece_name(self, l, text), MPL_TYPE_i64,
                                 &(mpl_shape){0}, &number, false, &in[1]));
    name = piece_name(self, l, text);
    return mpl_graph_add_op(self->ctx, self->to, kind, name, 2, in, 0, NULL, 1, &name, x);
}

/* What copy k of the body sees as its round, if it looks. turn: of the loop; MPL_NONE: after it. */
static mpl_status set_round(unroller *self, const unrolled *l, const rounds *r, uint32_t k,
                            mpl_value turn)
{
    mpl_value v = mpl_param(self->g, l->body, 0), x = turn;
    int64_t number = r->first + k;
    char text[MPL_REPEAT_NAME];

    if (self->g->value_use_begin[v] == self->g->value_use_begin[v + 1])
        return MPL_OK;
    if (turn == MPL_NONE) {
        MPL_PASS(mpl_graph_add_const(self->ctx, self->to, piece_name(self, l, text), MPL_TYPE_i64,
                                     &(mpl_shape){0}, &number, false, &x));
    } else {
        MPL_PASS(count(self, l, MPL_OP_mul, r->copies, &x));
        if (number > 0)
            MPL_PASS(count(self, l, MPL_OP_add, number, &x));
    }
    self->map[v] = x;
    return MPL_OK;
}

static mpl_value *piece_of(const unrolled *self, uint32_t i)
{
    return self->piece + (size_t)i * MPL_MOST_BODIES;
}

/* Cuts what the loop hands a round into slices, by the copy that reads each. */
static mpl_status cut_slices(unroller *self, unrolled *l, const rounds *r, const mpl_value *param)
{
    const mpl_graph *g = self->g;
    int64_t ones[MPL_MOST_BODIES];
    mpl_value cut_up[MPL_MOST_BODIES];

    for (uint32_t k = 0; k < r->copies; k++)
        ones[k] = 1;
    for (uint32_t i = 0; i < l->n_scans; i++) {
        const mpl_shape *slice = &g->value_shape[mpl_param(g, l->body, 1 + l->n_carried + i)];

        MPL_PASS(cut(self, l, param[i], r->copies, ones, cut_up));
        for (uint32_t k = 0; k < r->copies; k++)
            MPL_PASS(reshape(self, l, NULL, cut_up[is_reversed(l, i) ? r->copies - 1 - k : k],
                             slice, &piece_of(l, i)[k]));
    }
    return MPL_OK;
}

/* Adds copy k of the body: reads l->carried, and leaves there what it carries on. */
static mpl_status add_copy(unroller *self, unrolled *l, const rounds *r, uint32_t k, mpl_value turn)
{
    const mpl_graph *g = self->g;

    MPL_PASS(set_round(self, l, r, k, turn));
    for (uint32_t i = 0; i < l->n_carried; i++)
        self->map[mpl_param(g, l->body, 1 + i)] = l->carried[i];
    for (uint32_t i = 0; i < l->n_scans; i++)
        self->map[mpl_param(g, l->body, 1 + l->n_carried + i)] = piece_of(l, i)[k];
    MPL_PASS(copy_body(self, l->body));
    for (uint32_t i = 0; i < l->n_carried; i++)
        l->carried[i] = self->map[mpl_result(g, l->body, 1 + i)];
    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value v = mpl_result(g, l->body, 1 + l->n_carried + i);
        mpl_shape row = stacked(1, &g->value_shape[v]);
        uint32_t all = l->n_scans + i;

        MPL_PASS(reshape(self, l, NULL, self->map[v], &row,
                         &piece_of(l, all)[is_reversed(l, all) ? r->copies - 1 - k : k]));
    }
    return MPL_OK;
}

/* Adds the block of r->copies bodies. */
static mpl_status add_bodies(unroller *self, unrolled *l, const rounds *r, uint32_t *block)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    char text[MPL_REPEAT_NAME];
    mpl_value *param = NULL, *result = NULL;
    uint32_t n = 1 + l->n_carried;

    MPL_TRY(mpl_new(self->ctx, param, (size_t)n + l->n_scans));
    MPL_TRY(mpl_new(self->ctx, result, (size_t)n + l->n_rows));
    MPL_TRY(mpl_graph_open_block(self->ctx, self->to, name_of(self, g->block_name[l->body], text),
                                 block));
    for (uint32_t i = 0; i < n + l->n_scans; i++) {
        mpl_value v = mpl_param(g, l->body, i);
        mpl_shape shape = i < n ? g->value_shape[v] : stacked(r->copies, &g->value_shape[v]);

        MPL_TRY(mpl_graph_add_param(self->ctx, self->to, name_of(self, g->value_name[v], text),
                                    (mpl_type)g->value_type[v], &shape, &param[i]));
    }
    memcpy(l->carried, param + 1, l->n_carried * sizeof *param);
    MPL_TRY(cut_slices(self, l, r, param + n));
    for (uint32_t k = 0; k < r->copies; k++)
        MPL_TRY(add_copy(self, l, r, k, param[0]));
    result[0] = MPL_NONE;
    memcpy(result + 1, l->carried, l->n_carried * sizeof *result);
    for (uint32_t i = 0; i < l->n_rows; i++)
        MPL_TRY(join(self, l, NULL, r->copies, piece_of(l, l->n_scans + i), &result[n + i]));
    MPL_TRY(mpl_graph_close_block(self->ctx, self->to, n + l->n_rows, result));
out:
    mpl_free_each(self->ctx, param, result);
    return st;
}

/* ---- loops ---- */

/* Adds the while of these rounds, which begins with l->carried and scan[]. Leaves the carried
 * values there, and what it stacks, as rows of g, in row[]. */
static mpl_status add_loop(unroller *self, unrolled *l, const rounds *r, const mpl_value *scan,
                           mpl_value *row)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t n_in = 2 + l->n_carried + l->n_scans, n_out = l->n_carried + l->n_rows, block;
    uint32_t number = 1, n_attr = 2;
    mpl_value *in = NULL, *out = NULL;
    const char **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL, own[MPL_REPEAT_NAME];
    mpl_attr attr[3] = {MPL_INT(carried, l->n_carried), MPL_INT(trips, r->n)};

    if (l->reverse != NULL)
        attr[n_attr++] = MPL_INTS(scan_reverse, l->n_scans + l->n_rows, l->reverse);
    MPL_TRY(mpl_new(self->ctx, in, n_in));
    MPL_TRY(mpl_new_each(self->ctx, n_out, out, name, text));
    in[0] = in[1] = MPL_NONE;
    memcpy(in + 2, l->carried, l->n_carried * sizeof *in);
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_shape slice =
            stacked(r->copies, &g->value_shape[mpl_param(g, l->body, 1 + l->n_carried + i)]);
        mpl_shape all = stacked(r->n, &slice);

        MPL_TRY(reshape(self, l, NULL, scan[i], &all, &in[2 + l->n_carried + i]));
    }
    MPL_TRY(add_bodies(self, l, r, &block));
    for (uint32_t i = 0; i < n_out; i++) {
        mpl_value v = mpl_op_output(g, l->op, i);

        name[i] =
            r->is_last && i < l->n_carried && v != MPL_NONE
                ? name_of(self, g->value_name[v], text[i])
                : mpl_repeat_name(g, self->to, g->op_name[l->op], ".rounds", &number, text[i]);
        if (v == MPL_NONE && (r->is_last || i >= l->n_carried))
            name[i] = NULL;
    }
    MPL_TRY(
        mpl_graph_add_control(self->ctx, self->to, MPL_OP_while,
                              mpl_repeat_name(g, self->to, g->op_name[l->op], ".bodies", NULL, own),
                              n_in, in, n_attr, attr, 1, &block, n_out, name, out));
    memcpy(l->carried, out, l->n_carried * sizeof *out);
    for (uint32_t i = 0; i < l->n_rows; i++)
        row[i] = name[l->n_carried + i] != NULL ? out[l->n_carried + i] : MPL_NONE;
out:
    mpl_free_each(self->ctx, in, out, name, text);
    return st;
}

/* Cuts scan i into what the first n rounds read, and the others. */
static mpl_status cut_scan(unroller *self, unrolled *l, uint32_t i, int64_t n, int64_t all,
                           mpl_value *first, mpl_value *others)
{
    mpl_value x = self->map[mpl_op_input(self->g, l->op, 2 + l->n_carried + i)], part[2];
    uint32_t reversed = is_reversed(l, i);

    *first = x;
    if (n == all)
        return MPL_OK;
    MPL_PASS(cut(self, l, x, 2, (int64_t[]){reversed ? all - n : n, reversed ? n : all - n}, part));
    *first = part[reversed];
    *others = part[!reversed];
    return MPL_OK;
}

/* Adds the copies after the loop; row[]: what they stack. */
static mpl_status add_rest(unroller *self, unrolled *l, const rounds *r, const mpl_value *scan,
                           mpl_value *row)
{
    MPL_PASS(cut_slices(self, l, r, scan));
    for (uint32_t k = 0; k < r->copies; k++)
        MPL_PASS(add_copy(self, l, r, k, MPL_NONE));
    for (uint32_t i = 0; i < l->n_rows; i++)
        MPL_PASS(join(self, l, NULL, r->copies, piece_of(l, l->n_scans + i), &row[i]));
    return MPL_OK;
}

/* Row output i under its name: row[0] of the loop, of n rounds of g, and row[1] of the rest. */
static mpl_status finish_row(unroller *self, unrolled *l, uint32_t i, int64_t n,
                             const mpl_value *row)
{
    const mpl_graph *g = self->g;
    char text[MPL_REPEAT_NAME];
    mpl_value v = mpl_op_output(g, l->op, l->n_carried + i), part[2];
    uint32_t reversed = is_reversed(l, l->n_scans + i);
    mpl_shape shape;

    if (v == MPL_NONE)
        return MPL_OK;
    shape = g->value_shape[v];
    shape.dim[0] = n;
    if (row[1] == MPL_NONE)
        return reshape(self, l, name_of(self, g->value_name[v], text), row[0], &shape,
                       &self->map[v]);
    MPL_PASS(reshape(self, l, NULL, row[0], &shape, &part[reversed]));
    part[!reversed] = row[1];
    return join(self, l, name_of(self, g->value_name[v], text), 2, part, &self->map[v]);
}

/* The carried outputs: those of the graph keep their names. */
static mpl_status finish_carried(unroller *self, unrolled *l, bool named)
{
    const mpl_graph *g = self->g;
    char text[MPL_REPEAT_NAME];

    for (uint32_t i = 0; i < l->n_carried; i++) {
        mpl_value v = mpl_op_output(g, l->op, i);

        if (v == MPL_NONE)
            continue;
        self->map[v] = l->carried[i];
        if (!named && g->value_role[v] == MPL_OUTPUT)
            MPL_PASS(reshape(self, l, name_of(self, g->value_name[v], text), l->carried[i],
                             &g->value_shape[v], &self->map[v]));
    }
    return MPL_OK;
}

/* Adds the loop and the rest. scan, row: [2] of each. */
static mpl_status add_parts(unroller *self, unrolled *l, mpl_value *scan, mpl_value *row)
{
    const mpl_graph *g = self->g;
    int64_t all = mpl_while_most_rounds(g, l->op), n = all - all % self->copies[l->op];
    rounds loop = {0, n / self->copies[l->op], self->copies[l->op], n == all},
           rest = {n, 1, (uint32_t)(all - n), true};

    for (uint32_t i = 0; i < l->n_carried; i++)
        l->carried[i] = self->map[mpl_op_input(g, l->op, 2 + i)];
    for (uint32_t i = 0; i < l->n_scans; i++)
        MPL_PASS(cut_scan(self, l, i, n, all, &scan[i], &scan[l->n_scans + i]));
    for (uint32_t i = 0; i < l->n_rows; i++)
        row[l->n_rows + i] = MPL_NONE;
    MPL_PASS(add_loop(self, l, &loop, scan, row));
    if (n < all)
        MPL_PASS(add_rest(self, l, &rest, scan + l->n_scans, row + l->n_rows));
    for (uint32_t i = 0; i < l->n_rows; i++)
        MPL_PASS(finish_row(self, l, i, n, (mpl_value[]){row[i], row[l->n_rows + i]}));
    return finish_carried(self, l, n == all);
}

static mpl_status unroll_loop(unroller *self, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    unrolled l = {.op = op, .body = mpl_op_first_body(g, op)};
    mpl_value *scan = NULL, *row = NULL;
    uint32_t n;

    l.n_carried = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
    l.n_scans = mpl_op_n_in(g, op) - 2 - l.n_carried;
    l.n_rows = mpl_op_n_out(g, op) - l.n_carried;
    l.reverse = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n);
    MPL_TRY(mpl_new(self->ctx, l.carried, l.n_carried));
    MPL_TRY(mpl_new(self->ctx, l.piece, (size_t)(l.n_scans + l.n_rows) * MPL_MOST_BODIES));
    MPL_TRY(mpl_new(self->ctx, scan, 2 * (size_t)l.n_scans));
    MPL_TRY(mpl_new(self->ctx, row, 2 * (size_t)l.n_rows));
    MPL_TRY(add_parts(self, &l, scan, row));
out:
    mpl_free_each(self->ctx, l.carried, l.piece, scan, row);
    return st;
}

static mpl_status unroll_op(unroller *self, mpl_op op)
{
    return self->copies[op] > 1 ? unroll_loop(self, op) : copy_op(self, op);
}

/* ---- which loops, and how often ---- */

/* Whether the pass can handle a while: the number of its rounds is known, it writes no weight, and
 * slices have elements. */
static bool can_unroll(const mpl_graph *g, mpl_op op)
{
    uint32_t b = mpl_op_first_body(g, op), carried;

    if (!mpl_while_runs_full(g, op) || mpl_while_most_rounds(g, op) < 2)
        return false;
    for (mpl_op inner = g->block_op_begin[b]; inner < g->block_op_end[b]; inner++)
        if (mpl_n_updates((mpl_op_kind)g->op_kind[inner]) > 0)
            return false;
    carried = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
    for (uint32_t i = 1 + carried; i < g->block_n_params[b]; i++)
        if (mpl_count(&g->value_shape[mpl_param(g, b, i)]) == 0 ||
            g->value_shape[mpl_param(g, b, i)].rank + 2 > MPL_MAX_RANK)
            return false;
    for (uint32_t i = 1 + carried; i < g->block_n_results[b]; i++)
        if (mpl_count(&g->value_shape[mpl_result(g, b, i)]) == 0 ||
            g->value_shape[mpl_result(g, b, i)].rank + 2 > MPL_MAX_RANK)
            return false;
    return true;
}

/* turns[block]: the longest cycle of places of a value in it, once initial values are behind. */
static mpl_status find_turns(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             uint32_t *turns)
{
    mpl_status st = MPL_OK;
    mpl_op *order = NULL;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;

    MPL_TRY(mpl_new(ctx, order, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        order[op] = op;
    MPL_TRY(mpl_problem_from_graph(ctx, g, order, options, &p, &map));
    for (uint32_t i = 0; map->places != NULL && i < map->places->n; i++) {
        const mpl_place *place = &map->places->place[i];

        if (place->kind == MPL_PLACE_CYCLE && place->n - place->n_first > turns[place->of])
            turns[place->of] = place->n - place->n_first;
    }
out:
    mpl_free(ctx, order);
    mpl_value_map_free(ctx, map);
    mpl_problem_free(ctx, p);
    return st;
}

static mpl_status choose_copies(unroller *self, uint32_t asked, const mpl_problem_options *options,
                                mpl_unrolled_loops *facts)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t *turns = NULL, n_able = 0;

    if (asked > MPL_MOST_BODIES)
        MPL_FAIL(self->ctx, MPL_EINPUT, "%u copies of a body; the most is %d", asked,
                 MPL_MOST_BODIES);
    MPL_TRY(mpl_new(self->ctx, turns, g->n_blocks));
    if (asked == 0)
        MPL_TRY(find_turns(self->ctx, g, options, turns));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        int64_t most;

        if (g->op_kind[op] != MPL_OP_while || !can_unroll(g, op))
            continue;
        n_able++;
        most = mpl_while_most_rounds(g, op) < MPL_MOST_BODIES ? mpl_while_most_rounds(g, op)
                                                              : MPL_MOST_BODIES;
        self->copies[op] = asked > 0 ? asked : turns[mpl_op_first_body(g, op)];
        if (self->copies[op] > most)
            self->copies[op] = (uint32_t)most;
        facts->n += self->copies[op] > 1;
        facts->bodies = self->copies[op] > facts->bodies ? self->copies[op] : facts->bodies;
    }
    if (n_able == 0)
        MPL_FAIL(self->ctx, MPL_EINPUT,
                 "graph '%.200s' has no loop of two or more rounds whose number is known and that "
                 "writes no weight: nothing can be unrolled",
                 g->name);
out:
    mpl_free(self->ctx, turns);
    return st;
}

mpl_status mpl_graph_unroll(mpl_ctx *ctx, mpl_graph **graph, uint32_t copies,
                            const mpl_problem_options *options, mpl_unrolled_loops *facts)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = *graph;
    unroller u = {.ctx = ctx, .g = g};
    mpl_unrolled_loops found = {0, 0};

    MPL_TRY(mpl_new(ctx, u.map, g->n_values));
    MPL_TRY(mpl_new(ctx, u.block, g->n_blocks));
    MPL_TRY(mpl_new(ctx, u.copies, g->n_ops));
    MPL_TRY(choose_copies(&u, copies, options, &found));
    MPL_TRY(mpl_graph_new(ctx, g->name, &u.to));
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_INPUT || g->value_role[v] == MPL_WEIGHT)
            MPL_TRY(mpl_copy_value(ctx, g, v, u.to, &u.map[v]));
    MPL_TRY(copy_body(&u, 0));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, u.to, u.map[g->output[i]]));
    MPL_TRY(mpl_graph_finish(ctx, u.to));
    mpl_graph_free(ctx, g);
    *graph = u.to, u.to = NULL;
    *facts = found;
out:
    mpl_graph_free(ctx, u.to);
    mpl_free_each(ctx, u.map, u.block, u.copies);
    return st;
}
