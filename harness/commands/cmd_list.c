/* cmd_list.c -- memplan list: what is available, and what is absent with the reason. */
#include "graphs/ir/counts.h"
#include "graphs/ops/user/user_ops.h"
#include "harness/cli/command.h"
#include "harness/bench/suite.h"
#include "harness/export/export.h"
#include "harness/report/table.h"
#include "planners/import/import.h"
#include "planners/search/joint.h"

/* Prints one entry. absent: the reason; NULL: available. */
static mpl_status entry(mpl_ctx *ctx, bool json, const char *name, const char *about,
                        const char *absent)
{
    mpl_status st = MPL_OK;
    char *text[3] = {NULL, NULL, NULL};

    if (!json) {
        printf("%-14s %s%s%s%s\n", name, absent ? "(absent: " : "", absent ? absent : "",
               absent ? ") " : "", about);
        goto out;
    }
    MPL_TRY(mpl_json_quote(ctx, name, &text[0]));
    MPL_TRY(mpl_json_quote(ctx, about, &text[1]));
    if (absent != NULL)
        MPL_TRY(mpl_json_quote(ctx, absent, &text[2]));
    printf("{\"name\": %s, \"about\": %s, \"absent\": %s}\n", text[0], text[1],
           absent ? text[2] : "null");
out:
    for (int i = 0; i < 3; i++)
        mpl_free(ctx, text[i]);
    return st;
}

/* Prints "key=default  what it is (what it may be)". */
static void graph_param(const mpl_zoo_param *param)
{
    char text[3][MPL_ZOO_NUMBER];

    printf("%-14s   %s=%s  %s (", "", param->key,
           mpl_zoo_value_text(param, param->otherwise, text[0]), param->about);
    if (param->choices == NULL || param->choices == mpl_zoo_hundredths)
        printf("%s..%s)\n", mpl_zoo_value_text(param, param->min, text[1]),
               mpl_zoo_value_text(param, param->max, text[2]));
    else
        for (int64_t i = 0; i <= param->max; i++)
            printf("%s%s", param->choices[i], i < param->max ? "|" : ")\n");
}

static mpl_status list_graphs(mpl_ctx *ctx, bool json)
{
    for (const mpl_zoo_entry *const *z = mpl_zoo; *z != NULL; z++) {
        MPL_PASS(entry(ctx, json, (*z)->name, (*z)->about, NULL));
        for (const mpl_zoo_param *param = (*z)->params; !json && param->key != NULL; param++)
            graph_param(param);
    }
    if (!json)
        printf("any of them; from update on, to be trained:\n");
    for (const mpl_zoo_param *param = mpl_zoo_training; !json && param->key != NULL; param++)
        graph_param(param);
    return MPL_OK;
}

/* Lists planners that see a storage shared by concats or splits as one buffer, because their
 * algorithms know no parts or no fixed distances. */
static void list_whole_families(void)
{
    int column =
        printf("%-14s by these, storage that concats and splits share is placed whole:", "");

    for (const mpl_planner *const *p = mpl_planners; *p != NULL; p++) {
        if (((*p)->traits & MPL_USES_FAMILIES) != 0)
            continue;
        if (column + (int)strlen((*p)->name) > 100)
            column = printf("\n%-14s  ", "") - 1;
        column += printf(" %s", (*p)->name);
    }
    printf("\n");
}

static mpl_status list_planners(mpl_ctx *ctx, bool json)
{
    for (const mpl_planner *const *p = mpl_planners; *p != NULL; p++) {
        MPL_PASS(entry(ctx, json, (*p)->name, (*p)->about,
                       (*p)->plan != NULL ? NULL : "not in this build"));
        if (!json && (*p)->params != NULL)
            printf("%-14s   parameters: %s\n", "", (*p)->params);
    }
    if (!json)
        list_whole_families();
    if (!json)
        printf("%-14s a library of your own: so:FILE.so[:key=value,..] (memplan/plugin.h)\n"
               "%-14s a command of your own: exec:[NAME=]'CMD {in} {out}', lists in CSV with "
               "offsets out\n",
               "so:", "exec:");
    return MPL_OK;
}

static mpl_status list_order(mpl_ctx *ctx, bool json, const mpl_order_kind *order)
{
    MPL_PASS(entry(ctx, json, order->name, order->about, NULL));
    if (!json && order->params != NULL)
        printf("%-14s   parameters: %s\n", "", order->params);
    return MPL_OK;
}

static mpl_status list_orders(mpl_ctx *ctx, bool json)
{
    for (const mpl_order_kind *const *o = mpl_orders; *o != NULL; o++)
        MPL_PASS(list_order(ctx, json, *o));
    return list_order(ctx, json, &mpl_order_joint);
}

