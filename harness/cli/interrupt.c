/* interrupt.c -- whether the user asked to stop. See interrupt.h. */
#include "harness/cli/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t interrupt;

static void on_signal(int number)
{
    interrupt = number;
}

void mpl_interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: signals end waiting */

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int mpl_interrupted(void)
{
    return interrupt;
}
