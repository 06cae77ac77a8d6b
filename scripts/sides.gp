# The best plans on the two sides of a switch: a line a graph, one mark a side, joined.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using 0 nooutput name 'rows'
side(c) = upto(' best MiB', c)
stats table every ::0::0 using (first = side(strcol(3)), second = side(strcol(6)), 0) nooutput
# "on" and "off" are those of in-place pairs
full(name) = name eq 'on' || name eq 'off' ? 'in-place pairs '.name : name
first = full(first)
second = full(second)
set lmargin 16
set rmargin 4
set grid noytics
set logscale x 2
set yrange [-rows_records + 0.4 : 0.6]
set xrange [* : *] noextend
set offsets graph 0.03, graph 0.03, 0, 0
set format x '%g'
set xlabel 'smallest planned memory [MiB], logarithmic'
set key outside center top horizontal Left reverse
plot table every ::1 using 3:(-$0):($6 - $3):(0) with vectors nohead lw 1.2 lc rgb faint notitle, \
     table every ::1 using 3:(-$0):ytic(1) with points pt 7 ps 1.0 lc rgb dark title first, \
     table every ::1 using 6:(-$0) with points pt 4 ps 1.2 lw 1.8 lc rgb '#d55e00' title second
