/* tile_walk.c -- the program of a region: which boxes are made, in which order, from which.
 *
 * Strips of columns come one after the other, and within a strip patches from top to bottom; if
 * they go across, strips of rows, and within them from left to right. Comments say it for the
 * former. What a patch needs is found backwards, each axis by itself; forwards, each operation
 * makes what is needed and not there yet. When the last reader of a patch is done, rows that a
 * later patch needs are kept as a value of their own (`tail`); the next patch puts them and its new
 * rows together. */
#include "graphs/passes/tile/tile_priv.h"

typedef struct walk {
    mpl_ctx *ctx;
    const mpl_graph *g;
    tile_program *program;
    const mpl_tile_region *region;
    uint32_t down, side;                            /* axes: of patches in a strip, of strips */
    int64_t step_down, step_side;                   /* sizes of a patch */
    mpl_value in;                                   /* what comes in bands; MPL_NONE: nothing */
    uint32_t n;                                     /* operations */
    uint32_t n_down;                                /* patches of a strip */
    const mpl_shape *dims;                          /* of the result */
    tile_span *need, *made;                         /* [n_down * n] rows */
    tile_span *wide, *wide_made, *deep, *deep_made; /* [n] columns, channels of the strip */
    int64_t *have;                                  /* [n] rows made so far */
    uint64_t *rows;                                 /* [n] made in all of a strip */
    int64_t *later;            /* [n_down * n] first row that a later patch needs */
    uint32_t *last;            /* [n] last reader */
    uint32_t *done, *next;     /* [n] lists: what each operation is the last reader of */
    uint32_t *now;             /* [n] value; MPL_NONE: none */
    uint32_t whole;            /* the result, or its band, as far as it is there */
    uint32_t n_like;           /* patches as large as the one before, up to here */
    bool *wider;               /* [n] of MPL_KEEP_NARROW */
    int64_t *widths, *heights; /* [3 * n] of the strip or patch before */
    uint32_t *operand;         /* of one step */
    size_t cap_operand;
} walk;

/* ---- what is needed ---- */

static mpl_value made_by(const walk *self, uint32_t i)
{
    return self->g->op_out[self->g->op_out_begin[self->region->begin + i]];
}

/* The operation of the region that makes v; MPL_NONE: none. */
static uint32_t maker(const walk *self, mpl_value v)
{
    mpl_op op = self->g->value_op[v];

    return op != MPL_NONE && op >= self->region->begin && op < self->region->end
               ? op - self->region->begin
               : MPL_NONE;
}

/* Whether the rows of operation i's result are kept. */
static bool is_kept(const walk *self, uint32_t i)
{
    mpl_op op = self->region->begin + i;

    if (i + 1 == self->n || self->region->patch.keep == MPL_KEEP_NONE)
        return false;
    return self->region->patch.keep == MPL_KEEP_ALL || !self->wider[op - self->region->begin];
}

/* Marks what has more channels than the operands that it is made of, and what changes only its
 * numbers. */
static void find_wider(walk *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        mpl_op op = self->region->begin + i;
        const tile_rule *rule = &self->program->rule[op];
        int64_t channels = self->g->value_shape[made_by(self, i)].dim[1], most = 0;

        for (uint32_t k = 0; k < mpl_op_n_in(self->g, op); k++) {
            mpl_value v = mpl_op_input(self->g, op, k);
            uint32_t from = tile_is_image(rule, k) ? maker(self, v) : MPL_NONE;

            if (tile_is_image(rule, k) && self->g->value_shape[v].dim[1] > most)
                most = self->g->value_shape[v].dim[1];
            self->wider[i] = self->wider[i] ||
                             (rule->kind == TILE_POINT && from != MPL_NONE && self->wider[from]);
        }
        self->wider[i] = self->wider[i] || (rule->mixes && channels > most);
    }
}

/* Fills need and made, each [n], for a span of the result. have: rows that are there; NULL: none.
 * The result itself goes into the whole: none of it is kept. */
