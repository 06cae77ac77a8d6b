/* onnx_text.h -- builds ONNX models from text with an encoder independent of the reader. Lines:
 *
 *  input NAME TYPE [2,N,?]         `?`: unnamed dim; no brackets: unknown shape
 *  init NAME TYPE [DIMS] = NUMBERS
 *  outside NAME TYPE [DIMS] location=PATH offset=N length=N     external data
 *  y, - = Type(a, -, b) axis=1 mode='edge' axes=[0,1] alpha=0.5f alphas=(0.5,1) names={a,b}
 *  graph ATTRIBUTE                 begins a subgraph of the last node, up to `end`
 *  end
 *  name TEXT                       of the next node
 *  domain TEXT                     of the next node
 *  output NAME TYPE                f32 without a type
 *  opset N                         default 13
 *
 * `-` is an empty name. A line that begins with # is a comment; one with -- ends the model. */
#pragma once

#include "tests/support/onnx_message.h"

static inline int onnx_type(const char *name)
{
    static const struct {
        const char *name;
        int type;
    } types[] = {{"f32", FLOAT},   {"u8", UINT8},   {"i8", INT8},      {"u16", UINT16},
                 {"i32", INT32},   {"i64", INT64},  {"str", STRING},   {"bool", BOOL},
                 {"f16", FLOAT16}, {"f64", DOUBLE}, {"bf16", BFLOAT16}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    fail_msg("no type '%s'", name);
    return 0;
}

/* A ValueInfoProto; dims: "[2,N,?]", or empty if unknown. */
static inline message onnx_value(const char *name, const char *type, char *dims)
{
    message m = {.n = 0}, holder = {.n = 0}, kind = {.n = 0}, shape = {.n = 0}, dim;

    for (char *word = strtok(dims, "[], "); word != NULL; word = strtok(NULL, "[], ")) {
        dim.n = 0;
        if (*word >= '0' && *word <= '9')
            put_int(&dim, 1, atoll(word));
        else if (*word != '?')
            put_text(&dim, 2, word);
        put_message(&shape, 1, &dim);
    }
    put_int(&holder, 1, onnx_type(type));
    if (*dims != '\0')
        put_message(&holder, 2, &shape);
    put_message(&kind, 1, &holder);
    put_text(&m, 1, name);
    put_message(&m, 2, &kind);
    return m;
}

static inline unsigned onnx_width(int type)
{
    return type == INT64                                           ? 8
           : type == BOOL || type == UINT8 || type == INT8         ? 1
           : type == UINT16 || type == FLOAT16 || type == BFLOAT16 ? 2
                                                                   : 4;
}

/* A TensorProto from "[3]" and "1 2 3"; floats of 16 bits as the integers of their bits. */
static inline message onnx_init(const char *name, const char *type, char *dims, char *numbers)
{
    message data = {.n = 0};
    int64_t dim[8], whole;
    unsigned rank = 0;
    int t = onnx_type(type);

    for (char *word = strtok(dims, "[], "); word != NULL; word = strtok(NULL, "[], "))
        dim[rank++] = atoll(word);
    for (char *word = strtok(numbers, " "); word != NULL; word = strtok(NULL, " ")) {
        float real = strtof(word, NULL);

        whole = atoll(word);
        for (unsigned i = 0; i < onnx_width(t); i++)
            put_byte(&data, t == FLOAT ? ((uint8_t *)&real)[i] : ((uint8_t *)&whole)[i]);
    }
    return tensor(name, t, rank, dim, data.data, data.n);
}

/* A TensorProto with external data, from "[3]" and "location=w.bin offset=4". */
static inline message onnx_outside(const char *name, const char *type, char *dims, char *fields)
{
    message m = onnx_init(name, type, dims, fields + strlen(fields)), entry;

    for (char *word = strtok(fields, " "); word != NULL; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=') + 1;

        entry.n = 0;
        put_bytes(&entry, 1, word, (size_t)(value - 1 - word));
        put_text(&entry, 2, value);
        put_message(&m, 13, &entry);
    }
    put_int(&m, 14, 1);
    return m;
}

static inline void put_float(message *m, unsigned field, float f)
{
    put_varint(m, field << 3 | 5);
    for (unsigned i = 0; i < sizeof f; i++)
        put_byte(m, ((uint8_t *)&f)[i]);
}

/* An AttributeProto. */
static inline message onnx_attribute(const char *text)
{
    message m = {.n = 0};
    char *value = strchr(text, '=') + 1, *end;
    int type = *value == '[' ? 7 : *value == '(' ? 6 : *value == '{' ? 8 : *value == '\'' ? 3 : 2;

    put_bytes(&m, 1, text, (size_t)(value - 1 - text));
    if (type == 2 && strchr(value, 'f') != NULL)
        type = 1;
    if (type == 1)
        put_float(&m, 2, strtof(value, NULL));
    else if (type == 2)
        put_int(&m, 3, atoll(value));
    else if (type == 3)
        put_bytes(&m, 4, value + 1, strlen(value) - 2);
    else
        for (value++; strchr("])}", *value) == NULL; value += *value == ',') {
            end = value + strcspn(value, ",}");
            if (type == 6)
                put_float(&m, 7, strtof(value, &end));
            else if (type == 7)
                put_int(&m, 8, strtoll(value, &end, 10));
            else
                put_bytes(&m, 9, value, (size_t)(end - value));
            value = end;
        }
    put_int(&m, 20, (int64_t)type);
    return m;
}

/* A graph under construction and its last node. */
typedef struct onnx_graph {
    message graph, node;
    bool has_node;
    char attribute[64], name[64], domain[64]; /* of the owning node; of the next node */
} onnx_graph;

static inline void onnx_begin(onnx_graph *g)
{
    g->graph.n = g->node.n = 0;
    g->has_node = false;
    *g->name = *g->domain = '\0';
    put_text(&g->graph, 2, "small");
}

static inline void onnx_end_node(onnx_graph *g)
{
    if (g->has_node)
        put_message(&g->graph, 1, &g->node);
    g->has_node = false;
}

static inline void onnx_node(onnx_graph *g, char *line)
{
    char *out = line, *type = strstr(line, "= "), *in = NULL, *attrs = NULL, *end;
    message attr;

    if (type == NULL || (in = strchr(type, '(')) == NULL || (attrs = strchr(in, ')')) == NULL)
        fail_msg("no node: %s", line);
    *type = *in = *attrs = '\0';
    g->node.n = 0;
    g->has_node = true;
    for (int field = 1; field <= 2; field++)
        for (char *word = strtok_r(field == 1 ? in + 1 : out, ", ", &end); word != NULL;
             word = strtok_r(NULL, ", ", &end))
            put_text(&g->node, (unsigned)field, strcmp(word, "-") == 0 ? "" : word);
    put_text(&g->node, 3, g->name);
    put_text(&g->node, 4, type + 2);
    for (char *word = strtok_r(attrs + 1, " ", &end); word != NULL;
         word = strtok_r(NULL, " ", &end)) {
        attr = onnx_attribute(word);
        put_message(&g->node, 5, &attr);
    }
    if (*g->domain != '\0')
        put_text(&g->node, 7, g->domain);
    *g->name = *g->domain = '\0';
}

/* Handles a line that is neither a node nor the begin or end of a graph. */
static inline bool onnx_declared(onnx_graph *g, const char *line)
{
    static char numbers[1 << 14];
    char name[64], type[16], dims[128];
    message m;

    *dims = *numbers = '\0';
    strcpy(type, "f32");
    if (sscanf(line, "name %63[^\n]", g->name) == 1 || sscanf(line, "domain %63s", g->domain) == 1)
        return true;
    if (sscanf(line, "input %63s %15s %127[^\n]", name, type, dims) >= 2) {
        m = onnx_value(name, type, dims);
        put_message(&g->graph, 11, &m);
    } else if (sscanf(line, "output %63s %15s", name, type) >= 1) {
        m = onnx_value(name, type, dims);
        put_message(&g->graph, 12, &m);
    } else if (sscanf(line, "init %63s %15s %127[^ ] = %16383[^\n]", name, type, dims, numbers) >=
               3) {
        m = onnx_init(name, type, dims, numbers);
        put_message(&g->graph, 5, &m);
    } else if (sscanf(line, "outside %63s %15s %127[^ ] %16383[^\n]", name, type, dims, numbers) >=
               3) {
        m = onnx_outside(name, type, dims, numbers);
        put_message(&g->graph, 5, &m);
    } else
        return false;
    return true;
}

static inline message onnx_model(const char *text)
{
    static onnx_graph stack[8];
    onnx_graph *g = stack;
    message m = {.n = 0}, import = {.n = 0};
    char line[1 << 14];
    int opset = 13;

    onnx_begin(g);
    for (; *text != '\0' && strncmp(text, "--", 2) != 0;
         text += strcspn(text, "\n"), text += *text == '\n') {
        text += strspn(text, " ");
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        if (*line == '\0' || *line == '#' || sscanf(line, "opset %d", &opset) == 1 ||
            onnx_declared(g, line))
            continue;
        if (sscanf(line, "graph %63s", g->attribute) == 1) {
            onnx_begin(++g);
        } else if (strcmp(line, "end") == 0) {
            message attr = {.n = 0};

            onnx_end_node(g);
            g--;
            put_text(&attr, 1, g->attribute);
            put_message(&attr, 6, &g[1].graph);
            put_int(&attr, 20, 5);
            put_message(&g->node, 5, &attr);
        } else {
            onnx_end_node(g);
            onnx_node(g, line);
        }
    }
    onnx_end_node(g);
    put_int(&m, 1, 8);
    put_text(&import, 1, "");
    put_int(&import, 2, opset);
    put_message(&m, 8, &import);
    put_message(&m, 7, &g->graph);
    return m;
}
