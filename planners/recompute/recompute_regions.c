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
static uint64_t width(const mpl_stage_model *m, const mpl_border *b)
{
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < m->n_lumps; v++)
        if (mpl_border_enters(m, b, v) || (m->maker[v] >= b->from && mpl_border_leaves(m, b, v)))
            bytes += m->bytes[v];
    return bytes;
}

/* The narrowest border that begins at `from`, among those that end where what is made inside the
 * forward part is no longer read, or a little later. */
static uint64_t close_border(const composer *c, uint32_t from, mpl_border *out)
{
    const mpl_stage_model *m = &c->m;
    uint64_t best = UINT64_MAX;
    uint32_t first = c->turn;

    for (uint32_t v = 0; v < m->n_lumps; v++)
        if (m->maker[v] >= from && m->maker[v] < c->turn && !m->stays[v])
            first = (uint32_t)mpl_max_u64(first, m->user[m->user_begin[v + 1] - 1] + 1);
    for (uint32_t until = first; until <= m->n && until < first + TURNS; until++) {
        mpl_border b = {from, until};
        uint64_t bytes = width(m, &b);

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

static mpl_status find_borders(composer *c)
{
    mpl_status st = MPL_OK;
    const mpl_stage_model *m = &c->m;
    uint8_t *forward = NULL;
    mpl_border *all = NULL;
    uint64_t *bytes = NULL;
    uint32_t until = m->n, last = 0;

    MPL_TRY(mpl_new(c->ctx, forward, m->g->n_ops));
    MPL_TRY(mpl_find_forward(c->ctx, m->g, forward));
    for (mpl_op op = 0; op < m->g->n_ops; op++)
        if (forward[op] && m->group_of[op] != MPL_NONE)
            c->turn = m->group_of[op] + 1;
    MPL_TRY(mpl_new_each(c->ctx, (size_t)c->turn + 1, all, bytes, c->border));
    for (uint32_t i = 1; i < c->turn; i++)
        bytes[i] = close_border(c, i, &all[i]);
    c->border[c->n_borders++] = (mpl_border){0, m->n};
    for (uint32_t i = 1; i < c->turn; i++)
        if (is_narrow(bytes, c->turn, i) && all[i].until <= until &&
            (last == 0 || i - last > NEAR || bytes[i] < bytes[last])) {
            until = all[i].until, last = i;
            c->border[c->n_borders++] = all[i];
        }
    c->border[c->n_borders++] = (mpl_border){c->turn, c->turn};
out:
    mpl_free_each(c->ctx, forward, all, bytes);
    return st;
}

/* ---- the solutions of a region ---- */

static mpl_status add_option(composer *c, part *p, option o)
{
    mpl_status st = mpl_reserve(c->ctx, p->option, p->cap, (size_t)p->n + 1);

    if (st == MPL_OK)
        p->option[p->n++] = o;
    else
        mpl_free_each(c->ctx, o.move, o.again);
    return st;
}

/* The solution that is the least work within these limits, if it is known. */
static const option *known(const part *p, uint64_t within, uint64_t most_kept)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const option *o = &p->option[i];

        if (o->need <= within && o->kept <= most_kept && o->within >= within &&
            o->most_kept >= most_kept)
            return o;
    }
    return NULL;
}

/* Whether no game is worth it: one with no tighter limits had no answer, or ticks ran out. */
static bool is_vain(part *p, uint64_t within, uint64_t most_kept)
{
    for (uint32_t i = 0; i < p->n_vain; i++)
        if (p->vain[i].within >= within && p->vain[i].most_kept >= most_kept)
            return true;
    p->partly = p->partly || p->left == 0;
    return p->left == 0;
}

static mpl_status note_vain(composer *c, part *p, uint64_t within, uint64_t most_kept)
{
    MPL_PASS(mpl_reserve(c->ctx, p->vain, p->vain_cap, (size_t)p->n_vain + 1));
    p->vain[p->n_vain++] = (option){.within = within, .most_kept = most_kept};
    return MPL_OK;
}

