/* proof_text.h -- parses refutation texts and mutates them at random. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"

static inline uint32_t pick(mpl_rng *rng, uint32_t n)
{
    return (uint32_t)mpl_rng_below(rng, n);
}

/* Number of mutated certificates to try: MPL_MUTANTS; make certify-mutations asks for a million. */
static inline uint64_t n_mutants(void)
{
    return number_asked("MPL_MUTANTS", draws(20000));
}

/* A claim, with these reasons, that p with capacity `within` is infeasible. */
static inline mpl_plan *refuted(mpl_ctx *ctx, mpl_problem *p, uint64_t within, const char *steps)
{
    mpl_plan *plan = NULL;

    p->pool_capacity[0] = within;
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    plan->claim = MPL_INFEASIBLE;
    plan->refutation.within = within;
    assert_non_null(plan->refutation.steps = mpl_strdup(ctx, steps));
    return plan;
}

enum { MOST_RECORDS = 4000 };

/* A text split into records. */
typedef struct text {
    uint32_t n;
    char record[MOST_RECORDS][24];
} text;

static inline void cut(const char *steps, text *t)
{
    for (t->n = 0; *steps != '\0' && t->n < MOST_RECORDS / 2; t->n++) {
        size_t length = strcspn(steps, " ");

        snprintf(t->record[t->n], sizeof t->record[t->n], "%.*s", (int)length, steps);
        steps += length + (steps[length] == ' ');
    }
}

static inline void paste(const text *t, char *steps, size_t room)
{
    size_t n = 0;

    steps[0] = '\0';
    for (uint32_t i = 0; i < t->n && n + sizeof t->record[i] < room; i++)
        n += (size_t)snprintf(steps + n, room - n, "%s%s", i > 0 ? " " : "", t->record[i]);
}

static inline void remove_records(text *t, uint32_t from, uint32_t to)
{
    memmove(t->record[from], t->record[to], (t->n - to) * sizeof *t->record);
    t->n -= to - from;
}

/* Index after the last record of the state that begins at i. */
static inline uint32_t state_end(const text *t, uint32_t i)
{
    while (i < t->n && strchr("docrkus", t->record[i][0]) != NULL)
        i = t->record[i][0] == 's' ? state_end(t, i + 1) : i + 1;
    if (i < t->n && t->record[i][0] == 'b' && strchr(t->record[i], ',') != NULL) {
        long children = strtol(strchr(t->record[i], ',') + 1, NULL, 10);

        for (i++; children > 0 && i < t->n; children--)
            i = state_end(t, i + 1);
        return i;
    }
    return i < t->n ? i + 1 : i;
}

/* Removes a child of the split at i and decrements its count. */
static inline void drop_child(mpl_rng *rng, text *t, uint32_t i)
{
    long step, children;
    char *end;

    if (t->record[i][0] != 'b' || strchr(t->record[i], ',') == NULL)
        return;
    step = strtol(t->record[i] + 1, &end, 10);
    children = strtol(end + 1, NULL, 10);
    if (children < 2)
        return;
    snprintf(t->record[i], sizeof t->record[i], "b%ld,%ld", step, children - 1);
    i++;
    for (uint32_t skip = pick(rng, (uint32_t)children); skip > 0; skip--)
        i = state_end(t, i + 1);
    if (i < t->n)
        remove_records(t, i, state_end(t, i + 1));
}

static inline void change_number(mpl_rng *rng, char *record)
{
    char changed[24], *at = record + 1;
    long value;

    if (pick(rng, 2) == 0 && strchr(at, ',') != NULL)
        at = strrchr(at, ',') + 1;
    value = strtol(at, NULL, 10);
    value = pick(rng, 3) == 0 ? (long)pick(rng, 12) : value + 1 - 2 * (long)pick(rng, 2);
    snprintf(changed, sizeof changed, "%.*s%ld%.8s", (int)(at - record), record,
             value < 0 ? 0 : value, strpbrk(at, ",") != NULL ? strpbrk(at, ",") : "");
    memcpy(record, changed, sizeof changed);
}

static inline void change_text(mpl_rng *rng, text *t)
{
    static const char kinds[] = "docsbpnruxzkm";
    uint32_t i = t->n > 0 ? pick(rng, t->n) : 0, j = t->n > 0 ? pick(rng, t->n) : 0;
    char kept[24];

    if (t->n == 0)
        return;
    switch (pick(rng, 9)) {
    case 0:
        remove_records(t, i, i + 1);
        break;
    case 1:
        t->n = i;
        break;
    case 2:
        memcpy(kept, t->record[i], sizeof kept);
        memcpy(t->record[i], t->record[j], sizeof kept);
        memcpy(t->record[j], kept, sizeof kept);
        break;
    case 3:
        if (t->n < MOST_RECORDS) {
            memmove(t->record[i + 1], t->record[i], (t->n++ - i) * sizeof *t->record);
            memcpy(t->record[i], t->record[pick(rng, t->n)], sizeof kept);
        }
        break;
    case 4:
        t->record[i][0] = kinds[pick(rng, sizeof kinds - 1)];
        break;
    case 5:
        if (i + 1 < t->n)
            remove_records(t, i + 1, state_end(t, i + 1));
        break;
    case 6:
    case 7:
        for (uint32_t tries = 0; tries < t->n && t->record[i][0] != 'b'; tries++)
            i = (i + 1) % t->n;
        drop_child(rng, t, i);
        break;
    default:
        change_number(rng, t->record[i]);
    }
}

/* A proof's text after up to three random changes; valid until the next call. */
static inline const char *changed_steps(mpl_rng *rng, const char *steps)
{
    static text t;
    static char changed[sizeof t.record];

    cut(steps, &t);
    for (uint32_t k = pick(rng, 4); k > 0; k--)
        change_text(rng, &t);
    paste(&t, changed, sizeof changed);
    return changed;
}
