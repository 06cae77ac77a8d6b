/* names.h -- suggestions for unknown names; sets of names. */
#pragma once

#include "graphs/core/base.h"

#define MPL_TOO_FAR 3u /* this many edits or more: a different name */

/* Whether the edit distance of `name` to the n characters at text is below *least; if so, *least
 * becomes that distance. A prefix of the name counts as at most two edits. Start with *least =
 * MPL_TOO_FAR; the last nearer name is the suggestion. O(n |name|). */
bool mpl_nearer(const char *text, size_t n, const char *name, uint32_t *least);

/* Converts "A+B+.." to bits: name[i] is 1 << i. MPL_EINPUT: a word is not among name[n]; the
 * message begins with `what` and lists the names. */
mpl_status mpl_names_to_bits(mpl_ctx *ctx, const char *what, const char *text, uint32_t n,
                             const char *const *name, uint32_t *bits);
