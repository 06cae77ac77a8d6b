/* XLA's own modules (hlo, of `make data`). Faults: an instruction that is lost, counted twice or of
 * other bytes; a lifetime that ends too early or late; a plan that the verifiers refuse.
 *
 * Oracle: a recount of the text, line by line, that shares no code with the reader. */
#include <dirent.h>

#include "graphs/core/file.h"
#include "graphs/core/gzip.h"
#include "tests/io/hlo_case.h"

#define FOLDER MPL_SHARED "/hlo"

enum { MOST_LINES = 60000 };

typedef struct counted {
    uint64_t n, bytes;
} counted;

static uint64_t bytes_of_type(const char *type, size_t n)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = {{"pred", 1}, {"s8", 1},  {"s32", 4},  {"s64", 8}, {"u8", 1},       {"u32", 4},
                 {"u64", 8},  {"f32", 4}, {"bf16", 2}, {"f16", 2}, {"f8e4m3fn", 1}, {"f8e5m2", 1}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == n && memcmp(types[i].name, type, n) == 0)
            return types[i].bytes;
    return 0;
}

/* Bytes of all arrays in the text before `end`: a word, then numbers in brackets. */
static uint64_t bytes_in(const char *at, const char *end)
{
    uint64_t sum = 0;

    while (at < end) {
        const char *word = at;
        uint64_t bytes;

        while (at < end && ((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')))
            at++;
        bytes = bytes_of_type(word, (size_t)(at - word));
        if (bytes == 0 || *at != '[') {
            at += at == word;
            continue;
        }
        for (at++; *at != ']'; at++)
            if (*at >= '0' && *at <= '9') {
                bytes *= strtoull(at, (char **)&at, 10);
                at--;
            }
        sum += bytes;
    }
    return sum;
}

/* Where the opcode of a line begins: behind " = " and the shape, which ends at a blank outside of
 * parentheses; NULL: no instruction. */
static const char *opcode_of(const char *line, const char **shape)
{
    const char *at = strstr(line, " = ");
    int depth = 0;

    if (at == NULL || line[0] != ' ' || strchr("/", line[strspn(line, " ")]) != NULL)
        return NULL;
    *shape = at += 3;
    for (; *at != '\0' && (depth > 0 || *at != ' '); at++)
        depth += (*at == '(') - (*at == ')');
    return *at == ' ' ? at + 1 : NULL;
}

static bool starts(const char *at, const char *word)
{
    return strncmp(at, word, strlen(word)) == 0;
}

static char *lines[MOST_LINES];
static uint32_t n_lines;

static counted count(const char *name, size_t n);

/* The computation that `key` of the line names. */
static counted count_called(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    if (at == NULL)
        return (counted){0, 0};
    at += strlen(key) + (at[strlen(key)] == '%');
    return count(at, strcspn(at, ",} \n"));
}

/* What computations that a line runs make. */
static counted count_run(const char *line, const char *opcode)
{
    static const char *const keys[] = {
        "to_apply=", "condition=", "body=", "true_computation=", "false_computation="};
    counted sum = {0, 0}, one;

    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        one = k == 0 && !starts(opcode, "call(") ? (counted){0, 0} : count_called(line, keys[k]);
        sum = (counted){sum.n + one.n, sum.bytes + one.bytes};
    }
    for (const char *at = strstr(line, "branch_computations={"); at != NULL && *at != '}';) {
        at += strcspn(at, "{,") + 1;
        at += strspn(at, " %");
        one = count(at, strcspn(at, ",} \n"));
        sum = (counted){sum.n + one.n, sum.bytes + one.bytes};
        at += strcspn(at, ",}");
    }
    return sum;
}

/* Instructions with bytes of their own in a computation and in those that it runs. */
static counted count(const char *name, size_t n)
{
    static const char *const none[] = {"parameter(", "constant(", "tuple(", "get-tuple-element(",
                                       "opt-barrier("};
    counted sum = {0, 0};
    bool inside = false;

    for (uint32_t i = 0; i < n_lines; i++) {
        const char *line = lines[i], *shape = NULL, *opcode = opcode_of(line, &shape);
        const char *head = line + (starts(line, "ENTRY ") ? 6 : 0);
        bool owns = true;
        counted run = {0, 0};

        head += *head == '%';
        if (line[0] != ' ' && line[strlen(line) - (*line != '\0')] == '{')
            inside = strncmp(head, name, n) == 0 && (head[n] == ' ' || head[n] == '(');
        if (!inside || opcode == NULL)
            continue;
        for (size_t k = 0; k < sizeof none / sizeof *none; k++)
            owns = owns && !starts(opcode, none[k]);
        if (starts(opcode, "call(") || starts(opcode, "while(") || starts(opcode, "conditional(")) {
            char all[4000]; /* attributes may stand on the next line */

            snprintf(all, sizeof all, "%s %s", line, i + 1 < n_lines ? lines[i + 1] : "");
            run = count_run(all, opcode);
            owns = false;
        }
        sum.n += owns + run.n;
        sum.bytes += run.bytes + (owns ? bytes_in(shape, opcode) : 0);
    }
    return sum;
}

/* The entry's name: behind ENTRY, else of the last computation. */
static const char *entry_of(size_t *n)
{
    const char *found = NULL;

    for (uint32_t i = 0; i < n_lines; i++) {
        if (lines[i][0] == ' ' || lines[i][0] == '\0' || lines[i][strlen(lines[i]) - 1] != '{')
            continue;
        found = lines[i] + (starts(lines[i], "ENTRY ") ? 6 : 0);
        if (found != lines[i])
            break;
    }
    found += *found == '%';
    *n = strcspn(found, " (");
    return found;
}

static void check_count(mpl_ctx *ctx, const char *file, const char *path, const mpl_graph *g)
{
    owned_memory char *packed = NULL, *text = NULL;
    size_t size, n;
    const char *entry;
    counted found = {0, 0}, want;
    char *rest;

    assert_ok(ctx, mpl_file_read(ctx, path, &packed, &size));
    assert_ok(ctx, mpl_gunzip(ctx, path, packed, size, 1 << 30, &text, &n));
    n_lines = 0;
    rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && n_lines < MOST_LINES;)
        lines[n_lines++] = line;
    entry = entry_of(&n);
    want = count(entry, n);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_opaque || g->op_kind[op] == MPL_OP_opaque_update) {
            found.n++;
            for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
                found.bytes += g->value_bytes[g->op_out[i]];
        }
    if (found.n != want.n || (found.bytes != want.bytes && strstr(file, "u4_") == NULL))
        fail_msg("%s: %" PRIu64 " instructions of %" PRIu64 " bytes, recounted %" PRIu64
                 " of %" PRIu64,
                 file, found.n, found.bytes, want.n, want.bytes);
}

TEST(modules_are_read_and_planned)
{
    DIR *folder = opendir(FOLDER);
    struct dirent *entry;
    uint32_t n = 0;

    if (folder == NULL) {
        print_message("skip: %s is not there\n", FOLDER);
        skip();
    }
    while ((entry = readdir(folder)) != NULL) {
        char path[400];
        hlo_case c;

        if (strstr(entry->d_name, ".hlo.gz") == NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s", FOLDER, entry->d_name);
        c = hlo_open(ctx, path);
        check_count(ctx, entry->d_name, path, c.g);
        hlo_plan(ctx, &c, "greedy_size");
        hlo_close(ctx, &c);
        n++;
    }
    closedir(folder);
    print_message("%u modules\n", n);
    assert_true(n > 0);
}

TESTS(modules_are_read_and_planned)
