/* options.h -- the command line as a struct, made from options.def. */
#pragma once

#include "harness/cli/values.h"

typedef enum mpl_command_id {
#define COMMAND(name, args, fewest, most, about, example) MPL_CMD_##name,
#include "harness/cli/commands.def"
    MPL_N_COMMANDS
} mpl_command_id;

typedef enum mpl_option_id {
#define OPTION(id, letter, kind, arg, initial, commands, about, details) MPL_OPT_##id,
#include "harness/cli/options.def"
    MPL_N_OPTIONS
} mpl_option_id;

/* Words that options of kinds CHOICE and SET take. */
typedef enum mpl_word {
#define WORD(option, word) MPL_##option##_##word,
#include "harness/cli/options.def"
    MPL_N_WORDS
} mpl_word;

extern const char *const mpl_word_text[MPL_N_WORDS];
/* The k-th word of an option; MPL_N_WORDS: it has fewer words. */
mpl_word mpl_option_word(mpl_option_id id, uint32_t k);

typedef bool mpl_kind_FLAG;
typedef bool mpl_kind_SWITCH;
typedef const char *mpl_kind_TEXT;
typedef mpl_strings mpl_kind_LIST;
typedef uint64_t mpl_kind_COUNT;
typedef uint64_t mpl_kind_BYTES;
typedef double mpl_kind_REAL;
typedef mpl_word mpl_kind_CHOICE;
typedef mpl_safety mpl_kind_SAFETY;
typedef uint32_t mpl_kind_SET;

/* One member for each option, of its kind; options not given have their defaults. Texts point into
 * argv. */
typedef struct mpl_options {
#define OPTION(id, letter, kind, arg, initial, commands, about, details) mpl_kind_##kind id;
#include "harness/cli/options.def"
    bool given[MPL_N_OPTIONS];
    mpl_strings args;                /* arguments that are not options */
    const struct mpl_watch *watch;   /* set by a command that observes planning; NULL: none */
    const struct mpl_opener *opener; /* set by a command that opens GRAPH its own way; NULL: none */
    char *result;                    /* owned: the object of --json, which main prints */
} mpl_options;

typedef struct mpl_option_info {
    const char *name; /* long name without the dashes */
    int letter;       /* 0: none */
    const char *arg;  /* NULL: takes none; "": one of its words (mpl_option_argument) */
    const char *about, *details;
    uint32_t commands; /* bit set of mpl_command_id */
} mpl_option_info;

extern const mpl_option_info mpl_option_table[MPL_N_OPTIONS];

enum { MPL_OPTION_TEXT = 80 }; /* of a name or an argument [byte] */
/* Writes into text[MPL_OPTION_TEXT] the long name with '-' for '_', and the option's argument
 * ("auto|share|copy"; "": none). */
const char *mpl_option_name(mpl_option_id id, char *text);
const char *mpl_option_argument(mpl_option_id id, char *text);

void mpl_options_init(mpl_options *options);
/* Reads argv[1..] of `command` (argv[0] is its name). MPL_EINPUT: an unknown option, a missing or
 * wrong value, too few or too many arguments. With --help the arguments are not checked. */
mpl_status mpl_options_parse(mpl_ctx *ctx, mpl_command_id command, int argc, char **argv,
                             mpl_options *options);
/* Sets option `name` of `command` (dashes or underscores) unless the command line gave it; `value`
 * must outlive the options. MPL_EINPUT as above. */
mpl_status mpl_options_default(mpl_ctx *ctx, mpl_command_id command, const char *name,
                               const char *value, mpl_options *options);
/* The same for a known option and its text in a row (NULL: none). */
mpl_status mpl_options_adopt(mpl_ctx *ctx, mpl_option_id id, const char *value,
                             mpl_options *options);
/* Resets an option, as if it had not been given. */
void mpl_options_reset(mpl_ctx *ctx, mpl_option_id id, mpl_options *options);
void mpl_options_fini(mpl_ctx *ctx, mpl_options *options);
