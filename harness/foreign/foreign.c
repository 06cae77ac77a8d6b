/* foreign.c -- external planners: their names, and code common to both kinds. See foreign.h. */
#include "harness/foreign/foreign.h"

#include <errno.h>
#include <unistd.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"

enum { NAME_ROOM = 64 };

/* External solvers, and the command lines of their programs. */
static const struct {
    const char *name, *flags;
} known[] = {
    {"minimalloc", "--capacity={capacity} --timeout={time_limit}s --input={in} --output={out}"},
};

bool mpl_foreign_named(const char *text)
{
    return strncmp(text, "so:", 3) == 0 || strncmp(text, "exec:", 5) == 0;
}

/* Bytes of a NAME before '='; 0: none. */
static size_t leading_name(const char *text)
{
    size_t n = strchr(LOWER, text[0]) != NULL ? strspn(text, LOWER "0123456789_-") : 0;

    return text[0] != '\0' && text[n] == '=' ? n : 0;
}

/* Derives a name from the first n bytes of a path or command: its file name without `ending`, with
 * '_' for characters that a table cannot show. */
static void base_name(const char *text, size_t n, const char *ending, char *name)
{
    size_t from = n, k = strlen(ending), length;

    while (from > 0 && text[from - 1] != '/')
        from--;
    if (n - from > k && strncmp(text + n - k, ending, k) == 0)
        n -= k;
    length = n - from < NAME_ROOM - 8 ? n - from : NAME_ROOM - 8;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[from + i];

        name[i] = (char)(c > ' ' && c < 127 && strchr(",|:'\"\\", c) == NULL ? c : '_');
    }
    name[length] = '\0';
}

/* Checks that every buffer has an offset and ends below 2^63. */
static mpl_status check(mpl_run *run, const mpl_problem *p, const uint64_t *offset)
{
    char text[24];
    uint64_t end;

    for (mpl_buffer b = 0; b < p->n; b++) {
        if (offset[b] == MPL_UNPLACED)
            return mpl_foreign_fail(run, MPL_EINVALID, "garbage", "buffer '%.100s' has no offset",
                                    mpl_buffer_label(p, b, text));
        if (!mpl_add_bytes(offset[b], p->bytes[b], &end) || end > INT64_MAX)
            return mpl_foreign_fail(run, MPL_EINVALID, "garbage",
                                    "buffer '%.100s' at offset %" PRIu64 " would end above 2^63",
                                    mpl_buffer_label(p, b, text), offset[b]);
    }
    return MPL_OK;
}

/* plan() of both kinds. The answer is checked before it becomes a plan; it proves nothing. */
static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    const mpl_foreign *foreign = (const mpl_foreign *)run->planner;
    uint64_t *offset = NULL, bound_bytes = 0;

    MPL_TRY(mpl_new(run->ctx, offset, p->n));
    memset(offset, 0xff, p->n * sizeof *offset); /* MPL_UNPLACED */
    MPL_TRY(foreign->ask(run, p, offset, &bound_bytes));
    MPL_TRY(check(run, p, offset));
    memcpy(out->offset, offset, p->n * sizeof *offset);
    out->claim = MPL_FEASIBLE; /* memplan proves optimality itself */
    out->bound_bytes = bound_bytes;
out:
    mpl_free(run->ctx, offset);
    return st;
}

static mpl_status make(mpl_ctx *ctx, const char *kind, const char *name, const char *target,
                       size_t n, mpl_foreign **out)
{
    mpl_status st = MPL_OK;
    mpl_foreign *foreign = NULL;
    bool library = strcmp(kind, "so") == 0;

    MPL_TRY(mpl_new(ctx, foreign, 1));
    foreign->kind = kind;
    MPL_TRY(mpl_new(ctx, foreign->name, NAME_ROOM + 8));
    snprintf(foreign->name, NAME_ROOM + 8, "%s:%s", kind, name);
    MPL_TRY(mpl_new(ctx, foreign->target, n + 1));
    memcpy(foreign->target, target, n);
    foreign->planner = (mpl_planner){
        .name = foreign->name,
        .about = library ? "a library from outside" : "a command from outside",
        .source = "its own",
        .traits = MPL_FOREIGN | (library ? 0 : MPL_SERIAL_ONLY),
        .plan = plan,
    };
    foreign->ask = library ? mpl_foreign_so_ask : mpl_foreign_exec_ask;
    *out = foreign, foreign = NULL;
out:
    mpl_foreign_free(ctx, foreign);
    return st;
}

