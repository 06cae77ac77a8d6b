/* rules_move.c -- shape rules over symbols: views, parts, indices, control flow. See
 * shape_rules.h. */
#include "graphs/symbols/shape_rules_priv.h"

enum { FAR = 1 << 30 }; /* an end of a slice beyond it means the end of the axis */

/* ---- views ---- */

/* The open dim of a reshape: what is left of all elements. */
static mpl_expr left_over(mpl_rule *rule, mpl_dims x, uint32_t open)
{
    mpl_expr all = product(rule, x, 0, x.rank), known = number(rule, 1), out = 0;
    bool exact = false;

    for (uint32_t i = 0; i < rule->rank; i++)
        if (i != open)
            known = two(rule, mpl_expr_mul, known, rule->dim[i]);
    if (rule->st == MPL_OK)
        rule->st = mpl_expr_exact_div(rule->call->ctx, rule->call->exprs, all, known, &exact, &out);
    rule->known = rule->known && exact;
    return out;
}

static void reshape(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n = mpl_rule_count(rule, MPL_ATTR_shape), open = MPL_NONE;

    for (uint32_t i = 0; rule->known && i < n; i++) {
        mpl_expr want = mpl_rule_varying(rule, MPL_ATTR_shape, i);
        int64_t constant;

        if (!mpl_expr_is_const(rule->call->exprs, want, &constant) || constant > 0)
            put(rule, want);
        else if (constant == 0 && i < x.rank)
            put(rule, x.dim[i]);
        else
            open = i, put(rule, 0);
    }
    if (rule->known && open != MPL_NONE)
        rule->dim[open] = left_over(rule, x, open);
}

static void flatten(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    int64_t axis = mpl_rule_one(rule, MPL_ATTR_axis, 1);

    axis += axis < 0 ? x.rank : 0;
    rule->known = rule->known && axis >= 0 && axis <= (int64_t)x.rank;
    if (rule->known)
        put(rule, product(rule, x, 0, (uint32_t)axis)),
            put(rule, product(rule, x, (uint32_t)axis, x.rank));
}

static void squeeze(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t set = mpl_rule_axes(rule, x.rank, 0), n;
    bool given = mpl_rule_fixed(rule, MPL_ATTR_axes, &n) != NULL;

    for (uint32_t i = 0; i < x.rank; i++) {
        int64_t constant = 0;
        bool is_const = mpl_expr_is_const(rule->call->exprs, x.dim[i], &constant);

        rule->known = rule->known && (given || is_const);
        if (given ? (set >> i & 1) == 0 : constant != 1)
            put(rule, x.dim[i]);
    }
}

static void unsqueeze(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n, set;

    mpl_rule_fixed(rule, MPL_ATTR_axes, &n);
    set = mpl_rule_axes(rule, x.rank + n, 0);
    for (uint32_t i = 0, from = 0; rule->known && i < x.rank + n; i++)
        put(rule, (set >> i & 1) != 0 || from == x.rank ? number(rule, 1) : x.dim[from++]);
}

static void transpose(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n;
    const int64_t *perm = mpl_rule_fixed(rule, MPL_ATTR_perm, &n);

    rule->known = rule->known && (perm == NULL || n == x.rank);
    for (uint32_t i = 0; rule->known && i < x.rank; i++)
        put(rule, x.dim[perm != NULL ? mpl_rule_as_axis(rule, perm[i], x.rank) : x.rank - 1 - i]);
}

/* Blocks of channels become rows and columns, or the other way. */
static void blocks(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    int64_t block = mpl_rule_one(rule, MPL_ATTR_blocksize, 1);
    bool deep = rule->g->op_kind[rule->op] == MPL_OP_space_to_depth;

    rule->known = rule->known && x.rank == 4 && block > 0 && block < 1 << 15;
    for (uint32_t i = 0; rule->known && i < 4; i++) {
        int64_t by = i == 0 ? 1 : i == 1 ? block * block : block;

        put(rule, (i == 1) == deep ? times(rule, x.dim[i], by) : over(rule, x.dim[i], by));
    }
}

/* ---- parts ---- */

