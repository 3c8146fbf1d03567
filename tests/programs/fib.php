<?php
// A function that calls itself, for about a second, and lines with its results. Without a compiler: php fib.php; with it:
// php -d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=64M fib.php
function fib($n) {
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

for ($i = 0; $i < 60; $i++) {
    echo fib(27), "\n";
}
