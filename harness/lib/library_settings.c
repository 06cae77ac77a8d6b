/* library_settings.c -- the settings of a task. See library_priv.h. */
#include "harness/lib/library_priv.h"
#include "planners/plan/plan_bindings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "harness/rows/record.h"
#include "harness/cli/version.h"
#include "planners/search/joint.h"
#include "planners/verify/verify.h"

void library_settings_init(library_settings *set)
{
    *set = (library_settings){.in_place = true,
                              .views = true,
                              .pin = MPL_PIN_WEIGHTS | MPL_PIN_INPUTS | MPL_PIN_OUTPUTS,
                              .order = mpl_order_find("given"),
                              .capacity = MPL_NO_CAPACITY,
                              .budget = UINT64_MAX,
                              .seed = 1,
                              .n_threads = 1};
}
