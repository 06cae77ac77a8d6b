/* without_plan.c -- the entry is there, its function is not. */
#include <memplan/plugin.h>

const memplan_plugin memplan_plugin_main = {.version = MEMPLAN_PLUGIN_VERSION,
                                            .size = sizeof(memplan_plugin)};
