"""Three functions in turns: a program that does the same all the time. steady.py SECONDS"""
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def words():
    found = {}
    for word in "the quick brown fox jumps over the lazy dog".split():
        found[word] = found.get(word, 0) + 1


end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    fib(12)
    for _ in range(50):
        words()
    sorted(str(i * 7919 % 1000) for i in range(300))
