/* ilp_model.c -- placement as a mixed integer program. See ilp_priv.h.
 *
 * Columns  H; the offset of each member in its steps; for each conflicting pair {i, j}, i < j, a
 *          binary "i lies below j", whose complement is "j lies below i". An in-place pair has a
 *          binary for each direction; both 0 means the same offset.
 * Rows     Pairs: x_i + z_i <= x_j if i is below j, else no constraint (big-M, M as small as the
 *          bounds allow). Cliques: in a set S of pairwise conflicting members, everything below i
 *          fits below it, x_i >= base + sum z_j (j below i), and everything above it fits above it.
 *          Members of an in-place pair of S at one offset count the smaller one twice, so it is
 *          subtracted again. Families: two rows fix x_k - x_lowest.
 * Fixed    Pairs that bounds decide; the order by index of identical members; the direction of one
 *          pair if the packing turned upside down is equally good. */
#include "planners/ilp/ilp_priv.h"

#include <math.h>

typedef struct builder {
    const mpl_ilp *s;
    const mpl_ilp_part *part;
    mpl_lp *lp;
    uint64_t *inside; /* [n_words] the members as a row of bits */
    uint8_t *linked;  /* [n] members of families with several parts */
    /* [n * n] members k, l: column of "k below l", for k < l or an in-place pair; else MPL_NONE */
    uint32_t *pair;
    uint64_t *low, *high; /* [n] of offsets [unit] */
    bool whole_units;     /* every end is a whole number of units */
    uint32_t *clique;     /* [n] members of one clique */
    uint32_t n_clique;
    size_t entries_left;
    /* the current row: sum value * column >= floor */
    uint32_t *col;
    double *value;
    uint32_t n_terms;
    double floor;
} builder;

static uint32_t *pair_column(const builder *b, uint32_t k, uint32_t l)
{
    return &b->pair[(size_t)k * b->part->n + l];
}

static uint32_t id(const builder *b, uint32_t k)
{
    return b->part->member[k];
}

static double size(const builder *b, uint32_t k)
{
    return (double)b->s->size[id(b, k)];
}

static bool conflict(const builder *b, uint32_t k, uint32_t l)
{
    return mpl_ilp_conflict(b->s, id(b, k), id(b, l));
}

static bool joins(const builder *b, uint32_t k, uint32_t l)
{
    return mpl_ilp_joins(b->s, id(b, k), id(b, l));
}

/* ---- one row ---- */

static void row_begin(builder *b, double floor)
{
    b->n_terms = 0;
    b->floor = floor;
}

static void add(builder *b, uint32_t column, double value)
{
    b->col[b->n_terms] = column;
    b->value[b->n_terms++] = value;
}

static void add_offset(builder *b, uint32_t k, double sign)
{
    add(b, 1 + k, sign * (double)b->s->step[id(b, k)]);
}

/* Adds value * "member k lies below member l". */
static void add_below(builder *b, uint32_t k, uint32_t l, double value)
{
    if (k < l || joins(b, k, l)) {
        add(b, *pair_column(b, k, l), value);
    } else {
        add(b, *pair_column(b, l, k), -value);
        b->floor -= value;
    }
}

static mpl_status row_end(builder *b)
{
    return mpl_lp_add_row(b->lp, b->floor, b->n_terms, b->col, b->value);
}

/* ---- columns ---- */

static void bound_offsets(builder *b)
{
    const mpl_ilp *s = b->s;

    b->whole_units = true;
    for (uint32_t k = 0; k < b->part->n; k++) {
        uint32_t i = id(b, k);
        uint64_t bytes = mpl_ilp_bytes(s, i), step = s->step[i];

        b->whole_units &= bytes % s->unit == 0;
        if (mpl_ilp_fixed(s, i)) {
            b->low[k] = b->high[k] = s->p->fixed[s->id[i]] / s->unit;
            continue;
        }
        b->low[k] = (b->part->base + step - 1) / step * step;
        b->high[k] = bytes <= b->part->high_bytes
                         ? (b->part->high_bytes - bytes) / s->unit / step * step
                         : 0;
        /* the row of H rejects an offset that is too high */
        b->high[k] = mpl_max_u64(b->high[k], b->low[k]);
    }
}

