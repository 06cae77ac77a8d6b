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

static mpl_status make_folder(call *self)
{
    MPL_PASS(mpl_scratch_new(self->run->ctx, self->folder));
    snprintf(self->in, sizeof self->in, "%s/in.csv", self->folder);
    snprintf(self->out, sizeof self->out, "%s/out.csv", self->folder);
    snprintf(self->log, sizeof self->log, "%s/log", self->folder);
    return MPL_OK;
}

static mpl_status write_list(call *self)
{
    mpl_status st = MPL_OK;
    FILE *f = fopen(self->in, "w");

    if (f == NULL)
        MPL_FAIL(self->run->ctx, MPL_EINPUT, "%s: %s", self->in, strerror(errno));
    self->n = mpl_csv_write_rows(f, self->problem, self->pool, false, NULL);
    if (ferror(f) || fflush(f) != 0)
        MPL_FAIL(self->run->ctx, MPL_EINPUT, "%s: %s", self->in, strerror(errno));
out:
    if (f != NULL)
        fclose(f);
    return st;
}

/* Reads the last line of the log that is not blank, without its newline. */
static void read_last_line(call *self)
{
    int fd = open(self->log, O_RDONLY | O_CLOEXEC);
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
    snprintf(self->last, sizeof self->last, "%.*s", n > begin ? (int)(n - begin) : 0, text + begin);
}

/* ---- the command ---- */

static mpl_status append(call *self, size_t *n, const char *text, size_t length)
{
    MPL_PASS(mpl_reserve(self->run->ctx, self->command, self->command_cap, *n + length + 1));
    memcpy(self->command + *n, text, length);
    *n += length;
    self->command[*n] = '\0';
    return MPL_OK;
}

/* Replacement of {key}; text holds PATH_ROOM. NULL: unknown key. */
static const char *value_of(call *self, const char *key, size_t n, char *text)
{
    const mpl_run *run = self->run;
    uint64_t capacity = self->problem->pool_capacity[self->pool];

#define IS(word) (n == sizeof word - 1 && memcmp(key, word, n) == 0)
    if (IS("in"))
        return self->has_in = true, self->in;
    if (IS("out"))
        return self->has_out = true, self->out;
    if (IS("capacity"))
        snprintf(text, PATH_ROOM, "%" PRIu64, capacity);
    else if (IS("time_limit"))
        snprintf(text, PATH_ROOM, "%.3f", 0.9 * (double)self->limit_ns / 1e9);
    else if (IS("threads"))
        snprintf(text, PATH_ROOM, "%" PRIu32, run->n_threads);
    else if (IS("seed"))
        snprintf(text, PATH_ROOM, "%" PRIu64, run->seed);
    else
        return NULL;
#undef IS
    return text;
}

