# Plan time against the number of buffers, both logarithmic, beside lines of growth n and n^2.
load 'scripts/style.gp'
set bmargin 4
set logscale xy
set xlabel 'buffers, about 100 alive at a time'
set ylabel 'plan time [ms]'
set xrange [800:1.3e6]
set yrange [*:2e4]
set format x '%.0s%c'
set format y '%g'
set key outside right center spacing 1.3
planners = 'none first_fit best_fit pool owl mxnet greedy_breadth greedy_size'
# the columns of one planner's synthetic lists; NaN for all other rows
plan_ms(p) = (strcol(1) eq 'synthetic' && strcol(2) eq p) ? column(4) : NaN
plot for [i=1:8] table every ::1 using 3:(plan_ms(word(planners, i))) with linespoints lw 1.5 pt i ps 0.8 \
         lc rgb colour[i] title word(planners, i), \
     x / 1e3 lc rgb faint dt 2 title 'grows with n', \
     x ** 2 / 1e6 lc rgb faint dt 4 title 'grows with n^2'