static mpl_status add_offsets(builder *b, double cost)
{
    double unit = (double)b->s->unit;
    double low = (double)b->part->low_bytes / unit, high = (double)b->part->high_bytes / unit;
    uint32_t column;

    if (b->whole_units)
        low = ceil(low), high = floor(high);
    MPL_PASS(mpl_lp_add_column(b->lp, b->whole_units, low, fmax(low, high), cost, 'H', 0, MPL_NONE,
                               &column));
    for (uint32_t k = 0; k < b->part->n; k++) {
        double step = (double)b->s->step[id(b, k)];

        MPL_PASS(mpl_lp_add_column(b->lp, step > 1, (double)b->low[k] / step,
                                   (double)b->high[k] / step, 0, 'x', b->s->id[id(b, k)], MPL_NONE,
                                   &column));
    }
    return MPL_OK;
}

/* Whether k can lie below l at all. */
static bool can_be_below(const builder *b, uint32_t k, uint32_t l)
{
    return b->low[k] + b->s->size[id(b, k)] <= b->high[l];
}

/* Whether k and l are interchangeable: equal sizes and steps, equal conflicts inside the part. */
static bool identical(const builder *b, uint32_t k, uint32_t l)
{
    const mpl_ilp *s = b->s;
    uint32_t i = id(b, k), j = id(b, l);

    if (mpl_ilp_bytes(s, i) != mpl_ilp_bytes(s, j) || s->step[i] != s->step[j] ||
        mpl_ilp_fixed(s, i) || mpl_ilp_fixed(s, j) || b->linked[k] || b->linked[l])
        return false;
    for (uint32_t w = 0; w < s->n_words; w++) {
        uint64_t one = s->row[(size_t)i * s->n_words + w],
                 other = s->row[(size_t)j * s->n_words + w];

        if (i / 64 == w)
            one |= UINT64_C(1) << (i % 64);
        if (j / 64 == w)
            other |= UINT64_C(1) << (j % 64);
        if (((one ^ other) & b->inside[w]) != 0)
            return false;
        if (s->joins != NULL &&
            ((s->joins[(size_t)i * s->n_words + w] | s->joins[(size_t)j * s->n_words + w]) &
             b->inside[w]) != 0)
            return false;
    }
    return true;
}

/* Adds the columns of one conflicting pair k < l, without rows. */
static mpl_status add_pair(builder *b, uint32_t k, uint32_t l)
{
    mpl_buffer i = b->s->id[id(b, k)], j = b->s->id[id(b, l)];
    bool up = can_be_below(b, k, l), down = can_be_below(b, l, k);

    if (mpl_ilp_one_family(b->s, id(b, k), id(b, l))) {
        up = b->s->apart[id(b, k)] < b->s->apart[id(b, l)];
        down = !up;
    }
    if (joins(b, k, l)) {
        MPL_PASS(mpl_lp_add_column(b->lp, true, 0, up, 0, 'y', i, j, pair_column(b, k, l)));
        MPL_PASS(mpl_lp_add_column(b->lp, true, 0, down, 0, 'y', j, i, pair_column(b, l, k)));
        return MPL_OK;
    }
    if (up && identical(b, k, l))
        down = false;
    /* if neither direction is possible, the pair's rows make the program infeasible */
    return mpl_lp_add_column(b->lp, true, up && !down, up || !down, 0, 'y', i, j,
                             pair_column(b, k, l));
}

/* Whether a packing turned upside down is valid: nothing is fixed, aligned, or ends within a slot.
 * Then one pair may be set to k below l. Turning may change the order of identical members, so the
 * pair must contain none. */
