(** The program's part of rounding up: which machine types are usable, the common step of their costs,
    and a bound rounded up to it. Why that is right is in Better.v. *)
From CMS Require Export Groups Steps.

Definition wants (i : nat) (x : ijob) : bool :=
  existsb (fun r => (0 <? fst r) && (0 <? at_ (snd r) i)) (irows x).
Definition wanted (P : iproblem) : list bool :=
  map (fun i => existsb (wants i) (ijobs P)) (seq 0 (iblock_types P)).

(** How many blocks of each wanted type a machine has if it has no others. *)
Definition lone (P : iproblem) (W : list bool) (c : ishape) : list Z :=
  map (fun i =>
    if nth i W false
    then match c with
         | IListed _ a => at_ a i
         | IBounded _ sizes cap n =>
             let s := at_ sizes i in
             if 0 <? s
             then Z.max 0 (match n with Some n => Z.min (cap / s) n | None => cap / s end)
             else 0
         end
    else 0) (seq 0 (iblock_types P)).

(** Configurations with wanted blocks, each with these. *)
Notation row := (ishape * list Z)%type.
Definition rows (P : iproblem) : list row :=
  let W := wanted P in
  filter (fun r => existsb (Z.ltb 0) (snd r)) (map (fun c => (c, lone P W c)) (ishapes P)).

(** Whether a rival has the wanted blocks of every machine that is cut up as the other. *)
Definition replaces (rival other : row) : bool :=
  match fst rival, fst other with
  | IListed _ _, _ => pairwise Z.leb (snd other) (snd rival)
  | IBounded _ sizes cap n, IListed _ _ => in_set sizes cap n (snd other)
  | IBounded _ sizes cap n, IBounded _ sizes' cap' n' =>
      forallb (fun x => (snd x <=? 0)
                        || (0 <? at_ (snd rival) (fst x))
                           && (at_ sizes (fst x) * cap' <=? at_ sizes' (fst x) * cap))
        (numbered (snd other))
      && match n, n' with
         | None, _ => true
         | Some n, Some n' => n' <=? n
         | Some _, None => false
         end
  end.

(** A rival is cheaper, and counts no more in any limit. *)
Definition rival_of (P : iproblem) (m : nat) (r : row) : bool :=
  let m' := shape_type (fst r) in
  (icost P m' <? icost P m) && forallb (fun L => weight L m' <=? weight L m) (ilimits P).
Definition possible (P : iproblem) (m : nat) : bool :=
  forallb (fun L => weight L m <=? igreatest L) (ilimits P).
Definition usable (P : iproblem) (all : list row) (m : nat) : bool :=
  possible P m
  && let rivals := filter (rival_of P m) all in
     existsb (fun r => Nat.eqb (shape_type (fst r)) m
                       && forallb (fun rival => negb (replaces rival r)) rivals) all.

Definition step (P : iproblem) : Z :=
  let all := rows P in
  let names := filter (usable P all) (seq 0 (length (icosts P))) in
  gcd_of (match names with
          | [] => icosts P
          | _ => map (icost P) names
          end).
Definition round_up (P : iproblem) (b : Q) : Q := rounded (step P) b.
