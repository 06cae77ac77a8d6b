/* concats.c -- decides which concats copy, and which have their operands inside their results. See
 * concats.h.
 *
 * Idea     Sharing raises the peak where a result lives longer than its operands would. Of a few
 *          concats every choice is tried. Of many, all share at first; while that raises the peak,
 *          the concat at the peak that saves least becomes a copy. In the end the copies are
 *          retried, largest first.
 * Source   this project
 * Cost     2^concats problems, or about 2 * concats of them. Of a graph so large that these would
 *          take minutes, only as many as MOST_WORK allows: what is undecided then copies. */
#include "graphs/problem/derive/concats.h"

#include "graphs/problem/alias.h"
#include "graphs/problem/bounds/bounds.h"

enum { MOST_TRIED = 12, MOST_TRIED_PARALLEL = 9 }; /* most concats to try every choice of */
/* Most operations in all problems of the greedy choice together: seconds. */
static const uint64_t MOST_WORK = UINT64_C(1) << 20;

typedef struct chooser {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_op *order;
    const mpl_problem_options *options;
    const uint8_t *sharable;
    mpl_concats *found;
    uint8_t *shared;  /* [n_ops] the current choice */
    uint64_t copying; /* bound when all of them copy [byte] */
    uint64_t work;    /* operations in the problems made so far */
    mpl_problem *p;   /* of the current choice */
    mpl_value_map *map;
} chooser;

/* Makes the problem of the current choice and the bound of pool 0. *step (may be NULL): the peak of
 * a serial one. */
static mpl_status try_choice(chooser *self, uint64_t *bound, uint32_t *step)
{
    mpl_problem_free(self->ctx, self->p), self->p = NULL;
    mpl_value_map_free(self->ctx, self->map), self->map = NULL;
    self->work += self->g->n_ops;
    MPL_PASS(mpl_problem_build(self->ctx, self->g, self->order, self->options, self->shared,
                               &self->p, &self->map));
    return self->p->before == NULL ? mpl_peak_live(self->ctx, self->p, 0, bound, NULL, step)
                                   : mpl_lower_bound(self->ctx, self->p, 0, bound, NULL);
}

static uint64_t result_bytes(const mpl_graph *g, mpl_op op)
{
    return g->value_bytes[mpl_op_output(g, op, 0)];
}

bool mpl_concat_better(const mpl_concat_choice *a, const mpl_concat_choice *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->shared_bytes != b->shared_bytes ? a->shared_bytes > b->shared_bytes : a->set < b->set;
}

/* Tries every choice of a few concats and takes the best. */
static mpl_status try_all(chooser *self)
{
    mpl_concats *found = self->found;
    uint32_t best = 0;

    MPL_PASS(mpl_new(self->ctx, found->choice, (size_t)1 << found->n));
    found->n_choices = UINT32_C(1) << found->n;
    for (uint32_t set = 0; set < found->n_choices; set++) {
        mpl_concat_choice *choice = &found->choice[set];

        choice->set = set;
        for (uint32_t i = 0; i < found->n; i++) {
            self->shared[found->op[i]] = set >> i & 1;
            choice->shared_bytes += set >> i & 1 ? result_bytes(self->g, found->op[i]) : 0;
        }
        MPL_PASS(try_choice(self, &choice->bytes, NULL));
        best = mpl_concat_better(choice, &found->choice[best]) ? set : best;
    }
    for (uint32_t i = 0; i < found->n; i++)
        found->shared[found->op[i]] = best >> i & 1;
    return MPL_OK;
}

/* Whether the bound counts a part of the result of `op`: live at `step`, or in the witness. */
static bool counts(const chooser *self, mpl_op op, uint32_t step, const uint8_t *member)
{
    mpl_value out = mpl_op_output(self->g, op, 0);
    mpl_buffer b = self->map->value_buffer[out];
    uint32_t n = self->map->value_buffers != NULL ? self->map->value_buffers[out] : 1;

    for (uint32_t k = 0; b != MPL_NONE && k < n; k++)
        if (member != NULL ? member[b + k]
                           : self->p->birth[b + k] <= step && step < self->p->death[b + k])
            return true;
    return false;
}

