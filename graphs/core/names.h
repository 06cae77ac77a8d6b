/* names.h -- which name is meant by one that is not known; sets of names. */
#ifndef MPL_GRAPHS_BASE_NAMES_H
#define MPL_GRAPHS_BASE_NAMES_H

#include "graphs/core/base.h"

#define MPL_TOO_FAR 3u /* this many characters put in, left out or changed: it is another name */

/* Whether `name` is nearer than *least edits to the n characters at text; *least is then its
 * distance. What is a beginning of the name is two edits away at most. Begin with *least =
 * MPL_TOO_FAR: the last name that was nearer is the one meant. O(n |name|). */
bool mpl_nearer(const char *text, size_t n, const char *name, uint32_t *least);

/* The names of "A+B+.." as bits: that of name[i] is 1 << i. MPL_EINPUT: one that is not among
 * name[n]; the message begins with `what` and lists them. */
mpl_status mpl_names_to_bits(mpl_ctx *ctx, const char *what, const char *text, uint32_t n,
                             const char *const *name, uint32_t *bits);

#endif
