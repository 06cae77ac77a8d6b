#!/usr/bin/env bash
# Plants faults in views and tensor_ssa, one at a time, and demands that the test notices each.
#
#   scripts/plant-views.sh BUILD_FOLDER [PROGRAMS]      after `make BUILD_FOLDER/tests/test_graphs_views`
set -u
build=${1:?usage: scripts/plant-views.sh BUILD_FOLDER [PROGRAMS]}
programs=${2:-2000}
. scripts/plant.sh

caught_by() {
    link "$work/test" "$build/tests/test_graphs_views.o" || return 2
    timeout 300 "$work/test" "$programs" >"$work/log" 2>&1 || echo test_graphs_views
}

pass=graphs/passes/ssa/tensor_ssa
fault "pass-up: an ancestor is left out" $pass.c 's/parent = views->parent\[child\];/parent = root;/'
fault "pass-up: the old value goes up" $pass.c 's/self->now\[v\] = made;/(void)made;/'
fault "pass-up: the box of the root for the parent's" $pass.c 's/&views->of_parent\[child\], parent, &made/\&views->of_root[child], parent, \&made/'
fault "pass-up: an element that stands twice" $pass.c 's/if (!stands_once(views, v))/if (false)/'
fault "pass-down: no view is read anew" $pass.c 's/if (views->root\[other\] == root && !self->path/if (false \&\& !self->path/'
fault "pass-down: the first view is left out" $pass.c 's/!self->path\[other\] && g->value_op/!self->path[other] \&\& other > v \&\& g->value_op/'
fault "pass-down: from what the view was" $pass.c 's/self->now\[self->ssa->views->parent\[v\]\]/self->now[self->ssa->views->root[v]]/'
fault "overlap: meeting boxes are apart" $pass"_reduce.c" 's/case MPL_MEET:/case MPL_MEET: return true;/'
fault "overlap: bounds off by one" graphs/ir/strided.c 's/high\[0\] < low\[1\] || /high[0] <= low[1] || /'
fault "overlap: the divisor is forgotten" graphs/ir/strided.c 's/target % self->unit\[at\] != 0/target % self->unit[at] == 1/'
fault "overlap: reach without the last" graphs/ir/strided.c 's/target > self->reach\[at\]/target >= self->reach[at]/'
fault "overlap: strides taken together lose one" graphs/ir/strided.c 's/s.item\[s.n - 1\].most += s.item\[i\].most;/(void)0;/'
fault "merge: the inner box alone" $pass"_reduce.c" 's/    node->box = box;$/    node->box = node->box;/'
fault "merge: composed with the wrong offset" graphs/ir/strided.c 's/    made.offset = joined.offset;/    made.offset = 0;/'
fault "merge: no look at the range of an axis" graphs/ir/strided.c 's/low\[g\] < 0 || high\[g\] >= joined.shape.dim\[g\]/false/'
fault "merge: parts of anything" $pass"_reduce.c" 's/find_contents(ssa, v, &node->box, place) != mpl_ssa_in(ssa, part, 0) ||/false ||/'
fault "merge: a version that is gone" $pass"_reduce.c" 's/    v = mpl_ssa_find(ssa, mpl_ssa_out(ssa, node));/    v = mpl_ssa_in(ssa, node, 1);/'
fault "removal: an access of any box" $pass"_reduce.c" 's/mpl_strided_equal(&ssa->node\[i\].box, box) &&/mpl_shape_equal(\&ssa->node[i].box.shape, \&box->shape) \&\&/'
fault "removal: the assign before, of any box" $pass"_reduce.c" 's/if (mpl_strided_equal(&before->box, box)) {/if (true) {/'
fault "removal: the assign before, though it is read" $pass"_reduce.c" 's/before != NULL && ssa->value\[v\].n_uses == 1/before != NULL/'
fault "removal: what is written back, of any box" $pass"_reduce.c" 's/mpl_strided_equal(&read->box, &node->box)) {/true) {/'
fault "fuse: loads that are another's" $pass"_fuse.c" 's/made.n_loads + g->step\[j\].of/g->step[j].of/'
fault "fuse: the load's own box" $pass"_fuse.c" 's/mpl_strided_compose(&g->load\[j\].from, &f->load\[k\].from/mpl_strided_compose(\&f->load[k].from, \&g->load[j].from/'
fault "fuse: writes over what it reads" $pass"_fuse.c" 's/        if (fused->load\[i\].input == base && !mpl_strided_equal/        if (false \&\& !mpl_strided_equal/'
planted_all
