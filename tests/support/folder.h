/* folder.h -- a folder of the test's own, under TMPDIR or the system's folder for temporary
 * files. */
#ifndef MPL_TEST_FOLDER_H
#define MPL_TEST_FOLDER_H

#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "graphs/core/file.h"

static char folder[300];

/* Where a file or folder of the test may be made: PATH receives a template for mkstemp or
 * mkdtemp. */
static inline char *temporary(char *path, size_t size, const char *what)
{
    snprintf(path, size, "%s/memplan-%s-XXXXXX", mpl_temporary_folder(), what);
    return path;
}

/* An empty file there, its name in path[size]; the caller removes it. */
static inline void temporary_file(char *path, size_t size, const char *what)
{
    int fd = mkstemp(temporary(path, size, what));

    assert_true(fd >= 0);
    close(fd);
}

/* Makes `folder`; not 0 where it cannot. */
static inline int folder_make(const char *what)
{
    return mkdtemp(temporary(folder, sizeof folder, what)) == NULL;
}

/* Removes it with all that is in it; not 0 where it cannot. */
static inline int folder_remove(void)
{
    char command[400];

    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* The path of a file in it, good until the fourth call from now. */
static inline const char *in_folder(const char *name)
{
    static char path[4][600];
    static unsigned last;

    last = (last + 1) % 4;
    snprintf(path[last], sizeof path[last], "%s/%s", folder, name);
    return path[last];
}

/* All of a file in it as text, cut to size - 1 bytes. */
static inline void folder_read(const char *name, char *text, size_t size)
{
    FILE *f = fopen(in_folder(name), "r");

    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* Writes a file of it; the path, as by in_folder. */
static inline const char *folder_put(const char *name, const void *data, size_t size)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
    return path;
}

static inline const char *folder_put_text(const char *name, const char *text)
{
    return folder_put(name, text, strlen(text));
}

#endif
