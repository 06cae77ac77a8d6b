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
    const mpl_ilp *ilp;
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

static uint32_t *pair_column(const builder *self, uint32_t k, uint32_t l)
{
    return &self->pair[(size_t)k * self->part->n + l];
}

static uint32_t id(const builder *self, uint32_t k)
{
    return self->part->member[k];
}

static double size(const builder *self, uint32_t k)
{
    return (double)self->ilp->size[id(self, k)];
}

static bool conflict(const builder *self, uint32_t k, uint32_t l)
{
    return mpl_ilp_conflict(self->ilp, id(self, k), id(self, l));
}

static bool joins(const builder *self, uint32_t k, uint32_t l)
{
    return mpl_ilp_joins(self->ilp, id(self, k), id(self, l));
}

/* ---- one row ---- */

static void row_begin(builder *self, double floor)
{
    self->n_terms = 0;
    self->floor = floor;
}

static void add(builder *self, uint32_t column, double value)
{
    self->col[self->n_terms] = column;
    self->value[self->n_terms++] = value;
}

static void add_offset(builder *self, uint32_t k, double sign)
{
    add(self, 1 + k, sign * (double)self->ilp->step[id(self, k)]);
}

/* Adds value * "member k lies below member l". */
static void add_below(builder *self, uint32_t k, uint32_t l, double value)
{
    if (k < l || joins(self, k, l)) {
        add(self, *pair_column(self, k, l), value);
    } else {
        add(self, *pair_column(self, l, k), -value);
        self->floor -= value;
    }
}

static mpl_status row_end(builder *self)
{
    return mpl_lp_add_row(self->lp, self->floor, self->n_terms, self->col, self->value);
}

/* ---- columns ---- */

static void bound_offsets(builder *self)
{
    const mpl_ilp *ilp = self->ilp;

    self->whole_units = true;
    for (uint32_t k = 0; k < self->part->n; k++) {
        uint32_t i = id(self, k);
        uint64_t bytes = mpl_ilp_bytes(ilp, i), step = ilp->step[i];

        self->whole_units &= bytes % ilp->unit == 0;
        if (mpl_ilp_fixed(ilp, i)) {
            self->low[k] = self->high[k] = ilp->p->fixed[ilp->id[i]] / ilp->unit;
            continue;
        }
        self->low[k] = (self->part->base + step - 1) / step * step;
        self->high[k] = bytes <= self->part->high_bytes
                            ? (self->part->high_bytes - bytes) / ilp->unit / step * step
                            : 0;
        /* the row of H rejects an offset that is too high */
        self->high[k] = mpl_max_u64(self->high[k], self->low[k]);
    }
}

static mpl_status add_offsets(builder *self, double cost)
{
    double unit = (double)self->ilp->unit;
    double low = (double)self->part->low_bytes / unit, high = (double)self->part->high_bytes / unit;
    uint32_t column;

    if (self->whole_units)
        low = ceil(low), high = floor(high);
    MPL_PASS(mpl_lp_add_column(self->lp, self->whole_units, low, fmax(low, high), cost, 'H', 0,
                               MPL_NONE, &column));
    for (uint32_t k = 0; k < self->part->n; k++) {
        double step = (double)self->ilp->step[id(self, k)];

        MPL_PASS(mpl_lp_add_column(self->lp, step > 1, (double)self->low[k] / step,
                                   (double)self->high[k] / step, 0, 'x', self->ilp->id[id(self, k)],
                                   MPL_NONE, &column));
    }
    return MPL_OK;
}

/* Whether k can lie below l at all. */
static bool can_be_below(const builder *self, uint32_t k, uint32_t l)
{
    return self->low[k] + self->ilp->size[id(self, k)] <= self->high[l];
}

/* Whether k and l are interchangeable: equal sizes and steps, equal conflicts inside the part. */
static bool identical(const builder *self, uint32_t k, uint32_t l)
{
    const mpl_ilp *ilp = self->ilp;
    uint32_t i = id(self, k), j = id(self, l);

    if (mpl_ilp_bytes(ilp, i) != mpl_ilp_bytes(ilp, j) || ilp->step[i] != ilp->step[j] ||
        mpl_ilp_fixed(ilp, i) || mpl_ilp_fixed(ilp, j) || self->linked[k] || self->linked[l])
        return false;
    for (uint32_t w = 0; w < ilp->n_words; w++) {
        uint64_t one = ilp->row[(size_t)i * ilp->n_words + w],
                 other = ilp->row[(size_t)j * ilp->n_words + w];

        if (i / 64 == w)
            one |= UINT64_C(1) << (i % 64);
        if (j / 64 == w)
            other |= UINT64_C(1) << (j % 64);
        if (((one ^ other) & self->inside[w]) != 0)
            return false;
        if (ilp->joins != NULL &&
            ((ilp->joins[(size_t)i * ilp->n_words + w] | ilp->joins[(size_t)j * ilp->n_words + w]) &
             self->inside[w]) != 0)
            return false;
    }
    return true;
}

