/* pickle.h -- reads Python pickles of plain data, and executes nothing of them. */
#pragma once

#include "planners/plan/plan_json.h"

/* Whether the text begins as a pickle of protocol 2 to 5. */
bool mpl_pickle_is(const char *text, size_t size);

/* The pickle as JSON: dicts with text keys, lists, tuples (as lists), texts, booleans, None,
 * floats, and whole numbers that fit 64 bits with a sign. What was shared in Python is shared in
 * *out. MPL_EINPUT, one line with path and byte: anything that would name or call code (GLOBAL,
 * REDUCE, BUILD, ..), other kinds of data, a file that is cut, an object within itself, or more
 * than 64 objects in each other. O(size). */
mpl_status mpl_pickle_read(mpl_ctx *ctx, const char *path, const char *text, size_t size,
                           json_t **out);
