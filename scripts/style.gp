# The house style of every figure: each loads it first. For a picture alone, SVG, or PNG with png=1:
#   gnuplot -e "png=1; table='results/tables/zoo_gap.tsv'; output='gap.png'" scripts/spread.gp
#
# 800 x 500, which GitHub shows as it is. Colours differ in lightness, and every series has a point type or a dash of its own:
# pictures read in grey and by the colour-blind (after M. Okabe and K. Ito).
set terminal svg size 800,500 dynamic font 'sans-serif,13' linewidth 1 noenhanced background '#ffffff'
if (exists('png')) set terminal pngcairo size 800,500 font 'sans-serif,10' noenhanced background '#ffffff'
set output output
set datafile separator "\t"
set datafile missing NaN
set encoding utf8
set border 3 lc rgb '#303030'
set tics out nomirror textcolor rgb '#202020'
set grid lc rgb '#dddddd' lw 0.6
set key textcolor rgb '#202020'
ink = '#101820'      # text and means
dark = '#0072b2'     # the first of two series
light = '#e69f00'    # the second
faint = '#909090'    # lines that are only there to compare with
array colour[8] = ['#000000', '#0072b2', '#56b4e9', '#009e73', '#b0a000', '#e69f00', '#cc79a7', '#d55e00']
# cells of a table: of "+3.21 %" the number, of "-" nothing
number(text) = text eq '-' || text eq '' ? NaN : real(text)
# the different names of the first column, `stats table every ::1 using (add(strcol(1)))`, and parts of a name: put together here, since
# what is put into a command of the shell is run, whatever a row calls itself
names = ''
add(name) = strstrt(' '.names, ' '.name.' ') > 0 ? 0 : (names = names.name.' ', 1)
upto(mark, name) = name[1 : strstrt(name.mark, mark) - 1]
after(mark, name) = name[strstrt(name, mark) + strlen(mark) : *]
swap(old, new, name) = strstrt(name, old) > 0 ? upto(old, name).new.after(old, name) : name
