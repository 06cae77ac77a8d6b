/* proof.c -- the writer of refutations. See proof.h. */
#include "planners/plan/proof.h"

#define LONGEST 48 /* characters of a record */

/* ---- records ---- */

void mpl_proof_add(mpl_proof *proof, char kind, uint32_t a, uint32_t b, uint64_t c)
{
    if (proof->failed)
        return;
    proof->full = proof->n >= MPL_PROOF_MOST;
    if (proof->full ||
        mpl_reserve(proof->ctx, proof->record, proof->room, proof->n + 1) != MPL_OK) {
        proof->failed = true;
        return;
    }
    proof->record[proof->n++] = (mpl_proof_record){kind, false, a, b, c};
    if (kind == 'm' || kind == 'b')
        proof->record[a].used = true;
    if (kind == 'x' || kind == 'r')
        proof->record[b].used = true;
}

void mpl_proof_fini(mpl_proof *proof)
{
    mpl_free_each(proof->ctx, proof->record, proof->slot);
    *proof = (mpl_proof){.ctx = proof->ctx};
}

/* ---- failed states ---- */

static mpl_proof_slot *find(const mpl_proof *proof, uint64_t name)
{
    size_t k = (size_t)name & (proof->n_slots - 1);

    while (proof->slot[k].at != 0 && proof->slot[k].name != name)
        k = (k + 1) & (proof->n_slots - 1);
    return &proof->slot[k];
}

size_t mpl_proof_known(const mpl_proof *proof, uint64_t name)
{
    const mpl_proof_slot *slot = proof->n_used > 0 ? find(proof, name) : NULL;

    if (slot == NULL || slot->at == 0 || slot->at > proof->n)
        return SIZE_MAX;
    return proof->record[slot->at - 1].kind == 'k' && proof->record[slot->at - 1].c == name
               ? slot->at - 1
               : SIZE_MAX;
}

void mpl_proof_remember(mpl_proof *proof, uint64_t name, size_t at)
{
    mpl_proof_slot *slot;

    if (2 * proof->n_used >= proof->n_slots) {
        mpl_proof larger = {.n_slots = proof->n_slots > 0 ? 4 * proof->n_slots : 1024};

        if (mpl_new(proof->ctx, larger.slot, larger.n_slots) != MPL_OK) {
            proof->failed = true;
            return;
        }
        for (size_t k = 0; k < proof->n_slots; k++)
            if (proof->slot[k].at != 0)
                *find(&larger, proof->slot[k].name) = proof->slot[k];
        mpl_free(proof->ctx, proof->slot);
        proof->slot = larger.slot;
        proof->n_slots = larger.n_slots;
    }
    slot = find(proof, name);
    proof->n_used += slot->at == 0;
    *slot = (mpl_proof_slot){name, at + 1};
}

void mpl_proof_forget(mpl_proof *proof)
{
    mpl_free(proof->ctx, proof->slot);
    proof->slot = NULL;
    proof->n_slots = proof->n_used = 0;
}

/* ---- text ---- */

/* Writes a record, returns its length. number[]: of sets and states, by their first record. */
static size_t put(char *out, const mpl_proof_record *record, const uint32_t *number)
{
    int n;

    if (record->kind == 'n' || record->kind == 'k')
        n = snprintf(out, LONGEST, "%c", record->kind);
    else if (record->kind == 'm')
        n = snprintf(out, LONGEST, "m%" PRIu32, number[record->a]);
    else if (record->kind == 'b')
        n = snprintf(out, LONGEST, "b%" PRIu32 ",%" PRIu32, number[record->a], record->b);
    else if (record->kind == 'c' || record->kind == 'x')
        n = snprintf(out, LONGEST, "%c%" PRIu32 ",%" PRIu32, record->kind, record->a,
                     number[record->b]);
    else if (record->kind == 's')
        n = snprintf(out, LONGEST, "s%" PRIu32 ",%" PRIu32, record->a, record->b);
    else if (record->kind == 'r')
        n = snprintf(out, LONGEST, "r%" PRIu32 ",%" PRIu32 ",%" PRIu64, record->a,
                     number[record->b], record->c);
    else
        n = snprintf(out, LONGEST, "%c%" PRIu32, record->kind, record->a);
    return (size_t)n;
}

mpl_status mpl_proof_text(const mpl_proof *proof, char **text)
{
    mpl_status st = MPL_OK;
    uint32_t *number = NULL, n_states = 0, n_sets = 0;
    char *out = NULL;
    size_t n = 0, room = 0;

    MPL_TRY(mpl_new(proof->ctx, number, proof->n));
    for (size_t i = 0; i < proof->n; i++) {
        const mpl_proof_record *record = &proof->record[i];

        if ((record->kind == 'k' && !record->used) ||
            (record->kind == 'c' && !proof->record[record->b].used))
            continue;
        if (record->kind == 'k')
            number[i] = n_states++;
        else if (record->kind == 'c' && record->b == i)
            number[i] = n_sets++;
        MPL_TRY(mpl_reserve(proof->ctx, out, room, n + LONGEST));
        if (n > 0)
            out[n++] = ' ';
        n += put(out + n, record, number);
    }
    *text = out, out = NULL;
out:
    mpl_free_each(proof->ctx, number, out);
    return st;
}
