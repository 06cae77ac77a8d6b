/* recompute_pebble.c -- the pebble game with sizes: the exact least repeated work within a budget.
 *
 * Idea     A state is the set of operations that have run and the set of lumps in memory. A move
 *          runs an operation whose operands are in memory, with its results beside or over an
 *          operand; or drops a lump when something does not fit. Useless lumps are dropped at once.
 *          A* by the work of repeats. The heuristic is the work of the makers of dropped lumps that
 *          will still be read, and recursively of their operands. It falls by at most the cost of a
 *          move, so each state closes once.
 * Source   R. Sethi, "Complete register allocation problems", 1975, for the game; P. Hart, N.
 *          Nilsson, B. Raphael, "A Formal Basis for the Heuristic Determination of Minimum Cost
 *          Paths", 1968, for the search.
 * Cost     At most MOST_STATES states; exponential in the operations.
 * Limits   Bytes as recompute_priv.h counts them. When states run out, segments or rounding answer,
 *          with the bound of the search. */
#include "planners/recompute/recompute_priv.h"

#include "graphs/orders/work.h"

enum { MOST = 64, MOST_STATES = 1 << 20, N_SLOTS = 1 << 22 };

typedef struct state {
    uint64_t done, there;
    uint64_t work, left; /* of repeats so far; lower bound of those to come */
    uint32_t from;       /* index of the previous state; or MPL_NONE */
    uint8_t at;          /* MPL_GAME_STAGES: only repeats from this group on remain */
    uint8_t ran;         /* group of the last move; MOST: a lump was dropped */
    bool closed;
} state;

typedef struct entry { /* entry of the heap */
    uint64_t sum;
    uint32_t done; /* number of groups that have run */
    uint32_t state;
} entry;

typedef struct game {
    mpl_ctx *ctx;
    const mpl_stage_model *m;
    mpl_game_rule rule;
    uint32_t without;
    uint64_t budget;
    uint64_t reads[MOST], makes[MOST], remakes[MOST]; /* sets of lumps, by group */
    uint64_t waits[MOST];  /* set of groups whose first run must precede its own */
    uint64_t spoils[MOST]; /* set of groups that must not run again after it */
    uint64_t spoiled_by[MOST];
    uint64_t fixed, stays; /* sets of lumps */
    uint64_t users[MOST];  /* set of groups, by lump */
    uint64_t all;          /* set of groups */
    state *state;
    uint32_t n_states;
    size_t state_cap;
    entry *heap;
    size_t n_heap, heap_cap;
    uint32_t *slot; /* [N_SLOTS] states by hash; MPL_NONE */
    uint64_t least; /* sum of the last closed state */
    bool full;      /* out of states */
    uint64_t ticks; /* states expanded */
} game;

static inline uint64_t bit(uint32_t i)
{
    return UINT64_C(1) << i;
}
static inline uint32_t lowest(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set);
}

/* ---- the graph as sets ---- */

/* The group that makes v, through views; MPL_NONE: v is an input or weight. */
static uint32_t maker_of(const game *a, mpl_value v)
{
    const mpl_graph *g = a->m->g;

    while (g->value_op[v] != MPL_NONE && a->m->group_of[g->value_op[v]] == MPL_NONE)
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return g->value_op[v] == MPL_NONE ? MPL_NONE : a->m->group_of[g->value_op[v]];
}

/* A reader of a weight must not run again after the weight's update. */
static void note_updates(game *a, mpl_op op)
{
    const mpl_graph *g = a->m->g;

    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
        mpl_value weight = mpl_updated(g, op, i);

        for (mpl_op other = 0; other < g->n_ops && weight != MPL_NONE; other++)
            for (uint32_t k = g->op_in_begin[other]; k < g->op_in_begin[other + 1]; k++)
                if (a->m->group_of[other] != MPL_NONE && other != op && g->op_in[k] != MPL_NONE &&
                    mpl_shown_by(g, g->op_in[k]) == weight) {
                    a->spoils[a->m->group_of[op]] |= bit(a->m->group_of[other]);
                    a->spoiled_by[a->m->group_of[other]] |= bit(a->m->group_of[op]);
                }
    }
}

