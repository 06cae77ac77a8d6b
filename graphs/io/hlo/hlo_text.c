/* hlo_text.c -- words, numbers and names of HLO text. See hlo_priv.h. */
#include <stdarg.h>

#include "graphs/io/hlo/hlo_priv.h"

/* ---- text ---- */

mpl_status hlo_refuse(const hlo_module *module, const char *at, const char *format, ...)
{
    char why[400];
    uint32_t line = 1;
    va_list args;

    for (const char *s = module->begin; s < at && s < module->end; s++)
        line += *s == '\n';
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return MPL_REFUSE(module->ctx, "%s:%u: %s", module->path, line, why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *hlo_skip(const hlo_module *module, const char *s)
{
    for (;;) {
        while (s < module->end && is_blank(*s))
            s++;
        if (module->end - s >= 2 && s[0] == '/' && s[1] == '/') {
            while (s < module->end && *s != '\n')
                s++;
        } else if (module->end - s >= 2 && s[0] == '/' && s[1] == '*') {
            for (s += 2; module->end - s >= 2 && !(s[0] == '*' && s[1] == '/');)
                s++;
            s = module->end - s >= 2 ? s + 2 : module->end;
        } else {
            return s;
        }
    }
}

bool hlo_number(const hlo_module *module, const char **at, int64_t *out)
{
    const char *s = *at;
    bool minus = hlo_at(module, s, '-');
    int64_t number = 0;

    s += minus;
    if (s >= module->end || *s < '0' || *s > '9')
        return false;
    for (; s < module->end && *s >= '0' && *s <= '9'; s++) {
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

hlo_text hlo_take_name(const hlo_module *module, const char **at)
{
    const char *s = *at + hlo_at(module, *at, '%');
    hlo_text name = {s, 0};

    while (s < module->end && is_name_char(*s))
        s++;
    name.n = (uint32_t)(s - name.at);
    *at = s;
    return name;
}

/* Behind a string that begins at s. */
static const char *skip_string(const hlo_module *module, const char *s)
{
    for (s++; s < module->end && *s != '"'; s++)
        s += *s == '\\' && s + 1 < module->end;
    return s < module->end ? s + 1 : s;
}

const char *hlo_skip_brackets(const hlo_module *module, const char *s)
{
    uint32_t depth = 0;

    while (s < module->end) {
        if (*s == '"') {
            s = skip_string(module, s);
            continue;
        }
        if (module->end - s >= 2 && s[0] == '/' && (s[1] == '/' || s[1] == '*')) {
            s = hlo_skip(module, s);
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

hlo_text hlo_take_value(const hlo_module *module, const char **at)
{
    const char *s = *at, *begin = s;

    while (s < module->end && !is_blank(*s) && *s != ',' && *s != ')' && *s != '}' && *s != ']')
        s = *s == '"'                             ? skip_string(module, s)
            : *s == '(' || *s == '{' || *s == '[' ? hlo_skip_brackets(module, s)
                                                  : s + 1;
    *at = s;
    return (hlo_text){begin, (uint32_t)(s - begin)};
}

/* ---- names ---- */

size_t hlo_slot_of(const hlo_module *module, uint32_t comp, hlo_text name)
{
    size_t at = (size_t)mpl_table_hash(comp, name.at, name.n) & (module->n_slots - 1);

    for (; module->slot[at] != MPL_NONE; at = (at + 1) & (module->n_slots - 1)) {
        uint32_t id = module->slot[at];
        bool is_comp = (id & HLO_COMPUTATION) != 0;
        hlo_text other =
            is_comp ? module->comp.item[id & ~HLO_COMPUTATION].name : module->instr.item[id].name;
        bool here =
            is_comp ? comp == MPL_NONE
                    : comp != MPL_NONE && id >= module->comp.item[comp].instr &&
                          (comp + 1 == module->comp.n || id < module->comp.item[comp + 1].instr);

        if (here && other.n == name.n && memcmp(other.at, name.at, name.n) == 0)
            break;
    }
    return at;
}

mpl_status hlo_enter(hlo_module *module, uint32_t comp, hlo_text name, uint32_t id)
{
    size_t at = hlo_slot_of(module, comp, name);

    if (module->slot[at] != MPL_NONE)
        return hlo_refuse(module, name.at, "the name '%.*s' stands here twice",
                          (int)(name.n < 100 ? name.n : 100), name.at);
    module->slot[at] = id;
    return MPL_OK;
}

mpl_status hlo_make_table(hlo_module *module)
{
    size_t marks = 2;

    for (const char *s = module->begin; s < module->end; s++)
        marks += *s == '=' || *s == '{';
    for (module->n_slots = 16; module->n_slots < 2 * marks;)
        module->n_slots *= 2;
    MPL_PASS(mpl_new(module->ctx, module->slot, module->n_slots));
    memset(module->slot, 0xff, module->n_slots * sizeof *module->slot);
    return MPL_OK;
}
