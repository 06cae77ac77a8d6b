/* tagged_memory.c -- locations of values by places; reading and writing tags; decisions. */
#include "tests/tagged/tagged_priv.h"

/* ---- tags ---- */

/* Tag of v's contents in the current rounds. */
static uint64_t tag_of(const machine *m, int what, mpl_value v)
{
    uint64_t tag = mix((uint64_t)what, v);

    for (uint32_t b = m->g->value_block[v]; b != 0; b = m->g->block_parent[b])
        tag = m->counted[b] ? mix(tag, m->round[b]) : tag;
    return tag;
}

/* v holds new contents from now on. */
void tagged_make_new(machine *m, int what, mpl_value v)
{
    uint64_t tag = tag_of(m, what, v);

    for (uint64_t i = 0; i < bytes_of(m, v); i++)
        truth_of(m, v)[i] = mix(tag, i);
    m->made[v] = 1;
    m->lost[v] = 0;
}

/* ---- faults ---- */

way tagged_wrong(machine *m, const char *what, const char *who, const char *whose)
{
    if (m->verdict.right)
        snprintf(m->verdict.why, sizeof m->verdict.why, "%.80s: %.40s, %.40s", what, who, whose);
    m->verdict.right = false;
    return STOP;
}

/* ---- locations of values ---- */

static mpl_op owner_of(const machine *m, uint32_t block)
{
    return m->g->block_owner[block];
}

uint64_t tagged_slice_number(const machine *m, uint32_t block, bool reversed)
{
    uint64_t most = (uint64_t)mpl_while_most_rounds(m->g, owner_of(m, block));

    return reversed ? most - 1 - m->round[block] : m->round[block];
}

/* The item that a place has been decided to be; -1: not decided yet. */
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

/* Returns false if the place is not decided yet. */
bool tagged_evaluate(const machine *m, uint32_t id, spot *out)
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
            offset += tagged_slice_number(m, p->of, p->reversed != 0) * p->bytes;
        id = item_of(m, id, (uint64_t)i);
    }
}

spot tagged_buffer_spot(const machine *m, mpl_buffer b)
{
    return (spot){mpl_plan_arena(m->p, m->plan, b), m->plan->offset[b]};
}

