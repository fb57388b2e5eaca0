(** Sums of integers over lists, and division that rounds up. *)
From Coq Require Export ZArith List Lia Bool Permutation.
Export ListNotations.
Open Scope Z_scope.

Definition sum {A} (f : A -> Z) (l : list A) : Z := fold_right (fun a r => f a + r) 0 l.
Definition iverson (b : bool) : Z := if b then 1 else 0.
(** The i-th number of a list; beyond its end, 0. *)
Definition at_ (l : list Z) (i : nat) : Z := nth i l 0.
Definition cdiv (a b : Z) : Z := - (- a / b).

Lemma sum_cons {A} (f : A -> Z) a l : sum f (a :: l) = f a + sum f l.
Proof. reflexivity. Qed.

Lemma sum_app {A} (f : A -> Z) l m : sum f (l ++ m) = sum f l + sum f m.
Proof. induction l; simpl; lia. Qed.

Lemma sum_le {A} (f g : A -> Z) l : (forall a, In a l -> f a <= g a) -> sum f l <= sum g l.
Proof.
  induction l as [|a l IH]; intros H; [simpl; lia|]. rewrite !sum_cons.
  specialize (IH (fun x Hx => H x (or_intror Hx))). specialize (H a (or_introl eq_refl)). lia.
Qed.

Lemma sum_ext {A} (f g : A -> Z) l : (forall a, In a l -> f a = g a) -> sum f l = sum g l.
Proof. intros H. apply Z.le_antisymm; apply sum_le; intros a Ha; rewrite (H a Ha); lia. Qed.

Lemma sum_plus {A} (f g : A -> Z) l : sum (fun a => f a + g a) l = sum f l + sum g l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_scale {A} c (f : A -> Z) l : sum (fun a => c * f a) l = c * sum f l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_zero {A} (l : list A) : sum (fun _ => 0) l = 0.
Proof. induction l; simpl; lia. Qed.

Lemma sum_nonneg {A} (f : A -> Z) l : (forall a, In a l -> 0 <= f a) -> 0 <= sum f l.
Proof. intros H. rewrite <- (sum_zero l). now apply sum_le. Qed.

Lemma sum_swap {A B} (f : A -> B -> Z) l m :
  sum (fun a => sum (f a) m) l = sum (fun b => sum (fun a => f a b) l) m.
Proof.
  induction l as [|a l IH]; simpl; [now rewrite sum_zero|].
  rewrite IH, <- sum_plus. now apply sum_ext.
Qed.

Lemma sum_flat_map {A B} (f : B -> Z) (g : A -> list B) l :
  sum f (flat_map g l) = sum (fun a => sum f (g a)) l.
Proof. induction l; simpl; [reflexivity|]. rewrite sum_app. lia. Qed.

Lemma sum_map {A B} (f : B -> Z) (g : A -> B) l : sum f (map g l) = sum (fun a => f (g a)) l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_filter {A} (f : A -> Z) p l : sum f (filter p l) = sum (fun a => if p a then f a else 0) l.
Proof. induction l as [|a l IH]; simpl; [reflexivity|]. destruct (p a); simpl; lia. Qed.

Lemma sum_perm {A} (f : A -> Z) l m : Permutation l m -> sum f l = sum f m.
Proof. induction 1; simpl; lia. Qed.

Lemma sum_repeat {A} (f : A -> Z) x n : sum f (repeat x n) = Z.of_nat n * f x.
Proof. induction n; cbn [repeat]; rewrite ?sum_cons; [reflexivity|]. lia. Qed.

Lemma sum_length {A} (l : list A) : sum (fun _ => 1) l = Z.of_nat (length l).
Proof. induction l; cbn [length]; rewrite ?sum_cons; [reflexivity|]. lia. Qed.

Lemma sum_split {A} (f : A -> Z) l x m : sum f (l ++ x :: m) = f x + sum f (l ++ m).
Proof. rewrite !sum_app, sum_cons. lia. Qed.

(** A term of a sum of terms >= 0. *)
Lemma sum_one {A} (f : A -> Z) l a : (forall x, In x l -> 0 <= f x) -> In a l -> f a <= sum f l.
Proof.
  intros H I. apply in_split in I as (l1 & l2 & ->). rewrite sum_split.
  assert (0 <= sum f (l1 ++ l2)); [|lia]. apply sum_nonneg. intros x Hx. apply H.
  rewrite in_app_iff in *. simpl. tauto.
Qed.

(** A positive sum has a positive term. *)
Lemma sum_pos {A} (f : A -> Z) l : 0 < sum f l -> exists a, In a l /\ 0 < f a.
Proof.
  induction l as [|a l IH]; [simpl; lia|]. rewrite sum_cons. intros H.
  destruct (Z.lt_ge_cases 0 (f a)); [exists a; simpl; auto|].
  destruct IH as (x & Hx & P); [lia|]. exists x. simpl. auto.
Qed.

(** Over 0 .. n - 1, of what is c at one point and 0 elsewhere. *)
Lemma sum_delta n i (c : nat -> Z) :
  sum (fun j => if Nat.eqb i j then c j else 0) (seq 0 n) = if Nat.ltb i n then c i else 0.
