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
    tile_program *p;
    const mpl_tile_region *r;
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

static mpl_value made_by(const walk *w, uint32_t i)
{
    return w->g->op_out[w->g->op_out_begin[w->r->begin + i]];
}

/* The operation of the region that makes v; MPL_NONE: none. */
static uint32_t maker(const walk *w, mpl_value v)
{
    mpl_op op = w->g->value_op[v];

    return op != MPL_NONE && op >= w->r->begin && op < w->r->end ? op - w->r->begin : MPL_NONE;
}

/* Whether the rows of operation i's result are kept. */
static bool is_kept(const walk *w, uint32_t i)
{
    mpl_op op = w->r->begin + i;

    if (i + 1 == w->n || w->r->patch.keep == MPL_KEEP_NONE)
        return false;
    return w->r->patch.keep == MPL_KEEP_ALL || !w->wider[op - w->r->begin];
}

/* Marks what has more channels than the operands that it is made of, and what changes only its
 * numbers. */
static void find_wider(walk *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        mpl_op op = w->r->begin + i;
        const tile_rule *rule = &w->p->rule[op];
        int64_t channels = w->g->value_shape[made_by(w, i)].dim[1], most = 0;

        for (uint32_t k = 0; k < mpl_op_n_in(w->g, op); k++) {
            mpl_value v = mpl_op_input(w->g, op, k);
            uint32_t from = tile_is_image(rule, k) ? maker(w, v) : MPL_NONE;

            if (tile_is_image(rule, k) && w->g->value_shape[v].dim[1] > most)
                most = w->g->value_shape[v].dim[1];
            w->wider[i] =
                w->wider[i] || (rule->kind == TILE_POINT && from != MPL_NONE && w->wider[from]);
        }
        w->wider[i] = w->wider[i] || (rule->mixes && channels > most);
    }
}

/* Fills need and made, each [n], for a span of the result. have: rows that are there; NULL: none.
 * The result itself goes into the whole: none of it is kept. */
static void look_back(const walk *w, uint32_t axis, tile_span result, const int64_t *have,
                      tile_span *need, tile_span *made)
{
    memset(need, 0, w->n * sizeof *need);
    need[w->n - 1] = result;
    for (uint32_t i = w->n; i-- > 0;) {
        mpl_op op = w->r->begin + i;
        const tile_rule *rule = &w->p->rule[op];

        made[i] = need[i];
        if (have != NULL && is_kept(w, i) && !tile_empty(need[i]) && made[i].low < have[i])
            made[i].low = have[i];
        made[i] = tile_made(w->g, op, rule, axis, made[i]);
        for (uint32_t k = 0; k < mpl_op_n_in(w->g, op); k++) {
            uint32_t from;

            if (!tile_is_image(rule, k) || tile_empty(made[i]))
                continue;
            from = maker(w, mpl_op_input(w->g, op, k));
            if (from != MPL_NONE)
                need[from] = tile_join(need[from], tile_back(w->g, op, rule, k, axis, made[i]));
        }
    }
}

static tile_span part(int64_t i, int64_t size, int64_t all)
{
    return (tile_span){i * size, (i + 1) * size < all ? (i + 1) * size : all};
}

