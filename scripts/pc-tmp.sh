#!/usr/bin/env bash
# Plants faults in what loops and branches are laid out by, and in what verifies that, one at a time, and demands that a test
# notices each.
#
#   scripts/plant-control.sh BUILD_FOLDER [GRAPHS]      after `make BUILD_FOLDER/libmemplan.a`
#
# A fault is a word for it, a file, and a sed command that must change it. The file is compiled anew into a folder of its own and
# linked before the library. Exit status 1 when a fault lives, or changed nothing.
set -u
build=${1:?usage: scripts/plant-control.sh BUILD_FOLDER [GRAPHS]}
graphs=${2:-3000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libs="$(sed -n 's/^FEATURE_LDLIBS *:*= *//p' "${build%/*}/features.mk") -lm -ldl -lpthread"
flags="-std=c11 -O1 -g -DMPL_CHECK=0 -ffp-contract=off -D_GNU_SOURCE -I. -I${build%/*} -isystem ${build%/*}/gen"
tests="test_planners_places test_planners_loops test_runtime_random_control"
planted=0 lived=0
for test in $tests random_control; do
    ${CC:-gcc} $flags -c -o "$work/$test.o" tests/$test.c || exit 1
done

# The first test that fails with the fault linked in.
caught_by() {
    local test objects
    for test in $tests; do
        objects=$work/$test.o
        [ $test = test_runtime_random_control ] && objects="$objects $work/random_control.o"
        ${CC:-gcc} -o "$work/$test" $objects "$work/fault.o" "$build/libmemplan.a" -lcmocka $libs || exit 2
        CONTROL_ORACLE=$graphs timeout 2000 "$work/$test" >"$work/log" 2>&1 || { echo $test; return; }
    done
}

fault() { # what, file, sed command
    mkdir -p "$work/$(dirname "$2")"
    sed "$3" "$2" >"$work/$2"
    planted=$((planted + 1))
    if cmp -s "$2" "$work/$2"; then
        echo "$1: the fault changes nothing in $2"
        lived=$((lived + 1))
    elif ! ${CC:-gcc} $flags -c -o "$work/fault.o" "$work/$2" 2>"$work/log"; then
        echo "$1: does not compile"
        cat "$work/log"
        lived=$((lived + 1))
    else
        if ! by=$(caught_by); then
            echo "$1: the tests do not link"
            exit 2
        fi
        if [ -z "$by" ]; then
            echo "$1: LIVES"
            lived=$((lived + 1))
        else
            echo "$1: caught by $by $(sed -n 's/^\[  FAILED  \] \([a-z_]*\)$/\1/p' "$work/log" | sort -u | paste -sd,)"
        fi
    fi
}

while_c=graphs/analysis/store_while.c case_c=graphs/analysis/store_case.c live_c=graphs/analysis/store_live.c
storage_c=graphs/analysis/storage.c
false "co-allocation: cells join though a step needs both" $storage_c 's/if (!cell_is_free(s, b, MPL_NONE, mpl_row(s, at)))/if (false)/'
false "co-allocation: what is needed by another may be held" $storage_c 's/if (!cell_is_free(s, mpl_cell(s, item), item, row))/if (false)/'
false "co-allocation: first values settle one cell on" $while_c '/^static void settle_firsts/,/^}/s/cell_of(head, -(int64_t)p->age)/cell_of(head, 1 - (int64_t)p->age)/'
false "co-allocation: first values settle though they are shared" $while_c 's/l->pair\[i\].shared = true;/l->pair[i].shared = false;/'
false "unroll count: one too few" $while_c 's/    head->n_cells = n;/    head->n_cells = n > 1 ? n - 1 : n;/'
false "unroll count: what overlaps is not looked at" $while_c 's/if (mpl_rows_meet(l->s, l->row, l->other) \&\& (a > 0/if (false \&\& (a > 0/'
false "unroll count: any step may be written over" $while_c 's/    if (!mpl_rows_meet_at(s, l->row, l->other, step))/    if (false)/'
false "unroll count: any operator writes over its input" $while_c 's/            mpl_in_place_operand(l->g, s->spec->root, NULL, op, i - l->g->op_in_begin\[op\]))/            true)/'
false "type II pointer: one first too few" $while_c 's/r < n_first \&\& !p->ring; r++, at/r + 1 < n_first \&\& !p->ring; r++, at/'
false "type II pointer: a first of the wrong pair" $while_c '/r < n_first && !p->ring/,/push_ref/s/push_ref(s, l->pair\[at\].first)/push_ref(s, p->first)/'
false "type II pointer: parameters of one cell are not looked at" $while_c '/^static bool turn_is_safe/,/^}/s/if (is_single(l->s, p->param))/if (true)/'
false "type II pointer: a cell goes round in two ways" $while_c 's/!holds_copied(l, item) \&\& (s->turn\[cell\] == MPL_NONE || turns_equal(s, \&s->turns\[s->turn\[cell\]\], \&t));/!holds_copied(l, item);/'
false "type II pointer: a cell goes round that a value is copied to" $while_c 's/        !holds_copied(l, item) \&\& (/        (/'
false "behind the loop: one cell on" $while_c 's/        return cell_of(head, instance);/        return cell_of(head, instance + 1);/'
false "behind the loop: the last round always counts" $while_c 's/s->ref0\[p->out\] = l->rounds <= 0 ? p->first : p->source;/s->ref0[p->out] = p->source;/'
false "behind the loop: what may hold the output is not kept" $while_c 's/    \*good = mpl_hold(s, p->out, mpl_row(s, p->out));/    *good = true;/'
false "behind the loop: any output of a loop inside is what it took over" $while_c 's/    if (same_place(s, p->source) != s->same\[p->out\])/    if (false)/'
false "copies: no room to stage them" $while_c 's/    if (bytes > 0) {/    if (bytes > 0 \&\& false) {/'
false "copies: a value is not kept until it is copied" $while_c 's/^    return mpl_hold(l->s, v, l->other);/    return true;/'
false "copies: onto what is needed if there is no round" $storage_c 's/        mpl_row_set(s, mpl_row(s, s->deps\[i\]), s->program->begin_step\[body\]);/        (void)body;/'
false "branch sharing: one place though a value stays elsewhere" $case_c 's/        o->elsewhere = true;/        o->home_used = true;/'
false "branch sharing: what stays is not kept" $case_c 's/!o->one_place \&\& mpl_hold(s, v, mpl_row(s, o->value))/!o->one_place/'
false "branch sharing: a bypass value does not live to the case's end" $live_c 's/        mpl_row_bit(mpl_row(s, b->late.item\[i\]), b->late.node\[i\]);/        (void)s;/'
false "capture lifetime: to the end of the first round" $live_c '/^static mpl_status add_end/,/^}/s/    MPL_TRY(add(b, \&b->succ, step, b->s->program->begin_step\[block\]));//'
fault "capture lifetime: not past a loop without rounds" $live_c 's/    MPL_TRY(add(b, \&b->succ, skip, b->s->program->op_step\[op\]));//'
false "capture lifetime: outputs do not hold parameters at exits" $live_c '/^static mpl_status add_exit/,/^}/s/b->s->out_live\[out\]/false/'
false "capture lifetime: further slices" $live_c 's/        MPL_TRY(add_use(b, step, g->op_in\[i\])); \/\* a further slice/        (void)i; \/* a further slice/'
# The verifier of the same: it must refuse, so the tables of wrong places notice.
v=planners/verify_flow.c w=planners/verify_flow_where.c
false "verifier: what is taken over without a copy may lie elsewhere" $v 's/    if (!same \&\& here.kind != MPL_WHERE_NOWHERE)/    if (false)/'
false "verifier: from round to round it may lie elsewhere" $v '/^static mpl_status carry/,/^}/s/MPL_TRY(refuse_elsewhere(f, t\[i\].param));/t[i].standing = true;/'
false "verifier: a write destroys nothing" $v 's/        set(state, v, false);$/        (void)v;/'
false "verifier: copies need no room to stage them" $v 's/        if (staging == MPL_NONE || used > /        if (staging != MPL_NONE \&\& used > /'
false "verifier: copies by way of any place" $v 's/        if (overlap(\&f->spots, \&f->other))$/        if (false)/'
false "verifier: where what did not run left it" $v '/^static mpl_status settled/,/^}/s/    if (op != MPL_NONE)/    if (false)/'
false "verifier: behind a loop, where what did not run left it" $v '/^static mpl_status check_finals/,/^}/s/    if (inner != MPL_NONE)/    if (false)/'
false "verifier: only the first round counts" $v 's/    if (!may_end || l.rounds < 0 || round >= f->map.n_first\[body\])/    if (false)/'
false "verifier: cycles have no period" $w 's/        \*at = \*at \/ greatest_divisor(\*at, length) \* length;/        (void)at;/'
false "verifier: slices from either end" $w 's/ \&\& (p->reversed != 0) == reversed;/;/'
false "verifier: a loop always has a round" $v 's/    if (l.rounds <= 0)$/    if (l.rounds == 0)/'
false "verifier: branches the wrong way round" $w 's/            i = m->taken\[p->of\] - 1;/            i = p->n - m->taken[p->of];/'
false "verifier: rounds known beforehand do not count" $v 's/    bool may_end = l.rounds < 0 || .*;/    bool may_end = true;/'
u=planners/verify_units.c
false "verifier: beside others, reads do not count" $u '/^static mpl_status list_touches/,/^}/s/MPL_TRY(add_value(u, op, g->op_in\[i\], false));/(void)i;/'
false "verifier: beside others, writes do not count" $u 's/    if (a->unit == b->unit || (!a->writes/    if (a->unit == b->unit || (!a->writes || !b->writes) || (!a->writes/'
false "verifier: beside others, no unit waits for another" $u '/^static bool is_later/,/^}/s/return (/return false \&\& (/'
false "verifier: beside others, all units wait" $u '/^static bool is_later/,/^}/s/return (/return true || (/'
echo "$planted faults planted, $lived lived"
[ $lived -eq 0 ]
