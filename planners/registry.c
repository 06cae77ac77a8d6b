/* registry.c -- the table of planners, generated from planners.def. */
#include "planners/planner.h"

#define PLANNER(name) extern const mpl_planner mpl_planner_##name;
#include "planners/planners.def"
#undef PLANNER

const mpl_planner *const mpl_planners[] = {
#define PLANNER(name) &mpl_planner_##name,
#include "planners/planners.def"
#undef PLANNER
    NULL,
};

const mpl_planner *mpl_planner_find(const char *name)
{
    for (const mpl_planner *const *planner = mpl_planners; *planner != NULL; planner++)
        if (strcmp((*planner)->name, name) == 0)
            return *planner;
    return NULL;
}