static void look_back(const walk *self, uint32_t axis, tile_span result, const int64_t *have,
                      tile_span *need, tile_span *made)
{
    memset(need, 0, self->n * sizeof *need);
    need[self->n - 1] = result;
    for (uint32_t i = self->n; i-- > 0;) {
        mpl_op op = self->region->begin + i;
        const tile_rule *rule = &self->program->rule[op];

        made[i] = need[i];
        if (have != NULL && is_kept(self, i) && !tile_empty(need[i]) && made[i].low < have[i])
            made[i].low = have[i];
        made[i] = tile_made(self->g, op, rule, axis, made[i]);
        for (uint32_t k = 0; k < mpl_op_n_in(self->g, op); k++) {
            uint32_t from;

            if (!tile_is_image(rule, k) || tile_empty(made[i]))
                continue;
            from = maker(self, mpl_op_input(self->g, op, k));
            if (from != MPL_NONE)
                need[from] = tile_join(need[from], tile_back(self->g, op, rule, k, axis, made[i]));
        }
    }
}

static tile_span part(int64_t i, int64_t size, int64_t all)
{
    return (tile_span){i * size, (i + 1) * size < all ? (i + 1) * size : all};
}

/* Rows of all patches of a strip. */
static void look_down(walk *self)
{
    for (uint32_t i = 0; i < self->n; i++)
        self->have[i] = INT64_MIN;
    for (uint32_t k = 0; k < self->n_down; k++) {
        tile_span *made = self->made + (size_t)k * self->n;

        look_back(self, self->down, part(k, self->step_down, self->dims->dim[1 + self->down]),
                  self->have, self->need + (size_t)k * self->n, made);
        for (uint32_t i = 0; i < self->n; i++) {
            self->rows[i] += tile_empty(made[i]) ? 0 : (uint64_t)(made[i].high - made[i].low);
            if (!tile_empty(made[i]) && made[i].high > self->have[i])
                self->have[i] = made[i].high;
        }
    }
    for (uint32_t i = 0; i < self->n; i++) {
        int64_t first = INT64_MAX;

        for (uint32_t k = self->n_down; k-- > 0;) {
            const tile_span *need = &self->need[(size_t)k * self->n + i];

            self->later[(size_t)k * self->n + i] = is_kept(self, i) ? first : INT64_MAX;
            if (!tile_empty(*need) && need->low < first)
                first = need->low;
        }
    }
}

/* ---- steps ---- */

static uint64_t box_bytes(const mpl_graph *g, mpl_value v, const tile_box *box)
{
    uint64_t n = (uint64_t)g->value_shape[v].dim[0], bytes = 0;

    for (uint32_t a = 0; a < TILE_AXES; a++)
        n *= (uint64_t)(box->at[a].high - box->at[a].low);
    (void)mpl_type_size((mpl_type)g->value_type[v], n, &bytes); /* a part of v */
    return tile_slots(bytes);
}

static mpl_status add_value(tile_program *program, mpl_value v, const tile_box *box, uint32_t *out)
{
    MPL_PASS(mpl_reserve(program->ctx, program->value, program->cap_values, program->n_values + 1));
    program->value[program->n_values] = (tile_value){v, *box, box_bytes(program->g, v, box)};
    *out = (uint32_t)program->n_values++;
    return MPL_OK;
}

/* A step that reads `in` and makes a box of v. */
static mpl_status add_step(tile_program *program, tile_do what, mpl_op op, uint32_t n_in,
                           const uint32_t *in, mpl_value v, const tile_box *box, uint32_t *out)
{
    tile_step *step;

    MPL_PASS(mpl_reserve(program->ctx, program->step, program->cap_steps, program->n_steps + 1));
    MPL_PASS(mpl_reserve(program->ctx, program->in, program->cap_in, program->n_in + n_in));
    MPL_PASS(add_value(program, v, box, out));
    step = &program->step[program->n_steps++];
    *step = (tile_step){what, op, (uint32_t)program->n_in, n_in, *out, 0, TILE_ROWS};
    memcpy(program->in + program->n_in, in, n_in * sizeof *in);
    program->n_in += n_in;
    return MPL_OK;
}

static bool same_box(const tile_box *a, const tile_box *b)
{
    for (uint32_t i = 0; i < TILE_AXES; i++)
        if (a->at[i].low != b->at[i].low || a->at[i].high != b->at[i].high)
            return false;
    return true;
}