/* Bytes that every solution keeps over the gap. */
static uint64_t always_kept(const mpl_board *b)
{
    uint64_t bytes = 0;

    for (uint32_t v = 0; v < b->n_lumps; v++) {
        uint64_t one = UINT64_C(1) << v;
        bool later = (b->stays & one) != 0 || b->users[v] >> b->gap > 1;

        if (b->maker[v] < b->gap && later && (b->fixed & ~b->passed & one) != 0)
            bytes += b->bytes[v];
    }
    return bytes;
}

/* Finds the least work within `within` for every useful limit on what is kept. */
static mpl_status sweep(composer *c, part *p, uint64_t within)
{
    mpl_game_limits limits = {c->rule, c->task->without, within, UINT64_MAX, STATES};
    uint64_t least = p->board.gap != MPL_NONE ? always_kept(&p->board) : 0;

    for (;;) {
        const option *o = known(p, within, limits.most_kept);

        if (o == NULL) {
            mpl_game_answer a;

            if (is_vain(p, within, limits.most_kept))
                return MPL_OK;
            MPL_PASS(mpl_game_play(c->ctx, &p->board, &limits, &a));
            c->task->found.ticks += a.ticks;
            p->left -= mpl_min_u64(p->left, a.ticks + 1);
            p->partly = p->partly || a.full;
            if (!a.found)
                return note_vain(c, p, within, limits.most_kept);
            MPL_PASS(add_option(
                c, p,
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
    const mpl_stage_model *m;
    mpl_region r;
    bool again;      /* what can be dropped is, and made again after the gap */
    uint8_t *repeat; /* [n] the group runs again */
    uint64_t *live;  /* [2 n + 1] differences [byte] */
} line;

static bool is_dropped(const line *l, uint32_t v)
{
    const mpl_stage_model *m = l->m;

    return l->again && !m->fixed[v] && m->maker[v] >= l->r.outer.from &&
           m->maker[v] < l->r.inner.from && m->may[m->maker[v]] &&
           m->until[m->maker[v]] >= l->r.inner.until && !mpl_border_enters(m, &l->r.inner, v) &&
           !mpl_border_leaves(m, &l->r.outer, v);
}

/* Last group before `before` that reads v, or that runs again and reads it; MPL_NONE: none. */
static uint32_t last_reader(const line *l, uint32_t v, uint32_t before, bool again)
{
    const mpl_stage_model *m = l->m;
    uint32_t last = MPL_NONE;

    for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1]; i++)
        if (m->user[i] < before && (!again || l->repeat[m->user[i]]))
            last = m->user[i];
    return last;
}

/* Which groups run again so that what the backward part reads is there; their work. */
static uint64_t find_repeats(line *l)
{
    const mpl_stage_model *m = l->m;
    const mpl_region *r = &l->r;
    uint64_t work = 0;

    for (uint32_t v = m->n_lumps; v-- > 0;) { /* readers come after makers */
        uint32_t last = m->user[m->user_begin[v + 1] - 1], maker = m->maker[v];

        if (is_dropped(l, v) && !l->repeat[maker] &&
            (last >= r->inner.until || last_reader(l, v, r->inner.from, true) != MPL_NONE)) {
            l->repeat[maker] = 1;
            work = mpl_add_work(work, m->work[maker]);
        }
    }
    return work;
}

/* Where a group runs on the line: once, or again. */
static uint32_t place(const line *l, uint32_t group, bool again)
{
    return again || group >= l->r.inner.until ? l->m->n + group : group;
}

static void add_life(line *l, uint32_t from, uint32_t last, uint64_t bytes)
{
    l->live[from] += bytes;
    l->live[last + 1] -= bytes;
}

/* Counts the lives of lump v; its bytes over the gap. */
static uint64_t add_lives(line *l, uint32_t v, bool enters)
{
    const mpl_stage_model *m = l->m;
    const mpl_region *r = &l->r;
    uint32_t maker = m->maker[v], last = m->user[m->user_begin[v + 1] - 1];
    uint32_t from = enters                    ? r->outer.from
                    : maker >= r->inner.until ? place(l, maker, false)
                    : maker >= r->inner.from  ? m->n + r->outer.from
                                              : maker;
    uint32_t end =
        mpl_border_leaves(m, &r->outer, v) ? m->n + r->outer.until - 1 : place(l, last, false);
    uint32_t once = last_reader(l, v, r->inner.from, false);
    uint32_t again = last_reader(l, v, r->inner.from, true);

    if (is_dropped(l, v)) {
        add_life(l, from, once != MPL_NONE ? once : from, m->bytes[v]);
        if (l->repeat[maker]) {
            uint32_t until = last >= r->inner.until ? m->n + last
                             : again != MPL_NONE    ? m->n + again
                                                    : m->n + maker;
            add_life(l, m->n + maker, until, m->bytes[v]);
        }
        return 0;
    }
    if (again != MPL_NONE && end < m->n + again)
        end = m->n + again;
    add_life(l, from, end, m->bytes[v]);
    return from < r->inner.from && end >= m->n && !mpl_border_enters(m, &r->inner, v) ? m->bytes[v]
                                                                                      : 0;
}

/* Adds the solution in which nothing of the region runs again, or, with `again`, all that can be
 * dropped is, and is made once more right after the gap. */
static mpl_status add_plain(composer *c, part *p, bool again)
{
    mpl_status st = MPL_OK;
    const mpl_stage_model *m = &c->m;
    line l = {.m = m, .r = {c->border[p->from], c->border[p->to]}, .again = again};
    uint64_t now = m->base;
    option o = {.again = NULL};

    MPL_TRY(mpl_new(c->ctx, l.repeat, m->n));
    MPL_TRY(mpl_new(c->ctx, l.live, (size_t)m->n * 2 + 1));
    o.work = find_repeats(&l);
    for (uint32_t v = 0; v < m->n_lumps && m->maker[v] < l.r.outer.until; v++) {
        bool enters = mpl_border_enters(m, &l.r.outer, v);
        bool inside = m->maker[v] >= l.r.inner.from && m->maker[v] < l.r.inner.until;

        if (enters ||
            (m->maker[v] >= l.r.outer.from && (!inside || mpl_border_leaves(m, &l.r.inner, v))))
            o.kept += add_lives(&l, v, enters);
    }
    for (uint32_t i = 0; i < 2 * m->n; i++) {
        uint32_t group = i % m->n;
        bool runs = i < m->n
                        ? group >= l.r.outer.from && group < l.r.inner.from
                        : l.repeat[group] || (group >= l.r.inner.until && group < l.r.outer.until);

        now += l.live[i];
        if (runs)
            o.need = mpl_max_u64(o.need, now + m->inner[group]);
    }
    if (o.need <= c->most) {
        memmove(l.repeat, l.repeat + l.r.outer.from, l.r.inner.from - l.r.outer.from);
        o.again = l.repeat, l.repeat = NULL;
        MPL_TRY(add_option(c, p, o));
    }
out:
    mpl_free_each(c->ctx, l.repeat, l.live);
    return st;
}

static bool is_like(const mpl_board *a, const mpl_board *b)
{
    const size_t from = offsetof(mpl_board, gap);

    return a->n == b->n && a->n_lumps == b->n_lumps &&
           memcmp((const char *)a + from, (const char *)b + from, sizeof *a - from) == 0;
}

static mpl_status add_part(composer *c, uint32_t from, uint32_t to)
{
    const mpl_region r = {c->border[from], c->border[to]};
    part *p;

    MPL_PASS(mpl_reserve(c->ctx, c->part, c->part_cap, (size_t)c->n_parts + 1));
    p = &c->part[c->n_parts];
    *p = (part){.from = from, .to = to, .same = c->n_parts};
    c->n_parts++;
    if (to - from <= SPAN)
        mpl_board_make(&c->m, &r, &p->board);
    for (uint32_t k = 0; k + 1 < c->n_parts && p->board.n > 0; k++)
        if (is_like(&c->part[k].board, &p->board)) {
            p->same = c->part[k].same;
            return MPL_OK;
        }
    p->left = TICKS;
    p->partly = p->partly || (p->board.n == 0 && to == from + 1);
    MPL_PASS(add_plain(c, p, false));
    return add_plain(c, p, true);
}

/* ---- composition ---- */

MPL_ORDER_BY(by_kept, way,
             MPL_RISING(kept) MPL_RISING(work) MPL_RISING(part) MPL_RISING(option) MPL_RISING(from))

/* Leaves out ways that keep and do as much as another, then every other one of too many. */
static void prune(composer *c, ways *w)
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
        c->thinned = true;
        for (uint32_t i = 0; 2 * i < n; i++) /* the first keeps least, the last does least */
            w->way[i] = w->way[2 * i];
    }
    w->n = n;
}

