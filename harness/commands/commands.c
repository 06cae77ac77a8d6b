/* commands.c -- the functions of the commands, from commands.def. See command.h. */
#include "harness/cli/command.h"

mpl_command_run *const mpl_command_runs[MPL_N_COMMANDS] = {
#define COMMAND(name, args, fewest, most, about, example) mpl_cmd_##name,
#include "harness/cli/commands.def"
};
