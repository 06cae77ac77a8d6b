/* cmd_paper.c -- memplan paper: makes tables, figures and the paper's numbers from rows, or checks
 * that they are up to date. */
#include <stdlib.h>
#include <unistd.h>

#include "graphs/core/file.h"
#include "harness/cli/command.h"
#include "harness/view/gnuplot.h"
#include "harness/report/paper.h"

typedef struct press {
    mpl_ctx *ctx;
    bool check;
    uint32_t n_stale, n_files;
} press;

/* Reads a file; if absent *text is NULL. */
static mpl_status read_old(mpl_ctx *ctx, const char *path, char **text, size_t *size)
{
    if (access(path, F_OK) != 0)
        return MPL_OK;
    return mpl_file_read(ctx, path, text, size);
}

static void say(press *self, const char *path)
{
    printf("%s %s\n", self->check ? "stale:" : "wrote", mpl_shown(path));
    self->n_stale++;
}

static mpl_status settle(press *self, const char *path, const char *text)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    char *old = NULL;
    size_t size = 0;

    self->n_files++;
    MPL_TRY(read_old(self->ctx, path, &old, &size));
    if (old != NULL && size == strlen(text) && memcmp(old, text, size) == 0)
        goto out;
    say(self, path);
    if (self->check)
        goto out;
    MPL_TRY(mpl_file_begin(self->ctx, path, &file));
    fputs(text, file.stream);
    MPL_TRY(mpl_file_commit(self->ctx, &file));
out:
    mpl_file_end(self->ctx, &file);
    mpl_free(self->ctx, old);
    return st;
}

/* Draws into `path`; the picture ends in a hash of its inputs. */
static mpl_status draw(press *self, const char *script, const char *table, uint64_t inputs,
                       const char *path)
{
    mpl_status st = MPL_OK;
    char picture[420];
    char *settings = NULL, *svg = NULL;
    size_t size = 0;
    mpl_new_file file = {0};
    FILE *stream = open_memstream(&settings, &size);

    snprintf(picture, sizeof picture, "%s.part", path);
    MPL_TRY(stream != NULL ? MPL_OK : MPL_EMEM);
    fputs("table=", stream);
    mpl_put_gnuplot(stream, table);
    fputs("; output=", stream);
    mpl_put_gnuplot(stream, picture);
    MPL_TRY(fflush(stream) == 0 ? MPL_OK : MPL_EMEM);
    MPL_TRY(mpl_gnuplot(self->ctx, settings, script));
    MPL_TRY(mpl_file_read(self->ctx, picture, &svg, &size));
    MPL_TRY(mpl_file_begin(self->ctx, path, &file));
    mpl_svg_put(file.stream, svg, size, inputs);
    MPL_TRY(mpl_file_commit(self->ctx, &file));
out:
    unlink(picture);
    if (stream != NULL)
        fclose(stream);
    free(settings);
    mpl_file_end(self->ctx, &file);
    mpl_free(self->ctx, svg);
    return st;
}

static mpl_status settle_figure(press *self, const mpl_paper_item *item, const char *tsv)
{
    mpl_status st = MPL_OK;
    char script[300], table[300], path[300], *text[3] = {NULL};
    size_t size[3] = {0};
    uint64_t inputs = mpl_hash(MPL_HASH_SEED, tsv, strlen(tsv));

    self->n_files++;
    snprintf(script, sizeof script, "scripts/%s", item->script);
    snprintf(table, sizeof table, "results/tables/%s.tsv", item->name);
    snprintf(path, sizeof path, "results/figures/%s.svg", item->name);
    MPL_TRY(mpl_file_read(self->ctx, script, &text[0], &size[0]));
    MPL_TRY(mpl_file_read(self->ctx, MPL_STYLE, &text[1], &size[1]));
    for (int i = 0; i < 2; i++)
        inputs = mpl_hash(inputs, text[i], size[i]);
    MPL_TRY(read_old(self->ctx, path, &text[2], &size[2]));
    if (text[2] != NULL && mpl_svg_fresh(text[2], size[2], inputs))
        goto out;
    say(self, path);
    if (!self->check)
        MPL_TRY(draw(self, script, table, inputs, path));
out:
    for (int i = 0; i < 3; i++)
        mpl_free(self->ctx, text[i]);
    return st;
}

