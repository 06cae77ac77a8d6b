# Streams: planned memory against simulated speed, both beside those of one stream, a line a graph, a point a number of streams.
load 'scripts/style.gp'
stats table every ::1 using (add(strcol(1))) nooutput
set xrange [0.95 : *]
set yrange [0.9 : *]
set logscale xy 2
set xlabel 'times as fast as on one stream, as simulated'
set ylabel 'planned memory beside that of one stream'
set key top left Left reverse samplen 2
plot for [i=1:words(names)] table every ::1 using (strcol(1) eq word(names, i) ? $4 : NaN):3 with linespoints \
         pt i + 3 ps 1.1 lw 1.4 lc rgb colour[i] title word(names, i)
