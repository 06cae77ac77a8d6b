/* interrupt.c -- whether the user asked to stop. See interrupt.h. */
#include "harness/cli/interrupt.h"

#include <signal.h>

static _Atomic int interrupt, softly;
static struct sigaction before;

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

static void on_first(int number)
{
    (void)number;
    softly = 1;
}

const _Atomic int *mpl_interrupt_soften(void)
{
    struct sigaction action = {.sa_handler = on_first, .sa_flags = SA_RESETHAND};

    softly = 0;
    sigaction(SIGINT, &action, &before);
    return &softly;
}

void mpl_interrupt_restore(void)
{
    sigaction(SIGINT, &before, NULL);
}
