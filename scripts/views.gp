# Programs of views and writes: each view copied, copied until a write, and none that need not be.
choices = 'copy views full'
title1 = 'every view copied'
title2 = 'copied until a write'
title3 = 'TensorSSA'
left_of_none = 1
load 'scripts/choices.gp'
