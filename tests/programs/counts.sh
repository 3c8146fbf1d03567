# The shell counts, long enough to be met by samples: sh counts.sh [N]
i=0
while [ $i -lt "${1:-200000}" ]; do i=$((i + 1)); done
