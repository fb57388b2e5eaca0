(** The definitions of Spec.v in integers: what the checker computes with. Scale.v ties the two. *)
From CMS Require Export Spec.

(** Limits of one machine type and of several are one: types, with how much a machine counts. *)
Record ilimit := { iweights : list (nat * Z); igreatest : Z }.
Inductive ishape :=
| IListed (m : nat) (counts : list Z)
| IBounded (m : nat) (sizes : list Z) (capacity : Z) (max_blocks : option Z).
Record ijob := { idemand : Z; isupply : list Z; ireplicas : Z; iable : list Z }.
Record iproblem := {
  icosts : list Z; iblock_types : nat; ishapes : list ishape; ijobs : list ijob;
  ilimits : list ilimit }.

Definition no_ijob := {| idemand := 0; isupply := []; ireplicas := 0; iable := [] |}.
(** Replicas are covered as a demand is, by the blocks that can be one: 1 of each. *)
Definition irows (x : ijob) : list (Z * list Z) := [(idemand x, isupply x); (ireplicas x, iable x)].
Definition icost (P : iproblem) (m : nat) : Z := at_ (icosts P) m.
Definition weight (L : ilimit) (m : nat) : Z :=
  sum (fun x => if Nat.eqb (fst x) m then snd x else 0) (iweights L).
Definition load (L : ilimit) (s : schedule) : Z := sum (fun M => weight L (type M)) s.
Definition ijob_at (P : iproblem) (j : nat) : ijob := nth j (ijobs P) no_ijob.
Definition shape_type (c : ishape) : nat :=
  match c with IListed m _ => m | IBounded m _ _ _ => m end.

Definition icut (c : ishape) (M : machine) : Prop :=
  match c with
  | IListed m a => type M = m /\ forall i, count i (blocks M) = at_ a i
  | IBounded m sizes capacity max_blocks =>
      type M = m
      /\ (forall b, In b (blocks M) -> 0 < at_ sizes (fst b))
      /\ sum (fun b => at_ sizes (fst b)) (blocks M) <= capacity
      /\ (forall n, max_blocks = Some n -> Z.of_nat (length (blocks M)) <= n)
  end.

Definition icovered (s : schedule) (j : nat) (f : list Z) : Z :=
  sum (fun b => if serves j b then at_ f (fst b) else 0) (all_blocks s).

Record ivalid (P : iproblem) (s : schedule) : Prop := {
  ivalid_cut : forall M, In M s -> exists c, In c (ishapes P) /\ icut c M;
  ivalid_blocks : forall b, In b (all_blocks s) -> (fst b < iblock_types P)%nat;
  ivalid_jobs : forall b j, In b (all_blocks s) -> snd b = Some j -> (j < length (ijobs P))%nat;
  ivalid_covers : forall j r, (j < length (ijobs P))%nat -> In r (irows (ijob_at P j)) ->
    fst r <= icovered s j (snd r);
  ivalid_limits : forall L, In L (ilimits P) -> load L s <= igreatest L }.

Definition icost_of (P : iproblem) (s : schedule) : Z :=
  sum (fun M => icost P (type M)) s.

(** What every problem of a file has, and theorems need: nothing costs, supplies or counts less than
    0, and listed configurations have known blocks, none less than 0 times. *)
Definition sane (P : iproblem) : bool :=
  forallb (Z.leb 0) (icosts P)
  && forallb (fun L => forallb (fun x => 0 <=? snd x) (iweights L)) (ilimits P)
  && forallb (fun x =>
       forallb (Z.leb 0) (isupply x) && forallb (fun a => (0 <=? a) && (a <=? 1)) (iable x)
       && ((ireplicas x <=? 0) || Nat.eqb (length (iable x)) (length (isupply x)))) (ijobs P)
  && forallb (fun c => match c with
                       | IListed _ a => Nat.leb (length a) (iblock_types P) && forallb (Z.leb 0) a
                       | IBounded _ _ _ _ => true
                       end) (ishapes P).

Lemma cost_nonneg P m : sane P = true -> 0 <= icost P m.
Proof.
  intros H. unfold sane in H. rewrite !andb_true_iff in H. destruct H as [[[H _] _] _].
  rewrite forallb_forall in H. unfold icost.
  destruct (Nat.lt_ge_cases m (length (icosts P))); [|rewrite at_beyond; lia].
  apply Z.leb_le, H. now apply nth_In.
Qed.

Lemma weight_nonneg P L m : sane P = true -> In L (ilimits P) -> 0 <= weight L m.
Proof.
  intros H I. unfold sane in H. rewrite !andb_true_iff in H. destruct H as [[[_ H] _] _].
  rewrite forallb_forall in H. specialize (H L I). rewrite forallb_forall in H.
  apply sum_nonneg. intros x Hx. specialize (H x Hx). apply Z.leb_le in H. destruct (Nat.eqb _ _); lia.
Qed.

Lemma job_sane P j : sane P = true ->
  (forall i, 0 <= at_ (isupply (ijob_at P j)) i) /\ (forall i, 0 <= at_ (iable (ijob_at P j)) i <= 1)
  /\ (ireplicas (ijob_at P j) <= 0 \/ length (iable (ijob_at P j)) = length (isupply (ijob_at P j))).
