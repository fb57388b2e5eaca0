(* Reads plans, one a line, in the words that words.py writes; prints the program's verdicts, one a
   line. This file is not verified: it turns words into the program's data, and no more. *)
open Recheck
open Numbers

let rest = ref []

let word () =
  match !rest with
  | [] -> failwith "the line ends early"
  | w :: others -> rest := others; w

let expect w = let found = word () in if found <> w then failwith (found ^ ", not " ^ w)
let z () = integer (word ())
let nat () = natural (word ())
let many f = List.init (int_of_string (word ())) (fun _ -> f ())
let optional f = match word () with "-" -> None | w -> Some (f w)

let q () =
  let w = word () in
  match String.index_opt w '/' with
  | None -> { qnum = integer w; qden = positive "1" }
  | Some at ->
      { qnum = integer (String.sub w 0 at);
        qden = positive (String.sub w (at + 1) (String.length w - at - 1)) }

let machine_type () =
  let cost_of = q () in
  { cost_of; limit_of = optional integer }

let configuration () =
  match word () with
  | "listed" ->
      let m = nat () in
      Listed (m, many z)
  | "bounded" ->
      let m = nat () in
      let sizes = many q in
      let capacity = q () in
      SizeBounded (m, sizes, capacity, optional integer)
  | w -> failwith w

let job () =
  let demand = q () in
  { demand; supply = many q }

let problem () =
  expect "problem";
  let machine_types = many machine_type in
  let block_types = nat () in
  let configurations = many configuration in
  { machine_types; block_types; configurations; jobs = many job }

let served () =
  let block = nat () in
  let job = nat () in
  ((block, job), z ())

let group () =
  let group_type = nat () in
  let group_counts = many z in
  let group_machines = z () in
  { group_type; group_counts; group_machines; group_assignment = many served }

let quantity () =
  match word () with
  | "types" -> MachinesOfType (many z)
  | "of" -> let m = nat () in MachinesOf (m, many z)
  | "with" -> let m = nat () in MachinesWith (m, many z)
  | "blocks" -> BlocksOf (nat ())
  | "job" -> let i = nat () in BlocksOfJob (i, nat ())
  | w -> failwith w

let rec tree () =
  match word () with
  | "leaf" ->
      let qprices = many q in
      let qlimit_prices = many q in
      let qmultipliers = many q in
      QLeaf { qprices; qlimit_prices; qmultipliers;
              qproper = many (fun () -> optional integer) }
  | "branch" ->
      let what = quantity () in
      let r = z () in
      let below = tree () in
      QBranch (what, r, below, tree ())
  | w -> failwith w

let shown { qnum; qden } =
  match shown_positive qden with
  | "1" -> shown_integer qnum
  | below -> shown_integer qnum ^ "/" ^ below

let () =
  (* Lists are gone through by recursion: small collections would read the deep stack each time. *)
  Gc.set { (Gc.get ()) with Gc.minor_heap_size = 8 * 1024 * 1024 };
  let effort = natural Sys.argv.(1) in
  try
    while true do
      rest := List.filter (fun w -> w <> "") (String.split_on_char ' ' (input_line stdin));
      let p = problem () in
      let groups = match word () with
        | "schedule" -> Some (many group)
        | "nothing" -> None
        | w -> failwith w in
      let t = tree () in
      if !rest <> [] then failwith "the line goes on";
      print_endline (match recheck effort p groups t with
        | Rejected -> "rejected"
        | Infeasible -> "infeasible"
        | Optimal c -> "optimal " ^ shown c
        | Between (b, c) -> "between " ^ shown b ^ " " ^ shown c
        | AtLeast b -> "at least " ^ shown b)
    done
  with End_of_file -> ()
