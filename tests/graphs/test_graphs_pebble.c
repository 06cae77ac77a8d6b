/* The pebble game: the published trade-off; all small graphs against an independent search and
 * against each other. */
#include "tests/support/test.h"

#include "graphs/orders/pebble.h"

/* The least space with each vertex pebbled once; time is then n. O(2^n n). */
static mpl_status pebble_once(mpl_ctx *ctx, const mpl_dag *dag, bool sliding, uint32_t *space)
{
    uint32_t n = dag->n, after[MPL_PEBBLE_MOST] = {0};
    owned_memory uint8_t *least = NULL; /* indexed by the pebbled set; UINT8_MAX: impossible */

    for (uint32_t v = 0; v < n; v++)
        for (uint32_t u = 0; u < v; u++)
            if (dag->before[v] >> u & 1)
                after[u] |= UINT32_C(1) << v;
    MPL_PASS(mpl_new(ctx, least, (size_t)1 << n));
    memset(least, UINT8_MAX, (size_t)1 << n);
    least[0] = 0;
    for (uint32_t set = 0; set < UINT32_C(1) << n; set++) {
        uint32_t held = 0; /* pebbles still needed */

        for (uint32_t u = 0; u < n && least[set] != UINT8_MAX; u++)
            held += (set >> u & 1) && (after[u] & ~set) != 0;
        for (uint32_t v = 0; v < n && least[set] != UINT8_MAX; v++) {
            uint32_t with = set | UINT32_C(1) << v, need = held + 1;

            if (with == set || (dag->before[v] & ~set) != 0)
                continue;
            for (uint32_t u = 0; sliding && u < v; u++)
                if ((dag->before[v] >> u & 1) && (after[u] & ~with) == 0)
                    need = held;
            need = need < least[set] ? least[set] : need;
            least[with] = need < least[with] ? (uint8_t)need : least[with];
        }
    }
    *space = least[(UINT32_C(1) << n) - 1];
    return MPL_OK;
}

/* ---- the game by its rules: times of all states, lowered to a fixed point ---- */

typedef struct told {
    uint32_t n, edge[16][16]; /* edge[u][v] */
    bool sliding;
    uint32_t space;
    uint8_t time[1 << 6][1 << 6]; /* [pebbles][sinks pebbled so far]; 255: unreachable */
} told;

static bool may_pebble(const told *t, uint32_t pebbles, uint32_t v)
{
    for (uint32_t u = 0; u < t->n; u++)
        if (t->edge[u][v] && !(pebbles & (1u << u)))
            return false;
    return !(pebbles & (1u << v));
}

static bool is_sink(const told *t, uint32_t v)
{
    for (uint32_t w = 0; w < t->n; w++)
        if (t->edge[v][w])
            return false;
    return true;
}

static uint32_t size(uint32_t set)
{
    uint32_t k = 0;

    for (; set > 0; set >>= 1)
        k += set & 1;
    return k;
}

/* Lowers the time of a move's target; returns whether it fell. */
static bool lower(told *t, uint32_t pebbles, uint32_t had, uint8_t time)
{
    if (size(pebbles) > t->space || t->time[pebbles][had] <= time)
        return false;
    t->time[pebbles][had] = time;
    return true;
}

static bool moves_from(told *t, uint32_t pebbles, uint32_t had)
{
    uint8_t time = t->time[pebbles][had];
    bool fell = false;

    for (uint32_t v = 0; v < t->n; v++) {
        uint32_t now = had | (is_sink(t, v) ? 1u << v : 0);

        if (pebbles & (1u << v))
            fell = lower(t, pebbles ^ (1u << v), had, time) || fell;
        if (!may_pebble(t, pebbles, v))
            continue;
        fell = lower(t, pebbles | (1u << v), now, (uint8_t)(time + 1)) || fell;
        for (uint32_t u = 0; u < t->n; u++)
            if (t->sliding && t->edge[u][v])
                fell =
                    lower(t, (pebbles ^ (1u << u)) | (1u << v), now, (uint8_t)(time + 1)) || fell;
    }
    return fell;
}

