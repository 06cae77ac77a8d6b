/* template.c -- templates: making, freeing, and the offsets of a shape. See template.h. */
#include "planners/plan/template.h"

#define TOO_FAR    "the offsets of this shape do not fit in 2^62 bytes"
#define MOST_BYTES (INT64_C(1) << 62) /* of an arena [byte] */

static void code_free(mpl_ctx *ctx, mpl_template_code *code)
{
    if (code == NULL)
        return;
    mpl_free_each(ctx, code->value_of, code->value, code->bytes, code->body_begin, code->member,
                  code->parent, code->distance, code->align, code->rule_begin, code->lower,
                  code->upper, code);
}

void mpl_template_free(mpl_ctx *ctx, mpl_template *t)
{
    if (t == NULL)
        return;
    for (uint32_t i = 0; t->cell != NULL && i < t->n_cells; i++) {
        mpl_template_cell *cell = &t->cell[i];

        mpl_box_free(ctx, &cell->box);
        code_free(ctx, cell->code);
        mpl_free_each(ctx, cell->on, cell->below, cell->above, cell->offset, cell->arena,
                      cell->regret.at);
    }
    if (t->owned != NULL)
        mpl_exprs_free(ctx, t->owned->x);
    mpl_sym_problem_free(ctx, t->owned);
    mpl_free_each(ctx, t->cell, t->load_begin, t->load, t);
}

mpl_status mpl_template_new(mpl_ctx *ctx, const mpl_sym_problem *problem, uint32_t n_cells,
                            mpl_template **out)
{
    mpl_status st = MPL_OK;
    mpl_template *t = NULL;
    uint32_t n = problem->at->n;

    MPL_TRY(mpl_new(ctx, t, 1));
    t->n_cells = n_cells;
    MPL_TRY(mpl_new(ctx, t->cell, n_cells));
    MPL_TRY(mpl_new(ctx, t->load_begin, 1));
    for (uint32_t i = 0; i < n_cells; i++) {
        mpl_template_cell *cell = &t->cell[i];

        MPL_TRY(mpl_box_new(ctx, problem->x, &cell->box));
        MPL_TRY(mpl_new(ctx, cell->on, n));
        for (mpl_buffer b = 0; b < n; b++)
            cell->on[b] = b;
        cell->regret.most = UINT64_MAX;
    }
    t->problem = problem;
    *out = t, t = NULL;
out:
    mpl_template_free(ctx, t);
    return st;
}

/* ---- what is evaluated ---- */

typedef struct coder {
    mpl_ctx *ctx;
    const mpl_sym_problem *sp;
    const mpl_template_cell *cell;
    mpl_template_code *code;
    uint32_t *body;    /* [n] root of each buffer */
    uint32_t *waiting; /* [n] of a root: relations into its body from bodies not placed yet */
    uint32_t *rank;    /* [n] of a root: its place in the order */
} coder;

/* Index of the value of `e`. */
static uint32_t value_index(mpl_template_code *code, uint32_t *index_of, mpl_expr e)
{
    if (index_of[e] == 0) {
        code->value_of[code->n_values] = e;
        index_of[e] = ++code->n_values;
    }
    return index_of[e] - 1;
}

/* Finds the different expressions, and what each buffer is placed on. */
static mpl_status find_values(coder *c)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = c->sp->at;
    mpl_expr most = 0;
    uint32_t *index_of = NULL;

    for (mpl_buffer b = 0; b < p->n; b++) {
        most = c->sp->bytes[b] > most ? c->sp->bytes[b] : most;
        if (p->inside != NULL && c->sp->inside_at[b] > most)
            most = c->sp->inside_at[b];
    }
    MPL_TRY(mpl_new(c->ctx, index_of, (size_t)most + 1));
    for (mpl_buffer b = 0; b < p->n; b++) {
        bool part = p->inside != NULL && p->inside[b] != b, on = c->cell->on[b] != b;

        if (c->cell->on[b] >= p->n || (part && on))
            MPL_FAIL(c->ctx, MPL_EINPUT, "buffer %u cannot have the offset of %u: %s", b,
                     c->cell->on[b], part ? "it is a part of a family" : "there is none");
        c->code->bytes[b] = value_index(c->code, index_of, c->sp->bytes[b]);
        c->code->distance[b] = value_index(c->code, index_of, part ? c->sp->inside_at[b] : 0);
        c->code->parent[b] = part ? p->inside[b] : c->cell->on[b];
    }
