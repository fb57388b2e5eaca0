(** A bound may be rounded up to a multiple of the common step of the costs of usable machine types:
    of those that a cheapest schedule can have machines of.

    A block is wanted if it covers some of a demand. A machine whose wanted blocks are all on one of a
    cheaper type, which counts no more in any limit, is better replaced by that one; and one without
    wanted blocks is better left out. *)
From CMS Require Export Usable.

Section Better.
Variable P : iproblem.
Hypothesis Hsane : sane P = true.
Let k := iblock_types P.
Let n := length (ijobs P).
Let W := wanted P.

Definition known (M : machine) : Prop :=
  (exists c, In c (ishapes P) /\ icut c M)
  /\ (forall b, In b (blocks M) -> (fst b < k)%nat)
  /\ (forall b j, In b (blocks M) -> snd b = Some j -> (j < n)%nat).
Definition helps (j : nat) (f : list Z) (M : machine) : Z :=
  sum (fun b => if serves j b then at_ f (fst b) else 0) (blocks M).

Lemma unwanted i j r : (i < k)%nat -> (j < n)%nat -> In r (irows (ijob_at P j)) -> 0 < fst r ->
  nth i W false = false -> at_ (snd r) i = 0.
Proof.
  intros Hi Hj Hr Hd H. pose proof (row_nonneg P j r i Hsane Hr) as F.
  destruct (Z.eq_dec (at_ (snd r) i) 0) as [|Nz]; [assumption|]. exfalso.
  unfold W, wanted in H.
  rewrite (nth_indep _ false (existsb (wants 0) (ijobs P))) in H by now rewrite map_length, seq_length.
  rewrite (map_nth (fun i => existsb (wants i) (ijobs P))), seq_nth in H by exact Hi.
  cbn [Nat.add] in H. apply not_true_iff_false in H. apply H. apply existsb_exists.
  exists (ijob_at P j). split; [now apply nth_In|]. apply existsb_exists. exists r.
  split; [exact Hr|]. rewrite andb_true_iff, !Z.ltb_lt. lia.
Qed.

(** The wanted blocks of a machine that serve a job. *)
Definition moved (M : machine) : list (nat * nat * Z) :=
  flat_map (fun b => match snd b with
                     | Some j => if nth (fst b) W false then [(fst b, j, 1)] else []
                     | None => []
                     end) (blocks M).
Definition sold (M : machine) (i : nat) : Z :=
  sum (fun x => if Nat.eqb (fst (fst x)) i then snd x else 0) (moved M).
Definition successor (M : machine) (m : nat) (a : list Z) : group :=
  {| group_type := m; group_counts := a; group_machines := 1; group_assignment := moved M |}.

Lemma in_moved M x : In x (moved M) ->
  snd x = 1 /\ In (fst (fst x), Some (snd (fst x))) (blocks M) /\ nth (fst (fst x)) W false = true.
Proof.
  intros H. apply in_flat_map in H as ([i [j|]] & Hb & H); cbn [fst snd] in H; [|destruct H].
  destruct (nth i W false) eqn:E; [|destruct H]. destruct H as [<-|[]]. cbn [fst snd]. auto.
Qed.

Lemma sold_nonneg M i : 0 <= sold M i.
Proof.
  apply sum_nonneg. intros x Hx. destruct (in_moved M x Hx) as [-> _].
  destruct (Nat.eqb _ _); lia.
Qed.