static mpl_status new_library(mpl_ctx *ctx, const char *text, mpl_foreign **out,
                              const char **params)
{
    mpl_status st = MPL_OK;
    mpl_foreign *foreign = NULL;
    size_t n = strcspn(text, ":");
    char name[NAME_ROOM];

    base_name(text, n, ".so", name);
    MPL_TRY(make(ctx, "so", name, text, n, &foreign));
    if (access(foreign->target, R_OK) != 0)
        MPL_FAIL(ctx, MPL_EINPUT, "so:%.200s: %s; the path of a shared library is needed",
                 foreign->target, strerror(errno));
    *params = text[n] == ':' ? text + n + 1 : NULL;
    *out = foreign, foreign = NULL;
out:
    mpl_foreign_free(ctx, foreign);
    return st;
}

static mpl_status new_command(mpl_ctx *ctx, const char *text, mpl_foreign **out)
{
    size_t n = leading_name(text);
    const char *command = n > 0 ? text + n + 1 : text;
    char name[NAME_ROOM];

    command += strspn(command, " \t\n");
    if (*command == '\0')
        return MPL_REFUSE(ctx, "exec:%.60s: a command is needed: exec:[NAME=]'CMD {in} {out}'",
                          text);
    if (n > 0)
        snprintf(name, sizeof name, "%.*s", (int)(n < NAME_ROOM - 8 ? n : NAME_ROOM - 8), text);
    else
        base_name(command, strcspn(command, " \t\n"), "", name);
    return make(ctx, "exec", name, command, strlen(command), out);
}

mpl_status mpl_foreign_new(mpl_ctx *ctx, const char *text, mpl_foreign **out, const char **params)
{
    *params = NULL;
    return text[0] == 's' ? new_library(ctx, text + 3, out, params)
                          : new_command(ctx, text + 5, out);
}

/* Quotes `path` as one word of the shell. */
static size_t quote(const char *path, char *to)
{
    size_t n = 0;

    to[n++] = '\'';
    for (; *path != '\0'; path++) {
        if (*path == '\'') {
            memcpy(to + n, "'\\'", 3);
            n += 3;
        }
        to[n++] = *path;
    }
    to[n++] = '\'';
    return n;
}

mpl_status mpl_foreign_peer(mpl_ctx *ctx, const char *text, mpl_foreign **out)
{
    mpl_status st = MPL_OK;
    size_t n = leading_name(text), k = 0, length;
    const char *target = text + n + 1, *flags = "{in} {out}";
    char name[NAME_ROOM], *command = NULL;

    if (n == 0 || n >= NAME_ROOM - 8 || *target == '\0')
        MPL_FAIL(ctx, MPL_EINPUT, "--peer: '%.100s' is no NAME=PATH or NAME='CMD {in} {out}'",
                 text);
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    if (access(target, X_OK) != 0) {
        MPL_TRY(make(ctx, "exec", name, target, strlen(target), out));
        goto out;
    }
    while (k < sizeof known / sizeof *known && strcmp(known[k].name, name) != 0)
        k++;
    if (k < sizeof known / sizeof *known)
        flags = known[k].flags;
    MPL_TRY(mpl_new(ctx, command, 4 * strlen(target) + strlen(flags) + 4));
    length = quote(target, command);
    length += (size_t)sprintf(command + length, " %s", flags);
    MPL_TRY(make(ctx, "exec", name, command, length, out));
out:
    mpl_free(ctx, command);
    return st;
}

void mpl_foreign_free(mpl_ctx *ctx, mpl_foreign *foreign)
{
    if (foreign == NULL)
        return;
    mpl_free_each(ctx, foreign->name, foreign->target, foreign);
}
