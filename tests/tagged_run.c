/* tagged_run.c -- see tagged_run.h.
 *
 * Nothing is computed: an operation that runs writes tags to its results' bytes, which say whose bytes they are and of which rounds.
 * What a value's bytes should be is kept beside memory, and each read compares the two, byte by byte. All that would be
 * decided by data is decided freely: how many rounds, which branch, which exit test. Executions are run one after the other from
 * their beginning, by the list of decisions; one that comes to where another was, in the same state, ends there. */
#include "tests/tagged_run.h"

#include "graphs/base/rng.h"

enum { MOST_CHOICES = 400, MOST_SEEN = 1 << 12, MOST_EXECUTIONS = 2000, MOST_CARRIED = 16, MOST_BYTES = 64 };
enum { UNDECIDED = -2, NO_BRANCH = -1 };

typedef enum way { GO, LEAVE, STOP } way; /* on; out of the loop; out of the execution */

typedef struct spot {
    uint32_t slab; /* arenas of the plan, then the own memory of each value; MPL_NONE: nowhere */
    uint64_t at;
} spot;

typedef struct machine {
    const mpl_graph *g;
    const mpl_value_map *map;
    const mpl_problem *p;
    const mpl_plan *plan;
    uint32_t n_arenas, n_slabs;
    uint64_t *slab_begin;     /* [n_slabs + 1] into memory */
    uint64_t *truth_begin;    /* [n_values + 1] into truth */
    uint64_t *memory, *truth; /* tags of bytes: which they have, and which each value's should have */
    uint8_t *made;            /* [n_values] */
    spot *bound;              /* [n_values] where it was when it was made */
    uint8_t *counted;         /* [n_blocks] the body's loop is in a round, or was, */
    uint64_t *round;          /* and in this one: behind the loop, how many there were */
    uint8_t *done;            /* [n_ops] the loop was left */
    int32_t *taken;           /* [n_ops] by a case */
    spot *final;              /* [n_places] */

    uint8_t choice[MOST_CHOICES], of[MOST_CHOICES]; /* decisions: which of how many */
    uint32_t n_choices, at;
    uint64_t *seen; /* [MOST_SEEN] states, by hash; 0: none */
    uint32_t n_seen;
    tagged_verdict verdict;
} machine;

/* ---- tags --------------------------------------------------------------------------------------------------------- */

enum { WRITTEN = 1, FROM_OUTSIDE, NO_ROW, ZERO, ROUND, RUBBISH };

static uint64_t mix(uint64_t hash, uint64_t x)
{
    return mpl_rng_mix(hash ^ (x + UINT64_C(0x9e3779b97f4a7c15) * (hash | 1)));
}

/* Which contents of v these are: those of the rounds at hand. */
static uint64_t tag_of(const machine *m, int what, mpl_value v)
{
    uint64_t tag = mix((uint64_t)what, v);

    for (uint32_t b = m->g->value_block[v]; b != 0; b = m->g->block_parent[b])
        tag = m->counted[b] ? mix(tag, m->round[b]) : tag;
    return tag;
}

static uint64_t bytes_of(const machine *m, mpl_value v)
{
    return m->g->value_bytes[v];
}

static uint64_t *truth_of(const machine *m, mpl_value v)
{
    return m->truth + m->truth_begin[v];
}

static uint64_t *memory_at(const machine *m, spot s)
{
    return m->memory + m->slab_begin[s.slab] + s.at;
}

/* From now on v is new contents. */
static void make_new(machine *m, int what, mpl_value v)
{
    uint64_t tag = tag_of(m, what, v);

    for (uint64_t i = 0; i < bytes_of(m, v); i++)
        truth_of(m, v)[i] = mix(tag, i);
    m->made[v] = 1;
}

/* ---- what is wrong ------------------------------------------------------------------------------------------------ */

static way wrong(machine *m, const char *what, const char *who, const char *whose)
{
    if (m->verdict.right)
        snprintf(m->verdict.why, sizeof m->verdict.why, "%.80s: %.40s, %.40s", what, who, whose);
    m->verdict.right = false;
    return STOP;
}

static const char *name_of(const machine *m, mpl_value v)
{
    return v != MPL_NONE ? m->g->value_name[v] : "nothing";
}

#define TRY(step)                                                                                            \
    do {                                                                                                     \
        way w_ = (step);                                                                                     \
        if (w_ != GO)                                                                                        \
            return w_;                                                                                       \
    } while (0)

/* ---- where values lie --------------------------------------------------------------------------------------------- */

static const mpl_place *place_of(const machine *m, uint32_t id)
{
    return &m->map->places->place[id];
}

static uint32_t item_of(const machine *m, uint32_t id, uint64_t i)
{
    return m->map->places->item[place_of(m, id)->begin + i];
}

