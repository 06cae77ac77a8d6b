/* options.c -- options.def as getopt_long reads it. See options.h. */
#include "harness/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>

#include "graphs/core/names.h"
#include "graphs/core/size.h"
#include "harness/cli/command.h"

#define C(name) (1u << MPL_CMD_##name)

enum kind { FLAG, SWITCH, TEXT, LIST, COUNT, BYTES, REAL };

const mpl_option_info mpl_option_table[MPL_N_OPTIONS] = {
#define OPTION(id, letter, arg, kind, commands, help) {#id, letter, arg, help, commands},
#include "harness/cli/options.def"
#undef OPTION
};

static const struct {
    enum kind kind;
    size_t at; /* of the member in mpl_options */
} target[MPL_N_OPTIONS] = {
#define OPTION(id, letter, arg, kind, commands, help) {kind, offsetof(mpl_options, id)},
#include "harness/cli/options.def"
#undef OPTION
};

void mpl_options_init(mpl_options *options)
{
    memset(options, 0, sizeof *options);
    options->order = "given";
    options->in_place = options->views = true;
    options->concat = "auto";
    options->loop = "view";
    options->ssa = "full";
    options->rnn = "while";
    options->layout = "plain";
    options->optimise = "none";
    options->recompute = "none";
    options->workspaces = "pool";
    options->algorithms = "fastest";
    options->pin = "weights,inputs,outputs";
    options->pools = "none";
    options->capacity = options->budget = UINT64_MAX;
    options->seed = 1;
    options->repeat = 5;
    options->turns = 1;
}

void mpl_options_fini(mpl_ctx *ctx, mpl_options *options)
{
    for (int i = 0; i < MPL_N_OPTIONS; i++)
        if (target[i].kind == LIST)
            mpl_free(ctx, ((mpl_strings *)((char *)options + target[i].at))->item);
    mpl_free(ctx, options->args.item);
    mpl_free(ctx, options->result);
    mpl_options_init(options);
}

mpl_status mpl_strings_add(mpl_ctx *ctx, mpl_strings *list, const char *item)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_reserve(ctx, list->item, list->cap, (size_t)list->n + 1));
    list->item[list->n++] = item;
out:
    return st;
}

mpl_status mpl_strings_split(mpl_ctx *ctx, const char *text, const char *what, char **store,
                             mpl_strings *out)
{
    mpl_status st = MPL_OK;
    char *copy = mpl_strdup(ctx, text);

    if (copy == NULL)
        return MPL_EMEM;
    *store = copy;
    for (char *at = copy, *end; at != NULL; at = end) {
        end = strchr(at, ',');
        if (end != NULL)
            *end++ = '\0';
        if (*at == '\0')
            MPL_FAIL(ctx, MPL_EINPUT, "%s: an empty name in '%s'", what, text);
        MPL_TRY(mpl_strings_add(ctx, out, at));
    }
out:
    return st;
}

mpl_status mpl_parse_count(mpl_ctx *ctx, const char *what, const char *text, uint64_t min,
                           uint64_t max, uint64_t *out)
{
    mpl_status st = MPL_OK;
    char *end = NULL;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || value < min ||
        value > max)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: '%s' is no whole number from %" PRIu64 " to %" PRIu64, what,
                 text, min, max);
    *out = value;
out:
    return st;
}

mpl_status mpl_parse_bytes(mpl_ctx *ctx, const char *what, const char *text, uint64_t *out)
{
    mpl_status st = MPL_OK;
    const char *end;
    uint64_t bytes;

    if (!mpl_size_read(text, &end, &bytes) || *end != '\0')
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: '%.100s' is no number of bytes (digits, then nothing, KiB, MiB or GiB)", what,
                 text);
    *out = bytes;
out:
    return st;
}

mpl_status mpl_parse_percent(mpl_ctx *ctx, const char *what, const char *text, uint64_t *parts)
{
    mpl_status st = MPL_OK;
    char *end = NULL;
    double percent;

    *parts = 0;
    if (text == NULL)
        goto out;
    percent = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !isfinite(percent) || percent < 0 || percent > 1000)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: '%s' is no percentage from 0%% to 1000%% with its sign, such as 0.5%%", what,
                 text);
    *parts = (uint64_t)(percent * 10000 + 0.5);
out:
    return st;
}