Proof.
  intros H. unfold sane in H. rewrite !andb_true_iff in H. destruct H as [[[_ _] H] _].
  rewrite forallb_forall in H. unfold ijob_at.
  destruct (Nat.lt_ge_cases j (length (ijobs P))) as [L|G].
  2:{ rewrite nth_overflow by lia. cbn. split; [|split; [|now left]]; intros [|i]; cbn; lia. }
  specialize (H _ (nth_In _ no_ijob L)). rewrite !andb_true_iff, orb_true_iff, Z.leb_le, Nat.eqb_eq in H.
  destruct H as [[A B] C]. rewrite forallb_forall in A, B. split; [|split; [|exact C]]; intros i.
  - destruct (Nat.lt_ge_cases i (length (isupply (nth j (ijobs P) no_ijob)))); [|rewrite at_beyond; lia].
    apply Z.leb_le, A. now apply nth_In.
  - destruct (Nat.lt_ge_cases i (length (iable (nth j (ijobs P) no_ijob)))); [|rewrite at_beyond; lia].
    specialize (B _ (nth_In _ 0 H)). rewrite andb_true_iff, !Z.leb_le in B. exact B.
Qed.

Lemma row_nonneg P j r i : sane P = true -> In r (irows (ijob_at P j)) -> 0 <= at_ (snd r) i.
Proof. intros H. destruct (job_sane P j H) as (A & B & _). intros [<-|[<-|[]]]; [apply A|apply B]. Qed.

Lemma listed_sane P m a : sane P = true -> In (IListed m a) (ishapes P) ->
  (length a <= iblock_types P)%nat /\ forall i, 0 <= at_ a i.
Proof.
  intros H I. unfold sane in H. rewrite !andb_true_iff in H. destruct H as [_ H].
  rewrite forallb_forall in H. specialize (H _ I). apply andb_true_iff in H as [H1 H2].
  split; [now apply Nat.leb_le|]. intros i. rewrite forallb_forall in H2.
  destruct (Nat.lt_ge_cases i (length a)); [|rewrite at_beyond; lia].
  apply Z.leb_le, H2. now apply nth_In.
Qed.

(** * Blocks of a machine *)
Lemma count_nonneg i l : 0 <= count i l.
Proof. apply sum_nonneg. intros b _. destruct (Nat.eqb _ _); simpl; lia. Qed.

Lemma count_pos b l : In b l -> 1 <= count (fst b) l.
Proof.
  intros H. etransitivity; [|apply (sum_one (fun x => iverson (Nat.eqb (fst x) (fst b))) l b)].
  - rewrite Nat.eqb_refl. simpl. lia.
  - intros x _. destruct (Nat.eqb _ _); simpl; lia.
  - assumption.
Qed.

Lemma counted a l : (forall i, count i l = at_ a i) -> forall b, In b l -> (fst b < length a)%nat.
Proof.
  intros H b Hb. destruct (Nat.lt_ge_cases (fst b) (length a)) as [|G]; [assumption|].
  pose proof (count_pos b l Hb). rewrite H, at_beyond in *; lia.
Qed.

(** A sum over blocks, type by type. *)
Lemma sum_by_count k l (w : nat -> Z) : (forall b, In b l -> (fst b < k)%nat) ->
  sum (fun b => w (fst b)) l = sum (fun i => w i * count i l) (seq 0 k).
Proof.
  intros B. rewrite (sum_ext (fun i => w i * count i l)
    (fun i => sum (fun b => if Nat.eqb (fst b) i then w i else 0) l)).
  2:{ intros i _. unfold count. rewrite <- sum_scale. apply sum_ext.
      intros b _. destruct (Nat.eqb _ _); simpl; lia. }
  rewrite <- sum_swap. apply sum_ext. intros b Hb. rewrite (sum_delta k (fst b) w).
  specialize (B b Hb). destruct (Nat.ltb_spec (fst b) k); lia.
Qed.

Definition same_counts (a : list Z) (l : list block) : bool :=
  forallb (fun b => Nat.ltb (fst b) (length a)) l
  && forallb (fun i => count i l =? at_ a i) (seq 0 (length a)).

Lemma same_counts_iff a l : same_counts a l = true <-> forall i, count i l = at_ a i.
Proof.
  unfold same_counts. rewrite andb_true_iff, !forallb_forall. split.
  - intros [H1 H2] i. destruct (Nat.lt_ge_cases i (length a)) as [L|G].
    + apply Z.eqb_eq, H2, in_seq. lia.
    + rewrite at_beyond by lia. unfold count. rewrite <- (sum_zero l).
      apply sum_ext. intros b Hb. specialize (H1 b Hb). apply Nat.ltb_lt in H1.
      destruct (Nat.eqb_spec (fst b) i); simpl; lia.
  - intros H. split.
    + intros b Hb. apply Nat.ltb_lt. now apply (counted a l H).
    + intros i _. apply Z.eqb_eq, H.
Qed.

Definition same_shape (a a' : list Z) : bool :=
  forallb (fun i => at_ a i =? at_ a' i) (seq 0 (max (length a) (length a'))).

Lemma same_shape_iff a a' : same_shape a a' = true <-> forall i, at_ a i = at_ a' i.
Proof.
  unfold same_shape. rewrite forallb_forall. split.
  - intros H i. destruct (Nat.lt_ge_cases i (max (length a) (length a'))).
    + apply Z.eqb_eq, H, in_seq. lia.
    + rewrite !at_beyond; lia.
  - intros H i _. apply Z.eqb_eq, H.
Qed.
