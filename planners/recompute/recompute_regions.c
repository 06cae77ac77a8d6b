/* recompute_regions.c -- the pebble game region by region, composed within the budget.
 *
 * Idea     A training graph goes down through the forward part and up again. A border encloses the
 *          end of the one and the beginning of the other; few bytes cross a good one. Nested
 *          borders make regions. Of each region, every useful pair of memory needed and memory kept
 *          while the inside runs is solved for the least work, exactly. Dynamic programming from
 *          the outermost border inwards takes a solution of each region: what the outer ones keep
 *          is not there for the inner ones. All borders between which a region is small enough are
 *          tried.
 * Source   This project; O. Beaumont and others, "Optimal checkpointing for heterogeneous chains",
 *          2019, for the composition over a chain whose members keep something or nothing.
 * Limits   What crosses a border is kept; an operation runs again only while its region runs. A
 *          region that is too large is kept whole: nothing of it runs again.
 * Cost     At most TICKS states for each distinct region. */
#include <stdlib.h>

#include "planners/recompute/recompute_priv.h"

#include "graphs/orders/work.h"

enum {
    NEAR = 3,         /* a border is the narrowest among so many neighbours on either side */
    TURNS = 12,       /* places tried for its other end */
    SPAN = 3,         /* steps from border to border that a solved region may lie across */
    FAR = 24,         /* and one of which nothing or all runs again */
    TICKS = 30000,    /* states expanded for one region */
    STATES = 1 << 13, /* of one game */
    WAYS = 512,       /* kept to reach a border */
    TRIES = 5,        /* budgets of the model */
};

typedef struct option { /* a solution of a region */
    uint64_t need, kept, work;
    uint64_t within, most_kept; /* limits for which it is the least work */
    uint32_t n, *move;          /* [n] groups of the board, owned; NULL: see again */
    uint8_t *again;             /* of the forward part: runs once more right after the gap, owned */
} option;

typedef struct part { /* a region between two borders */
    uint32_t from, to;
    mpl_board board;
    uint32_t same; /* the part that has its options: itself, or an earlier one like it */
    uint32_t n;
    size_t cap;
    option *option; /* [n] */
    uint32_t n_vain;
    size_t vain_cap;
    option *vain;  /* [n_vain] limits of games without an answer */
    uint64_t left; /* states that games may still expand */
    bool partly;   /* games ended early: some solutions are missing */
} part;

typedef struct way { /* to reach a border */
    uint64_t kept, work;
    uint32_t part, option, from; /* MPL_NONE: the first */
} way;

typedef struct ways {
    uint32_t n;
    size_t cap;
    way *way;
} ways;

typedef struct composed {
    uint32_t n;
    mpl_op *run; /* owned; NULL: none */
    uint64_t work;
    uint32_t n_regions, n_plain;
} composed;

typedef struct composer {
    mpl_ctx *ctx;
    mpl_recompute_task *task;
    mpl_stage_model m;
    mpl_game_rule rule;
    uint64_t budget, most; /* of the model; more is never needed */
    uint32_t turn;         /* first group after the forward part */
    uint32_t n_borders;
    mpl_border *border; /* [n_borders] the outermost first */
    uint32_t n_parts;
    size_t part_cap;
    part *part;
    ways *at;       /* [n_borders] */
    bool thinned;   /* ways were left out */
    uint64_t least; /* no composition does less work; 0: not known */
} composer;

/* ---- borders ---- */

/* Bytes that cross a border. */
static uint64_t width(const mpl_stage_model *model, const mpl_border *border)
{
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < model->n_lumps; v++)
        if (mpl_border_enters(model, border, v) ||
            (model->maker[v] >= border->from && mpl_border_leaves(model, border, v)))
            bytes += model->bytes[v];
    return bytes;
}

/* The narrowest border that begins at `from`, among those that end where what is made inside the
 * forward part is no longer read, or a little later. */
static uint64_t close_border(const composer *self, uint32_t from, mpl_border *out)
{
    const mpl_stage_model *model = &self->m;
    uint64_t best = UINT64_MAX;
    uint32_t first = self->turn;

    for (uint32_t v = 0; v < model->n_lumps; v++)
        if (model->maker[v] >= from && model->maker[v] < self->turn && !model->stays[v])
            first = (uint32_t)mpl_max_u64(first, model->user[model->user_begin[v + 1] - 1] + 1);
    for (uint32_t until = first; until <= model->n && until < first + TURNS; until++) {
        mpl_border b = {from, until};
        uint64_t bytes = width(model, &b);

        if (bytes <= best)
            best = bytes, *out = b;
    }
    return best;
}

