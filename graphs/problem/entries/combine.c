/* combine.c -- the problem of several graphs over one memory. See entries.h. */
#include "graphs/problem/entries/entries.h"

typedef struct combiner {
    mpl_ctx *ctx;
    mpl_problem *p;
    uint32_t n_states, n;
    mpl_entry_part *part;
    uint32_t *shift; /* [n] first step of each graph */
    uint32_t n_gaps, n_pairs;
} combiner;

/* Numbers buffers and steps; counts pairs and, at most, gaps. */
static mpl_status count_all(combiner *self, uint32_t *n_buffers, uint32_t *n_steps)
{
    uint64_t buffers = self->n_states, steps = 0;

    for (uint32_t e = 0; e < self->n; e++) {
        const mpl_problem *p = self->part[e].p;

        if (p->before != NULL || p->n_pools > 2 ||
            (p->n_pools == 2 && strcmp(p->pool_name[1], "workspace") != 0))
            return MPL_REFUSE(self->ctx,
                              "%s: graphs over one memory are planned serially, in one pool",
                              self->part[e].name);
        self->part[e].first = (uint32_t)buffers;
        self->shift[e] = (uint32_t)steps;
        buffers += p->n;
        steps += p->n_steps;
        if (buffers >= MPL_NONE || steps >= MPL_NONE)
            return MPL_REFUSE(self->ctx,
                              "%s: the graphs together have more than 2^32 buffers or steps",
                              self->part[e].name);
        self->n_pairs += p->n_in_place;
        self->n_gaps += self->n_states + (p->gap_begin != NULL ? p->gap_begin[p->n] : 0);
    }
    *n_buffers = (uint32_t)buffers;
    *n_steps = (uint32_t)steps;
    return MPL_OK;
}

static mpl_status alloc_fields(combiner *self)
{
    mpl_problem *p = self->p;
    bool families = false, pool = false;

    for (uint32_t e = 0; e < self->n; e++) {
        families = families || self->part[e].p->inside != NULL;
        pool = pool || self->part[e].p->n_pools > 1;
    }
    MPL_PASS(mpl_new(self->ctx, p->buffer_name, p->n));
    MPL_PASS(mpl_new_each(self->ctx, p->n, p->type_id, p->shape_id, p->no_reuse));
    MPL_PASS(mpl_new(self->ctx, p->gap_begin, (size_t)p->n + 1));
    MPL_PASS(mpl_new_each(self->ctx, self->n_gaps, p->gap_from, p->gap_to));
    MPL_PASS(
        mpl_new_each(self->ctx, self->n_pairs, p->in_place_in, p->in_place_out, p->in_place_step));
    if (families) {
        MPL_PASS(mpl_new_each(self->ctx, p->n, p->inside, p->inside_at));
        for (mpl_buffer b = 0; b < p->n; b++)
            p->inside[b] = b;
    }
    return pool ? mpl_problem_add_pool(self->ctx, p, "workspace") : MPL_OK;
}

static void add_gap(combiner *self, uint32_t from, uint32_t to)
{
    mpl_problem *p = self->p;

    p->gap_from[p->gap_begin[p->n]] = from;
    p->gap_to[p->gap_begin[p->n]++] = to;
}

/* A state: there always, but for the steps before a graph makes it anew. */
static mpl_status add_state(combiner *self, uint32_t s, const char *name, uint64_t bytes)
{
    mpl_problem *p = self->p;

    p->bytes[s] = bytes;
    p->death[s] = p->n_steps;
    p->type_id[s] = MPL_N_TYPES;
    p->shape_id[s] = s;
    for (uint32_t e = 0; e < self->n; e++) {
        const mpl_held *held = self->part[e].held;

        if (held->from[s] < held->to[s] && self->shift[e] + held->from[s] == 0)
            p->birth[s] = held->to[s];
        else if (held->from[s] < held->to[s])
            add_gap(self, self->shift[e] + held->from[s], self->shift[e] + held->to[s]);
    }
    p->gap_begin[s + 1] = p->gap_begin[p->n];
    return mpl_copy_text(self->ctx, p->buffer_name[s], name);
}