Lemma sold_le M i : sold M i <= if nth i W false then count i (blocks M) else 0.
Proof.
  unfold sold, moved. rewrite sum_flat_map.
  transitivity (sum (fun b => if nth i W false then iverson (Nat.eqb (fst b) i) else 0) (blocks M)).
  - apply sum_le. intros [i' [j|]] _; cbn [fst snd].
    + destruct (nth i' W false) eqn:E; cbn [sum fold_right fst snd];
        destruct (Nat.eqb_spec i' i) as [->|]; rewrite ?E; destruct (nth i W false); cbn [iverson]; lia.
    + cbn [sum fold_right]. destruct (nth i W false), (Nat.eqb i' i); cbn [iverson]; lia.
  - unfold count. destruct (nth i W false); [lia|]. rewrite sum_zero. lia.
Qed.

Lemma lone_at c i : at_ (lone P W c) i =
  if Nat.ltb i k then if nth i W false
    then match c with
         | IListed _ a => at_ a i
         | IBounded _ sizes cap n =>
             let s := at_ sizes i in
             if 0 <? s
             then Z.max 0 (match n with Some n => Z.min (cap / s) n | None => cap / s end) else 0
         end else 0 else 0.
Proof.
  unfold lone. now rewrite at_map_seq.
Qed.

(** A sum over the blocks that move. *)
Lemma sum_sold M (w : nat -> Z) : (forall b, In b (blocks M) -> (fst b < k)%nat) ->
  sum (fun i => w i * sold M i) (seq 0 k) = sum (fun x => w (fst (fst x)) * snd x) (moved M).
Proof.
  intros HB. unfold sold.
  rewrite (sum_ext _ (fun i => sum (fun x => if Nat.eqb (fst (fst x)) i then w i * snd x else 0) (moved M))).
  2:{ intros i _. rewrite <- sum_scale. apply sum_ext. intros x _. destruct (Nat.eqb _ _); lia. }
  rewrite sum_swap. apply sum_ext. intros x Hx. rewrite (sum_delta k _ (fun i => w i * snd x)).
  destruct (in_moved M x Hx) as (_ & Hb & _). specialize (HB _ Hb). cbn [fst] in HB.
  destruct (Nat.ltb_spec (fst (fst x)) k); [reflexivity|lia].
Qed.

Lemma moved_le M (w : nat -> Z) : (forall b, In b (blocks M) -> 0 <= w (fst b)) ->
  sum (fun x => w (fst (fst x)) * snd x) (moved M) <= sum (fun b => w (fst b)) (blocks M).
Proof.
  intros H. unfold moved. rewrite sum_flat_map. apply sum_le. intros [i [j|]] Hb; cbn [fst snd].
  - specialize (H _ Hb). cbn [fst] in H. destruct (nth i W false); cbn [sum fold_right fst snd]; lia.
  - specialize (H _ Hb). cbn [fst] in H. cbn [sum fold_right]. lia.
Qed.

Lemma sold_le_lone M c i : icut c M -> (forall b, In b (blocks M) -> (fst b < k)%nat) ->
  sold M i <= at_ (lone P W c) i.
Proof.
  intros HM HB. rewrite lone_at. pose proof (sold_le M i) as S.
  destruct (nth i W false) eqn:E; [|destruct (Nat.ltb i k); exact S].
  destruct (Nat.ltb_spec i k) as [L|G].
  2:{ unfold W in E. rewrite nth_overflow in E; [discriminate|]. unfold wanted.
      now rewrite map_length, seq_length. }
  etransitivity; [exact S|]. destruct c as [m a|m sizes cap l]; cbn [icut] in HM.
  - destruct HM as [_ HM]. rewrite HM. lia.
  - destruct HM as (_ & C2 & C3 & C4). cbv zeta. destruct (Z.ltb_spec 0 (at_ sizes i)) as [Hs|Hs].
    + assert (count i (blocks M) <= cap / at_ sizes i).
      { apply Z.div_le_lower_bound; [assumption|]. etransitivity; [|exact C3].
        unfold count. rewrite <- sum_scale. apply sum_le. intros b Hb. specialize (C2 b Hb).
        destruct (Nat.eqb_spec (fst b) i) as [<-|]; cbn [iverson]; lia. }
      destruct l as [l|]; [|lia]. specialize (C4 l eq_refl).
      assert (count i (blocks M) <= Z.of_nat (length (blocks M))); [|lia].
      rewrite <- sum_length. apply sum_le. intros b _. destruct (Nat.eqb _ _); cbn [iverson]; lia.
    + destruct (Z.lt_ge_cases 0 (count i (blocks M))) as [G|]; [|lia].
      apply sum_pos in G as (b & Hb & G). specialize (C2 b Hb).
      destruct (Nat.eqb_spec (fst b) i) as [<-|]; cbn [iverson] in G; lia.
Qed.

(** A rival's blocks that make room for those that move. *)
Lemma room M c r : known M -> In c (ishapes P) -> icut c M -> In r (ishapes P) ->
  (exists i, 0 < at_ (lone P W c) i) ->
  replaces (r, lone P W r) (c, lone P W c) = true ->
  exists a, (length a <= k)%nat /\ allows r (shape_type r) a = true /\ forall i, sold M i <= at_ a i.
Proof.
  intros (_ & HB & _) Hc HM Hr (i0 & Hi0) H.
  assert (SL : forall i, sold M i <= at_ (lone P W c) i) by (intros; now apply sold_le_lone).
  destruct r as [m a|m sizes cap l]; cbn [replaces fst snd shape_type] in *.
  { destruct (listed_sane P m a Hsane Hr) as [Ha Na]. exists a. split; [exact Ha|].
    split; [cbn; rewrite Nat.eqb_refl; now apply same_shape_iff|]. intros i.
    etransitivity; [apply SL|]. destruct (Nat.lt_ge_cases i (length (lone P W c))) as [L|G].
    - etransitivity; [apply (pairwise_at _ _ _ H L)|]. rewrite lone_at. specialize (Na i).
      destruct (Nat.ltb i k), (nth i W false); lia.
    - rewrite at_beyond by assumption. apply Na. }
  set (a := map (sold M) (seq 0 k)). exists a.
  assert (A : forall i, sold M i = at_ a i).
  { intros i. unfold a. rewrite at_map_seq. destruct (Nat.ltb_spec i k) as [L|G]; [reflexivity|].
    apply Z.le_antisymm; [|apply sold_nonneg]. etransitivity; [apply SL|].
    rewrite lone_at. destruct (Nat.ltb_spec i k); lia. }
  split; [unfold a; rewrite map_length, seq_length; lia|]. split; [|intros; rewrite A; lia].
  cbn [allows]. rewrite Nat.eqb_refl. cbn [andb].
  assert (AS : forall w : nat -> Z, sum (fun x => w (fst x) * snd x) (numbered a)
    = sum (fun i => w i * sold M i) (seq 0 k)).
  { intros w. rewrite (sum_numbered 0 (fun i x => w i * x)). unfold a at 2.
    rewrite map_length, seq_length. apply sum_ext. intros i _. fold (at_ a i). now rewrite <- A. }
  assert (Goal : (forall i, 0 < sold M i -> 0 < at_ sizes i)
    /\ sum (fun i => at_ sizes i * sold M i) (seq 0 k) <= cap
    /\ (forall u, l = Some u -> sum (fun i => 1 * sold M i) (seq 0 k) <= u)).
  2:{ destruct Goal as (G1 & G2 & G3). unfold in_set. rewrite !andb_true_iff. split; [split|].
      - apply forallb_forall. intros [i x] Hx. apply (in_numbered 0) in Hx as [_ ->]. cbn [fst snd].
        fold (at_ a i). rewrite <- A, orb_true_iff, Z.eqb_eq, Z.ltb_lt. specialize (G1 i).
        pose proof (sold_nonneg M i). lia.
      - apply Z.leb_le. rewrite AS. exact G2.
      - destruct l as [u|]; [|reflexivity]. apply Z.leb_le. etransitivity; [|exact (G3 u eq_refl)].
        rewrite <- (AS (fun _ => 1)). apply Z.eq_le_incl, sum_ext. intros; lia. }
  destruct c as [m' a'|m' sizes' cap' l'].
  - unfold in_set in H. rewrite !andb_true_iff in H. destruct H as [[H1 H2] H3].
    rewrite forallb_forall in H1. apply Z.leb_le in H2.
    set (c := IListed m' a') in *.
    assert (LK : length (lone P W c) = k) by (unfold lone; now rewrite map_length, seq_length).
    assert (POS : forall i, 0 < at_ (lone P W c) i -> 0 < at_ sizes i).
    { intros i Hi. specialize (H1 (i, at_ (lone P W c) i)). cbn [fst snd] in H1.
      rewrite orb_true_iff, Z.eqb_eq, Z.ltb_lt, (in_numbered 0) in H1.
      destruct (Nat.lt_ge_cases i (length (lone P W c))); [|rewrite at_beyond in Hi; lia].
      destruct H1 as [|]; [split; [assumption|reflexivity]|lia|assumption]. }
    assert (LS : forall w : nat -> Z, sum (fun x => w (fst x) * snd x) (numbered (lone P W c))
      = sum (fun i => w i * at_ (lone P W c) i) (seq 0 k)).
    { intros w. rewrite (sum_numbered 0 (fun i x => w i * x)). now rewrite LK. }
    split; [intros i Hi; apply POS; specialize (SL i); lia|]. split.
    + etransitivity; [|exact H2]. rewrite (LS (at_ sizes)). apply sum_le. intros i _.
      specialize (SL i). pose proof (sold_nonneg M i). specialize (POS i).
      destruct (Z.eq_dec (at_ (lone P W c) i) 0) as [E|E].
      * assert (sold M i = 0) as -> by lia. rewrite E. lia.
      * specialize (POS ltac:(lia)). nia.
    + intros u ->. apply Z.leb_le in H3. etransitivity; [|exact H3].
      rewrite (sum_ext (fun x : nat * Z => snd x) (fun x => 1 * snd x)) by (intros; lia).
      rewrite (LS (fun _ => 1)). apply sum_le. intros i _. specialize (SL i). lia.
  - apply andb_true_iff in H as [H1 H2]. rewrite forallb_forall in H1.
    set (c := IBounded m' sizes' cap' l') in *. set (r := IBounded m sizes cap l) in *.
    destruct HM as (_ & C2 & C3 & C4).
    assert (LK : length (lone P W c) = k) by (unfold lone; now rewrite map_length, seq_length).
    assert (RATIO : forall i, 0 < at_ (lone P W c) i ->
      0 < at_ sizes i /\ 0 < cap /\ 0 < at_ sizes' i /\ 0 < cap'
      /\ at_ sizes i * cap' <= at_ sizes' i * cap).
    { intros i Hi. specialize (H1 (i, at_ (lone P W c) i)). cbn [fst snd] in H1.
      rewrite orb_true_iff, andb_true_iff, !Z.leb_le, Z.ltb_lt, (in_numbered 0) in H1.
      destruct (Nat.lt_ge_cases i (length (lone P W c))); [|rewrite at_beyond in Hi; lia].
      destruct H1 as [|[R1 R2]]; [split; [assumption|reflexivity]|lia|].
      assert (forall ss cc ll, 0 < at_ (lone P W (IBounded m ss cc ll)) i -> 0 < at_ ss i /\ 0 < cc) as K.
      { intros ss cc ll. rewrite lone_at. destruct (Nat.ltb i k), (nth i W false); try lia. cbv zeta.
        destruct (Z.ltb_spec 0 (at_ ss i)) as [L|L]; [|lia]. intros X. split; [assumption|].
        assert (0 < cc / at_ ss i) by (destruct ll; lia).
        pose proof (Z.mul_div_le cc (at_ ss i) L). nia. }
      pose proof (K sizes cap l R1). pose proof (K sizes' cap' l') as K'.
      unfold c in Hi. rewrite lone_at in Hi. rewrite lone_at in K'. specialize (K' Hi). tauto. }
    destruct (RATIO i0 Hi0) as (_ & Q1 & _ & Q2 & _).
    assert (RS : forall i, 0 < sold M i -> 0 < at_ sizes i /\ 0 < at_ sizes' i
      /\ at_ sizes i * cap' <= at_ sizes' i * cap).
    { intros i Hi. specialize (SL i). destruct (RATIO i ltac:(lia)) as (X1 & _ & X3 & _ & X5). auto. }
    split; [intros i Hi; apply (RS i Hi)|]. split.
    + assert (sum (fun i => at_ sizes' i * sold M i) (seq 0 k) <= cap') as S'.
      { rewrite (sum_sold M (at_ sizes') HB). etransitivity; [apply (moved_le M (at_ sizes'))|exact C3].
        intros b Hb. specialize (C2 b Hb). lia. }
      assert (cap' * sum (fun i => at_ sizes i * sold M i) (seq 0 k)
        <= cap * sum (fun i => at_ sizes' i * sold M i) (seq 0 k)); [|nia].
      rewrite <- !sum_scale. apply sum_le. intros i _. pose proof (sold_nonneg M i).
      destruct (Z.eq_dec (sold M i) 0) as [->|]; [lia|].
      destruct (RS i ltac:(lia)) as (_ & _ & R). nia.
    + intros u ->. destruct l' as [u'|]; [|discriminate]. apply Z.leb_le in H2.
      rewrite (sum_sold M (fun _ => 1) HB).
      etransitivity; [apply (moved_le M (fun _ => 1)); lia|]. rewrite sum_length.
      specialize (C4 u' eq_refl). lia.
Qed.

(** The machine of a rival serves all that the other one serves. *)
Lemma succeeds M r a : known M -> In r (ishapes P) -> (length a <= k)%nat ->
  allows r (shape_type r) a = true -> (forall i, sold M i <= at_ a i) ->
  let M' := machine_of (successor M (shape_type r) a) in
  known M' /\ type M' = shape_type r
  /\ forall j r, (j < n)%nat -> In r (irows (ijob_at P j)) -> 0 < fst r ->
       helps j (snd r) M <= helps j (snd r) M'.
Proof.
  intros (HC & HB & HJ) Hr Ha Hall Hsold M'.
  assert (G : group_holds P n (successor M (shape_type r) a) = true).
  { unfold group_holds. cbn [successor group_type group_counts group_machines group_assignment].
    rewrite !andb_true_iff. repeat split.
    - apply existsb_exists. eauto.
    - now apply Nat.leb_le.
    - apply forallb_forall. intros x Hx. destruct (in_moved M x Hx) as (E & Hb & Hw).
      rewrite E, !andb_true_iff, !Nat.ltb_lt. split; [split; [reflexivity|]|].
      + destruct (Nat.lt_ge_cases (fst (fst x)) (length a)) as [|Ge]; [assumption|exfalso].
        specialize (Hsold (fst (fst x))). rewrite at_beyond in Hsold by assumption.
        assert (1 <= sold M (fst (fst x))); [|lia]. unfold sold.
        etransitivity; [|apply (sum_one (fun y => if Nat.eqb (fst (fst y)) (fst (fst x)) then snd y else 0) _ x)].
        * rewrite Nat.eqb_refl, E. lia.
        * intros y Hy. destruct (in_moved M y Hy) as [-> _]. destruct (Nat.eqb _ _); lia.
        * assumption.
      + exact (HJ _ _ Hb eq_refl).
    - apply forallb_forall. intros [i x] Hx. apply (in_numbered 0) in Hx as [_ ->].
      apply Z.leb_le. exact (Hsold i). }
  split; [|split; [reflexivity|]].
  - split; [|split].
    + exact (machine_cut P _ G).
    + intros b Hb. destruct (in_machine P _ G b Hb) as [L _]. cbn in L. lia.
    + intros b j Hb Hj. destruct (in_machine P _ G b Hb) as [_ L]. now rewrite Hj in L.
  - intros j q Hj Hq Hd. unfold helps, M'. rewrite (sum_machine P _ G). cbn [serves fst snd].
    rewrite (sum_ext (fun i => _ * 0) (fun _ => 0)), sum_zero by (intros; lia). rewrite Z.add_0_r.
    cbn [successor group_assignment]. unfold moved. rewrite sum_flat_map. apply sum_le.
    intros [i [j'|]] Hb; cbn [serves fst snd]; [|simpl; lia].
    destruct (Nat.eqb_spec j' j) as [->|].
    + destruct (nth i W false) eqn:E.
      * cbn [sum fold_right fst snd]. rewrite Nat.eqb_refl. lia.
      * rewrite (unwanted i j q); [simpl; lia|exact (HB _ Hb)|assumption..].
    + destruct (nth i W false); cbn [sum fold_right fst snd]; [|lia].
      destruct (Nat.eqb_spec j' j); [contradiction|lia].
Qed.

Definition better (M : machine) (o : schedule) : Prop :=
  (forall M', In M' o -> known M' /\ usable P (rows P) (type M') = true)
  /\ icost_of P o <= icost P (type M)
  /\ (forall j r, (j < n)%nat -> In r (irows (ijob_at P j)) -> 0 < fst r ->
        helps j (snd r) M <= sum (helps j (snd r)) o)
  /\ (forall L, In L (ilimits P) -> load L o <= weight L (type M)).

Lemma improve : forall c M, icost P (type M) < Z.of_nat c -> known M ->
  possible P (type M) = true -> exists o, better M o.
Proof.
  induction c as [|c IH]; intros M Hc KM HL.
  { pose proof (cost_nonneg P (type M) Hsane). lia. }
  destruct (usable P (rows P) (type M)) eqn:U.
  { exists [M]. split; [|split; [|split]].
    - intros M' [<-|[]]. auto.
    - unfold icost_of. cbn. lia.
    - intros j r _ _ _. cbn. lia.
    - intros L _. unfold load. cbn [sum fold_right]. lia. }
  pose proof KM as ((s & Hs & Cs) & HB & HJ).
  assert (type M = shape_type s) as Ts by (destruct s; apply Cs).
  destruct (existsb (Z.ltb 0) (lone P W s)) eqn:X.
  2:{ exists []. pose proof (cost_nonneg P (type M) Hsane) as C0. split; [|split; [|split]].
      - intros M' [].
      - exact C0.
      - intros j r Hj Hr Hd. change (sum (helps j (snd r)) []) with 0. rewrite <- (sum_zero (blocks M)).
        unfold helps.
        apply sum_le. intros [i [j'|]] Hb; cbn [serves fst snd]; [|lia].
        destruct (Nat.eqb_spec j' j) as [->|]; [|lia].
        destruct (nth i W false) eqn:E; [|rewrite (unwanted i j r); [lia|exact (HB _ Hb)|assumption..]].
        exfalso. apply not_true_iff_false in X. apply X. apply existsb_exists.
        assert (0 < at_ (lone P W s) i) as L.
        { apply Z.lt_le_trans with (m := sold M i); [|now apply sold_le_lone]. unfold sold.
          apply Z.lt_le_trans with (m := 1); [lia|].
          etransitivity; [|apply (sum_one (fun y => if Nat.eqb (fst (fst y)) i then snd y else 0) _ (i, j, 1))].
          - cbn [fst snd]. rewrite Nat.eqb_refl. lia.
          - intros y Hy. destruct (in_moved M y Hy) as [-> _]. destruct (Nat.eqb _ _); lia.
          - unfold moved. apply in_flat_map. exists (i, Some j). split; [assumption|].
            cbn [fst snd]. rewrite E. now left. }
        exists (at_ (lone P W s) i). split; [|now apply Z.ltb_lt].
        destruct (Nat.lt_ge_cases i (length (lone P W s))); [now apply nth_In|].
        rewrite at_beyond in L by assumption. lia.
      - intros L HL'. exact (weight_nonneg P L (type M) Hsane HL'). }
  assert (In (s, lone P W s) (rows P)) as IR.
  { unfold rows. apply filter_In. split; [|exact X]. apply in_map_iff. exists s. auto. }
  assert (exists r, In r (ishapes P) /\ rival_of P (type M) (r, lone P W r) = true
    /\ replaces (r, lone P W r) (s, lone P W s) = true) as (r & Hr & R1 & R2).
  { unfold usable in U. rewrite HL in U. cbn [andb] in U. cbv zeta in U.
    apply not_true_iff_false in U. rewrite existsb_exists in U.
    destruct (existsb (fun rival => replaces rival (s, lone P W s))
                (filter (rival_of P (type M)) (rows P))) eqn:Y.
    - apply existsb_exists in Y as (y & Hy & Y). apply filter_In in Hy as [Hy1 Hy2].
      apply filter_In in Hy1 as [Hy1 _]. apply in_map_iff in Hy1 as (r & <- & Hr). exists r. auto.
    - exfalso. apply U. exists (s, lone P W s). split; [assumption|]. cbn [fst].
      rewrite Ts, Nat.eqb_refl. cbn [andb]. apply forallb_forall. intros y Hy.
      apply negb_true_iff. apply not_true_iff_false. intros Z0. apply not_true_iff_false in Y.
      apply Y. apply existsb_exists. exists y. rewrite Ts. auto. }
  unfold rival_of in R1. cbn [fst] in R1. apply andb_true_iff in R1 as [R4 R3]. apply Z.ltb_lt in R4.
  rewrite forallb_forall in R3.
  apply existsb_exists in X as (x & Hx & X). apply Z.ltb_lt in X. apply (In_nth _ _ 0) in Hx
    as (i0 & _ & Hi0). fold (at_ (lone P W s) i0) in Hi0.
  destruct (room M s r KM Hs Cs Hr ltac:(exists i0; lia) R2) as (a & A1 & A2 & A3).
  destruct (succeeds M r a KM Hr A1 A2 A3) as (K' & T' & H').
  set (M' := machine_of (successor M (shape_type r) a)) in *. rewrite <- T' in R3, R4.
  assert (R5 : forall L, In L (ilimits P) -> weight L (type M') <= weight L (type M))
    by (intros L I; apply Z.leb_le, R3, I).
  destruct (IH M') as (o & O1 & O2 & O3 & O4); [lia|assumption| |].
  { unfold possible in HL |- *. rewrite forallb_forall in HL |- *. intros L I. specialize (HL L I).
    specialize (R5 L I). rewrite Z.leb_le in *. lia. }
  exists o. split; [exact O1|split; [lia|split]].
  - intros j r' Hj Hr' Hd. etransitivity; [apply (H' j r'); assumption|]. now apply O3.
  - intros L I. etransitivity; [exact (O4 L I)|exact (R5 L I)].
Qed.

Lemma improved s : ivalid P s -> exists s', ivalid P s' /\ icost_of P s' <= icost_of P s
  /\ forall M, In M s' -> usable P (rows P) (type M) = true.
Proof.
  intros V.
  assert (forall t, incl t s -> exists t', (forall M', In M' t' -> known M' /\ usable P (rows P) (type M') = true)
    /\ icost_of P t' <= icost_of P t
    /\ (forall j r, (j < n)%nat -> In r (irows (ijob_at P j)) -> 0 < fst r ->
          sum (helps j (snd r)) t <= sum (helps j (snd r)) t')
    /\ (forall L, In L (ilimits P) -> load L t' <= load L t))
    as K.
  { induction t as [|M t IH]; intros I.
    - exists []. repeat split; intros; try lia; destruct H.
    - destruct IH as (t' & T1 & T2 & T3 & T4); [intros x Hx; apply I; now right|].
      assert (HM : In M s) by (apply I; now left).
      assert (KM : known M).
      { split; [exact (ivalid_cut P s V M HM)|split].
        - intros b Hb. apply (ivalid_blocks P s V). apply in_flat_map. eauto.
        - intros b j Hb. apply (ivalid_jobs P s V). apply in_flat_map. eauto. }
      assert (HL : possible P (type M) = true).
      { apply forallb_forall. intros L HL. apply Z.leb_le.
        etransitivity; [|exact (ivalid_limits P s V L HL)].
        apply (sum_one (fun M' => weight L (type M')) s M); [|exact HM].
        intros M' _. exact (weight_nonneg P L _ Hsane HL). }
      destruct (improve (S (Z.to_nat (icost P (type M)))) M ltac:(lia) KM HL)
        as (o & O1 & O2 & O3 & O4).
      exists (o ++ t'). split; [|split; [|split]].
      + intros M' HM'. apply in_app_iff in HM' as [HM'|HM']; auto.
      + unfold icost_of in *. rewrite sum_app, sum_cons. lia.
      + intros j r Hj Hr Hd. rewrite sum_app, sum_cons. specialize (T3 j r Hj Hr Hd).
        specialize (O3 j r Hj Hr Hd). lia.
      + intros L I'. specialize (T4 L I'). specialize (O4 L I'). unfold load in *.
        rewrite sum_app, sum_cons. lia. }
  destruct (K s (incl_refl s)) as (s' & T1 & T2 & T3 & T4). exists s'.
  split; [|split; [exact T2|intros M HM; now apply T1]]. constructor.
  - intros M HM. apply (T1 M HM).
  - intros b Hb. apply in_flat_map in Hb as (M & HM & Hb). now apply (T1 M HM).
  - intros b j Hb Hj. apply in_flat_map in Hb as (M & HM & Hb).
    destruct (T1 M HM) as ((_ & _ & J) & _). eauto.
  - intros j r Hj Hr. assert (C : forall t, icovered t j (snd r) = sum (helps j (snd r)) t).
    { intros t. unfold icovered, all_blocks. now rewrite sum_flat_map. }
    rewrite C. destruct (Z.lt_ge_cases 0 (fst r)) as [Hd|Hd].
    + etransitivity; [|exact (T3 j r Hj Hr Hd)]. rewrite <- C. exact (ivalid_covers P s V j r Hj Hr).
    + etransitivity; [exact Hd|]. apply sum_nonneg. intros M _. apply sum_nonneg. intros b _.
      pose proof (row_nonneg P j r (fst b) Hsane Hr). destruct (serves j b); lia.
  - intros L I. etransitivity; [exact (T4 L I)|]. exact (ivalid_limits P s V L I).
Qed.
End Better.

Theorem round_up_sound P b : sane P = true ->
  (forall s, ivalid P s -> (b <= inject_Z (icost_of P s))%Q) ->
  forall s, ivalid P s -> (round_up P b <= inject_Z (icost_of P s))%Q.
Proof.
  intros Hs H s V. destruct (improved P Hs s V) as (s' & V' & C & U).
  eapply Qle_trans; [|rewrite <- Zle_Qle; exact C]. apply rounded_le; [|now apply H].
  apply divides_sum. intros M HM. unfold step. specialize (U M HM).
  destruct (Nat.lt_ge_cases (type M) (length (icosts P))) as [L|G].
  - destruct (filter _ _) as [|m names] eqn:E.
    + apply gcd_divides. now apply nth_In.
    + apply gcd_divides. rewrite <- E. apply (in_map (icost P)).
      apply filter_In. split; [apply in_seq; lia|exact U].
  - unfold icost. rewrite at_beyond by assumption. apply Z.divide_0_r.
Qed.
