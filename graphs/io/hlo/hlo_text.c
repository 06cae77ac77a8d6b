/* hlo_text.c -- words, numbers and names of HLO text. See hlo_priv.h. */
#include <stdarg.h>

#include "graphs/io/hlo/hlo_priv.h"

/* ---- text ---- */

mpl_status hlo_refuse(const hlo_module *m, const char *at, const char *format, ...)
{
    char why[400];
    uint32_t line = 1;
    va_list args;

    for (const char *s = m->begin; s < at && s < m->end; s++)
        line += *s == '\n';
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return MPL_REFUSE(m->ctx, "%s:%u: %s", m->path, line, why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *hlo_skip(const hlo_module *m, const char *s)
{
    for (;;) {
        while (s < m->end && is_blank(*s))
            s++;
        if (m->end - s >= 2 && s[0] == '/' && s[1] == '/') {
            while (s < m->end && *s != '\n')
                s++;
        } else if (m->end - s >= 2 && s[0] == '/' && s[1] == '*') {
            for (s += 2; m->end - s >= 2 && !(s[0] == '*' && s[1] == '/');)
                s++;
            s = m->end - s >= 2 ? s + 2 : m->end;
        } else {
            return s;
        }
    }
}

bool hlo_number(const hlo_module *m, const char **at, int64_t *out)
{
    const char *s = *at;
    bool minus = hlo_at(m, s, '-');
    int64_t number = 0;

    s += minus;
    if (s >= m->end || *s < '0' || *s > '9')
        return false;
    for (; s < m->end && *s >= '0' && *s <= '9'; s++) {
        if (number > (INT64_MAX - (*s - '0')) / 10)
            return false;
        number = 10 * number + (*s - '0');
    }
    *at = s;
    *out = minus ? -number : number;
    return true;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

hlo_text hlo_take_name(const hlo_module *m, const char **at)
{
    const char *s = *at + hlo_at(m, *at, '%');
    hlo_text name = {s, 0};

    while (s < m->end && is_name_char(*s))
        s++;
    name.n = (uint32_t)(s - name.at);
    *at = s;
    return name;
}

/* Behind a string that begins at s. */
static const char *skip_string(const hlo_module *m, const char *s)
{
    for (s++; s < m->end && *s != '"'; s++)
        s += *s == '\\' && s + 1 < m->end;
    return s < m->end ? s + 1 : s;
}

const char *hlo_skip_brackets(const hlo_module *m, const char *s)
{
    uint32_t depth = 0;

    while (s < m->end) {
        if (*s == '"') {
            s = skip_string(m, s);
            continue;
        }
        if (m->end - s >= 2 && s[0] == '/' && (s[1] == '/' || s[1] == '*')) {
            s = hlo_skip(m, s);
            continue;
        }
        depth += *s == '(' || *s == '{' || *s == '[';
        depth -= *s == ')' || *s == '}' || *s == ']';
        s++;
        if (depth == 0)
            break;
    }
    return s;
}

hlo_text hlo_take_value(const hlo_module *m, const char **at)
{
    const char *s = *at, *begin = s;

    while (s < m->end && !is_blank(*s) && *s != ',' && *s != ')' && *s != '}' && *s != ']')
        s = *s == '"'                             ? skip_string(m, s)
            : *s == '(' || *s == '{' || *s == '[' ? hlo_skip_brackets(m, s)
                                                  : s + 1;
    *at = s;
    return (hlo_text){begin, (uint32_t)(s - begin)};
}

/* ---- names ---- */

size_t hlo_slot_of(const hlo_module *m, uint32_t comp, hlo_text name)
{
    size_t at = (size_t)mpl_table_hash(comp, name.at, name.n) & (m->n_slots - 1);

    for (; m->slot[at] != MPL_NONE; at = (at + 1) & (m->n_slots - 1)) {
        uint32_t id = m->slot[at];
        bool is_comp = (id & HLO_COMPUTATION) != 0;
        hlo_text other =
            is_comp ? m->comp.item[id & ~HLO_COMPUTATION].name : m->instr.item[id].name;
        bool here = is_comp ? comp == MPL_NONE
                            : comp != MPL_NONE && id >= m->comp.item[comp].instr &&
                                  (comp + 1 == m->comp.n || id < m->comp.item[comp + 1].instr);

        if (here && other.n == name.n && memcmp(other.at, name.at, name.n) == 0)
            break;
    }
    return at;
}

mpl_status hlo_enter(hlo_module *m, uint32_t comp, hlo_text name, uint32_t id)
{
    size_t at = hlo_slot_of(m, comp, name);

    if (m->slot[at] != MPL_NONE)
        return hlo_refuse(m, name.at, "the name '%.*s' stands here twice",
                          (int)(name.n < 100 ? name.n : 100), name.at);
    m->slot[at] = id;
    return MPL_OK;
}

mpl_status hlo_make_table(hlo_module *m)
{
    size_t marks = 2;

    for (const char *s = m->begin; s < m->end; s++)
        marks += *s == '=' || *s == '{';
    for (m->n_slots = 16; m->n_slots < 2 * marks;)
        m->n_slots *= 2;
    MPL_PASS(mpl_new(m->ctx, m->slot, m->n_slots));
    memset(m->slot, 0xff, m->n_slots * sizeof *m->slot);
    return MPL_OK;
}
