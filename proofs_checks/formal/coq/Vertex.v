(** The support of a vertex is a pseudoforest; and whatever is feasible can be made so thin.

    The program in y = Y / N, for machines that are there: no type is overdrawn, and demands are
    covered. Where a set of entries has fewer ends (types and jobs) than entries, some of them can be
    changed, both ways, without a change of any sum. *)
From CMS Require Export Pseudoforest.

(** More unknowns than equations have a solution other than 0: one row, solved for one unknown, takes
    that out of the others. *)
Lemma dependent (rows : list (edge -> Z)) : forall U, (length rows < length U)%nat -> NoDup U ->
  exists x : edge -> Z, (exists u, In u U /\ x u <> 0)
    /\ forall r, In r rows -> sum (fun u => r u * x u) U = 0.
Proof.
  remember (length rows) as m eqn:Hm. revert rows Hm.
  induction m as [|m IH]; intros [|r rows] Hm U HL HN; try discriminate.
  { destruct U as [|u U]; [simpl in HL; lia|]. exists (fun _ => 1).
    split; [exists u; split; [now left|lia]|intros ? []]. }
  injection Hm as Hm. destruct (existsb (fun u => negb (r u =? 0)) U) eqn:E.
  2:{ destruct (IH rows Hm U ltac:(lia) HN) as (x & X & H). exists x. split; [exact X|].
      intros r' [<-|Hr]; [|now apply H]. rewrite <- (sum_zero U). apply sum_ext. intros u Hu.
      enough (r u = 0) as -> by lia. apply not_true_iff_false in E. apply Z.eqb_eq.
      destruct (r u =? 0) eqn:R; [reflexivity|]. destruct E. apply existsb_exists. exists u. now rewrite R. }
  apply existsb_exists in E as (p & Hp & Rp). apply negb_true_iff, Z.eqb_neq in Rp.
  destruct (in_split p U Hp) as (U1 & U2 & ->). apply NoDup_remove in HN as [HN Np].
  destruct (IH (map (fun s u => r p * s u - s p * r u) rows) ltac:(now rewrite map_length) (U1 ++ U2))
    as (x & (u & Hu & Xu) & H); [rewrite app_length in *; simpl in HL; lia|exact HN|].
  exists (fun v => if same_edge p v then - sum (fun w => r w * x w) (U1 ++ U2) else r p * x v).
  assert (OFF : forall v, In v (U1 ++ U2) -> same_edge p v = false).
  { intros v Hv. apply not_true_iff_false. intros S. apply same_edge_iff in S. subst. contradiction. }
  split.
  - exists u. split; [rewrite in_app_iff in *; simpl; tauto|]. rewrite (OFF u Hu). nia.
  - assert (ALL : forall s : edge -> Z,
      sum (fun v => s v * (if same_edge p v then - sum (fun w => r w * x w) (U1 ++ U2) else r p * x v))
        (U1 ++ p :: U2)
      = sum (fun v => (r p * s v - s p * r v) * x v) (U1 ++ U2)).
    { intros s. rewrite sum_split, (proj2 (same_edge_iff p p) eq_refl).
      rewrite (sum_ext (fun v => s v * (if same_edge p v then _ else r p * x v))
        (fun v => r p * (s v * x v)) (U1 ++ U2)) by (intros v Hv; rewrite (OFF v Hv); lia).
      rewrite (sum_ext (fun v => (r p * s v - s p * r v) * x v)
        (fun v => r p * (s v * x v) + - s p * (r v * x v))) by (intros; lia).
      rewrite sum_plus, !sum_scale. lia. }
    intros s [<-|Hs]; rewrite ALL.
    + rewrite <- (sum_zero (U1 ++ U2)). apply sum_ext. intros; lia.
    + apply (H (fun v => r p * s v - s p * r v)). apply in_map_iff. eauto.
Qed.

Section Program.
Variables k n : nat.
Variable B : nat -> Z.
Variable D : nat -> Z.
Variable f : nat -> nat -> Z.

