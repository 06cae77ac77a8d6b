/* zoo.c -- the list of networks; builds a network, or its training, from "name:key=value,..". */
#include "graphs/passes/passes.h"
#include "graphs/zoo/net/zoo_priv.h"

#define ZOO(name) extern const mpl_zoo_entry mpl_zoo_##name;
#include "graphs/zoo/zoo.def"
#undef ZOO

const mpl_zoo_entry *const mpl_zoo[] = {
#define ZOO(name) &mpl_zoo_##name,
#include "graphs/zoo/zoo.def"
#undef ZOO
    NULL,
};

enum { F32, INT8 = 3 }; /* of dtypes */
enum { DTYPE, MODE, UPDATE, GRADIENTS, ACCUMULATE, PRODUCTS, RATE, N_TRAINING };

static const char *const dtypes[] = {"f32", "f16", "bf16", "int8"};
static const char *const modes[] = {"inference", "train"};
static const char *const updates[] = {"none", "sgd", "momentum", "adagrad", "adam", "adamw"};
static const char *const gradients[] = {"by_update", "pinned", "planned"};
static const char *const accumulates[] = {"sum", "chain"};
static const char *const products[] = {"joint", "apart"};

const mpl_zoo_param mpl_zoo_training[] = {
    [DTYPE] = {"dtype", 0, 0, INT8, "of all that is f32; sums are wider", dtypes},
    [MODE] = {"mode", 0, 0, 1, "train: forward, loss, backward", modes},
    [UPDATE] = {"update", 0, 0, 5, "of the weights, in place", updates},
    [GRADIENTS] =
        {"gradients", 0, 0, 2,
         "of weights: pinned outputs, or planned and read by the update; by_update chooses",
         gradients},
    [ACCUMULATE] = {"accumulate", 0, 0, 1,
                    "parts of a gradient by one sum, or a chain of additions", accumulates},
    [PRODUCTS] = {"products", 0, 0, 1,
                  "gradients of convolutions and matrix products by one operation, or one each",
                  products},
    [RATE] = {"rate", 0, 0, 1000000, "of the update, in millionths; 0: the network's", NULL},
    [N_TRAINING] = {NULL, 0, 0, 0, NULL, NULL},
};

const mpl_zoo_entry *mpl_zoo_find(const char *name, size_t n)
{
    for (size_t i = 0; mpl_zoo[i] != NULL; i++)
        if (strlen(mpl_zoo[i]->name) == n && memcmp(mpl_zoo[i]->name, name, n) == 0)
            return mpl_zoo[i];
    return NULL;
}

/* Writes "batch, image, classes, mode" to text[size], truncated. */
static const char *list_params(const mpl_zoo_entry *entry, char *text, size_t size)
{
    const mpl_zoo_param *lists[] = {entry->params, mpl_zoo_training};
    size_t at = 0;

    for (int i = 0; i < 2; i++)
        for (const mpl_zoo_param *param = lists[i]; param->key != NULL && at < size; param++)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at == 0 ? "" : ", ", param->key);
    return text;
}

/* A decimal number of n characters, with an optional minus. */
static bool parse_whole(const char *text, size_t n, int64_t *out)
{
    bool minus = n > 0 && text[0] == '-';
    int64_t number = 0;

    if (n == (size_t)minus || n > 18u + minus)
        return false;
    for (size_t i = minus; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = 10 * number + (text[i] - '0');
    }
    *out = minus ? -number : number;
    return true;
}

/* The same; `hundredths`: with up to two decimals, times 100. */
static bool parse_number(const char *text, size_t n, bool hundredths, int64_t *out)
{
    const char *point = memchr(text, '.', n);
    size_t n_whole = point != NULL ? (size_t)(point - text) : n, n_part = n - n_whole;
    int64_t part = 0;

    if (!hundredths)
        return parse_whole(text, n, out);
    if (text[0] == '-' || n_part > 3 || n_whole > 16 || !parse_whole(text, n_whole, out) ||
        (n_part > 0 && !parse_whole(point + 1, n_part - 1, &part)))
        return false;
    *out = 100 * *out + (n_part == 2 ? 10 * part : part);
    return part >= 0;
}

