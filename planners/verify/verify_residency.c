/* verify_residency.c -- see verify_residency.h. A memory is a list of ranges, each with the buffer
 * and the version of it that its bytes belong to; what writes a range cuts those it meets. */
#include "planners/verify/verify_residency.h"

typedef struct range {
    uint64_t from, to; /* [byte] */
    mpl_buffer buffer;
    uint64_t base;    /* where the buffer's first byte would lie */
    uint32_t version; /* how often the buffer had been written */
} range;

typedef struct memory {
    size_t n, room;
    range *item;
} memory;

typedef struct checker {
    mpl_ctx *ctx;
    const mpl_residency_problem *p;
    const mpl_residency_plan *plan;
    memory memory[2];     /* slow, fast */
    uint32_t *version;    /* [n] of the newest contents */
    uint32_t *next;       /* [n] use that comes next */
    uint32_t begun, over; /* moves so far */
    uint64_t moved, slow;
} checker;

#define UNDER_WAY UINT32_MAX /* the version of what has not come yet */

static const char *label(const checker *self, mpl_buffer b)
{
    return self->p->buffer_name[b] != NULL ? self->p->buffer_name[b] : "(no name)";
}

#define BAD(c, step, b, what)                                                                      \
    MPL_ERROR((c)->ctx, MPL_EINVALID, "step %" PRIu32 ", buffer %" PRIu32 " '%.100s': %s", step,   \
              b, label(c, b), what)

/* ---- memories ---- */

/* Removes [from, to) from what is known; a range around it becomes two. */
static mpl_status forget(checker *self, memory *m, uint64_t from, uint64_t to)
{
    size_t n = m->n;

    for (size_t i = 0; i < n; i++) {
        range old = m->item[i];

        if (old.to <= from || old.from >= to)
            continue;
        m->item[i].to = old.from < from ? from : old.from; /* empty: removed below */
        if (old.to <= to)
            continue;
        MPL_PASS(mpl_reserve(self->ctx, m->item, m->room, m->n + 1));
        m->item[m->n] = old;
        m->item[m->n++].from = to;
    }
    n = m->n, m->n = 0;
    for (size_t i = 0; i < n; i++)
        if (m->item[i].from < m->item[i].to)
            m->item[m->n++] = m->item[i];
    return MPL_OK;
}

static mpl_status store(checker *self, memory *m, uint64_t at, mpl_buffer b, uint32_t version)
{
    MPL_PASS(forget(self, m, at, at + self->p->bytes[b]));
    MPL_PASS(mpl_reserve(self->ctx, m->item, m->room, m->n + 1));
    m->item[m->n++] = (range){at, at + self->p->bytes[b], b, at, version};
    return MPL_OK;
}

/* Whether all bytes of b at `at` are of that version. */
static bool holds(const checker *self, const memory *m, uint64_t at, mpl_buffer b, uint32_t version)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < m->n; i++)
        if (m->item[i].buffer == b && m->item[i].base == at && m->item[i].version == version &&
            m->item[i].from >= at)
            bytes += m->item[i].to - m->item[i].from;
    return bytes == self->p->bytes[b];
}

/* An aligned place that ends within its memory. */
static bool is_place(const checker *self, bool fast, uint64_t at, mpl_buffer b)
{
    uint64_t end;

    return at % self->p->align == 0 && mpl_add_bytes(at, self->p->bytes[b], &end) &&
           end <= (fast ? self->p->capacity : INT64_MAX) &&
           end <= (fast ? self->plan->fast_bytes : self->plan->slow_arena);
}

/* ---- steps ---- */

static uint64_t place_of(const mpl_move *move, bool fast)
{
    return fast ? move->fast_at : move->slow_at;
}

/* A move takes its place: what was there is gone. Its bytes may still be under way: on one channel
 * they have come when it begins. */
static mpl_status begin_move(checker *self, const mpl_move *move)
{
    mpl_buffer b = move->buffer;

    if (!is_place(self, true, move->fast_at, b) || !is_place(self, false, move->slow_at, b))
        return BAD(self, move->step, b, "it moves from or to a place outside of a memory");
    if (!holds(self, &self->memory[!move->to_fast], place_of(move, !move->to_fast), b,
               self->version[b]) &&
        !holds(self, &self->memory[!move->to_fast], place_of(move, !move->to_fast), b, UNDER_WAY))
        return BAD(self, move->step, b,
                   "it moves from where its newest contents are not, or not whole");
    return store(self, &self->memory[move->to_fast != 0], place_of(move, move->to_fast), b,
                 UNDER_WAY);
}