Record feasible (N : Z) (Y : nat -> nat -> Z) : Prop := {
  feasible_nonneg : forall i j, 0 <= Y i j;
  feasible_fits : forall i, (i < k)%nat -> sum (Y i) (seq 0 n) <= N * B i;
  feasible_covers : forall j, (j < n)%nat -> N * D j <= sum (fun i => f i j * Y i j) (seq 0 k) }.

Definition support (Y : nat -> nat -> Z) : list edge := edges_where k n (fun i j => negb (Y i j =? 0)).

(** A vertex: there is no direction in which it can be left both ways. *)
Definition vertex (N : Z) (Y : nat -> nat -> Z) : Prop := forall t z, 0 < t ->
  (forall b, b = 1 \/ b = -1 -> feasible (t * N) (fun i j => t * Y i j + b * z i j)) ->
  forall i j, (i < k)%nat -> (j < n)%nat -> z i j = 0.

Definition crowded (E : list edge) : bool := Nat.ltb
  (length (nodup Nat.eq_dec (map fst E)) + length (nodup Nat.eq_dec (map snd E))) (length E).

(** A change of some of these entries that changes no sum. *)
Definition still (E : list edge) (z : nat -> nat -> Z) : Prop :=
  (forall i j, z i j <> 0 -> In (i, j) E)
  /\ (forall i, sum (z i) (seq 0 n) = 0)
  /\ (forall j, sum (fun i => f i j * z i j) (seq 0 k) = 0).

Lemma crowded_still E : (forall e, In e E -> (fst e < k)%nat /\ (snd e < n)%nat) -> NoDup E ->
  crowded E = true -> exists z, still E z /\ exists i j, In (i, j) E /\ z i j <> 0.
Proof.
  intros HB HN HC. apply Nat.ltb_lt in HC.
  destruct (dependent
    (map (fun i e => iverson (Nat.eqb (fst e) i)) (nodup Nat.eq_dec (map fst E))
     ++ map (fun j e => if Nat.eqb (snd e) j then f (fst e) j else 0) (nodup Nat.eq_dec (map snd E))) E)
    as (x & ((i0 & j0) & Hu & Xu) & H); [now rewrite app_length, !map_length|exact HN|].
  exists (fun i j => sum (fun e => if same_edge e (i, j) then x e else 0) E).
  split; [split; [|split]|exists i0, j0; split; [exact Hu|]].
  - intros i j Z0. destruct (existsb (fun e => same_edge e (i, j)) E) eqn:X.
    + apply existsb_exists in X as (e & He & X). apply same_edge_iff in X. now subst.
    + destruct Z0. etransitivity; [|apply (sum_zero E)]. apply sum_ext. intros e He.
      destruct (same_edge e (i, j)) eqn:S; [|reflexivity]. apply not_true_iff_false in X. destruct X.
      apply existsb_exists. eauto.
  - intros i. cbn beta. rewrite (sum_swap (fun j e => if same_edge e (i, j) then x e else 0)).
    rewrite (sum_ext _ (fun e => iverson (Nat.eqb (fst e) i) * x e)).
    2:{ intros e He. unfold same_edge. cbn [fst snd].
        destruct (Nat.eqb (fst e) i); cbn [andb iverson]; [|rewrite sum_zero; lia].
        rewrite (sum_delta n (snd e) (fun _ => x e)). destruct (HB e He) as [_ L].
        apply Nat.ltb_lt in L. rewrite L. lia. }
    destruct (in_dec Nat.eq_dec i (map fst E)) as [I|I].
    + apply (H (fun e => iverson (Nat.eqb (fst e) i))). apply in_app_iff. left. apply in_map_iff.
      exists i. split; [reflexivity|now apply nodup_In].
    + etransitivity; [|apply (sum_zero E)]. apply sum_ext. intros e He. destruct (Nat.eqb_spec (fst e) i); [|reflexivity].
      subst. destruct I. now apply in_map.
  - intros j. rewrite (sum_ext _ (fun i => sum (fun e => if same_edge e (i, j) then f i j * x e else 0) E)).
    2:{ intros i _. rewrite <- sum_scale. apply sum_ext. intros e _. destruct (same_edge e (i, j)); lia. }
    rewrite (sum_swap (fun i e => if same_edge e (i, j) then f i j * x e else 0)).
    rewrite (sum_ext _ (fun e => (if Nat.eqb (snd e) j then f (fst e) j else 0) * x e)).
    2:{ intros e He. unfold same_edge. cbn [fst snd]. destruct (Nat.eqb (snd e) j).
        - rewrite (sum_ext _ (fun i => if Nat.eqb (fst e) i then f i j * x e else 0))
            by (intros; now rewrite andb_true_r).
          rewrite (sum_delta k (fst e) (fun i => f i j * x e)). destruct (HB e He) as [L _].
          apply Nat.ltb_lt in L. now rewrite L.
        - rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|]. intros i _. now rewrite andb_false_r. }
    destruct (in_dec Nat.eq_dec j (map snd E)) as [I|I].
    + apply (H (fun e => if Nat.eqb (snd e) j then f (fst e) j else 0)). apply in_app_iff. right.
      apply in_map_iff. exists j. split; [reflexivity|now apply nodup_In].
    + etransitivity; [|apply (sum_zero E)]. apply sum_ext. intros e He. destruct (Nat.eqb_spec (snd e) j); [|lia].
      subst. destruct I. now apply in_map.
  - destruct (in_split _ _ Hu) as (E1 & E2 & ->). apply NoDup_remove in HN as [_ Nu].
    rewrite sum_split, (proj2 (same_edge_iff _ _) eq_refl), (sum_ext _ (fun _ => 0)), sum_zero; [lia|].
    intros e He. destruct (same_edge e (i0, j0)) eqn:S; [|reflexivity]. apply same_edge_iff in S. now subst.
