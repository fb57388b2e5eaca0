(** Theorem A: twice the machines of MILP_c are enough, given owners for the rounding.

    MILP_c has whole numbers of machines and fractions y_ij = Y i j / N of blocks; no block counts for
    more than the demand. *)
From CMS Require Export Fungible Rounding.

Section TheoremA.
Variable P : iproblem.
Hypothesis Hsane : sane P = true.
Hypothesis no_limits : forall m, ilimit (itype_at P m) = None.
Hypothesis demands : forall j, 0 <= idemand (ijob_at P j).
Let k := iblock_types P.
Let n := length (ijobs P).

(** What a block covers of a demand, and no more than that. *)
Definition truncated (i j : nat) : Z :=
  Z.min (at_ (isupply (ijob_at P j)) i) (idemand (ijob_at P j)).
Definition machines_cost (x : list group) : Z :=
  sum (fun g => group_machines g * icost (itype_at P (group_type g))) x.
Definition blocks_there (x : list group) (i : nat) : Z :=
  sum (fun g => group_machines g * at_ (group_counts g) i) x.

(** A solution of MILP_c: machines x, of configurations of the problem, and y = Y / N. *)
Record milp (x : list group) (N : Z) (Y : nat -> nat -> Z) : Prop := {
  milp_machines : forall g, In g x -> group_holds P n g = true /\ group_assignment g = [];
  milp_denominator : 0 < N;
  milp_nonneg : forall i j, 0 <= Y i j;
  milp_fits : forall i, (i < k)%nat -> sum (fun j => Y i j) (seq 0 n) <= N * blocks_there x i;
  milp_covers : forall j, (j < n)%nat ->
    N * idemand (ijob_at P j) <= sum (fun i => truncated i j * Y i j) (seq 0 k) }.

Definition twice (g : group) : group :=
  {| group_type := group_type g; group_counts := group_counts g;
     group_machines := 2 * group_machines g; group_assignment := group_assignment g |}.

Theorem theorem_A x N Y up down : milp x N Y ->
  owners_hold k n N (fun i j => 2 * Y i j) up down = true ->
  exists s, ivalid P s /\ icost_of P s = 2 * machines_cost x.
Proof.
  intros [M1 M2 M3 M4 M5] OW.
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
  - intros m u _ Hu. rewrite no_limits in Hu. discriminate.
  - intros i j. apply (whole_nonneg N (fun i j => 2 * Y i j) up M2). specialize (M3 i j). lia.
  - intros i Hi. rewrite BL. apply (rounded_fits n N (fun i j => 2 * Y i j) up M2).
    specialize (M4 i Hi). rewrite sum_scale. change (fun j : nat => Y i j) with (Y i) in *. lia.
  - intros j Hj. set (d := idemand (ijob_at P j)).
    transitivity (sum (fun i => truncated i j * y i j) (seq 0 k)).
    + apply (rounded_covers_twice k n N (fun i j => 2 * Y i j) up down M2 OW (fun i => truncated i j) d j);
        [|exact Hj|].
      * intros i. pose proof (supply_nonneg P j i Hsane). specialize (demands j). unfold truncated, d. lia.
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
End TheoremA.

Print Assumptions theorem_A.
