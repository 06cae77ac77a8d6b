# Planned memory and bytes copied, a line a graph, a mark a choice of three: `choices`, words, and what they are called, title1 ..
# Loaded by views.gp, which sets these.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using (add(strcol(1))) nooutput
place(name) = sum [i=1:words(names)] (word(names, i) eq name ? -i : 0)
of(i) = strcol(2) eq word(choices, i)
set grid noytics
set yrange [-words(names) - 0.6 : -0.4]
set xrange [0 : *]
set key off
set multiplot
set lmargin at screen 0.15
set rmargin at screen 0.53
set tmargin at screen 0.86
set ytics ('' 0)
set for [i=1:words(names)] ytics add (word(names, i) -i)
set xlabel 'planned memory [MiB]'
set key at screen 0.56, screen 0.97 center top horizontal Left reverse samplen 1
plot table every ::1 using (of(1) ? $3 : NaN):(place(strcol(1)) + 0.15) with points pt 7 ps 1.0 lc rgb dark title title1, \
     table every ::1 using (of(2) ? $3 : NaN):(place(strcol(1))) with points pt 4 ps 1.2 lw 1.8 lc rgb '#d55e00' \
         title title2, \
     table every ::1 using (of(3) ? $3 : NaN):(place(strcol(1)) - 0.15) with points pt 10 ps 1.2 lw 1.6 lc rgb ink title title3
set key off
set lmargin at screen 0.59
set rmargin at screen 0.97
set ytics ('' 0)
set xrange [-left_of_none : *]
set xlabel 'copied in one run [MiB]'
plot table every ::1 using (of(1) ? $4 : NaN):(place(strcol(1)) + 0.15) with points pt 7 ps 1.0 lc rgb dark notitle, \
     table every ::1 using (of(2) ? $4 : NaN):(place(strcol(1))) with points pt 4 ps 1.2 lw 1.8 lc rgb '#d55e00' notitle, \
     table every ::1 using (of(3) ? $4 : NaN):(place(strcol(1)) - 0.15) with points pt 10 ps 1.2 lw 1.6 lc rgb ink notitle
unset multiplot
