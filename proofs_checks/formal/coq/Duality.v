(** What a tree of prices proves holds for every schedule. *)
From CMS Require Export Certificate.

Section Soundness.
Variable fuel : nat.
Variable P : iproblem.
Hypothesis Hsane : sane P = true.
Let k := iblock_types P.

(** What a quantity counts; all that matters is that it is a whole number in every schedule. *)
Definition contents (M : machine) : list Z := map (fun i => count i (blocks M)) (seq 0 k).
Definition on_machine (q : quantity) (M : machine) : Z :=
  match q with
  | MachinesOfType t => at_ t (type M)
  | MachinesOf m a => iverson (Nat.eqb (type M) m && same_counts a (blocks M))
  | MachinesWith m least => iverson (Nat.eqb (type M) m && reaches least (contents M))
  | BlocksOf i => count i (blocks M)
  | BlocksOfJob i j => sum (fun b => iverson (Nat.eqb (fst b) i && serves j b)) (blocks M)
  end.
Definition measure (q : quantity) (s : schedule) : Z := sum (on_machine q) s.
Definition satisfies (s : schedule) (x : side) : Prop :=
  if up x then many x <= measure (what x) s else measure (what x) s <= many x.

Section LeafSound.
Variable ws : list (quantity * Z).
Variable l : leaf.
Hypothesis Hsigns : signs_hold P ws l = true.

Definition own_price (b : block) : Z :=
  match snd b with Some j => own ws l (fst b) j | None => 0 end.
Definition shape_of (q : quantity) (M : machine) : bool :=
  match q with MachinesOf m a => Nat.eqb (type M) m && same_counts a (blocks M) | _ => false end.
Definition with_of (q : quantity) (M : machine) : bool :=
  match q with MachinesWith m a => Nat.eqb (type M) m && reaches a (contents M) | _ => false end.
Definition job_of (q : quantity) (b : block) : bool :=
  match q with BlocksOfJob i j => Nat.eqb (fst b) i && serves j b | _ => false end.

(** What a side adds to the worth of a machine, kind by kind. *)
Lemma split_kinds (qw : quantity * Z) M :
  snd qw * on_machine (fst qw) M
  = match fst qw with MachinesOfType t => snd qw * at_ t (type M) | _ => 0 end
    + (if shape_of (fst qw) M then snd qw else 0)
    + (if with_of (fst qw) M then snd qw else 0)
    + sum (fun b => if is_block (fst b) (fst qw) then snd qw else 0) (blocks M)
    + sum (fun b => if job_of (fst qw) b then snd qw else 0) (blocks M).
Proof.
  destruct qw as [q w]; destruct q; cbn [fst snd on_machine shape_of with_of is_block job_of];
    rewrite ?sum_zero.
  - lia.
  - destruct (_ && _); cbn [iverson]; lia.
  - destruct (_ && _); cbn [iverson]; lia.
  - unfold count. rewrite <- sum_scale, !Z.add_0_l, Z.add_0_r. apply sum_ext.
    intros b _. destruct (Nat.eqb _ _); cbn [iverson]; lia.
  - rewrite <- sum_scale, !Z.add_0_l. apply sum_ext.
    intros b _. destruct (_ && _); cbn [iverson]; lia.
Qed.

Lemma signs : 0 < den l
  /\ (forall i, (i < k)%nat -> 0 <= at_ (prices l) i)
  /\ (forall m x, In (m, x) (numbered (limit_prices l)) -> 0 <= x /\
        match ilimit (itype_at P m) with Some _ => (m < length (itypes P))%nat | None => x = 0 end)
  /\ (forall mu, In mu (multipliers l) -> 0 <= mu)
  /\ (forall i j, (i < k)%nat -> 0 <= own ws l i j)
  /\ (forall i u, nth i (proper l) None = Some u -> use P i <= u).
