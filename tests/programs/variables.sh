# Says what comes in and which variables of runtimes there are, after a while: sh variables.sh
i=0
while [ $i -lt 300000 ]; do i=$((i + 1)); done
cat
printf '%s\n' "$NODE_OPTIONS" "$JAVA_TOOL_OPTIONS" "$PHP_INI_SCAN_DIR" "$PYTHONPERFSUPPORT"
