/* test_runtime_control.c -- execution of loops and branches.
 *
 * Each program's outputs are also computed in C, from graph.h's definition of `while`, `case` and
 * `exit_unless`. Fault: a round too many or too few, values carried one after the other instead of
 * at once, slices and rows at the wrong offset, rows of rounds that did not run, wrong branches and
 * bypasses, state left from the previous run, uncounted copies. */
#include "tests/device/cuda_fake.h"
#include "tests/runtime/bound_graph.h"

#include "graphs/core/file.h"
#include "planners/verify/verify.h"

#define MOST 32 /* elements of all inputs, or of all outputs, of a program */

typedef struct program {
    const char *name, *graph; /* in tests/data/loops/programs.graphs */
    double run[6][8];         /* inputs, concatenated */
    uint32_t n_runs;
    uint64_t (*expect)(const double *in, double *out); /* bytes carried from round to round */
    bool may_copy; /* a loop carries its round number, or another's result: plans may copy that */
} program;

/* ---- programs ---- */

static uint64_t expect_count(const double *in, double *out)
{
    double trips = in[0], n = trips < 0 ? 0 : trips > 5 ? 5 : trips;

    out[0] = in[1] + n, out[1] = in[2] + n;
    return (uint64_t)n * 8;
}

static uint64_t expect_doubling(const double *in, double *out)
{
    double x = in[0], n = 0;

    while (x < 100 && n < 1000) /* the exit test precedes the doubling, and drops the round */
        x *= 2, n++;
    out[0] = x, out[1] = n;
    return (uint64_t)n * 12;
}

static uint64_t expect_late_exit(const double *in, double *out)
{
    double x = in[0], rounds = 0;

    for (; rounds < 6; rounds++) {
        if (x + 1 >= 4) /* the round's x + 1 and its row are dropped */
            break;
        out[1 + (int)rounds] = 10 * (x + 1), out[7 + 5 - (int)rounds] = x;
        x = x + 1;
    }
    out[0] = x;
    return (uint64_t)rounds * 4;
}

static uint64_t expect_shift(const double *in, double *out)
{
    double t[4];

    memcpy(t, in + 1, sizeof t);
    for (int i = 0; i < (int)in[0]; i++) {
        double z = t[0] - t[1] + t[2] + 2 * t[3];

        t[0] = t[1], t[1] = t[2], t[2] = t[3], t[3] = z;
    }
    memcpy(out, t, sizeof t);
    return (uint64_t)in[0] * 16;
}

static uint64_t expect_swap(const double *in, double *out)
{
    int n = (int)in[0];
    double p[5];

    memcpy(p, in + 1, sizeof p);
    for (int i = 0; i < n; i++) {
        double a = p[0], c = p[2];

        p[0] = p[1], p[1] = a;              /* swapped */
        p[2] = p[3], p[3] = p[4], p[4] = c; /* rotated among three */
    }
    memcpy(out, p, sizeof p);
    return (uint64_t)n * 20;
}

static uint64_t expect_scan(const double *in, double *out)
{
    double sum = 0;

    for (int i = 0; i < 4; i++) {
        const double *x = in + 2 * i, *y = in + 6 - 2 * i;

        if (sum > 20)
            break;
        sum += x[0] + x[1];
        out[1 + i] = sum;                                                       /* rows in order */
        out[5 + 2 * (3 - i)] = x[0] * y[0], out[6 + 2 * (3 - i)] = x[1] * y[1]; /* last first */
    }
    out[0] = sum;
    return (uint64_t)(4 - (sum > 20)) * 4;
}

static uint64_t expect_nested(const double *in, double *out)
{
    double x = in[1], carried = 0;

    for (int r = 0; r < 3; r++) {
        double y = x;

        for (int i = 0; i < (int)in[0] - r; i++, carried += 4)
            y = y + x * i + r;
        out[1 + r] = x;
        x = y;
        carried += 4;
    }
    out[0] = x;
    return (uint64_t)carried;
}

static uint64_t expect_case(const double *in, double *out)
{
    double x = in[1], y = in[2];

    out[0] = in[0] < 0 ? x : in[0] == 0 ? x + y : in[0] == 1 ? y : 7;
    out[1] = in[0] < 0 ? y : in[0] == 0 ? x : in[0] == 1 ? -x : x;
    out[2] = out[0] + out[1];
    return 0;
}

