/* residency_uses.c -- which step uses which buffer, from a graph, its order and its value map. See
 * residency_job.h. */
#include "graphs/graph.h"
#include "harness/residency/residency_job.h"

/* A walk over the operands of all steps: counts uses, then fills them in. */
typedef struct walk {
    mpl_ctx *ctx;
    const mpl_job *job;
    const mpl_problem *q;     /* the job's, with each family as one buffer */
    uint32_t *into;           /* [the job's buffers] which of q holds it */
    uint32_t *n_uses;         /* [buffers of q] */
    uint32_t *last;           /* [buffers of q] step of its last use so far; MPL_NONE: none */
    uint32_t *id;             /* [buffers of q] of p, or MPL_NONE */
    mpl_residency_problem *p; /* NULL: counts */
} walk;

/* Whether an operation runs: a view at its root's place does not. */
static mpl_status runs(const walk *self, mpl_op op, bool *out)
{
    const mpl_graph *g = self->job->source.graph;
    const mpl_value_map *map = self->job->map;
    bool view = (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0;
    mpl_value from, to;

    *out = view || map->op_nothing == NULL || !map->op_nothing[op];
    if (!view)
        return MPL_OK;
    from = g->op_in[g->op_in_begin[op]], to = g->op_out[g->op_out_begin[op]];
    *out = map->value_root[from] != map->value_root[to] ||
           map->value_offset[from] != map->value_offset[to];
    if (*out && map->value_buffer[from] != MPL_NONE && map->value_buffer[to] != MPL_NONE)
        return MPL_REFUSE(self->ctx,
                          "residency: view '%s' has memory of its own; leave out --views off",
                          g->op_name[op]);
    return MPL_OK;
}

static void use(walk *self, mpl_value v, uint32_t step, bool writes)
{
    mpl_buffer b = v != MPL_NONE ? self->job->map->value_buffer[v] : MPL_NONE;
    mpl_residency_problem *p = self->p;
    uint32_t use_id;

    if (b == MPL_NONE || self->job->problem->pool[b] != 0)
        return;
    b = self->into[b];
    if (self->last[b] != step) {
        self->last[b] = step;
        self->n_uses[b]++;
        if (p != NULL)
            p->at[p->begin[self->id[b]] + self->n_uses[b] - 1] = step;
    }
    if (p == NULL)
        return;
    use_id = p->begin[self->id[b]] + self->n_uses[b] - 1;
    p->writes[use_id] = p->writes[use_id] || writes;
}

static mpl_status walk_steps(walk *self)
{
    const mpl_graph *g = self->job->source.graph;
    uint32_t n = self->q->n;

    memset(self->n_uses, 0, n * sizeof *self->n_uses);
    memset(self->last, 0xff, n * sizeof *self->last);
    for (uint32_t s = 0; s < g->n_ops; s++) {
        mpl_op op = self->job->order[s];
        bool does = true;

        MPL_PASS(runs(self, op, &does));
        for (uint32_t i = g->op_in_begin[op]; does && i < g->op_in_begin[op + 1]; i++)
            use(self, g->op_in[i], s, false);
        for (uint32_t i = g->op_out_begin[op]; does && i < g->op_out_begin[op + 1]; i++)
            use(self, g->op_out[i], s, true);
    }
    return MPL_OK;
}

/* The buffers that have uses, in the problem's order. */
static mpl_status make_buffers(walk *self)
{
    const mpl_problem *q = self->q;
    uint32_t n = 0, n_uses = 0;
    char text[24];

    for (mpl_buffer b = 0; b < q->n; b++) {
        self->id[b] = self->n_uses[b] > 0 ? n : MPL_NONE;
        n += self->n_uses[b] > 0;
        n_uses += self->n_uses[b];
    }
    MPL_PASS(mpl_residency_problem_new(self->ctx, q->name, n, n_uses, &self->p));
    self->p->n_steps = (uint32_t)mpl_max_u64(self->job->source.graph->n_ops, 1);
    for (mpl_buffer b = 0; b < q->n; b++) {
        uint32_t id = self->id[b];

        if (id == MPL_NONE)
            continue;
        self->p->begin[id + 1] = self->p->begin[id] + self->n_uses[b];
        self->p->bytes[id] = q->bytes[b];
        self->p->align = (uint32_t)mpl_max_u64(self->p->align, q->align[b]);
        MPL_PASS(mpl_copy_text(self->ctx, self->p->buffer_name[id], mpl_buffer_label(q, b, text)));
    }
    return MPL_OK;
}

/* What there are no such plans for. */
static mpl_status check(mpl_ctx *ctx, const mpl_job *job)
{
    const mpl_graph *g = job->source.graph;

    if (g == NULL)
        return MPL_REFUSE(ctx, "residency: %.200s is a list of buffers, which says nothing of uses",
                          job->text);
    if (g->n_blocks > 1)
        return MPL_REFUSE(ctx,
                          "residency: graph '%.200s' has loops or branches, in which a move would "
                          "run each time; unrolled (--rnn unroll) it can be planned",
                          g->name);
    if (job->problem->before != NULL || job->problem->n_in_place > 0)
        return MPL_REFUSE(ctx, "residency: needs --safety serial, --in-place off, --concat copy");
    return MPL_OK;
}

mpl_status mpl_residency_uses(mpl_ctx *ctx, const mpl_job *job, mpl_residency_problem **p,
                              uint32_t **of_buffer)
{
    mpl_status st = MPL_OK;
    walk w = {.ctx = ctx, .job = job, .q = job->problem};
    mpl_problem *hull = NULL;

    MPL_TRY(check(ctx, job));
    MPL_TRY(mpl_new_each(ctx, job->problem->n, w.into, w.n_uses, w.last, w.id));
    for (mpl_buffer b = 0; b < job->problem->n; b++)
        w.into[b] = b;
    if (job->problem->inside != NULL) {
        MPL_TRY(mpl_problem_hull(ctx, job->problem, &hull, w.into));
        w.q = hull;
    }
    MPL_TRY(walk_steps(&w));
    MPL_TRY(make_buffers(&w));
    MPL_TRY(walk_steps(&w));
    for (mpl_buffer b = 0; b < job->problem->n; b++)
        w.into[b] = w.id[w.into[b]];
    *p = w.p, w.p = NULL;
    *of_buffer = w.into, w.into = NULL;
out:
    mpl_residency_problem_free(ctx, w.p);
    mpl_problem_free(ctx, hull);
    mpl_free_each(ctx, w.into, w.n_uses, w.last, w.id);
    return st;
}
