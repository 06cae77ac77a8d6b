# The running example: graph, conflicts, lifetimes, two plans with the ranges that they hand on.
load 'scripts/style.gp'
set terminal svg size 800,720 dynamic font 'sans-serif,13' linewidth 1 noenhanced background '#ffffff'
if (exists('png')) set terminal pngcairo size 800,720 font 'sans-serif,10' noenhanced background '#ffffff'
# column `c` where panel and shape are these, else nothing
at(panel, shape, c) = strcol(1) eq panel && strcol(2) eq shape ? column(c) : NaN
told(panel, shape) = strcol(1) eq panel && strcol(2) eq shape ? strcol(7) : ''
head = ''
stats table every ::1 using (head = strcol(1) eq 'greedy_size' && strcol(2) eq 'bound' ? strcol(7) : head, 1) nooutput
title_size = head
head = ''
stats table every ::1 using (head = strcol(1) eq 'exact' && strcol(2) eq 'bound' ? strcol(7) : head, 1) nooutput
title_least = head
set multiplot
unset key
unset grid
set style fill solid 0.25 border lc rgb ink

set title 'The graph: operations' offset 0, -0.5
unset border
unset tics
set origin 0, 0.70
set size 0.64, 0.30
set xrange [-0.5:7.5]
set yrange [1.7:-0.7]
plot table every ::1 using (at('graph', 'edge', 3) + 0.12):(at('graph', 'edge', 4)):(at('graph', 'edge', 5) - at('graph', 'edge', 3) - 0.24):(at('graph', 'edge', 6) - at('graph', 'edge', 4)) with vectors filled head lc rgb faint, \
     table every ::1 using (at('graph', 'node', 3)):(at('graph', 'node', 4)) with points pt 7 ps 1.2 lc rgb dark, \
     table every ::1 using (at('graph', 'node', 3)):(at('graph', 'node', 4)):(told('graph', 'node')) with labels offset 0, -1.1 font 'sans-serif,11' textcolor rgb ink

set title 'Conflicts (dashed: in other executions alone)'
set origin 0.62, 0.68
set size 0.38, 0.32
set xrange [-1.7:1.7]
set yrange [-1.4:1.4]
plot table every ::1 using (at('conflicts', 'serial', 3)):(at('conflicts', 'serial', 4)):(at('conflicts', 'serial', 5) - at('conflicts', 'serial', 3)):(at('conflicts', 'serial', 6) - at('conflicts', 'serial', 4)) with vectors nohead lc rgb ink lw 1.4, \
     table every ::1 using (at('conflicts', 'parallel', 3)):(at('conflicts', 'parallel', 4)):(at('conflicts', 'parallel', 5) - at('conflicts', 'parallel', 3)):(at('conflicts', 'parallel', 6) - at('conflicts', 'parallel', 4)) with vectors nohead dt 2 lw 1.6 lc rgb '#d55e00', \
     table every ::1 using (at('conflicts', 'node', 3)):(at('conflicts', 'node', 4)) with points pt 7 ps 1.2 lc rgb dark, \
     table every ::1 using (at('conflicts', 'node', 3) * 1.32):(at('conflicts', 'node', 4) * 1.2):(told('conflicts', 'node')) with labels font 'sans-serif,11' textcolor rgb ink

set border 3 lc rgb '#303030'
set tics out nomirror textcolor rgb '#202020'
set xtics 1
set grid x lc rgb '#dddddd'
set title 'Lifetimes by step [MiB]'
set origin 0, 0.36
set size 1, 0.33
set xrange [0:9]
set yrange [7:0]
unset ytics
set xlabel 'step' offset 0, 0.7
plot table every ::1 using ((at('lifetimes', 'box', 3) + at('lifetimes', 'box', 5)) / 2):(at('lifetimes', 'box', 4) + 0.5):(at('lifetimes', 'box', 3)):(at('lifetimes', 'box', 5)):(at('lifetimes', 'box', 4) + 0.12):(at('lifetimes', 'box', 6) - 0.12) with boxxyerror lc rgb dark, \
     table every ::1 using (at('lifetimes', 'pair', 3)):(at('lifetimes', 'pair', 4)):(0):(at('lifetimes', 'pair', 6) - at('lifetimes', 'pair', 4)) with vectors filled head lc rgb '#d55e00' lw 2, \
     table every ::1 using ((at('lifetimes', 'box', 3) + at('lifetimes', 'box', 5)) / 2):(at('lifetimes', 'box', 4) + 0.5):(told('lifetimes', 'box')) with labels font 'sans-serif,11' textcolor rgb ink, \
     table every ::1 using (at('lifetimes', 'pair', 3)):(at('lifetimes', 'pair', 6)):(told('lifetimes', 'pair')) with labels left offset 8.5, 0 font 'sans-serif,11' textcolor rgb '#d55e00'

set size 0.5, 0.37
set yrange [0:21]
set ytics 3
set ylabel 'address [MiB]' offset 1.5, 0
do for [i = 0:1] {
    panel = i == 0 ? 'greedy_size' : 'exact'
    set title i == 0 ? title_size : title_least
    set origin 0.5 * i, 0
    plot table every ::1 using ((at(panel, 'box', 3) + at(panel, 'box', 5)) / 2):(at(panel, 'box', 4)):(at(panel, 'box', 3)):(at(panel, 'box', 5)):(at(panel, 'box', 4)):(at(panel, 'box', 6)) with boxxyerror lc rgb light, \
         table every ::1 using (at(panel, 'edge', 3)):(at(panel, 'edge', 4)):(at(panel, 'edge', 5) - at(panel, 'edge', 3)):(0) with vectors filled head lc rgb dark lw 2, \
         table every ::1 using (at(panel, 'edge', 3)):(at(panel, 'edge', 4)):(told(panel, 'edge')) with labels offset -0.9, 0 font 'sans-serif,10' textcolor rgb dark, \
         table every ::1 using ((at(panel, 'box', 3) + at(panel, 'box', 5)) / 2):((at(panel, 'box', 4) + at(panel, 'box', 6)) / 2):(told(panel, 'box')) with labels font 'sans-serif,11' textcolor rgb ink, \
         table every ::1 using (at(panel, 'bound', 3)):(at(panel, 'bound', 4)):(at(panel, 'bound', 5)):(0) with vectors nohead dt 2 lc rgb '#d55e00' lw 1.6
}
unset multiplot