static mpl_status make_command(call *self)
{
    mpl_status st = MPL_OK;
    const char *at = self->foreign->target;
    char text[PATH_ROOM];
    size_t n = 0;

    if (strstr(at, "{capacity}") != NULL &&
        self->problem->pool_capacity[self->pool] == MPL_NO_CAPACITY) {
        st = mpl_foreign_fail(
            self->run, MPL_EUNAVAIL, "unavailable",
            "the command asks for {capacity}, and pool '%s' has none; give --capacity",
            self->problem->pool_name[self->pool]);
        goto out;
    }
    while (*at != '\0') {
        size_t length = strcspn(at + 1, "{}");
        const char *value = NULL;

        if (at[0] == '{' && at[1 + length] == '}')
            value = value_of(self, at + 1, length, text);
        if (value != NULL) {
            MPL_TRY(append(self, &n, value, strlen(value)));
            at += length + 2;
        } else {
            MPL_TRY(append(self, &n, at, 1)); /* ordinary text, or a brace of the shell */
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

static mpl_status ended_badly(call *self, const mpl_ending *ending)
{
    int status = ending->exit_status;
    mpl_status st = mpl_foreign_ended(self->run, ending, self->limit_ns);

    if (st != MPL_OK || status == 0)
        return st;
    if (status == 126 || status == 127)
        return mpl_foreign_fail(self->run, MPL_EUNAVAIL, "unavailable",
                                "the command cannot be run: %.380s", self->last);
    return mpl_foreign_fail(self->run, MPL_EINVALID, "crash", "exit status %d%s%.370s", status,
                            self->last[0] != '\0' ? ": " : "", self->last);
}

/* ---- its answer ---- */

/* Sets *b to the buffer of this pool with that id. */
static bool buffer_of(const call *self, const char *id, mpl_buffer *b)
{
    uint64_t value = 0;

    for (const char *d = id; *d != '\0'; d++) {
        if (*d < '0' || *d > '9' || value >= self->problem->n)
            return false;
        value = 10 * value + (uint64_t)(*d - '0');
    }
    *b = (mpl_buffer)value;
    return value < self->problem->n && self->problem->pool[value] == self->pool &&
           (id[0] != '0' || id[1] == '\0');
}

static mpl_status garbage(call *self, const char *format, const char *what)
{
    char text[400];

    snprintf(text, sizeof text, format, what);
    return mpl_foreign_fail(self->run, MPL_EINVALID, "garbage", "%s", text);
}

static mpl_status take_offsets(call *self, const mpl_problem *answer, const uint64_t *offset,
                               uint64_t *to)
{
    mpl_buffer b;

    for (uint32_t i = 0; i < answer->n; i++) {
        if (!buffer_of(self, answer->buffer_name[i], &b))
            return garbage(self, "its output has the id '%.60s', which it was not given",
                           answer->buffer_name[i]);
        if (answer->birth[i] != self->problem->birth[b] ||
            answer->death[i] != self->problem->death[b] ||
            answer->bytes[i] != self->problem->bytes[b])
            return garbage(self, "its output changes the lifetime or size of id %.60s",
                           answer->buffer_name[i]);
        to[b] = offset[i];
    }
    return MPL_OK;
}

static mpl_status read_answer(call *self, uint64_t *to)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->run->ctx;
    mpl_problem *answer = NULL;
    uint64_t *offset = NULL;
    struct stat info;
    char text[24];

    if (lstat(self->out, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0)
        MPL_TRY(
            garbage(self, "it ended well, but wrote nothing%s", self->has_out ? " to {out}" : ""));
    if ((uint64_t)info.st_size > 65536 + UINT64_C(4096) * self->n)
        MPL_TRY(garbage(self, "its output is far larger than %s list could be", "any"));
    st = mpl_csv_read(ctx, self->out, &answer, &offset);
    if (st == MPL_EINPUT) {
        const char *name = strstr(ctx->message, "out.csv:");
        char said[sizeof ctx->message];

        snprintf(said, sizeof said, "%.300s",
                 name != NULL ? name + strlen("out.csv:") : ctx->message);
        MPL_TRY(garbage(self, "its output, line %.300s", said));
    }
    MPL_TRY(st);
    if (offset == NULL)
        MPL_TRY(garbage(self, "its output has no column '%s'", "offset"));
    MPL_TRY(take_offsets(self, answer, offset, to));
    for (mpl_buffer b = 0; b < self->problem->n; b++)
        if (self->problem->pool[b] == self->pool && to[b] == MPL_UNPLACED)
            MPL_TRY(garbage(self, "buffer '%.100s' has no row in its output",
                            mpl_buffer_label(self->problem, b, text)));
out:
    mpl_problem_free(ctx, answer);
    mpl_free(ctx, offset);
    return st;
}

/* Takes the command's own time, if its last line is only a number of seconds. */
static void take_self_time(call *self)
{
    char *end = NULL;
    double seconds = strtod(self->last, &end);

    if (self->last[0] >= '0' && self->last[0] <= '9' && *end == '\0' && seconds >= 0 &&
        seconds < 1e9)
        self->run->self_ns += (int64_t)(seconds * 1e9);
}

static mpl_status plan_pool(call *self, uint64_t *to)
{
    mpl_status st = MPL_OK;
    mpl_ending ending;

    MPL_TRY(make_folder(self));
    MPL_TRY(write_list(self));
    MPL_TRY(make_command(self));
    MPL_TRY(mpl_isolate(self->run->ctx, in_child, self, mpl_clock_ns() + self->limit_ns, &ending));
    self->run->plan_ns += ending.wall_ns;
    read_last_line(self);
    MPL_TRY(ended_badly(self, &ending));
    take_self_time(self);
    MPL_TRY(read_answer(self, to));
out:
    mpl_scratch_remove(self->folder);
    mpl_free(self->run->ctx, self->command);
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