Qed.

(** What is changed so, within the support and by so little that no entry is below 0, is feasible. *)
Lemma moved_feasible N Y E z a b : feasible N Y -> still E z -> 0 <= a ->
  (forall i j, 0 <= a * Y i j + b * z i j) -> feasible (a * N) (fun i j => a * Y i j + b * z i j).
Proof.
  intros [F1 F2 F3] (_ & S2 & S3) Ha Hn. constructor; [exact Hn| |].
  - intros i Hi. rewrite sum_plus, !sum_scale. rewrite (S2 i). specialize (F2 i Hi). nia.
  - intros j Hj. rewrite (sum_ext _ (fun i => a * (f i j * Y i j) + b * (f i j * z i j))) by (intros; lia).
    rewrite sum_plus, !sum_scale, (S3 j). specialize (F3 j Hj). nia.
Qed.

Lemma in_support Y i j : In (i, j) (support Y) -> (i < k)%nat /\ (j < n)%nat /\ Y i j <> 0.
Proof. unfold support. rewrite in_edges, negb_true_iff, Z.eqb_neq. tauto. Qed.

Theorem vertex_pseudoforest N Y : feasible N Y -> vertex N Y -> pseudoforest (support Y).
Proof.
  intros F V E NE IE. destruct (crowded E) eqn:C; [exfalso|apply Nat.ltb_ge in C; exact C].
  assert (HB : forall e, In e E -> (fst e < k)%nat /\ (snd e < n)%nat).
  { intros [i j] He. apply IE, in_support in He. tauto. }
  destruct (crowded_still E HB NE C) as (z & S & i & j & Hij & Z0). apply Z0.
  set (change := sum (fun e => Z.abs (z (fst e) (snd e))) E).
  assert (0 <= change) as C0 by (apply sum_nonneg; intros; lia).
  set (t := 1 + change).
  assert (T : forall i j, Z.abs (z i j) <= t * Y i j).
  { intros a b. pose proof (feasible_nonneg N Y F a b).
    destruct (Z.eq_dec (z a b) 0) as [->|Ne]; [unfold t; cbn [Z.abs]; nia|]. pose proof (proj1 S a b Ne) as I.
    pose proof (in_support Y a b (IE _ I)) as (_ & _ & Y0).
    pose proof (sum_one (fun e => Z.abs (z (fst e) (snd e))) E (a, b) ltac:(intros; lia) I) as O.
    cbn [fst snd] in O. fold change in O. unfold t. nia. }
  destruct (in_support Y i j (IE _ Hij)) as (Hi & Hj & _). apply (V t z); auto; [unfold t; lia|].
  intros b Hb. apply (moved_feasible N Y E z t b F S); [unfold t; lia|]. intros p q. specialize (T p q). lia.
