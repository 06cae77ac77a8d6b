/* program.h -- runs tensor_ssa on a GRAPH that is a program. */
#pragma once

#include "harness/job/job.h"

/* Sets *graph to the text to open. A zoo network that is a program (it has a parameter `ssa`, not
 * given) is opened unconverted, so that --ssa and --dump-ssa work on it as on a file. *store, freed
 * by the caller, holds a replaced text. */
mpl_status mpl_program_text(mpl_ctx *ctx, const mpl_options *options, const char **graph,
                            char **store);
/* Replaces a program by its graph in SSA, as --ssa says, with counts in *facts. Writes the graph
 * after each step into the folder of --dump-ssa. Other graphs stay, with *is_program false.
 * MPL_EINPUT: --dump-ssa without a program. */
mpl_status mpl_program_to_ssa(mpl_ctx *ctx, const mpl_options *options, mpl_source *source,
                              bool *is_program, mpl_ssa_facts *facts);
/* Prints these facts for memplan show. */
void mpl_program_show(const mpl_options *options, const mpl_ssa_facts *facts);
