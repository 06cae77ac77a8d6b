/* text_entries.c -- text of several graphs over one memory, an `entry` each.
 *
 *   graph NAME
 *   state NAME TYPE [D,D,..]      lives from call to call; in each entry a value, as an input is
 * one
 *   ..                            weights and operations up to the first entry belong to each
 *   entry NAME                    begins a graph of its own, which ends at the next entry
 *   update STATE VALUE            an output of the entry: what the state holds after a call of it
 *
 * An entry is read as the text without the lines of all others, with `input` for `state` and
 * `output VALUE` for `update STATE VALUE`; so messages name the lines of the file. */
#include <stdarg.h>

#include "graphs/core/file.h"
#include "graphs/io/text/text_priv.h"
#include "graphs/source.h"

typedef struct word {
    char *at;
    size_t n;
} word;

/* One line: its first three words. */
typedef struct line {
    char *begin, *end;
    word word[3];
    bool more; /* something follows them */
} line;

/* The next word or string of a line, without quotes. */
static char *take_word(char *at, const char *end, word *out)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    *out = (word){at, 0};
    if (at < end && *at == '"') {
        out->at = ++at;
        while (at < end && *at != '"')
            at++;
        out->n = (size_t)(at - out->at);
        return at < end ? at + 1 : at;
    }
    while (at < end && mpl_text_word_char(*at))
        at++;
    out->n = (size_t)(at - out->at);
    return at;
}

