/* Residency in time: on small random problems the plan's cost equals that of all ways of all
 * buffers, each placed by a naive search; the verifier accepts it and refuses what was changed in
 * it; with a bandwidth its stall equals that of all ways, orders and windows, timed by relaxation;
 * the simple rules are never below; longer problems stay within bound and capacity; what cannot be
 * is refused in one line; clean if any allocation fails. */
#include "tests/support/small_problem.h"

#include "planners/residency/residency.h"
#include "planners/verify/verify_residency.h"

typedef mpl_residency_problem problem;

/* Buffers with up to `uses` uses each over a few steps; sizes up to `most` units. */
static problem *random_problem(mpl_ctx *ctx, mpl_rng *rng, uint32_t n, uint32_t steps,
                               uint32_t uses, uint32_t most)
{
    problem *p = NULL;
    uint32_t n_uses = 0;

    assert_ok(ctx, mpl_residency_problem_new(ctx, "random", n, n * uses, &p));
    p->n_steps = steps;
    p->align = 1u << below(rng, 3);
    p->move_price = 1 + below(rng, 2);
    for (mpl_buffer b = 0; b < n; b++) {
        uint32_t left = 1 + below(rng, uses), from = below(rng, (steps + 1) / 2);

        p->begin[b] = n_uses;
        p->bytes[b] = 1 + below(rng, most);
        for (uint32_t s = from; s < steps && left > 0; s++)
            if (s == from || below(rng, 3) == 0) {
                p->writes[n_uses] = s == from || below(rng, 6) == 0;
                p->at[n_uses++] = s;
                left--;
            }
    }
    p->begin[n] = n_uses;
    return p;
}

/* The most bytes that the operands of a step take. */
static uint64_t most_operands(const problem *p)
{
    uint64_t most = 0;

    for (uint32_t s = 0; s < p->n_steps; s++) {
        uint64_t sum = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
                sum += p->at[i] == s ? mpl_align_up(p->bytes[b], p->align) : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

/* Prices and a capacity at which something must move, most often. */
static void make_tight(mpl_rng *rng, problem *p)
{
    uint64_t most = most_operands(p);

    p->slow_price = below(rng, 4) == 0 ? 1 + below(rng, 4) : 0;
    p->capacity = p->slow_price == 0 ? most + below(rng, 2) : below(rng, (uint32_t)most + 4);
}

/* ---- all ways ---- */

typedef struct ways {
    const problem *p;
    uint8_t fast[64], kept[64];
    uint64_t best;
} ways;

/* Cost of what is chosen, by counting each byte that crosses. */
static uint64_t cost_of(const ways *w)
{
    const problem *p = w->p;
    uint64_t cost = 0;

    for (mpl_buffer b = 0; b < p->n; b++) {
        bool in_fast = false, in_slow = false;

        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
            bool first = i == p->begin[b];

            if (!first && in_fast && !w->kept[i - 1]) { /* it leaves */
                cost += in_slow ? 0 : p->bytes[b] * p->move_price;
                in_slow = true, in_fast = false;
            }
            if (!first && w->fast[i] && !in_fast)
                cost += p->bytes[b] * p->move_price;
            cost += w->fast[i] ? 0 : p->bytes[b] * p->slow_price;
            in_fast = w->fast[i];
            if (p->writes[i])
                in_slow = !in_fast;
        }
    }
    return cost;
}

static bool ways_fit(const ways *w)
{
    const problem *p = w->p;
    small s = {0};

    for (mpl_buffer b = 0; b < p->n; b++)
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
            if (!w->fast[i])
                continue;
            if (i == p->begin[b] || !w->kept[i - 1]) {
                s.birth[s.n] = p->at[i];
                s.size[s.n] = (uint32_t)p->bytes[b];
                s.align[s.n] = p->align;
                s.fixed[s.n++] = -1;
            }
            s.death[s.n - 1] = p->at[i] + 1;
        }
    return brute_fits(&s, (uint32_t)p->capacity);
}