static bool is_narrow(const uint64_t *bytes, uint32_t n, uint32_t i)
{
    for (uint32_t k = i > NEAR ? i - NEAR : 1; k < n && k <= i + NEAR; k++)
        if (bytes[k] < bytes[i])
            return false;
    return true;
}

static mpl_status find_borders(composer *self)
{
    mpl_status st = MPL_OK;
    const mpl_stage_model *model = &self->m;
    uint8_t *forward = NULL;
    mpl_border *all = NULL;
    uint64_t *bytes = NULL;
    uint32_t until = model->n, last = 0;

    MPL_TRY(mpl_new(self->ctx, forward, model->g->n_ops));
    MPL_TRY(mpl_find_forward(self->ctx, model->g, forward));
    for (mpl_op op = 0; op < model->g->n_ops; op++)
        if (forward[op] && model->group_of[op] != MPL_NONE)
            self->turn = model->group_of[op] + 1;
    MPL_TRY(mpl_new_each(self->ctx, (size_t)self->turn + 1, all, bytes, self->border));
    for (uint32_t i = 1; i < self->turn; i++)
        bytes[i] = close_border(self, i, &all[i]);
    self->border[self->n_borders++] = (mpl_border){0, model->n};
    for (uint32_t i = 1; i < self->turn; i++)
        if (is_narrow(bytes, self->turn, i) && all[i].until <= until &&
            (last == 0 || i - last > NEAR || bytes[i] < bytes[last])) {
            until = all[i].until, last = i;
            self->border[self->n_borders++] = all[i];
        }
    self->border[self->n_borders++] = (mpl_border){self->turn, self->turn};
out:
    mpl_free_each(self->ctx, forward, all, bytes);
    return st;
}

/* ---- the solutions of a region ---- */

static mpl_status add_option(composer *self, part *p, option o)
{
    mpl_status st = mpl_reserve(self->ctx, p->option, p->cap, (size_t)p->n + 1);

    if (st == MPL_OK)
        p->option[p->n++] = o;
    else
        mpl_free_each(self->ctx, o.move, o.again);
    return st;
}

/* The solution that is the least work within these limits, if it is known. */
static const option *known(const part *self, uint64_t within, uint64_t most_kept)
{
    for (uint32_t i = 0; i < self->n; i++) {
        const option *o = &self->option[i];

        if (o->need <= within && o->kept <= most_kept && o->within >= within &&
            o->most_kept >= most_kept)
            return o;
    }
    return NULL;
}

/* Whether no game is worth it: one with no tighter limits had no answer, or ticks ran out. */
static bool is_vain(part *self, uint64_t within, uint64_t most_kept)
{
    for (uint32_t i = 0; i < self->n_vain; i++)
        if (self->vain[i].within >= within && self->vain[i].most_kept >= most_kept)
            return true;
    self->partly = self->partly || self->left == 0;
    return self->left == 0;
}

static mpl_status note_vain(composer *self, part *p, uint64_t within, uint64_t most_kept)
{
    MPL_PASS(mpl_reserve(self->ctx, p->vain, p->vain_cap, (size_t)p->n_vain + 1));
    p->vain[p->n_vain++] = (option){.within = within, .most_kept = most_kept};
    return MPL_OK;
}

/* Bytes that every solution keeps over the gap. */
static uint64_t always_kept(const mpl_board *board)
{
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < board->n_lumps; v++) {
        uint64_t one = UINT64_C(1) << v;
        bool later = (board->stays & one) != 0 || board->users[v] >> board->gap > 1;

        if (board->maker[v] < board->gap && later && (board->fixed & ~board->passed & one) != 0)
            bytes += board->bytes[v];
    }
    return bytes;
}