/* The shared concat that the bound counts and that saves least by sharing; if none is counted, any
 * shared one; MPL_NONE: none shares. */
static mpl_status least_counted(const chooser *self, uint32_t step, mpl_op *found)
{
    mpl_status st = MPL_OK;
    uint8_t *member = NULL;
    uint64_t bound;
    mpl_op any = MPL_NONE;

    *found = MPL_NONE;
    if (self->p->before != NULL) {
        MPL_TRY(mpl_new(self->ctx, member, self->p->n));
        MPL_TRY(mpl_lower_bound(self->ctx, self->p, 0, &bound, member));
    }
    for (mpl_op op = 0; op < self->g->n_ops; op++) {
        any = any == MPL_NONE && self->shared[op] ? op : any;
        if (self->shared[op] &&
            (*found == MPL_NONE || result_bytes(self->g, op) < result_bytes(self->g, *found)) &&
            counts(self, op, step, member))
            *found = op;
    }
    *found = *found == MPL_NONE ? any : *found;
out:
    mpl_free(self->ctx, member);
    return st;
}

/* The largest sharable concat that copies, with a smaller result than `after` (or an equal one and
 * a higher id); MPL_NONE: none. */
static mpl_op next_copying(const chooser *self, mpl_op after)
{
    const mpl_graph *g = self->g;
    mpl_op found = MPL_NONE;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (!self->sharable[op] || self->shared[op] ||
            (after != MPL_NONE && (result_bytes(g, op) > result_bytes(g, after) ||
                                   (result_bytes(g, op) == result_bytes(g, after) && op <= after))))
            continue;
        if (found == MPL_NONE || result_bytes(g, op) > result_bytes(g, found))
            found = op;
    }
    return found;
}

/* Retries the concats that were given up, largest first. Each shares again if the bound stays the
 * same. */
static mpl_status share_again(chooser *self)
{
    mpl_op op = MPL_NONE;
    uint64_t bound;

    while (self->work < MOST_WORK && (op = next_copying(self, op)) != MPL_NONE) {
        self->shared[op] = 1;
        MPL_PASS(try_choice(self, &bound, NULL));
        self->shared[op] = bound <= self->copying;
    }
    return MPL_OK;
}

/* Shares all at first. While that raises the peak, turns the concat at the peak that saves least
 * into a copy. */
static mpl_status give_up(chooser *self)
{
    uint64_t bound;
    uint32_t step = 0;
    mpl_op op;

    MPL_PASS(try_choice(self, &self->copying, NULL));
    memcpy(self->shared, self->sharable, self->g->n_ops);
    for (;;) {
        MPL_PASS(try_choice(self, &bound, &step));
        if (bound <= self->copying)
            break;
        if (self->work >= MOST_WORK) {
            memset(self->shared, 0, self->g->n_ops);
            break;
        }
        MPL_PASS(least_counted(self, step, &op));
        mpl_assert(op != MPL_NONE);
        self->shared[op] = 0;
    }
    MPL_PASS(share_again(self));
    memcpy(self->found->shared, self->shared, self->g->n_ops);
    return MPL_OK;
}

typedef struct fixed {
    const mpl_graph *g;
    const uint8_t *is_output; /* [n_values] */
} fixed;

static bool cannot_move(const void *arg, mpl_value root)
{
    const fixed *f = arg;

    return f->is_output[root] || f->g->value_role[root] == MPL_INPUT ||
           f->g->value_role[root] == MPL_WEIGHT;
}