/* Rows of all patches of a strip. */
static void look_down(walk *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        w->have[i] = INT64_MIN;
    for (uint32_t k = 0; k < w->n_down; k++) {
        tile_span *made = w->made + (size_t)k * w->n;

        look_back(w, w->down, part(k, w->step_down, w->dims->dim[1 + w->down]), w->have,
                  w->need + (size_t)k * w->n, made);
        for (uint32_t i = 0; i < w->n; i++) {
            w->rows[i] += tile_empty(made[i]) ? 0 : (uint64_t)(made[i].high - made[i].low);
            if (!tile_empty(made[i]) && made[i].high > w->have[i])
                w->have[i] = made[i].high;
        }
    }
    for (uint32_t i = 0; i < w->n; i++) {
        int64_t first = INT64_MAX;

        for (uint32_t k = w->n_down; k-- > 0;) {
            const tile_span *need = &w->need[(size_t)k * w->n + i];

            w->later[(size_t)k * w->n + i] = is_kept(w, i) ? first : INT64_MAX;
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

static mpl_status add_value(tile_program *p, mpl_value v, const tile_box *box, uint32_t *out)
{
    MPL_PASS(mpl_reserve(p->ctx, p->value, p->cap_values, p->n_values + 1));
    p->value[p->n_values] = (tile_value){v, *box, box_bytes(p->g, v, box)};
    *out = (uint32_t)p->n_values++;
    return MPL_OK;
}

/* A step that reads `in` and makes a box of v. */
static mpl_status add_step(tile_program *p, tile_do what, mpl_op op, uint32_t n_in,
                           const uint32_t *in, mpl_value v, const tile_box *box, uint32_t *out)
{
    tile_step *s;

    MPL_PASS(mpl_reserve(p->ctx, p->step, p->cap_steps, p->n_steps + 1));
    MPL_PASS(mpl_reserve(p->ctx, p->in, p->cap_in, p->n_in + n_in));
    MPL_PASS(add_value(p, v, box, out));
    s = &p->step[p->n_steps++];
    *s = (tile_step){what, op, (uint32_t)p->n_in, n_in, *out, 0, TILE_ROWS};
    memcpy(p->in + p->n_in, in, n_in * sizeof *in);
    p->n_in += n_in;
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
static mpl_status cut(tile_program *p, uint32_t from, const tile_box *box, uint32_t *out)
{
    if (same_box(&p->value[from].box, box))
        return *out = from, MPL_OK;
    return add_step(p, TILE_SLICE, MPL_NONE, 1, &from, p->value[from].of, box, out);
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
static mpl_status put(tile_program *p, uint32_t *into, uint32_t piece, const tile_box *box)
{
    uint32_t first = *into != MPL_NONE ? *into : piece, in[2];
    mpl_value v = p->value[first].of;

    if (same_box(&p->value[first].box, box))
        *into = first;
    else
        MPL_PASS(add_step(p, TILE_PAD, MPL_NONE, 1, &first, v, box, into));
    if (piece == MPL_NONE || first == piece)
        return MPL_OK;
    in[0] = *into, in[1] = piece;
    return add_step(p, TILE_ASSIGN, MPL_NONE, 2, in, v, box, into);
}

/* ---- patches ---- */

static tile_box box_of(const walk *w, tile_span channels, tile_span down, tile_span side)
{
    tile_box box = {{channels}};

    box.at[w->down] = down, box.at[w->side] = side;
    return box;
}

/* A box of what comes in bands. */
static mpl_status gather(walk *w, const tile_box *box, uint32_t *out)
{
    tile_program *p = w->p;
    tile_span rows = box->at[TILE_ROWS];

    *out = MPL_NONE;
    for (int64_t i = rows.low / w->r->band; i * w->r->band < rows.high; i++) {
        uint32_t from = p->local[w->in] + (uint32_t)i, piece;
        tile_span band = p->value[from].box.at[TILE_ROWS];
        tile_box some = *box;

        some.at[TILE_ROWS].low = band.low > rows.low ? band.low : rows.low;
        some.at[TILE_ROWS].high = band.high < rows.high ? band.high : rows.high;
        MPL_PASS(cut(p, from, &some, &piece));
        MPL_PASS(put(p, out, piece, box));
    }
    return MPL_OK;
}

/* The operand's value for a box of the result of operation i. */
static mpl_status operand(walk *w, uint32_t i, uint32_t k, const tile_box *out, uint32_t *in)
{
    mpl_op op = w->r->begin + i;
    mpl_value v = mpl_op_input(w->g, op, k);
    uint32_t from = maker(w, v);
    tile_box box;

    for (uint32_t a = 0; a < TILE_AXES; a++)
        box.at[a] = tile_back(w->g, op, &w->p->rule[op], k, a, out->at[a]);
    if (v == w->in)
        return gather(w, &box, in);
    return cut(w->p, from != MPL_NONE ? w->now[from] : w->p->local[v], &box, in);
}

static mpl_status compute(walk *w, uint32_t i, const tile_box *box, uint32_t *out)
{
    tile_program *p = w->p;
    mpl_op op = w->r->begin + i;
    const tile_rule *rule = &p->rule[op];
    uint32_t n_in = mpl_op_n_in(w->g, op);

    MPL_PASS(mpl_reserve(w->ctx, w->operand, w->cap_operand, n_in));
    for (uint32_t k = 0; k < n_in; k++) {
        w->operand[k] = MPL_NONE;
        if (tile_is_image(rule, k))
            MPL_PASS(operand(w, i, k, box, &w->operand[k]));
    }
    return add_step(p, TILE_OP, op, n_in, w->operand, made_by(w, i), box, out);
}

/* Keeps the rows of operation i's result that later patches need. */
static mpl_status leave_tail(walk *w, uint32_t i, int64_t later)
{
    tile_box box;

    if (w->now[i] == MPL_NONE)
        return MPL_OK;
    box = w->p->value[w->now[i]].box;
    if (later >= box.at[w->down].high)
        return w->now[i] = MPL_NONE, MPL_OK;
    if (w->r->patch.shift)
        return MPL_OK;
    if (later > box.at[w->down].low)
        box.at[w->down].low = later;
    return cut(w->p, w->now[i], &box, &w->now[i]);
}

/* Moves the rows that stay, [box.low, its old end), to the top of what is kept of operation i; what
 * is then called `box` has its last rows still to come. */
static mpl_status move_up(walk *w, uint32_t i, const tile_box *box)
{
    tile_program *p = w->p;
    tile_value old = p->value[w->now[i]];
    tile_span stays = {box->at[w->down].low, old.box.at[w->down].high};
    int64_t up = stays.low - old.box.at[w->down].low, low = stays.low;

    while (low < stays.high) {
        tile_box some = old.box;
        uint32_t in[2] = {w->now[i], MPL_NONE};

        some.at[w->down].low = low;
        some.at[w->down].high = low = low + up < stays.high ? low + up : stays.high;
        MPL_PASS(add_step(p, TILE_SLICE, MPL_NONE, 1, in, old.of, &some, &in[1]));
        MPL_PASS(add_step(p, TILE_ASSIGN, MPL_NONE, 2, in, old.of, &old.box, &w->now[i]));
        p->step[p->n_steps - 1].up = up;
        p->step[p->n_steps - 1].axis = w->down;
    }
    p->value[w->now[i]].box = *box;
    p->step[p->n_steps - 1].up = 0; /* as its result is called now */
    return MPL_OK;
}

/* Makes room in what is kept of operation i for rows that are made next; `all` receives the box. */
static mpl_status grow(walk *w, uint32_t k, uint32_t i, tile_span rows, tile_box *all)
{
    tile_box old = w->p->value[w->now[i]].box;
    tile_span stays = old.at[w->down];

    if (w->r->patch.shift && stays.low < w->later[(size_t)(k - 1) * w->n + i])
        stays.low = w->later[(size_t)(k - 1) * w->n + i];
    all->at[w->down] = tile_join(stays, rows);
    if (stays.low > old.at[w->down].low) {
        if (all->at[w->down].high - all->at[w->down].low ==
            old.at[w->down].high - old.at[w->down].low)
            return move_up(w, i, all);
        old.at[w->down] = stays;
        MPL_PASS(cut(w->p, w->now[i], &old, &w->now[i]));
    }
    return put(w->p, &w->now[i], MPL_NONE, all);
}

/* Makes what patch k needs of operation i. What is kept of it grows first: its operands are mostly
 * smaller than what is kept. */
static mpl_status make(walk *w, uint32_t k, uint32_t i)
{
    tile_span rows = w->made[(size_t)k * w->n + i];
    tile_box box = box_of(w, w->deep_made[i], rows, w->wide_made[i]), all = box;
    uint32_t piece;

    if (tile_empty(rows))
        return MPL_OK;
    if (w->now[i] != MPL_NONE)
        MPL_PASS(grow(w, k, i, rows, &all));
    MPL_PASS(compute(w, i, &box, &piece));
    return put(w->p, &w->now[i], piece, &all);
}

/* The result, or the band of it that the patch is in. */
static tile_box whole_of(const walk *w, const tile_box *result)
{
    tile_box all = all_of(w->g, made_by(w, w->n - 1));

    if (w->r->banded)
        all.at[TILE_ROWS] = result->at[TILE_ROWS];
    return all;
}

/* What is whole when the patch is done. */
static mpl_status hand_over(walk *w, const tile_box *result)
{
    tile_program *p = w->p;

    if (!w->r->banded || result->at[TILE_COLUMNS].high < w->dims->dim[3])
        return MPL_OK;
    MPL_PASS(mpl_reserve(p->ctx, p->result, p->cap_result, p->n_result + 1));
    p->result[p->n_result++] = w->whole;
    w->whole = MPL_NONE;
    return MPL_OK;
}

static mpl_status patch(walk *w, uint32_t k, const tile_box *result)
{
    tile_box all = whole_of(w, result);
    uint32_t piece;

    for (uint32_t i = 0; i < w->n; i++) {
        MPL_PASS(make(w, k, i));
        for (uint32_t j = w->done[i]; j != MPL_NONE; j = w->next[j])
            MPL_PASS(leave_tail(w, j, w->later[(size_t)k * w->n + j]));
    }
    MPL_PASS(cut(w->p, w->now[w->n - 1], result, &piece));
    w->now[w->n - 1] = MPL_NONE;
    MPL_PASS(put(w->p, &w->whole, piece, &all));
    return hand_over(w, result);
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
static bool as_before(const walk *w, uint32_t axis, const tile_span *need, const tile_span *made,
                      int64_t *before)
{
    bool same = true;

    for (uint32_t i = 0; i < w->n; i++) {
        mpl_op op = w->r->begin + i;
        const tile_rule *rule = &w->p->rule[op];
        int64_t read = 0;

        for (uint32_t k = 0; k < mpl_op_n_in(w->g, op) && !tile_empty(made[i]); k++) {
            tile_span back;

            if (!tile_is_image(rule, k))
                continue;
            back = tile_back(w->g, op, rule, k, axis, made[i]);
            read += back.high - back.low;
        }
        same &= is_again(&before[3 * (size_t)i], need[i].high - need[i].low);
        same &= is_again(&before[3 * (size_t)i + 1], made[i].high - made[i].low);
        same &= is_again(&before[3 * (size_t)i + 2], read);
    }
    return same;
}

/* Multiplications of the strip's patches. */
static void count_work(walk *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        uint64_t n = (uint64_t)w->dims->dim[0] * w->p->rule[w->r->begin + i].products;

        w->p->work += n * w->rows[i] * (uint64_t)(w->deep_made[i].high - w->deep_made[i].low) *
                      (uint64_t)(w->wide_made[i].high - w->wide_made[i].low);
    }
    w->p->n_patches += w->n_down;
}

static void look_across(walk *w, tile_span channels, tile_span side)
{
    look_back(w, TILE_CHANNELS, channels, NULL, w->deep, w->deep_made);
    look_back(w, w->side, side, NULL, w->wide, w->wide_made);
}

/* ---- steps that a model leaves out ---- */

/* In place of left out steps that make a band, or read some: a step that reads and makes these.
 * rows: made of each operation. */
static mpl_status leave_out(walk *w, const tile_span *rows, const tile_box *result)
{
    tile_box box = whole_of(w, result);
    uint32_t n = 0, out;

    if (!w->r->banded && w->in == MPL_NONE)
        return MPL_OK;
    for (uint32_t i = 0; i < w->n && w->in != MPL_NONE; i++)
        for (uint32_t k = 0; k < mpl_op_n_in(w->g, w->r->begin + i); k++) {
            mpl_op op = w->r->begin + i;
            tile_span back;

            if (mpl_op_input(w->g, op, k) != w->in || tile_empty(rows[i]))
                continue;
            back = tile_back(w->g, op, &w->p->rule[op], k, TILE_ROWS, rows[i]);
            for (int64_t b = back.low / w->r->band; b * w->r->band < back.high; b++) {
                MPL_PASS(mpl_reserve(w->ctx, w->operand, w->cap_operand, n + 1));
                w->operand[n++] = w->p->local[w->in] + (uint32_t)b;
            }
        }
    MPL_PASS(mpl_reserve(w->ctx, w->operand, w->cap_operand, n + 1));
    MPL_PASS(add_step(w->p, TILE_SLICE, MPL_NONE, n, w->operand, made_by(w, w->n - 1), &box, &out));
    if (!w->r->banded)
        return w->p->value[out].bytes = 0, MPL_OK;
    w->whole = out;
    return hand_over(w, &box);
}

/* Whether patch k does what the one before did, all of it as far on. */
static bool is_steady(const walk *w, uint32_t k)
{
    for (uint32_t i = 0; i < w->n; i++) {
        size_t is = (size_t)k * w->n + i, was = is - w->n;
        int64_t on = w->made[is].high - w->made[was].high;

        if (tile_empty(w->made[is]) || tile_empty(w->made[was]) ||
            w->need[is].low - w->need[was].low != on ||
            (w->later[is] != w->later[was] && w->later[is] - w->later[was] != on))
            return false;
    }
    return true;
}

/* What is kept moves on, as if patch k were done. */
static void move_on(walk *w, uint32_t k)
{
    for (uint32_t i = 0; i < w->n; i++) {
        size_t is = (size_t)k * w->n + i;
        int64_t on = w->made[is].high - w->made[is - w->n].high;

        if (w->now[i] != MPL_NONE) {
            tile_span *span = &w->p->value[w->now[i]].box.at[w->down];

            span->low += on, span->high += on;
        }
    }
}

static mpl_status strip(walk *w, tile_span channels, tile_span side)
{
    enum { SETTLED = 3 }; /* patches until what is kept is as long as it stays */
    int64_t left = w->dims->dim[1 + w->side] - side.high;
    bool like, bands = w->r->banded || w->in != MPL_NONE;

    look_across(w, channels, side);
    for (uint32_t i = 0; i < w->n; i++)
        w->now[i] = MPL_NONE;
    like = as_before(w, w->side, w->wide, w->wide_made, w->widths);
    w->n_like = 0;
    if (like && w->p->sample && left > (bands ? w->step_side : 0) && channels.low == 0) {
        tile_box result = box_of(w, channels, (tile_span){0, 1}, side);

        return w->down == TILE_COLUMNS ? leave_out(w, w->wide_made, &result) : MPL_OK;
    }
    for (uint32_t k = 0; k < w->n_down; k++) {
        size_t at = (size_t)k * w->n;
        tile_box result =
            box_of(w, channels, part(k, w->step_down, w->dims->dim[1 + w->down]), side);

        like = as_before(w, w->down, w->need + at, w->made + at, w->heights) && k > 0;
        w->n_like = like ? w->n_like + 1 : 0;
        if (w->p->sample && k + 2 < w->n_down &&
            (w->r->patch.keep == MPL_KEEP_NONE ? like && !bands
                                               : w->n_like > SETTLED && is_steady(w, k))) {
            move_on(w, k);
            if (w->down == TILE_ROWS)
                MPL_PASS(leave_out(w, w->made + at, &result));
        } else {
            MPL_PASS(patch(w, k, &result));
        }
    }
    return MPL_OK;
}

static mpl_status read_bands(walk *w, const tile_box *all)
{
    int64_t rows = all->at[TILE_ROWS].high;

    for (int64_t i = 0; i * w->r->band < rows; i++) {
        tile_box box = *all;
        uint32_t band;

        box.at[TILE_ROWS] = part(i, w->r->band, rows);
        MPL_PASS(add_value(w->p, w->in, &box, &band));
        w->p->local[w->in] = i == 0 ? band : w->p->local[w->in];
    }
    return MPL_OK;
}

/* Values for what the region reads from outside; the last reader of each of its results. */
static mpl_status read_outside(walk *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        mpl_op op = w->r->begin + i;

        w->last[i] = i;
        for (uint32_t k = 0; k < mpl_op_n_in(w->g, op); k++) {
            mpl_value v = mpl_op_input(w->g, op, k);
            tile_box all;

            if (!tile_is_image(&w->p->rule[op], k))
                continue;
            if (maker(w, v) != MPL_NONE) {
                w->last[maker(w, v)] = i;
            } else if (w->p->local[v] == MPL_NONE) {
                all = all_of(w->g, v);
                MPL_PASS(v == w->in ? read_bands(w, &all)
                                    : add_value(w->p, v, &all, &w->p->local[v]));
            }
        }
    }
    w->p->n_outside = (uint32_t)w->p->n_values;
    return MPL_OK;
}

static void list_done(walk *w)
{
    memset(w->done, 0xff, w->n * sizeof *w->done);
    for (uint32_t i = w->n; i-- > 0;)
        if (w->last[i] != i) {
            w->next[i] = w->done[w->last[i]];
            w->done[w->last[i]] = i;
        }
}

static mpl_status walk_patches(walk *w)
{
    const mpl_patch *patch = &w->r->patch;
    const int64_t deep = w->dims->dim[1], wide = w->dims->dim[1 + w->side], size = w->step_side;
    tile_program *p = w->p;

    look_down(w);
    for (int64_t c = 0; c * patch->channels < deep; c++)
        for (int64_t x = 0; x * size < wide; x++) {
            look_across(w, part(c, patch->channels, deep), part(x, size, wide));
            count_work(w);
        }
    for (int64_t c = 0; c * patch->channels < deep && p->work <= p->most_work; c++)
        for (int64_t x = 0; x * size < wide; x++)
            MPL_PASS(strip(w, part(c, patch->channels, deep), part(x, size, wide)));
    if (w->r->banded)
        return MPL_OK;
    MPL_PASS(mpl_reserve(p->ctx, p->result, p->cap_result, 1));
    p->result[0] = w->whole, p->n_result = 1;
    return MPL_OK;
}

/* Which axis is which, how many patches there are. */
static void set_axes(walk *w)
{
    const mpl_patch *patch = &w->r->patch;

    w->down = patch->across ? TILE_COLUMNS : TILE_ROWS;
    w->side = patch->across ? TILE_ROWS : TILE_COLUMNS;
    w->step_down = patch->across ? patch->columns : patch->rows;
    w->step_side = patch->across ? patch->rows : patch->columns;
    w->dims = &w->g->value_shape[mpl_tile_result(w->g, w->r)];
    w->n_down = (uint32_t)((w->dims->dim[1 + w->down] + w->step_down - 1) / w->step_down);
    w->in = w->r->band > 0 ? w->g->op_out[w->g->op_out_begin[w->r->begin - 1]] : MPL_NONE;
}

mpl_status tile_walk(tile_program *p, const mpl_tile_region *r)
{
    mpl_status st = MPL_OK;
    walk w = {.ctx = p->ctx, .g = p->g, .p = p, .r = r, .n = r->end - r->begin, .whole = MPL_NONE};
    size_t cells;

    for (size_t i = 0; i < p->n_outside; i++)
        p->local[p->value[i].of] = MPL_NONE;
    p->n_values = p->n_steps = p->n_in = p->n_result = 0;
    p->n_outside = p->n_patches = 0, p->work = 0;
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
                            tile_program *p)
{
    *p = (tile_program){.ctx = ctx, .g = g, .rule = rule, .most_work = UINT64_MAX};
    MPL_PASS(mpl_new(ctx, p->local, g->n_values));
    for (mpl_value v = 0; v < g->n_values; v++)
        p->local[v] = MPL_NONE;
    return MPL_OK;
}

void tile_program_fini(tile_program *p)
{
    if (p->ctx != NULL)
        mpl_free_each(p->ctx, p->value, p->step, p->in, p->local, p->result);
    *p = (tile_program){0};
}
