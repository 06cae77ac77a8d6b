# Owl's four networks: a line a graph, a mark for all outputs, each planner, the best and the bound.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using 0 nooutput name 'rows'
set lmargin 38
set rmargin 4
set grid noytics
set logscale x 10
set yrange [-rows_records + 0.4 : 0.6]
set xrange [* : *] noextend
set offsets graph 0.03, graph 0.03, 0, 0
set format x '%g'
set xlabel 'bytes [10^6], logarithmic'
set key outside center top horizontal Left reverse
plot table every ::1 using 8:(-$0):($2 - $8):(0) with vectors nohead lw 1.2 lc rgb faint notitle, \
     table every ::1 using 2:(-$0):ytic(1) with points pt 7 ps 1.0 lc rgb dark title 'all outputs', \
     table every ::1 using 3:(-$0) with points pt 4 ps 1.2 lw 1.8 lc rgb '#d55e00' title 'owl', \
     table every ::1 using 4:(-$0) with points pt 6 ps 1.2 lw 1.6 lc rgb ink title 'mxnet', \
     table every ::1 using 5:(-$0) with points pt 8 ps 1.2 lw 1.6 lc rgb ink title 'pool', \
     table every ::1 using 6:(-$0) with points pt 12 ps 1.2 lw 1.6 lc rgb ink title 'nnc 2019', \
     table every ::1 using 7:(-$0) with points pt 2 ps 1.0 lw 1.8 lc rgb '#d55e00' title 'best', \
     table every ::1 using 8:(-$0) with points pt 3 ps 0.8 lw 1.2 lc rgb dark title 'bound'