/* Goes on from every way to the part's outer border. */
static mpl_status extend(composer *c, uint32_t index, uint64_t budget)
{
    const part *p = &c->part[index];
    part *like = &c->part[p->same];
    const ways *from = &c->at[p->from];
    ways *to = &c->at[p->to];

    for (uint32_t i = 0; i < from->n; i++) {
        uint64_t kept = from->way[i].kept;

        if (kept > budget)
            break;
        if (p->board.n > 0)
            MPL_PASS(sweep(c, like, budget - kept));
        for (uint32_t k = 0; k < like->n; k++) {
            const option *o = &like->option[k];

            if (o->need > budget - kept)
                continue;
            MPL_PASS(mpl_reserve(c->ctx, to->way, to->cap, (size_t)to->n + 1));
            to->way[to->n++] =
                (way){kept + o->kept, mpl_add_work(from->way[i].work, o->work), index, k, i};
        }
    }
    prune(c, to);
    return MPL_OK;
}

/* The way of least work through all borders within the budget; NULL: there is none. */
static mpl_status compose(composer *c, uint64_t budget, const way **out)
{
    ways *last = &c->at[c->n_borders - 1];

    for (uint32_t i = 0; i < c->n_borders; i++)
        c->at[i].n = 0;
    MPL_PASS(mpl_reserve(c->ctx, c->at[0].way, c->at[0].cap, 1));
    c->at[0].way[c->at[0].n++] = (way){0, 0, MPL_NONE, 0, 0};
    for (uint32_t i = 0; i < c->n_parts; i++) /* by their inner borders */
        MPL_PASS(extend(c, i, budget));
    *out = last->n > 0 ? &last->way[last->n - 1] : NULL;
    return MPL_OK;
}

