/* xla_names.c -- what XLA's instructions are for: the op_name of each, which the HLO that lies
 * beside a dump has, behind the name that the dump gives to a value: "dot.3 jit(f)/dot_general".
 * Beside X-buffer-assignment.txt that is X.txt, as --xla_dump_hlo_as_text writes it. */
#include "planners/import/xla_priv.h"

#include "graphs/core/file.h"

#include <unistd.h>

/* By instruction, where its op_name begins in the text. What is no instruction is passed over. */
static mpl_status find_names(mpl_ctx *ctx, const char *text, size_t size, mpl_names *names)
{
    static const char root[] = "ROOT ", key[] = "op_name=\"";
    mpl_lines lines = mpl_lines_of(text, size);

    while (mpl_lines_next(&lines)) {
        const char *at = lines.text, *end = mpl_lines_find(&lines, " = "),
                   *name = mpl_lines_find(&lines, key);
        uint64_t old;

        if (end == NULL || name == NULL)
            continue;
        end -= strlen(" = ");
        at += (size_t)(end - at) > strlen(root) && memcmp(at, root, strlen(root)) == 0
                  ? strlen(root)
                  : 0;
        at += at < end && *at == '%';
        MPL_PASS(mpl_names_add(ctx, names, at, (size_t)(end - at), (uint64_t)(name - text), &old));
    }
    return MPL_OK;
}

static mpl_status lengthen(mpl_ctx *ctx, mpl_import_buffer *buffer, const char *more, size_t n)
{
    size_t had = strlen(buffer->name);
    char *name;

    MPL_PASS(mpl_new(ctx, name, had + 1 + n + 1));
    memcpy(name, buffer->name, had);
    name[had] = ' ';
    for (size_t i = 0; i < n; i++)
        name[had + 1 + i] = (unsigned char)more[i] < ' ' ? '?' : more[i];
    name[had + 1 + n] = '\0';
    mpl_free(ctx, buffer->name);
    buffer->name = name;
    return MPL_OK;
}

mpl_status mpl_xla_names(mpl_ctx *ctx, const char *path, mpl_import_list *list, uint32_t *n_named)
{
    static const char from[] = "-buffer-assignment.txt", to[] = ".txt";
    mpl_status st = MPL_OK;
    size_t n = strlen(path), cut = strlen(from), size;
    char *beside = NULL, *text = NULL;
    mpl_names names = {0};

    *n_named = 0;
    if (n < cut || strcmp(path + n - cut, from) != 0)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, beside, n + 1));
    memcpy(beside, path, n - cut);
    memcpy(beside + n - cut, to, sizeof to);
    if (access(beside, R_OK) != 0)
        goto out;
    MPL_TRY(mpl_file_read(ctx, beside, &text, &size));
    MPL_TRY(find_names(ctx, text, size, &names));
    for (uint32_t b = 0; b < list->n; b++) {
        const char *name = list->item[b].name;
        uint64_t at = mpl_names_get(&names, name, strcspn(name, "{"));

        if (at == UINT64_MAX)
            continue;
        MPL_TRY(lengthen(ctx, &list->item[b], text + at, strcspn(text + at, "\"\n")));
        ++*n_named;
    }
out:
    mpl_free_each(ctx, beside, text, names.slot);
    return st;
}