out:
    mpl_free(c->ctx, index_of);
    return st;
}

/* Finds the root of each buffer; `rank` is scratch. */
static mpl_status find_bodies(coder *c)
{
    const mpl_problem *p = c->sp->at;

    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer root = b;

        for (uint32_t i = 0; c->code->parent[root] != root; i++) {
            root = c->code->parent[root];
            if (i == p->n)
                return MPL_REFUSE(c->ctx, "buffer %u has its own offset, by way of others", b);
        }
        if (p->pool[root] != p->pool[b])
            return MPL_REFUSE(c->ctx, "buffers %u and %u are of different pools", root, b);
        c->body[b] = root;
    }
    for (uint32_t i = 0; i < c->cell->n_relations; i++) {
        mpl_buffer low = c->cell->below[i], high = c->cell->above[i];

        if (low >= p->n || high >= p->n || p->pool[low] != p->pool[high] ||
            c->body[low] == c->body[high])
            return MPL_REFUSE(c->ctx, "buffer %u cannot lie below %u", low, high);
    }
    return MPL_OK;
}

/* Groups buffers by root, in ids; then moves each behind what it is placed on. */
static mpl_status list_members(coder *c, uint32_t **begin, mpl_buffer **member)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = c->sp->at;
    uint8_t *listed = NULL;

    MPL_TRY(mpl_new(c->ctx, listed, p->n));
    MPL_TRY(mpl_lists_new(c->ctx, p->n, p->n, c->body, NULL, begin, member));
    for (mpl_buffer r = 0; r < p->n; r++)
        for (uint32_t from = (*begin)[r], end = (*begin)[r + 1], i = from; i < end;) {
            mpl_buffer b = (*member)[i], on = c->code->parent[b];

            if (on == b || listed[on]) {
                (*member)[i] = (*member)[from], (*member)[from++] = b;
                listed[b] = 1, i = from;
            } else {
                i++;
            }
        }
out:
    mpl_free(c->ctx, listed);
    return st;
}

/* Copies the members of the body at `r`, which is the next one in the order. */
static void put_body(coder *c, mpl_buffer r, const uint32_t *begin, const mpl_buffer *member)
{
    mpl_template_code *code = c->code;
    uint32_t k = code->n_bodies++, at = code->body_begin[k];

    code->align[k] = 1;
    for (uint32_t i = begin[r]; i < begin[r + 1]; i++) {
        uint32_t align = c->sp->at->align[member[i]];

        code->align[k] = align > code->align[k] ? align : code->align[k];
        code->member[at++] = member[i];
    }
    code->body_begin[k + 1] = at;
    c->rank[r] = k;
}

/* Orders the bodies by the relations, the lowest id first among those that are free. */
static mpl_status order_bodies(coder *c)
{
    mpl_status st = MPL_OK;
    uint32_t n = c->sp->at->n, n_rules = c->cell->n_relations, *begin = NULL, *key = NULL,
             *up_begin = NULL, *up = NULL;
    mpl_buffer *member = NULL;
    uint64_t *is_free = NULL;

    MPL_TRY(mpl_new(c->ctx, key, n_rules));
    MPL_TRY(mpl_new(c->ctx, is_free, n / 64 + 1));
    MPL_TRY(list_members(c, &begin, &member));
    for (uint32_t i = 0; i < n_rules; i++) {
        key[i] = c->body[c->cell->below[i]];
        c->waiting[c->body[c->cell->above[i]]]++;
    }
    MPL_TRY(mpl_lists_new(c->ctx, n, n_rules, key, c->cell->above, &up_begin, &up));
    for (mpl_buffer b = 0; b < n; b++)
        if (c->body[b] == b && c->waiting[b] == 0)
            mpl_bit_add(is_free, b);
    for (uint32_t word = 0; word <= n / 64;) {
        mpl_buffer r;

        if (is_free[word] == 0) {
            word++;
            continue;
        }
        r = word * 64 + (uint32_t)__builtin_ctzll(is_free[word]);
        mpl_bit_drop(is_free, r);
        put_body(c, r, begin, member);
        for (uint32_t i = up_begin[r]; i < up_begin[r + 1]; i++) {
            mpl_buffer above = c->body[up[i]];

            if (--c->waiting[above] == 0) {
                mpl_bit_add(is_free, above);
                word = above / 64 < word ? above / 64 : word;
            }
        }
    }
    for (mpl_buffer b = 0; b < n; b++)
        if (c->body[b] == b && c->waiting[b] > 0)
            MPL_FAIL(c->ctx, MPL_EINPUT, "relations run in a circle through buffer %u", b);
out:
    mpl_free_each(c->ctx, begin, key, up_begin, up, member, is_free);
    return st;
}