static mpl_status find_least(composer *c)
{
    uint64_t unit = c->task->options->align, low = 0, high = (c->budget + unit - 1) / unit;
    const way *w;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        MPL_PASS(compose(c, middle * unit, &w));
        if (w != NULL)
            high = middle;
        else
            low = middle + 1;
    }
    c->budget = high * unit;
    return MPL_OK;
}

/* Writes the moves of a part on one side of its gap. */
static void write_side(const composer *c, const way *w, bool after, uint32_t *n, uint32_t *move)
{
    const part *p = &c->part[w->part];
    const option *o = &c->part[p->same].option[w->option];
    const mpl_border *outer = &c->border[p->from], *inner = &c->border[p->to];
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

static mpl_status write_run(composer *c, const way *last, composed *out)
{
    mpl_status st = MPL_OK;
    uint32_t *move = NULL, n_moves = 0, n_ways = 0;
    const way **path = NULL;
    size_t room = 0;

    MPL_TRY(mpl_new(c->ctx, path, c->n_borders));
    for (const way *w = last; w->part != MPL_NONE; w = &c->at[c->part[w->part].from].way[w->from]) {
        path[n_ways++] = w;
        room += c->part[c->part[w->part].same].option[w->option].n;
    }
    MPL_TRY(mpl_new(c->ctx, move, room + 2 * (size_t)c->m.n));
    for (uint32_t i = n_ways; i-- > 0;)
        write_side(c, path[i], false, &n_moves, move);
    for (uint32_t i = 0; i < n_ways; i++)
        write_side(c, path[i], true, &n_moves, move);
    out->n_regions = n_ways;
    for (uint32_t i = 0; i < n_ways; i++)
        out->n_plain += c->part[c->part[path[i]->part].same].option[path[i]->option].move == NULL;
    MPL_TRY(mpl_groups_run(&c->m, n_moves, move, &out->n, &out->run));
out:
    mpl_free_each(c->ctx, path, move);
    return st;
}

/* Whether every region that was tried is solved for every useful pair, and every way was taken. */
static bool is_complete(const composer *c)
{
    bool complete = !c->thinned;

    for (uint32_t i = 0; i < c->n_parts; i++)
        complete = complete && !c->part[i].partly;
    return complete;
}

/* Composes within `budget`; keeps the run if its graph is within the task's and it does less work
 * than *best. *peak: of that graph before repeats are taken out; UINT64_MAX: no run. */
static mpl_status try_budget(composer *c, uint64_t budget, composed *best, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    const mpl_recompute_task *task = c->task;
    composed now = {.work = 0};
    mpl_rerun_facts facts;
    uint64_t thin_peak;
    const way *w;

    *peak = UINT64_MAX;
    MPL_TRY(compose(c, budget, &w));
    if (w == NULL)
        goto out;
    if (budget == c->budget && is_complete(c))
        c->least = w->work;
    MPL_TRY(write_run(c, w, &now));
    MPL_TRY(mpl_rerun_peak(c->ctx, task->g, now.n, now.run, task->options, peak, NULL));
    if (task->budget != MPL_LEAST_PEAK && *peak > task->budget)
        goto out;
    if (task->budget != MPL_LEAST_PEAK &&
        mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_thin))
        MPL_TRY(mpl_rerun_thin(c->ctx, task->g, task->options, task->budget, &now.n, now.run));
    MPL_TRY(mpl_rerun_peak(c->ctx, task->g, now.n, now.run, task->options, &thin_peak, &facts));
    now.work = facts.extra_work;
    if (best->run == NULL || now.work < best->work) {
        mpl_free(c->ctx, best->run);
        *best = now;
        now.run = NULL;
    }
out:
    mpl_free(c->ctx, now.run);
    return st;
}

static mpl_status choose(composer *c, composed *best)
{
    mpl_budget_aim aim = {
        .want = c->task->budget, .high = c->most, .budget = c->budget, .tries = TRIES};
    uint64_t peak;

    while (mpl_budget_left(&aim)) {
        MPL_PASS(try_budget(c, aim.budget, best, &peak));
        mpl_budget_next(&aim, peak);
    }
    return best->run != NULL ? MPL_OK : mpl_recompute_refuse(c->task, aim.want, false);
}

static void close(composer *c)
{
    for (uint32_t i = 0; i < c->n_parts; i++) {
        for (uint32_t k = 0; k < c->part[i].n; k++)
            mpl_free_each(c->ctx, c->part[i].option[k].move, c->part[i].option[k].again);
        mpl_free_each(c->ctx, c->part[i].option, c->part[i].vain);
    }
    for (uint32_t i = 0; i < c->n_borders && c->at != NULL; i++)
        mpl_free(c->ctx, c->at[i].way);
    mpl_free_each(c->ctx, c->border, c->part, c->at);
    mpl_stage_model_fini(&c->m);
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
