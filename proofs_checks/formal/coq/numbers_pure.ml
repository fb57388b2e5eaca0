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

let natural text =
  let rec count n made = if Int.equal n 0 then made else count (Int.pred n) (S made) in
  count (int_of_string text) O

let rec value = function
  | XH -> Big.one
  | XO p -> Big.shift_left (value p) 1
  | XI p -> Big.succ (Big.shift_left (value p) 1)

let shown_positive p = Big.to_string (value p)

let shown_integer = function
  | Z0 -> "0"
  | Zpos p -> Big.to_string (value p)
  | Zneg p -> Big.to_string (Big.neg (value p))
