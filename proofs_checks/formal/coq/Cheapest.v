(** A job's cheapest option: by the search, or by tables where the search comes to no end. *)
From CMS Require Export Amounts.

(** Cheapest per unit first. *)
Fixpoint insert (x : item) (l : list item) : list item :=
  match l with
  | [] => [x]
  | y :: r => if fst y * snd x <=? fst x * snd y then y :: insert x r else x :: l
  end.
Definition sort (l : list item) : list item := fold_right insert [] l.

Lemma insert_perm x l : Permutation (insert x l) (x :: l).
Proof.
  induction l as [|y l IH]; cbn [insert]; [reflexivity|]. destruct (_ <=? _); [|reflexivity].
  rewrite IH. apply perm_swap.
Qed.

Lemma sort_perm l : Permutation (sort l) l.
Proof.
  induction l as [|x l IH]; [reflexivity|]. cbn [sort fold_right]. fold (sort l).
  now rewrite insert_perm, IH.
Qed.

(** Up to these there are tables. *)
Definition most_amounts : Z := 100000.
Definition most_remainders : Z := 4096.

(** A lower bound on the price of covering D, by whatever table there is. *)
Definition by_table (P F : Z) (others : list item) (D : Z) : Z :=
  let plain := cdiv (P * D) F in
  let items := (P, F) :: others in
  if D <=? most_amounts then
    let w := amounts P F others D in
    if amounts_hold items w && (Z.of_nat (length w) =? D) then Z.max plain (listed_price w D) else plain
  else if F <=? most_remainders then
    let w := table P F items in
    if holds P F items w then Z.max plain (least P F w D) else plain
  else plain.

(** The price of covering D > 0, and whether there is no cheaper one for certain. *)
Definition cover_price (fuel : nat) (P F : Z) (others : list item) (D : Z) : Z * bool :=
  match search fuel P F [(rev others, D, 0)] (P * cdiv D F) with
  | Some b => (b, true)
  | None => (by_table P F others D, false)
  end.

(** A block that covers more than the demand covers the demand; g divides the prices. *)
Definition useful (D : Z) (items : list item) : list item :=
  map (fun x => (fst x, Z.min (snd x) D)) (filter (fun x => 0 <? snd x) items).
Definition divided (g : Z) (items : list item) : list item :=
  map (fun x => (fst x / g, snd x)) items.
Definition divisor (items : list item) : Z :=
  Z.max 1 (fold_right (fun x g => Z.gcd (fst x) g) 0 items).

(** None: no block covers anything. *)
Definition cheapest (fuel : nat) (items : list item) (D : Z) : option (Z * bool) :=
  if D <=? 0 then Some (0, true) else
  let g := divisor items in
  match sort (divided g (useful D items)) with
  | [] => None
  | (P, F) :: others =>
      if (0 <=? P) && (0 <? F) && forallb (no_cheaper P F) others
      then let h := cover_price fuel P F others D in Some (g * fst h, snd h)
      else Some (0, false)
  end.

Lemma forallb_rev {A} (p : A -> bool) l : forallb p l = true -> forallb p (rev l) = true.
Proof. rewrite !forallb_forall. intros H x Hx. apply H. now apply in_rev. Qed.

Lemma chosen_perm items items' c : Permutation items items' -> chosen items c ->
  exists c', chosen items' c' /\ price c' = price c /\ cover c' = cover c.
Proof.
  intros Hp [E N]. rewrite <- E in Hp. apply Permutation_sym, Permutation_map_inv in Hp
    as (c' & E' & Q). exists c'. unfold price, cover.
  rewrite (sum_perm _ _ _ Q), (sum_perm (fun x => snd (fst x) * snd x) _ _ Q).
  repeat split; auto. eapply Permutation_Forall; eauto.
Qed.

Lemma cover_price_sound fuel P F others D c :
  0 < F -> 0 <= P -> forallb (no_cheaper P F) others = true ->
  chosen ((P, F) :: others) c -> D <= cover c -> fst (cover_price fuel P F others D) <= price c.
Proof.
  intros HF HP Ho Hc HD.
  assert (cdiv (P * D) F <= price c) as plain.
  { apply cdiv_le; [assumption|]. pose proof (price_per_unit P F HP others c Ho Hc). nia. }
  unfold cover_price. destruct (search _ _ _ _ _) as [b|] eqn:E; cbn [fst].
  - destruct (chosen_perm _ ((P, F) :: rev others) c (perm_skip _ (Permutation_rev others)) Hc)
      as (c' & C1 & C2 & C3).
    destruct (search_sound P F HF HP fuel _ _ _ E) as [_ S].
    { repeat constructor. now apply forallb_rev. }
    specialize (S (rev others, D, 0) c' (or_introl eq_refl)). unfold total in S. cbn [snd] in S.
    rewrite <- C2. apply S. split; [assumption|lia].
  - unfold by_table. destruct (D <=? most_amounts).
    + destruct (_ && _) eqn:T; [|assumption]. apply andb_true_iff in T as [T1 T2].
      apply Z.eqb_eq in T2. apply Z.max_lub; [assumption|].
      apply (amounts_sound _ _ T1 c D Hc); lia.
    + destruct (F <=? most_remainders); [|assumption].
      destruct (holds _ _ _ _) eqn:T; [|assumption].
      apply Z.max_lub; [assumption|]. now apply (table_sound P F HF HP _ _ T c D Hc).
Qed.

Lemma cover_price_exact fuel P F others D : 0 < F -> 0 < D ->
  snd (cover_price fuel P F others D) = true ->
  exists c, chosen ((P, F) :: others) c /\ D <= cover c /\ price c = fst (cover_price fuel P F others D).
Proof.
  intros HF HD. unfold cover_price. destruct (search _ _ _ _ _) as [b|] eqn:E; cbn [fst snd].
  2:{ discriminate. }
  intros _. apply search_exact in E as [->|(st & c & [<-|[]] & [Hc HD'] & R)]; [| |assumption].
  - destruct (with_none others) as ((C1 & C2) & C3 & C4).
    exists (((P, F), cdiv D F) :: map (fun x => (x, 0)) others).
    pose proof (cdiv_ge D F HF). unfold chosen, price, cover in *. rewrite !sum_cons.
    cbn [map fst snd] in *. rewrite C1, C3, C4. repeat split; try lia.
    constructor; [cbn [snd]; nia|assumption].
  - destruct (chosen_perm _ ((P, F) :: others) c
      (perm_skip _ (Permutation_sym (Permutation_rev others))) Hc) as (c' & K1 & K2 & K3).
    exists c'. unfold total in R. cbn [snd] in R. repeat split; [exact (proj1 K1)|exact (proj2 K1)|lia|lia].
Qed.

Lemma useful_covers D items c : 0 <= D -> chosen items c -> Forall (fun x => 0 <= snd x) items ->
  Forall (fun x => 0 <= fst x) items -> D <= cover c ->
  exists c', chosen (useful D items) c' /\ price c' <= price c /\ D <= cover c'.
Proof.
  intros HD [E N] Hf Hp HC.
  exists (map (fun x : item * Z => ((fst (fst x), Z.min (snd (fst x)) D), snd x))
           (filter (fun x : item * Z => 0 <? snd (fst x)) c)).
  rewrite <- E in Hf, Hp. unfold useful. rewrite <- E. clear E items. split; [split|].
  - rewrite map_map. cbn [fst]. clear HC. induction c as [|x c IH]; [reflexivity|].
    inversion N; inversion Hf; inversion Hp; subst. cbn [map filter].
    destruct (0 <? snd (fst x)); cbn [map]; rewrite IH by assumption; reflexivity.
  - apply Forall_forall. intros x Hx. apply in_map_iff in Hx as (y & <- & Hy).
    apply filter_In in Hy as [Hy _]. rewrite Forall_forall in N. exact (N y Hy).
  - unfold price, cover. rewrite !sum_map, !sum_filter. cbn [fst snd]. split.
    + apply sum_le. intros x Hx. rewrite Forall_forall in N, Hp. specialize (N x Hx).
      specialize (Hp (fst x) (in_map fst c x Hx)). destruct (_ <? _); nia.
    + assert (forall E, E <= D -> E <= cover c -> E <= sum (fun a : item * Z =>
        if 0 <? snd (fst a) then Z.min (snd (fst a)) D * snd a else 0) c) as K; [|apply K; lia].
      clear HC. induction c as [|x c IH]; unfold cover; [simpl; lia|].
      inversion N; inversion Hf; inversion Hp; subst. intros E L1 L2. rewrite !sum_cons in *.
      assert (0 <= sum (fun a : item * Z =>
        if 0 <? snd (fst a) then Z.min (snd (fst a)) D * snd a else 0) c).
      { apply sum_nonneg. intros a Ha. rewrite Forall_forall in *.
        match goal with H : forall x, In x c -> 0 <= snd x |- _ => specialize (H a Ha) end.
        destruct (Z.ltb_spec 0 (snd (fst a))); nia. }
      destruct (Z.ltb_spec 0 (snd (fst x))).
      * destruct (Z.le_gt_cases D (snd (fst x))).
        { destruct (Z.eq_dec (snd x) 0) as [Z0|]; [|nia].
          rewrite Z0 in *. rewrite Z.mul_0_r, Z.add_0_l in *. apply IH; auto. }
        { rewrite Z.min_l by lia.
          specialize (IH ltac:(assumption) ltac:(assumption) ltac:(assumption)
            (E - snd (fst x) * snd x)). unfold cover in IH. nia. }
      * assert (snd (fst x) = 0) as E0 by lia. rewrite E0 in *.
        rewrite Z.add_0_l in *. apply IH; auto.
Qed.

Lemma divided_covers g items c : 0 < g -> chosen items c ->
  exists c', chosen (divided g items) c' /\ g * price c' <= price c /\ cover c' = cover c.
Proof.
  intros G [E N]. exists (map (fun x : item * Z => ((fst (fst x) / g, snd (fst x)), snd x)) c).
  unfold divided. rewrite <- E. split; [split|].
  - now rewrite !map_map.
  - apply Forall_forall. intros x Hx. apply in_map_iff in Hx as (y & <- & Hy).
    rewrite Forall_forall in N. exact (N y Hy).
  - unfold price, cover. rewrite !sum_map. cbn [fst snd]. split; [|reflexivity].
    rewrite <- sum_scale. apply sum_le. intros x Hx. rewrite Forall_forall in N. specialize (N x Hx).
    pose proof (Z.mul_div_le (fst (fst x)) g G). nia.
Qed.

Theorem cheapest_sound fuel items D c :
  Forall (fun x => 0 <= fst x) items -> Forall (fun x => 0 <= snd x) items ->
  chosen items c -> D <= cover c ->
  match cheapest fuel items D with Some h => fst h <= price c | None => False end.
Proof.
  intros Hp Hf Hc HD. unfold cheapest.
  assert (0 <= price c).
  { destruct Hc as [E N]. rewrite <- E in Hp. apply sum_nonneg. intros x Hx.
    rewrite Forall_forall in N, Hp. specialize (N x Hx). specialize (Hp _ (in_map fst c x Hx)). nia. }
  destruct (Z.leb_spec D 0); [assumption|]. assert (0 < divisor items) as G by (unfold divisor; lia).
  set (g := divisor items) in *.
  destruct (useful_covers D items c ltac:(lia) Hc Hf Hp HD) as (c1 & C1 & P1 & D1).
  destruct (divided_covers g _ c1 G C1) as (c2 & C2 & P2 & D2).
  destruct (chosen_perm _ _ c2 (Permutation_sym (sort_perm _)) C2) as (c3 & C3 & P3 & D3).
  destruct (sort _) as [|[P F] others].
  - destruct C3 as [E _]. destruct c3; [|discriminate]. unfold cover in D3 at 1. simpl in D3. lia.
  - destruct ((0 <=? P) && (0 <? F) && forallb (no_cheaper P F) others) eqn:V; [|assumption].
    rewrite !andb_true_iff, Z.leb_le, Z.ltb_lt in V. destruct V as [[V1 V2] V3]. cbn [fst].
    pose proof (cover_price_sound fuel P F others D c3 V2 V1 V3 C3 ltac:(lia)). nia.
Qed.

(** When the effort suffices, the answer is the price of blocks that cover the demand. *)
Theorem cheapest_exact fuel items D h :
  cheapest fuel items D = Some (h, true) -> 0 < D ->
  exists c, chosen (divided (divisor items) (useful D items)) c
    /\ D <= cover c /\ divisor items * price c = h.
Proof.
  unfold cheapest. intros E HD. destruct (Z.leb_spec D 0); [lia|].
  pose proof (sort_perm (divided (divisor items) (useful D items))) as Hs.
  destruct (sort _) as [|[P F] others]; [discriminate|].
  destruct ((0 <=? P) && (0 <? F) && forallb (no_cheaper P F) others) eqn:V; [|discriminate].
  rewrite !andb_true_iff, Z.leb_le, Z.ltb_lt in V. destruct V as [[V1 V2] V3].
  injection E as E1 E2. destruct (cover_price_exact fuel P F others D V2 HD E2) as (c & C1 & C2 & C3).
  destruct (chosen_perm _ _ c Hs C1) as (c' & K1 & K2 & K3).
  exists c'. repeat split; [exact (proj1 K1)|exact (proj2 K1)|lia|]. now rewrite K2, C3.
Qed.
