/* import.h -- imports plans of production allocators: reads the problem and its plan from a file.
 * Each format is one file here and one line in imports.def; content identifies the format. */
#ifndef MPL_IMPORT_H
#define MPL_IMPORT_H

#include "planners/plan/plan.h"

typedef struct mpl_import {
    const char *format;   /* of imports.def */
    mpl_problem *problem; /* NULL: the plan is for the problem that the caller gave */
    mpl_plan *plan;       /* claims feasible; not verified */
    /* arena that the file states; 0: none stated, the highest end counts [byte] */
    uint64_t arena_bytes;
    /* the arena is as good as one that ends at the next multiple of this: where all buffers are so
     * aligned, its last bytes are padding; 0 or 1: not so [byte] */
    uint32_t granule;
    /* memory was returned during the run: no single arena; only the bound of live bytes holds */
    bool returns_memory;
    char *fields_json; /* row fields of memplan's own plan files; else NULL */
    char note[240];    /* one line on what was left out or assumed; or empty */
} mpl_import;

/* A reader's input: the text of a file, with a zero byte after it, and the problem that the user
 * names (or NULL), for formats with offsets only. */
typedef struct mpl_import_in {
    const char *path;
    const char *text;
    size_t size;
    const mpl_problem *beside;
} mpl_import_in;

typedef struct mpl_import_format {
    const char *name;
    const char *about;                   /* one line of help: what is accepted */
    bool (*is)(const mpl_import_in *in); /* reads only enough content to tell formats apart */
    mpl_status (*read)(mpl_ctx *ctx, const mpl_import_in *in, mpl_import *out);
} mpl_import_format;

/* in the order of imports.def; ends with name NULL */
extern const mpl_import_format mpl_import_formats[];

/* Reads the plan at `path`. MPL_EINPUT with one line that begins with the path (and line number, if
 * the format has lines): unknown format, truncated, wrong numbers, a buffer twice. `out` is
 * unchanged on failure. */
mpl_status mpl_plan_import(mpl_ctx *ctx, const char *path, const mpl_problem *beside,
                           mpl_import *out);
/* The format of the file at `path`; NULL: unknown or unreadable. */
const mpl_import_format *mpl_plan_format(mpl_ctx *ctx, const char *path);
void mpl_import_fini(mpl_ctx *ctx, mpl_import *import);

#endif
