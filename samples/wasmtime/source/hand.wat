;; The wasm of the wasmtime sample: recursion, indirect calls, a name that is hard to print, calls into the host.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  ;; What is written: 65536 bytes from address 65536.
  (data (i32.const 0) "\00\00\01\00\00\00\01\00")
  (type $binary (func (param i32 i32) (result i32)))
  (table funcref (elem $addmul $xorshift))

  (func $fib (param $n i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $n) (i32.const 2))
      (then (local.get $n))
      (else
        (i32.add
          (call $fib (i32.sub (local.get $n) (i32.const 1)))
          (call $fib (i32.sub (local.get $n) (i32.const 2)))))))

  (func $addmul (type $binary)
    (local $i i32) (local $x i32)
    (local.set $x (local.get 0))
    (loop $next
      (local.set $x (i32.mul (i32.add (local.get $x) (local.get 1)) (i32.const 0x9e3779b1)))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200))))
    (local.get $x))

  (func $xorshift (type $binary)
    (local $i i32) (local $x i32)
    (local.set $x (i32.or (local.get 0) (i32.const 1)))
    (loop $next
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
      (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 100))))
    (local.get $x))

  ;; Calls one or the other through the table.
  (func $"weird name <with> spaces; and semi" (param $rounds i32) (result i32)
    (local $i i32) (local $x i32)
    (loop $next
      (local.set $x
        (call_indirect (type $binary) (local.get $x) (local.get $i) (i32.and (local.get $i) (i32.const 1))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $rounds))))
    (local.get $x))

  ;; Into the host, and from there into the kernel.
  (func $print (param $times i32)
    (loop $next
      (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (br_if $next (local.tee $times (i32.sub (local.get $times) (i32.const 1))))))

  ;; Without a name of its own.
  (func (export "_start")
    (local $i i32)
    (loop $next
      (drop (call $fib (i32.const 24)))
      (drop (call $"weird name <with> spaces; and semi" (i32.const 4000)))
      (call $print (i32.const 6))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 500))))))
