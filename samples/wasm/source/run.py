# Runs a module with wasmtime's Python package: run.py MODULE ROUNDS
import sys
from wasmtime import Config, Engine, Instance, Module, Store

config = Config()
config.profiler = "jitdump"
engine = Engine(config)
module = Module.from_file(engine, sys.argv[1])
open(sys.argv[1].replace(".wasm", ".cwasm"), "wb").write(module.serialize())
store = Store(engine)
print(Instance(store, module, []).exports(store)["run"](store, int(sys.argv[2])))
