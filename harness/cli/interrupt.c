/* interrupt.c -- whether the user has asked to stop. See worker.h. */
#include "harness/job/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/cli/isolate.h"

static volatile sig_atomic_t interrupt;

static void on_signal(int number)
{
    interrupt = number;
}

void mpl_interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: waiting ends */

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int mpl_interrupted(void)
{
    return interrupt;
}