static uint64_t expect_bool_case(const double *in, double *out)
{
    out[0] = in[0] != 0 ? in[1] * 2 : in[1] + 1;
    out[1] = in[2];
    return 0;
}

/* A loop in a case in a loop. */
static uint64_t expect_mixture(const double *in, double *out)
{
    double x = in[1], carried = 0;

    for (int r = 0; r < (int)in[0]; r++, carried += 4) {
        if (r % 3 == 0)
            x = x + 1;
        else if (r % 3 == 1)
            for (int k = 0; k < r; k++, carried += 4)
                x = x * 2;
        out[1 + r] = x;
    }
    for (int r = (int)in[0]; r < 6; r++)
        out[1 + r] = 0;
    out[0] = x;
    return (uint64_t)carried;
}

static uint64_t expect_numbers(const double *in, double *out)
{
    out[0] = in[0] > 0 ? in[0] - 1 : 40; /* the round number, as carried */
    out[1] = in[0] > 0 ? 5 : 40;         /* a constant */
    out[2] = in[0] > 0 ? in[1] : 40;     /* a value of the whole graph */
    out[3] = in[0] > 1 ? in[0] - 2 : 40;
    for (int i = 0; i < 4; i++)
        out[4 + i] = i < in[0] ? i : 0;
    return (uint64_t)in[0] * 32;
}

static uint64_t expect_go(const double *in, double *out)
{
    double x = in[1], n = 0;

    for (bool go = in[0] != 0; go; n++)
        x = x + 1, go = x < 3;
    out[0] = x;
    return (uint64_t)n * 4;
}

static uint64_t expect_empty(const double *in, double *out)
{
    out[0] = in[0];
    return 0; /* a value carried to itself stays in place */
}

static const program programs[] = {
    ROW("count to trips, at most 5", "count",
        {{3, 1, 2}, {0, 1, 2}, {-2, 4, 4}, {9, 1, 5}, {5, 0, 0}}, 5, expect_count, false),
    ROW("doubling until a test", "doubling", {{1, 0}, {100, 0}, {99, 0}, {3, 0}}, 4,
        expect_doubling, false),
    ROW("a late test drops the row", "late", {{0}, {3}, {-9}, {2}}, 4, expect_late_exit, false),
    ROW("shift register of four taps", "shift",
        {{0, 1, 2, 3, 4}, {1, 1, 2, 3, 4}, {7, 1, -2, 3, 1}, {4, 5, 6, 7, 8}, {3, 5, 6, 7, 8}}, 5,
        expect_shift, false),
    ROW("carried values change places", "swap",
        ROW({0, 1, 2, 3, 4, 5}, {1, 1, 2, 3, 4, 5}, {2, 1, 2, 3, 4, 5}, {4, 1, 2, 3, 4, 5},
            {6, 1, 2, 3, 4, 5}),
        5, expect_swap, false),
    ROW("scans and rows, in both directions", "scans",
        {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 0, 0, 1, 1}}, 2, expect_scan, false),
    ROW("nested loops, the inner one captures", "nested", {{2, 1}, {0, 5}, {4, 1}, {1, 2}}, 4,
        expect_nested, true),
    ROW("case: branches, a bypass, empty ones", "cases",
        {{0, 3, 4}, {1, 3, 4}, {2, 3, 4}, {-1, 3, 4}, {-5, 8, 9}, {0, 1, 1}}, 6, expect_case,
        false),
    ROW("case by a bool", "truth", {{0, 3, 8}, {1, 3, 9}}, 2, expect_bool_case, false),
    ROW("a loop in a case in a loop", "mixture", {{6, 1}, {0, 2}, {3, -1}, {5, 2}}, 4,
        expect_mixture, true),
    ROW("the round, constants and inputs are carried", "numbers", {{0, 3}, {1, 3}, {2, 4}, {4, 9}},
        4, expect_numbers, true),
    ROW("go, from outside and from within", "going", {{0, 0}, {1, 0}, {1, 7}, {1, 1}}, 4, expect_go,
        false),
    ROW("values without bytes", "empty", {{4}}, 1, expect_empty, false),
};