/* Adds the columns of one conflicting pair k < l, without rows. */
static mpl_status add_pair(builder *self, uint32_t k, uint32_t l)
{
    mpl_buffer i = self->ilp->id[id(self, k)], j = self->ilp->id[id(self, l)];
    bool up = can_be_below(self, k, l), down = can_be_below(self, l, k);

    if (mpl_ilp_one_family(self->ilp, id(self, k), id(self, l))) {
        up = self->ilp->apart[id(self, k)] < self->ilp->apart[id(self, l)];
        down = !up;
    }
    if (joins(self, k, l)) {
        MPL_PASS(mpl_lp_add_column(self->lp, true, 0, up, 0, 'y', i, j, pair_column(self, k, l)));
        MPL_PASS(mpl_lp_add_column(self->lp, true, 0, down, 0, 'y', j, i, pair_column(self, l, k)));
        return MPL_OK;
    }
    if (up && identical(self, k, l))
        down = false;
    /* if neither direction is possible, the pair's rows make the program infeasible */
    return mpl_lp_add_column(self->lp, true, up && !down, up || !down, 0, 'y', i, j,
                             pair_column(self, k, l));
}

/* Whether a packing turned upside down is valid: nothing is fixed, aligned, or ends within a slot.
 * Then one pair may be set to k below l. Turning may change the order of identical members, so the
 * pair must contain none. */
static bool may_turn(const builder *self)
{
    bool free = self->whole_units && self->ilp->joins == NULL && self->ilp->lowest == NULL;

    for (uint32_t k = 0; k < self->part->n; k++)
        free &= !mpl_ilp_fixed(self->ilp, id(self, k)) && self->ilp->step[id(self, k)] == 1;
    return free;
}

static bool has_twin(const builder *self, uint32_t k)
{
    for (uint32_t l = 0; l < self->part->n; l++)
        if (l != k && conflict(self, k, l) && identical(self, k, l))
            return true;
    return false;
}

/* The pair of most bytes whose direction may be set; false: none. */
static bool pick_turned(const builder *self, uint32_t *k_out, uint32_t *l_out)
{
    double most = 0;

    if (!may_turn(self))
        return false;
    for (uint32_t k = 0; k < self->part->n; k++) {
        if (has_twin(self, k))
            continue;
        for (uint32_t l = k + 1; l < self->part->n; l++)
            if (conflict(self, k, l) && size(self, k) + size(self, l) > most &&
                can_be_below(self, k, l) && can_be_below(self, l, k) && !has_twin(self, l)) {
                most = size(self, k) + size(self, l);
                *k_out = k, *l_out = l;
            }
    }
    return most > 0;
}

static mpl_status add_pairs(builder *self)
{
    uint32_t n = self->part->n, turned_k = MPL_NONE, turned_l = MPL_NONE;

    for (size_t at = 0; at < (size_t)n * n; at++)
        self->pair[at] = MPL_NONE;
    pick_turned(self, &turned_k, &turned_l);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t l = k + 1; l < n; l++) {
            if (!conflict(self, k, l))
                continue;
            if (k == turned_k && l == turned_l)
                MPL_PASS(mpl_lp_add_column(self->lp, true, 1, 1, 0, 'y', self->ilp->id[id(self, k)],
                                           self->ilp->id[id(self, l)], pair_column(self, k, l)));
            else
                MPL_PASS(add_pair(self, k, l));
        }
    return MPL_OK;
}

/* ---- rows of pairs ---- */

/* x_l - x_k >= z_k if k is below l. */
static mpl_status add_order_row(builder *self, uint32_t k, uint32_t l)
{
    double big = (double)self->high[k] + size(self, k) - (double)self->low[l];

    if (big <= 0)
        return MPL_OK;
    row_begin(self, size(self, k) - big);
    add_offset(self, l, 1);
    add_offset(self, k, -1);
    add_below(self, k, l, -big);
    return row_end(self);
}

