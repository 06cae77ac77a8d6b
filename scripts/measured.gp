# Pages of the arena that became resident against the planned arena, a mark a run; on the line the two are equal.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using (add(strcol(1))) nooutput
set logscale xy 2
set format '%g'
set xlabel 'planned arena [MiB], logarithmic'
set ylabel 'resident pages of the arena [MiB]'
set key left top Left reverse spacing 1.2
of(g) = strcol(1) eq g
plot x lc rgb faint dt 2 title 'equal', \
     for [i=1:words(names)] table every ::1 using (of(word(names, i)) ? $3 : NaN):4 with points pt 3 + i ps 1.3 lw 1.6 \
         lc rgb colour[1 + i] title word(names, i)
