(** What a machine's blocks are worth at a leaf's prices: no more than the machine and its limits cost. *)
From CMS Require Export Certificate.

Section Soundness.
Variable fuel : nat.
Variable P : iproblem.
Let k := iblock_types P.

(** What a quantity counts; all that matters is that it is a whole number in every schedule. *)
Definition contents (M : machine) : list Z := map (fun i => count i (blocks M)) (seq 0 k).
Definition on_machine (q : quantity) (M : machine) : Z :=
  match q with
  | MachinesOfType t => at_ t (type M)
  | MachinesOfConfiguration m a => iverson (Nat.eqb (type M) m && same_counts a (blocks M))
  | MachinesWithBlocks m least => iverson (Nat.eqb (type M) m && reaches least (contents M))
  | BlocksOfType i => count i (blocks M)
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
  match q with MachinesOfConfiguration m a => Nat.eqb (type M) m && same_counts a (blocks M) | _ => false end.
Definition with_of (q : quantity) (M : machine) : bool :=
  match q with MachinesWithBlocks m a => Nat.eqb (type M) m && reaches a (contents M) | _ => false end.
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
  /\ (forall x, In x (limit_prices l) -> 0 <= x)
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
  - intros x Hx. apply Z.leb_le. now apply H3.
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
                   | MachinesWithBlocks m' a => if Nat.eqb m m' && reaches a z then snd qw else 0
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

(** What a machine may be worth covers its blocks' own prices and what it adds to the sides. *)
Lemma machine_pays may c M :
  shape_holds fuel P ws l (worth_list P ws l) may c = true -> icut c M ->
  match c with IListed _ _ => True | IBounded _ _ _ _ => forall i, count i (blocks M) <= use P i end ->
  (forall b, In b (blocks M) -> (fst b < k)%nat) ->
  sum own_price (blocks M) + sum (fun qw => snd qw * on_machine (fst qw) M) ws
  <= may (type M).
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
    <= may (type M) - by_type ws (type M)) by lia.
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
End LeafSound.
End Soundness.