static void make_sets(game *a)
{
    const mpl_stage_model *m = a->m;
    const mpl_graph *g = m->g;

    a->all = m->n == MOST ? UINT64_MAX : bit(m->n) - 1;
    for (uint32_t v = 0; v < m->n_lumps; v++) {
        a->makes[m->maker[v]] |= bit(v);
        a->remakes[m->maker[v]] |= m->fixed[v] ? 0 : bit(v);
        a->fixed |= m->fixed[v] ? bit(v) : 0;
        a->stays |= m->stays[v] ? bit(v) : 0;
        for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1]; i++) {
            a->reads[m->user[i]] |= bit(v);
            a->users[v] |= bit(m->user[i]);
        }
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (m->group_of[op] == MPL_NONE)
            continue;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && maker_of(a, g->op_in[i]) != MPL_NONE)
                a->waits[m->group_of[op]] |= bit(maker_of(a, g->op_in[i]));
        note_updates(a, op);
    }
}

static bool may_again(const game *a, uint64_t done, uint32_t i)
{
    return a->m->may[i] && (a->spoiled_by[i] & done) == 0;
}

static uint64_t bytes_of(const game *a, uint64_t lumps)
{
    uint64_t bytes = 0;

    for (; lumps != 0; lumps &= lumps - 1)
        bytes += a->m->bytes[lowest(lumps)];
    return bytes;
}

/* The useful lumps: read by a group that has not run, or that must run again for a useful lump. */
static uint64_t of_use(const game *a, uint64_t done)
{
    uint64_t use = a->stays, readers = a->all & ~done;

    for (uint32_t v = a->m->n_lumps; v-- > 0;) { /* users come after makers */
        uint32_t maker = a->m->maker[v];

        use |= (a->users[v] & readers) != 0 ? bit(v) : 0;
        if ((use & a->remakes[maker] & bit(v)) != 0 && may_again(a, done, maker))
            readers |= bit(maker);
    }
    return use;
}

/* Lower bound of the work of repeats still needed; UINT64_MAX: no way to the end. */
static uint64_t to_come(const game *a, uint64_t done, uint64_t there)
{
    uint64_t again = 0, work = 0;

    for (uint32_t i = a->m->n; i-- > 0;) {
        if ((done & bit(i)) != 0 && (again & bit(i)) == 0)
            continue;
        if ((again & bit(i)) != 0) {
            if (!may_again(a, done, i))
                return UINT64_MAX;
            work = mpl_add_work(work, a->m->work[i]);
        }
        for (uint64_t gone = a->reads[i] & ~there; gone != 0; gone &= gone - 1)
            if ((done & bit(a->m->maker[lowest(gone)])) != 0)
                again |= bit(a->m->maker[lowest(gone)]);
    }
    return work;
}

/* ---- states by the sum ---- */

/* Less work first, then more groups done, then the earlier state. */
static bool is_before(const entry *x, const entry *y)
{
    if (x->sum != y->sum)
        return x->sum < y->sum;
    return x->done != y->done ? x->done > y->done : x->state < y->state;
}

static mpl_status push(game *a, uint32_t index)
{
    const state *s = &a->state[index];
    entry e = {s->work + s->left, (uint32_t)__builtin_popcountll(s->done), index};
    size_t i = a->n_heap;

    MPL_PASS(mpl_reserve(a->ctx, a->heap, a->heap_cap, a->n_heap + 1));
    a->n_heap++;
    for (; i > 0 && is_before(&e, &a->heap[(i - 1) / 2]); i = (i - 1) / 2)
        a->heap[i] = a->heap[(i - 1) / 2];
    a->heap[i] = e;
    return MPL_OK;
}

static entry pop(game *a)
{
    entry top = a->heap[0], e = a->heap[--a->n_heap];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < a->n_heap; i = child) {
        child += child + 1 < a->n_heap && is_before(&a->heap[child + 1], &a->heap[child]);
        if (!is_before(&a->heap[child], &e))
            break;
        a->heap[i] = a->heap[child];
    }
    a->heap[i] = e;
    return top;
}

/* The slot of a state, or the empty slot for it. */
static uint32_t *find_slot(game *a, uint64_t done, uint64_t there, uint8_t at)
{
    uint64_t key[3] = {done, there, at};
    uint64_t i = mpl_hash(MPL_HASH_SEED, key, sizeof key);

    for (;; i++) {
        uint32_t *slot = &a->slot[i % N_SLOTS];
        const state *s = *slot != MPL_NONE ? &a->state[*slot] : NULL;

        if (s == NULL || (s->done == done && s->there == there && s->at == at))
            return slot;
    }
}

