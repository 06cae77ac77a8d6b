/* program.c -- see program.h. */
#include "harness/job/program.h"

#include <errno.h>
#include <sys/stat.h>

mpl_status mpl_program_text(mpl_ctx *ctx, const mpl_options *options, const char **graph,
                            char **store)
{
    static const char form[] = "%s%cssa=program";
    size_t n = strcspn(*graph, ":"), room = strlen(*graph) + sizeof form;
    const mpl_zoo_entry *entry = mpl_zoo_find(*graph, n);
    uint32_t i = 0;

    if (entry == NULL || (options->dump_ssa == NULL && options->ssa == MPL_ssa_full))
        return MPL_OK;
    while (entry->params[i].key != NULL && strcmp(entry->params[i].key, "ssa") != 0)
        i++;
    if (entry->params[i].key == NULL || strstr(*graph + n, "ssa=") != NULL)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, *store, room));
    snprintf(*store, room, form, *graph, (*graph)[n] == ':' ? ',' : ':');
    *graph = *store;
    return MPL_OK;
}

typedef struct dump {
    mpl_ctx *ctx;
    const char *folder;
    char path[4096];
} dump;

static mpl_status write_graph(dump *self, uint32_t number, const char *name, const mpl_graph *g)
{
    if ((size_t)snprintf(self->path, sizeof self->path, "%s/%" PRIu32 "-%s.graph", self->folder,
                         number, name) >= sizeof self->path)
        return MPL_REFUSE(self->ctx, "--dump-ssa: the path is too long");
    return mpl_text_write(self->ctx, self->path, g);
}

static mpl_status write_step(void *arg, uint32_t step, const mpl_graph *g)
{
    return write_graph(arg, step + 1, mpl_ssa_step_name[step], g);
}

mpl_status mpl_program_to_ssa(mpl_ctx *ctx, const mpl_options *options, mpl_source *source,
                              bool *is_program, mpl_ssa_facts *facts)
{
    mpl_graph *made = NULL;
    mpl_ssa_level level = (mpl_ssa_level)(options->ssa - MPL_ssa_copy); /* in the same order */
    dump d = {.ctx = ctx, .folder = options->dump_ssa};

    *is_program = source->graph != NULL && source->graph->program;
    if (!*is_program && d.folder != NULL)
        return MPL_REFUSE(
            ctx, "--dump-ssa: this is no program: .graph text that begins with 'program NAME', or "
                 "a network of "
                 "the zoo that has a parameter ssa, named without it");
    if (!*is_program)
        return MPL_OK;
    if (d.folder != NULL) {
        if (mkdir(d.folder, 0777) != 0 && errno != EEXIST)
            return MPL_REFUSE(ctx, "--dump-ssa: %s: %s", d.folder, strerror(errno));
        MPL_PASS(write_graph(&d, 0, "program", source->graph));
    }
    MPL_PASS(mpl_tensor_ssa(ctx, source->graph, level,
                            d.folder != NULL ? &(mpl_ssa_watch){write_step, &d} : NULL, facts,
                            &made));
    mpl_graph_free(ctx, source->graph);
    source->graph = made;
    return MPL_OK;
}

void mpl_program_show(const mpl_options *options, const mpl_ssa_facts *facts)
{
    printf("program      %" PRIu32 " views, %" PRIu32 " writes; in SSA (%s):", facts->n_views,
           facts->n_writes, mpl_word_text[options->ssa]);
    for (uint32_t i = 0; i < MPL_SSA_STEPS; i++)
        if (options->ssa == MPL_ssa_full || i == 0 ||
            (i == MPL_SSA_STEPS - 1 && options->ssa == MPL_ssa_views))
            printf("%s %s %" PRIu32 "+%" PRIu32 "+%" PRIu32, i > 0 ? "," : "", mpl_ssa_step_name[i],
                   facts->n_access[i], facts->n_assign[i], facts->n_fused[i]);
    printf(" accesses+assigns+fused\n");
    if (facts->n_apart + facts->n_meet + facts->n_undecided > 0)
        printf("             pairs of boxes: %" PRIu32 " apart, %" PRIu32 " overlap, %" PRIu32
               " not decided (taken as overlapping)\n",
               facts->n_apart, facts->n_meet, facts->n_undecided);
}
