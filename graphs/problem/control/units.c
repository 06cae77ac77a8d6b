/* units.c -- outermost operations of a graph with control flow, and their order. See units.h. */
#include "graphs/problem/control/units.h"

/* ---- units and their order ---- */

static mpl_status number_units(mpl_ctx *ctx, const mpl_graph *g, const mpl_program *program,
                               mpl_units *u)
{
    uint32_t begin = 0;

    u->n_steps = program->n_steps;
    for (mpl_op op = 0; op < g->n_ops; op++)
        u->n += g->op_block[op] == 0;
    MPL_PASS(mpl_new_each(ctx, u->n, u->first, u->last));
    MPL_PASS(mpl_new(ctx, u->of_step, u->n_steps));
    u->n = 0;
    for (uint32_t step = 0; step < u->n_steps; step++) {
        u->of_step[step] = u->n;
        if (program->kind[step] != MPL_STEP_OP || g->op_block[program->of[step]] != 0)
            continue;
        u->first[u->n] = begin; /* steps of its blocks precede its own */
        u->last[u->n++] = step;
        begin = step + 1;
    }
    u->words = u->n / 64 + 1;
    u->n_points = u->n_steps + 2 + u->n;
    u->point_words = u->n_points / 64 + 1;
    return MPL_OK;
}

/* Records that `unit` runs only after `other`, whose set is complete. */
static void add_earlier(mpl_units *u, uint32_t unit, uint32_t other)
{
    uint64_t *earlier = u->earlier + (size_t)unit * u->words;

    if (mpl_bit_has(earlier, other))
        return;
    mpl_bit_add(earlier, other);
    for (uint32_t w = 0; w < u->words; w++)
        earlier[w] |= u->earlier[(size_t)other * u->words + w];
}

/* Records that `unit` reads value v: v's maker comes before. */
static void add_read(const mpl_graph *g, const mpl_program *program, mpl_units *u, uint32_t unit,
                     mpl_value v)
{
    if (v != MPL_NONE && g->value_op[v] != MPL_NONE && g->value_block[v] == 0)
        add_earlier(u, unit, mpl_unit_of(u, program, g->value_op[v]));
}

/* last[n_ops]: scratch, zero; of each stream its last unit so far, plus one. */
static void order_units(const mpl_graph *g, const mpl_program *program, const uint32_t *op_stream,
                        uint32_t *last, mpl_units *u)
{
    for (uint32_t step = 0; step < u->n_steps; step++) {
        uint32_t of = program->of[step], unit = u->of_step[step];

        for (uint32_t i = program->kind[step] == MPL_STEP_OP ? g->op_in_begin[of] : 0;
             program->kind[step] == MPL_STEP_OP && i < g->op_in_begin[of + 1]; i++)
            add_read(g, program, u, unit, g->op_in[i]);
        for (uint32_t i = 0; program->kind[step] == MPL_STEP_END && i < g->block_n_results[of]; i++)
            add_read(g, program, u, unit, mpl_result(g, of, i));
        if (op_stream != NULL && step == u->last[unit]) {
            if (last[op_stream[of]] > 0)
                add_earlier(u, unit, last[op_stream[of]] - 1);
            last[op_stream[of]] = unit + 1;
        }
    }
    for (uint32_t a = 0; a < u->n; a++)
        for (uint32_t b = 0; b < a; b++)
            if (mpl_bit_has(u->earlier + (size_t)a * u->words, b))
                mpl_bit_add(u->later + (size_t)b * u->words, a);
}

void mpl_points_set_unit(const mpl_units *u, uint32_t unit, uint64_t *points)
{
    mpl_bit_add(points, mpl_point_entry(u, unit));
    for (uint32_t step = u->first[unit]; step <= u->last[unit]; step++)
        mpl_bit_add(points, step);
}

void mpl_points_set_range(const mpl_units *u, uint32_t from, uint32_t last, uint64_t *row)
{
    const uint64_t *beside = u->beside + (size_t)u->of_step[from] * u->point_words;

    for (uint32_t step = from; step <= last; step++) {
        mpl_bit_add(row, step);
        mpl_bit_add(row + u->point_words, step);
    }
    for (uint32_t w = 0; w < u->point_words; w++)
        row[u->point_words + w] |= beside[w];
}

mpl_status mpl_units_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_program *program,
                         const uint32_t *op_stream, mpl_units **out)
{
    mpl_status st = MPL_OK;
    mpl_units *u = NULL;
    uint32_t *last = NULL;

    MPL_TRY(mpl_new(ctx, u, 1));
    MPL_TRY(number_units(ctx, g, program, u));
    MPL_TRY(mpl_new_each(ctx, (size_t)u->n * u->words, u->later, u->earlier));
    MPL_TRY(mpl_new(ctx, u->beside, (size_t)u->n * u->point_words));
    MPL_TRY(mpl_new(ctx, last, g->n_ops));
    order_units(g, program, op_stream, last, u);
    for (uint32_t a = 0; a < u->n; a++)
        for (uint32_t b = 0; b < u->n; b++)
            if (a != b && !mpl_bit_has(u->earlier + (size_t)a * u->words, b) &&
                !mpl_bit_has(u->later + (size_t)a * u->words, b))
                mpl_points_set_unit(u, b, u->beside + (size_t)a * u->point_words);
    *out = u, u = NULL;
out:
    mpl_free(ctx, last);
    mpl_units_free(ctx, u);
    return st;
}

