"""Recursion in CPython: ast, compile, unparse, json, deepcopy, pickle, pprint."""
import ast, copy, json, pickle, pprint, time

SOURCE = "\n".join(
    f"def f{i}(a, b):\n    if a > b:\n        return [x * (a + {i}) for x in range(b) if x % 2 == {i % 2}]\n"
    f"    return {{'k{i}': (a - b) ** 2, 'l': [f{max(i - 1, 0)}(b, a)]}}\n"
    for i in range(40)
)


def nested(depth):
    return {"v": depth} if depth == 0 else {"a": [nested(depth - 1), depth], "b": {"c": nested(depth - 1)}}


end = time.time() + 8
data = nested(7)
while time.time() < end:
    tree = ast.parse(SOURCE)
    compile(tree, "x", "exec")
    ast.unparse(tree)
    json.loads(json.dumps(data, indent=1))
    copy.deepcopy(data)
    pickle.loads(pickle.dumps(data))
    pprint.pformat(data, width=60)