static void try_all(ways *w, uint32_t i)
{
    const problem *p = w->p;
    bool first = false;

    if (i == p->begin[p->n]) {
        uint64_t cost = cost_of(w);

        if (cost < w->best && ways_fit(w))
            w->best = cost;
        return;
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        first |= i == p->begin[b];
    for (uint8_t fast = p->slow_price > 0 ? 0 : 1; fast < 2; fast++)
        for (uint8_t kept = 0; kept < 2; kept++) { /* since the use before */
            if (kept && (first || !fast || !w->fast[i - 1]))
                continue;
            w->fast[i] = fast;
            if (i > 0)
                w->kept[i - 1] = kept;
            try_all(w, i + 1);
        }
}

/* ---- tests ---- */

TEST(small_ones_equal_all_ways)
{
    mpl_rng rng = mpl_rng_of(1);
    uint32_t n_moved = 0, n_above = 0, n_slow = 0;

    for (uint32_t round = 0; round < draws(1000);) {
        problem *p = random_problem(ctx, &rng, 2 + below(&rng, 4), 4 + below(&rng, 6), 3, 8);
        ways w = {.p = p, .best = UINT64_MAX};
        mpl_residency_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);
        mpl_status st;
        uint64_t belady, greedy;

        if (p->begin[p->n] > 12) {
            mpl_residency_problem_free(ctx, p);
            continue;
        }
        make_tight(&rng, p);
        try_all(&w, 0);
        st = mpl_residency_solve(&run, p, &plan);
        if (w.best == UINT64_MAX || st != MPL_OK) { /* operands that no offsets hold together */
            assert_int_equal(w.best, UINT64_MAX);
            assert_true(st == MPL_ELIMIT || st == MPL_EINPUT);
            mpl_residency_problem_free(ctx, p);
            continue;
        }
        assert_ok(ctx, mpl_verify_residency(ctx, p, plan));
        assert_int_equal(plan->cost, w.best);
        assert_int_equal(plan->bound, w.best);
        assert_ok(ctx, mpl_residency_belady(ctx, p, &belady, NULL));
        assert_ok(ctx, mpl_residency_greedy(ctx, p, &greedy, NULL));
        round++;
        n_moved += plan->moved_bytes > 0;
        n_slow += plan->slow_bytes > 0;
        n_above += belady > w.best && greedy > w.best;
        mpl_residency_plan_free(ctx, plan);
        mpl_residency_problem_free(ctx, p);
    }
    print_message("moved %u, slow %u, both rules above %u\n", n_moved, n_slow, n_above);
    assert_true(often(n_moved > draws(1000) / 5 && n_slow > draws(1000) / 20 &&
                      n_above > draws(1000) / 50));
}

/* ---- all orders and windows of all ways ---- */

typedef struct moving_one {
    uint32_t use, bytes, first, last, from, until;
    bool to_fast, taken;
} moving_one;

typedef struct timed_ways {
    ways w;
    uint64_t (*ns)(const problem *p, uint64_t bytes);
    uint32_t n;
    moving_one all[24], order[24];
} timed_ways;

static mpl_buffer owner_of(const problem *p, uint32_t use)
{
    mpl_buffer b = 0;

    while (p->begin[b + 1] <= use)
        b++;
    return b;
}

/* Times by relaxation until nothing changes: what a step or a passage waits for ends before it. */
static uint64_t relax(const timed_ways *t, uint32_t n)
{
    const problem *p = t->w.p;
    uint64_t begin[16] = {0}, end[16] = {0}, stall = 0;
    bool more = true;

    while (more) {
        uint64_t channel = 0;
        uint32_t k = 0;

        more = false;
        for (uint32_t s = 0; s < p->n_steps; s++) {
            uint64_t now = s > 0 ? end[s - 1] : 0, wait = now, slow = 0;

            for (uint32_t i = 0; i < p->begin[p->n]; i++)
                if (p->at[i] == s && !t->w.fast[i])
                    slow += t->ns(p, p->bytes[owner_of(p, i)]);
            for (uint32_t part = 0; part < 2; part++) {
                for (; k < n && t->order[k].from <= s && (part == 1 || t->order[k].until <= s);
                     k++) {
                    uint64_t from = t->order[k].from > 0 ? end[t->order[k].from - 1] : 0;

                    channel = (channel > from ? channel : from) + t->ns(p, t->order[k].bytes);
                    for (uint32_t x = t->order[k].until; x < p->n_steps; x++)
                        if (begin[x] < channel)
                            begin[x] = channel, more = true;
                }
                if (part == 0 && slow > 0) {
                    channel = (channel > now ? channel : now) + slow;
                    wait = channel;
                }
            }
            wait = wait > begin[s] ? wait : begin[s];
            if (begin[s] != wait || end[s] != wait + p->step_ns[s])
                begin[s] = wait, end[s] = wait + p->step_ns[s], more = true;
        }
    }
    for (uint32_t s = 0; s < p->n_steps; s++)
        stall += begin[s] - (s > 0 ? end[s - 1] : 0);
    return stall;
}

