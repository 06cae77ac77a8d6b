/* revolve.h -- the tape of a loop in training, kept in part. A taped loop writes the states
 * (carried values) that its rounds begin with; the loop that goes back reads them, last round
 * first. Here states lie in fewer rows than there are rounds, and lost ones are made again from
 * earlier ones.
 */
#pragma once

#include "graphs/graph.h"

/* ---- schedules (revolve.c) ---- */

typedef enum mpl_schedule_step { MPL_ADVANCE, MPL_REVERSE } mpl_schedule_step;

typedef struct mpl_schedule_action {
    mpl_schedule_step step;
    uint32_t row;      /* the state of round `from` is restored from here */
    uint32_t from, to; /* advance: runs rounds [from, to) forward; reverse: goes back through from
                        */
    uint32_t store;    /* advance: the row that the state of round `to` is stored in */
} mpl_schedule_action;

/* Begins with the state of round 0 in row 0. Between two reversals, each advance goes on from what
 * the one before stored. All zero, or owned. */
typedef struct mpl_schedule {
    uint32_t n_rounds, n_rows;
    uint32_t n_actions;
    mpl_schedule_action *action; /* [n_actions] */
    size_t room;
    uint64_t n_forward; /* rounds of all advances; n_rounds - 1 of them before the first reversal */
} mpl_schedule;

/* Most rounds of the advances of one schedule. */
enum { MPL_MOST_FORWARD = 1 << 22 };

/* Schedules n_rounds > 0 rounds. slots: states kept at once, that of round 0 among them, besides
 * the current one; 0: the method's own number. MPL_ELIMIT: more than MPL_MOST_FORWARD rounds.
 * O(actions). */
typedef mpl_status mpl_schedule_make(mpl_ctx *ctx, uint32_t n_rounds, uint32_t slots,
                                     mpl_schedule *out);
/* The least number of rounds that any schedule with these slots runs forward (Griewank and Walther,
 * 2000); ceil(log2(rounds)) slots if 0. */
mpl_schedule_make mpl_schedule_revolve;
/* Keeps every ceil(sqrt(rounds))-th state, and all of the segment that is gone back through. */
mpl_schedule_make mpl_schedule_sqrt;
/* r l - C(c + r, c + 1) for l rounds in c > 0 slots, C(c + r - 1, c) <= l <= C(c + r, c): what
 * mpl_schedule_revolve runs forward. O(r). */
uint64_t mpl_revolve_rounds(uint32_t n_rounds, uint32_t slots);
void mpl_schedule_fini(mpl_ctx *ctx, mpl_schedule *schedule);

/* ---- loops with a tape (revolve_loops.c) ---- */

typedef struct mpl_taped_loop {
    mpl_op forward, backward; /* in one block; both certainly run n_rounds rounds */
    uint32_t n_rounds;
    uint32_t n_states, *state; /* [n_states] carried values that make each other, ascending */
    uint8_t *makes;            /* [n_ops] operations of the forward body that make them */
    uint8_t *dropped;          /* [rows of forward] rows that are tape */
    uint32_t *shown;           /* [scans of backward] index into state; MPL_NONE: no tape */
    uint64_t state_bytes;      /* of one round */
    uint64_t enclosing;        /* times that the backward loop runs at most */
    uint64_t round_work;       /* of making the states of one round */
    uint32_t n_ops;            /* operations marked in makes, views apart */
    mpl_schedule schedule;
} mpl_taped_loop;

typedef struct mpl_taped_loops {
    uint32_t n;
    mpl_taped_loop *loop;
    char why[200]; /* why a loop with a tape is not among them; "": there is none such */
} mpl_taped_loops;

/* Finds the loops of g whose tape one other loop reads back, and nothing else. O(loops * size). */
mpl_status mpl_taped_loops_find(mpl_ctx *ctx, const mpl_graph *g, mpl_taped_loops *out);
void mpl_taped_loops_fini(mpl_ctx *ctx, mpl_taped_loops *loops);

/* Copies g; loops whose schedule has fewer rows than rounds keep their tape by it. Their states lie
 * in one value of n_rows rows each, which is written in place. MPL_EINPUT as mpl_rerun. */
mpl_status mpl_taped_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_taped_loops *loops,
                           mpl_graph **out);

/* The operation's work, times the rounds of the loops between it and `top`, a block around it, or 1
 * where they are not known. */
uint64_t mpl_work_within(const mpl_graph *g, mpl_op op, uint32_t top);
