/* onnx_model.h -- small ONNX models, written by an encoder that shares nothing with the reader. */
#ifndef MPL_TEST_ONNX_MODEL_H
#define MPL_TEST_ONNX_MODEL_H

#include "tests/support/onnx_message.h"

/* Splits "a b c" into fields; "-" is an empty name. */
static inline void put_words(message *m, unsigned field, const char *words)
{
    char copy[256], *rest = copy, *word;

    snprintf(copy, sizeof copy, "%s", words);
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word != '\0')
            put_text(m, field, strcmp(word, "-") == 0 ? "" : word);
}

/* A ValueInfoProto; dims: "2 N 4", "?" for one without a name, NULL for none at all. */
static inline message value_info(const char *name, int type, const char *dims)
{
    message m = {.n = 0}, holder = {.n = 0}, kind = {.n = 0}, shape = {.n = 0}, dim;
    char copy[256], *rest = copy, *word;

    snprintf(copy, sizeof copy, "%s", dims != NULL ? dims : "");
    while ((word = strsep(&rest, " ")) != NULL) {
        dim.n = 0;
        if (*word >= '0' && *word <= '9')
            put_int(&dim, 1, atoll(word));
        else if (*word != '?')
            put_text(&dim, 2, word);
        if (*word != '\0')
            put_message(&shape, 1, &dim);
    }
    put_int(&holder, 1, type);
    if (dims != NULL)
        put_message(&holder, 2, &shape);
    put_message(&kind, 1, &holder);
    put_text(&m, 1, name);
    put_message(&m, 2, &kind);
    return m;
}

static inline void put_float(message *m, unsigned field, float f)
{
    put_varint(m, field << 3 | 5);
    for (unsigned i = 0; i < sizeof f; i++)
        put_byte(m, ((uint8_t *)&f)[i]);
}

/* An AttributeProto from "axis=1", "axes=[0,1]", "alpha=0.5f", "mode='edge'", "alphas=(0.5,1)" or
 * "names={a,b}". */
static inline message attribute(const char *text)
{
    message m = {.n = 0};
    const char *value = strchr(text, '=') + 1;

    put_bytes(&m, 1, text, (size_t)(value - 1 - text));
    if (*value == '[') {
        for (value++; *value != ']'; value += *value == ',') {
            char *end;

            put_int(&m, 8, strtoll(value, &end, 10));
            value = end;
        }
        put_int(&m, 20, 7);
    } else if (*value == '\'') {
        put_bytes(&m, 4, value + 1, strlen(value) - 2);
        put_int(&m, 20, 3);
    } else if (*value == '{') {
        for (value++; *value != '}'; value += *value == ',') {
            size_t n = strcspn(value, ",}");

            put_bytes(&m, 9, value, n);
            value += n;
        }
        put_int(&m, 20, 8);
    } else if (*value == '(') {
        for (value++; *value != ')'; value += *value == ',') {
            char *end;

            put_float(&m, 7, strtof(value, &end));
            value = end;
        }
        put_int(&m, 20, 6);
    } else if (strchr(value, 'f') != NULL) {
        put_float(&m, 2, strtof(value, NULL));
        put_int(&m, 20, 1);
    } else {
        put_int(&m, 3, atoll(value));
        put_int(&m, 20, 2);
    }
    return m;
}

/* attrs: those of attribute(), apart by blanks. */
static inline message node(const char *name, const char *type, const char *in, const char *out,
                           const char *attrs)
{
    message m = {.n = 0}, attr;
    char copy[256], *rest = copy, *word;

    put_words(&m, 1, in);
    put_words(&m, 2, out);
    put_text(&m, 3, name);
    put_text(&m, 4, type);
    snprintf(copy, sizeof copy, "%s", attrs);
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word != '\0') {
            attr = attribute(word);
            put_message(&m, 5, &attr);
        }
    return m;
}

/* A node that owns graphs: names[n] of its attributes, and the graphs. */
static inline message owner(const char *name, const char *type, const char *in, const char *out,
                            const char *attrs, unsigned n, const char *const *names,
                            const message *graphs)
{
    message m = node(name, type, in, out, attrs);

    for (unsigned i = 0; i < n; i++) {
        message attr = {.n = 0};

        put_text(&attr, 1, names[i]);
        put_message(&attr, 6, &graphs[i]);
        put_int(&attr, 20, 5);
        put_message(&m, 5, &attr);
    }
    return m;
}

static message graph; /* the one that is being made */

static inline message model(int64_t opset)
{
    message m = {.n = 0}, import = {.n = 0};

    put_int(&m, 1, 8);
    put_text(&import, 1, "");
    put_int(&import, 2, opset);
    put_message(&m, 8, &import);
    put_message(&m, 7, &graph);
    return m;
}

static inline void begin(void)
{
    graph.n = 0;
    put_text(&graph, 2, "small");
}
static inline void add(unsigned field, message part)
{
    put_message(&graph, field, &part);
}
#define ADD_NODE(...) add(1, node(__VA_ARGS__))
#define ADD_INIT(...) add(5, tensor(__VA_ARGS__))
#define ADD_IN(...)   add(11, value_info(__VA_ARGS__))
#define ADD_OUT(name) add(12, value_info(name, FLOAT, NULL))
#define DIMS(...)                                                                                  \
    (sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[])                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#endif