/* The box of what `from` holds. */
static mpl_status cut(tile_program *program, uint32_t from, const tile_box *box, uint32_t *out)
{
    if (same_box(&program->value[from].box, box))
        return *out = from, MPL_OK;
    return add_step(program, TILE_SLICE, MPL_NONE, 1, &from, program->value[from].of, box, out);
}

static tile_box all_of(const mpl_graph *g, mpl_value v)
{
    tile_box box;

    for (uint32_t a = 0; a < TILE_AXES; a++)
        box.at[a] = (tile_span){0, g->value_shape[v].dim[1 + a]};
    return box;
}

/* `piece` put into *into, which grows to `box`; *into MPL_NONE: nothing is there yet; piece
 * MPL_NONE: it grows and no more. */
static mpl_status put(tile_program *program, uint32_t *into, uint32_t piece, const tile_box *box)
{
    uint32_t first = *into != MPL_NONE ? *into : piece, in[2];
    mpl_value v = program->value[first].of;

    if (same_box(&program->value[first].box, box))
        *into = first;
    else
        MPL_PASS(add_step(program, TILE_PAD, MPL_NONE, 1, &first, v, box, into));
    if (piece == MPL_NONE || first == piece)
        return MPL_OK;
    in[0] = *into, in[1] = piece;
    return add_step(program, TILE_ASSIGN, MPL_NONE, 2, in, v, box, into);
}

/* ---- patches ---- */

static tile_box box_of(const walk *self, tile_span channels, tile_span down, tile_span side)
{
    tile_box box = {{channels}};

    box.at[self->down] = down, box.at[self->side] = side;
    return box;
}

/* A box of what comes in bands. */
static mpl_status gather(walk *self, const tile_box *box, uint32_t *out)
{
    tile_program *program = self->program;
    tile_span rows = box->at[TILE_ROWS];

    *out = MPL_NONE;
    for (int64_t i = rows.low / self->region->band; i * self->region->band < rows.high; i++) {
        uint32_t from = program->local[self->in] + (uint32_t)i, piece;
        tile_span band = program->value[from].box.at[TILE_ROWS];
        tile_box some = *box;

        some.at[TILE_ROWS].low = band.low > rows.low ? band.low : rows.low;
        some.at[TILE_ROWS].high = band.high < rows.high ? band.high : rows.high;
        MPL_PASS(cut(program, from, &some, &piece));
        MPL_PASS(put(program, out, piece, box));
    }
    return MPL_OK;
}

/* The operand's value for a box of the result of operation i. */
static mpl_status operand(walk *self, uint32_t i, uint32_t k, const tile_box *out, uint32_t *in)
{
    mpl_op op = self->region->begin + i;
    mpl_value v = mpl_op_input(self->g, op, k);
    uint32_t from = maker(self, v);
    tile_box box;

    for (uint32_t a = 0; a < TILE_AXES; a++)
        box.at[a] = tile_back(self->g, op, &self->program->rule[op], k, a, out->at[a]);
    if (v == self->in)
        return gather(self, &box, in);
    return cut(self->program, from != MPL_NONE ? self->now[from] : self->program->local[v], &box,
               in);
}

static mpl_status compute(walk *self, uint32_t i, const tile_box *box, uint32_t *out)
{
    tile_program *program = self->program;
    mpl_op op = self->region->begin + i;
    const tile_rule *rule = &program->rule[op];
    uint32_t n_in = mpl_op_n_in(self->g, op);

    MPL_PASS(mpl_reserve(self->ctx, self->operand, self->cap_operand, n_in));
    for (uint32_t k = 0; k < n_in; k++) {
        self->operand[k] = MPL_NONE;
        if (tile_is_image(rule, k))
            MPL_PASS(operand(self, i, k, box, &self->operand[k]));
    }
    return add_step(program, TILE_OP, op, n_in, self->operand, made_by(self, i), box, out);
}

