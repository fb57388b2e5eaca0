(** Certificates: trees of prices, and a program that checks them. Its theorem is in Duality.v. *)
From CMS Require Export Replicas Boxes Tidy Steps.
From Coq Require Export QArith.
Open Scope Z_scope.

(** * The format *)
Inductive quantity :=
| MachinesOfType (times : list Z)          (* how often a machine of each type counts *)
| MachinesOfConfiguration (m : nat) (counts : list Z)   (* machines of a listed configuration *)
| MachinesWithBlocks (m : nat) (least : list Z)  (* machines with so many blocks or more *)
| BlocksOfType (i : nat)                       (* blocks of a type, in use or idle *)
| BlocksOfJob (i j : nat).                 (* blocks of type i that serve job j *)

(** A side of a branch: at least so many if it is up, else at most so many. *)
Record side := { what : quantity; up : bool; many : Z }.

(** Prices of blocks, limits and sides are numerators over one denominator; those of limits are of a
    unit of their weights. [proper]: how many blocks of a type a machine of a set counts with at most. *)
Record leaf := { den : Z; prices : list Z; limit_prices : list Z; multipliers : list Z;
                 proper : list (option Z) }.

Inductive tree :=
| Leaf (l : leaf)
| Branch (q : quantity) (r : Z) (below above : tree).

(** * The program *)
Definition sign (x : side) : Z := if up x then 1 else -1.

(** The quantities that count, each with its signed multiplier. *)
Definition weighted (sides : list side) (mus : list Z) : list (quantity * Z) :=
  filter (fun qw => negb (snd qw =? 0))
    (map (fun xm => (what (fst xm), sign (fst xm) * snd xm)) (combine sides mus)).

(** Whether a listed configuration lies in a size-bounded set. *)
Definition in_set (sizes : list Z) (cap : Z) (n : option Z) (a : list Z) : bool :=
  forallb (fun x => (snd x =? 0) || (0 <? at_ sizes (fst x))) (numbered a)
  && (sum (fun x => at_ sizes (fst x) * snd x) (numbered a) <=? cap)
  && match n with None => true | Some n => sum (fun x => snd x) (numbered a) <=? n end.

Section Checker.
Variable fuel : nat.
Variable P : iproblem.
Let types_of_block := seq 0 (iblock_types P).

Section Leaf.
Variable ws : list (quantity * Z).
Variable l : leaf.

Definition sum_where (p : quantity -> bool) : Z :=
  sum (fun qw => if p (fst qw) then snd qw else 0) ws.
Definition is_block (i : nat) (q : quantity) : bool :=
  match q with BlocksOfType i' => Nat.eqb i i' | _ => false end.
Definition is_job (i j : nat) (q : quantity) : bool :=
  match q with BlocksOfJob i' j' => Nat.eqb i i' && Nat.eqb j j' | _ => false end.
Definition of_job (j : nat) (q : quantity) : bool :=
  match q with BlocksOfJob _ j' => Nat.eqb j j' | _ => false end.
Definition is_shape (m : nat) (a : list Z) (q : quantity) : bool :=
  match q with MachinesOfConfiguration m' a' => Nat.eqb m m' && same_shape a a' | _ => false end.

(** What a machine of type m adds to the sides by its type. *)
Definition by_type (m : nat) : Z :=
  sum (fun qw => match fst qw with MachinesOfType t => snd qw * at_ t m | _ => 0 end) ws.
Definition extras (m : nat) : list extra :=
  flat_map (fun qw => match fst qw with
                      | MachinesWithBlocks m' least => if Nat.eqb m m' then [(least, snd qw)] else []
                      | _ => []
                      end) ws.

(** A block's price for a job, and what it is worth on a machine. *)
Definition own (i j : nat) : Z := at_ (prices l) i - sum_where (is_job i j).
Definition worth_of (i : nat) : Z := at_ (prices l) i + sum_where (is_block i).
Definition prices_list : list Z := map (at_ (prices l)) types_of_block.
Definition worth_list : list Z := map worth_of types_of_block.
Definition own_list (plain : list Z) (j : nat) : list Z :=
  if existsb (fun qw => of_job j (fst qw)) ws then map (fun i => own i j) types_of_block else plain.

(** The most blocks of a type that a machine of a set is thought of with. *)
Definition highest (sizes : list Z) (cap : Z) (i : nat) : Z :=
  let s := at_ sizes i in
  if 0 <? s then match nth i (proper l) None with
                 | Some u => Z.min u (cap / s)
                 | None => cap / s
                 end
  else 0.

(** What a machine of a type pays for limits: by limit and type, those of price 0 left out; and all. *)
Definition charges : list (nat * Z) :=
  flat_map (fun x => if snd x =? 0 then [] else map (fun w => (fst w, snd x * snd w)) (iweights (fst x)))
    (combine (ilimits P) (limit_prices l)).
Definition charge (cs : list (nat * Z)) (m : nat) : Z :=
  sum (fun c => if Nat.eqb (fst c) m then snd c else 0) cs.
(** What a machine of a type may be worth, if it costs so much. *)
Definition allowed (cs : list (nat * Z)) (cost_at : nat -> Z) (m : nat) : Z :=
  den l * cost_at m + charge cs m.

(** No machine is worth more than it may be. *)
Definition shape_holds (worths : list Z) (may : nat -> Z) (c : ishape) : bool :=
  let m := shape_type c in
  let room := may m - by_type m in
  match c with
  | IListed _ a =>
      let z := map (at_ a) types_of_block in
      sum (fun x => fst x * snd x) (combine worths z) + bonus (extras m) z
      + sum_where (is_shape m a) <=? room
  | IBounded _ sizes cap n =>
      forallb (fun qw => match fst qw with
                         | MachinesOfConfiguration m' a => negb (Nat.eqb m m' && in_set sizes cap n a)
                         | _ => true
                         end) ws
      && boxes fuel (combine worths (map (at_ sizes) types_of_block)) cap n (extras m)
           (map (fun i => (0, highest sizes cap i)) types_of_block) room
  end.