/* x_k = x_l if neither is below the other. */
static mpl_status add_join_rows(builder *self, uint32_t k, uint32_t l)
{
    double span[2] = {(double)self->high[k] - (double)self->low[l],
                      (double)self->high[l] - (double)self->low[k]};

    for (int turn = 0; turn < 2; turn++) {
        uint32_t upper = turn == 0 ? l : k, lower = turn == 0 ? k : l;

        row_begin(self, 0);
        add_offset(self, upper, 1);
        add_offset(self, lower, -1);
        add(self, *pair_column(self, k, l), fmax(span[turn], 0));
        add(self, *pair_column(self, l, k), fmax(span[turn], 0));
        MPL_PASS(row_end(self));
    }
    row_begin(self, -1);
    add(self, *pair_column(self, k, l), -1);
    add(self, *pair_column(self, l, k), -1);
    return row_end(self);
}

static mpl_status add_pair_rows(builder *self)
{
    for (uint32_t k = 0; k < self->part->n; k++) {
        /* H is at least its end */
        row_begin(self, (double)mpl_ilp_bytes(self->ilp, id(self, k)) / (double)self->ilp->unit);
        add(self, 0, 1);
        add_offset(self, k, -1);
        MPL_PASS(row_end(self));
        for (uint32_t l = k + 1; l < self->part->n; l++) {
            if (!conflict(self, k, l))
                continue;
            MPL_PASS(add_order_row(self, k, l));
            MPL_PASS(add_order_row(self, l, k));
            if (joins(self, k, l))
                MPL_PASS(add_join_rows(self, k, l));
        }
    }
    return MPL_OK;
}

/* Two rows fix the distance of each part from the family's lowest one. Families are never split, so
 * members of the pool are in id order here. */
static mpl_status add_family_rows(builder *self)
{
    const mpl_ilp *ilp = self->ilp;

    for (uint32_t k = 0; ilp->lowest != NULL && k < self->part->n; k++)
        for (int sign = 1; ilp->lowest[k] != k && sign >= -1; sign -= 2) {
            row_begin(self, sign * (double)ilp->apart[k]);
            add_offset(self, k, sign);
            add_offset(self, ilp->lowest[k], -sign);
            MPL_PASS(row_end(self));
        }
    return MPL_OK;
}

/* ---- rows of cliques ---- */

/* Subtracts what in-place pairs of the clique count twice at one offset; k's own pairs excepted. */
static void add_joined(builder *self, uint32_t k)
{
    for (uint32_t i = 0; self->ilp->joins != NULL && i < self->n_clique; i++)
        for (uint32_t j = i + 1; j < self->n_clique; j++) {
            uint32_t one = self->clique[i], other = self->clique[j];
            double twice;

            if (one == k || other == k || !joins(self, one, other))
                continue;
            twice = fmin(size(self, one), size(self, other));
            add(self, *pair_column(self, one, other), -twice);
            add(self, *pair_column(self, other, one), -twice);
            self->floor -= twice;
        }
}

static mpl_status add_clique_rows(builder *self)
{
    const mpl_ilp *ilp = self->ilp;
    double rest = 0;

    for (uint32_t i = 0; i < self->n_clique; i++) {
        uint32_t k = self->clique[i];

        rest =
            fmax(rest, size(self, k) - (double)mpl_ilp_bytes(ilp, id(self, k)) / (double)ilp->unit);
    }
    for (uint32_t i = 0; i < self->n_clique; i++) {
        uint32_t k = self->clique[i];

        row_begin(self, mpl_ilp_fixed(ilp, id(self, k)) ? 0 : (double)self->part->base);
        add_offset(self, k, 1);
        for (uint32_t j = 0; j < self->n_clique; j++)
            if (j != i)
                add_below(self, self->clique[j], k, -size(self, self->clique[j]));
        add_joined(self, k);
        MPL_PASS(row_end(self));
        row_begin(self, size(self, k) - rest);
        add(self, 0, 1);
        add_offset(self, k, -1);
        for (uint32_t j = 0; j < self->n_clique; j++)
            if (j != i)
                add_below(self, k, self->clique[j], -size(self, self->clique[j]));
        add_joined(self, k);
        MPL_PASS(row_end(self));
    }
    return MPL_OK;
}

