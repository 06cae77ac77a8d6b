/* proof.c -- the writer of refutations. See proof.h. */
#include "planners/proof.h"

#define LONGEST 48 /* characters of a record */

void mpl_proof_add(mpl_proof *proof, char kind, uint32_t a, uint32_t b, uint64_t c)
{
    if (proof->failed)
        return;
    if (proof->n >= MPL_PROOF_MOST ||
        mpl_reserve(proof->ctx, proof->record, proof->room, proof->n + 1) != MPL_OK) {
        proof->failed = true;
        return;
    }
    proof->record[proof->n++] = (mpl_proof_record){kind, false, a, b, c};
    if (kind == 'm')
        proof->record[c].used = true;
}

mpl_status mpl_proof_text(const mpl_proof *proof, char **text)
{
    mpl_status st = MPL_OK;
    uint32_t *name = NULL, n_names = 0;
    char *out = NULL;
    size_t n = 0, room = 0;

    MPL_TRY(mpl_new(proof->ctx, name, proof->n));
    for (size_t i = 0; i < proof->n; i++) {
        const mpl_proof_record *r = &proof->record[i];
        const char *blank = n > 0 ? " " : "";

        if (r->kind == 'k' && !r->used)
            continue;
        if (r->kind == 'k')
            name[i] = n_names++;
        MPL_TRY(mpl_reserve(proof->ctx, out, room, n + LONGEST));
        if (r->kind == 'n')
            n += (size_t)snprintf(out + n, LONGEST, "%sn", blank);
        else if (r->kind == 'k' || r->kind == 'm')
            n += (size_t)snprintf(out + n, LONGEST, "%s%c%" PRIu32, blank, r->kind,
                                  name[r->kind == 'k' ? i : (size_t)r->c]);
        else if (r->kind == 'b' || r->kind == 'x' || r->kind == 'w')
            n += (size_t)snprintf(out + n, LONGEST, "%s%c%" PRIu32 ",%" PRIu32, blank, r->kind, r->a, r->b);
        else if (r->kind == 'r')
            n += (size_t)snprintf(out + n, LONGEST, "%sr%" PRIu32 ",%" PRIu32 ",%" PRIu64, blank, r->a, r->b,
                                  r->c);
        else
            n += (size_t)snprintf(out + n, LONGEST, "%s%c%" PRIu32, blank, r->kind, r->a);
    }
    *text = out, out = NULL;
out:
    mpl_free(proof->ctx, name);
    mpl_free(proof->ctx, out);
    return st;
}

void mpl_proof_fini(mpl_proof *proof)
{
    mpl_free(proof->ctx, proof->record);
    proof->record = NULL;
    proof->n = proof->room = 0;
}
