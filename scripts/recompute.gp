# Recomputation: all work beside that of one run against planned memory beside that without, a line a graph.
load 'scripts/style.gp'
stats table every ::1 using (add(strcol(1))) nooutput
set xrange [0 : 1.02]
set yrange [0.98 : *]
set xlabel 'planned memory beside that without recomputation'
set ylabel 'work beside that of one run'
set key top right Left reverse samplen 2
plot for [i=1:words(names)] table every ::1 using (strcol(1) eq word(names, i) ? 1 / $3 : NaN):4 with linespoints \
         pt i + 3 ps 1.1 lw 1.4 lc rgb colour[i] title upto(':', word(names, i))
