/* list.c -- the orders of a small graph, one by one. See orders.h.
 *
 * Idea     Depth first over the ready operations. Sets from which no order stays within the allowed
 *          bytes are remembered. Let u run right before v, let them be independent and share no
 *          operand, and let u free nothing. Then v may run first, since the buffers live together
 *          then are live together with u first, too. If both free nothing, the one earlier in
 *          `start` comes first. Each such exchange lets an operation that frees run earlier, or
 *          sorts the others, so it ends at a listed order.
 * Source   this project; leaving out orders that commute: P. Godefroid, "Partial-Order Methods for
 *          the Verification of Concurrent Systems", 1996.
 * Cost     As many orders as there are; a table of dead ends, of bounded size. */
#include "graphs/orders/orders.h"

#include "graphs/orders/orders_priv.h"

enum { TABLE = 1 << 16 }; /* most sets remembered */

typedef struct level {
    uint32_t next; /* position in `start` to try next */
    uint32_t op;   /* operation run at this level */
    uint64_t live; /* before it */
    uint64_t set;  /* operations done before it */
    bool frees;    /* op frees a buffer or needs bytes for its step alone */
    bool skipped;  /* an order below was left out because it commutes */
    bool led;      /* an order below was listed */
} level;

struct mpl_order_list {
    mpl_ctx *ctx;
    mpl_order_model *m;
    mpl_order_walk walk;
    uint32_t *start, *place; /* [n] */
    level *level;            /* [n + 1] */
    uint32_t depth;
    uint64_t set;
    uint64_t *dead;      /* [TABLE] sets + 1; 0: none */
    bool first_differs;  /* which operation comes first matters */
    bool ended, waiting; /* waiting: the last call listed an order; continue after it */
};

/* Whether an operation may overwrite buffers that exist from the start. The first operation may
 * not: its result would be born at the same step as the buffer that it overwrites. */
static bool writes_over_start(const mpl_order_model *model)
{
    for (uint32_t way = 0; way < model->n_ways; way++)
        for (uint32_t i = model->under.begin[way]; i < model->under.begin[way + 1]; i++)
            if (model->from_start[model->under.item[i]])
                return true;
    return false;
}

/* Whether an input is planned. One that nothing reads lives in the first step alone; the model has
 * none of it, since it counts for whichever operation comes first. */
static bool plans_inputs(const mpl_graph *g, const mpl_problem_options *options)
{
    return options != NULL && !options->pin_inputs && g->n_inputs > 0;
}

mpl_status mpl_order_list_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                              const mpl_op *start, mpl_order_list **out)
{
    mpl_status st = MPL_OK;
    mpl_order_list *list = NULL;

    if (g->n_ops > MPL_ORDER_LIST_MOST)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "'%.100s' has %u operations, more than the %d whose orders can be listed", g->name,
                 g->n_ops, MPL_ORDER_LIST_MOST);
    MPL_TRY(mpl_new(ctx, list, 1));
    list->ctx = ctx;
    MPL_TRY(mpl_order_model_new(ctx, g, options, &list->m));
    list->first_differs = writes_over_start(list->m) || plans_inputs(g, options);
    MPL_TRY(mpl_order_walk_init(ctx, list->m, &list->walk));
    MPL_TRY(mpl_new_each(ctx, g->n_ops, list->start, list->place));
    MPL_TRY(mpl_new(ctx, list->level, (size_t)g->n_ops + 1));
    MPL_TRY(mpl_new(ctx, list->dead, TABLE));
    for (uint32_t i = 0; i < g->n_ops; i++) {
        list->start[i] = start[i];
        list->place[start[i]] = i;
    }
    *out = list, list = NULL;
out:
    mpl_order_list_free(list);
    return st;
}

void mpl_order_list_free(mpl_order_list *list)
{
    if (list == NULL)
        return;
    mpl_order_walk_fini(list->ctx, &list->walk);
    mpl_order_model_free(list->ctx, list->m);
    mpl_free(list->ctx, list->start);
    mpl_free(list->ctx, list->place);
    mpl_free(list->ctx, list->level);
    mpl_free(list->ctx, list->dead);
    mpl_free(list->ctx, list);
}

