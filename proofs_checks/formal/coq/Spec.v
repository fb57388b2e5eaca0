(** * Configurable Machine Scheduling, by its definition

    This file is to be read and judged: what the theorems say is said in its words. All numbers are
    rational, as files have them; block types, machine types and jobs are numbered 0, 1, 2, ... *)
From Coq Require Export QArith.
From CMS Require Export Sums.
Open Scope Z_scope.

(** ** The problem *)
Record machine_type := { cost_of : Q; limit_of : option Z }.

(** What a machine may be cut into: so many blocks of each type; or any blocks of total size at most
    a capacity. There are no blocks of size 0 or less. *)
Inductive configuration :=
| Listed (m : nat) (counts : list Z)
| SizeBounded (m : nat) (sizes : list Q) (capacity : Q) (max_blocks : option Z).

(** [supply] is how much of the demand one block of each type covers. Of the job's blocks so many as
    [replicas] cover something, and at least the part [share] of the demand each. *)
Record job := { demand : Q; supply : list Q; replicas : Z; share : Q }.

(** A limit of several machine types together: each machine counts with the weight of its type. *)
Record group_limit := { weights : list Q; greatest : Q }.

Record problem := {
  machine_types : list machine_type;
  block_types : nat;
  configurations : list configuration;
  jobs : list job;
  group_limits : list group_limit }.

(** ** Schedules *)
(** A block on a machine: its type, and the job that it serves, if any. *)
Notation block := (nat * option nat)%type.
Record machine := { type : nat; blocks : list block }.
Definition schedule := list machine.

Definition qsum {A} (f : A -> Q) (l : list A) : Q := fold_right (fun a r => f a + r)%Q 0%Q l.
Definition qat (l : list Q) (i : nat) : Q := nth i l 0%Q.
Definition no_type := {| cost_of := 0; limit_of := None |}.
Definition no_job := {| demand := 0; supply := []; replicas := 0; share := 0 |}.

Definition all_blocks (s : schedule) : list block := flat_map blocks s.
(** How many of these blocks are of type i. *)
Definition count (i : nat) (l : list block) : Z := sum (fun b => iverson (Nat.eqb (fst b) i)) l.
Definition machines_of_type (m : nat) (s : schedule) : Z :=
  sum (fun M => iverson (Nat.eqb (type M) m)) s.
Definition serves (j : nat) (b : block) : bool :=
  match snd b with Some j' => Nat.eqb j' j | None => false end.

Definition cut_into (c : configuration) (M : machine) : Prop :=
  match c with
  | Listed m counts => type M = m /\ forall i, count i (blocks M) = at_ counts i
  | SizeBounded m sizes capacity max_blocks =>
      type M = m
      /\ (forall b, In b (blocks M) -> 0 < qat sizes (fst b))%Q
      /\ (qsum (fun b => qat sizes (fst b)) (blocks M) <= capacity)%Q
      /\ (forall n, max_blocks = Some n -> Z.of_nat (length (blocks M)) <= n)
  end.

(** What the blocks that serve job number j, which is x, cover of its demand. *)
Definition covered (s : schedule) (j : nat) (x : job) : Q :=
  qsum (fun b => if serves j b then qat (supply x) (fst b) else 0%Q) (all_blocks s).

(** How many of the blocks that serve it are replicas. *)
Definition is_replica (x : job) (f : Q) : bool :=
  negb (Qle_bool f 0) && Qle_bool (share x * demand x) f.
Definition replicated (s : schedule) (j : nat) (x : job) : Z :=
  sum (fun b => iverson (serves j b && is_replica x (qat (supply x) (fst b)))) (all_blocks s).

Record valid (P : problem) (s : schedule) : Prop := {
  every_machine_is_cut :
    forall M, In M s -> exists c, In c (configurations P) /\ cut_into c M;
  blocks_are_known : forall b, In b (all_blocks s) -> (fst b < block_types P)%nat;
  jobs_are_known :
    forall b j, In b (all_blocks s) -> snd b = Some j -> (j < length (jobs P))%nat;
  demands_are_covered :
    forall j, (j < length (jobs P))%nat ->
      (demand (nth j (jobs P) no_job) <= covered s j (nth j (jobs P) no_job))%Q;
  replicas_are_there :
    forall j, (j < length (jobs P))%nat -> (0 < demand (nth j (jobs P) no_job))%Q ->
      replicas (nth j (jobs P) no_job) <= replicated s j (nth j (jobs P) no_job);
  limits_are_kept :
    forall m u, (m < length (machine_types P))%nat ->
      limit_of (nth m (machine_types P) no_type) = Some u -> machines_of_type m s <= u;
  group_limits_are_kept :
    forall g, In g (group_limits P) ->
      (qsum (fun M => qat (weights g) (type M)) s <= greatest g)%Q }.

Definition cost (P : problem) (s : schedule) : Q :=
  qsum (fun M => cost_of (nth (type M) (machine_types P) no_type)) s.

(** ** What is claimed of a problem *)
Definition attained (P : problem) (c : Q) : Prop := exists s, valid P s /\ (cost P s == c)%Q.
Definition at_least (P : problem) (b : Q) : Prop := forall s, valid P s -> (b <= cost P s)%Q.

Inductive verdict :=
| Rejected               (* nothing is claimed *)
| Infeasible             (* there is no schedule *)
| Optimal (c : Q)        (* some schedule costs c, and none less *)
| Between (b c : Q)      (* some schedule costs c, and none less than b *)
| AtLeast (b : Q).       (* none costs less than b *)

Definition means (P : problem) (v : verdict) : Prop :=
  match v with
  | Rejected => True
  | Infeasible => forall s, ~ valid P s
  | Optimal c => attained P c /\ at_least P c
  | Between b c => attained P c /\ at_least P b
  | AtLeast b => at_least P b
  end.