static mpl_status list_backends(mpl_ctx *ctx, bool json)
{
    for (const mpl_backend *const *b = mpl_backends; *b != NULL; b++) {
        char about[300];
        int n = 0;

        for (int kind = 0; kind < MPL_N_OPS; kind++)
            n += (*b)->computes == NULL || (*b)->computes((mpl_op_kind)kind);
        snprintf(about, sizeof about, "%s; %d of %d operators", (*b)->about, n, MPL_N_OPS);
        MPL_PASS(entry(ctx, json, (*b)->name, about, mpl_backend_absent(*b)));
    }
    return MPL_OK;
}

static mpl_status list_allocators(mpl_ctx *ctx, bool json)
{
    for (const mpl_allocator *const *a = mpl_allocators; *a != NULL; a++) {
        MPL_PASS(entry(ctx, json, (*a)->name, (*a)->about, NULL));
        if (!json)
            printf("%-14s   source: %s\n", "", (*a)->source);
    }
    return MPL_OK;
}

static mpl_status list_suites(mpl_ctx *ctx, bool json)
{
    char about[200];

    for (const mpl_builtin_suite *suite = mpl_builtin_suites; suite->name != NULL; suite++) {
        mpl_suite_about(suite->text, about, sizeof about);
        MPL_PASS(entry(ctx, json, suite->name, about, NULL));
    }
    return MPL_OK;
}

static mpl_status list_tables(mpl_ctx *ctx, bool json)
{
    for (const mpl_table_kind *kind = mpl_tables; kind->name != NULL; kind++)
        MPL_PASS(entry(ctx, json, kind->name, kind->about, NULL));
    return MPL_OK;
}

static mpl_status list_formats(mpl_ctx *ctx, bool json)
{
    char about[200];

    for (const mpl_export_format *f = mpl_export_formats; f->name != NULL; f++)
        MPL_PASS(entry(ctx, json, f->name, f->about, NULL));
    for (const mpl_import_format *f = mpl_import_formats; f->name != NULL; f++) {
        snprintf(about, sizeof about, "check --plan: %s", f->about);
        MPL_PASS(entry(ctx, json, f->name, about, NULL));
    }
    return MPL_OK;
}

static mpl_status list_passes(mpl_ctx *ctx, bool json)
{
    char about[300];

    for (int i = 0; i < MPL_N_PASSES; i++) {
        const mpl_pass_info *pass = &mpl_pass_table[i];

        if (pass->tolerance > 0)
            snprintf(about, sizeof about, "%s; outputs within %g", pass->about, pass->tolerance);
        else
            snprintf(about, sizeof about, "%s", pass->about);
        MPL_PASS(entry(ctx, json, pass->name, about, NULL));
    }
    return MPL_OK;
}

/* memplan's operators, then those of --operators. */
static mpl_status list_operators(mpl_ctx *ctx, bool json)
{
    const memplan_operator *u;
    char about[300];

    for (int i = 0; i < MPL_N_OPS; i++) {
        const mpl_op_info *info = &mpl_op_table[i];

        snprintf(about, sizeof about, "%u to %u inputs, %u to %u outputs", info->min_in,
                 info->max_in, info->min_out, info->max_out);
        if (i != MPL_OP_user)
            MPL_PASS(entry(ctx, json, info->name, about, NULL));
    }
    for (uint32_t i = 0; (u = mpl_user_at(i)) != NULL; i++) {
        snprintf(about, sizeof about, "yours; %u to %u inputs, %u to %u outputs%s%.150s", u->min_in,
                 u->max_in, u->min_out, u->max_out, u->attributes != NULL ? "; " : "",
                 u->attributes != NULL ? u->attributes : "");
        MPL_PASS(entry(ctx, json, u->name, about, NULL));
    }
    return MPL_OK;
}

mpl_status mpl_cmd_list(mpl_ctx *ctx, mpl_options *options)
{
    static const struct {
        const char *name;
        mpl_status (*list)(mpl_ctx *ctx, bool json); /* NULL: a man page */
        void (*page)(FILE *to);
    } kind[] = {
        {"graphs", list_graphs, NULL},         {"planners", list_planners, NULL},
        {"orders", list_orders, NULL},         {"backends", list_backends, NULL},
        {"allocators", list_allocators, NULL}, {"suites", list_suites, NULL},
        {"tables", list_tables, NULL},         {"formats", list_formats, NULL},
        {"passes", list_passes, NULL},         {"fields", NULL, mpl_fields_markdown},
        {"operators", list_operators, NULL},   {"options", NULL, mpl_help_markdown},
        {"man", NULL, mpl_help_man},
    };
    enum { N_KINDS = sizeof kind / sizeof *kind };
    const char *what = options->args.item[0];
    char names[200] = "";
    size_t i = 0;

    for (size_t n = 0; i < N_KINDS && strcmp(what, kind[i].name) != 0; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? ", " : "", kind[i].name);
    if (i == N_KINDS)
        return MPL_REFUSE(ctx, "list: nothing is called '%s'; there are %s", what, names);
    if (kind[i].list != NULL)
        return kind[i].list(ctx, options->json);
    kind[i].page(stdout);
    return MPL_OK;
}
