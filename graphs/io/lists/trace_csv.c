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
    mpl_csv_reader *r;
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

static mpl_status read_event(mpl_csv_reader *r, int *event)
{
    mpl_csv_field f = mpl_csv_at(r, COL_EVENT);

    for (*event = 0; *event < N_EVENTS; ++*event)
        for (const char *const *name = event_names[*event]; *name != NULL; name++)
            if (strlen(*name) == f.n && strncasecmp(*name, f.text, f.n) == 0)
                return MPL_OK;
    return MPL_REFUSE(r->ctx, "%s:%u: event '%.*s'; it should be malloc or free", r->path, r->line,
                      mpl_csv_shown(f), f.text);
}

/* "12" or "12.5"; beyond nine digits behind the point times are equal. */
static mpl_status read_time(trace *t)
{
    mpl_csv_reader *r = t->r;
    mpl_csv_field *f = &r->row[r->where[COL_TIME]], whole = *f;
    const char *point = memchr(f->text, '.', f->n);
    uint64_t seconds, parts = 0;
    bool bad = false;

    if (point != NULL) {
        f->n = (uint32_t)(point - f->text);
        bad = whole.n == f->n + 1;
        for (uint32_t i = 0, n = whole.n - f->n - 1; i < 9 || i < n; i++) {
            char digit = i < n ? point[1 + i] : '0';

            bad = bad || digit < '0' || digit > '9';
            parts = i < 9 ? 10 * parts + (uint64_t)(digit - '0') : parts;
        }
    }
    if (bad)
        return MPL_REFUSE(r->ctx, "%s:%u: time is no decimal number: '%.*s'", r->path, r->line,
                          mpl_csv_shown(whole), whole.text);
    MPL_PASS(mpl_csv_number(r, COL_TIME, &seconds));
    if (seconds < t->seconds || (seconds == t->seconds && parts < t->parts))
        return MPL_REFUSE(r->ctx,
                          "%s:%u: time goes back to %.*s; the rows should stand in its order",
                          r->path, r->line, mpl_csv_shown(whole), whole.text);
    t->seconds = seconds, t->parts = parts;
    return MPL_OK;
}

/* ---- ids ---- */

/* The slot of an id, or the free one for it. */
static size_t slot_of(const trace *t, mpl_csv_field id)
{
    size_t at = mpl_table_hash(0, id.text, id.n) & (t->n_slots - 1);

    while (t->slot[at] != 0 && (t->id[t->slot[at] - 1].n != id.n ||
                                memcmp(t->id[t->slot[at] - 1].text, id.text, id.n) != 0))
        at = (at + 1) & (t->n_slots - 1);
    return at;
}

static mpl_status grow_table(trace *t)
{
    trace more = *t;

    if (2 * t->n_ids < t->n_slots)
        return MPL_OK;
    more.n_slots = t->n_slots > 0 ? 2 * t->n_slots : 64;
    MPL_PASS(mpl_new(t->r->ctx, more.slot, more.n_slots));
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slot[i] != 0)
            more.slot[slot_of(&more, t->id[t->slot[i] - 1])] = t->slot[i];
    mpl_free(t->r->ctx, t->slot);
    *t = more;
    return MPL_OK;
}

/* ---- events ---- */

static mpl_status allocate(trace *t, mpl_csv_field id)
{
    mpl_csv_reader *r = t->r;
    uint32_t b = r->n, *slot;

    MPL_PASS(grow_table(t));
    MPL_PASS(mpl_reserve(r->ctx, t->id, t->id_cap, (size_t)b + 1));
    slot = &t->slot[slot_of(t, id)];
    if (*slot != 0 && r->upper[*slot - 1] == UINT64_MAX)
        return MPL_REFUSE(r->ctx, "%s:%u: malloc of '%.*s', which is alive since line %u", r->path,
                          r->line, mpl_csv_shown(id), id.text, r->row_line[*slot - 1]);
    MPL_PASS(mpl_csv_grow(r));
    MPL_PASS(mpl_csv_number(r, COL_SIZE, &r->size[b]));
    MPL_PASS(mpl_csv_align(r));
    r->lower[b] = t->n_events;
    r->upper[b] = UINT64_MAX; /* alive */
    t->id[b] = id;
    t->n_ids += *slot == 0;
    *slot = ++r->n;
    return MPL_OK;
}

static mpl_status release(trace *t, mpl_csv_field id)
{
    mpl_csv_reader *r = t->r;
    uint32_t b = t->n_slots > 0 ? t->slot[slot_of(t, id)] : 0;

    if (b == 0)
        return MPL_REFUSE(r->ctx, "%s:%u: free of '%.*s', which was never allocated", r->path,
                          r->line, mpl_csv_shown(id), id.text);
    if (r->upper[b - 1] != UINT64_MAX)
        return MPL_REFUSE(r->ctx,
                          "%s:%u: free of '%.*s', allocated in line %u, for the second time",
                          r->path, r->line, mpl_csv_shown(id), id.text, r->row_line[b - 1]);
    r->upper[b - 1] = t->n_events;
    return MPL_OK;
}

static mpl_status read_events(trace *t)
{
    mpl_csv_reader *r = t->r;
    mpl_csv_field line;
    int event;

    for (; mpl_csv_next_line(r, &line); t->n_events++) {
        MPL_PASS(mpl_csv_split(r, line));
        MPL_PASS(read_time(t));
        MPL_PASS(read_event(r, &event));
        MPL_PASS(event == MALLOC ? allocate(t, mpl_csv_at(r, COL_ID))
                                 : release(t, mpl_csv_at(r, COL_ID)));
    }
    return MPL_OK;
}

/* Names are ids; ID@LINE if one is used twice. Buffers without bytes are dropped; those still alive
 * end after the last event. */
static mpl_status finish(trace *t)
{
    mpl_csv_reader *r = t->r;
    uint32_t n = 0;

    for (uint32_t b = 0; b < r->n; b++) {
        char text[100];
        mpl_csv_field name = t->id[b];

        if (r->size[b] == 0)
            continue;
        if (t->n_ids < r->n) {
            name.n = (uint32_t)snprintf(text, sizeof text, "%.*s@%u", mpl_csv_shown(name),
                                        name.text, r->row_line[b]);
            name.text = text;
        }
        r->lower[n] = r->lower[b];
        r->upper[n] = r->upper[b] == UINT64_MAX ? t->n_events : r->upper[b];
        r->size[n] = r->size[b];
        r->align[n] = r->align[b];
        MPL_PASS(mpl_csv_name(r, n++, name));
    }
    r->n = n;
    return MPL_OK;
}

mpl_status mpl_csv_trace(mpl_csv_reader *r)
{
    mpl_status st = MPL_OK;
    trace t = {.r = r};

    MPL_TRY(read_events(&t));
    MPL_TRY(finish(&t));
out:
    mpl_free_each(r->ctx, t.id, t.slot);
    return st;
}
