/* tagged_priv.h -- the machine of tagged_run.h: tagged memory, and expected contents of values. */
#pragma once

#include "tests/tagged/tagged_run.h"

#include "graphs/core/rng.h"

enum {
    MOST_CHOICES = 400,
    MOST_SEEN = 1 << 12,
    MOST_EXECUTIONS = 2000,
    MOST_CARRIED = 16,
    MOST_BYTES = 64,
    MOST_OPS = 64
};
enum { UNDECIDED = -2, NO_BRANCH = -1 };

typedef enum way { GO, LEAVE, STOP } way; /* continue; leave the loop; end the execution */

typedef struct spot {
    uint32_t slab; /* arenas of the plan, then each value's own memory; MPL_NONE: nowhere */
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
    uint64_t *memory, *truth; /* tags per byte: actual, and expected for each value */
    uint8_t *made;            /* [n_values] */
    spot *bound;              /* [n_values] location when it was made */
    uint8_t *counted;         /* [n_blocks] the body's loop is or was in a round, */
    uint64_t *round;          /* and which one; after the loop: their number */
    uint8_t *done;            /* [n_ops] the loop has ended */
    int32_t *taken;           /* [n_ops] branch taken by a case */
    spot *final;              /* [n_places] */
    /* Check by the rules as well (tagged_rules.c). */
    bool strict;
    uint8_t *lost;                /* [n_values] lost: must not be read any more */
    uint8_t *comes;               /* [n_values] scratch */
    uint8_t *ran;                 /* [n_ops] the loop or case ran since its block began */
    int64_t *most, *fixed_rounds; /* [n_ops] rounds of a loop; -1: open */
    int64_t *assumed;             /* [n_ops] outcome assumed while listing paths; -1: none */
    mpl_op settling;              /* the loop or case that is ending */
    uint8_t *useful;              /* [n_values] eventually read; others are not passed on */
    uint8_t *awaited; /* [n_values] a planned input or weight that has not arrived yet */

    uint8_t choice[MOST_CHOICES], of[MOST_CHOICES]; /* decisions: which one, out of how many */
    uint32_t n_choices, at;
    /* Parallel: for each byte of memory, which outermost operations, with their blocks, read and
     * write it; which operations run after each. */
    uint64_t *readers, *writers, later[MOST_OPS];
    mpl_op unit;
    bool begun;     /* some operation has begun */
    uint64_t *seen; /* [MOST_SEEN] hashes of states; 0: none */
    uint32_t n_seen;
    tagged_verdict verdict;
} machine;

enum { WRITTEN = 1, FROM_OUTSIDE, NO_ROW, ZERO, ROUND, RUBBISH };

typedef struct loop {
    mpl_op op;
    uint32_t body, n_carried, n_scans, n_rows;
    const mpl_value *in, *out, *param, *result;
    const uint8_t *in_copied, *result_copied;
} loop;

#define TRY(step)                                                                                  \
    do {                                                                                           \
        way w_ = (step);                                                                           \
        if (w_ != GO)                                                                              \
            return w_;                                                                             \
    } while (0)

static inline uint64_t mix(uint64_t hash, uint64_t x)
{
    return mpl_rng_mix(hash ^ (x + UINT64_C(0x9e3779b97f4a7c15) * (hash | 1)));
}

static inline uint64_t bytes_of(const machine *m, mpl_value v)
{
    return m->g->value_bytes[v];
}

static inline uint64_t *truth_of(const machine *m, mpl_value v)
{
    return m->truth + m->truth_begin[v];
}

static inline uint64_t *memory_at(const machine *m, spot s)
{
    return m->memory + m->slab_begin[s.slab] + s.at;
}

static inline const mpl_place *place_of(const machine *m, uint32_t id)
{
    return &m->map->places->place[id];
}

static inline uint32_t item_of(const machine *m, uint32_t id, uint64_t i)
{
    return m->map->places->item[place_of(m, id)->begin + i];
}

static inline bool same_spot(spot a, spot b)
{
    return a.slab == b.slab && a.at == b.at;
}

static inline bool meet(spot a, uint64_t a_bytes, spot b, uint64_t b_bytes)
{
    return a.slab != MPL_NONE && a.slab == b.slab && a.at < b.at + b_bytes && b.at < a.at + a_bytes;
}

static inline const char *name_of(const machine *m, mpl_value v)
{
    return v != MPL_NONE ? m->g->value_name[v] : "nothing";
}

void tagged_lay_out(machine *m); /* sizes of memory and truth */
void tagged_make_new(machine *m, int what, mpl_value v);
way tagged_wrong(machine *m, const char *what, const char *who, const char *whose);
uint64_t tagged_slice_number(const machine *m, uint32_t block, bool reversed);
bool tagged_evaluate(const machine *m, uint32_t id, spot *out);
spot tagged_buffer_spot(const machine *m, mpl_buffer b);
bool tagged_where(const machine *m, mpl_value v, spot *out);
way tagged_bind(machine *m, mpl_value v);
void tagged_touch(machine *m, spot s, uint64_t bytes, uint64_t *by);
bool tagged_stands(const machine *m, mpl_value v);
way tagged_receive(machine *m, mpl_value v);
way tagged_find(machine *m, mpl_value v, const char *who);
way tagged_put(machine *m, spot to, const uint64_t *tags, uint64_t bytes, mpl_value v);
way tagged_lay_down(machine *m, mpl_value v);
void tagged_fill(machine *m, spot at, uint64_t tag, uint64_t bytes);
way tagged_hand_on(machine *m, spot from, spot to, uint64_t bytes, bool copied, mpl_value v);
void tagged_take_truth(machine *m, mpl_value v, mpl_value w, uint64_t w_at);
way tagged_decide(machine *m, uint64_t where, uint32_t n, uint32_t *out);
bool tagged_is_idle(const machine *m, mpl_op op);
bool tagged_is_useful(const machine *m, mpl_value v);
loop tagged_loop_of(const machine *m, mpl_op op);
void tagged_mark_all(machine *m);
void tagged_order_units(machine *m);
way tagged_keep_apart(machine *m);
mpl_value tagged_holder(const machine *m, mpl_value v);
bool tagged_is_lost(const machine *m, mpl_value v);
void tagged_claim(machine *m, mpl_value writer, bool comes);
void tagged_claim_buffer(machine *m, mpl_buffer b);
void tagged_forget(machine *m, mpl_op op);
way tagged_keep_all_apart(machine *m);
way tagged_settled(machine *m, uint32_t place, const char *who);
way tagged_keep_room(machine *m, const loop *l, const bool *copied);
bool tagged_may_meet(machine *m, mpl_value in, mpl_value out, bool allowed);
