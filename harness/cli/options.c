/* options.c -- parses options.def with getopt_long. See options.h. */
#include "harness/cli/options.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>

#include "graphs/core/names.h"
#include "harness/cli/command.h"

#define C(name) (1u << MPL_CMD_##name)

enum kind { FLAG, SWITCH, TEXT, LIST, COUNT, BYTES, REAL, CHOICE, SAFETY, SET };

const mpl_option_info mpl_option_table[MPL_N_OPTIONS] = {
#define OPTION(id, letter, kind, arg, initial, commands, about, details)                           \
    {#id, letter, arg, about, details, commands},
#include "harness/cli/options.def"
};

static const struct {
    enum kind kind;
    size_t at, size; /* of the member in mpl_options */
} target[MPL_N_OPTIONS] = {
#define OPTION(id, letter, kind, arg, initial, commands, about, details)                           \
    {kind, offsetof(mpl_options, id), sizeof((mpl_options *)0)->id},
#include "harness/cli/options.def"
};

const char *const mpl_word_text[MPL_N_WORDS] = {
#define WORD(option, word) #word,
#include "harness/cli/options.def"
};

static const mpl_option_id word_option[MPL_N_WORDS] = {
#define WORD(option, word) MPL_OPT_##option,
#include "harness/cli/options.def"
};

void mpl_options_init(mpl_options *options)
{
    *options = (mpl_options){
#define OPTION(id, letter, kind, arg, initial, commands, about, details) .id = initial,
#include "harness/cli/options.def"
        .given = {false}};
}

const char *mpl_option_name(mpl_option_id id, char *text)
{
    snprintf(text, MPL_OPTION_TEXT, "%s", mpl_option_table[id].name);
    for (char *c = text; (c = strchr(c, '_')) != NULL;)
        *c = '-';
    return text;
}

mpl_word mpl_option_word(mpl_option_id id, uint32_t k)
{
    mpl_word w = 0;

    while (w < MPL_N_WORDS && word_option[w] != id)
        w++;
    return w + k < MPL_N_WORDS && word_option[w + k] == id ? w + k : MPL_N_WORDS;
}

/* The words of an option, separated by `between`. */
static const char *words_of(mpl_option_id id, const char *between, char *text)
{
    mpl_word w;
    int n = 0;

    for (uint32_t k = 0; (w = mpl_option_word(id, k)) < MPL_N_WORDS; k++)
        n += snprintf(text + n, MPL_OPTION_TEXT - (size_t)n, "%s%s", k > 0 ? between : "",
                      mpl_word_text[w]);
    return text;
}

const char *mpl_option_argument(mpl_option_id id, char *text)
{
    const char *arg = mpl_option_table[id].arg;

    if (target[id].kind == CHOICE || target[id].kind == SET)
        return words_of(id, target[id].kind == SET ? "," : "|", text);
    snprintf(text, MPL_OPTION_TEXT, "%s", arg != NULL ? arg : "");
    return text;
}

void mpl_options_reset(mpl_ctx *ctx, mpl_option_id id, mpl_options *options)
{
    mpl_options initial;
    char *at = (char *)options + target[id].at;

    mpl_options_init(&initial);
    if (target[id].kind == LIST)
        mpl_free(ctx, ((mpl_strings *)(void *)at)->item);
    memcpy(at, (char *)&initial + target[id].at, target[id].size);
    options->given[id] = false;
}

void mpl_options_fini(mpl_ctx *ctx, mpl_options *options)
{
    for (mpl_option_id i = 0; i < MPL_N_OPTIONS; i++)
        mpl_options_reset(ctx, i, options);
    mpl_free_each(ctx, options->args.item, options->result);
    options->args = (mpl_strings){0};
    options->result = NULL;
}

/* Index of the option's word equal to the first n characters of text; UINT32_MAX: none. */
static uint32_t number_of(mpl_option_id id, const char *text, size_t n)
{
    mpl_word w;

    for (uint32_t k = 0; (w = mpl_option_word(id, k)) < MPL_N_WORDS; k++)
        if (strlen(mpl_word_text[w]) == n && memcmp(mpl_word_text[w], text, n) == 0)
            return k;
    return UINT32_MAX;
}

static mpl_status set_choice(mpl_ctx *ctx, mpl_option_id id, const char *what, const char *value,
                             mpl_word *out)
{
    uint32_t k = number_of(id, value, strlen(value));
    char words[MPL_OPTION_TEXT];

    if (k == UINT32_MAX)
        return MPL_REFUSE(ctx, "%s is one of %s, not '%.100s'", what, words_of(id, ", ", words),
                          value);
    *out = mpl_option_word(id, k);
    return MPL_OK;
}

static mpl_status set_words(mpl_ctx *ctx, mpl_option_id id, const char *what, const char *value,
                            uint32_t *out)
{
    uint32_t bits = 0;
    char words[MPL_OPTION_TEXT];

    for (const char *at = value; strcmp(value, "none") != 0 && at != NULL;) {
        size_t n = strcspn(at, ",");
        uint32_t k = number_of(id, at, n);

        if (k == UINT32_MAX)
            return MPL_REFUSE(ctx, "%s is none, or a list of some of %s, not '%.100s'", what,
                              words_of(id, ", ", words), value);
        bits |= 1u << k;
        at = at[n] == ',' ? at + n + 1 : NULL;
    }
    *out = bits;
    return MPL_OK;
}

static mpl_status set_real(mpl_ctx *ctx, const char *what, const char *value, double *out)
{
    char *end = NULL;
    double real = strtod(value, &end);

    if (end == value || *end != '\0' || !isfinite(real) || real < 0)
        return MPL_REFUSE(ctx, "%s: '%s' is no number of at least 0", what, value);
    *out = real;
    return MPL_OK;
}

static mpl_status set(mpl_ctx *ctx, mpl_options *options, mpl_option_id id, const char *value)
{
    void *at = (char *)options + target[id].at;
    char name[MPL_OPTION_TEXT], what[MPL_OPTION_TEXT + 2];

    snprintf(what, sizeof what, "--%s", mpl_option_name(id, name));
    switch (target[id].kind) {
    case FLAG:
        *(bool *)at = true;
        break;
    case SWITCH:
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
            return MPL_REFUSE(ctx, "%s is on or off, not '%s'", what, value);
        *(bool *)at = strcmp(value, "on") == 0;
        break;
    case TEXT:
        if (value[0] == '\0')
            return MPL_REFUSE(ctx, "%s: empty; it takes %s", what, mpl_option_table[id].arg);
        *(const char **)at = value;
        break;
    case LIST:
        MPL_PASS(mpl_strings_add(ctx, at, value));
        break;
    case COUNT:
        MPL_PASS(mpl_parse_count(ctx, what, value, 0, INT64_MAX, at));
        break;
    case BYTES:
        MPL_PASS(mpl_parse_bytes(ctx, what, value, at));
        break;
    case REAL:
        MPL_PASS(set_real(ctx, what, value, at));
        break;
    case CHOICE:
        MPL_PASS(set_choice(ctx, id, what, value, at));
        break;
    case SAFETY:
        MPL_PASS(mpl_parse_safety(ctx, what, value, at));
        break;
    case SET:
        MPL_PASS(set_words(ctx, id, what, value, at));
        break;
    }
    options->given[id] = true;
    return MPL_OK;
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
    int i = 0;

    while (i < MPL_N_OPTIONS && !same_name(mpl_option_table[i].name, name))
        i++;
    if (i == MPL_N_OPTIONS || !(mpl_option_table[i].commands & (1u << command)) ||
        i == MPL_OPT_help)
        return MPL_REFUSE(ctx, "no option '--%s'; see memplan %s --help", name,
                          mpl_commands[command].name);
    if (options->given[i])
        return MPL_OK;
    if ((mpl_option_table[i].arg == NULL) != (value[0] == '\0'))
        return MPL_REFUSE(ctx, "--%s %s", name,
                          value[0] == '\0' ? "needs a value" : "takes no value");
    return set(ctx, options, (mpl_option_id)i, value);
}

mpl_status mpl_options_adopt(mpl_ctx *ctx, mpl_option_id id, const char *value,
                             mpl_options *options)
{
    bool given = options->given[id];

    if (!given && value != NULL)
        MPL_PASS(set(ctx, options, id, value));
    options->given[id] = given; /* true only for the command line */
    return MPL_OK;
}

/* Input of getopt_long for one command: long options with their names in `name`, short letters in
 * `letters`. */
typedef struct spec {
    struct option option[MPL_N_OPTIONS + 1];
    char name[MPL_N_OPTIONS][MPL_OPTION_TEXT];
    char letters[2 * MPL_N_OPTIONS + 2];
} spec;

static void make_spec(mpl_command_id command, spec *s)
{
    size_t n = 0, l = 0;

    memset(s, 0, sizeof *s);
    s->letters[l++] = ':'; /* reports a missing value separately */
    for (int i = 0; i < MPL_N_OPTIONS; i++) {
        const mpl_option_info *info = &mpl_option_table[i];

        if (!(info->commands & (1u << command)))
            continue;
        mpl_option_name((mpl_option_id)i, s->name[n]);
        s->option[n] = (struct option){s->name[n], info->arg != NULL, NULL, 256 + i};
        n++;
        if (info->letter == 0)
            continue;
        s->letters[l++] = (char)info->letter;
        if (info->arg != NULL)
            s->letters[l++] = ':';
    }
}

static mpl_option_id by_letter(mpl_command_id command, int letter)
{
    mpl_option_id i = 0;

    while (mpl_option_table[i].letter != letter ||
           (mpl_option_table[i].commands & (1u << command)) == 0)
        i++;
    return i;
}

/* Explains an option that getopt_long rejects: of another command, misspelt or ambiguous. */
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
        return MPL_REFUSE(ctx, "%s: no option '--%s' here, but for %s", of, word, others);
    }
    for (size_t i = 0; s->option[i].name != NULL; i++)
        if (mpl_nearer(name, n, s->name[i], &least))
            near = s->name[i];
    return MPL_REFUSE(ctx, "%s: no option '%.100s'%s%s%s; see memplan %s --help", of, given,
                      near != NULL ? " (is '--" : ", or short for several",
                      near != NULL ? near : "", near != NULL ? "' meant?)" : "", of);
}

