/* carried.c -- files of results/ built into the program. See carried.h. */
#include "harness/cli/carried.h"

#include <unistd.h>

#include "graphs/core/file.h"

static const struct {
    const char *path, *text;
} carried[] = {
#define CARRIED(path, text) {path, text},
#include "carried_gen.h"
#undef CARRIED
};

static const char *find(const char *path)
{
    for (size_t i = 0; i < sizeof carried / sizeof *carried; i++)
        if (strcmp(carried[i].path, path) == 0)
            return carried[i].text;
    return NULL;
}

bool mpl_is_carried(const char *path)
{
    return find(path) != NULL;
}

mpl_status mpl_carried_read(mpl_ctx *ctx, const char *path, char **data, size_t *size)
{
    const char *text = access(path, F_OK) != 0 ? find(path) : NULL;

    if (text == NULL)
        return mpl_file_read(ctx, path, data, size);
    if ((*data = mpl_strdup(ctx, text)) == NULL)
        return MPL_EMEM;
    *size = strlen(text);
    return MPL_OK;
}
