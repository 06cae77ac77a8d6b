/* trace_csv.c -- allocation traces: one event a row, malloc or free, in the order of time.
 *
 *     time,event,id,bytes       also: timestamp, ts, t; action, op, type; ptr, pointer, addr,
 *     0.1,malloc,a,4096         address, handle, buffer; size, nbytes; and alignment or align
 *     0.5,free,a,
 *
 * Source   this project; events also as alloc, allocate, new, a, + and dealloc, deallocate,
 *          release, delete, f, -. Case is ignored.
 * Differs  Times are decimal numbers of any unit; only their order counts, and that of the rows
 *          where they are equal. An id may be allocated again after its free. What is never freed
 *          lives to the end. The bytes of a free are not read. An allocation of 0 bytes is no
 *          buffer.
 * Cost     O(file size + n log n).
 */
#include <strings.h>

#include "graphs/core/text.h"
#include "graphs/io/lists/csv_priv.h"

typedef struct trace {
    mpl_csv_reader *in;
    uint64_t n_events, seconds, parts; /* the last time: before and behind its point */
    mpl_csv_field *id;                 /* [r->n] */
    size_t id_cap;
    uint32_t *slot; /* hash table: latest buffer of an id, plus 1; 0: none */
    size_t n_slots, n_ids;
} trace;

enum { MALLOC, FREE, N_EVENTS };
static const char *const event_names[N_EVENTS][8] = {
    [MALLOC] = {"malloc", "alloc", "allocate", "new", "a", "+", NULL},
    [FREE] = {"free", "dealloc", "deallocate", "release", "delete", "f", "-", NULL}};

static mpl_status read_event(mpl_csv_reader *in, int *event)
{
    mpl_csv_field f = mpl_csv_at(in, COL_event);

    for (*event = 0; *event < N_EVENTS; ++*event)
        for (const char *const *name = event_names[*event]; *name != NULL; name++)
            if (strlen(*name) == f.n && strncasecmp(*name, f.text, f.n) == 0)
                return MPL_OK;
    return MPL_REFUSE(in->ctx, "%s:%u: event '%.*s'; it should be malloc or free", in->path,
                      in->line, mpl_csv_shown(f), f.text);
}

/* "12" or "12.5"; beyond nine digits behind the point times are equal. */
static mpl_status read_time(trace *self)
{
    mpl_csv_reader *in = self->in;
    mpl_csv_field *field = &in->row[in->where[COL_time]], whole = *field;
    const char *point = memchr(field->text, '.', field->n);
    uint64_t seconds, parts = 0;
    bool bad = false;

    if (point != NULL) {
        field->n = (uint32_t)(point - field->text);
        bad = whole.n == field->n + 1;
        for (uint32_t i = 0, n = whole.n - field->n - 1; i < 9 || i < n; i++) {
            char digit = i < n ? point[1 + i] : '0';

            bad = bad || digit < '0' || digit > '9';
            parts = i < 9 ? 10 * parts + (uint64_t)(digit - '0') : parts;
        }
    }
    if (bad)
        return MPL_REFUSE(in->ctx, "%s:%u: time is no decimal number: '%.*s'", in->path, in->line,
                          mpl_csv_shown(whole), whole.text);
    MPL_PASS(mpl_csv_number(in, COL_time, &seconds));
    if (seconds < self->seconds || (seconds == self->seconds && parts < self->parts))
        return MPL_REFUSE(in->ctx,
                          "%s:%u: time goes back to %.*s; the rows should stand in its order",
                          in->path, in->line, mpl_csv_shown(whole), whole.text);
    self->seconds = seconds, self->parts = parts;
    return MPL_OK;
}

/* ---- ids ---- */

/* The slot of an id, or the free one for it. */
static size_t slot_of(const trace *self, mpl_csv_field id)
{
    size_t at = mpl_table_hash(0, id.text, id.n) & (self->n_slots - 1);

    while (self->slot[at] != 0 && (self->id[self->slot[at] - 1].n != id.n ||
                                   memcmp(self->id[self->slot[at] - 1].text, id.text, id.n) != 0))
        at = (at + 1) & (self->n_slots - 1);
    return at;
}

