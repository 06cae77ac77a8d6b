/* states.c -- which inputs and outputs are which state. See entries.h. */
#include "harness/entries/entries.h"

/* One NAME=INPUT:OUTPUT of --shared. */
typedef struct rule {
    char *store, *name, *in, *out;
} rule;

typedef struct matcher {
    mpl_ctx *ctx;
    mpl_entries *entries;
    size_t cap[4];
} matcher;

static mpl_status rule_parse(mpl_ctx *ctx, const char *text, size_t n, rule *r)
{
    char *equal, *colon;

    MPL_PASS(mpl_new(ctx, r->store, n + 1));
    memcpy(r->store, text, n);
    equal = strchr(r->store, '=');
    colon = equal != NULL ? strchr(equal, ':') : NULL;
    if (colon == NULL || equal == r->store || colon == equal + 1 || colon[1] == '\0')
        return MPL_REFUSE(ctx, "--shared: '%.100s' is not NAME=INPUTS:OUTPUTS", r->store);
    *equal = *colon = '\0';
    r->name = r->store, r->in = equal + 1, r->out = colon + 1;
    for (const char *at = r->in; at != NULL; at = at == r->in ? r->out : NULL)
        if (strchr(at, '*') != strrchr(at, '*'))
            return MPL_REFUSE(ctx, "--shared %s: '%.100s' has more than one *", r->name, at);
    if ((strchr(r->in, '*') == NULL) != (strchr(r->out, '*') == NULL))
        return MPL_REFUSE(ctx, "--shared %s: both patterns have a *, or none", r->name);
    return MPL_OK;
}

/* Whether a name matches; *at, *n: what its * stands for. */
static bool matches(const char *pattern, const char *name, const char **at, size_t *n)
{
    const char *star = strchr(pattern, '*');
    size_t before = star != NULL ? (size_t)(star - pattern) : strlen(pattern);
    size_t after = star != NULL ? strlen(star + 1) : 0, length = strlen(name);

    *at = name + before;
    *n = 0;
    if (star == NULL)
        return strcmp(pattern, name) == 0;
    if (length < before + after || strncmp(name, pattern, before) != 0 ||
        strcmp(name + length - after, star + 1) != 0)
        return false;
    *n = length - before - after;
    return true;
}

/* The state with this name, made if there is none. */
static mpl_status find_state(matcher *self, const char *name, uint32_t *out)
{
    mpl_entries *entries = self->entries;

    for (*out = 0; *out < entries->n_states; ++*out)
        if (strcmp(entries->state_name[*out], name) == 0)
            return MPL_OK;
    MPL_PASS(
        mpl_reserve(self->ctx, entries->state_name, self->cap[0], (size_t)entries->n_states + 1));
    MPL_PASS(
        mpl_reserve(self->ctx, entries->state_type, self->cap[1], (size_t)entries->n_states + 1));
    MPL_PASS(
        mpl_reserve(self->ctx, entries->state_shape, self->cap[2], (size_t)entries->n_states + 1));
    MPL_PASS(
        mpl_reserve(self->ctx, entries->state_bytes, self->cap[3], (size_t)entries->n_states + 1));
    entries->state_type[entries->n_states] = MPL_N_TYPES;
    entries->state_shape[entries->n_states] = (mpl_shape){0};
    for (uint32_t i = 0; i < entries->n; i++) {
        mpl_entry *entry = &entries->entry[i];

        MPL_PASS(mpl_realloc_bytes(self->ctx, (void **)&entry->state, entries->n_states,
                                   (size_t)entries->n_states + 1, sizeof *entry->state));
        entry->state[entries->n_states] = (mpl_kept){.before = MPL_NONE, .after = MPL_NONE};
    }
    MPL_PASS(mpl_copy_text(self->ctx, entries->state_name[entries->n_states], name));
    entries->n_states++;
    return MPL_OK;
}

/* The state grows to hold v. */
static mpl_status widen(matcher *self, uint32_t s, const mpl_entry *entry, mpl_value v)
{
    const mpl_graph *g = entry->job.source.graph;
    mpl_shape *whole = &self->entries->state_shape[s];
    const mpl_shape *shape = &g->value_shape[v];

    if (self->entries->state_type[s] == MPL_N_TYPES) {
        self->entries->state_type[s] = g->value_type[v];
        *whole = *shape;
    }
    if (self->entries->state_type[s] != g->value_type[v])
        return MPL_REFUSE(self->ctx, "state '%s' has two types: %s, and %s as '%s' of %s",
                          self->entries->state_name[s], mpl_type_name(self->entries->state_type[s]),
                          mpl_type_name(g->value_type[v]), g->value_name[v], entry->name);
    for (uint32_t i = 0; i < whole->rank && whole->rank == shape->rank; i++)
        whole->dim[i] = shape->dim[i] > whole->dim[i] ? shape->dim[i] : whole->dim[i];
    return MPL_OK;
}

static mpl_status bind_state(matcher *self, mpl_entry *entry, uint32_t s, mpl_value v, bool output)
{
    const mpl_graph *g = entry->job.source.graph;
    mpl_value *to = output ? &entry->state[s].after : &entry->state[s].before;

    for (uint32_t t = 0; !output && t < self->entries->n_states; t++)
        if (entry->state[t].before == v)
            return MPL_REFUSE(self->ctx, "%s: input '%s' is both state '%s' and state '%s'",
                              entry->name, g->value_name[v], self->entries->state_name[t],
                              self->entries->state_name[s]);
    if (*to != MPL_NONE)
        return MPL_REFUSE(self->ctx, "%s: state '%s' is %s '%s' and '%s'; one can be", entry->name,
                          self->entries->state_name[s], output ? "written by" : "read by",
                          g->value_name[*to], g->value_name[v]);
    *to = v;
    return widen(self, s, entry, v);
}

