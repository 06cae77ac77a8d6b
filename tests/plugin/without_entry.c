/* without_entry.c -- a library that is not a planner. */
int memplan_is_not_here(void);

int memplan_is_not_here(void)
{
    return 1;
}
