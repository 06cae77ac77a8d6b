/* foreign.h -- planners from outside: a library (so:FILE) or a command (exec:COMMAND), each call in
 * a process of its own.
 *
 * so:FILE[:key=value,..]  a library with harness/lib/plugin.h's memplan_plugin_main; in rows
 * `so:NAME`, NAME the file's without .so.
 * exec:[NAME=]COMMAND     what /bin/sh runs; in rows `exec:NAME`, NAME (a lower-case letter first,
 * then a-z 0-9 _ -) by default
 *                         that of the program. {in} and {out} become the paths of two lists: {in}
 *                         has id,lower,upper,size and, where any is not 1, alignment; {out} must
 *                         have the same rows with offset, in any order of rows and columns. Without
 *                         {in} the list is on standard input, without {out} it is read from
 *                         standard output. {capacity} becomes the capacity [byte], {time_limit}
 *                         seconds, {threads} and {seed} what they say. The command runs where
 *                         memplan runs; the lists, and what it makes in TMPDIR, are removed. A last
 *                         line on standard error that is a number is its own time in seconds.
 *
 * What fails is told by run->failure: `crash` (a signal, an exit before the answer, a non-zero exit
 * status; MPL_EINVALID), `timeout` (killed at the deadline, after MPL_FOREIGN_LIMIT_NS where there
 * is none; MPL_ELIMIT), `garbage` (an answer that is no plan; MPL_EINVALID), `refused` (by the
 * verifier; MPL_EINVALID), `unavailable` (no such command, no such version, a problem that it
 * cannot take; MPL_EUNAVAIL). run->plan_ns is the time within plan() of a library, and all of a
 * command's process. */
#ifndef MPL_FOREIGN_H
#define MPL_FOREIGN_H

#include "planners/planner.h"

#define MPL_FOREIGN_LIMIT_NS (INT64_C(300) * 1000000000) /* without --time-limit */

typedef struct mpl_foreign {
    mpl_planner planner; /* first: plan() finds the rest through run->planner */
    const char *kind;    /* "so" or "exec" */
    char *name;          /* "so:libmine", "exec:minimalloc" */
    char *target;        /* the library's path, the command */
    mpl_status (*ask)(mpl_run *run, const mpl_problem *p, uint64_t *offset, uint64_t *bound_bytes);
} mpl_foreign;

/* Whether `text` names one, and so belongs to mpl_foreign_new. */
bool mpl_foreign_named(const char *text);
/* *params: what follows the library's path, "key=value,..", in `text`; NULL: nothing. MPL_EINPUT:
 * no file, no command. */
mpl_status mpl_foreign_new(mpl_ctx *ctx, const char *text, mpl_foreign **out, const char **params);
/* NAME=PATH|COMMAND of bench --peer. A program at PATH gets the flags of the solver of that name
 * where memplan knows them, else {in} and {out}. MPL_EINPUT: no NAME. */
mpl_status mpl_foreign_peer(mpl_ctx *ctx, const char *text, mpl_foreign **out);
void mpl_foreign_free(mpl_ctx *ctx, mpl_foreign *foreign);

/* The two ways to ask: offset[n] of each buffer is written, MPL_UNPLACED stays where none is said;
 * a library may claim a bound. What they write is checked by who called them. */
mpl_status mpl_foreign_so_ask(mpl_run *run, const mpl_problem *p, uint64_t *offset,
                              uint64_t *bound_bytes);
mpl_status mpl_foreign_exec_ask(mpl_run *run, const mpl_problem *p, uint64_t *offset,
                                uint64_t *bound_bytes);

struct mpl_ending; /* harness/cli/isolate.h */
/* The failure of a process that did not end well: ended by a limit or a signal; MPL_OK
 * otherwise. */
mpl_status mpl_foreign_ended(mpl_run *run, const struct mpl_ending *ending, int64_t limit_ns);
/* Time that one call has. [ns] */
int64_t mpl_foreign_limit(const mpl_run *run);
/* A failure that is the planner's: sets run->failure and the message "planner NAME: ..", in which
 * control characters become blanks. `st` as above. */
mpl_status mpl_foreign_fail(mpl_run *run, mpl_status st, const char *failure, const char *format,
                            ...) __attribute__((format(printf, 4, 5)));
#define MPL_UNPLACED UINT64_MAX /* an offset that was not written */

#endif