static bool may_turn(const builder *b)
{
    bool free = b->whole_units && b->s->joins == NULL && b->s->lowest == NULL;

    for (uint32_t k = 0; k < b->part->n; k++)
        free &= !mpl_ilp_fixed(b->s, id(b, k)) && b->s->step[id(b, k)] == 1;
    return free;
}

static bool has_twin(const builder *b, uint32_t k)
{
    for (uint32_t l = 0; l < b->part->n; l++)
        if (l != k && conflict(b, k, l) && identical(b, k, l))
            return true;
    return false;
}

/* The pair of most bytes whose direction may be set; false: none. */
static bool pick_turned(const builder *b, uint32_t *k_out, uint32_t *l_out)
{
    double most = 0;

    if (!may_turn(b))
        return false;
    for (uint32_t k = 0; k < b->part->n; k++) {
        if (has_twin(b, k))
            continue;
        for (uint32_t l = k + 1; l < b->part->n; l++)
            if (conflict(b, k, l) && size(b, k) + size(b, l) > most && can_be_below(b, k, l) &&
                can_be_below(b, l, k) && !has_twin(b, l)) {
                most = size(b, k) + size(b, l);
                *k_out = k, *l_out = l;
            }
    }
    return most > 0;
}

static mpl_status add_pairs(builder *b)
{
    uint32_t n = b->part->n, turned_k = MPL_NONE, turned_l = MPL_NONE;

    for (size_t at = 0; at < (size_t)n * n; at++)
        b->pair[at] = MPL_NONE;
    pick_turned(b, &turned_k, &turned_l);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t l = k + 1; l < n; l++) {
            if (!conflict(b, k, l))
                continue;
            if (k == turned_k && l == turned_l)
                MPL_PASS(mpl_lp_add_column(b->lp, true, 1, 1, 0, 'y', b->s->id[id(b, k)],
                                           b->s->id[id(b, l)], pair_column(b, k, l)));
            else
                MPL_PASS(add_pair(b, k, l));
        }
    return MPL_OK;
}

/* ---- rows of pairs ---- */

/* x_l - x_k >= z_k if k is below l. */
static mpl_status add_order_row(builder *b, uint32_t k, uint32_t l)
{
    double big = (double)b->high[k] + size(b, k) - (double)b->low[l];

    if (big <= 0)
        return MPL_OK;
    row_begin(b, size(b, k) - big);
    add_offset(b, l, 1);
    add_offset(b, k, -1);
    add_below(b, k, l, -big);
    return row_end(b);
}

/* x_k = x_l if neither is below the other. */
static mpl_status add_join_rows(builder *b, uint32_t k, uint32_t l)
{
    double span[2] = {(double)b->high[k] - (double)b->low[l],
                      (double)b->high[l] - (double)b->low[k]};

    for (int turn = 0; turn < 2; turn++) {
        uint32_t upper = turn == 0 ? l : k, lower = turn == 0 ? k : l;

        row_begin(b, 0);
        add_offset(b, upper, 1);
        add_offset(b, lower, -1);
        add(b, *pair_column(b, k, l), fmax(span[turn], 0));
        add(b, *pair_column(b, l, k), fmax(span[turn], 0));
        MPL_PASS(row_end(b));
    }
    row_begin(b, -1);
    add(b, *pair_column(b, k, l), -1);
    add(b, *pair_column(b, l, k), -1);
    return row_end(b);
}

static mpl_status add_pair_rows(builder *b)
{
    for (uint32_t k = 0; k < b->part->n; k++) {
        /* H is at least its end */
        row_begin(b, (double)mpl_ilp_bytes(b->s, id(b, k)) / (double)b->s->unit);
        add(b, 0, 1);
        add_offset(b, k, -1);
        MPL_PASS(row_end(b));
        for (uint32_t l = k + 1; l < b->part->n; l++) {
            if (!conflict(b, k, l))
                continue;
            MPL_PASS(add_order_row(b, k, l));
            MPL_PASS(add_order_row(b, l, k));
            if (joins(b, k, l))
                MPL_PASS(add_join_rows(b, k, l));
        }
    }
    return MPL_OK;
}