static mpl_status grow_table(trace *self)
{
    trace more = *self;

    if (2 * self->n_ids < self->n_slots)
        return MPL_OK;
    more.n_slots = self->n_slots > 0 ? 2 * self->n_slots : 64;
    MPL_PASS(mpl_new(self->in->ctx, more.slot, more.n_slots));
    for (size_t i = 0; i < self->n_slots; i++)
        if (self->slot[i] != 0)
            more.slot[slot_of(&more, self->id[self->slot[i] - 1])] = self->slot[i];
    mpl_free(self->in->ctx, self->slot);
    *self = more;
    return MPL_OK;
}

/* ---- events ---- */

static mpl_status allocate(trace *self, mpl_csv_field id)
{
    mpl_csv_reader *in = self->in;
    uint32_t b = in->n, *slot;

    MPL_PASS(grow_table(self));
    MPL_PASS(mpl_reserve(in->ctx, self->id, self->id_cap, (size_t)b + 1));
    slot = &self->slot[slot_of(self, id)];
    if (*slot != 0 && in->upper[*slot - 1] == UINT64_MAX)
        return MPL_REFUSE(in->ctx, "%s:%u: malloc of '%.*s', which is alive since line %u",
                          in->path, in->line, mpl_csv_shown(id), id.text, in->row_line[*slot - 1]);
    MPL_PASS(mpl_csv_grow(in));
    MPL_PASS(mpl_csv_number(in, COL_size, &in->size[b]));
    MPL_PASS(mpl_csv_align(in));
    in->lower[b] = self->n_events;
    in->upper[b] = UINT64_MAX; /* alive */
    self->id[b] = id;
    self->n_ids += *slot == 0;
    *slot = ++in->n;
    return MPL_OK;
}

static mpl_status release(trace *self, mpl_csv_field id)
{
    mpl_csv_reader *in = self->in;
    uint32_t b = self->n_slots > 0 ? self->slot[slot_of(self, id)] : 0;

    if (b == 0)
        return MPL_REFUSE(in->ctx, "%s:%u: free of '%.*s', which was never allocated", in->path,
                          in->line, mpl_csv_shown(id), id.text);
    if (in->upper[b - 1] != UINT64_MAX)
        return MPL_REFUSE(in->ctx,
                          "%s:%u: free of '%.*s', allocated in line %u, for the second time",
                          in->path, in->line, mpl_csv_shown(id), id.text, in->row_line[b - 1]);
    in->upper[b - 1] = self->n_events;
    return MPL_OK;
}

static mpl_status read_events(trace *self)
{
    mpl_csv_reader *in = self->in;
    mpl_csv_field line;
    int event;

    for (; mpl_csv_next_line(in, &line); self->n_events++) {
        MPL_PASS(mpl_csv_split(in, line));
        MPL_PASS(read_time(self));
        MPL_PASS(read_event(in, &event));
        MPL_PASS(event == MALLOC ? allocate(self, mpl_csv_at(in, COL_id))
                                 : release(self, mpl_csv_at(in, COL_id)));
    }
    return MPL_OK;
}

/* Names are ids; ID@LINE if one is used twice. Buffers without bytes are dropped; those still alive
 * end after the last event. */
static mpl_status finish(trace *self)
{
    mpl_csv_reader *in = self->in;
    uint32_t n = 0;

    for (uint32_t b = 0; b < in->n; b++) {
        char text[100];
        mpl_csv_field name = self->id[b];

        if (in->size[b] == 0)
            continue;
        if (self->n_ids < in->n) {
            name.n = (uint32_t)snprintf(text, sizeof text, "%.*s@%u", mpl_csv_shown(name),
                                        name.text, in->row_line[b]);
            name.text = text;
        }
        in->lower[n] = in->lower[b];
        in->upper[n] = in->upper[b] == UINT64_MAX ? self->n_events : in->upper[b];
        in->size[n] = in->size[b];
        in->align[n] = in->align[b];
        MPL_PASS(mpl_csv_name(in, n++, name));
    }
    in->n = n;
    return MPL_OK;
}

mpl_status mpl_csv_trace(mpl_csv_reader *in)
{
    mpl_status st = MPL_OK;
    trace t = {.in = in};

    MPL_TRY(read_events(&t));
    MPL_TRY(finish(&t));
out:
    mpl_free_each(in->ctx, t.id, t.slot);
    return st;
}
