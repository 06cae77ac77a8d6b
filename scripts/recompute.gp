# Recomputation: all work beside that of one run against planned memory beside that without, a line a graph: solid by
# segments, dashed the least that any method found.
load 'scripts/style.gp'
stats table every ::1 using (add(strcol(1))) nooutput
set datafile missing NaN
set xrange [0 : 1.02]
set yrange [0.98 : *]
set xlabel 'planned memory beside that without recomputation'
set ylabel 'work beside that of one run'
set key top right Left reverse samplen 2
of(i, method) = strcol(1) eq word(names, i) && (strcol(2) eq 'none' || strcol(2)[1:strlen(method)] eq method)
plot for [i=1:words(names)] table every ::1 using (of(i, 'sqrt') ? 1 / $4 : NaN):5 with linespoints \
         pt i + 3 ps 1.1 lw 1.4 lc rgb colour[i] title upto(':', word(names, i)), \
     for [i=1:words(names)] table every ::1 using (of(i, 'budget') ? 1 / $4 : NaN):5 with linespoints \
         pt i + 3 ps 0.7 lw 1.2 dt 2 lc rgb colour[i] notitle
