(* Coq's binary and unary numbers from decimals, and back, by way of zarith. *)
module Big = Z
open Recheck

let rec positive_of n =
  if Big.equal n Big.one then XH
  else
    let half = positive_of (Big.shift_right n 1) in
    if Big.testbit n 0 then XI half else XO half

let positive text = positive_of (Big.of_string text)

let integer text =
  let n = Big.of_string text in
  match Big.sign n with
  | 0 -> Z0
  | 1 -> Zpos (positive_of n)
  | _ -> Zneg (positive_of (Big.neg n))

(* Unary numbers are parts of one another: without sharing, n jobs would take n * n / 2 cells. *)
let unary = ref [| O |]

let natural text =
  let n = int_of_string text in
  let known = Array.length !unary in
  if n >= known then begin
    let more = Array.make (Int.max (Int.succ n) (Int.mul 2 known)) O in
    Array.blit !unary 0 more 0 known;
    for at = known to Int.pred (Array.length more) do more.(at) <- S more.(Int.pred at) done;
    unary := more
  end;
  !unary.(n)

let rec value = function
  | XH -> Big.one
  | XO p -> Big.shift_left (value p) 1
  | XI p -> Big.succ (Big.shift_left (value p) 1)

let shown_positive p = Big.to_string (value p)

let shown_integer = function
  | Z0 -> "0"
  | Zpos p -> Big.to_string (value p)
  | Zneg p -> Big.to_string (Big.neg (value p))
