/* verify_flow_state.h -- which values hold at each step of a run, for the verifier of control flow.
 * Private to planners/verify/verify_flow*.c. */
#pragma once

#include "graphs/problem/steps.h"
#include "planners/verify/verify_flow_priv.h"

#define MPL_FLOW_MOST_WORDS ((uint64_t)1 << 28) /* of all states */

typedef struct mpl_flow_run {
    mpl_flow_map map;
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_program *program;
    uint32_t n_words, n_value_words; /* of a state; of its values, and of its loops and cases */
    /* [n_steps + 1] nodes of each step: one for each class of rounds, innermost loop first */
    size_t *node_begin;
    size_t n_nodes;
    /* [n_nodes] first state; a node's states differ in arrived inputs; MPL_NONE: none yet */
    uint32_t *first;
    uint32_t *next;  /* [n_states] next state of the same node */
    uint32_t *node;  /* [n_states] */
    uint8_t *queued; /* [n_states] */
    uint64_t *state; /* [n_states * n_words] */
    uint32_t *stack; /* states still to process */
    uint32_t n_states, n_stack;
    size_t next_room, node_room, queued_room, state_room, stack_room;
    uint64_t *now;               /* [n_words] the current state */
    uint64_t *after;             /* [n_words] scratch: the state along one way out */
    mpl_value *killer;           /* [n_values] what last destroyed the value; MPL_NONE: nothing */
    mpl_flow_spots *fixed;       /* [n_values] locations of the values that never move */
    uint8_t *moves;              /* [n_values] the place depends on the rounds of loops around */
    mpl_flow_spots spots, other; /* scratch */
    uint32_t *given;             /* [n_values] number of a planned input or weight; else MPL_NONE */
    uint32_t n_given;
    bool arriving;          /* the current write is an arriving input */
    uint32_t *last_arrival; /* [n_values] last step before which it may arrive */
    /* [n_steps + 2] into arrival: values that arrive at the latest before a step */
    uint32_t *arrival_begin;
    mpl_value *arrival;
    uint8_t *comes; /* [n_values] scratch: arrives at the current step */
} mpl_flow_run;

static inline void mpl_flow_set(uint64_t *state, mpl_value v, bool on)
{
    uint64_t bit = UINT64_C(1) << (v % 64);

    state[v / 64] = on ? state[v / 64] | bit : state[v / 64] & ~bit;
}

/* Bit of a loop or case: it has run since its block was entered or the round began. */
static inline uint32_t mpl_flow_ran(const mpl_flow_run *run, mpl_op op)
{
    return run->g->n_values + op;
}

/* Two more bits of a planned input or weight: it certainly arrived; it certainly did not. Until it
 * arrives, its own bit means nothing. */
static inline uint32_t mpl_flow_came(const mpl_flow_run *run, mpl_value v)
{
    return 64 * run->n_value_words + run->given[v];
}

static inline uint32_t mpl_flow_awaited(const mpl_flow_run *run, mpl_value v)
{
    return 64 * run->n_value_words + run->n_given + run->given[v];
}

static inline bool mpl_flow_is_loop(const mpl_flow_run *run, uint32_t block)
{
    return block > 0 && run->g->op_kind[run->g->block_owner[block]] == MPL_OP_while;
}

static inline uint32_t mpl_flow_block_at(const mpl_flow_run *run, uint32_t step)
{
    return run->program->kind[step] == MPL_STEP_OP ? run->g->op_block[run->program->of[step]]
                                                   : run->program->of[step];
}

bool mpl_flow_stands(const mpl_flow_run *run, const uint64_t *state, mpl_value v);
/* Sets the current rounds to those of the state. */
void mpl_flow_go_to(mpl_flow_run *run, uint32_t step, size_t node);
/* Merges `state` into those with which control may reach `step`. */
mpl_status mpl_flow_arrive(mpl_flow_run *run, uint32_t step, uint64_t *state);
/* Writes " in round 0 of 'body'" for each loop around into text of 200 bytes. */
const char *mpl_flow_rounds_text(const mpl_flow_run *run, char *text);
/* Fails unless the contents of v certainly stand, for a read now. */
mpl_status mpl_flow_need(const mpl_flow_run *run, const uint64_t *state, mpl_value v,
                         const char *who);
bool mpl_flow_overlap(const mpl_flow_spots *a, const mpl_flow_spots *b);
/* Where v may lie now. Valid until the next call. */
mpl_status mpl_flow_spots_of(mpl_flow_run *run, mpl_value v, const mpl_flow_spots **out);
/* Whether run->spots, of `bytes` bytes, and `there` begin at the same byte wherever they meet.
 * False if either is a slice. */
bool mpl_flow_meet_at_begins(const mpl_flow_run *run, const mpl_flow_spots *there, uint64_t bytes);
/* Destroys the values that may overlap run->spots when `writer` is written there. Spares `writer`
 * itself, and outputs of which location w is a new row. */
mpl_status mpl_flow_destroy(mpl_flow_run *run, uint64_t *state, mpl_value writer, mpl_where w);
/* Fails unless the control flow that decides a value's location has run. */
mpl_status mpl_flow_settled(const mpl_flow_run *run, const uint64_t *state, mpl_value v,
                            mpl_where w);
/* Writes `writer` at w: destroys what was there; `writer` then stands if `good`. */
mpl_status mpl_flow_write(mpl_flow_run *run, uint64_t *state, mpl_value writer, mpl_where w,
                          bool good);
mpl_status mpl_flow_elsewhere(const mpl_flow_run *run, mpl_value to);
/* Copies `bytes` bytes from `here` to value `to` at `there`. Nothing stands after a copy that
 * partly overlaps its source. */
mpl_status mpl_flow_copy(mpl_flow_run *run, uint64_t *state, mpl_value to, mpl_where there,
                         mpl_where here, uint64_t bytes, bool standing);
/* `to`, at `there`, takes over `from`, at `here`: by a copy, or because both have one address. */
mpl_status mpl_flow_hand_on(mpl_flow_run *run, uint64_t *state, mpl_value to, mpl_where there,
                            mpl_where here, bool standing, bool copied);
/* Location of parameter v of a body in `round`. */
mpl_status mpl_flow_where_in(mpl_flow_run *run, mpl_value v, uint32_t block, uint32_t round,
                             mpl_where *out);
/* When `op` decides anew, drops the values whose location it decides, and its outputs. */
void mpl_flow_forget(mpl_flow_run *run, uint64_t *state, mpl_op op);
/* Drops the values of a block and of its inner blocks at its end. */
void mpl_flow_leave_block(const mpl_flow_run *run, uint64_t *state, uint32_t block);
/* v arrives now, unless it already has. */
mpl_status mpl_flow_receive(mpl_flow_run *run, uint64_t *state, mpl_value v);
/* Values that arrive at one step arrive in any order: if two overlap, both are lost. */
mpl_status mpl_flow_receive_all(mpl_flow_run *run, uint64_t *state, uint32_t step);
/* Enters or bypasses the loop with state run->after. */
mpl_status mpl_flow_enter_loop(mpl_flow_run *run, mpl_op op);
mpl_status mpl_flow_begin_round(mpl_flow_run *run, uint32_t body);
mpl_status mpl_flow_end_round(mpl_flow_run *run, uint32_t body);
/* Leaves the loop by a test in its body, with run->after. The current round counts as never begun.
 */
mpl_status mpl_flow_exit_loop(mpl_flow_run *run, uint32_t body);
