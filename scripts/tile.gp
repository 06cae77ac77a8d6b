# Patches: planned bytes against work, a line a network, both beside those without patches; squares: what msf-CNN publishes
# of its chain.
load 'scripts/style.gp'
stats table every ::1 using (add(strcol(1))) nooutput
# of two lines of results/published.tsv, a peak and then the work that it costs
published = 'results/published.tsv'
held = plain = NaN
peak(of) = strcol(6) eq 'msf-CNN' && strcol(3) eq of && strcol(4) eq 'peak_bytes'
stats published using (peak('none') ? (plain = $5, 0) : 0) nooutput
point(of) = peak(of) ? (held = $5 / plain, NaN) : strcol(6) eq 'msf-CNN' && strcol(4) eq 'work' ? held : NaN
set logscale x 2
set xrange [1.0 / 80 : 1.25]
set yrange [0.95 : *]
set xtics ('1/64' 1.0 / 64, '1/32' 1.0 / 32, '1/16' 1.0 / 16, '1/8' 0.125, '1/4' 0.25, '1/2' 0.5, '1' 1)
set xlabel 'planned bytes beside those without patches'
set ylabel 'multiplications beside those without patches'
set key top right Left reverse samplen 2
called(name) = strstrt(name, 'dtype=int8') > 0 ? 'chain, residuals '.after('residuals=', upto(',dtype', name)) : strstrt(name, 'width') > 0 ? 'mobilenet_v2, 0.35, 144' : name
plot for [i=1:words(names)] table every ::1 using (strcol(1) eq word(names, i) ? 1 / $4 : NaN):5 with linespoints \
         pt i + 3 ps 0.9 lw 1.4 lc rgb colour[(i - 1) % 8 + 1] title called(word(names, i)), \
     published using (point('patches')):5 with points pt 4 ps 1.6 lw 2 lc rgb ink title 'msf-CNN, as published'