static bool windows_fit(const timed_ways *t)
{
    const problem *p = t->w.p;
    small s = {0};
    uint32_t piece[64] = {0};

    for (mpl_buffer b = 0; b < p->n; b++)
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
            if (!t->w.fast[i])
                continue;
            if (i == p->begin[b] || !t->w.kept[i - 1]) {
                s.birth[s.n] = p->at[i];
                s.size[s.n] = (uint32_t)p->bytes[b];
                s.align[s.n] = p->align;
                s.fixed[s.n++] = -1;
            }
            piece[i] = s.n - 1;
            s.death[s.n - 1] = p->at[i] + 1;
        }
    for (uint32_t k = 0; k < t->n; k++) {
        const moving_one *m = &t->order[k];

        if (m->to_fast && s.birth[piece[m->use]] > m->from)
            s.birth[piece[m->use]] = m->from;
        if (!m->to_fast && s.death[piece[m->use]] < m->until)
            s.death[piece[m->use]] = m->until;
    }
    return brute_fits(&s, (uint32_t)p->capacity);
}

static void try_orders(timed_ways *t, uint32_t depth)
{
    uint32_t from = depth > 0 ? t->order[depth - 1].from : 0;
    uint32_t until = depth > 0 ? t->order[depth - 1].until : 0;

    if (relax(t, depth) >= t->w.best)
        return;
    if (depth == t->n) {
        if (windows_fit(t))
            t->w.best = relax(t, depth);
        return;
    }
    for (uint32_t k = 0; k < t->n; k++) {
        moving_one *m = &t->all[k];
        bool waits = false;

        for (uint32_t i = 0; i < t->n; i++) /* what comes back has left */
            waits |=
                m->to_fast && !t->all[i].to_fast && t->all[i].use + 1 == m->use && !t->all[i].taken;
        if (m->taken || waits)
            continue;
        m->taken = true;
        for (uint32_t a = m->first > from ? m->first : from; a <= m->last; a++)
            for (uint32_t b = a > until ? a : until; b <= m->last; b++) {
                t->order[depth] = *m;
                t->order[depth].from = a;
                t->order[depth].until = b;
                try_orders(t, depth + 1);
            }
        m->taken = false;
    }
}

static void list_moves(timed_ways *t)
{
    const problem *p = t->w.p;

    t->n = 0;
    for (mpl_buffer b = 0; b < p->n; b++) {
        bool in_slow = false;

        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
            bool stays = i > p->begin[b] && t->w.kept[i - 1];
            moving_one m = {.bytes = (uint32_t)p->bytes[b], .last = p->at[i]};

            m.first = i > p->begin[b] ? p->at[i - 1] + 1 : 0;
            if (i > p->begin[b] && t->w.fast[i - 1] && !stays && !in_slow) {
                m.use = i - 1;
                t->all[t->n++] = m;
                in_slow = true;
            }
            if (i > p->begin[b] && t->w.fast[i] && !stays) {
                m.use = i;
                m.to_fast = true;
                t->all[t->n++] = m;
            }
            if (p->writes[i])
                in_slow = !t->w.fast[i];
        }
    }
}

