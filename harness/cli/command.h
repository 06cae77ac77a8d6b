/* command.h -- the commands: a table made from commands.def, one function each. */
#pragma once

#include "harness/cli/options.h"
#include "harness/cli/quote.h"

/* Runs a command. It prints results to stdout, but leaves the object of --json in options->result.
 * The caller prints that object and the message of a failure. Suites and plan files may set options
 * that the command line does not. */
typedef mpl_status mpl_command_run(mpl_ctx *ctx, mpl_options *options);

typedef struct mpl_command {
    const char *name;
    const char *args; /* as in the usage line */
    uint32_t fewest, most;
    const char *about;
    const char *example;
} mpl_command;

extern const mpl_command mpl_commands[MPL_N_COMMANDS];

/* Loads the operators that the options name, then runs the command. MPL_EINPUT: a library is not
 * usable; otherwise the command's own status. */
mpl_status mpl_command_start(mpl_ctx *ctx, mpl_command_id command, mpl_options *options);

#define COMMAND(name, args, fewest, most, about, example) mpl_command_run mpl_cmd_##name;
#include "harness/cli/commands.def"

/* The texts of --help: for all commands, or for one with its options. */
void mpl_help(FILE *to);
void mpl_help_command(FILE *to, mpl_command_id command);
/* harness/cli/OPTIONS.md: every command with its options, as markdown. */
void mpl_help_markdown(FILE *to);
/* memplan(1), for man. */
void mpl_help_man(FILE *to);
