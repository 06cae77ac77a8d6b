# Small loops without copies: what production's allocator needs, nnc_2019 and the least, a line a loop, a mark each.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using (add(strcol(1))) nooutput
place(name) = sum [i=1:words(names)] (word(names, i) eq name ? -i : 0)
# relative to production
share(of) = strcol(2) eq of ? $4 / $3 : NaN
set lmargin 18
set rmargin 4
set grid noytics
set yrange [-words(names) - 0.6 : -0.4]
set xrange [0.45 : 1.05]
set ytics ('' 0)
set for [i=1:words(names)] ytics add (word(names, i) -i) font ',11'
set xlabel 'arena beside that of the production allocator'
set key outside center top horizontal Left reverse
plot table every ::1 using (1):(place(strcol(1))) with lines lc rgb faint dt 2 title 'production', \
     table every ::1 using (share('nnc_2019')):(place(strcol(1)) + 0.15) with points pt 7 ps 1.0 lc rgb dark \
         title 'nnc_2019', \
     table every ::1 using (share('exact')):(place(strcol(1)) - 0.15) with points pt 4 ps 1.2 lw 1.8 lc rgb '#d55e00' \
         title 'the least, proved'
