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

void mpl_template_free(mpl_ctx *ctx, mpl_template *tmpl)
{
    if (tmpl == NULL)
        return;
    for (uint32_t i = 0; tmpl->cell != NULL && i < tmpl->n_cells; i++) {
        mpl_template_cell *cell = &tmpl->cell[i];

        mpl_box_free(ctx, &cell->box);
        code_free(ctx, cell->code);
        mpl_free_each(ctx, cell->on, cell->below, cell->above, cell->offset, cell->arena,
                      cell->regret.at);
    }
    if (tmpl->owned != NULL)
        mpl_exprs_free(ctx, tmpl->owned->exprs);
    mpl_sym_problem_free(ctx, tmpl->owned);
    mpl_free_each(ctx, tmpl->cell, tmpl->load_begin, tmpl->load, tmpl);
}

mpl_status mpl_template_new(mpl_ctx *ctx, const mpl_sym_problem *problem, uint32_t n_cells,
                            mpl_template **out)
{
    mpl_status st = MPL_OK;
    mpl_template *tmpl = NULL;
    uint32_t n = problem->at->n;

    MPL_TRY(mpl_new(ctx, tmpl, 1));
    tmpl->n_cells = n_cells;
    MPL_TRY(mpl_new(ctx, tmpl->cell, n_cells));
    MPL_TRY(mpl_new(ctx, tmpl->load_begin, 1));
    for (uint32_t i = 0; i < n_cells; i++) {
        mpl_template_cell *cell = &tmpl->cell[i];

        MPL_TRY(mpl_box_new(ctx, problem->exprs, &cell->box));
        MPL_TRY(mpl_new(ctx, cell->on, n));
        for (mpl_buffer b = 0; b < n; b++)
            cell->on[b] = b;
        cell->regret.most = UINT64_MAX;
    }
    tmpl->problem = problem;
    *out = tmpl, tmpl = NULL;
out:
    mpl_template_free(ctx, tmpl);
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
static mpl_status find_values(coder *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->sp->at;
    mpl_expr most = 0;
    uint32_t *index_of = NULL;

    for (mpl_buffer b = 0; b < p->n; b++) {
        most = self->sp->bytes[b] > most ? self->sp->bytes[b] : most;
        if (p->inside != NULL && self->sp->inside_at[b] > most)
            most = self->sp->inside_at[b];
    }
    MPL_TRY(mpl_new(self->ctx, index_of, (size_t)most + 1));
    for (mpl_buffer b = 0; b < p->n; b++) {
        bool part = p->inside != NULL && p->inside[b] != b, on = self->cell->on[b] != b;

        if (self->cell->on[b] >= p->n || (part && on))
            MPL_FAIL(self->ctx, MPL_EINPUT, "buffer %u cannot have the offset of %u: %s", b,
                     self->cell->on[b], part ? "it is a part of a family" : "there is none");
        self->code->bytes[b] = value_index(self->code, index_of, self->sp->bytes[b]);
        self->code->distance[b] =
            value_index(self->code, index_of, part ? self->sp->inside_at[b] : 0);
        self->code->parent[b] = part ? p->inside[b] : self->cell->on[b];
    }
out:
    mpl_free(self->ctx, index_of);
    return st;
}

/* Finds the root of each buffer; `rank` is scratch. */
static mpl_status find_bodies(coder *self)
{
    const mpl_problem *p = self->sp->at;

    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer root = b;

        for (uint32_t i = 0; self->code->parent[root] != root; i++) {
            root = self->code->parent[root];
            if (i == p->n)
                return MPL_REFUSE(self->ctx, "buffer %u has its own offset, by way of others", b);
        }
        if (p->pool[root] != p->pool[b])
            return MPL_REFUSE(self->ctx, "buffers %u and %u are of different pools", root, b);
        self->body[b] = root;
    }
    for (uint32_t i = 0; i < self->cell->n_relations; i++) {
        mpl_buffer low = self->cell->below[i], high = self->cell->above[i];

        if (low >= p->n || high >= p->n || p->pool[low] != p->pool[high] ||
            self->body[low] == self->body[high])
            return MPL_REFUSE(self->ctx, "buffer %u cannot lie below %u", low, high);
    }
    return MPL_OK;
}

