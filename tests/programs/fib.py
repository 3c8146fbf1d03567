# A function that calls itself, for about a second: python3 fib.py, or below its test: python3 -m pytest fib.py
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def test_fib():
    for _ in range(400):
        assert fib(21) == 10946


if __name__ == "__main__":
    test_fib()
