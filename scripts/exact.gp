# The exact planner: time to a plan within a list's capacity, and to the least height; a cross where the clock ended it.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using (add(strcol(1))) nooutput
# "A" of A.1048576.csv, "cut:n=100" of guillotine:n=100,seed=2
stats table every ::1 using ((strcol(3) eq 'fit' ? $6 > 0 : strcol(9) eq 'optimal') ? 0 : 1) nooutput name 'open'
list(name) = swap('guillotine', 'cut', upto(',seed=', name[strlen(name) - 3 : *] eq '.csv' ? upto('.', name) : name))
place(name) = sum [i=1:words(names)] (word(names, i) eq name ? -i : 0)
ms(task) = strcol(3) eq task ? $10 : NaN
mark(done, pt) = done ? pt : 2
set lmargin 18
set rmargin 4
set logscale x
set format x '%g'
set grid noytics
set yrange [-words(names) - 0.6 : -0.4]
set for [i=1:words(names)] ytics add (list(word(names, i)) -i) font ',11'
set xlabel 'time [ms], one thread, logarithmic'
set key outside center top horizontal Left reverse
plot table every ::1 using (ms('fit')):(place(strcol(1))):(mark($6 > 0, 7)) with points pt variable ps 0.9 lc rgb dark notitle, \
     table every ::1 using (ms('min')):(place(strcol(1))):(mark(strcol(9) eq 'optimal', 4)) with points pt variable ps 1.1 \
         lw 1.6 lc rgb '#d55e00' notitle, \
     keyentry with points pt 7 ps 0.9 lc rgb dark title 'fits the capacity', \
     keyentry with points pt 4 ps 1.1 lw 1.6 lc rgb '#d55e00' title 'least height, proved', \
     for [i=1:(open_sum > 0)] keyentry with points pt 2 ps 1.1 lc rgb ink title 'not decided'
