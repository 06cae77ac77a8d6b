# Concats copied, shared, and shared where no peak suffers.
choices = 'copy share auto'
title1 = 'copied'
title2 = 'shared'
title3 = 'shared where no peak suffers'
left_of_none = 3
load 'scripts/choices.gp'
