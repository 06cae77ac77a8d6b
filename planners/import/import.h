/* import.h -- plans of production allocators: a file becomes the problem that was planned and the
 * plan that was made of it.
 *
 * Every format is one file here and one line in imports.def; a file is recognised by its
 * content. */
#ifndef MPL_IMPORT_H
#define MPL_IMPORT_H

#include "planners/plan/plan.h"

typedef struct mpl_import {
    const char *format;   /* of imports.def */
    mpl_problem *problem; /* NULL: the plan is of the problem that stood beside */
    mpl_plan *plan;       /* claims to be feasible; not verified yet */
    uint64_t arena_bytes; /* what production says that it takes; 0: it does not say, the furthest
                             end counts [byte] */
    bool returns_memory;  /* it gave memory back on the way: no one arena, only the bound of live
                             bytes holds */
    char *fields_json;    /* of memplan's own plan files: the row's fields; else NULL */
    char note[240];       /* what was left out or assumed, one line; empty: nothing */
} mpl_import;

/* What a reader gets: a file's text with a zero byte behind it; and, where the user names one, the
 * problem that it is about (NULL: none), for formats that hold offsets alone. */
typedef struct mpl_import_in {
    const char *path;
    const char *text;
    size_t size;
    const mpl_problem *beside;
} mpl_import_in;

typedef struct mpl_import_format {
    const char *name;
    const char *about;                   /* one line: what is accepted */
    bool (*is)(const mpl_import_in *in); /* looks at the content only far enough to tell formats
                                            apart */
    mpl_status (*read)(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out);
} mpl_import_format;

extern const mpl_import_format mpl_import_formats[]; /* in the order of imports.def; ends with name
                                                        NULL */

/* The plan at `path`. MPL_EINPUT with one line that begins with the path (and the line's number,
 * where the format has lines): of no known format, cut, wrong numbers, the same buffer twice. `out`
 * is untouched on failure. */
mpl_status mpl_plan_import(mpl_ctx *ctx, const char *path, const mpl_problem *beside,
                           mpl_import *out);
/* The format of the file at `path`; NULL: of none, or it cannot be read. */
const mpl_import_format *mpl_plan_format(mpl_ctx *ctx, const char *path);
void mpl_import_fini(mpl_ctx *ctx, mpl_import *import);

#endif
