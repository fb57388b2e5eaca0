(* Reads plans, one a line, in the words of forms.py; prints the program's verdicts, one a
   line. This file is not verified: it turns words into the program's data, and no more. *)
open Recheck
open Numbers

let rest = ref []

let word () =
  match !rest with
  | [] -> failwith "the line ends early"
  | w :: others -> rest := others; w

let z () = integer (word ())
let nat () = natural (word ())
let times f w = List.init (int_of_string w) (fun _ -> f ())
let many f = times f (word ())
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
  | "Listed" ->
      let m = nat () in
      Listed (m, many z)
  | "SizeBounded" ->
      let m = nat () in
      let sizes = many q in
      let capacity = q () in
      SizeBounded (m, sizes, capacity, optional integer)
  | w -> failwith w

let job () =
  let demand = q () in
  let supply = many q in
  let replicas = z () in
  { demand; supply; replicas; share = q () }

let group_limit () =
  let weights = many q in
  { weights; greatest = q () }

let problem () =
  let machine_types = many machine_type in
  let block_types = nat () in
  let configurations = many configuration in
  let jobs = many job in
  { machine_types; block_types; configurations; jobs; group_limits = many group_limit }

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
  | "MachinesOfType" -> MachinesOfType (many z)
  | "MachinesOfConfiguration" -> let m = nat () in MachinesOfConfiguration (m, many z)
  | "MachinesWithBlocks" -> let m = nat () in MachinesWithBlocks (m, many z)
  | "BlocksOfType" -> BlocksOfType (nat ())
  | "BlocksOfJob" -> let i = nat () in BlocksOfJob (i, nat ())
  | w -> failwith w

let rec tree () =
  match word () with
  | "QLeaf" ->
      let qprices = many q in
      let qlimit_prices = many q in
      let qmultipliers = many q in
      QLeaf { qprices; qlimit_prices; qmultipliers;
              qproper = many (fun () -> optional integer) }
  | "QBranch" ->
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
      let groups = optional (times group) in
      let t = tree () in
      if !rest <> [] then failwith "the line goes on";
      print_endline (match recheck effort p groups t with
        | Rejected -> "Rejected"
        | Infeasible -> "Infeasible"
        | Optimal c -> "Optimal " ^ shown c
        | Between (b, c) -> "Between " ^ shown b ^ " " ^ shown c
        | AtLeast b -> "AtLeast " ^ shown b)
    done
  with End_of_file -> ()
