/* newer.c -- a planner for another version of the interface. */
#include <memplan/plugin.h>

const memplan_plugin memplan_plugin_main = {.version = MEMPLAN_PLUGIN_VERSION + 1,
                                            .size = sizeof(memplan_plugin)};