static mpl_op owner_of(const machine *m, uint32_t block)
{
    return m->g->block_owner[block];
}

static uint64_t slice_number(const machine *m, uint32_t block, bool reversed)
{
    uint64_t most = (uint64_t)mpl_while_most_rounds(m->g, owner_of(m, block));

    return reversed ? most - 1 - m->round[block] : m->round[block];
}

/* The item of a place that decides which it is; -1: nothing has decided yet. */
static int64_t chosen_item(const machine *m, const mpl_place *p)
{
    uint64_t round;

    if (p->kind == MPL_PLACE_BRANCH)
        return m->taken[p->of] == UNDECIDED   ? -1
               : m->taken[p->of] == NO_BRANCH ? (int64_t)p->n - 1
                                              : m->taken[p->of];
    if (p->kind == MPL_PLACE_FINAL)
        return !m->done[p->of] ? -1 : m->round[m->g->op_body[m->g->op_body_begin[p->of]]] > 0;
    if (!m->counted[p->of])
        return -1;
    round = m->round[p->of];
    if (p->kind == MPL_PLACE_SLICE || round < p->n_first)
        return p->kind == MPL_PLACE_SLICE ? 0 : (int64_t)round;
    return (int64_t)(p->n_first + (round - p->n_first) % (p->n - p->n_first));
}

/* False: that is not decided. */
static bool evaluate(const machine *m, uint32_t id, spot *out)
{
    uint64_t offset = 0;

    for (;;) {
        const mpl_place *p = place_of(m, id);
        int64_t i;

        if (p->kind == MPL_PLACE_BUFFER) {
            *out = (spot){mpl_plan_arena(m->p, m->plan, p->of), m->plan->offset[p->of] + offset};
            return true;
        }
        if (p->kind == MPL_PLACE_PINNED) {
            *out = (spot){m->n_arenas + p->of, offset};
            return true;
        }
        i = chosen_item(m, p);
        if (i < 0)
            return false;
        if (p->kind == MPL_PLACE_FINAL && i == 1) {
            *out = m->final[id];
            out->at += offset;
            return out->slab != MPL_NONE;
        }
        if (p->kind == MPL_PLACE_SLICE)
            offset += slice_number(m, p->of, p->reversed != 0) * p->bytes;
        id = item_of(m, id, (uint64_t)i);
    }
}

static spot buffer_spot(const machine *m, mpl_buffer b)
{
    return (spot){mpl_plan_arena(m->p, m->plan, b), m->plan->offset[b]};
}

/* Whether v, which has no place and no buffer, has no memory either: nobody reads it. */
static bool is_nowhere(const machine *m, mpl_value v)
{
    const mpl_graph *g = m->g;
    mpl_op op = g->value_op[v];

    if (g->value_role[v] == MPL_PARAMETER || op == MPL_NONE)
        return g->value_role[v] == MPL_PARAMETER;
    if (g->op_kind[op] == MPL_OP_case)
        return true;
    for (uint32_t i = 0;
         g->op_kind[op] == MPL_OP_while && i < (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0); i++)
        if (g->op_out[g->op_out_begin[op] + i] == v)
            return true;
    return false;
}

static bool where(const machine *m, mpl_value v, spot *out)
{
    mpl_value root = m->map->value_root[v];
    mpl_buffer b = m->map->value_buffer[v];
    uint64_t inside = m->map->value_offset != NULL ? m->map->value_offset[v] : 0;
    bool decided = true;

    *out = (spot){MPL_NONE, 0};
    if (bytes_of(m, v) == 0)
        return true;
    if (m->map->places->value_place[root] != MPL_NONE) {
        decided = evaluate(m, m->map->places->value_place[root], out);
        out->at += inside;
    } else if (b != MPL_NONE) {
        *out = (spot){mpl_plan_arena(m->p, m->plan, b), m->plan->offset[b] + inside};
        out->at -= m->p->inside != NULL ? m->p->inside_at[b] : 0;
    } else if (!is_nowhere(m, root)) {
        *out = (spot){m->n_arenas + root, inside};
    }
    return decided;
}

static way bind(machine *m, mpl_value v)
{
    return where(m, v, &m->bound[v]) ? GO : wrong(m, "its place is not decided", name_of(m, v), "");
}

/* ---- reading and writing ------------------------------------------------------------------------------------------ */

static bool same_spot(spot a, spot b)
{
    return a.slab == b.slab && a.at == b.at;
}

static bool meet(spot a, uint64_t a_bytes, spot b, uint64_t b_bytes)
{
    return a.slab != MPL_NONE && a.slab == b.slab && a.at < b.at + b_bytes && b.at < a.at + a_bytes;
}

static bool stands(const machine *m, mpl_value v)
{
    spot s = m->bound[v];

    return bytes_of(m, v) == 0 ||
           (m->made[v] && s.slab != MPL_NONE &&
            memcmp(memory_at(m, s), truth_of(m, v), bytes_of(m, v) * sizeof *m->memory) == 0);
}