static uint32_t told_time(told *t)
{
    uint32_t sinks = 0, best = MPL_NONE;
    bool fell = true;

    for (uint32_t v = 0; v < t->n; v++)
        sinks |= is_sink(t, v) ? 1u << v : 0;
    memset(t->time, 255, sizeof t->time);
    t->time[0][0] = 0;
    while (fell) {
        fell = false;
        for (uint32_t had = 0; had <= sinks; had++)
            for (uint32_t pebbles = 0; pebbles < 1u << t->n && (had & ~sinks) == 0; pebbles++)
                if (t->time[pebbles][had] < 255)
                    fell = moves_from(t, pebbles, had) || fell;
    }
    for (uint32_t pebbles = 0; pebbles < 1u << t->n; pebbles++)
        if (t->time[pebbles][sinks] < 255 && t->time[pebbles][sinks] < best)
            best = t->time[pebbles][sinks];
    return best;
}

static void tell(const mpl_dag *dag, bool sliding, uint32_t space, told *t)
{
    memset(t, 0, sizeof *t);
    t->n = dag->n;
    t->sliding = sliding;
    t->space = space;
    for (uint32_t v = 0; v < dag->n; v++)
        for (uint32_t u = 0; u < v; u++)
            t->edge[u][v] = dag->before[v] >> u & 1;
}

/* ---- tests ---- */

/* Owl's example: 0->1, 1->2, 1->3, 2->4, 3->4, 1->5, 4->5. */
static const mpl_dag example = {
    6, {0, 1u << 0, 1u << 1, 1u << 1, 1u << 2 | 1u << 3, 1u << 1 | 1u << 4}};

TEST(trade_off)
{
    static const uint32_t want[][3] = {{1, 1, MPL_NONE}, {1, 2, 8}, {1, 3, 6}, {1, 6, 6},
                                       {0, 2, MPL_NONE}, {0, 3, 8}, {0, 4, 6}};
    mpl_pebble_point point[16];
    uint32_t n, space;

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        uint32_t time;

        assert_ok(ctx, mpl_pebble_time(ctx, &example, want[i][1], want[i][0], &time));
        assert_int_equal(time, want[i][2]);
    }
    assert_ok(ctx, mpl_pebble_frontier(ctx, &example, true, point, &n));
    assert_int_equal(n, 2);
    assert_true(point[0].space == 2 && point[0].time == 8 && point[1].space == 3 &&
                point[1].time == 6);
    assert_ok(ctx, pebble_once(ctx, &example, true, &space));
    assert_int_equal(space, 3);
}

/* Every time for every space; numbers of graphs: OEIS A101228. */
TEST(all_small_graphs)
{
    static const uint32_t counts[] = {0, 1, 1, 4, 24, 267, 5647};
    told *t = calloc(1, sizeof *t);

    assert_non_null(t);
    for (uint32_t n = 1; n <= 6; n++) {
        uint32_t count = 0;
        int64_t code = -1;
        mpl_dag dag;

        for (; mpl_dag_next(n, &code, &dag); count++) {
            for (int sliding = 0; sliding < 2; sliding++) {
                mpl_pebble_point point[16];
                uint32_t n_points, space, at = 0, last = MPL_NONE;

                assert_ok(ctx, mpl_pebble_frontier(ctx, &dag, sliding, point, &n_points));
                assert_ok(ctx, pebble_once(ctx, &dag, sliding, &space));
                assert_int_equal(point[n_points - 1].time, n); /* each vertex once */
                assert_int_equal(point[n_points - 1].space, space);
                for (uint32_t s = 1; s <= space; s++) {
                    uint32_t time;

                    tell(&dag, sliding, s, t);
                    time = told_time(t);
                    if (time >= last)
                        continue;
                    last = time;
                    assert_true(at < n_points && point[at].space == s && point[at].time == time);
                    at++;
                }
                assert_int_equal(at, n_points);
            }
        }
        assert_int_equal(count, counts[n]);
    }
    free(t);
}

TEST(refusals)
{
    mpl_dag wide = {.n = 16};
    uint32_t time;

    assert_status(ctx, mpl_pebble_time(ctx, &wide, 3, true, &time), MPL_ELIMIT); /* 16 sinks */
    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_pebble_point point[16];
        uint32_t n;

        st = mpl_pebble_frontier(ctx, &example, true, point, &n);
    }
}

TESTS(trade_off, all_small_graphs, refusals)
