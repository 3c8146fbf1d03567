%% A function that calls itself, for about a second. Build: erlc fib.erl; run: erl -noshell -s fib main -s init stop
-module(fib).
-export([main/0]).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

main() -> lists:foreach(fun(_) -> 832040 = fib(30) end, lists:seq(1, 20)).