Proof.
  pose proof Hsigns as H. unfold signs_hold in H. rewrite !andb_true_iff in H.
  destruct H as [[[[[H1 H2] H3] H4] H5] H6]. rewrite forallb_forall in H2, H3, H4, H5, H6.
  assert (H2' : forall i, (i < k)%nat -> 0 <= at_ (prices l) i).
  { intros i Hi. apply Z.leb_le, H2. apply in_map_iff. exists i. split; [reflexivity|].
    apply in_seq. fold k. lia. }
  split; [now apply Z.ltb_lt|split; [exact H2'|split; [|split; [|split]]]].
  - intros m x Hx. specialize (H3 _ Hx). cbn [fst snd] in H3. rewrite andb_true_iff, Z.leb_le in H3.
    destruct H3 as [A B]. split; [assumption|]. destruct (ilimit _).
    + now apply Nat.ltb_lt.
    + now apply Z.eqb_eq.
  - intros mu Hmu. apply Z.leb_le. now apply H4.
  - intros i j Hi. destruct (existsb (fun qw => of_job j (fst qw)) ws) eqn:E.
    + apply existsb_exists in E as ([q w] & Hq & E). specialize (H5 _ Hq). cbn [fst] in *.
      destruct q as [| | | |i' j']; try discriminate. cbn [of_job] in E. apply Nat.eqb_eq in E.
      subst j'. rewrite forallb_forall in H5. apply Z.leb_le, H5, in_seq. fold k. lia.
    + unfold own, sum_where. rewrite (sum_ext _ (fun _ => 0)), sum_zero; [specialize (H2' i Hi); lia|].
      intros [q w] Hq. apply not_true_iff_false in E. destruct q as [| | | |i' j']; try reflexivity.
      cbn [is_job fst snd]. destruct (Nat.eqb i i'); [|reflexivity]. cbn [andb].
      destruct (Nat.eqb j j') eqn:J; [|reflexivity]. exfalso. apply E. apply existsb_exists.
      exists (BlocksOfJob i' j', w). now split.
  - intros i u Hu. specialize (H6 (i, Some u)). cbn [fst snd] in H6. apply Z.leb_le, H6.
    apply (in_numbered None). split; [|now symmetry].
    destruct (Nat.lt_ge_cases i (length (proper l))); [assumption|].
    rewrite nth_overflow in Hu by assumption. discriminate.
Qed.

Lemma own_list_is j : own_list P ws l (prices_list P l) j = map (fun i => own ws l i j) (seq 0 k).
Proof.
  unfold own_list. destruct (existsb _ _) eqn:E; [reflexivity|]. apply map_ext. intros i.
  unfold own, sum_where. rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|].
  intros [q w] Hq. apply not_true_iff_false in E. destruct q as [| | | |i' j']; try reflexivity.
  cbn [is_job fst snd]. destruct (Nat.eqb i i'); [|reflexivity]. cbn [andb].
  destruct (Nat.eqb j j') eqn:J; [|reflexivity]. exfalso. apply E. apply existsb_exists.
  exists (BlocksOfJob i' j', w). now split.
Qed.

(** ** Machines *)
Lemma bonus_is m z : bonus (extras ws m) z
  = sum (fun qw => match fst qw with
                   | MachinesWith m' a => if Nat.eqb m m' && reaches a z then snd qw else 0
                   | _ => 0 end) ws.
Proof.
  unfold bonus, extras. rewrite sum_flat_map. apply sum_ext. intros [q w] _.
  destruct q as [| |m' a| |]; try reflexivity. cbn [fst snd].
  destruct (Nat.eqb m m'); [|reflexivity]. rewrite sum_cons. cbn [fst snd andb sum fold_right]. lia.
Qed.

Lemma lies_maps (f g : nat -> kind) (z : nat -> Z) ts : (forall i, In i ts ->
    0 <= fst (g i) <= z i /\ z i <= snd (g i) /\ (0 < snd (g i) -> 0 < snd (f i))) ->
  lies (map f ts) (map g ts) (map z ts).
Proof.
  induction ts as [|i ts IH]; intros H; cbn [map lies]; [exact I|]. split.
  - apply H. now left.
  - apply IH. intros j Hj. apply H. now right.
Qed.

(** A set's machine is worth no more than is checked of its contents. *)
Lemma set_pays m sizes cap n M U :
  (forall b, In b (blocks M) -> (fst b < k)%nat) ->
  icut (IBounded m sizes cap n) M -> (forall i, count i (blocks M) <= use P i) ->
  boxes fuel (combine (worth_list P ws l) (map (at_ sizes) (seq 0 k))) cap n (extras ws m)
    (map (fun i => (0, highest l sizes cap i)) (seq 0 k)) U = true ->
  sum (fun b => worth_of ws l (fst b)) (blocks M) + bonus (extras ws m) (contents M) <= U.
Proof.
  intros HB (_ & C2 & C3 & C4) Huse H. unfold worth_list in H. fold k in H.
  rewrite combine_maps in H.
  assert (T : forall f : kind -> Z, total_of f
      (map (fun i => (worth_of ws l i, at_ sizes i)) (seq 0 k)) (contents M)
    = sum (fun b => f (worth_of ws l (fst b), at_ sizes (fst b))) (blocks M)).
  { intros f. unfold total_of, contents. rewrite combine_maps, sum_map. cbn [fst snd].
    now rewrite (sum_by_count k (blocks M) (fun i => f (worth_of ws l i, at_ sizes i)) HB). }
  pose proof (boxes_sound fuel _ cap n (contents M) (extras ws m) _ U H) as K.
  rewrite !T in K. cbn [fst snd] in K. apply K; [|assumption|].
  - apply lies_maps. intros i Hi. cbn [fst snd]. pose proof (count_nonneg i (blocks M)) as N.
    split; [lia|]. unfold highest. destruct (Z.ltb_spec 0 (at_ sizes i)) as [L|L].
    + split; [|auto]. assert (count i (blocks M) <= cap / at_ sizes i).
      { apply Z.div_le_lower_bound; [assumption|]. etransitivity; [|exact C3].
        unfold count. rewrite <- sum_scale. apply sum_le. intros b Hb. specialize (C2 b Hb).
        destruct (Nat.eqb_spec (fst b) i) as [<-|]; cbn [iverson]; lia. }
      destruct (nth i (proper l) None) as [u|] eqn:E; [|assumption].
      pose proof (proj2 (proj2 (proj2 (proj2 (proj2 signs)))) i u E). specialize (Huse i). lia.
    + split; [|lia]. destruct (Z.lt_ge_cases 0 (count i (blocks M))) as [G|]; [|assumption].
      apply sum_pos in G as (b & Hb & G). specialize (C2 b Hb).
      destruct (Nat.eqb_spec (fst b) i) as [<-|]; cbn [iverson] in G; lia.
  - intros n' Hn. etransitivity; [|exact (C4 n' Hn)]. apply Z.eq_le_incl.
    unfold added_up, contents. rewrite sum_map, <- sum_length.
    rewrite (sum_by_count k (blocks M) (fun _ => 1) HB). apply sum_ext. intros; lia.
Qed.

(** A machine's cost covers its blocks' own prices and what it adds to the sides. *)
Lemma machine_pays cost_at c M :
  shape_holds fuel P ws l (worth_list P ws l) cost_at c = true -> icut c M ->
  match c with IListed _ _ => True | IBounded _ _ _ _ => forall i, count i (blocks M) <= use P i end ->
  (forall b, In b (blocks M) -> (fst b < k)%nat) ->
  sum own_price (blocks M) + sum (fun qw => snd qw * on_machine (fst qw) M) ws
  <= den l * cost_at (type M) + at_ (limit_prices l) (type M).
Proof.
  intros Hc HM Huse HB. destruct signs as (S1 & S2 & S3 & S4 & S5 & S6).
  rewrite (sum_ext _ _ ws (fun qw _ => split_kinds qw M)), !sum_plus.
  rewrite <- (sum_swap (fun b qw => if is_block (fst b) (fst qw) then snd qw else 0)).
  rewrite <- (sum_swap (fun b qw => if job_of (fst qw) b then snd qw else 0)).
  assert (J : sum own_price (blocks M)
      + sum (fun b => sum (fun qw => if job_of (fst qw) b then snd qw else 0) ws) (blocks M)
    <= sum (fun b => at_ (prices l) (fst b)) (blocks M)).
  { rewrite <- sum_plus. apply sum_le. intros [i [j|]] Hb; unfold own_price, own; cbn [fst snd].
    - apply Z.eq_le_incl. unfold sum_where.
      match goal with |- ?x - ?y + ?z = ?x => enough (y = z) by lia end.
      apply sum_ext. intros [q w] _. destruct q; reflexivity.
    - rewrite (sum_ext _ (fun _ => 0)), sum_zero.
      + specialize (HB _ Hb). cbn [fst] in HB. specialize (S2 i HB). lia.
      + intros [q w] _. destruct q; cbn [job_of fst snd serves]; rewrite ?andb_false_r; reflexivity. }
  assert (W : sum (fun b => worth_of ws l (fst b)) (blocks M)
    = sum (fun b => at_ (prices l) (fst b)) (blocks M)
      + sum (fun b => sum (fun qw => if is_block (fst b) (fst qw) then snd qw else 0) ws) (blocks M)).
  { rewrite <- sum_plus. reflexivity. }
  assert (X : sum (fun qw => if with_of (fst qw) M then snd qw else 0) ws
    = bonus (extras ws (type M)) (contents M)).
  { rewrite bonus_is. apply sum_ext. intros [q w] _. destruct q; reflexivity. }
  fold (by_type ws (type M)). rewrite X.
  enough (sum (fun b => worth_of ws l (fst b)) (blocks M) + bonus (extras ws (type M)) (contents M)
    + sum (fun qw => if shape_of (fst qw) M then snd qw else 0) ws
    <= den l * cost_at (type M) + at_ (limit_prices l) (type M) - by_type ws (type M)) by lia.
  clear J W X. destruct c as [m a|m sizes cap n]; cbn [shape_holds shape_type] in Hc.
  - destruct HM as [<- HM]. apply Z.leb_le in Hc.
    assert (contents M = map (at_ a) (seq 0 k)) as E by (apply map_ext; intros; apply HM).
    rewrite E. rewrite (sum_by_count k (blocks M) (worth_of ws l) HB).
    unfold worth_list in Hc. fold k in Hc. rewrite combine_maps, sum_map in Hc. cbn [fst snd] in Hc.
    rewrite (sum_ext (fun i => worth_of ws l i * count i (blocks M))
      (fun i => worth_of ws l i * at_ a i)) by (intros; now rewrite HM).
    rewrite (sum_ext (fun qw => if shape_of (fst qw) M then snd qw else 0)
      (fun qw => if is_shape (type M) a (fst qw) then snd qw else 0)); [exact Hc|].
    intros [q w] _. destruct q as [|m' a'| | |]; try reflexivity.
    cbn [fst snd shape_of is_shape]. destruct (Nat.eqb (type M) m'); [|reflexivity]. cbn [andb].
    assert (same_counts a' (blocks M) = same_shape a a') as ->; [|reflexivity].
    apply eq_true_iff_eq. rewrite same_counts_iff, same_shape_iff.
    split; intros H i; specialize (HM i); specialize (H i); congruence.
  - pose proof HM as (<- & C2 & C3 & C4). apply andb_true_iff in Hc as [Hq Hc].
    rewrite (sum_ext (fun qw => if shape_of (fst qw) M then snd qw else 0) (fun _ => 0)), sum_zero.
    { rewrite Z.add_0_r. now apply (set_pays (type M) sizes cap n). }
    intros [q w] Hin. destruct q as [|m' a| | |]; try reflexivity.
    cbn [fst snd shape_of]. destruct (Nat.eqb (type M) m' && same_counts a (blocks M)) eqn:E;
      [|reflexivity]. exfalso.
    apply andb_true_iff in E as [E1 E2]. rewrite same_counts_iff in E2.
    rewrite forallb_forall in Hq. specialize (Hq _ Hin). cbn [fst] in Hq.
    rewrite E1 in Hq. cbn [andb] in Hq. apply negb_true_iff in Hq.
    assert (in_set sizes cap n a = true) as T; [|congruence].
    now apply (in_set_iff sizes cap n a M E2).
Qed.

(** ** Jobs *)
Lemma job_pays s j : ivalid P s -> (j < length (ijobs P))%nat ->
  match cheapest fuel (combine (own_list P ws l (prices_list P l) j) (isupply (ijob_at P j)))
          (idemand (ijob_at P j)) with
  | Some h => fst h <= sum (fun b => if serves j b then own ws l (fst b) j else 0) (all_blocks s)
  | None => False
  end.
Proof.
  intros V Hj. destruct signs as (_ & _ & _ & _ & S5 & _). rewrite own_list_is.
  set (x := ijob_at P j). set (items := combine _ _).
  set (mine := filter (serves j) (all_blocks s)).
  assert (BK : forall b, In b mine -> (fst b < k)%nat).
  { intros b Hb. apply filter_In in Hb as [Hb _]. exact (ivalid_blocks P s V b Hb). }
  set (g := length (isupply x)).
  assert (E : items = map (fun i => (own ws l i j, at_ (isupply x) i)) (seq 0 (min k g))).
  { unfold items, g. clear. generalize (isupply x) as f. generalize k as n.
    assert (forall n f a, combine (map (fun i => own ws l i j) (seq a n)) f
      = map (fun i => (own ws l i j, at_ f (i - a))) (seq a (min n (length f)))) as G.
    { induction n as [|n IH]; intros [|y f] a; try reflexivity.
      cbn [length min seq map combine]. rewrite Nat.sub_diag, IH. f_equal. apply map_ext_in.
      intros i Hi. apply in_seq in Hi. f_equal. replace (i - a)%nat with (S (i - S a)) by lia. reflexivity. }
    intros n f. rewrite G. apply map_ext. intros i. now rewrite Nat.sub_0_r. }
  pose (c := map (fun i => ((own ws l i j, at_ (isupply x) i), count i mine)) (seq 0 (min k g))).
  pose proof (cheapest_sound fuel items (idemand x) c) as C.
  assert (PC : price c <= sum (fun b => if serves j b then own ws l (fst b) j else 0) (all_blocks s)).
  { rewrite <- sum_filter. fold mine. rewrite (sum_by_count k mine (fun i => own ws l i j) BK).
    unfold price, c. rewrite sum_map. cbn [fst snd].
    replace k with (min k g + (k - min k g))%nat at 2 by lia. rewrite seq_app, sum_app.
    assert (0 <= sum (fun i => own ws l i j * count i mine) (seq (0 + min k g) (k - min k g))); [|lia].
    apply sum_nonneg. intros i Hi. apply in_seq in Hi. specialize (S5 i j ltac:(lia)).
    pose proof (count_nonneg i mine). nia. }
  assert (CC : cover c = icovered s j x).
  { unfold icovered. rewrite <- sum_filter. fold mine.
    rewrite (sum_by_count k mine (at_ (isupply x)) BK). unfold cover, c. rewrite sum_map. cbn [fst snd].
    replace k with (min k g + (k - min k g))%nat at 2 by lia. rewrite seq_app, sum_app.
    rewrite (sum_ext _ (fun _ => 0) (seq (0 + min k g) _)), sum_zero; [lia|].
    intros i Hi. apply in_seq in Hi. rewrite at_beyond; lia. }
  specialize (C ltac:(rewrite E; apply Forall_forall; intros y Hy; apply in_map_iff in Hy
    as (i & <- & Hi); apply in_seq in Hi; cbn [fst]; apply S5; lia)).
  specialize (C ltac:(rewrite E; apply Forall_forall; intros y Hy; apply in_map_iff in Hy
    as (i & <- & Hi); cbn [snd]; apply supply_nonneg; assumption)).
  assert (chosen items c) as CH.
  { split; [unfold c; rewrite map_map; cbn [fst]; now rewrite E|]. apply Forall_forall.
    intros y Hy. unfold c in Hy. apply in_map_iff in Hy as (i & <- & _). apply count_nonneg. }
  specialize (C CH). rewrite CC in C. specialize (C (ivalid_covers P s V j Hj)).
  destruct (cheapest _ _ _); [lia|assumption].
Qed.

Lemma jobs_pay_sound s : ivalid P s ->
  let hs := jobs_pay fuel P ws l (prices_list P l) in
  forallb is_some hs = true /\ sum or_zero hs <= sum own_price (all_blocks s).
Proof.
  intros V hs. unfold hs, jobs_pay. split.
  - apply forallb_forall. intros h Hh. apply in_map_iff in Hh as ([j x] & <- & Hj).
    apply (in_numbered no_ijob) in Hj as [Hj ->]. pose proof (job_pays s j V Hj) as K.
    cbn [fst snd]. unfold ijob_at in K. destruct (cheapest _ _ _); [reflexivity|destruct K].
  - rewrite sum_map.
    rewrite (sum_numbered no_ijob (fun j x => or_zero (option_map fst
      (cheapest fuel (combine (own_list P ws l (prices_list P l) j) (isupply x)) (idemand x))))).
    transitivity (sum (fun j => sum (fun b => if serves j b then own ws l (fst b) j else 0)
                                   (all_blocks s)) (seq 0 (length (ijobs P)))).
    + apply sum_le. intros j Hj. apply in_seq in Hj. pose proof (job_pays s j V ltac:(lia)) as K.
      unfold ijob_at in K. destruct (cheapest _ _ _); [exact K|destruct K].
    + rewrite <- (sum_swap (fun b j => if serves j b then own ws l (fst b) j else 0)).
      apply sum_le. intros [i [j|]] Hb; unfold serves, own_price; cbn [fst snd].
      * rewrite (sum_delta _ j (fun j => own ws l i j)).
        pose proof (ivalid_jobs P s V (i, Some j) j Hb eq_refl) as B.
        destruct (Nat.ltb_spec j (length (ijobs P))); lia.
      * rewrite sum_zero. lia.
Qed.

(** ** Limits *)
Lemma limits_pay s : ivalid P s ->
  sum (fun M => at_ (limit_prices l) (type M)) s <= limits_cost P l.
Proof.
  intros V. destruct signs as (_ & _ & S3 & _).
  unfold limits_cost.
  rewrite (sum_numbered 0 (fun m x => x * or_zero (ilimit (itype_at P m)))).
  rewrite (sum_ext _ (fun M => sum (fun m => if Nat.eqb (type M) m then at_ (limit_prices l) m else 0)
      (seq 0 (length (limit_prices l)))) s).
  2:{ intros M _. rewrite (sum_delta _ (type M) (at_ (limit_prices l))).
      destruct (Nat.ltb_spec (type M) (length (limit_prices l))); [reflexivity|].
      now rewrite at_beyond. }
  rewrite sum_swap. apply sum_le. intros m Hm. apply in_seq in Hm.
  rewrite (sum_ext _ (fun M => at_ (limit_prices l) m * iverson (Nat.eqb (type M) m)))
    by (intros M _; destruct (Nat.eqb _ _); cbn [iverson]; lia).
  rewrite sum_scale. fold (machines_of_type m s).
  specialize (S3 m (at_ (limit_prices l) m)).
  destruct S3 as [A B]; [apply (in_numbered 0); split; [lia|reflexivity]|]. fold (at_ (limit_prices l) m).
  destruct (ilimit (itype_at P m)) as [u|] eqn:U.
  - pose proof (ivalid_limits P s V m u B U). cbn [or_zero]. nia.
  - rewrite B. lia.
Qed.
End LeafSound.

Lemma weighted_measure s sides mus : Forall (satisfies s) sides -> (forall mu, In mu mus -> 0 <= mu) ->
  sum (fun xm => sign (fst xm) * snd xm * many (fst xm)) (combine sides mus)
  <= sum (fun qw => snd qw * measure (fst qw) s) (weighted sides mus).
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
  forallb (shape_holds fuel P ws l (worth_list P ws l) cost_at) (ishapes P) = true ->
  ivalid P s -> tidy P s -> Forall (satisfies s) sides ->
  sum or_zero (jobs_pay fuel P ws l (prices_list P l)) - limits_cost P l + sides_give l sides
  <= den l * sum (fun M => cost_at (type M)) s.
Proof.
  intros ws Hs Hc V T Hsides.
  pose proof (proj2 (jobs_pay_sound ws l Hs s V)) as J.
  pose proof (limits_pay ws l Hs s V) as L.
  pose proof (weighted_measure s sides (multipliers l) Hsides
    (proj1 (proj2 (proj2 (proj2 (signs ws l Hs)))))) as K.
  fold ws in K. unfold sides_give. cbv zeta in J.
  assert (M : sum (own_price ws l) (all_blocks s) + sum (fun qw => snd qw * measure (fst qw) s) ws
    <= den l * sum (fun M => cost_at (type M)) s + sum (fun M => at_ (limit_prices l) (type M)) s).
  { unfold all_blocks, measure. rewrite sum_flat_map.
    rewrite (sum_ext (fun qw => snd qw * sum (on_machine (fst qw)) s)
               (fun qw => sum (fun M => snd qw * on_machine (fst qw) M) s))
      by (intros; now rewrite sum_scale).
    rewrite <- (sum_swap (fun M qw => snd qw * on_machine (fst qw) M)).
    rewrite <- sum_scale, <- !sum_plus. apply sum_le. intros M HM.
    destruct (T M HM) as (c & Hin & Hcut & Huse).
    rewrite forallb_forall in Hc.
    apply (machine_pays ws l Hs cost_at c M (Hc c Hin) Hcut Huse).
    intros b Hb. apply (ivalid_blocks P s V). apply in_flat_map. eauto. }
  lia.
Qed.

Definition proved (v : option Q) (s : schedule) : Prop :=
  match v with Some b => (b <= inject_Z (icost_of P s))%Q | None => False end.

Theorem leaf_sound sides l v s : check_leaf fuel P sides l = Some v ->
  ivalid P s -> tidy P s -> Forall (satisfies s) sides -> proved v s.
Proof.
  unfold check_leaf. intros H V T Hsides.
  destruct (_ && _ && _) eqn:E in H; [|discriminate].
  rewrite !andb_true_iff in E. destruct E as [[_ Hs] Hc].
  pose proof (proj1 (signs _ l Hs)) as D.
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
  ivalid P s -> tidy P s -> Forall (satisfies s) sides -> proved v s.
Proof.
  induction t as [l|q r below IHb above IHa]; intros sides v s H V T Hs.
  - now apply (leaf_sound sides l).
  - cbn [check] in H.
    destruct (check _ _ _ below) as [x|] eqn:Eb; [|discriminate].
    destruct (check _ _ _ above) as [y|] eqn:Ea; [|discriminate]. injection H as <-.
    destruct (Z.le_gt_cases (measure q s) r) as [L|G].
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
