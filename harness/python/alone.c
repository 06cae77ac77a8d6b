/* alone.c -- what the wheel's library and program have in place of libraries that stay outside.
 *
 * Debian's igraph.a is compiled for programs: its uses of the C library's streams by address are
 * renamed (Makefile, wheel) and point here, so that it also links into a shared library. Of ARPACK,
 * for eigenvectors, memplan calls nothing: those of its functions that igraph names end the
 * process. */
#include <stdlib.h>

#include "runtime/backend.h"

extern FILE *memplan_stdin, *memplan_stdout, *memplan_stderr;
extern const mpl_backend mpl_backend_cpu;

FILE *memplan_stdin, *memplan_stdout, *memplan_stderr;

__attribute__((constructor)) static void take_streams(void)
{
    memplan_stdin = stdin;
    memplan_stdout = stdout;
    memplan_stderr = stderr;
}

#define ABSENT(name)                                                                               \
    void name(void);                                                                               \
    void name(void)                                                                                \
    {                                                                                              \
        abort();                                                                                   \
    }
ABSENT(dnaupd_)
ABSENT(dneupd_)
ABSENT(dsaupd_)
ABSENT(dseupd_)
ABSENT(dsortc_)
ABSENT(dsortr_)

const mpl_backend mpl_backend_cpu = {
    .name = "cpu", .about = "oneDNN", .absent = "the wheel has no oneDNN"};
