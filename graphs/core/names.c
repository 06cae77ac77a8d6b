/* names.c -- suggestions for unknown names. See names.h. */
#include "graphs/core/names.h"

enum { MAX_NAME = 32 };

/* Edit distance (insertions, deletions, substitutions); both lengths at most MAX_NAME. */
static uint32_t edits(const char *a, size_t n, const char *b, size_t m)
{
    uint32_t row[MAX_NAME + 1];

    for (size_t j = 0; j <= m; j++)
        row[j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t diagonal = row[0];

        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[m];
}

bool mpl_nearer(const char *text, size_t n, const char *name, uint32_t *least)
{
    size_t m = strlen(name);
    uint32_t distance;

    if (n > MAX_NAME || m > MAX_NAME)
        return false;
    distance = edits(text, n, name, m);
    if (n > 2 && n < m && distance > 2 && memcmp(text, name, n) == 0)
        distance = 2;
    if (distance >= *least || distance >= n)
        return false;
    *least = distance;
    return true;
}

mpl_status mpl_names_to_bits(mpl_ctx *ctx, const char *what, const char *text, uint32_t n,
                             const char *const *name, uint32_t *bits)
{
    uint32_t found = 0;
    char all[400] = "";

    mpl_assert(n <= 32);
    for (const char *at = text; *at != '\0'; at += *at == '+') {
        size_t length = strcspn(at, "+");
        uint32_t i = 0;

        while (i < n && (strncmp(name[i], at, length) != 0 || name[i][length] != '\0'))
            i++;
        for (uint32_t k = 0; k < n && i == n; k++)
            snprintf(all + strlen(all), sizeof all - strlen(all), " %s", name[k]);
        if (i == n)
            return MPL_REFUSE(ctx, "%s: no '%.*s'; there are:%s", what, (int)length, at, all);
        found |= UINT32_C(1) << i;
        at += length;
    }
    *bits = found;
    return MPL_OK;
}
