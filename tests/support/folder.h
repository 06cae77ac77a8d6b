/* folder.h -- a test's own folder, under TMPDIR or the system's temporary folder. */
#pragma once

#include "tests/support/test.h"

#include <sys/wait.h>

#include "graphs/core/file.h"

static char folder[300];

/* Writes to PATH a template for mkstemp or mkdtemp in the temporary folder. */
static inline char *temporary(char *path, size_t size, const char *what)
{
    snprintf(path, size, "%s/memplan-%s-XXXXXX", mpl_temporary_folder(), what);
    return path;
}

/* Creates an empty temporary file and stores its name in path[size]. The caller removes it. */
static inline void temporary_file(char *path, size_t size, const char *what)
{
    int fd = mkstemp(temporary(path, size, what));

    assert_true(fd >= 0);
    close(fd);
}

/* Creates `folder`; returns non-zero on failure. */
static inline int folder_make(const char *what)
{
    return mkdtemp(temporary(folder, sizeof folder, what)) == NULL;
}

/* Removes the folder and its contents; returns non-zero on failure. */
static inline int folder_remove(void)
{
    char command[400];

    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* Path of a file in the folder, valid until the fourth call from now. */
static inline const char *in_folder(const char *name)
{
    static char path[4][600];
    static unsigned last;

    last = (last + 1) % 4;
    snprintf(path[last], sizeof path[last], "%s/%s", folder, name);
    return path[last];
}

/* Reads a file of the folder as text, truncated to size - 1 bytes. */
static inline void folder_read(const char *name, char *text, size_t size)
{
    FILE *f = fopen(in_folder(name), "r");

    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* Writes a file of the folder; returns its path as in_folder does. */
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
