"""WebAssembly that calls back into Python, which calls WebAssembly: needs the package wasmtime."""
import time

from wasmtime import Config, Engine, Func, FuncType, Instance, Module, Store, ValType

WAT = """
(module
  (import "host" "back" (func $back (param i32) (result i32)))
  (func $fib (export "fib") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
      (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
  (func $deep (export "deep") (param i32 i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (call $back (local.get 1)))
      (else (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)) (local.get 1)))))))
"""
config = Config()
config.profiler = "jitdump"
engine = Engine(config)
store = Store(engine)
level = 0


def back(value):
    global level
    if value == 0:
        return fib(store, 16)
    level += 1
    return deep(store, 20 + value * 7, value - 1)


end = time.time() + 7
module = Module(engine, WAT)
host = Func(store, FuncType([ValType.i32()], [ValType.i32()]), back)
exports = Instance(store, module, [host]).exports(store)
fib, deep = exports["fib"], exports["deep"]
while time.time() < end:
    for nesting in range(4):
        deep(store, 10, nesting)
    Module(engine, WAT.replace("const 1)", "const 1)", 1))