Proof.
  induction n as [|n IH]; [reflexivity|]. rewrite seq_S, sum_app, IH. simpl.
  destruct (Nat.ltb_spec i n), (Nat.ltb_spec i (S n)), (Nat.eqb_spec i n); subst; try lia.
Qed.

Lemma at_beyond l i : (length l <= i)%nat -> at_ l i = 0.
Proof. intros H. unfold at_. now rewrite nth_overflow. Qed.

Lemma at_map_seq f n i : at_ (map f (seq 0 n)) i = if Nat.ltb i n then f i else 0.
Proof.
  destruct (Nat.ltb_spec i n) as [L|G]; [|apply at_beyond; now rewrite map_length, seq_length].
  unfold at_. rewrite (nth_indep _ 0 (f 0%nat)) by now rewrite map_length, seq_length.
  now rewrite map_nth, seq_nth.
Qed.

Lemma cdiv_le a b c : 0 < b -> a <= c * b -> cdiv a b <= c.
Proof. intros B H. unfold cdiv. assert (- c <= - a / b) by (apply Z.div_le_lower_bound; lia). lia. Qed.

Lemma cdiv_ge a b : 0 < b -> a <= cdiv a b * b.
Proof. intros B. unfold cdiv. pose proof (Z.mul_div_le (- a) b B). lia. Qed.

Lemma map_seq_shift {A} (f : nat -> A) s n :
  map f (seq (S s) n) = map (fun i => f (S i)) (seq s n).
Proof. now rewrite <- seq_shift, map_map. Qed.

(** A list with its numbers. *)
Definition numbered {A} (l : list A) : list (nat * A) := combine (seq 0 (length l)) l.

Lemma numbered_seq {A} (d : A) l : numbered l = map (fun i => (i, nth i l d)) (seq 0 (length l)).
Proof.
  unfold numbered. enough (forall s, combine (seq s (length l)) l
    = map (fun i => (i, nth (i - s) l d)) (seq s (length l))) as E.
  { rewrite E. apply map_ext_in. intros i _. now rewrite Nat.sub_0_r. }
  induction l as [|a l IH]; intros s; [reflexivity|]. cbn [length seq combine map]. f_equal.
  - now rewrite Nat.sub_diag.
  - rewrite IH. apply map_ext_in. intros i Hi. apply in_seq in Hi.
    replace (i - s)%nat with (S (i - S s)) by lia. reflexivity.
Qed.

Lemma sum_numbered {A} (d : A) (f : nat -> A -> Z) l :
  sum (fun x => f (fst x) (snd x)) (numbered l) = sum (fun i => f i (nth i l d)) (seq 0 (length l)).
Proof. now rewrite (numbered_seq d), sum_map. Qed.

Lemma sum_nth {A} (d : A) (f : A -> Z) l :
  sum (fun i => f (nth i l d)) (seq 0 (length l)) = sum f l.
Proof.
  rewrite <- (sum_numbered d (fun _ => f)). unfold numbered. generalize 0%nat.
  induction l as [|a l IH]; intros s; [reflexivity|].
  cbn [length seq combine]. rewrite !sum_cons. cbn [snd]. now rewrite IH.
Qed.

Lemma in_numbered {A} (d : A) l i a :
  In (i, a) (numbered l) <-> (i < length l)%nat /\ a = nth i l d.
Proof.
  rewrite (numbered_seq d), in_map_iff. split.
  - intros (j & E & H). injection E as <- <-. apply in_seq in H. split; [lia|reflexivity].
  - intros [H ->]. exists i. split; [reflexivity|]. apply in_seq. lia.
Qed.

Lemma combine_maps {A B C} (f : A -> B) (g : A -> C) l :
  combine (map f l) (map g l) = map (fun a => (f a, g a)) l.
Proof. induction l; simpl; congruence. Qed.

Lemma combine_seq {A} (f : nat -> A) (l : list Z) n :
  combine (map f (seq 0 n)) l = map (fun i => (f i, at_ l i)) (seq 0 (min n (length l))).
Proof.
  assert (forall n l a, combine (map f (seq a n)) l
    = map (fun i => (f i, at_ l (i - a))) (seq a (min n (length l)))) as G.
  { induction n0 as [|m IH]; intros [|y l0] a; try reflexivity.
    cbn [length min seq map combine]. rewrite Nat.sub_diag, IH. f_equal. apply map_ext_in.
    intros i Hi. apply in_seq in Hi. f_equal. replace (i - a)%nat with (S (i - S a)) by lia. reflexivity. }
  rewrite G. apply map_ext. intros i. now rewrite Nat.sub_0_r.
Qed.

(** n numbers from a on. *)
Fixpoint counting (n : nat) (a : Z) : list Z :=
  match n with O => [] | S n => a :: counting n (a + 1) end.

Lemma counting_is n : forall a, counting n a = map (fun i => a + Z.of_nat i) (seq 0 n).
Proof.
  induction n as [|n IH]; intros a; [reflexivity|]. cbn [counting seq map].
  rewrite map_seq_shift, IH. f_equal; [lia|]. apply map_ext. intros i. lia.
Qed.