static way find(machine *m, mpl_value v, const char *who)
{
    return v == MPL_NONE || stands(m, v) ? GO : wrong(m, "other bytes are read", who, name_of(m, v));
}

/* `bytes` bytes of `slab` are the caller's: nothing may be written there. */
static bool is_callers(const machine *m, uint32_t slab)
{
    return slab >= m->n_arenas && (m->g->value_role[slab - m->n_arenas] == MPL_INPUT ||
                                   m->g->value_role[slab - m->n_arenas] == MPL_WEIGHT);
}

static way put(machine *m, spot to, const uint64_t *tags, uint64_t bytes, mpl_value v)
{
    if (is_callers(m, to.slab))
        return wrong(m, "written over the caller's memory", name_of(m, v), "");
    memmove(memory_at(m, to), tags, bytes * sizeof *tags);
    return GO;
}

/* New contents of v, where it lies. */
static way lay_down(machine *m, mpl_value v)
{
    return m->bound[v].slab != MPL_NONE && bytes_of(m, v) > 0
               ? put(m, m->bound[v], truth_of(m, v), bytes_of(m, v), v)
               : GO;
}

static void fill(machine *m, spot at, uint64_t tag, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        memory_at(m, at)[i] = tag;
}

/* `bytes` bytes at `from` are handed to `to`, as part of value v: copied, or there already. */
static way hand_on(machine *m, spot from, spot to, uint64_t bytes, bool copied, mpl_value v)
{
    if (bytes == 0 || from.slab == MPL_NONE || to.slab == MPL_NONE || same_spot(from, to))
        return GO;
    if (!copied)
        return wrong(m, "taken over without a copy from elsewhere", name_of(m, v), "");
    if (meet(from, bytes, to, bytes)) /* what memcpy makes of it, nobody knows */
        fill(m, from, RUBBISH, bytes);
    return put(m, to, memory_at(m, from), bytes, v);
}

/* v becomes what w is, `w_at` bytes behind its start. */
static void take_truth(machine *m, mpl_value v, mpl_value w, uint64_t w_at)
{
    memcpy(truth_of(m, v), truth_of(m, w) + w_at, bytes_of(m, v) * sizeof *m->truth);
    m->made[v] = m->made[w];
}

/* ---- decisions ---------------------------------------------------------------------------------------------------- */

static uint64_t hash_words(uint64_t hash, const uint64_t *word, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        hash = mix(hash, word[i]);
    return hash;
}

static uint64_t hash_spot(uint64_t hash, spot s)
{
    return mix(mix(hash, s.slab), s.at);
}

/* All that what comes depends on; `where` tells the decision. */
static uint64_t hash_state(const machine *m, uint64_t where)
{
    const mpl_graph *g = m->g;
    uint64_t hash = mix(1, where);

    for (mpl_value v = 0; v < g->n_values; v++)
        if (m->made[v])
            hash = hash_words(hash_spot(mix(hash, v), m->bound[v]), truth_of(m, v), bytes_of(m, v));
    for (uint32_t b = 0; b < g->n_blocks; b++)
        hash = m->counted[b] ? mix(mix(hash, b), m->round[b]) : hash;
    for (mpl_op op = 0; op < g->n_ops; op++)
        hash = mix(hash, (uint64_t)(m->taken[op] + 2) * 2 + m->done[op]);
    for (uint32_t i = 0; i < m->map->places->n; i++)
        hash = place_of(m, i)->kind == MPL_PLACE_FINAL ? hash_spot(hash, m->final[i]) : hash;
    hash = hash_words(hash, m->memory, m->slab_begin[m->n_arenas]);
    return hash | 1;
}

/* Whether the state is a new one, which it no longer is. */
static bool is_new(machine *m, uint64_t where)
{
    uint64_t hash = hash_state(m, where);
    uint32_t i = (uint32_t)(hash >> 8) % MOST_SEEN;

    while (m->seen[i] != 0 && m->seen[i] != hash)
        i = (i + 1) % MOST_SEEN;
    if (m->seen[i] == hash)
        return false;
    m->seen[i] = hash;
    m->n_seen++;
    return true;
}

/* One of n, freely; STOP: all that comes was seen before. */
static way decide(machine *m, uint64_t where, uint32_t n, uint32_t *out)
{
    if (m->at == m->n_choices) {
        if (m->n_choices == MOST_CHOICES || m->n_seen > MOST_SEEN / 2)
            m->verdict.too_many = true;
        if (m->verdict.too_many || !is_new(m, where))
            return STOP;
        m->of[m->n_choices] = (uint8_t)n;
        m->choice[m->n_choices++] = 0;
    }
    *out = m->choice[m->at++];
    return GO;
}