/* Inputs or outputs of all entries that match a pattern. */
static mpl_status match_side(matcher *self, const rule *r, bool output)
{
    const char *pattern = output ? r->out : r->in, *at;
    char name[400];
    bool any = false;
    size_t n;
    uint32_t s;

    for (uint32_t i = 0; i < self->entries->n; i++) {
        mpl_entry *entry = &self->entries->entry[i];
        const mpl_graph *g = entry->job.source.graph;

        for (uint32_t k = 0; k < (output ? g->n_outputs : g->n_inputs); k++) {
            mpl_value v = output ? g->output[k] : g->input[k];

            if (!matches(pattern, g->value_name[v], &at, &n))
                continue;
            snprintf(name, sizeof name, "%s%s%.*s", r->name, n > 0 ? "." : "", (int)n, at);
            MPL_PASS(find_state(self, name, &s));
            MPL_PASS(bind_state(self, entry, s, v, output));
            any = true;
        }
    }
    if (!any)
        return MPL_REFUSE(self->ctx, "--shared %s: no graph has an %s '%s'", r->name,
                          output ? "output" : "input", pattern);
    return MPL_OK;
}

static mpl_status match_rules(matcher *self, const char *text)
{
    mpl_status st = MPL_OK;
    rule r = {0};

    for (const char *at = text; at != NULL;) {
        size_t n = strcspn(at, ",");

        MPL_TRY(rule_parse(self->ctx, at, n, &r));
        MPL_TRY(match_side(self, &r, false));
        MPL_TRY(match_side(self, &r, true));
        mpl_free(self->ctx, r.store);
        r.store = NULL;
        at = at[n] == ',' ? at + n + 1 : NULL;
    }
out:
    mpl_free(self->ctx, r.store);
    return st;
}

/* The states that a text with entries declares. */
static mpl_status match_text(matcher *self)
{
    mpl_status st = MPL_OK;
    mpl_text_entries text = {0};

    MPL_TRY(mpl_text_entries_read(self->ctx, self->entries->graph[0], &text));
    for (uint32_t s = 0; s < text.n_states; s++)
        for (uint32_t i = 0, id; i < text.n_entries; i++) {
            mpl_entry *entry = &self->entries->entry[i];
            const char *update = text.update[i] != NULL ? text.update[i][s] : NULL;

            MPL_TRY(find_state(self, text.state[s], &id));
            MPL_TRY(bind_state(self, entry, id,
                               mpl_graph_find(entry->job.source.graph, text.state[s]), false));
            if (update != NULL)
                MPL_TRY(bind_state(self, entry, id, mpl_graph_find(entry->job.source.graph, update),
                                   true));
        }
out:
    mpl_text_entries_fini(self->ctx, &text);
    return st;
}

/* Inputs and outputs may have fewer rows than the state along one axis, the same for all. */
static mpl_status check_shape(const matcher *self, uint32_t s, const mpl_entry *entry, mpl_value v,
                              uint32_t *axis)
{
    const mpl_shape *whole = &self->entries->state_shape[s];
    char text[2][200];
    bool fits = v == MPL_NONE || entry->job.source.graph->value_shape[v].rank == whole->rank;

    for (uint32_t i = 0; v != MPL_NONE && fits && i < whole->rank; i++) {
        if (entry->job.source.graph->value_shape[v].dim[i] == whole->dim[i])
            continue;
        fits = *axis == MPL_NONE || *axis == i;
        *axis = i;
    }
    if (fits)
        return MPL_OK;
    return MPL_REFUSE(
        self->ctx,
        "state '%s' has two shapes: '%s' of %s is %s, others reach %s; along one axis "
        "they may differ",
        self->entries->state_name[s], entry->job.source.graph->value_name[v], entry->name,
        mpl_shape_text(&entry->job.source.graph->value_shape[v], text[0]),
        mpl_shape_text(whole, text[1]));
}

mpl_status mpl_entries_match(mpl_ctx *ctx, const mpl_options *options, mpl_entries *entries)
{
    matcher m = {.ctx = ctx, .entries = entries};
    uint64_t count;

    for (uint32_t i = 0; i < options->shared.n; i++)
        MPL_PASS(match_rules(&m, options->shared.item[i]));
    if (entries->is_text)
        MPL_PASS(match_text(&m));
    for (uint32_t s = 0; s < entries->n_states; s++) {
        uint32_t axis = MPL_NONE;

        for (uint32_t i = 0; i < entries->n; i++) {
            mpl_kept *kept = &entries->entry[i].state[s];

            MPL_PASS(check_shape(&m, s, &entries->entry[i], kept->before, &axis));
            MPL_PASS(check_shape(&m, s, &entries->entry[i], kept->after, &axis));
            kept->name = entries->state_name[s];
            kept->shape = entries->state_shape[s];
        }
        if (axis != MPL_NONE && mpl_type_bits(entries->state_type[s]) < 8)
            return MPL_REFUSE(ctx, "state '%s' of %s must have one shape: its rows share bytes",
                              entries->state_name[s], mpl_type_name(entries->state_type[s]));
        if (!mpl_shape_count(&entries->state_shape[s], &count) || count == 0 ||
            !mpl_type_size(entries->state_type[s], count, &entries->state_bytes[s]))
            return MPL_REFUSE(ctx, "state '%s' has no bytes, or more than 2^63",
                              entries->state_name[s]);
    }
    return MPL_OK;
}