static void try_timed(timed_ways *t, uint32_t i)
{
    const problem *p = t->w.p;
    bool first = i < p->begin[p->n] && i == p->begin[owner_of(p, i)];

    if (i == p->begin[p->n]) {
        list_moves(t);
        try_orders(t, 0);
        return;
    }
    for (uint8_t fast = p->slow_price > 0 ? 0 : 1; fast < 2; fast++)
        for (uint8_t kept = 0; kept < 2; kept++) {
            if (kept && (first || !fast || !t->w.fast[i - 1]))
                continue;
            t->w.fast[i] = fast;
            t->w.kept[i] = 0;
            if (!first)
                t->w.kept[i - 1] = kept;
            try_timed(t, i + 1);
        }
}

static uint64_t time_of(const problem *p, uint64_t bytes)
{
    return bytes * (1000000000 / p->bandwidth);
}

static void add_times(mpl_ctx *ctx, mpl_rng *rng, problem *p)
{
    p->bandwidth = 1000000000 >> below(rng, 3); /* whole times for each byte */
    assert_ok(ctx, mpl_new(ctx, p->step_ns, p->n_steps));
    for (uint32_t s = 0; s < p->n_steps; s++)
        p->step_ns[s] = below(rng, 12);
}

TEST(least_stall_equals_all_orders_and_windows)
{
    mpl_rng rng = mpl_rng_of(7);
    uint32_t n_stall = 0, n_above = 0, n_hidden = 0, n_slow = 0;

    for (uint32_t round = 0; round < draws(1000);) {
        problem *p = random_problem(ctx, &rng, 2 + below(&rng, 3), 4 + below(&rng, 2), 3, 6);
        timed_ways t = {.w = {.p = p, .best = UINT64_MAX}, .ns = time_of};
        mpl_residency_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);
        mpl_status st;
        uint64_t belady, greedy, cost;

        make_tight(&rng, p);
        add_times(ctx, &rng, p);
        if (p->begin[p->n] > 6) {
            mpl_residency_problem_free(ctx, p);
            continue;
        }
        try_timed(&t, 0);
        st = mpl_residency_solve(&run, p, &plan);
        if (t.w.best == UINT64_MAX || st != MPL_OK) {
            assert_int_equal(t.w.best, UINT64_MAX);
            assert_true(st == MPL_ELIMIT || st == MPL_EINPUT);
            mpl_residency_problem_free(ctx, p);
            continue;
        }
        assert_ok(ctx, mpl_verify_residency(ctx, p, plan));
        assert_int_equal(plan->stall_ns, t.w.best);
        assert_int_equal(plan->stall_bound, t.w.best);
        assert_ok(ctx, mpl_residency_belady(ctx, p, &cost, &belady));
        assert_ok(ctx, mpl_residency_greedy(ctx, p, &cost, &greedy));
        round++;
        n_stall += plan->stall_ns > 0;
        n_hidden += plan->stall_ns < time_of(p, plan->moved_bytes + plan->slow_bytes);
        n_slow += plan->slow_bytes > 0;
        n_above += belady > t.w.best && greedy > t.w.best;
        mpl_residency_plan_free(ctx, plan);
        mpl_residency_problem_free(ctx, p);
    }
    print_message("stall %u, hidden %u, slow %u, both rules above %u\n", n_stall, n_hidden, n_slow,
                  n_above);
    assert_true(often(n_stall > draws(1000) / 5 && n_hidden > draws(1000) / 50 &&
                      n_slow > draws(1000) / 20 && n_above > draws(1000) / 100));
}

/* A plan of a longer problem with moves in it, and room to forge. */
static problem *moving(mpl_ctx *ctx, mpl_rng *rng, uint32_t n, mpl_residency_plan **plan)
{
    for (;;) {
        problem *p = random_problem(ctx, rng, n, 2 * n, 5, 20);
        mpl_run run = mpl_run_default(ctx);
        mpl_status st;

        make_tight(rng, p);
        p->capacity = mpl_align_up(p->capacity, p->align);
        p->slow_price = below(rng, 2) * 3;
        if (below(rng, 2) == 0)
            add_times(ctx, rng, p);
        run.budget_ticks = 20000;
        *plan = NULL;
        st = mpl_residency_solve(&run, p, plan);
        if (st == MPL_OK && (*plan)->n_moves > 2)
            return p;
        mpl_residency_plan_free(ctx, *plan);
        mpl_residency_problem_free(ctx, p);
    }
}