/* ---- operations --------------------------------------------------------------------------------------------------- */

static bool is_idle(const machine *m, mpl_op op)
{
    return m->map->op_nothing != NULL && m->map->op_nothing[op] != 0;
}

/* An operation that runs nothing: its result is what its operands are, where they are. */
static way show(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    mpl_value in = g->op_in[g->op_in_begin[op]];
    uint64_t at = 0;

    if (g->op_kind[op] == MPL_OP_concat) {
        mpl_value out = g->op_out[g->op_out_begin[op]];

        TRY(bind(m, out));
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; at += bytes_of(m, g->op_in[i++]))
            memcpy(truth_of(m, out) + at, truth_of(m, g->op_in[i]), bytes_of(m, g->op_in[i]) * sizeof at);
        m->made[out] = 1;
        return GO;
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value out = g->op_out[i];

        if (out == MPL_NONE)
            continue;
        at = m->map->value_offset != NULL ? m->map->value_offset[out] - m->map->value_offset[in] : 0;
        m->bound[out] = m->bound[in];
        m->bound[out].at += at;
        take_truth(m, out, in, at);
    }
    return GO;
}

/* Whether result `out` may be written to the very bytes of operand i. */
static bool may_overwrite(const machine *m, mpl_op op, uint32_t i, mpl_value out)
{
    const mpl_graph *g = m->g;
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    mpl_value in = g->op_in[g->op_in_begin[op] + i];

    return ((traits & MPL_IN_PLACE_ANY) != 0 || ((traits & MPL_IN_PLACE_0) != 0 && i == 0)) &&
           out == g->op_out[g->op_out_begin[op]] && same_spot(m->bound[in], m->bound[out]) &&
           g->value_bytes[in] == g->value_bytes[out] && g->value_type[in] == g->value_type[out];
}

/* No byte is written that the operation has yet to read, and its workspace is its own. */
static way keep_operands(machine *m, mpl_op op, mpl_value out)
{
    const mpl_graph *g = m->g;
    mpl_buffer b = m->map->op_workspace != NULL ? m->map->op_workspace[op] : MPL_NONE;

    for (uint32_t i = 0; i < mpl_n_read(g, op); i++) {
        mpl_value in = g->op_in[g->op_in_begin[op] + i];

        if (in == MPL_NONE)
            continue;
        if (out != MPL_NONE && meet(m->bound[in], bytes_of(m, in), m->bound[out], bytes_of(m, out)) &&
            !may_overwrite(m, op, i, out))
            return wrong(m, "written over what is still read", g->op_name[op], name_of(m, in));
        if (b != MPL_NONE && meet(m->bound[in], bytes_of(m, in), buffer_spot(m, b), m->p->bytes[b]))
            return wrong(m, "its workspace lies on what it reads", g->op_name[op], name_of(m, in));
    }
    if (b != MPL_NONE && out != MPL_NONE &&
        meet(m->bound[out], bytes_of(m, out), buffer_spot(m, b), m->p->bytes[b]))
        return wrong(m, "its workspace lies on what it writes", g->op_name[op], name_of(m, out));
    return GO;
}

static way run_plain(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    uint32_t begin = g->op_out_begin[op], end = g->op_out_begin[op + 1];

    if (is_idle(m, op))
        return show(m, op);
    for (uint32_t i = begin; i < end; i++)
        if (g->op_out[i] != MPL_NONE)
            TRY(bind(m, g->op_out[i]));
    for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
        TRY(find(m, g->op_in[g->op_in_begin[op] + i], g->op_name[op]));
    for (uint32_t i = begin; i < end; i++)
        TRY(keep_operands(m, op, g->op_out[i]));
    if (m->map->op_workspace != NULL && m->map->op_workspace[op] != MPL_NONE)
        fill(m, buffer_spot(m, m->map->op_workspace[op]), RUBBISH, m->p->bytes[m->map->op_workspace[op]]);
    for (uint32_t i = begin; i < end; i++)
        if (g->op_out[i] != MPL_NONE) {
            make_new(m, WRITTEN, g->op_out[i]);
            TRY(lay_down(m, g->op_out[i]));
        }
    return GO;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------- */

static way run_block(machine *m, uint32_t block);

/* What was made and decided in a block, and in those in it, is over. */
static void end_block(machine *m, uint32_t block)
{
    const mpl_graph *g = m->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_block[v] != 0 && mpl_block_within(g, g->value_block[v], block))
            m->made[v] = 0;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_block_within(g, g->op_block[op], block)) {
            m->taken[op] = UNDECIDED;
            m->done[op] = 0;
            for (uint32_t i = g->op_body_begin[op]; i < g->op_body_begin[op + 1]; i++)
                m->counted[g->op_body[i]] = 0;
        }
}

/* ---- loops -------------------------------------------------------------------------------------------------------- */

