/* pickle.c -- the part of Python's pickle format that plain data needs.
 *
 * Source   Python, Lib/pickletools.py: what each opcode of protocols 2 to 5 does to a stack and a
 *          memo. Only those that push, collect and remember plain data are here; there is nothing
 *          that could look up a name or call it.
 * Safe     A container takes items only until it is in another one or is fetched from the memo, so
 *          none can hold itself; their depth is counted, since jansson frees them recursively. The
 *          memo is filled in order from 0, as Python's picklers do, so a small file needs little
 *          memory. */
#include "planners/import/json/pickle.h"

enum { DEPTH = 64 };

/* A value on the stack; NULL: a mark. */
typedef struct entry {
    json_t *value;
    uint32_t depth; /* of containers in each other */
    uint32_t memo;  /* 1 + where the memo has it as open; 0: nowhere */
    bool open;      /* a container that still takes items */
} entry;

typedef struct slot {
    json_t *value;
    uint32_t depth;
    bool open; /* the stack has it, at `at`, and it still takes items */
    size_t at;
} slot;

typedef struct pickle {
    mpl_ctx *ctx;
    const char *path;
    const unsigned char *text;
    size_t at, size, begin; /* begin: of the opcode being read */
    entry *stack;
    slot *memo;
    size_t n, cap, n_memo, memo_cap;
} pickle;

