# Programs of several runtimes one after the other, then a failure: make -f runtimes.mk RUNTIMES='node java' (PYTHON=… DENO=…
# BUN=… where they are elsewhere). Each tells its number first: `ran node 4711`.
PYTHON = python3
DENO = deno
BUN = bun
told = @echo ran $@ $$$$; exec

all: $(RUNTIMES)
	exit 7

native:
	$(told) ./rounds 300
node:
	$(told) node busy.js
deno:
	$(told) $(DENO) run busy.js
bun:
	$(told) $(BUN) busy.js
java:
	$(told) java -cp . Loops 2000
python:
	$(told) $(PYTHON) -B fib.py
php:
	$(told) php -d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=64M \
	  -d opcache.file_update_protection=0 fib.php
erlang:
	$(told) erl -noshell -s fib main -s init stop
