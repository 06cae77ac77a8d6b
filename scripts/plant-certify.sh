#!/usr/bin/env bash
# Plants faults in the checker of certificates, one at a time, and demands that a test notices each.
#
#   scripts/plant-certify.sh BUILD_FOLDER      after `make` of the three tests below
set -u
build=${1:?usage: scripts/plant-certify.sh BUILD_FOLDER}
. scripts/plant.sh
export MPL_MUTANTS=200 MPL_FORGERIES=4000

# The rows of one condition each first, then all that the tests have.
caught_by() {
    local test
    for test in "certify_general cheats_are_refused" "certify cheats_are_refused" "forgeries *" "certify_general *" "certify *"; do
        link "$work/test" "$build/tests/test_planners_${test% *}.o" || return 2
        MPL_ONLY=${test#* } timeout 300 "$work/test" >"$work/log" 2>&1 || { echo "test_planners_${test% *}"; return; }
    done
}

# Not here, since nothing false follows from them: `o` tears a body (whoever goes, it is a relaxation), or rounds sizes after a
# split (all offsets are multiples of the grain there, too).
c=planners/verify/certify.c
fault "f1: a witness of another pool" planners/verify/verify_claims.c 's/        if (p->pool\[b\] != 0)$/        if (false)/'
fault "f2: a set keeps what a branch of a pair proved" $c 's/    while (self->n_joined > pair->n_joined) {/    while (false) {/'
fault "f3: one memory refuted for several" $c 's/if (proof->steps != NULL && plan->spread.n > 0 && proof->pool == 0)/if (false)/'
fault "f4: a bound on cost believed" $c 's/        return least_cost(p, &plan->spread) >= plan->spread.cost_bound;/        return true;/'
fault "witness: the two of a pair" planners/verify/verify_claims.c 's/if (mpl_bit_has(members, p->in_place_in\[k\]) && mpl_bit_has(members, p->in_place_out\[k\]))/if (false)/'
fault "witness: who is before another" planners/verify/verify_claims.c 's/        if (behind != 0)/        if (false)/; s/            if (behind != 0)/            if (false)/'
fault "witness: lives that do not meet" planners/verify/verify_claims.c 's/    \*yes = needed == self->plan->n_witness;/    *yes = true;/'
fault "witness: rounded to a coarser slot" planners/verify/verify_claims.c 's/p->pool\[b\] == 0 && p->align\[b\] < grain/p->pool[b] == 0 \&\& b == 0/'
fault "witness: the last slot counts whole" planners/verify/verify_claims.c 's/sum - rest/sum/g'
fault "prices: a memory without room" $c 's/spread->capacity\[k\] >= p->bytes\[b\]/true/'
fault "prices: a dearer memory" $c 's/spread->price\[k\] < price/spread->price[k] > 0 \&\& spread->price[k] < price/'
fault "claim: another pool's bound" $c 's/(proved->pool == 0 ? proved->bound : 0) >= plan/proved->bound >= plan/'
fault "claim: another pool's capacity" $c 's/p->pool_capacity\[proved->pool\];/p->pool_capacity[0];/'
fault "claim: a byte too few is refuted" $c 's/proved->bound > p->pool_capacity/proved->bound >= p->pool_capacity/'
fault "claim: a feasible bound needs no proof" $c 's/(plan->claim == MPL_FEASIBLE && plan->refutation.steps != NULL)/false/'
fault "ample: aligns are left out" $c 's/p->bytes\[b\] + est + p->align\[b\]) < MOST/p->bytes[b] + est) < MOST/'
fault "first: the top of a fixed buffer" $c 's/top = fixed && (int64_t)est < top ? (int64_t)est : top;/(void)fixed;/'
fault "first: a top one too low" $c 's/(int64_t)(proof->within - p->bytes\[b\]);/(int64_t)(proof->within - p->bytes[b]) - 1;/'
fault "first: who is of another pool" $c 's/\.active = p->pool\[b\] == proof->pool,/.active = true,/'
fault "rivals: any two of a pair" $c 's/return pair == NULL || pair->apart > 0;/return true;/'
fault "rivals: apart for good" $c 's/        there->apart--, back->apart--;/        ;/'
fault "d: nobody is left out" $c '/^static void rule_drop/,/^}/s/active = false/active = self->st == MPL_OK/'
fault "o: all stay" $c '/^static void rule_connected/,/^}/s/    foreach (self, i)$/    if (false) foreach (self, i)/'
fault "o: rounded to the greatest align" $c 's/(self->p->align\[queue\[k\].id\] < grain)/(k == 0 || self->p->align[queue[k].id] > grain)/'
fault "c: no look at rivals" $c 's/            if (!rivals(self, i, &self->item\[w/            if (false \&\& !rivals(self, i, \&self->item[w/'
fault "c: the last word of a set alone" $c '/^static void rule_set/,/^}/s/for (size_t w = 0;/for (size_t w = self->n_words;/'
fault "s: too late" $c 's/    if (self->moved)$/    if (false)/'
fault "s: the greater top" $c 's/was.top = a->top < b->top ?/was.top = a->top > b->top ?/'
fault "s: the lesser align" $c 's/was.align = a->align > b->align ?/was.align = a->align < b->align ?/'
fault "s: est of the first" $c 's/raise_est(self, a, was.est > a->est ? was.est : a->est);/raise_est(self, a, a->est);/'
fault "s: states of a branch" $c 's/        self->numbered.at\[i\].refuted = false;/        ;/'
fault "s: no second child" $c '/kept k = {PAIR/,/}/s/\.n_left = 2,/.n_left = 1,/'
fault "s: the second child has moved" $c '/^static void next_of_pair/,/^}/s/    self->moved = false;/    ;/'
fault "b: the greatest est" $c 's/self->member\[m\]->est < floor ? self->member\[m\]->est : floor;/self->member[m]->est;/'
fault "b: nobody may be missing" $c 's/(!k->refuted || (i->candidate && !seen->marked))/i->candidate \&\& !seen->marked/'
fault "b: a candidate may be missing" $c 's/(!k->refuted || (i->candidate && !seen->marked))/!k->refuted/'
fault "b: no children asked" $c 's/    if ((rule->place == CHILD) != self->waiting)/    if (false)/; s/    else if ((rule->place == CHILD) != self->waiting)/    else if (false)/'
fault "twins: bodies of several" $c 's/    if (i->next != i->id || j->next != j->id || i->size/    if (i->size/'
fault "twins: another size" $c 's/ || i->size != j->size || / || /'
fault "twins: another align" $c 's/ || i->align != j->align ||/ ||/'
fault "twins: another est" $c 's/        i->est != j->est || i->top/        i->top/'
fault "twins: another top" $c 's/ || i->top != j->top)/)/'
fault "twins: other rivals" $c 's/rivals(self, i, k) != rivals(self, j, k))/false)/'
fault "p: >= for >" $c 's/j->est + distance(self, j, i) > i->est/j->est + distance(self, j, i) >= i->est/'
fault "p: its own size for what it keeps" $c 's/raise_est(self, j, i->est + distance(self, i, j));/raise_est(self, j, i->est + i->size);/'
fault "p: the body stays" $c 's/j->active = j->active && j->body != i->body;/j->active = j->active \&\& j != i;/'
fault "n: outside only" $c 's/for (int inside = 0; inside < 2; inside++)/for (int inside = 0; inside < 1; inside++)/'
fault "n: inside only" $c 's/least = inside ? own\[i->id\].est : BEYOND;/least = BEYOND;/'
fault "n: est of candidates for their outside" $c 's/                own\[i->id\].est = least;/                raise_est(self, i, least);/'
fault "n: of who is gone" $c 's/bool counts = j->active && in_set/bool counts = in_set/'
fault "r: not of the set" $c 's/if (!in_set(self, x->id, self->number\[1\]) || n_sums/if (n_sums/'
fault "r: the least top" $c 's/i->top + i->size > highest ?/i->top + i->size < highest || highest == 0 ?/'
fault "r: one sum too few" $c 's/(high - 1 - floor) \/ unit)/(high - 2 - floor) \/ unit)/'
fault "r: waste is forbidden" $c 's/from > 0 ? (from + unit - 1) \/ unit : 0/(low - floor) \/ unit/'
fault "r: who ends there" $c 's/self->member\[k\]->est + self->member\[k\]->size <= low;/self->member[k]->est + self->member[k]->size < low;/'
fault "r: the first stretch alone" $c 's/high = k < n ? self->member\[k\]->est + self->member\[k\]->size : est;/high = est;/'
fault "u: a higher est" $c 's/(i->est > u.est || u.size % i->align != 0)/u.size % i->align != 0/'
fault "u: alignments" $c 's/(i->est > u.est || u.size % i->align != 0)/i->est > u.est/'
fault "u: who is no rival stays" $c 's/i->active = i->active && rivals(self, &u, i);/i->active = i->active \&\& i->id != u.id;/'
fault "u: the lesser top" $c 's/i->top > u.top - i->size + u.size ?/i->top <= u.top - i->size + u.size ?/'
fault "x: lower ones count" $c 's/sum += self->member\[k\]->est >= least ?/sum += true ?/'
fault "x: >= for >" $c 's/least + sum - self->member\[k\]->size <= self->member\[k\]->top)/least + sum - self->member[k]->size < self->member[k]->top)/'
fault "x: an empty set" $c 's/    if (sum == 0)/    if (false)/'
fault "x: one of them is enough" $c 's/        if (self->member\[k\]->est >= least &&$/        if (k == 0 \&\& self->member[k]->est >= least \&\&/'
fault "z: >= for >" $c 's/    if (i->est <= i->top)/    if (i->est < i->top)/'
fault "z: any body" $c 's/        if (j->active && rivals(self, i, j))/        if (j != i)/'
fault "m: before it is refuted" $c 's/number < self->numbered.n && self->numbered.at\[number\].refuted;/number < self->numbered.n;/'
fault "m: who is gone" $c 's/(then->active && (!i->active || i->est/(then->active \&\& (i->est/'
fault "m: a lower est" $c 's/ || i->est < then->est || / || /'
fault "m: a higher top" $c 's/ || i->top > then->top)/)/'
fault "text: a buffer that is gone" $c 's/(self->number\[n\] >= self->p->n || !self->item\[self->number\[n\]\].active)/(self->number[n] >= self->p->n)/'
fault "text: what follows" $c "s/    if (c.st == MPL_OK \&\& \*c.at != '.0')/    if (false)/"
planted_all
