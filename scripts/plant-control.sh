#!/usr/bin/env bash
# Plants faults in what loops and branches are laid out by, and in what verifies that, one at a time, and demands that a test
# notices each.
#
#   scripts/plant-control.sh BUILD_FOLDER [GRAPHS]      after `make BUILD_FOLDER/libmemplan.a`
set -u
build=${1:?usage: scripts/plant-control.sh BUILD_FOLDER [GRAPHS]}
graphs=${2:-3000}
tests="test_planners_places test_planners_loops test_runtime_random_control"
. scripts/plant.sh
for test in $tests random_control; do
    compile tests/*/$test.c "$work/$test.o" || exit 1
done

# The first test that fails with the fault linked in.
caught_by() {
    local test objects
    for test in $tests; do
        objects=$work/$test.o
        [ $test = test_planners_places ] || objects="$objects $work/random_control.o"
        link "$work/$test" $objects || return 2
        CONTROL_ORACLE=$graphs timeout 300 "$work/$test" >"$work/log" 2>&1 || { echo $test; return; }
    done
}

while_c=graphs/problem/control/store_while.c pairs_c=graphs/problem/control/store_pairs.c
copied_c=graphs/problem/control/store_copied.c case_c=graphs/problem/control/store_case.c live_c=graphs/problem/control/store_live.c
storage_c=graphs/problem/control/storage.c items_c=graphs/problem/control/store_items.c
fault "co-allocation: cells join though a step needs both" $items_c 's/if (!cell_is_free(store, b, MPL_NONE, mpl_row(store, at)))/if (false)/'
fault "co-allocation: what is needed by another may be held" $items_c 's/if (!cell_is_free(store, mpl_cell(store, item), item, row))/if (false)/'
fault "co-allocation: first values settle one cell on" $while_c '/^static void settle_firsts/,/^}/s/cell_of(head, -(int64_t)pair->age)/cell_of(head, 1 - (int64_t)pair->age)/'
fault "co-allocation: first values settle though they are shared" $pairs_c 's/loop->pair\[i\].shared = true;/loop->pair[i].shared = false;/'
fault "unroll count: one too few" $while_c 's/    head->n_cells = n;/    head->n_cells = n > 1 ? n - 1 : n;/'
fault "unroll count: what overlaps is not looked at" $while_c 's/if (mpl_rows_meet(loop->store, loop->row, loop->other) \&\&$/if (false \&\&/'
fault "unroll count: any step may be written over" $while_c 's/    if (!mpl_rows_meet_at(s, loop->row, loop->other, step))/    if (false)/'
fault "unroll count: any operator writes over its input" $while_c 's/            mpl_in_place_operand(loop->g, s->spec->root, NULL, op, i - loop->g->op_in_begin\[op\]))/            true)/'
fault "type II pointer: one first too few" $while_c 's/r < n_first \&\& !pair->ring; r++, at/r + 1 < n_first \&\& !pair->ring; r++, at/'
fault "type II pointer: a first of the wrong pair" $while_c '/r < n_first && !pair->ring/,/push_ref/s/push_ref(s, loop->pair\[at\].first)/push_ref(s, pair->first)/'
fault "type II pointer: parameters of one cell are not looked at" $while_c '/^static bool turn_is_safe/,/^}/s/if (is_single(loop->store, pair->param))/if (true)/'
fault "type II pointer: a cell goes round in two ways" $while_c 's/(s->turn\[cell\] == MPL_NONE || turns_equal(s, \&s->turns\[s->turn\[cell\]\], \&t));/true;/'
fault "type II pointer: a cell goes round that a value is copied to" $while_c 's/\*good = !holds_copied(loop, item) \&\&/*good =/'
fault "behind the loop: one cell on" $while_c 's/        return cell_of(head, instance);/        return cell_of(head, instance + 1);/'
fault "behind the loop: the last round always counts" $while_c 's/s->ref0\[pair->out\] = loop->rounds <= 0 ? pair->first : pair->source;/s->ref0[pair->out] = pair->source;/'
fault "behind the loop: what may hold the output is not kept" $while_c 's/    \*good = mpl_hold(s, pair->out, mpl_row(s, pair->out));/    *good = true;/'
fault "behind the loop: any output of a loop inside is what it took over" $while_c 's/    if (mpl_loop_same_place(s, pair->source) != s->same\[pair->out\])/    if (false)/'
fault "copies: no room to stage them" $copied_c 's/    if (bytes > 0) {/    if (bytes > 0 \&\& false) {/'
fault "copies: a value is not kept until it is copied" $copied_c 's/^    return mpl_hold(loop->store, v, loop->other);/    return true;/'
fault "copies: onto what is needed if there is no round" $storage_c 's/        mpl_row_set(store, mpl_row(store, store->deps\[i\]), store->program->begin_step\[body\]);/        (void)body;/'
fault "branch sharing: one place though a value stays elsewhere" $case_c 's/        o->elsewhere = true;/        o->home_used = true;/'
fault "branch sharing: what stays is not kept" $case_c 's/!o->one_place \&\& mpl_hold(store, v, mpl_row(store, o->value))/!o->one_place/'
fault "branch sharing: a bypass value does not live to the case's end" $live_c 's/        mpl_bit_add(mpl_row(store, late->item\[i\]), late->node\[i\]);/        (void)store;/'
fault "capture lifetime: to the end of the first round" $live_c '/^static mpl_status add_end/,/^}/s/    MPL_PASS(add(self, SUCC, step, self->store->program->begin_step\[block\]));//'
fault "capture lifetime: outputs do not hold parameters at exits" $live_c '/^static mpl_status add_exit/,/^}/s/self->store->out_live\[out\]/false/'
fault "capture lifetime: further slices" $live_c 's/        MPL_PASS(add_use(self, step, g->op_in\[i\])); \/\* a further slice/        (void)i; \/* a further slice/'
# The verifier of the same: it must refuse, so the tables of wrong places notice.
s=planners/verify/verify_flow_state.c l=planners/verify/verify_flow_loop.c w=planners/verify/verify_flow_where.c
fault "verifier: what is taken over without a copy may lie elsewhere" $s 's/    if (!same \&\& here.kind != MPL_WHERE_NOWHERE)/    if (false)/'
fault "verifier: from round to round it may lie elsewhere" $l '/^static mpl_status carry/,/^}/s/MPL_TRY(mpl_flow_elsewhere(run, t\[i\].param));/t[i].standing = true;/'
fault "verifier: a write destroys nothing" $s 's/        mpl_flow_set(state, v, false);$/        (void)v;/'
fault "verifier: copies need no room to stage them" $l 's/        if (staging == MPL_NONE || used > /        if (staging != MPL_NONE \&\& used > /'
fault "verifier: copies by way of any place" $l 's/        if (!mpl_flow_overlap(\&run->spots, \&run->other))$/        if (true)/'
fault "verifier: where what did not run left it" $s '/^mpl_status mpl_flow_settled/,/^}/s/    if (op != MPL_NONE)/    if (false)/'
fault "verifier: behind a loop, where what did not run left it" $l '/^static mpl_status check_finals/,/^}/s/    if (inner != MPL_NONE)/    if (false)/'
fault "verifier: only the first round counts" $l 's/    if (l.most < 0 || round + 1 < l.most)/    if (false)/'
fault "verifier: cycles have no period" $w 's/        \*at = \*at \/ greatest_divisor(\*at, length) \* length;/        (void)at;/'
fault "verifier: slices from either end" $w 's/ \&\& (place->reversed != 0) == reversed \&\&/ \&\&/'
fault "verifier: a loop always has a round" $l 's/    if (l.rounds <= 0)$/    if (l.rounds == 0)/'
fault "verifier: branches the wrong way round" $w 's/            i = map->taken\[place->of\] - 1;/            i = place->n - map->taken[place->of];/'
fault "verifier: rounds known beforehand do not count" $l 's/    bool may_end = l.rounds < 0 || .*;/    bool may_end = true;/'
u=planners/verify/verify_units.c
fault "verifier: beside others, reads do not count" $u '/^static mpl_status list_touches/,/^}/s/MPL_PASS(add_value(self, op, g->op_in\[i\], false));/(void)i;/'
fault "verifier: beside others, writes do not count" $u 's/    if (a->unit == b->unit || (!a->writes/    if (a->unit == b->unit || (!a->writes || !b->writes) || (!a->writes/'
fault "verifier: beside others, no unit waits for another" $u '/^static bool is_later/,/^}/s/return (/return false \&\& (/'
fault "verifier: beside others, all units wait" $u '/^static bool is_later/,/^}/s/return (/return true || (/'
planted_all
