/* operators.h -- loads the user's operators (--operators so:FILE) into this process. */
#pragma once

#include "harness/cli/options.h"

/* Loads each library, in their order; once, before any graph is opened. Each is loaded in a process
 * of its own first, so that one that cannot be loaded ends as a message. A crash inside an operator
 * ends the program with one line and exit status 2. MPL_EINPUT, naming the library: no such file,
 * or what mpl_user_add refuses. */
mpl_status mpl_operators_load(mpl_ctx *ctx, const mpl_strings *libraries);
