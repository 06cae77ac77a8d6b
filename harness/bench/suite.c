/* suite.c -- suites as text. See suite.h. */
#include "harness/bench/suite.h"

#include <stdlib.h>
#include <unistd.h>

#include "graphs/core/file.h"
#include "graphs/core/names.h"
#include "graphs/source.h"

const mpl_builtin_suite mpl_builtin_suites[] = {
#define SUITE(name, text) {name, text},
#include "suites_gen.h"
#undef SUITE
    {NULL, NULL},
};

const char *mpl_suite_graph_name(const char *graph)
{
    static const char mark[] = "{data}/";
    size_t n = sizeof mark - 1;

    return strncmp(graph, mark, n) == 0 ? graph + n : graph;
}

static bool is_set(const char *folder)
{
    return folder != NULL && folder[0] != '\0';
}

mpl_status mpl_suite_graph_path(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                                char **path)
{
    const char *name = mpl_suite_graph_name(graph), *below = "";
    const char *folder = options->data != NULL ? options->data : getenv("MEMPLAN_DATA");
    size_t size;

    *path = NULL;
    if (name == graph)
        return MPL_OK;
    if (!is_set(folder) && access("../shared/data", R_OK) == 0)
        folder = "../shared/data";
    if (!is_set(folder) && is_set(folder = getenv("XDG_CACHE_HOME")))
        below = "/memplan/data";
    if (!is_set(folder) && is_set(folder = getenv("HOME")))
        below = "/.cache/memplan/data";
    if (!is_set(folder))
        folder = ".cache/memplan/data";
    size = strlen(folder) + strlen(below) + strlen(name) + 2;
    MPL_PASS(mpl_new(ctx, *path, size));
    snprintf(*path, size, "%s%s/%s", folder, below, name);
    return MPL_OK;
}

size_t mpl_suite_file_length(const char *path)
{
    const char *name = strrchr(path, '/');

    return (size_t)(name - path) + strcspn(name, ":");
}

uint32_t mpl_shard_of(uint64_t run, uint32_t n)
{
    uint64_t round = run / n;

    return (uint32_t)((run % n + (mpl_hash(MPL_HASH_SEED, &round, sizeof round) >> 32) % n) % n);
}

mpl_status mpl_shard_parse(mpl_ctx *ctx, const char *text, uint32_t *index, uint32_t *n)
{
    int end = -1;
    uint32_t i = 0, all = 0;

    if (strspn(text, "0123456789/") == strlen(text))
        sscanf(text, "%9" SCNu32 "/%9" SCNu32 "%n", &i, &all, &end);
    if (end < 0 || text[end] != '\0' || i < 1 || i > all)
        return MPL_REFUSE(ctx, "--shard: '%.100s' is no I/N with I from 1 to N", text);
    *index = i - 1;
    *n = all;
    return MPL_OK;
}

void mpl_suite_about(const char *text, char *line, size_t size)
{
    size_t n = text[0] == '#' ? strcspn(text, "\n") : 0;
    size_t skip = n > 0 ? strspn(text, "# ") : 0;

    snprintf(line, size, "%.*s", (int)(n - skip), text + skip);
}

static mpl_status no_suite(mpl_ctx *ctx, const char *name)
{
    const char *near = NULL;
    uint32_t least = MPL_TOO_FAR;

    if (mpl_zoo_find(name, strcspn(name, ":")) != NULL)
        return MPL_REFUSE(
            ctx, "'%.100s' is a graph; a suite is a text that lists graphs, one a line", name);
    for (const mpl_builtin_suite *suite = mpl_builtin_suites; suite->name != NULL; suite++)
        if (mpl_nearer(name, strlen(name), suite->name, &least))
            near = suite->name;
    return MPL_REFUSE(
        ctx, "no suite '%.200s'%s%s%s, and no file of that name; see memplan list suites", name,
        near != NULL ? " (is '" : "", near != NULL ? near : "", near != NULL ? "' meant?)" : "");
}

static mpl_status read_text(mpl_ctx *ctx, const char *path, char **out)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    size_t n;

    if (access(path, F_OK) != 0)
        MPL_TRY(no_suite(ctx, path));
    MPL_TRY(mpl_file_read(ctx, path, &text, &n));
    if (strlen(text) != n)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: no suite: a text that lists graphs, one a line", path);
    *out = text, text = NULL;
out:
    mpl_free(ctx, text);
    return st;
}