/* Finds the least work within `within` for every useful limit on what is kept. */
static mpl_status sweep(composer *self, part *p, uint64_t within)
{
    mpl_game_limits limits = {self->rule, self->task->without, within, UINT64_MAX, STATES};
    uint64_t least = p->board.gap != MPL_NONE ? always_kept(&p->board) : 0;

    for (;;) {
        const option *o = known(p, within, limits.most_kept);

        if (o == NULL) {
            mpl_game_answer a;

            if (is_vain(p, within, limits.most_kept))
                return MPL_OK;
            MPL_PASS(mpl_game_play(self->ctx, &p->board, &limits, &a));
            self->task->found.ticks += a.ticks;
            p->left -= mpl_min_u64(p->left, a.ticks + 1);
            p->partly = p->partly || a.full;
            if (!a.found)
                return note_vain(self, p, within, limits.most_kept);
            MPL_PASS(add_option(
                self, p,
                (option){a.need, a.kept, a.work, within, limits.most_kept, a.n, a.move, NULL}));
            o = &p->option[p->n - 1];
        }
        if (o->kept <= least)
            return MPL_OK;
        limits.most_kept = o->kept - 1;
    }
}

/* ---- solutions of a region of any size ---- */

/* A region's forward part, its repeats if there are any, and its backward part, one after the
 * other. */
typedef struct line {
    const mpl_stage_model *model;
    mpl_region r;
    bool again;      /* what can be dropped is, and made again after the gap */
    uint8_t *repeat; /* [n] the group runs again */
    uint64_t *live;  /* [2 n + 1] differences [byte] */
} line;

static bool is_dropped(const line *self, uint32_t v)
{
    const mpl_stage_model *model = self->model;

    return self->again && !model->fixed[v] && model->maker[v] >= self->r.outer.from &&
           model->maker[v] < self->r.inner.from && model->may[model->maker[v]] &&
           model->until[model->maker[v]] >= self->r.inner.until &&
           !mpl_border_enters(model, &self->r.inner, v) &&
           !mpl_border_leaves(model, &self->r.outer, v);
}

/* Last group before `before` that reads v, or that runs again and reads it; MPL_NONE: none. */
static uint32_t last_reader(const line *self, uint32_t v, uint32_t before, bool again)
{
    const mpl_stage_model *model = self->model;
    uint32_t last = MPL_NONE;

    for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1]; i++)
        if (model->user[i] < before && (!again || self->repeat[model->user[i]]))
            last = model->user[i];
    return last;
}

/* Which groups run again so that what the backward part reads is there; their work. */
static uint64_t find_repeats(line *self)
{
    const mpl_stage_model *model = self->model;
    const mpl_region *region = &self->r;
    uint64_t work = 0;

    for (uint32_t v = model->n_lumps; v-- > 0;) { /* readers come after makers */
        uint32_t last = model->user[model->user_begin[v + 1] - 1], maker = model->maker[v];

        if (is_dropped(self, v) && !self->repeat[maker] &&
            (last >= region->inner.until ||
             last_reader(self, v, region->inner.from, true) != MPL_NONE)) {
            self->repeat[maker] = 1;
            work = mpl_add_work(work, model->work[maker]);
        }
    }
    return work;
}

/* Where a group runs on the line: once, or again. */
static uint32_t place(const line *self, uint32_t group, bool again)
{
    return again || group >= self->r.inner.until ? self->model->n + group : group;
}

static void add_life(line *self, uint32_t from, uint32_t last, uint64_t bytes)
{
    self->live[from] += bytes;
    self->live[last + 1] -= bytes;
}

/* Counts the lives of lump v; its bytes over the gap. */
static uint64_t add_lives(line *self, uint32_t v, bool enters)
{
    const mpl_stage_model *model = self->model;
    const mpl_region *region = &self->r;
    uint32_t maker = model->maker[v], last = model->user[model->user_begin[v + 1] - 1];
    uint32_t from = enters                         ? region->outer.from
                    : maker >= region->inner.until ? place(self, maker, false)
                    : maker >= region->inner.from  ? model->n + region->outer.from
                                                   : maker;
    uint32_t end = mpl_border_leaves(model, &region->outer, v) ? model->n + region->outer.until - 1
                                                               : place(self, last, false);
    uint32_t once = last_reader(self, v, region->inner.from, false);
    uint32_t again = last_reader(self, v, region->inner.from, true);

    if (is_dropped(self, v)) {
        add_life(self, from, once != MPL_NONE ? once : from, model->bytes[v]);
        if (self->repeat[maker]) {
            uint32_t until = last >= region->inner.until ? model->n + last
                             : again != MPL_NONE         ? model->n + again
                                                         : model->n + maker;
            add_life(self, model->n + maker, until, model->bytes[v]);
        }
        return 0;
    }
    if (again != MPL_NONE && end < model->n + again)
        end = model->n + again;
    add_life(self, from, end, model->bytes[v]);
    return from < region->inner.from && end >= model->n &&
                   !mpl_border_enters(model, &region->inner, v)
               ? model->bytes[v]
               : 0;
}

