(** Where the search comes to no end and the demand is no large number: a table of the least price of
    covering each amount from 1 on. Nobody need trust how it was made. *)
From CMS Require Export Remainders.

(** The rule of a table for one item: an amount costs no more than the item and what is left of it. *)
Definition shifted (x : item) (w : list Z) : list Z :=
  repeat (fst x) (Z.to_nat (snd x)) ++ map (fun n => fst x + n) w.
Definition amounts_hold (items : list item) (w : list Z) : bool :=
  forallb (fun x => (0 <=? fst x) && (0 <=? snd x)
                    && forallb (fun y => fst y <=? snd y) (combine w (shifted x w))) items.

(** The table's price of an amount. *)
Definition listed_price (w : list Z) (d : Z) : Z := if d <=? 0 then 0 else at_ w (Z.to_nat (d - 1)).

Section Amounts.
Variable items : list item.
Variable w : list Z.
Hypothesis H : amounts_hold items w = true.
Let top := Z.of_nat (length w).

Lemma shifted_at x d : In x items -> d <= top ->
  0 <= fst x /\ 0 <= snd x /\ listed_price w d <= fst x + listed_price w (d - snd x).
Proof.
  intros I Hd. unfold amounts_hold in H. rewrite forallb_forall in H. pose proof (H x I) as A.
  rewrite !andb_true_iff, !Z.leb_le in A. destruct A as [[P F] A]. split; [exact P|split; [exact F|]].
  unfold listed_price at 1. destruct (Z.leb_spec d 0) as [L|L].
  { unfold listed_price. destruct (Z.leb_spec (d - snd x) 0); lia. }
  set (i := Z.to_nat (d - 1)). assert (i < length w)%nat as Hi by (unfold top in *; lia).
  assert (length w <= length (shifted x w))%nat as Hl.
  { unfold shifted. rewrite app_length, map_length. lia. }
  rewrite forallb_forall in A. specialize (A (at_ w i, at_ (shifted x w) i)).
  cbn [fst snd] in A. rewrite Z.leb_le in A. etransitivity; [apply A|].
  - clearbody i. clear - Hi Hl.
    unfold at_. revert i Hi Hl. generalize (shifted x w) as v.
    induction w as [|a l IH]; intros [|b v] i Hi Hl; simpl in Hi, Hl; try lia.
    destruct i; cbn [nth combine In]; [now left|right; apply IH; lia].
  - unfold shifted, at_. destruct (Nat.lt_ge_cases i (Z.to_nat (snd x))) as [G|G].
    + rewrite app_nth1 by now rewrite repeat_length.
      rewrite (nth_indep _ 0 (fst x)) by now rewrite repeat_length. rewrite nth_repeat.
      unfold listed_price. destruct (Z.leb_spec (d - snd x) 0); lia.
    + rewrite app_nth2; rewrite repeat_length; [|exact G].
      rewrite (nth_indep _ 0 (fst x + 0)) by (rewrite map_length; lia).
      rewrite (map_nth (fun n => fst x + n)). unfold listed_price, at_.
      destruct (Z.leb_spec (d - snd x) 0); [lia|].
      replace (i - Z.to_nat (snd x))%nat with (Z.to_nat (d - snd x - 1)) by lia. lia.
Qed.

Lemma times_shifted x z d : In x items -> 0 <= z -> d <= top ->
  listed_price w d <= fst x * z + listed_price w (d - snd x * z).
Proof.
  intros I Hz. revert d. pattern z. apply natlike_ind; [intros d Hd|intros y Hy IH d Hd|assumption].
  - rewrite !Z.mul_0_r, Z.sub_0_r. lia.
  - destruct (shifted_at x d I Hd) as (P & F & S). specialize (IH (d - snd x) ltac:(lia)).
    replace (d - snd x * Z.succ y) with (d - snd x - snd x * y) by lia. lia.
Qed.

Theorem amounts_sound c D : chosen items c -> D <= top -> D <= cover c -> listed_price w D <= price c.
Proof.
  intros [E N] HD C.
  assert (forall c d, incl (map fst c) items -> Forall (fun x => 0 <= snd x) c -> d <= top ->
    listed_price w d <= price c + listed_price w (d - cover c)) as K.
  { clear c D E N HD C. intros c. induction c as [|[x z] c IH]; intros d I N Hd.
    - unfold price, cover. simpl. rewrite Z.sub_0_r. lia.
    - pose proof (times_shifted x z d (I x (or_introl eq_refl)) (Forall_inv N) Hd) as S.
      destruct (shifted_at x d (I x (or_introl eq_refl)) Hd) as (_ & F & _).
      pose proof (Forall_inv N) as Z0. cbn [snd] in Z0.
      specialize (IH (d - snd x * z) (fun y Hy => I y (or_intror Hy)) (Forall_inv_tail N) ltac:(nia)).
      unfold price, cover in *. rewrite !sum_cons. cbn [fst snd] in *.
      replace (d - (snd x * z + sum (fun x => snd (fst x) * snd x) c))
        with (d - snd x * z - sum (fun x => snd (fst x) * snd x) c) by lia. lia. }
  specialize (K c D ltac:(rewrite E; apply incl_refl) N HD).
  unfold listed_price in K at 2. destruct (Z.leb_spec (D - cover c) 0); [|lia].
  unfold price in *. lia.
Qed.
End Amounts.

(** How a table is made, item by item: [front] and [back] are a queue of what was put down so far.
    Nothing is proved of this. *)
Fixpoint passed (p : Z) (front back w : list Z) : list Z :=
  match w with
  | [] => []
  | n :: w =>
      match front with
      | q :: front => let least := Z.min n (p + q) in least :: passed p front (least :: back) w
      | [] =>
          match rev_append back [] with
          | q :: front => let least := Z.min n (p + q) in least :: passed p front [least] w
          | [] => []
          end
      end
  end.

Definition amounts (P F : Z) (others : list item) (D : Z) : list Z :=
  fold_right (fun x w => passed (fst x) (repeat 0 (Z.to_nat (snd x))) [] w)
    (map (fun d => P * cdiv d F) (counting (Z.to_nat D) 1)) others.