/* A move is over: all the while its bytes were there, and its place was its own. */
static mpl_status end_move(checker *self, const mpl_move *move)
{
    memory *to = &self->memory[move->to_fast != 0];
    mpl_buffer b = move->buffer;

    if (!holds(self, &self->memory[!move->to_fast], place_of(move, !move->to_fast), b,
               self->version[b]))
        return BAD(self, move->step, b, "while it moves, its contents change, or are written over");
    if (!holds(self, to, place_of(move, move->to_fast), b, UNDER_WAY))
        return BAD(self, move->step, b, "while it moves, its place is used");
    self->moved += self->p->bytes[b];
    return store(self, to, place_of(move, move->to_fast), b, self->version[b]);
}

/* The moves that end or begin between two steps, in the channel's order. */
static mpl_status check_moves(checker *self, uint32_t step)
{
    const mpl_move *move = self->plan->move;

    for (;;) {
        if (self->over < self->begun && move[self->over].step == step)
            MPL_PASS(end_move(self, &move[self->over++]));
        else if (self->begun < self->plan->n_moves && move[self->begun].from == step)
            MPL_PASS(begin_move(self, &move[self->begun++]));
        else
            return MPL_OK;
    }
}

/* The use of b at this step; MPL_NONE: none. */
static uint32_t use_at(const checker *self, mpl_buffer b, uint32_t step)
{
    return self->next[b] < self->p->begin[b + 1] && self->p->at[self->next[b]] == step
               ? self->next[b]
               : MPL_NONE;
}

/* An operand before the step runs. */
static mpl_status check_operand(checker *self, mpl_buffer b, uint32_t step, uint32_t use)
{
    bool fast = self->plan->fast[use] != 0;

    if (!is_place(self, fast, self->plan->place[use], b))
        return BAD(self, step, b, "its place is not aligned, or outside of the memory");
    if (!fast && self->p->slow_price == 0)
        return BAD(self, step, b, "it is used in slow memory, which has no price");
    if (use > self->p->begin[b] &&
        !holds(self, &self->memory[fast], self->plan->place[use], b, self->version[b]))
        return BAD(self, step, b, "its newest contents are not where it is used, or not whole");
    self->slow += fast ? 0 : self->p->bytes[b];
    return MPL_OK;
}

static mpl_status check_apart(checker *self, mpl_buffer a, mpl_buffer b, uint32_t step)
{
    uint32_t x = use_at(self, a, step), y = use_at(self, b, step);
    uint64_t at_x = self->plan->place[x], at_y = self->plan->place[y];

    if ((self->plan->fast[x] != 0) == (self->plan->fast[y] != 0) &&
        at_x < at_y + self->p->bytes[b] && at_y < at_x + self->p->bytes[a])
        return BAD(self, step, b, "it overlaps another operand of the step");
    return MPL_OK;
}

/* All operands are read, then those that the step changes are written. */
static mpl_status check_step(checker *self, uint32_t step, uint32_t n, const mpl_buffer *operand)
{
    for (uint32_t i = 0; i < n; i++) {
        MPL_PASS(check_operand(self, operand[i], step, use_at(self, operand[i], step)));
        for (uint32_t k = 0; k < i; k++)
            MPL_PASS(check_apart(self, operand[k], operand[i], step));
    }
    for (uint32_t i = 0; i < n; i++) {
        mpl_buffer b = operand[i];
        uint32_t use = self->next[b]++;

        if (!self->p->writes[use])
            continue;
        self->version[b]++;
        MPL_PASS(store(self, &self->memory[self->plan->fast[use] != 0], self->plan->place[use], b,
                       self->version[b]));
    }
    return MPL_OK;
}

static mpl_status check_run(checker *self)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = self->p;
    uint32_t *begin = NULL, *use = NULL, *owner = NULL;

    MPL_TRY(mpl_new(self->ctx, owner, p->begin[p->n]));
    for (mpl_buffer b = 0; b < p->n; b++)
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
            owner[i] = b;
    MPL_TRY(mpl_lists_new(self->ctx, p->n_steps, p->begin[p->n], p->at, owner, &begin, &use));
    for (uint32_t s = 0; s < p->n_steps; s++) {
        MPL_TRY(check_moves(self, s));
        MPL_TRY(check_step(self, s, begin[s + 1] - begin[s], use + begin[s]));
    }
    if (self->over < self->plan->n_moves)
        MPL_FAIL(self->ctx, MPL_EINVALID, "move %" PRIu32 " stands behind a later one, or the end",
                 self->over);
out:
    mpl_free_each(self->ctx, owner, begin, use);
    return st;
}

/* ---- time ---- */

