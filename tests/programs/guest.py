# Compiles a module, guest.py MODULE CWASM, or runs the guest_run of a compiled one in a thread of its own: guest.py CWASM
import sys
import threading
from wasmtime import Config, Engine, Instance, Module, Store

engine = Engine(Config())
if len(sys.argv) == 3:
    open(sys.argv[2], "wb").write(Module.from_file(engine, sys.argv[1]).serialize())
else:
    module = Module.deserialize_file(engine, sys.argv[1])
    store = Store(engine)
    run = Instance(store, module, []).exports(store)["guest_run"]
    thread = threading.Thread(target=run, args=(store,))
    thread.start()
    thread.join()