static void concat(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t axis = mpl_rule_axis(rule, 0, x.rank);

    put_all(rule, x, 0, x.rank);
    for (uint32_t i = 1; rule->known && i < mpl_op_n_in(rule->g, rule->op); i++) {
        mpl_dims more = input(rule, i);

        if (rule->known)
            rule->dim[axis] = two(rule, mpl_expr_add, rule->dim[axis], more.dim[axis]);
    }
}

static void split(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t axis = mpl_rule_axis(rule, 0, x.rank), n_out = mpl_op_n_out(rule->g, rule->op),
             n = mpl_rule_count(rule, MPL_ATTR_split);

    put_all(rule, x, 0, x.rank);
    if (rule->known && n == n_out)
        rule->dim[axis] = mpl_rule_varying(rule, MPL_ATTR_split, rule->out);
    else if (rule->known) { /* equal parts; the last may be smaller */
        mpl_expr part = over(rule, plus(rule, x.dim[axis], n_out - 1), n_out);

        rule->dim[axis] = rule->out + 1 < n_out
                              ? part
                              : two(rule, mpl_expr_sub, x.dim[axis], times(rule, part, n_out - 1));
    }
}

/* An end of a slice, within [least, most]; negative ones count from the end of the axis. */
static mpl_expr end_of(mpl_rule *rule, mpl_expr dim, mpl_expr at, mpl_expr least, mpl_expr most)
{
    int64_t constant, low, high;

    if (mpl_expr_is_const(rule->call->exprs, at, &constant)) {
        if (constant > FAR)
            return most;
        if (constant < -FAR)
            return least;
        low = high = constant;
    } else if (!mpl_expr_bounds(rule->call->exprs, at, NULL, &low, &high)) {
        rule->known = false;
        return 0;
    }
    rule->known = rule->known && (low >= 0 || high < 0);
    if (high < 0)
        at = two(rule, mpl_expr_add, at, dim);
    return two(rule, mpl_expr_min, two(rule, mpl_expr_max, at, least), most);
}

static mpl_expr slice_axis(mpl_rule *rule, mpl_expr dim, mpl_expr start, mpl_expr end, int64_t step)
{
    mpl_expr last = plus(rule, dim, -1), room;

    if (step > 0)
        room = two(rule, mpl_expr_sub, end_of(rule, dim, end, 0, dim),
                   end_of(rule, dim, start, 0, dim));
    else
        room = two(rule, mpl_expr_sub, end_of(rule, dim, start, 0, last),
                   end_of(rule, dim, end, number(rule, -1), last));
    step = step < 0 ? -step : step;
    return two(rule, mpl_expr_max, over(rule, plus(rule, room, step - 1), step), 0);
}

static void slice(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n = mpl_rule_count(rule, MPL_ATTR_starts), n_axes, n_steps;
    const int64_t *axes = mpl_rule_fixed(rule, MPL_ATTR_axes, &n_axes);
    const int64_t *steps = mpl_rule_fixed(rule, MPL_ATTR_steps, &n_steps);

    put_all(rule, x, 0, x.rank);
    rule->known = rule->known && mpl_rule_count(rule, MPL_ATTR_ends) == n;
    for (uint32_t i = 0; rule->known && i < n; i++) {
        uint32_t axis = mpl_rule_as_axis(rule, axes != NULL ? axes[i] : (int64_t)i, x.rank);
        int64_t step = steps != NULL ? steps[i] : 1;

        rule->known = rule->known && step != 0 && step > -FAR && step < FAR;
        if (rule->known)
            rule->dim[axis] =
                slice_axis(rule, x.dim[axis], mpl_rule_varying(rule, MPL_ATTR_starts, i),
                           mpl_rule_varying(rule, MPL_ATTR_ends, i), step);
    }
}

static void expand(mpl_rule *rule)
{
    mpl_expr want[MPL_MAX_RANK];
    mpl_dims x = input(rule, 0);
    uint32_t n = mpl_rule_count(rule, MPL_ATTR_shape);

    put_all(rule, x, 0, x.rank);
    rule->known = rule->known && n <= MPL_MAX_RANK;
    for (uint32_t i = 0; rule->known && i < n; i++)
        want[i] = mpl_rule_varying(rule, MPL_ATTR_shape, i);
    if (rule->known)
        mpl_rule_broadcast(rule, (mpl_dims){n, want});
}