typedef struct loop {
    mpl_op op;
    uint32_t body, n_carried, n_scans, n_rows;
    const mpl_value *in, *out, *param, *result;
    const uint8_t *in_copied, *result_copied;
} loop;

static loop loop_of(const machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    loop l = {.op = op, .body = g->op_body[g->op_body_begin[op]]};

    l.n_carried = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
    l.n_scans = g->block_n_params[l.body] - 1 - l.n_carried;
    l.n_rows = g->block_n_results[l.body] - 1 - l.n_carried;
    l.in = g->op_in + g->op_in_begin[op];
    l.out = g->op_out + g->op_out_begin[op];
    l.param = g->block_param + g->block_param_begin[l.body];
    l.result = g->block_result + g->block_result_begin[l.body];
    l.in_copied = m->map->places->in_copied + g->op_in_begin[op];
    l.result_copied = m->map->places->result_copied + g->block_result_begin[l.body];
    return l;
}

/* Whether some test decides how many rounds there are, besides numbers that stand in the graph; *most: of these, the least. */
static bool is_open(const machine *m, const loop *l, uint64_t *most)
{
    const mpl_graph *g = m->g;
    int64_t bound = mpl_while_most_rounds(g, l->op), trips = INT64_MAX;
    bool open = l->in[1] != MPL_NONE || l->result[0] != MPL_NONE;

    for (mpl_op op = 0; op < g->n_ops; op++)
        open = open || (g->op_block[op] == l->body && g->op_kind[op] == MPL_OP_exit_unless);
    if (l->in[0] != MPL_NONE && g->value_role[l->in[0]] == MPL_WEIGHT && g->value_data[l->in[0]] != NULL)
        memcpy(&trips, g->value_data[l->in[0]], sizeof trips);
    else
        open = open || l->in[0] != MPL_NONE;
    assert_true(bound >= 0);
    trips = trips < bound ? trips : bound;
    *most = trips > 0 ? (uint64_t)trips : 0;
    return open;
}

/* Whether one more round comes. */
static way go_round(machine *m, const loop *l, bool *more)
{
    uint64_t most;
    uint32_t chosen = 1;

    if (is_open(m, l, &most))
        TRY(decide(m, 3 * (uint64_t)l->op, 2, &chosen));
    *more = m->round[l->body] < most && chosen != 0;
    return GO;
}

static bool is_reversed(const machine *m, const loop *l, uint32_t i)
{
    uint32_t n = 0;
    const int64_t *flag = mpl_attr_ints(m->g, l->op, MPL_ATTR_scan_reverse, &n);

    return i < n && flag[i] != 0;
}

/* Where parameter or row of l is to be; having no place of its own, where what it takes over is. */
static way place_param(machine *m, mpl_value param, spot source)
{
    TRY(bind(m, param));
    if (m->bound[param].slab == MPL_NONE)
        m->bound[param] = source;
    return GO;
}

static way enter_loop(machine *m, const loop *l)
{
    TRY(find(m, l->in[0], m->g->op_name[l->op]));
    TRY(find(m, l->in[1], m->g->op_name[l->op]));
    m->done[l->op] = 0;
    m->counted[l->body] = 1;
    m->round[l->body] = 0;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        mpl_value init = l->in[2 + i], param = l->param[1 + i];

        TRY(place_param(m, param, m->bound[init]));
        TRY(hand_on(m, m->bound[init], m->bound[param], bytes_of(m, param), l->in_copied[2 + i] != 0, param));
        take_truth(m, param, init, 0);
    }
    for (uint32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++)
        if (l->out[i] != MPL_NONE) {
            TRY(bind(m, l->out[i]));
            make_new(m, NO_ROW, l->out[i]);
        }
    return GO;
}

static way begin_round(machine *m, const loop *l)
{
    TRY(bind(m, l->param[0]));
    make_new(m, ROUND, l->param[0]);
    TRY(lay_down(m, l->param[0]));
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_value scan = l->in[2 + l->n_carried + i], slice = l->param[1 + l->n_carried + i];
        uint64_t at = slice_number(m, l->body, is_reversed(m, l, i)) * bytes_of(m, slice);
        spot from = m->bound[scan];

        from.at += at;
        TRY(place_param(m, slice, from));
        TRY(hand_on(m, from, m->bound[slice], bytes_of(m, slice), l->in_copied[2 + l->n_carried + i] != 0,
                    slice));
        take_truth(m, slice, scan, at);
    }
    return GO;
}