/* Adds the solution in which nothing of the region runs again, or, with `again`, all that can be
 * dropped is, and is made once more right after the gap. */
static mpl_status add_plain(composer *self, part *p, bool again)
{
    mpl_status st = MPL_OK;
    const mpl_stage_model *model = &self->m;
    line l = {.model = model, .r = {self->border[p->from], self->border[p->to]}, .again = again};
    uint64_t now = model->base;
    option o = {.again = NULL};

    MPL_TRY(mpl_new(self->ctx, l.repeat, model->n));
    MPL_TRY(mpl_new(self->ctx, l.live, (size_t)model->n * 2 + 1));
    o.work = find_repeats(&l);
    for (uint32_t v = 0; v < model->n_lumps && model->maker[v] < l.r.outer.until; v++) {
        bool enters = mpl_border_enters(model, &l.r.outer, v);
        bool inside = model->maker[v] >= l.r.inner.from && model->maker[v] < l.r.inner.until;

        if (enters || (model->maker[v] >= l.r.outer.from &&
                       (!inside || mpl_border_leaves(model, &l.r.inner, v))))
            o.kept += add_lives(&l, v, enters);
    }
    for (uint32_t i = 0; i < 2 * model->n; i++) {
        uint32_t group = i % model->n;
        bool runs = i < model->n
                        ? group >= l.r.outer.from && group < l.r.inner.from
                        : l.repeat[group] || (group >= l.r.inner.until && group < l.r.outer.until);

        now += l.live[i];
        if (runs)
            o.need = mpl_max_u64(o.need, now + model->inner[group]);
    }
    if (o.need <= self->most) {
        memmove(l.repeat, l.repeat + l.r.outer.from, l.r.inner.from - l.r.outer.from);
        o.again = l.repeat, l.repeat = NULL;
        MPL_TRY(add_option(self, p, o));
    }
out:
    mpl_free_each(self->ctx, l.repeat, l.live);
    return st;
}

static bool is_like(const mpl_board *a, const mpl_board *b)
{
    const size_t from = offsetof(mpl_board, gap);

    return a->n == b->n && a->n_lumps == b->n_lumps &&
           memcmp((const char *)a + from, (const char *)b + from, sizeof *a - from) == 0;
}

static mpl_status add_part(composer *self, uint32_t from, uint32_t to)
{
    const mpl_region r = {self->border[from], self->border[to]};
    part *p;

    MPL_PASS(mpl_reserve(self->ctx, self->part, self->part_cap, (size_t)self->n_parts + 1));
    p = &self->part[self->n_parts];
    *p = (part){.from = from, .to = to, .same = self->n_parts};
    self->n_parts++;
    if (to - from <= SPAN)
        mpl_board_make(&self->m, &r, &p->board);
    for (uint32_t k = 0; k + 1 < self->n_parts && p->board.n > 0; k++)
        if (is_like(&self->part[k].board, &p->board)) {
            p->same = self->part[k].same;
            return MPL_OK;
        }
    p->left = TICKS;
    p->partly = p->partly || (p->board.n == 0 && to == from + 1);
    MPL_PASS(add_plain(self, p, false));
    return add_plain(self, p, true);
}

/* ---- composition ---- */

MPL_ORDER_BY(by_kept, way,
             MPL_RISING(kept) MPL_RISING(work) MPL_RISING(part) MPL_RISING(option) MPL_RISING(from))

/* Leaves out ways that keep and do as much as another, then every other one of too many. */
static void prune(composer *self, ways *w)
{
    uint64_t work = UINT64_MAX;
    uint32_t n = 0;

    if (w->n > 0)
        qsort(w->way, w->n, sizeof *w->way, by_kept);
    for (uint32_t i = 0; i < w->n; i++)
        if (w->way[i].work < work) {
            work = w->way[i].work;
            w->way[n++] = w->way[i];
        }
    for (; n > WAYS; n = (n + 1) / 2) {
        self->thinned = true;
        for (uint32_t i = 0; 2 * i < n; i++) /* the first keeps least, the last does least */
            w->way[i] = w->way[2 * i];
    }
    w->n = n;
}