static void tile(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);

    rule->known = rule->known && mpl_rule_count(rule, MPL_ATTR_repeats) == x.rank;
    for (uint32_t i = 0; rule->known && i < x.rank; i++)
        put(rule, two(rule, mpl_expr_mul, x.dim[i], mpl_rule_varying(rule, MPL_ATTR_repeats, i)));
}

static void pad(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n, n_pads = mpl_rule_count(rule, MPL_ATTR_pads);
    const int64_t *axes = mpl_rule_fixed(rule, MPL_ATTR_axes, &n);

    n = axes != NULL ? n : x.rank;
    put_all(rule, x, 0, x.rank);
    rule->known = rule->known && n_pads == 2 * n;
    for (uint32_t i = 0; rule->known && i < n; i++) {
        uint32_t axis = mpl_rule_as_axis(rule, axes != NULL ? axes[i] : (int64_t)i, x.rank);
        mpl_expr both = two(rule, mpl_expr_add, mpl_rule_varying(rule, MPL_ATTR_pads, i),
                            mpl_rule_varying(rule, MPL_ATTR_pads, n + i));

        rule->dim[axis] = two(rule, mpl_expr_add, x.dim[axis], both);
    }
}

/* To given sizes, or by whole factors. */
static void resize(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n, n_sizes = mpl_rule_count(rule, MPL_ATTR_sizes);
    const int64_t *axes = mpl_rule_fixed(rule, MPL_ATTR_axes, &n);
    mpl_attr scales = {.n = 0};

    mpl_attr_get(rule->g, rule->op, MPL_ATTR_scales, &scales);
    n = axes != NULL ? n : x.rank;
    put_all(rule, x, 0, x.rank);
    rule->known = rule->known && (n_sizes == n || (n_sizes == 0 && scales.n == n)) &&
                  !mpl_attr_get(rule->g, rule->op, MPL_ATTR_roi, &(mpl_attr){.n = 0});
    for (uint32_t i = 0; rule->known && i < n; i++) {
        uint32_t axis = mpl_rule_as_axis(rule, axes != NULL ? axes[i] : (int64_t)i, x.rank);
        double scale = n_sizes == n ? 1 : scales.floats[i];

        rule->known = rule->known && scale >= 1 && scale < FAR && scale == (double)(int64_t)scale;
        if (rule->known)
            rule->dim[axis] = n_sizes == n ? mpl_rule_varying(rule, MPL_ATTR_sizes, i)
                                           : times(rule, x.dim[axis], (int64_t)scale);
    }
}

/* ---- indices ---- */

static void like_indices(mpl_rule *rule)
{
    mpl_dims d = input(rule, 1);

    put_all(rule, d, 0, d.rank);
}

static void gather(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0), indices = input(rule, 1);
    uint32_t axis = mpl_rule_axis(rule, 0, x.rank);

    if (!rule->known)
        return;
    put_all(rule, x, 0, axis);
    put_all(rule, indices, 0, indices.rank);
    put_all(rule, x, axis + 1, x.rank);
}

static void gather_nd(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0), indices = input(rule, 1);
    int64_t batch = mpl_rule_one(rule, MPL_ATTR_batch_dims, 0), tuple = 0;

    rule->known = rule->known && indices.rank > 0 &&
                  mpl_expr_is_const(rule->call->exprs, indices.dim[indices.rank - 1], &tuple) &&
                  batch >= 0 && batch + tuple <= (int64_t)x.rank;
    if (!rule->known)
        return;
    put_all(rule, indices, 0, indices.rank - 1);
    put_all(rule, x, (uint32_t)(batch + tuple), x.rank);
}

static void one_hot(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t axis = mpl_rule_axis(rule, -1, x.rank + 1);

    rule->known = rule->known && mpl_rule_count(rule, MPL_ATTR_depth) == 1;
    for (uint32_t i = 0, from = 0; rule->known && i <= x.rank; i++)
        put(rule, i == axis ? mpl_rule_varying(rule, MPL_ATTR_depth, 0) : x.dim[from++]);
}