static mpl_status settle_item(press *self, const mpl_paper_item *item)
{
    mpl_status st = MPL_OK;
    char path[300], *text = NULL;

    snprintf(path, sizeof path, "results/tables/%s.%s", item->name,
             item->script != NULL ? "tsv" : "md");
    MPL_TRY(mpl_paper_print(self->ctx, item, &text));
    MPL_TRY(settle(self, path, text));
    if (item->script != NULL)
        MPL_TRY(settle_figure(self, item, text));
out:
    mpl_free(self->ctx, text);
    return st;
}

enum { MAX_TEXTS = 2 };

/* A text whose markers are filled. */
typedef struct pressed {
    const char *path;
    char *text, *filled, *faults;
} pressed;

static mpl_status read_text(mpl_ctx *ctx, pressed *t)
{
    size_t size;

    MPL_PASS(mpl_file_read(ctx, t->path, &t->text, &size));
    if (strlen(t->text) != size)
        return MPL_REFUSE(ctx, "%s: no text", t->path);
    return MPL_OK;
}

/* The file asked for, or the paper and, where there is one, its appendix. */
static mpl_status find_texts(mpl_ctx *ctx, const mpl_options *options, pressed *texts, uint32_t *n)
{
    static const char *const own[MAX_TEXTS] = {"PAPER.md", "results/APPENDIX.md"};

    if (options->args.n > 0) {
        texts[(*n)++].path = options->args.item[0];
        return MPL_OK;
    }
    if (access(own[0], F_OK) != 0)
        return MPL_REFUSE(ctx, "paper: no %s here: it is made in the folder of memplan's sources",
                          own[0]);
    for (size_t i = 0; i < MAX_TEXTS; i++)
        if (access(own[i], F_OK) == 0)
            texts[(*n)++].path = own[i];
    return MPL_OK;
}

/* Everything is read and filled before anything is written. */
static mpl_status settle_all(press *self, const mpl_paper *paper, pressed *texts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(read_text(self->ctx, &texts[i]));
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(mpl_paper_fill(self->ctx, paper, texts[i].path, texts[i].text, &texts[i].filled,
                                &texts[i].faults));
    for (uint32_t i = 0; i < paper->n; i++)
        MPL_PASS(settle_item(self, &paper->item[i]));
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(settle(self, texts[i].path, texts[i].filled));
    return MPL_OK;
}

mpl_status mpl_cmd_paper(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    press p = {.ctx = ctx, .check = options->check};
    mpl_paper paper = {0};
    pressed texts[MAX_TEXTS] = {0};
    uint32_t n = 0;

    MPL_TRY(find_texts(ctx, options, texts, &n));
    MPL_TRY(mpl_paper_make(ctx, &paper));
    MPL_TRY(settle_all(&p, &paper, texts, n));
    for (uint32_t i = 0; i < n; i++)
        fputs(texts[i].faults, stdout);
    if (p.check && p.n_stale > 0)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "paper: %" PRIu32 " of %" PRIu32 " files are not what the rows make; "
                 "memplan paper writes them anew",
                 p.n_stale, p.n_files);
    for (uint32_t i = 0; i < n; i++)
        if (texts[i].faults[0] != '\0')
            MPL_FAIL(ctx, MPL_EINVALID, "paper: %s says what the rows do not", texts[i].path);
    printf("%" PRIu32 " files are what the rows make\n", p.n_files);
out:
    mpl_paper_fini(ctx, &paper);
    for (uint32_t i = 0; i < n; i++)
        mpl_free_each(ctx, texts[i].text, texts[i].filled, texts[i].faults);
    return st;
}
