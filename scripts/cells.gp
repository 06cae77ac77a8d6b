# Cells: what is proved of the worst regret against the number of parts of the range, a line a network.
load 'scripts/style.gp'
stats table every ::1 using (add(strcol(1))) nooutput
set datafile missing NaN
set xrange [0.5 : 6.5]
set yrange [0.99 : *]
set xtics 1
set xlabel 'cells'
set ylabel 'worst regret'
set key top right Left reverse samplen 2
of(i) = strcol(1) eq word(names, i)
plot for [i=1:words(names)] table every ::1 using (of(i) ? $3 : NaN):5 with linespoints \
         pt i + 3 ps 1.1 lw 1.4 lc rgb colour[i] title word(names, i).', proved', \
     for [i=1:words(names)] table every ::1 using (of(i) ? $3 : NaN):4 with linespoints \
         pt i + 3 ps 0.7 lw 1.2 dt 2 lc rgb colour[i] title word(names, i).', found'