/* Forgeries: each returns false where the plan has nothing of the kind. */
static bool drop_move(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    uint32_t k = below(rng, plan->n_moves);

    plan->moved_bytes -= p->bytes[plan->move[k].buffer];
    plan->cost -= p->bytes[plan->move[k].buffer] * p->move_price;
    memmove(plan->move + k, plan->move + k + 1, (--plan->n_moves - k) * sizeof *plan->move);
    return true;
}

static bool late_move(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    mpl_move *m = &plan->move[below(rng, plan->n_moves)];
    bool used = false;

    for (uint32_t i = p->begin[m->buffer]; m->to_fast && i < p->begin[m->buffer + 1]; i++)
        used |= p->at[i] == m->step;
    m->step++; /* a prefetch comes after the step that needs it */
    return used && (m + 1 == plan->move + plan->n_moves || m[1].step >= m->step);
}

static bool early_evict(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    mpl_move *m = &plan->move[below(rng, plan->n_moves)];

    (void)p;
    for (uint32_t i = p->begin[m->buffer]; !m->to_fast && i < p->begin[m->buffer + 1]; i++)
        if (p->at[i] + 1 == m->step && p->writes[i] && m == plan->move) {
            m->step--, m->from--; /* before what is to be saved is made */
            return true;
        }
    return false;
}

static bool other_place(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    uint32_t i = below(rng, plan->n_uses);
    uint64_t by = (1 + below(rng, 4)) * p->align;
    bool first = false;

    for (mpl_buffer b = 0; b < p->n; b++)
        first |= p->begin[b] == i;
    if (first || plan->place[i] < by)
        return false;
    plan->place[i] -= by;
    return true;
}

static bool other_memory(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    uint32_t i = below(rng, plan->n_uses);

    (void)p;
    plan->fast[i] ^= 1;
    return true;
}

static bool other_source(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    mpl_move *m = &plan->move[below(rng, plan->n_moves)];

    m->slow_at += p->align;
    plan->slow_arena += p->align;
    return true;
}

static bool less_capacity(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    (void)rng;
    p->capacity = plan->fast_bytes - 1;
    return true;
}

static bool fewer_bytes(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    (void)p, (void)rng;
    plan->moved_bytes--;
    return true;
}

static bool higher_bound(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    (void)p, (void)rng;
    if (plan->searched) { /* the prices prove less */
        plan->searched = false;
        return true;
    }
    plan->bound++;
    plan->cost++;
    return true;
}

static bool higher_prices(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    (void)rng;
    if (plan->searched)
        return false;
    for (uint32_t s = 0; s < p->n_steps; s++)
        plan->step_price[s] = 4 * MPL_PRICE_PARTS;
    return plan->bound > 0;
}

static bool off_align(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    (void)plan, (void)rng;
    p->align *= 64;
    return true;
}

static bool other_start(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    plan->move[below(rng, plan->n_moves)].start_ns++;
    return p->bandwidth > 0;
}

static bool less_stall(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    (void)rng;
    if (plan->stall_ns > 0)
        plan->stall_ns--;
    else
        plan->stall_bound++;
    return p->bandwidth > 0;
}

static bool faster(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    (void)rng;
    for (uint32_t s = 0; p->bandwidth > 0 && s < plan->move[0].from; s++)
        p->step_ns[s]++;
    return p->bandwidth > 0 && plan->move[0].from > 0;
}

/* A window that ends later: its place is another's by then, or the moves behind it end before. */
static bool longer_window(problem *p, mpl_residency_plan *plan, mpl_rng *rng)
{
    mpl_move *m = &plan->move[below(rng, plan->n_moves)];

    (void)p;
    m->step = p->n_steps;
    return true;
}

