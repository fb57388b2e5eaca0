(** The cheapest option of a job that needs replicas: among its blocks so many of able types. The
    choices of replicas are gone through, and what is left is an option without them. *)
From CMS Require Export Cheapest.

Definition lesser (x y : option Z) : option Z :=
  match x, y with
  | None, y => y
  | x, None => x
  | Some a, Some b => Some (Z.min a b)
  end.

(** The least of [rest] behind r replicas of marked types (those with a mark > 0). *)
Fixpoint choose (rest : Z -> option Z) (marked : list (item * Z)) : nat -> Z -> option Z :=
  match marked with
  | [] => fun r D => match r with O => rest D | S _ => None end
  | (x, a) :: marked =>
      if 0 <? a then
        fix again r D :=
          match r with
          | O => rest D
          | S r' => lesser (choose rest marked r D) (option_map (Z.add (fst x)) (again r' (D - snd x)))
          end
      else choose rest marked
  end.

(** How many choices of r among a types there are. Where they are too many, the price is one without. *)
Fixpoint choices (a : Z) (r : nat) : Z :=
  match r with O => 1 | S r' => choices a r' * (a + Z.of_nat r') / Z.of_nat r end.
Definition most_choices : Z := 5000.
Definition most_replicas : Z := 64.

(** None: no blocks serve the job. *)
Definition cheapest_bundle (fuel : nat) (items : list item) (able : list Z) (D R : Z) : option Z :=
  let rest D := option_map fst (cheapest fuel items D) in
  let marked := combine items able in
  if (0 <? R) && (R <=? most_replicas)
     && (choices (sum (fun y => iverson (0 <? snd y)) marked) (Z.to_nat R) <=? most_choices)
  then choose rest marked (Z.to_nat R) D
  else rest D.

Definition below (h : option Z) (p : Z) : Prop := match h with Some h => h <= p | None => False end.

Lemma lesser_below x y p : below x p \/ below y p -> below (lesser x y) p.
Proof. destruct x, y; cbn; lia. Qed.

Lemma below_le h p q : below h p -> p <= q -> below h q.
Proof. destruct h; cbn; lia. Qed.

Section Choice.
Variable rest : Z -> option Z.
Variables C p : Z.
Hypothesis sound : forall D, D <= C -> below (rest D) p.

(** Some are replicas, and what is left covers C for p. *)
Lemma choose_sound ks : forall r D,
  Forall (fun x => 0 <= snd x /\ (snd (fst x) <= 0 -> snd x = 0)) ks ->
  sum snd ks = Z.of_nat r -> D <= C + sum (fun x => snd (fst (fst x)) * snd x) ks ->
  below (choose rest (map fst ks) r D) (p + sum (fun x => fst (fst (fst x)) * snd x) ks).
Proof.
  assert (none : forall ks D,
    Forall (fun x : item * Z * Z => 0 <= snd x /\ (snd (fst x) <= 0 -> snd x = 0)) ks -> sum snd ks = 0 -> D <= C + sum (fun x => snd (fst (fst x)) * snd x) ks ->
    below (rest D) (p + sum (fun x => fst (fst (fst x)) * snd x) ks)).
  { intros l D N E HD. assert (Z0 : forall x, In x l -> snd x = 0).
    { rewrite Forall_forall in N. intros x Hx.
      pose proof (sum_one snd l x (fun y Hy => proj1 (N y Hy)) Hx). pose proof (proj1 (N x Hx)). lia. }
    assert (S0 : forall w : item * Z * Z -> Z, sum (fun x => w x * snd x) l = 0).
    { intros w. rewrite <- (sum_zero l). apply sum_ext. intros x Hx. rewrite (Z0 x Hx). lia. }
    rewrite !S0 in *. rewrite Z.add_0_r in *. now apply sound. }
  induction ks as [|[[x a] k] ks IH]; intros r D N E HD.
  - destruct r; [now apply (none [])|cbn in E; lia].
  - pose proof (Forall_inv N) as [K K0]. pose proof (Forall_inv_tail N) as N'. cbn [fst snd] in K, K0.
    cbn [map choose fst]. destruct (Z.ltb_spec 0 a) as [A|A].
    2:{ specialize (K0 A). subst k. rewrite !sum_cons in *. cbn [fst snd] in *.
        rewrite Z.mul_0_r in *. rewrite Z.add_0_l in *. now apply IH. }
    clear K0. revert k D K N E HD. induction r as [|r IHr]; intros k D K N E HD; [now apply none|].
    rewrite !sum_cons in *. cbn [fst snd] in *. apply lesser_below.
    destruct (Z.eq_dec k 0) as [->|Nz]; [left|right].
    + rewrite Z.mul_0_r in *. rewrite Z.add_0_l in *. now apply IH.
    + specialize (IHr (k - 1) (D - snd x) ltac:(lia)). rewrite !sum_cons in IHr. cbn [fst snd] in IHr.
      specialize (IHr ltac:(constructor; [cbn; lia|assumption]) ltac:(lia) ltac:(lia)).
      destruct (_ r (D - snd x)); cbn [option_map below] in *; [lia|exact IHr].
Qed.
End Choice.

(** So many of the marked blocks, the first ones. *)
Fixpoint taken (l : list (item * Z * Z)) (r : Z) : list (item * Z * Z) :=
  match l with
  | [] => []
  | (m, z) :: l => let k := if 0 <? snd m then Z.min r z else 0 in (m, k) :: taken l (r - k)
  end.

Lemma taken_all l : forall r, 0 <= r <= sum (fun y => snd (fst y) * snd y) l ->
  Forall (fun y => 0 <= snd (fst y) <= 1 /\ 0 <= snd y) l ->
  map fst (taken l r) = map fst l /\ sum snd (taken l r) = r
  /\ Forall (fun x => 0 <= snd x /\ (snd (fst x) <= 0 -> snd x = 0)) (taken l r)
  /\ Forall (fun y => 0 <= snd (snd y) <= snd (fst y)) (combine l (taken l r)).
Proof.
  induction l as [|[[x a] z] l IH]; intros r B N; [cbn in *; repeat split; auto; lia|].
  pose proof (Forall_inv N) as [Na Nz]. pose proof (Forall_inv_tail N) as N'. cbn [fst snd] in Na, Nz.
  rewrite sum_cons in B. cbn [fst snd] in B. cbn [taken snd]. set (k := if 0 <? a then _ else _).
  assert (0 <= k <= z /\ (a <= 0 -> k = 0) /\ 0 <= r - k <= sum (fun y => snd (fst y) * snd y) l)
    as (K1 & K2 & K3).
  { unfold k. destruct (Z.ltb_spec 0 a); [|nia].
    assert (0 <= sum (fun y : item * Z * Z => snd (fst y) * snd y) l); [|nia].
    apply sum_nonneg. intros y Hy. rewrite Forall_forall in N'. specialize (N' y Hy). nia. }
  destruct (IH (r - k) K3 N') as (I1 & I2 & I3 & I4). cbn [map combine]. rewrite sum_cons, I1, I2.
  split; [reflexivity|split; [cbn [snd]; lia|split; constructor; cbn [fst snd]; auto; lia]].
Qed.

(** A bundle in two parts: so many of each type, and the others. *)
Definition others (l ks : list (item * Z * Z)) : list (item * Z * Z) :=
  map (fun q => (fst (fst q), snd (fst q) - snd (snd q))) (combine l ks).

Lemma parted l : forall ks, map fst ks = map fst l -> map fst (others l ks) = map fst l
  /\ forall w, sum (fun y => w (fst y) * snd y) (others l ks) + sum (fun y => w (fst y) * snd y) ks
      = sum (fun y => w (fst y) * snd y) l.
Proof.
  induction l as [|[m z] l IH]; intros [|[m' k] ks] E; try discriminate; [split; reflexivity|].
  injection E as -> E. destruct (IH ks E) as [I1 I2]. unfold others in *. cbn [combine map fst snd].
  split; [now rewrite I1|]. intros w. rewrite !sum_cons. specialize (I2 w). cbn [fst snd]. lia.
Qed.

Theorem bundle_sound fuel l D R :
  Forall (fun y => 0 <= snd (fst y) <= 1 /\ 0 <= snd y) l ->
  Forall (fun y => 0 <= fst (fst (fst y)) /\ 0 <= snd (fst (fst y))) l ->
  D <= sum (fun y => snd (fst (fst y)) * snd y) l -> R <= sum (fun y => snd (fst y) * snd y) l ->
  below (cheapest_bundle fuel (map (fun y => fst (fst y)) l) (map (fun y => snd (fst y)) l) D R)
    (sum (fun y => fst (fst (fst y)) * snd y) l).
Proof.
  intros N F HD HR. set (items := map _ l).
  assert (REST : forall left, map fst left = map fst l -> Forall (fun y => 0 <= snd y) left ->
    forall D, D <= sum (fun y => snd (fst (fst y)) * snd y) left ->
    below (option_map fst (cheapest fuel items D)) (sum (fun y => fst (fst (fst y)) * snd y) left)).
  { intros left E Nl D' HD'. pose (c := map (fun y : item * Z * Z => (fst (fst y), snd y)) left).
    assert (chosen items c) as CH.
    { split.
      - unfold c, items. rewrite map_map. cbn [fst].
        rewrite <- (map_map fst fst left), <- (map_map fst fst l). now rewrite E.
      - unfold c. rewrite Forall_map. exact Nl. }
    pose proof (cheapest_sound fuel items D' c) as S. unfold price, cover, c in S.
    rewrite !sum_map in S. cbn [fst snd] in S. specialize (S ltac:(unfold items; rewrite Forall_map;
      eapply Forall_impl; [|exact F]; cbn; tauto) ltac:(unfold items; rewrite Forall_map;
      eapply Forall_impl; [|exact F]; cbn; tauto) CH HD').
    destruct (cheapest _ _ _); [cbn; lia|exact S]. }
  unfold cheapest_bundle, items. rewrite combine_maps.
  rewrite (map_ext (fun y : item * Z * Z => (fst (fst y), snd (fst y))) fst)
    by (intros [[? ?] ?]; reflexivity). fold items. destruct (_ && _) eqn:B.
  2:{ apply REST; [reflexivity| |exact HD]. eapply Forall_impl; [|exact N]. cbn. tauto. }
  rewrite !andb_true_iff, Z.ltb_lt in B. destruct B as [[B _] _].
  destruct (taken_all l R ltac:(lia) N) as (T1 & T2 & T3 & T4). rewrite <- T1.
  destruct (parted l (taken l R) T1) as [O1 O2]. rewrite <- (O2 (fun y => fst (fst y))).
  apply choose_sound with (C := sum (fun y => snd (fst (fst y)) * snd y) (others l (taken l R)));
    [|exact T3|lia|rewrite (O2 (fun y => snd (fst y))); exact HD].
  intros D' HD'. apply REST; [exact O1| |exact HD'].
  unfold others. rewrite Forall_map. eapply Forall_impl; [|exact T4]. cbn. lia.
Qed.
