# What an order saves: a line a graph, the part of its program order's memory that the least order leaves.
load 'scripts/style.gp'
set bmargin 4
# of a name with settings, the network and what tells it from the one before
fused(name) = strstrt(name, 'form=fused') > 0 ? upto('image=', name).'sparse, fused' : name
sparse(name) = strstrt(name, 'rewired=100') > 0 ? upto('image=', name).'sparse'.after('rewired=100', name) : name
short(name) = swap('layers=1', 'unrolled', fused(sparse(swap('regime=', '', name))))
set lmargin 26
set rmargin 4
set grid noytics
stats table every ::1 using 2 nooutput name 'rows'
set yrange [-rows_records + 0.4 : 0.6]
set xrange [0.5 : 1.02]
set format x '%g'
set xlabel 'planned memory, part of that in program order'
set key outside center top horizontal Left reverse
plot table every ::1 using ($3 / $2):(-$0):(1 - $3 / $2):(0) with vectors nohead lw 1.2 lc rgb faint notitle, \
     table every ::1 using (1):(-$0):ytic(short(strcol(1))) with points pt 7 ps 1.0 lc rgb dark title 'program order', \
     table every ::1 using ($3 / $2):(-$0) with points pt 4 ps 1.2 lw 1.8 lc rgb '#d55e00' title 'the least order'
