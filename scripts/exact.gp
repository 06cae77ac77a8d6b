# The exact planner: time to a plan within a list's capacity, and to the least height; a mark where it is proved, another
# where the clock ended it.
load 'scripts/style.gp'
tasks = 'fit min'
lists = system("cut -f1 '".table."' | sed 1d | uniq | sed 's/[.][0-9]*[.]csv$//; s/[.]csv$//; s/guillotine/cut/; s/,seed=.*//' | tr '\\n' ' '")
names = system("cut -f1 '".table."' | sed 1d | uniq | tr '\\n' ' '")
place(name) = sum [i=1:words(names)] (word(names, i) eq name ? -i : 0)
ms(task, solved) = strcol(3) eq task && ((strcol(9) eq 'optimal' || (task eq 'fit' && column(6) > 0)) == solved) ? $10 : NaN
undecided(x) = valid(10) ? (ms('fit', 0) > 0 ? $10 : ms('min', 0) > 0 ? $10 : NaN) : NaN
set lmargin 17
set rmargin 4
set logscale x
set format x '%g'
set grid noytics
set yrange [-words(names) - 0.6 : -0.4]
set for [i=1:words(lists)] ytics add (word(lists, i) -i) font ',11'
set xlabel 'time [ms], one thread, logarithmic'
set key outside center top horizontal Left reverse
plot table every ::1 using (ms('fit', 1)):(place(strcol(1))) with points pt 7 ps 0.9 lc rgb dark title 'fits the capacity', \
     table every ::1 using (ms('min', 1)):(place(strcol(1))) with points pt 4 ps 1.1 lw 1.6 lc rgb '#d55e00' title 'least height, proved', \
     table every ::1 using (undecided(0)):(place(strcol(1))) with points pt 2 ps 1.1 lw 1.6 lc rgb ink title 'not decided'