/* Keeps the rows of operation i's result that later patches need. */
static mpl_status leave_tail(walk *self, uint32_t i, int64_t later)
{
    tile_box box;

    if (self->now[i] == MPL_NONE)
        return MPL_OK;
    box = self->program->value[self->now[i]].box;
    if (later >= box.at[self->down].high)
        return self->now[i] = MPL_NONE, MPL_OK;
    if (self->region->patch.shift)
        return MPL_OK;
    if (later > box.at[self->down].low)
        box.at[self->down].low = later;
    return cut(self->program, self->now[i], &box, &self->now[i]);
}

/* Moves the rows that stay, [box.low, its old end), to the top of what is kept of operation i; what
 * is then called `box` has its last rows still to come. */
static mpl_status move_up(walk *self, uint32_t i, const tile_box *box)
{
    tile_program *program = self->program;
    tile_value old = program->value[self->now[i]];
    tile_span stays = {box->at[self->down].low, old.box.at[self->down].high};
    int64_t up = stays.low - old.box.at[self->down].low, low = stays.low;

    while (low < stays.high) {
        tile_box some = old.box;
        uint32_t in[2] = {self->now[i], MPL_NONE};

        some.at[self->down].low = low;
        some.at[self->down].high = low = low + up < stays.high ? low + up : stays.high;
        MPL_PASS(add_step(program, TILE_SLICE, MPL_NONE, 1, in, old.of, &some, &in[1]));
        MPL_PASS(add_step(program, TILE_ASSIGN, MPL_NONE, 2, in, old.of, &old.box, &self->now[i]));
        program->step[program->n_steps - 1].up = up;
        program->step[program->n_steps - 1].axis = self->down;
    }
    program->value[self->now[i]].box = *box;
    program->step[program->n_steps - 1].up = 0; /* as its result is called now */
    return MPL_OK;
}

/* Makes room in what is kept of operation i for rows that are made next; `all` receives the box. */
static mpl_status grow(walk *self, uint32_t k, uint32_t i, tile_span rows, tile_box *all)
{
    tile_box old = self->program->value[self->now[i]].box;
    tile_span stays = old.at[self->down];

    if (self->region->patch.shift && stays.low < self->later[(size_t)(k - 1) * self->n + i])
        stays.low = self->later[(size_t)(k - 1) * self->n + i];
    all->at[self->down] = tile_join(stays, rows);
    if (stays.low > old.at[self->down].low) {
        if (all->at[self->down].high - all->at[self->down].low ==
            old.at[self->down].high - old.at[self->down].low)
            return move_up(self, i, all);
        old.at[self->down] = stays;
        MPL_PASS(cut(self->program, self->now[i], &old, &self->now[i]));
    }
    return put(self->program, &self->now[i], MPL_NONE, all);
}

/* Makes what patch k needs of operation i. What is kept of it grows first: its operands are mostly
 * smaller than what is kept. */
static mpl_status make(walk *self, uint32_t k, uint32_t i)
{
    tile_span rows = self->made[(size_t)k * self->n + i];
    tile_box box = box_of(self, self->deep_made[i], rows, self->wide_made[i]), all = box;
    uint32_t piece;

    if (tile_empty(rows))
        return MPL_OK;
    if (self->now[i] != MPL_NONE)
        MPL_PASS(grow(self, k, i, rows, &all));
    MPL_PASS(compute(self, i, &box, &piece));
    return put(self->program, &self->now[i], piece, &all);
}

/* The result, or the band of it that the patch is in. */
static tile_box whole_of(const walk *self, const tile_box *result)
{
    tile_box all = all_of(self->g, made_by(self, self->n - 1));

    if (self->region->banded)
        all.at[TILE_ROWS] = result->at[TILE_ROWS];
    return all;
}

/* What is whole when the patch is done. */
static mpl_status hand_over(walk *self, const tile_box *result)
{
    tile_program *program = self->program;

    if (!self->region->banded || result->at[TILE_COLUMNS].high < self->dims->dim[3])
        return MPL_OK;
    MPL_PASS(
        mpl_reserve(program->ctx, program->result, program->cap_result, program->n_result + 1));
    program->result[program->n_result++] = self->whole;
    self->whole = MPL_NONE;
    return MPL_OK;
}