static mpl_graph *graph_of(mpl_ctx *ctx, const program *p)
{
    char *text, *begin, head[40];
    mpl_graph *g;
    size_t size;

    snprintf(head, sizeof head, "\n\ngraph %s\n", p->graph);
    assert_ok(ctx, mpl_file_read(ctx, "tests/data/loops/programs.graphs", &text, &size));
    begin = strstr(text, head);
    assert_non_null(begin);
    begin += 2;
    size =
        strstr(begin, "\n\n") != NULL ? (size_t)(strstr(begin, "\n\n") - begin) + 1 : strlen(begin);
    assert_ok(ctx, mpl_text_read_memory(ctx, p->name, begin, size, &g));
    mpl_free(ctx, text);
    return g;
}

/* ---- running ---- */

static void put_number(mpl_type type, void *data, uint64_t i, double x)
{
    if (type == MPL_TYPE_f32)
        ((float *)data)[i] = (float)x;
    else if (type == MPL_TYPE_i64)
        ((int64_t *)data)[i] = (int64_t)x;
    else if (type == MPL_TYPE_i32)
        ((int32_t *)data)[i] = (int32_t)x;
    else
        ((uint8_t *)data)[i] = x != 0;
}

static double get_number(mpl_type type, const void *data, uint64_t i)
{
    return type == MPL_TYPE_f32   ? (double)((const float *)data)[i]
           : type == MPL_TYPE_i64 ? (double)((const int64_t *)data)[i]
           : type == MPL_TYPE_i32 ? (double)((const int32_t *)data)[i]
                                  : (double)((const uint8_t *)data)[i];
}

static void set_inputs(mpl_ctx *ctx, const mpl_graph *g, mpl_exec *exec, const double *in)
{
    int64_t data[MOST];

    for (uint32_t i = 0; i < g->n_inputs; i++) {
        mpl_value v = g->input[i];
        uint64_t n = 0;

        assert_true(mpl_shape_count(&g->value_shape[v], &n) && n <= MOST);
        for (uint64_t k = 0; k < n; k++)
            put_number((mpl_type)g->value_type[v], data, k, *in++);
        assert_ok(ctx, mpl_exec_set_input(exec, i, data));
    }
}

/* Describes the first wrong element of the outputs; NULL: all are right. */
static const char *other_output(mpl_ctx *ctx, const mpl_graph *g, mpl_exec *exec,
                                const double *want)
{
    static char text[200];
    int64_t data[MOST];

    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        uint64_t n = 0;

        assert_true(mpl_shape_count(&g->value_shape[v], &n) && n <= MOST);
        assert_ok(ctx, mpl_exec_output(exec, i, data));
        for (uint64_t k = 0; k < n; k++, want++)
            if (get_number((mpl_type)g->value_type[v], data, k) != *want)
                return snprintf(text, sizeof text, "%s[%u] is %g, not %g", g->value_name[v],
                                (unsigned)k, get_number((mpl_type)g->value_type[v], data, k),
                                *want),
                       text;
    }
    return NULL;
}

enum { EXACTLY, AT_MOST_NOTHING, WHATEVER }; /* how many bytes may be copied to carry values */

static void run_program(mpl_ctx *ctx, const program *p, const mpl_graph *g, mpl_exec *exec,
                        int carried_by_copies)
{
    for (uint32_t r = 0; r < p->n_runs; r++) {
        double want[MOST] = {0};
        uint64_t carried = p->expect(p->run[r], want);
        int64_t n_allocs;
        const char *other;
        mpl_exec_facts facts;

        set_inputs(ctx, g, exec, p->run[r]);
        n_allocs = ctx->n_allocs;
        assert_ok(ctx, mpl_exec_run(exec, NULL));
        if (carried_by_copies != WHATEVER)
            assert_int_equal(ctx->n_allocs, n_allocs);
        if ((other = other_output(ctx, g, exec, want)) != NULL)
            fail_msg("%s, run %u: %s", p->name, r, other);
        assert_ok(ctx, mpl_exec_facts_get(exec, &facts));
        if (carried_by_copies == EXACTLY)
            assert_int_equal(facts.loop_carry_bytes, carried);
        if (carried_by_copies == AT_MOST_NOTHING && facts.loop_carry_bytes > 0)
            fail_msg("%s, run %u: %u bytes carried", p->name, r, (unsigned)facts.loop_carry_bytes);
        assert_true(facts.copied_bytes >= facts.loop_carry_bytes);
    }
}

static const char *const backends[] = {"ref", "cpu", "cuda"}; /* cuda: on a device, or a fake one */

