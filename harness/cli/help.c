/* help.c -- the texts made from commands.def and options.def: --help and OPTIONS.md. */
#include "harness/cli/command.h"
#include "harness/cli/version.h"

void mpl_help(FILE *to)
{
    fprintf(to, "memplan plans the memory of neural networks, checks the plans, runs them and "
                "measures.\n\n");
    for (int i = 0; i < MPL_N_COMMANDS; i++)
        fprintf(to, "  memplan %-7s %s\n", mpl_commands[i].name, mpl_commands[i].about);
    fprintf(
        to,
        "  memplan --version\n\n"
        "GRAPH is a network of the zoo with parameters (resnet50:batch=16,image=224; memplan list "
        "graphs), or a\n"
        "file: .onnx, .graph text, or a list of buffers (CSV: id,lower,upper,size).\n"
        "memplan COMMAND --help lists the options of a command.\n"
        "Exit status: 0 good; 1 a plan was refused or an output differed; 2 wrong usage or input;\n"
        "3 the budget ended before any answer; 4 not available here.\n");
}

/* "-o, --output FILE" into text. */
static void spelled(const mpl_option_info *info, char *text, size_t size)
{
    char name[32];
    size_t k = 0;

    for (; info->name[k] != '\0'; k++)
        name[k] = info->name[k] == '_' ? '-' : info->name[k];
    name[k] = '\0';
    if (info->letter != 0)
        snprintf(text, size, "-%c, --%s%s%s", info->letter, name, info->arg ? " " : "",
                 info->arg ? info->arg : "");
    else
        snprintf(text, size, "--%s%s%s", name, info->arg ? " " : "", info->arg ? info->arg : "");
}

void mpl_help_command(FILE *to, mpl_command_id command)
{
    const mpl_command *info = &mpl_commands[command];
    char text[80];

    fprintf(to, "usage: memplan %s %s [options]\n\n%s.\n\n", info->name, info->args, info->about);
    for (int i = 0; i < MPL_N_OPTIONS; i++) {
        if (!(mpl_option_table[i].commands & (1u << command)))
            continue;
        spelled(&mpl_option_table[i], text, sizeof text);
        fprintf(to, "  %-34s %s\n", text, mpl_option_table[i].help);
    }
    fprintf(to, "\nexample: %s\n", info->example);
}

void mpl_help_markdown(FILE *to)
{
    char text[80];

    fprintf(to, "# Commands and options\n\nMade from `harness/cli/commands.def` and "
                "`harness/cli/options.def` by "
                "`make docs`.\n");
    for (int c = 0; c < MPL_N_COMMANDS; c++) {
        const mpl_command *info = &mpl_commands[c];

        fprintf(
            to,
            "\n## `memplan %s %s`\n\n%s. Example: `%s`\n\n| option | what it does |\n|---|---|\n",
            info->name, info->args, info->about, info->example);
        for (int i = 0; i < MPL_N_OPTIONS; i++) {
            if (!(mpl_option_table[i].commands & (1u << c)))
                continue;
            spelled(&mpl_option_table[i], text, sizeof text);
            fputs("| `", to);
            for (const char *s = text; *s != '\0'; s++)
                fputs(*s == '|' ? "\\|" : (char[]){*s, '\0'}, to);
            fprintf(to, "` | %s |\n", mpl_option_table[i].help);
        }
    }
}

/* Text in a man page, so that the formatter changes no '-' or '\\', and takes no '.' or '\'' in
 * front for a request. */
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
    char text[80];

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
        if (!(mpl_option_table[i].commands & (1u << c)))
            continue;
        spelled(&mpl_option_table[i], text, sizeof text);
        fprintf(to, ".TP\n.B ");
        man_text(to, text);
        fprintf(to, "\n");
        man_text(to, mpl_option_table[i].help);
        fprintf(to, "\n");
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
        "file: .onnx, .graph text, a list of buffers (CSV: id,lower,upper,size), or "
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
        "unset, run and bench set it to passive, which a machine with other work needs\n.SH \"SEE "
        "ALSO\"\nmemplan.h and "
        "memplan/plugin.h: the "
        "library, and planners of your own\n");
}
