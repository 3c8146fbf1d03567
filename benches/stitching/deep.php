<?php
// Recursion in PHP: expression trees that are built, folded and printed, sorting with call-backs, nested arrays.
mt_srand(7);

function build($depth) {
    if ($depth == 0) return mt_rand(1, 9);
    return [mt_rand(0, 2), build($depth - 1), build($depth - 1 - mt_rand(0, $depth > 1 ? 1 : 0))];
}

function evaluate($tree) {
    if (!is_array($tree)) return $tree;
    [$kind, $left, $right] = $tree;
    $a = evaluate($left);
    $b = evaluate($right);
    return match ($kind) { 0 => $a + $b, 1 => $a - $b, default => ($a * $b) % 1000003 };
}

function show($tree) {
    if (!is_array($tree)) return (string) $tree;
    return '(' . show($tree[1]) . ' -+*'[$tree[0] + 1] . show($tree[2]) . ')';
}

function sorted($list) {
    usort($list, fn($a, $b) => evaluate($a) <=> evaluate($b));
    return $list;
}

$end = microtime(true) + 6;
while (microtime(true) < $end) {
    $trees = array_map(fn($depth) => build(4 + $depth % 5), range(1, 30));
    array_map('show', sorted($trees));
    preg_replace_callback('/\d+/', fn($m) => $m[0] * 2, show($trees[0]));
    array_walk_recursive($trees, function (&$leaf) { $leaf += 1; });
}