Qed.

(** ** Thinning *)
Fixpoint parts (E : list edge) : list (list edge) :=
  match E with [] => [[]] | e :: E => parts E ++ map (cons e) (parts E) end.

Lemma in_parts E : forall E', In E' (parts E) -> incl E' E /\ (NoDup E -> NoDup E').
Proof.
  induction E as [|e E IH]; intros E' H; [destruct H as [<-|[]]; split; auto; intros x []|].
  cbn [parts] in H. rewrite in_app_iff, in_map_iff in H. destruct H as [H|(F & <- & H)];
    destruct (IH _ H) as [I J]; split.
  - intros x Hx. right. auto.
  - intros X. inversion X. auto.
  - intros x [<-|Hx]; [now left|right; auto].
  - intros X. inversion X; subst. constructor; auto.
Qed.

Lemma filter_parts p E : In (filter p E) (parts E).
Proof.
  induction E as [|e E IH]; [now left|]. cbn [filter parts]. rewrite in_app_iff.
  destruct (p e); [right; now apply in_map|now left].
Qed.

Lemma pseudoforest_or E : NoDup E ->
  pseudoforest E \/ exists E', NoDup E' /\ incl E' E /\ crowded E' = true.
Proof.
  intros NE. destruct (existsb crowded (parts E)) eqn:X.
  - right. apply existsb_exists in X as (E' & H & C). destruct (in_parts E E' H) as [I J]. eauto.
  - left. intros E' NE' IE'. set (F := filter (fun e => existsb (same_edge e) E') E).
    assert (crowded F = false) as C.
    { apply not_true_iff_false. intros C. apply not_true_iff_false in X. destruct X.
      apply existsb_exists. exists F. split; [apply filter_parts|exact C]. }
    assert (IN : incl F E').
    { intros e He. apply filter_In in He as [_ He]. apply existsb_exists in He as (e' & He' & S).
      apply same_edge_iff in S. now subst. }
    assert (length E' <= length F)%nat.
    { apply NoDup_incl_length; [exact NE'|]. intros e He. apply filter_In. split; [auto|].
      apply existsb_exists. exists e. split; [exact He|]. now apply same_edge_iff. }
    assert (L : forall g : edge -> nat,
      (length (nodup Nat.eq_dec (map g F)) <= length (nodup Nat.eq_dec (map g E')))%nat).
    { intros g. apply NoDup_incl_length; [apply NoDup_nodup|]. intros v Hv.
      rewrite nodup_In, in_map_iff in *. destruct Hv as (e & <- & He). eauto. }
    apply Nat.ltb_ge in C. pose proof (L fst). pose proof (L snd). lia.
Qed.

(** The entry that is the first to come to 0. *)
Lemma first_at_zero (Y z : nat -> nat -> Z) E : (exists i j, In (i, j) E /\ z i j < 0) ->
  exists i j, In (i, j) E /\ z i j < 0
    /\ forall a b, In (a, b) E -> z a b < 0 -> Y i j * - z a b <= Y a b * - z i j.
Proof.
  induction E as [|[c d] E IH]; intros (i & j & H & Z0); [destruct H|].
  destruct (existsb (fun e => z (fst e) (snd e) <? 0) E) eqn:X.
  - apply existsb_exists in X as ([a b] & Hab & L). apply Z.ltb_lt in L. cbn [fst snd] in L.
    destruct IH as (i' & j' & H' & Z' & M); [eauto|].
    destruct (Z.lt_ge_cases (z c d) 0) as [Lc|Gc].
    + destruct (Z.le_gt_cases (Y i' j' * - z c d) (Y c d * - z i' j')) as [Le|Gt].
      * exists i', j'. split; [now right|split; [exact Z'|]]. intros p q [[= <- <-]|Hp] Lp; auto.
      * exists c, d. split; [now left|split; [exact Lc|]]. intros p q [[= <- <-]|Hp] Lp; [lia|].
        specialize (M p q Hp Lp). nia.
    + exists i', j'. split; [now right|split; [exact Z'|]]. intros p q [[= <- <-]|Hp] Lp; [lia|auto].
  - assert (NONE : forall a b, In (a, b) E -> 0 <= z a b).
    { intros a b Hab. destruct (Z.lt_ge_cases (z a b) 0) as [L|]; [|assumption].
      apply not_true_iff_false in X. destruct X. apply existsb_exists. exists (a, b). split; [exact Hab|].
      now apply Z.ltb_lt. }
    exists i, j. split; [exact H|split; [exact Z0|]]. intros a b [[= <- <-]|Hab] L.
    + destruct H as [[= <- <-]|H]; [lia|]. specialize (NONE i j H). lia.
    + specialize (NONE a b Hab). lia.
Qed.

Theorem thinned N Y : 0 < N -> feasible N Y ->
  exists N' Y', 0 < N' /\ feasible N' Y' /\ pseudoforest (support Y').
Proof.
  intros HN F. assert (exists m, length (support Y) <= m)%nat as [m Hm] by eauto.
  revert N Y HN F Hm. induction m as [|m IH]; intros N Y HN F Hm;
    (destruct (pseudoforest_or (support Y) (edges_NoDup _ _ _)) as [PF|(E & NE & IE & C)]; [eauto|]).
  { destruct (support Y); [|simpl in Hm; lia]. apply incl_l_nil in IE. subst. discriminate. }
  assert (HB : forall e, In e E -> (fst e < k)%nat /\ (snd e < n)%nat).
  { intros [i j] He. apply IE, in_support in He. tauto. }
  destruct (crowded_still E HB NE C) as (z0 & S0 & i0 & j0 & Hij0 & Z0).
  assert (exists z, still E z /\ exists i j, In (i, j) E /\ z i j < 0) as (z & S & NEG).
  { destruct (Z.lt_ge_cases (z0 i0 j0) 0); [exists z0; split; [exact S0|eauto]|].
    exists (fun i j => -1 * z0 i j). destruct S0 as (S1 & S2 & S3). split; [split; [|split]|].
    - intros i j X. apply S1. lia.
    - intros i. cbn beta. rewrite sum_scale, S2. lia.
    - intros j. rewrite (sum_ext _ (fun i => -1 * (f i j * z0 i j))) by (intros; lia).
      rewrite sum_scale, S3. lia.
    - exists i0, j0. split; [exact Hij0|lia]. }
  destruct (first_at_zero Y z E NEG) as (i & j & Hij & Zij & MIN).
  set (a := - z i j). set (b := Y i j).
  assert (NN : forall p q, 0 <= a * Y p q + b * z p q).
  { intros p q. pose proof (feasible_nonneg N Y F p q). pose proof (feasible_nonneg N Y F i j).
    destruct (Z.lt_ge_cases (z p q) 0) as [L|G]; [|unfold a, b; nia].
    specialize (MIN p q (proj1 S p q ltac:(lia)) L). unfold a, b. nia. }
  apply (IH (a * N) (fun p q => a * Y p q + b * z p q)).
  - unfold a. nia.
  - apply (moved_feasible N Y E z a b F S); [unfold a; lia|exact NN].
  - enough (length ((i, j) :: support (fun p q => (a * Y p q + b * z p q)%Z)) <= length (support Y))%nat
      by (simpl in *; lia).
    apply NoDup_incl_length.
    + constructor; [|apply edges_NoDup]. intros X. apply in_support in X as (_ & _ & X).
      unfold a, b in X. lia.
    + intros [p q] [[= <- <-]|X]; [now apply IE|]. apply in_support in X as (Hp & Hq & X).
      destruct (Z.eq_dec (z p q) 0) as [E0|E0]; [|now apply IE, (proj1 S)].
      apply in_edges. repeat split; auto. apply negb_true_iff, Z.eqb_neq. intros Y0.
      rewrite E0, Y0 in X. lia.
Qed.
End Program.
