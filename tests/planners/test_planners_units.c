/* Whether concurrent operations are disjoint, with random places: the verifier's verdict is that of
 * all ranges each may touch, pair by pair (random_places.h). MPL_JUDGED=N: that many sets of
 * places. */
#include "tests/support/random_places.h"

enum { MOST_TOUCHES = 4096, N_OFFSETS = 8 };

typedef struct touches {
    const made *d;
    uint32_t n;
    mpl_op unit[MOST_TOUCHES];
    mpl_flow_spot at[MOST_TOUCHES];
    bool writes[MOST_TOUCHES];
    uint8_t *before; /* [n_ops][n_ops] of units */
} touches;

static mpl_op unit_of(const made *d, mpl_op op)
{
    while (d->g->op_block[op] != 0)
        op = d->g->block_owner[d->g->op_block[op]];
    return op;
}

static bool passes_on(const made *d, mpl_op op)
{
    const mpl_graph *g = d->g;
    mpl_value in, out;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
        return false;
    in = g->op_in[g->op_in_begin[op]], out = g->op_out[g->op_out_begin[op]];
    return out != MPL_NONE && d->map.value_root[in] == d->map.value_root[out] &&
           d->map.value_buffer[in] == d->map.value_buffer[out];
}

/* Where v lies before the program begins. */
static mpl_where place_of(const made *d, mpl_value v)
{
    const mpl_graph *g = d->g;
    mpl_value root = d->map.value_root[v];
    mpl_flow_row_info row;
    mpl_op op;

    if (d->map.value_buffer[root] != d->map.value_buffer[v])
        root = v;
    op = g->value_op[root];
    if (d->places.value_place[root] != MPL_NONE)
        return (mpl_where){.kind = MPL_WHERE_PLACE,
                           .id = d->places.value_place[root],
                           .offset = root != v ? d->map.value_offset[v] : 0};
    if (d->map.value_buffer[root] != MPL_NONE)
        return (mpl_where){.kind = MPL_WHERE_BUFFER,
                           .id = d->map.value_buffer[root],
                           .offset = root != v ? d->map.value_offset[v] : 0};
    if (g->value_role[root] == MPL_PARAMETER || (op != MPL_NONE && g->op_kind[op] == MPL_OP_case) ||
        (op != MPL_NONE && g->op_kind[op] == MPL_OP_while && !rows_of(d, root, &row)))
        return (mpl_where){.kind = MPL_WHERE_NOWHERE};
    return (mpl_where){
        .kind = MPL_WHERE_PINNED, .id = root, .offset = root != v ? d->map.value_offset[v] : 0};
}

static void touch(touches *t, mpl_op op, mpl_where w, uint64_t bytes, bool writes)
{
    spots s = {0};

    if (bytes == 0)
        return;
    all_spots(t->d, w, bytes, &s);
    for (uint32_t i = 0; i < s.n; i++) {
        assert_true(t->n < MOST_TOUCHES);
        t->unit[t->n] = unit_of(t->d, op);
        t->at[t->n] = s.at[i];
        t->writes[t->n++] = writes;
    }
}

static void touch_value(touches *t, mpl_op op, mpl_value v, bool writes)
{
    if (v != MPL_NONE)
        touch(t, op, place_of(t->d, v), t->d->g->value_bytes[v], writes);
}

static void touch_buffer(touches *t, mpl_op op, mpl_buffer b)
{
    if (b != MPL_NONE)
        touch(t, op, (mpl_where){.kind = MPL_WHERE_BUFFER, .id = b}, t->d->p->bytes[b], true);
}

/* What the loop copies: as each round begins or ends, or once on entry. */
static void touch_loop(touches *t, mpl_op op)
{
    const made *d = t->d;
    const mpl_graph *g = d->g;
    uint32_t body = body_of(d, op), n = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
    const mpl_value *param = g->block_param + g->block_param_begin[body];

    touch_value(t, op, param[0], true);
    for (uint32_t i = 0; i + 1 < g->block_n_params[body]; i++) {
        mpl_where first = place_of(d, param[1 + i]);

        first.n_rounds = 1, first.block[0] = body, first.round[0] = 0;
        if (i < n && d->places.result_copied[g->block_result_begin[body] + 1 + i])
            touch_value(t, op, param[1 + i], true);
        if (i >= n && d->places.in_copied[g->op_in_begin[op] + 2 + i])
            touch_value(t, op, param[1 + i], true);
        if (i < n && d->places.in_copied[g->op_in_begin[op] + 2 + i])
            touch(t, op, first, g->value_bytes[param[1 + i]], true);
    }
    for (uint32_t i = n; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        touch_value(t, op, g->op_out[g->op_out_begin[op] + i], true);
    touch_buffer(t, op, d->places.staging[body]);
}

static void touch_case(touches *t, mpl_op op)
{
    const made *d = t->d;
    const mpl_graph *g = d->g;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op];

    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        for (uint32_t k = 0; k <= n; k++) {
            uint32_t in = g->op_in_begin[op] + 1 + i,
                     body = g->op_body[g->op_body_begin[op] + (k < n ? k : 0)];

            if (k < n ? !d->places.result_copied[g->block_result_begin[body] + i]
                      : in >= g->op_in_begin[op + 1] || !d->places.in_copied[in])
                continue;
            d->went[op] = k;
            touch_value(t, op, g->op_out[g->op_out_begin[op] + i], true);
            d->went[op] = UNKNOWN;
        }
}

