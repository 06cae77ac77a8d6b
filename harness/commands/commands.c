/* commands.c -- the functions of the commands, from commands.def. See command.h. */
#include "harness/cli/command.h"
#include "harness/foreign/operators.h"

mpl_status mpl_command_start(mpl_ctx *ctx, mpl_command_id command, mpl_options *options)
{
    static mpl_command_run *const runs[MPL_N_COMMANDS] = {
#define COMMAND(name, args, fewest, most, about, example) mpl_cmd_##name,
#include "harness/cli/commands.def"
    };

    MPL_PASS(mpl_operators_load(ctx, &options->operators));
    return runs[command](ctx, options);
}