/* Concats that can share under the options; *n: their number. */
static mpl_status find_sharable(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, uint8_t *sharable, uint32_t *n)
{
    mpl_status st = MPL_OK;
    mpl_alias_options o = {options->views, options->align,
                           NULL,           options->in_place && options->pin_outputs,
                           options->boxes, options->split_copied};
    mpl_alias alias = {0};
    uint8_t *is_output = NULL, *taken = NULL;

    MPL_TRY(mpl_alias_new(ctx, g, &o, &alias));
    MPL_TRY(mpl_new_each(ctx, g->n_values, is_output, taken));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        is_output[alias.root[g->output[i]]] = 1;
    *n = mpl_concat_sharable(g, &o, &alias, cannot_move, &(fixed){g, is_output}, taken, sharable);
out:
    mpl_alias_free(ctx, &alias);
    mpl_free_each(ctx, is_output, taken);
    return st;
}

static mpl_status decide(chooser *self)
{
    uint32_t most = self->options->parallel ? MOST_TRIED_PARALLEL : MOST_TRIED, n = 0;

    MPL_PASS(mpl_new(self->ctx, self->shared, self->g->n_ops));
    MPL_PASS(mpl_new(self->ctx, self->found->op, self->found->n));
    for (mpl_op op = 0; op < self->g->n_ops; op++)
        if (self->sharable[op])
            self->found->op[n++] = op;
    self->found->by = n <= most ? MPL_CONCAT_BY_BOUND : MPL_CONCAT_BY_GREEDY;
    return n <= most ? try_all(self) : give_up(self);
}

mpl_status mpl_concats_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                           const mpl_problem_options *options, mpl_concats **out)
{
    mpl_status st = MPL_OK;
    mpl_concats *found = NULL;
    uint8_t *sharable = NULL;
    chooser c = {.ctx = ctx, .g = g, .order = order, .options = options};

    MPL_TRY(mpl_graph_check_ssa(ctx, g));
    if (options->align == 0 || (options->align & (options->align - 1)) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "alignment %u is no power of two", options->align);
    MPL_TRY(mpl_new(ctx, found, 1));
    MPL_TRY(mpl_new_each(ctx, g->n_ops, sharable, found->shared));
    if (options->concat != MPL_CONCAT_COPY)
        MPL_TRY(find_sharable(ctx, g, options, sharable, &found->n));
    c.sharable = sharable;
    c.found = found;
    if (options->concat == MPL_CONCAT_AUTO && options->concat_shared != NULL) {
        for (mpl_op op = 0; op < g->n_ops; op++)
            found->shared[op] = sharable[op] ? options->concat_shared[op] : 0;
    } else if (options->concat == MPL_CONCAT_AUTO && found->n > 0) {
        MPL_TRY(decide(&c));
    } else {
        memcpy(found->shared, sharable, g->n_ops);
    }
    *out = found, found = NULL;
out:
    mpl_problem_free(ctx, c.p);
    mpl_value_map_free(ctx, c.map);
    mpl_free_each(ctx, c.shared, sharable);
    mpl_concats_free(ctx, found);
    return st;
}

void mpl_concats_free(mpl_ctx *ctx, mpl_concats *found)
{
    if (found == NULL)
        return;
    mpl_free(ctx, found->op);
    mpl_free(ctx, found->choice);
    mpl_free(ctx, found->shared);
    mpl_free(ctx, found);
}

const char *mpl_concat_by_name(mpl_concat_by by)
{
    static const char *const name[] = {"nothing", "a greedy choice", "the bounds of all choices",
                                       "exact plans of the choices"};

    return name[by];
}

mpl_status mpl_problem_from_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                  const mpl_problem_options *options, mpl_problem **problem,
                                  mpl_value_map **map)
{
    mpl_status st = MPL_OK;
    mpl_concats *concats = NULL;

    MPL_TRY(mpl_concats_new(ctx, g, order, options, &concats));
    MPL_TRY(mpl_problem_build(ctx, g, order, options, concats->n > 0 ? concats->shared : NULL,
                              problem, map));
    mpl_assert_ok(mpl_problem_ok(*problem));
out:
    mpl_concats_free(ctx, concats);
    return st;
}
