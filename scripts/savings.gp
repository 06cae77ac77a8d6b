# What each switch saves: a line a graph, a mark each for in-place pairs, orders, fusion and recomputation, as a part.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using 0 nooutput name 'rows'
known(c) = strcol(c) ne '-'
part(c) = known(c) ? number(strcol(c)) : NaN
short(name, kind) = upto(':', name).(kind eq 'training' ? ', training' : '')
least = 0 # what costs memory stands left of 0
do for [c=3:6] {
    stats table every ::1 using (part(c)) nooutput name 'side'
    if (exists('side_min') && side_min < least) { least = side_min }
}
set lmargin 24
set rmargin 4
set grid noytics
set ytics font ',10'
set yrange [-rows_records + 0.4 : 0.6]
set xrange [least < 0 ? 10 * floor((least - 3) / 10.0) : -3 : 100]
set arrow from 0, graph 0 to 0, graph 1 nohead lw 1 lc rgb faint
set xlabel 'less memory than without [%]; left of 0: more'
set key outside center top horizontal Left reverse
plot table every ::1 using (part(3)):(-$0):ytic(short(strcol(1), strcol(2))) with points pt 6 ps 1.1 lw 1.6 lc rgb dark title 'in place', \
     table every ::1 using (part(4)):(-$0) with points pt 2 ps 1.0 lw 1.6 lc rgb ink title 'order', \
     table every ::1 using (part(5)):(-$0) with points pt 8 ps 1.2 lw 1.6 lc rgb '#009e73' title 'fusion', \
     table every ::1 using (part(6)):(-$0) with points pt 4 ps 1.1 lw 1.8 lc rgb '#d55e00' title 'computed again'
