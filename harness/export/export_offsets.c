/* export_offsets.c -- a plan's offsets for programs of others: JSON, a C header, MLIR attributes.
 */
#include <ctype.h>

#include "graphs/core/file.h"
#include "harness/cli/quote.h"
#include "harness/export/export.h"

/* One file, written by `write`. */
static mpl_status write_file(mpl_ctx *ctx, const mpl_export *what, const char *path,
                             mpl_status (*write)(mpl_ctx *, const mpl_export *, FILE *))
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    MPL_TRY(write(ctx, what, file.stream));
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

/* The number of arenas: pools, or the memories of one that is spread. */
static uint32_t arena_of(const mpl_export *what, mpl_buffer b)
{
    return what->plan->spread.n > 0 ? what->plan->spread.memory[b] : what->job->problem->pool[b];
}

static uint32_t n_arenas(const mpl_export *what)
{
    return what->plan->spread.n > 0 ? what->plan->spread.n : what->job->problem->n_pools;
}

/* Where an arena ends. */
static uint64_t arena_bytes(const mpl_export *what, uint32_t arena)
{
    const mpl_plan *plan = what->plan;
    uint64_t most = 0;

    for (mpl_buffer b = 0; b < plan->n; b++)
        if (arena_of(what, b) == arena)
            most = mpl_max_u64(most, plan->offset[b] + what->job->problem->bytes[b]);
    return most;
}

static uint32_t largest_align(const mpl_problem *p)
{
    uint32_t align = 1;

    for (mpl_buffer b = 0; b < p->n; b++)
        align = p->align[b] > align ? p->align[b] : align;
    return align;
}

/* ---- JSON ---- */

static mpl_status write_json(mpl_ctx *ctx, const mpl_export *what, FILE *to)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = what->job->problem;
    const mpl_plan *plan = what->plan;
    char *quoted = NULL, name[24];

    fprintf(to,
            "{\"arena_bytes\": %" PRIu64 ", \"bound_bytes\": %" PRIu64
            ", \"optimal\": %s, \"alignment\": %" PRIu32 ",\n\"arenas\": [",
            arena_bytes(what, 0), plan->bound_bytes, plan->claim == MPL_OPTIMAL ? "true" : "false",
            largest_align(p));
    for (uint32_t k = 0; k < n_arenas(what); k++)
        fprintf(to, "%s%" PRIu64, k > 0 ? ", " : "", arena_bytes(what, k));
    fputs("],\n\"buffers\": [", to);
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_TRY(mpl_json_quote(ctx, mpl_buffer_label(p, b, name), &quoted));
        fprintf(to,
                "%s{\"name\": %s, \"arena\": %" PRIu32 ", \"offset\": %" PRIu64
                ", \"bytes\": %" PRIu64,
                b > 0 ? ",\n " : "\n ", quoted, arena_of(what, b), plan->offset[b], p->bytes[b]);
        if (p->before == NULL)
            fprintf(to, ", \"birth\": %" PRIu32 ", \"death\": %" PRIu32, p->birth[b], p->death[b]);
        fputc('}', to);
        mpl_free(ctx, quoted);
        quoted = NULL;
    }
    fputs("],\n\"values\": ", to);
    if (what->job->source.graph != NULL)
        MPL_TRY(mpl_export_offsets(ctx, what, to));
    else
        fputs("null", to);
    fputs("}\n", to);
out:
    mpl_free(ctx, quoted);
    return st;
}

mpl_status mpl_export_json(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    return write_file(ctx, what, path, write_json);
}

/* ---- C ---- */

/* A name in comments and strings of C: nothing in it ends them. */
static void put_c_text(FILE *to, const char *text)
{
    for (; *text != '\0'; text++)
        fputc(*text >= ' ' && *text < 127 && strchr("\\\"?*", *text) == NULL ? *text : '_', to);
}