TEST(unshared_as_computed_by_hand)
{
    fake_reset();
    for (size_t k = 0; k < sizeof backends / sizeof *backends; k++) {
        const mpl_backend *backend = mpl_backend_find(backends[k]);
        mpl_device *dev;

        if (backend != NULL && mpl_backend_absent(backend) != NULL)
            backend = strcmp(backends[k], "cuda") == 0 ? fake_backend() : NULL;
        if (backend == NULL)
            continue;
        assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
        for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
            for (int checked = 0; checked < 2; checked++) {
                owned_graph *g = graph_of(ctx, &programs[i]);
                owned_memory mpl_op *order = mpl_alloc(ctx, g->n_ops, sizeof *order);
                mpl_exec *exec;

                assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
                assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, NULL, NULL, NULL,
                                            &(mpl_exec_options){.checked = checked}, &exec));
                run_program(ctx, &programs[i], g, exec, checked ? WHATEVER : EXACTLY);
                mpl_exec_free(ctx, exec);
            }
        backend->close(dev);
    }
    assert_int_equal(fake.n_races + fake.n_wild + fake.n_misused + fake.n_live, 0);
}

/* ---- under plans ---- */

/* Bits of `mask` switch options away from their defaults. */
enum { NO_PAIRS = 1, NO_VIEWS = 2, PLAN_ALL = 4, COPY_CARRIED = 8, ALIGN_64 = 16, N_MASKS = 32 };

static mpl_problem_options options_of(uint32_t mask)
{
    mpl_problem_options o = mpl_problem_options_default();

    o.in_place = (mask & NO_PAIRS) == 0;
    o.views = (mask & NO_VIEWS) == 0;
    o.pin_inputs = o.pin_weights = o.pin_outputs = (mask & PLAN_ALL) == 0;
    o.loop_copy = (mask & COPY_CARRIED) != 0;
    o.align = (mask & ALIGN_64) != 0 ? 64 : 8; /* slices and rows of 8 bytes can lie in the whole */
    return o;
}

/* A program, its problem and its device. */
typedef struct session {
    mpl_ctx *ctx;
    const program *program;
    const mpl_backend *ref;
    mpl_graph *g;
    mpl_device *dev;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
} session;

static void session_begin(mpl_ctx *ctx, const program *p, const char *order, uint32_t mask,
                          session *s)
{
    mpl_problem_options o = options_of(mask);

    *s = (session){.ctx = ctx, .program = p, .ref = mpl_backend_find("ref"), .g = graph_of(ctx, p)};
    s->order = mpl_alloc(ctx, s->g->n_ops, sizeof *s->order);
    assert_ok(ctx, s->ref->open(ctx, &(mpl_device_options){0}, &s->dev));
    assert_ok(ctx, mpl_order_of(ctx, s->g, mpl_order_find(order), s->order));
    assert_ok(ctx, mpl_problem_from_graph(ctx, s->g, s->order, &o, &s->p, &s->map));
}

static void session_end(session *s)
{
    mpl_value_map_free(s->ctx, s->map);
    mpl_problem_free(s->ctx, s->p);
    mpl_free(s->ctx, s->order);
    s->ref->close(s->dev);
    mpl_graph_free(s->ctx, s->g);
}

static mpl_status bind(session *s, const mpl_plan *plan, bool checked, mpl_exec **exec)
{
    return mpl_exec_new(s->ctx, s->ref, s->dev, s->g, s->order, s->p, s->map, plan,
                        &(mpl_exec_options){.checked = checked}, exec);
}

/* All planners, with and without pairs, views, pinned values, pointers; checked if the plan is
 * first fit. */
TEST(planned_as_computed_by_hand)
{
    static const char *const orders[] = {"given", "greedy"};

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (uint32_t mask = 0; mask < N_MASKS; mask++) {
            session s;

            session_begin(ctx, &programs[i], orders[mask % 3 == 1], mask, &s);
            for (uint32_t k = 0; mpl_planners[k] != NULL; k++) {
                bool checked = strcmp(mpl_planners[k]->name, "best_fit") == 0,
                     free = (mask & COPY_CARRIED) != 0;
                mpl_status st = MPL_EUNAVAIL;
                mpl_exec *exec;
                owned_plan *plan = NULL;
                mpl_run how = mpl_run_default(ctx);

                how.budget_ticks = 100000;
                if (mpl_planners[k]->plan != NULL && (mpl_planners[k]->traits & MPL_SPREADS) == 0)
                    st = mpl_planner_run(mpl_planners[k], &how, s.p, &plan);
                if (st == MPL_EUNAVAIL || st == MPL_ELIMIT)
                    continue;
                assert_ok(ctx, st);
                assert_ok(ctx, bind(&s, plan, checked, &exec));
                run_program(ctx, &programs[i], s.g, exec,
                            free || checked || programs[i].may_copy ? WHATEVER : AT_MOST_NOTHING);
                mpl_exec_free(ctx, exec);
            }
            session_end(&s);
        }
}