/* Goes on from every way to the part's outer border. */
static mpl_status extend(composer *self, uint32_t index, uint64_t budget)
{
    const part *p = &self->part[index];
    part *like = &self->part[p->same];
    const ways *from = &self->at[p->from];
    ways *to = &self->at[p->to];

    for (uint32_t i = 0; i < from->n; i++) {
        uint64_t kept = from->way[i].kept;

        if (kept > budget)
            break;
        if (p->board.n > 0)
            MPL_PASS(sweep(self, like, budget - kept));
        for (uint32_t k = 0; k < like->n; k++) {
            const option *o = &like->option[k];

            if (o->need > budget - kept)
                continue;
            MPL_PASS(mpl_reserve(self->ctx, to->way, to->cap, (size_t)to->n + 1));
            to->way[to->n++] =
                (way){kept + o->kept, mpl_add_work(from->way[i].work, o->work), index, k, i};
        }
    }
    prune(self, to);
    return MPL_OK;
}

/* The way of least work through all borders within the budget; NULL: there is none. */
static mpl_status compose(composer *self, uint64_t budget, const way **out)
{
    ways *last = &self->at[self->n_borders - 1];

    for (uint32_t i = 0; i < self->n_borders; i++)
        self->at[i].n = 0;
    MPL_PASS(mpl_reserve(self->ctx, self->at[0].way, self->at[0].cap, 1));
    self->at[0].way[self->at[0].n++] = (way){0, 0, MPL_NONE, 0, 0};
    for (uint32_t i = 0; i < self->n_parts; i++) /* by their inner borders */
        MPL_PASS(extend(self, i, budget));
    *out = last->n > 0 ? &last->way[last->n - 1] : NULL;
    return MPL_OK;
}

static mpl_status find_least(composer *self)
{
    uint64_t unit = self->task->options->align, low = 0, high = (self->budget + unit - 1) / unit;
    const way *w;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        MPL_PASS(compose(self, middle * unit, &w));
        if (w != NULL)
            high = middle;
        else
            low = middle + 1;
    }
    self->budget = high * unit;
    return MPL_OK;
}

/* Writes the moves of a part on one side of its gap. */
static void write_side(const composer *self, const way *w, bool after, uint32_t *n, uint32_t *move)
{
    const part *p = &self->part[w->part];
    const option *o = &self->part[p->same].option[w->option];
    const mpl_border *outer = &self->border[p->from], *inner = &self->border[p->to];
    bool behind = false, all = o->move == NULL;

    for (uint32_t i = 0; i < o->n; i++) {
        behind = behind || o->move[i] == p->board.gap;
        if (o->move[i] != p->board.gap && behind == after)
            move[(*n)++] = p->board.group[o->move[i]];
    }
    for (uint32_t i = outer->from; all && after && i < inner->from; i++)
        if (o->again[i - outer->from])
            move[(*n)++] = i;
    for (uint32_t i = after ? inner->until : outer->from;
         all && i < (after ? outer->until : inner->from); i++)
        move[(*n)++] = i;
}

static mpl_status write_run(composer *self, const way *last, composed *out)
{
    mpl_status st = MPL_OK;
    uint32_t *move = NULL, n_moves = 0, n_ways = 0;
    const way **path = NULL;
    size_t room = 0;

    MPL_TRY(mpl_new(self->ctx, path, self->n_borders));
    for (const way *w = last; w->part != MPL_NONE;
         w = &self->at[self->part[w->part].from].way[w->from]) {
        path[n_ways++] = w;
        room += self->part[self->part[w->part].same].option[w->option].n;
    }
    MPL_TRY(mpl_new(self->ctx, move, room + 2 * (size_t)self->m.n));
    for (uint32_t i = n_ways; i-- > 0;)
        write_side(self, path[i], false, &n_moves, move);
    for (uint32_t i = 0; i < n_ways; i++)
        write_side(self, path[i], true, &n_moves, move);
    out->n_regions = n_ways;
    for (uint32_t i = 0; i < n_ways; i++)
        out->n_plain +=
            self->part[self->part[path[i]->part].same].option[path[i]->option].move == NULL;
    MPL_TRY(mpl_groups_run(&self->m, n_moves, move, &out->n, &out->run));
out:
    mpl_free_each(self->ctx, path, move);
    return st;
}

