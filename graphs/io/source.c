/* source.c -- GRAPH of the command line: a file by its content, else a network. See source.h. */
#include "graphs/core/file.h"
#include "graphs/core/gzip.h"
#include "graphs/core/names.h"
#include "graphs/io/lists/lists.h"
#include "graphs/io/tflite/flatbuffer.h"
#include "graphs/passes/autodiff/train_graph.h"
#include "graphs/source.h"

#include <sys/stat.h>

enum { MOST_UNPACKED = 1 << 30 }; /* of a file packed by gzip [byte] */

typedef enum content { ONNX, TFLITE, TEXT, LIST, JSON, HLO, UNKNOWN } content;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The first line that is neither blank nor a comment; *n: its length. */
static const char *first_line(const char *data, size_t size, size_t *n)
{
    const char *at = data, *end = data + size;

    for (;;) {
        while (at < end && is_blank(*at))
            at++;
        if (at == end || *at != '#')
            break;
        while (at < end && *at != '\n')
            at++;
    }
    *n = 0;
    while (at + *n < end && at[*n] != '\n')
        ++*n;
    return at;
}

/* Whether a module of HLO may begin so: `HloModule`, a comment of //, or the head of a computation,
 * which is a name before a brace or parenthesis. */
static bool begins_hlo(const char *line, size_t n)
{
    size_t at = 0;

    if (n >= 2 && line[0] == '/' && line[1] == '/')
        return true;
    if ((n > 9 && memcmp(line, "HloModule", 9) == 0 && is_blank(line[9])) ||
        (n > 5 && memcmp(line, "ENTRY", 5) == 0 && is_blank(line[5])))
        return true;
    while (at < n && strchr("{( \t", line[at]) == NULL)
        at++;
    while (at < n && at > 0 && is_blank(line[at]))
        at++;
    return at > 0 && at < n && (line[at] == '{' || line[at] == '(');
}

/* TensorFlow Lite has an identifier; text begins with 'graph ' or 'program '; ONNX is binary, since
 * its first field is a number below 32; what is none of them may be a list. */
static content content_of(const mpl_list_in *in)
{
    size_t n = in->line_size, probe = in->size < 512 ? in->size : 512;
    const char *line = in->line;

    if (flat_is(in->text, in->size, "TFL3"))
        return TFLITE;
    for (size_t i = 0; i < probe; i++)
        if ((unsigned char)in->text[i] < ' ' && !is_blank(in->text[i]))
            return ONNX;
    if ((n > 6 && memcmp(line, "graph", 5) == 0 && is_blank(line[5])) ||
        (n > 8 && memcmp(line, "program", 7) == 0 && is_blank(line[7])))
        return TEXT;
    if (n > 0 && (line[0] == '{' || line[0] == '['))
        return JSON;
    if (begins_hlo(line, n))
        return HLO;
    return mpl_list_is(in) ? LIST : UNKNOWN;
}

static mpl_status refuse_dims(mpl_ctx *ctx, const char *text, const mpl_read_options *options)
{
    if (options->n_dims > 0 && !options->spare_dims)
        return MPL_REFUSE(
            ctx,
            "%.200s: has no open dim '%.100s'; dims are given to ONNX models, networks have "
            "parameters "
            "(memplan list graphs)",
            text, options->dim_name[0]);
    return MPL_OK;
}

/* Puts what gzip has packed in the place of the packed bytes. */
static mpl_status unpack(mpl_ctx *ctx, const char *path, char **data, size_t *size)
{
    char *text;
    size_t n;

    MPL_PASS(mpl_gunzip(ctx, path, *data, *size, MOST_UNPACKED, &text, &n));
    mpl_free(ctx, *data);
    *data = text;
    *size = n;
    return MPL_OK;
}