#define REFUSE(p, what, ...)                                                                       \
    MPL_REFUSE((p)->ctx, "%.200s: pickle, byte %zu: " what, (p)->path, (p)->begin, ##__VA_ARGS__)

bool mpl_pickle_is(const char *text, size_t size)
{
    return size >= 2 && (unsigned char)text[0] == 0x80 && text[1] >= 2 && text[1] <= 5;
}

/* ---- bytes ---- */

static mpl_status take(pickle *p, uint64_t n, const unsigned char **bytes)
{
    if (n > p->size - p->at)
        return REFUSE(p, "the file is cut: %" PRIu64 " bytes should follow", n);
    *bytes = p->text + p->at;
    p->at += n;
    return MPL_OK;
}

/* A number of n bytes, the lowest first. */
static mpl_status take_number(pickle *p, size_t n, uint64_t *out)
{
    const unsigned char *bytes = NULL;

    MPL_PASS(take(p, n, &bytes));
    *out = 0;
    for (size_t i = 0; i < n; i++)
        *out |= (uint64_t)bytes[i] << 8 * i;
    return MPL_OK;
}

/* ---- the stack and the memo ---- */

/* Takes ownership of the value, NULL: no memory. */
static mpl_status push(pickle *p, json_t *value, bool open)
{
    mpl_status st = value != NULL ? mpl_reserve(p->ctx, p->stack, p->cap, p->n + 1)
                                  : mpl_json_no_memory(p->ctx);

    if (st == MPL_OK)
        p->stack[p->n++] = (entry){value, open, 0, open};
    else
        json_decref(value);
    return st;
}

static mpl_status push_mark(pickle *p)
{
    MPL_PASS(mpl_reserve(p->ctx, p->stack, p->cap, p->n + 1));
    p->stack[p->n++] = (entry){NULL, 0, 0, false};
    return MPL_OK;
}

/* What leaves the stack takes no more items. */
static void close_entry(pickle *p, const entry *e)
{
    if (e->memo > 0)
        p->memo[e->memo - 1] = (slot){e->value, e->depth, false, 0};
}

/* The last n entries are values, on top of a container that is open if `kind` is not JSON_NULL. */
static mpl_status need(pickle *p, size_t n, json_type kind)
{
    size_t all = n + (kind != JSON_NULL);
    bool there = p->n >= all;

    for (size_t i = 0; there && i < all; i++)
        there = p->stack[p->n - 1 - i].value != NULL;
    if (!there)
        return REFUSE(p, "too little on the stack");
    if (kind != JSON_NULL &&
        (!p->stack[p->n - all].open || json_typeof(p->stack[p->n - all].value) != kind))
        return REFUSE(p, "items for what is no new %s, or holds itself",
                      kind == JSON_ARRAY ? "list" : "dict");
    return MPL_OK;
}

/* Entries above the last mark, whose place is *mark. */
static mpl_status find_mark(pickle *p, size_t *mark)
{
    for (*mark = p->n; *mark > 0 && p->stack[*mark - 1].value != NULL;)
        --*mark;
    return *mark > 0 ? MPL_OK : REFUSE(p, "no mark on the stack");
}

/* The entry goes into the container. */
static mpl_status insert(pickle *p, entry *into, entry *e, const entry *key)
{
    int failed;

    if (e->depth + 1 > DEPTH)
        return REFUSE(p, "more than %d objects in each other", DEPTH);
    if (key != NULL && !json_is_string(key->value))
        return REFUSE(p, "the key of a dict is no text");
    into->depth = e->depth + 1 > into->depth ? e->depth + 1 : into->depth;
    close_entry(p, e);
    failed = key != NULL ? json_object_set(into->value, json_string_value(key->value), e->value)
                         : json_array_append(into->value, e->value);
    return failed == 0 ? MPL_OK : mpl_json_no_memory(p->ctx);
}

static void drop(pickle *p, size_t n)
{
    for (; p->n > n; p->n--) {
        close_entry(p, &p->stack[p->n - 1]);
        json_decref(p->stack[p->n - 1].value);
    }
}

/* The last n entries become items, or pairs of key and value, of the container below them, which
 * itself is below a mark if there is one. */
static mpl_status collect(pickle *p, size_t n, bool marked, json_type kind)
{
    size_t first = p->n - n;
    entry *into;

    if (marked) { /* the mark is between: move it away to see the container */
        for (size_t i = first - 1; i + 1 < p->n; i++)
            p->stack[i] = p->stack[i + 1];
        p->n--, first--;
    }
    MPL_PASS(need(p, n, kind));
    into = &p->stack[first - 1];
    if (kind == JSON_OBJECT && n % 2 != 0)
        return REFUSE(p, "a key without its value");
    for (size_t i = first; i < p->n; i += kind == JSON_OBJECT ? 2 : 1)
        if (kind == JSON_OBJECT)
            MPL_PASS(insert(p, into, &p->stack[i + 1], &p->stack[i]));
        else
            MPL_PASS(insert(p, into, &p->stack[i], NULL));
    drop(p, first);
    return MPL_OK;
}

static mpl_status collect_marked(pickle *p, json_type kind)
{
    size_t mark = 0;

    MPL_PASS(find_mark(p, &mark));
    return collect(p, p->n - mark, true, kind);
}

/* The last n entries become a list that takes no more. */
static mpl_status make_tuple(pickle *p, size_t n, bool marked)
{
    entry *first, made = {0};

    MPL_PASS(need(p, n, JSON_NULL));
    MPL_PASS(push(p, json_array(), true));
    made = p->stack[--p->n];
    first = &p->stack[p->n - n];
    for (size_t i = 0; i < n; i++) {
        mpl_status st = insert(p, &made, &first[i], NULL);

        if (st != MPL_OK) {
            json_decref(made.value);
            return st;
        }
    }
    drop(p, p->n - n - marked);
    made.open = false;
    p->stack[p->n++] = made;
    return MPL_OK;
}

static mpl_status make_marked_tuple(pickle *p)
{
    size_t mark = 0;

    MPL_PASS(find_mark(p, &mark));
    return make_tuple(p, p->n - mark, true);
}

static mpl_status put(pickle *p, uint64_t index)
{
    entry *top;

    MPL_PASS(need(p, 1, JSON_NULL));
    top = &p->stack[p->n - 1];
    if (index != p->n_memo || index >= MPL_NONE - 1 || top->memo > 0)
        return REFUSE(p, "place %" PRIu64 " of the memo, where %zu is next", index, p->n_memo);
    MPL_PASS(mpl_reserve(p->ctx, p->memo, p->memo_cap, p->n_memo + 1));
    p->memo[p->n_memo++] = (slot){json_incref(top->value), top->depth, top->open, p->n - 1};
    top->memo = top->open ? (uint32_t)p->n_memo : 0;
    return MPL_OK;
}

static mpl_status get(pickle *p, uint64_t index)
{
    slot *s = index < p->n_memo ? &p->memo[index] : NULL;

    if (s == NULL)
        return REFUSE(p, "place %" PRIu64 " of the memo is empty", index);
    if (s->open) {
        s->open = p->stack[s->at].open = false;
        s->depth = p->stack[s->at].depth;
    }
    MPL_PASS(push(p, json_incref(s->value), false));
    p->stack[p->n - 1].depth = s->depth;
    return MPL_OK;
}

/* ---- opcodes ---- */

static mpl_status push_text(pickle *p, size_t n_length)
{
    const unsigned char *bytes = NULL;
    uint64_t n = 0;
    json_t *text;

    MPL_PASS(take_number(p, n_length, &n));
    MPL_PASS(take(p, n, &bytes));
    if ((text = json_stringn((const char *)bytes, n)) == NULL)
        return REFUSE(p, "a text that is no UTF-8");
    return push(p, text, false);
}

/* A whole number of n bytes with a sign, the lowest first. */
static mpl_status push_long(pickle *p, size_t n_length)
{
    const unsigned char *bytes = NULL;
    uint64_t n = 0, value = 0;

    MPL_PASS(take_number(p, n_length, &n));
    if (n > 9)
        return REFUSE(p, "a number of %" PRIu64 " bytes; 8 are the most", n);
    MPL_PASS(take(p, n, &bytes));
    if (n == 9 && bytes[8] != (bytes[7] & 0x80 ? 0xff : 0))
        return REFUSE(p, "a number of more than 8 bytes");
    for (size_t i = 0; i < n && i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    if (n > 0 && n < 8 && bytes[n - 1] & 0x80)
        value |= UINT64_MAX << 8 * n;
    return push(p, json_integer((int64_t)value), false);
}

static mpl_status push_float(pickle *p)
{
    const unsigned char *bytes = NULL;
    uint64_t bits = 0;
    double value;

    MPL_PASS(take(p, 8, &bytes));
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&value, &bits, sizeof value);
    return push(p, bits << 1 >= 0x7ffULL << 53 ? json_null() : json_real(value), false);
}

static mpl_status push_int(pickle *p, size_t n)
{
    uint64_t value = 0;

    MPL_PASS(take_number(p, n, &value));
    return push(p, json_integer(n == 4 ? (int32_t)(uint32_t)value : (int64_t)value), false);
}

/* The name of an opcode that looks up or calls code; NULL: no such opcode. */
static const char *calls_code(unsigned char op)
{
    static const struct {
        unsigned char op;
        const char *name;
    } table[] = {
        {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'i', "INST"},
        {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {'b', "BUILD"},
        {'P', "PERSID"}, {'Q', "BINPERSID"},     {0x82, "EXT1"},      {0x83, "EXT2"},
        {0x84, "EXT4"},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op)
            return table[i].name;
    return NULL;
}

static mpl_status refuse_opcode(pickle *p, unsigned char op)
{
    if (calls_code(op) != NULL)
        return REFUSE(
            p,
            "%s would run code, and memplan runs none of a pickle; it takes dicts, lists, "
            "tuples, texts and numbers",
            calls_code(op));
    return REFUSE(p, "opcode 0x%02x is none of plain data", op);
}

static mpl_status remember(pickle *p, unsigned char op)
{
    uint64_t index = p->n_memo;

    if (op != 0x94)
        MPL_PASS(take_number(p, op == 'q' || op == 'h' ? 1 : 4, &index));
    return op == 'h' || op == 'j' ? get(p, index) : put(p, index);
}

static mpl_status skip(pickle *p, size_t n)
{
    const unsigned char *bytes = NULL;

    return take(p, n, &bytes);
}

static mpl_status step(pickle *p, unsigned char op)
{
    switch (op) {
    case 0x80:
        return skip(p, 1); /* PROTO */
    case 0x95:
        return skip(p, 8); /* FRAME */
    case 'N':
        return push(p, json_null(), false);
    case 0x88:
        return push(p, json_true(), false);
    case 0x89:
        return push(p, json_false(), false);
    case 'J':
        return push_int(p, 4);
    case 'K':
        return push_int(p, 1);
    case 'M':
        return push_int(p, 2);
    case 0x8a:
        return push_long(p, 1);
    case 0x8b:
        return push_long(p, 4);
    case 'G':
        return push_float(p);
    case 0x8c:
        return push_text(p, 1);
    case 'X':
        return push_text(p, 4);
    case 0x8d:
        return push_text(p, 8);
    case ']':
        return push(p, json_array(), true);
    case '}':
        return push(p, json_object(), true);
    case '(':
        return push_mark(p);
    case 'a':
        return collect(p, p->n > 0, false, JSON_ARRAY);
    case 's':
        return collect(p, p->n > 1 ? 2 : p->n, false, JSON_OBJECT);
    case 'e':
        return collect_marked(p, JSON_ARRAY);
    case 'u':
        return collect_marked(p, JSON_OBJECT);
    case ')':
        return make_tuple(p, 0, false);
    case 't':
        return make_marked_tuple(p);
    case 0x85:
        return make_tuple(p, 1, false);
    case 0x86:
        return make_tuple(p, 2, false);
    case 0x87:
        return make_tuple(p, 3, false);
    case 'q':
    case 'r':
    case 0x94:
    case 'h':
    case 'j':
        return remember(p, op);
    default:
        return refuse_opcode(p, op);
    }
}

static mpl_status read_all(pickle *p)
{
    const unsigned char *op = NULL;

    for (;;) {
        p->begin = p->at;
        if (p->at == p->size)
            return REFUSE(p, "the file is cut: it should end in STOP");
        MPL_PASS(take(p, 1, &op));
        if (*op == '.')
            break;
        MPL_PASS(step(p, *op));
    }
    MPL_PASS(need(p, 1, JSON_NULL));
    return p->n == 1 ? MPL_OK : REFUSE(p, "STOP with %zu values on the stack", p->n);
}

mpl_status mpl_pickle_read(mpl_ctx *ctx, const char *path, const char *text, size_t size,
                           json_t **out)
{
    pickle p = {.ctx = ctx, .path = path, .text = (const unsigned char *)text, .size = size};
    mpl_status st = read_all(&p);

    if (st == MPL_OK)
        *out = json_incref(p.stack[0].value);
    drop(&p, 0);
    for (size_t i = 0; i < p.n_memo; i++)
        json_decref(p.memo[i].value);
    mpl_free_each(ctx, p.stack, p.memo);
    return st;
}
