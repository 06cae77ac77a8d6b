/* root_problems.h -- two small problems whose optimum lies above the bound. */
#pragma once

/* About one random list in a million is one. These two have many such mutants. bytes_field: the
 * name of the size field in the struct to initialise. */
#define ROOT_PROBLEMS(bytes_field) ROOT_PROBLEM_0(bytes_field), ROOT_PROBLEM_1(bytes_field)
#define ROOT_PROBLEM_0(bytes_field)                                                                \
    {                                                                                              \
        .n = 8, .birth = {3, 2, 4, 5, 1, 3, 2, 1}, .death = {5, 4, 7, 7, 2, 4, 5, 3},              \
        .bytes_field = {1, 3, 4, 4, 4, 1, 2, 3}, ROOT_PLAIN                                        \
    }
#define ROOT_PROBLEM_1(bytes_field)                                                                \
    {                                                                                              \
        .n = 8, .birth = {2, 5, 0, 4, 0, 1, 3, 1}, .death = {5, 6, 2, 6, 1, 4, 6, 3},              \
        .bytes_field = {3, 5, 5, 1, 5, 4, 3, 1}, ROOT_PLAIN                                        \
    }
#define ROOT_PLAIN .align = {1, 1, 1, 1, 1, 1, 1, 1}, .fixed = {-1, -1, -1, -1, -1, -1, -1, -1}
