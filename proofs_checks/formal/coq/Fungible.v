(** Blocks are fungible: machines, and how many blocks of each type each job gets, are a schedule. *)
From CMS Require Export Groups.

Definition idle (i : nat) (s : schedule) : Z :=
  sum (fun b => iverson (Nat.eqb (fst b) i && negb (in_use b))) (all_blocks s).

(** What does not change when an idle block is given to a job. *)
Definition alike (P : iproblem) (s s' : schedule) : Prop :=
  ((forall M, In M s -> exists c, In c (ishapes P) /\ icut c M)
     -> forall M, In M s' -> exists c, In c (ishapes P) /\ icut c M)
  /\ (forall f : nat -> Z, sum (fun M => f (type M)) s' = sum (fun M => f (type M)) s)
  /\ (forall k, (forall b, In b (all_blocks s) -> (fst b < k)%nat)
        -> forall b, In b (all_blocks s') -> (fst b < k)%nat).

Lemma give P s i j : 0 < idle i s -> exists s', alike P s s'
  /\ (forall i', idle i' s' = idle i' s - iverson (Nat.eqb i i'))
  /\ (forall i' j', served i' j' s' = served i' j' s + iverson (Nat.eqb i i' && Nat.eqb j j'))
  /\ (forall b, In b (all_blocks s') -> b = (i, Some j) \/ In b (all_blocks s)).
Proof.
  intros H. apply sum_pos in H as (b & Hb & B).
  destruct (Nat.eqb (fst b) i && negb (in_use b)) eqn:E; [|simpl in B; lia].
  apply andb_true_iff in E as [E1 E2]. apply Nat.eqb_eq in E1. unfold in_use in E2.
  destruct b as [i' [j'|]]; [discriminate|]. cbn [fst snd] in *. subst i'.
  apply in_flat_map in Hb as (M & HM & Hb). apply in_split in HM as (s1 & s2 & ->).
  apply in_split in Hb as (l1 & l2 & Hb). destruct M as [m l]. cbn [blocks] in Hb. subst l.
  exists (s1 ++ {| type := m; blocks := l1 ++ (i, Some j) :: l2 |} :: s2).
  pose proof (exchanged s1 s2 m l1 l2 (i, None) (i, Some j)) as R.
  split; [split; [|split]|split; [|split]].
  - intros C M HM. apply in_app_iff in HM as [HM|[<-|HM]].
    + apply C. apply in_app_iff. auto.
    + destruct (C _ (in_elt _ _ _)) as (c & Hc & K). exists c. split; [assumption|].
      now apply (exchanged_cut m l1 l2 (i, None) (i, Some j) eq_refl).
    + apply C. apply in_app_iff. simpl. auto.
  - exact (exchanged_machines s1 s2 m l1 l2 (i, None) (i, Some j)).
  - intros k K b Hb. apply (exchanged_in s1 s2 m l1 l2 (i, None)) in Hb as [->|Hb]; [|now apply K].
    apply (K (i, None)). apply in_flat_map. eexists. split; apply in_elt.
  - intros i'. unfold idle. rewrite R. cbn [fst snd in_use negb].
    rewrite andb_true_r, andb_false_r. cbn [iverson]. lia.
  - intros i' j'. unfold served. rewrite R. cbn [fst snd serves].
    rewrite andb_false_r. cbn [iverson]. lia.
  - exact (exchanged_in s1 s2 m l1 l2 (i, None) (i, Some j)).
Qed.

(** Requests: so many pairs of a block type and a job. *)
Definition asked (i : nat) (rs : list (nat * nat)) : Z := sum (fun r => iverson (Nat.eqb (fst r) i)) rs.
Definition asked_by (i j : nat) (rs : list (nat * nat)) : Z :=
  sum (fun r => iverson (Nat.eqb (fst r) i && Nat.eqb (snd r) j)) rs.

Lemma give_all P rs : forall s, (forall i, asked i rs <= idle i s) -> exists s', alike P s s'
  /\ (forall i j, served i j s' = served i j s + asked_by i j rs)
  /\ (forall b, In b (all_blocks s') -> In (snd b) (map (fun r => Some (snd r)) rs) \/ In b (all_blocks s)).
Proof.
  induction rs as [|[i j] rs IH]; intros s H.
  { exists s. split; [repeat split; auto|]. split; [intros; unfold asked_by; simpl; lia|auto]. }
  assert (A : forall i', asked i' ((i, j) :: rs) = iverson (Nat.eqb i i') + asked i' rs) by reflexivity.
  assert (0 < idle i s).
  { specialize (H i). rewrite A, Nat.eqb_refl in H. cbn [iverson] in H.
    assert (0 <= asked i rs); [|lia]. apply sum_nonneg. intros r _.
    destruct (Nat.eqb _ _); cbn [iverson]; lia. }
  destruct (give P s i j H0) as (t & (T1 & T2 & T3) & T4 & T5 & T6).
  destruct (IH t) as (u & (U1 & U2 & U3) & U4 & U5).
  { intros i'. rewrite T4. specialize (H i'). rewrite A in H. lia. }
  exists u. split; [split; [auto|split; [intros; now rewrite U2|eauto]]|split].
  - intros i' j'. rewrite U4, T5. unfold asked_by. rewrite sum_cons. cbn [fst snd]. lia.
  - intros b Hb. cbn [map]. destruct (U5 b Hb) as [|Ht]; [left; now right|].
    destruct (T6 b Ht) as [->|]; [left; now left|auto].
Qed.

Definition requests (k n : nat) (y : nat -> nat -> Z) : list (nat * nat) :=
  flat_map (fun i => flat_map (fun j => repeat (i, j) (Z.to_nat (y i j))) (seq 0 n)) (seq 0 k).

Lemma sum_requests k n y (f : nat * nat -> Z) : (forall i j, 0 <= y i j) ->
  sum f (requests k n y) = sum (fun i => sum (fun j => y i j * f (i, j)) (seq 0 n)) (seq 0 k).
Proof.
  intros H. unfold requests. rewrite sum_flat_map. apply sum_ext. intros i _.
  rewrite sum_flat_map. apply sum_ext. intros j _. rewrite sum_repeat, Z2Nat.id; auto.
Qed.

(** Machines, all of their blocks idle, and whole numbers y of blocks for jobs: if no type is
    overdrawn and every demand is covered, there is a schedule of these machines. *)
Theorem fungible P s y : sane P = true ->
  (forall M, In M s -> exists c, In c (ishapes P) /\ icut c M) ->
  (forall b, In b (all_blocks s) -> (fst b < iblock_types P)%nat /\ snd b = None) ->
  (forall L, In L (ilimits P) -> load L s <= igreatest L) ->
  (forall i j, 0 <= y i j) ->
  (forall i, (i < iblock_types P)%nat ->
     sum (fun j => y i j) (seq 0 (length (ijobs P))) <= count i (all_blocks s)) ->
  (forall j r, (j < length (ijobs P))%nat -> In r (irows (ijob_at P j)) -> fst r
     <= sum (fun i => at_ (snd r) i * y i j) (seq 0 (iblock_types P))) ->
  exists s', ivalid P s' /\ icost_of P s' = icost_of P s.
Proof.
  intros Hs HC HB HL Hy HF HD. set (k := iblock_types P) in *. set (n := length (ijobs P)) in *.
  assert (IDLE : forall i, idle i s = count i (all_blocks s)).
  { intros i. unfold idle, count. apply sum_ext. intros b Hb. destruct (HB b Hb) as [_ E].
    unfold in_use. rewrite E. cbn [negb]. now rewrite andb_true_r. }
  destruct (give_all P (requests k n y) s) as (s' & (A1 & A2 & A3) & A4 & A5).
  { intros i. rewrite IDLE. unfold asked. rewrite sum_requests by assumption. cbn [fst].
    rewrite (sum_ext _ (fun i' => if Nat.eqb i i' then sum (fun j => y i' j) (seq 0 n) else 0)).
    2:{ intros i' _. destruct (Nat.eqb_spec i i') as [<-|Ne].
        - rewrite Nat.eqb_refl. apply sum_ext. intros j _. cbn [iverson]. lia.
        - rewrite (proj2 (Nat.eqb_neq i' i)) by auto.
          rewrite (sum_ext _ (fun _ => 0)); [apply sum_zero|]. intros j _. cbn [iverson]. lia. }
    rewrite (sum_delta k i (fun i' => sum (fun j => y i' j) (seq 0 n))).
    destruct (Nat.ltb_spec i k); [now apply HF|apply count_nonneg]. }
  exists s'. split; [constructor|].
  - now apply A1.
  - apply A3. intros b Hb. now apply HB.
  - intros b j Hb Hj. destruct (A5 b Hb) as [I|I].
    + apply in_map_iff in I as ([i j'] & E & I). rewrite Hj in E. injection E as <-.
      unfold requests in I. apply in_flat_map in I as (i' & _ & I).
      apply in_flat_map in I as (j'' & Hj'' & I). apply repeat_spec in I. injection I as _ ->.
      apply in_seq in Hj''. cbn. unfold n in *. lia.
    + destruct (HB b I) as [_ E]. congruence.
  - intros j r Hj Hr. etransitivity; [exact (HD j r Hj Hr)|].
    assert (KNOWN : forall b, In b (filter (serves j) (all_blocks s')) -> (fst b < k)%nat).
    { intros b Hb. apply filter_In in Hb as [Hb _]. revert b Hb. apply A3. intros b Hb. now apply HB. }
    unfold icovered. rewrite <- sum_filter, (sum_by_count k _ (at_ (snd r)) KNOWN).
    apply sum_le. intros i Hi. apply in_seq in Hi. pose proof (row_nonneg P j r i Hs Hr) as F.
    assert (y i j <= count i (filter (serves j) (all_blocks s'))); [|nia].
    rewrite count_serves, A4. unfold asked_by. rewrite sum_requests by assumption. cbn [fst snd].
    assert (0 <= served i j s).
    { apply sum_nonneg. intros b _. destruct (_ && _); cbn [iverson]; lia. }
    assert (N : forall i' j', 0 <= y i' j' * iverson (Nat.eqb i' i && Nat.eqb j' j)).
    { intros i' j'. specialize (Hy i' j'). destruct (_ && _); cbn [iverson]; lia. }
    pose proof (sum_one (fun i' => sum (fun j' => y i' j' * iverson (Nat.eqb i' i && Nat.eqb j' j))
      (seq 0 n)) (seq 0 k) i (fun i' _ => sum_nonneg _ _ (fun j' _ => N i' j')) ltac:(apply in_seq; lia)) as K.
    pose proof (sum_one (fun j' => y i j' * iverson (Nat.eqb i i && Nat.eqb j' j)) (seq 0 n) j
      (fun j' _ => N i j') ltac:(apply in_seq; lia)) as K'.
    cbn beta in K, K'. rewrite Nat.eqb_refl in K. rewrite !Nat.eqb_refl in K'.
    cbn [andb iverson] in K, K'. lia.
  - intros L I. etransitivity; [|exact (HL L I)]. apply Z.eq_le_incl, A2.
  - apply (A2 (icost P)).
Qed.