static way stack_rows(machine *m, const loop *l)
{
    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value row = l->result[1 + l->n_carried + i], out = l->out[l->n_carried + i];
        uint64_t at = slice_number(m, l->body, is_reversed(m, l, l->n_scans + i)) * bytes_of(m, row);
        spot to;

        if (out == MPL_NONE)
            continue;
        to = m->bound[out];
        to.at += at;
        TRY(hand_on(m, m->bound[row], to, bytes_of(m, row), l->result_copied[1 + l->n_carried + i] != 0,
                    out));
        memcpy(truth_of(m, out) + at, truth_of(m, row), bytes_of(m, row) * sizeof at);
    }
    return GO;
}

/* What is carried, as if at once. */
typedef struct transfer {
    mpl_value param, result;
    spot from, to;
    uint64_t bytes;
    bool made, pending, staged;
} transfer;

static bool waits_for(const transfer *a, const transfer *b)
{
    return b->pending && meet(a->to, a->bytes, b->from, b->bytes);
}

static bool must_wait(const transfer *t, uint32_t n, uint32_t i)
{
    for (uint32_t k = 0; k < n; k++)
        if (waits_for(&t[i], &t[k]))
            return true;
    return false;
}

/* Puts the first aside that another waits for, behind `used` bytes that are aside already. */
static way put_aside(machine *m, const loop *l, transfer *t, uint32_t n, uint64_t *used)
{
    mpl_buffer staging = m->map->places->staging[l->body];
    uint32_t k = 0;
    bool awaited = false;
    spot to;

    for (;; k++) {
        for (uint32_t i = 0; !t[k].staged && i < n; i++)
            awaited = awaited || (t[i].pending && waits_for(&t[i], &t[k]));
        if (awaited)
            break;
    }
    if (staging == MPL_NONE || *used + t[k].bytes > m->p->bytes[staging])
        return wrong(m, "no room to carry crosswise", m->g->op_name[l->op], name_of(m, t[k].param));
    to = buffer_spot(m, staging);
    to.at += *used;
    *used += t[k].bytes;
    TRY(hand_on(m, t[k].from, to, t[k].bytes, true, t[k].param));
    t[k].from = to;
    t[k].staged = true;
    return GO;
}

static way copy_all(machine *m, const loop *l, transfer *t, uint32_t n)
{
    uint64_t used = 0;
    uint32_t n_left = 0, n_aside = 0;

    for (uint32_t i = 0; i < n; i++)
        n_left += t[i].pending;
    while (n_left > 0) {
        uint32_t before = n_left;

        for (uint32_t i = 0; i < n; i++)
            if (t[i].pending && !must_wait(t, n, i)) {
                TRY(put(m, t[i].to, memory_at(m, t[i].from), t[i].bytes, t[i].param));
                t[i].pending = false;
                n_left--;
                n_aside -= t[i].staged;
                used = n_aside > 0 ? used : 0;
            }
        if (n_left == before) {
            TRY(put_aside(m, l, t, n, &used));
            n_aside++;
        }
    }
    return GO;
}

/* Where the loop leaves things, should this be its last round. */
static way note_finals(machine *m, mpl_op op)
{
    for (uint32_t i = 0; i < m->map->places->n; i++)
        if (place_of(m, i)->kind == MPL_PLACE_FINAL && place_of(m, i)->of == op &&
            !evaluate(m, item_of(m, i, 1), &m->final[i]))
            return wrong(m, "where it leaves things is not decided", m->g->op_name[op], "");
    return GO;
}

static way carry(machine *m, const loop *l)
{
    transfer t[MOST_CARRIED];
    uint64_t truth[MOST_CARRIED][MOST_BYTES];

    assert_true(l->n_carried <= MOST_CARRIED);
    TRY(note_finals(m, l->op));
    for (uint32_t i = 0; i < l->n_carried; i++) {
        t[i] = (transfer){.param = l->param[1 + i], .result = l->result[1 + i]};
        t[i].bytes = bytes_of(m, t[i].param);
        t[i].from = m->bound[t[i].result];
        t[i].made = m->made[t[i].result] != 0;
        assert_true(t[i].bytes <= MOST_BYTES);
        memcpy(truth[i], truth_of(m, t[i].result), t[i].bytes * sizeof truth[i][0]);
    }
    m->round[l->body]++;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        bool copied = l->result_copied[1 + i] != 0;

        TRY(place_param(m, t[i].param, t[i].from));
        t[i].to = m->bound[t[i].param];
        t[i].pending =
            copied && t[i].bytes > 0 && t[i].from.slab != MPL_NONE && !same_spot(t[i].from, t[i].to);
        if (!copied)
            TRY(hand_on(m, t[i].from, t[i].to, t[i].bytes, false, t[i].param));
    }
    TRY(copy_all(m, l, t, l->n_carried));
    end_block(m, l->body);
    for (uint32_t i = 0; i < l->n_carried; i++) {
        memcpy(truth_of(m, t[i].param), truth[i], t[i].bytes * sizeof truth[i][0]);
        m->made[t[i].param] = t[i].made;
    }
    return GO;
}

