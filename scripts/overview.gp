# Planners by their mean gaps: a line a planner, a mark each for inference and training, serial and parallel.
load 'scripts/style.gp'
set bmargin 4
stats table every ::1 using 0 nooutput name 'rows'
# from 0 to tens of per cent on one axis: even near 0, logarithmic far from it
place(gap) = log10(1 + gap * 10.0)
known(c) = strcol(c) ne '-'
gap(c) = known(c) ? place(number(strcol(c))) : NaN
set lmargin 16
set rmargin 4
set grid noytics
set yrange [-rows_records + 0.4 : 0.6]
set xrange [place(0) - 0.05 : place(60)]
set xtics ('0' place(0), '0.1' place(0.1), '0.5' place(0.5), '1' place(1), '2' place(2), '5' place(5), '10' place(10), \
           '20' place(20), '40' place(40))
set xlabel 'planned memory above the proved least, mean [%], the scale narrows to the right'
set key outside center top horizontal Left reverse
plot table every ::1 using (gap(2)):(-$0 + 0.22):ytic(1) with points pt 7 ps 1.0 lc rgb dark title 'inference serial', \
     table every ::1 using (gap(3)):(-$0 + 0.07) with points pt 6 ps 1.0 lw 1.6 lc rgb dark title 'inference parallel', \
     table every ::1 using (gap(4)):(-$0 - 0.08) with points pt 5 ps 1.0 lc rgb '#d55e00' title 'training serial', \
     table every ::1 using (gap(5)):(-$0 - 0.23) with points pt 4 ps 1.1 lw 1.6 lc rgb '#d55e00' title 'training parallel'
