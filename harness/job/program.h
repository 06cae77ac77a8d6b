/* program.h -- GRAPH as a program: tensor_ssa on the command line. */
#ifndef MPL_HARNESS_PROGRAM_H
#define MPL_HARNESS_PROGRAM_H

#include "harness/job/job.h"

/* What GRAPH is opened as: a network of the zoo that is a program (it has a parameter `ssa`, not
 * given) as it is written, so that --ssa and --dump-ssa work on it as on a file; else GRAPH itself.
 * *store, to be freed, holds the text where it is another. */
mpl_status mpl_program_text(mpl_ctx *ctx, const mpl_options *options, const char **graph,
                            char **store);
/* Replaces a program by its graph in SSA, as --ssa says, with what was done in *facts; writes the
 * graph after each step into the folder of --dump-ssa. A graph that is no program stays, and
 * *is_program is false. MPL_EINPUT: --dump-ssa, and no program. */
mpl_status mpl_program_to_ssa(mpl_ctx *ctx, const mpl_options *options, mpl_source *source,
                              bool *is_program, mpl_ssa_facts *facts);
/* What memplan show says of it. */
void mpl_program_show(const mpl_options *options, const mpl_ssa_facts *facts);

#endif
