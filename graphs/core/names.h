/* names.h -- which name is meant by one that nobody knows. */
#ifndef MPL_GRAPHS_BASE_NAMES_H
#define MPL_GRAPHS_BASE_NAMES_H

#include "graphs/core/base.h"

#define MPL_TOO_FAR 3u /* this many characters put in, left out or changed: it is another name */

/* Whether `name` is nearer than *least edits to the n characters at text; *least is then its
 * distance. What is a beginning of the name is two edits away at most. Begin with *least =
 * MPL_TOO_FAR: the last name that was nearer is the one meant. O(n |name|). */
bool mpl_nearer(const char *text, size_t n, const char *name, uint32_t *least);

#endif