/* A run of the clock: steps before `step` are over at `now`. */
typedef struct clock_run {
    const checker *c;
    uint32_t step;
    uint64_t now, channel, stall;
    uint64_t *need; /* [n_steps] when what a step waits for has ended */
} clock_run;

static void run_until(clock_run *run, uint32_t step)
{
    for (; run->step < step; run->step++) {
        uint64_t wait = run->need[run->step] > run->now ? run->need[run->step] - run->now : 0;

        run->stall += wait;
        run->now += wait + run->c->p->step_ns[run->step];
    }
}

/* One passage of the channel; returns its beginning. */
static uint64_t pass(clock_run *run, uint64_t bytes, uint32_t from, uint32_t step)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t begin, rate = run->c->p->bandwidth;

    run_until(run, from);
    begin = run->channel > run->now ? run->channel : run->now;
    run->channel = begin + (uint64_t)(((wide)bytes * 1000000000 + rate - 1) / rate);
    run->need[step] = run->channel; /* the last one ends last */
    return begin;
}

/* What step s uses in slow memory, operand by operand. */
static void pass_slow(clock_run *run, uint32_t s)
{
    const mpl_residency_problem *p = run->c->p;

    for (mpl_buffer b = 0; b < p->n; b++)
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
            if (p->at[i] == s && !run->c->plan->fast[i])
                (void)pass(run, p->bytes[b], s, s);
}

static mpl_status check_time(checker *self)
{
    mpl_status st = MPL_OK;
    const mpl_residency_plan *plan = self->plan;
    clock_run k = {.c = self};
    uint32_t s = 0;

    MPL_TRY(mpl_new(self->ctx, k.need, self->p->n_steps));
    for (uint32_t i = 0; i < plan->n_moves; i++) {
        const mpl_move *move = &plan->move[i];
        uint64_t begin;

        if (move->from > move->step ||
            (i > 0 && (move->from < move[-1].from || move->step < move[-1].step)))
            MPL_FAIL(self->ctx, MPL_EINVALID, "move %" PRIu32 " is not in the channel's order", i);
        for (; s < self->p->n_steps && move->from >= s && move->step > s; s++)
            pass_slow(&k, s);
        begin = pass(&k, self->p->bytes[move->buffer], move->from, move->step);
        if (begin != move->start_ns)
            MPL_FAIL(self->ctx, MPL_EINVALID,
                     "move %" PRIu32 " begins at %" PRIu64 " ns; the plan says %" PRIu64, i, begin,
                     move->start_ns);
    }
    for (; s < self->p->n_steps; s++)
        pass_slow(&k, s);
    run_until(&k, self->p->n_steps);
    if (k.stall != plan->stall_ns || plan->stall_bound > k.stall)
        MPL_FAIL(self->ctx, MPL_EINVALID,
                 "steps wait %" PRIu64 " ns; the plan says %" PRIu64 ", and %" PRIu64 " at least",
                 k.stall, plan->stall_ns, plan->stall_bound);
out:
    mpl_free(self->ctx, k.need);
    return st;
}

/* ---- the bound ---- */

/* The least cost of a buffer alone, in parts, where a byte in fast memory pays sum[to] - sum[from]
 * for steps [from, to). least[k]: ways that end in fast memory alone, in both, in slow memory. */
static bool cheapest(const mpl_residency_problem *p, mpl_buffer b, const uint64_t *sum,
                     uint64_t *cost)
{
    const uint64_t none = UINT64_MAX / 4, size = mpl_align_up(p->bytes[b], p->align);
    uint64_t slow = p->slow_price > 0 ? p->bytes[b] * p->slow_price * MPL_PRICE_PARTS : none;
    uint64_t move = p->bytes[b] * p->move_price * MPL_PRICE_PARTS, alone = none, both = none,
             away = none;

    for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
        uint32_t s = p->at[i];
        uint64_t rent = size * (sum[s + 1] - sum[s]), in = 0, in_both = none, out = 0;

        if (i > p->begin[b]) {
            uint64_t stay = size * (sum[s] - sum[p->at[i - 1] + 1]);
            uint64_t written = mpl_min_u64(mpl_min_u64(alone + move, both), away);

            in = alone + stay;
            in_both = mpl_min_u64(both + stay, written + move);
            out = written;
        }
        alone = p->writes[i] ? mpl_min_u64(in, in_both) + rent : in + rent;
        both = p->writes[i] ? none : in_both + rent;
        away = out + slow;
        alone = mpl_min_u64(alone, none), both = mpl_min_u64(both, none);
        away = mpl_min_u64(away, none);
    }
    *cost = mpl_min_u64(mpl_min_u64(alone, both), away);
    return *cost < none;
}

