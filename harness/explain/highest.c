/* highest.c -- an arena at its highest point: whose bytes these are. See explain.h. */
#include <stdlib.h>

#include "graphs/problem/bounds/bounds.h"
#include "harness/explain/explain.h"

const char *const mpl_portion_name[MPL_N_PORTIONS] = {
#define KIND(name) #name,
    MPL_PORTION_KINDS(KIND)
#undef KIND
};

/* One search for a highest point. */
typedef struct seeker {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const mpl_plan *plan;
    uint32_t arena;
    uint64_t top;    /* end of the arena [byte] */
    uint8_t *chosen; /* [n] needed at the highest point */
} seeker;

static uint64_t end_of(const seeker *self, mpl_buffer b)
{
    return self->plan->offset[b] + self->p->bytes[b];
}

static bool is_here(const seeker *self, mpl_buffer b)
{
    return mpl_plan_arena(self->p, self->plan, b) == self->arena;
}

/* ---- serial: a step ---- */

/* Adds `bytes` over the steps that need b to differences between steps. */
static void add_over(const mpl_problem *p, mpl_buffer b, uint64_t bytes, uint64_t *change)
{
    change[p->birth[b]] += bytes;
    change[p->death[b]] -= bytes;
    for (uint32_t k = p->gap_begin != NULL ? p->gap_begin[b] : 0;
         p->gap_begin != NULL && k < p->gap_begin[b + 1]; k++) {
        change[p->gap_from[k]] -= bytes;
        change[p->gap_to[k]] += bytes;
    }
}

/* Chooses the buffers needed at the step. */
static mpl_status choose_step(seeker *self, uint32_t *step)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    uint64_t *live = NULL, *tops = NULL, most = 0, sum = 0, n_tops = 0;

    MPL_TRY(mpl_new_each(self->ctx, (size_t)p->n_steps + 1, live, tops));
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (is_here(self, b))
            add_over(p, b, p->bytes[b], live);
        if (is_here(self, b) && end_of(self, b) == self->top)
            add_over(p, b, 1, tops);
    }
    for (uint32_t k = 0; k < p->n_in_place; k++) {
        mpl_buffer in = p->in_place_in[k], out = p->in_place_out[k];

        if (is_here(self, out) && self->plan->offset[in] == self->plan->offset[out]) {
            live[p->in_place_step[k]] -= p->bytes[out]; /* the same bytes */
            live[p->in_place_step[k] + 1] += p->bytes[out];
        }
    }
    *step = 0;
    for (uint32_t k = 0; k < p->n_steps; k++) {
        sum += live[k];
        n_tops += tops[k];
        if (n_tops > 0 && sum > most) {
            most = sum;
            *step = k;
        }
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        self->chosen[b] = is_here(self, b) && mpl_needed_at(p, b, *step);
out:
    mpl_free_each(self->ctx, live, tops);
    return st;
}

/* ---- parallel: buffers that conflict pairwise ---- */

/* Larger first; ties by id. */
static int larger_first(const void *x, const void *y, void *problem)
{
    const mpl_problem *p = problem;
    mpl_buffer a = *(const mpl_buffer *)x, b = *(const mpl_buffer *)y;
    uint64_t bytes_a = p->bytes[a], bytes_b = p->bytes[b];

    return bytes_a != bytes_b ? (bytes_a < bytes_b) - (bytes_a > bytes_b) : (a > b) - (a < b);
}

/* Chooses the witness of the bound, if one of its buffers ends the arena. */
static mpl_status choose_witness(seeker *self, uint32_t pool, bool *chosen)
{
    uint64_t bytes;

    *chosen = false;
    MPL_PASS(mpl_lower_bound(self->ctx, self->p, pool, &bytes, self->chosen));
    for (mpl_buffer b = 0; b < self->p->n; b++)
        *chosen |= self->chosen[b] && end_of(self, b) == self->top;
    if (!*chosen)
        memset(self->chosen, 0, self->p->n);
    return MPL_OK;
}

/* Chooses the first buffer that ends the arena, then each that conflicts with all so far. */
static mpl_status choose_greedily(seeker *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    mpl_buffer *order = NULL, *set = NULL;
    uint32_t n = 0, n_set = 0;

    MPL_TRY(mpl_new_each(self->ctx, p->n, order, set));
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (is_here(self, b) && end_of(self, b) == self->top && n_set == 0)
            set[n_set++] = b;
        else if (is_here(self, b))
            order[n++] = b;
    }
    qsort_r(order, n, sizeof *order, larger_first, (void *)(uintptr_t)p);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;

        while (k < n_set && mpl_conflict(p, order[i], set[k]))
            k++;
        if (k == n_set)
            set[n_set++] = order[i];
    }
    for (uint32_t k = 0; k < n_set; k++)
        self->chosen[set[k]] = 1;
out:
    mpl_free_each(self->ctx, order, set);
    return st;
}

