# Planners x graphs of gaps: a line a planner, a circle a graph; behind the name how many of them are at the bound, which circles on each other hide.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using 0 nooutput name 'rows'
columns = rows_columns
# gaps from 0 to thousands of per cent on one axis: even near 0, logarithmic far from it
place(gap) = log10(1 + gap / 5.0)
known(c) = strcol(c) ne '-'
n_known(x) = sum [c=2:columns] (known(c) ? 1 : 0)
at_bound(x) = sum [c=2:columns] (known(c) && number(strcol(c)) < 0.005 ? 1 : 0)
label(x) = sprintf('%s  %d of %d', strcol(1), at_bound(0), n_known(0))
set lmargin 24
set rmargin 5
set offsets 0, 0.06, 0, 0
set grid noytics
set yrange [-rows_records + 0.4 : 0.6]
set xrange [place(0) - 0.04 : *]
set xtics ('0' place(0), '2' place(2), '5' place(5), '10' place(10), '25' place(25), '50' place(50), '100' place(100), \
           '200' place(200), '400' place(400), '1000' place(1000), '2500' place(2500))
set xlabel 'planned memory above the bound [%], the scale narrows to the right'
unset key
plot for [c=2:columns] table every ::1 using (known(c) ? place(number(strcol(c))) : NaN):(-$0):ytic(label(0)) \
         with points pt 6 ps 0.9 lw 1.3 lc rgb dark notitle