static mpl_status patch(walk *self, uint32_t k, const tile_box *result)
{
    tile_box all = whole_of(self, result);
    uint32_t piece;

    for (uint32_t i = 0; i < self->n; i++) {
        MPL_PASS(make(self, k, i));
        for (uint32_t j = self->done[i]; j != MPL_NONE; j = self->next[j])
            MPL_PASS(leave_tail(self, j, self->later[(size_t)k * self->n + j]));
    }
    MPL_PASS(cut(self->program, self->now[self->n - 1], result, &piece));
    self->now[self->n - 1] = MPL_NONE;
    MPL_PASS(put(self->program, &self->whole, piece, &all));
    return hand_over(self, result);
}

/* Takes a number into a list that is compared with the one before; false: it differs. */
static bool is_again(int64_t *before, int64_t now)
{
    bool same = *before == now;

    *before = now;
    return same;
}

/* Whether all that is made, needed and read along the axis is as long as it was in `before`, which
 * then takes these lengths. */
static bool as_before(const walk *self, uint32_t axis, const tile_span *need, const tile_span *made,
                      int64_t *before)
{
    bool same = true;

    for (uint32_t i = 0; i < self->n; i++) {
        mpl_op op = self->region->begin + i;
        const tile_rule *rule = &self->program->rule[op];
        int64_t read = 0;

        for (uint32_t k = 0; k < mpl_op_n_in(self->g, op) && !tile_empty(made[i]); k++) {
            tile_span back;

            if (!tile_is_image(rule, k))
                continue;
            back = tile_back(self->g, op, rule, k, axis, made[i]);
            read += back.high - back.low;
        }
        same &= is_again(&before[3 * (size_t)i], need[i].high - need[i].low);
        same &= is_again(&before[3 * (size_t)i + 1], made[i].high - made[i].low);
        same &= is_again(&before[3 * (size_t)i + 2], read);
    }
    return same;
}

/* Multiplications of the strip's patches. */
static void count_work(walk *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        uint64_t n =
            (uint64_t)self->dims->dim[0] * self->program->rule[self->region->begin + i].products;

        self->program->work += n * self->rows[i] *
                               (uint64_t)(self->deep_made[i].high - self->deep_made[i].low) *
                               (uint64_t)(self->wide_made[i].high - self->wide_made[i].low);
    }
    self->program->n_patches += self->n_down;
}

static void look_across(walk *self, tile_span channels, tile_span side)
{
    look_back(self, TILE_CHANNELS, channels, NULL, self->deep, self->deep_made);
    look_back(self, self->side, side, NULL, self->wide, self->wide_made);
}

/* ---- steps that a model leaves out ---- */

/* In place of left out steps that make a band, or read some: a step that reads and makes these.
 * rows: made of each operation. */
static mpl_status leave_out(walk *self, const tile_span *rows, const tile_box *result)
{
    tile_box box = whole_of(self, result);
    uint32_t n = 0, out;

    if (!self->region->banded && self->in == MPL_NONE)
        return MPL_OK;
    for (uint32_t i = 0; i < self->n && self->in != MPL_NONE; i++)
        for (uint32_t k = 0; k < mpl_op_n_in(self->g, self->region->begin + i); k++) {
            mpl_op op = self->region->begin + i;
            tile_span back;

            if (mpl_op_input(self->g, op, k) != self->in || tile_empty(rows[i]))
                continue;
            back = tile_back(self->g, op, &self->program->rule[op], k, TILE_ROWS, rows[i]);
            for (int64_t b = back.low / self->region->band; b * self->region->band < back.high;
                 b++) {
                MPL_PASS(mpl_reserve(self->ctx, self->operand, self->cap_operand, n + 1));
                self->operand[n++] = self->program->local[self->in] + (uint32_t)b;
            }
        }
    MPL_PASS(mpl_reserve(self->ctx, self->operand, self->cap_operand, n + 1));
    MPL_PASS(add_step(self->program, TILE_SLICE, MPL_NONE, n, self->operand,
                      made_by(self, self->n - 1), &box, &out));
    if (!self->region->banded)
        return self->program->value[out].bytes = 0, MPL_OK;
    self->whole = out;
    return hand_over(self, &box);
}

