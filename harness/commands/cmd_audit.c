/* cmd_audit.c -- memplan audit: reports claims of rows that other rows beat. */
#include <stdlib.h>

#include "harness/audit/audit.h"
#include "harness/cli/command.h"

enum { SCOPE_TEXT = 600 };

/* "FILE:LINE (GRAPH, PLANNER)"; text holds SCOPE_TEXT bytes. */
static const char *row_text(const mpl_audit *audit, uint32_t row, char *text)
{
    const mpl_audited_row *r = &audit->row[row];

    snprintf(text, SCOPE_TEXT, "%.200s:%" PRIu32 " (%.200s, %.100s)", r->file, r->line, r->graph,
             r->planner);
    return text;
}

static void print_beaten(const mpl_audit *audit, const mpl_beaten *beaten)
{
    char claim[SCOPE_TEXT], plan[SCOPE_TEXT], scope[SCOPE_TEXT];

    printf("%s: %s, %" PRIu64 " %s; %s: %s %" PRIu64 "; scope: %s\n",
           mpl_shown(row_text(audit, beaten->claim.row, claim)), beaten->claim.what,
           beaten->claim.amount, beaten->claim.unit,
           mpl_shown(row_text(audit, beaten->plan.row, plan)), beaten->plan.what,
           beaten->plan.amount,
           mpl_shown(mpl_scope_text(&beaten->claim.scope, scope, sizeof scope)));
}

static void print_summary(const mpl_audit *audit)
{
    printf("audit: %" PRIu32 " of %" PRIu32 " claims compared with %" PRIu32 " of %" PRIu32
           " rows, %" PRIu64 " comparisons: ",
           audit->n_claims_compared, audit->claims.n, audit->n_rows_compared, audit->n_rows,
           audit->n_comparisons);
    if (audit->n_beaten > 0)
        printf("%" PRIu32 " beaten\n", audit->n_beaten);
    else
        printf("%s\n",
               audit->n_comparisons > 0 ? "none is beaten" : "nothing was held to anything");
}

/* ---- as JSON ---- */

static mpl_status put_quoted(mpl_ctx *ctx, FILE *to, const char *key, const char *text)
{
    mpl_status st = MPL_OK;
    char *quoted = NULL;

    MPL_TRY(mpl_json_quote(ctx, text, &quoted));
    fprintf(to, "\"%s\": %s", key, quoted);
out:
    mpl_free(ctx, quoted);
    return st;
}

/* A member "claim" or "plan": {"file": .., "line": .., "graph": .., ..}. */
static mpl_status put_statement(mpl_ctx *ctx, FILE *to, const char *key, const mpl_audit *audit,
                                const mpl_statement *statement)
{
    const mpl_audited_row *row = &audit->row[statement->row];

    fprintf(to, "\"%s\": {", key);
    MPL_PASS(put_quoted(ctx, to, "file", row->file));
    fprintf(to, ", \"line\": %" PRIu32 ", ", row->line);
    MPL_PASS(put_quoted(ctx, to, "graph", row->graph));
    fprintf(to, ", ");
    MPL_PASS(put_quoted(ctx, to, "planner", row->planner));
    fprintf(to, ", \"what\": \"%s\", \"amount\": %" PRIu64 "}", statement->what, statement->amount);
    return MPL_OK;
}

static mpl_status put_json(mpl_ctx *ctx, FILE *to, const mpl_audit *audit)
{
    char scope[SCOPE_TEXT];

    fprintf(to,
            "{\"rows\": %" PRIu32 ", \"rows_compared\": %" PRIu32 ", \"claims\": %" PRIu32
            ", \"claims_compared\": %" PRIu32 ", \"comparisons\": %" PRIu64 ", \"beaten\": [",
            audit->n_rows, audit->n_rows_compared, audit->claims.n, audit->n_claims_compared,
            audit->n_comparisons);
    for (uint32_t i = 0; i < audit->n_beaten; i++) {
        const mpl_beaten *beaten = &audit->beaten[i];

        fprintf(to, "%s{", i > 0 ? ", " : "");
        MPL_PASS(put_statement(ctx, to, "claim", audit, &beaten->claim));
        fprintf(to, ", ");
        MPL_PASS(put_statement(ctx, to, "plan", audit, &beaten->plan));
        fprintf(to, ", ");
        MPL_PASS(
            put_quoted(ctx, to, "scope", mpl_scope_text(&beaten->claim.scope, scope, SCOPE_TEXT)));
        fprintf(to, "}");
    }
    fprintf(to, "]}");
    return MPL_OK;
}

static mpl_status keep_json(mpl_ctx *ctx, const mpl_audit *audit, mpl_options *options)
{
    mpl_status st = MPL_OK;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    MPL_TRY(to != NULL ? MPL_OK : MPL_EMEM);
    MPL_TRY(put_json(ctx, to, audit));
    MPL_TRY(fflush(to) == 0 ? MPL_OK : MPL_EMEM);
    MPL_TRY(mpl_copy_text(ctx, options->result, text));
out:
    if (to != NULL)
        fclose(to);
    free(text);
    return st;
}

/* ---- the outcome ---- */

static mpl_status outcome(mpl_ctx *ctx, const mpl_options *options, const mpl_audit *audit)
{
    if (audit->n_beaten > 0)
        return MPL_ERROR(
            ctx, MPL_EINVALID,
            "audit: %" PRIu32 " of %" PRIu32
            " claims are beaten: what proved them, or what verified the plans, is wrong",
            audit->n_beaten, audit->claims.n);
    if (audit->n_comparisons < options->compared)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "audit: %" PRIu64 " comparisons where --compared asks for %" PRIu64
                         ": rows of more than one planner, order or option are needed",
                         audit->n_comparisons, options->compared);
    return MPL_OK;
}

mpl_status mpl_cmd_audit(mpl_ctx *ctx, mpl_options *options)
{
    mpl_status st = MPL_OK;
    mpl_audit audit = {0};

    for (uint32_t i = 0; i < options->args.n; i++)
        MPL_TRY(mpl_audit_file(ctx, &audit, options->args.item[i]));
    MPL_TRY(mpl_audit_judge(ctx, &audit));
    if (options->json)
        MPL_TRY(keep_json(ctx, &audit, options));
    for (uint32_t i = 0; !options->json && i < audit.n_beaten; i++)
        print_beaten(&audit, &audit.beaten[i]);
    if (!options->json && !options->quiet)
        print_summary(&audit);
    st = outcome(ctx, options, &audit);
out:
    mpl_audit_fini(ctx, &audit);
    return st;
}