/* Two rows fix the distance of each part from the family's lowest one. Families are never split, so
 * members of the pool are in id order here. */
static mpl_status add_family_rows(builder *b)
{
    const mpl_ilp *s = b->s;

    for (uint32_t k = 0; s->lowest != NULL && k < b->part->n; k++)
        for (int sign = 1; s->lowest[k] != k && sign >= -1; sign -= 2) {
            row_begin(b, sign * (double)s->apart[k]);
            add_offset(b, k, sign);
            add_offset(b, s->lowest[k], -sign);
            MPL_PASS(row_end(b));
        }
    return MPL_OK;
}

/* ---- rows of cliques ---- */

/* Subtracts what in-place pairs of the clique count twice at one offset; k's own pairs excepted. */
static void add_joined(builder *b, uint32_t k)
{
    for (uint32_t i = 0; b->s->joins != NULL && i < b->n_clique; i++)
        for (uint32_t j = i + 1; j < b->n_clique; j++) {
            uint32_t one = b->clique[i], other = b->clique[j];
            double twice;

            if (one == k || other == k || !joins(b, one, other))
                continue;
            twice = fmin(size(b, one), size(b, other));
            add(b, *pair_column(b, one, other), -twice);
            add(b, *pair_column(b, other, one), -twice);
            b->floor -= twice;
        }
}

static mpl_status add_clique_rows(builder *b)
{
    const mpl_ilp *s = b->s;
    double rest = 0;

    for (uint32_t i = 0; i < b->n_clique; i++) {
        uint32_t k = b->clique[i];

        rest = fmax(rest, size(b, k) - (double)mpl_ilp_bytes(s, id(b, k)) / (double)s->unit);
    }
    for (uint32_t i = 0; i < b->n_clique; i++) {
        uint32_t k = b->clique[i];

        row_begin(b, mpl_ilp_fixed(s, id(b, k)) ? 0 : (double)b->part->base);
        add_offset(b, k, 1);
        for (uint32_t j = 0; j < b->n_clique; j++)
            if (j != i)
                add_below(b, b->clique[j], k, -size(b, b->clique[j]));
        add_joined(b, k);
        MPL_PASS(row_end(b));
        row_begin(b, size(b, k) - rest);
        add(b, 0, 1);
        add_offset(b, k, -1);
        for (uint32_t j = 0; j < b->n_clique; j++)
            if (j != i)
                add_below(b, k, b->clique[j], -size(b, b->clique[j]));
        add_joined(b, k);
        MPL_PASS(row_end(b));
    }
    return MPL_OK;
}

static mpl_status offer_clique(builder *b)
{
    size_t entries = 2 * (size_t)b->n_clique * b->n_clique;

    if (b->n_clique < 3 || entries > b->entries_left) /* the rows of its only pair suffice */
        return MPL_OK;
    b->entries_left -= entries;
    return add_clique_rows(b);
}

/* The members alive at the birth of k, if that set is maximal: one dies before the next birth. */
static bool live_set(builder *b, uint32_t k)
{
    const mpl_problem *p = b->s->p;
    uint32_t now = p->birth[b->s->id[id(b, k)]], next_birth = UINT32_MAX, next_death = UINT32_MAX;

    b->n_clique = 0;
    for (uint32_t l = 0; l < b->part->n; l++) {
        mpl_buffer i = b->s->id[id(b, l)];

        if (p->birth[i] == now && l < k)
            return false; /* done for a lower index */
        if (p->birth[i] > now && p->birth[i] < next_birth)
            next_birth = p->birth[i];
        if (p->birth[i] > now || p->death[i] <= now)
            continue;
        b->clique[b->n_clique++] = l;
        if (p->death[i] < next_death)
            next_death = p->death[i];
    }
    return next_death <= next_birth;
}

