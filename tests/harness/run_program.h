/* run_program.h -- runs the program named by MEMPLAN as users do, in the test's own folder. */
#pragma once

#include "tests/support/folder.h"

static const char *program;
static char out[1 << 17], err[1 << 14]; /* of the last run */

/* Finds the program and creates the folder; returns non-zero on failure. */
static inline int program_begin(const char *what)
{
    program = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";
    setenv("OMP_WAIT_POLICY", "passive", 0); /* concurrent tests share the cores */
    return folder_make(what) != 0;
}

#define TESTS_OF_PROGRAM(what, ...)                                                                \
    int main(void)                                                                                 \
    {                                                                                              \
        return program_begin(what) != 0 || RUN_TESTS(NULL, folder_remove, __VA_ARGS__) != 0;       \
    }

/* Exit status of `memplan ARGUMENTS` (@: the test's folder); a signal is 128 + its number. one_log:
 * `out` holds both outputs interleaved. */
static inline int run_logged(const char *arguments, bool one_log)
{
    char command[4096];
    size_t n = (size_t)snprintf(command, sizeof command, ">%s/out 2>%s%s </dev/null %s ", folder,
                                one_log ? "&1" : folder, one_log ? "" : "/err", program);
    int how;

    for (const char *a = arguments; *a != '\0' && n < sizeof command - 200; a++)
        n += (size_t)snprintf(command + n, sizeof command - n, *a == '@' ? "%s" : "%.1s",
                              *a == '@' ? folder : a);
    how = system(command);
    folder_read("out", out, sizeof out);
    if (!one_log)
        folder_read("err", err, sizeof err);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* Keeps `out` and `err` separate; printf-style arguments. */
static inline int __attribute__((format(printf, 1, 2))) run(const char *format, ...)
{
    char arguments[3000];
    va_list args;

    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    return run_logged(arguments, false);
}

/* The same with an environment variable set. */
static inline int run_with(const char *variable, const char *value, const char *arguments)
{
    int status;

    setenv(variable, value, 1);
    status = run_logged(arguments, false);
    unsetenv(variable);
    return status;
}

/* The error is one line, prefixed with the program's name. */
static inline void check_error(const char *arguments)
{
    if (strncmp(err, "memplan: ", 9) != 0 || strchr(err, '\n') != err + strlen(err) - 1)
        fail_msg("memplan %s: not one line of error: '%s'", arguments, err);
}
