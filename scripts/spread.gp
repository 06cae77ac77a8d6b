# Planners x graphs of gaps: a line a planner, a circle a graph, a bar at the mean of those that the planner has.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using 0 nooutput name 'rows'
columns = rows_columns
# gaps from 0 to thousands of per cent on one axis: even near 0, logarithmic far from it
place(gap) = log10(1 + gap / 5.0)
known(c) = strcol(c) ne '-'
n_known(x) = sum [c=2:columns] (known(c) ? 1 : 0)
mean(x) = sum [c=2:columns] (known(c) ? number(strcol(c)) : 0) / (n_known(0) > 0 ? n_known(0) : NaN)
set lmargin 16
set rmargin 4
set grid noytics
set yrange [-rows_records + 0.4 : 0.6]
set xrange [place(0) - 0.04 : *]
set xtics ('0' place(0), '2' place(2), '5' place(5), '10' place(10), '25' place(25), '50' place(50), '100' place(100), \
           '200' place(200), '400' place(400))
set xlabel 'planned memory above the bound [%], the scale narrows to the right'
set key outside center top horizontal Left reverse
plot for [c=2:columns] table every ::1 using (known(c) ? place(number(strcol(c))) : NaN):(-$0):ytic(1) \
         with points pt 6 ps 0.9 lw 1.3 lc rgb dark notitle, \
     table every ::1 using (place(mean(0))):(-$0 - 0.3):(0):(0.6) with vectors nohead lw 3 lc rgb ink notitle, \
     NaN with points pt 6 ps 0.9 lw 1.3 lc rgb dark title 'one graph', \
     NaN with lines lw 3 lc rgb ink title 'mean'