static line line_at(char *begin, const char *end)
{
    char *newline = memchr(begin, '\n', (size_t)(end - begin)), *at = begin;
    line l = {.begin = begin, .end = newline != NULL ? newline : begin + (end - begin)};

    for (int i = 0; i < 3; i++)
        at = take_word(at, l.end, &l.word[i]);
    while (at < l.end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    l.more = at < l.end && *at != '#';
    return l;
}

static bool is_text(const word *self, const char *text)
{
    return self->n == strlen(text) && memcmp(self->at, text, self->n) == 0;
}

static bool is_entry(const line *self)
{
    return is_text(&self->word[0], "entry") && self->word[1].n > 0 && self->word[2].n == 0 &&
           !self->more;
}

static bool is_state(const line *self)
{
    return is_text(&self->word[0], "state") && self->word[1].n > 0 && self->word[2].n > 0 &&
           self->more;
}

static bool is_update(const line *self)
{
    return is_text(&self->word[0], "update") && self->word[1].n > 0 && self->word[2].n > 0 &&
           !self->more;
}

bool mpl_text_has_entries(const char *data, size_t size)
{
    char *at = (char *)(uintptr_t)data, *end = at + size;

    while (at < end) {
        line l = line_at(at, end);

        if (is_entry(&l))
            return true;
        at = l.end + 1;
    }
    return false;
}

static void blank(char *from, const char *to)
{
    memset(from, ' ', (size_t)(to - from));
}

void mpl_text_keep_entry(char *data, size_t size, const char *entry)
{
    char *at = data, *end = data + size;
    bool kept = true;

    while (at < end) {
        line l = line_at(at, end);

        if (is_entry(&l))
            kept = is_text(&l.word[1], entry);
        if (!kept || is_entry(&l)) {
            blank(l.begin, l.end);
        } else if (is_state(&l)) {
            memcpy(l.word[0].at, "input", 5);
        } else if (is_update(&l)) {
            memcpy(l.word[0].at, "output", 6);
            blank(l.word[0].at + 6, l.word[2].at - (l.word[2].at[-1] == '"'));
        }
        at = l.end + 1;
    }
}

static mpl_status __attribute__((format(printf, 4, 5)))
refuse_at(mpl_ctx *ctx, const char *path, uint32_t number, const char *format, ...)
{
    char why[300];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return MPL_REFUSE(ctx, "%s:%u: %s", path, number, why);
}

static mpl_status add_name(mpl_ctx *ctx, char ***list, uint32_t *n, const word *w)
{
    char *name = NULL;

    MPL_PASS(mpl_realloc_bytes(ctx, (void **)list, *n, (size_t)*n + 1, sizeof **list));
    MPL_PASS(mpl_new(ctx, name, w->n + 1)); /* last: what follows cannot fail */
    memcpy(name, w->at, w->n);
    (*list)[(*n)++] = name;
    return MPL_OK;
}

static uint32_t find_name(char *const *list, uint32_t n, const word *w)
{
    uint32_t i = 0;

    while (i < n && !is_text(w, list[i]))
        i++;
    return i;
}

static mpl_status take_update(mpl_ctx *ctx, const char *path, uint32_t number, const line *l,
                              mpl_text_entries *out)
{
    uint32_t s = find_name(out->state, out->n_states, &l->word[1]);
    char ***update = out->n_entries > 0 ? &out->update[out->n_entries - 1] : NULL;
    word w = l->word[2];

    if (update == NULL)
        return refuse_at(ctx, path, number, "an update stands in an entry");
    if (s == out->n_states)
        return refuse_at(ctx, path, number, "no state '%.*s' is declared above the entries",
                         (int)mpl_min_u64(l->word[1].n, 60), l->word[1].at);
    if (*update == NULL)
        MPL_PASS(mpl_new(ctx, *update, out->n_states));
    if ((*update)[s] != NULL)
        return refuse_at(ctx, path, number, "state '%.60s' is updated twice in one entry",
                         out->state[s]);
    MPL_PASS(mpl_new(ctx, (*update)[s], w.n + 1));
    memcpy((*update)[s], w.at, w.n);
    return MPL_OK;
}

static mpl_status take_line(mpl_ctx *ctx, const char *path, uint32_t number, const line *l,
                            mpl_text_entries *out)
{
    if (is_entry(l)) {
        if (find_name(out->entry, out->n_entries, &l->word[1]) < out->n_entries)
            return refuse_at(ctx, path, number, "a second entry '%.*s'",
                             (int)mpl_min_u64(l->word[1].n, 60), l->word[1].at);
        MPL_PASS(mpl_realloc_bytes(ctx, (void **)&out->update, out->n_entries,
                                   (size_t)out->n_entries + 1, sizeof *out->update));
        out->update[out->n_entries] = NULL;
        return add_name(ctx, &out->entry, &out->n_entries, &l->word[1]);
    }
    if (is_state(l)) {
        if (out->n_entries > 0)
            return refuse_at(ctx, path, number, "states are declared above the entries");
        return add_name(ctx, &out->state, &out->n_states, &l->word[1]);
    }
    return is_update(l) ? take_update(ctx, path, number, l, out) : MPL_OK;
}

mpl_status mpl_text_entries_read_memory(mpl_ctx *ctx, const char *path, const char *data,
                                        size_t size, mpl_text_entries *out)
{
    mpl_status st = MPL_OK;
    uint32_t number = 1;

    *out = (mpl_text_entries){0};
    for (const char *at = data; at < data + size; number++) {
        line l = line_at((char *)(uintptr_t)at, data + size);

        MPL_TRY(take_line(ctx, path, number, &l, out));
        at = l.end + 1;
    }
out:
    if (st != MPL_OK)
        mpl_text_entries_fini(ctx, out);
    return st;
}

mpl_status mpl_text_entries_read(mpl_ctx *ctx, const char *path, mpl_text_entries *out)
{
    mpl_status st = MPL_OK;
    char *data = NULL;
    size_t size;

    MPL_TRY(mpl_file_read(ctx, path, &data, &size));
    MPL_TRY(mpl_text_entries_read_memory(ctx, path, data, size, out));
out:
    mpl_free(ctx, data);
    return st;
}

void mpl_text_entries_fini(mpl_ctx *ctx, mpl_text_entries *entries)
{
    for (uint32_t i = 0; i < entries->n_entries; i++) {
        for (uint32_t s = 0; entries->update[i] != NULL && s < entries->n_states; s++)
            mpl_free(ctx, entries->update[i][s]);
        mpl_free_each(ctx, entries->entry[i], entries->update[i]);
    }
    for (uint32_t s = 0; s < entries->n_states; s++)
        mpl_free(ctx, entries->state[s]);
    mpl_free_each(ctx, entries->entry, entries->state, entries->update);
    *entries = (mpl_text_entries){0};
}