static mpl_status choose_set(seeker *self, uint32_t pool)
{
    bool chosen = false;

    if (pool > 0 || self->plan->spread.n == 0)
        MPL_PASS(choose_witness(self, pool, &chosen));
    if (!chosen)
        MPL_PASS(choose_greedily(self));
    return MPL_OK;
}

/* ---- portions ---- */

typedef struct placed {
    uint64_t offset, end;
    mpl_buffer buffer;
} placed;

/* Lower first, then larger, then by id. */
static int lower_first(const void *x, const void *y)
{
    const placed *a = x, *b = y;

    return a->offset != b->offset ? (a->offset > b->offset) - (a->offset < b->offset)
           : a->end != b->end     ? (a->end < b->end) - (a->end > b->end)
                                  : (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static void add(mpl_highest *to, mpl_portion_kind kind, mpl_buffer b, uint64_t from, uint64_t end)
{
    if (end > from)
        to->portion[to->n++] = (mpl_portion){kind, b, from, end - from};
}

/* Cuts the arena into the bytes of the chosen buffers and what lies between them. */
static mpl_status cut(const seeker *self, const uint8_t *kind, mpl_highest *to)
{
    mpl_status st = MPL_OK;
    placed *item = NULL;
    uint32_t n = 0;
    uint64_t at = 0;

    MPL_TRY(mpl_new(self->ctx, item, self->p->n));
    for (mpl_buffer b = 0; b < self->p->n; b++)
        if (self->chosen[b])
            item[n++] = (placed){self->plan->offset[b], end_of(self, b), b};
    qsort(item, n, sizeof *item, lower_first);
    MPL_TRY(mpl_new(self->ctx, to->portion, 3 * (size_t)n));
    for (uint32_t i = 0; i < n; i++) {
        mpl_buffer b = item[i].buffer;
        uint64_t from = mpl_max_u64(at, item[i].offset);
        uint64_t aligned = mpl_min_u64(mpl_align_up(at, self->p->align[b]), from);

        add(to, MPL_PORTION_alignment, b, at, aligned);
        add(to, MPL_PORTION_hole, b, aligned, from);
        add(to, (mpl_portion_kind)kind[b], b, from, item[i].end);
        at = mpl_max_u64(at, item[i].end);
    }
    mpl_assert(at == to->arena_bytes);
out:
    mpl_free(self->ctx, item);
    return st;
}

/* kind[n]: what each buffer holds. */
static mpl_status kinds_of(mpl_ctx *ctx, const mpl_job *job, uint8_t *kind)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = job->problem;
    const mpl_graph *g = job->source.graph;
    static const uint8_t of_part[MPL_N_PARTS] = {MPL_PORTION_value, MPL_PORTION_weight,
                                                 MPL_PORTION_gradient, MPL_PORTION_state};
    mpl_keeper *keeper = NULL;
    uint8_t *part = NULL;

    for (mpl_buffer b = 0; b < p->n; b++)
        kind[b] = strcmp(p->pool_name[p->pool[b]], "workspace") == 0 ? MPL_PORTION_workspace
                                                                     : MPL_PORTION_value;
    if (g == NULL)
        goto out;
    MPL_TRY(mpl_keepers_new(ctx, job, &keeper));
    MPL_TRY(mpl_new(ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (keeper[b].value != MPL_NONE)
            kind[b] = of_part[part[keeper[b].value]];
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (job->map->op_workspace[op] != MPL_NONE)
            kind[job->map->op_workspace[op]] = MPL_PORTION_workspace;
out:
    mpl_free_each(ctx, keeper, part);
    return st;
}

mpl_status mpl_highest_find(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan, uint32_t arena,
                            mpl_highest *out)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = job->problem;
    uint32_t n_first = plan->spread.n > 0 ? plan->spread.n : 1;
    uint8_t *kind = NULL;
    seeker s = {.ctx = ctx, .p = p, .plan = plan, .arena = arena};

    *out = (mpl_highest){.pool = arena < n_first ? 0 : arena - n_first + 1,
                         .memory = arena < n_first ? arena : 0,
                         .step = MPL_NONE};
    for (mpl_buffer b = 0; b < p->n; b++)
        if (is_here(&s, b))
            s.top = mpl_max_u64(s.top, end_of(&s, b));
    out->arena_bytes = s.top;
    if (s.top == 0)
        goto out;
    MPL_TRY(mpl_new_each(ctx, p->n, s.chosen, kind));
    MPL_TRY(kinds_of(ctx, job, kind));
    MPL_TRY(p->before == NULL ? choose_step(&s, &out->step) : choose_set(&s, out->pool));
    MPL_TRY(cut(&s, kind, out));
out:
    mpl_free_each(ctx, s.chosen, kind);
    return st;
}

void mpl_highest_fini(mpl_ctx *ctx, mpl_highest *highest)
{
    mpl_free(ctx, highest->portion);
    *highest = (mpl_highest){0};
}
