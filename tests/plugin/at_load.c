/* at_load.c -- fails while it is being loaded. */
#include <stdlib.h>

static void __attribute__((constructor)) at_load(void)
{
    abort();
}