/* Groups buffers by root, in ids; then moves each behind what it is placed on. */
static mpl_status list_members(coder *self, uint32_t **begin, mpl_buffer **member)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->sp->at;
    uint8_t *listed = NULL;

    MPL_TRY(mpl_new(self->ctx, listed, p->n));
    MPL_TRY(mpl_lists_new(self->ctx, p->n, p->n, self->body, NULL, begin, member));
    for (mpl_buffer r = 0; r < p->n; r++)
        for (uint32_t from = (*begin)[r], end = (*begin)[r + 1], i = from; i < end;) {
            mpl_buffer b = (*member)[i], on = self->code->parent[b];

            if (on == b || listed[on]) {
                (*member)[i] = (*member)[from], (*member)[from++] = b;
                listed[b] = 1, i = from;
            } else {
                i++;
            }
        }
out:
    mpl_free(self->ctx, listed);
    return st;
}

/* Copies the members of the body at `r`, which is the next one in the order. */
static void put_body(coder *self, mpl_buffer r, const uint32_t *begin, const mpl_buffer *member)
{
    mpl_template_code *code = self->code;
    uint32_t k = code->n_bodies++, at = code->body_begin[k];

    code->align[k] = 1;
    for (uint32_t i = begin[r]; i < begin[r + 1]; i++) {
        uint32_t align = self->sp->at->align[member[i]];

        code->align[k] = align > code->align[k] ? align : code->align[k];
        code->member[at++] = member[i];
    }
    code->body_begin[k + 1] = at;
    self->rank[r] = k;
}

/* Orders the bodies by the relations, the lowest id first among those that are free. */
static mpl_status order_bodies(coder *self)
{
    mpl_status st = MPL_OK;
    uint32_t n = self->sp->at->n, n_rules = self->cell->n_relations, *begin = NULL, *key = NULL,
             *up_begin = NULL, *up = NULL;
    mpl_buffer *member = NULL;
    uint64_t *is_free = NULL;

    MPL_TRY(mpl_new(self->ctx, key, n_rules));
    MPL_TRY(mpl_new(self->ctx, is_free, n / 64 + 1));
    MPL_TRY(list_members(self, &begin, &member));
    for (uint32_t i = 0; i < n_rules; i++) {
        key[i] = self->body[self->cell->below[i]];
        self->waiting[self->body[self->cell->above[i]]]++;
    }
    MPL_TRY(mpl_lists_new(self->ctx, n, n_rules, key, self->cell->above, &up_begin, &up));
    for (mpl_buffer b = 0; b < n; b++)
        if (self->body[b] == b && self->waiting[b] == 0)
            mpl_bit_add(is_free, b);
    for (uint32_t word = 0; word <= n / 64;) {
        mpl_buffer r;

        if (is_free[word] == 0) {
            word++;
            continue;
        }
        r = word * 64 + (uint32_t)__builtin_ctzll(is_free[word]);
        mpl_bit_drop(is_free, r);
        put_body(self, r, begin, member);
        for (uint32_t i = up_begin[r]; i < up_begin[r + 1]; i++) {
            mpl_buffer above = self->body[up[i]];

            if (--self->waiting[above] == 0) {
                mpl_bit_add(is_free, above);
                word = above / 64 < word ? above / 64 : word;
            }
        }
    }
    for (mpl_buffer b = 0; b < n; b++)
        if (self->body[b] == b && self->waiting[b] > 0)
            MPL_FAIL(self->ctx, MPL_EINPUT, "relations run in a circle through buffer %u", b);
out:
    mpl_free_each(self->ctx, begin, key, up_begin, up, member, is_free);
    return st;
}