static mpl_status parse_value(mpl_ctx *ctx, const mpl_zoo_entry *entry, const mpl_zoo_param *param,
                              const char *text, size_t n, int64_t *out)
{
    bool hundredths = param->choices == mpl_zoo_hundredths;
    char words[200];
    char low[MPL_ZOO_NUMBER], high[MPL_ZOO_NUMBER];

    if (param->choices != NULL && !hundredths) {
        size_t at = 0;

        for (int64_t i = 0; i <= param->max; i++) {
            if (strlen(param->choices[i]) == n && memcmp(param->choices[i], text, n) == 0)
                return *out = i, MPL_OK;
            at += (size_t)snprintf(words + at, sizeof words - at, "%s%s", i > 0 ? ", " : "",
                                   param->choices[i]);
            mpl_assert(at < sizeof words);
        }
        return MPL_REFUSE(ctx, "%s: %s=%.*s is none of %s", entry->name, param->key,
                          (int)(n < 64 ? n : 64), text, words);
    }
    if (!parse_number(text, n, hundredths, out) || *out < param->min || *out > param->max)
        return MPL_REFUSE(ctx, "%s: %s=%.*s is no number from %s to %s", entry->name, param->key,
                          (int)(n < 64 ? n : 64), text, mpl_zoo_value_text(param, param->min, low),
                          mpl_zoo_value_text(param, param->max, high));
    return MPL_OK;
}

/* A parsed spec. */
typedef struct spec {
    mpl_zoo_args args;
    int64_t training[N_TRAINING];
    bool seen[MPL_ZOO_MAX_PARAMS], training_seen[N_TRAINING];
} spec;

/* Index of the key of n characters; if absent, the index of the end. */
static uint32_t find_param(const mpl_zoo_param *params, const char *key, size_t n)
{
    uint32_t i = 0;

    while (params[i].key != NULL &&
           (strlen(params[i].key) != n || memcmp(params[i].key, key, n) != 0))
        i++;
    return i;
}

/* Parses one "key=value" of n characters. */
static mpl_status parse_param(mpl_ctx *ctx, const char *text, size_t n, spec *s)
{
    const mpl_zoo_entry *entry = s->args.entry;
    const char *mark = memchr(text, '=', n);
    size_t n_key = mark != NULL ? (size_t)(mark - text) : n;
    uint32_t i = find_param(entry->params, text, n_key);
    bool own = entry->params[i].key != NULL;
    const mpl_zoo_param *param;
    bool *seen;
    char list[200];

    if (!own)
        i = find_param(mpl_zoo_training, text, n_key);
    param = own ? &entry->params[i] : &mpl_zoo_training[i];
    if (mark == NULL || param->key == NULL)
        return MPL_REFUSE(ctx, "%s: '%.*s' is no parameter; write key=value with one of %s",
                          entry->name, (int)(n < 64 ? n : 64), text,
                          list_params(entry, list, sizeof list));
    seen = own ? &s->seen[i] : &s->training_seen[i];
    if (*seen)
        return MPL_REFUSE(ctx, "%s: parameter '%s' is given twice", entry->name, param->key);
    *seen = true;
    return parse_value(ctx, entry, param, mark + 1, n - n_key - 1,
                       own ? &s->args.value[i] : &s->training[i]);
}

/* Writes the name and the training parameters, ",mode=train,update=sgd", to text[size]. */
static void name_training(const spec *self, const char *name, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "%s", name);
    char mark = strchr(name, ':') != NULL ? ',' : ':', number[MPL_ZOO_NUMBER];

    for (uint32_t i = 0; i < N_TRAINING && at < size; i++) {
        const mpl_zoo_param *param = &mpl_zoo_training[i];

        if (self->training[i] == param->otherwise)
            continue;
        at += (size_t)snprintf(text + at, size - at, "%c%s=%s", mark, param->key,
                               mpl_zoo_value_text(param, self->training[i], number));
        mark = ',';
    }
}

static mpl_autodiff_options options_of(const spec *self)
{
    return (mpl_autodiff_options){
        .update = (mpl_optimiser)self->training[UPDATE],
        .gradients = (mpl_gradients)self->training[GRADIENTS],
        .chained = self->training[ACCUMULATE] == 1,
        .apart = self->training[PRODUCTS] == 1,
        .rate =
            self->training[RATE] > 0 ? (double)self->training[RATE] / 1e6 : self->args.entry->rate,
        .dropout = self->args.entry->dropout,
        .own_loss = self->args.entry->own_loss,
    };
}

