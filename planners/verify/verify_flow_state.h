/* verify_flow_state.h -- what stands at each step of a run, for the verifier of control flow.
 * Private to planners/verify/verify_flow*.c. */
#ifndef MPL_VERIFY_FLOW_STATE_H
#define MPL_VERIFY_FLOW_STATE_H

#include "graphs/problem/steps.h"
#include "planners/verify/verify_flow_priv.h"

#define MPL_FLOW_MOST_WORDS ((uint64_t)1 << 28) /* of all states */

typedef struct mpl_flow_run {
    mpl_flow_map map;
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_program *program;
    uint32_t n_words, n_value_words; /* of a state; those of its values, and of loops and cases */
    size_t *node_begin; /* [n_steps + 1] nodes of each step: by class of rounds, the innermost
                           loop's first */
    size_t n_nodes;
    uint32_t *first; /* [n_nodes] the states there, which differ in what came from outside;
                        MPL_NONE: none yet */
    uint32_t *next;  /* [n_states] the next one of the node */
    uint32_t *node;  /* [n_states] */
    uint8_t *queued; /* [n_states] */
    uint64_t *state; /* [n_states * n_words] */
    uint32_t *stack; /* states to go on from */
    uint32_t n_states, n_stack;
    size_t next_room, node_room, queued_room, state_room, stack_room;
    uint64_t *now;               /* [n_words] the state at hand */
    uint64_t *after;             /* [n_words] scratch: one way out of it */
    mpl_value *killer;           /* [n_values] what last destroyed it; MPL_NONE: nothing did */
    mpl_flow_spots *fixed;       /* [n_values] where those lie that never move */
    uint8_t *moves;              /* [n_values] the place depends on the rounds around */
    mpl_flow_spots spots, other; /* scratch */
    uint32_t *given; /* [n_values] number of an input or weight that is planned; MPL_NONE */
    uint32_t n_given;
    bool arriving;           /* what is written now comes from outside */
    uint32_t *last_arrival;  /* [n_values] the last step before which it may come */
    uint32_t *arrival_begin; /* [n_steps + 2] into arrival: what comes before a step, if it has not
                                come yet */
    mpl_value *arrival;
    uint8_t *comes; /* [n_values] scratch: at the step at hand */
} mpl_flow_run;

static inline void mpl_flow_set(uint64_t *state, mpl_value v, bool on)
{
    uint64_t bit = UINT64_C(1) << (v % 64);

    state[v / 64] = on ? state[v / 64] | bit : state[v / 64] & ~bit;
}

/* A loop or case has a bit too: that it has run since its block was entered, or the round began. */
static inline uint32_t mpl_flow_ran(const mpl_flow_run *f, mpl_op op)
{
    return f->g->n_values + op;
}

/* Planned inputs and weights have two more bits: that they came for certain, and that they did not.
 * Until one comes its own bit says nothing. */
static inline uint32_t mpl_flow_came(const mpl_flow_run *f, mpl_value v)
{
    return 64 * f->n_value_words + f->given[v];
}

static inline uint32_t mpl_flow_awaited(const mpl_flow_run *f, mpl_value v)
{
    return 64 * f->n_value_words + f->n_given + f->given[v];
}

static inline bool mpl_flow_is_loop(const mpl_flow_run *f, uint32_t block)
{
    return block > 0 && f->g->op_kind[f->g->block_owner[block]] == MPL_OP_while;
}

static inline uint32_t mpl_flow_block_at(const mpl_flow_run *f, uint32_t step)
{
    return f->program->kind[step] == MPL_STEP_OP ? f->g->op_block[f->program->of[step]]
                                                 : f->program->of[step];
}

bool mpl_flow_stands(const mpl_flow_run *f, const uint64_t *state, mpl_value v);
/* Makes the rounds of a state those at hand. */
void mpl_flow_go_to(mpl_flow_run *f, uint32_t step, size_t node);
/* Control may come to `step` with `state`. */
mpl_status mpl_flow_arrive(mpl_flow_run *f, uint32_t step, uint64_t *state);
/* " in round 0 of 'body'", for each loop around, into text of 200 bytes. */
const char *mpl_flow_rounds_text(const mpl_flow_run *f, char *text);
/* Whoever reads v now must find its contents. */
mpl_status mpl_flow_need(const mpl_flow_run *f, const uint64_t *state, mpl_value v,
                         const char *who);
bool mpl_flow_overlap(const mpl_flow_spots *a, const mpl_flow_spots *b);
/* Where v may lie now; valid until the next call. */
mpl_status mpl_flow_spots_of(mpl_flow_run *f, mpl_value v, const mpl_flow_spots **out);
/* Whether wherever f->spots, of `bytes` bytes, meet `there`, both begin at one byte; false also
 * where either is a slice. */
bool mpl_flow_meet_at_begins(const mpl_flow_run *f, const mpl_flow_spots *there, uint64_t bytes);
/* Destroys what may overlap f->spots, where `writer` is written now, but for `writer` itself, and
 * for outputs of which w, where it lies, is a new row. */
mpl_status mpl_flow_destroy(mpl_flow_run *f, uint64_t *state, mpl_value writer, mpl_where w);
/* Where control flow left something is known only once it has come by. */
mpl_status mpl_flow_settled(const mpl_flow_run *f, const uint64_t *state, mpl_value v, mpl_where w);
/* Writes `writer` at w: what was there is gone, and it stands if `good`. */
mpl_status mpl_flow_write(mpl_flow_run *f, uint64_t *state, mpl_value writer, mpl_where w,
                          bool good);
mpl_status mpl_flow_elsewhere(const mpl_flow_run *f, mpl_value to);
/* Copies to `to`, at `there`, out of `bytes` bytes at `here`, that stand or not: over its own
 * source in part, nothing stands. */
mpl_status mpl_flow_copy(mpl_flow_run *f, uint64_t *state, mpl_value to, mpl_where there,
                         mpl_where here, uint64_t bytes, bool standing);
/* `to`, at `there`, takes over `from`, at `here`, that stands or not: copied, or because both lie
 * at one address. */
mpl_status mpl_flow_hand_on(mpl_flow_run *f, uint64_t *state, mpl_value to, mpl_where there,
                            mpl_where here, bool standing, bool copied);
/* Where parameter v of a body is in `round`. */
mpl_status mpl_flow_where_in(mpl_flow_run *f, mpl_value v, uint32_t block, uint32_t round,
                             mpl_where *out);
/* What lies where `op` decides is lost when that decides anew; and so is what `op` made. */
void mpl_flow_forget(mpl_flow_run *f, uint64_t *state, mpl_op op);
/* Values of a block and of those in it end with it. */
void mpl_flow_leave_block(const mpl_flow_run *f, uint64_t *state, uint32_t block);
/* v comes now, if it has not come yet. */
mpl_status mpl_flow_receive(mpl_flow_run *f, uint64_t *state, mpl_value v);
/* What comes at one step comes in any order: of two that overlap, both are lost. */
mpl_status mpl_flow_receive_all(mpl_flow_run *f, uint64_t *state, uint32_t step);
/* Into the loop, or past it: f->after is what there is. */
mpl_status mpl_flow_enter_loop(mpl_flow_run *f, mpl_op op);
mpl_status mpl_flow_begin_round(mpl_flow_run *f, uint32_t body);
mpl_status mpl_flow_end_round(mpl_flow_run *f, uint32_t body);
/* Out of the loop, by a test in its body: the round at hand counts as never begun. f->after is what
 * there is. */
mpl_status mpl_flow_exit_loop(mpl_flow_run *f, uint32_t body);

#endif