static mpl_status open_file(mpl_ctx *ctx, const char *path, const mpl_read_options *options,
                            mpl_source *out)
{
    mpl_status st = MPL_OK;
    char *data = NULL;
    size_t size, packed;
    mpl_list_in in = {.path = path};
    content kind;

    MPL_TRY(mpl_file_read(ctx, path, &data, &size));
    packed = size;
    if (mpl_is_gzip(data, size))
        MPL_TRY(unpack(ctx, path, &data, &size));
    if (size == 0)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: the file is empty; it should hold ONNX, TensorFlow Lite, HLO, .graph text or "
                 "a buffer list",
                 path);
    in.text = data, in.size = size;
    in.line = first_line(data, size, &in.line_size);
    kind = content_of(&in);
    if (kind != ONNX)
        MPL_TRY(refuse_dims(ctx, path, options));
    switch (kind) {
    case ONNX:
        MPL_TRY(mpl_onnx_read_memory(ctx, path, data, size, options, &out->graph));
        break;
    case TFLITE:
        MPL_TRY(mpl_tflite_read_memory(ctx, path, data, size, &out->graph));
        break;
    case TEXT:
        if (mpl_text_has_entries(data, size))
            MPL_FAIL(ctx, MPL_EINPUT,
                     "%s: holds several entries, which plan, verify and run take together; one is "
                     "%s:entry=NAME",
                     path, path);
        MPL_TRY(mpl_text_read_memory(ctx, path, data, size, &out->graph));
        break;
    case HLO:
        MPL_TRY(mpl_hlo_read_memory(ctx, path, data, size, &out->graph));
        break;
    case LIST:
        MPL_TRY(mpl_list_read(ctx, &in, &out->problem, &out->offset));
        break;
    case JSON:
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: JSON is no graph; a plan goes behind --plan, or to verify, certify, export "
                 "and check",
                 path);
    case UNKNOWN:
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s:1: neither ONNX, nor TensorFlow Lite, nor HLO, nor .graph text (which begins "
                 "with 'graph NAME'), "
                 "nor a buffer "
                 "list (with a header such as 'id,lower,upper,size', or of a trace "
                 "'time,event,id,bytes')",
                 path);
    }
    out->file_bytes = packed;
out:
    mpl_free(ctx, data);
    return st;
}

static const char entry_mark[] = ":entry=";

/* Opens "FILE:entry=NAME". */
static mpl_status open_entry(mpl_ctx *ctx, const char *text, const char *mark, mpl_source *out)
{
    mpl_status st = MPL_OK;
    mpl_text_entries all = {0};
    const char *name = mark + sizeof entry_mark - 1;
    char *path = NULL, *data = NULL;
    size_t size;
    uint32_t e = 0;

    MPL_TRY(mpl_new(ctx, path, (size_t)(mark - text) + 1));
    memcpy(path, text, (size_t)(mark - text));
    MPL_TRY(mpl_text_entries_read(ctx, path, &all));
    while (e < all.n_entries && strcmp(all.entry[e], name) != 0)
        e++;
    if (e == all.n_entries)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: has no entry '%.60s'; its first is '%.60s'", path, name,
                 all.n_entries > 0 ? all.entry[0] : "none");
    MPL_TRY(mpl_file_read(ctx, path, &data, &size));
    mpl_text_keep_entry(data, size, name);
    MPL_TRY(mpl_text_read_memory(ctx, path, data, size, &out->graph));
    out->file_bytes = size;
out:
    mpl_text_entries_fini(ctx, &all);
    mpl_free_each(ctx, path, data);
    return st;
}

/* The network with the most similar name, or NULL. */
static const char *nearest(const char *name, size_t n)
{
    const char *best = NULL;
    uint32_t least = MPL_TOO_FAR;

    for (size_t i = 0; mpl_zoo[i] != NULL; i++)
        if (mpl_nearer(name, n, mpl_zoo[i]->name, &least))
            best = mpl_zoo[i]->name;
    return best;
}

