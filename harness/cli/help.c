/* help.c -- the texts made from commands.def and options.def: --help and OPTIONS.md. */
#include "harness/cli/command.h"
#include "harness/cli/version.h"

enum { WIDTH = 80, TEXT_COLUMN = 28, SPELLED = 2 * MPL_OPTION_TEXT };

/* Whether a command has an option. */
static bool takes(int command, int option)
{
    return mpl_option_table[option].commands >> command & 1;
}

/* Writes text in columns from `column` to 80, breaking at blanks, or after '|' in a long word. The
 * cursor stands at `at`. */
static void put_wrapped(FILE *to, size_t at, size_t column, const char *text)
{
    if (at > column || column == 0)
        at = (size_t)fprintf(to, "\n") - 1;
    at += (size_t)fprintf(to, "%*s", (int)(column - at), "");
    for (bool blank = false; *text != '\0'; blank = *text == ' ', text += blank) {
        size_t n = strcspn(text, " "), bar = strcspn(text, "|");

        n = n > WIDTH / 2 && bar < n ? bar + 1 : n;
        if (at > column && at + blank + n >= WIDTH) {
            fprintf(to, "\n%*s", (int)column, "");
            at = column;
            blank = false;
        }
        at += (size_t)fprintf(to, "%s%.*s", blank ? " " : "", (int)n, text);
        text += n;
    }
    fputc('\n', to);
}

void mpl_help(FILE *to)
{
    fputs("memplan plans the memory of neural networks, checks the plans, runs them and\n"
          "measures.\n\n",
          to);
    for (int i = 0; i < MPL_N_COMMANDS; i++)
        put_wrapped(to, (size_t)fprintf(to, "  memplan %s", mpl_commands[i].name), 19,
                    mpl_commands[i].about);
    fputs("  memplan --version\n\n"
          "GRAPH is a network of the zoo with parameters (resnet50:batch=16,image=224;\n"
          "memplan list graphs), or a file: .onnx, .tflite, .hlo (XLA's text, .gz too),\n"
          ".graph text, or a list of buffers (CSV: id,lower,upper,size).\n"
          "memplan COMMAND --help lists its options.\n"
          "Exit status: 0 good; 1 a plan was refused or an output differed; 2 wrong usage\n"
          "or input; 3 the budget ended before any answer; 4 not available here.\n",
          to);
}

/* "-o, --output FILE" into text[SPELLED]. */
static const char *spelled(int i, char *text)
{
    char name[MPL_OPTION_TEXT], argument[MPL_OPTION_TEXT], letter[] = "-x, ";
    const mpl_option_info *info = &mpl_option_table[i];

    letter[1] = (char)info->letter;
    snprintf(text, SPELLED, "%s--%s%s%s", info->letter != 0 ? letter : "",
             mpl_option_name((mpl_option_id)i, name), info->arg != NULL ? " " : "",
             mpl_option_argument((mpl_option_id)i, argument));
    return text;
}

/* Writes the option if the command has it; *group: heading to write before it, or NULL. */
static void put_option(FILE *to, mpl_command_id command, mpl_option_id option, const char **group)
{
    char text[SPELLED];

    if (!takes(command, option))
        return;
    if (*group != NULL)
        fprintf(to, "\n%s\n", *group);
    *group = NULL;
    put_wrapped(to, (size_t)fprintf(to, "  %s", spelled(option, text)), TEXT_COLUMN,
                mpl_option_table[option].about);
}