/* Sets an option, "--repeat 5", unless the command line sets it. */
static mpl_status take_option(mpl_ctx *ctx, char *line, mpl_options *options)
{
    char *name = line + 2, *value = name + strcspn(name, " \t=");

    if (*value != '\0')
        *value++ = '\0';
    value += strspn(value, " \t");
    return mpl_options_default(ctx, MPL_CMD_bench, name, value, options);
}

/* Whether a single graph may set the option: rows must record it. */
static bool is_own(const char *name)
{
    static const char *const names[] = {
        "order",      "in-place", "views",   "concat",    "loop", "pin",    "pools",
        "workspaces", "optimise", "changed", "recompute", "seed", "unroll", "safety",
        "threads",    "workers",  "loss",    "trainable", "tile"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* "GRAPH --option value ..": a graph with options of its own. */
static mpl_status take_graph(mpl_ctx *ctx, char *line, mpl_suite *suite)
{
    char *more = NULL, *own = strstr(line, " --");

    for (char *end = own; end != NULL && end >= line && strchr(" \t", *end) != NULL; end--)
        *end = '\0';
    own += own != NULL;
    MPL_PASS(mpl_strings_add(ctx, &suite->graph, line));
    for (char *name = own != NULL ? strtok_r(own, " \t", &more) : NULL; name != NULL;
         name = strtok_r(NULL, " \t", &more)) {
        const char *value = strtok_r(NULL, " \t", &more);

        if (strncmp(name, "--", 2) != 0 || !is_own(name + 2) || value == NULL)
            return MPL_REFUSE(
                ctx,
                "'%.100s': one graph of a suite takes --order, --in-place, --views, --concat,"
                " --loop, --unroll, --pin, --pools, --workspaces, --optimise, --changed, "
                "--recompute,"
                " --tile, --seed, --safety, --threads, --workers, --loss and --trainable, each "
                "with a "
                "value",
                name);
        MPL_PASS(mpl_reserve(ctx, suite->own, suite->own_cap, (size_t)suite->n_own + 1));
        suite->own[suite->n_own++] = (mpl_suite_option){suite->graph.n - 1, name + 2, value};
    }
    return MPL_OK;
}

mpl_status mpl_suite_own(mpl_ctx *ctx, const mpl_suite *suite, uint32_t i, mpl_options *options)
{
    for (uint32_t k = 0; k < suite->n_own; k++)
        if (suite->own[k].graph == i)
            MPL_PASS(mpl_options_default(ctx, MPL_CMD_bench, suite->own[k].name,
                                         suite->own[k].value, options));
    return MPL_OK;
}

mpl_status mpl_suite_open(mpl_ctx *ctx, const char *name, mpl_options *options, mpl_suite *out)
{
    mpl_status st = MPL_OK;
    mpl_suite s = {0};
    const mpl_builtin_suite *builtin = mpl_builtin_suites;
    const char *base = strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name;
    uint32_t number = 0;

    while (builtin->name != NULL && strcmp(builtin->name, name) != 0)
        builtin++;
    if ((s.name = mpl_strdup(ctx, base)) == NULL ||
        (builtin->name != NULL && (s.text = mpl_strdup(ctx, builtin->text)) == NULL))
        MPL_TRY(MPL_EMEM);
    s.name[strcspn(s.name, ".")] = '\0';
    if (s.text == NULL)
        MPL_TRY(read_text(ctx, name, &s.text));
    for (char *line = s.text, *end; line != NULL; line = end) {
        number++;
        end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        line += strspn(line, " \t");
        for (size_t n = strlen(line); n > 0 && strchr(" \t\r", line[n - 1]) != NULL; n--)
            line[n - 1] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        st = strncmp(line, "--", 2) != 0 ? take_graph(ctx, line, &s)
                                         : take_option(ctx, line, options);
        if (st != MPL_OK)
            MPL_FAIL(ctx, st, "%s:%" PRIu32 ": %s", name, number, ctx->message);
    }
    if (s.graph.n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: the suite lists no graph", name);
    *out = s;
    memset(&s, 0, sizeof s);
out:
    mpl_suite_fini(ctx, &s);
    return st;
}

void mpl_suite_fini(mpl_ctx *ctx, mpl_suite *suite)
{
    mpl_free_each(ctx, suite->graph.item, suite->own, suite->text, suite->name);
    memset(suite, 0, sizeof *suite);
}