/* Whether v has neither place, buffer nor memory, because it is never read. */
static bool is_nowhere(const machine *m, mpl_value v)
{
    const mpl_graph *g = m->g;
    mpl_op op = g->value_op[v];

    if (g->value_role[v] == MPL_PARAMETER || op == MPL_NONE)
        return g->value_role[v] == MPL_PARAMETER;
    if (g->op_kind[op] == MPL_OP_case)
        return true;
    for (uint32_t i = 0;
         g->op_kind[op] == MPL_OP_while && i < (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
         i++)
        if (g->op_out[g->op_out_begin[op] + i] == v)
            return true;
    return false;
}

bool tagged_where(const machine *m, mpl_value v, spot *out)
{
    mpl_value root = m->map->value_root[v];
    mpl_buffer b = m->map->value_buffer[v];
    uint64_t inside = m->map->value_offset != NULL ? m->map->value_offset[v] : 0;
    bool decided = true;

    *out = (spot){MPL_NONE, 0};
    if (bytes_of(m, v) == 0)
        return true;
    if (m->map->places->value_place[root] != MPL_NONE) {
        decided = tagged_evaluate(m, m->map->places->value_place[root], out);
        out->at += inside;
    } else if (b != MPL_NONE) {
        *out = (spot){mpl_plan_arena(m->p, m->plan, b), m->plan->offset[b] + inside};
        out->at -= m->p->inside != NULL ? m->p->inside_at[b] : 0;
    } else if (!is_nowhere(m, root)) {
        *out = (spot){m->n_arenas + root, inside};
    }
    return decided;
}

way tagged_bind(machine *m, mpl_value v)
{
    TRY(tagged_settled(m, m->map->places->value_place[m->map->value_root[v]], name_of(m, v)));
    return tagged_where(m, v, &m->bound[v])
               ? GO
               : tagged_wrong(m, "its place is not decided", name_of(m, v), "");
}

/* ---- reading and writing ---- */

void tagged_touch(machine *m, spot s, uint64_t bytes, uint64_t *by)
{
    for (uint64_t i = 0; m->unit != MPL_NONE && s.slab != MPL_NONE && i < bytes; i++)
        by[m->slab_begin[s.slab] + s.at + i] |= UINT64_C(1) << m->unit;
}

bool tagged_stands(const machine *m, mpl_value v)
{
    spot s = m->bound[v];

    return bytes_of(m, v) == 0 ||
           (m->made[v] && s.slab != MPL_NONE &&
            memcmp(memory_at(m, s), truth_of(m, v), bytes_of(m, v) * sizeof *m->memory) == 0);
}

/* Before input or weight v is first read or copied: writes it if planned and not arrived yet. */
way tagged_receive(machine *m, mpl_value v)
{
    mpl_value root = v != MPL_NONE ? m->map->value_root[v] : MPL_NONE;

    if (root == MPL_NONE || !m->awaited[root])
        return GO;
    m->awaited[root] = 0;
    m->lost[root] = 0;
    tagged_claim(m, root, true);
    return tagged_lay_down(m, root);
}

way tagged_find(machine *m, mpl_value v, const char *who)
{
    TRY(tagged_receive(m, v));
    if (v != MPL_NONE)
        tagged_touch(m, m->bound[v], bytes_of(m, v), m->readers);
    return v == MPL_NONE || (tagged_stands(m, v) && !tagged_is_lost(m, v))
               ? GO
               : tagged_wrong(m, "other bytes are read", who, name_of(m, v));
}

/* Whether the slab belongs to the caller and must not be written. */
static bool is_callers(const machine *m, uint32_t slab)
{
    return slab >= m->n_arenas && (m->g->value_role[slab - m->n_arenas] == MPL_INPUT ||
                                   m->g->value_role[slab - m->n_arenas] == MPL_WEIGHT);
}

way tagged_put(machine *m, spot to, const uint64_t *tags, uint64_t bytes, mpl_value v)
{
    if (is_callers(m, to.slab))
        return tagged_wrong(m, "written over the caller's memory", name_of(m, v), "");
    tagged_touch(m, to, bytes, m->writers);
    memmove(memory_at(m, to), tags, bytes * sizeof *tags);
    return GO;
}

/* Writes new contents of v at its location. */
way tagged_lay_down(machine *m, mpl_value v)
{
    return m->bound[v].slab != MPL_NONE && bytes_of(m, v) > 0
               ? tagged_put(m, m->bound[v], truth_of(m, v), bytes_of(m, v), v)
               : GO;
}

void tagged_fill(machine *m, spot at, uint64_t tag, uint64_t bytes)
{
    tagged_touch(m, at, bytes, m->writers);
    for (uint64_t i = 0; i < bytes; i++)
        memory_at(m, at)[i] = tag;
}

/* Passes `bytes` bytes at `from` to `to`, as part of value v: copied, or already there. */
way tagged_hand_on(machine *m, spot from, spot to, uint64_t bytes, bool copied, mpl_value v)
{
    if (bytes == 0 || from.slab == MPL_NONE || to.slab == MPL_NONE || same_spot(from, to))
        return GO;
    if (!copied)
        return tagged_wrong(m, "taken over without a copy from elsewhere", name_of(m, v), "");
    tagged_touch(m, from, bytes, m->readers);
    if (meet(from, bytes, to, bytes)) /* memcpy of overlapping ranges is undefined */
        tagged_fill(m, from, RUBBISH, bytes);
    if (v != MPL_NONE)
        tagged_claim(m, v, false);
    return tagged_put(m, to, memory_at(m, from), bytes, v);
}

/* v takes the expected contents of w, from byte w_at on. */
void tagged_take_truth(machine *m, mpl_value v, mpl_value w, uint64_t w_at)
{
    memcpy(truth_of(m, v), truth_of(m, w) + w_at, bytes_of(m, v) * sizeof *m->truth);
    m->made[v] = m->made[w];
    m->lost[v] = tagged_is_lost(m, w);
}

/* ---- decisions ---- */

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

/* Hash of everything that the rest of the execution depends on; `where` identifies the decision. */
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
        hash = mix(hash, (uint64_t)(m->taken[op] + 2) * 4 + 2 * m->ran[op] + m->done[op]);
    for (mpl_value v = 0; v < g->n_values; v++)
        hash = mix(hash, m->awaited[v] + 2 * m->lost[v]);
    for (uint32_t i = 0; i < m->map->places->n; i++)
        hash = place_of(m, i)->kind == MPL_PLACE_FINAL ? hash_spot(hash, m->final[i]) : hash;
    hash = hash_words(hash, m->memory, m->slab_begin[m->n_arenas]);
    return hash | 1;
}

/* Whether the state is new; records it. */
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

/* Decides freely among n; STOP: the rest of the execution was seen before. */
way tagged_decide(machine *m, uint64_t where, uint32_t n, uint32_t *out)
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

/* ---- the graph ---- */

bool tagged_is_idle(const machine *m, mpl_op op)
{
    return m->map->op_nothing != NULL && m->map->op_nothing[op] != 0;
}

bool tagged_is_useful(const machine *m, mpl_value v)
{
    return v != MPL_NONE && m->useful[v];
}

loop tagged_loop_of(const machine *m, mpl_op op)
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

/* Values that have, or are declared to have, their own memory. */
static bool is_pinned(const machine *m, mpl_value v)
{
    bool pinned = m->map->value_buffer[v] == MPL_NONE &&
                  m->map->places->value_place[v] == MPL_NONE && m->map->value_root[v] == v;

    for (uint32_t i = 0; i < m->map->places->n; i++)
        pinned = pinned || (place_of(m, i)->kind == MPL_PLACE_PINNED && place_of(m, i)->of == v);
    return pinned;
}

void tagged_lay_out(machine *m)
{
    for (mpl_buffer b = 0; b < m->p->n; b++) {
        uint64_t *end = &m->slab_begin[mpl_plan_arena(m->p, m->plan, b) + 1];

        /* room for overruns */
        *end = mpl_max_u64(*end, m->plan->offset[b] + m->p->bytes[b] + MOST_BYTES);
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
