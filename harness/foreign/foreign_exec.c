/* foreign_exec.c -- planners that are commands. They exchange lists through files in a temporary
 * folder. Each pool with buffers is one call. Ids in the lists are the problem's buffer numbers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graphs/io/lists/lists.h"
#include "harness/foreign/foreign.h"
#include "harness/cli/isolate.h"
#include "harness/cli/scratch.h"

#define FILE_LIMIT (UINT64_C(1) << 32) /* largest file of a command [byte] */

enum { PATH_ROOM = MPL_SCRATCH_ROOM + 20, LOG_TAIL = 400 };

/* One call of the command. */
typedef struct call {
    mpl_run *run;
    const mpl_foreign *foreign;
    const mpl_problem *problem;
    uint32_t pool;
    int64_t limit_ns;
    char folder[MPL_SCRATCH_ROOM];
    char in[PATH_ROOM], out[PATH_ROOM], log[PATH_ROOM]; /* log: its standard error */
    char *command;                                      /* with paths substituted */
    size_t command_cap;
    bool has_in, has_out; /* the command uses {in} or {out} */
    char last[LOG_TAIL];  /* last line of the log */
    uint32_t n;
} call;

/* ---- files ---- */

static mpl_status make_folder(call *c)
{
    MPL_PASS(mpl_scratch_new(c->run->ctx, c->folder));
    snprintf(c->in, sizeof c->in, "%s/in.csv", c->folder);
    snprintf(c->out, sizeof c->out, "%s/out.csv", c->folder);
    snprintf(c->log, sizeof c->log, "%s/log", c->folder);
    return MPL_OK;
}

static mpl_status write_list(call *c)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = c->problem;
    bool aligned = false;
    FILE *f = fopen(c->in, "w");

    for (mpl_buffer b = 0; b < p->n; b++)
        aligned |= p->pool[b] == c->pool && p->align[b] != 1;
    if (f == NULL)
        MPL_FAIL(c->run->ctx, MPL_EINPUT, "%s: %s", c->in, strerror(errno));
    fprintf(f, "id,lower,upper,size%s\n", aligned ? ",alignment" : "");
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->pool[b] != c->pool)
            continue;
        fprintf(f, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64, b, p->birth[b], p->death[b],
                p->bytes[b]);
        if (aligned)
            fprintf(f, ",%" PRIu32, p->align[b]);
        fputc('\n', f);
        c->n++;
    }
    if (ferror(f) || fflush(f) != 0)
        MPL_FAIL(c->run->ctx, MPL_EINPUT, "%s: %s", c->in, strerror(errno));
out:
    if (f != NULL)
        fclose(f);
    return st;
}