void mpl_units_free(mpl_ctx *ctx, mpl_units *u)
{
    if (u == NULL)
        return;
    void *arrays[] = {u->first, u->last, u->of_step, u->later, u->earlier, u->beside, u};
    MPL_FREE_ALL(ctx, arrays);
}

/* ---- sets of points ---- */

/* Facts that decide the order of two sets. Positions in a unit: 0 is its beginning, then its
 * steps. */
typedef struct extent {
    uint64_t *units;  /* units that have points in it */
    uint64_t *behind; /* units that run only after all of these */
    bool start, end;  /* it contains the beginning of the run; its end */
    uint32_t last;    /* the unit that runs after all others of these; MPL_NONE: none */
    uint32_t last_at; /* its latest position in `last` */
} extent;

struct mpl_extents {
    const mpl_units *u;
    const uint64_t *set;
    size_t stride;
    extent *at;     /* [n] */
    uint64_t *room; /* storage of their sets */
};

static uint32_t position(const mpl_units *u, const uint64_t *set, uint32_t unit, bool latest)
{
    uint32_t found = MPL_NONE;

    if (!latest && mpl_bit_has(set, mpl_point_entry(u, unit)))
        return 0;
    for (uint32_t step = u->first[unit]; step <= u->last[unit]; step++)
        if (mpl_bit_has(set, step)) {
            found = step - u->first[unit] + 1;
            if (!latest)
                break;
        }
    return found != MPL_NONE ? found : 0; /* only its beginning */
}

static void fill_extent(const mpl_units *u, const uint64_t *set, extent *e)
{
    e->start = mpl_bit_has(set, mpl_point_start(u));
    e->end = mpl_bit_has(set, mpl_point_end(u));
    for (uint32_t point = 0; point < u->n_points; point++)
        if (mpl_bit_has(set, point) && point != mpl_point_start(u) && point != mpl_point_end(u))
            mpl_bit_add(e->units, point < u->n_steps ? u->of_step[point] : point - u->n_steps - 2);
    memset(e->behind, 0xff, u->words * sizeof *e->behind);
    e->last = MPL_NONE;
    for (uint32_t unit = 0; unit < u->n; unit++) {
        const uint64_t *later = u->later + (size_t)unit * u->words;
        bool all = mpl_bit_has(e->units, unit);

        for (uint32_t w = 0; w < u->words && all; w++)
            all = (e->units[w] & ~u->earlier[(size_t)unit * u->words + w] &
                   ~(w == unit / 64 ? UINT64_C(1) << (unit % 64) : 0)) == 0;
        if (all)
            e->last = unit;
        for (uint32_t w = 0; w < u->words && mpl_bit_has(e->units, unit); w++)
            e->behind[w] &= later[w];
    }
    if (e->last != MPL_NONE)
        e->last_at = position(u, set, e->last, true);
}

/* Whether all units of b run after all of a, except that a's last unit may be in b. */
static bool units_follow(const mpl_units *u, const extent *a, const extent *b)
{
    if (a->end || b->start)
        return false;
    for (uint32_t w = 0; w < u->words; w++) {
        uint64_t last =
            a->last != MPL_NONE && w == a->last / 64 ? UINT64_C(1) << (a->last % 64) : 0;

        if ((b->units[w] & ~a->behind[w] & ~last) != 0)
            return false;
    }
    return true;
}

static bool share_last(const extent *a, const extent *b)
{
    return a->last != MPL_NONE && mpl_bit_has(b->units, a->last);
}

bool mpl_extents_before(const mpl_extents *e, uint32_t a, uint32_t b)
{
    const extent *x = &e->at[a], *y = &e->at[b];

    return units_follow(e->u, x, y) &&
           (!share_last(x, y) ||
            x->last_at < position(e->u, e->set + b * e->stride, x->last, false));
}

bool mpl_extents_meet_at(const mpl_extents *e, uint32_t a, uint32_t b, uint32_t step)
{
    const extent *x = &e->at[a], *y = &e->at[b];
    uint32_t unit = e->u->of_step[step], at = step - e->u->first[unit] + 1;

    return units_follow(e->u, x, y) && share_last(x, y) && x->last == unit && x->last_at == at &&
           position(e->u, e->set + b * e->stride, unit, false) == at;
}

mpl_status mpl_extents_new(mpl_ctx *ctx, const mpl_units *u, uint32_t n, const uint64_t *set,
                           size_t stride, mpl_extents **out)
{
    mpl_status st = MPL_OK;
    mpl_extents *e = NULL;

    MPL_TRY(mpl_new(ctx, e, 1));
    e->u = u, e->set = set, e->stride = stride;
    MPL_TRY(mpl_new(ctx, e->at, n));
    MPL_TRY(mpl_new(ctx, e->room, 2 * (size_t)n * u->words));
    for (uint32_t a = 0; a < n; a++) {
        e->at[a].units = e->room + 2 * (size_t)a * u->words;
        e->at[a].behind = e->at[a].units + u->words;
        fill_extent(u, set + a * stride, &e->at[a]);
    }
    *out = e, e = NULL;
out:
    mpl_extents_free(ctx, e);
    return st;
}

void mpl_extents_free(mpl_ctx *ctx, mpl_extents *e)
{
    if (e == NULL)
        return;
    mpl_free(ctx, e->at);
    mpl_free(ctx, e->room);
    mpl_free(ctx, e);
}