static mpl_status set(mpl_ctx *ctx, mpl_options *options, int i, const char *value)
{
    mpl_status st = MPL_OK;
    void *at = (char *)options + target[i].at;
    char what[32];

    snprintf(what, sizeof what, "--%s", mpl_option_table[i].name);
    for (char *c = what; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    options->given[i] = true;
    switch (target[i].kind) {
    case FLAG:
        *(bool *)at = true;
        break;
    case SWITCH:
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: '%s' is neither on nor off", what, value);
        *(bool *)at = strcmp(value, "on") == 0;
        break;
    case TEXT:
        if (value[0] == '\0')
            MPL_FAIL(ctx, MPL_EINPUT, "%s: empty; it takes %s", what, mpl_option_table[i].arg);
        *(const char **)at = value;
        break;
    case LIST:
        MPL_TRY(mpl_strings_add(ctx, at, value));
        break;
    case COUNT:
        MPL_TRY(mpl_parse_count(ctx, what, value, 0, INT64_MAX, at));
        break;
    case BYTES:
        MPL_TRY(mpl_parse_bytes(ctx, what, value, at));
        break;
    case REAL: {
        char *end = NULL;
        double real = strtod(value, &end);

        if (end == value || *end != '\0' || !isfinite(real) || real < 0)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: '%s' is no number of at least 0", what, value);
        *(double *)at = real;
        break;
    }
    }
out:
    return st;
}

static bool same_name(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if (*a != *b && !(*a == '_' && *b == '-'))
            return false;
    return *a == *b;
}

mpl_status mpl_options_default(mpl_ctx *ctx, mpl_command_id command, const char *name,
                               const char *value, mpl_options *options)
{
    mpl_status st = MPL_OK;
    int i = 0;

    while (i < MPL_N_OPTIONS && !same_name(mpl_option_table[i].name, name))
        i++;
    if (i == MPL_N_OPTIONS || !(mpl_option_table[i].commands & (1u << command)) ||
        i == MPL_OPT_help)
        MPL_FAIL(ctx, MPL_EINPUT, "no option '--%s'; see memplan %s --help", name,
                 mpl_commands[command].name);
    if (options->given[i])
        goto out;
    if ((mpl_option_table[i].arg == NULL) != (value[0] == '\0'))
        MPL_FAIL(ctx, MPL_EINPUT, "--%s %s", name,
                 value[0] == '\0' ? "needs a value" : "takes no value");
    MPL_TRY(set(ctx, options, i, value));
out:
    return st;
}

/* What getopt_long needs for one command: long options with their names in `name`, short letters in
 * `letters`. */
typedef struct spec {
    struct option option[MPL_N_OPTIONS + 1];
    char name[MPL_N_OPTIONS][32];
    char letters[2 * MPL_N_OPTIONS + 2];
} spec;

static void make_spec(mpl_command_id command, spec *s)
{
    size_t n = 0, l = 0;

    memset(s, 0, sizeof *s);
    s->letters[l++] = ':'; /* a missing value is told apart */
    for (int i = 0; i < MPL_N_OPTIONS; i++) {
        const mpl_option_info *info = &mpl_option_table[i];

        if (!(info->commands & (1u << command)))
            continue;
        for (size_t k = 0; info->name[k] != '\0'; k++)
            s->name[n][k] = info->name[k] == '_' ? '-' : info->name[k];
        s->option[n] = (struct option){s->name[n], info->arg != NULL, NULL, 256 + i};
        n++;
        if (info->letter == 0)
            continue;
        s->letters[l++] = (char)info->letter;
        if (info->arg != NULL)
            s->letters[l++] = ':';
    }
}

static int by_letter(mpl_command_id command, int letter)
{
    for (int i = 0; i < MPL_N_OPTIONS; i++)
        if (mpl_option_table[i].letter == letter && mpl_option_table[i].commands & (1u << command))
            return i;
    return -1;
}

/* What is wrong with an option that getopt_long does not know: of other commands, misspelt, or cut
 * too short. */
static mpl_status no_option(mpl_ctx *ctx, mpl_command_id command, const spec *s, const char *given)
{
    const char *of = mpl_commands[command].name, *near = NULL, *name = given + strspn(given, "-");
    size_t n = strcspn(name, "="), at = 0;
    uint32_t least = MPL_TOO_FAR;
    char word[32], others[200] = "";

    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), name);
    for (int i = 0; i < MPL_N_OPTIONS; i++) {
        if (!same_name(mpl_option_table[i].name, word))
            continue;
        for (int c = 0; c < MPL_N_COMMANDS && at < sizeof others; c++)
            if (mpl_option_table[i].commands & (1u << c))
                at += (size_t)snprintf(others + at, sizeof others - at, "%s%s", at > 0 ? ", " : "",
                                       mpl_commands[c].name);
        return mpl_fail(ctx, MPL_EINPUT, __FILE__, __LINE__,
                        "%s: no option '--%s' here, but for %s", of, word, others);
    }
    for (size_t i = 0; s->option[i].name != NULL; i++)
        if (mpl_nearer(name, n, s->name[i], &least))
            near = s->name[i];
    return mpl_fail(ctx, MPL_EINPUT, __FILE__, __LINE__,
                    "%s: no option '%.100s'%s%s%s; see memplan %s --help", of, given,
                    near != NULL ? " (is '--" : ", or short for several", near != NULL ? near : "",
                    near != NULL ? "' meant?)" : "", of);
}

mpl_status mpl_options_parse(mpl_ctx *ctx, mpl_command_id command, int argc, char **argv,
                             mpl_options *options)
{
    const mpl_command *info = &mpl_commands[command];
    mpl_status st = MPL_OK;
    spec s;
    int got;

    make_spec(command, &s);
    opterr = 0;
    optind = 0; /* glibc: start anew */
    while ((got = getopt_long(argc, argv, s.letters, s.option, NULL)) != -1) {
        if (got == ':')
            MPL_FAIL(ctx, MPL_EINPUT, "%s: %s needs a value; see memplan %s --help", info->name,
                     argv[optind - 1], info->name);
        if (got == '?' && optopt >= 256)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: %s takes no value", info->name, argv[optind - 1]);
        if (got == '?' && optopt > 0 && strncmp(argv[optind - 1], "--", 2) != 0)
            MPL_FAIL(ctx, MPL_EINPUT, "%s: no option '-%c'; see memplan %s --help", info->name,
                     optopt, info->name);
        if (got == '?')
            MPL_TRY(no_option(ctx, command, &s, argv[optind - 1]));
        MPL_TRY(set(ctx, options, got >= 256 ? got - 256 : by_letter(command, got), optarg));
    }
    for (int i = optind; i < argc; i++)
        MPL_TRY(mpl_strings_add(ctx, &options->args, argv[i]));
    if (options->help)
        goto out;
    if (options->args.n < info->fewest || options->args.n > info->most)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: %s; usage: memplan %s %s", info->name,
                 options->args.n < info->fewest ? "an argument is missing" : "too many arguments",
                 info->name, info->args);
out:
    return st;
}
