#!/usr/bin/env bash
# Plants faults in what lays operands inside the results of concats, pieces inside what they are pieces of, and in what runs such
# plans, one at a time, and demands that a test notices each.
#
#   scripts/plant-concat.sh BUILD_FOLDER [PATTERN]      after `make BUILD_FOLDER/libmemplan.a`; PATTERN: only faults that it matches
set -u
build=${1:?usage: scripts/plant-concat.sh BUILD_FOLDER [PATTERN]}
tests="test_runtime_concat test_runtime_concat_choices test_runtime_layout"
. scripts/plant.sh
for test in $tests; do
    compile tests/*/$test.c "$work/$test.o" || exit 1
done

# The first test that fails with the fault linked in.
caught_by() {
    local test
    for test in $tests; do
        link "$work/$test" "$work/$test.o" || return 2
        timeout 300 "$work/$test" 2>&1 | sed '/^\[  FAILED  \]/q' >"$work/log"
        [ "${PIPESTATUS[0]}" = 0 ] || { echo $test; return; }
    done
}

only() { # as fault
    [[ $1 =~ $pattern ]] && fault "$@"
}
pattern=${2-}

alias=graphs/problem/alias.c cuts=graphs/problem/cuts.c from=graphs/problem/derive/from_graph.c fill=graphs/problem/derive/from_graph_fill.c pairs=graphs/problem/derive/from_graph_pairs.c
only "place: all operands begin where the first does" $alias 's/            start += size;/            start += 0;/'
only "place: the last run begins where the one before does" $alias 's/            at += g->value_bytes\[g->op_in\[i\]\];/            at += i + 2 < g->op_in_begin[op + 1] ? g->value_bytes[g->op_in[i]] : 0;/'
only "place: an axis that counts from the end is off by one" $alias 's/axis < 0 ? axis + g->value_shape\[out\].rank : axis/axis < 0 ? axis + g->value_shape[out].rank - (axis < -1) : axis/'
only "place: a box in a box keeps the inner strides" $alias 's/        if (!mpl_strided_compose(outer, \&inner, box))/        if (inner.shape.rank == 0)/'
only "place: offsets of chains are the outer ones alone" $alias 's/            offset += alias->offset\[root\];/            offset = alias->offset[root];/'
only "place: any box is a run" $alias 's/        if (mpl_box_is_run(&laid, last) \&\& at % options->align == 0/        if (at % options->align == 0/'
only "place: a run may begin anywhere" $alias 's/ \&\& at % options->align == 0 / /'
only "place: channels that are last are taken for plain ones" $alias 's/        last = mpl_channels_last(g, alias->root\[v\]);/        last = false;/'
only "extent: the second dim from the first need not be whole" $alias 's/i = first + 1; i < part->rank/i = first + 2; i < part->rank/'
only "extent: the first dim counts though it is 1" $alias 's/    while (first < part->rank \&\& part->dim\[first\] == 1)/    while (false)/'
only "runs: each pixel's channels are taken for runs" $alias 's/    if (mpl_channels_last(g, out)) /    if (false) /'
only "runs: alignment is not looked at" $alias 's/        if (at % align != 0 || g->value_bytes\[g->op_in\[i\]\] == 0 ||/        if (g->value_bytes[g->op_in[i]] == 0 ||/'
only "runs: in a box, though views have other dims" $alias 's/((taken\[alias->root\[out\]\] \& BOXED) == 0 || boxes == BOXES))/true)/'
only "elision: one operand twice" $alias 's/            if (alias->root\[g->op_in\[k\]\] == root)/            if (false)/'
only "elision: an operand of two concats" $alias 's/(taken\[root\] \& 1) != 0 || //'
only "elision: an operand that cannot move" $alias 's/ || pinned(arg, root))/)/'
only "elision: an operand that is a piece" $alias 's/        if (alias->offset\[v\] != 0 || g->value_bytes\[root\] != g->value_bytes\[v\] ||/        if (/'
only "elision: an operand that is the first piece" $alias 's/ || g->value_bytes\[root\] != g->value_bytes\[v\] ||/ ||/'
only "elision: views of other dims" $alias 's/ || (taken\[alias->root\[g->op_in\[i\]\]\] \& VIEWED) != 0)/)/'
only "elision: views of other dims are not marked" $alias 's/!mpl_shape_equal(&g->value_shape\[v\], &g->value_shape\[alias->root\[v\]\]))/false)/'
only "elision: a result that cannot move" $alias 's/ \&\& !pinned(arg, alias->root\[out\]) \&\&/ \&\&/'
only "elision: what lies in a box is no box" $alias 's/        if (how_parts == BOXES || (how_parts == RUNS .*$/        if (how_parts == BOXES)/'
only "elision: boxes where the backend takes none" $alias 's/    uint8_t boxes = options->boxes ? /    uint8_t boxes = true ? /'
only "cuts: storage of boxes is cut" $cuts 's/            self->whole\[self->alias->root\[v\]\] = 1;$/            self->whole[self->alias->root[v]] = 0;/'
only "cuts: inputs and weights are cut" $cuts 's/(self->what != MPL_CUT_ALL && g->value_op\[v\] == MPL_NONE) || //'
only "cuts: parts end where values do" $cuts 's/ + self->align - 1) &$/) \&/'
only "cuts: the last part ends behind the storage" $cuts 's/mpl_min_u64(end, g->value_bytes\[root\])/end/'
only "cuts: a value reaches into the part behind it" $cuts 's/cuts->at\[i\] >= to ||/cuts->at[i] > to ||/'
only "cuts: a value reaches into the part before it" $cuts 's/cuts->bytes\[i\] <= from)/cuts->bytes[i] < from)/'
only "cuts: a value lies in its first part alone" $cuts 's/            if (cuts->count\[v\]++ == 0)/            if (cuts->count[v] == 0 \&\& cuts->count[v]++ == 0)/'
only "cuts: what could be overwritten whole is cut" $cuts 's/            \*any = true;/            continue;/'
only "cuts: what is only written is not needed" $cuts 's/                self->needed\[g->op_out\[i\]\] = 1;/                self->needed[g->op_out[i]] = 0;/'
only "cuts: outputs are not needed" $cuts 's/        self->needed\[g->output\[i\]\] = 1;/        self->needed[g->output[i]] = 0;/'
only "family: a part ends a step early" $fill 's/maker->part_last\[part\] + 1;/maker->part_last[part];/'
only "family: a part begins with its last step" $from 's/step < maker->part_first\[part\] ? step/step > maker->part_last[part] ? step/'
only "family: what is kept ends with its last reader" $fill 's/maker->part_kept\[part\] ? p->n_steps : //'
only "family: all parts lie at the start" $fill 's/        p->inside_at\[b + k\] = cuts->at\[part\];/        p->inside_at[b + k] = 0;/'
only "family: a part has the bytes of the first" $fill 's/        p->bytes\[b + k\] = cuts->bytes\[part\];/        p->bytes[b + k] = cuts->bytes[cuts->first[v]];/'
only "pairs: an input that lies strided" $pairs 's/ || mpl_alias_strided(&maker->ranges->alias, in) ||/ ||/'
only "pairs: a part that is needed later" $pairs 's/ \&\& maker->part_last\[part\] == step \&\&/ \&\&/'
only "pairs: a part that is kept" $pairs 's/!maker->part_kept\[part\] \&\& //'
only "pairs: a part of the same family" $pairs 's/           maker->ranges->alias.root\[in\] != maker->ranges->alias.root\[out\] \&\&/           true \&\&/'
verify=planners/verify/verify_graph.c
only "verify: a strided result overwrites" $verify 's/^        mpl_value_strided(self->map, made))$/        false)/'
only "verify: a strided value is overwritten" $verify 's/                 !mpl_value_strided(self->map, v) \&\& self->map/                 self->map/'
only "verify: a value that begins elsewhere is overwritten" $verify 's/self->map->value_offset\[v\] == at \&\& allowed/allowed/'
only "verify: parts are touched by their first value alone" $verify 's/                n = v != MPL_NONE ? n_buffers(self, v) : 0;/                n = v != MPL_NONE;/'
stage=runtime/exec/stage.c layout=runtime/exec/exec_layout.c laid=graphs/ir/layout.c
only "run: a box may reach one element behind its storage" $stage 's/(uint64_t)most >= g->value_bytes/(uint64_t)most > g->value_bytes/'
only "run: a run that is not aligned is taken as it lies" $stage 's/ ||$/ ||/;s/           exec->value_offset\[v\] % exec->backend->align != 0;/           false;/'
only "run: boxes with their channels last are copied as plain" $stage 's/            mpl_box_turn(&lay);/            (void)lay;/'
only "run: rows are copied a second time" $stage 's/lay->shape.rank - (rows ? 1 : 0)/lay->shape.rank - (rows ? 0 : 0)/'
only "run: a row is one element short" $stage 's/(uint64_t)staged->lay.shape.dim\[n - 1\] \* staged->size$/((uint64_t)staged->lay.shape.dim[n - 1] - 1) * staged->size/'
only "run: results are not put back" $stage 's/        if (exec->staged\[i\].operand >= n_in)/        if (exec->staged[i].operand > n_in)/'
only "run: copies of one operation share room" $stage 's/ \&\& exec->staged\[i - 1\].op != staged->op)/)/'
only "run: copies are not counted" $stage 's/        exec->copied_bytes += g->value_bytes\[v\];/        exec->copied_bytes += 0;/'
only "laid: a box of channels begins at the plain offset" $laid 's/        laid.offset += box->offset .*$/        laid.offset = box->offset;/'
only "laid: strides of channels are off by a dim" $laid 's/        stride\[last_order\[k\]\] = n;/        stride[last_order[k] == 3 ? 2 : last_order[k] == 2 ? 3 : last_order[k]] = n;/'
only "layout: a part belongs to the first block" $layout 's/              family ? b : exec->value_block\[holder\]);/              exec->value_block[holder]);/'
only "layout: a box begins where its plain bytes do" $layout 's/    if (mpl_value_strided(map, v))$/    if (false)/'
only "layout: a family may have gaps" $layout 's/            exec->block\[b + k\].offset != exec->block\[b\].offset + \*bytes)/            false)/'
only "layout: a value may end behind its family" $layout 's/ || end > bytes))/))/'
only "layout: a value lies in one block" $layout 's/map->value_buffer\[v\] != MPL_NONE ? map->value_buffers\[v\] : 1;/1;/'
concats=graphs/problem/derive/concats.c decide=planners/search/concat.c
only "choice: among equals the one that copies more" $concats 's/a->shared_bytes > b->shared_bytes/a->shared_bytes < b->shared_bytes/'
only "choice: all share again" $concats 's/        self->shared\[op\] = bound <= self->copying;/        self->shared[op] = 1;/'
only "choice: what cannot share does where it is asked to" $concats 's/= sharable\[op\] ? options->concat_shared\[op\] : 0;/= options->concat_shared[op];/'
only "choice: bounds decide, not plans" $decide 's/        if (decided \&\& mpl_concat_better(&one, \&best))/        if (i == 0)/'
only "choice: a search that ended early decides" $decide 's/    \*decided = plan->claim == MPL_OPTIMAL;/    *decided = true;/'
ops=runtime/cpu/cpu_ops.c cpu=runtime/cpu/cpu.c chain=runtime/cpu/loops/chain.c
only "cpu: results are written plain" $ops 's/    if (self->stride != NULL \&\& self->stride\[1\] != NULL)/    if (false)/'
only "cpu: any image is one piece" $cpu 's/    return mpl_strided_contiguous(&v);/    return true;/'
only "cpu: a chain reads plain" $chain 's/        lay(&chain->f.load\[i\].from, out, stride\[i\], last);/        lay(\&chain->f.load[i].from, out, NULL, last);/'
only "cpu: a chain writes plain" $chain 's/    lay(&chain->f.to, out, stride\[n_in\], last);/    lay(\&chain->f.to, out, NULL, last);/'
planted_all