/* ---- planted faults ---- */

static mpl_plan *plan_apart(session *s)
{
    mpl_plan *plan;
    uint64_t end = 0;

    assert_ok(s->ctx, mpl_plan_new(s->ctx, s->p, &plan));
    for (mpl_buffer b = 0; b < s->p->n; b++) {
        plan->offset[b] = end;
        assert_true(mpl_align_bytes(end + s->p->bytes[b], s->p->align[b], &end));
    }
    plan->claim = MPL_FEASIBLE;
    assert_ok(s->ctx, mpl_verify(s->ctx, s->p, plan));
    return plan;
}

/* Whether any run of the program is refused or gives other outputs. */
static bool is_caught(session *s, const mpl_plan *plan, bool checked)
{
    bool caught = false;
    mpl_exec *exec;

    if (bind(s, plan, checked, &exec) != MPL_OK)
        return true;
    for (uint32_t r = 0; r < s->program->n_runs && !caught; r++) {
        double want[MOST] = {0};

        s->program->expect(s->program->run[r], want);
        set_inputs(s->ctx, s->g, exec, s->program->run[r]);
        caught =
            mpl_exec_run(exec, NULL) != MPL_OK || other_output(s->ctx, s->g, exec, want) != NULL;
    }
    mpl_exec_free(s->ctx, exec);
    return caught;
}

/* Two buffers that must not share are moved onto each other, each pair in turn. */
TEST(overlaps_are_caught)
{
    uint32_t n = 0, n_caught = 0;

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        session s;
        mpl_plan *plan;

        session_begin(ctx, &programs[i], "given", NO_PAIRS, &s);
        plan = plan_apart(&s);
        for (mpl_buffer a = 0; a < s.p->n; a++)
            for (mpl_buffer b = 0; b < a; b++) {
                uint64_t offset = plan->offset[a];
                bool caught;

                if (!mpl_conflict(s.p, a, b))
                    continue;
                plan->offset[a] = plan->offset[b];
                caught = is_caught(&s, plan, true);
                if (!caught)
                    print_message("not caught: %s: %s on %s\n", programs[i].name,
                                  s.p->buffer_name[a], s.p->buffer_name[b]);
                n++, n_caught += caught;
                plan->offset[a] = offset;
            }
        mpl_plan_free(ctx, plan);
        session_end(&s);
    }
    print_message("%u of %u overlaps caught\n", n_caught, n);
    /* one pair lies in two branches; its conflict is only conservative */
    assert_true(n > 80 && n_caught + 1 >= n);
}

/* Wrong places, each tried wherever it applies. */
enum {
    ONE_FIRST_MORE, /* the cycle begins a round later */
    ONE_FIRST_LESS,
    ITEMS_SWAPPED,   /* swaps the first two items of a cycle, a final place or the branches */
    LAST_ITEM_AGAIN, /* a cycle one item too short */
    SLICES_TOO_LONG,
    SLICES_TOO_SHORT,
    SLICES_REVERSED,
    NOT_COPIED_IN, /* a missing copy */
    NOT_COPIED_OUT,
    STAYS, /* a value is not moved at all */
    N_FAULTS
};

