(** Theorem A: MILP_c is no more than any schedule costs, and twice its machines are enough.

    MILP_c has whole numbers of machines and fractions y_ij = Y i j / N of blocks; no block counts for
    more than the demand. *)
From CMS Require Export Fungible Vertex.

Section TheoremA.
Variable P : iproblem.
Hypothesis Hsane : sane P = true.
Hypothesis no_limits : ilimits P = [].
Hypothesis no_replicas : forall j, ireplicas (ijob_at P j) <= 0.
Hypothesis demands : forall j, 0 <= idemand (ijob_at P j).
Let k := iblock_types P.
Let n := length (ijobs P).

(** What a block covers of a demand, and no more than that. *)
Definition truncated (i j : nat) : Z :=
  Z.min (at_ (isupply (ijob_at P j)) i) (idemand (ijob_at P j)).
Definition machines_cost (x : list group) : Z :=
  sum (fun g => group_machines g * icost P (group_type g)) x.
Definition blocks_there (x : list group) (i : nat) : Z :=
  sum (fun g => group_machines g * at_ (group_counts g) i) x.

(** A solution of MILP_c: machines x, of configurations of the problem, and y = Y / N. *)
Record milp (x : list group) (N : Z) (Y : nat -> nat -> Z) : Prop := {
  milp_machines : forall g, In g x -> group_holds P n g = true /\ group_assignment g = [];
  milp_denominator : 0 < N;
  milp_assigns : feasible k n (blocks_there x) (fun j => idemand (ijob_at P j)) truncated N Y }.

Definition twice (g : group) : group :=
  {| group_type := group_type g; group_counts := group_counts g;
     group_machines := 2 * group_machines g; group_assignment := group_assignment g |}.

(** Given owners, y is rounded as it is. *)
Theorem doubled x N Y up down : milp x N Y ->
  owners_hold k n N (fun i j => 2 * Y i j) up down = true ->
  exists s, ivalid P s /\ icost_of P s = 2 * machines_cost x.
Proof.
  intros [M1 M2 [M3 M4 M5]] OW.
  assert (HT : forall g, In g (map twice x) -> group_holds P n g = true /\ group_assignment g = []).
  { intros g Hg. apply in_map_iff in Hg as (g' & <- & Hg). destruct (M1 g' Hg) as [H1 H2].
    split; [|exact H2]. unfold group_holds in *. rewrite !andb_true_iff in *.
    cbn [twice group_type group_counts group_machines group_assignment]. rewrite Z.leb_le in *.
    destruct H1 as [[[[A B] C] D] E]. repeat split; auto. lia. }
  assert (HG : forallb (group_holds P n) (map twice x) = true).
  { apply forallb_forall. intros g Hg. now apply HT. }
  assert (IN : forall M, In M (expand (map twice x)) -> exists g, In g (map twice x) /\ M = machine_of g).
  { intros M HM. apply in_flat_map in HM as (g & Hg & HM). apply repeat_spec in HM. eauto. }
  assert (BL : forall i, count i (all_blocks (expand (map twice x))) = 2 * blocks_there x i).
  { intros i. unfold count, all_blocks. rewrite sum_flat_map, (sum_expand _ P _ HG), sum_map.
    unfold blocks_there. rewrite <- sum_scale. apply sum_ext. intros g Hg.
    destruct (HT (twice g) (in_map twice x g Hg)) as [H1 _].
    pose proof (machine_counts P (twice g) H1 i) as C. unfold count in C. rewrite C.
    cbn [twice group_machines group_counts]. lia. }
  pose (y := whole N (fun i j => 2 * Y i j) up).
  destruct (fungible P (expand (map twice x)) y Hsane) as (s & V & C).
  - intros M HM. destruct (IN M HM) as (g & Hg & ->). apply machine_cut. now apply HT.
  - intros b Hb. apply in_flat_map in Hb as (M & HM & Hb). destruct (IN M HM) as (g & Hg & ->).
    destruct (HT g Hg) as [H1 H2]. split.
    + destruct (in_machine P g H1 b Hb) as [L _]. destruct (facts P g H1) as (_ & _ & F & _). lia.
    + cbn [machine_of blocks] in Hb. rewrite H2 in Hb. cbn [flat_map app] in Hb.
      apply in_flat_map in Hb as (z & _ & Hb). apply repeat_spec in Hb. now subst b.
  - rewrite no_limits. intros L [].
  - intros i j. apply (whole_nonneg N (fun i j => 2 * Y i j) up M2). specialize (M3 i j). lia.
  - intros i Hi. rewrite BL. apply (rounded_fits n N (fun i j => 2 * Y i j) up M2).
    specialize (M4 i Hi). rewrite sum_scale. change (fun j : nat => Y i j) with (Y i) in *. lia.
  - intros j r Hj [<-|[<-|[]]]; cbn [fst snd].
    2:{ etransitivity; [apply no_replicas|]. apply sum_nonneg. intros i _.
        destruct (job_sane P j Hsane) as (_ & A & _). specialize (A i).
        assert (0 <= y i j); [|nia]. apply (whole_nonneg N (fun i j => 2 * Y i j) up M2).
        specialize (M3 i j). lia. }
    set (d := idemand (ijob_at P j)).
    transitivity (sum (fun i => truncated i j * y i j) (seq 0 k)).
    + apply (rounded_covers_twice k n N (fun i j => 2 * Y i j) up down M2 OW (fun i => truncated i j) d j);
        [|exact Hj|].
      * intros i. pose proof (proj1 (job_sane P j Hsane) i). specialize (demands j). unfold truncated, d. lia.
      * specialize (M5 j Hj). fold d in M5.
        rewrite (sum_ext (fun i => truncated i j * (2 * Y i j)) (fun i => 2 * (truncated i j * Y i j)))
          by (intros; lia). rewrite sum_scale. lia.
    + apply sum_le. intros i _. assert (0 <= y i j).
      { apply (whole_nonneg N (fun i j => 2 * Y i j) up M2). specialize (M3 i j). lia. }
      unfold truncated. nia.
  - exists s. split; [assumption|]. rewrite C. unfold icost_of. rewrite (sum_expand _ P _ HG), sum_map.
    unfold machines_cost. rewrite <- sum_scale. apply sum_ext. intros g _.
    cbn [twice machine_of group_machines group_type type]. lia.
