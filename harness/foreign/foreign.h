/* foreign.h -- external planners: a library (so:FILE) or a command (exec:COMMAND). Each call runs
 * in a separate process.
 *
 * so:FILE[:key=value,..]  a library that defines memplan_plugin_main of harness/lib/plugin.h.
 *                         Rows call it `so:NAME`; NAME is the file's name without .so.
 * exec:[NAME=]COMMAND     a command for /bin/sh. Rows call it `exec:NAME`; NAME is a lower-case
 *                         letter, then a-z 0-9 _ -, by default the program's name.
 *                         {in} and {out} become the paths of two lists. {in} has the columns
 *                         id,lower,upper,size and, where any is not 1, alignment. {out} must have
 *                         the same rows with offset, in any order of rows and columns. Without
 *                         {in} or {out} the list is standard input or output. {capacity} becomes
 *                         the capacity [byte], {time_limit} seconds, {threads} and {seed} those
 *                         options. The command runs in memplan's folder; the lists and the files
 *                         that it makes in TMPDIR are removed. A last line on standard error that
 *                         is a number is the command's own time in seconds.
 *
 * run->failure names a failure: `crash` (a signal, an exit before the answer, a non-zero exit
 * status; MPL_EINVALID), `timeout` (killed at the deadline, or after MPL_FOREIGN_LIMIT_NS without
 * one; MPL_ELIMIT), `garbage` (the answer is no plan; MPL_EINVALID), `refused` (by the verifier;
 * MPL_EINVALID), `unavailable` (no such command or version, or it cannot take the problem;
 * MPL_EUNAVAIL). run->plan_ns is the time within plan() of a library, or of the whole process of a
 * command. */
#pragma once

#include "planners/planner.h"

#define MPL_FOREIGN_LIMIT_NS (INT64_C(300) * 1000000000) /* without --time-limit */

typedef struct mpl_foreign {
    mpl_planner planner; /* first: plan() finds the rest through run->planner */
    const char *kind;
    char *name;   /* "so:libmine", "exec:minimalloc" */
    char *target; /* the library's path, the command */
    mpl_status (*ask)(mpl_run *run, const mpl_problem *p, uint64_t *offset, uint64_t *bound_bytes);
} mpl_foreign;

/* Whether `text` names an external planner, for mpl_foreign_new. */
bool mpl_foreign_named(const char *text);
/* *params points into `text` at "key=value,.." after the library's path; NULL: none. MPL_EINPUT: no
 * file, no command. */
mpl_status mpl_foreign_new(mpl_ctx *ctx, const char *text, mpl_foreign **out, const char **params);
/* NAME=PATH|COMMAND of bench --peer. A program at PATH gets the known flags of the solver NAME,
 * else {in} and {out}. MPL_EINPUT: no NAME. */
mpl_status mpl_foreign_peer(mpl_ctx *ctx, const char *text, mpl_foreign **out);
void mpl_foreign_free(mpl_ctx *ctx, mpl_foreign *foreign);

/* The two kinds of calls. They write offset[n], and MPL_UNPLACED for a buffer without an answer. A
 * library may claim a bound. The caller checks the answer. */
mpl_status mpl_foreign_so_ask(mpl_run *run, const mpl_problem *p, uint64_t *offset,
                              uint64_t *bound_bytes);
mpl_status mpl_foreign_exec_ask(mpl_run *run, const mpl_problem *p, uint64_t *offset,
                                uint64_t *bound_bytes);

struct mpl_ending; /* harness/cli/isolate.h */
/* The failure of a process that a limit or a signal ended; MPL_OK otherwise. */
mpl_status mpl_foreign_ended(mpl_run *run, const struct mpl_ending *ending, int64_t limit_ns);
/* Time limit of one call. [ns] */
int64_t mpl_foreign_limit(const mpl_run *run);
/* Reports a failure of the planner: sets run->failure and the message "planner NAME: ..", with
 * control characters as blanks. `st` is as listed above. */
mpl_status mpl_foreign_fail(mpl_run *run, mpl_status st, const char *failure, const char *format,
                            ...) __attribute__((format(printf, 4, 5)));
#define MPL_UNPLACED UINT64_MAX /* an offset that was not written */