/* Applies fault `kind` at place, operand or result `at`; false if it does not apply. */
static bool plant(mpl_value_map *map, const mpl_graph *g, int kind, uint32_t at)
{
    mpl_places *places = map->places;
    mpl_place *p = at < places->n ? &places->place[at] : NULL;
    bool cycle = p != NULL && p->kind == MPL_PLACE_CYCLE,
         slice = p != NULL && p->kind == MPL_PLACE_SLICE;
    uint32_t swap;

    switch (kind) {
    case ONE_FIRST_MORE:
        return cycle && p->n > p->n_first + 1 && (p->n_first++, true);
    case ONE_FIRST_LESS:
        return cycle && p->n_first > 0 && (p->n_first--, true);
    case ITEMS_SWAPPED:
        if (p == NULL || p->n < 2 || places->item[p->begin] == places->item[p->begin + 1])
            return false;
        swap = places->item[p->begin];
        places->item[p->begin] = places->item[p->begin + 1];
        places->item[p->begin + 1] = swap;
        return true;
    case LAST_ITEM_AGAIN:
        if (!cycle || p->n < 2 ||
            places->item[p->begin + p->n - 1] == places->item[p->begin + p->n - 2])
            return false;
        places->item[p->begin + p->n - 1] = places->item[p->begin + p->n - 2];
        return true;
    case SLICES_TOO_LONG:
        return slice && (p->bytes *= 2, true);
    case SLICES_TOO_SHORT:
        return slice && (p->bytes /= 2, true);
    case SLICES_REVERSED:
        return slice && (p->reversed = !p->reversed, true);
    case NOT_COPIED_IN:
        return at < g->op_in_begin[g->n_ops] && places->in_copied[at] &&
               (places->in_copied[at] = 0, true);
    case NOT_COPIED_OUT:
        for (uint32_t b = 1; b < g->n_blocks; b++)
            if (at >= g->block_result_begin[b] &&
                at < g->block_result_begin[b] + g->block_n_results[b])
                return places->result_copied[at] && (places->result_copied[at] = 0, true);
        return false;
    default:
        if (at >= g->n_values || places->value_place[at] == MPL_NONE ||
            places->place[places->value_place[at]].kind != MPL_PLACE_CYCLE)
            return false;
        places->value_place[at] = places->item[places->place[places->value_place[at]].begin];
        return true;
    }
}

TEST(wrong_places_are_caught)
{
    uint32_t n[N_FAULTS] = {0}, n_caught[N_FAULTS] = {0};

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (uint32_t mask = 0; mask <= COPY_CARRIED; mask += COPY_CARRIED)
            for (int kind = 0; kind < N_FAULTS; kind++)
                for (uint32_t at = 0; at < 200; at++) {
                    session s;
                    owned_plan *plan;

                    session_begin(ctx, &programs[i], "given", mask, &s);
                    plan = plan_apart(&s);
                    if (plant(s.map, s.g, kind, at)) {
                        n[kind]++;
                        n_caught[kind] += is_caught(&s, plan, true);
                    }
                    session_end(&s);
                }
    for (int kind = 0; kind < N_FAULTS; kind++) { /* cycle never completed, branch never taken */
        print_message("fault %d: %u of %u caught\n", kind, n_caught[kind], n[kind]);
        assert_true(n[kind] > 0 && n_caught[kind] * 10 >= n[kind] * 8);
    }
}

/* ---- failures ---- */

static const program *program_of(const char *name)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].name, name) == 0)
            return &programs[i];
    fail_msg("no program '%s'", name);
    return NULL;
}

/* A branch out of range without a bypass: the error names the operation; the next run succeeds. */
TEST(wrong_branches_are_named)
{
    static const struct {
        const char *program;
        double in[3];
        const char *says;
    } rows[] =
        ROW({"case: branches, a bypass, empty ones",
             {3, 1, 1},
             "'p' (case) is to take branch 3; it has 3"},
            {"case by a bool", {-1, 1, 0}, NULL},
            {"case without a bypass", {-1, 1, 0}, "'p' (case) is to take no branch (-1)"},
            {"case without a bypass", {2, 1, 0}, "'p' (case) is to take branch 2; it has 1"});
    static const program no_bypass = ROW("case without a bypass", "only", {{0, 0}}, 1, NULL, false);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const program *p =
            strcmp(rows[i].program, no_bypass.name) == 0 ? &no_bypass : program_of(rows[i].program);
        session s;
        owned_plan *plan;
        mpl_exec *exec;

        session_begin(ctx, p, "given", 0, &s);
        plan = plan_apart(&s);
        assert_ok(ctx, bind(&s, plan, false, &exec));
        set_inputs(ctx, s.g, exec, rows[i].in);
        assert_status(ctx, mpl_exec_run(exec, NULL), rows[i].says != NULL ? MPL_EINPUT : MPL_OK);
        if (rows[i].says != NULL && strstr(ctx->message, rows[i].says) == NULL)
            fail_msg("'%s' does not say \"%s\"", ctx->message, rows[i].says);
        set_inputs(ctx, s.g, exec, (const double[]){0, 0, 0});
        assert_ok(ctx, mpl_exec_run(exec, NULL));
        mpl_exec_free(ctx, exec);
        session_end(&s);
    }
}