static void touch_all(touches *t)
{
    const made *d = t->d;
    const mpl_graph *g = d->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool control = (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0;

        if (!control && (d->map.op_nothing != NULL ? d->map.op_nothing[op] != 0 : passes_on(d, op)))
            continue;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            touch_value(t, op, g->op_in[i], false);
        for (uint32_t i = g->op_out_begin[op]; !control && i < g->op_out_begin[op + 1]; i++)
            touch_value(t, op, g->op_out[i], i > g->op_out_begin[op] || !passes_on(d, op));
        if (d->map.op_workspace != NULL)
            touch_buffer(t, op, d->map.op_workspace[op]);
        if (g->op_kind[op] == MPL_OP_while)
            touch_loop(t, op);
        if (g->op_kind[op] == MPL_OP_case)
            touch_case(t, op);
    }
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            touch_value(t, g->block_owner[b], g->block_result[g->block_result_begin[b] + i], false);
}

static void note_before(touches *t, mpl_value v, mpl_op reader)
{
    mpl_op maker = v != MPL_NONE ? t->d->g->value_op[v] : MPL_NONE;

    if (maker != MPL_NONE && unit_of(t->d, maker) != unit_of(t->d, reader))
        t->before[unit_of(t->d, maker) * t->d->g->n_ops + unit_of(t->d, reader)] = 1;
}

static void order_all(touches *t)
{
    const mpl_graph *g = t->d->g;
    uint32_t n = g->n_ops;

    for (mpl_op op = 0; op < n; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            note_before(t, g->op_in[i], op);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            note_before(t, g->block_result[g->block_result_begin[b] + i], g->block_owner[b]);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; t->before[a * n + k] != 0 && b < n; b++)
                t->before[a * n + b] |= t->before[k * n + b];
}

static bool all_apart(const touches *t)
{
    uint32_t n = t->d->g->n_ops;

    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (t->unit[i] != t->unit[k] && (t->writes[i] || t->writes[k]) &&
                !t->before[t->unit[i] * n + t->unit[k]] &&
                !t->before[t->unit[k] * n + t->unit[i]] && t->at[i].arena == t->at[k].arena &&
                t->at[i].begin < t->at[k].end && t->at[k].begin < t->at[i].end)
                return false;
    return true;
}

/* Judges one set of places, at first with two that overlap, then with others; returns how many are
 * disjoint. */
static uint32_t judge_offsets(made *d, touches *t)
{
    uint32_t n_apart = 0;

    order_all(t);
    for (uint32_t i = 0; i < N_OFFSETS; i++) {
        mpl_status st = mpl_flow_units_apart(&d->m);

        t->n = 0;
        touch_all(t);
        if ((st == MPL_OK) != all_apart(t))
            fail_msg("%s (%s); all ways: %s", mpl_status_name(st), d->ctx->message,
                     all_apart(t) ? "apart" : "not apart");
        n_apart += st == MPL_OK;
        draw_offsets(d, t->at[below(d, t->n)].of, t->at[below(d, t->n)].of);
    }
    return n_apart;
}

TEST(units_of_graphs)
{
    static touches t;
    uint32_t n_apart = 0, n = asked(1000);

    for (uint64_t seed = 1; seed <= n; seed++) {
        made d;

        make_places(&d, ctx, seed, seed % 8 == 0 ? 90 : 4 + seed % 13);
        assert_ok(ctx, mpl_flow_map_init(&d.m));
        for (mpl_op op = 0; op < d.g->n_ops; op++)
            d.went[op] = UNKNOWN;
        t = (touches){.d = &d};
        assert_ok(ctx, mpl_new(ctx, t.before, (size_t)d.g->n_ops * d.g->n_ops));
        n_apart += judge_offsets(&d, &t);
        mpl_free(ctx, t.before);
        unmake_places(&d);
    }
    print_message("%u plans: %u let operations run at the same time\n", n * N_OFFSETS, n_apart);
    assert_true(n_apart > n * N_OFFSETS / 8 && n_apart < n * N_OFFSETS / 8 * 7);
}

TESTS(units_of_graphs)
