# Recomputation: all work beside that of one run against planned memory beside that without, a line a graph.
load 'scripts/style.gp'
graphs = system("cut -f1 '".table."' | sed 1d | uniq | tr '\n' ' '")
short(name) = name[1 : strstrt(name.':', ':') - 1]
set xrange [0 : 1.02]
set yrange [0.98 : *]
set xlabel 'planned memory beside that without recomputation'
set ylabel 'work beside that of one run'
set key top right Left reverse samplen 2
plot for [i=1:words(graphs)] table every ::1 using (strcol(1) eq word(graphs, i) ? 1 / $3 : NaN):4 with linespoints \
         pt i + 3 ps 1.1 lw 1.4 lc rgb colour[i] title short(word(graphs, i))
