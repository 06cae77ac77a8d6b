/* isolate.c -- runs a function in a separate process. See isolate.h. */
#include "harness/cli/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/cli/interrupt.h"

void *mpl_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

mpl_status mpl_fork(mpl_ctx *ctx, const char *what, pid_t *pid)
{
    pid_t parent = getpid();

    fflush(NULL);
    if ((*pid = fork()) < 0) {
        *pid = 0;
        return MPL_ERROR(ctx, MPL_EMEM, "%s: %s", what, strerror(errno));
    }
    if (*pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return MPL_OK;
}

int mpl_reap(pid_t pid)
{
    int how = 0;

    while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
        ;
    return how;
}

void mpl_ended_text(const char *who, int how, size_t n, char *text)
{
    if (WIFSIGNALED(how))
        snprintf(text, n, "%s ended by signal %d (%s)", who, WTERMSIG(how),
                 strsignal(WTERMSIG(how)));
    else
        snprintf(text, n, "%s ended with exit status %d", who, WEXITSTATUS(how));
}

/* Makes this process the first to be killed when memory runs out. */
static void offer_to_oom_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);

    if (fd >= 0 && write(fd, "1000", 4) < 0)
        fputs("", stderr); /* not permitted: keep the default */
    if (fd >= 0)
        close(fd);
}

static void __attribute__((noreturn)) child(void (*body)(void *), void *arg)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGCHLD, SIGSEGV,
                                  /* handlers of sanitizers too */
                                  SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t none;
    int null;

    setpgid(0, 0);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    offer_to_oom_killer();
    if ((null = open("/dev/null", O_RDONLY)) >= 0)
        dup2(null, 0);
    dup2(2, 1);
    close_range(3, ~0u, 0); /* closes rows, plans and locks of memplan */
    body(arg);
    _exit(0);
}

/* Waits until the process ends, the deadline passes or memplan is told to stop. Does not reap the
 * process. */
static void await(pid_t pid, int64_t deadline_ns, mpl_ending *ending)
{
    enum { SLICE_MS = 50 }; /* longest wait for a signal that arrives between check and poll */
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd wait = {.fd = pidfd, .events = POLLIN}; /* fd -1 (an old kernel): only sleeps */
    siginfo_t info;

    for (;;) {
        int64_t left = deadline_ns - mpl_clock_ns();

        info.si_pid = 0;
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
            break;
        ending->timed_out = left <= 0;
        ending->interrupted = mpl_interrupted();
        if (ending->timed_out || ending->interrupted != 0)
            break;
        left = left / 1000000 + 1;
        poll(&wait, 1, pidfd < 0 ? 1 : left < SLICE_MS ? (int)left : SLICE_MS);
    }
    if (pidfd >= 0)
        close(pidfd);
}

mpl_status mpl_isolate(mpl_ctx *ctx, void (*body)(void *arg), void *arg, int64_t deadline_ns,
                       mpl_ending *ending)
{
    mpl_status st = MPL_OK;
    struct sigaction old_int, old_term;
    int64_t begin;
    pid_t pid;
    int how;

    memset(ending, 0, sizeof *ending);
    sigaction(SIGINT, NULL, &old_int);
    sigaction(SIGTERM, NULL, &old_term);
    mpl_interrupt_catch();
    MPL_TRY(mpl_fork(ctx, "no process", &pid));
    if (pid == 0)
        child(body, arg);
    begin = mpl_clock_ns(); /* exclude fork(), whose time depends on memplan's size */
    setpgid(pid, pid);      /* also in the parent: it must precede the kill of the group */
    await(pid, deadline_ns, ending);
    ending->wall_ns = mpl_clock_ns() - begin;
    kill(-pid, SIGKILL); /* before reaping, after which the group's number may be reused */
    kill(pid, SIGKILL);
    how = mpl_reap(pid);
    ending->signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    ending->exit_status = WIFEXITED(how) ? WEXITSTATUS(how) : 0;
out:
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return st;
}