static mpl_status write_header(mpl_ctx *ctx, const mpl_export *what, FILE *to)
{
    const mpl_problem *p = what->job->problem;
    char name[24];

    (void)ctx;
    fputs("/* Offsets of the buffers of ", to);
    put_c_text(to, what->job->text);
    fprintf(to,
            ", planned by memplan and verified.\n * The arena's base is a multiple of "
            "MEMPLAN_ALIGNMENT. */\n#ifndef MEMPLAN_OFFSETS_H\n#define MEMPLAN_OFFSETS_H\n\n"
            "#include <stdint.h>\n\n#define MEMPLAN_ARENA_BYTES UINT64_C(%" PRIu64 ")\n",
            arena_bytes(what, 0));
    for (uint32_t k = 1; k < n_arenas(what); k++)
        fprintf(to, "#define MEMPLAN_ARENA_BYTES_%" PRIu32 " UINT64_C(%" PRIu64 ")\n", k,
                arena_bytes(what, k));
    fprintf(to,
            "#define MEMPLAN_ALIGNMENT %" PRIu32 "\n#define MEMPLAN_N_BUFFERS %" PRIu32
            "\n\n/* A macro, so that a file without use of the table holds none: static const "
            "memplan_buffer buffers[] = MEMPLAN_BUFFERS; */\n"
            "typedef struct memplan_buffer {\n    const char *name;\n    uint32_t arena;\n    "
            "uint64_t offset, bytes;\n} memplan_buffer;\n#define MEMPLAN_BUFFERS",
            largest_align(p), p->n);
    for (mpl_buffer b = 0; b < p->n; b++) {
        fprintf(to, "%s \\\n    {\"", b > 0 ? "," : " { ");
        put_c_text(to, mpl_buffer_label(p, b, name));
        fprintf(to, "\", %" PRIu32 ", UINT64_C(%" PRIu64 "), UINT64_C(%" PRIu64 ")}",
                arena_of(what, b), what->plan->offset[b], p->bytes[b]);
    }
    fputs(" \\\n    }\n\n", to);
    for (mpl_buffer b = 0; b < p->n; b++) {
        const char *label = mpl_buffer_label(p, b, name);

        fprintf(to, "#define MEMPLAN_OFFSET_%" PRIu32 "_", b); /* the number keeps names apart */
        for (const char *c = label; *c != '\0'; c++)
            fputc(isalnum((unsigned char)*c) ? *c : '_', to);
        fprintf(to, " UINT64_C(%" PRIu64 ")\n", what->plan->offset[b]);
    }
    fputs("\n#endif\n", to);
    return MPL_OK;
}

mpl_status mpl_export_c_header(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    return write_file(ctx, what, path, write_header);
}

/* ---- MLIR ---- */

/* A string of MLIR: printable characters, others as \XX. */
static void put_mlir_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        fprintf(to, c >= ' ' && c < 127 && c != '"' && c != '\\' ? "%c" : "\\%02X", c);
    }
    fputc('"', to);
}

static mpl_status write_mlir(mpl_ctx *ctx, const mpl_export *what, FILE *to)
{
    const mpl_problem *p = what->job->problem;
    char name[24];

    (void)ctx;
    fputs("module attributes {\n  memplan.graph = ", to);
    put_mlir_text(to, what->job->text);
    fprintf(to,
            ",\n  memplan.arena_bytes = %" PRIu64 " : i64,\n  memplan.alignment = %" PRIu32
            " : i64,\n  memplan.optimal = %s,\n  memplan.buffers = [",
            arena_bytes(what, 0), largest_align(p),
            what->plan->claim == MPL_OPTIMAL ? "true" : "false");
    for (mpl_buffer b = 0; b < p->n; b++) {
        fputs(b > 0 ? ",\n    {name = " : "\n    {name = ", to);
        put_mlir_text(to, mpl_buffer_label(p, b, name));
        fprintf(to,
                ", arena = %" PRIu32 " : i64, offset = %" PRIu64 " : i64, bytes = %" PRIu64
                " : i64}",
                arena_of(what, b), what->plan->offset[b], p->bytes[b]);
    }
    fputs("]\n} {\n}\n", to);
    return MPL_OK;
}

mpl_status mpl_export_mlir(mpl_ctx *ctx, const mpl_export *what, const char *path)
{
    return write_file(ctx, what, path, write_mlir);
}