TEST(forged_plans_are_refused)
{
    static bool (*const forge[])(problem *, mpl_residency_plan *, mpl_rng *) = {
        drop_move,    late_move,     early_evict, other_place,  other_memory,
        other_source, less_capacity, fewer_bytes, higher_bound, higher_prices,
        off_align,    other_start,   less_stall,  faster,       longer_window};
    uint32_t refused[sizeof forge / sizeof *forge] = {0};
    mpl_rng rng = mpl_rng_of(3);

    for (uint32_t round = 0; round < draws(150); round++) {
        uint32_t kind = round % (sizeof forge / sizeof *forge);
        mpl_residency_plan *plan;
        problem *p = moving(ctx, &rng, 5, &plan);

        assert_ok(ctx, mpl_verify_residency(ctx, p, plan));
        if (forge[kind](p, plan, &rng)) {
            mpl_status st = mpl_verify_residency(ctx, p, plan);

            if (st != MPL_EINVALID && st != MPL_EINPUT)
                fail_msg("forgery %u of round %u was accepted", kind, round);
            refused[kind]++;
        }
        mpl_residency_plan_free(ctx, plan);
        mpl_residency_problem_free(ctx, p);
    }
    for (size_t k = 0; MPL_CHECK < 3 && k < sizeof forge / sizeof *forge; k++)
        if (refused[k] == 0)
            fail_msg("forgery %zu was never tried", k);
}

/* Sums of what is alive, by the plan's own ways: no plan without fragments is below the bound. */
TEST(longer_ones_stay_within_bound_and_capacity)
{
    mpl_rng rng = mpl_rng_of(2);

    for (uint32_t round = 0; round < draws(6); round++) {
        problem *p = random_problem(ctx, &rng, 30, 60, 6, 1000);
        mpl_residency_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);
        uint64_t belady, greedy;

        make_tight(&rng, p);
        if (p->slow_price > 0)
            p->capacity = most_operands(p) / 2;
        run.budget_ticks = 100000;
        assert_ok(ctx, mpl_residency_solve(&run, p, &plan));
        assert_ok(ctx, mpl_verify_residency(ctx, p, plan));
        assert_ok(ctx, mpl_residency_belady(ctx, p, &belady, NULL));
        assert_ok(ctx, mpl_residency_greedy(ctx, p, &greedy, NULL));
        assert_true(plan->fast_bytes <= p->capacity && plan->bound <= plan->cost);
        assert_true(plan->bound <= belady && plan->bound <= greedy);
        mpl_residency_plan_free(ctx, plan);
        mpl_residency_problem_free(ctx, p);
    }
}

TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *what;
        uint64_t capacity, slow_price, align;
        const char *says;
    } row[] = {{"operands", 7, 0, 1, "slow:inf:8"},
               {"alignment", 100, 0, 3, "power of two"},
               {"prices", 100, UINT64_MAX, 1, "2^48"}};

    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        problem *p = NULL;
        mpl_residency_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);

        assert_ok(ctx, mpl_residency_problem_new(ctx, row[k].what, 1, 1, &p));
        p->n_steps = 1;
        p->bytes[0] = 8;
        p->begin[1] = p->writes[0] = 1;
        p->capacity = row[k].capacity;
        p->slow_price = row[k].slow_price;
        p->align = (uint32_t)row[k].align;
        assert_status(ctx, mpl_residency_solve(&run, p, &plan), MPL_EINPUT);
        assert_non_null(strstr(ctx->message, row[k].says));
        mpl_residency_problem_free(ctx, p);
    }
}

TEST(clean_if_any_allocation_fails)
{
    mpl_rng rng = mpl_rng_of(5);
    mpl_residency_plan *found;
    problem *p = moving(ctx, &rng, 4, &found);
    uint64_t cost = found->cost;

    mpl_residency_plan_free(ctx, found);
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_run run = mpl_run_default(ctx);
        mpl_residency_plan *plan = NULL;

        run.budget_ticks = 500;
        st = mpl_residency_solve(&run, p, &plan);
        if (st == MPL_OK)
            st = mpl_verify_residency(ctx, p, plan);
        assert_true(st != MPL_OK || plan->cost <= 2 * cost);
        mpl_residency_plan_free(ctx, plan);
    }
    mpl_residency_problem_free(ctx, p);
}

TESTS(small_ones_equal_all_ways, least_stall_equals_all_orders_and_windows,
      forged_plans_are_refused, longer_ones_stay_within_bound_and_capacity,
      what_cannot_be_is_refused, clean_if_any_allocation_fails)