/* Reads the last line of the log that is not blank, without its newline. */
static void read_last_line(call *c)
{
    int fd = open(c->log, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    char text[LOG_TAIL];
    off_t from = size > LOG_TAIL - 1 ? size - (LOG_TAIL - 1) : 0;
    ssize_t n = fd >= 0 ? pread(fd, text, LOG_TAIL - 1, from) : 0;
    ssize_t begin;

    if (fd >= 0)
        close(fd);
    while (n > 0 && (unsigned char)text[n - 1] <= ' ')
        n--;
    for (begin = n > 0 ? n : 0; begin > 0 && text[begin - 1] != '\n';)
        begin--;
    snprintf(c->last, sizeof c->last, "%.*s", n > begin ? (int)(n - begin) : 0, text + begin);
}

/* ---- the command ---- */

static mpl_status append(call *c, size_t *n, const char *text, size_t length)
{
    MPL_PASS(mpl_reserve(c->run->ctx, c->command, c->command_cap, *n + length + 1));
    memcpy(c->command + *n, text, length);
    *n += length;
    c->command[*n] = '\0';
    return MPL_OK;
}

/* Replacement of {key}; text holds PATH_ROOM. NULL: unknown key. */
static const char *value_of(call *c, const char *key, size_t n, char *text)
{
    const mpl_run *run = c->run;
    uint64_t capacity = c->problem->pool_capacity[c->pool];

#define IS(word) (n == sizeof word - 1 && memcmp(key, word, n) == 0)
    if (IS("in"))
        return c->has_in = true, c->in;
    if (IS("out"))
        return c->has_out = true, c->out;
    if (IS("capacity"))
        snprintf(text, PATH_ROOM, "%" PRIu64, capacity);
    else if (IS("time_limit"))
        snprintf(text, PATH_ROOM, "%.3f", 0.9 * (double)c->limit_ns / 1e9);
    else if (IS("threads"))
        snprintf(text, PATH_ROOM, "%" PRIu32, run->n_threads);
    else if (IS("seed"))
        snprintf(text, PATH_ROOM, "%" PRIu64, run->seed);
    else
        return NULL;
#undef IS
    return text;
}

static mpl_status make_command(call *c)
{
    mpl_status st = MPL_OK;
    const char *at = c->foreign->target;
    char text[PATH_ROOM];
    size_t n = 0;

    if (strstr(at, "{capacity}") != NULL && c->problem->pool_capacity[c->pool] == MPL_NO_CAPACITY) {
        st = mpl_foreign_fail(
            c->run, MPL_EUNAVAIL, "unavailable",
            "the command asks for {capacity}, and pool '%s' has none; give --capacity",
            c->problem->pool_name[c->pool]);
        goto out;
    }
    while (*at != '\0') {
        size_t length = strcspn(at + 1, "{}");
        const char *value = NULL;

        if (at[0] == '{' && at[1 + length] == '}')
            value = value_of(c, at + 1, length, text);
        if (value != NULL) {
            MPL_TRY(append(c, &n, value, strlen(value)));
            at += length + 2;
        } else {
            MPL_TRY(append(c, &n, at, 1)); /* ordinary text, or a brace of the shell */
            at++;
        }
    }
out:
    return st;
}

static void in_child(void *arg)
{
    const call *c = arg;
    struct rlimit file = {FILE_LIMIT, FILE_LIMIT};
    int in = open(c->in, O_RDONLY | O_CLOEXEC);
    int log = open(c->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int out = c->has_out ? log : open(c->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (in < 0 || log < 0 || out < 0 || dup2(c->has_in ? 0 : in, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(log, 2) < 0 || setenv("TMPDIR", c->folder, 1) != 0)
        _exit(126);
    setrlimit(RLIMIT_FSIZE, &file);
    execl("/bin/sh", "sh", "-c", c->command, (char *)NULL);
    _exit(126);
}

static mpl_status ended_badly(call *c, const mpl_ending *ending)
{
    int status = ending->exit_status;
    mpl_status st = mpl_foreign_ended(c->run, ending, c->limit_ns);

    if (st != MPL_OK || status == 0)
        return st;
    if (status == 126 || status == 127)
        return mpl_foreign_fail(c->run, MPL_EUNAVAIL, "unavailable",
                                "the command cannot be run: %.380s", c->last);
    return mpl_foreign_fail(c->run, MPL_EINVALID, "crash", "exit status %d%s%.370s", status,
                            c->last[0] != '\0' ? ": " : "", c->last);
}

/* ---- its answer ---- */

/* Sets *b to the buffer of this pool with that id. */
static bool buffer_of(const call *c, const char *id, mpl_buffer *b)
{
    uint64_t value = 0;

    for (const char *d = id; *d != '\0'; d++) {
        if (*d < '0' || *d > '9' || value >= c->problem->n)
            return false;
        value = 10 * value + (uint64_t)(*d - '0');
    }
    *b = (mpl_buffer)value;
    return value < c->problem->n && c->problem->pool[value] == c->pool &&
           (id[0] != '0' || id[1] == '\0');
}

static mpl_status garbage(call *c, const char *format, const char *what)
{
    char text[400];

    snprintf(text, sizeof text, format, what);
    return mpl_foreign_fail(c->run, MPL_EINVALID, "garbage", "%s", text);
}

static mpl_status take_offsets(call *c, const mpl_problem *answer, const uint64_t *offset,
                               uint64_t *to)
{
    mpl_buffer b;

    for (uint32_t i = 0; i < answer->n; i++) {
        if (!buffer_of(c, answer->buffer_name[i], &b))
            return garbage(c, "its output has the id '%.60s', which it was not given",
                           answer->buffer_name[i]);
        if (answer->birth[i] != c->problem->birth[b] || answer->death[i] != c->problem->death[b] ||
            answer->bytes[i] != c->problem->bytes[b])
            return garbage(c, "its output changes the lifetime or size of id %.60s",
                           answer->buffer_name[i]);
        to[b] = offset[i];
    }
    return MPL_OK;
}

static mpl_status read_answer(call *c, uint64_t *to)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = c->run->ctx;
    mpl_problem *answer = NULL;
    uint64_t *offset = NULL;
    struct stat info;
    char text[24];

    if (lstat(c->out, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
        MPL_TRY(garbage(c, "it ended well, but wrote nothing%s", c->has_out ? " to {out}" : ""));
    if ((uint64_t)info.st_size > 65536 + UINT64_C(4096) * c->n)
        MPL_TRY(garbage(c, "its output is far larger than %s list could be", "any"));
    st = mpl_csv_read(ctx, c->out, &answer, &offset);
    if (st == MPL_EINPUT) {
        const char *name = strstr(ctx->message, "out.csv:");
        char said[sizeof ctx->message];

        snprintf(said, sizeof said, "%.300s",
                 name != NULL ? name + strlen("out.csv:") : ctx->message);
        MPL_TRY(garbage(c, "its output, line %.300s", said));
    }
    MPL_TRY(st);
    if (offset == NULL)
        MPL_TRY(garbage(c, "its output has no column '%s'", "offset"));
    MPL_TRY(take_offsets(c, answer, offset, to));
    for (mpl_buffer b = 0; b < c->problem->n; b++)
        if (c->problem->pool[b] == c->pool && to[b] == MPL_UNPLACED)
            MPL_TRY(garbage(c, "buffer '%.100s' has no row in its output",
                            mpl_buffer_label(c->problem, b, text)));
out:
    mpl_problem_free(ctx, answer);
    mpl_free(ctx, offset);
    return st;
}

/* Takes the command's own time, if its last line is only a number of seconds. */
static void take_self_time(call *c)
{
    char *end = NULL;
    double seconds = strtod(c->last, &end);

    if (c->last[0] >= '0' && c->last[0] <= '9' && *end == '\0' && seconds >= 0 && seconds < 1e9)
        c->run->self_ns += (int64_t)(seconds * 1e9);
}

static mpl_status plan_pool(call *c, uint64_t *to)
{
    mpl_status st = MPL_OK;
    mpl_ending ending;

    MPL_TRY(make_folder(c));
    MPL_TRY(write_list(c));
    MPL_TRY(make_command(c));
    MPL_TRY(mpl_isolate(c->run->ctx, in_child, c, mpl_clock_ns() + c->limit_ns, &ending));
    c->run->plan_ns += ending.wall_ns;
    read_last_line(c);
    MPL_TRY(ended_badly(c, &ending));
    take_self_time(c);
    MPL_TRY(read_answer(c, to));
out:
    mpl_scratch_remove(c->folder);
    mpl_free(c->run->ctx, c->command);
    return st;
}

mpl_status mpl_foreign_exec_ask(mpl_run *run, const mpl_problem *p, uint64_t *offset,
                                uint64_t *bound_bytes)
{
    mpl_status st = MPL_OK;
    char text[24];

    if (run->n_params > 0)
        MPL_FAIL(run->ctx, MPL_EINPUT,
                 "planner %s takes no parameters: they belong into the command",
                 run->planner->name);
    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED) {
            st = mpl_foreign_fail(
                run, MPL_EUNAVAIL, "unavailable",
                "a list cannot say that buffer '%.100s' is fixed at offset %" PRIu64,
                mpl_buffer_label(p, b, text), p->fixed[b]);
            goto out;
        }
    *bound_bytes = 0; /* lists cannot express a bound */
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        call c = {.run = run,
                  .foreign = (const mpl_foreign *)run->planner,
                  .problem = p,
                  .pool = pool,
                  .limit_ns = mpl_foreign_limit(run)};
        bool any = false;

        for (mpl_buffer b = 0; b < p->n; b++)
            any |= p->pool[b] == pool;
        if (any)
            MPL_TRY(plan_pool(&c, offset));
    }
out:
    return st;
}
