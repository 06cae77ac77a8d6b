/* units.c -- outermost operations of a graph with control flow, and their order. See units.h. */
#include "graphs/problem/control/units.h"

/* ---- units and their order ---- */

static mpl_status number_units(mpl_ctx *ctx, const mpl_graph *g, const mpl_program *program,
                               mpl_units *units)
{
    uint32_t begin = 0;

    units->n_steps = program->n_steps;
    for (mpl_op op = 0; op < g->n_ops; op++)
        units->n += g->op_block[op] == 0;
    MPL_PASS(mpl_new_each(ctx, units->n, units->first, units->last));
    MPL_PASS(mpl_new(ctx, units->of_step, units->n_steps));
    units->n = 0;
    for (uint32_t step = 0; step < units->n_steps; step++) {
        units->of_step[step] = units->n;
        if (program->kind[step] != MPL_STEP_OP || g->op_block[program->of[step]] != 0)
            continue;
        units->first[units->n] = begin; /* steps of its blocks precede its own */
        units->last[units->n++] = step;
        begin = step + 1;
    }
    units->words = units->n / 64 + 1;
    units->n_points = units->n_steps + 2 + units->n;
    units->point_words = units->n_points / 64 + 1;
    return MPL_OK;
}

/* Records that `unit` runs only after `other`, whose set is complete. */
static void add_earlier(mpl_units *units, uint32_t unit, uint32_t other)
{
    uint64_t *earlier = units->earlier + (size_t)unit * units->words;

    if (mpl_bit_has(earlier, other))
        return;
    mpl_bit_add(earlier, other);
    for (uint32_t w = 0; w < units->words; w++)
        earlier[w] |= units->earlier[(size_t)other * units->words + w];
}

/* Records that `unit` reads value v: v's maker comes before. */
static void add_read(const mpl_graph *g, const mpl_program *program, mpl_units *units,
                     uint32_t unit, mpl_value v)
{
    if (v != MPL_NONE && g->value_op[v] != MPL_NONE && g->value_block[v] == 0)
        add_earlier(units, unit, mpl_unit_of(units, program, g->value_op[v]));
}

/* last[n_ops]: scratch, zero; of each stream its last unit so far, plus one. */
static void order_units(const mpl_graph *g, const mpl_program *program, const uint32_t *op_stream,
                        uint32_t *last, mpl_units *units)
{
    for (uint32_t step = 0; step < units->n_steps; step++) {
        uint32_t of = program->of[step], unit = units->of_step[step];

        for (uint32_t i = program->kind[step] == MPL_STEP_OP ? g->op_in_begin[of] : 0;
             program->kind[step] == MPL_STEP_OP && i < g->op_in_begin[of + 1]; i++)
            add_read(g, program, units, unit, g->op_in[i]);
        for (uint32_t i = 0; program->kind[step] == MPL_STEP_END && i < g->block_n_results[of]; i++)
            add_read(g, program, units, unit, mpl_result(g, of, i));
        if (op_stream != NULL && step == units->last[unit]) {
            if (last[op_stream[of]] > 0)
                add_earlier(units, unit, last[op_stream[of]] - 1);
            last[op_stream[of]] = unit + 1;
        }
    }
    for (uint32_t a = 0; a < units->n; a++)
        for (uint32_t b = 0; b < a; b++)
            if (mpl_bit_has(units->earlier + (size_t)a * units->words, b))
                mpl_bit_add(units->later + (size_t)b * units->words, a);
}

void mpl_points_set_unit(const mpl_units *units, uint32_t unit, uint64_t *points)
{
    mpl_bit_add(points, mpl_point_entry(units, unit));
    for (uint32_t step = units->first[unit]; step <= units->last[unit]; step++)
        mpl_bit_add(points, step);
}

void mpl_points_set_range(const mpl_units *units, uint32_t from, uint32_t last, uint64_t *row)
{
    const uint64_t *beside = units->beside + (size_t)units->of_step[from] * units->point_words;

    for (uint32_t step = from; step <= last; step++) {
        mpl_bit_add(row, step);
        mpl_bit_add(row + units->point_words, step);
    }
    for (uint32_t w = 0; w < units->point_words; w++)
        row[units->point_words + w] |= beside[w];
}

mpl_status mpl_units_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_program *program,
                         const uint32_t *op_stream, mpl_units **out)
{
    mpl_status st = MPL_OK;
    mpl_units *units = NULL;
    uint32_t *last = NULL;

    MPL_TRY(mpl_new(ctx, units, 1));
    MPL_TRY(number_units(ctx, g, program, units));
    MPL_TRY(mpl_new_each(ctx, (size_t)units->n * units->words, units->later, units->earlier));
    MPL_TRY(mpl_new(ctx, units->beside, (size_t)units->n * units->point_words));
    MPL_TRY(mpl_new(ctx, last, g->n_ops));
    order_units(g, program, op_stream, last, units);
    for (uint32_t a = 0; a < units->n; a++)
        for (uint32_t b = 0; b < units->n; b++)
            if (a != b && !mpl_bit_has(units->earlier + (size_t)a * units->words, b) &&
                !mpl_bit_has(units->later + (size_t)a * units->words, b))
                mpl_points_set_unit(units, b, units->beside + (size_t)a * units->point_words);
    *out = units, units = NULL;
out:
    mpl_free(ctx, last);
    mpl_units_free(ctx, units);
    return st;
}

