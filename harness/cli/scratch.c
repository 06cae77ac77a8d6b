/* scratch.c -- see scratch.h. The path is stored before the folder is made and until it is removed,
 * so a kill at any moment leaves the path to the parent. */
#include "harness/cli/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "graphs/core/file.h"

static char *told_to; /* of this process; NULL: no parent asks */

void mpl_scratch_tell(char *told)
{
    told_to = told;
}

static void tell(const char *folder)
{
    if (told_to != NULL)
        snprintf(told_to, MPL_SCRATCH_ROOM, "%s", folder);
}

mpl_status mpl_scratch_new(mpl_ctx *ctx, char *folder)
{
    const char *base = mpl_temporary_folder();
    uint64_t name;

    if (getentropy(&name, sizeof name) != 0)
        return MPL_REFUSE(ctx, "no name for a temporary folder: %s", strerror(errno));
    snprintf(folder, MPL_SCRATCH_ROOM, "%s/memplan-exec-%016" PRIx64, base, name);
    tell(folder);
    if (mkdir(folder, 0700) != 0) {
        tell("");
        folder[0] = '\0';
        return MPL_REFUSE(ctx, "%s: no temporary folder can be made: %s", base, strerror(errno));
    }
    return MPL_OK;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path) != 0 && errno != ENOENT ? errno : 0;
}

void mpl_scratch_remove(char *folder)
{
    if (folder[0] == '\0')
        return;
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    tell("");
    folder[0] = '\0';
}
