/* check_folder.c -- checks every plan in a folder: a line each, then one that counts them. */
#include "harness/gate/gate.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "harness/cli/quote.h"

typedef struct tally {
    uint32_t n_plans, n_others; /* others: files of no format that is known here */
    uint32_t n_of[MPL_EUNAVAIL + 1];
    mpl_status worst;
} tally;

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* How much a status matters to who reads one alone: bad input hides what a plan is, a plan beyond
 * its bound is a loss, an undecided one may be. */
static int weight(mpl_status st)
{
    static const int weights[] = {
        [MPL_OK] = 0,     [MPL_EMEM] = 5,     [MPL_EINPUT] = 4,
        [MPL_ELIMIT] = 1, [MPL_EINVALID] = 3, [MPL_EUNAVAIL] = 2,
    };

    return weights[st];
}

static bool is_plan(mpl_ctx *ctx, const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && mpl_plan_format(ctx, path) != NULL;
}

static void check_one(mpl_ctx *ctx, mpl_options *options, const char *path, mpl_gate_check *check,
                      tally *t)
{
    char line[MPL_GATE_LINE] = "";
    mpl_status st;

    options->plan = path;
    st = check(ctx, options, line);
    if (options->result != NULL)
        printf("%s\n", options->result);
    else if (!options->json && (!options->quiet || st != MPL_OK))
        printf("%s\n", mpl_shown(st == MPL_OK ? line : ctx->message));
    if (options->result == NULL && options->json)
        fprintf(stderr, "memplan: %s\n", mpl_shown(ctx->message));
    fflush(stdout);
    mpl_free(ctx, options->result);
    options->result = NULL;
    t->n_plans++;
    t->n_of[st]++;
    if (weight(st) > weight(t->worst))
        t->worst = st;
}

static mpl_status outcome(mpl_ctx *ctx, const mpl_options *options, const char *folder,
                          const tally *t)
{
    char text[200];

    if (t->n_plans == 0)
        return MPL_REFUSE(ctx,
                          "check: %.200s: no plan among its %u files that memplan knows; memplan "
                          "list formats tells of them",
                          folder, t->n_others);
    snprintf(text, sizeof text,
             "%u plans: %u ok, %u above what they are held to or refused, %u undecided, %u unread; "
             "%u other files",
             t->n_plans, t->n_of[MPL_OK], t->n_of[MPL_EINVALID], t->n_of[MPL_ELIMIT],
             t->n_of[MPL_EINPUT] + t->n_of[MPL_EUNAVAIL] + t->n_of[MPL_EMEM], t->n_others);
    if (t->worst != MPL_OK)
        return MPL_ERROR(ctx, t->worst, "check: %.200s: %s", folder, text);
    if (!options->json && !options->quiet)
        printf("check: ok: %s: %s\n", mpl_shown(folder), text);
    return MPL_OK;
}

bool mpl_gate_is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

mpl_status mpl_gate_folder(mpl_ctx *ctx, mpl_options *options, const char *folder,
                           mpl_gate_check *check)
{
    mpl_status st = MPL_OK;
    struct dirent **file = NULL;
    tally t = {.worst = MPL_OK};
    int n = scandir(folder, &file, NULL, by_name);
    char path[4096];

    if (n < 0)
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: %s", folder, strerror(errno));
    options->args.n = 0;
    for (int i = 0; i < n; i++) {
        if (file[i]->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, file[i]->d_name);
        if (is_plan(ctx, path))
            check_one(ctx, options, path, check, &t);
        else
            t.n_others++;
    }
    options->plan = NULL;
    st = outcome(ctx, options, folder, &t);
out:
    for (int i = 0; i < n; i++)
        free(file[i]);
    free(file);
    return st;
}
