(** Where many types tie, the search goes round in circles. A table over the remainders modulo the
    cover F of the best block then tells all; nobody need trust how it was made. *)
From CMS Require Export Cover.

(** What is lost at a remainder if the best block alone covers it, in units of 1 / F. *)
Definition alone (P F r : Z) : Z := P * (- r mod F).
(** Entry r of the result is entry r - g, modulo the length. *)
Definition rotate (g : nat) (w : list Z) : list Z :=
  skipn (length w - g) w ++ firstn (length w - g) w.
Definition turned (P F : Z) (x : item) (w : list Z) : list Z :=
  map (fun n => n + (fst x * F - P * snd x)) (rotate (Z.to_nat (snd x mod F)) w).
Definition pairwise (f : Z -> Z -> bool) (a b : list Z) : bool :=
  Nat.eqb (length a) (length b) && forallb (fun x => f (fst x) (snd x)) (combine a b).

(** The rules of a table: each is checked once an entry. *)
Definition holds (P F : Z) (items : list item) (w : list Z) : bool :=
  (Z.of_nat (length w) =? F)
  && pairwise Z.leb w (map (alone P F) (counting (length w) 0))
  && forallb (fun x => pairwise Z.leb w (turned P F x w)) items.

Definition entry (F : Z) (w : list Z) (d : Z) : Z := at_ w (Z.to_nat (d mod F)).
Definition least (P F : Z) (w : list Z) (D : Z) : Z := cdiv (P * D + entry F w D) F.

Lemma nth_skip m : forall (w : list Z) r, nth r (skipn m w) 0 = nth (m + r) w 0.
Proof. induction m as [|m IH]; intros [|x w] r; simpl; auto. now destruct r. Qed.

Lemma nth_first m : forall (w : list Z) r, (r < m)%nat -> nth r (firstn m w) 0 = nth r w 0.
Proof.
  induction m as [|m IH]; intros [|x w] r H; try lia; destruct r; simpl; auto. apply IH. lia.
Qed.

Lemma rotate_at g w r : (g <= length w)%nat -> (r < length w)%nat ->
  at_ (rotate g w) r = at_ w (if Nat.ltb r g then length w - g + r else r - g)%nat.
Proof.
  intros Hg Hr. unfold rotate, at_. destruct (Nat.ltb_spec r g).
  - rewrite app_nth1 by (rewrite skipn_length; lia). apply nth_skip.
  - rewrite app_nth2, skipn_length by (rewrite skipn_length; lia).
    rewrite nth_first by lia. f_equal. lia.
Qed.

Lemma pairwise_at a b i : pairwise Z.leb a b = true -> (i < length a)%nat -> at_ a i <= at_ b i.
Proof.
  unfold pairwise. rewrite andb_true_iff, Nat.eqb_eq. intros [L H] Hi. rewrite forallb_forall in H.
  specialize (H (nth i (combine a b) (0, 0))). rewrite combine_nth in H by exact L.
  cbn [fst snd] in H. apply Z.leb_le, H. rewrite <- combine_nth by exact L.
  apply nth_In. rewrite combine_length. lia.
Qed.

Section Table.
Variables P F : Z.
Hypothesis F_pos : 0 < F.
Hypothesis P_nonneg : 0 <= P.
Variable items : list item.
Variable w : list Z.
Hypothesis H : holds P F items w = true.

Lemma size_of_table : Z.of_nat (length w) = F.
Proof. unfold holds in H. rewrite !andb_true_iff in H. now apply Z.eqb_eq. Qed.

Lemma in_table d : (Z.to_nat (d mod F) < length w)%nat.
Proof. pose proof size_of_table. pose proof (Z.mod_pos_bound d F F_pos). lia. Qed.

Lemma nothing_left d : d <= 0 -> P * d + entry F w d <= 0.
Proof.
  intros Hd. pose proof (in_table d) as I. unfold holds in H. rewrite !andb_true_iff in H.
  destruct H as [[_ A] _]. pose proof (pairwise_at _ _ _ A I) as B. fold (entry F w d) in B.
  etransitivity; [apply Z.add_le_mono_l; exact B|]. unfold at_.
  rewrite counting_is, map_map, (nth_indep _ 0 (alone P F (0 + Z.of_nat 0)))
    by now rewrite map_length, seq_length.
  rewrite (map_nth (fun r => alone P F (0 + Z.of_nat r))), seq_nth by exact I.
  unfold alone. rewrite Nat.add_0_l, Z.add_0_l, Z2Nat.id by (apply Z.mod_pos_bound; lia).
  assert (- (d mod F) mod F = - d mod F) as ->.
  { pose proof (Z.div_mod d F ltac:(lia)) as E. rewrite E at 2.
    replace (- (F * (d / F) + d mod F)) with (- (d mod F) + (- (d / F)) * F) by ring.
    now rewrite Z.mod_add by lia. }
  pose proof (Z.mod_le (- d) F ltac:(lia) F_pos). nia.