static mpl_status offer_clique(builder *self)
{
    size_t entries = 2 * (size_t)self->n_clique * self->n_clique;

    if (self->n_clique < 3 || entries > self->entries_left) /* the rows of its only pair suffice */
        return MPL_OK;
    self->entries_left -= entries;
    return add_clique_rows(self);
}

/* The members alive at the birth of k, if that set is maximal: one dies before the next birth. */
static bool live_set(builder *self, uint32_t k)
{
    const mpl_problem *p = self->ilp->p;
    uint32_t now = p->birth[self->ilp->id[id(self, k)]], next_birth = UINT32_MAX,
             next_death = UINT32_MAX;

    self->n_clique = 0;
    for (uint32_t l = 0; l < self->part->n; l++) {
        mpl_buffer i = self->ilp->id[id(self, l)];

        if (p->birth[i] == now && l < k)
            return false; /* done for a lower index */
        if (p->birth[i] > now && p->birth[i] < next_birth)
            next_birth = p->birth[i];
        if (p->birth[i] > now || p->death[i] <= now)
            continue;
        self->clique[self->n_clique++] = l;
        if (p->death[i] < next_death)
            next_death = p->death[i];
    }
    return next_death <= next_birth;
}

/* Cliques under a partial order: extends each pair that is in no clique yet, by ascending index. */
static mpl_status cover_pairs(builder *self)
{
    mpl_status st = MPL_OK;
    uint32_t n = self->part->n;
    uint8_t *covered = NULL;

    MPL_TRY(mpl_new(self->ilp->ctx, covered, (size_t)n * n));
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t l = k + 1; l < n; l++) {
            if (!conflict(self, k, l) || covered[(size_t)k * n + l])
                continue;
            self->clique[0] = k, self->clique[1] = l;
            self->n_clique = 2;
            for (uint32_t m = 0; m < n; m++) {
                uint32_t met = 0;

                while (met < self->n_clique && m != self->clique[met] &&
                       conflict(self, m, self->clique[met]))
                    met++;
                if (met == self->n_clique)
                    self->clique[self->n_clique++] = m;
            }
            for (uint32_t i = 0; i < self->n_clique; i++)
                for (uint32_t j = 0; j < self->n_clique; j++)
                    covered[(size_t)self->clique[i] * n + self->clique[j]] = 1;
            MPL_TRY(offer_clique(self));
        }
out:
    mpl_free(self->ilp->ctx, covered);
    return st;
}

static mpl_status add_cliques(builder *self)
{
    if (self->ilp->p->before != NULL)
        return cover_pairs(self);
    for (uint32_t k = 0; k < self->part->n; k++)
        if (live_set(self, k))
            MPL_PASS(offer_clique(self));
    return MPL_OK;
}

/* ---- the program ---- */

/* Most terms of a row: an offset, H, one member's pairs, both columns of every in-place pair. */
static size_t most_terms(const mpl_ilp *ilp, const mpl_ilp_part *part)
{
    return 4 + (size_t)part->n + 2 * (size_t)ilp->p->n_in_place;
}

mpl_status mpl_ilp_program(const mpl_ilp *ilp, const mpl_ilp_part *part, double cost,
                           size_t max_entries, mpl_lp **out)
{
    mpl_status st = MPL_OK;
    builder b = {.ilp = ilp, .part = part, .entries_left = max_entries};
    char name[160];

    snprintf(name, sizeof name, "%.100s in units of %" PRIu64 " bytes",
             ilp->p->name != NULL ? ilp->p->name : "plan", ilp->unit);
    MPL_TRY(mpl_lp_new(ilp->ctx, name, &b.lp));
    MPL_TRY(mpl_new(ilp->ctx, b.inside, ilp->n_words));
    MPL_TRY(mpl_new(ilp->ctx, b.linked, part->n));
    for (uint32_t k = 0; ilp->lowest != NULL && k < part->n; k++)
        if (ilp->lowest[k] != k)
            b.linked[k] = b.linked[ilp->lowest[k]] = 1;
    MPL_TRY(mpl_new(ilp->ctx, b.pair, (size_t)part->n * part->n));
    MPL_TRY(mpl_new_each(ilp->ctx, part->n, b.low, b.high, b.clique));
    MPL_TRY(mpl_new_each(ilp->ctx, most_terms(ilp, part), b.col, b.value));
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
    mpl_lp_free(ilp->ctx, b.lp);
    mpl_free_each(ilp->ctx, b.inside, b.linked, b.pair, b.low, b.high, b.clique, b.col, b.value);
    return st;
}