Qed.

(** Without: y is thinned to a pseudoforest before. *)
Theorem theorem_A x N Y : milp x N Y -> exists s, ivalid P s /\ icost_of P s = 2 * machines_cost x.
Proof.
  intros [M1 M2 M3]. destruct (thinned k n _ _ _ N Y M2 M3) as (N' & Y' & HN & F & PF).
  apply (doubled x N' Y' (up_found k n N' (fun i j => 2 * Y' i j)) (down_found k n N' (fun i j => 2 * Y' i j))).
  - now constructor.
  - apply owners_exist. apply (pseudoforest_incl _ _ PF). intros [i j] H. apply in_edges in H as (Hi & Hj & H).
    apply in_edges. repeat split; auto. apply negb_true_iff, Z.eqb_neq. apply negb_true_iff, Z.eqb_neq in H.
    intros E. rewrite E in H. apply H. apply Z.mod_0_l. lia.
Qed.

(** A schedule's machines, one by one, and the blocks that its jobs get. *)
Definition group_of (M : machine) : group :=
  {| group_type := type M; group_counts := map (fun i => count i (blocks M)) (seq 0 k);
     group_machines := 1; group_assignment := [] |}.

Lemma counts_at l i : (forall b, In b l -> (fst b < k)%nat) ->
  count i l = at_ (map (fun i => count i l) (seq 0 k)) i.
Proof.
  intros B. rewrite at_map_seq. destruct (Nat.ltb_spec i k) as [|G]; [reflexivity|].
  unfold count. etransitivity; [|apply (sum_zero l)]. apply sum_ext. intros b Hb. specialize (B b Hb).
  destruct (Nat.eqb_spec (fst b) i); [lia|reflexivity].
Qed.

Theorem milp_relaxes s : ivalid P s ->
  milp (map group_of s) 1 (fun i j => served i j s) /\ machines_cost (map group_of s) = icost_of P s.
Proof.
  intros V. assert (KNOWN : forall M, In M s -> forall b, In b (blocks M) -> (fst b < k)%nat).
  { intros M HM b Hb. apply (ivalid_blocks P s V). apply in_flat_map. eauto. }
  assert (ONE : forall i j b, 0 <= iverson (Nat.eqb (fst b) i && serves j b) <= 1).
  { intros i j b. destruct (_ && _); cbn [iverson]; lia. }
  assert (NN : forall i j, 0 <= served i j s).
  { intros i j. apply sum_nonneg. intros b _. apply ONE. }
  split; [constructor; [| |constructor]|].
  - intros g Hg. apply in_map_iff in Hg as (M & <- & HM). split; [|reflexivity].
    destruct (ivalid_cut P s V M HM) as (c & Hc & C). unfold group_holds.
    cbn [group_of group_type group_counts group_machines group_assignment forallb].
    rewrite map_length, seq_length, !andb_true_iff. repeat split.
    + apply existsb_exists. exists c. split; [exact Hc|]. apply allows_iff; [|exact C].
      intros i. apply counts_at. exact (KNOWN M HM).
    + apply Nat.leb_refl.
    + apply forallb_forall. intros [i a] Hx. apply (in_numbered 0) in Hx as [_ ->]. apply Z.leb_le.
      cbn [fst snd]. fold (at_ (map (fun i => count i (blocks M)) (seq 0 k)) i).
      rewrite <- (counts_at _ i (KNOWN M HM)). apply count_nonneg.
  - lia.
  - exact NN.
  - intros i Hi. rewrite Z.mul_1_l. unfold served, blocks_there. rewrite sum_map.
    rewrite (sum_swap (fun j b => iverson (Nat.eqb (fst b) i && serves j b))).
    transitivity (count i (all_blocks s)).
    + apply sum_le. intros [i' [j'|]] _; cbn [fst snd serves].
      * rewrite (sum_ext _ (fun j => if Nat.eqb j' j then iverson (Nat.eqb i' i) else 0)).
        -- rewrite (sum_delta n j' (fun _ => iverson (Nat.eqb i' i))).
           destruct (Nat.ltb j' n), (Nat.eqb i' i); cbn [iverson]; lia.
        -- intros j _. destruct (Nat.eqb i' i), (Nat.eqb j' j); reflexivity.
      * rewrite (sum_ext _ (fun _ => 0)), sum_zero; [destruct (Nat.eqb i' i); cbn [iverson]; lia|].
        intros j _. now rewrite andb_false_r.
    + apply Z.eq_le_incl. unfold count at 1, all_blocks. rewrite sum_flat_map. apply sum_ext. intros M HM.
      cbn [group_of group_counts group_machines]. rewrite <- (counts_at _ i (KNOWN M HM)). unfold count. lia.
  - intros j Hj. rewrite Z.mul_1_l. set (x := ijob_at P j).
    assert (T : forall i, 0 <= truncated i j * served i j s).
    { intros i. pose proof (proj1 (job_sane P j Hsane) i). specialize (demands j). specialize (NN i j).
      unfold truncated. nia. }
    destruct (existsb (fun i => (idemand x <=? at_ (isupply x) i) && (1 <=? served i j s)) (seq 0 k)) eqn:E.
    + apply existsb_exists in E as (i & Hi & E). rewrite andb_true_iff, !Z.leb_le in E.
      etransitivity; [|apply (sum_one (fun i => truncated i j * served i j s) _ i); [intros; apply T|exact Hi]].
      pose proof (demands j) as Dj. fold x in Dj. unfold truncated. fold x. rewrite Z.min_r by lia. nia.
    + etransitivity; [exact (ivalid_covers P s V j _ Hj (or_introl eq_refl))|]. fold x. cbn [fst snd]. apply Z.eq_le_incl.
      unfold icovered. rewrite <- sum_filter.
      rewrite (sum_by_count k (filter (serves j) (all_blocks s)) (at_ (isupply x))).
      2:{ intros b Hb. apply filter_In in Hb as [Hb _]. exact (ivalid_blocks P s V b Hb). }
      apply sum_ext. intros i Hi. rewrite count_serves.
      destruct (Z.eq_dec (served i j s) 0) as [->|Ne]; [lia|]. unfold truncated. fold x.
      rewrite Z.min_l; [reflexivity|]. apply Z.lt_le_incl, Z.nle_gt. intros L.
      apply not_true_iff_false in E. apply E. apply existsb_exists. exists i. split; [exact Hi|].
      rewrite andb_true_iff, !Z.leb_le. specialize (NN i j). lia.
  - unfold machines_cost, icost_of. rewrite sum_map. apply sum_ext. intros M _.
    cbn [group_of group_machines group_type]. lia.
Qed.

(** Whoever solves MILP_c has a schedule of at most twice the least cost. *)
Corollary within_twice x N Y : milp x N Y ->
  (forall x' N' Y', milp x' N' Y' -> machines_cost x <= machines_cost x') ->
  exists s, ivalid P s /\ forall s', ivalid P s' -> icost_of P s <= 2 * icost_of P s'.
Proof.
  intros M L. destruct (theorem_A x N Y M) as (s & V & C). exists s. split; [exact V|]. intros s' V'.
  destruct (milp_relaxes s' V') as [M' C']. specialize (L _ _ _ M'). lia.
Qed.
End TheoremA.