mpl_status mpl_options_parse(mpl_ctx *ctx, mpl_command_id command, int argc, char **argv,
                             mpl_options *options)
{
    const mpl_command *info = &mpl_commands[command];
    spec s;
    int got;

    make_spec(command, &s);
    opterr = 0;
    optind = 0; /* glibc: restart parsing */
    while ((got = getopt_long(argc, argv, s.letters, s.option, NULL)) != -1) {
        if (got == ':')
            return MPL_REFUSE(ctx, "%s: %s needs a value; see memplan %s --help", info->name,
                              argv[optind - 1], info->name);
        if (got == '?' && optopt >= 256)
            return MPL_REFUSE(ctx, "%s: %s takes no value", info->name, argv[optind - 1]);
        if (got == '?' && optopt > 0 && strncmp(argv[optind - 1], "--", 2) != 0)
            return MPL_REFUSE(ctx, "%s: no option '-%c'; see memplan %s --help", info->name, optopt,
                              info->name);
        if (got == '?')
            MPL_PASS(no_option(ctx, command, &s, argv[optind - 1]));
        MPL_PASS(set(ctx, options,
                     got >= 256 ? (mpl_option_id)(got - 256) : by_letter(command, got), optarg));
    }
    for (int i = optind; i < argc; i++)
        MPL_PASS(mpl_strings_add(ctx, &options->args, argv[i]));
    if (options->help)
        return MPL_OK;
    if (options->args.n < info->fewest || options->args.n > info->most)
        return MPL_REFUSE(ctx, "%s: %s; usage: memplan %s %s", info->name,
                          options->args.n < info->fewest ? "an argument is missing"
                                                         : "too many arguments",
                          info->name, info->args);
    return MPL_OK;
}