/* The last dim is that of the columns which count n-grams. */
static void tf_idf(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n = 0;
    const int64_t *column = mpl_rule_fixed(rule, MPL_ATTR_ngram_indexes, &n);
    int64_t columns = 0;

    rule->known = rule->known && x.rank > 0 && column != NULL;
    if (!rule->known)
        return;
    for (uint32_t i = 0; i < n; i++)
        columns = column[i] >= columns ? column[i] + 1 : columns;
    put_all(rule, x, 0, x.rank - 1);
    put(rule, number(rule, columns));
}

/* ---- lengths that depend on data: the most that there can be, and a scalar ---- */

static void non_zero(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);

    if (rule->out == 0 && rule->known)
        put(rule, number(rule, x.rank)), put(rule, product(rule, x, 0, x.rank));
}

static void compress(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0), which = input(rule, 1);
    uint32_t axis = mpl_rule_axis(rule, 0, x.rank);

    if (rule->out > 0 || !rule->known)
        return;
    put_all(rule, x, 0, x.rank);
    rule->dim[axis] = two(rule, mpl_expr_min, x.dim[axis], which.dim[0]);
}

static void nms(mpl_rule *rule)
{
    mpl_dims boxes = input(rule, 0), scores = input(rule, 1);
    mpl_expr each;

    rule->known = rule->known && boxes.rank == 3 && scores.rank == 3;
    if (rule->out > 0 || !rule->known)
        return;
    each = mpl_rule_count(rule, MPL_ATTR_k) == 1
               ? two(rule, mpl_expr_max, mpl_rule_varying(rule, MPL_ATTR_k, 0), 0)
               : 0;
    each = two(rule, mpl_expr_min, each, boxes.dim[1]);
    put(rule, two(rule, mpl_expr_mul, product(rule, scores, 0, 2), each));
    put(rule, number(rule, 3));
}

/* ---- control ---- */

/* Carried values have the dims that they begin with; rows are stacked, one a round. */
static void loop(mpl_rule *rule)
{
    const mpl_graph *g = rule->g;
    uint32_t carried = mpl_n_carried(g, rule->op), b = mpl_op_first_body(g, rule->op),
             n_in = mpl_op_n_in(g, rule->op);
    mpl_dims row;

    if (rule->out < carried) {
        row = input(rule, 2 + rule->out);
        put_all(rule, row, 0, row.rank);
        return;
    }
    row = dims_of(rule, g->block_result[g->block_result_begin[b] + 1 + rule->out]);
    rule->known = rule->known && row.rank != MPL_NONE;
    if (!rule->known)
        return;
    if (2 + carried < n_in) {
        mpl_dims scanned = input(rule, 2 + carried);

        rule->known = rule->known && scanned.rank > 0;
        put(rule, rule->known ? scanned.dim[0] : 0);
    } else {
        rule->known = mpl_rule_count(rule, MPL_ATTR_trips) == 1;
        put(rule, rule->known ? mpl_rule_varying(rule, MPL_ATTR_trips, 0) : 0);
    }
    put_all(rule, row, 0, row.rank);
}

static void branch(mpl_rule *rule)
{
    const mpl_graph *g = rule->g;
    uint32_t b = mpl_op_first_body(g, rule->op);
    mpl_dims d = dims_of(rule, g->block_result[g->block_result_begin[b] + rule->out]);

    rule->known = rule->known && d.rank != MPL_NONE;
    if (rule->known)
        put_all(rule, d, 0, d.rank);
}

/* ---- the table ---- */

const mpl_rule_entry mpl_rules_of_moves[] = {
    {"reshape", reshape},     {"flatten", flatten},     {"squeeze", squeeze},
    {"unsqueeze", unsqueeze}, {"transpose", transpose}, {"depth_to_space space_to_depth", blocks},
    {"concat", concat},       {"split", split},         {"slice", slice},
    {"expand", expand},       {"tile", tile},           {"pad", pad},
    {"resize", resize},       {"gather", gather},       {"gather_elements", like_indices},
    {"gather_nd", gather_nd}, {"one_hot", one_hot},     {"tf_idf", tf_idf},
    {"non_zero", non_zero},   {"compress", compress},   {"nms", nms},
    {"while", loop},          {"case", branch},         {NULL, NULL},
};