/* Whether patch k does what the one before did, all of it as far on. */
static bool is_steady(const walk *self, uint32_t k)
{
    for (uint32_t i = 0; i < self->n; i++) {
        size_t is = (size_t)k * self->n + i, was = is - self->n;
        int64_t on = self->made[is].high - self->made[was].high;

        if (tile_empty(self->made[is]) || tile_empty(self->made[was]) ||
            self->need[is].low - self->need[was].low != on ||
            (self->later[is] != self->later[was] && self->later[is] - self->later[was] != on))
            return false;
    }
    return true;
}

/* What is kept moves on, as if patch k were done. */
static void move_on(walk *self, uint32_t k)
{
    for (uint32_t i = 0; i < self->n; i++) {
        size_t is = (size_t)k * self->n + i;
        int64_t on = self->made[is].high - self->made[is - self->n].high;

        if (self->now[i] != MPL_NONE) {
            tile_span *span = &self->program->value[self->now[i]].box.at[self->down];

            span->low += on, span->high += on;
        }
    }
}

static mpl_status strip(walk *self, tile_span channels, tile_span side)
{
    enum { SETTLED = 3 }; /* patches until what is kept is as long as it stays */
    int64_t left = self->dims->dim[1 + self->side] - side.high;
    bool like, bands = self->region->banded || self->in != MPL_NONE;

    look_across(self, channels, side);
    for (uint32_t i = 0; i < self->n; i++)
        self->now[i] = MPL_NONE;
    like = as_before(self, self->side, self->wide, self->wide_made, self->widths);
    self->n_like = 0;
    if (like && self->program->sample && left > (bands ? self->step_side : 0) &&
        channels.low == 0) {
        tile_box result = box_of(self, channels, (tile_span){0, 1}, side);

        return self->down == TILE_COLUMNS ? leave_out(self, self->wide_made, &result) : MPL_OK;
    }
    for (uint32_t k = 0; k < self->n_down; k++) {
        size_t at = (size_t)k * self->n;
        tile_box result =
            box_of(self, channels, part(k, self->step_down, self->dims->dim[1 + self->down]), side);

        like =
            as_before(self, self->down, self->need + at, self->made + at, self->heights) && k > 0;
        self->n_like = like ? self->n_like + 1 : 0;
        if (self->program->sample && k + 2 < self->n_down &&
            (self->region->patch.keep == MPL_KEEP_NONE
                 ? like && !bands
                 : self->n_like > SETTLED && is_steady(self, k))) {
            move_on(self, k);
            if (self->down == TILE_ROWS)
                MPL_PASS(leave_out(self, self->made + at, &result));
        } else {
            MPL_PASS(patch(self, k, &result));
        }
    }
    return MPL_OK;
}

static mpl_status read_bands(walk *self, const tile_box *all)
{
    int64_t rows = all->at[TILE_ROWS].high;

    for (int64_t i = 0; i * self->region->band < rows; i++) {
        tile_box box = *all;
        uint32_t band;

        box.at[TILE_ROWS] = part(i, self->region->band, rows);
        MPL_PASS(add_value(self->program, self->in, &box, &band));
        self->program->local[self->in] = i == 0 ? band : self->program->local[self->in];
    }
    return MPL_OK;
}

/* Values for what the region reads from outside; the last reader of each of its results. */
static mpl_status read_outside(walk *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        mpl_op op = self->region->begin + i;

        self->last[i] = i;
        for (uint32_t k = 0; k < mpl_op_n_in(self->g, op); k++) {
            mpl_value v = mpl_op_input(self->g, op, k);
            tile_box all;

            if (!tile_is_image(&self->program->rule[op], k))
                continue;
            if (maker(self, v) != MPL_NONE) {
                self->last[maker(self, v)] = i;
            } else if (self->program->local[v] == MPL_NONE) {
                all = all_of(self->g, v);
                MPL_PASS(v == self->in
                             ? read_bands(self, &all)
                             : add_value(self->program, v, &all, &self->program->local[v]));
            }
        }
    }
    self->program->n_outside = (uint32_t)self->program->n_values;
    return MPL_OK;
}

static void list_done(walk *self)
{
    memset(self->done, 0xff, self->n * sizeof *self->done);
    for (uint32_t i = self->n; i-- > 0;)
        if (self->last[i] != i) {
            self->next[i] = self->done[self->last[i]];
            self->done[self->last[i]] = i;
        }
}