Definition signs_hold : bool :=
  (0 <? den l)
  && forallb (Z.leb 0) prices_list
  && forallb (Z.leb 0) (limit_prices l)
  && forallb (Z.leb 0) (multipliers l)
  && forallb (fun qw => match fst qw with
                        | BlocksOfJob _ j => forallb (fun i => 0 <=? own i j) types_of_block
                        | _ => true
                        end) ws
  && forallb (fun x => match snd x with Some u => use P (fst x) <=? u | None => true end)
       (numbered (proper l)).

(** What each job pays at least; None: no block serves it. *)
Definition jobs_pay (plain : list Z) : list (option Z) :=
  map (fun x => cheapest_bundle fuel (combine (own_list plain (fst x)) (isupply (snd x)))
                  (iable (snd x)) (idemand (snd x)) (ireplicas (snd x))) (numbered (ijobs P)).
Definition or_zero (h : option Z) : Z := match h with Some h => h | None => 0 end.
Definition is_some (h : option Z) : bool := match h with Some _ => true | None => false end.

Definition limits_cost : Z :=
  sum (fun x => snd x * reach (fst x)) (combine (ilimits P) (limit_prices l)).
Definition sides_give (sides : list side) : Z :=
  sum (fun xm => sign (fst xm) * snd xm * many (fst xm)) (combine sides (multipliers l)).
End Leaf.

(** None: the leaf proves nothing. Some None: there is no schedule. Some (Some b): the bound b. *)
Definition check_leaf (sides : list side) (l : leaf) : option (option Q) :=
  let ws := weighted sides (multipliers l) in
  let worths := worth_list ws l in
  let cs := charges l in
  if Nat.eqb (length sides) (length (multipliers l)) && signs_hold ws l
     && forallb (shape_holds ws l worths (allowed l cs (icost P))) (ishapes P)
  then
    let hs := jobs_pay ws l (prices_list l) in
    let t := sum or_zero hs - limits_cost l + sides_give l sides in
    if negb (forallb is_some hs)
       || ((0 <? t) && forallb (shape_holds ws l worths (allowed l cs (fun _ => 0))) (ishapes P))
    then Some None
    else Some (Some (Qmake t (Z.to_pos (den l))))
  else None.

Definition smaller (x y : option Q) : option Q :=
  match x, y with
  | None, y => y
  | x, None => x
  | Some a, Some b => Some (if Qle_bool a b then a else b)
  end.

Fixpoint check (sides : list side) (t : tree) : option (option Q) :=
  match t with
  | Leaf l => check_leaf sides l
  | Branch q r below above =>
      match check (sides ++ [{| what := q; up := false; many := r |}]) below,
            check (sides ++ [{| what := q; up := true; many := r + 1 |}]) above with
      | Some x, Some y => Some (smaller x y)
      | _, _ => None
      end
  end.
End Checker.

(** A machine is of a set if its numbers of blocks are. *)
Lemma in_set_iff sizes cap n a M : (forall i, count i (blocks M) = at_ a i) ->
  in_set sizes cap n a = true <-> icut (IBounded (type M) sizes cap n) M.
Proof.
  intros E. assert (B : forall w : nat -> Z, sum (fun x => w (fst x) * snd x) (numbered a)
    = sum (fun b => w (fst b)) (blocks M)).
  { intros w. rewrite (sum_numbered 0 (fun i n => w i * n)).
    rewrite (sum_by_count (length a) (blocks M) w (counted a _ E)). apply sum_ext. intros i _. now rewrite E. }
  assert (L : sum (fun x => snd x) (numbered a) = Z.of_nat (length (blocks M))).
  { rewrite <- sum_length, <- (B (fun _ => 1)). apply sum_ext. intros; lia. }
  unfold in_set. rewrite !andb_true_iff, forallb_forall, (B (at_ sizes)), Z.leb_le, L. cbn [icut].
  assert (S : (forall x, In x (numbered a) -> (snd x =? 0) || (0 <? at_ sizes (fst x)) = true)
    <-> forall b, In b (blocks M) -> 0 < at_ sizes (fst b)).
  { split.
    - intros A b Hb. specialize (A (fst b, at_ a (fst b))). cbn [fst snd] in A.
      rewrite orb_true_iff, Z.eqb_eq, Z.ltb_lt, (in_numbered 0) in A.
      destruct (A (conj (counted a _ E b Hb) eq_refl)) as [A'|]; [|assumption].
      rewrite <- E in A'. pose proof (count_pos b _ Hb). lia.
    - intros A [i x] Hx. apply (in_numbered 0) in Hx as [_ ->]. cbn [fst snd]. fold (at_ a i).
      rewrite <- E, orb_true_iff, Z.eqb_eq, Z.ltb_lt. pose proof (count_nonneg i (blocks M)) as N.
      destruct (Z.eq_dec (count i (blocks M)) 0) as [|Nz]; [now left|right].
      assert (0 < count i (blocks M)) as G by lia. apply sum_pos in G as (b & Hb & G).
      specialize (A b Hb). destruct (Nat.eqb_spec (fst b) i) as [<-|]; cbn [iverson] in G; lia. }
  rewrite S. split.
  - intros [[A C] U]. repeat split; auto. intros u ->. now apply Z.leb_le.
  - intros (_ & A & C & U). repeat split; auto. destruct n as [n|]; [|reflexivity]. now apply Z.leb_le, U.
Qed.