/* Rows of rounds that did not come are zero. */
static way clear_rows(machine *m, const loop *l)
{
    uint64_t most = (uint64_t)mpl_while_most_rounds(m->g, l->op), rounds = m->round[l->body];

    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value out = l->out[l->n_carried + i];
        uint64_t bytes = bytes_of(m, l->result[1 + l->n_carried + i]);
        uint64_t at = is_reversed(m, l, l->n_scans + i) ? 0 : rounds * bytes, n = (most - rounds) * bytes;
        spot to;

        if (out == MPL_NONE || n == 0)
            continue;
        to = m->bound[out];
        to.at += at;
        for (uint64_t k = 0; k < n; k++)
            truth_of(m, out)[at + k] = ZERO;
        if (to.slab != MPL_NONE)
            TRY(put(m, to, truth_of(m, out) + at, n, out));
    }
    return GO;
}

static way leave_loop(machine *m, const loop *l)
{
    m->done[l->op] = 1;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        mpl_value out = l->out[i], param = l->param[1 + i];

        if (out == MPL_NONE)
            continue;
        TRY(bind(m, out));
        TRY(hand_on(m, m->bound[param], m->bound[out], bytes_of(m, out), false, out));
        take_truth(m, out, param, 0);
    }
    TRY(clear_rows(m, l));
    end_block(m, l->body);
    return GO;
}

static way run_loop(machine *m, mpl_op op)
{
    loop l = loop_of(m, op);
    way w = GO;
    bool more;

    TRY(enter_loop(m, &l));
    TRY(go_round(m, &l, &more));
    while (more) {
        TRY(begin_round(m, &l));
        w = run_block(m, l.body);
        if (w == STOP)
            return STOP;
        if (w == LEAVE)
            break;
        TRY(find(m, l.result[0], m->g->op_name[op]));
        TRY(stack_rows(m, &l));
        TRY(carry(m, &l));
        TRY(go_round(m, &l, &more));
    }
    return leave_loop(m, &l);
}

/* ---- cases -------------------------------------------------------------------------------------------------------- */

static way hand_out(machine *m, mpl_op op, const mpl_value *from, const uint8_t *copied)
{
    const mpl_graph *g = m->g;

    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
        mpl_value out = g->op_out[g->op_out_begin[op] + i];

        if (out == MPL_NONE)
            continue;
        TRY(bind(m, out));
        TRY(hand_on(m, m->bound[from[i]], m->bound[out], bytes_of(m, out), copied[i] != 0, out));
        take_truth(m, out, from[i], 0);
    }
    return GO;
}

static way run_case(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    uint32_t in = g->op_in_begin[op], n = g->op_body_begin[op + 1] - g->op_body_begin[op], chosen;
    bool bypass = g->op_in_begin[op + 1] > in + 1 || g->op_out_begin[op + 1] == g->op_out_begin[op];
    uint32_t block;

    TRY(find(m, g->op_in[in], g->op_name[op]));
    TRY(decide(m, 3 * (uint64_t)op + 1, n + bypass, &chosen));
    m->taken[op] = chosen < n ? (int32_t)chosen : NO_BRANCH;
    if (chosen == n)
        return hand_out(m, op, g->op_in + in + 1, m->map->places->in_copied + in + 1);
    block = g->op_body[g->op_body_begin[op] + chosen];
    TRY(run_block(m, block));
    TRY(hand_out(m, op, g->block_result + g->block_result_begin[block],
                 m->map->places->result_copied + g->block_result_begin[block]));
    end_block(m, block);
    return GO;
}

/* ---- executions --------------------------------------------------------------------------------------------------- */

static way run_op(machine *m, mpl_op op)
{
    uint32_t stay;

    switch (m->g->op_kind[op]) {
    case MPL_OP_while:
        return run_loop(m, op);
    case MPL_OP_case:
        return run_case(m, op);
    case MPL_OP_exit_unless:
        TRY(find(m, m->g->op_in[m->g->op_in_begin[op]], m->g->op_name[op]));
        TRY(decide(m, 3 * (uint64_t)op + 2, 2, &stay));
        return stay ? GO : LEAVE;
    default:
        return run_plain(m, op);
    }
}

/* The operations of a block, one step after the other. */
static way run_block(machine *m, uint32_t block)
{
    const mpl_graph *g = m->g;
    uint32_t step = 0;

    for (;;) {
        mpl_op next = MPL_NONE;

        for (mpl_op op = 0; op < g->n_ops; op++)
            if (g->op_block[op] == block && m->map->step_of[op] >= step &&
                (next == MPL_NONE || m->map->step_of[op] < m->map->step_of[next]))
                next = op;
        if (next == MPL_NONE)
            return GO;
        TRY(run_op(m, next));
        step = m->map->step_of[next] + 1;
    }
}