TEST(failing_allocations_leave_nothing)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        session s;
        owned_plan *plan;
        mpl_exec *exec;

        session_begin(ctx, &programs[i], "given", PLAN_ALL, &s);
        plan = plan_apart(&s);
        EACH_ALLOCATION_FAILS (ctx, st) {
            st = bind(&s, plan, true, &exec);
            if (st == MPL_OK)
                mpl_exec_free(ctx, exec);
        }
        session_end(&s);
    }
}

/* Writes a byte past the operation's memory, outside of every value. */
static mpl_status run_wild(mpl_device *dev, mpl_prepared *prepared, const mpl_op_call *call)
{
    const mpl_graph *g = call->graph;
    mpl_status st = mpl_backend_find("ref")->run_op(dev, prepared, call);

    if (strcmp(g->op_name[call->op], "q") == 0)
        ((char *)call->out[0].data)[g->value_bytes[g->op_out[g->op_out_begin[call->op]]]] = 0;
    return st;
}

TEST(wild_writes_are_caught)
{
    session s;
    owned_plan *plan;
    mpl_exec *exec;
    mpl_backend wild = *mpl_backend_find("ref");

    session_begin(ctx, program_of("doubling until a test"), "given", ALIGN_64, &s);
    wild.run_op = run_wild;
    s.ref = &wild;
    plan = plan_apart(&s);
    for (int checked = 0; checked < 2; checked++) {
        assert_ok(ctx, bind(&s, plan, checked, &exec));
        set_inputs(ctx, s.g, exec, s.program->run[0]);
        assert_status(ctx, mpl_exec_run(exec, NULL), checked ? MPL_EINVALID : MPL_OK);
        mpl_exec_free(ctx, exec);
    }
    if (strstr(ctx->message, "where nothing is alive") == NULL ||
        strstr(ctx->message, "'q'") == NULL)
        fail_msg("'%s' does not name the operation", ctx->message);
    session_end(&s);
}

/* ---- concurrent operations ---- */

static uint64_t expect_two_loops(const double *in, double *out)
{
    double a = -in[1], p = in[1], q = in[2];

    for (int i = 0; i < (int)in[0]; i++)
        p = p * a, q = q + a;
    out[0] = p - q;
    return 0;
}

/* Two loops that capture one operation's result: each is one operation to the scheduler. */
TEST(loops_run_at_the_same_time)
{
    static const program two =
        ROW("two loops", "two", {{5, 2, 3}, {0, 1, 8}, {7, -1, 2}}, 3, expect_two_loops, false);
    session s;
    owned_plan *plan;
    mpl_before *before;
    mpl_exec *exec;

    session_begin(ctx, &two, "given", 0, &s);
    plan = plan_apart(&s);
    before = mpl_alloc(ctx, 1, sizeof *before); /* no buffer is before another: nothing is shared */
    before->n = s.p->n;
    before->n_words = (s.p->n + 63) / 64;
    before->row = mpl_alloc(ctx, (size_t)before->n * before->n_words, sizeof *before->row);
    before->red_begin = mpl_alloc(ctx, (size_t)before->n + 1, sizeof *before->red_begin);
    before->red_item = mpl_alloc(ctx, 1, sizeof *before->red_item);
    s.p->before = before;
    assert_ok(ctx, bind(&s, plan, false, &exec));
    for (uint32_t i = 0; i < 30; i++) {
        double want[MOST];

        two.expect(two.run[i % 3], want);
        set_inputs(ctx, s.g, exec, two.run[i % 3]);
        assert_ok(ctx, mpl_order_random(ctx, s.g, i + 1, s.order));
        assert_ok(ctx, mpl_exec_set_order(exec, s.order));
        assert_ok(ctx, mpl_exec_run(exec, NULL));
        assert_null(other_output(ctx, s.g, exec, want));
        set_inputs(ctx, s.g, exec, two.run[(i + 1) % 3]);
        two.expect(two.run[(i + 1) % 3], want);
        assert_ok(ctx, run_by(exec, 3));
        assert_null(other_output(ctx, s.g, exec, want));
    }
    mpl_exec_free(ctx, exec);
    session_end(&s);
}

TESTS(unshared_as_computed_by_hand, planned_as_computed_by_hand, overlaps_are_caught,
      wrong_places_are_caught, wrong_branches_are_named, failing_allocations_leave_nothing,
      loops_run_at_the_same_time, wild_writes_are_caught)
