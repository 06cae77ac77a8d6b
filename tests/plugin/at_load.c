/* at_load.c -- goes wrong before anything of it is called. */
#include <stdlib.h>

static void __attribute__((constructor)) at_load(void)
{
    abort();
}
