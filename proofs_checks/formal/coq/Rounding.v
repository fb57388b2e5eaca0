(** The rounding lemma: a fractional y becomes whole, no type is overdrawn, and each job loses less
    than one block.

    y_ij = Y i j / N. Each fractional y_ij is owned by its type, and rounded up, or by its job, and
    rounded down; types and jobs own one at most. That the support of a vertex has such owners (it is
    a pseudoforest) is not proved here: a program can find them, and [owners_hold] checks them. *)
From CMS Require Export Sums.

Section Rounding.
Variables k n : nat.
Variable N : Z.
Variable Y : nat -> nat -> Z.
(** The job for which a type rounds up, the type that a job rounds down. *)
Variables up_edge down_edge : nat -> option nat.

Definition owns (e : option nat) (x : nat) : bool :=
  match e with Some y => Nat.eqb y x | None => false end.
Definition owners_hold : bool :=
  forallb (fun i => forallb (fun j =>
    (Y i j mod N =? 0) || owns (up_edge i) j || owns (down_edge j) i) (seq 0 n)) (seq 0 k).
Definition whole (i j : nat) : Z := if owns (up_edge i) j then cdiv (Y i j) N else Y i j / N.

Hypothesis N_pos : 0 < N.
Hypothesis owned : owners_hold = true.

Lemma whole_nonneg i j : 0 <= Y i j -> 0 <= whole i j.
Proof.
  intros H. unfold whole. pose proof (cdiv_ge (Y i j) N N_pos).
  pose proof (Z.div_pos (Y i j) N H N_pos). destruct (owns _ _); nia.
Qed.

Lemma sum_owned m e (c : nat -> Z) : sum (fun x => if owns e x then c x else 0) (seq 0 m)
  = match e with Some y => if Nat.ltb y m then c y else 0 | None => 0 end.
Proof. destruct e as [y|]; cbn [owns]; [apply sum_delta|apply sum_zero]. Qed.

(** No type gives more blocks than there are. *)
Theorem rounded_fits B i : sum (fun j => Y i j) (seq 0 n) <= N * B ->
  sum (fun j => whole i j) (seq 0 n) <= B.
Proof.
  intros F. assert (N * sum (fun j => whole i j) (seq 0 n)
    <= sum (fun j => Y i j + if owns (up_edge i) j then N - 1 else 0) (seq 0 n)) as H.
  { rewrite <- sum_scale. apply sum_le. intros j _. unfold whole, cdiv. destruct (owns _ _).
    - pose proof (Z.div_mod (- Y i j) N). pose proof (Z.mod_pos_bound (- Y i j) N). nia.
    - pose proof (Z.mul_div_le (Y i j) N). lia. }
  rewrite sum_plus, (sum_owned n (up_edge i) (fun _ => N - 1)) in H.
  change (fun j : nat => Y i j) with (Y i) in *.
  assert (N * sum (fun j => whole i j) (seq 0 n) < N * (B + 1)); [|nia].
  destruct (up_edge i) as [y|]; [destruct (Nat.ltb y n)|]; lia.
Qed.

(** A job loses less than one block of the type it rounds down. *)
Theorem rounded_covers (f : nat -> Z) D j : (forall i, 0 <= f i) -> (j < n)%nat ->
  N * D <= sum (fun i => f i * Y i j) (seq 0 k) ->
  N * D - match down_edge j with Some i => (N - 1) * f i | None => 0 end
  <= N * sum (fun i => f i * whole i j) (seq 0 k).
Proof.
  intros Hf Hj C. assert (sum (fun i => f i * Y i j) (seq 0 k)
    <= sum (fun i => N * (f i * whole i j)
          + if owns (down_edge j) i then (N - 1) * f i else 0) (seq 0 k)) as H.
  { apply sum_le. intros i Hi. specialize (Hf i). pose proof (cdiv_ge (Y i j) N N_pos).
    pose proof (Z.div_mod (Y i j) N ltac:(lia)). pose proof (Z.mod_pos_bound (Y i j) N N_pos).
    unfold owners_hold in owned. rewrite forallb_forall in owned. specialize (owned i Hi).
    rewrite forallb_forall in owned. specialize (owned j ltac:(apply in_seq; lia)).
    rewrite !orb_true_iff, Z.eqb_eq in owned. unfold whole.
    destruct (owns (up_edge i) j), (owns (down_edge j) i); nia. }
  rewrite sum_plus, sum_scale, (sum_owned k (down_edge j) (fun i => (N - 1) * f i)) in H.
  destruct (down_edge j) as [i|]; [|lia]. specialize (Hf i). destruct (Nat.ltb i k); nia.
Qed.

(** With twice the demand the loss is made good, if no block covers more than the demand. *)
Theorem rounded_covers_twice (f : nat -> Z) d j : (forall i, 0 <= f i <= d) -> (j < n)%nat ->
  N * (2 * d) <= sum (fun i => f i * Y i j) (seq 0 k) -> d <= sum (fun i => f i * whole i j) (seq 0 k).
Proof.
  intros Hf Hj C. pose proof (rounded_covers f (2 * d) j (fun i => proj1 (Hf i)) Hj C) as H.
  pose proof (Hf 0%nat) as H0.
  enough (N * d <= N * sum (fun i => f i * whole i j) (seq 0 k)) by nia.
  destruct (down_edge j) as [i|]; [specialize (Hf i)|]; nia.
Qed.
End Rounding.
