/* options.h -- the command line as a struct, made from options.def. */
#ifndef MPL_OPTIONS_H
#define MPL_OPTIONS_H

#include "graphs/core/base.h"

typedef enum mpl_command_id {
#define COMMAND(name, args, fewest, most, about, example) MPL_CMD_##name,
#include "harness/cli/commands.def"
#undef COMMAND
    MPL_N_COMMANDS
} mpl_command_id;

typedef enum mpl_option_id {
#define OPTION(id, letter, arg, kind, commands, help) MPL_OPT_##id,
#include "harness/cli/options.def"
#undef OPTION
    MPL_N_OPTIONS
} mpl_option_id;

typedef struct mpl_strings {
    uint32_t n;
    size_t cap;
    const char **item;
} mpl_strings;

typedef bool mpl_kind_FLAG;
typedef bool mpl_kind_SWITCH;
typedef const char *mpl_kind_TEXT;
typedef mpl_strings mpl_kind_LIST;
typedef uint64_t mpl_kind_COUNT;
typedef uint64_t mpl_kind_BYTES;
typedef double mpl_kind_REAL;

/* One member an option, of its kind; what was not given has the default that its help names. Texts
 * point into argv. */
typedef struct mpl_options {
#define OPTION(id, letter, arg, kind, commands, help) mpl_kind_##kind id;
#include "harness/cli/options.def"
#undef OPTION
    bool given[MPL_N_OPTIONS];
    mpl_strings args;              /* what is no option */
    const struct mpl_watch *watch; /* set by a command that looks on while it plans; NULL: none */
    char *result; /* --json: the object that a command leaves for main to print; owned */
} mpl_options;

typedef struct mpl_option_info {
    const char *name; /* long name, without the dashes */
    int letter;       /* 0: none */
    const char *arg;  /* NULL: takes none */
    const char *help;
    uint32_t commands; /* bit set of mpl_command_id */
} mpl_option_info;

extern const mpl_option_info mpl_option_table[MPL_N_OPTIONS];

void mpl_options_init(mpl_options *options);
/* Reads argv[1..] of `command` (argv[0] is its name). MPL_EINPUT: an option that the command has
 * not, a value missing or wrong, too few or too many arguments; not with --help. */
mpl_status mpl_options_parse(mpl_ctx *ctx, mpl_command_id command, int argc, char **argv,
                             mpl_options *options);
/* Sets option `name` of `command` (dashes or underscores) as the command line would, unless it was
 * given there; `value` must outlive the options. MPL_EINPUT as above. */
mpl_status mpl_options_default(mpl_ctx *ctx, mpl_command_id command, const char *name,
                               const char *value, mpl_options *options);
void mpl_options_fini(mpl_ctx *ctx, mpl_options *options);

/* "a,b,c" cut at commas, in a copy that `store` owns; empty parts are MPL_EINPUT. */
mpl_status mpl_strings_split(mpl_ctx *ctx, const char *text, const char *what, char **store,
                             mpl_strings *out);
mpl_status mpl_strings_add(mpl_ctx *ctx, mpl_strings *list, const char *item);

/* A whole number of bytes; KiB, MiB or GiB may follow. MPL_EINPUT names `what`. */
mpl_status mpl_parse_bytes(mpl_ctx *ctx, const char *what, const char *text, uint64_t *out);
/* "0.5%" as parts of a million, at most 10^7; NULL: none. MPL_EINPUT names `what`. */
mpl_status mpl_parse_percent(mpl_ctx *ctx, const char *what, const char *text, uint64_t *parts);
/* A whole number in [min, max], all of `text`. `what` names it in the message. */
mpl_status mpl_parse_count(mpl_ctx *ctx, const char *what, const char *text, uint64_t min,
                           uint64_t max, uint64_t *out);

#endif
