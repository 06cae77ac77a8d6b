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

enum { MOST = MPL_BOARD_MOST, MOST_STATES = 1 << 20 };

typedef struct state {
    uint64_t done, there;
    uint64_t work, left; /* of repeats so far; lower bound of those to come */
    uint64_t need;       /* of the last move [byte] */
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
    const mpl_board *board;
    const mpl_game_limits *limits;
    state *state;
    uint32_t n_states;
    size_t state_cap;
    entry *heap;
    size_t n_heap, heap_cap;
    uint32_t *slot;   /* [n_slots] states by hash; MPL_NONE */
    uint64_t n_slots; /* a power of two */
    uint64_t least;   /* sum of the last closed state */
    bool full;        /* out of states */
    uint64_t ticks;   /* states expanded */
} game;

static inline uint64_t bit(uint32_t i)
{
    return UINT64_C(1) << i;
}
static inline uint32_t lowest(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set);
}

/* ---- sets ---- */

static bool may_again(const game *self, uint64_t done, uint32_t i)
{
    return (self->board->may & bit(i)) != 0 && (self->board->spoiled_by[i] & done) == 0;
}

static uint64_t bytes_of(const game *self, uint64_t lumps)
{
    uint64_t bytes = 0;

    for (; lumps != 0; lumps &= lumps - 1)
        bytes += self->board->bytes[lowest(lumps)];
    return bytes;
}

/* The useful lumps: read by a group that has not run, or that must run again for a useful lump. */
static uint64_t of_use(const game *self, uint64_t done)
{
    uint64_t use = self->board->stays, readers = self->board->all & ~done;

    for (uint32_t v = self->board->n_lumps; v-- > 0;) { /* users come after makers */
        uint32_t maker = self->board->maker[v];

        use |= (self->board->users[v] & readers) != 0 ? bit(v) : 0;
        if ((use & self->board->remakes[maker] & bit(v)) != 0 && may_again(self, done, maker))
            readers |= bit(maker);
    }
    return use;
}

