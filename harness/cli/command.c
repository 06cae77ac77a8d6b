/* command.c -- names, arguments and descriptions of commands, from commands.def. See command.h. */
#include "harness/cli/command.h"

const mpl_command mpl_commands[MPL_N_COMMANDS] = {
#define COMMAND(name, args, fewest, most, about, example)                                          \
    {#name, args, fewest, most, about, example},
#include "harness/cli/commands.def"
};
