(** What a tree of prices proves holds for every schedule. *)
From CMS Require Export Machines.

Section Soundness.
Variable fuel : nat.
Variable P : iproblem.
Hypothesis Hsane : sane P = true.
Let k := iblock_types P.

Section LeafSound.
Variable ws : list (quantity * Z).
Variable l : leaf.
Hypothesis Hsigns : signs_hold P ws l = true.
Let signs := signs P ws l Hsigns.

(** ** Jobs *)
Lemma job_pays s j : ivalid P s -> (j < length (ijobs P))%nat -> let x := ijob_at P j in
  below (cheapest_bundle fuel (combine (own_list P ws l (prices_list P l) j) (isupply x)) (iable x)
           (idemand x) (ireplicas x))
    (sum (fun b => if serves j b then own ws l (fst b) j else 0) (all_blocks s)).
Proof.
  intros V Hj x. destruct signs as (_ & _ & _ & _ & S5 & _).
  destruct (job_sane P j Hsane) as (F & A & LEN). fold x in F, A, LEN.
  rewrite own_list_is. fold k. rewrite combine_seq. set (n := min k (length (isupply x))).
  set (mine := filter (serves j) (all_blocks s)).
  assert (BK : forall b, In b mine -> (fst b < k)%nat).
  { intros b Hb. apply filter_In in Hb as [Hb _]. exact (ivalid_blocks P s V b Hb). }
  pose (b := map (fun i => (((own ws l i j, at_ (isupply x) i), at_ (iable x) i), count i mine)) (seq 0 n)).
  assert (SPLIT : forall w : nat -> Z, sum (fun b => if serves j b then w (fst b) else 0) (all_blocks s)
    = sum (fun i => w i * count i mine) (seq 0 n) + sum (fun i => w i * count i mine) (seq n (k - n))).
  { intros w. rewrite <- sum_filter. fold mine. rewrite (sum_by_count k mine w BK), <- sum_app.
    replace k with (n + (k - n))%nat at 1 by lia. now rewrite seq_app. }
  assert (CC : forall f, (length f <= length (isupply x))%nat ->
    icovered s j f = sum (fun i => at_ f i * count i mine) (seq 0 n)).
  { intros f Hf. unfold icovered. rewrite (SPLIT (at_ f)).
    rewrite (sum_ext _ (fun _ => 0) (seq n _)), sum_zero; [lia|].
    intros i Hi. apply in_seq in Hi. rewrite at_beyond; lia. }
  pose proof (bundle_sound fuel b (idemand x) (ireplicas x)) as B. unfold b in B.
  rewrite !map_map, !sum_map in B. cbn [fst snd] in B.
  assert (E : cheapest_bundle fuel (map (fun i => (own ws l i j, at_ (isupply x) i)) (seq 0 n)) (iable x)
      (idemand x) (ireplicas x)
    = cheapest_bundle fuel (map (fun i => (own ws l i j, at_ (isupply x) i)) (seq 0 n))
        (map (at_ (iable x)) (seq 0 n)) (idemand x) (ireplicas x)).
  { unfold cheapest_bundle. destruct (Z.ltb_spec 0 (ireplicas x)); [|reflexivity].
    rewrite combine_seq, combine_maps. replace (min n (length (iable x))) with n by lia. reflexivity. }
  rewrite E. rewrite (SPLIT (fun i => own ws l i j)).
  assert (0 <= sum (fun i => own ws l i j * count i mine) (seq n (k - n))).
  { apply sum_nonneg. intros i Hi. apply in_seq in Hi. specialize (S5 i j ltac:(lia)).
    pose proof (count_nonneg i mine). nia. }
  pose proof (ivalid_covers P s V j _ Hj (or_introl eq_refl)) as D. fold x in D. cbn [fst snd] in D.
  pose proof (ivalid_covers P s V j _ Hj (or_intror (or_introl eq_refl))) as R. fold x in R.
  cbn [fst snd] in R. rewrite CC in D by lia.
  assert (R' : ireplicas x <= sum (fun i => at_ (iable x) i * count i mine) (seq 0 n)).
  { destruct LEN as [L|L]; [|rewrite CC in R by lia; exact R].
    etransitivity; [exact L|]. apply sum_nonneg. intros i _. specialize (A i).
    pose proof (count_nonneg i mine). nia. }
  apply below_le with (sum (fun i => own ws l i j * count i mine) (seq 0 n)); [|lia].
  apply B; [| |exact D|exact R']; rewrite Forall_map; apply Forall_forall; intros i Hi; cbn [fst snd].
  - split; [apply A|apply count_nonneg].
  - apply in_seq in Hi. split; [apply S5; lia|apply F].
Qed.

Lemma jobs_pay_sound s : ivalid P s ->
  let hs := jobs_pay fuel P ws l (prices_list P l) in
  forallb is_some hs = true /\ sum or_zero hs <= sum (own_price ws l) (all_blocks s).
Proof.
  intros V hs. unfold hs, jobs_pay. split.
  - apply forallb_forall. intros h Hh. apply in_map_iff in Hh as ([j x] & <- & Hj).
    apply (in_numbered no_ijob) in Hj as [Hj ->]. pose proof (job_pays s j V Hj) as K.
    cbn [fst snd]. unfold ijob_at in K. cbv zeta in K.
    destruct (cheapest_bundle _ _ _ _ _); [reflexivity|destruct K].
  - rewrite sum_map.
    rewrite (sum_numbered no_ijob (fun j x => or_zero (cheapest_bundle fuel
      (combine (own_list P ws l (prices_list P l) j) (isupply x)) (iable x) (idemand x) (ireplicas x)))).
    transitivity (sum (fun j => sum (fun b => if serves j b then own ws l (fst b) j else 0)
                                   (all_blocks s)) (seq 0 (length (ijobs P)))).
    + apply sum_le. intros j Hj. apply in_seq in Hj. pose proof (job_pays s j V ltac:(lia)) as K.
      unfold ijob_at in K. cbv zeta in K. destruct (cheapest_bundle _ _ _ _ _); [exact K|destruct K].
    + rewrite <- (sum_swap (fun b j => if serves j b then own ws l (fst b) j else 0)).
      apply sum_le. intros [i [j|]] Hb; unfold serves, own_price; cbn [fst snd].
      * rewrite (sum_delta _ j (fun j => own ws l i j)).
        pose proof (ivalid_jobs P s V (i, Some j) j Hb eq_refl) as B.
        destruct (Nat.ltb_spec j (length (ijobs P))); lia.
      * rewrite sum_zero. lia.
Qed.

(** ** Limits *)
Lemma charge_is m : charge (charges P l) m
  = sum (fun x => snd x * weight (fst x) m) (combine (ilimits P) (limit_prices l)).
Proof.
  unfold charge, charges. rewrite sum_flat_map. apply sum_ext. intros [L y] _. cbn [fst snd].
  destruct (Z.eqb_spec y 0) as [->|_]; [reflexivity|]. unfold weight. rewrite sum_map, <- sum_scale.
  apply sum_ext. intros w _. cbn [fst snd]. destruct (Nat.eqb _ _); lia.
Qed.

Lemma limits_pay s : ivalid P s ->
  sum (fun M => charge (charges P l) (type M)) s <= limits_cost P l.
Proof.
  intros V. destruct signs as (_ & _ & S3 & _).
  rewrite (sum_ext _ _ s (fun M _ => charge_is (type M))), sum_swap.
  apply sum_le. intros [L y] Hx. cbn [fst snd]. rewrite sum_scale. fold (load L s).
  pose proof (load_reach P L s V (in_combine_l _ _ _ _ Hx)).
  specialize (S3 y (in_combine_r _ _ _ _ Hx)). nia.
Qed.
End LeafSound.

Lemma weighted_measure s sides mus : Forall (satisfies P s) sides -> (forall mu, In mu mus -> 0 <= mu) ->
  sum (fun xm => sign (fst xm) * snd xm * many (fst xm)) (combine sides mus)
  <= sum (fun qw => snd qw * measure P (fst qw) s) (weighted sides mus).
Proof.
  intros H Hm. unfold weighted. rewrite sum_filter, sum_map. cbn [fst snd].
  apply sum_le. intros [x mu] Hin. cbn [fst snd].
  rewrite Forall_forall in H. specialize (H x (in_combine_l _ _ _ _ Hin)).
  specialize (Hm mu (in_combine_r _ _ _ _ Hin)). unfold satisfies, sign in *.
  destruct (Z.eqb_spec ((if up x then 1 else -1) * mu) 0) as [->|]; cbn [negb];
    destruct (up x); nia.
Qed.

(** Weak duality at a leaf, whatever machines cost. *)
Theorem leaf_pays cost_at sides l s :
  let ws := weighted sides (multipliers l) in
  signs_hold P ws l = true ->
  forallb (shape_holds fuel P ws l (worth_list P ws l) (allowed l (charges P l) cost_at)) (ishapes P)
    = true ->
  ivalid P s -> tidy P s -> Forall (satisfies P s) sides ->
  sum or_zero (jobs_pay fuel P ws l (prices_list P l)) - limits_cost P l + sides_give l sides
  <= den l * sum (fun M => cost_at (type M)) s.
Proof.
  intros ws Hs Hc V T Hsides.
  pose proof (proj2 (jobs_pay_sound ws l Hs s V)) as J.
  pose proof (limits_pay ws l Hs s V) as L.
  pose proof (weighted_measure s sides (multipliers l) Hsides
    (proj1 (proj2 (proj2 (proj2 (signs P ws l Hs)))))) as K.
  fold ws in K. unfold sides_give. cbv zeta in J.
  assert (M : sum (own_price ws l) (all_blocks s) + sum (fun qw => snd qw * measure P (fst qw) s) ws
    <= den l * sum (fun M => cost_at (type M)) s
       + sum (fun M => charge (charges P l) (type M)) s).
  { unfold all_blocks, measure. rewrite sum_flat_map.
    rewrite (sum_ext (fun qw => snd qw * sum (on_machine P (fst qw)) s)
               (fun qw => sum (fun M => snd qw * on_machine P (fst qw) M) s))
      by (intros; now rewrite sum_scale).
    rewrite <- (sum_swap (fun M qw => snd qw * on_machine P (fst qw) M)).
    rewrite <- sum_scale, <- !sum_plus. apply sum_le. intros M HM.
    destruct (T M HM) as (c & Hin & Hcut & Huse).
    rewrite forallb_forall in Hc.
    apply (machine_pays fuel P ws l Hs (allowed l (charges P l) cost_at) c M (Hc c Hin) Hcut Huse).
    intros b Hb. apply (ivalid_blocks P s V). apply in_flat_map. eauto. }
  lia.
Qed.

Definition proved (v : option Q) (s : schedule) : Prop :=
  match v with Some b => (b <= inject_Z (icost_of P s))%Q | None => False end.

Theorem leaf_sound sides l v s : check_leaf fuel P sides l = Some v ->
  ivalid P s -> tidy P s -> Forall (satisfies P s) sides -> proved v s.
Proof.
  unfold check_leaf. intros H V T Hsides.
  destruct (_ && _ && _) eqn:E in H; [|discriminate].
  rewrite !andb_true_iff in E. destruct E as [[_ Hs] Hc].
  pose proof (proj1 (signs P _ l Hs)) as D.
  destruct (_ || _) eqn:E in H; injection H as <-; cbn [proved].
  - apply orb_true_iff in E as [E|E].
    + apply negb_true_iff in E. pose proof (proj1 (jobs_pay_sound _ l Hs s V)) as J. cbv zeta in J.
      congruence.
    + apply andb_true_iff in E as [E1 E2]. apply Z.ltb_lt in E1.
      pose proof (leaf_pays (fun _ => 0) sides l s Hs E2 V T Hsides) as L.
      cbv zeta in L. rewrite sum_zero in L. lia.
  - pose proof (leaf_pays _ sides l s Hs Hc V T Hsides) as L. cbv beta zeta in L.
    unfold Qle, inject_Z. cbn [Qnum Qden]. rewrite Z2Pos.id by assumption. unfold icost_of. lia.
Qed.

Lemma smaller_l x y s : proved x s -> proved (smaller x y) s.
Proof.
  destruct x as [a|], y as [b|]; cbn [proved smaller]; try tauto. intros H.
  destruct (Qle_bool a b) eqn:E; [assumption|]. assert (b < a)%Q.
  { apply Qnot_le_lt. rewrite <- Qle_bool_iff. congruence. }
  eapply Qle_trans; [apply Qlt_le_weak|]; eassumption.
Qed.
Lemma smaller_r x y s : proved y s -> proved (smaller x y) s.
Proof.
  destruct x as [a|], y as [b|]; cbn [proved smaller]; try tauto. intros H.
  destruct (Qle_bool a b) eqn:E; [|assumption]. apply Qle_bool_iff in E.
  eapply Qle_trans; eassumption.
Qed.

Theorem tree_sound t : forall sides v s, check fuel P sides t = Some v ->
  ivalid P s -> tidy P s -> Forall (satisfies P s) sides -> proved v s.
Proof.
  induction t as [l|q r below IHb above IHa]; intros sides v s H V T Hs.
  - now apply (leaf_sound sides l).
  - cbn [check] in H.
    destruct (check _ _ _ below) as [x|] eqn:Eb; [|discriminate].
    destruct (check _ _ _ above) as [y|] eqn:Ea; [|discriminate]. injection H as <-.
    destruct (Z.le_gt_cases (measure P q s) r) as [L|G].
    + apply smaller_l, (IHb _ _ s Eb V T). apply Forall_app. split; [assumption|].
      constructor; [exact L|constructor].
    + apply smaller_r, (IHa _ _ s Ea V T). apply Forall_app. split; [assumption|].
      constructor; [unfold satisfies; cbn; lia|constructor].
Qed.

(** What a certificate proves holds for all schedules. *)
Theorem certificate_sound t v : check fuel P [] t = Some v ->
  match v with
  | Some b => forall s, ivalid P s -> (b <= inject_Z (icost_of P s))%Q
  | None => forall s, ~ ivalid P s
  end.
Proof.
  intros H. destruct v as [b|]; intros s V; destruct (tidied P s Hsane V) as (s' & V' & T' & C).
  - rewrite <- C. exact (tree_sound t [] _ s' H V' T' (Forall_nil _)).
  - exact (tree_sound t [] _ s' H V' T' (Forall_nil _)).
Qed.
End Soundness.