Qed.

Lemma entry_turned f d : at_ (rotate (Z.to_nat (f mod F)) w) (Z.to_nat (d mod F)) = entry F w (d - f).
Proof.
  pose proof size_of_table as L. pose proof (Z.mod_pos_bound d F F_pos) as Bd.
  pose proof (Z.mod_pos_bound f F F_pos) as Bf.
  rewrite rotate_at by lia. unfold entry. f_equal. rewrite Zminus_mod.
  destruct (Nat.ltb_spec (Z.to_nat (d mod F)) (Z.to_nat (f mod F))).
  - replace (d mod F - f mod F) with (d mod F - f mod F + F + (-1) * F) by ring.
    rewrite Z.mod_add, (Z.mod_small (d mod F - f mod F + F)) by lia. lia.
  - rewrite (Z.mod_small (d mod F - f mod F)) by lia. lia.
Qed.

Lemma one_more x d : In x items -> P * d + entry F w d <= fst x * F + (P * (d - snd x) + entry F w (d - snd x)).
Proof.
  intros I. pose proof (proj2 (andb_prop _ _ H)) as A.
  rewrite forallb_forall in A. pose proof (pairwise_at _ _ _ (A x I) (in_table d)) as B.
  fold (entry F w d) in B. unfold turned, at_ in B.
  rewrite (nth_indep _ 0 (0 + (fst x * F - P * snd x))) in B.
  2:{ rewrite map_length. unfold rotate. rewrite app_length, skipn_length, firstn_length.
      pose proof (in_table d). lia. }
  rewrite (map_nth (fun n => n + (fst x * F - P * snd x))) in B.
  fold (at_ (rotate (Z.to_nat (snd x mod F)) w) (Z.to_nat (d mod F))) in B.
  rewrite entry_turned in B. lia.
Qed.

Lemma so_many x z d : In x items -> 0 <= z ->
  P * d + entry F w d <= fst x * z * F + (P * (d - snd x * z) + entry F w (d - snd x * z)).
Proof.
  intros I Hz. revert d. pattern z. apply natlike_ind; [intros d|intros y Hy IH d|assumption].
  - rewrite !Z.mul_0_r, Z.sub_0_r. lia.
  - pose proof (one_more x d I). specialize (IH (d - snd x)).
    replace (d - snd x * Z.succ y) with (d - snd x - snd x * y) by lia. lia.
Qed.

Theorem table_sound c D : chosen items c -> D <= cover c -> least P F w D <= price c.
Proof.
  intros [E N] C. unfold least. apply cdiv_le; [exact F_pos|].
  assert (forall c d, incl (map fst c) items -> Forall (fun x => 0 <= snd x) c ->
    P * d + entry F w d <= price c * F + (P * (d - cover c) + entry F w (d - cover c))) as K.
  { clear c D E N C. intros c. induction c as [|[x z] c IH]; intros d I N.
    - unfold price, cover. simpl. rewrite Z.sub_0_r. lia.
    - pose proof (so_many x z d (I x (or_introl eq_refl)) (Forall_inv N)) as S.
      specialize (IH (d - snd x * z) (fun y Hy => I y (or_intror Hy)) (Forall_inv_tail N)).
      unfold price, cover in *. rewrite !sum_cons. cbn [fst snd] in *.
      replace (d - (snd x * z + sum (fun x => snd (fst x) * snd x) c))
        with (d - snd x * z - sum (fun x => snd (fst x) * snd x) c) by lia. lia. }
  specialize (K c D ltac:(rewrite E; apply incl_refl) N).
  pose proof (nothing_left (D - cover c) ltac:(lia)). lia.
Qed.
End Table.

(** How a table is made: a block of each type 1, 2, 4, ... times over. Nothing is proved of this. *)
Fixpoint doubled (steps : nat) (P F : Z) (x : item) (w : list Z) : list Z :=
  match steps with
  | O => w
  | S steps =>
      let v := map (fun y => Z.min (fst y) (snd y)) (combine w (turned P F x w)) in
      doubled steps P F (2 * fst x, 2 * snd x) v
  end.

Definition table (P F : Z) (items : list item) : list Z :=
  fold_right (doubled (Z.to_nat (Z.log2_up F)) P F)
    (map (alone P F) (counting (Z.to_nat F) 0)) items.