static mpl_status add_buffer(combiner *self, uint32_t e, mpl_buffer b)
{
    const mpl_problem *from = self->part[e].p;
    mpl_problem *p = self->p;
    mpl_buffer to = self->part[e].first + b;
    char label[24];
    const char *name = mpl_buffer_label(from, b, label);
    size_t n = strlen(self->part[e].name) + strlen(name) + 2;

    p->bytes[to] = from->bytes[b];
    p->align[to] = from->align[b];
    p->pool[to] = from->pool[b];
    p->birth[to] = self->shift[e] + from->birth[b];
    p->death[to] = self->shift[e] + from->death[b];
    p->type_id[to] = from->type_id[b];
    p->shape_id[to] = self->part[e].first + from->shape_id[b];
    p->no_reuse[to] = from->no_reuse[b];
    if (from->inside != NULL) {
        p->inside[to] = self->part[e].first + from->inside[b];
        p->inside_at[to] = from->inside_at[b];
    }
    for (uint32_t k = from->gap_begin != NULL ? from->gap_begin[b] : 0;
         from->gap_begin != NULL && k < from->gap_begin[b + 1]; k++)
        add_gap(self, self->shift[e] + from->gap_from[k], self->shift[e] + from->gap_to[k]);
    p->gap_begin[to + 1] = p->gap_begin[p->n];
    MPL_PASS((p->buffer_name[to] = mpl_alloc(self->ctx, n, 1)) != NULL ? MPL_OK : MPL_EMEM);
    snprintf(p->buffer_name[to], n, "%s/%s", self->part[e].name, name);
    return MPL_OK;
}

static void add_pairs(combiner *self, uint32_t e)
{
    const mpl_problem *from = self->part[e].p;
    mpl_problem *p = self->p;

    for (uint32_t i = 0; i < from->n_in_place; i++, p->n_in_place++) {
        p->in_place_in[p->n_in_place] = self->part[e].first + from->in_place_in[i];
        p->in_place_out[p->n_in_place] = self->part[e].first + from->in_place_out[i];
        p->in_place_step[p->n_in_place] = self->shift[e] + from->in_place_step[i];
    }
}

/* A problem without gaps has no arrays for them. */
static void drop_no_gaps(combiner *self)
{
    mpl_problem *p = self->p;

    if (p->gap_begin[p->n] > 0)
        return;
    mpl_free_each(self->ctx, p->gap_begin, p->gap_from, p->gap_to);
    p->gap_begin = p->gap_from = p->gap_to = NULL;
}

mpl_status mpl_problem_of_entries(mpl_ctx *ctx, const char *name, uint32_t n_states,
                                  const char *const *state_name, const uint64_t *state_bytes,
                                  uint32_t align, uint32_t n, mpl_entry_part *part,
                                  mpl_problem **out)
{
    mpl_status st = MPL_OK;
    combiner c = {.ctx = ctx, .n_states = n_states, .n = n, .part = part};
    uint32_t n_buffers = 0, n_steps = 0;

    MPL_TRY(mpl_new(ctx, c.shift, n));
    MPL_TRY(count_all(&c, &n_buffers, &n_steps));
    MPL_TRY(mpl_problem_new(ctx, name, n_buffers, &c.p));
    c.p->n_steps = n_steps;
    MPL_TRY(alloc_fields(&c));
    for (uint32_t s = 0; s < n_states; s++) {
        MPL_TRY(add_state(&c, s, state_name[s], state_bytes[s]));
        c.p->align[s] = align;
    }
    for (uint32_t e = 0; e < n; e++) {
        for (mpl_buffer b = 0; b < part[e].p->n; b++)
            MPL_TRY(add_buffer(&c, e, b));
        add_pairs(&c, e);
    }
    drop_no_gaps(&c);
    MPL_TRY(mpl_problem_check(ctx, c.p));
    *out = c.p, c.p = NULL;
out:
    mpl_problem_free(ctx, c.p);
    mpl_free(ctx, c.shift);
    return st;
}
