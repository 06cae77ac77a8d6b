/* without_plan.c -- has the entry, but not its function. */
#include <memplan/plugin.h>

const memplan_plugin memplan_plugin_main = {.version = MEMPLAN_PLUGIN_VERSION,
                                            .size = sizeof(memplan_plugin)};