void mpl_help_command(FILE *to, mpl_command_id command)
{
    const mpl_command *info = &mpl_commands[command];
    const char *group = NULL;
    char text[400];

    snprintf(text, sizeof text, "usage: memplan %s %s [options]", info->name, info->args);
    put_wrapped(to, 0, 0, text);
    snprintf(text, sizeof text, "%s.", info->about);
    put_wrapped(to, 0, 0, text);
#define GROUP(title) group = title;
#define OPTION(id, letter, kind, arg, initial, commands, about, details)                           \
    put_option(to, command, MPL_OPT_##id, &group);
#include "harness/cli/options.def"
    fprintf(to, "\nexample: %s\n", info->example);
}

void mpl_help_markdown(FILE *to)
{
    char text[SPELLED];

    fputs("# Commands and options\n\nMade from `harness/cli/commands.def` and "
          "`harness/cli/options.def` by `make docs`.\n",
          to);
    for (int c = 0; c < MPL_N_COMMANDS; c++) {
        const mpl_command *info = &mpl_commands[c];

        fprintf(
            to,
            "\n## `memplan %s %s`\n\n%s. Example: `%s`\n\n| option | what it does |\n|---|---|\n",
            info->name, info->args, info->about, info->example);
        for (int i = 0; i < MPL_N_OPTIONS; i++) {
            const mpl_option_info *option = &mpl_option_table[i];

            if (!takes(c, i))
                continue;
            fputs("| `", to);
            for (const char *s = spelled(i, text); *s != '\0'; s++)
                fputs(*s == '|' ? "\\|" : (char[]){*s, '\0'}, to);
            fprintf(to, "` | %s%s%s |\n", option->about, option->details != NULL ? ". " : "",
                    option->details != NULL ? option->details : "");
        }
    }
}

/* Writes text of a man page. Escapes '-' and '\\', and a leading '.' or '\'', for the formatter. */
static void man_text(FILE *to, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", to);
    for (; *text != '\0'; text++)
        fputs(*text == '-' ? "\\-" : *text == '\\' ? "\\e" : (char[]){*text, '\0'}, to);
}

static void man_command(FILE *to, int c)
{
    const mpl_command *info = &mpl_commands[c];
    char text[SPELLED];

    fprintf(to, ".SS \"memplan ");
    man_text(to, info->name);
    fprintf(to, " ");
    man_text(to, info->args);
    fprintf(to, "\"\n");
    man_text(to, info->about);
    fprintf(to, ".\n.PP\nExample:\n.B ");
    man_text(to, info->example);
    fprintf(to, "\n");
    for (int i = 0; i < MPL_N_OPTIONS; i++) {
        if (!takes(c, i))
            continue;
        fprintf(to, ".TP\n.B ");
        man_text(to, spelled(i, text));
        fprintf(to, "\n");
        man_text(to, mpl_option_table[i].about);
        fprintf(to, ".\n");
        if (mpl_option_table[i].details != NULL) {
            man_text(to, mpl_option_table[i].details);
            fprintf(to, "\n");
        }
    }
}

void mpl_help_man(FILE *to)
{
    static const char *const status[] = {
        "good", "a plan was refused, an output or a file differed, or a regression was found",
        "wrong usage or input", "the budget ended before any answer", "not available here"};

    fprintf(
        to,
        ".TH MEMPLAN 1 \"\" \"memplan %s\"\n.SH NAME\nmemplan \\- plans the memory of neural "
        "networks\n"
        ".SH SYNOPSIS\n.B memplan\n.I command\n.RI [ argument ...]\n.RI [ option ...]\n.SH "
        "DESCRIPTION\n"
        "Makes plans of the memory of neural networks, checks them, runs them and measures.\n.PP\n"
        "GRAPH is a network of the zoo with parameters (resnet50:batch=16,image=224; memplan list "
        "graphs), or a "
        "file: .onnx, .tflite, .hlo, .graph text, a list of buffers (CSV: id,lower,upper,size), or "
        "NAME.tensors.csv "
        "with its "
        "partial order in NAME.before.csv.\n.SH COMMANDS\n",
        mpl_this_build.version);
    for (int c = 0; c < MPL_N_COMMANDS; c++)
        man_command(to, c);
    fprintf(to, ".SH \"EXIT STATUS\"\n");
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        fprintf(to, ".TP\n.B %zu\n%s\n", i, status[i]);
    fprintf(
        to,
        ".SH ENVIRONMENT\n.TP\n.B OMP_WAIT_POLICY\nactive: threads of the cpu backend spin while "
        "they wait; "
        "unset, run and bench set it to passive, which a machine with other work needs\n"
        ".TP\n.B GOMP_SPINCOUNT\nhow often a thread of the cpu backend looks for work before it "
        "sleeps "
        "(0); 10000 makes several threads faster on a machine with nothing else to do, and slower "
        "on one with other work\n"
        ".TP\n.B ONEDNN_MAX_CPU_ISA\nthe widest instructions that the cpu backend uses, SSE41 or "
        "AVX2, say (AVX512_CORE_VNNI)\n.SH \"SEE "
        "ALSO\"\nmemplan.h and "
        "memplan/plugin.h: the "
        "library, and planners of your own\n");
}
