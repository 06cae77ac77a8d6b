# What an order saves: a line a network, the part of its program order's memory that the order searched for leaves.
load 'scripts/style.gp'
set bmargin 4
set lmargin 16
set rmargin 4
set grid noytics
stats table every ::1 using (strcol(2) ne '-' ? 1 : NaN) nooutput name 'rows'
set yrange [-rows_records + 0.4 : 0.6]
set xrange [0 : 1.05]
set format x '%g'
set xlabel 'planned memory, part of that in program order'
set key outside center top horizontal Left reverse
set arrow from 2.0 / 3, graph 0 to 2.0 / 3, graph 1 nohead dashtype 2 lw 1.4 lc rgb ink
plot table every ::1 using (strcol(2) ne '-' ? $3 / $2 : NaN):(-$0):(1 - $3 / $2):(0) with vectors nohead lw 1.2 lc rgb faint \
         notitle, \
     table every ::1 using (strcol(2) ne '-' ? 1 : NaN):(-$0):ytic(upto(':', strcol(1))) with points pt 7 ps 1.0 lc rgb dark \
         title 'all updates last', \
     table every ::1 using (strcol(2) ne '-' ? $3 / $2 : NaN):(-$0) with points pt 4 ps 1.2 lw 1.8 lc rgb '#d55e00' \
         title 'the order searched for', \
     NaN with lines dashtype 2 lw 1.4 lc rgb ink title 'a third less'