static mpl_status walk_patches(walk *self)
{
    const mpl_patch *patch = &self->region->patch;
    const int64_t deep = self->dims->dim[1], wide = self->dims->dim[1 + self->side],
                  size = self->step_side;
    tile_program *program = self->program;

    look_down(self);
    for (int64_t c = 0; c * patch->channels < deep; c++)
        for (int64_t x = 0; x * size < wide; x++) {
            look_across(self, part(c, patch->channels, deep), part(x, size, wide));
            count_work(self);
        }
    for (int64_t c = 0; c * patch->channels < deep && program->work <= program->most_work; c++)
        for (int64_t x = 0; x * size < wide; x++)
            MPL_PASS(strip(self, part(c, patch->channels, deep), part(x, size, wide)));
    if (self->region->banded)
        return MPL_OK;
    MPL_PASS(mpl_reserve(program->ctx, program->result, program->cap_result, 1));
    program->result[0] = self->whole, program->n_result = 1;
    return MPL_OK;
}

/* Which axis is which, how many patches there are. */
static void set_axes(walk *self)
{
    const mpl_patch *patch = &self->region->patch;

    self->down = patch->across ? TILE_COLUMNS : TILE_ROWS;
    self->side = patch->across ? TILE_ROWS : TILE_COLUMNS;
    self->step_down = patch->across ? patch->columns : patch->rows;
    self->step_side = patch->across ? patch->rows : patch->columns;
    self->dims = &self->g->value_shape[mpl_tile_result(self->g, self->region)];
    self->n_down =
        (uint32_t)((self->dims->dim[1 + self->down] + self->step_down - 1) / self->step_down);
    self->in = self->region->band > 0
                   ? self->g->op_out[self->g->op_out_begin[self->region->begin - 1]]
                   : MPL_NONE;
}

mpl_status tile_walk(tile_program *program, const mpl_tile_region *region)
{
    mpl_status st = MPL_OK;
    walk w = {.ctx = program->ctx,
              .g = program->g,
              .program = program,
              .region = region,
              .n = region->end - region->begin,
              .whole = MPL_NONE};
    size_t cells;

    for (size_t i = 0; i < program->n_outside; i++)
        program->local[program->value[i].of] = MPL_NONE;
    program->n_values = program->n_steps = program->n_in = program->n_result = 0;
    program->n_outside = program->n_patches = 0, program->work = 0;
    set_axes(&w);
    cells = (size_t)w.n_down * w.n;
    MPL_TRY(mpl_new_each(w.ctx, cells, w.need, w.made, w.later));
    MPL_TRY(
        mpl_new_each(w.ctx, w.n, w.wide, w.wide_made, w.deep, w.deep_made, w.have, w.last, w.now));
    MPL_TRY(mpl_new_each(w.ctx, w.n, w.done, w.next, w.wider, w.rows));
    MPL_TRY(mpl_new_each(w.ctx, 3 * (size_t)w.n, w.widths, w.heights));
    MPL_TRY(read_outside(&w));
    list_done(&w);
    find_wider(&w);
    MPL_TRY(walk_patches(&w));
out:
    mpl_free_each(w.ctx, w.need, w.made, w.later, w.wide, w.wide_made, w.deep, w.deep_made, w.have,
                  w.last, w.now, w.operand, w.widths, w.heights, w.done, w.next, w.wider, w.rows);
    return st;
}

mpl_status tile_program_new(mpl_ctx *ctx, const mpl_graph *g, const tile_rule *rule,
                            tile_program *program)
{
    *program = (tile_program){.ctx = ctx, .g = g, .rule = rule, .most_work = UINT64_MAX};
    MPL_PASS(mpl_new(ctx, program->local, g->n_values));
    for (mpl_value v = 0; v < g->n_values; v++)
        program->local[v] = MPL_NONE;
    return MPL_OK;
}

void tile_program_fini(tile_program *program)
{
    if (program->ctx != NULL)
        mpl_free_each(program->ctx, program->value, program->step, program->in, program->local,
                      program->result);
    *program = (tile_program){0};
}