/* Whether every region that was tried is solved for every useful pair, and every way was taken. */
static bool is_complete(const composer *self)
{
    bool complete = !self->thinned;

    for (uint32_t i = 0; i < self->n_parts; i++)
        complete = complete && !self->part[i].partly;
    return complete;
}

/* Composes within `budget`; keeps the run if its graph is within the task's and it does less work
 * than *best. *peak: of that graph before repeats are taken out; UINT64_MAX: no run. */
static mpl_status try_budget(composer *self, uint64_t budget, composed *best, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    const mpl_recompute_task *task = self->task;
    composed now = {.work = 0};
    mpl_rerun_facts facts;
    uint64_t thin_peak;
    const way *w;

    *peak = UINT64_MAX;
    MPL_TRY(compose(self, budget, &w));
    if (w == NULL)
        goto out;
    if (budget == self->budget && is_complete(self))
        self->least = w->work;
    MPL_TRY(write_run(self, w, &now));
    MPL_TRY(mpl_rerun_peak(self->ctx, task->g, now.n, now.run, task->options, peak, NULL));
    if (task->budget != MPL_LEAST_PEAK && *peak > task->budget)
        goto out;
    if (task->budget != MPL_LEAST_PEAK &&
        mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_thin))
        MPL_TRY(mpl_rerun_thin(self->ctx, task->g, task->options, task->budget, &now.n, now.run));
    MPL_TRY(mpl_rerun_peak(self->ctx, task->g, now.n, now.run, task->options, &thin_peak, &facts));
    now.work = facts.extra_work;
    if (best->run == NULL || now.work < best->work) {
        mpl_free(self->ctx, best->run);
        *best = now;
        now.run = NULL;
    }
out:
    mpl_free(self->ctx, now.run);
    return st;
}

static mpl_status choose(composer *self, composed *best)
{
    mpl_budget_aim aim = {
        .want = self->task->budget, .high = self->most, .budget = self->budget, .tries = TRIES};
    uint64_t peak;

    while (mpl_budget_left(&aim)) {
        MPL_PASS(try_budget(self, aim.budget, best, &peak));
        mpl_budget_next(&aim, peak);
    }
    return best->run != NULL ? MPL_OK : mpl_recompute_refuse(self->task, aim.want, false);
}

static void close(composer *self)
{
    for (uint32_t i = 0; i < self->n_parts; i++) {
        for (uint32_t k = 0; k < self->part[i].n; k++)
            mpl_free_each(self->ctx, self->part[i].option[k].move, self->part[i].option[k].again);
        mpl_free_each(self->ctx, self->part[i].option, self->part[i].vain);
    }
    for (uint32_t i = 0; i < self->n_borders && self->at != NULL; i++)
        mpl_free(self->ctx, self->at[i].way);
    mpl_free_each(self->ctx, self->border, self->part, self->at);
    mpl_stage_model_fini(&self->m);
}

mpl_status mpl_recompute_regions(mpl_recompute_task *task, mpl_game_rule rule)
{
    mpl_status st = MPL_OK;
    composer c = {.ctx = task->ctx, .task = task, .rule = rule, .budget = task->budget};
    composed best = {.run = NULL};

    MPL_TRY(mpl_stage_model_new(c.ctx, task->g, task->options, NULL, NULL, &c.m));
    c.most = 2 * (task->found.before_bytes + c.m.base);
    if (task->budget == MPL_LEAST_PEAK)
        c.budget = task->found.before_bytes + c.m.base;
    MPL_TRY(find_borders(&c));
    MPL_TRY(mpl_new(c.ctx, c.at, c.n_borders));
    for (uint32_t to = 1; to < c.n_borders; to++)
        for (uint32_t from = to > FAR ? to - FAR : 0; from < to; from++)
            MPL_TRY(add_part(&c, from, to));
    if (task->budget == MPL_LEAST_PEAK)
        MPL_TRY(find_least(&c));
    MPL_TRY(choose(&c, &best));
    task->found.claim =
        c.least > 0 && best.work == c.least ? MPL_RECOMPUTE_REGIONS : MPL_RECOMPUTE_FEASIBLE;
    task->found.n_regions = best.n_regions;
    task->found.n_plain = best.n_plain;
    task->n = best.n;
    task->run = best.run, best.run = NULL;
out:
    mpl_free(c.ctx, best.run);
    close(&c);
    return st;
}