void mpl_units_free(mpl_ctx *ctx, mpl_units *units)
{
    if (units == NULL)
        return;
    void *arrays[] = {units->first,   units->last,   units->of_step, units->later,
                      units->earlier, units->beside, units};
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

static uint32_t position(const mpl_units *units, const uint64_t *set, uint32_t unit, bool latest)
{
    uint32_t found = MPL_NONE;

    if (!latest && mpl_bit_has(set, mpl_point_entry(units, unit)))
        return 0;
    for (uint32_t step = units->first[unit]; step <= units->last[unit]; step++)
        if (mpl_bit_has(set, step)) {
            found = step - units->first[unit] + 1;
            if (!latest)
                break;
        }
    return found != MPL_NONE ? found : 0; /* only its beginning */
}

static void fill_extent(const mpl_units *units, const uint64_t *set, extent *e)
{
    e->start = mpl_bit_has(set, mpl_point_start(units));
    e->end = mpl_bit_has(set, mpl_point_end(units));
    for (uint32_t point = 0; point < units->n_points; point++)
        if (mpl_bit_has(set, point) && point != mpl_point_start(units) &&
            point != mpl_point_end(units))
            mpl_bit_add(e->units, point < units->n_steps ? units->of_step[point]
                                                         : point - units->n_steps - 2);
    memset(e->behind, 0xff, units->words * sizeof *e->behind);
    e->last = MPL_NONE;
    for (uint32_t unit = 0; unit < units->n; unit++) {
        const uint64_t *later = units->later + (size_t)unit * units->words;
        bool all = mpl_bit_has(e->units, unit);

        for (uint32_t w = 0; w < units->words && all; w++)
            all = (e->units[w] & ~units->earlier[(size_t)unit * units->words + w] &
                   ~(w == unit / 64 ? UINT64_C(1) << (unit % 64) : 0)) == 0;
        if (all)
            e->last = unit;
        for (uint32_t w = 0; w < units->words && mpl_bit_has(e->units, unit); w++)
            e->behind[w] &= later[w];
    }
    if (e->last != MPL_NONE)
        e->last_at = position(units, set, e->last, true);
}

/* Whether all units of b run after all of a, except that a's last unit may be in b. */
static bool units_follow(const mpl_units *units, const extent *a, const extent *b)
{
    if (a->end || b->start)
        return false;
    for (uint32_t w = 0; w < units->words; w++) {
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

bool mpl_extents_before(const mpl_extents *extents, uint32_t a, uint32_t b)
{
    const extent *x = &extents->at[a], *y = &extents->at[b];

    return units_follow(extents->u, x, y) &&
           (!share_last(x, y) ||
            x->last_at < position(extents->u, extents->set + b * extents->stride, x->last, false));
}

bool mpl_extents_meet_at(const mpl_extents *extents, uint32_t a, uint32_t b, uint32_t step)
{
    const extent *x = &extents->at[a], *y = &extents->at[b];
    uint32_t unit = extents->u->of_step[step], at = step - extents->u->first[unit] + 1;

    return units_follow(extents->u, x, y) && share_last(x, y) && x->last == unit &&
           x->last_at == at &&
           position(extents->u, extents->set + b * extents->stride, unit, false) == at;
}

mpl_status mpl_extents_new(mpl_ctx *ctx, const mpl_units *units, uint32_t n, const uint64_t *set,
                           size_t stride, mpl_extents **out)
{
    mpl_status st = MPL_OK;
    mpl_extents *extents = NULL;

    MPL_TRY(mpl_new(ctx, extents, 1));
    extents->u = units, extents->set = set, extents->stride = stride;
    MPL_TRY(mpl_new(ctx, extents->at, n));
    MPL_TRY(mpl_new(ctx, extents->room, 2 * (size_t)n * units->words));
    for (uint32_t a = 0; a < n; a++) {
        extents->at[a].units = extents->room + 2 * (size_t)a * units->words;
        extents->at[a].behind = extents->at[a].units + units->words;
        fill_extent(units, set + a * stride, &extents->at[a]);
    }
    *out = extents, extents = NULL;
out:
    mpl_extents_free(ctx, extents);
    return st;
}

void mpl_extents_free(mpl_ctx *ctx, mpl_extents *extents)
{
    if (extents == NULL)
        return;
    mpl_free(ctx, extents->at);
    mpl_free(ctx, extents->room);
    mpl_free(ctx, extents);
}
