;; Allocates known numbers of bytes in known places: site_a 2000 blocks of 100 and half of them freed, site_b 200 of 4000.
(module
  (memory 64)
  (global $top (mut i32) (i32.const 1024))
  (func $malloc (export "malloc") (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $top))
    (global.set $top (i32.add (global.get $top) (local.get $size)))
    (local.get $at))
  (func $free (export "free") (param $at i32)
    (i32.store (local.get $at) (i32.const 0)))
  (func $site_a (param $n i32)
    (local $at i32)
    (loop $again
      (local.set $at (call $malloc (i32.const 100)))
      (if (i32.and (local.get $n) (i32.const 1)) (then (call $free (local.get $at))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func $site_b (param $n i32)
    (loop $again
      (i32.store (call $malloc (i32.const 4000)) (i32.const 1))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func $guest_run (export "guest_run")
    (call $site_a (i32.const 2000))
    (call $site_b (i32.const 200))))
