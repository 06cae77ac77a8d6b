/* Where random places may be, whether two are equal, and what is a slice or a row of what, at
 * random points of a run: the verifier's verdict is that of all paths of control (random_places.h).
 * MPL_JUDGED=N: that many sets of places. */
#include "tests/support/random_places.h"

/* Removes the first n slices. */
static void drop_slices(found *f, uint32_t n)
{
    f->n_slices -= n;
    for (uint32_t k = 0; k < f->n_slices; k++) {
        f->block[k] = f->block[k + n], f->round[k] = f->round[k + n];
        f->bytes[k] = f->bytes[k + n], f->reversed[k] = f->reversed[k + n];
    }
}

static bool one_place(const found *a, const found *b)
{
    if (a->n_slices != b->n_slices || (a->n_slices > 0 && a->offset != b->offset))
        return false;
    for (uint32_t k = 0; k < a->n_slices; k++)
        if (a->block[k] != b->block[k] || a->bytes[k] != b->bytes[k] ||
            a->round[k] != b->round[k] || a->reversed[k] != b->reversed[k])
            return false;
    return a->arena == b->arena && a->begin + a->offset == b->begin + b->offset;
}

/* Whether the range that a, without its first slices, lies in is always where b is. */
static bool always_same(const made *d, mpl_where a, uint32_t n_slices, mpl_where b)
{
    found x = find_place(d, a), y = find_place(d, b);
    mpl_op ask = x.ask != MPL_NONE ? x.ask : y.ask;
    bool same = !x.nowhere && !y.nowhere;

    if (!same || ask == MPL_NONE)
        return same && (drop_slices(&x, n_slices), one_place(&x, &y));
    for (int64_t k = 0; k < n_ways(d, ask); k++) {
        d->went[ask] = k;
        same = same && always_same(d, a, n_slices, b);
        d->went[ask] = UNKNOWN;
    }
    return same;
}

/* ---- places ---- */

/* A point of a run: inside some loops, each in a block of the previous one; at times after another
 * loop or case. */
static void draw_point(made *d)
{
    const mpl_graph *g = d->g;
    uint32_t block = below(d, g->n_blocks);
    mpl_op left = below(d, g->n_ops);

    for (uint32_t b = block; b != 0; b = g->block_parent[b])
        if (g->op_kind[g->block_owner[b]] == MPL_OP_while)
            d->m.round[b] = below(d, mpl_flow_classes(&d->m, b));
    if (chance(d, 3) && (mpl_op_table[g->op_kind[left]].traits & MPL_CONTROL) != 0 &&
        g->op_kind[left] != MPL_OP_exit_unless) {
        d->went[left] = below(d, (uint32_t)n_ways(d, left));
        d->m.taken[left] = (uint32_t)d->went[left] + 1;
    }
}

static mpl_where draw_where(made *d)
{
    mpl_where w = {.kind = (mpl_where_kind)below(d, 8)};

    if (w.kind > MPL_WHERE_PINNED)
        w.kind = MPL_WHERE_PLACE;
    w.id = below(d, w.kind == MPL_WHERE_PLACE    ? N_PLACES
                    : w.kind == MPL_WHERE_BUFFER ? N_BUFFERS
                                                 : d->g->n_values);
    w.offset = chance(d, 4) ? 8 * below(d, 3) : 0;
    for (uint32_t b = 1; b < d->g->n_blocks && w.n_rounds < 4; b++)
        if (d->g->op_kind[d->g->block_owner[b]] == MPL_OP_while && chance(d, 6))
            assert_ok(d->ctx,
                      mpl_where_in_round(&d->m, &w, b, below(d, mpl_flow_classes(&d->m, b))));
    return w;
}

static void check_spots(made *d, mpl_where w)
{
    mpl_flow_spots got = {0};
    spots want = {0};
    uint64_t bytes = 1 + below(d, 100);

    all_spots(d, w, bytes, &want);
    assert_ok(d->ctx, mpl_where_spots(&d->m, w, bytes, &got));
    assert_int_equal(got.n, want.n);
    for (size_t i = 0; i < got.n; i++) {
        bool there = false;

        for (uint32_t k = 0; k < want.n; k++)
            there = there || one_spot(&got.at[i], &want.at[k]);
        assert_true(there);
    }
    mpl_free(d->ctx, got.at);
}

/* Whether slice k of those that certainly contain w is that of the current round. */
static bool is_at_hand(const made *d, const found *f, uint32_t k, uint32_t block, uint64_t bytes,
                       bool reversed)
{
    return k < f->n_slices && f->block[k] == block && f->bytes[k] == bytes &&
           f->reversed[k] == reversed && f->round[k] == d->m.round[block];
}

/* Slices, correct or wrong, of their whole or of anything else. */
static void check_slice(made *d, uint32_t *n_slices)
{
    mpl_where a = draw_where(d), b = draw_where(d);
    const mpl_place *p = &d->place[a.kind == MPL_WHERE_PLACE ? a.id : 0];
    uint32_t block = chance(d, 4) || p->kind != MPL_PLACE_SLICE ? below(d, d->g->n_blocks) : p->of;
    uint64_t bytes = chance(d, 6) ? 16 : p->bytes;
    bool reversed = chance(d, 6) ? chance(d, 2) : p->reversed, is;
    found f;

    if (p->kind == MPL_PLACE_SLICE && !chance(d, 4)) {
        b = a;
        b.id = d->item[p->begin];
    }
    f = find_place(d, a);
    assert_ok(d->ctx, mpl_where_slice(&d->m, a, b, block, bytes, reversed, &is));
    assert_int_equal(is, is_at_hand(d, &f, 0, block, bytes, reversed) && always_same(d, a, 1, b));
    *n_slices += is;
}