/* Groups the relations by the body above. */
static mpl_status list_rules(coder *self)
{
    mpl_status st = MPL_OK;
    uint32_t n_rules = self->cell->n_relations, *key = NULL, *item = NULL;

    MPL_TRY(mpl_new(self->ctx, key, n_rules));
    for (uint32_t i = 0; i < n_rules; i++)
        key[i] = self->rank[self->body[self->cell->above[i]]];
    MPL_TRY(mpl_lists_new(self->ctx, self->code->n_bodies, n_rules, key, NULL,
                          &self->code->rule_begin, &item));
    MPL_TRY(mpl_new_each(self->ctx, n_rules, self->code->lower, self->code->upper));
    for (uint32_t i = 0; i < n_rules; i++) {
        self->code->lower[i] = self->cell->below[item[i]];
        self->code->upper[i] = self->cell->above[item[i]];
    }
out:
    mpl_free_each(self->ctx, key, item);
    return st;
}

mpl_status mpl_template_ready_cell(mpl_ctx *ctx, mpl_template *tmpl, uint32_t k)
{
    mpl_status st = MPL_OK;
    mpl_template_cell *cell = &tmpl->cell[k];
    uint32_t n = tmpl->problem->at->n;
    coder c = {.ctx = ctx, .sp = tmpl->problem, .cell = cell};

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

mpl_status mpl_template_ready(mpl_ctx *ctx, mpl_template *tmpl)
{
    for (uint32_t i = 0; i < tmpl->n_cells; i++)
        MPL_PASS(mpl_template_ready_cell(ctx, tmpl, i));
    return MPL_OK;
}

/* ---- a shape ---- */

static mpl_status refuse_shape(mpl_ctx *ctx, const mpl_exprs *exprs, const int64_t *value)
{
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);

        if (value[i] < symbol->first || value[i] > symbol->last ||
            (value[i] - symbol->first) % symbol->step != 0)
            return MPL_REFUSE(ctx,
                              "%.60s = %" PRId64 ": the template is for %" PRId64 "..%" PRId64
                              " in steps of %" PRId64,
                              symbol->name, value[i], symbol->first, symbol->last, symbol->step);
    }
    return MPL_REFUSE(ctx, "the shape breaks a relation between the template's symbols");
}

mpl_status mpl_template_find(mpl_ctx *ctx, const mpl_template *tmpl, const int64_t *value,
                             uint32_t *cell)
{
    const mpl_exprs *exprs = tmpl->problem->exprs;

    if (!mpl_point_allowed(exprs, value))
        return refuse_shape(ctx, exprs, value);
    for (uint32_t k = 0; k < tmpl->n_cells; k++) {
        const mpl_box *box = &tmpl->cell[k].box;
        bool in = true;

        for (uint32_t i = 0; i < box->n && in; i++) {
            const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);
            int64_t count = (value[i] - symbol->first) / symbol->step;

            in = box->low[i] <= count && count <= box->high[i];
        }
        if (in) {
            *cell = k;
            return MPL_OK;
        }
    }
    return MPL_REFUSE(ctx, "no cell of the template holds the shape");
}

static bool evaluate(const mpl_template *tmpl, mpl_template_code *code, const int64_t *value)
{
    for (uint32_t i = 0; i < code->n_values; i++)
        if (!mpl_expr_eval(tmpl->problem->exprs, code->value_of[i], value, &code->value[i]) ||
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

mpl_status mpl_template_offsets(mpl_ctx *ctx, const mpl_template *tmpl, const int64_t *value,
                                uint64_t *offset, uint64_t *bytes, uint64_t *pool_bytes)
{
    const mpl_problem *p = tmpl->problem->at;
    const mpl_template_cell *cell;
    const mpl_template_code *code;
    uint32_t which;

    MPL_PASS(mpl_template_find(ctx, tmpl, value, &which));
    cell = &tmpl->cell[which], code = cell->code;
    if (!evaluate(tmpl, cell->code, value))
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
