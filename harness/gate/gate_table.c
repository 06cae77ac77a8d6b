/* gate_table.c -- the outcome of memplan check as a table in markdown, for a comment on a change.
 * See gate.h. */
#include <errno.h>
#include <stdlib.h>

#include "harness/cli/quote.h"
#include "harness/gate/gate.h"
#include "harness/report/grid.h"

static mpl_status append(mpl_ctx *ctx, const char *path, const char *mode, const char *text)
{
    FILE *f = fopen(path, mode);
    bool bad = f == NULL;

    if (!bad) {
        bad = fputs(text, f) < 0;
        bad |= fclose(f) != 0;
    }
    return bad ? MPL_REFUSE(ctx, "%.200s: %s", path, strerror(errno)) : MPL_OK;
}

mpl_status mpl_gate_table_begin(mpl_ctx *ctx, const char *path, bool times)
{
    return append(ctx, path, "w",
                  times
                      ? "| plan | by | before | now | change | optimum | gap | ms before | ms now "
                        "| verdict |\n|:--|:--|--:|--:|--:|--:|--:|--:|--:|:--|\n"
                      : "| plan | by | before | now | change | optimum | gap | verdict |\n"
                        "|:--|:--|--:|--:|--:|--:|--:|:--|\n");
}

static void put_bytes(FILE *to, const char *sign, uint64_t bytes)
{
    if (bytes > 0)
        fprintf(to, " %s%" PRIu64 " |", sign, bytes);
    else
        fputs(" - |", to);
}

static void put_ms(FILE *to, uint64_t ns)
{
    if (ns > 0)
        fprintf(to, " %.3f |", (double)ns / 1e6);
    else
        fputs(" - |", to);
}

static void put_line(FILE *to, const mpl_gate_line *line, bool times)
{
    bool good = strcmp(line->verdict, "ok") == 0 || strcmp(line->verdict, "improved") == 0;
    char gap[32];

    fputs("| ", to);
    mpl_put_markdown(to, line->name);
    fputs(" | ", to);
    mpl_put_markdown(to, line->by);
    fputs(" |", to);
    put_bytes(to, "", line->before);
    put_bytes(to, "", line->now);
    fprintf(to, " %s |",
            line->now > 0 && line->before > 0 ? mpl_gap_text(line->now, line->before, gap) : "-");
    put_bytes(to, line->proved ? "" : "at least ", line->bound);
    fprintf(to, " %s |",
            line->now > 0 && line->bound > 0 ? mpl_gap_text(line->now, line->bound, gap) : "-");
    if (times) {
        put_ms(to, line->before_ns);
        put_ms(to, line->now_ns);
    }
    fprintf(to, good ? " %s |\n" : " **%s** |\n", line->verdict);
}

mpl_status mpl_gate_table_add(mpl_ctx *ctx, const char *path, const mpl_gate_line *line, bool times)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL)
        return MPL_EMEM;
    put_line(to, line, times);
    if (fclose(to) != 0)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(append(ctx, path, "a", text));
out:
    free(text);
    return st;
}