/* Records a way to state next, without its useless lumps. */
static mpl_status reach(game *a, state next)
{
    uint32_t *slot;

    next.there &= of_use(a, next.done);
    slot = find_slot(a, next.done, next.there, next.at);
    if (*slot != MPL_NONE) {
        state *s = &a->state[*slot];

        if (next.work >= s->work)
            return MPL_OK;
        next.left = s->left;
        *s = next;
        return push(a, *slot);
    }
    next.left = to_come(a, next.done, next.there);
    if (next.left == UINT64_MAX)
        return MPL_OK;
    if (!mpl_recompute_uses(a->without, MPL_RECOMPUTE_RULE_estimate))
        next.left = 0;
    if (a->n_states == MOST_STATES) {
        a->full = true;
        return MPL_OK;
    }
    MPL_PASS(mpl_reserve(a->ctx, a->state, a->state_cap, (size_t)a->n_states + 1));
    a->state[a->n_states] = next;
    *slot = a->n_states++;
    return push(a, *slot);
}

/* ---- moves ---- */

/* Whether group i may run next; *again: it has run before. */
static bool may_run(const game *a, const state *s, uint32_t i, uint64_t use, bool *again)
{
    *again = (s->done & bit(i)) != 0;
    if ((a->reads[i] & ~s->there) != 0)
        return false;
    if (*again)
        return may_again(a, s->done, i) && (a->remakes[i] & use & ~s->there) != 0 &&
               (a->rule != MPL_GAME_STAGES || i >= s->at);
    return (a->waits[i] & ~s->done) == 0 &&
           (a->rule == MPL_GAME_FREE || (a->all & ~s->done & (bit(i) - 1)) == 0);
}

/* Runs group i beside its operands or over one; *tight: more room would help. */
static mpl_status run_group(game *a, uint32_t index, uint32_t i, bool again, bool *tight)
{
    const state s = a->state[index];
    uint64_t made = again ? a->remakes[i] : a->makes[i], use;
    uint64_t need = a->m->base + a->m->inner[i] + bytes_of(a, s.there | made);
    state next = {
        .done = s.done | bit(i), .there = s.there | made, .from = index, .ran = (uint8_t)i};

    next.work = mpl_add_work(s.work, again ? a->m->work[i] : 0);
    next.at = (uint8_t)(a->rule == MPL_GAME_STAGES && again ? i + 1 : 0);
    if (need <= a->budget) {
        MPL_PASS(reach(a, next));
        return MPL_OK;
    }
    *tight = true;
    use = of_use(a, next.done);
    for (uint64_t over = a->m->overwritable[i] & s.there & ~made; over != 0; over &= over - 1) {
        uint64_t v = bit(lowest(over));

        if (need - a->m->bytes[lowest(over)] > a->budget || ((a->fixed & v) != 0 && (use & v) != 0))
            continue;
        next.there = (s.there & ~v) | made;
        MPL_PASS(reach(a, next));
    }
    return MPL_OK;
}

static mpl_status expand(game *a, uint32_t index)
{
    const state s = a->state[index];
    uint64_t use = of_use(a, s.done);
    bool tight = false, again;

    for (uint32_t i = 0; i < a->m->n; i++)
        if (may_run(a, &s, i, use, &again))
            MPL_PASS(run_group(a, index, i, again, &tight));
    for (uint64_t drop = tight ? s.there & ~a->fixed : 0; drop != 0; drop &= drop - 1) {
        state next = s;

        next.there &= ~bit(lowest(drop));
        next.from = index;
        next.ran = MOST;
        next.closed = false;
        MPL_PASS(reach(a, next));
    }
    return MPL_OK;
}

/* *end: the state in which all groups have run; MPL_NONE: none, or out of states (a->full). */
static mpl_status search(game *a, uint32_t *end)
{
    *end = MPL_NONE;
    a->n_states = 0;
    a->n_heap = 0;
    a->least = 0;
    a->full = false;
    memset(a->slot, 0xff, (size_t)N_SLOTS * sizeof *a->slot);
    MPL_PASS(reach(a, (state){.from = MPL_NONE, .ran = MOST}));
    while (a->n_heap > 0 && !a->full) {
        entry e = pop(a);
        state *s = &a->state[e.state];

        if (s->closed || s->work + s->left != e.sum)
            continue;
        s->closed = true;
        a->least = e.sum;
        if (s->done == a->all) {
            *end = e.state;
            break;
        }
        a->ticks++;
        MPL_PASS(expand(a, e.state));
    }
    return MPL_OK;
}

/* ---- the answer ---- */

/* Adds the views of what `maker` made (MPL_NONE: of inputs and weights). */
static mpl_status add_views(mpl_run_list *list, const mpl_stage_model *m, mpl_op maker)
{
    const mpl_graph *g = m->g;

    for (mpl_op op = maker == MPL_NONE ? 0 : maker + 1; op < g->n_ops; op++) {
        mpl_value v =
            g->op_in_begin[op] < g->op_in_begin[op + 1] ? g->op_in[g->op_in_begin[op]] : MPL_NONE;

        if (m->group_of[op] == MPL_NONE && !list->ran[op] && g->value_op[list->root[v]] == maker)
            MPL_PASS(mpl_run_list_add(list, op));
    }
    return MPL_OK;
}

