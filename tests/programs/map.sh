# Writes a perf map and the second file that .NET to 5 writes with it, says its number, and counts for a while: sh map.sh
echo 1000 10 f >/tmp/perf-$$.map
echo x >/tmp/perfinfo-$$.map
echo $$
i=0
while [ $i -lt 100000 ]; do i=$((i + 1)); done