/* Groups the relations by the body above. */
static mpl_status list_rules(coder *c)
{
    mpl_status st = MPL_OK;
    uint32_t n_rules = c->cell->n_relations, *key = NULL, *item = NULL;

    MPL_TRY(mpl_new(c->ctx, key, n_rules));
    for (uint32_t i = 0; i < n_rules; i++)
        key[i] = c->rank[c->body[c->cell->above[i]]];
    MPL_TRY(
        mpl_lists_new(c->ctx, c->code->n_bodies, n_rules, key, NULL, &c->code->rule_begin, &item));
    MPL_TRY(mpl_new_each(c->ctx, n_rules, c->code->lower, c->code->upper));
    for (uint32_t i = 0; i < n_rules; i++) {
        c->code->lower[i] = c->cell->below[item[i]];
        c->code->upper[i] = c->cell->above[item[i]];
    }
out:
    mpl_free_each(c->ctx, key, item);
    return st;
}

mpl_status mpl_template_ready_cell(mpl_ctx *ctx, mpl_template *t, uint32_t k)
{
    mpl_status st = MPL_OK;
    mpl_template_cell *cell = &t->cell[k];
    uint32_t n = t->problem->at->n;
    coder c = {.ctx = ctx, .sp = t->problem, .cell = cell};

    MPL_TRY(mpl_new(ctx, c.code, 1));
    MPL_TRY(mpl_new_each(ctx, n + 1, c.code->bytes, c.code->body_begin, c.code->member,
                         c.code->parent, c.code->distance, c.code->align));
    MPL_TRY(mpl_new_each(ctx, n, c.body, c.waiting, c.rank));
    MPL_TRY(mpl_new_each(ctx, 2 * (size_t)n + 1, c.code->value_of, c.code->value));
    MPL_TRY(find_values(&c));
    MPL_TRY(find_bodies(&c));
    MPL_TRY(order_bodies(&c));
    MPL_TRY(list_rules(&c));
    code_free(ctx, cell->code);
    cell->code = c.code, c.code = NULL;
out:
    mpl_free_each(ctx, c.body, c.waiting, c.rank);
    code_free(ctx, c.code);
    return st;
}

mpl_status mpl_template_ready(mpl_ctx *ctx, mpl_template *t)
{
    for (uint32_t i = 0; i < t->n_cells; i++)
        MPL_PASS(mpl_template_ready_cell(ctx, t, i));
    return MPL_OK;
}

/* ---- a shape ---- */

static mpl_status refuse_shape(mpl_ctx *ctx, const mpl_exprs *x, const int64_t *value)
{
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(x); i++) {
        const mpl_symbol *s = mpl_exprs_symbol(x, i);

        if (value[i] < s->first || value[i] > s->last || (value[i] - s->first) % s->step != 0)
            return MPL_REFUSE(ctx,
                              "%.60s = %" PRId64 ": the template is for %" PRId64 "..%" PRId64
                              " in steps of %" PRId64,
                              s->name, value[i], s->first, s->last, s->step);
    }
    return MPL_REFUSE(ctx, "the shape breaks a relation between the template's symbols");
}

