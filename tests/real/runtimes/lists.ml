(* SPDX-License-Identifier: LGPL-2.1-or-later *)
(* Lists, trees, exceptions with backtraces, closures, hash tables, finalizers, deep recursion. When
   the garbage collector collects the minor or the major heap, it walks the stack by its return addresses. *)
let rounds = int_of_string Sys.argv.(1)

let rec build n = if n = 0 then [] else let l = build (n - 1) in n :: l

type tree = Leaf | Node of tree * string * tree

let rec grow d = if d = 0 then Leaf else let l = grow (d - 1) in Node (l, string_of_int d, grow (d - 1))
let rec size = function Leaf -> 0 | Node (l, s, r) -> let a = size l in a + String.length s + size r

exception Bottom of int

let rec deep n = if n = 0 then raise (Bottom n) else 1 + deep (n - 1)

let () =
  Printexc.record_backtrace true;
  Gc.set { (Gc.get ()) with Gc.minor_heap_size = 4096; space_overhead = 40 };
  let sum = ref 0 in
  for _ = 1 to rounds do sum := !sum + List.length (build 100) done;
  Printf.printf "lists %d\n" !sum;
  let total = ref 0 in
  for _ = 1 to rounds / 100 do total := !total + size (grow 10) done;
  Printf.printf "trees %d\n" !total;
  let caught = ref 0 and slots = ref 0 in
  for i = 1 to rounds do
    (try ignore (deep (i mod 20)) with Bottom n ->
      caught := !caught + n + 1;
      slots := !slots + Printexc.raw_backtrace_length (Printexc.get_raw_backtrace ()));
    (try ignore (List.find (fun x -> x > 5) [ 1; 2 ]) with Not_found -> incr caught);
    (try ignore (int_of_string "x") with Failure _ -> incr caught);
    (try ignore ([| 1 |].(i)) with Invalid_argument _ -> incr caught)
  done;
  Printf.printf "exceptions %d %b\n" !caught (!slots > rounds);
  let t = Hashtbl.create 10 in
  for i = 1 to rounds * 10 do Hashtbl.replace t (Printf.sprintf "k%d" (i mod 977)) i done;
  let keys = List.sort compare (Hashtbl.fold (fun k v l -> (k, v) :: l) t []) in
  print_endline (Digest.to_hex (Digest.string (Marshal.to_string keys [])));
  let finalized = ref 0 in
  for _ = 1 to 100 do Gc.finalise (fun _ -> incr finalized) (Bytes.create 100) done;
  Gc.compact ();
  Printf.printf "finalized %b\n" (!finalized >= 99);
  let rec forever n = 1 + forever (n + 1) in
  (try ignore (forever 0) with Stack_overflow -> print_endline "overflow");
  Gc.full_major ();
  Printf.printf "%d\n" (List.fold_left (fun a (k, v) -> a + v + String.length k) 0 keys)
