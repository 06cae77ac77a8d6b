/* run_program.h -- runs the program that MEMPLAN names as its users do, in a folder of the test's
 * own. */
#ifndef MPL_TEST_RUN_PROGRAM_H
#define MPL_TEST_RUN_PROGRAM_H

#include "tests/support/folder.h"

static const char *program;
static char out[1 << 17], err[1 << 14]; /* of the last run */

/* Finds the program and makes the folder; not 0 where it cannot. */
static inline int program_begin(const char *what)
{
    program = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";
    setenv("OMP_WAIT_POLICY", "passive", 0); /* tests share their cores */
    return folder_make(what) != 0;
}

/* Exit status of `memplan ARGUMENTS`, where @ stands for the test's folder; a signal is 128 + its
 * number. One log: `out` holds both outputs as they came. */
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

/* `out` and `err` apart; with arguments as printf has them. */
static inline int __attribute__((format(printf, 1, 2))) run(const char *format, ...)
{
    char arguments[3000];
    va_list args;

    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    return run_logged(arguments, false);
}

/* The same with a variable of the environment. */
static inline int run_with(const char *variable, const char *value, const char *arguments)
{
    int status;

    setenv(variable, value, 1);
    status = run_logged(arguments, false);
    unsetenv(variable);
    return status;
}

/* One line, and it says whose it is. */
static inline void check_error(const char *arguments)
{
    if (strncmp(err, "memplan: ", 9) != 0 || strchr(err, '\n') != err + strlen(err) - 1)
        fail_msg("memplan %s: not one line of error: '%s'", arguments, err);
}

#endif