/* Cliques under a partial order: extends each pair that is in no clique yet, by ascending index. */
static mpl_status cover_pairs(builder *b)
{
    mpl_status st = MPL_OK;
    uint32_t n = b->part->n;
    uint8_t *covered = NULL;

    MPL_TRY(mpl_new(b->s->ctx, covered, (size_t)n * n));
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t l = k + 1; l < n; l++) {
            if (!conflict(b, k, l) || covered[(size_t)k * n + l])
                continue;
            b->clique[0] = k, b->clique[1] = l;
            b->n_clique = 2;
            for (uint32_t m = 0; m < n; m++) {
                uint32_t met = 0;

                while (met < b->n_clique && m != b->clique[met] && conflict(b, m, b->clique[met]))
                    met++;
                if (met == b->n_clique)
                    b->clique[b->n_clique++] = m;
            }
            for (uint32_t i = 0; i < b->n_clique; i++)
                for (uint32_t j = 0; j < b->n_clique; j++)
                    covered[(size_t)b->clique[i] * n + b->clique[j]] = 1;
            MPL_TRY(offer_clique(b));
        }
out:
    mpl_free(b->s->ctx, covered);
    return st;
}

static mpl_status add_cliques(builder *b)
{
    if (b->s->p->before != NULL)
        return cover_pairs(b);
    for (uint32_t k = 0; k < b->part->n; k++)
        if (live_set(b, k))
            MPL_PASS(offer_clique(b));
    return MPL_OK;
}

/* ---- the program ---- */

/* Most terms of a row: an offset, H, one member's pairs, both columns of every in-place pair. */
static size_t most_terms(const mpl_ilp *s, const mpl_ilp_part *part)
{
    return 4 + (size_t)part->n + 2 * (size_t)s->p->n_in_place;
}

mpl_status mpl_ilp_program(const mpl_ilp *s, const mpl_ilp_part *part, double cost,
                           size_t max_entries, mpl_lp **out)
{
    mpl_status st = MPL_OK;
    builder b = {.s = s, .part = part, .entries_left = max_entries};
    char name[160];

    snprintf(name, sizeof name, "%.100s in units of %" PRIu64 " bytes",
             s->p->name != NULL ? s->p->name : "plan", s->unit);
    MPL_TRY(mpl_lp_new(s->ctx, name, &b.lp));
    MPL_TRY(mpl_new(s->ctx, b.inside, s->n_words));
    MPL_TRY(mpl_new(s->ctx, b.linked, part->n));
    for (uint32_t k = 0; s->lowest != NULL && k < part->n; k++)
        if (s->lowest[k] != k)
            b.linked[k] = b.linked[s->lowest[k]] = 1;
    MPL_TRY(mpl_new(s->ctx, b.pair, (size_t)part->n * part->n));
    MPL_TRY(mpl_new_each(s->ctx, part->n, b.low, b.high, b.clique));
    MPL_TRY(mpl_new_each(s->ctx, most_terms(s, part), b.col, b.value));
    for (uint32_t k = 0; k < part->n; k++)
        mpl_bit_add(b.inside, part->member[k]);
    bound_offsets(&b);
    MPL_TRY(add_offsets(&b, cost));
    MPL_TRY(add_pairs(&b));
    MPL_TRY(add_pair_rows(&b));
    MPL_TRY(add_family_rows(&b));
    MPL_TRY(add_cliques(&b));
    *out = b.lp, b.lp = NULL;
out:
    mpl_lp_free(s->ctx, b.lp);
    mpl_free_each(s->ctx, b.inside, b.linked, b.pair, b.low, b.high, b.clique, b.col, b.value);
    return st;
}