/* Bytes of fast memory that whole buffers can fill at step s, or a few more: the least capacity
 * within which all sums are that are within the true one. Sizes count in units, rounded down. */
static uint64_t fillable(const mpl_residency_problem *p, uint32_t s, bool *is_sum)
{
    uint64_t whole = mpl_align_up(p->capacity, p->align), unit = 1, rest = 0, needed = 0, n;

    for (mpl_buffer b = 0; p->slow_price == 0 && b < p->n; b++)
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
            needed += p->at[i] == s ? mpl_align_up(p->bytes[b], p->align) : 0;
    while ((whole - needed) / unit > MPL_ROOM_UNITS)
        unit *= 2;
    n = (whole - needed) / unit;
    memset(is_sum, 0, n + 1);
    is_sum[0] = true;
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t size = mpl_align_up(p->bytes[b], p->align);
        bool there = p->at[p->begin[b]] <= s && p->at[p->begin[b + 1] - 1] >= s;

        for (uint32_t i = p->begin[b]; p->slow_price == 0 && i < p->begin[b + 1]; i++)
            there &= p->at[i] != s;
        rest += there ? size % unit : 0;
        for (uint64_t k = n + 1; there && size >= unit && k-- > size / unit;)
            is_sum[k] |= is_sum[k - size / unit];
    }
    while (!is_sum[n])
        n--;
    return mpl_min_u64(whole, needed + n * unit + rest);
}

static mpl_status check_bound(mpl_ctx *ctx, const mpl_residency_problem *p,
                              const mpl_residency_plan *plan)
{
    mpl_status st = MPL_OK;
    uint64_t *sum = NULL, cost = 0, own, rent = 0, proved;
    bool *is_sum = NULL;
    uint64_t most = 4 * MPL_PRICE_PARTS * mpl_max_u64(p->move_price, p->slow_price);

    if (plan->bound > plan->cost)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "the plan costs %" PRIu64 ", less than its bound of %" PRIu64, plan->cost,
                         plan->bound);
    if (plan->searched)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, sum, (size_t)p->n_steps + 1));
    MPL_TRY(mpl_new(ctx, is_sum, MPL_ROOM_UNITS + 1));
    for (uint32_t s = 0; s < p->n_steps; s++) {
        if (plan->step_price[s] > most)
            MPL_FAIL(ctx, MPL_EINVALID, "the price of step %" PRIu32 " is above %" PRIu64, s, most);
        sum[s + 1] = sum[s] + plan->step_price[s];
        if (plan->step_price[s] > 0)
            rent += plan->step_price[s] * fillable(p, s, is_sum);
    }
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (!cheapest(p, b, sum, &own))
            MPL_FAIL(ctx, MPL_EINVALID, "buffer %" PRIu32 " has no way", b);
        cost += own;
    }
    proved = cost <= rent ? 0 : (cost - rent + MPL_PRICE_PARTS - 1) / MPL_PRICE_PARTS;
    if (proved < plan->bound)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "the prices of the steps prove a cost of %" PRIu64 " or more, not of %" PRIu64,
                 proved, plan->bound);
out:
    mpl_free_each(ctx, sum, is_sum);
    return st;
}

mpl_status mpl_verify_residency(mpl_ctx *ctx, const mpl_residency_problem *p,
                                const mpl_residency_plan *plan)
{
    mpl_status st = MPL_OK;
    checker c = {.ctx = ctx, .p = p, .plan = plan};

    MPL_TRY(mpl_residency_check(ctx, p));
    if (plan->n != p->n || plan->n_uses != p->begin[p->n])
        MPL_FAIL(ctx, MPL_EINVALID, "the plan is of another problem");
    for (uint32_t k = 0; k < plan->n_moves; k++)
        if (plan->move[k].buffer >= p->n)
            MPL_FAIL(ctx, MPL_EINVALID, "move %" PRIu32 " is of no buffer", k);
    MPL_TRY(mpl_new_each(ctx, p->n, c.version, c.next));
    memcpy(c.next, p->begin, p->n * sizeof *c.next);
    MPL_TRY(check_run(&c));
    if (p->bandwidth > 0)
        MPL_TRY(check_time(&c));
    if (c.moved != plan->moved_bytes || c.slow != plan->slow_bytes ||
        plan->cost != c.moved * p->move_price + c.slow * p->slow_price)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "%" PRIu64 " bytes move and %" PRIu64
                 " are used in slow memory; the plan says other figures, or another cost",
                 c.moved, c.slow);
    MPL_TRY(check_bound(ctx, p, plan));
out:
    mpl_free_each(ctx, c.memory[0].item, c.memory[1].item, c.version, c.next);
    return st;
}
