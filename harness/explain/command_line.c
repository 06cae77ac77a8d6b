/* command_line.c -- options as the command line that sets them. See explain.h. */
#include <stdlib.h>

#include "harness/cli/command.h"
#include "harness/explain/explain.h"

enum kind { FLAG, SWITCH, TEXT, LIST, COUNT, BYTES, REAL, CHOICE, SAFETY, SET };

static const struct {
    enum kind kind;
    size_t at, size; /* of the member in mpl_options */
} member[MPL_N_OPTIONS] = {
#define OPTION(id, letter, kind, arg, initial, commands, about, details)                           \
    {kind, offsetof(mpl_options, id), sizeof((mpl_options *)0)->id},
#include "harness/cli/options.def"
};

/* Options that decide where results go and what is printed, and the limit on the clock, under which
 * no plan can be promised. */
static bool is_spoken(mpl_option_id id)
{
    static const mpl_option_id silent[] = {
        MPL_OPT_output,   MPL_OPT_json,         MPL_OPT_quiet,    MPL_OPT_help,
        MPL_OPT_write_lp, MPL_OPT_reproducible, MPL_OPT_dump_ssa, MPL_OPT_time_limit};

    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (silent[i] == id)
            return false;
    return true;
}

static bool is_default(const void *at, const void *initial, mpl_option_id id)
{
    const char *text, *other;

    if (member[id].kind == LIST)
        return ((const mpl_strings *)at)->n == 0;
    if (member[id].kind != TEXT)
        return memcmp(at, initial, member[id].size) == 0;
    text = *(const char *const *)at;
    other = *(const char *const *)initial;
    return text == NULL || (other != NULL && strcmp(text, other) == 0);
}

static void put_set(FILE *to, mpl_option_id id, uint32_t set)
{
    const char *between = "";

    if (set == 0)
        fputs("none", to);
    for (uint32_t k = 0; set >> k != 0; k++)
        if (set >> k & 1) {
            fprintf(to, "%s%s", between, mpl_word_text[mpl_option_word(id, k)]);
            between = ",";
        }
}

static void put_value(FILE *to, const void *at, mpl_option_id id)
{
    switch (member[id].kind) {
    case FLAG:
    case LIST:
        break;
    case SWITCH:
        fputs(*(const bool *)at ? "on" : "off", to);
        break;
    case TEXT:
        mpl_put_shell(to, *(const char *const *)at);
        break;
    case COUNT:
    case BYTES:
        fprintf(to, "%" PRIu64, *(const uint64_t *)at);
        break;
    case REAL:
        fprintf(to, "%.17g", *(const double *)at);
        break;
    case CHOICE:
        fputs(mpl_word_text[*(const mpl_word *)at], to);
        break;
    case SAFETY:
        fputs(((const mpl_safety *)at)->text, to);
        break;
    case SET:
        put_set(to, id, *(const uint32_t *)at);
        break;
    }
}

static void put_option(FILE *to, const void *at, mpl_option_id id)
{
    char name[MPL_OPTION_TEXT];
    const mpl_strings *list = at;

    mpl_option_name(id, name);
    for (uint32_t i = 0; member[id].kind == LIST && i < list->n; i++) {
        fprintf(to, " --%s ", name);
        mpl_put_shell(to, list->item[i]);
    }
    if (member[id].kind == LIST)
        return;
    fprintf(to, member[id].kind == FLAG ? " --%s" : " --%s ", name);
    put_value(to, at, id);
}

mpl_status mpl_command_line(mpl_ctx *ctx, mpl_command_id command, const char *graph,
                            const mpl_options *options, char **text)
{
    mpl_status st = MPL_OK;
    mpl_options initial;
    char *line = NULL;
    size_t size;
    FILE *to = open_memstream(&line, &size);

    MPL_TRY(to != NULL ? MPL_OK : MPL_EMEM);
    mpl_options_init(&initial);
    fprintf(to, "memplan %s ", mpl_commands[command].name);
    if (graph[0] == '-') /* a file of such a name */
        fputs("./", to);
    mpl_put_shell(to, graph);
    for (mpl_option_id id = 0; id < MPL_N_OPTIONS; id++) {
        const void *at = (const char *)options + member[id].at;

        if ((mpl_option_table[id].commands >> command & 1) != 0 && is_spoken(id) &&
            !is_default(at, (const char *)&initial + member[id].at, id))
            put_option(to, at, id);
    }
    if (fclose(to) != 0)
        MPL_FAIL(ctx, MPL_EMEM, "out of memory for a command line");
    MPL_TRY(mpl_copy_text(ctx, *text, line));
out:
    free(line);
    return st;
}

void mpl_options_for(mpl_command_id command, const mpl_options *from, mpl_options *to)
{
    mpl_options_init(to);
    for (mpl_option_id id = 0; id < MPL_N_OPTIONS; id++)
        if ((mpl_option_table[id].commands >> command & 1) != 0) {
            memcpy((char *)to + member[id].at, (const char *)from + member[id].at, member[id].size);
            to->given[id] = from->given[id];
        }
}