/* A value, preferably an output of loops around the point. */
static mpl_value draw_output(made *d)
{
    const mpl_graph *g = d->g;
    mpl_value v = below(d, g->n_values);
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_kind[op] == MPL_OP_while && d->m.round[body_of(d, op)] != MPL_NONE &&
                g->op_out[i] != MPL_NONE && chance(d, ++n))
                v = g->op_out[i];
    return v;
}

/* Places in slices of stacked rows: as they are stacked, or not. */
static void check_rows(made *d, uint32_t *n_rows)
{
    mpl_value v = draw_output(d);
    mpl_flow_row_info row, got;
    mpl_where w = {.kind = MPL_WHERE_PLACE, .id = below(d, N_PLACES)};
    mpl_place *p = &d->place[w.id];
    uint64_t bytes = 8 << below(d, 5);
    bool rows = rows_of(d, v, &row), is, want = false;
    found f;

    assert_int_equal(mpl_flow_row(d->g, v, &got), rows);
    if (rows)
        assert_true(row.block == got.block && row.result == got.result && row.bytes == got.bytes &&
                    row.reversed == got.reversed);
    if (rows && p->kind == MPL_PLACE_SLICE) {
        p->of = chance(d, 8) || mpl_while_most_rounds(d->g, d->g->block_owner[row.block]) < 0
                    ? p->of
                    : row.block;
        p->bytes = chance(d, 8) ? p->bytes : row.bytes;
        p->reversed = chance(d, 8) ? p->reversed : row.reversed;
        d->places.value_place[v] = chance(d, 8) ? MPL_NONE : d->item[p->begin];
        d->map.value_root[v] = v;
    }
    f = find_place(d, w);
    for (uint32_t k = 0; rows && d->m.round[row.block] != MPL_NONE && k < f.n_slices; k++)
        want = want ||
               (bytes <= row.bytes && is_at_hand(d, &f, k, row.block, row.bytes, row.reversed) &&
                always_same(d, w, k + 1, mpl_flow_where(&d->m, v)));
    assert_ok(d->ctx, mpl_where_is_row(&d->m, w, bytes, v, &is));
    assert_int_equal(is, want);
    *n_rows += is;
}

static bool reaches(const made *d, uint32_t id, mpl_op op)
{
    const mpl_place *p = &d->place[id];
    bool of_block = p->kind == MPL_PLACE_CYCLE || p->kind == MPL_PLACE_SLICE;
    bool here = p->kind > MPL_PLACE_PINNED && (of_block ? d->g->block_owner[p->of] : p->of) == op;

    for (uint32_t i = 0; i < p->n; i++)
        here = here || reaches(d, d->item[p->begin + i], op);
    return here;
}

static void check_places(made *d, uint32_t *n_same)
{
    mpl_where a = draw_where(d), b = chance(d, 2) ? a : draw_where(d);
    mpl_op op = below(d, d->g->n_ops);
    bool same;

    if (b.kind == a.kind && chance(d, 4))
        b.id = a.id;
    if (chance(d, 8))
        b.offset += 8;
    check_spots(d, a);
    assert_ok(d->ctx, mpl_where_same(&d->m, a, b, &same));
    assert_int_equal(same, always_same(d, a, 0, b));
    assert_int_equal(mpl_where_depends(&d->m, a, op),
                     a.kind == MPL_WHERE_PLACE && reaches(d, a.id, op));
    *n_same += same;
}

/* Rounds of one class have equal cells throughout. */
static void check_classes(const made *d)
{
    for (uint32_t b = 1; b < d->g->n_blocks; b++) {
        uint32_t first = 2, period = 1;

        for (uint32_t i = 0; i < N_PLACES; i++)
            if (d->place[i].kind == MPL_PLACE_CYCLE && d->place[i].of == b) {
                uint32_t length = d->place[i].n - d->place[i].n_first, most = period;

                first = first > d->place[i].n_first + 2 ? first : d->place[i].n_first + 2;
                while (most % length != 0)
                    most += period;
                period = most;
            }
        assert_int_equal(d->m.n_first[b], first);
        assert_int_equal(d->m.period[b], period);
        for (uint32_t round = 0; round < 40; round++) {
            uint32_t lowest = round;

            while (lowest >= first + period)
                lowest -= period;
            assert_int_equal(mpl_flow_class(&d->m, b, round), lowest);
        }
    }
}

TEST(places_of_points)
{
    uint32_t n_same = 0, n_slices = 0, n_rows = 0, n = 0;

    for (uint64_t seed = 1; seed <= asked(300); seed++) {
        made d;

        make_places(&d, ctx, seed, 24);
        assert_ok(ctx, mpl_flow_map_init(&d.m));
        check_classes(&d);
        for (mpl_op op = 0; op < d.g->n_ops; op++) {
            d.went[op] = UNKNOWN;
            if (d.g->op_kind[op] == MPL_OP_while) {
                assert_int_equal(d.m.rounds[op], rounds_of(&d, op));
                assert_int_equal(d.m.most[op], most_rounds_of(&d, op));
            }
        }
        draw_point(&d);
        for (uint32_t i = 0; i < 60; i++, n++) {
            check_places(&d, &n_same);
            check_slice(&d, &n_slices);
            check_rows(&d, &n_rows);
        }
        unmake_places(&d);
    }
    print_message("%u pairs of places: %u the same, %u a slice, %u a row\n", n, n_same, n_slices,
                  n_rows);
    assert_true(n_same > n / 32 && n_slices > n / 64 && n_rows > n / 256);
}

TESTS(places_of_points)