/* *network, of the type and trained as asked for. */
static mpl_status make_form(mpl_ctx *ctx, const spec *s, mpl_graph **network, mpl_graph **out)
{
    static const mpl_type types[] = {MPL_TYPE_f32, MPL_TYPE_f16, MPL_TYPE_bf16};
    char name[400];
    mpl_autodiff_options options = options_of(s);
    mpl_graph *plain = *network;

    options.name = name;
    name_training(s, plain->name, name, sizeof name);
    if (s->training[DTYPE] != F32) {
        MPL_PASS(s->training[DTYPE] == INT8
                     ? mpl_graph_int8(ctx, plain, name, network)
                     : mpl_graph_retype(ctx, plain, name, types[s->training[DTYPE]], network));
        mpl_graph_free(ctx, plain);
    }
    if (s->args.train)
        return mpl_autodiff(ctx, *network, &options, out);
    *out = *network, *network = NULL;
    return MPL_OK;
}

static mpl_status check_training(mpl_ctx *ctx, const spec *s)
{
    for (uint32_t i = 0; i < N_TRAINING; i++)
        if (s->training[MODE] == 0 && i > MODE && s->training_seen[i])
            return MPL_REFUSE(ctx, "%s: parameter '%s' is for training; add mode=train",
                              s->args.entry->name, mpl_zoo_training[i].key);
    if (s->training[MODE] == 1 && s->training[DTYPE] == INT8)
        return MPL_REFUSE(ctx, "%s: dtype=int8 is for inference, not for mode=train",
                          s->args.entry->name);
    return MPL_OK;
}

/* Reads the parameters at text, which is at a colon or at the end, into s; others have defaults. */
static mpl_status parse_spec(mpl_ctx *ctx, const char *text, spec *s)
{
    for (uint32_t i = 0; s->args.entry->params[i].key != NULL; i++)
        s->args.value[i] = s->args.entry->params[i].otherwise;
    for (uint32_t i = 0; i < N_TRAINING; i++)
        s->training[i] = mpl_zoo_training[i].otherwise;
    while (*text != '\0') { /* at a colon or comma */
        size_t n = strcspn(text + 1, ",");

        MPL_PASS(parse_param(ctx, text + 1, n, s));
        text += 1 + n;
    }
    MPL_PASS(check_training(ctx, s));
    s->args.train = s->training[MODE] == 1;
    return MPL_OK;
}

mpl_status mpl_zoo_build(mpl_ctx *ctx, const char *text, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    size_t n = strcspn(text, ":");
    spec s = {.args = {.entry = mpl_zoo_find(text, n), .any = mpl_zoo_build}};
    mpl_graph *network = NULL;

    if (s.args.entry == NULL)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "no network '%.*s' in the zoo; 'memplan list graphs' shows those there are",
                 (int)(n < 100 ? n : 100), text);
    MPL_TRY(parse_spec(ctx, text + n, &s));
    MPL_TRY(s.args.entry->build(ctx, &s.args, &network));
    MPL_TRY(make_form(ctx, &s, &network, out));
out:
    mpl_graph_free(ctx, network);
    return st;
}

/* ---- files ---- */

mpl_status mpl_file_params(mpl_ctx *ctx, const char *file, const char *text, mpl_file_spec *out)
{
    static const char *const layers[] = {"inference", "training"};
    static const mpl_zoo_param params[] = {
        {"batch", 0, 0, 65536, "the open dim of that name", NULL},
        {"layers", 0, 0, 1, "batch norm and dropout", layers},
        MPL_PARAM_END,
    };
    const mpl_zoo_entry entry = {.name = file, .params = params};
    spec s = {.args = {.entry = &entry}};

    MPL_PASS(parse_spec(ctx, text, &s));
    if (s.training_seen[DTYPE])
        return MPL_REFUSE(ctx, "%s: parameter 'dtype' is for networks of the zoo", file);
    if (s.seen[1] && !s.args.train)
        return MPL_REFUSE(ctx, "%s: parameter 'layers' is for training; add mode=train", file);
    *out = (mpl_file_spec){
        .train = s.args.train, .batch = s.args.value[0], .autodiff = options_of(&s)};
    out->autodiff.frozen = s.args.value[1] == 0;
    name_training(&s, "", out->suffix, sizeof out->suffix);
    return MPL_OK;
}