/* Lower bound of the work of repeats still needed; UINT64_MAX: no way to the end. */
static uint64_t to_come(const game *self, uint64_t done, uint64_t there)
{
    uint64_t again = 0, work = 0;

    for (uint32_t i = self->board->n; i-- > 0;) {
        if ((done & bit(i)) != 0 && (again & bit(i)) == 0)
            continue;
        if ((again & bit(i)) != 0) {
            if (!may_again(self, done, i))
                return UINT64_MAX;
            work = mpl_add_work(work, self->board->work[i]);
        }
        for (uint64_t gone = self->board->reads[i] & ~there; gone != 0; gone &= gone - 1)
            if ((done & bit(self->board->maker[lowest(gone)])) != 0)
                again |= bit(self->board->maker[lowest(gone)]);
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

static mpl_status push(game *self, uint32_t index)
{
    const state *s = &self->state[index];
    entry e = {s->work + s->left, (uint32_t)__builtin_popcountll(s->done), index};
    size_t i = self->n_heap;

    MPL_PASS(mpl_reserve(self->ctx, self->heap, self->heap_cap, self->n_heap + 1));
    self->n_heap++;
    for (; i > 0 && is_before(&e, &self->heap[(i - 1) / 2]); i = (i - 1) / 2)
        self->heap[i] = self->heap[(i - 1) / 2];
    self->heap[i] = e;
    return MPL_OK;
}

static entry pop(game *self)
{
    entry top = self->heap[0], e = self->heap[--self->n_heap];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < self->n_heap; i = child) {
        child += child + 1 < self->n_heap && is_before(&self->heap[child + 1], &self->heap[child]);
        if (!is_before(&self->heap[child], &e))
            break;
        self->heap[i] = self->heap[child];
    }
    self->heap[i] = e;
    return top;
}

/* The slot of a state, or the empty slot for it. */
static uint32_t *find_slot(game *self, uint64_t done, uint64_t there, uint8_t at)
{
    uint64_t key[3] = {done, there, at};
    uint64_t i = mpl_hash(MPL_HASH_SEED, key, sizeof key);

    for (;; i++) {
        uint32_t *slot = &self->slot[i % self->n_slots];
        const state *s = *slot != MPL_NONE ? &self->state[*slot] : NULL;

        if (s == NULL || (s->done == done && s->there == there && s->at == at))
            return slot;
    }
}

/* Records a way to state next, without its useless lumps. */
static mpl_status reach(game *self, state next)
{
    uint32_t *slot;

    next.there &= of_use(self, next.done);
    slot = find_slot(self, next.done, next.there, next.at);
    if (*slot != MPL_NONE) {
        state *s = &self->state[*slot];

        if (next.work >= s->work)
            return MPL_OK;
        next.left = s->left;
        *s = next;
        return push(self, *slot);
    }
    next.left = to_come(self, next.done, next.there);
    if (next.left == UINT64_MAX)
        return MPL_OK;
    if (!mpl_recompute_uses(self->limits->without, MPL_RECOMPUTE_RULE_estimate))
        next.left = 0;
    if (self->n_states == self->limits->most_states) {
        self->full = true;
        return MPL_OK;
    }
    MPL_PASS(mpl_reserve(self->ctx, self->state, self->state_cap, (size_t)self->n_states + 1));
    self->state[self->n_states] = next;
    *slot = self->n_states++;
    return push(self, *slot);
}

/* ---- moves ---- */

/* Whether group i may run next; *again: it has run before. */
static bool may_run(const game *self, const state *s, uint32_t i, uint64_t use, bool *again)
{
    *again = (s->done & bit(i)) != 0;
    if ((self->board->reads[i] & ~s->there) != 0)
        return false;
    if (*again)
        return may_again(self, s->done, i) && (self->board->remakes[i] & use & ~s->there) != 0 &&
               (self->limits->rule != MPL_GAME_STAGES || i >= s->at);
    return (self->board->waits[i] & ~s->done) == 0 &&
           (self->limits->rule == MPL_GAME_FREE ||
            (self->board->all & ~s->done & (bit(i) - 1)) == 0);
}

/* Whether the gap has run: then `kept` is what it found there and others do not count. */
static uint64_t kept_at(const game *self, uint64_t done, uint64_t there)
{
    return bytes_of(self, there & of_use(self, done) & ~self->board->passed);
}

/* Runs group i beside its operands or over one; *tight: more room would help. */
static mpl_status run_group(game *self, uint32_t index, uint32_t i, bool again, bool *tight)
{
    const mpl_board *board = self->board;
    const state s = self->state[index];
    uint64_t made = again ? board->remakes[i] : board->makes[i], use;
    state next = {
        .done = s.done | bit(i), .there = s.there | made, .from = index, .ran = (uint8_t)i};

    next.work = mpl_add_work(s.work, again ? board->work[i] : 0);
    next.at = (uint8_t)(self->limits->rule == MPL_GAME_STAGES && again ? i + 1 : 0);
    if (i == board->gap) { /* others see to their own memory */
        *tight = *tight || kept_at(self, next.done, next.there) > self->limits->most_kept;
        if (kept_at(self, next.done, next.there) <= self->limits->most_kept)
            MPL_PASS(reach(self, next));
        return MPL_OK;
    }
    next.need = board->base[mpl_after_gap(board, s.done)] + board->inner[i] +
                bytes_of(self, s.there | made);
    if (next.need <= self->limits->budget)
        return reach(self, next);
    *tight = true;
    use = of_use(self, next.done);
    for (uint64_t over = board->overwritable[i] & s.there & ~made; over != 0; over &= over - 1) {
        uint64_t v = bit(lowest(over)), need = next.need;
        state into = next;

        into.need -= board->bytes[lowest(over)];
        if (into.need > self->limits->budget || ((board->fixed & v) != 0 && (use & v) != 0))
            continue;
        mpl_assert(need > into.need);
        into.there = (s.there & ~v) | made;
        MPL_PASS(reach(self, into));
    }
    return MPL_OK;
}

static mpl_status expand(game *self, uint32_t index)
{
    const state s = self->state[index];
    uint64_t use = of_use(self, s.done);
    bool tight = false, again;

    for (uint32_t i = 0; i < self->board->n; i++)
        if (may_run(self, &s, i, use, &again))
            MPL_PASS(run_group(self, index, i, again, &tight));
    for (uint64_t drop = tight ? s.there & ~self->board->fixed : 0; drop != 0; drop &= drop - 1) {
        state next = s;

        next.there &= ~bit(lowest(drop));
        next.from = index;
        next.ran = MOST;
        next.need = 0;
        next.closed = false;
        MPL_PASS(reach(self, next));
    }
    return MPL_OK;
}

/* *end: the state in which all groups have run; MPL_NONE: none, or out of states (a->full). */
static mpl_status search(game *self, uint32_t *end)
{
    *end = MPL_NONE;
    memset(self->slot, 0xff, self->n_slots * sizeof *self->slot);
    MPL_PASS(reach(self, (state){.done = self->board->done,
                                 .there = self->board->there,
                                 .from = MPL_NONE,
                                 .ran = MOST}));
    while (self->n_heap > 0 && !self->full) {
        entry e = pop(self);
        state *s = &self->state[e.state];

        if (s->closed || s->work + s->left != e.sum)
            continue;
        s->closed = true;
        self->least = e.sum;
        if (s->done == self->board->all) {
            *end = e.state;
            break;
        }
        self->ticks++;
        MPL_PASS(expand(self, e.state));
    }
    return MPL_OK;
}

/* ---- the answer ---- */

/* The moves that led to `end`, and what they need. */
static mpl_status take_moves(const game *self, uint32_t end, mpl_game_answer *out)
{
    uint32_t n = 0;

    out->need = out->kept = 0;
    for (uint32_t s = end; s != MPL_NONE; s = self->state[s].from) {
        n += self->state[s].ran != MOST;
        out->need = mpl_max_u64(out->need, self->state[s].need);
        if (self->state[s].ran == self->board->gap)
            out->kept = kept_at(self, self->state[s].done, self->state[s].there);
    }
    MPL_PASS(mpl_new(self->ctx, out->move, n));
    out->n = n;
    for (uint32_t s = end; s != MPL_NONE; s = self->state[s].from)
        if (self->state[s].ran != MOST)
            out->move[--n] = self->state[s].ran;
    return MPL_OK;
}

mpl_status mpl_game_play(mpl_ctx *ctx, const mpl_board *board, const mpl_game_limits *limits,
                         mpl_game_answer *out)
{
    mpl_status st = MPL_OK;
    game a = {.ctx = ctx, .board = board, .limits = limits, .n_slots = 4};
    uint32_t end;

    while (a.n_slots < (uint64_t)limits->most_states * 4)
        a.n_slots *= 2;
    *out = (mpl_game_answer){0};
    MPL_TRY(mpl_new(ctx, a.slot, a.n_slots));
    MPL_TRY(search(&a, &end));
    out->full = a.full;
    out->least = a.least;
    out->ticks = a.ticks;
    out->found = end != MPL_NONE;
    if (out->found) {
        out->work = a.state[end].work;
        MPL_TRY(take_moves(&a, end, out));
    }
out:
    mpl_free_each(ctx, a.state, a.heap, a.slot);
    return st;
}

/* ---- runs ---- */

/* Adds the views of what `maker` made (MPL_NONE: of inputs and weights). */
static mpl_status add_views(mpl_run_list *list, const mpl_stage_model *model, mpl_op maker)
{
    const mpl_graph *g = model->g;

    for (mpl_op op = maker == MPL_NONE ? 0 : maker + 1; op < g->n_ops; op++) {
        mpl_value v =
            g->op_in_begin[op] < g->op_in_begin[op + 1] ? g->op_in[g->op_in_begin[op]] : MPL_NONE;

        if (model->group_of[op] == MPL_NONE && g->op_block[op] == 0 && !list->ran[op] &&
            g->value_op[list->root[v]] == maker)
            MPL_PASS(mpl_run_list_add(list, op));
    }
    return MPL_OK;
}

mpl_status mpl_groups_run(const mpl_stage_model *model, uint32_t n_moves, const uint32_t *move,
                          uint32_t *n, mpl_op **run)
{
    mpl_status st = MPL_OK;
    mpl_run_list list = {0};
    mpl_op *op_of = NULL;

    MPL_TRY(mpl_new(model->ctx, op_of, model->n));
    for (mpl_op op = 0; op < model->g->n_ops; op++)
        if (model->group_of[op] != MPL_NONE)
            op_of[model->group_of[op]] = op;
    MPL_TRY(mpl_run_list_init(model->ctx, model->g, model->options, &list));
    MPL_TRY(add_views(&list, model, MPL_NONE));
    for (uint32_t i = 0; i < n_moves; i++) {
        mpl_op op = op_of[move[i]];
        bool first = !list.ran[op];

        MPL_TRY(mpl_run_list_add(&list, op));
        if (first)
            MPL_TRY(add_views(&list, model, op));
    }
    MPL_TRY(mpl_rerun_trim(model->ctx, model->g, &list.n, list.run));
    *n = list.n;
    *run = list.run, list.run = NULL;
out:
    mpl_run_list_fini(&list);
    mpl_free(model->ctx, op_of);
    return st;
}

/* ---- a whole graph ---- */

typedef struct whole {
    mpl_recompute_task *task;
    const mpl_stage_model *model;
    const mpl_board *board;
    mpl_game_limits limits;
    mpl_game_answer answer; /* its moves owned */
} whole;

static mpl_status ask(whole *self)
{
    mpl_free(self->model->ctx, self->answer.move);
    MPL_PASS(mpl_game_play(self->model->ctx, self->board, &self->limits, &self->answer));
    self->task->found.ticks += self->answer.ticks;
    return MPL_OK;
}

/* The least budget, a multiple of the alignment, that has a run. */
static mpl_status find_least(whole *self, uint64_t enough)
{
    uint64_t unit = self->model->options->align, low = 0, high = (enough + unit - 1) / unit;

    while (low < high) {
        self->limits.budget = (low + (high - low) / 2) * unit;
        MPL_PASS(ask(self));
        if (self->answer.found)
            high = self->limits.budget / unit;
        else if (self->answer.full)
            return MPL_ERROR(
                self->model->ctx, MPL_ELIMIT,
                "graph '%s': the least peak is not found among %d states; a budget may be",
                self->model->g->name, MOST_STATES);
        else
            low = self->limits.budget / unit + 1;
    }
    self->limits.budget = high * unit;
    return MPL_OK;
}

static mpl_status play_whole(whole *self)
{
    mpl_status st = MPL_OK;
    mpl_recompute_task *task = self->task;
    mpl_recompute_found *found = &task->found;

    if (task->budget == MPL_LEAST_PEAK)
        MPL_TRY(find_least(self, found->before_bytes + self->model->base));
    MPL_TRY(ask(self));
    found->has_bound = true;
    found->bound_work = self->answer.least;
    if (self->answer.found) {
        found->claim = MPL_RECOMPUTE_OPTIMAL;
        MPL_TRY(
            mpl_groups_run(self->model, self->answer.n, self->answer.move, &task->n, &task->run));
    } else if (!self->answer.full) {
        MPL_TRY(mpl_recompute_refuse(task, self->limits.budget, true));
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
    mpl_board board;
    whole w = {.task = task,
               .model = &m,
               .board = &board,
               .limits = {rule, task->without, task->budget, UINT64_MAX, MOST_STATES}};
    mpl_region all = {{0, 0}, {0, 0}};

    MPL_TRY(mpl_stage_model_new(ctx, task->g, task->options, NULL, NULL, &m));
    all.outer.until = all.inner.from = all.inner.until = m.n;
    mpl_board_make(&m, &all, &board);
    if (board.n == 0)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "graph '%s' has %" PRIu32 " operations and %" PRIu32
                 " values that may be kept; the pebble game takes %d of each: method round",
                 task->g->name, m.n, m.n_lumps, MOST);
    task->found.n_groups = m.n;
    MPL_TRY(play_whole(&w));
out:
    mpl_free(ctx, w.answer.move);
    mpl_stage_model_fini(&m);
    return st;
}