static uint64_t *slot_of(const mpl_order_list *list, uint64_t set)
{
    return &list->dead[(set * UINT64_C(0x9e3779b97f4a7c15)) >> 48];
}

static bool shares_operand(const mpl_order_model *model, uint32_t u, uint32_t v)
{
    for (uint32_t i = model->reads.begin[u]; i < model->reads.begin[u + 1]; i++)
        for (uint32_t j = model->reads.begin[v]; j < model->reads.begin[v + 1]; j++)
            if (model->reads.item[i] == model->reads.item[j])
                return true;
    return false;
}

/* Whether v frees a buffer or needs bytes for its step alone. */
static bool would_free(const mpl_order_list *list, uint32_t v)
{
    const mpl_order_model *model = list->m;
    uint64_t with = list->walk.live;

    for (uint32_t i = model->makes.begin[v]; i < model->makes.begin[v + 1]; i++)
        if (list->walk.born[model->makes.item[i]] == 0)
            with += model->bytes[model->makes.item[i]];
    return model->extra[v] > 0 || mpl_order_walk_after(&list->walk, v) < with;
}

/* Whether v may be skipped here: running v before the last operation is at least as good. */
static bool commutes(const mpl_order_list *list, uint32_t v)
{
    const mpl_order_model *model = list->m;
    const level *last = &list->level[list->depth - 1];

    if (list->depth == 0 || last->frees || (list->depth == 1 && list->first_differs))
        return false;
    for (uint32_t i = model->before.begin[v]; i < model->before.begin[v + 1]; i++)
        if (model->before.item[i] == last->op)
            return false;
    if (shares_operand(model, last->op, v))
        return false;
    return would_free(list, v) || list->place[v] < list->place[last->op];
}

static void step_down(mpl_order_list *list, uint32_t v)
{
    level *at = &list->level[list->depth];

    at->op = v;
    at->live = list->walk.live;
    at->set = list->set;
    at->frees = would_free(list, v);
    mpl_order_walk_run(&list->walk, v);
    list->set |= UINT64_C(1) << v;
    list->depth++;
    list->level[list->depth] = (level){0};
}

/* Undoes the last operation and records whether the set led to an order. */
static void step_up(mpl_order_list *list)
{
    level below = list->level[list->depth], *at = &list->level[--list->depth];

    if (!below.led && !below.skipped)
        *slot_of(list, list->set) = list->set + 1;
    at->led = at->led || below.led;
    at->skipped = at->skipped || below.skipped;
    /* The ready list is not used here: only counts are undone. */
    mpl_order_walk_undo(&list->walk, at->op, at->live, 0);
    list->set = at->set;
}

/* The next operation to run here, or MPL_NONE. */
static uint32_t next_op(mpl_order_list *list, uint64_t most)
{
    level *at = &list->level[list->depth];

    while (at->next < list->m->n) {
        uint32_t v = list->start[at->next++];
        uint64_t set = list->set | UINT64_C(1) << v;

        if (list->walk.done[v] || list->walk.waits[v] > 0 ||
            mpl_order_walk_cost(&list->walk, v) > most)
            continue;
        if (commutes(list, v)) {
            at->skipped = true;
            continue;
        }
        if (*slot_of(list, set) != set + 1)
            return v;
    }
    return MPL_NONE;
}

mpl_status mpl_order_list_next(mpl_order_list *list, uint64_t most, uint64_t budget,
                               uint64_t *ticks, mpl_op *order, bool *found, bool *ended)
{
    *found = false;
    list->walk.n_ready = 0;
    if (list->waiting) {
        list->level[list->depth].led = true;
        if (list->depth > 0)
            step_up(list);
        else
            list->ended = true;
        list->waiting = false;
    }
    while (!*found && !list->ended && *ticks < budget) {
        uint32_t v;

        list->walk.n_ready = 0; /* run() appends to it */
        ++*ticks;
        if (list->depth == list->m->n) {
            for (uint32_t i = 0; i < list->depth; i++)
                order[i] = list->m->op[list->level[i].op];
            *found = list->waiting = true;
        } else if ((v = next_op(list, most)) != MPL_NONE) {
            step_down(list, v);
        } else if (list->depth > 0) {
            step_up(list);
        } else {
            list->ended = true;
        }
    }
    *ended = list->ended;
    return MPL_OK;
}