static mpl_status write_run(const game *a, uint32_t end, uint32_t *n, mpl_op **run)
{
    mpl_status st = MPL_OK;
    const mpl_stage_model *m = a->m;
    mpl_run_list list = {0};
    mpl_op op_of[MOST];
    uint32_t *path = NULL, length = 0;

    for (mpl_op op = 0; op < m->g->n_ops; op++)
        if (m->group_of[op] != MPL_NONE)
            op_of[m->group_of[op]] = op;
    MPL_TRY(mpl_run_list_init(m->ctx, m->g, m->options, &list));
    MPL_TRY(mpl_new(m->ctx, path, a->n_states));
    for (uint32_t s = end; s != MPL_NONE; s = a->state[s].from)
        if (a->state[s].ran != MOST)
            path[length++] = a->state[s].ran;
    MPL_TRY(add_views(&list, m, MPL_NONE));
    while (length > 0) {
        mpl_op op = op_of[path[--length]];
        bool first = !list.ran[op];

        MPL_TRY(mpl_run_list_add(&list, op));
        if (first)
            MPL_TRY(add_views(&list, m, op));
    }
    MPL_TRY(mpl_rerun_trim(m->ctx, m->g, &list.n, list.run));
    *n = list.n;
    *run = list.run, list.run = NULL;
out:
    mpl_run_list_fini(&list);
    mpl_free(m->ctx, path);
    return st;
}

/* The least budget, a multiple of the alignment, that has a run. */
static mpl_status find_least(game *a, uint64_t enough)
{
    uint64_t unit = a->m->options->align, low = 0, high = (enough + unit - 1) / unit;
    uint32_t end;

    while (low < high) {
        a->budget = (low + (high - low) / 2) * unit;
        MPL_PASS(search(a, &end));
        if (end != MPL_NONE)
            high = a->budget / unit;
        else if (a->full)
            return MPL_ERROR(
                a->ctx, MPL_ELIMIT,
                "graph '%s': the least peak is not found among %d states; a budget may be",
                a->m->g->name, MOST_STATES);
        else
            low = a->budget / unit + 1;
    }
    a->budget = high * unit;
    return MPL_OK;
}

static mpl_status play(game *a, mpl_recompute_task *task)
{
    mpl_status st = MPL_OK;
    mpl_recompute_found *found = &task->found;
    uint32_t end;

    MPL_TRY(mpl_new(a->ctx, a->slot, N_SLOTS));
    make_sets(a);
    a->budget = task->budget;
    if (task->budget == MPL_LEAST_PEAK)
        MPL_TRY(find_least(a, found->before_bytes + a->m->base));
    MPL_TRY(search(a, &end));
    found->has_bound = true;
    found->bound_work = a->least;
    if (end != MPL_NONE) {
        found->claim = MPL_RECOMPUTE_OPTIMAL;
        MPL_TRY(write_run(a, end, &task->n, &task->run));
    } else if (!a->full) {
        MPL_TRY(mpl_recompute_refuse(task, a->budget, true));
    } else {
        st = mpl_recompute_sqrt(task);
        MPL_TRY(st == MPL_EINPUT || st == MPL_ELIMIT
                    ? mpl_recompute_refuse(task, task->budget, false)
                    : st);
    }
out:
    return st;
}

mpl_status mpl_recompute_game(mpl_recompute_task *task, mpl_game_rule rule)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = task->ctx;
    mpl_stage_model m = {0};
    game a = {.ctx = ctx, .m = &m, .rule = rule, .without = task->without};
    uint8_t *begins = NULL;

    MPL_TRY(mpl_new(ctx, begins, task->g->n_ops));
    memset(begins, 1, task->g->n_ops);
    MPL_TRY(mpl_stage_model_new(ctx, task->g, task->options, begins, NULL, &m));
    if (m.n > MOST || m.n_lumps > MOST)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "graph '%s' has %" PRIu32 " operations and %" PRIu32
                 " values that may be kept; the pebble game takes %d of each: method round",
                 task->g->name, m.n, m.n_lumps, MOST);
    task->found.n_groups = m.n;
    st = play(&a, task);
    task->found.ticks += a.ticks;
out:
    mpl_stage_model_fini(&m);
    mpl_free_each(ctx, a.state, a.heap, a.slot, begins);
    return st;
}