/* What there is before anything runs. */
static void begin(machine *m)
{
    const mpl_graph *g = m->g;

    for (uint64_t i = 0; i < m->slab_begin[m->n_slabs]; i++)
        m->memory[i] = RUBBISH;
    for (mpl_value v = 0; v < g->n_values; v++) {
        m->bound[v] = (spot){MPL_NONE, 0};
        if (g->value_role[v] != MPL_INPUT && g->value_role[v] != MPL_WEIGHT)
            continue;
        make_new(m, FROM_OUTSIDE, v);
        where(m, v, &m->bound[v]);
        if (m->bound[v].slab != MPL_NONE)
            memcpy(memory_at(m, m->bound[v]), truth_of(m, v), bytes_of(m, v) * sizeof *m->memory);
    }
    for (uint32_t i = 0; i < m->map->places->n; i++)
        m->final[i] = (spot){MPL_NONE, 0};
    for (mpl_op op = 0; op < g->n_ops; op++)
        m->taken[op] = UNDECIDED;
    memset(m->counted, 0, g->n_blocks);
    memset(m->done, 0, g->n_ops);
    m->at = 0;
}

/* The next list of decisions; false: that was the last. */
static bool next_choices(machine *m)
{
    while (m->n_choices > 0 && m->choice[m->n_choices - 1] + 1 == m->of[m->n_choices - 1])
        m->n_choices--;
    if (m->n_choices > 0)
        m->choice[m->n_choices - 1]++;
    return m->n_choices > 0;
}

static void run_all(machine *m)
{
    do {
        memset(m->made, 0, m->g->n_values);
        begin(m);
        m->verdict.too_many = m->verdict.too_many || m->verdict.executions++ >= MOST_EXECUTIONS;
        if (run_block(m, 0) == GO)
            for (uint32_t i = 0; i < m->g->n_outputs; i++)
                find(m, m->g->output[i], "the caller");
    } while (m->verdict.right && !m->verdict.too_many && next_choices(m));
}

/* Values that have memory of their own, or are said to. */
static bool is_pinned(const machine *m, mpl_value v)
{
    bool pinned = m->map->value_buffer[v] == MPL_NONE && m->map->places->value_place[v] == MPL_NONE &&
                  m->map->value_root[v] == v;

    for (uint32_t i = 0; i < m->map->places->n; i++)
        pinned = pinned || (place_of(m, i)->kind == MPL_PLACE_PINNED && place_of(m, i)->of == v);
    return pinned;
}

static void lay_out(machine *m)
{
    for (mpl_buffer b = 0; b < m->p->n; b++) {
        uint64_t *end = &m->slab_begin[mpl_plan_arena(m->p, m->plan, b) + 1];

        *end =
            mpl_max_u64(*end, m->plan->offset[b] + m->p->bytes[b] + MOST_BYTES); /* room for what passes it */
    }
    for (uint32_t s = 0; s < m->n_slabs; s++) {
        mpl_value v = s - m->n_arenas;

        m->slab_begin[s + 1] += m->slab_begin[s];
        if (s >= m->n_arenas && is_pinned(m, v))
            m->slab_begin[s + 1] += m->g->value_bytes[v] + MOST_BYTES;
    }
    for (mpl_value v = 0; v < m->g->n_values; v++)
        m->truth_begin[v + 1] = m->truth_begin[v] + m->g->value_bytes[v];
}

tagged_verdict tagged_run(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map, const mpl_problem *p,
                          const mpl_plan *plan)
{
    machine m = {.g = g, .map = map, .p = p, .plan = plan, .verdict = {.right = true}};

    m.n_arenas = mpl_plan_n_arenas(plan);
    m.n_slabs = m.n_arenas + g->n_values;
    assert_ok(ctx, mpl_new(ctx, m.slab_begin, m.n_slabs + 1));
    assert_ok(ctx, mpl_new(ctx, m.truth_begin, g->n_values + 1));
    lay_out(&m);
    assert_ok(ctx, mpl_new(ctx, m.memory, m.slab_begin[m.n_slabs]));
    assert_ok(ctx, mpl_new(ctx, m.truth, m.truth_begin[g->n_values]));
    assert_ok(ctx, mpl_new(ctx, m.made, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.bound, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.counted, g->n_blocks));
    assert_ok(ctx, mpl_new(ctx, m.round, g->n_blocks));
    assert_ok(ctx, mpl_new(ctx, m.done, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, m.taken, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, m.final, map->places->n));
    assert_ok(ctx, mpl_new(ctx, m.seen, MOST_SEEN));
    run_all(&m);
    void *arrays[] = {m.slab_begin, m.truth_begin, m.memory, m.truth, m.made,  m.bound,
                      m.counted,    m.round,       m.done,   m.taken, m.final, m.seen};
    MPL_FREE_ALL(ctx, arrays);
    return m.verdict;
}