/* "guillotine:n=N[,seed=S]", "synthetic:n=N[,alive=A][,seed=S]" */
static mpl_status open_synthetic(mpl_ctx *ctx, const char *text, mpl_source *out)
{
    const char *at = strchr(text, ':') + 1;
    bool cut = text[0] == 'g';
    uint64_t seed = 1;
    uint32_t n = 0, alive = 100;
    int length = -1;

    if (sscanf(at, "n=%" SCNu32 "%n", &n, &length) == 1) {
        at += length;
        if (!cut && sscanf(at, ",alive=%" SCNu32 "%n", &alive, &length) == 1)
            at += length;
        if (sscanf(at, ",seed=%" SCNu64 "%n", &seed, &length) == 1)
            at += length;
    }
    if (length < 0 || *at != '\0')
        return MPL_REFUSE(ctx,
                          "%.200s: a list that is made is written guillotine:n=N[,seed=S] or "
                          "synthetic:n=N[,alive=A][,seed=S]",
                          text);
    if (cut)
        MPL_PASS(mpl_problem_synthetic_guillotine(ctx, n, seed, &out->problem));
    else
        MPL_PASS(mpl_problem_synthetic(ctx, n, alive, seed, &out->problem));
    return MPL_OK;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* ---- twins ---- */

static const char twin_mark[] = ":twin=";

/* The last twin_mark in a text, or NULL. */
static const char *find_twin(const char *text)
{
    const char *last = NULL;

    for (const char *at = text; (at = strstr(at, twin_mark)) != NULL; at++)
        last = at;
    return last;
}

static mpl_status make_twin(mpl_ctx *ctx, const char *text, const char *kind, mpl_source *source)
{
    uint64_t seed = 1;
    int end = -1;
    char *name = NULL;

    if (source->problem == NULL)
        return MPL_REFUSE(ctx, "%.200s: only lists of buffers have twins", text);
    if (strncmp(kind, "shuffled", 8) == 0)
        sscanf(kind, "shuffled%n,seed=%" SCNu64 "%n", &end, &seed, &end);
    if (end >= 0 && kind[end] == '\0')
        MPL_PASS(mpl_problem_shuffle(ctx, source->problem, seed, source->offset));
    else if (strcmp(kind, "reversed") == 0)
        MPL_PASS(mpl_problem_reverse(ctx, source->problem));
    else
        return MPL_REFUSE(ctx,
                          "%.200s: '%.60s' is no twin; reversed, shuffled and shuffled,seed=N are",
                          text, kind);
    MPL_PASS(mpl_new(ctx, name, strlen(source->problem->name) + sizeof twin_mark + strlen(kind)));
    sprintf(name, "%s%s%s", source->problem->name, twin_mark, kind);
    mpl_free(ctx, source->problem->name);
    source->problem->name = name;
    return MPL_OK;
}

static mpl_status open_twin(mpl_ctx *ctx, const char *text, const char *mark,
                            const mpl_read_options *options, mpl_source *out)
{
    mpl_status st = MPL_OK;
    mpl_source source = {0};
    char *original = NULL;

    MPL_TRY(mpl_new(ctx, original, (size_t)(mark - text) + 1));
    memcpy(original, text, (size_t)(mark - text));
    MPL_TRY(mpl_source_open(ctx, original, options, &source));
    MPL_TRY(make_twin(ctx, text, mark + sizeof twin_mark - 1, &source));
    *out = source;
    memset(&source, 0, sizeof source);
out:
    mpl_free(ctx, original);
    mpl_source_fini(ctx, &source);
    return st;
}

/* ---- files with parameters ---- */

/* The last colon of "FILE:key=value,.." behind the name of a file; NULL: there is none. A name may
 * have colons itself. */
static const char *find_params(const char *text)
{
    const char *mark = strrchr(text, ':');
    char path[4096];
    struct stat facts;

    if (mark == NULL || strchr(mark, '=') == NULL || (size_t)(mark - text) >= sizeof path)
        return NULL;
    snprintf(path, sizeof path, "%.*s", (int)(mark - text), text);
    return stat(path, &facts) == 0 && !S_ISDIR(facts.st_mode) ? mark : NULL;
}

/* Opens the file with `batch` among its dims. */
static mpl_status open_sized(mpl_ctx *ctx, const char *path, const mpl_read_options *options,
                             int64_t batch, mpl_source *out)
{
    mpl_status st = MPL_OK;
    mpl_read_options sized = *options;
    const char **name = NULL;
    int64_t *value = NULL;

    if (batch == 0)
        return open_file(ctx, path, options, out);
    MPL_TRY(mpl_new_each(ctx, (size_t)options->n_dims + 1, name, value));
    for (uint32_t i = 0; i < options->n_dims; i++) {
        if (strcmp(options->dim_name[i], "batch") == 0)
            MPL_FAIL(ctx, MPL_EINPUT, "%.200s: batch=%" PRId64 " and --dim batch: give one", path,
                     batch);
        name[i] = options->dim_name[i];
        value[i] = options->dim_value[i];
    }
    name[options->n_dims] = "batch";
    value[options->n_dims] = batch;
    sized.n_dims++;
    sized.dim_name = name;
    sized.dim_value = value;
    sized.spare_dims = false;
    MPL_TRY(open_file(ctx, path, &sized, out));
out:
    mpl_free_each(ctx, name, value);
    return st;
}

static mpl_status train(mpl_ctx *ctx, const char *path, const mpl_read_options *options,
                        const mpl_file_spec *spec, mpl_source *source)
{
    char name[600];
    mpl_train_options how = {options->loss, options->trainable, spec->autodiff};

    if (source->graph == NULL)
        return MPL_REFUSE(ctx, "%.200s: a list of buffers cannot be trained; a graph can", path);
    snprintf(name, sizeof name, "%.380s%s", source->graph->name, spec->suffix);
    how.autodiff.name = name;
    return mpl_graph_train(ctx, &source->graph, &how);
}

static mpl_status open_with_params(mpl_ctx *ctx, const char *text, const char *mark,
                                   const mpl_read_options *options, mpl_source *out)
{
    mpl_status st = MPL_OK;
    mpl_source source = {0};
    char *path = NULL;
    mpl_file_spec spec;

    MPL_TRY(mpl_new(ctx, path, (size_t)(mark - text) + 1));
    memcpy(path, text, (size_t)(mark - text));
    MPL_TRY(mpl_file_params(ctx, path, mark, &spec));
    MPL_TRY(open_sized(ctx, path, options, spec.batch, &source));
    if (spec.train)
        MPL_TRY(train(ctx, path, options, &spec, &source));
    *out = source;
    memset(&source, 0, sizeof source);
out:
    mpl_free(ctx, path);
    mpl_source_fini(ctx, &source);
    return st;
}

/* --loss and --trainable are for a file that is trained. */
static mpl_status refuse_training(mpl_ctx *ctx, const char *text, const mpl_read_options *options)
{
    const char *mark = find_params(text);

    if ((options->loss == NULL && options->trainable == NULL) ||
        (mark != NULL && strstr(mark, "mode=train") != NULL))
        return MPL_OK;
    return MPL_REFUSE(ctx, "%s: '%.200s' is no file that is trained: FILE:mode=train",
                      options->loss != NULL ? "--loss" : "--trainable", text);
}

/* ---- all of them ---- */

mpl_status mpl_source_open(mpl_ctx *ctx, const char *text, const mpl_read_options *given,
                           mpl_source *out)
{
    size_t n = strcspn(text, ":");
    struct stat facts;
    bool exists = stat(text, &facts) == 0, known = mpl_zoo_find(text, n) != NULL;
    const char *near = nearest(text, n), *twin = find_twin(text), *params = find_params(text);
    static const mpl_read_options nothing;
    const mpl_read_options *options = given != NULL ? given : &nothing;

    memset(out, 0, sizeof *out);
    if (!exists && strstr(text, entry_mark) != NULL)
        return open_entry(ctx, text, strstr(text, entry_mark), out);
    MPL_PASS(refuse_training(ctx, text, options));
    if (!exists && params != NULL && params != twin)
        return open_with_params(ctx, text, params, options, out);
    if (!exists && twin != NULL)
        return open_twin(ctx, text, twin, options, out);
    if (exists && !S_ISDIR(facts.st_mode))
        return open_file(ctx, text, options, out);
    if (known)
        MPL_PASS(refuse_dims(ctx, text, options));
    if (known)
        return mpl_zoo_build(ctx, text, &out->graph);
    if (!exists && (begins_with(text, "guillotine:") || begins_with(text, "synthetic:")))
        return open_synthetic(ctx, text, out);
    if (exists)
        return MPL_REFUSE(ctx, "%s: is a folder; name a file in it", text);
    return MPL_REFUSE(
        ctx,
        "%.200s: neither a file nor a network of the zoo%s%s%s; 'memplan list graphs' shows the "
        "networks",
        text, near != NULL ? " (is '" : "", near != NULL ? near : "",
        near != NULL ? "' meant?)" : "");
}

void mpl_source_fini(mpl_ctx *ctx, mpl_source *source)
{
    mpl_graph_free(ctx, source->graph);
    mpl_problem_free(ctx, source->problem);
    mpl_free(ctx, source->offset);
    memset(source, 0, sizeof *source);
}