mpl_status mpl_template_find(mpl_ctx *ctx, const mpl_template *t, const int64_t *value,
                             uint32_t *cell)
{
    const mpl_exprs *x = t->problem->x;

    if (!mpl_point_allowed(x, value))
        return refuse_shape(ctx, x, value);
    for (uint32_t k = 0; k < t->n_cells; k++) {
        const mpl_box *box = &t->cell[k].box;
        bool in = true;

        for (uint32_t i = 0; i < box->n && in; i++) {
            const mpl_symbol *s = mpl_exprs_symbol(x, i);
            int64_t count = (value[i] - s->first) / s->step;

            in = box->low[i] <= count && count <= box->high[i];
        }
        if (in) {
            *cell = k;
            return MPL_OK;
        }
    }
    return MPL_REFUSE(ctx, "no cell of the template holds the shape");
}

static bool evaluate(const mpl_template *t, mpl_template_code *code, const int64_t *value)
{
    for (uint32_t i = 0; i < code->n_values; i++)
        if (!mpl_expr_eval(t->problem->x, code->value_of[i], value, &code->value[i]) ||
            code->value[i] < 0 || code->value[i] > MOST_BYTES)
            return false;
    return true;
}

/* The start of body k at this shape; offset[] of its members are distances from it. */
static uint64_t start_of(const mpl_template_cell *cell, uint32_t k, const uint64_t *offset)
{
    const mpl_template_code *code = cell->code;
    uint64_t start = 0;

    if (cell->offset != NULL)
        return cell->offset[code->member[code->body_begin[k]]];
    for (uint32_t i = code->rule_begin[k]; i < code->rule_begin[k + 1]; i++) {
        mpl_buffer low = code->lower[i];
        uint64_t end = offset[low] + (uint64_t)code->value[code->bytes[low]],
                 distance = offset[code->upper[i]];

        if (end > distance && end - distance > start)
            start = end - distance;
    }
    return mpl_align_up(start, code->align[k]);
}

mpl_status mpl_template_offsets(mpl_ctx *ctx, const mpl_template *t, const int64_t *value,
                                uint64_t *offset, uint64_t *bytes, uint64_t *pool_bytes)
{
    const mpl_problem *p = t->problem->at;
    const mpl_template_cell *cell;
    const mpl_template_code *code;
    uint32_t which;

    MPL_PASS(mpl_template_find(ctx, t, value, &which));
    cell = &t->cell[which], code = cell->code;
    if (!evaluate(t, cell->code, value))
        return MPL_REFUSE(ctx, "the sizes of this shape do not fit in 2^62 bytes");
    for (uint32_t i = 0; pool_bytes != NULL && i < p->n_pools; i++)
        pool_bytes[i] = cell->arena != NULL ? cell->arena[i] : 0;
    for (uint32_t k = 0; k < code->n_bodies; k++) {
        uint64_t start;

        for (uint32_t i = code->body_begin[k]; i < code->body_begin[k + 1]; i++) {
            mpl_buffer b = code->member[i], on = code->parent[b];

            offset[b] = (on == b ? 0 : offset[on]) + (uint64_t)code->value[code->distance[b]];
            if (offset[b] > (uint64_t)MOST_BYTES)
                return MPL_REFUSE(ctx, TOO_FAR);
        }
        start = start_of(cell, k, offset);
        for (uint32_t i = code->body_begin[k]; i < code->body_begin[k + 1]; i++) {
            mpl_buffer b = code->member[i];
            uint64_t size = (uint64_t)code->value[code->bytes[b]];

            offset[b] += start;
            if (offset[b] + size > (uint64_t)MOST_BYTES ||
                (cell->arena != NULL && offset[b] + size > cell->arena[p->pool[b]]))
                return MPL_REFUSE(ctx, TOO_FAR);
            if (bytes != NULL)
                bytes[b] = size;
            if (pool_bytes != NULL)
                pool_bytes[p->pool[b]] = mpl_max_u64(pool_bytes[p->pool[b]], offset[b] + size);
        }
    }
    return MPL_OK;
}
