/* entries.h -- several graphs over one memory: opened, planned as one problem, verified, called. */
#pragma once

#include "graphs/problem/entries/entries.h"
#include "harness/job/execute.h"

typedef struct mpl_entry {
    char *name, *text; /* for messages and --calls; GRAPH */
    mpl_job job;       /* its graph has states in their whole shape */
    mpl_kept *state;   /* [n_states] */
    mpl_held *held;
    mpl_buffer first; /* buffer of the common problem that its buffer 0 is */
} mpl_entry;

typedef struct mpl_entries {
    uint32_t n, n_states;
    mpl_entry *entry;
    char **state_name;
    uint8_t *state_type;
    mpl_shape *state_shape;
    uint64_t *state_bytes;
    char *text; /* all GRAPHs */
    mpl_opener opener;
    const char *const *graph; /* [n_graphs] as given; borrowed */
    uint32_t n_graphs;
    bool is_text; /* one text with entries */
} mpl_entries;

/* If the first n arguments are graphs over one memory (several, with --shared, or a text with
 * entries), makes *options open them as one list of buffers (mpl_problem_of_entries), whose name
 * *graph becomes; else *out stays NULL. The caller frees *out after the job. MPL_EINPUT: options
 * that are for one graph, --shared of a text with entries. */
mpl_status mpl_entries_start(mpl_ctx *ctx, mpl_options *options, uint32_t n, const char **graph,
                             mpl_entries **out);
/* Frees what was read, so that it can be read again. */
void mpl_entries_fini(mpl_ctx *ctx, mpl_entries *entries);
void mpl_entries_free(mpl_ctx *ctx, mpl_entries *entries);

/* Reads the graphs as they are given, with their states; the first step of opening them. */
mpl_status mpl_entries_read(mpl_ctx *ctx, const mpl_options *options, mpl_entries *entries);

/* states.c: finds the states that --shared or the text names, their shapes, and the input and
 * output of each entry for each. MPL_EINPUT: a pattern that matches nothing, two types or shapes,
 * two outputs of one entry. */
mpl_status mpl_entries_match(mpl_ctx *ctx, const mpl_options *options, mpl_entries *entries);

/* The plan of one entry's problem, within the plan of all; verified. */
mpl_status mpl_entries_slice(mpl_ctx *ctx, const mpl_entries *entries, uint32_t e,
                             const mpl_plan *plan, mpl_plan **slice);
/* Offsets in the arena of an entry's values that lie in states: mpl_exec_memory.held_at. */
mpl_status mpl_entries_places(mpl_ctx *ctx, const mpl_entries *entries, uint32_t e,
                              const mpl_plan *plan, uint64_t **held_at);
/* Verifies each entry's part of a verified plan, and any sequence of calls (mpl_verify_calls).
 * MPL_EINVALID. */
mpl_status mpl_entries_verify(mpl_ctx *ctx, const mpl_entries *entries, const mpl_plan *plan);
/* Verifies made->plan so, and writes entries, states and copies into its row. */
mpl_status mpl_entries_finish(mpl_ctx *ctx, const mpl_options *options, const mpl_entries *entries,
                              mpl_made *made);
void mpl_entries_print(const mpl_entries *entries);

/* Runs the calls in the planned arena, states zero at first, and each as a run of the graph as
 * given that shares no memory; compares all outputs of each call, and the states at the end. Call k
 * has inputs of seed 1 + k, or those of --input. */
mpl_status mpl_calls_run(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                         const mpl_entries *entries, const mpl_plan *plan, const uint32_t *calls,
                         uint32_t n, mpl_executed *out);

/* The calls of --calls, into made->executed and its row. */
mpl_status mpl_calls_make(mpl_ctx *ctx, const mpl_options *options, const mpl_entries *entries,
                          mpl_made *made);
